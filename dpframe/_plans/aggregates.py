"""The catalogue of aggregates: an entry for each, in `AGGREGATES`.

An aggregate is a number that is asked of each group. Its entry says which vector of integers the
number is read off, what it needs, how the answer follows from the noisy integers, and in which
interval the answer without noise lies. Lists of aggregates in messages, verbs, pages and tests are
computed from the entries. An entry registers itself where its functions are: `counts`, `moments`,
`order` and `choices`, beside this module.

After the release aggregates work on noisy numbers alone, which is post-processing and free. The
intervals are derived in docs/guarantees/intervals.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import mul
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpframe._cells.encoding import SHOWN
from dpframe._expr import Expr
from dpframe._expr._base import Encoded
from dpframe._expr._parse import add_methods_across_rows
from dpframe._groups.keys import By, Keys
from dpframe._groups.unit import Unit
from dpframe._plans import sampling
from dpframe._statistics.base import Reading, Statistic
from dpframe._types import Array
from dpframe._validate import Bounds
from dpframe.mechanisms._base import Noise
from dpframe.mechanisms.noise import COARSE

Floats = NDArray[np.float64]
Interval = tuple[NDArray[Any], NDArray[Any]]

_LARGEST = np.finfo(float).max
# A whole number of 63 bits times this, summed over components, is far below the largest double.
_SMALL = 2.0**900


# Outputs: the numbers that a question asks of each group ------------------------------------------


@dataclass(frozen=True, slots=True)
class Output(Encoded):
    """Number that a question asks of each group: an aggregate of an expression, clipped to public
    bounds.

    In a selection it is one candidate, or stands for all of them.
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
    # How many candidates a selection chooses, one after the other.
    rounds: int = 1
    # The owner's bound on how far one row moves a utility.
    moves: float | None = None
    # The second column of a covariance, with its bounds.
    other: Expr | None = None
    other_bounds: Bounds | None = None
    # The level of a quantile.
    level: Fraction | None = None
    # How far apart the possible answers of a quantile may be.
    resolution: float | None = None
    # True if the number is in seconds, and is shown as a duration or a time.
    duration: bool = False
    # The moment that a time is counted from. Empty for a duration.
    origin: str = ""
    # The keys among which the most common values are chosen. Answers are places on this list.
    keys: Keys | None = field(default=None, compare=False, metadata=SHOWN)
    # A utility as the user wrote it.
    said: str = field(default="", compare=False, metadata=SHOWN)

    @property
    def clipped(self) -> tuple[tuple[Expr, Bounds], ...]:
        """Expressions that the output reads, each with the bounds that it is clipped to."""
        first = () if self.expr is None or self.bounds is None else ((self.expr, self.bounds),)
        if self.other is None or self.other_bounds is None:
            return first
        return *first, (self.other, self.other_bounds)

    def __str__(self) -> str:
        """Return the output as text for plans and messages, such as ``mean(age, bounds=(0,
        110))``."""
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


# The text of a question names at most this number of outputs.
LISTED = 6


class Outputs(Protocol):
    """A question as the planner sees it: outputs of some rows, in groups."""

    @property
    def outputs(self) -> tuple[Output, ...]: ...
    @property
    def by(self) -> tuple[By, ...]: ...
    @property
    def groups(self) -> int: ...


# A release as an aggregate reads it ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """One output of a plan, with what is needed to compute it from the noisy integers.

    ``part`` is the position of the vector that it is read off. ``functionals`` has the weights of
    the integers in each named sum.
    """

    name: Any
    aggregate: str
    part: int
    lower: float
    upper: float
    ddof: int
    # True if answers are whole numbers, whatever the data.
    whole: bool
    functionals: dict[str, tuple[float, ...]]
    constants: dict[str, float]
    # True if the numbers are seconds, and answers are shown as durations or times.
    duration: bool = False
    # The moment that times are counted from. Empty for durations.
    origin: str = ""


# The constant of a chosen output with the position of the vector that counts its surroundings.
AROUND = "around"


def move_cell(cell: Cell, place: Mapping[int, int]) -> Cell:
    """Return a cell whose vectors stand elsewhere. ``place`` has the new position of each."""
    constants = cell.constants
    if AROUND in constants:
        constants = {**constants, AROUND: float(place[int(constants[AROUND])])}
    return replace(cell, part=place[cell.part], constants=constants)


class Noisy(Protocol):
    """A vector of a plan, of which only the noise is needed here."""

    @property
    def noise(self) -> Any: ...


class Surrounded(NamedTuple):
    """The noisy counts around the choices of a release, and their noise."""

    noise: Noise
    raw: NDArray[Any] | None


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Noisy integers of one output, with the noise and the linear sums that the output is computed
    from.

    The covariance of the noise is the same in every group.
    """

    cell: Cell
    noise: Noise
    # The noisy integers. None before the release.
    raw: Array | None = None
    # What was counted around the choices of `raw`. None for an output that is not chosen.
    around: Surrounded | None = None

    def weights(self, combination: dict[str, float]) -> Floats:
        """Return the weight of each noisy integer in a combination of named sums.

        ``combination`` has the weight of each sum by name, such as ``{"n": 1.0}``.
        """
        rows = [w * np.asarray(self.cell.functionals[name]) for name, w in combination.items()]
        weights: Floats = sum(rows[1:], rows[0])
        return weights

    def values(self, combination: dict[str, float]) -> Array:
        """Return a weighted sum of the named noisy sums for each group.

        ``combination`` has the weight of each sum by name, such as ``{"n": 1.0}``. If the result is
        a single integer of the release, it stays an exact integer.
        """
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
            row: Array = self.raw[weights.index(1.0)]  # exact, perhaps beyond 2**53
            return row
        # Rows are added one after the other. A matrix product differs in the last bit between
        # processors, and a recorded answer must be the same wherever it is asked again.
        sums = np.zeros(self.raw.shape[1:])
        if self.raw.dtype != object and max(map(abs, weights)) < _SMALL:
            for weight, row in zip(weights, self.raw, strict=True):
                if weight:
                    sums += weight * row
            if constant:
                sums += constant
            return sums
        with np.errstate(over="ignore"):
            for weight, row in zip(weights, self.raw.astype(float), strict=True):
                sums += weight * row
            sums += constant
        return sums.clip(-_LARGEST, _LARGEST)

    def covariance(self, a: dict[str, float], b: dict[str, float]) -> float:
        """Return the covariance of the noise in two combinations of named sums.

        Each has the weights of the sums by name.
        """
        return math.fsum(map(mul, self.weights(a), self.weights(b))) * self.noise.deviation**2

    @np.errstate(all="ignore")  # warnings of the caller's numpy about tiny numbers
    def half_width(self, combination: dict[str, float], level: float) -> float:
        """Return half the width of the interval that the noise of a combination of named sums
        needs.

        ``combination`` has the weight of each sum by name, and ``level`` is the confidence.
        """
        weights = self.weights(combination)
        used = np.abs(weights[weights != 0])
        if len(used) == 1 or (len(used) and self.noise.deviation < COARSE and np.ptp(used) == 0):
            return float(used[0] * self.noise.quantile(level, len(used)))  # exact for the integers
        return (
            self.noise.reach(level, max(1, len(used))) * self.noise.deviation * math.hypot(*weights)
        )

    def reach(self, level: float) -> float:
        """Return how many standard deviations bound the noise of any combination of sums, with
        probability ``level``."""
        return self.noise.reach(level, max(map(len, self.cell.functionals.values())))


def read_noisy(parts: Sequence[Noisy], raw: Sequence[Any] | None, cell: Cell) -> Measured:
    """Return the noisy integers of an output, with those around it where it was chosen.

    ``parts`` are the vectors of the plan. Before the release there are no integers.
    """

    def take(place: int) -> Any:
        return None if raw is None else raw[place]

    around = cell.constants.get(AROUND)
    counted = None
    if around is not None:
        counted = Surrounded(parts[int(around)].noise, take(int(around)))
    return Measured(cell, parts[cell.part].noise, take(cell.part), counted)


# What outputs are read off ------------------------------------------------------------------------


class Setting(NamedTuple):
    """Facts about a question that decide which integers are released, beside the outputs read off
    them."""

    query: Outputs
    unit: Unit
    # The number of rows, if it is public.
    public_rows: int | None
    # True if the rows of each group are read off the same vector.
    rows: bool = False


@dataclass(frozen=True, slots=True)
class VectorKey:
    """Key of the vector of integers that an output is computed from.

    Outputs with equal keys share one statistic, which gets noise once.
    """

    # Return the integers, with their sensitivity, for the outputs that share them.
    make: Callable[[VectorKey, Sequence[Output], Setting], Statistic]
    # Vectors are released in this order, and within a place in the order of their outputs.
    place: int
    expr: Expr | None = None
    bounds: Bounds | None = None
    # What else tells vectors apart, such as the resolution of a grid.
    detail: Hashable = None


# Entries ------------------------------------------------------------------------------------------


def refuse_interval(m: Measured, level: float) -> Interval:
    """Fail, because a selection has no interval. Its verbs return bare candidates."""
    raise AssertionError("a selection has no interval: its verbs return bare candidates")


def find_no_interval(m: Measured, level: float) -> Interval:
    """Return NaN for both ends in every group."""
    nothing = np.full(0 if m.raw is None else m.raw.shape[-1], np.nan)
    return nothing, nothing


def know_no_error(m: Measured, level: float, n: float | None) -> float | None:
    """Return None, because the error depends on how the values lie."""
    return None


def know_no_scale(cell: Cell, n: float = math.inf) -> tuple[float, float]:
    """Return scales that judge nothing: 0 and infinity."""
    return 0.0, math.inf


def judge_within_bounds(cell: Cell, n: float = math.inf) -> tuple[float, float]:
    """Return the scales that judge a number between the bounds of a column: a part of the width of
    the bounds, and the width.

    The part is a tenth where the number may have either sign. Where it has one sign, zero is an end
    and no middle, so the part is a hundredth.
    """
    width = cell.upper - cell.lower
    return width / (10 if cell.lower < 0 < cell.upper else 100), width


def know_no_deviation(m: Measured) -> float | None:
    """Return None, because no standard deviation of the noise can be stated."""
    return None


def find_no_draws(m: Measured, risk: float) -> sampling.Draws | None:
    """Return None, because the aggregate is not a mean of draws."""
    return None


def imagine_nothing(n: Floats) -> dict[str, Floats]:
    """Return no sums, because `Aggregate.error` tells the width of the interval."""
    return {}


def know_no_ranks(m: Measured, level: float) -> float:
    """Fail, because the error of this aggregate is not known in ranks."""
    raise AssertionError("only an error in ranks is known in advance")


class JudgeScale(Protocol):
    """A function of a cell that returns the scales by which its numbers are judged."""

    def __call__(self, cell: Cell, n: float = math.inf) -> tuple[float, float]: ...


@dataclass(frozen=True, slots=True)
class ScoreChoice:
    """Selection by scores: the whole release is the candidate with the largest score, or
    several."""

    # The scores, in words, such as "count".
    scores: str
    # True if the exponential mechanism may make the choice.
    ranged: bool = False
    # True if several candidates are chosen, in rounds, one after the other.
    several: bool = False
    # True if the scores are numbers of rows.
    of_rows: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aggregate:
    """One entry of `AGGREGATES`.

    ``name`` stands in outputs, records and messages. ``doc`` is one line for the reference.
    Everything after ``interval`` has a default, and most entries give only a few of these fields.
    """

    name: str
    doc: str

    # Return the key of the vector that an output is read off.
    vector: Callable[[Output], VectorKey]
    # Return the answers, one for each group, from the noisy sums.
    value: Callable[[Measured], Array]
    # Return the interval in which the answer without noise lies with this probability.
    interval: Callable[[Measured, float], Interval]

    # Where users meet it.
    # The verbs of frames and groups that release it under their own name.
    verbs: tuple[str, ...] = ()
    # True if `agg` may name it. Others have verbs of their own.
    named_in_agg: bool = False
    # Functions of Python and numpy that name it in `agg`.
    functions: tuple[Callable[..., Any], ...] = ()
    # The method of a pandas column that computes the same of clipped values. Tests compare with it.
    pandas: str = ""
    # The level that the name of an order statistic stands for. Its outputs are of "quantile".
    level: Fraction | None = None

    # What it needs.
    # True if the column needs public bounds.
    needs_bounds: bool = False
    # True if it has a ``ddof``.
    takes_ddof: bool = False
    # True if it is asked of two columns at once.
    of_pairs: bool = False
    # The highest moment of the column that it is made of.
    degree: int = 0
    # True if the release that finds the groups can answer it.
    found_at_once: bool = False

    # What its answers are.
    # The things that it counts: "rows", "people", "values", "distinct values" or "answers".
    # Empty if it does not count.
    counts: str = ""
    # True if answers are whole numbers, whatever the data.
    always_whole: bool = False
    # True if the sum of one person is scaled to a limit, and so is no longer a whole number.
    scales: bool = False
    # True if the answer of durations is a duration, and that of times is a time.
    of_durations: bool = False
    of_times: bool = False
    # The least number that a group can have once a threshold has shown it.
    least_shown: float | None = None

    # What is chosen instead of measured.
    # Set if the whole release is one choice.
    choice: ScoreChoice | None = None
    # True if the answer of each group is a point that is chosen.
    picks: bool = False
    # True if answers are places on a list of keys.
    keyed: bool = False

    # Return the counts around the chosen points. They are released after the choice, for a part of
    # its price, and its interval is read off them.
    surroundings: Callable[[Statistic], Statistic] | None = None
    # Return a number that the values of each group reach with a probability, by these counts.
    least_values: Callable[[Measured, float], Floats] | None = None

    # How it is read off the noisy sums.
    # Adjusts the cell of an output, given its place among the outputs of the statistic.
    adjust: Callable[[Cell, Output, int, Statistic], Cell] | None = None
    # Return the weighted sum of functionals that is the answer, for `measure_sum` and its kin.
    combination: Callable[[Cell], dict[str, float]] | None = None
    # Return a statistic with less noise, for an output that is the only one of its column.
    alone: Callable[[Output, Setting], Statistic | None] | None = None

    # What is known of its error.
    # Return half the width of the interval to expect. None if it depends on how the values lie, or
    # on an unknown number of them.
    error: Callable[[Measured, float, float | None], float | None] = know_no_error
    # A text on the error, if it is in ranks ``r`` and not in values. It holds with probability
    # 0.95.
    rank_error_text: str = ""
    # Return the error in ranks that ``rank_error_text`` quotes.
    ranks: Callable[[Measured, float], float] = know_no_ranks
    # Return the sums of this number of values that lie far apart, close together and in between, a
    # row for each way. A plan tries with them how wide an interval will be.
    imagine_sums: Callable[[Floats], dict[str, Floats]] = imagine_nothing
    # Return the size below which a number is as good as zero, and how far apart the possible
    # answers of ``n`` values are. Noise is judged by both (`_plans.worth`).
    judging_scale: JudgeScale = know_no_scale
    # Return the standard deviation of the noise in the answer, or a bound on it. Of a mean it is
    # that of the first order, one for each group.
    deviation: Callable[[Measured], float | Floats | None] = know_no_deviation
    # True if the noise is relative to the count, as that of a mean. False for counts and totals.
    ratio: bool | None = None

    # What is known of the population that people are drawn from.
    # True if an interval for the population can be had.
    drawn: bool = False
    # Return the interval of the number of the population.
    population: Callable[[Measured, float], Interval] = find_no_interval
    # Return the values that a mean is of. They take a part of the risk.
    draws: Callable[[Measured, float], sampling.Draws | None] = find_no_draws

    # What follows from the fields above.
    # True if the whole release is one choice.
    selects: bool = field(init=False)
    # True if the whole release is a choice by numbers of rows.
    of_rows: bool = field(init=False)
    # True if answers are measured with noise.
    measured: bool = field(init=False)
    # True if it counts rows, people or distinct values. Groups are found by rows or people.
    counts_rows: bool = field(init=False)
    counts_people: bool = field(init=False)
    counts_distinct: bool = field(init=False)

    def __post_init__(self) -> None:
        """Compute the fields that follow from the others, such as whether it selects or counts
        rows."""
        computed = {
            "selects": self.choice is not None,
            "of_rows": self.choice is not None and self.choice.of_rows,
            "measured": self.choice is None and not self.picks,
            "counts_rows": self.counts == "rows",
            "counts_people": self.counts == "people",
            "counts_distinct": self.counts == "distinct values",
        }
        for name, value in computed.items():
            object.__setattr__(self, name, value)

    def cell(
        self, out: Output, part: int, place: int, statistic: Statistic, reading: Reading
    ) -> Cell:
        """Return how an output of this aggregate is computed from the noisy integers of its vector.

        ``part`` is the position of the vector in the plan. ``place`` is that of the output among
        those of the vector. ``reading`` describes the integers of the vector.
        """
        lower, upper = out.bounds or (0.0, 1.0)
        maps, known = reading.functionals, reading.constants
        kinds = out.ddof, self.always_whole, maps, known, out.duration, out.origin
        cell = Cell(out.name, out.aggregate, part, lower, upper, *kinds)
        return cell if self.adjust is None else self.adjust(cell, out, place, statistic)


AGGREGATES: dict[str, Aggregate] = {}

# The first rows of `describe`. Quantiles stand below them.
DESCRIBED = ("count", "mean", "std")


def register(*entries: Aggregate) -> None:
    """Add entries to the catalogue. A name that is there already is an error."""
    for entry in entries:
        if entry.name in AGGREGATES:
            raise AssertionError(f"the aggregate {entry.name!r} is registered twice")
        AGGREGATES[entry.name] = entry
        add_methods_across_rows(entry.name)


def list_agg_names() -> tuple[str, ...]:
    """Return the names of all aggregates that `agg` may be given, in the order of the catalogue."""
    return tuple([name for name, entry in AGGREGATES.items() if entry.named_in_agg])


def find_named_function(value: object) -> str | None:
    """Return the name of the aggregate that a function such as ``np.mean`` stands for in `agg`, or
    None.

    ``value`` is what the user gave to `agg`.
    """
    for name, entry in AGGREGATES.items():
        if any(function is value for function in entry.functions):
            return name
    return None


def list_numpy_names() -> dict[str, str]:
    """Return the aggregates that functions of numpy mean, by the names of these functions."""
    return {
        alias: aggregate.name
        for aggregate in AGGREGATES.values()
        for function in aggregate.functions
        for alias in (function.__name__, f"a{function.__name__}")
        if getattr(np, alias, None) is function
    }


def list_verbs() -> dict[str, Aggregate]:
    """Return the aggregate that each verb of a frame releases, by the name of the verb.

    These are the verbs that measure one column, or choose a quantile of it.
    """
    return {
        verb: entry
        for entry in AGGREGATES.values()
        if entry.measured or entry.level is not None
        for verb in entry.verbs
    }


# Weighted sums of the noisy integers --------------------------------------------------------------


def find_combination(cell: Cell) -> dict[str, float]:
    """Return the weighted sum that is the answer of a linear aggregate, as weights by the names of
    the sums."""
    combination = AGGREGATES[cell.aggregate].combination
    assert combination is not None
    return combination(cell)


def measure_sum(m: Measured) -> Array:
    """Return the noisy answer of each group for an aggregate that is a weighted sum, such as a
    count.

    ``m`` has the noisy integers. Answers are integers if the aggregate is a whole number.
    """
    values = m.values(find_combination(m.cell))
    if m.cell.whole and values.dtype.kind == "f":
        return np.asarray(np.rint(values).astype(np.int64))
    return values


def enclose_sum(m: Measured, level: float) -> Interval:
    """Return the interval of each group for an aggregate that is a weighted sum, such as a count.

    ``m`` has the noisy integers, and ``level`` is the confidence. The result has the lower and the
    upper ends, which are whole numbers if the answer is.
    """
    combination = find_combination(m.cell)
    values = m.values(combination)
    half = m.half_width(combination, level)
    with np.errstate(over="ignore"):
        low, high = values - half, values + half
    if not m.cell.whole:
        return low, high
    # Between ends without a whole number the nearest one stands for both.
    near, one, two = (end.astype(float) for end in (values, low, high))
    near, one, two = np.rint(near), np.ceil(one - 1e-6), np.floor(two + 1e-6)
    return np.minimum(one, near), np.maximum(two, near)


def expect_sum_error(m: Measured, level: float, n: float | None) -> float | None:
    """Return half the width of the interval to expect for an aggregate that is a weighted sum.

    It does not depend on the number of values ``n``.
    """
    return m.half_width(find_combination(m.cell), level)


def find_sum_deviation(m: Measured) -> float | None:
    """Return the standard deviation of the noise in the weighted sum."""
    combination = find_combination(m.cell)
    return math.sqrt(m.covariance(combination, combination))


# Ratios of noisy sums -----------------------------------------------------------------------------


def fieller(
    top: Floats,
    n: Floats,
    v_top: float | Floats,
    cov: float | Floats,
    v_n: float | Floats,
    reach: float,
) -> tuple[Floats, Floats]:
    """Return the interval of a ratio of two noisy numbers, by Fieller's method.

    ``top`` and ``n`` are the noisy numerator and denominator of each group. ``v_top`` and ``v_n``
    are the variances of their noise, and ``cov`` is its covariance. ``reach`` is how many
    deviations are allowed. The ends are those of the r with (top - r n)**2 <= reach**2 (v_top - 2 r
    cov + r**2 v_n).

    At the true ratio the left side is noise alone, with just the variance on the right (Fieller
    1954). The ends are infinite where n may be zero.
    """
    a = n * n - reach**2 * v_n
    b = top * n - reach**2 * cov
    c = top * top - reach**2 * v_top
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        root = np.sqrt(np.maximum(b * b - a * c, 0))
        low, high = (b - root) / a, (b + root) / a
    certain = (a > 0) & (n > 0) & np.isfinite(low) & np.isfinite(high)
    return np.where(certain, low, -np.inf), np.where(certain, high, np.inf)


def ratio(top: Floats, n: Floats, empty: float) -> Floats:
    """Return the ratio of two noisy sums within [0, 1], and ``empty`` where the noisy count ``n``
    is not positive."""
    positive = n > 0
    whole = np.count_nonzero(positive) == positive.size
    shares = top / n if whole else np.where(positive, top / np.where(positive, n, 1.0), empty)
    return shares.clip(0.0, 1.0)


def within(low: Floats, high: Floats, limit: float | Floats) -> tuple[Floats, Floats]:
    """Return an interval cut to [0, limit], or all of [0, limit] where the two do not meet."""
    missed = (low > limit) | (high < 0)
    low, high = np.where(missed, 0.0, low), np.where(missed, limit, high)
    return np.clip(low, 0.0, limit), np.clip(high, 0.0, limit)


def is_too_wide(bounds: Bounds, degree: int) -> bool:
    """Return whether powers of values between these bounds may be too large for doubles."""
    return bounds.upper - bounds.lower > 2.0 ** (1000 // degree)


def powers(degree: int) -> str:
    """Return the name of the powers of this degree."""
    return {2: "squares", 3: "cubes"}.get(degree, f"powers of degree {degree}")
