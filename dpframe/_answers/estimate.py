"""Estimates: released numbers that know their plan and their interval."""

from __future__ import annotations

import math
from typing import Any, NoReturn, cast

from dpframe import _validate
from dpframe._errors import BadType
from dpframe._plans.plan import Cost, Plan, refuse_choices
from dpframe._plans.price import own_errors
from dpframe._questions.question import interval_of


class Estimate:
    """What `IntEstimate` and `FloatEstimate` share: a released number, its plan and its interval.

    Arithmetic gives plain numbers: ``answer / 1000`` is a float that has no interval any more. So does what writes it down,
    ``str``, ``format``, ``print``, csv and JSON; its ``repr`` alone shows how wide its interval is.
    """

    _plan: Plan
    _raw: tuple[Any, ...]

    @property
    def plan(self) -> Plan:
        """What was asked, with which mechanism, scale and price."""
        return self._plan

    @property
    def cost(self) -> Cost:
        """What this release guarantees by itself: ``epsilon`` and ``delta``. The ledger counts it by its accountant."""
        return self._plan.cost

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Where the answer without noise lies with probability ``level``.

        It covers the noise: not the clipping to the bounds, and not what a sample says about a population.
        """
        level = _validate.level(level)
        refuse_choices(self._plan.cells[:1])
        low, high = interval_of(self._plan, self._raw, 0, level)
        return float(low[0]) + 0.0, float(high[0]) + 0.0  # no negative zero

    @property
    def dp(self) -> Estimate:
        """The number itself, so that ``answer.dp.interval()`` reads the same for numbers and for tables."""
        return self

    def plot(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: one number is no picture."""
        raise BadType(
            "one number is no picture: print it, or its .interval(). Series and DataFrames have .dp.plot()."
        )

    def __repr__(self) -> str:
        if self._plan.selects:
            return f"{float(cast(Any, self)):.12g}"
        low, high = self.interval()
        value, half = float(cast(Any, self)), (high - low) / 2
        if max(abs(value), half) >= 1e15:
            return f"{value:.6g} ± {half:.3g}"
        # Two digits of the half-width, and as many of the value; whole numbers stay whole.
        fine = half > 0 and not self._plan.cells[0].whole
        digits = max(0, 1 - math.floor(math.log10(half))) if fine else 0
        return f"{value:.{digits}f} ± {half:.{digits}f}"

    def _repr_html_(self) -> str:
        if self._plan.selects:
            return f"<b>{self!r}</b> <small>chosen; {self._plan._alone}</small>"
        low, high = self.interval()
        return f"<b>{self!r}</b> <small>95 % interval {low:.6g} to {high:.6g}; {self._plan._alone}</small>"


own_errors(Estimate, object)
