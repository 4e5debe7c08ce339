"""Functions of times and durations: those of ``.dt``, and ``to_datetime``.

Values are in wall time, that of the column's zone. A null stays null, and a yes-or-no question
about a null time is answered with no.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dpframe._errors import BadType, BadValue
from dpframe._expr._base import PER_SECOND, Constant, Expr, KeysOf, Lookup
from dpframe._expr._build import CASTERS, describe
from dpframe._expr._calendar import DAY, find_years, list_days, list_days_in_zone, local_ends
from dpframe._expr._ranges import Interval, outward
from dpframe._expr.catalogue.ops import OPS, Arg, Call, Op, call, call_function, list_ops, register
from dpframe._expr.catalogue.texts import TEXTS
from dpframe._types import Values
from dpframe._validate import among, flag

_Array = Any  # of numpy's times or durations, or of integers
_SECOND = 10**9  # in nanoseconds
_MAX_PERIODS = 10_000
_MAX_DATE = 100  # characters of a date
DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


# ---- values --------------------------------------------------------------------------------------


def _per_second(t: _Array) -> int:
    return PER_SECOND[np.datetime_data(t.dtype)[0]]


def _count_since(t: _Array, small: str, large: str) -> _Array:
    """Return how many small units have passed in each time since the large one began.

    Units are numpy's, such as "D" for days since "M", the month.
    """
    began = t.astype(f"M8[{large}]").astype(f"M8[{small}]")
    return np.asarray(t.astype(f"M8[{small}]") - began).astype(np.int64)


def _count_below(t: _Array, unit: str, large: str) -> _Array:
    """Return how many units below a second have passed since the last whole larger unit.

    An example is ``unit`` "us" and ``large`` "s": the microseconds of the second.
    """
    nanoseconds = np.mod(t.view(np.int64), _per_second(t)) * (_SECOND // _per_second(t))
    return np.asarray(nanoseconds % (_SECOND // PER_SECOND[large]) // (_SECOND // PER_SECOND[unit]))


def _year(t: _Array) -> _Array:
    return t.astype("M8[Y]").astype(np.int64) + 1970


def _month(t: _Array) -> _Array:
    return _count_since(t, "M", "Y")  # from 0


def _weekday(t: _Array) -> _Array:
    return np.asarray((t.astype("M8[D]").astype(np.int64) + 3) % 7)  # 1970 began on a Thursday


def _thursday(t: _Array) -> _Array:
    """Return the Thursday of the week that each time is in.

    Its year is the year of the week.
    """
    return np.asarray(t.astype("M8[D]") + (3 - _weekday(t)).astype("m8[D]"))


def _is_first_day(t: _Array, large: str) -> _Array:
    return np.asarray(t.astype("M8[D]") == t.astype(f"M8[{large}]").astype("M8[D]"))


def _is_last_day(t: _Array, large: str) -> _Array:
    """Return whether the day of each time is the last one of its month or year.

    ``large`` is "M" for the month, or "Y" for the year.
    """
    days = t.astype("M8[D]")
    following = days + np.timedelta64(1, "D")
    return np.asarray(following.astype(f"M8[{large}]") != days.astype(f"M8[{large}]"))


def _is_leap_year(t: _Array) -> _Array:
    following = (t.astype("M8[Y]") + np.timedelta64(1, "Y")).astype("M8[D]")
    return _count_since(following - np.timedelta64(1, "D"), "D", "Y") == 365


def _days_in_month(t: _Array) -> _Array:
    months = t.astype("M8[M]")
    following = (months + np.timedelta64(1, "M")).astype("M8[D]")
    return np.asarray(following - months.astype("M8[D]")).astype(np.int64)


def _midnight(t: _Array) -> _Array:
    return t.astype("M8[D]").astype(t.dtype)


_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?", re.ASCII)


def _read_moment(x: str, format: str | None) -> datetime | None:
    """Return the time that a text stands for; None if it stands for none.

    Without a ``format`` the text is an ISO date.
    """
    try:
        if len(x) > _MAX_DATE or (format is None and not _ISO_DATE.fullmatch(x)):
            return None
        return datetime.fromisoformat(x) if format is None else datetime.strptime(x, format)
    except (ValueError, OverflowError, re.error):
        return None


# ---- bounds and keys -----------------------------------------------------------------------------

_Bounds = Callable[[Call, Lookup], Interval]
_Members = Callable[[Call, KeysOf, Lookup], tuple[Any, ...] | None]


def _lie_between(low: float, high: float) -> _Bounds:
    return lambda e, lookup: (float(low), float(high))


def _list_always(values: Values) -> _Members:
    """Return all values there can be of any column, in the order of the calendar."""
    return lambda e, keys, ends: values


def _list_never(e: Call, keys: KeysOf, ends: Lookup) -> None:
    """List no values: such a part is mostly meant as a number."""


def _list_of_days(make: Callable[[pd.DatetimeIndex], list[Any]]) -> _Members:
    """Return a function that lists the values a part of a time can have between declared ends.

    ``make`` returns these values for the days between the ends.
    """

    def members(e: Call, keys: KeysOf, ends: Lookup) -> Values | None:
        """Return the values of all days between the time's declared ends; None if not known.

        ``e`` is the call with the time, and ``ends`` returns the declared ends of a column.
        """
        known = e.operands[0].interval(ends)
        days = None if known is None else list_days(known, e.operands[0].tz)
        return None if days is None else tuple(make(days))

    return members


def _sort_distinct(values: Any) -> list[Any]:
    return sorted(set(values.tolist()))


def _bound_years(near: int) -> _Bounds:
    """Return a function that computes bounds of the year of a time.

    ``near`` is added at both ends: a year of weeks begins up to three days before or after its own.
    """

    def interval(e: Call, lookup: Lookup) -> Interval:
        """Return the years between which a time lies; None if it has no bounds.

        ``e`` is the call with the time, and ``lookup`` returns the bounds of a column.
        """
        ends = e.operands[0].interval(lookup)
        years = None if ends is None else find_years(ends, e.operands[0].tz)
        return None if years is None else (float(years[0] - near), float(years[1] + near))

    return interval


def _list_years(e: Call, keys: KeysOf, ends: Lookup) -> Values | None:
    """Return all years between the declared ends of a time; None if these are not known.

    ``e`` is the call of a part of the time, and ``ends`` returns the declared ends of a column.
    """
    known = e.operands[0].interval(ends)
    years = None if known is None else find_years(known, e.operands[0].tz)
    return None if years is None else tuple(range(years[0], years[1] + 1))


def _bound_midnights(e: Call, lookup: Lookup) -> Interval:
    """Return bounds of the midnights that begin the days of a time; None if it has no bounds."""
    return _move_ends(e.operands[0].interval(lookup))


def _bound_dates(e: Call, lookup: Lookup) -> Interval:
    """Return bounds of the dates of a time, in wall time; None if it has no bounds."""
    ends = e.operands[0].interval(lookup)
    return None if ends is None else _move_ends(local_ends(ends, e.operands[0].tz))


def _move_ends(ends: Interval) -> Interval:
    return None if ends is None else (ends[0] - 2 * DAY, ends[1])


def _list_midnights(e: Call, keys: KeysOf, ends: Lookup) -> Values | None:
    """Return the midnights of all days between the declared ends of a time; None if not known.

    ``e`` is the call with the time, and ``ends`` returns the declared ends of a column.
    """
    known = e.operands[0].interval(ends)
    return None if known is None else list_days_in_zone(known, e.operands[0].tz)


def _of_duration(travel: Callable[[tuple[float, float]], Interval]) -> _Bounds:
    """Return a function that computes bounds of a number from those of a duration.

    ``travel`` takes the bounds in nanoseconds and returns those of the number.
    """

    def interval(e: Call, lookup: Lookup) -> Interval:
        """Return bounds of the number; None if the duration has no bounds.

        ``e`` is the call with the duration, and ``lookup`` returns the bounds of a column.
        """
        ends = e.operands[0].interval(lookup)
        return None if ends is None else travel(ends)

    return interval


def _bound_steps(e: Call, lookup: Lookup) -> Interval:
    """Return bounds of a time or duration that is rounded to whole steps; None if not known.

    They are one step further on each side. ``e`` is the call of the rounding, and ``lookup``
    returns the bounds of a column.
    """
    ends = e.operands[0].interval(lookup)
    if ends is None:
        return None
    # Wall time may be off by a day, and the places of steps with it.
    off = e.args[0] if e.tz is None else 2 * DAY
    return (ends[0] - off, ends[1] + off)


def _list_steps(e: Call, keys: KeysOf, ends: Lookup) -> Values | None:
    """Return the midnights between declared ends, of a time that is rounded down to its day.

    Other steps have too many values, which is None. ``e`` is the call with the time, and ``ends``
    returns the declared ends of a column.
    """
    daily = e.op == "dt.floor" and e.args[0] == DAY and e.kind == "time"
    return _list_midnights(e, keys, ends) if daily else None


def _bound_local(e: Call, lookup: Lookup) -> Interval:
    """Return bounds of a wall time that is put into a zone, or taken out of one.

    They are None if the time has no bounds. ``e`` is the call with the time and the zone, and
    ``lookup`` returns the bounds of a column.
    """
    x, (zone,) = e.operands[0], e.args
    ends = x.interval(lookup)
    if ends is None:
        return None
    if zone is None:
        return local_ends(ends, x.tz)
    return (ends[0] - DAY, ends[1] + DAY)  # no zone is further from UTC


def _list_periods(e: Call, keys: KeysOf, ends: Lookup) -> Values | None:
    """Return the periods of the calendar, such as months, between the declared ends of a time.

    ``e`` is the call with the time, and ``ends`` returns the declared ends of a column. The result
    is None if they are not known, or if there are too many periods.
    """
    x, (freq,) = e.operands[0], e.args
    known = x.interval(ends)
    local = None if known is None else local_ends(known, x.tz)
    if local is None:
        return None
    try:
        first, last = (pd.Timestamp(int(end)).to_period(freq) for end in local)
        if last.ordinal - first.ordinal >= _MAX_PERIODS:
            return None
        return tuple(pd.period_range(first, last, freq=freq))
    except (ValueError, OverflowError):
        return None


# Parts of a format that look at the day alone, and at the time of day.
_DAILY, _FINE = frozenset("YymdBbAajUWuwVG%"), frozenset("HIMSfp")


def is_daily(date_format: str) -> bool:
    """Return whether a format of dates shows the day alone, and nothing of the time of day."""
    return not set(re.findall("%(.)", date_format, re.DOTALL)) & _FINE


def _list_texts_of_days(e: Call, keys: KeysOf, ends: Lookup) -> Values | None:
    """Return the texts of the days between the declared ends of a time, by its format.

    ``e`` is the call with the time, and ``ends`` returns the declared ends of a column. The result
    is None if the format shows the time of day, or if there are too many days.
    """
    x, (date_format,) = e.operands[0], e.args
    known = x.interval(ends)
    days = None if known is None or not is_daily(date_format) else list_days(known, x.tz)
    if days is None:
        return None
    return tuple(sorted({day.strftime(date_format) for day in days.to_pydatetime()}))


# ---- builders, with pandas' signatures -----------------------------------------------------------


def _build_name(name: str) -> Callable[..., Expr]:
    """Return a function that builds the expression of the name of a day or a month.

    ``name`` is the catalogue's name of it, such as "dt.day_name".
    """

    def build(x: Expr, locale: str | None = None) -> Expr:
        """Return the English name of the day or month of a time; refuse other languages."""
        if locale is not None:
            raise BadType(f".{name} has English names here.")
        return call(name, x)

    return build


def _build_step(name: str) -> Callable[..., Expr]:
    """Return a function that builds a floor, a ceiling or a rounding of times to whole steps.

    ``name`` is the catalogue's name of it, such as "dt.floor".
    """

    def build(x: Expr, freq: object, ambiguous: str = "raise", nonexistent: str = "raise") -> Expr:
        """Return the time rounded to steps of a length such as "15min".

        Where clocks change, only pandas' default arguments are allowed.
        """
        if not (among(ambiguous, ("raise",)) and among(nonexistent, ("raise",))):
            raise BadType(
                f".{name} has no ambiguous= and nonexistent= here: the next moment there is, or "
                "the first."
            )
        return call(name, x, args=(_count_nanoseconds(freq, name), str(freq)))

    return build


def _count_nanoseconds(freq: Any, name: str) -> int:
    """Return the length of a step such as "15min" in nanoseconds; refuse one of no fixed length.

    ``name`` is the name of the function, for the message.
    """
    try:
        step: Any = pd.tseries.frequencies.to_offset(freq)
        days = isinstance(step, pd.offsets.Day)
        step = pd.Timedelta(1, "D") * step.n if days else pd.Timedelta(step)
        ticks = int(step.as_unit("ns").value)
    except (ValueError, TypeError, AttributeError, OverflowError):
        ticks = 0
    if ticks <= 0:
        raise BadValue(
            f".{name} takes a step of a fixed length, such as 'D', 'h' or '15min', not {freq!r}. "
            "Months have "
            ".dt.to_period('M')."
        )
    return ticks


_PERIODS = {"Y": "Y", "A": "Y", "Q": "Q", "M": "M", "W": "W", "D": "D", "h": "h", "H": "h"}


def _to_period(x: Expr, freq: str | None = None) -> Expr:
    """Return the period of the calendar that a time is in, such as its month for ``freq`` "M"."""
    if x.kind == "time" and (not isinstance(freq, str) or freq not in _PERIODS):
        raise BadValue(f".dt.to_period takes 'Y', 'Q', 'M', 'W', 'D' or 'h', not {freq!r}.")
    return call("dt.to_period", x, args=(_PERIODS.get(str(freq), "D"),))


def _strftime(x: Expr, date_format: str) -> Expr:
    """Return a time as a text by a format such as "%Y-%m"; refuse a format that is not offered."""
    if x.kind == "time":
        _check_format(date_format, "strftime")
    return call("dt.strftime", x, args=(str(date_format),))


def _check_format(given: object, what: str) -> None:
    """Refuse a format of dates with parts that are not offered.

    ``given`` is the format, and ``what`` the name of the function for the message.
    """
    if not isinstance(given, str) or len(given) > 100 or not given.isascii() or "\0" in given:
        raise BadType(f"{what} takes a format of at most 100 characters, such as '%Y-%m-%d'.")
    offered = _DAILY | _FINE
    unknown = [part for part in re.findall("%(.?)", given, re.DOTALL) if part not in offered]
    if unknown:
        raise BadValue(
            f"{what} does not offer %{unknown[0]} here. Its parts are "
            f"{' '.join('%' + p for p in sorted(offered))}."
        )


def read_moment(x: Expr, format: object = None) -> Expr:
    """Return the expression of the time that a text stands for, as ``to_datetime``.

    Without a ``format`` the text is an ISO date. A time stays what it is.
    """
    if x.kind == "time":
        return x
    if isinstance(format, Constant):
        format = format.value
    if format is None or among(format, ("ISO8601",)) or x.kind not in TEXTS:
        return call("to_datetime", x, args=(None,))
    _check_format(format, "to_datetime")
    return call("to_datetime", x, args=(str(format),))


CASTERS["time"] = read_moment


def _tz_convert(x: Expr, tz: object) -> Expr:
    """Return the same moment in another time zone; without one, the wall time in UTC."""
    zone = None if tz is None or x.kind != "time" else _zone_name(tz)
    if x.kind == "time" and x.tz is None:
        raise BadType(f"{describe(x)} has no time zone: .dt.tz_localize(zone) gives it one.")
    moved = call("dt.tz_convert", x, args=(zone or "UTC",))
    return call("dt.tz_localize", moved, args=(None,)) if zone is None else moved


def _tz_localize(x: Expr, tz: object, ambiguous: str = "raise", nonexistent: str = "raise") -> Expr:
    """Return the same wall time in a time zone, or without one.

    Wall times that do not exist, or exist twice, become null.
    """
    if not (among(ambiguous, ("raise", "NaT")) and among(nonexistent, ("raise", "NaT"))):
        raise BadType(
            ".dt.tz_localize makes null of wall times that are none, or two: ambiguous='NaT', "
            "nonexistent='NaT'."
        )
    zone = None if tz is None or x.kind != "time" else _zone_name(tz)
    if zone is not None and x.tz is not None:
        raise BadType(f"{describe(x)} has the zone {x.tz}: .dt.tz_convert(zone) changes it.")
    if x.kind == "time" and x.tz is None and zone is None:
        return x
    return call("dt.tz_localize", x, args=(zone,))


def _zone_name(zone: object) -> str:
    """Return the name of a time zone; refuse it if no moment can be put into it."""
    try:
        name = str(zone)
        pd.DatetimeIndex(np.zeros(1, "M8[s]")).tz_localize(name, ambiguous="NaT", nonexistent="NaT")
    except Exception:  # of a zone's own code
        raise BadValue(f"{zone!r} is no time zone. Write 'UTC' or 'Europe/Berlin'.") from None
    return name


def same_moment(x: Expr) -> Expr:
    """Return an expression of a time without the conversions to other zones around it.

    Such conversions leave every moment what it was.
    """
    while isinstance(x, Call) and x.op == "dt.tz_convert":
        x = x.operands[0]
    return x


def _as_unit(x: Expr, unit: str, round_ok: bool = True) -> Expr:
    """Return the time itself, after a check of the unit.

    A moment is the same in every unit, so nothing is rounded.
    """
    flag(round_ok, "round_ok")
    if not among(unit, tuple(PER_SECOND)):
        raise BadValue(f".dt.as_unit has the units {', '.join(PER_SECOND)}, not {unit!r}.")
    return x


# ---- entries -------------------------------------------------------------------------------------


def _is_null_with_time(e: Call) -> bool:
    return e.operands[0].nullable and e.kind != "bool"  # no time is the start of nothing


def _keep_zone(e: Call) -> str | None:
    return e.operands[0].tz


part_op: Callable[..., Op] = partial(
    Op, of=("time",), nulls=_is_null_with_time, identity=("date_part", "x", "name"), attribute=True
)
duration_op: Callable[..., Op] = partial(
    Op,
    kind="number",
    of=("duration",),
    nulls=_is_null_with_time,
    identity=("duration_part", "x", "name"),
)
_WHEN, _ZONED = pd.Timestamp("2024-02-29 13:45:06.789"), pd.Timestamp("2024-01-31 23:30", tz="UTC")
_LONG = pd.Timedelta("2 days 03:04:05.000006")

register(
    *[
        part_op(
            name=f"dt.{name}",
            kind="number",
            value=value,
            interval=interval,
            members=members,
            doc=f"Return {what}.",
            examples=[(_WHEN, float(example)), (None, None)],
        )
        for name, what, value, interval, members, example in [
            ("year", "the year", _year, _bound_years(0), _list_years, 2024),
            (
                "quarter",
                "the quarter, from 1 to 4",
                lambda t: _month(t) // 3 + 1,
                _lie_between(1, 4),
                _list_always(tuple(range(1, 5))),
                1,
            ),
            (
                "month",
                "the month, from 1 to 12",
                lambda t: _month(t) + 1,
                _lie_between(1, 12),
                _list_always(tuple(range(1, 13))),
                2,
            ),
            (
                "day",
                "the day of the month",
                lambda t: _count_since(t, "D", "M") + 1,
                _lie_between(1, 31),
                _list_always(tuple(range(1, 32))),
                29,
            ),
            (
                "dayofyear",
                "the day of the year",
                lambda t: _count_since(t, "D", "Y") + 1,
                _lie_between(1, 366),
                _list_of_days(lambda days: _sort_distinct(days.day_of_year)),
                60,
            ),
            (
                "dayofweek",
                "the day of the week: Monday is 0",
                _weekday,
                _lie_between(0, 6),
                _list_always(tuple(range(7))),
                3,
            ),
            (
                "hour",
                "the hour",
                lambda t: _count_since(t, "h", "D"),
                _lie_between(0, 23),
                _list_always(tuple(range(24))),
                13,
            ),
            (
                "minute",
                "the minute",
                lambda t: _count_since(t, "m", "h"),
                _lie_between(0, 59),
                _list_never,
                45,
            ),
            (
                "second",
                "the second",
                lambda t: _count_since(t, "s", "m"),
                _lie_between(0, 59),
                _list_never,
                6,
            ),
            (
                "microsecond",
                "the microsecond of the second",
                lambda t: _count_below(t, "us", "s"),
                _lie_between(0, 999_999),
                _list_never,
                789_000,
            ),
            (
                "nanosecond",
                "the nanosecond of the microsecond",
                lambda t: _count_below(t, "ns", "us"),
                _lie_between(0, 999),
                _list_never,
                0,
            ),
            (
                "days_in_month",
                "the number of days of the month",
                _days_in_month,
                _lie_between(28, 31),
                _list_of_days(lambda days: _sort_distinct(days.days_in_month)),
                29,
            ),
        ]
    ]
)
register(
    *[
        part_op(
            name=f"dt.{name}",
            kind="bool",
            value=value,
            doc=f"Return whether {what}.",
            examples=[(_WHEN, example), (None, False)],
        )
        for name, what, value, example in [
            (
                "is_month_start",
                "it is the first day of a month",
                lambda t: _is_first_day(t, "M"),
                False,
            ),
            ("is_month_end", "it is the last day of a month", lambda t: _is_last_day(t, "M"), True),
            (
                "is_quarter_start",
                "it is the first day of a quarter",
                lambda t: _is_first_day(t, "M") & (_month(t) % 3 == 0),
                False,
            ),
            (
                "is_quarter_end",
                "it is the last day of a quarter",
                lambda t: _is_last_day(t, "M") & (_month(t) % 3 == 2),
                False,
            ),
            (
                "is_year_start",
                "it is the first day of a year",
                lambda t: _is_first_day(t, "Y"),
                False,
            ),
            ("is_year_end", "it is the last day of a year", lambda t: _is_last_day(t, "Y"), False),
            ("is_leap_year", "the year has 366 days", _is_leap_year, True),
        ]
    ]
)
# Parts of the calendar of weeks, which pandas has as columns of `isocalendar`.
register(
    *[
        part_op(
            name=f"isocalendar.{name}",
            kind="number",
            value=value,
            interval=interval,
            members=members,
            identity=("date_part", "x", f"=iso_{name}"),
            text=lambda e: f"{e.operands[0]}.dt.iso_{OPS[e.op].label}",
            doc=f"Return the {name} of the calendar of weeks.",
            examples=[(_WHEN, float(example)), (None, None)],
        )
        for name, value, interval, members, example in [
            (
                "year",
                lambda t: _year(_thursday(t)),
                _bound_years(1),
                _list_of_days(lambda days: _sort_distinct(days.isocalendar().year)),
                2024,
            ),
            (
                "week",
                lambda t: _count_since(_thursday(t), "D", "Y") // 7 + 1,
                _lie_between(1, 53),
                _list_of_days(lambda days: _sort_distinct(days.isocalendar().week)),
                9,
            ),
            ("day", lambda t: _weekday(t) + 1, _lie_between(1, 7), _list_never, 4),
        ]
    ]
)
register(
    part_op(
        name="dt.date",
        kind="time",
        value=_midnight,
        interval=_bound_dates,
        members=_list_of_days(lambda days: list(days.date)),
        doc="Return the day, without a zone.",
        examples=[(_WHEN, pd.Timestamp("2024-02-29"))],
    ),
    part_op(
        name="dt.normalize",
        kind="time",
        value=_midnight,
        interval=_bound_midnights,
        members=_list_midnights,
        tz=_keep_zone,
        attribute=False,
        doc="Return the midnight that the day began with.",
        examples=[(_WHEN, pd.Timestamp("2024-02-29"))],
    ),
    # The value of a text is its place among the names.
    part_op(
        name="dt.day_name",
        kind="text",
        value=_weekday,
        members=_list_always(DAY_NAMES),
        build=_build_name("dt.day_name"),
        attribute=False,
        doc="Return the English name of the day of the week.",
        examples=[(_WHEN, "Thursday"), (None, None)],
    ),
    part_op(
        name="dt.month_name",
        kind="text",
        value=_month,
        members=_list_always(MONTH_NAMES),
        build=_build_name("dt.month_name"),
        attribute=False,
        doc="Return the English name of the month.",
        examples=[(_WHEN, "February"), (None, None)],
    ),
)


def _second_name(name: str, of: str) -> Op:
    """Return an entry of the catalogue under a second name, which is built as a call of the
    first."""
    return replace(OPS[of], name=name, value=None, build=lambda x: call(of, x))


register(
    _second_name("dt.weekday", "dt.dayofweek"),
    _second_name("dt.day_of_week", "dt.dayofweek"),
    _second_name("dt.day_of_year", "dt.dayofyear"),
    _second_name("dt.daysinmonth", "dt.days_in_month"),
)
register(
    duration_op(
        name="dt.days",
        value=lambda t: t.view(np.int64) // (86_400 * _per_second(t)),
        attribute=True,
        interval=_of_duration(lambda ends: (float(ends[0] // DAY), float(ends[1] // DAY))),
        doc="Return the number of whole days, rounded down.",
        examples=[(_LONG, 2.0), (-_LONG, -3.0), (None, None)],
    ),
    duration_op(
        name="dt.seconds",
        value=lambda t: t.view(np.int64) // _per_second(t) % 86_400,
        attribute=True,
        interval=_lie_between(0, 86_399),
        doc="Return the whole seconds beside the days.",
        examples=[(_LONG, 11_045.0), (None, None)],
    ),
    duration_op(
        name="dt.microseconds",
        value=lambda t: _count_below(t, "us", "s"),
        interval=_lie_between(0, 999_999),
        attribute=True,
        doc="Return the whole microseconds beside the seconds.",
        examples=[(_LONG, 6.0), (None, None)],
    ),
    duration_op(
        name="dt.nanoseconds",
        value=lambda t: _count_below(t, "ns", "us"),
        interval=_lie_between(0, 999),
        attribute=True,
        doc="Return the nanoseconds beside the microseconds.",
        examples=[(_LONG, 0.0), (None, None)],
    ),
    duration_op(
        name="dt.total_seconds",
        value=lambda t: t.view(np.int64) / _per_second(t),
        whole=lambda e: False,
        interval=_of_duration(
            lambda ends: outward(Fraction(ends[0]) / _SECOND, Fraction(ends[1]) / _SECOND, ulps=2)
        ),
        doc="Return the duration in seconds.",
        examples=[(pd.Timedelta("90s"), 90.0), (None, None)],
    ),
)
register(
    *[
        Op(
            name=f"dt.{name}",
            kind=None,
            value=None,
            of=("time", "duration"),
            args=(Arg("step", (int,)), Arg("freq", (str,))),
            identity=("snap", "x", "name", "step", "freq"),
            build=_build_step(f"dt.{name}"),
            whole=lambda e: False,
            tz=_keep_zone,
            interval=_bound_steps,
            members=_list_steps,
            text=lambda e: f"{e.operands[0]}.{e.op}({e.args[1]!r})",
            doc=f"Return the time or duration, {how} a whole step.",
            examples=[(_WHEN, "h", pd.Timestamp(example))],
        )
        for name, how, example in [
            ("floor", "moved down to", "2024-02-29 13:00"),
            ("ceil", "moved up to", "2024-02-29 14:00"),
            ("round", "rounded to", "2024-02-29 14:00"),
        ]
    ]
)
register(
    Op(
        name="dt.tz_convert",
        kind="time",
        value=None,
        of=("time",),
        args=(Arg("zone", (str,)),),
        identity=("zoned", "x", "=convert", "zone"),
        build=_tz_convert,
        whole=lambda e: False,
        tz=lambda e: str(e.args[0]),
        interval=lambda e, lookup: e.operands[0].interval(lookup),
        doc="Return the same moment in another time zone.",
        examples=[(_ZONED, "Asia/Tokyo", _ZONED)],
    ),
    Op(
        name="dt.tz_localize",
        kind="time",
        value=None,
        of=("time",),
        args=(Arg("zone", (str, type(None))),),
        identity=("zoned", "x", "=localize", "zone"),
        build=_tz_localize,
        whole=lambda e: False,
        tz=lambda e: e.args[0],
        interval=_bound_local,
        doc="Return the same wall time in a time zone, or without one; null if it is not one time.",
        examples=[
            (_WHEN, "UTC", _WHEN.tz_localize("UTC")),
            (_ZONED, None, _ZONED.tz_localize(None)),
        ],
    ),
    Op(
        name="dt.to_period",
        kind="label",
        value=None,
        of=("time",),
        args=(Arg("freq", (str,)),),
        identity=("period", "x", "freq"),
        build=_to_period,
        members=_list_periods,
        doc="Return the year, quarter, month, week, day or hour of a time.",
        examples=[(_WHEN, "M", pd.Period("2024-02", "M"))],
    ),
    Op(
        name="dt.strftime",
        kind="text",
        value=None,
        of=("time",),
        args=(Arg("date_format", (str,)),),
        identity=("formatted", "x", "date_format"),
        build=_strftime,
        members=_list_texts_of_days,
        doc="Return a text by a format; null for years before 1000 or after 9999.",
        examples=[(_WHEN, "%Y-%m", "2024-02")],
    ),
    part_op(
        name="dt.as_unit",
        kind="time",
        value=None,
        build=_as_unit,
        attribute=False,
        doc="Return the same moment: the unit that it is kept in changes nothing here.",
        examples=[(_WHEN, "ms", _WHEN)],
    ),
    Op(
        name="to_datetime",
        kind="time",
        value=_read_moment,
        of=TEXTS,
        args=(Arg("format", (str, type(None)), None),),
        identity=("moment", "x", "format"),
        build=read_moment,
        text=lambda e: (
            f"to_datetime({e.operands[0]}{'' if e.args[0] is None else f', format={e.args[0]!r}'})"
        ),
        doc="Return the time that a text stands for, by a format or as an ISO date; null if none.",
        examples=[
            ("2024-02-29", pd.Timestamp("2024-02-29")),
            ("2024", "%Y", pd.Timestamp("2024-01-01")),
            ("x", None),
        ],
    ),
)


def time_part(x: Expr, label: str, *args: object, **words: object) -> Expr:
    """Return the expression of ``x.dt.label``, or of ``x.dt.label(...)``.

    Names and arguments are those of pandas, and ``x`` is a time or a duration.
    """
    if x.kind not in ("time", "duration"):
        raise BadType(f".dt needs timestamps, and {describe(x)} is not one.")
    op = OPS.get(f"dt.{label}")
    if op is None or (op.attribute and op.of == ("duration",) and x.kind == "time"):
        offered = ", ".join(sorted(list_ops("dt", x.kind)))
        raise BadValue(f".dt.{label} is not offered. Use one of {offered}.")
    return call_function(op.name, x, *args, **words)


def week_part(x: Expr, label: str) -> Expr:
    """Return the expression of ``x.dt.isocalendar().label``: the year, week or day.

    A week begins on a Monday, and belongs to the year that has its Thursday.
    """
    name = f"isocalendar.{label}"
    if x.kind != "time":
        raise BadType(f".dt needs timestamps, and {describe(x)} is not one.")
    if name not in OPS:
        raise BadValue(f"isocalendar() has {', '.join(list_ops('isocalendar'))}, and no {label!r}.")
    return call_function(name, x)
