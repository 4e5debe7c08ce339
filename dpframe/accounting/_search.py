"""Bisection that ends on the safe side: the last point where a statement holds, or the first from
which on it does.

The statement is monotone on an interval; it is known to hold at the near end and to fail at the far
end. The result is the near end or a point at which the statement was tried and held, never an
untried point in between: so a bound that is claimed only where a check passed stays a bound,
however the numbers round. The near end is not tried again, and the far end only where a middle
rounds to it. The numbers may be floats, fractions or whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

Number = TypeVar("Number", int, float, Fraction)
_DOUBLES = (
    2200  # more halvings than there are between the largest double and the digits of the least
)


def whole_halfway(low: int, high: int) -> int:
    """Return the mean of two whole numbers, rounded down."""
    return (low + high) // 2


def float_halfway(low: Fraction, high: Fraction) -> Fraction:
    """Return the mean of two fractions, rounded to a double so that it stays short."""
    return Fraction(float((low + high) / 2))


def ratio_halfway(low: float, high: float) -> float:
    """Return the geometric mean, for numbers of unknown size."""
    return math.sqrt(low * high)


def last_where(
    holds: Callable[[Number], bool],
    low: Number,
    high: Number,
    *,
    rounds: int = _DOUBLES,
    middle: Callable[[Number, Number], Number] | None = None,
    close: Callable[[Number, Number], bool] | None = None,
) -> Number:
    """Bisect for the last point of [low, high) at which a statement holds.

    ``holds`` has to be true at ``low``, false at ``high``, and change once between them. The result
    is ``low`` or a point that was tried.

    The search ends after ``rounds`` rounds (fractions need a limit), when the ends are
    ``close``, or when no number lies between them, so that the next one fails. Without ``middle``
    it tries the mean.

    >>> last_where(lambda x: x * x <= 2, 0.0, 2.0)
    1.414213562373095
    >>> last_where(lambda n: n * n <= 50, 0, 50, middle=whole_halfway)
    7
    """
    for _ in range(rounds):
        at: Any = (low + high) / 2 if middle is None else middle(low, high)
        if not low < at <= high or (close is not None and close(low, high)):
            break
        if holds(at):
            low = at
        elif at == high:  # rounded to the end
            break
        else:
            high = at
    return low


def first_where(
    holds: Callable[[Number], bool],
    low: Number,
    high: Number,
    *,
    rounds: int = _DOUBLES,
    middle: Callable[[Number, Number], Number] | None = None,
    close: Callable[[Number, Number], bool] | None = None,
) -> Number:
    """Bisect for the first point of (low, high] from which on a statement holds.

    ``holds`` has to be false at ``low``, true at ``high``, and change once between them. The result
    is ``high`` or a point that was tried. At most ``rounds`` points are tried. ``middle`` returns
    the next one between two others, by default their mean. The search ends early if ``close`` is
    true of the two ends.

    >>> first_where(lambda x: x * x >= 2, 0.0, 2.0)
    1.4142135623730951
    """
    for _ in range(rounds):
        at: Any = (low + high) / 2 if middle is None else middle(low, high)
        if not low <= at < high or (close is not None and close(low, high)):
            break
        if holds(at):
            high = at
        elif at == low:
            break
        else:
            low = at
    return high
