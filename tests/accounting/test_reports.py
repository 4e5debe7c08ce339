"""Accountants against one another: what they admit, and what they report of a list."""

from __future__ import annotations

import itertools
import math
import random

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
    PureDP,
    compare,
    epsilon,
    make_filter,
)
from dpframe.accounting._filter import Charge, Limits, pure_sum
from tests.accounting.rules import (
    ADAPTIVE,
    BUDGETS,
    LOSSES,
    SPLIT,
    WHOLE,
    F,
    admitted,
    ledgers,
    limits_for,
    one,
)

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
        assert gdp.limit - sums.total <= state.mu_squared


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
        name: admitted(make_filter(name, limits), one(loss))
        for name in ("advanced", "zcdp", "rdp", "tight")
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
            assert forth[name] == pytest.approx(back[name], rel=0.1 if name == "tight" else 1e-9), (
                name
            )


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
    assert beyond > 1 or hasattr(
        rule, "order"
    )  # fixed at the opening, where a report has the best of all orders
    assert pure_sum(((PureDP(F(1, 50)), n),)) == F(n, 50)
