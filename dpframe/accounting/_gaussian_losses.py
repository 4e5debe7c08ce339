"""Losses of Gaussian noise: all that they cost follows from mu and rho."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import special

from dpframe import _validate
from dpframe._errors import BadValue
from dpframe.accounting import _gaussian
from dpframe.accounting._pure_losses import UP, Curve, Floats, Loss, Number, assign, number

_ROUNDING = 2e-15  # relative, of each term of a difference of probabilities


class _Normal(Loss):
    """A loss of Gaussian noise: everything follows from mu (Dong, Roth and Su 2022) and rho (Bun and Steinke 2016)."""

    @property
    def epsilon(self) -> None:
        return None

    @property
    def mu(self) -> float:
        assert self.mu_squared is not None
        return math.sqrt(self.mu_squared) * UP

    def renyi(self, orders: Floats) -> Floats:
        return orders * (float(self.rho) * UP if self.rho is not None else math.inf)

    @property
    def curves(self) -> tuple[Curve, ...]:
        m = self.mu
        reach = 38 * m
        return (Curve(lambda t: _gaussian.delta(m, t), m * m / 2 - reach, m * m / 2 + reach),)

    def residue(self, mu: float) -> float | None:
        assert self.mu_squared is not None
        left = Fraction(mu) ** 2 - self.mu_squared
        return None if left < 0 else math.sqrt(left) * (1 - 1e-15)

    def epsilon_at(self, delta: Fraction) -> Fraction | None:
        found = _gaussian.epsilon_for(self.mu, float(delta) * (1 - 1e-12))
        return Fraction(found) if math.isfinite(found) else None


@dataclass(frozen=True)
class Gaussian(_Normal):
    """Numbers moved by at most ``sensitivity`` in L2, with continuous Gaussian noise of deviation ``sigma``."""

    sigma: Fraction
    sensitivity: Fraction = Fraction(1)
    kind: ClassVar[str] = "gaussian"

    if TYPE_CHECKING:

        def __init__(self, sigma: Number, sensitivity: Number = 1) -> None: ...

    def __post_init__(self) -> None:
        assign(self, sigma=number(self.sigma, "sigma"), sensitivity=number(self.sensitivity, "sensitivity"))

    @cached_property
    def mu_squared(self) -> Fraction:
        return (self.sensitivity / self.sigma) ** 2

    @cached_property
    def rho(self) -> Fraction:
        return self.mu_squared / 2


@dataclass(frozen=True, init=False)
class DiscreteGaussian(_Normal):
    """Integers moved by at most ``sensitivity`` in L2, with discrete Gaussian noise of parameter ``sigma``.

    Of several vectors in one release ``parts`` has the variance and the squared sensitivity of each.
    rho = sensitivity**2 / (2 sigma**2) as for the continuous one (Canonne, Kamath and Steinke 2020), but mu is larger than
    sqrt(2 rho): docs/guarantees/discrete-gaussian.md.
    """

    parts: tuple[tuple[Fraction, Fraction], ...]
    kind: ClassVar[str] = "discrete_gaussian"

    def __init__(self, sigma: object = None, sensitivity: object = 1, *, parts: Iterable[Any] = ()):
        pairs = tuple((number(v, "variance"), number(d, "sensitivity squared")) for v, d in parts)
        if bool(pairs) == (sigma is not None):
            raise BadValue("DiscreteGaussian takes sigma= or parts=, and one of them only.")
        own = pairs or ((number(sigma, "sigma") ** 2, number(sensitivity, "sensitivity") ** 2),)
        assign(self, parts=own)

    @cached_property
    def mu_squared(self) -> Fraction:
        return sum((Fraction(_gaussian.shift_mu(v)) ** 2 * d for v, d in self.parts), Fraction(0))

    @cached_property
    def rho(self) -> Fraction:
        return sum((d / (2 * v) for v, d in self.parts), Fraction(0))

    def failing(self, delta: Fraction) -> Loss:
        return FailingGaussian(self.parts, delta)


@dataclass(frozen=True, init=False)
class FailingGaussian(DiscreteGaussian):
    """Discrete Gaussian noise, and beside it everything with probability ``delta``: a threshold that one person's own keys
    pass so seldom."""

    delta: Fraction
    kind: ClassVar[str] = "failing_gaussian"

    def __init__(self, parts: Iterable[Any], delta: Number):
        super().__init__(parts=parts)
        d = _validate.delta(delta)
        if not d:
            raise BadValue("FailingGaussian needs delta > 0; without one it is a DiscreteGaussian.")
        assign(self, delta=d)

    @property
    def failure(self) -> Fraction:
        return self.delta

    def epsilon_at(self, delta: Fraction) -> Fraction | None:
        return super().epsilon_at(delta - self.delta) if delta > self.delta else None


@dataclass(frozen=True)
class PoissonGaussian(_Normal):
    """Gaussian noise on a sum over people each drawn with probability ``q``: a step of DP-SGD, add-or-remove.

    The pairs are N(0) against (1 - q) N(0) + q N(1), both ways round (Mironov, Talwar and Zhang 2019; Zhu, Dong and Wang
    2022). Without the curve it still costs no more than the Gaussian itself.
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
        whole = np.ceil(orders)  # the divergence grows with the order
        plain = orders * float(self.rho) * UP
        found = [
            _renyi_sampled(float(self.q), float(self.sigma), int(a)) if a <= 1024 else math.inf for a in whole
        ]
        least: Floats = np.minimum(plain, np.array(found))
        return least

    @property
    def curves(self) -> tuple[Curve, ...]:
        q, sigma = float(self.q), float(self.sigma)
        if self.q == 1:
            return Gaussian(self.sigma).curves
        # P[L > t] lies below that of a Gaussian whose mean is one step further out.
        far = 1 / (2 * sigma * sigma) + 38 / sigma
        return (
            Curve(lambda t: _removed(q, sigma, t), math.log1p(-q), far),
            Curve(lambda t: _added(q, sigma, t), -far, -math.log1p(-q)),
        )


@lru_cache(maxsize=8192)
@np.errstate(all="ignore")  # whatever the caller's numpy does with tiny numbers
def _renyi_sampled(q: float, sigma: float, order: int) -> float:
    # Mironov, Talwar and Zhang 2019, section 3.3: log sum_k C(a,k) (1-q)**(a-k) q**k e**((k*k-k)/(2 sigma**2)) / (a-1)
    k = np.arange(order + 1)
    logs = special.gammaln(order + 1) - special.gammaln(k + 1) - special.gammaln(order - k + 1)
    logs = logs + (order - k) * (math.log1p(-q) if q < 1 else -1e300) * (k < order) + k * math.log(q)
    # The terms for k = 0 and 1 add up to 1 less the others' weights; log1p of the excess keeps small values.
    rest = k >= 2
    grown = (k[rest] ** 2 - k[rest]) / (2 * sigma**2)
    with np.errstate(over="ignore"):
        excess = np.exp(logs[rest] + grown + np.log(-np.expm1(-grown)))
    exponents = logs + (k * k - k) / (2 * sigma**2)
    if float(exponents.max()) > 600:
        top = float(exponents.max())
        return (top + math.log(float(np.exp(exponents - top).sum()))) / (order - 1) * (1 + 1e-9)
    return math.log1p(float(excess.sum())) / (order - 1) * (1 + 1e-9)


def _removed(q: float, sigma: float, t: Floats) -> Floats:
    """P = (1 - q) N(0) + q N(1), Q = N(0)."""
    inside = t > math.log1p(-q)
    z = np.maximum(np.where(inside, np.expm1(np.minimum(np.where(inside, t, 0.0), 700)) + q, 1.0), 1e-300)
    x = sigma * sigma * np.log(z / q) + 0.5
    far, near = special.ndtr(-x / sigma), special.ndtr(-(x - 1) / sigma)
    lift = np.expm1(np.minimum(t, 700.0))
    value = q * (near - far) - lift * far + _ROUNDING * (q * (near + far) + np.abs(lift) * far)
    found: Floats = np.where(inside, np.maximum(value, 0.0), -np.expm1(np.minimum(t, 0.0)))
    return found


def _added(q: float, sigma: float, t: Floats) -> Floats:
    """P = N(0), Q = (1 - q) N(0) + q N(1)."""
    inside = t < -math.log1p(-q)
    z = np.maximum(np.where(inside, np.expm1(np.where(inside, -t, 0.0)) + q, 1.0), 1e-300)
    x = sigma * sigma * np.log(z / q) + 0.5
    near, far = special.ndtr(x / sigma), special.ndtr((x - 1) / sigma)
    lift, kept = np.expm1(np.minimum(t, 700.0)), np.exp(np.minimum(t, 700.0)) * q
    value = kept * (near - far) - lift * near + _ROUNDING * (kept * (near + far) + np.abs(lift) * near)
    found: Floats = np.where(inside, np.maximum(value, 0.0), 0.0)
    return found
