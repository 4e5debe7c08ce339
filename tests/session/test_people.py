"""Sessions whose people have many rows: opening, limits, answers, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, BadValue, BudgetExceeded, SessionError, UnknownColumn
from dpframe.utilities import distance, revenue

EXACT = 900.0
BOTH = {"age": (0, 100), "other": (0, 100)}
STATES = ["CA", "NY", "WA"]


@pytest.fixture
def df():
    rng = np.random.default_rng(4)
    n = 3000
    ids = rng.integers(0, 400, n)
    return pd.DataFrame(
        {
            "id": np.where(rng.random(n) < 0.02, np.nan, ids.astype(float)),
            "age": rng.integers(20, 90, n).astype(float),
            "state": rng.choice([*STATES, "OR"], n),
            "flag": rng.random(n) < 0.3,
        }
    )


def opened(df, epsilon=1000, **terms):
    words = {"unit": "id", "bounds": {"age": (0, 100)}, "keys": {"state": STATES}, **terms}
    return df.dp.open(epsilon, **words)


def test_generous_limits_answer_what_pandas_would(df):
    p = opened(df, max_rows=40, max_groups=3)
    known = df.dropna(subset="id")
    assert p.count(epsilon=EXACT / 9) == pytest.approx(len(known), abs=15)  # noise of scale 0.4
    assert p.mean("age", epsilon=EXACT / 9) == pytest.approx(known["age"].mean(), abs=1)
    means = p.groupby("state")["age"].mean(epsilon=EXACT / 9)
    truth = known[known["state"].isin(STATES)].groupby("state")["age"].mean()
    pd.testing.assert_series_equal(
        means, truth, atol=5.0, check_index_type=False, check_series_type=False
    )
    assert p.query("flag").count(epsilon=EXACT / 9) == pytest.approx(known["flag"].sum(), abs=15)
    table = p.groupby("state").agg(n=("age", "size"), m=("age", "mean"), epsilon=EXACT / 9)
    assert table.shape == (3, 2)


def test_order_statistics_covariances_and_choices_answer_what_pandas_would(df):
    p = opened(df.assign(other=100 - df["age"] / 2), max_rows=40, max_groups=3, bounds=BOTH)
    known = df.dropna(subset="id")
    middle = known["age"].median()
    assert p.median("age", epsilon=40) == pytest.approx(middle, abs=3)
    assert p.quantile("age", 0.5, method="tree", epsilon=100) == pytest.approx(middle, abs=6)
    assert p.groupby("state")["age"].median(epsilon=100).between(middle - 15, middle + 15).all()
    assert p.min("age", q=0.05, epsilon=50) < 30 < 80 < p.max("age", q=0.95, epsilon=50)
    assert p[["age", "other"]].corr(epsilon=100).loc["age", "other"] < -0.9
    assert p.choose([20, 55, 90], distance("age"), epsilon=50) == 55
    assert p.choose([30, 60, 89], revenue("age"), epsilon=50) == 30
    assert p.choose([20, 90], "(age - @candidate).abs() < 20", bounds=(0, 1), epsilon=50) in (
        20,
        90,
    )


def test_a_few_values_of_a_person_stand_for_all_of_them():
    """A hundred people have one high value, and one person a thousand low ones."""
    frame = pd.DataFrame({"id": [*range(100), *[999] * 1000], "x": [9.0] * 100 + [1.0] * 1000})
    p = frame.dp.open(1000, unit="id", bounds={"x": (0, 10)})
    assert p.median("x", max_rows=1, epsilon=100) == 9
    assert p.median("x", max_rows=1000, epsilon=300) == 1
    assert p.choose([1, 9], revenue("x"), max_rows=1, epsilon=100) == 9
    assert p.mean("x", max_rows=1, epsilon=100) == pytest.approx((900 + 1) / 101, abs=0.5)


def test_what_a_person_moves_is_in_the_plan(df):
    p = opened(df, epsilon=10, max_rows=4, max_groups=2)
    for ask, one in [
        (lambda **w: p.explain.median("age", **w), 1.0),
        (lambda **w: p.explain.quantile("age", 0.5, method="tree", **w), 3.0),  # levels
        (lambda **w: p.explain.choose([10, 60], revenue("age"), **w), 60.0),
        (lambda **w: p.explain.choose([10, 60], distance("age"), **w), 100.0),
    ]:
        assert ask(max_rows=1).sensitivity == pytest.approx(one, rel=1e-6)
        assert ask().sensitivity == pytest.approx(4 * one, rel=1e-6)
        assert "for at most 4 rows" in ask().why
        assert "groups" not in ask().why
    grouped = p.explain.groupby("state")["age"].median()
    assert grouped.sensitivity == 8.0
    assert "in each of at most 2 groups" in grouped.why
    own = p.explain.choose(
        [1, 2], "age * @candidate", 30, because="a test", max_rows=4, max_groups=None
    )
    assert 240 <= own.sensitivity <= 240.01


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_nobody_counts_for_more_rows_than_the_limit(df, limit):
    p = opened(df, max_rows=limit, max_groups=3)
    truth = df.groupby("id").size().clip(upper=limit).sum()
    assert p.count(epsilon=EXACT) == truth
    assert (
        opened(df.copy(), max_rows=9, because="the same twice, in a test").count(
            epsilon=EXACT, max_rows=limit
        )
        == truth
    )


def test_people_are_counted_once(df):
    p = opened(df, max_groups=4)
    assert p.nunique("id", epsilon=EXACT / 3) == df["id"].nunique()
    found = p.groupby("state").nunique("id", epsilon=EXACT / 3)
    assert found.tolist() == [df.loc[df["state"] == s, "id"].nunique() for s in STATES]
    assert p.groupby("state")["id"].nunique(epsilon=EXACT / 3).name == "id"


def test_several_columns_name_a_person():
    frame = pd.DataFrame({"a": ["x", "x", "y", None, "y"], "b": [1, 1, 1, 1, 2], "v": 1.0})
    p = frame.dp.open(1000, unit=["a", "b"], max_rows=1)
    assert p.count(epsilon=EXACT) == 3


def test_noise_grows_with_the_limits_and_not_with_the_frame(df):
    p = opened(df, epsilon=10, max_rows=4, max_groups=2)
    assert p.explain.count(epsilon=1).scale == 4
    assert p.explain.count(epsilon=1, max_rows=1).scale == 1
    assert p.explain.nunique("id", epsilon=1).scale == 1
    assert p.explain.groupby("state").size(epsilon=1).scale == 8
    assert (
        p.explain.groupby("state").size(epsilon=1, max_groups=100).scale == 12
    )  # there are only three
    assert p.explain.argmax("state", epsilon=1).parts[0].noise.rate * 4 == 1
    assert "at most 4 rows in each of at most 2 groups" in repr(p.explain.groupby("state").size())


def test_limits_are_needed_where_they_matter_and_nothing_is_charged(df):
    p = opened(df, epsilon=1)
    for ask in (
        p.count,
        lambda: p.mean("age"),
        lambda: p.median("age"),
        lambda: p[["age"]].cov(),
        lambda: p.choose([1, 2], revenue("age")),
        lambda: p.choose([1, 2], distance("age")),
        lambda: p.groupby("state").size(),
        lambda: p.argmax("state"),
    ):
        with pytest.raises(BadValue, match="max_rows="):
            ask()
    with pytest.raises(BadValue, match="max_groups="):
        p.groupby("state").size(max_rows=3)
    with pytest.raises(BadValue, match="max_groups="):
        p.groupby("state").nunique("id")
    assert p.budget.spent == 0
    assert p.nunique("id", epsilon=0.5) is not None
    assert p.count(max_rows=3, epsilon=0.5) is not None


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ({"max_rows": 0}, BadValue),
        ({"max_rows": 2**70}, BadValue),
        ({"max_groups": -1}, BadValue),
        ({"max_rows": 1.5}, BadType),
        ({"max_rows": True}, BadType),
        ({"max_groups": "3"}, BadType),
    ],
)
def test_limits_that_are_none_are_refused(df, words, error):
    with pytest.raises(error):
        opened(df, **words)
    p = opened(df, epsilon=1, max_rows=2, max_groups=2)
    with pytest.raises(error):
        p.groupby("state").size(**words)
    assert p.budget.spent == 0


def test_a_unit_is_a_column_of_the_frame(df):
    with pytest.raises(UnknownColumn):
        df.dp.open(1, unit="patient")
    with pytest.raises(BadValue):
        df.dp.open(1, unit=[])
    with pytest.raises(BadValue, match="need unit="):
        df.dp.open(1, max_rows=3)
    p = df.dp.open(1)
    with pytest.raises(BadValue, match="sessions with unit="):
        p.count(max_rows=3)
    assert p.explain.nunique("id", epsilon=0.5).scale == 2  # without unit= a row adds one value


def test_ids_below_zero_and_of_any_text_are_people():
    for ids in ([-5, -5, -(2**63), 3], ["\ud800", "\ud800", "b", "c"], [-1, -1, "b", "c"]):
        frame = pd.DataFrame(
            {"id": pd.Series(ids, dtype=None if isinstance(ids[-1], int) else object), "k": 1}
        )
        p = frame.dp.open(1000, unit="id", max_rows=1, max_groups=1)
        assert p.count(epsilon=80) == p.nunique("id", epsilon=80) == 3
    both = pd.DataFrame({"a": [-1, -1, 2], "b": [-7, -8, -7], "k": 1})
    assert both.dp.open(1000, unit=["a", "b"], max_rows=1).count(epsilon=EXACT) == 3


def test_dropping_the_column_on_the_way_changes_nothing(df):
    p = opened(df, max_rows=2)
    truth = df.groupby("id").size().clip(upper=2).sum()
    assert p.drop(columns="id").count(epsilon=EXACT) == truth
    assert p.drop(columns="id").rename(columns={"age": "x"}).count(epsilon=EXACT) == truth


def test_the_same_budget_is_for_the_same_people(df):
    account = dpframe.Accountant(1)
    df.dp.open(accountant=account, unit="id", max_rows=2)
    with pytest.raises(SessionError, match="named by"):
        pd.DataFrame({"x": [1]}).dp.open(accountant=account)
    other = pd.DataFrame({"id": [1, 2], "z": [0.0, 1.0]})
    assert other.dp.open(accountant=account, unit="id", max_rows=5).count(epsilon=0.5) is not None
    with pytest.raises(BudgetExceeded):
        df.dp.count(epsilon=0.75)


def test_the_number_of_rows_is_not_public_when_people_are(df):
    p = opened(df, epsilon=10, max_rows=3, neighbors="replace-one")
    assert p.explain.mean("age", epsilon=1).parts[0].l1 > 0
    assert "public number of rows" not in repr(p.explain.mean("age"))
    assert p.explain.count(epsilon=1).scale == 3


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_plans_of_people_do_not_depend_on_the_number_of_rows(neighbors):
    """Under replace-one the number of people is public and that of their rows is not: plans of two and of 200 rows are equal."""
    found = []
    for rows in (2, 200):
        frame = pd.DataFrame({"id": np.arange(rows) % 2, "x": 95})
        p = frame.dp.open(10, unit="id", max_rows=2, neighbors=neighbors, bounds={"x": (90, 100)})
        asked = [
            p.explain.sum("x", epsilon=1),
            p.explain.mean("x", epsilon=1),
            p.explain.var("x", epsilon=1),
        ]
        found.append([repr(plan) for plan in asked] + [repr(p.explain.count(epsilon=1))])
        assert asked[0].sensitivity == 200  # a row less is up to 100 less
    assert found[0] == found[1]


def test_other_limits_are_another_question(df):
    p = opened(df, epsilon=1, max_rows=3)
    p.count(epsilon=0.25)
    p.count(epsilon=0.25)
    p.count(epsilon=0.25, max_rows=2)
    assert p.budget.spent == 0.5


@pytest.mark.parametrize("n", [0, 1])
def test_empty_frames_answer(n):
    frame = pd.DataFrame({"id": ["a"], "x": [1.0], "g": ["u"]}).iloc[:n]
    p = frame.dp.open(1000, unit="id", max_rows=2, max_groups=1, bounds={"x": (0, 2)})
    assert p.count(epsilon=EXACT / 4) == n
    assert 0 <= p.mean("x", epsilon=EXACT / 4) <= 2
    assert p.groupby("g", keys=["u", "v"]).size(epsilon=EXACT / 4).tolist() == [n, 0]
    assert p.counts({"one": "x == 1"}, epsilon=EXACT / 4).tolist() == [n]


def test_texts_name_the_unit_and_no_cell(df):
    p = opened(df, max_rows=2)
    assert "a person by 'id'" in repr(p)
    assert "a person by" in p._repr_html_()
