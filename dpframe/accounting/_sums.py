"""Rules that add epsilons: the plain sum, and the two forms of advanced composition.

Basic composition: epsilons add, deltas add (Dwork and Lei 2009; as a filter Rogers et al. 2016,
lemma 3.5).

Advanced composition with the constants of the lecture notes (Dwork, Rothblum and Vadhan 2010): k epsilon-private releases are
together (epsilon sqrt(2 k ln(1/delta')) + k epsilon (e**epsilon - 1), delta')-private; the simpler form has k epsilon**2 in
place of the second term, for epsilon < 1. For (epsilon, delta) releases k delta is added to delta'. As filters both hold when
epsilons differ and depend on earlier answers: with sums over the releases they lie above
sqrt(2 ln(1/delta') sum e**2) + sum e**2 / 2, which Whitehouse et al. (2023, theorem 2) prove to be one.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, NamedTuple

from dpframe.accounting import _search
from dpframe.accounting._filter import (
    Charge,
    Filter,
    Price,
    Stake,
    failures,
    register,
    short,
    shortage,
    stated_gaussian,
    sum_costs,
    totals,
)
from dpframe.accounting.loss import Events

_UP = 1 + 1e-12


class Sums(NamedTuple):
    """The sums of the epsilons and of the deltas of all releases."""

    epsilon: Fraction
    delta: Fraction


def stated_sums(losses: Events, delta: Fraction) -> Sums | None:
    """Return the sums of the epsilons and of the deltas of the guarantees of all releases.

    ``delta`` is divided equally among the releases that have no pure epsilon. Return None if one of
    these has no epsilon at its delta.
    """
    pure, failing = totals(losses)
    if pure is not None:
        return Sums(pure, failing)
    each = delta / sum(n for loss, n in losses if loss.epsilon is None)
    total = sum_costs(
        losses, lambda loss: loss.epsilon if loss.epsilon is not None else loss.epsilon_at(each)
    )
    return None if total is None else Sums(total, failing + delta)


@register
class PureSum(Filter):
    """Accounting rule that adds epsilons exactly, so that ten debits of 0.1 fill a budget of 1."""

    name: ClassVar[str] = "pure"
    place: ClassVar[int] = 1
    needs_delta: ClassVar[bool] = False
    reserve_share: ClassVar[Fraction] = Fraction(0)  # failures are deltas, which add up
    pairs: ClassVar[bool] = True
    keeps_epsilon_sum_only: ClassVar[bool] = True

    def start(self) -> Sums:
        return Sums(Fraction(0), Fraction(0))

    def after(self, state: Sums, charge: Charge) -> Sums | None:
        """Return the sums of epsilon and delta after a debit, or None if the debit does not fit."""
        epsilon, delta = totals(charge.losses)
        if epsilon is None:
            stated = stated_sums(charge.losses, charge.delta)
            if stated is None:
                return None
            epsilon, delta = stated
        total = Sums(state.epsilon + epsilon, state.delta + delta if delta else state.delta)
        fits = not total.delta or total.delta <= self.limits.delta
        return total if fits and total.epsilon <= self.limits.epsilon else None

    def spent(self, state: Sums) -> Fraction:
        return state.epsilon / self.limits.epsilon

    def share(self, queries: int | Fraction, state: Sums) -> Price:
        e, d = self.limits.epsilon / queries, self.limits.delta
        return stated_gaussian(e, d / queries) if d else Price(e)

    def worth(self, epsilon: Fraction, state: Sums) -> Price:
        return Price(epsilon)

    def gaussian(self, amount: Fraction, queries: int, state: Sums) -> Price | None:
        return stated_gaussian(amount, self.limits.delta / queries) if self.limits.delta else None

    def price_gaussian_by_epsilon(self, epsilon: Fraction, state: Sums) -> Price:
        return stated_gaussian(epsilon, min(self.part(epsilon), Fraction(1)) * self.limits.delta)

    def price_guarantee(self, epsilon: Fraction, delta: Fraction, state: Sums) -> Price:
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

    def refusal(self, state: Sums, charge: Charge) -> str:
        """Return the sentence that explains why a debit does not fit, in epsilon if that is the
        reason."""
        requested, remaining = charge.epsilon, self.limits.epsilon - state.epsilon
        if requested is not None and requested > remaining:
            return shortage(
                "epsilon", *map(short, (requested, state.epsilon, remaining, requested - remaining))
            )
        return super().refusal(state, charge)


# Advanced composition --------------------------------------------------------------------------------------------------


class Squares(NamedTuple):
    """The sums over all releases that advanced composition needs."""

    squares: float  # of squared epsilons
    drift: float  # of what `_Advanced.drift` returns for each epsilon
    failures: Fraction  # of probabilities of outright failure, and of stated deltas


class _Advanced(Filter):
    """Accounting rule of advanced composition.

    It keeps the sum of squared epsilons and a drift; the two forms of the theorem differ in the
    drift.
    """

    @staticmethod
    @abstractmethod
    def drift(epsilon: float) -> float:
        """Return what one release adds to the term that grows with their number; inf if the theorem
        does not apply."""

    def start(self) -> Squares:
        return Squares(0.0, 0.0, Fraction(0))

    @classmethod
    def _sums(cls, losses: Events, delta: Fraction) -> Squares | None:
        """Return the sums of squared epsilons, of drifts and of failures of some releases, rounded
        up.

        ``delta`` is divided equally among the releases that have no pure epsilon. Return None if
        one has no epsilon.
        """
        needing = sum(n for loss, n in losses if loss.epsilon is None)
        squares = drift = 0.0
        for loss, n in losses:
            epsilon = loss.epsilon if loss.epsilon is not None else loss.epsilon_at(delta / needing)
            if epsilon is None or epsilon > 700:
                return None
            e = float(epsilon) * _UP
            squares, drift = (squares + n * e * e) * _UP, (drift + n * cls.drift(e)) * _UP
        return Squares(squares, drift, failures(losses) + (delta if needing else 0))

    @staticmethod
    def _total(sums: Squares, delta: float) -> float:
        return (math.sqrt(2 * math.log(1 / delta) * sums.squares) + sums.drift) * _UP

    def after(self, state: Squares, charge: Charge) -> Squares | None:
        """Return the sums after a debit; None if the debit does not fit."""
        cost = self._sums(charge.losses, charge.delta)
        if cost is None:
            return None
        total = Squares(
            (state.squares + cost.squares) * _UP,
            (state.drift + cost.drift) * _UP,
            state.failures + cost.failures,
        )
        fits = total.failures <= self.limits.reserve and self._epsilon(total) <= self.limits.epsilon
        return total if fits else None

    def _epsilon(self, sums: Squares) -> Fraction:
        epsilon = self._total(sums, float(self.conversion) * (1 - 1e-12))
        return Fraction(epsilon) if math.isfinite(epsilon) else 2 * self.limits.epsilon

    def spent(self, state: Squares) -> Fraction:
        """Return the used part of the sum of squares, which grows by the same amount at each equal
        release."""
        most = self.each(1.0)
        return min(Fraction(1), Fraction(state.squares / (most * most)))

    def each(self, queries: float) -> float:
        """Return the largest epsilon, rounded down, at which ``queries`` equal releases fit into
        the budget."""

        def fits(e: float) -> bool:
            sums = Squares(
                queries * e * e * (1 + 1e-9), queries * self.drift(e) * (1 + 1e-9), Fraction(0)
            )
            return self._epsilon(sums) <= self.limits.epsilon

        return _search.last_where(fits, 0.0, float(self.limits.epsilon), rounds=100) * (1 - 1e-9)

    @cached_property
    def _squares(self) -> float:
        """The size of the budget in the unit of both sums: the largest s, rounded down, such that
        a sum of squares of s and a sum of drifts of s fit together."""

        def fits(s: float) -> bool:
            return (
                self._epsilon(Squares(s * (1 + 1e-9), s * (1 + 1e-9), Fraction(0)))
                <= self.limits.epsilon
            )

        return _search.last_where(fits, 0.0, float(self.limits.epsilon) ** 2, rounds=100) * (
            1 - 1e-9
        )

    def _find_epsilon(self, part: Fraction) -> Fraction:
        """Return the largest epsilon, rounded down, for which one release takes at most this part
        of the budget.

        The part is that of both sums: squares and drifts. The drift decides, since the square of an
        epsilon is never larger than its drift.
        """
        most = float(part) * self._squares
        e = _search.last_where(lambda e: self.drift(e) <= most, 0.0, math.sqrt(most), rounds=100)
        return Fraction(e * (1 - 1e-9))

    def share(self, queries: int | Fraction, state: Squares) -> Price:
        e = self._find_epsilon(1 / Fraction(queries))
        return (
            stated_gaussian(e, self.limits.reserve / queries) if self.limits.reserve else Price(e)
        )

    def worth(self, epsilon: Fraction, state: Squares) -> Price:
        part = self.part(epsilon)
        within = min(epsilon, self._find_epsilon(part)) if part <= 1 else epsilon
        return Price(within, stake=Stake(epsilon, part))

    def gaussian(self, amount: Fraction, queries: int, state: Squares) -> Price | None:
        return (
            stated_gaussian(amount, self.limits.reserve / queries) if self.limits.reserve else None
        )

    def price_gaussian_by_epsilon(self, epsilon: Fraction, state: Squares) -> Price:
        return self.price_guarantee(
            epsilon, min(self.part(epsilon), Fraction(1)) * self.limits.reserve, state
        )

    def price_guarantee(self, epsilon: Fraction, delta: Fraction, state: Squares) -> Price:
        """Return the price of Gaussian noise with this (epsilon, delta) guarantee.

        A question that asks for a part of epsilon may take that part of the budget, which is a sum
        of squares here. Its epsilon is reduced if it would take more.
        """
        part = self.part(epsilon)
        within = min(epsilon, self._find_epsilon(part)) if part <= 1 else epsilon
        return stated_gaussian(within, delta).change(
            stake=Stake(epsilon, part, scaled=within < epsilon)
        )

    @classmethod
    def report(cls, events: Events, delta: Fraction) -> float:
        """Return an epsilon, rounded up, of a list of releases fixed in advance, at this delta.

        If some releases have no pure epsilon, half of delta is divided among them, to state each as
        an (epsilon, delta) guarantee. The rest is the delta' of the theorem. Return inf if the
        theorem gives no epsilon.
        """
        left = delta - failures(events)
        if left <= 0:
            return math.inf
        needing = any(loss.epsilon is None for loss, _ in events)
        sums = cls._sums(events, left / 2 if needing else Fraction(0))
        if sums is None:
            return math.inf
        return cls._total(sums, float(left / 2 if needing else left) * (1 - 1e-12))


@register
class Advanced(_Advanced):
    """Advanced composition with the term k epsilon (e**epsilon - 1), for every epsilon."""

    name: ClassVar[str] = "advanced"
    place: ClassVar[int] = 2
    pairs: ClassVar[bool] = True

    @staticmethod
    def drift(epsilon: float) -> float:
        return epsilon * math.expm1(epsilon)


@register
class AdvancedSquared(_Advanced):
    """Advanced composition with the term k epsilon**2, for epsilon < 1."""

    name: ClassVar[str] = "advanced-squared"
    place: ClassVar[int] = 3

    @staticmethod
    def drift(epsilon: float) -> float:
        return epsilon * epsilon if epsilon < 1 else math.inf
