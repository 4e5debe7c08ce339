"""Estimates from reports: pictures, plans, intervals around estimates beyond the truth, and what is refused."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, BadValue, local

matplotlib.use("Agg")

KEYS = ["high", "low", "mid"]


@pytest.fixture
def reports() -> pd.Series:
    df = pd.DataFrame({"pay": ["low", "mid"] * 150}, index=[f"p{i}" for i in range(300)])
    return df.dp.open(2, neighbors="replace-one").randomize("pay", keys=KEYS, epsilon=1)


def test_reports_grouped_by_themselves_are_refused(reports: pd.Series) -> None:
    for same in (reports, reports.copy()):
        with pytest.raises(BadValue, match="very reports"):
            local.estimate(reports, by=same)


def test_two_columns_that_were_randomized_apart_still_make_pairs() -> None:
    df = pd.DataFrame({"pay": ["low", "mid"] * 50})
    p = df.dp.open(4, neighbors="replace-one")
    first = p.randomize("pay", keys=KEYS, epsilon=1)
    second = p.randomize("pay", keys=KEYS, epsilon=1, fresh=True)
    assert len(local.estimate(first, by=second)) == 9


def test_groups_with_the_labels_of_the_table_say_what_to_do(reports: pd.Series) -> None:
    ward = pd.Series(["north", "south"] * 150, index=[f"p{i}" for i in range(300)], name="ward")
    with pytest.raises(BadValue, match=r"by.reset_index\(drop=True\)"):
        local.estimate(reports, by=ward)
    assert len(local.estimate(reports, by=ward.reset_index(drop=True))) == 6


@pytest.mark.parametrize("said", ["no", "yes"])
@pytest.mark.parametrize("level", [0.1, 0.95])
def test_an_estimate_never_leaves_its_own_interval(said: str, level: float) -> None:
    """All say the same at epsilon 1, so the estimates are beyond 0 and 1."""
    reports = local.reports([said] * 40, keys=["no", "yes"], epsilon=1)
    for found in (
        local.estimate(reports),
        local.estimate(reports, by=pd.Series([1, 2] * 20, name="g")),
    ):
        assert found["frequency"].min() < 0
        assert found["frequency"].max() > 1
        ends = found.dp.interval(level)
        for name in found:
            assert (found[name] - ends[name, "lower"] >= 0).all()
            assert (ends[name, "upper"] - found[name] >= 0).all()
        # It reaches back to where the truth can be.
        shares = ends["frequency"]
        assert (shares["lower"] <= 1).all()
        assert (shares["upper"] >= 0).all()


def test_means_and_pairs_stay_inside_their_intervals_too() -> None:
    top = local.reports(
        [local.answer(100, epsilon=1, bounds=(0, 100)) for _ in range(30)],
        epsilon=1,
        bounds=(0, 100),
    )
    one = local.reports(["no"] * 150, keys=["no", "yes"], epsilon=1)
    two = local.reports(["a"] * 150, keys=["a", "b"], epsilon=1)
    for found in (local.estimate(top), local.estimate(one, by=two)):
        ends = found.dp.interval(0.5)
        for name in found:
            assert (found[name] - ends[name, "lower"] >= 0).all()
            assert (ends[name, "upper"] - found[name] >= 0).all()


def test_an_estimate_draws_itself_and_has_the_plan_of_its_reports(reports: pd.Series) -> None:
    found = local.estimate(reports)
    ax = found.dp.plot()
    assert [bar.get_height() for bar in ax.containers[-1]] == found["frequency"].tolist()
    assert ax.get_ylabel() == "frequency"
    lines = [c for c in ax.collections if isinstance(c, matplotlib.collections.LineCollection)]
    drawn = [(s[0][1], s[1][1]) for line in lines for s in line.get_segments() if len(s)]
    np.testing.assert_allclose(drawn, found.dp.interval()["frequency"].to_numpy())
    assert found.dp.plot(y="count", kind="barh").get_xlabel() == "count"
    with pytest.raises(BadValue, match="y"):
        found.dp.plot(y="mean")
    assert found.dp.plan == reports.dp.plan
    ward = pd.Series(["north", "south"] * 150, name="ward")
    by = local.estimate(reports, by=ward)
    assert len(by.dp.plot().containers) >= 3
    assert by.dp.plan == reports.dp.plan
    alone = local.estimate(local.reports(["no", "yes"], keys=["no", "yes"], epsilon=1))
    with pytest.raises(BadType, match="one by one"):
        _ = alone.dp.plan
