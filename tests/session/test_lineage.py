"""Which frames a session recognises as its own: the root, provably, and nothing that pandas made of it."""

from __future__ import annotations

import pickle

import pandas as pd
import pytest

import dpframe
from dpframe import LineageError, NoSession
from tests.visits import BOUNDS, KEYS, used

# Lineage ------------------------------------------------------------------------------------------------------

ROOT = {
    "df": lambda d: d,
    "columns": lambda d: d[["age", "state"]],
    "rename": lambda d: d.rename(columns={"age": "years"}),
    "drop a column": lambda d: d.drop(columns="cost"),
    "another order of columns": lambda d: d[["state", "cost", "age"]],
}
DERIVED = {
    "shallow copy": lambda d: d.copy(deep=False),
    "a whole slice": lambda d: d.iloc[:],
    "query that keeps every row": lambda d: d.query("age > -1"),
    "mask that keeps every row": lambda d: d[d["age"] > -1],
    "query": lambda d: d.query("age > 30"),
    "mask": lambda d: d[d["age"] > 30],
    "head": lambda d: d.head(3),
    "tail": lambda d: d.tail(3),
    "iloc": lambda d: d.iloc[1:4],
    "loc": lambda d: d.loc[[0, 2]],
    "nlargest": lambda d: d.nlargest(3, "age"),
    "sample": lambda d: d.sample(3, random_state=1),
    "sample with replacement": lambda d: d.sample(12, replace=True, random_state=1),
    "drop_duplicates": lambda d: d.drop_duplicates("state"),
    "drop rows": lambda d: d.drop([0, 1]),
    "dropna": lambda d: d.dropna(),
    "fillna": lambda d: d.fillna({"cost": 0}),
    "ffill": lambda d: d.ffill(),
    "assign": lambda d: d.assign(age=d["age"] * 2),
    "assign a new column": lambda d: d.assign(new=1),
    "sort_values": lambda d: d.sort_values("age"),
    "sort_index": lambda d: d.sort_index(ascending=False),
    "reset_index": lambda d: d.reset_index(drop=True),
    "set_index": lambda d: d.set_index("age"),
    "reindex": lambda d: d.reindex([5, 4, 3, 2, 1, 0]),
    "repeat": lambda d: d.loc[d.index.repeat(2)],
    "concat": lambda d: pd.concat([d, d]),
    "concat, new index": lambda d: pd.concat([d, d], ignore_index=True),
    "melt": lambda d: d.melt(id_vars="state"),
    "merge": lambda d: d.merge(d, on="age"),
    "explode": lambda d: d.assign(state=[["CA", "NY"]] * len(d)).explode("state"),
    "rank": lambda d: d[["age", "cost"]].rank(),
    "shift": lambda d: d.shift(),
    "diff": lambda d: d[["age", "cost"]].diff(),
    "cumsum": lambda d: d[["age", "cost"]].cumsum(),
    "transform": lambda d: d.groupby("state")[["age"]].transform("mean"),
    "apply": lambda d: d[["age"]].apply(lambda c: c - c.mean()),
    "aggregate": lambda d: d[["age", "cost"]].agg(["mean", "max"]),
    "describe": lambda d: d.describe(),
    "clip": lambda d: d[["age", "cost"]].clip(0, 50),
    "astype": lambda d: d.astype({"age": float}),
    "arithmetic": lambda d: d[["age", "cost"]] * 2,
    "transpose": lambda d: d[["age", "cost"]].T,
    "where": lambda d: d.where(d["age"] > 30),
    "replace": lambda d: d.replace({"state": {"CA": "NY"}}),
    "deep copy": lambda d: d.copy(),
}


@pytest.mark.parametrize("made", ROOT)
def test_frame_that_is_provably_the_root_answers(df, made):
    p = df.dp.open(1000, bounds=BOUNDS)
    frame = ROOT[made](df)
    assert frame.dp.count(epsilon=300) == len(df)
    assert frame.dp.ledger.equals(p.ledger)
    name = "years" if "years" in frame else "age"
    assert frame.dp.mean(name, epsilon=300) == pytest.approx(df["age"].mean(), abs=2)


@pytest.mark.parametrize("made", DERIVED)
def test_frame_that_pandas_derived_is_refused(df, made):
    p = df.dp.open(1, bounds=BOUNDS, keys=KEYS)
    frame = DERIVED[made](df)
    asked = [
        lambda: frame.dp.count(),
        lambda: frame.dp.mean("age", bounds=(0, 1)),
        lambda: frame.dp.query("age > 1"),
        lambda: frame.dp["age"],
        lambda: frame.dp.groupby("state").size(),
        lambda: frame.dp.explain.count(),
        lambda: frame.dp.counts({"old": "age > 80"}),
        lambda: frame.dp.choose([1, 2], lambda q, c: -abs(q["age"] - c)),
        lambda: frame.dp.open(1, bounds=BOUNDS, keys=KEYS),
    ]
    for ask in asked:
        with pytest.raises((LineageError, NoSession)) as caught:
            ask()
        if "dpframe" in frame.attrs:
            assert isinstance(caught.value, LineageError)
    if "dpframe" in frame.attrs:  # it finds budget and ledger all the same
        assert frame.dp.budget == p.budget
        assert "derived by pandas" in repr(frame.dp)
    assert used(p) == 0


def test_lineage_cases_are_as_many_as_promised():
    assert len(ROOT) + len(DERIVED) >= 40


def test_series_of_the_root_answers_and_others_are_refused(df):
    df.dp.open(1000, bounds=BOUNDS)
    assert df["age"].dp.count(epsilon=900) == 6
    for series in (
        df["age"] * 2,
        df["age"].head(3),
        df["age"].sort_values(),
        df["age"].fillna(0)[::-1],
    ):
        with pytest.raises(LineageError):
            series.dp.count()
    with pytest.raises(NoSession):
        pd.Series([1, 2]).dp.count()


EDITS = {
    "a column": lambda d: d.__setitem__("age", 0),
    "the same values again": lambda d: d.__setitem__("age", d["age"].to_numpy().copy()),
    "a cell by loc": lambda d: d.loc.__setitem__((0, "age"), 99),
    "a cell by iloc": lambda d: d.iloc.__setitem__((0, 0), 99),
    "a cell by at": lambda d: d.at.__setitem__((0, "state"), "WA"),
    "an inserted column": lambda d: d.insert(0, "new", 1),
    "dropped rows": lambda d: d.drop(0, inplace=True),
    "dropped nulls": lambda d: d.dropna(inplace=True),
    "sorted": lambda d: d.sort_values("age", inplace=True),
    "a new row": lambda d: d.loc.__setitem__(len(d), [1, 1.0, "CA"]),
    "a new index": lambda d: setattr(d, "index", list("abcdef")),
    "reset": lambda d: d.reset_index(inplace=True),
}


def test_names_that_are_swapped_in_place_leave_bounds_with_their_columns(df):
    p = df.dp.open(1, bounds=BOUNDS)
    df.columns = ["cost", "age", "state"]
    assert df.dp.explain.sum("age").sensitivity == 1000
    assert df.dp.explain.sum("cost").sensitivity == 110
    assert p.explain.sum("age").sensitivity == 110


@pytest.mark.filterwarnings("ignore:The inplace keyword")
@pytest.mark.parametrize("edit", EDITS)
def test_edit_in_place_is_noticed_and_the_frame_as_it_stood_still_answers(df, edit):
    p = df.dp.open(1000, bounds=BOUNDS)
    EDITS[edit](df)
    with pytest.raises(LineageError, match="edited after its session was opened"):
        df.dp.count(epsilon=1)
    assert p.count(epsilon=400) == 6
    assert p.sum("age", epsilon=400) == pytest.approx(31 + 47 + 66 + 80 + 12 + 55, abs=9)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pd.DataFrame({"x": pd.array([1, None, 3], dtype="Int64")}),
        lambda: pd.DataFrame({"x": pd.array([1, 2, 3], dtype="int64[pyarrow]")}),
        lambda: pd.DataFrame({"x": pd.Categorical(["a", "b", "a"])}),
        lambda: pd.DataFrame({"x": pd.to_datetime(["2020-01-01"] * 3).tz_localize("UTC")}),
        lambda: pd.DataFrame({"x": pd.interval_range(0, 3)}),
        lambda: pd.DataFrame({"x": pd.period_range("2020", periods=3, freq="D")}),
        lambda: pd.DataFrame({"x": pd.arrays.SparseArray([0, 0, 1])}),
        lambda: pd.DataFrame({"x": pd.Series(["a", "b", None], dtype="string[python]")}),
        lambda: pd.DataFrame({"x": pd.Series([{}, [], 1], dtype=object)}),
    ],
    ids=[
        "Int64",
        "arrow",
        "categorical",
        "zoned",
        "interval",
        "period",
        "sparse",
        "string",
        "object",
    ],
)
def test_root_is_recognised_and_a_copy_is_not_for_every_kind_of_array(make):
    frame = make()
    frame.dp.open(1000)
    assert frame.dp.count(epsilon=300) == 3
    assert frame.rename(columns={"x": "y"}).dp.count(epsilon=300, fresh=True) == 3
    others = [frame.iloc[::-1], frame.head(2)]
    if not isinstance(
        frame["x"].dtype, pd.ArrowDtype
    ):  # whose copies share the same immutable cells
        others.append(frame.copy())
    for other in others:
        with pytest.raises(LineageError):
            other.dp.count()


# The name in attrs --------------------------------------------------------------------------------------------


def test_attrs_hold_a_plain_string_that_pickle_and_parquet_keep(df, tmp_path):
    p = df.dp.open(1, bounds=BOUNDS)
    assert df.attrs == {"dpframe": p._session.name}
    assert type(df.attrs["dpframe"]) is str
    df.to_parquet(tmp_path / "visits.parquet")
    for frame in (pd.read_parquet(tmp_path / "visits.parquet"), pickle.loads(pickle.dumps(df))):
        assert frame.attrs == df.attrs
        with pytest.raises(LineageError):
            frame.dp.count()


@pytest.mark.parametrize(
    "name", ["0" * 32, "", 7, ["x"], object()], ids=lambda name: type(name).__name__
)
def test_name_of_a_lost_session_refuses_and_opens_no_new_budget(df, name):
    df.attrs["dpframe"] = name
    for ask in (
        lambda: df.dp.count(),
        lambda: df.dp.open(1),
        lambda: dpframe.private(df),
        lambda: df["age"].dp.mean(),
    ):
        with pytest.raises(NoSession, match="not in this process"):
            ask()


def test_column_with_equal_codes_and_other_categories_is_another(df):
    """Whatever shares its codes with a categorical says other words with them."""
    df["state"] = df["state"].astype("category")
    p = df.dp.open(10)
    words = df["state"].array
    renamed = pd.Categorical.from_codes(words.codes, ["NY", "WA", "CA"])
    frame = pd.Series(renamed, index=df.index, name="state", copy=False).to_frame()
    frame.attrs = df.attrs
    with pytest.raises(LineageError):
        frame.dp.groupby("state", keys=["CA", "NY"]).size(epsilon=1)
    assert df[["state"]].dp.groupby("state", keys=["CA", "NY"]).size(epsilon=1).index.tolist() == [
        "CA",
        "NY",
    ]
    assert used(p) == 1


def test_name_of_another_session_refuses(df):
    other = pd.DataFrame({"age": [1, 2]})
    other.dp.open(1)
    df.attrs["dpframe"] = other.attrs["dpframe"]
    with pytest.raises(LineageError):
        df.dp.count()


def test_adding_a_marked_frame_does_not_move_a_frame_into_its_session(df):
    left, right = df[["age"]].copy(), df[["age"]].copy()
    left.dp.open(1)
    right.dp.open(1, because="a test")
    with pytest.raises(LineageError):
        (left + right).dp.count()


def test_frame_without_session_says_how_to_open_one(df):
    for ask in (lambda: df.dp.mean("age"), lambda: df.dp.budget, lambda: df.dp.query("age > 1")):
        with pytest.raises(NoSession, match=r"df\.dp\.open\(epsilon=1"):
            ask()
    with pytest.raises(NoSession):
        dpframe.private(df)
    with pytest.raises(TypeError):
        dpframe.private(df["age"])
