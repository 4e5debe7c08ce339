"""Levels of tests: how often a hypothesis that holds is rejected, over repeated samples and releases.

Too often is more often than has a probability below 1e-8 at the nominal level. The twins that must fail are tests that are told
of less noise than there is. The level of two means is the coverage of their difference (`test_population`).
"""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpframe  # noqa: F401  (frames have .dp then)
from dpframe._answers import hypotheses as hypotheses_module
from dpframe._ledger.store import unpack
from dpframe._plans import sampling
from dpframe._plans.plan import get_noisy_sums
from dpframe._questions.question import Release

ALPHA, RISK = 0.05, 1e-8
TABLES = {
    "even": ([0.5, 0.5], [0.5, 0.5]),
    "rare cells": ([0.02, 0.98], [0.1, 0.9]),
    "large and rare": ([0.01, 0.3, 0.69], [0.02, 0.08, 0.4, 0.5]),
}
DRAWS = {
    "even": lambda r, n: r.random(n),
    "skewed": lambda r, n: r.random(n) ** 9,
    "a rare yes": lambda r, n: (r.random(n) < 0.02).astype(float),
}


def generator(*words):
    return np.random.default_rng(zlib.crc32(repr(words).encode()))


def is_level(rejected, runs):
    """Whether so many rejections are no sign of a level above the nominal one."""
    return stats.binom.sf(rejected - 1, runs, ALPHA) >= RISK


def quieter(plan, factor):
    """The plan of a release with so much less noise."""
    less = [
        replace(part, noise=type(part.noise)(part.noise.scale * Fraction(factor)))
        for part in plan.parts
    ]
    return replace(plan, parts=tuple(less))


# Independence ----------------------------------------------------------------------------------------------------------


def rejections(kind, n, epsilon, runs, told=Fraction(1)):
    """How many tables of independent columns a test rejects that is told of so much of the noise."""
    rows, columns = TABLES[kind]
    p = pd.DataFrame({"a": [0], "b": [0]}).dp.open(
        100, keys={"a": range(len(rows)), "b": range(len(columns))}
    )
    plan = p.explain.crosstab("a", "b", epsilon=epsilon)
    rng, noise, found = generator(kind, n, epsilon), plan.parts[0].noise, 0
    for _ in range(runs):
        raw = (noise.release(rng.multinomial(n, np.outer(rows, columns).ravel())[None]),)
        tested = hypotheses_module.make_independence_test(
            Release(quieter(plan, told), raw), len(rows), ("a", "b")
        )
        found += tested.pvalue <= ALPHA
    return found


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("n", [40, 400, 4000])
@pytest.mark.parametrize("kind", TABLES)
def test_independence_keeps_its_level(kind, n, epsilon, full):
    runs = 2000 if full else 150
    assert is_level(rejections(kind, n, epsilon, runs), runs)


def test_independence_that_is_told_of_less_noise_does_not():
    """The twin."""
    assert not is_level(rejections("even", 400, 0.1, 100, told=Fraction(1, 4)), 100)


# Two shares ------------------------------------------------------------------------------------------------------------


def shares_release(plan, yes, n):
    """The noisy integers of the shares of two groups, of these numbers of people."""
    functionals = plan.cells[0].functionals
    step = round(1 / max(max(functionals["n"]), max(functionals["t1"])))
    return Release(plan, (plan.parts[0].noise.release(np.array([n - yes, yes]) * step),))


def draw_tests(shares, sizes, epsilon, runs, told=Fraction(1), *, delta=None):
    """Tests of two shares, each of a new sample; told of so much of the noise."""
    p = pd.DataFrame({"g": [0], "yes": [True]}).dp.open(100, delta=delta, keys={"g": [0, 1]})
    mechanism = "auto" if delta is None else "gaussian"
    plan = p.explain.groupby("g")["yes"].mean(epsilon=epsilon, mechanism=mechanism)
    rng, n = generator("shares", shares, sizes, epsilon), np.array(sizes)
    for _ in range(runs):
        release = shares_release(plan, rng.binomial(n, shares), n)
        if told != 1:
            release = release._replace(plan=quieter(plan, told))
        yield hypotheses_module.make_shares_test(release, ("a", "b"), 1 - ALPHA)


SIZES = [(15, 15), (60, 60), (400, 400), (4000, 4000), (30, 900), (900, 30)]


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0, 20.0])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("share", [0.0, 0.005, 0.05, 0.3, 0.5])
def test_shares_keep_their_level(share, sizes, epsilon, full):
    runs = 2000 if full else 60
    tests = draw_tests((share, share), sizes, epsilon, runs)
    assert is_level(sum(one.pvalue <= ALPHA for one in tests), runs)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("sizes", [(60, 60), (4000, 4000)])
def test_shares_keep_their_level_with_gaussian_noise(sizes, full):
    runs = 2000 if full else 60
    tests = draw_tests((0.1, 0.1), sizes, 0.3, runs, delta=1e-6)
    assert is_level(sum(one.pvalue <= ALPHA for one in tests), runs)


def test_shares_that_are_told_of_less_noise_do_not():
    """The twin."""
    runs = 60
    tests = draw_tests((0.3, 0.3), (400, 400), 0.1, runs, told=Fraction(1, 10))
    assert not is_level(sum(one.pvalue <= ALPHA for one in tests), runs)


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 20.0])
@pytest.mark.parametrize("sizes", [(60, 60), (400, 400), (4000, 4000), (30, 900)])
@pytest.mark.parametrize("shares", [(0.05, 0.08), (0.3, 0.5), (0.9, 0.1), (0.01, 0.4), (1.0, 0.0)])
def test_intervals_of_shares_cover_and_never_contradict_the_p_value(shares, sizes, epsilon, full):
    runs, missed = 2000 if full else 60, 0
    for one in draw_tests(shares, sizes, epsilon, runs):
        low, high = one.interval
        missed += not low - 1e-6 <= shares[0] - shares[1] <= high + 1e-6
        assert (one.pvalue <= ALPHA) == (low > 0 or high < 0)
    assert is_level(missed, runs)


def test_distances_of_shares_have_the_noise_in_them():
    weights = np.array([0.0, 1.0]), np.array([1.0, 1.0])  # of the numbers of no and of yes
    yes, n = np.array([300.0, 200.0]), np.array([1000.0, 500.0])
    quiet, loud = (hypotheses_module.NoisyShares(yes, n, *weights, noise) for noise in (0.0, 50.0))
    share = 500 / 1500
    draws = share * (1 - share) * (1 / 1000 + 1 / 500)
    noise = 50**2 * ((1 - share) ** 2 + share**2) * (1 / 1000**2 + 1 / 500**2)
    assert quiet.distance == pytest.approx(0.1 / np.sqrt(draws))
    assert loud.distance == pytest.approx(0.1 / np.sqrt(draws + noise))


def test_shares_are_found_as_often_as_by_independence():
    sizes, shares, runs = (2000, 2000), (0.3, 0.35), 60
    found = sum(one.pvalue <= ALPHA for one in draw_tests(shares, sizes, 0.5, runs))
    assert found >= 0.75 * runs  # a chi-square without privacy: 0.92


@pytest.mark.parametrize(
    ("n", "share"), [(0, 0.5), (30, 0.0), (30, 1.0), (30, 0.1), (1e4, 0.3), (1e9, 0.5)]
)
def test_made_up_counts_have_the_binomial_law(n, share):
    uniform = hypotheses_module.SeededNumbers(b"seed").draw_uniform(20_000)
    numbers = hypotheses_module.draw_binomial(n, share, uniform)
    deviation = np.sqrt(n * share * (1 - share))
    assert numbers.mean() == pytest.approx(n * share, abs=6 * deviation / np.sqrt(20_000) + 1e-12)
    assert numbers.std() == pytest.approx(deviation, rel=0.03, abs=1e-12)
    assert ((numbers >= 0) & (numbers <= n)).all()


# A correlation ---------------------------------------------------------------------------------------------------------


def released(first, second, n, epsilon, runs):
    """Samples of independent columns, a group a run, and the release of their variances and covariances."""
    rng = generator(first, second, n)
    x, y = DRAWS[first](rng, runs * n), DRAWS[second](rng, runs * n)
    df = pd.DataFrame({"x": x, "y": y, "run": np.repeat(np.arange(runs), n)})
    p = df.dp.open(1000, bounds={"x": (0, 1), "y": (0, 1)}, keys={"run": range(runs)})
    answer = p.groupby("run")[["x", "y"]].corr(epsilon=epsilon)
    return answer.dp.plan, unpack(json.loads(answer.attrs["dpframe_receipt"])["raw"])


def excluded(plan, raw):
    """How many of the runs a test rejects."""
    cells = [next(c for c in plan.cells if c.name == name) for name in ("x, x", "x, y", "y, y")]
    return int(
        hypotheses_module.are_excluded(
            *(get_noisy_sums(plan, raw, cell) for cell in cells), ALPHA
        ).sum()
    )


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("n", [20, 500])
@pytest.mark.parametrize(
    ("first", "second"), [("even", "skewed"), ("a rare yes", "a rare yes"), ("skewed", "skewed")]
)
def test_a_correlation_keeps_its_level(first, second, n, epsilon):
    assert is_level(excluded(*released(first, second, n, epsilon, 2000)), 2000)


def test_correlation_keeps_its_level_where_noise_is_most_of_the_error():
    assert is_level(excluded(*released("even", "even", 20_000, 0.05, 300)), 300)


def test_a_correlation_that_is_told_of_less_noise_does_not():
    """The twin."""
    plan, raw = released("even", "even", 200, 0.1, 2000)
    assert not is_level(excluded(quieter(plan, Fraction(1, 200)), raw), 2000)
    assert is_level(excluded(plan, raw), 2000)


# What all have in common ------------------------------------------------------------------------------------------------


def test_a_p_value_never_contradicts_its_interval():
    rng = generator("both")
    for shift in np.linspace(0, 0.3, 6):
        x = np.clip(rng.random(3000) + np.tile([0, shift], 1500), 0, 1)
        p = pd.DataFrame({"x": x, "g": ["a", "b"] * 1500}).dp.open(
            100, bounds={"x": (0, 1)}, keys={"g": ["a", "b"]}
        )
        found = p.test.means("x", by="g", epsilon=2)
        low, high = found.interval
        assert (found.pvalue <= ALPHA) == (low > 0 or high < 0)
        assert low <= found.estimate <= high


def test_a_repeated_test_is_free_and_says_the_same():
    df = pd.DataFrame(
        {"a": ["x", "y"] * 200, "b": ["u", "v", "v", "u"] * 100, "c": np.arange(400) / 400}
    )
    p = df.dp.open(10, bounds={"c": (0, 1)}, keys={"a": ["x", "y"], "b": ["u", "v"]})
    asked = [
        lambda: p.test.independence("a", "b", epsilon=1),
        lambda: p.test.means("c", by="a", epsilon=1),
    ]
    first = [ask() for ask in asked]
    spent = p.budget.spent
    assert [ask() for ask in asked] == first
    assert p.budget.spent == spent


def test_the_tests_find_what_is_there():
    rng = generator("power")
    g = rng.choice(["a", "b"], 4000)
    x = np.clip(rng.normal(0.4, 0.1, 4000) + 0.05 * (g == "a"), 0, 1)
    df = pd.DataFrame(
        {
            "g": g,
            "x": x,
            "y": np.clip(x + rng.normal(0, 0.2, 4000), 0, 1),
            "b": rng.random(4000) < 0.3 + 0.3 * (g == "a"),
        }
    )
    p = df.dp.open(100, bounds={"x": (0, 1), "y": (0, 1)}, keys={"g": ["a", "b"]})
    found = [
        p.test.means("x", by="g", epsilon=2),
        p.test.shares("b", by="g", epsilon=2),
        p.test.correlation("x", "y", epsilon=2),
        p.test.independence("g", "b", epsilon=2),
    ]
    assert [one.pvalue < 0.001 for one in found] == [True] * 4
    assert 0.03 < found[0].estimate < 0.07
    assert 0.2 < found[1].estimate < 0.4


@pytest.mark.parametrize("mean", [0.0, 0.3, 7.5, 400.0, 2e6])
def test_made_up_counts_have_the_law_of_poisson(mean):
    numbers = hypotheses_module.SeededNumbers(b"seed").draw_poisson(mean, 20_000)
    assert numbers.mean() == pytest.approx(mean, abs=6 * np.sqrt(mean / 20_000) + 1e-12)
    assert numbers.var() == pytest.approx(mean, rel=0.06)


@pytest.mark.parametrize("mean", [0.7, 3.0, 12.5, 80.0])
def test_the_normal_law_bounds_the_tails_of_poisson(mean):
    """The bound that the interval of a number to expect goes by (Short 2013, theorem 2)."""
    k = np.arange(0, 200)
    with np.errstate(divide="ignore", invalid="ignore"):
        h = np.where(k > 0, k * np.log(k / mean), 0.0) - k + mean
    normal = stats.norm.cdf(np.sign(k - mean) * np.sqrt(2 * np.maximum(h, 0)))
    law = stats.poisson.cdf(k, mean)
    assert (normal <= law + 1e-12).all()
    assert (law[:-1] <= normal[1:] + 1e-12).all()


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_numbers_to_expect_are_those_that_poisson_allows(level):
    counts = np.array([0.0, 1.0, 5.0, 300.0])
    low, high = sampling.enclose_expectation(counts, counts, stats.norm.ppf((1 + level) / 2))
    exact = (
        stats.chi2.ppf((1 - level) / 2, 2 * counts) / 2,
        stats.chi2.ppf((1 + level) / 2, 2 * counts + 2) / 2,
    )
    assert (low <= np.nan_to_num(exact[0]) + 1e-9).all()
    assert (high >= exact[1] - 1e-9).all()
    assert (high - low <= exact[1] - np.nan_to_num(exact[0]) + 3).all()


def test_noise_beyond_all_shares_gives_no_p_value_of_one():
    frame = pd.DataFrame(
        {"arm": ["a", "b"] * 2000, "well": [True, False, True, True] * 1000}
    )  # all of a are well
    for _ in range(12):
        p = frame.copy().dp.open(10, keys={"arm": ["a", "b"]}, because="an example")
        tested = p.test.shares("well", by="arm", epsilon=5)
        assert tested.pvalue < 0.001
        assert tested.interval[0] > 0.4


@pytest.mark.parametrize("factor", [1 - 1e-15, 1.0, 1 + 1e-15])
def test_an_interval_of_shares_ends_on_the_side_of_zero_that_the_distance_says(factor):
    weights = np.array([0.0, 1.0]), np.array([1.0, 1.0])
    yes, n = np.array([300.0, 200.0]), np.array([1000.0, 500.0])
    seen = hypotheses_module.NoisyShares(yes, n, *weights, 3.0)
    critical = float(seen.distance) * factor
    low, high = hypotheses_module.enclose_shares_difference(seen, critical)
    assert low < -0.1 < high
    assert (high < 0) == (float(seen.distance) > critical)
