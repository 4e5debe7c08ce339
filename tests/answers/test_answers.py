"""Answers are what pandas would return, with the same names, index, order and dtypes whatever the cells are."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadValue, MissingKeys

STATES = ["NY", "CA", "WA"]
BOUNDS = {"age": (0, 110), "cost": (0, 1000)}


@pytest.fixture
def df():
    return pd.DataFrame(
        {
            "age": [31, 47, 66, 80, 12, 55, 70, 41],
            "cost": [120.5, None, 80.25, 900.0, 15.0, 60.0, 30.0, 300.0],
            "state": ["CA", "NY", "CA", "OR", None, "NY", "CA", "CA"],
            "smoker": [True, False, False, True, False, True, False, False],
        }
    )


@pytest.fixture
def p(df):
    return df.dp.open(1000, bounds=BOUNDS, keys={"state": STATES})


# Shapes -------------------------------------------------------------------------------------------------------


def same_labels(answer, exact):
    assert isinstance(answer, type(exact))
    pd.testing.assert_index_equal(answer.index, exact.index, exact="equiv")
    if isinstance(exact, pd.DataFrame):
        pd.testing.assert_index_equal(answer.columns, exact.columns)
        assert answer.dtypes.tolist() == exact.dtypes.tolist()
    else:
        assert (answer.name, answer.dtype) == (exact.name, exact.dtype)


GROUPED = {
    "mean of one": lambda g, **o: g["cost"].mean(**o),
    "sum of one": lambda g, **o: g["age"].sum(**o),
    "count of one": lambda g, **o: g["cost"].count(**o),
    "var of one": lambda g, **o: g["age"].var(**o),
    "std of one": lambda g, **o: g["age"].std(**o),
    "mean of two": lambda g, **o: g[["age", "cost"]].mean(**o),
    "sum of a list of one": lambda g, **o: g[["age"]].sum(**o),
    "size": lambda g, **o: g.size(**o),
    "size of one": lambda g, **o: g["age"].size(**o),
    "size of two": lambda g, **o: g[["age", "cost"]].size(**o),
    "agg": lambda g, **o: g.agg(m=("cost", "mean"), n=("age", "size"), s=("age", "sum"), **o),
    "agg by dict": lambda g, **o: g.agg({"cost": "mean", "age": "count"}, **o),
    "attribute": lambda g, **o: g.cost.mean(**o),
}


@pytest.mark.parametrize("ask", GROUPED)
@pytest.mark.parametrize("by", ["state", ["state"], ["state", "smoker"]], ids=str)
def test_grouped_answer_has_pandas_type_names_index_and_dtypes(df, ask, by):
    df = pd.concat([df] * 40, ignore_index=True)
    p = df.dp.open(1000, bounds=BOUNDS, keys={"state": STATES})
    answer = GROUPED[ask](p.groupby(by), epsilon=900)
    exact = GROUPED[ask](df.groupby(by))
    wanted = pd.Index(STATES, name="state")
    if by == ["state", "smoker"]:
        wanted = pd.MultiIndex.from_product([wanted, pd.Index([False, True], name="smoker")])
    same_labels(answer, exact.reindex(wanted, fill_value=0))
    known = exact.reindex(wanted).dropna()
    if "var" not in ask and "std" not in ask:
        np.testing.assert_allclose(
            answer.loc[known.index].astype(float), known.astype(float), rtol=0.02, atol=2
        )


def test_column_by_name_is_the_same_question_as_selection(p):
    by_name = p.groupby("state").mean("cost")
    pd.testing.assert_series_equal(by_name, p.groupby("state")["cost"].mean())
    assert len(p.ledger) == 1


def test_all_declared_keys_come_back_in_declared_order_and_others_do_not(p):
    sizes = p.groupby("state").size(epsilon=300)
    assert sizes.to_dict() == {"NY": 2, "CA": 4, "WA": 0}
    assert list(sizes.index) == STATES


def test_keys_of_the_verb_win_over_declared_ones(p):
    assert p.groupby("state", keys=["OR", "CA"]).size(epsilon=300).to_dict() == {"OR": 1, "CA": 4}


def test_null_group_appears_only_where_it_is_a_key(p):
    sizes = p.groupby("state", keys=["CA", None]).size(epsilon=300)
    assert sizes.tolist() == [4, 1]
    assert sizes.index.isna().tolist() == [False, True]


def test_keys_of_two_columns_are_a_product_in_order(p):
    sizes = p.groupby(["smoker", "state"], keys={"state": ["CA", "NY"]}).size(epsilon=300)
    assert list(sizes.index) == [(False, "CA"), (False, "NY"), (True, "CA"), (True, "NY")]
    assert sizes.index.names == ["smoker", "state"]
    listed = p.groupby(["smoker", "state"], keys=[[True], ["NY"]]).size(epsilon=300)
    assert listed.to_dict() == {(True, "NY"): 1}


def test_groups_follow_a_rename(p):
    q = p.rename(columns={"state": "where"})
    assert q.groupby("where").size().index.name == "where"
    assert q.value_counts("where").index.name == "where"


def test_missing_keys_say_what_to_write(df):
    p = df.dp.open(1)
    for ask in (
        lambda: p.groupby("state"),
        lambda: p.value_counts("state"),
        lambda: p.argmax("state"),
        lambda: p.groupby("age"),
    ):
        with pytest.raises(MissingKeys, match=r"keys=\[\.\.\.\]"):
            ask()
    assert list(p.groupby("smoker").size(epsilon=0.5).index) == [False, True]


def test_value_counts_sorts_by_what_was_released(df, p):
    counts = p.value_counts("state", epsilon=300)
    assert (counts.name, counts.index.name, counts.dtype) == ("count", "state", np.dtype("int64"))
    assert counts.to_dict() == {"CA": 4, "NY": 2, "WA": 0}
    assert list(counts.index) == ["CA", "NY", "WA"]
    assert list(p.value_counts("state", sort=False, epsilon=300).index) == STATES
    exact = df["state"].value_counts()
    assert (counts.name, counts.index.name) == (exact.name, exact.index.name)


def test_sorting_does_not_change_the_question(p):
    p.value_counts("state")
    p.value_counts("state", sort=False)
    assert len(p.ledger) == 1


def test_several_columns_give_a_series_by_column(df, p):
    for ask in ("mean", "sum", "var", "std"):
        answer = getattr(p[["age", "cost"]], ask)(epsilon=100)
        exact = getattr(df[["age", "cost"]], ask)()
        assert list(answer.index) == list(exact.index)
        assert (answer.name, answer.dtype) == (None, exact.dtype)
    assert len(p.ledger) == 3  # a variance and a deviation are read off one release


def test_counts_answers_overlapping_questions_by_name(df, p):
    limit = 60
    answer = p.counts(
        {"smokers": "smoker", "old": "age > @limit", "both": p["smoker"] & (p["age"] > limit)},
        epsilon=300,
    )
    assert answer.to_dict() == {"smokers": 3, "old": 3, "both": 1}
    assert (answer.name, answer.dtype) == ("count", np.dtype("int64"))
    assert p.explain.counts({"a": "smoker", "b": "age > 1", "c": "age > 2"}).sensitivity == 3
    for bad in ({}, ["smoker"], "smoker"):
        with pytest.raises(BadValue, match="questions by name"):
            p.counts(bad)


def test_argmax_is_a_bare_key_of_its_own_type(df):
    frame = df.assign(n=[1, 2, 2, 2, 3, 3, 2, 2], when=pd.Timestamp("2024-05-01"))
    p = frame.dp.open(1000)
    assert p.argmax("state", keys=STATES, epsilon=100) == "CA"
    assert type(p.argmax("n", keys=[1, 2, 3], epsilon=100)) is int
    assert type(p.argmax("n", keys=range(1, 4), epsilon=100)) is int
    assert p.argmax("smoker", epsilon=100) is False
    assert p.argmax("state", keys=[None], epsilon=100) is None
    day = p.argmax("when", keys=["2024-05-01", "2024-05-02"], epsilon=100)
    assert day == pd.Timestamp("2024-05-01")


def test_argmax_costs_its_price_once_for_any_number_of_candidates(df):
    p = df.dp.open(1)
    p.argmax("age", keys=range(1000), epsilon=0.25)
    assert p.budget.spent == 0.25


def test_label_of_an_answer_may_be_changed_without_changing_the_next(p):
    for ask in (
        lambda: p.groupby("state").size(),
        lambda: p.histogram("age", bins=[0, 50, 110]),
        lambda: p.value_counts("smoker"),
    ):
        first = ask()
        name = first.index.name
        first.index.name = "mine"
        assert ask().index.name == name
        assert ask().dp.plan


# Nothing but the numbers depends on the data ------------------------------------------------------------------

EVERY = {
    "count": lambda p: p.count(),
    "count of a column": lambda p: p.count("cost"),
    "sum of integers": lambda p: p.sum("age"),
    "sum of floats": lambda p: p.sum("cost"),
    "integers by fractional bounds": lambda p: p.sum("age", bounds=(0.5, 99.5)),
    "mean": lambda p: p.mean("cost"),
    "var": lambda p: p.var("cost"),
    "std": lambda p: p.std("age", ddof=0),
    "means": lambda p: p[["age", "cost"]].mean(),
    "counts": lambda p: p.counts({"a": "smoker", "b": "age > 50"}),
    "histogram": lambda p: p.histogram("cost"),
    "value_counts": lambda p: p.value_counts("state", sort=False),
    "size": lambda p: p.groupby(["state", "smoker"]).size(),
    "grouped mean": lambda p: p.groupby("state")["cost"].mean(),
    "grouped table": lambda p: p.groupby("state").agg(
        n=("age", "size"), m=("cost", "mean"), s=("age", "sum")
    ),
    "filtered": lambda p: p.query("age > 1000").mean("cost"),
}
OTHERS = {
    "empty": lambda d: d.iloc[:0],
    "one row": lambda d: d.iloc[:1],
    "many rows": lambda d: pd.concat([d] * 50, ignore_index=True),
    "nulls": lambda d: d.assign(
        cost=np.nan, state=pd.Series([None] * len(d), dtype=d["state"].dtype)
    ),
    "out of bounds": lambda d: d.assign(age=-(2**62), cost=np.inf),
    "other groups": lambda d: d.assign(state="Atlantis"),
}


def form(answer):
    if isinstance(answer, pd.DataFrame):
        return (
            type(answer),
            answer.dtypes.to_dict(),
            list(answer.index),
            list(answer.columns),
            answer.index.names,
        )
    if isinstance(answer, pd.Series):
        return type(answer), answer.dtype, list(answer.index), answer.name, answer.index.names
    return type(answer)


@pytest.mark.parametrize("ask", EVERY)
def test_type_index_and_plan_do_not_depend_on_the_data(df, ask):
    frames = [df.copy(), *(make(df) for make in OTHERS.values())]
    terms = {"bounds": BOUNDS, "keys": {"state": STATES}, "because": "a neighbour"}
    opened = [f.dp.open(1, **terms) for f in frames]
    answers = [EVERY[ask](p) for p in opened]
    assert all(form(a) == form(answers[0]) for a in answers)
    plans = [a.plan if isinstance(a, dpframe.Estimate) else a.dp.plan for a in answers]
    assert all(plan == plans[0] for plan in plans)
    for answer in answers:
        values = np.asarray(answer, dtype=float)
        assert np.isfinite(values).all()


def test_categories_of_the_dtype_are_not_groups_of_the_answer(df):
    answers = []
    for categories in (["CA", "NY", "OR"], ["OR", "NY", "CA", "XX"]):
        frame = df.assign(state=pd.Categorical(df["state"], categories=categories))
        p = frame.dp.open(1000, because="a neighbour")
        answers.append(p.value_counts("state", keys=STATES, sort=False, epsilon=300))
    assert answers[0].to_dict() == answers[1].to_dict() == {"NY": 2, "CA": 4, "WA": 0}
    pd.testing.assert_index_equal(answers[0].index, answers[1].index)


@pytest.mark.parametrize(
    ("column", "keys", "error"),
    [
        ("age", [1, 1.0], ValueError),
        ("age", [0.0, -0.0], ValueError),
        ("age", [True], TypeError),
        ("age", ["31"], TypeError),
        ("smoker", [1, 0], TypeError),
        ("state", [31], TypeError),
        ("state", ["CA", "CA"], ValueError),
        ("state", [None, float("nan")], ValueError),
        ("state", "CA", TypeError),
        ("state", {"CA", "NY"}, TypeError),
        ("state", [], ValueError),
        ("state", [["CA"]], TypeError),
    ],
    ids=str,
)
def test_wrong_keys_are_refused_by_dtype_and_charge_nothing(p, column, keys, error):
    for ask in (p.groupby, p.value_counts, p.argmax):
        with pytest.raises(error):
            ask(column, keys=keys)
    assert p.budget.spent == 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda p: p[["age", "cost"]].mean(bounds={"aeg": (0, 1)}),
        lambda p: p.groupby("state").agg(m=("age", "mean"), bounds={"aeg": (0, 1)}),
        lambda p: p.groupby("state", keys={"sate": ["CA"]}),
        lambda p: p.groupby(["state", "smoker"], keys={"state": ["CA"], "smoekr": [True]}),
    ],
)
def test_mistyped_column_of_bounds_and_keys_is_not_ignored(p, ask):
    with pytest.raises(dpframe.UnknownColumn, match="Did you mean"):
        ask(p)


@pytest.mark.parametrize("verb", ["var", "std"])
def test_bounds_whose_squares_are_no_doubles_are_refused_before_they_cost(df, verb):
    p = df.dp.open(1)
    with pytest.raises(BadValue, match="too wide"):
        getattr(p, verb)("cost", bounds=(-1e200, 1e308))
    assert p.budget.spent == 0
    assert np.isfinite(getattr(p, verb)("cost", bounds=(0, 1e150), epsilon=1).interval()).all()


@pytest.mark.parametrize(
    "ask",
    [
        lambda p: p[["age", "age"]],
        lambda p: p.groupby("state")[["age", "age"]],
        lambda p: p[[]].mean(),
        lambda p: p.groupby("state")[[]].mean(),
        lambda p: p.groupby("state").agg(),
        lambda p: p.groupby("state").agg({}),
        lambda p: p.groupby([]),
        lambda p: p.counts({}),
    ],
)
def test_question_that_asks_nothing_costs_nothing(p, ask):
    with pytest.raises(BadValue):
        ask(p)
    assert p.ledger.empty


def test_every_group_gets_noise_of_its_own(df):
    p = df.iloc[:0].dp.open(1)
    sizes = p.groupby("age", keys=range(2000)).size(epsilon=0.01)
    assert sizes.nunique() > 200
    assert abs(sizes.autocorr(1)) < 0.2


def test_noise_has_no_seed(df):
    found = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)
        p = df.dp.open(1, because=f"run {len(found)}")
        found.append(p.groupby("age", keys=range(50)).size(epsilon=0.01).tolist())
    assert found[0] != found[1]


def test_replace_one_makes_the_number_of_rows_public_and_nothing_else(df):
    p = df.fillna({"cost": 0.0}).dp.open(1, neighbors="replace-one", bounds=BOUNDS)
    assert "public number of rows" in repr(p.fillna({"cost": 1.0}).explain.mean("cost"))
    assert "public number of rows" not in repr(p.query("age > 3").explain.mean("cost"))
    assert "public number of rows" not in repr(
        p.explain.mean("cost")
    )  # nulls are possible by dtype


# Explain ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", EVERY)
def test_explain_is_free_and_gives_the_plan_of_the_answer(df, p, ask):
    before = p.budget
    plan = EVERY[ask](p.explain)
    assert isinstance(plan, dpframe.Plan)
    assert p.budget == before
    assert p.ledger.empty
    answer = EVERY[ask](p)
    assert plan == (answer.plan if isinstance(answer, dpframe.Estimate) else answer.dp.plan)
    assert plan.epsilon == 50
    row = p.ledger.iloc[-1]
    assert (row["question"], row["mechanism"], row["scale"], row["epsilon"]) == (
        plan.question,
        plan.mechanism,
        plan.scale,
        plan.epsilon,
    )


def test_explain_does_not_refuse_what_the_budget_cannot_pay(df):
    p = df.dp.open(0.1)
    assert p.explain.count(epsilon=5).epsilon == 5


def test_plan_states_sensitivity_scale_price_and_expected_error(p):
    plan = p.explain.sum("cost", epsilon=0.5)
    assert (plan.sensitivity, plan.scale, plan.epsilon, plan.mechanism) == (
        1000,
        2000,
        0.5,
        "laplace",
    )
    assert plan.error(0.95) == pytest.approx(2000 * np.log(20), rel=1e-3)
    with pytest.raises(
        BadValue,
        match=r"the error of cost depends on how many values there are: plan.error\(n=1000\)",
    ):
        p.explain.mean("cost").error()
    assert p.explain.mean("cost").error(n=1000) < p.explain.mean("cost").error(n=100)
    for part in ("question", "price", "sensitivity", "scale", "error, 95 %", "why"):
        assert part in repr(plan)
