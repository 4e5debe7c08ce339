"""Discrete Laplace noise: pure epsilon by the L1 sensitivity (docs/guarantees/laplace.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe.mechanisms import _sampling
from dpframe.mechanisms._quantiles import discrete_reach, normal_quantile, sum_quantile


@dataclass(frozen=True, slots=True)
class Laplace:
    """Adds to each integer independent noise with P[x] proportional to exp(-|x| / scale).

    Formal guarantee: integers that one person moves by at most ``l1`` in L1 are released with epsilon at most
    ``l1 / scale``, under the neighbouring relation of that sensitivity (Ghosh, Roughgarden and Sundararajan
    2009; the lecture notes' theorem 4, on integers). Scale and epsilon are the same rational number.

    >>> Laplace.for_price(2, Fraction(1, 2)).scale
    Fraction(4, 1)
    """

    name: ClassVar[str] = "laplace"
    scale: Fraction

    @staticmethod
    def for_price(l1: int, epsilon: Fraction) -> Laplace:
        return Laplace(l1 / epsilon)

    def release(self, integers: NDArray[Any]) -> NDArray[Any]:
        """The integers with noise, as integers."""
        noise = _sampling.discrete_laplace(self.scale, integers.size).reshape(integers.shape)
        wide: NDArray[Any] = integers if noise.dtype != object else integers.astype(object)
        noisy: NDArray[Any] = wide + noise
        return noisy

    @property
    def deviation(self) -> float:
        """Standard deviation: sqrt(2 q) / (1 - q) with q = exp(-1/scale)."""
        rate = float(1 / self.scale)
        return math.sqrt(2 * math.exp(-rate)) / -math.expm1(-rate)

    def quantile(self, level: float, terms: int = 1) -> int:
        """The least t with P[|X| <= t] >= level, for the sum X of some such variables."""
        rate = float(1 / self.scale)
        q = math.exp(-rate)
        if terms == 1:  # P[|X| > t] = 2 q**(t+1) / (1 + q)
            return max(0, math.ceil(-math.log((1 - level) * (1 + q) / 2) / rate - 1 - 1e-9))
        reach = min(math.ceil(60 / rate), 2**14) + 1
        return sum_quantile(np.exp(-rate * np.arange(reach)), level, terms)

    @staticmethod
    def spread(level: float) -> float:
        """Deviations within which any weighted sum of continuous such noise stays with probability ``level``.

        One Laplace variable and the Gaussian limit of many are the extremes; where they cross, sums of two need
        a thousandth more (the tests check it over weights).
        """
        return 1.0015 * max(-math.log1p(-level) / math.sqrt(2), normal_quantile(level))

    def reach(self, level: float, terms: int) -> float:
        """Deviations within which any weighted sum of so many whole numbers of such noise stays with that probability."""
        own = self.deviation
        if not own:
            return self.spread(level)
        smooth = own * math.cosh(float(1 / self.scale) / 2)
        return discrete_reach(self.spread, smooth, self.quantile, level, terms) / own

    def to_json(self) -> dict[str, str]:
        return {"mechanism": self.name, "scale": str(self.scale)}
