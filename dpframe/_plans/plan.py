"""Plans: everything about a release that can be known before looking at the data."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

from dpframe import _validate
from dpframe._errors import NotOffered
from dpframe._plans.aggregates import AGGREGATES, Cell, Measured
from dpframe._statistics.base import Statistic
from dpframe.accounting._filter import Charge
from dpframe.accounting.loss import Loss, loss_from_json
from dpframe.mechanisms._base import mechanism_from

_as_text = json.JSONEncoder(separators=(",", ":")).encode


class Cost(NamedTuple):
    """What a release guarantees by itself: it is (epsilon, delta)-private."""

    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class Part:
    """One statistic of a release, with its own noise. Integers are in steps of ``step`` data units."""

    statistic: str
    noise: Any  # a mechanism
    l1: int
    l2_squared: int
    step: float

    @property
    def sensitivity(self) -> float:
        """The sensitivity in data units, in the norm that the mechanism goes by."""
        return float(self.noise.norm.size(self.l1, self.l2_squared) * self.step)

    @property
    def scale(self) -> float:
        """The scale of the noise, in data units."""
        return float(self.noise.scale * self.step) if self.step == 1 else float(self.noise.scale) * self.step

    def tail(self, plan: Plan) -> str:
        """How its noise falls off, for every t at once (docs/guarantees/accuracy.md)."""
        selects = bool(plan.cells) and AGGREGATES[plan.cells[0].aggregate].selects
        found: str = self.noise.tail(plan.groups if selects else 0)
        return found


@dataclass(frozen=True)
class Plan:
    """A priced question: mechanism, scale, price, expected error. Public, free, and the same for all data.

    `explain` returns it, and every answer carries it. ``loss`` is what accountants add up; ``stated_at`` is the delta at
    which its guarantee is told as (epsilon, delta).
    """

    question: str
    neighbors: str
    loss: Loss
    stated_at: Fraction
    parts: tuple[Part, ...]
    cells: tuple[Cell, ...]
    groups: int
    why: str
    declared: tuple[str, ...] = field(default=(), compare=False)
    told: str = ""  # where there are no cells: the error to expect, in words
    budget: str = field(default="", compare=False)  # what it would take, as `explain` sees it
    n: float | None = field(default=None, compare=False)  # how many values `explain` was told to assume
    # What is measured, part by part, for the question that runs; neither written nor pickled.
    _statistics: tuple[Statistic, ...] = field(default=(), compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_statistics"}

    @cached_property
    def cost(self) -> Cost:
        """What this release guarantees by itself, as (epsilon, delta). In a session its price is what the accountant counts."""
        epsilon = self.loss.epsilon_at(self.stated_at)
        return Cost(math.inf if epsilon is None else float(epsilon), float(self.stated_at))

    @property
    def epsilon(self) -> float:
        return self.cost.epsilon

    @property
    def delta(self) -> float:
        return self.cost.delta

    @property
    def charge(self) -> Charge:
        return Charge(((self.loss, 1),), self.stated_at)

    @property
    def mechanism(self) -> str:
        name: str = self.parts[0].noise.name
        return name

    @property
    def sensitivity(self) -> float:
        """The sensitivity of the first part, in data units; `parts` has them all."""
        return self.parts[0].sensitivity

    @property
    def scale(self) -> float:
        """The scale of the noise of the first part, in data units; `parts` has them all."""
        return self.parts[0].scale

    def error(self, level: float = 0.95, n: float | None = None, at_once: bool = False) -> Any:
        """Half the width of the interval to expect, by output; of one output, the number itself.

        A mean's error depends on how many values there are: give a public or guessed ``n`` (a group), here or to ``explain``.
        Without one such errors are None, since looking would not be free. A selection has no such error.

        ``at_once``: with probability ``level`` the answers of all groups and outputs are within, together. It grows with the
        logarithm of the number of groups (docs/guarantees/accuracy.md#many-answers-at-once).
        """
        level = _validate.level(level)
        level = self.level_each(level) if _validate.flag(at_once, "at_once") else level
        n = self.n if n is None else _validate.real(n, "n")
        found = {}
        for cell in self.cells:
            one = AGGREGATES[cell.aggregate]
            found[cell.name] = None if one.selects else one.error(measured(self, None, cell), level, n)
        return (
            found if len(found) > 1 else next(iter(found.values()), None)
        )  # of some questions there are none

    def level_each(self, level: float) -> float:
        """The level of each interval if all of them, over groups and outputs, shall hold together with this level.

        Groups have independent noise; the outputs of one group may share theirs, so there it is the union bound.
        """
        group = math.exp(math.log(_validate.level(level)) / max(self.groups, 1))
        return min(1 - (1 - group) / max(len(self.cells), 1), 1 - 2.0**-53)

    @property
    def selects(self) -> bool:
        """A choice leaves, among its answers, which was not measured."""
        kinds = [AGGREGATES[cell.aggregate] for cell in self.cells]
        return any(one.selects or one.picks for one in kinds)

    @property
    def ranged(self) -> bool:
        """Only a choice leaves, and the exponential mechanism may make it."""
        one = AGGREGATES[self.cells[0].aggregate] if self.cells else None
        return one is not None and one.ranged

    def worst_error(self, n: float | None = None) -> float | None:
        """The largest `error` of its outputs at 95 %; of selections by how much the choice may fall short of the best."""
        kinds = [AGGREGATES[cell.aggregate] for cell in self.cells]
        if not kinds:
            return None
        if all(one.selects or one.promise for one in kinds):
            return max(map(self._shortfall, self.cells))
        found = self.error(n=n)
        errors = list(found.values()) if isinstance(found, dict) else [found]
        return None if None in errors else max(errors)

    @property
    def limits(self) -> str:
        """For how many rows and groups a person counts here, in words; empty where a row is a person."""
        found = [t for t in self.why.split("; ") if t.startswith("a person counts")]
        return "; ".join(found)

    @property
    def _alone(self) -> str:
        """The guarantee of the plan by itself and its limits, beside an answer."""
        delta = f" at delta {self.delta:.3g}, by itself" if self.delta else ""
        return f"epsilon {self.epsilon:.4g}{delta}" + (f"; {self.limits}" if self.limits else "")

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("question", self.question)]
        if self.budget:
            rows.append(("budget", self.budget))
        if self.delta:
            alone = f"by itself this release guarantees epsilon {self.epsilon:.6g} at delta {self.delta:.3g}"
            rows.append(("price", alone + "; beside others it adds less, as the budget counts it"))
        else:
            rows.append(("price", f"epsilon {self.epsilon:.6g}"))
        rows.append(("neighbours", self.neighbors))
        if self.limits:
            rows.append(("limits", self.limits))
        for part in self.parts:
            rows.append(
                (
                    "release",
                    f"{part.statistic}: sensitivity {part.sensitivity:.6g} ({part.noise.norm.text}), "
                    f"{part.noise.name} noise of scale {part.scale:.6g}",
                )
            )
        rows.append(("error, 95 %", self._error_text(0.95)))
        many = self.groups > 1 and not self.selects and not self.told
        if many:
            rows.append(
                (
                    "all at once",
                    f"{self._error_text(self.level_each(0.95))}, for all {self.groups} groups together",
                )
            )
        rows += [("tail", text) for text in dict.fromkeys(part.tail(self) for part in self.parts) if text]
        rows.append(("why", self.why))
        rows.extend(("declared", word) for word in self.declared)
        return rows

    def _error_text(self, level: float) -> str:
        if self.told:
            return self.told
        texts = []
        for cell in self.cells[:8]:
            if AGGREGATES[cell.aggregate].promise:
                text = AGGREGATES[cell.aggregate].promise.format(r=self._shortfall(cell))
                texts.append(text if len(self.cells) == 1 else f"{cell.name}: {text}")
                continue
            one = AGGREGATES[cell.aggregate]
            if one.selects:
                return (
                    f"the {one.subject} of the choice is within {self._selection_error():.4g} of the largest"
                )
            known = one.error(measured(self, None, cell), level, self.n)
            per_n = one.error(measured(self, None, cell), level, 1e9)
            if known is not None:
                assumed = self.n is not None and one.error(measured(self, None, cell), level, None) is None
                text = f"± {known:.4g}" + (f" for {self.n:g} values" if assumed else "")
            elif per_n is not None:
                text = f"± {per_n * 1e9:.4g} / n for n values"
            else:
                text = "depends on the values; see the interval of the answer"
            texts.append(text if len(self.cells) == 1 else f"{cell.name} {text}")
        return "; ".join(texts) + ("; ..." if len(self.cells) > 8 else "")

    def _selection_error(self) -> float:
        part = self.parts[0]
        return part.scale * float(part.noise.shortfall(self.groups))

    def _shortfall(self, cell: Cell) -> float:
        one, part = AGGREGATES[cell.aggregate], self.parts[cell.part]
        if one.selects:
            return self._selection_error()
        if not one.picks:
            return one.ranks(Measured(cell, part.noise))
        return part.scale * float(part.noise.shortfall(cell.constants["points"]))

    def __repr__(self) -> str:
        return "\n".join(f"{name:>12}  {text}" for name, text in self._rows())

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(text)}</td></tr>"
            for name, text in self._rows()
        )
        return f"<table>{body}</table>"

    @cached_property
    def text(self) -> str:
        return _as_text(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON: what a receipt holds."""
        return {
            "question": self.question,
            "neighbors": self.neighbors,
            "loss": self.loss.to_json(),
            "stated_at": str(self.stated_at),
            "parts": [
                {
                    **p.noise.to_json(),
                    "statistic": p.statistic,
                    "l1": p.l1,
                    "l2_squared": p.l2_squared,
                    "step": p.step,
                }
                for p in self.parts
            ],
            "cells": [
                [
                    c.name if isinstance(c.name, str | int | float | None) else str(c.name),
                    *(c.aggregate, c.part, c.lower, c.upper, c.ddof, c.whole, c.functionals, c.constants),
                ]
                for c in self.cells
            ],
            "groups": self.groups,
            "why": self.why,
            "declared": list(self.declared),
            **({"told": self.told} if self.told else {}),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Plan:
        """The plan of a receipt."""
        parts = tuple(
            Part(d["statistic"], mechanism_from(d), d["l1"], d["l2_squared"], d["step"])
            for d in data["parts"]
        )
        cells = tuple(_cell_from(row) for row in data["cells"])
        return Plan(
            data["question"],
            data["neighbors"],
            loss_from_json(data["loss"]),
            Fraction(data["stated_at"]),
            parts,
            cells,
            data["groups"],
            data["why"],
            tuple(data["declared"]),
            data.get("told", ""),
        )


def _cell_from(row: list[Any]) -> Cell:
    name, aggregate, part, lower, upper, ddof, whole, functionals, constants = row
    maps = {k: tuple(v) for k, v in functionals.items()}
    return Cell(name, aggregate, part, lower, upper, ddof, whole, maps, constants)


def all_choices(cells: Sequence[Cell]) -> bool:
    return bool(cells) and all(AGGREGATES[cell.aggregate].picks for cell in cells)


def refuse_choices(cells: Sequence[Cell]) -> None:
    """Refuses an interval where nothing but choices is shown."""
    if all_choices(cells):
        raise NotOffered(
            "a quantile is chosen, not measured, so no interval of values comes with it. Its plan tells by how many "
            "ranks it may miss. quantile(column, q, method='tree') has intervals."
        )


def measured(plan: Plan, raw: Sequence[Any] | None, cell: Cell) -> Measured:
    """What an output is finished from; before its release without the integers."""
    return Measured(cell, plan.parts[cell.part].noise, None if raw is None else raw[cell.part])
