"""What the how-to pages say of answers, and show in tables, checked in numbers."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from dpframe import PrivacyWarning, PrivateFrame
from dpframe.datasets import BOUNDS, KEYS, visits

ALL = {**BOUNDS, "admitted": ("2025-01-01", "2025-12-31")}


@pytest.fixture
def df() -> pd.DataFrame:
    return visits(4000)


@pytest.fixture
def p(df: pd.DataFrame) -> PrivateFrame:
    return df.dp.open(epsilon=100, bounds=ALL, keys=KEYS)


SHAPES = {
    "size": lambda d: d.groupby("state").size(),
    "mean": lambda d: d.groupby("state")["cost"].mean(),
    "two": lambda d: d.groupby("state")[["age", "cost"]].mean(),
    "agg": lambda d: d.groupby("state").agg(
        n=("age", "size"), m=("age", "mean"), t=("cost", "sum")
    ),
    "months": lambda d: d.resample("ME", on="admitted").size(),
}


@pytest.mark.parametrize("name", SHAPES)
def test_groupby_answer_has_the_labels_and_dtypes_of_pandas(name, df, p):
    answer, exact = SHAPES[name](p), SHAPES[name](df)
    assert isinstance(answer, type(exact))
    assert answer.index.equals(exact.index)
    assert answer.index.names == exact.index.names
    if isinstance(exact, pd.Series):
        assert (answer.name, answer.dtype) == (exact.name, exact.dtype)
    else:
        assert list(answer.columns) == list(exact.columns)
        assert list(answer.dtypes) == list(exact.dtypes)


def test_groupby_returns_listed_keys_in_their_order_with_the_empty_ones(p):
    wide = p.groupby("state", keys=["PR", "CA"]).agg(
        n=("age", "size"), m=("age", "mean"), epsilon=1
    )
    assert list(wide.index) == ["PR", "CA"]
    assert not wide.dp.reliable.loc["PR", "n"]
    assert wide.dp.reliable.loc["CA"].all()


def test_margins_of_counts_are_the_sums_of_their_cells(p):
    table = p.crosstab("state", "smoker", margins=True, epsilon=1)
    assert (table.loc["All"] == table.drop(index="All").sum()).all()


def test_proportions_add_up_to_one(p):
    share = p.crosstab("state", "smoker", normalize="index", epsilon=1)
    assert (share.sum(axis=1) - 1).abs().max() < 1e-12


def test_correlations_are_free_after_covariances_and_their_intervals_end_at_one(p):
    pair = p[["age", "cost"]]
    pair.cov(epsilon=2)
    spent = p.budget.spent
    ends = pair.corr(epsilon=2).dp.interval()
    assert p.budget.spent == spent
    assert (ends.xs("upper", axis=1, level=-1) <= 1).all(axis=None)


def test_a_pivot_table_of_a_released_groupby_is_the_same_numbers_for_nothing(p):
    means = p.groupby(["state", "smoker"])["cost"].mean(epsilon=0.2)
    spent = p.budget.spent
    table = p.pivot_table("cost", "smoker", "state", epsilon=0.2)
    assert p.budget.spent == spent
    assert table.loc[True, "CA"] == means["CA", True]


def test_a_p_value_is_small_where_the_interval_leaves_out_zero(p):
    found = p.test.means("age", by="smoker", epsilon=1)
    low, high = found.interval
    assert low < found.estimate < high
    assert (found.pvalue <= 0.05) == (low > 0 or high < 0)


def test_limits_that_fit_a_table_of_many_cells_give_reliable_means():
    rng = np.random.default_rng(3)
    planes = rng.choice(4000, 120_000, p=(w := rng.gamma(0.7, 1.0, 4000)) / w.sum())
    flights = pd.DataFrame(
        {
            "plane": planes,
            "origin": rng.choice(["EWR", "JFK", "LGA"], len(planes)),
            "month": rng.integers(1, 13, len(planes)),
            "delay": rng.normal(8, 30, len(planes)).round(),
        }
    )
    keys = {"origin": ["EWR", "JFK", "LGA"], "month": range(1, 13)}
    p = flights.dp.open(
        epsilon=40,
        unit="plane",
        max_rows=16,
        max_groups=12,
        bounds={"delay": (-30, 180)},
        keys=keys,
    )
    assert p.count(epsilon=1) < len(flights) / 2
    assert abs(p.count(epsilon=1, max_rows=256) - len(flights)) < 4000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        cells = p.groupby(["origin", "month"])["delay"]
        naive = cells.mean(epsilon=5, max_rows=200, max_groups=12)
        fitting = cells.mean(epsilon=5, max_rows=4, max_groups=8)
    assert not naive.dp.reliable.any()
    assert fitting.dp.reliable.all()
