"""A privacy audit of distinct values, by people and by rows: the loss that is seen, and broken copies that are caught."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe._statistics.counts import DistinctCount
from dpframe.engines import limits as _distinct
from tests.statistical import test_privacy_audit as audit

EPSILON = audit.EPSILON
RELEASES: dict[str, Any] = {
    "nunique": lambda p, **w: p.nunique("v", **w),
    "groupby nunique": lambda p, **w: p.groupby("g")["v"].nunique(**w),
}
CROWD = [(1, "p", "a"), (1, "q", "b"), (2, "p", "a"), (3, "r", "c")]
HEAVY = [(9, v, g) for v in "stuvwxyz" for g in "abc"]
LIGHT = [(8, None, "c")]


@pytest.fixture(autouse=True)
def people(monkeypatch):
    def opened(data: pd.DataFrame, neighbors: str) -> Any:
        return data.dp.open(
            1000, neighbors=neighbors, keys={"g": ["a", "b", "c"]}, unit="id", max_groups=3
        )

    monkeypatch.setattr(audit, "opened", opened)


class People(audit.Pair):
    def frames(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        first, second = (
            pd.DataFrame([*CROWD, *rows], columns=["id", "v", "g"]) for rows in (self.one, self.two)
        )
        return first, second.iloc[::-1].reset_index(drop=True)


PAIRS = {
    "joins": People((), tuple(HEAVY), "add-remove"),
    "leaves": People(tuple(HEAVY), (), "add-remove"),
    "becomes": People(tuple(LIGHT), tuple(HEAVY), "replace-one"),
}


def seen(name: str, n: int) -> float:
    losses = []
    for pair in PAIRS.values():
        given = [
            audit.given_to_noise(RELEASES[name], data, pair.neighbors, {}) for data in pair.frames()
        ]
        one, two = (audit.draws_of(g, n) for g in given)
        losses.append(audit.loss_bound(one, two, 0.0, audit.likelihood_of(*given)))
    return max(losses)


@pytest.mark.scaled
@pytest.mark.parametrize("name", RELEASES)
def test_a_person_costs_no_more_than_the_price(name, full):
    n = 200_000 if full else 20_000
    assert 0.5 * EPSILON <= seen(name, n) <= EPSILON


@pytest.mark.parametrize("name", RELEASES)
def test_forgetting_the_limit_is_caught(name, monkeypatch):
    monkeypatch.setattr(
        _distinct, "smallest", lambda person, rank, limit: np.ones(len(person), dtype=bool)
    )
    assert seen(name, 20_000) > EPSILON


def test_the_sensitivity_of_one_value_is_caught(monkeypatch):
    one = DistinctCount.sensitivity
    monkeypatch.setattr(
        DistinctCount, "of_person", lambda self, unit, groups: one(self, unit, groups is not None)
    )
    assert seen("nunique", 20_000) > EPSILON
