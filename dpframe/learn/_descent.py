"""Gradient perturbation: accelerated descent along noisy gradients of everybody, or of people drawn
with coins (DP-SGD)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe._cells.encoding import SHOWN
from dpframe._errors import BudgetError, progress
from dpframe._groups.keys import Word
from dpframe._groups.unit import Unit
from dpframe._plans.plan import Part, Plan
from dpframe._plans.price import buy_noise
from dpframe._questions.question import AddNoise
from dpframe._sizes import SIZES
from dpframe._statistics.base import Sensitivity
from dpframe._statistics.engine import Engine
from dpframe._types import Array
from dpframe.accounting import _search
from dpframe.accounting import loss as losses
from dpframe.accounting._additive import Rdp
from dpframe.accounting._filter import Price
from dpframe.accounting.loss import ApproxDP, DiscreteGaussian, PoissonGaussian
from dpframe.learn._design import UNIT, DesignRows, Floats, shrunk
from dpframe.learn._fits import Fit, l1_of
from dpframe.mechanisms._base import Form, Offer, pure
from dpframe.mechanisms._coins import thrown as coins
from dpframe.mechanisms.noise import GaussianNoise

CLIP = 2**20  # steps of a person's gradient, at most
SIZE_STEPS = 2**16  # steps of a person among all, and of the squared length of their rows
FIRST = 32  # this part of the price buys the number of people and the length of their rows
EVERYBODY = 2**16  # a rate of 1, in the units of coins
_STEP = 2.0**-30  # the grid of the answer, which is post-processing


class Sizes(NamedTuple):
    """The answers of the first release: people, their rows' squared lengths in units of the
    longest, and their deviation."""

    people: float
    lengths: float
    deviation: float


class Costs(NamedTuple):
    """The terms of a bound on how far a fit misses the least sum of losses of n people.

    The sum of losses exceeds that of any coefficients w by at most (noise + sampling
    sqrt(n + uncertain_people)) (|w|**2 + offset) + per_person (n + uncertain_people) |w|**2 + fixed
    |w|**2, in expectation (docs/guarantees/learning.md, theorem 5).
    """

    noise: float  # of the noise in the gradients
    sampling: float  # of the coins that draw people; 0 if each step reads everybody
    offset: float  # what noise costs even if w is 0
    per_person: float  # of ending after finitely many steps
    uncertain_people: float  # how far the noisy number of people may be wrong
    fixed: float  # of the regulariser


@dataclass(frozen=True)
class Descent(Fit):
    """Accelerated steps along noisy sums of clipped gradients, one per person, of everybody or of
    people drawn anew each time.

    Formal guarantee: docs/guarantees/learning.md, theorem 3. A person's gradient is rounded to
    whole numbers and then clipped, so its norm is an exact integer; the noise is a discrete
    Gaussian, which a Gaussian pair dominates; and so sampled people cost what the sampled Gaussian
    does. The length of steps, and the norm of clipping unless it is given, follow from a first
    release, theorem 5: the noise is in whole numbers, and the size of one of them is public by
    then.
    """

    identity: ClassVar[tuple[str, ...]] = (
        "descent",
        "design",
        "loss",
        "l2",
        "clip",
        "steps",
        "rate",
        "stated",
    )

    clip: float | None = None
    steps: int = 100
    rate: int = EVERYBODY
    delta: Fraction = field(default=Fraction(0), metadata=SHOWN)
    stated: str = ""  # as in objective perturbation
    method: ClassVar[str] = "gradient perturbation"

    def __post_init__(self) -> None:
        object.__setattr__(self, "stated", self.stated or str(self.delta or ""))

    def bound(self, unit: Unit) -> float:
        """Return the largest norm to which a person's gradient is clipped, in its own units."""
        widest = self.lipschitz(unit)
        return widest if self.clip is None else min(self.clip, widest)

    def plan(
        self, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]
    ) -> Plan:
        """Return the plan of a fit by noisy gradient steps, within the price.

        A fit makes a first release, of the number of people and the lengths of their rows
        (``before``), and then releases a noisy sum of gradients in each step (``noise``). If each
        step samples people, the loss follows from the Renyi curve of the sampled Gaussian. Else the
        first release takes a part 1 / FIRST of the price.
        """
        # Sampling hides less of a replaced person, and is not counted on there.
        sampled = self.rate < EVERYBODY and not unit.replaces
        moves = 4 if unit.replaces else 1
        squared = CLIP**2 * moves
        first = 2 * SIZE_STEPS**2  # each of the two is from 0 to SIZE_STEPS for any person
        loss: Any
        if sampled:
            epsilon = pure(price)
            sigma = sampled_sigma(epsilon, self.delta, Fraction(self.rate, EVERYBODY), self.steps)
            noise = GaussianNoise.for_mu(squared, 1 / Fraction(sigma) ** 2)
            before = GaussianNoise.for_mu(first, 1 / first_sigma(sigma, self.rate, self.steps) ** 2)
            loss, at = ApproxDP(epsilon, self.delta), self.delta
        else:
            noise = self._share(squared * self.steps * FIRST // (FIRST - 1) + 1, price)
            before = self._share(first * FIRST, price)
            loss = DiscreteGaussian(
                parts=[(noise.variance, squared * self.steps), (before.variance, first)]
            )
            at = price.delta
        step = self.bound(unit) / CLIP
        parts = (
            Part(
                "the sum of clipped gradients",
                noise,
                l1_of(squared, self.parameters),
                squared,
                step,
            ),
            Part(
                "people and the lengths of their rows",
                before,
                l1_of(first, 2),
                first,
                1 / SIZE_STEPS,
            ),
        )
        why = f"one price for {self.steps} steps and what they follow from" + (
            ", by the Renyi curve of the sampled Gaussian" if sampled else ""
        )
        return self.plan_fit(
            unit,
            parts,
            Offer((noise, before), loss, at, why),
            self._error_text(parts, unit),
            declared,
        )

    def _share(self, squared: int, price: Price) -> GaussianNoise:
        """Return the Gaussian noise that the whole price buys for integers with the squared L2
        sensitivity ``squared``."""
        sensitivity = Sensitivity(l1_of(squared, self.parameters), squared)
        noise: GaussianNoise = buy_noise(
            [sensitivity], price.change(mechanism=GaussianNoise.name)
        ).noises[0]
        return noise

    def _error_text(self, parts: tuple[Part, ...], unit: Unit) -> str:
        """Return a text for the plan about the expected error of the fit.

        The fit exceeds the least sum of losses by at most a noise term, a term per person and a
        fixed one, which the text adds up as a formula in the number of people n.
        """
        share, step = self.rate / EVERYBODY, parts[0].step
        who = "everybody" if share == 1 else f"people drawn anew with probability {share:.3g}"
        most = (
            "at most"
            if self.clip is not None
            else "at most, or what is typical of their rows if that is less"
        )
        costs = self.costs(parts, unit)
        noise = f"{costs.noise:.4g}"
        if costs.sampling:
            noise = f"({noise} + {costs.sampling:.3g} sqrt(n + {costs.uncertain_people:.3g}))"
        return (
            f"{self.steps} steps, each on {who}; to the sum of gradients a person adds {self.bound(unit):.4g} {most}, and "
            f"the noise of each of its entries has deviation {parts[0].noise.scale * step:.4g}; l2={self.l2 or 0.0:.4g}; of n "
            f"people the sum of losses, as clipped, exceeds that of any coefficients w of scaled features by "
            f"{noise} (|w|**2 + {costs.offset:.3g}) + {costs.per_person:.3g} (n + {costs.uncertain_people:.3g}) |w|**2 "
            f"+ {costs.fixed:.3g} |w|**2 at most, in expectation"
        )

    def costs(self, parts: tuple[Part, ...], unit: Unit) -> Costs:
        """Return the terms of the bound on the excess loss, for the largest clipping norm.

        They grow with that norm. ``parts`` are the two releases of a fit: the gradients, and the
        sizes before them. In the body ``p`` is the number of coefficients, ``t`` that of steps, and
        ``share`` the probability with which a person is drawn.
        """
        gradients, sizes = parts
        share, p, t = self.rate / EVERYBODY, self.parameters, self.steps
        # Sums over drawn people are divided by their share, and the noise with them.
        sigma = gradients.noise.scale * gradients.step / share
        # How fast accelerated descent without noise comes near, and the largest curvature that a
        # person adds to the sum of losses.
        speed = 4 / (t * (t + 1))
        curve = self.loss.curve * self.limit(unit) * self.design.length**2
        return Costs(
            noise=sigma * math.sqrt(p / (3 * t)),
            sampling=self.bound(unit) * math.sqrt((1 - share) / share / (3 * t)),
            offset=2 * (t + 2) / (t + 1),
            per_person=speed * curve,
            # Three deviations of the noise, to either side.
            uncertain_people=6 * sizes.noise.scale * sizes.step,
            fixed=(speed + 0.5) * (self.l2 or 0.0),
        )

    @np.errstate(all="ignore")
    def run(self, data: Engine, plan: Plan, unit: Unit, noise: AddNoise) -> tuple[Array, ...]:
        """Fit the model: in each step add noise to the exact sum of clipped gradients, and move the
        coefficients.

        The first release gives noisy sizes of the data, from which the clipping norm and the step
        lengths follow. The coefficients at the end are returned as whole multiples of `_STEP`. They
        follow from noisy releases alone.
        """
        gradients, first = plan.parts
        rows = self.design.read(data, unit)
        weights = rows.weights(self.limit(unit))
        each = self._sizes(rows, weights, unit)
        people_and_lengths = (
            noise(1, each.sum(axis=0)[:, None])[:, 0].astype(np.float64) * first.step
        )
        sizes = Sizes(
            float(people_and_lengths[0]),
            float(people_and_lengths[1]),
            first.noise.scale * first.step,
        )
        step = self.clipping(sizes, unit) / CLIP
        path = Path(
            self.parameters, self.stride(sizes, gradients.noise.scale * step, step * CLIP, unit)
        )
        x, y, people = rows.x / UNIT, rows.y / UNIT, len(each)
        for _ in progress(self.steps, "gradient steps"):
            drawn = None if self.rate == EVERYBODY else coins(self.rate, people)
            total = self.sum_gradients(
                DesignRows(x, y, rows.people), weights, path.here, step, drawn
            )[:, None]
            # Sums over people drawn by coins cannot be compared between two runs, so an audit does
            # not get them.
            noisy = noise(0, total) if drawn is None else gradients.noise.release(total)
            gradient = noisy[:, 0].astype(np.float64) * step
            path.go(gradient * (EVERYBODY / self.rate) + (self.l2 or 0.0) * path.here)
        return (np.rint(np.clip(path.w / _STEP, -(2.0**62), 2.0**62)).astype(np.int64)[:, None],)

    def forms(self, plan: Plan, unit: Unit, size: int | None) -> tuple[Form, ...]:
        return (Form((self.parameters, 1), "i"),)  # where the path ends, in steps

    def _sizes(self, rows: DesignRows, weights: Floats | None, unit: Unit) -> NDArray[np.int64]:
        """Return two whole numbers for each person, which the first release adds up.

        The first is the constant SIZE_STEPS, so that the sum tells the number of people. The second
        is the sum of the squared lengths of their rows, from 0 to SIZE_STEPS for the largest
        possible.
        """
        lengths = (rows.x * rows.x).sum(axis=1)  # whole numbers below 2**53: exact
        if rows.people is not None and weights is not None:
            lengths = np.bincount(rows.people, weights=lengths * weights)
        shares = np.ceil(lengths * (SIZE_STEPS / (self.design.squared * self.limit(unit))))
        steps = np.clip(shares, 0, SIZE_STEPS).astype(np.int64)
        return np.column_stack([np.full(len(steps), SIZE_STEPS, dtype=np.int64), steps])

    def clipping(self, sizes: Sizes, unit: Unit) -> float:
        """Return the norm to which gradients are clipped.

        Without ``clip`` it is that of the steepest gradient over rows of typical length. ``sizes``
        are noisy, so the typical length is bounded from above, by two deviations of the noise.
        """
        if self.clip is not None:
            return self.bound(unit)
        people = sizes.people - 2 * sizes.deviation
        typical = (sizes.lengths + 2 * sizes.deviation) / people if people > 0 else 1.0
        return self.bound(unit) * math.sqrt(min(1.0, max(typical, 2.0**-20)))

    def stride(self, sizes: Sizes, deviation: float, clip: float, unit: Unit) -> float:
        """Return the unit of step lengths for gradient descent.

        It is the one with the least error bound for this noise and coefficients of length 1, unless
        the curvature needs a shorter one. ``sizes`` are the noisy sizes of the data, ``deviation``
        is that of the noise in a sum of gradients, and ``clip`` the clipping norm. In the body
        ``t`` is the number of steps, and ``share`` the probability with which a person is drawn.
        """
        t, share = self.steps, self.rate / EVERYBODY
        most = max(sizes.people + 3 * sizes.deviation, 0.0)
        square = self.parameters * (deviation / share) ** 2 + most * clip**2 * (1 - share) / share
        noise = math.sqrt(3 * t / square) if square > 0 else math.inf
        lengths = max(sizes.lengths + 3 * sizes.deviation, 0.0)
        curve = self.loss.curve * self.limit(unit) * self.design.length**2 * lengths + (
            self.l2 or 0.0
        )
        return min(2 * noise / (t * (t + 1)), 1 / max(2 * curve, 2.0**-100))

    def sum_gradients(
        self,
        rows: DesignRows,
        weights: Floats | None,
        w: Floats,
        step: float,
        drawn: Array | None,
    ) -> NDArray[np.int64]:
        """Return the exact sum of the clipped gradients of the people drawn, in whole steps.

        ``w`` are the coefficients, and ``step`` is the size of a step. ``weights`` has a weight for
        each row, or is None. ``drawn`` is a mask of people; None means everybody. If a person has
        several rows, the sum of their gradients is clipped.
        """
        x, y, people = rows
        if drawn is not None:
            chosen = np.flatnonzero(drawn if people is None else drawn[people])
            x, y = x[chosen], y[chosen]
            people = None if people is None else people[chosen]
            weights = None if weights is None else weights[chosen]
        slopes = self.loss.first(scores(x, w), y) / step
        if weights is not None:
            slopes = slopes * weights
        sums = np.zeros(x.shape[1], dtype=np.int64)
        if people is None:
            for start in range(0, len(x), SIZES.fit_rows):
                block = slice(start, start + SIZES.fit_rows)
                sums += clip_gradients(x[block] * slopes[block, None]).sum(axis=0, dtype=np.int64)
            return sums
        gradients = np.zeros((int(people.max(initial=-1)) + 1, x.shape[1]))
        for j in range(x.shape[1]):
            gradients[:, j] = np.bincount(
                people, weights=x[:, j] * slopes, minlength=len(gradients)
            )
        sums += clip_gradients(gradients).sum(axis=0, dtype=np.int64)
        return sums

    def regulariser(self, plan: Plan, unit: Unit) -> float:
        return self.l2 or 0.0

    def coefficients(self, plan: Plan, raw: Any) -> Floats:
        return np.asarray(raw[0][:, 0], dtype=np.float64) * _STEP


def scores(x: Floats, w: Floats) -> Floats:
    """Return ``x @ w``, each row rounded by itself. A product of matrices may round a row by its
    position, so that one more person would change the gradients of others."""
    products = np.empty(len(x))
    for start in range(0, len(x), SIZES.fit_rows):
        some = x[start : start + SIZES.fit_rows]
        block = some[:, 0] * w[0]
        for j in range(1, x.shape[1]):
            block += some[:, j] * w[j]
        products[start : start + SIZES.fit_rows] = block
    return products


def clip_gradients(gradients: Floats) -> NDArray[np.int64]:
    """Return the gradients as whole numbers, a row for each person, with squared norms of at most
    CLIP**2. Integers are compared, so that the sensitivity holds exactly."""
    whole = np.clip(gradients, -(2.0**30), 2.0**30)
    np.rint(whole, out=whole)
    null = np.isnan(whole)
    if null.any():
        whole[null] = 0.0
    return shrunk(whole, CLIP**2).astype(np.int64)


class Path:
    """Accelerated descent along noisy gradients (Nesterov 1983, Lan 2012), with steps that grow
    from ``stride / 2`` on."""

    def __init__(self, parameters: int, stride: float):
        self.w, self._ahead = np.zeros((2, parameters))
        self._stride, self._done = stride, 0

    @property
    def here(self) -> Floats:
        """The point at which the next gradient is taken."""
        point: Floats = self.w + 2 / (self._done + 2) * (self._ahead - self.w)
        return point

    def go(self, gradient: Floats) -> None:
        self._ahead = self._ahead - self._stride * (self._done + 1) / 2 * gradient
        self.w = self.here
        self._done += 1


@lru_cache(maxsize=256)
def sampled_sigma(epsilon: Fraction, delta: Fraction, rate: Fraction, steps: int) -> float:
    """Return the least noise deviation, rounded up, at which `steps` steps on sampled people are
    (epsilon, delta)-private.

    It is for a sensitivity of 1. The first release is counted too, with the noise of `first_sigma`.
    ``rate`` is the probability with which a person is drawn.
    """

    def fits(sigma: float) -> bool:
        first = losses.Gaussian(first_sigma(sigma, int(rate * EVERYBODY), steps))
        events = ((PoissonGaussian(rate, Fraction(sigma)), steps), (first, 1))
        return Rdp.report(events, delta) <= float(epsilon) * (1 - 1e-9)

    high = 1.0
    while not fits(high):
        high *= 2
        if high > 2.0**60:
            raise BudgetError(
                "this price is too small for these steps: give a larger epsilon=, or fewer steps."
            )
    low = high / 2
    while low > 2.0**-20 and fits(low):
        low, high = low / 2, low
    return _search.first_where(fits, low, high, rounds=30)


def first_sigma(sigma: float, rate: int, steps: int) -> Fraction:
    """Return the noise deviation of the first release, beside sampled steps with noise ``sigma``.

    Both are for a sensitivity of 1. The first release then costs about a part 1 / FIRST of the
    whole. ``rate`` is in units of 1 / EVERYBODY.
    """
    return Fraction(sigma * math.sqrt((FIRST - 1) / steps) * EVERYBODY / rate)
