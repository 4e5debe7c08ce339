"""Groups that more than one column, or time, decides: listed combinations, the rest, and periods. Each row by its own cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._cells.codec import Buckets, Finder, unit_of
from dpframe._cells.columns import Vector
from dpframe._expr import Expr
from dpframe._groups.combinations import Tuples
from dpframe._groups.keys import BinBy, By, KeyBy
from dpframe._groups.periods import TICKS, Periods, TimeBy
from dpframe.engines._buckets import bin_buckets, key_buckets

_TABLE = 2**22  # codes within a range of this size are looked up directly
_PART = 2**18  # rows at a time
_LEAST, _MOST = np.iinfo(np.int64).min + 1, np.iinfo(np.int64).max  # the least of all is no time


def finder_of(by: By) -> tuple[Expr, Finder]:
    """Of a grouping that one column decides: its expression, and the way from values to buckets."""
    if isinstance(by, KeyBy):
        return by.expr, key_buckets(by.keys)
    if isinstance(by, TimeBy):
        return by.expr, time_buckets(by.periods)
    assert isinstance(by, BinBy)
    return by.expr, bin_buckets(by.edges)


def tuple_buckets(levels: Sequence[Buckets], tuples: Tuples) -> Buckets:
    """From the buckets of each column to 1 + the place of their combination, or 0.

    Columns are folded one by one into codes of the listed beginnings of combinations, so no table is larger than the
    list, and no code larger than the list times the keys of one column: below 2**53.
    """
    listed = tuples.places[:, 0] + 1
    steps: list[tuple[int, NDArray[np.int64], NDArray[Any] | None]] = []
    for column in range(1, len(levels)):
        size = len(tuples.keys[column]) + 1
        known, codes = np.unique(listed * size + tuples.places[:, column] + 1, return_inverse=True)
        steps.append((size, known, _table(known)))
        listed = codes.astype(np.int64) + 1
    places = np.zeros(len(tuples) + 1, dtype=np.min_scalar_type(len(tuples)))
    places[listed] = np.arange(1, len(tuples) + 1)
    found = np.empty(len(levels[0]), dtype=places.dtype)
    for start in range(0, len(found), _PART):
        rows = slice(start, start + _PART)
        code = levels[0][rows].astype(np.int64)
        for level, (size, known, table) in zip(levels[1:], steps, strict=True):
            code = _looked_up(code * size + level[rows], known, table)
        found[rows] = places[code]
    return found


def _table(known: NDArray[np.int64]) -> NDArray[Any] | None:
    """1 + the place of each known code by the code itself, with a 0 at the end; None where it would be large."""
    if int(known[-1]) >= _TABLE:
        return None
    table = np.zeros(int(known[-1]) + 2, dtype=np.int64)
    table[known] = np.arange(1, len(known) + 1)
    return table


def _looked_up(
    code: NDArray[np.int64], known: NDArray[np.int64], table: NDArray[Any] | None
) -> NDArray[np.int64]:
    if table is not None:
        return np.take(table, code, mode="clip")
    at = np.minimum(np.searchsorted(known, code), len(known) - 1)
    return np.where(known[at] == code, at + 1, 0)


def rest_buckets(listed: Buckets, null: NDArray[np.bool_], groups: int) -> Buckets:
    """The same buckets, and the last one for rows that are in none and not null."""
    found = listed.astype(np.min_scalar_type(groups))
    found[(listed == 0) & ~null] = groups
    return found


def time_buckets(periods: Periods) -> Finder:
    """From times to 1 + the period they fall in, or 0: by whole ticks of the column, exactly."""
    ready: dict[str, tuple[int, NDArray[np.int64], int, int]] = {}

    def prepared(unit: str) -> tuple[int, NDArray[np.int64], int, int]:
        per_second, given = TICKS[unit], TICKS[periods.unit]
        # left: t >= e is t >= ceil(e). right: t > e is t > floor(e).
        up = periods.side == "left"
        edges, passed = periods.edges, 0
        if per_second != given:
            exact = [int(e) * per_second for e in edges]
            whole = [-(-e // given) if up else e // given for e in exact]
            passed = sum(e < _LEAST for e in whole)
            edges = np.array([e for e in whole if _LEAST <= e <= _MOST], dtype=np.int64)
        (low, low_unit), (high, high_unit) = periods.lower, periods.upper
        first = -(-low * per_second // TICKS[low_unit])
        last = high * per_second // TICKS[high_unit]
        return passed, edges, first, last

    def buckets(vector: Vector) -> Buckets:
        unit = unit_of(vector.values)
        if unit not in ready:
            ready[unit] = prepared(unit)
        passed, edges, first, last = ready[unit]
        if first > _MOST or last < _LEAST:
            return np.zeros(len(vector), dtype=np.int64)
        ticks = vector.values.view(np.int64)
        found = np.searchsorted(edges, ticks, side="right" if periods.side == "left" else "left") + passed
        outside = (ticks < max(first, _LEAST)) | (ticks > min(last, _MOST)) | (found >= len(periods.edges))
        return np.where(outside, 0, found)

    return buckets
