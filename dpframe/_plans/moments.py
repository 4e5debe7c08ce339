"""Aggregates that are made of moments: from sums and means to skewness and covariances."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from operator import attrgetter
from typing import Any

import numpy as np

from dpframe._errors import BadValue
from dpframe._expr import Expr
from dpframe._plans import sampling
from dpframe._plans.aggregates import (
    AGGREGATES,
    Aggregate,
    Cell,
    Floats,
    Interval,
    Measured,
    Output,
    Setting,
    VectorKey,
    enclose_sum,
    expect_sum_error,
    fieller,
    find_sum_deviation,
    is_too_wide,
    judge_within_bounds,
    measure_sum,
    powers,
    ratio,
    register,
    within,
)
from dpframe._statistics.base import (
    MAGNITUDE_BITS,
    SQUARE_BITS,
    VALUE_BITS,
    Centred,
    Grid,
    Pair,
    Simplex,
    Statistic,
    Total,
)
from dpframe._statistics.counts import ValueCount
from dpframe._types import Array
from dpframe._validate import Bounds

N, T1 = {"n": 1.0}, {"t1": 1.0}

# The means, from end to end of their interval, about which moments are taken.
STEPS = np.linspace(0, 1, 33)
# The same for two numbers at once.
PAIRS = tuple(product(STEPS[::4], repeat=2))
# The largest third moment about their mean that values between 0 and 1 have.
LARGEST_CUBE = 1 / (6 * math.sqrt(3))
# The part of the risk of a variance's interval that the squares about the mean take.
_ON_SQUARES = 0.9
# The part of the risk of a covariance's interval that the products about the means take.
_ON_PRODUCTS = 0.85


# What they are read off ---------------------------------------------------------------------------


def make_column(vector: VectorKey, outputs: Sequence[Output], setting: Setting) -> Statistic:
    """Return the statistic for a column: the sums of powers that its outputs need.

    ``vector`` has the column and its bounds. Without bounds the values are counted alone. Bounds
    too wide for the powers are refused.
    """
    expr, bounds = vector.expr, vector.bounds
    assert expr is not None
    nulls = setting.rows and expr.nullable
    if bounds is None:
        return ValueCount(expr, nulls)
    names = {*map(attrgetter("aggregate"), outputs)}
    if len(names) == 1 and not setting.rows:
        alone = AGGREGATES[outputs[0].aggregate].alone
        statistic = None if alone is None else alone(outputs[0], setting)
        if statistic is not None:
            return statistic
    degree = max([AGGREGATES[name].degree for name in names])
    if degree > 1 and is_too_wide(bounds, degree):
        raise BadValue(
            f"the bounds of {expr} are too wide for {powers(degree)} to be doubles. Rescale the "
            "column."
        )
    return Simplex(expr, Grid.for_width(bounds, VALUE_BITS, degree), degree, nulls)


def column_vector(expr: Expr, bounds: Bounds | None = None) -> VectorKey:
    """Return the key of the values of a column, and of their moments if there are bounds."""
    return VectorKey(make_column, 1, expr, bounds)


def _read_clipped(out: Output) -> VectorKey:
    """Return the key of the vector that an output of a clipped column is computed from."""
    assert out.expr is not None
    return VectorKey(make_column, 1, out.expr, out.bounds)


def _make_pair(vector: VectorKey, outputs: Sequence[Output], setting: Setting) -> Statistic:
    """Return the statistic for two columns: the sums of their values and of their products.

    The output has both columns with their bounds. Bounds too wide for products are refused.
    """
    (first_expr, first_bounds), (second_expr, second_bounds) = outputs[0].clipped
    for expr, column_bounds in outputs[0].clipped:
        if is_too_wide(column_bounds, 2):
            raise BadValue(
                f"the bounds of {expr} are too wide for products to be doubles. Rescale the column."
            )
    return Pair(
        first_expr,
        Grid.for_width(first_bounds, SQUARE_BITS),
        second_expr,
        Grid.for_width(second_bounds, SQUARE_BITS),
    )


def are_whole(expr: Expr, bounds: Bounds) -> bool:
    """Return whether sums of a column are small whole numbers whatever the data, by its dtype and
    bounds."""
    small = max(abs(bounds.lower), abs(bounds.upper)) < 2**MAGNITUDE_BITS
    return expr.integral and small and bounds.lower.is_integer() and bounds.upper.is_integer()


# Sums ---------------------------------------------------------------------------------------------


def _sum_alone(out: Output, setting: Setting) -> Statistic:
    """Return the statistic for a sum that is the only output of its column.

    It measures from zero, which needs less noise.
    """
    expr, bounds = out.clipped[0]
    always = setting.public_rows is not None and not expr.nullable
    # The total of a person is scaled. On a grid of whole numbers it would be rounded too far.
    whole = are_whole(expr, bounds) and not setting.unit.people
    return Total(expr, Grid.for_magnitude(bounds, MAGNITUDE_BITS, whole), always)


def _mark_whole_sum(cell: Cell, out: Output, place: int, statistic: Statistic) -> Cell:
    """Return the cell marked with whether its sum is always a whole number."""
    return replace(cell, whole=are_whole(*out.clipped[0]))


def _combine_sum(cell: Cell) -> dict[str, float]:
    """Return the sum of a column as weights of the noisy sums, by their names."""
    if "total" in cell.functionals:
        return {"total": 1.0}
    return {"n": cell.lower, "t1": cell.upper - cell.lower}


def _judge_sum(cell: Cell, n: float = math.inf) -> tuple[float, float]:
    """Return the scales by which a sum is judged as noise: no least size, and twice the largest
    total.

    ``n`` is the largest number of values. A half width of the largest total is as large as the sum
    itself.
    """
    largest = max(abs(cell.lower), abs(cell.upper))
    return 0.0, 2 * n * largest if largest else math.inf


# Means --------------------------------------------------------------------------------------------


def _mean_alone(out: Output, setting: Setting) -> Statistic | None:
    """Return the statistic for a mean that is the only output of its column, or None for the usual
    one.

    Without groups, and with rows replaced, distances from the middle of the bounds need less noise.
    """
    expr, bounds = out.expr, out.bounds
    if not setting.unit.replaces or setting.query.by or expr is None or bounds is None:
        return None
    public = None if expr.nullable else setting.public_rows
    return Centred(expr, Grid.for_width(bounds, VALUE_BITS), public)


def _stretch(cell: Cell, t: Floats) -> Floats:
    """Return numbers in data units, from the scale on which the bounds are 0 and 1."""
    return (cell.lower * (1 - t) + cell.upper * t).clip(cell.lower, cell.upper)


def measure_mean(m: Measured) -> Array:
    """Return the noisy mean of each group, within the bounds. ``m`` has the noisy sums."""
    n, t1 = m.values(N).astype(float, copy=False), m.values(T1).astype(float, copy=False)
    return _stretch(m.cell, ratio(t1, n, empty=0.5))


def enclose_unit_mean(m: Measured, level: float) -> tuple[Floats, Floats]:
    """Return the interval of the mean of each group, on the scale where the bounds are 0 and 1.

    ``m`` has the noisy sums, and ``level`` is the confidence.
    """
    n, t1 = m.values(N).astype(float), m.values(T1).astype(float)
    moments = m.covariance(T1, T1), m.covariance(T1, N), m.covariance(N, N)
    return within(*fieller(t1, n, *moments, m.reach(level)), limit=1.0)


def enclose_mean(m: Measured, level: float) -> Interval:
    """Return the interval of the mean of each group: its lower and its upper ends.

    ``m`` has the noisy sums, and ``level`` is the confidence.
    """
    low, high = enclose_unit_mean(m, level)
    bottom = _stretch(m.cell, low)
    # Between bounds that are a few doubles apart rounding may swap the ends.
    return bottom, np.maximum(bottom, _stretch(m.cell, high))


def _enclose_population_mean(m: Measured, level: float) -> Interval:
    """Return the interval of the mean of the population that the people were drawn from.

    ``m`` has the noisy sums, and ``level`` is the confidence.
    """
    low, high = sampling.make_draws(m, 1 - level).ends(
        sampling.find_rate((1 - level) * sampling.REST)
    )
    return _stretch(m.cell, low), _stretch(m.cell, high)


def _expect_mean_error(m: Measured, level: float, n: float | None) -> float | None:
    """Return half the width of the interval to expect for a mean of ``n`` values, whatever they
    are.

    ``level`` is the confidence. Return None if ``n`` is not known. The largest variance of the noise
    is taken, over some means t between the bounds.
    """
    if n is None and "n" in m.cell.constants:
        n = m.cell.constants["n"]
    if n is None:
        return None
    width = m.cell.upper - m.cell.lower
    worst = max(m.covariance(c, c) for c in ({"t1": 1.0, "n": -t} for t in (0.0, 0.5, 1.0)))
    return min(width, width * m.reach(level) * math.sqrt(worst) / max(n, 1e-300))


def _find_mean_deviation(m: Measured) -> Floats | None:
    """Return the standard deviation of the noise in each mean, to first order of the noise.

    It is NaN where the number of values may be 0, and None before the release.
    """
    if m.raw is None or m.cell.duration:
        return None
    n, t1 = m.values(N).astype(float), m.values(T1).astype(float)
    share = ratio(t1, n, empty=0.5)
    variance = m.covariance(T1, T1) - 2 * share * m.covariance(T1, N)
    variance = np.maximum(variance + share**2 * m.covariance(N, N), 0.0)
    sure = n > m.half_width(N, 0.95)
    width = m.cell.upper - m.cell.lower
    return np.where(sure, width * np.sqrt(variance) / np.where(sure, n, 1.0), math.nan)


# Weighted sums ------------------------------------------------------------------------------------


class WeightedSums:
    """Combinations of noisy sums with weights that differ by group: their values and
    covariances."""

    def __init__(self, m: Measured, *names: str):
        self._m, self._names = m, names
        self._covariances = {(a, b): m.covariance({a: 1.0}, {b: 1.0}) for a in names for b in names}

    @cached_property
    def values(self) -> dict[str, Floats]:
        """The noisy sums, after the release."""
        return {name: self._m.values({name: 1.0}).astype(float) for name in self._names}

    def covariance(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> Floats:
        """Return the covariance of the noise in two combinations. Each has the weights of the sums
        by name."""
        covariances = self._covariances
        return np.asarray(
            sum(u * v * covariances[a, b] for a, u in first.items() for b, v in second.items())
        )

    def with_count(self, weights: Mapping[str, Floats]) -> tuple[Floats, Floats, Floats]:
        """Return the noise of a combination beside the count ``n``.

        These are the variance of the combination, its covariance with the count, and the variance
        of the count.
        """
        pairs = (weights, weights), (weights, N), (N, N)
        variance, shared, of_count = (self.covariance(*pair) for pair in pairs)
        return variance, shared, of_count

    def ratio(
        self, top: Mapping[str, Any], bottom: Mapping[str, Any], less: Floats | float, reach: float
    ) -> tuple[Floats, Floats]:
        """Return the interval of one combination over another, by Fieller's method.

        ``top`` and ``bottom`` have the weights of the sums by name. The public number ``less`` is
        subtracted from the denominator. ``reach`` is how many deviations are allowed.
        """
        numerator, denominator = (
            sum(w * self.values[name] for name, w in each.items()) for each in (top, bottom)
        )
        pairs = (top, top), (top, bottom), (bottom, bottom)
        variance, shared, below = (self.covariance(*pair) for pair in pairs)
        return fieller(
            np.asarray(numerator), np.asarray(denominator) - less, variance, shared, below, reach
        )


def enclose_sizes(m: Measured, level: float, least: float) -> tuple[Floats, Floats]:
    """Return the interval of the number of values of each group, taken to be at least ``least``.

    ``level`` is the confidence.
    """
    n, spare = m.values(N).astype(float), m.half_width(N, level)
    return np.maximum(n - spare, least), np.maximum(n + spare, least)


def _read_sums(m: Measured, *names: str) -> list[Floats]:
    """Return the noisy sums of these names."""
    return [m.values({name: 1.0}).astype(float) for name in names]


# Variances ----------------------------------------------------------------------------------------


def _measure_unit_variance(m: Measured) -> Floats:
    """Return the noisy variance of each group, on the scale where the bounds are 0 and 1.

    ``m`` has the noisy sums. The variance is E[t**2] - E[t]**2, times n / (n - ddof).
    """
    n, t1, t2 = _read_sums(m, "n", "t1", "t2")
    population: Floats = np.clip(
        ratio(t2, n, empty=1 / 3) - ratio(t1, n, empty=0.5) ** 2, 0.0, 0.25
    )
    n = np.maximum(n, 2.0)
    unbiased: Floats = population * n / (n - m.cell.ddof)
    return unbiased


def _measure_variance(m: Measured) -> Array:
    """Return the noisy variance of each group, in squared data units."""
    return _measure_unit_variance(m) * (m.cell.upper - m.cell.lower) ** 2


def _enclose_population_variance(m: Measured, risk: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the intervals of the variance E[t**2] - E[t]**2 and of the number of values, for each
    group.

    The bounds are scaled to 0 and 1. The four results are the lower and the upper end of the
    variance, and those of the number of values. Both hold together, except with probability
    ``risk``. The mean is not known exactly, so several means in its interval are tried (`STEPS`).
    The mean and the count take a twentieth of the risk each, and the squares about the mean take
    the rest.
    """
    n, t1, t2 = _read_sums(m, "n", "t1", "t2")
    mean_low, mean_high = enclose_unit_mean(m, 1 - risk / 20)
    sums = WeightedSums(m, "n", "t1", "t2")
    reach = m.reach(1 - risk * _ON_SQUARES)
    low, high = np.full(n.shape, np.inf), np.full(n.shape, -np.inf)
    for share in STEPS:
        mean = mean_low + share * (mean_high - mean_low)
        about = t2 - 2 * mean * t1 + mean**2 * n
        noise = sums.with_count(_weigh_squares(mean))
        some_low, some_high = fieller(about, n, *noise, reach)
        low, high = np.minimum(low, some_low), np.maximum(high, some_high)
    return *within(low, high, limit=0.25), *enclose_sizes(m, 1 - risk / 20, least=2.0)


def _enclose_unit_variance(m: Measured, level: float) -> tuple[Floats, Floats]:
    """Return the interval of the variance of each group, on the scale where the bounds are 0 and 1.

    ``level`` is the confidence. The correction by ``ddof`` is included.
    """
    low, high, fewest, most = _enclose_population_variance(m, 1 - level)
    ddof = m.cell.ddof
    return low * most / (most - ddof), high * fewest / (fewest - ddof)


def _enclose_variance(m: Measured, level: float) -> Interval:
    """Return the interval of the variance of each group: its lower and its upper ends.

    ``m`` has the noisy sums, and ``level`` is the confidence.
    """
    low, high = _enclose_unit_variance(m, level)
    width = m.cell.upper - m.cell.lower
    return low * width**2, high * width**2


def _expect_variance_error(m: Measured, level: float, n: float | None) -> float | None:
    """Return half the width of the interval to expect for a variance of ``n`` values, whatever they
    are.

    ``level`` is the confidence. Return None if ``n`` is not known. The largest variance of the noise
    is taken, over some means t and variances v.
    """
    if n is None:
        return None
    about = [
        {"t2": 1.0, "t1": -2 * t, "n": t * t - v} for t in (0.0, 0.5, 1.0) for v in (0.0, 0.25)
    ]
    worst = max(m.covariance(c, c) for c in about)
    width = (m.cell.upper - m.cell.lower) ** 2
    reach = m.reach(1 - (1 - level) * _ON_SQUARES)
    return min(width / 4, width * reach * math.sqrt(worst) / max(n, 1e-300))


def _judge_variance(cell: Cell, n: float = math.inf) -> tuple[float, float]:
    """Return the scales by which a variance is judged as noise.

    Below the first, that of a deviation of a 200th of the bounds, it is as good as zero. The second
    is the largest possible variance.
    """
    width = (cell.upper - cell.lower) ** 2
    return width / 40_000, width / 4


# Deviations ---------------------------------------------------------------------------------------


def measure_deviation(m: Measured) -> Array:
    """Return the noisy standard deviation of each group. ``m`` has the noisy sums."""
    return np.asarray(np.sqrt(_measure_unit_variance(m)) * (m.cell.upper - m.cell.lower))


def enclose_deviation(m: Measured, level: float) -> Interval:
    """Return the interval of the standard deviation of each group: its lower and its upper ends.

    ``m`` has the noisy sums, and ``level`` is the confidence.
    """
    low, high = _enclose_unit_variance(m, level)
    width = m.cell.upper - m.cell.lower
    return np.sqrt(low) * width, np.sqrt(high) * width


def _judge_deviation(cell: Cell, n: float = math.inf) -> tuple[float, float]:
    """Return the scales by which a standard deviation is judged as noise.

    Below the first, a 200th of the bounds, it is as good as zero. The second is the largest
    possible deviation.
    """
    width = cell.upper - cell.lower
    return width / 200, width / 2


# Standard errors of means -------------------------------------------------------------------------


def _measure_standard_error(m: Measured) -> Array:
    """Return the noisy standard error of the mean of each group.

    It is the deviation over the root of the number of values.
    """
    n = np.maximum(m.values(N).astype(float), 2.0)
    return np.asarray(measure_deviation(m) / np.sqrt(n))


def _enclose_standard_error(m: Measured, level: float) -> Interval:
    """Return the interval of the standard error of the mean of each group.

    ``m`` has the noisy sums, and ``level`` is the confidence.

    The squared standard error is the sum of squares about the mean, divided by N (N - ddof) for N
    values. Mean and N are not known exactly, so a grid over their intervals is tried (`PAIRS`). For
    each guess n of N the denominator is replaced by its tangent at n, (2 n - ddof) N - n**2. So it
    hardly depends on the guess. The mean and N take a twentieth of the risk each.
    """
    risk, ddof = 1 - level, m.cell.ddof
    mean_low, mean_high = enclose_unit_mean(m, 1 - risk / 20)
    fewest, most = enclose_sizes(m, 1 - risk / 20, least=2.0)
    sums, reach = WeightedSums(m, "n", "t1", "t2"), m.reach(1 - risk * 0.9)
    low, high = np.full(fewest.shape, np.inf), np.full(fewest.shape, -np.inf)
    for i, j in PAIRS:
        mean, n = mean_low + i * (mean_high - mean_low), fewest + j * (most - fewest)
        some = sums.ratio(_weigh_squares(mean), {"n": 2 * n - ddof}, n * n, reach)
        low, high = np.minimum(low, some[0]), np.maximum(high, some[1])
    low, high = within(low, high, limit=0.25 / (fewest - ddof))
    width = m.cell.upper - m.cell.lower
    return np.sqrt(low) * width, np.sqrt(high) * width


def _judge_standard_error(cell: Cell, n: float = math.inf) -> tuple[float, float]:
    """Return the scales by which a standard error is judged as noise: no least size, and the
    largest one."""
    return 0.0, (cell.upper - cell.lower) / 2


# Skewness -----------------------------------------------------------------------------------------


def _measure_skewness(m: Measured) -> Array:
    """Return the noisy skewness of each group, with the correction of pandas.

    ``m`` has the noisy sums of powers. The skewness is E[(t - mean)**3] / E[(t - mean)**2]**1.5.
    """
    n, t1, t2, t3 = _read_sums(m, "n", "t1", "t2", "t3")
    first, second, third = (
        ratio(t1, n, empty=1 / 2),
        ratio(t2, n, empty=1 / 3),
        ratio(t3, n, empty=1 / 4),
    )
    cubes = np.clip(third - 3 * first * second + 2 * first**3, -LARGEST_CUBE, LARGEST_CUBE)
    spread = np.clip(second - first**2, 0.0, 0.25) ** 1.5
    return _correct_skewness(
        np.where(spread > 0, cubes / np.where(spread > 0, spread, 1.0), 0.0), np.maximum(n, 3.0)
    )


def _enclose_skewness(m: Measured, level: float) -> Interval:
    """Return the interval of the skewness of each group: its lower and its upper ends.

    ``m`` has the noisy sums, and ``level`` is the confidence.

    The cubes about the mean are divided by the cube of the deviation. Mean and variance are not
    known exactly, so a grid over their intervals is tried (`PAIRS`). The mean takes a twentieth of
    the risk, the variance and the count take a tenth, and the ratio takes the rest.
    """
    risk = 1 - level
    mean_low, mean_high = enclose_unit_mean(m, 1 - risk / 20)
    var_low, var_high, fewest, most = _enclose_population_variance(m, risk / 10)
    sums, reach = WeightedSums(m, "n", "t1", "t2", "t3"), m.reach(1 - risk * 0.85)
    low, high = np.full(fewest.shape, np.inf), np.full(fewest.shape, -np.inf)
    for i, j in PAIRS:
        mean, var = mean_low + i * (mean_high - mean_low), var_low + j * (var_high - var_low)
        some = sums.ratio(_weigh_cubes(mean, var), _weigh_spread(mean, np.sqrt(var)), 0.0, reach)
        low, high = np.minimum(low, some[0]), np.maximum(high, some[1])
    ends = np.maximum(fewest, 3.0), np.maximum(most, 3.0)
    lows, highs = ([_correct_skewness(end, n) for n in ends] for end in (low, high))
    return np.minimum(*lows), np.maximum(*highs)


def _correct_skewness(skewness: Floats, n: Floats) -> Floats:
    """Return the skewness as pandas corrects it for n values, within its possible range."""
    return np.clip(skewness * np.sqrt(n * (n - 1)) / (n - 2), -np.sqrt(n), np.sqrt(n))


def _judge_skewness(cell: Cell, n: float = math.inf) -> tuple[float, float]:
    """Return the scales by which a skewness is judged as noise.

    Below the first, half that of an exponential distribution, it is as good as zero. There is no
    largest one.
    """
    return 1.0, math.inf


# Values that nobody has ---------------------------------------------------------------------------


def _ways_to_lie(*sides: float) -> tuple[Floats, Floats, Floats]:
    """Return means, variances and third central moments of imagined values between 0 and 1.

    A plan tries with them how wide an interval can become. Each entry of the three arrays is a way
    in which values may lie. The means go from one end to the other, and the variances from 0 to the
    largest for a mean. ``sides`` places the third moment between its extremes (0 and 1) for that
    mean and variance. Values at two points have the extremes.
    """
    means = STEPS[[1, 4, 8, 12, 16, 20, 24, 28, 31]]
    mean, part, side = (grid.ravel() for grid in np.meshgrid(means, STEPS[::4] ** 2, sides))
    var = mean * (1 - mean) * part
    least, most = var * (var / mean - mean), var * (1 - mean - var / (1 - mean))
    return mean, var, least + side * (most - least)


def _sum_powers(
    n: Floats, mean: Floats, var: Floats, third: Floats | None = None
) -> dict[str, Floats]:
    """Return the sums of powers of ``n`` imagined values between 0 and 1 with these moments, by
    name.

    There is a row for each way to lie, and a column for each number of values.
    """
    powers = {"n": np.ones_like(mean), "t1": mean, "t2": var + mean**2}
    if third is not None:
        powers["t3"] = third + 3 * mean * var + mean**3
    return {name: np.multiply.outer(power, n) for name, power in powers.items()}


def _imagine_squares(n: Floats) -> dict[str, Floats]:
    """Return the sums of ``n`` imagined values and of their squares, for several ways in which they
    may lie."""
    return _sum_powers(n, *_ways_to_lie(0.5)[:2])


def _imagine_cubes(n: Floats) -> dict[str, Floats]:
    """Return the sums of ``n`` imagined values, their squares and cubes, for several ways in which
    they may lie."""
    return _sum_powers(n, *_ways_to_lie(0.0, 0.5, 1.0))


# Weights of moments about a mean ------------------------------------------------------------------


def _weigh_squares(mean: Floats) -> dict[str, Floats]:
    """Return the weights of the noisy sums that give the sum of squares about a mean."""
    return {"n": mean**2, "t1": -2 * mean, "t2": np.ones_like(mean)}


def _weigh_cubes(mean: Floats, var: Floats) -> dict[str, Floats]:
    """Return the weights of the noisy sums that give the sum of cubes about a mean.

    The mean is a guess. So 3 var times the sum of distances from the mean is subtracted. It is 0 at
    the true mean, and makes the result independent of the guess to first order.
    """
    return {
        "t3": np.ones_like(mean),
        "t2": -3 * mean,
        "t1": 3 * mean**2 - 3 * var,
        "n": 3 * var * mean - mean**3,
    }


def _weigh_spread(mean: Floats, std: Floats) -> dict[str, Floats]:
    """Return the weights of the noisy sums that give n times the cube of the standard deviation
    ``std``.

    This form does not depend on the deviation to first order.
    """
    return {"t2": 1.5 * std, "t1": -3 * std * mean, "n": 1.5 * std * mean**2 - 0.5 * std**3}


def _weigh_products(first: Floats, second: Floats) -> dict[str, Floats]:
    """Return the weights of the noisy sums that give the sum of products about the means of two
    columns."""
    return {"st": np.ones_like(first), "s1": -first, "t1": -second, "n": first * second}


# Covariances --------------------------------------------------------------------------------------


def _mark_products(cell: Cell, out: Output, place: int, statistic: Statistic) -> Cell:
    """Return the cell of a covariance with the product of both columns' widths as its upper bound.

    ``out`` has the two columns with their bounds. The lower bound is 0.
    """
    (_, first), (_, second) = out.clipped
    product = (first.upper - first.lower) * (second.upper - second.lower)
    return replace(cell, lower=0.0, upper=product)


def _measure_covariance(m: Measured) -> Array:
    """Return the noisy covariance of each group, over rows where neither column is null.

    ``m`` has the noisy sums. The covariance is E[ts] - E[t]E[s], times n / (n - ddof), in data
    units.
    """
    n, t, s, ts = _read_sums(m, "n", "t1", "s1", "st")
    mixed = ratio(ts, n, empty=0.25) - ratio(t, n, empty=0.5) * ratio(s, n, empty=0.5)
    n = np.maximum(n, 2.0)
    return np.asarray(np.clip(mixed, -0.25, 0.25) * n / (n - m.cell.ddof) * m.cell.upper)


def _enclose_covariance(m: Measured, level: float) -> Interval:
    """Return the interval of the covariance of each group: its lower and its upper ends.

    ``m`` has the noisy sums, and ``level`` is the confidence.

    The means of both columns are not known exactly, so a grid over their intervals is tried
    (`PAIRS`). They and the count take a twentieth of the risk each, and the products about the
    means take the rest.
    """
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
        some = sums.ratio(_weigh_products(a, b), N, 0.0, m.reach(1 - risk * _ON_PRODUCTS))
        low, high = np.minimum(low, some[0]), np.maximum(high, some[1])
    low, high = np.clip(low, -0.25, 0.25), np.clip(high, -0.25, 0.25)
    ends = enclose_sizes(m, 1 - risk / 20, least=2.0)
    factors = [size / (size - m.cell.ddof) for size in ends]
    low, high = (
        np.minimum(*(low * f for f in factors)),
        np.maximum(*(high * f for f in factors)),
    )
    return low * m.cell.upper, high * m.cell.upper


def _expect_covariance_error(m: Measured, level: float, n: float | None) -> float | None:
    """Return half the width of the interval to expect for a covariance of ``n`` rows, whatever they
    are.

    ``level`` is the confidence. Return None if ``n`` is not known. The largest variance of the noise
    is taken, over a grid of the two means (a and b) and over the covariances r that they allow.
    """
    if n is None:
        return None
    a, b = (grid.ravel() for grid in np.meshgrid(STEPS, STEPS))
    sums = WeightedSums(m, "st", "s1", "t1", "n")
    variance, shared, of_n = sums.with_count(_weigh_products(a, b))
    # The covariances that these means allow.
    ends = np.minimum(a * (1 - b), b * (1 - a)), -np.minimum(a * b, (1 - a) * (1 - b))
    worst = max(float(np.max(variance - 2 * r * shared + r * r * of_n)) for r in ends)
    reach = m.reach(1 - (1 - level) * _ON_PRODUCTS)
    return min(m.cell.upper / 2, m.cell.upper * reach * math.sqrt(worst) / max(n, 1e-300))


def _judge_covariance(cell: Cell, n: float = math.inf) -> tuple[float, float]:
    """Return the scales by which a covariance is judged as noise.

    Below the first it is as good as zero, and the second is the largest one. If deviations are a
    tenth of the bounds, the first is a correlation of a quarter.
    """
    return cell.upper / 400, cell.upper / 2


# Entries ------------------------------------------------------------------------------------------

register(
    Aggregate(
        name="sum",
        doc="Sum of clipped values.",
        vector=_read_clipped,
        value=measure_sum,
        interval=enclose_sum,
        verbs=("sum",),
        pandas="sum",
        named_in_agg=True,
        functions=(sum, np.sum),
        needs_bounds=True,
        degree=1,
        found_at_once=True,
        scales=True,
        of_durations=True,
        adjust=_mark_whole_sum,
        combination=_combine_sum,
        alone=_sum_alone,
        error=expect_sum_error,
        judging_scale=_judge_sum,
        deviation=find_sum_deviation,
        ratio=False,
    ),
    Aggregate(
        name="mean",
        doc="Mean of clipped values.",
        vector=_read_clipped,
        value=measure_mean,
        interval=enclose_mean,
        verbs=("mean",),
        pandas="mean",
        named_in_agg=True,
        functions=(np.mean,),
        needs_bounds=True,
        degree=1,
        found_at_once=True,
        of_durations=True,
        of_times=True,
        alone=_mean_alone,
        error=_expect_mean_error,
        deviation=_find_mean_deviation,
        judging_scale=judge_within_bounds,
        ratio=True,
        drawn=True,
        population=_enclose_population_mean,
        draws=sampling.make_draws,
    ),
    Aggregate(
        name="var",
        doc="Variance of clipped values.",
        vector=_read_clipped,
        value=_measure_variance,
        interval=_enclose_variance,
        verbs=("var",),
        pandas="var",
        named_in_agg=True,
        needs_bounds=True,
        takes_ddof=True,
        degree=2,
        found_at_once=True,
        error=_expect_variance_error,
        judging_scale=_judge_variance,
    ),
    Aggregate(
        name="std",
        doc="Standard deviation of clipped values.",
        vector=_read_clipped,
        value=measure_deviation,
        interval=enclose_deviation,
        verbs=("std",),
        pandas="std",
        named_in_agg=True,
        needs_bounds=True,
        takes_ddof=True,
        degree=2,
        found_at_once=True,
        of_durations=True,
        imagine_sums=_imagine_squares,
        judging_scale=_judge_deviation,
    ),
    Aggregate(
        name="sem",
        doc="Standard error of the mean of clipped values.",
        vector=_read_clipped,
        value=_measure_standard_error,
        interval=_enclose_standard_error,
        verbs=("sem",),
        pandas="sem",
        named_in_agg=True,
        needs_bounds=True,
        takes_ddof=True,
        degree=2,
        found_at_once=True,
        imagine_sums=_imagine_squares,
        judging_scale=_judge_standard_error,
    ),
    Aggregate(
        name="skew",
        doc="Skewness of clipped values, with the correction of pandas.",
        vector=_read_clipped,
        value=_measure_skewness,
        interval=_enclose_skewness,
        verbs=("skew",),
        pandas="skew",
        named_in_agg=True,
        needs_bounds=True,
        degree=3,
        found_at_once=True,
        imagine_sums=_imagine_cubes,
        judging_scale=_judge_skewness,
    ),
    Aggregate(
        name="cov",
        doc="Covariance of the clipped values of two columns.",
        vector=lambda out: VectorKey(_make_pair, 8, out.expr, out.bounds, out),
        value=_measure_covariance,
        interval=_enclose_covariance,
        verbs=("cov",),
        pandas="cov",
        needs_bounds=True,
        takes_ddof=True,
        of_pairs=True,
        degree=2,
        adjust=_mark_products,
        error=_expect_covariance_error,
        judging_scale=_judge_covariance,
    ),
)
