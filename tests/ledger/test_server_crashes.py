"""A budget on a server, and clients and servers that die: whatever the moment, a debit that was made stays, no answer is without
one, and none is free that was not paid."""

from __future__ import annotations

import signal

import pytest

from dpframe import LedgerError
from dpframe import _ledger as stores_module
from dpframe._ledger import server
from dpframe._session.session import Session
from dpframe.engines.pandas import PandasEngine
from dpframe.mechanisms.noise import LaplaceNoise
from tests.ledger.people import (
    Outcome,
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
from tests.ledger.test_crashes import QUARTER, after, ask, before
from tests.store.link import Link

pytestmark = [posix, pytest.mark.extras]
KILLED = Outcome(-signal.SIGKILL, None)
STORE = server.ServerStore


@pytest.fixture
def name(postgres, tmp_path):
    return f"{tmp_path.parent.name}-{tmp_path.name}"[-60:]


@pytest.fixture
def url(postgres, name):
    return postgres.create(name)


@pytest.fixture(autouse=True)
def new_stores(monkeypatch):
    """Children are forked with whatever this process has open: in some tests with a store of the server."""
    monkeypatch.setattr(stores_module, "_stores", dict(stores_module._stores))


# What a process leaves that dies at this moment of its question: a debit, and an answer.
MOMENTS = {
    "the debit is written, not committed": (after(STORE, "append"), 0, 0),
    "at the commit of the debit": (before(STORE, "_commit"), 0, 0),
    "when the debit is committed": (after(STORE, "_commit"), 1, 0),
    "between debit and data": (before(PandasEngine, "reduce"), 1, 0),
    "when there is an answer": (after(LaplaceNoise, "release"), 1, 0),
    "the answer is written, not committed": (after(STORE, "append", 2), 1, 0),
    "when the answer is on record": (after(STORE, "_commit", 2), 1, 1),
}


@pytest.mark.parametrize("parent", ["new", "has it open"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_client_pays_again_unless_its_answer_is_on_record(url, moment, parent):
    set_up, debited, answered = MOMENTS[moment]
    if parent != "new":
        opened(url, "others", people(seed=9))
    assert outcome(spawn(ask, url, set_up)) == KILLED
    found = kinds(url)
    assert (found["debit"], found["answer"]) == (debited, answered)
    assert total(url) == debited * QUARTER
    spent, spent_now, answer = elsewhere(ask, url)
    assert spent == debited * QUARTER
    assert spent_now == (debited + 1 - answered) * QUARTER
    assert elsewhere(ask, url) == (spent_now, spent_now, answer)
    assert total(url) == spent_now


def test_a_killed_opening_leaves_a_ledger_that_opens(url):
    def work(moment):
        with pytest.MonkeyPatch.context() as patch:
            moment(patch)
            opened(url)

    moments = [
        (before, "_create"),
        (after, "_create"),
        (before, "_verify"),
        (after, "append"),
        (after, "_commit"),
    ]
    for when, method in moments:
        assert outcome(spawn(work, when(STORE, method))) == KILLED
    assert elsewhere(ask, url)[:2] == (0, QUARTER)
    assert kinds(url)["open"] == 1


# A server that goes away in a question ---------------------------------------------------------------------------


def restarting(postgres, owner, name, call=1, late=True):
    """The server crashes and comes back when a call of this begins, or has done its work."""

    def set_up(patch):
        work, calls = getattr(owner, name), iter(range(1, 10**6))

        def replaced(*args, **terms):
            now = next(calls) == call
            if now and not late:
                postgres.restart()
            done = work(*args, **terms)
            if now and late:
                postgres.restart()
            return done

        patch.setattr(owner, name, replaced)

    return set_up


def check_elsewhere(url, answer, on_record):
    """Another process finds an answer that is on record, and pays for one that is not."""
    spent = total(url)
    now, after_it, found = elsewhere(ask, url)
    if on_record:
        assert (now, after_it, found) == (spent, spent, int(answer))
    else:
        assert (now, after_it) == (spent, spent + QUARTER)


# When it goes; the debits and answers on record then, and whether the question is answered all the same.
GOING = {
    "before the debit": (STORE, "transaction", 1, False, 1, 1, True),
    "in the debit": (STORE, "append", 1, True, 0, 0, False),
    "at its commit": (STORE, "_commit", 1, False, 0, 0, False),
    "when the debit is committed": (STORE, "_commit", 1, True, 1, 1, True),
    "between debit and data": (PandasEngine, "reduce", 1, False, 1, 1, True),
    "between data and noise": (PandasEngine, "reduce", 1, True, 1, 1, True),
    "in the record of the answer": (STORE, "append", 2, True, 1, 0, False),
    "at the commit of the answer": (STORE, "_commit", 2, False, 1, 0, False),
    "when the answer is on record": (STORE, "_commit", 2, True, 1, 1, True),
}


@pytest.mark.parametrize("moment", GOING)
def test_a_server_that_goes_away_in_a_question_keeps_what_it_acknowledged(postgres, url, moment):
    owner, method, call, late, debited, answered, told = GOING[moment]
    p, answer = opened(url), None
    with pytest.MonkeyPatch.context() as patch:
        restarting(postgres, owner, method, call, late)(patch)
        if told:
            answer = p.count(epsilon=0.25)
        else:
            with pytest.raises(LedgerError):
                p.count(epsilon=0.25)
    found = kinds(url)
    assert (found["debit"], found["answer"]) == (debited, answered)
    assert used(p) == total(url) == debited * QUARTER
    again = p.count(epsilon=0.25)
    assert answer in (None, again)
    assert used(p) == total(url) == QUARTER  # of an answer that is not on record this session knows
    check_elsewhere(url, again, answered or not debited)


# A COMMIT whose answer is lost -------------------------------------------------------------------------------------

LOST = {"the debit": 1, "the answer": 2}


@pytest.mark.parametrize("which", LOST)
@pytest.mark.parametrize(("cut", "written"), [("before", 0), ("after", 1), ("late", 1)])
def test_a_lost_commit_is_counted_if_it_was_written_and_never_answered(
    postgres, name, url, cut, written, which
):
    link, read = Link(postgres.port), []
    p = opened(f"postgresql://{postgres.user}@127.0.0.1:{link.port}/{name}")
    reduce, commits = PandasEngine.reduce, iter(range(1, 100))
    commit = STORE._commit

    def cutting(*args):
        link.cut = cut if next(commits) == LOST[which] else ""
        return commit(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PandasEngine, "reduce", lambda *a: (read.append(1), reduce(*a))[1])
        patch.setattr(STORE, "_commit", cutting)
        with pytest.raises(LedgerError, match="It is counted if it was written"):
            p.count(epsilon=0.25)
    of_debit = which == "the debit"
    assert read == [] if of_debit else [1]  # on a doubt nothing is read
    debited, answered = (written, 0) if of_debit else (1, written)
    assert used(p) == total(url) == debited * QUARTER
    assert (kinds(url)["debit"], kinds(url)["answer"]) == (debited, answered)
    answer = p.count(epsilon=0.25)
    assert used(p) == total(url) == QUARTER * (1 + of_debit * written)
    check_elsewhere(url, answer, of_debit or answered)
    link.close()


def test_interrupts_at_a_commit_leave_books_that_agree(url):
    p = opened(url)
    for owner, method in ((STORE, "_commit"), (Session, "_keep")):
        for late in (False, True):
            with pytest.MonkeyPatch.context() as patch:
                work = getattr(owner, method)

                def stop(*args, work=work, late=late):
                    if late:
                        work(*args)
                    raise KeyboardInterrupt

                patch.setattr(owner, method, stop)
                with pytest.raises(KeyboardInterrupt):
                    p.count(epsilon=0.0625, fresh=True)
            assert used(p) == total(url)
    assert len(debits(url)) == 3
