"""Row-wise expressions give what pandas gives, row by row, and never raise because of a value."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe import _expr as ex
from dpframe._expr import Column, Expr
from dpframe._parse import parse
from dpframe.engines._columns import UNMATCHED, Vector, prepare
from dpframe.engines._evaluate import evaluate, predicate

INF = float("inf")


class Frame:
    """A pandas frame as the evaluator sees it."""

    def __init__(self, frame: pd.DataFrame):
        self.frame = frame
        self.columns = {k: Column.of(i, k, frame.dtypes.iloc[i]) for i, k in enumerate(frame.columns)}
        self.vectors = {c.position: prepare(frame[k], c.kind) for k, c in self.columns.items()}

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def expr(self, text: str, **names: Any) -> Expr:
        return parse(text, self.columns, names.__getitem__).expr

    def vector(self, e: Expr, rows: slice | None = None) -> Vector:
        return evaluate(e, lambda c: self.vectors[c.position], rows or slice(0, len(self.frame)))

    def cells(self, e: Expr | str, rows: slice | None = None) -> list[Any]:
        return unpack(self.vector(self.expr(e) if isinstance(e, str) else e, rows))

    def mask(self, e: Expr | str) -> list[bool]:
        condition = self.expr(e) if isinstance(e, str) else e
        rows = slice(0, len(self.frame))
        found = predicate(condition, lambda c: self.vectors[c.position], rows)
        assert found.dtype == bool
        return found.tolist()


def unpack(v: Vector) -> list[Any]:
    values = (
        v.values.tolist() if v.categories is None else [v.categories[c] if c >= 0 else None for c in v.values]
    )
    if v.kind == "time":
        values = list(v.values)
    null = v.nulls()
    return values if null is None else [None if n else x for x, n in zip(values, null, strict=True)]


def column(values: Any, dtype: Any = None) -> Frame:
    return Frame(pd.DataFrame({"x": pd.Series(values, dtype=dtype)}))


def expected(series: Any) -> list[Any]:
    return [None if pd.isna(x) else x for x in series.tolist()]


# ---- the rules for nulls and equality ---------------------------------------------------------------------

NULLABLE = [
    pytest.param([1.0, None], "float64", id="float64"),
    pytest.param([1, None], "Int64", id="Int64"),
    pytest.param([1, None], "int64[pyarrow]", id="arrow"),
    pytest.param([1.0, float("nan")], pd.ArrowDtype(pa.float64()), id="arrow NaN"),
]


@pytest.mark.parametrize(("values", "dtype"), NULLABLE)
def test_a_comparison_with_null_is_false_except_unequal(values: Any, dtype: Any) -> None:
    f = column(values, dtype)
    assert f.mask("x == 1") == [True, False]
    assert f.mask("x != 1") == [False, True]
    assert f.mask("x <= 1") == [True, False]
    assert f.mask("not x <= 1") == [False, True]
    assert f.mask("x == x") == [True, False]
    assert f.mask("x != x") == [False, True]
    assert f.mask("x in [1, None]") == [True, True]
    assert f.mask("x in [1]") == [True, False]
    assert f.mask("x.between(0, 2)") == [True, False]
    assert f.cells("x + 1") == [2, None]
    assert f.cells("x.fillna(7)") == [1, 7]
    assert f.cells("x.clip(2, 3)") == [2, None]
    assert f.cells(ex.cast(f["x"], "bool")) == [True, None]
    assert f.mask(ex.cast(f["x"], "bool")) == [True, False]


def test_texts_and_times_follow_the_same_rule() -> None:
    for f, one in ((column(["a", None]), "'a'"), (column(["2024-01-01", None], "M8[us]"), "'2024-01-01'")):
        assert f.mask(f"x == {one}") == [True, False]
        assert f.mask(f"x != {one}") == [False, True]
        assert f.mask(f"x <= {one}") == [True, False]
        assert f.mask("x <= x") == [True, False]
        assert f.mask("x != x") == [False, True]
        assert f.mask(f"x in [{one}, None]") == [True, True]
        assert f.mask("x.isna()") == [False, True]


def test_a_null_condition_counts_as_false() -> None:
    f = column([True, False, None], "boolean")
    assert f.mask("x") == [True, False, False]
    assert f.mask("~x") == [False, True, True]
    assert f.mask("x or not x") == [True, True, True]
    assert f.mask("x == False") == [False, True, False]


def test_labels_are_equal_as_in_python_but_a_bool_is_no_number() -> None:
    f = column([1, 1.0, True, "1", None, np.int8(1)], object)
    assert f.mask("x == 1") == [True, True, False, False, False, True]
    assert f.mask("x == True") == [False, False, True, False, False, False]
    assert f.mask("x == '1'") == [False, False, False, True, False, False]
    assert f.mask("x in [1.0, None]") == [True, True, False, False, True, True]
    assert f.mask("x != 1") == [False, False, True, True, True, False]


def test_cells_that_are_no_scalars_equal_nothing_not_even_themselves() -> None:
    f = column([[1], (1,), None, "a"], object)
    assert f.cells("x")[:2] == [UNMATCHED, UNMATCHED]
    assert f.mask("x == x") == [False, False, False, True]
    assert f.mask("x != x") == [True, True, True, False]
    assert f.mask("x.isna()") == [False, False, True, False]
    assert f.cells("x.str.upper()") == [None, None, None, "A"]
    assert f.cells(ex.cast(f["x"], str)) == [None, None, None, "a"]


def test_zones_compare_as_instants() -> None:
    f = column(pd.DatetimeIndex(["2024-07-01 12:00"], tz="Europe/Berlin"))
    assert f.mask("x == '2024-07-01 12:00'") == [True]
    assert f.mask(ex.compare("==", f["x"], ex.constant(pd.Timestamp("2024-07-01 10:00", tz="UTC")))) == [True]


# ---- exactness --------------------------------------------------------------------------------------------

OPS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
EDGES = [
    0,
    1,
    -1,
    127,
    128,
    2**53,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63),
    -(2**63) - 1,
    2**64,
    2**64 + 1,
    2**200,
]


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64", "Int64", "uint64[pyarrow]"])
@pytest.mark.parametrize("op", OPS)
def test_integers_compare_exactly_with_any_constant(dtype: str, op: str) -> None:
    info = np.iinfo(dtype.removesuffix("[pyarrow]").lower())
    values = [v for v in EDGES if info.min <= v <= info.max]
    f = column(values, dtype)
    for wanted in [*EDGES, 0.5, -0.5, 126.5, 1e300, INF, -INF]:
        found = f.mask(ex.compare(op, f["x"], ex.constant(wanted)))
        assert found == [OPS[op](v, wanted) for v in values], wanted


def test_isin_and_map_are_exact_for_wide_integers() -> None:
    f = column([2**53, 2**53 + 1, -1])
    assert f.mask(f"x in [{2**53 + 1}, {2**70}, 0.5, inf]".replace("inf", "1e999")) == [False, True, False]
    assert f.cells(ex.map_dict(f["x"], {2**53 + 1: "a", -1.0: "b", 2**80: "c"})) == [None, "a", "b"]


def test_float32_compares_as_the_double_it_is() -> None:
    f = column(np.array([0.1, 0.5], dtype=np.float32))
    assert f.mask("x == 0.1") == [False, False]
    assert f.mask("x in [0.1, 0.5]") == [False, True]


def test_arithmetic_never_wraps_around() -> None:
    f = column([2**63 - 1])
    assert f.cells("x + 1") == [2.0**63]
    assert f.cells("x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x") == [INF]
    assert column([200], "uint8").cells("x + x - 500") == [-100]
    assert column([True, True]).cells("x + x") == [2, 2]


def test_a_null_base_or_exponent_is_null() -> None:
    f = column([1.0, None])
    assert f.cells("x ** 0") == [1, None]
    assert f.cells("1 ** x") == [1, None]


@pytest.mark.parametrize("a", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("b", ["s", "ns"])
@pytest.mark.parametrize("op", OPS)
def test_times_of_different_units_compare_exactly(a: str, b: str, op: str) -> None:
    last = np.iinfo("i8").max
    left = np.array([0, 1, -1, 10**9, last, 1], dtype="i8")
    right = np.array([0, 1, -1, 1, 5, np.iinfo("i8").min], dtype="i8")
    ticks = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
    f = Frame(pd.DataFrame({"x": left.view(f"M8[{a}]"), "y": right.view(f"M8[{b}]")}))
    pairs = zip(left.tolist()[:-1], right.tolist()[:-1], strict=True)
    exact = [OPS[op](x * ticks[a], y * ticks[b]) for x, y in pairs]
    assert f.mask(f"x {op} y") == [*exact, op == "!="]


def test_times_beyond_every_calendar_do_not_raise() -> None:
    limit = np.iinfo("i8").max
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "Europe/Berlin", "America/Sao_Paulo"):
            series = pd.Series(np.array([limit, -limit, 0], dtype="i8").view(f"M8[{unit}]"))
            f = column(series if zone is None else series.dt.tz_localize("UTC").dt.tz_convert(zone))
            for part in ("year", "month", "day", "hour", "dayofyear", "normalize", "day_name"):
                assert len(f.cells(ex.date_part(f["x"], part))) == 3
            assert f.mask("x < '3000-01-01'") == [False, True, True] or unit == "ns"


def test_a_midnight_that_does_not_exist_does_not_raise() -> None:
    f = column(pd.DatetimeIndex(["2018-11-04 15:00"]).tz_localize("America/Sao_Paulo"))
    assert str(f.cells("x.dt.normalize()")[0]) == "2018-11-04T03:00:00.000000"


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
def test_a_query_keeps_the_rows_that_pandas_keeps(rows: list[Any]) -> None:
    frame = build(rows)
    f = Frame(frame)
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
    **{f"t.dt.{p}": operator.attrgetter(f"t.dt.{p}") for p in ("year", "quarter", "month", "day", "hour")},
    **{f"t.dt.{p}": operator.attrgetter(f"t.dt.{p}") for p in ("minute", "second")},
    "t.dt.weekday": lambda d: d.t.dt.day_of_week,
    "t.dt.day_of_year": lambda d: d.t.dt.day_of_year,
    "t.dt.day_name()": lambda d: d.t.dt.day_name(),
    "t.dt.month_name()": lambda d: d.t.dt.month_name(),
    "t.dt.normalize()": lambda d: d.t.dt.normalize(),
}


@settings(max_examples=25, deadline=None)
@given(numbers)
def test_a_new_column_is_the_one_that_pandas_makes(rows: list[Any]) -> None:
    frame = build(rows)
    f = Frame(frame)
    for text, make in VALUES.items():
        assert f.cells(text) == expected(make(frame)), text


@settings(max_examples=25, deadline=None)
@given(numbers, st.booleans())
def test_casts_cuts_and_maps_are_those_of_pandas(rows: list[Any], right: bool) -> None:
    frame = build(rows)
    f = Frame(frame)
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
    for name, mapping in (("s", {"a": 1, "": 2}), ("i", {1: "one", 2: "two"}), ("s", {"a": None, "b": True})):
        found = f.cells(ex.map_dict(f[name], mapping))
        assert found == expected(frame[name].map(mapping))


def test_maps_make_every_kind() -> None:
    f = column(["a", "b", None])
    day = pd.Timestamp("2024-01-01")
    assert f.cells(ex.map_dict(f["x"], {"a": 1.5, None: 2})) == [1.5, None, 2.0]
    assert f.cells(ex.map_dict(f["x"], {"a": "q", "b": 1})) == ["q", 1, None]
    assert [str(c) for c in f.cells(ex.map_dict(f["x"], {"a": day}))] == [
        f"{day.isoformat()}.000000",
        "None",
        "None",
    ]
    g = column([1.0, 2.0, None])
    assert g.cells(ex.map_dict(g["x"], {1: "a", None: "n"})) == ["a", None, "n"]
    assert g.cells(ex.map_dict(g["x"], {5: "a"})) == [None, None, None]
    h = column([True, False])
    assert h.cells(ex.map_dict(h["x"], {True: "yes"})) == ["yes", None]


def test_what_has_no_integer_counterpart_is_null() -> None:
    f = column([1.9, -1.9, INF, -INF, None])
    assert f.cells(ex.cast(f["x"], int)) == [1, -1, None, None, None]


def test_texts_of_two_columns_compare_by_their_letters() -> None:
    f = Frame(
        pd.DataFrame({"a": ["x", "y", None, "z"], "b": pd.Series(["x", "b", "c", "zz"], dtype="category")})
    )
    assert f.mask("a == b") == [True, False, False, False]
    assert f.mask("a < b") == [False, False, False, True]
    assert f.mask("a != b") == [False, True, True, True]


def test_constants_become_columns() -> None:
    f = column([1, 2])
    for value in (5, 2.5, True, "a", 2**80, pd.Timestamp("2024-01-01")):
        assert len(f.cells(ex.constant(value))) == 2  # no column tells how many rows, so the slice does
    assert f.mask("x > 0 and 1 < 2") == [True, True]


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
        [1, 1.0, True, "a", None, -0.0, 0.0, np.int8(3), LOUD, [1], (1,), 10**400, dt.date(2024, 1, 1)],
    ),
    "object str": (object, ["a", None, float("nan")]),
    "datetime": ("M8[ns]", [np.datetime64(0, "ns"), None, np.datetime64(2**63 - 1, "ns")]),
    "zoned": ("datetime64[us, Europe/Berlin]", [pd.Timestamp("2024-03-31", tz="UTC"), None]),
}


def expressions(x: Column) -> list[Expr]:
    """Everything that can be asked of a column of this kind."""
    found = [x, ex.is_null(x)]
    three: Any = {"text": "a", "time": pd.Timestamp("2024-03-31", tz=x.tz)}.get(x.kind, 3)
    found += [ex.compare(op, x, ex.constant(three)) for op in OPS if x.kind != "label" or op in ("==", "!=")]
    found += [ex.compare("==", x, x), ex.is_in(x, [three, None]), ex.map_dict(x, {three: "q", None: "n"})]
    found += [ex.map_dict(x, {three: 1})]
    if x.kind in ("number", "bool"):
        found += [ex.arithmetic(op, x, ex.constant(k)) for op in ex.ARITHMETIC for k in (3, 0, -0.5)]
        found += [ex.arithmetic(op, x, x) for op in ex.ARITHMETIC]
        found += [ex.negate(x), ex.absolute(x), ex.round_to(x, 1), ex.cut(x, [0, 1, 3.5])]
        found += [ex.cast(x, to) for to in (int, float, bool)]
        found += [ex.cast(ex.cast(x, int), str)]
    if x.kind == "number":
        found += [ex.clip(x, 0, 2), ex.clip(x, -0.5), ex.clip(x, 300)]
    if x.kind in ("text", "label"):
        found += [ex.str_part(x, m) for m in ("len", "upper", "title", "strip")]
        found += [ex.str_part(x, "contains", "a"), ex.str_part(x, "get", 0), ex.cast(x, str)]
        found += [ex.compare("==", ex.str_part(x, "upper"), x)]
    if x.kind == "time":
        found += [ex.date_part(x, p) for p in ex.DATES]
    return [*found, ex.fill(x, True if x.kind == "bool" else three)]


@pytest.mark.parametrize("name", POOLS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_the_value_of_a_row_depends_on_that_row_alone(name: str, data: st.DataObject) -> None:
    dtype, pool = POOLS[name]
    places = data.draw(st.lists(st.integers(0, len(pool) - 1), min_size=1, max_size=8))
    chosen = data.draw(st.lists(st.integers(0, len(places) - 1), max_size=8))
    whole, part = (
        column(_series([pool[p] for p in ps], dtype)) for ps in (places, [places[c] for c in chosen])
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


def numeric(depth: int = 3) -> st.SearchStrategy[str]:
    leaf = st.one_of(st.just("x"), st.just("i"), st.just("b"), st.integers(-20, 20).map(str), finite.map(str))
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
def test_bounds_hold_every_value_of_clipped_inputs(text: str, ends: list[float], rows: Any) -> None:
    low, high = ends
    x = [low, high, *(min(max(low + u * (high - low), low), high) for u, _, _ in rows)]
    frame = pd.DataFrame(
        {"x": x, "i": [-9, 9, *(i for _, i, _ in rows)], "b": [True, False, *(b for _, _, b in rows)]}
    )
    f = Frame(frame)
    e = f.expr(text)
    bounds = e.bounds({0: (low, high), 1: (-9.0, 9.0)})
    if bounds is not None:
        assert np.isfinite(bounds).all()
        values = [
            c for c in f.cells(ex.arithmetic("+", f["b"], e) if e.kind == "bool" else e) if c is not None
        ]
        assert all(bounds[0] <= v <= bounds[1] for v in values) or e.kind == "bool"
    if not e.nullable:
        assert None not in f.cells(e)


# ---- work -------------------------------------------------------------------------------------------------


def test_categories_are_looked_at_once_when_the_caller_keeps_a_memo() -> None:
    f = column(["a", "b"])
    e = f.expr("x.str.upper().str.startswith('A')")
    memo: Any = {}
    first = evaluate(e, lambda c: f.vectors[0], slice(0, 1), memo)
    kept = dict(memo)
    second = evaluate(e, lambda c: f.vectors[0], slice(1, 2), memo)
    assert unpack(first) + unpack(second) == [True, False]
    assert all(memo[k] is kept[k] for k in kept)


def test_a_memo_does_not_outlive_its_categories() -> None:
    memo: Any = {}
    for words in (["a", "b"], ["b", "a"]):
        f = column(words)
        e = f.expr("x == 'a'")
        assert unpack(evaluate(e, lambda c, f=f: f.vectors[0], slice(0, 2), memo)) == [
            w == "a" for w in words
        ]
