"""Races for one budget, among threads and processes: it is spent exactly, and every answer has its debit."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

from dpframe import Accountant, BudgetExceeded, SessionError
from dpframe.engines.pandas import PandasEngine
from tests.ledger.people import (
    BOUNDS,
    KEYS,
    debits,
    elsewhere,
    kinds,
    opened,
    outcome,
    people,
    posix,
    spawn,
    total,
    used,
)

ASK = {
    "count": lambda p, e: p.count(epsilon=e, mechanism="laplace", fresh=True),
    "sum": lambda p, e: p.sum("age", epsilon=e, mechanism="laplace", fresh=True),
    "share": lambda p, _: p.count(fresh=True),
}


def in_threads(work, number=8):
    """What so many threads return that start together; their errors are the test's."""
    gate = threading.Barrier(number)

    def run(i):
        gate.wait()
        return work(i)

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(run, range(number)))


def until_refused(p, verb, price):
    """Answers until the budget is gone."""
    answers = []
    while True:
        try:
            answers.append(float(ASK[verb](p, price)))
        except BudgetExceeded:
            return answers


def racer(path, threads, verb, price, terms):
    """One process of the race: its answers, and how often it asked."""
    p = opened(path, **terms)
    found = in_threads(lambda _: until_refused(p, verb, price), threads)
    answers = [answer for one in found for answer in one]
    return answers, len(answers) + threads


def race(path, processes, threads, verb, price, **terms):
    children = [spawn(racer, path, threads, verb, price, terms) for _ in range(processes)]
    results = [outcome(child) for child in children]
    assert [r.status for r in results] == [0] * processes
    return [a for r in results for a in r.answer[0]], sum(r.answer[1] for r in results)


def check_books(path, answers):
    found = kinds(path)
    assert found["debit"] == found["answer"] == len(answers) == len(debits(path))
    assert found["open"] == 1
    # New noise for every debit: Laplace of scale 100 and more falls on one integer 1 in 200 times.
    assert len(set(answers)) > len(answers) / 3


@posix
@pytest.mark.slow(but=1)
@pytest.mark.parametrize("verb", ["count", "sum"])
def test_processes_and_threads_spend_a_pure_budget_exactly(path, full, verb):
    fit = 1100 if full else {"count": 100, "sum": 20}[verb]
    price = Fraction(1, fit)
    answers, attempts = race(path, 8, 8, verb, price)
    assert len(answers) == fit
    assert attempts == fit + 64
    assert total(path) == 1
    assert all(Fraction(d[0]["loss"]["epsilon"]) == price for d in debits(path))
    check_books(path, answers)


@posix
@pytest.mark.parametrize("price", [0.3, 0.07])
def test_rest_that_is_smaller_than_the_price_stays(path, price):
    answers, _ = race(path, 4, 4, "count", price)
    assert len(answers) == 1 // Fraction(str(price))
    assert total(path) == len(answers) * Fraction(str(price))


def alone(verb, price, **terms):
    """How many one process would be admitted by itself, in memory."""
    p = people().dp.open(1, 1e-6, bounds=BOUNDS, keys=KEYS, **terms)
    return len(until_refused(p, verb, price))


@posix
@pytest.mark.slow(but=1)
@pytest.mark.parametrize("accountant", ["tight", "zcdp", "rdp", "gdp", "advanced"])
def test_processes_and_threads_are_admitted_what_one_alone_would_be(path, full, accountant):
    price = 0.02 if full or accountant == "tight" else 0.06
    terms = {"accountant": accountant, "reserve": 0}
    expected = alone("count", price, **terms)
    answers, _ = race(path, 8 if full else 3, 8, "count", price, delta=1e-6, **terms)
    assert len(answers) == expected > 5
    if accountant == "tight":  # more than the 50 of the plain sum: the residue of the notes
        assert expected >= 138
    check_books(path, answers)
    one = Accountant(1, 1e-6, accountant, reserve=0, ledger=path, population="people")
    assert one.budget.fraction <= 1


@posix
@pytest.mark.parametrize("accountant", ["tight", "pure", "zcdp"])
def test_twenty_shares_are_admitted_however_they_race(path, accountant):
    answers, _ = race(path, 3, 3, "share", None, delta=1e-6, accountant=accountant)
    assert len(answers) == 20


@posix
def test_processes_that_open_at_once_agree_on_one_ledger(path):
    def work(i):
        try:
            opened(path, epsilon=1 + i % 2)
        except SessionError as error:
            return "refused" if "other terms" in str(error) else "wrongly"
        return i % 2

    children = [spawn(work, i) for i in range(8)]
    found = [outcome(child).answer for child in children]
    assert found.count("refused") == 4
    assert len(set(found)) == 2
    assert (kinds(path)["open"], kinds(path)["unit"]) == (1, 1)


@posix
def test_question_of_several_processes_is_paid_until_an_answer_is_there(
    path,
):
    """Nobody waits for another's answer: what was not on record is paid. No answer is without its debit."""

    def work():
        p = opened(path)
        return [int(p.count(epsilon=0.1)) for _ in range(5)]

    found = [outcome(child).answer for child in [spawn(work) for _ in range(4)]]
    assert all(len(set(answers)) == 1 for answers in found)
    assert len({answers[0] for answers in found}) <= len(debits(path)) <= 4
    assert kinds(path)["answer"] == len(debits(path))
    assert len(set(elsewhere(work))) == 1
    assert len(debits(path)) <= 4


# Threads of one process ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["memory", "file"])
def test_threads_on_one_session_spend_exactly_the_budget(path, where):
    frame = people()
    p = opened(path, frame=frame) if where == "file" else frame.dp.open(1)
    found = in_threads(lambda _: until_refused(p, "count", Fraction(1, 50)))
    assert sum(map(len, found)) == 50
    assert used(p) == 1
    assert len(p.ledger) == 50
    assert len(p.accountant.budget.charges) == 50


@pytest.mark.parametrize("where", ["memory", "file"])
def test_threads_with_one_accountant_spend_exactly_the_budget(path, where):
    words = {"ledger": path, "population": "people"} if where == "file" else {}
    acc = Accountant(1, **words)
    sessions = [
        people().dp.open(accountant=acc),
        people(seed=3)[["age"]].copy().dp.open(accountant=acc, bounds={"age": (0, 110)}),
    ]
    found = in_threads(
        lambda i: until_refused(sessions[i % 2], ["count", "sum"][i % 2], Fraction(1, 60))
    )
    assert sum(map(len, found)) == 60
    assert [used(p) for p in sessions] == [1, 1]
    assert len(acc.ledger) == 60


@pytest.mark.parametrize("where", ["memory", "file"])
def test_two_accountants_of_one_population_are_one_budget_among_threads(path, where):
    words = {"ledger": path} if where == "file" else {}
    sessions = [
        frame.dp.open(
            accountant=Accountant(1, population=f"the same {path}", **words), version=version
        )
        for frame, version in ((people(), "a"), (people(), "b"))
    ]
    assert sessions[0].accountant is not sessions[1].accountant
    found = in_threads(lambda i: until_refused(sessions[i % 2], "count", Fraction(1, 40)))
    assert sum(map(len, found)) == 40
    assert [used(p) for p in sessions] == [1, 1]


def test_threads_that_ask_the_same_pay_once(path):
    p = opened(path)
    answers = in_threads(lambda _: int(p.count(epsilon=0.25)))
    assert len(set(answers)) == 1
    assert len(p.ledger) == 1


def test_threads_that_open_one_frame_find_one_session(path):
    frame = people()
    assert len(set(in_threads(lambda _: opened(path, frame=frame)._session))) == 1
    assert kinds(path)["open"] == 1


def test_threads_read_the_books_while_others_spend(path):
    p, seen = opened(path), []

    def work(i):
        if i % 2:
            return until_refused(p, "count", Fraction(1, 40))
        while p.budget.remaining:
            seen.append((p.budget.fraction, len(p.ledger), p.budget.spent))
        return []

    assert sum(map(len, in_threads(work, 6))) == 40
    assert all(0 <= fraction <= 1 and rows <= 40 for fraction, rows, _ in seen)


def test_data_is_read_by_one_thread_at_a_time_and_after_its_debit(path, monkeypatch):
    p, inside, seen = opened(path), [], []
    reduce = PandasEngine.reduce

    def watched(*args):
        inside.append(1)
        seen.append((len(inside), len(debits(path))))
        found = reduce(*args)
        inside.pop()
        return found

    monkeypatch.setattr(PandasEngine, "reduce", watched)
    in_threads(lambda _: p.count(epsilon=0.01, fresh=True))
    assert seen == [(1, i + 1) for i in range(8)]


def test_second_frame_of_another_process_spends_the_same_budget(path):
    def other():
        q = opened(
            path, frame=people(seed=5)[["cost"]].copy(), bounds={"cost": (0, 1000)}, keys=None
        )
        return len(until_refused(q, "count", Fraction(1, 10)))

    p = opened(path)
    p.count(epsilon=0.35)
    assert elsewhere(other) == 6
    assert used(p) == Fraction(95, 100)
    with pytest.raises(BudgetExceeded, match=r"largest epsilon that still fits is 0\.05"):
        p.count(epsilon=0.1)
