"""Order statistics: points of a public grid by their ranks, and a distribution as a tree of counts.

By ranks the best point is chosen (docs/guarantees/quantiles.md). Every node of a tree counts the
values below it, so each count is measured several times: by itself, by the sum of its children, and
by the difference of its parent and its siblings. Weighted least squares combines these (Hay et al.
2010; Honaker 2015), as post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe._errors import BadValue
from dpframe._expr import Expr
from dpframe._groups.unit import Unit
from dpframe._statistics.base import (
    Grid,
    Integers,
    Leaves,
    Primitive,
    Reading,
    Reduced,
    Sensitivity,
    Statistic,
)
from dpframe._types import Array
from dpframe._validate import Bounds

Floats = NDArray[np.float64]
# A grid has fewer steps than 2**12, unless a resolution is given.
LEAF_BITS = 12
# The largest product of points, groups and quantiles. It fits in memory a few times over.
LEAF_CEILING = 2**24
# With this denominator scores over ROW_CEILING rows stay below 2**62.
_FINEST_LEVEL = 2**30
# Of 2 to 64 branches 16 give the least error of a distribution function at 2**6 to 2**14 points.
BRANCHES = 16


def leaf_grid(expr: Expr, bounds: Bounds, resolution: float | None) -> Grid:
    """Return the grid of candidate values for quantiles of a column between its bounds.
    ``resolution`` is the largest step; None means the finest grid that is allowed.

    They are whole numbers if there are few enough, and else steps of a power of two.
    """
    if resolution is not None:
        return Grid(bounds, min(max(1 - math.frexp(resolution)[1], -960), 960))
    if bounds.lower == bounds.upper:
        return Grid(bounds, 0)
    grid = Grid.for_width(bounds, LEAF_BITS)
    whole = expr.integral or expr.kind == "bool"
    return Grid(bounds, min(grid.exponent, 0)) if whole else grid


def _describe_points(grid: Grid, points: int) -> dict[str, float]:
    """Return the constants from which a reader computes where the points of a grid lie."""
    return {"low": float(grid.low), "exponent": float(grid.exponent), "points": float(points)}


@dataclass(frozen=True, slots=True)
class Ranks(Statistic):
    """The score of each grid point v for each level q.

    It is minus the number of ranks by which v misses the quantile. With B values below v, C at v
    and A above it, n = B + C + A, a point is a q-quantile exactly if B <= q n and A <= (1 - q) n.
    Its score is ``-max(0, B - q n, A - (1 - q) n)``, in steps of one over a common denominator of
    the levels. The vector is not linear, and never gets noise of its own: the largest score is
    chosen. The claim is therefore about *differences* of scores, summed over the levels, which is
    what `NoisyMax` asks for.

    Add-remove: a row moves each score by at most max(q, 1 - q) either way, so a difference by 2
    max(q, 1 - q). Replace-one: each score moves by at most 1, and a difference by 2. Over groups a
    row may leave one and enter another, which moves the differences of both, together by 4 max(q, 1
    - q).
    """

    identity: ClassVar[tuple[str, ...]] = ("ranks", "expr", "grid", "levels")

    expr: Expr
    grid: Grid
    levels: tuple[Fraction, ...]

    @staticmethod
    def of(
        expr: Expr,
        bounds: Bounds,
        resolution: float | None,
        levels: Iterable[Fraction],
        groups: int,
    ) -> Ranks:
        """Return the statistic that scores each candidate value of each quantile level. Too many
        points, groups and levels are refused."""
        ranks = Ranks(expr, leaf_grid(expr, bounds, resolution), tuple(sorted(set(levels))))
        cells = ranks.points * groups * len(ranks.levels)
        if cells > LEAF_CEILING:
            raise BadValue(
                f"quantiles of {expr} would look at {cells} numbers: {ranks.points} points "
                "between the bounds, "
                f"{groups} groups, {len(ranks.levels)} levels. At most {LEAF_CEILING} fit: give a "
                "coarser resolution=."
            )
        return ranks

    @property
    def points(self) -> int:
        return Leaves(self.expr, self.grid).points

    @property
    def denominator(self) -> int:
        """The common denominator of the levels; those finer than 2**-30 are rounded to it."""
        common = math.lcm(*(q.denominator for q in self.levels))
        return common if common <= _FINEST_LEVEL else _FINEST_LEVEL

    @property
    def numerators(self) -> tuple[int, ...]:
        """The levels as whole numbers: each times the common denominator."""
        return tuple(round(q * self.denominator) for q in self.levels)

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Leaves(self.expr, self.grid),)

    def shape(self, groups: int) -> tuple[int, ...]:
        return len(self.levels), self.points, groups

    def integers(self, reduced: Reduced) -> Integers:
        """Return the exact score of each grid point for each level and group.

        The axes are levels, points and groups. Of n values, B lie below a point and A above it. The
        score for the level q is -max(0, B - q n, A - (1 - q) n): minus the number of ranks by which
        the point misses the quantile. It is multiplied by the common denominator of the levels.
        """
        counts = reduced[self.primitives[0]]
        up_to = np.cumsum(counts, axis=0)
        below, above = up_to - counts, up_to[-1:] - up_to
        scores = np.empty((len(self.levels), *counts.shape), dtype=np.int64)
        for row, share in zip(scores, self.numerators, strict=True):
            rest = self.denominator - share
            # q is share / denominator, and 1 - q is rest / denominator. So these are B - q n and
            # A - (1 - q) n, times the denominator: whole numbers below 2**62.
            np.maximum(
                rest * below - share * (up_to[-1:] - below), share * above - rest * up_to, out=row
            )
            np.maximum(row, 0, out=row)
            np.negative(row, out=row)
        return scores

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        """Return how far one row moves the difference of the scores of two grid points.

        L1 is the sum over all levels, and L2 squared the sum of their squares. Scores are in steps
        of 1 / denominator.
        """
        # A row that is added moves the score for level q by max(q, 1 - q) at most.
        larger = [max(share, self.denominator - share) for share in self.numerators]
        # One score of a difference may go up, and the other one down.
        moves = [2 * m for m in larger]
        if unit.replaces:
            # Over groups a row leaves one group and enters another. Both count in full. Without
            # groups n stays, and a value that moves changes each score by one rank at most.
            moves = [4 * m for m in larger] if grouped else [2 * self.denominator] * len(larger)
        return Sensitivity(sum(moves), sum(m * m for m in moves))

    def reading(self) -> Reading:
        many = f" of {len(self.levels)} levels" if len(self.levels) > 1 else ""
        text = f"ranks{many} at {self.points} points, {self.grid.step:g} apart, of {self.expr}"
        return Reading(text, {}, 1.0 / self.denominator, _describe_points(self.grid, self.points))


@dataclass(frozen=True, slots=True)
class Surroundings(Statistic):
    """Counts of non-null values between edges around the points that were chosen for ``levels``
    quantiles.

    The edges of a group follow from its chosen points, which have left the door before. They lie 1,
    3, 9, 27, ... points from each, up to the ends of the grid. A value lies between two neighbouring
    edges, so a row adds 1 to one count. Add-remove moves the vector by 1. Replace-one moves it by 2,
    and by 1 without groups where the grid has one point.
    """

    identity: ClassVar[tuple[str, ...]] = ("surroundings", "expr", "grid", "levels")
    follows: ClassVar[bool] = True

    expr: Expr
    grid: Grid
    levels: int

    @staticmethod
    def of(ranks: Statistic) -> Surroundings:
        """Return the surroundings of the points that are chosen by these ranks."""
        assert isinstance(ranks, Ranks)
        return Surroundings(ranks.expr, ranks.grid, len(ranks.levels))

    @property
    def points(self) -> int:
        return Leaves(self.expr, self.grid).points

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Leaves(self.expr, self.grid),)

    def shape(self, groups: int) -> tuple[int, ...]:
        return 2 * self.levels * len(_list_distances(self.points)) + 1, groups

    def integers(self, reduced: Reduced) -> Integers:
        raise AssertionError("edges lie around points that were chosen before: integers_after")

    def integers_after(self, reduced: Reduced, released: Sequence[Integers]) -> Integers:
        """Return the number of values between the edges around the points that were released
        last.

        The result has a row for each interval between edges, and a column for each group.
        """
        counts = reduced[self.primitives[0]]  # a row for each point of the grid, a column a group
        below = np.concatenate(
            [np.zeros((1, counts.shape[1]), np.int64), np.cumsum(counts, axis=0)]
        )
        edges = place_edges(released[-1], self.points)
        between: Integers = np.diff(np.take_along_axis(below, edges, axis=0), axis=0)
        return between

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        moved = 2 if unit.replaces and (grouped or self.points > 1) else 1
        return Sensitivity(moved, moved)

    def reading(self) -> Reading:
        choices = "each choice" if self.levels > 1 else "the choice"
        return Reading(f"values of {self.expr} at 1, 3, 9, ... points from {choices}", {})


@lru_cache(maxsize=256)
def _list_distances(points: int) -> NDArray[np.intp]:
    """Return the distances of edges from a chosen point: 0, and the powers of three below
    ``points``."""
    distances = [0]
    while (further := max(1, 3 * distances[-1])) < points:
        distances.append(further)
    return np.array(distances, dtype=np.intp)


def place_edges(chosen: NDArray[Any], points: int) -> NDArray[np.intp]:
    """Return the edges around chosen points of a grid, in order, with a column for each group.

    ``chosen`` has a row for each quantile. An edge e lies below the point e, so the first edge is 0
    and the last one is ``points``. Several edges may be equal.
    """
    distances, groups = _list_distances(points)[:, None, None], chosen.shape[-1]
    around = np.concatenate([chosen - distances, chosen + 1 + distances]).reshape(-1, groups)
    first, last = np.zeros((1, groups), np.intp), np.full((1, groups), points)
    edges = np.concatenate([first, around.clip(0, points), last])
    return np.asarray(np.sort(edges, axis=0), dtype=np.intp)


@lru_cache(maxsize=256)
def list_level_sizes(points: int) -> tuple[int, ...]:
    """Return the number of nodes on each level of a tree of counts, from its ``points`` leaves to
    at most 16 nodes.

    Each level has a node for every 16 of the level below. There is no root: a count of all values
    would add less to the nodes below it than its noise costs.
    """
    sizes = [points]
    while sizes[-1] > BRANCHES:
        sizes.append(-(-sizes[-1] // BRANCHES))
    return tuple(sizes)


def _list_first_children(size: int) -> NDArray[np.intp]:
    return np.arange(0, size, BRANCHES)


@dataclass(frozen=True, slots=True)
class Tree(Statistic):
    """Counts of non-null values below every node of a tree over the points of a grid.

    A row adds 1 to one node of each of h levels, so add-remove moves the vector by h in L1 and
    sqrt(h) in L2, and replace-one by 2 h and sqrt(2 h). A grid of one point has one count, which a
    row replaced moves by 1 without groups.
    """

    identity: ClassVar[tuple[str, ...]] = ("tree", "expr", "grid")

    expr: Expr
    grid: Grid

    @staticmethod
    def of(expr: Expr, bounds: Bounds, resolution: float | None, groups: int) -> Tree:
        """Return the tree of counts for the distribution of a column. Too many points and groups
        are refused."""
        tree = Tree(expr, leaf_grid(expr, bounds, resolution))
        if tree.points * groups > LEAF_CEILING:
            raise BadValue(
                f"a distribution of {expr} at {tree.points} points in {groups} groups is more "
                f"than {LEAF_CEILING} "
                "numbers: give a coarser resolution=."
            )
        return tree

    @property
    def points(self) -> int:
        return Leaves(self.expr, self.grid).points

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Leaves(self.expr, self.grid),)

    def shape(self, groups: int) -> tuple[int, ...]:
        return sum(list_level_sizes(self.points)), groups

    def integers(self, reduced: Reduced) -> Integers:
        levels = [reduced[self.primitives[0]]]
        for _ in list_level_sizes(self.points)[1:]:
            starts = _list_first_children(len(levels[-1]))
            levels.append(np.add.reduceat(levels[-1], starts, axis=0))
        return np.concatenate(levels)

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        h = len(list_level_sizes(self.points))
        moved = 2 if unit.replaces and (grouped or self.points > 1) else 1
        return Sensitivity(moved * h, moved * h)

    def reading(self) -> Reading:
        """Return the description of the tree for a plan, and where its points lie on the data's
        scale."""
        h = len(list_level_sizes(self.points))
        levels = f"{h} levels" if h > 1 else "one level"
        text = (
            f"values of {self.expr} at {self.points} points, {self.grid.step:g} apart, on {levels}"
        )
        return Reading(text, {}, constants=_describe_points(self.grid, self.points))


# Post-processing ----------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def _combine_variances(points: int) -> list[tuple[Floats, Floats]]:
    """Return two arrays of variances for each level of a tree of noisy counts, from the points up.

    The unit is the variance of one noisy count. The first array has the variance of each node's
    best estimate, from its own count and those below it. The second has the sum of the first over
    the node's children. Points have no children, and there the second is not used.
    """
    leaves = np.ones(points)
    by_level = [(leaves, leaves)]
    for size in list_level_sizes(points)[:-1]:
        below = np.add.reduceat(by_level[-1][0], _list_first_children(size))
        by_level.append((below / (1 + below), below))
    return by_level


def distribution(raw: Array, points: int) -> Floats:
    """Return the estimated number of values up to each point, from noisy counts of a tree, by least
    squares.

    ``raw`` has the counts of all levels, with a column for each group, and ``points`` is the number
    of points. The result has a row for each point; the last row has all values. Going up, the count
    of a node is averaged with the sum of its children, weighted by their variances. Going down,
    children are corrected to add up to their node.
    """
    sizes, variances = list_level_sizes(points), _combine_variances(points)
    noisy = np.split(raw.astype(float), np.cumsum(sizes)[:-1])
    upward = [noisy[0]]
    sums = []
    for level in range(1, len(sizes)):
        below = np.add.reduceat(upward[-1], _list_first_children(sizes[level - 1]), axis=0)
        spread = variances[level][1][:, None]
        sums.append(below)
        upward.append((spread * noisy[level] + below) / (1 + spread))
    best = upward[-1]
    for level in range(len(sizes) - 2, -1, -1):
        parent = np.arange(sizes[level]) // BRANCHES
        share = variances[level][0] / variances[level + 1][1][parent]
        best = upward[level] + share[:, None] * (best - sums[level])[parent]
    return np.cumsum(best, axis=0)


def deviations(points: int, q: float) -> Floats:
    """Return, for each point, the standard deviation of the noise in V - q A.

    V is the estimated number of values up to the point, and A that of all values. The deviation is
    for noisy counts of deviation 1.

    Consider the node of a level above a point. The error of the values from the start of the node
    up to the point is ``share`` times the error of the node, plus an uncorrelated error with the
    variance ``rest``. Both are carried from the points up to all values. ``first`` and ``second``
    are the covariance with the node above, and the variance.
    """
    sizes, variances = list_level_sizes(points), _combine_variances(points)
    place = np.arange(points)
    share, rest = np.ones(points), np.zeros(points)
    for level in range(1, len(sizes)):
        node_variances, below = variances[level - 1][0], variances[level][1]
        before = np.concatenate([[0.0], np.cumsum(node_variances)[:-1]])
        left = before[place] - before[place // BRANCHES * BRANCHES]
        first, second = (
            left + share * node_variances[place],
            left + share**2 * node_variances[place],
        )
        place = place // BRANCHES
        rest = rest + np.maximum(second - first**2 / below[place], 0)
        share = first / below[place]
    top = variances[-1][0]
    before = np.concatenate([[0.0], np.cumsum(top)[:-1]])[place]
    first, second, everything = (
        before + share * top[place],
        before + share**2 * top[place],
        top.sum(),
    )
    rest = rest + np.maximum(second - first**2 / everything, 0)
    return np.asarray(np.sqrt((first / everything - q) ** 2 * everything + rest))


def read_quantile(cumulative: Floats, q: float) -> NDArray[np.intp]:
    """Return, for each group, the index of the first point at which the estimated distribution
    reaches a share q of all values.

    ``cumulative`` is the estimated number of values up to each point. Noise may let it fall, so it
    is made monotone first: halfway between its running maximum, and its running minimum from the
    end.
    """
    rising = np.maximum.accumulate(cumulative, axis=0)
    falling = np.minimum.accumulate(cumulative[::-1], axis=0)[::-1]
    reached = (rising + falling) / 2 >= q * np.maximum(cumulative[-1:], 0)
    return np.asarray(np.where(reached.any(axis=0), reached.argmax(axis=0), len(cumulative) - 1))


def enclose(
    cumulative: Floats, q: float, reach: float, spare: Floats | float = 0.0
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the confidence interval of the quantile q: the indices of the lowest and the highest
    point that could be it, for each group.

    ``cumulative`` is the estimated distribution, with a column for each group. A point is possible
    if values up to it may be q of all, and values before it may be fewer. Each estimate may be off
    by ``reach`` deviations of its noise and ``spare`` ranks.
    """
    slack = reach * deviations(len(cumulative), q)[:, None] + spare
    excess = cumulative - q * cumulative[-1:]
    before = np.concatenate([np.full((1, excess.shape[1]), -np.inf), (excess - slack)[:-1]])
    possible = (excess + slack >= 0) & (before <= 0)
    chosen, places = read_quantile(cumulative, q), np.arange(len(cumulative))[:, None]
    low = np.where(possible, places, len(cumulative)).min(axis=0)
    high = np.where(possible, places, -1).max(axis=0)
    return np.minimum(low, chosen), np.maximum(high, chosen)


_last: list[tuple[Any, Floats | None]] = [(None, None)]


def estimate_distribution(raw: Array, points: int) -> Floats:
    """Return the `distribution` of a release of noisy counts. The last one is kept, since all its
    quantiles need it."""
    last_raw, cumulative = _last[0]
    if last_raw is not raw or cumulative is None:
        cumulative = distribution(raw, points)
        _last[0] = (raw, cumulative)
    return cumulative
