"""Shares of a budget always fit, whatever they go to; and what comes out of delta."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.accounting import (
    ApproxDP,
    DiscreteGaussian,
    Gaussian,
    PureDP,
    epsilon,
    make_filter,
)
from dpframe.accounting._filter import Charge, Filter, Limits, Price
from dpframe.mechanisms.noise import GaussianNoise
from tests.accounting.rules import (
    ADAPTIVE,
    BUDGETS,
    MILLIONTH,
    SPLIT,
    WHOLE,
    F,
    admitted,
    fold,
    limits_for,
    one,
)

# Shares ------------------------------------------------------------------------------------------------------------


def purchases(price: Price) -> list[Charge]:
    """A share spent on a pure mechanism, or on discrete Gaussian noise for integers moved by up to 7."""
    found = []
    if price.epsilon is not None:
        found.append(one(PureDP(price.epsilon)))
    for squared in (1, 7):
        noise = None
        if price.mu_squared:
            noise = GaussianNoise.for_mu(squared, price.mu_squared)
        elif price.rho:
            noise = GaussianNoise.for_rho(squared, price.rho)
        if noise is not None:
            loss = DiscreteGaussian(parts=[(noise.variance, squared)])
            found.append(Charge(((loss, 1),), price.delta))
    return found


def spend(rule: Filter, queries: int, picks: Iterable[int]) -> Any:
    """The state after shares that go to one kind of release or another, each priced when it is asked: under "tight" what a
    share buys depends on which of its two sides is left to pay."""
    state = rule.start()
    for pick in picks:
        options = purchases(rule.share(queries, state))
        state = rule.after(state, options[min(pick, len(options) - 1)])
        if state is None:
            return None
    return state


@pytest.mark.parametrize("queries", [1, 7, 20, 100])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", ADAPTIVE)
def test_shares_fit_alone_and_in_every_mixture(name: str, budget: str, queries: int) -> None:
    rule = make_filter(name, limits_for(name, budget))
    assert len(purchases(rule.share(queries, rule.start()))) == 3
    draw = random.Random(queries)
    lists = [[option] * queries for option in range(3)]
    lists += [[*[0] * (queries // 2), *[1] * (queries - queries // 2)]]
    lists += [lists[-1][::-1]]
    lists += [draw.choices(range(3), k=queries) for _ in range(2)]
    for picks in lists:
        assert spend(rule, queries, picks) is not None


@pytest.mark.parametrize("name", ADAPTIVE)
@given(picks=st.lists(st.integers(0, 2), min_size=20, max_size=20))
@settings(deadline=None, max_examples=10)
def test_twenty_shares_fit_in_every_order(name: str, picks: list[int]) -> None:
    rule = make_filter(name, SPLIT if name != "pure" else WHOLE)
    assert spend(rule, 20, picks) is not None


@pytest.mark.parametrize("name", ADAPTIVE)
def test_without_a_reserve_shares_fit_too(name: str) -> None:
    rule = make_filter(name, WHOLE)
    for option in range(3):
        assert spend(rule, 20, [option] * 20) is not None


@pytest.mark.parametrize("queries", [1, 7, 20, 100])
@pytest.mark.parametrize("budget", BUDGETS)
def test_shares_of_a_plan_fit_as_one_batch(budget: str, queries: int) -> None:
    rule = make_filter("pld", limits_for("pld", budget))
    for first, second in ((0, 0), (1, 1), (0, 1), (1, 0)):
        batch: list[Charge] = []
        state = rule.start()
        for option in [first] * (queries // 2) + [second] * (queries - queries // 2):
            options = purchases(rule.share(queries, state))
            batch.append(options[min(option, len(options) - 1)])
            state = rule.ahead(state, batch[-1:])
        losses = tuple(event for charge in batch for event in charge.losses)
        assert rule.after(rule.start(), Charge(losses)) is not None


@pytest.mark.parametrize("epsilon", [F(1, 20), F(1, 7), F(1, 2)])
@pytest.mark.parametrize("name", ADAPTIVE)
def test_a_gaussian_worth_a_pure_mechanism_costs_no_more_than_it(
    name: str, epsilon: Fraction
) -> None:
    rule = make_filter(name, limits_for(name, "(8, 1e-5)"))
    price = rule.worth(epsilon, rule.start())
    assert 0 < price.epsilon <= epsilon
    # In every currency but the plain sum's half of epsilon would take more than a sixteenth of this budget.
    assert (price.epsilon == epsilon) == (
        epsilon < F(1, 7) or name in ("pure", "tight") or price.epsilon == epsilon == F(1, 7)
    )
    states = [rule.after(rule.start(), charge) for charge in purchases(price)]
    if name == "tight":  # whose pure side shows the lesser part
        assert all(state.mu_squared >= states[0].mu_squared for state in states)
    else:
        assert all(
            rule.spent(state) <= rule.spent(states[0]) * (1 + F(1, 10**8)) for state in states
        )
    for charge in purchases(price)[: 1 if name == "pure" else 3]:
        assert fold(rule, [charge] * int(1 / rule.part(epsilon))) is not None


@pytest.mark.parametrize("name", ADAPTIVE)
def test_a_stated_gaussian_is_charged_for_what_it_states(name: str) -> None:
    rule = make_filter(name, limits_for(name, "(1, 1e-6)"))
    price = rule.price_guarantee(F(1, 10), F(1, 10**8), rule.start())
    gaussians = purchases(price)[1:]
    assert gaussians
    for charge in gaussians:
        ((loss, _),) = charge.losses
        stated = loss.epsilon_at(F(1, 10**8))
        assert stated is not None
        assert stated <= F(1, 10)
        assert rule.after(rule.start(), charge) is not None


# Delta -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in ADAPTIVE if n != "pure"])
def test_failures_come_from_the_reserve_only(name: str) -> None:
    tiny = F(1, 10**9)
    loss = ApproxDP(F(1, 10**6), tiny)
    if name != "tight":  # whose plain sum may have more (test_failures.py)
        assert admitted(make_filter(name, Limits(F(1), MILLIONTH, 7 * tiny)), one(loss)) == 7
        assert admitted(make_filter(name, WHOLE), one(loss)) == 0
    rule = make_filter(name, Limits(F(1), MILLIONTH, 7 * tiny))
    state = fold(rule, [one(loss)] * 7)
    assert rule.delta_spent(state) == rule.delta_limit == 7 * tiny
    assert rule.after(state, one(PureDP(F(1, 10**6)))) is not None  # what converts was not touched
    convert = fold(rule, [one(PureDP(F(1, 10**6)))] * 9)
    assert rule.delta_spent(convert) == 0


@pytest.mark.parametrize("name", ["zcdp", "rdp", "gdp", "tight", "advanced", "advanced-squared"])
def test_the_split_is_a_split(name: str) -> None:
    """What the reserve holds, used or not, does not convert: the budget is that of the rest of delta."""
    query = one(Gaussian(40), 1, 0) if name in ("zcdp", "rdp", "gdp") else one(PureDP(F(1, 60)))
    half = make_filter(name, SPLIT)
    rest = make_filter(name, Limits(F(1), MILLIONTH / 2, F(0)))
    assert (
        admitted(half, query) == admitted(rest, query) < admitted(make_filter(name, WHOLE), query)
    )


def test_pure_adds_stated_deltas() -> None:
    rule = make_filter("pure", WHOLE)
    state = rule.after(rule.start(), one(Gaussian(100), 1, MILLIONTH / 2))
    assert rule.delta_spent(state) == MILLIONTH / 2
    assert rule.after(state, one(ApproxDP(F(1, 100), MILLIONTH / 2))) is not None
    assert rule.after(state, one(ApproxDP(F(1, 100), MILLIONTH * F(51, 100)))) is None
    assert rule.after(rule.start(), one(Gaussian(100))) is None  # a Gaussian stated at no delta


def test_noise_too_narrow_for_any_mu_is_not_free() -> None:
    """A mu beyond all measure was once an epsilon of 0."""
    loss = DiscreteGaussian(F(1, 10**100))
    assert loss.epsilon_at(MILLIONTH) is None
    for name in ("pure", "advanced", "gdp", "tight"):
        rule = make_filter(name, SPLIT if name != "pure" else WHOLE)
        assert rule.after(rule.start(), one(loss, 1, MILLIONTH / 4)) is None
        assert epsilon([loss], 1e-6, name) == math.inf


@pytest.mark.parametrize("name", ["gdp", "zcdp", "rdp", "advanced", "pure", "tight"])
def test_a_loss_without_a_claim_is_refused(name: str) -> None:
    rule = make_filter(name, WHOLE)
    assert rule.after(rule.start(), one(PureDP(F(5)))) is None
    assert rule.after(rule.start(), one(PureDP(F(1000)))) is None
    for narrow in (F(1, 100), F(1, 10**110)):
        assert rule.after(rule.start(), one(DiscreteGaussian(narrow), 1, MILLIONTH / 4)) is None
