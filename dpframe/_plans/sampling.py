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

# Numbers of noises, each with their weight.
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

    X is at most ``bound``, and its variance is at most ``variance`` (Hoeffding 1963, theorem 3).
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
    The true number lies between ``least`` and ``most``, except for a risk that the caller sets
    aside. ``of_total`` and ``of_n`` are the weights of each noise in them, and ``times`` how many
    noises have these. With ``squares``, the noisy sum of squares, deviations that are smaller than
    the bounds allow are noticed at ``rate``.
    """

    total: Floats
    n: Floats
    least: Floats
    most: Floats
    law: Law
    of_total: Floats
    of_n: Floats
    times: Floats
    squares: Floats | None = None
    of_squares: Floats | None = None
    rate: float = 0.0

    def part(self, groups: slice) -> Draws:
        """Return the draws of some of the groups. ``groups`` is a slice of their positions."""
        squares = None if self.squares is None else self.squares[groups]
        cut = (side[groups] for side in (self.total, self.n, self.least, self.most))
        total, n, least, most = cut
        return replace(self, total=total, n=n, least=least, most=most, squares=squares)

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
            for side, up in zip(sides, (False, True), strict=True):
                side.append(self.part(groups).find_end(rates[..., groups], up))
        low, high = (
            np.concatenate([np.empty((*rates.shape[:-1], 0)), *side], axis=-1) for side in sides
        )
        missed = ~(low <= high)
        with np.errstate(divide="ignore", invalid="ignore"):
            nearest = np.clip(self.total / self.n, 0.0, 1.0)
        least, most = np.where(self.n > 0, nearest, 0.0), np.where(self.n > 0, nearest, 1.0)
        return np.where(missed, least, low), np.where(missed, most, high)

    def find_end(self, rate: Floats, up: bool) -> Floats:
        """Return, for each group, the least mean that is not excluded, or the greatest if ``up``.

        It is searched among points from end to end, and then between the last one that is kept and
        the next. NaN means that all are excluded. ``rate`` is that of `ends`.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            middle = np.where(self.n > 0, np.clip(self.total / self.n, 0.0, 1.0), 0.5)
        middle = np.broadcast_to(middle, rate.shape)
        points = np.expand_dims(_POINTS, tuple(range(1, rate.ndim + 1)))
        kept = self._keeps(points, rate, up)
        inside = (
            np.where(kept, points, -np.inf).max(axis=0)
            if up
            else np.where(kept, points, np.inf).min(axis=0)
        )
        nearer = np.maximum(inside, middle) if up else np.minimum(inside, middle)
        inside = np.where(self._keeps(middle, rate, up), nearer, inside)
        outside = (
            np.minimum(inside + _POINTS[1], 1.0) if up else np.maximum(inside - _POINTS[1], 0.0)
        )
        inside = np.where(self._keeps(outside, rate, up) & np.isfinite(inside), outside, inside)
        for _ in range(_ROUNDS):
            halfway = (inside + outside) / 2
            good = self._keeps(halfway, rate, up)
            inside, outside = np.where(good, halfway, inside), np.where(good, outside, halfway)
        return np.asarray(np.where(np.isfinite(inside), outside, np.nan))

    # Noise has no moments at large rates. They are infinite there, and never the least.
    @np.errstate(all="ignore")
    def _keeps(self, mean: Floats, rate: Floats, up: bool) -> NDArray[np.bool_]:
        """Return whether a mean is possible, given the noisy sum: large enough for it (``up``), or
        small enough.

        The test errs with a probability of at most exp(-rate).
        """
        mean = np.broadcast_to(mean, np.broadcast_shapes(mean.shape, rate.shape))
        variance = self.variance(mean)
        bound = mean if up else 1 - mean
        off = mean * self.n - self.total if up else self.total - mean * self.n
        noises = [
            (k, a - mean * b) for k, a, b in zip(self.times, self.of_total, self.of_n, strict=True)
        ]
        at = list_rates(rate, self.most * variance + self._spread(noises))
        moments = self.most * bound_log_moment(at, bound, variance) + self._moments(at, noises)
        critical = np.fmin.reduce((rate + moments) / at, axis=0)
        return np.asarray(off <= np.where(np.isnan(critical), np.inf, critical))

    def _spread(self, noises: Noises) -> Floats:
        return np.asarray(sum(k * np.square(w) for k, w in noises) * self.law.deviation**2)

    def _moments(self, at: Floats, noises: Noises) -> Floats:
        return np.asarray(sum(k * self.law.cumulant(at * w) for k, w in noises))

    @property
    def error(self) -> Floats:
        """Estimated standard errors of the means of the groups, from draws and noise together."""
        n = np.maximum(self.n, 1.0)
        mean = np.clip(self.total / n, 0.0, 1.0)
        least = mean * (1 - mean)
        if self.squares is not None:
            least = np.clip(self.squares / n - mean**2, 0.0, least)
        pairs = zip(self.times, self.of_total, self.of_n, strict=True)
        noise = sum(k * np.square(a - mean * b) for k, a, b in pairs) * self.law.deviation**2
        return np.asarray(np.sqrt(least / n + noise / n**2))

    @np.errstate(all="ignore")
    def variance(self, mean: Floats) -> Floats:
        """Return an upper bound on the variance of the values of each group, if they have this
        mean.

        It is the variance of two points at the bounds, or less if the squares about the mean are
        too few for that. Squares Y within [0, M] have E exp(-t Y) <= 1 - variance (1 - exp(-t M)) /
        M, since exp is convex.
        """
        most = np.asarray(mean * (1 - mean))
        if self.squares is None or self.of_squares is None:
            return most
        about = self.squares - 2 * mean * self.total + mean**2 * self.n
        parts = zip(self.times, self.of_squares, self.of_total, self.of_n, strict=True)
        noises = [(k, a - 2 * mean * b + mean**2 * c) for k, a, b, c in parts]
        largest = np.square(np.maximum(mean, 1 - mean))
        at = list_rates(self.rate, np.maximum(about, 0.0) * largest + self._spread(noises))
        spent = (at * about + self.rate + self._moments(at, noises)) / np.maximum(
            self.least, 1e-300
        )
        bounds = largest * np.expm1(-spent) / np.expm1(-at * largest)
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

    A part of the ``risk`` is spent on the number of values and on their spread.
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
    return replace(draws, squares=m.values(squares).astype(float), of_squares=m.weights(squares))


def enclose_differences(first: Draws, second: Draws, risk: float) -> tuple[Floats, Floats]:
    """Return the interval of the difference of two population means, group by group.

    Both are estimated from independent draws. ``risk`` is the probability that the interval may
    miss.

    By `Draws.ends` the rate at which a true mean is left out is above r with probability exp(-r) at
    most, on each side. So two such rates add up to more than r with probability (1 + r) exp(-r) at
    most, that of two exponential variables.
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
    """Return how far a binomial count may lie from its mean, but for this risk.

    Each of n draws counts with probability ``share``. The bound is exceeded with probability
    ``risk`` at most, on both sides together. It grows with n.
    """
    rate, sides = find_rate(risk), []
    variance = share * (1 - share)
    if not variance:
        return np.zeros_like(n)
    n = np.maximum(n, 0.0)
    at = list_rates(rate, n * variance)
    for bound in (share, 1 - share):
        sides.append(((rate + n * bound_log_moment(at, bound, variance)) / at).min(axis=0))
    return np.asarray(np.minimum(np.maximum(*sides), n))


def enclose_expected_count(
    noise: Callable[[float], tuple[NDArray[np.generic], NDArray[np.generic]]], level: float
) -> tuple[Floats, Floats]:
    """Return the interval of the count to expect in the population, from a noisy count of draws.

    ``level`` is the confidence.

    ``noise`` returns the interval of the number itself at a level. What any of several divisions of
    the risk excludes is excluded.
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
    """Return the interval of the expected count, if the count of the draws lies between ``low`` and
    ``high``.

    ``deviation`` is that of a normal tail on each side. Short (2013, theorem 2) bounds the tails of
    the Poisson law by those of the normal one.
    """
    fewest, most = np.maximum(low - 1, 0.0), np.maximum(high, 0.0) + 1
    half = deviation**2 / 2
    return _find_mean_at_rate(fewest, half, np.zeros_like(fewest)), _find_mean_at_rate(
        most, half, most + 2 * deviation * np.sqrt(most) + 4 * half
    )


@np.errstate(all="ignore")
def _find_mean_at_rate(k: Floats, half: float, far: Floats) -> Floats:
    """Return the Poisson mean m between k and ``far`` at which k log(k / m) - k + m is ``half``,
    rounded outwards.

    At that mean a count of k has a tail of about exp(-half).
    """
    near = k
    for _ in range(80):
        m = (near + far) / 2
        within = k * np.log(k / m) - k + m < half
        near, far = np.where(within, m, near), np.where(within, far, m)
    return far
