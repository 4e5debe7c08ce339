"""Who each row belongs to, and the pairs of a person and a group that have rows.

*Formal guarantee.* Whether two rows are one person's is a function of the cells that name them. The hash of a person is one of
those cells and the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.columns import UNMATCHED, Vector, number_text, objects

Codes = NDArray[np.int64]


class People(NamedTuple):
    """Who each row belongs to: a code, or -1 for nobody; how many people have a row, and a hash of each.

    Every code below ``size`` is that of a row, so the size is a function of the set of people who are there: neither of the
    range of their numbers, nor of the categories that nobody has.
    """

    codes: Codes
    size: int
    hashes: NDArray[np.uint64]


@np.errstate(all="ignore")  # no NaN may raise, whatever the caller has set
def people_of(columns: Sequence[Vector], key: bytes) -> People:
    """The people that one column or several name. A null in any is nobody; equal numbers are one person, of whatever type.

    A cell that is no plain scalar is nobody, too: many people would be one, who is not gone when one of them is.
    """
    codes, hashes = _named(columns[0])
    for column in columns[1:]:
        inner, more = _named(column)
        size = max(1, len(more))
        wide = np.where((codes < 0) | (inner < 0), -1, codes * size + inner)
        codes, pairs = _factorized(wide, wide < 0)
        hashes = _mixed(hashes[pairs // size] * np.uint64(31) + more[pairs % size], key)
    return People(codes, len(hashes), _mixed(hashes, key))


def _named(column: Vector) -> tuple[Codes, NDArray[np.uint64]]:
    """Codes without gaps, and a hash for each."""
    codes, _, hashes = coded(column)
    if column.categories is not None:
        unknown = np.array([c is UNMATCHED for c in column.categories] + [False])
        codes = np.where(unknown.take(column.values, mode="wrap"), -1, codes)
    there = np.zeros(len(hashes) + 1, dtype=bool)  # one more, for -1
    there[codes] = True
    there = there[:-1]
    if there.all():
        return codes, hashes
    without_gaps = np.append(np.cumsum(there) - 1, -1)
    return np.take(without_gaps, codes, mode="wrap"), hashes[there]


def coded(column: Vector) -> tuple[Codes, int, NDArray[np.uint64]]:
    """A code for each cell, -1 for null; how many codes there may be, and a hash for each that its value alone decides."""
    if column.categories is not None:
        return _of_categories(column)
    values = column.values
    if values.dtype.kind in "mM":
        values = values.view(np.int64)
    elif values.dtype.kind == "f":
        values = values.astype(np.float64) + 0.0  # -0.0 is 0.0
    codes, uniques = _ranged(values, column.nulls()) or _factorized(values, column.nulls())
    return codes, len(uniques), pd.util.hash_array(uniques, categorize=False)


def _ranged(values: NDArray[Any], null: NDArray[np.bool_] | None) -> tuple[Codes, NDArray[Any]] | None:
    """Whole numbers of a narrow range are their own codes, some of which no row may have."""
    if values.dtype.kind not in "iu" or not len(values) or (null is not None and null.any()):
        return None
    low, high = int(values.min()), int(values.max())
    if high - low > 2 * len(values) + 2**16:
        return None
    wide = np.uint64 if values.dtype == np.uint64 else np.int64
    codes = (values.astype(wide, copy=False) - wide(low)).astype(np.int64, copy=False)
    uniques = (np.arange(high - low + 1, dtype=wide) + wide(low)).astype(values.dtype)
    return codes, uniques


def _factorized(values: NDArray[Any], null: NDArray[np.bool_] | None = None) -> tuple[Codes, NDArray[Any]]:
    if null is not None and null.any():
        codes = np.full(len(values), -1, dtype=np.int64)
        codes[~null], uniques = pd.factorize(values[~null])
    else:
        codes, uniques = pd.factorize(values)
    return codes.astype(np.int64, copy=False), uniques


def _of_categories(column: Vector) -> tuple[Codes, int, NDArray[np.uint64]]:
    """Codes of a dictionary, in which a number may stand as 1 and as 1.0."""
    assert column.categories is not None
    texts = [text_of_scalar(c) for c in column.categories]
    places = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    to_place = np.array([places[t] for t in texts] or [0], dtype=np.int64)
    codes = np.where(column.values < 0, -1, to_place[column.values])
    cells = objects(
        text.encode("utf-8", "surrogatepass") for text in places
    )  # no text may raise, whatever it holds
    hashes = pd.util.hash_array(cells, categorize=False)
    return codes, len(places), hashes


def text_of_scalar(cell: Any) -> str:
    """Equal for equal scalars of the types that a dictionary may hold, which run no code of their own."""
    if isinstance(cell, bool | int | float | Decimal) and cell == cell:
        return f"number {number_text(cell)}"
    return f"{type(cell).__name__} {cell!s}"


def _mixed(hashes: NDArray[np.uint64], key: bytes) -> NDArray[np.uint64]:
    salt = np.uint64(int.from_bytes(key[:8].ljust(8, b"\1"), "little") | 1)
    with np.errstate(over="ignore"):
        mixed: NDArray[np.uint64] = (hashes ^ (hashes >> np.uint64(29))) * salt
    return mixed ^ (mixed >> np.uint64(32))


class Pairs(NamedTuple):
    """The (person, group) pairs that have rows: the pair of each row, and of each pair its group and its rows."""

    of_row: NDArray[Any]
    places: (
        NDArray[Any] | None
    )  # of the pairs in the arrays that `of_row` counts into; None: one after the other
    size: int
    person: NDArray[Any]
    group: NDArray[Any]
    rows: NDArray[Any]
    table: bool = False  # those arrays have a row a person and a column a group

    @property
    def at(self) -> Any:
        """Where the pairs stand in such an array."""
        return slice(None) if self.places is None else self.places


def pairs_of(person: Codes, group: NDArray[Any] | None, people: int, groups: int) -> Pairs:
    wide = person if group is None else person * groups + group
    size = people * groups
    if size > 4 * len(wide) + 2**16:
        uniques, of_row, rows = _numbered(wide, size)
        person, group = _narrow(uniques // groups), _narrow(uniques % groups)
        return Pairs(of_row, None, len(uniques), person, group, _narrow(rows))
    rows = np.bincount(wide, minlength=size)
    places = np.flatnonzero(rows)
    return Pairs(
        _narrow(wide),
        _narrow(places),
        size,
        _narrow(places // groups),
        _narrow(places % groups),
        _narrow(rows[places]),
        table=True,
    )


def _numbered(wide: Codes, size: int) -> tuple[Codes, NDArray[Any], NDArray[np.int64]]:
    """The numbers below ``size`` that occur, in order; of each row the place of its own among them; and how often each is."""
    bits = max(len(wide) - 1, 1).bit_length()
    if (size - 1).bit_length() + bits > 62:
        uniques, of_row, rows = np.unique(wide, return_inverse=True, return_counts=True)
        return uniques, _narrow(of_row), rows
    # With its row in the low bits a number sorts twice as fast as by argsort, and tells where it came from.
    packed = (wide << bits) | np.arange(len(wide))
    packed.sort()
    rows_in_order = packed & ((1 << bits) - 1)
    packed >>= bits
    first = np.ones(len(packed), dtype=bool)
    np.not_equal(packed[1:], packed[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    of_row = np.empty(len(wide), dtype=np.int32 if len(starts) < 2**31 else np.int64)
    of_row[rows_in_order] = np.cumsum(first) - 1
    return packed[starts], of_row, np.diff(np.append(starts, len(packed)))


def _narrow(codes: NDArray[Any]) -> NDArray[Any]:
    """The numbers in little memory, so that more of them can be kept."""
    if not len(codes) or int(codes.max()) >= 2**32:
        return codes
    return codes.astype(np.min_scalar_type(int(codes.max())))
