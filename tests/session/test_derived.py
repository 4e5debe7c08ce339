"""Rows made by explode, melt and merge: those of pandas, under the same budget, each its person's own."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import (
    BadType,
    BadValue,
    BudgetExceeded,
    LineageError,
    Refused,
    SessionError,
    UnknownColumn,
)

LISTS = {
    "lists": [["a", "b"], [], None, ["c"], "d", ("e", "f")],
    "arrays": [np.array([1, 2]), np.array([]), 3, None, {4}, [5.5]],
}


@pytest.fixture
def df():
    return pd.DataFrame(
        {
            "id": [1, 1, 2, 3, 3, 4],
            "x": [1.0, 2.0, None, 4.0, 5.0, 6.0],
            "y": [10, 20, 30, 40, 50, 60],
            "s": ["a", "b", None, "a", "c", "b"],
            "codes": pd.Series(LISTS["lists"], dtype=object),
            "t": pd.date_range("2024-01-01", periods=6, tz="Europe/Berlin"),
        }
    )


BOUNDS = {"x": (0, 10), "y": (0, 100)}


def rows_of(q):
    """The rows that a derived frame holds, by the names that are seen, in any order."""
    frame = q._session.snapshot.iloc[:, : len(q.columns)]
    frame.columns = q.columns
    return sorted_rows(frame)


def sorted_rows(frame):
    cells = [
        tuple("null" if pd.isna(c) is True or c is pd.NA else str(c) for c in row)
        for row in frame.astype(object).to_numpy()
    ]
    return sorted(cells)


@pytest.mark.parametrize("unit", [None, "id"])
@pytest.mark.parametrize("cells", LISTS)
def test_explode_is_that_of_pandas(df, unit, cells):
    df["codes"] = pd.Series(LISTS[cells], dtype=object)
    p = df.dp.open(1, unit=unit)
    assert rows_of(p.explode("codes")) == sorted_rows(df.explode("codes"))
    some = p.query("y > 15")[["codes", "y"]].explode("codes")
    assert rows_of(some) == sorted_rows(df[df["y"] > 15][["codes", "y"]].explode("codes"))


def test_explode_can_make_numbers_and_texts():
    df = pd.DataFrame({"l": [[1, 2.5, "x", None, 10**400], [True]]})
    p = df.dp.open(900)
    q = p.explode("l", dtype="float", max_rows=5)
    assert rows_of(q) == sorted([("1.0",), ("2.5",), ("null",), ("null",), ("inf",), ("1.0",)])
    assert abs(q.sum("l", bounds=(0, 3), epsilon=400) - 7.5) < 1
    assert rows_of(p.explode("l", dtype="str")) == sorted([("x",), *[("null",)] * 5])


@pytest.mark.parametrize("inner", ["float64", "string"])
def test_explode_of_arrow_lists_has_the_dtype_of_their_elements(inner):
    pa = pytest.importorskip("pyarrow")
    lists = [[1, 2], [], None, [3]] if inner == "float64" else [["a", "b"], [], None, ["c"]]
    kind = pa.list_(getattr(pa, inner)())
    df = pd.DataFrame({"i": [1, 2, 3, 4], "l": pd.array(lists, dtype=pd.ArrowDtype(kind))})
    q = df.dp.open(1).explode("l")
    assert rows_of(q) == sorted_rows(df.explode("l"))
    with pytest.raises(BadType, match="one type already"):
        df.dp.explode("l", dtype="str")
    assert q._selection.columns["l"].kind == ("number" if inner == "float64" else "text")


@pytest.mark.parametrize("unit", [None, "id"])
@pytest.mark.parametrize(
    ("ids", "values"),
    [
        ("id", ["x", "y"]),
        (["s", "id"], ["x"]),
        (None, ["x", "y"]),
        (["id", "t"], ["s"]),
        ("id", ["t"]),
    ],
)
def test_melt_is_that_of_pandas(df, unit, ids, values):
    p = df.dp.open(1, unit=unit)
    ours, theirs = p.melt(ids, values, "what", "v"), df.melt(ids, values, "what", "v")
    assert ours.columns.tolist() == theirs.columns.tolist()
    assert rows_of(ours) == sorted_rows(theirs)


TABLE = pd.DataFrame(
    {"s": ["a", "b", None, "z"], "y": [1, 2, 3, 4], "flag": [True, False, True, True]}
)
MANY = pd.DataFrame({"s": ["a", "a", "b"], "w": [1.5, 2.5, 3.5]})


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("table", [TABLE, MANY, TABLE.iloc[:0]], ids=["unique", "many", "empty"])
@pytest.mark.parametrize("storage", ["str", "category", "object", "string[pyarrow]"])
def test_merge_is_that_of_pandas_but_for_null_keys(df, how, table, storage):
    df["s"] = df["s"].astype(storage)
    ours = df.drop(columns="codes").dp.open(1).merge(table, how=how, on="s")
    theirs = df.drop(columns="codes").merge(table.dropna().astype({"s": object}), how=how, on="s")
    assert ours.columns.tolist() == theirs.columns.tolist()
    floats = {c: "float64" for c in ("y_y", "flag") if c in theirs}
    ours._session.snapshot.columns = [
        *ours.columns,
        *ours._session.snapshot.columns[len(ours.columns) :],
    ]
    assert sorted_rows(ours._session.snapshot[ours.columns].astype(floats)) == sorted_rows(
        theirs.astype(floats)
    )


def test_merge_by_several_keys_by_numbers_and_by_times(df):
    p = df.drop(columns="codes").dp.open(1)
    two = pd.DataFrame({"who": [1.0, 3.0, 3.0, 9.0], "s": ["b", "a", "c", "a"], "v": [1, 2, 3, 4]})
    ours = p.merge(two, left_on=["id", "s"], right_on=["who", "s"])
    assert ours.columns.tolist() == ["id", "x", "y", "s", "t", "who", "v"]
    assert rows_of(
        ours[["id", "s"]].merge(two, left_on=["id", "s"], right_on=["who", "s"])
    ) == sorted([("1", "b", "1.0", "1"), ("3", "a", "3.0", "2"), ("3", "c", "3.0", "3")])
    days = pd.DataFrame({"t": df["t"].iloc[[0, 5]].dt.tz_convert("UTC"), "d": [1, 2]})
    assert rows_of(p[["t", "y"]].merge(days, on="t").drop(columns="t").melt("y"))[0] == (
        "10",
        "d",
        "1",
    )


def test_bounds_and_keys_go_with_their_columns(df):
    p = df.dp.open(900, unit="id", max_rows=2, max_groups=2, bounds=BOUNDS, keys={"s": ["b", "a"]})
    q = p.rename(columns={"s": "kind"}).assign(half="y / 2", old="y > 25").explode("codes")
    assert q.explain.sum("half", epsilon=1).sensitivity == 100
    assert q.groupby("kind").size(epsilon=90).index.tolist() == ["b", "a"]
    assert q.groupby("old").size(epsilon=90).index.tolist() == [False, True]
    with pytest.raises(dpframe.MissingKeys):
        q.groupby("codes").size()
    tall = p.melt("id", ["x", "y"])
    assert tall._session.bounds[2] == (0, 100)
    assert tall.groupby("variable").size(epsilon=90).index.tolist() == ["x", "y"]
    merged = p.merge(TABLE.rename(columns={"y": "grade"}), on="s", how="left")
    assert merged._session.bounds[merged.columns.get_loc("grade")] == (1, 4)
    assert merged.groupby("s").size(epsilon=90).index.tolist() == ["b", "a"]


def test_limits_are_asked_for_where_nothing_proves_them(df):
    p = df.dp.open(1, bounds=BOUNDS)
    with pytest.raises(BadValue, match="max_rows= is not known"):
        p.explode("codes").count()
    assert p.explode("codes", max_rows=5, max_groups=2).explain.count().sensitivity == 5
    assert p.explode("codes").explain.count(max_rows=4).sensitivity == 4
    assert p.melt("id", ["x", "y"]).explain.count().sensitivity == 2
    assert p.merge(MANY, on="s").explain.count().sensitivity == 2
    assert p.merge(TABLE, on="s").explain.count().sensitivity == 1
    assert p.merge(MANY, on="s").melt("id", ["x", "w"]).explain.count().sensitivity == 4
    with pytest.raises(BadValue, match="not needed"):
        p.merge(TABLE, on="s", max_rows=1)
    with pytest.raises(BadValue, match="at least 1"):
        p.explode("codes", max_rows=0)


def test_one_budget_for_all_that_is_derived(df):
    p = df.dp.open(1, unit="id", max_rows=3, max_groups=2, bounds=BOUNDS)
    q = p.explode("codes")
    tall = q.melt("id", ["x", "y"])
    for frame in (p, q, tall):
        frame.count(epsilon=0.25)
    assert p.budget.remaining == q.budget.remaining == tall.budget.remaining == 0.25
    with pytest.raises(BudgetExceeded):
        tall.sum("value", epsilon=0.5)
    assert len(q.ledger) == 3
    assert "explode('codes')" in q.ledger["declared"].iloc[1]
    assert p.nunique("id", epsilon=0.1) is not None
    assert tall.nunique("id", epsilon=0.1) is not None


def test_asking_again_is_free_for_the_same_steps_and_for_no_others(df):
    p = df.dp.open(1000, unit="id", max_rows=3, max_groups=2, bounds=BOUNDS, keys={"s": ["a", "b"]})
    steps = [
        lambda: p,
        lambda: p.explode("codes"),
        lambda: p.query("y > 15").explode("codes"),
        lambda: p.assign(y="y + 0").explode("codes"),
        lambda: p.explode("codes").merge(MANY, on="s"),
        lambda: p.merge(MANY, on="s"),
        lambda: p.merge(MANY.assign(w=[1.5, 2.5, 3.25]), on="s"),
        lambda: p.merge(MANY, on="s", how="left"),
        lambda: p.melt(["id", "s"], ["x", "y"]),
        lambda: p.melt(["id", "s"], ["x"]),
    ]
    first = [step().count(epsilon=1) for step in steps]
    assert p.budget.spent == len(steps)
    assert len(set(map(float, first))) > 1
    assert [step().count(epsilon=1) for step in steps] == first
    assert p.budget.spent == len(steps)


def test_pipe_and_adopt_are_paid_anew_each_time(df):
    p = df.dp.open(1000, unit="id", max_rows=3)
    other = df[["id"]].copy()
    made = [
        p.pipe(lambda d: d, bounds={}),
        p.pipe(lambda d: d, bounds={}),
        p.adopt(other, because="x"),
        p.adopt(other, because="x"),
    ]
    for q in made:
        q.count(epsilon=1, name="rows")
        q.count(epsilon=1)
        q.count(epsilon=2, name="rows")
    assert p.budget.spent == len(made)


def test_a_name_belongs_to_one_question_of_one_frame(df):
    p = df.dp.open(100, unit="id", max_rows=3)
    p.count(epsilon=1, name="rows")
    q = p.explode("codes")
    assert q.count(epsilon=1, name="rows") is not None
    assert p.explode("codes").count(epsilon=5, name="rows") == q.count(epsilon=1, name="rows")
    assert p.budget.spent == 2
    with pytest.raises(BadValue, match="another question"):
        q.count("x", epsilon=1, name="rows")


def test_a_ledger_file_knows_the_steps_in_the_next_process(df, tmp_path):
    terms = {
        "epsilon": 10,
        "unit": "id",
        "max_rows": 3,
        "ledger": tmp_path / "l.db",
        "population": "patients",
    }
    p = df.dp.open(**terms)
    first = p.explode("codes").merge(MANY, on="s").count(epsilon=1)
    p.pipe(lambda d: d, bounds={}).count(epsilon=1, name="piped")
    p.close()
    again = pd.DataFrame(df.to_dict("list")).astype(df.dtypes).dp.open(**terms)
    assert again.explode("codes").merge(MANY, on="s").count(epsilon=1) == first
    assert again.budget.spent == 2
    again.pipe(lambda d: d, bounds={}).count(epsilon=1, name="piped")
    assert again.budget.spent == 3


def test_batches_explain_and_their_limits(df):
    p = df.dp.open(
        10, 1e-6, unit="id", max_rows=3, max_groups=2, accountant="pld", keys={"s": ["a", "b"]}
    )
    q = p.explode("codes")
    assert p.explain.explode("codes").count().sensitivity == 3
    with q.plan_ahead() as batch:
        rows, groups = batch.count(), batch.groupby("s").size()
        with pytest.raises(SessionError, match="derive it first"):
            batch.explode("codes")
        with pytest.raises(SessionError, match="adopt first"):
            batch.adopt(df, because="x")
    assert rows.answer is not None
    assert groups.answer.index.tolist() == ["a", "b"]


def test_closing_the_session_closes_what_is_derived(df):
    p = df.dp.open(1)
    q = p.explode("codes", max_rows=2).merge(MANY, on="s")
    kept = q._session
    p.close()
    for ask in (
        lambda: q.count(),
        lambda: q.explain.count(),
        lambda: q.melt("s", ["w"]),
        lambda: q.pipe(lambda d: d),
    ):
        with pytest.raises(SessionError, match="closed"):
            ask()
    assert len(kept.snapshot) == 0
    r = pd.DataFrame({"x": [1.0]}).dp.open(1).melt()
    r.close()
    with pytest.raises(SessionError, match="closed"):
        r.count()


def test_derived_rows_live_as_long_as_their_frame(df):
    p = df.dp.open(1)
    q = p.explode("codes")
    gone = weakref.ref(q._session)
    assert len(p._session.derived) == 1
    del q
    gc.collect()
    assert gone() is None
    assert len(p._session.derived) == 0


def test_threads_share_the_last_of_the_budget(df):
    p = df.dp.open(1, unit="id", max_rows=3)
    frames = [p, p.explode("codes"), p.melt("id", ["x", "y"]), p.merge(MANY, on="s")]
    answered = []

    def ask(frame):
        for _ in range(5):
            try:
                answered.append(frame.count(epsilon=0.1, fresh=True))
            except BudgetExceeded:
                return

    threads = [threading.Thread(target=ask, args=(f,)) for f in frames]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(answered) == 10


def test_an_edited_root_is_refused_and_what_was_opened_goes_on(df):
    p = df.dp.open(900, bounds=BOUNDS)
    df.loc[0, "y"] = 99
    with pytest.raises(LineageError, match="edited"):
        df.dp.explode("codes")
    with pytest.raises(LineageError, match="edited"):
        df.dp.adopt(df, because="x")
    with pytest.raises(LineageError, match="derived by pandas"):
        df.query("y > 3").dp.melt()
    assert abs(p.melt("id", ["y"]).sum("value", epsilon=500) - 210) < 2


def test_private_tables_are_not_merged(df):
    p, other = df.dp.open(1), pd.DataFrame({"s": ["a"], "v": [1]})
    q = other.dp.open(1)
    for right in (
        q,
        q["s"],
        other,
        other.assign(z=1),
        df,
        df[["s"]].set_axis(["s"], axis=1),
        other.dp,
    ):
        with pytest.raises(Refused, match=r"public|private"):
            p.merge(right, on="s")
    for word, value in [
        ("how", "outer"),
        ("how", "right"),
        ("validate", "1:1"),
        ("indicator", True),
        ("left_index", True),
    ]:
        with pytest.raises(Refused):
            p.merge(**{"right": TABLE, "on": "s", word: value})
    assert "public table" not in set(p.declarations["what"])
    p.merge(TABLE, on="s")
    (word,) = p.declarations.query("what == 'public table'")["value"]
    assert word.startswith("columns ['s', 'y', 'flag'], 4 rows, hash ")


WRONG = {
    "no such column": (lambda p: p.explode("cods"), UnknownColumn),
    "no lists": (lambda p: p.explode("x"), BadType),
    "an expression": (lambda p: p.assign(z="x + 1").explode("z"), BadType),
    "several": (lambda p: p.explode(["codes", "x"]), BadType),
    "another dtype": (lambda p: p.explode("codes", dtype="int"), BadValue),
    "the unit": (lambda p: p.explode("id"), BadType),
    "kinds": (lambda p: p.melt("id", ["x", "s"]), BadType),
    "names": (lambda p: p.melt("id", ["x"], "id"), BadValue),
    "nothing": (lambda p: p[["id"]].melt("id"), BadValue),
    "no table": (lambda p: p.merge({"s": ["a"]}), BadType),
    "no key": (lambda p: p.merge(TABLE.rename(columns=str.upper)), BadValue),
    "keys of another kind": (lambda p: p.merge(TABLE, left_on="x", right_on="s"), BadType),
    "half a key": (lambda p: p.merge(TABLE, left_on="s"), BadValue),
    "both": (lambda p: p.merge(TABLE, on="s", left_on="s"), BadValue),
    "two keys for one": (lambda p: p.merge(TABLE, left_on=["s", "y"], right_on=["s"]), BadValue),
    "suffixes": (lambda p: p.merge(TABLE, on="s", suffixes=("", "")), BadValue),
    "suffixes of one": (lambda p: p.merge(TABLE, on="s", suffixes="x"), BadType),
    "columns twice": (lambda p: p.merge(pd.concat([TABLE, TABLE], axis=1), on="s"), BadValue),
}


@pytest.mark.parametrize("how", ["inner", "left"])
def test_derived_rows_have_the_public_number_only_if_all_people_are_there(df, how):
    """`n` of open is about the frame that was opened: rows without a match are gone, and how many is nobody's word."""
    p = df.dp.open(1, n=6, bounds=BOUNDS)
    assert p.explain.mean("x", within=50).epsilon > 0
    derived = p.merge(pd.DataFrame({"s": ["a", "b"], "z": [1, 2]}), on="s", how=how)
    if how == "left":
        assert derived.explain.mean("x", within=50).epsilon > 0
        return
    with pytest.raises(BadValue, match="how many values"):
        derived.explain.mean("x", within=50)
    assert derived.explain.mean("x", within=50, n=6).epsilon > 0


@pytest.mark.parametrize("verb", ["explode", "melt", "merge", "adopt", "pipe"])
def test_rows_that_were_derived_get_no_second_budget(df, verb):
    """Whoever opens a frame whose cells are those of derived rows is told of the budget that is there."""
    p = df.dp.open(1)
    other = df.loc[[0, 2, 4], ["x", "y"]].copy()
    steps = {
        "explode": lambda: p.explode("codes", max_rows=2),
        "melt": lambda: p[["x", "y"]].melt(),
        "merge": lambda: p.merge(pd.DataFrame({"s": ["a"], "z": [1]}), on="s", how="left"),
        "adopt": lambda: p.adopt(other, because="a row each, by hand"),
        "pipe": lambda: p.pipe(lambda d: d[["x", "y"]].dropna(), max_rows=1),
    }
    derived = steps[verb]()
    same = other if verb == "adopt" else derived._session.snapshot.copy(deep=False)
    same.attrs = {}
    with pytest.raises(SessionError, match="second budget"):
        same.dp.open(1)
    assert same.dp.open(1, because="the test says so").budget.remaining == 1
    assert derived.budget.remaining == 1


@pytest.mark.parametrize("kept", ["the frame", "a column", "derived rows"])
def test_a_table_that_shares_its_cells_with_private_rows_is_not_public(df, kept):
    """Whatever has lost its attrs on the way: the cells are still those of the session."""
    p = df.dp.open(1)
    derived = p.explode("codes", max_rows=2)
    table = {
        "the frame": lambda: df.copy(deep=False),
        "a column": lambda: df[["s"]],
        "derived rows": lambda: derived._session.snapshot.copy(deep=False),
    }[kept]()
    table.attrs = {}
    if kept == "derived rows":
        table.columns = [
            *derived.columns,
            *map(str, range(len(table.columns) - len(derived.columns))),
        ]
    with pytest.raises(Refused, match="not public"):
        p.merge(table, on="s", because="a test")


@pytest.mark.parametrize("kind", ["int64", "uint8", "bool"])
def test_left_merge_has_the_same_dtypes_with_and_without_matches(kind):
    table = pd.DataFrame({"k": ["a", "b"], "v": pd.Series([1, 0], dtype=kind)})
    found = []
    for cells in (["a", "b"], ["a", "c"]):
        q = pd.DataFrame({"k": cells}).dp.open(900).merge(table, on="k", how="left")
        found.append([str(q._session.snapshot.dtypes.iloc[1]), repr(q)])
    assert found[0] == found[1]
    assert found[0][0] == {"int64": "Int64", "uint8": "UInt8", "bool": "boolean"}[kind]


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_charge_nothing_and_say_the_same_for_all_cells(df, name):
    act, error = WRONG[name]
    texts = []
    for some in (df, df.iloc[:0].copy(), df.iloc[::-1].reset_index(drop=True)):
        p = some.dp.open(1, unit="id", max_rows=1, bounds=BOUNDS, because="again")
        with pytest.raises(error) as caught:
            act(p)
        texts.append(str(caught.value))
        assert p.budget.spent == 0
    assert texts[0] == texts[1] == texts[2]


def test_dtypes_do_not_depend_on_cells(df):
    """A match more or less, a null, or no rows at all: the schema of what is derived stays."""
    steps = [
        lambda p: p.explode("codes"),
        lambda p: p.assign(
            h="x / 2", n="y % 7 == 0", c=p.cut("x", [0, 3, 9]), u=p["s"].str.upper()
        ).explode("codes"),
        lambda p: p.melt("id", ["x", "y"]),
        lambda p: p.merge(TABLE, on="s", how="left"),
        lambda p: p.merge(MANY, on="s"),
        lambda p: p.assign(d=p["t"].dt.month, f=p["x"].fillna(0), i=p["y"].clip(0, 9)).melt(
            ["d", "f", "i"], ["t"]
        ),
    ]
    for step in steps:
        seen = [
            step(some.dp.open(1, because="again"))._session.snapshot.dtypes.astype(str).tolist()
            for some in (df, df.iloc[:0].copy(), df.iloc[2:3].copy(), df.iloc[[0, 3]].copy())
        ]
        assert seen[0] == seen[1] == seen[2] == seen[3]


def test_negative_whole_numbers_name_people_too():
    """Found here: ids below zero were taken for nobody."""
    df = pd.DataFrame({"id": [-5, -5, 0, 7], "l": [["a"], ["b"], [], ["a", "b"]]})
    p = df.dp.open(900, unit="id", max_rows=5)
    assert p.nunique("id", epsilon=200) == 3
    assert p.explode("l").count(epsilon=400) == 5
