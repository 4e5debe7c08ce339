"""Row-wise expressions: kinds from dtypes, identity, nulls and bounds."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe import BadExpression
from dpframe import _expr as ex
from dpframe._expr import Column, Expr, constant

AGE = Column.of(0, "age", np.dtype("int64"))
COST = Column.of(1, "the cost", np.dtype("float64"))
STATE = Column.of(2, "state", pd.StringDtype())
OLD = Column.of(3, "old", np.dtype(bool))
WHEN = Column.of(4, "when", np.dtype("M8[us]"))
ZONED = Column.of(5, "zoned", pd.DatetimeTZDtype("us", "Europe/Berlin"))
MIXED = Column.of(6, "mixed", np.dtype(object))
SPAN = Column.of(7, "span", np.dtype("m8[us]"))
MAYBE = Column.of(8, "maybe", pd.Int64Dtype())
DECLARED = {0: (0.0, 110.0), 1: (-2.0, 50.0)}


def plus(a: Expr, b: Any) -> Expr:
    return ex.arithmetic("+", a, b if isinstance(b, Expr) else constant(b))


def calc(op: str, a: Any, b: Any) -> Expr:
    return ex.arithmetic(op, *(v if isinstance(v, Expr) else constant(v) for v in (a, b)))


# ---- kinds ------------------------------------------------------------------------------------------------

KINDS = [
    ("int8", "number"),
    ("uint64", "number"),
    ("float16", "number"),
    (np.longdouble, "number"),
    ("Int64", "number"),
    ("Float32", "number"),
    ("int64[pyarrow]", "number"),
    (pd.ArrowDtype(pa.decimal128(10, 2)), "number"),
    (pd.SparseDtype("float64"), "number"),
    ("bool", "bool"),
    ("boolean", "bool"),
    ("bool[pyarrow]", "bool"),
    (pd.SparseDtype(bool), "bool"),
    ("str", "text"),
    ("string", "text"),
    ("string[python]", "text"),
    ("string[pyarrow]", "text"),
    (pd.ArrowDtype(pa.large_string()), "text"),
    (pd.ArrowDtype(pa.string_view()), "text"),
    (pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())), "text"),
    (pd.CategoricalDtype(["a", "b"]), "text"),
    (pd.CategoricalDtype([1, 2]), "label"),
    (pd.CategoricalDtype(), "label"),
    (pd.ArrowDtype(pa.dictionary(pa.int32(), pa.int64())), "label"),
    (object, "label"),
    ("M8[ns]", "time"),
    (pd.DatetimeTZDtype("us", "UTC"), "time"),
    (pd.ArrowDtype(pa.timestamp("s", tz="Asia/Tokyo")), "time"),
    (pd.ArrowDtype(pa.date32()), "time"),
    ("m8[ns]", "duration"),
    (pd.PeriodDtype("D"), "other"),
    (pd.IntervalDtype("int64", "right"), "other"),
    ("complex128", "other"),
    (pd.ArrowDtype(pa.list_(pa.int64())), "other"),
    (pd.ArrowDtype(pa.binary()), "other"),
    (pd.ArrowDtype(pa.null()), "other"),
]


@pytest.mark.parametrize(("dtype", "kind"), KINDS, ids=[str(d) for d, _ in KINDS])
def test_the_kind_follows_from_the_dtype(dtype: Any, kind: str) -> None:
    assert ex.kind_of(pd.api.types.pandas_dtype(dtype)) == kind


def test_a_zone_without_a_name_leaves_null_tests_only() -> None:
    dateutil = pytest.importorskip("dateutil.tz")
    dtype = pd.DatetimeTZDtype("us", dateutil.tzrange("XYZ", 3600))
    assert ex.kind_of(dtype) == "other"


def test_a_column_knows_what_its_dtype_tells() -> None:
    assert (AGE.integral, AGE.nullable) == (True, False)
    assert (MAYBE.integral, MAYBE.nullable) == (True, True)
    assert (COST.integral, COST.nullable) == (False, True)
    assert (OLD.integral, OLD.nullable) == (True, False)
    assert (WHEN.tz, ZONED.tz) == (None, "Europe/Berlin")
    assert Column.of(0, "d", pd.ArrowDtype(pa.timestamp("s", tz="UTC"))).tz == "UTC"


# ---- identity ---------------------------------------------------------------------------------------------


def test_literals_of_different_types_make_different_expressions() -> None:
    several = [plus(AGE, v) for v in (1, 1.0, True, 0.0, -0.0)]
    assert len(set(several)) == 5
    assert ex.is_in(MIXED, [1]) != ex.is_in(MIXED, [True])
    assert ex.fill(COST, 1) != ex.fill(COST, 1.0)


def test_the_order_of_a_list_does_not_matter() -> None:
    assert (
        ex.is_in(STATE, ["a", "b", "a"])
        == ex.is_in(STATE, ("b", "a"))
        == ex.is_in(STATE, {"a", "b"})
    )


def test_a_column_is_its_position_and_not_its_name() -> None:
    assert Column(1, "x", "number") != Column(2, "x", "number")
    assert plus(AGE, COST).columns() == {AGE, COST}


def _everything() -> list[Expr]:
    return [
        plus(AGE, 1),
        ex.negate(COST),
        ex.absolute(COST),
        ex.round_to(COST, 2),
        ex.compare("<", WHEN, constant("2024-01-01")),
        ex.logical_or(ex.logical_not(OLD), ex.logical_and(OLD, ex.is_null(SPAN))),
        ex.is_in(STATE, ["a", None]),
        ex.between(AGE, 1, 2, "left"),
        ex.not_null(COST),
        ex.fill(STATE, "none"),
        ex.clip(COST, 0, math.inf),
        ex.cast(COST, int),
        ex.cut(AGE, [-math.inf, 18, 65, math.inf], ["young", "middle", "old"]),
        ex.cut(AGE, [0, 18]),
        ex.map_dict(STATE, {"a": 1, "b": None}),
        ex.text_part(STATE, "contains", "a|b", case=False),
        ex.text_part(STATE, "slice", 0, 2),
        ex.time_part(ZONED, "normalize"),
        ex.map_dict(AGE, {1: pd.Timestamp("2024-01-01", tz="UTC")}),
    ]


@pytest.mark.parametrize("e", _everything(), ids=str)
def test_expressions_can_be_written_down_copied_and_pickled(e: Expr) -> None:
    for other in (copy.deepcopy(e), pickle.loads(pickle.dumps(e))):
        assert other == e
        assert hash(other) == hash(e)
        assert other.depth == e.depth


def test_the_text_is_what_a_pandas_user_would_write() -> None:
    found = [str(e) for e in _everything()[:6]]
    assert found == [
        "age + 1",
        "-`the cost`",
        "`the cost`.abs()",
        "`the cost`.round(2)",
        "when < '2024-01-01 00:00:00'",
        "~old | (old & span.isna())",
    ]


def _grown(step: Any, times: int) -> Expr:
    e: Expr = AGE
    for _ in range(times):
        e = step(e)
    return e


def test_nesting_is_limited_before_anything_recurses_to_death() -> None:
    deepest = _grown(lambda e: plus(e, 1), 99)
    assert deepest.bounds(DECLARED) == (99.0, 209.0)
    assert copy.deepcopy(deepest) == pickle.loads(pickle.dumps(deepest)) == deepest
    assert len({deepest}) == 1
    assert str(deepest).count("(") == 98
    with pytest.raises(BadExpression, match="deep"):
        _grown(lambda e: plus(e, 1), 10_000)
    with pytest.raises(BadExpression, match="deep"):
        _grown(lambda e: plus(e, e), 100)  # 2**100 nodes, if one counted them


# ---- nulls, integers, bounds ------------------------------------------------------------------------------


def test_nullable_is_false_only_where_it_is_proved() -> None:
    assert not plus(AGE, 1).nullable
    assert not calc("*", AGE, OLD).nullable
    assert not ex.fill(COST, 0).nullable
    assert not ex.compare("==", COST, constant(1)).nullable
    assert not ex.text_part(STATE, "contains", "a").nullable
    assert plus(COST, 1).nullable
    assert plus(MAYBE, 1).nullable
    assert plus(AGE, math.inf).nullable  # inf - inf is NaN further up
    for op in ("/", "//", "%", "**"):
        assert calc(op, AGE, 2).nullable
    filled = ex.fill(COST, 0)
    assert calc("-", filled, filled).nullable  # a filled float may still be inf
    huge = AGE
    for _ in range(6):
        huge = calc("*", huge, huge)
    assert calc("-", huge, huge).nullable
    assert ex.cast(ex.fill(COST, 0), int).nullable  # inf has no integer
    assert not ex.cast(ex.clip(ex.fill(COST, 0), 0, 1), int).nullable


def test_integral_is_true_only_where_it_is_proved() -> None:
    whole = [calc(op, AGE, MAYBE) for op in "+-*"] + [
        plus(OLD, 1),
        ex.cast(COST, int),
        ex.round_to(COST),
    ]
    whole += [
        ex.time_part(WHEN, "year"),
        ex.text_part(STATE, "len"),
        ex.fill(MAYBE, 0),
        ex.clip(AGE, 0, 5),
    ]
    whole += [ex.map_dict(STATE, {"a": 1}), ex.negate(AGE), ex.absolute(AGE), OLD]
    assert all(e.integral for e in whole)
    broken = [calc("/", AGE, 2), calc("**", AGE, -1), plus(AGE, 0.5), COST, ex.round_to(COST, 1)]
    broken += [
        ex.fill(MAYBE, 0.5),
        ex.clip(AGE, 0.5),
        ex.map_dict(STATE, {"a": 0.5}),
        plus(COST, 1),
    ]
    assert not any(e.integral for e in broken)


BOUNDS: list[tuple[Expr, Any]] = [
    (AGE, (0, 110)),
    (Column(9, "free", "number"), None),
    (calc("*", COST, 1000), (-2000, 50000)),
    (calc("/", AGE, 1000), (0, 0.11)),
    (calc("-", AGE, COST), (-50, 112)),
    (calc("*", COST, COST), (-100, 2500)),
    (calc("/", AGE, COST), None),
    (calc("/", AGE, 0), None),
    (calc("//", AGE, 7), (0, 15)),
    (calc("%", COST, 7), (0, 7)),
    (calc("%", COST, -7), (-7, 0)),
    (calc("%", AGE, COST), None),
    (calc("**", COST, 0), (1, 1)),
    (calc("**", COST, 0.5), None),
    (calc("**", calc("*", COST, 1e200), 2), None),
    (plus(AGE, math.inf), None),
    (ex.negate(COST), (-50, 2)),
    (ex.absolute(COST), (0, 50)),
    (ex.clip(COST, 0), (0, 50)),
    (ex.clip(Column(9, "free", "number"), 3, 4), (3, 4)),
    (ex.clip(Column(9, "free", "number"), 3), None),
    (ex.clip(COST, 60, 70), (60, 60)),
    (ex.fill(COST, 99), (-2, 99)),
    (ex.cast(calc("/", COST, 4), int), (0, 12)),
    (ex.round_to(calc("/", COST, 4), 0), (0, 12)),
    (ex.compare(">", COST, constant(3)), (0, 1)),
    (OLD, (0, 1)),
    (ex.time_part(WHEN, "month"), (1, 12)),
    (ex.time_part(WHEN, "year"), None),
    (ex.map_dict(STATE, {"a": 3, "b": -1, "c": None}), (-1, 3)),
    (ex.map_dict(STATE, {"a": math.inf}), None),
    (STATE, None),
    (WHEN, None),
    (ex.text_part(STATE, "len"), None),
]


@pytest.mark.parametrize(("e", "expected"), BOUNDS, ids=[str(e) for e, _ in BOUNDS])
def test_bounds_travel_through_expressions(e: Expr, expected: Any) -> None:
    found = e.bounds(DECLARED)
    if expected is None:
        assert found is None
    else:
        assert found == pytest.approx(expected, rel=1e-14)
        assert found is not None
        assert found[0] <= expected[0]
        assert found[1] >= expected[1]


def test_bounds_that_are_exact_stay_exact_and_others_move_outwards() -> None:
    assert plus(AGE, 1).bounds(DECLARED) == (1.0, 111.0)
    third = calc("/", AGE, 3).bounds(DECLARED)
    assert third is not None
    assert third[1] * 3 >= 110


@given(
    st.floats(), st.floats(), st.sampled_from(["+", "-", "*", "/", "//", "%", "**"]), st.floats()
)
def test_bounds_are_finite_or_none(a: float, b: float, op: str, k: float) -> None:
    if math.isnan(a) or math.isnan(b) or math.isnan(k) or math.isinf(a) or math.isinf(b):
        return
    found = calc(op, COST, k).bounds({1: (min(a, b), max(a, b))})
    assert found is None or (
        math.isfinite(found[0]) and found[0] <= found[1] and math.isfinite(found[1])
    )
