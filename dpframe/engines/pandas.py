"""Exact sums over a pandas frame: primitives in, integers out. Knows nothing of prices or noise.

Rows are handled in blocks that stay in the processor's cache. Within a block every number is a whole number
below 2**31 (values) or 2**30 (their powers) in a double, and a block has at most 2**21 rows, so each partial sum
stays within 2**53 and is exact in any order; across blocks they are added as int64.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.columns import Vector, prepare
from dpframe._expr import Column, Expr
from dpframe._groups.combinations import RestBy, TupleBy
from dpframe._groups.keys import By, KeyBy
from dpframe._groups.unit import Unit
from dpframe._statistics.base import (
    MAGNITUDES,
    Bids,
    Distincts,
    Grid,
    Integers,
    Leaves,
    Magnitudes,
    Persons,
    Powers,
    Primitive,
    Products,
    Rows,
    Spread,
    Trues,
    to_grid,
)
from dpframe._statistics.engine import PEOPLE, PEOPLE_AND_ROWS, RowSlice, Scope, Sketches, Texts
from dpframe.engines.expressions import evaluate, predicate
from dpframe.engines.fingerprints import sketches
from dpframe.engines.groups import arrow_buckets, finder_of, rest_buckets, tuple_buckets
from dpframe.engines.keys import Occurring, coded, together
from dpframe.engines.limits import Bound, at_points, by_size, distinct_counts, within_groups
from dpframe.engines.people import Pairs, People, pairs_of, people_of
from dpframe.engines.sums import (
    add_magnitudes,
    add_products,
    magnitude,
    shape_of,
    steps_of,
    tally,
)

ROWS = Unit()
_BLOCK = 2**16
_LARGEST_BLOCK = 2**21

# The rows that are asked about, their pairs of people and groups, and which of these stay.
Paired = tuple[NDArray[np.bool_], Pairs, NDArray[np.bool_] | None]
Buckets = NDArray[Any]  # 0: no group; g + 1: group g


class _Block(NamedTuple):
    """Some rows: which of them are asked about, their buckets, and room to work in."""

    rows: slice
    mask: NDArray[np.bool_] | None
    buckets: Buckets | None
    size: int  # rows that are asked about
    counts: NDArray[np.int64]  # the same by bucket


class PandasEngine:
    """Reads one frame, which nobody else may write to: the snapshot that a session keeps."""

    def __init__(self, frame: pd.DataFrame, key: bytes = b""):
        self._frame = frame
        self._key = key  # of the hashes by which a person's groups are chosen
        self._people: dict[tuple[int, ...], People] = {}
        self._last: tuple[Any, Paired] | None = None  # of the last question without a filter
        self._columns: dict[int, Vector] = {}
        self._buckets: OrderedDict[By, Buckets] = OrderedDict()

    def __len__(self) -> int:
        return len(self._frame)

    @cached_property
    def _room(self) -> int:
        """The bytes that may be kept for the next question: no more than the frame itself has."""
        return int(self._frame.memory_usage(index=True, deep=False).sum()) + 2**16

    def column(self, leaf: Column) -> Vector:
        """A root column as numpy arrays, normalised once."""
        vector = self._columns.get(leaf.position)
        if vector is None:
            vector = prepare(self._frame.iloc[:, leaf.position], leaf.kind)
            self._columns[leaf.position] = vector
        return vector

    @np.errstate(all="ignore")  # no warning may tell of a value, whatever the caller has set
    def reduce(
        self, query: Scope, primitives: set[Primitive], unit: Unit = ROWS
    ) -> dict[Primitive, Integers]:
        """The primitive sums of each group, as int64; what one person adds to them is within the limits of the unit."""
        return self._reduced(query, primitives, unit)

    def _reduced(self, query: Scope, primitives: set[Primitive], unit: Unit) -> dict[Primitive, Integers]:
        found: dict[Primitive, Integers] = {
            p: self._distinct(p.expr, query, unit) for p in primitives if isinstance(p, Distincts)
        }
        sums = primitives - found.keys()
        if sums:
            found |= self._reduce_people(query, sums, unit) if unit.people else self._sums(query, sums)
        return found

    def _sums(self, query: Scope, primitives: set[Primitive]) -> dict[Primitive, Integers]:
        groups = query.groups
        totals: dict[Primitive, Integers] = {}
        for p in primitives:
            totals[p] = np.zeros(shape_of(p, groups), dtype=np.int64)
        step = self._block_rows(
            max([groups, *(p.points * groups for p in primitives if isinstance(p, Leaves))])
        )
        if query.where is None and all(isinstance(p, Rows) for p in primitives):
            step = _LARGEST_BLOCK  # one pass over small integers, with nothing to keep in the cache
        scratch = np.empty(min(step, len(self._frame)))
        memo: dict[Any, Any] = {}  # what expressions made of whole dictionaries
        for block in self._blocks(query, groups, step, memo):
            for p, total in totals.items():
                if isinstance(p, Rows | Persons | Bids):
                    total += block.counts
                elif isinstance(p, Trues):
                    total += self._trues(p.expr, block, groups, memo)
                elif isinstance(p, Products):
                    one = steps_of(evaluate(p.expr, self.column, block.rows, memo), p.grid, block.mask)
                    two = steps_of(evaluate(p.other, self.column, block.rows, memo), p.other_grid, block.mask)
                    add_products(one, two, block.buckets, total)
                elif isinstance(p, Spread):
                    raise AssertionError("of rows that are people there is nothing to count but themselves")
                elif isinstance(p, Powers | Leaves | Magnitudes):
                    vector = evaluate(p.expr, self.column, block.rows, memo)
                    if isinstance(p, Magnitudes):
                        add_magnitudes(vector, block.mask, total)
                    elif isinstance(p, Leaves):
                        self._add_leaves(vector, p.grid, block, total, scratch)
                    elif p.grid is None:
                        self._add_count(vector, block, total)
                    else:
                        self._add_powers(vector, p.grid, block, total, scratch)
        return totals

    def _reduce_people(
        self, query: Scope, primitives: set[Primitive], unit: Unit
    ) -> dict[Primitive, Integers]:
        memo: dict[Any, Any] = {}
        # Some statistics need no limits; the plan has asked for every limit that is needed.
        limit, most = unit.limited(unit.rows or 1, unit.groups or 1).reach(query.groups if query.by else None)
        hashes = self._whose(unit.people).hashes
        paired: dict[int, Paired] = {}
        found: dict[Primitive, Integers] = {}
        for p in primitives:
            if isinstance(p, Bids | Magnitudes):
                found[p] = self._one_group_of_people(p, query, unit, limit, memo)
                continue
            groups = query.groups if isinstance(p, Spread) else most  # some are about all groups of a person
            if groups not in paired:
                paired[groups] = self._paired(query, unit, groups, memo)
            asked, pairs, kept = paired[groups]
            if isinstance(p, Spread):
                found[p] = by_size(pairs, p.of, p.bins)
                continue
            bound = Bound(pairs, kept, limit, query.groups)
            if isinstance(p, Rows):
                found[p] = bound.rows()
            elif isinstance(p, Persons):
                found[p] = bound.people()
            elif isinstance(p, Trues):
                found[p] = bound.count(self._holds(p.expr, memo)[asked])
            elif isinstance(p, Powers):
                width = 0 if p.grid is None else p.grid.width
                found[p] = bound.powers(self._values(p.expr, p.grid, memo)[asked], p.degree, width)
            elif isinstance(p, Products):
                one, two = self._values(p.expr, p.grid, memo), self._values(p.other, p.other_grid, memo)
                found[p] = bound.products(one[asked], two[asked], p.grid.width, p.other_grid.width)
            elif isinstance(p, Leaves):
                values = self._values(p.expr, p.grid, memo)[asked]
                at = np.where(np.isnan(values), -1, values).astype(np.int64)
                found[p] = at_points(pairs, kept, hashes, limit, query.groups, at, p.points)
        return found

    def _one_group_of_people(
        self, p: Bids | Magnitudes, query: Scope, unit: Unit, limit: int, memo: dict[Any, Any]
    ) -> Integers:
        """Values in bins that are no groups: a person counts for so many in all of them together, or for one."""
        asked, pairs, _ = self._paired(Scope(query.where, ()), unit, 1, memo)
        hashes = self._whose(unit.people).hashes
        at = np.empty(len(self._frame), dtype=np.int64)
        for rows in self._pieces():
            vector = evaluate(p.expr, self.column, rows, memo)
            if isinstance(p, Magnitudes):
                at[rows] = magnitude(vector.values, vector.nulls())
            else:
                null = vector.nulls()
                at[rows] = 0 if null is None else np.where(null, -1, 0)
        if isinstance(p, Magnitudes):
            return at_points(pairs, None, hashes, 1, 1, at[asked], MAGNITUDES, drawn=True)
        buckets = self._grouping(query.by)
        assert buckets is not None
        at += np.where(at < 0, 0, buckets)  # a bid that reaches no price is one all the same
        return at_points(pairs, None, hashes, limit, 1, at[asked], query.groups + 1)[1:, 0]

    @np.errstate(all="ignore")
    def occurring(
        self,
        by: Sequence[Expr],
        where: Expr | None,
        unit: Unit,
        primitives: frozenset[Primitive] | set[Primitive] = PEOPLE,
    ) -> tuple[Texts, dict[Primitive, Integers]]:
        """The combinations of values that count for somebody, as texts, and their primitive sums, as `reduce` has them.

        A person counts in at most so many of them, chosen by hashes of the values themselves. Only people and sums over rows.
        """
        memo: dict[Any, Any] = {}
        columns = [coded(evaluate(e, self.column, slice(0, len(self._frame)), memo)) for e in by]
        if len(columns) == 1 and where is None and not unit.people and primitives <= PEOPLE_AND_ROWS:
            texts: Texts = [(text,) for text in columns[0].texts.tolist()]
            sums: dict[Primitive, Integers] = dict.fromkeys(PEOPLE_AND_ROWS, columns[0].counts())
        else:
            codes, texts, hashes = together(columns)
            found = Occurring(tuple(by), codes + 1, hashes)
            sums = self._reduced(Scope(where, (found,)), {*primitives, Persons()}, unit)
        # A value that is in the frame and counts for nobody is no key: one person may bring any number of those.
        some = np.flatnonzero(sums[Persons()])
        if len(some) == len(texts):
            return texts, sums
        return [texts[i] for i in some.tolist()], {p: one[..., some] for p, one in sums.items()}

    def slices(self, exprs: Sequence[Expr], where: Expr | None, unit: Unit) -> Iterator[RowSlice]:
        """All rows, slice by slice; what is made of whole dictionaries is made once."""
        memo: dict[Any, Any] = {}
        people = self._whose(unit.people).codes if unit.people else None
        for rows in self._pieces():
            mask = None if where is None else predicate(where, self.column, rows, memo)
            vectors = [evaluate(e, self.column, rows, memo) for e in exprs]
            yield RowSlice(vectors, mask, None if people is None else people[rows], len(self))

    def people(self, unit: Unit) -> int:
        """The number of people who have a row: counted one by one, and not by how they are numbered."""
        codes = self._whose(unit.people).codes
        return len(np.unique(codes[codes >= 0]))

    def sketches(self, unit: Unit, secret: bytes) -> Sketches:
        """What a ledger knows these people and this table again by."""
        return sketches(self._frame, [c.position for c in unit.people], secret)

    def close(self) -> None:
        """Lets go of the frame, and of all that was made of it."""
        self._frame = self._frame.iloc[:0]
        self._last = None
        for kept in (self._people, self._columns, self._buckets):
            kept.clear()

    # Rows and people ----------------------------------------------------------------------------------------

    def _paired(self, query: Scope, unit: Unit, most: int, memo: dict[Any, Any]) -> Paired:
        """The rows that are asked about, their pairs, and which of these stay; kept for the next question without a filter."""
        known = (unit.people, query.by, most)
        if query.where is None and self._last is not None and self._last[0] == known:
            return self._last[1]
        people, buckets = self._whose(unit.people), self._grouping(query.by)
        asked = people.codes >= 0
        if buckets is not None:
            asked &= buckets > 0
        if query.where is not None:
            asked &= self._holds(query.where, memo)
        group = None if buckets is None else buckets[asked].astype(np.int64) - 1
        pairs = pairs_of(people.codes[asked], group, people.size, query.groups)
        found = query.by[0] if query.by else None
        labels = found.hashes if isinstance(found, Occurring) else None
        kept = within_groups(pairs, people.hashes, most, self._key, labels) if query.by else None
        paired = asked, pairs, kept
        size = asked.nbytes + sum(a.nbytes for a in pairs if isinstance(a, np.ndarray))
        if (
            query.where is None and labels is None and size <= self._room
        ):  # never more than the frame's own size
            self._last = known, paired
        return paired

    def _distinct(self, expr: Expr, query: Scope, unit: Unit) -> Integers:
        memo: dict[Any, Any] = {}
        everything = slice(0, len(self._frame))  # one dictionary for all rows
        values = evaluate(expr, self.column, everything, memo)
        asked = None if query.where is None else self._holds(query.where, memo)
        people = self._whose(unit.people) if unit.people else None
        buckets = self._grouping(query.by)
        return distinct_counts(values, asked, buckets, query.groups, people, unit.groups or 0, self._key)

    def _values(self, expr: Expr, grid: Grid | None, memo: dict[Any, Any]) -> NDArray[np.float64]:
        """A value for each row of the frame, on its grid from the lower bound; NaN for null, and 0 where no grid is given."""
        values = np.empty(len(self._frame))
        for rows in self._pieces():
            vector = evaluate(expr, self.column, rows, memo)
            null = vector.nulls()
            if grid is None:
                values[rows] = 0.0
            else:
                np.copyto(values[rows], vector.values, casting="unsafe")
                to_grid(values[rows], values[rows], grid)
            if null is not None:
                values[rows][null] = np.nan
        return values

    def _holds(self, condition: Expr, memo: dict[Any, Any]) -> NDArray[np.bool_]:
        true = np.empty(len(self._frame), dtype=bool)
        for rows in self._pieces():
            true[rows] = predicate(condition, self.column, rows, memo)
        return true

    def _whose(self, columns: tuple[Column, ...]) -> People:
        places = tuple(c.position for c in columns)
        if places not in self._people:
            self._people = {places: people_of([self.column(c) for c in columns], self._key)}
        return self._people[places]

    def _pieces(self) -> Iterator[slice]:
        n = len(self._frame)
        return (slice(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK))

    def _block_rows(self, cells: int) -> int:
        return min(_LARGEST_BLOCK, max(_BLOCK, 4 * cells))

    def _blocks(self, query: Scope, groups: int, step: int, memo: dict[Any, Any]) -> Iterator[_Block]:
        n = len(self._frame)
        buckets = self._grouping(query.by)
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            mask = None if query.where is None else predicate(query.where, self.column, rows, memo)
            size = rows.stop - rows.start if mask is None else int(np.count_nonzero(mask))
            if buckets is None:
                yield _Block(rows, mask, None, size, np.array([size]))
                continue
            some = buckets[rows] if mask is None else buckets[rows][mask]
            yield _Block(rows, mask, some, size, tally(some, groups))

    def _trues(self, expr: Expr, block: _Block, groups: int, memo: dict[Any, Any]) -> Integers:
        true = predicate(expr, self.column, block.rows, memo)
        if block.mask is not None:
            true = true[block.mask]
        if block.buckets is None:
            return np.array([np.count_nonzero(true)])
        return tally(block.buckets[true], groups)

    def _steps(
        self, vector: Vector, grid: Grid, block: _Block, groups: int, scratch: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], Buckets | None, Integers, float]:
        """Values that are not null as steps above the lower bound, their buckets, how many in each, and their sum."""
        values, null = vector.values, vector.null
        if block.mask is not None:
            values = values[block.mask]
            null = null[block.mask] if null is not None else None
        a = scratch[: len(values)]
        if values.dtype != np.float64:
            np.copyto(a, values, casting="unsafe")
            values = a
        to_grid(values, a, grid)
        top = float(a.sum())
        buckets, counts = block.buckets, block.counts
        if null is not None or top != top:  # a NaN anywhere makes the sum one
            valid = ~np.isnan(a) if null is None else ~(null | np.isnan(a))
            a = a[valid]
            if buckets is not None:
                buckets = buckets[valid]
                counts = tally(buckets, groups)
            else:
                counts, top = np.array([len(a)]), float(a.sum())
        return a, buckets, counts, top

    def _add_leaves(
        self, vector: Vector, grid: Grid, block: _Block, total: Integers, scratch: NDArray[np.float64]
    ) -> None:
        points, groups = total.shape
        a, buckets, _, _ = self._steps(vector, grid, block, groups, scratch)
        places = a.astype(np.intp)
        if buckets is None:
            total[:, 0] += np.bincount(places, minlength=points)
            return
        places *= groups + 1  # one more for the rows of no group
        places += buckets
        counts = np.bincount(places, minlength=points * (groups + 1))
        total += counts.reshape(points, groups + 1)[:, 1:]

    def _add_powers(
        self, vector: Vector, grid: Grid, block: _Block, total: Integers, scratch: NDArray[np.float64]
    ) -> None:
        a, buckets, counts, top = self._steps(vector, grid, block, total.shape[1], scratch)
        total[0] += counts
        if buckets is None:
            total[1] += int(top)
            power = a
            for degree in range(2, len(total)):
                total[degree] += int(power @ a)
                power = power * a if degree + 1 < len(total) else a
            return
        buckets, power = buckets.astype(np.intp), a
        for degree in range(1, len(total)):
            sums = np.bincount(buckets, weights=power, minlength=total.shape[1] + 1)[1:]
            total[degree] += sums.astype(np.int64)
            power = power * a if degree + 1 < len(total) else a

    def _add_count(self, vector: Vector, block: _Block, total: Integers) -> None:
        null = vector.nulls()
        if null is None:
            total[0] += block.counts
            return
        valid = ~null if block.mask is None else ~null[block.mask]
        if block.buckets is None:
            total[0] += int(np.count_nonzero(valid))
        else:
            total[0] += tally(block.buckets[valid], total.shape[1])

    # Groups -------------------------------------------------------------------------------------------------

    def _grouping(self, by: tuple[By, ...]) -> Buckets | None:
        """The bucket of each row: 0, or 1 + its place among all combinations of the groups."""
        if not by:
            return None
        if isinstance(by[0], Occurring):
            return by[0].buckets
        combined = self._level(by[0])
        for level in by[1:]:
            inner, size = self._level(level), len(level.index)
            wide = (combined.astype(np.int64) - 1) * size + inner
            combined = np.where((combined == 0) | (inner == 0), 0, wide)
        return combined

    def _level(self, by: By) -> Buckets:
        known = self._buckets.get(by)
        if known is not None:
            self._buckets.move_to_end(by)
            return known
        found = self._find(by)
        self._buckets[by] = found
        # Never more than the frame's own size, the oldest first.
        while len(self._buckets) > 1 and sum(b.nbytes for b in self._buckets.values()) > self._room:
            self._buckets.popitem(last=False)
        return found

    def _find(self, by: By) -> Buckets:
        if isinstance(by, TupleBy):
            return tuple_buckets([self._level(level) for level in by.levels], by.tuples)
        if isinstance(by, RestBy):
            return rest_buckets(self._level(by.listed), self._nulls(by.expr), len(by.index))
        strings = self._arrow_strings(by.expr) if isinstance(by, KeyBy) else None
        if isinstance(by, KeyBy) and strings is not None:
            return arrow_buckets(by.keys, strings)
        expr, one = finder_of(by)
        n = len(self._frame)
        small = np.min_scalar_type(len(by.index))
        found = np.empty(n, dtype=small if small != np.uint64 else np.int64)
        memo: dict[Any, Any] = {}
        for start in range(0, n, _BLOCK):
            rows = slice(start, min(start + _BLOCK, n))
            found[rows] = one(evaluate(expr, self.column, rows, memo))
        return found

    def _nulls(self, expr: Expr) -> NDArray[np.bool_]:
        strings = self._arrow_strings(expr)
        if strings is not None:
            return np.asarray(strings.is_null())
        memo: dict[Any, Any] = {}
        null = np.zeros(len(self._frame), dtype=bool)
        for rows in self._pieces():
            some = evaluate(expr, self.column, rows, memo).nulls()
            null[rows] = False if some is None else some
        return null

    def _arrow_strings(self, expr: Expr) -> Any:
        """The Arrow array behind a column of strings that nobody has numbered yet; None for others."""
        if not isinstance(expr, Column) or expr.kind != "text" or expr.position in self._columns:
            return None
        array = self._frame.iloc[:, expr.position].array
        known = isinstance(array.dtype, pd.StringDtype) and array.dtype.storage == "pyarrow"
        return array.__arrow_array__() if known else None
