"""The privacy loss distribution as an accountant: for reports, and for one batch of plans that was declared in advance.

What was declared before the first answer is a fixed list, however its parts are then used, so the product of its pairs
dominates it (docs/guarantees/accounting.md). A second batch would depend on the first one's answers: it is refused.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

from dpframe.accounting import pld
from dpframe.accounting._base import Charge, Filter, Price, stated_gaussian
from dpframe.accounting.gdp import Gdp, mu_share
from dpframe.accounting.loss import Events


class Planned(Filter):
    """Admits one batch, if its composed curve keeps the budget. The state is the epsilon of the batch, or 0."""

    name: ClassVar[str] = "pld"

    def start(self) -> Fraction:
        return Fraction(0)

    def after(self, state: Fraction, charge: Charge) -> Fraction | None:
        found = math.inf if state else self.report(charge.losses, self.limits.delta)
        return Fraction(found) if found <= self.limits.epsilon else None

    def spent(self, state: Fraction) -> Fraction:
        return Fraction(1) if state else Fraction(0)

    def share(self, queries: int, state: Fraction) -> Price:
        return mu_share(Gdp(self.limits).limit / queries, self.limits.conversion)

    def worth(self, epsilon: Fraction, state: Fraction) -> Price:
        return Gdp(self.limits).worth(epsilon, Gdp(self.limits).start())

    def gaussian(self, amount: Fraction, queries: int) -> Price | None:
        return Price(None, amount, None, self.limits.conversion)

    def stated(self, epsilon: Fraction, delta: Fraction) -> Price:
        return stated_gaussian(epsilon, delta)

    @staticmethod
    def report(events: Events, delta: Fraction) -> float:
        return pld.epsilon(events, float(delta) * (1 - 1e-12))

    def delta_spent(self, state: Fraction) -> Fraction:
        return Fraction(0)  # the curve of the batch has its failures in it
