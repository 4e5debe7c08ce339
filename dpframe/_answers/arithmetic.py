"""Arithmetic with released numbers: what is computed from them, and an interval for it.

*Formal guarantee.* In a calculation with m released numbers each gets an interval of level
``1 - (1 - level) / m``. All of these hold together with probability ``level`` or more, by the union
bound, however their noises depend on each other. Where they hold, interval arithmetic encloses what
the same arithmetic in doubles gives for the exact numbers, to the last bit: each step is monotone
in each operand, and so is rounding to doubles
(docs/guarantees/intervals.md#arithmetic-with-answers). It is post-processing, and free.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpframe._answers.forms import PARTS, NoiseInterval, Unfit, enclose_by_noises
from dpframe._answers.rowsteps import RowStep, pick
from dpframe._plans.worth import LEVEL
from dpframe._types import Places

if TYPE_CHECKING:
    from dpframe._answers.noises import LeafForm
    from dpframe._plans.aggregates import Cell
    from dpframe._plans.plan import Plan

Value: TypeAlias = Any  # a number, or an array of numbers
Pair = tuple[Value, Value]  # the lower and the upper end of an interval
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# Whole numbers beyond it are not doubles, and ends of intervals are doubles. A calculation with one
# gives a plain number.
LARGEST = 2**53
# The number of steps beyond which a loop gives plain numbers: each turn takes longer than the last.
LONGEST = 256

# Rules of intervals; `forms` has others.
RELEASED = "the law of the noise in each released number"
ONE = "the interval of one released number, and what it becomes"


class Leaf(Protocol):
    """A released number, or an array of them."""

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of the releases that it is made of."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The outputs that it shows."""

    @property
    def part(self) -> float:
        """The part by which it is judged."""

    @property
    def release_key(self) -> object:
        """The release that holds it: intervals of one release can hold at once."""

    def number(self) -> Value:
        """Return the value, as a plain number or an array."""

    def ends(self, level: float, at_once: bool = False) -> Pair:
        """Return the ends of its interval."""

    def deviation(self) -> Value | None:
        """Return the standard deviation of the noise; None, or NaN, if none can be stated."""

    def form(self) -> LeafForm | None:
        """Return it as sums of noisy integers, or ratios of these; None if it is neither."""

    def flag_noise(self, size: int) -> NDArray[np.bool_]:
        """Return which of its numbers are noise; of a single number, ``size`` times the same."""

    def is_same(self, other: object) -> bool:
        """Return whether the other is this very number, with the same noise."""

    def pick_rows(self, rows: Places) -> Leaf:
        """Return some rows of it, if it has rows; -1 is a missing row."""


# Steps ------------------------------------------------------------------------------------------


def _enclose_corners(operate: Callable[[Value, Value], Value], one: Pair, two: Pair) -> Pair:
    """Return an interval that holds a result whose operands lie in the intervals ``one`` and
    ``two``.

    Its ends are the least and the largest result of their ends, which bound an operation that is
    monotone in each operand. Infinite ends are the largest doubles here, since zero times those is
    zero.
    """
    largest = np.finfo(float).max
    sides, others = ([np.clip(end, -largest, largest) for end in ends] for ends in (one, two))
    found = np.stack(np.broadcast_arrays(*(operate(a, b) for a in sides for b in others)))
    return found.min(axis=0), found.max(axis=0)


def _divide_intervals(one: Pair, two: Pair) -> Pair:
    """Return the ends of a quotient: infinite if the divisor may be zero."""
    low, high = _enclose_corners(operator.truediv, one, two)
    anything = (two[0] <= 0) & (two[1] >= 0)
    return np.where(anything, -np.inf, low), np.where(anything, np.inf, high)


def _enclose_absolute(one: Pair) -> Pair:
    """Return the ends of an absolute value."""
    low, high = one
    return np.maximum(np.maximum(low, -high), 0.0), np.maximum(-low, high)


def round_outward(ends: Pair, decimals: int) -> Pair:
    """Round the ends of an interval away from each other, for a number that is rounded too.

    The result holds every number of the interval after it is rounded.
    """
    low: Value = np.round(ends[0], decimals)
    high: Value = np.round(ends[1], decimals)
    step = 10.0**-decimals
    low = np.where(low > ends[0], np.round(low - step, decimals), low)
    high = np.where(high < ends[1], np.round(high + step, decimals), high)
    return np.minimum(low, ends[0]), np.maximum(high, ends[1])


# A straight line in the one released number: its slope, and its value at 0. Both are NaN for what
# is not a straight line.
Line = tuple[Value, Value]
_BENT: Line = (np.nan, np.nan)


def _multiply_lines(one: Line, two: Line) -> Line:
    """Return the product of two lines, which is a line if one of them is constant."""
    if np.any(one[0]) and np.any(two[0]):
        return _BENT
    return one[0] * two[1] + one[1] * two[0], one[1] * two[1]


def _divide_lines(one: Line, two: Line) -> Line:
    """Return the quotient of two lines, which is a line if the divisor is constant."""
    return _BENT if np.any(two[0]) or not np.all(two[1]) else (one[0] / two[1], one[1] / two[1])


class StepsByName(Protocol[T_co]):
    """Steps on what the numbers of a calculation stand for, by their names."""

    def __getitem__(self, name: str) -> Callable[..., T_co]:
        """Return the step."""


class Operation(NamedTuple):
    """The effect of a step on numbers, on intervals, and on straight lines."""

    name: str
    operands: int
    on_values: Callable[..., Value]
    on_ends: Callable[..., Pair]
    on_lines: Callable[..., Line]


OPERATIONS: dict[str, Operation] = {
    "+": Operation(
        "+",
        2,
        operator.add,
        lambda a, b: (a[0] + b[0], a[1] + b[1]),
        lambda a, b: (a[0] + b[0], a[1] + b[1]),
    ),
    "-": Operation(
        "-",
        2,
        operator.sub,
        lambda a, b: (a[0] - b[1], a[1] - b[0]),
        lambda a, b: (a[0] - b[0], a[1] - b[1]),
    ),
    "*": Operation("*", 2, operator.mul, partial(_enclose_corners, operator.mul), _multiply_lines),
    "/": Operation("/", 2, operator.truediv, _divide_intervals, _divide_lines),
    "negative": Operation(
        "negative", 1, operator.neg, lambda a: (-a[1], -a[0]), lambda a: (-a[0], -a[1])
    ),
    "absolute": Operation("absolute", 1, abs, _enclose_absolute, lambda a: _BENT),
}

# One entry of a calculation in postfix order: a leaf by its place, a constant, a step by its name, a
# rounding, or a step across rows.
Token = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class Calculation:
    """Steps on released numbers, in postfix order; the same for a number and for arrays of them.

    >>> class Seven:
    ...     def number(self):
    ...         return 7.0
    ...
    ...     def ends(self, level):
    ...         return 6.0, 8.5
    ...
    ...     def deviation(self):
    ...         return 1.0
    ...
    ...     def is_same(self, other):
    ...         return other is self
    >>> half = start_from_leaf(Seven()).append("/", start_from_number(2))
    >>> half.value(), [float(end) for end in half.ends(0.95)], half.deviation()
    (3.5, [3.0, 4.25], 0.5)
    """

    leaves: tuple[Leaf, ...]
    tokens: tuple[Token, ...]

    def append(self, step: str, other: Calculation | None = None) -> Calculation:
        """Return this calculation and then a step.

        ``step`` is an operation, such as "+" or "negative". ``other`` is its second operand, if it
        takes two.
        """
        if other is None:
            return Calculation(self.leaves, (*self.tokens, ("step", step)))
        leaves = list(self.leaves)
        places = []
        for leaf in other.leaves:  # a number that stands in both is one number
            place = next((i for i, known in enumerate(leaves) if leaf.is_same(known)), len(leaves))
            if place == len(leaves):
                leaves.append(leaf)
            places.append(place)
        moved = [(kind, places[what] if kind == "leaf" else what) for kind, what in other.tokens]
        return Calculation(tuple(leaves), (*self.tokens, *moved, ("step", step)))

    def round(self, decimals: int) -> Calculation:
        """Return this calculation and then a rounding."""
        return Calculation(self.leaves, (*self.tokens, ("round", decimals)))

    def append_rows(self, step: RowStep) -> Calculation:
        """Return this calculation and then a step across its rows."""
        return Calculation(self.leaves, (*self.tokens, ("rows", step)))

    def pick_rows(self, rows: Places) -> Calculation:
        """Return the same calculation for some rows of the released columns; -1 is a missing
        row."""
        if self.crosses_rows:
            size = np.size(self.value())
            return self if size == 1 else self.append_rows(pick(rows, size))
        tokens = [
            (kind, _pick_constants(what, rows) if kind == "number" else what)
            for kind, what in self.tokens
        ]
        return Calculation(tuple([leaf.pick_rows(rows) for leaf in self.leaves]), tuple(tokens))

    @property
    def too_long(self) -> bool:
        """Whether it has more steps than a receipt takes."""
        return len(self.tokens) > LONGEST

    @property
    def crosses_rows(self) -> bool:
        """Whether rows of a column are picked, added or multiplied."""
        return any(kind == "rows" for kind, _ in self.tokens)

    def value(self) -> Value:
        """Return the result of the calculation, from the released numbers."""
        with np.errstate(all="ignore"):
            return self._run(
                [leaf.number() for leaf in self.leaves],
                _keep,
                _apply_to_values,
                np.round,
                lambda step, column: step.on_values(column),
            )

    def ends(self, level: float) -> Pair:
        """Return an interval that holds what the exact numbers come to, at this level or more."""
        found = self._enclose_by_noises(level)
        if found is None:
            return self._enclose_by_parts(level)
        value = self.value()
        low, high = (end.reshape(np.shape(value)) for end in (found.low, found.high))
        lost = np.isnan(value)
        if np.asarray(value).dtype.kind == "i":  # what is whole lies between whole ends
            low, high = np.ceil(low - 1e-6), np.floor(high + 1e-6)
        low = np.where(lost, low, np.minimum(low, value))
        return low + 0.0, np.where(lost, high, np.maximum(high, value)) + 0.0  # no negative zero

    def _enclose_by_parts(self, level: float) -> Pair:
        """Return an interval in which each released number has its part of the risk."""
        terms = sum(np.size(leaf.number()) if self.crosses_rows else 1 for leaf in self.leaves)
        each = min(1 - (1 - level) / max(terms, 1), 1 - 2.0**-53)
        return self.enclose([leaf.ends(each) for leaf in self.leaves])

    def _enclose_by_noises(self, level: float) -> NoiseInterval | None:
        """Return an interval by the laws of the noises; None if its rule is another one.

        What has one released number once follows from the interval of that number.
        """
        used = sum(kind == "leaf" for kind, _ in self.tokens)
        if not self.crosses_rows and used <= 1:
            return None
        if self.tokens[-1][0] != "round":
            return enclose_by_noises(self, level)
        low, high = Calculation(self.leaves, self.tokens[:-1]).ends(level)
        low, high = round_outward((low, high), self.tokens[-1][1])
        return NoiseInterval(np.atleast_1d(low), np.atleast_1d(high), self.rule)

    @property
    def rule(self) -> str:
        """The rule of its intervals, in words."""
        if self.tokens and self.tokens[-1][0] == "round":
            return f"{Calculation(self.leaves, self.tokens[:-1]).rule}, rounded outward"
        found = self._enclose_by_noises(LEVEL)
        if found is not None:
            return found.rule
        return ONE if not self.crosses_rows and len(self.leaves) <= 1 else PARTS

    def _degree(self) -> int:
        """Return 0 for a known number, 1 for a weighted sum of released numbers, and 2 for
        others."""
        return min(
            self._run(
                [1] * len(self.leaves), lambda _: 0, _find_degree, _bend_degree, _keep_degree
            ),
            2,
        )

    def run_forms(
        self,
        leaves: Sequence[T],
        start: Callable[[Value], T],
        steps: StepsByName[T],
        across: Callable[[RowStep, T], T],
    ) -> T:
        """Run the steps of the calculation on forms (`forms.ErrorForm`), or on what counts them.

        ``leaves`` has that of each released column, and ``start`` makes one of a known number.
        ``steps`` and ``across`` apply operations and steps across rows. Raise `forms.Unfit` where
        it rounds.
        """

        def operate(step: Operation, operands: Sequence[T]) -> T:
            return steps[step.name](*operands)

        return self._run(leaves, start, operate, _refuse_rounding, across)

    def enclose(self, ends: Sequence[Pair]) -> Pair:
        """Return an interval that holds every result that the steps can have.

        ``ends`` are the intervals of the released numbers. The result is NaN if one of them has no
        interval.
        """
        doubles = [
            (np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64))
            for low, high in ends
        ]
        with np.errstate(all="ignore"):
            low, high = self._run(
                doubles,
                _make_point,
                _apply_to_ends,
                round_outward,
                lambda step, ends: step.on_ends(ends, OPERATIONS["*"].on_ends),
            )
        return low + 0.0, high + 0.0  # no negative zero

    def deviation(self) -> Value | None:
        """Return the standard deviation of the noise in one number that is shifted and scaled.

        Weighted sums of several have one too. Return None for any other calculation.
        """
        if len(self.leaves) != 1 or self.crosses_rows:
            found = self._enclose_by_noises(LEVEL) if self._degree() <= 1 else None
            deviation = None if found is None else found.deviation
            return None if deviation is None else deviation.reshape(np.shape(self.value()))
        slope, _ = self._line()
        deviation = self.leaves[0].deviation()
        return None if deviation is None or np.isnan(slope).all() else abs(slope) * deviation

    @property
    def scales(self) -> bool:
        """True if it is one released number times a plain one, other than 0."""
        if len(self.leaves) != 1 or self.crosses_rows:
            return False
        slope, start = self._line()
        return bool(np.all(np.isfinite(slope)) and np.all(slope) and not np.any(start))

    def _line(self) -> Line:
        """Return the straight line that a calculation with one leaf is."""
        return self._run([(1.0, 0.0)], _make_level_line, _apply_to_lines, _bend, _bend_rows)

    def _run(
        self,
        leaves: Sequence[T],
        constant: Callable[[Value], T],
        operate: Callable[[Operation, Sequence[T]], T],
        rounding: Callable[[T, int], T],
        across: Callable[[RowStep, T], T],
    ) -> T:
        """Run the steps of the calculation on a stack, and return its result.

        The same steps run on numbers, intervals or straight lines. ``leaves`` has one of these for
        each released number. ``constant`` makes one of a known number. ``operate``, ``rounding``
        and ``across`` apply a step.
        """
        stack: list[T] = []
        for kind, what in self.tokens:
            if kind == "leaf":
                stack.append(leaves[what])
            elif kind == "number":
                stack.append(constant(what))
            elif kind == "round":
                stack.append(rounding(stack.pop(), what))
            elif kind == "rows":
                stack.append(across(what, stack.pop()))
            else:
                step = OPERATIONS[what]
                operands = stack[-step.operands :]
                del stack[-step.operands :]
                stack.append(operate(step, operands))
        (result,) = stack
        return result


def start_from_leaf(leaf: Leaf) -> Calculation:
    """Return a released number as it is."""
    return Calculation((leaf,), (("leaf", 0),))


def start_from_number(number: Value) -> Calculation:
    """Return a number that everybody knows, or one for each row."""
    return Calculation((), (("number", number),))


def _keep(number: Value) -> Value:
    return number


def _make_point(number: Value) -> Pair:
    point = np.asarray(number, dtype=np.float64)
    return point, point


def _make_level_line(number: Value) -> Line:
    return 0.0, number


def _bend(line: Line, decimals: int) -> Line:
    return _BENT


def _bend_rows(step: RowStep, line: Line) -> Line:
    return _BENT


def _find_degree(step: Operation, degrees: Sequence[int]) -> int:
    """Return the degree of a step by those of its operands, as `Calculation._degree` counts."""
    if step.name == "*":
        return sum(degrees)
    if step.name == "/":
        return degrees[0] + 2 * degrees[1]
    return 2 * degrees[0] if step.name == "absolute" else max(degrees)


def _bend_degree(degree: int, decimals: int) -> int:
    return 2 * degree


def _keep_degree(step: RowStep, degree: int) -> int:
    return 2 * degree if step.kind == "product" else degree


def _refuse_rounding(form: T, decimals: int) -> T:
    raise Unfit


def _apply_to_values(step: Operation, operands: Sequence[Value]) -> Value:
    """Apply a step of a calculation to numbers, or to arrays of them.

    Whole numbers that could wrap around become doubles.
    """
    result = step.on_values(*operands)
    if isinstance(result, np.ndarray) and result.dtype.kind == "i":
        doubles = step.on_values(*(np.asarray(operand, dtype=np.float64) for operand in operands))
        return doubles if np.abs(doubles).max(initial=0.0) >= 2.0**62 else result
    return result


def _pick_constants(number: Value, rows: Places) -> Value:
    """Return the constants of some rows; one that holds for all rows stays."""
    if not isinstance(number, np.ndarray):
        return number
    return np.where(rows < 0, np.nan, number[rows])


def _apply_to_lines(step: Operation, operands: Sequence[Line]) -> Line:
    return step.on_lines(*operands)


def _apply_to_ends(step: Operation, operands: Sequence[Pair]) -> Pair:
    """Apply a step of a calculation to intervals instead of numbers.

    Infinity less infinity may be anything. Without an interval of an operand the result has no
    interval.
    """
    low, high = step.on_ends(*operands)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    lost: Value = np.False_
    for ends in operands:
        lost = lost | np.isnan(ends[0]) | np.isnan(ends[1])
    return np.where(lost, np.nan, low), np.where(lost, np.nan, high)


# Numbers ----------------------------------------------------------------------------------------


class NumberOperators(ABC):
    """Operators of a released number: with plain numbers and others they keep an interval.

    Everything else that takes a number sees a plain one: powers, remainders, arrays, Series,
    Decimal and Fraction. So does a float of Python before a whole number, since Python asks the
    float alone: ``n * 0.5`` keeps the interval, and ``0.5 * n`` is a float.

    Results have no single type. As a rule it is a number with an interval. It is a plain one if it
    is too large or takes too many steps, and of durations it is what pandas makes. A union of these
    would forbid ``.interval()`` in every program that is checked.
    """

    @abstractmethod
    def _number(self) -> Any:
        """Return the plain number."""

    @abstractmethod
    def _calculation(self) -> Calculation:
        """Return how it was computed."""

    @abstractmethod
    def _make_number(self, value: object, calculation: Calculation) -> Any:
        """Return the number that a calculation comes to."""

    def __add__(self, other: object) -> Any:
        return _operate("+", self, other)

    def __radd__(self, other: object) -> Any:
        return _operate("+", other, self)

    def __sub__(self, other: object) -> Any:
        return _operate("-", self, other)

    def __rsub__(self, other: object) -> Any:
        return _operate("-", other, self)

    def __mul__(self, other: object) -> Any:
        return _operate("*", self, other)

    def __rmul__(self, other: object) -> Any:
        return _operate("*", other, self)

    def __truediv__(self, other: object) -> Any:
        return _operate("/", self, other)

    def __rtruediv__(self, other: object) -> Any:
        return _operate("/", other, self)

    def __neg__(self) -> Any:
        return self._make_number(-self._number(), self._calculation().append("negative"))

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Any:
        return self._make_number(abs(self._number()), self._calculation().append("absolute"))

    def __round__(self, ndigits: Any = None) -> Any:
        value = round(self._number(), ndigits)
        if abs(ndigits or 0) > 300:
            return value
        return self._make_number(value, self._calculation().round(ndigits or 0))

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: object, **words: object
    ) -> Any:
        """Apply a function of numpy to a released number.

        With plain numbers alone it works like the operators, and keeps an interval. Beside arrays
        the released number counts as a plain one.
        """
        step = _UFUNCS.get(ufunc)
        if step is not None and method == "__call__" and not words and all(map(is_number, inputs)):
            if len(inputs) == 2:
                return _operate(step, *inputs)
            return OPERATIONS[step].on_values(*inputs)
        plain = [_to_plain(x) if isinstance(x, NumberOperators) else x for x in inputs]
        return getattr(ufunc, method)(*plain, **words)


_UFUNCS: dict[Any, str] = {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.true_divide: "/",
    np.negative: "negative",
    np.absolute: "absolute",
}


def is_number(value: object) -> bool:
    """Return whether a value is a number of Python or numpy."""
    return isinstance(value, int | float | np.integer | np.floating)


def _to_plain(number: object) -> Value:
    """Return a number of Python: of a released one its value."""
    if isinstance(number, NumberOperators):
        return number._number()
    return number.item() if isinstance(number, np.generic) else number


def _operate(step: str, one: object, two: object) -> Any:
    """Apply an operator to two numbers, at least one of them released.

    ``step`` is the operator, such as "+". The result keeps an interval, unless an operand is too
    large for that.
    """
    if not (is_number(one) and is_number(two)):
        return NotImplemented
    numbers = [_to_plain(one), _to_plain(two)]
    value = OPERATIONS[step].on_values(*numbers)
    if any(isinstance(number, int) and abs(number) > LARGEST for number in numbers):
        return value
    first, second = (
        each._calculation() if isinstance(each, NumberOperators) else start_from_number(number)
        for each, number in zip((one, two), numbers, strict=True)
    )
    made = one if isinstance(one, NumberOperators) else two
    assert isinstance(made, NumberOperators)
    return made._make_number(value, first.append(step, second))
