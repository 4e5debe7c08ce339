"""The ledger: what was declared and what was spent, in order, for ever. In memory; it ends with the process.

A debit is admitted and recorded under one lock, before the data is read, and there is no way to take one back.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from html import escape

import pandas as pd

from dpframe._errors import BudgetExceeded
from dpframe._plan import Plan
from dpframe.accounting.loss import Loss


@dataclass(frozen=True, slots=True)
class Declaration:
    """A word of the owner's: a fact taken to be public because somebody said so."""

    when: datetime
    what: str
    value: str
    where: str


@dataclass(frozen=True, slots=True)
class Debit:
    """A release that was admitted, whether or not its answer ever left."""

    when: datetime
    plan: Plan


def short(number: Fraction) -> str:
    return f"{float(number):.6g}"


class Ledger:
    """Basic composition: losses add, and their sum may never exceed the budget."""

    def __init__(self, budget: Loss):
        self.budget = budget
        self._spent = Loss(Fraction(0))
        self._debits: list[Debit] = []
        self._declarations: list[Declaration] = []
        self._words: set[tuple[str, str, str]] = set()
        self._lock = threading.RLock()

    @property
    def spent(self) -> Loss:
        return self._spent

    @property
    def remaining(self) -> Loss:
        return self.budget - self._spent

    def declare(self, what: str, value: str, where: str) -> None:
        with self._lock:
            if (what, value, where) not in self._words:
                self._words.add((what, value, where))
                self._declarations.append(Declaration(datetime.now(UTC), what, value, where))

    def debit(self, plan: Plan) -> None:
        """Record the price, or raise `BudgetExceeded` and change nothing."""
        with self._lock:
            after = self._spent + plan.loss
            if not after.fits(self.budget):
                raise BudgetExceeded(self._refusal(plan.loss))
            self._debits.append(Debit(datetime.now(UTC), plan))
            self._spent = after

    def _refusal(self, loss: Loss) -> str:
        left = self.remaining
        what, over, fits = "epsilon", loss.epsilon - left.epsilon, left.epsilon
        if over <= 0:
            what, over, fits = "delta", loss.delta - left.delta, left.delta
        advice = f"The largest {what} that still fits is {short(fits)}." if fits else f"No {what} is left."
        requested = loss.epsilon if what == "epsilon" else loss.delta
        spent = self._spent.epsilon if what == "epsilon" else self._spent.delta
        return (
            f"the budget does not allow this question: {what} requested {short(requested)}, "
            f"spent {short(spent)}, remaining {short(fits)}, short by {short(over)}. {advice} "
            "Nothing was charged. Answers already released stay free to use and to repeat."
        )

    def debits(self) -> pd.DataFrame:
        rows = [
            {
                "when": pd.Timestamp(d.when),
                "question": d.plan.question,
                "mechanism": d.plan.mechanism,
                "scale": d.plan.scale,
                "epsilon": d.plan.epsilon,
                "delta": d.plan.delta,
                "declared": "; ".join(d.plan.declared),
            }
            for d in self._debits
        ]
        columns = ["when", "question", "mechanism", "scale", "epsilon", "delta", "declared"]
        return pd.DataFrame(rows, columns=columns)

    def declarations(self) -> pd.DataFrame:
        rows = [(pd.Timestamp(d.when), d.what, d.value, d.where) for d in self._declarations]
        return pd.DataFrame(rows, columns=["when", "what", "value", "where"])


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent, what was, and what is left. Exact inside; the numbers shown are rounded doubles."""

    total: Loss
    used: Loss
    queries: int

    @property
    def epsilon(self) -> float:
        return float(self.total.epsilon)

    @property
    def delta(self) -> float:
        return float(self.total.delta)

    @property
    def spent(self) -> float:
        """Epsilon spent so far: a valid claim at any time, since it is a plain sum."""
        return float(self.used.epsilon)

    @property
    def remaining(self) -> float:
        return float(self.total.epsilon - self.used.epsilon)

    @property
    def spent_delta(self) -> float:
        return float(self.used.delta)

    @property
    def remaining_delta(self) -> float:
        return float(self.total.delta - self.used.delta)

    @property
    def share(self) -> float:
        """What a question costs that names no price."""
        return float(self.total.epsilon / self.queries)

    def __repr__(self) -> str:
        fraction = float(self.used.epsilon / self.total.epsilon)
        bar = "█" * round(20 * fraction) + "░" * (20 - round(20 * fraction))
        text = f"{bar} {self.spent:.4g} of epsilon {self.epsilon:.4g} spent, {self.remaining:.4g} left"
        if self.total.delta:
            text += f"; delta {self.spent_delta:.3g} of {self.delta:.3g}"
        return text + f" (a share is {self.share:.4g})"

    def _repr_html_(self) -> str:
        percent = 100 * float(self.used.epsilon / self.total.epsilon)
        meter = (
            "<div style='width:22em;height:1em;border:1px solid #888;border-radius:3px;background:#eee'>"
            f"<div style='width:{percent:.1f}%;height:100%;background:#3b6ea5'></div></div>"
        )
        text = f"epsilon: {self.spent:.4g} of {self.epsilon:.4g} spent, {self.remaining:.4g} left"
        if self.total.delta:
            text += f"; delta: {self.spent_delta:.3g} of {self.delta:.3g} spent"
        return f"<div>{meter}<small>{escape(text)}; a share is {self.share:.4g}</small></div>"
