"""Times and durations: their differences, their parts, floors and texts, exact in whole ticks, and
null where ticks end."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpframe._errors import BadType, BadValue
from dpframe._expr._base import PER_SECOND, Constant, Expr, KeysOf, Lookup
from dpframe._expr._build import (
    CALLS,
    METHODS,
    _describe,
    _length,
    _moment,
    absolute,
    compare,
    date_part,
)
from dpframe._expr._choices import choose
from dpframe._expr._kinds import Kind
from dpframe._expr._nodes import _Same
from dpframe._expr._operators import BY_KIND
from dpframe._expr._parts import DATE_CALLS, DAY, HIDDEN, days_of, local_ends, span_of_days
from dpframe._expr._ranges import Interval, outward
from dpframe._validate import among

_Pair = tuple[float, float]


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
        a, b = self.left.interval(lookup), self.right.interval(lookup)
        if a is None or b is None:
            return None
        return (a[0] + b[0], a[1] + b[1]) if self.op == "+" else (a[0] - b[1], a[1] - b[0])

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True, slots=True)
class Ratio(Expr):
    """``left / right`` or ``left // right`` of durations: the quotient of their ticks as doubles,
    or its floor; null where there is none."""

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
# part: whether it is a whole number, and how bounds in nanoseconds become its bounds.
DURATIONS: dict[str, tuple[bool, Callable[[_Pair], Interval]]] = {
    "days": (True, lambda e: (float(e[0] // DAY), float(e[1] // DAY))),
    "seconds": (True, lambda _: (0.0, 86399.0)),
    "microseconds": (True, lambda _: (0.0, 999999.0)),
    "nanoseconds": (True, lambda _: (0.0, 999.0)),
    "total_seconds": (
        False,
        lambda e: outward(Fraction(e[0]) / _SECOND, Fraction(e[1]) / _SECOND, ulps=2),
    ),
}


@dataclass(frozen=True, slots=True)
class DurationPart(Expr):
    """``x.dt.days`` and its like: whole days rounded down, what is left of them, or all of it in
    seconds as a double."""

    identity: ClassVar[tuple[str, ...]] = ("duration_part", "x", "part")

    x: Expr
    part: str

    @property
    def kind(self) -> Kind:
        return "number"

    @property
    def nullable(self) -> bool:
        return self.x.nullable

    @property
    def integral(self) -> bool:
        return DURATIONS[self.part][0]

    def interval(self, lookup: Lookup) -> Interval:
        ends = self.x.interval(lookup)
        made = DURATIONS[self.part][1]
        fixed = self.part in ("seconds", "microseconds", "nanoseconds")
        return made((0, 0)) if fixed else None if ends is None else made(ends)

    def __str__(self) -> str:
        return f"{self.x}.dt.{self.part}" + ("()" if self.part == "total_seconds" else "")


def seconds_between(x: Expr, lookup: Lookup) -> Interval:
    """The ends of durations in seconds, each the nearest double, to which values are clipped; None
    where they are not known."""
    ends = x.interval(lookup)
    return (
        None
        if ends is None
        else (float(Fraction(ends[0]) / _SECOND), float(Fraction(ends[1]) / _SECOND))
    )


@dataclass(frozen=True, slots=True)
class Snap(_Same):
    """``x.dt.floor("h")``, ``ceil`` or ``round``: to whole steps of so many nanoseconds, of times
    in the wall time of the column; null where ticks end."""

    identity: ClassVar[tuple[str, ...]] = ("snap", "x", "op", "step", "freq")

    op: str
    step: int
    freq: str

    @property
    def nullable(self) -> bool:
        return True

    @property
    def integral(self) -> bool:
        return False

    def interval(self, lookup: Lookup) -> Interval:
        ends = self.x.interval(lookup)
        if ends is None:
            return None
        # Wall time may be off by a day, and the places of steps with it.
        off = self.step if self.tz is None else 2 * DAY
        return (ends[0] - off, ends[1] + off)

    def members(self, keys: KeysOf, ends: Lookup) -> tuple[Any, ...] | None:
        known = self.x.interval(ends)
        if self.step != DAY or self.op != "floor" or self.kind != "time" or known is None:
            return None
        return span_of_days(known, self.tz)

    def __str__(self) -> str:
        return f"{self.x}.dt.{self.op}({self.freq!r})"


@dataclass(frozen=True, slots=True)
class Zoned(_Same):
    """``tz_convert``: the same moment in another zone; ``tz_localize``: the same wall time in a
    zone, or without one. A wall time that is none, or two moments, is null."""

    identity: ClassVar[tuple[str, ...]] = ("zoned", "x", "op", "zone")

    op: str
    zone: str | None

    @property
    def tz(self) -> str | None:
        return self.zone

    @property
    def nullable(self) -> bool:
        return True

    @property
    def integral(self) -> bool:
        return False

    def interval(self, lookup: Lookup) -> Interval:
        ends = self.x.interval(lookup)
        if ends is None or (self.op == "convert" and self.zone is not None):
            return ends
        if self.zone is None:
            return local_ends(ends, self.x.tz)
        return (ends[0] - DAY, ends[1] + DAY)  # no zone is further from UTC

    def __str__(self) -> str:
        return f"{self.x}.dt.tz_{self.op}({self.zone!r})"


def same_moment(x: Expr) -> Expr:
    """What a time is in another zone of: the expression below changes of the zone, which leave
    every moment what it was."""
    while isinstance(x, Zoned) and x.op == "convert" and x.zone is not None:
        x = x.x
    return x


PERIODS = {"Y": "Y", "A": "Y", "Q": "Q", "M": "M", "W": "W", "D": "D", "h": "h", "H": "h"}


@dataclass(frozen=True, slots=True)
class PeriodOf(Expr):
    """``x.dt.to_period("M")``: the year, quarter, month, week, day or hour that a time is in, in
    the local time of the column."""

    identity: ClassVar[tuple[str, ...]] = ("period", "x", "freq")

    x: Expr
    freq: str

    @property
    def kind(self) -> Kind:
        return "label"

    @property
    def nullable(self) -> bool:
        return True

    def members(self, keys: KeysOf, ends: Lookup) -> tuple[Any, ...] | None:
        known = self.x.interval(ends)
        local = None if known is None else local_ends(known, self.x.tz)
        if local is None:
            return None
        try:
            first, last = (pd.Timestamp(int(end)).to_period(self.freq) for end in local)
            if last.ordinal - first.ordinal >= MAX_PERIODS:
                return None
            return tuple(pd.period_range(first, last, freq=self.freq))
        except (ValueError, OverflowError):
            return None

    def __str__(self) -> str:
        return f"{self.x}.dt.to_period({self.freq!r})"


MAX_PERIODS = 10_000
# Parts of a format, which look at the day alone or at the time of day too.
_DAILY, _FINE = frozenset("YymdBbAajUWuwVG%"), frozenset("HIMSfp")


@dataclass(frozen=True, slots=True)
class Formatted(Expr):
    """``x.dt.strftime(format)``, in the local time of the column; null for years before 1000 or
    after 9999."""

    identity: ClassVar[tuple[str, ...]] = ("formatted", "x", "format")

    x: Expr
    format: str

    @property
    def kind(self) -> Kind:
        return "text"

    @property
    def nullable(self) -> bool:
        return True

    @property
    def daily(self) -> bool:
        """Whether the text follows from the day."""
        return not set(re.findall("%(.)", self.format, re.DOTALL)) & _FINE

    def members(self, keys: KeysOf, ends: Lookup) -> tuple[Any, ...] | None:
        known = self.x.interval(ends)
        days = None if known is None or not self.daily else days_of(known, self.x.tz)
        if days is None:
            return None
        return tuple(sorted({day.strftime(self.format) for day in days.to_pydatetime()}))

    def __str__(self) -> str:
        return f"{self.x}.dt.strftime({self.format!r})"


@dataclass(frozen=True, slots=True)
class Moment(Expr):
    """A text read as a time, by a format or else as an ISO date (2024-01-31, 2024-01-31 12:00:00):
    null where it is none, in whole microseconds of the years 1 to 9999, without a zone."""

    identity: ClassVar[tuple[str, ...]] = ("moment", "x", "format")

    x: Expr
    format: str | None = None

    @property
    def kind(self) -> Kind:
        return "time"

    @property
    def nullable(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"to_datetime({self.x}{'' if self.format is None else f', format={self.format!r}'})"


# ---- constructors -----------------------------------------------------------------------------------------


def elapsed(op: str, left: Expr, right: Expr) -> Expr:
    """An operator of times and durations."""
    if isinstance(left, Constant) and left.kind == "text":
        left = _moment(left, right) if right.kind == "time" else _length(left)
    if isinstance(right, Constant) and right.kind == "text":
        right = _moment(right, left) if left.kind == "time" and op == "-" else _length(right)
    kinds = (left.kind, right.kind)
    if kinds == ("time", "time") and op == "-":
        if (left.tz is None) != (right.tz is None):
            raise BadType(
                f"one of {left} and {right} has a time zone, the other has none. Give both one, or neither."
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
        f"{_describe(left)} {op} {_describe(right)} has no value. Times have differences, and durations are added to them: "
        "t2 - t1, t + pd.Timedelta(days=7); a duration becomes a number by .dt.days, .dt.total_seconds() or / pd.Timedelta('1D')."
    )


def magnitude(x: Expr) -> Expr:
    """A number or a duration without its sign."""
    if x.kind != "duration":
        return absolute(x)
    return choose(compare("<", x, Constant(_NONE)), Elapsed("-", Constant(_NONE), x), x)


_NONE = pd.Timedelta(0)
BY_KIND.update(time=elapsed, duration=elapsed)


def duration_part(x: Expr, part: str) -> Expr:
    """``x.dt.days`` and its like."""
    if x.kind != "duration":
        raise BadType(f".dt.{part} needs durations, and {_describe(x)} is none.")
    return DurationPart(x, part)


def snap(x: Expr, op: str, freq: object) -> Expr:
    """Floors, ceilings and rounds of times and durations to steps of a fixed length."""
    if x.kind not in ("time", "duration"):
        raise BadType(f".dt.{op} needs times or durations, and {_describe(x)} is none.")
    try:
        offset: Any = freq
        step: Any = pd.tseries.frequencies.to_offset(offset)
        step = (
            pd.Timedelta(1, "D") * step.n
            if isinstance(step, pd.offsets.Day)
            else pd.Timedelta(step)
        )
        ticks = int(step.as_unit("ns").value)
    except (ValueError, TypeError, AttributeError, OverflowError):
        ticks = 0
    if ticks <= 0:
        raise BadValue(
            f".dt.{op} takes a step of a fixed length, such as 'D', 'h' or '15min', not {freq!r}. Months have "
            ".dt.to_period('M')."
        )
    return Snap(x, op, ticks, str(freq))


def zoned(x: Expr, op: str, zone: object) -> Expr:
    """``tz_convert`` and ``tz_localize``."""
    if x.kind != "time":
        raise BadType(f".dt.tz_{op} needs times, and {_describe(x)} is none.")
    zone = None if zone is None else _zone_name(zone)
    if op == "convert" and x.tz is None:
        raise BadType(f"{_describe(x)} has no time zone: .dt.tz_localize(zone) gives it one.")
    if op == "localize" and zone is not None and x.tz is not None:
        raise BadType(f"{_describe(x)} has the zone {x.tz}: .dt.tz_convert(zone) changes it.")
    if x.tz is None and zone is None:
        return x
    utc = op == "convert" and zone is None
    found = Zoned(x, op, "UTC" if utc else zone)
    return Zoned(found, "localize", None) if utc else found


def _zone_name(zone: object) -> str:
    """Return the name of a time zone. Raise if no moment can be put into it."""
    try:
        name = str(zone)
        pd.DatetimeIndex(np.zeros(1, "M8[s]")).tz_localize(name, ambiguous="NaT", nonexistent="NaT")
    except Exception:  # of a zone's own code
        raise BadValue(f"{zone!r} is no time zone. Write 'UTC' or 'Europe/Berlin'.") from None
    return name


def period_of(x: Expr, freq: object) -> Expr:
    """``to_period`` of the calendar's own periods."""
    if x.kind != "time":
        raise BadType(f".dt.to_period needs times, and {_describe(x)} is none.")
    if not isinstance(freq, str) or freq not in PERIODS:
        raise BadValue(f".dt.to_period takes 'Y', 'Q', 'M', 'W', 'D' or 'h', not {freq!r}.")
    return PeriodOf(x, PERIODS[str(freq)])


def formatted(x: Expr, date_format: object) -> Expr:
    """``strftime``."""
    if x.kind != "time":
        raise BadType(f".dt.strftime needs times, and {_describe(x)} is none.")
    _check_format(date_format, "strftime")
    return Formatted(x, str(date_format))


def moment(x: Expr, format: object = None) -> Expr:
    """``to_datetime`` of a text; a time stays what it is."""
    if x.kind == "time":
        return x
    if x.kind not in ("text", "label"):
        raise BadType(f"to_datetime needs texts, and {_describe(x)} is none.")
    if isinstance(format, Constant):
        format = format.value
    if format is None or among(format, ("ISO8601",)):
        return Moment(x)
    _check_format(format, "to_datetime")
    return Moment(x, str(format))


def _check_format(given: object, what: str) -> None:
    if not isinstance(given, str) or len(given) > 100 or not given.isascii() or "\0" in given:
        raise BadType(f"{what} takes a format of at most 100 characters, such as '%Y-%m-%d'.")
    unknown = [
        part
        for part in re.findall("%(.?)", given, re.DOTALL)
        if not part or part not in _DAILY | _FINE
    ]
    if unknown:
        raise BadValue(
            f"{what} does not offer %{unknown[0]} here. Its parts are {' '.join('%' + p for p in sorted(_DAILY | _FINE))}."
        )


def time_part(x: Expr, part: str) -> Expr:
    """``x.dt.part`` of times, or of durations."""
    if x.kind == "duration" and part in DURATIONS:
        return duration_part(x, part)
    return date_part(x, f"isocalendar().{part}" if part in HIDDEN else part)


def _called(part: str) -> Callable[..., Expr]:
    def make(x: Expr, locale: object = None) -> Expr:
        if locale is not None:
            raise BadType(f".dt.{part} has English names here.")
        return date_part(x, part)

    return make


def _stepped(op: str) -> Callable[..., Expr]:
    def make(
        x: Expr, freq: object, ambiguous: object = "raise", nonexistent: object = "raise"
    ) -> Expr:
        if not (among(ambiguous, ("raise",)) and among(nonexistent, ("raise",))):
            raise BadType(
                f".dt.{op} has no ambiguous= and nonexistent= here: the next moment there is, or the first."
            )
        return snap(x, op, freq)

    return make


def _localized(
    x: Expr, tz: object, ambiguous: object = "raise", nonexistent: object = "raise"
) -> Expr:
    if not (among(ambiguous, ("raise", "NaT")) and among(nonexistent, ("raise", "NaT"))):
        raise BadType(
            ".dt.tz_localize makes null of wall times that are none, or two: ambiguous='NaT', nonexistent='NaT'."
        )
    return zoned(x, "localize", tz)


def _check_unit(x: Expr, unit: object) -> Expr:
    """Check a unit, and return the value itself. A moment is the same in every unit."""
    if not among(unit, tuple(PER_SECOND)):
        raise BadValue(f".dt.as_unit has the units {', '.join(PER_SECOND)}, not {unit!r}.")
    return x


# What is called on times and durations, with the parameters that pandas has.
DATE_METHODS: dict[str, Callable[..., Expr]] = {
    **{part: _called(part) for part in DATE_CALLS if part != "normalize"},
    "normalize": lambda x: date_part(x, "normalize"),
    **{op: _stepped(op) for op in ("floor", "ceil", "round")},
    "to_period": lambda x, freq=None: period_of(x, freq),
    "strftime": lambda x, date_format: formatted(x, date_format),
    "tz_convert": lambda x, tz: zoned(x, "convert", tz),
    "tz_localize": _localized,
    "total_seconds": lambda x: duration_part(x, "total_seconds"),
    "as_unit": _check_unit,
}
METHODS.update(abs=magnitude)
CALLS.update(abs=magnitude, to_datetime=moment)
