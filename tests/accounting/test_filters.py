"""The contract of every accountant as a filter and as a report."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.accounting import (
    ACCOUNTANTS,
    ApproxDP,
    DiscreteGaussian,
    Exponential,
    Gaussian,
    Laplace,
    Loss,
    PoissonGaussian,
    PureDP,
    compare,
    epsilon,
    make_filter,
)
from dpframe.accounting._base import Charge, Filter, Limits, Price, pure_sum
from dpframe.mechanisms.gaussian import Gaussian as GaussianNoise

F = Fraction
MILLIONTH, HALF = F(1, 10**6), F(1, 2)
ADAPTIVE = [name for name in ACCOUNTANTS if name != "pld"]
LINEAR = ["pure", "zcdp", "rdp", "gdp"]  # exact sums of fractions
SUMS = [*LINEAR, "advanced", "advanced-squared"]


def one(loss: Loss, count: int = 1, delta: Fraction | int = 0) -> Charge:
    return Charge(((loss, count),), F(delta))


def fold(rule: Filter, charges: Iterable[Charge]) -> Any:
    state = rule.start()
    for charge in charges:
        state = rule.after(state, charge)
        if state is None:
            return None
    return state


def admitted(rule: Filter, charge: Charge, most: int = 5000) -> int:
    state, found = rule.start(), 0
    while found < most and (state := rule.after(state, charge)) is not None:
        found += 1
    return found


SPLIT = Limits(F(1), MILLIONTH, MILLIONTH / 2)
WHOLE = Limits(F(1), MILLIONTH, F(0))
LOSSES = [
    PureDP(F(1, 50)),
    Laplace(F(1, 40)),
    Exponential(F(1, 20)),
    Gaussian(60),
    DiscreteGaussian(40),
    PureDP(F(1, 7)),
    ApproxDP(F(1, 100), F(1, 10**8)),
    PoissonGaussian(F(1, 100), 30),
]
charges = st.builds(
    lambda loss, n: Charge(((loss, n),), F(1, 10**8)), st.sampled_from(LOSSES), st.integers(1, 4)
)
ledgers = st.lists(charges, max_size=12)

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


# The shape of a filter ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ADAPTIVE)
@given(ledger=ledgers, wasted=charges)
@settings(deadline=None, max_examples=15)
def test_a_refusal_changes_nothing(name: str, ledger: list[Charge], wasted: Charge) -> None:
    rule = make_filter(name, SPLIT)
    state = fold(rule, ledger)
    if state is None:
        return
    before, spent = tuple(state), rule.spent(state)
    hypothetical = rule.after(state, wasted)
    assert (tuple(state), rule.spent(state)) == (before, spent)
    assert rule.after(state, wasted) == hypothetical
    assert 0 <= spent <= 1
    if hypothetical is not None:
        assert rule.delta_spent(hypothetical) >= rule.delta_spent(state)
        if name != "tight":  # there the lesser of two sides is shown, one of which may die
            assert rule.spent(hypothetical) >= spent


@pytest.mark.parametrize("name", ADAPTIVE)
@given(ledger=ledgers)
@settings(deadline=None, max_examples=15)
def test_what_was_refused_once_would_be_refused_later(name: str, ledger: list[Charge]) -> None:
    """Prefix-closed: with more spent, no charge that had no room gets room."""
    rule = make_filter(name, SPLIT)
    state, refused = rule.start(), []
    for charge in ledger:
        after = rule.after(state, charge)
        if after is None:
            refused.append(charge)
        else:
            state = after
    for charge in refused:
        assert rule.after(state, charge) is None


def test_a_side_that_was_exceeded_is_never_revived() -> None:
    rule = make_filter("tight", SPLIT)
    state = rule.after(rule.start(), one(PureDP(F(1, 2))))  # more than the residue can take
    assert state is not None
    assert state.mu_squared is None
    assert rule.after(state, one(Gaussian(10**6))) is None  # however small: only the pure sum is alive
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
    assert rule.warning(start, small) is None
    assert rule.warning(large, large) is None


@pytest.mark.parametrize("name", SUMS)
@given(ledger=ledgers, seed=st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=15)
def test_the_order_of_debits_does_not_matter(name: str, ledger: list[Charge], seed: random.Random) -> None:
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
def test_a_larger_budget_admits_whatever_a_smaller_one_does(name: str, ledger: list[Charge]) -> None:
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


# Shares ------------------------------------------------------------------------------------------------------------

BUDGETS = {
    "(1, 1e-6)": (F(1), F(1, 10**6)),
    "(3, 1e-6)": (F(3), F(1, 10**6)),
    "(8, 1e-5)": (F(8), F(1, 10**5)),
    "(0.1, 1e-9)": (F(1, 10), F(1, 10**9)),
}


def limits_for(name: str, budget: str, reserve: Fraction = HALF) -> Limits:
    e, d = BUDGETS[budget]
    return Limits(e, d, F(0) if name in ("pure", "pld") else d * reserve)


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


@pytest.mark.parametrize("queries", [1, 7, 20, 100])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", ADAPTIVE)
def test_shares_fit_alone_and_in_every_mixture(name: str, budget: str, queries: int) -> None:
    rule = make_filter(name, limits_for(name, budget))
    options = purchases(rule.share(queries, rule.start()))
    assert len(options) == 3
    draw = random.Random(queries)
    lists = [[option] * queries for option in options]
    lists += [[*[options[0]] * (queries // 2), *[options[1]] * (queries - queries // 2)]]
    lists += [lists[-1][::-1]]
    lists += [[draw.choice(options) for _ in range(queries)] for _ in range(2)]
    for ledger in lists:
        assert fold(rule, ledger) is not None


@pytest.mark.parametrize("name", ADAPTIVE)
@given(picks=st.lists(st.integers(0, 2), min_size=20, max_size=20))
@settings(deadline=None, max_examples=10)
def test_twenty_shares_fit_in_every_order(name: str, picks: list[int]) -> None:
    rule = make_filter(name, SPLIT if name != "pure" else WHOLE)
    options = purchases(rule.share(20, rule.start()))
    assert fold(rule, [options[pick] for pick in picks]) is not None


@pytest.mark.parametrize("name", ADAPTIVE)
def test_without_a_reserve_shares_fit_too(name: str) -> None:
    rule = make_filter(name, WHOLE)
    for option in purchases(rule.share(20, rule.start())):
        assert fold(rule, [option] * 20) is not None


@pytest.mark.parametrize("queries", [1, 7, 20, 100])
@pytest.mark.parametrize("budget", BUDGETS)
def test_shares_of_a_plan_fit_as_one_batch(budget: str, queries: int) -> None:
    rule = make_filter("pld", limits_for("pld", budget))
    options = purchases(rule.share(queries, rule.start()))
    for first, second in ((0, 0), (1, 1), (0, 1)):
        half = queries // 2
        losses = (*options[first].losses * half, *options[second].losses * (queries - half))
        assert rule.after(rule.start(), Charge(losses)) is not None


@pytest.mark.parametrize("epsilon", [F(1, 20), F(1, 7), F(1, 2)])
@pytest.mark.parametrize("name", ADAPTIVE)
def test_a_gaussian_worth_a_pure_mechanism_costs_no_more_than_it(name: str, epsilon: Fraction) -> None:
    rule = make_filter(name, limits_for(name, "(8, 1e-5)"))
    price = rule.worth(epsilon, rule.start())
    assert price.epsilon == epsilon
    states = [rule.after(rule.start(), charge) for charge in purchases(price)]
    if name == "tight":  # whose pure side shows the lesser part
        assert all(state.mu_squared >= states[0].mu_squared for state in states)
    elif name == "rdp":  # stated in rho; at one order randomized response is cheaper by that
        assert all(rule.spent(state) <= epsilon**2 / 2 * F(rule.order) / rule.limit for state in states)
    else:
        assert all(rule.spent(state) <= rule.spent(states[0]) * (1 + F(1, 10**8)) for state in states)


@pytest.mark.parametrize("name", ADAPTIVE)
def test_a_stated_gaussian_is_charged_for_what_it_states(name: str) -> None:
    rule = make_filter(name, limits_for(name, "(1, 1e-6)"))
    price = rule.stated(F(1, 10), F(1, 10**8), rule.start())
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
    assert admitted(half, query) == admitted(rest, query) < admitted(make_filter(name, WHOLE), query)


def test_pure_adds_stated_deltas() -> None:
    rule = make_filter("pure", WHOLE)
    state = rule.after(rule.start(), one(Gaussian(100), 1, MILLIONTH / 2))
    assert rule.delta_spent(state) == MILLIONTH / 2
    assert rule.after(state, one(ApproxDP(F(1, 100), MILLIONTH / 2))) is not None
    assert rule.after(state, one(ApproxDP(F(1, 100), MILLIONTH * F(51, 100)))) is None
    assert rule.after(rule.start(), one(Gaussian(100))) is None  # a Gaussian stated at no delta


def test_noise_too_narrow_for_any_mu_is_not_free() -> None:
    """A mu beyond doubles was once an epsilon of 0."""
    loss = DiscreteGaussian(F(1, 10**200))
    assert loss.mu_squared is None
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
    for narrow in (F(1, 100), F(1, 10**150)):
        assert rule.after(rule.start(), one(DiscreteGaussian(narrow), 1, MILLIONTH / 4)) is None


# Against one another -----------------------------------------------------------------------------------------------


@given(
    ledger=st.lists(
        st.builds(one, st.sampled_from([x for x in LOSSES if x.epsilon is not None])), max_size=40
    )
)
@settings(deadline=None, max_examples=25)
def test_tight_admits_whenever_the_pure_sum_does(ledger: list[Charge]) -> None:
    tight = make_filter("tight", SPLIT)
    total, lost, state = F(0), F(0), tight.start()
    for charge in ledger:
        assert charge.epsilon is not None
        if total + charge.epsilon > 1 or lost + charge.failures > SPLIT.reserve:
            break
        total, lost = total + charge.epsilon, lost + charge.failures
        state = tight.after(state, charge)
        assert state is not None
        assert tight.pure_spent(state) == total


@given(ledger=ledgers)
@settings(deadline=None, max_examples=15)
def test_tight_admits_whenever_squared_mus_do(ledger: list[Charge]) -> None:
    gdp, tight = make_filter("gdp", SPLIT), make_filter("tight", SPLIT)
    sums, state = gdp.start(), tight.start()
    for charge in ledger:
        after = gdp.after(sums, charge)
        if after is None:
            break
        sums, state = after, tight.after(state, charge)
        assert state is not None
        assert gdp.limit - sums.mu_squared <= state.mu_squared  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ADAPTIVE)
def test_no_filter_admits_a_list_beyond_its_budget(name: str) -> None:
    """The exact composition of whatever was admitted, had it been fixed in advance, keeps the budget."""
    for seed, budget in enumerate(BUDGETS):
        limits = limits_for(name, budget, F(1, 10))
        rule, draw = make_filter(name, limits), random.Random(seed)
        scale = limits.epsilon / 12
        menu = [
            PureDP(scale / 3),
            Laplace(scale / 2),
            Exponential(scale),
            PureDP(scale),
            Gaussian(6 / scale),
            ApproxDP(scale / 5, limits.delta / 100),
        ]
        state, events = rule.start(), []
        for _ in range(40):
            loss, n = draw.choice(menu), draw.choice([1, 1, 2, 5])
            after = rule.after(state, one(loss, n, limits.delta / 100))
            if after is not None:
                state = after
                events.append((loss, n))
        assert events
        assert epsilon(events, float(limits.delta), "pld") <= float(limits.epsilon) * (1 + 1e-6)


E1, E3, E8 = (Limits(*BUDGETS[name]) for name in ("(1, 1e-6)", "(3, 1e-6)", "(8, 1e-5)"))
# budget, release, and how many of it: pure, advanced, zcdp, rdp, residue. What pure sums and tight come to is exact.
TABLE: list[tuple[Limits, Loss, tuple[int | None, int | None, int, int, int]]] = [
    (E1, Gaussian(30), (None, None, 43, 43, 50)),
    (E1, PureDP(F(1, 50)), (50, 84, 121, 125, 138)),
    (E1, Laplace(F(1, 10)), (10, 3, 4, 7, 5)),
    (E1, Exponential(F(1, 10)), (10, 3, 19, 20, 21)),
    (E3, PureDP(F(1, 10)), (30, 26, 37, 41, 40)),
    (E3, PureDP(F(1, 50)), (150, 673, 925, 929, 1047)),
    (E3, Exponential(F(1, 10)), (30, 26, 148, 149, 166)),
    (E8, Laplace(F(1, 10)), (80, 168, 245, 258, 285)),
    (E8, PureDP(F(1, 2)), (16, 6, 9, 13, 10)),
]


@pytest.mark.parametrize(
    ("limits", "loss", "wanted"), TABLE, ids=lambda x: str(x) if isinstance(x, Loss) else ""
)
def test_how_many_queries_each_admits(limits: Limits, loss: Loss, wanted: tuple[int, ...]) -> None:
    found = {
        name: admitted(make_filter(name, limits), one(loss)) for name in ("advanced", "zcdp", "rdp", "tight")
    }
    for name, number in zip(("advanced", "zcdp", "rdp"), wanted[1:4], strict=True):
        assert abs(found[name] - (number or 0)) <= 1, name
    assert found["tight"] >= max(wanted[4], wanted[0] or 0)
    if wanted[0] is not None:
        assert admitted(make_filter("pure", limits), one(loss)) == wanted[0]


# Reports -----------------------------------------------------------------------------------------------------------

EVENTS = [
    (PureDP(F(1, 20)), 5),
    (Laplace(F(1, 10)), 2),
    (Gaussian(20), 3),
    (Exponential(F(1, 5)), 2),
    (DiscreteGaussian(15), 1),
]


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_reports_do_not_depend_on_the_order_but_for_tight(delta: float) -> None:
    for events in (EVENTS, EVENTS[:2], [*EVENTS[:2], (ApproxDP(F(1, 10), F(1, 10**10)), 1)]):
        forth, back = compare(events, delta), compare(events[::-1], delta)
        for name in ACCOUNTANTS:  # a large debit costs the residue least where it comes first
            assert forth[name] == pytest.approx(back[name], rel=0.1 if name == "tight" else 1e-9), name


def test_more_events_report_more_and_more_delta_less() -> None:
    for part, whole in itertools.pairwise([EVENTS[: i + 1] for i in range(len(EVENTS))]):
        less, more = compare(part, 1e-6), compare(whole, 1e-6)
        looser = compare(whole, 1e-5)
        for name in ACCOUNTANTS:
            assert less[name] <= more[name] * (1 + 1e-9), name
            assert looser[name] <= more[name] * (1 + 1e-9), name


@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_a_count_in_a_report_is_as_many_events(name: str) -> None:
    for loss in (PureDP(F(1, 10)), Gaussian(20), ApproxDP(F(1, 10), F(1, 10**9))):
        singly = epsilon([loss] * 12, 1e-6, name)
        assert epsilon([(loss, 12)], 1e-6, name) == pytest.approx(
            singly, rel=1e-3 if name == "tight" else 1e-9
        )


@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_a_report_without_room_for_failures_is_infinite(name: str) -> None:
    events = [(ApproxDP(F(1, 10), F(1, 10**6)), 3)]
    assert epsilon(events, 2.9e-6, name) == math.inf
    assert epsilon(events, 4e-6, name) < math.inf


@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_delta_zero_reports_the_pure_sum_or_nothing(name: str) -> None:
    assert epsilon([(PureDP(F("0.1")), 10)], 0, name) == (
        1.0 if name in ("pure", "tight", "pld") else math.inf
    )
    assert epsilon([Gaussian(10)], 0, name) == math.inf


@pytest.mark.parametrize("name", ADAPTIVE)
def test_what_a_filter_admits_its_report_puts_within_the_budget(name: str) -> None:
    """Of one kind of mechanism and no split both are one theorem: they meet."""
    rule = make_filter(name, WHOLE)
    n = admitted(rule, one(PureDP(F(1, 50))))
    within, beyond = (epsilon([(PureDP(F(1, 50)), k)], 1e-6, name) for k in (n, n + 1))
    assert within <= 1 + 1e-9
    assert beyond > 1 or name == "rdp"  # whose report has the best order of all
    assert pure_sum(((PureDP(F(1, 50)), n),)) == F(n, 50)
