"""Dates on numpy, by their ticks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpframe import _expr as ex
from dpframe._cells.codec import TICKS, unit_of
from dpframe._cells.columns import LAST, NAT, Vector, narrow, objects
from dpframe._types import Array
from dpframe.engines.functions.choices import scale_ticks

if TYPE_CHECKING:
    from dpframe.engines.expressions import Block


def call_times(b: Block, e: ex.Call) -> Vector:
    """Return what a function of the catalogue `dpframe._expr.OPS` makes of the time or duration in
    each row.

    Examples are the year, the weekday and the total seconds. ``e`` is the expression, and ``b`` has
    the rows to evaluate it on.
    """
    kernel = KERNELS.get(e.op)
    if kernel is not None:
        return kernel(b, e)
    x, f = e.operands[0], ex.OPS[e.op].value
    v = b.vector(x)
    null, kind = np.isnat(v.values), e.kind
    assert f is not None
    found = f(_local(v.values, x.tz) if v.kind == "time" else v.values, *e.args)
    if kind == "bool":
        return Vector("bool", found & ~null)
    if kind == "time":
        return Vector("time", found if e.tz is None else _read_local(found, x.tz))
    if kind == "text":
        names = b.per_category(e, lambda: objects(e.public_members or ()))
        return Vector("text", np.where(null, -1, found).astype(np.int8), None, names)
    if found.dtype.kind == "f":
        return Vector("number", np.where(null, np.nan, found))
    return Vector("number", np.where(null, 0, found), null)


# Zones have offsets for the years 1 to 9999 only, and pandas raises beyond: those days count as the
# last one.
_YEAR_1, _YEAR_9999 = -62_135_596_800, 253_402_300_799
_MARGIN = 2 * 86_400


def _local(moments: Array, zone: str | None) -> Array:
    """Return UTC times as wall times in a zone; without a zone they stay.

    Times near the ends of the range move inside it, since pandas raises beyond. Null stays null.
    """
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


def _read_local(wall: Array, zone: str | None, missing: bool = False) -> Array:
    """Return wall times in a zone as UTC times; without a zone they stay.

    A wall time that the zone skips becomes the next time there is. A wall time that occurs twice
    becomes the first. With ``missing`` both become null.
    """
    if zone is None:
        return wall
    if missing:
        gone: Any = pd.DatetimeIndex(wall).tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
        return np.asarray(gone.tz_convert(None))
    # A wall time that is skipped or occurs twice must not raise.
    first = np.ones(len(wall), dtype=bool)
    index: Any = pd.DatetimeIndex(wall).tz_localize(
        zone, ambiguous=first, nonexistent="shift_forward"
    )
    return np.asarray(index.tz_convert(None))


# ---- durations, and times by them ----------------------------------------------------------------


def _align_ticks(x: Vector, y: Vector) -> tuple[Array, Array, str]:
    """Return the ticks of two columns of times in the finer of their resolutions, and its unit.

    A time that the finer resolution cannot hold is null.
    """
    units = [unit_of(v.values) for v in (x, y)]
    unit = max(units, key=lambda u: TICKS[u])
    a, b = (
        scale_ticks(v.values.view(np.int64), TICKS[unit] // TICKS[u])
        for v, u in zip((x, y), units, strict=True)
    )
    return a, b, unit


def compute_elapsed(b: Block, e: ex.Elapsed) -> Vector:
    """Return the sum or difference of times or durations in each row.

    A result that overflows 64 bits is null. ``e`` is the expression, and ``b`` has the rows to
    evaluate it on.
    """
    x, y, unit = _align_ticks(b.vector(e.left), b.vector(e.right))
    if e.op == "+":
        found = x + y
        wrapped = ((x ^ found) & (y ^ found)) < 0
    else:
        found = x - y
        wrapped = ((x ^ y) & (x ^ found)) < 0
    ticks = np.where(wrapped | (x == NAT) | (y == NAT), NAT, found)
    return Vector(e.kind, ticks.view(f"{'M' if e.kind == 'time' else 'm'}8[{unit}]"))


def compute_ratio(b: Block, e: ex.Ratio) -> Vector:
    """Return one duration divided by another in each row, by ``/`` as doubles or by ``//`` as
    floors.

    Division by a duration of zero with ``//`` gives null. ``e`` is the expression, and ``b`` has
    the rows to evaluate it on.
    """
    x, y, _ = _align_ticks(b.vector(e.left), b.vector(e.right))
    null = (x == NAT) | (y == NAT)
    if e.op == "/":
        return Vector("number", np.where(null, np.nan, x.astype(np.float64) / y.astype(np.float64)))
    null |= y == 0
    whole = np.floor_divide(x, np.where(y == 0, 1, y)).astype(np.float64)
    return Vector("number", np.where(null, np.nan, whole))


def snap(b: Block, e: ex.Call) -> Vector:
    """Return times or durations rounded down, up or to the nearest multiple of a step.

    Halves go to even multiples, as in pandas. A step finer than the resolution changes nothing. A
    zoned time is rounded as wall time. A result beyond the range of 64 bits is null. ``e`` is the
    expression, and ``b`` has the rows to evaluate it on.
    """
    x, (step, _) = e.operands[0], e.args
    v = b.vector(x)
    local = _local(v.values, x.tz) if v.kind == "time" else v.values
    per_tick = TICKS["ns"] // TICKS[unit_of(local)]
    ticks, null = local.view(np.int64), np.isnat(v.values)
    if step <= per_tick:
        found, wrapped = ticks, np.zeros(len(ticks), dtype=bool)
    else:
        if step % per_tick:  # the step is no whole number of ticks: use nanoseconds
            ticks, per_tick = scale_ticks(ticks, per_tick), 1
            local, null = ticks.view(f"{local.dtype.kind}8[ns]"), null | (ticks == NAT)
        step //= per_tick
        rest = ticks % step
        down = ticks - rest
        if e.op == "dt.floor":
            up = np.zeros(len(ticks), dtype=bool)
        elif e.op == "dt.ceil":
            up = rest > 0
        else:
            odd = (down // step) % 2 == 1
            up = (rest > step - rest) | ((rest == step - rest) & odd)
        found = down + np.where(up, step, 0)
        wrapped = np.where(up, found < ticks, down > ticks)
    found = np.where(null | wrapped, NAT, found).view(local.dtype)
    if x.tz is None or v.kind != "time":
        return Vector(v.kind, found)
    # Rounding up may leave the years for which zones have offsets.
    return Vector("time", _read_local(_limit_years(found, _MARGIN // 2), x.tz))


def in_zone(b: Block, e: ex.Call) -> Vector:
    """Return times after ``dt.tz_convert`` or ``dt.tz_localize``.

    Conversion keeps them, since they are held in UTC. Localization reads wall times in the new
    zone, or returns wall times for no zone. ``e`` is the expression, and ``b`` has the rows to
    evaluate it on.
    """
    x, (zone,) = e.operands[0], e.args
    values = b.vector(x).values
    if e.op == "dt.tz_convert":
        return Vector("time", values)
    if zone is None:
        return Vector("time", _local(values, x.tz))
    return Vector("time", _read_local(_limit_years(values), zone, missing=True))


def _limit_years(moments: Array, margin: int = _MARGIN) -> Array:
    """Return times with null outside the years 1 to 9999, for which zones have offsets.

    ``margin`` is by how many seconds the range is shorter at both ends.
    """
    per_second = TICKS[unit_of(moments)]
    low = max(NAT + margin * per_second, (_YEAR_1 + margin) * per_second)
    high = min(LAST - margin * per_second, (_YEAR_9999 - margin) * per_second)
    ticks = moments.view(np.int64)
    return np.where((ticks < low) | (ticks > high), NAT, ticks).view(moments.dtype)


def _make_by_distinct(values: Array, f: Callable[[Any], list[Any]], kind: ex.Kind) -> Vector:
    """Return what ``f`` makes of each distinct time, as a dictionary-coded vector.

    ``f`` takes the array of distinct times and returns a list; None is null. ``kind`` is the kind
    of the result.
    """
    null = np.isnat(values)
    distinct, codes = np.unique(values[~null], return_inverse=True)
    index: dict[Any, int] = {}
    table = [-1 if cell is None else index.setdefault(cell, len(index)) for cell in f(distinct)]
    found = np.full(len(values), -1, dtype=np.int64)
    found[~null] = np.array([*table, -1], dtype=np.int64)[codes]
    return Vector(kind, narrow(found, len(index)), None, objects(index))


def period_of(b: Block, e: ex.Call) -> Vector:
    """Return the pandas period that contains each time, such as its month, as a label.

    ``e`` is the expression, and ``b`` has the rows to evaluate it on.
    """
    x, (freq,) = e.operands[0], e.args
    local = _local(b.vector(x).values, x.tz)
    unit = "h" if freq == "h" else "D"
    starts = local.astype(f"M8[{unit}]")

    def periods(distinct: Array) -> list[Any]:
        return list(pd.DatetimeIndex(distinct.astype("M8[s]")).to_period(freq))

    return _make_by_distinct(starts, periods, "label")


def format_times(b: Block, e: ex.Call) -> Vector:
    """Return each time as text in a format, as ``strftime`` does.

    Years of fewer or more than four digits give null. ``e`` is the expression, and ``b`` has the
    rows to evaluate it on.
    """
    x, (date_format,) = e.operands[0], e.args
    local = _local(b.vector(x).values, x.tz)

    def texts(distinct: Array) -> list[Any]:
        """Return the text of each distinct time; None for years not of four digits."""
        return [
            moment.strftime(date_format) if 1000 <= year <= 9999 else None
            for moment, year in zip(
                _as_datetimes(distinct),
                distinct.astype("M8[Y]").astype(np.int64) + 1970,
                strict=True,
            )
        ]

    return _make_by_distinct(
        local.astype("M8[D]") if ex.is_daily(date_format) else local, texts, "text"
    )


def _as_datetimes(moments: Array) -> list[Any]:
    """Return times as Python datetimes, to the microsecond.

    A time outside the years 1 to 9999, which the caller drops, becomes 1970.
    """
    seconds = moments.astype("M8[s]").view(np.int64)
    known = (seconds >= _YEAR_1) & (seconds < _YEAR_9999)
    inside = np.where(known, moments, np.datetime64(0, "s").astype(moments.dtype))
    return list(inside.astype("M8[us]").tolist())


KERNELS: dict[str, Callable[[Block, ex.Call], Vector]] = {
    "dt.floor": snap,
    "dt.ceil": snap,
    "dt.round": snap,
    "dt.tz_convert": in_zone,
    "dt.tz_localize": in_zone,
    "dt.to_period": period_of,
    "dt.strftime": format_times,
}
