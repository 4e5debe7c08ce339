"""The scores of candidates by which `choose` chooses. All of them are sums over rows.

Nobody ever sees a score, because only the place of the chosen candidate leaves. So the sensitivity
that matters is the *reach*: the most by which one person can move a score against another. The
proofs are in docs/guarantees/exponential.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpframe._expr import Expr
from dpframe._groups.unit import Limit, Unit
from dpframe._statistics.base import (
    Bids,
    Grid,
    Integers,
    Leaves,
    Powers,
    Primitive,
    Reading,
    Reduced,
    Sensitivity,
    Statistic,
)
from dpframe._validate import Bounds


class _Choice(Statistic):
    """Integers that only choices are made from; they are never released as sums."""

    __slots__ = ()

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        raise AssertionError("scores are chosen among, and never released")


@dataclass(frozen=True, slots=True)
class Scores(_Choice):
    """The sum of each expression, clipped to common bounds and counted in steps above the lower
    one.

    No expression is null, so every row adds a number within [0, W] to every score: its reach is W,
    and 2W if it is replaced. Counting from the lower bound takes the same number from all scores,
    and no choice depends on that. By ``moves`` the owner states that one row moves no utility by
    more, and so none against another by more than twice that.
    """

    identity: ClassVar[tuple[str, ...]] = ("scores", "exprs", "grid", "moves")

    exprs: tuple[Expr, ...]
    grid: Grid
    moves: float | None = None

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return tuple(Powers(e, self.grid, 1) for e in self.exprs)

    def shape(self, groups: int) -> tuple[int, ...]:
        return len(self.exprs), groups

    def integers(self, reduced: Reduced) -> Integers:
        return np.stack([reduced[p][1] for p in self.primitives])

    def reach(self, unit: Unit) -> int:
        provable = 2 * self.grid.width if unit.replaces else self.grid.width
        if self.moves is None:
            return provable
        return min(provable, 2 * self._steps(self.moves))

    def reach_of_person(self, unit: Unit, groups: int | None) -> int:
        """Return the most by which one person with several rows moves one total against another.

        The owner's stated limit ``moves`` on the effect of one row may lower it. ``groups`` is not
        used, since candidates are not grouped.
        """
        # Each total of many rows is rounded once more, by at most half a step. So the scores of two
        # people differ by one step more.
        rows, _ = unit.reach(groups)
        if self.moves is None or not unit.people:
            return self.reach(unit) * rows
        provable = 2 * self.grid.width if unit.replaces else self.grid.width
        return min(provable * rows, 2 * (self._steps(self.moves) * rows + 1))

    def _steps(self, moves: float) -> int:
        # Two values at most `moves` apart are, once rounded, at most one step more apart.
        return math.ceil(Fraction(moves) * Fraction(2) ** self.grid.exponent) + 1

    def reading(self) -> Reading:
        return Reading(f"the utility of {len(self.exprs)} candidates", {}, self.grid.step)


@dataclass(frozen=True, slots=True)
class Revenue(_Choice):
    """Price times the number of bids that reach it, for increasing prices on a grid.

    Groups are the bids between prices. A bid adds the price to every score from the first to the
    dearest that it reaches, and 0 beyond. Added, it moves one score against another by the largest
    price at most. Replaced by a higher bid it raises some scores and lowers none. By a lower bid,
    or by none, it is the other way round: the largest price again.
    """

    identity: ClassVar[tuple[str, ...]] = ("revenue", "expr", "prices", "grid")

    expr: Expr
    prices: tuple[int, ...]
    grid: Grid

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Bids(self.expr),)

    def integers(self, reduced: Reduced) -> Integers:
        """Return the revenue of each price: the price times the number of bids that reach it."""
        buyers = np.cumsum(reduced[self.primitives[0]][::-1])[::-1]
        scores: Integers = buyers * np.array(
            self.prices, dtype=np.int64
        )  # below 2**31 times at most 2**30
        return scores[None, :]

    def reach(self, unit: Unit) -> int:
        return max(self.prices)

    def reach_of_person(self, unit: Unit, groups: int | None) -> int:
        return self.reach(unit) * unit.reach(None)[0]  # the bins are one group

    def limit(self, unit: Unit, grouped: bool) -> Limit | None:
        return unit.limit(False)

    def reading(self) -> Reading:
        return Reading(f"the revenue at {len(self.prices)} prices", {}, self.grid.step)


@dataclass(frozen=True, slots=True)
class Votes(Statistic):
    """The rows of each group that have each of some listed values.

    Each group chooses the values that most of its rows have. ``expr`` is the place of a row's value
    on the list, and null for others. The vector never gets noise of its own, so the claim is about
    *differences* of counts within a group, summed over the groups, whose choices are independent.

    Add-remove: a row adds 1 to one count of one group. It moves a difference there by 1, and none
    elsewhere. Replace-one: within a group it may leave one count for another, which moves their
    difference by 2. Between groups it moves one by 1 in each.
    """

    identity: ClassVar[tuple[str, ...]] = ("votes", "expr", "values")

    expr: Expr
    values: int

    @property
    def _leaves(self) -> Leaves:
        return Leaves(self.expr, Grid(Bounds(0.0, float(self.values - 1)), 0))

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (self._leaves,)

    def shape(self, groups: int) -> tuple[int, ...]:
        return 1, self.values, groups

    def integers(self, reduced: Reduced) -> Integers:
        return reduced[self._leaves][None, :, :]

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        return Sensitivity(2, 4) if unit.replaces else Sensitivity(1, 1)

    def reading(self) -> Reading:
        of = self.expr.children[0]
        return Reading(
            f"rows by {of}, which has {self.values} values", {}, 1.0, {"points": float(self.values)}
        )
