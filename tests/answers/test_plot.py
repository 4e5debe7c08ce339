"""Pictures of answers show the released numbers and the ends of their intervals, and nothing else."""

from __future__ import annotations

import sys
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, BadValue, NoSession, PrivateFrame, plot
from dpframe import plot as _drawing
from dpframe.datasets import BOUNDS, KEYS, visits

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(scope="module")
def p() -> PrivateFrame:
    return visits(2000).dp.open(epsilon=100, bounds=BOUNDS, keys={**KEYS, "smoker": [True, False]})


def heights(ax: Any) -> list[float]:
    return [bar.get_height() for container in bars_of(ax) for bar in container]


def bars_of(ax: Any) -> list[Any]:
    return [c for c in ax.containers if isinstance(c, matplotlib.container.BarContainer)]


def error_ends(ax: Any) -> list[tuple[float, float]]:
    """The ends of the vertical error bars, in the order they were drawn."""
    lines = [c for c in ax.collections if isinstance(c, matplotlib.collections.LineCollection)]
    return [(s[0][1], s[1][1]) for line in lines for s in line.get_segments() if len(s)]


def test_groups_are_bars_with_the_ends_of_their_intervals(p: PrivateFrame) -> None:
    answer = p.groupby("state")["cost"].mean(epsilon=1)
    ax = answer.dp.plot()
    assert heights(ax) == answer.tolist()
    np.testing.assert_allclose(error_ends(ax), answer.dp.interval().to_numpy())
    assert [t.get_text() for t in ax.get_xticklabels()] == KEYS["state"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("state", "cost")


def test_the_level_reaches_the_error_bars_and_the_axes_are_the_callers(p: PrivateFrame) -> None:
    answer, ax = p.groupby("state").size(epsilon=1), plt.subplots()[1]
    assert answer.dp.plot(ax=ax, level=0.5, color="red") is ax
    np.testing.assert_allclose(error_ends(ax), answer.dp.interval(0.5).to_numpy())
    assert bars_of(ax)[0][0].get_facecolor() == (1, 0, 0, 1)


def test_a_histogram_draws_its_bins_to_scale(p: PrivateFrame) -> None:
    answer = p.histogram("age", bins=[0, 18, 30, 65, 110], epsilon=1)
    ax = answer.dp.plot(title="Ages", rot=30, grid=True, legend=True, label="private")
    drawn = [(b.get_x(), b.get_width(), b.get_height()) for b in bars_of(ax)[0]]
    expected = [(i.left, i.right - i.left, n) for i, n in answer.items()]
    assert drawn == expected
    np.testing.assert_allclose(error_ends(ax), answer.dp.interval().to_numpy())
    assert (ax.get_title(), ax.get_xlabel()) == ("Ages", "age")


def test_quantiles_are_a_line_with_a_band_where_they_have_intervals(p: PrivateFrame) -> None:
    levels = [i / 10 for i in range(1, 10)]
    answer = p.quantile("age", levels, method="tree", epsilon=1)
    ax = answer.dp.plot()
    (line,) = ax.get_lines()
    assert line.get_xydata().tolist() == [list(pair) for pair in zip(levels, answer, strict=True)]
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    ends = answer.dp.interval()
    assert (band.min(), band.max()) == (ends["lower"].min(), ends["upper"].max())


def test_quantiles_that_were_chosen_have_a_band(p: PrivateFrame) -> None:
    ax = p.quantile("age", [0.25, 0.5, 0.75], method="choose", epsilon=1).dp.plot()
    assert len(ax.get_lines()) == 1
    assert ax.collections
    assert error_ends(p.groupby("state")["age"].median(epsilon=1).dp.plot())


def test_quantiles_by_group_are_a_line_for_each_group(p: PrivateFrame) -> None:
    answer = p.groupby("state")["cost"].quantile([0.25, 0.75], method="tree", epsilon=1)
    ax = answer.dp.plot()
    assert [line.get_label() for line in ax.get_lines()] == KEYS["state"]
    assert ax.get_lines()[3].get_ydata().tolist() == answer[KEYS["state"][3]].tolist()


def test_the_last_of_two_keys_is_the_colour_and_keeps_its_order(p: PrivateFrame) -> None:
    answer = p.groupby(["state", "smoker"]).size(epsilon=1)
    ax = answer.dp.plot()
    assert [c.get_label() for c in bars_of(ax)] == ["True", "False"]
    assert heights(ax) == [answer[s, smoker] for smoker in (True, False) for s in KEYS["state"]]
    ends = answer.dp.interval().xs(True, level="smoker")
    np.testing.assert_allclose(error_ends(ax)[: len(ends)], ends.to_numpy())


@pytest.mark.parametrize("flat", [False, True])
def test_a_table_has_a_colour_for_each_column(p: PrivateFrame, flat: bool) -> None:
    answer = p.groupby("state", as_index=not flat).agg(
        n=("age", "size"), days=("days", "sum"), epsilon=1
    )
    ax = answer.dp.plot(subplots=False)
    assert heights(ax) == [*answer["n"], *answer["days"]]
    assert [t.get_text() for t in ax.get_xticklabels()] == KEYS["state"]
    np.testing.assert_allclose(error_ends(ax)[:8], answer.dp.interval()["n"].to_numpy())


def test_each_picture_has_axes_of_its_own_unless_they_are_given(p: PrivateFrame) -> None:
    answer = p.groupby("state").size(epsilon=1)
    first, second = answer.dp.plot(figsize=(3, 2)), answer.dp.plot("line")
    assert first is not second
    assert first.figure.get_size_inches().tolist() == [3, 2]


def test_bars_may_lie(p: PrivateFrame) -> None:
    ax = p.value_counts("diagnosis", epsilon=1).dp.plot(kind="barh")
    assert next(t.get_text() for t in ax.get_yticklabels()) in KEYS["diagnosis"]
    assert ax.get_xlabel() == "count"


@pytest.mark.parametrize("index", ["dates", "periods"])
def test_times_are_a_line_whose_band_lies_on_it(index: str) -> None:
    dates = pd.date_range("2025-01-31", periods=6, freq="ME", name="month")
    series = pd.Series(
        range(6), index=dates if index == "dates" else dates.to_period("M"), name="n"
    )
    ends = pd.DataFrame({"lower": series - 1.0, "upper": series + 2.0})
    options: Any = {
        "kind": None,
        "ax": None,
        "quantiles": False,
        "keys": 0,
        "title": "n",
        "options": {},
    }
    ax = _drawing.draw_answer(
        series,
        _drawing.Marks.stack([(ends["lower"].to_numpy(), ends["upper"].to_numpy())]),
        **options,
    )
    vertices = ax.collections[0].get_paths()[0].vertices
    (line,) = ax.get_lines()
    assert {x for x, _ in vertices} == {float(x) for x in line.get_xdata(orig=False)}
    assert (vertices[:, 1].min(), vertices[:, 1].max()) == (-1, 7)


@pytest.mark.parametrize("first", ["time", "state"])
def test_times_stand_on_the_axis_wherever_they_are_among_the_keys(first: str) -> None:
    year = ("2025-01-01", "2025-12-31")
    q = visits(2000).dp.open(epsilon=5, bounds={**BOUNDS, "admitted": year}, keys=KEYS)
    keys = [pd.Grouper(key="admitted", freq="QE"), "state"]
    answer = q.groupby(keys if first == "time" else keys[::-1]).size(epsilon=1)
    ax = answer.dp.plot()
    assert [line.get_label() for line in ax.get_lines()] == KEYS["state"]
    assert (
        ax.get_lines()[2].get_ydata().tolist()
        == answer.xs(KEYS["state"][2], level="state").tolist()
    )


def test_an_end_that_is_not_there_has_no_bar() -> None:
    series = pd.Series([1.0, 2.0], index=["a", "b"], name="x")
    ends = pd.DataFrame({"lower": [0.5, -np.inf], "upper": [1.5, np.inf]}, index=series.index)
    options: Any = {
        "kind": None,
        "ax": None,
        "quantiles": False,
        "keys": 0,
        "title": "x",
        "options": {},
    }
    ax = _drawing.draw_answer(
        series,
        _drawing.Marks.stack([(ends["lower"].to_numpy(), ends["upper"].to_numpy())]),
        **options,
    )
    assert error_ends(ax) == [(0.5, 1.5)]


def test_what_has_no_picture_says_so(p: PrivateFrame) -> None:
    with pytest.raises(BadType, match="a single number cannot be drawn"):
        p.count(epsilon=1).dp.plot()
    answer = p.groupby("state").size(epsilon=1)
    with pytest.raises(BadValue, match="not finite bins"):
        answer.dp.plot(kind="hist")
    with pytest.raises(BadValue, match="unknown kind 'pie'"):
        answer.dp.plot(kind="pie")
    with pytest.raises(BadType, match="ax="):
        answer.dp.plot(ax=3)
    with pytest.raises(BadValue, match="have changed"):
        (answer**2).dp.plot()
    with pytest.raises(NoSession):
        pd.DataFrame(answer.to_dict(), index=[0]).dp.plot()


def test_a_number_is_its_own_dp(p: PrivateFrame) -> None:
    answer = p.count(epsilon=1)
    assert answer.dp.interval() == answer.interval()


def test_without_matplotlib_it_says_what_to_install(
    p: PrivateFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = p.groupby("state").size(epsilon=1)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    pictures = (plot.region, plot.densities, lambda: plot.envelope({0: 1}), lambda: plot.laplace(1))
    for draw in (answer.dp.plot, p.budget.plot, *pictures):
        with pytest.raises(BadValue, match=r"pip install 'dpframe\[plot\]'"):
            draw()


def test_drawing_costs_nothing(p: PrivateFrame) -> None:
    answer = p.groupby("state").size(epsilon=1)
    before = p.budget.fraction
    answer.dp.plot()
    p.budget.plot("pure")
    assert p.budget.fraction == before


# What epsilon allows ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0, 0.3, 1, 5])
@pytest.mark.parametrize("delta", [0, 0.05])
def test_the_region_is_what_the_definition_says(epsilon: float, delta: float) -> None:
    grid = np.linspace(0, 1, 41)
    low, high = plot.allowed(grid, epsilon, delta)
    grow = float(np.exp(epsilon))
    for p, bottom, top in zip(grid, low, high, strict=True):
        for q in grid:
            holds = all(
                a <= grow * b + delta + 1e-12
                for a, b in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p))
            )
            assert holds == (bottom - 1e-12 <= q <= top + 1e-12), (p, q)


def test_regions_lie_in_each_other_from_the_diagonal_to_the_square() -> None:
    p = np.linspace(0, 1, 101)
    areas = [float(np.mean(np.subtract(*plot.allowed(p, e)[::-1]))) for e in (0, 0.1, 1, 5, 2000)]
    assert areas == sorted(areas)
    assert areas[0] == pytest.approx(0, abs=1e-12)
    assert areas[-1] > 0.98


def test_laplace_curves_keep_their_ratio_within_the_epsilon() -> None:
    curves = [line.get_ydata() for line in plot.laplace(0.7, (10, 12)).get_lines()]
    ratio = np.log(curves[0] / curves[1])
    assert np.abs(ratio).max() == pytest.approx(0.7)


def test_densities_of_any_scale_are_whole_and_share_one_legend() -> None:
    axes = plot.densities([(0, 1), (0, 0.5), (-5, 4)])
    for line, (m, b) in zip(axes.get_lines(), [(0, 1), (0, 0.5), (-5, 4)], strict=True):
        x, y = (np.asarray(side) for side in line.get_data())
        assert np.allclose(y, np.exp(-np.abs(x - m) / b) / (2 * b))
        assert y.max() == pytest.approx(1 / (2 * b))
        assert x[y.argmax()] == m
        assert axes.get_ylim()[0] == 0 < y.max() < axes.get_ylim()[1]
    again = plot.densities(
        [(0, 0.1)], ax=axes
    )  # drawn over: the higher curve is not cut, nor the others
    assert again.get_ylim()[1] > 5
    labels = [text.get_text() for text in again.get_legend().get_texts()]
    assert len(set(labels)) == len(labels) == 4


def test_an_envelope_has_every_neighbour_of_a_law_and_widens_with_epsilon() -> None:
    law = {i: float(x) for i, x in enumerate(np.array([1, 4, 6, 4, 1]) / 16)}
    axes = plot.envelope(law, [0.2, 1])
    bands = []
    for band in axes.collections:  # the widest first
        corners = band.get_paths()[0].vertices
        ends = [[y for x, y in corners if x == i] for i in law]
        bands.append(([min(e) for e in ends], [max(e) for e in ends]))
    p = np.array(list(law.values()))
    for (low, high), epsilon in zip(bands, [1, 0.2], strict=True):
        assert np.allclose(low, np.maximum(p * np.exp(-epsilon), 1 - (1 - p) * np.exp(epsilon)))
        assert np.allclose(high, np.minimum(p * np.exp(epsilon), 1 - (1 - p) * np.exp(-epsilon)))
        for i in range(5):  # a neighbour, whose law moves as much as it may at one outcome
            q = p.copy()
            q[i] = high[i]
            rest = np.arange(5) != i
            q[rest] *= (1 - high[i]) / q[rest].sum()
            assert np.abs(np.log(p / q)).max() == pytest.approx(epsilon)
            assert (q <= np.array(high) + 1e-12).all()
            assert (q >= np.array(low) - 1e-12).all()
    assert (np.array(bands[0][0]) < bands[1][0]).all()
    assert (np.array(bands[0][1]) > bands[1][1]).all()
    assert np.allclose(axes.get_lines()[0].get_ydata(), p)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: plot.densities([]),
        lambda: plot.densities([(0, 0)]),
        lambda: plot.densities([(0, -1)]),
        lambda: plot.envelope({0: 0.5}),
        lambda: plot.envelope({0: 1.5, 1: -0.5}),
        lambda: plot.envelope({0: 1.0}, []),
        lambda: plot.envelope({0: 1.0}, -1),
        lambda: plot.envelope(pd.Series([0.5, 0.5], index=[1, 1])),
        lambda: plot.region([]),
        lambda: plot.region(-1),
        lambda: plot.region(1, delta=2),
        lambda: plot.laplace(0),
        lambda: plot.laplace(1, (3, 3)),
        lambda: plot.laplace(1, (0,)),  # type: ignore[arg-type]
    ],
)
def test_pictures_of_nothing_are_refused(wrong: Any) -> None:
    with pytest.raises(BadValue):
        wrong()
