"""The privacy loss distribution as an accountant: for reports, and for one batch of plans that was declared in advance.

What was declared before the first answer is a fixed list, however its parts are then used, so the product of its pairs
dominates it (docs/guarantees/accounting.md). A second batch would depend on the first one's answers: it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from dpframe.accounting import pld
from dpframe.accounting._base import Charge, Filter, Price
from dpframe.accounting.gdp import Either, Gdp, Tight
from dpframe.accounting.loss import Events

_USED = Fraction(1, 2**1074)
# Of delta, for outright failures: the curve of the batch takes them from what converts.
_FAILURES = Fraction(1, 10)


class Planned(Filter):
    """Admits one batch, if its composed curve keeps the budget. The state is the epsilon of the batch, or 0 before it.

    Prices are those of `Tight` after what is in the batch already: what that filter admits is a fixed list here, and keeps the
    budget, so what it promises is promised here.
    """

    name: ClassVar[str] = "pld"
    batches: ClassVar[bool] = True

    @cached_property
    def _tight(self) -> Tight:
        limits = self.limits
        return Tight(limits._replace(reserve=limits.reserve + _FAILURES * limits.conversion))

    def start(self) -> Fraction:
        return Fraction(0)

    def after(self, state: Fraction, charge: Charge) -> Fraction | None:
        if state:
            return None
        found, most = self.report(charge.losses, self.limits.delta), self.limits.epsilon
        if found > most and self._tight.after(self._tight.start(), charge) is None:
            return None
        # Never 0: a batch whose epsilon is 0 at this delta has used the delta, and a second one would use it again.
        return max(Fraction(found) if found <= most else most, _USED)

    def ahead(self, state: Any, charges: Sequence[Charge]) -> Any:
        return self._tight.ahead(self._priced(state), charges)

    def _priced(self, state: Any) -> Either:
        return state if isinstance(state, Either) else self._tight.start()

    def spent(self, state: Fraction) -> Fraction:
        return Fraction(1) if state else Fraction(0)

    def share(self, queries: int | Fraction, state: Any) -> Price:
        return self._tight.share(queries, self._priced(state))

    def worth(self, epsilon: Fraction, state: Any) -> Price:
        return self._tight.worth(epsilon, self._priced(state))

    def gaussian(self, amount: Fraction, queries: int, state: Any) -> Price | None:
        return self._tight.gaussian(amount, queries, self._priced(state))

    def stated(self, epsilon: Fraction, delta: Fraction, state: Any) -> Price:
        return self._tight.stated(epsilon, delta, self._priced(state))

    @staticmethod
    def report(events: Events, delta: Fraction) -> float:
        # Both hold for a fixed list. The closed form has no grid, so that default shares fill the budget.
        return min(pld.epsilon(events, float(delta) * (1 - 1e-12)), Gdp.report(events, delta))

    def failure_for(self, epsilon: Fraction, state: Any, pure: bool = False) -> Fraction:
        return self._tight.failure_for(epsilon, self._priced(state))

    def times(self, state: Fraction, charge: Charge) -> int:
        """In one batch, at least: by closed forms, since to compose thousands takes seconds."""
        return 0 if state else self._tight.times(self._tight.start(), charge)

    def delta_spent(self, state: Fraction) -> Fraction:
        return Fraction(0)  # the curve of the batch has its failures in it
