"""`describe` has the columns that pandas' has, as far as they have public bounds."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, BadValue, MissingBounds, NotOffered, PrivacyWarning

BOUNDS = {"age": (0, 10), "date": ("2024-01-01", "2024-12-31"), "stay": ("0h", "500h")}
pytestmark = pytest.mark.filterwarnings("ignore:numbers of this answer")


@pytest.fixture
def df():
    rows = 3000
    return pd.DataFrame(
        {
            "age": np.arange(rows) % 11,
            "date": pd.date_range("2024-01-01", periods=rows, freq="2h"),
            "stay": pd.to_timedelta(np.arange(rows) % 400, unit="h"),
            "state": ["CA", "NY", "CA"] * (rows // 3),
            "free": np.arange(rows),
        }
    )


@pytest.fixture
def p(df):
    return df.dp.open(1000, bounds=BOUNDS, keys={"state": ["CA", "NY"]}, because="a test")


def test_declared_times_and_durations_stand_beside_numbers(df, p):
    answer = p.describe(epsilon=300)
    exact = df[["age", "date", "stay"]].describe()
    assert list(answer.columns) == list(exact.columns)
    assert list(answer.dtypes) == list(exact.dtypes)
    assert sorted(answer.index) == sorted(exact.index)
    assert abs(answer.loc["mean", "age"] - exact.loc["mean", "age"]) < 0.1
    assert abs(answer.loc["mean", "date"] - exact.loc["mean", "date"]) < pd.Timedelta("1D")
    assert abs(answer.loc["std", "stay"] - exact.loc["std", "stay"]) < pd.Timedelta("5h")
    assert abs(answer.loc["50%", "date"] - exact.loc["50%", "date"]) < pd.Timedelta("9D")
    assert np.isnan(answer.loc["std", "date"])
    assert answer.loc["count", "date"] == 3000


def test_intervals_stand_beside_times_and_numbers(p):
    answer = p.describe(epsilon=300)
    ends = answer.dp.interval()
    for column in ("age", "date", "stay"):
        low, high = ends[column, "lower"]["mean"], ends[column, "upper"]["mean"]
        assert low <= answer.loc["mean", column] <= high
        assert answer.dp.loc["mean", column].interval() == (low, high)
    assert answer.dp.reliable.loc["mean"].all()
    shown = p[["age", "date"]].describe(epsilon=300)
    for text in (repr(shown), shown._repr_html_(), repr(shown.T), shown.dp.table().to_csv()):
        assert "2024-" in text


def test_times_with_a_zone_are_in_their_zone(df):
    zoned = df.assign(date=df["date"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"))
    bounds = {
        **BOUNDS,
        "date": (pd.Timestamp("2024-01-01", tz="UTC"), pd.Timestamp("2025-01-01", tz="UTC")),
    }
    p = zoned.dp.open(1000, bounds=bounds, because="a test")
    answer = p[["age", "date"]].describe(epsilon=300)
    assert str(answer.loc["mean", "date"].tz) == "Asia/Tokyo"
    assert answer.loc["count", "date"] == 3000


def test_noise_is_left_out_of_a_column_of_times(df):
    p = df.dp.open(1, bounds=BOUNDS, because="a test", show="nan")
    answer = p[["age", "date"]].describe(epsilon=1e-3)
    assert answer.isna().to_numpy().any()


def test_dtypes_choose_columns_as_in_pandas(df, p):
    bounded = df[["age", "date", "stay", "state"]]
    for words in ({"include": "number"}, {"exclude": ["number"]}, {"include": ["datetime"]}):
        plan = p.explain.describe(**words)
        exact = bounded.describe(**words)
        described = [name for name in exact.columns if name != "state"]
        assert (
            list(dict.fromkeys(name for name, _ in (cell.name for cell in plan.cells))) == described
        )


def test_all_columns_are_those_with_bounds_and_the_others_are_named(p):
    with pytest.warns(PrivacyWarning, match=r"asked apart: p\['state'\]\.value_counts\(\)\."):
        answer = p.describe(include="all", epsilon=300)
    assert list(answer.columns) == ["age", "date", "stay"]


def test_columns_of_texts_are_refused_before_the_debit_with_the_line_to_write(p):
    budget = p.budget
    with pytest.raises(NotOffered, match=r"p\['state'\]\.value_counts\(\)"):
        p.describe(include="str")
    with pytest.raises(BadType, match="dtypes cannot be selected"):
        p.describe(include="nothing")
    with pytest.raises(BadValue, match="exclude= must be left out"):
        p.describe(include="all", exclude="number")
    with pytest.raises(BadType, match="here they are named"):
        p.describe(["age"], include="number")
    assert p.budget == budget
    assert p["age"].describe(include="all", epsilon=100)["count"] == 3000


def test_what_is_not_declared_is_left_out_without_a_word(df):
    p = df.dp.open(1000, bounds={"age": (0, 10)}, because="a test")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = p.describe(epsilon=100)
    assert list(answer.columns) == ["age"]
    with pytest.raises(MissingBounds):
        p[["free", "date"]].describe()


def test_groups_describe_all_that_has_bounds(df, p):
    answer = p.groupby("state").describe(epsilon=300)
    exact = df[["state", "age", "date", "stay"]].groupby("state").describe()
    assert list(dict.fromkeys(answer.columns.get_level_values(0))) == ["age", "date", "stay"]
    assert answer["age", "count"].tolist() == exact["age", "count"].tolist()
    chosen = p.groupby("state")[["age", "date", "stay"]].describe(epsilon=300)
    assert chosen.equals(answer)
    nothing = df.copy().dp.open(1, keys={"state": ["CA", "NY"]}, because="a test")
    with pytest.raises(MissingBounds):
        nothing.groupby("state").describe()
