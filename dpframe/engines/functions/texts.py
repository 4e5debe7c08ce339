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
    """Whether a text that is no pattern is in it: `str_part` asks RE2 for patterns."""
    return pat in x if case else re.search(re.escape(pat), x, re.IGNORECASE) is not None


def _item(x: str, i: int) -> str | None:
    return x[i] if -len(x) <= i < len(x) else None


def _replace(x: str, old: str, new: str) -> str | None:
    grown = len(x) + (x.count(old) + (not old)) * (len(new) - len(old))
    return x.replace(old, new) if grown <= ex.LONGEST_TEXT else None


_SIDES = {
    "left": "rjust",
    "right": "ljust",
    "both": "center",
}  # pandas names the side that is filled


def _slice_replaced(x: str, start: int | None, stop: int | None, repl: str | None) -> str:
    """The text with a slice replaced as in pandas: into an empty slice the new text is put where it
    begins."""
    rest = start if x[start:stop] == "" else stop
    before = "" if start is None else x[:start]
    return before + (repl or "") + ("" if stop is None else x[rest:])


_STRINGS: dict[str, Callable[..., Any]] = {
    **{m: getattr(str, m) for m in ("lower", "upper", "title", "capitalize", "swapcase")},
    **{
        m: getattr(str, m) for m in ("strip", "lstrip", "rstrip", "startswith", "endswith", "zfill")
    },
    **{
        m: getattr(str, m)
        for m in ("isdigit", "isalpha", "isalnum", "isnumeric", "isdecimal", "isspace")
    },
    **{
        m: getattr(str, m)
        for m in ("islower", "isupper", "istitle", "isascii", "casefold", "find", "rfind")
    },
    **{m: getattr(str, m) for m in ("removeprefix", "removesuffix", "ljust", "rjust", "center")},
    "pad": lambda x, width, side, fill: getattr(x, _SIDES[side])(width, fill),
    "repeat": lambda x, repeats: x * repeats if len(x) * repeats <= ex.LONGEST_TEXT else None,
    "slice_replace": _slice_replaced,
    "replace": _replace,
    "len": len,
    "contains": _contains,
    "slice": lambda x, *ends: x[slice(*ends)],
    "get": _item,
}


def str_part(b: Block, e: ex.StrPart) -> Vector:
    v, method, args = b.vector(e.x), _STRINGS[e.method], [c.value for c in e.args]
    if e.method == "contains" and args[2] and ex.is_special(args[0]):
        return pattern(b, ex.Regex(e.x, "contains", args[0], args[1]))

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
    find = b.per_category(
        e, lambda: finder((c.value, i) for i, c in enumerate(e.keys, start=1)), part="keys"
    )
    place = find(b.vector(e.x)).astype(np.int64) - 1  # -1 where nothing is found
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


_NUMERAL = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)


def numeral(b: Block, e: ex.Numeral) -> Vector:
    """Python's own reading of each text."""
    v = b.vector(e.x)

    def number(cell: Any) -> float:
        known = type(cell) is str and len(cell) <= 400 and _NUMERAL.fullmatch(cell) is not None
        return float(cell) if known else np.nan

    table = b.per_category(
        e, lambda cats: np.array([*map(number, cats), np.nan], dtype=np.float64), v
    )
    return Vector("number", look_up(table, v.values))


# ---- patterns ---------------------------------------------------------------------------------------------


def pattern(b: Block, e: ex.Regex) -> Vector:
    """What RE2 finds in each category, or Python's engine for a pattern that repeats nothing, where
    pyarrow is not there."""
    v = b.vector(e.x)

    kind = "bool" if e.op == "contains" else e.kind
    found = b.per_category(
        e, lambda categories: ex.find(categories, e.text_pattern), v, part="found"
    )
    if kind == "text":
        return _dictionary(b, e, v, found)
    if kind == "number":
        return Vector("number", look_up(np.array([*found, None], dtype=np.float64), v.values))
    null = np.array([x is None for x in (*found, None)])
    true = np.array([x is True for x in (*found, None)])
    return Vector(
        "bool", look_up(true, v.values), look_up(null, v.values) if e.x.kind != "text" else None
    )


def _dictionary(b: Block, e: ex.Expr, v: Vector, found: list[Any]) -> Vector:
    """A dictionary of what was found in each category, of which some are null."""

    def make(*_: Array) -> tuple[Array, Array]:
        index: dict[Any, int] = {}
        table = [-1 if y is None else index.setdefault(y, len(index)) for y in found]
        return narrow(np.array([*table, -1]), len(index)), objects(index)

    table, categories = b.per_category(e, make, v, part="texts")
    return Vector("text", look_up(table, v.values), None, categories)


# ---- texts put together and taken apart -------------------------------------------------------------------


def join(b: Block, e: ex.Join) -> Vector:
    """One text for each pair of texts that stands in some row."""
    x, y = b.vector(e.left), b.vector(e.right)
    assert x.categories is not None
    assert y.categories is not None
    size = len(y.categories)
    pairs = np.where(
        (x.values < 0) | (y.values < 0),
        -1,
        x.values.astype(np.int64) * size + y.values.astype(np.int64),
    )
    distinct, codes = np.unique(pairs, return_inverse=True)
    index: dict[Any, int] = {}
    table = []
    for pair in distinct.tolist():
        one, two = (
            (None, None) if pair < 0 else (x.categories[pair // size], y.categories[pair % size])
        )
        if type(one) is str and type(two) is str and len(one) + len(two) <= ex.LONGEST_TEXT:
            table.append(index.setdefault(one + two, len(index)))
        else:
            table.append(-1)
    found = np.array([*table, -1], dtype=np.int64)[codes]
    return Vector("text", narrow(found, len(index)), None, objects(index))


def split(b: Block, e: ex.Split) -> Vector:
    """The lists of pieces, as the categories of a column that nobody can compare."""
    v = b.vector(e.x)

    def make(categories: Array) -> Array:
        return objects(_pieces(c, e) if type(c) is str else None for c in categories)

    lists = b.per_category(e, make, v)
    known = b.per_category(
        e, lambda _: np.array([c is not None for c in (*lists, None)]), v, part="known"
    )
    return Vector(
        "other", np.where(look_up(known, v.values), v.values, v.values.dtype.type(-1)), None, lists
    )


def _pieces(text: str, e: ex.Split) -> list[str]:
    if e.keeps:
        return list(text.rpartition(e.sep or " ") if e.right else text.partition(e.sep or " "))
    return text.rsplit(e.sep, e.most) if e.right else text.split(e.sep, e.most)


def piece(b: Block, e: ex.Piece) -> Vector:
    """The piece of each list at a place."""
    v = b.vector(e.x)

    def item(x: Any) -> str | None:
        return x[e.place] if x is not None and -len(x) <= e.place < len(x) else None

    return _recode(b, e, v, item)


def pieces(b: Block, e: ex.Pieces) -> Vector:
    """How long each list is."""
    v = b.vector(e.x)
    table = b.per_category(
        e, lambda cats: np.array([*(np.nan if c is None else len(c) for c in cats), np.nan]), v
    )
    return Vector("number", look_up(table, v.values))
