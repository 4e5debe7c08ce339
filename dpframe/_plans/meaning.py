"""What a budget means to one person: what somebody can come to know of a row from all answers.

*Formal guarantee.* Somebody who is sure of everybody else's rows has to tell two laws of the
answers apart, with and without one person, and (epsilon, delta)-privacy is a bound on every such
test (Wasserman and Zhou 2010, theorem 2.4; Kairouz, Oh and Viswanath 2015, theorem 2.1; Dong, Roth
and Su 2022, proposition 2.5). The numbers here are the corners of that bound
(docs/guarantees/session.md#what-a-budget-means-to-one-person).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

RATES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)  # false alarms that the table of `explain` has


class SpentEpsilon(float):
    """Epsilon that may be claimed for the answers so far, where no plain sum holds.

    It is that of the whole budget, at its delta: no smaller claim holds at a moment that depends on
    answers. It is shown with the part of the budget that is used.
    """

    delta: float
    fraction: float

    def __new__(cls, epsilon: float, delta: float, fraction: float) -> SpentEpsilon:
        """Make the number of an epsilon; ``fraction`` is the part of the budget that is used."""
        number = super().__new__(cls, epsilon)
        number.delta, number.fraction = delta, fraction
        return number

    def __reduce__(self) -> tuple[object, ...]:
        return SpentEpsilon, (float(self), self.delta, self.fraction)

    def __repr__(self) -> str:
        return (
            f"at most {float(self):.4g} at delta {self.delta:.3g} "
            f"({100 * self.fraction:.3g} % of the budget used)"
        )

    __str__ = __repr__


@dataclass(frozen=True)
class BudgetMeaning:
    """What (epsilon, delta)-privacy lets somebody come to know of one person.

    That somebody is sure of everybody else's rows, and is sure of this person's with probability
    ``prior`` before the first answer.
    """

    epsilon: float
    delta: float
    prior: float = 0.5

    @property
    def sure(self) -> float:
        """How sure somebody can be after all answers, from 0 to 1.

        With a delta it is the largest chance to guess right, since then no bound holds for
        every outcome.
        """
        if not self.delta:
            return 1 / (1 + (1 - self.prior) / self.prior * math.exp(-min(self.epsilon, 700.0)))
        corners = [(0.0, self.delta), (1 - self.delta, 1.0)]
        alarm = (1 - self.delta) * math.exp(-self.epsilon) / (1 + math.exp(-self.epsilon))
        corners.append((alarm, 1 - alarm))
        both = [self.prior * found + (1 - self.prior) * (1 - false) for false, found in corners]
        return min(1.0, max(both))

    def find_detection(self, false_alarms: float) -> float:
        """Return the largest chance that a test finds somebody who is in the data.

        ``false_alarms`` is the chance with which the test names somebody who is not.
        """
        one_side = math.exp(min(self.epsilon, 700.0)) * false_alarms + self.delta
        other = 1 - math.exp(-self.epsilon) * (1 - self.delta - false_alarms)
        return max(0.0, min(1.0, one_side, other))

    def table(self, false_alarms: Sequence[float] = RATES) -> pd.DataFrame:
        """Return the largest chance of detection for each chance of a false alarm."""
        found = [self.find_detection(rate) for rate in false_alarms]
        index = pd.Index(list(false_alarms), name="false alarms", dtype=float)
        return pd.DataFrame({"detected at most": found}, index=index)

    @property
    def line(self) -> str:
        """One sentence on what the budget means."""
        prior, sure = format_percent(self.prior), format_percent(self.sure)
        end = (
            f"guesses right in at most {sure} of cases"
            if self.delta
            else f"ends at most {sure} sure"
        )
        return f"whoever is sure of everybody else's rows, and {prior} sure about yours, {end}"

    def __str__(self) -> str:
        """Write the meaning as three sentences, each on a line of its own."""
        found = format_percent(self.find_detection(0.05))
        return (
            f"{self.line[0].upper()}{self.line[1:]}.\n"
            "A test that names 5 % of those who are not in the data finds you with a chance of at "
            f"most {found}.\n"
            f"This is about all answers on the budget together: epsilon {self.epsilon:.4g}, "
            f"delta {self.delta:.3g}."
        )

    __repr__ = __str__


def format_percent(chance: float) -> str:
    """Return a probability in percent, rounded; one that is not 1 is not shown as 100 %."""
    for digits in range(14):
        text = f"{100 * chance:.{digits}f}"
        if 0 < float(text) < 100 or chance in (0.0, 1.0):
            return f"{text} %"
    return "100 %" if chance > 0.5 else "0 %"
