"""Linear regression from noisy sums of products: one exact integer vector, and all else is
post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dpframe._expr import Expr
from dpframe._groups.keys import Word
from dpframe._groups.unit import Unit
from dpframe._plans.plan import Part, Plan
from dpframe._plans.price import buy_noise
from dpframe._questions.question import AddNoise
from dpframe._sizes import SIZES
from dpframe._statistics.base import Sensitivity
from dpframe._statistics.engine import Engine
from dpframe._types import Array
from dpframe._validate import Bounds
from dpframe.accounting._filter import Price
from dpframe.learn._design import UNIT, DesignRows, Floats, Scaling
from dpframe.learn._fits import Fit, errors_text
from dpframe.learn._solve import ScoreLoss
from dpframe.mechanisms._base import Form

SQUARES = ScoreLoss("squares", 1.0, 1.0)  # what is minimised afterwards


@dataclass(frozen=True)
class Statistics(Fit):
    """The sums of x_j x_k and x_j y with noise, and ridge regression on these.

    Formal guarantee: docs/guarantees/learning.md, theorem 4: the integers of a row have an L2 norm
    of at most sqrt((X**2 + U**2 X) / 2 + U**2 X) where X bounds |x|**2 and U is the step count of
    1.
    """

    identity: ClassVar[tuple[str, ...]] = ("fit_statistics", "design", "loss", "l2")

    method: ClassVar[str] = "noisy statistics"

    @cached_property
    def row(self) -> Sensitivity:
        """Sensitivity of one row's products, in steps of 1 / UNIT**2."""
        x, unit_squared, p = self.design.squared, UNIT**2, self.parameters
        entries = math.isqrt(p * x) + 1  # of |x| in L1
        l2_squared = (x * x + unit_squared * x) // 2 + 1 + unit_squared * x
        return Sensitivity((p * x + x) // 2 + 1 + entries * UNIT, l2_squared)

    def sensitivity(self, unit: Unit) -> Sensitivity:
        times = self.limit(unit) * (2 if unit.replaces else 1)
        return Sensitivity(self.row.l1 * times, self.row.l2_squared * times**2)

    def plan(
        self, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]
    ) -> Plan:
        """Return the plan of a fit by noisy sums of products of columns."""
        sensitivity = self.sensitivity(unit)
        offer = buy_noise([sensitivity], price)
        noise = offer.noises[0]
        step = 1.0 / UNIT**2
        part = Part("sums of products", noise, sensitivity.l1, sensitivity.l2_squared, step)
        error = noise.quantile(0.95) * step
        # The square of a scale may be no double.
        feature_errors = [
            (str(expr), scaled_error * Scaling.of(bounds).half * Scaling.of(bounds).half)
            for (expr, bounds), (_, scaled_error) in zip(
                self._varied, self.in_data_units(error), strict=True
            )
        ]
        expected = (
            f"each sum of products of two columns scaled to [-1, 1] is within ±{error:.4g}; over n rows in which a feature "
            f"has the standard deviation s, that of its product with {self.design.target.expr} alone moves its coefficient "
            f"by {errors_text(feature_errors, '{name} ±{error:.3g} / (n s**2)')}, and the other sums add to it; without l2= "
            f"given, l2={self._ridge(noise, step):.4g}"
        )
        return self.plan_fit(unit, (part,), offer, expected, declared)

    @np.errstate(all="ignore")
    def run(self, data: Engine, plan: Plan, unit: Unit, noise: AddNoise) -> tuple[Array, ...]:
        """Return the exact sums of products over all rows, with noise.

        They are those of each two features (the upper triangle of their matrix, without the
        repeated half), and then of each feature with the target.
        """
        rows = self.design.read(data, unit)
        z = limit_people(rows, self.limit(unit))  # the features, and in the last column the target
        p = self.parameters
        total = np.zeros((p, p + 1), dtype=np.int64)
        for start in range(0, len(z), SIZES.fit_products):
            some = z[start : start + SIZES.fit_products]
            total += (some[:, :p].T @ some).astype(np.int64)
        upper = np.concatenate([total[:, :p][np.triu_indices(p)], total[:, p]])
        return (noise(0, upper[:, None]),)

    def forms(self, plan: Plan, unit: Unit, size: int | None) -> tuple[Form, ...]:
        p = self.parameters
        return (plan.parts[0].noise.form((p * (p + 1) // 2 + p, 1)),)

    @property
    def _varied(self) -> list[tuple[Expr, Bounds]]:
        return [
            (expr, bounds) for expr, bounds in self.design.features if Scaling.of(bounds).half > 0
        ]

    def _ridge(self, noise: Any, step: float) -> float:
        """Return the deviation of the noise in one direction, times the root of their number."""
        return float(noise.deviation * step * math.sqrt(self.parameters))

    def regulariser(self, plan: Plan, unit: Unit) -> float:
        part = plan.parts[0]
        return self._ridge(part.noise, part.step) if self.l2 is None else self.l2

    def coefficients(self, plan: Plan, raw: Any) -> Floats:
        """Return the ridge regression's coefficients from released sums of products. No more
        privacy is lost, by post-processing."""
        part, p = plan.parts[0], self.parameters
        sums = np.asarray(raw[0][:, 0], dtype=np.float64) * part.step
        products = np.zeros((p, p))
        products[np.triu_indices(p)] = sums[: p * (p + 1) // 2]
        products = products + np.triu(products, 1).T
        return ridge(
            products, sums[p * (p + 1) // 2 :], self.l2, self._ridge(part.noise, part.step)
        )


def limit_people(rows: DesignRows, limit: int) -> Floats:
    """Return rows with their target, in whole steps, shrunk so that a person counts as at most
    ``limit`` rows.

    The rows of a person with k > limit rows are multiplied by sqrt(limit / k), and rounded towards
    0. So their products are at most limit / k times as large, and the sums of products still form a
    positive semidefinite matrix.
    """
    z = np.column_stack([rows.x, rows.y])
    if rows.people is not None:
        k = rows.counts()
        over = k > limit
        factor = np.sqrt(limit / k[over]) * (1 - 2.0**-40)
        z[over] = np.trunc(z[over] * factor[:, None])
    return z


def ridge(products: Floats, moments: Floats, l2: float | None, noise: float) -> Floats:
    """Return the coefficients of ridge regression from noisy sums of products.

    ``products`` is the matrix of those of the features, and ``moments`` are those with the target.
    Noise may make eigenvalues of the matrix negative; they count as 0. ``l2`` is the regulariser.
    Without it the regulariser is ``noise``: the deviation of the noise, times the square root of
    the number of coefficients. With l2=0, directions with eigenvalues below ``noise`` are left out.
    """
    values, vectors = np.linalg.eigh(products)
    values = np.maximum(values, 0.0)
    added = noise if l2 is None else l2
    damped = values + added
    inverse = np.where(damped > (noise if added == 0 else 0.0), 1 / np.maximum(damped, 1e-300), 0.0)
    weights: Floats = vectors @ (inverse * (vectors.T @ moments))
    return weights
