"""The answers to questions of durations and of times: Timedeltas and Timestamps that know their plan and their interval."""

from __future__ import annotations

from typing import Any, cast

import pandas as pd

from dpframe import _validate
from dpframe._answers.answer import SCALARS, Estimate
from dpframe._plans.plan import Plan, refuse_choices
from dpframe._plans.price import own_errors
from dpframe._questions.question import interval_of


class DurationEstimate(Estimate, pd.Timedelta):
    """A duration that was released: a ``pd.Timedelta`` with a plan and an interval, whose ends are Timedeltas too.

    Arithmetic gives plain Timedeltas and numbers: ``answer / pd.Timedelta("1h")`` is a float that has no interval any more.
    """

    __str__ = pd.Timedelta.__str__

    def __new__(cls, value: pd.Timedelta, plan: Plan, raw: tuple[Any, ...]) -> DurationEstimate:
        made: Any = pd.Timedelta.__new__  # of whole ticks it makes a subclass, of a Timedelta that itself
        self = cast(DurationEstimate, made(cls, int(value.asm8.view("i8")), value.unit))
        self._plan, self._raw = plan, raw
        return self

    @staticmethod
    def _of(value: Any, plan: Plan, raw: tuple[Any, ...]) -> DurationEstimate:
        return DurationEstimate(pd.Timedelta(value), plan, raw)

    def __reduce__(self) -> tuple[Any, ...]:
        return DurationEstimate, (self._plain, self._plan, self._raw)

    @property
    def _plain(self) -> pd.Timedelta:
        return pd.Timedelta(self.asm8)

    def interval(self, level: float = 0.95) -> tuple[pd.Timedelta, pd.Timedelta]:  # type: ignore[override]
        """Where the answer without noise lies with probability ``level``, as two Timedeltas; see `Estimate.interval`."""
        level = _validate.level(level)
        refuse_choices(self._plan.cells[:1])
        low, high = interval_of(self._plan, self._raw, 0, level)
        return pd.Timedelta(low[0]), pd.Timedelta(high[0])

    def __repr__(self) -> str:
        if self._plan.selects:
            return str(self)
        low, high = self.interval()
        half = (high - low) / 2
        # Whole seconds where the width is some of them: two digits of it are told, and not nine.
        step = "s" if half >= pd.Timedelta(10, "s") else "us" if half >= pd.Timedelta(10, "us") else "ns"
        return f"{self._plain.round(step)} ± {half.round(step)}"

    def _repr_html_(self) -> str:
        if self._plan.selects:
            return f"<b>{self!r}</b> <small>chosen; {self._plan._alone}</small>"
        low, high = self.interval()
        return f"<b>{self!r}</b> <small>95 % interval {low} to {high}; {self._plan._alone}</small>"


class TimeEstimate(Estimate, pd.Timestamp):
    """A moment that was released: a ``pd.Timestamp`` with a plan and an interval, whose ends are Timestamps too.

    Arithmetic gives plain Timestamps and Timedeltas.
    """

    __str__ = pd.Timestamp.__str__

    @staticmethod
    def _of(value: Any, plan: Plan, raw: tuple[Any, ...]) -> TimeEstimate:
        self: Any = pd.Timestamp(
            value
        )  # a new one: what pandas makes of a subclass is a Timestamp all the same
        self.__class__ = TimeEstimate
        self._plan, self._raw = plan, raw
        return cast(TimeEstimate, self)

    def __reduce__(self) -> tuple[Any, ...]:
        return TimeEstimate._of, (self.asm8, self._plan, self._raw)

    def interval(self, level: float = 0.95) -> tuple[pd.Timestamp, pd.Timestamp]:  # type: ignore[override]
        """Where the answer without noise lies with probability ``level``, as two Timestamps; see `Estimate.interval`."""
        level = _validate.level(level)
        refuse_choices(self._plan.cells[:1])
        low, high = interval_of(self._plan, self._raw, 0, level)
        return pd.Timestamp(low[0]), pd.Timestamp(high[0])

    def __repr__(self) -> str:
        if self._plan.selects:
            return str(self)
        low, high = self.interval()
        half = (high - low) / 2
        return f"{pd.Timestamp(self.asm8).round('s')} ± {half.round('s')}"

    def _repr_html_(self) -> str:
        if self._plan.selects:
            return f"<b>{self!r}</b> <small>chosen; {self._plan._alone}</small>"
        low, high = self.interval()
        return f"<b>{self!r}</b> <small>95 % interval {low} to {high}; {self._plan._alone}</small>"


SCALARS.update(duration=DurationEstimate._of, moment=TimeEstimate._of)
for _kind in (DurationEstimate, TimeEstimate):
    own_errors(_kind, object)
