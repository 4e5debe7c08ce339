"""Nulls, equality and exactness of row-wise expressions, and how often categories are looked at."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpframe import _expr as ex
from dpframe._cells.columns import UNMATCHED
from dpframe.engines.expressions import evaluate

INF = float("inf")


# ---- the rules for nulls and equality ---------------------------------------------------------------------

NULLABLE = [
    pytest.param([1.0, None], "float64", id="float64"),
    pytest.param([1, None], "Int64", id="Int64"),
    pytest.param([1, None], "int64[pyarrow]", id="arrow"),
    pytest.param([1.0, float("nan")], pd.ArrowDtype(pa.float64()), id="arrow NaN"),
]


@pytest.mark.parametrize(("values", "dtype"), NULLABLE)
def test_a_comparison_with_null_is_false_except_unequal(
    column: Any, values: Any, dtype: Any
) -> None:
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


def test_texts_and_times_follow_the_same_rule(column: Any) -> None:
    for f, one in (
        (column(["a", None]), "'a'"),
        (column(["2024-01-01", None], "M8[us]"), "'2024-01-01'"),
    ):
        assert f.mask(f"x == {one}") == [True, False]
        assert f.mask(f"x != {one}") == [False, True]
        assert f.mask(f"x <= {one}") == [True, False]
        assert f.mask("x <= x") == [True, False]
        assert f.mask("x != x") == [False, True]
        assert f.mask(f"x in [{one}, None]") == [True, True]
        assert f.mask("x.isna()") == [False, True]


def test_a_null_condition_counts_as_false(column: Any) -> None:
    f = column([True, False, None], "boolean")
    assert f.mask("x") == [True, False, False]
    assert f.mask("~x") == [False, True, True]
    assert f.mask("x or not x") == [True, True, True]
    assert f.mask("x == False") == [False, True, False]


def test_labels_are_equal_as_in_python_but_a_bool_is_no_number(column: Any) -> None:
    f = column([1, 1.0, True, "1", None, np.int8(1)], object)
    assert f.mask("x == 1") == [True, True, False, False, False, True]
    assert f.mask("x == True") == [False, False, True, False, False, False]
    assert f.mask("x == '1'") == [False, False, False, True, False, False]
    assert f.mask("x in [1.0, None]") == [True, True, False, False, True, True]
    assert f.mask("x != 1") == [False, False, True, True, True, False]


def test_cells_that_are_no_scalars_equal_nothing_not_even_themselves(column: Any) -> None:
    f = column([[1], (1,), None, "a"], object)
    assert f.cells("x")[:2] == [UNMATCHED, UNMATCHED]
    assert f.mask("x == x") == [False, False, False, True]
    assert f.mask("x != x") == [True, True, True, False]
    assert f.mask("x.isna()") == [False, False, True, False]
    assert f.cells("x.str.upper()") == [None, None, None, "A"]
    assert f.cells(ex.cast(f["x"], str)) == [None, None, None, "a"]


def test_zones_compare_as_instants(column: Any) -> None:
    f = column(pd.DatetimeIndex(["2024-07-01 12:00"], tz="Europe/Berlin"))
    assert f.mask("x == '2024-07-01 12:00'") == [True]
    assert f.mask(
        ex.compare("==", f["x"], ex.constant(pd.Timestamp("2024-07-01 10:00", tz="UTC")))
    ) == [True]


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
def test_integers_compare_exactly_with_any_constant(column: Any, dtype: str, op: str) -> None:
    info = np.iinfo(dtype.removesuffix("[pyarrow]").lower())
    values = [v for v in EDGES if info.min <= v <= info.max]
    f = column(values, dtype)
    for wanted in [*EDGES, 0.5, -0.5, 126.5, 1e300, INF, -INF]:
        found = f.mask(ex.compare(op, f["x"], ex.constant(wanted)))
        assert found == [OPS[op](v, wanted) for v in values], wanted


def test_isin_and_map_are_exact_for_wide_integers(column: Any) -> None:
    f = column([2**53, 2**53 + 1, -1])
    assert f.mask(f"x in [{2**53 + 1}, {2**70}, 0.5, inf]".replace("inf", "1e999")) == [
        False,
        True,
        False,
    ]
    assert f.cells(ex.map_dict(f["x"], {2**53 + 1: "a", -1.0: "b", 2**80: "c"})) == [None, "a", "b"]


def test_float32_compares_as_the_double_it_is(column: Any) -> None:
    f = column(np.array([0.1, 0.5], dtype=np.float32))
    assert f.mask("x == 0.1") == [False, False]
    assert f.mask("x in [0.1, 0.5]") == [False, True]


def test_arithmetic_never_wraps_around(column: Any) -> None:
    f = column([2**63 - 1])
    assert f.cells("x + 1") == [2.0**63]
    assert f.cells("x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x") == [INF]
    assert column([200], "uint8").cells("x + x - 500") == [-100]
    assert column([True, True]).cells("x + x") == [2, 2]


def test_a_null_base_or_exponent_is_null(column: Any) -> None:
    f = column([1.0, None])
    assert f.cells("x ** 0") == [1, None]
    assert f.cells("1 ** x") == [1, None]


@pytest.mark.parametrize("a", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("b", ["s", "ns"])
@pytest.mark.parametrize("op", OPS)
def test_times_of_different_units_compare_exactly(framed: Any, a: str, b: str, op: str) -> None:
    last = np.iinfo("i8").max
    left = np.array([0, 1, -1, 10**9, last, 1], dtype="i8")
    right = np.array([0, 1, -1, 1, 5, np.iinfo("i8").min], dtype="i8")
    ticks = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
    f = framed(pd.DataFrame({"x": left.view(f"M8[{a}]"), "y": right.view(f"M8[{b}]")}))
    pairs = zip(left.tolist()[:-1], right.tolist()[:-1], strict=True)
    exact = [OPS[op](x * ticks[a], y * ticks[b]) for x, y in pairs]
    assert f.mask(f"x {op} y") == [*exact, op == "!="]


def test_times_beyond_every_calendar_do_not_raise(column: Any) -> None:
    limit = np.iinfo("i8").max
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "Europe/Berlin", "America/Sao_Paulo"):
            series = pd.Series(np.array([limit, -limit, 0], dtype="i8").view(f"M8[{unit}]"))
            f = column(series if zone is None else series.dt.tz_localize("UTC").dt.tz_convert(zone))
            for part in ("year", "month", "day", "hour", "dayofyear", "normalize", "day_name"):
                assert len(f.cells(ex.time_part(f["x"], part))) == 3
            assert f.mask("x < '3000-01-01'") == [False, True, True] or unit == "ns"


def test_a_midnight_that_does_not_exist_does_not_raise(column: Any) -> None:
    f = column(pd.DatetimeIndex(["2018-11-04 15:00"]).tz_localize("America/Sao_Paulo"))
    assert str(f.cells("x.dt.normalize()")[0]) == "2018-11-04T03:00:00.000000"


# ---- kinds of results -------------------------------------------------------------------------------------


def test_maps_make_every_kind(column: Any) -> None:
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


def test_what_has_no_integer_counterpart_is_null(column: Any) -> None:
    f = column([1.9, -1.9, INF, -INF, None])
    assert f.cells(ex.cast(f["x"], int)) == [1, -1, None, None, None]


def test_texts_of_two_columns_compare_by_their_letters(framed: Any) -> None:
    f = framed(
        pd.DataFrame(
            {"a": ["x", "y", None, "z"], "b": pd.Series(["x", "b", "c", "zz"], dtype="category")}
        )
    )
    assert f.mask("a == b") == [True, False, False, False]
    assert f.mask("a < b") == [False, False, False, True]
    assert f.mask("a != b") == [False, True, True, True]


def test_constants_become_columns(column: Any) -> None:
    f = column([1, 2])
    for value in (5, 2.5, True, "a", 2**80, pd.Timestamp("2024-01-01")):
        assert (
            len(f.cells(ex.constant(value))) == 2
        )  # no column tells how many rows, so the slice does
    assert f.mask("x > 0 and 1 < 2") == [True, True]


# ---- work -------------------------------------------------------------------------------------------------


def test_categories_are_looked_at_once_when_the_caller_keeps_a_memo(
    column: Any, unpack: Any
) -> None:
    f = column(["a", "b"])
    e = f.expr("x.str.upper().str.startswith('A')")
    memo: Any = {}
    first = evaluate(e, lambda c: f.vectors[0], slice(0, 1), memo)
    kept = dict(memo)
    second = evaluate(e, lambda c: f.vectors[0], slice(1, 2), memo)
    assert unpack(first) + unpack(second) == [True, False]
    assert all(memo[k] is kept[k] for k in kept)


def test_a_memo_does_not_outlive_its_categories(column: Any, unpack: Any) -> None:
    memo: Any = {}
    for words in (["a", "b"], ["b", "a"]):
        f = column(words)
        e = f.expr("x == 'a'")
        assert unpack(evaluate(e, lambda c, f=f: f.vectors[0], slice(0, 2), memo)) == [
            w == "a" for w in words
        ]
