"""The integers an engine may compute, each with its sensitivity and the way back to data units.

A statistic maps a frame to a vector of integers per group. It is made of *primitive* sums over the
rows of a group: rows, people, non-null values, powers of ``a``, and ``a * b``. There ``a`` and
``b`` are clipped values on their grids, counted from the lower bound. Further primitives are
distinct values and, for order statistics, the number of values on each point of a grid. Statistics
of clipped values stand here, beside their grids: the total of a column, its moments, and the mixed
moments of two columns. The sensitivities are proved in docs/guarantees/statistics.md and
quantiles.md, and those for a person with many rows in people.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe._expr import Expr
from dpframe._groups.unit import Limit, Unit
from dpframe._types import Array
from dpframe._validate import Bounds

Maps = dict[str, tuple[float, ...]]
# int64, or Python integers in an object array if 63 bits are too few.
Integers = NDArray[Any]


class Sensitivity(NamedTuple):
    """The exact distance by which one person can move the whole vector.

    It has the L1 norm, and the square of the L2 norm.
    """

    l1: int
    l2_squared: int


@dataclass(frozen=True, slots=True)
class Reading:
    """The description of a vector in a plan, and the way back to data units.

    One step of an integer is ``step`` of what the vector describes. ``functionals`` are linear maps
    from the components to ``size`` (rows), ``n`` (non-null values), ``t1``, ``t2`` and so on (the
    sums of their powers on the scale where the bounds are 0 and 1) and ``total`` (data units).
    ``constants`` are public numbers that are added to some of these.
    """

    description: str
    functionals: Maps
    step: float = 1.0
    constants: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Grid:
    """Values clipped to public bounds, on a public power-of-two lattice: ``rint(clip(x) *
    2**exponent)``.

    Scaling by a power of two is exact and ``rint`` is monotone, so the integers lie between those
    of the bounds, and each is a function of its own row.
    """

    identity: ClassVar[tuple[str, ...]] = ("grid", "bounds", "exponent")

    bounds: Bounds
    exponent: int
    low: int = field(init=False, repr=False, compare=False)
    high: int = field(init=False, repr=False, compare=False)
    # The steps between the bounds. Equal bounds have one step, so that a row always counts.
    width: int = field(init=False, repr=False, compare=False)
    # The length of a step in data units.
    step: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lower, upper = self.bounds
        low, high = place_on_grid(lower, self.exponent), place_on_grid(upper, self.exponent)
        computed = low, high, max(1, high - low), math.ldexp(1.0, -self.exponent)
        for name, value in zip(("low", "high", "width", "step"), computed, strict=True):
            object.__setattr__(self, name, value)

    @property
    def magnitude(self) -> int:
        return max(1, abs(self.low), abs(self.high))

    @staticmethod
    def for_width(bounds: Bounds, bits: int, degree: int = 1) -> Grid:
        """Return the finest grid on which the distance of the bounds, to the power ``degree``,
        stays below ``2**bits`` steps.

        If powers are summed, the highest has no more bits than a value.
        """
        return Grid(bounds, _exponent(bounds.lower, bounds.upper, bits // max(degree, 1)))

    @staticmethod
    def for_magnitude(bounds: Bounds, bits: int, integral: bool) -> Grid:
        """Return the finest grid on which values between the bounds stay below ``2**bits`` steps in
        size. With ``integral`` the steps are at least 1, since the values are whole.

        Whole numbers that fit stay whole.
        """
        exponent = _exponent(0.0, max(map(abs, bounds)), bits)
        return Grid(bounds, min(exponent, 0) if integral else exponent)


@lru_cache(maxsize=4096)
def place_on_grid(bound: float, exponent: int) -> int:
    """Return the whole number of steps that is nearest to a bound."""
    # Python's round and numpy's rint agree: ties to even.
    return round(Fraction(bound) * Fraction(2) ** exponent)


def to_grid(values: Array, a: NDArray[np.float64], grid: Grid) -> None:
    """Write the values into the array ``a`` as whole grid steps above the lower bound.

    They are clipped, scaled by a power of two and rounded. NaN stays NaN.
    """
    lower, upper = grid.bounds
    values.clip(lower, upper, out=a)
    if grid.exponent:
        a *= 2.0**grid.exponent
    np.rint(a, out=a)
    if grid.low:
        a -= float(grid.low)


@lru_cache(maxsize=4096)
def _exponent(lower: float, upper: float, bits: int) -> int:
    """Return the largest e such that ``2**e (upper - lower)`` is below ``2**bits``: the resolution
    of a grid. If both bounds are equal, their size counts for the difference.

    For equal numbers it leaves less than that below their size.
    """
    extent = Fraction(upper) - Fraction(lower) or abs(Fraction(upper)) or Fraction(1)
    # From 2**(e-1) <= extent < 2**(e+1) follows extent * 2**(bits - e - 1) < 2**bits. The cap keeps
    # the scale a double.
    e = extent.numerator.bit_length() - extent.denominator.bit_length()
    return min(bits - e - 1, 960)


# Dataclasses and no named tuples: as empty tuples `Rows()` and `Persons()` would be equal.
# `additive` says that the sums of two parts of a table (parts of whole people, where columns name
# them) add up to those of both.


@dataclass(frozen=True, slots=True)
class Rows:
    """Primitive: the rows of each group."""

    additive: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Persons:
    """Primitive: the people who have rows in each group."""

    additive: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Trues:
    """Primitive: the rows where a condition holds."""

    additive: ClassVar[bool] = True
    expr: Expr


@dataclass(frozen=True, slots=True)
class Powers:
    """Primitive: the sums of a**0 .. a**degree over non-null values, a = grid integer minus the
    lower one."""

    additive: ClassVar[bool] = True
    expr: Expr
    grid: Grid | None  # None: only counts are wanted
    degree: int


@dataclass(frozen=True, slots=True)
class Products:
    """Primitive: the number of rows where neither value is null, and their sums of ``a``, of ``b``
    and of ``a * b``."""

    additive: ClassVar[bool] = True
    expr: Expr
    grid: Grid
    other: Expr
    other_grid: Grid


@dataclass(frozen=True, slots=True)
class Leaves:
    """Primitive: the number of non-null values on each point of a grid, from the lower bound to the
    upper."""

    additive: ClassVar[bool] = True
    expr: Expr
    grid: Grid

    @property
    def points(self) -> int:
        return self.grid.high - self.grid.low + 1


@dataclass(frozen=True, slots=True)
class Distincts:
    """Primitive: the number of distinct non-null values of each group."""

    additive: ClassVar[bool] = False  # two parts may have a value in common
    expr: Expr


@dataclass(frozen=True, slots=True)
class Bids:
    """Primitive: the rows of each bin of the question's one grouping.

    All bins are one group for people. A person may be in several bins, and the limit of rows holds
    for all of them together.
    """

    additive: ClassVar[bool] = True
    expr: Expr


@dataclass(frozen=True, slots=True)
class Spread:
    """Primitive: people by the number of their rows in the group where they have most, or of their
    groups.

    One column: those with 1, with 2, with 3 or 4, and so on by powers of two. The last has all that
    have more.
    """

    additive: ClassVar[bool] = True
    of: Literal["rows", "groups"]
    bins: int


@dataclass(frozen=True, slots=True)
class Magnitudes:
    """Primitive: people by the sign and the power of two of one of their values.

    Without people it counts rows by the value of each row.
    """

    additive: ClassVar[bool] = True
    expr: Expr


Primitive = (
    Rows | Persons | Trues | Powers | Products | Leaves | Bids | Distincts | Spread | Magnitudes
)
# (groups,) for rows, bids, distinct values and conditions, (degree + 1, groups) for powers, (4,
# groups) for products, (points, groups) for leaves, (bins, 1) for people by a number
Reduced = Mapping[Primitive, Integers]

# The bits of a grid: sums over ROW_CEILING rows of values, or of their powers, stay within 2**62.
# The bits of the width of the bounds.
VALUE_BITS = 31
# The same if squares are summed.
SQUARE_BITS = VALUE_BITS // 2
# The bits of a value itself, without its sign.
MAGNITUDE_BITS = 30


# Magnitudes: zero is what lies within 2**LEAST_POWER of it, and the largest powers have all that is
# beyond them.
LEAST_POWER, LARGEST_POWER = -20, 40
MAGNITUDES = 2 * (LARGEST_POWER - LEAST_POWER) + 1


class Statistic(ABC):
    """A vector of integers that one release adds noise to.

    If ``once`` is true, a person counts once in it, whatever the limits. If ``follows`` is true, it
    depends on the vector that was released before it.
    """

    __slots__ = ()
    identity: ClassVar[tuple[str, ...]]  # the tag of the class, and its fields in a fixed order
    once: ClassVar[bool] = False
    follows: ClassVar[bool] = False

    @property
    @abstractmethod
    def primitives(self) -> tuple[Primitive, ...]:
        """The primitive sums that the vector is made of."""

    @abstractmethod
    def integers(self, reduced: Reduced) -> Integers:
        """Return the vector itself, one row a component, one column a group."""

    def integers_after(self, reduced: Reduced, released: Sequence[Integers]) -> Integers:
        """Return the vector, given the vectors of the same question that have left the door
        before."""
        return self.integers(reduced)

    def shape(self, groups: int) -> tuple[int, ...]:
        """Return the shape of the vector of integers, from public facts alone; ``groups`` is the
        number of groups.

        If each group has choices, the axes are choices, candidates and groups.
        """
        return 1, groups

    @abstractmethod
    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        """Return the largest change that one row can cause, over all groups together."""

    def of_person(self, unit: Unit, groups: int | None) -> Sensitivity:
        """Return how far one person can move the integers: R rows in each of G groups, as the
        contribution limits say (docs/guarantees/people.md). ``groups`` is the number of groups, or
        None without groups."""
        row_sensitivity = self.sensitivity(unit, groups is not None)
        if not unit.people:
            return row_sensitivity
        rows, groups_counted = unit.reach(groups)
        return Sensitivity(
            row_sensitivity.l1 * rows * groups_counted,
            row_sensitivity.l2_squared * rows**2 * groups_counted,
        )

    def limit(self, unit: Unit, grouped: bool) -> Limit | None:
        """Return the contribution limit of a person, or None if a row is a person."""
        return unit.limit(grouped)

    def reach(self, unit: Unit) -> int:
        """Return the most by which one row can move one component against another.

        It is the sensitivity of a choice among the components.
        """
        raise AssertionError(f"nothing is chosen among {self.reading().description}")

    def reach_of_person(self, unit: Unit, groups: int | None) -> int:
        """Return `reach` for a person with R rows in each group, for sums over rows."""
        return self.reach(unit) * unit.reach(groups)[0]

    @abstractmethod
    def reading(self) -> Reading:
        """Return the description of the vector in plans, with the maps that make outputs of it."""


# Sums of clipped values ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Total(Statistic):
    """The sum of clipped values, measured from zero: the least noise when a sum is all that is
    wanted.

    Add-remove: max(abs(lower), abs(upper)). Replace-one: the width if ``every_row_has_value``, the
    larger of width and maximum if a row may become null or leave the filter, and twice the maximum
    over groups.
    """

    identity: ClassVar[tuple[str, ...]] = ("total", "expr", "grid", "every_row_has_value")

    expr: Expr
    grid: Grid
    every_row_has_value: bool = False

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Powers(self.expr, self.grid, 1),)

    def integers(self, reduced: Reduced) -> Integers:
        count, above = reduced[self.primitives[0]]
        total: Integers = above + self.grid.low * count
        return total[None, :]  # the lower bound is at most 2**30 steps on this grid

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        """Return the most by which one row, added or replaced, moves the sums in grid steps.

        Both L1 and squared L2 are returned. ``grouped`` says that there are groups, so that a
        replaced row may leave one group and enter another.
        """
        largest = self.grid.magnitude  # the largest size of a value
        if not unit.replaces:
            return Sensitivity(largest, largest**2)
        width = self.grid.high - self.grid.low
        if grouped:
            # A value changes within its group and moves one sum by the width. Or it moves to
            # another group, and two sums change by its size.
            return Sensitivity(2 * largest, max(width**2, 2 * largest**2))
        if self.every_row_has_value:
            # No row can become null or leave the filter, so a value only changes to another one.
            # Equal bounds have width 0. A sensitivity of 0 would mean no noise, so it is at least
            # 1.
            return Sensitivity(max(width, 1), max(width, 1) ** 2)
        # A value may also appear or disappear, which moves the sum by its size.
        return Sensitivity(max(width, largest), max(width, largest) ** 2)

    def reading(self) -> Reading:
        return Reading(f"sum of {self.expr}", {"total": (self.grid.step,)}, self.grid.step)


@dataclass(frozen=True, slots=True)
class Simplex(Statistic):
    """The moments of a column as Bernstein sums, which share one row's worth of sensitivity between
    them.

    With a and b the steps above the lower and below the upper bound, a + b = W, a row adds the
    terms of (b + a)**degree: (b, a) for degree 1, (b*b, 2*a*b, a*a) for degree 2, and so on,
    non-negative numbers that sum to W**degree. A null adds the same mass to a component of its own
    where rows are counted too. So add-remove moves the vector by exactly W**degree in L1 and at
    most that in L2, and replace-one by at most twice and sqrt(2) times as much.
    """

    identity: ClassVar[tuple[str, ...]] = ("moments", "expr", "grid", "degree", "nulls")

    expr: Expr
    grid: Grid
    degree: int
    # True if rows with a null are counted beside the others.
    nulls: bool

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        powers = Powers(self.expr, self.grid, self.degree)
        return (powers, Rows()) if self.nulls else (powers,)

    def shape(self, groups: int) -> tuple[int, ...]:
        return self.degree + 1 + self.nulls, groups

    def integers(self, reduced: Reduced) -> Integers:
        """Return the exact Bernstein sums of a column for each group, from its sums of powers.

        Let a be the distance of a value from its lower bound, b that from its upper bound, in grid
        steps, and W = a + b. The sums are those of the terms of (b + a)**degree: for degree 2 of
        b*b, 2*a*b and a*a. Nulls have one more, if they are counted. Sums of a**k * b**r follow
        from those of a**k by repeated differences, since b = W - a.
        """
        powers = reduced[Powers(self.expr, self.grid, self.degree)]
        # At each round `level` has the sums of a**k * b**r for one r and all k.
        terms, level = [], list(powers)
        while level:
            terms.append(level[-1])
            # Products are at most the mass of all rows, so nothing overflows.
            level = [self.grid.width * term - next_term for term, next_term in pairwise(level)]
        times = [math.comb(self.degree, k) for k in range(self.degree + 1)]
        parts = [
            term if n == 1 else n * term for n, term in zip(times, reversed(terms), strict=True)
        ]
        if self.nulls:
            parts.append(self.grid.width**self.degree * (reduced[Rows()] - powers[0]))
        return np.array(parts)

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        m = self.grid.width**self.degree
        return Sensitivity(2 * m, 2 * m * m) if unit.replaces else Sensitivity(m, m * m)

    def reading(self) -> Reading:
        """Return the weights that turn Bernstein sums back into the number of values ``n`` and the
        sums of powers ``t1``, ``t2`` and so on, of values scaled to lie between 0 and 1.

        With nulls, the number of rows ``size`` is the sum of all components.
        """
        d = self.degree
        unit_weight = 1.0 / self.grid.width**d
        # a**j * W**(d - j) is a combination of the terms: comb(k, j) / comb(d, j) of the k-th.
        maps: dict[str, tuple[float, ...]] = {}
        for j in range(d + 1):
            weights = [unit_weight * (math.comb(k, j) / math.comb(d, j)) for k in range(d + 1)]
            maps[f"t{j}" if j else "n"] = tuple(weights)
        text = f"{'distances to both bounds' if d == 1 else 'Bernstein moments'} of {self.expr}"
        if self.nulls:
            text += " and its nulls"
            maps = {name: (*row, 0.0) for name, row in maps.items()}
            maps["size"] = (unit_weight,) * (d + 2)
        return Reading(text, maps, float(self.grid.step**d))


@dataclass(frozen=True, slots=True)
class Centred(Statistic):
    """Twice the distance from the middle of the bounds, summed, and W for each non-null value.

    For replace-one without groups, where under Laplace noise it has half the variance of the
    simplex: a changed value moves the first component by at most 2W and leaves the second; a value
    that comes or goes moves each by at most W. With ``rows`` given the number of values is public,
    the second component is left out, and a null counts as the middle.
    """

    identity: ClassVar[tuple[str, ...]] = ("centred", "expr", "grid", "rows")

    expr: Expr
    grid: Grid
    rows: int | None = None

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Powers(self.expr, self.grid, 1),)

    def shape(self, groups: int) -> tuple[int, ...]:
        return 1 if self.rows is not None else 2, groups

    def integers(self, reduced: Reduced) -> Integers:
        w = self.grid.width
        count, above = reduced[self.primitives[0]]
        centred = above - (w * count - above)  # each step within 63 bits
        return centred[None, :] if self.rows is not None else np.stack([centred, w * count])

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        if grouped or not unit.replaces:
            raise AssertionError("the centred arrangement is for replace-one without groups")
        w = self.grid.width
        return Sensitivity(2 * w, 4 * w * w)

    def reading(self) -> Reading:
        """Return the weights that turn the noisy integers into the number of values ``n`` and their
        sum ``t1``, of values scaled to lie between 0 and 1.

        With a public number of rows these are constants plus weights.
        """
        w, text = float(self.grid.width), f"distance of {self.expr} from the middle"
        if self.rows is None:
            maps: Maps = {"n": (0.0, 1 / w), "t1": (1 / (2 * w), 1 / (2 * w))}
            return Reading(text, maps, self.grid.step / 2)
        constants, maps = (
            {"n": float(self.rows), "t1": self.rows / 2},
            {"t1": (1 / (2 * w),), "n": (0.0,)},
        )
        return Reading(f"{text}, over a public number of rows", maps, self.grid.step / 2, constants)


@dataclass(frozen=True, slots=True)
class Pair(Statistic):
    """The first and mixed moments of two columns, which share one row's worth of sensitivity
    between them.

    With a and a' the steps above the lower and below the upper bound of one column, a + a' = V, and
    b + b' = W those of the other, a row adds (a'b', ab', a'b, ab): non-negative numbers that sum to
    V * W. A row with a null in either column adds nothing. So add-remove moves the vector by at
    most V * W in L1 and in L2, and replace-one by at most twice and sqrt(2) times as much.
    """

    identity: ClassVar[tuple[str, ...]] = ("mixed_moments", "expr", "grid", "other", "other_grid")

    expr: Expr
    grid: Grid
    other: Expr
    other_grid: Grid

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Products(self.expr, self.grid, self.other, self.other_grid),)

    @property
    def _mass(self) -> int:
        return self.grid.width * self.other_grid.width

    def shape(self, groups: int) -> tuple[int, ...]:
        return 4, groups

    def integers(self, reduced: Reduced) -> Integers:
        """Return the exact sums of a'b', ab', a'b and ab for each group.

        a is the distance of the first column from its lower bound, in grid steps. a' is that from
        its upper bound, so a + a' is the width v. b, b' and w belong to the second column. So the
        four sums follow from the sums of a, of b and of ab, and the number of rows n.
        """
        v, w = self.grid.width, self.other_grid.width
        n, a, b, ab = reduced[self.primitives[0]]
        # Each step is within 63 bits: products are below 2**30, rows 2**31.
        only_a, only_b = w * a - ab, v * b - ab
        return np.stack([v * w * n - only_a - only_b - ab, only_a, only_b, ab])

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        m = self._mass
        return Sensitivity(2 * m, 2 * m * m) if unit.replaces else Sensitivity(m, m * m)

    def reading(self) -> Reading:
        """Return the weights that turn the four mixed sums into ``n``, the two sums and the sum of
        products."""
        weight = 1.0 / self._mass
        maps: Maps = {
            "n": (weight, weight, weight, weight),
            "t1": (0.0, weight, 0.0, weight),
            "s1": (0.0, 0.0, weight, weight),
            "st": (0.0, 0.0, 0.0, weight),
        }
        step = self.grid.step * self.other_grid.step
        return Reading(f"mixed moments of {self.expr} and {self.other}", maps, step)
