"""Discrete Gaussian noise: concentrated privacy by the L2 sensitivity (docs/guarantees/gaussian.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe import _search
from dpframe.accounting._gaussian import shift_mu
from dpframe.mechanisms import _sampling
from dpframe.mechanisms._quantiles import COARSE, discrete_reach, normal_quantile, sum_quantile


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Adds to each integer independent noise with P[x] proportional to exp(-x**2 / (2 variance)).

    Formal guarantee: integers that one person moves by at most L in L2 are released with
    rho = L**2 / (2 variance) zero-concentrated differential privacy (Canonne, Kamath and Steinke 2020, theorem 14), and with
    Gaussian differential privacy of mu = L times `accounting._discrete.shift_mu` (docs/guarantees/discrete-gaussian.md).
    """

    name: ClassVar[str] = "gaussian"
    variance: Fraction

    @staticmethod
    def for_rho(l2_squared: int, rho: Fraction) -> Gaussian:
        """The least noise with this rho."""
        return Gaussian(l2_squared / (2 * rho))

    @staticmethod
    def for_mu(l2_squared: int, mu_squared: Fraction) -> Gaussian:
        """Noise with at most this mu squared, by exact comparison, and within 1e-9 of the least.

        >>> float(Gaussian.for_mu(1, Fraction(1, 100)).variance)  # a twelfth more than continuous noise would need
        100.08...
        """
        if not l2_squared:
            return Gaussian(Fraction(0))
        return Gaussian(_variance_for(mu_squared / l2_squared))

    @property
    def scale(self) -> float:
        """The parameter sigma."""
        return math.sqrt(self.variance)

    def release(self, integers: NDArray[Any]) -> NDArray[Any]:
        """The integers with noise, as integers."""
        noise = _sampling.discrete_gaussian(self.variance, integers.size).reshape(integers.shape)
        wide: NDArray[Any] = integers if noise.dtype != object else integers.astype(object)
        noisy: NDArray[Any] = wide + noise
        return noisy

    @property
    def deviation(self) -> float:
        """An upper bound on the standard deviation: sigma (same paper, corollary 9)."""
        return self.scale

    @np.errstate(under="ignore")
    def quantile(self, level: float, terms: int = 1) -> int:
        """A t with P[|X| <= t] >= level, for the sum X of some such variables; the least if sigma is small."""
        sigma = self.scale
        if sigma > COARSE:  # the tail is below the continuous one's, shifted by one step
            return math.ceil(normal_quantile(level) * sigma * math.sqrt(terms) + 0.5)
        steps = np.arange(math.ceil(40 * sigma) + 2)
        return sum_quantile(np.exp(-(steps**2) / (2 * sigma * sigma)), level, terms)

    @staticmethod
    def spread(level: float) -> float:
        """Deviations within which any weighted sum of continuous such noise stays with probability ``level``."""
        return normal_quantile(level)

    def reach(self, level: float, terms: int) -> float:
        """Deviations within which any weighted sum of so many whole numbers of such noise stays with that probability."""
        own = self.deviation
        if not own:
            return self.spread(level)
        smooth = math.sqrt(self.variance + Fraction(1, 5))
        return discrete_reach(self.spread, smooth, self.quantile, level, terms) / own

    def to_json(self) -> dict[str, str]:
        return {"mechanism": self.name, "variance": str(self.variance)}


@lru_cache(maxsize=1024)
def _variance_for(step_squared: Fraction) -> Fraction:
    """The least variance, nearly, at which a move by one has at most this mu squared."""
    low = 1 / step_squared
    high = low + Fraction(1, 8)
    while Fraction(shift_mu(high)) ** 2 > step_squared:
        low, high = high, 2 * high
    return _search.first_where(
        lambda variance: Fraction(shift_mu(variance)) ** 2 <= step_squared,
        low,
        high,
        middle=_search.float_halfway,
        close=lambda low, high: high - low <= low / 10**9,
    )
