"""Noisy sums of one output, as an aggregate reads them: values, the covariance of their noise, ratios."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.mechanisms._base import Noise
from dpframe.mechanisms.noise import COARSE

Floats = NDArray[np.float64]
Interval = tuple[NDArray[Any], NDArray[Any]]

_LARGEST = np.finfo(float).max


@dataclass(frozen=True, slots=True)
class Cell:
    """One output as the plan knows it: which part of the vector it reads, and how."""

    name: Any
    aggregate: str
    part: int
    lower: float
    upper: float
    ddof: int
    whole: bool  # answers are whole numbers, whatever the data
    functionals: dict[str, tuple[float, ...]]
    constants: dict[str, float]


class Measured:
    """Noisy linear sums of one output, with the covariance of their noise (the same for every group)."""

    def __init__(self, cell: Cell, noise: Noise, raw: NDArray[Any] | None = None):
        self.cell = cell
        self.noise = noise
        self.raw = raw

    def weights(self, combination: dict[str, float]) -> Floats:
        rows = [w * np.asarray(self.cell.functionals[name]) for name, w in combination.items()]
        weights: Floats = np.sum(rows, axis=0)
        return weights

    def values(self, combination: dict[str, float]) -> NDArray[Any]:
        assert self.raw is not None
        weights = self.weights(combination)
        constant = sum(w * self.cell.constants.get(name, 0.0) for name, w in combination.items())
        if constant == 0 and np.count_nonzero(weights) == 1 and weights.max() == 1:
            row: NDArray[Any] = self.raw[int(np.argmax(weights))]  # exact, perhaps beyond 2**53
            return row
        with np.errstate(over="ignore"):
            sums: Floats = np.clip(weights @ self.raw.astype(float) + constant, -_LARGEST, _LARGEST)
        return sums

    def covariance(self, a: dict[str, float], b: dict[str, float]) -> float:
        return float(self.weights(a) @ self.weights(b)) * self.noise.deviation**2

    @np.errstate(all="ignore")  # whatever the caller's numpy does with tiny numbers
    def half_width(self, combination: dict[str, float], level: float) -> float:
        weights = self.weights(combination)
        used = np.abs(weights[weights != 0])
        if len(used) == 1 or (len(used) and self.noise.deviation < COARSE and np.ptp(used) == 0):
            return float(used[0] * self.noise.quantile(level, len(used)))  # exact for the integers
        return self.noise.reach(level, max(1, len(used))) * self.noise.deviation * math.hypot(*weights)

    def reach(self, level: float) -> float:
        """Deviations within which any weighted sum of these stays with probability ``level``."""
        return self.noise.reach(level, max(map(len, self.cell.functionals.values())))


def fieller(
    top: Floats, n: Floats, v_top: float | Floats, cov: float | Floats, v_n: float | Floats, reach: float
) -> tuple[Floats, Floats]:
    """All r with (top - r n)**2 <= reach**2 (v_top - 2 r cov + r**2 v_n); everything where n may be zero.

    At the true ratio the left side is noise alone, with just the variance on the right (Fieller 1954).
    """
    a = n * n - reach**2 * v_n
    b = top * n - reach**2 * cov
    c = top * top - reach**2 * v_top
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        root = np.sqrt(np.maximum(b * b - a * c, 0))
        low, high = (b - root) / a, (b + root) / a
    certain = (a > 0) & (n > 0) & np.isfinite(low) & np.isfinite(high)
    return np.where(certain, low, -np.inf), np.where(certain, high, np.inf)
