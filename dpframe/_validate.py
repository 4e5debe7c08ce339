"""Argument checks, with one style of message: what is wrong, what was given, what to do.

They look at arguments alone, so they may raise freely: nothing has been read or charged.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from operator import lt
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpframe._errors import BadType, BadValue, unknown_column, with_article
from dpframe._identity import give_tag

# Below 2**-50 a price is a typing error, and noise would leave any double; above 2**10 it protects
# nobody.
MIN_EPSILON = Fraction(repr(2.0**-50))
MAX_EPSILON = Fraction(2**10)
MIN_DELTA = Fraction(1, 2**900)  # conversions are done in doubles, which have to hold it
# A width below this has no power-of-two grid inside the range of normal doubles.
MIN_WIDTH = 2.0**-900
MAX_BINS = 2**24
_FEW = 1000  # bins whose edges are worth keeping
_PER_TICK = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}  # nanoseconds
# Those that have expressions of their own.
_LIBRARIES = {"polars", "pyspark", "ibis", "duckdb", "_duckdb", "dask", "pyarrow"}
MAX_LISTED = 2**24  # public values that are made one by one: keys, edges, members of isin


@give_tag("bounds")
class Bounds(NamedTuple):
    """Public closed interval to which values are clipped."""

    lower: float
    upper: float


class Durations(Bounds):
    """The same of durations, in nanoseconds."""

    __slots__ = ()

    @property
    def texts(self) -> tuple[str, str]:
        """Both ends as texts that `durations` can read again."""
        ticks = [(int(end), "ns") if abs(end) < 2**62 else (int(end) // 1000, "us") for end in self]
        lower, upper = (str(pd.Timedelta(*pair)) for pair in ticks)  # type: ignore[arg-type]  # stubs list the units
        return lower, upper

    def __str__(self) -> str:
        return str(self.texts)


def exact(value: object, name: str) -> Fraction:
    """Return a number as the exact fraction that was typed: ``0.1`` is one tenth, a float32 its
    exact binary value. ``name`` is for errors."""
    if type(value) is Fraction:
        return value
    if type(value) is float and math.isfinite(value):
        return _decimal(value)
    if isinstance(value, bool | np.bool_):
        raise BadType(f"{name} must be a number, not the bool {value}.")
    if isinstance(value, Fraction):  # a subclass could add up in its own way
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, int | np.integer):
        return Fraction(int(value))
    if isinstance(value, float):  # np.float64 too
        if not math.isfinite(value):
            raise BadValue(f"{name} must be finite, not {value}.")
        return _decimal(float(value))
    if isinstance(value, np.floating):
        if not np.isfinite(value):
            raise BadValue(f"{name} must be finite, not {value}.")
        return Fraction(float(value))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise BadValue(f"{name} must be finite, not {value}.")
        return Fraction(value)
    raise BadType(f"{name} must be a number such as 0.1, not {type(value).__name__}.")


@lru_cache(maxsize=1024)
def _decimal(value: float) -> Fraction:
    return Fraction(Decimal(repr(value)))


def epsilon(value: object, name: str = "epsilon") -> Fraction:
    """Return epsilon as an exact fraction, and refuse one outside the documented range. ``name`` is
    for errors."""
    e = exact(value, name)
    if 0 < e.numerator <= 2**10 * e.denominator and e.denominator <= e.numerator * 2**50:
        return e  # whole numbers, which are quicker to compare, say that it is within the range
    if e <= 0:
        raise BadValue(f"{name} must be positive, not {value}.")
    if e < MIN_EPSILON:
        raise BadValue(
            f"{name}={value} is below 2**-50, the least that is supported. Use a larger one."
        )
    if e > MAX_EPSILON:
        raise BadValue(
            f"{name}={value} is above 1024, where nobody is protected. Use a smaller one."
        )
    return e


def delta(value: object, name: str = "delta") -> Fraction:
    """Return a probability as an exact fraction, and refuse one outside [0, 1). ``name`` is for
    errors."""
    d = exact(value, name)
    if not 0 <= d < 1:
        raise BadValue(f"{name} must be at least 0 and below 1, not {value}.")
    if 0 < d < MIN_DELTA:
        raise BadValue(
            f"{name}={value} is below 2**-900, the least that is supported. Use 0 or a larger one."
        )
    return d


def level(value: object) -> float:
    """Return a confidence level as a double, and refuse one that is not strictly between 0 and
    1."""
    x = float(exact(value, "level"))
    if not 0 < x < 1:
        raise BadValue(f"level must lie strictly between 0 and 1, such as 0.95, not {value}.")
    return x


def flag(value: object, name: str) -> bool:
    """Return True or False as given; anything else is refused, also 0 and 1."""
    if not isinstance(value, bool | np.bool_):
        raise BadType(f"{name}= must be True or False, not {type(value).__name__}.")
    return bool(value)


def positive_int(value: object, name: str) -> int:
    """Return a whole number as an int, and refuse one below 1. ``name`` is for errors."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise BadType(f"{name} must be a whole number, not {type(value).__name__}.")
    if value < 1:
        raise BadValue(f"{name} must be at least 1, not {value}.")
    return int(value)


def real(value: object, name: str) -> float:
    """Return a finite real number as a double, and refuse all else. ``name`` is for errors."""
    if (type(value) is float and math.isfinite(value)) or (
        type(value) is int and abs(value) < 2**53
    ):
        return float(value) + 0.0
    try:
        x = float(exact(value, name))
    except OverflowError:
        raise BadValue(f"{name} is beyond the range of a double.") from None
    return x + 0.0  # -0.0 is 0


def bounds(value: object, subject: str) -> Bounds:
    """Return clipping bounds from a pair of finite numbers in order; equal ones are allowed.
    ``subject`` names what is bounded, for errors."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise BadType(
            f"bounds of {subject} must be a pair (lower, upper) of public numbers, not {type(value).__name__}. "
            "They are never inferred from the data. A price is given by name: epsilon=0.1."
        )
    lower, upper = (real(v, f"a bound of {subject}") for v in value)
    if lower > upper:
        raise BadValue(f"bounds of {subject} are reversed: ({lower:g}, {upper:g}).")
    if 0 < upper - lower < MIN_WIDTH:
        raise BadValue(f"bounds of {subject} are narrower than 2**-900. Rescale the column.")
    return Bounds(lower, upper)


def duration(value: object, name: str) -> int:
    """Return a duration in whole nanoseconds. It may be a Timedelta, what Python and numpy have for
    it, or a text such as "90min"."""
    try:
        if isinstance(value, str | timedelta | np.timedelta64):
            found: Any = pd.Timedelta(value)
            if found is not pd.NaT:
                return int(found.asm8.view("i8")) * {"s": 10**9, "ms": 10**6, "us": 10**3}.get(
                    found.unit, 1
                )
    except (ValueError, OverflowError):
        pass
    raise BadType(
        f"{name} must be a duration, such as pd.Timedelta('12h') or '12h', not {value!r}."
    )


def durations(value: object, subject: str) -> Durations:
    """Return clipping bounds in nanoseconds from a pair of durations in order. ``subject`` names
    what is bounded, for errors."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise BadType(
            f"bounds of {subject} must be a pair of public durations, such as ('0D', '30D'), not {type(value).__name__}."
        )
    lower, upper = (duration(v, f"a bound of {subject}") for v in value)
    if lower > upper:
        raise BadValue(f"bounds of {subject} are reversed: ({value[0]}, {value[1]}).")
    return Durations(lower, upper)


def length(values: object, subject: str, most: int = MAX_LISTED) -> int:
    """Return the length of a public list, before any value is looked at. Endless lists and those
    with more than ``most`` values are refused."""
    try:
        count = len(values)  # type: ignore[arg-type]  # a value without a length is refused
    except TypeError:
        raise BadType(
            f"{subject} must be a list whose length is known, not {type(values).__name__}. Write list(...)."
        ) from None
    except OverflowError:
        raise BadValue(
            f"{subject} are more than 2**63 values, and {most} are the most that are supported."
        ) from None
    if count > most:
        raise BadValue(f"{subject} are {count} values, and {most} are the most that are supported.")
    return count


def edges(values: Iterable[object], subject: str) -> tuple[float, ...]:
    """Return the edges of bins: at least two increasing numbers, with infinite ones allowed at the
    ends."""
    length(values, f"the edges of {subject}", MAX_BINS + 1)
    listed: list[Any] = list(values)
    kinds = {*map(type, listed)}
    # Numbers of one type at once; NaN is below nothing.
    if kinds in ({int}, {float}) and len(listed) > 1 and all(map(lt, listed, listed[1:])):
        if kinds == {float}:
            return tuple([v + 0.0 for v in listed])
        if listed[0] > -(2**53) and listed[-1] < 2**53:
            return tuple(map(float, listed))
    numbers = tuple(
        float(v) if isinstance(v, float) and math.isinf(v) else real(v, f"an edge of {subject}")
        for v in listed
    )
    if len(numbers) < 2 or any(a >= b for a, b in pairwise(numbers)):
        raise BadValue(f"the edges of {subject} must be at least two increasing numbers.")
    return numbers


@lru_cache(maxsize=256)
def _evenly(lower: float, upper: float, number: int) -> tuple[float, ...] | None:
    """Return ``number`` + 1 points that divide an interval evenly; None if they are not increasing
    doubles."""
    with np.errstate(over="ignore", invalid="ignore"):
        points = tuple(map(float, np.linspace(lower, upper, number + 1)))
    return points if all(a < b for a, b in pairwise(points)) else None


def even_edges(pair: Bounds, number: int, subject: str) -> tuple[float, ...]:
    """Return the edges of ``number`` equally wide bins between two bounds. ``subject`` names what
    is binned, for errors."""
    if number > MAX_BINS:
        raise BadValue(f"{number} bins are more than 2**24, the most that are supported.")
    points = (_evenly if number <= _FEW else _evenly.__wrapped__)(pair.lower, pair.upper, number)
    if points is None:
        raise BadValue(
            f"the bounds of {subject}, ({pair.lower:g}, {pair.upper:g}), cannot be divided into {number} bins of "
            "different doubles. Give a list of edges."
        )
    return points


def among(value: object, options: tuple[int | str, ...]) -> bool:
    """Return whether an argument of any type is one of these whole numbers and texts."""
    return isinstance(value, int | str) and not isinstance(value, bool) and value in options


def hashable(value: object, name: str) -> Hashable:
    """Return a column's name, and refuse one that is not hashable. ``name`` is the argument's name,
    for errors."""
    try:
        hash(value)
    except TypeError:
        raise BadType(
            f"{name} must be hashable, such as a text, not {with_article(type(value).__name__)}."
        ) from None
    return value


def choice(value: object, name: str, options: Iterable[str]) -> str:
    """Return the value if it is one of the allowed texts, and refuse all else. ``name`` is for
    errors."""
    names = list(options)
    if not isinstance(value, str):
        raise BadType(
            f"{name} must be one of {', '.join(map(repr, names))}, not {type(value).__name__}."
        )
    if value not in names:
        raise BadValue(f"unknown {name} {value!r}. Use one of {', '.join(map(repr, names))}.")
    return value


def column_names(names: Iterable[object], columns: Iterable[Hashable]) -> list[Hashable]:
    """Return the names of several columns, and refuse unknown and repeated ones. ``columns`` are
    the existing names."""
    checked = [column_name(name, columns) for name in names]
    twice = [name for i, name in enumerate(checked) if name in checked[:i]]
    if twice:
        raise BadValue(f"column {twice[0]!r} is listed twice.")
    return checked


def column_name(name: object, columns: Iterable[Hashable]) -> Hashable:
    """Return the name of one column, and refuse positions, lists, functions and unknown names.
    ``columns`` are the existing names."""
    if type(name) is str and isinstance(columns, dict) and name in columns:  # as most are given
        return name
    if callable(name):
        raise BadType(
            "a column is given by its name, not by a function: a function could see the data."
        )
    if isinstance(name, list | dict | set | np.ndarray):
        known = list(columns)
        several = name if isinstance(name, list) and all(n in known for n in name) else known[:2]
        raise BadType(
            f"one column by name is expected here, not {with_article(type(name).__name__)}. For "
            f"several, select them first: p[{several!r}].mean()."
        )
    names = list(columns)
    try:
        hits = [k for k in names if k is name or k == name]
    except (TypeError, ValueError):
        raise no_name(name) from None
    if not hits:
        raise unknown_column(name, names)
    return hits[0]


def no_name(value: object) -> BadType:
    """Return the error about a value that cannot be a column's name. For expressions of other
    libraries it says how to write conditions here."""
    if type(value).__module__.partition(".")[0] in _LIBRARIES:
        return BadType(
            "an expression of another library is not read here. Write it of the tracked columns, p[p['x'] > 1], or as text: "
            "p.query('x > 1'), p.assign(y='x + 1')."
        )
    return BadType(f"a column is given by its name, not by {with_article(type(value).__name__)}.")
