"""Parts of texts and dates: what ``.str`` and ``.dt`` offer, and of which kind the results are."""

from __future__ import annotations

from typing import Any

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
}
# The values of parts that make groups by themselves. Minutes and days of a year are mostly meant as numbers.
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
DATE_NAMES = {"weekday": "dayofweek", "day_of_week": "dayofweek", "day_of_year": "dayofyear"}

# method: kind of the result, and its parameters as (name, types, default); ... marks a required one.
_INT: tuple[type, ...] = (int,)
_MAYBE_INT = (int, type(None))
_STRIP = (("to_strip", (str, type(None)), None),)
TEXT: dict[str, tuple[Kind, tuple[tuple[str, tuple[type, ...], Any], ...]]] = {
    **dict.fromkeys(("lower", "upper", "title", "capitalize", "swapcase"), ("text", ())),
    **dict.fromkeys(("strip", "lstrip", "rstrip"), ("text", _STRIP)),
    **dict.fromkeys(("startswith", "endswith"), ("bool", (("pat", (str,), ...),))),
    "contains": ("bool", (("pat", (str,), ...), ("case", (bool,), True), ("regex", (bool,), True))),
    "slice": ("text", (("start", _MAYBE_INT, None), ("stop", _MAYBE_INT, None), ("step", _MAYBE_INT, None))),
    "replace": ("text", (("pat", (str,), ...), ("repl", (str,), ...))),
    "zfill": ("text", (("width", _INT, ...),)),
    "get": ("text", (("i", _INT, ...),)),
    "len": ("number", ()),
}
