"""The default rule, `Tight`: the plain sum of epsilons OR the residue of a Gaussian budget
(docs/guarantees/residue.md).

Notation of this file. Every debit is charged to two budgets, and it is enough that one of them
holds. The plain sum adds up the epsilons of pure releases; noise that is not pure exceeds it. The
Gaussian budget is that of one Gaussian release, G(mu), with the epsilon and delta of the session.
It is measured in mu squared, which adds up for Gaussian releases. What is left of it is its
residue. A pure release also takes some of it, at most its part (docs/guarantees/residue.md).

A share is one of ``queries`` equal parts of the budget: the price of a question that names none.
``part`` is the epsilon of a question, divided by the epsilon of the budget. A budget is on promise
while it has spent at most the part that all questions so far have asked for.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple, cast

from dpframe.accounting import _gaussian, _search
from dpframe.accounting._additive import Gdp, mu_squared_sum
from dpframe.accounting._filter import (
    Charge,
    Filter,
    Price,
    Stake,
    failures,
    most_that,
    pure_sum,
    register,
    repeat_charge,
    stated_gaussian,
)
from dpframe.accounting.loss import Events, Exponential, PureDP

_UP = 1 + 1e-12  # covers the roundings of a computation in doubles
_LARGE = Fraction(1, 5)  # a part of the budget that is worth a warning
# The half widths of 95 % intervals, in units of 1/epsilon and of 1/mu.
_PURE_WIDTH, _GAUSSIAN_WIDTH = math.log(20), _gaussian.quantile(0.975)


class Either(NamedTuple):
    """State of `Tight`: the plain sum of epsilons, and the mu squared that is left of a Gaussian
    budget.

    A side that was exceeded is None from then on. It may not be revived.
    """

    epsilon: Fraction | None  # spent
    mu_squared: Fraction | None  # left
    failures: Fraction  # the sum of the probabilities of outright failure so far
    room: Fraction  # the largest sum of failures that the plain sum allows


@register
class Tight(Filter):
    """Default accounting rule: the plain sum of epsilons or the residue of a Gaussian budget,
    whichever still holds.

    No part of delta is divided between the two.

    The residue is the mu that is left: a debit D takes it from mu to the largest mu' with D and
    G(mu') together dominated by G(mu). Both are debited always. Outright failures come from the
    reserve, for both sides at once. A debit whose failures exceed that ends the residue, and a
    residue that ends leaves to the failures of the plain sum what it could still have spent of
    delta: all of it at the first debit
    (docs/guarantees/accounting.md#failures-beside-the-plain-sum).
    """

    name: ClassVar[str] = "tight"
    place: ClassVar[int] = 7
    needs_delta: ClassVar[bool] = False  # without one it is the plain sum

    @cached_property
    def limit(self) -> Fraction:
        return Gdp(self.limits).limit

    def start(self) -> Either:
        limits = self.limits
        return Either(
            Fraction(0), self.limit if limits.conversion else None, Fraction(0), limits.reserve
        )

    def after(self, state: Either, charge: Charge) -> Either | None:
        """Return the state after a debit to both the plain sum and the Gaussian budget; None if it
        fits neither.

        A side of the budget that the debit exceeds is None from then on.
        """
        # The plain sum of epsilons, the probabilities of outright failure so far, and the largest
        # sum of these that the plain sum allows.
        epsilon, lost, room = state.epsilon, state.failures, state.room
        for loss, count in charge.losses:
            pure = loss.epsilon
            if epsilon is not None:
                epsilon = None if pure is None else epsilon + (pure if count == 1 else pure * count)
            if loss.failure:
                lost += loss.failure * count
        # What is left of the Gaussian budget, in mu squared. Its failures must fit the reserve.
        left = state.mu_squared if not lost or lost <= self.limits.reserve else None
        if left is not None and len(charge.losses) == 1 and charge.losses[0][1] == 1:
            # The ordinary case, and the fast one: one loss, once.
            left = charge.losses[0][0].leaves(left)
        elif left is not None:
            left = residue_after(left, charge.losses)
        # The Gaussian budget ends here, and leaves the delta that it has not spent to failures.
        if left is None and state.mu_squared is not None:
            room = self._room_without_gaussian(state)
        if epsilon is not None and (epsilon > self.limits.epsilon or (lost and lost > room)):
            epsilon = None
        return None if epsilon is None and left is None else Either(epsilon, left, lost, room)

    def _room_without_gaussian(self, state: Either) -> Fraction:
        """Return the largest sum of failures that the plain sum allows if the Gaussian budget ends
        now.

        It is the reserve, plus the delta that the Gaussian budget can no longer spend. Before the
        first debit that is all of delta. Later a lower bound on it is the delta of G(mu) at epsilon
        E + S, where mu is what is left, E the epsilon of the budget, and S the plain sum, which the
        losses so far do not exceed. The factors near 1 round it down.
        """
        if state == self.start():
            return self.limits.delta
        if state.epsilon is None or state.mu_squared is None:
            return state.room
        mu = math.sqrt(state.mu_squared) * (1 - 1e-12)
        beyond = float(self.limits.epsilon + state.epsilon) * _UP
        return self.limits.reserve + Fraction(_gaussian.delta_at(mu, beyond) * (1 - 1e-7))

    def delta_room(self, state: Either) -> Fraction:
        return state.room

    def failure_for(self, epsilon: Fraction, state: Either | None, pure: bool = False) -> Fraction:
        """Return the probability of outright failure that a question of this price may have.

        ``pure`` says that the release has no Gaussian noise. If only the plain sum can pay for it,
        its failures have more room.
        """
        room = self.limits.reserve
        if state is not None and state.mu_squared is None:
            room = state.room
        elif (
            state is not None
            and pure
            and state.epsilon is not None
            and state.epsilon + epsilon <= self.limits.epsilon
        ):
            # The plain sum will be all that pays, if the residue cannot take this.
            ends = PureDP(epsilon).leaves(cast("Fraction", state.mu_squared)) is None
            room = self._room_without_gaussian(state) if ends else room
        return self._failure_of(epsilon, room, state)

    def empty_state(self, state: Either) -> Either:
        """Return the state of an empty ledger, in which a side that was exceeded stays so."""
        whole = None if state.mu_squared is None else self.limit
        return Either(
            None if state.epsilon is None else Fraction(0), whole, Fraction(0), state.room
        )

    def spent(self, state: Either) -> Fraction:
        """Return the part of the budget that is used, on the side that has more left: the plain sum
        or the Gaussian budget."""
        used = []
        if state.epsilon is not None:
            used.append(state.epsilon / self.limits.epsilon)
        if state.mu_squared is not None:
            used.append(1 - state.mu_squared / self.limit)
        return min(used)

    def times(self, state: Either, charge: Charge) -> int:
        """Return how many debits equal to this one fit, one after the other."""
        epsilon, failure = charge.epsilon, charge.failures
        counts = []
        if epsilon is not None and state.epsilon is not None:
            count = int((self.limits.epsilon - state.epsilon) / epsilon) if epsilon else 2**40
            then = self.after(state, charge)  # the first may leave more room to the others
            room = state.room if then is None else then.room
            counts.append(min(count, int((room - state.failures) / failure)) if failure else count)
        if state.mu_squared is not None:
            left = state.mu_squared
            count = residue_times(left, charge)
            counts.append(
                min(count, int((self.limits.reserve - state.failures) / failure))
                if failure
                else count
            )
        first = 1 if not any(counts) and self.after(state, charge) is not None else 0
        return max([*counts, first])

    # Prices. A side is on promise while it has spent at most the part of the budget that was asked
    # for, and one side always is (docs/guarantees/accounting.md#what-a-price-promises).

    def _offer(
        self,
        epsilon: Fraction,
        state: Either,
        largest_pure: Fraction | None,
        wanted: Fraction | None,
        pure: Fraction | None,
        keeps: bool = False,
    ) -> Price:
        """Return the price of a question that asks for this epsilon: what it may buy.

        It may buy one of two things: a pure release of ``pure`` epsilon, or Gaussian noise of
        ``wanted`` mu squared. None stands for the question's part of the budget, which neither
        exceeds. With ``keeps``, or if the plain sum of epsilons has no room, a pure release takes
        at most its part of the Gaussian budget: its epsilon is then the largest that does so, up to
        ``pure``, or up to ``largest_pure`` without it.

        Every question is promised its part of the budget: one that asks for a tenth of epsilon must
        find a tenth. The plain sum cannot pay for Gaussian noise. So none is offered if the
        Gaussian budget would then have spent more than the parts of all questions so far.
        """
        # ``spent`` is the plain sum so far, and ``left`` the rest of the Gaussian budget. None says
        # that this side of the budget was exceeded.
        part, left, limit = epsilon / self.limits.epsilon, state.mu_squared, self.limit
        pure_epsilon, spent = epsilon if pure is None else pure, state.epsilon
        if left is None:
            return Price(pure_epsilon, stake=Stake(epsilon, part))
        share = part * limit
        mu_squared = share if wanted is None else min(wanted, share)
        # Gaussian noise ends the plain sum, and the Gaussian budget alone keeps the promise then.
        # That needs a check only if it has spent a larger part than the plain sum. Doubles, right
        # to 1e-14 of the whole, mostly say so.
        if spent is not None and left < limit:
            gone = 1 - float(left) / float(limit)
            if float(spent) < (gone + 1e-12) * float(self.limits.epsilon):
                promised = (spent + epsilon) / self.limits.epsilon * limit
                mu_squared = min(mu_squared, promised - (limit - left))
        # None says that the plain sum pays for a pure release, and the Gaussian budget need not.
        cost = None
        if keeps or spent is None or spent + pure_epsilon > self.limits.epsilon:
            cost, pure_epsilon = (
                share,
                find_largest_epsilon("pure", left, share, largest_pure if pure is None else pure)
                or pure_epsilon,
            )
        # No Gaussian noise until the parts of further questions allow for it.
        gaussian_waits = mu_squared.numerator <= 0
        # Whether Gaussian noise gets less than was wanted.
        scaled = wanted is None or mu_squared < wanted
        # The request goes with the price: plans and messages tell from it what was asked for.
        stake = Stake(epsilon, part, scaled, left, cost, gaussian_waits)
        return Price(
            pure_epsilon, None if gaussian_waits else mu_squared, None, self.conversion, stake=stake
        )

    def share(self, queries: int | Fraction, state: Either) -> Price:
        """Return the price of a question that names no price: one of ``queries`` equal shares of
        the budget.

        Of two 95 % intervals, compare that of a pure release for a share of the plain sum, with
        that of Gaussian noise for a share of the Gaussian budget. If the Gaussian one is narrower,
        a pure release also keeps to its share of the Gaussian budget (``keeps``). So later shares
        that only Gaussian noise can answer still find theirs there.
        """
        epsilon, limit, spent = self.limits.epsilon / queries, self.limit, state.epsilon
        keeps = (
            spent is not None
            and state.mu_squared is not None
            and spent + epsilon <= self.limits.epsilon
        )
        if keeps:
            part = limit.numerator * queries.denominator / (limit.denominator * queries.numerator)
            keeps = _PURE_WIDTH * math.sqrt(part) >= _GAUSSIAN_WIDTH * float(epsilon)
        return self._offer(epsilon, state, epsilon if keeps else None, None, None, keeps)

    def worth(self, epsilon: Fraction, state: Either) -> Price:
        """Return the price of a question that asks for this epsilon.

        It buys a pure release of that epsilon, or Gaussian noise at the same cost. The cost is the
        mu squared that the pure release takes of the whole Gaussian budget. It is never more than
        the question's part of the budget.
        """
        return self._offer(
            epsilon, state, epsilon, _compute_cost_of_pure(epsilon, self.limit), None
        )

    def gaussian(self, amount: Fraction, queries: int, state: Either) -> Price | None:
        """Return a price that buys Gaussian noise of ``amount`` mu squared.

        Return None if the Gaussian budget is exceeded, or has to be kept for what other questions
        were promised. ``queries`` is for other accountants, which divide the budget by it.
        """
        left = state.mu_squared
        if left is None:
            return None
        # The noise ends the plain sum of epsilons, so the Gaussian budget must pay for all further
        # questions. It cannot if it has spent a larger part than the plain sum.
        if state.epsilon is not None and 1 - left / self.limit > self.part(state.epsilon):
            return None
        return Price(None, amount, None, self.conversion)

    def warning(self, before: Either, after: Either) -> str | None:
        """Return a warning of a debit that ends the Gaussian budget; None if there is nothing to
        say.

        ``before`` and ``after`` are the states around the debit. It warns if the question is large
        and leaves some of the plain sum, or if the failures exceed the reserve.
        """
        if before.mu_squared is None or after.mu_squared is not None:
            return None
        assert before.epsilon is not None  # else nothing would have paid
        assert after.epsilon is not None
        often = after.failures > self.limits.reserve
        large = (
            self.part(after.epsilon - before.epsilon) >= _LARGE
            and after.epsilon < self.limits.epsilon
        )
        if not often and not large:
            return None
        why = (
            "this question may fail more often than the reserve allows, so it is"
            if often
            else "this question is too large to be counted together with many small ones, which is what accountant='tight' is "
            "good at, so it is"
        )
        return (
            f"{why} paid from the plain sum of epsilons. From here on that sum is all that guards the budget: no Gaussian noise, "
            "and k questions cost k times one. Smaller questions avoid this, and for a few large ones there is "
            "accountant='pure': see 'How to choose an accountant' (docs/how-to/choose-an-accountant.md)."
        )

    def price_guarantee(self, epsilon: Fraction, delta: Fraction, state: Either) -> Price:
        """Return the price of Gaussian noise with this (epsilon, delta) guarantee, at most the
        question's part of the budget."""
        mu_squared = stated_gaussian(epsilon, delta).mu_squared
        if mu_squared is None:
            return self._offer(epsilon, state, epsilon, Fraction(0), None)
        price = self._offer(
            epsilon, state, epsilon, mu_squared, min(epsilon, _gaussian.pure_for_mu(mu_squared))
        )
        if price.mu_squared is None:  # nothing to compare with
            return self._offer(epsilon, state, epsilon, mu_squared, None)
        return price.change(delta=delta)

    @staticmethod
    def report(events: Events, delta: Fraction) -> float:
        """Return the epsilon of the least budget that admits a list of releases in this order, at
        this delta."""
        left, pure = delta - failures(events), pure_sum(events)
        sum_of_pure = math.inf if pure is None or left < 0 else float(pure)
        return min(sum_of_pure, _residue_epsilon(events, left) if left > 0 else math.inf)

    def pure_spent(self, state: Either) -> Fraction | None:
        return state.epsilon


@lru_cache(maxsize=1024)
def _compute_cost_of_pure(epsilon: Fraction, mu_squared: Fraction) -> Fraction | None:
    """Return what a pure release of this epsilon takes of a Gaussian budget of this mu squared.

    The result is in mu squared, too, and None if the release does not fit.
    """
    left = PureDP(epsilon).leaves(mu_squared)
    return None if left is None else mu_squared - left


def _residue_epsilon(events: Events, delta: Fraction) -> float:
    """Return the least epsilon whose Gaussian budget at this delta admits a list of releases,
    rounded up."""
    above = mu_squared_sum(events)  # enough in any case: mu is additive
    if above is None:
        return math.inf
    below = above / 2  # the residue of a pure release is at least 2 / pi of its mu squared
    # To 1e-4 of what lies between.
    least = _search.first_where(
        lambda square: residue_after(square, events) is not None, below, above, rounds=14
    )
    return _gaussian.epsilon_for(math.sqrt(least) * _UP, float(delta) * (1 - 1e-12))


def residue_after(mu_squared: Fraction, events: Events) -> Fraction | None:
    """Return how much of a Gaussian budget is left after a list of releases in this order.

    Budget and result are in mu squared. Return None if the releases do not fit. ``events`` are
    pairs of a loss and a count: so many equal releases. If the count is more than 8, the cost of
    several of them is bounded at once.
    """
    left: Fraction | None = mu_squared
    for loss, count in events:
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
            else:
                left, count = loss.leaves(left), count - 1
    return left


# For each kind of release: the class of its loss; the number of tries of `find_largest_epsilon` and
# its tolerance; a bound on the epsilon at which mu is 1; and the part of its epsilon at which
# randomized response is one of its pairs of output distributions.
_KINDS = {"pure": (PureDP, 40, 1e-9, 2, 1.0), "ranged": (Exponential, 8, 1e-3, 4, 0.5)}


def find_largest_epsilon(
    kind: str, left: Fraction, cost: Fraction, most: Fraction | None
) -> Fraction | None:
    """Return nearly the largest epsilon at which one release takes at most ``cost`` of a Gaussian
    budget.

    ``kind`` is "pure", or "ranged" for the exponential mechanism. ``left`` is what is left of the
    budget; it and ``cost`` are in mu squared. The epsilon is at most ``most``, if that is given.
    Return None if less than ``cost`` is left.

    >>> round(float(find_largest_epsilon("pure", Fraction(1), Fraction(1, 100), None)), 3)
    0.1
    >>> find_largest_epsilon("pure", Fraction(1), Fraction(1, 100), Fraction(1, 20))
    Fraction(1, 20)
    """
    # No release takes more than its mu squared. Mu is a convex function of tanh(epsilon/2), which
    # is at most epsilon/2; from 0 to an epsilon of 1 below its chord: 2 Phi**-1(e / (1 + e)) /
    # tanh(1/2) < 2.672, and 1.8 is more than the square of a half.
    if most is not None and most <= 1 and 1.8 * float(most) ** 2 < min(float(cost), float(left)):
        return most
    return _search_largest_epsilon(kind, left, cost, most)


@lru_cache(maxsize=1024)
def _search_largest_epsilon(
    kind: str, left: Fraction, cost: Fraction, most: Fraction | None
) -> Fraction | None:
    """Search the largest epsilon at which one release takes at most ``cost`` of a Gaussian budget,
    and cache it.

    Parameters and result are those of `find_largest_epsilon`. The search keeps an epsilon that fits
    (``low``) and one that does not (``high``), and guesses the next one between them.
    """
    make, rounds, close, first, response = _KINDS[kind]
    whole = float(cost)

    def used_part(epsilon: Fraction, quick: bool = False) -> float:
        """Return the part of the cost that a release of this epsilon takes; inf if it does not fit.

        With ``quick`` it returns NaN if a simple bound shows that it is too much. ``whole`` is the
        cost that it may take, and ``left`` what is left of the budget, both in mu squared.
        """
        # One pair of output distributions of the release is randomized response, at ``response``
        # times its epsilon. That gives the simple bound.
        # The affinity of two distributions p and q is the sum of sqrt(p q). Affinities of
        # independent releases multiply, and a release that dominates has no larger one. That of
        # G(mu) is exp(-mu**2 / 8), and that of randomized response 1 / cosh(epsilon / 2).
        quarter = min(float(epsilon), 100.0) * response / 4
        if quick and 8 * math.log1p(2 * math.sinh(quarter) ** 2) > whole * (1 + 1e-9):
            return math.nan
        after = make(epsilon).leaves(left)
        if after is None:
            return math.inf
        # The quotient of whole numbers is rounded once, as that of a fraction is.
        n, d = after.numerator, after.denominator
        return (left.numerator * d - n * left.denominator) / (left.denominator * d) / whole * _UP

    if most is not None and used_part(most, quick=True) <= 1:
        return most
    if cost > left:
        return None
    low, high, under = Fraction(0), Fraction(first * math.sqrt(cost)), 0.0
    over = math.inf  # what `high` takes; NaN where more is not known than that it is too much
    if most is None or high < most:
        while (over := used_part(high, quick=True)) <= 1:
            low, high, under = high, 2 * high, over
        at = (low + high) / 2
    else:
        high, at = most, min(high / 2, most / 2)
    for _ in range(rounds):
        if not low < at < high:
            break
        used = used_part(at)
        if used <= 1:
            low, under = at, used
        else:
            high, over = at, used
        if float(high) - float(low) <= close * float(high):
            break
        # A cost is nearly a square, which grows a little faster: between two known ones it is
        # nearly a power.
        over = used_part(high) if low and math.isnan(over) else over
        power = (
            math.log(over / under) / math.log(high / low)
            if low and over and math.isfinite(over)
            else 2.0
        )
        guess = float(low) * under ** (-1 / power) if low else 0.0
        near = Fraction(
            guess * (1 - close / 3 if guess * (1 + close) > high or used > 1 else 1 + close / 3)
        )
        at = near if low < near < high else Fraction(float(low + high) / 2)
    return low or None


def residue_times(mu_squared: Fraction, charge: Charge) -> int:
    """Return how many debits equal to this one a Gaussian budget takes.

    ``mu_squared`` is what is left of it. For choices, whose costs take long to compute, it is a
    lower bound.
    """
    if not any(loss.bounded_range for loss, _ in charge.losses):
        return most_that(
            lambda n: residue_after(mu_squared, repeat_charge(charge, n).losses) is not None
        )
    count, left, costs = 0, mu_squared, cast("dict[int, Fraction | None]", {})

    def between(high: int, low: int) -> None:
        """Compute the cost of a debit at two levels of the budget, and store it in ``costs``.

        If the costs differ by more than a tenth, compute it between the levels too. ``high`` and
        ``low`` are twelfths of what is left. A cost at one level holds at every larger one.
        """
        for part in (high, low):
            if part not in costs:
                after = residue_after(mu_squared * Fraction(part, 12), charge.losses)
                costs[part] = None if after is None else mu_squared * Fraction(part, 12) - after
        above, below = costs[high], costs[low]
        if (
            above is not None
            and high - low > 1
            and (below is None or below > above * Fraction(11, 10))
        ):
            between(high, (high + low) // 2)
            between((high + low) // 2, low)

    between(11, 1)
    for part, cost in sorted(costs.items(), reverse=True):
        room = left - mu_squared * Fraction(part, 12)
        if cost and room >= 0:
            fits = int(room / cost) + 1
            count, left = count + fits, left - fits * cost
    while count < 3 and (after := residue_after(left, charge.losses)) is not None:
        count, left = count + 1, after
    return count
