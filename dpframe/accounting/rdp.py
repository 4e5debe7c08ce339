"""Renyi differential privacy: divergences at one order add (Mironov 2017, proposition 1).

A filter at ONE order, fixed before the first question (Feldman and Zrnic 2021; Lecuyer 2021). Taking the best order anew at every
step is not a filter: docs/guarantees/accounting.md has the counterexample. A report may take the best order, since
its list was fixed in advance.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Final, NamedTuple

import numpy as np

from dpframe.accounting._base import Charge, Filter, Price, Stake, failures
from dpframe.accounting.loss import Events, Floats, PureDP
from dpframe.accounting.zcdp import root_below, zcdp_rho

_UP = 1 + 1e-12
ORDERS: Final[Floats] = 1 + np.geomspace(0.02, 1e6, 512)


def conversion(orders: Floats, delta: float) -> Floats:
    """What to add to a divergence to get epsilon: log(1 - 1/a) - (log delta + log a) / (a - 1).

    Canonne, Kamath and Steinke (2020), proposition 12; Balle et al. (2020).
    """
    added: Floats = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return added + np.abs(added) * 1e-12


def divergences(losses: Events) -> Floats:
    total = np.zeros(len(ORDERS))
    for loss, n in losses:
        total = (total + n * loss.renyi(ORDERS)) * _UP
    return total


class State(NamedTuple):
    divergence: Fraction
    failures: Fraction


class Rdp(Filter):
    """The order is the one at which the largest number of small releases fits: the limit over the order is largest."""

    name: ClassVar[str] = "rdp"

    @cached_property
    def _fixed(self) -> tuple[float, Fraction]:
        delta = float(self.limits.conversion) * (1 - 1e-12)
        room = float(self.limits.epsilon) * (1 - 1e-12) - conversion(ORDERS, delta)
        best = int(np.argmax(room / ORDERS))
        return float(ORDERS[best]), Fraction(max(float(room[best]), 0.0))

    @property
    def order(self) -> float:
        return self._fixed[0]

    @property
    def limit(self) -> Fraction:
        return self._fixed[1]

    def start(self) -> State:
        return State(Fraction(0), Fraction(0))

    def after(self, state: State, charge: Charge) -> State | None:
        total, order = state.divergence, np.array([self.order])
        for loss, n in charge.losses:
            # What is linear in the order is added exactly, so that equal shares fill the limit.
            own = loss.rho * Fraction(self.order) if loss.rho is not None else None
            curve = float(loss.renyi(order)[0])
            if own is None and not math.isfinite(curve):
                return None
            total += n * (Fraction(curve) if own is None else min(own, Fraction(curve)))
        lost = state.failures + charge.failures
        return State(total, lost) if total <= self.limit and lost <= self.limits.reserve else None

    def spent(self, state: State) -> Fraction:
        return state.divergence / self.limit

    def share(self, queries: int | Fraction, state: State) -> Price:
        rho = self.limit / queries / Fraction(self.order)
        return Price(root_below(2 * rho), None, rho, self.limits.conversion)

    def _cost(self, epsilon: Fraction) -> Fraction:
        """Of a pure release, as `after` counts it."""
        curve = Fraction(float(PureDP(epsilon).renyi(np.array([self.order]))[0]))
        return min(epsilon**2 / 2 * Fraction(self.order), curve)

    def _within(self, most: Fraction) -> Fraction:
        """The largest epsilon that costs no more, rounded down."""
        low, high = root_below(2 * most / Fraction(self.order)), self.limits.epsilon
        for _ in range(50):
            e = Fraction(float(low + high) / 2)
            if not low < e < high:
                break
            low, high = (e, high) if self._cost(e) <= most else (low, e)
        return low

    def worth(self, epsilon: Fraction, state: State) -> Price:
        part = self.part(epsilon)
        own, most = self._cost(epsilon), part * self.limit
        pure = epsilon if own <= most else min(epsilon, self._within(most))
        rho = min(own * (1 - Fraction(1, 10**11)), most) / Fraction(self.order)
        return Price(pure, None, rho, self.limits.conversion, stake=Stake(epsilon, part, scaled=own > most))

    def gaussian(self, amount: Fraction, queries: int, state: State) -> Price | None:
        return Price(None, None, amount, self.limits.conversion)

    def stated(self, epsilon: Fraction, delta: Fraction, state: State) -> Price:
        part = self.part(epsilon)
        own, most = zcdp_rho(epsilon, delta), part * self.limit / Fraction(self.order)
        rho = min(own, most)
        stake = Stake(epsilon, part, scaled=own > most)
        return Price(min(epsilon, root_below(2 * rho)), None, rho, delta, stake=stake)

    @staticmethod
    def report(events: Events, delta: Fraction) -> float:
        left = delta - failures(events)
        if left <= 0:
            return math.inf
        found = divergences(events) + conversion(ORDERS, float(left) * (1 - 1e-12))
        return max(0.0, float(np.min(found)) * _UP)
