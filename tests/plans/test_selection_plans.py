"""Choices: what they cost, what their plans say, what is on record, and what is refused."""

from __future__ import annotations

import json
import math
from fractions import Fraction as F
from typing import Any

import pandas as pd
import pytest

from dpframe import BadType, BadValue, BudgetError, MissingBounds, MissingKeys, Plan
from dpframe._plans.aggregates import AGGREGATES
from dpframe._plans.price import buy_choice
from dpframe.accounting._filter import Price
from dpframe.accounting.loss import Exponential as ExponentialLoss
from dpframe.accounting.loss import PureDP
from dpframe.utilities import distance, revenue
from tests.frame.test_selections import ASKS, BASE, frame, opened


def test_exponential_mechanism_with_delta_is_counted_by_its_range():
    words = {"candidates": [1, 2], "utility": revenue("bid"), "epsilon": 0.5}
    plain = opened(frame(BASE)).explain.choose(**words)
    assert (plain.mechanism, plain.loss) == ("noisy-max", PureDP(0.5))
    asked = opened(frame(BASE)).explain.choose(**words, mechanism="exponential")
    assert (asked.mechanism, asked.loss, asked.scale) == (
        "exponential",
        ExponentialLoss(0.5),
        plain.scale,
    )
    tight = opened(frame(BASE), delta=1e-6).explain.choose(**words)
    assert (tight.mechanism, tight.loss) == ("exponential", ExponentialLoss(0.5))
    zcdp = opened(frame(BASE), delta=1e-6, accountant="zcdp").explain.choose(**words)
    assert zcdp.epsilon == pytest.approx(1.0)
    assert zcdp.loss.rho <= F(1, 8)


@pytest.mark.parametrize("accountant", ["tight", "zcdp", "rdp", "gdp"])
def test_all_shares_fit(accountant):
    p = frame(BASE).dp.open(1, delta=1e-6, accountant=accountant, queries=5)
    for i in range(5):
        p.choose([1, 2, 3 + i], revenue("bid"))
    assert 0 < p.budget.fraction <= 1


@pytest.mark.parametrize(
    "terms", [{}, {"delta": 1e-6}, {"delta": 1e-6, "accountant": "zcdp"}], ids=str
)
@pytest.mark.parametrize("name", ASKS)
def test_within_is_met_by_the_least_price(name, terms):
    p = opened(frame(BASE), **terms)
    plan = ASKS[name](p.explain, within=40)
    assert 39.9 < plan.worst_error() <= 40
    assert plan.error() is None
    ASKS[name](p, within=40)
    text = f"within {plan.worst_error():.4g} of the largest"
    assert text in repr(plan)
    if terms and plan.ranged:
        assert plan.mechanism == "exponential"


@pytest.mark.parametrize("name", ASKS)
def test_plans_survive_json_and_come_back_from_the_ledger(name, tmp_path):
    p = opened(frame(BASE), delta=1e-6, ledger=str(tmp_path / "l.db"), population="bids")
    plan = ASKS[name](p.explain, epsilon=0.5)
    again = Plan.from_json(json.loads(plan.text))
    assert again == plan
    assert again.text == plan.text
    answer, before = ASKS[name](p, epsilon=0.5), p.budget.fraction
    assert p.ledger["mechanism"].iloc[-1] == plan.mechanism
    p.close()
    q = opened(frame(BASE), delta=1e-6, ledger=str(tmp_path / "l.db"), population="bids")
    assert ASKS[name](q, epsilon=0.5) == answer
    assert q.budget.fraction == before


def test_different_utilities_are_different_questions():
    p = opened(frame(BASE))
    p.choose([1, 2], "n * @candidate", epsilon=1)
    p.choose([1, 2], "n * @candidate", epsilon=1)
    assert len(p.ledger) == 1
    p.choose([1, 2], "n * @candidate", bounds=(-1, 1), epsilon=1)
    p.choose([1, 3], "n * @candidate", epsilon=1)
    p.choose([1, 2], "n * @candidate", sensitivity=2, because="it is so", epsilon=1)
    p.top("g", 1, epsilon=1)
    p.top("g", 2, epsilon=1)
    p.argmax("g", epsilon=1)
    assert len(p.ledger) == 7


def test_stated_sensitivity_needs_a_reason_that_the_ledger_keeps():
    p = opened(frame(BASE))
    with pytest.raises(BadValue, match="because"):
        p.choose([1, 2], "bid * @candidate", sensitivity=0.5)
    with pytest.raises(BadValue, match="sensitivity"):
        p.choose([1, 2], "bid * @candidate", bounds=(0, 1), because="no")
    p.choose([1, 2], "bid * @candidate", 0.5, because="bids are close", epsilon=1)
    words = p.declarations.query("what == 'sensitivity'")
    assert list(words["value"]) == ["0.5: bids are close"]
    assert "sensitivity 0.5: bids are close" in p.ledger["declared"].iloc[-1]


def test_a_declared_sensitivity_never_adds_noise_to_what_is_provable():
    p = opened(frame(BASE))
    plain = p.explain.choose([1, 2], "n * @candidate", epsilon=1)
    wide = p.explain.choose([1, 2], "n * @candidate", sensitivity=1e6, because="wide", epsilon=1)
    assert wide.scale == plain.scale == 12


@pytest.mark.parametrize(
    "terms", [{}, {"delta": 1e-6}, {"delta": 1e-6, "accountant": "zcdp"}], ids=str
)
def test_noisy_max_is_charged_as_a_pure_mechanism(terms):
    """A range of epsilon is what the exponential mechanism has; the losses of one-sided noise go further apart."""
    p = opened(frame(BASE), **terms)
    for plan in (
        p.explain.argmax("g", keys=["a", "b", "c"], epsilon=0.5),
        p.explain.top("g", 2, keys=["a", "b", "c"], epsilon=0.5),
        p.explain.median("bid", bounds=(0, 10), epsilon=0.5),
    ):
        assert plan.mechanism.startswith("noisy-")
        assert isinstance(plan.loss, PureDP)


def test_what_is_public_is_on_record_once():
    p = opened(frame(BASE))
    limit = 3
    p.choose([1, 2], "bid * @candidate + n * @limit", bounds=(-9, 9), epsilon=1)
    p.choose([4, 5], revenue("bid"), epsilon=1)
    words = p.declarations.query("what != 'bounds' or where != 'open'").query("where != 'open'")
    assert list(words["what"]) == ["@name", "bounds", "candidates", "bins"]
    assert words["value"].iloc[:3].tolist() == [
        f"limit = {limit}",
        "the utility: (-9, 9)",
        "[1, 2]",
    ]


# What is refused ---------------------------------------------------------------------------------------------------

REFUSED: list[tuple[Any, type[Exception]]] = [
    (lambda p: p.choose([], revenue("bid")), BadValue),
    (lambda p: p.choose([1, 1.0], revenue("bid")), BadValue),
    (lambda p: p.choose([True, 1], "n"), BadValue),
    (lambda p: p.choose({1, 2}, revenue("bid")), BadType),
    (lambda p: p.choose(pd.Series([1, 2]), revenue("bid")), BadType),
    (lambda p: p.choose("ab", revenue("bid")), BadType),
    (lambda p: p.choose(3, revenue("bid")), BadType),
    (lambda p: p.choose([[1], [2]], revenue("bid")), BadType),
    (lambda p: p.choose([-1, 2], revenue("bid")), BadValue),
    (lambda p: p.choose([0], revenue("bid")), BadValue),
    (lambda p: p.choose([math.nan, 1], revenue("bid")), BadValue),
    (lambda p: p.choose([1, math.inf], revenue("bid")), BadValue),
    (lambda p: p.choose(["a"], revenue("bid")), BadType),
    (lambda p: p.choose([1, 2], revenue("g")), BadType),
    (lambda p: p.choose([1, 2], revenue("nothing")), KeyError),
    (lambda p: p.choose([1, 2], revenue("bid"), sensitivity=1, because="x"), BadValue),
    (lambda p: p.choose([1, 2], distance("bid")), MissingBounds),
    (lambda p: p.choose([1, 7], distance("n")), BadValue),
    (lambda p: p.choose([1, 2], "bid * @candidate"), MissingBounds),
    (lambda p: p.choose([1, 2], "n"), BadValue),
    (lambda p: p.choose(["a", "b"], "g"), BadType),
    (lambda p: p.choose(["a"], "g"), BadType),
    (lambda p: p.choose([1, 2], {1: "n"}), BadValue),
    (lambda p: p.choose([1, 2], {1: "n", 3: "n"}), BadValue),
    (lambda p: p.choose([1, 2], "bid * @candidate", bounds=(2, 1)), BadValue),
    (lambda p: p.choose([1, 2], "bid * @candidate", sensitivity=0, because="x"), BadValue),
    (lambda p: p.choose([1, 2], "bid * @candidate", sensitivity=1, because=" "), BadType),
    (lambda p: p.choose([1, 2], "bid * @candidate", sensitivity=math.nan, because="x"), BadValue),
    (lambda p: p.choose(range(2**14 + 1), "n > @candidate"), BadValue),
    (lambda p: p.choose([1, 2], revenue("bid"), mechanism="laplace"), BadValue),
    (lambda p: p.choose([1, 2], revenue("bid"), mechanism="gaussian"), BudgetError),
    (lambda p: p.argmax("g", mechanism="exponential"), BadValue),
    (lambda p: p.count(mechanism="exponential"), BadValue),
    (lambda p: p.argmax([]), BadValue),
    (lambda p: p.argmax({}), BadValue),
    (lambda p: p.argmax(["flu", "flu"]), BadValue),
    (lambda p: p.argmax(["flu", "n"]), BadType),
    (lambda p: p.argmax(["flu"], keys=["flu"]), BadValue),
    (lambda p: p.top("g", 4), BadValue),
    (lambda p: p.top("g", 0), BadValue),
    (lambda p: p.top("g", 1.5), BadType),
    (lambda p: p.top(p["n"] / 2, 1), MissingKeys),
    (lambda p: p.top("g", 1, keys=["a", "a"]), BadValue),
]


@pytest.mark.parametrize(("ask", "error"), REFUSED)
def test_what_means_nothing_is_refused_and_costs_nothing(ask, error):
    p = opened(frame(BASE))
    with pytest.raises(error):
        ask(p)
    assert p.budget.fraction == 0


def test_the_price_of_a_choice_is_refused_by_a_price_that_buys_none():
    with pytest.raises(BudgetError, match="epsilon"):
        buy_choice(AGGREGATES["choose"], 1, 2, 1, Price(None))
