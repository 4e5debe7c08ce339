"""Statistics of clipped values: a column's total, its moments, and the mixed moments of two columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dpframe._expr import Expr
from dpframe._groups.unit import Unit
from dpframe._statistics.base import (
    Grid,
    Integers,
    Powers,
    Primitive,
    Products,
    Reduced,
    Rows,
    Sensitivity,
    Statistic,
)


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

    With a and b the steps above the lower and below the upper bound, a + b = W, a row adds the terms of (b + a)**degree:
    (b, a) for degree 1, (b*b, 2*a*b, a*a) for degree 2, and so on, non-negative numbers that sum to W**degree. A null adds
    the same mass to a component of its own where rows are counted too. So add-remove moves the vector by
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

    def shape(self, groups: int) -> tuple[int, ...]:
        return self.degree + 1 + self.nulls, groups

    def integers(self, reduced: Reduced) -> Integers:
        powers = reduced[Powers(self.expr, self.grid, self.degree)]
        terms, level = [], list(powers)  # the sums of a**k * b**r, of one r for all k
        while level:
            terms.append(level[-1])
            # As b = W - a; no product is above the mass of all rows, so no step overflows.
            level = [self.grid.width * one - more for one, more in pairwise(level)]
        parts = [math.comb(self.degree, k) * one for k, one in enumerate(reversed(terms))]
        if self.nulls:
            parts.append(self.grid.width**self.degree * (reduced[Rows()] - powers[0]))
        return np.stack(parts)

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        m = self.grid.width**self.degree
        return Sensitivity(2 * m, 2 * m * m) if unit.replaces else Sensitivity(m, m * m)

    def functionals(self) -> dict[str, tuple[float, ...]]:
        return dict(_of_terms(self.grid.width**self.degree, self.degree, self.nulls))

    @property
    def description(self) -> str:
        parts = "distances to both bounds" if self.degree == 1 else "Bernstein moments"
        return f"{parts} of {self.expr}" + (" and its nulls" if self.nulls else "")

    @property
    def step(self) -> float:
        return float(self.grid.step**self.degree)


@lru_cache(maxsize=256)
def _of_terms(mass: int, d: int, nulls: bool) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """The rows, the values and the sums of their powers, as combinations of the Bernstein terms of degree d."""
    one = 1.0 / mass
    rows: dict[str, tuple[float, ...]] = {"n": (one,) * (d + 1)}
    for j in range(1, d + 1):
        # a**j * W**(d - j) is a combination of the terms: comb(k, j) / comb(d, j) of the k-th.
        rows[f"t{j}"] = tuple(one * (math.comb(k, j) / math.comb(d, j)) for k in range(d + 1))
    if not nulls:
        return tuple(rows.items())
    padded = {name: (*c, 0.0) for name, c in rows.items()}
    return *padded.items(), ("size", (*rows["n"], one))


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


@dataclass(frozen=True, slots=True)
class Pair(Statistic):
    """The first and mixed moments of two columns, which share one row's worth of sensitivity between them.

    With a and a' the steps above the lower and below the upper bound of one column, a + a' = V, and b + b' = W those
    of the other, a row adds (a'b', ab', a'b, ab): non-negative numbers that sum to V * W. A row with a null in either
    column adds nothing. So add-remove moves the vector by at most V * W in L1 and in L2, and replace-one by at
    most twice and sqrt(2) times as much.
    """

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
        v, w = self.grid.width, self.other_grid.width
        n, a, b, ab = reduced[self.primitives[0]]
        only_a, only_b = (
            w * a - ab,
            v * b - ab,
        )  # each step within 63 bits: products are below 2**30, rows 2**31
        return np.stack([v * w * n - only_a - only_b - ab, only_a, only_b, ab])

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        m = self._mass
        return Sensitivity(2 * m, 2 * m * m) if unit.replaces else Sensitivity(m, m * m)

    def functionals(self) -> dict[str, tuple[float, ...]]:
        one = 1.0 / self._mass
        return {
            "n": (one, one, one, one),
            "t1": (0.0, one, 0.0, one),
            "s1": (0.0, 0.0, one, one),
            "st": (0.0, 0.0, 0.0, one),
        }

    @property
    def description(self) -> str:
        return f"mixed moments of {self.expr} and {self.other}"

    @property
    def step(self) -> float:
        return self.grid.step * self.other_grid.step
