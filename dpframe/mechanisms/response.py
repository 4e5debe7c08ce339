"""Randomized response: each row reports its value truly or not, by exact coins
(docs/guarantees/randomized-response.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dpframe._sizes import SIZES
from dpframe._types import Array
from dpframe.mechanisms import _coins
from dpframe.mechanisms._base import L1, Form, Norm, Pure, Shape, register
from dpframe.mechanisms._sampling import exp_interval

MOST: Final = 2**16  # values that a row may have
POINTS: Final = 2**8  # of the grid of a number
Codes = NDArray[Any]


# A person tells each report by itself: it is the same, or another.
REPORTS = replace(L1, exact="people whose reports differ")


@register
@dataclass(frozen=True, slots=True)
class Response(Pure):
    """One of k public values in, one of them out: the true one, or with probability ``k /
    (e**epsilon + k - 1)`` a uniform one of all k. So the truth is told with probability
    ``e**epsilon / (e**epsilon + k - 1)``.

    Formal guarantee: each report is epsilon-private in the value it is made from, and no other row
    has to do with it (Warner 1965; the notes' randomized response for k = 2). A row without a
    listed value reports a uniform one, which is epsilon-private next to every other, too. Coins
    have exactly their probabilities.

    >>> Response(Fraction(50), 3).respond(np.array([1, 3, 2])).tolist()  # 0 would be no listed value
    [0, 2, 1]
    """

    name: ClassVar[str] = "randomized-response"
    proof: ClassVar[str] = "randomized-response.md"
    norm: ClassVar[Norm] = REPORTS
    by_row: ClassVar[bool] = True
    epsilon: Fraction  # of one report
    k: int

    @property
    def scale(self) -> Fraction:
        return 1 / self.epsilon

    @property
    def lies(self) -> float:
        """The probability of a uniform report."""
        odds = math.exp(-float(self.epsilon))
        return self.k * odds / (1 + (self.k - 1) * odds)

    @property
    def kept(self) -> float:
        """The probability of a report that is not uniform: how much of the truth is left, exactly 1 - ``lies``."""
        e = -float(self.epsilon)
        return -math.expm1(e) / (1 + (self.k - 1) * math.exp(e))

    @property
    def truth(self) -> float:
        """The probability that a report is the true value."""
        return self.kept + self.lies / self.k

    def interval(self, times: int, bits: int) -> tuple[int, int]:
        """Return two integers, at most 2 apart, that enclose ``2**bits p``.

        Here p is ``times / (e**epsilon + k - 1)``, the probability of a coin that `_coins.coins`
        throws. ``times`` is 1 or ``k``.
        """
        more = bits + 24
        low, high = exp_interval(self.epsilon.numerator, self.epsilon.denominator, more)
        # With q = e**-epsilon, p is times q / (1 + (k - 1) q), which grows with q.
        unit, other_values = 1 << more, self.k - 1
        return (
            (times * low << bits) // (unit + other_values * low),
            -((-times * high << bits) // (unit + other_values * high)),
        )

    def respond(self, places: Codes) -> Codes:
        """Return a randomized report for each row, a number from 0 to k - 1.

        ``places`` has 1 + the index of a row's value, or 0 if its value is not listed. A report is
        the index of the value, or uniform over all values with the probability `lies`. A row
        without a listed value always gets a uniform report.
        """
        n = len(places)
        reports: Any = np.empty(n, dtype=np.uint8 if self.k <= 2**8 else np.uint16)
        np.subtract(places, 1, out=reports, casting="unsafe")
        blank = places == 0
        if self.k == 2:
            # A coin turns a report around with half the probability of a uniform one, which is
            # false half the time.
            reports ^= _coins.coins(partial(self.interval, 1), n).view(np.uint8)
        else:
            blank |= _coins.coins(partial(self.interval, self.k), n)
        rows = np.flatnonzero(blank)
        reports[rows] = _coins.uniform(self.k, len(rows))
        codes: Codes = reports
        return codes

    def release(self, entries: Array, width: int | None = None) -> Codes:
        """Return randomized reports of rows, as `respond` makes them. With a ``width`` the integers
        are grid steps, and are rounded to the points first."""
        return self.respond(entries if width is None else round_to_points(entries, width, self.k))

    def epsilon_for(self, distance: int) -> Fraction:
        return self.epsilon * distance

    def form(self, shape: Shape) -> Form:
        return Form(shape, "u")


def round_to_points(steps: NDArray[np.int64], width: int, points: int) -> Codes:
    """Round whole numbers 0 <= s <= width at random to a coarser grid, without bias. The results
    are from 1, for s = 0, to ``points``, for s = width.

    ``E[place - 1] = s (points - 1) / width`` exactly. For ``points`` at most 256 and a width below
    2**32. A negative s is no number, and gets place 0.
    """
    codes = np.empty(len(steps), dtype=np.uint16)
    for start in range(0, len(steps), SIZES.reports):
        block = steps[start : start + SIZES.reports]
        scaled = np.maximum(block, 0) * (points - 1)
        places = scaled // width
        places += _coins.coins_of(scaled - places * width, width)
        places += 1
        places[block < 0] = 0
        codes[start : start + SIZES.reports] = places
    return codes


def spread(response: Response, t: float) -> float:
    """Return the variance of the unbiased estimate of a number t in [0, 1] from one randomized
    report.

    The number is rounded at random to one of k points, and then randomized by ``response``. Both
    steps add variance: ``within`` is that of the rounding.
    """
    m = response.k - 1
    part = t * m - math.floor(t * m)
    within = part * (1 - part) / m**2
    blank = (2 * m + 1) / (6 * m) - 0.25  # of a uniform point
    return (
        within + (response.lies * blank) / response.kept + response.lies * (t - 0.5) ** 2
    ) / response.kept


@lru_cache(maxsize=256)
def points_for(epsilon: Fraction) -> int:
    """Return the number of grid points to round a value to before it is randomized.

    It has the smallest variance at the worst value, and follows from epsilon alone. That variance
    falls and then rises with the number of points, so the search stops when it rises.
    """
    best, least = 2, math.inf
    for points in range(2, POINTS + 1):
        response = Response(epsilon, points)
        if response.kept == 0.0:  # epsilon is so small that all reports are uniform, in doubles
            return best
        worst = worst_spread(response)
        if worst > least:
            break
        best, least = points, worst
    return best


def worst_spread(response: Response) -> float:
    """Return the largest variance of an estimate from one report, over all numbers t in [0, 1].

    It is the largest `spread`. Between two neighbouring points that is a parabola in t that bends
    down. ``tops`` has where these parabolas have their tops, each moved into its interval. The
    variance at t is that at 1 - t, so half of the intervals are searched.
    """
    m, lies, truthful = response.k - 1, response.lies, response.kept
    tops = ((2 * i + 1) / m - lies for i in range(m // 2 + 1))
    inside = (min(max(top / (2 * truthful), i / m), (i + 1) / m) for i, top in enumerate(tops))
    return max(spread(response, t) for t in [0.0, *inside])
