"""The words of a price: within=, n=, shares, mechanism=, and questions that are declared and paid together."""

from __future__ import annotations

import inspect
import math
import warnings
from fractions import Fraction
from itertools import cycle, islice

import pandas as pd
import pytest

import dpframe
from dpframe import BadType, BadValue, BudgetError, BudgetExceeded, PrivacyWarning
from dpframe._plans.aggregates import Output as query_Output
from dpframe._questions.question import Query
from tests.accounting.rules import ADAPTIVE
from tests.internals import cost_of_price
from tests.ledger.people import BOUNDS, KEYS, people

WITH_DELTA = ADAPTIVE
BUDGETS = [("pure", 0), ("tight", 0), *((name, 1e-6) for name in WITH_DELTA)]
budgets = pytest.mark.parametrize(("accountant", "delta"), BUDGETS)


def opened(epsilon=1, delta=0, frame=None, **terms):
    frame = people() if frame is None else frame
    return frame.dp.open(epsilon, delta, **{"bounds": BOUNDS, "keys": KEYS, **terms})


def used(p):
    return p.budget.rule.pure_spent(p.budget.state)


def error_of(plan, n=None):
    """The half-width that a plan promises, by its own public words: the largest of its outputs."""
    found = plan.error(n=n)
    return max(found.values()) if isinstance(found, dict) else found


# within= ------------------------------------------------------------------------------------------------------

VERBS = {
    "count": (lambda p, **o: p.count(**o), 5, None),
    "count of a column": (lambda p, **o: p.count("age", **o), 12, None),
    "sum": (lambda p, **o: p.sum("age", **o), 500, None),
    "sums": (lambda p, **o: p[["age", "cost"]].sum(**o), 9000, None),
    "histogram": (lambda p, **o: p.histogram("age", bins=5, **o), 7, None),
    "value_counts": (lambda p, **o: p.value_counts("state", **o), 6, None),
    "counts": (lambda p, **o: p.counts({"a": "age > 30", "b": "cost > 5"}, **o), 11, None),
    "groupby size": (lambda p, **o: p.groupby("state").size(**o), 9, None),
    "groupby sum": (lambda p, **o: p.groupby("state")["cost"].sum(**o), 8000, None),
    "filtered count": (lambda p, **o: p.query("age > 30").count(**o), 8, None),
    "mean": (lambda p, **o: p.mean("age", **o), 2, 1000),
    "mean of few": (lambda p, **o: p.mean("cost", **o), 90, 20),
    "grouped mean": (lambda p, **o: p.groupby("state")["age"].mean(**o), 6, 150),
    "aggregates": (
        lambda p, **o: p.groupby("state").agg(a=("age", "mean"), b=("cost", "mean"), **o),
        70,
        150,
    ),
}


@pytest.mark.parametrize("verb", VERBS)
@budgets
def test_within_finds_nearly_the_least_price_that_is_accurate_enough(accountant, delta, verb):
    """What a price 2 % lower buys would miss. Whole numbers have steps, so their errors may jump just there."""
    ask, width, n = VERBS[verb]
    p = opened(50, delta, accountant=accountant)
    plan = ask(p.explain, within=width, n=n)
    assert error_of(plan, n) <= width
    words = {"mechanism": plan.mechanism}
    if plan.mechanism == "laplace":
        lower = plan.epsilon * 0.98
        assert error_of(ask(p.explain, epsilon=lower, **words), n) > width * (1 if n else 0.999)
    else:
        # For a Gaussian the epsilon is a statement at a delta: less epsilon at that delta is a wider noise.
        lower = {"epsilon": plan.epsilon * 0.98, "delta": plan.delta}
        assert error_of(ask(p.explain, **lower, **words), n) > width
    assert p.ledger.empty


@budgets
def test_within_takes_the_mechanism_with_the_smaller_cost(accountant, delta):
    p = opened(20, delta, accountant=accountant)
    for ask, width, _ in (VERBS["count"], VERBS["sums"]):
        prices = {}
        for mechanism in ("laplace", "gaussian") if delta else ("laplace",):
            plan = ask(p.explain, within=width, mechanism=mechanism)
            assert plan.mechanism == mechanism
            state = p.budget.rule.after(p.budget.rule.start(), plan.charge)
            prices[mechanism] = math.inf if state is None else p.budget.rule.spent(state)
        assert ask(p.explain, within=width).mechanism == min(prices, key=prices.get)


@pytest.mark.parametrize("accountant", ["pure", "tight"])
def test_answer_is_as_accurate_as_was_asked(accountant):
    p = opened(20, 1e-6, accountant=accountant)
    answer = p.count(within=10)
    low, high = answer.interval()
    assert (high - low) / 2 <= 10
    table = p.histogram("age", bins=4, within=12).dp.interval()
    assert ((table["upper"] - table["lower"]) / 2 <= 12).all()
    assert len(p.ledger) == 2


def test_within_of_a_selection_is_how_far_the_choice_may_be_from_the_best():
    p = opened(50, 1e-6)
    plan = p.explain.argmax("state", within=8)
    assert plan.mechanism == "noisy-max"
    assert plan.worst_error() <= 8
    cheaper = p.explain.argmax("state", epsilon=float(plan.epsilon) * 0.98)
    assert cheaper.worst_error() > 8
    assert p.argmax("state", within=8) in ("CA", "NY")
    with pytest.raises(BadValue, match="noisy-max"):
        p.argmax("state", within=8, mechanism="laplace")


def test_within_is_a_price_that_pays():
    p = opened(1)
    with pytest.raises(BudgetExceeded):
        p.count(within=0.1)
    assert p.ledger.empty
    p.count(within=10)
    assert p.budget.spent == p.ledger["epsilon"][0] > 0
    p.count(within=10)
    assert len(p.ledger) == 1
    p.count(within=10, fresh=True)
    assert len(p.ledger) == 2


@pytest.mark.parametrize(
    "words", [{"epsilon": 0.1}, {"delta": 1e-7}, {"epsilon": 0.1, "delta": 1e-7}], ids=str
)
@pytest.mark.parametrize("asked_before", [False, True])
def test_within_and_a_price_are_one_too_many(words, asked_before):
    p = opened(20, 1e-6)
    if asked_before:
        p.count(within=10)
    with pytest.raises(BadValue, match="leave epsilon= and delta= out"):
        p.count(within=10, **words)
    assert len(p.ledger) == asked_before


def test_accuracy_beyond_the_grid_is_refused():
    with pytest.raises(BadValue, match=r"finer than the grid"):
        opened(1000).sum("cost", within=1e-12)


def test_accuracy_that_any_price_gives_costs_the_least_price_there_is():
    p = opened()
    p.count(within=1e15)
    assert 0 < used(p) < Fraction(1, 2**30)


# n= -----------------------------------------------------------------------------------------------------------

NEED_N = {
    "mean": lambda p, **o: p.mean("age", **o),
    "means": lambda p, **o: p[["age", "cost"]].mean(**o),
    "groupby": lambda p, **o: p.groupby("state")["age"].mean(**o),
    "agg": lambda p, **o: p.groupby("state").agg(n=("age", "size"), m=("age", "mean"), **o),
    "filtered": lambda p, **o: p.query("age > 30").mean("age", **o),
}


@pytest.mark.parametrize("verb", NEED_N)
@pytest.mark.parametrize("asked_before", [False, True])
def test_error_that_depends_on_a_private_number_needs_a_public_one(verb, asked_before):
    p = opened(20)
    if asked_before and verb != "agg":
        NEED_N[verb](p, within=10, n=300)
    with pytest.raises(BadValue, match="give n=, a public number or a released count"):
        NEED_N[verb](p, within=10)
    assert len(p.ledger) == (asked_before and verb != "agg")


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("words", [{}, {"n": 300}], ids=["without n", "with n"])
def test_standard_deviation_has_no_error_to_ask_for(grouped, words):
    p = opened(20)
    asked = p.groupby("state")["age"] if grouped else p["age"]
    with pytest.raises(BadValue, match=r"epsilon=|n="):
        asked.std(within=10, **words)
    with pytest.raises(BadValue, match="give epsilon="):
        asked.std(within=10, n=300)
    assert p.ledger.empty


def test_n_without_within_would_be_ignored_so_it_is_refused():
    p = opened()
    for words in ({}, {"epsilon": 0.1}, {"mechanism": "laplace"}):
        with pytest.raises(BadValue, match="n= is"):
            p.mean("age", n=300, **words)
    assert p.ledger.empty


def test_released_count_is_taken_at_the_lower_end_of_its_interval():
    frame = people(1000)
    p = opened(100, frame=frame)
    count = p.count(epsilon=0.05)
    low, _ = count.interval()
    assert 1 <= low < int(count)
    plans = {
        "the count": p.explain.mean("age", within=2, n=count),
        "its lower end": p.explain.mean("age", within=2, n=low),
        "the number in it": p.explain.mean("age", within=2, n=int(count)),
    }
    assert (
        plans["the count"].epsilon
        == plans["its lower end"].epsilon
        > plans["the number in it"].epsilon
    )
    # and in the other order, since prices are remembered
    q = opened(100, frame=people(1000, seed=1))
    assert (
        q.explain.mean("age", within=2, n=int(count)).epsilon == plans["the number in it"].epsilon
    )
    assert q.explain.mean("age", within=2, n=count).epsilon == plans["the count"].epsilon


def test_people_declared_at_opening_are_known_for_all_of_them():
    plan = opened(20, n=1000).explain.mean("age", within=2)
    assert plan.epsilon == opened(20).explain.mean("age", within=2, n=1000).epsilon
    assert plan.error(n=1000) <= 2


SOME = {
    "filtered": lambda p, **o: p.query("age > 80").mean("cost", **o),
    "groups": lambda p, **o: p.groupby("state")["cost"].mean(**o),
    "groups of a filter": lambda p, **o: p.query("age > 80").groupby("state")["cost"].mean(**o),
}


@pytest.mark.parametrize("verb", SOME)
def test_people_declared_at_opening_are_not_taken_for_those_of_a_part(verb):
    """With n of everybody, the interval of the few would be wider than what was asked for."""
    p = opened(100, n=300)
    with pytest.raises(BadValue, match="n="):
        SOME[verb](p, within=20)
    assert p.ledger.empty
    assert SOME[verb](p.explain, within=20, n=15).error(n=15) <= 20


def test_public_number_of_rows_is_known_under_replace_one():
    p = opened(20, neighbors="replace-one", frame=people(1000))
    plan = p.explain.mean("age", within=2)
    assert plan.error(n=1000) <= 2
    assert p.explain.mean("age", epsilon=plan.epsilon * 0.98).error(n=1000) > 2
    answer = p.mean("age", within=2)
    low, high = answer.interval()
    assert (high - low) / 2 <= 2.1  # of a nullable column the noisy number of values has a say
    with pytest.raises(BadValue, match="n="):
        p.query("age > 30").mean("age", within=2)


BAD_N = [0, -5, 0.5, float("nan"), float("inf"), True, "300", b"3", [300], 1j, pd.NA]


@pytest.mark.parametrize("bad", BAD_N, ids=repr)
@pytest.mark.parametrize("asked_before", [False, True])
def test_n_that_is_no_number_of_people_charges_nothing(bad, asked_before):
    p = opened(2**10)
    if asked_before:  # 1 == True, and prices are remembered
        p.mean("age", within=60, n=1)
    with pytest.raises((BadType, BadValue)):
        p.mean("age", within=60, n=bad)
    assert len(p.ledger) == asked_before


@pytest.mark.parametrize("bad", [0, -5, 2.5, float("nan"), True, "300", [300]], ids=repr)
def test_n_of_opening_is_a_whole_number_of_people(bad):
    frame = people()
    with pytest.raises((BadType, BadValue)):
        frame.dp.open(1, n=bad)
    assert frame.attrs == {}


# Shares -------------------------------------------------------------------------------------------------------

MIX = {
    "count": lambda p: p.count(fresh=True),
    "mean": lambda p: p.mean("age", fresh=True),
    "argmax": lambda p: p.argmax("state", fresh=True),
    "agg": lambda p: p.groupby("state").agg(n=("age", "size"), m=("cost", "mean"), fresh=True),
    "laplace": lambda p: p.count("age", mechanism="laplace", fresh=True),
    "gaussian": lambda p: p.sum("cost", mechanism="gaussian", fresh=True),
}


def mixtures(delta, full, gaussian=True):
    kinds = [k for k in MIX if (delta and gaussian) or k != "gaussian"]
    yield kinds
    yield kinds[::-1]
    for kind in kinds if full else ():
        yield [kind]
    if full:
        yield from ([a, b] for a in kinds for b in kinds if a != b)
        yield [kinds[0]] * 19 + [kinds[-1]]
        yield [kinds[-1]] * 19 + [kinds[0]]


@pytest.mark.scaled
@pytest.mark.parametrize("queries", [20, 7])
@budgets
def test_as_many_shares_as_were_promised_fit_whatever_they_are_spent_on(
    full, accountant, delta, queries
):
    # A seventh is one of few large shares, where the plain sum is the better book. Which Gaussian noise ends; so one that is
    # dictated may have to wait (test_promise.py), and no other question has to.
    gaussian = accountant != "tight" or queries == 20
    for kinds in mixtures(delta, full, gaussian):
        p = opened(1, delta, accountant=accountant, queries=queries)
        for kind in islice(cycle(kinds), queries):
            MIX[kind](p)
        assert len(p.ledger) == queries
        assert p.budget.fraction <= 1
        if len(kinds) > 2:
            assert spend_all(p, kinds) <= queries  # a share may take less than it might


def spend_all(p, kinds):
    """How many more shares are admitted."""
    for number, kind in enumerate(cycle(kinds)):
        try:
            MIX[kind](p)
        except BudgetError:
            return number
    raise AssertionError


@budgets
def test_half_of_the_shares_leave_room_for_the_other_half(accountant, delta):
    p = opened(3, delta, accountant=accountant)
    for kind in islice(cycle(MIX if delta else list(MIX)[:-1]), 10):
        MIX[kind](p)
    # Only in the advanced theorem do the first shares take a little more than the last.
    assert p.budget.fraction <= (0.6 if "advanced" in accountant else 0.5 + 1e-9)
    assert p.budget.share > 0


@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("accountant", [*WITH_DELTA, "pld"])
def test_price_that_fits_as_laplace_fits_as_the_mechanism_that_is_chosen(accountant, epsilon):
    p = opened(1, 1e-6, accountant=accountant)
    rule = p.budget.rule
    for ask in (VERBS["count"][0], VERBS["sums"][0], VERBS["groupby size"][0]):
        laplace, chosen = (
            ask(p.explain, epsilon=epsilon, mechanism="laplace"),
            ask(p.explain, epsilon=epsilon),
        )
        if rule.after(rule.start(), laplace.charge) is not None:
            assert rule.after(rule.start(), chosen.charge) is not None


# mechanism= ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accountant", [a for a in WITH_DELTA if a != "pure"])
def test_mechanism_overrides_the_choice_and_the_plan_says_so(accountant):
    p = opened(1, 1e-6, accountant=accountant)
    for mechanism in ("laplace", "gaussian"):
        for ask in (VERBS["count"][0], VERBS["sums"][0]):
            plan = ask(p.explain, mechanism=mechanism)
            assert plan.mechanism == mechanism
            assert "as asked" in plan.why
    free = p.explain.count()
    narrow = min(p.explain.count(mechanism=m).error() for m in ("laplace", "gaussian"))
    assert free.error() == narrow
    assert "as wide" in free.why


@pytest.mark.parametrize("bad", ["gauss", "Laplace", "", None, 1, True, b"laplace", ["laplace"]])
def test_unknown_mechanism_charges_nothing(bad):
    p = opened(1, 1e-6)
    for words in ({}, {"epsilon": 0.1}, {"within": 50}):
        with pytest.raises((BadType, BadValue)):
            p.count(mechanism=bad, **words)
    assert p.ledger.empty


def test_word_that_no_verb_knows_is_an_error_and_not_ignored():
    p = opened()
    for word in ("epsilom", "eps", "widthin", "seed", "sensitivity"):
        with pytest.raises(BadType, match=f"no such argument: {word}="):
            p.count(**{word: 1})
    with pytest.raises(BadType, match="within"):
        p.count(wihtin=1)
    assert p.ledger.empty


@pytest.mark.filterwarnings("ignore::dpframe.PrivacyWarning")  # when the residue ends
def test_within_prefers_what_still_fits_to_what_would_have_been_cheaper():
    """Near the end of a budget only one of two mechanisms may fit: that one is taken, whatever a whole budget would say."""
    found = []
    for accountant in ("tight", "zcdp", "gdp"):
        p = people().dp.open(1, 1e-6, accountant=accountant, bounds=BOUNDS, keys=KEYS)
        for _ in range(12):
            for width in (16, 25, 40, 60, 100):
                fits = {}
                for mechanism in ("laplace", "gaussian"):
                    try:
                        one = p.explain.count(within=width, mechanism=mechanism, fresh=True)
                    except BudgetError:
                        continue
                    fits[mechanism] = p.budget.rule.after(p.budget.state, one.charge) is not None
                if sorted(fits.values()) == [False, True]:
                    found.append((accountant, width))
                    assert fits[p.explain.count(within=width, fresh=True).mechanism], found[-1]
            p.count(epsilon=0.08, mechanism="laplace", fresh=True)
            if p.budget.fraction > 0.9:
                break
    assert found


def test_price_with_delta_is_a_gaussian_and_laplace_would_waste_it():
    p = opened(1, 1e-6)
    plan = p.explain.count(epsilon=0.5, delta=1e-8)
    assert (plan.mechanism, plan.delta) == ("gaussian", 1e-8)
    assert plan.epsilon <= 0.5
    with pytest.raises(BadValue, match="wasted"):
        p.count(epsilon=0.5, delta=1e-8, mechanism="laplace")
    with pytest.raises(BadValue, match="needs delta > 0"):
        p.count(epsilon=0.5, delta=0, mechanism="gaussian")
    assert p.ledger.empty


# The warning of the default accountant ------------------------------------------------------------------------


def test_question_that_closes_the_tighter_side_warns_before_the_debit():
    p = opened(3, 1e-6)
    p.count(epsilon=0.1, mechanism="laplace")
    before = p.budget.fraction, len(p.ledger), len(p.declarations)
    with pytest.raises(PrivacyWarning, match="plain sum"):  # warnings are errors here
        p.sum("age", bounds=(0, 99), epsilon=2, mechanism="laplace")
    assert (p.budget.fraction, len(p.ledger), len(p.declarations)) == before
    with pytest.warns(PrivacyWarning, match="plain sum") as told:
        p.sum("age", bounds=(0, 99), epsilon=2, mechanism="laplace")
    assert told[0].filename == __file__
    assert len(p.ledger) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p.count("age", epsilon=0.25, mechanism="laplace")  # once is enough
    with pytest.raises(BudgetError):
        p.count(mechanism="gaussian")
    assert used(p) == Fraction(235, 100)


def test_signatures_tell_the_words_of_a_price():
    for verb in ("count", "sum", "mean", "histogram", "argmax", "counts", "value_counts", "std"):
        found = inspect.signature(getattr(dpframe.PrivateFrame, verb)).parameters
        assert {"epsilon", "delta", "within", "n", "mechanism", "fresh", "name"} <= set(found)


def test_what_does_not_fit_costs_more_than_what_does():
    p = people().dp.open(1, bounds=BOUNDS, keys=KEYS)
    p.count(epsilon=0.9)
    small, large = (p.explain.mean("age", epsilon=e).charge for e in (0.05, 0.5))
    assert cost_of_price(p.budget, small) == (False, 0.05)
    assert cost_of_price(p.budget, large) == (True, 0.5)


@pytest.mark.parametrize("accountant", ["tight", "gdp"])
def test_a_part_of_a_price_has_that_part_of_its_delta(accountant):
    session = people().dp.open(1, 1e-6, accountant=accountant)._session
    query = Query((query_Output("rows", "size"),), None)
    whole, half = (
        session.price(query, {"epsilon": 0.5, "delta": 1e-7}, part)
        for part in (Fraction(1), Fraction(1, 2))
    )
    assert (whole.delta, half.delta) == (Fraction(1, 10**7), Fraction(1, 2 * 10**7))


WORDS = [
    {},
    {"epsilon": 0.1},
    {"epsilon": 0.1, "delta": 1e-8},
    {"delta": 1e-8},
    {"mechanism": "gaussian"},
]
PAID = [
    (a, d, words)
    for a, d in BUDGETS
    for words in WORDS
    if d or not {"delta", "mechanism"} & {*words}
]


@pytest.mark.parametrize(("accountant", "delta", "words"), PAID)
def test_two_halves_of_a_price_take_no_more_than_the_whole(accountant, delta, words):
    """By every rule and all words of a price; only advanced composition counts two small losses a little higher."""
    p, count = opened(3, delta, accountant=accountant), Query((query_Output("rows", "size"),), None)
    session, rule = p._session, p.budget.rule

    def spend(*parts):
        state = rule.start()
        for part in parts:
            plan = count.plan(session.unit, session.price(count, words, part), None, ())
            state = rule.after(state, plan.charge)
        return float(rule.spent(state))

    whole, half = Fraction(1), Fraction(1, 2)
    assert spend(half, half) <= spend(whole) * (1.02 if accountant == "advanced" else 1 + 1e-8)
    assert spend(half) < 0.6 * spend(whole)
