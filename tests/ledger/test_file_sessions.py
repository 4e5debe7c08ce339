"""Sessions whose ledger is a file: they go on after a restart, and whatever is wrong with the file answers nothing."""

from __future__ import annotations

import os
import threading
from fractions import Fraction

import pytest

from dpframe import Accountant, BudgetExceeded, NoSession, SessionError
from dpframe._ledger import open_store
from dpframe._ledger.sqlite import FileStore
from tests.ledger.people import (
    begun,
    debits,
    elsewhere,
    kinds,
    opened,
    people,
    posix,
    python,
    total,
    used,
)

# Going on -----------------------------------------------------------------------------------------------------

AGAIN = """
import json, sys
import dpframe
from tests.ledger.people import opened, used
p = opened(sys.argv[1], delta=1e-6, version="2026-11")
before = p.budget.fraction
answers = [
    int(p.count(epsilon=0.1)),
    float(p.query("age > 50").mean("cost")),
    p.groupby("state").agg(n=("age", "size"), cost=("cost", "mean")).to_json(double_precision=15),
    p.histogram("age", bins=5, mechanism="gaussian").tolist(),
    p.argmax("state"),
    float(p.sum("cost", within=20_000)),
    float(p.std("age", name="spread")),
    p.value_counts("state", epsilon=0.01).to_json(),
    p.counts({"old": "age > 80", "dear": "cost > 500"}, epsilon=0.01).tolist(),
]
print(json.dumps(answers))
print(before.hex(), p.budget.fraction.hex(), len(p.ledger), len(p.declarations))
"""


def test_notebook_that_runs_again_in_new_processes_pays_nothing(path):
    first, second = [python(AGAIN, path) for _ in range(2)]
    assert first[0] == second[0]
    (start, spent, debited, declared), later = [run[1].split() for run in (first, second)]
    assert (float.fromhex(start), debited) == (0, "9")
    assert later == [spent, spent, debited, declared]


@posix
def test_budget_goes_on_where_it_was(path):
    for i in range(4):
        assert elsewhere(
            lambda: (p := opened(path), p.count(epsilon=0.25, fresh=True), used(p))[-1]
        ) == (Fraction(i + 1, 4))
    p = opened(path)
    with pytest.raises(
        BudgetExceeded, match=r"requested 0\.25, spent 1, remaining 0, short by 0\.25"
    ):
        p.count(epsilon=0.25, fresh=True)
    assert len(p.ledger) == 4
    assert p.ledger["when"].is_monotonic_increasing


@posix
def test_receipts_of_recorded_answers_are_those_of_the_first_ones(path):
    def work():
        answer = opened(path).groupby("state")["cost"].mean()
        return answer.to_dict(), answer.dp.interval().to_dict("list"), answer.dp.plan.text

    assert elsewhere(work) == elsewhere(work)
    assert len(debits(path)) == 1


OTHER_TERMS = [
    {"epsilon": 2},
    {"epsilon": 0.9999999999999999},
    {"delta": 1e-6},
    {"epsilon": 1, "delta": 1e-6, "accountant": "tight", "reserve": 0},
    {"delta": 1e-6, "accountant": "zcdp"},
]


@posix
@pytest.mark.parametrize("terms", OTHER_TERMS)
def test_other_limits_than_the_recorded_ones_are_refused(path, terms):
    begun(path, spent=0.25)
    before = kinds(path)
    with pytest.raises(
        SessionError, match="opened with other terms: epsilon 1, delta 0, accountant 'pure'"
    ):
        opened(path, **terms)
    with pytest.raises(SessionError, match="other terms"):
        opened(path, because="we would like to", **terms)
    assert kinds(path) == before
    assert used(opened(path)) == Fraction(1, 4)


@posix
def test_words_that_are_no_limits_may_change(path):
    """Bounds, keys and the number of shares are of the session; the budget is the population's."""
    begun(path, spent=0.25)
    p = people().dp.open(1, ledger=path, population="people", queries=5, bounds={"age": (18, 90)})
    assert used(p) == Fraction(1, 4)
    assert p.budget.share == 0.2


@posix
def test_relation_of_the_population_is_kept(path):
    begun(path)
    before = kinds(path)
    with pytest.raises(SessionError, match="neighbors='add-remove'"):
        opened(path, neighbors="replace-one")
    assert kinds(path) == before


def test_two_populations_of_one_file_have_two_budgets(path):
    p = opened(path, "people")
    q = opened(path, "others", people(seed=1), epsilon=2)
    p.count(epsilon=0.5)
    q.count(epsilon=2)
    assert (used(p), used(q)) == (Fraction(1, 2), 2)
    assert opened(path, "third", people(seed=2), epsilon=5).budget.epsilon == 5


def test_relative_and_absolute_names_and_links_are_one_budget(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = opened("budget.db")
    (tmp_path / "link.db").symlink_to(tmp_path / "budget.db")
    for i, name in enumerate(("./budget.db", tmp_path / "budget.db", "link.db")):
        q = opened(name, version=f"v{i}")
        q.count(epsilon=0.25)
        assert q.accountant == first.accountant
    assert used(first) == Fraction(3, 4)


def test_same_words_return_the_open_session_and_others_are_refused(path):
    frame = people()
    p = opened(path, frame=frame)
    assert opened(path, frame=frame)._session is p._session
    for words in ({"population": "twins"}, {"path": path + "2"}, {"version": "2"}):
        with pytest.raises(SessionError):
            opened(**{"path": path, "frame": frame, **words})
    assert FileStore(path).populations() == ["people"]


def test_texts_say_where_the_budget_is_kept(path):
    p = opened(path)
    for text in (repr(p), p._repr_html_()):
        assert "ends with the process" not in text
        assert path in text
    assert path in repr(p.accountant)


def test_closed_session_of_a_file_goes_on_when_it_is_opened_again(path):
    frame = people()
    p = opened(path, frame=frame)
    p.count(epsilon=0.25)
    p.close()
    with pytest.raises(SessionError, match="Its budget goes on"):
        p.count(epsilon=0.25)
    assert used(opened(path, frame=frame)) == Fraction(1, 4)


# Frames that travel -------------------------------------------------------------------------------------------

READ = """
import sys
import pandas as pd
import dpframe
from dpframe import NoSession, SessionError
from tests.ledger.people import BOUNDS, KEYS, used
kind, file, ledger = sys.argv[1:]
frame = getattr(pd, f"read_{kind}")(file)
def refused(work):
    try:
        work()
    except (NoSession, SessionError) as error:
        print(type(error).__name__, f"ledger={ledger!r}, population='people'" in str(error))
refused(lambda: frame.dp.count())
refused(lambda: frame["age"].dp.mean())
refused(lambda: frame.head(5).dp.count())
refused(lambda: dpframe.private(frame))
refused(lambda: frame.dp.open(1))
refused(lambda: frame.dp.open(1, ledger=ledger, population="another"))
refused(lambda: frame.dp.open(1, ledger=ledger + "2", population="people"))
print(f"population='people'" in repr(frame.dp))
p = frame.dp.open(1, ledger=ledger, population="people", bounds=BOUNDS, keys=KEYS)
print(used(p), int(p.count(epsilon=0.5)), used(p), frame.dp._session is p._session)
"""


@pytest.mark.parametrize("kind", ["pickle", "parquet"])
def test_frame_from_a_file_says_which_ledger_to_open_and_opens_it(path, tmp_path, kind):
    frame, file = people(), tmp_path / f"frame.{kind}"
    p = opened(path, frame=frame)
    answer = p.count(epsilon=0.5)
    getattr(frame, f"to_{kind}")(file)
    told = python(READ, kind, file, path)
    assert told[:-2] == ["NoSession True"] * 7
    assert told[-2:] == ["True", f"1/2 {int(answer)} 1/2 True"]
    assert not os.path.exists(path + "2")


RELATIVE = """
import sys
import pandas as pd
from dpframe import DPError
for ledger in sys.argv[1:]:
    frame = pd.read_pickle("../frame.pkl")
    try:
        frame.dp.open(1, ledger=ledger, population="people")
        print("opened")
    except DPError as error:
        print(type(error).__name__)
"""


def test_relative_name_of_a_ledger_means_the_same_file_everywhere(tmp_path, monkeypatch):
    """A frame that travels must not get a new budget because its reader stands in another directory."""
    (tmp_path / "deeper").mkdir()
    monkeypatch.chdir(tmp_path)
    frame = people()
    opened("budget.db", frame=frame)
    frame.to_pickle("frame.pkl")
    names = "budget.db", "../budget.db", tmp_path / "budget.db"
    assert python(RELATIVE, *names, folder=tmp_path / "deeper") == ["NoSession", "opened", "opened"]
    assert os.listdir(tmp_path / "deeper") == []


@pytest.mark.parametrize("attrs", ["kept", "lost"])
def test_another_directory_gives_no_second_budget(tmp_path, monkeypatch, attrs):
    frame = people()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "a")
    opened("budget.db", frame=frame).count(epsilon=1)
    monkeypatch.chdir(tmp_path / "b")
    if attrs == "lost":
        frame.attrs.clear()
    with pytest.raises(SessionError):
        opened("budget.db", frame=frame)
    assert os.listdir(tmp_path / "b") == []


# Copies of the process ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_a_batch_is_charged_whole_when_its_file_is_opened_again(tmp_path, delta):
    """One debit on record holds several plans: all of them count for whoever reads it."""
    path = tmp_path / "ledger.db"
    p = opened(path, epsilon=1, delta=delta)
    with p.plan_ahead() as batch:
        batch.count()
        batch.sum("age")
    spent = p.budget.fraction
    p.close()
    assert opened(path, epsilon=1, delta=delta).budget.fraction == spent
    assert spent >= 0.05
    assert delta or spent == 0.1


def test_debits_on_record_that_do_not_fit_end_the_budget(tmp_path):
    """Another machine may have rounded otherwise: what it has admitted is spent, and nothing comes after it."""
    path = tmp_path / "ledger.db"
    p = opened(path, epsilon=1)
    p.count(epsilon=0.75)
    store = open_store(path)
    (debit,) = [e for e in store.entries("people") if e.kind == "debit"]
    with store.transaction():
        store.append("people", "debit", debit.body)  # now 1.5 of 1
    p.close()
    again = opened(path, epsilon=1)
    assert again.budget.fraction == 1
    with pytest.raises(BudgetExceeded):
        again.count(epsilon=0.01)
    assert len(again.ledger) == 2


@posix
def test_forked_child_has_no_budget_of_its_own(path):
    frame = people()
    p = opened(path, frame=frame)
    uses = (
        lambda: p.count(epsilon=0.25),
        lambda: frame.dp.count(epsilon=0.25),
        lambda: opened(path, frame=frame),
        lambda: p["age"].mean(),
    )

    def work():
        for use in uses:
            with pytest.raises(SessionError, match="forked copy"):
                use()
        return True

    assert elsewhere(work)
    p.count(epsilon=0.25)
    assert (used(p), total(path)) == (Fraction(1, 4), Fraction(1, 4))


@posix
def test_child_that_is_forked_while_another_thread_asks_is_refused_too(path):
    p, stop = opened(path, epsilon=100), threading.Event()

    def spend():
        while not stop.is_set():
            p.count(epsilon=0.01, fresh=True)

    def refused():
        with pytest.raises(SessionError, match="forked copy"):
            p.count(epsilon=0.01)
        return True

    thread = threading.Thread(target=spend)
    thread.start()
    try:
        assert all(elsewhere(refused) for _ in range(10))
    finally:
        stop.set()
        thread.join()
    assert used(p) == total(path)


def test_ledger_of_a_session_is_that_of_an_accountant_with_its_words(path):
    p = opened(path)
    acc = Accountant(1, ledger=path, population="people")
    p.count(epsilon=0.5)
    assert (acc.budget.spent, len(acc.ledger), acc == p.accountant) == (0.5, 1, True)
    with pytest.raises(NoSession):
        people().dp.count()
