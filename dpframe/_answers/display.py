"""How answers are shown: ``4751 ± 320``, with a mark beside noise and notes below.

All of it is done where an answer is shown, from its receipt alone, so asking is not slower. Values
stay plain numbers. A number that cannot be matched to its release by unique labels is shown as
pandas shows it, and nothing is said of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from textwrap import shorten
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from dpframe import _pandas
from dpframe._answers.computed import ComputedTable, UnchangedAnswer, read_answer, read_source
from dpframe._answers.digits import align_texts, split_interval
from dpframe._answers.matching import MatchedAnswer, ReleasedTable, count_keys
from dpframe._answers.receipts import ANSWER, get_receipt
from dpframe._errors import DPError
from dpframe._options import options
from dpframe._plans.aggregates import AGGREGATES
from dpframe._plans.plan import Plan
from dpframe._plans.worth import (
    LEVEL,
    MARK,
    describe_choice_error,
    describe_extremes,
    describe_limits,
    describe_rare_groups,
)
from dpframe._types import Bools, Ends, PandasAnswer, Places, Series

_MOST_COLUMNS = 64  # of a table in which each column is looked up by itself
_LONGEST_CAPTION = 80  # characters of a question
_BLANK = " ", " "  # in text, the spaces that are as wide as a digit and as a decimal point
# In HTML these stand for them, since pandas strips all spaces: no text has these code points.
_HTML_BLANK = "\ufdd0", "\ufdd1"
_HTML_SPACES = str.maketrans({"\ufdd0": "\u2007", "\ufdd1": "\u2008"})

# What is known ----------------------------------------------------------------------------------


class ColumnFacts(NamedTuple):
    """What is known of a column of numbers: which are noise, and their intervals if there are
    any."""

    noise: Bools
    ends: Ends | None = None


class AnswerFacts(NamedTuple):
    """What is known of an answer: of each column or None, the lines below it, and a caption."""

    columns: Sequence[ColumnFacts | None] = ()
    notes: Sequence[str] = ()
    caption: str = ""


def find_facts(answer: PandasAnswer) -> AnswerFacts:
    """Return what the receipt of an answer tells of its numbers."""
    text = get_receipt(answer, ANSWER)
    if text is None or not answer.size:
        return AnswerFacts()
    try:
        numbers = read_answer(answer, text)
    except DPError:
        return _find_facts_of_changed(answer, text)
    columns = [*[None] * numbers.keys, *_list_columns(numbers)]
    notes = [describe_noise(columns)]
    if any(AGGREGATES[cell.aggregate].picks for cell in numbers.cells):
        notes += map(describe_choice_error, numbers.plans)
    return _make_facts(columns, notes, numbers.plans)


def _list_columns(numbers: UnchangedAnswer | MatchedAnswer) -> list[ColumnFacts]:
    """Return what is known of each column of numbers.

    A missing number of a release is noise that was left out. One that was computed, such as the
    first difference, is no number.
    """
    answer = numbers.answer
    missing = answer.isna().to_numpy().reshape(len(answer), -1).T[numbers.keys :]
    computed = isinstance(getattr(numbers, "source", None), ComputedTable)
    return [
        ColumnFacts(noise & ~lost if computed else noise, ends)
        for noise, ends, lost in zip(numbers.noise, numbers.ends(LEVEL), missing, strict=True)
    ]


def _find_facts_of_changed(answer: PandasAnswer, text: str) -> AnswerFacts:
    """Return what is known of an answer that was changed or joined with others since its release.

    ``text`` is its receipt. Each column of a table is looked up by itself. Of numbers that have
    changed, the labels alone tell which were noise before.
    """
    try:
        source = read_source(text)
    except DPError:
        return AnswerFacts()
    columns: list[ColumnFacts | None] = [None]
    if isinstance(answer, pd.DataFrame):
        columns = _look_up_columns(answer, source)
    notes = [describe_noise(columns)]
    try:
        changed = MatchedAnswer(source, answer, edited=True)
    except DPError:
        changed = None
    if changed is not None:
        before = [ColumnFacts(flags) for flags in changed.noise]
        missing = [known is None for known in columns[changed.keys :]]
        noisy = sum(int(one.noise.sum()) for one, new in zip(before, missing, strict=True) if new)
        if noisy:
            notes.append(f"{MARK} noise before these numbers were changed, {noisy} of them")
        columns[changed.keys :] = [
            one if new else known
            for one, new, known in zip(before, missing, columns[changed.keys :], strict=True)
        ]
    return _make_facts(columns, notes, source.plans)


def _look_up_columns(
    answer: pd.DataFrame, source: ReleasedTable | ComputedTable
) -> list[ColumnFacts | None]:
    """Return what is known of each column of a table, or None: other columns may stand beside."""
    found: list[ColumnFacts | None] = [None] * answer.shape[1]
    keys = count_keys(source.labels, answer)
    for place in range(keys, min(answer.shape[1], _MOST_COLUMNS)):
        try:
            alone = MatchedAnswer(source, answer.iloc[:, [*range(keys), place]])
        except DPError:
            continue
        found[place] = _list_columns(alone)[0]
    return found


def _make_facts(
    columns: Sequence[ColumnFacts | None], notes: Sequence[str], plans: Sequence[Plan]
) -> AnswerFacts:
    """Return the facts of an answer, with a caption and with what its plans say of all numbers."""
    notes_of_plans = (describe_extremes, describe_rare_groups, describe_limits)
    says = [describe(plan) for describe in notes_of_plans for plan in plans]
    lines = list(dict.fromkeys(filter(None, [*notes, *says])))
    questions = "; ".join(dict.fromkeys(plan.question for plan in plans))
    caption = shorten(questions, _LONGEST_CAPTION, placeholder=" ...")
    has_ends = any(known is not None and known.ends is not None for known in columns)
    if has_ends and options.display == "interval":
        caption += f"; ± is how far a {LEVEL:.0%} interval of the noise reaches".replace("%", " %")
    return AnswerFacts(columns, lines, caption)


def describe_noise(columns: Sequence[ColumnFacts | None]) -> str:
    """Return the note below a table on how many of its numbers are noise; empty if it is 0."""
    known = [one for one in columns if one is not None]
    noisy, size = sum(int(one.noise.sum()) for one in known), sum(len(one.noise) for one in known)
    return f"{MARK} noise, {noisy} of {size} numbers" if noisy else ""


# Cells ------------------------------------------------------------------------------------------


def format_cells(column: Series, known: ColumnFacts, blank: tuple[str, str]) -> list[str]:
    """Return the text of each cell of a column, as wide as the widest.

    ``blank`` has the spaces to fill up with. `options.display` says whether intervals are shown.
    """
    texts = _format_plain(column)
    if known.ends is not None and options.display == "interval":
        texts = _format_intervals(column, known.ends, texts, blank)
    if not known.noise.any():
        return texts
    marks = [f" {MARK}" if flag else 2 * blank[1] for flag in known.noise]
    return [text + mark for text, mark in zip(texts, marks, strict=True)]


def _format_plain(column: Series) -> list[str]:
    """Return the text that pandas prints for each value of a column, as wide as the widest.

    pandas adds a line about an index of times that has a frequency, and about categories. Neither
    is a cell.
    """
    cells = column.reset_index(drop=True)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(object)
    return cells.to_string(index=False, header=False).split("\n")


def _format_intervals(
    column: Series, ends: Ends, plain: list[str], blank: tuple[str, str]
) -> list[str]:
    """Return the cells of a column with the reach of their intervals, such as ``4751 ± 320``.

    ``plain`` has the texts of cells without an interval, and ``blank`` the spaces to fill up with.
    Decimal points and ± stand below each other. An endless interval is not shown.
    """
    low, high = (pd.Series(end).tolist() for end in ends)
    values, whole = column.tolist(), column.dtype.kind in "iu"
    missing = [
        any(_pandas.isna(part) or _is_infinite(part) for part in (value, one, two))
        for value, one, two in zip(values, low, high, strict=True)
    ]
    endless = [_is_infinite(one) or _is_infinite(two) for one, two in zip(low, high, strict=True)]
    if all(missing) and not any(endless):
        return plain
    alone = [
        _format_endless(value, text) if no_end else _format_single(value, text)
        for text, no_end, value in zip(plain, endless, values, strict=True)
    ]
    if all(missing):
        return align_texts(alone, *blank)
    pairs = [
        (text, "") if gone else split_interval(value, one, two, whole)
        for text, gone, value, one, two in zip(alone, missing, values, low, high, strict=True)
    ]
    numbers = align_texts([number for number, _ in pairs], *blank)
    halves = align_texts([half for _, half in pairs], *blank)
    gap = 3 * blank[1]  # as wide as " ± "
    return [
        number + (gap if gone else " ± ") + half
        for number, half, gone in zip(numbers, halves, missing, strict=True)
    ]


def _is_infinite(value: object) -> bool:
    return isinstance(value, float) and math.isinf(value)


def _format_single(value: object, text: str) -> str:
    """Return a value without an interval as text, with as few digits as it needs.

    ``text`` is that of pandas.
    """
    short = isinstance(value, float) and math.isfinite(value)
    return f"{value:.12g}" if short else text.strip()


def _format_endless(value: object, text: str) -> str:
    """Return a number whose interval has no end as text: two digits, since its noise leaves none.

    ``text`` is that of pandas.
    """
    if not isinstance(value, float) or not math.isfinite(value) or value == 0:
        return _format_single(value, text)
    decimals = 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):.{max(0, min(decimals, 300))}f}"


def _find_visible_rows(size: int, every: bool) -> Places:
    """Return the rows that pandas shows of a table of this size, or ``every`` row."""
    most = pd.get_option("display.max_rows")
    if every or not most or size <= most:
        return np.arange(size)
    half = min(pd.get_option("display.min_rows") or most, most) // 2 + 1
    return np.concatenate([np.arange(half), np.arange(max(size - half, half), size)])


def _format_column(
    column: Series, known: ColumnFacts | None, blank: tuple[str, str], every: bool
) -> Series | None:
    """Return a column of texts in place of numbers; None if pandas shows the column as it is."""
    if known is None or (known.ends is None and not known.noise.any()):
        return None
    rows = _find_visible_rows(len(column), every)
    ends = known.ends
    if ends is not None:
        ends = ends[0][rows], ends[1][rows]
    shown = ColumnFacts(known.noise[rows], ends)
    cells = np.full(len(column), "", dtype=object)
    cells[rows] = format_cells(column.iloc[rows], shown, blank)
    return pd.Series(cells, index=column.index, name=column.name, dtype=object)


# Tables -----------------------------------------------------------------------------------------


def _format_frame(
    answer: pd.DataFrame, facts: AnswerFacts, blank: tuple[str, str], every: bool = False
) -> pd.DataFrame:
    """Return a table as a plain one, with texts in place of numbers that have an interval or a
    mark."""
    plain = pd.DataFrame(answer)
    for place, known in enumerate(facts.columns):
        texts = _format_column(answer.iloc[:, place], known, blank, every)
        if texts is not None:
            plain.isetitem(place, texts.array)
    return plain


def show_series(answer: Series) -> str:
    """Return a Series as pandas prints it, with intervals, marks and notes."""
    facts, plain = find_facts(answer), pd.Series(answer)
    known = facts.columns[0] if facts.columns else None
    texts, lines = _format_column(plain, known, _BLANK, every=False), repr(plain).split("\n")
    if texts is not None:
        body = repr(texts).split("\n")[:-1]  # the last line has the dtype of the texts
        lines = [*body, *lines[len(body) :]]
    return "\n".join([*lines, *facts.notes])


def show_frame(answer: pd.DataFrame) -> str:
    """Return a table as pandas prints it, with intervals, marks and notes."""
    facts = find_facts(answer)
    return "\n".join([repr(_format_frame(answer, facts, _BLANK)), *facts.notes])


def show_as_html(answer: pd.DataFrame) -> str | None:
    """Return a table as the HTML of pandas, with intervals, marks, a caption and notes.

    Headers have their scope, for a screen reader. It is None where pandas shows no HTML.
    """
    facts = find_facts(answer)
    html = cast(Any, _format_frame(answer, facts, _HTML_BLANK))._repr_html_()
    if html is None:
        return None
    notes = "".join(f"<p><small>{escape(note)}</small></p>" for note in facts.notes)
    return _add_headers(str(html).translate(_HTML_SPACES), facts.caption) + notes


_STYLE = "text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums"
_CAPTION = "text-align: left; white-space: normal"


def _add_headers(html: str, caption: str) -> str:
    """Return HTML of pandas with a caption and with the scope of its headers."""
    start, table, rest = html.partition("<table")
    head, body, rows = rest.partition("<tbody>")
    head = re.sub("<th(?=[ >])", '<th scope="col"', head).replace(
        '"col" colspan', '"colgroup" colspan'
    )
    rows = re.sub("<th(?=[ >])", '<th scope="row"', rows).replace(
        '"row" rowspan', '"rowgroup" rowspan'
    )
    tag, end, head = head.partition(">")
    title = f'<caption style="{_CAPTION}">{escape(caption)}</caption>' if caption else ""
    style = f' style="{_STYLE}"' if table else ""
    return f"{start}{table}{tag}{style}{end}\n{title}{head}{body}{rows}" if table else html
