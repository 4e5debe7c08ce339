"""Parts of texts and labels on numpy: dictionaries category by category."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dpframe import _expr as ex
from dpframe._cells.codec import TICKS, finder, ticks_of
from dpframe._cells.columns import (
    LAST,
    NAT,
    UNMATCHED,
    Array,
    Vector,
    as_floats,
    fits,
    look_up,
    narrow,
    objects,
    plain,
)

if TYPE_CHECKING:
    from dpframe.engines.expressions import Block

# ---- dictionaries -----------------------------------------------------------------------------------------


def _recode(b: Block, e: ex.Expr, v: Vector, f: Callable[[Any], Any]) -> Vector:
    """A new dictionary, made of what `f` says of each category; None is null."""

    def make(categories: Array) -> tuple[Array, Array]:
        index: dict[Any, int] = {}
        table = [-1 if (y := f(x)) is None else index.setdefault(y, len(index)) for x in categories]
        return narrow(np.array([*table, -1]), len(index)), objects(index)

    table, categories = b.per_category(e, make, v)
    return Vector("text", look_up(table, v.values), None, categories)


def as_text(b: Block, e: ex.Cast, v: Vector) -> Vector:
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


def _contains(x: str, pat: str, case: bool, regex: bool) -> bool:
    if not regex and case:
        return pat in x
    return re.search(pat if regex else re.escape(pat), x, 0 if case else re.IGNORECASE) is not None


def _item(x: str, i: int) -> str | None:
    return x[i] if -len(x) <= i < len(x) else None


_LONGEST = 2**16  # a longer text is null: without a limit one cell could ask for all memory


def _replace(x: str, old: str, new: str) -> str | None:
    grown = len(x) + (x.count(old) + (not old)) * (len(new) - len(old))
    return x.replace(old, new) if grown <= _LONGEST else None


_STRINGS: dict[str, Callable[..., Any]] = {
    **{m: getattr(str, m) for m in ("lower", "upper", "title", "capitalize", "swapcase")},
    **{m: getattr(str, m) for m in ("strip", "lstrip", "rstrip", "startswith", "endswith", "zfill")},
    "replace": _replace,
    "len": len,
    "contains": _contains,
    "slice": lambda x, *ends: x[slice(*ends)],
    "get": _item,
}


def str_part(b: Block, e: ex.StrPart) -> Vector:
    v, method, args = b.vector(e.x), _STRINGS[e.method], [c.value for c in e.args]

    def f(x: Any) -> Any:
        return method(x, *args) if type(x) is str else None

    if e.kind == "text":
        return _recode(b, e, v, f)
    if e.kind == "number":
        table = b.per_category(e, lambda cats: np.array([*map(f, cats), None], dtype=np.float64), v)
        return Vector("number", look_up(table, v.values))

    def make(categories: Array) -> tuple[Array, Array]:
        found = [*map(f, categories), None]
        return np.array([x is True for x in found]), np.array([x is None for x in found])

    true, null = b.per_category(e, make, v)
    return Vector("bool", look_up(true, v.values), look_up(null, v.values) if e.nullable else None)


def cut(b: Block, e: ex.Cut) -> Vector:
    x, edges = as_floats(b.vector(e.x)), np.array(e.edges, dtype=np.float64)
    place = np.searchsorted(edges, x, side="left" if e.right else "right") - 1
    codes = np.where(place < len(edges) - 1, place, -1)  # NaN sorts last
    categories = b.per_category(e, lambda: objects(map(plain, e.categories)))
    return Vector("label", narrow(codes, len(categories)), None, categories)


def map_dict(b: Block, e: ex.MapDict) -> Vector:
    find = b.per_category(e, lambda: finder((c.value, i) for i, c in enumerate(e.keys, start=1)), part="keys")
    place = find(b.vector(e.x)).astype(np.int64) - 1  # -1 where nothing is found
    kind = e.kind
    values = [*(c.value for c in e.values), None]
    null = np.array([x is None for x in values]).take(place, mode="wrap")
    if kind in ("text", "label"):
        categories = b.per_category(e, lambda: objects(plain(x) for x in values[:-1]), part="values")
        return Vector(kind, narrow(np.where(null, -1, place), len(values)), None, categories)
    if kind == "bool":
        return Vector("bool", np.array([x is True for x in values]).take(place, mode="wrap"), null)
    if kind == "time":
        stamps = [(0, "s") if x is None else ticks_of(x) for x in values]
        finest = max((unit for _, unit in stamps), key=lambda u: TICKS[u])
        ticks = [t * (TICKS[finest] // TICKS[unit]) for t, unit in stamps]
        table = np.array([min(max(t, NAT + 1), LAST) for t in ticks], dtype=np.int64)
        return Vector("time", np.where(null, NAT, table.take(place, mode="wrap")).view(f"M8[{finest}]"))
    if all(x is None or fits(x, np.dtype(np.int64)) for x in values):
        return Vector(
            "number", np.array([x or 0 for x in values], dtype=np.int64).take(place, mode="wrap"), null
        )
    return Vector(
        "number", np.array([np.nan if x is None else float(x) for x in values]).take(place, mode="wrap")
    )
