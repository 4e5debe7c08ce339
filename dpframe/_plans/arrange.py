"""Which statistics a question is released as: the arrangement that shares one person's reach between outputs.

Each aggregate says which vector it is read off (`Aggregate.vector_of`); outputs with equal vectors share one statistic.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpframe._errors import BadValue
from dpframe._expr import Expr
from dpframe._groups.keys import BinBy
from dpframe._groups.unit import LIMIT, Unit
from dpframe._plans.aggregates import AGGREGATES, Setting, Vector
from dpframe._plans.measured import Cell
from dpframe._plans.output import Output, Outputs
from dpframe._statistics.base import (
    MAGNITUDE_BITS,
    SQUARE_BITS,
    VALUE_BITS,
    Grid,
    Statistic,
    on_grid,
    power_bits,
)
from dpframe._statistics.counts import (
    DistinctCount,
    PeopleAround,
    PeopleBy,
    PersonCount,
    Questions,
    RowCount,
    ValueCount,
)
from dpframe._statistics.moments import Pair, Simplex
from dpframe._statistics.order import Ranks, Tree
from dpframe._statistics.scores import Revenue, Scores
from dpframe._validate import Bounds


def arrange(query: Outputs, unit: Unit, public_rows: int | None) -> list[tuple[Statistic, list[int]]]:
    """The statistics of one release, and the outputs that each serves.

    A column's count, sum and moments come from one vector whose sensitivity is that of a single number, and so
    do the rows of the group where the column may be null. ``docs/guarantees/statistics.md`` shows why that
    beats splitting the price, and when one of the other forms is better still.
    """
    vectors = [AGGREGATES[out.aggregate].vector_of(out) for out in query.outputs]
    served: dict[Vector, list[int]] = {}
    for i, vector in enumerate(vectors):
        served.setdefault(vector.among(vectors), []).append(i)
    ordered = sorted(served, key=lambda vector: vector.place)
    counts_rows = OfRows() in served and isinstance(ordered[0], OfColumn)
    if counts_rows:  # the first column has room for them
        served[ordered[0]] += served.pop(OfRows())
        ordered.remove(OfRows())
    return [
        (
            vector.statistic(
                [query.outputs[i] for i in served[vector]],
                Setting(query, unit, public_rows, counts_rows and vector is ordered[0]),
            ),
            served[vector],
        )
        for vector in ordered
    ]


def cells_of(outputs: Sequence[Output], part: int, statistic: Statistic) -> list[Cell]:
    """The outputs that one statistic serves, as the plan knows them; of a choice the first stands for all."""
    kinds = [AGGREGATES[out.aggregate] for out in outputs]
    shown = 1 if kinds[0].selects else len(kinds)
    return [kinds[i].cell(outputs[i], part, statistic, i) for i in range(shown)]


def are_whole(expr: Expr, bounds: Bounds) -> bool:
    """Whether sums are whole numbers by dtype and bounds alone, and few enough bits to be answered as such."""
    small = max(abs(bounds.lower), abs(bounds.upper)) < 2**MAGNITUDE_BITS
    return expr.integral and small and bounds.lower.is_integer() and bounds.upper.is_integer()


def too_wide(bounds: Bounds, degree: int) -> bool:
    """Whether powers of values between these bounds may be no doubles."""
    return degree > 1 and bounds.upper - bounds.lower > 2.0 ** (1000 // degree)


def powers(degree: int) -> str:
    """The name of the powers of this degree."""
    return {2: "squares", 3: "cubes"}.get(degree, f"powers of degree {degree}")


# What outputs share ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfScores(Vector):
    """What a selection chooses by: the rows of each group, or a score for each of its outputs."""

    place = 0

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        first, exprs = outputs[0], tuple(out.expr for out in outputs if out.expr is not None)
        if first.bounds is not None:
            grid = Grid.for_width(first.bounds, VALUE_BITS)
            if grid.exponent > 0 and all(are_whole(e, first.bounds) for e in exprs):
                grid = Grid(first.bounds, 0)
            return Scores(exprs, grid, first.moves)
        return Questions(exprs) if exprs else RowCount()


@dataclass(frozen=True, slots=True)
class OfPrices(Vector):
    """What each price would bring, where the groups are the bids between prices."""

    place = 0

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        by = setting.query.by[0]
        assert isinstance(by, BinBy)
        prices = by.edges[:-1]
        whole = all(p.is_integer() for p in prices)
        grid = Grid.for_magnitude(Bounds(0.0, prices[-1]), MAGNITUDE_BITS, whole)
        return Revenue(by.expr, tuple(on_grid(p, grid.exponent) for p in prices), grid)


@dataclass(frozen=True, slots=True)
class OfColumn(Vector):
    """The values of a column, with the moments that its outputs need; without bounds its count alone."""

    place = 1

    expr: Expr
    bounds: Bounds | None = None

    def among(self, others: Collection[Vector]) -> Vector:
        """A count is read off the moments of its column, or is the number of rows where there are no nulls."""
        if self.bounds is not None:
            return self
        same = [v for v in others if isinstance(v, OfColumn) and v.expr == self.expr and v.bounds is not None]
        if same:
            return same[-1]
        return self if self.expr.nullable else OfRows()

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        nulls = setting.rows and self.expr.nullable
        if self.bounds is None:
            return ValueCount(self.expr, nulls)
        kinds = {out.aggregate: AGGREGATES[out.aggregate] for out in outputs}
        if len(kinds) == 1 and not setting.rows:
            alone = kinds[outputs[0].aggregate].alone(outputs[0], setting)
            if alone is not None:
                return alone
        degree = max(kind.degree for kind in kinds.values())
        if too_wide(self.bounds, degree):
            raise BadValue(
                f"the bounds of {self.expr} are too wide for {powers(degree)} to be doubles. Rescale the column."
            )
        return Simplex(self.expr, Grid.for_width(self.bounds, power_bits(degree)), degree, nulls)


@dataclass(frozen=True, slots=True)
class OfRows(Vector):
    """The rows of each group."""

    place = 2

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        return RowCount()


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


@dataclass(frozen=True, slots=True)
class OfQuestions(Vector):
    """The answers to several questions about each row."""

    place = 5

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        return Questions(tuple(out.expr for out in outputs if out.expr is not None))


@dataclass(frozen=True, slots=True)
class OfPoints(Vector):
    """How many values lie on each point of a grid."""

    place = 6

    expr: Expr
    bounds: Bounds
    resolution: float | None


class OfRanks(OfPoints):
    """Every point by its ranks, from which quantiles are chosen."""

    __slots__ = ()

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        levels: list[Fraction] = [out.level for out in outputs if out.level is not None]
        return Ranks.of(self.expr, self.bounds, self.resolution, levels, setting.query.groups)


class OfTree(OfPoints):
    """A noisy distribution, off which quantiles are read."""

    __slots__ = ()

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        return Tree.of(self.expr, self.bounds, self.resolution, setting.query.groups)


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


@dataclass(frozen=True, slots=True)
class OfPair(Vector):
    """The mixed moments of two columns; each output has a pair of its own."""

    place = 8

    out: Output

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        (one, bounds), (two, other) = self.out.clipped
        for expr, pair in self.out.clipped:
            if too_wide(pair, 2):
                raise BadValue(
                    f"the bounds of {expr} are too wide for products to be doubles. Rescale the column."
                )
        return Pair(one, Grid.for_width(bounds, SQUARE_BITS), two, Grid.for_width(other, SQUARE_BITS))
