"""The privacy loss distribution as an accountant: for reports, and for one batch of plans that was declared in advance.

What was declared before the first answer is a fixed list, however its parts are then used, so the product of its pairs
dominates it (docs/guarantees/accounting.md). A second batch would depend on the first one's answers: it is refused.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from dpframe.accounting import pld
from dpframe.accounting._base import Charge, Filter, Price
from dpframe.accounting.gdp import Gdp
from dpframe.accounting.loss import Events

_USED = Fraction(1, 2**1074)
# Of delta, for outright failures: the curve of the batch takes them from what converts.
_FAILURES = Fraction(1, 10)


class Planned(Filter):
    """Admits one batch, if its composed curve keeps the budget. The state is the epsilon of the batch, or 0 before it."""

    name: ClassVar[str] = "pld"
    batches: ClassVar[bool] = True

    def start(self) -> Fraction:
        return Fraction(0)

    def after(self, state: Fraction, charge: Charge) -> Fraction | None:
        found = math.inf if state else self.report(charge.losses, self.limits.delta)
        # Never 0: a batch whose epsilon is 0 at this delta has used the delta, and a second one would use it again.
        return max(Fraction(found), _USED) if found <= self.limits.epsilon else None

    def spent(self, state: Fraction) -> Fraction:
        return Fraction(1) if state else Fraction(0)

    @cached_property
    def _parts(self) -> Gdp:
        """Prices are parts of a mu: what else a batch will hold nobody knows yet, and squares of mu add up whatever it is."""
        return Gdp(self.limits._replace(reserve=self.limits.reserve + _FAILURES * self.limits.conversion))

    def share(self, queries: int | Fraction, state: Fraction) -> Price:
        return self._parts.share(queries, self._parts.start())

    def worth(self, epsilon: Fraction, state: Fraction) -> Price:
        return self._parts.worth(epsilon, self._parts.start())

    def gaussian(self, amount: Fraction, queries: int, state: Fraction) -> Price | None:
        return Price(None, amount, None, self.limits.conversion)

    def stated(self, epsilon: Fraction, delta: Fraction, state: Fraction) -> Price:
        return self._parts.stated(epsilon, delta, self._parts.start())

    @staticmethod
    def report(events: Events, delta: Fraction) -> float:
        # Both hold for a fixed list. The closed form has no grid, so that default shares fill the budget.
        return min(pld.epsilon(events, float(delta) * (1 - 1e-12)), Gdp.report(events, delta))

    def failure_for(self, epsilon: Fraction, state: Fraction | None, pure: bool = False) -> Fraction:
        return min(self.part(epsilon), Fraction(1)) * (self._parts.limits.reserve - self.limits.reserve)

    def times(self, state: Fraction, charge: Charge) -> int:
        """In one batch; by a closed form, since composing thousands takes seconds."""
        return 0 if state else self._parts.times(self._parts.start(), charge)

    def delta_spent(self, state: Fraction) -> Fraction:
        return Fraction(0)  # the curve of the batch has its failures in it
