"""The base of mechanisms and the list of all of them: plans, receipts, forms and audits ask a
mechanism and know no kind.

A mechanism is a frozen value. It knows the norm in which it counts what one person may move, the
loss of that, the form of its releases, and the record of its parameters; `register` puts its class
on the list. docs/develop/add-a-mechanism.md adds one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpframe._errors import BudgetError
from dpframe._types import Array, Json
from dpframe.accounting._filter import Price
from dpframe.accounting.loss import Loss, PureDP

Floats = NDArray[np.float64]
Shape = tuple[int | None, ...]  # None is a length that is an answer by itself

_RISK = 0.05  # of a choice that falls further short than a plan says


# How far one person may move the integers -----------------------------------------------------------------------------


def _l1(d: Array) -> int:
    return int(np.abs(d).sum())


def sum_squares(d: Array) -> int:
    return int((d * d).sum())


def _against_one_another(d: Array) -> int:
    """Return how far a person shifts one candidate against another: the sensitivity of a choice.

    ``d`` has by how much each score moves. The shift is the largest less the smallest move, summed
    over independent choices. If ``d`` has three axes, the middle one has the candidates.
    """
    if d.ndim < 3:
        d = d.reshape(1, -1, 1)
    return int((d.max(axis=1) - d.min(axis=1)).sum())


@dataclass(frozen=True, slots=True)
class Norm:
    """The measure in which a mechanism counts a difference of integers, and its texts in plans and
    audits."""

    name: str
    text: str  # in a plan
    exact: str  # in an audit, of `distance`
    distance: Callable[[Array], int]  # a whole number: the L2 norm is squared
    squared: bool = False

    def choose_distance(self, l1: int, l2_squared: int) -> int:
        """Return the largest `distance` that one person can make, of the two that a plan
        declares."""
        return l2_squared if self.squared else l1

    def size(self, l1: int, l2_squared: int) -> float:
        """Return the norm of the largest move, of the two that a plan declares."""
        return math.sqrt(l2_squared) if self.squared else l1


L1 = Norm("l1", "L1", "L1", _l1)
L2 = Norm("l2", "L2", "L2, squared", sum_squares, squared=True)
REACH = Norm("reach", "of one against another", "one against another", _against_one_another)


# Forms: the arrays that may leave the door ----------------------------------------------------------------------------


# Shapes are as public as a plan: if the number of reports depended on cells, it would tell two
# neighbours apart whatever the noise. So a question declares the forms of its arrays before it
# reads, and no other form leaves (docs/guarantees/session.md).


class Form(NamedTuple):
    """The form of one array: its lengths, None for a length that is itself an answer, such as that
    of a list of found keys; the kind of its cells, "i" for 64-bit integers, "O" for Python's and
    "U" for texts of any length; and its number, if public."""

    shape: Shape
    kind: str
    public: int | None = None

    def change(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return self._replace(**changes)


_INTEGERS, _OBJECTS = np.dtype(np.int64), np.dtype(object)


def check(forms: Sequence[Form], raw: Sequence[object]) -> None:
    """Raise an AssertionError unless the arrays ``raw`` of a release have the shapes and types
    declared in ``forms``. This runs just before noisy arrays leave, so that their shapes tell no
    more than the plan says. Of the error only the fact of a failure is shown.

    All lengths that are an answer must be equal: as many counts as keys.
    """
    matches = len(forms) == len(raw)
    answers: set[int] = set()
    for (shape, kind, public), array in zip(forms, raw, strict=False):
        if not isinstance(array, np.ndarray) or array.ndim != len(shape):
            matches = False
            break
        if array.shape != shape:
            pairs = list(zip(shape, array.shape, strict=True))
            matches = matches and all(n is None or n == length for n, length in pairs)
            answers.update(length for declared, length in pairs if declared is None)
        matches = matches and array.dtype == (_INTEGERS if kind == "i" else _OBJECTS)
        if kind == "U":
            matches = matches and {*map(type, array.ravel().tolist())} <= {str}
        matches = matches and (public is None or array.ravel().tolist() == [public])
    if not matches or len(answers) > 1:
        arrays = [(getattr(a, "shape", None), getattr(a, "dtype", type(a))) for a in raw]
        raise AssertionError(
            f"declared was {[tuple(form) for form in forms]}, and made was {arrays}"
        )


# Mechanisms -----------------------------------------------------------------------------------------------------------


class Offer(NamedTuple):
    """Bought mechanisms of one class: one for each vector of integers, their joint privacy loss,
    and the delta at which it is stated."""

    noises: Sequence[Any]
    loss: Loss
    stated_at: Fraction = Fraction(0)
    why: str = ""

    def change(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return self._replace(**changes)


class Mechanism(ABC):
    """A way to let integers leave: exact integers go into `release`, and what comes out may be seen
    by anyone."""

    __slots__ = ()

    name: ClassVar[str]  # in receipts
    proof: ClassVar[str]  # the page of docs/guarantees that proves its loss
    norm: ClassVar[Norm] = L1
    named: ClassVar[bool] = False  # whether mechanism="name" may ask for it
    measures: ClassVar[bool] = False  # whether integers leave with noise
    chooses: ClassVar[bool] = False  # whether places of large scores leave, and nothing else
    finds_keys: ClassVar[bool] = False  # whether it shows keys that nobody listed
    by_row: ClassVar[bool] = False  # whether it gets rows and releases a report for each
    automatic: ClassVar[bool] = (
        False  # whether a question that names no mechanism may get its noise
    )
    needs_delta: ClassVar[bool] = False  # whether only a price with a delta buys it
    wastes_delta: ClassVar[bool] = False  # whether a delta beside epsilon buys nothing more

    if TYPE_CHECKING:  # a field of some kinds: a property here would be taken for their default

        @property
        def scale(self) -> Any:
            """The scale of its noise, in steps of the integers."""

    @abstractmethod
    def release(self, integers: Array) -> Array:
        """Return the array that may leave, made from exact integers."""

    def loss(self, distance: int) -> Loss:
        """Return the loss of one release if a person moves the integers by at most this
        ``distance``, in the norm of the mechanism."""
        return self.together([(self, distance)])

    @classmethod
    @abstractmethod
    def together(cls, moved: Sequence[tuple[object, int]]) -> Loss:
        """Return the loss of one release by several mechanisms of this kind, each with the distance
        of its integers."""

    def form(self, shape: Shape) -> Form:
        """Return the form of the array that leaves for integers of this shape. It depends on
        parameters alone: a kind whose noise may be wider than 63 bits says "O", since `draw` then
        makes Python's integers."""
        return Form(shape, "i")

    def tail(self, candidates: int = 0) -> str:
        """Return a text about how likely large noise is; for a choice among ``candidates``, how
        likely a bad one is. May be empty."""
        return ""

    def levels(self, released: Array, level: float) -> Floats | None:
        """Return the level of each group's interval, for a mechanism whose noise decides which
        groups are shown; None for others."""
        return None

    def to_json(self) -> Json:
        """Return this mechanism's name and parameters for a receipt. Fractions become text, so that
        the receipt has them exactly."""
        kind: Any = type(self)  # every kind is a dataclass
        record: Json = {"mechanism": self.name}
        for name in kind.__match_args__:  # the names of its fields
            value = getattr(self, name)
            record[name] = str(value) if isinstance(value, Fraction) else value
        return record

    @classmethod
    def from_json(cls, data: Json) -> Any:
        """Return the mechanism that `to_json` wrote."""
        kind: Any = cls
        return kind(**{name: _read(data[name]) for name in kind.__match_args__})


def _read(value: object) -> Any:
    return Fraction(value) if isinstance(value, str) else value


class Pure(Mechanism):
    """A mechanism that never fails: probabilities of its outputs differ by at most a factor
    e**epsilon between neighbours."""

    __slots__ = ()

    @abstractmethod
    def epsilon_for(self, distance: int) -> Fraction:
        """Return the epsilon of one release if a person moves the integers by at most so much, in
        its norm."""

    @classmethod
    def together(cls, moved: Sequence[tuple[Any, int]]) -> Loss:
        return PureDP(
            sum((mechanism.epsilon_for(distance) for mechanism, distance in moved), Fraction(0))
        )


class Noise(Mechanism):
    """Independent noise for each integer: the noisy integers are released, so intervals follow from
    its law."""

    __slots__ = ()

    measures = True

    @abstractmethod
    def draw(self, size: int) -> Array:
        """Return ``size`` independent noises: 64-bit integers, or Python's where the law has wider
        ones."""

    @property
    @abstractmethod
    def deviation(self) -> float:
        """The standard deviation, or a bound on it."""

    @abstractmethod
    def quantile(self, level: float, terms: int = 1) -> int:
        """Return a t with P[|X| <= t] >= level, for the sum X of `terms` independent noises."""

    def spread(self, level: float) -> float:
        """Return how many standard deviations bound any weighted sum of noises with probability
        ``level``, by Chebyshev's inequality.

        Subclasses whose sums tend to a known law return less, for continuous noise.
        """
        return 1 / math.sqrt(1 - level)

    def reach(self, level: float, terms: int) -> float:
        """Return how many standard deviations bound a weighted sum of `terms` independent noises
        with probability ``level``. The bound holds for all weights, and serves confidence
        intervals.

        It is the smaller of two bounds. By Cauchy and Schwarz |w . X| <= |w| sqrt(terms) max |X|,
        where the union bound gives a quantile of max |X|. The other is Chebyshev's inequality, or a
        better bound of the law of sums (`spread`).
        """
        if not self.deviation:
            return self.spread(level)
        each = self.quantile(1 - (1 - level) / terms)
        return min(math.sqrt(terms) * each / self.deviation, self.spread(level))

    def cumulant(self, t: Floats) -> Floats:
        """Return the logarithm of E exp(t X) for the noise X, or a bound on it; infinite where
        nothing is known."""
        return np.where(t == 0, 0.0, np.inf)

    def simulate(self, first: Floats, second: Floats) -> Floats:
        """Return simulated noise of this law, for p-values; it is never added to what is released.

        ``first`` and ``second`` are arrays of numbers uniform on 0 to 1. The first picks the size,
        one of 1024 quantiles rounded up, and the second the sign. Subclasses may have a better way.
        """
        sizes = np.array([self.quantile((i + 1) / 1025) for i in range(1024)], dtype=float)
        return np.asarray(sizes[(first * 1024).astype(int)] * np.where(second < 0.5, -1.0, 1.0))

    def release(self, integers: Array) -> Array:
        """Return the exact integers with fresh noise added to each; the result may be published."""
        noise = self.draw(integers.size).reshape(integers.shape)
        wide: Array = integers if noise.dtype != object else integers.astype(object)
        noisy: Array = wide + noise
        return noisy

    @classmethod
    def offer(cls, distances: Sequence[tuple[int, int]], price: Price) -> Offer | None:
        """Return noise for vectors that share a price, or None if the price buys none.
        ``distances`` has the L1 and the squared L2 sensitivity of each."""
        return None

    @classmethod
    def refusal(cls, price: Price) -> str:
        """Return the text of the error that says why this price buys no such noise."""
        return NO_EPSILON


class PureNoise(Noise, Pure):
    """Noise that is purely private by the L1 norm: of a price it takes the epsilon."""

    __slots__ = ()

    wastes_delta = True

    @staticmethod
    @abstractmethod
    def for_price(l1: int, epsilon: Fraction) -> Any:
        """Return the least noise with which integers that a person moves by at most so much are
        epsilon-private."""

    @classmethod
    def offer(cls, distances: Sequence[tuple[int, int]], price: Price) -> Offer | None:
        """Return noises that share one pure epsilon evenly, or None if ``price`` holds no pure
        epsilon. ``distances`` has the L1 and the squared L2 sensitivity of each vector."""
        if not price.epsilon:
            return None
        share = len(distances)
        return Offer(
            [cls.for_price(l1 * share, price.epsilon) for l1, _ in distances], PureDP(price.epsilon)
        )


class Choice(Pure):
    """A mechanism that releases the places of large scores: the choice itself is noisy, with noise
    of scale 1 / ``rate``."""

    __slots__ = ()

    norm = REACH
    chooses = True

    if TYPE_CHECKING:

        @property
        def rate(self) -> Fraction:
            """The rate at which a place becomes less likely with each step that its score falls
            short."""

    @property
    def scale(self) -> Fraction:
        return 1 / self.rate

    def epsilon_for(self, distance: int) -> Fraction:
        return self.rate * distance

    def form(self, shape: Shape) -> Form:
        return Form((1, 1), "i")

    def ways(self, candidates: int) -> int:
        """Return the number of ways in which a choice among `candidates` can fall short. Each round
        has its own."""
        return candidates

    def tail(self, candidates: int = 0) -> str:
        if not candidates:
            return ""
        return f"short by ln({self.ways(candidates)}) + t scales or more with probability at most exp(-t)"

    def shortfall(self, candidates: int, risk: float = _RISK) -> float:
        """Return how far the chosen score may fall below the best one, in units of ``scale``,
        except with probability ``risk``. ``candidates`` is the number of scores to choose among.

        It is ln k + ln(1 / risk) for k ways to fall short. For the exponential mechanism this is
        theorem 3.11 of Dwork and Roth (2014). For noisy max it is the bound that all k noises keep
        except with that probability, over all rounds together.
        """
        return math.log(self.ways(max(candidates, 1)) / risk)

    @classmethod
    def offer(cls, reach: int, price: Price) -> Offer:
        """Return the mechanism that chooses one candidate at this price, with its privacy loss.
        ``reach`` is the most by which one person moves any score against any other."""
        epsilon, kind = pure(price), cls
        return Offer([kind.for_price(reach, epsilon)], PureDP(epsilon), why=f"{cls.name}, as asked")

    if TYPE_CHECKING:  # peeling takes the number of rounds, too
        for_price: ClassVar[Callable[..., Any]]


NO_EPSILON = "this price buys no pure mechanism: give epsilon=."


def pure(price: Price) -> Fraction:
    """Return the epsilon of a price, for a pure mechanism."""
    if price.epsilon is None:
        raise BudgetError(NO_EPSILON)
    return price.epsilon


# All of them ----------------------------------------------------------------------------------------------------------

AUTO = "auto"  # what mechanism= says unless it is given
MECHANISMS: dict[str, type[Mechanism]] = {}
_Kind = TypeVar("_Kind", bound=type[Mechanism])


def register(kind: _Kind) -> _Kind:
    """Register a mechanism class under its name, as a decorator. Receipts that name it can then be
    read, and if it is ``named``, questions may ask for it. A name that another class has is
    refused."""
    registered = MECHANISMS.get(kind.name)
    if registered is not None and registered.__qualname__ != kind.__qualname__:
        raise ValueError(f"two mechanisms have the name {kind.name!r}.")
    MECHANISMS[kind.name] = kind
    return kind


def names() -> tuple[str, ...]:
    """Return the names that mechanism= takes."""
    return (AUTO, *(kind.name for kind in MECHANISMS.values() if kind.named))


def mechanism_from(data: Json) -> Any:
    """Return the mechanism of a part of a receipt."""
    return MECHANISMS[data["mechanism"]].from_json(data)


def loss_of(moved: Sequence[tuple[Mechanism, int]]) -> Loss | None:
    """Return the joint privacy loss of one release by several mechanisms.

    ``moved`` has each mechanism with the sensitivity of its integers, which is 0 if nobody moves
    them. Mechanisms of one kind know their joint loss: `Mechanism.together`. Return None if all
    sensitivities are 0, or if the kinds differ, which no plan does.
    """
    counted = [(mechanism, distance) for mechanism, distance in moved if distance]
    rules = {type(mechanism).together.__func__ for mechanism, _ in counted}  # type: ignore[attr-defined]  # a class method
    return type(counted[0][0]).together(counted) if len(rules) == 1 else None
