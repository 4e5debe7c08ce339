"""Which group a row belongs to: a function of its own cells and of the public list of groups.

Keys and bins go by one column; listed combinations, the rest of a list, and periods are made of
more than one of these.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._cells.codec import Buckets, Finder, find_in_table, unit_of
from dpframe._cells.columns import Vector
from dpframe._cells.threads import shares, side_by_side
from dpframe._expr import Expr
from dpframe._groups.combinations import RestBy, TupleBy, Tuples
from dpframe._groups.keys import BinBy, By, KeyBy, Keys, groups_of
from dpframe._groups.periods import TICKS, Periods, TimeBy
from dpframe._sizes import SIZES
from dpframe._statistics.base import Integers
from dpframe._types import Array
from dpframe.engines.keys import Occurring
from dpframe.engines.reading import FrameReader, QuestionReader

_LEAST, _MOST = np.iinfo(np.int64).min + 1, np.iinfo(np.int64).max  # the least of all is no time


@dataclass
class GroupFinder:
    """The groups of the rows of one frame: the bucket of each row, and the rows of each group.

    Both are kept for later questions, within the room that the frame's reader allows. The oldest
    are forgotten first.
    """

    _table: FrameReader
    _buckets: OrderedDict[By, Buckets] = field(default_factory=OrderedDict)
    _counts: dict[By, Integers] = field(default_factory=dict)  # of groupings with known buckets

    def find_buckets(self, by: tuple[By, ...]) -> Buckets | None:
        """Return one more than the group of each row, 0 for no group.

        The result is None if nothing groups the rows. With several columns in ``by``, a group is a
        combination of theirs.
        """
        if not by:
            return None
        if isinstance(by[0], Occurring):
            return by[0].buckets
        combined = self.find_level(by[0])
        for level in by[1:]:
            inner, size = self.find_level(level), len(level.index)
            wide = (combined.astype(np.int64) - 1) * size + inner
            combined = np.where((combined == 0) | (inner == 0), 0, wide)
        return combined

    def count_rows(self, by: tuple[By, ...], buckets: Buckets) -> Integers:
        """Return how many rows of the whole frame each group has, kept for later questions.

        ``buckets`` has one more than the group of each row, 0 for no group.
        """
        known = self._counts.get(by[0]) if len(by) == 1 else None
        if known is None:
            known = _count_in_threads(buckets, groups_of(by))
            if len(by) == 1 and by[0] in self._buckets and known.nbytes <= buckets.nbytes:
                self._counts[by[0]] = known
        return known

    def find_level(self, by: By) -> Buckets:
        """Return one more than the group of each row in one grouping column, 0 for no group.

        Found numbers are kept for later questions. The oldest are forgotten when room runs out.
        """
        known = self._buckets.get(by)
        if known is not None:
            self._buckets.move_to_end(by)
            return known
        found = self._make_level(by)
        self._buckets[by] = found
        while (
            len(self._buckets) > 1
            and sum(b.nbytes for b in self._buckets.values()) > self._table.room
        ):
            self._counts.pop(self._buckets.popitem(last=False)[0], None)
        return found

    def _make_level(self, by: By) -> Buckets:
        """Compute one more than the group of each row in one grouping column, 0 for no group.

        This is called for a grouping whose rows were not looked up before.
        """
        if isinstance(by, TupleBy):
            return tuple_buckets([self.find_level(level) for level in by.levels], by.tuples)
        read = QuestionReader(self._table)
        if isinstance(by, RestBy):
            return rest_buckets(self.find_level(by.listed), read.find_nulls(by.expr), len(by.index))
        strings = self._table.find_strings(by.expr) if isinstance(by, KeyBy) else None
        if isinstance(by, KeyBy) and strings is not None:
            return arrow_buckets(by.keys, strings)
        expr, find = finder_of(by)
        small = np.min_scalar_type(len(by.index))
        found = np.empty(self._table.rows, dtype=small if small != np.uint64 else np.int64)
        read.read_columns([expr])

        def fill(share: slice) -> None:
            for rows in self._table.blocks(share):
                found[rows] = find(read.evaluate(expr, rows))

        side_by_side(fill, shares(len(found)))
        return found

    def clear(self) -> None:
        """Forget all groups."""
        self._buckets.clear()
        self._counts.clear()


def _count_in_threads(buckets: Buckets, groups: int) -> Integers:
    """Return how many rows each group has, counted by several threads where that pays.

    ``buckets`` has one more than the group of each row, 0 for no group. ``groups`` is the number of
    groups.
    """

    def count(share: slice) -> Integers:
        """Return how many rows of one share each group has, counted block by block."""
        found = np.zeros(groups, dtype=np.int64)
        for start in range(share.start, share.stop, SIZES.sum_block):
            found += count_buckets(
                buckets[start : min(start + SIZES.sum_block, share.stop)], groups
            )
        return found

    rows = len(buckets)
    each = shares(rows) if groups <= SIZES.thread_sums else [slice(0, rows)]
    return np.asarray(np.sum(side_by_side(count, each), axis=0))


def count_buckets(buckets: Buckets, groups: int) -> Integers:
    """Return how many rows each group has.

    ``buckets`` has one more than the group of each row, 0 for no group. ``groups`` is the number of
    groups.
    """
    if buckets.dtype != np.uint8 or len(buckets) < SIZES.pair_block:
        return np.bincount(buckets, minlength=groups + 1)[1:]
    # Two neighbours are read as one number of 16 bits. So there are half as many numbers to count,
    # and each pair counts for both of its buckets.
    even, pairs = len(buckets) & ~1, np.zeros(2**16, dtype=np.int64)
    step = max(2, SIZES.block & ~1)
    for start in range(0, even, step):
        some = buckets[start : min(start + step, even)].view(np.uint16)
        np.add.at(pairs, some.astype(np.intp), 1)
    counts = pairs.reshape(256, 256).sum(axis=0) + pairs.reshape(256, 256).sum(axis=1)
    for odd in buckets[even:]:
        counts[odd] += 1
    return np.asarray(counts[1 : groups + 1])


# Keys and bins ---------------------------------------------------------------------------------------


def arrow_buckets(keys: Keys, strings: Any) -> Buckets:
    """Return one more than the listed key that each string equals, 0 for no key.

    ``strings`` is an Arrow array. Each string is looked up among the keys, in threads. That takes
    two thirds of the time of numbering all strings first (`Keys.finder`, which has the same
    result).
    """
    pa: Any = import_module("pyarrow")
    pc: Any = import_module("pyarrow.compute")
    proper = [k for i, k in enumerate(keys.index) if i != keys.null]
    places = np.array([i + 1 for i in range(len(keys)) if i != keys.null] + [0])
    null = 0 if keys.null is None else keys.null + 1
    wanted = pa.array(proper, type=strings.type)
    buckets = np.empty(len(strings), dtype=np.min_scalar_type(len(keys)))
    table = places.astype(buckets.dtype)

    def match(start: int) -> None:
        """Look up one block of strings from ``start`` on, and write its numbers to the result."""
        piece = strings.slice(start, SIZES.key_block)
        at = pc.fill_null(pc.index_in(piece, value_set=wanted), len(proper))
        np.take(table, np.asarray(at), out=buckets[start : start + len(piece)], mode="clip")
        if null and piece.null_count:
            buckets[start : start + len(piece)][np.asarray(piece.is_null())] = null

    if len(strings):
        side_by_side(match, range(0, len(strings), SIZES.key_block))
    return buckets


def bin_buckets(edges: tuple[float, ...]) -> Finder:
    """Return a function from numbers to one more than the bin between two ``edges`` of each number.

    Bins are left-closed, and the last one is closed. 0 is for numbers outside and for nulls.
    """
    breaks = np.asarray(edges, dtype=np.float64)
    table = _bin_table(breaks)
    in_order = table is not None and np.array_equal(table[:-2], np.arange(len(table) - 2))
    error = _bound_unevenness(breaks)

    def buckets(vector: Vector) -> Buckets:
        """Return one more than the bin of each number in a column, 0 for no bin and for null.

        Whole numbers are looked up in ``table``, if the edges are near enough for one. If each is a
        bin of its own (``in_order``), a subtraction will do. Doubles are compared with ``breaks``.
        """
        values = vector.values.view(np.int8) if vector.values.dtype == bool else vector.values
        if values.dtype.kind in "iu" and table is not None:
            low = int(np.ceil(breaks[0]))
            found = _subtract_first(values, low, table) if in_order else None
            if found is None:
                found = find_in_table(values, low, table)
        else:
            found = _find_bins(values.astype(np.float64, copy=False), breaks, error)
        missing = vector.null
        return found if missing is None else np.where(missing, 0, found)

    return buckets


def _bin_table(breaks: NDArray[np.float64]) -> Buckets | None:
    """Return one more than the bin of each whole number between the edges, as a table.

    ``breaks`` has the edges of the bins. The result is None if too many numbers lie between them.
    """
    low, high = breaks[0], breaks[-1]
    if (
        not (np.isfinite(low) and np.isfinite(high))
        or max(abs(low), abs(high)) > 2**52
        or high - low >= SIZES.table_numbers
    ):
        return None
    numbers = np.arange(np.ceil(low), np.floor(high) + 1)
    table = np.zeros(len(numbers) + 2, dtype=np.min_scalar_type(len(breaks)))
    table[1:-1] = _find_bins(numbers, breaks, None)
    return table


def _subtract_first(values: Array, low: int, table: Buckets) -> Buckets | None:
    """Return one more than the bin of each whole number, where each number is a bin of its own.

    A subtraction finds the bin. ``low`` is the least number that is a bin. ``table`` is that of
    `_bin_table`: it tells how many bins there are, and has the dtype of the result. The result is
    None if a number is in no bin.
    """
    first = low - 1
    unsigned = 0 <= low <= 1 and values.itemsize >= 4
    # Without its sign a number below 0 is beyond all bins, of which there are fewer than 2**20.
    if unsigned:
        values = values.view(f"u{values.itemsize}")
    if len(values) and (
        int(values.max()) - first >= len(table) - 2 or (not unsigned and int(values.min()) < first)
    ):
        return None
    found = values.astype(table.dtype)  # the low bits of numbers whose difference has no others
    found -= table.dtype.type(first % 2 ** (8 * table.itemsize))
    return found


def _compute_positions(
    values: NDArray[np.float64], breaks: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return one more than where each value lies between the edges, as if these were evenly spaced.

    ``breaks`` has the edges of the bins. With even edges the whole part is one more than the bin. A
    value below the edges is 0, and NaN stays NaN.
    """
    bins = len(breaks) - 1
    with np.errstate(all="ignore"):
        found = values - breaks[0]
        found *= bins / (breaks[-1] - breaks[0])
        found += 1.0
        return np.asarray(np.clip(found, 0.0, bins + 1.0, out=found))


def _bound_unevenness(breaks: NDArray[np.float64]) -> float | None:
    """Return how far at most an edge is from where it would be between evenly spaced edges.

    ``breaks`` has the edges of the bins. The unit is the width of a bin. The result is None if the
    edges are too uneven to find a bin by arithmetic.
    """
    with np.errstate(all="ignore"):
        error = float(
            np.abs(_compute_positions(breaks, breaks) - np.arange(1, len(breaks) + 1)).max()
        )
    return error + 2.0**-30 if error < 0.125 else None


def _find_bins(
    values: NDArray[np.float64], breaks: NDArray[np.float64], error: float | None
) -> Buckets:
    """Return one more than the bin of each number, 0 for a number in no bin and for NaN.

    ``breaks`` has the edges of the bins. ``error`` bounds how unevenly these are spaced, as
    `_bound_unevenness` does; None means that bisection is needed.
    """
    bins = len(breaks) - 1
    if error is not None:
        return _find_bins_by_position(values, breaks, error)
    buckets = np.asarray(
        np.searchsorted(breaks, values, side="right")
    )  # NaN sorts after everything
    buckets[buckets > bins] = 0
    buckets[values == breaks[-1]] = bins
    return buckets


def _find_bins_by_position(
    values: NDArray[np.float64], breaks: NDArray[np.float64], error: float
) -> Buckets:
    """Return one more than the bin of each number between evenly spaced edges, 0 for no bin.

    The position decides, and near an edge the edges themselves. A position is made by a
    subtraction, a multiplication and an addition. Each of these, rounding included, never makes the
    larger of two numbers the smaller. So a value between two edges has a position between theirs.
    Positions of edges are within `error` of whole numbers. A position that is further than that
    from every whole number lies in the bin of its value.
    """
    bins = len(breaks) - 1
    placed = _compute_positions(values, breaks)
    with np.errstate(all="ignore"):  # of a NaN there is no whole number
        found = placed.astype(np.min_scalar_type(bins + 1))
    edge = np.rint(placed)
    np.abs(np.subtract(placed, edge, out=placed), out=placed)
    near = np.flatnonzero(~(placed > error))  # also of each NaN
    if len(near):
        some, own = values[near], edge[near]
        own[some != some] = 0.0
        at = own.astype(np.intp)
        padded = np.concatenate([[-np.inf], breaks, [np.inf]])
        at -= some < padded[at]
        at[(at > bins) | (some != some)] = 0
        at[some == breaks[-1]] = bins
        found[near] = at
    return found


# Combinations, the rest, periods -----------------------------------------------------------------------


def finder_of(by: By) -> tuple[Expr, Finder]:
    """Return the expression that a grouping looks at, and a function from its values to groups.

    The function returns one more than the group of each value, 0 for no group.
    """
    if isinstance(by, KeyBy):
        return by.expr, by.keys.finder()
    if isinstance(by, TimeBy):
        return by.expr, time_buckets(by.periods)
    assert isinstance(by, BinBy)
    return by.expr, bin_buckets(by.edges)


def tuple_buckets(levels: Sequence[Buckets], tuples: Tuples) -> Buckets:
    """Return one more than the listed combination that each row has, 0 for no listed one.

    ``levels`` has, for each grouping column, one more than the key of each row. ``tuples`` lists
    the combinations of keys. Columns are folded one by one into codes of the listed beginnings of
    combinations. So no table is larger than the list. No code is larger than the list times the
    keys of one column: below 2**53.
    """
    listed = tuples.places[:, 0] + 1
    steps: list[tuple[int, NDArray[np.int64], Array | None]] = []
    for column in range(1, len(levels)):
        size = len(tuples.keys[column]) + 1
        known, codes = np.unique(listed * size + tuples.places[:, column] + 1, return_inverse=True)
        steps.append((size, known, _table(known)))
        listed = codes.astype(np.int64) + 1
    places = np.zeros(len(tuples) + 1, dtype=np.min_scalar_type(len(tuples)))
    places[listed] = np.arange(1, len(tuples) + 1)
    found = np.empty(len(levels[0]), dtype=places.dtype)
    for start in range(0, len(found), SIZES.key_block):
        rows = slice(start, start + SIZES.key_block)
        code = levels[0][rows].astype(np.int64)
        for level, (size, known, table) in zip(levels[1:], steps, strict=True):
            code = _find_codes(code * size + level[rows], known, table)
        found[rows] = places[code]
    return found


def _table(known: NDArray[np.int64]) -> Array | None:
    """Return a table with one more than the place of each known code, by the code itself.

    Other codes have 0, and so has its last entry. The result is None where the table would be
    large.
    """
    if int(known[-1]) >= SIZES.table_codes:
        return None
    table = np.zeros(int(known[-1]) + 2, dtype=np.int64)
    table[known] = np.arange(1, len(known) + 1)
    return table


def _find_codes(
    code: NDArray[np.int64], known: NDArray[np.int64], table: Array | None
) -> NDArray[np.int64]:
    """Return one more than the place of each code among the ``known`` ones, 0 for other codes.

    ``table`` has these numbers by code; if it is None, the sorted codes are searched.
    """
    if table is not None:
        return np.take(table, code, mode="clip")
    at = np.minimum(np.searchsorted(known, code), len(known) - 1)
    return np.where(known[at] == code, at + 1, 0)


def rest_buckets(listed: Buckets, null: NDArray[np.bool_], groups: int) -> Buckets:
    """Return the group of each row where rows in no listed group form one more group, the last.

    ``listed`` has one more than the listed group of each row, 0 for none. Rows where ``null`` is
    True stay in no group. ``groups`` is the number of groups with the last one.
    """
    buckets = listed.astype(np.min_scalar_type(groups))
    buckets[(listed == 0) & ~null] = groups
    return buckets


def time_buckets(periods: Periods) -> Finder:
    """Return a function from times to one more than the period that each falls in, 0 for no period.

    Times are compared in whole ticks of the column's resolution, so the result is exact.
    """
    ready: dict[str, tuple[int, NDArray[np.int64], int, int]] = {}

    def prepare_for_unit(unit: str) -> tuple[int, NDArray[np.int64], int, int]:
        """Return the edges of the periods in ticks of a unit such as "ns".

        The result has four parts: how many edges lie before the range of 64 bits, the edges within
        it, and the first and the last tick that the declared range of times has.
        """
        per_second, given = TICKS[unit], TICKS[periods.unit]
        # Edges are rounded to ticks. With side "left", t >= e is t >= ceil(e). With "right", t > e
        # is t > floor(e).
        round_up = periods.side == "left"
        edges, passed = periods.edges, 0
        if per_second != given:
            exact = [int(e) * per_second for e in edges]
            whole = [-(-e // given) if round_up else e // given for e in exact]
            passed = sum(e < _LEAST for e in whole)
            edges = np.array([e for e in whole if _LEAST <= e <= _MOST], dtype=np.int64)
        (low, low_unit), (high, high_unit) = periods.lower, periods.upper
        first = -(-low * per_second // TICKS[low_unit])
        last = high * per_second // TICKS[high_unit]
        return passed, edges, first, last

    def buckets(vector: Vector) -> Buckets:
        """Return one more than the period that each time of a column falls in, 0 for no period.

        ``passed`` edges lie before all times, so they are added to the number of edges that a
        search finds before a time.
        """
        unit = unit_of(vector.values)
        if unit not in ready:
            ready[unit] = prepare_for_unit(unit)
        passed, edges, first, last = ready[unit]
        if first > _MOST or last < _LEAST:
            return np.zeros(len(vector), dtype=np.int64)
        ticks = vector.values.view(np.int64)
        found = (
            np.searchsorted(edges, ticks, side="right" if periods.side == "left" else "left")
            + passed
        )
        outside = (
            (ticks < max(first, _LEAST))
            | (ticks > min(last, _MOST))
            | (found >= len(periods.edges))
        )
        return np.where(outside, 0, found)

    return buckets
