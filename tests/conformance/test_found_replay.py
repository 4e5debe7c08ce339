"""Questions that find their keys, run twice on neighbours: integers are compared key by key, whatever keys each frame has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe._questions.keysearch import Finding, Roomy
from dpframe.accounting import DiscreteGaussian
from dpframe.audit import replay
from dpframe.engines import limits as people
from dpframe.engines import person_sums as engine

BOUNDS = {"x": (0, 5)}
ONE = pd.DataFrame(
    {"id": [1, 1, 1, 2, 3, 3], "g": list("aaabbc"), "h": list("uvuvuv"), "x": [1.0, 2, 5, 4, 0, 5]}
)
TWO = ONE[ONE["id"] < 3].reset_index(drop=True)
THREE = pd.concat([TWO, pd.DataFrame({"id": 9, "g": ["z"], "h": "u", "x": 5.0})], ignore_index=True)
ROW = ONE.drop(index=5)
ASKS: dict[str, Any] = {
    "unique": lambda p, **w: p.unique("g", epsilon=0.5, **w),
    "size": lambda p, **w: p.groupby("g").size(epsilon=0.5, **w),
    "several": lambda p, **w: p.groupby(["g", "h"], as_index=False)["x"].mean(epsilon=0.5, **w),
    "value_counts": lambda p, **w: p.value_counts("g", normalize=True, epsilon=0.5, **w),
    "values": lambda p, **w: p.groupby("g")["x"].count(epsilon=0.5, **w),
    "moments": lambda p, **w: p.groupby("g")[["x"]].agg(["mean", "std"], epsilon=0.5, **w),
    "two statistics": lambda p, **w: p.groupby("g").agg(
        n=("id", "nunique"), m=("x", "sum"), epsilon=0.5, **w
    ),
    "filtered": lambda p, **w: p.query("x > 1").groupby("g")["x"].sum(epsilon=0.5, **w),
}


def run(ask: Any, one: pd.DataFrame = ONE, two: pd.DataFrame = TWO, **words: Any) -> Any:
    return replay(
        ask,
        one,
        two,
        **{"epsilon": 10, "delta": 1e-6, "bounds": BOUNDS, "accountant": "zcdp", **words},
    )


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize(("rows", "groups"), [(1, 2), (3, 1), (2, 3)])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("ask", ASKS)
def test_questions_that_find_keys_are_replayed(ask, relation, rows, groups, mechanism):
    words = {"unit": "id", "max_rows": rows, "max_groups": groups, "neighbors": relation}
    found = run(
        lambda p: ASKS[ask](p, mechanism=mechanism),
        ONE,
        TWO if relation == "add-remove" else THREE,
        **words,
    )
    assert found.ok, found
    assert found.steps[0].distance > 0


@pytest.mark.parametrize("ask", ["unique", "size", "several", "moments", "values"])
def test_rows_that_are_people_are_replayed(ask):
    found = run(ASKS[ask], ONE, ROW)
    assert found.ok, found
    assert found.steps[0].distance > 0


def caught(ask: str, one: pd.DataFrame = ONE, two: pd.DataFrame = TWO, **words: Any) -> bool:
    found = run(ASKS[ask], one, two, unit="id", **words)
    return any("moved by" in text for text in found.problems)


def test_rows_beyond_the_limit_are_caught(monkeypatch):
    many = pd.concat(
        [TWO, pd.DataFrame({"id": 9, "g": ["z"] * 9, "h": "u", "x": 5.0})], ignore_index=True
    )
    words = {"max_rows": 1, "max_groups": 1}
    assert not caught("size", many, TWO, **words)
    monkeypatch.setattr(
        people.Bound, "rows", lambda self: self._add_over_people(lambda at, rows: [rows])[0]
    )
    assert caught("size", many, TWO, **words)


def test_more_keys_than_promised_are_caught(monkeypatch):
    words = {"max_rows": 1, "max_groups": 1}
    assert not caught("unique", **words)
    monkeypatch.setattr(engine, "within_groups", lambda *_: None)
    assert caught("unique", **words)
    assert caught("size", **words)


def test_too_much_room_is_caught(monkeypatch):
    words = {"max_rows": 3, "max_groups": 1}
    real = Roomy.integers
    monkeypatch.setattr(
        Roomy, "integers", lambda self, r: real(replace(self, max_rows=4 * self.max_rows), r)
    )
    assert caught("size", **words)


def test_noise_for_a_smaller_person_is_caught(monkeypatch):
    real = Finding._add_failure

    def less(self: Any, offer: Any) -> Any:
        parts = [(4 * variance, distance) for variance, distance in offer.loss.parts]
        return real(self, offer._replace(loss=DiscreteGaussian(parts=parts)))

    monkeypatch.setattr(Finding, "_add_failure", less)
    found = run(lambda p, **w: p.groupby("g").size(epsilon=0.5, mechanism="gaussian"), ONE, ROW)
    assert any("charged" in text for text in found.problems)


def test_a_frame_that_tells_of_its_keys_is_caught():
    found = run(lambda p: np.array(p._session.snapshot["g"]).tolist(), ONE, ROW)
    assert not found.ok
