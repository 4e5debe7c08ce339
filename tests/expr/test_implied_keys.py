"""Whole numbers between bounds that are close are keys by themselves, and what whole constants make of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpframe import MissingKeys


@pytest.fixture
def df():
    return pd.DataFrame(
        {"age": list(range(100)) * 10, "m": [1, 2, 3, 4] * 250, "x": np.arange(1000) / 10}
    )


@pytest.fixture
def p(df):
    return df.dp.open(1000, bounds={"age": (0, 99), "x": (0, 100), "m": (1, 4)})


GROUPED = {
    "column": lambda d: d.groupby("m"),
    "expression": lambda d: d.groupby(d["m"] + 1),
    "falling": lambda d: d.groupby(d["m"] * -2),
    "both to one": lambda d: d.groupby(d["m"] // 2),
    "tens": lambda d: d.groupby(d["age"] // 10),
    "decades": lambda d: d.groupby(d["age"] // 10 * 10),
    "weekdays": lambda d: d.groupby(d["age"] % 7),
    "negative": lambda d: d.groupby((d["age"] - 50) // 25),
}


@pytest.mark.parametrize("group", GROUPED.values(), ids=GROUPED)
def test_groups_of_whole_numbers_need_no_keys(df, p, group):
    answer, exact = group(p)["x"].mean(epsilon=900), group(df)["x"].mean()
    assert list(answer.index) == list(exact.index)
    assert answer.index.dtype == exact.index.dtype
    assert np.allclose(answer, exact, rtol=0.02)


@pytest.mark.parametrize(
    "group",
    [lambda d: d["age"], lambda d: d["x"] // 10, lambda d: d["age"] / 2, lambda d: d["age"] // -10, lambda d: d["age"] % 65]
)  # fmt: skip
def test_what_may_have_many_values_or_none_that_are_whole_needs_keys(p, group):
    with pytest.raises(MissingKeys):
        p.groupby(group(p)).size()
    assert p.ledger.empty


def test_values_outside_of_the_bounds_are_in_no_group():
    df = pd.DataFrame({"m": [0, 1, 2, 3, 9]})
    p = df.dp.open(1000, bounds={"m": (1, 3)})
    assert p.groupby("m").size(epsilon=900).to_dict() == {1: 1, 2: 1, 3: 1}
