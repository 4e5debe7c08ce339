"""The samplers from outside: types, sizes and limits, rare paths forced, entropy replayed."""

from __future__ import annotations

import os
import random
import warnings
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction as F

import numpy as np
import pytest

from dpframe.mechanisms import _sampling as sampling

SCALES = [F(1, 2048), F(1, 2), F(1), F(7, 3), F(10), F(1000), F(2**20), F(2**24)]
WIDE = [F(2**24) + F(1, 3), F(2**30) * F(20, 3), F(2**40), F(2**48) - 1]
OBJECTS = [F(2**48), F(2**81), F(10**40, 3)]


def words(*values):
    return b"".join(v.to_bytes(8, "little") for v in values)


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
    with pytest.raises(
        OverflowError, match=r"^the noise does not fit 62 bits\. Use a coarser grid"
    ):
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
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # numpy's threads, from python 3.12 on
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
