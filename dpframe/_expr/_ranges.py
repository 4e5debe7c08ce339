"""Interval arithmetic: bounds on the results of float64 arithmetic, from bounds on its operands.

An interval holds every finite value that numpy gives: its ends are exact, or moved outwards past
every rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

Interval = tuple[float, float] | None
_Pair = tuple[float, float]


def outward(low: Fraction, high: Fraction, *, ulps: int = 0) -> Interval:
    """Return the smallest interval of doubles around an exact one; None if an end is too large.

    Ends that are doubles stay. ``ulps`` is the number of doubles by which each end is moved further
    out.
    """
    try:
        a, b = float(low), float(high)
    except OverflowError:
        return None
    for _ in range(ulps + (Fraction(a) > low)):
        a = math.nextafter(a, -math.inf)
    for _ in range(ulps + (Fraction(b) < high)):
        b = math.nextafter(b, math.inf)
    return (a + 0.0, b + 0.0) if math.isfinite(a) and math.isfinite(b) else None


def union(a: Interval, b: Interval) -> Interval:
    """Return the smallest interval around both; None if one is not known."""
    return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))


def _corners(a: _Pair, b: _Pair, f: Callable[[Fraction, Fraction], Fraction]) -> list[Fraction]:
    """Return what ``f`` makes of each end of one interval with each end of another."""
    return [f(Fraction(x), Fraction(y)) for x in a for y in b]


def _add(a: _Pair, b: _Pair) -> Interval:
    return outward(Fraction(a[0]) + Fraction(b[0]), Fraction(a[1]) + Fraction(b[1]))


def _multiply(a: _Pair, b: _Pair) -> Interval:
    ends = _corners(a, b, lambda x, y: x * y)
    return outward(min(ends), max(ends))


def _divide(a: _Pair, b: _Pair) -> Interval:
    """Return an interval around all quotients of a number in ``a`` by one in ``b``.

    The result is None if the divisor can be zero.
    """
    if b[0] <= 0 <= b[1]:
        return None
    ends = _corners(a, b, lambda x, y: x / y)
    return outward(min(ends), max(ends))


def _floor_divide(a: _Pair, b: _Pair) -> Interval:
    """Return an interval around all quotients of a number in ``a`` by one in ``b``, rounded down.

    The result is None if the divisor can be zero.
    """
    if b[0] <= 0 <= b[1]:
        return None
    ends = [math.floor(q) for q in _corners(a, b, lambda x, y: x / y)]
    # Above 2**50 numpy's quotient is a rounded one; below, it is the exact floor.
    return outward(
        Fraction(min(ends)), Fraction(max(ends)), ulps=4 if max(map(abs, ends)) > 2**50 else 0
    )


def _modulo(a: _Pair, b: _Pair) -> Interval:
    """Return an interval around all remainders of a number in ``a`` divided by one in ``b``.

    The result is None if the divisor can be zero.
    """
    if b[0] <= 0 <= b[1]:
        return None
    return (
        (0.0, b[1]) if b[0] > 0 else (b[0], 0.0)
    )  # the sign of the divisor, closed because of rounding


def _power(a: _Pair, b: _Pair) -> Interval:
    """Return an interval around all powers with a base in ``a`` and an exponent in ``b``.

    The result is None where a power may have no value or be infinite.
    """
    whole = b[0] == b[1] and b[0] >= 0 and b[0].is_integer()
    if not whole and (a[0] < 0 or (a[0] == 0 and b[0] < 0)):
        return (
            None  # negative bases have NaN for most exponents, and zero has inf for negative ones
        )
    try:
        ends = [Fraction(math.pow(x, y)) for x in a for y in b]
    except OverflowError:
        return None
    if whole and b[0] > 0 and b[0] % 2 == 0 and a[0] < 0 < a[1]:
        ends.append(Fraction(0))
    interval = outward(min(ends), max(ends), ulps=4)  # pow is not correctly rounded
    return interval if interval is None or min(ends) < 0 else (max(0.0, interval[0]), interval[1])


ARITHMETIC: dict[str, Callable[[_Pair, _Pair], Interval]] = {
    "+": _add,
    "-": lambda a, b: _add(a, (-b[1], -b[0])),
    "*": _multiply,
    "/": _divide,
    "//": _floor_divide,
    "%": _modulo,
    "**": _power,
}
