"""Stated tails against measured ones, for each mechanism; and the same bounds, shrunk by a third, are violated."""

from __future__ import annotations

import math
from fractions import Fraction as F
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpframe
from dpframe import calibrate
from dpframe.mechanisms.noise import GaussianNoise, LaplaceNoise
from dpframe.mechanisms.selection import ExponentialChoice, NoisyMax

DRAWS = 60_000
UNLIKELY = 1e-6
LAWS = {
    "laplace, coarse": (LaplaceNoise(F(3)), 3, calibrate.laplace_tail),
    "laplace, fine": (LaplaceNoise(F(1000)), 1000, calibrate.laplace_tail),
    "gaussian, coarse": (GaussianNoise(F(9)), 3, calibrate.gaussian_tail),
    "gaussian, fine": (GaussianNoise(F(10**6)), 1000, calibrate.gaussian_tail),
}


def more_often(hits: int, draws: int, probability: float) -> bool:
    """Whether that many hits are too many for this probability."""
    return bool(stats.binom.sf(hits - 1, draws, probability) < UNLIKELY)


@pytest.mark.parametrize("answers", [1, 20])
@pytest.mark.parametrize("name", LAWS)
def test_noise_is_off_as_often_as_stated(name, answers):
    law, scale, tail = LAWS[name]
    noise = np.abs(law.release(np.zeros((DRAWS // answers, answers), dtype=np.int64))).max(axis=1)
    for t in (1.0, 2.0, 3.0, 4.5):
        reach = math.ceil(t * scale)
        stated = tail(
            reach=reach,
            **{"scale" if name.startswith("laplace") else "sigma": scale},
            answers=answers,
        )
        assert not more_often(int((noise > reach).sum()), len(noise), stated)
        if name.endswith("fine") and stated < 0.999:  # it is no more than what is seen, either
            assert not more_often(
                int((noise <= reach).sum()), len(noise), min(1.0, 1 - 0.9 * stated)
            )
        if t > 2:
            assert more_often(int((noise > reach * 2 / 3).sum()), len(noise), stated)


@pytest.mark.parametrize("k", [5, 40])
@pytest.mark.parametrize("mechanism", [ExponentialChoice, NoisyMax])
def test_choices_fall_short_as_often_as_stated(mechanism, k):
    """All but the best fall short by w: the worst there is. Halved weights at epsilon 1, the notes' at epsilon 1/2."""
    rate = F(1, 2)
    draws = 3_000

    def missed(w: int) -> int:
        scores = np.array([[w] + [0] * (k - 1)])
        return sum(int(mechanism(rate).release(scores)[0, 0]) != 0 for _ in range(draws))

    for t in (1.0, 2.5):
        w = math.ceil((math.log(k) + t) / rate)
        stated = calibrate.exponential_tail(shortfall=w, epsilon=1, candidates=k)
        assert stated <= math.exp(-t)
        assert stated == calibrate.exponential_tail(
            shortfall=w, epsilon=0.5, candidates=k, weights="notes"
        )
        assert not more_often(missed(w), draws, stated)
        # Of few candidates noisy max does better than the bound.
        if mechanism is ExponentialChoice or k == 40:
            assert more_often(missed(w * 2 // 3), draws, stated)


def test_tails_and_their_inverses_agree():
    for answers in (1, 7, 1000):
        for level in (0.5, 0.95, 1 - 1e-9):
            reach = calibrate.laplace_within(0.5, answers=answers, level=level)
            assert calibrate.laplace_tail(reach=reach, scale=2, answers=answers) == pytest.approx(
                1 - level, rel=1e-6
            )
            reach = calibrate.gaussian_within(3, answers=answers, level=level)
            assert calibrate.gaussian_tail(reach=reach, sigma=3, answers=answers) == pytest.approx(
                1 - level, rel=1e-6
            )
    assert calibrate.exponential_tail(
        shortfall=calibrate.exponential_within(1, 50), epsilon=1, candidates=50
    ) == pytest.approx(0.05)
    assert (
        calibrate.laplace_tail(reach=0, scale=1)
        == calibrate.gaussian_tail(reach=0, sigma=1)
        == calibrate.exponential_tail(shortfall=0, epsilon=1, candidates=2)
        == 1
    )


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: calibrate.laplace_tail(reach=-1, scale=1),
        lambda: calibrate.laplace_tail(reach=1, scale=0),
        lambda: calibrate.gaussian_tail(reach=1, sigma=1, answers=0),
        lambda: calibrate.exponential_tail(shortfall=1, epsilon=1, candidates=5, weights="full"),
        lambda: calibrate.gaussian_within(1, level=1),
        lambda: calibrate.gaussian_within("1"),
    ],
)
def test_wrong_arguments_are_refused(wrong):
    with pytest.raises(dpframe.DPError):
        wrong()


# Plans -----------------------------------------------------------------------------------------------------------------

BINS = list(range(0, 101, 5))


def opened(**words: Any) -> Any:
    df = pd.DataFrame({"x": np.arange(200.0) % 100, "g": ["a", "b"] * 100})
    return df.dp.open(1e3, bounds={"x": (0, 100)}, keys={"g": ["a", "b"]}, **words)


@pytest.mark.parametrize("delta", [0, 1e-6], ids=["laplace", "gaussian"])
def test_all_bins_at_once_are_within_as_often_as_the_plan_says(delta):
    plan = opened(delta=delta).explain.histogram("x", bins=BINS, epsilon=0.5)
    noise = plan.parts[0].noise
    largest = np.abs(noise.release(np.zeros((4000, len(BINS) - 1), dtype=np.int64))).max(axis=1)
    for level in (0.5, 0.9):
        half = plan.error(level, at_once=True)
        assert half > plan.error(level)
        assert not more_often(int((largest > half).sum()), len(largest), 1 - level)
        assert more_often(int((largest > half * 2 / 3).sum()), len(largest), 1 - level)
        assert not more_often(
            int((largest <= half - 1).sum()), len(largest), level
        )  # and no wider than needed
    if not delta:
        stated = calibrate.laplace_within(0.5, answers=20)
        assert (
            plan.error(0.95, at_once=True)
            <= math.ceil(stated)
            <= plan.error(0.95, at_once=True) + 1
        )


def test_it_grows_with_the_logarithm_of_the_bins():
    p = opened()
    errors = [
        p.explain.histogram("x", bins=k, epsilon=0.5).error(at_once=True) for k in (10, 100, 1000)
    ]
    steps = np.diff(errors)
    assert steps == pytest.approx([2 * math.log(10)] * 2, abs=1)


def test_the_union_bound_holds_over_outputs_that_share_noise():
    plan = opened().explain.groupby("g").agg(n=("x", "size"), s=("x", "sum"), epsilon=1)
    each, together = plan.error(0.9), plan.error(0.9, at_once=True)
    assert set(each) == {"n", "s"}
    assert all(together[name] > each[name] for name in each)
    assert plan.level_each(0.9) == pytest.approx(1 - (1 - 0.9**0.5) / 2)
    one = opened().explain.count(epsilon=1)
    assert one.error(0.9, at_once=True) == one.error(0.9)


def test_intervals_of_an_answer_at_once():
    p = opened()
    answer = p.histogram("x", bins=BINS, epsilon=0.5)
    one, many = answer.dp.interval(0.9), answer.dp.interval(0.9, at_once=True)
    assert (many["lower"] < one["lower"]).all()
    assert (many["upper"] - many["lower"] == 2 * answer.dp.plan.error(0.9, at_once=True)).all()
    table = p.crosstab("g", p["x"] > 50, keys=None, margins=True, epsilon=1)
    lower = [table.dp.interval(at_once=w).xs("lower", axis=1, level=-1) for w in (True, False)]
    assert (lower[0] < lower[1]).to_numpy().all()
    with pytest.raises(dpframe.BadType, match="True or False"):
        answer.dp.interval(0.9, at_once=1)


def test_explain_tells_all_of_it():
    p = opened()
    told = repr(p.explain.histogram("x", bins=BINS, epsilon=0.5))
    assert "all at once  ± 12, for all 20 groups together" in told
    assert "exp(-t)" in told
    assert "all at once" not in repr(p.explain.count(epsilon=0.5))
    assert "exp(-t**2 / 2)" in repr(
        opened(delta=1e-6).explain.count(epsilon=0.5, mechanism="gaussian")
    )
    assert "ln(2) + t scales" in repr(p.explain.argmax("g", epsilon=1))
    assert repr(p.explain.median("x", epsilon=1)).count("tail  ") == 1  # of the counts around it


def test_a_number_of_people_is_turned_into_an_accuracy():
    p = opened()
    spent = p.budget.spent
    plan = p.explain.mean("x", epsilon=1, n=1000)
    assert plan.error() == p.explain.mean("x", epsilon=1).error(n=1000)
    assert plan.error(n=10) > plan.error()
    assert f"± {plan.error():.4g} for 1000 values" in repr(plan)
    assert plan == p.explain.mean("x", epsilon=1)
    assert plan.n == 1000
    assert p.explain.groupby("g")["x"].mean(epsilon=1, n=1000).error() > 0
    assert p.explain.mean("x", within=1, n=1000).error(n=1000) <= 1  # and back, into a price
    assert p.budget.spent == spent
    counted = p.count(epsilon=1)
    assert p.explain.mean("x", epsilon=1, n=counted).n == counted.interval()[0]
    with pytest.raises(dpframe.BadValue, match="nothing else"):
        p.mean("x", epsilon=1, n=1000)
    with pytest.raises(dpframe.BadValue, match="at least 1"):
        p.explain.mean("x", n=0)


def test_a_reach_and_a_scale_cannot_be_exchanged_by_accident():
    for tail in (calibrate.laplace_tail, calibrate.gaussian_tail, calibrate.exponential_tail):
        with pytest.raises(TypeError):
            tail(2, 6)
