"""Private ERM in the lecture notes: what the three perturbations do, and the bound on the people that a model needs."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest

from dpframe import BadValue, calibrate
from dpframe.learn import LogisticRegression
from tests.learn.data import FEATURES, KINDS, Losses, fitted, of_dimension, opened, people

PRICE = {"epsilon": 1, "delta": 1e-6}
TRAIN = people(8000, 11)


def test_the_bound_has_the_form_of_the_notes():
    """More than sqrt(d) sqrt(log 1/delta) / (epsilon alpha**2)."""
    for alpha, epsilon, delta, d in ((0.1, 1, 1e-6, 100), (0.02, 0.3, 1e-9, 7), (0.5, 2, 0.1, 1)):
        bound = math.sqrt(d) * math.sqrt(math.log(1 / delta)) / (epsilon * alpha**2)
        found = calibrate.sgd_n(alpha, epsilon, delta, dimension=d, method="notes")
        assert bound < found <= bound + 1 + 1e-6
    few, many = (calibrate.sgd_n(a, 1, 1e-6, 100, method="notes") for a in (0.1, 0.05))
    assert many == pytest.approx(4 * few, rel=1e-3)


def test_order_of_the_notes_is_no_bound_for_many_features():
    # Rows in [-1, 1]**d are sqrt(d) long, so people grow with d and not with its root.
    assert calibrate.sgd_n(0.1, 1, 1e-6, 101) / calibrate.sgd_n(0.1, 1, 1e-6, 11) > 9
    for d in (5, 17, 65):
        wanted = {
            m: calibrate.sgd_n(0.1, 1, 1e-6, d, length=3, method=m, steps=1000)
            for m in ("bound", "notes")
        }
        assert wanted["bound"] > wanted["notes"]


@pytest.mark.parametrize("d", [4, 16, 64])
def test_a_plan_states_the_bound_that_calibrate_computes(d):
    names = [f"x{i}" for i in range(d)]
    frame = of_dimension("uniform", d, 5)
    p = frame.dp.open(1, 4e-6, bounds=dict.fromkeys(names, (-1, 1)), accountant="pure")
    told = p.explain.fit(LogisticRegression("gradient", **PRICE), X=names, y="y").told
    found = re.search(
        r"by ([\d.e+-]+) \(\|w\|\*\*2 \+ ([\d.]+)\) \+ ([\d.e+-]+) \(n \+ ([\d.]+)\) \|w\|\*\*2 \+ ([\d.]+) ",
        told,
    )
    assert found is not None
    noise, own, each, unsure, fixed = map(float, found.groups())
    for n, length in ((500, 1), (8000, 3)):
        bound = (noise * (length**2 + own) + (each * (n + unsure) + fixed) * length**2) / n
        assert calibrate.sgd_alpha(n, 1, 1e-6, dimension=d + 1, length=length) == pytest.approx(
            bound, rel=0.01
        )
        alpha = calibrate.sgd_alpha(n, 1, 1e-6, dimension=d + 1, length=length)
        assert (
            n - 1 <= calibrate.sgd_n(alpha, 1, 1e-6, dimension=d + 1, length=length) <= n + 1
            or alpha >= 1
        )


def test_more_steps_buy_what_people_cannot():
    with pytest.raises(BadValue, match="more steps"):
        calibrate.sgd_n(0.01, 1, 1e-6, 65, length=3)
    assert calibrate.sgd_n(0.01, 1, 1e-6, 65, length=3, steps=1000) < 10**6


@pytest.mark.scaled
@pytest.mark.parametrize("n", [500, 2000, 8000])
@pytest.mark.parametrize("d", [4, 16, 64])
def test_so_many_people_are_enough_for_gradient_perturbation(full, d, n):
    """The mean excess loss is below what theorem 5 states, and below that of no fit: of one kind of features, twice,
    where the whole is not asked for."""
    kinds = KINDS if full else [KINDS[(d.bit_length() + n.bit_length()) % 3]]
    words = ({}, {"sample": 0.25}, {"l2": 0.0}, {"clip": 100.0}) if full else ({},)
    for kind, some in itertools.product(kinds, words):
        frame = of_dimension(kind, d, n)
        losses = Losses(frame)
        model = LogisticRegression("gradient", **PRICE, **some)
        excess = np.mean([losses.excess(fitted(frame, model)) for _ in range(5 if full else 2)])
        assert 0 < excess < losses.none, (kind, some)
        if "sample" not in some:  # whose bound has a term more
            length = float(np.linalg.norm(losses.best))
            assert excess < calibrate.sgd_alpha(n, 1, 1e-6, dimension=d + 1, length=length), (
                kind,
                some,
            )


def test_excess_falls_like_one_over_the_people_until_clipping_shows():
    means = []
    for n in (1000, 4000):
        frame = of_dimension("uniform", 4, n)
        losses = Losses(frame)
        means.append(
            np.mean(
                [
                    losses.excess(fitted(frame, LogisticRegression("gradient", **PRICE)))
                    for _ in range(8)
                ]
            )
        )
    assert means[1] < means[0] / 4


def test_steps_have_noise_that_grows_with_the_root_of_their_number():
    p = opened(TRAIN.iloc[:100])

    def sigma(steps: int, sample: float) -> float:
        model = LogisticRegression("gradient", **PRICE, max_iter=steps, sample=sample)
        found: float = p.explain.fit(model, X=FEATURES, y="y").scale
        return found

    assert [sigma(t, 1) / sigma(25, 1) for t in (25, 100, 400)] == pytest.approx(
        [1, 2, 4], rel=0.01
    )
    assert (
        sigma(100, 0.25) < sigma(100, 1) / 3
    )  # and less where a step sees a random part of the people only


@pytest.mark.parametrize("method", ["output", "objective", "gradient"])
def test_noise_is_added_where_the_notes_add_it(method):
    """To the coefficients, to the objective by its gradient, or to the gradient of each step."""
    p = opened(TRAIN)
    fits = [
        p.fit(LogisticRegression(method, l2=100.0, **PRICE), X=FEATURES, y="y"),
        p.explain.fit(LogisticRegression(method, l2=100.0, **PRICE), X=FEATURES, y="y"),
    ]
    what = {
        "output": "coefficients",
        "objective": "gradient of the objective",
        "gradient": "gradients",
    }[method]
    assert what in str(fits[1])
    assert fits[0].plan_.cost == pytest.approx((1, 1e-6), rel=1e-8)
    assert p.budget.spent == pytest.approx(1, rel=1e-8)
    # an answer to everybody's data, with noise: not the exact minimum, and near it
    exact = opened(TRAIN, 900, 9e-4).fit(
        LogisticRegression("output", epsilon=800, l2=100.0), X=FEATURES, y="y"
    )
    apart = np.linalg.norm(fits[0].coef_ - exact.coef_)
    assert 0 < apart < np.linalg.norm(exact.coef_) / 2
