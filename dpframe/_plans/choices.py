"""Choices among scores, and people in bins, with the vectors that they are read off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._errors import BadValue
from dpframe._expr import Expr
from dpframe._groups.keys import BinBy
from dpframe._groups.unit import LIMIT
from dpframe._plans.aggregates import (
    AGGREGATES,
    Aggregate,
    Cell,
    Counted,
    Interval,
    Measured,
    Output,
    Setting,
    Vector,
    aggregation,
    are_whole,
)
from dpframe._statistics.base import MAGNITUDE_BITS, VALUE_BITS, Grid, Reading, Statistic, on_grid
from dpframe._statistics.counts import PeopleAround, PeopleBy, Questions, RowCount
from dpframe._statistics.order import LEAF_CEILING
from dpframe._statistics.scores import Revenue, Scores, Votes
from dpframe._validate import Bounds

# Vectors ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfQuestions(Vector):
    """The answers to several questions about each row."""

    place = 5

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        return Questions(tuple(out.expr for out in outputs if out.expr is not None))


@dataclass(frozen=True, slots=True)
class OfScores(Vector):
    """The scores of a selection: the rows of each group, or one for each of its outputs."""

    place = 0

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        first, exprs = outputs[0], tuple(out.expr for out in outputs if out.expr is not None)
        if first.bounds is not None:
            grid = Grid.for_width(first.bounds, VALUE_BITS)
            whole = grid.exponent > 0 and all(are_whole(e, first.bounds) for e in exprs)
            # Whose totals are scaled, and rounded on the grid.
            if whole and not setting.unit.people:
                grid = Grid(first.bounds, 0)
            return Scores(exprs, grid, first.moves)
        return Questions(exprs) if exprs else RowCount()


@dataclass(frozen=True, slots=True)
class OfPrices(Vector):
    """The revenue of each price, where the groups are the bids between prices."""

    place = 0

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        by = setting.query.by[0]
        assert isinstance(by, BinBy)
        prices = by.edges[:-1]
        whole = all(p.is_integer() for p in prices)
        grid = Grid.for_magnitude(Bounds(0.0, prices[-1]), MAGNITUDE_BITS, whole)
        return Revenue(by.expr, tuple(on_grid(p, grid.exponent) for p in prices), grid)


@dataclass(frozen=True, slots=True)
class OfVotes(Vector):
    """The rows of each group by their values, of which so many are chosen."""

    place = 6

    expr: Expr
    bounds: Bounds
    rounds: int

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        votes = Votes(self.expr, int(self.bounds.upper) + 1)
        cells = votes.values * setting.query.groups
        if cells > LEAF_CEILING:
            raise BadValue(
                f"that would look at {cells} numbers: {votes.values} keys in {setting.query.groups} groups. At most "
                f"{LEAF_CEILING} fit: list fewer keys."
            )
        return votes


@dataclass(frozen=True, slots=True)
class OfBins(Vector):
    """People, each in one of several bins; each output has bins of its own."""

    place = 7

    out: Output


class OfRowNumbers(OfBins):
    """People by how many rows they have."""

    __slots__ = ()

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        return PeopleBy("rows", LIMIT.bit_length())


class OfGroupNumbers(OfBins):
    """People by how many groups they are in."""

    __slots__ = ()

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        return PeopleBy("groups", (setting.query.groups - 1).bit_length() + 1)


class OfMagnitudes(OfBins):
    """People by the magnitude of a value."""

    __slots__ = ()

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        assert self.out.expr is not None
        return PeopleAround(self.out.expr)


# Aggregates ------------------------------------------------------------------------------------------------------------


@aggregation("true")
class YesAnswers(Counted):
    """The rows that answer yes to one of several questions."""

    def vector_of(self, out: Output) -> Vector:
        return OfQuestions()

    def cell(
        self, out: Output, part: int, place: int, statistic: Statistic, reading: Reading
    ) -> Cell:
        cell, name = super().cell(out, part, place, statistic, reading), f"true{place}"
        return replace(cell, functionals={name: cell.functionals[name]})

    def combination(self, cell: Cell) -> dict[str, float]:
        return {next(iter(cell.functionals)): 1.0}


@dataclass(frozen=True, slots=True)
class PeopleInBins(Counted):
    """People, each in one bin."""

    bins: type[OfBins]

    def vector_of(self, out: Output) -> Vector:
        return self.bins(out)


AGGREGATES["people by rows"] = PeopleInBins(OfRowNumbers)
AGGREGATES["people by groups"] = PeopleInBins(OfGroupNumbers)
AGGREGATES["people by magnitude"] = PeopleInBins(OfMagnitudes)


@dataclass(frozen=True, slots=True)
class BestPlaces(Aggregate):
    """The place of the largest score, or the places of several: a choice, which has no interval."""

    vector: Vector
    subject: str = ""
    ranged: bool = False
    several: bool = False
    of_rows: bool = False

    selects = True
    always_whole = True

    def vector_of(self, out: Output) -> Vector:
        return self.vector

    def cell(
        self, out: Output, part: int, place: int, statistic: Statistic, reading: Reading
    ) -> Cell:
        # Not `super()`: a dataclass with slots is a second class, which the first one's `super()`
        # does not know.
        return replace(Aggregate.cell(self, out, part, place, statistic, reading), functionals={})

    def value(self, m: Measured) -> NDArray[Any]:
        assert m.raw is not None
        choice: NDArray[Any] = m.raw[0]
        return choice

    def interval(self, m: Measured, level: float) -> Interval:
        raise AssertionError("a selection has no interval: its verbs return bare candidates")

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return None


@aggregation("most")
class MostRows(Aggregate):
    """The places of the values that most rows of each group have, the first before the second and
    so on."""

    picks = True
    keyed = True
    always_whole = True
    promise = "the count of the choice is within {r:.4g} of the largest of its group"

    def vector_of(self, out: Output) -> Vector:
        return OfVotes(*out.clipped[0], out.rounds)

    def cell(
        self, out: Output, part: int, place: int, statistic: Statistic, reading: Reading
    ) -> Cell:
        cell = super().cell(out, part, place, statistic, reading)
        constants = {**cell.constants, "place": float(place % out.rounds)}
        return replace(cell, functionals={}, constants=constants)

    def value(self, m: Measured) -> NDArray[Any]:
        assert m.raw is not None
        choice: NDArray[Any] = m.raw[int(m.cell.constants["place"])]
        return choice

    def interval(self, m: Measured, level: float) -> Interval:
        assert m.raw is not None
        nothing = np.full(m.raw.shape[-1], np.nan)  # chosen, not measured
        return nothing, nothing

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return None


AGGREGATES["argmax"] = BestPlaces(OfScores(), "count", of_rows=True)
AGGREGATES["top"] = BestPlaces(OfScores(), "count", several=True, of_rows=True)
AGGREGATES["choose"] = BestPlaces(OfScores(), "utility", ranged=True)
AGGREGATES["revenue"] = BestPlaces(OfPrices(), "revenue", ranged=True)
