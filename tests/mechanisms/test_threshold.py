"""Thresholds: the probability that one person's own keys show, by exact sums, and the best rule there is."""

from __future__ import annotations

import json
from decimal import Decimal as D
from decimal import localcontext
from fractions import Fraction as F

import numpy as np
import pytest

from dpframe.mechanisms.threshold import (
    Bar,
    GaussianThreshold,
    LaplaceThreshold,
    TruncatedThreshold,
    split_failure,
)

CASES = [(1, F(1), F(1, 10**6)), (3, F(1), F(1, 10**6)), (2, F(1, 4), F(1, 10**3)), (10, F(2), F(1, 10**8)),
         (1, F(6), F(1, 10**5)), (1, F(20), F(1, 10**6)), (6, F(1, 2), F(1, 5))]  # fmt: skip


@pytest.fixture(autouse=True)
def digits():
    with localcontext() as context:
        context.prec = 60
        yield


def law(rate: F, cut: int) -> dict[int, D]:
    """The truncated noise, to sixty digits."""
    a = D(rate.numerator) / D(rate.denominator)
    weights = {x: (-a * abs(x)).exp() for x in range(-cut, cut + 1)}
    total = sum(weights.values())
    return {x: w / total for x, w in weights.items()}


def kept(noise: dict[int, D], cut: int, n: int) -> D:
    return sum((p for x, p in noise.items() if n + x > cut), D(0))


def kept_by(one: TruncatedThreshold, n: int) -> D:
    """With the coin that lowers the cut."""
    share = D(one.lower.numerator) / D(one.lower.denominator)
    lower = kept(law(one.rate, one.cut - 1), one.cut - 1, n) if share else D(0)
    return share * lower + (1 - share) * kept(law(one.rate, one.cut), one.cut, n)


def shows(each: D, keys: int) -> D:
    return 1 - (1 - each) ** keys


@pytest.mark.parametrize(("keys", "epsilon", "failure"), CASES)
def test_own_keys_show_as_seldom_as_promised_and_no_lower_bar_would_do(keys, epsilon, failure):
    one = TruncatedThreshold.with_least_cut(keys, epsilon, failure)
    promised = D(failure.numerator) / D(failure.denominator)
    assert one.rate == epsilon / keys
    assert shows(kept_by(one, 1), keys) <= promised
    # The coin takes what the cut leaves, and the twin that is off by one is too often.
    if one.cut > 1:
        assert shows(kept_by(one, 1), keys) >= promised * (1 - D(10) ** -6)
        assert shows(kept(law(one.rate, one.cut), one.cut, 1), keys) <= promised
        assert shows(kept(law(one.rate, one.cut - 1), one.cut - 1, 1), keys) > promised


@pytest.mark.parametrize(("keys", "epsilon", "failure"), CASES[:4])
def test_a_count_moved_by_one_is_rate_and_tip_private(keys, epsilon, failure):
    one = TruncatedThreshold.with_least_cut(keys, epsilon, failure)
    factor, tip = (D(one.rate.numerator) / D(one.rate.denominator)).exp(), kept_by(one, 1)
    close = 1 + D(10) ** -50
    for n in range(2 * one.cut + 3):
        more, less = kept_by(one, n + 1), kept_by(one, n)
        assert more <= (factor * less + tip) * close
        assert 1 - less <= (factor * (1 - more) + tip) * close


@pytest.mark.parametrize(("keys", "epsilon", "failure"), CASES[:4])
def test_no_private_rule_keeps_a_key_more_often(keys, epsilon, failure):
    """The recursion of Desfontaines and others (2022) for the epsilon and the delta that are really used, without a coin."""
    one = TruncatedThreshold.with_least_cut(1, epsilon / keys, failure)
    noise = law(one.rate, one.cut)
    factor, delta = (D(one.rate.numerator) / D(one.rate.denominator)).exp(), noise[one.cut]
    best = D(0)
    for n in range(1, 2 * one.cut + 3):
        best = min(factor * best + delta, 1 - (1 - best - delta) / factor, D(1))
        assert abs(kept(noise, one.cut, n) - best) < D(10) ** -40


@pytest.mark.parametrize("sigma", [F(3, 10), 1, 5, 80, 3000])
@pytest.mark.parametrize(("keys", "failure"), [(1, F(1, 10**6)), (7, F(1, 10**8)), (3, F(1, 5))])
def test_the_gaussian_threshold_bounds_the_tail(sigma, keys, failure):
    variance = F(sigma) ** 2
    one = GaussianThreshold.with_least_bars(variance, 1, (1,), keys, failure)
    least = one.bars[0].least
    reach = int(14 * sigma) + 20
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * float(variance)))
    tail = weights[::-1].cumsum()[::-1] / weights.sum()

    def own(least: int) -> float:
        return float(tail[reach + least - 1])

    assert own(least) <= split_failure(failure, keys)
    assert own(least - 2) > split_failure(failure, keys)  # and it is not far above what is needed


@pytest.mark.parametrize(
    "one",
    [
        TruncatedThreshold(F(1, 2), 6),
        TruncatedThreshold(F(1, 2), 6, F(1, 3)),
        GaussianThreshold(F(9), (Bar(1, 10),)),
    ],
    ids=["truncated", "coin", "gaussian"],
)
def test_keys_are_kept_as_often_as_the_law_says(one):
    counts = np.repeat([0, 1, 5, int(one.half), 12], 40_000)
    rates = one.shows(one.release(counts[None, :])).reshape(5, -1).mean(axis=1)
    if isinstance(one, TruncatedThreshold):
        wanted = [float(kept_by(one, n)) for n in (0, 1, 5, int(one.half), 12)]
        assert rates[0] == 0  # and what nobody has never shows
    else:
        x = np.arange(-60, 61)
        weights = np.exp(-(x**2) / 18)
        wanted = [weights[n + x >= 10].sum() / weights.sum() for n in (0, 1, 5, int(one.half), 12)]
    np.testing.assert_allclose(rates, wanted, atol=0.015)


def test_thresholds_are_read_back_from_a_ledger():
    tests = Bar(1, 9), Bar(2, 2**70)
    for one in (
        TruncatedThreshold(F(1, 3), 40),
        TruncatedThreshold(F(1, 3), 40, F(1, 8)),
        GaussianThreshold(F(22, 7), tests),
        LaplaceThreshold(F(5), tests),
    ):
        assert type(one).from_json(json.loads(json.dumps(one.to_json()))) == one
    old = {"mechanism": "gaussian threshold", "variance": "22/7", "least": "9"}
    assert GaussianThreshold.from_json(old) == GaussianThreshold(F(22, 7), (Bar(1, 9),))


def test_wide_noise_does_not_wrap_around():
    one = TruncatedThreshold(F(1, 2**50), 2**51)
    assert one.shows(one.release(np.array([[0, 2**62]]))).tolist() == [False, True]
