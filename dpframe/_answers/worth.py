"""What answers are worth: which of their numbers are noise, and what is said of that where they are
shown.

*Formal guarantee.* Post-processing of a release and of public facts, by the rule of `_plans.worth`:
nothing of it changes what is asked, paid or free.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._answers.layout import Layout, layout_from
from dpframe._errors import DPError, caution
from dpframe._ledger.store import unpack
from dpframe._plans.aggregates import AGGREGATES, Measured
from dpframe._plans.plan import Plan
from dpframe._plans.worth import LEVEL, PART, capped, is_noise, says_nothing
from dpframe._questions.question import Release

Columns = Sequence[NDArray[Any]]
Flags = list[NDArray[np.bool_]]
T = TypeVar("T", bound="pd.Series[Any] | pd.DataFrame")
MARK = "?"


@np.errstate(all="ignore")  # whatever the caller's numpy does with tiny numbers
def noise_in(layout: Layout, plan: Plan, raw: Sequence[Any], part: float, values: Columns) -> Flags:
    """Which numbers of a laid out release are noise, column by column; of what was chosen, where it
    may be off by a part of all values."""
    groups = int(np.shape(raw[0])[-1])
    ends, yards = layout.interval(plan, raw, LEVEL), layout.yards(plan, groups)
    flags = [
        is_noise(column, low, high, unit, width, part)
        for column, (low, high), (unit, width) in zip(values, ends, yards, strict=True)
    ]
    if plan.selects:
        empty = layout.placed(_far_off(plan, raw, part, groups))
        flags = [flag | nothing for flag, nothing in zip(flags, empty, strict=True)]
    return flags


def _far_off(plan: Plan, raw: Sequence[Any], part: float, groups: int) -> Flags:
    """Flags of the choices that may be off by a part of the values: of as many as the same release
    counts of the group, or as there can be at most."""
    counting = next(
        (c for c in plan.cells if "n" in c.functionals or "size" in c.functionals), None
    )
    values = np.full(groups, math.inf if plan.most is None else plan.most)
    if counting is not None:
        name = "n" if "n" in counting.functionals else "size"
        count = Measured(counting, plan.parts[counting.part].noise, raw[counting.part]).values(
            {name: 1.0}
        )
        values = np.minimum(values, count.astype(float))
    return [
        plan._shortfall(cell) >= part * values
        if AGGREGATES[cell.aggregate].picks
        else np.zeros(groups, dtype=bool)
        for cell in plan.cells
    ]


def _plainly(release: Release, layout: Layout, flags: Flags) -> bool:
    """Whether noise is warned of: any but that of totals, of which one of nobody is near zero and
    says so itself, unless it is most of the answer. Of choices that say nothing there was a warning
    before the debit, where that was public."""
    plan, groups = release.plan, int(np.shape(release.raw[0])[-1])
    kinds = [(AGGREGATES[cell.aggregate], cell) for cell in plan.cells]
    told = [
        kind.picks and plan.most is not None and says_nothing(plan, cell, plan.most)
        for kind, cell in kinds
    ]
    before = layout.placed([np.full(groups, t) for t in told])
    totals = layout.placed([np.full(groups, kind.ratio is False) for kind, _ in kinds])
    noise = [flag & ~b for flag, b in zip(flags, before, strict=True)]
    if 2 * sum(map(np.count_nonzero, noise)) > sum(map(np.size, noise)):
        return True
    return any(bool(np.any(flag & ~total)) for flag, total in zip(noise, totals, strict=True))


# What answers say ---------------------------------------------------------------------------------------------------------

_HELP = (
    "the interval is as wide as what is possible, or half of it is more than {part:g} of the number. A larger epsilon, larger "
    "groups or narrower bounds help; explain tells the error in advance."
)


_MANY = 1024  # groups, of which intervals are reckoned at once where an answer is released


def warn_of_number(release: Release, text: str) -> None:
    """Warns of a number that is noise."""
    caution(f"this number is noise, {text}: " + _HELP.format(part=release.rule.part))


def blanked(release: Release, layout: Layout, values: list[Any]) -> list[Any]:
    """The columns of an answer without what is noise, for sessions with ``show="nan"``."""
    flags = noise_in(layout, release.plan, release.raw, release.rule.part, values)
    return [
        column
        if not flag.any()
        else np.where(flag, column.dtype.type("NaT"), column)
        if column.dtype.kind in "mM"
        else np.where(flag, math.nan, column.astype(np.float64))
        for flag, column in zip(flags, values, strict=True)
    ]


def telling(
    answer: T, release: Release, layout: Layout, values: list[Any], first: tuple[bool, bool] | None
) -> T:
    """A released Series or table: as it came where nothing is to be said of its numbers, else of a
    class that says it where it is shown. Of noise that was released just now there is a warning.
    ``first`` is what `check_noise_quickly` says of it."""
    plan, rule = release.plan, release.rule
    if first is None or first == (True, False):
        large = layout.by_output and len(values[0]) > _MANY
        if large:
            # Some of its groups tell whether there is a warning; it is looked at whole where it is
            # shown.
            places = np.linspace(0, len(values[0]) - 1, _MANY).astype(np.int64)
            release = release._replace(raw=tuple(part[..., places] for part in release.raw))
            values = [column[places] for column in values]
        flags = noise_in(layout, plan, release.raw, rule.part, values)
        told = large or any(map(np.any, flags)) or bool(chosen(plan))
        first = told, _plainly(release, layout, flags)
    doubtful, noisy = first
    if noisy and release.fresh:
        what = "are NaN" if rule.blank else f"are marked {MARK}"
        caution(f"numbers of this answer that {what} are noise: " + _HELP.format(part=rule.part))
    if doubtful or capped(plan):
        answer.__class__ = Series if isinstance(answer, pd.Series) else DataFrame
    return answer


def chosen(plan: Plan) -> str:
    """What is known of numbers that were chosen, which have no interval; empty where they miss by
    less than one value."""
    short = max(
        (plan._shortfall(c) for c in plan.cells if AGGREGATES[c.aggregate].picks), default=0.0
    )
    if short < 1:
        return ""
    return (
        f"chosen, without an interval: at most {short:.4g} values too many lie below each number, and above it; of fewer than "
        f"{short / PART:.4g} values it says nothing"
    )


def contents(receipt: Mapping[str, Any]) -> tuple[Layout, Plan, tuple[Any, ...], float]:
    """The layout, the plan and the integers of a receipt, and the part by which its numbers are
    judged; an error that `answer.reading` takes of what is none."""
    plan = replace(Plan.from_json(receipt["plan"]), most=receipt.get("most"))
    return (
        layout_from(dict(receipt)),
        plan,
        tuple(unpack(receipt["raw"])),
        receipt.get("reliable", PART),
    )


def _notes(answer: pd.Series[Any] | pd.DataFrame) -> tuple[Flags, list[str]]:
    """Which numbers of an answer are noise, column by column, and the lines below it. Of one that
    is no longer known, what its receipt tells of the answer as it came."""
    known = cast(Any, answer)
    try:
        reliable, plans = known.dp.reliable, known.dp.plans
        frame = reliable.to_frame() if isinstance(reliable, pd.Series) else reliable
        flags = [~frame.iloc[:, i].to_numpy() for i in range(frame.shape[1])]
        says = (
            f"{MARK} noise, {{}} of {{}} numbers: .dp.interval() tells how wide, .dp.reliable which"
        )
        counted = flags
    except (DPError, AttributeError):
        try:
            layout, plan, raw, part = contents(json.loads(answer.attrs["dpframe_receipt"]))
            values = layout.values(plan, raw)
        except (KeyError, ValueError, TypeError):
            return [], []
        counted, plans = noise_in(layout, plan, raw, part, values), (plan,)
        flags = _alike(answer, values, counted)
        says = "made of an answer in which {} of {} numbers are noise; its .dp.reliable tells which"
    many, size = sum(map(np.count_nonzero, counted)), sum(map(np.size, counted))
    known_of_plans = [text for plan in plans for text in (chosen(plan), capped(plan)) if text]
    return flags, [*([says.format(many, size)] if many else []), *dict.fromkeys(known_of_plans)]


def speaking(answer: T) -> T:
    """What was computed from answers: of a class that says what its numbers are worth, where there
    is something to say."""
    if answer.size and _notes(answer)[1]:
        answer.__class__ = Series if isinstance(answer, pd.Series) else DataFrame
    return answer


def _alike(answer: pd.Series[Any] | pd.DataFrame, values: Columns, flags: Flags) -> Flags:
    """Flags of the numbers of a changed answer that are numbers of the answer as it came, all of
    them noise: of rows that were chosen or sorted."""
    noise, rest = (
        np.concatenate([v[f == want] for v, f in zip(values, flags, strict=True)])
        for want in (True, False)
    )
    frame = answer.to_frame() if isinstance(answer, pd.Series) else answer
    columns = [frame.iloc[:, i] for i in range(frame.shape[1])]
    return [
        np.asarray(c.isin(noise) & ~c.isin(rest))
        if c.dtype.kind in "if"
        else np.zeros(len(c), dtype=bool)
        for c in columns
    ]


class _Alike(type):
    """A class that equals pandas' own, ``type(answer) == pd.Series``, as whoever compares types
    asks it to."""

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.__base__

    def __hash__(cls) -> int:
        return hash(cls.__base__)


class Series(pd.Series, metaclass=_Alike):
    """A pandas Series of released numbers, some of which are noise or of capped rows: where it is
    shown it says so."""

    @property
    def _constructor(self) -> Any:
        return Series

    @property
    def _constructor_expanddim(self) -> Any:
        return DataFrame

    def __repr__(self) -> str:
        flags, notes = _notes(self)
        lines = super().__repr__().split("\n")
        if flags and flags[0].any():
            body = len(lines) - 1  # the last one is the dtype
            whole = body - len(self) in (0, 1)
            half = len(self) if whole else (body - 1) // 2
            head = body - (len(self) if whole else 2 * half + 1)
            places = [(head + i, i) for i in range(half)]
            places += [] if whole else [(body - i, len(self) - i) for i in range(1, half + 1)]
            for line, i in places:
                lines[line] += f" {MARK}" if flags[0][i] else ""
        return "\n".join(lines + notes)


class DataFrame(pd.DataFrame, metaclass=_Alike):
    """A pandas DataFrame of released numbers, some of which are noise or of capped rows: where it
    is shown it says so."""

    @property
    def _constructor(self) -> Any:
        return DataFrame

    @property
    def _constructor_sliced(self) -> Any:
        return Series

    def __repr__(self) -> str:
        marked, notes = _marked(self)
        return "\n".join([repr(marked), *notes])

    def _repr_html_(self) -> str | None:
        marked, notes = _marked(self)
        html = cast(Any, marked)._repr_html_()
        if html is None:
            return None
        return str(html) + "".join(f"<p><small>{escape(note)}</small></p>" for note in notes)


def _marked(answer: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """A plain table with the texts of an answer's cells, noise with its mark, and the lines below
    it."""
    flags, notes = _notes(answer)
    plain = pd.DataFrame(answer)
    most = pd.get_option("display.max_rows") or len(plain)
    shown = np.arange(len(plain))
    if len(plain) > most:  # pandas shows the ends
        shown = np.r_[shown[:most], shown[-most:]]
    for place, flag in enumerate(flags):
        if flag[shown].any():
            texts = _texts(plain.iloc[shown, place])
            cells = np.full(len(plain), "", dtype=object)
            cells[shown] = [
                f"{text} {MARK if noise else ' '}"
                for text, noise in zip(texts, flag[shown], strict=True)
            ]
            plain.isetitem(place, cells)
    return plain, notes


def _texts(column: pd.Series[Any]) -> list[str]:
    """Return what pandas writes for each cell of a column, as wide as the widest.

    pandas adds a line about an index of times that has a frequency, and about categories. Neither
    is a cell.
    """
    cells = column.reset_index(drop=True)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(object)
    return cells.to_string(index=False, header=False).split("\n")
