"""The answers to questions of durations and of times: Timedeltas and Timestamps that know their plan and their interval."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, cast

import pandas as pd

from dpframe._answers.estimate import SCALARS, Estimate, FloatEstimate
from dpframe._plans.plan import Plan
from dpframe._plans.price import own_errors


class InSeconds(Estimate):
    """What was measured in seconds. Arithmetic gives plain Timedeltas, Timestamps and numbers, without intervals."""

    @abstractmethod
    def _number(self) -> Any:
        """The plain Timedelta or Timestamp."""

    def _deviation(self) -> None:
        return None

    def _blank(self) -> Estimate:
        nothing = Unshown(math.nan, self._plan, self._raw)
        nothing._rule = self._rule
        return nothing

    def _text(self) -> str:
        return _text(self._number(), self)


class DurationEstimate(InSeconds, pd.Timedelta):
    """A duration that was released: a ``pd.Timedelta`` with a plan and an interval, whose ends are Timedeltas too."""

    __str__ = pd.Timedelta.__str__

    def __new__(cls, value: Any, plan: Plan, raw: tuple[Any, ...]) -> DurationEstimate:
        made: Any = pd.Timedelta.__new__  # of whole ticks it makes a subclass, of a Timedelta that itself
        plain = pd.Timedelta(value)
        self = cast(DurationEstimate, made(cls, int(plain.asm8.view("i8")), plain.unit))
        self._plan, self._raw = plan, raw
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return DurationEstimate, (self._number(), self._plan, self._raw), self._state()

    def _number(self) -> pd.Timedelta:
        return pd.Timedelta(self.asm8)


class TimeEstimate(InSeconds, pd.Timestamp):
    """A moment that was released: a ``pd.Timestamp`` with a plan and an interval, whose ends are Timestamps too."""

    __str__ = pd.Timestamp.__str__

    @staticmethod
    def _of(value: Any, plan: Plan, raw: tuple[Any, ...]) -> TimeEstimate:
        # A new one: what pandas makes of a subclass is a Timestamp all the same.
        self: Any = pd.Timestamp(value)
        self.__class__ = TimeEstimate
        self._plan, self._raw = plan, raw
        return cast(TimeEstimate, self)

    def __reduce__(self) -> tuple[Any, ...]:
        return TimeEstimate._of, (self.asm8, self._plan, self._raw), self._state()

    def _number(self) -> pd.Timestamp:
        return pd.Timestamp(self.asm8)


class Unshown(FloatEstimate):
    """What stands for a duration or a time that is noise where noise is not shown: NaT is nothing that could have an interval."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Unshown, (float(self), self._plan, self._raw), self._state()

    def _deviation(self) -> None:
        return None

    def _text(self) -> str:
        return _text(pd.NaT, self)


def _text(value: Any, answer: Estimate) -> str:
    if answer._chosen:
        return str(value)
    low, high = cast(Any, answer.interval())
    half = (high - low) / 2
    # Whole seconds where the width is some of them: two digits of it are told, and not nine.
    step = "s" if half >= pd.Timedelta(10, "s") else "us" if half >= pd.Timedelta(10, "us") else "ns"
    return f"{value if value is pd.NaT else value.round(step)} ± {half.round(step)}"


# The operators are those of pandas' own.
for _kind, _plain in ((DurationEstimate, pd.Timedelta), (TimeEstimate, pd.Timestamp)):
    for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "neg", "pos", "abs"):
        _operator = getattr(_plain, f"__{_name}__", None)
        setattr(_kind, f"__{_name}__", _operator)
    own_errors(_kind, object)
SCALARS.update(duration=DurationEstimate, moment=TimeEstimate._of)
