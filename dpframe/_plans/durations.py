"""Durations and times: they are measured in seconds, and shown as what they are.

That is post-processing by public facts alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._errors import BadType
from dpframe._types import Array

# The largest double that a Timedelta holds.
_LAST = 2**63 - 2**10
# Ticks of a second, with the finest unit first.
_UNITS: dict[str, int] = {"ns": 10**9, "us": 10**6}
# The sum of 2**31 rows of this many seconds is still a whole number of nanoseconds.
_FINE = 4.0


class SecondsCell(Protocol):
    """An output that was measured in seconds between two bounds.

    The seconds of a time are counted from its ``origin``. That of a duration is empty.
    """

    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...
    @property
    def origin(self) -> str: ...


def format_origin(first: pd.Timestamp, zone: str | None) -> str:
    """Return the moment that the seconds of times are counted from, as text for a plan.

    ``first`` is that moment. If the times have a time zone, it is in UTC and the zone follows it.
    """
    return first.isoformat() if zone is None else f"{first.isoformat()} {zone}"


def read_zone(origin: str) -> str:
    """Return the zone that moments after an origin are shown in, or an empty text."""
    return origin.partition(" ")[2]


def make_moment(value: Any, origin: str) -> Any:
    """Return a moment as a timestamp in the time zone that ``origin`` names, if it names one."""
    plain, zone = pd.Timestamp(value), read_zone(origin)
    return plain.tz_localize("UTC").tz_convert(zone) if zone else plain


def choose_unit(lower: float, upper: float) -> str:
    """Return the unit in which durations between these bounds in seconds, and their sums, are
    shown.

    It is nanoseconds if nobody has more than a few seconds, and else microseconds.
    """
    return "ns" if max(abs(lower), abs(upper)) < _FINE else "us"


def show_seconds(
    seconds: Array, cell: SecondsCell, towards: Literal["nearest", "down", "up"] = "nearest"
) -> Array:
    """Return numbers of seconds as durations, or as moments after an origin.

    What is beyond the range of a Timedelta (292,471 years, or 292 in nanoseconds) becomes the end
    of that range, and NaN becomes NaT. Ends of intervals are rounded outwards. Moments of times
    with a zone are in UTC; `Layout.zoned` shows them in their zone.
    """
    unit = "us" if cell.origin else choose_unit(cell.lower, cell.upper)
    rounded = {"nearest": np.rint, "down": np.floor, "up": np.ceil}[towards]
    with np.errstate(all="ignore"):
        ticks = rounded(np.asarray(seconds, dtype=np.float64) * _UNITS[unit])
        whole = np.clip(np.nan_to_num(ticks, nan=0.0), -_LAST, _LAST).astype(np.int64)
    found: Array = whole.astype(f"timedelta64[{unit}]")
    if cell.origin:
        found = np.datetime64(cell.origin.partition(" ")[0], "us") + found
    found[np.isnan(ticks)] = found.dtype.type("NaT")
    return found


def halve_interval(low: Any, high: Any) -> Any:
    """Return half the width of an interval of durations or times, without overflow for the longest
    ones."""
    return high / 2 - low / 2 if isinstance(low, pd.Timedelta) else (high - low) / 2


def count_decimals(low: object, high: object) -> int | None:
    """Return how many decimals of seconds to show for a duration or a time with this interval.

    Half the width of the interval then has two digits. Return None if the interval has no width.
    """
    seconds = halve_interval(low, high).total_seconds()
    return min(max(1 - math.floor(math.log10(seconds)), 0), 9) if seconds > 0 else None


def format_moment(value: Any, decimals: int | None) -> str:
    """Return a duration or a time as text, with this number of decimals of its seconds.

    NaT, and every value if ``decimals`` is None, is written as pandas writes it.
    """
    if value is pd.NaT or decimals is None:
        return str(value)
    step, zone, offset = f"{10 ** (9 - decimals)}ns", getattr(value, "tz", None), ""
    if zone is None:
        text = str(value.round(step))
    else:  # rounded in UTC, because a wall time may be ambiguous or missing
        rounded = value.tz_convert("UTC").round(step).tz_convert(zone)
        text = str(rounded.tz_localize(None))
        offset = str(rounded)[len(text) :]
    whole, _, part = text.partition(".")
    return (f"{whole}.{part.ljust(9, '0')[:decimals]}" if decimals else whole) + offset


def convert_to_seconds(column: object) -> NDArray[np.float64]:
    """Return a column as floats, with durations and times in seconds, to judge the widths of their
    intervals.

    Times count from 1970.
    """
    array = np.asarray(column)
    if array.dtype.kind == "M":
        array = array - np.datetime64(0, "s")
    if array.dtype.kind == "m":
        seconds: NDArray[np.float64] = array / np.timedelta64(1, "s")
        return seconds
    if array.dtype == object:  # a column with durations and numbers
        flat = [_convert_cell(v) for v in array.ravel()]
        return np.array(flat, dtype=float).reshape(array.shape)
    return array.astype(float)


def _convert_cell(value: object) -> Any:
    """Return a cell of an object column as a number: a duration or a time in seconds, a null as
    NaN."""
    if value is pd.NaT or value is None:
        return np.nan
    if isinstance(value, pd.Timestamp):
        value = value - pd.Timestamp(0)
    return value.total_seconds() if isinstance(value, pd.Timedelta) else value


def check_alike(outputs: Sequence[Any]) -> None:
    """Refuse outputs that would stand in one column, if some are durations or times and others are
    not."""
    if len({(out.duration, out.origin) for out in outputs}) > 1:
        names = [repr(out.name) for out in outputs if out.duration]
        raise BadType(
            f"{names[0]} is a duration or a time, and would stand in one column with others. Ask "
            "the two apart, or make it a "
            "number by .dt.total_seconds()."
        )


def has_moments(column: Array) -> bool:
    """Return whether a column of objects has times or durations beside numbers."""
    return column.dtype == object and any(
        isinstance(v, pd.Timestamp | pd.Timedelta) for v in column
    )


def align_units(columns: Sequence[Array]) -> list[Array]:
    """Return columns of answers converted so that their values can stand in one table column.

    Durations get the coarsest of their units, in which none is too long. Beside numbers all values
    become objects, as in pandas.
    """
    kinds = {column.dtype.kind if column.dtype.kind in "mM" else "" for column in columns}
    if len(kinds) > 1:
        plain: dict[str, Any] = {"m": pd.Timedelta, "M": pd.Timestamp}
        return [
            column.astype(object)
            if column.dtype.kind not in plain
            else np.array([*map(plain[column.dtype.kind], column), None], dtype=object)[:-1]
            for column in columns
        ]
    units = {str(column.dtype) for column in columns}
    return (
        list(columns)
        if kinds == {""} or len(units) < 2
        else [c.astype("timedelta64[us]") for c in columns]
    )
