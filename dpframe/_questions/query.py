"""Questions that sums of integers answer: some outputs of the rows where a condition holds, in groups."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from dpframe._expr import Expr
from dpframe._groups.keys import By, Word
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import Output
from dpframe._plans.plan import Plan
from dpframe._plans.planner import make_plan
from dpframe._questions.question import Array, Noise, Question
from dpframe.accounting._filter import Price
from dpframe.mechanisms._base import Form


@dataclass(frozen=True, slots=True)
class Query(Question):
    """A question: some outputs, of the rows where a condition holds, in groups."""

    outputs: tuple[Output, ...] = field()  # said here, so that the base's property is no default
    where: Expr | None = None
    by: tuple[By, ...] = ()

    @property
    def groups(self) -> int:
        """The number of groups, of which no grouping has one."""
        return math.prod(len(b.index) for b in self.by)

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
            text = ", ".join(map(str, self.outputs[:6])) + (", ..." if len(self.outputs) > 6 else "")
        if self.by:
            text += f" by {', '.join(map(str, self.by))}"
        return text + (f" where {self.where}" if self.where is not None else "")

    def plan(self, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]) -> Plan:
        return make_plan(self, unit, price, public_rows, declared)

    def forms(self, plan: Plan, unit: Unit, size: int | None) -> tuple[Form, ...]:
        groups = self.groups if self.by else 1
        return tuple(p.noise.form(s.shape(groups)) for p, s in zip(plan.parts, plan.statistics, strict=True))

    def run(self, data: Any, plan: Plan, unit: Unit, noise: Noise) -> tuple[Array, ...]:
        wanted = {p for s in plan.statistics for p in s.primitives}
        reduced = data.reduce(self, wanted, unit)
        return tuple(noise(i, s.integers(reduced)) for i, s in enumerate(plan.statistics))
