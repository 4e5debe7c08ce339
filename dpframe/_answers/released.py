"""A release and where its numbers stand: their values, their intervals, and their noise.

*Formal guarantee.* Post-processing of a release and of public facts: nothing of it changes what is
asked, paid or free.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import NamedTuple, Self, TypeVar, cast

import numpy as np

from dpframe._answers.layout import AnswerLayout, read_layout
from dpframe._ledger.store import unpack
from dpframe._plans.aggregates import AGGREGATES, Cell
from dpframe._plans.durations import has_moments
from dpframe._plans.plan import Plan
from dpframe._plans.sampling import NOISE, About
from dpframe._plans.worth import (
    LEVEL,
    PART,
    is_noise,
    is_vague_choice,
    judge_at_sight,
    says_nothing,
)
from dpframe._questions.question import Release
from dpframe._types import Array, Bools, Ends, Json, Places, Raw

Column = TypeVar("Column")

_MANY = 1024  # groups; of more, some tell whether there is a warning


class Released:
    """A release as its answer shows it, in the order of the answer's rows.

    ``part`` is the part by which its numbers are judged. ``order`` tells how the rows were
    rearranged after they were laid out.
    """

    def __init__(
        self, layout: AnswerLayout, plan: Plan, raw: Raw, part: float, order: Places | None = None
    ):
        self.layout, self.plan, self.raw, self.part, self.order = layout, plan, raw, part, order

    @classmethod
    def from_receipt(cls, receipt: Json) -> Self:
        """Return the release of a receipt.

        Raise a KeyError, TypeError or ValueError if it is not the receipt of a release.
        """
        plan = replace(Plan.from_json(receipt["plan"]), most=receipt.get("most"))
        order = receipt.get("order")
        return cls(
            read_layout(receipt),
            plan,
            tuple(unpack(receipt["raw"])),
            receipt.get("reliable", PART),
            None if order is None else unpack(order)[0][0],
        )

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan, as one of several."""
        return (self.plan,)

    @cached_property
    def values(self) -> list[Array]:
        """The columns of the answer."""
        return self._rearrange(self.layout.values(self.plan, self.raw))

    @cached_property
    def _usual_ends(self) -> list[Ends]:
        return self._compute_ends(LEVEL, NOISE)

    @cached_property
    @np.errstate(all="ignore")  # whatever the caller's numpy does with tiny numbers
    def noise(self) -> list[Bools]:
        """Flags that tell which numbers are mostly noise, column by column."""
        groups = int(np.shape(self.raw[0])[-1])
        limits = self.layout.noise_limits(self.plan, groups)
        units, widths = (self._rearrange([pair[side] for pair in limits]) for side in (0, 1))
        flags = [
            is_noise(column, low, high, unit, width, self.part)
            for column, (low, high), unit, width in zip(
                self.values, self._usual_ends, units, widths, strict=True
            )
        ]
        if self.plan.selects:
            vague = self._place(is_vague_choice(self.plan, self.raw, self.part))
            flags = [flag | nothing for flag, nothing in zip(flags, vague, strict=True)]
        return flags

    def ends(
        self, level: float, at_once: bool = False, about: About = NOISE, size: int | None = None
    ) -> list[Ends]:
        """Return the ends of the intervals of each column.

        With ``at_once`` all ``size`` numbers hold together at the level; by default all numbers of
        the release. ``about`` tells what the intervals cover beside the noise.
        """
        if at_once:
            joint = self.layout.computed or about.population
            # Margins and proportions are numbers beyond those of the groups, so the union bound is
            # over all that is shown.
            shown = sum(map(len, self.values)) if size is None else size
            many = 1 - (1 - level) / max(shown, 1)
            level = min(many, 1 - 2.0**-53) if joint else self.plan.level_each(level)
        elif level == LEVEL and about is NOISE:
            return self._usual_ends
        return self._compute_ends(level, about)

    def _compute_ends(self, level: float, about: About) -> list[Ends]:
        """Return the ends of the intervals of each column at this level."""
        ends = self.layout.interval(self.plan, self.raw, level, about)
        order = self.order
        return ends if order is None else [(low[order], high[order]) for low, high in ends]

    def deviations(self) -> Sequence[Array | float | None]:
        """Return the standard deviation of the noise in each column; None if none can be stated."""
        found = self.layout.deviations(self.plan, self.raw)
        if found is None:
            return [None] * len(self.values)
        return self._rearrange(found)

    def cells_of(self, columns: Sequence[int]) -> tuple[Cell, ...]:
        """Return the outputs that these columns show, or are made of."""
        alone = not self.layout.computed and len(self.values) == len(self.plan.cells)
        return tuple(self.plan.cells[j] for j in columns) if alone else self.plan.cells

    def is_worth_a_warning(self) -> bool:
        """Return whether so much of the answer is noise that the user is warned.

        A total of nobody is near zero and says so itself, unless most of the answer is like that.
        Of choices that say nothing there was a warning before the debit, if that was public.
        """
        plan, groups = self.plan, int(np.shape(self.raw[0])[-1])
        kinds = [(AGGREGATES[cell.aggregate], cell) for cell in plan.cells]
        warned = [
            kind.picks and plan.most is not None and says_nothing(plan, cell, plan.most)
            for kind, cell in kinds
        ]
        before = self._place([np.full(groups, each) for each in warned])
        totals = self._place([np.full(groups, kind.ratio is False) for kind, _ in kinds])
        fresh = [flag & ~each for flag, each in zip(self.noise, before, strict=True)]
        if 2 * sum(map(np.count_nonzero, fresh)) > sum(map(np.size, fresh)):
            return True
        return any(bool(np.any(flag & ~total)) for flag, total in zip(fresh, totals, strict=True))

    def _place(self, each: Sequence[Bools]) -> list[Bools]:
        """Return flags of each output, a flag a group, as the answer places them."""
        return self._rearrange(self.layout.place(each))

    def _rearrange(self, columns: Sequence[Column]) -> list[Column]:
        """Return columns in the order of the answer's rows.

        Instead of a column there may be a number that holds for all of its rows.
        """
        order = self.order
        if order is None:
            return list(columns)
        return [
            cast(Column, column[order]) if isinstance(column, np.ndarray) else column
            for column in columns
        ]


class SealedRelease(NamedTuple):
    """The receipt of a release: the release, the seal of its answer, and that of each column."""

    released: Released
    seal: str
    each: tuple[str, ...]
    labelled: bool  # whether the answer is a table, in which columns have labels
    skip: int  # the number of columns that are keys


@lru_cache(maxsize=8)
def read_release(text: str) -> SealedRelease | None:
    """Return the release that a receipt describes, with its seals.

    Return None for the receipt of a table that was computed from several releases. The last few are
    remembered.
    """
    receipt = json.loads(text)
    if "derived" in receipt:
        return None
    return SealedRelease(
        Released.from_receipt(receipt),
        receipt["seal"],
        tuple(receipt.get("each", ())),
        receipt["shape"] == "table",
        receipt.get("skip", 0),
    )


def blank_noise(release: Release, layout: AnswerLayout) -> list[Array]:
    """Return the columns of an answer with NaN where a number is noise, for ``show="nan"``."""
    released = Released(layout, release.plan, release.raw, release.rule.part)
    return [
        column
        if not flag.any()
        else np.where(flag, column.dtype.type("NaT"), column)
        if column.dtype.kind in "mM"
        else np.where(flag, math.nan, column if has_moments(column) else column.astype(np.float64))
        for flag, column in zip(released.noise, released.values, strict=True)
    ]


def warn_of_noise(release: Release, layout: AnswerLayout, values: Sequence[Array]) -> None:
    """Warn once in a session if much of an answer that was released just now is noise.

    ``values`` are its columns as they were laid out. If each column is an output with a row for
    each group, a quick judgement is tried first. Of many groups, some are judged.
    """
    if release.warning is None or not values or not len(values[0]):
        return
    plan, raw, rule = release.plan, release.raw, release.rule
    worth_it = None
    if layout.by_output:
        reliable = judge_at_sight(plan, raw, values, rule.part)
        worth_it = None if reliable is None else not reliable
        if worth_it is None and len(values[0]) > _MANY:
            places = np.linspace(0, len(values[0]) - 1, _MANY).astype(np.int64)
            raw = tuple(part[..., places] for part in raw)
            values = [column[places] for column in values]
    if worth_it is None:
        released = Released(layout, plan, raw, rule.part)
        released.values = list(values)
        worth_it = released.is_worth_a_warning()
    if worth_it:
        release.warning.give(rule)
