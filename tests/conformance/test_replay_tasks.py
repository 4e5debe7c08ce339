"""Replay over every task and derived frame: neighbours with adversarial ids and cells take one course, within what is declared.

Neighbours are tame people and one more, or another, whose id and cells are the wildest of each dtype: gaps, both sides of 2^63,
NULs, halves of characters, undecodable bytes, NaN payloads, -0.0, unused categories, objects whose code raises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction as F
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe import Plan
from dpframe._frame.randomize import Randomize
from dpframe._plans.plan import Part
from dpframe._questions import entries as engines_rows_module
from dpframe._questions.question import Question
from dpframe._session.session import Session
from dpframe._statistics.base import Sensitivity, Statistic
from dpframe.accounting.loss import PureDP
from dpframe.audit import Replay, replay
from dpframe.audit._replay import Recorder
from dpframe.learn import LinearRegression, LogisticRegression
from dpframe.mechanisms._base import Form
from dpframe.mechanisms.noise import LaplaceNoise
from tests import internals
from tests.fuzz.cells import KINDS, Kind
from tests.fuzz.programs import is_null

PUBLIC = pd.DataFrame({"k": [0, 1, 2, 2], "w": [0.0, 1.0, 2.0, 3.0]})
TASKS: dict[str, Callable[..., Any]] = {
    "randomize": lambda p, **w: p.randomize("y", **w).shape,
    "randomize, listed": lambda p, **w: p.randomize("g", keys=["a", "b"], other="rest", **w).shape,
    "randomize, number": lambda p, **w: p.randomize("x", **w).shape,
    "unique": lambda p, **w: p.unique("g", **w),
    "found groups": lambda p, **w: p.groupby("g").size(**w),
    "found sums": lambda p, **w: p.groupby("g")["x"].agg(["size", "sum"], **w),
    "statistics": lambda p, **w: p.fit(LinearRegression("statistics", l2=1), X=["x"], y="k", **w),
    "output": lambda p, **w: p.fit(LogisticRegression("output", l2=1), X=["x"], y="y", **w),
    "gradient": lambda p, **w: p.fit(
        LogisticRegression("gradient", l2=1, max_iter=2), X=["x"], y="y", **w
    ),
    "suggest_bounds": lambda p, **w: p.suggest_bounds("x", **w),
    "suggest_limits": lambda p, **w: p.suggest_limits(**w),
    "over_limits": lambda p, **w: p.over_limits(max_rows=1, **w),
    "over_limits in groups": lambda p, **w: p.over_limits("k", max_rows=1, max_groups=1, **w),
    "nunique": lambda p, **w: p.nunique("k", **w),
    "explode": lambda p, **w: p.explode("g", max_rows=2, max_groups=1).count(**w),
    "explode, grouped": lambda p, **w: (
        p.explode("g", max_rows=1, max_groups=2).groupby("g", keys=["a", "b"]).size(**w)
    ),
    "melt": lambda p, **w: p.melt(value_vars=["x", "k"], max_rows=2, max_groups=1).mean(
        "value", **w
    ),
    "melt, grouped": lambda p, **w: (
        p.melt(value_vars=["x", "k"], max_rows=1, max_groups=1).groupby("variable").size(**w)
    ),
    "merge": lambda p, **w: p.merge(PUBLIC, on="k", max_rows=2, max_groups=1).sum("w", **w),
    "merge, left": lambda p, **w: p.merge(PUBLIC.head(3), on="k", how="left").mean("w", **w),
    "merge and melt": lambda p, **w: (
        p.merge(PUBLIC.head(3), on="k").melt(value_vars=["w", "x"], max_rows=2).sum("value", **w)
    ),
    "melt and randomize": lambda p, **w: p.melt(value_vars=["x"], max_rows=1, max_groups=1).count(
        "value", **w
    ),
}
REPORTS = [name for name in TASKS if name.startswith("randomize")]
ROWS_ONLY = (
    "suggest_limits",
    "over_limits",
    "over_limits in groups",
    "nunique",
)  # of people, by the column that names them
WORDS: dict[str, Any] = {"epsilon": 1000, "bounds": {"x": (0, 5), "k": (0, 3)}}
IDS = [k for k in KINDS.values() if k.people]
CELLS = [
    KINDS[n]
    for n in (
        "objects",
        "list objects",
        "moment objects",
        "number objects",
        "text objects",
        "interval objects",
    )
]


def rows_of(people: list[tuple[int, list[int]]], ids: Kind, cells: Kind) -> pd.DataFrame:
    """For each person the place of the id, and of each row the place of its cell."""
    who = [ids.cells[i] for i, places in people for _ in places]
    what = [cells.cells[place] for _, places in people for place in places]
    numbers = np.array([place for _, places in people for place in places])
    return pd.DataFrame(
        {
            "id": ids.build(who),
            "g": cells.build(what),
            "x": numbers % 6.0,
            "y": numbers % 2 == 0,
            "k": numbers % 3,
        }
    )


def pairs(
    ids: Kind, cells: Kind, replaces: bool, most: int = 3
) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    """Tame people, and the same with a wild one more, or in the place of one."""
    tame, known = [(0, [0]), (1, [1, 2])], len(ids.tame)
    new = [
        i
        for i in range(known, len(ids.cells))
        if not is_null(ids.cells[i]) and ids.cells[i] not in ids.tame
    ]
    others = new[:: max(1, len(new) // most)]
    wild = list(range(len(cells.tame), len(cells.cells)))
    found = []
    for n, i in enumerate(others):
        there = [*tame, (2, [0, 1])] if replaces and known > 2 else tame
        kept = tame if replaces and known > 2 else tame[1:] if replaces else tame
        other = (i, [wild[(n + j) % len(wild)] if wild else 0 for j in range(3)])
        found.append((rows_of(there, ids, cells), rows_of([other, *kept], ids, cells)))
    return found


def asked(name: str, one: Any, two: Any, **words: Any) -> Replay:
    return replay(lambda p: TASKS[name](p, epsilon=5), one, two, **{**WORDS, **words})


def tasks(replaces: bool) -> list[str]:
    return [n for n in TASKS if replaces or n not in REPORTS]


@pytest.mark.slow(but=24)
@pytest.mark.parametrize("ids", IDS, ids=lambda k: k.name)
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_whatever_names_a_person(ids, relation):
    """Of each dtype the wild ids, one after the other; a task for each of them in turn."""
    replaces = relation == "replace-one"
    unit = {
        "unit": "id",
        "max_rows": 2,
        "max_groups": 1,
        "neighbors": relation,
        "delta": 1e-6,
        "accountant": "gdp",
    }
    for i, (one, two) in enumerate(pairs(ids, KINDS["objects"], replaces)):
        listed = [n for n in tasks(replaces) if n != "nunique"]
        for name in listed[(7 * i + len(ids.name)) % len(listed) :][:2]:
            found = asked(name, one, two, **unit)
            assert found.ok, (name, i, found)
            assert found.steps


@pytest.mark.parametrize("cells", CELLS, ids=lambda k: k.name)
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_whatever_a_row_holds(cells, relation):
    """Rows that are people: a tame one becomes each wild one, or each wild one comes."""
    tame = rows_of([(0, [0]), (1, [1]), (2, [0])], KINDS["int64"], cells)
    for place in range(len(cells.tame), len(cells.cells)):
        if place % 2 != (relation == "replace-one"):  # each cell has one relation and one task
            continue
        other = rows_of([(3, [place])], KINDS["int64"], cells)
        two = pd.concat(
            [other, tame.iloc[1:] if relation == "replace-one" else tame], ignore_index=True
        )
        listed = [n for n in tasks(relation == "replace-one") if n not in ROWS_ONLY]
        for name in listed[place % len(listed) :][:1]:
            found = asked(name, tame, two, neighbors=relation, delta=1e-6, accountant="gdp")
            assert found.ok, (name, place, found)
            assert found.steps


WITH_DELTA = ("unique", "found groups", "found sums", "gradient")


@pytest.mark.parametrize(
    ("name", "delta"),
    [(n, d) for n in TASKS if n != "nunique" for d in (0, 1e-6) if d or n not in WITH_DELTA],
)
def test_every_task_with_either_noise(name, delta):
    for one, two in pairs(KINDS["Int64"], KINDS["objects"], True):
        found = asked(
            name,
            one,
            two,
            unit="id",
            max_rows=2,
            max_groups=1,
            neighbors="replace-one",
            delta=delta,
        )
        assert found.ok, found
        assert found.steps


# Broken copies ---------------------------------------------------------------------------------------------------------

GAPS = pairs(KINDS["int64"], KINDS["objects"], True)
PEOPLE = {"unit": "id", "max_rows": 2, "max_groups": 1, "neighbors": "replace-one"}


def problems(name: str, pairs_: Any = GAPS, **words: Any) -> str:
    return "\n".join(
        text
        for one, two in pairs_
        for text in asked(name, one, two, **{**PEOPLE, **words}).problems
    )


@pytest.mark.parametrize("name", ["explode", "melt", "merge"])
def test_half_of_a_sensitivity_is_found(name, monkeypatch):
    """Of the integers that a task measures, and of those of derived frames: a half, or less where the proof is generous."""
    joins = {"neighbors": "add-remove", "pairs_": pairs(KINDS["int64"], KINDS["objects"], False)}
    assert not problems(name, **joins)
    less = 2 if name in ("explode", "melt") else 8
    half = lambda s: Sensitivity(max(1, s.l1 // less), max(1, s.l2_squared // less**2))  # noqa: E731
    for kind in Statistic.__subclasses__():
        for one in (kind, *kind.__subclasses__()):
            if "of_person" in vars(one) and one.__name__ != "Scores":
                own = one.of_person
                monkeypatch.setattr(one, "of_person", lambda *a, own=own: half(own(*a)))
    monkeypatch.setattr(
        Statistic,
        "of_person",
        lambda *a, own=Statistic.of_person: half(own(*a)),
    )
    internals.forget_drafts()
    assert "is declared" in problems(name, **joins)


def by_code(engine: Any, columns: Any, limit: int, entries: Any, blank: int) -> Any:
    """People counted by the range of their codes, as whole-number ids once were."""
    ids = engine.table.frame["id"].to_numpy()
    size = min(int(ids.max()) % 1000 - int(ids.min()) % 1000 + 1, 500) if len(ids) else 0
    return np.full(max(size, 1) * limit, blank, dtype=entries.dtype)


def test_people_counted_by_the_range_of_their_ids_are_found(monkeypatch):
    assert not problems("randomize")
    monkeypatch.setattr(engines_rows_module, "take_rows_of_people", by_code)
    assert "the shape of what was released depends on the frame" in problems("randomize")


def test_reports_that_cost_more_than_they_are_charged_are_found(monkeypatch):
    own = Randomize.response
    monkeypatch.setattr(Randomize, "response", lambda self, each: own(self, each * 2))
    assert "is charged" in problems("randomize")


def test_reports_of_more_than_one_person_are_found(monkeypatch):
    """An entry that depends on who stands beside it."""
    own = engines_rows_module.take_rows_of_people

    def mixed(*args: Any) -> Any:
        entries = own(*args)
        return np.where(entries.sum() % 2, entries, 0)

    monkeypatch.setattr(engines_rows_module, "take_rows_of_people", mixed)
    assert "moved by" in problems("randomize, listed")


@dataclass(frozen=True)
class Odd(Question):
    """A count, as a task; twins look at cells: for how much they release, and whether they raise."""

    kind: str
    where: None = None

    def __str__(self) -> str:
        return f"odd({self.kind})"

    def plan(self, unit: Any, price: Any, public_rows: int | None, declared: Any) -> Plan:
        part = Part("rows", LaplaceNoise.for_price(9, price.epsilon), 9, 81, 1.0)
        return Plan(
            str(self), unit.neighbors, PureDP(price.epsilon), F(0), (part,), (), 1, "told", told="1"
        )

    def forms(self, plan: Plan, unit: Any, size: int | None) -> tuple[Form, ...]:
        return (Form((None,), "i"),)

    def run(self, data: Any, plan: Plan, unit: Any, noise: Any) -> tuple[Any, ...]:
        wild = bool(data.table.frame["g"].isna().any())
        if self.kind == "raises" and wild:
            raise ValueError("a cell")
        size = 2 if self.kind == "shape" and wild else 1
        return (noise(0, np.zeros(size, dtype=np.int64)),)


def odd(kind: str, pair: Any) -> Replay:
    ask = lambda p: p._ask(Odd(kind), lambda release: release.raw[0].tolist(), {"epsilon": 1})  # noqa: E731
    return replay(
        ask, *pair, epsilon=10, unit="id", max_rows=2, max_groups=1, neighbors="replace-one"
    )


def test_a_shape_and_an_error_that_depend_on_a_cell_are_found():
    pair = GAPS[0]
    assert odd("sound", pair).ok
    assert "shape" in "".join(odd("shape", pair).problems)
    assert "one frame answers where the other raises" in "".join(odd("raises", pair).problems)


def test_another_door_of_derived_frames_is_found(monkeypatch):
    """One that draws a hash of its own keeps other groups of everybody else."""
    everybody = pd.DataFrame({"g": [["a", "b", "c"]] * 40})

    def ask(p):
        q = p.explode("g", max_rows=1, max_groups=1)
        return q.groupby("g", keys=list("abc")).size(epsilon=1)

    assert replay(ask, everybody, everybody.iloc[1:], epsilon=10).ok
    monkeypatch.setattr(Recorder, "noise_key", Session.noise_key)
    monkeypatch.setattr(Recorder, "draw_row_names", Session.draw_row_names)
    assert "is declared" in "".join(replay(ask, everybody, everybody.iloc[1:], epsilon=10).problems)
