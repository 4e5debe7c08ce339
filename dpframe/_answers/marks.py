"""The classes of answers: pandas' own, shown with intervals, marks and notes.

They are subclasses of `Series` and `DataFrame`. Steps of pandas return such objects again, by the
protocols of pandas for subclasses, and carry the receipt in ``attrs``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import pandas as pd

from dpframe._answers.display import show_as_html, show_frame, show_series
from dpframe._answers.plain_steps import PlainSteps
from dpframe._answers.receipts import ANSWER, FIXED, get_receipt, split_label


class AnswerSeries(PlainSteps, pd.Series):
    """A pandas Series of released numbers that shows their intervals and marks noise."""

    @property
    def _constructor(self) -> Callable[..., AnswerSeries]:
        return AnswerSeries

    @property
    def _constructor_expanddim(self) -> Callable[..., AnswerFrame]:
        """Make a table with the receipt and the name, which pandas leaves out where it unstacks."""

        def make(*args: Any, **words: Any) -> AnswerFrame:
            frame = AnswerFrame(*args, **words)
            frame.attrs = self.attrs
            if ANSWER in self.attrs and self.name is not None:
                frame.attrs[FIXED] = [[None, text] for text in split_label(self.name)]
            return frame

        return make

    def __repr__(self) -> str:
        """Show the Series with intervals, with a mark beside noise, and with notes below."""
        return show_series(self)


class AnswerFrame(PlainSteps, pd.DataFrame):
    """A pandas DataFrame of released numbers that shows their intervals and marks noise."""

    @property
    def _constructor(self) -> Callable[..., AnswerFrame]:
        return AnswerFrame

    @property
    def _constructor_sliced(self) -> Callable[..., AnswerSeries]:
        """Make a column with the receipt, which pandas leaves out where it pivots."""

        def make(*args: Any, **words: Any) -> AnswerSeries:
            column: AnswerSeries = AnswerSeries(*args, **words)
            column.attrs = self.attrs
            return column

        return make

    def __finalize__(self, other: Any, method: str | None = None, **words: Any) -> Self:
        """Carry the receipt on, also where an answer is joined with tables that have none."""
        parent: Any = super()
        made: Self = parent.__finalize__(other, method, **words)
        texts = {get_receipt(one, ANSWER) for one in getattr(other, "input_objs", ())} - {None}
        if len(texts) == 1 and not made.attrs:
            made.attrs = {ANSWER: texts.pop()}
        return made

    def __repr__(self) -> str:
        """Show the table with intervals, with a mark beside noise, and with notes below."""
        return show_frame(self)

    def _repr_html_(self) -> str | None:
        return show_as_html(self)
