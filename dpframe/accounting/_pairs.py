"""Losses: the cost of one release, as curves. Each kind knows its own, and nothing else asks which
kind it is.

A loss stands for a worst-case pair of output laws (P, Q) on neighbouring data; all that it states
are upper bounds. Defaults are what holds for every epsilon-private release: randomized response
dominates it (Kairouz, Oh and Viswanath 2015), hence its Renyi curve, epsilon**2 / 2 zCDP (Bun and
Steinke 2016) and its mu. Several uses are the pair ``(loss, count)`` everywhere, so that a count
can be forgotten nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dpframe import _validate
from dpframe._errors import BadValue
from dpframe._types import Json
from dpframe.accounting import _gaussian, _search

ZERO = Fraction(0)
_RANGE = Fraction(1, 2**400), Fraction(2**400)
Floats = NDArray[np.float64]
Number = int | float | Decimal | Fraction  # what users write; kept as a Fraction
UP = 1 + 1e-12  # covers the few roundings of each formula below
_ROOT2, _ROOT8, _ROOT_2PI = math.sqrt(2), math.sqrt(8), math.sqrt(2 * math.pi)
ULP = 2.0**-52
# Above this mu erfc comes near underflow. What an event costs here, in mu squared, is enough at
# every larger mu (docs/guarantees/residue.md, theorem 4).
TOP = 50.0
NODES, WEIGHTS = (np.asarray(a) for a in np.polynomial.legendre.leggauss(10))
_HALF = list(zip(NODES[5:].tolist(), WEIGHTS[5:].tolist(), strict=True))


# What is left of a Gaussian budget after a purely private event (docs/guarantees/residue.md, theorem 2) -----------


def out_of_range(epsilon: float, mu: float) -> ValueError:
    return ValueError(
        f"epsilon must be finite and >= 0 and mu >= 0, got epsilon={epsilon!r} and mu={mu!r}"
    )


def remains(mu: float, cost: float) -> float:
    """Return sqrt(mu**2 - cost), rounded down."""
    return math.sqrt(max(0.0, mu * mu * (1 - ULP) - cost)) * (1 - ULP) if cost > 0 else mu


def _room(epsilon: float, mu: float, left: float) -> tuple[float, float]:
    """Return how far a pure release stays below a Gaussian budget at the threshold 0, and the size
    of the numbers that were subtracted.

    The release has this epsilon, the budget is ``mu``, and ``left`` is the mu (mu' below) that
    would remain after it. The first number is negative if the release does not certainly fit. The
    second tells how large the rounding error may be.

    H(0) of the event with Gaussian noise of mu' is the total variation (e**epsilon E(+) - E(-)) /
    (1 + e**epsilon), E(+-) = erf((epsilon/mu' +- mu'/2)/sqrt 2), as a sum of positive terms. From a
    mu of 1 on 1 - H(0) takes its place, which keeps its digits where it is small.
    """
    a, half = epsilon / left if left else math.inf, left / 2
    # The margins are some ten times the error: a few ulp of each positive term, and 2 z**2 ulp for
    # erfc(z), z <= mu.
    if mu >= 1:
        likely, less = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
        least = math.erfc(mu / _ROOT8) * (1 + (64 + 8 * mu * mu) * ULP)
        size = least * (1 + mu * mu / 4)
        if left == 0:
            return 2 * less - least, size
        return likely * math.erfc((a + half) / _ROOT2) + less * math.erfc(
            (half - a) / _ROOT2
        ) - least, size
    tanh, most, total = math.tanh(epsilon / 2), math.erf(mu / _ROOT8), 0.0
    if left == 0:
        return most - tanh * (1 + 64 * ULP), most
    for node, weight in _HALF:
        y = half * node
        total += weight * math.exp((a - y) ** 2 * -0.5) + weight * math.exp((a + y) ** 2 * -0.5)
    spread = 2 / (1 + math.exp(epsilon)) * (total * left / 2 / _ROOT_2PI)
    distance = tanh * math.erf((a + half) / _ROOT2) + spread
    return most - distance * (1 + 64 * ULP), most


def _around(
    room: Callable[[float], tuple[float, float]], size: float, epsilon: float, mu: float
) -> tuple[float, float]:
    """Return two numbers close to the largest mu that can remain, the first below it and the second
    above.

    ``room`` is `_room` for this epsilon and mu: its first result is not negative as long as
    ``left`` can remain. ``size`` is the scale of its rounding error. Newton's rule finds the largest
    mu, and the two numbers are as far from it as rounding reaches. ``room`` is tried at both.
    Return (0, inf) if they do not enclose the largest mu.
    """
    # The derivative of H(0) is 2 phi(epsilon/mu' - mu'/2) / (1 + e**epsilon). The search begins
    # where a release has cost epsilon**2 of mu squared. If rounding or a flat curve leads Newton's
    # rule out of the interval, the middle is tried instead.
    low, high, at = 0.0, mu, math.sqrt(max(mu * mu - epsilon * epsilon, mu * mu / 16))
    scale, flat = _ROOT_2PI / 2 * (1 + math.exp(epsilon)), math.inf
    for _ in range(64):
        gap, shape = room(at)[0], (epsilon / at - at / 2) ** 2 / 2
        low, high = (at, high) if gap >= 0 else (low, at)
        flat = scale * math.exp(shape) if shape < 300 else math.inf
        near = at + gap * flat
        if abs(near - at) <= 2.0**-26 * at:  # then the next error is of the order of its square
            at = near
            break
        at = near if low < near < high else (low + high) / 2
    # `_room` rounds down by a margin, so it may be negative as far as this from the largest mu. In
    # a flatter curve that is further.
    margin = 64 * ULP * size * flat
    low, high = at - margin, at + margin
    return (low, high) if low > 0 and room(low)[0] >= 0 and room(high)[0] < 0 else (0.0, math.inf)


@lru_cache(maxsize=1024)  # a price that was found is paid next
def after_pure(epsilon: float, mu: float) -> float | None:
    """Return the mu that remains of a Gaussian budget after any epsilon-private release; None if it
    does not fit.

    Formal guarantee: such an event is dominated by randomized response (Kairouz, Oh and Viswanath
    2015). For that pair a mu can remain if the total variation of the event with Gaussian noise of
    that mu is at most that of the budget (docs/guarantees/residue.md, theorem 2). None remains if
    the budget's mu is less than 2 Phi**-1(e**epsilon / (1 + e**epsilon)).

    >>> round(after_pure(0.1, 1.0), 6)
    0.994981
    >>> after_pure(0.81, 1.0) is None
    True
    """
    if not (0 <= epsilon < math.inf and mu >= 0):
        raise out_of_range(epsilon, mu)
    if epsilon == 0:
        return mu
    if mu > TOP:  # doubles would underflow: the cost at TOP is taken, which is enough here too
        remaining = after_pure(epsilon, TOP)
        return (
            None
            if remaining is None
            else remains(mu, (TOP - remaining) * (TOP + remaining) * (1 + 4 * ULP))
        )
    if epsilon > 700:
        return None
    # `_room` tells for a mu that would remain how far the release stays below the budget, and the
    # size of its rounding error. A negative number says that the release does not certainly fit.
    room = partial(_room, epsilon, mu)
    room_for_none_left, size = room(0.0)
    if room_for_none_left < 0:
        return None
    certain, none = _around(room, size, epsilon, mu)
    # The last double with room. A statement that is certain at one point is so at every smaller
    # one, so that only the points between two close ones are tried.
    low, high = 0.0, mu
    while high - low > ULP * high:
        left = (low + high) / 2
        if not low < left < high:
            break
        if left <= certain or (left < none and room(left)[0] >= 0):
            low = left
        else:
            high = left
    return low


# Losses -----------------------------------------------------------------------------------------------------------


class Curve(NamedTuple):
    """Privacy curve of an ordered pair (P, Q): ``delta(t)`` is H(t) = sup P[S] - e**t Q[S] at every
    real t, or above it.

    The losses of P lie between ``lower`` and ``upper``, but for a mass H(upper) above and a
    negligible one below.
    """

    delta: Callable[[Floats], Floats]
    lower: float
    upper: float

    def change(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return self._replace(**changes)


class Loss:
    """Privacy cost of one release, stated as upper bounds in several forms of privacy.

    Equal losses are equal, and hash alike.
    """

    kind: ClassVar[str]
    # The function that gives the mu left after such a release of some epsilon.
    _remains: ClassVar[staticmethod[..., float | None]] = staticmethod(after_pure)

    if TYPE_CHECKING:  # a field of some kinds: a property here would be taken for their default

        @property
        def epsilon(self) -> Fraction | None:
            """Pure epsilon without the failures; None if the loss is not pure."""

        @property
        def failure(self) -> Fraction:
            """The probability of giving everything away, which no other curve counts."""
    else:
        failure = ZERO

    def failing(self, delta: Fraction) -> Loss:
        """Return the loss of the same release if it also reveals everything with probability
        ``delta``."""
        raise BadValue(f"no loss is known of a release of kind {self.kind!r} that may fail.")

    @property
    def bounded_range(self) -> float | None:
        """Length of an interval in which all losses lie; None if none is known.

        Its position may depend on earlier answers.
        """
        return None

    @cached_property
    def rho(self) -> Fraction | None:
        """The parameter of zero-concentrated privacy; None if the loss has no such bound."""
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
        """Privacy curves of the worst-case pairs: one if it is symmetric, else one for a person
        removed and one for a person added."""
        if self.epsilon is None:
            return (Curve(np.ones_like, 0.0, 0.0),)
        e = float(self.epsilon)
        return (Curve(lambda t: response_curve(e, t), -e, e),)

    def residue(self, mu: float) -> float | None:
        """Return how much mu remains of a Gaussian budget of ``mu`` after one such release.

        Return None if the release does not fit.
        """
        return None if self.epsilon is None else self._remains(float(self.epsilon) * UP, mu)

    def leaves(self, mu_squared: Fraction) -> Fraction | None:
        """Return how much of a Gaussian budget remains after one such release; None if it does not
        fit.

        Budget and result are given as mu squared. Two bounds hold, and the better one is returned.
        One is certified for all releases of this epsilon (`residue`). The other is the difference
        of the mu squared, if the release is dominated by a Gaussian one.
        """
        left = None
        if self.epsilon is not None:
            mu, epsilon = math.sqrt(mu_squared) * (1 - 1e-15), float(self.epsilon)
            mu_left = self.residue(mu)
            if mu_left is not None:
                n, d = mu_left.as_integer_ratio()
                left = Fraction(n * n, d * d)
                # The difference leaves no more if the mu of the release is large enough. That mu is
                # at least sqrt(2 pi) tanh(epsilon/2), by the tangent of a convex quantile. Doubles
                # tell, each right to 1e-14 of mu squared; then the fractions need not be compared.
                least = 2 * math.pi * math.tanh(epsilon / 2) ** 2
                if mu_left * mu_left > mu * mu * (1 + 1e-13) - least * (1 - 1e-12):
                    return left
        if self.mu_squared is not None and self.mu_squared <= mu_squared:
            rest = mu_squared - self.mu_squared
            left = rest if left is None else max(left, rest)
        return left

    def epsilon_at(self, delta: Fraction) -> Fraction | None:
        """Return an epsilon, rounded up, with which one release is (epsilon, delta)-private, or
        None."""
        rest = float(delta - self.failure) * (1 - 1e-12)
        if rest < 0:
            return None
        if rest == 0:
            return self.epsilon
        epsilon = max(_solve(curve, rest) for curve in self.curves)
        if self.epsilon is not None:
            return min(self.epsilon, Fraction(epsilon))
        return Fraction(epsilon) if math.isfinite(epsilon) else None

    def to_json(self) -> Json:
        """Return the record of this loss for a ledger: its kind and its parameters, exact numbers
        as text."""
        kind: Any = type(self)  # every kind is a dataclass
        record: Json = {"type": self.kind}
        for name in kind.__match_args__:  # the names of its fields
            value = getattr(self, name)
            if isinstance(value, tuple):  # of parts, whose numbers are pairs
                value = [[str(number) for number in pair] for pair in value]
            record[name] = str(value) if isinstance(value, Fraction) else value
        return record


def _solve(curve: Curve, delta: float) -> float:
    """Return the least threshold t >= 0, rounded up, at which a privacy curve is at most delta, or
    inf."""
    last = max(curve.upper, 0.0)
    at = np.empty(1)

    def over(t: float) -> bool:
        at[0] = t
        return float(curve.delta(at)[0]) * (1 + 1e-9) > delta

    if over(last):
        return math.inf
    return _search.first_where(lambda t: not over(t), 0.0, last, rounds=100) * UP


def response_curve(epsilon: float, t: Floats) -> Floats:
    """Return delta at each threshold t for randomized response.

    It answers truly with probability e**epsilon / (1 + e**epsilon).
    """
    truth = 1 / (1 + math.exp(-epsilon))
    up = truth * np.maximum(-np.expm1(np.minimum(t - epsilon, 0.0)), 0.0)
    down = (1 - truth) * np.maximum(-np.expm1(np.minimum(t + epsilon, 0.0)), 0.0)
    curve: Floats = up + down
    return curve


def _renyi_of_response(epsilon: float, orders: Floats) -> Floats:
    """Return the Renyi divergences at these orders of randomized response, which dominates every
    epsilon-private release.

    At the order a it is log(cosh((2a - 1) epsilon / 2) / cosh(epsilon / 2)) / (a - 1), computed in
    a form that keeps its digits at a small epsilon. It is never more than epsilon.
    """
    x, y = orders * epsilon / 2, (orders - 1) * epsilon / 2
    small = np.maximum(x, y) < 300
    x, y = np.where(small, x, 1.0), np.where(small, y, 1.0)
    value = np.log1p(2 * np.sinh(x) * np.sinh(y) / math.cosh(min(epsilon / 2, 300.0))) / (
        orders - 1
    )
    divergence: Floats = np.where(small, np.minimum(value * UP, epsilon), epsilon)
    return divergence


def assign(loss: Loss, **values: object) -> None:
    """Set fields of a frozen loss while it is made."""
    for name, value in values.items():
        object.__setattr__(loss, name, value)


def number(value: object, name: str) -> Fraction:
    """Return a positive parameter as an exact fraction.

    A number outside of 2**-400 to 2**400, which doubles cannot follow, is refused. ``name`` is for
    the error.
    """
    exact = value if type(value) is Fraction else _validate.exact(value, name)
    if (
        exact.numerator > 0
        and exact.numerator.bit_length() <= 400
        and exact.denominator.bit_length() <= 400
    ):
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
    """Privacy loss of any epsilon-private release: the pair of randomized response."""

    epsilon: Fraction
    kind: ClassVar[str] = "pure_dp"

    if TYPE_CHECKING:

        def __init__(self, epsilon: Number) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", number(self.epsilon, "epsilon"))

    def failing(self, delta: Fraction) -> Loss:
        return ApproxDP(self.epsilon, delta)


@dataclass(frozen=True)
class ApproxDP(Loss):
    """Privacy loss of any (epsilon, delta)-private release: everything with probability delta, else
    randomized response."""

    epsilon: Fraction
    delta: Fraction
    kind: ClassVar[str] = "approx_dp"

    if TYPE_CHECKING:

        def __init__(self, epsilon: Number, delta: Number) -> None: ...

    def __post_init__(self) -> None:
        """Check the parameters, and keep them as exact numbers. A delta of 0 is refused."""
        d = _validate.delta(self.delta)
        if not d:
            raise BadValue("ApproxDP needs delta > 0; without one it is PureDP(epsilon).")
        assign(self, epsilon=number(self.epsilon, "epsilon"), delta=d)

    @property
    def failure(self) -> Fraction:
        return self.delta


# Gaussian noise --------------------------------------------------------------------------------------------------------


class Normal(Loss):
    """Privacy loss of Gaussian noise: everything follows from mu (Dong, Roth and Su 2022) and rho
    (Bun and Steinke 2016)."""

    epsilon: Fraction | None = None

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
class Gaussian(Normal):
    """Privacy loss of numbers moved by at most ``sensitivity`` in L2, with continuous Gaussian
    noise of deviation ``sigma``."""

    sigma: Fraction
    sensitivity: Fraction = Fraction(1)
    kind: ClassVar[str] = "gaussian"

    if TYPE_CHECKING:

        def __init__(self, sigma: Number, sensitivity: Number = 1) -> None: ...

    def __post_init__(self) -> None:
        """Check the parameters, and keep them as exact numbers."""
        assign(
            self,
            sigma=number(self.sigma, "sigma"),
            sensitivity=number(self.sensitivity, "sensitivity"),
        )

    @cached_property
    def mu_squared(self) -> Fraction:
        return (self.sensitivity / self.sigma) ** 2

    @cached_property
    def rho(self) -> Fraction:
        return self.mu_squared / 2


@dataclass(frozen=True, init=False)
class DiscreteGaussian(Normal):
    """Privacy loss of integers moved by at most ``sensitivity`` in L2, with discrete Gaussian noise
    of parameter ``sigma``.

    Of several vectors in one release ``parts`` has the variance and the squared sensitivity of
    each. rho = sensitivity**2 / (2 sigma**2) as for the continuous one (Canonne, Kamath and Steinke
    2020), but mu is larger than sqrt(2 rho): docs/guarantees/discrete-gaussian.md.
    """

    parts: tuple[tuple[Fraction, Fraction], ...]
    kind: ClassVar[str] = "discrete_gaussian"

    def __init__(self, sigma: object = None, sensitivity: object = 1, *, parts: Iterable[Any] = ()):
        """Take ``sigma`` and ``sensitivity`` of one vector, or ``parts`` of several.

        ``parts`` has the variance and the squared sensitivity of each vector.
        """
        pairs = tuple([(number(v, "variance"), number(d, "sensitivity squared")) for v, d in parts])
        if bool(pairs) == (sigma is not None):
            raise BadValue("DiscreteGaussian takes sigma= or parts=, and one of them only.")
        vectors = pairs or ((number(sigma, "sigma") ** 2, number(sensitivity, "sensitivity") ** 2),)
        object.__setattr__(self, "parts", vectors)

    @cached_property
    def mu_squared(self) -> Fraction:
        """Square of the parameter of Gaussian privacy, rounded up: the sum over all vectors."""
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
    """Privacy loss of discrete Gaussian noise beside a failure that reveals everything with
    probability ``delta``.

    Such a failure is a key of one person alone that passes the threshold of a search.
    """

    delta: Fraction
    kind: ClassVar[str] = "failing_gaussian"

    def __init__(self, parts: Iterable[object], delta: Number):
        """Take the variance and the squared sensitivity of each vector, and the probability of
        failing.

        A delta of 0 is refused.
        """
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
