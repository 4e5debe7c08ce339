"""Goodness of fit of the noise, with twins that must fail: a scale too small, too large, or rounded floats.

One chi-square statistic over cells of at least 200 expected draws. A correct sampler fails a test with
probability at most 1e-6; a wrong one must fall below 1e-9, so the tests have power to spare.
"""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
from scipy import stats

from dpframe.mechanisms import _sampling as sampling

SMALL = 100_000
FULL = 10_000_000
ACCEPT = 1e-6
REJECT = 1e-9

SCALES = [F(1, 2), F(1), F(7, 3), F(10), F(1000), F(2**20), F(2**30) * F(20, 3)]
SIGMAS = [F(1, 2), F(1), F(7, 3), F(10), F(1000), F(2**20), F(2**40)]


# The laws, as P[X <= x]: closed forms, a sum, or a normal integral where the two agree to 1e-7


def laplace_cdf(scale):
    q = np.exp(-1 / scale)

    def cdf(x):
        below, above = np.minimum(x, -1), np.maximum(x, 0)
        return np.where(
            x < 0, np.exp(below / scale) / (1 + q), 1 - np.exp(-(above + 1) / scale) / (1 + q)
        )

    return cdf


def geometric_cdf(scale):
    return lambda x: np.where(x < 0, 0.0, -np.expm1(-(np.maximum(x, 0) + 1) / scale))


def gaussian_cdf(sigma):
    if sigma > 100:  # the midpoint rule; its error is below 1/(24 sigma**2)
        return lambda x: stats.norm.cdf((x + 0.5) / sigma)
    support = np.arange(-int(40 * sigma) - 2, int(40 * sigma) + 3)
    weights = np.exp(-(support**2) / (2 * sigma**2))
    sums = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
    return lambda x: sums[np.clip(x - support[0] + 1, 0, len(support)).astype(int)]


LAPLACE = (sampling.discrete_laplace, laplace_cdf, SCALES)
GEOMETRIC = (lambda scale, n: sampling.geometric(1 / scale, n), geometric_cdf, SCALES)
GAUSSIAN = (lambda sigma, n: sampling.discrete_gaussian(sigma**2, n), gaussian_cdf, SIGMAS)
LAWS = {"laplace": LAPLACE, "geometric": GEOMETRIC, "gaussian": GAUSSIAN}
CASES = [pytest.param(law, s, id=f"{name} {s}") for name, law in LAWS.items() for s in law[2]]


def merged(expected):
    """Numbers for the cells, the same for neighbours that together expect the 200 draws a cell needs."""
    numbers, number, total, left = [], 0, 0.0, expected.sum()
    for e in expected:
        if total >= 200 and left >= 200:
            number, total = number + 1, 0.0
        numbers.append(number)
        total += e
        left -= e
    return np.array(numbers)


def fit(x, cdf, scale):
    """The p-value of the draws x under P[X <= edge] = cdf(edge): unit cells, or about 200 wider ones."""
    reach = 12 * float(scale) + 3
    width = max(1, int(reach / 100))
    edges = np.arange(-int(reach / width), int(reach / width) + 1).astype(np.float64) * width
    cumulative = np.concatenate([[0.0], cdf(edges), [1.0]])
    expected = len(x) * np.diff(cumulative)
    observed = np.bincount(
        np.searchsorted(edges, x.astype(np.float64), side="left"), minlength=len(expected)
    )
    cells = merged(expected)
    observed, expected = np.bincount(cells, observed), np.bincount(cells, expected)
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1)


@pytest.fixture
def draws(full):
    """Draws per test: a smaller share unless pytest was called with ``-m slow``."""
    return FULL if full else SMALL


@pytest.mark.scaled
@pytest.mark.parametrize(("law", "scale"), CASES)
def test_draws_follow_the_law(law, scale, draws):
    draw, cdf, _ = law
    assert fit(draw(scale, draws), cdf(float(scale)), scale) > ACCEPT


@pytest.mark.parametrize("factor", [F(2, 3), F(3, 2)], ids=str)
@pytest.mark.parametrize(("law", "scale"), CASES)
def test_a_wrong_scale_is_seen(law, scale, factor):
    draw, cdf, _ = law
    assert fit(draw(scale * factor, SMALL), cdf(float(scale)), scale) < REJECT


@pytest.mark.parametrize(("law", "scale"), CASES)
def test_two_percent_of_scale_are_seen_in_a_million_draws(law, scale):
    draw, cdf, _ = law
    assert fit(draw(scale * F(49, 50), 1_000_000), cdf(float(scale)), scale) < REJECT


RNG_SEED = 5  # of the insecure twins only


@pytest.mark.parametrize("scale", [0.5, 1.0, 7 / 3])
def test_rounded_float_laplace_is_seen(scale):
    x = np.rint(np.random.default_rng(RNG_SEED).laplace(0, scale, SMALL))
    assert fit(x, laplace_cdf(scale), scale) < REJECT


@pytest.mark.parametrize("sigma", [0.5, 0.7, 1.0])
def test_rounded_float_gaussians_are_seen(sigma):
    """The two laws differ in variance by 1/12, so a million draws are needed at sigma = 1."""
    x = np.rint(np.random.default_rng(RNG_SEED).normal(0, sigma, 10 * SMALL))
    assert fit(x, gaussian_cdf(sigma), sigma) < REJECT


@pytest.mark.parametrize("scale", [0.5, 1.0, 7 / 3, 10.0])
def test_rounded_float_exponentials_are_seen(scale):
    """Rounded to nearest, that is: rounded down, an exponential variable is geometric."""
    x = np.random.default_rng(RNG_SEED).exponential(scale, SMALL)
    assert fit(np.rint(x), geometric_cdf(scale), scale) < REJECT
    assert fit(np.floor(x), geometric_cdf(scale), scale) > ACCEPT


# Python integers


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_huge_python_integers_follow_the_law(law):
    draw, cdf, _ = law
    scale = F(2**50, 3)
    x = draw(scale, 20_000)
    assert x.dtype == object
    assert fit(x, cdf(float(scale)), scale) > ACCEPT
    assert fit(draw(scale * F(2, 3), 20_000), cdf(float(scale)), scale) < REJECT


# Noise within a cut


def truncated_cdf(scale, cut):
    weights = np.exp(-np.abs(np.arange(-cut, cut + 1)) / float(scale))
    sums = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
    return lambda x: sums[np.clip(x + cut + 1, 0, len(sums) - 1).astype(int)]


# The cut is far below the scale, at it, and far above; Python integers beyond 2**48.
CUTS = [(F(10**12), 500), (F(700), 500), (F(500), 500), (F(100), 500), (F(7, 3), 4), (F(3), 1)]


@pytest.mark.scaled
@pytest.mark.parametrize(("scale", "cut"), CUTS, ids=str)
@pytest.mark.parametrize("at_once", [12, None])
def test_truncated_draws_follow_the_law(scale, cut, at_once, draws):
    if at_once is None:
        x = sampling.truncated_laplace(scale, cut, draws)
    else:
        x = np.concatenate([sampling.truncated_laplace(scale, cut, at_once) for _ in range(2000)])
    assert fit(x, truncated_cdf(scale, cut), F(cut, 10)) > ACCEPT
    wrong = sampling.truncated_laplace(scale / 2 if scale < 10**6 else F(cut), cut, SMALL)
    assert fit(wrong, truncated_cdf(scale, cut), F(cut, 10)) < REJECT


def test_truncated_draws_decided_by_integers_alone_follow_the_law(monkeypatch):
    monkeypatch.setattr(sampling, "_SLACK", 0.5)
    x = sampling.truncated_laplace(F(700), 500, 20_000)
    assert fit(x, truncated_cdf(F(700), 500), F(50)) > ACCEPT


@pytest.mark.parametrize("scale", [F(2**70), F(2**61), F(2**80)], ids=str)
def test_truncated_python_integers_follow_the_law(scale):
    cut = 2**70
    x = sampling.truncated_laplace(scale, cut, 20_000)
    assert x.dtype == object
    places = np.array([float(F(int(v), cut)) for v in x])
    rate = cut / float(scale)
    tail = np.exp(-rate)
    below = 0.5 * (np.exp(-rate * np.abs(places)) - tail) / (1 - tail)
    uniform = np.where(places < 0, below, 1 - below)
    assert stats.kstest(uniform, "uniform").pvalue > ACCEPT


# Rare paths, forced


@pytest.mark.parametrize("signed", [False, True])
def test_split_digits_follow_the_law(signed, monkeypatch):
    """At a split scale of 4 the doubtful V, the rejected Z and minus zero are all frequent."""
    monkeypatch.setattr(sampling, "_SPLIT_SCALE", 4)
    scale = F(70, 3)
    sampler = sampling._Split.of(3, 70, signed=signed)
    assert sampler.m == 3
    cdf = (laplace_cdf if signed else geometric_cdf)(float(scale))
    assert fit(sampling._draw(sampler, 40_000), cdf, scale) > ACCEPT
    monkeypatch.setattr(sampling._Split, "survives", lambda self, low, v: True)
    assert fit(sampling._draw(sampler, 40_000), cdf, scale) < REJECT


@pytest.mark.parametrize(
    ("law", "scale"), [(LAPLACE, F(7, 3)), (GEOMETRIC, F(10)), (GAUSSIAN, F(3))]
)
def test_draws_decided_by_integers_alone_follow_the_law(law, scale, monkeypatch):
    draw, cdf, _ = law
    monkeypatch.setattr(sampling, "_SLACK", 0.5)
    assert fit(draw(scale, 20_000), cdf(float(scale)), scale) > ACCEPT


@pytest.mark.parametrize(
    ("law", "scale"), [(LAPLACE, F(7, 3)), (GEOMETRIC, F(10)), (GAUSSIAN, F(3))]
)
def test_one_by_one_draws_follow_the_law(law, scale):
    draw, cdf, _ = law
    x = np.concatenate([draw(scale, 12) for _ in range(2000)])
    assert fit(x, cdf(float(scale)), scale) > ACCEPT


# Structure that cells do not show


@pytest.mark.parametrize(
    ("scale", "shift"),
    [
        (F(2**20), 0),
        (F(2**24) + 1, 0),
        (F(2**30) * F(20, 3), 0),
        (F(2**30) * F(20, 3), 5),
        (F(2**47), 19),
    ],
)
def test_low_bits_of_large_noise_are_uniform(scale, shift):
    """Eight bits far below the scale: at the bottom, and where the two parts of a draw meet."""
    x = np.abs(sampling.discrete_laplace(scale, SMALL)) >> shift
    assert stats.chisquare(np.bincount(x & 255, minlength=256)).pvalue > ACCEPT
    assert stats.chisquare(np.bincount((x | 1) & 255, minlength=256)).pvalue < REJECT


@pytest.mark.parametrize(
    ("law", "scale"), [(LAPLACE, F(20)), (LAPLACE, F(2**40)), (GAUSSIAN, F(20))]
)
def test_signs_and_neighbours_are_independent(law, scale):
    x = law[0](scale, SMALL).astype(np.float64)
    for a in (
        np.sign(x),
        np.sign(x[1:]) * np.sign(x[:-1]),
        (np.abs(x[1:]) - scale) * np.sign(x[:-1]),
    ):
        z = a.astype(np.float64).mean() / a.astype(np.float64).std() * np.sqrt(len(a))
        assert abs(z) < 5
    correlation = np.corrcoef(np.abs(x[1:]), np.abs(x[:-1]))[0, 1]
    assert abs(correlation) * np.sqrt(len(x)) < 5
    assert np.corrcoef(np.abs(x), np.abs(np.abs(x) - 1))[0, 1] * np.sqrt(len(x)) > 5


def test_every_permutation_is_equally_likely():
    orders = np.array([sampling.permutation(4) for _ in range(24_000)]) @ np.array([64, 16, 4, 1])
    counts = np.unique(orders, return_counts=True)[1]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > ACCEPT
    biased = np.array([np.argsort(sampling.geometric(F(2), 4)) for _ in range(24_000)]) @ np.array(
        [64, 16, 4, 1]
    )
    skewed = np.bincount(np.unique(biased, return_inverse=True)[1], minlength=24)
    assert stats.chisquare(skewed).pvalue < REJECT
