"""Pictures in one call: each is a release, drawn; nothing else is read, and nothing is charged where nothing is drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402  (after its backend is chosen)
from matplotlib.dates import date2num  # noqa: E402

from dpframe import (  # noqa: E402
    BadType,
    BadValue,
    MissingBounds,
    NotOffered,
    Plan,
    PrivacyWarning,
)
from dpframe._frame.verbs.pictures import PictureKeywords  # noqa: E402
from dpframe._plans.price import Payment  # noqa: E402

BOUNDS = {"age": (0, 100), "cost": (0, 200)}


@pytest.fixture
def df():
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 100, 3000),
            "cost": rng.gamma(2, 20, 3000),
            "state": rng.choice(["CA", "NY"], 3000),
        }
    )


@pytest.fixture
def p(df):
    yield df.dp.open(1000, bounds=BOUNDS, keys={"state": ["CA", "NY"]})
    pyplot.close("all")


def test_a_histogram_is_drawn_as_its_answer_is(df, p):
    axes = p["age"].hist(bins=4, epsilon=100)
    heights = [bar.get_height() for bar in axes.patches]
    assert len(heights) == 4
    assert np.allclose(heights, np.histogram(df["age"], [0, 25, 50, 75, 100])[0], atol=3)
    assert len(p.ledger) == 1
    assert p.histogram("age", bins=4, epsilon=100).tolist() == heights  # the same release
    assert len(p.ledger) == 1
    _, given = pyplot.subplots()
    assert p.hist("age", bins=4, ax=given, epsilon=100, title="ages") is given
    assert given.get_title() == "ages"
    assert p["age"].plot.hist(bins=4, epsilon=100).patches
    assert p.plot(kind="hist", y="age", bins=4, epsilon=100).patches
    assert len(p.ledger) == 1


def test_histograms_of_several_columns_are_paid_together(p):
    panels = p.hist(bins=5, epsilon=10)
    assert [axes.get_xlabel() for axes in panels] == ["age", "cost"]
    assert len(p.ledger) == 2
    assert p.budget.spent == 20
    before = p.budget.spent
    with pytest.raises(BadType, match="a histogram needs numbers"):
        p.hist(["age", "state"], bins=3, epsilon=10)
    with pytest.raises(BadValue, match="takes 2 axes"):
        p.hist(bins=3, ax=pyplot.subplots()[1], epsilon=10)
    assert p.budget.spent == before


def test_boxes_are_five_quantiles(df, p):
    axes = p.boxplot("cost", by="state", epsilon=100)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["CA", "NY"]
    exact = df.groupby("state")["cost"].quantile([0.25, 0.5, 0.75]).unstack()
    for box, (_, row) in zip(axes.patches, exact.iterrows(), strict=True):
        ends = box.get_path().vertices[:, 1]
        assert abs(ends.min() - row[0.25]) < 2
        assert abs(ends.max() - row[0.75]) < 2
    assert len(p.ledger) == 1
    both = p[["age", "cost"]].boxplot(epsilon=100)
    assert [label.get_text() for label in both.get_xticklabels()] == ["age", "cost"]
    assert len(p.ledger) == 2
    assert (
        len(p["cost"].plot.box(epsilon=100).patches)
        == len(p["cost"].plot(kind="box", epsilon=100).patches)
        == 1
    )
    assert len(p.ledger) == 3


def test_explain_draws_nothing(p):
    assert isinstance(p.explain["age"].hist(), Plan)
    assert isinstance(p.explain.boxplot("cost", by="state"), Plan)
    assert [type(plan) for plan in p.explain.hist()] == [Plan, Plan]
    assert not pyplot.get_fignums()
    assert p.ledger.empty


def test_pictures_of_rows_are_refused_with_what_to_draw(p):
    for draw in (
        lambda: p.plot(),
        lambda: p["age"].plot(),
        lambda: p["age"].plot(kind="kde"),
        lambda: p.plot(x="age", y="cost", kind="hist"),
        lambda: p.plot.scatter("age", "cost"),
        lambda: p["age"].plot.line(),
    ):
        with pytest.raises(NotOffered, match=r"p\.groupby\('state'\)|p\[p\['state'\]"):
            draw()
    with pytest.raises(BadType, match="one column"):
        p.boxplot(by="state")
    with p.plan_ahead() as batch:
        with pytest.raises(BadValue, match="after the block"):
            batch.hist()
        batch.count(epsilon=1)
    assert not hasattr(p.plot, "scatter")
    assert len(p.ledger) == 1


@pytest.mark.parametrize(
    "words",
    [{"color": "no color"}, {"color": 3}, {"title": 3}, {"figsize": 4}, {"figsize": (0, 1)}, {"ax": "axes"}, {"alpha": "half"},
     {"alfa": 1}, {"density": 2}],
)  # fmt: skip
def test_a_word_that_no_picture_takes_is_refused_before_anything_is_paid(p, words):
    with pytest.raises((BadType, BadValue)):
        p["age"].hist(epsilon=1, **words)
    if "color" not in words:
        with pytest.raises((BadType, BadValue)):
            p.boxplot("age", epsilon=1, **words)
    assert p.ledger.empty


def test_boxes_of_noise_are_hatched_and_the_legend_says_so():
    frame = pd.DataFrame({"x": np.arange(4000) % 100, "g": ["a"] * 3990 + ["b"] * 10})
    p = frame.dp.open(100, bounds={"x": (0, 100)}, keys={"g": ["a", "b"]})
    with pytest.warns(PrivacyWarning):
        axes = p.boxplot("x", by="g", epsilon=4)
    assert [bool(box.get_hatch()) for box in axes.patches] == [False, True]
    assert axes.patches[1].get_facecolor()[3] == 0
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["only noise"]
    clear = p[p["g"] == "a"].boxplot("x", epsilon=4)
    assert not any(box.get_hatch() for box in clear.patches)
    assert clear.get_legend() is None


def test_words_of_matplotlib_are_passed_on(p):
    words = {"alpha": 0.5, "edgecolor": "black", "ylabel": "people", "grid": True, "xrot": 30}
    axes = p["age"].hist(bins=4, epsilon=10, **words)
    assert axes.patches[0].get_alpha() == 0.5
    assert axes.get_ylabel() == "people"
    assert p["age"].plot.hist(bins=4, epsilon=10, alpha=0.25).patches[0].get_alpha() == 0.25
    for word in PictureKeywords.__annotations__.keys() - Payment.__annotations__.keys():
        value = {"xlim": (0, 1), "ylim": (0, 1), "hatch": "/", "label": "a", "xlabel": "a"}.get(
            word
        )
        value = "a" if word == "ylabel" else 1 if value is None else value
        value = "red" if word in ("ec", "edgecolor", "fc", "facecolor") else value
        value = "--" if word in ("ls", "linestyle") else value
        if word != "alpha":
            pyplot.cla()
            assert p["age"].hist(bins=4, epsilon=10, ax=pyplot.gca(), **{word: value}).patches


def test_a_density_has_the_area_one_and_intervals_from_what_was_released(p):
    edges = [0, 10, 30, 100]
    counts = p["age"].histogram(edges, epsilon=50)
    spent = p.budget.spent
    axes = p["age"].hist(bins=edges, density=True, epsilon=50)
    assert p.budget.spent == spent
    assert axes.get_ylabel() == "density"
    heights = [patch.get_height() for patch in axes.patches]
    widths = np.diff(edges)
    assert np.allclose(heights, counts.to_numpy() / counts.sum() / widths)
    assert np.isclose(np.dot(heights, widths), 1)
    bars = axes.collections[0].get_segments()  # the error bars
    assert all(
        low <= height <= high for ((_, low), (_, high)), height in zip(bars, heights, strict=True)
    )


def test_histograms_of_groups_are_one_release(df, p):
    panels = p.hist("age", by="state", bins=4, epsilon=50)
    assert [axes.get_title() for axes in panels] == ["CA", "NY"]
    counts = p.groupby("state")["age"].histogram(4, epsilon=50)
    assert len(p.ledger) == 1
    for state, axes in zip(["CA", "NY"], panels, strict=True):
        heights = [patch.get_height() for patch in axes.patches]
        assert heights == counts.loc[state].tolist()
        exact = np.histogram(df.loc[df["state"] == state, "age"], [0, 25, 50, 75, 100])[0]
        assert np.allclose(heights, exact, atol=3)
    for draw in (
        lambda: p["age"].hist(by="state", bins=4, epsilon=50),
        lambda: p["age"].hist(by=p["state"], bins=4, epsilon=50),
        lambda: p.groupby("state")["age"].hist(bins=4, epsilon=50),
        lambda: p.groupby("state").hist("age", bins=4, epsilon=50, density=True, title="ages"),
    ):
        assert len(draw()) == 2
    assert len(p.ledger) == 1
    assert isinstance(p.explain.groupby("state")["age"].hist(bins=4), Plan)
    with pytest.raises(BadType, match="one column"):
        p.hist(by="state")
    with pytest.raises(BadType, match="one column"):
        p.groupby("state").hist()
    with pytest.raises(NotOffered, match="as_index"):
        p.groupby("state", as_index=False)["age"].histogram()
    pyplot.close("all")


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_times_have_bins_of_time(zone):
    when = pd.date_range("2024-01-01", periods=1000, freq="8h", tz=zone)
    frame = pd.DataFrame({"when": when, "g": ["a", "b"] * 500})
    first, last = pd.Timestamp("2024-01-01", tz=zone), pd.Timestamp("2025-01-01", tz=zone)
    p = frame.dp.open(
        1000, bounds={"when": (first, last)}, keys={"g": ["a", "b"]}, because="a test"
    )
    counts = p["when"].histogram(6, epsilon=100)
    middle = counts.index.left[1]
    assert counts.sum() == 1000
    assert counts.iloc[0] == (frame["when"] < middle).sum()
    assert middle.tz is None if zone is None else str(middle.tz) == zone
    edges = [first, first + pd.Timedelta("30D"), last]
    assert p["when"].histogram(edges, epsilon=100).tolist() == [90, 910]
    assert p["when"].histogram(edges[1:], epsilon=100).tolist() == [910]
    axes = p["when"].hist(bins=6, epsilon=100)
    assert [patch.get_height() for patch in axes.patches] == counts.tolist()
    assert axes.get_xlim()[0] < date2num(first.tz_localize(None)) + 1
    assert len(p.groupby("g")["when"].hist(bins=3, epsilon=100)) == 2
    with pytest.raises(BadType, match="time zone"):
        p["when"].histogram([pd.Timestamp("2024-01-01", tz="UTC" if zone is None else None), last])
    with pytest.raises(MissingBounds):
        frame.assign(z=1).dp.open(1, because="a test")["when"].hist()
    pyplot.close("all")
