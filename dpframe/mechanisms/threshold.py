"""Thresholds on noisy counts: which keys many people share (docs/guarantees/keys.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe.mechanisms import _sampling

_UP = 1 + 1e-9  # covers the few roundings of each probability below


def each_of(failure: Fraction, keys: int) -> float:
    """The probability, rounded down, of which any of so many independent ones has at most ``failure``."""
    return -math.expm1(math.log1p(-float(failure) * (1 - 1e-12)) / keys) / _UP


@dataclass(frozen=True, slots=True)
class TruncatedThreshold:
    """Keeps a key if its count and noise X on {-cut, ..., cut}, P[x] proportional to exp(-rate |x|), exceed ``cut``.

    Formal guarantee: a count moved by 1 changes this by (rate, P[X = cut]) in either direction, and a key that one person
    alone has is kept with probability P[X = cut]. For one key a person no (epsilon, delta)-private rule keeps any key more
    often (Desfontaines, Voss, Gipson and Mandayam 2022).
    """

    name: ClassVar[str] = "truncated threshold"
    rate: Fraction
    cut: int

    @staticmethod
    def for_price(moved: int, epsilon: Fraction, failure: Fraction) -> TruncatedThreshold:
        """The least cut for a person who moves so many counts by 1."""
        rate = epsilon / moved
        each, a = each_of(failure, moved), float(rate)
        # exp(-a k) tanh(a / 2) bounds P[X = k] from below, so no smaller cut will do.
        cut = max(1, math.floor(math.log(math.tanh(a / 2) / each) / a)) if math.tanh(a / 2) > each else 1
        while _at_cut(a, cut) * _UP > each:
            cut += 1
        return TruncatedThreshold(rate, cut)

    @property
    def scale(self) -> Fraction:
        return 1 / self.rate

    @property
    def half(self) -> float:
        """How many people it takes to be kept as often as not."""
        return self.cut + 0.5

    def release(self, counts: NDArray[Any]) -> NDArray[np.bool_]:
        """Which counts are kept."""
        noise = np.empty(counts.shape, dtype=np.int64)
        missing = np.ones(counts.shape, dtype=bool)
        while missing.any():  # how often it is drawn again has nothing to do with the counts
            drawn = _sampling.discrete_laplace(self.scale, int(missing.sum()))
            noise[missing] = np.clip(drawn, -self.cut - 1, self.cut + 1).astype(np.int64)
            missing = np.abs(noise) > self.cut
        kept: NDArray[np.bool_] = counts + noise > self.cut
        return kept

    def to_json(self) -> dict[str, str]:
        return {"mechanism": self.name, "rate": str(self.rate), "cut": str(self.cut)}

    @staticmethod
    def from_json(data: dict[str, str]) -> TruncatedThreshold:
        return TruncatedThreshold(Fraction(data["rate"]), int(data["cut"]))


def _at_cut(a: float, cut: int) -> float:
    q = math.exp(-a)
    return math.exp(-a * cut) * -math.expm1(-a) / (1 + q - 2 * math.exp(-a * (cut + 1)))


@dataclass(frozen=True, slots=True)
class GaussianThreshold:
    """Keeps a key if its count and discrete Gaussian noise reach ``least``.

    Formal guarantee: that of the noise on the counts of keys which others have too, and a key that one person alone has
    is kept with probability P[1 + X >= least]. A key that counts for nobody is never kept: one person may bring any
    number of those, beyond their limit or outside of the filter.
    """

    name: ClassVar[str] = "gaussian threshold"
    variance: Fraction
    least: int

    @staticmethod
    def at(variance: Fraction, keys: int, failure: Fraction) -> GaussianThreshold:
        """The least threshold for a person with so many keys.

        P[X >= m] <= Q((m - 1/2) / sigma) where m - 1/2 >= sigma: there exp(-x**2 / (2 variance)) is convex, so each term is
        below its integral over half a step to either side; and the sum of all terms is at least sqrt(2 pi variance), by
        Poisson's formula.
        """
        each, sigma = each_of(failure, keys), math.sqrt(variance)
        low, high = 1.0, 40.0  # in deviations
        for _ in range(80):
            middle = (low + high) / 2
            above = math.erfc(middle / math.sqrt(2)) / 2 * _UP > each
            low, high = (middle, high) if above else (low, middle)
        return GaussianThreshold(variance, 1 + math.ceil(high * sigma * _UP + 0.5))

    @property
    def scale(self) -> float:
        return math.sqrt(self.variance)

    @property
    def half(self) -> float:
        """How many people it takes to be kept as often as not."""
        return float(self.least)

    def release(self, counts: NDArray[Any]) -> NDArray[np.bool_]:
        """Which counts are kept."""
        noise = _sampling.discrete_gaussian(self.variance, counts.size).reshape(counts.shape)
        # A count of 0 is a key that is in the frame and counts for nobody: no failure of the proof covers it.
        kept: NDArray[np.bool_] = np.asarray((counts > 0) & (counts + noise >= self.least), dtype=bool)
        return kept

    def to_json(self) -> dict[str, str]:
        return {"mechanism": self.name, "variance": str(self.variance), "least": str(self.least)}

    @staticmethod
    def from_json(data: dict[str, str]) -> GaussianThreshold:
        return GaussianThreshold(Fraction(data["variance"]), int(data["least"]))
