"""Lists that are too long to be made, or that never end, are refused from their length alone."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, BadValue, local, utilities

HUGE = range(10**10)
BEYOND = range(10**30)  # of which Python cannot even tell the length


@pytest.fixture
def df():
    return pd.DataFrame(
        {"n": [1, 2, 3], "x": [0.5, 1.5, None], "t": pd.to_datetime(["2024-01-05"] * 3)}
    )


@pytest.fixture
def p(df):
    return df.dp.open(1000, bounds={"n": (0, 9)}, neighbors="replace-one", delta=1e-6)


ASKS = {
    "groupby": lambda p, given: p.groupby("n", keys=given).size(),
    "groupby two columns": lambda p, given: p.groupby(["n", "x"], keys=given).size(),
    "groupby of a dict": lambda p, given: p.groupby(
        ["n", "x"], keys={"n": given, "x": [0.5]}
    ).size(),
    "value_counts": lambda p, given: p["n"].value_counts(keys=given),
    "argmax": lambda p, given: p.argmax("n", keys=given),
    "top": lambda p, given: p.top("n", 2, keys=given),
    "crosstab": lambda p, given: p.crosstab("n", "x", keys={"n": given, "x": [0.5]}),
    "pivot_table": lambda p, given: p.pivot_table("x", "n", keys=given, bounds=(0, 5)),
    "randomize": lambda p, given: p.randomize("n", keys=given),
    "histogram": lambda p, given: p.histogram("n", bins=given),
    "cut": lambda p, given: p["n"].cut(given),
    "labels of cut": lambda p, given: p["n"].cut([0, 1], labels=given),
    "isin": lambda p, given: p["n"].isin(given),
    "isin of a frame": lambda p, given: p.isin(given),
    "query": lambda p, given: p.query("n in @given"),
    "quantile": lambda p, given: p["n"].quantile(given),
    "choose": lambda p, given: p.choose(given, "n > @candidate"),
    "choose by revenue": lambda p, given: p.choose(given, utilities.revenue("n")),
    "open": lambda p, given: pd.DataFrame({"n": [1]}).dp.open(1, keys={"n": given}),
    "open of two columns": lambda p, given: pd.DataFrame({"n": [1], "x": [2]}).dp.open(
        1, keys={("n", "x"): given}
    ),
    "open again": lambda p, given: p.open(keys={"n": given}),
    "local": lambda p, given: local.answer(1, epsilon=1, keys=given),
}


@pytest.mark.parametrize(
    "given", [HUGE, BEYOND, np.broadcast_to(np.int64(1), 10**10), pd.RangeIndex(10**10)]
)
@pytest.mark.parametrize("verb", ASKS)
def test_a_list_that_does_not_fit_is_refused_before_it_is_made(p, verb, given):
    tracemalloc.start()
    try:
        with pytest.raises(BadValue, match="the most that are supported"):
            ASKS[verb](p, given)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()
    assert p.budget.spent == 0


@pytest.mark.parametrize("verb", ASKS)
def test_what_has_no_end_is_refused(p, verb):
    with pytest.raises(BadType):
        ASKS[verb](p, itertools.count())
    with pytest.raises(BadType):
        ASKS[verb](p, (i for i in itertools.count()))
    assert p.budget.spent == 0


class Long(list):
    """A list that says it is long, as a long one would before it is read."""

    def __len__(self):
        return 2**24 + 1

    def __iter__(self):
        raise AssertionError("read before its length was looked at")


def test_the_length_comes_first_for_every_kind_of_list(p):
    for verb in (
        "groupby",
        "groupby of a dict",
        "value_counts",
        "cut",
        "isin",
        "choose",
        "quantile",
    ):
        with pytest.raises(BadValue, match="16777217 values"):
            ASKS[verb](p, Long())
    for verb in ("groupby two columns", "open of two columns"):
        with pytest.raises(BadValue, match="16777217 values"):
            ASKS[verb](p, Long())
    moments = pd.date_range("2000-01-01", periods=2**24 + 1, freq="s")
    with pytest.raises(BadValue, match="keys of 't' are 16777217 values"):
        p.groupby("t", keys=moments)


def test_lists_that_fit_are_taken(df):
    p = df.dp.open(1000, bounds={"n": (0, 9)})
    for given in (
        [1, 2],
        (1, 2),
        range(1, 3),
        np.array([1, 2]),
        pd.Index([1, 2]),
        pd.RangeIndex(1, 3),
        {1: 0, 2: 0}.keys(),
    ):
        assert list(p.groupby("n", keys=given).size(epsilon=80)) == [1, 1]
    for given in ([0, 5, 9], np.array([0, 5, 9]), range(0, 10, 5), pd.Index([0, 5, 9])):
        assert len(p.histogram("n", bins=given, epsilon=80)) == len(given) - 1
    assert len(p["n"].quantile(np.linspace(0, 1, 3), epsilon=80)) == 3
    assert p["n"].quantile(np.float64(0.5), epsilon=80) == p["n"].quantile(0.5, epsilon=80)
