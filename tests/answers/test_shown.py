"""Answers with noisy numbers, shown in every way, over every kind of index."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

DAYS = 730


@pytest.fixture
def table():
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "t": pd.date_range("2024-01-01", periods=DAYS, freq="D"),
            "x": rng.uniform(0, 100, DAYS),
            "c": pd.Categorical(rng.choice(list("abc"), DAYS)),
            "n": rng.integers(0, 2, DAYS),
        }
    )


PRICE = {"epsilon": 0.01}
KEYS = {"c": list("abc"), "n": [0, 1]}
MEANS = {"x": ["mean", "sum"]}
QUESTIONS = {
    "datetime": lambda p: p.resample("ME", on="t").agg({"x": "mean"}, **PRICE),
    "datetime of two": lambda p: p.resample("QE", on="t").agg(
        m=("x", "mean"), n=("x", "count"), **PRICE
    ),
    "datetime column": lambda p: p.resample("ME", on="t")["x"].mean(**PRICE),
    "period": lambda p: p.groupby(p["t"].dt.to_period("M")).agg(MEANS, **PRICE),
    "period column": lambda p: p.groupby(p["t"].dt.to_period("M"))["x"].mean(**PRICE),
    "pivot of times": lambda p: p.pivot_table(
        "x",
        index=pd.Grouper(key="t", freq="QE"),
        columns="c",
        aggfunc="mean",
        keys={"c": KEYS["c"]},
        **PRICE,
    ),
    "multi": lambda p: p.groupby(["c", "n"], keys=KEYS).agg(MEANS, **PRICE),
    "multi column": lambda p: p.groupby(["c", "n"], keys=KEYS)["x"].mean(**PRICE),
    "interval": lambda p: p.groupby(pd.cut(p["x"], [0, 10, 50, 100])).agg({"x": ["mean"]}, **PRICE),
    "categorical": lambda p: p.groupby("c", keys=KEYS["c"]).agg(MEANS, **PRICE),
    "categorical column": lambda p: p.groupby("c", keys=KEYS["c"])["x"].mean(**PRICE),
}
WAYS = {
    "repr": repr,
    "html": lambda a: a._repr_html_() if isinstance(a, pd.DataFrame) else repr(a),
    "head": lambda a: repr(a.head(2)),
    "to_string": lambda a: a.to_string(),
    "T": lambda a: repr(a.T),
    "T html": lambda a: (
        a.to_frame("v").T._repr_html_() if isinstance(a, pd.Series) else a.T._repr_html_()
    ),
    "unstack": lambda a: (
        repr(a.unstack()) if a.index.nlevels > 1 or isinstance(a, pd.DataFrame) else repr(a)
    ),
    "backwards": lambda a: repr(a.iloc[::-1]),
    "frame": lambda a: repr(a.to_frame("v")) if isinstance(a, pd.Series) else repr(a),
    "rounded": lambda a: repr(a.round(1)),
    "table": lambda a: a.dp.table().to_markdown() + a.dp.table().to_html(),
}


@pytest.fixture(params=QUESTIONS)
def answer(table, request):
    p = table.dp.open(
        1, because="a test", bounds={"x": (0, 100), "t": ("2024-01-01", "2025-12-31")}
    )
    return QUESTIONS[request.param](p)


@pytest.mark.parametrize("rows", [60, 4, 1, None])
@pytest.mark.parametrize("way", WAYS)
def test_an_answer_is_shown_over_every_index(answer, way, rows):
    with pd.option_context("display.max_rows", rows):
        assert WAYS[way](answer)


def test_every_noisy_number_has_its_mark(answer):
    reliable = answer.dp.reliable
    noisy = int((~reliable).to_numpy().sum())
    assert noisy  # at this price there are some
    with pd.option_context("display.max_rows", None, "display.width", 300):
        body, note = repr(answer).rsplit("\n? noise", 1)
        assert note.startswith(f", {noisy} of {answer.size} numbers")
        assert body.count(" ?") == noisy
    if isinstance(answer, pd.DataFrame):
        assert answer._repr_html_().split("</table>")[0].count("?") == noisy
    lines = [line for line in body.split("\n") if " ?" in line]
    first = reliable if isinstance(reliable, pd.Series) else reliable.all(axis=1)
    assert len(lines) == int((~first).sum())
