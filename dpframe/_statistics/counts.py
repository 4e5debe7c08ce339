"""Statistics that count: rows, people, values, distinct values, and answers to questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dpframe._errors import BadValue
from dpframe._expr import Expr
from dpframe._groups.unit import Limit, Unit
from dpframe._statistics.base import (
    MAGNITUDES,
    Distincts,
    Integers,
    Magnitudes,
    Persons,
    Powers,
    Primitive,
    Reading,
    Reduced,
    Rows,
    Sensitivity,
    Spread,
    Statistic,
    Trues,
)


def _one_hot(unit: Unit, grouped: bool) -> Sensitivity:
    """Return the sensitivity of counts where a row is in at most one."""
    # A row is in at most one group: replaced, it may leave one group and enter another.
    return Sensitivity(2, 2) if unit.replaces and grouped else Sensitivity(1, 1)


@dataclass(frozen=True, slots=True)
class RowCount(Statistic):
    """Rows of each group. Add-remove: 1. Replace-one: 1, and 2 over several groups (the notes'
    histogram)."""

    identity: ClassVar[tuple[str, ...]] = ("row_count",)

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Rows(),)

    def integers(self, reduced: Reduced) -> Integers:
        return reduced[Rows()][None, :]

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        return _one_hot(unit, grouped)

    def reach(self, unit: Unit) -> int:
        # Added, a row raises one count. Replaced, it may lower one and raise another.
        return 2 if unit.replaces else 1

    def reading(self) -> Reading:
        return Reading("rows", {"size": (1.0,)})


@dataclass(frozen=True, slots=True)
class PersonCount(Statistic):
    """People of each group. Everybody counts once, however many rows they have."""

    identity: ClassVar[tuple[str, ...]] = ("person_count",)

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Persons(),)

    def integers(self, reduced: Reduced) -> Integers:
        return reduced[Persons()][None, :]

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        return _one_hot(unit, grouped)

    def of_person(self, unit: Unit, groups: int | None) -> Sensitivity:
        one_group = self.sensitivity(unit, groups is not None)
        _, groups_counted = unit.with_limits(1, None).reach(groups)
        return Sensitivity(one_group.l1 * groups_counted, one_group.l2_squared * groups_counted)

    def reading(self) -> Reading:
        return Reading("people", {"size": (1.0,)})


@dataclass(frozen=True, slots=True)
class ValueCount(Statistic):
    """Non-null values of each group, and the nulls in a second component if rows are counted too.

    A row is either, so the two components share the sensitivity of one.
    """

    identity: ClassVar[tuple[str, ...]] = ("value_count", "expr", "nulls")

    expr: Expr
    nulls: bool = False

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        values = Powers(self.expr, None, 0)
        return (values, Rows()) if self.nulls else (values,)

    def shape(self, groups: int) -> tuple[int, ...]:
        return 1 + self.nulls, groups

    def integers(self, reduced: Reduced) -> Integers:
        values = reduced[Powers(self.expr, None, 0)][0]
        return np.stack([values, reduced[Rows()] - values]) if self.nulls else values[None, :]

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        # A replaced value may become null: two components change even without groups.
        return _one_hot(unit, grouped or self.nulls)

    def reading(self) -> Reading:
        text = f"non-null values of {self.expr}"
        if self.nulls:
            return Reading(f"{text} and its nulls", {"n": (1.0, 0.0), "size": (1.0, 1.0)})
        return Reading(text, {"n": (1.0,)})


@dataclass(frozen=True, slots=True)
class Questions(Statistic):
    """k overlapping yes-no questions: one row may answer yes to all, so k in L1 and sqrt(k) in
    L2."""

    identity: ClassVar[tuple[str, ...]] = ("yes_answers", "exprs")

    exprs: tuple[Expr, ...]

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return tuple(Trues(e) for e in self.exprs)

    def shape(self, groups: int) -> tuple[int, ...]:
        return len(self.exprs), groups

    def integers(self, reduced: Reduced) -> Integers:
        return np.stack([reduced[Trues(e)] for e in self.exprs])

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        k = len(self.exprs)
        return Sensitivity(2 * k, 2 * k) if unit.replaces and grouped else Sensitivity(k, k)

    def reach(self, unit: Unit) -> int:
        # Added, a row raises some of the counts by 1 and lowers none. Replaced, it may do both.
        return 2 if unit.replaces else 1

    def reading(self) -> Reading:
        k = len(self.exprs)
        maps = {f"true{i}": tuple(float(i == j) for j in range(k)) for i in range(k)}
        return Reading(f"{k} questions", maps)


class _Once(Statistic):
    """Each person is in at most one of several bins, whatever the groups and the limits.

    The sensitivity is 1, and 2 for a replaced person. The size is read off any one of the bins,
    because their noises are alike.
    """

    __slots__ = ()
    once: ClassVar[bool] = True

    def integers(self, reduced: Reduced) -> Integers:
        return reduced[self.primitives[0]]

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        return _one_hot(unit, True)

    def of_person(self, unit: Unit, groups: int | None) -> Sensitivity:
        return _one_hot(unit, True)


@dataclass(frozen=True, slots=True)
class PeopleBy(_Once):
    """People by the number of their rows in the group where they have most, or by the number of
    groups they are in."""

    identity: ClassVar[tuple[str, ...]] = ("people_by", "of", "bins")

    of: Literal["rows", "groups"]
    bins: int

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Spread(self.of, self.bins),)

    def shape(self, groups: int) -> tuple[int, ...]:
        return self.bins, 1

    def reading(self) -> Reading:
        return Reading(f"people by their number of {self.of}", {"size": (1.0,)})


@dataclass(frozen=True, slots=True)
class PeopleAround(_Once):
    """People by the magnitude of one of their values, which a hash chooses.

    Those without a value are in no bin.
    """

    identity: ClassVar[tuple[str, ...]] = ("people_around", "expr")

    expr: Expr

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Magnitudes(self.expr),)

    def shape(self, groups: int) -> tuple[int, ...]:
        return MAGNITUDES, 1

    def reading(self) -> Reading:
        return Reading(f"people by the magnitude of {self.expr}", {"size": (1.0,)})


@dataclass(frozen=True, slots=True)
class DistinctCount(Statistic):
    """Distinct non-null values in each group. A person adds at most ``max_groups`` over all groups.

    It is not a sum over people, so its sensitivity has a proof of its own
    (docs/guarantees/statistics.md).
    """

    identity: ClassVar[tuple[str, ...]] = ("distinct_count", "expr")

    expr: Expr

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Distincts(self.expr),)

    def integers(self, reduced: Reduced) -> Integers:
        return reduced[Distincts(self.expr)][None, :]

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        return _bound_distinct(1, unit, grouped)

    def of_person(self, unit: Unit, groups: int | None) -> Sensitivity:
        """Return the sensitivity of a count of distinct values to one person. Contribution limits
        must say how many values a person may add."""
        if not unit.people:
            return self.sensitivity(unit, groups is not None)
        if unit.groups is None:
            raise BadValue(
                "a person may have many values here, and max_groups= is not known: the most "
                "distinct values (over all "
                "groups) that one may add. Give it at the question or once at open(...). It is "
                "your choice, not a fact of "
                "the data."
            )
        return _bound_distinct(unit.groups, unit, groups is not None)

    def limit(self, unit: Unit, grouped: bool) -> Limit | None:
        return Limit(values=unit.groups, together=grouped) if unit.people else None

    def reading(self) -> Reading:
        return Reading(f"distinct values of {self.expr}", {"size": (1.0,)})


def _bound_distinct(most: int, unit: Unit, grouped: bool) -> Sensitivity:
    """Return the sensitivity of counts of distinct values, if one person has at most ``most`` of
    them."""
    # Without groups both people of a pair raise the same count, so only one of them matters.
    if unit.replaces and grouped:
        return Sensitivity(2 * most, 2 * most**2)
    return Sensitivity(most, most**2)
