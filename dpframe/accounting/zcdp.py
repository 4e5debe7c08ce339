"""Zero-concentrated differential privacy: rhos add (Bun and Steinke 2016; as a filter Whitehouse et al. 2023)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple

from dpframe.accounting._base import Charge, Filter, Price, Stake, failures
from dpframe.accounting.loss import Events, Loss

# Covers the rounding of the few dozen double operations below a thousand times over.
_SLACK = 1e-9


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The least delta that proposition 12 of Canonne, Kamath and Steinke (2020) gives for rho-zCDP.

    The minimum over orders a > 1 of exp((a - 1)(a rho - epsilon) + a log1p(-1/a)) / (a - 1); any order is valid,
    so an inexact search only makes the answer safer.
    """

    def exponent(log_excess: float) -> float:
        x = math.exp(log_excess)  # a - 1
        return x * ((1 + x) * rho - epsilon) - (1 + x) * math.log1p(1 / x) - math.log(x)

    low, high = -30.0, 40.0
    for _ in range(70):
        third = (high - low) / 3
        if exponent(low + third) < exponent(high - third):
            high -= third
        else:
            low += third
    return math.exp(min(0.0, exponent((low + high) / 2))) * (1 + _SLACK)


@lru_cache(maxsize=1024)
def zcdp_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho (rounded down) such that rho-zCDP implies (epsilon, delta)-DP.

    >>> round(float(zcdp_rho(Fraction(1), Fraction(1, 10**6))), 6)
    0.024356
    """
    e, d = float(epsilon) * (1 - _SLACK), float(delta) * (1 - _SLACK)
    low, high = 1e-40, e + 1.0  # at every order rho-zCDP has an epsilon of at least rho
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if zcdp_delta(middle, e) <= d else (low, middle)
    return Fraction(low * (1 - 2 * _SLACK))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The least epsilon, rounded up, that the same proposition gives.

    >>> round(zcdp_epsilon(0.02435, 1e-6), 3)
    1.0
    """
    if rho <= 0:
        return 0.0
    if delta <= 0:
        return math.inf
    low, high = (
        0.0,
        rho + 2 * math.sqrt(rho * math.log(1 / delta)) + 1e-300,
    )  # proposition 1.3 of Bun and Steinke
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if zcdp_delta(rho, middle) <= delta * (1 - _SLACK) else (middle, high)
    return high * (1 + _SLACK)


class State(NamedTuple):
    rho: Fraction
    failures: Fraction


def root_below(square: Fraction) -> Fraction:
    """A rational just below the square root."""
    return Fraction(math.sqrt(square) * (1 - 1e-12))


def rho_sum(losses: Sequence[tuple[Loss, int]]) -> Fraction | None:
    total = Fraction(0)
    for loss, n in losses:
        if loss.rho is None:
            return None
        total += loss.rho * n
    return total


class Zcdp(Filter):
    """The sum of rho against the largest that the budget allows."""

    name: ClassVar[str] = "zcdp"

    @cached_property
    def limit(self) -> Fraction:
        return zcdp_rho(self.limits.epsilon, self.limits.conversion)

    def start(self) -> State:
        return State(Fraction(0), Fraction(0))

    def after(self, state: State, charge: Charge) -> State | None:
        own = rho_sum(charge.losses)
        if own is None:
            return None
        total = State(state.rho + own, state.failures + charge.failures)
        return total if total.rho <= self.limit and total.failures <= self.limits.reserve else None

    def spent(self, state: State) -> Fraction:
        return state.rho / self.limit

    def share(self, queries: int | Fraction, state: State) -> Price:
        return self._of(self.limit / queries)

    def _of(self, rho: Fraction) -> Price:
        return Price(root_below(2 * rho), None, rho, self.limits.conversion)

    def worth(self, epsilon: Fraction, state: State) -> Price:
        part = self.part(epsilon)
        own, most = epsilon**2 / 2, part * self.limit
        rho, pure = (own, epsilon) if own <= most else (most, root_below(2 * most))
        return Price(pure, None, rho, self.limits.conversion, stake=Stake(epsilon, part, scaled=own > most))

    def gaussian(self, amount: Fraction, queries: int, state: State) -> Price | None:
        return Price(None, None, amount, self.limits.conversion)

    def stated(self, epsilon: Fraction, delta: Fraction, state: State) -> Price:
        part = self.part(epsilon)
        own, most = zcdp_rho(epsilon, delta), part * self.limit
        rho = min(own, most)
        stake = Stake(epsilon, part, scaled=own > most)
        return Price(min(epsilon, root_below(2 * rho)), None, rho, delta, stake=stake)

    @staticmethod
    def report(events: Events, delta: Fraction) -> float:
        rho, left = rho_sum(events), delta - failures(events)
        if rho is None or left <= 0:
            return math.inf
        return zcdp_epsilon(float(rho) * (1 + _SLACK), float(left) * (1 - _SLACK))
