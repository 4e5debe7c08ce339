"""Several statistics of one question: they share its price, so that together they cost what one of them would."""

from __future__ import annotations

from fractions import Fraction as F

import pandas as pd
import pytest

from dpframe.accounting.loss import DiscreteGaussian, PureDP

BOUNDS = {"x": (0, 10), "y": (0, 100)}
PAIRS = {
    "medians": {"x": "median", "y": "median"},
    "means": {"x": "mean", "y": "mean"},
    "a median and a mean": {"x": "median", "y": "mean"},
    "sums and a count": {"x": "sum", "y": "count"},
    "variances": {"x": "var", "y": "std"},
}


@pytest.fixture
def df():
    return pd.DataFrame(
        {"x": [1.0, 2.0, None, 4.0], "y": [1.0, 20.0, 30.0, 40.0], "g": list("abab")}
    )


def cost_of(part) -> F:
    """The pure epsilon of one noise: a choice by noisy max, or a vector with Laplace noise of its L1."""
    rate = getattr(part.noise, "rate", None)
    return rate * part.l1 if rate is not None else part.l1 / part.noise.scale


def price(plan) -> F:
    return sum((cost_of(part) for part in plan.parts), F(0))


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_noises_of_all_parts_add_up_to_the_price(df, name, grouped):
    p = df.dp.open(10, bounds=BOUNDS, keys={"g": ["a", "b"]})
    asked = p.explain.groupby("g") if grouped else p.explain
    plan = asked.agg(PAIRS[name], epsilon=1)
    assert len(plan.parts) == 2 + list(PAIRS[name].values()).count("median")
    assert plan.loss == PureDP(1)
    assert price(plan) == 1


def test_three_medians_have_a_third_each(df):
    p = df.assign(z=df["y"]).dp.open(10, bounds={**BOUNDS, "z": (0, 100)})
    plan = p[["x", "y", "z"]].explain.median(epsilon=1)
    assert [cost_of(part) for part in plan.parts] == [F(15, 48), F(1, 48)] * 3
    alone = p.explain.median("x", epsilon=F(1, 3))
    assert [part.noise for part in alone.parts] == [part.noise for part in plan.parts[:2]]


def test_what_serves_several_answers_is_paid_once(df):
    p = df.dp.open(10, bounds=BOUNDS)
    plan = p.explain.agg({"x": ["sum", "mean", "count"]}, epsilon=1)
    assert price(plan) == 1
    assert len(plan.parts) == 1


@pytest.mark.parametrize("accountant", ["tight", "zcdp", "gdp"])
def test_gaussians_of_all_parts_are_charged_and_cost_no_more_than_one(df, accountant):
    p = df.dp.open(10, 1e-6, bounds=BOUNDS, accountant=accountant)
    one = p.explain.sum("x", epsilon=0.5, mechanism="gaussian")
    two = p.explain.agg({"x": "sum", "y": "sum"}, epsilon=0.5, mechanism="gaussian")
    assert isinstance(two.loss, DiscreteGaussian)
    assert len(two.loss.parts) == len(two.parts) == 2
    assert [(part.noise.variance, part.l2_squared) for part in two.parts] == list(two.loss.parts)
    assert two.loss.mu_squared <= one.loss.mu_squared * (1 + F(1, 10**6))


@pytest.mark.parametrize("accountant", ["zcdp", "gdp"])
def test_a_share_and_the_epsilon_that_buys_as_much_are_one_question(df, accountant):
    p = df.dp.open(2, 1e-6, accountant=accountant, queries=20)
    answer = p.count(epsilon=0.1)
    assert p.count() == answer
    assert len(p.ledger) == 1
