"""Gaussian differential privacy: squared mus add (Dong, Roth and Su 2022; as a filter Smith and Thakurta 2022), and
the default filter, `Tight`: the pure sum OR the GDP residue (docs/guarantees/residue.md).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, NamedTuple

from dpframe.accounting import _gaussian
from dpframe.accounting._base import Charge, Filter, Price, failures, pure_sum, stated_gaussian
from dpframe.accounting.loss import Events, Loss, PureDP

_UP = 1 + 1e-12


def pure_for_mu(mu_squared: Fraction) -> Fraction:
    """The largest epsilon, rounded down, whose every release is dominated by this mu: inverse to `_gaussian.pure_mu`.

    >>> round(float(pure_for_mu(Fraction(1, 100))), 5)
    0.0798
    """
    mu = math.sqrt(mu_squared)
    e = (
        2 * math.atanh(math.erf(mu / (2 * math.sqrt(2))))
        if mu < 5
        else math.log(0.5 * math.erfc(-mu / 8**0.5) / (0.5 * math.erfc(mu / 8**0.5)))
    )
    return Fraction(e * (1 - 1e-10))


def mu_squared_sum(losses: Events) -> Fraction | None:
    total = Fraction(0)
    for loss, n in losses:
        if loss.mu_squared is None:
            return None
        total += loss.mu_squared * n
    return total


def mu_share(mu_squared: Fraction, delta: Fraction) -> Price:
    """So much of mu squared, to a Gaussian or to a pure mechanism that it dominates."""
    return Price(pure_for_mu(mu_squared), mu_squared, None, delta)


def mu_stated(epsilon: Fraction, delta: Fraction) -> Price:
    """The Gaussian of this guarantee, or a pure mechanism that it dominates."""
    mu_squared = stated_gaussian(epsilon, delta).mu_squared
    return Price(epsilon) if mu_squared is None else mu_share(mu_squared, delta)


class State(NamedTuple):
    mu_squared: Fraction
    failures: Fraction


class Gdp(Filter):
    """The sum of mu squared against the mu of the budget."""

    name: ClassVar[str] = "gdp"

    @cached_property
    def limit(self) -> Fraction:
        e, d = float(self.limits.epsilon) * (1 - 1e-12), float(self.limits.conversion) * (1 - 1e-12)
        return Fraction(_gaussian.mu_for(e, d)) ** 2

    def start(self) -> State:
        return State(Fraction(0), Fraction(0))

    def after(self, state: State, charge: Charge) -> State | None:
        own = mu_squared_sum(charge.losses)
        if own is None:
            return None
        total = State(state.mu_squared + own, state.failures + charge.failures)
        return total if total.mu_squared <= self.limit and total.failures <= self.limits.reserve else None

    def spent(self, state: State) -> Fraction:
        return state.mu_squared / self.limit

    def share(self, queries: int, state: State) -> Price:
        return mu_share(self.limit / queries, self.limits.conversion)

    def worth(self, epsilon: Fraction, state: State) -> Price:
        mu = Fraction(_gaussian.pure_mu(float(epsilon)) * (1 - 1e-12)) if epsilon < 700 else Fraction(0)
        return Price(epsilon, mu**2 or None, None, self.limits.conversion)

    def gaussian(self, amount: Fraction, queries: int) -> Price | None:
        return Price(None, amount, None, self.limits.conversion)

    def stated(self, epsilon: Fraction, delta: Fraction, state: State) -> Price:
        return mu_stated(epsilon, delta)

    @staticmethod
    def report(events: Events, delta: Fraction) -> float:
        total, left = mu_squared_sum(events), delta - failures(events)
        if total is None or left <= 0:
            return math.inf
        return _gaussian.epsilon_for(math.sqrt(total) * _UP, float(left) * (1 - 1e-12))


class Either(NamedTuple):
    """The two sides of `Tight`. A side that was exceeded is None from then on: it may not be revived."""

    epsilon: Fraction | None
    mu_squared: Fraction | None  # that is left
    failures: Fraction


class Tight(Filter):
    """The pure sum OR the GDP residue, whichever still holds; no part of delta is divided between them.

    The residue is the mu that is left: a debit D takes it from mu to the largest mu' with D and G(mu') together dominated
    by G(mu). Both are debited always. Outright failures come from the reserve, for both sides at once.
    """

    name: ClassVar[str] = "tight"

    @cached_property
    def limit(self) -> Fraction:
        return Gdp(self.limits).limit

    def start(self) -> Either:
        return Either(Fraction(0), self.limit if self.limits.conversion else None, Fraction(0))

    def after(self, state: Either, charge: Charge) -> Either | None:
        lost = state.failures + charge.failures
        if lost > self.limits.reserve:
            return None
        own = charge.epsilon
        epsilon = state.epsilon + own if own is not None and state.epsilon is not None else None
        if epsilon is not None and epsilon > self.limits.epsilon:
            epsilon = None
        left = state.mu_squared
        for loss, n in charge.losses:
            left = None if left is None else residue_after(left, loss, n)
        return None if epsilon is None and left is None else Either(epsilon, left, lost)

    def spent(self, state: Either) -> Fraction:
        used = []
        if state.epsilon is not None:
            used.append(state.epsilon / self.limits.epsilon)
        if state.mu_squared is not None:
            used.append(1 - state.mu_squared / self.limit)
        return min(used)

    def share(self, queries: int, state: Either) -> Price:
        if state.mu_squared is None:
            return Price(self.limits.epsilon / queries)
        return mu_share(self.limit / queries, self.limits.conversion)

    def worth(self, epsilon: Fraction, state: Either) -> Price:
        """A Gaussian for what the residue takes at the start: later it takes more, so the Gaussian costs no more."""
        alive = state.mu_squared is not None
        left = residue_after(self.limit, PureDP(epsilon), 1) if alive else None
        return Price(epsilon, None if left is None else self.limit - left, None, self.limits.conversion)

    def gaussian(self, amount: Fraction, queries: int) -> Price | None:
        return Price(None, amount, None, self.limits.conversion) if self.limits.conversion else None

    def warning(self, before: Either, after: Either) -> str | None:
        if before.mu_squared is None or after.mu_squared is not None:
            return None
        return (
            "this question is too large to be counted together with many small ones, which is what accountant='tight' is good "
            "at, so it is paid from the plain sum of epsilons. From here on that sum is all that guards the budget: no Gaussian "
            "noise, and k questions cost k times one. Smaller questions avoid this, and for a few large ones there is "
            "accountant='pure': see 'How to choose an accountant' (docs/how-to/choose-an-accountant.md)."
        )

    def stated(self, epsilon: Fraction, delta: Fraction, state: Either) -> Price:
        return mu_stated(epsilon, delta) if state.mu_squared is not None else Price(epsilon)

    @staticmethod
    def report(events: Events, delta: Fraction) -> float:
        """The epsilon of the least budget whose filter admits the list in this order."""
        left, pure = delta - failures(events), pure_sum(events)
        sum_of_pure = math.inf if pure is None or left < 0 else float(pure)
        return min(sum_of_pure, _residue_epsilon(events, left) if left > 0 else math.inf)

    def pure_spent(self, state: Either) -> Fraction | None:
        return state.epsilon


def _residue_epsilon(events: Events, delta: Fraction) -> float:
    above = mu_squared_sum(events)  # enough in any case: mu is additive
    if above is None:
        return math.inf
    below = above / 2  # the residue of a pure release is at least 2 / pi of its mu squared
    for _ in range(14):  # to 1e-4 of what lies between, upwards
        middle = (above + below) / 2
        left: Fraction | None = middle
        for loss, n in events:
            left = None if left is None else residue_after(left, loss, n)
        above, below = (middle, below) if left is not None else (above, middle)
    return _gaussian.epsilon_for(math.sqrt(above) * _UP, float(delta) * (1 - 1e-12))


def residue_after(mu_squared: Fraction, loss: Loss, count: int) -> Fraction | None:
    """What is left of mu squared after so many uses; None if they do not fit."""
    left: Fraction | None = mu_squared
    while left is not None and count:
        steps, cost = 1, None
        if count > 8:
            # A cost that holds at some mu holds at every larger one: many steps for one price.
            level = math.sqrt(left) * 2 ** (-1 / 64)
            after = loss.residue(level)
            if after is not None:
                cost = Fraction(level) ** 2 - Fraction(after) ** 2
                room = left - Fraction(level) ** 2
                steps = min(count, int(room / cost) + 1) if cost else count
        if steps > 1 and cost is not None:
            left, count = left - steps * cost, count - steps
            continue
        left, count = _one_after(left, loss), count - 1
    return left


def _one_after(mu_squared: Fraction, loss: Loss) -> Fraction | None:
    found = loss.residue(math.sqrt(mu_squared) * (1 - 1e-15))
    options = [] if found is None else [Fraction(found) ** 2]
    # Gaussian parameters subtract exactly, which the default shares rely on.
    if loss.mu_squared is not None and loss.mu_squared <= mu_squared:
        options.append(mu_squared - loss.mu_squared)
    return max(options, default=None)
