"""Privacy audit of groups that are found with their counts: of any event, whether a key shows or how large its count is, one
frame's probability exceeds e**epsilon times the other's by what is charged at most. And broken copies that are caught."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction as F
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special

from dpframe._expr import Column
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import Output
from dpframe._questions.keysearch import Finding
from dpframe._validate import Bounds
from dpframe.accounting._filter import Price
from dpframe.engines import limits as engines_people_module
from dpframe.engines import person_sums as person_sums_module
from dpframe.engines.pandas import PandasEngine
from dpframe.mechanisms.threshold import Bar
from tests.internals import make_plan

FAILURE = F(1, 20)
PURE, GAUSSIAN = Price(F(1), mechanism="laplace"), Price(None, F(1), None, F(1, 100), "gaussian")
COLUMNS = {
    "id": np.dtype("int64"),
    "g": pd.Series(["a"]).astype("str").dtype,
    "x": np.dtype("int64"),
}
LEAVES = {name: Column.of(i, name, dtype) for i, (name, dtype) in enumerate(COLUMNS.items())}
CROWD = [(i, g, i % 3) for i in range(8) for g in "ab" for _ in range(3)]
PAIRS = {
    "own keys": [(99, g, 2) for g in "xyzw" for _ in range(5)],
    "own rows": [(99, g, 0) for g in "xy"],
    "shared keys": [(99, g, 2) for g in "ab" for _ in range(9)],
    "one of each": [(99, g, 1) for g in "ax" for _ in range(2)],
}
ASKED = {
    "size": (Output("size", "size"),),
    "mean": (Output("x", "mean", LEAVES["x"], Bounds(0.0, 2.0)),),
}


class Drawn:
    """Many releases of one frame: which keys are shown, with which sums."""

    def __init__(
        self, rows: list[Any], task: Finding, unit: Unit, price: Price, n: int, change: Any
    ):
        frame = pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)
        plan = make_plan(task, unit, price).plan
        arranged, place = task._arrange(unit)
        primitives = {p for s, _ in arranged for p in s.primitives}
        engine = PandasEngine(frame, b"12345678")
        texts, sums = engine.occurring(task.exprs, None, unit, primitives)
        integers = change(arranged[place][0].integers(sums))
        noise = change(plan.parts[place].noise)
        noisy = noise.release(np.repeat(integers[:, None, :], n, axis=1))
        self.shown, self.keys = noise.shows(noisy), [t for (t,) in texts]
        self.sums = np.where(
            self.shown, noisy[: noise.bars[0].components].sum(axis=0), np.iinfo(np.int64).min
        )
        self.allowed = float(FAILURE)
        if price is GAUSSIAN:
            self.allowed += float(plan.loss.curves[0].delta(np.array([1.0]))[0])


def excess(
    pair: str,
    n: int,
    kind: str = "size",
    relation: str = "add-remove",
    price: Price = PURE,
    rows: int = 3,
    change: Any = lambda one: one,
) -> float:
    """A lower bound, at 0.999, of sup P[S] - e P'[S] beyond what is charged, over events of keys and of counts."""
    unit = Unit(relation, (LEAVES["id"],), rows, 2)  # type: ignore[arg-type]
    task = Finding((LEAVES["g"],), ASKED[kind], FAILURE, True)
    other = [] if relation == "add-remove" else [(77, "u", 1), (77, "v", 1)]
    sides = [
        Drawn(some, task, unit, price, n, change) for some in (CROWD + PAIRS[pair], CROWD + other)
    ]
    worst = -math.inf
    for one, two in (sides, sides[::-1]):
        own = [i for i, k in enumerate(one.keys) if k not in two.keys]
        shows = one.shown[:, own].any(axis=1)
        events = [(shows, np.zeros(n, dtype=bool))] if own else []
        for i, key in enumerate(one.keys):
            if key not in two.keys:
                continue
            x, y = one.sums[:, i], two.sums[:, two.keys.index(key)]
            events += [(~one.shown[:, i] | shows, y == np.iinfo(np.int64).min)]
            for level in np.unique(
                np.quantile(np.concatenate([x, y]), np.linspace(0.02, 0.999, 12))
            ):
                events += [((x >= level) | shows, y >= level), ((x < level) | shows, y < level)]
        for first, second in events:
            seen, others = int(first.sum()), int(second.sum())  # Clopper and Pearson, each at 1e-5
            low = special.betaincinv(seen, n - seen + 1, 1e-5) if seen else 0.0
            high = special.betaincinv(others + 1, n - others, 1 - 1e-5) if others < n else 1.0
            worst = max(worst, float(low - math.e * high))
    return worst - sides[0].allowed


@pytest.fixture
def size(full):
    return 200_000 if full else 20_000


@pytest.mark.slow(but=12)
@pytest.mark.parametrize("price", [PURE, GAUSSIAN], ids=["pure", "gaussian"])
@pytest.mark.parametrize(("kind", "rows"), [("size", 1), ("size", 3), ("mean", 1), ("mean", 3)])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("pair", PAIRS)
def test_counts_show_no_more_than_they_cost(pair, relation, kind, rows, price, size):
    assert excess(pair, size, kind, relation, price, rows) <= 0


@pytest.mark.scaled
@pytest.mark.parametrize(("kind", "rows"), [("size", 1), ("size", 3), ("mean", 3)])
def test_the_audit_sees_most_of_the_failure(kind, rows, size):
    assert excess("own keys", size, kind, rows=rows) >= -0.6 * FAILURE


def of_noise(change: Any) -> Any:
    return lambda one: one if isinstance(one, np.ndarray) else change(one)


def lower(one: Any) -> Any:
    """Bars as if a person had one row where they have three."""
    return replace(one, bars=tuple(Bar(bar.components, bar.least - 4) for bar in one.bars))


@pytest.mark.scaled
def test_a_bar_for_less_than_a_persons_rows_is_caught(size):
    assert excess("own keys", size, change=of_noise(lower)) > 0


@pytest.mark.scaled
def test_counts_with_half_the_noise_are_caught(size):
    change = of_noise(lambda one: replace(one, rate=4 * one.rate))
    assert excess("shared keys", size, change=change) > 0


@pytest.mark.scaled
def test_exact_counts_of_keys_that_noisy_ones_show_are_caught(size):
    """The threshold alone is private, and yet what is shown must have the noise that passed it."""

    class Exact:
        def __init__(self, one: Any):
            self.one, self.bars = one, one.bars

        def release(self, integers: Any) -> Any:
            self.passed = self.one.shows(self.one.release(integers))
            return integers

        def shows(self, _: Any) -> Any:
            return self.passed

    assert excess("shared keys", size, change=of_noise(Exact)) > 0


@pytest.mark.scaled
def test_rows_beyond_the_limit_are_caught(size, monkeypatch):
    people = engines_people_module
    monkeypatch.setattr(
        people.Bound, "rows", lambda self: self._add_over_people(lambda at, rows: [rows])[0]
    )
    assert excess("own keys", size, rows=1) > 0


@pytest.mark.scaled
def test_more_keys_than_promised_are_caught(size, monkeypatch):
    monkeypatch.setattr(person_sums_module, "within_groups", lambda *_: None)
    assert excess("own keys", size) > 0
