"""The integers an engine may compute, each with its sensitivity and the way back to data units.

A statistic maps a frame to a vector of integers per group. All of them are linear in four *primitive* sums
over the rows of a group (how many rows, how many non-null values, the sum of ``a`` and of ``a * a``, where
``a`` is a clipped value on its grid, counted from the lower bound), so an engine implements the primitives
and nothing else. Order statistics need a fifth, how many values lie on each point of a grid (_ranks.py, _tree.py).
Proofs of the sensitivities: docs/guarantees/statistics.md and quantiles.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe._expr import Expr
from dpframe._query import Unit
from dpframe._validate import Bounds

Integers = NDArray[Any]  # int64, or Python integers in an object array where 63 bits are too few


class Sensitivity(NamedTuple):
    """How far one person can move the whole vector: the L1 norm, and the square of the L2 norm. Exact."""

    l1: int
    l2_squared: int


@dataclass(frozen=True, slots=True)
class Grid:
    """Values clipped to public bounds, on a public power-of-two lattice: ``rint(clip(x) * 2**exponent)``.

    Scaling by a power of two is exact and ``rint`` is monotone, so the integers lie between those of the
    bounds, and each is a function of its own row.
    """

    bounds: Bounds
    exponent: int

    @property
    def low(self) -> int:
        return _on_grid(self.bounds.lower, self.exponent)

    @property
    def high(self) -> int:
        return _on_grid(self.bounds.upper, self.exponent)

    @property
    def width(self) -> int:
        """Steps between the bounds; one for bounds that coincide, so that a row always counts."""
        return max(1, self.high - self.low)

    @property
    def step(self) -> float:
        return math.ldexp(1.0, -self.exponent)

    @property
    def magnitude(self) -> int:
        return max(1, abs(self.low), abs(self.high))

    @staticmethod
    def for_width(bounds: Bounds, bits: int) -> Grid:
        """The finest grid on which the width of the bounds stays below ``2**bits`` steps."""
        width = Fraction(bounds.upper) - Fraction(bounds.lower)
        return Grid(bounds, _exponent(width if width else _largest(bounds), bits))

    @staticmethod
    def for_magnitude(bounds: Bounds, bits: int, integral: bool) -> Grid:
        """The finest grid on which the values themselves do; whole numbers that fit stay whole."""
        exponent = _exponent(_largest(bounds), bits)
        return Grid(bounds, min(exponent, 0) if integral else exponent)


@lru_cache(maxsize=4096)
def _on_grid(bound: float, exponent: int) -> int:
    # Python's round and numpy's rint agree: ties to even.
    return round(Fraction(bound) * Fraction(2) ** exponent)


def _largest(bounds: Bounds) -> Fraction:
    return max(abs(Fraction(bounds.lower)), abs(Fraction(bounds.upper))) or Fraction(1)


def _exponent(extent: Fraction, bits: int) -> int:
    # 2**(e-1) <= extent < 2**(e+1), hence extent * 2**(bits - e - 1) < 2**bits; capped so that the scale is a double.
    e = extent.numerator.bit_length() - extent.denominator.bit_length()
    return min(bits - e - 1, 960)


class Rows(NamedTuple):
    """Primitive: the rows of each group."""


class Trues(NamedTuple):
    """Primitive: the rows where a condition holds."""

    expr: Expr


class Powers(NamedTuple):
    """Primitive: the sums of a**0 .. a**degree over non-null values, a = grid integer minus the lower one."""

    expr: Expr
    grid: Grid | None  # None: only counts are wanted
    degree: int


class Leaves(NamedTuple):
    """Primitive: how many non-null values lie on each point of a grid, from the lower bound to the upper."""

    expr: Expr
    grid: Grid

    @property
    def points(self) -> int:
        return self.grid.high - self.grid.low + 1


Primitive = Rows | Trues | Powers | Leaves
# (groups,) for rows and conditions, (degree + 1, groups) for powers, (points, groups) for leaves
Reduced = Mapping[Primitive, Integers]

# The bits of a grid: sums over ROW_CEILING rows of values, or of squares, stay below 2**62.
VALUE_BITS = 31  # of the width of the bounds
MAGNITUDE_BITS = 30  # of a value itself, which may have either sign
SQUARE_BITS = 15  # of the width, where squares are summed


class Statistic(ABC):
    """What one release adds noise to."""

    __slots__ = ()

    @property
    @abstractmethod
    def primitives(self) -> tuple[Primitive, ...]:
        """The sums it is made of."""

    @abstractmethod
    def integers(self, reduced: Reduced) -> Integers:
        """The vector itself, one row a component, one column a group."""

    @abstractmethod
    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        """The largest change one person can cause, over all groups together."""

    @abstractmethod
    def functionals(self) -> dict[str, tuple[float, ...]]:
        """Linear maps from the components to ``size`` (rows), ``n`` (non-null values), ``t1`` and ``t2`` (their
        first and second moment sums on the scale where the bounds are 0 and 1) and ``total`` (data units)."""

    def constants(self) -> dict[str, float]:
        """What is added to a functional from public knowledge."""
        return {}

    @property
    @abstractmethod
    def description(self) -> str:
        """The vector in words, for the plan."""

    @property
    def step(self) -> float:
        """One integer unit in the units in which the description speaks."""
        return 1.0


def _one_hot(unit: Unit, grouped: bool) -> Sensitivity:
    # A row is in at most one group: replaced, it may leave one group and enter another.
    return Sensitivity(2, 2) if unit.replaces and grouped else Sensitivity(1, 1)


@dataclass(frozen=True, slots=True)
class RowCount(Statistic):
    """Rows of each group. Add-remove: 1. Replace-one: 1, and 2 over several groups (the notes' histogram)."""

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Rows(),)

    def integers(self, reduced: Reduced) -> Integers:
        return reduced[Rows()][None, :]

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        return _one_hot(unit, grouped)

    def functionals(self) -> dict[str, tuple[float, ...]]:
        return {"size": (1.0,)}

    @property
    def description(self) -> str:
        return "rows"


@dataclass(frozen=True, slots=True)
class ValueCount(Statistic):
    """Non-null values of each group, and beside them the nulls where rows are counted too.

    A row is either, so the two components share the sensitivity of one.
    """

    expr: Expr
    nulls: bool = False

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        values = Powers(self.expr, None, 0)
        return (values, Rows()) if self.nulls else (values,)

    def integers(self, reduced: Reduced) -> Integers:
        values = reduced[Powers(self.expr, None, 0)][0]
        return np.stack([values, reduced[Rows()] - values]) if self.nulls else values[None, :]

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        # Replaced, a value may become null: two components change even without groups.
        return _one_hot(unit, grouped or self.nulls)

    def functionals(self) -> dict[str, tuple[float, ...]]:
        return {"n": (1.0, 0.0), "size": (1.0, 1.0)} if self.nulls else {"n": (1.0,)}

    @property
    def description(self) -> str:
        return f"non-null values of {self.expr}" + (" and its nulls" if self.nulls else "")


@dataclass(frozen=True, slots=True)
class Questions(Statistic):
    """k overlapping yes-no questions: one row may answer yes to all, so k in L1 and sqrt(k) in L2."""

    exprs: tuple[Expr, ...]

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return tuple(Trues(e) for e in self.exprs)

    def integers(self, reduced: Reduced) -> Integers:
        return np.stack([reduced[Trues(e)] for e in self.exprs])

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        k = len(self.exprs)
        return Sensitivity(2 * k, 2 * k) if unit.replaces and grouped else Sensitivity(k, k)

    def functionals(self) -> dict[str, tuple[float, ...]]:
        k = len(self.exprs)
        return {f"true{i}": tuple(float(i == j) for j in range(k)) for i in range(k)}

    @property
    def description(self) -> str:
        return f"{len(self.exprs)} questions"


@dataclass(frozen=True, slots=True)
class Total(Statistic):
    """The sum of clipped values, measured from zero: the least noise when a sum is all that is wanted.

    Add-remove: max(abs(lower), abs(upper)). Replace-one: the width where every row ``always`` has a value, the
    larger of width and maximum where one may become null or leave the filter, twice the maximum over groups.
    """

    expr: Expr
    grid: Grid
    always: bool = False

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Powers(self.expr, self.grid, 1),)

    def integers(self, reduced: Reduced) -> Integers:
        count, above = reduced[self.primitives[0]]
        total: Integers = above + self.grid.low * count
        return total[None, :]  # the lower bound is at most 2**30 steps on this grid

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        m = self.grid.magnitude
        if not unit.replaces:
            return Sensitivity(m, m * m)
        width = self.grid.high - self.grid.low
        if grouped:
            return Sensitivity(2 * m, max(width * width, 2 * m * m))
        if self.always:
            return Sensitivity(max(width, 1), max(width, 1) ** 2)
        return Sensitivity(max(width, m), max(width, m) ** 2)

    def functionals(self) -> dict[str, tuple[float, ...]]:
        return {"total": (self.grid.step,)}

    @property
    def description(self) -> str:
        return f"sum of {self.expr}"

    @property
    def step(self) -> float:
        return self.grid.step


@dataclass(frozen=True, slots=True)
class Simplex(Statistic):
    """The moments of a column as Bernstein sums, which share one row's worth of sensitivity between them.

    With a and b the steps above the lower and below the upper bound, a + b = W, a row adds (a, b) for
    degree 1 and (b*b, 2*a*b, a*a) for degree 2: non-negative numbers that sum to W**degree. A null adds the
    same mass to a component of its own where rows are counted too. So add-remove moves the vector by
    exactly W**degree in L1 and at most that in L2, and replace-one by at most twice and sqrt(2) times as much.
    """

    expr: Expr
    grid: Grid
    degree: int
    nulls: bool  # whether rows with a null are counted beside the others

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        powers = Powers(self.expr, self.grid, self.degree)
        return (powers, Rows()) if self.nulls else (powers,)

    @property
    def _mass(self) -> int:
        return int(self.grid.width**self.degree)

    def integers(self, reduced: Reduced) -> Integers:
        w = self.grid.width
        p = reduced[Powers(self.expr, self.grid, self.degree)]
        parts = [w * p[0] - p[1], p[1]]
        if self.degree == 2:
            parts = [w * w * p[0] - 2 * w * p[1] + p[2], 2 * (w * p[1] - p[2]), p[2]]
        if self.nulls:
            parts.append(self._mass * (reduced[Rows()] - p[0]))
        return np.stack(parts)

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        m = self._mass
        return Sensitivity(2 * m, 2 * m * m) if unit.replaces else Sensitivity(m, m * m)

    def functionals(self) -> dict[str, tuple[float, ...]]:
        one = 1.0 / self._mass
        rows: dict[str, tuple[float, ...]] = {"n": (one, one), "t1": (0.0, one)}
        if self.degree == 2:
            rows = {"n": (one, one, one), "t1": (0.0, one / 2, one), "t2": (0.0, 0.0, one)}
        if not self.nulls:
            return rows
        padded = {name: (*c, 0.0) for name, c in rows.items()}
        return {**padded, "size": (*rows["n"], one)}

    @property
    def description(self) -> str:
        parts = {1: "distances to both bounds", 2: "Bernstein moments"}[self.degree]
        return f"{parts} of {self.expr}" + (" and its nulls" if self.nulls else "")

    @property
    def step(self) -> float:
        return float(self.grid.step**self.degree)


@dataclass(frozen=True, slots=True)
class Centred(Statistic):
    """Twice the distance from the middle of the bounds, summed, and W for each non-null value.

    For replace-one without groups, where under Laplace noise it has half the variance of the simplex: a changed
    value moves the first component by at most 2W and leaves the second; a value that comes or goes moves each by
    at most W. With ``rows`` given the number of values is public, the second component is left out, and a null
    counts as the middle.
    """

    expr: Expr
    grid: Grid
    rows: int | None = None

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (Powers(self.expr, self.grid, 1),)

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

    def functionals(self) -> dict[str, tuple[float, ...]]:
        w = float(self.grid.width)
        if self.rows is not None:
            return {"t1": (1 / (2 * w),), "n": (0.0,)}
        return {"n": (0.0, 1 / w), "t1": (1 / (2 * w), 1 / (2 * w))}

    def constants(self) -> dict[str, float]:
        return {} if self.rows is None else {"n": float(self.rows), "t1": self.rows / 2}

    @property
    def description(self) -> str:
        known = "" if self.rows is None else ", over a public number of rows"
        return f"distance of {self.expr} from the middle{known}"

    @property
    def step(self) -> float:
        return self.grid.step / 2
