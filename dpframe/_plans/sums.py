"""Counts, sums and means, and the choices among scores, with the vectors that they are read off."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Sequence
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
    Floats,
    Interval,
    Measured,
    Output,
    Setting,
    Vector,
    aggregation,
    fieller,
    powers,
    too_wide,
)
from dpframe._statistics.base import MAGNITUDE_BITS, VALUE_BITS, Grid, Statistic, on_grid, power_bits
from dpframe._statistics.counts import (
    DistinctCount,
    PeopleAround,
    PeopleBy,
    PersonCount,
    Questions,
    RowCount,
    ValueCount,
)
from dpframe._statistics.moments import Centred, Simplex, Total
from dpframe._statistics.scores import Revenue, Scores
from dpframe._validate import Bounds

# What outputs share ----------------------------------------------------------------------------------------------------


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


def are_whole(expr: Expr, bounds: Bounds) -> bool:
    """Whether sums are whole numbers by dtype and bounds alone, and few enough bits to be answered as such."""
    small = max(abs(bounds.lower), abs(bounds.upper)) < 2**MAGNITUDE_BITS
    return expr.integral and small and bounds.lower.is_integer() and bounds.upper.is_integer()


# Aggregates ------------------------------------------------------------------------------------------------------------


class _Linear(Aggregate):
    """A weighted sum of the released integers."""

    @abstractmethod
    def combination(self, cell: Cell) -> dict[str, float]: ...

    def value(self, m: Measured) -> NDArray[Any]:
        values = m.values(self.combination(m.cell))
        if m.cell.whole and values.dtype.kind == "f":
            return np.asarray(np.rint(values).astype(np.int64))
        return values

    def interval(self, m: Measured, level: float) -> Interval:
        half = m.half_width(self.combination(m.cell), level)
        values = m.values(self.combination(m.cell))
        with np.errstate(over="ignore"):
            low, high = values - half, values + half
        if not m.cell.whole:
            return low, high
        # The answer without noise is whole, so the interval may end at whole numbers.
        return np.ceil(low.astype(float) - 1e-6), np.floor(high.astype(float) + 1e-6)

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return m.half_width(self.combination(m.cell), level)


class _Counted(_Linear):
    """A number of rows, values or people."""

    always_whole = True

    def cell(self, out: Output, part: int, statistic: Statistic, place: int) -> Cell:
        cell = super().cell(out, part, statistic, place)
        if getattr(statistic, "expr", out.expr) == out.expr:
            return cell
        # Rows read off another column's vector: its own count would leave out that column's nulls.
        return replace(cell, functionals={"size": cell.functionals.get("size", cell.functionals["n"])})

    def combination(self, cell: Cell) -> dict[str, float]:
        return {"size" if "size" in cell.functionals else "n": 1.0}


@aggregation("size")
class Size(_Counted):
    named_in_agg = True
    counts_rows = True
    found_at_once = True
    least_shown = 1.0  # nobody's key is never shown

    def vector_of(self, out: Output) -> Vector:
        return OfRows()


@aggregation("people")
class People(Size):
    named_in_agg = False
    counts_rows = False
    counts_people = True

    def vector_of(self, out: Output) -> Vector:
        return OfPeople()


@dataclass(frozen=True, slots=True)
class PeopleInBins(_Counted):
    """People, each in one bin."""

    bins: type[OfBins]

    def vector_of(self, out: Output) -> Vector:
        return self.bins(out)


AGGREGATES["people by rows"] = PeopleInBins(OfRowNumbers)
AGGREGATES["people by groups"] = PeopleInBins(OfGroupNumbers)
AGGREGATES["people by magnitude"] = PeopleInBins(OfMagnitudes)


@aggregation("count")
class Count(_Counted):
    named_in_agg = True
    found_at_once = True
    least_shown = 0.0

    def vector_of(self, out: Output) -> Vector:
        return OfRows() if out.expr is None else OfColumn(out.expr)

    def combination(self, cell: Cell) -> dict[str, float]:
        return {"n" if "n" in cell.functionals else "size": 1.0}


@aggregation("nunique")
class Distinct(_Counted):
    named_in_agg = True
    counts_distinct = True

    def vector_of(self, out: Output) -> Vector:
        return OfRows() if out.expr is None else OfDistincts(out.expr)


@aggregation("true")
class Question(_Counted):
    """The rows that answer yes to one of several questions."""

    def vector_of(self, out: Output) -> Vector:
        return OfQuestions()

    def cell(self, out: Output, part: int, statistic: Statistic, place: int) -> Cell:
        cell, name = super().cell(out, part, statistic, place), f"true{place}"
        return replace(cell, functionals={name: cell.functionals[name]})

    def combination(self, cell: Cell) -> dict[str, float]:
        return {next(iter(cell.functionals)): 1.0}


@aggregation("sum")
class Sum(_Linear):
    degree = 1
    needs_bounds = True
    named_in_agg = True
    found_at_once = True

    def vector_of(self, out: Output) -> Vector:
        return OfColumn(*out.clipped[0])

    def alone(self, out: Output, setting: Setting) -> Statistic:
        expr, bounds = out.clipped[0]
        always = setting.public_rows is not None and not expr.nullable
        return Total(expr, Grid.for_magnitude(bounds, MAGNITUDE_BITS, are_whole(expr, bounds)), always)

    def cell(self, out: Output, part: int, statistic: Statistic, place: int) -> Cell:
        return replace(super().cell(out, part, statistic, place), whole=are_whole(*out.clipped[0]))

    def combination(self, cell: Cell) -> dict[str, float]:
        if "total" in cell.functionals:
            return {"total": 1.0}
        return {"n": cell.lower, "t1": cell.upper - cell.lower}


N, T1 = {"n": 1.0}, {"t1": 1.0}


def _stretch(cell: Cell, t: Floats) -> Floats:
    """Numbers on the scale where the bounds are 0 and 1, in data units: without overflow and within the bounds."""
    return (cell.lower * (1 - t) + cell.upper * t).clip(cell.lower, cell.upper)


@aggregation("mean")
class Mean(Aggregate):
    degree = 1
    needs_bounds = True
    named_in_agg = True
    found_at_once = True

    def vector_of(self, out: Output) -> Vector:
        return OfColumn(*out.clipped[0])

    def alone(self, out: Output, setting: Setting) -> Statistic | None:
        expr, bounds = out.clipped[0]
        if not setting.unit.replaces or setting.query.by:
            return None
        public = None if expr.nullable else setting.public_rows
        return Centred(expr, Grid.for_width(bounds, VALUE_BITS), public)

    def value(self, m: Measured) -> NDArray[Any]:
        n, t1 = m.values(N).astype(float), m.values(T1).astype(float)
        return _stretch(m.cell, ratio(t1, n, empty=0.5))

    def interval(self, m: Measured, level: float) -> Interval:
        low, high = self.unit_interval(m, level)
        bottom = _stretch(m.cell, low)
        return bottom, np.maximum(bottom, _stretch(m.cell, high))  # bounds may be a few doubles apart

    def unit_interval(self, m: Measured, level: float) -> tuple[Floats, Floats]:
        n, t1 = m.values(N).astype(float), m.values(T1).astype(float)
        moments = m.covariance(T1, T1), m.covariance(T1, N), m.covariance(N, N)
        return within(*fieller(t1, n, *moments, m.reach(level)), limit=1.0)

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        if n is None and "n" in m.cell.constants:
            n = m.cell.constants["n"]
        if n is None:
            return None
        width = m.cell.upper - m.cell.lower
        worst = max(m.covariance(c, c) for c in ({"t1": 1.0, "n": -t} for t in (0.0, 0.5, 1.0)))
        return min(width, width * m.reach(level) * math.sqrt(worst) / max(n, 1e-300))


def ratio(top: Floats, n: Floats, empty: float) -> Floats:
    """top / n within [0, 1]; ``empty`` where the noisy count leaves nothing to divide by."""
    positive = n > 0
    shares = top / n if positive.all() else np.where(positive, top / np.where(positive, n, 1.0), empty)
    return shares.clip(0.0, 1.0)


def within(low: Floats, high: Floats, limit: float | Floats) -> tuple[Floats, Floats]:
    """The part of the interval that is possible; all that is possible where they do not meet."""
    missed = (low > limit) | (high < 0)
    low, high = np.where(missed, 0.0, low), np.where(missed, limit, high)
    return np.clip(low, 0.0, limit), np.clip(high, 0.0, limit)


@dataclass(frozen=True, slots=True)
class Selection(Aggregate):
    """The place of the largest score, or the places of several: a choice, which has no interval."""

    vector: Vector
    subject: str = ""
    ranged: bool = False
    several: bool = False

    selects = True
    always_whole = True

    def vector_of(self, out: Output) -> Vector:
        return self.vector

    def cell(self, out: Output, part: int, statistic: Statistic, place: int) -> Cell:
        # Not `super()`, which a class with slots, being made twice, does not find.
        return replace(Aggregate.cell(self, out, part, statistic, place), functionals={})

    def value(self, m: Measured) -> NDArray[Any]:
        assert m.raw is not None
        choice: NDArray[Any] = m.raw[0]
        return choice

    def interval(self, m: Measured, level: float) -> Interval:
        raise AssertionError("a selection has no interval: its verbs return bare candidates")

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return None


AGGREGATES["argmax"] = Selection(OfScores(), "count")
AGGREGATES["top"] = Selection(OfScores(), "count", several=True)
AGGREGATES["choose"] = Selection(OfScores(), "utility", ranged=True)
AGGREGATES["revenue"] = Selection(OfPrices(), "revenue", ranged=True)
