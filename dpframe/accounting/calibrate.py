"""From a price to noise, always on the safe side."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

# Covers the rounding of the few dozen double operations below a thousand times over.
_SLACK = 1e-9


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The least delta that proposition 12 of Canonne, Kamath and Steinke (2020) gives for rho-zCDP.

    The minimum over orders a > 1 of exp((a - 1)(a rho - epsilon) + a log1p(-1/a)) / (a - 1); any order is valid,
    so an inexact search only makes the answer safer.
    """

    def exponent(log_excess: float) -> float:
        x = math.exp(log_excess)  # a - 1
        return x * ((1 + x) * rho - epsilon) - (1 + x) * math.log1p(1 / x) - math.log(x)

    low, high = -30.0, 40.0
    for _ in range(70):
        third = (high - low) / 3
        if exponent(low + third) < exponent(high - third):
            high -= third
        else:
            low += third
    return math.exp(min(0.0, exponent((low + high) / 2))) * (1 + _SLACK)


@lru_cache(maxsize=1024)
def zcdp_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho (rounded down) such that rho-zCDP implies (epsilon, delta)-DP.

    >>> round(float(zcdp_rho(Fraction(1), Fraction(1, 10**6))), 6)
    0.024356
    """
    e, d = float(epsilon) * (1 - _SLACK), float(delta) * (1 - _SLACK)
    low, high = 1e-40, e + 1.0  # at every order rho-zCDP has an epsilon of at least rho
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if zcdp_delta(middle, e) <= d else (low, middle)
    return Fraction(low * (1 - 2 * _SLACK))
