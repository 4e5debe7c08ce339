"""Parts of texts and dates: what ``.str`` and ``.dt`` offer, and of which kind the results are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpframe._expr._kinds import Kind
from dpframe._expr._ranges import Interval

# part: kind of the result, and where its values lie.
DATES: dict[str, tuple[Kind, Interval]] = {
    "year": ("number", None),
    "quarter": ("number", (1.0, 4.0)),
    "month": ("number", (1.0, 12.0)),
    "day": ("number", (1.0, 31.0)),
    "dayofyear": ("number", (1.0, 366.0)),
    "dayofweek": ("number", (0.0, 6.0)),
    "hour": ("number", (0.0, 23.0)),
    "minute": ("number", (0.0, 59.0)),
    "second": ("number", (0.0, 59.0)),
    "normalize": ("time", None),
    "day_name": ("text", None),
    "month_name": ("text", None),
    "date": ("time", None),
    "days_in_month": ("number", (28.0, 31.0)),
    "microsecond": ("number", (0.0, 999999.0)),
    "nanosecond": ("number", (0.0, 999.0)),
    "iso_year": ("number", None),
    "iso_week": ("number", (1.0, 53.0)),
    "iso_day": ("number", (1.0, 7.0)),
    **dict.fromkeys(
        (f"is_{part}_{end}" for part in ("month", "quarter", "year") for end in ("start", "end")),
        ("bool", (0.0, 1.0)),
    ),
    "is_leap_year": ("bool", (0.0, 1.0)),
}
# Those of a calendar of weeks, which pandas has as columns of `isocalendar`.
ISO = {"year": "iso_year", "week": "iso_week", "day": "iso_day"}
# The values of parts that make groups by themselves. Minutes and days of a year are mostly meant as
# numbers.
VALUES: dict[str, tuple[Any, ...]] = {
    "quarter": tuple(range(1, 5)),
    "month": tuple(range(1, 13)),
    "day": tuple(range(1, 32)),
    "dayofweek": tuple(range(7)),
    "hour": tuple(range(24)),
    "day_name": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month_name": (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
}
DATE_NAMES = {
    "weekday": "dayofweek",
    "day_of_week": "dayofweek",
    "day_of_year": "dayofyear",
    "daysinmonth": "days_in_month",
}

HIDDEN = frozenset(ISO.values())  # which pandas has under other names
DATE_CALLS = ("normalize", "day_name", "month_name")  # parts that are called

# ---- what declared ends of times tell ---------------------------------------------------------------------

DAY = 86_400 * 10**9  # in nanoseconds
_MOST_DAYS = 4_000  # that are listed as keys


def local_ends(ends: tuple[float, float], zone: str | None) -> tuple[float, float] | None:
    """Wall times around all moments between two, in nanoseconds; None beyond what nanoseconds
    reach."""
    if zone is None:
        return ends
    try:
        low = [_offset(end, zone) for end in (ends[0], ends[0] + DAY)]
        high = [_offset(end, zone) for end in (ends[1], ends[1] - DAY)]
    except (ValueError, OverflowError):
        return None
    # A clock that is put back shows earlier times after later ones, and does so at most once a day.
    return ends[0] + min(low), ends[1] + max(high)


def _offset(moment: float, zone: str) -> int:
    offset = pd.Timestamp(int(moment), tz="UTC").tz_convert(zone).utcoffset()
    return (
        round((pd.Timedelta(0) if offset is None else pd.Timedelta(offset)).total_seconds()) * 10**9
    )


def days_of(ends: tuple[float, float], zone: str | None) -> pd.DatetimeIndex | None:
    """The days between two moments, by their midnights in wall time; None where they are too
    many."""
    local = local_ends(ends, zone)
    if local is None or local[1] - local[0] > _MOST_DAYS * DAY:
        return None
    try:
        first, last = (pd.Timestamp(int(end)) for end in local)
    except (ValueError, OverflowError):
        return None
    return pd.date_range(first.normalize(), last.normalize(), freq="D")


def span_of_days(ends: tuple[float, float], zone: str | None) -> tuple[Any, ...] | None:
    """The same as moments of the zone."""
    days = days_of(ends, zone)
    if days is None or zone is None:
        return None if days is None else tuple(days)
    first = np.ones(len(days), dtype=bool)
    return tuple(days.tz_localize(zone, ambiguous=first, nonexistent="shift_forward"))


def years_of(ends: tuple[float, float], zone: str | None) -> tuple[int, int] | None:
    """The first and the last year between two moments, in wall time."""
    local = local_ends(ends, zone)
    try:
        return (
            None
            if local is None
            else (pd.Timestamp(int(local[0])).year, pd.Timestamp(int(local[1])).year)
        )
    except (ValueError, OverflowError):
        return None


# Parts that follow from a day, and are listed where the days are known.
OF_DAYS: dict[str, Any] = {
    "dayofyear": lambda days: sorted(set(days.day_of_year.tolist())),
    "iso_week": lambda days: sorted(set(days.isocalendar().week.tolist())),
    "iso_year": lambda days: sorted(set(days.isocalendar().year.tolist())),
    "days_in_month": lambda days: sorted(set(days.days_in_month.tolist())),
    "date": lambda days: list(days.date),
}

# method: kind of the result, and its parameters as (name, types, default); ... marks a required
# one.
_INT: tuple[type, ...] = (int,)
_MAYBE_INT = (int, type(None))
_STRIP = (("to_strip", (str, type(None)), None),)
TEXT: dict[str, tuple[Kind, tuple[tuple[str, tuple[type, ...], Any], ...]]] = {
    **dict.fromkeys(("lower", "upper", "title", "capitalize", "swapcase"), ("text", ())),
    **dict.fromkeys(("strip", "lstrip", "rstrip"), ("text", _STRIP)),
    **dict.fromkeys(("startswith", "endswith"), ("bool", (("pat", (str,), ...),))),
    "contains": ("bool", (("pat", (str,), ...), ("case", (bool,), True), ("regex", (bool,), True))),
    "slice": (
        "text",
        (("start", _MAYBE_INT, None), ("stop", _MAYBE_INT, None), ("step", _MAYBE_INT, None)),
    ),
    "replace": ("text", (("pat", (str,), ...), ("repl", (str,), ...))),
    **dict.fromkeys(
        ("isdigit", "isalpha", "isalnum", "isnumeric", "isdecimal", "isspace"), ("bool", ())
    ),
    **dict.fromkeys(("islower", "isupper", "istitle", "isascii"), ("bool", ())),
    "casefold": ("text", ()),
    **dict.fromkeys(
        ("find", "rfind"),
        ("number", (("sub", (str,), ...), ("start", _INT, 0), ("end", _MAYBE_INT, None))),
    ),
    "removeprefix": ("text", (("prefix", (str,), ...),)),
    "removesuffix": ("text", (("suffix", (str,), ...),)),
    "pad": ("text", (("width", _INT, ...), ("side", (str,), "left"), ("fillchar", (str,), " "))),
    **dict.fromkeys(
        ("ljust", "rjust", "center"), ("text", (("width", _INT, ...), ("fillchar", (str,), " ")))
    ),
    "repeat": ("text", (("repeats", _INT, ...),)),
    "slice_replace": (
        "text",
        (
            ("start", _MAYBE_INT, None),
            ("stop", _MAYBE_INT, None),
            ("repl", (str, type(None)), None),
        ),
    ),
    "zfill": ("text", (("width", _INT, ...),)),
    "get": ("text", (("i", _INT, ...),)),
    "len": ("number", ()),
}
