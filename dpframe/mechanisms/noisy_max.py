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
        """The place of the chosen score, in an array of one. Of three axes the second has the candidates, and there is
        a choice for each place on the two others.

        The choices are independent. What one person can do to them adds up, and ``shift`` bounds that sum.
        """
        if scores.ndim < 3:
            scores = scores.reshape(1, -1, 1)
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

    @staticmethod
    def from_json(data: dict[str, str]) -> NoisyMax:
        return NoisyMax(Fraction(data["rate"]))


@dataclass(frozen=True, slots=True)
class NoisyTop:
    """Peels: the noisy maximum, then that of what is left, ``rounds`` times; tells the places in this order.

    Formal guarantee: each round is a noisy maximum of ``rate * shift`` by itself, over candidates that earlier answers
    have fixed, so all of them together are epsilon-private for epsilon = rounds * rate * shift (basic composition,
    which holds for questions that depend on earlier answers).

    >>> NoisyTop(Fraction(50), 2).release(np.array([[3, 9, 4]]))[0].tolist()
    [1, 2]
    """

    name: ClassVar[str] = "noisy-top"
    rate: Fraction
    rounds: int

    @staticmethod
    def for_price(shift: int, epsilon: Fraction, rounds: int) -> NoisyTop:
        return NoisyTop(epsilon / (shift * rounds), rounds)

    @property
    def scale(self) -> Fraction:
        return 1 / self.rate

    def release(self, scores: NDArray[Any]) -> NDArray[Any]:
        """The places of the chosen scores, in an array of one row."""
        flat, one = scores.reshape(-1), NoisyMax(self.rate)
        left = np.arange(flat.size)
        chosen = []
        for _ in range(self.rounds):
            at = int(one.release(flat[left])[0, 0])
            chosen.append(left[at])
            left = np.delete(left, at)
        return np.array([chosen], dtype=np.int64)

    def to_json(self) -> dict[str, Any]:
        return {"mechanism": self.name, "rate": str(self.rate), "rounds": self.rounds}

    @staticmethod
    def from_json(data: dict[str, Any]) -> NoisyTop:
        return NoisyTop(Fraction(data["rate"]), data["rounds"])
