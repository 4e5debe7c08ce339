"""The samplers, bit by bit: cut points against high precision, rare paths forced, entropy replayed."""

from __future__ import annotations

import hashlib
import math
import os
import random
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.mechanisms import _sampling as sampling
from dpframe.mechanisms import _tables as tables

SCALES = [F(1, 2048), F(1, 2), F(1), F(7, 3), F(10), F(1000), F(2**20), F(2**24)]
WIDE = [F(2**24) + F(1, 3), F(2**30) * F(20, 3), F(2**40), F(2**48) - 1]
OBJECTS = [F(2**48), F(2**81), F(10**40, 3)]


class Replay:
    """Stands in for `random_bytes`: scripted bytes first, then a fixed pseudorandom stream."""

    def __init__(self, script: bytes = b"", key: bytes = b"dpframe") -> None:
        self.script, self.key, self.calls, self.drawn = script, key, 0, 0

    def __call__(self, n: int) -> bytes:
        self.drawn += n
        head, self.script = self.script[:n], self.script[n:]
        self.calls += 1
        rest = n - len(head)
        return head + hashlib.shake_256(self.key + self.calls.to_bytes(8, "little")).digest(rest)


@pytest.fixture
def replay(monkeypatch):
    """A function that makes the entropy repeatable from here on."""

    def start(script=b"", key=b"dpframe"):
        source = Replay(script, key)
        monkeypatch.setattr(sampling, "random_bytes", source)
        return source

    return start


def words(*values):
    return b"".join(v.to_bytes(8, "little") for v in values)


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


@given(
    st.fractions(min_value=0, max_value=300, max_denominator=10**12),
    st.integers(min_value=1, max_value=400),
)
@settings(deadline=None)
def test_exp_intervals_enclose_the_exponential_and_are_narrow(x, bits):
    lo, hi = tables.exp_interval(x.numerator, x.denominator, bits)
    true = floor_scaled(exp_minus(x, 300), bits)
    assert lo <= true < hi + (x == 0)
    assert hi - lo <= 2
    complement = tables.one_minus_exp_interval(x.numerator, x.denominator, bits)
    assert complement == (2**bits - hi, 2**bits - lo)


def test_the_exponential_of_a_huge_argument_needs_no_huge_power():
    assert tables.exp_interval(10**400, 1, 64) == (0, 1)
    assert tables.exp_interval(64, 1, 64) == (0, 1)


def test_long_exp_intervals_stay_narrow():
    lo, hi = tables.exp_interval(1, 3, 5000)
    assert 0 < hi - lo <= 2
    assert lo <= floor_scaled_long(F(1, 3), 5000) < hi


def floor_scaled_long(x, bits):
    with localcontext() as ctx:
        ctx.prec = bits // 3 + 50
        return int(((-Decimal(x.numerator) / x.denominator).exp() * 2**bits).to_integral_value(ROUND_FLOOR))


def test_logarithms_keep_their_error_bound():
    rng = random.Random(1)
    xs = [2**k for k in range(64)] + [2**k + 1 for k in range(1, 63)]
    xs += [rng.getrandbits(63) + 1 for _ in range(800)]
    xs += [int(2**k * root) for k in range(20, 63) for root in (0.7071067, 0.70710679, 1.4142135, 1.4142136)]
    doubles = np.array(xs, dtype=np.float64)
    bound = Decimal(2) ** -46
    with localcontext() as ctx:
        ctx.prec = 60
        for x, log in zip(doubles.tolist(), tables.minus_log(doubles, 64).tolist(), strict=True):
            true = -(Decimal(x) / 2**64).ln()
            assert abs(Decimal(log) - true) < bound
            assert abs(Decimal(tables.minus_log_int(int(x), 64)) - true) < bound


def test_the_logarithm_of_zero_is_finite_and_silent():
    assert np.isfinite(tables.minus_log(np.zeros(3), 63)).all()
    assert math.isfinite(tables.minus_log_int(0, 63))


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


@pytest.mark.parametrize("variance", [F(1, 4), F(1), F(7, 3), F(100), F(2**40, 3), F(2**90)], ids=str)
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


def two_streams(key):
    """Bulk reads and small reads from separate streams, so that extra bits do not shift the others."""
    bulk, small = Replay(key=key + b"bulk"), Replay(key=key + b"small")
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
def test_doubles_and_integers_give_the_same_answers(make, monkeypatch):
    """With a slack of 1 nearly every decision is made in integers; the answers are those of the doubles."""
    monkeypatch.setattr(sampling, "random_bytes", two_streams(b"a"))
    by_doubles = make().block(400)
    monkeypatch.setattr(sampling, "random_bytes", two_streams(b"a"))
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
    assert at_once == [law.one() for _ in range(n)]


def test_one_gaussian_and_many_are_the_same_function_of_the_bits(replay):
    law = sampling._Gaussian.of(700, 3)
    rng = np.random.default_rng(3)
    proposals = rng.integers(0, 2**64, 200, dtype=np.uint64).astype("<u8")
    uniforms = rng.integers(0, 2**32, 200, dtype=np.uint32).astype("<u4")
    replay(proposals.tobytes() + uniforms.tobytes())
    at_once = law.block(200).tolist()
    replay(b"".join(p.tobytes() + u.tobytes() for p, u in zip(proposals, uniforms, strict=True)))
    assert 100 < len(at_once) < 190
    assert at_once == [law.one() for _ in at_once]


# Types, sizes and ranges


@pytest.mark.parametrize("size", [0, 1, 12, 13, 1000])
def test_sizes_and_dtypes(size):
    for scale in (*SCALES, *WIDE):
        for x in (
            sampling.discrete_laplace(scale, size),
            sampling.geometric(1 / scale, size),
            sampling.discrete_gaussian(scale, size),
        ):
            assert (x.shape, x.dtype) == ((size,), np.int64)


@pytest.mark.parametrize("scale", OBJECTS, ids=str)
@pytest.mark.parametrize("size", [0, 1, 40])
def test_huge_scales_give_python_integers(scale, size):
    for x in (
        sampling.discrete_laplace(scale, size),
        sampling.geometric(1 / scale, size),
        sampling.discrete_gaussian(scale**2, size),
    ):
        assert (x.shape, x.dtype) == ((size,), object)
        assert all(type(v) is int and abs(v) < 2000 * scale for v in x)
        assert size < 40 or max(map(abs, x)) > scale / 10


def test_the_least_epsilon_on_the_finest_grid_works():
    x = sampling.discrete_laplace(F(2**31) * 2**50, 200)
    assert x.dtype == object
    assert len(set(x)) == 200
    assert any(v % 2 for v in x)


def test_tiny_scales_and_variances_give_zeros():
    for x in (F(1, 10**400), F(1, 2**64), F(1, 10**5)):
        assert not sampling.discrete_laplace(x, 1000).any()
        assert not sampling.geometric(1 / x, 1000).any()
        assert not sampling.discrete_gaussian(x, 1000).any()
        assert sampling.discrete_gaussian(x, 1)[0] == 0


def test_the_extreme_rates_of_a_noisy_maximum():
    assert not sampling.geometric(F(2048), 5000).any()
    x = sampling.geometric(F(1, 2**60), 300)
    assert x.dtype == object
    assert min(x) >= 0
    assert 2**59 < sum(x) / 300 < 2**61


def test_geometric_noise_is_never_negative():
    assert (sampling.geometric(F(1, 3), 20_000) >= 0).all()


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (sampling.discrete_laplace, "scale"),
        (sampling.discrete_gaussian, "variance"),
        (sampling.geometric, "rate"),
    ],
)
def test_bad_arguments_are_refused_before_any_draw(draw, name, replay):
    source = replay()
    for value in (F(0), F(-1, 3)):
        with pytest.raises(ValueError, match=f"^{name} must be positive, not {value}"):
            draw(value, 1)
    with pytest.raises(ValueError, match=r"^size must be at least 0, not -1\."):
        draw(F(1), -1)
    with pytest.raises(ValueError, match=r"^size must be at least 0, not -1\."):
        sampling.permutation(-1)
    assert source.drawn == 0


@pytest.mark.parametrize("n", [1, 13])
@pytest.mark.parametrize(
    "draw",
    [
        lambda n: sampling.discrete_laplace(F(2**28), n),
        lambda n: sampling.geometric(F(1, 2**28), n),
        lambda n: sampling.discrete_gaussian(F(2**56), n),
    ],
    ids=["laplace", "geometric", "gaussian"],
)
def test_noise_beyond_the_limit_is_an_error_with_a_fixed_text(draw, n, replay, monkeypatch):
    """The true limit of 2**62 cannot be reached, so it is lowered to 2**30; U = 2**-14 is 9.7 scales away."""
    monkeypatch.setattr(sampling, "_LIMIT", 2**30)
    replay(words(2**50, 2**63) + bytes(4) + words(2**50) * 40)
    with pytest.raises(OverflowError, match=r"^the noise does not fit 62 bits\. Use a coarser grid"):
        draw(n)


def test_a_far_tail_found_by_integers_is_checked_too(replay, monkeypatch):
    monkeypatch.setattr(sampling, "_LIMIT", 2**25)
    replay(words(*[0] * 13) + bytes(8))
    with pytest.raises(OverflowError, match=r"^the noise does not fit 62 bits\."):
        sampling.geometric(F(1, 2**20), 13)


def test_python_integers_have_no_limit(replay, monkeypatch):
    monkeypatch.setattr(sampling, "_LIMIT", 2**30)
    assert max(map(abs, sampling.discrete_laplace(F(2**48), 20))) > 2**44


def test_minus_zero_does_not_count_twice(replay):
    replay(words(2**64 - 1, 2**64 - 2**24) + words(2**64 - 1 - 2**40, 2**64 - 1))
    x = sampling.discrete_laplace(F(2**40), 1)
    assert x[0] < 0


# Randomness


def all_laws(n):
    yield sampling.discrete_laplace(F(20), n)
    yield sampling.discrete_laplace(F(2**30) * F(20, 3), n)
    yield sampling.discrete_laplace(F(2**70), n)
    yield sampling.discrete_gaussian(F(20), n)
    yield sampling.discrete_gaussian(F(2**70), n)
    yield sampling.geometric(F(1, 20), n)
    yield sampling.permutation(n)


@pytest.mark.parametrize("n", [5, 300])
def test_the_same_bytes_give_the_same_draws(n, replay):
    replay()
    first = [x.tolist() for x in all_laws(n)]
    replay()
    assert [x.tolist() for x in all_laws(n)] == first
    replay(key=b"other")
    assert all(x.tolist() != y for x, y in zip(all_laws(n), first, strict=True))


def test_only_random_bytes_reads_randomness(replay, monkeypatch):
    source = replay()

    def refuse(n):
        raise AssertionError("entropy read past random_bytes")

    monkeypatch.setattr(os, "urandom", refuse)
    drawn = 0
    for _ in all_laws(20):
        assert source.drawn > drawn
        drawn = source.drawn


def test_random_bytes_is_the_operating_system(monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda n: b"\x07" * n)
    assert sampling.random_bytes(3) == b"\x07\x07\x07"


def test_seeds_of_other_generators_change_nothing():
    def seeded():
        np.random.seed(0)
        random.seed(0)
        return [x.tolist() for x in all_laws(40)]

    assert all(x != y for x, y in zip(seeded(), seeded(), strict=True))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_children_draw_their_own_noise():
    sampling.discrete_laplace(F(2**40), 50)  # the parent has drawn before
    answers = {tuple(sampling.discrete_laplace(F(2**40), 4).tolist())}
    for _ in range(3):
        read, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # numpy's threads, from python 3.12 on
            child = os.fork()
        if not child:
            try:
                os.write(write, repr(sampling.discrete_laplace(F(2**40), 4).tolist()).encode())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            answers.add(tuple(map(int, pipe.read().strip("[]").split(","))))
        os.waitpid(child, 0)
    assert len(answers) == 4


def test_threads_draw_their_own_noise():
    def work(i):
        scale = F(2**40 + i % 2)
        x, y = sampling.discrete_laplace(scale, 500), sampling.discrete_gaussian(scale**2, 500)
        return x.tolist() + y.tolist()

    with ThreadPoolExecutor(8) as pool:
        drawn = [x for part in pool.map(work, range(16)) for x in part]
    assert len(drawn) == 16_000
    assert len(set(drawn)) > 15_990


def test_draws_of_one_call_differ():
    x = sampling.discrete_laplace(F(2**40), 50_000)  # several blocks
    assert len(set(x.tolist())) > 49_990


# Permutations


@pytest.mark.parametrize("size", [0, 1, 2, 1000])
def test_a_permutation_holds_every_number_once(size):
    order = sampling.permutation(size)
    assert order.dtype == np.int64
    assert sorted(order.tolist()) == list(range(size))


def test_ties_are_drawn_anew(replay):
    source = replay(words(5, 1, 5) + words(7, 7, 7) + words(30, 10, 20))
    assert sampling.permutation(3).tolist() == [1, 2, 0]
    assert source.calls == 3


def test_every_order_of_the_keys_gives_its_own_permutation(replay):
    seen = set()
    for keys in ((1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)):
        replay(words(*keys))
        seen.add(tuple(sampling.permutation(3).tolist()))
    assert len(seen) == 6
