"""The price that a call takes of a budget, and the noise it buys.

Pure: nothing here reads data, and nothing here can spend.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypedDict

import numpy as np

from dpframe import _validate
from dpframe._errors import BadType, BadValue, BudgetError, did_you_mean, with_article
from dpframe._plans.aggregates import Aggregate
from dpframe._plans.budget import Budget, pricing_state
from dpframe._plans.plan import ON_SURROUNDINGS, Plan
from dpframe._refusals import PANDAS_WORDS
from dpframe._statistics.base import Sensitivity
from dpframe.accounting import _search
from dpframe.accounting._filter import Charge, Filter, Price
from dpframe.accounting.loss import PureDP
from dpframe.mechanisms._base import (
    AUTO,
    MECHANISMS,
    NO_EPSILON,
    Mechanism,
    Noise,
    Offer,
    names,
    pure,
)
from dpframe.mechanisms.noise import GaussianNoise, LaplaceNoise
from dpframe.mechanisms.selection import ExponentialChoice, NoisyMax, NoisyTop, ranges_cost_less

# The price of a question ----------------------------------------------------------------------------------------------


class Payment(TypedDict, total=False):
    """The keyword arguments about the price that every releasing verb takes."""

    epsilon: float | None
    delta: float | None
    within: float | None
    n: float | None
    mechanism: str
    fresh: bool
    name: str | None
    max_rows: int | None
    max_groups: int | None


WORDS = tuple(Payment.__annotations__)
DEFAULTS: dict[str, Any] = {"mechanism": AUTO, "fresh": False}
_LEAST = Fraction(1, 2**40)


def check_payment(payment: Mapping[str, object]) -> Payment:
    """Check the keyword arguments about price that a verb was given, and return them.

    An unknown one is refused, with the nearest known one. An argument of the pandas method is
    allowed where it changes nothing. Where it would change something it is refused, with the
    reason.
    """
    for word, value in payment.items():
        if word in PANDAS_WORDS:
            harmless, reason = PANDAS_WORDS[word]
            if not any(type(value) is type(plain) and value == plain for plain in harmless):
                raise BadType(f"{word}= is refused here: {reason}")
        elif word == "bounds":
            raise BadType(
                "bounds= are of what is clipped or of periods, and nothing is here. Those of "
                "periods are given where they are "
                "made: p.resample('ME', on='t', bounds=('2024-01-01', '2024-12-31')).size()."
            )
        elif word not in WORDS:
            raise BadType(f"no such argument: {word}=.{did_you_mean(word, WORDS, 'Price words')}")
    if not isinstance(payment.get("fresh", False), bool):
        raise BadType(f"fresh must be True or False, not {payment.get('fresh')!r}.")
    name = payment.get("name")
    if name is not None and not (isinstance(name, str) and name.strip()):
        raise BadType("name= must be a name for the answer, such as 'mean_age'.")
    return payment  # type: ignore[return-value]  # checked just now


def find_price(
    budget: Budget,
    payment: Payment,
    people: int | None,
    plan_for: Callable[[Price], Plan],
    part: Fraction = Fraction(1),
) -> Price:
    """Return the price of a question from the keyword arguments of its verb.

    It is the epsilon or delta that they name, the least price that ``within=`` needs, or a share of
    the budget. ``people`` is the number of values as far as the session knows it. ``plan_for``
    returns the plan that a price buys.

    A question that is answered by several releases asks for a ``part`` of the price each time.
    """
    mechanism, kind = payment.get("mechanism", AUTO), None
    if not (isinstance(mechanism, str) and mechanism == AUTO):
        kind = MECHANISMS.get(_validate.choice(mechanism, "mechanism", names()))
    epsilon, delta, within = payment.get("epsilon"), payment.get("delta"), payment.get("within")
    rule, state = budget.rule, pricing_state(budget) if budget.state is None else budget.state
    if within is None and payment.get("n") is not None:
        raise BadValue(
            "n= is a number of values for within= and for explain, and nothing else uses it."
        )
    if within is not None:
        if epsilon is not None or delta is not None:
            raise BadValue("within= finds the price itself: leave epsilon= and delta= out.")
        price = _find_price_within(
            budget, within, read_public_number(payment.get("n"), people), kind, plan_for
        )
    elif delta is not None:
        price = _price_with_delta(budget, epsilon, delta, kind, part)
    elif epsilon is not None:
        e = _validate.epsilon(epsilon)
        price = rule.worth(e if part == 1 else e * part, state)
    else:
        price = rule.share(budget.queries if part == 1 else budget.queries / part, state)
    if kind is not None and kind.needs_delta and price.mu_squared is None and price.rho is None:
        if not rule.limits.delta:
            raise BudgetError(
                "this session has delta=0, so it has no room for the Gaussian mechanism."
            )
        price = rule.price_gaussian_by_epsilon(
            price.epsilon or rule.limits.epsilon * part / budget.queries, state
        )
    # For a choice, within= may have found another mechanism that is cheaper than noisy max.
    if price.mechanism == mechanism:
        return price
    chosen = MECHANISMS.get(price.mechanism)
    return price if chosen is not None and chosen.chooses else price.change(mechanism=mechanism)


def format_price_as_typed(paid: str) -> str:
    """Return the price of a question as the user typed it, for messages.

    ``paid`` has the arguments about price, separated by bars.
    """
    pairs = zip(("epsilon", "delta", "within"), paid.removeprefix("half|").split("|"), strict=False)
    typed = ", ".join(f"{name} {value}" for name, value in pairs if value not in ("", "None"))
    return f"asked at {typed}" if typed else "asked for a share"


def _price_with_delta(
    budget: Budget, epsilon: object, delta: object, kind: type[Mechanism] | None, part: Fraction
) -> Price:
    """Return the price of a question that names ``delta=``.

    ``kind`` is the mechanism that it names, or None. ``part`` is the fraction of the price that is
    taken.
    """
    rule = budget.rule
    e = part * (
        rule.limits.epsilon / budget.queries if epsilon is None else _validate.epsilon(epsilon)
    )
    d = check_delta(delta, rule) * part
    if kind is not None and kind.wastes_delta and d:
        raise BadValue(
            f"mechanism={kind.name!r} is purely epsilon-private: leave delta= out, it would be "
            "wasted."
        )
    if kind is not None and kind.needs_delta and not d:
        raise BadValue(f"mechanism={kind.name!r} needs delta > 0.")
    if d and not rule.limits.delta:
        raise BudgetError("this session has delta=0, so it has no room for a price with delta.")
    if d:
        return rule.price_guarantee(e, d, pricing_state(budget))
    # delta=0 asks for pure epsilon, so the price buys no Gaussian noise (mu squared, or rho).
    return rule.worth(e, pricing_state(budget)).change(mu_squared=None, rho=None)


def check_delta(delta: object, rule: Filter) -> Fraction:
    """Return the delta that one question names, and refuse more than the whole session has."""
    d, most = _validate.delta(delta), rule.limits.delta
    if d > most > 0:
        raise BudgetError(
            f"delta={float(d):g} is more than the whole session has, {float(most):g}: a question "
            "that may fail so often is not "
            "what was promised at opening."
        )
    return d


def read_public_number(n: object, people: int | None) -> float | None:
    """Return the number of values to expect, to price an accuracy; None if it is not known.

    ``n`` is what the user gave, and ``people`` the number declared at opening. Of a released count
    the lower end of its interval is taken.
    """
    if n is None:
        return None if people is None else float(people)
    interval = getattr(n, "interval", None) if isinstance(n, int | float) else None
    if not isinstance(n, int | float | Fraction | Decimal | np.number):
        raise BadType(
            f"n= is one number, public or released, not {with_article(type(n).__name__)}. Of "
            "groups give the "
            "smallest."
        )
    number = _validate.real(n, "n") if interval is None else float(interval()[0])
    if number < 1:
        raise BadValue(
            "n= must be at least 1; of a released count the lower end of its interval is taken."
        )
    return number


def _find_price_within(
    budget: Budget,
    within: object,
    n: float | None,
    kind: type[Mechanism] | None,
    plan_for: Callable[[Price], Plan],
) -> Price:
    """Return the least price at which half the width of the 95 % interval is at most ``within``.

    ``n`` is the number of values to expect, and ``kind`` the mechanism that the user named.
    ``plan_for`` returns the plan that a price buys. If several mechanisms are possible, the one
    that takes least of the budget is taken.
    """
    target = _validate.real(within, "within")
    if target <= 0:
        raise BadValue(f"within= must be positive, not {within}.")
    rule = budget.rule
    prices = []
    if kind is None or not kind.needs_delta:
        # A pure mechanism that is never chosen automatically is priced by its own name.
        name = kind.name if kind is not None and kind.measures and not kind.automatic else AUTO
        prices.append(
            _find_least_price(target, n, lambda x: Price(x, mechanism=name), rule, plan_for)
        )
    chooser = ExponentialChoice if kind is None else kind
    if chooser.chooses and plan_for(Price(Fraction(1))).ranged:
        ranged = _find_least_price(
            target, n, lambda x: Price(x, mechanism=chooser.name), rule, plan_for
        )
        prices = [*prices, ranged] if kind is None else [ranged]
    if (kind is None or kind.needs_delta) and rule.gaussian(
        Fraction(1), budget.queries, pricing_state(budget)
    ) is not None:

        def gaussian(x: Fraction) -> Price:
            """Return the price that buys Gaussian noise of amount x."""
            price = rule.gaussian(x, budget.queries, pricing_state(budget))
            assert price is not None
            return price.change(mechanism=GaussianNoise.name)

        # A selection has a mechanism of its own, which is pure.
        if not plan_for(Price(Fraction(1))).selects:
            prices.append(_find_least_price(target, n, gaussian, rule, plan_for))
    if not prices:
        raise BudgetError(
            "the accountant of this session cannot count Gaussian noise now: leave mechanism= out."
            if rule.limits.delta
            else "this session has delta=0, so it has no room for the Gaussian mechanism."
        )
    return min(prices, key=lambda price: _rank_cost(budget, plan_for(price).charge))


def _rank_cost(budget: Budget, charge: Charge) -> tuple[bool, float]:
    """Return a key that orders charges by their cost: whether the charge no longer fits, and the
    part of a whole budget that it takes.
    """
    rule = budget.rule
    fits = budget.state is not None and rule.after(budget.state, charge) is not None
    alone = rule.after(rule.empty_state(pricing_state(budget)), charge)
    return not fits, math.inf if alone is None else float(rule.spent(alone))


def _find_least_price(
    target: float,
    n: float | None,
    price: Callable[[Fraction], Price],
    rule: Filter,
    plan_for: Callable[[Price], Plan],
) -> Price:
    """Return the least price whose expected error is at most ``target``, to 24 bits.

    ``price`` makes a price of an amount, such as an epsilon or a mu squared, and ``plan_for``
    returns the plan that it buys. ``n`` is the number of values to expect. The amount is enlarged or
    reduced by factors of 4 until it is enclosed, and then found by bisection.
    """
    high = Fraction(1)

    def wide(x: Fraction) -> bool:
        """Return whether the error at this amount is still larger than the target."""
        error = plan_for(price(x)).worst_error(n)
        if error is None:
            raise BadValue(
                "within= needs to know how many values there are: give n=, a public number or a "
                "released count."
                if n is None and plan_for(price(x)).worst_error(1e6) is not None
                else "within= cannot tell the width of this answer's interval in advance: "
                "give epsilon=."
            )
        return error > target

    while wide(high):
        high *= 4
        if high > 2**20:
            raise BadValue(
                f"no price gives an interval of ±{target:g}: it is finer than the grid of the "
                "answer."
            )
    low = high / 4
    while not wide(low):
        low, high = low / 4, low
        if high < _LEAST:
            return price(_LEAST)
    return price(_search.first_where(lambda x: not wide(x), low, high, rounds=24))


# Noise for a price --------------------------------------------------------------------------------


def buy_noise(sensitivities: Sequence[Sensitivity], price: Price) -> Offer:
    """Return the noise that a price buys for the vectors of a question, with its privacy loss.

    ``sensitivities`` has one for each vector. A mechanism that the price names is taken. Otherwise
    the one with the narrowest intervals is taken, of those that the price buys. The offer also
    holds the reason for the choice, as text for the plan.
    """
    named: Any = MECHANISMS.get(price.mechanism)
    if named is not None:
        if not named.measures:
            raise BadValue(
                f'mechanism="{price.mechanism}" makes choices: this question measures, so leave '
                "it out."
            )
        bought: Offer | None = named.offer(sensitivities, price)
        if bought is None:
            raise BudgetError(named.refusal(price))
        return bought.change(why=f"{named.name.capitalize()}, as asked")
    kinds: Any = MECHANISMS.values()
    offers: list[tuple[type[Noise], Offer]] = []
    for kind in kinds:
        offer = kind.offer(sensitivities, price) if kind.automatic else None
        if offer is not None:
            offers.append((kind, offer))
    if not offers:
        raise BudgetError(NO_EPSILON)
    (first_kind, first_offer), *further = offers
    if not further:
        why = first_kind.name.capitalize()
        if not first_kind.needs_delta:
            waits = price.stake is not None and price.stake.gaussian_waits
            why = (
                f"{why}: Gaussian noise has to wait until more is spent"
                if waits
                else "pure epsilon"
            )
        return Offer(first_offer.noises, first_offer.loss, first_offer.stated_at, why)
    widths = [_mean_width(offer) for _, offer in offers]
    best = min(range(1, len(offers)), key=widths.__getitem__)
    first_name, best_name, ratio = (
        first_kind.name.capitalize(),
        offers[best][0].name.capitalize(),
        widths[best] / max(widths[0], 1),
    )
    if ratio < 1:
        why = (
            f"{best_name} intervals are {ratio:.3g} times as wide as {first_name} ones at this "
            "price"
        )
        return offers[best][1].change(why=why)
    return first_offer.change(
        why=f"{first_name}: {best_name} intervals would be {ratio:.3g} times as wide at this price"
    )


def _mean_width(offer: Offer) -> float:
    """Return the geometric mean of the half widths of intervals, to compare mechanisms.

    It does not depend on the order of the vectors.
    """
    halves = [noise.quantile(0.95) for noise in offer.noises]
    if len({*halves}) == 1:
        return float(halves[0])
    return (
        math.exp(math.fsum(math.log(half) for half in halves) / len(halves)) if all(halves) else 0.0
    )


def buy_points(
    sensitivities: Sequence[Sensitivity],
    picks: Sequence[int],
    shares: Sequence[Fraction],
    price: Price,
) -> Offer:
    """Return the mechanisms for vectors that share a price, if some of them choose grid points, as
    quantiles do.

    ``picks`` has the number of points to choose for each vector, and 0 for one that is measured.
    ``shares`` has the share of the price of each. The sensitivity of a vector to choose from is
    that of differences of scores.
    """
    if price.mechanism != AUTO:
        raise BadValue("a selection has its own mechanism (noisy-max): leave mechanism= out.")
    epsilon = pure(price)
    noises: list[Any] = [
        LaplaceNoise.for_price(s.l1, epsilon * share)
        if not rounds
        else NoisyMax.for_price(s.l1, epsilon * share)
        if rounds == 1
        else NoisyTop.for_price(s.l1, epsilon * share, rounds)
        for s, rounds, share in zip(sensitivities, picks, shares, strict=True)
    ]
    why = "points of a grid, one price: only the choice leaves, never a count"
    if not all(picks):
        why = "choices by noisy max, and pure epsilon for what is counted or added up"
    if len(set(shares)) > 1:
        why += f"; {ON_SURROUNDINGS} of the price of a choice counts what it is judged by"
    return Offer(noises, PureDP(pure(price)), why=why)


def buy_choice(
    aggregate: Aggregate, reach: int, candidates: int, rounds: int, price: Price
) -> Offer:
    """Return the mechanism that selects one candidate or several, with its privacy loss.

    One person moves scores by ``reach`` against one another. ``candidates`` is their number, and
    ``rounds`` how many are selected.
    """
    selection = aggregate.choice
    assert selection is not None
    ranged = selection.ranged
    named: Any = MECHANISMS.get(price.mechanism)
    named_chooses = named is not None and named.chooses and ranged
    if price.mechanism != AUTO and not named_chooses:
        also = ', or give mechanism="exponential"' if ranged else ""
        raise BadValue(
            f"a selection has its own mechanism (noisy-max): leave mechanism= out{also}."
        )
    text = f"{candidates} candidates, one price: only the choice leaves"
    if selection.several:
        epsilon = pure(price)
        why = f"{text}, in {rounds} rounds that share it, never a count"
        return Offer([NoisyTop.for_price(reach, epsilon, rounds)], PureDP(epsilon), why=why)
    if not ranged:
        return NoisyMax.offer(reach, price).change(why=f"{text}, never a count")
    if not named_chooses and not ranges_cost_less(price):
        why = f"{text}; noisy max expects no less than the exponential mechanism of this epsilon"
        return NoisyMax.offer(reach, price).change(why=why)
    chosen: Offer = (named or ExponentialChoice).offer(reach, price)
    return chosen.change(why=f"{text}; {chosen.why}")
