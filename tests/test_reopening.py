"""Opening once more: the budget stays what it was, words about the data may change."""

from __future__ import annotations

import pandas as pd
import pytest

from dpframe import SessionError

BOUNDS = {"age": (0, 110), "cost": (0, 1000)}
KEYS = {"state": ["CA", "NY"]}


@pytest.fixture
def df():
    return pd.DataFrame(
        {
            "age": [31, 47, 66, 80, 12, 55],
            "cost": [120.5, None, 80.25, 900.0, 15.0, 60.0],
            "state": ["CA", "NY", "CA", "WA", None, "NY"],
        }
    )


@pytest.mark.parametrize(
    "terms",
    [
        {"epsilon": 2},
        {"epsilon": 1, "delta": 1e-6},
        {"epsilon": 1, "neighbors": "replace-one"},
        {"epsilon": 1, "accountant": "tight"},
        {"epsilon": 1, "population": "others"},
        {"epsilon": 1, "version": "2027"},
    ],
)
def test_other_terms_are_refused(df, terms):
    df.dp.open(1, bounds={"age": (0, 110)}, keys=KEYS)
    with pytest.raises(SessionError, match="would undo the first"):
        df.dp.open(**{"bounds": {"age": (0, 110)}, "keys": KEYS, **terms})
    assert df.dp.budget.epsilon == 1


def test_other_words_about_the_data_are_taken_and_on_record(df):
    p = df.dp.open(1, bounds={"age": (0, 110)})
    p.count(epsilon=0.25)
    q = df.dp.open(1, bounds={"age": (0, 90)}, keys=KEYS, queries=10)
    assert q._session is p._session
    assert q.budget.spent == 0.25
    assert q.groupby("state").size().dp.cost.epsilon == 0.1
    assert "age, bounds=(0, 90)" in q.explain.mean("age").question
    assert {"'age': (0, 110)", "'age': (0, 90)"} <= set(q.declarations["value"])
