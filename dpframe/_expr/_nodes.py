"""The operations: what each one is called, whether it can be null, and how bounds travel through
it."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from dpframe import _pandas
from dpframe._expr._base import FEW, INTEGERS, Constant, Expr, KeysOf, Lookup, as_double
from dpframe._expr._kinds import CASTS, Kind
from dpframe._expr._ranges import ARITHMETIC, Interval
from dpframe._types import Values


@dataclass(frozen=True, slots=True)
class Arithmetic(Expr):
    """``left op right`` in float64, bools as 0 and 1; a null operand or a NaN result is null."""

    identity: ClassVar[tuple[str, ...]] = ("arithmetic", "op", "left", "right")

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
        return None if a is None or b is None else ARITHMETIC[self.op](a, b)

    def members(self, keys: KeysOf, ends: Lookup) -> Values | None:
        """Return all values that the operation can have; None if not known.

        A group-by by this expression has them as its keys. They are known where a constant is
        applied to few whole numbers, or to many by // and %. ``keys`` returns the group keys of a
        column, and ``ends`` its bounds.
        """
        by = self.right.value if isinstance(self.right, Constant) else None
        if type(by) is not int or by == 0 or self.op not in _WHOLE:
            return Expr.members(self, keys, ends)
        inside = self.left.members(keys, ends)
        if inside is not None and all(type(value) is int for value in inside):
            return tuple(sorted({_WHOLE[self.op](value, by) for value in inside}))
        if self.op == "%" and self.left.integral and 0 < by <= FEW:
            return tuple(range(by))
        between = (
            self.left.interval(ends) if self.op == "//" and self.left.integral and by > 0 else None
        )
        if between is None or not (between[1] - between[0]) / by < FEW - 1:
            return None
        return tuple(range(math.ceil(between[0]) // by, math.floor(between[1]) // by + 1))

    def __str__(self) -> str:
        return f"{_part(self.left)} {self.op} {_part(self.right)}"


_WHOLE = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}


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

    identity: ClassVar[tuple[str, ...]] = ("unary", "x", "op")

    op: str

    @property
    def kind(self) -> Kind:
        return "number"

    def interval(self, lookup: Lookup) -> Interval:
        """Return bounds of ``-x`` or ``abs(x)``; None if the operand has no bounds.

        ``lookup`` returns the bounds of a column.
        """
        a = self.x.interval(lookup)
        if a is None or self.op == "-":
            return a and (-a[1], -a[0])
        low, high = sorted((abs(a[0]), abs(a[1])))
        return (0.0 if a[0] <= 0 <= a[1] else low, high)

    def __str__(self) -> str:
        return f"-{show_owner(self.x)}" if self.op == "-" else f"{show_owner(self.x)}.abs()"


@dataclass(frozen=True, slots=True)
class Round(_Same):
    """``x.round(digits)``: half to even, as numpy scales and rounds."""

    identity: ClassVar[tuple[str, ...]] = ("round", "x", "digits")

    digits: int

    @property
    def kind(self) -> Kind:
        return "number"

    @property
    def integral(self) -> bool:
        return self.digits <= 0 or self.x.integral

    def interval(self, lookup: Lookup) -> Interval:
        """Return bounds of the rounded number; None if the operand has no bounds.

        ``lookup`` returns the bounds of a column.
        """
        a = self.x.interval(lookup)
        if a is None:
            return None
        with np.errstate(
            all="ignore"
        ):  # scaling, rounding and unscaling are each monotone, so ends suffice
            low, high = (float(np.round(np.float64(v), self.digits)) for v in a)
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None

    def __str__(self) -> str:
        return f"{show_owner(self.x)}.round({self.digits})"


@dataclass(frozen=True, slots=True)
class Compare(Expr):
    """``left op right``. With a null on either side it is False, except that != is True."""

    identity: ClassVar[tuple[str, ...]] = ("compare", "op", "left", "right")

    op: str
    left: Expr
    right: Expr

    def __str__(self) -> str:
        return f"{_part(self.left)} {self.op} {_part(self.right)}"


@dataclass(frozen=True, slots=True)
class And(Expr):
    """True where both operands are; null counts as False."""

    identity: ClassVar[tuple[str, ...]] = ("and", "left", "right")

    left: Expr
    right: Expr

    def __str__(self) -> str:
        return f"{_part(self.left)} & {_part(self.right)}"


@dataclass(frozen=True, slots=True)
class Or(Expr):
    """True where at least one operand is; null counts as False."""

    identity: ClassVar[tuple[str, ...]] = ("or", "left", "right")

    left: Expr
    right: Expr

    def __str__(self) -> str:
        return f"{_part(self.left)} | {_part(self.right)}"


@dataclass(frozen=True, slots=True)
class Not(Expr):
    """The plain negation of a two-valued answer: the negation of null is True."""

    identity: ClassVar[tuple[str, ...]] = ("not", "x")

    x: Expr

    def __str__(self) -> str:
        return f"~{_part(self.x)}"


@dataclass(frozen=True, slots=True)
class IsIn(Expr):
    """True where the operand equals one of the values; of a null cell only if a null is listed."""

    identity: ClassVar[tuple[str, ...]] = ("is_in", "x", "values")

    x: Expr
    values: tuple[Constant, ...]

    def __str__(self) -> str:
        return f"{show_owner(self.x)}.isin([{_listing(self.values)}])"


@dataclass(frozen=True, slots=True)
class IsNull(Expr):
    """True where the operand is null: None, NaN, NA, NaT and Arrow's null are one thing."""

    identity: ClassVar[tuple[str, ...]] = ("is_null", "x")

    x: Expr

    def __str__(self) -> str:
        return f"{show_owner(self.x)}.isna()"


@dataclass(frozen=True, slots=True)
class Fill(_Same):
    """The operand, with the constant in place of nulls."""

    identity: ClassVar[tuple[str, ...]] = ("fill", "x", "value")

    value: Constant

    @property
    def nullable(self) -> bool:
        return False

    @property
    def integral(self) -> bool:
        return self.x.integral and self.value.integral

    def interval(self, lookup: Lookup) -> Interval:
        """Return bounds of the cells and of the constant together; None if the cells have no
        bounds."""
        a, b = self.x.interval(lookup), self.value.interval(lookup)
        return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))

    def members(self, keys: KeysOf, ends: Lookup) -> Values | None:
        """Return all values that there can be; None if not known.

        A group-by by this expression has them as its keys: those of the operand, and the constant.
        """
        between = Expr.members(self, keys, ends)
        listed = self.x.members(keys, ends)
        if between is not None or listed is None:
            return between
        value = self.value.value
        return listed if value in listed else (*listed, value)

    @property
    def finite(self) -> bool:
        return self.interval(lambda c: INTEGERS if c.integral else None) is not None

    def __str__(self) -> str:
        return f"{show_owner(self.x)}.fillna({self.value})"


@dataclass(frozen=True, slots=True)
class Clip(_Same):
    """The operand moved into [lower, upper]; null stays null (other clips turn NaN into a
    bound)."""

    identity: ClassVar[tuple[str, ...]] = ("clip", "x", "lower", "upper")

    lower: Constant | None
    upper: Constant | None

    @property
    def integral(self) -> bool:
        return self.x.integral and all(c is None or c.integral for c in (self.lower, self.upper))

    def interval(self, lookup: Lookup) -> Interval:
        """Return bounds of the clipped number; None if one end is infinite.

        ``lookup`` returns the bounds of a column.
        """
        low, high = self.x.interval(lookup) or (-math.inf, math.inf)
        floor = -math.inf if self.lower is None else as_double(self.lower)
        ceiling = math.inf if self.upper is None else as_double(self.upper)
        low, high = (min(max(v, floor), ceiling) for v in (low, high))
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None

    def __str__(self) -> str:
        return f"{show_owner(self.x)}.clip({self.lower}, {self.upper})"


@dataclass(frozen=True, slots=True)
class Cast(_Same):
    """``astype``: int truncates towards zero, and what has no counterpart (inf as int) is null."""

    identity: ClassVar[tuple[str, ...]] = ("cast", "x", "to")

    to: Literal["float", "int", "bool", "str"]

    @property
    def kind(self) -> Kind:
        return CASTS[self.to]

    @property
    def nullable(self) -> bool:
        return self.x.nullable or (self.to == "int" and not self.x.finite)

    @property
    def integral(self) -> bool:
        return self.to in ("int", "bool") or self.x.integral

    def interval(self, lookup: Lookup) -> Interval:
        """Return bounds of the converted number; None if the operand has no bounds."""
        a = self.x.interval(lookup)
        if self.to == "bool":
            return (0.0, 1.0)
        return a and ((float(math.trunc(a[0])), float(math.trunc(a[1]))) if self.to == "int" else a)

    def __str__(self) -> str:
        return f"{show_owner(self.x)}.astype({self.to!r})"


@dataclass(frozen=True, slots=True)
class _Listed(Expr):
    """A node that has `categories`: all its values, where they are few and public."""

    @property
    def categories(self) -> Values:
        return ()

    def members(self, keys: KeysOf, ends: Lookup) -> Values | None:
        return (False, True) if self.kind == "bool" else self.categories or None


@dataclass(frozen=True, slots=True)
class Cut(_Listed):
    """``pd.cut`` with given edges: a label per interval, null outside."""

    identity: ClassVar[tuple[str, ...]] = ("cut", "x", "edges", "labels", "right")

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
    def categories(self) -> Values:
        """The labels, or the intervals that pandas makes of the edges.

        They are public, as the edges are.
        """
        if self.labels is not None:
            return tuple(c.value for c in self.labels)
        with np.errstate(all="ignore"):
            edges = list(self.edges)
            empty: Any = _pandas.cut(np.array([], dtype=float), edges, right=self.right)
        return tuple(empty.categories)

    def __str__(self) -> str:
        labels = "" if self.labels is None else f", labels=[{_listing(self.labels)}]"
        return f"cut({self.x}, {list(self.edges)}{labels}, right={self.right})"


@dataclass(frozen=True, slots=True)
class MapDict(_Listed):
    """``Series.map`` with a public dict: what is not in it becomes null."""

    identity: ClassVar[tuple[str, ...]] = ("map", "x", "keys", "values")

    x: Expr
    keys: tuple[Constant, ...]
    values: tuple[Constant, ...]

    @property
    def kind(self) -> Kind:
        """The kind that all values of the dict have in common, or else "label"."""
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
        return self.kind in ("number", "bool") and all(
            v.integral for v in self.values if v.value is not None
        )

    @property
    def categories(self) -> Values:
        """The values, each once; public, as the dict is."""
        values = {v.tag: v.value for v in self.values if v.value is not None}
        return tuple(values.values())

    @property
    def tz(self) -> str | None:
        zones = (v.tz for v in self.values if v.value is not None)
        return next(zones, None) if self.kind == "time" else None

    def interval(self, lookup: Lookup) -> Interval:
        """Return the least and the greatest value of the dict; None if some value has no bounds.

        Nothing is read of the columns.
        """
        if self.kind not in ("number", "bool"):
            return None
        intervals = [v.interval(lookup) for v in self.values if v.value is not None]
        known = [f for f in intervals if f is not None]
        return (
            (min(f[0] for f in known), max(f[1] for f in known))
            if len(known) == len(intervals)
            else None
        )

    def __str__(self) -> str:
        pairs = [f"{k}: {v}" for k, v in zip(self.keys[:5], self.values[:5], strict=True)]
        return f"{show_owner(self.x)}.map({{{', '.join(pairs)}{', ...' if len(self.keys) > 5 else ''}}})"


def _part(x: Expr) -> str:
    """Return the text of an operand, in parentheses if it is an operation with two sides."""
    return f"({x})" if isinstance(x, Arithmetic | Compare | And | Or) else str(x)


def show_owner(x: Expr) -> str:
    """Return the text of an operand of a method, in parentheses if it begins with a sign."""
    text = _part(x)
    return f"({text})" if text[0] in "-~" else text


def _listing(values: Sequence[Constant]) -> str:
    return ", ".join(map(str, values[:5])) + (", ..." if len(values) > 5 else "")
