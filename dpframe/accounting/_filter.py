"""Accountants: rules of composition, which add losses and say when to stop. Each is a pure function
of the ledger.

As a *filter* it guards a session whose questions depend on earlier answers: `Filter.after` folds
one debit into a state or says that it no longer fits. As a *report* it gives the epsilon of a list
that was fixed in advance. What may guard is a matter of theorems (docs/guarantees/accounting.md),
so the two are not derived from each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from dpframe.accounting import _gaussian, _search
from dpframe.accounting.loss import ZERO, Events, Loss


class Limits(NamedTuple):
    """Budget of an accountant, fixed at opening.

    ``reserve`` is the part of delta for outright failures. The rest, ``conversion``, converts
    losses into epsilon.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    reserve: Fraction = Fraction(0)

    @property
    def conversion(self) -> Fraction:
        return self.delta - self.reserve

    def change(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return self._replace(**changes)


class Charge(NamedTuple):
    """Debit as accountants see it: the privacy losses of releases that are charged together.

    Rules that add (epsilon, delta) pairs state its Gaussian noise as such a guarantee at ``delta``.
    """

    losses: Events
    delta: Fraction = Fraction(0)

    @property
    def failures(self) -> Fraction:
        return failures(self.losses)

    @property
    def epsilon(self) -> Fraction | None:
        """The sum of its pure epsilons; None if a loss has no pure epsilon."""
        return pure_sum(self.losses)


def failures(events: Events) -> Fraction:
    """Return the sum of the probabilities with which releases fail outright and reveal everything.

    ``events`` are pairs of a loss and a count.
    """
    return sum((loss.failure * n for loss, n in events if loss.failure), ZERO)


def sum_costs(events: Events, cost: Callable[[Loss], Fraction | None]) -> Fraction | None:
    """Return the sum of the costs of all releases; None if a loss has no cost under this rule.

    ``cost`` returns the cost of one release with a loss.
    """
    if len(events) == 1 and events[0][1] == 1:  # as an ordinary debit is
        return cost(events[0][0])
    total = ZERO
    for loss, count in events:
        cost_of_one = cost(loss)
        if cost_of_one is None:
            return None
        total += cost_of_one * count
    return total


def pure_sum(events: Events) -> Fraction | None:
    """Return the sum of pure epsilons without failures, or None if a loss has no pure epsilon."""
    return sum_costs(events, lambda loss: loss.epsilon)


def totals(events: Events) -> tuple[Fraction | None, Fraction]:
    """Return the sum of the pure epsilons of events, and the sum of their probabilities of failing
    outright.

    The first is None if a loss has no pure epsilon.
    """
    if len(events) == 1 and events[0][1] == 1:  # as an ordinary debit is
        return events[0][0].epsilon, events[0][0].failure
    return pure_sum(events), failures(events)


class Stake(NamedTuple):
    """Request behind a price: an epsilon, and the part of the budget that it is."""

    epsilon: Fraction
    part: Fraction
    scaled: bool = (
        False  # Gaussian noise gets less than what a pure mechanism of this epsilon would cost
    )
    left: Fraction | None = None  # of mu squared, where a residue is kept
    cost: Fraction | None = (
        None  # what a pure release may take of it; None where the plain sum pays
    )
    gaussian_waits: bool = (
        False  # there will be Gaussian noise again when more of the plain sum is spent
    )

    def change(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return self._replace(**changes)


class Price(NamedTuple):
    """Most that a question may cost: ``epsilon`` for a pure mechanism, mu squared or rho for
    Gaussian noise.

    An amount is None if the price buys no such mechanism.

    A Gaussian is stated as an (epsilon, delta) guarantee at ``delta``. All fields but the last,
    ``stake``, decide how much noise is added.
    """

    epsilon: Fraction | None
    mu_squared: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction = Fraction(0)
    mechanism: str = "auto"
    stake: Stake | None = None

    def scale(self, part: Fraction, mechanism: str) -> Price:
        """Return this price multiplied by ``part``, and restricted to one mechanism.

        It prices the part of a question that is not on record yet.
        """
        epsilon, mu_squared, rho = (
            None if amount is None else amount * part
            for amount in (self.epsilon, self.mu_squared, self.rho)
        )
        stake = self.stake
        if stake is not None:
            stake = stake.change(epsilon=stake.epsilon * part, part=stake.part * part)
        return Price(epsilon, mu_squared, rho, self.delta, mechanism, stake)

    def change(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return self._replace(**changes)


def stated_gaussian(epsilon: Fraction, delta: Fraction) -> Price:
    """Return the price of Gaussian noise with this (epsilon, delta) guarantee.

    It lies just inside, so that the guarantee computed back from it fits too.
    """
    mu = Fraction(_gaussian.mu_for(float(epsilon) * (1 - 1e-11), float(delta) * (1 - 1e-11)))
    return Price(epsilon, mu**2 or None, None, delta)


_MOST = 2**40


def most_that(fits: Callable[[int], bool]) -> int:
    """Return the largest whole number for which ``fits`` is true, at most 2**40; 0 if 1 does not
    fit.

    A number below one that fits has to fit, too.
    """
    low, high = 0, 1
    while high <= _MOST and fits(high):
        low, high = high, 2 * high
    if high > _MOST:
        return _MOST
    return _search.last_where(fits, low, high, middle=_search.whole_halfway)


def repeat_charge(charge: Charge, times: int) -> Charge:
    """Return one debit that stands for `times` equal ones."""
    return Charge(tuple((loss, n * times) for loss, n in charge.losses), charge.delta * times)


class Filter(ABC):
    """Accounting rule with its budget, which decides whether a debit still fits.

    States are values: a refused debit leaves the old state as it was.

    A rule states here what it needs and what it can guard; no other room compares names of rules.
    """

    name: ClassVar[str]
    place: ClassVar[int] = 100  # in lists of all rules: the smaller ones stand first
    needs_delta: ClassVar[bool] = (
        True  # converts its losses with delta, so that no budget has epsilon alone
    )
    reserve_share: ClassVar[Fraction] = Fraction(
        1, 2
    )  # of delta, for failures, where nobody names a reserve
    batches: ClassVar[bool] = False  # guards one list that was fixed in advance, and nothing else
    pairs: ClassVar[bool] = (
        False  # adds (epsilon, delta) pairs, so that a Gaussian must be stated as one
    )
    keeps_epsilon_sum_only: ClassVar[bool] = (
        False  # its plain sum of epsilons is all that it keeps: what is left is a number
    )

    def __init__(self, limits: Limits):
        self.limits = limits

    @cached_property
    def conversion(self) -> Fraction:
        """The part of delta that converts losses."""
        return self.limits.conversion

    @abstractmethod
    def start(self) -> Any:
        """Return the state of an empty ledger."""

    @abstractmethod
    def after(self, state: Any, charge: Charge) -> Any:
        """Return the state after a debit; None if the debit does not fit."""

    @abstractmethod
    def spent(self, state: Any) -> Fraction:
        """Return the fraction of the budget that is gone, in this rule's own currency."""

    @abstractmethod
    def share(self, queries: int | Fraction, state: Any) -> Price:
        """Return the price of a question that names no price: one of ``queries`` equal shares,
        which together take the whole budget.

        ``state`` is what has been spent so far.
        """

    @abstractmethod
    def worth(self, epsilon: Fraction, state: Any) -> Price:
        """Return the price of a question that asks for this epsilon.

        It buys a pure mechanism, or noise at the same cost. It is never more than the part
        ``self.part(epsilon)`` of the budget. ``state`` is what has been spent so far.

        Formal guarantee: questions whose epsilons (or epsilon/queries, of a share) add up to at
        most that of the budget all fit, in any order and whatever mechanisms their prices buy
        (docs/guarantees/accounting.md#what-a-price-promises).
        """

    @abstractmethod
    def price_guarantee(self, epsilon: Fraction, delta: Fraction, state: Any) -> Price:
        """Return the price of Gaussian noise with this (epsilon, delta) guarantee.

        It may also buy a pure mechanism at no higher cost. It is never more than `worth` may take.
        ``state`` is what has been spent so far.
        """

    @abstractmethod
    def gaussian(self, amount: Fraction, queries: int, state: Any) -> Price | None:
        """Return a price for Gaussian noise that grows with ``amount``, or None if the budget
        cannot pay for one now.

        Amounts are in the rule's own unit, such as mu squared, rho or epsilon. The search for the
        noise that an accuracy needs tries amounts. ``queries`` divides the delta of rules that
        state Gaussian noise as an (epsilon, delta) guarantee.
        """

    def price_gaussian_by_epsilon(self, epsilon: Fraction, state: Any) -> Price:
        """Return the price of Gaussian noise for a question that names an epsilon and no delta.

        The guarantee is stated at the delta that converts losses.
        """
        return self.price_guarantee(epsilon, self.conversion, state)

    def part(self, epsilon: Fraction) -> Fraction:
        """Return the part of the budget that a question of this epsilon may take."""
        return epsilon / self.limits.epsilon

    def warning(self, before: Any, after: Any) -> str | None:
        """Return a warning to the owner before a debit is made; None if there is nothing to say."""
        return None

    @staticmethod
    @abstractmethod
    def report(events: Events, delta: Fraction) -> float:
        """Return an epsilon, rounded up, of a list of releases fixed in advance, at this delta; inf
        if none holds."""

    def ahead(self, state: object, charges: Sequence[Charge]) -> Any:
        """Return the state after some debits that nobody has made yet, to price the next question
        of a batch.

        A debit that does not fit is passed over.
        """
        for charge in charges:
            after = self.after(state, charge)
            state = state if after is None else after
        return state

    def times(self, state: Any, charge: Charge) -> int:
        """Return the number of equal debits that fit, one after the other."""
        return most_that(lambda n: self.after(state, repeat_charge(charge, n)) is not None)

    def empty_state(self, state: Any) -> Any:
        """Return the state of an empty ledger in which whatever was exceeded stays so."""
        return self.start()

    @property
    def delta_limit(self) -> Fraction:
        """The largest sum of outright failures, and of deltas that add up, that always fits."""
        return self.limits.reserve

    def delta_room(self, state: Any) -> Fraction:
        """Return the largest sum of failures and added deltas that fits now, including those
        debited so far."""
        return self.delta_limit

    def failure_for(self, epsilon: Fraction, state: Any, pure: bool = False) -> Fraction:
        """Return the probability of outright failure that a question of this price may have.

        It is the question's part of all that is set aside for failures, and at most what is left of
        that. It is 0 if nothing is set aside.

        Formal guarantee: with it, as without, questions whose epsilons add up to at most that of
        the budget all fit. ``pure`` says that the release has no Gaussian noise: a budget that such
        a release leaves to a plain sum may have more for its failures.
        """
        return self._failure_of(epsilon, self.delta_limit, state)

    def _failure_of(self, epsilon: Fraction, room: Fraction, state: object) -> Fraction:
        left = room if state is None else max(room - self.delta_spent(state), Fraction(0))
        return min(self.part(epsilon) * room, left)

    def failure_share(self, queries: int) -> Fraction:
        """Return the probability of outright failure at which `queries` questions always fit."""
        return self.failure_for(self.limits.epsilon / queries, None)

    def delta_spent(self, state: Any) -> Fraction:
        """Return the sum of outright failures, and of deltas that add up, so far."""
        spent: Fraction = state.failures
        return spent

    def pure_spent(self, state: Any) -> Fraction | None:
        """Return the plain sum of epsilons so far, which is valid at any time.

        Return None if the rule keeps no such sum.
        """
        return None

    def compare_delta(self, state: object, charge: Charge) -> tuple[Fraction, Fraction]:
        """Return the delta that a debit asks for, and the delta that is left for such requests."""
        pairs = (
            self.pairs and charge.epsilon is None
        )  # Gaussian noise, which is stated with a delta
        remaining = self.delta_room(state) - self.delta_spent(state)
        return charge.failures + (charge.delta if pairs else 0), remaining

    def refusal(self, state: Any, charge: Charge) -> str:
        """Return the sentence that explains why a debit does not fit.

        It tells what was requested, spent, remains and is missing, in this rule's own terms.
        """
        requested, remaining = self.compare_delta(state, charge)
        if requested > remaining:
            return shortage(
                "delta",
                *map(short, (requested, self.delta_spent(state), remaining, requested - remaining)),
            )
        alone = self.after(self.start(), charge)
        if alone is None:
            return "it costs more than the whole of it."
        needed, spent = float(self.spent(alone)), float(self.spent(state))
        if needed + spent <= 1:
            return (
                f"{100 * spent:.4g} % of it is used, and what is left takes smaller releases only: this one alone "
                "is too large to be counted together with many small ones, and the plain sum of epsilons has no room for it any "
                "more."
            )
        if 1 - spent < _NOTHING:
            return "nothing is left of it."
        parts = [
            f"{100 * x:.4g} %" for x in (needed, spent, 1 - spent, max(needed + spent - 1, 0.0))
        ]
        return shortage("of the budget", *parts)


_NOTHING = 1e-6  # a part of the budget that fits no question
ACCOUNTANTS: dict[str, type[Filter]] = {}
_Rule = TypeVar("_Rule", bound=type[Filter])


def register(rule: _Rule) -> _Rule:
    """Add an accounting rule to the list of all rules, by the name that users write. It decorates
    the class."""
    if ACCOUNTANTS.setdefault(rule.name, rule) is not rule:
        raise ValueError(f"two accountants have the name {rule.name!r}")
    ordered = sorted(ACCOUNTANTS.values(), key=lambda one: one.place)
    ACCOUNTANTS.clear()
    ACCOUNTANTS.update((one.name, one) for one in ordered)
    return rule


def shortage(quantity: str, requested: str, spent: str, remaining: str, over: str) -> str:
    """Return the sentence of a refusal that has numbers."""
    return (
        f"{quantity} requested {requested}, spent {spent}, remaining {remaining}, short by {over}."
    )


def short(number: Fraction) -> str:
    """Return a number as text, with six digits."""
    return f"{float(number):.6g}"
