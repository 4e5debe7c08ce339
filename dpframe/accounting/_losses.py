"""Losses: what one release can cost, as curves. Each kind knows its own, and nothing else asks what kind it is.

A loss stands for a worst-case pair of output laws (P, Q) on neighbouring data; all that it states are upper bounds.
Defaults are what holds for every epsilon-private release: randomized response dominates it (Kairouz, Oh and Viswanath
2015), hence its Renyi curve, epsilon**2 / 2 zCDP (Bun and Steinke 2016) and its mu. Several uses are the pair
``(loss, count)`` everywhere, so that a count can be forgotten nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpframe import _validate
from dpframe._errors import BadValue
from dpframe.accounting import _gaussian, _search, residue

ZERO = Fraction(0)
_RANGE = Fraction(1, 2**400), Fraction(2**400)
Floats = NDArray[np.float64]
Number = int | float | Decimal | Fraction  # what users write; kept as a Fraction
UP = 1 + 1e-12  # covers the few roundings of each formula below
_ROUNDING = 2e-15  # relative, of each term of a difference of probabilities


class Curve(NamedTuple):
    """An ordered pair (P, Q): ``delta(t)`` is H(t) = sup P[S] - e**t Q[S] at every real t, or above it.

    The losses of P lie between ``lower`` and ``upper``, but for a mass H(upper) above and a negligible one below.
    """

    delta: Callable[[Floats], Floats]
    lower: float
    upper: float


class Loss:
    """The cost of one release; see the module. Equal losses are equal, and hash alike."""

    kind: ClassVar[str]
    # What remains of mu after such a release of some epsilon: a function of residue.py.
    _remains: ClassVar[staticmethod[..., float | None]] = staticmethod(residue.after_pure)

    if TYPE_CHECKING:  # a field of some kinds: a property here would be taken for their default

        @property
        def epsilon(self) -> Fraction | None:
            """Pure epsilon of all but the failures; None if there is none."""

        @property
        def failure(self) -> Fraction:
            """The probability of giving everything away, which no other curve counts."""
    else:
        failure = ZERO

    def failing(self, delta: Fraction) -> Loss:
        """The loss of such a release that gives everything away with probability ``delta``, too."""
        raise BadValue(f"no loss is known of a release of kind {self.kind!r} that may fail.")

    @property
    def bounded_range(self) -> float | None:
        """The length of an interval in which all losses lie, whose place may depend on earlier answers; None if none is known."""
        return None

    @cached_property
    def rho(self) -> Fraction | None:
        """The parameter of zero-concentrated privacy; None if there is none."""
        return None if self.epsilon is None else self.epsilon**2 / 2

    @cached_property
    def mu_squared(self) -> Fraction | None:
        """Square of the parameter of Gaussian privacy, rounded up."""
        mu = math.inf if self.epsilon is None else _gaussian.pure_mu(float(self.epsilon) * UP)
        return None if mu == math.inf else Fraction(mu) ** 2

    def renyi(self, orders: Floats) -> Floats:
        """Renyi divergence at each order above 1."""
        if self.epsilon is None:
            return np.full(len(orders), math.inf)
        return _renyi_of_response(float(self.epsilon), orders)

    @property
    def curves(self) -> tuple[Curve, ...]:
        """The worst-case pairs: one if it is symmetric, else two, for a person removed and a person added."""
        if self.epsilon is None:
            return (Curve(np.ones_like, 0.0, 0.0),)
        e = float(self.epsilon)
        return (Curve(lambda t: response_curve(e, t), -e, e),)

    def residue(self, mu: float) -> float | None:
        """The mu left when this release is made with ``mu`` to spend; None if it does not fit."""
        return None if self.epsilon is None else self._remains(float(self.epsilon) * UP, mu)

    def leaves(self, mu_squared: Fraction) -> Fraction | None:
        """What is left of mu squared after one such release; None if it does not fit."""
        left = None
        if self.epsilon is not None:
            mu, epsilon = math.sqrt(mu_squared) * (1 - 1e-15), float(self.epsilon)
            mu_left = self.residue(mu)
            if mu_left is not None:
                n, d = mu_left.as_integer_ratio()
                left = Fraction(n * n, d * d)
                # The mu of a pure release is at least sqrt(2 pi) tanh(epsilon/2), the tangent of a quantile that is convex; so
                # mostly no difference leaves more, as doubles tell: each is right to 1e-14 of mu squared.
                least = 2 * math.pi * math.tanh(epsilon / 2) ** 2
                if mu_left * mu_left > mu * mu * (1 + 1e-13) - least * (1 - 1e-12):
                    return left
        if self.mu_squared is not None and self.mu_squared <= mu_squared:
            rest = mu_squared - self.mu_squared
            left = rest if left is None else max(left, rest)
        return left

    def epsilon_at(self, delta: Fraction) -> Fraction | None:
        """An epsilon, rounded up, with which one release is (epsilon, delta)-private; None if there is none."""
        rest = float(delta - self.failure) * (1 - 1e-12)
        if rest < 0:
            return None
        if rest == 0:
            return self.epsilon
        epsilon = max(_solve(curve, rest) for curve in self.curves)
        if self.epsilon is not None:
            return min(self.epsilon, Fraction(epsilon))
        return Fraction(epsilon) if math.isfinite(epsilon) else None

    def to_json(self) -> dict[str, Any]:
        """The record of a loss: its kind and its parameters; exact numbers are text."""
        kind: Any = type(self)  # every kind is a dataclass
        record: dict[str, Any] = {"type": self.kind}
        for name in kind.__match_args__:  # the names of its fields
            value = getattr(self, name)
            if isinstance(value, tuple):  # of parts, whose numbers are pairs
                value = [[str(number) for number in pair] for pair in value]
            record[name] = str(value) if isinstance(value, Fraction) else value
        return record


def _solve(curve: Curve, delta: float) -> float:
    last = max(curve.upper, 0.0)
    at = np.empty(1)

    def over(t: float) -> bool:
        at[0] = t
        return float(curve.delta(at)[0]) * (1 + 1e-9) > delta

    if over(last):
        return math.inf
    return _search.first_where(lambda t: not over(t), 0.0, last, rounds=100) * UP


def response_curve(epsilon: float, t: Floats) -> Floats:
    """H(t) of randomized response, which answers truly with probability e**epsilon / (1 + e**epsilon)."""
    truth = 1 / (1 + math.exp(-epsilon))
    up = truth * np.maximum(-np.expm1(np.minimum(t - epsilon, 0.0)), 0.0)
    down = (1 - truth) * np.maximum(-np.expm1(np.minimum(t + epsilon, 0.0)), 0.0)
    curve: Floats = up + down
    return curve


def _renyi_of_response(epsilon: float, orders: Floats) -> Floats:
    # log(cosh((2a - 1) e / 2) / cosh(e / 2)) / (a - 1), in a form that keeps its digits at small e.
    x, y = orders * epsilon / 2, (orders - 1) * epsilon / 2
    small = np.maximum(x, y) < 300
    x, y = np.where(small, x, 1.0), np.where(small, y, 1.0)
    value = np.log1p(2 * np.sinh(x) * np.sinh(y) / math.cosh(min(epsilon / 2, 300.0))) / (orders - 1)
    divergence: Floats = np.where(small, np.minimum(value * UP, epsilon), epsilon)
    return divergence


def assign(loss: Loss, **values: Any) -> None:
    """Sets fields of a frozen loss while it is made."""
    for name, value in values.items():
        object.__setattr__(loss, name, value)


def number(value: object, name: str) -> Fraction:
    exact = value if type(value) is Fraction else _validate.exact(value, name)
    if exact.numerator > 0 and exact.numerator.bit_length() <= 400 and exact.denominator.bit_length() <= 400:
        return exact  # whole numbers, which are quicker to compare, say that it is within the range
    if exact <= 0:
        raise BadValue(f"{name} must be positive, not {value}.")
    if not _RANGE[0] <= exact <= _RANGE[1]:
        raise BadValue(
            f"{name}={value} is outside 2**-400 to 2**400, where doubles can hold what follows from it."
        )
    return exact


@dataclass(frozen=True)
class PureDP(Loss):
    """Any epsilon-private release: the pair of randomized response."""

    epsilon: Fraction
    kind: ClassVar[str] = "pure_dp"

    if TYPE_CHECKING:

        def __init__(self, epsilon: Number) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", number(self.epsilon, "epsilon"))

    def failing(self, delta: Fraction) -> Loss:
        return ApproxDP(self.epsilon, delta)


@dataclass(frozen=True)
class Laplace(Loss):
    """A number with Laplace noise of scale sensitivity / epsilon: P = Laplace(0), Q = Laplace(epsilon), of scale 1."""

    epsilon: Fraction
    kind: ClassVar[str] = "laplace"
    _remains = staticmethod(residue.after_laplace)

    if TYPE_CHECKING:

        def __init__(self, epsilon: Number) -> None: ...

    def __post_init__(self) -> None:
        assign(self, epsilon=number(self.epsilon, "epsilon"))

    def renyi(self, orders: Floats) -> Floats:
        # Mironov 2017, table II: log(a/(2a-1) e**((a-1) e) + (a-1)/(2a-1) e**(-a e)) / (a-1); first order terms cancel.
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
    """A whole number moved by at most ``sensitivity``, with noise P[x] proportional to exp(-a |x|).

    Losses a * {-s, 2 - s, ..., s}; a smaller shift has a smaller curve, since the law is log-concave. With a sensitivity of 1
    it is randomized response itself.
    """

    a: Fraction
    sensitivity: int = 1
    kind: ClassVar[str] = "discrete_laplace"

    if TYPE_CHECKING:

        def __init__(self, a: Number, sensitivity: int = 1) -> None: ...

    def __post_init__(self) -> None:
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
        losses, masses = _laplace_atoms(float(self.a), self.sensitivity)
        if losses is None or masses is None:
            return super().curves
        e = float(self.epsilon)

        def delta(t: Floats) -> Floats:
            index = np.searchsorted(losses, t, side="right")
            above = np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])
            lifted = np.concatenate([np.cumsum((masses * np.exp(-losses))[::-1])[::-1], [0.0]])
            curve: Floats = np.clip((above[index] - np.exp(np.minimum(t, 700.0)) * lifted[index]) * UP, 0, 1)
            return np.maximum(curve, -np.expm1(np.minimum(t, 0.0)))

        return (Curve(delta, -e, e),)


@lru_cache(maxsize=64)
def _laplace_atoms(a: float, s: int) -> tuple[Floats, Floats] | tuple[None, None]:
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
    """A choice by the exponential mechanism: losses within a range of length epsilon (Durfee and Rogers 2019).

    epsilon**2 / 8 zCDP (Cesar and Rogers 2021, theorem 3). Gumbel noise is the same mechanism; one-sided noisy max and
    permute-and-flip are not of bounded range and count as `PureDP`.
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
        """The largest curve of all its pairs at each t: right for one release, and no pair itself, so wrong for several."""
        e = float(self.epsilon)

        def delta(t: Floats) -> Floats:
            inner = np.expm1((np.clip(t, -e, e) - e) / 2) ** 2 / -math.expm1(-e)
            curve: Floats = np.where(t < -e, -np.expm1(np.minimum(t, 0.0)), inner)
            return curve

        return (Curve(delta, -e, e),)


@dataclass(frozen=True)
class ApproxDP(Loss):
    """Any (epsilon, delta)-private release: everything with probability delta, else randomized response."""

    epsilon: Fraction
    delta: Fraction
    kind: ClassVar[str] = "approx_dp"

    if TYPE_CHECKING:

        def __init__(self, epsilon: Number, delta: Number) -> None: ...

    def __post_init__(self) -> None:
        d = _validate.delta(self.delta)
        if not d:
            raise BadValue("ApproxDP needs delta > 0; without one it is PureDP(epsilon).")
        assign(self, epsilon=number(self.epsilon, "epsilon"), delta=d)

    @property
    def failure(self) -> Fraction:
        return self.delta


# Gaussian noise --------------------------------------------------------------------------------------------------------


class _Normal(Loss):
    """A loss of Gaussian noise: everything follows from mu (Dong, Roth and Su 2022) and rho (Bun and Steinke 2016)."""

    epsilon = None

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

    def leaves(self, mu_squared: Fraction) -> Fraction | None:
        assert self.mu_squared is not None
        left = mu_squared - self.mu_squared  # exactly, which the default shares rely on
        return left if left.numerator >= 0 else None

    def epsilon_at(self, delta: Fraction) -> Fraction | None:
        epsilon = _gaussian.epsilon_for(self.mu, float(delta) * (1 - 1e-12))
        return Fraction(epsilon) if math.isfinite(epsilon) else None


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
        vectors = pairs or ((number(sigma, "sigma") ** 2, number(sensitivity, "sensitivity") ** 2),)
        object.__setattr__(self, "parts", vectors)

    @cached_property
    def mu_squared(self) -> Fraction:
        squares = []
        for v, d in self.parts:
            n, m = _gaussian.shift_mu(v).as_integer_ratio()
            squares.append(Fraction(n * n * d.numerator, m * m * d.denominator))
        return squares[0] if len(squares) == 1 else sum(squares, ZERO)

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
        sampled = [
            _renyi_sampled(float(self.q), float(self.sigma), int(a)) if a <= 1024 else math.inf for a in whole
        ]
        least: Floats = np.minimum(plain, np.array(sampled))
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
    curve: Floats = np.where(inside, np.maximum(value, 0.0), -np.expm1(np.minimum(t, 0.0)))
    return curve


def _added(q: float, sigma: float, t: Floats) -> Floats:
    """P = N(0), Q = (1 - q) N(0) + q N(1)."""
    inside = t < -math.log1p(-q)
    z = np.maximum(np.where(inside, np.expm1(np.where(inside, -t, 0.0)) + q, 1.0), 1e-300)
    x = sigma * sigma * np.log(z / q) + 0.5
    near, far = special.ndtr(x / sigma), special.ndtr((x - 1) / sigma)
    lift, weight = np.expm1(np.minimum(t, 700.0)), np.exp(np.minimum(t, 700.0)) * q
    value = weight * (near - far) - lift * near + _ROUNDING * (weight * (near + far) + np.abs(lift) * near)
    curve: Floats = np.where(inside, np.maximum(value, 0.0), 0.0)
    return curve
