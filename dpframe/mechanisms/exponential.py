"""The exponential mechanism on integer scores, sampled exactly (docs/guarantees/exponential.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe.mechanisms import _sampling

_FEW = 16
_MANY = 2**14  # tries per array operation


@dataclass(frozen=True, slots=True)
class Exponential:
    """Chooses place i with probability proportional to exp(rate * score[i]), and tells nothing else.

    Formal guarantee: let ``reach`` bound how much more one person can move one score than another, over all pairs of
    scores. For rate = epsilon / reach all privacy losses of the choice lie in an interval of length epsilon that
    holds 0 (McSherry and Talwar 2007; Durfee and Rogers 2019): it is of epsilon-bounded range, hence epsilon-private.
    The notes' weights exp(epsilon u / S), where S bounds the move of each score, are rate = epsilon / S: 2 epsilon-private,
    since the reach is at most 2 S. Every choice has exactly its probability: no weight is ever computed.

    >>> int(Exponential(Fraction(50)).release(np.array([[3, 9, 4]]))[0, 0])
    1
    """

    name: ClassVar[str] = "exponential"
    rate: Fraction

    @staticmethod
    def for_price(reach: int, epsilon: Fraction) -> Exponential:
        """The largest rate that epsilon pays for."""
        return Exponential(epsilon / reach)

    @property
    def scale(self) -> Fraction:
        return 1 / self.rate

    def release(self, scores: NDArray[Any]) -> NDArray[Any]:
        """The place of the chosen score, in an array of one.

        A uniform place is kept if a geometric number with P[G >= t] = exp(-rate t) reaches the distance of its score
        from the largest; otherwise the next place is tried. The first that is kept has the law above, and of k tries
        one is kept on average, or more.
        """
        flat = scores.reshape(-1)
        low, top = int(flat.min()), int(flat.max())
        if top - low >= 2**62:
            flat = flat.astype(object)
        gaps = top - flat
        while True:
            places = _uniform(flat.size, min(max(flat.size, _FEW), _MANY))
            kept = np.flatnonzero(_sampling.geometric(self.rate, places.size) >= gaps[places])
            if kept.size:
                return places[kept[:1]].reshape(1, 1)

    def to_json(self) -> dict[str, str]:
        return {"mechanism": self.name, "rate": str(self.rate)}

    @staticmethod
    def from_json(data: dict[str, str]) -> Exponential:
        return Exponential(Fraction(data["rate"]))


def _uniform(below: int, size: int) -> NDArray[np.int64]:
    """`size` independent numbers or fewer, exactly uniform on 0 to `below` - 1: remainders of 64-bit words, without the
    last words, of which some remainders have one more than others. A word is left out with probability below / 2**64."""
    words = np.frombuffer(_sampling.random_bytes(8 * size), dtype="<u8")
    last = np.uint64(2**64 - 2**64 % below - 1)
    return (words[words <= last] % np.uint64(below)).astype(np.int64)
