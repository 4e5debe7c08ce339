"""Outputs and aggregates: a number asked of each group, the vector of integers it is read off, its
finish and its interval.

Each kind of aggregate enters itself in `AGGREGATES` by name, where it is defined, beside the
vectors it is read off: counts, sums and means here, choices and bins in `choices`, moments in
`moments`, order statistics in `order`. After the release they work on noisy numbers alone, which is
post-processing and free. The intervals are derived in docs/guarantees/intervals.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import mul
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpframe._cells.encoding import SHOWN
from dpframe._errors import BadValue
from dpframe._expr import Expr
from dpframe._expr._base import Encoded
from dpframe._groups.keys import By, Keys
from dpframe._groups.unit import Unit
from dpframe._plans import sampling
from dpframe._statistics.base import (
    MAGNITUDE_BITS,
    VALUE_BITS,
    Centred,
    Grid,
    Reading,
    Simplex,
    Statistic,
    Total,
)
from dpframe._statistics.counts import RowCount, ValueCount
from dpframe._validate import Bounds
from dpframe.mechanisms._base import Noise
from dpframe.mechanisms.noise import COARSE

Floats = NDArray[np.float64]
Interval = tuple[NDArray[Any], NDArray[Any]]

_LARGEST = np.finfo(float).max
_SMALL = (
    2.0**900
)  # times a whole number of 63 bits, and summed over components, it is far from that


# Outputs: the numbers that a question asks of each group --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Output(Encoded):
    """One number a group: an aggregate of an expression, with the public bounds it is clipped to.

    In a selection it is one candidate, or all of them; ``rounds`` is the number to choose, and
    ``moves`` the owner's bound on how far one row moves a utility.
    """

    identity: ClassVar[tuple[str, ...]] = (
        "output",
        "name",
        "aggregate",
        "expr",
        "bounds",
        "ddof",
        "rounds",
        "moves",
        "other",
        "other_bounds",
        "level",
        "resolution",
        "duration",
        "origin",
    )

    name: Hashable
    aggregate: str
    expr: Expr | None = None
    bounds: Bounds | None = None
    ddof: int = 1
    rounds: int = 1
    moves: float | None = None
    other: Expr | None = None  # the second column of a covariance
    other_bounds: Bounds | None = None
    level: Fraction | None = None  # of a quantile
    resolution: float | None = None  # of a quantile: how far apart its possible answers may be
    duration: bool = False  # whether it is a number of seconds, to be shown as a duration,
    origin: str = ""  # or as the moment so long after this one
    # Of what most rows of a group have: the values, whose places on this list are answered.
    keys: Keys | None = field(default=None, compare=False, metadata=SHOWN)
    said: str = field(default="", compare=False, metadata=SHOWN)  # of a utility: how it was written

    @property
    def clipped(self) -> tuple[tuple[Expr, Bounds], ...]:
        """The expressions that it reads, each with the bounds it is clipped to."""
        first = () if self.expr is None or self.bounds is None else ((self.expr, self.bounds),)
        if self.other is None or self.other_bounds is None:
            return first
        return *first, (self.other, self.other_bounds)

    def __str__(self) -> str:
        if self.other is not None:
            columns = [f"{e}, bounds=({b.lower:g}, {b.upper:g})" for e, b in self.clipped]
            return f"{self.aggregate}({'; '.join(columns)})"
        inner = str(self.expr) if self.expr is not None else ""
        clip = f", bounds=({self.bounds.lower:g}, {self.bounds.upper:g})" if self.bounds else ""
        if self.level is not None:
            inner += f", {float(self.level):.6g}"
        verb = {"tree": "quantile", "most": "argmax" if self.rounds == 1 else "top"}.get(
            self.aggregate, self.aggregate
        )
        if self.keys is not None and self.expr is not None:
            inner, clip = f"{self.expr.children[0]} over {len(self.keys)} keys", ""
        rounds = f"{', ' * bool(inner)}{self.rounds}" if self.rounds != 1 else ""
        return f"{verb}({inner}{clip}{rounds})"


LISTED = 6  # outputs that a question's text names; of more it says so


class Outputs(Protocol):
    """A question as the planner sees it: outputs of some rows, in groups."""

    @property
    def outputs(self) -> tuple[Output, ...]: ...
    @property
    def by(self) -> tuple[By, ...]: ...
    @property
    def groups(self) -> int: ...


# A release as an aggregate reads it -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """One output in a plan: the part that it reads, and the linear maps and public numbers by which
    it reads it."""

    name: Any
    aggregate: str
    part: int
    lower: float
    upper: float
    ddof: int
    whole: bool  # answers are whole numbers, whatever the data
    functionals: dict[str, tuple[float, ...]]
    constants: dict[str, float]
    duration: bool = False  # numbers are seconds, and answers durations,
    origin: str = ""  # or the moments so long after this one


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Noisy linear sums of one output, with the covariance of their noise (the same for every
    group)."""

    cell: Cell
    noise: Noise
    raw: NDArray[Any] | None = None  # the integers, once they are released

    def weights(self, combination: dict[str, float]) -> Floats:
        """The weight of each component in a weighted sum of functionals."""
        rows = [w * np.asarray(self.cell.functionals[name]) for name, w in combination.items()]
        weights: Floats = sum(rows[1:], rows[0])
        return weights

    def values(self, combination: dict[str, float]) -> NDArray[Any]:
        """A weighted sum of functionals for each group; the integers of one component themselves
        where the sum is just that."""
        assert self.raw is not None
        constants = self.cell.constants
        constant = (
            sum(w * constants.get(name, 0.0) for name, w in combination.items())
            if constants
            else 0.0
        )
        (name, factor), *other_names = combination.items()
        alone = not other_names and factor == 1
        weights: Any = self.cell.functionals[name] if alone else self.weights(combination).tolist()
        if constant == 0 and max(weights) == 1 and weights.count(0.0) == len(weights) - 1:
            row: NDArray[Any] = self.raw[weights.index(1.0)]  # exact, perhaps beyond 2**53
            return row
        # Added one after the other: a product of matrices ends in another bit on another processor,
        # and an answer that is on record is the same wherever it is asked again.
        rows, sums = self.raw.astype(float), np.zeros(self.raw.shape[1:])
        with np.errstate(over="ignore"):
            for weight, row in zip(weights, rows, strict=True):
                sums += weight * row
            sums += constant
        # As most are: nothing overflows.
        if self.raw.dtype != object and max(map(abs, weights)) < _SMALL:
            return sums
        return sums.clip(-_LARGEST, _LARGEST)

    def covariance(self, a: dict[str, float], b: dict[str, float]) -> float:
        return math.fsum(map(mul, self.weights(a), self.weights(b))) * self.noise.deviation**2

    @np.errstate(all="ignore")  # whatever the caller's numpy does with tiny numbers
    def half_width(self, combination: dict[str, float], level: float) -> float:
        weights = self.weights(combination)
        used = np.abs(weights[weights != 0])
        if len(used) == 1 or (len(used) and self.noise.deviation < COARSE and np.ptp(used) == 0):
            return float(used[0] * self.noise.quantile(level, len(used)))  # exact for the integers
        return (
            self.noise.reach(level, max(1, len(used))) * self.noise.deviation * math.hypot(*weights)
        )

    def reach(self, level: float) -> float:
        """Deviations within which any weighted sum of these stays with probability ``level``."""
        return self.noise.reach(level, max(map(len, self.cell.functionals.values())))


def fieller(
    top: Floats,
    n: Floats,
    v_top: float | Floats,
    cov: float | Floats,
    v_n: float | Floats,
    reach: float,
) -> tuple[Floats, Floats]:
    """All r with (top - r n)**2 <= reach**2 (v_top - 2 r cov + r**2 v_n); everything where n may be
    zero.

    At the true ratio the left side is noise alone, with just the variance on the right (Fieller
    1954).
    """
    a = n * n - reach**2 * v_n
    b = top * n - reach**2 * cov
    c = top * top - reach**2 * v_top
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        root = np.sqrt(np.maximum(b * b - a * c, 0))
        low, high = (b - root) / a, (b + root) / a
    certain = (a > 0) & (n > 0) & np.isfinite(low) & np.isfinite(high)
    return np.where(certain, low, -np.inf), np.where(certain, high, np.inf)


# Aggregates ------------------------------------------------------------------------------------------------------------


class Setting(NamedTuple):
    """The facts that decide the form of a vector, beside the outputs that are read off it."""

    query: Outputs
    unit: Unit
    public_rows: int | None  # the number of rows, where it is public
    rows: bool = False  # whether the rows of each group are read off the same vector


class Vector(ABC):
    """A key of outputs that are read off the same integers: outputs with equal keys share one
    statistic, noised once."""

    __slots__ = ()
    place: ClassVar[int]  # vectors are released in this order, and by first mention within a place

    @abstractmethod
    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        """The integers, with their sensitivity, for the outputs that share them."""


class Aggregate(ABC):
    """An entry of `AGGREGATES`: what an aggregate needs, and how it finishes."""

    degree: ClassVar[int] = 0  # the highest moment it is made of
    needs_bounds: ClassVar[bool] = False  # public ones, of the column
    takes_ddof: ClassVar[bool] = False
    named_in_agg: ClassVar[bool] = False  # others are verbs of their own
    found_at_once: ClassVar[bool] = False  # whether the release that finds the groups may answer it
    counts_rows: ClassVar[bool] = False  # whether it is how many rows a group has,
    counts_people: ClassVar[bool] = False  # or how many people: groups are found by either
    counts: ClassVar[bool] = (
        False  # or a number of anything that is there, which is larger in groups that were found
    )
    counts_distinct: ClassVar[bool] = (
        False  # whether it is how many values, or people, a column names
    )
    drawn: ClassVar[bool] = False  # whether the interval of a population is known, too
    least_shown: ClassVar[float | None] = (
        None  # the least it can be of a group that a threshold has shown
    )
    selects: ClassVar[bool] = False  # whether the whole release is one choice
    subject: str = ""  # of the largest of these scores,
    ranged: bool = False  # which the exponential mechanism may make,
    several: bool = False  # or of several places, in rounds, one after the other
    of_rows: bool = False  # and whether these scores are numbers of rows
    picks: ClassVar[bool] = False  # whether it is chosen among points instead of measured
    keyed: ClassVar[bool] = False  # whether answers are places on a list of keys
    ratio: ClassVar[bool | None] = (
        None  # whether its noise is a part of its count; False: that of a total
    )
    always_whole: ClassVar[bool] = False  # whether answers are whole numbers, whatever the data
    scales: ClassVar[bool] = (
        False  # whether what a person adds is scaled to a limit, and so no whole number
    )
    of_durations: ClassVar[bool] = False  # whether that of durations is a duration,
    of_times: ClassVar[bool] = False  # and that of times a time
    promise: ClassVar[str] = (
        ""  # what holds with probability 0.95, where the error is not the answer's own
    )

    @abstractmethod
    def vector_of(self, out: Output) -> Vector:
        """The key of the vector that the output is read off."""

    def alone(self, out: Output, setting: Setting) -> Statistic | None:
        """A statistic with less noise than the shared one, for an output that is the only one of
        its column; None without one."""
        return None

    def cell(
        self, out: Output, part: int, place: int, statistic: Statistic, reading: Reading
    ) -> Cell:
        """The cell of an output, the ``place``-th that the statistic serves: its linear maps and
        public numbers, its 0 and 1 in data units, and whether its answers are whole numbers
        whatever the data."""
        lower, upper = out.bounds or (0.0, 1.0)
        maps, known = reading.functionals, reading.constants
        kinds = out.ddof, self.always_whole, maps, known, out.duration, out.origin
        return Cell(out.name, out.aggregate, part, lower, upper, *kinds)

    @abstractmethod
    def value(self, m: Measured) -> NDArray[Any]:
        """The answers, one a group."""

    @abstractmethod
    def interval(self, m: Measured, level: float) -> Interval:
        """The interval in which the answer without noise lies with probability ``level``."""

    def population(self, m: Measured, level: float) -> Interval:
        """The interval in which the number of the population lies that people are drawn from; of
        most kinds NaN."""
        nothing = np.full(0 if m.raw is None else m.raw.shape[-1], np.nan)
        return nothing, nothing

    def draws(self, m: Measured, risk: float) -> sampling.Draws | None:
        """The values that a mean is of; a part of the ``risk`` is spent on them. None of other
        kinds."""
        return None

    @abstractmethod
    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        """Half the width of the interval to expect; None where it depends on an unknown number of
        values, or on how they lie."""

    def imagined(self, n: Floats) -> dict[str, Floats]:
        """The sums of so many values that lie far apart, close together and in between, a row for
        each way to lie: with these a plan tries how wide an interval will be. None where `error`
        tells."""
        return {}

    def yard(self, cell: Cell, n: float = math.inf) -> tuple[float, float]:
        """What a number is judged by beside itself: a size below which it is as good as zero, and
        how far apart the possible answers of ``n`` values at most are (`_plans.worth`)."""
        return 0.0, math.inf

    def deviation(self, m: Measured) -> float | None:
        """The standard deviation of the noise in the answer, or a bound on it; None where none can
        be stated."""
        return None

    def ranks(self, m: Measured, level: float = 0.95) -> float:
        """The error in ranks that `promise` quotes, for an entry with noise."""
        raise AssertionError("only an error in ranks is known in advance")


AGGREGATES: dict[str, Aggregate] = {}  # by name, each entered where it is defined


def aggregation(*names: str) -> Callable[[type[Any]], type[Any]]:
    """A decorator for a kind of aggregate that enters an instance of it under these names."""

    def entered(kind: type[Any]) -> type[Any]:
        AGGREGATES.update(dict.fromkeys(names, kind()))
        return kind

    return entered


def named_in_agg() -> tuple[str, ...]:
    """The measured aggregates that `agg` may name."""
    return tuple(name for name, aggregate in AGGREGATES.items() if aggregate.named_in_agg)


DESCRIBED = ("count", "mean", "std")  # the first rows of `describe`; below them stand quantiles


def too_wide(bounds: Bounds, degree: int) -> bool:
    """Whether powers of values between these bounds may be no doubles, where the degree is above
    1."""
    return bounds.upper - bounds.lower > 2.0 ** (1000 // degree)


def powers(degree: int) -> str:
    """The name of the powers of this degree."""
    return {2: "squares", 3: "cubes"}.get(degree, f"powers of degree {degree}")


# Vectors that outputs share --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfColumn(Vector):
    """The values of a column, with the moments that its outputs need; without bounds its count
    alone."""

    place = 1

    expr: Expr
    bounds: Bounds | None = None

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
        if degree > 1 and too_wide(self.bounds, degree):
            raise BadValue(
                f"the bounds of {self.expr} are too wide for {powers(degree)} to be doubles. Rescale the column."
            )
        return Simplex(self.expr, Grid.for_width(self.bounds, VALUE_BITS, degree), degree, nulls)


@dataclass(frozen=True, slots=True)
class OfRows(Vector):
    """The rows of each group."""

    place = 2

    def statistic(self, outputs: Sequence[Output], setting: Setting) -> Statistic:
        return RowCount()


def are_whole(expr: Expr, bounds: Bounds) -> bool:
    """Whether sums are whole numbers by dtype and bounds alone, and few enough bits to be answered
    as such."""
    small = max(abs(bounds.lower), abs(bounds.upper)) < 2**MAGNITUDE_BITS
    return expr.integral and small and bounds.lower.is_integer() and bounds.upper.is_integer()


# Counts, sums and means ------------------------------------------------------------------------------------------------


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
        values = m.values(self.combination(m.cell))
        half = m.half_width(self.combination(m.cell), level)
        with np.errstate(over="ignore"):
            low, high = values - half, values + half
        # An answer that is whole without noise may have whole ends; where no whole number is in
        # between, the nearest one.
        near, one, two = (end.astype(float) for end in (values, low, high))
        near, one, two = np.rint(near), np.ceil(one - 1e-6), np.floor(two + 1e-6)
        return (np.minimum(one, near), np.maximum(two, near)) if m.cell.whole else (low, high)

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return m.half_width(self.combination(m.cell), level)

    def deviation(self, m: Measured) -> float | None:
        combination = self.combination(m.cell)
        return math.sqrt(m.covariance(combination, combination))


class Counted(_Linear):
    """A number of rows, values or people."""

    ratio = False
    always_whole = drawn = counts = True

    def cell(
        self, out: Output, part: int, place: int, statistic: Statistic, reading: Reading
    ) -> Cell:
        cell = super().cell(out, part, place, statistic, reading)
        if getattr(statistic, "expr", out.expr) == out.expr:
            return cell
        # Rows read off another column's vector: its own count would leave out that column's nulls.
        return replace(
            cell, functionals={"size": cell.functionals.get("size", cell.functionals["n"])}
        )

    def combination(self, cell: Cell) -> dict[str, float]:
        return {"size" if "size" in cell.functionals else "n": 1.0}

    def yard(self, cell: Cell, n: float = math.inf) -> tuple[float, float]:
        return 0.0, 2 * n  # noise as large as all of them

    def population(self, m: Measured, level: float) -> Interval:
        """The interval of the number to expect in a table that is drawn alike."""
        return sampling.expected_within(lambda each: self.interval(m, each), level)


@aggregation("size")
class Size(Counted):
    named_in_agg = True
    counts_rows = True
    found_at_once = True
    least_shown = 1.0  # nobody's key is never shown

    def vector_of(self, out: Output) -> Vector:
        return OfRows()


@aggregation("count")
class Count(Counted):
    named_in_agg = True
    found_at_once = True
    least_shown = 0.0

    def vector_of(self, out: Output) -> Vector:
        return OfRows() if out.expr is None else OfColumn(out.expr)

    def combination(self, cell: Cell) -> dict[str, float]:
        return {"n" if "n" in cell.functionals else "size": 1.0}


@aggregation("sum")
class Sum(_Linear):
    ratio = False
    degree = 1
    scales = True
    of_durations = True
    needs_bounds = True
    named_in_agg = True
    found_at_once = True

    def vector_of(self, out: Output) -> Vector:
        return OfColumn(*out.clipped[0])

    def alone(self, out: Output, setting: Setting) -> Statistic:
        expr, bounds = out.clipped[0]
        always = setting.public_rows is not None and not expr.nullable
        # On whole numbers alone the scaled total of a person would be rounded by half a unit: 3 of
        # 10 to none.
        whole = are_whole(expr, bounds) and not setting.unit.people
        return Total(expr, Grid.for_magnitude(bounds, MAGNITUDE_BITS, whole), always)

    def cell(
        self, out: Output, part: int, place: int, statistic: Statistic, reading: Reading
    ) -> Cell:
        return replace(
            super().cell(out, part, place, statistic, reading), whole=are_whole(*out.clipped[0])
        )

    def combination(self, cell: Cell) -> dict[str, float]:
        if "total" in cell.functionals:
            return {"total": 1.0}
        return {"n": cell.lower, "t1": cell.upper - cell.lower}

    def yard(self, cell: Cell, n: float = math.inf) -> tuple[float, float]:
        largest = max(abs(cell.lower), abs(cell.upper))
        return 0.0, 2 * n * largest if largest else math.inf  # noise as large as the largest total


N, T1 = {"n": 1.0}, {"t1": 1.0}


def _stretch(cell: Cell, t: Floats) -> Floats:
    """Numbers of the scale where the bounds are 0 and 1, in data units: without overflow, and
    within the bounds."""
    return (cell.lower * (1 - t) + cell.upper * t).clip(cell.lower, cell.upper)


@aggregation("mean")
class Mean(Aggregate):
    ratio = True
    degree = 1
    of_durations = True
    of_times = True
    drawn = True
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
        return bottom, np.maximum(
            bottom, _stretch(m.cell, high)
        )  # bounds may be a few doubles apart

    def unit_interval(self, m: Measured, level: float) -> tuple[Floats, Floats]:
        n, t1 = m.values(N).astype(float), m.values(T1).astype(float)
        moments = m.covariance(T1, T1), m.covariance(T1, N), m.covariance(N, N)
        return within(*fieller(t1, n, *moments, m.reach(level)), limit=1.0)

    def draws(self, m: Measured, risk: float) -> sampling.Draws:
        return sampling.draws_of(m, risk)

    def population(self, m: Measured, level: float) -> Interval:
        low, high = sampling.draws_of(m, 1 - level).ends(
            sampling.rate_of((1 - level) * sampling.REST)
        )
        return _stretch(m.cell, low), _stretch(m.cell, high)

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        if n is None and "n" in m.cell.constants:
            n = m.cell.constants["n"]
        if n is None:
            return None
        width = m.cell.upper - m.cell.lower
        worst = max(m.covariance(c, c) for c in ({"t1": 1.0, "n": -t} for t in (0.0, 0.5, 1.0)))
        return min(width, width * m.reach(level) * math.sqrt(worst) / max(n, 1e-300))

    def yard(self, cell: Cell, n: float = math.inf) -> tuple[float, float]:
        return (cell.upper - cell.lower) / 10, cell.upper - cell.lower


def ratio(top: Floats, n: Floats, empty: float) -> Floats:
    """top / n within [0, 1]; ``empty`` where the noisy count leaves nothing to divide by."""
    positive = n > 0
    whole = np.count_nonzero(positive) == positive.size
    shares = top / n if whole else np.where(positive, top / np.where(positive, n, 1.0), empty)
    return shares.clip(0.0, 1.0)


def within(low: Floats, high: Floats, limit: float | Floats) -> tuple[Floats, Floats]:
    """The part of the interval that is possible; all that is possible where they do not meet."""
    missed = (low > limit) | (high < 0)
    low, high = np.where(missed, 0.0, low), np.where(missed, limit, high)
    return np.clip(low, 0.0, limit), np.clip(high, 0.0, limit)
