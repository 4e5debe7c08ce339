"""Quantiles for intervals: no privacy hangs on them, so doubles will do."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

# Below this deviation noise is visibly discrete, and its law is short enough to be summed.
COARSE = 64.0


@lru_cache(maxsize=256)
def normal_quantile(level: float) -> float:
    """Two-sided quantile of the standard normal, by bisection on erf (scipy would slow the import)."""
    low, high = 0.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle / math.sqrt(2)) < level else (low, middle)
    return high


def sum_quantile(weights: NDArray[np.float64], level: float, terms: int) -> int:
    """The least t with P[|X1 + ... + Xterms| <= t] >= level, each with P[x] proportional to weights[|x|]."""
    one = np.concatenate([weights[:0:-1], weights])
    one /= one.sum()
    law = one
    for _ in range(terms - 1):
        law = np.convolve(law, one)
    middle = len(law) // 2
    inside = law[middle] + 2 * np.concatenate([[0.0], np.cumsum(law[middle + 1 :])])
    return int(np.searchsorted(inside, min(level, inside[-1])))
