"""Intervals for the population that a table is a sample of, at every size, from noisy sums alone.

The people of a table are draws from a population, independent and alike, or without replacement. A
noisy sum has two errors, that of the draws and that of the noise. Both have exponential moments.
Those of the noise are known. Those of draws within bounds are at most those of two points with the
same variance (Hoeffding 1963, theorem 3). By Markov's inequality both errors are bounded at once,
so no risk is divided between them. Numbers of draws have tails of their own (Short 2013). The
proofs are in docs/guarantees/population.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpframe.mechanisms.noise import normal_quantile

if TYPE_CHECKING:
    from dpframe._plans.aggregates import Measured

Floats = NDArray[np.float64]

# A test of one hypothesis may divide its risk between two errors in any way that is fixed: the
# least of the critical values of several ways is one of them, so all that any of them excludes is
# excluded.
SPLITS = (0.1, 0.3, 0.5, 0.7, 0.9)
# Of the risk of a mean's interval, what is spent on the noise in the number of values and on their
# spread, and what is left.
ON_NUMBER, ON_SPREAD = 0.04, 0.06
REST = 1 - ON_NUMBER - ON_SPREAD
# Parts of the best rate for normal errors.
_FACTORS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.35, 1.6)
_POINTS = np.linspace(0.0, 1.0, 33)
# The rounds of bisection between two points.
_ROUNDS = 32
# The number of cells of the rates that two means divide between them.
_CELLS = 24
_LARGEST_RATE = 1e12
# The number of groups that are computed at once. They fit into memory a few hundred times over.
_AT_ONCE = 500

# Independent noises in a weighted sum: how many have a weight, and that weight for each group.
Noises = Sequence[tuple[float, Floats]]


class About(NamedTuple):
    """Errors that an interval is to cover: the noise alone, or also the sampling error of a
    ``population``.

    For choices it has ``n``, a number that the values are known to reach, and the ``levels`` of the
    outputs.
    """

    population: bool = False
    n: float | None = None
    levels: tuple[float, ...] = ()


NOISE = About()


class Law(Protocol):
    """The law of noise, as far as sums of draws need it."""

    @property
    def deviation(self) -> float: ...
    def cumulant(self, t: Floats) -> Floats: ...


def find_rate(risk: float) -> float:
    """Return the exponent of a tail bound that holds on both sides with this risk."""
    return math.log(2 / risk)


def bound_log_moment(rate: Floats, bound: Floats | float, variance: Floats | float) -> Floats:
    """Return a bound on log E exp(rate X) for a random X of mean 0.

    X is at most ``bound``, and its variance is at most ``variance``. The bound is that of a law
    with two points, ``bound`` and one below 0 (Hoeffding 1963, theorem 3).
    """
    square = np.square(np.maximum(bound, 1e-150))
    with np.errstate(divide="ignore"):
        below = np.log(square / (square + variance)) - rate * (variance / np.sqrt(square))
        above = np.log(variance / (square + variance)) + rate * bound
    return np.maximum(np.logaddexp(below, above), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Noisy sums of values between 0 and 1, for tests of the mean that they were drawn from.

    All arrays have an entry a group. ``total`` and ``n`` are the noisy sum and number of values.
    The true number lies between ``fewest_values`` and ``most_values``, except for a risk that the
    caller sets aside. The noise in total and number is a sum of independent noises of the ``law``,
    each times a weight. ``weights_in_total`` and ``weights_in_n`` are these weights, and
    ``noise_counts`` tells how many noises have each. With ``squares``, the noisy sum of squares, a
    spread that is smaller than the bounds allow is noticed: ``rate`` is the exponent of the risk of
    an error there.
    """

    total: Floats
    n: Floats
    fewest_values: Floats
    most_values: Floats
    law: Law
    weights_in_total: Floats
    weights_in_n: Floats
    noise_counts: Floats
    squares: Floats | None = None
    weights_in_squares: Floats | None = None
    rate: float = 0.0

    def part(self, groups: slice) -> Draws:
        """Return the draws of some of the groups. ``groups`` is a slice of their positions."""
        squares = None if self.squares is None else self.squares[groups]
        cut = (side[groups] for side in (self.total, self.n, self.fewest_values, self.most_values))
        total, n, fewest, most = cut
        return replace(
            self, total=total, n=n, fewest_values=fewest, most_values=most, squares=squares
        )

    def ends(self, rate: Floats | float) -> tuple[Floats, Floats]:
        """Return, for each group, the least and the greatest population mean that the noisy sums do
        not exclude.

        A mean is excluded if sums so far off have a probability of at most exp(-rate), on either
        side. If noise has led beyond all means, both ends are the nearest mean, which the ends of
        larger rates enclose. They are 0 and 1 where nobody is counted. For a column of rates there
        are ends for each of them.
        """
        rates = np.broadcast_to(rate, np.broadcast_shapes(np.shape(rate), self.total.shape))
        sides: tuple[list[Floats], list[Floats]] = [], []
        step = max(1, _AT_ONCE // (rates.size // max(len(self.total), 1) or 1))
        for start in range(0, len(self.total), step):
            groups = slice(start, start + step)
            for side, greatest in zip(sides, (False, True), strict=True):
                side.append(self.part(groups).find_end(rates[..., groups], greatest))
        low, high = (
            np.concatenate([np.empty((*rates.shape[:-1], 0)), *side], axis=-1) for side in sides
        )
        missed = ~(low <= high)
        with np.errstate(divide="ignore", invalid="ignore"):
            nearest = np.clip(self.total / self.n, 0.0, 1.0)
        least, most = np.where(self.n > 0, nearest, 0.0), np.where(self.n > 0, nearest, 1.0)
        return np.where(missed, least, low), np.where(missed, most, high)

    def find_end(self, rate: Floats, greatest: bool) -> Floats:
        """Return, for each group, one end of the means that the noisy sums do not exclude.

        With ``greatest`` it is the upper end, else the lower one. A mean is excluded if sums so far
        off have a probability of at most exp(-rate) under it. NaN means that all are excluded.

        The end is searched among 33 points from 0 to 1 and the noisy mean (``middle``). Then
        bisection searches between the outermost possible mean (``inside``) and the next point
        (``outside``).
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            middle = np.where(self.n > 0, np.clip(self.total / self.n, 0.0, 1.0), 0.5)
        middle = np.broadcast_to(middle, rate.shape)
        points = np.expand_dims(_POINTS, tuple(range(1, rate.ndim + 1)))
        possible = self._is_possible(points, rate, greatest)
        inside = (
            np.where(possible, points, -np.inf).max(axis=0)
            if greatest
            else np.where(possible, points, np.inf).min(axis=0)
        )
        outer = np.maximum(inside, middle) if greatest else np.minimum(inside, middle)
        inside = np.where(self._is_possible(middle, rate, greatest), outer, inside)
        outside = (
            np.minimum(inside + _POINTS[1], 1.0)
            if greatest
            else np.maximum(inside - _POINTS[1], 0.0)
        )
        possible = self._is_possible(outside, rate, greatest)
        inside = np.where(possible & np.isfinite(inside), outside, inside)
        for _ in range(_ROUNDS):
            halfway = (inside + outside) / 2
            good = self._is_possible(halfway, rate, greatest)
            inside, outside = np.where(good, halfway, inside), np.where(good, outside, halfway)
        return np.asarray(np.where(np.isfinite(inside), outside, np.nan))

    # Noise has no moments at large rates. They are infinite there, and never the least.
    @np.errstate(all="ignore")
    def _is_possible(self, mean: Floats, rate: Floats, greatest: bool) -> NDArray[np.bool_]:
        """Return whether a mean is possible, given the noisy sum.

        With ``greatest`` a mean is ruled out if it is too large for the sum: the sum falls short of
        mean * n by more than a critical value. Else it is ruled out if it is too small, and the sum
        exceeds mean * n by more. A true mean is ruled out with a probability of at most exp(-rate).

        The critical value is the Chernoff bound for draws and noise together: the smallest (rate +
        log moment) / r over exponents r.
        """
        mean = np.broadcast_to(mean, np.broadcast_shapes(mean.shape, rate.shape))
        variance = self.variance(mean)
        # How far one draw may lie from the mean on this side, and how far the noisy sum does.
        bound = mean if greatest else 1 - mean
        off = mean * self.n - self.total if greatest else self.total - mean * self.n
        noises = [
            (count, in_total - mean * in_n)
            for count, in_total, in_n in zip(
                self.noise_counts, self.weights_in_total, self.weights_in_n, strict=True
            )
        ]
        exponents = list_rates(rate, self.most_values * variance + self._noise_variance(noises))
        moments = self.most_values * bound_log_moment(exponents, bound, variance)
        moments = moments + self._noise_moments(exponents, noises)
        critical = np.fmin.reduce((rate + moments) / exponents, axis=0)
        return np.asarray(off <= np.where(np.isnan(critical), np.inf, critical))

    def _noise_variance(self, noises: Noises) -> Floats:
        squares = sum(count * np.square(weight) for count, weight in noises)
        return np.asarray(squares * self.law.deviation**2)

    def _noise_moments(self, exponents: Floats, noises: Noises) -> Floats:
        """Return the sum of the log moments of weighted noises, at each exponent."""
        return np.asarray(
            sum(count * self.law.cumulant(exponents * weight) for count, weight in noises)
        )

    @property
    def error(self) -> Floats:
        """Estimated standard errors of the means of the groups, from draws and noise together.

        The variance of the draws is that of the noisy squares, or mean * (1 - mean), the largest
        that values between 0 and 1 can have.
        """
        n = np.maximum(self.n, 1.0)
        mean = np.clip(self.total / n, 0.0, 1.0)
        least = mean * (1 - mean)
        if self.squares is not None:
            least = np.clip(self.squares / n - mean**2, 0.0, least)
        pairs = zip(self.noise_counts, self.weights_in_total, self.weights_in_n, strict=True)
        noise = self._noise_variance(
            [(count, in_total - mean * in_n) for count, in_total, in_n in pairs]
        )
        return np.asarray(np.sqrt(least / n + noise / n**2))

    @np.errstate(all="ignore")
    def variance(self, mean: Floats) -> Floats:
        """Return an upper bound on the variance of the values of each group, if they have this
        mean.

        It is mean * (1 - mean), the variance of two points at the bounds. If the noisy sum of
        squares is known, and is too small for that variance, it is less. ``about`` is the noisy sum
        of squares about the mean, and ``largest`` is M, the largest such square. Squares Y within
        [0, M] have E exp(-t Y) <= 1 - variance (1 - exp(-t M)) / M, since exp is convex. Markov's
        inequality turns that into a bound for each exponent t, and the least is taken.
        """
        most = np.asarray(mean * (1 - mean))
        if self.squares is None or self.weights_in_squares is None:
            return most
        about = self.squares - 2 * mean * self.total + mean**2 * self.n
        parts = zip(
            self.noise_counts,
            self.weights_in_squares,
            self.weights_in_total,
            self.weights_in_n,
            strict=True,
        )
        noises = [
            (count, in_squares - 2 * mean * in_total + mean**2 * in_n)
            for count, in_squares, in_total, in_n in parts
        ]
        largest = np.square(np.maximum(mean, 1 - mean))
        exponents = list_rates(
            self.rate, np.maximum(about, 0.0) * largest + self._noise_variance(noises)
        )
        spent = (
            exponents * about + self.rate + self._noise_moments(exponents, noises)
        ) / np.maximum(self.fewest_values, 1e-300)
        bounds = largest * np.expm1(-spent) / np.expm1(-exponents * largest)
        return np.maximum(np.fmin(np.fmin.reduce(bounds, axis=0), most), 0.0)


def list_rates(rate: Floats | float, variance: Floats) -> Floats:
    """Return rates to try in an exponential tail bound, along a new first axis.

    They lie around the best one for normal errors of this variance. ``rate`` is the exponent of the
    tail.
    """
    best = np.minimum(np.sqrt(2 * rate / np.maximum(variance, 1e-300)), _LARGEST_RATE)
    return np.asarray(np.multiply.outer(_FACTORS, best))


def make_draws(m: Measured, risk: float) -> Draws:
    """Return the noisy sums of a mean as draws from a population, to test which mean they came
    from.

    ``m`` has the noisy sums, of values scaled to lie between 0 and 1: their number ``n``, their sum
    ``t1``, and perhaps that of their squares ``t2``. A part of the ``risk`` is spent on the number
    of values and on their spread.
    """
    number, total, squares = {"n": 1.0}, {"t1": 1.0}, {"t2": 1.0}
    n, half = m.values(number).astype(float), m.half_width(number, 1 - risk * ON_NUMBER)
    weights = m.weights(total), m.weights(number)
    draws = Draws(
        m.values(total).astype(float),
        n,
        np.maximum(n - half, 0.0),
        np.maximum(n + half, 0.0),
        m.noise,
        *weights,
        np.ones(len(weights[0])),
        rate=find_rate(2 * risk * ON_SPREAD),
    )
    if "t2" not in m.cell.functionals:
        return draws
    return replace(
        draws, squares=m.values(squares).astype(float), weights_in_squares=m.weights(squares)
    )


def enclose_differences(first: Draws, second: Draws, risk: float) -> tuple[Floats, Floats]:
    """Return the lower and the upper ends of the difference of two population means, by group.

    Both means are estimated from independent draws. ``risk`` is the probability that the interval
    may miss the difference of the true means.

    By `Draws.ends` the rate at which a true mean is excluded is above r with probability exp(-r) at
    most, on each side. So two such rates add up to more than r with probability (1 + r) exp(-r) at
    most, that of two exponential variables. The interval is that of all pairs of means whose rates
    add up to at most this r. ``shares`` are the rates that the first mean may have.
    """
    rate = find_rate_of_two(risk / 2)
    shares = np.maximum(np.linspace(0.0, rate, _CELLS + 1), 1e-9)[:, None]
    (low, high), (other_low, other_high) = (each.ends(shares) for each in (first, second))
    # The rates of both means add up to a rate within a cell, so each takes the outer end of it.
    return (low[1:] - other_high[::-1][:-1]).min(axis=0), (high[1:] - other_low[::-1][:-1]).max(
        axis=0
    )


def find_rate_of_two(risk: float) -> float:
    """Return the r at which (1 + r) exp(-r) is this risk, rounded up.

    It is the tail of a sum of two exponential variables, for two errors that are bounded together.
    """
    low, high = 0.0, 2.0
    while (1 + high) * math.exp(-high) > risk:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 + middle) * math.exp(-middle) > risk else (low, middle)
    return high


def find_least_risk(excludes: Callable[[float], bool]) -> float:
    """Return the least risk at which a hypothesis is excluded: its p-value, rounded up.

    ``excludes(risk)`` tells whether it is excluded at a risk.

    More must be excluded at a higher risk. The result is at least 1e-12, and 1 if nothing is
    excluded.
    """
    low, high = math.log(1e-12), math.log(0.9999)
    if not excludes(0.9999):
        return 1.0
    if excludes(1e-12):
        return 1e-12
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (low, middle) if excludes(math.exp(middle)) else (middle, high)
    return min(1.0, math.exp(high))


def bound_share_deviation(n: Floats, share: float, risk: float) -> Floats:
    """Return a bound on how far a binomial count lies from its mean.

    Each of n draws counts with probability ``share``. The bound is exceeded with probability
    ``risk`` at most, on both sides together. It grows with n. It is the larger of the Chernoff
    bounds for the two sides.
    """
    rate, sides = find_rate(risk), []
    variance = share * (1 - share)
    if not variance:
        return np.zeros_like(n)
    n = np.maximum(n, 0.0)
    exponents = list_rates(rate, n * variance)
    for bound in (share, 1 - share):
        moments = n * bound_log_moment(exponents, bound, variance)
        sides.append(((rate + moments) / exponents).min(axis=0))
    return np.asarray(np.minimum(np.maximum(*sides), n))


def enclose_expected_count(
    noise: Callable[[float], tuple[NDArray[np.generic], NDArray[np.generic]]], level: float
) -> tuple[Floats, Floats]:
    """Return the lower and the upper ends of the count to expect, from a noisy count of draws.

    The expected count is that of the population that the table was drawn from. ``level`` is the
    confidence. ``noise(level)`` returns the interval of the count in the table itself.

    The risk is divided between noise and draws. There is an interval for each of several divisions,
    and the result is where all of them overlap.
    """
    low: Floats | float
    high: Floats | float
    low, high = 0.0, np.inf
    for share in SPLITS:
        fewest, most = (side.astype(float) for side in noise(1 - (1 - level) * share))
        ends = enclose_expectation(fewest, most, normal_quantile(1 - (1 - level) * (1 - share)))
        low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
    return np.asarray(low), np.asarray(high)


def enclose_expectation(low: Floats, high: Floats, deviation: float) -> tuple[Floats, Floats]:
    """Return the lower and the upper ends of the expected count, if the count of the draws lies
    between ``low`` and ``high``.

    On each side it may miss with the probability of a normal tail beyond ``deviation`` standard
    deviations. Short (2013, theorem 2) bounds the tails of the Poisson law by normal ones.
    """
    fewest, most = np.maximum(low - 1, 0.0), np.maximum(high, 0.0) + 1
    half = deviation**2 / 2
    return _find_mean_at_rate(fewest, half, np.zeros_like(fewest)), _find_mean_at_rate(
        most, half, most + 2 * deviation * np.sqrt(most) + 4 * half
    )


@np.errstate(all="ignore")
def _find_mean_at_rate(k: Floats, half: float, far: Floats) -> Floats:
    """Return the Poisson mean m at which k log(k / m) - k + m is ``half``, by bisection.

    ``k`` are counts, and m lies between k and ``far``, on either side of k. It is rounded towards
    ``far``. At that mean a count as far off as k has a probability of at most about exp(-half).
    """
    near = k
    for _ in range(80):
        m = (near + far) / 2
        within = k * np.log(k / m) - k + m < half
        near, far = np.where(within, m, near), np.where(within, far, m)
    return far
