"""Gradient perturbation: noisy gradient steps on people drawn with coins (DP-SGD)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe import _pricing
from dpframe._errors import BudgetError
from dpframe._plan import Part, Plan
from dpframe._progress import progress
from dpframe._query import Word
from dpframe._stats import Sensitivity
from dpframe._unit import Unit
from dpframe.accounting._base import Price
from dpframe.accounting.loss import ApproxDP, DiscreteGaussian, PoissonGaussian
from dpframe.accounting.rdp import Rdp
from dpframe.learn._design import UNIT, Floats, Rows, shrunk
from dpframe.learn._fits import Fit, _pure, l1_of
from dpframe.mechanisms._vector import coins, noisy
from dpframe.mechanisms.gaussian import Gaussian

CLIP = 2**16  # steps of a person's gradient, at most
EVERYBODY = 2**16  # a rate of 1, in the units of coins
_STEP = 2.0**-30  # the grid of the answer, which is post-processing
_CACHED = 2**12  # rows whose columns are read one after the other


@dataclass(frozen=True)
class Descent(Fit):
    """Steps along noisy sums of clipped gradients, one per person, of people drawn anew each time.

    Formal guarantee: docs/guarantees/learning.md, theorem 3. A person's gradient is rounded to whole numbers and then clipped,
    so its norm is an exact integer; the noise is a discrete Gaussian, which a Gaussian pair dominates; and so sampled people
    cost what the sampled Gaussian does.
    """

    clip: float | None = None
    steps: int = 100
    rate: int = EVERYBODY
    delta: Fraction = Fraction(0)
    method: ClassVar[str] = "gradient perturbation"

    def _options(self) -> tuple[Any, ...]:
        return self.clip, self.steps, self.rate, str(self.delta)

    def bound(self, unit: Unit) -> float:
        """The norm to which a person's gradient is clipped, in its own units."""
        widest = self.lipschitz(unit)
        return widest if self.clip is None else min(self.clip, widest)

    def plan(self, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]) -> Plan:
        step = self.bound(unit) / CLIP
        share = self.rate / EVERYBODY
        # Of a replaced person sampling hides less, and it is not counted on.
        sampled = self.rate < EVERYBODY and not unit.replaces
        squared = CLIP**2 * (4 if unit.replaces else 1)
        loss: Any
        if sampled:
            epsilon = _pure(price)
            sigma = sampled_sigma(epsilon, self.delta, Fraction(self.rate, EVERYBODY), self.steps)
            noise = Gaussian.for_mu(squared, 1 / Fraction(sigma) ** 2)
            loss, at = ApproxDP(epsilon, self.delta), self.delta
        else:
            together = Sensitivity(l1_of(squared, self.parameters), squared * self.steps)
            noises, _ = _pricing._noises([together], price._replace(mechanism="gaussian"))
            noise = noises[0]
            loss, at = DiscreteGaussian(parts=[(noise.variance, squared * self.steps)]), price.delta
        part = Part("the sum of clipped gradients", noise, l1_of(squared, self.parameters), squared, step)
        told = (
            f"{self.steps} steps, each on {'everybody' if share == 1 else f'people drawn anew with probability {share:.3g}'}; to "
            f"the sum of gradients a person adds {self.bound(unit):.4g} at most, and the noise of each of its entries has "
            f"deviation {noise.scale * step:.4g}; l2={self.l2 or 0.0:.4g}"
        )
        why = f"one price for {self.steps} steps" + (
            ", by the Renyi curve of the sampled Gaussian" if sampled else ""
        )
        return self.planned(unit, price, (part,), loss, why, told, declared, at)

    @np.errstate(all="ignore")
    def run(self, engine: Any, plan: Plan, unit: Unit) -> tuple[NDArray[Any], ...]:
        part = plan.parts[0]
        assert isinstance(part.noise, Gaussian)
        # `audit.replay` listens to a plan's mechanisms, and cannot judge those whose people are drawn by coins.
        noise = part.noise if self.rate == EVERYBODY else Gaussian(part.noise.variance)
        rows = self.design.read(engine, unit)
        weights, x, y = rows.weights(self.limit(unit)), rows.x / UNIT, rows.y / UNIT
        people = len(y) if rows.people is None else int(rows.people.max(initial=-1)) + 1
        path = Path(self.parameters, self.steps)
        with progress(self.steps, "gradient steps") as bar:
            for _ in range(self.steps):
                drawn = None if self.rate == EVERYBODY else coins(self.rate, people)
                total = self._summed(Rows(x, y, rows.people), weights, path.w, part.step, drawn)
                gradient = noisy(noise, total[:, None])[:, 0].astype(np.float64) * part.step
                path.go(gradient * (EVERYBODY / self.rate) + (self.l2 or 0.0) * path.w)
                bar.step()
        return (np.rint(path.mean / _STEP).astype(np.int64)[:, None],)

    def _summed(
        self, rows: Rows, weights: Floats | None, w: Floats, step: float, drawn: NDArray[Any] | None
    ) -> NDArray[np.int64]:
        """The clipped gradients of the people drawn, in whole steps, added up."""
        x, y, people = rows
        if drawn is not None:
            chosen = np.flatnonzero(drawn if people is None else drawn[people])
            x, y = x[chosen], y[chosen]
            people = None if people is None else people[chosen]
            weights = None if weights is None else weights[chosen]
        slopes = self.loss.first(scores(x, w), y) / step
        if weights is not None:
            slopes = slopes * weights
        each = x * slopes[:, None]
        if people is not None:
            own = np.zeros((int(people.max(initial=-1)) + 1, x.shape[1]))
            for j in range(x.shape[1]):
                own[:, j] = np.bincount(people, weights=each[:, j], minlength=len(own))
            each = own
        found: NDArray[np.int64] = clipped(each).sum(axis=0, dtype=np.int64)
        return found

    def regulariser(self, plan: Plan, unit: Unit) -> float:
        return self.l2 or 0.0

    def coefficients(self, plan: Plan, raw: Any) -> Floats:
        return np.asarray(raw[0][:, 0], dtype=np.float64) * _STEP


def scores(x: Floats, w: Floats) -> Floats:
    """``x @ w``, each row rounded by itself: a product of matrices rounds a row by its place among the others, and then one
    person more would move what others add."""
    found = np.empty(len(x))
    for start in range(0, len(x), _CACHED):
        some = x[start : start + _CACHED]
        own = some[:, 0] * w[0]
        for j in range(1, x.shape[1]):
            own += some[:, j] * w[j]
        found[start : start + _CACHED] = own
    return found


def clipped(gradients: Floats) -> NDArray[np.int64]:
    """Whole numbers, a row a person, whose squared norms are at most CLIP**2, by comparison of integers."""
    whole = np.rint(np.clip(gradients, -(2.0**24), 2.0**24))
    return shrunk(np.where(np.isnan(whole), 0.0, whole), CLIP**2).astype(np.int64)


class Path:
    """Where noisy gradients lead: Adam (Kingma and Ba 2015), whose steps need no scale, and the mean of the later half."""

    def __init__(self, parameters: int, steps: int):
        self.w: Floats = np.zeros(parameters)
        self._first, self._second, self._sum = np.zeros((3, parameters))
        self._done, self._steps = 0, steps

    def go(self, gradient: Floats, rate: float = 0.2) -> None:
        self._done += 1
        t = self._done
        self._first += 0.1 * (gradient - self._first)
        self._second += 0.01 * (gradient * gradient - self._second)
        first, second = self._first / (1 - 0.9**t), self._second / (1 - 0.99**t)
        self.w = self.w - rate * (1 - t / (self._steps + 1)) * first / (np.sqrt(second) + 1e-12)
        if 2 * t > self._steps:
            self._sum += self.w

    @property
    def mean(self) -> Floats:
        found: Floats = self._sum / (self._steps - self._steps // 2)
        return found


@lru_cache(maxsize=256)
def sampled_sigma(epsilon: Fraction, delta: Fraction, rate: Fraction, steps: int) -> float:
    """The least noise, rounded up, with which so many sampled steps are (epsilon, delta)-private."""

    def fits(sigma: float) -> bool:
        events = ((PoissonGaussian(rate, Fraction(sigma)), steps),)
        return Rdp.report(events, delta) <= float(epsilon) * (1 - 1e-9)

    high = 1.0
    while not fits(high):
        high *= 2
        if high > 2.0**60:
            raise BudgetError(
                "this price is too small for so many steps: give a larger epsilon=, or fewer steps."
            )
    low = high / 2
    while low > 2.0**-20 and fits(low):
        low, high = low / 2, low
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high
