"""Operators of times and durations, exact in whole ticks, and null where ticks end."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import pandas as pd

from dpframe._errors import BadType
from dpframe._expr._base import Constant, Expr, Lookup
from dpframe._expr._build import (
    CALLS,
    METHODS,
    _length,
    _moment,
    absolute,
    compare,
    describe,
)
from dpframe._expr._choices import choose
from dpframe._expr._kinds import Kind
from dpframe._expr._operators import BY_KIND
from dpframe._expr._ranges import Interval, outward


@dataclass(frozen=True, slots=True)
class Elapsed(Expr):
    """``left + right`` or ``left - right`` of times and durations, exact in ticks of the finer
    resolution; null where one is null or ticks end."""

    identity: ClassVar[tuple[str, ...]] = ("elapsed", "op", "left", "right")

    op: str
    left: Expr
    right: Expr

    @property
    def kind(self) -> Kind:
        times = (self.left.kind == "time") + (self.right.kind == "time")
        return "time" if times == 1 else "duration"

    @property
    def nullable(self) -> bool:
        return True

    @property
    def tz(self) -> str | None:
        if self.kind != "time":
            return None
        return self.left.tz if self.left.kind == "time" else self.right.tz

    def interval(self, lookup: Lookup) -> Interval:
        """Return bounds of the sum or difference in nanoseconds; None if not known.

        ``lookup`` returns the bounds of a column.
        """
        a, b = self.left.interval(lookup), self.right.interval(lookup)
        if a is None or b is None:
            return None
        return (a[0] + b[0], a[1] + b[1]) if self.op == "+" else (a[0] - b[1], a[1] - b[0])

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True, slots=True)
class Ratio(Expr):
    """``left / right`` or ``left // right`` of durations: the quotient of their ticks as doubles,
    or its floor. A quotient by zero is null."""

    identity: ClassVar[tuple[str, ...]] = ("ratio", "op", "left", "right")

    op: str
    left: Expr
    right: Expr

    @property
    def kind(self) -> Kind:
        return "number"

    @property
    def nullable(self) -> bool:
        return True

    @property
    def integral(self) -> bool:
        return self.op == "//"

    def interval(self, lookup: Lookup) -> Interval:
        """Return bounds of the quotient; None if not known.

        ``lookup`` returns the bounds of a column. There are no bounds if the divisor can be zero.
        """
        a, b = self.left.interval(lookup), self.right.interval(lookup)
        if a is None or b is None or b[0] <= 0 <= b[1]:
            return None
        ends = [Fraction(x) / Fraction(y) for x in a for y in b]
        low, high = min(ends), max(ends)
        if self.op == "//":
            return outward(Fraction(low // 1), Fraction(high // 1))
        return outward(low, high, ulps=3)  # two integers are rounded to doubles, and their quotient

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


_SECOND = 10**9


def seconds_between(x: Expr, lookup: Lookup) -> Interval:
    """Return the bounds of durations in seconds, to which values are clipped; None if not known.

    ``lookup`` returns the bounds of a column. Each bound is the nearest double.
    """
    ends = x.interval(lookup)
    return (
        None
        if ends is None
        else (float(Fraction(ends[0]) / _SECOND), float(Fraction(ends[1]) / _SECOND))
    )


# ---- constructors --------------------------------------------------------------------------------


def operate_on_times(op: str, left: Expr, right: Expr) -> Expr:
    """Return the expression ``left op right`` of times and durations; refuse what has no meaning.

    It also takes dates and durations that are given as texts.
    """
    if isinstance(left, Constant) and left.kind == "text":
        left = _moment(left, right) if right.kind == "time" else _length(left)
    if isinstance(right, Constant) and right.kind == "text":
        right = _moment(right, left) if left.kind == "time" and op == "-" else _length(right)
    kinds = (left.kind, right.kind)
    if kinds == ("time", "time") and op == "-":
        if (left.tz is None) != (right.tz is None):
            raise BadType(
                f"one of {left} and {right} has a time zone, the other has none. Give both one, or "
                "neither."
            )
        return Elapsed(op, left, right)
    if (kinds == ("time", "duration") and op in "+-") or (
        kinds == ("duration", "time") and op == "+"
    ):
        return Elapsed(op, left, right)
    if kinds == ("duration", "duration"):
        if op in ("+", "-"):
            return Elapsed(op, left, right)
        if op in ("/", "//"):
            return Ratio(op, left, right)
    raise BadType(
        f"{describe(left)} {op} {describe(right)} has no value. Times have differences, and "
        "durations are added to them: "
        "t2 - t1, t + pd.Timedelta(days=7); a duration becomes a number by .dt.days, "
        ".dt.total_seconds() or / pd.Timedelta('1D')."
    )


def magnitude(x: Expr) -> Expr:
    """Return the expression of a number or a duration without its sign."""
    if x.kind != "duration":
        return absolute(x)
    return choose(compare("<", x, Constant(_NONE)), Elapsed("-", Constant(_NONE), x), x)


_NONE = pd.Timedelta(0)
BY_KIND.update(time=operate_on_times, duration=operate_on_times)
METHODS.update(abs=magnitude)
CALLS.update(abs=magnitude)
