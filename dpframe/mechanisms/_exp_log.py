"""Rigorous values of exp and ln: integer intervals, and doubles with a proven error.

Only ``+ - * /`` and conversions of IEEE-754 doubles are used, each correctly rounded to nearest, and exact
changes of exponent; no logarithm or exponential of a C library is called. The bounds are proven in
``docs/guarantees/sampling.md``.
"""

from __future__ import annotations

import math
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Real = TypeVar("Real", float, Reals)

_LN2: Final = 0.6931471805599453  # within 2**-55
_ROOT_HALF: Final = 0.7071067811865476  # within 2**-54
_SERIES: Final = tuple(2.0 / n for n in (15, 13, 11, 9, 7, 5, 3, 1))
_MANTISSA: Final = 2**52 - 1
_EXPONENT_OF_HALF: Final = 1022


def exp_interval(num: int, den: int, bits: int) -> tuple[int, int]:
    """Integers ``lo <= 2**bits exp(-num/den) <= hi`` with ``hi - lo <= 2``, for a quotient >= 0.

    ``exp(-x) = exp(-x / 2**halvings) ** (2**halvings)``: an alternating series whose terms are rounded down
    (each at most 2 units wrong) at an argument below 1/8, then squarings rounded outwards.
    """
    if num >= den * bits:  # exp(-bits) < 2**-bits
        return 0, 1
    halvings = (num // den).bit_length() + 3 + math.isqrt(bits)  # about as many as there are terms
    unit = bits + halvings + bits.bit_length() + 8
    x = (num << unit) // (den << halvings)
    total, term, i = 1 << unit, 1 << unit, 0
    while term:
        i += 1
        term = (term * x >> unit) // i
        total += -term if i & 1 else term
    error = 2 * i + 4  # the terms, the rest of the series, and x itself (less than one unit)
    lo, hi = total - error, total + error
    for _ in range(halvings):
        lo = lo * lo >> unit
        hi = (hi * hi >> unit) + 1
    return max(0, lo >> (unit - bits)), min(1 << bits, (hi >> (unit - bits)) + 1)


def one_minus_exp_interval(num: int, den: int, bits: int) -> tuple[int, int]:
    """Integers ``lo <= 2**bits (1 - exp(-num/den)) <= hi`` with ``hi - lo <= 2``."""
    lo, hi = exp_interval(num, den, bits)
    return (1 << bits) - hi, (1 << bits) - lo


def _log_from_middle(m: Real) -> Real:
    """``ln(m / sqrt(1/2))`` for m in [1/2, 1), within 2**-50.

    It is ``2 artanh(s)`` with ``s = (m - r) / (m + r)``, r = sqrt(1/2), so ``|s| < 0.1716``: nine terms.
    """
    s = (m - _ROOT_HALF) / (m + _ROOT_HALF)
    square = s * s
    total = square * (2.0 / 17)
    for coefficient in _SERIES:
        total += coefficient
        total *= square if coefficient < 2.0 else s
    return total


def minus_log(x: Reals, bits: int) -> Reals:
    """``-ln(x / 2**bits)`` within 2**-46 for 1 <= x <= 2**bits <= 2**64; any finite number for x = 0."""
    pattern = x.view(np.int64)
    m = (pattern & _MANTISSA | _EXPONENT_OF_HALF << 52).view(np.float64)
    out = (pattern >> 52).astype(np.float64)
    np.subtract(bits + 0.5 + _EXPONENT_OF_HALF, out, out=out)
    out *= _LN2
    out -= _log_from_middle(m)
    return out


def minus_log_int(x: int, bits: int) -> float:
    """`minus_log` of one integer, rounded to a double first."""
    m, exponent = math.frexp(x)
    return (bits + 0.5 - exponent) * _LN2 - _log_from_middle(m)
