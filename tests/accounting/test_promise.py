"""What a price promises: questions whose epsilons add up to at most that of the budget fit, whatever they buy."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe._plans.aggregates import AGGREGATES
from dpframe._plans.price import buy_choice as selection
from dpframe.accounting import (
    ACCOUNTANTS,
    ApproxDP,
    DiscreteGaussian,
    Exponential,
    Gaussian,
    Loss,
    PureDP,
    make_filter,
)
from dpframe.accounting._filter import Charge, Filter, Limits, Price
from dpframe.accounting._tight import find_largest_epsilon
from dpframe.accounting.loss import FailingGaussian
from dpframe.mechanisms.noise import GaussianNoise
from tests.accounting.rules import ADAPTIVE, F, admitted, one

# What questions buy ------------------------------------------------------------------------------------------------


def gaussian(price: Price, squared: int) -> Charge | None:
    """Gaussian noise for integers that a person moves by so much, if the price buys any."""
    if price.mu_squared is not None:
        noise = GaussianNoise.for_mu(squared, price.mu_squared)
    elif price.rho is not None:
        noise = GaussianNoise.for_rho(squared, price.rho)
    else:
        return None
    return Charge(((DiscreteGaussian(parts=[(noise.variance, squared)]), 1),), price.delta)


def pure(price: Price) -> Charge:
    assert price.epsilon is not None
    return one(PureDP(price.epsilon))


def count(price: Price) -> Charge:
    return gaussian(price, 1) or pure(price)


def laplace(price: Price) -> Charge:
    return pure(price)


def table(price: Price) -> Charge:
    """Many groups a person: Gaussian noise wherever there is any."""
    return gaussian(price, 20) or pure(price)


def choose(price: Price) -> Charge:
    """The exponential mechanism, where its range is counted for less."""
    return one(selection(AGGREGATES["choose"], 1, 10, 1, price).loss)


def median(price: Price) -> Charge:
    return pure(price)


KINDS: dict[str, Callable[[Price], Charge]] = {
    "count": count,
    "laplace": laplace,
    "table": table,
    "choose": choose,
    "median": median,
}


def failing(rule: Filter, epsilon: Fraction, state: Any, price: Price, own: bool) -> Charge:
    """A search for keys, with Gaussian noise or without."""
    noisy = None if own or rule.pairs else gaussian(price, 3)
    failure = rule.failure_for(epsilon, state, pure=noisy is None)
    if not failure:
        return pure(price)
    if noisy is None:
        assert price.epsilon is not None
        return Charge(((ApproxDP(price.epsilon, failure), 1),), failure)
    ((loss, _),) = noisy.losses
    assert isinstance(loss, DiscreteGaussian)
    return Charge(((FailingGaussian(loss.parts, failure), 1),), price.delta + failure)


def play(rule: Filter, questions: list[tuple[Fraction, str]]) -> Any:
    """The state after these questions, each priced when it is asked; a refusal is an error."""
    state: Any = rule.start()
    batch: list[Charge] = []
    for epsilon, kind in questions:
        price = rule.worth(epsilon, state)
        if kind in ("keys", "many keys"):
            charge = failing(rule, epsilon, state, price, kind == "keys")
        elif kind == "share":
            charge = count(rule.share(rule.limits.epsilon / epsilon, state))
        else:
            charge = KINDS[kind](price)
        batch.append(charge)
        if rule.batches:
            state = rule.ahead(state, [charge])
            continue
        after = rule.after(state, charge)
        assert after is not None, (rule.name, len(batch), kind, float(epsilon), state)
        state = after
    if rule.batches:
        losses = tuple(event for charge in batch for event in charge.losses)
        state = rule.after(rule.start(), Charge(losses))
        assert state is not None
    return state


# The promise -------------------------------------------------------------------------------------------------------

EVERY = [*KINDS, "keys", "many keys", "share"]
sizes = st.lists(st.tuples(st.integers(1, 1000), st.sampled_from(EVERY)), min_size=1, max_size=14)


def limits(
    name: str, epsilon: Fraction, delta: Fraction, reserve: Fraction | None = None
) -> Limits:
    return Limits(
        epsilon, delta, ACCOUNTANTS[name].reserve_share * delta if reserve is None else reserve
    )


@pytest.mark.parametrize("name", ADAPTIVE)
@given(
    epsilon=st.sampled_from([F(1, 10), F(1, 2), F(1), F(3), F(8), F(20)]),
    delta=st.sampled_from([F(1, 10**9), F(1, 10**6), F(1, 10**3)]),
    weights=sizes,
)
@settings(deadline=None, max_examples=40)
def test_questions_that_add_up_to_the_budget_fit(
    name: str, epsilon: Fraction, delta: Fraction, weights: list[tuple[int, str]]
) -> None:
    """Exactly to it: the parts are fractions with sum 1."""
    total = sum(weight for weight, _ in weights)
    play(
        make_filter(name, limits(name, epsilon, delta)),
        [(epsilon * w / total, kind) for w, kind in weights],
    )


@given(
    weights=st.lists(st.tuples(st.integers(1, 50), st.sampled_from(EVERY)), min_size=1, max_size=6)
)
@settings(deadline=None, max_examples=8)
def test_a_batch_that_adds_up_to_the_budget_fits(weights: list[tuple[int, str]]) -> None:
    total = sum(weight for weight, _ in weights)
    play(
        make_filter("pld", limits("pld", F(1), F(1, 10**6))),
        [(F(w, total), kind) for w, kind in weights],
    )


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("name", ADAPTIVE)
@pytest.mark.parametrize("each", [1, 2, 3, 7, 20, 60])
def test_equal_questions_are_never_fewer_than_of_the_plain_sum(
    name: str, kind: str, each: int
) -> None:
    play(make_filter(name, limits(name, F(3), F(1, 10**6))), [(F(3, each), kind)] * each)


def test_one_large_question_after_small_ones_fits() -> None:
    """Of a budget of 4 with a few percent used, 1.3 was refused."""
    rule = make_filter("tight", limits("tight", F(4), F(1, 10**6)))
    state = play(rule, [(F("0.1"), "count"), (F("0.05"), "table")])
    assert 0 < rule.spent(state) < F("0.04")
    for kind in KINDS:
        questions = [(F("0.1"), "count"), (F("0.05"), "table"), (F("1.3"), kind)]
        assert rule.spent(play(rule, questions)) <= F("1.45") / 4


@pytest.mark.parametrize("name", ADAPTIVE)
def test_a_question_takes_at_most_its_part(name: str) -> None:
    """Of the side that pays, where there are two."""
    rule = make_filter(name, limits(name, F(3), F(1, 10**6)))
    for epsilon in (F("0.01"), F("0.1"), F("0.3"), F(1), F(2), F(3)):
        for kind in KINDS:
            state = play(rule, [(epsilon, kind)])
            if "advanced" not in name:
                assert rule.spent(state) <= rule.part(epsilon)
            elif epsilon < 3:  # its sum is no sum of parts
                assert rule.after(state, pure(rule.worth(F(3) - epsilon, state))) is not None


@pytest.mark.parametrize("name", [*ADAPTIVE, "pld"])
def test_more_than_the_whole_budget_is_refused_and_not_made_smaller(name: str) -> None:
    rule = make_filter(name, limits(name, F(1), F(1, 10**6)))
    more = (
        F("1.2") if name == "pld" else F("1.01")
    )  # whose curve is tighter than the parts of its prices
    for kind in set(KINDS) - (
        {"choose"} if name == "rdp" else set()
    ):  # which its one order counts for less
        assert rule.after(rule.start(), KINDS[kind](rule.worth(more, rule.start()))) is None


def test_more_than_is_left_is_refused_and_not_made_smaller() -> None:
    rule = make_filter("tight", limits("tight", F(3), F(1, 10**6)))
    state = play(rule, [(F("0.15"), "table")] * 18)
    for kind in KINDS.values():
        assert rule.after(state, kind(rule.worth(F("0.4"), state))) is None


# What small questions gain -----------------------------------------------------------------------------------------


def fitting(rule: Filter, epsilon: Fraction, kind: str) -> int:
    state, found = rule.start(), 0
    while (state := rule.after(state, KINDS[kind](rule.worth(epsilon, state)))) is not None:
        found += 1
    return found


def test_small_questions_fit_as_often_as_before() -> None:
    whole = Limits(F(1), F(1, 10**6), F(0))
    assert fitting(make_filter("tight", whole), F("0.02"), "laplace") == 138
    assert admitted(make_filter("tight", whole), one(Gaussian(sigma=30))) == 50
    assert (
        fitting(make_filter("tight", Limits(F(3), F(1, 10**6), F(1, 2 * 10**6))), F("0.1"), "count")
        == 39
    )


@pytest.mark.slow
@given(
    epsilon=st.sampled_from([F(1, 2), F(1), F(3), F(8)]),
    each=st.fractions(F(1, 100), F(1)),
    kind=st.sampled_from(list(KINDS)),
)
@settings(deadline=None, max_examples=25)
def test_counts_that_fit_are_never_fewer_than_of_the_plain_sum(
    epsilon: Fraction, each: Fraction, kind: str
) -> None:
    rule = make_filter("tight", limits("tight", epsilon, F(1, 10**6)))
    assert fitting(rule, min(each, epsilon), kind) >= int(epsilon / min(each, epsilon))


# How a price is scaled ---------------------------------------------------------------------------------------------


def test_gaussian_noise_waits_while_the_plain_sum_alone_is_on_promise() -> None:
    rule = make_filter("tight", limits("tight", F(3), F(1, 10**6)))
    state = play(rule, [(F("0.3"), "laplace")])
    price = rule.worth(F("0.1"), state)
    assert price.mu_squared is None
    assert price.stake is not None
    assert price.stake.gaussian_waits
    assert rule.gaussian(F(1, 10**6), 20, state) is None
    state = play(rule, [(F("0.3"), "laplace"), *[(F("0.1"), "count")] * 20])
    after = rule.worth(F("0.1"), state)
    assert (
        after.mu_squared is not None
    )  # much of the plain sum was spent, and little of the residue


def test_a_choice_gets_the_largest_epsilon_whose_residue_is_its_part() -> None:
    rule = make_filter("tight", limits("tight", F(3), F(1, 10**6)))
    state = play(rule, [(F("0.1"), "count")])
    assert state.epsilon is None
    part = rule.part(F(1)) * rule.limit
    for kind, loss in (("choose", Exponential), ("median", PureDP)):
        charge = KINDS[kind](rule.worth(F(1), state))
        ((found, _),) = charge.losses
        taken = state.mu_squared - rule.after(state, charge).mu_squared
        assert isinstance(found, loss)
        assert F(99, 100) * part <= taken <= part
        larger: Loss = loss(found.epsilon * F(102, 100))
        assert state.mu_squared - rule.after(state, one(larger)).mu_squared > part


@given(
    left=st.floats(1e-4, 50).map(F),
    share=st.floats(1e-4, 1),
    most=st.one_of(st.none(), st.floats(1e-3, 5).map(F)),
)
@settings(deadline=None, max_examples=60)
def test_largest_epsilon_keeps_to_its_cost(
    left: Fraction, share: float, most: Fraction | None
) -> None:
    rule = make_filter("tight", Limits(F(1), F(1, 10**6)))
    cost = left * F(share)
    found = find_largest_epsilon("pure", left, cost, most)
    assert found is not None

    def taken(epsilon: Fraction) -> Fraction:
        after = rule.after(
            rule.start()._replace(epsilon=None, mu_squared=left), one(PureDP(epsilon))
        )
        return left + 1 if after is None or after.mu_squared is None else left - after.mu_squared

    assert taken(found) <= cost
    assert found == most or taken(found * (1 + F(1, 10**6))) > cost
    assert find_largest_epsilon("pure", left, 2 * left, F(500)) is None


@pytest.mark.parametrize("ratio", [0.01, 0.3, 0.7])
@pytest.mark.parametrize("epsilon", [0.003, 0.2, 1.0, 2.0])
def test_what_costs_a_little_too_much_is_not_taken_at_first_sight(
    epsilon: float, ratio: float
) -> None:
    left, most = F(epsilon / ratio) ** 2, F(epsilon)
    after = PureDP(most).leaves(left)
    assert after is not None
    cost = left - after
    assert find_largest_epsilon("pure", left, cost * F(10**8, 10**8 - 1), most) == most
    found = find_largest_epsilon("pure", left, cost * F(10**8 - 1, 10**8), most)
    assert found is not None
    assert found < most


def test_prices_under_a_plain_sum_do_not_depend_on_earlier_questions() -> None:
    for name in ("zcdp", "rdp", "gdp", "pure", "advanced"):
        rule = make_filter(name, limits(name, F(3), F(1, 10**6)))
        draw = random.Random(0)
        state = play(rule, [(F(1, 10), draw.choice(list(KINDS))) for _ in range(10)])
        assert rule.worth(F(1, 4), state) == rule.worth(F(1, 4), rule.start())
    assert set(ACCOUNTANTS) == {*ADAPTIVE, "pld"}
