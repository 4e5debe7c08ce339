"""Keys that nobody listed: those that enough people share, found at a price (docs/guarantees/keys.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe._choices import pure
from dpframe._counts import PersonCount
from dpframe._errors import BadValue, BudgetError
from dpframe._expr import Expr
from dpframe._forms import Form
from dpframe._plan import Part, Plan
from dpframe._query import Word
from dpframe._stats import Sensitivity
from dpframe._task import Task
from dpframe._unit import LIMIT, Unit
from dpframe.accounting._base import Price
from dpframe.accounting.loss import ApproxDP, FailingGaussian, Loss
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.threshold import GaussianThreshold, TruncatedThreshold


@dataclass(frozen=True, slots=True)
class KeySearch(Task):
    """Which combinations of values do enough people have?

    ``failure`` is the chance that any key shows which one person alone has; ``gaussian`` whether the session's rule adds
    Gaussian noise as such, and not as (epsilon, delta) pairs.
    """

    exprs: tuple[Expr, ...]
    failure: Fraction
    gaussian: bool
    where: Expr | None = None
    verb: ClassVar[str] = "unique"

    def to_json(self) -> object:
        return {
            "keys of": [e.to_json() for e in self.exprs],
            "failure": str(self.failure),
            "where": None if self.where is None else self.where.to_json(),
        }

    def __str__(self) -> str:
        text = f"keys of {', '.join(map(str, self.exprs))}"
        return text if self.where is None else f"{text} where {self.where}"

    def plan(self, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]) -> Plan:
        if price.mechanism == "exponential":
            raise BadValue(
                'mechanism="exponential" makes choices: keys are found by thresholds, so leave it out.'
            )
        keys = unit.limited(1, None).reach(LIMIT)[1]
        sensitivity = PersonCount().of_person(unit, LIMIT)
        found = self._options(keys, sensitivity, price)
        if not found:
            raise BudgetError(
                "this price buys no key selection: give epsilon=, and open the session with delta > 0."
            )
        noise, loss = min(found, key=lambda one: one[0].half)
        stated_at = self.failure if isinstance(loss, ApproxDP) else price.delta + self.failure
        other = [one for one, _ in found if one is not noise]
        why = f"a key that one person alone has shows with probability {float(self.failure):.3g} at most"
        if other:
            why += f"; {other[0].name} would need {other[0].half:.4g} people"
        part = Part("people of each key", noise, sensitivity.l1, sensitivity.l2_squared, 1.0)
        told = f"a key that {noise.half:.4g} people have is as likely as not to be found"
        return Plan(
            question=str(self),
            neighbors=unit.neighbors,
            loss=loss,
            stated_at=stated_at,
            parts=(part,),
            cells=(),
            groups=1,
            why=why + (f"; a person counts for at most {keys} keys" if unit.people else ""),
            declared=tuple(map(str, declared)),
            told=told,
        )

    def _options(
        self, keys: int, sensitivity: Sensitivity, price: Price
    ) -> list[tuple[TruncatedThreshold | GaussianThreshold, Loss]]:
        found: list[tuple[TruncatedThreshold | GaussianThreshold, Loss]] = []
        if price.epsilon is not None and price.mechanism in ("auto", "laplace"):
            epsilon = pure(price)
            threshold = TruncatedThreshold.for_price(sensitivity.l1, epsilon, self.failure)
            found.append((threshold, ApproxDP(epsilon, self.failure)))
        if self.gaussian and price.mechanism in ("auto", "gaussian"):
            squared, noise = sensitivity.l2_squared, None
            if price.rho is not None:
                noise = Gaussian.for_rho(squared, price.rho)
            elif price.mu_squared is not None:
                noise = Gaussian.for_mu(squared, price.mu_squared)
            if noise is not None:
                loss = FailingGaussian(((noise.variance, Fraction(squared)),), self.failure)
                found.append((GaussianThreshold.at(noise.variance, keys, self.failure), loss))
        return found

    def forms(self, plan: Plan, unit: Unit, size: int | None) -> tuple[Form, ...]:
        return (Form((None,), "U"),)  # how many keys are found is the answer

    def run(self, engine: Any, plan: Plan, unit: Unit) -> tuple[NDArray[Any], ...]:
        texts, counts = engine.occurring(self.exprs, self.where, unit)
        kept = np.flatnonzero(plan.parts[0].noise.release(counts)).tolist()
        single = len(self.exprs) == 1
        return (np.array([texts[i][0] if single else json.dumps(texts[i]) for i in kept], dtype=str),)
