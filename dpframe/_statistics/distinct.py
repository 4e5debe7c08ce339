"""The number of distinct values: not a sum over people, so its sensitivity has a proof of its own."""

from __future__ import annotations

from dataclasses import dataclass

from dpframe._errors import BadValue
from dpframe._expr import Expr
from dpframe._groups.unit import Unit
from dpframe._statistics.base import Distincts, Integers, Primitive, Reduced, Sensitivity, Statistic


@dataclass(frozen=True, slots=True)
class DistinctCount(Statistic):
    """Distinct non-null values in each group, of which a person names at most ``max_groups``, in all groups together.

    docs/guarantees/statistics.md has the proof.
    """

    expr: Expr

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Distincts(self.expr),)

    def integers(self, reduced: Reduced) -> Integers:
        return reduced[Distincts(self.expr)][None, :]

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        return _moved(1, unit, grouped)

    def of_person(self, unit: Unit, groups: int | None) -> Sensitivity:
        if not unit.people:
            return self.sensitivity(unit, groups is not None)
        if unit.groups is None:
            raise BadValue(
                "a person may have many values here, and max_groups= is not known: the most distinct values (over all "
                "groups) that one may add. Give it at the question or once at open(...). It is your choice, not a fact of "
                "the data."
            )
        return _moved(unit.groups, unit, groups is not None)

    def told(self, unit: Unit, grouped: bool) -> str:
        where = " over all groups" if grouped else ""
        return f"; a person adds at most {unit.groups} values{where}" if unit.people else ""

    def functionals(self) -> dict[str, tuple[float, ...]]:
        return {"size": (1.0,)}

    @property
    def description(self) -> str:
        return f"distinct values of {self.expr}"


def _moved(most: int, unit: Unit, grouped: bool) -> Sensitivity:
    # Without groups both people of a pair raise the same count, so that what they add does not add up.
    if unit.replaces and grouped:
        return Sensitivity(2 * most, 2 * most**2)
    return Sensitivity(most, most**2)
