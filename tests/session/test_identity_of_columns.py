"""Which frames are the opened one by their columns: without rows, and without memory, as with them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpframe import LineageError


def nulls(n):
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.nulls(n)])))


def frame(n):
    return pd.DataFrame(
        {
            "a": np.arange(n) * 1.0,
            "b": np.arange(n) * 2.0,
            "c": pd.Series(["x"] * n, dtype="str"),
            "d": pd.Series(["x"] * n, dtype="str"),
            "e": np.arange(n),
            "m": pd.array([1] * n, dtype="Int64"),
            "t": pd.to_datetime(["2020"] * n),
            "k": pd.Categorical(["a"] * n, categories=["a"]),
            "s": pd.arrays.SparseArray([0] * n, fill_value=0, dtype="int64"),
            "n": nulls(n),
        }
    )


SAME = {
    "itself": lambda d: d,
    "some columns": lambda d: d[["b", "a"]],
    "a column less": lambda d: d.drop(columns="a"),
    "other names": lambda d: d.rename(columns=str.upper),
    "some other names": lambda d: d.rename(columns={"a": "z", "c": "y"}),
    "one column under another name": lambda d: d[["d"]].rename(columns={"d": "q"}),
}
MADE = {
    "a copy": lambda d: d.copy(),
    "the first rows": lambda d: d.head(0),
    "a condition": lambda d: d[d["e"] >= 0],
    "another column": lambda d: d.assign(a=1.0),
}


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("made", SAME)
def test_the_same_columns_are_answered_however_many_rows(made, rows):
    root = frame(rows)
    root.dp.open(1000)
    assert abs(SAME[made](root).dp.count(epsilon=100) - rows) < 1


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("made", MADE)
def test_other_columns_are_refused_however_many_rows(made, rows):
    root = frame(rows)
    root.dp.open(1000)
    with pytest.raises(LineageError):
        MADE[made](root).dp.count(epsilon=100)


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_renamed_column_keeps_its_bounds(rows):
    root = frame(rows)
    root.dp.open(1000, bounds={"b": (0, 9)})
    assert root.rename(columns={"a": "y", "b": "z"}).dp.explain.sum("z", epsilon=1) is not None


@pytest.mark.parametrize("rows", [0, 4])
def test_columns_without_memory_are_no_shared_data(rows):
    one, other = (pd.DataFrame({"n": nulls(rows)}, index=list("abcd")[:rows]) for _ in range(2))
    one.dp.open(1)
    other.dp.open(1)
    one.dp.count(epsilon=0.1)
    with pytest.raises(LineageError):
        one.assign(n=nulls(rows).set_axis(one.index)).dp.count(epsilon=0.1)


def test_shared_data_is_still_seen():
    root = frame(3)
    root.dp.open(1)
    with pytest.raises(Exception, match="shares its data"):
        pd.DataFrame({"n": root["n"].array, "x": [1, 2, 3]}).dp.open(1)
