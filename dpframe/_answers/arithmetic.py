"""Arithmetic with released numbers: what is computed from them, and an interval for it.

*Formal guarantee.* Of a calculation with m released numbers each gets an interval of level ``1 - (1 - level) / m``; all of these
hold together with probability ``level`` or more, by the union bound, whatever their noises have to do with each other. Where they
hold, interval arithmetic encloses what the same line of arithmetic in doubles gives for the exact numbers, to the last bit: each
step is monotone in each operand, and so is rounding to doubles (docs/guarantees/intervals.md#arithmetic-with-answers). It is
post-processing, and free.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

Ends = tuple[Any, Any]

# Whole numbers beyond it are no doubles, in which ends of intervals are: what meets them is a plain
# number.
LARGEST = 2**53
LONGEST = 256  # steps: what is computed in a loop becomes a plain number, or each turn would take longer than the last


class Leaf(Protocol):
    """A released number, or an array of them."""

    def _number(self) -> Any:
        """The value, as a plain number or an array."""

    def _ends(self, level: float) -> Ends:
        """The ends of its interval."""

    def _deviation(self) -> Any:
        """The standard deviation of the noise; None, or NaN, where none can be stated."""

    def _same(self, other: Any) -> bool:
        """Whether the other is this very number, with the same noise."""

    def _picked(self, rows: Any) -> Any:
        """Some rows of it, where it has rows; -1 is a row that it has not."""


# Steps ----------------------------------------------------------------------------------------------------------------


def _corners(operate: Callable[[Any, Any], Any], one: Ends, two: Ends) -> Ends:
    """The least and the largest of an operation at the corners of a box: it is monotone in each
    operand.

    Infinite ends stand for whatever is large, so they are the largest doubles here: zero times
    those is zero.
    """
    largest = np.finfo(float).max
    sides, others = ([np.clip(end, -largest, largest) for end in ends] for ends in (one, two))
    found = np.stack(np.broadcast_arrays(*(operate(a, b) for a in sides for b in others)))
    return found.min(axis=0), found.max(axis=0)


def _quotient(one: Ends, two: Ends) -> Ends:
    low, high = _corners(operator.truediv, one, two)
    anything = (two[0] <= 0) & (two[1] >= 0)
    return np.where(anything, -np.inf, low), np.where(anything, np.inf, high)


def _size(one: Ends) -> Ends:
    low, high = one
    return np.maximum(np.maximum(low, -high), 0.0), np.maximum(-low, high)


def outward(ends: Ends, decimals: int) -> Ends:
    """The ends rounded away from each other: they enclose all that was within, and what it rounds
    to."""
    low: Any = np.round(ends[0], decimals)
    high: Any = np.round(ends[1], decimals)
    step = 10.0**-decimals
    low = np.where(low > ends[0], np.round(low - step, decimals), low)
    high = np.where(high < ends[1], np.round(high + step, decimals), high)
    return np.minimum(low, ends[0]), np.maximum(high, ends[1])


# A straight line in the one released number: its slope, and its value at 0. Both are NaN where it
# is none.
Line = tuple[Any, Any]
_BENT: Line = (np.nan, np.nan)


def _scaled(one: Line, two: Line) -> Line:
    if np.any(one[0]) and np.any(two[0]):
        return _BENT
    return one[0] * two[1] + one[1] * two[0], one[1] * two[1]


def _divided(one: Line, two: Line) -> Line:
    return _BENT if np.any(two[0]) or not np.all(two[1]) else (one[0] / two[1], one[1] / two[1])


class Step(NamedTuple):
    """What a step does with numbers, with intervals, and with straight lines."""

    operands: int
    on_values: Callable[..., Any]
    on_ends: Callable[..., Ends]
    on_lines: Callable[..., Line]


STEPS: dict[str, Step] = {
    "+": Step(
        2,
        operator.add,
        lambda a, b: (a[0] + b[0], a[1] + b[1]),
        lambda a, b: (a[0] + b[0], a[1] + b[1]),
    ),
    "-": Step(
        2,
        operator.sub,
        lambda a, b: (a[0] - b[1], a[1] - b[0]),
        lambda a, b: (a[0] - b[0], a[1] - b[1]),
    ),
    "*": Step(2, operator.mul, partial(_corners, operator.mul), _scaled),
    "/": Step(2, operator.truediv, _quotient, _divided),
    "negative": Step(1, operator.neg, lambda a: (-a[1], -a[0]), lambda a: (-a[0], -a[1])),
    "absolute": Step(1, abs, _size, lambda a: _BENT),
}

# One entry of a calculation in postfix order: a released number by its place, a constant, a step by
# its name, or a rounding.
Token = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class Calculation:
    """Steps on released numbers, in postfix order; the same for a number and for arrays of them.

    >>> class Seven:
    ...     def _number(self):
    ...         return 7.0
    ...
    ...     def _ends(self, level):
    ...         return 6.0, 8.5
    ...
    ...     def _deviation(self):
    ...         return 1.0
    ...
    ...     def _same(self, other):
    ...         return other is self
    >>> half = of_leaf(Seven()).then("/", of_number(2))
    >>> half.value(), [float(end) for end in half.ends(0.95)], half.deviation()
    (3.5, [3.0, 4.25], 0.5)
    """

    leaves: tuple[Any, ...]
    tokens: tuple[Token, ...]

    def then(self, step: str, other: Calculation | None = None) -> Calculation:
        """This one and then a step, with another calculation as the second operand of those that
        take two."""
        if other is None:
            return Calculation(self.leaves, (*self.tokens, ("step", step)))
        leaves = list(self.leaves)
        places = []
        for leaf in other.leaves:  # a number that stands in both is one number
            place = next((i for i, known in enumerate(leaves) if leaf._same(known)), len(leaves))
            if place == len(leaves):
                leaves.append(leaf)
            places.append(place)
        moved = [(kind, places[what] if kind == "leaf" else what) for kind, what in other.tokens]
        return Calculation(tuple(leaves), (*self.tokens, *moved, ("step", step)))

    def rounded(self, decimals: int) -> Calculation:
        """This one, rounded to so many decimals."""
        return Calculation(self.leaves, (*self.tokens, ("round", decimals)))

    def picked(self, rows: Any) -> Calculation:
        """The same of some rows; -1 is a row that there is not."""
        tokens = [
            (kind, _rows_of(what, rows) if kind == "number" else what) for kind, what in self.tokens
        ]
        return Calculation(tuple([leaf._picked(rows) for leaf in self.leaves]), tuple(tokens))

    @property
    def too_long(self) -> bool:
        return len(self.tokens) > LONGEST

    def value(self) -> Any:
        """What the released numbers come to."""
        with np.errstate(all="ignore"):
            return self._run(
                [leaf._number() for leaf in self.leaves], _itself, _on_values, np.round
            )

    def ends(self, level: float) -> Ends:
        """An interval that holds what the exact numbers come to, with probability ``level`` or
        more."""
        each = min(1 - (1 - level) / max(len(self.leaves), 1), 1 - 2.0**-53)
        return self.enclosed([leaf._ends(each) for leaf in self.leaves])

    def enclosed(self, ends: Sequence[Ends]) -> Ends:
        """All that the steps can come to where each released number lies between its ends; NaN
        where one of them has none."""
        doubles = [tuple(np.asarray(end, dtype=np.float64) for end in pair) for pair in ends]
        with np.errstate(all="ignore"):
            low, high = self._run(doubles, _point, _on_ends, outward)
        return low + 0.0, high + 0.0  # no negative zero

    def deviation(self) -> Any:
        """The standard deviation of the noise, where one released number is shifted and scaled;
        None otherwise."""
        if len(self.leaves) != 1:
            return None
        slope, _ = self._run([(1.0, 0.0)], _level_line, _on_lines, lambda line, decimals: _BENT)
        deviation = self.leaves[0]._deviation()
        return None if deviation is None or np.isnan(slope).all() else abs(slope) * deviation

    @property
    def scales(self) -> bool:
        """Whether it is one released number times a plain one, other than 0."""
        if len(self.leaves) != 1:
            return False
        slope, start = self._run([(1.0, 0.0)], _level_line, _on_lines, lambda line, decimals: _BENT)
        return bool(np.all(np.isfinite(slope)) and np.all(slope) and not np.any(start))

    def _run(
        self,
        leaves: list[Any],
        constant: Callable[[Any], Any],
        operate: Callable[[Step, list[Any]], Any],
        rounding: Callable[[Any, int], Any],
    ) -> Any:
        stack: list[Any] = []
        for kind, what in self.tokens:
            if kind == "leaf":
                stack.append(leaves[what])
            elif kind == "number":
                stack.append(constant(what))
            elif kind == "round":
                stack.append(rounding(stack.pop(), what))
            else:
                step = STEPS[what]
                operands = stack[-step.operands :]
                del stack[-step.operands :]
                stack.append(operate(step, operands))
        (result,) = stack
        return result


def of_leaf(leaf: Any) -> Calculation:
    """A released number as it is."""
    return Calculation((leaf,), (("leaf", 0),))


def of_number(number: Any) -> Calculation:
    """A number that everybody knows, or one for each row."""
    return Calculation((), (("number", number),))


def _itself(number: Any) -> Any:
    return number


def _point(number: Any) -> Ends:
    point = np.asarray(number, dtype=np.float64)
    return point, point


def _level_line(number: Any) -> Line:
    return 0.0, number


def _on_values(step: Step, operands: Sequence[Any]) -> Any:
    result = step.on_values(*operands)
    if isinstance(result, np.ndarray) and result.dtype.kind == "i":
        doubles = step.on_values(*(np.asarray(operand, dtype=np.float64) for operand in operands))
        return (
            doubles if np.abs(doubles).max(initial=0.0) >= 2.0**62 else result
        )  # it has not wrapped around
    return result


def _rows_of(number: Any, rows: Any) -> Any:
    if not isinstance(number, np.ndarray):
        return number
    return np.where(rows < 0, np.nan, number[rows])


def _on_lines(step: Step, operands: Sequence[Line]) -> Line:
    return step.on_lines(*operands)


def _on_ends(step: Step, operands: Sequence[Ends]) -> Ends:
    low, high = step.on_ends(*operands)
    # Infinity less infinity may be anything; what has no interval gives none to what is made of it.
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    lost: Any = np.False_
    for ends in operands:
        lost = lost | np.isnan(ends[0]) | np.isnan(ends[1])
    return np.where(lost, np.nan, low), np.where(lost, np.nan, high)


# Numbers --------------------------------------------------------------------------------------------------------------


class Arithmetic(ABC):
    """Operators of a released number: what plain numbers and other released ones make of it keeps
    an interval.

    Everything else that takes a number sees a plain one: powers, remainders, arrays, Series,
    Decimal and Fraction; and a float of Python before a whole number, since Python asks the float
    alone: ``n * 0.5`` keeps the interval, and ``0.5 * n`` is a float.

    What comes of it has no one type: a number with an interval as a rule, a plain one where it is
    too large or of too many steps, and of durations what pandas makes. A union of these would
    forbid ``.interval()`` in every program that is checked.
    """

    @abstractmethod
    def _number(self) -> Any:
        """The plain number."""

    def _calculation(self) -> Calculation:
        """How it came to be."""
        return of_leaf(self)

    def _same(self, other: Any) -> bool:
        return self is other

    def _picked(self, rows: Any) -> Any:
        return self

    @abstractmethod
    def _made(self, value: Any, calculation: Calculation) -> Any:
        """The released number that a calculation has come to."""

    def __add__(self, other: Any) -> Any:
        return _joined("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return _joined("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return _joined("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _joined("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return _joined("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _joined("*", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _joined("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _joined("/", other, self)

    def __neg__(self) -> Any:
        return self._made(-self._number(), self._calculation().then("negative"))

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Any:
        return self._made(abs(self._number()), self._calculation().then("absolute"))

    def __round__(self, ndigits: Any = None) -> Any:
        value = round(self._number(), ndigits)
        if abs(ndigits or 0) > 300:
            return value
        return self._made(value, self._calculation().rounded(ndigits or 0))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **words: Any) -> Any:
        """What numpy makes of it: as the operators have it beside a scalar, and as of a plain
        number beside arrays."""
        step = _UFUNCS.get(ufunc)
        if step is not None and method == "__call__" and not words and all(map(is_number, inputs)):
            return _joined(step, *inputs) if len(inputs) == 2 else STEPS[step].on_values(*inputs)
        plain = [x._number() if isinstance(x, Arithmetic) else x for x in inputs]
        return getattr(ufunc, method)(*plain, **words)


_UFUNCS: dict[Any, str] = {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.true_divide: "/",
    np.negative: "negative",
    np.absolute: "absolute",
}


def is_number(value: Any) -> bool:
    """Whether a value is a number of Python or numpy."""
    return isinstance(value, int | float | np.integer | np.floating)


def _joined(step: str, one: Any, two: Any) -> Any:
    if not (is_number(one) and is_number(two)):
        return NotImplemented
    numbers, calculations = [], []
    for operand in (one, two):
        released = isinstance(operand, Arithmetic)
        plain = operand.item() if isinstance(operand, np.generic) else operand
        numbers.append(operand._number() if released else plain)
        calculations.append(operand._calculation() if released else of_number(plain))
    value = STEPS[step].on_values(*numbers)
    if any(isinstance(number, int) and abs(number) > LARGEST for number in numbers):
        return value
    made: Arithmetic = one if isinstance(one, Arithmetic) else two
    return made._made(value, calculations[0].then(step, calculations[1]))
