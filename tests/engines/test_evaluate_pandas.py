"""Row-wise expressions give what pandas gives, row by row, and never raise because of a value."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe import _expr as ex
from dpframe._expr import Column, Expr
from tests.engines.entries import ATTRIBUTES, NUMBERS, PAIRS

INF = float("inf")


def expected(series: Any) -> list[Any]:
    return [None if pd.isna(x) else x for x in series.tolist()]


# ---- what pandas gives ------------------------------------------------------------------------------------

finite = st.floats(-1e6, 1e6).map(lambda v: v + 0.0)
numbers = st.lists(
    st.tuples(
        st.one_of(finite, st.just(float("nan"))),
        st.integers(-1000, 1000),
        st.sampled_from([*"abc", "B c", "", None]),
        st.booleans(),
        st.one_of(st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)), st.none()),
    ),
    min_size=1,
    max_size=12,
)


def build(rows: list[Any]) -> pd.DataFrame:
    x, i, s, b, t = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            "x": pd.Series(x, dtype="float64"),
            "i": pd.Series(i, dtype="int64"),
            "s": pd.Series(s, dtype="str"),
            "b": pd.Series(b, dtype=bool),
            "t": pd.Series(t, dtype="M8[us]"),
        }
    )


QUERIES = [
    "x > 0",
    "x != 0 and i <= 5",
    "0 < i <= 100",
    "i > 0 & x < 5 | b",
    "not b",
    "~(i == 3)",
    "s == 'a'",
    "s != 'a'",
    "s in ['a', 'c']",
    "s not in ['a', 'c']",
    "s == ['a', 'c']",
    "i in [1, 2, 3]",
    "x + i > 3",
    "x * 2 < i / 3",
    "i // 7 == 2",
    "i % 7 == 2",
    "-i > 3",
    "i ** 2 < 100",
    "x == x",
    "s >= 'b'",
    "t > '2000-01-01'",
    "x.isna()",
    "s.notna() and b",
    "i.between(0, 10)",
    "x.fillna(0) >= 0",
    "x.abs() < 10",
    "x.clip(0, 1) == 1",
    "x.round(1) > 0.5",
    "s.str.startswith('a')",
    "s.str.contains('[ab]')",
    "s.str.len() > 1",
    "s.str.upper() == 'B C'",
    "s.str[0] == 'B'",
    "t.dt.year > 1990",
    "t.dt.month == 2",
    "t.dt.quarter == 1",
    "b == True",
    "i > x",
]


@settings(max_examples=25, deadline=None)
@given(numbers)
def test_a_query_keeps_the_rows_that_pandas_keeps(framed: Any, rows: list[Any]) -> None:
    frame = build(rows)
    f = framed(frame)
    for text in QUERIES:
        kept = frame.query(text, engine="python").index
        assert f.mask(text) == frame.index.isin(kept).tolist(), text


VALUES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "x + 1": lambda d: d.x + 1,
    "x - i": lambda d: d.x - d.i,
    "x / i": lambda d: d.x / d.i,
    "i / 3": lambda d: d.i / 3,
    "i // 3": lambda d: d.i // 3,
    "i // 0": lambda d: d.i // 0,
    "x // 0.5": lambda d: d.x // 0.5,
    "i % 5": lambda d: d.i % 5,
    "i % -5": lambda d: d.i % -5,
    "x % i": lambda d: d.x % d.i,
    "i ** 3": lambda d: d.i**3,
    "-x": lambda d: -d.x,
    "x.abs()": lambda d: d.x.abs(),
    "x.round(2)": lambda d: d.x.round(2),
    "x.round(-2)": lambda d: d.x.round(-2),
    "i.round(-1)": lambda d: d.i.round(-1),
    "x.clip(-1, 1)": lambda d: d.x.clip(-1, 1),
    "i.clip(lower=0)": lambda d: d.i.clip(lower=0),
    "x.fillna(3)": lambda d: d.x.fillna(3),
    "s.fillna('z')": lambda d: d.s.fillna("z"),
    "s.str.len()": lambda d: d.s.str.len(),
    "s.str.lower()": lambda d: d.s.str.lower(),
    "s.str.title()": lambda d: d.s.str.title(),
    "s.str.strip('a')": lambda d: d.s.str.strip("a"),
    "s.str.replace('a', 'bb')": lambda d: d.s.str.replace("a", "bb", regex=False),
    "s.str.zfill(3)": lambda d: d.s.str.zfill(3),
    "s.str.get(1)": lambda d: d.s.str.get(1),
    "s.str[-1]": lambda d: d.s.str[-1],
    "s.str[0:2]": lambda d: d.s.str[0:2],
    "s.str[::-1]": lambda d: d.s.str[::-1],
    "s.str.contains('B', case=False)": lambda d: d.s.str.contains("B", case=False),
    "s.str.contains('.', regex=False)": lambda d: d.s.str.contains(".", regex=False),
    "s.str.endswith('c')": lambda d: d.s.str.endswith("c"),
    **{
        f"t.dt.{p}": operator.attrgetter(f"t.dt.{p}")
        for p in ("year", "quarter", "month", "day", "hour")
    },
    **{f"t.dt.{p}": operator.attrgetter(f"t.dt.{p}") for p in ("minute", "second")},
    "t.dt.weekday": lambda d: d.t.dt.day_of_week,
    "t.dt.day_of_year": lambda d: d.t.dt.day_of_year,
    "t.dt.day_name()": lambda d: d.t.dt.day_name(),
    "t.dt.month_name()": lambda d: d.t.dt.month_name(),
    "t.dt.normalize()": lambda d: d.t.dt.normalize(),
    "x if b else i": lambda d: d.x.where(d.b, d.i),
    "i if b else 5": lambda d: d.i.where(d.b, 5),
    "i if b else None": lambda d: d.i.where(d.b),
    "'p' if x > i else s": lambda d: d.s.mask(d.x > d.i, "p"),
    "s if b else None": lambda d: d.s.where(d.b),
    "'old' if x >= 65 else 'mid' if i > 3 else 'new'": lambda d: pd.Series(
        np.select([d.x >= 65, d.i > 3], ["old", "mid"], "new")
    ),
    "t if b else '2020-02-29'": lambda d: d.t.where(d.b, pd.Timestamp("2020-02-29")),
    "x.mask(x < 0, -x)": lambda d: d.x.mask(d.x < 0, -d.x),
    "where(b, x, 0)": lambda d: pd.Series(np.where(d.b, d.x, 0)),
    **{f"{f}(x)": lambda d, f=f: getattr(np, f)(d.x) for f in NUMBERS},
    **{
        f"{f}(i)": lambda d, f=f: getattr(np, f)(d.i)
        for f in ("sqrt", "log", "sign", "floor", "exp")
    },
    **{f"{f}(x, i)": lambda d, f=f: getattr(np, f)(d.x, d.i) for f in PAIRS},
}


@settings(max_examples=25, deadline=None)
@given(numbers)
def test_a_new_column_is_the_one_that_pandas_makes(framed: Any, rows: list[Any]) -> None:
    frame = build(rows)
    f = framed(frame)
    for text, make in VALUES.items():
        with np.errstate(all="ignore"):
            wanted = expected(make(frame))
        assert f.cells(text) == wanted, text


@settings(max_examples=25, deadline=None)
@given(numbers, st.booleans())
def test_casts_cuts_and_maps_are_those_of_pandas(framed: Any, rows: list[Any], right: bool) -> None:
    frame = build(rows)
    f = framed(frame)
    edges = [-500.0, 0.0, 10.0, 800.0]
    x = ex.fill(f["x"], 0.0)
    assert f.cells(ex.cast(x, int)) == frame.x.fillna(0.0).astype(int).tolist()
    assert f.cells(ex.cast(f["i"], float)) == frame.i.astype(float).tolist()
    assert f.cells(ex.cast(f["i"], bool)) == frame.i.astype(bool).tolist()
    assert f.cells(ex.cast(f["i"], str)) == frame.i.astype(str).tolist()
    assert (
        f.cells(ex.cast(ex.arithmetic("+", f["i"], ex.constant(1)), str))
        == (frame.i + 1).astype(str).tolist()
    )
    assert f.cells(ex.cast(f["b"], str)) == frame.b.astype(str).tolist()
    for labels in (None, ["lo", "mid", "hi"]):
        for name in ("x", "i"):
            cut = ex.cut(f[name], edges, labels, right=right)
            assert f.cells(cut) == expected(pd.cut(frame[name], edges, labels=labels, right=right))
    for name, mapping in (
        ("s", {"a": 1, "": 2}),
        ("i", {1: "one", 2: "two"}),
        ("s", {"a": None, "b": True}),
    ):
        found = f.cells(ex.map_dict(f[name], mapping))
        assert found == expected(frame[name].map(mapping))


# ---- row by row -------------------------------------------------------------------------------------------


class Loud:
    def _fail(self, *_: Any) -> Any:
        raise RuntimeError("a cell's own code ran")

    __eq__ = __hash__ = __str__ = __bool__ = __len__ = __lt__ = _fail


LOUD = Loud()
POOLS: dict[str, tuple[Any, list[Any]]] = {
    "int8": ("int8", [-128, 0, 3, 127]),
    "uint64": ("uint64", [0, 3, 2**64 - 1]),
    "float64": ("float64", [0.0, -0.0, 3.0, INF, -INF, float("nan"), 1e308]),
    "float32": ("float32", [0.0, 3.0, 0.1, float("nan")]),
    "Int64": ("Int64", [None, 3, 2**63 - 1, -(2**63)]),
    "Float64": ("Float64", [None, 0.5, 3.0]),
    "arrow int": ("int64[pyarrow]", [None, 3, 2**63 - 1]),
    "arrow float": ("double[pyarrow]", [None, 3.0, float("nan"), INF]),
    "bool": ("bool", [True, False]),
    "boolean": ("boolean", [True, None, False]),
    "str": ("str", ["a", "B", "", None, "3"]),
    "arrow str": ("string[pyarrow]", ["a", "B", "", None]),
    "category": (pd.CategoricalDtype(["a", "B"]), ["a", "B", None]),
    "category of numbers": (pd.CategoricalDtype([3, 4]), [3, 4, None]),
    "object": (
        object,
        [
            1,
            1.0,
            True,
            "a",
            None,
            -0.0,
            0.0,
            np.int8(3),
            LOUD,
            [1],
            (1,),
            10**400,
            dt.date(2024, 1, 1),
        ],
    ),
    "object str": (object, ["a", None, float("nan")]),
    "datetime": ("M8[ns]", [np.datetime64(0, "ns"), None, np.datetime64(2**63 - 1, "ns")]),
    "zoned": ("datetime64[us, Europe/Berlin]", [pd.Timestamp("2024-03-31", tz="UTC"), None]),
}


def expressions(x: Column) -> list[Expr]:
    """Everything that can be asked of a column of this kind."""
    found = [x, ex.is_null(x)]
    three: Any = {"text": "a", "time": pd.Timestamp("2024-03-31", tz=x.tz)}.get(x.kind, 3)
    found += [
        ex.compare(op, x, ex.constant(three))
        for op in ("==", "!=", "<", "<=", ">", ">=")
        if x.kind != "label" or op in ("==", "!=")
    ]
    found += [
        ex.compare("==", x, x),
        ex.is_in(x, [three, None]),
        ex.map_dict(x, {three: "q", None: "n"}),
    ]
    found += [ex.map_dict(x, {three: 1})]
    if x.kind in ("number", "bool"):
        found += [
            ex.arithmetic(op, x, ex.constant(k)) for op in ex.ARITHMETIC for k in (3, 0, -0.5)
        ]
        found += [ex.arithmetic(op, x, x) for op in ex.ARITHMETIC]
        found += [ex.negate(x), ex.absolute(x), ex.round_to(x, 1), ex.cut(x, [0, 1, 3.5])]
        found += [ex.cast(x, to) for to in (int, float, bool)]
        found += [ex.cast(ex.cast(x, int), str)]
        found += [ex.number_function(f, x) for f in NUMBERS]
        found += [ex.number_function(f, x, ex.constant(k)) for f in PAIRS for k in (2, -0.5)]
        found += [
            ex.choose(ex.compare(">", x, ex.constant(1)), x, k)
            for k in (None, 2, -0.5, 2**70, True)
        ]
    if x.kind == "number":
        found += [ex.clip(x, 0, 2), ex.clip(x, -0.5), ex.clip(x, 300)]
    if x.kind in ("text", "label"):
        found += [ex.text_part(x, m) for m in ("len", "upper", "title", "strip")]
        found += [ex.text_part(x, "contains", "a"), ex.text_part(x, "get", 0), ex.cast(x, str)]
        found += [ex.compare("==", ex.text_part(x, "upper"), x)]
    if x.kind == "time":
        found += [ex.time_part(x, p) for p in ATTRIBUTES]
    if x.kind != "other":
        found += [ex.choose(ex.is_null(x), three, x), ex.choose(ex.is_null(x), None, x)]
    return [*found, ex.fill(x, True if x.kind == "bool" else three)]


@pytest.mark.parametrize("name", POOLS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_the_value_of_a_row_depends_on_that_row_alone(
    column: Any, name: str, data: st.DataObject
) -> None:
    dtype, pool = POOLS[name]
    places = data.draw(st.lists(st.integers(0, len(pool) - 1), min_size=1, max_size=8))
    chosen = data.draw(st.lists(st.integers(0, len(places) - 1), max_size=8))
    whole, part = (
        column(_series([pool[p] for p in ps], dtype))
        for ps in (places, [places[c] for c in chosen])
    )
    middle = slice(1, len(places) - 1)
    for e in expressions(whole["x"]):
        everything = [_shown(c) for c in whole.cells(e)]
        assert [_shown(c) for c in part.cells(e)] == [everything[c] for c in chosen], str(e)
        assert [_shown(c) for c in whole.cells(e, middle)] == everything[middle], str(e)
        if not e.nullable:
            assert None not in whole.cells(e), str(e)
        if e.integral and e.kind == "number":
            assert all(c is None or abs(c) == INF or c == int(c) for c in whole.cells(e)), str(e)


def _series(values: list[Any], dtype: Any) -> Any:
    if dtype is object:
        out = np.empty(len(values), dtype=object)
        for i, v in enumerate(values):
            out[i] = v
        return pd.Series(out, dtype=object)
    return pd.Series(values, dtype=dtype)


def _shown(cell: Any) -> Any:
    return (type(cell).__name__, repr(cell)) if not isinstance(cell, float | int) else cell + 0


# ---- bounds -----------------------------------------------------------------------------------------------


def numeric() -> st.SearchStrategy[str]:
    leaf = st.one_of(
        st.just("x"), st.just("i"), st.just("b"), st.integers(-20, 20).map(str), finite.map(str)
    )
    return st.recursive(
        leaf,
        lambda s: st.one_of(
            st.tuples(s, st.sampled_from(["+", "-", "*", "/", "//", "%"]), s).map(
                lambda p: f"({' '.join(p)})"
            ),
            st.tuples(s, st.integers(0, 4)).map(lambda p: f"({p[0]} ** {p[1]})"),
            s.map(lambda p: f"(-{p})"),
            s.map(lambda p: f"({p} + 0).abs()"),
            s.map(lambda p: f"({p} + 0).round(1)"),
            s.map(lambda p: f"({p} + 0).clip(-3, 7.5)"),
            s.map(lambda p: f"({p} + 0).fillna(2)"),
        ),
        max_leaves=5,
    )


@settings(max_examples=150, deadline=None)
@given(
    numeric(),
    st.tuples(finite, finite).map(sorted),
    st.lists(st.tuples(st.floats(0, 1), st.integers(-9, 9), st.booleans())),
)
def test_bounds_hold_every_value_of_clipped_inputs(
    framed: Any, text: str, ends: list[float], rows: Any
) -> None:
    low, high = ends
    x = [low, high, *(min(max(low + u * (high - low), low), high) for u, _, _ in rows)]
    frame = pd.DataFrame(
        {
            "x": x,
            "i": [-9, 9, *(i for _, i, _ in rows)],
            "b": [True, False, *(b for _, _, b in rows)],
        }
    )
    f = framed(frame)
    e = f.expr(text)
    bounds = e.bounds({0: (low, high), 1: (-9.0, 9.0)})
    if bounds is not None:
        assert np.isfinite(bounds).all()
        values = [
            c
            for c in f.cells(ex.arithmetic("+", f["b"], e) if e.kind == "bool" else e)
            if c is not None
        ]
        assert all(bounds[0] <= v <= bounds[1] for v in values) or e.kind == "bool"
    if not e.nullable:
        assert None not in f.cells(e)
