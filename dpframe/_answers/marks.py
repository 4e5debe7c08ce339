"""Answers as they are shown: noise with a mark, and lines below that say what is known of all.

Most answers are plain Series and DataFrames. `AnswerSeries` and `AnswerFrame` are subclasses of
pandas' own for answers with noise or with contribution limits. Steps of pandas return such objects
again, by the protocols of pandas for subclasses, and carry the receipt in ``attrs``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from dpframe._answers.computed import read_answer, read_source
from dpframe._answers.layout import AnswerLayout
from dpframe._answers.matching import MatchedAnswer
from dpframe._answers.plain_steps import PlainSteps
from dpframe._answers.receipts import ANSWER, get_receipt
from dpframe._answers.released import Released
from dpframe._answers.types import Array, Bools, PandasAnswer, Series
from dpframe._errors import DPError
from dpframe._plans.plan import Plan
from dpframe._plans.worth import (
    MARK,
    describe_choice_error,
    describe_limits,
    judge_at_sight,
    warn_of_noise,
)
from dpframe._questions.question import Release

_MANY = 1024  # groups; of more, some tell whether there is a warning


def is_noteworthy(release: Release, layout: AnswerLayout, values: Sequence[Array]) -> bool:
    """Return whether an answer needs marks or notes where it is shown, such as about noise.

    ``values`` are its columns as they were laid out. Warn of noise that was released just now.
    """
    plan, raw, rule = release.plan, release.raw, release.rule
    if not values or not len(values[0]):
        return False
    large = False
    if layout.by_output:
        reliable = judge_at_sight(plan, raw, values, rule.part)
        if reliable:
            return bool(plan.caps and describe_limits(plan))
        if reliable is False:
            if release.fresh:
                warn_of_noise(rule)
            return True
        large = len(values[0]) > _MANY
    if large:  # the numbers of a large answer are looked at where it is shown
        places = np.linspace(0, len(values[0]) - 1, _MANY).astype(np.int64)
        raw = tuple(part[..., places] for part in raw)
        values = [column[places] for column in values]
    released = Released(layout, plan, raw, rule.part)
    released.values = list(values)
    if release.fresh and released.is_worth_a_warning():
        warn_of_noise(rule)
    noisy = large or any(map(np.any, released.noise))
    return noisy or bool(describe_limits(plan) or describe_choice_error(plan))


# What is said -----------------------------------------------------------------------------------


class Description(NamedTuple):
    """The noise of an answer, column by column, and the lines below it."""

    noise: Sequence[Bools]
    notes: list[str]


def _describe(answer: PandasAnswer) -> Description:
    """Return which numbers of an answer are noise, and the notes to show below it.

    If its numbers have changed, the labels alone tell which of them are made of noise.
    """
    text = get_receipt(answer, ANSWER)
    if text is None:
        return Description([], [])
    try:
        numbers = read_answer(answer, text)
    except DPError:
        return _describe_by_labels(answer, text)
    keys = [np.zeros(len(answer), dtype=bool)] * numbers.keys
    note = f"{MARK} noise, {{}} of {{}} numbers: .dp.interval() tells how wide, .dp.reliable which"
    noise = [*keys, *numbers.noise]
    return Description(noise, _write_notes(note, noise, numbers.plans))


def _describe_by_labels(answer: PandasAnswer, text: str) -> Description:
    """Return which numbers are made of noise, for an answer that was changed since its release.

    ``text`` is its receipt.
    """
    try:
        source = read_source(text)
        note = "made of an answer in which {} of {} numbers are noise; its .dp.reliable tells which"
        notes = _write_notes(note, source.noise, source.plans)
    except DPError:
        return Description([], [])
    try:
        matched = MatchedAnswer(source, answer, edited=True)
    except DPError:
        return Description([], notes)
    keys = [np.zeros(len(answer), dtype=bool)] * matched.keys
    return Description([*keys, *matched.noise], notes)


def _write_notes(note: str, noise: Sequence[Bools], plans: Sequence[Plan]) -> list[str]:
    """Return the notes below an answer: how many numbers are noise, and what its plans add.

    ``note`` is the text with places for both numbers. ``noise`` has flags column by column.
    """
    noisy, size = sum(map(np.count_nonzero, noise)), sum(map(np.size, noise))
    texts = [
        text for plan in plans for text in (describe_choice_error(plan), describe_limits(plan))
    ]
    return [*([note.format(noisy, size)] if noisy else []), *dict.fromkeys(filter(None, texts))]


# Classes ----------------------------------------------------------------------------------------


class AnswerSeries(PlainSteps, pd.Series):
    """A pandas Series of released numbers that marks noise where it is shown."""

    @property
    def _constructor(self) -> Callable[..., AnswerSeries]:
        return AnswerSeries

    @property
    def _constructor_expanddim(self) -> Callable[..., AnswerFrame]:
        return AnswerFrame

    def __repr__(self) -> str:
        """Show the Series with a mark beside each value that is mostly noise, and notes below."""
        noise, notes = _describe(self)
        lines = super().__repr__().split("\n")
        if noise and noise[0].any():
            _mark_lines(lines, noise[0])
        return "\n".join(lines + notes)


def _mark_lines(lines: list[str], noise: Bools) -> None:
    """Add marks to the lines that pandas prints of a Series, beside numbers that are noise.

    pandas prints all rows, or the first and the last ones.
    """
    body, size = len(lines) - 1, len(noise)  # the last line is the dtype
    whole = body - size in (0, 1)
    half = size if whole else (body - 1) // 2
    head = body - (size if whole else 2 * half + 1)
    places = [(head + i, i) for i in range(half)]
    if not whole:
        places += [(body - i, size - i) for i in range(1, half + 1)]
    for line, i in places:
        lines[line] += f" {MARK}" if noise[i] else ""


class AnswerFrame(PlainSteps, pd.DataFrame):
    """A pandas DataFrame of released numbers that marks noise where it is shown."""

    @property
    def _constructor(self) -> Callable[..., AnswerFrame]:
        return AnswerFrame

    @property
    def _constructor_sliced(self) -> Callable[..., AnswerSeries]:
        return AnswerSeries

    def __repr__(self) -> str:
        marked, notes = _mark_cells(self)
        return "\n".join([repr(marked), *notes])

    def _repr_html_(self) -> str | None:
        """Show the table as HTML, with a mark beside each value that is mostly noise, and notes
        below."""
        marked, notes = _mark_cells(self)
        html = cast(Any, marked)._repr_html_()
        if html is None:
            return None
        return str(html) + "".join(f"<p><small>{escape(note)}</small></p>" for note in notes)


def _mark_cells(answer: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return an answer as a plain table of texts with marks beside noise, and the notes below
    it."""
    noise, notes = _describe(answer)
    plain = pd.DataFrame(answer)
    most = pd.get_option("display.max_rows") or len(plain)
    shown = np.arange(len(plain))
    if len(plain) > most:  # pandas shows the ends
        shown = np.r_[shown[:most], shown[-most:]]
    for place, flags in enumerate(noise):
        if flags[shown].any():
            texts = _format_cells(plain.iloc[shown, place])
            cells = np.full(len(plain), "", dtype=object)
            cells[shown] = [
                f"{text} {MARK if flag else ' '}"
                for text, flag in zip(texts, flags[shown], strict=True)
            ]
            plain.isetitem(place, cells)
    return plain, notes


def _format_cells(column: Series) -> list[str]:
    """Return the text that pandas prints for each value of a column, as wide as the widest.

    pandas adds a line about an index of times that has a frequency, and about categories. Neither
    is a cell.
    """
    cells = column.reset_index(drop=True)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(object)
    return cells.to_string(index=False, header=False).split("\n")
