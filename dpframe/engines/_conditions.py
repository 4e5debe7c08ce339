"""Comparisons and conditions on numpy: integers and timestamps exactly, texts and labels once per category."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from dpframe import _expr as ex
from dpframe._cells.codec import TICKS, as_double, finder, form_of, unit_of
from dpframe._cells.columns import UNMATCHED, Array, Vector, plain
from dpframe.engines._block import Block, bools, exact, in_units, look_up

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


# ---- comparisons ------------------------------------------------------------------------------------------


def comparison(b: Block, e: ex.Compare) -> Vector:
    left = b.vector(e.left)
    if isinstance(e.right, ex.Constant):
        one = _text_with_constant if left.categories is not None else _number_with_constant
        return bools(one(b, e, left, e.right))
    right = b.vector(e.right)
    if left.categories is not None:
        return bools(_text_with_text(b, e, left, right))
    compare = _compare_times if left.kind == "time" else _compare_numbers
    found = compare(e.op, left.values, right.values)
    for v in (left, right):
        found = _null_is(found, v, e.op == "!=")
    return bools(found)


def _null_is(found: Array, v: Vector, value: bool) -> Array:
    """NaN already compares like a null; masks and NaT do not."""
    null = np.isnat(v.values) if v.kind == "time" else v.null
    if null is not None:
        found[null] = value
    return found


def _number_with_constant(b: Block, e: ex.Compare, v: Vector, c: ex.Constant) -> Array:
    values, wanted = exact(v), in_units(c, v)
    compare = _compare_integers if values.dtype.kind in "iu" else _compare_doubles
    return _null_is(compare(e.op, values, wanted), v, e.op == "!=")


def _compare_doubles(op: str, values: Array, wanted: Any) -> Array:
    """Exact, also where the constant is a whole number that no double is: it lies between two of them."""
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
    """Exact, also where the constant is no integer or lies beyond the dtype."""
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
    """Exact across resolutions, without the overflow of converting the coarser one."""
    a, b = left.view(np.int64), right.view(np.int64)
    ratio = TICKS[unit_of(right)] // TICKS[unit_of(left)]
    if ratio < 1:
        return _compare_times({"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(op, op), right, left)
    whole, rest = np.divmod(b, ratio)
    order = np.sign(np.where(a == whole, -rest, np.where(a < whole, -1, 1)))
    return np.asarray(_COMPARE[op](order, 0))


def _text_with_constant(b: Block, e: ex.Compare, v: Vector, c: ex.Constant) -> Array:
    compare, wanted, op = _COMPARE[e.op], plain(c.value), e.op

    def make(categories: Array) -> Array:
        if op in ("==", "!="):
            hits = [form_of(x) == form_of(wanted) for x in categories]
            return np.array([h is (op == "==") for h in hits] + [op == "!="], dtype=bool)
        return np.array([type(x) is str and compare(x, wanted) for x in categories] + [False], dtype=bool)

    table: Array = b.per_category(e, make, v)
    odd = np.flatnonzero(table != table[-1])  # comparing with one code is faster than a table
    if len(odd) <= 1:
        if len(odd) == 0:
            return np.full(b.n, bool(table[-1]))
        code = int(odd[0])  # a numpy integer would widen every code first
        return np.asarray((v.values != code) if table[-1] else (v.values == code))
    return look_up(table, v.values)


def _text_with_text(b: Block, e: ex.Compare, left: Vector, right: Vector) -> Array:
    ordered = e.op not in ("==", "!=")

    def make(a: Array, c: Array) -> list[Array]:
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


# ---- conditions -------------------------------------------------------------------------------------------


def both(b: Block, e: ex.And) -> Vector:
    return bools(b.truth(e.left) & b.truth(e.right))


def either(b: Block, e: ex.Or) -> Vector:
    return bools(b.truth(e.left) | b.truth(e.right))


def negation(b: Block, e: ex.Not) -> Vector:
    return bools(~b.truth(e.x))


def is_null(b: Block, e: ex.IsNull) -> Vector:
    null = b.vector(e.x).nulls()
    return bools(np.zeros(b.n, dtype=bool) if null is None else null)


def is_in(b: Block, e: ex.IsIn) -> Vector:
    find = b.per_category(e, lambda: finder((c.value, 1) for c in e.values))
    return bools(find(b.vector(e.x)).view(bool))
