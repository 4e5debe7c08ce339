"""How many distinct values: the verbs, their shapes and prices, and what they refuse."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpframe

SURE = 40  # an epsilon at which noise is zero but once in 10^17 times


@pytest.fixture
def frame():
    rng = np.random.default_rng(3)
    n = 300
    return pd.DataFrame(
        {
            "g": rng.choice(["a", "b", "c"], n),
            "text": rng.choice(["x", "y", "z", None], n),
            "number": rng.choice([0.0, -0.0, 1.5, np.nan, np.inf], n),
            "whole": rng.integers(-5, 5, n),
            "flag": rng.random(n) < 0.5,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 9, n), "D"),
        }
    )


@pytest.fixture
def p(frame):
    return frame.dp.open(1000, keys={"g": ["a", "b", "c"]})


def test_columns_of_every_kind_count_as_in_pandas(frame):
    frame["category"] = pd.Categorical(frame["text"], categories=["w", "x", "y", "z"])
    frame["arrow"] = frame["text"].astype("string[pyarrow]")
    frame["masked"] = frame["whole"].astype("Int64").where(frame["flag"])
    frame["mixed"] = pd.Series([1, 1.0, True, "1", 2.5, None] * 50, dtype=object)
    p = frame.dp.open(1000, keys={"g": ["a", "b", "c"]})
    found = p.nunique(epsilon=900)
    pd.testing.assert_series_equal(pd.Series(found), frame.nunique())
    assert frame["mixed"].nunique() == 3


def test_shapes_are_those_of_pandas(p, frame):
    assert isinstance(p.nunique("text", epsilon=SURE), int)
    assert p["number"].nunique(epsilon=SURE) == frame["number"].nunique()
    by = p.groupby("g")
    pd.testing.assert_series_equal(
        pd.Series(by["text"].nunique(epsilon=SURE)), frame.groupby("g")["text"].nunique()
    )
    pd.testing.assert_series_equal(
        pd.Series(by.nunique("whole", epsilon=SURE)), frame.groupby("g")["whole"].nunique()
    )
    columns = ["text", "whole"]
    pd.testing.assert_frame_equal(
        pd.DataFrame(by[columns].nunique(epsilon=SURE)), frame.groupby("g")[columns].nunique()
    )
    named = by.agg(n=("text", "nunique"), size=("text", "size"), epsilon=SURE)
    pd.testing.assert_frame_equal(
        pd.DataFrame(named), frame.groupby("g").agg(n=("text", "nunique"), size=("text", "size"))
    )
    assert by["text"].agg("nunique", epsilon=SURE).tolist() == named["n"].tolist()
    table = p.pivot_table("text", "g", "flag", aggfunc="nunique", epsilon=SURE)
    pd.testing.assert_frame_equal(
        pd.DataFrame(table), frame.pivot_table("text", "g", "flag", aggfunc="nunique")
    )
    flat = p.groupby("g", as_index=False)["text"].nunique(epsilon=SURE)
    pd.testing.assert_frame_equal(
        pd.DataFrame(flat), frame.groupby("g", as_index=False)["text"].nunique()
    )
    assert p.agg({"text": "nunique", "whole": "count"}, epsilon=SURE).tolist() == [3, 300]


def test_filters_and_expressions(p, frame):
    assert p.query("whole > 0").nunique("whole", epsilon=SURE) == 4
    assert (
        p.assign(half="whole // 2").nunique("half", epsilon=SURE) == (frame["whole"] // 2).nunique()
    )
    assert p.query("whole > 99").nunique("text", epsilon=SURE) == 0
    upper = p.assign(t=p["text"].str.upper())
    assert upper.groupby("g").nunique("t", epsilon=SURE).tolist() == [3, 3, 3]


def test_an_interval_and_a_plan_come_with_it(p):
    plan = p.explain.nunique("text", epsilon=0.5)
    assert (plan.question, plan.sensitivity, plan.scale) == ("nunique(text)", 1, 2)
    assert plan.parts[0].statistic == "distinct values of text"
    assert p.explain.nunique("text", within=5).epsilon == pytest.approx(
        p.explain.count(within=5).epsilon
    )
    low, high = p.nunique("text", epsilon=1).interval()
    assert high - low < 12
    grouped = p.groupby("g")["text"].nunique(epsilon=1)
    assert list(grouped.dp.interval().columns) == ["lower", "upper"]


def test_people_who_may_name_one_value_do_not_all_name_the_same():
    """Each person's own key decides: 300 people who each have all of 20 values name nearly all of them, one each."""
    frame = pd.DataFrame({"id": np.repeat(np.arange(300), 20), "v": np.tile(np.arange(20), 300)})
    p = frame.dp.open(1000, unit="id", max_rows=20)
    assert p.nunique("v", max_groups=1, epsilon=900) == 20
    assert p.groupby("v", keys=range(20)).size(max_groups=1, max_rows=1, epsilon=20).min() > 0


@pytest.mark.parametrize("keys", [None, [1, 2]])
def test_values_of_nobody_are_not_counted(keys):
    frame = pd.DataFrame(
        {"id": [1.0, None, None, 2.0], "v": ["a", "b", "c", "a"], "g": [1, 1, 2, 2]}
    )
    p = frame.dp.open(1000, unit="id", max_rows=1, max_groups=3)
    if keys is None:
        assert p.nunique("v", epsilon=300) == 1
    else:
        assert p.groupby("g", keys=keys)["v"].nunique(epsilon=300).tolist() == [1, 1]


def test_people_add_so_many_values_and_no_more():
    rows = pd.DataFrame({"id": [1] * 6 + [2] * 2, "v": [*"abcdef", "a", "z"], "g": ["x", "y"] * 4})
    p = rows.dp.open(1000, unit="id", max_groups=2, keys={"g": ["x", "y"]})
    assert p.nunique("id", epsilon=SURE) == 2
    assert p.nunique("v", epsilon=SURE) in (3, 4)  # two of the first, and both of the second
    assert p.nunique("v", max_groups=6, epsilon=SURE) == 7
    assert p.groupby("g")["v"].nunique(max_groups=6, epsilon=SURE).tolist() == [3, 4]
    assert p.groupby("g")["v"].nunique(epsilon=SURE).sum() in (3, 4)
    plan = p.explain.nunique("v", epsilon=1)
    assert plan.sensitivity == 2
    assert plan.why.endswith("a person adds at most 2 values")
    both = p.explain.groupby("g").agg(n=("v", "nunique"), p=("id", "nunique"), epsilon=1)
    assert [part.l1 for part in both.parts] == [2, 2]


def test_the_limit_must_be_known():
    p = pd.DataFrame({"id": [1, 1], "v": [1, 2]}).dp.open(1, unit="id", max_rows=3)
    with pytest.raises(
        dpframe.BadValue, match="max_groups= is not known: the most distinct values"
    ):
        p.nunique("v")
    assert p.budget.spent == 0
    assert p.explain.nunique("v", max_groups=2, epsilon=0.5).scale == 4


def test_what_is_refused(p, frame):
    with pytest.raises(dpframe.UnknownColumn):
        p.nunique("nothing")
    with pytest.raises(dpframe.NotOffered, match="do not add up"):
        p.pivot_table("text", "g", aggfunc="nunique", margins=True)
    odd = pd.DataFrame({"t": pd.to_timedelta([1, 2], "D")}).dp.open(1)
    with pytest.raises(dpframe.BadType, match="told apart"):
        odd.nunique("t")
    assert p.budget.spent == odd.budget.spent == 0
