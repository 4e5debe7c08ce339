"""How expressions are made: constants, what is refused, and what the constructors simplify."""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, BadValue
from dpframe import _expr as ex
from dpframe._expr import Column, constant
from dpframe._expr._ranges import outward

AGE = Column.of(0, "age", np.dtype("int64"))
COST = Column.of(1, "the cost", np.dtype("float64"))
STATE = Column.of(2, "state", pd.StringDtype())
OLD = Column.of(3, "old", np.dtype(bool))
WHEN = Column.of(4, "when", np.dtype("M8[us]"))
ZONED = Column.of(5, "zoned", pd.DatetimeTZDtype("us", "Europe/Berlin"))
MIXED = Column.of(6, "mixed", np.dtype(object))
SPAN = Column.of(7, "span", pd.PeriodDtype("M"))
STAY = Column.of(9, "stay", np.dtype("m8[us]"))
MAYBE = Column.of(8, "maybe", pd.Int64Dtype())
EVERY = [AGE, COST, STATE, OLD, WHEN, ZONED, MIXED, SPAN, MAYBE, STAY]


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


@pytest.mark.parametrize(
    "value", [None, math.nan, pd.NA, pd.NaT, np.float64("nan"), np.datetime64("NaT", "ns")]
)
def test_nulls_are_one_thing_and_only_where_they_mean_something(value: Any) -> None:
    assert constant(value, null=True).value is None
    with pytest.raises(BadValue, match="isna"):
        constant(value)
    with pytest.raises(BadValue, match="isna"):
        ex.fill(COST, value)


@pytest.mark.parametrize(
    "value",
    [
        pd.Series([1]),
        pd.DataFrame(),
        np.array([1]),
        [1],
        1j,
        len,
        b"a",
        object(),
        pd.DateOffset(months=1),
    ],
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
    "text with a number": (
        lambda: ex.compare("==", STATE, constant(1)),
        BadType,
        r"state \(text\).*quotes",
    ),
    "number with a text": (
        lambda: ex.compare("==", AGE, constant("1")),
        BadType,
        r"age \(number\).*number",
    ),
    "columns of two kinds": (lambda: ex.compare("==", AGE, STATE), BadType, "one kind"),
    "naive with zoned": (lambda: ex.compare("<", ZONED, constant(NAIVE)), BadType, "zone"),
    "zoned with naive column": (lambda: ex.compare("<", ZONED, WHEN), BadType, "zone"),
    "no date": (lambda: ex.compare("<", WHEN, constant("soon-ish")), BadValue, "no date"),
    "order of labels": (lambda: ex.compare("<", MIXED, constant("a")), BadType, "order"),
    "period": (lambda: ex.compare("==", SPAN, SPAN), BadType, "isna"),
    "timedelta and number": (lambda: ex.compare("==", STAY, constant(1)), BadType, "pd.Timedelta"),
    "timedelta and time": (lambda: ex.compare("<", STAY, WHEN), BadType, "one kind"),
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
    "isin of a period": (lambda: ex.is_in(SPAN, [1]), BadType, "isna"),
    "isin of a timedelta": (lambda: ex.is_in(STAY, ["1 day"]), BadType, "isin does not work"),
    "map of a timedelta": (lambda: ex.map_dict(STAY, {"1 day": 1}), BadType, "map does not work"),
    "between with a typo": (lambda: ex.between(AGE, 1, 2, "all"), BadValue, "inclusive"),
    "fill with another kind": (lambda: ex.fill(AGE, "x"), BadType, "age"),
    "fill numbers with a bool": (lambda: ex.fill(COST, False), BadType, "number"),
    "clip reversed": (lambda: ex.clip(COST, 2, 1), BadValue, "reversed"),
    "clip of text": (lambda: ex.clip(STATE, 1, 2), BadType, "numbers"),
    "clip by text": (lambda: ex.clip(COST, "a"), BadType, "limits"),
    "text to bool": (lambda: ex.cast(STATE, bool), BadType, "values"),
    "time to int": (lambda: ex.cast(WHEN, int), BadType, "values"),
    "float to str": (lambda: ex.cast(COST, str), BadType, "int"),
    "int7": (lambda: ex.cast(AGE, "int7"), BadValue, "int7"),
    "bins by number": (lambda: ex.cut(COST, 5), BadType, "edges"),
    "edges backwards": (lambda: ex.cut(COST, [1, 0]), BadValue, "increase"),
    "one edge": (lambda: ex.cut(COST, [1]), BadValue, "two edges"),
    "labels missing": (lambda: ex.cut(COST, [0, 1, 2], ["a"]), BadValue, "2 different labels"),
    "labels off": (lambda: ex.cut(COST, [0, 1, 2], False), BadType, "range"),
    "map by a function": (lambda: ex.map_dict(STATE, str.upper), BadType, "dict"),
    "map by nothing": (lambda: ex.map_dict(STATE, {}), BadType, "empty"),
    "map of another kind": (lambda: ex.map_dict(STATE, {1: 2}), BadType, "never equal"),
    "str of numbers": (lambda: ex.text_part(AGE, "len"), BadType, "str"),
    "str.cat": (lambda: ex.text_part(STATE, "cat"), BadType, "rows of people"),
    "str.wrap": (lambda: ex.text_part(STATE, "wrap"), BadValue, "not offered"),
    "str.upper with a word": (lambda: ex.text_part(STATE, "upper", to="x"), BadValue, "takes"),
    "bad regex": (lambda: ex.text_part(STATE, "contains", "("), BadValue, "regex=False"),
    "contains a number": (lambda: ex.text_part(STATE, "contains", 1), BadType, "pat"),
    "contains nothing": (lambda: ex.text_part(STATE, "contains"), BadType, "pat"),
    "contains na=": (lambda: ex.text_part(STATE, "contains", "a", na="no"), BadType, "na="),
    "replace with flags": (
        lambda: ex.text_part(STATE, "replace", "a", "b", flags=16),
        BadType,
        "flags",
    ),
    "step 0": (lambda: ex.text_part(STATE, "slice", 0, 1, 0), BadValue, "step"),
    "zfill without end": (lambda: ex.text_part(STATE, "zfill", 10**9), BadValue, "10000"),
    "dt of numbers": (lambda: ex.time_part(AGE, "year"), BadType, "dt"),
    "dt.tz": (lambda: ex.time_part(WHEN, "tz"), BadValue, "tz"),
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


@pytest.mark.parametrize("denominator", [3, 7, 10, 49, 10**17])
def test_bounds_that_no_double_is_are_moved_outwards(denominator):
    for top in (-(10**20) - 1, -5, -1, 1, 2, 5, 10**20 + 1):
        exact = Fraction(top, denominator)
        low, high = outward(exact, exact)
        assert Fraction(low) <= exact <= Fraction(high)
        assert high <= math.nextafter(low, math.inf)


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
