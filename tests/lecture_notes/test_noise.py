"""Noise in the lecture notes: randomized response, the Laplace mechanism, counts and histograms, the Gaussian mechanism."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction as F
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpframe import audit, calibrate, local, plot
from dpframe.mechanisms.noise import GaussianNoise, LaplaceNoise
from tests.lecture_notes.draws import drawn

RELATIONS = ["add-remove", "replace-one"]

# Randomized response ------------------------------------------------------------------------------------------------------


def law_of_reports(truths: tuple[int, ...], d: F) -> dict[tuple[int, ...], F]:
    """Every person tells the truth with probability 1/2 + d."""
    return {
        said: math.prod(F(1, 2) + (d if a == b else -d) for a, b in zip(truths, said, strict=True))
        for said in itertools.product((0, 1), repeat=len(truths))
    }


@pytest.mark.parametrize("d", [F(1, 4), F(1, 100), F(49, 100)])
def test_the_estimate_of_randomized_response_has_no_bias(d):
    for truths in ((0, 0, 0, 0), (1, 0, 0, 1), (1, 1, 1, 1)):
        law = law_of_reports(truths, d)
        assert sum(law.values()) == 1
        mean = sum(p * (F(sum(said), 4) - (F(1, 2) - d)) / (2 * d) for said, p in law.items())
        assert mean == F(sum(truths), 4)
        # what dpframe makes of the same reports is that number
        for said in ((1, 0, 1, 1), (0, 0, 0, 0)):
            epsilon = math.log((F(1, 2) + d) / (F(1, 2) - d))
            told = local.estimate(local.reports(list(said), keys=[0, 1], epsilon=epsilon))
            assert told.loc[1, "frequency"] == pytest.approx(
                float((F(sum(said), 4) - (F(1, 2) - d)) / (2 * d))
            )


def test_randomized_response_with_delta_is_about_four_delta_private():
    """The notes' O(delta): the exact loss is ln((1/2 + d)/(1/2 - d)), one person's value at a time, whoever the others are."""
    for d in (F(1, 1000), F(1, 20), F(1, 4), F(9, 20)):
        epsilon = local.epsilon_of(d)
        for truths, others in (((0, 1, 0), (1, 1, 0)), ((0, 0, 0), (0, 0, 1))):
            p, q = law_of_reports(truths, d), law_of_reports(others, d)
            assert audit.max_divergence(p, q) == pytest.approx(epsilon, rel=1e-12)
        assert 4 * d <= epsilon <= 4 * d / (1 - 4 * d * d)
        assert local.delta_of(epsilon) == pytest.approx(float(d))
    assert local.epsilon_of(F(1, 10**6)) == pytest.approx(4e-6, rel=1e-9)


def off(n: int, ones: int, d: float, alpha: float) -> float:
    """The exact probability that the estimate is alpha or more off, for so many people whose value is 1."""
    law = np.convolve(
        stats.binom.pmf(np.arange(ones + 1), ones, 0.5 + d),
        stats.binom.pmf(np.arange(n - ones + 1), n - ones, 0.5 - d),
    )
    estimate = (np.arange(n + 1) / n - (0.5 - d)) / (2 * d)
    return float(law[np.abs(estimate - ones / n) >= alpha - 1e-12].sum())


@pytest.mark.parametrize(("d", "alpha"), [(0.25, 0.1), (0.1, 0.2), (0.4, 0.05)])
def test_an_error_of_one_over_delta_sqrt_n_and_the_people_it_takes(d, alpha):
    n = local.sample_size(alpha, delta=d, method="notes", level=0.75)
    assert n == math.ceil(1 / (F(str(d)) * F(str(alpha))) ** 2)
    worst = max(off(n, ones, d, 1 / (d * math.sqrt(n))) for ones in (0, n // 3, n // 2, n))
    assert worst <= 1 / 16 < 1 / 4  # Chebyshev's inequality leaves more room than the notes take
    few = local.sample_size(alpha, delta=d, level=0.75)
    assert max(off(few, ones, d, alpha) for ones in (0, few // 2, few)) <= 1 / 4
    assert off(n // 50, n // 100, d, alpha) > 1 / 4  # and a fiftieth of them is too few


def test_more_people_or_a_larger_epsilon_is_more_accuracy():
    assert local.sample_size(0.05, delta=0.2, method="notes") == pytest.approx(
        4 * local.sample_size(0.1, delta=0.2, method="notes"), abs=4
    )
    sizes = [local.sample_size(0.05, e) for e in (0.25, 0.5, 1, 2)]
    assert sizes == sorted(sizes, reverse=True)
    small = [calibrate.randomized_response_n(0.1, e) * (e * 0.1) ** 2 for e in (0.01, 0.02, 0.04)]
    assert small == pytest.approx([small[0]] * 3, rel=0.01)  # n is c / (epsilon alpha)**2


def test_randomized_response_is_worse_than_a_curator_by_the_root_of_n():
    epsilon, n = 0.5, 400
    frame = pd.DataFrame({"x": [0, 1] * (n // 2)})
    p = frame.dp.open(1000, neighbors="replace-one", bounds={"x": (0, 1)})
    curator = [p.mean("x", epsilon=epsilon, fresh=True) - 0.5 for _ in range(300)]
    nobody = [
        local.estimate(p.randomize("x", keys=[0, 1], epsilon=epsilon, fresh=True)).loc[
            1, "frequency"
        ]
        - 0.5
        for _ in range(300)
    ]
    # sqrt(2)/(epsilon n) against 1/(2 sinh(epsilon/2) sqrt(n))
    assert np.std(curator) == pytest.approx(math.sqrt(2) / (epsilon * n), rel=0.25)
    assert np.std(nobody) == pytest.approx(
        1 / (2 * math.sinh(epsilon / 2) * math.sqrt(n)), rel=0.25
    )


# The Laplace distribution and mechanism -----------------------------------------------------------------------------------


def test_the_laplace_distribution_is_two_exponentials_back_to_back():
    b = 500
    noise = LaplaceNoise(F(b)).release(np.zeros((60_000, 1), dtype=np.int64))[:, 0].astype(float)
    assert noise.var() == pytest.approx(2 * b * b, rel=0.05)
    assert abs((noise > 0).mean() - 0.5) < 0.01
    for side in (noise[noise > 0], -noise[noise < 0]):
        assert stats.kstest(side / b, "expon").pvalue > 1e-6  # a step is 1/500 of the scale
        assert stats.kstest(side / b * 1.1, "expon").pvalue < 1e-6


def test_gaussian_noise_has_lighter_tails_than_laplace_noise():
    b, n = 100, 60_000
    sigma = math.sqrt(2) * b
    tails = [
        (
            calibrate.laplace_tail(reach=t * sigma, scale=b),
            calibrate.gaussian_tail(reach=t * sigma, sigma=sigma),
        )
        for t in (2, 3, 5, 10)
    ]
    ratios = [laplace / gauss for laplace, gauss in tails]
    assert ratios == sorted(
        ratios
    )  # the further out, the larger the difference: exp(-x) against exp(-x**2)
    assert 1 < ratios[0] < 2 < 1000 < ratios[2]
    both = [
        np.abs(noise.release(np.zeros((n, 1), dtype=np.int64)))
        for noise in (LaplaceNoise(F(b)), GaussianNoise(F(2 * b * b)))
    ]
    beyond = [int((noise > 5 * sigma).sum()) for noise in both]
    assert beyond[0] == pytest.approx(n * math.exp(-5 * math.sqrt(2)), abs=40)  # 51 are expected
    assert beyond[1] <= 1  # and 0.03 here


def test_the_density_in_the_picture_is_that_of_the_notes():
    for epsilon in (0.5, 2):
        line = plot.laplace(epsilon, (0, 1)).get_lines()[0]
        x, y = line.get_xdata(), line.get_ydata()
        b = 1 / epsilon
        assert np.allclose(y, np.exp(-np.abs(x) / b) / (2 * b))
        assert max(y) == pytest.approx(1 / (2 * b))


vectors = st.lists(st.integers(-4, 4), min_size=3, max_size=3)


@settings(max_examples=100, deadline=None)
@given(vectors, vectors, vectors, st.sampled_from([F(1, 10), F(1), F(5, 2)]))
def test_noise_by_the_l1_sensitivity_is_epsilon_private_for_vectors(f, g, z, epsilon):
    """The proof of the Laplace mechanism, in exact arithmetic: the loss at any point, and where it is largest."""
    apart = sum(abs(a - b) for a, b in zip(f, g, strict=True))
    if not apart:
        return
    scale = F(calibrate.laplace_scale(epsilon, sensitivity=apart))

    def loss(at: list[int], b: F) -> F:
        return sum((abs(c - y) - abs(c - x)) / b for c, x, y in zip(at, f, g, strict=True))

    assert abs(loss(z, scale)) <= epsilon
    assert loss(f, scale) == pytest.approx(epsilon)
    assert loss(f, scale * F(9, 10)) > epsilon
    longest = max(abs(a - b) for a, b in zip(f, g, strict=True))
    if longest < apart:  # the largest change of one coordinate is not enough
        assert loss(f, F(longest) / epsilon) > epsilon


def test_noise_grows_with_the_sensitivity_and_falls_with_epsilon():
    assert [calibrate.laplace_scale(e) for e in (0.5, 1, 2)] == [2, 1, 0.5]
    assert [calibrate.laplace_scale(0.5, sensitivity=s) for s in (1, 2, 7)] == [2, 4, 14]
    frame = pd.DataFrame({"x": [1.0]})
    p = frame.dp.open(10, bounds={"x": (0, 100)})
    assert [
        p.explain.sum("x", bounds=(0, top), epsilon=1).scale for top in (1, 10, 100)
    ] == pytest.approx([1, 10, 100])
    told = [
        pd.DataFrame({"x": rows}).dp.open(10).explain.count(epsilon=0.5).scale
        for rows in ([], [1.0] * 999)
    ]
    assert told == [2, 2]  # whatever the table is


# The mean -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 20, 300])
def test_the_mean_of_bits_has_sensitivity_one_over_n(n):
    bits = [0, 1] * n
    one, two = (pd.DataFrame({"x": x}) for x in (bits[:n], [1 - bits[0], *bits[1:n]]))
    terms: Any = {"neighbors": "replace-one", "bounds": {"x": (0, 1)}}
    plan = pd.DataFrame(one.to_dict("list")).dp.open(1, **terms).explain.mean("x", epsilon=0.5)
    assert plan.sensitivity / n == pytest.approx(
        1 / n
    )  # of the sum, over a number of rows that is public
    assert plan.scale / n == pytest.approx(1 / (0.5 * n))
    (step,) = audit.replay(lambda p: p.mean("x"), one, two, epsilon=1, **terms).steps
    assert step.distance == step.sensitivity  # and a flipped bit reaches it


@pytest.mark.parametrize("n", [4, 50])
def test_one_bit_moves_a_mean_by_one_over_n_and_its_noise_is_of_that_size(n):
    bits = [0, 1] * (n // 2)
    tables = [pd.DataFrame({"x": x}) for x in (bits, [1, *bits[1:]])]
    terms: Any = {"neighbors": "replace-one", "bounds": {"x": (0, 1)}}
    exact = [df.dp.open(1000, **terms).mean("x", epsilon=1000) for df in tables]  # hardly any noise
    assert n * (exact[1] - exact[0]) == pytest.approx(1, abs=0.03)
    draws = drawn(lambda p: p.mean("x", epsilon=2, fresh=True), tables[0], 400, 2, **terms)
    assert np.mean([abs(x - 0.5) > 1 / (2 * n) for x in draws]) == pytest.approx(
        math.exp(-1), abs=0.1
    )


def test_the_noise_of_a_mean_has_no_bias_but_where_it_is_cut_at_a_bound():
    """The expectation of the noisy mean is the mean; a mean of all ones is cut at 1, and so is too small on average."""
    n, epsilon, draws = 400, 0.5, 500
    terms: Any = {"neighbors": "replace-one", "bounds": {"x": (0, 1)}}
    half, ones = (pd.DataFrame({"x": x}) for x in ([0, 1] * (n // 2), [1] * n))
    scale = 1 / (n * epsilon)

    def average(verb: str, frame: pd.DataFrame) -> float:
        ask = lambda p: getattr(p, verb)("x", epsilon=epsilon, fresh=True)  # noqa: E731
        return float(np.mean(drawn(ask, frame, draws, epsilon, **terms)))

    middle = average("mean", half)
    assert middle == pytest.approx(0.5, abs=4 * math.sqrt(2) * scale / math.sqrt(draws))
    end = average("mean", ones)
    assert end == pytest.approx(
        1 - scale / 2, abs=5 * scale / math.sqrt(draws)
    )  # E[min(noise, 0)] = -b/2
    total = average("sum", ones)
    assert total == pytest.approx(
        n, abs=4 * math.sqrt(2) / epsilon / math.sqrt(draws)
    )  # a sum is not cut


def test_a_mean_is_within_two_over_n_epsilon_three_times_in_four():
    n, epsilon = 200, 0.5
    p = pd.DataFrame({"x": [0, 1] * (n // 2)}).dp.open(
        1000, neighbors="replace-one", bounds={"x": (0, 1)}
    )
    errors = [abs(p.mean("x", epsilon=epsilon, fresh=True) - 0.5) for _ in range(800)]
    beyond = np.mean([e > 2 / (n * epsilon) for e in errors])
    assert beyond <= 1 / 4
    assert beyond == pytest.approx(math.exp(-2), abs=0.05)
    assert calibrate.laplace_tail(reach=2, scale=1) == pytest.approx(math.exp(-2))
    # n >= 2/(alpha epsilon); and the tail for every other probability
    alpha = 2 / (n * epsilon)
    assert n * 0.65 <= calibrate.mean_n(alpha, epsilon, level=0.75) <= n
    for beta in (0.1, 0.01):
        reach = math.log(1 / beta) / (epsilon * n)
        assert np.mean([e > reach for e in errors]) <= beta + 4 * math.sqrt(beta / 800)
        assert calibrate.laplace_tail(reach=reach * n, scale=1 / epsilon) == pytest.approx(beta)


# Counting queries and histograms ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("k", [1, 3, 12])
def test_k_counting_queries_have_sensitivity_k_in_l1_and_its_root_in_l2(k, relation):
    """Somebody has every property and is replaced by somebody who has none; or is not there at all."""
    rest = [0, 5, k]
    one = pd.DataFrame({"has": [*rest, k]})  # so many of the properties
    two = pd.DataFrame({"has": [*rest, 0] if relation == "replace-one" else rest})
    questions = {f"property {i}": f"has > {i}" for i in range(k)}
    found = audit.replay(lambda p: p.counts(questions), one, two, epsilon=1, neighbors=relation)
    assert found.ok
    assert [(s.distance, s.sensitivity) for s in found.steps] == [(k, k)]
    p = pd.DataFrame(one.to_dict("list")).dp.open(100, delta=1e-4, neighbors=relation)
    laplace = p.explain.counts(questions, epsilon=0.5, mechanism="laplace")
    gaussian = p.explain.counts(questions, epsilon=0.5, delta=1e-6, mechanism="gaussian")
    assert (laplace.sensitivity, laplace.scale) == (k, k / 0.5)
    assert gaussian.sensitivity == pytest.approx(math.sqrt(k))


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_histogram_has_sensitivity_2_whatever_the_number_of_bins(relation):
    """2 where a person is replaced, as in the notes; 1 where one is added."""
    one = pd.DataFrame({"age": [3, 40, 40, 77]})
    two = pd.DataFrame({"age": [3, 40, 40, 51] if relation == "replace-one" else [3, 40, 40]})
    s = 2 if relation == "replace-one" else 1
    p = pd.DataFrame(one.to_dict("list")).dp.open(10, neighbors=relation, bounds={"age": (0, 100)})
    for bins in (2, 10, 1000):
        plan = p.explain.histogram("age", bins=bins, epsilon=0.5)
        assert (plan.sensitivity, plan.scale, plan.groups) == (s, s / 0.5, bins)
    (step,) = audit.replay(
        lambda q: q.histogram("age", bins=10),
        one,
        two,
        epsilon=1,
        neighbors=relation,
        bounds={"age": (0, 100)},
    ).steps
    assert (step.distance, step.sensitivity) == (s, s)


def test_all_bins_are_within_ten_plus_log_k_but_not_within_ten_log_k():
    """What the notes prove for any number of bins, and what their summary makes of it, which is false for one, two or three."""
    for k in (1, 2, 3, 4, 50, 10**6):
        assert calibrate.laplace_tail(reach=10 + math.log(k), scale=1, answers=k) <= math.exp(-10)
        summary = calibrate.laplace_tail(reach=10 * math.log(k), scale=1, answers=k)
        assert (summary <= math.exp(-10)) == (k >= 4)
        for beta in (0.05, 0.001):  # 2 log(k/beta)/epsilon for people who are replaced
            reach, scale = 2 * math.log(k / beta) / 0.5, calibrate.laplace_scale(0.5, sensitivity=2)
            assert calibrate.laplace_tail(reach=reach, scale=scale, answers=k) <= beta * (1 + 1e-9)
            assert calibrate.laplace_tail(reach=reach * 2 / 3, scale=scale, answers=k) > beta


def test_arbitrary_questions_pay_for_k_and_bins_for_log_k():
    def errors(k: int) -> tuple[float, float]:
        p = pd.DataFrame({"x": [1.0]}).dp.open(10, bounds={"x": (0, 1)})
        bins = p.explain.histogram("x", bins=k, epsilon=1).error(at_once=True)
        counts = p.explain.counts({i: f"x > {i}" for i in range(k)}, epsilon=1)
        return bins, max(counts.error().values())

    few, many = errors(4), errors(64)
    assert many[1] == pytest.approx(16 * few[1], rel=0.05)
    assert many[0] - few[0] == pytest.approx(math.log(16), abs=1)


# The Gaussian mechanism ---------------------------------------------------------------------------------------------------


def test_gaussian_formula_holds_below_epsilon_1_and_fails_above():
    for epsilon in (0.01, 0.5, 0.99):
        for delta in (1e-3, 1e-9):
            sigma = calibrate.gaussian_sigma(epsilon, delta, sensitivity=3, method="classic")
            assert sigma == pytest.approx(math.sqrt(2 * math.log(1.25 / delta)) * 3 / epsilon)
            assert calibrate.gaussian_delta(sigma, epsilon, sensitivity=3) <= delta
    epsilon, delta = 40, 1e-3
    assert (
        calibrate.gaussian_delta(math.sqrt(2 * math.log(1.25 / delta)) / epsilon, epsilon)
        > 2 * delta
    )


@pytest.mark.parametrize("k", [1, 4])
def test_gaussian_noise_by_the_l2_sensitivity_costs_what_it_says(k):
    """In the direction in which people move the vector its noise is one Gaussian, whatever k; and no epsilon is pure."""
    epsilon, delta, n = 0.5, 1e-3, 60_000
    sigma = calibrate.gaussian_sigma(epsilon, delta, sensitivity=math.sqrt(k))
    noise = GaussianNoise(F(sigma) ** 2).release(np.zeros((n, k), dtype=np.int64)).astype(float)
    along = (noise @ np.ones(k)) / math.sqrt(k)
    shift = math.sqrt(k)
    at = (
        sigma * sigma * epsilon / shift + shift / 2
    )  # where the ratio of the densities is e**epsilon
    one, two = ((along + s > at).mean() for s in (shift, 0))
    assert one - math.exp(epsilon) * two <= delta + 4 * math.sqrt(one / n)
    exact = stats.norm.sf((at - shift) / sigma) - math.exp(epsilon) * stats.norm.sf(at / sigma)
    assert exact == pytest.approx(delta, rel=1e-3)
    far = 40 * sigma
    ratio = stats.norm.logsf((far - shift) / sigma) - stats.norm.logsf(far / sigma)
    assert ratio > 2 * epsilon
