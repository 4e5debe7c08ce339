"""The base of fits, and output perturbation: a plan from public numbers, and coefficients on a
public grid."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpframe._expr import Expr
from dpframe._groups.keys import Keys, Word, describe
from dpframe._groups.unit import Unit
from dpframe._plans.plan import Part, Plan
from dpframe._plans.price import buy_noise
from dpframe._questions.question import AddNoise, Question
from dpframe._statistics.base import Sensitivity
from dpframe._statistics.engine import Engine
from dpframe._types import Array
from dpframe.accounting._filter import Price
from dpframe.learn._design import UNIT, Design, DesignRows, Floats, Scaling
from dpframe.learn._solve import Problem, ScoreLoss, minimise
from dpframe.mechanisms._base import Form, Offer

UP = 1 + 1e-9  # covers the roundings of each public number below, a thousand times over
GAMMA = 2.0**-20  # the gradient that is left, in units of what one person can change
SPREAD = 0.0625  # of a scaled coefficient under output noise, over the curvature, where nobody has said how much to regularise


@dataclass(frozen=True)
class Fit(Question):
    """The question for a fitted model: rows, loss and regulariser. Kinds add their method."""

    design: Design
    loss: ScoreLoss
    l2: float | None
    method: ClassVar[str]
    verb: ClassVar[str] = "fit"

    @property
    def where(self) -> Expr | None:
        return self.design.where

    @property
    def parameters(self) -> int:
        return self.design.parameters

    def __str__(self) -> str:
        """Return the fit in words, as a plan shows it."""
        features = ", ".join(str(e) for e, _ in self.design.features)
        where = "" if self.where is None else f" where {self.where}"
        target = self.design.target
        model, two = (
            ("linear", "")
            if target.classes is None
            else ("logistic", f" ({_pair(target.classes)})")
        )
        return f"{model} regression of {target.expr}{two} on {features}{where}, {self.method}"

    def limit(self, unit: Unit) -> int:
        """Return the number of rows for which a person counts."""
        return unit.reach(None)[0]

    def lipschitz(self, unit: Unit) -> float:
        """Return the largest norm of one person's gradient, rounded up."""
        return self.limit(unit) * self.loss.slope * self.design.length * UP

    def problem(self, rows: DesignRows, unit: Unit, l2: float, linear: Floats) -> Problem:
        x = np.divide(rows.x, UNIT, out=rows.x)  # the rows are this fit's own
        return Problem(x, rows.y / UNIT, rows.weights(self.limit(unit)), self.loss, l2, linear)

    def plan_fit(
        self,
        unit: Unit,
        parts: tuple[Part, ...],
        offer: Offer,
        expected: str,
        declared: tuple[Word, ...],
    ) -> Plan:
        """Return the plan of a fit. ``parts`` are its noisy vectors, ``offer`` has the privacy
        loss, and ``expected`` is a text about the error."""
        limit = unit.limit(False)
        return Plan(
            str(self),
            unit.neighbors,
            offer.loss,
            offer.stated_at,
            parts,
            (),
            1,
            offer.why + ("" if limit is None else f"; {limit}"),
            tuple(map(str, declared)),
            expected,
            caps=() if limit is None else (limit,),
        )

    def in_data_units(self, scaled: float) -> list[tuple[str, float]]:
        """Return the error of a coefficient of scaled features in the units of each feature, by
        name. Features that their bounds make constant are left out."""
        target = self.design.target.bounds
        goal = 1.0 if target is None else Scaling.of(target).half
        halves = [(str(e), Scaling.of(b).half) for e, b in self.design.features]
        return [(name, scaled * goal / half) for name, half in halves if half > 0]

    def forms(self, plan: Plan, unit: Unit, size: int | None) -> tuple[Form, ...]:
        return (plan.parts[-1].noise.form((self.parameters, 1)),)

    @abstractmethod
    def regulariser(self, plan: Plan, unit: Unit) -> float:
        """Return the l2 that was used, as given or chosen."""

    @abstractmethod
    def coefficients(self, plan: Plan, raw: object) -> Floats:
        """Return the coefficients in scaled units, intercept first, from the released integers."""


SHOWN = 8  # features whose own error a plan tells


def errors_text(errors: list[tuple[str, float]], form: str = "{name} ±{error:.3g}") -> str:
    """Return errors by feature, as text."""
    texts = [form.format(name=name, error=error) for name, error in errors[:SHOWN]]
    return ", ".join(texts) + (", ..." if len(errors) > SHOWN else "")


def _pair(classes: Keys) -> str:
    negative, positive = (describe(k) for k in classes.index.tolist())
    return f"{positive} against {negative}"


def power_below(x: float) -> float:
    """Return the largest power of two that is not above x."""
    return math.ldexp(1.0, math.frexp(x)[1] - 1)


def l1_of(l2_squared: int, length: int) -> int:
    """Return a bound on the L1 norm of an integer vector with ``length`` entries and this squared
    L2 norm."""
    return math.isqrt(length * l2_squared) + 1


@dataclass(frozen=True)
class OutputFit(Fit):
    """The minimum of the regularised objective, with noise on it.

    Formal guarantee: docs/guarantees/learning.md, theorem 1. One person moves the minimum by at
    most lipschitz / l2 (twice that if replaced), a point with a gradient below gamma is within
    gamma / l2 of it, and rounding moves each coefficient by half a step at most; the integers that
    follow have discrete noise for that sensitivity.
    """

    identity: ClassVar[tuple[str, ...]] = ("fit_output", "design", "loss", "l2")

    method: ClassVar[str] = "output perturbation"

    def _l2(self, unit: Unit, price: Price) -> float:
        """Return the strength of the regulariser: as given, or a power of two that keeps the noise
        of coefficients small."""
        if self.l2 is not None:
            return self.l2
        step, sensitivity = self._grid(self.lipschitz(unit), unit)
        noise = buy_noise([sensitivity], price).noises[0]
        return 2 * power_below(noise.deviation * step * self.loss.curve / SPREAD)

    def _grid(self, distance: float, unit: Unit) -> tuple[float, Sensitivity]:
        """Return the size of a step for the coefficients, and their sensitivity in such steps.
        ``distance`` is how far one person moves the minimum."""
        moves = (2 if unit.replaces else 1) + 2 * GAMMA
        step = power_below(distance) * 2.0**-20
        steps = math.ceil(distance * moves * UP / step) + math.isqrt(self.parameters) + 1
        return step, Sensitivity(l1_of(steps**2, self.parameters), steps**2)

    def plan(
        self, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]
    ) -> Plan:
        """Return the plan of a fit by noise on the minimum, from the minimum's L2 sensitivity."""
        l2 = self._l2(unit, price)
        step, sensitivity = self._grid(self.lipschitz(unit) / l2, unit)
        offer = buy_noise([sensitivity], price)
        noise = offer.noises[0]
        part = Part(
            "coefficients of scaled features", noise, sensitivity.l1, sensitivity.l2_squared, step
        )
        error = noise.quantile(0.95) * step
        expected = (
            f"a coefficient of a feature scaled to [-1, 1] is within ±{error:.3g} of the fit without noise at l2={l2:.4g}; in "
            f"units of the data: {errors_text(self.in_data_units(error))}"
        )
        return self.plan_fit(unit, (part,), offer, expected, declared)

    @np.errstate(all="ignore")  # no warning may tell of a value
    def run(self, data: Engine, plan: Plan, unit: Unit, noise: AddNoise) -> tuple[Array, ...]:
        """Return the noisy coefficients that minimise the regularised objective, as whole steps."""
        part, l2 = plan.parts[0], self.regulariser(plan, unit)
        rows = self.design.read(data, unit)
        problem = self.problem(rows, unit, l2, np.zeros(self.parameters))
        w = minimise(problem, self.lipschitz(unit) * GAMMA)
        return (noise(0, np.rint(w / part.step).astype(np.int64)[:, None]),)

    def coefficients(self, plan: Plan, raw: Any) -> Floats:
        return np.asarray(raw[0][:, 0], dtype=np.float64) * plan.parts[0].step

    def regulariser(self, plan: Plan, unit: Unit) -> float:
        """Return the strength of the regulariser that a plan was made with."""
        # A chosen regulariser is a power of two, so it follows from the step.
        return (
            power_below(self.lipschitz(unit)) * 2.0**-20 / plan.parts[0].step
            if self.l2 is None
            else self.l2
        )
