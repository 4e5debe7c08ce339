"""The best adversaries that a small game tree can find, against every accountant: exact, not sampled."""

from __future__ import annotations

import pytest

from dpframe.accounting._filter import Limits
from tests.accounting.game import (
    ADAPTIVE,
    LAST,
    ROUNDING,
    F,
    delta_of,
    game,
    greedy,
    leak,
    leaves,
    menu_for,
    response,
)

BUDGETS = {
    "(1, 1e-6)": Limits(F(1), F(1, 10**6), F(1, 10**7)),
    "(2, 1e-2)": Limits(F(2), F(1, 100), F(1, 1000)),
}


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", ADAPTIVE)
def test_the_best_strategy_on_a_menu_stays_within_delta(name: str, budget: str) -> None:
    limits = BUDGETS[budget]
    # the residue depends on the order, and of a choice or Laplace takes milliseconds
    rounds, kinds = (5, len(LAST)) if name != "tight" else (4 if limits.epsilon == 1 else 3, 2)
    played = game(name, limits, kinds)
    menu = menu_for(played.rule, limits, 4)
    found = played.best(played.rule.start(), menu, rounds)
    assert found <= float(limits.delta) * ROUNDING
    # It is a contest: the adversary does get the reserve, and where one release fills the budget nearly all.
    assert found >= float(limits.reserve)
    assert found >= 0.98 * float(limits.delta) or name not in ("gdp", "tight")


def test_the_best_strategy_under_tight_with_a_last_choice_or_laplace() -> None:
    limits = BUDGETS["(1, 1e-6)"]
    played = game("tight", limits)
    assert played.best(played.rule.start(), menu_for(played.rule, limits, 4), 2) <= 1e-6 * ROUNDING


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", ADAPTIVE)
def test_many_small_responses_and_a_last_gamble_at_the_best_moment(name: str, budget: str) -> None:
    limits = BUDGETS[budget]
    played = game(name, limits, kinds=2)
    price = played.rule.share(40, played.rule.start())
    found = played.best(
        played.rule.start(), (response(F(round(price.epsilon * 2**20) - 1, 2**20)),), 40
    )
    assert float(limits.reserve) <= found <= float(limits.delta) * ROUNDING


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", ADAPTIVE)
def test_a_greedy_strategy_leaf_by_leaf(name: str, budget: str) -> None:
    limits = BUDGETS[budget]
    played = game(name, limits, kinds=2 if name == "tight" else 3)
    found = delta_of(leaves(played.rule, greedy(played, 3)), float(limits.epsilon))
    assert float(limits.reserve) / 2 <= found <= float(limits.delta) * ROUNDING


def test_both_ways_to_evaluate_agree() -> None:
    limits = BUDGETS["(1, 1e-6)"]
    played = game("pure", limits)
    menu = (response(F(1, 2)), leak(F(1, 10**6)))
    by_hand = delta_of(
        leaves(
            played.rule,
            lambda h: response(F(1, 2)) if not h else leak(F(1, 10**6)) if len(h) == 1 else None,
        )
    )
    assert by_hand == pytest.approx(1e-6, rel=1e-9)
    assert played.best(played.rule.start(), menu, 3) == pytest.approx(1e-6, rel=1e-9)
