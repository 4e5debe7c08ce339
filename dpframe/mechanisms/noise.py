"""Noise on integers: discrete Laplace, pure epsilon by the L1 sensitivity
(docs/guarantees/laplace.md), and discrete Gaussian, concentrated privacy by the L2 sensitivity
(docs/guarantees/gaussian.md); and the quantiles of both, for intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe._types import Array
from dpframe.accounting import _search
from dpframe.accounting._filter import Price
from dpframe.accounting._gaussian import shift_mu
from dpframe.accounting.loss import DiscreteGaussian, Loss, PureDP
from dpframe.mechanisms import _sampling
from dpframe.mechanisms._base import L2, Form, Noise, Norm, Offer, PureNoise, Shape, pure, register

# Below this deviation noise is visibly discrete, and its law is short enough to be summed.
COARSE = 64.0


@register
@dataclass(frozen=True, slots=True)
class LaplaceNoise(PureNoise):
    """Independent noise X for each integer, with P[x] proportional to exp(-|x| / scale).

    Formal guarantee: integers that one person moves by at most ``l1`` in L1 are released with
    epsilon at most ``l1 / scale``, under the neighbouring relation of that sensitivity (Ghosh,
    Roughgarden and Sundararajan 2009; the lecture notes' theorem 4, on integers). Scale and epsilon
    are the same rational number.

    >>> LaplaceNoise.for_price(2, Fraction(1, 2)).scale
    Fraction(4, 1)
    """

    name: ClassVar[str] = "laplace"
    proof: ClassVar[str] = "laplace.md"
    named: ClassVar[bool] = True
    automatic: ClassVar[bool] = True
    scale: Fraction

    @staticmethod
    def for_price(l1: int, epsilon: Fraction) -> LaplaceNoise:
        return LaplaceNoise(Fraction(l1 * epsilon.denominator, epsilon.numerator))

    def draw(self, size: int) -> Array:
        return _sampling.discrete_laplace(self.scale, size)

    def form(self, shape: Shape) -> Form:
        wide = self.scale.numerator >= _sampling.INT64_SCALE * self.scale.denominator
        return Form(shape, "O" if wide else "i")

    def epsilon_for(self, distance: int) -> Fraction:
        return distance / self.scale

    def tail(self, candidates: int = 0) -> str:
        return "noise is more than t times its scale, rounded up to the grid, with probability at most exp(-t)"

    @property
    def deviation(self) -> float:
        """Standard deviation: sqrt(2 q) / (1 - q) with q = exp(-1/scale)."""
        rate = self.scale.denominator / self.scale.numerator
        return math.sqrt(2 * math.exp(-rate)) / -math.expm1(-rate)

    @property
    def continuous_deviation(self) -> float:
        """The deviation at which continuous noise has larger tails than this noise, rounded."""
        q = math.exp(-float(1 / self.scale))
        return (1 + q) / (math.sqrt(2) * (1 - q))

    def quantile(self, level: float, terms: int = 1) -> int:
        """Return the least t with P[|X| <= t] >= level, for the sum X of ``terms`` independent such
        noises."""
        rate = self.scale.denominator / self.scale.numerator
        q = math.exp(-rate)
        if terms == 1:  # P[|X| > t] = 2 q**(t+1) / (1 + q)
            return max(0, math.ceil(-math.log((1 - level) * (1 + q) / 2) / rate - 1 - 1e-9))
        reach = min(math.ceil(60 / rate), 2**14) + 1
        return sum_quantile(np.exp(-rate * np.arange(reach)), level, terms)

    def simulate(
        self, first: NDArray[np.float64], second: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return simulated noise of this law, for p-values: differences of two geometric numbers.
        ``first`` and ``second`` are arrays of numbers uniform on 0 to 1."""
        scale = float(self.scale)
        return np.asarray(np.floor(-np.log(first) * scale) - np.floor(-np.log(second) * scale))

    @np.errstate(all="ignore")  # no moments from the rate on
    def cumulant(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log E exp(t X) of this noise X, for tail bounds; it is infinite from |t| = 1/scale
        on. It equals 2 log(1 - q) - log(1 - q exp(t)) - log(1 - q exp(-t)) with q =
        exp(-1/scale)."""
        rate, size = self.scale.denominator / self.scale.numerator, np.abs(t)
        moments = (
            2 * np.log(-np.expm1(-rate))
            - np.log(-np.expm1(size - rate))
            - np.log(-np.expm1(-size - rate))
        )
        return np.asarray(np.where(size < rate, np.maximum(moments, 0.0), np.inf))

    @staticmethod
    def spread(level: float) -> float:
        """Return how many standard deviations bound any weighted sum of continuous Laplace noises
        with probability ``level``.

        One Laplace variable and the Gaussian limit of many are the extremes; where they cross, sums
        of two need a thousandth more (the tests check it over weights).
        """
        return 1.0015 * max(-math.log1p(-level) / math.sqrt(2), normal_quantile(level))

    def reach(self, level: float, terms: int) -> float:
        """Return how many standard deviations bound any weighted sum of `terms` such noises with
        probability ``level``."""
        if not self.deviation:
            return self.spread(level)
        smooth = self.deviation * math.cosh(float(1 / self.scale) / 2)
        return discrete_reach(self.spread, smooth, self.quantile, level, terms) / self.deviation


@register
@dataclass(frozen=True, slots=True)
class GaussianNoise(Noise):
    """Independent noise X for each integer, with P[x] proportional to exp(-x**2 / (2 variance)).

    Formal guarantee: integers that one person moves by at most L in L2 are released with rho = L**2
    / (2 variance) zero-concentrated differential privacy (Canonne, Kamath and Steinke 2020, theorem
    14), and with Gaussian differential privacy of mu = L times `accounting._gaussian.shift_mu`
    (docs/guarantees/discrete-gaussian.md).
    """

    name: ClassVar[str] = "gaussian"
    proof: ClassVar[str] = "discrete-gaussian.md"
    named: ClassVar[bool] = True
    automatic: ClassVar[bool] = True
    norm: ClassVar[Norm] = L2
    needs_delta: ClassVar[bool] = True
    variance: Fraction

    @staticmethod
    def for_rho(l2_squared: int, rho: Fraction) -> GaussianNoise:
        """Return the least noise with this rho."""
        return GaussianNoise(l2_squared / (2 * rho))

    @staticmethod
    def for_mu(l2_squared: int, mu_squared: Fraction) -> GaussianNoise:
        """Return Gaussian noise with nearly the least variance, within 1e-9, whose mu squared is at
        most ``mu_squared``. Fractions are compared exactly. ``l2_squared`` is the squared L2
        sensitivity.

        >>> float(GaussianNoise.for_mu(1, Fraction(1, 100)).variance)  # a twelfth more than continuous noise would need
        100.08...
        """
        if not l2_squared:
            return GaussianNoise(Fraction(0))
        return GaussianNoise(_variance_for(mu_squared / l2_squared))

    @property
    def scale(self) -> float:
        """The parameter sigma."""
        return math.sqrt(self.variance)

    def draw(self, size: int) -> Array:
        return _sampling.discrete_gaussian(self.variance, size)

    def form(self, shape: Shape) -> Form:
        wide = self.variance.numerator >= _sampling.INT64_VARIANCE * self.variance.denominator
        return Form(shape, "O" if wide else "i")

    @classmethod
    def together(cls, moved: Sequence[tuple[Any, int]]) -> Loss:
        return DiscreteGaussian(
            parts=[(mechanism.variance, Fraction(distance)) for mechanism, distance in moved]
        )

    @classmethod
    def offer(cls, distances: Sequence[tuple[int, int]], price: Price) -> Offer | None:
        """Return Gaussian noises that share a price evenly, or None if the price holds neither rho
        nor mu. ``distances`` has the L1 and the squared L2 sensitivity of each vector."""
        if price.rho is None and price.mu_squared is None:
            return None
        buys: Any = cls.for_mu
        amount = price.mu_squared
        if price.rho is not None:
            buys, amount = cls.for_rho, price.rho
        noises, moved = [], []
        for _, squared in distances:
            noise = buys(squared * len(distances), amount)
            noises.append(noise)
            # A vector that nobody can move has no cost, and no loss has a sensitivity of 0.
            if squared:
                moved.append((noise.variance, Fraction(squared)))
        if not moved:
            return Offer(noises, PureDP(pure(price)))
        return Offer(noises, DiscreteGaussian(parts=moved), price.delta)

    @classmethod
    def refusal(cls, price: Price) -> str:
        """Say why this price buys no Gaussian noise, and what to write instead."""
        if price.stake is not None and price.stake.gaussian_waits:
            return (
                "mechanism='gaussian' has to wait: large releases with other noise took more than their part of what "
                "counts Gaussian noise, and the plain sum that paid them cannot count it. Leave mechanism= out, or ask "
                "for a larger epsilon."
            )
        if price.stake is not None and price.stake.left is None:
            return (
                "this budget has no room for Gaussian noise any more: a release that was too large to be counted together "
                "with many small ones was paid from the plain sum of epsilons, which counts no Gaussian noise. Ask without "
                "mechanism='gaussian', and fit models by a method whose noise is not Gaussian, such as 'output'."
            )
        return (
            "mechanism='gaussian' needs a price that buys one: delta= beside epsilon=, or a session with delta > 0 "
            "whose accountant still has room for it."
        )

    def tail(self, candidates: int = 0) -> str:
        return "noise is more than t times its scale, rounded up to the grid, with probability at most exp(-t**2 / 2)"

    @property
    def deviation(self) -> float:
        """An upper bound on the standard deviation: sigma (same paper, corollary 9)."""
        return self.scale

    @property
    def continuous_deviation(self) -> float:
        """The deviation at which continuous noise has larger tails than this noise, rounded."""
        return math.sqrt(float(self.variance) + 0.2)

    def quantile(self, level: float, terms: int = 1) -> int:
        """Return a t with P[|X| <= t] >= level, for the sum X of ``terms`` independent such noises.
        It is the least one if sigma is small."""
        sigma = math.sqrt(self.variance)
        if sigma > COARSE:  # the tail is below the continuous one's, shifted by one step
            return math.ceil(normal_quantile(level) * sigma * math.sqrt(terms) + 0.5)
        return _summed_quantile(sigma, level, terms)

    def simulate(
        self, first: NDArray[np.float64], second: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return simulated noise, for p-values: normal (Box and Muller 1958) and rounded, which is
        a little wider than this law. ``first`` and ``second`` are arrays of numbers uniform on 0 to
        1."""
        return np.asarray(
            np.rint(self.scale * np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second))
        )

    def cumulant(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a bound on log E exp(t X): that of the normal law, since exp(-x**2 / (2 sigma**2))
        sums to most over whole x."""
        return np.asarray(t * t * (float(self.variance) / 2))

    @staticmethod
    def spread(level: float) -> float:
        """Return how many standard deviations bound any weighted sum of continuous Gaussian noises
        with probability ``level``."""
        return normal_quantile(level)

    def reach(self, level: float, terms: int) -> float:
        """Return how many standard deviations bound any weighted sum of `terms` such noises with
        probability ``level``."""
        if not self.deviation:
            return self.spread(level)
        smooth = math.sqrt(self.variance + Fraction(1, 5))
        return discrete_reach(self.spread, smooth, self.quantile, level, terms) / self.deviation


@lru_cache(maxsize=1024)
def _summed_quantile(sigma: float, level: float, terms: int) -> int:
    """Return `GaussianNoise.quantile` by summing the law, which is short enough for a small
    ``sigma``. It is cached, since questions of one price have one law."""
    steps = np.arange(math.ceil(40 * sigma) + 2)
    with np.errstate(under="ignore"):
        return sum_quantile(np.exp(-(steps**2) / (2 * sigma * sigma)), level, terms)


@lru_cache(maxsize=1024)
def _variance_for(step_squared: Fraction) -> Fraction:
    """Return nearly the least variance at which a move of one integer by one has at most this mu
    squared. Bisection finds it to a part in 10**9.

    ``low`` and ``high`` are the ends, and x and y their doubles. The result must not depend on
    rounding: each middle is the double nearest to the mean of the ends, and each decision the one
    that exact fractions make. Doubles decide what they are sure of, so that few fractions are
    needed:

    - Whether a variance is enough, outside the ends that `_doubtful` finds.
    - Whether the ends are close, unless a millionth may tell: they are more than 10**-9 apart
      before, so that the difference of their doubles is within 2**-51 / 10**-9 < 10**-6 of theirs.
    - The middle, once the upper end y is a double. The lower one is x + r, where x is the nearest
      double and |r| at most half a unit u of its last place. Both doubles are multiples of u and x
      + y is in a higher binade than x, so the double nearest to their sum changes at multiples of u
      only: of r no more counts than its sign. `fsum` rounds once, and halving is exact."""
    fails, holds = _doubtful(step_squared)
    low: Fraction | float = 1 / step_squared
    high: Fraction | float = low + Fraction(1, 8)
    while True:
        x, y = float(low), float(high)
        if y >= holds or (y > fails and Fraction(shift_mu(high)) ** 2 <= step_squared):
            break
        low, high = high, 2 * high
    rest = math.ldexp(x, -55) * ((low > x) - (low < x))
    while True:
        gap = (y - x) * 1e9
        if gap < x * (1 + 1e-6) and (
            gap < x * (1 - 1e-6) or Fraction(high) - Fraction(low) <= Fraction(low) / 10**9
        ):
            return Fraction(high)
        exact = isinstance(high, Fraction)
        at = float((Fraction(low) + high) / 2) if exact else math.fsum((x, rest, y)) / 2
        if at >= holds or (at > fails and Fraction(shift_mu(at)) ** 2 <= step_squared):
            high = y = at
        else:
            low, x, rest = at, at, 0.0


def _doubtful(step_squared: Fraction) -> tuple[float, float]:
    """Return two variances that narrow the search of `_variance_for`: up to the first no variance
    is enough for this mu squared, and from the second on all are.

    They are a part in 10**11 to both sides of a guess, which iteration finds. Each is checked: a
    bad guess returns 0 or inf, and is never wrong. The exact mu falls as the variance grows, and
    `shift_mu` is within a factor of 1 + 10**-13 of a multiple of it. So if its square at one
    variance is off by more than a factor of 1 + 10**-12, it is on that side at all variances
    beyond.
    """
    square = float(step_squared)
    if not 1e-200 < square < 1e200:
        return 0.0, math.inf
    guess = (1 + 2e-12) / square + 1 / 12  # up to terms of 1 / guess
    for _ in range(12 if guess < 1e6 else 0):
        last, guess = guess, guess * shift_mu(guess) ** 2 / square
        if abs(guess - last) <= 1e-13 * guess * max(1.0, guess):
            break
    below, above = guess * (1 - 1e-11), guess * (1 + 1e-11)
    fails = below * (1 - 1e-15) if shift_mu(below) ** 2 > square * (1 + 1e-12) else 0.0
    return fails, above * (1 + 1e-15) if shift_mu(above) ** 2 < square * (1 - 1e-12) else math.inf


# Quantiles: no privacy hangs on them, so doubles will do --------------------------------------------------------------


@lru_cache(maxsize=256)
def normal_quantile(level: float) -> float:
    """Return the t with P[|Z| <= t] = level for a standard normal Z.

    It is found by bisection on erf, so that intervals have the same last digits everywhere.
    """
    return _search.first_where(lambda x: math.erf(x / math.sqrt(2)) >= level, 0.0, 40.0, rounds=80)


def discrete_reach(
    spread: Callable[[float], float],
    deviation: float,
    quantile: Callable[[float], int],
    level: float,
    terms: int,
) -> float:
    """Return a bound on the size of a weighted sum of whole-number noises, for weights of norm 1.

    It holds with probability ``level`` for any weights of ``terms`` noises. A noise plus a uniform
    number on [-1/2, 1/2] is nearer to 0 than continuous noise of this ``deviation``, and
    ``spread(p)`` deviations bound sums of the latter with probability p. ``quantile(p)`` bounds one
    noise with probability p.

    Four bounds hold, and the least is returned. They differ in how the uniform numbers are taken
    off again: each is at most 1/2; their sum is bounded by Chernoff, with a hundredth of the risk;
    they are symmetric, which takes half the risk; or each noise is bounded alone, without them
    (docs/guarantees/intervals.md#sums-of-several-noisy-integers).
    """
    risk = 1 - level
    root = math.sqrt(terms)
    return min(
        spread(level) * deviation + root / 2,
        spread(1 - 0.99 * risk) * deviation + math.sqrt(math.log(200 / risk) / 6),
        spread(1 - risk / 2) * deviation,
        root * quantile(1 - risk / terms),
    )


def sum_quantile(weights: NDArray[np.float64], level: float, terms: int) -> int:
    """Return the least t with P[|S| <= t] >= level, for the sum S of ``terms`` independent noises.

    Each noise has P[x] proportional to weights[|x|]. The law of the sum is found by convolution.
    """
    single_law = np.concatenate([weights[:0:-1], weights])
    single_law /= single_law.sum()
    law = single_law
    for _ in range(terms - 1):
        law = np.convolve(law, single_law)
    middle = len(law) // 2
    inside = law[middle] + 2 * np.concatenate([[0.0], np.cumsum(law[middle + 1 :])])
    return int(np.searchsorted(inside, min(level, inside[-1])))
