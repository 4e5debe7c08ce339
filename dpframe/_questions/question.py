"""What can be asked: a frozen value that plans from public facts, reads behind the door, and says what its answer looks like.

Measures, choices, searches for keys, reports of rows and models all go the same way: a plan with a price, a debit, and only then
the data (docs/guarantees/session.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpframe._cells.encoding import SHOWN
from dpframe._expr import Expr
from dpframe._groups.keys import By, Word, groups_of
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import AGGREGATES, LISTED, Measured, Output
from dpframe._plans.plan import Part, Plan, choice, draft, measured, noise_for, picked
from dpframe._statistics.engine import Engine, Scope
from dpframe.accounting._filter import Price
from dpframe.mechanisms._base import Form

Array = NDArray[Any]


class Release(NamedTuple):
    """A plan and its noisy integers: all that ever leaves the door."""

    plan: Plan
    raw: tuple[Any, ...]


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


class Noise(Protocol):
    """The right to add noise, which a question is handed at the door: exact integers of a part of its plan in, and out what may
    leave. In a session the plan's mechanism answers; an audit, which hands in another, learns what the mechanism would be given.

    Of integers about keys that nobody listed the ``keys`` are named, a column each; of steps of a grid its ``width``.
    """

    def __call__(
        self, part: int, integers: Array, *, keys: Sequence[Any] | None = None, width: int | None = None
    ) -> Array: ...


@dataclass(frozen=True, slots=True)
class Question(ABC):
    """A question. Kinds are frozen dataclasses: equal questions are equal, hash alike, and are free when asked again.

    ``finish`` makes an answer of a release. It is no part of what is asked, and knows the release alone.
    """

    finish: Callable[[Release], Any] | None = field(
        default=None, kw_only=True, compare=False, repr=False, metadata=SHOWN
    )

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The numbers a group that are asked for; none where the answer is no such number."""
        return ()

    @property
    def where(self) -> Expr | None:
        """The condition on rows; None where all count."""
        return None

    @property
    def by(self) -> tuple[By, ...]:
        """The public groupings."""
        return ()

    @property
    def groups(self) -> int:
        """The number of public groups, of which no grouping has one."""
        return 1

    @property
    def verb(self) -> str:
        """The name by which an error calls it."""
        return "a question"

    @abstractmethod
    def to_json(self) -> object:
        """All that makes it the question that it is; no data."""

    @abstractmethod
    def __str__(self) -> str:
        """The question as a plan shows it."""

    @abstractmethod
    def plan(self, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]) -> Plan:
        """Everything that is known before the data is read: which noise, at which cost, and what error to expect."""

    @abstractmethod
    def forms(self, plan: Plan, unit: Unit, size: int | None) -> tuple[Form, ...]:
        """The arrays that `run` returns, from public facts alone, of which ``size`` is one: the number of people, where it is
        public."""

    @abstractmethod
    def run(self, data: Engine, plan: Plan, unit: Unit, noise: Noise) -> tuple[Array, ...]:
        """What may leave, as arrays of whole numbers or of text: of ``data``, an engine, and only through ``noise``.

        Called at the door alone.
        """

    def answer(self, release: Release) -> Any:
        """The answer that the verb returns."""
        return release if self.finish is None else self.finish(release)


@dataclass(frozen=True, slots=True)
class Query(Question):
    """A question that sums of integers answer: some outputs, of the rows where a condition holds, in groups."""

    outputs: tuple[Output, ...] = field()  # said here, so that the base's property is no default
    where: Expr | None = None
    by: tuple[By, ...] = ()

    @property
    def groups(self) -> int:
        """The number of groups, of which no grouping has one."""
        return groups_of(self.by)

    @property
    def verb(self) -> str:
        """What an error calls it."""
        return ", ".join(dict.fromkeys(out.aggregate for out in self.outputs))

    def to_json(self) -> object:
        return {
            "outputs": [o.to_json() for o in self.outputs],
            "where": self.where.to_json() if self.where is not None else None,
            "by": [b.to_json() for b in self.by],
        }

    def __str__(self) -> str:
        first = self.outputs[0] if self.outputs else None
        if first is not None and first.said:
            text = f"choose 1 of {len(self.outputs)} by {first.said[:300]}"
            if first.bounds is not None:
                text += f", bounds=({first.bounds.lower:g}, {first.bounds.upper:g})"
        else:
            text = ", ".join(map(str, self.outputs[:LISTED])) + (
                ", ..." if len(self.outputs) > LISTED else ""
            )
        if self.by:
            text += f" by {', '.join(map(str, self.by))}"
        return text + (f" where {self.where}" if self.where is not None else "")

    def plan(self, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]) -> Plan:
        """Pure, and the only place where the price of outputs becomes a scale."""
        text = str(self)
        made = draft(self, unit, public_rows)
        first = AGGREGATES[self.outputs[0].aggregate]
        candidates = 1 if made.groups is None else made.groups
        if first.selects:
            candidates = len(self.outputs) if made.groups is None else made.groups
            bought = choice(first, made.moved[0].l1, candidates, self.outputs[0].rounds, price)
        elif True in made.picks:
            bought = picked(made.moved, made.picks, price)
        else:
            bought = noise_for(made.moved, price)
        pairs = zip(made.readings, bought.noises, made.moved, strict=True)
        parts = [
            Part(reading.description, noise, l1, l2_squared, reading.step)
            for reading, noise, (l1, l2_squared) in pairs
        ]
        return Plan(
            text,
            unit.neighbors,
            bought.loss,
            bought.stated_at,
            tuple(parts),
            made.cells,
            candidates,
            bought.why + made.why,
            tuple(map(str, declared)),
            _draft=made,
        )

    def forms(self, plan: Plan, unit: Unit, size: int | None) -> tuple[Form, ...]:
        pairs = zip(plan.parts, plan._draft.statistics, strict=True)
        return tuple([part.noise.form(statistic.shape(plan.groups)) for part, statistic in pairs])

    def run(self, data: Engine, plan: Plan, unit: Unit, noise: Noise) -> tuple[Array, ...]:
        wanted = {p for s in plan._draft.statistics for p in s.primitives}
        reduced = data.reduce(Scope(self.where, self.by), wanted, unit)
        return tuple(noise(i, s.integers(reduced)) for i, s in enumerate(plan._draft.statistics))
