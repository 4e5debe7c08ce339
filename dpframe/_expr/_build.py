"""Constructors of expressions: they normalise constants, check kinds, and refuse what cannot be
meant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta
from itertools import pairwise
from typing import Any, Literal
from typing import cast as typed

import numpy as np
import pandas as pd

from dpframe import _pandas
from dpframe._errors import BadType, BadValue, with_article
from dpframe._expr._base import Constant, Expr, as_double
from dpframe._expr._kinds import CASTS, DTYPES, NO_KEYS, SAME
from dpframe._expr._nodes import (
    And,
    Arithmetic,
    Cast,
    Clip,
    Compare,
    Cut,
    Fill,
    IsIn,
    IsNull,
    MapDict,
    Not,
    Or,
    Round,
    Unary,
)
from dpframe._expr._ranges import ARITHMETIC
from dpframe._validate import among, length

# What may list public values; a Series or a frame may be people's data.
COLLECTIONS = (list, tuple, set, frozenset, range, np.ndarray, pd.Index)
_BITS = 1000  # of an integer constant
# A comparison with its sides exchanged.
FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

# ---- constants -----------------------------------------------------------------------------------


def constant(value: object, *, null: bool = False) -> Constant:
    """Return a public scalar as a constant of an expression; refuse what is no scalar.

    Scalars of numpy and pandas become Python's own numbers and Timestamps. Only with ``null`` a
    null is allowed.
    """
    if type(value) in (bool, str) or (type(value) is int and value.bit_length() <= _BITS):
        return Constant(value)  # most are plain already
    if isinstance(value, Constant):
        value = value.value
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = float(value) if isinstance(value, np.longdouble) else value.item()
    if isinstance(value, date | np.datetime64):
        value = pd.Timestamp(value)
    if isinstance(value, timedelta | np.timedelta64 | pd.offsets.Tick):
        value = _duration(value)
    for plain in (
        int,
        float,
    ):  # released numbers are subclasses; as constants they are what they show
        if isinstance(value, plain) and not isinstance(value, bool):
            value = plain(value)
    if (
        value is None
        or value is pd.NA
        or value is pd.NaT
        or (isinstance(value, float) and math.isnan(value))
    ):
        if null:
            return Constant(None)
        raise BadValue(
            "a null constant has no meaning here. Ask with isna() or notna(), or fill with "
            "fillna(constant)."
        )
    if type(value) is int and value.bit_length() > _BITS:
        raise BadValue(f"an integer constant of more than {_BITS} bits is not supported.")
    if isinstance(value, pd.Timestamp):
        _check_year(value)
    if type(value) in (bool, int, float, str, pd.Timestamp, pd.Timedelta):
        return Constant(value)
    if isinstance(value, pd.Interval) and isinstance(value.left, int | float | np.number):
        left, right = (
            e.item() if isinstance(e, np.integer) else e for e in (value.left, value.right)
        )
        return Constant(pd.Interval(left, right, value.closed))
    if isinstance(value, pd.Series | pd.DataFrame):
        raise BadType(
            "a Series or DataFrame could be people's data, not a public constant. Give plain "
            "Python values."
        )
    if isinstance(getattr(type(value), "answer", None), property):
        raise BadType(
            "a place in a batch is no constant. After the block write its number: "
            "p['x'].fillna(place.answer)."
        )
    raise BadType(
        "a constant must be a number, a string, a bool or a timestamp, not "
        f"{type(value).__name__}. "
        "Only public constants and this row's own columns can stand in an expression."
    )


def _check_year(value: pd.Timestamp) -> None:
    """Refuse a time with a zone outside the years 1 to 9999, which pandas cannot write."""
    try:
        repr(value)
    except (ValueError, NotImplementedError, OverflowError):
        raise BadValue(
            "a time with a zone has a year from 1 to 9999 here. Give another one."
        ) from None


def _duration(value: Any) -> Any:
    """Return a value as a pandas Timedelta; refuse what is no duration.

    A day has 24 hours.
    """
    try:
        return pd.Timedelta(value)
    except (ValueError, TypeError, OverflowError):
        raise BadValue(
            f"{value!r} is no duration. Write pd.Timedelta(days=7) or pd.Timedelta('12h')."
        ) from None


def listed(values: object, what: str = "isin") -> list[Any]:
    """Return the members of a public list as a list; refuse what may be people's data.

    ``what`` is the name of the function that needs them, for the message.
    """
    if isinstance(values, pd.Series | pd.DataFrame):
        raise BadType(
            f"{what} needs public values, and {with_article(type(values).__name__)} could be "
            "people's data. "
            "If the values are public, write list(...)."
        )
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise BadType(
            f"{what} needs a flat list of values, not an array of {values.ndim} dimensions."
        )
    if isinstance(values, COLLECTIONS):
        length(values, f"the values of {what}")
        return list(typed(Iterable[Any], values))
    raise BadType(
        f"{what} needs a list of public values, such as ['a', 'b'], not {type(values).__name__}."
    )


def _moment(c: Constant, x: Expr) -> Constant:
    """Return the time that an expression of times is compared with, which may be given as a text.

    ``x`` is that expression. A text without a zone is read in its zone.
    """
    value = c.value
    if isinstance(value, str):
        try:
            value = pd.Timestamp(value)
            if not _pandas.isna(value) and value.tz is None and x.tz is not None:
                # pandas reads such a string in the column's zone
                value = value.tz_localize(x.tz, ambiguous=True, nonexistent="shift_forward")
                _check_year(value)
        except (ValueError, TypeError, OverflowError, NotImplementedError):
            raise BadValue(
                f"{c.value!r} is no date. Write it as '2024-01-31' or '2024-01-31 12:00'."
            ) from None
        if _pandas.isna(value):
            raise BadValue(f"{c.value!r} is no date. Ask for nulls with isna().")
    if isinstance(value, pd.Timestamp) and (value.tz is None) != (x.tz is None):
        have, want = (
            ("no time zone", f"the zone {x.tz}")
            if value.tz is None
            else (f"the zone {value.tz}", "none")
        )
        raise BadType(f"{value} has {have}, and {x} has {want}. Give both a zone, or neither.")
    return Constant(value)


def _length(c: Constant) -> Constant:
    """Return the duration that is compared with others, which may be given as a text."""
    if isinstance(c.value, str):
        value = _duration(c.value)
        if value is pd.NaT:
            raise BadValue(f"{c.value!r} is no duration. Ask for nulls with isna().")
        return Constant(value)
    return c


def describe(x: Expr) -> str:
    return f"{x} ({x.kind})"


def _match(x: Expr, value: object, *, null: bool = False) -> Constant:
    """Return a constant that is compared with an expression; refuse it if they can never be equal.

    ``x`` is the expression. Only with ``null`` the constant may be null.
    """
    known = isinstance(value, Constant) and value.value is not None
    c = typed(Constant, value) if known else constant(value, null=null)
    if c.value is None or x.kind == "label":
        return c
    if x.kind == "time" and c.kind in ("time", "text"):
        return _moment(c, x)
    if x.kind == "duration" and c.kind in ("duration", "text"):
        return _length(c)
    same = x.kind == c.kind or {x.kind, c.kind} == {"number", "bool"}
    if x.kind == "other" or not same:
        raise BadType(f"{describe(x)} can never equal {describe(c)}. {_advice(x)}")
    return c


def _advice(x: Expr) -> str:
    """Return a sentence for a message that says what can be done with such an expression."""
    return {
        "number": "Give a number.",
        "bool": "Give True or False.",
        "text": "Give a string in quotes.",
        "label": "Such a column has equality, isin, isna, map and string parts only.",
        "time": "Give a date such as '2024-01-31'.",
        "duration": "Give a duration such as pd.Timedelta(days=7), or '7 days'.",
        "other": "Such a column has isna() and notna() only.",
    }[x.kind]


def _numeric(x: Expr, what: str) -> None:
    """Refuse an expression that is no number; ``what`` names the operation, for the message."""
    if x.kind not in ("number", "bool"):
        raise BadType(
            f"{what} needs numbers, and {describe(x)} is not one. {suggest_conversion(x)}"
        )


def suggest_conversion(x: Expr) -> str:
    """Return a sentence for a message that says how an expression becomes a number."""
    if x.kind == "time":
        return "Take a part of it, such as .dt.year."
    if x.kind == "duration":
        return "Take it in seconds or days first: .dt.total_seconds(), .dt.days."
    if x.kind in ("text", "label"):
        return "Take .str.len(), map it to numbers with a dict, or convert it before opening the session."
    return "Convert the column before opening the session."


def _boolean(x: Expr, what: str) -> None:
    """Refuse an expression that is no condition; ``what`` names the operation, for the message."""
    if x.kind != "bool":
        raise BadType(
            f"{what} needs conditions (true or false), and {describe(x)} is not one. Compare it "
            "with something; a condition that "
            "is written as text goes to query('x > 1')."
        )


# ---- constructors: one per operation -------------------------------------------------------------


def arithmetic(op: str, left: Expr, right: Expr) -> Expr:
    """Return the expression ``left op right`` of two numbers.

    ``op`` is an operator such as "+" or "//"; others are refused.
    """
    if op not in ARITHMETIC:
        raise BadValue(f"unknown operator {op!r}. Use one of {', '.join(ARITHMETIC)}.")
    _numeric(left, op)
    _numeric(right, op)
    return Arithmetic(op, left, right)


def negate(x: Expr) -> Expr:
    _numeric(x, "-")
    return Unary(x, "-")


def absolute(x: Expr) -> Expr:
    _numeric(x, "abs")
    return Unary(x, "abs")


def round_to(x: Expr, decimals: object = 0) -> Expr:
    """Return the expression that rounds a number to some decimals, half to even."""
    _numeric(x, "round")
    n = constant(decimals).value
    if type(n) is not int or not -300 <= n <= 300:
        raise BadValue(f"round needs a whole number of digits, such as 2, not {decimals!r}.")
    return x if x.integral and n >= 0 else Round(x, n)


def compare(op: str, left: Expr, right: Expr) -> Expr:
    """Return the condition ``left op right``, where ``op`` is such as "==" or "<".

    It refuses what can never be equal, such as a number and a text, and labels that have no order.
    """
    if op not in FLIPPED:
        raise BadValue(f"unknown comparison {op!r}. Use one of {', '.join(FLIPPED)}.")
    if isinstance(left, Constant) and not isinstance(right, Constant):
        return compare(FLIPPED[op], right, left)
    for side in (left, right):
        if side.kind == "other":
            raise BadType(f"{describe(side)} cannot be compared. {_advice(side)}")
    if isinstance(right, Constant):
        right = _match(left, right)
    elif left.kind == right.kind == "duration":
        pass
    elif left.kind == right.kind == "time":
        if (left.tz is None) != (right.tz is None):
            raise BadType(
                f"one of {left} and {right} has a time zone, the other has none. Give both one, or "
                "neither."
            )
    elif not (
        {left.kind, right.kind} <= {"number", "bool"}
        or {left.kind, right.kind} <= {"text", "label"}
    ):
        raise BadType(
            f"{describe(left)} can never equal {describe(right)}. Compare columns of one kind."
        )
    if op not in ("==", "!=") and "label" in (left.kind, right.kind):
        raise BadType(
            f"{describe(left)} {op} {describe(right)}: labels have no order that their dtype "
            "guarantees. "
            "Use == or isin, or convert the column before opening the session."
        )
    return Compare(op, left, right)


def logical_and(left: Expr, right: Expr) -> Expr:
    _boolean(left, "and")
    _boolean(right, "and")
    return And(left, right)


def logical_or(left: Expr, right: Expr) -> Expr:
    _boolean(left, "or")
    _boolean(right, "or")
    return Or(left, right)


def logical_not(x: Expr) -> Expr:
    _boolean(x, "not")
    return Not(x)


def is_in(x: Expr, values: object) -> Expr:
    """Return the condition that a cell is in a public list; refuse values that no cell can equal.

    Order and repeats of the list are dropped.
    """
    members = {c.tag: c for c in (_match(x, v, null=True) for v in listed(values))}
    if x.kind in NO_KEYS and any(c.value is not None for c in members.values()):
        raise BadType(f"isin does not work on {describe(x)}. {_advice(x)}")
    return IsIn(x, tuple(members[tag] for tag in sorted(members)))


def between(x: Expr, left: object, right: object, inclusive: str = "both") -> Expr:
    """Return the condition that an expression lies between two values.

    ``inclusive`` says which of them it may equal: "both", "neither", "left" or "right".
    """
    if not among(inclusive, ("both", "neither", "left", "right")):
        raise BadValue(
            f"inclusive must be 'both', 'neither', 'left' or 'right', not {inclusive!r}."
        )
    low, high = (v if isinstance(v, Expr) else constant(v) for v in (left, right))
    above = ">=" if inclusive in ("both", "left") else ">"
    below = "<=" if inclusive in ("both", "right") else "<"
    return And(compare(above, x, low), compare(below, x, high))


def is_null(x: Expr) -> Expr:
    return IsNull(x)


def not_null(x: Expr) -> Expr:
    return Not(IsNull(x))


def fill(x: Expr, value: object) -> Expr:
    """Return an expression with a constant in place of its nulls.

    A constant of another kind, such as a text among numbers, is refused.
    """
    c = _match(x, value)
    if {x.kind, c.kind} == {"number", "bool"} or x.kind == "other":
        raise BadType(f"nulls of {describe(x)} cannot be filled with {describe(c)}. {_advice(x)}")
    return Fill(x, c) if x.nullable else x


def clip(x: Expr, lower: object = None, upper: object = None) -> Expr:
    """Return the expression that moves a number into the interval from ``lower`` to ``upper``."""
    if x.kind != "number":
        raise BadType(f"clip needs numbers, and {describe(x)} is not one. {suggest_conversion(x)}")
    ends = [None if v is None else constant(v) for v in (lower, upper)]
    for c in ends:
        if c is not None and c.kind != "number":
            raise BadType(f"clip needs numbers as its limits, not {describe(c)}.")
    low, high = ends
    if low is not None and high is not None and low.value > high.value:
        raise BadValue(f"clip limits are reversed: ({low}, {high}).")
    return Clip(x, low, high) if low is not None or high is not None else x


def cast(x: Expr, to: object) -> Expr:
    """Return an expression converted as by ``astype``, to float, int, bool or str.

    Conversions that could fail on a value are refused by dtype.
    """
    name = (to.__name__ if isinstance(to, type) else str(to)).lower()
    name = "category" if isinstance(to, pd.CategoricalDtype) else DTYPES.get(name, name)
    if name in SAME:
        return x
    textual = x.kind in ("text", "label")
    if name.startswith("datetime64") and (textual or x.kind == "time") and "," not in name:
        return CASTERS["time"](x)
    if name not in CASTS:
        raise BadValue(f"astype goes to float, int, bool or str, not {name}.")
    if textual and name in ("float", "int"):
        number = CASTERS["float"](x)
        return number if name == "float" else Cast(number, "int")
    numeric = x.kind in ("number", "bool")
    ok = numeric if name != "str" else x.kind in ("text", "label") or (numeric and x.integral)
    if not ok:
        advice = (
            "Round it and cast it to int first."
            if x.kind == "number"
            else "Convert it before opening the session."
        )
        raise BadType(f"{describe(x)} cannot become {name} without looking at its values. {advice}")
    same = x.kind == CASTS[name] and (name != "int" or x.integral) and name != "float"
    return x if same else Cast(x, typed(Literal["float", "int", "bool", "str"], name))


def cut(x: Expr, edges: object, labels: object = None, right: object = True) -> Expr:
    """Return the expression that puts each number into an interval between edges, as ``pd.cut``.

    ``labels`` name the intervals; with None each stands for itself. ``right`` says whether
    intervals include their right edge.
    """
    _numeric(x, "cut")
    if isinstance(edges, int | np.integer):
        raise BadType(
            "a number of bins would look at the data. Give the edges, such as [0, 18, 65, 110]."
        )
    ends = [constant(e) for e in listed(edges, "cut")]
    if len(ends) < 2 or any(c.kind != "number" for c in ends):
        raise BadValue(
            "cut needs at least two edges, all of them numbers, such as [0, 18, 65, 110]."
        )
    # Intervals between whole numbers have these for ends, as in pandas; labels have none.
    whole = labels is None and all(type(c.value) is int and abs(c.value) <= 2**53 for c in ends)
    points = tuple(c.value if whole else as_double(c) for c in ends)
    if any(a >= b for a, b in pairwise(points)):
        raise BadValue("the edges of cut must increase.")
    if not isinstance(right, bool | np.bool_):
        raise BadType(f"right must be True or False, not {right!r}.")
    names = None if labels is None else tuple(constant(v) for v in _labels(labels))
    if names is not None and (
        len(names) != len(points) - 1 or len({c.tag for c in names}) < len(names)
    ):
        raise BadValue(
            f"cut needs {len(points) - 1} different labels, one per interval, not {len(names)}."
        )
    return Cut(x, points, names, bool(right))


def _labels(labels: object) -> list[Any]:
    """Return the labels of ``cut`` as a list; refuse a bool, which would mean numbers."""
    if isinstance(labels, bool):
        raise BadType(
            "cut needs labels as a list, such as ['young', 'old'], or range(n) for numbers."
        )
    return listed(labels, "labels")


def map_dict(x: Expr, mapping: object) -> Expr:
    """Return the expression that looks each cell up in a public dict.

    What is not in the dict becomes null.
    """
    if not isinstance(mapping, Mapping) or not mapping:
        raise BadType(f"map needs a public dict that is not empty, not {type(mapping).__name__}.")
    keys = tuple(_match(x, k, null=True) for k in mapping)
    values = tuple(constant(v, null=True) for v in mapping.values())
    if x.kind in NO_KEYS:
        raise BadType(f"map does not work on {describe(x)}. {_advice(x)}")
    return MapDict(x, keys, values)


# What a string expression may call on a value: pandas' names, and constructors whose parameters are
# named as pandas' are.
METHODS: dict[str, Callable[..., Expr]] = {
    "isin": is_in,
    "between": between,
    "isna": is_null,
    "isnull": is_null,
    "notna": not_null,
    "notnull": not_null,
    "fillna": fill,
    "clip": clip,
    "abs": absolute,
    "round": round_to,
}


def astype(x: Expr, dtype: object) -> Expr:
    """Return an expression converted to a dtype, as `cast` does, by pandas' name of its
    parameter."""
    return cast(x, dtype)


METHODS.update(astype=astype)
# What texts are read as, by functions that stand where they are defined.
CASTERS: dict[str, Callable[[Expr], Expr]] = {}
# Functions that it may call beside those of the catalogue.
CALLS: dict[str, Callable[..., Expr]] = {"abs": absolute}
