"""What a budget means in words: the numbers are the best that any test or guess can do, and nothing prints inf."""

from __future__ import annotations

import copy
import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import Accountant, BadType, BadValue
from dpframe._plans.meaning import BudgetMeaning, format_percent

LINE = "whoever is sure of everybody else's rows, and 50 % sure about yours, "


def opened(epsilon=1.0, delta=0.0, **words):
    df = pd.DataFrame({"age": np.arange(40.0), "patient": list(range(20)) * 2})
    return df.dp.open(
        epsilon=epsilon, delta=delta, bounds={"age": (0, 40)}, because="a test", **words
    )


def laws_of_leaky_response(epsilon, delta):
    """Return the chances of the four outcomes of a randomized response that tells all with chance delta.

    No (epsilon, delta)-private release is easier to tell apart (Kairouz, Oh and Viswanath 2015).
    """
    truth = (1 - delta) / (1 + math.exp(-epsilon))
    lie = 1 - delta - truth
    return np.array([delta, truth, lie, 0.0]), np.array([0.0, lie, truth, delta])


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1])
@pytest.mark.parametrize("prior", [0.5, 0.1, 0.97])
def test_sure_is_reached_by_the_best_guess_and_not_exceeded(epsilon, delta, prior):
    p, q = laws_of_leaky_response(epsilon, delta)
    meaning = BudgetMeaning(epsilon, delta, prior)
    if delta:
        best = np.maximum(prior * p, (1 - prior) * q).sum()
    else:
        best = max(
            prior * a / (prior * a + (1 - prior) * b) for a, b in zip(p, q, strict=True) if a
        )
    assert meaning.sure == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_detection_is_that_of_the_best_test_at_each_rate(delta):
    p, q = laws_of_leaky_response(1.0, delta)
    meaning = BudgetMeaning(1.0, delta)
    order = [0, 1, 2, 3]  # by the ratio of the chances, as Neyman and Pearson's test takes outcomes
    corners = [(q[order[:k]].sum(), p[order[:k]].sum()) for k in range(5)]
    for alarm in np.linspace(0, 1, 41):
        best = np.interp(alarm, *zip(*corners, strict=True))
        if alarm == 0:
            best = delta
        assert meaning.find_detection(alarm) == pytest.approx(best, abs=1e-12)


def test_explain_says_it_in_words_for_a_pure_budget():
    assert opened().budget.explain().line == LINE + "ends at most 73 % sure"
    assert str(opened(epsilon=2).budget.explain()).startswith("Whoever is sure")


def test_explain_speaks_of_guesses_where_there_is_a_delta():
    assert (
        opened(delta=1e-6).budget.explain().line == LINE + "guesses right in at most 73 % of cases"
    )


def test_line_stands_under_the_meter_as_text_and_html():
    p = opened()
    assert repr(p.budget).split("\n")[1] == p.budget.explain().line
    assert p.budget.explain().line in repr(p)
    assert "50 % sure about yours" in p._repr_html_()


def test_no_percentage_says_that_somebody_is_certain():
    assert format_percent(BudgetMeaning(20.0, 0.0).sure) == "99.9999998 %"
    assert "100 %" not in BudgetMeaning(12.0, 1e-9).line
    assert [format_percent(x) for x in (0.0, 1.0, 0.004)] == ["0 %", "100 %", "0.4 %"]


def test_meaning_of_a_huge_epsilon_is_a_number():
    assert BudgetMeaning(5000.0, 0.0).sure == 1.0
    assert BudgetMeaning(5000.0, 1e-6).find_detection(0.5) == 1.0


@pytest.mark.parametrize("prior", [0, 1, -0.5, 2, float("nan")])
def test_explain_refuses_a_prior_outside(prior):
    with pytest.raises(BadValue, match="prior"):
        opened().budget.explain(prior)


def test_explain_refuses_a_prior_that_is_no_number():
    with pytest.raises(BadType, match="prior"):
        opened().budget.explain("half")


def test_spent_is_the_plain_sum_while_it_holds():
    p = opened()
    p.count(epsilon=0.25)
    assert type(p.budget.spent) is float
    assert p.budget.spent == 0.25


@pytest.mark.parametrize("accountant", ["zcdp", "gdp", "rdp", "tight"])
def test_spent_says_the_whole_budget_after_gaussian_noise(accountant):
    p = opened(delta=1e-6, accountant=accountant)
    p.mean("age", epsilon=0.25, mechanism="gaussian")
    spent = p.budget.spent
    assert spent == 1.0
    assert 0 < spent.fraction < 1
    assert str(spent) == repr(spent)
    assert repr(spent).startswith("at most 1 at delta 1e-06 (")
    assert "inf" not in repr(p.budget)
    assert f"{spent:.2f}" == "1.00"
    for twin in (copy.deepcopy(spent), pickle.loads(pickle.dumps(spent))):
        assert repr(twin) == repr(spent)


def test_registry_is_json_with_what_was_spent_on_what():
    account = Accountant(epsilon=2, delta=1e-6, accountant="zcdp", population="patients")
    p = opened(epsilon=None, delta=None, accountant=account, unit="patient", max_rows=2)
    p.count(epsilon=0.25)
    with p.plan_ahead() as batch:
        batch.mean("age", epsilon=0.25, mechanism="gaussian")
        batch.count(epsilon=0.5)
    record = json.loads(json.dumps(p.budget.registry(), allow_nan=False))
    assert record["unit"] == "all rows of one person, by patient"
    assert record["neighboring_relation"] == "add-remove"
    assert (record["epsilon"], record["delta"], record["population"]) == (2.0, 1e-6, "patients")
    assert (record["debits"], record["questions"]) == (2, 3)
    assert "gaussian" in record["mechanisms"]
    assert record["first_debit"] <= record["last_debit"]
    assert record["used"] == p.budget.fraction


def test_registry_of_an_unused_budget_has_no_dates():
    p = opened()
    record = p.budget.registry()
    assert (record["first_debit"], record["questions"], record["mechanisms"]) == (None, 0, [])
    assert (record["unit"], record["population"], record["definition"]) == ("one row", None, "pure")


def test_registry_of_an_accountant_without_tables_has_no_unit():
    record = dpframe.Accountant(epsilon=1).budget.registry()
    assert (record["unit"], record["neighboring_relation"]) == (None, None)


def test_registry_is_of_the_budget_as_it_stood():
    p = opened()
    before = p.budget
    p.count(epsilon=0.25)
    assert (before.registry()["questions"], p.budget.registry()["questions"]) == (0, 1)
