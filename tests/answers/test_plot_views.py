"""Pictures that can be read: panels, views that end where the answers do, bars in order, and a meter of its own."""

from __future__ import annotations

import math
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, BadValue, NoSession, PrivateFrame
from dpframe import plot as _drawing
from dpframe.datasets import BOUNDS, KEYS, visits

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.container import ErrorbarContainer

OPTIONS: dict[str, Any] = {"kind": None, "ax": None, "quantiles": False, "keys": 0, "title": "x"}


@pytest.fixture(scope="module")
def p() -> PrivateFrame:
    return visits(2000).dp.open(epsilon=100, bounds=BOUNDS, keys={**KEYS, "smoker": [True, False]})


# The meter ------------------------------------------------------------------------------------------------------------


def test_the_meter_has_a_figure_of_its_own_unless_axes_are_given(p: PrivateFrame) -> None:
    before = plt.subplots()[1]
    before.plot([1, 2, 3])
    drawn = p.budget.plot()
    assert drawn is not before
    assert drawn.figure is not before.figure
    assert len(before.get_lines()) == 1
    given = plt.subplots()[1]
    assert p.budget.plot(ax=given) is given
    with pytest.raises(BadType, match="ax="):
        p.budget.plot(ax=3)


def test_a_bar_that_has_no_bound_is_cut_and_marked() -> None:
    costs = pd.Series({"pure": 0.5, "zcdp": math.inf, "advanced": 6e8})
    ax = _drawing.rules(costs, "pure", 1.0, None)
    assert [bar.get_width() for bar in ax.containers[0]] == [0.5, 3.0, 3.0]
    assert ax.get_xlim()[1] < 4
    assert [(t.get_text().split()[0], t.get_position()[1]) for t in ax.texts] == [
        ("no", 1),
        ("6e+08", 2),
    ]


def test_the_meter_is_no_overdraft(p: PrivateFrame) -> None:
    q = visits(50).dp.open(epsilon=4, delta=1e-6, accountant="pure")
    q.count(epsilon=1)
    ax = q.budget.plot()
    used, left = (bars[0].get_width() for bars in ax.containers)
    assert (used, left) == (25, 75)
    assert ax.get_xlim() == (0, 100)
    assert [t.get_text() for t in ax.texts] == ["25 % used", "75 % left"]
    with pytest.raises(BadValue, match="kind"):
        q.budget.plot(kind="time")


def test_what_was_used_is_drawn_over_time() -> None:
    q = visits(50).dp.open(epsilon=4, accountant="pure")
    assert q.accountant.plot().get_ylim() == (0, 105)  # nothing was asked yet
    for _ in range(3):
        q.count(epsilon=1, fresh=True)
    ax = q.accountant.plot()
    assert list(ax.get_lines()[0].get_ydata()) == [25, 50, 75]
    given = plt.subplots()[1]
    assert q.accountant.plot(ax=given) is given


@pytest.mark.parametrize("accountant", [None, "zcdp", "pure", "advanced"])
def test_every_accountant_has_a_bar_without_a_delta_too(accountant: str | None) -> None:
    q = visits(50).dp.open(epsilon=1)
    q.budget.plot(accountant, kind="rules")  # nothing was asked yet
    q.count(epsilon=0.5)
    ax = q.budget.plot(accountant, kind="rules")
    assert len(ax.containers[0]) == len(q.budget.report(accountant))
    assert np.isfinite(ax.get_xlim()).all()


# Panels -----------------------------------------------------------------------------------------------------------------


def test_counts_beside_means_have_a_panel_each(p: PrivateFrame) -> None:
    answer = p.groupby("state").agg(n=("age", "size"), age=("age", "mean"), epsilon=1)
    axes = answer.dp.plot()
    assert [a.get_ylabel() for a in axes] == ["n", "age"]
    for ax, name in zip(axes, answer, strict=True):
        assert [bar.get_height() for bar in ax.containers[-1]] == answer[name].tolist()
    lying = answer.dp.plot("barh")
    assert [a.get_xlabel() for a in lying] == ["n", "age"]
    assert all(a.yaxis_inverted() for a in lying)
    assert len(answer.dp.plot(subplots=False).containers) >= 2
    given = plt.subplots()[1]
    assert answer.dp.plot(ax=given) is given
    pair = plt.subplots(2)[1]
    assert list(answer.dp.plot(subplots=True, ax=pair)) == list(pair)
    with pytest.raises(BadValue, match="2 axes"):
        answer.dp.plot(subplots=True, ax=given)


def test_columns_of_one_kind_share_axes_unless_told(p: PrivateFrame) -> None:
    answer = p.groupby("state")[["age", "days"]].mean(epsilon=1)
    assert hasattr(answer.dp.plot(), "get_ylabel")
    assert len(answer.dp.plot(subplots=True)) == 2
    with pytest.raises(BadType, match="subplots"):
        answer.dp.plot(subplots="yes")


def test_y_chooses_columns(p: PrivateFrame) -> None:
    answer = p.groupby("state").agg(n=("age", "size"), age=("age", "mean"), epsilon=1)
    ax = answer.dp.plot(y="age")
    assert [bar.get_height() for bar in ax.containers[-1]] == answer["age"].tolist()
    assert ax.get_ylabel() == "age"
    with pytest.raises(BadValue, match="one of the columns"):
        answer.dp.plot(y="other")
    with pytest.raises(BadType, match="columns of a table"):
        p.groupby("state").size(epsilon=1).dp.plot(y="size")
    with pytest.raises(BadType, match="x="):
        answer.dp.plot(x="age")


@pytest.mark.parametrize("kind", ["bar", "line", "hist"])
def test_a_scale_of_logarithms_passes(p: PrivateFrame, kind: str) -> None:
    answer = p.histogram("age", bins=[0, 30, 60, 110], epsilon=1)
    assert answer.dp.plot(kind, logy=True).get_yscale() == "log"


# Views, order and words --------------------------------------------------------------------------------------------------


def test_at_once_widens_the_bars(p: PrivateFrame) -> None:
    answer = p.groupby("state").size(epsilon=0.1)
    ax = answer.dp.plot(at_once=True)
    lines = [c for c in ax.collections if isinstance(c, matplotlib.collections.LineCollection)]
    ends = [(s[0][1], s[1][1]) for line in lines for s in line.get_segments() if len(s)]
    np.testing.assert_allclose(ends, answer.dp.interval(at_once=True).to_numpy())


def test_a_wide_band_does_not_set_the_scale() -> None:
    values = pd.Series([10.0, 12, 14, 16, 18], name="x")
    ends = pd.DataFrame({"lower": values - 1, "upper": values + 1})
    ends.loc[0] = [-1e6, 11]
    ends.loc[4] = [17, 1e6]
    for kind in ("line", "bar", "barh"):
        ax = _drawing.draw_answer(
            values,
            _drawing.Marks.stack([(ends["lower"].to_numpy(), ends["upper"].to_numpy())]),
            **{**OPTIONS, "kind": kind},
            options={},
        )
        low, high = ax.get_xlim() if kind == "barh" else ax.get_ylim()
        assert -100 < low < 10
        assert 18 < high < 100
    narrow = _drawing.draw_answer(
        values,
        _drawing.Marks.stack([(ends["lower"].to_numpy(), ends["upper"].to_numpy())]),
        **OPTIONS,
        options={"ylim": (0, 5)},
    )
    assert narrow.get_ylim() == (0, 5)


def test_bands_that_are_all_wide_stay_in_view() -> None:
    values = pd.Series([10.0, 10.1], name="x")
    ends = pd.DataFrame({"lower": values - 50, "upper": values + 50})
    low, high = _drawing.draw_answer(
        values,
        _drawing.Marks.stack([(ends["lower"].to_numpy(), ends["upper"].to_numpy())]),
        **{**OPTIONS, "kind": "line"},
        options={},
    ).get_ylim()
    assert low <= -40
    assert high >= 60


def test_lying_bars_begin_at_the_top(p: PrivateFrame) -> None:
    answer = p.value_counts("diagnosis", epsilon=1)
    ax = answer.dp.plot("barh")
    assert ax.yaxis_inverted()
    assert ax.get_yticklabels()[0].get_text() == answer.index[0] == answer.idxmax()


def test_a_size_without_a_name_counts_rows(p: PrivateFrame) -> None:
    assert p.groupby("state").size(epsilon=1).dp.plot().get_ylabel() == "rows"


def test_bins_of_different_widths_say_so(p: PrivateFrame) -> None:
    unequal = p.histogram("age", bins=[0, 18, 110], epsilon=1).dp.plot()
    assert "widths differ" in unequal.get_ylabel()
    equal = p.histogram("age", bins=[0, 55, 110], epsilon=1).dp.plot()
    assert "widths" not in equal.get_ylabel()


def test_long_labels_stay_inside_the_figure() -> None:
    values = pd.Series([1.0, 2.0], index=["a rather long label of a group " * 2, "b"], name="x")
    ax = _drawing.draw_answer(values, _drawing.Marks(), **{**OPTIONS, "kind": "barh"}, options={})
    ax.figure.canvas.draw()
    assert min(t.get_window_extent().x0 for t in ax.get_yticklabels()) >= 0


def test_an_answer_that_was_unstacked_is_drawn_with_its_intervals(p: PrivateFrame) -> None:
    answer = p.groupby(["state", "smoker"]).size(epsilon=1)
    (axes,) = set(np.ravel(answer.unstack().dp.plot(subplots=False)))
    errors = [bars for bars in axes.containers if isinstance(bars, ErrorbarContainer)]
    assert sum(len(bars.lines[2][0].get_segments()) for bars in errors) == len(answer)
    with pytest.raises(NoSession, match="it was changed: take answer"):
        pd.DataFrame(answer).dp.plot()
