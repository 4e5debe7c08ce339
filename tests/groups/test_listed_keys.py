"""Listed combinations of several columns, and the last group of what is not listed: exact counts in pandas' shapes."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe._cells.codec import finder
from dpframe._expr import Column
from dpframe._groups.combinations import TupleBy, Tuples
from dpframe._sizes import SIZES
from dpframe.engines.pandas import PandasEngine

SURE = 50  # an epsilon at which noise is zero but once in 10^20 times
PAIRS = [("NY", "M"), ("CA", "F"), ("TX", "M")]


@pytest.fixture
def frame():
    states = ["CA", "NY", "TX", None, "CA", "NY", "WA", "CA"]
    sexes = ["F", "M", "F", "M", "F", "F", "M", None]
    return pd.DataFrame(
        {"state": states, "sex": sexes, "x": range(8), "n": [1, 2, 3, 1, 2, 3, 1, 2]}
    )


@pytest.fixture
def p(frame):
    return frame.dp.open(1000, bounds={"x": (0, 10)})


def exact(frame, by, keys):
    """pandas' sizes for listed keys, nulls as they are listed."""
    return frame.groupby(by, dropna=False).size().reindex(keys, fill_value=0).tolist()


# Combinations ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keys", [PAIRS, tuple(PAIRS), pd.MultiIndex.from_tuples(PAIRS)], ids=["list", "tuple", "index"]
)
def test_listed_combinations_come_back_and_no_others(p, frame, keys):
    found = p.groupby(["state", "sex"], keys=keys).size(epsilon=SURE)
    index = pd.MultiIndex.from_tuples(PAIRS, names=["state", "sex"])
    pd.testing.assert_series_equal(
        pd.Series(found), frame.groupby(["state", "sex"]).size().reindex(index, fill_value=0)
    )
    sums = p.groupby(["state", "sex"], keys=keys)["x"].sum(epsilon=SURE)
    assert sums.round().tolist() == [1, 4, 0]


def test_shapes_and_options_of_pandas(p, frame):
    groups = p.groupby(["state", "sex"], keys=PAIRS, sort=True)
    assert list(groups.size(epsilon=SURE).index) == sorted(PAIRS)
    flat = p.groupby(["state", "sex"], keys=PAIRS, as_index=False).agg(
        n=("x", "size"), s=("x", "sum"), epsilon=SURE
    )
    assert flat.columns.tolist() == ["state", "sex", "n", "s"]
    assert list(zip(flat["state"], flat["sex"], strict=True)) == PAIRS
    assert flat["n"].tolist() == exact(frame, ["state", "sex"], PAIRS)
    halves = p.groupby(["state", "sex"], keys=PAIRS)["x"].quantile([0.25, 0.75], epsilon=SURE)
    assert [row[:2] for row in halves.index] == [pair for pair in PAIRS for _ in range(2)]
    assert halves.index.names == ["state", "sex", None]
    assert p.groupby(["state", "sex"], keys=PAIRS).size(epsilon=SURE).unstack().shape == (3, 2)
    assert len(p.groupby(["state", "sex"], keys=PAIRS)) == 3


def test_nulls_are_keys_where_they_are_listed(p, frame):
    keys = [(None, "M"), ("CA", np.nan), ("CA", "F")]
    found = p.groupby(["state", "sex"], keys=keys).size(epsilon=SURE)
    assert found.tolist() == [1, 1, 2]
    assert found.index[0][1] == "M"
    assert pd.isna(found.index[0][0])
    last = p.groupby(["state", "sex"], keys=keys, sort=True).size(epsilon=SURE)
    assert last.tolist() == [2, 1, 1]  # nulls last, as pandas sorts
    assert p.groupby(["state", "sex"], keys=keys, dropna=True).size(epsilon=SURE).tolist() == [2]


def test_columns_of_every_kind(frame):
    frame = frame.assign(
        day=pd.Timestamp("2024-01-01") + pd.to_timedelta(frame["n"], "D"),
        smoker=frame["x"] % 2 == 0,
    )
    frame["sex"] = frame["sex"].astype("category")
    frame["score"] = frame["n"] / 2
    p = frame.dp.open(1000)
    for columns in itertools.permutations(["day", "smoker", "sex", "n", "score"], 3):
        rows = frame[list(columns)].dropna().drop_duplicates()
        keys = list(rows.itertuples(index=False, name=None))[::-1]
        found = p.groupby(list(columns), keys=keys).size(epsilon=15)
        assert (
            found.tolist()
            == frame.groupby(list(columns), observed=True).size().reindex(keys).tolist()
        )
    bands = p["x"].cut([-1, 3, 10], labels=["low", "high"])
    found = (
        p.assign(band=bands)
        .groupby(["band", "smoker"], keys=[("high", True), ("low", False)])
        .size(epsilon=SURE)
    )
    assert found.tolist() == [2, 2]


def test_columns_with_a_dict_or_lists_are_products_still(p, frame):
    lists = p.groupby(["state", "sex"], keys=[["CA", "NY"], ["F", "M"]]).size(epsilon=SURE)
    named = p.groupby(["state", "sex"], keys={"state": ("CA", "NY"), "sex": ("F", "M")}).size(
        epsilon=SURE
    )
    mixed = p.groupby(["state", "sex"], keys=[("CA", "NY"), ["F", "M"]]).size(epsilon=SURE)
    assert lists.tolist() == named.tolist() == mixed.tolist() == [2, 0, 1, 1]


def test_combinations_are_declared_once(frame):
    p = frame.dp.open(1000, keys={("state", "sex"): PAIRS, "state": ["CA"], "sex": ["F"]})
    assert p.groupby(["state", "sex"]).size(epsilon=SURE).tolist() == [1, 2, 0]
    turned = p.groupby(["sex", "state"]).size(epsilon=SURE)
    assert list(turned.index) == [pair[::-1] for pair in PAIRS]
    assert turned.tolist() == [1, 2, 0]
    renamed = p.rename(columns={"sex": "gender"}).groupby(["state", "gender"]).size(epsilon=SURE)
    assert renamed.index.names == ["state", "gender"]
    assert p.groupby("state").size(epsilon=SURE).tolist() == [3]
    assert p.groupby(["state", "sex"], keys={"sex": ["M"]}).size(epsilon=SURE).tolist() == [0]
    assert (
        "('state', 'sex'): [['NY', 'M'], ['CA', 'F'], ['TX', 'M']]"
        in p.declarations["value"].tolist()
    )
    assert (
        frame.dp.open(
            1000, keys={("state", "sex"): PAIRS, "state": ["CA"], "sex": ["F"]}
        ).budget.spent
        > 0
    )


def test_people_are_bounded_by_combination(frame):
    rows = pd.DataFrame({"id": 1, "a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    p = rows.dp.open(1000, unit="id", max_rows=1, max_groups=2)
    keys = [(0, 0), (1, 1), (0, 1), (1, 0)]
    found = p.groupby(["a", "b"], keys=keys).size(epsilon=300)
    assert sorted(found) == [0, 0, 1, 1]
    assert p.explain.groupby(["a", "b"], keys=keys).size(epsilon=1).sensitivity == 2


@pytest.mark.parametrize("table", [2**22, 0], ids=["looked up", "searched"])
def test_random_lists_count_as_pandas_does(table, monkeypatch):
    monkeypatch.setattr(SIZES, "table_codes", table)
    monkeypatch.setattr(SIZES, "key_block", 64)
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.integers(0, 6, (500, 4)), columns=list("abcd"))
    leaves = [Column.of(i, c, frame.dtypes.iloc[i]) for i, c in enumerate(frame.columns)]
    for size in (1, 7, 200):
        keys = list(dict.fromkeys(map(tuple, rng.integers(0, 7, (size, 4)).tolist())))
        by = TupleBy.of(leaves, Tuples.of(keys, leaves, list("abcd")))
        buckets = PandasEngine(frame).groups.find_buckets((by,))
        assert buckets is not None
        place = {key: i + 1 for i, key in enumerate(keys)}
        assert buckets.tolist() == [
            place.get(row, 0) for row in frame.itertuples(index=False, name=None)
        ]


def test_many_combinations_are_found_each_in_its_rows():
    n = 200_000
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 1000, n), "b": rng.integers(0, 1000, n)})
    leaves = [Column.of(i, c, frame.dtypes.iloc[i]) for i, c in enumerate(frame.columns)]
    keys = pd.MultiIndex.from_product([range(0, 1000, 2), range(0, 1000, 2)])[::-5]
    by = TupleBy.of(leaves, Tuples.of(keys, leaves, ["a", "b"]))
    found = PandasEngine(frame).groups.find_buckets((by,))
    assert found is not None
    assert np.count_nonzero(found) == frame.set_index(["a", "b"]).index.isin(keys).sum()


WRONG_TUPLES = {
    "twice": ([("CA", "F"), ("CA", "F")], dpframe.BadValue, "twice"),
    "too short": ([("CA", "F"), ("CA",)], dpframe.BadValue, "one key for each of 'state', 'sex'"),
    "too long": ([("CA", "F", 1)], dpframe.BadValue, "one key for each"),
    "another dtype": ([("CA", 3)], dpframe.BadType, "a key of 'sex' is an int"),
    "unhashable": ([("CA", ["F"])], dpframe.BadType, "hashable"),
    "a set": ({("CA", "F")}, dpframe.BadType, "ordered list"),
    "levels": (pd.MultiIndex.from_tuples([("CA", "F", 1)]), dpframe.BadValue, "one key for each"),
    "no rows": (pd.MultiIndex.from_tuples([("CA", "F")])[:0], dpframe.BadValue, "empty"),
}


@pytest.mark.parametrize("name", WRONG_TUPLES)
def test_wrong_combinations_are_refused_and_cost_nothing(p, name):
    keys, error, match = WRONG_TUPLES[name]
    with pytest.raises(error, match=match):
        p.groupby(["state", "sex"], keys=keys)
    assert p.budget.spent == 0


def test_what_combinations_do_not_go_with(frame):
    for keys, error in (
        (("state", "gender"), dpframe.UnknownColumn),
        (("state", "sex"), dpframe.BadValue),
    ):
        with pytest.raises(error):
            frame.dp.open(1, keys={keys: PAIRS if error is dpframe.UnknownColumn else ["CA", "NY"]})
    p = frame.dp.open(1)
    with pytest.raises(dpframe.BadValue, match="with None in them"):
        p.groupby(["state", "sex"], keys=PAIRS, dropna=False)
    with pytest.raises(dpframe.NotOffered, match="one column"):
        p.groupby(["state", "sex"], keys=PAIRS, other="rest")
    with pytest.raises(dpframe.NotOffered, match="unstack"):
        p.pivot_table("x", "state", "sex", keys=PAIRS)
    with pytest.raises(dpframe.NotOffered, match="periods"):
        p.assign(t=pd.Timestamp("2024-01-01")).groupby(
            [pd.Grouper(key="t", freq="D"), "sex"], keys=PAIRS
        )
    with pytest.raises(dpframe.BadType, match="is a tuple"):
        p.groupby("state", keys=[("CA",)])


# The rest -------------------------------------------------------------------------------------------------------


def test_the_rest_is_one_last_group(p, frame):
    found = p.groupby("state", keys=["NY", "CA"], other="elsewhere").size(epsilon=SURE)
    assert found.to_dict() == {
        "NY": 2,
        "CA": 3,
        "elsewhere": 2,
    }  # TX and WA; the null is in no group
    assert found.index.name == "state"
    sums = p.groupby("state", keys=["CA", "NY"], other="elsewhere")["x"].sum(epsilon=SURE)
    assert sums.round().tolist() == [11, 6, 8]
    with_null = p.groupby("state", keys=["CA", None], other="elsewhere").size(epsilon=SURE)
    assert with_null.tolist() == [3, 1, 4]
    ordered = p.groupby("state", keys=["NY", "CA"], other="elsewhere", sort=True).size(epsilon=SURE)
    assert list(ordered.index) == ["CA", "NY", "elsewhere"]
    counts = p.value_counts("state", keys=["CA", "NY"], other="elsewhere", epsilon=SURE)
    assert counts.to_dict() == {"CA": 3, "NY": 2, "elsewhere": 2}
    shares = p.value_counts(
        "state", keys=["CA", "NY"], other="elsewhere", normalize=True, epsilon=SURE
    )
    assert shares.sum() == pytest.approx(1)


def test_the_rest_of_columns_of_every_kind(frame):
    frame = frame.assign(
        day=pd.Timestamp("2024-01-01") + pd.to_timedelta(frame["n"], "D"),
        smoker=frame["x"] % 2 == 0,
    )
    frame["kind"] = pd.Series([1, "a", 2.5, ["list"], None, "b", True, "a"], dtype=object)
    frame["arrow"] = frame["state"].astype("string[pyarrow]")
    p = frame.dp.open(1000)

    def sizes(column, keys, label="rest"):
        return p.groupby(column, keys=keys, other=label).size(epsilon=SURE).tolist()

    assert sizes("n", [3, 1]) == [2, 3, 3]
    assert sizes("n", range(2, 4), 0) == [3, 2, 3]
    assert sizes("day", ["2024-01-02"]) == [3, 5]
    assert sizes("smoker", [True]) == [4, 4]
    assert sizes("kind", ["a"]) == [2, 5]  # cells that are no scalar are not listed either
    assert sizes("arrow", ["CA"]) == [3, 4]
    banded = p.assign(band=p["x"].cut([0, 4, 7], labels=["low", "high"]))  # zero is in no band
    found = banded.groupby("band", keys=["low"], other="rest").size(epsilon=SURE)
    assert found.tolist() == [4, 3]
    found = banded.groupby("band", other="rest").size(epsilon=SURE)
    assert found.tolist() == [4, 3, 0]
    assert found.index.categories.tolist() == ["low", "high", "rest"]


def test_the_rest_has_room_beyond_a_byte():
    frame = pd.DataFrame({"n": np.arange(600) % 300})
    found = frame.dp.open(100).groupby("n", keys=range(255), other="rest").size(epsilon=SURE)
    assert found.iloc[:255].tolist() == [2] * 255
    assert found["rest"] == 90


def test_the_rest_of_one_of_several_columns(p):
    keys = {"state": ["CA"], "sex": ["F", "M"]}
    found = p.groupby(["state", "sex"], keys=keys, other={"state": "else"}).size(epsilon=SURE)
    assert found.to_dict() == {("CA", "F"): 2, ("CA", "M"): 0, ("else", "F"): 2, ("else", "M"): 2}


@pytest.mark.parametrize("top", [2**64 - 1, 2**63, 2**63 - 1])
def test_large_unsigned_numbers_are_no_negative_keys(top):
    frame = pd.DataFrame({"v": np.array([0, 1, top, top], dtype="uint64")})
    wrapped = top - 2**64
    p = frame.dp.open(1000)
    found = p.groupby("v", keys=[-1, 0, 1, 2]).size(epsilon=300)
    assert found.tolist() == [0, 1, 1, 0]
    if wrapped >= -(2**63):
        assert p.groupby("v", keys=[wrapped, 1]).size(epsilon=300).tolist() == [0, 1]


@pytest.mark.parametrize("dtype", ["float64", "Int64", "object", "datetime64[ns]", "boolean"])
def test_a_listed_null_finds_the_nulls_of_any_dtype(dtype):
    cells = {
        "object": ["a", None, None],
        "datetime64[ns]": ["2024-01-01", None, None],
        "boolean": [True, None, None],
    }
    column = pd.Series(cells.get(dtype, [1, None, None])).astype(dtype)
    p = pd.DataFrame({"v": column}).dp.open(1000)
    assert p.groupby("v", keys=[column[0], None], dropna=False).size(epsilon=300).tolist() == [1, 2]
    assert p.groupby("v", keys=[None, column[0]], dropna=False).size(epsilon=300).tolist() == [2, 1]


def test_people_are_bounded_again_after_keys_have_become_one():
    """In five states that are not listed, one person is in one group: the limit does not choose among those states."""
    rows = pd.DataFrame(
        {"id": [1] * 6 + [2], "state": ["CA", "a", "b", "c", "d", "e", "CA"], "x": 1.0}
    )
    p = rows.dp.open(1000, unit="id", max_rows=1, max_groups=2, bounds={"x": (0, 1)})
    assert p.groupby("state", keys=["CA"], other="else").size(epsilon=300).tolist() == [2, 1]
    assert p.groupby("state", keys=["CA"], other="else").nunique("id", epsilon=300).tolist() == [
        2,
        1,
    ]
    rows = rows.copy()
    rows.attrs.clear()
    q = rows.dp.open(1000, unit="id", max_rows=4, max_groups=1, because="the same rows in a test")
    found = q.groupby("state", keys=["zz"], other="else").size(epsilon=300)
    assert found.tolist() == [0, 5]  # four of the six rows, and one
    assert q.explain.groupby("state", keys=["zz"], other="else").size(epsilon=1).sensitivity == 4


WRONG_LABELS = {
    "a listed key": ("CA", dpframe.BadValue, "one of the listed keys"),
    "a null": (np.nan, dpframe.BadType, "label"),
    "a list": (["CA"], dpframe.BadType, "label"),
    "another column": ({"sex": "rest"}, dpframe.BadValue, "not grouped by"),
}


@pytest.mark.parametrize("name", WRONG_LABELS)
def test_wrong_labels_are_refused(p, name):
    label, error, match = WRONG_LABELS[name]
    with pytest.raises(error, match=match):
        p.groupby("state", keys=["CA"], other=label)
    assert p.budget.spent == 0


def test_labels_that_python_holds_for_equal_are_other_questions(p):
    assert p.groupby("n", keys=[3], other=1).size(epsilon=SURE).index.tolist() == [3, 1]
    floats = p.groupby("n", keys=[3], other=1.0).size(epsilon=SURE)
    assert floats.index.dtype == np.float64
    with pytest.raises(dpframe.BadValue, match="listed keys"):
        p.groupby("n", keys=[3], other=3.0)
    with pytest.raises(dpframe.BadType, match="dict by column"):
        p.groupby(["n", "state"], keys={"n": [3], "state": ["CA"]}, other="rest")


def test_a_value_between_two_of_many_listed_ones_is_none_of_them():
    keys = [k * 2**30 for k in range(300)]
    df = pd.DataFrame(
        {"x": np.repeat([keys[0], keys[7] + 1, keys[299] + 1, -1, keys[299]], [5, 10, 15, 20, 25])}
    )
    answer = df.dp.open(1000).groupby("x", keys=keys).size(epsilon=900)
    assert {k: n for k, n in answer.items() if n} == {keys[0]: 5, keys[299]: 25}


def test_of_equal_values_the_first_counts():
    df = pd.DataFrame({"x": np.array([1, 2, 2], dtype="int64")})
    column = PandasEngine(df).table.column(Column.of(0, "x", df["x"].dtype))
    assert finder([(2, 1), (1, 2), (2.0, 3), (1.0, 4)])(column).tolist() == [2, 1, 1]


@pytest.mark.parametrize("other", [True, 1.0])
def test_listed_combination_with_an_equal_key_of_another_type_is_refused(other):
    """1, 1.0 and True are one key to pandas. Neither is taken for the other in silence."""
    p = pd.DataFrame({"a": pd.Series([1, True, 1.0], dtype=object), "b": ["x", "y", "y"]}).dp.open(
        1
    )
    with pytest.raises(dpframe.BadValue, match="not distinct"):
        p.groupby(["a", "b"], keys=[(1, "x"), (other, "y")])
