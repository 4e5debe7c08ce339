"""Who each row belongs to in numbers of 32 bits: nothing that is made of them runs over, and they are those of 64 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe._cells.columns import Vector, prepare
from dpframe._expr import Column
from dpframe._expr._within import within
from dpframe.engines import limits as engines_people_module
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.people import pairs_of, people_of

PEOPLE, ROWS, CELLS = (
    70_000,
    140_000,
    140_000,
)  # the product of people and cells takes more than 32 bits
SEED = 5  # with which two pairs would be one


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(SEED)
    who = 2 * (rng.permutation(ROWS) % PEOPLE)
    who[who < 9] = 12  # so that some numbers are nobody's, and one person has many rows
    return pd.DataFrame(
        {"who": who, "g": rng.permutation(ROWS) % CELLS, "x": rng.normal(0, 1, ROWS)}
    )


def leaf(frame: pd.DataFrame, name: str) -> Column:
    return Column.of(list(frame.columns).index(name), name, frame.dtypes[name])


def values(
    frame: pd.DataFrame, how: str, x: str | None, names: list[str], **words: Any
) -> list[float]:
    e = within(how, None if x is None else leaf(frame, x), [leaf(frame, n) for n in names], **words)
    found: list[float] = PandasEngine(frame).table.column(e, slice(0, len(frame))).values.tolist()
    return found


def test_two_pairs_would_be_one_in_32_bits(frame):
    """Or else nothing below could fail."""
    who = frame["who"].rank(method="dense").to_numpy().astype(np.int64) - 1
    for wide in (who * (CELLS + 1) + frame["g"] + 1, frame["g"] * frame["who"].nunique() + who):
        assert wide.nunique() > wide.astype(np.int32).nunique()


def test_numbers_with_gaps_take_32_bits_and_are_their_own_otherwise(frame):
    of_pandas = frame["who"].rank(method="dense").astype(int) - 1
    people = people_of([prepare(frame["who"], "number")], b"12345678")
    assert people.codes.dtype == np.int32
    assert people.size == frame["who"].nunique()
    assert people.codes.tolist() == of_pandas.tolist()
    without_gaps = people_of([Vector("number", of_pandas.to_numpy(dtype=np.int64))], b"12345678")
    assert without_gaps.codes.dtype == np.int64
    assert without_gaps.codes.tolist() == people.codes.tolist()


def test_the_rows_of_nobody_stay_nobodys():
    cells = pd.Series(pd.Categorical([None, "c", None, "a", "c"], categories=["a", "b", "c"]))
    people = people_of([prepare(cells, "label")], b"12345678")
    assert people.codes.dtype == np.int32
    assert people.codes.tolist() == [-1, 1, -1, 0, 1]


def test_what_people_have_one_value_of_is_that_of_pandas(frame):
    groups = frame.groupby("who")
    assert values(frame, "cumcount", None, ["who"], args=(True,)) == groups.cumcount().tolist()
    assert values(frame, "nunique", "g", ["who"]) == groups["g"].transform("nunique").tolist()
    assert values(frame, "max", "x", ["who"]) == groups["x"].transform("max").tolist()
    assert values(frame, "last", "x", ["who"]) == groups["x"].transform("last").tolist()


def test_groups_of_many_people_are_those_of_pandas(frame):
    sizes = frame.groupby(["who", "g"])["x"].transform("size").tolist()
    assert values(frame, "size", None, ["who"], by=[leaf(frame, "g")]) == sizes
    assert values(frame, "size", None, ["who", "g"]) == sizes
    assert values(frame, "size", None, ["g", "who"]) == sizes


@pytest.mark.parametrize("wide", [False, True])
def test_pairs_of_many_people_and_groups_are_each_their_own(wide, frame):
    people = people_of([prepare(frame["who"], "number")], b"12345678")
    codes = people.codes.astype(np.int64) if wide else people.codes
    pairs = pairs_of(codes, frame["g"].to_numpy(), people.size, CELLS)
    counted = frame.groupby(["who", "g"]).size()
    assert not pairs.table
    assert pairs.rows.tolist() == counted.tolist()
    assert pairs.group.tolist() == counted.index.get_level_values("g").tolist()
    assert np.array_equal(pairs.person[pairs.of_row], codes)


def test_distinct_values_of_many_people_are_drawn_alike(frame):
    cells = prepare(frame["g"], "number")
    distinct = engines_people_module.list_distinct_pairs
    found = []
    for wide in (False, True):
        people = people_of([prepare(frame["who"], "number")], b"12345678")
        people.codes = people.codes.astype(np.int64) if wide else people.codes
        found.append(np.sort(distinct(cells, None, None, people, 1, b"12345678")[1]).tolist())
    assert found[0] == found[1]
    assert 0 < len(found[0]) <= people.size
