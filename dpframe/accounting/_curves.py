"""Losses with a curve of their own: Laplace noise, choices of bounded range, and Gaussian noise on
a sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import special

from dpframe import _validate
from dpframe._errors import BadValue
from dpframe.accounting import residue
from dpframe.accounting._pairs import (
    UP,
    Curve,
    Floats,
    Gaussian,
    Loss,
    Normal,
    Number,
    assign,
    number,
)

_ROUNDING = 2e-15  # relative, of each term of a difference of probabilities


@dataclass(frozen=True)
class Laplace(Loss):
    """Privacy loss of a number with Laplace noise of scale sensitivity / epsilon: P = Laplace(0), Q
    = Laplace(epsilon), of scale 1."""

    epsilon: Fraction
    kind: ClassVar[str] = "laplace"
    _remains = staticmethod(residue.after_laplace)

    if TYPE_CHECKING:

        def __init__(self, epsilon: Number) -> None: ...

    def __post_init__(self) -> None:
        assign(self, epsilon=number(self.epsilon, "epsilon"))

    def renyi(self, orders: Floats) -> Floats:
        """Return the Renyi divergences at these orders, by the closed form of Mironov (2017), table
        II.

        At the order a it is log(a/(2a-1) e**((a-1) e) + (a-1)/(2a-1) e**(-a e)) / (a-1). The terms
        of first order in e cancel, so they are left out. Divergences are at most those of any
        epsilon-private release.
        """
        e = float(self.epsilon)
        up, down = (orders - 1) * e, -orders * e
        small = up < 300
        first, second = orders / (2 * orders - 1), (orders - 1) / (2 * orders - 1)
        excess = first * _exp_minus_linear(np.where(small, up, 0.0)) + second * _exp_minus_linear(
            np.where(small, down, 0.0)
        )
        exact = np.log1p(excess) / (orders - 1) * UP
        return np.minimum(np.where(small, exact, e), super().renyi(orders))

    @property
    def curves(self) -> tuple[Curve, ...]:
        """Privacy curve in closed form: delta at each threshold t."""
        e = float(self.epsilon)

        def delta(t: Floats) -> Floats:
            inner = -np.expm1((np.clip(t, -e, e) - e) / 2)
            curve: Floats = np.where(t < -e, -np.expm1(np.minimum(t, 0.0)), inner)
            return curve

        return (Curve(delta, -e, e),)


def _exp_minus_linear(x: Floats) -> Floats:
    series = x * x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6 * (1 + x / 7)))))
    difference: Floats = np.where(np.abs(x) < 1e-2, series, np.expm1(x) - x)
    return difference


@dataclass(frozen=True)
class DiscreteLaplace(Loss):
    """Privacy loss of a whole number moved by at most ``sensitivity``, with noise P[x] proportional
    to exp(-a |x|).

    Losses a * {-s, 2 - s, ..., s}; a smaller shift has a smaller curve, since the law is
    log-concave. With a sensitivity of 1 it is randomized response itself.
    """

    a: Fraction
    sensitivity: int = 1
    kind: ClassVar[str] = "discrete_laplace"

    if TYPE_CHECKING:

        def __init__(self, a: Number, sensitivity: int = 1) -> None: ...

    def __post_init__(self) -> None:
        """Check the parameters, and keep them as exact numbers."""
        assign(
            self,
            a=number(self.a, "a"),
            sensitivity=_validate.positive_int(self.sensitivity, "sensitivity"),
        )

    @property
    def epsilon(self) -> Fraction:
        return self.a * self.sensitivity

    @property
    def curves(self) -> tuple[Curve, ...]:
        """Privacy curve of the discrete law, summed over its possible losses."""
        losses, masses = _laplace_atoms(float(self.a), self.sensitivity)
        if losses is None or masses is None:
            return super().curves
        e = float(self.epsilon)

        def delta(t: Floats) -> Floats:
            """Return delta at each threshold t, from the losses above it, rounded up."""
            index = np.searchsorted(losses, t, side="right")
            above = np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])
            lifted = np.concatenate([np.cumsum((masses * np.exp(-losses))[::-1])[::-1], [0.0]])
            curve: Floats = np.clip(
                (above[index] - np.exp(np.minimum(t, 700.0)) * lifted[index]) * UP, 0, 1
            )
            return np.maximum(curve, -np.expm1(np.minimum(t, 0.0)))

        return (Curve(delta, -e, e),)


@lru_cache(maxsize=64)
def _laplace_atoms(a: float, s: int) -> tuple[Floats, Floats] | tuple[None, None]:
    """Return the possible privacy losses of discrete Laplace noise, and their probabilities.

    The noise has P[x] proportional to exp(-a |x|), and ``s`` is the sensitivity. The losses are a
    times -s, 2 - s, ..., s. Both results are None if the losses are too many or too large.
    """
    if s > 4096 or a * s > 600:
        return None, None  # randomized response is close by then, and holds
    inner = np.arange(1, s)
    losses = a * np.concatenate([[-s], (s - 2.0 * inner)[::-1], [s]])
    step = math.tanh(a / 2)
    last = step * math.exp(-a * s) / -math.expm1(-a)
    masses = np.concatenate([[last], (step * np.exp(-a * inner))[::-1], [(1 + step) / 2]])
    return losses, masses


@dataclass(frozen=True)
class Exponential(Loss):
    """Privacy loss of a choice by the exponential mechanism: losses within a range of length
    epsilon (Durfee and Rogers 2019).

    epsilon**2 / 8 zCDP (Cesar and Rogers 2021, theorem 3). Gumbel noise is the same mechanism;
    one-sided noisy max and permute-and-flip are not of bounded range and count as `PureDP`.
    """

    epsilon: Fraction
    kind: ClassVar[str] = "exponential"
    _remains = staticmethod(residue.after_exponential)

    if TYPE_CHECKING:

        def __init__(self, epsilon: Number) -> None: ...

    def __post_init__(self) -> None:
        assign(self, epsilon=number(self.epsilon, "epsilon"))

    @property
    def bounded_range(self) -> float:
        return float(self.epsilon)

    @cached_property
    def rho(self) -> Fraction:
        return self.epsilon**2 / 8

    def renyi(self, orders: Floats) -> Floats:
        return np.minimum(orders * float(self.rho) * UP, super().renyi(orders))

    @property
    def curves(self) -> tuple[Curve, ...]:
        """Largest curve at each threshold over all pairs of losses in the range.

        It bounds one release. It is not the curve of a pair itself, so it does not compose.
        """
        e = float(self.epsilon)

        def delta(t: Floats) -> Floats:
            inner = np.expm1((np.clip(t, -e, e) - e) / 2) ** 2 / -math.expm1(-e)
            curve: Floats = np.where(t < -e, -np.expm1(np.minimum(t, 0.0)), inner)
            return curve

        return (Curve(delta, -e, e),)


@dataclass(frozen=True)
class PoissonGaussian(Normal):
    """Privacy loss of Gaussian noise on a sum over people, each drawn with probability ``q``: a
    step of DP-SGD, add-or-remove.

    The pairs are N(0) against (1 - q) N(0) + q N(1), both ways round (Mironov, Talwar and Zhang
    2019; Zhu, Dong and Wang 2022). Without the curve it still costs no more than the Gaussian
    itself.
    """

    q: Fraction
    sigma: Fraction
    kind: ClassVar[str] = "poisson_gaussian"

    if TYPE_CHECKING:

        def __init__(self, q: Number, sigma: Number) -> None: ...

    def __post_init__(self) -> None:
        q = number(self.q, "q")
        if q > 1:
            raise BadValue(f"q is a probability, so at most 1, not {q}.")
        assign(self, q=q, sigma=number(self.sigma, "sigma"))

    @cached_property
    def mu_squared(self) -> Fraction:
        return 1 / self.sigma**2

    @cached_property
    def rho(self) -> Fraction:
        return self.mu_squared / 2

    def epsilon_at(self, delta: Fraction) -> Fraction | None:
        options = [Gaussian(self.sigma).epsilon_at(delta), Loss.epsilon_at(self, delta)]
        return min((e for e in options if e is not None), default=None)

    def renyi(self, orders: Floats) -> Floats:
        """Return the Renyi divergences of the sampled Gaussian at these orders.

        Orders are rounded up to whole ones first. The divergences are at most those without
        sampling.
        """
        whole = np.ceil(orders)  # the divergence grows with the order
        plain = orders * float(self.rho) * UP
        sampled = [
            renyi_of_sampled_gaussian(float(self.q), float(self.sigma), int(a))
            if a <= 1024
            else math.inf
            for a in whole
        ]
        least: Floats = np.minimum(plain, np.array(sampled))
        return least

    @property
    def curves(self) -> tuple[Curve, ...]:
        """Privacy curves of the two directions: a removed row and an added row."""
        q, sigma = float(self.q), float(self.sigma)
        if self.q == 1:
            return Gaussian(self.sigma).curves
        # P[L > t] lies below that of a Gaussian whose mean is one step further out.
        far = 1 / (2 * sigma * sigma) + 38 / sigma
        return (
            Curve(lambda t: curve_of_removed_row(q, sigma, t), math.log1p(-q), far),
            Curve(lambda t: curve_of_added_row(q, sigma, t), -far, -math.log1p(-q)),
        )


@lru_cache(maxsize=8192)
@np.errstate(all="ignore")  # whatever the caller's numpy does with tiny numbers
def renyi_of_sampled_gaussian(q: float, sigma: float, order: int) -> float:
    """Return the Renyi divergence of a Poisson-sampled Gaussian at a whole order.

    ``q`` is the probability with which a person is drawn, and ``sigma`` the noise for a sensitivity
    of 1. At the order a it is log(sum_k C(a, k) (1-q)**(a-k) q**k e**((k**2-k) / (2 sigma**2))) /
    (a-1) (Mironov, Talwar and Zhang 2019, section 3.3).
    """
    k = np.arange(order + 1)
    logs = special.gammaln(order + 1) - special.gammaln(k + 1) - special.gammaln(order - k + 1)
    logs = (
        logs + (order - k) * (math.log1p(-q) if q < 1 else -1e300) * (k < order) + k * math.log(q)
    )
    # The terms for k = 0 and 1 add up to 1 less the others' weights; log1p of the excess keeps
    # small values.
    rest = k >= 2
    grown = (k[rest] ** 2 - k[rest]) / (2 * sigma**2)
    with np.errstate(over="ignore"):
        excess = np.exp(logs[rest] + grown + np.log(-np.expm1(-grown)))
    exponents = logs + (k * k - k) / (2 * sigma**2)
    if float(exponents.max()) > 600:
        top = float(exponents.max())
        return (top + math.log(float(np.exp(exponents - top).sum()))) / (order - 1) * (1 + 1e-9)
    return math.log1p(float(excess.sum())) / (order - 1) * (1 + 1e-9)


def curve_of_removed_row(q: float, sigma: float, t: Floats) -> Floats:
    """Return delta at each threshold t for P = (1 - q) N(0) + q N(1) against Q = N(0), rounded up.

    This is a Poisson-sampled Gaussian of deviation ``sigma`` when a row is removed: ``q`` is the
    sampling probability. P exceeds e**t Q to the right of the point ``x``, so delta is P - e**t Q of
    that half line. ``near`` and ``far`` are its probabilities under N(1) and N(0). For t below
    log(1 - q) it is the whole line.
    """
    inside = t > math.log1p(-q)
    z = np.maximum(
        np.where(inside, np.expm1(np.minimum(np.where(inside, t, 0.0), 700)) + q, 1.0), 1e-300
    )
    x = sigma * sigma * np.log(z / q) + 0.5
    far, near = special.ndtr(-x / sigma), special.ndtr(-(x - 1) / sigma)
    lift = np.expm1(np.minimum(t, 700.0))
    value = q * (near - far) - lift * far + _ROUNDING * (q * (near + far) + np.abs(lift) * far)
    curve: Floats = np.where(inside, np.maximum(value, 0.0), -np.expm1(np.minimum(t, 0.0)))
    return curve


def curve_of_added_row(q: float, sigma: float, t: Floats) -> Floats:
    """Return delta at each threshold t for P = N(0) against Q = (1 - q) N(0) + q N(1), rounded up.

    This is a Poisson-sampled Gaussian of deviation ``sigma`` when a row is added: ``q`` is the
    sampling probability. P exceeds e**t Q to the left of the point ``x``, so delta is P - e**t Q of
    that half line. ``near`` and ``far`` are its probabilities under N(0) and N(1). For t above
    -log(1 - q) there is no such point, and delta is 0.
    """
    inside = t < -math.log1p(-q)
    z = np.maximum(np.where(inside, np.expm1(np.where(inside, -t, 0.0)) + q, 1.0), 1e-300)
    x = sigma * sigma * np.log(z / q) + 0.5
    near, far = special.ndtr(x / sigma), special.ndtr((x - 1) / sigma)
    lift, weight = np.expm1(np.minimum(t, 700.0)), np.exp(np.minimum(t, 700.0)) * q
    value = (
        weight * (near - far)
        - lift * near
        + _ROUNDING * (weight * (near + far) + np.abs(lift) * near)
    )
    curve: Floats = np.where(inside, np.maximum(value, 0.0), 0.0)
    return curve
