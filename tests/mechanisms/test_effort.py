"""The work of the samplers: how many random bytes a draw asks for, at every price that is accepted."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pandas as pd
import pytest

from dpframe.mechanisms import _sampling as sampling
from dpframe.mechanisms.selection import ExponentialChoice
from dpframe.mechanisms.threshold import TruncatedThreshold, TruncatedVector

# The ends of what a price may be, and steps between them.
EPSILONS = [F(1, 2**50), F(1, 10**12), F(1, 10**6), F(1), F(1024)]
DELTAS = [F(1, 2**900), F(1, 10**30), F(1, 10**6), F(1, 2), 1 - F(1, 10**9)]
KEYS = [1, 7, 10**6]
DRAWS = 40


@pytest.fixture
def drawn(monkeypatch):
    """The number of random bytes that were asked for so far, in a list of one."""
    total, ask = [0], sampling.random_bytes

    def counted(n: int) -> bytes:
        total[0] += n
        if total[0] > 2_000_000:
            raise AssertionError("the sampler asks without an end")
        return ask(n)

    monkeypatch.setattr(sampling, "random_bytes", counted)
    return total


def digits(*numbers: int) -> int:
    """Bytes of the largest."""
    return max(n.bit_length() for n in numbers) // 8 + 1


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("failure", DELTAS, ids=lambda d: f"{float(d):.3g}")
@pytest.mark.parametrize("epsilon", EPSILONS, ids=lambda e: f"{float(e):.3g}")
def test_a_truncated_threshold_answers_at_every_price(epsilon, failure, keys, drawn):
    threshold = TruncatedThreshold.with_least_cut(keys, epsilon, failure)
    noisy = threshold.release(np.full((1, DRAWS), 3))
    assert noisy.shape == (1, DRAWS)
    # At most six attempts a draw and three draws a coin, on average; each asks for a place and 32 bits, or for a word or two.
    assert drawn[0] <= 40 * (DRAWS + 60) * (12 + digits(threshold.cut, threshold.rate.denominator))


@pytest.mark.parametrize("failure", DELTAS, ids=lambda d: f"{float(d):.3g}")
@pytest.mark.parametrize("epsilon", EPSILONS, ids=lambda e: f"{float(e):.3g}")
def test_truncated_counts_are_drawn_at_every_price(epsilon, failure, drawn):
    threshold = TruncatedVector.with_least_bars(6 / epsilon, 3, (1, 2), 2, failure)
    noise = threshold.draw(DRAWS)
    assert max(map(abs, noise.tolist())) <= threshold.cut
    assert drawn[0] <= 40 * (DRAWS + 60) * (12 + digits(threshold.cut, threshold.rate.denominator))


@pytest.mark.parametrize("epsilon", EPSILONS, ids=lambda e: f"{float(e):.3g}")
def test_noise_without_a_cut_is_drawn_at_every_price(epsilon, drawn):
    wide = 2**40 / epsilon
    for draw in (
        lambda: sampling.discrete_laplace(wide, DRAWS),
        lambda: sampling.geometric(1 / wide, DRAWS),
        lambda: sampling.discrete_gaussian(wide**2, DRAWS),
        lambda: sampling.discrete_laplace(1 / wide, DRAWS),
        lambda: sampling.geometric(wide, DRAWS),
        lambda: sampling.discrete_gaussian(1 / wide**2, DRAWS),
    ):
        before = drawn[0]
        assert len(draw()) == DRAWS
        assert drawn[0] - before <= 40 * (DRAWS + 60) * (12 + digits(int(wide)))


@pytest.mark.parametrize("epsilon", EPSILONS, ids=lambda e: f"{float(e):.3g}")
@pytest.mark.parametrize(
    "scores", [[0] * 9, [0] * 8 + [2**62], [-(2**62), *([2**62] * 8)]], ids=["level", "one", "far"]
)
def test_a_choice_is_made_at_every_price(epsilon, scores, drawn):
    place = ExponentialChoice.for_price(2, epsilon).release(np.array([scores]))
    assert 0 <= int(place[0, 0]) < len(scores)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(1e-12, 1e-6), (2.0**-50, 1e-6), (2.0**-50, 1e-250), (1e-12, None), (1e-6, 1e-12)],
)
@pytest.mark.parametrize("limit", [2, 1000])
@pytest.mark.parametrize("ask", ["unique", "counts", "means"])
def test_keys_are_found_at_every_price(epsilon, delta, limit, ask, drawn):
    table = pd.DataFrame(
        {"id": [i % 5 for i in range(40)], "t": [1, 2, 3, 4] * 10, "x": [1.0] * 40}
    )
    p = table.dp.open(
        1000,
        delta=1e-4,
        because="a test",
        unit="id",
        max_rows=3,
        max_groups=limit,
        bounds={"x": (0, 2)},
    )
    price = {"epsilon": epsilon} if delta is None else {"epsilon": epsilon, "delta": delta}
    found = {
        "unique": lambda: p.unique("t", **price),
        "counts": lambda: p["t"].value_counts(**price),
        "means": lambda: p.groupby("t")["x"].mean(**price),
    }[ask]()
    assert len(found) <= 4
