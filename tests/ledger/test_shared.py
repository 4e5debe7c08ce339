"""One accountant for several frames that may hold the same people: one budget, in memory and in a file."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import (
    Accountant,
    BadType,
    BadValue,
    BudgetError,
    BudgetExceeded,
    PrivacyWarning,
    SessionError,
)
from dpframe._plans.budget import DEFAULT_QUERIES
from tests.ledger.people import BOUNDS, KEYS, begun, kinds, opened, people, used


@pytest.fixture(params=["memory", "named", "file"])
def words(request, path):
    """Where a budget is kept: nowhere else, under a name in this process, or in a file."""
    name = f"people {uuid.uuid4().hex}"
    return {
        "memory": {},
        "named": {"population": name},
        "file": {"population": name, "ledger": path},
    }[request.param]


def patients():
    return people(100, seed=1)[["age"]].copy()


def spend_one_budget(p, q):
    """What two frames of one budget do, and what they are then told."""
    p.count(epsilon=0.25)
    assert (used(p), used(q)) == (Fraction(1, 4), Fraction(1, 4))
    q.mean("age", epsilon=0.5)
    q.count(epsilon=0.125)
    with pytest.raises(BudgetExceeded, match=r"requested 0\.25, spent 0\.875, remaining 0\.125"):
        p.count("age", epsilon=0.25)
    p.count("age", epsilon=0.125)
    assert [used(p), used(q)] == [1, 1]
    assert p.ledger.equals(q.ledger)
    assert p.accountant is q.accountant


def test_what_all_frames_spend_adds_up(words):
    acc = Accountant(1, **words)
    p = people().dp.open(accountant=acc, bounds=BOUNDS, keys=KEYS)
    q = patients().dp.open(accountant=acc, bounds={"age": (0, 110)})
    spend_one_budget(p, q)
    assert acc.budget.spent == 1
    assert acc.ledger["question"].tolist() == [
        "size()",
        "mean(age, bounds=(0, 110))",
        "size()",
        "count(age)",
    ]
    assert p.accountant is acc


def test_frames_with_budgets_of_their_own_would_spend_more():
    """The twin that must fail: an accountant each, of the same budget."""
    p = people().dp.open(accountant=Accountant(1), bounds=BOUNDS, keys=KEYS)
    q = patients().dp.open(accountant=Accountant(1), bounds={"age": (0, 110)})
    with pytest.raises(AssertionError):
        spend_one_budget(p, q)
    assert used(p) + used(q) < 2
    p.count(epsilon=0.75)
    q.count(epsilon=1)
    assert used(p) + used(q) == 2  # of people who were promised 1


def test_answers_of_one_frame_are_not_those_of_another(words):
    acc = Accountant(100, **words)
    p = people(200).dp.open(accountant=acc)
    q = patients().dp.open(accountant=acc)
    assert (p.count(epsilon=40), q.count(epsilon=40)) == (200, 100)
    assert used(p) == 80


def test_default_shares_are_of_the_whole_budget(words):
    acc = Accountant(1, 1e-6, **words)
    p = people().dp.open(accountant=acc, bounds=BOUNDS, keys=KEYS)
    q = patients().dp.open(accountant=acc, bounds={"age": (0, 110)})
    for i in range(20):
        [p.count, lambda fresh: q.mean("age", fresh=fresh), p.groupby("state").size][i % 3](
            fresh=True
        )
    assert p.budget.fraction == pytest.approx(1, abs=1e-6)
    with pytest.raises(BudgetExceeded):
        q.count(fresh=True)


def test_frames_that_share_data_may_share_a_budget_and_not_have_two(words):
    acc, frame = Accountant(1, **words), people()
    p = frame.dp.open(accountant=acc)
    part = frame[["age"]]
    part.attrs.clear()
    with pytest.raises(SessionError, match="shares its data"):
        part.dp.open(1)
    q = part.dp.open(accountant=acc)
    q.count(epsilon=0.25)
    assert used(p) == Fraction(1, 4)


def test_name_of_a_budget_that_was_not_named_opens_no_second_one():
    """Another population of that name would be in the memory that all share, with a budget of its own."""
    acc, frame = Accountant(1), people()
    p = frame.dp.open(accountant=acc)
    part = frame[["age"]]
    part.attrs.clear()
    with pytest.raises(SessionError, match="shares its data"):
        part.dp.open(1, population=acc.population)
    assert not part.attrs
    p.close()
    with pytest.raises(SessionError, match="shares its data"):
        part.dp.open(1, population=acc.population)


def test_session_hands_out_its_accountant(words):
    p = people().dp.open(1, **words)
    q = patients().dp.open(accountant=p.accountant)
    q.count(epsilon=0.25)
    assert used(p) == Fraction(1, 4)
    p.close()
    q.count(epsilon=0.25, fresh=True)
    assert used(q) == Fraction(1, 2)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_frames_of_another_relation_are_refused(words, neighbors):
    acc = Accountant(1, **words)
    p = people().dp.open(accountant=acc, neighbors=neighbors)
    other = "replace-one" if neighbors == "add-remove" else "add-remove"
    frame = patients()
    with pytest.raises(
        SessionError, match=f"neighbors='{neighbors}' .*, and this one has '{other}'"
    ):
        frame.dp.open(accountant=acc, neighbors=other)
    assert frame.attrs == {}
    frame.dp.open(accountant=acc, neighbors=neighbors)
    p.count(epsilon=1)


def test_equal_columns_need_a_version(words):
    acc, first, second = Accountant(1, **words), people(), people(seed=1)
    first.dp.open(accountant=acc)
    with pytest.raises(SessionError, match=r"table='\.\.\.'.*version="):
        second.dp.open(accountant=acc)
    assert second.attrs == {}
    q = second.dp.open(accountant=acc, version="2")
    q.count(epsilon=0.25)
    first.dp.count(epsilon=0.25)
    assert acc.budget.spent == 0.5


def test_tables_with_equal_columns_have_names(words):
    acc, first, second = Accountant(1000, **words), people(), people(20, seed=1)
    p = first.dp.open(accountant=acc, table="north")
    with pytest.raises(SessionError, match="table="):
        second.dp.open(accountant=acc, table="north")
    q = second.dp.open(accountant=acc, table="south")
    assert second.dp.open(accountant=acc, table="south")._session is q._session
    assert round(p.count(epsilon=100)) == len(first)
    assert round(q.count(epsilon=100)) == 20
    assert used(p) == used(q) == 200
    third = people(30, seed=2).dp.open(accountant=acc, table="south", version="2")
    assert round(third.count(epsilon=100)) == 30
    with pytest.raises(BadType, match="table="):
        people(5, seed=3).dp.open(accountant=acc, table=" ")


def test_same_accountant_again_returns_the_session_that_is_there(words):
    acc, frame = Accountant(1, **words), people()
    p = frame.dp.open(accountant=acc)
    assert frame.dp.open(accountant=acc)._session is p._session
    with pytest.raises(SessionError, match="other terms"):
        frame.dp.open(accountant=Accountant(1))
    assert frame.dp.open(1)._session is p._session  # the epsilon that it has: nothing changes
    with pytest.raises(SessionError, match="other terms"):
        frame.dp.open(2)


@pytest.mark.parametrize(
    "more",
    [{"epsilon": 1}, {"delta": 0}, {"reserve": 0}, {"ledger": "x.db"}, {"population": "people"}],
    ids=lambda m: next(iter(m)),
)
def test_accountant_brings_its_own_words(tmp_path, monkeypatch, more):
    monkeypatch.chdir(tmp_path)
    frame = people()
    with pytest.raises(BadValue, match="leave them out"):
        frame.dp.open(accountant=Accountant(1), **more)
    assert frame.attrs == {}
    assert list(tmp_path.iterdir()) == []


def test_accountant_exists_once(words):
    acc = Accountant(1, **words)
    p = people().dp.open(accountant=acc)
    assert copy.copy(acc) is copy.deepcopy(acc) is acc
    assert copy.deepcopy({"a": [acc]})["a"][0] is acc
    for thing in (acc, {"a": acc}, p.accountant):
        with pytest.raises(BadType, match="an accountant cannot be pickled"):
            pickle.dumps(thing)


def test_accountants_of_one_place_are_one_budget(words):
    first, second = Accountant(1, **words), Accountant(1, **words)
    p = people().dp.open(accountant=first)
    p.count(epsilon=0.5)
    if "population" in words:
        assert first == second
        assert hash(first) == hash(second)
        assert second.budget.spent == 0.5
        with pytest.raises(SessionError, match="other terms"):
            Accountant(2, **words)
        with pytest.raises(SessionError, match="other terms"):
            patients().dp.open(2, **words)
        q = patients().dp.open(1, **words)
        q.count(epsilon=0.5)
        assert first.budget.remaining == 0
    else:
        assert first != second
        assert second.budget.spent == 0


def test_named_population_in_memory_is_one_budget_of_the_process():
    name = f"patients {uuid.uuid4().hex}"
    p = people().dp.open(1, population=name)
    q = patients().dp.open(1, population=name)
    other = patients().dp.open(1, population=name + " of another clinic")
    p.count(epsilon=0.75)
    assert (used(q), used(other)) == (Fraction(3, 4), 0)
    with pytest.raises(BudgetExceeded):
        q.count(epsilon=0.5)
    assert q.accountant.file is None
    assert q.accountant == p.accountant != other.accountant


def test_nobody_can_spend_less_by_hand(path):
    acc = Accountant(1, ledger=path, population="people")
    for name in (
        "budget",
        "name",
        "limits",
        "population",
        "file",
        "secret",
        "ledger",
        "declarations",
    ):
        with pytest.raises(AttributeError):
            setattr(acc, name, None)
    opened(path).count(epsilon=1)
    assert acc.budget.remaining == 0
    mine = acc.ledger
    mine["epsilon"] = 0.0
    assert acc.budget.spent == 1 == acc.ledger["epsilon"].sum()


def test_accountant_without_frames_writes_nothing(path):
    acc = Accountant(1, ledger=path, population="people")
    assert (acc.budget.spent, len(acc.ledger), len(acc.declarations)) == (0, 0, 0)
    assert not kinds(path)


# Limits and prices that are no numbers ------------------------------------------------------------------------

NAN, INF = float("nan"), float("inf")
BAD_EPSILON = [
    NAN,
    INF,
    -INF,
    -1,
    0,
    0.0,
    -0.0,
    True,
    False,
    "1",
    None,
    b"1",
    [1],
    1j,
    2**11,
    1e-300,
]
BAD_EPSILON += [
    np.float64("nan"),
    np.float32("inf"),
    np.bool_(True),
    Decimal("NaN"),
    pd.NA,
    Fraction(-1, 2),
]
BAD_DELTA = [
    NAN,
    INF,
    -INF,
    -1e-9,
    1,
    1.0,
    2,
    True,
    "1e-6",
    b"0",
    [0],
    1e-300,
    Decimal("Infinity"),
    pd.NA,
]
BAD = (BadType, BadValue)


def places(path):
    return [
        lambda *a, **o: people().dp.open(*a, **o),
        lambda *a, **o: people().dp.open(*a, ledger=path, population="people", **o),
        lambda *a, **o: Accountant(*a, **o),
        lambda *a, **o: Accountant(*a, ledger=path, population="people", **o),
    ]


@pytest.mark.parametrize("bad", BAD_EPSILON, ids=repr)
def test_epsilon_that_is_no_budget_makes_no_ledger(tmp_path, bad):
    for make in places(str(tmp_path / "budget.db")):
        with pytest.raises(BAD):
            make(bad)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bad", BAD_DELTA, ids=repr)
@pytest.mark.parametrize("word", ["delta", "reserve"])
def test_delta_outside_0_and_1_makes_no_ledger(tmp_path, word, bad):
    for make in places(str(tmp_path / "budget.db")):
        with pytest.raises(BAD):
            make(1, **{"delta": 1e-6, word: bad})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("reserve", [1e-6, 2e-6, 0.5])
def test_reserve_leaves_some_delta_to_convert(reserve):
    with pytest.raises(BadValue, match="reserve must be below"):
        Accountant(1, 1e-6, reserve=reserve)


@pytest.mark.parametrize(
    "bad", ["tihgt", "TIGHT", "", 0, False, True, b"pure", ["pure"], 1.5, dpframe, "moments"]
)
def test_unknown_accountants_make_no_ledger(tmp_path, bad):
    for make in places(str(tmp_path / "budget.db")):
        with pytest.raises(BAD, match="accountant"):
            make(1, 1e-6, accountant=bad)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["advanced", "advanced-squared", "zcdp", "rdp", "gdp", "pld"])
def test_accountants_that_convert_need_delta(name):
    with pytest.raises(BadValue, match="needs delta > 0"):
        Accountant(1, accountant=name)


@pytest.mark.parametrize("bad", [b for b in BAD_EPSILON if b is not None], ids=repr)
def test_price_that_is_no_number_charges_nothing(path, bad):
    p = people().dp.open(1, 1e-6, bounds=BOUNDS, keys=KEYS, ledger=path, population="people")
    for question in (p.count, lambda **o: p.mean("age", n=300, **o), p.groupby("state").size):
        with pytest.raises(BAD):
            question(epsilon=bad)
    assert p.budget.fraction == 0
    assert p.ledger.empty


@pytest.mark.parametrize("bad", BAD_DELTA, ids=repr)
def test_delta_of_a_price_that_is_no_probability_charges_nothing(path, bad):
    p = people().dp.open(1, 1e-6, bounds=BOUNDS, keys=KEYS, ledger=path, population="people")
    for question in (p.count, lambda **o: p.mean("age", n=300, **o), p.groupby("state").size):
        with pytest.raises(BAD):
            question(epsilon=0.1, delta=bad)
    assert p.ledger.empty


NO_WIDTH = [NAN, INF, -INF, -1, 0, True, "1", b"1", [1], 1j, pd.NA, Decimal("NaN")]


@pytest.mark.parametrize("asked_before", [False, True])
@pytest.mark.parametrize("bad", NO_WIDTH, ids=repr)
def test_accuracy_that_is_no_number_charges_nothing(path, bad, asked_before):
    p = people().dp.open(1000, bounds=BOUNDS, keys=KEYS, ledger=path, population="people")
    questions = (p.count, lambda **o: p.mean("age", n=300, **o), p.groupby("state").size)
    for question in questions if asked_before else ():
        question(within=1)  # 1 == True, and what was asked is remembered
    before = len(p.ledger)
    for question in questions:
        with pytest.raises(BAD):
            question(within=bad)
    assert len(p.ledger) == before


@pytest.mark.parametrize("epsilon", [1.0000000000000002, 2, 1000])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_price_over_the_whole_budget_is_refused_and_changes_nothing(path, epsilon, delta):
    p = people().dp.open(1, delta, bounds=BOUNDS, ledger=path, population="people")
    for question in (p.count, lambda **o: p.mean("age", **o)):
        with pytest.raises(BudgetExceeded, match="Nothing was charged"):
            question(epsilon=epsilon, mechanism="laplace")
    assert (p.budget.fraction, len(p.ledger)) == (0, 0)
    p.count(epsilon=0.125, mechanism="laplace")
    assert len(p.ledger) == 1


def test_gaussian_needs_delta(words):
    p = people().dp.open(1, **words)
    for question in (
        lambda: p.count(mechanism="gaussian"),
        lambda: p.count(epsilon=0.1, delta=1e-7),
        lambda: p.count(within=100, mechanism="gaussian"),
    ):
        with pytest.raises(BudgetError, match="delta=0"):
            question()
    with pytest.raises(BadValue, match="mechanism"):
        p.count(mechanism="gauss")
    assert p.budget.fraction == 0


# A delta that is too large for the number of people -----------------------------------------------------------


@pytest.mark.parametrize(
    "terms",
    [{"n": 10**4}, {"n": 10**7}, {"neighbors": "replace-one"}],
    ids=["a few", "many", "public rows"],
)
def test_delta_that_publishes_a_random_row_is_warned_of_before_writing(tmp_path, terms):
    frame, path = people(), str(tmp_path / "budget.db")
    with pytest.raises(
        PrivacyWarning, match="one random person's row"
    ) as caught:  # warnings are errors here
        frame.dp.open(1, 1e-3, ledger=path, population="people", **terms)
    assert "1/n" in str(caught.value)
    assert frame.attrs == {}
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(PrivacyWarning):
        frame.dp.open(accountant=Accountant(1, 1e-3), **terms)
    with pytest.warns(PrivacyWarning, match="random person") as told:
        frame.dp.open(1, 1e-3, ledger=path, population="people", **terms)
    assert told[0].filename == __file__


@pytest.mark.parametrize(
    "terms",
    [{"delta": 9e-4}, {"n": 10}, {"n": 99}, {"delta": 1e-9, "n": 10**8}, {"delta": 0, "n": 10**9}],
)
def test_delta_far_below_one_in_n_is_not_warned_of(terms):
    people().dp.open(**{"epsilon": 1, "delta": 1e-3, **terms})


def test_report_adds_up_what_all_frames_asked(words):
    acc = Accountant(3, 1e-6, **words)
    p = people().dp.open(accountant=acc, bounds=BOUNDS)
    q = patients().dp.open(accountant=acc, bounds={"age": (0, 110)})
    p.count(epsilon=0.125, mechanism="laplace")
    q.count(epsilon=0.25, mechanism="laplace")
    report = acc.budget.report()
    assert report.loc["pure", "epsilon"] == 0.375
    assert report.loc["pld", "epsilon"] <= 0.375
    assert all(math.isfinite(e) for e in report["epsilon"])
    assert acc.budget.for_group(2).epsilon == 6


def test_begun_ledger_is_shared_with_an_accountant(path):
    begun(path, spent=0.25)
    acc = Accountant(1, ledger=path, population="people")
    assert acc.budget.spent == 0.25
    q = patients().dp.open(accountant=acc)
    q.count(epsilon=0.75)
    assert acc.budget.remaining == 0


def test_budget_of_the_accountant_has_the_shares_that_open_says():
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    p = frame.dp.open(1)
    assert p.budget.queries == p.accountant.budget.queries == DEFAULT_QUERIES
    p = frame.dp.open(queries=30)
    assert p.budget.queries == p.accountant.budget.queries == 30
    assert repr(p.accountant.budget) == repr(p.budget)
    other = pd.DataFrame({"y": [1.0, 2.0]}).dp.open(accountant=p.accountant)
    assert other.budget.queries == DEFAULT_QUERIES  # its own share
    assert p.accountant.budget.queries == 30  # as nobody said another number


def test_default_number_of_shares_is_one_constant():
    assert inspect.signature(dpframe.open).parameters["queries"].default == DEFAULT_QUERIES
    assert Accountant(1).budget.queries == DEFAULT_QUERIES
