"""The contract of every accountant as a filter."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.accounting import (
    DiscreteGaussian,
    Gaussian,
    Loss,
    PureDP,
    make_filter,
)
from dpframe.accounting._filter import Charge, Limits
from dpframe.mechanisms.noise import GaussianNoise
from tests.accounting.rules import (
    ADAPTIVE,
    LINEAR,
    LOSSES,
    MILLIONTH,
    SPLIT,
    SUMS,
    WHOLE,
    F,
    fold,
    ledgers,
    one,
)

# Exact fills -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pure", "tight"])
def test_ten_debits_of_a_tenth_fill_one_and_the_eleventh_changes_nothing(name: str) -> None:
    rule = make_filter(name, Limits(F(1)))
    state = fold(rule, [one(PureDP(F("0.1")))] * 10)
    assert rule.spent(state) == 1
    before = tuple(state)
    assert rule.after(state, one(PureDP(F(1, 2**50)))) is None
    assert tuple(state) == before


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("queries", [1, 3, 7, 20, 1000])
def test_equal_shares_fill_the_limit_and_no_more_than_one_besides(name: str, queries: int) -> None:
    rule = make_filter(name, WHOLE if name != "pure" else Limits(F(1)))
    share = rule.share(queries, rule.start())
    assert share.epsilon is not None
    # At one order randomized response is cheaper than the Gaussian of its share.
    loss: Loss = PureDP(share.epsilon)
    if name == "rdp":
        loss = DiscreteGaussian(parts=[(GaussianNoise.for_rho(1, share.rho).variance, 1)])
    state = rule.after(rule.start(), one(loss, queries))
    assert 1 - F(1, 10**9) <= rule.spent(state) <= 1
    assert rule.after(state, one(loss)) is None


# What single rules keep; what all keep is in `contract` ------------------------------------------------------------


def test_a_side_that_was_exceeded_is_never_revived() -> None:
    rule = make_filter("tight", SPLIT)
    state = rule.after(rule.start(), one(PureDP(F(1, 2))))  # more than the residue can take
    assert state is not None
    assert state.mu_squared is None
    assert (
        rule.after(state, one(Gaussian(10**6))) is None
    )  # however small: only the pure sum is alive
    state = rule.after(state, one(PureDP(F(1, 100))))
    assert state is not None
    assert state.mu_squared is None

    state = rule.after(rule.start(), one(Gaussian(60)))  # and the other way round
    assert state is not None
    assert state.epsilon is None
    assert rule.after(state, one(PureDP(F(1, 2)))) is None
    state = rule.after(state, one(PureDP(F(1, 50))))
    assert state is not None
    assert state.epsilon is None


def test_both_sides_are_debited_while_one_admits() -> None:
    rule = make_filter("tight", SPLIT)
    state = fold(rule, [one(PureDP(F(1, 50)))] * 50)
    assert state.epsilon == 1
    assert state.mu_squared < rule.start().mu_squared
    state = rule.after(state, one(PureDP(F(1, 50))))  # the pure side dies of it, the other goes on
    assert state is not None
    assert state.epsilon is None


def test_the_owner_is_warned_before_the_tighter_side_dies() -> None:
    rule = make_filter("tight", SPLIT)
    start = rule.start()
    large, small = (rule.after(start, one(PureDP(e))) for e in (F(1, 2), F(1, 50)))
    assert "the plain sum" in str(rule.warning(start, large))
    assert "docs/how-to/choose-an-accountant.md" in str(rule.warning(start, large))
    assert rule.warning(start, small) is None
    assert rule.warning(large, large) is None


@pytest.mark.parametrize("name", SUMS)
@given(ledger=ledgers, seed=st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=15)
def test_the_order_of_debits_does_not_matter(
    name: str, ledger: list[Charge], seed: random.Random
) -> None:
    rule = make_filter(name, Limits(F(50), F(1, 100), F(1, 200)))
    shuffled = seed.sample(ledger, len(ledger))
    one_way, other_way = fold(rule, ledger), fold(rule, shuffled)
    if name in LINEAR:
        assert one_way == other_way
    else:
        assert [float(x) for x in one_way] == pytest.approx([float(x) for x in other_way], rel=1e-9)


def test_the_residue_depends_on_the_order_a_little() -> None:
    rule = make_filter("tight", WHOLE)
    small, large = one(PureDP(F(1, 50)), 40), one(PureDP(F(1, 8)))
    first, last = fold(rule, [large, small]), fold(rule, [small, large])
    assert first.mu_squared != last.mu_squared
    assert float(first.mu_squared) == pytest.approx(float(last.mu_squared), rel=0.05)
    assert first.mu_squared > last.mu_squared  # a large debit costs least while much is left


@pytest.mark.parametrize("count", [2, 8, 9, 60])
@pytest.mark.parametrize("name", ADAPTIVE)
def test_a_count_is_as_many_charges(name: str, count: int) -> None:
    rule = make_filter(name, Limits(F(20), MILLIONTH, MILLIONTH / 2))
    for loss in LOSSES[:5] if name != "tight" else LOSSES[:5:4]:
        delta = F(1, 10**9)
        at_once, singly = rule.start(), rule.start()
        at_once = rule.after(at_once, one(loss, count, delta * count))
        for _ in range(count):
            singly = rule.after(singly, one(loss, 1, delta))
        if name in ("zcdp", "rdp", "gdp"):
            assert at_once == singly
        else:  # doubles; the residue takes up to eight steps of a large count at the price of the last
            numbers = [None if x is None else float(x) for x in at_once]
            again = [None if x is None else float(x) for x in singly]
            assert [x is None for x in numbers] == [x is None for x in again]
            rel = 1e-4 if name == "tight" else 1e-9
            assert [x for x in numbers if x] == pytest.approx([x for x in again if x], rel=rel)


@pytest.mark.parametrize("count", [9, 50, 400])
def test_the_residue_of_a_count_is_never_more_than_of_as_many_charges(count: int) -> None:
    rule = make_filter("tight", Limits(F(3), MILLIONTH, F(0)))
    at_once = rule.after(rule.start(), one(PureDP(F(1, 50)), count))
    singly = fold(rule, [one(PureDP(F(1, 50)))] * count)
    assert at_once.mu_squared <= singly.mu_squared
    spent = [float(rule.start().mu_squared - x.mu_squared) for x in (at_once, singly)]
    assert spent[0] == pytest.approx(spent[1], rel=1e-3)


# Not "rdp": each budget has an order of its own, so a larger one may admit a little less of something.
@pytest.mark.parametrize("name", [n for n in ADAPTIVE if n != "rdp"])
@given(ledger=ledgers)
@settings(deadline=None, max_examples=15)
def test_a_larger_budget_admits_whatever_a_smaller_one_does(
    name: str, ledger: list[Charge]
) -> None:
    larger = [
        SPLIT._replace(epsilon=F(2)),
        SPLIT._replace(delta=2 * MILLIONTH),
        SPLIT._replace(delta=2 * MILLIONTH, reserve=MILLIONTH),
    ]
    small = make_filter(name, SPLIT)
    state = small.start()
    rules = [(rule, rule.start()) for rule in (make_filter(name, limits) for limits in larger)]
    for charge in ledger:
        after = small.after(state, charge)
        if after is None:
            continue
        state = after
        rules = [(rule, rule.after(own, charge)) for rule, own in rules]
        assert all(own is not None for _, own in rules)
