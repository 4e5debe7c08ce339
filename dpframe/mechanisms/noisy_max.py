"""Report noisy max with one-sided geometric noise: private selection (docs/guarantees/noisy-max.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe.mechanisms import _sampling


@dataclass(frozen=True, slots=True)
class NoisyMax:
    """Adds to each integer score one-sided geometric noise and tells which is largest, and nothing else.

    Formal guarantee: with noise P[G >= t] = exp(-rate * t), the choice is epsilon-private for
    epsilon = rate * shift, where ``shift`` bounds by how much one person can move a score relative to any
    other: the sensitivity where all scores move one way (counts under add-remove), twice that otherwise.
    Ties go by an order drawn afresh, whatever the scores.
    """

    name: ClassVar[str] = "noisy-max"
    rate: Fraction

    @staticmethod
    def for_price(shift: int, epsilon: Fraction) -> NoisyMax:
        return NoisyMax(epsilon / shift)

    @property
    def scale(self) -> Fraction:
        return 1 / self.rate

    def release(self, scores: NDArray[Any]) -> NDArray[Any]:
        """The place of the chosen score along the second axis: one choice for each row, and for each group after it.

        The choices are independent. What one person can do to them adds up, and ``shift`` bounds that sum.
        """
        scores = scores.reshape(*scores.shape[:2], -1)
        noise = _sampling.geometric(self.rate, scores.size).reshape(scores.shape)
        noisy = scores + noise if noise.dtype != object else scores.astype(object) + noise
        best = noisy == noisy.max(axis=1, keepdims=True)
        if np.count_nonzero(best) > scores.shape[0] * scores.shape[2]:
            # The order is independent of the scores, so given it the shift argument applies.
            order = _sampling.permutation(scores.size).reshape(scores.shape)
            best = np.where(best, order, -1)
        choice: NDArray[Any] = best.argmax(axis=1)
        return choice

    def to_json(self) -> dict[str, str]:
        return {"mechanism": self.name, "rate": str(self.rate)}
