"""Numbers that were released: each knows its plan and its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from dpframe import _validate
from dpframe._errors import BadType
from dpframe._plans.aggregates import AGGREGATES, Measured
from dpframe._plans.plan import Cost, Plan, measured, refuse_choices
from dpframe._questions.question import Release
from dpframe._refusals import own_errors


def numbers(plan: Plan, raw: Sequence[Any], cell: int) -> NDArray[Any]:
    """The answers of one output, an entry a group, as int64 or float64 by the plan alone."""
    one = plan.cells[cell]
    answers = AGGREGATES[one.aggregate].value(Measured(one, plan.parts[one.part].noise, raw[one.part]))
    return answers if answers.dtype == object else answers.astype(np.int64 if one.whole else np.float64)


def interval_of(plan: Plan, raw: tuple[Any, ...], cell: int, level: float) -> tuple[Any, Any]:
    """The interval of one output of a release, a pair for each group."""
    one = plan.cells[cell]
    aggregate = AGGREGATES[one.aggregate]
    each = levels_shown(plan, raw, level)
    if each is None:
        return aggregate.interval(measured(plan, raw, one), level)
    low, high = np.empty(len(each)), np.empty(len(each))
    for at_level in np.unique(each):
        at = each == at_level
        some = tuple(part[:, at] for part in raw)
        low[at], high[at] = aggregate.interval(measured(plan, some, one), float(at_level))
        if aggregate.least_shown is not None:
            # What is shown is the larger noise, so above it counts are no rarer than without a threshold.
            high[at] = aggregate.interval(measured(plan, some, one), level)[1]
    return low if aggregate.least_shown is None else np.maximum(low, aggregate.least_shown), high


def levels_shown(plan: Plan, raw: tuple[Any, ...], level: float) -> NDArray[np.float64] | None:
    """Where a threshold showed the groups: at which level an interval covers each of them; None without one."""
    for part, integers in zip(plan.parts, raw, strict=False):
        found: NDArray[np.float64] | None = part.noise.levels(integers, level)
        if found is not None:
            return found
    return None


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


class IntEstimate(Estimate, int):
    """A whole number that was released. It may be negative: noise is as likely below as above."""

    __str__ = int.__repr__

    def __new__(cls, value: int, plan: Plan, raw: tuple[Any, ...]) -> IntEstimate:
        self = int.__new__(cls, value)
        self._plan, self._raw = plan, raw
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return IntEstimate, (int(self), self._plan, self._raw)


class FloatEstimate(Estimate, float):
    """A number that was released."""

    __str__ = float.__repr__

    def __new__(cls, value: float, plan: Plan, raw: tuple[Any, ...]) -> FloatEstimate:
        self = float.__new__(cls, value)
        self._plan, self._raw = plan, raw
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FloatEstimate, (float(self), self._plan, self._raw)


def scalar(release: Release) -> Estimate:
    """The answer to a question without groups."""
    value = numbers(release.plan, release.raw, 0)[0]
    if release.plan.cells[0].whole:
        return IntEstimate(int(value), release.plan, release.raw)
    return FloatEstimate(float(value), release.plan, release.raw)


own_errors(Estimate, object)
