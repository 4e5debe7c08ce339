"""Order statistics: how far each point of a public grid is from being a quantile, in ranks (docs/guarantees/quantiles.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpframe._errors import BadValue
from dpframe._expr import Expr
from dpframe._groups.unit import Unit
from dpframe._statistics.base import Grid, Integers, Leaves, Primitive, Reduced, Sensitivity, Statistic
from dpframe._validate import Bounds

LEAF_BITS = 12  # a grid has fewer steps than 2**12, unless a resolution says otherwise
LEAF_CEILING = 2**24  # points times groups times quantiles: what fits in memory a few times over
_FINEST_LEVEL = 2**30  # scores over ROW_CEILING rows stay below 2**62


def leaf_grid(expr: Expr, bounds: Bounds, resolution: float | None) -> Grid:
    """The points a quantile may be: whole numbers where they are few enough, else steps of a power of two."""
    if resolution is not None:
        return Grid(bounds, min(max(1 - math.frexp(resolution)[1], -960), 960))
    if bounds.lower == bounds.upper:
        return Grid(bounds, 0)
    grid = Grid.for_width(bounds, LEAF_BITS)
    whole = expr.integral or expr.kind == "bool"
    return Grid(bounds, min(grid.exponent, 0)) if whole else grid


@dataclass(frozen=True, slots=True)
class Ranks(Statistic):
    """The score of each grid point v for each level q: minus the number of ranks by which v misses the quantile.

    With B values below v, C at v and A above it, n = B + C + A, a point is a q-quantile exactly if B <= q n and
    A <= (1 - q) n. Its score is ``-max(0, B - q n, A - (1 - q) n)``, in steps of one over a common denominator of the
    levels. The vector is not linear, and never gets noise of its own: the largest score is chosen. The claim is
    therefore about *differences* of scores, summed over the levels, which is what `NoisyMax` asks for.

    Add-remove: a row moves each score by at most max(q, 1 - q) either way, so a difference by 2 max(q, 1 - q).
    Replace-one: each score by at most 1, a difference by 2; over groups a row may leave one and enter another, which
    moves the differences of both, together by 4 max(q, 1 - q).
    """

    expr: Expr
    grid: Grid
    levels: tuple[Fraction, ...]

    @staticmethod
    def of(
        expr: Expr, bounds: Bounds, resolution: float | None, levels: Iterable[Fraction], groups: int
    ) -> Ranks:
        found = Ranks(expr, leaf_grid(expr, bounds, resolution), tuple(sorted(set(levels))))
        cells = found.points * groups * len(found.levels)
        if cells > LEAF_CEILING:
            raise BadValue(
                f"quantiles of {expr} would look at {cells} numbers: {found.points} points between the bounds, "
                f"{groups} groups, {len(found.levels)} levels. At most {LEAF_CEILING} fit: give a coarser resolution=."
            )
        return found

    @property
    def points(self) -> int:
        return Leaves(self.expr, self.grid).points

    @property
    def over(self) -> int:
        """The denominator of the levels; those finer than 2**-30 are rounded to it."""
        common = math.lcm(*(q.denominator for q in self.levels))
        return common if common <= _FINEST_LEVEL else _FINEST_LEVEL

    @property
    def parts(self) -> tuple[int, ...]:
        return tuple(round(q * self.over) for q in self.levels)

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Leaves(self.expr, self.grid),)

    def shape(self, groups: int) -> tuple[int, ...]:
        return len(self.levels), self.points, groups

    def integers(self, reduced: Reduced) -> Integers:
        """A score for each level, point and group."""
        at = reduced[self.primitives[0]]
        up_to = np.cumsum(at, axis=0)
        below, above = up_to - at, up_to[-1:] - up_to
        scores = np.empty((len(self.levels), *at.shape), dtype=np.int64)
        for one, share in zip(scores, self.parts, strict=True):
            rest = self.over - share
            # B - q n and A - (1 - q) n, times the denominator: whole numbers below 2**62.
            np.maximum(rest * below - share * (up_to[-1:] - below), share * above - rest * up_to, out=one)
            np.maximum(one, 0, out=one)
            np.negative(one, out=one)
        return scores

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        larger = [max(share, self.over - share) for share in self.parts]
        moves = [2 * m for m in larger]
        if unit.replaces:
            moves = [4 * m for m in larger] if grouped else [2 * self.over] * len(larger)
        return Sensitivity(sum(moves), sum(m * m for m in moves))

    def functionals(self) -> dict[str, tuple[float, ...]]:
        return {}

    def constants(self) -> dict[str, float]:
        return {
            "low": float(self.grid.low),
            "exponent": float(self.grid.exponent),
            "points": float(self.points),
        }

    @property
    def description(self) -> str:
        many = f" of {len(self.levels)} levels" if len(self.levels) > 1 else ""
        return f"ranks{many} at {self.points} points, {self.grid.step:g} apart, of {self.expr}"

    @property
    def step(self) -> float:
        return 1.0 / self.over
