"""Quantiles for intervals: no privacy hangs on them, so doubles will do."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpframe import _search

# Below this deviation noise is visibly discrete, and its law is short enough to be summed.
COARSE = 64.0


@lru_cache(maxsize=256)
def normal_quantile(level: float) -> float:
    """Two-sided quantile of the standard normal, by bisection on erf (scipy would slow the import)."""
    return _search.first_where(lambda x: math.erf(x / math.sqrt(2)) >= level, 0.0, 40.0, rounds=80)


def discrete_reach(
    spread: Callable[[float], float],
    deviation: float,
    quantile: Callable[[float], int],
    level: float,
    terms: int,
) -> float:
    """A t of which a sum of so many weighted whole-number noises exceeds t times the norm of its weights with probability 1 -
    level at most. Their law, rounded no more, is nearer to zero than a continuous one with ``spread`` and ``deviation``.

    Each of four bounds holds, and the least is taken (docs/guarantees/intervals.md#sums-of-several-noisy-integers).
    """
    risk = 1 - level
    root = math.sqrt(terms)
    return min(
        spread(level) * deviation + root / 2,
        spread(1 - 0.99 * risk) * deviation + math.sqrt(math.log(200 / risk) / 6),
        spread(1 - risk / 2) * deviation,
        root * quantile(1 - risk / terms),
    )


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
