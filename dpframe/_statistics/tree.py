"""A distribution as a tree of counts: its statistic, and the best estimate of it from noisy counts.

Every node counts the values below it, so each count is measured several times: by itself, by its children, and by what
its parent leaves. Weighted least squares puts these together (Hay et al. 2010; Honaker 2015), as post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._errors import BadValue
from dpframe._expr import Expr
from dpframe._groups.unit import Unit
from dpframe._statistics.base import Grid, Integers, Leaves, Primitive, Reduced, Sensitivity, Statistic
from dpframe._statistics.ranks import LEAF_CEILING, leaf_grid
from dpframe._validate import Bounds

Floats = NDArray[np.float64]
BRANCHES = 16  # of 2 to 64 the least error of a distribution function at 2**6 to 2**14 points


@lru_cache(maxsize=256)
def level_sizes(points: int) -> tuple[int, ...]:
    """How many nodes each level has: the points first, then a node for every 16 below, while there are more than 16.

    There is no root: what the number of all values would tell beside the nodes below it is worth less than its noise.
    """
    sizes = [points]
    while sizes[-1] > BRANCHES:
        sizes.append(-(-sizes[-1] // BRANCHES))
    return tuple(sizes)


def _starts(size: int) -> NDArray[np.intp]:
    return np.arange(0, size, BRANCHES)


@dataclass(frozen=True, slots=True)
class Tree(Statistic):
    """Counts of non-null values below every node of a tree over the points of a grid.

    A row adds 1 to one node of each of h levels, so add-remove moves the vector by h in L1 and sqrt(h) in L2, and
    replace-one by 2 h and sqrt(2 h). A grid of one point has one count, which a row replaced moves by 1 without groups.
    """

    expr: Expr
    grid: Grid

    @staticmethod
    def of(expr: Expr, bounds: Bounds, resolution: float | None, groups: int) -> Tree:
        found = Tree(expr, leaf_grid(expr, bounds, resolution))
        if found.points * groups > LEAF_CEILING:
            raise BadValue(
                f"a distribution of {expr} at {found.points} points in {groups} groups is more than {LEAF_CEILING} "
                "numbers: give a coarser resolution=."
            )
        return found

    @property
    def points(self) -> int:
        return Leaves(self.expr, self.grid).points

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Leaves(self.expr, self.grid),)

    def shape(self, groups: int) -> tuple[int, ...]:
        return sum(level_sizes(self.points)), groups

    def integers(self, reduced: Reduced) -> Integers:
        levels = [reduced[self.primitives[0]]]
        for _ in level_sizes(self.points)[1:]:
            levels.append(np.add.reduceat(levels[-1], _starts(len(levels[-1])), axis=0))
        return np.concatenate(levels)

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        h = len(level_sizes(self.points))
        moved = 2 if unit.replaces and (grouped or self.points > 1) else 1
        return Sensitivity(moved * h, moved * h)

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
        h = len(level_sizes(self.points))
        levels = f"{h} levels" if h > 1 else "one level"
        return f"values of {self.expr} at {self.points} points, {self.grid.step:g} apart, on {levels}"


# Post-processing ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def _variances(points: int) -> list[tuple[Floats, Floats]]:
    """By level: the variance of each node estimated from below and by itself, and the sum of it over its children.

    In units of the variance of one count. At the points themselves the second is not used.
    """
    own = np.ones(points)
    found = [(own, own)]
    for size in level_sizes(points)[:-1]:
        below = np.add.reduceat(found[-1][0], _starts(size))
        found.append((below / (1 + below), below))
    return found


def distribution(raw: NDArray[Any], points: int) -> Floats:
    """How many values lie up to each point, by least squares: a column a group, the last row the number of values."""
    sizes, variances = level_sizes(points), _variances(points)
    noisy = np.split(raw.astype(float), np.cumsum(sizes)[:-1])
    upward = [noisy[0]]
    sums = []
    for level in range(1, len(sizes)):
        below = np.add.reduceat(upward[-1], _starts(sizes[level - 1]), axis=0)
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
    """The standard deviation of the noise in (values up to each point) - q (all values), for counts of deviation 1.

    What is left of a point within a node is ``share * node + rest``, and least squares leaves the rest uncorrelated with the
    node. Both are carried from the points to all values.
    """
    sizes, variances = level_sizes(points), _variances(points)
    place = np.arange(points)
    share, rest = np.ones(points), np.zeros(points)
    for level in range(1, len(sizes)):
        own, below = variances[level - 1][0], variances[level][1]
        before = np.concatenate([[0.0], np.cumsum(own)[:-1]])
        left = before[place] - before[place // BRANCHES * BRANCHES]
        first, second = left + share * own[place], left + share**2 * own[place]
        place = place // BRANCHES
        rest = rest + np.maximum(second - first**2 / below[place], 0)
        share = first / below[place]
    top = variances[-1][0]
    before = np.concatenate([[0.0], np.cumsum(top)[:-1]])[place]
    first, second, everything = before + share * top[place], before + share**2 * top[place], top.sum()
    rest = rest + np.maximum(second - first**2 / everything, 0)
    return np.asarray(np.sqrt((first / everything - q) ** 2 * everything + rest))


def read_off(cumulative: Floats, q: float) -> NDArray[np.intp]:
    """The first point at which a monotone version of the distribution function reaches a share q of all values."""
    rising = np.maximum.accumulate(cumulative, axis=0)
    falling = np.minimum.accumulate(cumulative[::-1], axis=0)[::-1]
    reached = (rising + falling) / 2 >= q * np.maximum(cumulative[-1:], 0)
    return np.asarray(np.where(reached.any(axis=0), reached.argmax(axis=0), len(cumulative) - 1))


def enclose(cumulative: Floats, q: float, reach: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The outermost points that could be the quantile, if no single estimate is off by more than ``reach`` deviations."""
    slack = reach * deviations(len(cumulative), q)[:, None]
    excess = cumulative - q * cumulative[-1:]
    before = np.concatenate([np.full((1, excess.shape[1]), -np.inf), (excess - slack)[:-1]])
    possible = (excess + slack >= 0) & (before <= 0)
    chosen, places = read_off(cumulative, q), np.arange(len(cumulative))[:, None]
    low = np.where(possible, places, len(cumulative)).min(axis=0)
    high = np.where(possible, places, -1).max(axis=0)
    return np.minimum(low, chosen), np.maximum(high, chosen)


_last: list[tuple[Any, Floats | None]] = [(None, None)]


def estimated(raw: NDArray[Any], points: int) -> Floats:
    """The same, once for all quantiles that are read off one release."""
    known, found = _last[0]
    if known is not raw or found is None:
        found = distribution(raw, points)
        _last[0] = (raw, found)
    return found
