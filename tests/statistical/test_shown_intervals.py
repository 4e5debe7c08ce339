"""Intervals of groups that were found: they cover at their level given that the group is shown, however few rows it has.

The bare interval of the noise does not: a twin shows it.
"""

from __future__ import annotations

import math
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

from dpframe._expr import Column
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import AGGREGATES, Output
from dpframe._plans.plan import get_noisy_sums
from dpframe._questions.keysearch import Finding
from dpframe._questions.question import enclose_output
from dpframe._validate import Bounds
from dpframe.accounting._filter import Price
from tests.internals import make_plan

X = Column.of(1, "x", np.dtype("int64"))
ID, G = Column.of(0, "id", np.dtype("int64")), Column.of(2, "g", np.dtype("int64"))
PRICES = {
    "pure": Price(F(1, 2), mechanism="laplace"),
    "gaussian": Price(None, F(1, 9), None, F(1, 100), "gaussian"),
}
ASKED = {
    "size": (Output("size", "size"),),
    "mean": (Output("x", "mean", X, Bounds(0.0, 4.0)),),
    "sum": (Output("x", "sum", X, Bounds(0.0, 4.0)),),
    "std": (Output("x", "std", X, Bounds(0.0, 4.0)),),
}


def coverage(
    kind: str, price: str, rows: int, n: int, level: float, draws: int, bare: bool = False
) -> tuple[float, int]:
    """Of a group of n rows, half of them 1 and half of them 3, where it is shown: how often the truth is in, and how often it
    is shown."""
    unit = Unit("add-remove", (ID,), rows, 2)
    task = Finding((G,), ASKED[kind], F(1, 30), True)
    plan = make_plan(task, unit, PRICES[price]).plan
    (part,) = plan.parts
    values = np.resize([1.0, 3.0], n)
    truth: float = {
        "size": n,
        "sum": values.sum(),
        "mean": values.mean(),
        "std": values.std(ddof=1) if n > 1 else 0.0,
    }[kind]
    if kind == "size":
        column = [n]
    else:
        degree = 2 if kind == "std" else 1
        width = part.l1 // (rows * 2)  # the mass of a row
        t = values / 4
        moments = [1 - t, t] if degree == 1 else [(1 - t) ** 2, 2 * t * (1 - t), t * t]
        column = [round(m.sum() * width) for m in moments]
    if rows > 1:
        people = -(-n // 2)  # who have two rows each
        column.append(people * part.l1 // 2 - sum(column))
    noise: Any = part.noise
    noisy = noise.release(np.repeat(np.array(column)[:, None], draws, axis=1))
    raw = (noisy[:, noise.shows(noisy)],)
    if bare:
        low, high = AGGREGATES[plan.cells[0].aggregate].interval(
            get_noisy_sums(plan, raw, plan.cells[0]), level
        )
    else:
        low, high = enclose_output(plan, raw, 0, level)
    slack = 1e-9 * max(1.0, abs(truth))
    return float(np.mean((low <= truth + slack) & (truth - slack <= high))), raw[0].shape[1]


@pytest.fixture
def draws(full):
    return 60_000 if full else 20_000


@pytest.mark.slow(but=28)
@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("n", [1, 2, 6, 14, 20, 30, 80])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("price", PRICES)
@pytest.mark.parametrize("kind", ASKED)
def test_intervals_cover_where_the_group_is_shown(kind, price, rows, n, level, draws):
    found, shown = coverage(kind, price, rows, n, level, draws)
    if shown < 200:
        return  # of groups so small nearly none is shown here
    assert found >= level - 4 * math.sqrt(level * (1 - level) / shown)


@pytest.mark.scaled
@pytest.mark.parametrize("price", PRICES)
def test_most_groups_that_are_shown_have_narrow_intervals(price, draws):
    """Far above the threshold the interval is hardly wider than that of the noise."""
    found, shown = coverage("size", price, 1, 400, 0.95, draws)
    assert shown == draws
    of_noise, _ = coverage(
        "size", price, 1, 400, 0.95, draws, bare=True
    )  # of whole numbers: more than it must be
    assert found <= of_noise + 0.01


@pytest.mark.scaled
@pytest.mark.parametrize("price", PRICES)
@pytest.mark.parametrize("kind", ["size", "sum"])
def test_the_bare_interval_of_the_noise_would_not_cover(price, kind, draws):
    found, shown = coverage(kind, price, 1, 2, 0.95, draws, bare=True)
    assert shown >= 200
    assert found < 0.9
