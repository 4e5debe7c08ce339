"""Debits that a store in memory writes when they are read: they say what they said when they were made."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pandas as pd
import pytest

from dpframe import Accountant
from dpframe._ledger.store import MemoryStore

QUESTIONS = {
    "count": lambda p: p.count(epsilon=0.5),
    "named": lambda p: p.count(epsilon=0.5, name='all "rows"'),
    "gaussian": lambda p: p.mean("x", epsilon=0.5, mechanism="gaussian"),
    "declared": lambda p: p.mean("x", bounds=(0, 5), epsilon=0.5),
    "groups": lambda p: p.groupby("g", keys=["a", "b"])[["x"]].agg(["count", "mean"], epsilon=0.5),
    "choice": lambda p: p.argmax("g", keys=["a", "b"], epsilon=0.5),
    "median": lambda p: p.median("x", epsilon=0.5),
    "groups that are found": lambda p: p.groupby("g")["x"].mean(epsilon=0.5),
}


def opened():
    accountant = Accountant(epsilon=100, delta=1e-6)
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0] * 300, "g": ["a", "b", "a"] * 300})
    return accountant, frame, frame.dp.open(accountant=accountant, bounds={"x": (0, 9)})


def debits(accountant):
    entries = accountant._store.entries(accountant.population)
    return [json.loads(entry.body) for entry in entries if entry.kind == "debit"]


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_is_written_late_is_what_was_charged(name):
    """Whatever is done with a plan in between; what can be changed in it is written at once."""
    early, _frame, p = opened()
    QUESTIONS[name](p)
    written = debits(early)
    late, _other, q = opened()
    QUESTIONS[name](q)
    for _, record in q._session.answers.values():
        for cell in record.release.plan.cells:
            cell.functionals.clear()
            cell.constants["n"] = 3.0
    assert debits(late) == written != []
    assert debits(late) == written  # once they are written too


def test_a_debit_is_of_the_moment_when_it_was_made():
    _accountant, _frame, p = opened()
    before = datetime.now(UTC)
    p.count(epsilon=0.5)
    after = datetime.now(UTC)
    (when,) = p.ledger["when"]
    assert before <= when <= after
    assert p.ledger["when"].tolist() == [when]


def test_a_debit_that_is_undone_leaves_nothing_behind():
    accountant, _frame, p = opened()
    plan = p.explain.count(epsilon=0.5)
    store, budget = accountant._store, accountant.budget.spent
    kept = store.append
    store.append = lambda *words: (kept(*words), 1 / 0)
    with pytest.raises(ZeroDivisionError):
        p.count(epsilon=0.5)
    store.append = kept
    assert accountant.budget.spent == budget
    assert debits(accountant) == []
    p.mean("x", epsilon=0.25)
    (body,) = debits(accountant)
    assert body["plans"][0]["question"] != plan.question


def test_texts_are_checked_as_before_where_debits_wait():
    store = MemoryStore()
    for body in (5, None, b"{}"):
        with store.transaction(), pytest.raises(Exception, match="made of strings"):
            store.append("people", "debit", body)
    assert store.entries("people") == []
