"""Privacy audits of people with many rows: the loss that is seen between frames with and without a person, and broken copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe import PrivateFrame
from dpframe._statistics.base import Statistic
from dpframe._statistics.scores import Revenue, Scores
from dpframe.engines import ENGINES
from dpframe.engines import limits as _people
from dpframe.engines import person_sums as person_sums_module
from dpframe.engines.limits import count_at_points
from dpframe.engines.pandas import PandasEngine
from dpframe.mechanisms.noise import LaplaceNoise
from dpframe.utilities import distance, revenue
from tests import internals
from tests.statistical import test_privacy_audit as audit

EPSILON = audit.EPSILON
RELEASES: dict[str, Any] = {
    "count": lambda p, **w: p.count(**w),
    "nunique": lambda p, **w: p.nunique("id", **w),
    "sum": lambda p, **w: p.sum("x", **w),
    "mean": lambda p, **w: p.mean("x", **w),
    "groupby size": lambda p, **w: p.groupby("g").size(**w),
    "groupby nunique": lambda p, **w: p.groupby("g").nunique("id", **w),
    "groupby mean": lambda p, **w: p.groupby("g")["x"].mean(**w),
    "cov": lambda p, **w: p.assign(y="2 - x")[["x", "y"]].cov(**w),
    "tree": lambda p, **w: p.quantile("x", 0.5, method="tree", resolution=2, **w),
    "groupby tree": lambda p, **w: p.groupby("g")["x"].quantile(
        0.5, method="tree", resolution=4, **w
    ),
    "clipped": lambda p, **w: p.clipped("x", bounds=(0, 1), **w),
    "suggest_limits": lambda p, **w: p.suggest_limits("g", **w),
    "suggest_bounds": lambda p, **w: p.suggest_bounds("x", **w),
    "argmax": lambda p, **w: p.argmax("g", **w),
    "top": lambda p, **w: p.top("g", 2, **w),
    "groupby argmax": lambda p, **w: p.groupby("g").argmax(p["x"] > 2, **w),
    "groupby top": lambda p, **w: p.groupby("g").top(p["x"] > 2, 2, **w),
    "median": lambda p, **w: p.median("x", resolution=8, **w),
    "quantile": lambda p, **w: p.quantile("x", 0.75, resolution=2, **w),
    "choose by revenue": lambda p, **w: p.query("id > 3").choose([0, 6], revenue("x"), **w),
    "choose by distance": lambda p, **w: p.choose([-2, 1, 6], distance("x"), **w),
}
CHOICES = (
    "argmax",
    "top",
    "groupby argmax",
    "groupby top",
    "median",
    "quantile",
    "choose by revenue",
    "choose by distance",
)
CROWD = [
    (i, x, g)
    for i, x, g in [(1, 6.0, "a"), (1, -2.0, "b"), (2, 0.0, "a"), (3, 6.0, "b"), (3, 6.0, "c")]
    for _ in range(3)
]
HEAVY = [(9, 6.0, g) for g in "aaaaabbbbbccccc"]
LIGHT = [(8, -2.0, "c")]


@pytest.fixture(autouse=True)
def people(monkeypatch):
    def opened(data: pd.DataFrame, neighbors: str) -> Any:
        words = {
            "bounds": {"x": (-2.0, 6.0)},
            "keys": {"g": ["a", "b", "c"]},
            "unit": "id",
            "max_rows": 4,
            "max_groups": 2,
        }
        return data.dp.open(1000, neighbors=neighbors, **words)

    monkeypatch.setattr(audit, "opened", opened)
    # The guarantee holds for each key of the hashes. Two keys would show two samples of other people's values.
    monkeypatch.setitem(ENGINES, pd.DataFrame, lambda frame, key: PandasEngine(frame, b"12345678"))
    return None


class People(audit.Pair):
    def frames(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        first, second = (
            pd.DataFrame([*CROWD, *rows], columns=["id", "x", "g"]) for rows in (self.one, self.two)
        )
        return first, second.iloc[::-1].reset_index(drop=True)  # the order of rows is nobody's


PAIRS = {
    "joins": People((), tuple(HEAVY), "add-remove"),
    "leaves": People(tuple(HEAVY), (), "add-remove"),
    "becomes": People(tuple(LIGHT), tuple(HEAVY), "replace-one"),
}


def seen(name: str, pair: audit.Pair, n: int) -> float:
    given = [
        audit.given_to_noise(RELEASES[name], data, pair.neighbors, {}) for data in pair.frames()
    ]
    one, two = (audit.draws_of(g, n) for g in given)
    return audit.loss_bound(one, two, 0.0, audit.likelihood_of(*given))


@pytest.mark.slow(but=5)
@pytest.mark.parametrize("name", RELEASES)
def test_a_person_costs_no_more_than_the_price(name, full):
    n = (100_000 if full else 10_000) if name in CHOICES else (200_000 if full else 20_000)
    assert max(seen(name, pair, n) for pair in PAIRS.values()) <= EPSILON


def test_every_suggestion_is_audited():
    assert {"suggest_limits", "suggest_bounds"} == {
        v for v in dir(PrivateFrame) if v.startswith("suggest_")
    }
    assert {"suggest_limits", "suggest_bounds"} <= set(RELEASES)


@pytest.mark.parametrize("name", ["count", "nunique", "groupby size", "tree"])
def test_and_most_of_it_is_seen(name):
    assert max(seen(name, pair, 30_000) for pair in PAIRS.values()) >= 0.5 * EPSILON


def test_the_sensitivity_of_one_row_is_caught(monkeypatch):
    monkeypatch.setattr(
        Statistic,
        "of_person",
        lambda self, unit, groups: self.sensitivity(unit, groups is not None),
    )
    assert seen("groupby size", PAIRS["joins"], 20_000) > EPSILON


@pytest.mark.parametrize(
    "name", ["median", "groupby argmax", "choose by revenue", "choose by distance"]
)
def test_the_sensitivity_of_one_row_is_caught_in_a_choice(name, monkeypatch):
    assert seen(name, PAIRS["joins"], 8_000) <= EPSILON
    for kind in (Statistic, Scores, Revenue):
        monkeypatch.setattr(kind, "reach_of_person", lambda self, unit, groups: self.reach(unit))
    monkeypatch.setattr(
        Statistic,
        "of_person",
        lambda self, unit, groups: self.sensitivity(unit, groups is not None),
    )
    internals.forget_drafts()
    assert seen(name, PAIRS["joins"], 8_000) > EPSILON


def test_forgetting_that_a_few_values_stand_for_all_is_caught(monkeypatch):
    def forgetful(pairs, kept, hashes, limit, *rest, **words):
        return count_at_points(pairs, kept, hashes, 99, *rest, **words)

    monkeypatch.setattr(person_sums_module, "count_at_points", forgetful)
    assert seen("tree", PAIRS["joins"], 20_000) > EPSILON


def test_forgetting_the_limit_on_groups_is_caught(monkeypatch):
    monkeypatch.setattr(person_sums_module, "within_groups", lambda *_: None)
    assert seen("groupby nunique", PAIRS["joins"], 60_000) > EPSILON


def test_forgetting_the_limit_on_rows_is_caught(monkeypatch):
    monkeypatch.setattr(
        _people.Bound, "rows", lambda self: self._add_over_people(lambda at, rows: [rows])[0]
    )
    assert seen("count", PAIRS["joins"], 20_000) > EPSILON


def by_position(real):
    """The blocks of values, with zeros for the rows of a person beyond the limit: where they stand decides which."""

    def blocks(self, values):
        of_row, first = self._pairs.of_row, 0
        place = pd.Series(of_row).groupby(of_row).cumcount().to_numpy()
        for block, pair in real(self, values):
            yield np.where(place[first : first + len(block)] < self._limit, block, 0.0), pair
            first += len(block)

    return blocks


MIXED = [(i, x, "a") for i in (5, 6, 7) for x in (6.0,) * 6 + (-2.0,) * 6]


@pytest.mark.parametrize("name", ["sum", "groupby mean"])
def test_bounding_by_position_is_caught(name, monkeypatch):
    monkeypatch.setattr(f"{__name__}.CROWD", [*CROWD, *MIXED])
    assert seen(name, PAIRS["joins"], 20_000) <= EPSILON
    monkeypatch.setattr(_people.Bound, "_blocks", by_position(_people.Bound._blocks))
    monkeypatch.setattr(_people.Bound, "_scale_totals", lambda self, totals, counts: totals)
    assert seen(name, PAIRS["joins"], 20_000) > EPSILON


@pytest.mark.parametrize("name", ["groupby mean", "tree"])
def test_half_the_noise_is_caught(name, monkeypatch):
    monkeypatch.setattr(
        LaplaceNoise,
        "for_price",
        staticmethod(lambda l1, epsilon: LaplaceNoise(l1 / (2 * epsilon))),
    )
    assert max(seen(name, pair, 20_000) for pair in PAIRS.values()) > EPSILON
