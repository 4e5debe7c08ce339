"""Tracked frames that are changed: their expressions change, nothing is read, and what was taken before stays as it was."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, BadValue, LineageError, NotOffered, Refused, UnknownColumn


@pytest.fixture
def df():
    return pd.DataFrame(
        {"age": [30, 41, 85, 20], "cost": [5.0, 7.5, None, 1.0], "sex": ["F", "M", "F", None]}
    )


@pytest.fixture
def p(df):
    return df.dp.open(
        1000, queries=100, bounds={"age": (0, 110), "cost": (0, 10)}, keys={"sex": ["F", "M"]}
    )


def asked(column):
    """What a question about a column is, as text."""
    return column._frame.explain.sum(column, epsilon=1).question


CHANGES = {
    "a column that is set": lambda p: p.__setitem__("age", p["age"] * 2),
    "a new column": lambda p: p.__setitem__("half", p["age"] / 2),
    "several columns": lambda p: p.__setitem__(["age", "cost"], p[["cost", "age"]]),
    "a constant": lambda p: p.__setitem__("age", 3),
    "a column that goes": lambda p: p.__delitem__("age"),
    "pop": lambda p: p.pop("age"),
    "insert": lambda p: p.insert(0, "half", p["age"] / 2),
    "an attribute": lambda p: setattr(p, "age", p["cost"]),
    "names": lambda p: setattr(p, "columns", ["a", "b", "c"]),
    "rename": lambda p: p.rename(columns={"age": "years"}, inplace=True),
    "drop": lambda p: p.drop(columns=["age"], inplace=True),
    "dropna": lambda p: p.dropna(inplace=True),
    "fillna": lambda p: p.fillna({"cost": 0}, inplace=True),
    "clip": lambda p: p.clip(0, 3, inplace=True),
    "query": lambda p: p.query("age > 30", inplace=True),
    "eval": lambda p: p.eval("age = age / 2", inplace=True),
    "set_index": lambda p: p.set_index("age", inplace=True),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_was_taken_before_a_change_stays_as_it_was(df, p, name):
    column, frame, filtered, groups = (
        p["age"],
        p[["age"]],
        p[p["age"] > 40],
        p.groupby("sex")["age"],
    )
    explained, twin, located = p.explain, p.copy(), p.loc[:, "age"]
    before = [asked(column), asked(frame["age"]), asked(filtered["age"])]
    was = str(p._selection)
    assert CHANGES[name](p) is None or name == "pop"
    assert str(p._selection) != was
    assert [asked(column), asked(frame["age"]), asked(filtered["age"])] == before
    assert "age" in groups.sum.__self__._selection.columns
    assert list(explained.columns) == list(twin.columns) == list(df.columns) == list(df.dp.columns)
    assert asked(located) == asked(column)
    assert twin._selection.where is None


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_reads_nothing_and_costs_nothing(p, name):
    CHANGES[name](p)
    assert p.budget.spent == 0
    assert p.ledger.empty
    assert p._session.data.reader is None  # no engine was made


def test_the_raw_frame_stays_as_it_was(df, p):
    before = df.copy()
    p["age"] = p["age"] * 2
    p["new"] = 1
    pd.testing.assert_frame_equal(df, before)
    assert df.dp.sum("age", epsilon=300) == 176


def test_bounds_and_nulls_follow_what_is_set(p):
    p["double"] = p["age"] * 2 + 1
    assert p["double"]._expr.bounds(p._session.bounds) == (1, 221)
    p["cost"] = p["cost"].fillna(3)
    assert not p["cost"]._expr.nullable
    p["name"] = "x"
    assert p["name"]._expr.kind == "text"


# Where a change would be lost -------------------------------------------------------------------------------------


def test_change_of_a_frame_that_nothing_keeps_is_refused_with_a_line(df, p):
    with pytest.raises(Refused, match="would be lost") as caught:
        df.dp["half"] = 1
    assert "p = df.dp, and then p['half'] = ..." in str(caught.value)
    for change in (
        lambda: df.dp.drop(columns="age", inplace=True),
        lambda: df.dp.query("age > 3", inplace=True),
        lambda: df.dp.rename(columns={"age": "a"}, inplace=True),
        lambda: df.dp.insert(0, "x", 1),
        lambda: df.dp.pop("age"),
        lambda: setattr(df.dp, "columns", ["a", "b", "c"]),
        lambda: setattr(df.dp, "age", 1),
        lambda: df.dp.loc.__setitem__((slice(None), "age"), 1),
    ):
        with pytest.raises(Refused, match="would be lost"):
            change()
    for statement in (
        "df.dp['half'] = 1",
        "del df.dp['age']",
        "p[p['age'] > 3]['half'] = 1",
        "p.explain['half'] = 1",
        "p.query('age > 3')['half'] = 1",
        "p.loc[p['age'] > 3]['half'] = 1",
    ):
        with pytest.raises(Refused, match="would be lost"):
            exec(statement, {"df": df, "p": p})
    assert list(p.columns) == list(df.columns)


def test_the_line_that_is_told_is_taken(df, p):
    p = df.dp
    p["half"] = p["age"] / 2
    p.drop(columns="sex", inplace=True)
    assert list(p.columns) == ["age", "cost", "half"]
    p = df.dp.assign(half=df.dp["age"] / 2)
    assert "half" in p


class Holder:
    """What keeps a frame as an attribute."""

    frame: object


def test_whatever_keeps_a_frame_keeps_its_change(p):
    holder, frames, listed = Holder(), {"a": p.copy()}, [p.copy()]
    holder.frame = p.copy()
    holder.frame["x"] = 1
    frames["a"]["x"] = 1
    listed[0]["x"] = 1
    again = p
    again["x"] = 1
    for frame in (holder.frame, frames["a"], listed[0], p):
        assert "x" in frame
    exec("q = p.copy()\nq['y'] = 2\nassert 'y' in q", {"p": p})
    assert "y" not in p


def test_copies_are_frames_of_one_budget_that_change_alone(p):
    for twin in (p.copy(), copy.copy(p), copy.deepcopy(p), copy.deepcopy({"p": p})["p"]):
        assert twin._session is p._session
        twin["x"] = 1
        assert "x" in twin
        assert "x" not in p


# What cannot be set ------------------------------------------------------------------------------------------------


def test_data_that_is_not_tracked_is_not_set(df, p):
    strange = pd.DataFrame({"age": [1, 2]}).dp.open(1)
    for value, error in (
        (df["age"], Refused),
        (df["age"].to_numpy(), Refused),
        ([1, 2, 3, 4], Refused),
        (df, Refused),
        (df.index, Refused),
        (p[["age", "cost"]], BadValue),
        (strange["age"], LineageError),
        (p[p["age"] > 30]["age"], LineageError),
        (p.explain.mean("age"), Refused),
        (None, BadValue),
        (object(), BadType),
    ):
        with pytest.raises(error):
            p["new"] = value
    for key in (p["age"] > 30, df["age"] > 30, slice(0, 2), np.array([True] * 4), len):
        with pytest.raises((Refused, BadType)):
            p[key] = 1
    with pytest.raises(BadValue, match="2 columns are set, and 1 are given"):
        p[["a", "b"]] = p[["age"]]
    with pytest.raises(UnknownColumn):
        del p["nobody"]
    with pytest.raises(Refused, match="makes no new column"):
        p.half = 1
    assert list(p.columns) == list(df.columns)


def test_a_text_that_reads_as_an_expression_is_refused_with_both_spellings(p):
    with pytest.raises(Refused) as caught:
        p["half"] = "age / 2"
    assert "p = p.assign(name='age / 2')" in str(caught.value)
    assert "lambda d: 'age / 2'" in str(caught.value)
    p["half"] = lambda d: "age / 2"
    assert p["half"]._expr.kind == "text"
    p["kind"] = "cost"  # a word is a text, as in pandas
    assert p["kind"]._expr.kind == "text"


def test_a_word_in_assign_is_a_text_unless_it_may_be_a_column(p):
    for word in ("cost", "costs"):
        with pytest.raises(Refused, match="for the column, and"):
            p.assign(kind=word)
    assert str(p.assign(kind=p["cost"])["kind"]._expr) == "cost"
    assert p.assign(kind=lambda d: "cost")["kind"]._expr.kind == "text"
    assert p.assign(source="web")["source"]._expr.kind == "text"
    assert p.assign(half="cost / 2")["half"]._expr.kind == "number"


def test_labels_without_axis_are_of_rows_and_refused_with_both_spellings(p):
    for ask, told in (
        (lambda: p.drop("age"), "p.drop(columns='name')"),
        (lambda: p.rename({"age": "a"}), "p.rename(columns={'old': 'new'})"),
    ):
        with pytest.raises(Refused) as caught:
            ask()
        assert told in str(caught.value)


def test_a_count_is_of_rows_and_of_listed_columns_one_each(df, p):
    assert p.count(epsilon=100) == 4
    assert p.dropna().count(epsilon=100) == 2
    for listed in (p[["age", "cost"]], p.loc[:, ["age", "cost"]], p.filter(items=["age", "cost"])):
        assert list(listed.count(epsilon=100)) == [4, 3]
    assert list(p[["age", "cost"]].dropna().count(epsilon=100)) == [3, 3]


# loc and iloc -------------------------------------------------------------------------------------------------------


def test_loc_takes_conditions_and_names_and_refuses_labels_of_rows(df, p):
    for key in (0, [0, 1], slice(0, 2), df["age"] > 3, (0, "age"), ([True] * 4, "age")):
        with pytest.raises((Refused, LineageError)):
            p.loc[key]
    for key in (0, slice(0, 2), (0, 1), (slice(0, 2), 1)):
        with pytest.raises(NotOffered, match="Choose them"):
            p.iloc[key]
    with pytest.raises(UnknownColumn, match="Did you mean 'age'"):
        p.loc[:, "agee"]
    with pytest.raises(BadValue, match="3 columns"):
        p.loc[:, [True, False]]
    with pytest.raises(BadValue, match="0 to 2"):
        p.iloc[:, 7]
    with pytest.raises(BadType):
        p.loc[p["age"] > 3, "age", "cost"]
    assert list(p.loc[:, [True, False, True]].columns) == ["age", "sex"]
    assert list(p.loc[:, "cost":].columns) == ["cost", "sex"]


def test_an_index_is_found_by_its_name_and_comes_back(p):
    q = p.set_index("sex")
    assert list(q.columns) == ["age", "cost"]
    assert list(q.reset_index().columns) == ["sex", "age", "cost"]
    assert list(p.set_index(["sex", "age"]).reset_index("age").columns) == ["age", "cost"]
    assert list(p.set_index("sex", drop=False).columns) == ["age", "cost", "sex"]
    assert list(q.groupby("sex").size(epsilon=100)) == [2, 1]
    for ask, message in (
        (lambda: p.reset_index(), "no labels"),
        (lambda: p.set_index("sex", verify_integrity=True), "two people"),
        (lambda: p.set_index("sex", drop=False).reset_index(), "already"),
        (lambda: p.resample("ME"), "set_index"),
    ):
        with pytest.raises((Refused, BadValue, BadType), match=message):
            ask()


def test_functions_of_pandas_are_answered_or_told_what_to_write(p):
    regions = pd.DataFrame({"sex": ["F", "M"], "tax": [1, 2]})
    assert str(pd.merge(p, regions, on="sex").explain.count("tax")) == str(
        p.merge(regions, on="sex").explain.count("tax")
    )
    keys = {"sex": ["F", "M"]}
    old = p.explain["age"] > 40
    assert str(pd.crosstab(p.explain["sex"], old, keys=keys)) == str(
        p.explain.crosstab("sex", old, keys=keys)
    )
    told = {
        "pd.concat": lambda: pd.concat([p, p]),
        "pd.cut(p['age'], sorted({0, *p['age'].quantile([0.25, 0.5, 0.75]), 110}))": lambda: (
            pd.qcut(p["age"], 4)
        ),
        "p.pivot_table": lambda: pd.pivot(p, columns="sex", index="state", values="age"),
        "pd.cut(p['age']": lambda: pd.cut(p, [0, 50]),
        "p.count()": lambda: len(p),
    }
    for line, ask in told.items():
        with pytest.raises(Refused) as caught:
            ask()
        assert line in str(caught.value)
    assert list(pd.melt(p[["age", "cost"]], max_rows=2, max_groups=2).columns) == [
        "variable",
        "value",
    ]
    assert list(pd.isna(p[["age", "cost"]]).columns) == ["age", "cost"]
    assert str(pd.isna(p["cost"])._expr) == str(p["cost"].isna()._expr)
    assert str(pd.notna(p["cost"])._expr) == str(p["cost"].notna()._expr)
    assert pd.cut(p["age"], [0, 50, 110])._expr == p["age"].cut([0, 50, 110])._expr
    assert (
        pd.cut(p["age"], [0, 50, 110], labels=["a", "b"], right=False)._expr
        == p["age"].cut([0, 50, 110], labels=["a", "b"], right=False)._expr
    )


def test_columns_have_the_steps_of_a_series_and_refuse_what_needs_labels(df, p):
    assert p["cost"].dropna().count(epsilon=100) == 3
    assert p["age"].dropna()._frame._selection.where is None  # no null can be there
    assert p["age"].rename("years").name == "years"
    assert list(p["age"].to_frame("years").columns) == ["years"]
    assert list((p["age"] * 2).groupby(p["sex"]).sum(epsilon=300)) == [230, 82]
    assert str(p["age"].head()).startswith("made-up rows")
    assert p["age"].dtype == df["age"].dtype
    for ask, message in (
        (lambda: p["age"].rename({0: 1}), "no labels"),
        (lambda: p["age"].reset_index(), "reset_index"),
        (lambda: p["age"].groupby("sex"), "another one"),
        (lambda: p["age"].__setitem__(p["age"] > 3, 0), r"p\.loc\["),
        (lambda: p["age"].add(1, fill_value=0), "fillna"),
        (lambda: p["age"].pipe("mean"), "function of a column"),
        (lambda: p["age"].resample("ME"), "set_index"),
    ):
        with pytest.raises((Refused, BadType), match=message):
            ask()
    assert p.count(epsilon=1) is not None


def test_functions_that_are_applied_take_columns_and_ask_nothing(p):
    for ask in (
        lambda: p.apply(lambda c: c.mean()),
        lambda: p.apply(lambda r: r["age"].sum(), axis=1),
        lambda: p[["age"]].transform(lambda c: c.max()),
        lambda: p.where(lambda d: d["age"] > d["age"].mean()),
    ):
        with pytest.raises(Refused, match="release such a number first"):
            ask()
    for ask in (
        lambda: p.apply(3),
        lambda: p.apply(lambda r: 1, axis=1),
        lambda: p.apply(len, raw=True),
        lambda: p.apply(len, axis=2),
    ):
        with pytest.raises((BadType, Refused)):
            ask()
    assert p.budget.spent == 0


def test_one_constant_for_nulls_of_two_kinds_is_refused_with_the_columns(p):
    with pytest.raises(BadType) as caught:
        p.fillna(0)
    assert "p.fillna({'cost': 0})" in str(caught.value)
    assert p.fillna({"cost": 0}).count("cost", epsilon=100) == 4
    assert p[["age", "cost"]].fillna(0).count("cost", epsilon=100) == 4


OTHER_COLUMNS = {
    "assign": lambda p: p.assign(age=p["cost"] * 2),
    "a column that is set": lambda p: p.__setitem__("age", p["cost"] * 2) or p,
    "rename": lambda p: p.rename(columns={"age": "cost", "cost": "age"}),
}


@pytest.mark.parametrize("change", OTHER_COLUMNS.values(), ids=OTHER_COLUMNS)
def test_a_text_that_was_read_before_is_read_of_the_columns_there_are_now(p, change):
    before, was = p.copy(), p.query("age > 3").explain.count(epsilon=1).question
    before.query("age > 3")
    frame = change(p)
    fresh = frame.query("(age > 3)").explain.count(epsilon=1).question
    assert frame.query("age > 3").explain.count(epsilon=1).question == fresh != was
    assert before.query("age > 3").explain.count(epsilon=1).question == was


def test_a_text_that_was_read_before_finds_no_column_that_is_gone(p):
    p.query("age > 3")
    with pytest.raises(UnknownColumn):
        p[["cost"]].query("age > 3")
