"""Exact coins in bulk: U < p for many rows, each with a uniform number U of its own, of which few
bits are drawn.

The first eight binary digits of U settle all but one or two in 256 coins. Only the doubtful ones
draw more, until the comparison is certain: a coin falls as U says, which is heads with probability
p exactly. The proofs are in ``docs/guarantees/randomized-response.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpframe._sizes import SIZES
from dpframe._types import Array
from dpframe.mechanisms import _sampling

Bools = NDArray[np.bool_]
Interval = Callable[
    [int], tuple[int, int]
]  # of bits: integers that enclose 2**bits p, at most 2 apart

_MORE: Final = 64  # further digits of a doubtful coin
_REST: Final = 2**_MORE - 1
_RATE: Final = 16  # binary digits of a sampling rate


def draw_integers(n: int, dtype: str) -> Array:
    return np.frombuffer(_sampling.random_bytes(n * np.dtype(dtype).itemsize), dtype=dtype)


def coins(interval: Interval, n: int) -> Bools:
    """Return `n` independent random booleans, each True with exactly the probability p.
    ``interval(bits)`` gives two integers that enclose ``2**bits p``; p is below 1 - 2**-70. Few
    random bits decide most coins, and more are drawn for the rest."""
    low, high = interval(8 + _MORE)
    first, last = low >> _MORE, high >> _MORE
    heads = np.empty(n, dtype=np.bool_)
    for start in range(0, n, SIZES.coins):
        block = heads[start : start + SIZES.coins]
        digits = draw_integers(len(block), "u1")
        np.less(digits, first, out=block)
        doubtful = np.flatnonzero(
            digits == first if first == last else (digits >= first) & (digits <= last)
        )
        words = draw_integers(len(doubtful), "<u8")
        undecided = np.ones(len(words), dtype=np.bool_)
        if first == last:
            ends = np.uint64(low & _REST), np.uint64(high & _REST)
            block[doubtful] = words < ends[0]
            undecided = (words >= ends[0]) & (words <= ends[1])
        for i, word in zip(doubtful[undecided].tolist(), words[undecided].tolist(), strict=True):
            block[i] = _sampling._Uniform((int(digits[i]) << _MORE) + word, 8 + _MORE).below(
                interval
            )
    return heads


def coins_of(numerators: NDArray[np.int64], denominator: int) -> Bools:
    """Return a random boolean for each numerator r, True with probability exactly r / denominator.
    Each r is at least 0 and below the denominator, which is at most 2**54.

    The binary digits of r / denominator come eight at a time by long division, and are compared
    with those of U.
    """
    heads = np.zeros(len(numerators), dtype=np.bool_)
    for start in range(0, len(numerators), SIZES.coins):
        rest = numerators[start : start + SIZES.coins]
        places = np.arange(start, start + len(rest))
        while len(places):
            scaled = rest * 256
            digits = scaled // denominator  # a third of the time of divmod
            rest = scaled - digits * denominator
            drawn = draw_integers(len(places), "u1")
            heads[places[drawn < digits]] = True
            same = drawn == digits
            places, rest = places[same], rest[same]
    return heads


def uniform(below: int, n: int) -> Array:
    """Return `n` independent random integers, exactly uniform on 0 to ``below`` - 1, for 1 <= below
    <= 2**16.

    Multiply ``below`` by a random word of b bits, and return the upper b bits of the product. The
    numbers would not be equally likely, since 2**b is no multiple of ``below``. So a word is drawn
    again if the lower half of its product is less than 2**b mod below (Lemire 2019, section 4).
    """
    bits, dtype, wide = (16, "<u2", np.uint32) if below <= 2**8 else (32, "<u4", np.uint64)
    out = np.empty(n, dtype=np.uint16)
    done, spare = 0, 2**bits % below
    while done < n:
        products: Any = draw_integers(min(SIZES.coins, n - done), dtype).astype(wide)
        products *= wide(below)
        if spare:
            products = products[(products & wide(2**bits - 1)) >= wide(spare)]
        products >>= wide(bits)
        out[done : done + len(products)] = products
        done += len(products)
    return out


def rate_of(wanted: float) -> int:
    """Return a sampling probability as a whole number of units of 2**-16, the nearest one.

    It is at least one unit.
    """
    return max(1, round(wanted * (1 << _RATE)))


def thrown(rate: int, n: int) -> Bools:
    """Return `n` independent coins, each True with probability rate / 2**16, exactly.

    They decide which rows a step of gradient descent samples.
    """
    heads: Bools = draw_integers(n, "<u2") < rate
    return heads
