"""What ``.str``, ``.dt`` and ``.cat`` have, by name: their parts are made when they are asked for,
which no checker sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from dpframe._frame.surface import PrivateColumn

Column: TypeAlias = "PrivateColumn"
Called: TypeAlias = "Callable[..., PrivateColumn]"
Pieces: TypeAlias = "Callable[..., Any]"  # a column, or with expand=True a frame


class Texts:
    """The parts of a text."""

    capitalize: Called
    casefold: Called
    cat: Called
    center: Called
    contains: Called
    count: Called
    endswith: Called
    extract: Pieces
    find: Called
    fullmatch: Called
    get: Called
    isalnum: Called
    isalpha: Called
    isascii: Called
    isdecimal: Called
    isdigit: Called
    islower: Called
    isnumeric: Called
    isspace: Called
    istitle: Called
    isupper: Called
    len: Called
    ljust: Called
    lower: Called
    lstrip: Called
    match: Called
    pad: Called
    partition: Pieces
    removeprefix: Called
    removesuffix: Called
    repeat: Called
    replace: Called
    rfind: Called
    rjust: Called
    rpartition: Pieces
    rsplit: Pieces
    rstrip: Called
    slice: Called
    slice_replace: Called
    split: Pieces
    startswith: Called
    strip: Called
    swapcase: Called
    title: Called
    upper: Called
    zfill: Called


class Times:
    """The parts of a time, and those of a duration."""

    as_unit: Called
    ceil: Called
    date: Column
    day: Column
    day_name: Called
    day_of_week: Column
    day_of_year: Column
    dayofweek: Column
    dayofyear: Column
    days: Column
    days_in_month: Column
    daysinmonth: Column
    floor: Called
    hour: Column
    is_leap_year: Column
    is_month_end: Column
    is_month_start: Column
    is_quarter_end: Column
    is_quarter_start: Column
    is_year_end: Column
    is_year_start: Column
    isocalendar: Callable[[], Weeks]
    microsecond: Column
    microseconds: Column
    minute: Column
    month: Column
    month_name: Called
    nanosecond: Column
    nanoseconds: Column
    normalize: Called
    quarter: Column
    round: Called
    second: Column
    seconds: Column
    strftime: Called
    to_period: Called
    total_seconds: Called
    tz_convert: Called
    tz_localize: Called
    weekday: Column
    year: Column


class Weeks:
    """The parts of the calendar of weeks."""

    day: Column
    week: Column
    year: Column
