"""The privacy loss distribution as an accountant: for reports, and for one batch of plans that was declared in advance.

What was declared before the first answer is a fixed list, however its parts are then used, so the product of its pairs
dominates it (docs/guarantees/accounting.md). A second batch would depend on the first one's answers: it is refused.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

from dpframe.accounting import pld
from dpframe.accounting._base import Charge, Filter, Price
from dpframe.accounting.gdp import Gdp, Tight, mu_share, mu_stated
from dpframe.accounting.loss import Events

_USED = Fraction(1, 2**1074)


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

    def share(self, queries: int, state: Fraction) -> Price:
        # The numerics of the curve round up by a few parts in a million; the shares leave room for that.
        whole = Gdp(self.limits).limit * Fraction(9999, 10000)
        return mu_share(whole / queries, self.limits.conversion)

    def worth(self, epsilon: Fraction, state: Fraction) -> Price:
        tight = Tight(self.limits)
        return tight.worth(epsilon, tight.start())

    def gaussian(self, amount: Fraction, queries: int) -> Price | None:
        return Price(None, amount, None, self.limits.conversion)

    def stated(self, epsilon: Fraction, delta: Fraction, state: Fraction) -> Price:
        return mu_stated(epsilon, delta)

    @staticmethod
    def report(events: Events, delta: Fraction) -> float:
        # Both hold for a fixed list. The closed form has no grid, so that default shares fill the budget.
        return min(pld.epsilon(events, float(delta) * (1 - 1e-12)), Gdp.report(events, delta))

    def failure_share(self, queries: int) -> Fraction:
        return self.limits.delta / (2 * queries)  # the curve takes failures from the same delta

    def delta_spent(self, state: Fraction) -> Fraction:
        return Fraction(0)  # the curve of the batch has its failures in it
