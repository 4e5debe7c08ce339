"""What each row says by itself, for reports of rows: a place among public values, or steps of a public grid.

*Formal guarantee.* Without people, an entry is a function of its own row, at the row's place. With people, each of them has
the same number of entries, made of that person's own rows, wherever these stand (docs/guarantees/randomized-response.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._expr import Column, Expr
from dpframe._groups.keys import KeyBy
from dpframe._statistics.base import Grid
from dpframe.engines.expressions import evaluate
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.sums import to_grid
from dpframe.mechanisms import _sampling

Entries = NDArray[Any]


@np.errstate(all="ignore")  # no warning may tell of a value
def places(engine: PandasEngine, by: KeyBy) -> Entries:
    """1 + the place of a row's value among the keys, or 0."""
    found = engine._grouping((by,))
    assert found is not None
    return found


@np.errstate(all="ignore")
def steps(engine: PandasEngine, expr: Expr, grid: Grid) -> NDArray[np.int64]:
    """Steps of the grid above its lower end; -1 for a null."""
    found = np.empty(len(engine._frame), dtype=np.int64)
    memo: dict[Any, Any] = {}
    for rows in engine._slices():
        vector = evaluate(expr, engine.column, rows, memo)
        null, values = vector.nulls(), np.empty(rows.stop - rows.start)
        np.copyto(values, vector.values, casting="unsafe")
        if null is not None:
            values[null] = np.nan
        found[rows] = steps_of(values, grid)
    return found


def steps_of(values: NDArray[np.float64], grid: Grid) -> NDArray[np.int64]:
    """Steps of the grid above its lower end; -1 for NaN."""
    scaled = np.empty(len(values))
    to_grid(values, scaled, grid)
    scaled[np.isnan(scaled)] = -1.0
    return scaled.astype(np.int64)


@np.errstate(all="ignore")
def of_people(
    engine: PandasEngine, columns: tuple[Column, ...], limit: int, entries: Entries, blank: int
) -> Entries:
    """The first ``limit`` rows of each person, filled up with blanks; people in an order drawn for this once.

    So many for each person who has a row: under replace-one their number is public, and nothing else decides the length.
    """
    people = engine._whose(columns)
    order = np.argsort(people.codes, kind="stable")
    ranked = people.codes[order]
    first = np.searchsorted(ranked, np.arange(people.size))
    nobody = len(ranked) - np.count_nonzero(ranked >= 0)
    order, ranked = order[nobody:], ranked[nobody:]
    nth = np.arange(len(ranked)) - (first[ranked] - nobody)
    some = nth < limit
    table = np.full((people.size, limit), blank, dtype=entries.dtype)
    table[ranked[some], nth[some]] = entries[order[some]]
    return np.ravel(table[_sampling.permutation(people.size)])
