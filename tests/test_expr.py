"""Row-wise expressions: kinds from dtypes, bounds, nulls, identity and what is refused."""

from __future__ import annotations

import copy
import datetime as dt
import json
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe import _expr as ex
from dpframe._errors import BadExpression, BadType, BadValue
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
EVERY = [AGE, COST, STATE, OLD, WHEN, ZONED, MIXED, SPAN, MAYBE]
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
    ("m8[ns]", "other"),
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
    assert ex.is_in(STATE, ["a", "b", "a"]) == ex.is_in(STATE, ("b", "a")) == ex.is_in(STATE, {"a", "b"})


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
        ex.str_part(STATE, "contains", "a|b", case=False),
        ex.str_part(STATE, "slice", 0, 2),
        ex.date_part(ZONED, "normalize"),
        ex.map_dict(AGE, {1: pd.Timestamp("2024-01-01", tz="UTC")}),
    ]


@pytest.mark.parametrize("e", _everything(), ids=str)
def test_expressions_can_be_written_down_copied_and_pickled(e: Expr) -> None:
    text = json.dumps(e.to_json(), allow_nan=False)
    assert "position" in text
    for other in (copy.deepcopy(e), pickle.loads(pickle.dumps(e))):
        assert other == e
        assert hash(other) == hash(e)
        assert other.depth == e.depth


def test_literals_are_written_with_their_types() -> None:
    assert constant(1).to_json() == {"int": 1}
    assert constant(1.0).to_json() == {"float": 1.0}
    assert constant(True).to_json() == {"bool": True}
    assert constant(math.inf).to_json() == {"float": "inf"}


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


# ---- nulls, integers, bounds ------------------------------------------------------------------------------


def test_nullable_is_false_only_where_it_is_proved() -> None:
    assert not plus(AGE, 1).nullable
    assert not calc("*", AGE, OLD).nullable
    assert not ex.fill(COST, 0).nullable
    assert not ex.compare("==", COST, constant(1)).nullable
    assert not ex.str_part(STATE, "contains", "a").nullable
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
    whole = [calc(op, AGE, MAYBE) for op in "+-*"] + [plus(OLD, 1), ex.cast(COST, int), ex.round_to(COST)]
    whole += [ex.date_part(WHEN, "year"), ex.str_part(STATE, "len"), ex.fill(MAYBE, 0), ex.clip(AGE, 0, 5)]
    whole += [ex.map_dict(STATE, {"a": 1}), ex.negate(AGE), ex.absolute(AGE), OLD]
    assert all(e.integral for e in whole)
    broken = [calc("/", AGE, 2), calc("**", AGE, -1), plus(AGE, 0.5), COST, ex.round_to(COST, 1)]
    broken += [ex.fill(MAYBE, 0.5), ex.clip(AGE, 0.5), ex.map_dict(STATE, {"a": 0.5}), plus(COST, 1)]
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
    (ex.date_part(WHEN, "month"), (1, 12)),
    (ex.date_part(WHEN, "year"), None),
    (ex.map_dict(STATE, {"a": 3, "b": -1, "c": None}), (-1, 3)),
    (ex.map_dict(STATE, {"a": math.inf}), None),
    (STATE, None),
    (WHEN, None),
    (ex.str_part(STATE, "len"), None),
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


@given(st.floats(), st.floats(), st.sampled_from(["+", "-", "*", "/", "//", "%", "**"]), st.floats())
def test_bounds_are_finite_or_none(a: float, b: float, op: str, k: float) -> None:
    if math.isnan(a) or math.isnan(b) or math.isnan(k) or math.isinf(a) or math.isinf(b):
        return
    found = calc(op, COST, k).bounds({1: (min(a, b), max(a, b))})
    assert found is None or (math.isfinite(found[0]) and found[0] <= found[1] and math.isfinite(found[1]))


# ---- constants --------------------------------------------------------------------------------------------


def test_numpy_scalars_and_dates_are_normalised() -> None:
    given_ = [
        np.int8(1),
        np.float32(0.5),
        np.bool_(True),
        np.str_("a"),
        dt.date(2024, 1, 1),
        np.datetime64("2024-01-01"),
    ]
    found = [constant(v).value for v in given_]
    assert found == [1, 0.5, True, "a", pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-01")]
    assert [type(v) for v in found] == [int, float, bool, str, pd.Timestamp, pd.Timestamp]


@pytest.mark.parametrize("value", [None, math.nan, pd.NA, pd.NaT, np.float64("nan"), np.datetime64("NaT")])
def test_nulls_are_one_thing_and_only_where_they_mean_something(value: Any) -> None:
    assert constant(value, null=True).value is None
    with pytest.raises(BadValue, match="isna"):
        constant(value)
    with pytest.raises(BadValue, match="isna"):
        ex.fill(COST, value)


@pytest.mark.parametrize(
    "value", [pd.Series([1]), pd.DataFrame(), np.array([1]), [1], 1j, len, b"a", object(), pd.Timedelta(1)]
)
def test_only_plain_scalars_are_constants(value: Any) -> None:
    with pytest.raises(BadType):
        constant(value)


def test_integers_without_end_are_refused() -> None:
    with pytest.raises(BadValue, match="1000 bits"):
        constant(1 << 5000)


# ---- refusals ---------------------------------------------------------------------------------------------

NAIVE = pd.Timestamp("2024-01-01")
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "text with a number": (lambda: ex.compare("==", STATE, constant(1)), BadType, r"state \(text\).*quotes"),
    "number with a text": (lambda: ex.compare("==", AGE, constant("1")), BadType, r"age \(number\).*number"),
    "columns of two kinds": (lambda: ex.compare("==", AGE, STATE), BadType, "one kind"),
    "naive with zoned": (lambda: ex.compare("<", ZONED, constant(NAIVE)), BadType, "zone"),
    "zoned with naive column": (lambda: ex.compare("<", ZONED, WHEN), BadType, "zone"),
    "no date": (lambda: ex.compare("<", WHEN, constant("soon-ish")), BadValue, "no date"),
    "order of labels": (lambda: ex.compare("<", MIXED, constant("a")), BadType, "order"),
    "timedelta": (lambda: ex.compare("==", SPAN, SPAN), BadType, "isna"),
    "unknown comparison": (lambda: ex.compare("<>", AGE, AGE), BadValue, "<>"),
    "sum of texts": (lambda: ex.arithmetic("+", STATE, STATE), BadType, "len"),
    "difference of times": (lambda: ex.arithmetic("-", WHEN, WHEN), BadType, "dt.year"),
    "and of numbers": (lambda: ex.logical_and(AGE, OLD), BadType, "Compare"),
    "not of a label": (lambda: ex.logical_not(MIXED), BadType, "condition"),
    "isin of a Series": (lambda: ex.is_in(STATE, pd.Series(["a"])), BadType, "list"),
    "isin of a string": (lambda: ex.is_in(STATE, "abc"), BadType, "list"),
    "isin of a generator": (lambda: ex.is_in(STATE, (c for c in "ab")), BadType, "list"),
    "isin of a table": (lambda: ex.is_in(AGE, np.ones((2, 2))), BadType, "flat"),
    "isin of another kind": (lambda: ex.is_in(STATE, ["a", 1]), BadType, "never equal"),
    "isin of a timedelta": (lambda: ex.is_in(SPAN, [1]), BadType, "isna"),
    "between with a typo": (lambda: ex.between(AGE, 1, 2, "all"), BadValue, "inclusive"),
    "fill with another kind": (lambda: ex.fill(AGE, "x"), BadType, "age"),
    "fill numbers with a bool": (lambda: ex.fill(COST, False), BadType, "number"),
    "clip reversed": (lambda: ex.clip(COST, 2, 1), BadValue, "reversed"),
    "clip of text": (lambda: ex.clip(STATE, 1, 2), BadType, "numbers"),
    "clip by text": (lambda: ex.clip(COST, "a"), BadType, "limits"),
    "text to int": (lambda: ex.cast(STATE, int), BadType, "values"),
    "float to str": (lambda: ex.cast(COST, str), BadType, "int"),
    "time to int": (lambda: ex.cast(WHEN, int), BadType, "values"),
    "int8": (lambda: ex.cast(AGE, "int8"), BadValue, "int8"),
    "bins by number": (lambda: ex.cut(COST, 5), BadType, "edges"),
    "edges backwards": (lambda: ex.cut(COST, [1, 0]), BadValue, "increase"),
    "one edge": (lambda: ex.cut(COST, [1]), BadValue, "two edges"),
    "labels missing": (lambda: ex.cut(COST, [0, 1, 2], ["a"]), BadValue, "2 different labels"),
    "labels off": (lambda: ex.cut(COST, [0, 1, 2], False), BadType, "range"),
    "map by a function": (lambda: ex.map_dict(STATE, str.upper), BadType, "dict"),
    "map by nothing": (lambda: ex.map_dict(STATE, {}), BadType, "empty"),
    "map of another kind": (lambda: ex.map_dict(STATE, {1: 2}), BadType, "never equal"),
    "str of numbers": (lambda: ex.str_part(AGE, "len"), BadType, "str"),
    "str.cat": (lambda: ex.str_part(STATE, "cat"), BadValue, "cat"),
    "bad regex": (lambda: ex.str_part(STATE, "contains", "("), BadValue, "regex=False"),
    "contains a number": (lambda: ex.str_part(STATE, "contains", 1), BadType, "pat"),
    "contains nothing": (lambda: ex.str_part(STATE, "contains"), BadType, "pat"),
    "contains na=": (lambda: ex.str_part(STATE, "contains", "a", na=False), BadValue, "takes"),
    "replace by regex": (lambda: ex.str_part(STATE, "replace", "a", "b", regex=True), BadValue, "takes"),
    "step 0": (lambda: ex.str_part(STATE, "slice", 0, 1, 0), BadValue, "step"),
    "zfill without end": (lambda: ex.str_part(STATE, "zfill", 10**9), BadValue, "10000"),
    "dt of numbers": (lambda: ex.date_part(AGE, "year"), BadType, "dt"),
    "dt.tz": (lambda: ex.date_part(WHEN, "tz"), BadValue, "tz"),
    "round by text": (lambda: ex.round_to(COST, "a"), BadValue, "digits"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_meant_is_refused_by_dtype(name: str) -> None:
    make, error, match = REFUSED[name]
    with pytest.raises(error, match=match):
        make()


@pytest.mark.parametrize("column", EVERY, ids=str)
def test_null_tests_work_on_every_kind(column: Column) -> None:
    assert ex.is_null(column).kind == ex.not_null(column).kind == "bool"
    assert not ex.is_null(column).nullable


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
    assert str(deepest).count("(") == json.dumps(deepest.to_json()).count('"+"') - 1
    with pytest.raises(BadExpression, match="deep"):
        _grown(lambda e: plus(e, 1), 10_000)
    with pytest.raises(BadExpression, match="deep"):
        _grown(lambda e: plus(e, e), 100)  # 2**100 nodes, if one counted them


# ---- parts ------------------------------------------------------------------------------------------------


def test_cut_has_the_categories_that_pandas_gives() -> None:
    for right in (True, False):
        expected = pd.cut(np.array([0.5]), [0, 1, 2.5], right=right).categories
        assert ex.cut(COST, [0, 1, 2.5], right=right).categories == tuple(expected)
    assert ex.cut(COST, [0, 1, 2], ["lo", "hi"]).categories == ("lo", "hi")


def test_a_map_has_the_kind_of_its_values() -> None:
    kinds = {
        "number": [1, 2.5, True],
        "bool": [True],
        "text": ["a", None],
        "label": ["a", 1],
        "time": [NAIVE],
    }
    for kind, values in kinds.items():
        assert ex.map_dict(STATE, dict(zip("abc", values, strict=False))).kind == kind
    assert ex.map_dict(STATE, {"a": NAIVE, "b": NAIVE.tz_localize("UTC")}).kind == "label"


def test_casts_that_change_nothing_are_no_nodes() -> None:
    assert ex.cast(AGE, int) is AGE
    assert ex.cast(OLD, bool) is OLD
    assert ex.cast(STATE, str) is STATE
    assert ex.fill(AGE, 0) is AGE
    assert ex.round_to(AGE, 2) is AGE
    for to in (float, "float64", "Float64", np.float64, np.dtype("float64")):
        assert ex.cast(AGE, to) == ex.cast(AGE, "float")


def test_comparisons_have_their_constant_on_the_right() -> None:
    assert ex.compare("<", constant(3), AGE) == ex.compare(">", AGE, constant(3))


def test_dates_in_strings_are_read_in_the_columns_zone() -> None:
    e = ex.compare("<", ZONED, constant("2024-07-01"))
    assert "2024-07-01 00:00:00+02:00" in str(e)
