"""The way from the words of a call to a price: ``epsilon=``, ``within=``, or the session's share. Pure; reads no data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypedDict

import numpy as np

from dpframe import _search, _validate
from dpframe._errors import BadType, BadValue, BudgetError, did_you_mean
from dpframe._plans.plan import Plan
from dpframe._refusals import PANDAS_WORDS
from dpframe.accounting._filter import Charge, Filter, Price
from dpframe.accounting._meter import Budget
from dpframe.mechanisms._base import AUTO, MECHANISMS, Mechanism, names
from dpframe.mechanisms.noise import Gaussian
from dpframe.mechanisms.selection import Exponential


class Payment(TypedDict, total=False):
    """The words that every releasing verb takes."""

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


def checked(payment: Mapping[str, Any]) -> Payment:
    """The words of a call; one that no verb knows is an error, not ignored.

    A word of pandas' own that changes nothing is let through, and any other is refused with its reason.
    """
    for word, value in payment.items():
        if word in PANDAS_WORDS:
            neutral, reason = PANDAS_WORDS[word]
            if not any(type(value) is type(one) and value == one for one in neutral):
                raise BadType(f"{word}= is refused here: {reason}")
        elif word not in WORDS:
            raise BadType(f"no such argument: {word}=.{did_you_mean(word, WORDS, 'Price words')}")
    if not isinstance(payment.get("fresh", False), bool):
        raise BadType(f"fresh must be True or False, not {payment.get('fresh')!r}.")
    name = payment.get("name")
    if name is not None and not (isinstance(name, str) and name.strip()):
        raise BadType("name= must be a name for the answer, such as 'mean_age'.")
    return payment  # type: ignore[return-value]  # checked just now


def price_of(
    budget: Budget,
    payment: Payment,
    people: int | None,
    plan_for: Callable[[Price], Plan],
    part: Fraction = Fraction(1),
) -> Price:
    """The price that was asked for, what the wanted accuracy needs, or a share of the budget. ``part`` of it, where a question
    is asked in several releases."""
    mechanism, asked = payment.get("mechanism", AUTO), None
    if not (isinstance(mechanism, str) and mechanism == AUTO):
        asked = MECHANISMS.get(_validate.choice(mechanism, "mechanism", names()))
    epsilon, delta, within = (payment.get(word) for word in ("epsilon", "delta", "within"))
    if within is None and payment.get("n") is not None:
        raise BadValue("n= is a number of values for within= and for explain, and nothing else uses it.")
    if within is not None:
        if epsilon is not None or delta is not None:
            raise BadValue("within= finds the price itself: leave epsilon= and delta= out.")
        price = _price_within(budget, within, known_n(payment.get("n"), people), asked, plan_for)
    elif epsilon is None and delta is None:
        price = budget.rule.share(budget.queries / part, budget._now)
    else:
        price = _stated(budget, epsilon, delta, asked, part)
    if asked is not None and asked.needs_delta and price.mu_squared is None and price.rho is None:
        if not budget.rule.limits.delta:
            raise BudgetError("this session has delta=0, so it has no room for the Gaussian mechanism.")
        e = price.epsilon or budget.rule.limits.epsilon * part / budget.queries
        price = budget.rule.gaussian_stated(e, budget._now)
    # For a choice within= may have found another mechanism to be cheaper than noisy max.
    found = MECHANISMS.get(price.mechanism)
    if price.mechanism == mechanism or (found is not None and found.chooses):
        return price
    return price._replace(mechanism=mechanism)


def worded(paid: str) -> str:
    """The price as it was typed."""
    words = zip(("epsilon", "delta", "within"), paid.removeprefix("half|").split("|"), strict=False)
    typed = ", ".join(f"{word} {value}" for word, value in words if value not in ("", "None"))
    return f"asked at {typed}" if typed else "asked for a share"


def _stated(
    budget: Budget, epsilon: object, delta: object, asked: type[Mechanism] | None, part: Fraction
) -> Price:
    rule = budget.rule
    e = part * (rule.limits.epsilon / budget.queries if epsilon is None else _validate.epsilon(epsilon))
    if delta is None:
        return rule.worth(e, budget._now)
    d = delta_of(delta, rule) * part
    if asked is not None and asked.wastes_delta and d:
        raise BadValue(
            f"mechanism={asked.name!r} is purely epsilon-private: leave delta= out, it would be wasted."
        )
    if asked is not None and asked.needs_delta and not d:
        raise BadValue(f"mechanism={asked.name!r} needs delta > 0.")
    if d and not rule.limits.delta:
        raise BudgetError("this session has delta=0, so it has no room for a price with delta.")
    if d:
        return rule.stated(e, d, budget._now)
    return rule.worth(e, budget._now)._replace(mu_squared=None, rho=None)


def delta_of(delta: object, rule: Filter) -> Fraction:
    """The delta of one question: at most that of the whole session."""
    d, most = _validate.delta(delta), rule.limits.delta
    if d > most > 0:
        raise BudgetError(
            f"delta={float(d):g} is more than the whole session has, {float(most):g}: a question that may fail so often is not "
            "what was promised at opening."
        )
    return d


def known_n(n: object, people: int | None) -> float | None:
    """A public number of values: given, declared at opening, or the lower end of a released count's interval."""
    if n is None:
        return None if people is None else float(people)
    interval = getattr(n, "interval", None) if isinstance(n, int | float) else None
    if not isinstance(n, int | float | Fraction | Decimal | np.number):
        raise BadType(
            f"n= is one number, public or released, not a {type(n).__name__}. Of groups give the smallest."
        )
    known = _validate.real(n, "n") if interval is None else float(interval()[0])
    if known < 1:
        raise BadValue("n= must be at least 1; of a released count the lower end of its interval is taken.")
    return known


def _price_within(
    budget: Budget,
    within: object,
    n: float | None,
    asked: type[Mechanism] | None,
    plan_for: Callable[[Price], Plan],
) -> Price:
    """The least price, in the session's currency, whose 95 % interval is at most this wide on either side."""
    target = _validate.real(within, "within")
    if target <= 0:
        raise BadValue(f"within= must be positive, not {within}.")
    rule = budget.rule
    found = []
    if asked is None or not asked.needs_delta:
        # A purely private kind that nothing chooses by itself is priced by its own name.
        word = asked.name if asked is not None and asked.measures and not asked.automatic else AUTO
        found.append(_least(target, n, lambda x: Price(x, mechanism=word), rule, plan_for))
    chooser = Exponential if asked is None else asked
    if chooser.chooses and plan_for(Price(Fraction(1))).ranged:
        ranged = _least(target, n, lambda x: Price(x, mechanism=chooser.name), rule, plan_for)
        found = [*found, ranged] if asked is None else [ranged]
    if (asked is None or asked.needs_delta) and rule.gaussian(
        Fraction(1), budget.queries, budget._now
    ) is not None:

        def gaussian(x: Fraction) -> Price:
            price = rule.gaussian(x, budget.queries, budget._now)
            assert price is not None
            return price._replace(mechanism=Gaussian.name)

        # A selection has a mechanism of its own, which is pure.
        if not plan_for(Price(Fraction(1))).selects:
            found.append(_least(target, n, gaussian, rule, plan_for))
    if not found:
        raise BudgetError(
            "the accountant of this session cannot count Gaussian noise now: leave mechanism= out."
            if rule.limits.delta
            else "this session has delta=0, so it has no room for the Gaussian mechanism."
        )
    return min(found, key=lambda price: _cost(budget, plan_for(price).charge))


def _cost(budget: Budget, charge: Charge) -> tuple[bool, float]:
    """What does not fit any more comes last; else what takes the smaller part of a whole budget."""
    rule = budget.rule
    fits = budget.state is not None and rule.after(budget.state, charge) is not None
    alone = rule.after(rule.emptied(budget._now), charge)
    return not fits, math.inf if alone is None else float(rule.spent(alone))


def _least(
    target: float,
    n: float | None,
    price: Callable[[Fraction], Price],
    rule: Filter,
    plan_for: Callable[[Price], Plan],
) -> Price:
    high = Fraction(1)

    def wide(x: Fraction) -> bool:
        error = plan_for(price(x)).worst_error(n)
        if error is None:
            raise BadValue(
                "within= needs to know how many values there are: give n=, a public number or a released count."
                if n is None and plan_for(price(x)).worst_error(1e6) is not None
                else "within= cannot tell the width of this answer's interval in advance: give epsilon=."
            )
        return error > target

    while wide(high):
        high *= 4
        if high > 2**20:
            raise BadValue(
                f"no price gives an interval of ±{target:g}: it is finer than the grid of the answer."
            )
    low = high / 4
    while not wide(low):
        low, high = low / 4, low
        if high < _LEAST:
            return price(_LEAST)
    return price(_search.first_where(lambda x: not wide(x), low, high, rounds=24))
