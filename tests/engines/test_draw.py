"""The hash by which a person's groups and values are drawn: a function of cells and key, fair, and alike however stored."""

from __future__ import annotations

import hashlib
import itertools
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe._cells.columns import prepare
from dpframe._expr import Column
from dpframe._groups.keys import KeyBy, keys_for
from dpframe._groups.unit import Unit
from dpframe._questions.question import Query
from dpframe._statistics.base import Persons, Rows
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.people import Draw, number_of, numbers_of, people_of

P = 2**31 - 1
KEY = b"12345678"
GROUPS = [f"group {i}" for i in range(10)]


def numbered(cells: Any, dtype: Any = None) -> dict[int, int]:
    """The number of the person in each row, by the row."""
    frames = [
        pd.Series(one, dtype=dtype) for one in (cells if isinstance(cells, tuple) else (cells,))
    ]
    people = people_of([prepare(s, Column.of(0, "id", s.dtype).kind) for s in frames], KEY)
    found = people.numbers(np.arange(people.size))
    return {i: int(found[c]) for i, c in enumerate(people.codes) if c >= 0}


def by_definition(cell: Any) -> int:
    if isinstance(cell, str):
        return int(hashlib.md5(cell.encode()).hexdigest()[:15], 16) % P
    exact = Fraction(cell)
    return exact.numerator * pow(exact.denominator, -1, P) % P


# Numbers of cells -------------------------------------------------------------------------------------------

WHOLE = [0, 1, 7, P - 1, P, P + 1, -1, -7, -P, 2**31, 10**6, 2**53]
DTYPES = [
    *("int64", "Int64", "float64", "Float64", object, "category"),
    *("int64[pyarrow]", "double[pyarrow]", "decimal128(20, 0)[pyarrow]"),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_numbers_have_one_number_in_every_dtype(dtype):
    if "pyarrow" in str(dtype):
        pytest.importorskip("pyarrow", reason="dtypes of Arrow")
    if str(dtype).startswith("decimal"):
        import pyarrow as pa

        dtype = pd.ArrowDtype(pa.decimal128(20, 0))
    assert numbered(WHOLE, dtype) == {i: by_definition(n) for i, n in enumerate(WHOLE)}


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", "float32", "bool"]
)
def test_narrow_dtypes_too(dtype):
    cells = [0, 1] if dtype == "bool" else [0, 1, 7, 100]
    assert numbered(cells, dtype) == {i: by_definition(n) for i, n in enumerate(cells)}


def test_integers_of_all_of_64_bits():
    ends = [-(2**63), -(2**63) + 1, 2**63 - 1, 2**62, -(2**62)]
    assert numbered(ends, "int64") == {i: n % P for i, n in enumerate(ends)}
    assert numbered([2**64 - 1, 2**63], "uint64") == {0: (2**64 - 1) % P, 1: 2**63 % P}


@pytest.mark.parametrize("dtype", [object, "str", "string", "category", "string[pyarrow]"])
def test_texts_have_that_of_their_characters(dtype):
    if "pyarrow" in str(dtype):
        pytest.importorskip("pyarrow", reason="strings of Arrow")
    texts = ["a", "A", "a ", "", "é", "e\u0301", "\U0001f600", "it's", "1"]
    assert numbered(texts, dtype) == {i: by_definition(t) for i, t in enumerate(texts)}


@given(
    st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(2**70), 2**70)
    | st.decimals(-9, 9, places=3)
)
def test_the_number_of_a_number_is_that_of_its_value(cell):
    assert number_of(cell) == by_definition(cell)
    if isinstance(cell, float):
        assert numbers_of(np.array([cell, 1.0]))[0] == by_definition(cell)
        assert number_of(Decimal(cell)) == by_definition(cell)


def test_infinities_moments_and_what_else_may_name_somebody():
    assert len({number_of(np.inf), number_of(-np.inf), 0}) == 3
    assert number_of(Decimal("inf")) == number_of(np.inf)
    assert 0 <= number_of(Decimal((0, (9,) * 5000, 10**6))) < P
    moment = pd.Timestamp("2026-11-19 08:00:01.5")
    wanted = moment.as_unit("ns").value % P
    for unit in ("ms", "us", "ns"):
        assert numbered([moment], f"datetime64[{unit}]") == {0: wanted}
        assert number_of(moment.as_unit(unit)) == wanted
    zoned = pd.Series([moment]).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    assert numbered(zoned) == {0: wanted}
    assert numbered(zoned.astype(object)) == {0: wanted}
    assert set(numbered([pd.Timestamp("1900-01-01")], "datetime64[s]").values()) == {
        pd.Timestamp("1900-01-01").as_unit("ns").value % P
    }
    assert 0 <= number_of(pd.Interval(0.0, 1.0)) < P
    assert numbered([True, False, None], "boolean") == {0: 1, 1: 0}


@pytest.mark.parametrize(
    "cells", [[1, None, 2], [1.5, np.nan, -0.0], ["a", None, "b"], [(1, 2), 3, b"x"]]
)
def test_a_null_and_what_is_no_scalar_is_nobody(cells):
    proper = {
        i: by_definition(c)
        for i, c in enumerate(cells)
        if isinstance(c, int | float | str) and c == c
    }
    assert numbered(cells, object) == proper


def test_two_columns_are_folded_in_their_order():
    found = numbered(([1, 1, 2, None], ["x", "y", "x", "x"]))
    assert found == {
        i: (a * 1_588_635_695 + by_definition(b)) % P
        for i, (a, b) in enumerate([(1, "x"), (1, "y"), (2, "x")])
    }
    assert numbered(([1.0, 1, 2], pd.Categorical(["x", "y", "x"]))) == found


# The hash ---------------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(
    x=st.integers(0, P - 1) | st.sampled_from([0, P - 1]),
    y=st.integers(0, P - 1) | st.sampled_from([0, P - 1]),
    key=st.binary(max_size=20),
)
def test_it_is_its_definition_in_whole_numbers(x, y, key):
    draw = Draw(key)
    assert draw.ranks(np.array([x]), np.array([y])).tolist() == [draw.rank(x, y)]
    assert 0 <= draw.rank(x, y) < P


def shares(ids: np.ndarray[Any, Any], key: bytes, groups: int, most: int) -> tuple[Any, Any]:
    """How often each group is among the smallest, and each pair of groups."""
    x = ids % P
    ranks = (
        Draw(key)
        .ranks(np.repeat(x, groups), np.tile(np.arange(groups), len(x)))
        .reshape(-1, groups)
    )
    chosen = np.zeros(ranks.shape)
    np.put_along_axis(chosen, np.argsort(ranks, axis=1)[:, :most], 1.0, axis=1)
    return chosen.mean(axis=0), chosen.T @ chosen / len(x)


SPACES = {"in a row": 1, "multiples": 1_000_003, "of two": 2**40, "of the prime": P + 1}


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("key", [b"k", b"another", b"12345678"])
def test_a_draw_is_fair(space, key):
    """Of each group, and of each pair of groups: deviations are those of as many fair draws."""
    n, groups, most = 40_000, 10, 3
    one, both = shares(np.arange(n) * SPACES[space], key, groups, most)
    assert np.abs(one - most / groups).max() < 5 * np.sqrt(0.3 * 0.7 / n)
    expected = most * (most - 1) / groups / (groups - 1)
    off = both[~np.eye(groups, dtype=bool)]
    assert np.abs(off - expected).max() < 5 * np.sqrt(expected * (1 - expected) / n)


def test_a_constant_hash_would_be_seen_as_unfair(monkeypatch):
    monkeypatch.setattr(Draw, "hash_with", lambda self, people, m, c: c)
    one, _ = shares(np.arange(1000), b"k", 10, 3)
    assert set(one) == {0.0, 1.0}


def test_the_keys_bytes_all_count():
    keys = [b"", b"k", b"k\0", b"\0k", b"x" * 8 + b"1", b"x" * 8 + b"2"]
    assert len({Draw(key).constants for key in keys}) == len(keys)


# Questions --------------------------------------------------------------------------------------------------

IDS: dict[str, Any] = {
    "int64": lambda s: s.astype("int64"),
    "Int64": lambda s: s.astype("Int64"),
    "float64": lambda s: s.astype("float64"),
    "objects": lambda s: s.astype(object),
    "category": lambda s: s.astype("category"),
    "decimals": lambda s: pd.Series([Decimal(int(i)) for i in s], dtype=object),
    "offset categories": lambda s: pd.Series(
        pd.Categorical(s, categories=[99, *reversed(range(40))])
    ),
}


def table(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    ids, groups = rng.integers(0, 40, 900), rng.choice(GROUPS, 900)
    return pd.DataFrame({"id": ids, "g": pd.Series(groups, dtype="str"), "x": rng.normal(size=900)})


def counted(frame: pd.DataFrame, found: bool = False, limit: int = 2) -> Any:
    g, person = (Column.of(i, c, frame.dtypes.iloc[i]) for c, i in (("g", 1), ("id", 0)))
    unit, engine = Unit("add-remove", (person,), 3, limit), PandasEngine(frame, KEY)
    if found:
        texts, sums = engine.occurring((g,), None, unit, frozenset({Persons(), Rows()}))
        return texts, sums[Rows()].tolist()
    by = (KeyBy(g, keys_for(GROUPS, g, "g")),)
    sums = engine.reduce(Query((), None, by), {Rows(), Persons()}, unit)
    return sums[Rows()].tolist(), sums[Persons()].tolist()


@pytest.mark.parametrize("found", [False, True])
@pytest.mark.parametrize("name", IDS)
def test_the_dtype_of_the_ids_changes_nothing(name, found):
    frame = table()
    other = frame.assign(id=IDS[name](frame["id"]))
    assert counted(other, found) == counted(frame, found)


@pytest.mark.parametrize("found", [False, True])
def test_order_and_parts_change_nothing(found):
    frame = table()
    whole = counted(frame, found)
    assert counted(frame.sample(frac=1, random_state=1).reset_index(drop=True), found) == whole
    for parts in (2, 7):
        sums: dict[Any, int] = {}
        for part in range(parts):
            texts, rows = counted(frame[frame["id"] % parts == part].reset_index(drop=True), True)
            for text, n in zip(texts, rows, strict=True):
                sums[text] = sums.get(text, 0) + n
        assert sums == dict(zip(*counted(frame, True), strict=True))


def test_a_listed_and_a_sparse_table_choose_alike():
    """Few people in very many groups stand in a list, and not in a table."""
    frame = table()
    g, person = (Column.of(i, c, frame.dtypes.iloc[i]) for c, i in (("g", 1), ("id", 0)))
    many = [*GROUPS, *map(str, range(20_000))]
    unit = Unit("add-remove", (person,), 3, 2)
    sums = PandasEngine(frame, KEY).reduce(
        Query((), None, (KeyBy(g, keys_for(many, g, "g")),)), {Rows()}, unit
    )[Rows()]
    assert sums[:10].tolist() == counted(frame)[0]
    assert not sums[10:].any()


def test_the_groups_that_stay_are_those_of_the_definition():
    frame, draw = table(), Draw(KEY)
    own = {(i, g) for i, g in zip(frame["id"], frame["g"], strict=True)}
    kept = set()
    for i in range(40):
        mine = sorted((draw.rank(i, GROUPS.index(g)), GROUPS.index(g)) for p, g in own if p == i)
        kept |= {(i, GROUPS[place]) for _, place in mine[:2]}
    assert counted(frame)[1] == [sum((i, g) in kept for i in range(40)) for g in GROUPS]
    assert len(kept) < len(own)


def test_neighbours_share_the_choices_of_everybody_else():
    frame = table()
    without = frame[frame["id"] != 3].reset_index(drop=True)
    for found in (False, True):
        one, two = counted(frame, found), counted(without, found)
        moved = sum(itertools.starmap(int.__sub__, zip(one[1], two[1], strict=True)))
        assert 0 < moved <= (6 if found else 2)
