"""Row-wise expressions on numpy: one slice of rows at a time, each row by itself.

*Formal guarantee.* The value of a row depends on that row's cells only, and no cell makes this raise or warn:
evaluating some of the rows gives some of the values.

The rule for nulls: a comparison with a null is False, except that ``!=`` is True; ``isin`` finds a null only
where one is listed; ``not`` negates that two-valued answer; a null condition is False; arithmetic with a null is
null, and so is a NaN that arithmetic makes. Arithmetic is in float64, so integers never wrap around and overflow
is infinite. Integers and timestamps are compared with constants exactly. Text and labels are looked at once per
category.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpframe import _expr as ex
from dpframe._cells.codec import in_utc
from dpframe._cells.columns import Bools, Vector, narrow, objects, plain
from dpframe.engines._block import LAST, NAT, Block, ColumnOf, Memo, Nodes, as_floats, fits, in_units
from dpframe.engines._conditions import both, comparison, either, is_in, is_null, negation
from dpframe.engines._parts import as_text, cut, date_part, map_dict, str_part

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.mod,
    "**": np.power,
}


def evaluate(expr: ex.Expr, column: ColumnOf, rows: slice, memo: Memo | None = None) -> Vector:
    """The expression's value in each of the rows. A `memo` kept by the caller saves work between slices."""
    with np.errstate(all="ignore"):
        return Block(expr, column, rows, memo, _NODES).vector(expr)


def predicate(expr: ex.Expr, column: ColumnOf, rows: slice, memo: Memo | None = None) -> Bools:
    """In which of the rows is the condition true? Null is not true."""
    with np.errstate(all="ignore"):
        return Block(expr, column, rows, memo, _NODES).truth(expr)


# ---- leaves -----------------------------------------------------------------------------------------------


def _column(b: Block, e: ex.Column) -> Vector:
    return b.leaf(e)


def _constant(b: Block, e: ex.Constant) -> Vector:
    if e.kind in ("text", "label"):
        return Vector(e.kind, np.zeros(b.n, dtype=np.int8), None, objects([plain(e.value)]))
    value: Any = e.value
    if e.kind == "time":
        value = in_utc(value).asm8
    elif e.kind == "number" and not (isinstance(value, int) and -(2**63) <= value < 2**63):
        value = float(value)
    return Vector(e.kind, np.full(b.n, value))


# ---- arithmetic -------------------------------------------------------------------------------------------


def _arithmetic(b: Block, e: ex.Arithmetic) -> Vector:
    x, y = b.floats(e.left), b.floats(e.right)
    found = np.asarray(_ARITHMETIC[e.op](x, y))
    if e.op == "**":  # numpy holds 1**NaN and NaN**0 for 1
        found = np.where(np.isnan(x) | np.isnan(y), np.nan, found)
    return Vector("number", np.full(b.n, found) if found.ndim == 0 else found)


def _unary(b: Block, e: ex.Unary) -> Vector:
    x = as_floats(b.vector(e.x))
    return Vector("number", np.negative(x) if e.op == "-" else np.abs(x))


def _round(b: Block, e: ex.Round) -> Vector:
    return Vector("number", np.round(as_floats(b.vector(e.x)), e.digits))


def _clip(b: Block, e: ex.Clip) -> Vector:
    v = b.vector(e.x)
    ends = [None if c is None else c.value for c in (e.lower, e.upper)]
    if v.values.dtype.kind in "iu" and all(fits(c, v.values.dtype) for c in ends):
        return Vector("number", np.clip(v.values, *ends), v.null)
    low, high = (None if c is None else np.float64(c) for c in ends)
    return Vector("number", np.clip(as_floats(v), low, high))


def _fill(b: Block, e: ex.Fill) -> Vector:
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
    if v.kind == "time":
        ticks = int(in_units(e.value, v) // 1)  # a finer constant is cut to the resolution of the column
        filled = np.where(np.isnat(v.values), min(max(ticks, NAT + 1), LAST), v.values.view(np.int64))
        return Vector("time", filled.view(v.values.dtype))
    if v.kind == "bool" or (v.values.dtype.kind in "iu" and fits(value, v.values.dtype)):
        return v if v.null is None else Vector(v.kind, np.where(v.null, v.values.dtype.type(value), v.values))
    x = as_floats(v)
    return Vector("number", np.where(np.isnan(x), np.float64(value), x))


def _cast(b: Block, e: ex.Cast) -> Vector:
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


_NODES: Nodes = {
    ex.Column: _column,
    ex.Constant: _constant,
    ex.Compare: comparison,
    ex.And: both,
    ex.Or: either,
    ex.Not: negation,
    ex.IsNull: is_null,
    ex.IsIn: is_in,
    ex.Arithmetic: _arithmetic,
    ex.Unary: _unary,
    ex.Round: _round,
    ex.Clip: _clip,
    ex.Fill: _fill,
    ex.Cast: _cast,
    ex.StrPart: str_part,
    ex.Cut: cut,
    ex.MapDict: map_dict,
    ex.DatePart: date_part,
}
