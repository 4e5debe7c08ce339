"""Blank reports, of people with fewer rows than count: taken out of an estimate by the number of rows that have a value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpframe import BadValue, local

PEOPLE, MOST = 2000, 4


@pytest.fixture
def df():
    rng = np.random.default_rng(5)
    ids = np.repeat(np.arange(PEOPLE), rng.integers(1, MOST + 1, PEOPLE))
    return pd.DataFrame(
        {
            "id": ids,
            "kind": rng.choice(["a", "b", "c"], len(ids), p=[0.9, 0.1, 0.0]),
            "x": rng.uniform(0.8, 1.0, len(ids)),
        }
    )


@pytest.fixture
def p(df):
    return df.dp.open(
        1000,
        neighbors="replace-one",
        unit="id",
        max_rows=MOST,
        bounds={"x": (0, 1)},
        keys={"kind": ["a", "b", "c"]},
        because="a test",
    )


def test_shares_and_counts_are_of_the_rows(df, p):
    reports = p.randomize("kind", epsilon=40)
    assert len(reports) == PEOPLE * MOST > len(df)
    found = local.estimate(reports, rows=len(df))
    exact = df["kind"].value_counts().reindex(["a", "b", "c"], fill_value=0)
    assert found["frequency"].tolist() == pytest.approx((exact / len(df)).tolist(), abs=0.03)
    assert found["count"].tolist() == pytest.approx(exact.tolist(), abs=0.03 * len(df))
    ends = found.dp.interval(1 - 1e-6)
    assert (ends["count", "lower"] <= exact).all()
    assert (exact <= ends["count", "upper"]).all()
    assert found["frequency"].sum() == pytest.approx(1)


def test_means_and_sums_are_of_the_rows(df, p):
    found = local.estimate(p.randomize("x", epsilon=40), rows=len(df))
    assert found.loc["x", "mean"] == pytest.approx(df["x"].mean(), abs=0.02)
    assert found.loc["x", "sum"] == pytest.approx(df["x"].sum(), rel=0.02)
    ends = found.dp.interval(1 - 1e-6).loc["x"]
    assert ends["mean", "lower"] <= df["x"].mean() <= ends["mean", "upper"]
    assert ends["sum", "lower"] <= df["x"].sum() <= ends["sum", "upper"]


def test_a_released_number_of_rows_serves(df, p):
    found = local.estimate(p.randomize("x", epsilon=40), rows=p.count("x", epsilon=40))
    assert found.loc["x", "mean"] == pytest.approx(df["x"].mean(), abs=0.02)


def test_blanks_that_are_taken_for_values_would_bias_it(df, p):
    """The twin: all reports as if each were of a value."""
    reports = p.randomize("x", epsilon=40)
    wrong = local.estimate(reports, rows=len(reports))
    assert wrong.loc["x", "mean"] < df["x"].mean() - 0.1


def test_reports_with_blanks_ask_for_the_number_of_rows(p):
    with pytest.raises(BadValue, match=r"estimate\(reports, rows="):
        local.estimate(p.randomize("x", epsilon=40))
    with pytest.raises(BadValue, match="positive"):
        local.estimate(p.randomize("x", epsilon=40), rows=0)
    one = p.randomize("x", epsilon=40, max_rows=1)
    assert local.estimate(one).loc["x", "mean"] == pytest.approx(0.9, abs=0.02)


def test_the_number_of_rows_is_of_all_reports(df):
    p = df.dp.open(100, neighbors="replace-one", keys={"kind": ["a", "b", "c"]}, because="a test")
    reports = p.randomize("kind", epsilon=50)
    with pytest.raises(BadValue, match="without by="):
        local.estimate(reports, by=pd.Series(np.arange(len(reports)) % 2), rows=9)


def test_nulls_are_blanks_too(df):
    half = df.assign(kind=df["kind"].where(df.index % 2 == 0))
    p = half.dp.open(100, neighbors="replace-one", keys={"kind": ["a", "b", "c"]}, because="a test")
    reports = p.randomize("kind", epsilon=50)
    found = local.estimate(reports, rows=int(half["kind"].notna().sum()))
    assert found.loc["c", "frequency"] == pytest.approx(0, abs=0.03)
    assert local.estimate(reports).loc["c", "frequency"] > 0.1
