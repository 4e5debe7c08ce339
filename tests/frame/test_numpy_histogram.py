"""np.histogram of a tracked column gives what numpy gives: an array of counts and an array of edges."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, MissingBounds, NotOffered


@pytest.fixture
def df():
    return pd.DataFrame({"age": [31, 47, 66, 80, 12, 55, 70, 41], "state": list("abababab")})


@pytest.fixture
def p(df):
    return df.dp.open(1000, bounds={"age": (0, 110)}, because="a test")


def test_a_number_of_bins_divides_the_bounds(df, p):
    counts, edges = np.histogram(p["age"], bins=2)
    exact, ends = np.histogram(df["age"], bins=2, range=(0, 110))
    assert type(counts) is type(edges) is np.ndarray
    assert counts.tolist() == exact.tolist()
    assert edges.tolist() == ends.tolist()


@pytest.mark.parametrize(
    "bins", [[0, 40, 80], np.array([0.0, 12.5, 50.0, 110.0]), range(0, 111, 10)], ids=str
)
def test_edges_are_those_that_are_given(df, p, bins):
    counts, edges = np.histogram(p["age"], bins)
    exact, ends = np.histogram(df["age"], list(bins))
    assert counts.tolist() == exact.tolist()
    assert edges.tolist() == ends.tolist()
    assert counts[1] == exact[1]  # by place, not by a label that lies in a bin


@pytest.mark.parametrize(
    "words", [{"range": (0, 50)}, {"range": (0, 50), "density": False}, {"density": None}]
)
def test_words_of_numpy_mean_what_they_mean_there(df, p, words):
    counts, edges = np.histogram(p["age"], 5, **words)
    exact, ends = np.histogram(df["age"], 5, **{"range": (0, 110), **words})
    assert counts.tolist() == exact.tolist()
    np.testing.assert_allclose(edges, ends)


def test_it_is_the_release_of_the_verb(p):
    counts, _ = np.histogram(p["age"], bins=4)
    left = p.budget
    answer = p.histogram("age", bins=4)
    assert p.budget == left
    assert answer.tolist() == counts.tolist()


@pytest.mark.parametrize("words", [{"density": True}, {"weights": [1] * 8}])
def test_what_is_not_a_count_is_refused_before_the_debit(p, words):
    left = p.budget
    with pytest.raises(NotOffered, match=r"np\.histogram"):
        np.histogram(p["age"], 2, **words)
    with pytest.raises(BadType):
        np.histogram(p["age"], 2, density=1)
    assert p.budget == left


def test_bins_without_bounds_are_refused(df):
    p = df.assign(age=df["age"] + 1).dp.open(1)
    with pytest.raises(MissingBounds):
        np.histogram(p["age"], 3)


def test_a_batch_gives_the_counts_after_its_block(df, p):
    with p.plan_ahead() as batch:
        counts, edges = np.histogram(batch["age"], bins=2)
        batch.count()
    assert counts.answer.tolist() == np.histogram(df["age"], bins=edges)[0].tolist()


LINES = {
    "histogram2d": (
        lambda p: np.histogram2d(p["age"], p["days"]),
        "p.groupby([p['age'].cut([0.0, 55.0, 110.0]), p['days'].cut([0.0, 30.0, 60.0])])"
        ".size().unstack()",
    ),
    "corrcoef": (lambda p: np.corrcoef(p["age"], p["days"]), "p[['age', 'days']].corr()"),
    "cov": (lambda p: np.cov(p["age"], p["days"]), "p[['age', 'days']].cov()"),
    "corrwith": (lambda p: p.corrwith(p["age"]), "p[['age', 'days']].corr()['age']"),
}


@pytest.mark.parametrize("name", LINES)
def test_functions_of_two_columns_are_refused_with_a_line_that_runs(df, name):
    p = df.assign(days=df["age"] % 60).dp.open(
        1000, bounds={"age": (0, 110), "days": (0, 60)}, because="a test"
    )
    ask, line = LINES[name]
    left = p.budget
    with pytest.raises(NotOffered) as refused:
        ask(p)
    assert str(refused.value).endswith(f" {line}.")
    assert p.budget == left
    assert eval(line, {"p": p}).notna().any(axis=None)


def test_a_density_is_refused_with_the_name_of_the_column(p):
    with pytest.raises(NotOffered, match=r"np\.histogram\(p\['age'\], bins\)"):
        np.histogram(p["age"], 2, density=True)
