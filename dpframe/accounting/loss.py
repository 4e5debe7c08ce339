"""What a release costs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Loss:
    """An (epsilon, delta) guarantee, exact; losses of successive releases add (basic composition).

    >>> sum((Loss(Fraction(1, 10)) for _ in range(10)), Loss(Fraction(0))).epsilon
    Fraction(1, 1)
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.epsilon + other.epsilon, self.delta + other.delta)

    def __sub__(self, other: Loss) -> Loss:
        return Loss(self.epsilon - other.epsilon, self.delta - other.delta)

    def fits(self, limit: Loss) -> bool:
        return self.epsilon <= limit.epsilon and self.delta <= limit.delta
