"""Entries of rows, which reports are made from.

An entry is a place among public values, or a number of steps on a public grid.

*Formal guarantee.* Without people, an entry is a function of its own row, at the row's place. With
people, each of them has the same number of entries, made of that person's own rows, wherever these
stand (docs/guarantees/randomized-response.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._expr import Column, Expr
from dpframe._groups.keys import KeyBy
from dpframe._groups.unit import Unit
from dpframe._statistics.base import Grid, to_grid
from dpframe._statistics.engine import Engine
from dpframe.mechanisms import _sampling

Entries = NDArray[Any]


@np.errstate(all="ignore")  # a warning could reveal a value
def find_places(engine: Engine, by: KeyBy) -> Entries:
    """Return for each row one more than the position of its value among the listed keys. Other
    values get 0."""
    find = by.keys.finder()
    entries = [find(piece.vectors[0]) for piece in engine.slices((by.expr,), None, Unit())]
    return np.concatenate([np.empty(0, dtype=np.min_scalar_type(len(by.keys))), *entries])


@np.errstate(all="ignore")
def find_steps(engine: Engine, expr: Expr, grid: Grid) -> NDArray[np.int64]:
    """Return for each row the grid steps from the lower bound up to its value, and -1 for a
    null."""
    entries = [np.empty(0, dtype=np.int64)]
    for piece in engine.slices((expr,), None, Unit()):
        vector = piece.vectors[0]
        null, values = vector.nulls(), np.empty(len(vector))
        np.copyto(values, vector.values, casting="unsafe")
        if null is not None:
            values[null] = np.nan
        entries.append(count_steps(values, grid))
    return np.concatenate(entries)


def count_steps(values: NDArray[np.float64], grid: Grid) -> NDArray[np.int64]:
    """Return the grid steps from the lower bound up to each value, and -1 for NaN."""
    scaled = np.empty(len(values))
    to_grid(values, scaled, grid)
    scaled[np.isnan(scaled)] = -1.0
    return scaled.astype(np.int64)


@np.errstate(all="ignore")
def take_rows_of_people(
    engine: Engine, columns: tuple[Column, ...], limit: int, entries: Entries, blank: int
) -> Entries:
    """Return the entries of the first ``limit`` rows of each person, with people in random order.

    People with fewer rows have blanks, so everyone who has a row has ``limit`` entries. Under
    replace-one the number of people is public, so the length is, too.
    """
    codes_by_slice = [piece.people for piece in engine.slices((), None, Unit(people=columns))]
    codes = np.concatenate(
        [
            np.empty(0, dtype=np.int64),
            *(slice_codes for slice_codes in codes_by_slice if slice_codes is not None),
        ]
    )
    order = np.argsort(codes, kind="stable")
    order = order[np.count_nonzero(codes < 0) :]
    _, first, person = np.unique(codes[order], return_index=True, return_inverse=True)
    size, nth = len(first), np.arange(len(order)) - first[person]
    within_limit = nth < limit
    table = np.full((size, limit), blank, dtype=entries.dtype)
    table[person[within_limit], nth[within_limit]] = entries[order[within_limit]]
    return np.ravel(table[_sampling.permutation(size)])
