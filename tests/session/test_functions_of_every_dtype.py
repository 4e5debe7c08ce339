"""pipe hands out the dtypes of the root, whatever the cells, and takes the identity of every one of them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpframe import Refused

N = 120


def arrow(values, kind=None):
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(values, type=kind)])))


def undecodable(kind):
    raw = pa.array(
        [b"\xff", b"a"] * (N // 2),
        type=pa.large_binary() if kind == pa.large_string() else pa.binary(),
    )
    return pa.Array.from_buffers(kind, N, raw.buffers())


def halves(first, second=None):
    return [first] * (N // 2) + [second] * (N // 2)


ROOTS = {
    "texts and nulls among objects": lambda: pd.Series(halves("a"), dtype=object),
    "numbers and nulls among objects": lambda: pd.Series(halves(1.5), dtype=object),
    "nulls alone among objects": lambda: pd.Series([None] * N, dtype=object),
    "bools among objects": lambda: pd.Series(halves(True, False), dtype=object),
    "lists": lambda: pd.Series([[1, None, float("nan")], []] * (N // 2), dtype=object),
    "lists in dicts": lambda: pd.Series([{"a": [1], 2: {3}}, None] * (N // 2), dtype=object),
    "decimals": lambda: pd.Series([Decimal("0.1"), Decimal("sNaN")] * (N // 2), dtype=object),
    "dates among objects": lambda: pd.Series(
        [dt.date(2020, 1, 1), pd.NaT] * (N // 2), dtype=object
    ),
    "whole numbers of Arrow": lambda: arrow(halves(2**60 + 1), pa.int64()),
    "bools of Arrow": lambda: arrow(halves(True), pa.bool_()),
    "lists of Arrow": lambda: arrow([[1, None], None, [], [3]] * (N // 4)),
    "lists of lists of Arrow": lambda: arrow([[["a"], None], [[]]] * (N // 2)),
    "structs of Arrow": lambda: arrow([{"a": 1, "b": None}, None] * (N // 2)),
    "maps of Arrow": lambda: arrow([[("a", 1)], []] * (N // 2), pa.map_(pa.string(), pa.int64())),
    "bytes of Arrow": lambda: arrow([b"\xff\x00", None] * (N // 2)),
    "durations of Arrow": lambda: arrow([2**62, None] * (N // 2), pa.duration("s")),
    "times of Arrow": lambda: arrow([2**62, None] * (N // 2), pa.timestamp("s")),
    "dates of Arrow": lambda: arrow([2**31 - 1, None] * (N // 2), pa.date32()),
    "decimals of Arrow": lambda: arrow([Decimal("1.10"), None] * (N // 2)),
    "nulls of Arrow": lambda: arrow([None] * N),
    "text that is no UTF-8": lambda: pd.Series(
        pd.arrays.ArrowExtensionArray(pa.chunked_array([undecodable(pa.string())]))
    ),
    "str that is no UTF-8": lambda: pd.Series(
        pd.arrays.ArrowStringArray(
            pa.chunked_array([undecodable(pa.large_string())]),
            dtype=pd.StringDtype("pyarrow", np.nan),
        )
    ),
    "dictionary that is no UTF-8": lambda: pd.Series(
        pd.arrays.ArrowExtensionArray(
            pa.chunked_array([undecodable(pa.string()).dictionary_encode()])
        )
    ),
    "big-endian numbers": lambda: pd.Series(np.arange(N, dtype=">i4")),
    "big-endian doubles": lambda: pd.Series(np.arange(N, dtype=">f8")),
    "half doubles": lambda: pd.Series(np.arange(N, dtype="float16")),
    "wide doubles": lambda: pd.Series(np.arange(N, dtype="longdouble")),
    "complex numbers": lambda: pd.Series([1 + 2j, complex("nan")] * (N // 2)),
    "durations": lambda: pd.Series(pd.to_timedelta([1, None] * (N // 2), unit="s")),
    "periods": lambda: pd.Series(pd.period_range("2020", periods=N, freq="D")),
    "intervals": lambda: pd.Series(pd.interval_range(0, N)),
    "sparse numbers": lambda: pd.Series(pd.arrays.SparseArray([0, 1] * (N // 2))),
    "Int64": lambda: pd.Series(halves(2**60 + 1, pd.NA), dtype="Int64"),
    "boolean": lambda: pd.Series(halves(True, pd.NA), dtype="boolean"),
    "seconds": lambda: pd.Series(np.array([2**62, 5] * (N // 2), dtype="M8[s]")),
    "zoned times": lambda: pd.Series(pd.date_range("2020", periods=N, tz="Europe/Vienna")),
    "categories": lambda: pd.Series(pd.Categorical(halves("a", "b"), categories=["b", "a", "c"])),
}


def opened(root):
    frame = pd.DataFrame({"id": np.arange(N) // 2, "x": root()})
    return frame, frame.dp.open(1000, unit="id", max_rows=2)


@pytest.mark.parametrize("root", ROOTS)
def test_the_identity_passes_and_sees_the_dtype_of_the_root(root):
    frame, p = opened(ROOTS[root])
    seen = set()
    for _ in range(3):  # halves are random
        q = p.pipe(lambda d: (seen.add(d["x"].dtype), d)[1], bounds={})
    assert seen == {frame["x"].dtype}
    assert abs(q.count(epsilon=200) - N) < 1


@pytest.mark.parametrize("root", ROOTS)
def test_what_looks_across_people_is_still_seen(root):
    _, p = opened(ROOTS[root])
    with pytest.raises(Refused):
        p.pipe(lambda d: d.iloc[::-1].iloc[: len(d) // 2])


@pytest.mark.parametrize(
    "cells",
    [
        lambda: [[1, 2], [1, 3]],
        lambda: [{"a": 1}, {"a": 2}],
        lambda: [{1, 2}, {1, 3}],
        lambda: [b"a", b"b"],
        lambda: [2**5000, 2**5000 + 1],
        lambda: [np.array([1, 2]), np.array([1, 3])],
        lambda: [pd.Timedelta("1s"), pd.Timedelta("2s")],
        lambda: ["a\0", "a"],
    ],
)
def test_cells_that_differ_are_told_apart(cells):
    frame = pd.DataFrame({"id": np.arange(N), "x": pd.Series(cells() * (N // 2), dtype=object)})
    p = frame.dp.open(1000, unit="id", max_rows=1)

    def swaps(d):
        # among fewer people everybody gets another cell of the same kind
        return d.assign(x=pd.Series([cells()[len(d) == N]] * len(d), dtype=object, index=d.index))

    with pytest.raises(Refused):
        p.pipe(swaps)


def test_what_the_function_does_to_a_list_is_not_done_to_the_frame():
    frame = pd.DataFrame(
        {"id": range(40), "x": pd.Series([[1, [2]] for _ in range(40)], dtype=object)}
    )
    p = frame.dp.open(1000, unit="id", max_rows=1)

    def spoils(d):
        for cell in d["x"]:
            cell[1].append(9)
            cell.append(9)
        return d

    p.pipe(spoils)
    assert frame["x"].tolist() == [[1, [2]]] * 40
