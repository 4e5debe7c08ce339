"""Questions that are declared together: one debit, all of them or none, and the answers when the block has ended."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import cycle, islice

import pandas as pd
import pytest

from dpframe import BudgetExceeded, LineageError, Refused, SessionError
from dpframe.engines.pandas import PandasEngine
from tests.plans.test_prices import MIX, budgets, opened, used


def test_batch_is_one_debit_and_its_answers_come_after_the_block():
    p = opened(1)
    with p.plan_ahead() as batch:
        rows = batch.count(epsilon=0.25)
        old = batch.query("age > 50").mean("cost", epsilon=0.25, name="old")
        states = batch.groupby("state")["age"].mean(epsilon=0.25)
        common = batch["state"].value_counts(epsilon=0.125)
        for place in (rows, old, states, common):
            assert repr(place).startswith("planned: ")
            with pytest.raises(SessionError, match="when the with block has ended"):
                place.answer  # noqa: B018  (asking is the test)
        assert used(p) == 0
    assert used(p) == Fraction(7, 8)
    assert len(p.ledger) == 4
    assert p.ledger["when"].nunique() == 1
    assert len(p.budget.charges) == 1
    assert rows.answer == p.count(epsilon=0.25)
    assert old.answer == p.query("age > 50").mean("cost", name="old")
    assert list(states.answer.index) == ["CA", "NY"]
    assert states.answer.dp.interval().shape == (2, 2)
    assert set(common.answer.index) == {"CA", "NY"}
    assert len(p.ledger) == 4


def test_batch_that_does_not_fit_charges_and_answers_nothing(monkeypatch):
    p = opened(1)
    monkeypatch.setattr(PandasEngine, "reduce", lambda *_: pytest.fail("the data was read"))
    places = []
    with pytest.raises(BudgetExceeded, match=r"requested 1\.25"), p.plan_ahead() as batch:
        places += [batch.count(epsilon=0.5), batch.mean("age", epsilon=0.75)]
    assert (used(p), len(p.ledger)) == (0, 0)
    for place in places:
        with pytest.raises(SessionError):
            place.answer  # noqa: B018


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, BudgetExceeded])
def test_block_that_fails_charges_nothing(error):
    p = opened(1)

    def fail():
        with p.plan_ahead() as batch:
            batch.count(epsilon=0.5)
            raise error

    with pytest.raises(error):
        fail()

    def mistype():
        with p.plan_ahead() as batch:
            batch.count(epsilon=0.5)
            batch.mean("no such column")

    with pytest.raises(KeyError):
        mistype()
    assert (used(p), len(p.ledger)) == (0, 0)


def test_batch_is_used_once():
    p = opened(1)
    block = p.plan_ahead()
    with block as batch:
        batch.count(epsilon=0.25)
    with pytest.raises(SessionError, match="has ended"):
        batch.count("age", epsilon=0.25)
    with pytest.raises(SessionError, match="used once"), block:
        pass
    assert used(p) == Fraction(1, 4)


def test_batch_within_a_batch_is_paid_at_its_own_end():
    p = opened(1)
    with p.plan_ahead() as outer:
        a = outer.count(epsilon=0.25)
        with outer.plan_ahead() as inner:
            b = inner.mean("age", epsilon=0.25)
        assert used(p) == Fraction(1, 4)
        assert 0 <= b.answer <= 110
    assert used(p) == Fraction(1, 2)
    assert isinstance(a.answer, int)


@pytest.mark.parametrize("accountant", ["pure", "pld"])
def test_question_of_the_frame_in_its_planning_block_is_refused(accountant):
    p = opened(1, 0 if accountant == "pure" else 1e-6, accountant=accountant)
    with p.plan_ahead() as batch:
        a = batch.count(epsilon=0.25)
        for ask in (p.count, p.query("age > 50").count, p.melt(["state"], ["age"]).count):
            with pytest.raises(SessionError, match=r"batch: answer = batch\.count\(\)"):
                ask(epsilon=0.125)
        assert batch.explain.count(epsilon=0.5).epsilon == 0.5
        assert p.explain.count(epsilon=0.5).epsilon == 0.5
    assert len(p.ledger) == 1
    assert a.answer == p.count(epsilon=0.25)


def test_what_is_free_is_answered_inside_a_block_and_the_rest_after_it():
    p = opened(1)
    known = p.count(epsilon=0.25)
    with p.plan_ahead():
        assert p.count(epsilon=0.25) == known
    with pytest.raises(ZeroDivisionError), p.plan_ahead():
        1 / 0  # noqa: B018  (failing is the test)
    assert isinstance(p.count("age", epsilon=0.25), int)
    assert used(p) == Fraction(1, 2)


def test_another_thread_may_ask_while_a_block_is_open():
    p = opened(1)
    with p.plan_ahead() as batch, ThreadPoolExecutor(1) as pool:
        batch.count(epsilon=0.25)
        assert isinstance(pool.submit(lambda: p.count("age", epsilon=0.25)).result(), int)
    assert used(p) == Fraction(1, 2)


def test_empty_batch_costs_nothing():
    p = opened(1)
    with p.plan_ahead():
        pass
    assert p.ledger.empty


def test_batch_pays_equal_questions_once_and_fresh_ones_each():
    p = opened(1)
    known = p.count(epsilon=0.125)
    with p.plan_ahead() as batch:
        first = [batch.count(epsilon=0.125) for _ in range(2)]
        second = [batch.mean("age", epsilon=0.125) for _ in range(2)]
        third = [batch.count(epsilon=0.125, fresh=True) for _ in range(2)]
    assert [place.answer for place in first] == [known] * 2
    assert second[0].answer == second[1].answer
    assert used(p) == Fraction(4, 8)
    assert len({id(place.answer) for place in third}) == 2


@budgets
def test_batch_is_admitted_as_its_questions_would_be(accountant, delta):
    def ask(p):
        return [p.count(), p.mean("age"), p.argmax("state"), p.groupby("state").size(epsilon=0.02)]

    one, together = opened(1, delta, accountant=accountant), opened(1, delta, accountant=accountant)
    ask(one)
    with together.plan_ahead() as batch:
        ask(batch)
    assert together.budget.fraction == pytest.approx(one.budget.fraction, rel=1e-9)


def test_pld_admits_a_batch_that_tight_refuses_and_no_second_one():
    def ask(p, k):
        with p.plan_ahead() as batch:
            return [batch.count(epsilon=0.02, mechanism="laplace", fresh=True) for _ in range(k)]

    k = 142  # as many as there can be; the residue admits 138
    tight, pld = (opened(1, 1e-6, accountant=name, reserve=0) for name in ("tight", "pld"))
    with pytest.raises(BudgetExceeded):
        ask(tight, k)
    assert tight.ledger.empty
    answers = ask(pld, k)
    assert len({int(place.answer) for place in answers}) > 50
    assert len(pld.ledger) == k
    assert pld.budget.report("pld").loc["pld", "epsilon"] <= 1
    assert pld.budget.report("tight").loc["tight", "epsilon"] > 1
    with pytest.raises(BudgetExceeded, match="one batch"):
        ask(pld, 1)
    with pytest.raises(SessionError, match="declared in advance"):
        pld.count(epsilon=0.001)
    assert len(pld.ledger) == k


def test_pld_refuses_a_large_batch_and_admits_a_smaller_one_after_it():
    p = opened(1, 1e-6, accountant="pld")
    with pytest.raises(BudgetExceeded), p.plan_ahead() as batch:
        batch.count(epsilon=2, mechanism="laplace")
    with p.plan_ahead() as batch:
        place = batch.count(epsilon=0.9, mechanism="laplace")
    assert p.count(epsilon=0.9, mechanism="laplace") == place.answer
    assert p.budget.fraction == 1


def test_pld_batch_in_a_file_stays_the_only_one(tmp_path):
    words = {"ledger": tmp_path / "budget.db", "population": "people", "accountant": "pld"}
    p = opened(1, 1e-6, **words)
    with p.plan_ahead() as batch:
        place = batch.count(epsilon=0.5, mechanism="laplace")
    q = opened(1, 1e-6, version="2", **words)
    assert q.budget.fraction == 1
    with pytest.raises(BudgetExceeded), q.plan_ahead() as batch:
        batch.count(epsilon=0.001)
    assert p.count(epsilon=0.5, mechanism="laplace") == place.answer


@pytest.mark.parametrize("accountant", ["tight", "pld", "pure", "rdp"])
def test_twenty_shares_fit_one_batch(accountant):
    p = opened(1, 1e-6, accountant=accountant)
    with p.plan_ahead() as batch:
        places = [MIX[kind](batch) for kind in islice(cycle(MIX), 20)]
    assert len(p.ledger) == 20
    assert all(place.answer is not None for place in places)


def test_a_function_of_rows_cannot_ask_by_a_batch_either():
    p = pd.DataFrame({"age": [30, 41, 55]}).dp.open(1)

    def asking(d):
        with d.plan_ahead() as batch:
            batch.count(epsilon=0.5)
        return d["age"]

    with pytest.raises(Refused, match="asks nothing"):
        p.assign(x=asking)
    assert p.budget.spent == 0
    p.count(epsilon=0.1)


def test_a_batch_that_cannot_begin_leaves_the_session_as_it_was():
    df = pd.DataFrame({"age": [30, 41, 55]})
    p = df.dp.open(1)
    with pytest.raises(LineageError, match="derived by pandas"), df[df["age"] > 35].dp.plan_ahead():
        pass
    p.count(epsilon=0.1)
