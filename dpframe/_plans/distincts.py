"""How many people there are, and how many different values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpframe._expr import Expr
from dpframe._plans.aggregates import (
    Aggregate,
    Counted,
    OfRows,
    Output,
    Setting,
    Size,
    Vector,
    aggregation,
)
from dpframe._statistics.base import Statistic
from dpframe._statistics.counts import DistinctCount, PersonCount


@dataclass(frozen=True, slots=True)
class OfPeople(Vector):
    """The people of each group."""

    place = 3

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        return PersonCount()


@dataclass(frozen=True, slots=True)
class OfDistincts(Vector):
    """The distinct values of a column."""

    place = 4

    expr: Expr

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        return DistinctCount(self.expr)


@aggregation("people")
class People(Size):
    named_in_agg = False
    counts_rows = False
    counts_people = True

    def vector_of(self, out: Output) -> Vector:
        return OfPeople()


@aggregation("nunique")
class Distinct(Counted):
    named_in_agg = True
    counts_distinct, drawn = True, False

    population = Aggregate.population

    def vector_of(self, out: Output) -> Vector:
        return OfRows() if out.expr is None else OfDistincts(out.expr)
