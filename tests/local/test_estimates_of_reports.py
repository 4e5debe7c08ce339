"""Estimates of reports with nulls, values that nobody listed, and groups; and how wide the interval of a mean is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpframe import local

TRUE = 60  # a report that is not the true value: once in 10**25


def said(values, keys, **words):
    answers = pd.Series(
        [local.answer(v, keys=keys, epsilon=TRUE, **words) for v in values], dtype=object
    )
    return local.reports(answers, keys=keys, epsilon=TRUE, **words)


@pytest.mark.parametrize("value", ["maybe", "No", 7, None])
def test_a_value_that_nobody_listed_is_other_each_time(value):
    found = {local.answer(value, keys=["no", "yes"], other="?", epsilon=TRUE) for _ in range(20)}
    assert found == {"?"}


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_listed_null_stands_at_its_place_and_moves_no_other_value(place):
    keys = ["a", "b"]
    keys.insert(place, None)
    reports = said(["a"] * 5 + ["b"] * 3 + [None] * 2, keys)
    found = local.estimate(reports)["count"]
    assert [k if isinstance(k, str) else None for k in found.index] == keys
    assert found.tolist() == pytest.approx([{"a": 5, "b": 3, None: 2}[k] for k in keys])


def test_rows_whose_group_is_null_are_in_no_group():
    reports = said(["yes", "no", "yes", "yes"], ["no", "yes"])
    by = pd.Series(["x", "y", None, "x"], name="g")
    found = local.estimate(reports, by=by)["count"]
    assert found.tolist() == pytest.approx([0, 2, 1, 0])


def test_shares_of_pairs_are_those_of_both_columns():
    one, two = said(["a", "b", "b", "c"], ["a", "b", "c"]), said(["x", "x", "y", "y"], ["x", "y"])
    found = local.estimate(one, by=two)["frequency"].unstack()
    assert found.to_numpy().ravel().tolist() == pytest.approx(
        [0.25, 0.25, 0, 0, 0.25, 0.25], abs=1e-6
    )


@pytest.mark.parametrize("epsilon", [1, 2, 3, 5])
def test_interval_of_a_mean_is_as_wide_as_that_of_each_report(epsilon):
    """A report y stands for (y - lies / 2) / kept: the normal interval of the mean of these."""
    frame = pd.DataFrame({"x": np.linspace(0, 1, 4000)})
    reports = frame.dp.open(100, neighbors="replace-one").randomize(
        "x", bounds=(0, 1), epsilon=epsilon
    )
    response = reports.dp._kind.response
    y = (reports.astype(float) - float(response.lies) / 2) / float(response.kept)
    half = 1.96 * y.std() / np.sqrt(len(y))
    estimate = local.estimate(reports)
    low, high = (
        float(end) for end in np.ravel(estimate.dp.interval(0.95).loc["x", "mean"].to_numpy()[:2])
    )
    assert estimate.loc["x", "mean"] == pytest.approx(y.mean(), abs=1e-6)
    assert (high - low) / 2 == pytest.approx(half, rel=0.05)
