"""Learning, audited on worst pairs of tiny tables: never above the claim, and each broken twin is seen to be.

The loss that shows is bounded from below as in `test_privacy_audit`. Deltas are large here, so that a few thousand draws can
tell a noise that is too small by half.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpframe._groups.unit import Unit
from dpframe._questions.question import Question
from dpframe._validate import Bounds
from dpframe.accounting._filter import Price
from dpframe.engines.pandas import PandasEngine
from dpframe.learn import _descent, _fits
from dpframe.learn._descent import CLIP, Descent, Path
from dpframe.learn._design import Design, Target
from dpframe.learn._fits import OutputFit
from dpframe.learn._objective import Objective
from dpframe.learn._solve import ScoreLoss
from dpframe.learn._statistics import Statistics
from tests.internals import noise_of
from tests.statistical.bounds import loss_bound

TWIN = 10_000  # draws that show every broken twin below
SIZES = [1000, pytest.param(TWIN, marks=pytest.mark.slow)]
DELTA = Fraction(1, 20)
PURE = Price(Fraction(1))
# Residuals beyond a half count by their sign alone: then one row moves the gradient as far as any.
HUBER = ScoreLoss("huber", 0.5, 1.0)
REPLACED, JOINED = Unit("replace-one"), Unit()
LOW, HIGH = pd.DataFrame({"x": [1.0], "t": [-1.0]}), pd.DataFrame({"x": [1.0], "t": [1.0]})
NOBODY = LOW.head(0)


def design() -> Design:
    leaves = pd.DataFrame({"x": [1.0], "t": [0.0]}).dp.open(1)._session.leaves
    pair = Bounds(-1.0, 1.0)
    return Design(None, ((leaves["x"], pair),), Target(leaves["t"], pair, None), None)


def draws(fit: Question, unit: Unit, price: Price, frame: pd.DataFrame, n: int) -> np.ndarray:
    plan, engine = fit.plan(unit, price, None, ()), PandasEngine(frame)
    return np.array([fit.run(engine, plan, unit, noise_of(plan))[0][:, 0] for _ in range(n)])


def seen(
    fit: Question,
    unit: Unit,
    one: pd.DataFrame,
    two: pd.DataFrame,
    n: int,
    price: Price = PURE,
    delta: float = 0.0,
) -> float:
    return loss_bound(draws(fit, unit, price, one, n), draws(fit, unit, price, two, n), delta)


class Recorder(Path):
    """The noisy gradients themselves: all that descent releases is made of them."""

    @property
    def here(self) -> np.ndarray:
        return np.zeros_like(self.w)

    def go(self, gradient: np.ndarray) -> None:
        self.w = self.w + gradient


def descent(rate: int, steps: int = 2, clip: float = 1.0) -> Descent:
    # A clip of 1 is beyond all gradients; one that is chosen would give each draw a unit of its own.
    return Descent(design(), HUBER, 0.0, clip=clip, steps=steps, rate=rate, delta=DELTA)


# Sound --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
def test_output_perturbation_loses_no_more_than_was_paid(n):
    for unit, one in ((REPLACED, LOW), (JOINED, NOBODY)):
        assert seen(OutputFit(design(), HUBER, 4.0), unit, one, HIGH, n) <= 1


@pytest.mark.parametrize("n", SIZES)
def test_statistics_lose_no_more_than_was_paid(n):
    for unit, one in ((REPLACED, LOW), (JOINED, NOBODY)):
        assert seen(Statistics(design(), HUBER, None), unit, one, HIGH, n) <= 1


@pytest.mark.parametrize("n", SIZES)
def test_objective_perturbation_loses_no_more_than_was_paid(n):
    for unit, one in ((REPLACED, LOW), (JOINED, NOBODY)):
        fit = Objective(design(), HUBER, 4.0, DELTA)
        assert seen(fit, unit, one, HIGH, n, delta=float(DELTA)) <= 1


@pytest.mark.parametrize("n", SIZES)
def test_gradient_perturbation_loses_no_more_than_was_paid(n, monkeypatch):
    monkeypatch.setattr(_descent, "Path", Recorder)
    assert seen(descent(2**14), JOINED, NOBODY, HIGH, n, delta=float(DELTA)) <= 1
    mu_squared = Price(None, Fraction(1, 4), None, DELTA)
    epsilon = descent(2**16).plan(REPLACED, mu_squared, None, ()).epsilon
    assert seen(descent(2**16), REPLACED, LOW, HIGH, n, mu_squared, float(DELTA)) <= epsilon


# Broken -------------------------------------------------------------------------------------------------------


class Halved(OutputFit):
    """Somebody who is replaced moves the minimum twice: here once."""

    def _grid(self, each, unit):
        return super()._grid(each, JOINED)


class HalvedObjective(Objective):
    def numbers(self, unit, epsilon):
        return super().numbers(JOINED, epsilon)


@pytest.mark.parametrize("n", [TWIN])
def test_output_perturbation_without_the_factor_of_two_is_caught(n):
    assert seen(Halved(design(), HUBER, 4.0), REPLACED, LOW, HIGH, n) > 1


@pytest.mark.parametrize("n", [3000])
def test_objective_perturbation_without_the_factor_of_two_is_caught(n):
    # So large an l2 that epsilon is for the noise alone, and so large a delta that an event shows it.
    fit = HalvedObjective(design(), HUBER, 1000.0, 4 * DELTA)
    assert seen(fit, REPLACED, LOW, HIGH, n, delta=float(4 * DELTA)) > 1


def test_a_batch_whose_size_is_fixed_is_caught(monkeypatch):
    """Priced as a coin for each, but drawn as a share of those who are there: of one person, always that one."""
    monkeypatch.setattr(_descent, "Path", Recorder)

    def fixed(rate, size):
        drawn = np.zeros(size, dtype=bool)
        drawn[: math.ceil(size * rate / 2**16)] = True
        return drawn

    monkeypatch.setattr(_descent, "coins", fixed)
    assert seen(descent(2**14), JOINED, NOBODY, HIGH, 6000, delta=float(DELTA)) > 1


def test_a_person_who_is_not_clipped_is_caught(monkeypatch):
    monkeypatch.setattr(_descent, "Path", Recorder)
    clip = 0.1  # the gradient of this row is seven times as long
    assert seen(descent(2**14, clip=clip), JOINED, NOBODY, HIGH, 1000, delta=float(DELTA)) <= 1
    monkeypatch.setattr(
        _descent, "clip_gradients", lambda gradients: np.rint(gradients).astype(np.int64)
    )
    assert seen(descent(2**14, clip=clip), JOINED, NOBODY, HIGH, 1000, delta=float(DELTA)) > 1
    assert CLIP == 2**20
    assert _fits.GAMMA < 1e-5
