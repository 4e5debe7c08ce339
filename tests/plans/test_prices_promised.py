"""What `epsilon=` takes of a budget with delta, in sessions: the promise, what plans and refusals say of it, and large deltas."""

from __future__ import annotations

import re
import warnings
from fractions import Fraction

import pandas as pd
import pytest

import dpframe
from dpframe import BadValue, BudgetError, BudgetExceeded, PrivacyWarning
from tests.accounting.rules import ADAPTIVE
from tests.ledger.people import BOUNDS, KEYS, people

WITH_DELTA = ADAPTIVE
ASKS = {
    "count": lambda p, **o: p.count(**o),
    "histogram": lambda p, **o: p.histogram("age", bins=8, **o),
    "groups": lambda p, **o: p.groupby("state").agg(n=("age", "size"), m=("cost", "mean"), **o),
    "mean": lambda p, **o: p.mean("age", **o),
    "argmax": lambda p, **o: p.argmax("state", **o),
    "median": lambda p, **o: p.median("age", **o),
}


def opened(epsilon=3, delta=1e-6, **terms):
    return people().dp.open(epsilon, delta, **{"bounds": BOUNDS, "keys": KEYS, **terms})


@pytest.fixture(autouse=True)
def large_questions_are_meant():
    """These sessions ask them on purpose."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="this question is too large")
        yield


# The promise -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("each", ["1", "0.5", "0.3", "0.2", "0.1"])
def test_counts_that_fit_are_never_fewer_than_of_the_plain_sum(each):
    """Of 0.5 there was one, where the plain sum has six."""
    p = opened(3, 1e-6)
    found = 0
    while True:
        try:
            p.count(epsilon=float(each), fresh=True)
        except BudgetExceeded:
            break
        found += 1
    assert found >= int(3 / Fraction(each))
    assert found == {"1": 3, "0.5": 6, "0.3": 10, "0.2": 15, "0.1": 39}[each]


def test_session_with_a_few_percent_used_admits_a_large_question():
    p = opened(4, 1e-6)
    p.count(epsilon=0.1)
    p.mean("age", epsilon=0.03)
    assert p.budget.fraction < 0.035
    assert p.count("age", epsilon=1.3) is not None


@pytest.mark.parametrize("first", ASKS)
@pytest.mark.parametrize("accountant", WITH_DELTA)
def test_questions_that_add_up_to_the_budget_fit_in_any_order(accountant, first):
    p = opened(3, 1e-6, accountant=accountant)
    ASKS[first](p, epsilon=1, fresh=True)
    for i, ask in enumerate([*ASKS.values(), *ASKS.values()]):
        ask(p, **({"fresh": True} if i % 3 == 0 else {"epsilon": 0.15, "fresh": True}))
    ASKS[first](p, epsilon=0.2, fresh=True)
    assert p.budget.fraction <= 1


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("accountant", [*WITH_DELTA, "pld"])
def test_questions_of_a_batch_fit_together(accountant, order):
    """Each is priced after those that are in the batch already."""
    p = opened(3, 1e-6, accountant=accountant)
    with p.plan_ahead() as batch:
        for (_, ask), epsilon in zip(
            list(ASKS.items())[::order], (0.1, 0.4, 0.5, 0.5, 0.5, 1.0), strict=True
        ):
            ask(batch, epsilon=epsilon)
    assert len(p.ledger) == 6


def test_question_that_a_batch_asks_twice_is_priced_once():
    p = opened(3, 1e-6)
    with p.plan_ahead() as batch:
        for _ in range(9):
            batch.count(epsilon=1, mechanism="laplace")
        place = batch.median("age", epsilon=2)
    assert len(p.ledger) == 2
    assert place.answer is not None


# What a plan says --------------------------------------------------------------------------------------------------


def test_choice_after_gaussian_noise_says_which_epsilon_it_gets_and_why():
    p = opened(3, 1e-6)
    assert p.explain.median("age", epsilon=1).epsilon == 1
    p.count(epsilon=0.1)
    plan = p.explain.median("age", epsilon=1)
    assert 0.3 < plan.epsilon < 0.4
    assert (
        f"epsilon {plan.epsilon:.4g} of the 1 asked for, which takes the part 0.333 of the budget"
        in plan.why
    )
    assert "after Gaussian noise there is no plain sum" in plan.why
    before = p.budget.fraction
    p.median("age", epsilon=1)
    assert p.budget.fraction - before <= 1 / 3
    # and a small one gets what it asked for
    assert p.explain.median("age", epsilon=0.02).epsilon == 0.02
    assert "asked for" not in p.explain.median("age", epsilon=0.02).why


@pytest.mark.parametrize("accountant", ["zcdp", "rdp", "gdp", "advanced"])
def test_plan_says_what_is_scaled_to_its_part(accountant):
    p = opened(3, 1e-6, accountant=accountant)
    plan = p.explain.count(epsilon=1, mechanism="laplace")
    assert plan.epsilon < 1
    assert "of the 1 asked for, which takes the part 0.333 of the budget" in plan.why
    if accountant != "advanced":
        assert (
            "noise for the part 0.333 of the budget"
            in p.explain.count(epsilon=1, mechanism="gaussian").why
        )


def test_gaussian_noise_that_was_dictated_may_have_to_wait():
    p = opened(3, 1e-6)
    p.count(epsilon=0.5, mechanism="laplace")
    with pytest.raises(BudgetError, match="has to wait"):
        p.count(epsilon=0.1, mechanism="gaussian")
    with pytest.raises(BudgetError, match="cannot count Gaussian noise now"):
        p.count(within=50, mechanism="gaussian")
    assert "has to wait" in p.explain.count(epsilon=0.1).why
    assert len(p.ledger) == 1


def test_explain_says_how_often_a_question_fits():
    p = opened(3, 1e-6)
    for epsilon, times in ((0.5, 6), (0.1, 39), (0.2, 15), (3, 1)):
        assert p.explain.count(epsilon=epsilon).budget.endswith(
            f"fits {times} time{'s' if times > 1 else ''}"
        )
    for _ in range(6):
        p.count(epsilon=0.5, fresh=True)
    assert "does not fit" in p.explain.count(epsilon=0.5, mechanism="laplace", fresh=True).budget


def test_open_says_how_many_default_counts_fit():
    p = opened(3, 1e-6)
    assert "a count for a share fits 20 times" in repr(p)
    p.count()
    assert "a count for a share fits 19 times" in repr(p)
    assert "fits 4 times" in repr(opened(1, 0, queries=4))
    for accountant in [*WITH_DELTA, "pld"]:
        assert "a count for a share fits 20 times" in repr(opened(1, 1e-6, accountant=accountant))


# What a refusal says -----------------------------------------------------------------------------------------------


def largest(told):
    found = re.search(
        r"The largest epsilon that still fits is ([0-9.]+?)\. ", str(told.value) + " "
    )
    assert found, told.value
    return float(found.group(1)), len(found.group(1))


@pytest.mark.parametrize(
    "words", [{}, {"mechanism": "laplace"}, {"mechanism": "gaussian"}], ids=str
)
@pytest.mark.parametrize("name", ASKS)
@pytest.mark.parametrize(
    ("accountant", "delta"), [("pure", 0), *((a, 1e-6) for a in ("tight", "zcdp", "rdp", "gdp"))]
)
def test_largest_epsilon_that_fits_is_that_of_the_question_and_does_fit(
    accountant, delta, name, words
):
    if words and (name in ("argmax", "median") or (words["mechanism"] == "gaussian" and not delta)):
        return
    p = opened(1, delta, accountant=accountant)
    p.count(epsilon=0.123456789)
    p.mean("age", epsilon=0.1)
    with pytest.raises(BudgetExceeded) as told:
        ASKS[name](p, epsilon=0.95, **words)
    epsilon, digits = largest(told)
    with pytest.raises(BudgetExceeded):  # not less than it might be, to the digits that are shown
        ASKS[name](p, epsilon=epsilon + 10.0 ** (2 - digits) * 1.01, **words)
    ASKS[name](p, epsilon=epsilon, **words)
    assert len(p.ledger) == 3


@pytest.mark.parametrize(("accountant", "delta"), [("pure", 0), *((a, 1e-6) for a in WITH_DELTA)])
def test_what_remains_can_be_asked_for(accountant, delta):
    for first in (0.1, 1 / 3, 0.7000001):
        p = opened(1, delta, accountant=accountant)
        p.count(epsilon=first)
        p.median("age", epsilon=p.budget.remaining)
        assert len(p.ledger) == 2


def test_refusal_of_a_share_and_of_an_accuracy_tell_an_epsilon_too():
    for words in ({"within": 0.5}, {"within": 0.5, "mechanism": "laplace"}):
        p = opened(1, 1e-6)
        p.count("age", epsilon=0.5)
        with pytest.raises(BudgetExceeded) as told:
            p.count(**words)
        p.count(epsilon=largest(told)[0], mechanism=words.get("mechanism", "auto"))


# Deltas ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.001, 0.05, 0.0999])
def test_large_delta_is_warned_of_where_the_number_of_people_is_not_known(delta):
    frame = people()
    with pytest.raises(
        PrivacyWarning,
        match=r"is large: of a table of .* people or more, publishing one random row",
    ):
        frame.dp.open(1, delta)
    assert frame.attrs == {}
    with pytest.warns(PrivacyWarning, match="is large") as told:
        frame.dp.open(1, delta)
    assert told[0].filename == __file__


@pytest.mark.parametrize("words", [{"n": 1}, {"delta": 0.00099}, {"delta": 0}], ids=str)
def test_small_deltas_and_few_people_are_not_warned_of(words):
    people().dp.open(**{"epsilon": 1, "delta": 0.05, **words})


@pytest.mark.parametrize("delta", [0.1, 0.5])
@pytest.mark.parametrize("words", [{}, {"n": 1}], ids=str)
def test_delta_that_promises_nothing_is_refused_unless_it_is_declared(delta, words):
    frame = people()
    with pytest.raises(BadValue, match="promises next to nothing"):
        frame.dp.open(1, delta, **words)
    assert frame.attrs == {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p = frame.dp.open(1, delta, because="made-up data", **words)
    assert f"{delta:g}: made-up data" in p.declarations["value"].tolist()


def test_shared_budget_with_a_large_delta_is_refused_too():
    with pytest.raises(BadValue, match="promises next to nothing"):
        people().dp.open(accountant=dpframe.Accountant(1, 0.5))


@pytest.mark.parametrize("accountant", WITH_DELTA)
def test_delta_of_a_question_is_at_most_that_of_the_session(accountant):
    p = opened(3, 1e-6, accountant=accountant)
    for ask in (ASKS["count"], ASKS["mean"]):
        for bad in (0.5, 1.01e-6):
            with pytest.raises(BudgetError, match="more than the whole session has"):
                ask(p, epsilon=0.1, delta=bad)
            with pytest.raises(BudgetError, match="more than the whole session has"):
                ask(p, delta=bad)
    assert p.ledger.empty
    p.count(epsilon=0.1, delta=1e-7)
    assert isinstance(p.ledger, pd.DataFrame)


def test_a_session_whose_limits_are_not_known_yet_can_be_printed():
    df = pd.DataFrame({"id": [1, 2, 2], "x": [1.0, 2.0, 3.0]})
    assert "fits" not in repr(df.dp.open(1, 1e-6, unit="id"))
    assert "a count for a share fits 20 times" in repr(df.dp.open(max_rows=2))


def test_where_delta_is_short_the_refusal_says_which_delta_fits():
    p = pd.DataFrame({"g": ["a"] * 500 + ["b"] * 500}).dp.open(1, 1e-6)
    p.count(epsilon=0.1)
    with pytest.raises(BudgetExceeded, match=r"A delta= of (0\.\d+) would fit") as refused:
        p.unique("g", epsilon=0.1, delta=6e-7)
    fits = float(re.search(r"delta= of (0\.\d+)", str(refused.value))[1])
    assert list(p.unique("g", epsilon=0.1, delta=fits)) == ["a", "b"]


def test_a_question_that_finds_keys_fits_as_often_as_its_plan_says():
    p = pd.DataFrame({"g": ["a"] * 500 + ["b"] * 500}).dp.open(1, 1e-6)
    assert "fits 2 times" in p.explain.value_counts("g", epsilon=0.4).budget
    for _ in range(2):
        p.value_counts("g", epsilon=0.4, fresh=True)


def test_a_budget_without_room_for_gaussian_noise_says_why():
    p = pd.DataFrame({"x": range(9)}).dp.open(6, 1e-6)
    p.count(epsilon=1.1)
    with pytest.raises(
        BudgetError, match="no room for Gaussian noise any more: a release that was too large"
    ):
        p.count(epsilon=0.1, mechanism="gaussian")


def test_what_remains_is_no_more_than_what_fits_as_it_is_typed():
    """The nearest double of 5/6 is typed as a decimal above it."""
    p = pd.DataFrame({"x": [1.0, 2.0]}).dp.open(Fraction(5, 6))
    assert Fraction(str(5 / 6)) > Fraction(5, 6)
    p.count(epsilon=p.budget.remaining)
    assert len(p.ledger) == 1
