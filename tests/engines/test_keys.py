"""Values as keys: one text for equal values, numbers in the order of the values, whatever else the frame has."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe._cells.columns import Vector, prepare
from dpframe._cells.texts import key_of, text_of
from dpframe._expr import Column
from dpframe._groups.unit import Unit
from dpframe._statistics.base import Grid, Powers, Rows
from dpframe._validate import Bounds
from dpframe.engines.keys import Occurring, combine_keys, number_keys
from dpframe.engines.pandas import PandasEngine

KEY = b"12345678"

COLUMNS = {
    "str": pd.Series(["b", "a", None, "b", ""]),
    "arrow": pd.Series(["b", "a", None, "b", ""], dtype="string[pyarrow]"),
    "python": pd.Series(["b", "a", None, "b", ""], dtype="string[python]"),
    "category": pd.Series(
        ["b", "a", None, "b", "é"], dtype=pd.CategoricalDtype(["z", "b", "é", "a"])
    ),
    "int": pd.Series([3, -1, 3, 2**62]),
    "uint": pd.Series([3, 0, 2**64 - 1], dtype="uint64"),
    "Int64": pd.Series([3, None, 3, -7], dtype="Int64"),
    "float": pd.Series([0.5, -0.0, 0.0, np.nan, 1e300]),
    "float32": pd.Series([0.5, 0.1, np.nan], dtype="float32"),
    "time": pd.Series(
        pd.to_datetime(["2024-01-01", None, "1990-05-05 12:00:00.000001"], format="ISO8601")
    ),
    "zoned": pd.Series(
        pd.to_datetime(["2024-01-01", None, "1990-05-05 12:00"], format="ISO8601")
    ).dt.tz_localize("Asia/Tokyo"),
    "bool": pd.Series([True, False, True]),
    "object": pd.Series(
        [1, 1.0, "1", True, None, Decimal("2.50"), 2.5, pd.Timestamp("2020-02-02")], dtype=object
    ),
}


def read(series: pd.Series) -> tuple[list, list]:
    leaf = Column.of(0, "x", series.dtype)
    found = number_keys(prepare(series, leaf.kind))
    keys = [key_of(t, getattr(leaf, "tz", None)) for t in found.texts]
    return [None if c < 0 else keys[c] for c in found.codes], keys


@pytest.mark.parametrize("name", [n for n in COLUMNS if n != "object"])
def test_every_cell_has_its_own_value_as_key(name):
    series = COLUMNS[name]
    cells, keys = read(series)
    assert [c for c in cells if c is not None] == series.dropna().tolist()
    assert [c is None for c in cells] == series.isna().tolist()
    assert keys == sorted(keys)
    assert [type(k) for k in keys if isinstance(k, bool)] == [bool] * (2 if name == "bool" else 0)


def test_equal_values_of_mixed_columns_are_one_key_but_for_booleans():
    cells, keys = read(COLUMNS["object"])
    assert cells[0] == cells[1] == 1
    assert type(cells[0]) is type(cells[1]) is int
    assert cells[3] is True
    assert cells[5] == cells[6] == 2.5
    assert len(keys) == 5


def test_what_cannot_be_a_key_is_none():
    odd = pd.Series(
        [object(), (1, 2), "\ud800", float("inf"), 10**400, np.timedelta64(1), 1j, "fine"],
        dtype=object,
    )
    cells, keys = read(odd)
    assert keys == ["fine"]
    assert cells == [None] * 7 + ["fine"]


scalars = (st.text() | st.integers(-(2**200), 2**200) | st.floats(allow_nan=False, allow_infinity=False)
           | st.booleans() | st.decimals(-(10**9), 10**9, allow_nan=False))  # fmt: skip


@given(scalars)
def test_texts_are_read_back(value):
    text = text_of(value)
    if text is None:
        assert isinstance(value, str) or abs(value) >= 2**1000
    else:
        assert key_of(text) == value
        assert text_of(key_of(text)) == text


@given(st.lists(scalars, max_size=20), st.lists(scalars, max_size=20))
def test_the_order_of_two_keys_does_not_depend_on_the_others(one, more):
    def keys(cells):
        return number_keys(prepare(pd.Series(cells, dtype=object), "label")).texts.tolist()

    small = keys(one)
    assert [t for t in keys(one + more) if t in set(small)] == small


def test_combinations_of_two_columns():
    frame = pd.DataFrame({"a": ["x", "y", "x", None, "x"], "b": [2, 1, 2, 1, 1]})
    columns = [number_keys(prepare(frame[c], Column.of(0, c, frame[c].dtype).kind)) for c in frame]
    codes, texts = combine_keys(columns)
    assert [tuple(map(key_of, t)) for t in texts] == [("x", 1), ("x", 2), ("y", 1)]
    assert codes.tolist() == [1, 2, 1, -1, 0]
    exprs = tuple(Column.of(i, c, frame[c].dtype) for i, c in enumerate(frame))
    alone = combine_keys(
        [
            number_keys(prepare(frame.loc[[2], c], Column.of(0, c, frame[c].dtype).kind))
            for c in frame
        ]
    )
    numbers = [
        Occurring(exprs, codes, len(texts), texts).numbers()
        for codes, texts in (alone, (codes, texts))
    ]
    assert numbers[0][0] == numbers[1][1]  # a number is the combination's own


@pytest.mark.parametrize("where", [False, True])
def test_cells_that_are_no_key_add_to_none_and_equal_ones_to_one(where):
    """Sums stand by the place of a category first: several categories have one key, and some have none."""
    cells = ["b", object(), 1, "a", None, 1.0, object(), Decimal("sNaN"), "b", Decimal("1.00")]
    frame = pd.DataFrame(
        {"k": pd.Series(cells, dtype=object), "x": np.arange(10.0), "flag": [True] * 9 + [False]}
    )
    leaf, value, flag = (Column.of(i, c, frame[c].dtype) for i, c in enumerate(frame))
    total = Powers(value, Grid.for_width(Bounds(0.0, 16.0), 6), 1)
    engine = PandasEngine(frame, KEY)
    for _ in range(2):  # numbered, and known
        texts, sums = engine.occurring((leaf,), flag if where else None, Unit(), {total, Rows()})
        assert [key_of(text) for (text,) in texts] == [1, "a", "b"]
        assert sums[Rows()].tolist() == [2 if where else 3, 1, 2]
        step = total.grid.step
        assert (sums[total][1] * step).tolist() == [7.0 if where else 16.0, 3.0, 8.0]


def test_keys_are_numbered_once_and_no_more_is_kept_than_the_frame_has():
    frame = pd.DataFrame({"n": np.arange(200_000) % 7, "m": np.arange(200_000)})
    few, many = (Column.of(i, c, frame[c].dtype) for i, c in enumerate(frame))
    engine = PandasEngine(frame, KEY)
    engine.occurring((few,), None, Unit())
    known = engine._keys[few]
    engine.occurring((few,), None, Unit())
    assert engine._keys[few] is known
    engine.occurring((many,), None, Unit())
    assert many not in engine._keys
    engine.close()
    assert not engine._keys


@given(
    st.integers(-(2**63), 2**63 - 300),
    st.lists(st.integers(0, 200), min_size=1, max_size=40),
)
@settings(max_examples=100, deadline=None)
def test_keys_of_whole_numbers_in_a_narrow_range_are_in_order(low, above):
    values = np.array([low + a for a in above], dtype=np.int64)
    found = number_keys(Vector("number", values))
    known = sorted({*values.tolist()})
    assert found.texts.tolist() == [f"n{n}" for n in known]
    assert found.codes.tolist() == [known.index(n) for n in values.tolist()]
