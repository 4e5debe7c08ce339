"""``answer.dp["CA"]``, ``.dp.loc`` and ``.dp.items()``: numbers of an answer with their intervals."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

from dpframe import UnknownColumn
from tests.internals import deaf_to_noise

KEYS = {"c": ["a", "b", "z"], "b": [False, True]}
BOUNDS = {"x": (0, 100), "t": ("2024-01-01", "2024-12-31"), "w": ("0s", "1h")}


@pytest.fixture
def p():
    rows = 3000
    i = np.arange(rows)
    frame = pd.DataFrame(
        {
            "c": np.where(i % 3 == 0, "a", "b"),
            "b": i % 5 < 2,
            "x": i * 7919 % 101 / 1.0,
            "t": pd.Timestamp("2024-01-01") + pd.to_timedelta(i % 300, unit="D"),
            "w": pd.to_timedelta(i % 3000, unit="s"),
        }
    )
    return frame.dp.open(1000, because="a test", keys=KEYS, bounds=BOUNDS, queries=100)


TABLES = {
    "sizes": lambda p, **e: p.groupby("c").size(**e),
    "means": lambda p, **e: p.groupby("c")["x"].mean(**e),
    "counts in order": lambda p, **e: p["c"].value_counts(**e),
    "two keys": lambda p, **e: p.groupby(["c", "b"])["x"].sum(**e),
    "outputs": lambda p, **e: p.groupby("c").agg(n=("x", "size"), m=("x", "mean"), **e),
    "without groups": lambda p, **e: p["x"].agg(["count", "mean", "std"], **e),
    "pivot": lambda p, **e: p.pivot_table("x", "c", "b", aggfunc="mean", margins=True, **e),
    "shares": lambda p, **e: p.crosstab("c", "b", normalize="index", **e),
    "summary": lambda p, **e: p[["x"]].describe(**e),
    "keys as columns": lambda p, **e: p.groupby("c", as_index=False)["x"].mean(**e),
    "tree quantiles": lambda p, **e: p.groupby("c")["x"].quantile([0.2, 0.7], method="tree", **e),
    "computed": lambda p, **e: p.groupby("c").size(**e).dp / 7,
    "durations": lambda p, **e: p.groupby("c")["w"].mean(**e),
    "moments": lambda p, **e: p.groupby("c")["t"].mean(**e),
}


def ask(p, name, epsilon=5):
    with warnings.catch_warnings():
        deaf_to_noise()
        return TABLES[name](p, epsilon=epsilon)


def cells(answer):
    """The label of each cell, with what it gives and its row and column."""
    if isinstance(answer, pd.Series):
        return [(answer.dp.loc[label], i, 0) for i, label in enumerate(answer.index)]
    return [
        (answer.dp.loc[row, column], i, j)
        for i, row in enumerate(answer.index)
        for j, column in enumerate(answer.columns)
    ]


@pytest.mark.parametrize("name", TABLES)
def test_a_label_gives_the_number_with_the_interval_of_the_table(p, name):
    answer = ask(p, name)
    frame = answer.to_frame() if isinstance(answer, pd.Series) else answer
    ends = answer.dp.table()[["lower", "upper"]].to_numpy().reshape(-1, len(frame), 2)
    keys = frame.shape[1] - len(ends)
    for number, i, j in cells(answer):
        value = frame.iloc[i, j]
        assert number == value or (pd.isna(value) and pd.isna(number))
        if j < keys:
            assert number == value
            continue
        low, high = ends[j - keys, i]
        if pd.isna(low):
            assert number.lower is None
        else:
            assert number.interval() == (low, high)
        reliable = answer.dp.reliable
        flags = reliable.to_frame() if isinstance(reliable, pd.Series) else reliable
        assert number.reliable == flags.iloc[i, j]


@pytest.mark.parametrize("name", [name for name in TABLES if name not in ("durations", "moments")])
def test_numbers_of_a_rearranged_answer_are_those_of_their_labels(p, name):
    answer = ask(p, name)
    if name == "keys as columns":
        answer = answer.set_index("c")
    turned = answer.iloc[::-1]
    for number, i, j in cells(answer):
        column = () if isinstance(answer, pd.Series) else (answer.columns[j],)
        label = answer.index[i]
        other = turned.dp.loc[(label, *column)] if column else turned.dp.loc[label]
        assert repr(other) == repr(number)


def test_parts_of_an_answer_are_answers(p):
    table, keyed = ask(p, "outputs"), ask(p, "two keys")
    pd.testing.assert_series_equal(table.dp["m"], table["m"])
    assert table.dp["m"].dp.interval().shape == (3, 2)
    assert table.dp.loc["a"].dp.interval().shape == (2, 2)
    assert keyed.dp["a"].dp.interval().shape == (2, 2)
    assert keyed.dp.loc[["a", "z"]].dp.reliable.shape == (4,)
    assert repr(table.dp[["n"]]).count("±") == 3
    wide = p.groupby(["c", "b"]).agg({"x": ["mean", "std"]}, epsilon=5)
    assert repr(wide.dp["x"].dp.loc["a"]).count("±") == 4
    assert repr(wide.unstack().dp["x"].dp["std"]).count("±") == 6


def test_items_and_iteration_give_numbers_of_a_series_and_columns_of_a_table(p):
    sizes, table = ask(p, "sizes"), ask(p, "outputs")
    assert {label: repr(n) for label, n in sizes.dp.items()} == {
        label: repr(sizes.dp[label]) for label in sizes.index
    }
    assert [repr(n) for n in sizes.dp] == [repr(n) for _, n in sizes.dp.items()]
    assert list(table.dp) == ["n", "m"]
    assert [repr(column) for _, column in table.dp.items()] == [repr(table[name]) for name in table]
    assert "a" in sizes.dp
    assert "nowhere" not in sizes.dp


def test_a_number_of_a_group_knows_its_question_and_its_population(p):
    means = ask(p, "means")
    one = means.dp["b"]
    assert one.cost == means.dp.cost
    assert one.count == means.dp.count["b"]
    wide = means.dp.interval(of="population").loc["b"]
    assert one.interval(of="population") == tuple(wide)
    assert pickle.loads(pickle.dumps(one)).interval() == one.interval()
    assert p.budget.spent == pytest.approx(5)


def test_a_margin_can_be_computed_with(p):
    pivot, sizes = ask(p, "pivot"), ask(p, "sizes")
    total = pivot.dp.loc["All", "All"]
    assert pickle.loads(pickle.dumps(total)).interval() == total.interval()
    ratio = pivot.dp / total
    assert ratio.loc["All", "All"] == 1
    turned = ratio.iloc[::-1]
    assert (turned.dp.interval().iloc[::-1] == ratio.dp.interval()).all(axis=None)
    shares = sizes.dp / sizes.dp["b"]
    low, high = shares.dp.interval().loc["a"]
    assert low <= sizes["a"] / sizes["b"] <= high
    difference = sizes.dp["b"] - sizes.dp["a"]
    low, high = difference.interval()
    assert low <= 1000 <= high


def test_an_unknown_label_is_refused_with_those_that_there_are(p):
    sizes, table = ask(p, "sizes"), ask(p, "outputs")
    with pytest.raises(
        KeyError, match=r"^no label 'nowhere' in this answer. Labels: 'a', 'b', 'z'"
    ):
        sizes.dp["nowhere"]
    known = r"no label 'q' in this answer. Rows: 'a', 'b', 'z'; columns: 'n', 'm'\."
    with pytest.raises(UnknownColumn, match=known):
        table.dp["q"]
    with pytest.raises(UnknownColumn, match=r"no label \('a', 'q'\)"):
        table.dp.loc["a", "q"]
    hours = p.groupby(p["t"].dt.hour).size(epsilon=1)
    with pytest.raises(UnknownColumn, match=r"Labels: 0, 1, 2, 3, 4, 5, 6, 7, and others\."):
        hours.dp["noon"]


def test_noise_that_is_left_out_stays_out_of_single_numbers():
    frame = pd.DataFrame({"c": ["a"] * 900, "x": 50.0})
    words = {"keys": {"c": ["a", "z"]}, "bounds": {"x": (0, 100)}, "show": "nan"}
    p = frame.dp.open(10, because="a test", **words)
    with warnings.catch_warnings():
        deaf_to_noise()
        means = p.groupby("c")["x"].mean(epsilon=1)
    assert np.isnan(means.dp["z"])
    assert means.dp["z"].interval() == tuple(means.dp.interval().loc["z"])
    assert means.dp["a"] == means["a"]
