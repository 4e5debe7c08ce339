"""Pictures in one call: each is a release, drawn; nothing else is read, and nothing is charged where nothing is drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402  (after its backend is chosen)

from dpframe import BadType, BadValue, NotOffered, Plan, PrivacyWarning  # noqa: E402

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
        lambda: p["age"].hist(by="state"),
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
    [{"color": "no color"}, {"color": 3}, {"title": 3}, {"figsize": 4}, {"figsize": (0, 1)}, {"ax": "axes"}, {"alpha": 0.5}],
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
