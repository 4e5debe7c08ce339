"""Counts that leave with the keys they found: the exact law, and how often one person's own keys show."""

from __future__ import annotations

import json
from decimal import Decimal as D
from decimal import localcontext
from fractions import Fraction as F
from itertools import product

import numpy as np
import pytest

from dpframe.mechanisms.threshold import (
    GaussianThreshold,
    LaplaceThreshold,
    TruncatedThreshold,
    TruncatedVector,
    gaussian_tail,
    laplace_tail,
    split_failure,
)
from tests.mechanisms.test_threshold import CASES, kept_by, law

HIDDEN = None


@pytest.fixture(autouse=True)
def digits():
    with localcontext() as context:
        context.prec = 60
        yield


def told(one: TruncatedThreshold, n: int) -> dict[int | None, D]:
    """The law of what leaves of a count n: the noisy count, or nothing."""
    found: dict[int | None, D] = {HIDDEN: D(0)}
    share = D(one.lower.numerator) / D(one.lower.denominator)
    for cut, part in ((one.cut, 1 - share), (one.cut - 1, share)):
        for x, p in law(one.rate, cut).items():
            place = n + x if n + x > cut else HIDDEN
            found[place] = found.get(place, D(0)) + part * p
    return found


def excess(one: dict, two: dict, factor: D) -> D:
    """sup P[S] - factor Q[S], over all events."""
    return sum((max(D(0), p - factor * two.get(y, D(0))) for y, p in one.items()), D(0))


@pytest.mark.parametrize(("keys", "epsilon", "failure"), CASES[:4])
def test_the_count_that_is_shown_costs_nothing_beyond_the_key(keys, epsilon, failure):
    one = TruncatedThreshold.with_least_cut(keys, epsilon, failure)
    factor, tip = (D(one.rate.numerator) / D(one.rate.denominator)).exp(), kept_by(one, 1)
    close = D(10) ** -45
    for n in (
        0,
        1,
        2,
        one.cut // 2,
        one.cut,
        one.cut + 1,
        2 * one.cut,
        2 * one.cut + 1,
        2 * one.cut + 2,
    ):
        less, more = told(one, n), told(one, n + 1)
        assert excess(more, less, factor) <= tip + close
        assert excess(less, more, factor) <= tip + close
    assert abs(excess(told(one, 1), told(one, 0), factor) - tip) < close  # and it is no less


def laplace_law(rate: F, reach: int) -> dict[int, D]:
    a = D(rate.numerator) / D(rate.denominator)
    q = (-a).exp()
    return {x: (1 - q) / (1 + q) * (-a * abs(x)).exp() for x in range(-reach, reach + 1)}


@pytest.mark.parametrize(("rate", "reach"), [(F(1), 120), (F(3), 50), (F(1, 3), 260)])
def test_the_tail_of_a_sum_of_noises_is_exact(rate, reach):
    one = laplace_law(rate, reach)
    total = {0: D(1)}
    for components in (1, 2, 3):
        if components == 3 and reach > 130:
            return
        found: dict[int, D] = {}
        for (x, p), (y, r) in product(total.items(), one.items()):
            found[x + y] = found.get(x + y, D(0)) + p * r
        total = found
        for t in (1, 2, 7, 15):
            tail = sum((p for x, p in total.items() if x >= t), D(0))
            assert float(laplace_tail(float(rate), components, t)) == pytest.approx(
                float(tail), rel=1e-11
            )


def test_the_tail_holds_where_noise_is_as_wide_as_a_grid():
    """Sums of continuous Laplace variables, in units of their scale: e**-t (2 + t) / 4, and (8 + 5 t + t**2) / 16."""
    a = 2.0**-31
    for t in (0.5, 3.0, 20.0):
        for components, known in ((1, 1 / 2), (2, (2 + t) / 4), (3, (8 + 5 * t + t * t) / 16)):
            assert laplace_tail(a, components, t / a) == pytest.approx(known * np.exp(-t), rel=1e-6)


@pytest.mark.parametrize(
    ("most", "epsilon", "keys", "failure"),
    [(1, 1, 1, F(1, 100)), (3, 1, 2, F(1, 50)), (4, 2, 3, F(1, 10))],
)
@pytest.mark.parametrize("kind", [LaplaceThreshold, TruncatedVector])
def test_own_rows_show_as_seldom_as_promised_however_many_they_are(
    kind, most, epsilon, keys, failure
):
    """Rows and the room they leave: of each number of rows the chance that either bar is passed, by the exact joint law."""
    scale = F(most * keys, epsilon)
    one = kind.with_least_bars(scale, most, (1, 2), keys, failure)
    (_, first), (_, both) = one.bars
    noise = (
        law(1 / scale, one.cut)
        if kind is TruncatedVector
        else laplace_law(1 / scale, int(25 * scale) + 10)
    )
    above = dict(zip(noise, np.cumsum(list(noise.values())[::-1])[::-1], strict=True))
    worst = D(0)
    for rows in range(1, most + 1):
        shows = D(0)
        for x, p in noise.items():
            least = both - most - x
            inner = D(1) if rows + x >= first or least <= min(above) else above.get(least, D(0))
            shows += p * inner
        worst = max(worst, shows)
    promised = D(failure.numerator) / D(failure.denominator)
    any_of = 1 - (1 - worst) ** keys
    assert any_of <= promised
    assert any_of > promised * D("0.5")


@pytest.mark.parametrize("components", [1, 2, 3])
@pytest.mark.parametrize("keys", [1, 7])
def test_one_lower_would_show_too_often(components, keys):
    failure, scale, own = F(1, 10**6), F(9), 5
    ((_, least),) = LaplaceThreshold.with_least_bars(scale, own, (components,), keys, failure).bars
    each = split_failure(failure, keys)
    assert (
        laplace_tail(1 / 9, components, least - own)
        <= each
        < laplace_tail(1 / 9, components, least - own - 1)
    )


@pytest.mark.parametrize("sigma", [0.7, 1.0, 4.0, 60.0])
@pytest.mark.parametrize("components", [1, 2, 3, 4])
def test_the_tail_of_a_sum_of_gaussian_noises_is_bounded(sigma, components):
    reach = int(12 * sigma) + 12
    one = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * sigma * sigma))
    one /= one.sum()
    total = one
    for _ in range(components - 1):
        total = np.convolve(total, one)
    middle = len(total) // 2
    for deviations in (1.5, 3, 5):
        t = int(deviations * sigma * components**0.5) + 1
        tail = total[middle + t :][::-1].sum()
        bound = gaussian_tail(sigma * sigma, components, t)
        assert tail <= bound
        if sigma >= 4:
            assert bound <= 1.15 * tail


def test_a_gaussian_bar_counts_the_persons_own_rows():
    few = GaussianThreshold.with_least_bars(F(100), 1, (1,), 2, F(1, 10**6))
    many = GaussianThreshold.with_least_bars(F(100), 30, (1,), 2, F(1, 10**6))
    assert many.bars[0].least == few.bars[0].least + 29


def test_the_release_as_a_whole_is_as_private_as_promised():
    """One key that others have and one of a person's own, against the frame without them: the exact excess over epsilon."""
    failure, scale, own = F(1, 40), F(2), 2
    one = LaplaceThreshold.with_least_bars(scale, own, (1,), 1, failure)
    ((_, least),) = one.bars
    noise, factor = laplace_law(1 / scale, 90), D(1).exp()
    shared = 3

    def joint(people: bool) -> dict:
        both: dict = {}
        kept: dict = {HIDDEN: D(0)}
        for x, p in noise.items():
            y = shared + (1 if people else 0) + x
            kept[y if y >= least else HIDDEN] = kept.get(y if y >= least else HIDDEN, D(0)) + p
        mine: dict = {HIDDEN: D(0)}
        for x, p in noise.items():
            y = own + x if people and own + x >= least else HIDDEN
            mine[y] = mine.get(y, D(0)) + p
        for (a, p), (b, r) in product(kept.items(), mine.items()):
            both[a, b] = both.get((a, b), D(0)) + p * r
        return both

    d = D(failure.numerator) / D(failure.denominator)
    half = D(1) / 2
    assert (
        excess(joint(True), joint(False), half.exp()) <= d
    )  # the shared count moves by 1, half of what the noise is for
    assert excess(joint(False), joint(True), half.exp()) <= d
    assert (
        excess(joint(True), joint(False), factor) > d / 2
    )  # and the failure is not overstated by much


@pytest.mark.parametrize(
    "one",
    [TruncatedThreshold(F(1, 2), 4), TruncatedThreshold(F(1, 2), 4, F(1, 3))],
    ids=["sure", "coin"],
)
@pytest.mark.parametrize("n", [1, 5, 30])
def test_counts_leave_by_the_law(one, n):
    drawn = one.release(np.full((1, 200_000), n))
    shown = drawn[:, one.shows(drawn)][0]
    wanted = told(one, n)
    assert 1 - len(shown) / 200_000 == pytest.approx(float(wanted.pop(HIDDEN)), abs=0.006)
    assert set(shown.tolist()) <= set(wanted)
    for y, p in wanted.items():
        assert (shown == y).sum() / 200_000 == pytest.approx(float(p), abs=0.006)


@pytest.mark.parametrize(
    ("own", "scale", "keys", "failure"),
    [(3, F(4), 1, F(1, 50)), (2, F(2), 2, F(1, 20)), (5, F(25), 3, F(1, 100))],
)
def test_truncated_noise_on_several_counts_costs_what_is_promised(own, scale, keys, failure):
    """However a person's rows are divided between the counts: the exact excess over exp(rate own), in both directions."""
    one = TruncatedVector.with_least_bars(scale, own, (1, 2), keys, failure)
    noise = law(one.rate, one.cut)
    factor = (D(one.rate.numerator) / D(one.rate.denominator) * own).exp()
    each = 1 - (1 - D(failure.numerator) / D(failure.denominator)) ** (D(1) / keys)
    worst = D(0)
    for first in range(own + 1):
        for sign in (1, -1):
            found = D(0)
            for (x, p), (y, r) in product(noise.items(), noise.items()):
                other = noise.get(x - sign * first, D(0)) * noise.get(
                    y - sign * (own - first), D(0)
                )
                found += max(D(0), p * r - factor * other)
            worst = max(worst, found)
    assert worst <= each
    assert worst > each / 2


def test_truncated_vectors_are_read_back_from_a_ledger():
    one = TruncatedVector.with_least_bars(F(4), 3, (1, 2, 3), 1, F(1, 50))
    assert TruncatedVector.from_json(json.loads(json.dumps(one.to_json()))) == one
    assert [bar.components for bar in one.bars] == [1, 2, 3]


KINDS = [
    TruncatedThreshold.with_least_cut(3, F(1), F(1, 10**6)),
    TruncatedVector.with_least_bars(F(5), 2, [1, 3], 4, F(1, 10**6)),
    LaplaceThreshold.with_least_bars(F(7), 3, [2, 5], 4, F(1, 10**6)),
    GaussianThreshold.with_least_bars(F(900), 3, [1, 2], 4, F(1, 10**6)),
]


@pytest.mark.parametrize("one", KINDS, ids=lambda one: one.name)
@pytest.mark.parametrize("risk", [0.05, 0.00125, 1e-9])
def test_what_is_surely_shown_is_what_a_search_finds_to_be(one, risk):
    """So that a search is saved, and no interval changes; a bar that is lower by a half is one too low."""
    reach = one.bars[-1].least
    sums = np.unique(np.geomspace(one.bars[0].least, 60 * reach, 4000).astype(np.int64))
    shown = np.zeros((max(bar.components for bar in one.bars), len(sums)), dtype=np.int64)
    shown[0] = sums
    searched = one.bound_chance_of_being_shown(shown, risk) >= 0.999
    surely = one.mask_nearly_always_shown(shown, risk)
    assert surely.any()
    assert not surely.all()
    assert not (surely & ~searched).any()
    first = sums[surely.argmax()]
    assert not (searched | (sums < first / 2 - reach)).all()  # what is near a bar needs the search


@pytest.mark.parametrize("one", KINDS, ids=lambda one: one.name)
def test_levels_are_those_of_a_search_for_every_key(one, monkeypatch):
    counts = np.random.default_rng(3).integers(one.bars[0].least, 40 * one.bars[-1].least, (3, 500))
    counts[0, 0], counts[1:, 0] = (
        one.bars[0].least,
        -one.bars[-1].least,
    )  # only just shown, by the first bar alone
    quick = one.levels(counts, 0.95)

    def of_all(sure):
        monkeypatch.setattr(
            type(one),
            "mask_nearly_always_shown",
            lambda self, noisy, risk: np.full(noisy.shape[1], sure),
        )
        return one.levels(counts, 0.95).tolist()

    assert quick.tolist() == of_all(False)
    assert quick.tolist() != of_all(True)
