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

import operator
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from dpframe import _expr as ex
from dpframe.engines._columns import UNMATCHED, Array, Bools, Vector, narrow, objects, plain

ColumnOf = Callable[[ex.Column], Vector]
# What an expression makes of the categories of its operands, kept while those stay the same.
Memo = dict[tuple[ex.Expr, str], tuple[tuple[Array, ...], Any]]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.mod,
    "**": np.power,
}
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # per second
_NAT = np.iinfo(np.int64).min
_LAST = np.iinfo(np.int64).max


def evaluate(expr: ex.Expr, column: ColumnOf, rows: slice, memo: Memo | None = None) -> Vector:
    """The expression's value in each of the rows. A `memo` kept by the caller saves work between slices."""
    with np.errstate(all="ignore"):
        return _Block(expr, column, rows, memo).vector(expr)


def predicate(expr: ex.Expr, column: ColumnOf, rows: slice, memo: Memo | None = None) -> Bools:
    """In which of the rows is the condition true? Null is not true."""
    with np.errstate(all="ignore"):
        return _Block(expr, column, rows, memo).truth(expr)


class _Block:
    """One evaluation: the rows, and what has been found for them already."""

    def __init__(self, expr: ex.Expr, column: ColumnOf, rows: slice, memo: Memo | None):
        leaf = next(iter(expr.columns()), None)
        whole = len(column(leaf)) if leaf is not None else max(rows.stop or 0, 0)
        self.n = len(range(*rows.indices(whole)))
        self._column, self._rows = column, rows
        self._memo: Memo = {} if memo is None else memo
        self._seen: dict[int, Vector] = {}

    def vector(self, e: ex.Expr) -> Vector:
        found = self._seen.get(id(e))
        if found is None:
            found = self._seen[id(e)] = _NODES[type(e)](self, e)
        return found

    def leaf(self, e: ex.Column) -> Vector:
        return self._column(e).rows(self._rows)

    def truth(self, e: ex.Expr) -> Bools:
        """May share memory with the column, so it is only to be read."""
        v = self.vector(e)
        return v.values if v.null is None else v.values & ~v.null

    def floats(self, e: ex.Expr) -> Any:
        """float64 with NaN for null; a constant stays a scalar."""
        return np.float64(e.value) if isinstance(e, ex.Constant) else _floats(self.vector(e))

    def per_category(self, e: ex.Expr, make: Callable[..., Any], *operands: Vector, part: str = "") -> Any:
        """`make` of the operands' categories, remembered for as long as they are the same arrays."""
        categories = tuple(v.categories for v in operands if v.categories is not None)
        kept = self._memo.get((e, part))
        if kept is None or not all(a is b for a, b in zip(kept[0], categories, strict=True)):
            kept = self._memo[e, part] = (categories, make(*categories))
        return kept[1]


def _floats(v: Vector) -> Array:
    values = v.values.astype(np.float64, copy=v.null is not None)
    if v.null is not None:
        values[v.null] = np.nan
    return values


def _bools(values: Any) -> Vector:
    return Vector("bool", values)


def _look_up(table: Array, codes: Array) -> Array:
    """A table with one entry per category, and a last one for null, which is what code -1 finds."""
    return table.take(codes, mode="wrap")


# ---- leaves -----------------------------------------------------------------------------------------------


def _column(b: _Block, e: ex.Column) -> Vector:
    return b.leaf(e)


def _constant(b: _Block, e: ex.Constant) -> Vector:
    if e.kind in ("text", "label"):
        return Vector(e.kind, np.zeros(b.n, dtype=np.int8), None, objects([plain(e.value)]))
    value: Any = e.value
    if e.kind == "time":
        value = _utc(value).asm8
    elif e.kind == "number" and not (isinstance(value, int) and -(2**63) <= value < 2**63):
        value = float(value)
    return Vector(e.kind, np.full(b.n, value))


def _utc(moment: pd.Timestamp) -> pd.Timestamp:
    return moment if moment.tz is None else moment.tz_convert(None)


# ---- comparisons ------------------------------------------------------------------------------------------


def _compare(b: _Block, e: ex.Compare) -> Vector:
    left = b.vector(e.left)
    if isinstance(e.right, ex.Constant):
        one = _text_with_constant if left.categories is not None else _number_with_constant
        return _bools(one(b, e, left, e.right))
    right = b.vector(e.right)
    if left.categories is not None:
        return _bools(_text_with_text(b, e, left, right))
    compare = _compare_times if left.kind == "time" else _compare_numbers
    found = compare(e.op, left.values, right.values)
    for v in (left, right):
        found = _null_is(found, v, e.op == "!=")
    return _bools(found)


def _null_is(found: Array, v: Vector, value: bool) -> Array:
    """NaN already compares like a null; masks and NaT do not."""
    null = np.isnat(v.values) if v.kind == "time" else v.null
    if null is not None:
        found[null] = value
    return found


def _number_with_constant(b: _Block, e: ex.Compare, v: Vector, c: ex.Constant) -> Array:
    values, wanted = _exact(v), _in_units(c, v)
    compare = _COMPARE[e.op]
    found = _compare_integers(e.op, values, wanted) if values.dtype.kind in "iu" else None
    if found is None:
        found = compare(values, np.float64(wanted))
    return _null_is(found, v, e.op == "!=")


def _exact(v: Vector) -> Array:
    """Timestamps as ticks and bools as 0 and 1, so that three kinds compare as integers."""
    if v.kind == "time":
        return v.values.view(np.int64)
    return v.values.view(np.int8) if v.values.dtype == bool else v.values


def _in_units(c: ex.Constant, v: Vector) -> Any:
    """The constant as a number on the scale of `_exact`."""
    if not isinstance(c.value, pd.Timestamp):
        return c.value
    ticks, unit = _ticks(c.value)
    return Fraction(ticks * _TICKS[_unit(v.values)], _TICKS[unit])


def _ticks(moment: pd.Timestamp) -> tuple[int, str]:
    stamp: Any = _utc(moment).asm8
    return int(stamp.astype(np.int64)), np.datetime_data(stamp.dtype)[0]


def _unit(values: Array) -> str:
    return np.datetime_data(values.dtype)[0]


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
    ratio = _TICKS[_unit(right)] // _TICKS[_unit(left)]
    if ratio < 1:
        return _compare_times({"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(op, op), right, left)
    whole, rest = np.divmod(b, ratio)
    order = np.sign(np.where(a == whole, -rest, np.where(a < whole, -1, 1)))
    return np.asarray(_COMPARE[op](order, 0))


def _key(value: Any) -> Any:
    """What equality looks at: Python's own, but a bool never equals a number."""
    return (bool, value) if type(value) is bool else value


def _text_with_constant(b: _Block, e: ex.Compare, v: Vector, c: ex.Constant) -> Array:
    compare, wanted, op = _COMPARE[e.op], plain(c.value), e.op

    def make(categories: Array) -> Array:
        if op in ("==", "!="):
            hits = [_key(x) == _key(wanted) for x in categories]
            return np.array([h is (op == "==") for h in hits] + [op == "!="], dtype=bool)
        return np.array([type(x) is str and compare(x, wanted) for x in categories] + [False], dtype=bool)

    table: Array = b.per_category(e, make, v)
    odd = np.flatnonzero(table != table[-1])  # comparing with one code is faster than a table
    if len(odd) <= 1:
        if len(odd) == 0:
            return np.full(b.n, bool(table[-1]))
        code = int(odd[0])  # a numpy integer would widen every code first
        return np.asarray((v.values != code) if table[-1] else (v.values == code))
    return _look_up(table, v.values)


def _text_with_text(b: _Block, e: ex.Compare, left: Vector, right: Vector) -> Array:
    ordered = e.op not in ("==", "!=")

    def make(a: Array, c: Array) -> list[Array]:
        if ordered:
            words = sorted({x for x in (*a, *c) if type(x) is str})
        else:
            words = [*dict.fromkeys(_key(x) for x in (*a, *c) if x is not UNMATCHED)]
        place = {x: i for i, x in enumerate(words)}
        return [np.array([*(place.get(_key(x), -1) for x in side), -1]) for side in (a, c)]

    tables = b.per_category(e, make, left, right)
    x, y = _look_up(tables[0], left.values), _look_up(tables[1], right.values)
    known = (x >= 0) & (y >= 0)
    found = _COMPARE[e.op](x, y)
    return np.asarray(found | ~known if e.op == "!=" else found & known)


# ---- conditions -------------------------------------------------------------------------------------------


def _and(b: _Block, e: ex.And) -> Vector:
    return _bools(b.truth(e.left) & b.truth(e.right))


def _or(b: _Block, e: ex.Or) -> Vector:
    return _bools(b.truth(e.left) | b.truth(e.right))


def _not(b: _Block, e: ex.Not) -> Vector:
    return _bools(~b.truth(e.x))


def _is_null(b: _Block, e: ex.IsNull) -> Vector:
    null = b.vector(e.x).nulls()
    return _bools(np.zeros(b.n, dtype=bool) if null is None else null)


def _is_in(b: _Block, e: ex.IsIn) -> Vector:
    v = b.vector(e.x)
    listed = any(c.value is None for c in e.values)
    if v.categories is not None:
        wanted = {_key(plain(c.value)) for c in e.values if c.value is not None}
        table = b.per_category(e, lambda cats: np.array([_key(x) in wanted for x in cats] + [listed]), v)
        return _bools(_look_up(table, v.values))
    if v.kind == "other":
        found = np.zeros(b.n, dtype=bool)
    else:
        values = _exact(v)
        known, _ = _places(b, e, e.values, v)
        found = np.isin(values if values.dtype.kind in "iu" else _floats(v), known)
    null = v.nulls()
    if null is not None:
        found[null] = listed
    return _bools(found)


def _places(b: _Block, e: ex.Expr, constants: Iterable[ex.Constant], v: Vector) -> tuple[Array, Array]:
    """The constants that a cell of this dtype could equal, sorted and in that dtype, each with its position."""
    dtype = _exact(v).dtype
    whole = dtype.kind in "iu"

    def make() -> tuple[Array, Array]:
        found: list[tuple[Any, int]] = []
        for i, c in enumerate(constants):
            value = None if c.value is None else _in_units(c, v)
            if value is not None and not whole:
                found.append((float(value), i))
            elif value is not None and value == value // 1 and _fits(int(value), dtype):
                found.append((int(value), i))
        found.sort()
        kind = dtype if whole else np.dtype(np.float64)
        return np.array([k for k, _ in found], dtype=kind), np.array([i for _, i in found], dtype=np.intp)

    places: tuple[Array, Array] = b.per_category(e, make, part=f"places in {v.values.dtype}")
    return places


# ---- arithmetic -------------------------------------------------------------------------------------------


def _arithmetic(b: _Block, e: ex.Arithmetic) -> Vector:
    x, y = b.floats(e.left), b.floats(e.right)
    found = np.asarray(_ARITHMETIC[e.op](x, y))
    if e.op == "**":  # numpy holds 1**NaN and NaN**0 for 1
        found = np.where(np.isnan(x) | np.isnan(y), np.nan, found)
    return Vector("number", np.full(b.n, found) if found.ndim == 0 else found)


def _unary(b: _Block, e: ex.Unary) -> Vector:
    x = _floats(b.vector(e.x))
    return Vector("number", np.negative(x) if e.op == "-" else np.abs(x))


def _round(b: _Block, e: ex.Round) -> Vector:
    return Vector("number", np.round(_floats(b.vector(e.x)), e.digits))


def _clip(b: _Block, e: ex.Clip) -> Vector:
    v = b.vector(e.x)
    ends = [None if c is None else c.value for c in (e.lower, e.upper)]
    if v.values.dtype.kind in "iu" and all(_fits(c, v.values.dtype) for c in ends):
        return Vector("number", np.clip(v.values, *ends), v.null)
    low, high = (None if c is None else np.float64(c) for c in ends)
    return Vector("number", np.clip(_floats(v), low, high))


def _fits(value: Any, dtype: Any) -> bool:
    """Can the integer dtype hold it? Types and constants decide, so every row gets the same answer."""
    return value is None or (isinstance(value, int) and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max)


def _fill(b: _Block, e: ex.Fill) -> Vector:
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
        ticks = int(_in_units(e.value, v) // 1)  # a finer constant is cut to the resolution of the column
        filled = np.where(np.isnat(v.values), min(max(ticks, _NAT + 1), _LAST), v.values.view(np.int64))
        return Vector("time", filled.view(v.values.dtype))
    if v.kind == "bool" or (v.values.dtype.kind in "iu" and _fits(value, v.values.dtype)):
        return v if v.null is None else Vector(v.kind, np.where(v.null, v.values.dtype.type(value), v.values))
    x = _floats(v)
    return Vector("number", np.where(np.isnan(x), np.float64(value), x))


def _cast(b: _Block, e: ex.Cast) -> Vector:
    v = b.vector(e.x)
    if e.to == "str":
        return _as_text(b, e, v)
    if e.to == "bool":
        return Vector("bool", v.values != 0, v.nulls())
    if e.to == "int" and v.values.dtype == bool:
        return Vector("number", v.values.view(np.int8), v.null)
    x = _floats(v)
    if e.to == "int":
        x = np.trunc(x)
        x[np.isinf(x)] = np.nan
    return Vector("number", x)


def _as_text(b: _Block, e: ex.Cast, v: Vector) -> Vector:
    if v.categories is None:
        if v.values.dtype.kind == "f":
            x = _floats(v)
            distinct = np.unique(x[~np.isnan(x)])
            cells = [str(int(c)) if np.isfinite(c) else str(c) for c in distinct.tolist()]
            codes = np.where(np.isnan(x), -1, np.searchsorted(distinct, x))
        else:
            distinct, codes = np.unique(v.values, return_inverse=True)
            cells = [str(c) for c in distinct.tolist()]
            codes = codes if v.null is None else np.where(v.null, -1, codes)
        return Vector("text", narrow(codes, len(cells)), None, objects(cells))
    return _recode(b, e, v, lambda x: None if x is UNMATCHED else str(x))


# ---- dictionaries -----------------------------------------------------------------------------------------


def _recode(b: _Block, e: ex.Expr, v: Vector, f: Callable[[Any], Any]) -> Vector:
    """A new dictionary, made of what `f` says of each category; None is null."""

    def make(categories: Array) -> tuple[Array, Array]:
        index: dict[Any, int] = {}
        table = [-1 if (y := f(x)) is None else index.setdefault(y, len(index)) for x in categories]
        return narrow(np.array([*table, -1]), len(index)), objects(index)

    table, categories = b.per_category(e, make, v)
    return Vector("text", _look_up(table, v.values), None, categories)


def _contains(x: str, pat: str, case: bool, regex: bool) -> bool:
    if not regex and case:
        return pat in x
    return re.search(pat if regex else re.escape(pat), x, 0 if case else re.IGNORECASE) is not None


def _item(x: str, i: int) -> str | None:
    return x[i] if -len(x) <= i < len(x) else None


_STRINGS: dict[str, Callable[..., Any]] = {
    **{m: getattr(str, m) for m in ("lower", "upper", "title", "capitalize", "swapcase")},
    **{
        m: getattr(str, m)
        for m in ("strip", "lstrip", "rstrip", "startswith", "endswith", "replace", "zfill")
    },
    "len": len,
    "contains": _contains,
    "slice": lambda x, *ends: x[slice(*ends)],
    "get": _item,
}


def _str_part(b: _Block, e: ex.StrPart) -> Vector:
    v, method, args = b.vector(e.x), _STRINGS[e.method], [c.value for c in e.args]

    def f(x: Any) -> Any:
        return method(x, *args) if type(x) is str else None

    if e.kind == "text":
        return _recode(b, e, v, f)
    if e.kind == "number":
        table = b.per_category(e, lambda cats: np.array([*map(f, cats), None], dtype=np.float64), v)
        return Vector("number", _look_up(table, v.values))

    def make(categories: Array) -> tuple[Array, Array]:
        found = [*map(f, categories), None]
        return np.array([x is True for x in found]), np.array([x is None for x in found])

    true, null = b.per_category(e, make, v)
    return Vector("bool", _look_up(true, v.values), _look_up(null, v.values) if e.nullable else None)


def _cut(b: _Block, e: ex.Cut) -> Vector:
    x, edges = _floats(b.vector(e.x)), np.array(e.edges)
    place = np.searchsorted(edges, x, side="left" if e.right else "right") - 1
    codes = np.where(place < len(edges) - 1, place, -1)  # NaN sorts last
    categories = b.per_category(e, lambda: objects(map(plain, e.categories)))
    return Vector("label", narrow(codes, len(categories)), None, categories)


def _map_dict(b: _Block, e: ex.MapDict) -> Vector:
    place = _map_places(b, e)  # -1 where nothing is found
    kind = e.kind
    values = [*(c.value for c in e.values), None]
    null = np.array([x is None for x in values]).take(place, mode="wrap")
    if kind in ("text", "label"):
        categories = b.per_category(e, lambda: objects(plain(x) for x in values[:-1]), part="values")
        return Vector(kind, narrow(np.where(null, -1, place), len(values)), None, categories)
    if kind == "bool":
        return Vector("bool", np.array([x is True for x in values]).take(place, mode="wrap"), null)
    if kind == "time":
        stamps = [(0, "s") if x is None else _ticks(x) for x in values]
        finest = max((unit for _, unit in stamps), key=lambda u: _TICKS[u])
        ticks = [t * (_TICKS[finest] // _TICKS[unit]) for t, unit in stamps]
        table = np.array([min(max(t, _NAT + 1), _LAST) for t in ticks], dtype=np.int64)
        return Vector("time", np.where(null, _NAT, table.take(place, mode="wrap")).view(f"M8[{finest}]"))
    if all(x is None or _fits(x, np.dtype(np.int64)) for x in values):
        return Vector(
            "number", np.array([x or 0 for x in values], dtype=np.int64).take(place, mode="wrap"), null
        )
    return Vector(
        "number", np.array([np.nan if x is None else float(x) for x in values]).take(place, mode="wrap")
    )


def _map_places(b: _Block, e: ex.MapDict) -> Array:
    v = b.vector(e.x)
    of_null = next((i for i, c in enumerate(e.keys) if c.value is None), -1)
    if v.categories is not None:
        index = {_key(plain(c.value)): i for i, c in enumerate(e.keys) if c.value is not None}
        table = b.per_category(
            e, lambda cats: np.array([*(index.get(_key(x), -1) for x in cats), of_null]), v
        )
        return _look_up(table, v.values)
    values = _exact(v)
    values = values if values.dtype.kind in "iu" else _floats(v)
    keys, places = _places(b, e, e.keys, v)
    if len(keys):
        at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
        place = np.where(keys[at] == values, places[at], -1)
    else:
        place = np.full(b.n, -1)
    null = v.nulls()
    return place if null is None else np.where(null, of_null, place)


# ---- dates ------------------------------------------------------------------------------------------------

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def _date_part(b: _Block, e: ex.DatePart) -> Vector:
    moments = b.vector(e.x).values
    null = np.isnat(moments)
    local = _local(moments, e.x.tz)
    if e.part == "normalize":
        midnight = local.astype("M8[D]").astype(local.dtype)
        return Vector("time", _from_local(midnight, e.x.tz))
    if e.part in ("day_name", "month_name"):
        names, part = (_DAYS, "dayofweek") if e.part == "day_name" else (_MONTHS, "month")
        codes = _FIELDS[part](local) - (part == "month")
        categories = b.per_category(e, lambda: objects(names))
        return Vector("text", np.where(null, -1, codes).astype(np.int8), None, categories)
    return Vector("number", np.where(null, 0, _FIELDS[e.part](local)), null)


# Zones have offsets for the years 1 to 9999 only, and pandas raises beyond: those days count as the last one.
_YEAR_1, _YEAR_9999 = -62_135_596_800, 253_402_300_799
_MARGIN = 2 * 86_400


def _local(moments: Array, zone: str | None) -> Array:
    """Wall time, moved inside the range in which no conversion can fail."""
    per_second = _TICKS[_unit(moments)]
    low, high = _NAT + _MARGIN * per_second, _LAST - _MARGIN * per_second
    if zone is not None:
        low = max(low, (_YEAR_1 + _MARGIN) * per_second)
        high = min(high, (_YEAR_9999 - _MARGIN) * per_second)
    ticks = moments.view(np.int64)
    inside = np.where(ticks == _NAT, _NAT, np.clip(ticks, low, high)).view(moments.dtype)
    if zone is None:
        return np.asarray(inside)
    index: Any = pd.DatetimeIndex(inside).tz_localize("UTC").tz_convert(zone)
    return np.asarray(index.tz_localize(None))


def _from_local(wall: Array, zone: str | None) -> Array:
    if zone is None:
        return wall
    # A midnight that does not exist, or exists twice, must not raise: the next moment; the first.
    first = np.ones(len(wall), dtype=bool)
    index: Any = pd.DatetimeIndex(wall).tz_localize(zone, ambiguous=first, nonexistent="shift_forward")
    return np.asarray(index.tz_convert(None))


def _since(t: Array, small: str, large: str) -> Array:
    """How many `small` units have passed since the `large` one began."""
    began = t.astype(f"M8[{large}]").astype(f"M8[{small}]")
    return np.asarray(t.astype(f"M8[{small}]") - began).astype(np.int64)


_FIELDS: dict[str, Callable[[Array], Array]] = {
    "year": lambda t: t.astype("M8[Y]").astype(np.int64) + 1970,
    "quarter": lambda t: _since(t, "M", "Y") // 3 + 1,
    "month": lambda t: _since(t, "M", "Y") + 1,
    "day": lambda t: _since(t, "D", "M") + 1,
    "dayofyear": lambda t: _since(t, "D", "Y") + 1,
    "dayofweek": lambda t: (t.astype("M8[D]").astype(np.int64) + 3) % 7,  # 1970 began on a Thursday
    "hour": lambda t: _since(t, "h", "D"),
    "minute": lambda t: _since(t, "m", "h"),
    "second": lambda t: _since(t, "s", "m"),
}

_NODES: dict[type[ex.Expr], Callable[[_Block, Any], Vector]] = {
    ex.Column: _column,
    ex.Constant: _constant,
    ex.Compare: _compare,
    ex.And: _and,
    ex.Or: _or,
    ex.Not: _not,
    ex.IsNull: _is_null,
    ex.IsIn: _is_in,
    ex.Arithmetic: _arithmetic,
    ex.Unary: _unary,
    ex.Round: _round,
    ex.Clip: _clip,
    ex.Fill: _fill,
    ex.Cast: _cast,
    ex.StrPart: _str_part,
    ex.Cut: _cut,
    ex.MapDict: _map_dict,
    ex.DatePart: _date_part,
}
