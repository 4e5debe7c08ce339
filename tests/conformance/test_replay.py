"""Every release, run twice: on two neighbours, with the outputs of mechanisms frozen. And broken copies, found in two runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction as F
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, BadValue, Plan, PrivateFrame, Refused, SessionError
from dpframe._frame.surface import PrivateGroupBy
from dpframe._plans.plan import Part
from dpframe._questions.question import Query, Question
from dpframe._session.data import sessions
from dpframe._session.session import Session
from dpframe._statistics import base as _stats
from dpframe._statistics import counts as _counts
from dpframe._statistics import scores as scores_module
from dpframe._statistics.base import Rows, Statistic
from dpframe.accounting._filter import Price
from dpframe.accounting.loss import PureDP
from dpframe.audit import Replay, replay
from dpframe.engines import limits as _people
from dpframe.engines import person_sums as person_sums_module
from dpframe.engines import reading as reading_module
from dpframe.mechanisms import selection as choices_module
from dpframe.mechanisms._base import Form
from dpframe.mechanisms.noise import GaussianNoise, LaplaceNoise
from dpframe.mechanisms.selection import NoisyMax
from dpframe.utilities import distance, revenue
from tests import internals
from tests.statistical.test_people_audit import PAIRS as PEOPLE
from tests.statistical.test_privacy_audit import BOUNDS, KEYS, PAIRS, QUESTIONS, frame, priced_verbs
from tests.statistical.test_privacy_audit import RELEASES as MEASURED

LEVELS = [i / 10 for i in range(1, 10)]
RELEASES: dict[str, Callable[..., Any]] = {
    **MEASURED,
    "nunique": lambda p, **w: p.nunique("k", **w),
    "top": lambda p, **w: p.top("g", 2, **w),
    "choose": lambda p, **w: p.choose([-2, 2, 6], distance("x"), **w),
    "choose, revenue": lambda p, **w: p.choose([0, 2, 4], revenue("x"), **w),
    "quantile": lambda p, **w: p.quantile("x", [0.25, 0.75], **w),
    "quantile, tree": lambda p, **w: p.quantile("x", LEVELS, **w),
    "median": lambda p, **w: p.median("x", **w),
    "min": lambda p, **w: p.min("x", **w),
    "max": lambda p, **w: p.max("x", **w),
    "suggest_bounds": lambda p, **w: p.suggest_bounds("x", **w),
    "groupby nunique": lambda p, **w: p.groupby("g").nunique("k", **w),
    "groupby quantile": lambda p, **w: p.groupby("g")["x"].quantile([0.1, 0.9], **w),
    "groupby median": lambda p, **w: p.groupby("g")["x"].median(**w),
    "groupby argmax": lambda p, **w: p.groupby("g")["b"].argmax(**w),
    "groupby top": lambda p, **w: p.groupby("g")["b"].top(2, **w),
    "groupby min": lambda p, **w: p.groupby("g")["x"].min(**w),
    "groupby max": lambda p, **w: p.groupby("g")["x"].max(**w),
    "describe": lambda p, **w: p[["x", "k"]].describe(**w),
    "groupby describe": lambda p, **w: p.groupby("g")[["x"]].describe(**w),
}
COUNTS_PEOPLE = ("nunique", "groupby nunique")  # of the column that unit= names
NOT_REACHED = (
    *("quantile", "median", "min", "max", "choose"),
    *("groupby quantile", "groupby min", "groupby max"),
)  # by any of the few pairs here
SAME = {"aggregate", "corr", "hist", "boxplot"}  # another one by another name, or its picture
ELSEWHERE = {
    "unique",
    "suggest_limits",
    "over_limits",
    "randomize",
    "fit",
}  # replayed by tests of their own


def verbs(*classes: type) -> set[str]:
    return {n for c in classes for n in vars(c) if not n.startswith("_")} - SAME


def test_every_release_is_replayed():
    """A new verb must be added to the table."""
    text = " ".join(RELEASES)
    verbs = priced_verbs(PrivateFrame) - SAME - ELSEWHERE
    assert verbs == {v for v in verbs if v in text}
    grouped = priced_verbs(PrivateGroupBy) - SAME
    assert grouped == {v for v in grouped if f"groupby {v}" in text}


# Two relations, with and without people ----------------------------------------------------------------------------------


def rows(name: str, pair: str, ask: Any = None, **terms: Any) -> Replay:
    """On frames where a row is a person."""
    one, two = PAIRS[pair].frames()
    words = {
        "epsilon": 1000,
        "neighbors": PAIRS[pair].neighbors,
        "bounds": BOUNDS,
        "keys": KEYS,
        **terms,
    }
    return replay(ask or (lambda p: RELEASES[name](p, epsilon=1)), one, two, **words)


def people(name: str, pair: str, ask: Any = None, **terms: Any) -> Replay:
    """On frames where a person has many rows."""
    one, two = (
        d.assign(k=(d["x"] > 0) * 4, b=(d["x"] > 0).astype("boolean"))
        for d in PEOPLE[pair].frames()
    )
    limits = {"unit": "id", "max_rows": 4, "max_groups": 2}
    words = {"epsilon": 1000, "neighbors": PEOPLE[pair].neighbors, "bounds": BOUNDS, "keys": KEYS}
    asked = RELEASES[name]
    if name in COUNTS_PEOPLE:
        asked = (
            (lambda p, **w: p.nunique("id", **w))
            if name == "nunique"
            else (lambda p, **w: p.groupby("g").nunique("id", **w))
        )
    return replay(ask or (lambda p: asked(p, epsilon=1)), one, two, **{**words, **limits, **terms})


@pytest.mark.parametrize("delta", [0, 1e-6], ids=["pure", "gaussian"])
@pytest.mark.parametrize("name", [n for n in RELEASES if n not in COUNTS_PEOPLE])
def test_no_release_moves_further_than_its_plan_says(name, delta):
    """Neither frame leads to another course; and some pair moves the integers by all that is declared."""
    pairs = (
        ("joins a", "low becomes high")
        if delta
        else ("joins a", "low becomes high", "moves", "null becomes high")
    )
    found = {pair: rows(name, pair, delta=delta) for pair in pairs}
    assert {pair: one.problems for pair, one in found.items()} == dict.fromkeys(pairs, ())
    assert all(one.steps for one in found.values())
    if not name.startswith(NOT_REACHED):
        assert any(s.distance == s.sensitivity for one in found.values() for s in one.steps)


@pytest.mark.parametrize("name", RELEASES)
def test_nor_where_a_person_has_many_rows(name):
    found = [people(name, pair) for pair in PEOPLE]
    assert [one.problems for one in found] == [()] * len(PEOPLE)
    assert all(one.steps for one in found)


def adaptive(p: Any) -> list[Any]:
    """Each question depends on the answers before it."""
    found = [p.count(epsilon=1)]
    for _ in range(4):
        found.append(
            p.query(f"x > {min(max(int(found[-1]), -2), 5)}").count(
                epsilon=1 if found[-1] > 0 else 2
            )
        )
    if found[-1] % 2:
        found.append(p.mean("x", epsilon=1))
    with p.plan_ahead() as batch:
        places = [batch.groupby("g").size(), batch.sum("k")]
    return [*found, *(place.answer for place in places), p.count(epsilon=1), p.budget.spent]


@pytest.mark.parametrize("pair", PAIRS)
def test_a_whole_adaptive_session_takes_the_same_course(pair):
    found = rows("count", pair, adaptive, epsilon=20)
    assert found.ok, found
    assert len(found.steps) >= 4  # where an answer comes twice, a question is repeated, and free


def test_the_same_groups_of_everybody_else_are_kept_in_both_runs():
    """Which groups of a person count is drawn by a keyed hash; other keys would move the counts of others."""
    everybody = pd.DataFrame([(i, g) for i in range(40) for g in "abcd"], columns=["id", "g"])
    words = {"epsilon": 1, "unit": "id", "max_rows": 1, "max_groups": 1}
    found = replay(
        lambda p: p.groupby("g", keys=list("abcd")).size(), everybody, everybody.iloc[4:], **words
    )
    assert found.ok
    assert [s.distance for s in found.steps] == [1]


def test_answers_in_a_replay_are_noise_around_zero():
    """Ten rows or none: what the function sees does not depend on it."""
    seen: list[int] = []
    big = pd.DataFrame({"x": np.zeros(1000)})
    replay(lambda p: seen.append(p.count(epsilon=100)), big, big.iloc[1:], epsilon=1000)
    assert seen == [0, 0]


# What is refused ------------------------------------------------------------------------------------------------------


def test_frames_that_are_no_neighbours_are_refused():
    one = frame()
    for two in (one.iloc[2:], one.assign(x=0.0)):
        with pytest.raises(BadValue, match="differ in one person"):
            replay(lambda p: p.count(), one, two, epsilon=1)
    with pytest.raises(BadValue, match="differ in one person"):
        replay(lambda p: p.count(), one, one.iloc[1:], epsilon=1, neighbors="replace-one")
    with pytest.raises(BadValue, match="same columns"):
        replay(lambda p: p.count(), one, one.assign(k=1.0), epsilon=1)
    twice = pd.DataFrame({"id": [1, 1, 2], "x": [0, 1, 2]})
    with pytest.raises(
        BadValue, match="differ in one person"
    ):  # one row less of a person who stays
        replay(lambda p: p.count(), twice, twice.iloc[1:], epsilon=1, unit="id", max_rows=2)
    assert replay(lambda p: p.count(), twice, twice.iloc[2:], epsilon=1, unit="id", max_rows=2).ok


def test_sessions_and_ledgers_are_left_alone(tmp_path):
    one, two = PAIRS["joins a"].frames()
    before = dict(sessions)
    with pytest.raises(BadValue, match="ledger"):
        replay(
            lambda p: p.count(), one, two, epsilon=1, ledger=tmp_path / "ledger", population="all"
        )
    shared = frame().dp.open(1).accountant
    with pytest.raises(BadValue, match="accountant"):
        replay(lambda p: p.count(), one, two, accountant=shared)
    replay(lambda p: p.count(), one, two, epsilon=1)
    assert set(sessions) - set(before) == {n for n, s in sessions.items() if s.accountant == shared}
    assert "dpframe" not in one.attrs
    one.dp.open(1)
    with pytest.raises(SessionError, match="has a session"):
        replay(lambda p: p.count(), one, two, epsilon=1)
    with pytest.raises(BadType, match="DataFrames"):
        replay(lambda p: p.count(), two, [1], epsilon=1)


def test_an_error_of_both_runs_is_the_callers():
    with pytest.raises(ZeroDivisionError):
        rows("count", "joins a", lambda p: 1 / 0)


# Broken copies ---------------------------------------------------------------------------------------------------------


def problem(found: Replay) -> str:
    assert len(found.problems) == 1
    assert not found.ok
    assert found.problems[0] in repr(found)
    return found.problems[0]


def test_the_sensitivity_of_one_row_is_found(monkeypatch):
    of_row = lambda self, unit, groups: self.sensitivity(unit, groups is not None)  # noqa: E731
    monkeypatch.setattr(Statistic, "of_person", of_row)
    assert "moved by 8, and 1 is declared (L1)" in problem(people("groupby size", "joins"))
    assert "moved by 4, and 1 is declared (L1)" in problem(people("count", "leaves"))


def test_forgotten_limits_are_found(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(person_sums_module, "within_groups", lambda *_: None)
        assert "moved by 3, and 2 is declared" in problem(people("groupby nunique", "joins"))
    monkeypatch.setattr(
        _people.Bound, "rows", lambda self: self._add_over_people(lambda at, rows: [rows])[0]
    )
    assert "moved by 15, and 4 is declared" in problem(people("count", "joins"))


def test_bounds_that_are_not_applied_are_found(monkeypatch):
    one = frame()
    two = frame((6000.0, 4, "b", True))
    words = {"epsilon": 10, "bounds": BOUNDS}
    assert replay(lambda p: p.sum("x"), one, two, **words).ok

    def forgets_to_clip(values: Any, a: Any, grid: Any) -> None:
        a[:] = np.rint(values * 2.0**grid.exponent) - grid.low

    monkeypatch.setattr(reading_module, "to_grid", forgets_to_clip)
    assert "is declared (L1)" in problem(replay(lambda p: p.sum("x"), one, two, **words))
    assert "is declared (L2, squared)" in problem(
        replay(lambda p: p.mean("x"), one, two, delta=1e-6, **words)
    )


@pytest.mark.parametrize("name", ["count", "sum", "groupby mean", "argmax", "top", "median"])
def test_noise_short_of_its_price_is_found(name, monkeypatch):
    for law in (LaplaceNoise, NoisyMax):
        price = law.for_price
        monkeypatch.setattr(
            law, "for_price", staticmethod(lambda s, e, price=price: price(s, e * F(5, 4)))
        )
    if name == "top":
        monkeypatch.setattr(
            choices_module.NoisyTop, "for_price", lambda s, e, k: _top(e * F(5, 4), s, k)
        )
    assert "and 1 is charged" in problem(rows(name, "joins a"))


def _top(epsilon: F, shift: int, rounds: int) -> Any:
    from dpframe.mechanisms.selection import NoisyTop

    return NoisyTop(epsilon / (shift * rounds), rounds)


def test_no_gaussian_noise_is_found(monkeypatch):
    monkeypatch.setattr(GaussianNoise, "for_mu", staticmethod(lambda *_: GaussianNoise(F(0))))
    with pytest.raises(Exception):  # noqa: B017, PT011  (no loss of it can even be written down)
        rows("count", "joins a", delta=1e-6)


def test_choices_that_count_one_way_only_are_found(monkeypatch):
    monkeypatch.setattr(_stats.Statistic, "reach", lambda self, unit: 1)
    monkeypatch.setattr(_counts.RowCount, "reach", lambda self, unit: 1)
    assert "moved by 2, and 1 is declared (one against another)" in problem(rows("argmax", "moves"))


def test_choices_in_groups_that_forget_a_replaced_row_are_found(monkeypatch):
    one = lambda self, unit, grouped: _stats.Sensitivity(1, 1)  # noqa: E731
    monkeypatch.setattr(scores_module.Votes, "sensitivity", one)
    internals.forget_drafts()
    assert "moved by 2, and 1 is declared (one against another)" in problem(
        rows("groupby argmax", "low becomes high")
    )


def test_questions_priced_as_if_they_did_not_overlap_are_found(monkeypatch):
    one = lambda self, unit, grouped: _stats.Sensitivity(1, 1)  # noqa: E731
    monkeypatch.setattr(_counts.Questions, "sensitivity", one)
    assert f"moved by {len(QUESTIONS)}, and 1 is declared" in problem(rows("counts", "joins a"))


def test_a_plan_that_looks_at_the_frame_is_found(monkeypatch):
    monkeypatch.setattr(Session, "price", lambda self, *asked: Price(F(1, self.rows)))
    assert "different plans" in problem(rows("count", "joins a"))


def test_a_function_that_looks_at_the_frame_is_found():
    assert "has seen data" in problem(rows("count", "joins a", lambda p: len(p._session.snapshot)))
    peeks = lambda p: p.count(epsilon=1) if len(p._session.snapshot) > 5 else None  # noqa: E731
    assert "different numbers of questions" in problem(rows("count", "joins a", peeks))

    def raises(p: Any) -> None:
        assert len(p._session.snapshot) > 5

    assert "one frame answers where the other raises" in problem(rows("count", "joins a", raises))


# Tasks: questions with a mechanism of their own -----------------------------------------------------------------------


@dataclass(frozen=True)
class Listed(Question):
    """The number of rows, as a task; twins give as many numbers as rows, or draw their noise by themselves."""

    kind: str
    where: None = None

    def __str__(self) -> str:
        return f"listed({self.kind})"

    def plan(self, unit: Any, price: Any, public_rows: int | None, declared: Any) -> Plan:
        part = Part("rows", LaplaceNoise.for_price(1, price.epsilon), 1, 1, 1.0)
        return Plan(
            str(self), unit.neighbors, PureDP(price.epsilon), F(0), (part,), (), 1, "told", told="1"
        )

    def forms(self, plan: Plan, unit: Any, size: int | None) -> tuple[Form, ...]:
        return (Form((None,), "i"),)

    def run(self, data: Any, plan: Plan, unit: Any, noise: Any) -> tuple[Any, ...]:
        counted = data.reduce(Query(()), {Rows()}, unit)[Rows()]
        if self.kind == "deaf":
            return (plan.parts[0].noise.release(counted),)
        return (
            noise(0, np.zeros(counted[0], dtype=np.int64) if self.kind == "shape" else counted),
        )


def listed(kind: str) -> Callable[[Any], Any]:
    return lambda p: p._ask(Listed(kind), lambda release: release.raw[0].tolist(), {"epsilon": 1})


def test_tasks_are_listened_to():
    found = rows("count", "joins a", listed("sound"))
    assert found.ok
    assert [(s.mechanism, s.distance, s.sensitivity) for s in found.steps] == [("laplace", 1, 1)]


def test_a_shape_that_depends_on_the_frame_is_found():
    assert "shape" in problem(rows("count", "joins a", listed("shape")))


def test_a_task_that_cannot_be_heard_is_refused():
    with pytest.raises(Refused, match="cannot listen"):
        rows("count", "joins a", listed("deaf"))
