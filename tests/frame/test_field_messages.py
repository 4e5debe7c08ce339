"""Words at pandas' defaults, and messages that name the line to write."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, NotOffered, UnknownColumn


@pytest.fixture
def p():
    df = pd.DataFrame({"who": range(40), "x": np.arange(40.0) % 7, "state": list("ab") * 20})
    return df.dp.open(1000, bounds={"x": (0, 7)}, keys={"state": ["a", "b"]}, because="a test")


def test_words_at_the_defaults_of_pandas_change_nothing(p):
    left = p["x"].quantile(0.5, epsilon=100)
    assert p["x"].quantile(0.5, interpolation="linear", epsilon=100) == left
    counts = p.histogram("x", bins=3, epsilon=100)
    assert p.histogram("x", bins=3, density=False, epsilon=100).equals(counts)
    assert p["x"].histogram(bins=3, density=None, epsilon=100).equals(counts)
    assert p["x"].hist(bins=3, density=False, epsilon=100) is not None


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (
            lambda p: p["x"].quantile(0.5, interpolation="lower"),
            r"interpolation= is refused .*resolution=",
        ),
        (
            lambda p: p["x"].histogram(bins=3, density=True),
            r"density= is refused .*counts / counts\.sum\(\)",
        ),
        (lambda p: p.choose([1, 2], lambda c: 0), r"takes \(c\).*lambda d, c"),
    ],
)
def test_other_words_are_refused_before_the_debit_with_the_line_to_write(p, ask, words):
    before = p.budget
    with pytest.raises(BadType, match=words):
        ask(p)
    assert p.budget == before


def test_groups_list_all_that_they_have(p):
    with pytest.raises(NotOffered, match=r"describe, value_counts, argmax, top, cov, corr and agg"):
        p.groupby("state").no_such_verb()


def test_an_unknown_column_lists_each_column_once(p):
    with pytest.raises(UnknownColumn) as caught:
        p.groupby("state").mean("x", bounds={"q": (0, 1)})
    assert str(caught.value).count("'who'") == 1
