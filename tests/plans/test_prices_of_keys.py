"""What a question pays that finds its keys: the loss of a person with several keys, and the failure, as they are stated."""

from __future__ import annotations

import math
from fractions import Fraction as F

import numpy as np
import pandas as pd
import pytest

from dpframe import BudgetError, BudgetExceeded
from dpframe.accounting._filter import Charge
from dpframe.mechanisms.threshold import laplace_tail


def frame(n=6000):
    return pd.DataFrame(
        {
            "id": np.arange(n) // 3,
            "g": np.arange(n) % 4,
            "h": np.arange(n) % 3,
            "x": np.arange(n) % 7,
        }
    )


def opened(groups=5, rows=1, **words):
    words = {
        "epsilon": 3,
        "delta": 1e-6,
        "unit": "id",
        "max_rows": rows,
        "max_groups": groups,
        "bounds": {"x": (0, 6)},
        **words,
    }
    return frame().dp.open(**words)


FINDS = {
    "unique": lambda p, **w: p.unique("g", **w),
    "size": lambda p, **w: p.groupby("g").size(**w),
    "mean": lambda p, **w: p.groupby("g")["x"].mean(**w),
}


def own_key_shows(noise, own, components):
    """P[own + X >= least] of the sum of some discrete Gaussian noises, summed up."""
    sigma = noise.scale * math.sqrt(components)
    reach = np.arange(-int(45 * sigma), int(45 * sigma) + 1)
    weights = np.exp(-(reach**2) / (2 * sigma * sigma))
    return [
        weights[own + reach >= bar.least].sum() / weights.sum()
        for bar in noise.bars
        if bar.components == components
    ]


@pytest.mark.parametrize("groups", [1, 5, 40])
@pytest.mark.parametrize("ask", ["unique", "size"])
def test_a_gaussian_threshold_is_for_all_keys_of_a_person_together(ask, groups):
    plan = FINDS[ask](opened(groups).explain, mechanism="gaussian", delta=1e-7)
    (part,) = plan.parts
    (each,) = own_key_shows(part.noise, 1, 1)
    together = 1 - (1 - each) ** groups
    assert (
        0.4e-7 <= together <= 1e-7
    )  # with the number of keys forgotten it would be so many times as much


@pytest.mark.parametrize("groups", [1, 5, 40])
@pytest.mark.parametrize(("ask", "rows"), [("unique", 1), ("size", 1), ("size", 3), ("mean", 2)])
def test_the_loss_is_that_of_a_person_with_all_their_keys(ask, rows, groups):
    plan = FINDS[ask](opened(groups, rows).explain, mechanism="gaussian")
    (part,) = plan.parts
    mass = 1 if ask != "mean" else int(6 / part.step)
    moves = rows * mass if ask != "unique" else 1
    assert part.l2_squared == groups * moves**2
    assert plan.loss.rho == F(groups * moves**2) / (2 * part.noise.variance)


@pytest.mark.parametrize("ask", FINDS)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_whole_failure_is_charged(ask, mechanism):
    p = opened()
    FINDS[ask](p, mechanism=mechanism, delta=1e-7)
    assert p.budget.spent_delta == pytest.approx(1e-7, rel=1e-9)
    plan = FINDS[ask](opened().explain, mechanism=mechanism, delta=1e-7)
    assert plan.loss.failure == F(1, 10**7)


@pytest.mark.parametrize("ask", FINDS)
def test_another_failure_is_another_question(ask):
    p = opened()
    FINDS[ask](p, delta=1e-8)
    FINDS[ask](p, delta=1e-8)
    assert len(p.ledger) == 1
    FINDS[ask](p, delta=1e-9)
    assert len(p.ledger) == 2


@pytest.mark.parametrize("ask", FINDS)
def test_the_stated_delta_has_both_the_conversion_and_the_failure(ask):
    p = opened()
    plan = FINDS[ask](p.explain, mechanism="gaussian", delta=1e-7)
    conversion = p.budget.rule.limits.conversion
    assert plan.stated_at == conversion + F(1, 10**7)
    assert plan.delta == pytest.approx(0.6e-6)
    bare = plan.loss.epsilon_at(plan.stated_at)
    assert bare is not None
    assert plan.epsilon == float(bare)
    pure = FINDS[ask](p.explain, mechanism="laplace", epsilon=0.5, delta=1e-7)
    assert (pure.epsilon, pure.delta) == (0.5, 1e-7)


def test_the_failure_follows_the_part_of_epsilon():
    p = opened()
    limit = p.budget.rule.delta_limit
    assert FINDS["size"](p.explain, epsilon=0.3).loss.failure == limit / 10
    assert FINDS["mean"](p.explain, epsilon=1.5).loss.failure == limit / 2
    assert FINDS["size"](p.explain).loss.failure == limit / 20
    assert (
        FINDS["unique"](p.explain, epsilon=1.5).loss.failure == limit / 20
    )  # alone it keeps to a share


def test_a_repeat_is_the_same_question_when_less_is_left_for_failures():
    p = opened(epsilon=100)
    first = p.groupby("g").size(epsilon=1)
    p.unique("g", epsilon=1, delta=float(p.budget.remaining_delta) * 0.999)
    assert p.explain.groupby("h").size(epsilon=1).loss.failure < p.budget.rule.delta_limit / 500
    spent = p.budget.fraction
    assert p.groupby("g").size(epsilon=1).equals(first)
    assert p.budget.fraction == spent


def test_nothing_left_for_failures_is_said_before_the_debit():
    p = opened()
    p.unique("g", delta=float(p.budget.remaining_delta))
    used = len(p.ledger)
    for ask in (FINDS["size"], FINDS["mean"], lambda p: p.groupby("h").median("x")):
        with pytest.raises(BudgetError, match="list keys"):
            ask(p)
    with pytest.raises(BudgetExceeded):
        p.unique("h")
    assert len(p.ledger) == used


def test_all_keys_of_a_person_share_what_pure_noise_costs():
    plan = FINDS["size"](opened(5).explain, mechanism="laplace", epsilon=1)
    (part,) = plan.parts
    assert part.noise.rate == F(1, 5)
    assert plan.charge == Charge(((plan.loss, 1),), plan.loss.failure)


@pytest.mark.parametrize("ask", FINDS)
def test_another_failure_is_another_question_of_a_ledger_too(ask, tmp_path):
    words = {"ledger": str(tmp_path / "l.db"), "population": "v"}
    p = opened(**words)
    FINDS[ask](p, delta=1e-8)
    p.close()
    again = opened(**words)
    FINDS[ask](again, delta=1e-8)
    assert len(again.ledger) == 1
    again.close()
    third = opened(**words)
    FINDS[ask](third, delta=1e-9)
    assert len(third.ledger) == 2
    third.close()


@pytest.mark.parametrize("groups", [1, 5])
@pytest.mark.parametrize(("ask", "rows"), [("size", 3), ("size", 4), ("mean", 1), ("mean", 3)])
def test_the_bars_of_pure_noise_are_for_all_rows_and_all_keys_of_a_person(ask, rows, groups):
    plan = FINDS[ask](opened(groups, rows).explain, mechanism="laplace", epsilon=1, delta=1e-7)
    (part,) = plan.parts
    own = part.l1 // groups
    assert own >= rows
    chances = [
        float(part.noise.above(1, np.array([bar.least - own])).item())
        if bar.components == 1
        else float(laplace_tail(float(1 / part.noise.scale), bar.components, bar.least - own))
        for bar in part.noise.bars
    ]
    together = 1 - (1 - sum(chances)) ** groups
    assert 0.7e-7 <= together <= 1.000001e-7


def test_a_delta_that_is_short_is_told_as_it_was_asked_for():
    p = pd.DataFrame({"g": ["a", "b"] * 50}).dp.open(1, 1e-6, accountant="pure")
    with pytest.raises(
        BudgetExceeded, match="delta requested 2e-06, spent 0, remaining 1e-06, short by 1e-06"
    ):
        p.groupby("g").size(epsilon=0.1, delta=2e-6)
