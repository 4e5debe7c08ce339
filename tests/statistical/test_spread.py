"""How far weighted sums of noise reach: the factor that intervals use, against exact laws."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpframe._plans.aggregates import Cell, Measured
from dpframe.mechanisms.noise import GaussianNoise, LaplaceNoise

# The reach of weighted sums ------------------------------------------------------------------------------------


def outside(weights: list[float], t: float) -> float:
    """P[|sum of weighted Laplace variables| > t deviations], exactly, by partial fractions in 300 digits.

    The characteristic function is a product of 1 / (1 + (b s)**2), so the tail is a sum of exponentials; equal
    weights are moved apart by 1e-8 of themselves, which such digits bear.
    """
    with localcontext() as context:
        context.prec = 300
        b = [Decimal(w) * (1 + i * Decimal("1e-8")) for i, w in enumerate(weights)]
        deviation = sum(2 * x * x for x in b).sqrt()
        total = Decimal(0)
        for i, x in enumerate(b):
            part = (-Decimal(t) * deviation / x).exp()
            for j, y in enumerate(b):
                if j != i:
                    part *= x * x / (x * x - y * y)
            total += part
        return float(total)


REACHES = [
    0.5,
    0.6,
    0.7,
    0.8,
    0.85,
    0.9,
    0.907,
    0.908,
    0.92,
    0.93,
    0.94,
    0.95,
    0.96,
    0.97,
    0.98,
    0.99,
    0.995,
    0.999,
]


def weight_lists() -> list[list[float]]:
    rng = np.random.default_rng(11)
    lists = [[1.0] * k for k in (1, 2, 3, 4, 8, 20)]
    lists += [[1.0, r] for r in np.linspace(0.02, 0.98, 13)]
    lists += [[1.0] + [r] * k for k in (2, 5, 19) for r in (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)]
    lists += [list(rng.uniform(0.01, 1, k)) for k in (2, 3, 4, 5, 10, 20) for _ in range(4)]
    lists += [list(0.6 ** np.arange(k)) for k in (3, 6, 12)]
    return lists


@pytest.mark.parametrize("level", REACHES)
def test_the_laplace_spread_holds_for_every_weighted_sum(level):
    for weights in weight_lists():
        assert outside(weights, LaplaceNoise.spread(level)) <= 1 - level + 1e-7, weights


def test_a_spread_of_one_law_alone_is_not_enough():
    """The twins: the quantile of a single Laplace variable at low levels, the normal one at high levels."""
    assert outside([1.0] * 20, -np.log(0.5) / np.sqrt(2)) > 0.5
    assert outside([1.0, 0.1], stats.norm.isf(0.005)) > 0.01
    assert outside([1.0], 1.0) == pytest.approx(np.exp(-np.sqrt(2)))


SCALES = [F(1, 8), F(1, 5), F(1, 3), F(1, 2), F(1), F(3, 2), F(2), F(10, 3), F(5), F(10)]


@pytest.mark.parametrize("law", [LaplaceNoise, GaussianNoise], ids=lambda law: law.name)
@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_sums_of_coarse_counts_stay_within_their_half_width(law, parts):
    """Few-step noise is far from any continuous law: exact convolution, for every interval that ends at a whole number."""
    for scale in SCALES:
        noise = LaplaceNoise(scale) if law is LaplaceNoise else GaussianNoise(scale**2)
        x = np.arange(-400, 401)
        mass = (
            np.exp(-np.abs(x) / float(scale))
            if law is LaplaceNoise
            else np.exp(-(x**2) / (2 * float(scale) ** 2))
        )
        mass /= mass.sum()
        together = mass
        for _ in range(parts - 1):
            together = np.convolve(together, mass)
        steps = np.abs(np.arange(len(together)) - len(together) // 2)
        m = Measured(cell_of_sum(parts), noise)
        for level in REACHES:
            half = m.half_width({"size": 1.0}, level)
            assert together[steps <= half + 1e-6].sum() >= level - 1e-9, (scale, level)


@pytest.mark.parametrize("law", [LaplaceNoise, GaussianNoise], ids=lambda law: law.name)
@pytest.mark.parametrize(
    "weights", [(1, 2), (1, 5), (5, 1), (1, 32), (1, 2, 7), (3, 4, 5, 6)], ids=str
)
def test_weighted_sums_of_coarse_counts_stay_within_their_half_width(law, weights):
    """Unequal weights: no quantile of an equal sum says how far they reach, whichever of them stands first, and the steps of
    such noise are too large for a continuous law."""
    for scale in SCALES:
        noise = LaplaceNoise(scale) if law is LaplaceNoise else GaussianNoise(scale**2)
        x = np.arange(-200, 201)
        s = float(scale)
        mass = np.exp(-np.abs(x) / s) if law is LaplaceNoise else np.exp(-(x**2) / (2 * s * s))
        mass /= mass.sum()
        together = np.ones(1)
        for weight in weights:
            spaced = np.zeros(400 * weight + 1)
            spaced[::weight] = mass
            together = np.convolve(together, spaced)
        steps = np.abs(np.arange(len(together)) - len(together) // 2)
        m = Measured(weighted(weights), noise)
        for level in REACHES:
            half = m.half_width({"size": 1.0}, level)
            assert together[steps <= half].sum() >= level - 1e-9, (scale, level)


@pytest.mark.parametrize("law", [LaplaceNoise, GaussianNoise], ids=lambda law: law.name)
def test_wide_noise_reaches_no_further_than_a_continuous_law(law):
    """What whole numbers cost is half a step of each: nothing where a deviation is thousands of them."""
    noise = LaplaceNoise(F(10**4)) if law is LaplaceNoise else GaussianNoise(F(10**8))
    for level in REACHES:
        assert noise.spread(level) <= noise.reach(level, 4) <= noise.spread(level) + 2e-4
        assert noise.reach(level, 10**6) <= 1.05 * noise.spread(level)


@pytest.mark.parametrize("law", [LaplaceNoise, GaussianNoise], ids=lambda law: law.name)
def test_noise_with_a_part_of_a_step_is_within_the_continuous_law(law):
    """What the reach stands on: P[|X + U| > t] of a uniform U, which is linear between half steps, at all t."""
    for scale in (*SCALES, F(1, 4), F(3, 5), F(7, 10), F(20)):
        s = float(scale)
        x = np.arange(-1000, 1001)
        mass = np.exp(-np.abs(x) / s) if law is LaplaceNoise else np.exp(-(x**2) / (2 * s * s))
        mass /= mass.sum()
        beyond = np.append(2 * np.cumsum(mass[:1000:-1])[::-1], 0.0)  # P[|X| > m]
        t = np.linspace(0, 12 * s, 5001)
        m = np.floor(t + 0.5).astype(int)
        step = np.where(m == 0, 2 * t * mass[1000], 2 * mass[1000 + m] * (t - m + 0.5))
        left = np.where(m == 0, 1.0, beyond[np.maximum(m - 1, 0)]) - step
        wide = 1 / (2 * np.tanh(0.5 / s)) if law is LaplaceNoise else np.sqrt(s * s + 0.2)
        assert (
            left
            <= (np.exp(-t / wide) if law is LaplaceNoise else 2 * stats.norm.sf(t / wide)) + 1e-12
        ).all()


def weighted(weights: tuple[int, ...]) -> Any:
    return Cell("size", "size", 0, 0.0, 1.0, 1, True, {"size": tuple(map(float, weights))}, {})


def cell_of_sum(parts: int) -> Any:
    """The cell of a count that left as several numbers."""
    return Cell("size", "size", 0, 0.0, 1.0, 1, True, {"size": (1.0,) * parts}, {})
