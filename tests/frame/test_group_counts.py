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
