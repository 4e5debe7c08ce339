"""Texts and labels on numpy: each different text is looked at once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from dpframe import _expr as ex
from dpframe._cells.codec import TICKS, finder, ticks_of
from dpframe._cells.columns import (
    LAST,
    NAT,
    UNMATCHED,
    Vector,
    as_floats,
    fits,
    look_up,
    narrow,
    objects,
    plain,
)
from dpframe._types import Array

if TYPE_CHECKING:
    from dpframe.engines.expressions import Block

# ---- dictionaries --------------------------------------------------------------------------------


def _recode(b: Block, e: ex.Expr, v: Vector, f: Callable[[Any], object]) -> Vector:
    """Return texts in which each distinct text is replaced by what ``f`` returns for it.

    ``f`` is called once for each distinct text. None becomes null. ``e`` is the expression, and
    ``b`` has the rows to evaluate it on. ``v`` has the cells.
    """

    def make(categories: Array) -> tuple[Array, Array]:
        index: dict[Any, int] = {}
        table = [-1 if (y := f(x)) is None else index.setdefault(y, len(index)) for x in categories]
        return narrow(np.array([*table, -1]), len(index)), objects(index)

    table, categories = b.per_category(e, make, v)
    return Vector("text", look_up(table, v.values), None, categories)


def as_text(b: Block, e: ex.Cast, v: Vector) -> Vector:
    """Return whole numbers, bools, texts or labels as texts, as ``astype(str)`` does; null stays
    null.

    ``e`` is the expression, and ``b`` has the rows to evaluate it on. ``v`` has the cells.
    """
    if v.categories is None:
        if v.values.dtype.kind == "f":
            x = as_floats(v)
            distinct = np.unique(x[~np.isnan(x)])
            cells = [str(int(c)) if np.isfinite(c) else str(c) for c in distinct.tolist()]
            codes = np.where(np.isnan(x), -1, np.searchsorted(distinct, x))
        else:
            distinct, codes = np.unique(v.values, return_inverse=True)
            cells = [str(c) for c in distinct.tolist()]
            codes = codes if v.null is None else np.where(v.null, -1, codes)
        return Vector("text", narrow(codes, len(cells)), None, objects(cells))
    return _recode(b, e, v, lambda x: None if x is UNMATCHED else str(x))


def cut(b: Block, e: ex.Cut) -> Vector:
    """Return the label of the bin that each number is in, as ``pandas.cut`` does.

    A number in no bin, and a null, is null. ``e`` is the expression, and ``b`` has the rows to
    evaluate it on.
    """
    x, edges = as_floats(b.vector(e.x)), np.array(e.edges, dtype=np.float64)
    place = np.searchsorted(edges, x, side="left" if e.right else "right") - 1
    codes = np.where(place < len(edges) - 1, place, -1)  # NaN sorts last
    categories = b.per_category(e, lambda: objects(map(plain, e.categories)))
    return Vector("label", narrow(codes, len(categories)), None, categories)


def map_dict(b: Block, e: ex.MapDict) -> Vector:
    """Return the value that a dictionary has for each cell, as ``Series.map`` does.

    A cell that is no key becomes null. The result has the type of the dictionary's values. ``e`` is
    the expression, and ``b`` has the rows to evaluate it on.
    """
    find = b.per_category(
        e, lambda: finder((c.value, i) for i, c in enumerate(e.keys, start=1)), part="keys"
    )
    place = find(b.vector(e.x)).astype(np.int64) - 1  # -1: no key matches
    kind = e.kind
    values = [*(c.value for c in e.values), None]
    null = np.array([x is None for x in values]).take(place, mode="wrap")
    if kind in ("text", "label"):
        categories = b.per_category(
            e, lambda: objects(plain(x) for x in values[:-1]), part="values"
        )
        return Vector(kind, narrow(np.where(null, -1, place), len(values)), None, categories)
    if kind == "bool":
        return Vector("bool", np.array([x is True for x in values]).take(place, mode="wrap"), null)
    if kind == "time":
        stamps = [(0, "s") if x is None else ticks_of(x) for x in values]
        finest = max((unit for _, unit in stamps), key=lambda u: TICKS[u])
        ticks = [t * (TICKS[finest] // TICKS[unit]) for t, unit in stamps]
        table = np.array([min(max(t, NAT + 1), LAST) for t in ticks], dtype=np.int64)
        return Vector(
            "time", np.where(null, NAT, table.take(place, mode="wrap")).view(f"M8[{finest}]")
        )
    if all(x is None or fits(x, np.dtype(np.int64)) for x in values):
        return Vector(
            "number",
            np.array([x or 0 for x in values], dtype=np.int64).take(place, mode="wrap"),
            null,
        )
    return Vector(
        "number",
        np.array([np.nan if x is None else float(x) for x in values]).take(place, mode="wrap"),
    )


# ---- functions of the catalogue ------------------------------------------------------------------


def call_texts(b: Block, e: ex.Call) -> Vector:
    """Return what a function of the catalogue `dpframe._expr.OPS` makes of the text in each row.

    It is computed once for each distinct text. Functions of two texts are computed once for each
    pair. ``e`` is the expression, and ``b`` has the rows to evaluate it on.
    """
    if len(e.operands) == 2:
        return _call_pairs(b, e)
    v = b.vector(e.operands[0])
    kind = e.kind

    def make(categories: Array) -> Any:
        return _MAKE[kind](_find_values(e, categories))

    made = b.per_category(e, make, v)
    if kind == "number":
        return Vector("number", look_up(made, v.values))
    if kind == "time":
        return Vector("time", look_up(made, v.values).view("M8[us]"))
    table, more = made
    if kind == "bool":
        return Vector(
            "bool", look_up(table, v.values), look_up(more, v.values) if e.nullable else None
        )
    return Vector(kind, look_up(table, v.values), None, more)


def _find_values(e: ex.Call, categories: Array) -> list[Any]:
    """Return what a function makes of each distinct text, as a list; None is null."""
    make_pattern = ex.PATTERNS.get(e.op)
    pattern = None if make_pattern is None else make_pattern(*e.args)
    if pattern is not None:  # patterns are searched in all texts at once
        return ex.find(categories, pattern)
    op, args = ex.OPS[e.op], e.args
    value, cell = op.value, list if op.of == ("other",) else str
    assert value is not None
    if not args:
        return [value(x) if type(x) is cell else None for x in categories]
    return [value(x, *args) if type(x) is cell else None for x in categories]


def _make_dictionary(found: list[Any]) -> tuple[Array, Array]:
    """Return a code for each result, and the array of distinct results.

    Null has the code -1. The codes end with that of null, for rows without a text.
    """
    index: dict[Any, int] = {}
    table = [-1 if y is None else index.setdefault(y, len(index)) for y in found]
    return narrow(np.array([*table, -1]), len(index)), objects(index)


def _make_doubles(found: list[Any]) -> Array:
    return np.array([*found, None], dtype=np.float64)


def _make_truths(found: list[Any]) -> tuple[Array, Array]:
    """Return which results are true, and which are null.

    Both arrays end with an entry for null, for rows without a text.
    """
    known = [*found, None]
    return np.array([x is True for x in known]), np.array([x is None for x in known])


def _make_lists(found: list[Any]) -> tuple[Array, Array]:
    """Return a code for each list, and the array of lists, which are not compared.

    Null has the code -1. The codes end with that of null, for rows without a text.
    """
    codes = [-1 if y is None else i for i, y in enumerate(found)]
    return narrow(np.array([*codes, -1]), len(codes)), objects(found)


def _make_ticks(found: list[Any]) -> Array:
    """Return times in microseconds since 1970.

    The array ends with a null, for rows without a text.
    """
    ticks = [NAT if y is None else (y - _EPOCH) // _MICROSECOND for y in found]
    return np.array([*ticks, NAT], dtype=np.int64)


_EPOCH, _MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)
_MAKE: dict[str, Callable[[list[Any]], Any]] = {
    "text": _make_dictionary,
    "number": _make_doubles,
    "bool": _make_truths,
    "other": _make_lists,
    "time": _make_ticks,
}


def _call_pairs(b: Block, e: ex.Call) -> Vector:
    """Return what a function makes of two texts in each row, computed once for each distinct pair.

    ``e`` is the expression, and ``b`` has the rows to evaluate it on.
    """
    value = ex.OPS[e.op].value
    x, y = (b.vector(side) for side in e.operands)
    assert value is not None
    assert x.categories is not None
    assert y.categories is not None
    size = len(y.categories)
    null = (x.values < 0) | (y.values < 0)
    pairs = np.where(null, -1, x.values.astype(np.int64) * size + y.values.astype(np.int64))
    distinct, codes = np.unique(pairs, return_inverse=True)
    index: dict[Any, int] = {}
    table = []
    for pair in distinct.tolist():
        one, two = (
            (None, None) if pair < 0 else (x.categories[pair // size], y.categories[pair % size])
        )
        found = value(one, two) if type(one) is str and type(two) is str else None
        table.append(-1 if found is None else index.setdefault(found, len(index)))
    cells = np.array([*table, -1], dtype=np.int64)[codes]
    return Vector("text", narrow(cells, len(index)), None, objects(index))
