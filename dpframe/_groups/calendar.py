"""Groups that one person is likely to be in many of: periods of time.

Most keys divide people: a person has one state, one sex. Time divides rows: who comes back is in
several months. So a limit of groups below the number of periods leaves rows out for sure or nearly
so, and a limit below the number of states need not. A grouping is one by time in three cases:

- it is made of periods, as ``resample`` makes them;
- its key is computed from a column of times, and is not a duration, nor one value a person;
- its listed keys are those of a calendar: moments, months 1 to 12, years, names of weekdays. Short
  cycles such as 0 to 6 count if the name of the column tells that they are days.

*Formal guarantee.* All of it is a function of questions and declarations, and of no cell.
"""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Iterable, Sequence
from datetime import date
from functools import lru_cache

import pandas as pd

from dpframe._expr import Column, Expr, Within, has_one_value
from dpframe._groups.combinations import RestBy, TupleBy
from dpframe._groups.keys import By, KeyBy, Keys
from dpframe._groups.periods import TimeBy

_LONGEST = 120  # characters of a warning
# The cycles of a calendar as numbers: months, days of a month and of a year, weeks.
_CYCLES = [(1, 12), (1, 31), (1, 365), (1, 366), (1, 52), (1, 53)]
# Cycles that grades and classes have too, unless the name of the column says what they are.
_SHORT_CYCLES = [(0, 6), (1, 7), (0, 23), (1, 4), (1, 24)]
_PERIOD_NAMES = re.compile(r"month|quarter|week|day|hour|date|time|year", re.IGNORECASE)
_YEARS = range(1900, 2101)
_WRITTEN = re.compile(r"\d{4}-?(\d{2}(-?\d{2})?|[QWqw]-?\d{1,2})")  # such as 2025-01, 2025-W07
_NAMES = {
    str(name).lower()
    for names in (
        calendar.month_name,
        calendar.month_abbr,
        calendar.day_name,
        calendar.day_abbr,
    )
    for name in names
    if name
}
# The letters of pandas' periods, by the first letters of the frequencies of `resample`.
_PERIODS = {"M": "M", "Q": "Q", "Y": "Y", "W": "W", "D": "D", "h": "h"}


def count_periods(by: Iterable[By], people: Sequence[Column]) -> int:
    """Return the number of periods of time in a grouping, or 1 for one without time.

    ``people`` are the columns that name a person.
    """
    return math.prod(_count_times(level, people) for level in by if _is_by_time(level, people))


def _count_times(level: By, people: Sequence[Column]) -> int:
    """Return the number of periods in a grouping by time; of combinations, those of their times."""
    if not isinstance(level, TupleBy):
        return len(level.index)
    others = [i for i, one in enumerate(level.levels) if not _is_by_time(one, people)]
    return len(level.tuples.index.droplevel(others).unique()) if others else len(level.index)


def _is_by_time(level: By, people: Sequence[Column]) -> bool:
    """Return whether a grouping is one by time, as the head of this file defines it."""
    if isinstance(level, TimeBy):
        return not has_one_value(level.expr, people)
    if isinstance(level, TupleBy):
        return any(_is_by_time(one, people) for one in level.levels)
    listed = level.listed if isinstance(level, RestBy) else level
    if not isinstance(listed, KeyBy) or has_one_value(listed.expr, people):
        return False
    return _reads_times(listed.expr, people) or (
        isinstance(listed.expr, Column) and is_calendar(listed.keys)
    )


def _reads_times(expr: Expr, people: Sequence[Column]) -> bool:
    """Return whether an expression tells when a row was, and not how long something took."""
    if expr.kind == "duration" or (isinstance(expr, Within) and has_one_value(expr, people)):
        return False
    if isinstance(expr, Column):
        return expr.kind == "time"
    return any(_reads_times(child, people) for child in expr.children)


@lru_cache(maxsize=64)
def is_calendar(keys: Keys) -> bool:
    """Return whether listed keys are those of a calendar."""
    known = [key for place, key in enumerate(keys.index.tolist()) if place != keys.null]
    if not known:
        return False
    kinds = {type(key) for key in known}
    if kinds == {int}:
        low, high = min(known), max(known)
        whole = len(known) == high - low + 1
        named = _PERIOD_NAMES.search(str(keys.index.name)) is not None
        cycles = _CYCLES + _SHORT_CYCLES * named
        return whole and ((low, high) in cycles or (low in _YEARS and high in _YEARS))
    if kinds == {str}:
        return all(key.lower() in _NAMES or _WRITTEN.fullmatch(key) for key in known)
    return all(issubclass(kind, date | pd.Period) for kind in kinds)


def describe_groups_left_out(by: Sequence[By], groups: int, limit: int) -> str:
    """Return a warning that people count in ``limit`` of the ``groups`` of a grouping only.

    It names the line that tells how many people have more, in at most 120 characters.
    """
    levels = [
        one for level in by for one in (level.levels if isinstance(level, TupleBy) else [level])
    ]
    texts = [_write_level(level) for level in levels]
    line = "p.over_limits(...)"
    if None not in texts:
        listed = ", ".join(map(str, texts))
        line = f"p.over_limits({listed})" if len(texts) == 1 else f"p.over_limits([{listed}])"
    start = f"a person counts in at most {limit} of {groups} groups"
    names = ", ".join(str(getattr(level, "expr", level)) for level in levels)
    for text in (
        f"{start} by {names}, and rows in others are left out. How many: {line}",
        f"{start}, and rows in others are left out. How many: {line}",
        f"{start}: rows are left out; see {line}",
    ):
        if len(text) <= _LONGEST:
            return text
    return f"{start}, and rows in others are left out. How many: p.over_limits(...)"


def _write_level(level: By) -> str | None:
    """Return a level of a grouping as it is written in a call of `over_limits`; None if unknown."""
    expr: Expr = level.expr  # type: ignore[attr-defined]  # all kinds of levels but combinations
    if isinstance(expr, Column):
        written, column = repr(expr.name), f"p[{expr.name!r}]"
    else:
        owners = [c for c in expr.columns() if str(expr).startswith(f"{c}.")]
        if not owners:
            return None
        written = column = f"p[{owners[0].name!r}]{str(expr)[len(str(owners[0])) :]}"
    if not isinstance(level, TimeBy):
        return written
    letter = _PERIODS.get(level.freq[:1])
    plain = re.fullmatch(r"[A-Za-z]{1,2}(-[A-Z]{3})?", level.freq) is not None
    return f"{column}.dt.to_period({letter!r})" if letter and plain else None
