"""Row-wise expressions on numpy: one slice of rows at a time, each row by itself.

*Formal guarantee.* The value of a row depends on that row's cells only, and not on its place; no
cell makes this raise or warn. So evaluating some of the rows gives some of the values, to the bit.
Of functions of numbers `dpframe.engines.functions.numbers` says under which premise, since numpy
may choose its code by the place of a row. What a person's rows make together is looked up, as a
column is.

The rule for nulls: a comparison with a null is False, except that ``!=`` is True; ``isin`` finds a
null only where one is listed; ``not`` negates that two-valued answer; a null condition is False;
arithmetic with a null is null, and so is a NaN that arithmetic makes. Arithmetic is in float64, so
integers never wrap around and overflow is infinite. Integers and timestamps are compared with
constants exactly. Text and labels are looked at once per category.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from dpframe import _expr as ex
from dpframe._cells.codec import TICKS, as_double, finder, form_of, in_utc, ticks_of, unit_of
from dpframe._cells.columns import (
    LAST,
    NAT,
    UNMATCHED,
    Bools,
    Vector,
    as_floats,
    fits,
    look_up,
    narrow,
    objects,
    plain,
)
from dpframe._types import Array
from dpframe.engines.functions import choices, numbers, texts, times
from dpframe.engines.functions.texts import as_text


class Readable(Protocol):
    """Cells of all rows, of which slices are read."""

    def __len__(self) -> int: ...

    def rows(self, rows: slice) -> Vector:
        """Return the cells of a slice of rows."""


# A root column, or what `dpframe.engines.within` makes of the rows of each person.
ColumnOf = Callable[[Any], Readable]
# What an expression makes of the categories of its operands, kept while those stay the same.
Memo = dict[tuple[ex.Expr, str], tuple[tuple[Array, ...], Any]]
# How each kind of node is evaluated.
Nodes = Mapping[type[ex.Expr], Callable[["Block", Any], Vector]]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def evaluate(expr: ex.Expr, column: ColumnOf, rows: slice, memo: Memo | None = None) -> Vector:
    """Return the value of an expression in each row of a slice.

    ``column`` returns the cells of a column. ``memo`` is a dictionary that the caller keeps, to
    save work between slices.
    """
    if isinstance(expr, ex.Column):  # the most frequent case, which needs no evaluation
        return column(expr).rows(rows)
    with np.errstate(all="ignore"):
        return Block(expr, column, rows, {} if memo is None else memo, _NODES).vector(expr)


def predicate(expr: ex.Expr, column: ColumnOf, rows: slice, memo: Memo | None = None) -> Bools:
    """Return a boolean mask of the rows of a slice where a condition is true; null is not true.

    ``column`` returns the cells of a column. ``memo`` is a dictionary that the caller keeps, to
    save work between slices.
    """
    with np.errstate(all="ignore"):
        return Block(expr, column, rows, {} if memo is None else memo, _NODES).truth(expr)


@dataclass(eq=False)
class Block:
    """Evaluation of one expression on one slice of rows, with the values found so far."""

    _expr: ex.Expr
    column: ColumnOf
    rows: slice
    _memo: Memo
    _nodes: Nodes
    _seen: dict[int, Vector] = field(default_factory=dict)

    @cached_property
    def n(self) -> int:
        """Number of rows in the slice."""
        leaf = next(iter(self._expr.columns()), None)
        whole = len(self.column(leaf)) if leaf is not None else max(self.rows.stop or 0, 0)
        return len(range(*self.rows.indices(whole)))

    def vector(self, e: ex.Expr) -> Vector:
        """Return the value of an expression in each row, computed once."""
        found = self._seen.get(id(e))
        if found is None:
            found = self._seen[id(e)] = self._nodes[type(e)](self, e)
        return found

    def truth(self, e: ex.Expr) -> Bools:
        """Return a boolean mask of the rows where a condition is true; null is not true.

        The mask may share memory with the column, so it must not be written to.
        """
        v = self.vector(e)
        return v.values if v.null is None else v.values & ~v.null

    def floats(self, e: ex.Expr) -> np.float64 | Array:
        """Return the values of a number as float64, with NaN for null; a constant stays a
        scalar."""
        return np.float64(e.value) if isinstance(e, ex.Constant) else as_floats(self.vector(e))

    def per_category(
        self, e: ex.Expr, make: Callable[..., object], *operands: Vector, part: str = ""
    ) -> Any:
        """Return what ``make`` makes of the distinct texts of some vectors, computed once.

        The result is kept as long as the arrays of distinct texts are the same ones, also between
        slices. ``part`` tells several results of one expression apart.
        """
        categories = tuple(v.categories for v in operands if v.categories is not None)
        kept = self._memo.get((e, part))
        if kept is None or not all(a is b for a, b in zip(kept[0], categories, strict=True)):
            kept = self._memo[e, part] = (categories, make(*categories))
        return kept[1]


# ---- values that compare exactly -----------------------------------------------------------------


def count_ticks(c: ex.Constant, v: Vector) -> Fraction:
    """Return a constant time as a number of ticks of a column, which need not be whole.

    A tick is a column's resolution, such as a nanosecond. The result is compared with the column
    exactly. ``c`` is the constant, and ``v`` the column.
    """
    ticks, unit = ticks_of(c.value)
    return Fraction(ticks * TICKS[unit_of(v.values)], TICKS[unit])


# ---- leaves --------------------------------------------------------------------------------------


def _column(b: Block, e: ex.Column | ex.Within) -> Vector:
    return b.column(e).rows(b.rows)


def _constant(b: Block, e: ex.Constant) -> Vector:
    """Return a constant as a vector with the same value in every row.

    ``e`` is the expression, and ``b`` has the rows to evaluate it on.
    """
    if e.kind in ("text", "label"):
        return Vector(e.kind, np.zeros(b.n, dtype=np.int8), None, objects([plain(e.value)]))
    value: Any = e.value
    if e.kind in ("time", "duration"):
        value = in_utc(value).asm8
    elif e.kind == "number" and not (isinstance(value, int) and -(2**63) <= value < 2**63):
        value = float(value)
    return Vector(e.kind, np.full(b.n, value))


# ---- nulls and types -----------------------------------------------------------------------------


def _fill(b: Block, e: ex.Fill) -> Vector:
    """Return a value with a constant in place of null, as ``fillna`` does.

    Text, times, bools and integers keep their type if the constant fits. Other numbers become
    doubles. ``e`` is the expression, and ``b`` has the rows to evaluate it on.
    """
    v, value = b.vector(e.x), e.value.value
    if v.categories is not None:
        last = len(v.categories)
        categories = b.per_category(e, lambda cats: objects([*cats, plain(value)]), v)
        return Vector(
            v.kind,
            np.where(v.values < 0, last, narrow(v.values.astype(np.int64), last + 1)),
            None,
            categories,
        )
    if v.values.dtype.kind in "mM":
        ticks = int(
            count_ticks(e.value, v) // 1
        )  # a finer constant is cut to the resolution of the column
        filled = np.where(
            np.isnat(v.values), min(max(ticks, NAT + 1), LAST), v.values.view(np.int64)
        )
        return Vector(v.kind, filled.view(v.values.dtype))
    if v.kind == "bool" or (v.values.dtype.kind in "iu" and fits(value, v.values.dtype)):
        return (
            v
            if v.null is None
            else Vector(v.kind, np.where(v.null, v.values.dtype.type(value), v.values))
        )
    x = as_floats(v)
    return Vector("number", np.where(np.isnan(x), np.float64(value), x))


def _cast(b: Block, e: ex.Cast) -> Vector:
    """Return a value converted to str, bool, int or float, as ``astype`` does.

    Numbers as int are doubles that are cut to whole ones. An infinity becomes null. ``e`` is the
    expression, and ``b`` has the rows to evaluate it on.
    """
    v = b.vector(e.x)
    if e.to == "str":
        return as_text(b, e, v)
    if e.to == "bool":
        return Vector("bool", v.values != 0, v.nulls())
    if e.to == "int" and v.values.dtype == bool:
        return Vector("number", v.values.view(np.int8), v.null)
    x = as_floats(v)
    if e.to == "int":
        x = np.trunc(x)
        x[np.isinf(x)] = np.nan
    return Vector("number", x)


# ---- comparisons ---------------------------------------------------------------------------------


def comparison(b: Block, e: ex.Compare) -> Vector:
    """Return in which rows a comparison of a value with a constant, or with another value, holds.

    A null makes only ``!=`` true. Numbers and times are compared exactly, without rounding. ``e``
    is the expression, and ``b`` has the rows to evaluate it on.
    """
    left = b.vector(e.left)
    if isinstance(e.right, ex.Constant) and left.categories is not None:
        return Vector("bool", _compare_with_constant(b, e, left, e.right))
    if isinstance(e.right, ex.Constant):
        values, wanted = (
            left.values,
            e.right.value,
        )  # all as numbers: times in ticks, bools as 0 and 1
        if values.dtype.kind in "mM":
            values, wanted = values.view(np.int64), count_ticks(e.right, left)
        elif values.dtype == bool:
            values = values.view(np.int8)
        compare_one = _compare_integers if values.dtype.kind in "iu" else _compare_doubles
        found, sides = compare_one(e.op, values, wanted), [left]
    else:
        right = b.vector(e.right)
        if left.categories is not None:
            return Vector("bool", _compare_texts(b, e, left, right))
        compare = _compare_times if left.values.dtype.kind in "mM" else _compare_numbers
        found, sides = compare(e.op, left.values, right.values), [left, right]
    for side in sides:  # a NaN compares like a null already; masked cells and NaT do not
        null = np.isnat(side.values) if side.values.dtype.kind in "mM" else side.null
        if null is not None:
            found[null] = e.op == "!="
    return Vector("bool", found)


def _compare_doubles(op: str, values: Array, wanted: Any) -> Array:
    """Return in which rows doubles compare exactly with a constant.

    ``op`` is the operator, such as "<", and ``wanted`` the constant. A whole number that no double
    equals lies between two doubles. The comparison is then with the nearest one.
    """
    compare = _COMPARE[op]
    if as_double(wanted) is None:
        if op in ("==", "!="):
            return np.full(len(values), op == "!=")
        above = float(wanted) > wanted
        compare = operator.lt if op in ("<", "<=") else operator.ge
        if not above:
            compare = operator.le if op in ("<", "<=") else operator.gt
    return np.asarray(compare(values, np.float64(wanted)))


def _compare_integers(op: str, values: Array, wanted: Any) -> Array:
    """Return in which rows integers compare exactly with a constant.

    ``op`` is the operator, such as "<", and ``wanted`` the constant. It may be fractional,
    infinite, or beyond the range of the dtype.
    """
    compare, info = _COMPARE[op], np.iinfo(values.dtype)
    if isinstance(wanted, float) and np.isinf(wanted):
        return np.full(len(values), compare(0.0, wanted))
    floor = int(wanted // 1)
    if floor != wanted:
        if op in ("==", "!="):
            return np.full(len(values), op == "!=")
        compare = operator.le if op in ("<", "<=") else operator.gt
    if not info.min <= floor <= info.max:
        return np.full(len(values), compare(0, floor))
    return np.asarray(compare(values, values.dtype.type(floor)))


def _compare_numbers(op: str, left: Array, right: Array) -> Array:
    return np.asarray(_COMPARE[op](left, right))


def _compare_times(op: str, left: Array, right: Array) -> Array:
    """Return a mask of the rows where ``left op right`` holds, for two columns of times.

    It is exact for different resolutions. The finer one is divided, since multiplying the coarser
    one could overflow. ``order`` is -1, 0 or 1 as the left time is before, at or after the right.
    """
    a, b = left.view(np.int64), right.view(np.int64)
    ratio = TICKS[unit_of(right)] // TICKS[unit_of(left)]
    if ratio < 1:
        return _compare_times({"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(op, op), right, left)
    whole, rest = np.divmod(b, ratio)
    order = np.sign(np.where(a == whole, -rest, np.where(a < whole, -1, 1)))
    return np.asarray(_COMPARE[op](order, 0))


def _compare_with_constant(b: Block, e: ex.Compare, v: Vector, c: ex.Constant) -> Array:
    """Return in which rows a text or a label compares with a constant.

    Each distinct text is compared once. A null makes only ``!=`` true. ``e`` is the expression, and
    ``b`` has the rows to evaluate it on. ``v`` has the cells, and ``c`` is the constant.
    """
    compare, wanted, op = _COMPARE[e.op], plain(c.value), e.op

    def make(categories: Array) -> Array:
        """Return the answer for each distinct text, with that for null at the end."""
        if op in ("==", "!="):
            hits = [form_of(x) == form_of(wanted) for x in categories]
            return np.array([h is (op == "==") for h in hits] + [op == "!="], dtype=bool)
        return np.array(
            [type(x) is str and compare(x, wanted) for x in categories] + [False], dtype=bool
        )

    table: Array = b.per_category(e, make, v)
    odd = np.flatnonzero(table != table[-1])  # comparing with one code is faster than a table
    if len(odd) <= 1:
        if len(odd) == 0:
            return np.full(b.n, bool(table[-1]))
        code = int(odd[0])  # a numpy integer would widen every code first
        return np.asarray((v.values != code) if table[-1] else (v.values == code))
    return look_up(table, v.values)


def _compare_texts(b: Block, e: ex.Compare, left: Vector, right: Vector) -> Array:
    """Return in which rows two columns of texts or labels compare.

    Distinct texts of both sides are numbered alike, and the numbers compared. A null makes only
    ``!=`` true. ``e`` is the expression, and ``b`` has the rows to evaluate it on.
    """
    ordered = e.op not in ("==", "!=")

    def make(a: Array, c: Array) -> list[Array]:
        """Return for each side the number of each distinct text, with -1 at the end for null."""
        words: list[Any]
        if ordered:
            words = sorted({x for x in (*a, *c) if type(x) is str})
        else:
            words = [*dict.fromkeys(form_of(x) for x in (*a, *c) if x is not UNMATCHED)]
        place = {x: i for i, x in enumerate(words)}
        return [np.array([*(place.get(form_of(x), -1) for x in side), -1]) for side in (a, c)]

    tables = b.per_category(e, make, left, right)
    x, y = look_up(tables[0], left.values), look_up(tables[1], right.values)
    known = (x >= 0) & (y >= 0)
    found = _COMPARE[e.op](x, y)
    return np.asarray(found | ~known if e.op == "!=" else found & known)


# ---- conditions ----------------------------------------------------------------------------------


def both(b: Block, e: ex.And) -> Vector:
    return Vector("bool", b.truth(e.left) & b.truth(e.right))


def either(b: Block, e: ex.Or) -> Vector:
    return Vector("bool", b.truth(e.left) | b.truth(e.right))


def negation(b: Block, e: ex.Not) -> Vector:
    return Vector("bool", ~b.truth(e.x))


def is_null(b: Block, e: ex.IsNull) -> Vector:
    null = b.vector(e.x).nulls()
    return Vector("bool", np.zeros(b.n, dtype=bool) if null is None else null)


def is_in(b: Block, e: ex.IsIn) -> Vector:
    find = b.per_category(e, lambda: finder((c.value, 1) for c in e.values))
    return Vector("bool", find(b.vector(e.x)).view(bool))


# How functions of the catalogue are evaluated, by the kind of their operands.
_CALLS: dict[ex.Kind, Callable[[Block, ex.Call], Vector]] = {
    "number": numbers.call_numbers,
    "text": texts.call_texts,
    "other": texts.call_texts,
    "time": times.call_times,
    "duration": times.call_times,
}


def _call(b: Block, e: ex.Call) -> Vector:
    return _CALLS[ex.OPS[e.op].of[0]](b, e)


_NODES: Nodes = {
    ex.Column: _column,
    ex.Within: _column,
    ex.Constant: _constant,
    ex.Compare: comparison,
    ex.And: both,
    ex.Or: either,
    ex.Not: negation,
    ex.IsNull: is_null,
    ex.IsIn: is_in,
    ex.Arithmetic: numbers.compute_arithmetic,
    ex.Unary: numbers.compute_unary,
    ex.Round: numbers.round_numbers,
    ex.Clip: numbers.clip,
    ex.Fill: _fill,
    ex.Cast: _cast,
    ex.Cut: texts.cut,
    ex.MapDict: texts.map_dict,
    ex.Elapsed: times.compute_elapsed,
    ex.Ratio: times.compute_ratio,
    ex.If: choices.choose_sides,
    ex.Call: _call,
}
