"""Intervals of the population over repeated samples: they cover what the people were drawn from, whatever its shape.

Each run is a group of its own: people are drawn, released with noise, and the interval of that group is looked at. A coverage is
too low when so few hits have a probability below 1e-8. The twin that must fail is the interval of the noise alone.
"""

from __future__ import annotations

import json
import zlib
from fractions import Fraction as F
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp

import dpframe  # noqa: F401  (frames have .dp then)
from dpframe._ledger.store import unpack
from dpframe._plans import sampling
from dpframe._plans.plan import get_noisy_sums
from dpframe._questions.question import enclose_output
from dpframe.mechanisms.noise import GaussianNoise, LaplaceNoise

RUNS, LEVEL, RISK = 2000, 0.95, 1e-8

# Each population between 0 and 1: what is drawn from it, its mean and its quantiles.
POPULATIONS = {
    "even": (lambda r, n: r.random(n), 0.5, lambda q: q),
    "skewed": (lambda r, n: r.random(n) ** 9, 0.1, lambda q: q**9),
    "far and rare": (
        lambda r, n: np.where(r.random(n) < 0.02, 1.0, 0.01 * r.random(n)),
        0.0249,
        None,
    ),
    "yes or no": (lambda r, n: (r.random(n) < 0.3).astype(float), 0.3, None),
    "a rare yes": (lambda r, n: (r.random(n) < 0.005).astype(float), 0.005, None),
}
CELLS = [(n, epsilon) for n in (8, 60, 800) for epsilon in (0.1, 1.0, 10.0)]


def generator(*words):
    return np.random.default_rng(zlib.crc32(repr(words).encode()))


def samples(population, n, *words):
    """``RUNS`` samples of n people each, as one frame with a session whose groups are the runs."""
    draw, _, _ = POPULATIONS[population]
    x = draw(generator(population, n, *words), RUNS * n)
    return opened(pd.DataFrame({"x": x, "run": np.repeat(np.arange(RUNS), n)}))


def opened(df, **words):
    words = {"bounds": {"x": (0, 1)}, "keys": {"run": range(RUNS)}, **words}
    return df.dp.open(1000, because="each test is a population of its own", **words)


def hits(ends, truth):
    return int(((ends["lower"] <= truth + 1e-9) & (truth - 1e-9 <= ends["upper"])).sum())


def is_covered(found):
    """Whether so many hits of all runs are no sign of a coverage below the level."""
    return stats.binom.cdf(found, RUNS, LEVEL) >= RISK


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("together", [["mean"], ["mean", "std"]], ids=["alone", "with squares"])
@pytest.mark.parametrize(("n", "epsilon"), CELLS)
@pytest.mark.parametrize("population", POPULATIONS)
def test_means_and_shares_cover_those_of_the_population(population, n, epsilon, together):
    p, truth = samples(population, n), POPULATIONS[population][1]
    answer = p.groupby("run")["x"].agg(together, epsilon=epsilon)["mean"]
    assert is_covered(hits(answer.dp.interval(LEVEL, of="population"), truth))


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(("n", "epsilon"), CELLS)
@pytest.mark.parametrize("population", POPULATIONS)
def test_means_of_a_public_number_of_people_cover_that_of_the_population(population, n, epsilon):
    """Under replace-one without groups, which is one run: here its integers are made for all of them."""
    draw, truth, _ = POPULATIONS[population]
    df = pd.DataFrame({"x": np.zeros(n, dtype=int)})
    plan = df.dp.open(100, bounds={"x": (0, 1)}, neighbors="replace-one").explain.mean(
        "x", epsilon=epsilon
    )
    width = 1 / (2 * plan.cells[0].functionals["t1"][0])
    x = np.rint(draw(generator(population, n, "public"), (RUNS, n)) * width).astype(np.int64)
    raw = (plan.parts[0].noise.release((2 * x - round(width)).sum(axis=1)[None]),)
    assert plan.cells[0].constants["n"] == n
    low, high = enclose_output(plan, raw, 0, LEVEL, sampling.About(population=True))
    assert is_covered(hits({"lower": low, "upper": high}, truth))


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("population", POPULATIONS)
def test_the_noise_alone_does_not_cover_the_population(population):
    """The twin without the sampling error."""
    p, truth = samples(population, 800, "twin"), POPULATIONS[population][1]
    answer = p.groupby("run")["x"].mean(epsilon=10)
    assert not is_covered(hits(answer.dp.interval(LEVEL), truth))


def test_a_released_deviation_narrows_the_interval():
    p = samples("even", 800)
    alone, beside = (
        p.groupby("run")["x"].agg(a, epsilon=10)["mean"] for a in (["mean"], ["mean", "std"])
    )
    widths = [
        (e["upper"] - e["lower"]).mean()
        for e in (a.dp.interval(of="population") for a in (alone, beside))
    ]
    assert widths[1] < 0.8 * widths[0]


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("law", ["poisson", "fixed"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("expected", [0.3, 3.0, 40.0, 700.0])
def test_counts_cover_the_number_to_expect(expected, epsilon, law):
    rng = generator("counts", expected, law)
    sizes = (
        rng.poisson(expected, RUNS)
        if law == "poisson"
        else rng.binomial(1000, expected / 1000, RUNS)
    )
    p = opened(pd.DataFrame({"run": np.repeat(np.arange(RUNS), sizes), "x": 0.5}))
    answer = p.groupby("run").size(epsilon=epsilon)
    assert is_covered(hits(answer.dp.interval(LEVEL, of="population"), expected))


def test_the_noise_alone_does_not_cover_the_number_to_expect():
    sizes = generator("twin of counts").poisson(700, RUNS)
    p = opened(pd.DataFrame({"run": np.repeat(np.arange(RUNS), sizes), "x": 0.5}))
    answer = p.groupby("run").size(epsilon=10)
    assert not is_covered(hits(answer.dp.interval(LEVEL), 700))
    assert is_covered(hits(answer.dp.interval(LEVEL, of="population"), 700))


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("epsilon", [0.02, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("share", [0.01, 0.4])
@pytest.mark.parametrize("n", [20, 800])
def test_normalized_counts_cover_the_share_in_the_population(n, share, epsilon):
    rng = generator("shares", n, share)
    kind = np.where(rng.random(RUNS * n) < share, "a", "b")
    df = pd.DataFrame({"run": np.repeat(np.arange(RUNS), n), "kind": kind})
    p = opened(df, bounds={}, keys={"run": range(RUNS), "kind": ["a", "b", "c"]})
    answer = p.crosstab("run", "kind", normalize="index", epsilon=epsilon)
    assert is_covered(hits(answer.dp.interval(LEVEL, of="population")["a"], share))


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("n", [20, 800])
@pytest.mark.parametrize(("population", "q"), [("even", 0.5), ("skewed", 0.5), ("even", 0.02)])
def test_quantiles_of_a_tree_cover_those_of_the_population(population, q, n, epsilon):
    p = samples(population, n, "tree")
    answer = p.groupby("run")["x"].quantile([q], method="tree", resolution=1 / 64, epsilon=epsilon)
    truth = round(POPULATIONS[population][2](q) * 64) / 64  # of values on that grid
    assert is_covered(hits(answer.dp.interval(LEVEL, of="population"), truth))


def test_the_noise_of_a_tree_does_not_cover_the_quantile_of_the_population():
    p = samples("even", 800, "tree twin")
    answer = p.groupby("run")["x"].quantile([0.3], method="tree", resolution=1 / 1024, epsilon=40)
    assert not is_covered(hits(answer.dp.interval(LEVEL), round(0.3 * 1024) / 1024))
    assert is_covered(hits(answer.dp.interval(LEVEL, of="population"), round(0.3 * 1024) / 1024))


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("epsilon", [1.0, 10.0])
@pytest.mark.parametrize("n", [60, 800])
@pytest.mark.parametrize("of", ["noise", "population"])
def test_chosen_quantiles_bound_one_another(of, n, epsilon):
    p, levels = samples("skewed", n, "chosen"), [0.2, 0.35, 0.5, 0.65, 0.8]
    answer = p.groupby("run")["x"].quantile(levels, resolution=1 / 64, epsilon=epsilon)
    ends = (
        answer.dp.interval(LEVEL, of=of, n=n).xs(0.5, level=1).fillna({"lower": 0.0, "upper": 1.0})
    )
    truth = round(0.5**9 * 64) / 64
    if of == "noise":
        x = p_values(p, n)
        truth = np.round(np.quantile(x, 0.5, axis=1) * 64) / 64
    assert is_covered(hits(ends, truth))


def p_values(p, n):
    """The values that were drawn, a row a run."""
    return POPULATIONS["skewed"][0](generator("skewed", n, "chosen"), RUNS * n).reshape(RUNS, n)


@pytest.mark.parametrize("step", [0, 10])
def test_levels_that_are_too_near_do_not_bound_one_another(step):
    """The twin: levels that are taken to be certain would miss."""
    df = pd.DataFrame({"x": np.linspace(0, 1, 50)})
    p = df.dp.open(10, bounds={"x": (0, 1)})
    answer = p.quantile("x", [0.45 - step / 100, 0.5], epsilon=1)
    ends = answer.dp.interval(n=50)
    unbounded = bool(((ends["lower"] == 0) & (ends["upper"] == 1)).all())
    assert unbounded == (answer.dp.ranks(0.975) > (5 + step) / 100 * 50 - 1)


@pytest.mark.slow
@pytest.mark.parametrize("together", [["mean"], ["mean", "std"]], ids=["alone", "with squares"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("n", "m"), [(8, 60), (60, 800)])
@pytest.mark.parametrize(
    "pair", [("skewed", "skewed"), ("even", "a rare yes"), ("far and rare", "far and rare")]
)
def test_differences_cover_that_of_two_populations(pair, n, m, epsilon, together):
    ends = [
        draws_in(name, size, epsilon, together, side)
        for side, (name, size) in enumerate(zip(pair, (n, m), strict=True))
    ]
    lower, upper = sampling.enclose_differences(*ends, (1 - LEVEL) * sampling.REST)
    truth = POPULATIONS[pair[0]][1] - POPULATIONS[pair[1]][1]
    assert is_covered(hits({"lower": lower, "upper": upper}, truth))


def draws_in(population, n, epsilon, together, side):
    """The draws of all runs, as the difference of two groups has them, with half of the risk that it sets aside for each."""
    answer = (
        samples(population, n, "difference", side)
        .groupby("run")["x"]
        .agg(together, epsilon=epsilon)
    )
    raw = unpack(json.loads(answer.attrs["dpframe_receipt"])["raw"])
    return sampling.make_draws(
        get_noisy_sums(answer.dp.plan, raw, answer.dp.plan.cells[0]), (1 - LEVEL) / 2
    )


@pytest.mark.parametrize("together", [["mean"], ["mean", "std"]], ids=["alone", "with squares"])
@pytest.mark.parametrize("population", POPULATIONS)
def test_no_mean_beyond_the_ends_is_kept(population, together):
    """Of 501 means none that is kept lies outside of what a search on 33 points finds."""
    draws, means = draws_in(population, 60, 1.0, together, 0), np.linspace(0, 1, 501)
    draws = draws.part(slice(0, 30))
    rate = sampling.find_rate(1 - LEVEL)
    low, high = draws.ends(rate)
    for mean in means:
        every = np.full(30, mean)
        kept = draws._is_possible(every, np.full(30, rate), True) & draws._is_possible(
            every, np.full(30, rate), False
        )
        assert not (kept & ((mean < low - 1e-9) | (mean > high + 1e-9))).any()


@pytest.mark.parametrize("population", POPULATIONS)
def test_differences_of_a_larger_risk_lie_within_those_of_a_smaller_one(population):
    """Which a p-value, the least risk at which 0 is left out, rests on."""
    first, second = (draws_in(population, 60, 1.0, ["mean", "std"], side) for side in (0, 1))
    first, second = first.part(slice(0, 10)), second.part(slice(0, 10))
    ends = [
        sampling.enclose_differences(first, second, risk) for risk in np.geomspace(1e-9, 0.5, 9)
    ]
    for (low, high), (inner_low, inner_high) in pairwise(ends):
        assert (inner_low >= low - 1e-9).all()
        assert (inner_high <= high + 1e-9).all()


# What the bounds are made of ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "noise",
    [LaplaceNoise(F(3, 2)), LaplaceNoise(F(40)), GaussianNoise(F(1, 4)), GaussianNoise(F(90))],
    ids=repr,
)
def test_moments_of_noise_are_those_of_its_law(noise):
    steps = np.arange(-4000, 4001, dtype=float)
    logs = (
        -np.abs(steps) / float(noise.scale)
        if isinstance(noise, LaplaceNoise)
        else -(steps**2) / (2 * float(noise.variance))
    )
    for t in np.linspace(0, 0.9, 10) / noise.deviation:
        if isinstance(noise, LaplaceNoise) and t * float(noise.scale) > 0.95:
            continue  # it has no moments from one on
        summed = logsumexp(logs + t * steps) - logsumexp(logs)
        assert noise.cumulant(np.array(t)) >= summed - 1e-9
        assert noise.cumulant(np.array(t)) <= summed * 1.2 + 0.02
        assert noise.cumulant(np.array(-t)) == noise.cumulant(np.array(t))
    assert np.isinf(LaplaceNoise(F(2)).cumulant(np.array(0.5)))


def test_moments_of_draws_are_at_most_those_of_two_points():
    rng = generator("moments")
    for draw, mean, _ in POPULATIONS.values():
        x = draw(rng, 200_000) - mean
        variance = max(float(x.var()), 1e-9) * 1.02
        for rate in (0.1, 1.0, 5.0):
            bound = sampling.bound_log_moment(np.array(rate), 1 - mean, variance)
            assert np.log(np.exp(rate * x).mean()) <= bound + 0.01
    two = sampling.bound_log_moment(np.array(2.0), 0.7, 0.21)
    assert two == pytest.approx(np.log(0.7 * np.exp(-0.6) + 0.3 * np.exp(1.4)))


@pytest.mark.parametrize("risk", [0.5, 0.025, 1e-6])
def test_two_rates_add_up_to_more_with_their_risk(risk):
    rate = sampling.find_rate_of_two(risk)
    assert stats.gamma.sf(rate, 2) == pytest.approx(risk)
    assert stats.gamma.sf(rate, 2) <= risk * (1 + 1e-12)
    assert 2 * np.exp(-sampling.find_rate(risk)) == pytest.approx(risk)


@pytest.mark.parametrize("share", [0.02, 0.5])
@pytest.mark.parametrize("n", [5, 300])
def test_a_binomial_number_deviates_by_more_with_its_risk(n, share):
    half = float(sampling.bound_share_deviation(np.array([float(n)]), share, 0.05)[0])
    law = stats.binom(n, share)
    outside = law.sf(np.floor(n * share + half)) + law.cdf(np.ceil(n * share - half) - 1)
    assert outside <= 0.05
    assert half <= n
