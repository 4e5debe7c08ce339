"""pipe takes what works person by person and refuses the rest, without quoting a cell; adopt takes what is declared."""

from __future__ import annotations

import traceback

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, BadValue, LineageError, Refused

RNG = np.random.default_rng(7)
N = 240


@pytest.fixture
def visits():
    who = RNG.permutation(np.repeat(np.arange(60), 4))
    return pd.DataFrame(
        {
            "patient_id": who,
            "t": RNG.permutation(N),
            "cost": RNG.gamma(2.0, 30.0, N).round(2),
            "state": RNG.choice(["CA", "NY", "WA"], N),
            "codes": [list(RNG.choice(["flu", "cough", "burn"], k)) for k in RNG.integers(0, 4, N)],
        }
    )


@pytest.fixture
def p(visits):
    return visits.dp.open(
        1000, unit="patient_id", max_rows=4, max_groups=3, bounds={"cost": (0, 500)}
    )


CALLS = [0]


def counts_its_calls(d):
    CALLS[0] += 1
    return d.assign(n=CALLS[0])


ACROSS = {
    "minus the mean": lambda d: d.assign(cost=d["cost"] - d["cost"].mean()),
    "above the mean": lambda d: d[d["cost"] > d["cost"].mean()],
    "head": lambda d: d.head(3),
    "a slice": lambda d: d.iloc[5:50],
    "by the index": lambda d: d[d.index < 100],
    "drop_duplicates": lambda d: d.drop_duplicates("state"),
    "duplicated": lambda d: d.assign(again=d["state"].duplicated()),
    "rank": lambda d: d.assign(r=d["cost"].rank()),
    "shift": lambda d: d.assign(before=d["cost"].shift()),
    "nlargest": lambda d: d.nlargest(3, "cost"),
    "sample": lambda d: d.sample(frac=0.5),
    "a mean of groups": lambda d: d.assign(m=d.groupby("state")["cost"].transform("mean")),
    "a cumulative sum": lambda d: d.sort_values("t").assign(c=lambda e: e["cost"].cumsum()),
    "codes of a category": lambda d: d.assign(c=d["cost"].astype("category").cat.codes),
    "global state": counts_its_calls,
    "randomness": lambda d: d.assign(z=np.random.default_rng().random(len(d))),
    "the number of rows": lambda d: d.assign(n=len(d)),
    "everybody as one": lambda d: d.assign(patient_id=0),
    "other people": lambda d: d.assign(patient_id=59 - d["patient_id"]),
    "somebody new": lambda d: d.assign(patient_id=d["patient_id"] + 1000),
    "a row of nobody": lambda d: pd.concat([d, pd.DataFrame({"patient_id": [0]})]),
    # Each half has a top of its own; of a few states both halves could have the same.
    "top of the groups": lambda d: (
        d[d["patient_id"] == d["patient_id"].mode().iloc[0]] if len(d) else d
    ),
    "categories": lambda d: d.assign(c=d["t"].astype("category")),
}
BY_PERSON = {
    "groupby.agg": lambda d: d.groupby("patient_id").agg(n=("cost", "size"), total=("cost", "sum")),
    "as columns": lambda d: d.groupby("patient_id", as_index=False)["cost"].mean(),
    "assign": lambda d: d.assign(y=d["cost"] * 2),
    "a filter": lambda d: d[d["cost"] > 30],
    "nobody": lambda d: d[d["cost"] < 0],
    "explode": lambda d: d.explode("codes"),
    "melt": lambda d: d.melt(["patient_id"], ["cost", "t"]),
    "first row of each": lambda d: d.sort_values(["patient_id", "t"]).drop_duplicates("patient_id"),
    "latest of each": lambda d: d.loc[d.groupby("patient_id")["t"].idxmax()],
    "cumsum within": lambda d: d.assign(c=d.groupby("patient_id")["cost"].cumsum()),
    "shift within": lambda d: d.assign(c=d.groupby("patient_id")["cost"].shift()),
    "share within": lambda d: d.assign(
        c=d["cost"] / d.groupby("patient_id")["cost"].transform("sum")
    ),
    "states of each": lambda d: d.drop_duplicates(["patient_id", "state"]),
    "two levels": lambda d: d.groupby(["patient_id", "state"])["cost"].max().to_frame(),
    "cut": lambda d: d.assign(band=pd.cut(d["cost"], [0, 20, 50, 500])),
    "a renamed column": lambda d: d.rename(columns={"cost": "price"}),
}


@pytest.mark.parametrize("name", ACROSS)
def test_what_looks_across_people_is_refused(p, name):
    """Functions that are given rows: beside ``bounds=`` all are."""
    with pytest.raises(Refused, match="person by person"):
        p.pipe(ACROSS[name], bounds={})
    assert p.budget.spent == 0
    assert "pipe" not in set(p.declarations["what"])


@pytest.mark.parametrize("name", BY_PERSON)
def test_what_works_person_by_person_is_taken(p, visits, name):
    q = p.pipe(BY_PERSON[name], max_rows=20)
    truth = len(BY_PERSON[name](visits))
    assert abs(q.count(epsilon=400) - truth) <= 2
    (word,) = p.declarations.query("what == 'pipe'")["value"]
    assert "8 splits" in word
    assert "no proof" in word
    assert any(word in text for text in p.ledger["declared"])


SINGLE_ROWS = {
    "assign": lambda d: d.assign(y=d["cost"] * 2),
    "a filter": lambda d: d[d["cost"] > 30],
    "a column that is set": lambda d: set_column(d.copy()),
    "another order": lambda d: d.sort_values("t").rename(columns={"t": "when"}),
    "a person's column hidden": lambda d: d.drop(columns="patient_id"),
}


def set_column(d):
    d["y"] = d["cost"] / 2
    return d


@pytest.mark.filterwarnings("ignore:sort_values does nothing")
@pytest.mark.parametrize("name", SINGLE_ROWS)
def test_steps_of_single_rows_are_taken_by_the_frame_itself(p, visits, name):
    """Nothing is read, the limits of a person are as they were, and a batch takes them too."""
    q = p.pipe(SINGLE_ROWS[name])
    assert abs(q.count(epsilon=400) - len(SINGLE_ROWS[name](visits))) <= 2
    assert "pipe" not in set(p.declarations["what"])
    assert q.explain.count(epsilon=1) == SINGLE_ROWS[name](p).explain.count(epsilon=1)
    with p.plan_ahead() as batch:
        batch.pipe(SINGLE_ROWS[name]).count(epsilon=1)
    assert list(p.columns) == list(visits.columns)


def test_a_column_comes_back_from_pipe_and_a_question_in_it_is_not_asked(p, visits):
    half = p.pipe(lambda d: d["cost"] / 2)
    assert p.explain.mean(half, epsilon=1) == p.explain.mean(p["cost"] / 2, epsilon=1)
    spent = p.budget.spent
    with pytest.raises(Refused, match="person by person"):
        p.pipe(lambda d: d.assign(z=d["cost"].mean()))
    with pytest.raises(Refused, match="uses a private frame"):
        p.pipe(
            lambda d: d.assign(z=visits["cost"].mean())
        )  # an exact number, which a step would hand on
    assert p.budget.spent == spent


ROW_BY_ROW = {
    "assign": lambda d: d.assign(y=d["cost"] * 2),
    "a filter": lambda d: d[d["cost"] > 30],
    "explode": lambda d: d.explode("codes"),
    "another order": lambda d: d.sort_values("cost"),
}


@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_where_a_row_is_a_person_the_index_says_so(visits, name):
    p = visits.dp.open(1000)
    q = p.pipe(ROW_BY_ROW[name], max_rows=4, max_groups=1)
    assert abs(q.count(epsilon=400) - len(ROW_BY_ROW[name](visits))) <= 2
    with pytest.raises(BadValue, match="max_rows="):
        p.pipe(ROW_BY_ROW[name], bounds={}).count()
    for f in (
        lambda d: d.reset_index(drop=True),
        lambda d: d.set_index("state"),
        lambda d: d.groupby("state").sum(),
    ):
        with pytest.raises((Refused, BadValue), match=r"index|person by person"):
            p.pipe(f, bounds={})
    with pytest.raises(Refused, match="person by person"):
        p.pipe(lambda d: d[d["cost"] > d["cost"].mean()])


def test_labels_of_rows_say_nothing_of_their_place(visits):
    seen = []
    p = visits.dp.open(1)
    p.pipe(lambda d: (seen.append(d.index.to_numpy()), d)[1])
    whole = max(seen, key=len)
    assert len(np.unique(whole)) == N
    assert not (np.diff(whole) > 0).all()
    assert whole.min() > N


def test_an_error_in_the_function_brings_no_cell_along(p):
    def picky(d):
        if len(d):
            raise ValueError(f"could not convert {d['state'].iloc[0]!r} {d['cost'].iloc[0]}")
        return d

    with pytest.raises(BadValue, match="raised a ValueError") as caught:
        p.pipe(picky)
    told = "".join(traceback.format_exception(caught.value))
    assert "could not convert '" not in told
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_cell_with_code_of_its_own_is_compared_without_it(p):
    class Odd:
        def __repr__(self):
            raise ValueError("Sesame-Street-123")

    q = p.pipe(lambda d: d.assign(z=pd.Series([Odd()] * len(d), index=d.index, dtype=object)))
    assert abs(q.count("z", epsilon=100) - N) < 20


def test_arguments_and_results_of_the_wrong_kind(p, visits):
    for wrong, error in [
        (lambda: p.pipe("head"), BadType),
        (lambda: p.pipe(p), BadType),
        (lambda: p.pipe(len), BadType),
        (lambda: p.pipe(lambda d: d["cost"], bounds={}), BadType),
        (lambda: p.pipe(lambda d: d.drop(columns="patient_id"), bounds={}), BadValue),
        (lambda: p.drop(columns="patient_id").pipe(lambda d: d, bounds={}), BadValue),
        (lambda: p.assign(patient_id="patient_id + 0").pipe(lambda d: d, bounds={}), BadValue),
        (lambda: p.pipe(lambda d: d.astype({"patient_id": float}), bounds={}), BadType),
        (lambda: p.pipe(lambda d: pd.concat([d, d], axis=1)), BadValue),
        (lambda: p.pipe(lambda d: d, bounds={"nothing": (0, 1)}), dpframe.UnknownColumn),
        (lambda: p.pipe(lambda d: d, max_rows=0), BadValue),
        (lambda: p.pipe(lambda d, x: d, visits), Refused),
        (lambda: p.pipe(lambda d: d.assign(m=visits["cost"].mean())), Refused),
        (lambda: p.pipe(lambda d: d.assign(m=float(p.budget.spent))), Refused),
        (lambda: p.pipe(lambda d: d.assign(m=d.dp.count())), BadValue),
        (lambda: p.pipe(lambda d: d.dp.open(1)), BadValue),
    ]:
        with pytest.raises(error):
            wrong()
    for dropped in (
        lambda: p.drop(columns="patient_id").pipe(lambda d: d, bounds={}),
        lambda: p.pipe(lambda d: d[["cost"]], bounds={}),
        lambda: p.adopt(visits[["cost"]], because="no"),
    ):
        with pytest.raises(BadValue, match="a unit column dropped on the way"):
            dropped()


def test_the_frame_may_be_a_named_argument_and_others_come_along(p):
    q = p.pipe((lambda least, frame: frame[frame["cost"] >= least], "frame"), 30)
    assert q.columns.tolist() == p.columns.tolist()
    assert (
        p.pipe(lambda d, most: d[d["cost"] <= most], most=30).explain.count(epsilon=1).sensitivity
        == 4
    )


def test_the_function_cannot_reach_the_sessions_own_frame(p, visits):
    def spoils(d):
        d["cost"] = 0.0
        return d

    assert abs(p.pipe(spoils, bounds={"cost": (0, 1)}).sum("cost", epsilon=100)) < 1
    before = visits["cost"].sum()
    assert p._session.snapshot["cost"].sum() == before


def test_nothing_is_known_of_new_columns_but_what_is_declared(p):
    q = p.pipe(lambda d: d, keys={"state": ["CA", "NY"]})
    with pytest.raises(dpframe.MissingBounds):
        q.mean("cost")
    assert q.groupby("state").size(epsilon=50).index.tolist() == ["CA", "NY"]
    assert "'state': ['CA', 'NY']" in set(p.declarations.query("where == 'pipe'")["value"])


# Adopt ----------------------------------------------------------------------------------------------------------------


def test_an_adopted_frame_is_asked_under_the_same_budget(p, visits):
    worst = visits.groupby("patient_id")["cost"].max()
    q = p.adopt(
        worst.to_frame(),
        because="the dearest visit of each patient",
        bounds={"cost": (0, 500)},
        max_rows=1,
    )
    assert abs(q.mean("cost", epsilon=400) - worst.mean()) < 5
    assert q.accountant is p.accountant
    assert p.budget.spent == 400
    (word,) = p.declarations.query("what == 'adopt'")["value"]
    assert "the dearest visit" in word
    assert word in p.ledger["declared"].iloc[0]


def test_an_adopted_frame_gets_no_budget_of_its_own(p):
    other = pd.DataFrame({"patient_id": [1, 2], "x": [1, 2]})
    q = p.adopt(other, because="another table of the same patients")
    with pytest.raises(LineageError):
        other.dp.open(1)
    assert q.nunique("patient_id", epsilon=100) == 2


def test_what_was_adopted_is_the_frame_as_it_stood(p, visits):
    other = pd.DataFrame({"patient_id": range(60), "x": 1.0})
    q = p.adopt(other, because="a constant", bounds={"x": (0, 10)})
    kept = []
    r = p.pipe(lambda d: (kept.append(d), d)[1], bounds={"cost": (0, 500)})
    other.loc[:, "x"] = 9.0  # in place, where nothing keeps the cells
    for frame in kept:
        frame.loc[:, "cost"] = 0.0
    assert abs(q.sum("x", epsilon=400) - 60) < 2
    assert abs(r.sum("cost", epsilon=400) - visits["cost"].sum()) < 50


def test_adopt_needs_a_reason_and_a_frame_without_a_session(p, visits):
    theirs = pd.DataFrame({"patient_id": [1, 2]})
    theirs.dp.open(1)
    for wrong, error in [
        (lambda: p.adopt(visits, because=" "), BadType),
        (lambda: p.adopt(visits, because=None), BadType),
        (lambda: p.adopt(visits["cost"], because="why"), BadType),
        (lambda: p.adopt(theirs, because="why"), LineageError),
        (lambda: p.adopt(theirs.copy(), because="why"), LineageError),
        (lambda: p.adopt(pd.DataFrame({"patient_id": ["a"]}), because="why"), BadType),
    ]:
        with pytest.raises(error):
            wrong()
    with pytest.raises(TypeError):
        p.adopt(visits)
    assert list(p.declarations["what"]) == ["bounds"]


def test_adopt_without_a_unit_goes_by_the_labels_of_the_opened_frame():
    df = pd.DataFrame({"x": [1.0, 2.0, 3.0], "l": [[1, 2], [3], []]}, index=["a", "b", "c"])
    p = df.dp.open(1000)
    q = p.adopt(df.explode("l")[["x"]], because="exploded by hand", max_rows=2, max_groups=1)
    assert q.count(epsilon=300) == 4
    with pytest.raises(LineageError, match="labels"):
        p.adopt(df.rename(index=str.upper), because="why")
    with pytest.raises(LineageError, match="labels"):
        p.adopt(df.reset_index(drop=True), because="why")
    twice = pd.DataFrame({"x": [1.0, 2.0]}, index=["a", "a"])
    with pytest.raises(LineageError, match="twice"):
        twice.dp.open(1).adopt(twice.assign(y=1), because="why")


def test_rows_of_nobody_are_left_out_before_the_function_sees_them(visits):
    visits["patient_id"] = visits["patient_id"].astype("Int64").mask(visits["patient_id"] < 30)
    p = visits.dp.open(1000, unit="patient_id", max_rows=4)
    least = []
    q = p.pipe(lambda d: (least.append(d["patient_id"].isna().sum()), d)[1])
    assert set(least) == {0}
    assert q.count(epsilon=400) == 120


def test_what_works_in_one_order_of_people_only_is_refused(visits):
    """Any part of a sorted frame is sorted, so that no split of the people shows it: another order does."""
    p = visits.sort_values("patient_id").dp.open(10, unit="patient_id", max_rows=4)

    def in_order(d):
        return d if d["patient_id"].is_monotonic_increasing else d[d["cost"] > 30]

    with pytest.raises(Refused, match="person by person"):
        p.pipe(in_order)
    assert p.budget.spent == 0


def test_what_makes_rows_of_nobody_only_where_nobody_is_there_is_refused(visits):
    """No part of the people shows it: only a frame without any."""
    visits["patient_id"] = visits["patient_id"].astype(float)
    p = visits.dp.open(10, unit="patient_id", max_rows=4)
    with pytest.raises(Refused, match="no people"):
        p.pipe(lambda d: d if len(d) else d.reindex([0]))
    assert p.budget.spent == 0


def test_two_columns_may_name_a_person(visits):
    visits["ward"] = visits["patient_id"] % 7
    p = visits.dp.open(1000, unit=["ward", "patient_id"], max_rows=1)
    q = p.pipe(lambda d: d.groupby(["ward", "patient_id"])["cost"].sum().to_frame())
    assert q.count(epsilon=400) == 60
    with pytest.raises(Refused, match="not there"):
        p.pipe(lambda d: d.assign(ward=(d["ward"] + 1) % 7), bounds={})
    with pytest.raises(BadValue, match="'ward'"):
        p.pipe(lambda d: d.groupby("patient_id")["cost"].sum().to_frame())


@pytest.mark.parametrize("dtype", ["str", "category", "float64", object])
def test_a_unit_column_of_any_dtype(visits, dtype):
    visits["patient_id"] = visits["patient_id"].astype(dtype)
    p = visits.dp.open(1000, unit="patient_id", max_rows=1)
    assert (
        p.pipe(lambda d: d.groupby("patient_id").agg(n=("cost", "size"))).count(epsilon=400) == 60
    )
    assert (
        p.adopt(visits[["patient_id"]].drop_duplicates(), because="who is there").count(epsilon=400)
        == 60
    )


def test_after_other_steps_the_rows_still_name_their_person(visits):
    p = visits.dp.open(1000)
    q = p.explode("codes").pipe(lambda d: d.dropna(subset=["codes"]), max_rows=4, max_groups=3)
    truth = visits.explode("codes").dropna(subset=["codes"])
    assert abs(q.count(epsilon=400) - len(truth)) <= 1
    assert (
        q.merge(pd.DataFrame({"codes": ["flu"]}), on="codes").explain.count(epsilon=1).sensitivity
        == 4
    )
    hidden = visits.copy()
    hidden.attrs.clear()
    u = (
        hidden.dp.open(1000, unit="patient_id", max_rows=12, because="a test")
        .drop(columns="patient_id")
        .explode("codes")
    )
    assert abs(u.count(epsilon=400) - len(visits.explode("codes"))) <= 1
    with pytest.raises(BadValue, match="a unit column dropped on the way"):
        u.pipe(lambda d: d, bounds={})


def test_lists_in_cells_stay_as_they_are_also_where_one_holds_itself():
    inner = ["a"]
    cell = [inner, inner]
    cell.append(cell)
    frame = pd.DataFrame({"id": [1, 2], "l": pd.Series([cell, [["b"]]], dtype=object)})

    def change(d):
        for one in d["l"]:
            one[0].append("x")
            for nested in one[2:]:
                nested[0].append("y")
            one.clear()
        return d[["id"]]

    p = frame.dp.open(1000, unit="id", max_rows=1)
    assert list(p.pipe(change).columns) == ["id"]
    assert inner == ["a"]
    assert len(cell) == 3
    assert frame["l"].iloc[1] == [["b"]]
