"""Exact sums over a pandas frame: primitives in, integers out. Knows nothing of prices or noise.

Rows are handled in blocks that stay in the processor's cache. Within a block every number is a
whole number below 2**31 (values) or 2**30 (their powers) in a double, and a block has at most 2**21
rows, so each partial sum stays within 2**53 and is exact in any order; across blocks they are added
as int64.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells import kernels, threads
from dpframe._cells.columns import Vector, prepare, repeated
from dpframe._cells.threads import side_by_side
from dpframe._expr import Column, Expr, Within, looks_within
from dpframe._groups.combinations import RestBy, TupleBy
from dpframe._groups.keys import By, KeyBy, groups_of
from dpframe._groups.unit import Unit
from dpframe._sizes import SIZES
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
from dpframe._statistics.engine import PEOPLE, RowSlice, Scope, Sketches, Texts
from dpframe.engines import compiled
from dpframe.engines.blocks import (
    Buckets,
    add_leaves,
    add_magnitudes,
    add_products,
    add_values,
    magnitude,
    shape_of,
)
from dpframe.engines.expressions import Memo, Readable, evaluate, predicate
from dpframe.engines.fingerprints import sketches
from dpframe.engines.groups import arrow_buckets, finder_of, rest_buckets, tuple_buckets
from dpframe.engines.keys import Coded, Occurring, coded, together
from dpframe.engines.limits import Bound, at_points, by_size, distinct_pairs, within_groups
from dpframe.engines.people import Pairs, People, pairs_of, people_of, widened
from dpframe.engines.within.cache import WithinCache

ROWS = Unit()

# The rows that are asked about, None for all; their pairs of people and groups, and which of these
# stay.
Paired = tuple[NDArray[np.bool_] | None, Pairs, NDArray[np.bool_] | None]
Floats = NDArray[np.float64]


class PandasEngine:
    """Reads one frame, which nobody else may write to: the snapshot that a session keeps."""

    def __init__(self, frame: pd.DataFrame, key: bytes = b""):
        self._frame = frame
        self._key = key  # of the hashes by which a person's groups are chosen
        self._people: dict[tuple[int, ...], People] = {}
        self._last: tuple[Any, Paired] | None = None  # of the last question without a filter
        self._columns: dict[int, Vector] = {}
        self._buckets: OrderedDict[By, Buckets] = OrderedDict()
        self._keys: OrderedDict[Expr, Coded] = OrderedDict()
        self._counts: dict[
            By, Integers
        ] = {}  # of the rows in each group, where the buckets are kept

    def __len__(self) -> int:
        return len(self._frame)

    @cached_property
    def _room(self) -> int:
        """The bytes that may be kept for the next question: no more than the frame itself has."""
        return int(self._frame.memory_usage(index=True, deep=False).sum()) + 2**16

    @cached_property
    def _within(self) -> WithinCache:
        """What was made of each person's rows."""
        return WithinCache(
            self.column, lambda people: self._whose(people).codes, lambda: self._room
        )

    @overload
    def column(self, leaf: Column) -> Vector: ...
    @overload
    def column(self, leaf: Column | Within, rows: slice) -> Vector: ...
    @overload
    def column(self, leaf: Column | Within) -> Readable: ...
    def column(self, leaf: Column | Within, rows: slice | None = None) -> Readable:
        """Some rows of a root column, or all, as numpy arrays that are normalised once; or what
        each person's rows make."""
        if isinstance(leaf, Within):
            within = self._within.compute(leaf)
            return within if rows is None else within.rows(rows)
        if leaf.position not in self._columns:
            self._columns[leaf.position] = prepare(self._frame.iloc[:, leaf.position], leaf.kind)
        vector = self._columns[leaf.position]
        if rows is None or rows.stop - rows.start == len(vector.values):
            return vector
        return vector.rows(rows)

    def _vector(self, expr: Expr, rows: slice, memo: dict[Any, Any]) -> Vector:
        """The value of an expression in each of these rows."""
        if isinstance(expr, Column):  # as most are: nothing is to be worked out
            return self.column(expr, rows)
        return evaluate(expr, self.column, rows, memo)

    @np.errstate(all="ignore")  # no warning may tell of a value, whatever the caller has set
    def reduce(
        self, query: Scope, primitives: set[Primitive], unit: Unit = ROWS
    ) -> dict[Primitive, Integers]:
        """The primitive sums of each group, as int64; what one person adds to them is within the
        limits of the unit."""
        if "_within" in vars(self):
            self._within.trim()
        found: dict[Primitive, Integers] = {
            p: self._distinct(p.expr, query, unit) for p in primitives if isinstance(p, Distincts)
        }
        if sums := primitives - found.keys():
            found |= (
                self._reduce_people(query, sums, unit) if unit.people else self._sums(query, sums)
            )
        return found

    def _sums(
        self, query: Scope, primitives: set[Primitive], share: slice | None = None
    ) -> dict[Primitive, Integers]:
        """The sums of a share of the rows, without counts that all rows together have; of all rows,
        if no share is given."""
        where, n, groups, buckets = query.where, len(self._frame), 1, None
        if query.by:
            groups, buckets = groups_of(query.by), self._grouping(query.by)
        if (
            share is None
            and n >= 2 * SIZES.thread_rows
            and (split := self._in_shares(query, primitives))
        ):
            return split
        # Of the rows that are asked about, by group: known of the whole frame, or added up block by
        # block.
        if where is not None or share is not None:
            counts = np.zeros(groups, np.int64)
        else:
            counts = np.array([n]) if buckets is None else self._counted(query.by, buckets, groups)
        cells, totals = groups, dict[Primitive, Integers]()
        for p in primitives:
            if isinstance(p, Powers):
                totals[p] = np.zeros((p.degree + 1, groups), dtype=np.int64)
            elif not isinstance(p, Rows | Persons | Bids):
                totals[p] = np.zeros(shape_of(p, groups), dtype=np.int64)
                cells = max(cells, p.points * groups) if isinstance(p, Leaves) else cells
        step = min(SIZES.sum_block, max(SIZES.block, 4 * cells))
        first, last = (0, n) if share is None else (share.start, share.stop)
        last = last if totals or where is not None else first
        scratch = np.empty(min(step, last - first))
        by_kernel = n >= SIZES.kernel_rows and kernels.at_hand(n)
        memo: dict[Any, Any] = {}  # what expressions made of whole dictionaries
        for start in range(first, last, step):
            rows, mask = slice(start, min(start + step, last)), None
            some = None if buckets is None else buckets[rows]
            if where is not None:
                mask = predicate(where, self.column, rows, memo)
                some = None if some is None else some[mask]
                counts += np.count_nonzero(mask) if some is None else tally(some, groups)
            for p, total in totals.items():
                if isinstance(p, Powers | Leaves | Magnitudes):
                    vector = self._vector(p.expr, rows, memo)
                    if isinstance(p, Magnitudes):
                        add_magnitudes(vector, mask, total)
                    elif isinstance(p, Leaves):
                        add_leaves(steps_of(vector, p.grid, mask, scratch), some, total)
                    elif p.grid is not None:
                        if by_kernel and some is not None and mask is None and vector.null is None:
                            add_values(vector.values, some, p.grid, total)
                        else:
                            add_powers(steps_of(vector, p.grid, mask, scratch), some, total)
                    else:
                        null = vector.nulls()
                        if null is not None:
                            null = null if mask is None else null[mask]
                            total[0] -= (
                                np.count_nonzero(null)
                                if some is None
                                else tally(some[null], groups)
                            )
                elif isinstance(p, Trues):
                    true = predicate(p.expr, self.column, rows, memo)
                    true = true if mask is None else true[mask]
                    total += np.count_nonzero(true) if some is None else tally(some[true], groups)
                elif isinstance(p, Products):
                    one = steps_of(self._vector(p.expr, rows, memo), p.grid, mask, scratch)
                    two = steps_of(
                        self._vector(p.other, rows, memo), p.other_grid, mask, np.empty(len(one))
                    )
                    add_products(one, two, some, total)
                elif isinstance(p, Spread):
                    raise AssertionError(
                        "of rows that are people there is nothing to count but themselves"
                    )
        for p in primitives:
            if p not in totals:
                totals[p] = counts.copy()
            elif isinstance(p, Powers):
                totals[p][0] += counts  # of which those without a value have been taken
        return totals

    def _in_shares(
        self, query: Scope, primitives: set[Primitive]
    ) -> dict[Primitive, Integers] | None:
        """The same sums in threads; None where no row is looked at, or sums are many, or look at
        all rows of a person."""
        sums = [p for p in primitives if not isinstance(p, Rows | Persons | Bids)]
        largest = max(
            [query.groups, *(p.points * query.groups for p in sums if isinstance(p, Leaves))]
        )
        named = [query.where, *(getattr(p, name, None) for p in sums for name in ("expr", "other"))]
        exprs = [expr for expr in named if expr is not None]
        if not (sums or exprs) or largest > SIZES.thread_sums or any(map(looks_within, exprs)):
            return None
        for leaf in {leaf for expr in exprs for leaf in expr.columns()}:
            self.column(leaf)  # once, before there are threads
        buckets = self._grouping(
            query.by
        )  # here: of many threads one would let go of what another looks at
        made = (
            query
            if buckets is None
            else Scope(query.where, (Occurring((), buckets, query.groups, []),))
        )
        parts = side_by_side(
            partial(self._sums, made, primitives), threads.shares(len(self._frame))
        )
        totals: dict[Primitive, Integers] = {
            p: np.sum([one[p] for one in parts], axis=0) for p in primitives
        }
        if query.where is None:
            counts = (
                len(self._frame)
                if buckets is None
                else self._counted(query.by, buckets, query.groups)
            )
            for p in primitives:
                if isinstance(p, Powers) or p not in sums:
                    totals[p][0 if isinstance(p, Powers) else ...] += counts
        return totals

    def _reduce_people(
        self, query: Scope, primitives: set[Primitive], unit: Unit
    ) -> dict[Primitive, Integers]:
        memo: dict[Any, Any] = {}
        # Some statistics need no limits; the plan has asked for every limit that is needed.
        limit, most = unit.limited(unit.rows or 1, unit.groups or 1).reach(
            query.groups if query.by else None
        )
        people = self._whose(unit.people)
        found: dict[Primitive, Integers] = {}
        if compiled.available(len(self._frame)):
            buckets = self._grouping(query.by)
            read = compiled.Reader(self.column, partial(self._put, memo), memo)
            found = compiled.totals(
                query, primitives, people, buckets, limit, most, self._key, read
            )
        paired: dict[int, Paired] = {}
        for p in primitives - found.keys():
            if isinstance(p, Bids | Magnitudes):
                found[p] = self._one_group_of_people(p, query, unit, limit, memo)
                continue
            groups = (
                query.groups if isinstance(p, Spread) else most
            )  # some are about all groups of a person
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
                true = self._holds(p.expr, memo)
                found[p] = bound.count(true if asked is None else true[asked])
            elif isinstance(p, Powers):
                width = 0 if p.grid is None else p.grid.width
                found[p] = bound.powers(self._values(p.expr, p.grid, memo, asked), p.degree, width)
            elif isinstance(p, Products):
                one = self._values(p.expr, p.grid, memo, asked)
                two = self._values(p.other, p.other_grid, memo, asked)
                found[p] = bound.products(one, two, p.grid.width, p.other_grid.width)
            elif isinstance(p, Leaves):
                values = self._values(p.expr, p.grid, memo, asked)
                blocks = (np.where(np.isnan(a), -1, a).astype(np.int64) for a in values)
                at = np.concatenate([np.empty(0, np.int64), *blocks])
                found[p] = at_points(
                    pairs, kept, people, limit, query.groups, at, p.points, self._key
                )
        return found

    def _one_group_of_people(
        self, p: Bids | Magnitudes, query: Scope, unit: Unit, limit: int, memo: dict[Any, Any]
    ) -> Integers:
        """Values in bins that are no groups: a person counts for so many in all of them together,
        or for one."""
        asked, pairs, _ = self._paired(Scope(query.where, ()), unit, 1, memo)
        people = self._whose(unit.people)
        at = np.empty(len(self._frame), dtype=np.int64)
        for rows in self._pieces():
            vector = self._vector(p.expr, rows, memo)
            if isinstance(p, Magnitudes):
                at[rows] = magnitude(vector.values, vector.nulls())
            else:
                null = vector.nulls()
                at[rows] = 0 if null is None else np.where(null, -1, 0)
        if isinstance(p, Magnitudes):
            at = at if asked is None else at[asked]
            return at_points(pairs, None, people, 1, 1, at, MAGNITUDES, self._key, drawn=True)
        buckets = self._grouping(query.by)
        assert buckets is not None
        at += np.where(at < 0, 0, buckets)  # a bid that reaches no price is one all the same
        at = at if asked is None else at[asked]
        return at_points(pairs, None, people, limit, 1, at, query.groups + 1, self._key)[1:, 0]

    @np.errstate(all="ignore")
    def occurring(
        self,
        by: Sequence[Expr],
        where: Expr | None,
        unit: Unit,
        primitives: frozenset[Primitive] | set[Primitive] = PEOPLE,
    ) -> tuple[Texts, dict[Primitive, Integers]]:
        """The combinations of values that count for somebody, as texts, and their primitive sums,
        as `reduce` has them.

        A person counts in at most so many of them, chosen by hashes of the values themselves. Only
        people and sums over rows.
        """
        memo: dict[Any, Any] = {}
        columns, asked = [self._coded(e, memo) for e in by], {*primitives, Persons()}
        if len(columns) == 1 and not unit.people:
            texts: Texts = [(text,) for text in columns[0].texts.tolist()]
            by_place = self._sums(Scope(where, (columns[0].by_place(tuple(by)),)), asked)
            sums = {p: columns[0].by_key(one) for p, one in by_place.items()}
        else:
            codes, texts = together(columns)
            scope = Scope(where, (Occurring(tuple(by), codes + 1, len(texts), texts),))
            sums = (
                self._reduce_people(scope, asked, unit) if unit.people else self._sums(scope, asked)
            )
        # A value that is in the frame and counts for nobody is no key: one person may bring any
        # number of those.
        some = np.flatnonzero(sums[Persons()])
        if len(some) == len(texts):
            return texts, sums
        return [texts[i] for i in some.tolist()], {p: one[..., some] for p, one in sums.items()}

    def _coded(self, expr: Expr, memo: dict[Any, Any]) -> Coded:
        """The keys of a column, numbered once for all questions about them; kept within the frame's
        own size."""
        known = self._keys.pop(expr, None) or coded(
            self._vector(expr, slice(0, len(self._frame)), memo)
        )
        self._keys[expr] = known
        while sum(one.nbytes for one in self._keys.values()) > self._room:
            self._keys.popitem(last=False)
        return known

    def slices(self, exprs: Sequence[Expr], where: Expr | None, unit: Unit) -> Iterator[RowSlice]:
        """All rows, slice by slice; what is made of whole dictionaries is made once."""
        memo: dict[Any, Any] = {}
        if "_within" in vars(self):
            self._within.trim()
        people = self._whose(unit.people).codes if unit.people else None
        for rows in self._pieces():
            mask = None if where is None else predicate(where, self.column, rows, memo)
            vectors = [self._vector(e, rows, memo) for e in exprs]
            yield RowSlice(
                vectors, mask, None if people is None else widened(people[rows]), len(self)
            )

    def people(self, unit: Unit) -> int:
        """The number of people who have a row: counted one by one, and not by how they are
        numbered."""
        codes = self._whose(unit.people).codes
        return len(np.unique(codes[codes >= 0]))

    def sketches(self, unit: Unit, secret: bytes) -> Sketches:
        """What a ledger knows these people and this table again by."""
        return sketches(self._frame, [c.position for c in unit.people], secret)

    def close(self) -> None:
        """Lets go of the frame, and of all that was made of it."""
        self._frame = self._frame.iloc[:0]
        self._last = None
        self._within.clear()
        for kept in (self._people, self._columns, self._buckets, self._keys, self._counts):
            kept.clear()

    # Rows and people ----------------------------------------------------------------------------------------

    def _paired(self, query: Scope, unit: Unit, most: int, memo: dict[Any, Any]) -> Paired:
        """The rows that are asked about, their pairs, and which of these stay; kept for the next
        question without a filter."""
        known = (unit.people, query.by, most)
        if query.where is None and self._last is not None and self._last[0] == known:
            return self._last[1]
        people, buckets = self._whose(unit.people), self._grouping(query.by)
        asked = people.codes >= 0
        if buckets is not None:
            asked &= buckets > 0
        if query.where is not None:
            asked &= self._holds(query.where, memo)
        some = slice(None) if asked.all() else asked
        group = None if buckets is None else buckets[some].astype(np.int64) - 1
        pairs = pairs_of(people.codes[some], group, people.size, query.groups)
        found = query.by[0] if query.by else None
        labels = found.numbers if isinstance(found, Occurring) else None
        kept = within_groups(pairs, people, most, self._key, labels) if query.by else None
        paired = None if some is not asked else asked, pairs, kept
        size = asked.nbytes + sum(a.nbytes for a in pairs if isinstance(a, np.ndarray))
        # What is kept never takes more than the frame's own size.
        if query.where is None and labels is None and size <= self._room:
            self._last = known, paired
        return paired

    def _distinct(self, expr: Expr, query: Scope, unit: Unit) -> Integers:
        return np.bincount(self.distinct(expr, query, unit)[0], minlength=query.groups)

    @np.errstate(all="ignore")
    def distinct(
        self, expr: Expr, query: Scope, unit: Unit
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Vector]:
        """The pairs of a group and a value that count, each once: their groups, a row of each, and
        the values of all rows."""
        memo: dict[Any, Any] = {}
        everything = slice(0, len(self._frame))  # one dictionary for all rows
        values = self._vector(expr, everything, memo)
        asked = None if query.where is None else self._holds(query.where, memo)
        people = self._whose(unit.people) if unit.people else None
        buckets = self._grouping(query.by)
        return *distinct_pairs(values, asked, buckets, people, unit.groups or 0, self._key), values

    def _values(
        self, expr: Expr, grid: Grid | None, memo: dict[Any, Any], asked: NDArray[np.bool_] | None
    ) -> Iterator[NDArray[np.float64]]:
        """A value for each row that is asked about, block by block, on its grid from the lower
        bound; NaN for null, and 0 where no grid is given."""
        scratch = np.empty(min(len(self._frame), SIZES.block))
        for rows in self._pieces():
            yield self._put(memo, expr, grid, rows, scratch, None if asked is None else asked[rows])

    def _put(
        self,
        memo: Memo,
        expr: Expr,
        grid: Grid | None,
        rows: slice,
        scratch: Floats,
        mask: Any = None,
    ) -> Floats:
        """The same of some of the rows, or of those in a mask, at the beginning of an array that is
        there."""
        vector = self._vector(expr, rows, memo)
        if grid is not None:
            return steps_of(vector, grid, mask, scratch)
        null = vector.nulls()
        values = scratch[: len(vector)]
        values[:] = 0.0 if null is None else np.where(null, np.nan, 0.0)
        return values if mask is None else values[mask]

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
        return (slice(start, min(start + SIZES.block, n)) for start in range(0, n, SIZES.block))

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
        strings = self._arrow_strings(by.expr) if isinstance(by, KeyBy) else None
        if isinstance(by, TupleBy):
            found = tuple_buckets([self._level(level) for level in by.levels], by.tuples)
        elif isinstance(by, RestBy):
            found = rest_buckets(self._level(by.listed), self._nulls(by.expr), len(by.index))
        elif isinstance(by, KeyBy) and strings is not None:
            found = arrow_buckets(by.keys, strings)
        else:
            expr, one = finder_of(by)
            small, n, memo = np.min_scalar_type(len(by.index)), len(self._frame), dict[Any, Any]()
            found = np.empty(n, dtype=small if small != np.uint64 else np.int64)
            for leaf in expr.columns():
                self.column(leaf)  # once, before there are threads

            def fill(share: slice) -> None:
                for start in range(share.start, share.stop, SIZES.block):
                    rows = slice(start, min(start + SIZES.block, share.stop))
                    found[rows] = one(self._vector(expr, rows, memo))

            side_by_side(fill, threads.shares(n))
        self._buckets[by] = found
        # Never more than the frame's own size, the oldest first.
        while len(self._buckets) > 1 and sum(b.nbytes for b in self._buckets.values()) > self._room:
            self._counts.pop(self._buckets.popitem(last=False)[0], None)
        return found

    def _counted(self, by: tuple[By, ...], buckets: Buckets, groups: int) -> Integers:
        """The rows of each group in the whole frame; of groups by one thing kept as long as their
        buckets, and smaller."""
        known = self._counts.get(by[0]) if len(by) == 1 else None
        if known is None:

            def count(share: slice) -> Integers:
                found = np.zeros(groups, dtype=np.int64)
                for start in range(share.start, share.stop, SIZES.sum_block):
                    found += tally(
                        buckets[start : min(start + SIZES.sum_block, share.stop)], groups
                    )
                return found

            each = (
                threads.shares(len(buckets))
                if groups <= SIZES.thread_sums
                else [slice(0, len(buckets))]
            )
            known = np.sum(side_by_side(count, each), axis=0)
            if len(by) == 1 and by[0] in self._buckets and known.nbytes <= buckets.nbytes:
                self._counts[by[0]] = known
        return known

    def _nulls(self, expr: Expr) -> NDArray[np.bool_]:
        strings = self._arrow_strings(expr)
        if strings is not None:
            return np.asarray(strings.is_null())
        memo: dict[Any, Any] = {}
        null = np.zeros(len(self._frame), dtype=bool)
        for rows in self._pieces():
            some = self._vector(expr, rows, memo).nulls()
            null[rows] = False if some is None else some
        return null

    def _arrow_strings(self, expr: Expr) -> Any:
        """The Arrow array behind a column of strings that nobody has numbered yet; None for
        others."""
        if not isinstance(expr, Column) or expr.kind != "text" or expr.position in self._columns:
            return None
        array = self._frame.iloc[:, expr.position].array
        if not isinstance(array.dtype, pd.StringDtype) or array.dtype.storage != "pyarrow":
            return None
        strings = array.__arrow_array__()
        # A kernel numbers all texts in the time in which Arrow finds some of them, and later
        # questions find them numbered.
        by_kernel = len(strings) >= SIZES.kernel_rows and kernels.at_hand(len(strings))
        return None if by_kernel and repeated(strings) else strings


# Sums over a block of rows ------------------------------------------------------------------------------


def steps_of(
    vector: Vector, grid: Grid, mask: NDArray[np.bool_] | None, scratch: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The values of the rows that are asked about on their grid, from the lower bound, in
    `scratch`; NaN for nulls."""
    values, null = vector.values, vector.null
    if mask is not None:
        values, null = values[mask], null if null is None else null[mask]
    a = scratch[: len(values)]
    if values.dtype != np.float64:
        np.copyto(a, values, casting="unsafe")
        values = a
    to_grid(values, a, grid)
    if null is not None:
        a[null] = np.nan
    return a


def add_powers(a: NDArray[np.float64], buckets: Buckets | None, total: Integers) -> None:
    """Adds the powers of `a`; how many rows there are is added by the caller, and those of no value
    are left out here."""
    top = float(a.sum())
    if top != top:  # a NaN anywhere makes the sum one
        (missing,) = np.isnan(a).nonzero()
        total[0] -= len(missing) if buckets is None else tally(buckets[missing], total.shape[1])
        a[missing] = 0.0  # which adds nothing to any power
    power = a
    if buckets is None:
        total[1] += int(top if top == top else a.sum())
        for degree in range(2, len(total)):
            total[degree] += int(power @ a)
            power = power * a if degree + 1 < len(total) else a
        return
    places = buckets.astype(np.intp)
    for degree in range(1, len(total)):
        sums = np.bincount(places, weights=power, minlength=total.shape[1] + 1)[1:]
        total[degree] += sums.astype(np.int64)
        power = power * a if degree + 1 < len(total) else a


def tally(buckets: Buckets, groups: int) -> Integers:
    """How many rows are in each bucket but the first."""
    if len(buckets) >= SIZES.kernel_rows and kernels.at_hand(len(buckets)):
        found = np.zeros(groups + 1, dtype=np.int64)
        kernels.kernel(kernels.count_buckets)(buckets, found)
        return found[1:]
    if buckets.dtype == np.uint8 and len(buckets) >= SIZES.pair_block:
        # Two neighbours read as one number of 16 bits: half as many to count, and each pair counts
        # for both.
        even, pairs = len(buckets) & ~1, np.zeros(2**16, dtype=np.int64)
        step = max(2, SIZES.block & ~1)
        for start in range(0, even, step):
            some = buckets[start : min(start + step, even)].view(np.uint16)
            np.add.at(pairs, some.astype(np.intp), 1)
        counts = pairs.reshape(256, 256).sum(axis=0) + pairs.reshape(256, 256).sum(axis=1)
        for odd in buckets[even:]:
            counts[odd] += 1
        return np.asarray(counts[1 : groups + 1])
    return np.bincount(buckets, minlength=groups + 1)[1:]
