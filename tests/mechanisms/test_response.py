"""Randomized response has exactly its law: coins by enumeration, reports by their counts."""

from __future__ import annotations

import math
from fractions import Fraction as F
from functools import partial

import numpy as np
import pytest
from scipy import stats

from dpframe._sizes import SIZES
from dpframe.mechanisms import _coins, _sampling
from dpframe.mechanisms.response import Response, points_for, round_to_points, spread, worst_spread


def exactly(p, bits):
    """A rational probability as `coins` wants it: rounded outwards."""
    scaled = p * 2**bits
    return math.floor(scaled), math.ceil(scaled)


def scripted(monkeypatch, *answers):
    """The next calls of `random_bytes` return these, and no others are made."""
    waiting = list(answers)
    monkeypatch.setattr(_sampling, "random_bytes", lambda n: waiting.pop(0))
    return waiting


@pytest.mark.parametrize("p", [F(1, 3), F(1, 2), F(255, 256), F(3, 256), F(1, 1000)])
def test_a_coin_falls_as_its_first_digits_say(monkeypatch, p):
    """Every first byte; the one that p begins with draws a word, and is heads for exactly the words below."""
    first = int(p * 256)
    rest = p * 256 - first
    for below in (False, True):
        word = (
            max(0, math.ceil(rest * 2**64) - 1)
            if below
            else min(2**64 - 1, math.floor(rest * 2**64) + 1)
        )
        scripted(monkeypatch, bytes(range(256)), word.to_bytes(8, "little"), bytes(16))
        heads = _coins.coins(partial(exactly, p), 256)
        assert heads[:first].all()
        assert not heads[first + 1 :].any()
        assert heads[first] == (F(word, 2**64) < rest)


def test_a_coin_that_72_digits_leave_open_asks_for_more(monkeypatch):
    p = F(1, 3)
    word = math.floor((p * 256 - 85) * 2**64)
    for more, heads in ((0, True), (2**72 - 1, False)):
        waiting = scripted(
            monkeypatch, bytes([85]), word.to_bytes(8, "little"), more.to_bytes(9, "little")
        )
        assert _coins.coins(partial(exactly, p), 1)[0] == heads
        assert not waiting


def test_coins_of_fractions_are_exact(monkeypatch):
    """The byte that r / d begins with goes on to the next digit; all others are settled by it."""
    d = 3 * 5 * 7
    for r in (0, 1, 35, 52, 104):
        digit, rest = divmod(256 * r, d)
        second = 256 * rest // d
        scripted(monkeypatch, bytes(range(256)), bytes([second]), b"\xff", b"\xff", b"\xff")
        heads = _coins.coins_of(np.full(256, r), d)
        assert heads[:digit].all()
        assert not heads[
            digit:
        ].any()  # a second digit equal to that of r / d, then a larger one: not below


def test_uniform_numbers_leave_out_what_is_too_many(monkeypatch):
    """Of all 16-bit words each number has the same share."""
    words = np.arange(2**16, dtype="<u2")
    for below in (1, 2, 3, 5, 100, 255, 256):
        drawn = iter([words.tobytes()])

        def random_bytes(n, drawn=drawn):
            return next(drawn, bytes([255]) * n)[:n]

        monkeypatch.setattr(_sampling, "random_bytes", random_bytes)
        kept = 2**16 - 2**16 % below
        monkeypatch.setattr(SIZES, "coins", 2**16)
        counts = np.bincount(_coins.uniform(below, 2**16)[:kept], minlength=below)
        assert (counts == kept // below).all()


@pytest.mark.parametrize("k", [2, 3, 10, 1000])
@pytest.mark.parametrize("epsilon", [F(1, 2**50), F(1, 10), F(1), F(7, 3), F(50), F(1024)])
def test_the_interval_holds_the_probability(epsilon, k):
    response = Response(epsilon, k)
    for bits in (8, 72, 300):
        for times in (1, k):
            low, high = response.interval(times, bits)
            assert 0 <= low <= high <= low + 2
            assert high <= 2**bits
            if epsilon < 30:
                exact = times / (math.exp(epsilon) + k - 1)
                assert low * 0.5**bits <= exact * (1 + 1e-12)
                assert high * 0.5**bits >= exact * (1 - 1e-12)


@pytest.mark.parametrize("k", [2, 3, 7, 300])
def test_the_floats_agree_with_the_law(k):
    response = Response(F(3, 2), k)
    assert response.kept + response.lies == pytest.approx(1)
    assert response.truth == pytest.approx(math.exp(1.5) / (math.exp(1.5) + k - 1))


def shares(response, place, n):
    counts = np.bincount(response.respond(np.full(n, place)), minlength=response.k)
    false = (1 - response.truth) / (response.k - 1)
    expected = np.full(response.k, 1 / response.k if place == 0 else false)
    if place:
        expected[place - 1] = response.truth
    return counts, expected * n


@pytest.mark.scaled
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("k", [2, 3, 8, 257])
@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(3)])
def test_reports_have_their_law(full, replay, epsilon, k, place):
    if not full:
        replay()
    counts, expected = shares(Response(epsilon, k), place, 2_000_000 if full else 100_000)
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-6


def test_another_law_is_noticed(replay):
    replay()
    counts, _ = shares(Response(F(1), 3), 1, 100_000)
    _, expected = shares(Response(F(11, 10), 3), 1, 100_000)
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue < 1e-6


def test_rounding_has_no_bias_and_moves_to_a_neighbour(replay):
    replay()
    width, points = 1000, 5
    for s in (0, 1, 249, 250, 251, 999, 1000):
        places = round_to_points(np.full(50_000, s), width, points).astype(int) - 1
        exact = s * (points - 1) / width
        assert set(places) <= {math.floor(exact), math.ceil(exact)}
        assert abs(places.mean() - exact) < 5 * 0.5 / math.sqrt(50_000)
    assert round_to_points(np.array([-1]), width, points).tolist() == [0]


@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(3), F(6)])
def test_the_variance_of_a_number_is_as_stated(replay, epsilon):
    replay()
    k = points_for(epsilon)
    response = Response(epsilon, k)
    for t in (0.0, 0.3, 0.5):
        n, width = 100_000, 2**20
        codes = response.respond(round_to_points(np.full(n, int(t * width)), width, k))
        seen = (codes / (k - 1) - response.lies / 2) / response.kept
        assert abs(seen.mean() - t) < 5 * math.sqrt(spread(response, t) / n) + 1e-6
        assert seen.var() == pytest.approx(spread(response, t), rel=0.05)
        assert spread(response, t) <= worst_spread(response) * (1 + 1e-9)


def test_points_are_those_with_the_least_worst_variance():
    for epsilon in (F(1, 10), F(1), F(2), F(4)):
        worst = {k: worst_spread(Response(epsilon, k)) for k in range(2, 40)}
        assert points_for(epsilon) == min(worst, key=worst.__getitem__)
        dense = max(spread(Response(epsilon, 4), t) for t in np.linspace(0, 1, 4001))
        assert worst[4] == pytest.approx(dense, rel=1e-4)
