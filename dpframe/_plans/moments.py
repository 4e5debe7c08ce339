"""Variances, deviations, standard errors, skewness and covariances."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._errors import BadValue
from dpframe._plans.aggregates import (
    Aggregate,
    Cell,
    Floats,
    Interval,
    Mean,
    Measured,
    N,
    OfColumn,
    Output,
    Setting,
    Vector,
    aggregation,
    fieller,
    ratio,
    too_wide,
    within,
)
from dpframe._statistics.base import SQUARE_BITS, Grid, Pair, Reading, Statistic

STEPS = np.linspace(
    0, 1, 33
)  # the means, from end to end of their interval, about which moments are taken
PAIRS = tuple(product(STEPS[::4], repeat=2))  # the same of two numbers at once
# The largest third moment about their mean that values between 0 and 1 have.
LARGEST_CUBE = 1 / (6 * math.sqrt(3))


_ON_SQUARES = 0.9  # of the risk of a variance's interval, what the squares about the mean take


class WeightedSums:
    """Weighted sums of some noisy ones, where the weights differ by group: their values, and the
    covariance of their noise."""

    def __init__(self, m: Measured, *names: str):
        self._m, self._names = m, names
        self._covariances = {(a, b): m.covariance({a: 1.0}, {b: 1.0}) for a in names for b in names}

    @cached_property
    def values(self) -> dict[str, Floats]:
        """The noisy sums themselves, once they are released."""
        return {name: self._m.values({name: 1.0}).astype(float) for name in self._names}

    def covariance(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> Floats:
        """The covariance of the noise in two weighted sums."""
        covariances = self._covariances
        return np.asarray(
            sum(u * v * covariances[a, b] for a, u in first.items() for b, v in second.items())
        )

    def with_count(self, weights: Mapping[str, Floats]) -> tuple[Floats, Floats, Floats]:
        """The variance of a weighted sum, its covariance with the count, and the variance of the
        count."""
        pairs = (weights, weights), (weights, N), (N, N)
        variance, shared, of_count = (self.covariance(*pair) for pair in pairs)
        return variance, shared, of_count

    def ratio(
        self, top: Mapping[str, Any], bottom: Mapping[str, Any], less: Floats | float, reach: float
    ) -> tuple[Floats, Floats]:
        """The Fieller set of one weighted sum over another, of which the latter is ``less`` a
        public number."""
        numerator, denominator = (
            sum(w * self.values[name] for name, w in each.items()) for each in (top, bottom)
        )
        pairs = (top, top), (top, bottom), (bottom, bottom)
        variance, shared, below = (self.covariance(*pair) for pair in pairs)
        return fieller(
            np.asarray(numerator), np.asarray(denominator) - less, variance, shared, below, reach
        )


def sizes(m: Measured, level: float, least: float) -> tuple[Floats, Floats]:
    """The ends of the interval of the number of values, which is taken to be ``least`` at least."""
    n, spare = m.values(N).astype(float), m.half_width(N, level)
    return np.maximum(n - spare, least), np.maximum(n + spare, least)


@aggregation("var")
class Var(Aggregate):
    """E[t**2] - E[t]**2, times n / (n - ddof)."""

    degree = 2
    needs_bounds = True
    takes_ddof = True
    named_in_agg = True
    found_at_once = True

    def vector_of(self, out: Output) -> Vector:
        return OfColumn(*out.clipped[0])

    def value(self, m: Measured) -> NDArray[Any]:
        return self._unit_value(m) * (m.cell.upper - m.cell.lower) ** 2

    def _unit_value(self, m: Measured) -> Floats:
        n, t1, t2 = (m.values({name: 1.0}).astype(float) for name in ("n", "t1", "t2"))
        population: Floats = np.clip(
            ratio(t2, n, empty=1 / 3) - ratio(t1, n, empty=0.5) ** 2, 0.0, 0.25
        )
        n = np.maximum(n, 2.0)
        unbiased: Floats = population * n / (n - m.cell.ddof)
        return unbiased

    def interval(self, m: Measured, level: float) -> Interval:
        low, high = self.unit_interval(m, level)
        width = m.cell.upper - m.cell.lower
        return low * width**2, high * width**2

    def unit_interval(self, m: Measured, level: float) -> tuple[Floats, Floats]:
        low, high, fewest, most = self.pieces(m, 1 - level)
        ddof = m.cell.ddof
        return low * most / (most - ddof), high * fewest / (fewest - ddof)

    @staticmethod
    def pieces(m: Measured, risk: float) -> tuple[Floats, Floats, Floats, Floats]:
        """The ends of the population variance, and of the number of values: all hold together, but
        for the risk."""
        # A twentieth of the risk each on the mean and on the count, the rest on the squares about
        # the mean.
        n, t1, t2 = (m.values({name: 1.0}).astype(float) for name in ("n", "t1", "t2"))
        mean_low, mean_high = Mean().unit_interval(m, 1 - risk / 20)
        sums = WeightedSums(m, "n", "t1", "t2")
        reach = m.reach(1 - risk * _ON_SQUARES)
        low, high = np.full(n.shape, np.inf), np.full(n.shape, -np.inf)
        for share in STEPS:
            mean = mean_low + share * (mean_high - mean_low)
            about = t2 - 2 * mean * t1 + mean**2 * n
            noise = sums.with_count(_squares(mean))
            some_low, some_high = fieller(about, n, *noise, reach)
            low, high = np.minimum(low, some_low), np.maximum(high, some_high)
        return *within(low, high, limit=0.25), *sizes(m, 1 - risk / 20, least=2.0)

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        if n is None:
            return None
        about = [
            {"t2": 1.0, "t1": -2 * t, "n": t * t - v} for t in (0.0, 0.5, 1.0) for v in (0.0, 0.25)
        ]
        worst = max(m.covariance(c, c) for c in about)
        width = (m.cell.upper - m.cell.lower) ** 2
        reach = m.reach(1 - (1 - level) * _ON_SQUARES)
        return min(width / 4, width * reach * math.sqrt(worst) / max(n, 1e-300))

    def yard(self, cell: Cell, n: float = math.inf) -> tuple[float, float]:
        width = (cell.upper - cell.lower) ** 2
        return width / 40_000, width / 4


@aggregation("std")
class Std(Var):
    of_durations = True

    def imagined(self, n: Floats) -> dict[str, Floats]:
        return _sums(n, *_ways_to_lie(0.5)[:2])

    def value(self, m: Measured) -> NDArray[Any]:
        return np.asarray(np.sqrt(self._unit_value(m)) * (m.cell.upper - m.cell.lower))

    def interval(self, m: Measured, level: float) -> Interval:
        low, high = self.unit_interval(m, level)
        width = m.cell.upper - m.cell.lower
        return np.sqrt(low) * width, np.sqrt(high) * width

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return None  # near a deviation of zero the error of a root is not proportional to 1/n

    def yard(self, cell: Cell, n: float = math.inf) -> tuple[float, float]:
        width = cell.upper - cell.lower
        return width / 200, width / 2


@aggregation("sem")
class Sem(Std):
    """The standard error of the mean: the deviation over the root of the number of values."""

    of_durations = False  # as in pandas

    def value(self, m: Measured) -> NDArray[Any]:
        n = np.maximum(m.values(N).astype(float), 2.0)
        return np.asarray(super().value(m) / np.sqrt(n))

    def unit_interval(self, m: Measured, level: float) -> tuple[Floats, Floats]:
        # Its square q is the sum of squares over n (n - ddof). Near a number of values n the count
        # N gives that denominator as (2 n - ddof) N - n**2: right in value and in slope at n, so
        # that it hardly matters which n is taken.
        risk, ddof = 1 - level, m.cell.ddof
        mean_low, mean_high = Mean().unit_interval(m, 1 - risk / 20)
        fewest, most = sizes(m, 1 - risk / 20, least=2.0)
        sums, reach = WeightedSums(m, "n", "t1", "t2"), m.reach(1 - risk * 0.9)
        low, high = np.full(fewest.shape, np.inf), np.full(fewest.shape, -np.inf)
        for i, j in PAIRS:
            mean, n = mean_low + i * (mean_high - mean_low), fewest + j * (most - fewest)
            some = sums.ratio(_squares(mean), {"n": 2 * n - ddof}, n * n, reach)
            low, high = np.minimum(low, some[0]), np.maximum(high, some[1])
        return within(low, high, limit=0.25 / (fewest - ddof))

    def yard(self, cell: Cell, n: float = math.inf) -> tuple[float, float]:
        return 0.0, (cell.upper - cell.lower) / 2


@aggregation("skew")
class Skew(Aggregate):
    """E[(t - m)**3] / E[(t - m)**2]**1.5 about the mean m, times sqrt(n (n - 1)) / (n - 2), as
    pandas has it."""

    degree = 3
    needs_bounds = True
    named_in_agg = True
    found_at_once = True

    def vector_of(self, out: Output) -> Vector:
        return OfColumn(*out.clipped[0])

    def value(self, m: Measured) -> NDArray[Any]:
        n, t1, t2, t3 = (m.values({name: 1.0}).astype(float) for name in ("n", "t1", "t2", "t3"))
        first, second, third = (
            ratio(t1, n, empty=1 / 2),
            ratio(t2, n, empty=1 / 3),
            ratio(t3, n, empty=1 / 4),
        )
        cubes = np.clip(third - 3 * first * second + 2 * first**3, -LARGEST_CUBE, LARGEST_CUBE)
        spread = np.clip(second - first**2, 0.0, 0.25) ** 1.5
        return _unbiased(
            np.where(spread > 0, cubes / np.where(spread > 0, spread, 1.0), 0.0), np.maximum(n, 3.0)
        )

    def interval(self, m: Measured, level: float) -> Interval:
        # A twentieth of the risk on the mean, a tenth on the variance and the count, the rest on
        # the cubes about the mean.
        risk = 1 - level
        mean_low, mean_high = Mean().unit_interval(m, 1 - risk / 20)
        var_low, var_high, fewest, most = Var.pieces(m, risk / 10)
        sums, reach = WeightedSums(m, "n", "t1", "t2", "t3"), m.reach(1 - risk * 0.85)
        low, high = np.full(fewest.shape, np.inf), np.full(fewest.shape, -np.inf)
        for i, j in PAIRS:
            mean, var = mean_low + i * (mean_high - mean_low), var_low + j * (var_high - var_low)
            interval = sums.ratio(_cubes(mean, var), _spread(mean, np.sqrt(var)), 0.0, reach)
            low, high = np.minimum(low, interval[0]), np.maximum(high, interval[1])
        ends = np.maximum(fewest, 3.0), np.maximum(most, 3.0)
        lows, highs = ([_unbiased(end, n) for n in ends] for end in (low, high))
        return np.minimum(*lows), np.maximum(*highs)

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return None  # it depends on how far apart the values are

    def imagined(self, n: Floats) -> dict[str, Floats]:
        return _sums(n, *_ways_to_lie(0.0, 0.5, 1.0))

    def yard(self, cell: Cell, n: float = math.inf) -> tuple[float, float]:
        return 1.0, math.inf  # which is the skewness of waiting times


def _ways_to_lie(*sides: float) -> tuple[Floats, Floats, Floats]:
    """Means, variances and third moments about the mean that values between 0 and 1 may have: from
    one end to the other, close together and as far apart as can be, and leaning to either side. Two
    values alone have the extremes of each."""
    means = STEPS[[1, 4, 8, 12, 16, 20, 24, 28, 31]]
    mean, part, side = (grid.ravel() for grid in np.meshgrid(means, STEPS[::4] ** 2, sides))
    var = mean * (1 - mean) * part
    least, most = var * (var / mean - mean), var * (1 - mean - var / (1 - mean))
    return mean, var, least + side * (most - least)


def _sums(n: Floats, mean: Floats, var: Floats, third: Floats | None = None) -> dict[str, Floats]:
    """The sums of ``n`` values between 0 and 1 with these moments, a row for each way to lie and a
    column for each number."""
    powers = {"n": np.ones_like(mean), "t1": mean, "t2": var + mean**2}
    if third is not None:
        powers["t3"] = third + 3 * mean * var + mean**3
    return {name: np.multiply.outer(power, n) for name, power in powers.items()}


def _squares(mean: Floats) -> dict[str, Floats]:
    """The weights of the squares about the mean."""
    return {"n": mean**2, "t1": -2 * mean, "t2": np.ones_like(mean)}


def _cubes(mean: Floats, var: Floats) -> dict[str, Floats]:
    """The weights of the cubes about the mean, less a sum that is zero there and has their slope in
    the mean."""
    return {
        "t3": np.ones_like(mean),
        "t2": -3 * mean,
        "t1": 3 * mean**2 - 3 * var,
        "n": 3 * var * mean - mean**3,
    }


def _spread(mean: Floats, std: Floats) -> dict[str, Floats]:
    """The weights of n times the deviation to the power 3, by the squares, in the form that has no
    slope in the deviation."""
    return {"t2": 1.5 * std, "t1": -3 * std * mean, "n": 1.5 * std * mean**2 - 0.5 * std**3}


def _unbiased(skewness: Floats, n: Floats) -> Floats:
    """The skewness as pandas corrects it for n values, which have none beyond sqrt(n) then."""
    return np.clip(skewness * np.sqrt(n * (n - 1)) / (n - 2), -np.sqrt(n), np.sqrt(n))


@dataclass(frozen=True, slots=True)
class OfPair(Vector):
    """The mixed moments of two columns; each output has a pair of its own."""

    place = 8

    out: Output

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        (first_expr, first_bounds), (second_expr, second_bounds) = self.out.clipped
        for expr, column_bounds in self.out.clipped:
            if too_wide(column_bounds, 2):
                raise BadValue(
                    f"the bounds of {expr} are too wide for products to be doubles. Rescale the column."
                )
        return Pair(
            first_expr,
            Grid.for_width(first_bounds, SQUARE_BITS),
            second_expr,
            Grid.for_width(second_bounds, SQUARE_BITS),
        )


_ON_PRODUCTS = (
    0.85  # of the risk of a covariance's interval, what the products about the means take
)


@aggregation("cov")
class Cov(Aggregate):
    """E[ts] - E[t]E[s], times n / (n - ddof), over rows where neither is null."""

    degree = 2
    needs_bounds = True
    takes_ddof = True

    def vector_of(self, out: Output) -> Vector:
        return OfPair(out)

    def cell(
        self, out: Output, part: int, place: int, statistic: Statistic, reading: Reading
    ) -> Cell:
        (_, first), (_, second) = out.clipped
        product = (first.upper - first.lower) * (second.upper - second.lower)
        return replace(super().cell(out, part, place, statistic, reading), lower=0.0, upper=product)

    def value(self, m: Measured) -> NDArray[Any]:
        n, t, s, ts = (m.values({name: 1.0}).astype(float) for name in ("n", "t1", "s1", "st"))
        mixed = ratio(ts, n, empty=0.25) - ratio(t, n, empty=0.5) * ratio(s, n, empty=0.5)
        n = np.maximum(n, 2.0)
        return np.asarray(np.clip(mixed, -0.25, 0.25) * n / (n - m.cell.ddof) * m.cell.upper)

    def interval(self, m: Measured, level: float) -> Interval:
        # As for a variance, about the means of both columns: a twentieth of the risk each on these
        # and on the count.
        risk = 1 - level
        sums = WeightedSums(m, "st", "s1", "t1", "n")
        means = [
            within(*sums.ratio({name: 1.0}, N, 0.0, m.reach(1 - risk / 20)), limit=1.0)
            for name in ("t1", "s1")
        ]
        low, high = np.full(means[0][0].shape, np.inf), np.full(means[0][0].shape, -np.inf)
        for places in PAIRS:
            a, b = (
                least + place * (most - least)
                for place, (least, most) in zip(places, means, strict=True)
            )
            some = sums.ratio(_products(a, b), N, 0.0, m.reach(1 - risk * _ON_PRODUCTS))
            low, high = np.minimum(low, some[0]), np.maximum(high, some[1])
        low, high = np.clip(low, -0.25, 0.25), np.clip(high, -0.25, 0.25)
        factors = [size / (size - m.cell.ddof) for size in sizes(m, 1 - risk / 20, least=2.0)]
        low, high = (
            np.minimum(*(low * f for f in factors)),
            np.maximum(*(high * f for f in factors)),
        )
        return low * m.cell.upper, high * m.cell.upper

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        if n is None:
            return None
        # The largest that the noise about any two means can be, and the covariances that these
        # allow.
        a, b = (grid.ravel() for grid in np.meshgrid(STEPS, STEPS))
        variance, shared, of_n = WeightedSums(m, "st", "s1", "t1", "n").with_count(_products(a, b))
        ends = np.minimum(a * (1 - b), b * (1 - a)), -np.minimum(a * b, (1 - a) * (1 - b))
        worst = max(float(np.max(variance - 2 * r * shared + r * r * of_n)) for r in ends)
        reach = m.reach(1 - (1 - level) * _ON_PRODUCTS)
        return min(m.cell.upper / 2, m.cell.upper * reach * math.sqrt(worst) / max(n, 1e-300))

    def yard(self, cell: Cell, n: float = math.inf) -> tuple[float, float]:
        # Where deviations are a tenth of the bounds this is a correlation of a quarter.
        return cell.upper / 400, cell.upper / 2


def _products(first: Floats, second: Floats) -> dict[str, Floats]:
    """The weights of the products about a mean of each column."""
    return {"st": np.ones_like(first), "s1": -first, "t1": -second, "n": first * second}
