"""``groupby(k).count()`` counts the non-null values of each other column, as in pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpframe import BadValue


@pytest.fixture
def df():
    return pd.DataFrame(
        {
            "state": list("ababab"),
            "cost": [1.0, None, 2.0, None, None, 3.0],
            "text": ["a", "b", None, "c", "d", "e"],
            "date": pd.to_datetime(["2024-01-01"] * 5 + [None]),
        }
    )


@pytest.fixture
def p(df):
    return df.dp.open(1000, keys={"state": ["a", "b"]}, because="a test")


@pytest.mark.parametrize("as_index", [True, False])
def test_each_column_is_counted_as_in_pandas(df, p, as_index):
    answer = p.groupby("state", as_index=as_index).count(epsilon=900)
    exact = df.groupby("state", as_index=as_index).count()
    pd.testing.assert_frame_equal(pd.DataFrame(answer), exact, check_index_type=False)
    assert answer["cost"].tolist() == exact["cost"].tolist()


def test_the_price_is_shared_by_the_columns(p):
    text = str(p.explain.groupby("state").count(epsilon=3))
    assert text.count("sensitivity 1 (L1), laplace noise of scale 1") == 3


def test_selected_columns_are_counted_alone(df, p):
    answer = p.groupby("state")[["cost", "text"]].count(epsilon=900)
    pd.testing.assert_frame_equal(
        pd.DataFrame(answer), df.groupby("state")[["cost", "text"]].count(), check_index_type=False
    )


def test_a_frame_of_keys_alone_has_nothing_to_count(df):
    p = df[["state"]].dp.open(1, keys={"state": ["a", "b"]})
    with pytest.raises(BadValue, match=r"\.size\(\)"):
        p.groupby("state").count()
    assert p.groupby("state").size().dtype == np.int64


def test_columns_that_cannot_be_null_share_one_vector(df):
    whole = df.assign(n=range(6), m=[True, False] * 3)
    p = whole.dp.open(1000, keys={"state": ["a", "b"]}, because="a test")
    plan = p.explain.groupby("state")[["n", "m"]].count(epsilon=3)
    assert len(plan.parts) == 1
    assert plan.parts[0].scale == 1 / 3
    mixed = p.explain.groupby("state").count(epsilon=4)
    assert [part.scale for part in mixed.parts] == [3 / 4] * 3  # rows are values and nulls
    answer = p.groupby("state").count(epsilon=900)
    exact = whole.groupby("state").count()
    pd.testing.assert_frame_equal(pd.DataFrame(answer), exact, check_index_type=False)


def test_one_column_is_a_series_of_its_name(df, p):
    answer = p.groupby("state")["cost"].count(epsilon=900)
    pd.testing.assert_series_equal(
        pd.Series(answer), df.groupby("state")["cost"].count(), check_index_type=False
    )
    assert p.groupby("state").size(epsilon=90).name is None


def test_rows_of_people_are_counted_in_each_group(df):
    people = df.assign(who=[1, 1, 2, 2, 3, 3], n=range(6))
    limits = {"unit": "who", "max_rows": 2, "max_groups": 2}
    p = people.dp.open(1000, keys={"state": ["a", "b"]}, **limits, because="a test")
    answer = p.groupby("state")[["n", "cost"]].count(epsilon=900)
    assert (
        answer.to_numpy().tolist() == people.groupby("state")[["n", "cost"]].count().values.tolist()
    )
