"""So many reports for each person who is there, whatever names them: neither gaps between numbers nor unused categories."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe import local
from dpframe._cells.columns import prepare
from dpframe._expr import Column
from dpframe._questions.entries import take_rows_of_people
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.people import people_of

N = 12
FEW = settings(max_examples=12, deadline=None)  # sessions


def numbers(dtype, low, high):
    return lambda ids: pd.Series(
        np.array([[low, 0, 1, 2, 40, 41, 99, high][i % 8] for i in ids], dtype=dtype)
    )


def objects_of(cells):
    return lambda ids: pd.Series([cells[i % 8] for i in ids], dtype=object)


TEXTS = ["a", "b", "a\0", "", "ä", "\ud800", "b ", "1"]
MIXED = ["1", 1.5, 2**70, True, Decimal("0.1"), pd.Timestamp("2024-01-01"), -5, b"no name"]
DAYS = pd.to_datetime([f"2024-{m:02d}-01" for m in (1, 2, 3, 5, 7, 8, 11, 12)])
CATEGORIES = [f"p{i}" for i in range(500)]
# By dtype: eight names, the fewest of which stand next to each other.
IDS = {
    "int8": numbers("int8", -128, 127),
    "int64": numbers("int64", -(2**63), 2**63 - 1),
    "int64, narrow": numbers("int64", -7, 5000),
    "uint64": numbers("uint64", 3, 2**64 - 1),
    "float64": numbers("float64", -1e300, 2.0**60),
    "big-endian": numbers(">i4", -(2**31), 2**31 - 1),
    "Int64": lambda ids: numbers("int64", -7, 5000)(ids).astype("Int64"),
    "Int64 from Arrow": lambda ids: numbers("int64", -7, 5000)(ids).astype("int64[pyarrow]"),
    "bool": lambda ids: pd.Series([i % 8 < 4 for i in ids], dtype=bool),
    "seconds": lambda ids: pd.Series([DAYS[i % 8] for i in ids], dtype="datetime64[s]"),
    "zoned": lambda ids: pd.Series([DAYS[i % 8] for i in ids]).dt.tz_localize("Europe/Vienna"),
    "dates": lambda ids: pd.Series([DAYS[i % 8] for i in ids]).astype("date32[pyarrow]"),
    "texts": objects_of(TEXTS),
    "str": lambda ids: pd.Series([f"p{i % 8}" for i in ids], dtype="str"),
    "objects": objects_of(MIXED),
    "categories": lambda ids: pd.Series(
        pd.Categorical([f"p{60 * (i % 8)}" for i in ids], CATEGORIES)
    ),
    "categories of numbers": lambda ids: pd.Series(
        pd.Categorical([9 * (i % 8) for i in ids], range(500))
    ),
    "Arrow dictionary": lambda ids: pd.Series(
        pd.arrays.ArrowExtensionArray(
            pa.chunked_array([pa.array([f"p{i % 8}" for i in ids]).dictionary_encode()])
        )
    ),
}
WITH_NULL = [
    "Int64",
    "Int64 from Arrow",
    "str",
    "seconds",
    "categories",
    "objects",
    "float64",
    "dates",
]


def vectors(frame):
    return tuple(Column.of(i, name, frame.dtypes.iloc[i]) for i, name in enumerate(frame.columns))


def reports_of(frame, rows=1):
    frame = frame.assign(x=[("yes", "no")[i % 2] for i in range(len(frame))])
    names = [c for c in frame.columns if c != "x"]
    p = frame.dp.open(1000, unit=names, max_rows=rows, neighbors="replace-one")
    return p.randomize("x", keys=["no", "yes"], epsilon=1)


def people_in(columns):
    """The people by what the cells are, and by nothing that a library says of them."""
    rows = list(
        zip(
            *([None if name_of(c) is None else name_of(c) for c in s] for s in columns), strict=True
        )
    )
    return {row for row in rows if None not in row}


def name_of(cell):
    if cell is None or cell is pd.NA or cell is pd.NaT or cell != cell or isinstance(cell, bytes):
        return None  # bytes among objects are no name
    return repr(cell) if isinstance(cell, str) else (isinstance(cell, bool), cell)


@pytest.mark.parametrize("kind", IDS)
@FEW
@given(ids=st.lists(st.integers(0, 7), min_size=1, max_size=N), rows=st.integers(1, 3))
def test_reports_are_as_many_as_the_people_who_have_a_row(kind, ids, rows):
    frame = pd.DataFrame({"id": IDS[kind](ids)})
    people = people_in([frame["id"]])
    if people:
        assert len(reports_of(frame, rows)) == len(people) * rows


@pytest.mark.parametrize("kind", WITH_NULL)
def test_a_null_names_nobody_and_changes_nobody(kind):
    whole = pd.DataFrame({"id": IDS[kind]([0, 2, 4, 6, 6])})
    gap = pd.DataFrame({"id": IDS[kind]([0, 2, 4, 6, 6]).where([True, True, True, True, False])})
    assert gap["id"].dtype == whole["id"].dtype
    assert len(reports_of(whole)) == len(reports_of(gap)) == 4


@pytest.mark.parametrize("kind", IDS)
@FEW
@given(ids=st.lists(st.integers(0, 7), min_size=1, max_size=N), other=st.integers(0, 7))
def test_people_of_two_columns_are_counted_by_pairs(kind, ids, other):
    second = [(i * 7 + other) % 3 * 50 for i in ids]
    frame = pd.DataFrame({"id": IDS[kind](ids), "family": second})
    people = people_in([frame["id"], frame["family"]])
    if people:
        assert len(reports_of(frame)) == len(people)


@pytest.mark.parametrize("kind", IDS)
@settings(max_examples=40, deadline=None)
@given(ids=st.lists(st.integers(0, 7), min_size=1, max_size=N))
def test_every_number_below_the_size_is_a_person_with_one_hash(kind, ids):
    series = IDS[kind](ids)
    leaf = Column.of(0, "id", series.dtype)
    people = people_of([prepare(series, leaf.kind)], b"key")
    assert set(people.codes.tolist()) - {-1} == set(range(people.size))
    assert len(people.hashes) == people.size == len(set(people.hashes.tolist()))
    other = people_of(
        [prepare(series.iloc[:1], leaf.kind)], b"key"
    )  # the same person's among fewer
    if other.size:
        assert other.hashes[0] == people.hashes[people.codes[0]]


def test_neighbours_have_reports_alike():
    def length(ids):
        return len(reports_of(pd.DataFrame({"id": ids})))

    assert length([1, 2, 3, 4]) == length([1, 2, 3, 5000]) == length([1, 2, 3, -(2**62)]) == 4


def test_shares_of_people_with_gaps_in_their_numbers_are_estimated():
    yes = np.arange(4000) % 10 > 0
    df = pd.DataFrame({"id": np.arange(4000) * 20 + 7, "smoker": np.where(yes, "yes", "no")})
    p = df.dp.open(100, unit="id", max_rows=1, neighbors="replace-one")
    reports = p.randomize("smoker", keys=["no", "yes"], epsilon=20)
    assert len(reports) == 4000
    assert abs(local.estimate(reports).loc["yes", "frequency"] - 0.9) < 0.01


def test_derived_frames_have_reports_of_the_same_people():
    df = pd.DataFrame({"id": [5, 5, 900], "x": [["a", "b"], [], ["a"]]})
    p = df.dp.open(1000, unit="id", max_rows=2, neighbors="replace-one")
    assert len(p.explode("x", max_rows=2).randomize("x", keys=["a", "b"], epsilon=1)) == 4


def test_a_person_has_their_own_first_rows(monkeypatch):
    frame = pd.DataFrame({"id": [7000, 1, 7000, 1, 7000]})
    monkeypatch.setattr("dpframe.mechanisms._sampling.permutation", np.arange)
    found = take_rows_of_people(
        PandasEngine(frame), vectors(frame), 2, np.array([1, 2, 3, 4, 5]), 0
    )
    assert found.tolist() == [2, 4, 1, 3]
