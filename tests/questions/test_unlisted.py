"""Groups that nobody listed: what is found, what it costs, and what stays free."""

from __future__ import annotations

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, BadValue, BudgetError, BudgetExceeded, MissingKeys

BOUNDS = {"age": (0, 100)}


def visits(**changes):
    sizes = {"CA": 3000, "NY": 2000, "TX": 900, "XX": 1}
    state = np.repeat(list(sizes), list(sizes.values()))
    n = len(state)
    frame = pd.DataFrame(
        {"state": state, "sex": np.where(np.arange(n) % 3, "F", "M"), "age": np.arange(n) % 80}
    )
    return frame.assign(id=np.arange(n) // 2, **changes)


@pytest.fixture
def p():
    return visits().dp.open(3, delta=1e-6, bounds=BOUNDS)


def test_unique_finds_what_many_share_in_order(p):
    found = p.unique("state")
    assert list(found) == ["CA", "NY", "TX"]
    assert found.name == "state"
    assert found.dtype == visits()["state"].dtype
    assert list(p["state"].unique()) == list(found)


def test_combinations(p):
    found = p.unique(["state", "sex"])
    assert list(found) == [(s, x) for s in ("CA", "NY", "TX") for x in "FM"]
    assert found.names == ["state", "sex"]


@pytest.mark.parametrize(
    ("column", "type_"),
    [("age", int), (pd.Series(np.arange(5901) % 3 / 2), float), (pd.Series(np.arange(5901) % 2 == 0), bool),
     (pd.Series(pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(5901) % 4, unit="D")), pd.Timestamp),
     (pd.Series([Decimal("1.1"), "a", 1, True] * 1475 + [None], dtype=object), object)],
    ids=["int", "float", "bool", "time", "mixed"],
)  # fmt: skip
def test_keys_are_those_of_the_dtype_and_can_be_asked_about(column, type_):
    frame = visits() if isinstance(column, str) else visits(state=column)
    name = column if isinstance(column, str) else "state"
    p = frame.dp.open(200, delta=1e-4, bounds=BOUNDS)
    found = p.unique(name, epsilon=5)
    assert all(isinstance(k, type_) for k in found)
    sizes = p.value_counts(name, keys=found, epsilon=8)
    truth = frame[name].value_counts()
    if name == "age" or type_ is not object:
        assert len(found) == frame[name].nunique()
        assert (sizes - truth).abs().max() <= 3
    else:  # Python holds True and 1 for one key: the first in the order of types stays
        assert set(map(str, found)) == {"1.1", "a", "True"}


def test_several_unlisted_columns_are_found_as_combinations(p):
    table = p.groupby(["state", "sex"]).agg(n=("age", "size"), m=("age", "mean"))
    assert list(table.index) == [(s, x) for s in ("CA", "NY", "TX") for x in "FM"]
    assert table.index.names == ["state", "sex"]
    assert p.ledger["question"].tolist() == [
        "size(), mean(age, bounds=(0, 100)) by state over keys to be found, sex over keys to be found"
    ]
    assert p.explain.groupby(["state", "sex"]).size().groups == 6
    with pytest.raises(MissingKeys, match="all but one"):
        p.assign(x="age > 5").groupby(["state", "sex", "x"]).size()


def test_what_is_not_found_is_collected(p):
    sizes = p.groupby("state", other="elsewhere").size()
    assert list(sizes.index) == ["CA", "NY", "TX", "elsewhere"]
    counts = p.value_counts("state", other="elsewhere", sort=False)
    assert list(counts.index) == ["CA", "NY", "TX", "elsewhere"]
    assert abs(counts["elsewhere"]) < 200


def test_nulls_are_no_key_unless_asked_for():
    p = visits(state=np.where(np.arange(5901) % 2, "a", None)).dp.open(200, delta=1e-4)
    assert list(p.unique("state", epsilon=5)) == ["a"]
    sizes = p.groupby("state", dropna=False).size(epsilon=10)
    assert sizes.index.isna().tolist() == [False, True]
    assert sizes.sum() == pytest.approx(5901, abs=5)


def part_of(p, epsilon):
    """What a pure question of this price takes of a budget that nobody has used."""
    return float(
        p.budget.rule.spent(
            p.budget.rule.after(p.budget.rule.start(), p.explain.count(epsilon=epsilon).charge)
        )
    )


def test_one_release_finds_the_groups_and_answers(p):
    answer = p.groupby("state").mean("age", epsilon=0.5)
    assert list(answer.index) == ["CA", "NY", "TX"]
    assert p.ledger["question"].tolist() == [
        "mean(age, bounds=(0, 100)) by state over keys to be found"
    ]
    assert p.budget.fraction <= 1.0001 * part_of(p, 0.5)


def test_where_a_choice_is_asked_for_half_of_a_price_finds_and_half_asks(p):
    answer = p.groupby("state").median("age", epsilon=0.5)
    assert list(answer.index) == ["CA", "NY", "TX"]
    questions = p.ledger["question"].tolist()
    assert questions == [
        "keys of state",
        "quantile(age, 0.5, bounds=(0, 100)) by state over 3 keys",
    ]
    assert p.budget.fraction <= 1.0001 * part_of(p, 0.5)


def test_the_release_takes_the_mechanism_of_the_question():
    p = visits().dp.open(3, delta=1e-6, bounds=BOUNDS)
    p.groupby("state").size(mechanism="laplace")
    p.groupby("sex").size(mechanism="gaussian")
    p.groupby(["state", "sex"]).mean("age", mechanism="laplace")
    p.groupby("age").median("age", mechanism="auto")
    assert p.ledger["mechanism"].tolist()[:3] == [
        "truncated threshold",
        "gaussian threshold",
        "laplace threshold",
    ]


def test_twenty_shares_fit_whatever_is_unlisted():
    frame = visits()
    for i in range(20):
        frame[f"c{i}"] = np.where(np.arange(len(frame)) % (i + 2), "x", "y")
    p = frame.dp.open(2, delta=1e-6, bounds=BOUNDS)
    for i in range(20):
        p.groupby(f"c{i}").size()
    assert p.budget.fraction <= 1
    assert p.budget.spent_delta <= 0.5e-6 * (1 + 1e-12)


def test_keys_are_found_once_and_repeats_are_free(p):
    first = p.groupby("state").mean("age")
    spent = p.budget.fraction
    pd.testing.assert_series_equal(p.groupby("state").mean("age"), first)
    pd.testing.assert_series_equal(p.groupby("state")["age"].mean(), first)
    assert p.budget.fraction == spent
    p.groupby("state").size()
    assert p.ledger["question"].str.contains("to be found").sum() == 1
    assert p.groupby("state").size(fresh=True) is not None
    assert p.ledger["question"].str.contains("to be found").sum() == 1
    p.query("age > 20").groupby("state").size()
    assert p.ledger["question"].str.contains("to be found").sum() == 2
    p.groupby("state").median("age")
    assert not p.ledger["question"].str.contains("keys of").any()


def test_found_counts_are_one_question_whatever_verb_asks(p):
    sizes = p.groupby("state").size()
    spent = p.budget.fraction
    assert p.value_counts("state", sort=False).tolist() == sizes.tolist()
    assert p["state"].value_counts(sort=False).tolist() == sizes.tolist()
    assert (
        p.value_counts("state", sort=False, normalize=True).tolist()
        == (sizes / sizes.sum()).tolist()
    )
    assert p.groupby("state", as_index=False).size()["size"].tolist() == sizes.tolist()
    assert p.budget.fraction == spent
    assert len(p.ledger) == 1


def test_what_was_found_is_nobodys_word(p):
    p.groupby("state").size()
    p.groupby("state").mean("age")
    assert p.ledger["declared"].tolist() == ["", ""]


def test_listed_and_unlisted_columns_together(p):
    table = p.groupby(["state", "sex"], keys={"sex": ["F", "M"]}).agg(
        n=("age", "size"), m=("age", "mean")
    )
    assert list(table.index) == [(s, x) for s in ("CA", "NY", "TX") for x in "FM"]
    assert table["n"].sum() == pytest.approx(5900, rel=0.1)


@pytest.mark.parametrize(
    "ask",
    [lambda p, **w: p.value_counts("state", **w), lambda p, **w: p.groupby("state")[["age"]].agg(["mean", "count"], **w),
     lambda p, **w: p["state"].value_counts(**w), lambda p, **w: p.groupby("state").sum("age", **w),
     lambda p, **w: p.groupby("state", as_index=False).agg(m=("age", "mean"), **w),
     lambda p, **w: p.groupby("state")["age"].agg(["count", "std"], **w),
     lambda p, **w: p.groupby("state").agg({"age": "std"}, **w)],
)  # fmt: skip
def test_what_is_measured_is_measured_as_it_is_found(p, ask):
    plan = ask(p.explain)
    assert "to be found" in plan.question
    assert "threshold" in plan.mechanism
    assert p.budget.fraction == 0
    answer = ask(p)
    assert "CA" in str(answer)
    assert "XX" not in str(answer)
    assert answer.dp.plan.charge == plan.charge
    assert answer.dp.plan.parts == plan.parts
    assert answer.dp.interval().notna().all(axis=None)
    assert "takes nothing" in repr(ask(p.explain))
    assert len(p.ledger) == 1


@pytest.mark.parametrize(
    "ask",
    [lambda p, **w: p.argmax("state", **w), lambda p, **w: p.top("state", 2, **w),
     lambda p, **w: p.groupby("state").median("age", **w), lambda p, **w: p.groupby("state").nunique("age", **w),
     lambda p, **w: p.groupby("state", other="rest").size(**w)],
)  # fmt: skip
def test_keys_are_found_before_what_is_chosen_among_them(p, ask):
    plan = ask(p.explain)
    assert plan.question == "keys of state"
    assert p.budget.fraction == 0
    answer = ask(p)
    assert "CA" in str(answer)
    assert "XX" not in str(answer)
    assert not ask(p.explain).question.startswith("keys")
    assert len(p.ledger) == 2


def test_people_are_counted_and_not_rows():
    frame = visits()
    frame.loc[frame["state"] == "XX", "id"] = -1
    frame = pd.concat(
        [frame, frame[frame["state"] == "XX"].loc[lambda d: d.index.repeat(5000)]],
        ignore_index=True,
    )
    p = frame.dp.open(3, delta=1e-6, bounds=BOUNDS, unit="id", max_rows=3, max_groups=2)
    assert list(p.unique("state")) == [
        "CA",
        "NY",
        "TX",
    ]  # one person's five thousand rows are one person's
    assert list(p.groupby("state").mean("age").index) == ["CA", "NY", "TX"]
    with pytest.raises(BadValue, match="max_groups"):
        visits().dp.open(3, delta=1e-6, unit="id").unique("state")
    assert (
        p.explain.unique("state", max_groups=1).parts[0].noise.half
        < p.explain.unique("state").parts[0].noise.half
    )


def test_without_delta_keys_must_be_listed():
    p = visits().dp.open(3, bounds=BOUNDS)
    with pytest.raises(MissingKeys, match="delta"):
        p.groupby("state")
    with pytest.raises(MissingKeys, match="unique"):
        p.value_counts("state")
    with pytest.raises(BudgetError, match="delta"):
        p.unique("state")
    assert len(p.ledger) == 0


def test_delta_is_what_the_session_keeps(p):
    with pytest.raises(BudgetExceeded):
        p.unique("state", delta=0.6e-6)
    p.unique("state", delta=0.4e-6)
    assert p.budget.spent_delta == pytest.approx(0.4e-6)
    with pytest.raises(BudgetExceeded):
        p.unique("sex", delta=0.2e-6)


@pytest.mark.parametrize("rule", ["tight", "gdp", "zcdp", "rdp", "advanced", "pure"])
def test_every_accountant_pays_for_it(rule):
    p = visits().dp.open(3, delta=1e-6, bounds=BOUNDS, accountant=rule)
    assert list(p.groupby("state").size().index) == ["CA", "NY", "TX"]
    assert list(p.unique("state", epsilon=0.2, mechanism="laplace")) == ["CA", "NY", "TX"]
    assert 0 < p.budget.spent_delta <= 1e-6
    assert p.budget.report()["epsilon"].min() < 3


def test_a_batch_needs_its_keys_before(p):
    with pytest.raises(BadValue, match="unique"), p.plan_ahead() as batch:
        batch.groupby("state").size()
    with p.plan_ahead() as batch:
        found = batch.unique("state")
    assert list(found.answer) == ["CA", "NY", "TX"]


def test_nothing_found_says_what_it_takes():
    p = visits().head(20).dp.open(1, delta=1e-6)
    assert list(p.unique("state")) == []
    assert p.unique(["state", "sex"]).names == ["state", "sex"]
    with pytest.raises(MissingKeys, match="enough people"):
        p.groupby("state").median("age", bounds=(0, 1))
    assert "people" in repr(p.explain.unique("state"))


@pytest.mark.parametrize(
    "ask",
    [lambda p: p.groupby("state").size(), lambda p: p.value_counts("state", normalize=True),
     lambda p: p.groupby("state", as_index=False)["age"].mean(), lambda p: p.groupby(["state", "sex"])["age"].agg(["sum", "std"]),
     lambda p: p.groupby("state")[["age"]].agg(["count", "std"]), lambda p: p.groupby(["state", "sex"], as_index=False).size()],
)  # fmt: skip
def test_nothing_found_is_an_empty_answer(ask):
    p = visits().head(20).dp.open(1, delta=1e-6, bounds=BOUNDS)
    answer = ask(p)
    assert len(answer) == 0
    assert len(answer.dp.interval()) == len(answer.dp.interval(0.9, at_once=True)) == 0
    assert len(p.ledger) == 1
    assert ask(p).equals(answer)
    assert len(p.ledger) == 1


@pytest.mark.filterwarnings(
    "error::dpframe.PrivacyWarning", "ignore:second budget on a table opened before"
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda p: p.unique("state"),
        lambda p: p.groupby("state").size(),
        lambda p: p["state"].value_counts(),
    ],
)
def test_nothing_found_is_warned_of_once(ask):
    p = visits().head(20).dp.open(1, delta=1e-6)
    with pytest.warns(
        dpframe.PrivacyWarning, match="no value of 'state' was found that enough people share"
    ):
        found = ask(p)
    assert len(found) == 0
    assert len(ask(p)) == 0  # a repeat is free and says nothing
    assert len(p.ledger) == 1


def test_answers_come_back_from_a_ledger_file(tmp_path):
    words = {
        "delta": 1e-6,
        "bounds": BOUNDS,
        "ledger": str(tmp_path / "l.db"),
        "population": "v",
        "version": "1",
    }
    frame = visits()
    p = frame.dp.open(3, **words)
    first, pairs = p.groupby("state").mean("age"), p.unique(["state", "sex"])
    spent = p.budget.fraction
    p.close()
    again = visits().dp.open(3, **words)
    pd.testing.assert_series_equal(again.groupby("state").mean("age"), first, check_names=True)
    pd.testing.assert_index_equal(again.unique(["state", "sex"]), pairs)
    assert again.budget.fraction == spent
    again.close()


def test_arguments():
    p = visits(odd=[(1, 2)] * 5901).dp.open(3, delta=1e-6)
    with pytest.raises(BadValue):
        p.unique([])
    with pytest.raises(dpframe.DPError):
        p.unique("nope")
    with pytest.raises(BadValue):
        p.unique("state", delta=-1)
    with pytest.raises(BadValue):
        p.unique("state", mechanism="exponential")
    with pytest.raises(BadValue, match="within"):
        p.unique("state", within=3)
    with pytest.raises(BadType):
        p.unique("state", epsilons=3)
    with pytest.raises(MissingKeys):
        len(p.groupby("state"))
    with pytest.raises(MissingKeys, match="all but one"):
        p.crosstab(["state", "sex"], p["age"].cut([0, 50, 110]))
    assert len(p.ledger) == 0
    assert list(p.unique("odd")) == []  # cells that can be no key are nobody's


def test_a_table_finds_the_keys_of_both_its_sides_for_half_of_its_price(p):
    assert "keys" in p.explain.crosstab("state", "sex", epsilon=0.2).question
    answer = p.crosstab("state", "sex", epsilon=0.2)
    assert set(answer.index) <= {"CA", "NY", "TX"}
    assert list(answer.columns) == ["F", "M"]
    assert len(p.ledger) == 2
    other = visits().dp.open(3, delta=1e-6)
    other.count(epsilon=0.2)
    assert p.budget.fraction <= other.budget.fraction * 1.05
    same = p.crosstab("state", "sex", margins=True, epsilon=0.2)  # margins are of the same release
    assert same.iloc[:-1, :-1].equals(answer)
    assert len(p.ledger) == 2
    p.pivot_table("age", "state", epsilon=0.2)
    assert len(p.ledger) == 4


def test_what_a_table_cannot_be_is_said_before_its_keys_are_paid(p):
    for ask, error in (
        (lambda: p.crosstab("state", "sex", margins=True, margins_name=3), BadType),
        (
            lambda: p.pivot_table("age", "state", aggfunc="nunique", margins=True),
            dpframe.NotOffered,
        ),
        (lambda: p.pivot_table("age", "state", bounds=(1, 0)), BadValue),
        (lambda: p.crosstab("state", "sex", rownames=["a", "b"]), BadValue),
        (lambda: p.groupby("state")["sex"].value_counts(normalize=True), dpframe.NotOffered),
    ):
        with pytest.raises(error):
            ask()
    assert p.ledger.empty


def test_values_in_groups_that_nobody_listed_are_found_with_them(p):
    counts = p.groupby("state")["sex"].value_counts(epsilon=0.2)
    assert counts.index.names == ["state", "sex"]
    for _, part in counts.groupby(level="state"):
        assert part.is_monotonic_decreasing
    assert len(p.ledger) == 1
    assert p[["state", "sex"]].value_counts(epsilon=0.2).sum() == counts.sum()  # the same release
    assert len(p.ledger) == 1


def test_sampling_nothing_warns_nothing(p):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p.groupby("state").size()
