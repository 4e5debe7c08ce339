"""The session: one budget a frame, exact to the last debit, and nothing that pandas does makes it two."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor, wait
from fractions import Fraction

import pandas as pd
import pytest

import dpframe
from dpframe import (
    BadType,
    BadValue,
    BudgetExceeded,
    LineageError,
    NoSession,
    Refused,
    SessionError,
)
from dpframe.engines.pandas import PandasEngine
from dpframe.mechanisms.noise import LaplaceNoise
from tests.visits import BOUNDS, KEYS, used

# Exact arithmetic of the budget ------------------------------------------------------------------------------


def test_ten_tenths_fill_one_and_the_eleventh_changes_nothing(df):
    p = df.dp.open(1)
    for _ in range(10):
        p.count(epsilon=0.1, fresh=True)
    assert used(p) == 1
    before, declared = p.ledger, p.declarations
    with pytest.raises(
        BudgetExceeded, match=r"requested 0\.1, spent 1, remaining 0, short by 0\.1"
    ):
        p.count(epsilon=0.1, fresh=True)
    pd.testing.assert_frame_equal(p.ledger, before)
    pd.testing.assert_frame_equal(p.declarations, declared)
    assert used(p) == 1


def test_three_tenths_fit_three_tenths(df):
    p = df.dp.open(0.3)
    for _ in range(3):
        p.count(epsilon=0.1, fresh=True)
    assert p.budget.remaining == 0


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0), (0.7, 0), (3, 1e-6), (1 / 3, 1e-9)])
@pytest.mark.parametrize("queries", [20, 7])
def test_default_shares_fit_exactly_whatever_they_ask(df, epsilon, delta, queries):
    p = df.dp.open(epsilon, delta, queries=queries, bounds=BOUNDS, keys=KEYS)
    for i in range(queries):
        [p.count, lambda fresh: p.mean("age", fresh=fresh), p.groupby("state").size][i % 3](
            fresh=True
        )
    assert p.budget.fraction == pytest.approx(1, abs=1e-6)
    with pytest.raises(BudgetExceeded):
        p.count(fresh=True)


def test_refusal_names_the_largest_price_that_fits(df):
    p = df.dp.open(1)
    p.count(epsilon=0.75)
    with pytest.raises(BudgetExceeded, match=r"largest epsilon that still fits is 0\.25"):
        p.count(epsilon=0.5)
    p.count(epsilon=0.25)
    assert p.budget.remaining == 0


def test_refusal_of_a_session_with_delta_names_the_page_on_accountants(df):
    p = df.dp.open(3, 1e-6)
    p.count(epsilon=0.1, mechanism="gaussian")
    with pytest.raises(BudgetExceeded, match=r"short by 1\..*choose-an-accountant\.md"):
        p.count(epsilon=2.98, mechanism="laplace")  # with the first, more than 3


def test_answers_released_stay_free_when_the_budget_is_gone(df):
    p = df.dp.open(1)
    answer = p.count(epsilon=1)
    assert p.count(epsilon=1) == answer


def test_delta_is_spent_only_by_what_needs_it(df):
    p = df.dp.open(1, 1e-6, accountant="pure")
    p.count(epsilon=0.5)
    assert p.budget.spent_delta == 0
    p.count(epsilon=0.4, delta=1e-7, mechanism="gaussian")
    assert p.budget.rule.delta_spent(p.budget.state) == Fraction(1, 10**7)
    with pytest.raises(BudgetExceeded, match="delta requested"):
        p.count(epsilon=0.05, delta=1e-6, mechanism="gaussian")
    assert p.ledger["mechanism"].tolist() == ["laplace", "gaussian"]


def test_interrupted_question_stays_charged_and_is_not_remembered(df, monkeypatch):
    p = df.dp.open(1)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LaplaceNoise, "release", interrupted)
        with pytest.raises(KeyboardInterrupt):
            p.count(epsilon=0.5)
    assert used(p) == Fraction(1, 2)
    p.count(epsilon=0.5)
    assert used(p) == 1


def test_question_inside_a_question_of_the_same_thread_is_refused(df, monkeypatch):
    p = df.dp.open(1)
    reduce = PandasEngine.reduce

    def asking(*args):
        with pytest.raises(SessionError, match="in the middle"):
            p.count(epsilon=0.1)
        return reduce(*args)

    monkeypatch.setattr(PandasEngine, "reduce", asking)
    p.count(epsilon=0.2)
    monkeypatch.undo()
    p.count(epsilon=0.8)
    assert used(p) == 1
    assert len(p.ledger) == 2


def test_debit_is_in_the_ledger_before_the_data_is_read(df, monkeypatch):
    p, seen = df.dp.open(1), []
    reduce = PandasEngine.reduce
    monkeypatch.setattr(
        PandasEngine, "reduce", lambda *a: (seen.append(len(p.ledger)), reduce(*a))[1]
    )
    p.count()
    assert seen == [1]


def test_eight_threads_get_exactly_what_the_budget_holds(df):
    p = df.dp.open(1)

    def ask(_):
        try:
            return p.count(epsilon=0.25, fresh=True)
        except BudgetExceeded:
            return None

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert sum(a is not None for a in answers) == 4
    assert used(p) == 1
    assert len(p.ledger) == 4


def test_threads_that_open_the_same_frame_find_one_session(df):
    gate = threading.Barrier(8)

    def open_it(_):
        gate.wait()
        return df.dp.open(1)._session

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(open_it, range(8)))) == 1


# Opening, and opening again -----------------------------------------------------------------------------------


def test_same_words_return_the_session_that_is_there(df):
    p = df.dp.open(1, bounds=BOUNDS, keys=KEYS)
    p.count(epsilon=0.5)
    for again in (
        df.dp.open(1.0, bounds=BOUNDS, keys=KEYS),
        df.dp.open("1" and 1, 0, bounds=BOUNDS, keys=KEYS),
    ):
        assert again._session is p._session
        assert used(again) == Fraction(1, 2)


SAME_PEOPLE = {
    "the frame itself": lambda d: d,
    "some columns": lambda d: d[["age"]],
    "one column as a frame": lambda d: d["age"].to_frame(),
    "other names": lambda d: d.rename(columns={"age": "years"}),
    "a shallow copy": lambda d: d.copy(deep=False),
    "a deep copy": lambda d: d.copy(),
    "a frame of the frame": lambda d: pd.DataFrame(d),
    "a frame with a column more": lambda d: d.assign(one=1),
    "columns of it in another frame": lambda d: pd.DataFrame({"other": d["age"]}),
    "edited cells": lambda d: d.mask(d["age"] > 40),
}


@pytest.mark.parametrize("made", SAME_PEOPLE)
def test_second_budget_on_the_same_people_is_refused_without_attrs_too(df, made):
    df.dp.open(1)
    other = SAME_PEOPLE[made](df)
    other.attrs.clear()
    with pytest.raises(SessionError, match="because="):
        other.dp.open(1)


def test_rows_without_columns_are_people_too():
    frame = pd.DataFrame(index=range(5))
    frame.dp.open(1)
    frame.attrs.clear()
    with pytest.raises(SessionError):
        frame.dp.open(1)


@pytest.mark.parametrize(
    "other",
    [lambda d: d, lambda d: d.query("age > 40"), lambda d: pd.DataFrame(d)],
    ids=["itself", "derived", "without attrs"],
)
def test_second_budget_that_is_declared_is_written_in_the_ledger(df, other):
    first = df.dp.open(1)
    first.count()
    frame = other(df)
    second = frame.dp.open(2, because="the committee agreed on 12 May")
    assert second._session is not first._session
    assert (used(first), used(second)) == (Fraction(1, 20), 0)
    row = second.declarations.iloc[-1]
    assert (row["what"], row["value"]) == ("second budget", "the committee agreed on 12 May")
    again = frame.dp.open(2, because="the committee agreed on 12 May")
    assert again._session is second._session


def test_a_frame_made_of_another_may_have_columns_of_its_own_with_a_reason(df):
    reason = "the committee agreed on 12 May"
    p = df.dp.open(2, because=reason, bounds={"age": (0, 110)})
    made = df.assign(late=df["age"] + 1)
    with pytest.raises(LineageError, match="derived by pandas"):
        made.dp.open(2, bounds={"late": (0, 111)})
    q = made.dp.open(2, because=reason, bounds={"late": (0, 111)})
    assert q.count(epsilon=1) is not None
    assert p.budget.spent == 0
    copy = df.copy()
    assert (
        copy.dp.open(2, because=reason, bounds={"age": (0, 110)}).budget.spent == 0
    )  # goes on: the same rows
    other = df.head(3).dp.open(2, because=reason, bounds={"age": (0, 110)})
    other.count(epsilon=1)
    assert p.budget.spent == 0


@pytest.mark.parametrize("because", ["", "  ", 1, True])
def test_reason_must_be_a_sentence(df, because):
    with pytest.raises(BadType, match="sentence"):
        df.dp.open(1, because=because)
    assert "dpframe" not in df.attrs


@pytest.mark.parametrize("words", [{"max_rows": 2}, {"max_groups": 2}])
def test_limits_without_a_person_are_refused(df, words):
    with pytest.raises(BadValue, match="need unit="):
        df.dp.open(1, **words)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ({"epsilon": 0}, ValueError),
        ({"epsilon": "1"}, TypeError),
        ({"epsilon": True}, TypeError),
        ({"epsilon": float("nan")}, ValueError),
        ({"epsilon": 1, "delta": 1}, ValueError),
        ({"epsilon": 1, "delta": -1e-9}, ValueError),
        ({"epsilon": 1, "queries": 0}, ValueError),
        ({"epsilon": 1, "queries": 2.5}, TypeError),
        ({"epsilon": 1, "neighbors": "rows"}, ValueError),
        ({"epsilon": 1, "bounds": {"agee": (0, 1)}}, KeyError),
        ({"epsilon": 1, "bounds": {"state": (0, 1)}}, TypeError),
        ({"epsilon": 1, "bounds": [("age", (0, 1))]}, TypeError),
        ({"epsilon": 1, "bounds": {"age": (1, 0)}}, ValueError),
        ({"epsilon": 1, "keys": {"state": "CA"}}, TypeError),
        ({"epsilon": 1, "keys": {"state": pd.Series(["CA"])}}, TypeError),
        ({"epsilon": 1, "keys": {"state": []}}, ValueError),
    ],
    ids=str,
)
def test_wrong_terms_open_nothing(df, words, error):
    with pytest.raises(error):
        df.dp.open(**words)
    assert df.attrs == {}


def test_duplicate_column_names_are_refused(df):
    with pytest.raises(BadValue, match="duplicate column name 'age'"):
        df[["age", "age"]].dp.open(1)


def test_closing_gives_up_what_is_left(df):
    p = df.dp.open(1)
    p.count(epsilon=0.25)
    p.close()
    with pytest.raises(SessionError, match="A closed budget cannot be used again"):
        p.count(epsilon=0.25)
    with pytest.raises(NoSession):
        df.dp.count()
    with pytest.raises(NoSession):
        df.dp.open(1)
    assert len(p.ledger) == 1


def test_forked_child_is_refused_and_may_not_open_again(df):
    p = df.dp.open(1)

    def child(ask):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of other tests
            pid = os.fork()
        if pid == 0:
            try:
                ask()
            except SessionError as error:
                os._exit(17 if "fork" in str(error) else 18)
            finally:
                os._exit(19)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert child(p.count) == 17
    assert child(lambda: df.dp.count()) == 17
    assert child(lambda: df.dp.open(1)) == 17
    assert used(p) == 0


def test_child_that_names_a_population_in_memory_shares_its_budget():
    """Each child of a pool would have the whole of it."""
    code = (
        "import os, warnings, pandas as pd, dpframe\n"
        "warnings.simplefilter('ignore')\n"
        "df = pd.DataFrame({'x': [1, 2]})\n"
        "df.dp.open(1).count(epsilon=0.1)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        pd.DataFrame({'y': [1]}).dp.open(1, population='people').count(epsilon=1)\n"
        "    except dpframe.SessionError as error:\n"
        "        os._exit(17 if 'fork' in str(error) else 18)\n"
        "    finally:\n"
        "        os._exit(19)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "17"


# Copies of the handle -----------------------------------------------------------------------------------------


def test_copies_of_the_tracked_frame_spend_one_budget(df):
    p = df.dp.open(1)
    for twin in (
        copy.copy(p),
        copy.deepcopy(p),
        copy.deepcopy({"p": p})["p"],
        df.dp,
        dpframe.private(df),
    ):
        twin.count(epsilon=0.2, fresh=True)
    assert used(p) == 1
    assert copy.deepcopy(p["age"])._frame._session is p._session
    assert copy.deepcopy(p._session) is p._session


def test_tracked_frame_and_session_cannot_be_pickled(df):
    p = df.dp.open(1)
    for thing in (p, p["age"], p.groupby("state", keys=["CA"])):
        with pytest.raises(Refused, match="Pickle the answers"):
            pickle.dumps(thing)
    with pytest.raises(TypeError, match="Pickle the answers"):
        pickle.dumps(p._session)


def test_session_outlives_the_frame_that_was_opened():
    p = pd.DataFrame({"x": [1, 2, 3]}).dp.open(1000)
    assert p.count(epsilon=900) == 3
    with pytest.raises(LineageError, match="gone"):
        p.open(1000)


# Questions asked again ----------------------------------------------------------------------------------------


def test_repeated_question_is_free_and_identical_and_fresh_pays(df):
    p = df.dp.open(1, bounds=BOUNDS, keys=KEYS)
    ask = [
        lambda **o: p.count(epsilon=0.01, **o),
        lambda **o: df.dp.query("age > 30").mean("cost", epsilon=0.01, **o),
        lambda **o: p[p["age"] > 30].groupby("state")["cost"].sum(epsilon=0.01, **o).tolist(),
        lambda **o: p.histogram("age", bins=[0, 50, 110], epsilon=0.01, **o).tolist(),
        lambda **o: p.argmax("state", epsilon=0.01, **o),
    ]
    for i, question in enumerate(ask):
        answer = question()
        assert [question() for _ in range(3)] == [answer] * 3
        assert used(p) == Fraction(2 * i + 1, 100)
        question(fresh=True)
        assert used(p) == Fraction(2 * i + 2, 100)
    assert len(p.ledger) == 10


def test_fresh_noise_is_new_noise(df):
    p = df.dp.open(1)
    assert len({int(p.count(epsilon=0.001, fresh=True)) for _ in range(20)}) > 10


OTHER_QUESTIONS = [
    (lambda p: p.query("flag == 1").count(), lambda p: p.query("flag == True").count()),
    (lambda p: p.query("n > 1").count(), lambda p: p.query("n >= 1").count()),
    (lambda p: p.groupby("n", keys=[1, 2]).size(), lambda p: p.groupby("n", keys=[1, 3]).size()),
    (lambda p: p.sum("n", bounds=(0, 2)), lambda p: p.sum("n", bounds=(0, 3))),
    (
        lambda p: p.sum("n", bounds=(0, 2)),
        lambda p: p.rename(columns={"n": "m", "m": "n"}).sum("n", bounds=(0, 2)),
    ),
    (lambda p: p.count(), lambda p: p.count(epsilon=0.051)),
    (lambda p: p.count("f"), lambda p: p.count("m")),
    (lambda p: p.var("n", bounds=(0, 2)), lambda p: p.mean("n", bounds=(0, 2))),
    (lambda p: p.histogram("n", bins=[0, 1, 2]), lambda p: p.histogram("n", bins=[0, 1, 3])),
]


def test_a_closed_session_lets_go_of_answers_and_cells():
    df = pd.DataFrame({"x": [1.0, 2.0], "l": [[1], [2, 3]]})
    p = df.dp.open(1, bounds={"x": (0, 10)})
    q = p.explode("l", max_rows=2)
    answer = p.count(epsilon=0.25)
    kept = [weakref.ref(p._session._engine), weakref.ref(q._session._engine)]
    assert p._session.answers
    p.close()
    gc.collect()
    assert not p._session.answers
    assert not len(p._session.snapshot)
    assert not len(q._session.snapshot)
    assert [one() for one in kept] == [None, None]
    for closed in (p, q):
        with pytest.raises(SessionError, match="closed"):
            closed.count(epsilon=0.25)
    assert answer.interval(0.95)


@pytest.mark.filterwarnings("ignore::dpframe.PrivacyWarning")  # when the residue ends
def test_a_repeated_line_stays_free_when_a_share_buys_something_else():
    p = pd.DataFrame({"x": [1.0, 2.0]}).dp.open(1, 1e-6, bounds={"x": (0, 10)})
    first, plan = p.count(mechanism="laplace"), p.explain.sum("x", mechanism="laplace")
    p.sum(
        "x", mechanism="gaussian"
    )  # from here on the plain sum is gone, and a share buys less of a pure mechanism
    used = p.budget.fraction
    assert p.explain.sum("x", mechanism="laplace").parts[0].noise != plan.parts[0].noise
    assert p.count(mechanism="laplace") == first
    assert p.budget.fraction == used


def test_a_thread_waits_for_the_question_of_another(monkeypatch):
    """Two threads, of which the first is held up where the data is read: the second is answered after it, and not refused."""
    df = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    p = df.dp.open(1000, bounds={"x": (0, 10)})
    reading, go_on, reduce = threading.Event(), threading.Event(), PandasEngine.reduce
    order = []

    def held_up(self, query, *rest):
        order.append(str(query))
        reading.set()
        assert go_on.wait(60)
        return reduce(self, query, *rest)

    monkeypatch.setattr(PandasEngine, "reduce", held_up)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(p.count, epsilon=300)
        assert reading.wait(60)
        second = pool.submit(p.count, "x", epsilon=200)
        try:
            assert not wait([second], 0.5).done
        finally:
            go_on.set()
        assert (first.result(60), second.result(60)) == (3, 3)
    assert len(order) == len(p.ledger) == 2


@pytest.mark.parametrize(("first", "second"), OTHER_QUESTIONS)
def test_another_question_is_charged_and_gets_its_own_answer(first, second):
    frame = pd.DataFrame({"flag": [True, False], "n": [1, 2], "m": [2, 2], "f": [1.0, 2.0]})
    p = frame.dp.open(1)
    first(p)
    second(p)
    assert len(p.ledger) == 2


def test_same_question_in_other_words_is_the_same(df):
    p = df.dp.open(1, bounds=BOUNDS)
    limit = 30
    asked = [
        p.query("age > 30").mean("cost"),
        p.query("age > @limit").mean("cost"),
        p[p["age"] > 30].mean("cost"),
        p[pd.col("age") > 30]["cost"].mean(),
        p[lambda q: q["age"] > 30].mean("cost", bounds=(0, 1000), epsilon=0.05),
    ]
    assert limit
    assert set(map(float, asked)) == {float(asked[0])}
    assert len(p.ledger) == 1


def test_swapped_columns_never_get_each_others_answer():
    frame = pd.DataFrame({"a": [1] * 50, "b": [0] * 50})
    p = frame.dp.open(1000, bounds={"a": (0, 1), "b": (0, 1)})
    swapped = p.rename(columns={"a": "b", "b": "a"})
    assert (p.sum("a", epsilon=200), swapped.sum("a", epsilon=200)) == (50, 0)
