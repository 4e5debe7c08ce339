"""Margins and proportions under noise: they add up, and their intervals cover what they would be without it."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pandas as pd
import pytest

from dpframe._answers.layout import SummedNoise
from dpframe.mechanisms.noise import GaussianNoise, LaplaceNoise

STATES, ZONES = ["CA", "NY", "WA"], [1, 2]
BOUNDS = {"age": (0, 110)}
EXACT = 900  # noise of a count is zero but once in 10**390


@pytest.fixture
def df():
    rng = np.random.default_rng(11)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 110, 600),
            "state": rng.choice(STATES, 600),
            "zone": rng.choice(ZONES, 600),
        }
    )


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("share", [None, "all", "index", "columns"])
def test_noisy_margins_add_up(df, delta, share):
    p = df.dp.open(1, delta, bounds=BOUNDS, keys={"state": STATES, "zone": ZONES})
    counts = p.crosstab("state", "zone", margins=True, epsilon=0.05)
    assert counts.loc["All"].equals(counts.loc[STATES].sum().rename("All"))
    assert counts["All"].equals(counts[ZONES].sum(axis=1).rename("All"))
    if share is not None:
        body = p.crosstab("state", "zone", normalize=share, epsilon=0.05)
        total = {"all": body.sum().sum(), "index": body.sum(axis=1), "columns": body.sum()}[share]
        whole = counts.loc[STATES, ZONES].sum(axis={"all": None, "index": 1, "columns": 0}[share])
        np.testing.assert_allclose(np.asarray(total)[np.asarray(whole) > 0], 1)
        assert (
            np.isnan(np.asarray(total)) | (np.asarray(whole) > 0) | (np.asarray(total) == 0)
        ).all()
        assert len(p.ledger) == 1  # counts, margins and proportions are one question
    sums = p.pivot_table("age", "state", "zone", aggfunc="sum", margins=True, epsilon=0.05)
    assert sums["All"].equals(sums[ZONES].sum(axis=1).rename("All"))


def test_proportions_of_a_total_that_is_not_positive_are_nan():
    p = pd.DataFrame({"k": ["a"]}).iloc[:0].dp.open(1000)
    found = p.value_counts("k", keys=["a", "b"], normalize=True, epsilon=50)
    assert found.isna().all()
    assert found.name == "proportion"
    assert found.dp.interval().to_numpy().tolist() == [[0, 1], [0, 1]]
    assert (
        p.crosstab("k", "k", keys={"k": ["a"]}, normalize="index", epsilon=50).isna().all(axis=None)
    )


COVERED = {
    "counts": lambda p: p.crosstab("state", "zone", margins=True, fresh=True, epsilon=0.5),
    "coarse counts": lambda p: p.crosstab("state", "zone", margins=True, fresh=True, epsilon=2),
    "proportions": lambda p: p.crosstab(
        "state", "zone", normalize=True, margins=True, fresh=True, epsilon=0.5
    ),
    "of rows": lambda p: p.crosstab(
        "state", "zone", normalize="index", margins=True, fresh=True, epsilon=0.5
    ),
    "means": lambda p: p.pivot_table("age", "state", "zone", margins=True, fresh=True, epsilon=0.5),
}
# Of 200 draws, each right with probability 0.95, fewer than 173 are right less than once in 10**5 times.
DRAWS, ENOUGH = 200, 173


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("ask", COVERED)
def test_intervals_of_margins_and_proportions_cover(df, ask, delta):
    known = df.dp.open(
        1000, bounds=BOUNDS, keys={"state": STATES, "zone": ZONES}, because="the truth"
    )
    p = df.copy().dp.open(
        1000, delta, bounds=BOUNDS, keys={"state": STATES, "zone": ZONES}, because="many draws"
    )
    exact = COVERED[ask](Loud(known)).to_numpy(dtype=float)
    inside = np.zeros(exact.shape)
    for _ in range(DRAWS):
        ends = COVERED[ask](p).dp.interval().to_numpy(dtype=float)
        slack = 1e-6 * np.abs(exact) + 1e-9
        inside += (ends[:, ::2] <= exact + slack) & (exact - slack <= ends[:, 1::2])
    assert (inside >= ENOUGH).all()
    if ask == "counts":  # and the check can fail: intervals of a margin as if it were one group
        assert narrow(COVERED[ask], p, exact) < ENOUGH


class Loud:
    """The same frame, whatever the price."""

    def __init__(self, p):
        self._p = p

    def __getattr__(self, verb):
        return lambda *a, **o: getattr(self._p, verb)(*a, **{**o, "epsilon": EXACT})


def narrow(ask, p, exact):
    """How often the total lies within what would do for one cell."""
    found = 0
    for _ in range(DRAWS):
        answer = ask(p)
        ends = answer.dp.interval().to_numpy(dtype=float)
        half = (ends[0, 1] - ends[0, 0]) / 2
        found += abs(answer.to_numpy()[-1, -1] - exact[-1, -1]) <= half
    return found


# Sums of noise ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("terms", [2, 3, 16, 50, 200])
def test_half_width_of_a_margin_covers_the_exact_law(terms, kind):
    """By convolution of the law of one noise, for levels up to a risk of a millionth."""
    size, half = 2**14, 150
    steps = np.arange(-half, half + 1)
    for spread in np.geomspace(0.08, 3, 40):
        scale = F(float(spread)).limit_denominator(10**6)
        noise = LaplaceNoise(scale) if kind == "laplace" else GaussianNoise(scale**2)
        law = np.exp(
            -np.abs(steps) / float(scale)
            if kind == "laplace"
            else -(steps**2) / (2 * float(scale**2))
        )
        one = np.roll(np.pad(law / law.sum(), (0, size - len(law))), -half)
        of_all = np.fft.irfft(np.fft.rfft(one) ** terms, size)
        for level in (0.5, 0.8, 0.907, 0.95, 0.99, 0.999, 1 - 1e-6):
            t = SummedNoise(noise, terms).quantile(level)
            inside = of_all[: t + 1].sum() + (of_all[size - t :].sum() if t else 0.0)
            assert 1 - inside <= (1 - level) * (1 + 1e-7) + 1e-12, (scale, level, t)
