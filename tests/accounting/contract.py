"""What every accountant keeps. A new one subclasses `FilterContract` with its class as ``kind``; docs/develop shows it."""

from __future__ import annotations

import math
from copy import deepcopy
from fractions import Fraction
from typing import Any

from hypothesis import HealthCheck, given, settings

from dpframe.accounting import ACCOUNTANTS, PureDP
from dpframe.accounting._filter import Charge, Filter
from tests.accounting.rules import LOSSES, SPLIT, F, charges, ledgers, one

some = settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.differing_executors]
)


class FilterContract:
    """A rule under test, with the budget (1, 1e-6) unless it says otherwise."""

    kind: type[Filter]

    @property
    def rule(self) -> Filter:
        return self.kind(SPLIT._replace(reserve=self.kind.reserve_share * SPLIT.delta))

    def admitted(self, ledger: list[Charge]) -> tuple[Any, list[Charge]]:
        """The state after all that fits of a ledger, and what did not."""
        rule, refused = self.rule, []
        state = rule.start()
        for charge in ledger:
            after = rule.after(state, charge)
            if after is None:
                refused.append(charge)
            else:
                state = after
        return state, refused

    def test_an_empty_ledger_has_spent_nothing(self) -> None:
        rule = self.rule
        assert rule.spent(rule.start()) == rule.delta_spent(rule.start()) == 0
        assert rule.report((), rule.limits.delta) == 0

    @given(ledger=ledgers, wasted=charges)
    @some
    def test_a_refusal_changes_nothing(self, ledger: list[Charge], wasted: Charge) -> None:
        rule, (state, _) = self.rule, self.admitted(ledger)
        before, spent = deepcopy(state), rule.spent(state)
        hypothetical = rule.after(state, wasted)
        assert (state, rule.spent(state)) == (before, spent)
        assert rule.after(state, wasted) == hypothetical
        assert 0 <= spent <= 1
        if hypothetical is None:
            assert rule.refusal(state, wasted).endswith(".")
        else:
            assert rule.delta_spent(hypothetical) >= rule.delta_spent(state)

    @given(ledger=ledgers)
    @some
    def test_what_was_refused_once_would_be_refused_later(self, ledger: list[Charge]) -> None:
        """Prefix-closed: with more spent, no charge that had no room gets room."""
        rule, (state, refused) = self.rule, self.admitted(ledger)
        for charge in refused:
            assert rule.after(state, charge) is None

    def test_equal_shares_all_fit(self) -> None:
        rule = self.rule
        for queries in (1, 2, 7, 20):
            share = rule.share(queries, rule.start())
            assert share.epsilon is not None
            assert rule.after(rule.start(), one(PureDP(share.epsilon), queries)) is not None

    def test_questions_whose_epsilons_add_up_to_the_budget_all_fit(self) -> None:
        rule = self.rule
        state, batch = rule.start(), []
        for epsilon in (F(1, 2), F(1, 20), F(1, 5), F(3, 20), F(1, 10)):
            bought = rule.worth(epsilon, state).epsilon
            assert bought is not None
            batch.append((PureDP(bought), 1))
            charge = Charge(((PureDP(bought), 1),))
            state = rule.ahead(state, [charge]) if rule.batches else rule.after(state, charge)
            assert state is not None
        assert rule.after(rule.start(), Charge(tuple(batch))) is not None

    def test_what_fits_several_times_fits_so_often_at_once(self) -> None:
        rule = self.rule
        for loss in LOSSES[:2]:
            times = rule.times(rule.start(), one(loss))
            assert times > 0
            assert rule.after(rule.start(), one(loss, times)) is not None

    def test_what_is_admitted_keeps_the_budget_as_a_fixed_list(self) -> None:
        """By the rule's own report, and by that of the exact curves, whose theorem holds for any fixed list."""
        rule = self.rule
        for loss in LOSSES[:2]:
            events = ((loss, rule.times(rule.start(), one(loss))),)
            for kind in (self.kind, ACCOUNTANTS["pld"]):
                found = kind.report(events, rule.limits.delta)
                assert found <= float(rule.limits.epsilon) * (1 + 1e-3), (kind.name, loss)

    def test_a_report_never_claims_less_than_the_plain_sum_without_delta(self) -> None:
        found = self.kind.report(((PureDP(F(1, 10)), 3),), Fraction(0))
        assert found >= 0.3
        assert found == 0.3 or math.isinf(found) or not self.kind.keeps_epsilon_sum_only
