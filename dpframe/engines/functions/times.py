"""Dates on numpy, by their ticks."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpframe import _expr as ex
from dpframe._cells.codec import TICKS, unit_of
from dpframe._cells.columns import LAST, NAT, Array, Vector, look_up, narrow, objects
from dpframe._expr._parts import VALUES
from dpframe.engines.functions.choices import scaled

if TYPE_CHECKING:
    from dpframe.engines.expressions import Block

_DAYS, _MONTHS = VALUES["day_name"], VALUES["month_name"]


def date_part(b: Block, e: ex.DatePart) -> Vector:
    moments = b.vector(e.x).values
    null = np.isnat(moments)
    local = _local(moments, e.x.tz)
    if e.part in ("normalize", "date"):
        midnight = local.astype("M8[D]").astype(local.dtype)
        return Vector("time", midnight if e.part == "date" else _from_local(midnight, e.x.tz))
    if e.kind == "bool":
        return Vector("bool", _TRUTHS[e.part](local) & ~null)
    if e.part in ("day_name", "month_name"):
        names, part = (_DAYS, "dayofweek") if e.part == "day_name" else (_MONTHS, "month")
        codes = _FIELDS[part](local) - (part == "month")
        categories = b.per_category(e, lambda: objects(names))
        return Vector("text", np.where(null, -1, codes).astype(np.int8), None, categories)
    return Vector("number", np.where(null, 0, _FIELDS[e.part](local)), null)


# Zones have offsets for the years 1 to 9999 only, and pandas raises beyond: those days count as the
# last one.
_YEAR_1, _YEAR_9999 = -62_135_596_800, 253_402_300_799
_MARGIN = 2 * 86_400


def _local(moments: Array, zone: str | None) -> Array:
    """Wall time, moved inside the range in which no conversion can fail."""
    per_second = TICKS[unit_of(moments)]
    low, high = NAT + _MARGIN * per_second, LAST - _MARGIN * per_second
    if zone is not None:
        low = max(low, (_YEAR_1 + _MARGIN) * per_second)
        high = min(high, (_YEAR_9999 - _MARGIN) * per_second)
    ticks = moments.view(np.int64)
    inside = np.where(ticks == NAT, NAT, np.clip(ticks, low, high)).view(moments.dtype)
    if zone is None:
        return np.asarray(inside)
    index: Any = pd.DatetimeIndex(inside).tz_localize("UTC").tz_convert(zone)
    return np.asarray(index.tz_localize(None))


def _from_local(wall: Array, zone: str | None, missing: bool = False) -> Array:
    """Moments from wall time; where it is none, or two, they are the next and the first, or
    `missing`."""
    if zone is None:
        return wall
    if missing:
        gone: Any = pd.DatetimeIndex(wall).tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
        return np.asarray(gone.tz_convert(None))
    # A midnight that does not exist, or exists twice, must not raise: the next moment; the first.
    first = np.ones(len(wall), dtype=bool)
    index: Any = pd.DatetimeIndex(wall).tz_localize(
        zone, ambiguous=first, nonexistent="shift_forward"
    )
    return np.asarray(index.tz_convert(None))


def _since(t: Array, small: str, large: str) -> Array:
    """How many `small` units have passed since the `large` one began."""
    began = t.astype(f"M8[{large}]").astype(f"M8[{small}]")
    return np.asarray(t.astype(f"M8[{small}]") - began).astype(np.int64)


def _below(t: Array, unit: str, per: str) -> Array:
    """How many `unit`s of a second have passed since the last whole `per`."""
    ticks = TICKS["ns"] // TICKS[unit_of(t)]
    nanoseconds = np.mod(t.view(np.int64), TICKS[unit_of(t)]) * ticks
    return np.asarray(nanoseconds % (TICKS["ns"] // TICKS[per]) // (TICKS["ns"] // TICKS[unit]))


def _weekday(t: Array) -> Array:
    return np.asarray((t.astype("M8[D]").astype(np.int64) + 3) % 7)  # 1970 began on a Thursday


def _thursday(t: Array) -> Array:
    """The Thursday of the week, whose year is that of the week."""
    return np.asarray(t.astype("M8[D]") + (3 - _weekday(t)).astype("m8[D]"))


def _last_day(t: Array, large: str) -> Array:
    """Whether the day is the last one of its month or year."""
    days = t.astype("M8[D]")
    return np.asarray(
        (days + np.timedelta64(1, "D")).astype(f"M8[{large}]") != days.astype(f"M8[{large}]")
    )


def _first_day(t: Array, large: str) -> Array:
    return np.asarray(t.astype("M8[D]") == t.astype(f"M8[{large}]").astype("M8[D]"))


def _months(t: Array) -> Array:
    return _since(t, "M", "Y")


_TRUTHS: dict[str, Callable[[Array], Array]] = {
    "is_month_start": lambda t: _first_day(t, "M"),
    "is_month_end": lambda t: _last_day(t, "M"),
    "is_quarter_start": lambda t: _first_day(t, "M") & (_months(t) % 3 == 0),
    "is_quarter_end": lambda t: _last_day(t, "M") & (_months(t) % 3 == 2),
    "is_year_start": lambda t: _first_day(t, "Y"),
    "is_year_end": lambda t: _last_day(t, "Y"),
    "is_leap_year": lambda t: _since(_last_of_year(t), "D", "Y") == 365,
}


def _last_of_year(t: Array) -> Array:
    return np.asarray(
        (t.astype("M8[Y]") + np.timedelta64(1, "Y")).astype("M8[D]") - np.timedelta64(1, "D")
    )


def _days_in_month(t: Array) -> Array:
    months = t.astype("M8[M]")
    return np.asarray(
        (months + np.timedelta64(1, "M")).astype("M8[D]") - months.astype("M8[D]")
    ).astype(np.int64)


_FIELDS: dict[str, Callable[[Array], Array]] = {
    "year": lambda t: t.astype("M8[Y]").astype(np.int64) + 1970,
    "quarter": lambda t: _since(t, "M", "Y") // 3 + 1,
    "month": lambda t: _since(t, "M", "Y") + 1,
    "day": lambda t: _since(t, "D", "M") + 1,
    "dayofyear": lambda t: _since(t, "D", "Y") + 1,
    "dayofweek": _weekday,
    "days_in_month": _days_in_month,
    "iso_year": lambda t: _thursday(t).astype("M8[Y]").astype(np.int64) + 1970,
    "iso_week": lambda t: _since(_thursday(t), "D", "Y") // 7 + 1,
    "iso_day": lambda t: _weekday(t) + 1,
    "microsecond": lambda t: _below(t, "us", "s"),
    "nanosecond": lambda t: _below(t, "ns", "us"),
    "hour": lambda t: _since(t, "h", "D"),
    "minute": lambda t: _since(t, "m", "h"),
    "second": lambda t: _since(t, "s", "m"),
}


# ---- durations, and times by them -------------------------------------------------------------------------


def _alike(x: Vector, y: Vector) -> tuple[Array, Array, str]:
    """The ticks of both in the finer of their resolutions; null where one has no place there."""
    units = [unit_of(v.values) for v in (x, y)]
    unit = max(units, key=lambda u: TICKS[u])
    a, b = (
        scaled(v.values.view(np.int64), TICKS[unit] // TICKS[u])
        for v, u in zip((x, y), units, strict=True)
    )
    return a, b, unit


def elapsed(b: Block, e: ex.Elapsed) -> Vector:
    """Sums and differences of 64-bit ticks; null where they wrap."""
    x, y, unit = _alike(b.vector(e.left), b.vector(e.right))
    if e.op == "+":
        found = x + y
        wrapped = ((x ^ found) & (y ^ found)) < 0
    else:
        found = x - y
        wrapped = ((x ^ y) & (x ^ found)) < 0
    ticks = np.where(wrapped | (x == NAT) | (y == NAT), NAT, found)
    return Vector(e.kind, ticks.view(f"{'M' if e.kind == 'time' else 'm'}8[{unit}]"))


def ratio(b: Block, e: ex.Ratio) -> Vector:
    """Quotients of ticks as doubles; of whole ones their floor."""
    x, y, _ = _alike(b.vector(e.left), b.vector(e.right))
    null = (x == NAT) | (y == NAT)
    if e.op == "/":
        return Vector("number", np.where(null, np.nan, x.astype(np.float64) / y.astype(np.float64)))
    null |= y == 0
    whole = np.floor_divide(x, np.where(y == 0, 1, y)).astype(np.float64)
    return Vector("number", np.where(null, np.nan, whole))


def duration_part(b: Block, e: ex.DurationPart) -> Vector:
    """Parts of ticks, as whole numbers; all of them in seconds, as a double."""
    values = b.vector(e.x).values
    ticks, per_second, null = values.view(np.int64), TICKS[unit_of(values)], np.isnat(values)
    if e.part == "total_seconds":
        return Vector("number", np.where(null, np.nan, ticks / per_second))
    ticks = np.where(null, 0, ticks)
    return Vector("number", _OF_DURATIONS[e.part](ticks.view(values.dtype)), null)


_OF_DURATIONS: dict[str, Callable[[Array], Array]] = {
    "days": lambda t: t.view(np.int64) // (86_400 * TICKS[unit_of(t)]),
    "seconds": lambda t: t.view(np.int64) // TICKS[unit_of(t)] % 86_400,
    "microseconds": lambda t: _below(t, "us", "s"),
    "nanoseconds": lambda t: _below(t, "ns", "us"),
}


def snap(b: Block, e: ex.Snap) -> Vector:
    """Whole steps of ticks; where a step is finer than a tick, ticks stay. Halves go to even steps,
    as in pandas."""
    v = b.vector(e.x)
    local = _local(v.values, e.x.tz) if v.kind == "time" else v.values
    per_tick = TICKS["ns"] // TICKS[unit_of(local)]
    ticks, null = local.view(np.int64), np.isnat(v.values)
    if e.step <= per_tick:
        found, wrapped = ticks, np.zeros(len(ticks), dtype=bool)
    else:
        if e.step % per_tick:  # in nanoseconds, where no step is a whole number of ticks
            ticks, per_tick = scaled(ticks, per_tick), 1
            local, null = ticks.view(f"{local.dtype.kind}8[ns]"), null | (ticks == NAT)
        step = e.step // per_tick
        rest = ticks % step
        down = ticks - rest
        if e.op == "floor":
            up = np.zeros(len(ticks), dtype=bool)
        elif e.op == "ceil":
            up = rest > 0
        else:
            odd = (down // step) % 2 == 1
            up = (rest > step - rest) | ((rest == step - rest) & odd)
        found = down + np.where(up, step, 0)
        wrapped = np.where(up, found < ticks, down > ticks)
    found = np.where(null | wrapped, NAT, found).view(local.dtype)
    if e.x.tz is None or v.kind != "time":
        return Vector(v.kind, found)
    # A whole step further may be beyond the years in which zones have offsets.
    return Vector("time", _from_local(_within_years(found, _MARGIN // 2), e.x.tz))


def in_zone(b: Block, e: ex.Zoned) -> Vector:
    """The same moments; or those of the wall time, in a zone or without one."""
    values = b.vector(e.x).values
    if e.op == "convert":
        return Vector("time", values)
    if e.zone is None:
        return Vector("time", _local(values, e.x.tz))
    return Vector("time", _from_local(_within_years(values), e.zone, missing=True))


def _within_years(moments: Array, margin: int = _MARGIN) -> Array:
    """Null in years for which zones have no offsets, and so many seconds from their ends."""
    per_second = TICKS[unit_of(moments)]
    low = max(NAT + margin * per_second, (_YEAR_1 + margin) * per_second)
    high = min(LAST - margin * per_second, (_YEAR_9999 - margin) * per_second)
    ticks = moments.view(np.int64)
    return np.where((ticks < low) | (ticks > high), NAT, ticks).view(moments.dtype)


def _by_distinct(values: Array, f: Callable[[Any], list[Any]], kind: ex.Kind) -> Vector:
    """What `f` makes of the different values, each by itself; None of it is null."""
    null = np.isnat(values)
    distinct, codes = np.unique(values[~null], return_inverse=True)
    index: dict[Any, int] = {}
    table = [-1 if cell is None else index.setdefault(cell, len(index)) for cell in f(distinct)]
    found = np.full(len(values), -1, dtype=np.int64)
    found[~null] = np.array([*table, -1], dtype=np.int64)[codes]
    return Vector(kind, narrow(found, len(index)), None, objects(index))


def period_of(b: Block, e: ex.PeriodOf) -> Vector:
    """pandas' own periods of the days, or of the hours, that there are."""
    local = _local(b.vector(e.x).values, e.x.tz)
    unit = "h" if e.freq == "h" else "D"
    starts = local.astype(f"M8[{unit}]")

    def periods(distinct: Array) -> list[Any]:
        return list(pd.DatetimeIndex(distinct.astype("M8[s]")).to_period(e.freq))

    return _by_distinct(starts, periods, "label")


def formatted(b: Block, e: ex.Formatted) -> Vector:
    """Python's own text of each day, or of each moment, in years of four digits."""
    local = _local(b.vector(e.x).values, e.x.tz)

    def texts(distinct: Array) -> list[Any]:
        return [
            moment.strftime(e.format) if 1000 <= year <= 9999 else None
            for moment, year in zip(
                _as_datetimes(distinct),
                distinct.astype("M8[Y]").astype(np.int64) + 1970,
                strict=True,
            )
        ]

    return _by_distinct(local.astype("M8[D]") if e.daily else local, texts, "text")


def _as_datetimes(moments: Array) -> list[Any]:
    """Datetimes of Python of the years that it has, to the microsecond; other years count as the
    first."""
    seconds = moments.astype("M8[s]").view(np.int64)
    known = (seconds >= _YEAR_1) & (seconds < _YEAR_9999)
    inside = np.where(known, moments, np.datetime64(0, "s").astype(moments.dtype))
    return list(inside.astype("M8[us]").tolist())


def moment(b: Block, e: ex.Moment) -> Vector:
    """Python's own reading of each text."""
    v = b.vector(e.x)

    def make(categories: Array) -> Array:
        ticks = [_read(cell, e.format) if type(cell) is str else NAT for cell in categories]
        return np.array([*ticks, NAT], dtype=np.int64)

    return Vector("time", look_up(b.per_category(e, make, v), v.values).view("M8[us]"))


_EPOCH = datetime(1970, 1, 1)
_LONGEST = 100  # characters of a date
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?", re.ASCII)


def _read(cell: str, written: str | None) -> int:
    """The microseconds since 1970 that a text stands for, or no time."""
    try:
        if len(cell) > _LONGEST or (written is None and not _ISO.fullmatch(cell)):
            return NAT
        found = (
            datetime.fromisoformat(cell) if written is None else datetime.strptime(cell, written)
        )
        return (found - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError, re.error):
        return NAT
