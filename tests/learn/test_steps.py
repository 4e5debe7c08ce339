"""Gradient fits: accelerated steps and their theorem, what the first release tells, and what all of it costs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpframe._groups.unit import Unit
from dpframe.accounting._additive import Rdp
from dpframe.accounting.loss import Gaussian, PoissonGaussian
from dpframe.learn import LogisticRegression
from dpframe.learn import _models as learn_models_module
from dpframe.learn._descent import SIZE_STEPS, Descent, Path, Sizes, first_sigma, sampled_sigma
from dpframe.learn._design import UNIT
from dpframe.learn._design import DesignRows as Rows
from dpframe.learn._solve import LOGISTIC
from tests.learn.data import FEATURES, opened, people
from tests.learn.test_proofs import HUBER, PRICE, design, units


def quadratic(eigenvalues, noise: float, steps: int, stride: float, draws: int) -> float:
    """The mean excess of a quadratic with its minimum at 1 in each direction, by noisy steps."""
    h = np.array(eigenvalues)
    paths = Path(len(h) * draws, stride)
    rng = np.random.default_rng(steps)
    for _ in range(steps):
        paths.go(np.tile(h, draws) * (paths.here - 1) + rng.normal(0, noise, len(h) * draws))
    off = (paths.w - 1).reshape(draws, -1)
    return float((off * off * h).sum(axis=1).mean() / 2)


@pytest.mark.parametrize("steps", [1, 2, 10, 100])
@pytest.mark.parametrize("noise", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("eigenvalues", [[1.0], [0.01, 0.1, 1.0], [1e-4] * 20])
def test_accelerated_steps_are_as_near_as_the_theorem_says(steps, noise, eigenvalues):
    curve, p = max(eigenvalues), len(eigenvalues)
    for stride in (1 / (2 * curve), 0.01 / curve):
        told = 2 * p / (stride * steps * (steps + 1))  # the minimum is sqrt(p) away
        told += stride * (steps + 2) * p * noise**2 / (6 * (1 - curve * stride))
        assert quadratic(eigenvalues, noise, steps, stride, 400) <= told * 1.05


def test_steps_without_noise_are_those_of_the_page():
    path = Path(1, 0.5)
    for _ in range(3):
        path.go(path.here - 1)  # of (w - 1)**2 / 2
    # by hand: w = 1/4, ahead 1/4; then here 1/4, ahead 5/8, w = 1/2; then here 9/16, ahead 61/64
    assert path.w.tolist() == [0.5 + (61 / 64 - 0.5) / 2]


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
@pytest.mark.parametrize("clip", [None, 0.25])
def test_first_release_and_steps_share_one_price(neighbors, clip):
    unit = Unit(neighbors)
    plan = Descent(design("class"), LOGISTIC, None, clip=clip, steps=7).plan(unit, PRICE, None, ())
    gradients, first = plan.parts
    mu = [
        7 * gradients.l2_squared / float(gradients.noise.variance),
        first.l2_squared / float(first.noise.variance),
    ]
    assert sum(mu) <= 2 * float(PRICE.rho) * (1 + 1e-9)
    assert sum(mu) == pytest.approx(2 * float(PRICE.rho), rel=1e-6)
    assert mu[1] * 31 == pytest.approx(mu[0], rel=1e-6)
    assert plan.loss.parts == (
        (gradients.noise.variance, 7 * gradients.l2_squared),
        (first.noise.variance, first.l2_squared),
    )


def test_gradients_are_clipped_to_typical_sizes_within_the_plan():
    fit, unit = Descent(design("class"), LOGISTIC, None), Unit()
    widest = math.sqrt(3)

    def at(people, lengths, deviation):
        return fit.clipping(Sizes(people, lengths, deviation), unit)

    assert at(1000, 250, 0) == pytest.approx(widest / 2)
    assert at(1000, 250, 20) == pytest.approx(
        widest * math.sqrt(290 / 960)
    )  # in doubt towards the widest
    for told in ((1000, 1e9, 1), (-5, 3, 10), (10, 3, 10), (0, 0, 0)):
        assert at(*told) == pytest.approx(widest)
    assert 0 < at(1000, -1e9, 1) < widest / 2**9
    given = Descent(design("class"), LOGISTIC, None, clip=0.25)
    assert given.clipping(Sizes(1000, 250, 0), unit) == 0.25


def test_the_noise_of_sampled_steps_leaves_the_rounding_of_its_curve_free():
    delta, rate = Fraction(1, 10**6), Fraction(1, 4)
    for epsilon, steps in ((Fraction(1), 100), (Fraction(1, 2), 7), (Fraction(3), 40)):
        sigma = sampled_sigma(epsilon, delta, rate, steps)
        events = [
            (PoissonGaussian(rate, Fraction(sigma)), steps),
            (Gaussian(first_sigma(sigma, 2**14, steps)), 1),
        ]
        assert 0.999 * epsilon < Rdp.report(events, delta) <= float(epsilon) * (1 - 1e-9)


def test_sampling_hides_nothing_of_a_replaced_person():
    """Every step is charged whole, whoever it draws: the bound of sampling is about people who are there or not."""
    p = opened(people(50, 1), neighbors="replace-one")
    model = LogisticRegression("gradient", epsilon=1, delta=1e-6, max_iter=4, sample=0.25)
    plan = p.explain.fit(model, X=["x0"], y="y")
    assert plan.loss.kind == "discrete_gaussian"
    assert plan.loss.parts[0][1] == 4 * plan.parts[0].l2_squared


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(7, 10), Fraction(2)])
def test_noise_of_sampled_steps_is_rounded_up(epsilon):
    delta, rate = Fraction(1, 10**6), Fraction(1, 4)
    sigma = sampled_sigma(epsilon, delta, rate, 20)

    def told(sigma):
        events = [
            (PoissonGaussian(rate, Fraction(sigma)), 20),
            (Gaussian(first_sigma(sigma, 2**14, 20)), 1),
        ]
        return Rdp.report(events, delta)

    assert told(sigma) <= float(epsilon) * (1 - 1e-9)
    assert told(sigma * (1 - 1e-7)) > float(epsilon) * (1 - 1e-9)


def test_a_person_is_one_whatever_the_rows():
    """The first release: 1 for a person, and at most 1 for their rows' lengths, in whole steps."""
    for unit, rows, _ in units():
        fit = Descent(design("number"), HUBER, None)
        read = Rows(
            np.full((rows, 3), float(UNIT)),
            np.zeros(rows),
            np.zeros(rows, dtype=np.int64) if unit.people else None,
        )
        found = fit._sizes(read, read.weights(fit.limit(unit)), unit)
        assert found.tolist() == [[SIZE_STEPS, SIZE_STEPS]]
        half = Rows(read.x * [1, 0.5, 0], read.y, read.people)
        assert fit._sizes(half, half.weights(fit.limit(unit)), unit).tolist() == [
            [SIZE_STEPS, math.ceil(SIZE_STEPS * 1.25 / 3)]
        ]


def test_answer_of_other_steps_in_a_ledger_is_not_reused_for_equal_words(tmp_path, monkeypatch):
    """Fits by Adam's steps were labelled by these options: such a record is kept, is read, and is not recalled."""
    frame, words = people(200, 3), {"ledger": tmp_path / "budget.db", "population": "people"}
    fit = LogisticRegression("gradient", epsilon=1, delta=1e-6, max_iter=5)

    class Adam(Descent):
        def _options(self):
            return self.clip, self.steps, self.rate, str(self.delta)

    Adam.__name__ = "Descent"
    with monkeypatch.context() as old:
        old.setattr(learn_models_module, "Descent", Adam)
        p = opened(frame, 4, 1e-5, **words)
        before = p.fit(fit, X=FEATURES, y="y").coef_
        assert np.array_equal(p.fit(fit, X=FEATURES, y="y").coef_, before)
        p.close()
    p = opened(frame, 4, 1e-5, **words)
    assert len(p.ledger) == 1
    spent = p.budget.spent
    assert not np.array_equal(p.fit(fit, X=FEATURES, y="y").coef_, before)
    assert len(p.ledger) == 2
    assert p.budget.spent > spent
    p.close()
