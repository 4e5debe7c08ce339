"""Sums over people with many rows: pairs of a person and a group, and what each of them counts for.

*Formal guarantee.* What a person adds to the sums of a group is bounded by the limits of the unit,
as `dpframe.engines.limits` proves. Which rows are read is decided by the filter and by the cells
that name people and groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dpframe._cells.codec import Buckets
from dpframe._expr import Column, Expr
from dpframe._groups.unit import Unit
from dpframe._statistics.base import (
    MAGNITUDES,
    Bids,
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
)
from dpframe._statistics.engine import Scope
from dpframe.engines import compiled
from dpframe.engines.groups import GroupFinder
from dpframe.engines.keys import Occurring
from dpframe.engines.limits import Bound, count_at_points, count_people_by_size, within_groups
from dpframe.engines.people import Pairs, People, pairs_of
from dpframe.engines.reading import Bools, Floats, FrameReader, QuestionReader
from dpframe.engines.row_sums import find_magnitude_bins


class AskedPairs(NamedTuple):
    """The rows that are asked about, their pairs of a person and a group, and which pairs count."""

    rows: Bools | None  # None if all rows are asked about
    pairs: Pairs
    kept: Bools | None  # None if all pairs count


@dataclass(slots=True)
class PairFinder:
    """The pairs of people and groups in one frame. Those of the last question are kept."""

    _table: FrameReader
    _groups: GroupFinder
    _last: tuple[Any, AskedPairs] | None = None  # of a question without a filter

    def find_pairs(
        self, read: QuestionReader, scope: Scope, people_columns: tuple[Column, ...], most: int
    ) -> AskedPairs:
        """Return the (person, group) pairs of a question, and which of them count.

        ``scope`` has the filter and the groups, ``people_columns`` name the person. A person counts
        in at most ``most`` groups. The pairs of the last question without a filter are kept.
        """
        known = (people_columns, scope.by, most)
        if scope.where is None and self._last is not None and self._last[0] == known:
            return self._last[1]
        people = self._table.find_people(people_columns)
        buckets = self._groups.find_buckets(scope.by)
        asked = people.codes >= 0
        if buckets is not None:
            asked &= buckets > 0
        if scope.where is not None:
            asked &= read.select_all(scope.where)
        some = slice(None) if asked.all() else asked
        group = None if buckets is None else buckets[some].astype(np.int64) - 1
        pairs = pairs_of(people.codes[some], group, people.size, scope.groups)
        found = scope.by[0] if scope.by else None
        labels = found.numbers if isinstance(found, Occurring) else None
        kept = within_groups(pairs, people, most, self._table.key, labels) if scope.by else None
        paired = AskedPairs(None if some is not asked else asked, pairs, kept)
        size = asked.nbytes + sum(a.nbytes for a in pairs if isinstance(a, np.ndarray))
        if scope.where is None and labels is None and size <= self._table.room:
            self._last = known, paired
        return paired

    def clear(self) -> None:
        """Forget the pairs of the last question."""
        self._last = None


def sum_people(
    table: FrameReader,
    groups: GroupFinder,
    pair_finder: PairFinder,
    scope: Scope,
    primitives: set[Primitive],
    unit: Unit,
) -> dict[Primitive, Integers]:
    """Return the sums over people of each primitive, by group, within the contribution limits.

    A primitive is a sum that was asked for, such as rows or powers of a column. ``scope`` has the
    filter and the groups, ``unit`` the privacy unit with its limits. Compiled kernels compute what
    they can if they are there.
    """
    # A statistic that needs a limit has one in its plan. The others count one row and one group.
    limits = unit.with_limits(unit.rows or 1, unit.groups or 1)
    limit, most = limits.reach(scope.groups if scope.by else None)
    read = QuestionReader(table)
    found: dict[Primitive, Integers] = {}
    if compiled.available(table.rows):
        people, buckets = table.find_people(unit.people), groups.find_buckets(scope.by)
        found = compiled.sum_people(read, scope, primitives, people, buckets, limit, most)
    question = PersonSums(read, groups, pair_finder, scope, unit, limit, most)
    for p in primitives - found.keys():
        found[p] = SUM[type(p)](question, p)
    return found


@dataclass(slots=True)
class PersonSums:
    """One question about people: its rows, its limits, and the pairs that count."""

    read: QuestionReader
    groups: GroupFinder
    pair_finder: PairFinder
    scope: Scope
    unit: Unit
    limit: int  # of a person's rows in each group
    most: int  # of a person's groups
    _known: dict[int, AskedPairs] = field(default_factory=dict)

    @property
    def people(self) -> People:
        """The people of the unit."""
        return self.read.table.find_people(self.unit.people)

    @property
    def key(self) -> bytes:
        """The key of the hashes by which a person's groups and values are chosen."""
        return self.read.table.key

    def find_pairs(self, most: int) -> AskedPairs:
        """Return the (person, group) pairs where a person counts in at most ``most`` groups."""
        if most not in self._known:
            self._known[most] = self.pair_finder.find_pairs(
                self.read, self.scope, self.unit.people, most
            )
        return self._known[most]

    def find_ungrouped_pairs(self) -> AskedPairs:
        """Return the pairs of people and one group that all rows are in.

        It is called for sums that do not look at the groups of the question.
        """
        scope = Scope(self.scope.where, ())
        return self.pair_finder.find_pairs(self.read, scope, self.unit.people, 1)

    def bound(self) -> Bound:
        """Return the (person, group) pairs that count, bounded by the contribution limits."""
        _, pairs, kept = self.find_pairs(self.most)
        return Bound(pairs, kept, self.limit, self.scope.groups)

    def steps(self, expr: Expr, grid: Grid | None) -> Iterator[Floats]:
        """Yield the values of the rows that are asked about, block by block.

        They are steps of the ``grid`` above its lower bound, NaN for a null. Without a grid each is
        0.
        """
        return self.read.steps_by_block(expr, grid, self.find_pairs(self.most).rows)

    def find_buckets(self) -> Buckets:
        """Return one more than the group of each row of the frame, 0 for no group."""
        buckets = self.groups.find_buckets(self.scope.by)
        assert buckets is not None
        return buckets


# The sums of each primitive ----------------------------------------------------------------------


def _sum_rows(question: PersonSums, p: Rows) -> Integers:
    return question.bound().rows()


def _sum_persons(question: PersonSums, p: Persons) -> Integers:
    return question.bound().people()


def _sum_trues(question: PersonSums, p: Trues) -> Integers:
    true, asked = question.read.select_all(p.expr), question.find_pairs(question.most).rows
    return question.bound().count(true if asked is None else true[asked])


def _sum_powers(question: PersonSums, p: Powers) -> Integers:
    width = 0 if p.grid is None else p.grid.width
    return question.bound().powers(question.steps(p.expr, p.grid), p.degree, width)


def _sum_products(question: PersonSums, p: Products) -> Integers:
    one, two = question.steps(p.expr, p.grid), question.steps(p.other, p.other_grid)
    return question.bound().products(one, two, p.grid.width, p.other_grid.width)


def _sum_leaves(question: PersonSums, p: Leaves) -> Integers:
    """Return how many values lie at each point of the primitive's grid, by group.

    Each person counts within the contribution limits.
    """
    blocks = (np.where(np.isnan(a), -1, a).astype(np.int64) for a in question.steps(p.expr, p.grid))
    places = np.concatenate([np.empty(0, np.int64), *blocks])  # -1 for a null
    _, pairs, kept = question.find_pairs(question.most)
    people, groups = question.people, question.scope.groups
    return count_at_points(
        pairs, kept, people, question.limit, groups, places, p.points, question.key
    )


def _sum_spread(question: PersonSums, p: Spread) -> Integers:
    # All groups of a person count here: the release is about how many there are.
    return count_people_by_size(question.find_pairs(question.scope.groups).pairs, p.of, p.bins)


def _sum_magnitudes(question: PersonSums, p: Magnitudes) -> Integers:
    """Count people by the size of one of their values, whatever group their rows are in.

    A hash draws that value. Sizes are the bins of `find_magnitude_bins`.
    """
    asked, pairs, _ = question.find_ungrouped_pairs()
    bins = np.empty(question.read.table.rows, dtype=np.int64)
    for rows in question.read.table.blocks():
        vector = question.read.evaluate(p.expr, rows)
        bins[rows] = find_magnitude_bins(vector.values, vector.nulls())
    bins = bins if asked is None else bins[asked]
    people, key = question.people, question.key
    return count_at_points(pairs, None, people, 1, 1, bins, MAGNITUDES, key, drawn=True)


def _sum_bids(question: PersonSums, p: Bids) -> Integers:
    """Count the rows in each bin of the question's one grouping, within the limit of a person.

    The rows are bids, and the bins are prices that they reach. A person counts with at most the
    limit of rows over all bins together.
    """
    asked, pairs, _ = question.find_ungrouped_pairs()
    # A bid that reaches no price is in bucket 0 and counts as one of the person's bids.
    buckets = question.find_buckets().astype(np.int64)
    bins = np.where(question.read.find_nulls(p.expr), -1, buckets)
    bins = bins if asked is None else bins[asked]
    people, points = question.people, question.scope.groups + 1
    counts = count_at_points(pairs, None, people, question.limit, 1, bins, points, question.key)
    return counts[1:, 0]  # without the bids that reach no price


SUM: dict[type, Callable[[PersonSums, Any], Integers]] = {
    Rows: _sum_rows,
    Persons: _sum_persons,
    Trues: _sum_trues,
    Powers: _sum_powers,
    Products: _sum_products,
    Leaves: _sum_leaves,
    Spread: _sum_spread,
    Magnitudes: _sum_magnitudes,
    Bids: _sum_bids,
}
