"""Functions of numpy that look at one cell, or at two of a row: what they are called, and how
bounds travel through them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar, NamedTuple

from dpframe._errors import BadValue
from dpframe._expr._base import Expr, Lookup
from dpframe._expr._build import CALLS, _numeric
from dpframe._expr._kinds import Kind
from dpframe._expr._ranges import Interval, outward, union

_Pair = tuple[float, float]
_ULPS = 8  # further than numpy's own functions, and Python's, are from the exact value


class Shape(NamedTuple):
    """How bounds travel through a function; whether it has no value for some numbers; whether its
    values are whole."""

    interval: Callable[[_Pair], Interval]
    partial: bool = False
    whole: bool = False


def _monotone(
    f: Callable[[float], float],
    least: float = -math.inf,
    most: float = math.inf,
    floor: float = -math.inf,
) -> Callable[[_Pair], Interval]:
    """Bounds through a function that only rises or only falls, between the numbers where it has a
    value. None where an end is infinite. No value lies below the `floor`."""

    def interval(ends: _Pair) -> Interval:
        low, high = max(ends[0], least), min(ends[1], most)
        if low > high:
            return None
        try:
            a, b = sorted((f(low), f(high)))
            found = outward(Fraction(a), Fraction(b), ulps=_ULPS)
        except (
            OverflowError,
            ValueError,
        ):  # infinite at the end of where it has a value, or beyond doubles
            return None
        return found and (max(found[0], floor), max(found[1], floor))

    return interval


def _exact(f: Callable[[float], float]) -> Callable[[_Pair], Interval]:
    return lambda ends: (float(f(ends[0])), float(f(ends[1])))


def _within(low: float, high: float) -> Callable[[_Pair], Interval]:
    return lambda _: (low, high)


def _sign(x: float) -> float:
    return float((x > 0) - (x < 0))


FUNCTIONS: dict[str, Shape] = {
    "log": Shape(_monotone(math.log, least=0), partial=True),
    "log2": Shape(_monotone(math.log2, least=0), partial=True),
    "log10": Shape(_monotone(math.log10, least=0), partial=True),
    "log1p": Shape(_monotone(math.log1p, least=-1), partial=True),
    "exp": Shape(_monotone(math.exp, floor=0.0)),
    "exp2": Shape(_monotone(math.exp2, floor=0.0)),
    "expm1": Shape(_monotone(math.expm1, floor=-1.0)),
    "sqrt": Shape(_monotone(math.sqrt, least=0, floor=0.0), partial=True),
    "cbrt": Shape(_monotone(math.cbrt)),
    "floor": Shape(_exact(math.floor), whole=True),
    "ceil": Shape(_exact(math.ceil), whole=True),
    "trunc": Shape(_exact(math.trunc), whole=True),
    "sign": Shape(_exact(_sign), whole=True),
    "sin": Shape(_within(-1.0, 1.0), partial=True),
    "cos": Shape(_within(-1.0, 1.0), partial=True),
    "tan": Shape(lambda _: None, partial=True),
    "arcsin": Shape(_monotone(math.asin, -1, 1), partial=True),
    "arccos": Shape(_monotone(math.acos, -1, 1), partial=True),
    "arctan": Shape(_monotone(math.atan)),
    "sinh": Shape(_monotone(math.sinh)),
    "tanh": Shape(_monotone(math.tanh)),
    "arcsinh": Shape(_monotone(math.asinh)),
    "degrees": Shape(_monotone(math.degrees)),
    "radians": Shape(_monotone(math.radians)),
}


@dataclass(frozen=True, slots=True)
class Function(Expr):
    """``np.log(x)`` and its like, in float64. Null stays null; where there is no value it is null;
    overflow is infinite."""

    identity: ClassVar[tuple[str, ...]] = ("function", "op", "x")

    op: str
    x: Expr

    @property
    def kind(self) -> Kind:
        return "number"

    @property
    def nullable(self) -> bool:
        return self.x.nullable or FUNCTIONS[self.op].partial

    @property
    def integral(self) -> bool:
        return FUNCTIONS[self.op].whole

    def interval(self, lookup: Lookup) -> Interval:
        ends = self.x.interval(lookup)
        return None if ends is None else FUNCTIONS[self.op].interval(ends)

    def __str__(self) -> str:
        return f"{self.op}({self.x})"


def _least(a: _Pair, b: _Pair) -> Interval:
    return (min(a[0], b[0]), min(a[1], b[1]))


def _most(a: _Pair, b: _Pair) -> Interval:
    return (max(a[0], b[0]), max(a[1], b[1]))


def _hypotenuse(a: _Pair, b: _Pair) -> Interval:
    low = math.hypot(*(0.0 if x[0] <= 0 <= x[1] else min(map(abs, x)) for x in (a, b)))
    high = math.hypot(*(max(map(abs, x)) for x in (a, b)))
    found = outward(Fraction(low), Fraction(high), ulps=_ULPS) if math.isfinite(high) else None
    return found and (max(found[0], 0.0), found[1])


# op: how bounds travel, and whether one null is enough for a null.
PAIRS: dict[str, tuple[Callable[[_Pair, _Pair], Interval], bool]] = {
    "minimum": (_least, True),
    "maximum": (_most, True),
    "fmin": (union, False),
    "fmax": (union, False),
    "hypot": (_hypotenuse, True),
    "arctan2": (lambda a, b: outward(Fraction(-math.pi), Fraction(math.pi), ulps=_ULPS), True),
}


@dataclass(frozen=True, slots=True)
class Pairwise(Expr):
    """``np.minimum(left, right)`` and its like, in float64. For a null fmin and fmax take the other
    side; others are null."""

    identity: ClassVar[tuple[str, ...]] = ("pairwise", "op", "left", "right")

    op: str
    left: Expr
    right: Expr

    @property
    def kind(self) -> Kind:
        return "number"

    @property
    def nullable(self) -> bool:
        sides = self.left.nullable, self.right.nullable
        return any(sides) if PAIRS[self.op][1] else all(sides)

    @property
    def integral(self) -> bool:
        return (
            self.op in ("minimum", "maximum", "fmin", "fmax")
            and self.left.integral
            and self.right.integral
        )

    def interval(self, lookup: Lookup) -> Interval:
        a, b = self.left.interval(lookup), self.right.interval(lookup)
        return None if a is None or b is None else PAIRS[self.op][0](a, b)

    def __str__(self) -> str:
        return f"{self.op}({self.left}, {self.right})"


def function(op: str, x: Expr) -> Expr:
    """``np.log(x)`` by its name."""
    if op not in FUNCTIONS:
        raise BadValue(f"{op} is not offered. Functions of one cell are {', '.join(FUNCTIONS)}.")
    _numeric(x, op)
    rounds = op in ("floor", "ceil", "trunc")
    return x if rounds and x.integral and x.kind == "number" else Function(op, x)


def pairwise(op: str, left: Expr, right: Expr) -> Expr:
    """``np.minimum(left, right)`` by its name."""
    _numeric(left, op)
    _numeric(right, op)
    return Pairwise(op, left, right)


CALLS.update({op: partial(function, op) for op in FUNCTIONS})
CALLS.update({op: partial(pairwise, op) for op in PAIRS})
