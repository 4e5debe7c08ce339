"""The samplers, bit by bit: cut points against high precision, and doubles against integers."""

from __future__ import annotations

import math
import random
from collections import Counter
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.mechanisms import _sampling as sampling

SCALES = [F(1, 2048), F(1, 2), F(1), F(7, 3), F(10), F(1000), F(2**20), F(2**24)]
WIDE = [F(2**24) + F(1, 3), F(2**30) * F(20, 3), F(2**40), F(2**48) - 1]


def exp_minus(x, digits=120):
    with localcontext() as ctx:
        ctx.prec = digits
        return (-Decimal(x.numerator) / Decimal(x.denominator)).exp()


def floor_scaled(p, bits):
    with localcontext() as ctx:
        ctx.prec = 200
        return int((p * 2**bits).to_integral_value(ROUND_FLOOR))


def tail(scale, n, *, signed):
    """P[N >= n] to 120 digits, from the definition of the law."""
    power = exp_minus(n / scale)
    if not signed:
        return power
    with localcontext() as ctx:
        ctx.prec = 120
        return 2 * power / (1 + exp_minus(1 / scale))


def inversion(scale, *, signed):
    return sampling._Inversion.of(scale.denominator, scale.numerator, signed=signed)


# Rigorous arithmetic


@pytest.mark.parametrize(
    "scale", [F(1, 2), F(3), F(15), 16 - F(1, 10**9), F(16), F(17), F(100, 3), F(2**24)]
)
def test_the_constant_of_an_inversion_is_as_exact_as_its_theorem_asks(scale):
    sampler = inversion(scale, signed=True)
    with localcontext() as ctx:
        ctx.prec = 60
        exact = -((1 + exp_minus(1 / scale, 60)) / 2).ln()
        error = abs(Decimal(sampler.shift) / Decimal(sampler.scale) - exact)
        assert error <= Decimal(2) ** -46


@given(
    st.fractions(min_value=0, max_value=300, max_denominator=10**12),
    st.integers(min_value=1, max_value=400),
)
@settings(deadline=None)
def test_exp_intervals_enclose_the_exponential_and_are_narrow(x, bits):
    lo, hi = sampling.exp_interval(x.numerator, x.denominator, bits)
    true = floor_scaled(exp_minus(x, 300), bits)
    assert lo <= true < hi + (x == 0)
    assert hi - lo <= 2
    complement = sampling.one_minus_exp_interval(x.numerator, x.denominator, bits)
    assert complement == (2**bits - hi, 2**bits - lo)


def test_the_exponential_of_a_huge_argument_needs_no_huge_power():
    assert sampling.exp_interval(10**400, 1, 64) == (0, 1)
    assert sampling.exp_interval(64, 1, 64) == (0, 1)


def test_long_exp_intervals_stay_narrow():
    lo, hi = sampling.exp_interval(1, 3, 5000)
    assert 0 < hi - lo <= 2
    assert lo <= floor_scaled_long(F(1, 3), 5000) < hi


def floor_scaled_long(x, bits):
    with localcontext() as ctx:
        ctx.prec = bits // 3 + 50
        return int(
            ((-Decimal(x.numerator) / x.denominator).exp() * 2**bits).to_integral_value(ROUND_FLOOR)
        )


def test_logarithms_keep_their_error_bound():
    rng = random.Random(1)
    xs = [2**k for k in range(64)] + [2**k + 1 for k in range(1, 63)]
    xs += [rng.getrandbits(63) + 1 for _ in range(800)]
    xs += [
        int(2**k * root)
        for k in range(20, 63)
        for root in (0.7071067, 0.70710679, 1.4142135, 1.4142136)
    ]
    doubles = np.array(xs, dtype=np.float64)
    bound = Decimal(2) ** -46
    with localcontext() as ctx:
        ctx.prec = 60
        for x, log in zip(doubles.tolist(), sampling.minus_log(doubles, 64).tolist(), strict=True):
            true = -(Decimal(x) / 2**64).ln()
            assert abs(Decimal(log) - true) < bound
            assert abs(Decimal(sampling.minus_log_int(int(x), 64)) - true) < bound


def test_the_logarithm_of_zero_is_finite_and_silent():
    assert np.isfinite(sampling.minus_log(np.zeros(3), 63)).all()
    assert math.isfinite(sampling.minus_log_int(0, 63))


# Cut points


@pytest.mark.parametrize("signed", [False, True], ids=["geometric", "laplace"])
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_answer_changes_exactly_at_the_cut_point(scale, signed, replay):
    """One unit beside the cut, 63 bits of U decide; on it, the later ones do."""
    law = inversion(scale, signed=signed)
    grid = {1, 2, 3, 7, math.ceil(scale), math.ceil(5 * scale), math.ceil(12 * scale)}
    for n in sorted(grid):
        cut = floor_scaled(tail(scale, n, signed=signed), 63)
        if cut < 2:
            continue
        replay(b"\x00" * 64)
        assert law.magnitude(cut << 1) >= n  # U is the cut rounded down
        replay(b"\xff" * 64)
        assert law.magnitude(cut << 1) < n  # U is the next cut, but for 2**-512
        assert law.magnitude(cut - 1 << 1) >= n
        assert law.magnitude(cut + 1 << 1) < n


@pytest.mark.parametrize("digits", [0, 1, 2, 12345, 2**43 - 1, 2**43])
@pytest.mark.parametrize("scale", [F(1, 2), F(7, 3), F(2**20)], ids=str)
def test_far_tails_are_inverted_exactly(scale, digits, replay):
    law = inversion(scale, signed=False)
    replay(b"\x5a" * 400)
    n = law.magnitude(digits << 1)
    u_bits = 63 + 64 * 6
    u = (digits << 64 * 6) | int.from_bytes(b"\x5a" * 48, "big")
    assert u < floor_scaled(tail(scale, n, signed=False), u_bits)
    assert u > floor_scaled(tail(scale, n + 1, signed=False), u_bits)


@pytest.mark.parametrize("signed", [False, True])
def test_tail_intervals_enclose_the_law(signed):
    for scale in SCALES:
        law = inversion(scale, signed=signed)
        for n in (1, 2, math.ceil(3 * scale)):
            for bits in (8, 63, 127, 255):
                lo, hi = law.tail(n, bits)
                assert lo <= floor_scaled(tail(scale, n, signed=signed), bits) < hi
                assert hi - lo <= 2


def test_the_split_law_rejects_exactly_at_the_cut_point(replay):
    law = sampling._Split.of(1, 2**40, signed=False)
    low = 3 << (law.m - 2)
    cut = floor_scaled(1 - exp_minus(F(low, 2**40)), law.spare)
    assert 0 < cut < law.doubtful
    replay(b"\x00" * 64)
    assert not law.survives(low, cut)
    assert not law.survives(low, cut - 1)
    replay(b"\xff" * 64)
    assert law.survives(low, cut)
    assert law.survives(low, cut + 1)


@pytest.mark.parametrize(
    "variance", [F(1, 4), F(1), F(7, 3), F(100), F(2**40, 3), F(2**90)], ids=str
)
def test_the_gaussian_keeps_exactly_at_the_cut_point(variance, replay):
    law = sampling._Gaussian.of(variance.numerator, variance.denominator)
    for y in {0, 1, -law.t, 2 * law.t, -5 * law.t}:
        gamma = (abs(y) - variance / law.t) ** 2 / (2 * variance)
        assert F(*law.gamma(y)) == gamma
        cut = floor_scaled(exp_minus(gamma), 32)
        replay(b"\x00" * 64)
        assert law.survives(y, cut)
        replay(b"\xff" * 64)
        assert not law.survives(y, cut)
        assert not law.survives(y, cut + 1)
        assert cut == 0 or law.survives(y, cut - 1)


# Doubles against integers


def two_streams(stream):
    """Bulk reads and small reads from separate streams, so that extra bits do not shift the others."""
    bulk, small = stream(key=b"bulk"), stream(key=b"small")
    return lambda n: bulk(n) if n > 64 else small(n)


@pytest.mark.parametrize(
    "make",
    [
        lambda: inversion(F(7, 3), signed=True),
        lambda: inversion(F(1000), signed=False),
        lambda: inversion(F(2**23), signed=True),
        lambda: sampling._Split.of(3, 20 * 2**30, signed=True),
        lambda: sampling._Gaussian.of(1, 4),
        lambda: sampling._Gaussian.of(100, 1),
        lambda: sampling._Gaussian.of(7 * 2**60, 3),
    ],
    ids=[
        "laplace",
        "geometric",
        "large laplace",
        "split laplace",
        "small gaussian",
        "gaussian",
        "split gaussian",
    ],
)
def test_doubles_and_integers_give_the_same_answers(make, stream, monkeypatch):
    """With a slack of 1 nearly every decision is made in integers; the answers are those of the doubles."""
    monkeypatch.setattr(sampling, "random_bytes", two_streams(stream))
    by_doubles = make().block(400)
    monkeypatch.setattr(sampling, "random_bytes", two_streams(stream))
    monkeypatch.setattr(sampling, "_SLACK", 0.5)
    asked = Counter()
    below = sampling._Uniform.below

    def counted(self, interval):
        asked["integers"] += 1
        return below(self, interval)

    monkeypatch.setattr(sampling._Uniform, "below", counted)
    by_integers = make().block(400)
    assert by_doubles.tolist() == by_integers.tolist()
    assert asked["integers"] > 200


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("scale", [*SCALES, *WIDE], ids=str)
def test_one_by_one_and_all_at_once_are_the_same_function_of_the_bits(scale, signed, replay):
    n = 200
    split = scale > 2**24
    kind = sampling._Split if split else sampling._Inversion
    law = kind.of(scale.denominator, scale.numerator, signed=signed)
    entropy = np.random.default_rng(7).integers(0, 2**64, (2 if split else 1, n), dtype=np.uint64)
    replay(entropy.astype("<u8").tobytes())
    at_once = law.block(n).tolist()
    replay(entropy.T.astype("<u8").tobytes())
    assert at_once == [law.draw_one() for _ in range(n)]


def test_one_gaussian_and_many_are_the_same_function_of_the_bits(replay):
    law = sampling._Gaussian.of(700, 3)
    rng = np.random.default_rng(3)
    proposals = rng.integers(0, 2**64, 200, dtype=np.uint64).astype("<u8")
    uniforms = rng.integers(0, 2**32, 200, dtype=np.uint32).astype("<u4")
    replay(proposals.tobytes() + uniforms.tobytes())
    at_once = law.block(200).tolist()
    replay(b"".join(p.tobytes() + u.tobytes() for p, u in zip(proposals, uniforms, strict=True)))
    assert 100 < len(at_once) < 190
    assert at_once == [law.draw_one() for _ in at_once]
