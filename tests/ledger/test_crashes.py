"""Processes that die: whatever the moment, a debit that was made stays, and no answer is without one."""

from __future__ import annotations

import os
import random
import signal
import time
from fractions import Fraction

import numpy as np
import pytest

from dpframe import Accountant, BudgetExceeded, DataError
from dpframe._ledger import accountant as ledger
from dpframe._ledger import sqlite as store
from dpframe._session import opening
from dpframe._session.session import Session
from dpframe.engines.pandas import PandasEngine
from dpframe.mechanisms.noise import LaplaceNoise
from tests.ledger.people import (
    Outcome,
    debits,
    die,
    elsewhere,
    kinds,
    opened,
    outcome,
    posix,
    spawn,
    total,
    used,
)

pytestmark = posix
KILLED = Outcome(-signal.SIGKILL, None)
QUARTER = Fraction(1, 4)


def before(owner, name):
    """Die, or fail with an error, when this is called."""
    return lambda patch, end=die: patch.setattr(owner, name, end)


def after(owner, name, call=1):
    """Die, or fail, when a call of this has done its work."""

    def set_up(patch, end=die):
        work, calls = getattr(owner, name), iter(range(1, 10**6))

        def replaced(*args, **terms):
            done = work(*args, **terms)
            return end() if next(calls) == call else done

        patch.setattr(owner, name, replaced)

    return set_up


def ask(path, moment=None):
    """A question in a process that may die at some moment of it: what was spent before and after, and the answer."""
    p = opened(path)
    spent = used(p)
    with pytest.MonkeyPatch.context() as patch:
        if moment is not None:
            moment(patch)
        answer = p.count(epsilon=0.25)
    return spent, used(p), int(answer)


# What a process leaves that dies at this moment of its question: a debit, and an answer.
MOMENTS = {
    "before the debit": (before(Accountant, "debit"), 0, 0),
    "the debit is written, not committed": (after(store.FileStore, "append"), 0, 0),
    "at the commit of the debit": (before(store.FileStore, "_commit"), 0, 0),
    "when the debit is committed": (after(store.FileStore, "_commit"), 1, 0),
    "between debit and data": (before(PandasEngine, "reduce"), 1, 0),
    "between data and noise": (after(PandasEngine, "reduce"), 1, 0),
    "when there is an answer": (after(LaplaceNoise, "release"), 1, 0),
    "before the answer is on record": (before(Accountant, "record"), 1, 0),
    "the answer is written, not committed": (after(store.FileStore, "append", 2), 1, 0),
    "when the answer is on record": (after(Accountant, "record"), 1, 1),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_question_is_paid_again_unless_its_answer_is_on_record(path, moment):
    set_up, debited, answered = MOMENTS[moment]
    assert outcome(spawn(ask, path, set_up)) == KILLED
    found = kinds(path)
    assert (found["debit"], found["answer"]) == (debited, answered)
    assert total(path) == debited * QUARTER
    spent, spent_now, answer = elsewhere(ask, path)
    assert spent == debited * QUARTER
    assert spent_now == (debited + 1 - answered) * QUARTER
    assert elsewhere(ask, path) == (spent_now, spent_now, answer)
    assert total(path) == spent_now
    assert kinds(path)["answer"] == 1


def test_batch_that_dies_half_way_is_charged_whole_and_its_answers_free(path):
    def work(moment):
        p = opened(path)
        with pytest.MonkeyPatch.context() as patch:
            moment(patch)
            with p.plan_ahead() as batch:
                batch.count(epsilon=0.25)
                batch.sum("age", epsilon=0.25)

    assert outcome(spawn(work, after(Accountant, "record"))) == KILLED
    assert [len(plans) for plans in debits(path)] == [2]
    assert total(path) == 2 * QUARTER

    def go_on():
        p = opened(path)
        first = used(p)
        p.count(epsilon=0.25)
        second = used(p)
        p.sum("age", epsilon=0.25)
        return first, second, used(p)

    assert elsewhere(go_on) == (2 * QUARTER, 2 * QUARTER, 3 * QUARTER)


OPENINGS = {
    "before there is a file": before(store.FileStore, "_create"),
    "before the file has its name": before(os, "link"),
    "when it has it": after(os, "link"),
    "when the accountant is made": after(ledger, "open_store"),
    "before the terms are written": before(Accountant, "attach"),
    "the terms are written, not committed": after(store.FileStore, "append"),
    "when the terms are committed": after(store.FileStore, "_commit"),
    "before the declarations": before(opening, "_declare"),
    "when all is written": after(opening, "_declare"),
}


@pytest.mark.parametrize("moment", OPENINGS)
def test_killed_opening_leaves_a_ledger_that_opens(path, moment):
    def work():
        with pytest.MonkeyPatch.context() as patch:
            OPENINGS[moment](patch)
            opened(path)

    assert outcome(spawn(work)) == KILLED
    assert elsewhere(ask, path)[:2] == (0, QUARTER)
    assert elsewhere(ask, path)[:2] == (QUARTER, QUARTER)
    found = kinds(path)
    assert (found["open"], found["unit"], found["sketch"], found["debit"]) == (1, 1, 1, 1)


def spend(path, tell, rounds=10**6):
    """Ask until the budget is gone, and tell of every answer as soon as it is there."""
    p = opened(path, epsilon=2)
    for _ in range(rounds):
        try:
            answer = p.count(epsilon=0.01, fresh=True)
        except BudgetExceeded:
            return
        os.write(tell, np.int64(answer).tobytes())


@pytest.mark.scaled
def test_killed_processes_never_answer_more_than_they_paid(path, full):
    """Kills from outside, one process after the other, until the budget is gone or patience is."""
    draw, answers, kills = random.Random(7), 0, 0
    elsewhere(spend, path, os.open(os.devnull, os.O_WRONLY), 1)
    for _ in range(150 if full else 12):
        reader, writer = os.pipe()
        child = spawn(spend, path, writer)
        os.close(writer)
        with os.fdopen(reader, "rb", buffering=0) as pipe:
            # Half of them while they open, half once they answer, however slow the machine is.
            first = pipe.read(8) if draw.random() < 0.5 else b""
            time.sleep(draw.uniform(0.005, 0.1))
            os.kill(child[0], signal.SIGKILL)
            answers += len(first + pipe.read()) // 8
        kills += outcome(child).status == -signal.SIGKILL
        assert answers < len(debits(path))  # the first answer was told to nobody
        assert total(path) == Fraction(len(debits(path)), 100) <= 2
        assert kinds(path)["answer"] <= len(debits(path))
    assert kills > 5
    assert elsewhere(lambda: used(opened(path, epsilon=2))) == total(path)
    assert answers > 0


# Errors and interrupts that the process survives -------------------------------------------------------------


class Interrupted(BaseException):
    """Neither an Exception nor an exit: whatever a signal handler may raise."""


ERRORS = [KeyboardInterrupt, MemoryError]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_interrupted_question_keeps_books_that_agree_with_the_file(path, moment, error):
    def fail(*_, **__):
        raise error

    set_up, debited, _ = MOMENTS[moment]
    p = opened(path)
    with pytest.MonkeyPatch.context() as patch:
        set_up(patch, fail)
        # The store takes a MemoryError of SQLite for damage of the file, and the door tells nothing of one behind it.
        with pytest.raises((error, *dpframe_errors(error))):
            p.count(epsilon=0.25)
    assert total(path) == debited * QUARTER
    assert used(p) == debited * QUARTER
    assert len(p.ledger) == debited
    other = Accountant(1, ledger=path, population="people")
    assert other.budget.spent == debited / 4
    answer = p.count(epsilon=0.25)
    assert used(p) == total(path)
    assert debited * QUARTER <= used(p) <= (debited + 1) * QUARTER
    assert p.count(epsilon=0.25) == answer
    p.count(epsilon=1 - used(p), fresh=True)
    assert total(path) == 1 == used(p)
    with pytest.raises(BudgetExceeded):
        p.count(epsilon=2**-20, fresh=True)


def dpframe_errors(error):
    return (store.LedgerError, DataError) if error is MemoryError else ()


@pytest.mark.parametrize("error", [*ERRORS, Interrupted, SystemExit])
def test_interrupt_within_a_debit_may_count_twice_and_never_not_at_all(path, error):
    """The commit is done, and the accountant has not yet counted it."""

    class List(list):
        def append(self, charge):
            raise error

    p = opened(path)
    p.accountant._charges = List(p.accountant._charges)
    with pytest.raises(error):
        p.count(epsilon=0.25)
    p.accountant._charges = list(p.accountant._charges)
    assert total(path) == QUARTER
    assert used(p) >= QUARTER
    assert Accountant(1, ledger=path, population="people").budget.spent == 0.25


def test_session_is_usable_after_an_interrupt_in_the_middle(path):
    p = opened(path)
    with pytest.MonkeyPatch.context() as patch:
        before(Session, "_keep")(patch, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            p.count(epsilon=0.25)
    p.count(epsilon=0.25)
    assert used(p) == 2 * QUARTER == total(path)


def test_what_cannot_be_written_is_not_answered(path):
    """The disk refuses the debit: no answer. It refuses the answer: the debit stays, and nothing is told."""

    def full_disk(*_):
        raise store.LedgerError("the disk is full")

    p, read = opened(path), []
    reduce = PandasEngine.reduce
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PandasEngine, "reduce", lambda *a: (read.append(1), reduce(*a))[1])
        with pytest.MonkeyPatch.context() as inner:
            before(store.FileStore, "_commit")(inner, full_disk)
            with pytest.raises(store.LedgerError):
                p.count(epsilon=0.25)
        assert (read, used(p), total(path)) == ([], 0, 0)
        before(Accountant, "record")(patch, full_disk)
        with pytest.raises(store.LedgerError):
            p.count(epsilon=0.25)
    assert (read, used(p), total(path)) == ([1], QUARTER, QUARTER)
