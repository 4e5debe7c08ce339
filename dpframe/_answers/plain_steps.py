"""Steps of pandas on answers that keep intervals: ``answer / 1000``, ``answer.sum()``.

Each step is computed by pandas, and once more by ``answer.dp``. If both come to the same numbers the
second is returned, which has intervals. Other operands, such as Series that nobody declared as
known, leave the intervals behind. Then ``.dp`` names the line to write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pandas as pd

from dpframe._answers.receipts import ANSWER, LINE, get_receipt
from dpframe._errors import DPError
from dpframe._types import PandasAnswer


class PlainSteps:
    """Steps of pandas that keep the intervals of an answer; a base of the classes of answers."""

    def __add__(self, other: Any) -> Any:
        return _operate("+", self, other, _plain(super()).__add__, lambda one, two: one + two)

    def __radd__(self, other: Any) -> Any:
        return _reflect("+", self, other, _plain(super()).__radd__, lambda one, two: two + one)

    def __sub__(self, other: Any) -> Any:
        return _operate("-", self, other, _plain(super()).__sub__, lambda one, two: one - two)

    def __rsub__(self, other: Any) -> Any:
        return _reflect("-", self, other, _plain(super()).__rsub__, lambda one, two: two - one)

    def __mul__(self, other: Any) -> Any:
        return _operate("*", self, other, _plain(super()).__mul__, lambda one, two: one * two)

    def __rmul__(self, other: Any) -> Any:
        return _reflect("*", self, other, _plain(super()).__rmul__, lambda one, two: two * one)

    def __truediv__(self, other: Any) -> Any:
        return _operate("/", self, other, _plain(super()).__truediv__, lambda one, two: one / two)

    def __rtruediv__(self, other: Any) -> Any:
        return _reflect("/", self, other, _plain(super()).__rtruediv__, lambda one, two: two / one)

    def sum(self, *args: Any, **words: Any) -> Any:
        """Return the sum as pandas has it, with its interval where no argument is given."""
        made = _plain(super()).sum(*args, **words)
        return made if args or words else _keep(self, made, lambda dp: dp.sum())

    def mean(self, *args: Any, **words: Any) -> Any:
        """Return the mean as pandas has it, with its interval where no argument is given."""
        made = _plain(super()).mean(*args, **words)
        return made if args or words else _keep(self, made, lambda dp: dp.mean())

    def cumsum(self, *args: Any, **words: Any) -> Any:
        """Return running sums as pandas has them, with intervals where no argument is given."""
        made = _plain(super()).cumsum(*args, **words)
        return made if args or words else _keep(self, made, lambda dp: dp.cumsum())

    def cumprod(self, *args: Any, **words: Any) -> Any:
        """Return running products as pandas has them, with intervals where no argument is given."""
        made = _plain(super()).cumprod(*args, **words)
        return made if args or words else _keep(self, made, lambda dp: dp.cumprod())

    def diff(self, *args: Any, **words: Any) -> Any:
        """Return the changes as pandas has them, with intervals."""
        made = _plain(super()).diff(*args, **words)
        return _keep(self, made, lambda dp: dp.diff(*args, **words))

    def rolling(self, window: Any, *args: Any, **words: Any) -> Any:
        """Return the windows that pandas makes; their sums and means keep intervals where only a
        number of rows is given."""
        if args or words or not isinstance(window, int):
            return _plain(super()).rolling(window, *args, **words)
        make: Any = AnswerWindows
        return make(self, window=window)


class AnswerWindows(pd.api.typing.Rolling):  # type: ignore[type-arg]  # of any answer
    """Windows of pandas over an answer; their sums and means keep intervals."""

    def sum(self, *args: Any, **words: Any) -> Any:
        """Return the sums as pandas has them, with intervals where no argument is given."""
        made = super().sum(*args, **words)
        return made if args or words else self._keep(made, "sum")

    def mean(self, *args: Any, **words: Any) -> Any:
        """Return the means as pandas has them, with intervals where no argument is given."""
        made = super().mean(*args, **words)
        return made if args or words else self._keep(made, "mean")

    def _keep(self, made: Any, verb: str) -> Any:
        """Return the result of a verb with intervals, if there are some."""
        window = self.window
        return _keep(self.obj, made, lambda dp: getattr(dp.rolling(window), verb)())


def _plain(parent: object) -> Any:
    """Return the steps that pandas has, untyped."""
    return parent


def _operate(
    step: str,
    answer: object,
    other: object,
    plain: Callable[[Any], Any],
    compute: Callable[[Any, Any], Any],
) -> Any:
    """Return an answer combined with an operand by pandas, with intervals where that is
    unambiguous.

    It is for numbers as a program writes them, for released numbers, and for other answers.
    """
    made = plain(other)
    if made is NotImplemented:
        return made
    if type(other) in (int, float) or hasattr(other, "_calculation") or _has_receipt(other):
        return _keep(answer, made, lambda dp: compute(dp, other))
    return _name_line(made, f"answer.dp {step} {_name_operand(other)}")


def _reflect(
    step: str,
    answer: object,
    other: object,
    plain: Callable[[Any], Any],
    compute: Callable[[Any, Any], Any],
) -> Any:
    """Return an operand combined with an answer on its right, as `_operate` has it."""
    made = plain(other)
    if made is NotImplemented:
        return made
    if type(other) in (int, float) or hasattr(other, "_calculation"):
        return _keep(answer, made, lambda dp: compute(dp, other))
    return _name_line(made, f"{_name_operand(other)} {step} answer.dp")


def _has_receipt(other: object) -> bool:
    return isinstance(other, pd.Series | pd.DataFrame) and get_receipt(other, ANSWER) is not None


def _name_operand(other: object) -> str:
    """Return how to write an operand in a message."""
    name = getattr(other, "name", None)
    if isinstance(name, str) and name.isidentifier():
        return name
    number = other.item() if isinstance(other, np.number) else other
    return repr(number) if isinstance(number, int | float) else "weights"


def _name_line(made: Any, line: str) -> Any:
    """Return what pandas computed, with the line that would have kept intervals."""
    if _has_receipt(made):
        made.attrs = {**made.attrs, LINE: line}
    return made


def _keep(answer: object, made: Any, compute: Callable[[Any], Any]) -> Any:
    """Return what ``compute`` makes of ``answer.dp``, if pandas ``made`` the same numbers."""
    if not _has_receipt(answer):
        return made
    try:
        kept = compute(cast(Any, answer).dp)
    except (DPError, TypeError):  # without a session or a receipt .dp has no operators
        return made
    return kept if _are_alike(kept, made) else made


def _are_alike(kept: Any, made: Any) -> bool:
    """Return whether two results have the same labels and, but for rounding, the same numbers."""
    if isinstance(kept, pd.Series | pd.DataFrame):
        one: PandasAnswer = kept
        if isinstance(one, pd.Series) is not isinstance(made, pd.Series):
            return False
        if one.shape != made.shape or not one.index.equals(made.index):
            return False
    numbers = np.asarray(kept), np.asarray(made)
    if any(array.dtype.kind not in "iuf" for array in numbers):
        return False
    return bool(np.allclose(*numbers, rtol=1e-9, atol=1e-9, equal_nan=True))
