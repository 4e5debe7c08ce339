"""Row-wise expressions: what a cell becomes, given the other cells of its own row and nothing else.

An expression is a frozen tree. It knows its kind, whether it can be null, whether it is integer-valued and
how bounds travel through it, all from dtypes and constants: no method here ever sees a value of the frame.
The constructor functions (`compare`, `arithmetic`, `is_in`, ...) check the kinds; engines evaluate what they
return.

*Formal guarantee.* Every node is a function of one row. A filter or a new column made of such nodes changes,
when a person is added or removed, that person's rows only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from fractions import Fraction
from importlib import import_module
from itertools import pairwise
from typing import Any, Literal
from typing import cast as typed

import numpy as np
import pandas as pd

from dpframe._errors import BadExpression, BadType, BadValue

Kind = Literal["number", "bool", "text", "label", "time", "other"]
Interval = tuple[float, float] | None
# What is known about a column's values; None when nothing is.
Lookup = Callable[["Column"], Interval]

# A tree may share branches (x + x of x + x), so its size is bounded as well as its depth.
MAX_DEPTH = 100
MAX_SIZE = 20_000
# No integer dtype reaches beyond this, so integer columns are finite even when no bounds are declared.
_INTEGERS = (-(2.0**64), 2.0**64)


@dataclass(frozen=True, slots=True)
class Expr:
    """A function of one row. A predicate that is never null, unless the class says otherwise."""

    depth: int = field(init=False, compare=False, repr=False, default=1)
    size: int = field(init=False, compare=False, repr=False, default=1)

    def __post_init__(self) -> None:
        below = self.children
        object.__setattr__(self, "depth", 1 + max((c.depth for c in below), default=0))
        object.__setattr__(self, "size", 1 + sum(c.size for c in below))
        if self.depth > MAX_DEPTH or self.size > MAX_SIZE:
            raise BadExpression(
                "the expression is nested too deeply. Split it into several columns or filters."
            )

    @property
    def kind(self) -> Kind:
        return "bool"

    @property
    def nullable(self) -> bool:
        """Can the value be null, as far as dtypes and constants tell?"""
        return False

    @property
    def integral(self) -> bool:
        """Is every finite value provably an integer?"""
        return self.kind == "bool"

    @property
    def tz(self) -> str | None:
        """The time zone of a time expression; None is naive."""
        return None

    @property
    def children(self) -> tuple[Expr, ...]:
        found = (getattr(self, f.name) for f in fields(self))
        return tuple(c for c in found if isinstance(c, Expr))

    def columns(self) -> frozenset[Column]:
        return frozenset[Column]().union(*(c.columns() for c in self.children))

    def interval(self, lookup: Lookup) -> Interval:
        """A closed interval that holds every value, from what `lookup` says of the columns."""
        return (0.0, 1.0) if self.kind == "bool" else None

    def bounds(self, declared: Mapping[int, tuple[float, float]]) -> Interval:
        """A closed interval that holds every value, if the columns are clipped to their declared bounds."""
        return self.interval(lambda column: declared.get(column.position))

    @property
    def finite(self) -> bool:
        """Provably neither infinite nor NaN, whatever the columns hold."""
        return not self.nullable and self.interval(lambda c: _INTEGERS if c.integral else None) is not None

    def to_json(self) -> Any:
        body = {f.name: _json(getattr(self, f.name)) for f in fields(self) if f.compare}
        return {"node": type(self).__name__, **body}


def _json(value: object) -> Any:
    if isinstance(value, Expr):
        return value.to_json()
    return [_json(v) for v in value] if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """A root column. Its position identifies it: names change, and 1, 1.0 and True are one name to a dict."""

    position: int = 0
    name: Hashable = None
    kind: Kind = "other"
    nullable: bool = True
    integral: bool = False
    tz: str | None = None

    @classmethod
    def of(cls, position: int, name: Hashable, dtype: Any) -> Column:
        """The column with everything that its dtype tells."""
        kind = kind_of(dtype)
        plain = isinstance(dtype, np.dtype) and dtype.kind in "biu"
        whole = kind == "bool" or (kind == "number" and _whole(dtype))
        return cls(position, name, kind, nullable=not plain, integral=whole, tz=_zone(dtype))

    def columns(self) -> frozenset[Column]:
        return frozenset({self})

    def interval(self, lookup: Lookup) -> Interval:
        if self.kind == "bool":
            return (0.0, 1.0)
        return lookup(self) if self.kind == "number" else None

    def to_json(self) -> Any:
        return {"column": str(self.name), "position": self.position}

    def __str__(self) -> str:
        name = str(self.name)
        return name if name.isidentifier() else f"`{name}`"


@dataclass(frozen=True, slots=True)
class Constant(Expr):
    """A public literal. 1, 1.0, True and -0.0 differ, because the tag says the type."""

    value: Any = field(compare=False, default=None)
    tag: str = field(init=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "tag", f"{type(self.value).__name__}:{self.value!r}")

    @property
    def kind(self) -> Kind:
        return kind_of_value(self.value)

    @property
    def nullable(self) -> bool:
        return self.value is None

    @property
    def integral(self) -> bool:
        return isinstance(self.value, int) or (isinstance(self.value, float) and self.value.is_integer())

    @property
    def tz(self) -> str | None:
        zone = self.value.tz if isinstance(self.value, pd.Timestamp) else None
        return None if zone is None else str(zone)

    def interval(self, lookup: Lookup) -> Interval:
        if self.kind in ("number", "bool") and math.isfinite(self.value):
            return _outward(Fraction(self.value), Fraction(self.value))
        return None

    def to_json(self) -> Any:
        v = self.value
        plain = isinstance(v, bool | int | str) or v is None or (isinstance(v, float) and math.isfinite(v))
        return {type(v).__name__: v if plain else str(v)}

    def __str__(self) -> str:
        return repr(str(self.value)) if isinstance(self.value, pd.Timestamp) else repr(self.value)


@dataclass(frozen=True, slots=True)
class Arithmetic(Expr):
    """``left op right`` in float64, bools as 0 and 1; a null operand or a NaN result is null."""

    op: str
    left: Expr
    right: Expr

    @property
    def kind(self) -> Kind:
        return "number"

    @property
    def nullable(self) -> bool:
        # Finite operands of + - * may overflow to inf, but never to NaN.
        return self.op not in ("+", "-", "*") or not (self.left.finite and self.right.finite)

    @property
    def integral(self) -> bool:
        return self.op in ("+", "-", "*") and self.left.integral and self.right.integral

    def interval(self, lookup: Lookup) -> Interval:
        a, b = self.left.interval(lookup), self.right.interval(lookup)
        return None if a is None or b is None else _ARITHMETIC[self.op](a, b)

    def __str__(self) -> str:
        return f"{_part(self.left)} {self.op} {_part(self.right)}"


@dataclass(frozen=True, slots=True)
class _Same(Expr):
    """A node whose value is of the kind of its operand, and null with it."""

    x: Expr

    @property
    def kind(self) -> Kind:
        return self.x.kind

    @property
    def nullable(self) -> bool:
        return self.x.nullable

    @property
    def integral(self) -> bool:
        return self.x.integral

    @property
    def tz(self) -> str | None:
        return self.x.tz


@dataclass(frozen=True, slots=True)
class Unary(_Same):
    """``-x`` or ``abs(x)``, in float64."""

    op: str

    @property
    def kind(self) -> Kind:
        return "number"

    def interval(self, lookup: Lookup) -> Interval:
        a = self.x.interval(lookup)
        if a is None or self.op == "-":
            return a and (-a[1], -a[0])
        low, high = sorted((abs(a[0]), abs(a[1])))
        return (0.0 if a[0] <= 0 <= a[1] else low, high)

    def __str__(self) -> str:
        return f"-{_owner(self.x)}" if self.op == "-" else f"{_owner(self.x)}.abs()"


@dataclass(frozen=True, slots=True)
class Round(_Same):
    """``x.round(digits)``: half to even, as numpy scales and rounds."""

    digits: int

    @property
    def integral(self) -> bool:
        return self.digits <= 0 or self.x.integral

    def interval(self, lookup: Lookup) -> Interval:
        a = self.x.interval(lookup)
        if a is None:
            return None
        with np.errstate(all="ignore"):  # scaling, rounding and unscaling are each monotone, so ends suffice
            low, high = (float(np.round(np.float64(v), self.digits)) for v in a)
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None

    def __str__(self) -> str:
        return f"{_owner(self.x)}.round({self.digits})"


@dataclass(frozen=True, slots=True)
class Compare(Expr):
    """``left op right``. With a null on either side it is False, except that != is True."""

    op: str
    left: Expr
    right: Expr

    def __str__(self) -> str:
        return f"{_part(self.left)} {self.op} {_part(self.right)}"


@dataclass(frozen=True, slots=True)
class And(Expr):
    """Both are true; null counts as False."""

    left: Expr
    right: Expr

    def __str__(self) -> str:
        return f"{_part(self.left)} & {_part(self.right)}"


@dataclass(frozen=True, slots=True)
class Or(Expr):
    """At least one is true; null counts as False."""

    left: Expr
    right: Expr

    def __str__(self) -> str:
        return f"{_part(self.left)} | {_part(self.right)}"


@dataclass(frozen=True, slots=True)
class Not(Expr):
    """The plain negation of a two-valued answer: the negation of null is True."""

    x: Expr

    def __str__(self) -> str:
        return f"~{_part(self.x)}"


@dataclass(frozen=True, slots=True)
class IsIn(Expr):
    """Equal to one of the values; a null cell only if a null is listed."""

    x: Expr
    values: tuple[Constant, ...]

    def __str__(self) -> str:
        return f"{_owner(self.x)}.isin([{_listing(self.values)}])"


@dataclass(frozen=True, slots=True)
class IsNull(Expr):
    """None, NaN, NA, NaT and Arrow's null are one thing."""

    x: Expr

    def __str__(self) -> str:
        return f"{_owner(self.x)}.isna()"


@dataclass(frozen=True, slots=True)
class Fill(_Same):
    """Null cells become the constant."""

    value: Constant

    @property
    def nullable(self) -> bool:
        return False

    @property
    def integral(self) -> bool:
        return self.x.integral and self.value.integral

    def interval(self, lookup: Lookup) -> Interval:
        a, b = self.x.interval(lookup), self.value.interval(lookup)
        return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))

    @property
    def finite(self) -> bool:
        return self.interval(lambda c: _INTEGERS if c.integral else None) is not None

    def __str__(self) -> str:
        return f"{_owner(self.x)}.fillna({self.value})"


@dataclass(frozen=True, slots=True)
class Clip(_Same):
    """Values are moved into [lower, upper]; null stays null (other clips turn NaN into a bound)."""

    lower: Constant | None
    upper: Constant | None

    @property
    def integral(self) -> bool:
        return self.x.integral and all(c is None or c.integral for c in (self.lower, self.upper))

    def interval(self, lookup: Lookup) -> Interval:
        low, high = self.x.interval(lookup) or (-math.inf, math.inf)
        floor = -math.inf if self.lower is None else _double(self.lower)
        ceiling = math.inf if self.upper is None else _double(self.upper)
        low, high = (min(max(v, floor), ceiling) for v in (low, high))
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None

    def __str__(self) -> str:
        return f"{_owner(self.x)}.clip({self.lower}, {self.upper})"


@dataclass(frozen=True, slots=True)
class Cast(_Same):
    """``astype``: int truncates towards zero, and what has no counterpart (inf as int) is null."""

    to: Literal["float", "int", "bool", "str"]

    @property
    def kind(self) -> Kind:
        return _CASTS[self.to]

    @property
    def nullable(self) -> bool:
        return self.x.nullable or (self.to == "int" and not self.x.finite)

    @property
    def integral(self) -> bool:
        return self.to in ("int", "bool") or self.x.integral

    def interval(self, lookup: Lookup) -> Interval:
        a = self.x.interval(lookup)
        if self.to == "bool":
            return (0.0, 1.0)
        return a and ((float(math.trunc(a[0])), float(math.trunc(a[1]))) if self.to == "int" else a)

    def __str__(self) -> str:
        return f"{_owner(self.x)}.astype({self.to!r})"


@dataclass(frozen=True, slots=True)
class Cut(Expr):
    """``pd.cut`` with given edges: a label per interval, null outside."""

    x: Expr
    edges: tuple[float, ...]
    labels: tuple[Constant, ...] | None
    right: bool

    @property
    def kind(self) -> Kind:
        return "label"

    @property
    def nullable(self) -> bool:
        return True

    @property
    def categories(self) -> tuple[Any, ...]:
        """The labels, or the very intervals that pandas would make of the edges; public, as the edges are."""
        if self.labels is not None:
            return tuple(c.value for c in self.labels)
        empty: Any = pd.cut(np.array([], dtype=float), list(self.edges), right=self.right)
        return tuple(empty.categories)

    def to_json(self) -> Any:
        edges = [e if math.isfinite(e) else str(e) for e in self.edges]
        return {
            "node": "Cut",
            "x": _json(self.x),
            "edges": edges,
            "labels": _json(self.labels),
            "right": self.right,
        }

    def __str__(self) -> str:
        labels = "" if self.labels is None else f", labels=[{_listing(self.labels)}]"
        return f"cut({self.x}, {list(self.edges)}{labels}, right={self.right})"


@dataclass(frozen=True, slots=True)
class MapDict(Expr):
    """``Series.map`` with a public dict: what is not in it becomes null."""

    x: Expr
    keys: tuple[Constant, ...]
    values: tuple[Constant, ...]

    @property
    def kind(self) -> Kind:
        kinds = {v.kind for v in self.values if v.value is not None}
        if kinds == {"number", "bool"}:
            return "number"
        if len(kinds) != 1 or len({v.tz for v in self.values if v.value is not None}) > 1:
            return "label"
        return kinds.pop()

    @property
    def nullable(self) -> bool:
        return True

    @property
    def integral(self) -> bool:
        return self.kind in ("number", "bool") and all(v.integral for v in self.values if v.value is not None)

    @property
    def tz(self) -> str | None:
        return next((v.tz for v in self.values), None) if self.kind == "time" else None

    def interval(self, lookup: Lookup) -> Interval:
        if self.kind not in ("number", "bool"):
            return None
        found = [v.interval(lookup) for v in self.values if v.value is not None]
        known = [f for f in found if f is not None]
        return (min(f[0] for f in known), max(f[1] for f in known)) if len(known) == len(found) else None

    def __str__(self) -> str:
        pairs = [f"{k}: {v}" for k, v in zip(self.keys[:5], self.values[:5], strict=True)]
        return f"{_owner(self.x)}.map({{{', '.join(pairs)}{', ...' if len(self.keys) > 5 else ''}}})"


@dataclass(frozen=True, slots=True)
class StrPart(Expr):
    """``x.str.method(args)``. Cells that are no strings give null."""

    x: Expr
    method: str
    args: tuple[Constant, ...] = ()

    @property
    def kind(self) -> Kind:
        return _TEXT[self.method][0]

    @property
    def nullable(self) -> bool:
        # As pandas' own string dtype has it: a yes-or-no question about a null string is answered with no.
        return self.kind != "bool" or self.x.kind != "text"

    @property
    def integral(self) -> bool:
        return self.kind in ("number", "bool")

    def __str__(self) -> str:
        return f"{_owner(self.x)}.str.{self.method}({', '.join(map(str, self.args))})"


@dataclass(frozen=True, slots=True)
class DatePart(Expr):
    """``x.dt.part``, in the local time of the column."""

    x: Expr
    part: str

    @property
    def kind(self) -> Kind:
        return _DATES[self.part][0]

    @property
    def nullable(self) -> bool:
        return self.x.nullable

    @property
    def integral(self) -> bool:
        return self.kind == "number"

    @property
    def tz(self) -> str | None:
        return self.x.tz if self.part == "normalize" else None

    def interval(self, lookup: Lookup) -> Interval:
        return _DATES[self.part][1]

    def __str__(self) -> str:
        return f"{_owner(self.x)}.dt.{self.part}" + ("()" if _DATES[self.part][0] != "number" else "")


# ---- what the tables above refer to -----------------------------------------------------------------------

_CASTS: dict[str, Kind] = {"float": "number", "int": "number", "bool": "bool", "str": "text"}
_DTYPES = {"float64": "float", "int64": "int", "boolean": "bool", "string": "str"}
_FLIP = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_DATES: dict[str, tuple[Kind, Interval]] = {
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
_DATE_NAMES = {"weekday": "dayofweek", "day_of_week": "dayofweek", "day_of_year": "dayofyear"}

# method: kind of the result, and its parameters as (name, types, default); ... marks a required one.
_INT: tuple[type, ...] = (int,)
_MAYBE_INT = (int, type(None))
_STRIP = (("to_strip", (str, type(None)), None),)
_TEXT: dict[str, tuple[Kind, tuple[tuple[str, tuple[type, ...], Any], ...]]] = {
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


def _outward(low: Fraction, high: Fraction, *, ulps: int = 0) -> Interval:
    """The doubles around an exact interval: exact ends stay as they are, others move outwards."""
    try:
        a, b = float(low), float(high)
    except OverflowError:
        return None
    for _ in range(ulps + (Fraction(a) > low)):
        a = math.nextafter(a, -math.inf)
    for _ in range(ulps + (Fraction(b) < high)):
        b = math.nextafter(b, math.inf)
    return (a + 0.0, b + 0.0) if math.isfinite(a) and math.isfinite(b) else None


_Pair = tuple[float, float]


def _corners(a: _Pair, b: _Pair, f: Callable[[Fraction, Fraction], Fraction]) -> list[Fraction]:
    return [f(Fraction(x), Fraction(y)) for x in a for y in b]


def _add(a: _Pair, b: _Pair) -> Interval:
    return _outward(Fraction(a[0]) + Fraction(b[0]), Fraction(a[1]) + Fraction(b[1]))


def _multiply(a: _Pair, b: _Pair) -> Interval:
    ends = _corners(a, b, lambda x, y: x * y)
    return _outward(min(ends), max(ends))


def _divide(a: _Pair, b: _Pair) -> Interval:
    if b[0] <= 0 <= b[1]:
        return None
    ends = _corners(a, b, lambda x, y: x / y)
    return _outward(min(ends), max(ends))


def _floor_divide(a: _Pair, b: _Pair) -> Interval:
    if b[0] <= 0 <= b[1]:
        return None
    ends = [math.floor(q) for q in _corners(a, b, lambda x, y: x / y)]
    # Above 2**50 numpy's quotient is a rounded one; below, it is the exact floor.
    return _outward(Fraction(min(ends)), Fraction(max(ends)), ulps=4 if max(map(abs, ends)) > 2**50 else 0)


def _modulo(a: _Pair, b: _Pair) -> Interval:
    if b[0] <= 0 <= b[1]:
        return None
    return (0.0, b[1]) if b[0] > 0 else (b[0], 0.0)  # the sign of the divisor, closed because of rounding


def _power(a: _Pair, b: _Pair) -> Interval:
    whole = b[0] == b[1] and b[0] >= 0 and b[0].is_integer()
    if not whole and (a[0] < 0 or (a[0] == 0 and b[0] < 0)):
        return None  # negative bases have NaN for most exponents, and zero has inf for negative ones
    try:
        ends = [Fraction(math.pow(x, y)) for x in a for y in b]
    except OverflowError:
        return None
    if whole and b[0] > 0 and b[0] % 2 == 0 and a[0] < 0 < a[1]:
        ends.append(Fraction(0))
    found = _outward(min(ends), max(ends), ulps=4)  # pow is not correctly rounded
    return found if found is None or min(ends) < 0 else (max(0.0, found[0]), found[1])


_ARITHMETIC: dict[str, Callable[[_Pair, _Pair], Interval]] = {
    "+": _add,
    "-": lambda a, b: _add(a, (-b[1], -b[0])),
    "*": _multiply,
    "/": _divide,
    "//": _floor_divide,
    "%": _modulo,
    "**": _power,
}


def _part(x: Expr) -> str:
    """The text of an operand: in parentheses when it is an operation of two sides itself."""
    return f"({x})" if isinstance(x, Arithmetic | Compare | And | Or) else str(x)


def _owner(x: Expr) -> str:
    """The text of what a method is called on: a sign in front would belong to the result."""
    text = _part(x)
    return f"({text})" if text[0] in "-~" else text


def _listing(values: Sequence[Constant]) -> str:
    return ", ".join(map(str, values[:5])) + (", ..." if len(values) > 5 else "")


def _double(value: Constant) -> float:
    return float(value.value)


# ---- kinds ------------------------------------------------------------------------------------------------

_MASKED = (
    *(pd.Int8Dtype, pd.Int16Dtype, pd.Int32Dtype, pd.Int64Dtype, pd.Float32Dtype, pd.Float64Dtype),
    *(pd.UInt8Dtype, pd.UInt16Dtype, pd.UInt32Dtype, pd.UInt64Dtype),
)
_NUMPY: dict[str, Kind] = {
    "b": "bool",
    "i": "number",
    "u": "number",
    "f": "number",
    "M": "time",
    "O": "label",
}


def kind_of(dtype: Any) -> Kind:
    """What can be done with a column, from its dtype alone."""
    if isinstance(dtype, np.dtype):
        return _NUMPY.get(dtype.kind, "other")
    if isinstance(dtype, pd.SparseDtype):
        return kind_of(dtype.subtype)
    if isinstance(dtype, pd.CategoricalDtype):
        return (
            "text" if dtype.categories is not None and kind_of(dtype.categories.dtype) == "text" else "label"
        )
    if isinstance(dtype, pd.StringDtype):
        return "text"
    if isinstance(dtype, pd.BooleanDtype):
        return "bool"
    if isinstance(dtype, pd.DatetimeTZDtype):
        return _kind_of_zoned(_zone(dtype))
    if isinstance(dtype, pd.ArrowDtype):
        return _kind_of_arrow(dtype.pyarrow_dtype)
    return "number" if isinstance(dtype, _MASKED) else "other"


def _kind_of_zoned(zone: str | None) -> Kind:
    """Zones without a name (a dateutil file) cannot be written down, so their columns have null tests only."""
    try:
        pd.Timestamp(0, tz=zone)
    except (ValueError, KeyError, TypeError, OSError):
        return "other"
    return "time"


def _kind_of_arrow(dtype: Any) -> Kind:
    types: Any = import_module("pyarrow.types")  # there is such a dtype, so pyarrow is there
    if types.is_dictionary(dtype):
        return "text" if _kind_of_arrow(dtype.value_type) == "text" else "label"
    if types.is_boolean(dtype):
        return "bool"
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return "number"
    if types.is_timestamp(dtype) or types.is_date(dtype):
        return _kind_of_zoned(getattr(dtype, "tz", None))
    view = getattr(types, "is_string_view", lambda _: False)
    return "text" if types.is_string(dtype) or types.is_large_string(dtype) or view(dtype) else "other"


def _whole(dtype: Any) -> bool:
    """Does a number dtype hold integers only?"""
    if isinstance(dtype, pd.SparseDtype):
        return _whole(np.dtype(dtype.subtype)) and not pd.isna(dtype.fill_value)
    if isinstance(dtype, pd.ArrowDtype):
        types: Any = import_module("pyarrow.types")
        return bool(types.is_integer(dtype.pyarrow_dtype))
    return getattr(dtype, "kind", "") in ("i", "u")


def _zone(dtype: Any) -> str | None:
    if isinstance(dtype, pd.ArrowDtype):
        zone: Any = getattr(dtype.pyarrow_dtype, "tz", None)
        return None if zone is None else str(zone)
    return str(dtype.tz) if isinstance(dtype, pd.DatetimeTZDtype) else None


def kind_of_value(value: object) -> Kind:
    """The kind of a normalised constant."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, pd.Timestamp):
        return "time"
    return "label" if isinstance(value, pd.Interval) else "other"


# What may list public values; a Series or a frame may be people's data.
COLLECTIONS = (list, tuple, set, frozenset, range, np.ndarray, pd.Index)

# ---- constants --------------------------------------------------------------------------------------------


def constant(value: object, *, null: bool = False) -> Constant:
    """A public scalar, normalised: numpy scalars to Python's, dates to Timestamps, every null to None."""
    if isinstance(value, Constant):
        value = value.value
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = float(value) if isinstance(value, np.longdouble) else value.item()
    if isinstance(value, date | np.datetime64):
        value = pd.Timestamp(value)
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        if null:
            return Constant(None)
        raise BadValue(
            "a null constant has no meaning here. Ask with isna() or notna(), or fill with fillna(constant)."
        )
    if type(value) is int and value.bit_length() > 1000:
        raise BadValue("an integer constant of more than 1000 bits is not supported.")
    if type(value) in (bool, int, float, str, pd.Timestamp):
        return Constant(value)
    if isinstance(value, pd.Interval) and isinstance(value.left, int | float):
        return Constant(value)
    if isinstance(value, pd.Series | pd.DataFrame):
        raise BadType(
            "a Series or DataFrame could be people's data, not a public constant. Give plain Python values."
        )
    raise BadType(
        f"a constant must be a number, a string, a bool or a timestamp, not {type(value).__name__}. "
        "Only public constants and this row's own columns can stand in an expression."
    )


def listed(values: object, what: str = "isin") -> list[Any]:
    """The members of a public collection."""
    if isinstance(values, pd.Series | pd.DataFrame):
        raise BadType(
            f"{what} needs public values, and a {type(values).__name__} could be people's data. "
            "If the values are public, write list(...)."
        )
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise BadType(f"{what} needs a flat list of values, not an array of {values.ndim} dimensions.")
    if isinstance(values, COLLECTIONS):
        return list(typed(Iterable[Any], values))
    raise BadType(f"{what} needs a list of public values, such as ['a', 'b'], not {type(values).__name__}.")


def _moment(c: Constant, x: Expr) -> Constant:
    """A constant as it compares with the time expression `x`: dates may be given as strings."""
    value = c.value
    if isinstance(value, str):
        try:
            value = pd.Timestamp(value)
        except (ValueError, TypeError, OverflowError):
            raise BadValue(f"{value!r} is no date. Write it as '2024-01-31' or '2024-01-31 12:00'.") from None
        if pd.isna(value):
            raise BadValue(f"{c.value!r} is no date. Ask for nulls with isna().")
        if value.tz is None and x.tz is not None:  # pandas reads such a string in the column's zone
            value = value.tz_localize(x.tz, ambiguous=True, nonexistent="shift_forward")
    if isinstance(value, pd.Timestamp) and (value.tz is None) != (x.tz is None):
        have, want = (
            ("no time zone", f"the zone {x.tz}") if value.tz is None else (f"the zone {value.tz}", "none")
        )
        raise BadType(f"{value} has {have}, and {x} has {want}. Give both a zone, or neither.")
    return Constant(value)


def _describe(x: Expr) -> str:
    return f"{x} ({x.kind})"


def _match(x: Expr, value: object, *, null: bool = False) -> Constant:
    """A constant that a cell of `x` could be equal to."""
    c = constant(value, null=null)
    if c.value is None or x.kind == "label":
        return c
    if x.kind == "time" and c.kind in ("time", "text"):
        return _moment(c, x)
    same = x.kind == c.kind or {x.kind, c.kind} == {"number", "bool"}
    if x.kind == "other" or not same:
        raise BadType(f"{_describe(x)} can never equal {_describe(c)}. {_advice(x)}")
    return c


def _advice(x: Expr) -> str:
    return {
        "number": "Give a number.",
        "bool": "Give True or False.",
        "text": "Give a string in quotes.",
        "label": "Such a column has equality, isin, isna, map and string parts only.",
        "time": "Give a date such as '2024-01-31'.",
        "other": "Such a column has isna() and notna() only.",
    }[x.kind]


def _numeric(x: Expr, what: str) -> None:
    if x.kind not in ("number", "bool"):
        raise BadType(f"{what} needs numbers, and {_describe(x)} is none. {_hint(x)}")


def _hint(x: Expr) -> str:
    if x.kind == "time":
        return "Take a part of it, such as .dt.year."
    if x.kind in ("text", "label"):
        return "Take .str.len(), map it to numbers with a dict, or convert it before opening the session."
    return "Convert the column before opening the session."


def _boolean(x: Expr, what: str) -> None:
    if x.kind != "bool":
        raise BadType(
            f"{what} needs conditions (true or false), and {_describe(x)} is none. Compare it with something."
        )


# ---- constructors: one per operation ----------------------------------------------------------------------


def arithmetic(op: str, left: Expr, right: Expr) -> Expr:
    if op not in _ARITHMETIC:
        raise BadValue(f"unknown operator {op!r}. Use one of {', '.join(_ARITHMETIC)}.")
    _numeric(left, op)
    _numeric(right, op)
    return Arithmetic(op, left, right)


def negate(x: Expr) -> Expr:
    _numeric(x, "-")
    return Unary(x, "-")


def absolute(x: Expr) -> Expr:
    _numeric(x, "abs")
    return Unary(x, "abs")


def round_to(x: Expr, digits: object = 0) -> Expr:
    _numeric(x, "round")
    n = constant(digits).value
    if type(n) is not int or not -300 <= n <= 300:
        raise BadValue(f"round needs a whole number of digits, such as 2, not {digits!r}.")
    return x if x.integral and n >= 0 else Round(x, n)


def compare(op: str, left: Expr, right: Expr) -> Expr:
    if op not in _FLIP:
        raise BadValue(f"unknown comparison {op!r}. Use one of {', '.join(_FLIP)}.")
    if isinstance(left, Constant) and not isinstance(right, Constant):
        return compare(_FLIP[op], right, left)
    for side in (left, right):
        if side.kind == "other":
            raise BadType(f"{_describe(side)} cannot be compared. {_advice(side)}")
    if isinstance(right, Constant):
        right = _match(left, right)
    elif left.kind == right.kind == "time":
        if (left.tz is None) != (right.tz is None):
            raise BadType(
                f"one of {left} and {right} has a time zone, the other has none. Give both one, or neither."
            )
    elif not ({left.kind, right.kind} <= {"number", "bool"} or {left.kind, right.kind} <= {"text", "label"}):
        raise BadType(f"{_describe(left)} can never equal {_describe(right)}. Compare columns of one kind.")
    if op not in ("==", "!=") and "label" in (left.kind, right.kind):
        raise BadType(
            f"{_describe(left)} {op} {_describe(right)}: labels have no order that their dtype guarantees. "
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
    """Membership in a public list; the order and repeats of the list do not matter, so they are not kept."""
    found = {c.tag: c for c in (_match(x, v, null=True) for v in listed(values))}
    if x.kind == "other" and any(c.value is not None for c in found.values()):
        raise BadType(f"isin does not work on {_describe(x)}. {_advice(x)}")
    return IsIn(x, tuple(found[tag] for tag in sorted(found)))


def between(x: Expr, lower: object, upper: object, inclusive: str = "both") -> Expr:
    if inclusive not in ("both", "neither", "left", "right"):
        raise BadValue(f"inclusive must be 'both', 'neither', 'left' or 'right', not {inclusive!r}.")
    low, high = (v if isinstance(v, Expr) else constant(v) for v in (lower, upper))
    above = ">=" if inclusive in ("both", "left") else ">"
    below = "<=" if inclusive in ("both", "right") else "<"
    return And(compare(above, x, low), compare(below, x, high))


def is_null(x: Expr) -> Expr:
    return IsNull(x)


def not_null(x: Expr) -> Expr:
    return Not(IsNull(x))


def fill(x: Expr, value: object) -> Expr:
    c = _match(x, value)
    if {x.kind, c.kind} == {"number", "bool"} or x.kind == "other":
        raise BadType(f"nulls of {_describe(x)} cannot be filled with {_describe(c)}. {_advice(x)}")
    return Fill(x, c) if x.nullable else x


def clip(x: Expr, lower: object = None, upper: object = None) -> Expr:
    if x.kind != "number":
        raise BadType(f"clip needs numbers, and {_describe(x)} is none. {_hint(x)}")
    ends = [None if v is None else constant(v) for v in (lower, upper)]
    for c in ends:
        if c is not None and c.kind != "number":
            raise BadType(f"clip needs numbers as its limits, not {_describe(c)}.")
    low, high = ends
    if low is not None and high is not None and low.value > high.value:
        raise BadValue(f"clip limits are reversed: ({low}, {high}).")
    return Clip(x, low, high) if low is not None or high is not None else x


def cast(x: Expr, to: object) -> Expr:
    """``astype``; conversions that could fail on a value are refused by dtype."""
    name = to.__name__ if isinstance(to, type) else str(to)
    name = _DTYPES.get(name.lower(), name.lower())
    if name not in _CASTS:
        raise BadValue(f"astype goes to float, int, bool or str, not {name}.")
    numeric = x.kind in ("number", "bool")
    ok = numeric if name != "str" else x.kind in ("text", "label") or (numeric and x.integral)
    if not ok:
        advice = (
            "Round it and cast it to int first."
            if x.kind == "number"
            else "Convert it before opening the session."
        )
        raise BadType(f"{_describe(x)} cannot become {name} without looking at its values. {advice}")
    same = x.kind == _CASTS[name] and (name != "int" or x.integral) and name != "float"
    return x if same else Cast(x, typed(Literal["float", "int", "bool", "str"], name))


def cut(x: Expr, edges: object, labels: object = None, right: object = True) -> Expr:
    _numeric(x, "cut")
    if isinstance(edges, int | np.integer):
        raise BadType("a number of bins would look at the data. Give the edges, such as [0, 18, 65, 110].")
    found = [constant(e) for e in listed(edges, "cut")]
    if len(found) < 2 or any(c.kind != "number" for c in found):
        raise BadValue("cut needs at least two edges, all of them numbers, such as [0, 18, 65, 110].")
    points = tuple(_double(c) for c in found)
    if any(a >= b for a, b in pairwise(points)):
        raise BadValue("the edges of cut must increase.")
    if not isinstance(right, bool | np.bool_):
        raise BadType(f"right must be True or False, not {right!r}.")
    names = None if labels is None else tuple(constant(v) for v in _labels(labels))
    if names is not None and (len(names) != len(points) - 1 or len({c.tag for c in names}) < len(names)):
        raise BadValue(f"cut needs {len(points) - 1} different labels, one per interval, not {len(names)}.")
    return Cut(x, points, names, bool(right))


def _labels(labels: object) -> list[Any]:
    if isinstance(labels, bool):
        raise BadType("cut needs labels as a list, such as ['young', 'old'], or range(n) for numbers.")
    return listed(labels, "labels")


def map_dict(x: Expr, mapping: object) -> Expr:
    if not isinstance(mapping, Mapping) or not mapping:
        raise BadType(f"map needs a public dict that is not empty, not {type(mapping).__name__}.")
    keys = tuple(_match(x, k, null=True) for k in mapping)
    values = tuple(constant(v, null=True) for v in mapping.values())
    if x.kind == "other":
        raise BadType(f"map does not work on {_describe(x)}. {_advice(x)}")
    return MapDict(x, keys, values)


def str_part(x: Expr, method: str, *args: object, **options: object) -> Expr:
    """``x.str.method(*args, **options)`` for the methods that read one string at a time."""
    if x.kind not in ("text", "label"):
        raise BadType(f".str needs strings, and {_describe(x)} is none.")
    if method not in _TEXT:
        raise BadValue(f".str.{method} is not offered. Use one of {', '.join(sorted(_TEXT))}.")
    parameters = _TEXT[method][1]
    if method == "replace" and options.get("regex", False) is False:
        options.pop("regex", None)
    unknown = [k for k in options if k not in [p[0] for p in parameters]]
    if unknown or len(args) > len(parameters):
        raise BadValue(f".str.{method} takes ({', '.join(p[0] for p in parameters)}) here, nothing else.")
    given = dict(zip((p[0] for p in parameters), args, strict=False)) | options
    found = []
    for name, types, default in parameters:
        c = constant(given.get(name, default), null=True) if given.get(name, default) is not ... else None
        if c is None or type(c.value) not in types:
            raise BadType(f".str.{method} needs {name} as {' or '.join(t.__name__ for t in types)}.")
        found.append(c)
    _check_text(method, [c.value for c in found])
    return StrPart(x, method, tuple(found))


def _check_text(method: str, values: list[Any]) -> None:
    if method == "contains" and values[2]:
        try:
            re.compile(values[0])
        except (re.error, OverflowError, RecursionError):
            raise BadValue(
                f"{values[0]!r} is no regular expression. For plain text, give regex=False."
            ) from None
    if method == "slice" and values[2] == 0:
        raise BadValue("the step of a slice cannot be 0.")
    if method == "zfill" and values[0] > 10_000:
        raise BadValue("zfill is limited to a width of 10000.")


def date_part(x: Expr, part: str) -> Expr:
    if x.kind != "time":
        raise BadType(f".dt needs timestamps, and {_describe(x)} is none.")
    name = _DATE_NAMES.get(part, part)
    if name not in _DATES:
        raise BadValue(f".dt.{part} is not offered. Use one of {', '.join(sorted(_DATES))}.")
    return DatePart(x, name)
