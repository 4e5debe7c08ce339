"""Verbs within a person as they are typed: what they are made of, what is refused, and what is free."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, BadValue, LineageError, NotOffered, Refused

E = 100


@pytest.fixture
def visits():
    rng = np.random.default_rng(3)
    n = 400
    return pd.DataFrame(
        {
            "id": rng.integers(0, 80, n),
            "t": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.permutation(n), "h"),
            "cost": rng.integers(0, 100, n).astype(float),
            "state": pd.array(rng.choice(["CA", "NY"], n), dtype="str"),
        }
    )


@pytest.fixture
def p(visits):
    terms = {"bounds": {"cost": (0, 100)}, "keys": {"state": ["CA", "NY"]}}
    return visits.dp.open(1000, unit="id", max_rows=12, max_groups=2, **terms)


def test_a_step_is_free_and_says_so_to_whoever_pays(p):
    groups = p.groupby("id")
    for step in (groups["cost"].sum, groups.size, groups["cost"].shift, groups.head, groups.agg):
        with pytest.raises(BadType, match=r"free: epsilon= goes to"):
            step(epsilon=1)
    with pytest.raises(BadType, match="bounds= goes to"):
        groups["cost"].sum(bounds=(0, 1))
    assert p.budget.spent == 0


def test_a_row_a_person_is_paid_as_one_row(p):
    assert p.explain.count(epsilon=1).sensitivity == 12
    for one in (
        p.groupby("id").agg(s=("cost", "sum")),
        p.drop_duplicates("id"),
        p.groupby("id").head(1),
    ):
        assert one.explain.count(epsilon=1).sensitivity == 1
    assert p.groupby("id").head(3).explain.count(epsilon=1).sensitivity == 3
    assert p.groupby("id").head(30).explain.count(epsilon=1).sensitivity == 12
    assert p.groupby("id").head(3).groupby("id").head(5).explain.count(epsilon=1).sensitivity == 3
    assert p.groupby("id").head(1).explain.count(epsilon=1, max_rows=5).sensitivity == 5
    assert p.drop_duplicates(["id", "state"]).explain.count(epsilon=1).sensitivity == 12
    assert (
        p.explain.groupby("id").agg(g=("state", "first")).groupby("g").size(epsilon=1).sensitivity
        == 1
    )


def test_bounds_follow_from_those_of_the_column_and_the_limit_of_rows(p):
    each = p.groupby("id")["cost"]
    bounds = {
        "sum": (0, 1200),
        "mean": (0, 100),
        "max": (0, 100),
        "first": (0, 100),
        "count": (0, 12),
        "nunique": (0, 12),
        "cumsum": (0, 1200),
        "shift": (0, 100),
        "diff": (-100, 100),
        "rank": (0, 12),
    }
    for how, pair in bounds.items():
        column = getattr(each, how)()
        assert column._expr.bounds(p._session.bounds) == pair, how
    assert each.std(ddof=0)._expr.bounds(p._session.bounds)[1] == pytest.approx(50)
    assert each.std()._expr.bounds(p._session.bounds)[1] == pytest.approx(100 / 2**0.5)
    assert each.rank(pct=True)._expr.bounds(p._session.bounds) == (0, 1)
    assert p.groupby("id").size()._expr.bounds({}) == (0, 12)
    assert p.groupby("id").head(1).groupby("id")["cost"].sum()._expr.bounds(p._session.bounds) == (
        0,
        100,
    )


@pytest.mark.parametrize(
    "cells", [(0.0, 0.0, 100.0), (0.0, 100.0), (100.0, 100.0, 0.0, 0.0), (-3.0, 7.0, 2.0)]
)
@pytest.mark.parametrize("how", ["var", "std", "sem"])
@pytest.mark.parametrize("ddof", [0, 1])
def test_spreads_lie_within_their_bounds(cells, how, ddof):
    frame = pd.DataFrame({"id": 0, "x": cells})
    p = frame.dp.open(
        1000, unit="id", max_rows=9, max_groups=1, bounds={"x": (min(cells), max(cells))}
    )
    column = getattr(p.groupby("id")["x"], how)(ddof=ddof)
    low, high = column._expr.bounds(p._session.bounds)
    assert low <= getattr(frame["x"], how)(ddof=ddof) <= high


def test_keys_stay_with_cells_that_are_picked(p):
    firsts = p.groupby("id").agg(state=("state", "first"), cost=("cost", "mean"))
    assert firsts.groupby("state")["cost"].mean(epsilon=E).index.tolist() == ["CA", "NY"]
    assert p.assign(before=p.groupby("id")["state"].shift()).groupby("before").size(
        epsilon=E
    ).index.tolist() == ["CA", "NY"]


def test_the_same_step_again_is_the_same_question(p):
    first = p.sort_values("t").groupby("id")["cost"].first().mean(epsilon=E)
    spent = p.budget.spent
    assert p.sort_values("t").groupby("id")["cost"].first().mean(epsilon=E) == first
    assert p.budget.spent == spent
    assert p.groupby("id")["cost"].first().mean(epsilon=E) is not None
    assert p.budget.spent == 2 * spent


def test_sorting_counts_for_verbs_within_a_person_and_for_nothing_else(p, visits):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        late = p.sort_values("t", ascending=False)
    assert late.explain.mean("cost", epsilon=1) == p.explain.mean("cost", epsilon=1)
    wanted = visits.sort_values("t", ascending=False).groupby("id")["cost"].first().mean()
    assert late.groupby("id")["cost"].first().mean(epsilon=E) == pytest.approx(wanted, abs=2)
    assert late.groupby("id")["cost"].sum()._expr == p.groupby("id")["cost"].sum()._expr


def test_two_columns_of_people_stand_beside_each_other(p, visits):
    each = p.groupby("id")["cost"]
    ratio = each.sum() / each.count()
    assert ratio.mean(bounds=(0, 100), epsilon=E) == pytest.approx(
        visits.groupby("id")["cost"].mean().mean(), abs=2
    )
    with pytest.raises(LineageError):
        each.sum() + p["cost"]


@pytest.mark.parametrize(
    "rows",
    [
        lambda p: p.pipe(lambda d: d, max_rows=4),
        lambda p: p.adopt(
            pd.DataFrame({"id": [1, 1], "cost": [1.0, 2.0]}), because="made up", max_rows=4
        ),
        lambda p: p.pipe(lambda d: d, max_rows=4).merge(
            pd.DataFrame({"cost": [1.0], "z": [2.0]}), on="cost"
        ),
    ],
)
def test_verbs_by_order_are_refused_where_the_order_depends_on_others(p, rows):
    q = rows(p)
    for step in (
        lambda: q.groupby("id").head(1),
        lambda: q.groupby("id")["cost"].first(),
        lambda: q.sort_values("cost").groupby("id")["cost"].shift(),
        lambda: q.groupby("id")["cost"].rank(method="first"),
        lambda: q.drop_duplicates("id"),
    ):
        with pytest.raises(Refused, match="may depend on other people"):
            step()
    assert q.explain.groupby("id")["cost"].max().mean(bounds=(0, 1), epsilon=1).sensitivity == 1


def test_rows_made_after_sorting_stand_in_that_order(p, visits):
    tall = p.sort_values("t", ascending=False).melt(["id", "t"], ["cost"], max_rows=12)
    wanted = visits.sort_values("t", ascending=False).groupby("id")["cost"].first().mean()
    assert tall.groupby("id")["value"].first().mean(bounds=(0, 100), epsilon=E) == pytest.approx(
        wanted, abs=2
    )


BOTH = "drop_duplicates(['id', 'state'])"
REFUSED = {
    "a negative head": (lambda p: p.groupby("id").head(-1), BadValue, "cumcount(ascending=False) > 0"),
    "a negative tail": (lambda p: p.groupby("id").tail(-2), BadValue, "cumcount() > 0"),
    "several places": (lambda p: p.groupby("id").nth([0, 1]), NotOffered, "one place"),
    "the person and another key": (lambda p: p.groupby(["id", "state"])["cost"].sum(), Refused, BOTH),
    "one value of agg that is many": (lambda p: p.groupby("id")["cost"].agg(lambda x: x - x.mean()), BadType, "transform(f)"),
    "a function of rows": (lambda p: p.groupby("id").apply(lambda g: g.head(1)), NotOffered, "p.pipe(f)"),
    "a frame of its own": (lambda p: p.groupby("id").apply(lambda g: pd.DataFrame({"a": [1]})), BadType, "p.pipe(f)"),
    "a length": (lambda p: p.groupby("id").filter(lambda g: len(g) > 3), Refused, "g['cost'].size"),
    "a branch": (lambda p: p.groupby("id")["cost"].agg(lambda x: 1 if x.max() > 3 else 0), Refused, "truth value"),
    "another frame's column": (
        lambda p: p.groupby("id")["cost"].transform(lambda x: p[p["cost"] > 1]["cost"]),
        LineageError,
        "another",
    ),
    "no aggregate": (lambda p: p.groupby("id")["cost"].agg("mode"), BadValue, "There are"),
    "texts summed": (lambda p: p.groupby("id")["state"].sum(), BadType, "kind text"),
    "all columns summed": (lambda p: p.groupby("id").sum(), BadType, "numeric_only=True"),
    "a filter of rows": (lambda p: p.groupby("id").filter(lambda g: g["cost"] > 1), BadType, "true or false of a person"),
    "the place of the greatest": (lambda p: p.groupby("id")["cost"].idxmax(), NotOffered, "tail(1)"),
    "pandas' other verbs": (lambda p: p.groupby("id")["cost"].describe(), NotOffered, "p.pipe"),
    "people one by one": (lambda p: list(p.groupby("id")), Refused, "release"),
    "how many people": (lambda p: len(p.groupby("id")), Refused, "p.nunique('id')"),
    "duplicates of all people": (lambda p: p.drop_duplicates("state"), Refused, "['id', 'state']"),
    "a key to sort by": (lambda p: p.sort_values("t", key=lambda s: s), NotOffered, "Assign"),
    "nothing to sort by": (lambda p: p.sort_values(), BadType, "sort_values('t')"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_what_to_write_and_costs_nothing(p, name):
    act, kind, advice = REFUSED[name]
    with pytest.raises(kind) as caught:
        act(p)
    assert advice in str(caught.value)
    assert p.budget.spent == 0


@pytest.mark.parametrize("name", ["transform", "shift", "diff", "head", "cumsum", "nth"])
def test_where_a_row_is_a_person_the_unit_is_named(visits, name):
    p = visits.dp.open(1000, keys={"id": list(range(80))})
    with pytest.raises(NotOffered, match=r"unit='patient_id'"):
        getattr(p.groupby("id"), name)
    with pytest.raises(Refused, match="unit='patient_id'"):
        p.drop_duplicates("id")


def test_rows_made_of_people_with_one_row_have_no_column_that_names_them():
    frame = pd.DataFrame({"x": [1, 2], "codes": [["a"], ["b", "c"]]})
    q = frame.dp.open(1000).explode("codes", max_rows=2, max_groups=2)
    with pytest.raises(Refused, match="open\\(unit='patient_id'\\)"):
        q.drop_duplicates("x")
    with pytest.warns(UserWarning, match="does nothing"):
        q.sort_values("x")


def test_declared_ids_make_groups_of_people_as_ever(visits):
    p = visits.dp.open(1000, unit="id", max_rows=12, max_groups=1)
    assert p.groupby("id", keys=[1, 2]).size(epsilon=E).index.tolist() == [1, 2]


def test_a_batch_asks_what_is_made_of_each_person(p, visits):
    with p.plan_ahead() as batch:
        one = batch.groupby("id")["cost"].max().mean(epsilon=E)
        two = batch.groupby("id").head(1).count(epsilon=E)
    assert one.answer == pytest.approx(visits.groupby("id")["cost"].max().mean(), abs=2)
    assert two.answer == pytest.approx(visits["id"].nunique(), abs=1)


# Joins --------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def patients(p):
    frame = pd.DataFrame({"id": np.arange(80), "age": np.arange(80) % 60 + 20.0})
    return frame.dp.open(
        accountant=p.accountant, unit="id", max_rows=1, max_groups=1, bounds={"age": (0, 100)}
    )


def test_a_join_has_the_product_of_the_limits_and_one_budget(p, patients, visits):
    joined = p.merge(patients, on="id")
    assert joined.explain.count(epsilon=1).sensitivity == 12
    assert (
        p.merge(p.groupby("id").head(2), on="id", suffixes=("", "_2"))
        .explain.count(epsilon=1)
        .sensitivity
        == 24
    )
    old = joined[joined["age"] > 50]
    wanted = visits["cost"][(visits["id"] % 60 + 20) > 50].mean()
    assert old.mean("cost", epsilon=E) == pytest.approx(wanted, abs=3)
    assert patients.budget.spent == p.budget.spent == E
    assert (
        p.merge(patients, on="id")[joined.columns.tolist()].columns.tolist()
        == joined.columns.tolist()
    )


def test_join_is_the_same_frame_again_and_another_for_another_table(p, patients, visits):
    first = p.merge(patients, on="id").count(epsilon=E)
    assert p.merge(patients, on="id").count(epsilon=E) == first
    assert p.budget.spent == E
    others = pd.DataFrame({"id": np.arange(10), "age": np.arange(10.0)})
    q = others.dp.open(
        accountant=p.accountant, unit="id", max_rows=1, max_groups=1, because="another table"
    )
    assert p.merge(q, on="id").count(epsilon=E) != first
    assert p.budget.spent == 2 * E


def test_totals_of_people_are_joined_to_their_rows(p, visits):
    each = p.groupby("id").agg(total=("cost", "sum"), visits=("cost", "size"))
    for joined in (
        p.merge(each, on="id"),
        p.join(each, on="id"),
        p.merge(each, left_on="id", right_on="id", how="left"),
    ):
        assert joined.columns.tolist() == ["id", "t", "cost", "state", "total", "visits"]
    wanted = visits.merge(visits.groupby("id")["cost"].sum().rename("total"), on="id")[
        "total"
    ].mean()
    assert p.join(each, on="id").mean("total", epsilon=E) == pytest.approx(wanted, abs=20)


JOINS = {
    "another budget": (
        lambda p: p.merge(pd.DataFrame({"id": [1]}).dp.open(1, unit="id", max_rows=1), on="id"),
        "open(accountant=p.accountant",
    ),
    "rows that are people": (
        lambda p: p.merge(pd.DataFrame({"id": [1]}).dp.open(1), on="id"),
        "unit='id'",
    ),
    "without the person": (lambda p: p.merge(p, on="state"), "on= must name 'id'"),
    "another how": (lambda p: p.merge(p, on="id", how="cross"), "'outer'"),
    "validated": (lambda p: p.merge(p, on="id", validate="1:1"), "validate="),
    "an indicator": (lambda p: p.merge(p, on="id", indicator=True), "indicator="),
    "names twice": (lambda p: p.merge(p, on="id", suffixes=("", "")), "suffixes="),
    "a public table joined": (lambda p: p.join(pd.DataFrame({"id": [1]}), on="id"), "p.merge"),
    "two ways to say on": (lambda p: p.merge(p, on="id", left_on="id", right_on="id"), "not both"),
    "half of the keys": (lambda p: p.merge(p, left_on="id"), "belong together"),
}


@pytest.mark.parametrize("name", JOINS)
def test_a_join_that_is_no_persons_own_is_refused(p, name):
    act, advice = JOINS[name]
    with pytest.raises(dpframe.DPError) as caught:
        act(p)
    assert advice in str(caught.value)
    assert p.budget.spent == 0


def test_a_join_needs_the_limits_of_both_sides(p, visits):
    q = (
        visits[["id", "cost"]]
        .copy()
        .dp.open(accountant=p.accountant, unit="id", because="the same people")
    )
    with pytest.raises(BadValue, match="max_rows= of both tables"):
        p.merge(q, on="id")
    assert p.merge(q.groupby("id").head(2), on="id").explain.count(epsilon=1).sensitivity == 24


def test_rows_of_pipe_are_joined_by_what_they_hold(p, visits):
    totals = p.pipe(
        lambda d: d.groupby("id", as_index=False).agg(total=("cost", "sum")), max_rows=1
    )
    assert p.merge(totals, on="id").explain.count(epsilon=1).sensitivity == 12
    lists = p.pipe(
        lambda d: d.assign(o=pd.Series([[1]] * len(d), index=d.index, dtype=object)), max_rows=1
    )
    with pytest.raises(Refused, match="give it a dtype"):
        p.merge(lists, on="id")
