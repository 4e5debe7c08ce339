"""Rules that add one exact number a release: rho of zCDP, a Renyi divergence at one order, mu
squared of Gaussian privacy.

*Zero-concentrated privacy* (Bun and Steinke 2016; as a filter Whitehouse et al. 2023).

*Renyi privacy* (Mironov 2017, proposition 1). A filter at ONE order, fixed before the first
question (Feldman and Zrnic 2021; Lecuyer 2021). Taking the best order anew at every step is not a
filter: docs/guarantees/accounting.md has the counterexample. A report may take the best order,
since its list was fixed in advance.

*Gaussian privacy* (Dong, Roth and Su 2022; as a filter Smith and Thakurta 2022).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, Final, NamedTuple

import numpy as np

from dpframe.accounting import _gaussian, _search
from dpframe.accounting._filter import (
    Charge,
    Filter,
    Price,
    Stake,
    failures,
    register,
    stated_gaussian,
    sum_costs,
)
from dpframe.accounting.loss import Events, Floats, Loss, PureDP

# Covers the rounding of the few dozen double operations of a conversion a thousand times over.
_SLACK = 1e-9
_UP = 1 + 1e-12
ORDERS: Final[Floats] = 1 + np.geomspace(0.02, 1e6, 512)


class State(NamedTuple):
    """The sums of a ledger: the costs of its debits, and their probabilities of failure."""

    total: Fraction
    failures: Fraction


class Additive(Filter):
    """Accounting rule that keeps a sum of costs below a limit, and the sum of outright failures
    below the reserve."""

    @property
    @abstractmethod
    def limit(self) -> Fraction:
        """The largest sum that keeps the budget, rounded down."""

    @abstractmethod
    def cost(self, loss: Loss) -> Fraction | None:
        """Return the number that one release adds, or None if the rule cannot count it."""

    def start(self) -> State:
        return State(Fraction(0), Fraction(0))

    def after(self, state: State, charge: Charge) -> State | None:
        """Return the sums after a debit; None if it does not fit, or has a loss without a cost."""
        cost = sum_costs(charge.losses, self.cost)
        if cost is None:
            return None
        new = State(state.total + cost, state.failures + charge.failures)
        return new if new.total <= self.limit and new.failures <= self.limits.reserve else None

    def spent(self, state: State) -> Fraction:
        return state.total / self.limit


# Zero-concentrated and Renyi privacy ----------------------------------------------------------------------------------


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Return the least delta for which rho-zCDP implies (epsilon, delta)-DP by proposition 12 of
    Canonne, Kamath and Steinke (2020).

    The minimum over orders a > 1 of exp((a - 1)(a rho - epsilon) + a log1p(-1/a)) / (a - 1); any
    order is valid, so an inexact search only makes the answer safer.
    """

    def exponent(log_excess: float) -> float:
        """Return the logarithm of the bound at the order 1 + exp(``log_excess``)."""
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
    """Return the largest rho (rounded down) such that rho-zCDP implies (epsilon, delta)-DP.

    >>> round(float(zcdp_rho(Fraction(1), Fraction(1, 10**6))), 6)
    0.024356
    """
    e, d = float(epsilon) * (1 - _SLACK), float(delta) * (1 - _SLACK)
    most = e + 1.0  # at every order rho-zCDP has an epsilon of at least rho
    rho = _search.last_where(
        lambda rho: zcdp_delta(rho, e) <= d, 1e-40, most, rounds=80, middle=_search.ratio_halfway
    )
    return Fraction(rho * (1 - 2 * _SLACK))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return the least epsilon, rounded up, for which rho-zCDP implies (epsilon, delta)-DP by
    proposition 12 of Canonne, Kamath and Steinke (2020).

    >>> round(zcdp_epsilon(0.02435, 1e-6), 3)
    1.0
    """
    if rho <= 0:
        return 0.0
    if delta <= 0:
        return math.inf
    target = delta * (1 - _SLACK)
    enough = (
        rho + 2 * math.sqrt(rho * math.log(1 / delta)) + 1e-300
    )  # proposition 1.3 of Bun and Steinke
    epsilon = _search.first_where(lambda e: zcdp_delta(rho, e) <= target, 0.0, enough, rounds=100)
    return epsilon * (1 + _SLACK)


def root_below(square: Fraction) -> Fraction:
    """Return a rational just below the square root."""
    return Fraction(math.sqrt(square) * (1 - 1e-12))


class _Concentrated(Additive):
    """A rule that buys Gaussian noise by its rho."""

    @property
    def rho_limit(self) -> Fraction:
        """The sum of rho that fills the budget, if everything has one."""
        return self.limit

    def share(self, queries: int | Fraction, state: State) -> Price:
        rho = self.rho_limit / queries
        return Price(root_below(2 * rho), None, rho, self.conversion)

    def gaussian(self, amount: Fraction, queries: int, state: State) -> Price | None:
        return Price(None, None, amount, self.conversion)

    def price_guarantee(self, epsilon: Fraction, delta: Fraction, state: State) -> Price:
        """Return the price of Gaussian noise with this (epsilon, delta) guarantee.

        Its rho is at most the question's part of the budget. If that is less than the guarantee
        allows, the noise is scaled up, and ``scaled`` says so.
        """
        part = self.part(epsilon)
        wanted, most = zcdp_rho(epsilon, delta), part * self.rho_limit
        rho = min(wanted, most)
        stake = Stake(epsilon, part, scaled=wanted > most)
        return Price(min(epsilon, root_below(2 * rho)), None, rho, delta, stake=stake)


@register
class Zcdp(_Concentrated):
    """Accounting rule of zero-concentrated privacy: the sum of rho against the largest that the
    budget allows."""

    name: ClassVar[str] = "zcdp"
    place: ClassVar[int] = 4

    @cached_property
    def limit(self) -> Fraction:
        return zcdp_rho(self.limits.epsilon, self.conversion)

    def cost(self, loss: Loss) -> Fraction | None:
        return loss.rho

    def worth(self, epsilon: Fraction, state: State) -> Price:
        """Return the price of a question that asks for this epsilon.

        It buys a pure mechanism, or noise of the same zCDP cost. Both are at most the question's
        part of the budget.
        """
        part = self.part(epsilon)
        cost, most = epsilon**2 / 2, part * self.limit
        rho, pure = (cost, epsilon) if cost <= most else (most, root_below(2 * most))
        return Price(
            pure, None, rho, self.conversion, stake=Stake(epsilon, part, scaled=cost > most)
        )

    @staticmethod
    def report(events: Events, delta: Fraction) -> float:
        """Return the epsilon, at this delta, of a list of releases fixed in advance, from its sum
        of rho.

        It is inf if a release has no rho.
        """
        rho, left = sum_costs(events, lambda loss: loss.rho), delta - failures(events)
        if rho is None or left <= 0:
            return math.inf
        return zcdp_epsilon(float(rho) * (1 + _SLACK), float(left) * (1 - _SLACK))


def conversion(orders: Floats, delta: float) -> Floats:
    """Return what to add to Renyi divergences at each order to get epsilons at this delta.

    It is log(1 - 1/a) - (log delta + log a) / (a - 1) at the order a, rounded up.

    Canonne, Kamath and Steinke (2020), proposition 12; Balle et al. (2020).
    """
    added: Floats = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return added + np.abs(added) * 1e-12


def divergences(losses: Events) -> Floats:
    """Return the Renyi divergences of a list of releases at `ORDERS`, rounded up.

    ``losses`` are pairs of a loss and a count.
    """
    total = np.zeros(len(ORDERS))
    for loss, n in losses:
        total = (total + n * loss.renyi(ORDERS)) * _UP
    return total


@register
class Rdp(_Concentrated):
    """Accounting rule of Renyi privacy: the sum of divergences at one order.

    The order is that at which the limit over the order is largest, so that most small releases fit.
    """

    name: ClassVar[str] = "rdp"
    place: ClassVar[int] = 5

    @cached_property
    def _fixed(self) -> tuple[float, Fraction]:
        """The order at which divergences are added up, and the limit of their sum."""
        delta = float(self.conversion) * (1 - 1e-12)
        room = float(self.limits.epsilon) * (1 - 1e-12) - conversion(ORDERS, delta)
        best = int(np.argmax(room / ORDERS))
        return float(ORDERS[best]), Fraction(max(float(room[best]), 0.0))

    @property
    def order(self) -> float:
        return self._fixed[0]

    @property
    def limit(self) -> Fraction:
        return self._fixed[1]

    @property
    def rho_limit(self) -> Fraction:
        return self.limit / Fraction(self.order)

    def cost(self, loss: Loss) -> Fraction | None:
        """Return the Renyi divergence of one release at the fixed order; None if it is infinite."""
        # Divergences that are linear in the order are added exactly, so that equal shares fill the
        # limit.
        linear = loss.rho * Fraction(self.order) if loss.rho is not None else None
        curve = float(loss.renyi(np.array([self.order]))[0])
        if linear is None:
            return Fraction(curve) if math.isfinite(curve) else None
        return min(linear, Fraction(curve))

    def _find_pure_epsilon(self, most: Fraction) -> Fraction:
        """Return the largest epsilon, rounded down, for which a pure release costs at most
        ``most``."""
        least = root_below(2 * most / Fraction(self.order))
        return _search.last_where(
            lambda e: self._pure_cost(e) <= most,
            least,
            self.limits.epsilon,
            rounds=50,
            middle=_search.float_halfway,
        )

    def _pure_cost(self, epsilon: Fraction) -> Fraction:
        cost = self.cost(PureDP(epsilon))
        assert cost is not None  # what is pure has a rho
        return cost

    def worth(self, epsilon: Fraction, state: State) -> Price:
        """Return the price of a question that asks for this epsilon.

        It buys a pure mechanism, or noise of the same Renyi cost. Both are at most the question's
        part of the budget.
        """
        part = self.part(epsilon)
        cost, most = self._pure_cost(epsilon), part * self.limit
        pure = epsilon if cost <= most else min(epsilon, self._find_pure_epsilon(most))
        rho = min(cost * (1 - Fraction(1, 10**11)), most) / Fraction(self.order)
        return Price(
            pure, None, rho, self.conversion, stake=Stake(epsilon, part, scaled=cost > most)
        )

    @staticmethod
    def report(events: Events, delta: Fraction) -> float:
        """Return the least epsilon over all orders for a list of releases fixed in advance, at this
        delta, rounded up."""
        left = delta - failures(events)
        if left <= 0:
            return math.inf
        epsilons = divergences(events) + conversion(ORDERS, float(left) * (1 - 1e-12))
        return max(0.0, float(np.min(epsilons)) * _UP)


# Gaussian privacy -----------------------------------------------------------------------------------------------------


def mu_squared_sum(losses: Events) -> Fraction | None:
    """Return the sum of mu squared, or None if a release has no mu."""
    return sum_costs(losses, lambda loss: loss.mu_squared)


def mu_share(mu_squared: Fraction, delta: Fraction) -> Price:
    """Return the price that buys Gaussian noise of this mu squared, or a pure mechanism that leaks
    no more.

    ``delta`` is that at which the guarantee of Gaussian noise is stated.
    """
    return Price(_gaussian.pure_for_mu(mu_squared), mu_squared, None, delta)


@register
class Gdp(Additive):
    """Accounting rule of Gaussian privacy: the sum of mu squared against the mu of the budget."""

    name: ClassVar[str] = "gdp"
    place: ClassVar[int] = 6

    @cached_property
    def limit(self) -> Fraction:
        e, d = float(self.limits.epsilon) * (1 - 1e-12), float(self.conversion) * (1 - 1e-12)
        return Fraction(_gaussian.mu_for(e, d)) ** 2

    def cost(self, loss: Loss) -> Fraction | None:
        return loss.mu_squared

    def share(self, queries: int | Fraction, state: State) -> Price:
        return mu_share(self.limit / queries, self.conversion)

    def worth(self, epsilon: Fraction, state: State) -> Price:
        """Return the price of a question that asks for this epsilon.

        It buys a pure mechanism of that epsilon, or Gaussian noise of the mu that the rule counts
        for it. Both are at most the question's part of the budget. If the pure mechanism costs
        more than that part, its epsilon is scaled down, and ``scaled`` says so.
        """
        part = self.part(epsilon)
        pure_cost, most = PureDP(epsilon).mu_squared, part * self.limit
        cost = (
            None
            if pure_cost is None
            else Fraction(_gaussian.pure_mu(float(epsilon)) * (1 - 1e-12)) ** 2
        )
        pure = (
            epsilon
            if pure_cost is not None and pure_cost <= most
            else min(epsilon, _gaussian.pure_for_mu(most))
        )
        mu_squared, scaled = (most, True) if cost is None or cost > most else (cost, False)
        return Price(pure, mu_squared, None, self.conversion, stake=Stake(epsilon, part, scaled))

    def gaussian(self, amount: Fraction, queries: int, state: State) -> Price | None:
        return Price(None, amount, None, self.conversion)

    def price_guarantee(self, epsilon: Fraction, delta: Fraction, state: State) -> Price:
        """Return the price of Gaussian noise with this (epsilon, delta) guarantee.

        Its mu squared is at most the question's part of the budget. If that is less than the
        guarantee allows, the noise is scaled up, and ``scaled`` says so.
        """
        part = self.part(epsilon)
        cost, most = stated_gaussian(epsilon, delta).mu_squared, part * self.limit
        if cost is None:
            return Price(min(epsilon, _gaussian.pure_for_mu(most)), stake=Stake(epsilon, part))
        price = mu_share(min(cost, most), delta)
        assert price.epsilon is not None
        return price.change(
            epsilon=min(epsilon, price.epsilon), stake=Stake(epsilon, part, cost > most)
        )

    @staticmethod
    def report(events: Events, delta: Fraction) -> float:
        """Return the epsilon, at this delta, of a list of releases fixed in advance, from its sum
        of mu squared.

        It is inf if a release has no mu.
        """
        total, left = mu_squared_sum(events), delta - failures(events)
        if total is None or left <= 0:
            return math.inf
        return _gaussian.epsilon_for(math.sqrt(total) * _UP, float(left) * (1 - 1e-12))
