"""The Gaussian pair N(mu, 1) against N(0, 1): its curve and the conversions that follow, on the
safe side.

H(t) = sup_S P[S] - e**t Q[S] = Phi(mu/2 - t/mu) - e**t Phi(-mu/2 - t/mu) (Balle and Wang 2018,
theorem 8). Its derivative in mu is the normal density at t/mu - mu/2, which every bisection here
uses. Discrete Gaussian noise is at the end.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpframe.accounting import _search

# The relative error of the curve below is under 1e-8 for every mu and every t where it is a double.
_SLACK = 2e-8
_SMALL = 1e-5  # below, two nearly equal tails would be subtracted
_ROOT2 = math.sqrt(2)
_ROOT_2PI = math.sqrt(2 * math.pi)


def delta(mu: float, t: ArrayLike) -> NDArray[np.float64]:
    """Return the least delta at epsilon = t of N(mu, 1) against N(0, 1), for each threshold t.

    It is H(t) for any real t, and (1 - e**t)+ if mu is 0.

    Phi and phi are the normal law and its density, a = t/mu - mu/2 and b = a + mu. One formula
    would lose digits somewhere, so there are three. For t above mu**2/2, H(t) is phi(a) (R(a) -
    R(b)) with Mills' ratio R = Phi(-x)/phi(x). For other t it is Phi(-a) - e**t Phi(-b). For a
    small mu it is the integral of its derivative in mu, less a factor e**(-mu**2/8): mu e**(t/2)
    (phi(x) - x Phi(-x)), x = t/mu.
    """
    t = np.asarray(t, float)
    with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
        floor: NDArray[np.float64] = np.maximum(-np.expm1(np.minimum(t, 0.0)), 0.0)
        if mu <= 0:
            return floor
        if mu < _SMALL:
            x = np.minimum(np.abs(t) / mu, 45.0)
            mills = 1 / _ROOT_2PI - x * special.erfcx(x / _ROOT2) / 2
            # H(-t) = 1 - e**-t + e**-t H(t), and e**-t e**(t/2) is e**(-t/2)
            near_zero: NDArray[np.float64] = (
                floor + mu * np.exp(np.minimum(t, 80.0) / 2 - x * x / 2) * mills
            )
            return near_zero
        a = t / mu - mu / 2
        b = a + mu
        right = np.maximum(a, 0.0)
        ratio = special.erfcx(right / _ROOT2) - special.erfcx((right + mu) / _ROOT2)
        tail = np.exp(-right * right / 2) * ratio / 2
        # e**t phi(b) = phi(a), so that neither factor overflows where b > 0
        lifted = np.where(
            b > 0,
            np.exp(-a * a / 2) * special.erfcx(np.maximum(b, 0.0) / _ROOT2) / 2,
            np.exp(np.minimum(t, 0.0)) * special.ndtr(-b),
        )
        body = special.ndtr(-a) - lifted
    curve: NDArray[np.float64] = np.maximum(np.where(a > 0, tail, body), floor)
    return curve


def delta_at(mu: float, t: float) -> float:
    """Return `delta` of N(mu, 1) against N(0, 1) for a single threshold t.

    It is faster than `delta`, which takes arrays, and has the same three formulas.
    """
    floor = -math.expm1(t) if t < 0 else 0.0
    if mu <= 0:
        return floor
    if mu < _SMALL:
        x = min(abs(t) / mu, 45.0)
        mills = 1 / _ROOT_2PI - x * float(special.erfcx(x / _ROOT2)) / 2
        return floor + mu * math.exp(min(t, 80.0) / 2 - x * x / 2) * mills
    a = t / mu - mu / 2
    b = a + mu
    if a > 0:
        if a > 38:
            return floor
        near, far = float(special.erfcx(a / _ROOT2)), float(special.erfcx(b / _ROOT2))
        return max(floor, math.exp(-a * a / 2) * (near - far) / 2)
    scaled = math.exp(-a * a / 2) * float(special.erfcx(max(b, 0.0) / _ROOT2))
    lifted = scaled if b > 0 else math.exp(t) * math.erfc(b / _ROOT2)
    return max(floor, (math.erfc(a / _ROOT2) - lifted) / 2)


@lru_cache(maxsize=4096)
def mu_for(epsilon: float, delta: float) -> float:
    """Return the largest mu, rounded down, for which N(mu, 1) and N(0, 1) are (epsilon,
    delta)-indistinguishable.

    >>> round(mu_for(1.0, 1e-6), 4)
    0.2367
    """
    if delta <= 0:
        return 0.0
    target = min(delta, 1.0) * (1 - _SLACK)
    low, high = 0.0, 1.0
    while delta_at(high, epsilon) <= target:
        low, high = high, 2 * high
        if high > 1e6:
            return low
    return _search.last_where(lambda mu: delta_at(mu, epsilon) <= target, low, high, rounds=200) * (
        1 - 1e-12
    )


@lru_cache(maxsize=4096)
def epsilon_for(mu: float, delta: float) -> float:
    """Return the least epsilon >= 0, rounded up, for which N(mu, 1) and N(0, 1) are (epsilon,
    delta)-indistinguishable.

    >>> round(epsilon_for(1.0, 1e-5), 6)
    4.377178
    """
    if mu <= 0:
        return 0.0
    if delta <= 0 or mu == math.inf:
        return math.inf
    target = delta * (1 - _SLACK)
    if delta_at(mu, 0.0) <= target:
        return 0.0
    low, high = 0.0, 1.0
    while delta_at(mu, high) > target:
        low, high = high, 2 * high
        if high > 1e9:
            return math.inf
    return _search.first_where(lambda t: delta_at(mu, t) <= target, low, high, rounds=200) * (
        1 + 1e-12
    )


def quantile(p: float) -> float:
    """Phi**-1."""
    return float(special.ndtri(p))


def pure_mu(epsilon: float) -> float:
    """Return the least mu, rounded up, at which N(mu, 1) against N(0, 1) dominates every
    epsilon-private release.

    2 Phi**-1(e**epsilon / (1 + e**epsilon)) (Dong, Roth and Su 2022, as randomized response touches
    the curve).
    """
    if epsilon > 700:
        return math.inf
    # erfinv of tanh(epsilon / 2), from the side that keeps its digits
    near = 2 * _ROOT2 * float(special.erfinv(math.tanh(epsilon / 2)))
    far = -2 * float(special.ndtri(1 / (1 + math.exp(epsilon))))
    return (near if epsilon < 1 else far) * (1 + 1e-12)


def pure_for_mu(mu_squared: Fraction) -> Fraction:
    """Return the largest epsilon, rounded down, such that this mu dominates every epsilon-private
    release.

    It is the inverse of `pure_mu`.

    >>> round(float(pure_for_mu(Fraction(1, 100))), 5)
    0.0798
    """
    mu = math.sqrt(mu_squared)
    e = (
        2 * math.atanh(math.erf(mu / (2 * math.sqrt(2))))
        if mu < 5
        else math.log(0.5 * math.erfc(-mu / 8**0.5) / (0.5 * math.erfc(mu / 8**0.5)))
    )
    return Fraction(e * (1 - 1e-10))


# Discrete Gaussian noise (docs/guarantees/discrete-gaussian.md) --------------------------------------------------------

# The rounding errors, measured against 130 digits, are under 1e-15 of the result: this is a
# thousand times that.
_ABOVE = 1 + 1e-12
_LARGEST = Fraction(2**1000)


@lru_cache(maxsize=4096)
def shift_mu(variance: Fraction | float) -> float:
    """Return the least mu, rounded up, at which discrete Gaussian noise hides a shift by one
    integer.

    Then the pair N(mu, 1) and N(0, 1) dominates the noise and its shifted copy.

    Formal guarantee: with noise P[x] proportional to exp(-x**2 / (2 variance)) on each coordinate,
    whole numbers that move by d in L2 are shift_mu(variance) * d-GDP (Dong, Roth and Su 2022). The
    theorem of the page named above, for every variance: a move by one is mu-GDP if and only if mu
    >= 2 Phi**-1((1 + P[0]) / 2).

    >>> round(shift_mu(Fraction(1)), 9)
    1.04576012
    """
    v = variance
    if not isinstance(v, float):
        if v * _LARGEST <= 1:
            return math.inf
        v = float(min(v, _LARGEST))  # the least mu falls as the variance grows
    if v < 1 / 1400:
        # exp(-1 / (2 v)) leaves the doubles soon; Phi(-1 / sqrt(v)) is below half of it, which
        # proves 2 / sqrt(v)
        return 2 / math.sqrt(v) * _ABOVE
    # Sums of positive terms, cut off early: P[0] and so mu come out larger, never smaller.
    if v < 0.5:
        others = 2 * sum(math.exp(-j * j / (2 * v)) for j in range(1, 7))
        least = -2 * float(
            special.ndtri(others / (2 * (1 + others)))
        )  # keeps the digits of 1 - P[0]
    else:
        dual = 2 * sum(
            math.exp(-2 * (math.pi * k) ** 2 * v) for k in range(1, 3)
        )  # Poisson summation
        least = 2 * _ROOT2 * float(special.erfinv(1 / (math.sqrt(2 * math.pi * v) * (1 + dual))))
    return least * _ABOVE
