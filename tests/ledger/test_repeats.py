"""What is free: the same question on the same declared data, or its name, also after a restart; never by the data."""

from __future__ import annotations

import warnings
from fractions import Fraction

import pandas as pd
import pytest

import dpframe
from dpframe import Accountant, BadValue, BudgetExceeded, DPError, SessionError
from dpframe._session import session as session_module
from tests.accounting.rules import ADAPTIVE
from tests.ledger.people import (
    BOUNDS,
    KEYS,
    begun,
    debits,
    elsewhere,
    kinds,
    opened,
    outcome,
    people,
    posix,
    spawn,
    used,
)

pytestmark = posix
TENTH = Fraction(1, 10)

QUESTIONS = {
    "count": lambda p, **o: int(p.count(**o)),
    "count of a column": lambda p, **o: int(p.count("age", **o)),
    "filtered": lambda p, **o: int(p.query("age > 50 and state == 'CA'").count(**o)),
    "sum": lambda p, **o: float(p.sum("cost", **o)),
    "mean": lambda p, **o: float(p.mean("age", **o)),
    "derived": lambda p, **o: float(p.assign(k="cost / 10").mean("k", **o)),
    "var": lambda p, **o: float(p.var("age", ddof=0, **o)),
    "histogram": lambda p, **o: p.histogram("age", bins=[0, 30, 60], **o).tolist(),
    "value_counts": lambda p, **o: p.value_counts("state", **o).to_dict(),
    "argmax": lambda p, **o: p.argmax("state", **o),
    "groupby": lambda p, **o: p.groupby("state")["cost"].mean(**o).to_dict(),
    "cut": lambda p, **o: p.groupby(p["age"].cut([0, 40, 110])).size(**o).tolist(),
}


def ask(path, question, options, times, frame, terms):
    p = opened(path, frame=frame, **terms)
    answers = [QUESTIONS[question](p, **options) for _ in range(times)]
    return answers, used(p), len(p.ledger)


def asked(path, question, times=1, frame=None, terms=None, **options):
    """The answers that a process of its own gets, and what is spent then."""
    return elsewhere(ask, path, question, options, times, frame, terms or {})


def test_repeated_questions_are_free_after_a_restart_and_fresh_ones_pay(path):
    def work(times, **options):
        p = opened(path, epsilon=1000, queries=2000)
        answers = {
            name: [ask(p, **options) for _ in range(times)] for name, ask in QUESTIONS.items()
        }
        return answers, len(p.ledger), used(p)

    k = len(QUESTIONS)
    first, *spent = elsewhere(work, 3)
    assert all(answers[0] == answers[1] == answers[2] for answers in first.values())
    assert spent == [k, Fraction(k, 2)]
    assert elsewhere(work, 3) == (first, *spent)
    newest, *paid = elsewhere(lambda: work(2, fresh=True))
    assert paid == [3 * k, Fraction(3 * k, 2)]
    again = {name: answers[-1:] for name, answers in newest.items()}
    assert elsewhere(work, 1) == (again, *paid)
    assert elsewhere(lambda: work(1, epsilon=0.25))[1:] == (4 * k, Fraction(7 * k, 4))


def test_every_pair_of_questions_is_two_questions(path):
    p = opened(path, epsilon=1000)
    for place, question in enumerate(QUESTIONS.values(), 1):
        question(p, epsilon=0.1)
        assert len(p.ledger) == place


OTHER = [
    ("flag == 1", "flag == True"),
    ("n == 1", "n == 1.5"),
    ("n in [1, 2]", "n in [1]"),
    ("n > 1", "n >= 1"),
    ("n > 1", "m > 1"),
    ("text == '1'", "text == ' 1'"),
    ("when > '2020-01-01'", "when > '2020-01-02'"),
]


@pytest.mark.parametrize(("first", "second"), OTHER)
def test_questions_that_look_alike_are_two_after_a_restart(path, first, second):
    def work(text):
        frame = pd.DataFrame(
            {
                "flag": [True, False],
                "n": [1, 2],
                "m": [2, 2],
                "text": ["1", "x"],
                "when": pd.to_datetime(["2020-01-01", "2021-01-01"]),
            }
        )
        p = frame.dp.open(1, ledger=path, population="people")
        p.query(text).count(epsilon=0.1)
        return len(p.ledger)

    assert [elsewhere(work, text) for text in (first, second, first, second)] == [1, 2, 2, 2]


def test_other_bounds_keys_and_moments_are_other_questions(path):
    questions = [
        lambda p: p.sum("age", bounds=(0, 100)),
        lambda p: p.sum("age", bounds=(0, 101)),
        lambda p: p.groupby("state", keys=["CA", "NY"]).size(),
        lambda p: p.groupby("state", keys=["NY", "TX"]).size(),
        lambda p: p.groupby("state", keys=["CA", "NY", None]).size(),
        lambda p: p.var("age"),
        lambda p: p.skew("age"),
        lambda p: p.histogram("age", bins=[0, 1]),
        lambda p: p.histogram("age", bins=[0, 2]),
    ]

    def work():
        p = opened(path)
        for question in questions:
            question(p)
        return len(p.ledger)

    assert [elsewhere(work) for _ in range(2)] == [len(questions)] * 2


# Names --------------------------------------------------------------------------------------------------------


def test_named_answer_is_free_at_any_price_also_after_a_restart(path):
    first, spent, rows = asked(path, "mean", epsilon=0.1, name="mean_age")
    assert (spent, rows) == (TENTH, 1)
    for options in (
        {"epsilon": 0.1},
        {"epsilon": 0.3},
        {},
        {"within": 1, "n": 300},
        {"mechanism": "laplace"},
    ):
        assert asked(path, "mean", times=2, name="mean_age", **options) == (first * 2, TENTH, 1)
    assert asked(path, "mean", epsilon=0.1) == (first, TENTH, 1)
    assert asked(path, "mean", epsilon=0.2)[1:] == (3 * TENTH, 2)
    assert asked(path, "mean", epsilon=0.2, name="another")[1:] == (3 * TENTH, 2)
    assert opened(path).ledger["name"].tolist()[0] == "mean_age"


@pytest.mark.parametrize("fresh", [False, True])
def test_name_of_another_question_is_refused_and_charges_nothing(path, fresh):
    def work():
        p = opened(path)
        with pytest.raises(BadValue, match="was given to another question"):
            p.sum("age", epsilon=0.1, name="mine", fresh=fresh)
        return used(p), float(p.mean("age", name="mine"))

    (answer,), *_ = asked(path, "mean", epsilon=0.1, name="mine")
    assert elsewhere(work) == (TENTH, answer)


def test_fresh_answer_takes_over_the_name(path):
    p = opened(path, epsilon=1000)
    p.mean("cost", epsilon=0.001, name="m")
    new = p.mean("cost", epsilon=0.001, name="m", fresh=True)
    assert p.mean("cost", name="m") == new
    assert (
        elsewhere(lambda: float(Accountant(1000, ledger=path, population="people").budget.spent))
        == 0.002
    )
    assert p.mean("cost", name="m", epsilon=5) == new


@pytest.mark.parametrize("name", ["", "  ", 3, True, b"m", ["m"]])
def test_name_must_be_a_text(path, name):
    p = opened(path)
    with pytest.raises(dpframe.BadType, match="name="):
        p.count(name=name)
    assert kinds(path)["debit"] == 0


# Versions, schemas, frames ------------------------------------------------------------------------------------


def test_newer_version_pays_again_and_the_old_one_stays_free(path):
    spent = [
        asked(path, "mean", terms=terms, epsilon=0.1, name="m")[1]
        for terms in (
            {},
            {"version": "2026-10"},
            {"version": "2026-11"},
            {"version": "2026-10"},
            {},
        )
    ]
    assert spent == [TENTH, 2 * TENTH, 3 * TENTH, 3 * TENTH, 3 * TENTH]


SCHEMAS = {
    "another dtype": lambda d: d.astype({"age": "float32"}),
    "nullable": lambda d: d.astype({"age": "Float64"}),
    "a column more": lambda d: d.assign(more=1),
    "other order": lambda d: d[["state", "age", "cost"]],
    "another name": lambda d: d.rename(columns={"cost": "price"}),
}


@pytest.mark.parametrize("change", SCHEMAS)
def test_other_columns_are_other_data_and_pay(path, change):
    asked(path, "mean", epsilon=0.1)
    terms = {"bounds": {"age": (0, 110)}}
    assert (
        asked(path, "mean", frame=SCHEMAS[change](people()), terms=terms, epsilon=0.1)[1]
        == 2 * TENTH
    )


def test_names_of_columns_that_print_alike_are_other_columns(path):
    def work(name):
        p = pd.DataFrame({name: [1, 2, 3]}).dp.open(1, ledger=path, population="people")
        p.sum(name, bounds=(0, 1), epsilon=0.1)
        return len(p.ledger)

    assert [elsewhere(work, name) for name in (1, "1", 1, "1")] == [1, 2, 2, 2]


def test_two_open_sessions_of_equal_columns_are_refused_without_a_version(path):
    first, second = people(), people(seed=2)
    opened(path, frame=first)
    with pytest.raises(SessionError, match=r"version='\.\.\.'"):
        opened(path, frame=second)
    q = opened(path, frame=second, version="second clinic")
    first.dp.count(epsilon=0.1)
    q.count(epsilon=0.1)
    assert used(q) == 2 * TENTH
    assert second.attrs["dpframe"] != first.attrs["dpframe"]


def test_data_that_is_read_once_more_after_its_frame_is_gone_goes_on(path):
    answers = []
    for _ in range(3):
        frame = people()
        answers.append(opened(path, frame=frame).count(epsilon=0.1))
        del frame
    assert len(set(answers)) == 1
    assert len(debits(path)) == 1


# Never by the data --------------------------------------------------------------------------------------------

BASE = people()
DATA = {
    "as it is": BASE,
    "a row less": BASE.iloc[1:],
    "a row more": pd.concat([BASE, BASE.iloc[:1]], ignore_index=True),
    "no rows": BASE.iloc[:0],
    "one row": BASE.iloc[:1],
    "other cells": BASE.assign(age=BASE["age"] + 1, cost=0.0),
    "nulls": BASE.mask(BASE["age"] > 40),
    "all out of bounds": BASE.assign(age=1e9, cost=-1e9),
}


def notebook(path, frame, terms):
    """All kinds of questions, some twice, some refused: what was debited after each."""
    p, seen = opened(path, frame=frame.copy(), **terms), []
    for options in ({}, {}, {"fresh": True}, {"name": "n"}, {"epsilon": 5.0}):
        for name, question in list(QUESTIONS.items())[:: 3 if "epsilon" in options else 1]:
            words = {**options, "name": name} if "name" in options else options
            try:
                question(p, **words)
            except BudgetExceeded as error:
                seen.append(str(error))
            seen.append((len(p.ledger), p.budget.fraction, p.budget.share))
    for within in (40, 40, 25):
        try:
            p.groupby("state").size(within=within)
        except BudgetExceeded as error:
            seen.append(str(error))
    return (
        seen,
        p.ledger.drop(columns="when").to_json(),
        p.declarations.drop(columns="when").to_json(),
    )


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("terms", [{}, {"delta": 1e-6}], ids=["pure", "tight"])
def test_sequence_of_debits_is_the_same_for_all_data(tmp_path, full, terms):
    def work(name):
        path = str(tmp_path / f"{name}.db")
        first = outcome(spawn(quietly, notebook, path, DATA[name], terms)).answer
        return (
            first,
            outcome(spawn(quietly, notebook, path, DATA[name], terms)).answer,
            debits(path),
        )

    expected = work("as it is")
    assert len(expected[2]) > 12
    for name in list(DATA)[1:] if full else ["a row less" if terms else "no rows"]:
        assert work(name) == expected


def quietly(work, *args):
    """Warnings that a question closes the tighter side of the budget are not what is tested here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpframe.PrivacyWarning)
        return work(*args)


# What is still the table that was asked: others are refused at opening, and no question is asked (test_other_tables).
NOW = {
    **{name: DATA[name] for name in ("as it is", "a row less", "a row more")},
    "some other cells": BASE.assign(age=BASE["age"].where(BASE.index % 4 > 0, 100.0)),
    "some nulls": BASE.assign(age=BASE["age"].mask(BASE["age"] > 75)),
    "some out of bounds": BASE.assign(cost=BASE["cost"].where(BASE.index % 4 > 0, -1e9)),
}


@pytest.mark.parametrize("name", NOW)
def test_answers_on_record_are_free_whatever_the_data_is_now(path, name):
    def work(name):
        p = opened(path, frame=NOW[name].copy())
        answers = [
            QUESTIONS[question](p, epsilon=0.05)
            for question in ("count", "mean", "groupby", "argmax")
        ]
        return answers, len(p.ledger)

    first = elsewhere(work, "as it is")
    assert first[1] == 4
    assert elsewhere(work, name) == first


def test_replaced_rows_are_free_and_another_public_number_of_rows_pays(path):
    terms = {"neighbors": "replace-one"}
    asked(path, "mean", terms=terms, epsilon=0.1)
    assert (
        asked(path, "mean", frame=NOW["some other cells"].copy(), terms=terms, epsilon=0.1)[1]
        == TENTH
    )
    assert (
        asked(path, "mean", frame=DATA["a row less"].copy(), terms=terms, epsilon=0.1)[1]
        == 2 * TENTH
    )


ACCOUNTANTS = ADAPTIVE


@pytest.mark.parametrize("fresh", [False, True])
def test_a_name_is_kept_for_its_question_also_without_a_ledger(fresh):
    p = pd.DataFrame({"x": [1.0, 2.0]}).dp.open(1, bounds={"x": (0, 10)})
    p.count(epsilon=0.25, name="first")
    with pytest.raises(DPError):
        p.sum("x", epsilon=0.25, name="first", fresh=fresh)
    assert p.budget.remaining == 0.75


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_running_all_again_pays_nothing_under_any_accountant(path, accountant):
    def work():
        p = opened(path, epsilon=2, delta=1e-6, accountant=accountant)
        p.count()
        p.mean("age")
        p.argmax("state")
        p.groupby("state").agg(n=("age", "size"), m=("cost", "mean"))
        p.count("age", epsilon=0.05, mechanism="laplace")
        p.mean("cost", mechanism="gaussian")
        p.sum("cost", epsilon=0.04)
        p.histogram("age", bins=4, within=100)
        p.std("cost", epsilon=0.04, delta=1e-8)
        return len(p.ledger), p.budget.fraction

    first = elsewhere(work)
    assert first == elsewhere(work) == elsewhere(work)
    assert first[0] == 9


def test_repeated_question_stays_free_when_the_tighter_side_is_closed(path):
    """The price of a question is what was asked for, whatever the accountant makes of it later."""

    def work():
        p = opened(path, epsilon=3, delta=1e-6)
        p.count(epsilon=0.1, mechanism="laplace")
        p.argmax("state", epsilon=0.1)
        p.count("age", epsilon=2, mechanism="laplace")
        return len(p.ledger)

    assert elsewhere(quietly, work) == elsewhere(quietly, work) == 3


def test_question_that_repeats_keys_and_bounds_of_open_is_the_same(path):
    begun(path)

    def work(**terms):
        p = people().dp.open(1, ledger=path, population="people", **terms)
        p.groupby("state", keys=KEYS["state"])["age"].mean(bounds=BOUNDS["age"], epsilon=0.1)
        return len(p.ledger)

    assert elsewhere(work) == elsewhere(lambda: work(bounds=BOUNDS, keys=KEYS)) == 1


def test_within_for_another_number_of_values_is_priced_anew(path):
    """What was precise enough for many values is not for few: `n` decides the price, also where `open` says it."""

    def work(opening, asking):
        p = opened(path, epsilon=1000, **opening)
        answer = p.mean("cost", within=20, **asking)
        return float(answer), answer.plan.error(**(opening or asking)), len(p.ledger)

    many = {"n": 100_000}
    first = elsewhere(work, many, {})
    assert elsewhere(work, many, {}) == first
    assert elsewhere(work, {}, many) == first  # the same number, wherever it is said
    few = elsewhere(work, {"n": 1000}, {})
    assert few[2] == first[2] + 1
    assert max(first[1], few[1]) <= 20
    assert elsewhere(work, {"n": 1000}, {}) == few


def test_within_for_another_number_of_values_is_priced_anew_in_memory():
    frame = people()
    p = frame.dp.open(1000, bounds=BOUNDS, n=100_000)
    p.mean("cost", within=20)
    p = frame.dp.open(n=1000)
    assert p.mean("cost", within=20).plan.error(n=1000) <= 20
    assert len(p.ledger) == 2
    p.mean("cost", within=20)
    assert len(p.ledger) == 2


def test_within_for_a_released_number_goes_by_its_interval():
    """Two released counts may show one number and have different intervals."""
    p = people(3000).dp.open(1000, bounds=BOUNDS)
    sharp = p.count(epsilon=100)
    blunt = next(
        c for c in iter(lambda: p.count(epsilon=0.01, fresh=True), None) if c.interval()[0] > 1
    )
    alike = type(blunt)(int(sharp), blunt._plan, blunt._raw)
    for n in (sharp, alike):
        assert p.mean("cost", within=20, n=n).plan.error(n=float(n.interval()[0])) <= 20


def test_record_under_the_digest_of_another_question_is_not_its_answer(path, monkeypatch):
    """As if BLAKE2b had a collision: the record has the whole question, and it is compared."""
    monkeypatch.setattr(session_module, "digest", lambda *values: "0" * 64)
    p = opened(path, epsilon=1000)
    first = p.mean("age", epsilon=1)
    assert len(p.ledger) == 1
    p._session.answers.clear()  # as another process has it
    assert float(p.mean("age", epsilon=1)) == float(first)
    p._session.answers.clear()
    second = p.sum("cost", epsilon=1)
    assert len(p.ledger) == 2
    assert second.plan.question.startswith("sum(cost")
