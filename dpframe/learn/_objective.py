"""Objective perturbation with approximate minima: noise in the objective, and a little on the
minimum that the solver returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import special

from dpframe._cells.encoding import SHOWN
from dpframe._errors import BudgetError
from dpframe._groups.keys import Word
from dpframe._groups.unit import Unit
from dpframe._plans.plan import Part, Plan
from dpframe._questions.question import AddNoise
from dpframe._statistics.engine import Engine
from dpframe._types import Array
from dpframe.accounting import _gaussian, _search
from dpframe.accounting._filter import Price
from dpframe.accounting.loss import ApproxDP
from dpframe.learn._design import Floats
from dpframe.learn._fits import GAMMA, UP, Fit, l1_of, power_below
from dpframe.learn._solve import minimise
from dpframe.mechanisms._base import Offer, pure
from dpframe.mechanisms.noise import GaussianNoise, LaplaceNoise

OUTPUT = Fraction(1, 32)  # of epsilon, for what the solver leaves
CURVATURE = 0.25  # of epsilon, at most, for the Hessian
FINE = 2.0**-40  # the grid of the noise in the objective, in deviations
_TAIL = Fraction(1, 2**900)  # of a Gaussian coordinate beyond 36 deviations


class ObjectiveNumbers(NamedTuple):
    """The numbers that follow from the price: the regulariser, the noise in the objective and the
    noise after it."""

    l2: float
    sigma: float
    step: float  # of the noise in the objective
    solved: float  # how far the gradient may be from 0 for the noise on its grid
    gamma: float  # and for the noise that has a density
    out: float  # the step of the answer


@dataclass(frozen=True)
class Objective(Fit):
    """The minimum of the objective with a random linear term, approximate, and noise that covers
    how approximate.

    Formal guarantee: (epsilon, delta)-DP, docs/guarantees/learning.md, theorem 2. ``delta`` may be
    a share of the reserve and so depend on what is spent; the question is identified by ``stated``
    in its place.
    """

    identity: ClassVar[tuple[str, ...]] = ("fit_objective", "design", "loss", "l2", "stated")

    delta: Fraction = field(default=Fraction(0), metadata=SHOWN)
    stated: str = ""
    method: ClassVar[str] = "objective perturbation"

    def __post_init__(self) -> None:
        object.__setattr__(self, "stated", self.stated or str(self.delta or ""))

    def numbers(self, unit: Unit, epsilon: Fraction) -> ObjectiveNumbers:
        """Return the constants of objective perturbation at this epsilon: the regulariser, the
        noise scales and the precision.

        They follow from public facts, and each is rounded towards privacy. Epsilon is spent on
        three things: the noise on the minimum (the part OUTPUT), the change of curvature by one
        person (``spent``), and the noise in the objective (``remaining``). ``eta`` bounds what
        rounding the noise to a grid adds.
        """
        p = self.parameters
        reach = self.lipschitz(unit)
        # The Hessian of a row has rank 1; rows of a person, each weighed down, have any rank.
        rank = p if unit.people else 1
        trace = self.limit(unit) * self.loss.curve * self.design.length**2 * UP
        e = float(epsilon)
        needed = trace / rank / math.expm1(min(CURVATURE * e / rank, 700.0)) * UP
        l2 = max(needed, self.l2 or 0.0)
        spent = rank * math.log1p(trace / (rank * l2)) * UP
        moved, directions = (2 * reach, min(2 * rank, p)) if unit.replaces else (reach, rank)
        mu_most = 64.0  # so that the bound on the grid of the noise is known before mu is
        eta = p * (41 + mu_most) * FINE
        remaining = (float(epsilon * (1 - OUTPUT)) - spent - 2 * eta) * (1 - 1e-9)
        failure = float(self.delta - p * _TAIL) * (1 - 1e-9) / math.exp(eta)
        if remaining <= 0 or failure <= 0:
            raise BudgetError(
                "this price is too small for objective perturbation: give a larger epsilon=."
            )
        mu = min(largest_mu(remaining, failure, directions), mu_most) * (1 - 1e-9)
        sigma = moved / mu
        step = power_below(sigma) * FINE
        # The second part is for noise so large that doubles round it by as much.
        solved = reach * GAMMA + sigma * FINE
        gamma = solved + step * math.sqrt(p)
        return ObjectiveNumbers(l2, sigma, step, solved, gamma, power_below(gamma / l2))

    def plan(
        self, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]
    ) -> Plan:
        """Return the plan of a fit by objective perturbation: noise in the objective, and noise on
        its minimum."""
        epsilon, p = pure(price), self.parameters
        numbers = self.numbers(unit, epsilon)
        moved = self.lipschitz(unit) * (2 if unit.replaces else 1)
        # Noise in the objective: on its own grid, so that its parameters are whole numbers.
        inside = math.ceil(moved / numbers.step * UP)
        first = GaussianNoise(Fraction(math.ceil((numbers.sigma / numbers.step) ** 2 * UP)))
        steps = math.ceil(2 * numbers.gamma / numbers.l2 / numbers.out * UP) + math.isqrt(p) + 1
        after = LaplaceNoise.for_price(l1_of(steps**2, p), epsilon * OUTPUT)
        parts = (
            Part(
                "the gradient of the objective", first, l1_of(inside**2, p), inside**2, numbers.step
            ),
            Part("the minimum that was found", after, l1_of(steps**2, p), steps**2, numbers.out),
        )
        noise, penalty = self.excess(numbers)
        expected = (
            f"the sum of losses exceeds that of any coefficients w of scaled features by ({noise:.4g} + {penalty:.4g} |w|)**2 at "
            f"most, with probability 0.95 (loose: it holds for rows that say nothing in any direction, and what they say "
            f"leaves a small part of it); l2={numbers.l2:.4g}; the noise of the gradient has deviation {numbers.sigma:.4g}"
        )
        why = "objective perturbation, whose noise the data outweigh as they grow"
        offer = Offer((first, after), ApproxDP(epsilon, self.delta), self.delta, why)
        return self.plan_fit(unit, parts, offer, expected, declared)

    def excess(self, numbers: ObjectiveNumbers) -> tuple[float, float]:
        """Return two numbers a and b: with probability 0.95 the sum of losses exceeds that of any
        coefficients w by (a + b |w|)**2 at most.

        The first comes from the noise, and the second from the regulariser
        (docs/guarantees/learning.md, theorem 6).
        """
        length = numbers.sigma * math.sqrt(float(special.chdtri(self.parameters, 0.05)))
        return length / (2 * math.sqrt(numbers.l2)) * UP, math.sqrt(numbers.l2) / 2 * UP

    @np.errstate(all="ignore")
    def run(self, data: Engine, plan: Plan, unit: Unit, noise: AddNoise) -> tuple[Array, ...]:
        """Fit the model: add a random linear term to the objective, minimise it, and return the
        minimum with noise."""
        first, after = plan.parts
        assert isinstance(plan.loss, ApproxDP)
        numbers = self.numbers(unit, plan.loss.epsilon)
        zero = np.zeros((self.parameters, 1), dtype=np.int64)
        # Not by the noise that is handed in: an audit compares the integers which that gets, and
        # these are always zeros.
        linear = (
            first.noise.release(zero)[:, 0].astype(np.float64) * first.step
        )  # whole numbers below 2**53
        rows = self.design.read(data, unit)
        problem = self.problem(rows, unit, numbers.l2, linear)
        w = minimise(problem, numbers.solved)
        return (noise(1, np.rint(w / after.step).astype(np.int64)[:, None]),)

    def regulariser(self, plan: Plan, unit: Unit) -> float:
        assert isinstance(plan.loss, ApproxDP)
        return self.numbers(unit, plan.loss.epsilon).l2

    def coefficients(self, plan: Plan, raw: Any) -> Floats:
        return np.asarray(raw[0][:, 0], dtype=np.float64) * plan.parts[1].step


def largest_mu(epsilon: float, delta: float, directions: int) -> float:
    """Return the largest mu, rounded down, at which mu |N| + mu**2 / 2 exceeds epsilon with
    probability delta at most.

    That expression is the privacy loss of the noise in the objective, and mu is the sensitivity
    over the deviation of the noise. |N| is the length of a standard Gaussian vector with
    ``directions`` dimensions. With one dimension, the delta of a Gaussian pair is enough on each
    side, if epsilon >= mu**2 / 2.
    """
    if directions == 1:
        return min(_gaussian.mu_for(epsilon, delta / 2), math.sqrt(2 * epsilon) * (1 - 1e-12))

    def fits(mu: float) -> bool:
        """Return whether this mu keeps the probability of a loss above epsilon within delta."""
        far = epsilon / mu - mu / 2
        return (
            far > 0
            and float(special.gammaincc(directions / 2, far * far / 2)) * (1 + 1e-9) <= delta
        )

    return _search.last_where(fits, 0.0, math.sqrt(2 * epsilon), rounds=100)
