"""The variance of Gaussian noise is found by doubles where they are sure, and is the one that a bisection by fractions finds."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from dpframe.accounting._gaussian import shift_mu
from dpframe.accounting._search import first_where
from dpframe.mechanisms import noise as noise_module


def plain(step_squared: Fraction) -> Fraction:
    """The same by fractions alone."""

    def enough(variance: Fraction) -> bool:
        return Fraction(shift_mu(variance)) ** 2 <= step_squared

    low = 1 / step_squared
    high = low + Fraction(1, 8)
    while not enough(high):
        low, high = high, 2 * high
    return first_where(
        enough,
        low,
        high,
        middle=lambda low, high: Fraction(float((low + high) / 2)),
        close=lambda low, high: high - low <= low / 10**9,
    )


def any_of(rng: random.Random) -> dict[str, Fraction]:
    bits = [rng.getrandbits(rng.randint(1, 120)) + 1 for _ in range(2)]
    return {
        "double": Fraction(math.exp(rng.uniform(-70, 13))),
        "third": Fraction(math.exp(rng.uniform(-70, 13))) / 3,
        "bits": Fraction(*bits),
        "decimal": Fraction(rng.randint(1, 10**4), 10 ** rng.randint(1, 13)),
        "small": Fraction(rng.randint(1, 50), rng.randint(1, 50)),
        "power": Fraction(2) ** rng.randint(-450, 30) * rng.randint(1, 5),
        "wide": Fraction(rng.randint(1, 99), 100 * rng.randint(1, 2**62) ** 2),
    }


@pytest.mark.parametrize("seed", range(300))
def test_it_is_what_fractions_find(seed):
    for step_squared in any_of(random.Random(seed)).values():
        assert noise_module._variance_for.__wrapped__(step_squared) == plain(step_squared)


@pytest.mark.parametrize("seed", range(20))
def test_what_doubles_are_sure_of_is_so(seed):
    rng = random.Random(seed)
    for step_squared in any_of(rng).values():
        fails, holds = noise_module._doubtful(step_squared)
        assert 0 <= fails < holds
        for share in (0.0, 1e-15, 1e-12, 1e-9, 1e-3, 0.5):
            if fails:
                assert Fraction(shift_mu(fails * (1 - share))) ** 2 > step_squared
            if holds < math.inf:
                assert Fraction(shift_mu(holds * (1 + share))) ** 2 <= step_squared


def test_doubles_leave_little_in_doubt():
    sure = [noise_module._doubtful(Fraction(k, 40) ** 9) for k in range(1, 40)]
    assert all(fails > 0 and holds < fails * (1 + 1e-10) for fails, holds in sure)
