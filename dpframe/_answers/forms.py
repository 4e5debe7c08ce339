"""Intervals of calculations from the noises behind them: sums, ratios, and the first order.

*Formal guarantee.* With probability ``level`` or more an interval holds what the calculation comes
to without noise. Numbers that share a noise share it here too, so it cancels where they are
subtracted (docs/guarantees/intervals.md#sums-and-windows-of-answers).

- *A weighted sum* of noisy integers is off by the same weighted sum of independent noises.
- *A ratio* of two such sums has the interval of Fieller.
- *Anything else* is off by its gradient at the truth times the noises, and by a rest. The gradient
  is not random, so the first part is a weighted sum of noises again. The rest has products of two
  errors. A part of the risk bounds these errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from dpframe._answers.noises import KnownLaw, LeafForm, Matrix, NoiseTable, WeightedSum, bound_sums
from dpframe._answers.rowsteps import RowStep, pick
from dpframe._plans.aggregates import fieller
from dpframe._types import Array, Ends, Floats

if TYPE_CHECKING:
    from dpframe._answers.arithmetic import Calculation, Leaf

# The part of the risk that bounds products of two errors, where a calculation has some.
ON_REST = 0.1
# Gradients with more entries than this are not computed, and products of more rows.
LARGEST_GRADIENT = 2**23
LONGEST_PRODUCT = 1000

SUM = "a weighted sum of independent noises"
RATIO = "a ratio of weighted sums of noises, by Fieller's method"
PARTS = "the union bound: each released number has its part of the risk"
ORDER = "the first order of the noises, with a bound on the rest"


class Unfit(Exception):
    """A calculation that cannot be followed to its noises, or has too many of them."""


class NoiseInterval(NamedTuple):
    """The ends of intervals, the rule they follow, and the deviation if it can be stated."""

    low: Floats
    high: Floats
    rule: str
    deviation: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ErrorForm:
    """A column of numbers, and how each is off from its true value.

    The error is the gradient at the truth times the noises, and a rest of at most ``rest``. The
    gradient is within ``radius`` of ``centre``. ``value`` is made of the released numbers. If it is
    a weighted sum of noisy integers, that is ``top``; a ratio has a ``bottom`` too.
    """

    value: Floats
    centre: Matrix
    radius: Matrix
    rest: Floats
    top: WeightedSum | None = None
    bottom: WeightedSum | None = None

    @property
    def linear(self) -> bool:
        """Whether it is a weighted sum of noises."""
        return self.top is not None and self.bottom is None

    @property
    def known(self) -> bool:
        """Whether there is no noise in it."""
        return self.linear and not self.centre.nnz

    def take(self, step: RowStep) -> ErrorForm:
        """Return the new rows of a pick."""
        matrix = step.as_matrix()

        def move(one: WeightedSum | None) -> WeightedSum | None:
            if one is None:
                return None
            return WeightedSum(np.asarray(step.on_values(one.values), float), matrix @ one.weights)

        value, rest = (np.asarray(step.on_values(one), float) for one in (self.value, self.rest))
        rest = np.where(np.isnan(rest), 0.0, rest)
        return ErrorForm(
            value,
            matrix @ self.centre,
            matrix @ self.radius,
            rest,
            move(self.top),
            move(self.bottom),
        )


def _match_sizes(one: ErrorForm, two: ErrorForm) -> tuple[ErrorForm, ErrorForm]:
    """Return two columns with as many rows; a single number stands in each row."""
    sizes = len(one.value), len(two.value)
    if sizes[0] == sizes[1]:
        return one, two
    rows = np.zeros(max(sizes), dtype=np.intp)
    return (
        one.take(pick(rows, 1)) if sizes[0] == 1 else one,
        two.take(pick(rows, 1)) if sizes[1] == 1 else two,
    )


def _scale_rows(factors: Array, matrix: Matrix) -> Matrix:
    """Return a matrix with each row multiplied by its factor."""
    if not matrix.nnz:
        return matrix
    each = np.repeat(np.where(np.isnan(factors), np.inf, factors), np.diff(matrix.indptr))
    data = np.where(each == 0, 0.0, matrix.data * each)
    made = sparse.csr_array((data, matrix.indices.copy(), matrix.indptr.copy()), matrix.shape)
    if not data.all():  # rows times 0 have no entries
        made.eliminate_zeros()
    return made


def _scale_sum(one: WeightedSum, factors: Floats) -> WeightedSum:
    return WeightedSum(one.values * factors, _scale_rows(factors, one.weights))


def _add_sums(one: WeightedSum, two: WeightedSum, sign: float) -> WeightedSum:
    return WeightedSum(one.values + sign * two.values, one.weights + sign * two.weights)


def _scale_gradient(form: ErrorForm, middle: Floats, half: Floats) -> tuple[Matrix, Matrix]:
    """Return the gradient of a column times a factor within ``half`` of ``middle``."""
    centre = _scale_rows(middle, form.centre)
    radius = _scale_rows(np.abs(middle), form.radius)
    if half.any():
        radius = radius + _scale_rows(half, abs(form.centre) + form.radius)
    return centre, radius


# Steps ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """The steps of a calculation on forms. ``bound`` bounds the errors of a form."""

    bound: Callable[[ErrorForm], Floats]

    def __getitem__(self, name: str) -> Callable[..., ErrorForm]:
        """Return the step with the name that calculations have for it."""
        steps: dict[str, Callable[..., ErrorForm]] = {
            "+": self.add,
            "-": lambda one, two: self.add(one, two, -1.0),
            "*": self.multiply,
            "/": self.divide,
            "negative": lambda one: self.multiply(one, _make_constant(-1.0, one)),
            "absolute": self.make_absolute,
        }
        return steps[name]

    def add(self, one: ErrorForm, two: ErrorForm, sign: float = 1.0) -> ErrorForm:
        """Return the sum of two columns, or with ``sign`` -1 their difference."""
        one, two = _match_sizes(one, two)
        top, bottom = None, None
        if one.top is not None and two.top is not None:
            if one.bottom is two.bottom:
                top, bottom = _add_sums(one.top, two.top, sign), one.bottom
            elif one.bottom is not None and two.known:
                top = _add_sums(one.top, _scale_sum(one.bottom, two.value), sign)
                bottom = one.bottom
            elif two.bottom is not None and one.known:
                top = _add_sums(_scale_sum(two.bottom, one.value), two.top, sign)
                bottom = two.bottom
        return ErrorForm(
            one.value + sign * two.value,
            one.centre + sign * two.centre,
            one.radius + two.radius,
            one.rest + two.rest,
            top,
            bottom,
        )

    def multiply(self, one: ErrorForm, two: ErrorForm) -> ErrorForm:
        """Return the product of two columns.

        With errors d and e, the product of f + d and g + e is off by g d + f e, and by d e.
        """
        one, two = _match_sizes(one, two)
        for known, other in ((two, one), (one, two)):
            if known.known:
                factor = known.value
                top = None if other.top is None else _scale_sum(other.top, factor)
                gradient = _scale_gradient(other, factor, np.zeros_like(factor))
                value, rest = other.value * factor, _multiply_sizes(np.abs(factor), other.rest)
                return ErrorForm(value, *gradient, rest, top, other.bottom)
        errors = self.bound(one), self.bound(two)
        first = _scale_gradient(one, two.value, errors[1])
        second = _scale_gradient(two, one.value, errors[0])
        rest = (
            _multiply_sizes(*errors)
            + _multiply_sizes(np.abs(one.value) + errors[0], two.rest)
            + _multiply_sizes(np.abs(two.value) + errors[1], one.rest)
        )
        return ErrorForm(one.value * two.value, first[0] + second[0], first[1] + second[1], rest)

    def divide(self, one: ErrorForm, two: ErrorForm) -> ErrorForm:
        """Return the quotient of two columns; its error has no bound where the divisor may be 0.

        Let d and e be the errors of f and g. The quotient q = f/g is off by (d - q e)/(g + e). That
        is (d - q e)/g less its product with e/(g + e).
        """
        one, two = _match_sizes(one, two)
        if two.known:
            return self.multiply(one, _make_constant(1 / two.value, two))
        top, bottom = None, None
        if one.top is not None and two.top is not None:
            if one.bottom is two.bottom:
                top, bottom = one.top, two.top
            elif one.known and two.bottom is not None:
                top, bottom = _scale_sum(two.bottom, one.value), two.top
        errors = self.bound(one), self.bound(two)
        size = np.abs(two.value)
        least = np.where(size > errors[1], size - errors[1], 0.0)  # of the true divisor
        value = one.value / two.value
        # The quotient differs from the true one by at most this.
        miss = (errors[0] + np.abs(value) * errors[1]) / least
        less = _scale_gradient(two, value, miss)
        change = replace(one, centre=one.centre - less[0], radius=one.radius + less[1])
        middle = np.sign(two.value) * (1 / least + 1 / (size + errors[1])) / 2
        half = (1 / least - 1 / (size + errors[1])) / 2
        sure = np.isfinite(middle)
        centre, radius = _scale_gradient(
            change, np.where(sure, middle, 0.0), np.where(sure, half, np.inf)
        )
        within = replace(change, rest=one.rest + (np.abs(value) + miss) * two.rest)
        rest = within.rest / least + self.bound(within) / least * (errors[1] / size)
        rest = np.where(sure & np.isfinite(rest), rest, np.inf)
        return ErrorForm(value, centre, radius, rest, top, bottom)

    def make_absolute(self, one: ErrorForm) -> ErrorForm:
        """Return the absolute value of a column; where its sign is not sure, all error is rest."""
        error = self.bound(one)
        sign = np.where(np.abs(one.value) > error, np.sign(one.value), 0.0)
        centre, radius = _scale_gradient(one, sign, np.zeros_like(sign))
        return ErrorForm(np.abs(one.value), centre, radius, np.where(sign == 0, error, one.rest))

    def cross_rows(self, step: RowStep, one: ErrorForm) -> ErrorForm:
        """Return the new rows of a column that goes through a step across its rows."""
        if len(one.value) == 1 and step.size != 1:
            one = one.take(pick(np.zeros(step.size, dtype=np.intp), 1))
        lengths = step.lengths
        if step.kind == "pick":
            return one.take(step)
        if step.kind == "product":
            return self._multiply_rows(step, one)
        if int(lengths.sum()) > LARGEST_GRADIENT:
            raise Unfit
        if lengths.max(initial=0) <= 1 and not ((lengths == 0) & ~step.missing).any():
            last = max(len(step.order) - 1, 0)
            rows = np.where(lengths == 1, step.order[np.minimum(step.starts, last)], -1)
            return one.take(pick(rows, step.size))
        step, matrix = replace(step, alone=False), step.as_matrix()
        value = np.asarray(step.on_values(one.value), float)
        centre = _check_size(matrix @ one.centre)
        top = WeightedSum(value, centre) if one.linear else None
        return ErrorForm(value, centre, matrix @ one.radius, matrix @ one.rest, top)

    def _multiply_rows(self, step: RowStep, one: ErrorForm) -> ErrorForm:
        """Return running products of rows, one factor after the other."""
        if len(step.order) > LONGEST_PRODUCT:
            raise Unfit
        found = _make_constant(1.0, one.take(pick(np.zeros(1, dtype=np.intp), step.size)))
        made = [found]
        for row in step.order:
            found = self.multiply(found, one.take(pick(np.array([row]), step.size)))
            made.append(found)
        stacked = ErrorForm(
            np.concatenate([form.value for form in made]),
            _check_size(sparse.vstack([form.centre for form in made], format="csr")),
            sparse.vstack([form.radius for form in made], format="csr"),
            np.concatenate([form.rest for form in made]),
        )
        return stacked.take(pick(np.where(step.missing, -1, step.stops), len(made)))


def _make_constant(number: Any, like: ErrorForm) -> ErrorForm:
    """Return a number that everybody knows, in each row of a column like another."""
    values = np.zeros_like(like.value) + number
    none = sparse.csr_array(like.centre.shape)
    return ErrorForm(values, none, none, np.zeros_like(values), WeightedSum(values, none))


def _multiply_sizes(one: Floats, two: Floats) -> Floats:
    """Return the product of two sizes; 0 times what has no bound is 0."""
    return np.where((one == 0) | (two == 0), 0.0, one * two)


def _check_size(matrix: Matrix) -> Matrix:
    """Return a gradient; refuse one with too many entries."""
    if matrix.nnz > LARGEST_GRADIENT:
        raise Unfit
    return matrix


class _Counter:
    """Steps that count, for each row, the errors that have to be bounded on the way to it."""

    def __getitem__(self, name: str) -> Callable[..., Array]:
        """Return the step with this name: of two operands, or of one."""
        return self._join if name in ("+", "-") else self._bound

    def _join(self, one: Array, two: Array) -> Array:
        return one + two

    def _bound(self, *operands: Array) -> Array:
        return sum(operands, start=np.array([3]))

    def cross_rows(self, step: RowStep, one: Array) -> Array:
        """Return the counts of the new rows of a step across rows."""
        one = np.broadcast_to(one, (step.size,))
        if step.kind == "product":
            one = one + 2
        rows, members = step.list_members()
        return np.bincount(rows, weights=one[members], minlength=step.rows)


# Intervals --------------------------------------------------------------------------------------


class _System:
    """The noises behind the leaves of a calculation.

    Numbers that are no sums of known noises count as noises that are known by their intervals.
    """

    def __init__(self, calculation: Calculation):
        """Collect the noises of the leaves of a calculation, each of them once."""
        leaves = calculation.leaves
        self._calculation = calculation
        self._forms = [leaf.form() for leaf in leaves]
        starts: dict[object, int] = {}
        blocks: list[tuple[KnownLaw, Array]] = []
        size = 0
        for form in self._forms:
            for key, law, integers in () if form is None else form.blocks:
                if key not in starts:
                    starts[key] = size
                    blocks.append((law, integers))
                    size += integers.size
        self._starts, self.noises = starts, NoiseTable.collect(blocks)
        self.known = size  # the noises with known laws come first
        self._opaque: list[int] = []
        for leaf, form in zip(leaves, self._forms, strict=True):
            self._opaque.append(size)
            size += np.size(leaf.number()) if form is None else 0
        self.size = size

    @property
    def only_opaque(self) -> bool:
        """Whether no noise has a known law."""
        return not self.known

    def count(self) -> int:
        """Return how many errors have to be bounded for a row, at most."""
        leaves = [
            np.full(np.size(leaf.number()), 1 if form is None else 3 * (form.bottom is not None))
            for leaf, form in zip(self._calculation.leaves, self._forms, strict=True)
        ]
        counter = _Counter()
        found = self._calculation.run_forms(
            leaves, lambda number: np.zeros(np.size(number)), counter, counter.cross_rows
        )
        return max(int(np.max(found, initial=1)), 1)

    def follow(self, level: float) -> tuple[ErrorForm, Floats]:
        """Return the calculation, with each error on the way bounded with probability ``level``.

        With it come the bounds of the noises that are known by their intervals.
        """
        reach = np.zeros(self.size - self.known)
        steps = _Steps(lambda form: self.bound(form, reach, level))
        leaves = []
        with np.errstate(all="ignore"):
            for leaf, form, start in zip(
                self._calculation.leaves, self._forms, self._opaque, strict=True
            ):
                if form is None:
                    leaves.append(self._start_from_ends(leaf, start, level, reach))
                    continue
                found = self._start_from_sum(form, form.top)
                if form.bottom is not None:
                    found = steps.divide(found, self._start_from_sum(form, form.bottom))
                leaves.append(found)
            made = self._calculation.run_forms(
                leaves, self._start_from_number, steps, steps.cross_rows
            )
        return made, reach

    def bound(self, form: ErrorForm, reach: Floats, level: float) -> Floats:
        """Return a bound for the errors of a form, each of which holds with probability
        ``level``."""
        size = abs(form.centre) + form.radius
        found = form.rest.copy()
        if not size.nnz:
            return found
        if self.known:
            exact = not form.radius.nnz
            found += bound_sums(self.noises, size[:, : self.known], level, exact)
        if len(reach):
            found += size[:, self.known :] @ reach
        return np.where(np.isnan(found), np.inf, found)

    def _start_from_sum(self, form: LeafForm, one: WeightedSum) -> ErrorForm:
        """Return released sums of noisy integers, with weights at the places of the noises."""
        entries = one.weights.tocoo()
        rows, own = entries.coords
        places = [np.arange(block[2].size) + self._starts[block[0]] for block in form.blocks]
        columns = np.concatenate([*places, np.empty(0, dtype=np.intp)])[own]
        shape = len(one.values), self.size
        weights = sparse.csr_array((entries.data, (rows, columns)), shape=shape)
        return self._make_linear(one.values, weights)

    def _start_from_ends(self, leaf: Leaf, start: int, level: float, reach: Floats) -> ErrorForm:
        """Return released numbers that are known by their intervals."""
        values = np.atleast_1d(np.asarray(leaf.number(), dtype=np.float64))
        low, high = (
            np.broadcast_to(np.asarray(end, dtype=np.float64), values.shape)
            for end in leaf.ends(level)
        )
        rows = np.arange(len(values))
        half = np.maximum(high - values, values - low)
        reach[start - self.known + rows] = np.where(np.isnan(half), np.inf, half)
        shape = len(values), self.size
        weights = sparse.csr_array((np.ones(len(values)), (rows, start + rows)), shape=shape)
        return self._make_linear(values, weights)

    def _start_from_number(self, number: Any) -> ErrorForm:
        """Return a number that everybody knows, or one for each row."""
        values = np.atleast_1d(np.asarray(number, dtype=np.float64))
        return self._make_linear(values, sparse.csr_array((len(values), self.size)))

    def _make_linear(self, values: Floats, weights: Matrix) -> ErrorForm:
        none = sparse.csr_array(weights.shape)
        top = WeightedSum(values, weights)
        return ErrorForm(values, weights, none, np.zeros_like(values), top)


def enclose_by_noises(calculation: Calculation, level: float) -> NoiseInterval | None:
    """Return intervals for what a calculation comes to without noise, by the noises behind it.

    Each has the confidence ``level``. Return None if there are too many noises to look at one by
    one.
    """
    try:
        return _enclose(_System(calculation), level)
    except Unfit:
        return None


def _enclose(system: _System, level: float) -> NoiseInterval:
    """Return the intervals of a calculation, by the first of three rules that fits.

    A weighted sum of noises of known laws has the interval of that sum. A ratio of two such sums
    has Fieller's. All else is enclosed to first order, and a part of the risk bounds the rest. The
    first ``known`` columns of a form are noises of known laws. The others are opaque: only their
    own intervals are known. Noises of one cluster are independent.
    """
    risk, known, noises = 1 - level, system.known, system.noises
    on_rest = risk if system.only_opaque else risk * ON_REST
    form, reach = system.follow(min(1 - on_rest / system.count(), 1 - 2.0**-53))
    opaque = form.centre[:, known:].nnz + form.radius[:, known:].nnz
    if form.linear and not opaque:
        half = system.bound(form, reach, level)
        weights = form.centre[:, :known]
        deviation = None
        if noises.clusters <= 1:
            squares = weights.multiply(weights).tocsr()
            deviation = np.where(
                np.isnan(form.value), np.nan, np.sqrt(squares @ noises.deviations**2)
            )
        return NoiseInterval(form.value - half, form.value + half, SUM, deviation)
    if form.top is not None and form.bottom is not None and not opaque and noises.clusters == 1:
        return NoiseInterval(*_enclose_ratio(form.top, form.bottom, noises, known, level), RATIO)
    half = system.bound(form, reach, min(1 - (risk - on_rest), 1 - 2.0**-53))
    rule = PARTS if system.only_opaque else ORDER
    with np.errstate(invalid="ignore"):
        low, high = form.value - half, form.value + half
    endless = np.isinf(half)
    return NoiseInterval(np.where(endless, -np.inf, low), np.where(endless, np.inf, high), rule)


def _enclose_ratio(
    top: WeightedSum, bottom: WeightedSum, noises: NoiseTable, known: int, level: float
) -> Ends:
    """Return the intervals of ratios of sums of independent noises, by Fieller's method."""
    one, two = top.weights[:, :known], bottom.weights[:, :known]
    terms = np.diff((abs(one) + abs(two)).tocsr().indptr)
    variances = noises.deviations**2
    squares = [
        np.asarray(a.multiply(b).tocsr() @ variances)
        for a, b in ((one, one), (one, two), (two, two))
    ]
    signs = np.where(bottom.values < 0, -1.0, 1.0)
    missing = np.isnan(top.values) | np.isnan(bottom.values)
    reach: Any = noises.reach(level, np.maximum(terms, 1))
    low, high = fieller(
        signs * top.values, signs * bottom.values, squares[0], squares[1], squares[2], reach
    )
    return np.where(missing, np.nan, low), np.where(missing, np.nan, high)
