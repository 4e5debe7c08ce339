"""Layouts: where each released number stands in its answer, from one column to pivots.

A layout turns the noisy integers of a release into the columns of its answer, and into the ends of
their intervals. It is arithmetic on integers that have left the door, so it is post-processing and
free. The intervals of sums over groups and of proportions are derived in
docs/guarantees/shapes.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._plans import sampling
from dpframe._plans.aggregates import AGGREGATES, Cell, Measured, fieller
from dpframe._plans.durations import align_units, make_moment, read_zone, show_seconds
from dpframe._plans.plan import Plan, get_noisy_sums
from dpframe._plans.sampling import NOISE, About
from dpframe._plans.worth import LEVEL
from dpframe._questions.question import enclose_output, find_shown_levels, read_numbers, show_ends
from dpframe._types import Array, Ends, Floats, Json, Raw
from dpframe.mechanisms._base import Noise

# The size below which a number is as good as zero, and the distance between possible answers: for
# a column, or for each of its rows.
Limits: TypeAlias = "tuple[float | Array, float | Array]"
ShownColumn: TypeAlias = "Array | pd.api.extensions.ExtensionArray"


@dataclass(frozen=True, slots=True)
class SummedNoise:
    """The noise in a sum over ``terms`` groups, each with noise of its own."""

    noise: Noise
    terms: int

    @property
    def deviation(self) -> float:
        return float(self.noise.deviation * math.sqrt(self.terms))

    def quantile(self, level: float, terms: int = 1) -> int:
        """Return a t with P[|X| <= t] >= level, for X the sum of the noise.

        ``terms`` is the number of such sums that are added. The result is the less of two bounds.
        One is the number of deviations that whole numbers of any weights need. The other is by the
        quantile of each noise at its part of the risk.
        """
        total = terms * self.terms
        each = total * self.noise.quantile(1 - (1 - level) / total)
        reach = self.noise.reach(level, total) * self.noise.deviation * math.sqrt(total)
        together = math.floor(reach * (1 + 1e-9))  # the margin puts back what rounding took
        return min(each, together)

    def cumulant(self, t: Floats) -> Floats:
        """Return the logarithm of E exp(t X), or a bound on it: the sum over the terms."""
        return self.terms * self.noise.cumulant(t)

    def reach(self, level: float, terms: int) -> float:
        """Return the bound of a single noise, for all terms together."""
        return self.noise.reach(level, terms * self.terms)


class AnswerLayout(ABC):
    """The place of each number in an answer; a receipt holds its ``shape`` and its `to_json`."""

    shape: ClassVar[str] = "table"
    computed: ClassVar[bool] = False  # whether numbers may be made of several outputs or groups
    by_output: ClassVar[bool] = False  # whether each column is an output, a row a group
    joins: ClassVar[bool] = False  # whether several groups are made into one number
    by_level: ClassVar[bool] = False  # whether the innermost level of the index is of quantiles
    noun: ClassVar[str] = ""  # the name of its numbers, if they are not outputs themselves

    @abstractmethod
    def values(self, plan: Plan, raw: Raw) -> list[Array]:
        """Return the columns of the answer; Python integers where noise is wider than 63 bits."""

    @abstractmethod
    def interval(self, plan: Plan, raw: Raw, level: float, about: About = NOISE) -> list[Ends]:
        """Return the ends of the intervals of each column.

        ``level`` is their confidence. They cover the noise, or whatever else they are to be
        ``about``.
        """

    @abstractmethod
    def place(self, each: Sequence[Array]) -> list[Array]:
        """Return the columns of the answer from an array for each output.

        Each array has an entry for each group, which goes where `values` puts the number. A margin
        takes what holds for all groups.
        """

    def noise_limits(self, plan: Plan, groups: int) -> list[Limits]:
        """Return, for each column, the two limits by which a number is judged to be mostly noise.

        One is the size below which a number is as good as zero, and the other how far apart the
        possible answers are. ``groups`` is the number of groups.
        """
        most = math.inf if plan.most is None else plan.most
        each = [AGGREGATES[cell.aggregate].judging_scale(cell, most) for cell in plan.cells]
        sides = [
            self.place([np.full(groups, judging_scale[side]) for judging_scale in each])
            for side in (0, 1)
        ]
        return list(zip(*sides, strict=True))

    def locate(self, plan: Plan, row: int, column: int) -> tuple[int, int] | None:
        """Return the group and the output behind a number; None if it is made of several."""
        return None

    def show_in_zones(self, plan: Plan, columns: Sequence[Array]) -> list[ShownColumn]:
        """Return columns as they are shown: moments with a zone in that zone, others unchanged."""
        zones = [read_zone(cell.origin) for cell in plan.cells]
        if not any(zones):
            return list(columns)
        places = self.place([np.full(1, i + 1 if zone else 0) for i, zone in enumerate(zones)])
        shown_in = [zones[int(place.max()) - 1] if place.any() else "" for place in places]
        return [
            _show_in_zone(column, zone) if zone else column
            for column, zone in zip(columns, shown_in, strict=True)
        ]

    def deviations(self, plan: Plan, raw: Raw) -> Sequence[Array | float] | None:
        """Return the standard deviation of the noise in each column: a number, or one for each row.

        It is NaN, or None for all columns, where it cannot be stated.
        """
        return None

    def to_json(self) -> Json:
        """Return the facts that tell a layout from others of its shape."""
        return {}


class OutputColumns(AnswerLayout):
    """A column for each output, a row for each group."""

    by_output = True

    def values(self, plan: Plan, raw: Raw) -> list[Array]:
        return [read_numbers(plan, raw, i) for i in range(len(plan.cells))]

    def interval(self, plan: Plan, raw: Raw, level: float, about: About = NOISE) -> list[Ends]:
        return [enclose_output(plan, raw, i, level, about) for i in range(len(plan.cells))]

    def place(self, each: Sequence[Array]) -> list[Array]:
        return list(each)

    def locate(self, plan: Plan, row: int, column: int) -> tuple[int, int] | None:
        return row, column

    def deviations(self, plan: Plan, raw: Raw) -> Sequence[Array | float] | None:
        if find_shown_levels(plan, raw, LEVEL) is not None:
            return None  # the noise of groups that a threshold has shown is large
        return [_find_deviation(plan, cell, raw) for cell in plan.cells]


class OutputSeries(OutputColumns):
    """The one output, a row for each group."""

    shape = "series"


class OutputRows(OutputColumns):
    """A row for each output of a question without groups."""

    shape = "across"
    by_output = False

    def values(self, plan: Plan, raw: Raw) -> list[Array]:
        return [np.concatenate([column[:1] for column in align_units(super().values(plan, raw))])]

    def interval(self, plan: Plan, raw: Raw, level: float, about: About = NOISE) -> list[Ends]:
        """Return the two ends of the intervals as one column, with a row for each output.

        ``level`` is the confidence of the intervals. ``about`` tells whether they cover the noise
        alone or sampling error too.
        """
        pairs = super().interval(plan, raw, level, about)
        low, high = (
            np.concatenate([end[:1] for end in align_units([pair[side] for pair in pairs])])
            for side in (0, 1)
        )
        return [(low, high)]

    def place(self, each: Sequence[Array]) -> list[Array]:
        return [np.array([array[0] for array in each])]

    def locate(self, plan: Plan, row: int, column: int) -> tuple[int, int] | None:
        return 0, row

    def show_in_zones(self, plan: Plan, columns: Sequence[Array]) -> list[ShownColumn]:
        """Return the values with times in the time zone of their column.

        Rows of different zones make a column of objects, as in pandas.
        """
        zones = {read_zone(cell.origin) for cell in plan.cells}
        if len(zones) == 1:
            return super().show_in_zones(plan, columns)
        (column,) = columns  # with several zones it holds objects, as in pandas
        cells = [
            make_moment(value, cell.origin) if cell.origin else value
            for value, cell in zip(column, plan.cells, strict=True)
        ]
        return [np.array([*cells, None], dtype=object)[:-1] if any(zones) else column]

    def deviations(self, plan: Plan, raw: Raw) -> Sequence[Array | float] | None:
        return [np.array([_find_deviation(plan, cell) for cell in plan.cells])]


@dataclass(frozen=True, slots=True)
class RowsWithZeros(AnswerLayout):
    """A row for each output of a question without groups, and rows that are public zeros.

    ``places`` tells which output stands in each row; -1 where the number is 0, whatever the data.
    """

    places: tuple[int, ...]
    computed: ClassVar[bool] = True

    def values(self, plan: Plan, raw: Raw) -> list[Array]:
        return [self._fill(OutputRows().values(plan, raw)[0])]

    def interval(self, plan: Plan, raw: Raw, level: float, about: About = NOISE) -> list[Ends]:
        """Return the ends of the intervals; those of a zero are zeros."""
        ((low, high),) = OutputRows().interval(plan, raw, level, about)
        return [(self._fill(low), self._fill(high))]

    def place(self, each: Sequence[Array]) -> list[Array]:
        return [self._fill(np.array([array[0] for array in each]))]

    def locate(self, plan: Plan, row: int, column: int) -> tuple[int, int] | None:
        return (0, self.places[row]) if self.places[row] >= 0 else None

    def deviations(self, plan: Plan, raw: Raw) -> Sequence[Array | float] | None:
        return [self._fill(np.array([_find_deviation(plan, cell) for cell in plan.cells]))]

    def _fill(self, numbers: Array) -> Array:
        """Return a column with a number of each output in its row, and zeros in the others."""
        column = np.zeros(len(self.places), dtype=numbers.dtype)
        for row, output in enumerate(self.places):
            if output >= 0:
                column[row] = numbers[output]
        return column

    def to_json(self) -> Json:
        return {"zeros": self.places}


class QuantileRows(OutputColumns):
    """A row for each output within each group: quantiles of one column."""

    shape = "levels"
    by_output = False
    by_level = True

    def values(self, plan: Plan, raw: Raw) -> list[Array]:
        return [np.stack(super().values(plan, raw), axis=1).ravel()]

    def interval(self, plan: Plan, raw: Raw, level: float, about: About = NOISE) -> list[Ends]:
        pairs = super().interval(plan, raw, level, about)
        low, high = (np.stack([pair[side] for pair in pairs], axis=1).ravel() for side in (0, 1))
        return [(low, high)]

    def place(self, each: Sequence[Array]) -> list[Array]:
        return [np.stack(list(each), axis=1).ravel()]

    def locate(self, plan: Plan, row: int, column: int) -> tuple[int, int] | None:
        return divmod(row, len(plan.cells))

    def deviations(self, plan: Plan, raw: Raw) -> Sequence[Array | float] | None:
        return None


@dataclass(frozen=True, slots=True)
class OutputGrid(AnswerLayout):
    """A table of outputs, one below the other for each group.

    ``cells`` tells which output stands in each row and column; -1 where nothing was asked.
    """

    cells: tuple[tuple[int, ...], ...]
    computed: ClassVar[bool] = True

    def values(self, plan: Plan, raw: Raw) -> list[Array]:
        """Return the columns: whole numbers where all are whole, as pandas has it.

        Numbers and times in one column are objects, as in pandas.
        """
        found = [AGGREGATES[c.aggregate].value(get_noisy_sums(plan, raw, c)) for c in plan.cells]
        nothing = np.full(len(found[0]), math.nan)
        columns = []
        for column in zip(*self.cells, strict=True):
            if _is_mixed(plan, column):
                shown = [read_numbers(plan, raw, i) if i >= 0 else nothing for i in column]
                columns.append(np.stack(align_units(shown), axis=1).ravel())
                continue
            whole = all(i >= 0 and plan.cells[i].whole for i in column)
            numbers = [
                (found[i] if i >= 0 else nothing).astype(object if whole else np.float64)
                for i in column
            ]
            cells = _find_cells_in_seconds(plan, column)
            columns.append(np.stack(numbers, axis=1).ravel())
            if cells:
                columns[-1] = show_seconds(
                    columns[-1], max(cells, key=lambda c: max(abs(c.lower), abs(c.upper)))
                )
        return columns

    def interval(self, plan: Plan, raw: Raw, level: float, about: About = NOISE) -> list[Ends]:
        """Return the ends of the intervals of each column; NaN where nothing was asked.

        ``level`` is their confidence, and ``about`` tells what they cover.
        """
        ends = [enclose_output(plan, raw, i, level, about) for i in range(len(plan.cells))]
        nothing = np.full(len(ends[0][0]), math.nan)
        columns = []
        for column in zip(*self.cells, strict=True):
            if _is_mixed(plan, column):
                pairs = [ends[i] if i >= 0 else (nothing, nothing) for i in column]
                low, high = (
                    np.stack(align_units([pair[side] for pair in pairs]), axis=1).ravel()
                    for side in (0, 1)
                )
                columns.append((low, high))
                continue
            cells = _find_cells_in_seconds(plan, column)
            kind: Any = (
                ("datetime64[us]" if cells[0].origin else "timedelta64[us]")
                if cells
                else np.float64
            )
            none = np.full(len(nothing), "NaT", kind) if cells else nothing
            pairs = [ends[i] if i >= 0 else (none, none) for i in column]
            low, high = (
                np.stack([p[side].astype(kind) for p in pairs], axis=1).ravel() for side in (0, 1)
            )
            columns.append((low, high))
        return columns

    def place(self, each: Sequence[Array]) -> list[Array]:
        """Return the columns of the table from the values of each output.

        ``each`` has an array for each output, with a value for each group. Places of the table
        without an output get zeros.
        """
        nothing = np.zeros_like(each[0])
        columns = zip(*self.cells, strict=True)
        return [
            np.stack([each[i] if i >= 0 else nothing for i in c], axis=1).ravel() for c in columns
        ]

    def deviations(self, plan: Plan, raw: Raw) -> Sequence[Array | float] | None:
        """Return the standard deviation of the noise for each cell of the table.

        It is NaN where no output was asked.
        """
        groups = raw[plan.cells[0].part].shape[1]
        # The last one is for where nothing was asked.
        found = [*(_find_deviation(plan, cell) for cell in plan.cells), math.nan]
        return [
            np.tile([found[i] for i in column], groups) for column in zip(*self.cells, strict=True)
        ]

    def locate(self, plan: Plan, row: int, column: int) -> tuple[int, int] | None:
        group, line = divmod(row, len(self.cells))
        output = self.cells[line][column]
        return None if output < 0 else (group, output)

    def show_in_zones(self, plan: Plan, columns: Sequence[Array]) -> list[ShownColumn]:
        """Return the columns with their times in their zone: of objects each one, else the whole."""
        places = list(zip(*self.cells, strict=True))
        mixed = [_is_mixed(plan, place) for place in places]
        if not any(mixed):
            return super(OutputGrid, self).show_in_zones(plan, columns)
        shown: list[ShownColumn] = []
        for column, place, objects in zip(columns, places, mixed, strict=True):
            origins = [plan.cells[i].origin if i >= 0 else "" for i in place]
            zone = max(map(read_zone, origins))
            if objects and zone:
                rows = zip(column, origins * (len(column) // len(place)), strict=True)
                moments = [
                    make_moment(value, origin) if origin else value for value, origin in rows
                ]
                shown.append(np.array([*moments, None], dtype=object)[:-1])
            else:
                shown.append(_show_in_zone(column, zone) if zone else column)
        return shown

    def to_json(self) -> Json:
        return {"cells": self.cells}


@dataclass(frozen=True, slots=True)
class CorrelationTable(AnswerLayout):
    """A table of correlations, from the covariances and variances of one release.

    Groups stand one below the other, and ``cells`` tells where each output stands.
    """

    cells: tuple[tuple[int, ...], ...]
    computed: ClassVar[bool] = True
    noun: ClassVar[str] = "correlation"

    def _squares(self, columns: Sequence[Array]) -> Floats:
        """Return a square for each group, from columns with one below the other."""
        size = len(self.cells)
        return np.array(columns, dtype=float).reshape(size, -1, size).transpose(1, 2, 0)

    def _columns(self, squares: Floats) -> list[Floats]:
        return list(squares.transpose(2, 0, 1).reshape(len(self.cells), -1))

    def values(self, plan: Plan, raw: Raw) -> list[Array]:
        """Return the columns: within -1 and 1, and NaN where a noisy variance is zero."""
        cov = self._squares(OutputGrid(self.cells).values(plan, raw))
        scale = _multiply_deviations(cov)
        some = scale > 0
        found = np.where(some, np.clip(cov / np.where(some, scale, 1.0), -1.0, 1.0), math.nan)
        own = np.arange(len(self.cells))
        found[:, own, own] = np.where(some[:, own, own], 1.0, math.nan)
        return list(self._columns(found))

    def interval(self, plan: Plan, raw: Raw, level: float, about: About = NOISE) -> list[Ends]:
        """Return the ends of the interval of each correlation, column by column.

        ``level`` is their confidence, and ``about`` tells what they cover. They follow from the
        intervals of its covariance and both variances, at a third of the risk each.
        """
        ends = OutputGrid(self.cells).interval(plan, raw, 1 - (1 - level) / 3, about)
        low, high = (self._squares([e[side] for e in ends]) for side in (0, 1))
        small, large = _multiply_deviations(np.maximum(low, 0)), _multiply_deviations(high)
        with np.errstate(divide="ignore", invalid="ignore"):
            lowest = np.where(
                small > 0, np.minimum(low / small, low / large), np.where(low < 0, -1.0, 0.0)
            )
            highest = np.where(
                small > 0, np.maximum(high / small, high / large), np.where(high > 0, 1.0, 0.0)
            )
        own = np.arange(len(self.cells))
        lowest[:, own, own] = highest[:, own, own] = 1.0
        sides = (self._columns(np.clip(side, -1.0, 1.0)) for side in (lowest, highest))
        return list(zip(*sides, strict=True))

    def place(self, each: Sequence[Array]) -> list[Array]:
        return OutputGrid(self.cells).place(each)

    def noise_limits(self, plan: Plan, groups: int) -> list[Limits]:
        return [(0.2, 2.0)] * len(self.cells)

    def to_json(self) -> Json:
        return {"correlations": self.cells}


@dataclass(frozen=True, slots=True)
class PivotTable(AnswerLayout):
    """Groups as rows and columns of a table, for each output, with sums over them as margins.

    A margin is made of the sums of the released integers, as if its groups had been one. So counts
    and sums add up, and a mean is the mean of all its rows. ``normalize`` divides counts by the
    total of ``"all"``, of their row (``"index"``) or of their column (``"columns"``).
    """

    rows: int
    columns: int = 1
    has_total_row: bool = False
    has_total_column: bool = False
    normalize: str | None = None
    computed: ClassVar[bool] = True

    @property
    def joins(self) -> bool:  # type: ignore[override]  # a ClassVar of others
        return self.has_total_row or self.has_total_column or self.normalize is not None

    def _blocks(self, raw: Array) -> tuple[Array, Array]:
        """Return the noisy sums of all cells of the table, margins included.

        With them comes the number of groups that each cell adds up.
        """
        if (
            raw.dtype != object
            and float(np.max(np.abs(raw.astype(float)), initial=0.0)) * raw[0].size >= 2.0**62
        ):
            raw = raw.astype(object)
        body = raw.reshape(len(raw), self.rows, self.columns)
        terms = np.ones((self.rows, self.columns), dtype=np.int64)
        if self.has_total_row:
            body = np.concatenate([body, body.sum(axis=1, keepdims=True)], axis=1)
            terms = np.concatenate([terms, terms.sum(axis=0, keepdims=True)])
        if self.has_total_column:
            body = np.concatenate([body, body.sum(axis=2, keepdims=True)], axis=2)
            terms = np.concatenate([terms, terms.sum(axis=1, keepdims=True)], axis=1)
        return body.reshape(len(raw), -1), terms.ravel()

    @property
    def _width(self) -> int:
        return self.columns + self.has_total_column

    def _split(self, flat: Array) -> list[Array]:
        return [np.ascontiguousarray(column) for column in flat.reshape(-1, self._width).T]

    def _totals(self, counts: Array) -> tuple[Floats, NDArray[np.int64]]:
        """Return the total that each count is divided by, and the number of groups in that
        total."""
        body = counts.reshape(-1, self._width)[: self.rows, : self.columns].astype(float)
        shape = counts.reshape(-1, self._width).shape
        if self.normalize == "all":
            total, terms = np.full(shape, body.sum()), np.full(shape, body.size)
        elif self.normalize == "index":
            sums = [*body.sum(axis=1), body.sum()][: shape[0]]
            total = np.broadcast_to(np.array(sums)[:, None], shape)
            terms = np.full(shape, self.columns)
            terms[self.rows :] = body.size
        else:
            sums = [*body.sum(axis=0), body.sum()][: shape[1]]
            total = np.broadcast_to(np.array(sums), shape)
            terms = np.full(shape, self.rows)
            terms[:, self.columns :] = body.size
        return total.ravel(), terms.ravel()

    def values(self, plan: Plan, raw: Raw) -> list[Array]:
        """Return the columns of the table, output by output: numbers, or shares of a total."""
        found = []
        for cell in plan.cells:
            vectors, _ = self._blocks(raw[cell.part])
            numbers = AGGREGATES[cell.aggregate].value(
                Measured(cell, _get_noise(plan, cell.part), vectors)
            )
            if self.normalize is not None:
                total, _ = self._totals(numbers)
                some = total > 0
                numbers = np.where(
                    some, numbers.astype(float) / np.where(some, total, 1.0), math.nan
                )
            elif cell.duration:
                numbers = show_seconds(numbers, cell)
            elif not cell.whole:
                numbers = numbers.astype(np.float64)
            found += self._split(numbers)
        return found

    def interval(self, plan: Plan, raw: Raw, level: float, about: About = NOISE) -> list[Ends]:
        """Return the ends of the intervals of each column, margins included.

        ``level`` is their confidence, and ``about`` tells what they cover. Where a threshold showed
        the groups, each has the level at which it covers.
        """
        each = find_shown_levels(plan, raw, level)
        if each is not None and self.normalize is None:
            return [enclose_output(plan, raw, i, level) for i in range(len(plan.cells))]
        if each is not None:
            level = float(each.min(initial=level))  # a total has the noise of all
        found = []
        for cell in plan.cells:
            noise = _get_noise(plan, cell.part)
            vectors, terms = self._blocks(raw[cell.part])
            one = AGGREGATES[cell.aggregate]
            low, high = np.empty(len(terms)), np.empty(len(terms))
            if self.normalize is not None:
                counts = one.value(Measured(cell, noise, vectors))
                proportions = (
                    self._population_proportions if about.population else self._proportions
                )
                low, high = proportions(counts, terms, noise, level)
            else:
                for k in np.unique(terms):
                    at = terms == k
                    law: Any = noise if k == 1 else SummedNoise(noise, int(k))
                    ends = one.population if about.population else one.interval
                    low[at], high[at] = ends(Measured(cell, law, vectors[:, at]), level)
            low, high = show_ends(cell, low, high)
            found += list(zip(self._split(low), self._split(high), strict=True))
        return found

    def deviations(self, plan: Plan, raw: Raw) -> Sequence[Array | float] | None:
        """Return the standard deviation of the noise for each cell, margins included.

        The noise of a margin is that of all the cells it adds up. None means that no single number
        describes the noise of a cell.
        """
        if self.normalize is not None or find_shown_levels(plan, raw, LEVEL) is not None:
            return None
        found = []
        for cell in plan.cells:
            _, terms = self._blocks(raw[cell.part])
            found += self._split(_find_deviation(plan, cell) * np.sqrt(terms))
        return found

    def _proportions(
        self, counts: Array, terms: NDArray[np.int64], noise: Noise, level: float
    ) -> Ends:
        """Return the ends of the intervals of proportions, which cover the noise.

        ``terms`` is the number of groups in each count, and ``level`` the confidence. A count is
        part of its total, so its noise is their covariance. A total of itself is exactly 1.
        """
        total, of = self._totals(counts)
        unit, low, high = noise.deviation**2, np.empty(len(terms)), np.empty(len(terms))
        for k, n in {(int(a), int(b)) for a, b in zip(terms, of, strict=True)}:
            at = (terms == k) & (of == n)
            ends = fieller(
                counts[at].astype(float),
                total[at],
                k * unit,
                k * unit,
                n * unit,
                noise.reach(level, n),
            )
            low[at], high[at] = (np.clip(end, 0.0, 1.0) for end in ends)
        return low, high

    def place(self, each: Sequence[Array]) -> list[Array]:
        size = (self.rows + self.has_total_row) * self._width
        return [column for array in each for column in self._split(np.resize(array, size))]

    def locate(self, plan: Plan, row: int, column: int) -> tuple[int, int] | None:
        output, beside = divmod(column, self._width)
        if self.normalize is not None or row >= self.rows or beside >= self.columns:
            return None
        return row * self.columns + beside, output

    def noise_limits(self, plan: Plan, groups: int) -> list[Limits]:
        if self.normalize is None:
            return AnswerLayout.noise_limits(self, plan, groups)
        return [(0.0, 1.0)] * (self._width * len(plan.cells))

    def _population_proportions(
        self, counts: Array, terms: NDArray[np.int64], noise: Noise, level: float
    ) -> Ends:
        """Return the ends of the intervals of proportions in the population.

        ``terms`` is the number of groups in each count, and ``level`` the confidence. A share is
        the mean of draws that count or not. Its own noises are in both of its numbers, and the
        others in the total.
        """
        (total, of), risk = self._totals(counts), 1 - level
        low, high = np.empty(len(terms)), np.empty(len(terms))
        for k, n in {(int(a), int(b)) for a, b in zip(terms, of, strict=True)}:
            at = (terms == k) & (of == n)
            half = noise.reach(1 - risk * sampling.ON_NUMBER, n) * noise.deviation * math.sqrt(n)
            ends = np.maximum(total[at] - half, 0.0), np.maximum(total[at] + half, 0.0)
            noises = np.array([1.0, 0.0]), np.ones(2), np.array([k, n - k], dtype=float)
            draws = sampling.Draws(counts[at].astype(float), total[at], *ends, noise, *noises)
            low[at], high[at] = (
                draws.ends(sampling.find_rate(risk * sampling.REST)) if k < n else (1.0, 1.0)
            )
        return low, high

    def to_json(self) -> Json:
        """Return the layout as a receipt keeps it."""
        return {
            "pivot": [
                self.rows,
                self.columns,
                self.has_total_row,
                self.has_total_column,
                self.normalize,
            ]
        }


@dataclass(frozen=True, slots=True)
class ShareColumn(AnswerLayout):
    """The cells of a table in one column, row after row: proportions within groups."""

    table: PivotTable
    computed: ClassVar[bool] = True
    joins = True

    def values(self, plan: Plan, raw: Raw) -> list[Array]:
        """Return the one column."""
        return [np.stack(self.table.values(plan, raw), axis=1).ravel()]

    def interval(self, plan: Plan, raw: Raw, level: float, about: About = NOISE) -> list[Ends]:
        """Return the ends of each proportion."""
        pairs = self.table.interval(plan, raw, level, about)
        low, high = (np.stack([pair[side] for pair in pairs], axis=1).ravel() for side in (0, 1))
        return [(low, high)]

    def place(self, each: Sequence[Array]) -> list[Array]:
        return [np.stack(self.table.place(each), axis=1).ravel()]

    def noise_limits(self, plan: Plan, groups: int) -> list[Limits]:
        return self.table.noise_limits(plan, groups)[:1]

    def to_json(self) -> Json:
        return {"shares": self.table.to_json()["pivot"]}


def _show_in_zone(moments: Array, zone: str) -> pd.api.extensions.ExtensionArray:
    return pd.DatetimeIndex(moments).tz_localize("UTC").tz_convert(zone).array


def _find_cells_in_seconds(plan: Plan, column: Sequence[int]) -> list[Cell]:
    """Return the outputs in a column of durations or of moments; nothing for other columns."""
    return [plan.cells[i] for i in column if i >= 0 and plan.cells[i].duration]


def _is_mixed(plan: Plan, column: Sequence[int]) -> bool:
    """Return whether some outputs in a column are durations or moments, and others are not."""
    return len({(plan.cells[i].duration, plan.cells[i].origin) for i in column if i >= 0}) > 1


def _multiply_deviations(squares: Floats) -> Floats:
    """Return the products of the deviations in each square with variances on its diagonal."""
    # The root comes first, since the product of two variances may overflow.
    deviations = np.sqrt(np.diagonal(squares, axis1=1, axis2=2))
    return np.asarray(deviations[:, :, None] * deviations[:, None, :])


_SHAPES: dict[str, AnswerLayout] = {
    layout.shape: layout
    for layout in (OutputColumns(), OutputSeries(), OutputRows(), QuantileRows())
}


def read_layout(receipt: Json) -> AnswerLayout:
    """Return the layout of a receipt; raise a KeyError or TypeError for anything else."""
    if "layout" not in receipt:
        return _SHAPES[receipt["shape"]]
    data = receipt["layout"]
    if "cells" in data:
        return OutputGrid(tuple(map(tuple, data["cells"])))
    if "correlations" in data:
        return CorrelationTable(tuple(map(tuple, data["correlations"])))
    if "zeros" in data:
        return RowsWithZeros(tuple(data["zeros"]))
    if "shares" in data:
        return ShareColumn(PivotTable(*data["shares"]))
    return PivotTable(*data["pivot"])


def _find_deviation(plan: Plan, cell: Cell, raw: Raw | None = None) -> Any:
    """Return the standard deviation of the noise in an output, or that of each of its groups.

    Means have one only with the noisy integers ``raw``. It is NaN where it cannot be stated.
    """
    deviation = AGGREGATES[cell.aggregate].deviation(get_noisy_sums(plan, raw, cell))
    return math.nan if deviation is None else deviation


def _get_noise(plan: Plan, part: int) -> Noise:
    return cast(Noise, plan.parts[part].noise)
