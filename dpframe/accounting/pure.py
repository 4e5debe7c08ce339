"""Basic composition: epsilons add, deltas add (Dwork and Lei 2009; as a filter Rogers et al. 2016, lemma 3.5)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar, NamedTuple

from dpframe.accounting._base import Charge, Filter, Price, failures, stated_gaussian
from dpframe.accounting.loss import Events, Loss


class Sums(NamedTuple):
    epsilon: Fraction
    delta: Fraction


def stated_sums(losses: Events, delta: Fraction) -> Sums | None:
    """Each use as an (epsilon, delta) guarantee, added up; ``delta`` is divided among those that need one."""
    needing = sum(n for loss, n in losses if loss.epsilon is None)
    each = delta / needing if needing else Fraction(0)
    total, lost = Fraction(0), failures(losses)
    for loss, n in losses:
        own = _alone(loss, each)
        if own is None:
            return None
        total += own * n
    return Sums(total, lost + (delta if needing else 0))


def _alone(loss: Loss, delta: Fraction) -> Fraction | None:
    return loss.epsilon if loss.epsilon is not None else loss.epsilon_at(delta)


class Pure(Filter):
    """Exact sums, so that ten debits of 0.1 fill 1. The only rule for delta = 0."""

    name: ClassVar[str] = "pure"
    pairs: ClassVar[bool] = True

    def start(self) -> Sums:
        return Sums(Fraction(0), Fraction(0))

    def after(self, state: Sums, charge: Charge) -> Sums | None:
        own = stated_sums(charge.losses, charge.delta)
        if own is None:
            return None
        total = Sums(state.epsilon + own.epsilon, state.delta + own.delta)
        return total if total.epsilon <= self.limits.epsilon and total.delta <= self.limits.delta else None

    def spent(self, state: Sums) -> Fraction:
        return state.epsilon / self.limits.epsilon

    def share(self, queries: int | Fraction, state: Sums) -> Price:
        e, d = self.limits.epsilon / queries, self.limits.delta / queries
        return stated_gaussian(e, d) if d else Price(e)

    def worth(self, epsilon: Fraction, state: Sums) -> Price:
        return Price(epsilon)

    def gaussian(self, amount: Fraction, queries: int, state: Sums) -> Price | None:
        return stated_gaussian(amount, self.limits.delta / queries) if self.limits.delta else None

    def gaussian_stated(self, epsilon: Fraction, state: Sums) -> Price:
        return stated_gaussian(epsilon, min(self.part(epsilon), Fraction(1)) * self.limits.delta)

    def stated(self, epsilon: Fraction, delta: Fraction, state: Sums) -> Price:
        return stated_gaussian(epsilon, delta)

    @staticmethod
    def report(events: Events, delta: Fraction) -> float:
        left = delta - failures(events)
        sums = stated_sums(events, left) if left >= 0 else None
        return math.inf if sums is None else float(sums.epsilon)

    def pure_spent(self, state: Sums) -> Fraction | None:
        return state.epsilon

    @property
    def delta_limit(self) -> Fraction:
        return self.limits.delta

    def delta_spent(self, state: Sums) -> Fraction:
        return state.delta
