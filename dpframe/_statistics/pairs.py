"""The statistic of two columns at once, which covariances are made of (docs/guarantees/shapes.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpframe._expr import Expr
from dpframe._groups.unit import Unit
from dpframe._statistics.base import Grid, Integers, Primitive, Products, Reduced, Sensitivity, Statistic


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
