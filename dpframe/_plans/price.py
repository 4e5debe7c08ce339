"""The budget and what is left of it, and the price of a question: what it may take, from the keyword arguments of a call.

Pure: nothing here reads data, and nothing here can spend.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from html import escape
from typing import Any, NamedTuple, TypedDict

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe import plot as _plot
from dpframe._errors import BadType, BadValue, BudgetError, did_you_mean
from dpframe._plans.plan import Plan
from dpframe._refusals import PANDAS_WORDS
from dpframe.accounting import ACCOUNTANTS, _search
from dpframe.accounting._filter import Charge, Filter, Price
from dpframe.accounting.loss import Events, PureDP
from dpframe.mechanisms._base import AUTO, MECHANISMS, Mechanism, names
from dpframe.mechanisms.noise import Gaussian
from dpframe.mechanisms.selection import Exponential


class Group(NamedTuple):
    """The promise to so many people together: they are (epsilon, delta)-indistinguishable from any others."""

    people: int
    epsilon: float
    delta: float
    delta_of_the_notes: float


@dataclass(frozen=True)
class Budget:
    """A budget: what may be spent, what was spent, and what is left. Exact inside; the numbers shown are rounded doubles."""

    rule: Filter
    state: Any
    _ledger: Sequence[Charge]  # only grows, and the first so many are this budget's
    _debits: int
    queries: int

    @property
    def charges(self) -> Sequence[Charge]:
        """The debits so far, in order."""
        return self._ledger[: self._debits]

    @property
    def epsilon(self) -> float:
        return float(self.rule.limits.epsilon)

    @property
    def delta(self) -> float:
        return float(self.rule.limits.delta)

    @property
    def accountant(self) -> str:
        """The name of the rule that guards the budget."""
        return self.rule.name

    @cached_property
    def fraction(self) -> float:
        """The part of the budget that is gone, in the accountant's own currency: 0 to 1."""
        return 1.0 if self.state is None else float(self.rule.spent(self.state))

    @property
    def spent(self) -> float:
        """The epsilon spent so far where that is a valid claim at any time, which only the plain sum is; else inf.

        `fraction` says how much is gone in any case, `report` what the list so far costs by each accountant.
        """
        sum_so_far = None if self.state is None else self.rule.pure_spent(self.state)
        return math.inf if sum_so_far is None else float(sum_so_far)

    @cached_property
    def remaining(self) -> float:
        """The largest epsilon that one more question with pure noise may ask for, rounded down: asked for, it fits."""
        epsilon = float(self.fits)
        while Fraction(str(epsilon)) > self.fits:  # a price is the decimal that is typed
            epsilon = math.nextafter(epsilon, 0.0)
        return epsilon

    @cached_property
    def fits(self) -> Fraction:
        """`remaining`, as an exact number."""
        return self._largest(self._admits(self._pure_at))

    def _pure_at(self, epsilon: Fraction) -> Charge:
        """The charge of a question with pure noise that asks for this epsilon."""
        bought = self.rule.worth(epsilon, self._now).epsilon
        return Charge(((PureDP(epsilon if bought is None else bought), 1),))

    def _admits(self, at: Callable[[Fraction], Charge]) -> Callable[[Fraction], bool]:
        """The function that tells whether a question fits at an epsilon, by what it would be charged."""

        def admits(epsilon: Fraction) -> bool:
            try:
                return self.state is not None and self.rule.after(self.state, at(epsilon)) is not None
            except (BudgetError, BadValue):  # so little buys nothing that answers the question
                return False

        return admits

    def _largest(self, admits: Callable[[Fraction], bool]) -> Fraction:
        """The largest epsilon that is admitted, rounded down; 0 if none is."""
        least, most = Fraction(0), self.rule.limits.epsilon
        if self.state is None:
            return least
        spent = self.rule.pure_spent(self.state)
        if spent is not None and spent < most and admits(most - spent):
            least = most - spent  # exactly
        return _search.last_where(admits, least, most, rounds=40)

    @property
    def _now(self) -> Any:
        """The state that prices questions, also where nothing is left to pay with."""
        return self.rule.start() if self.state is None else self.state

    def _following(self, charges: Sequence[Charge]) -> Budget:
        """The budget that prices a question after these debits, which nobody has made yet."""
        return replace(self, state=self.rule.ahead(self._now, charges)) if charges else self

    def times(self, charge: Charge) -> int:
        """The number of debits like this one that fit, one after the other."""
        return 0 if self.state is None else self.rule.times(self.state, charge)

    @property
    def _open_to(self) -> tuple[bool, ...]:
        """Whether the budget has room for Gaussian noise, and whether for pure noise by the plain sum."""
        gaussian = self.rule.gaussian(Fraction(1), self.queries, self._now) is not None
        return gaussian, self.rule.pure_spent(self._now) is not None

    @property
    def spent_delta(self) -> float:
        """The part of delta that is gone for good: deltas that add up, and outright failures."""
        return 0.0 if self.state is None else float(self.rule.delta_spent(self.state))

    @property
    def remaining_delta(self) -> float:
        """The part of delta that is left for deltas that add up, and for outright failures."""
        if self.state is None:
            return 0.0
        return float(self.rule.delta_room(self.state) - self.rule.delta_spent(self.state))

    @property
    def share(self) -> float:
        """The epsilon of a pure question that names no price; a Gaussian one costs as large a part of the budget."""
        gone = self.state is None or (self.rule.batches and self.fraction >= 1)
        price = None if gone else self.rule.share(self.queries, self.state)
        return float(price.epsilon) if price is not None and price.epsilon is not None else 0.0

    # Reports ------------------------------------------------------------------------------------------------------------

    @np.errstate(all="ignore")  # curves underflow where they say nothing, whatever the caller has set
    def report(self, accountant: str | None = None) -> pd.DataFrame:
        """The cost of the releases so far by each accountant, had their list been fixed in advance.

        ``epsilon`` is at the delta of the budget, ``used`` the part of the budget's epsilon that this is, and ``guards`` tells
        whether the accountant could also stop a session whose questions depend on earlier answers. Only the session's own does.

        >>> df = pd.DataFrame({"age": [30, 41, 55]})
        >>> p = df.dp.open(1)
        >>> n = p.count(epsilon=0.25)
        >>> p.budget.report("pure")
                    epsilon  used  guards
        accountant
        pure           0.25  0.25    True
        """
        names = (
            list(ACCOUNTANTS)
            if accountant is None
            else [_validate.choice(accountant, "accountant", ACCOUNTANTS)]
        )
        limits, events = self.rule.limits, runs(self.charges)
        rows = []
        for name in names:
            epsilon = ACCOUNTANTS[name].report(events, limits.delta) if events else 0.0
            rows.append((epsilon, epsilon / self.epsilon, self.rule.batches or not ACCOUNTANTS[name].batches))
        index = pd.Index(names, name="accountant")
        return pd.DataFrame(rows, columns=["epsilon", "used", "guards"], index=index)

    def plot(self, accountant: str | None = None, ax: Any = None) -> Any:
        """`report` as bars, with the budget as a line; takes and returns matplotlib axes.

        Without ``ax`` it has a figure of its own. A bar beyond three budgets is cut and marked with its number.
        """
        _plot.needs_matplotlib()
        return _plot.meter(self.report(accountant)["epsilon"], self.epsilon, ax)

    def for_group(self, people: int) -> Group:
        """The promise of the whole budget to so many people together.

        k epsilon, and with delta the sum of a geometric series, delta (e**(k eps) - 1) / (e**eps - 1); beside it the
        simpler bound of the lecture notes, k e**(k eps) delta. A delta of 1 or more promises nothing.

        >>> df = pd.DataFrame({"age": [30, 41]})
        >>> df.dp.open(0.5).budget.for_group(4)
        Group(people=4, epsilon=2.0, delta=0.0, delta_of_the_notes=0.0)
        """
        k = _validate.positive_int(people, "people")
        e, d = self.epsilon, self.delta
        total = float(k * self.rule.limits.epsilon)
        if not d:
            return Group(k, total, 0.0, 0.0)
        if total > 700:
            return Group(k, total, 1.0, 1.0)
        up = 1 + 1e-12
        series = d * math.expm1(k * e * up) / math.expm1(e) * up
        return Group(k, total, min(1.0, series), min(1.0, k * math.exp(k * e * up) * d * up))

    def preview(self, charge: Charge) -> str:
        """A sentence about what a debit would take, before it is made: nothing is charged by asking."""
        if self.state is None:
            return "nothing is left of it"
        after = self.rule.after(self.state, charge)
        if after is None:
            return f"it does not fit: {self._shortfall(charge).strip()}"
        used = float(self.rule.spent(after)) - self.fraction
        note = self.rule.warning(self.state, after)
        times = self.times(charge)
        least = (
            "at least " if self.rule.batches or any(loss.bounded_range for loss, _ in charge.losses) else ""
        )
        text = (
            f"takes {100 * used:.3g} % of it; {100 * self.fraction:.3g} % is used so far; "
            f"fits {least}{times} time{'' if times == 1 else 's'}"
        )
        return text if note is None else f"{text}. Note: {note}"

    # Texts --------------------------------------------------------------------------------------------------------------

    def _text(self) -> str:
        sum_so_far = self.spent
        if self.rule.plain:
            text = f"{sum_so_far:.4g} of epsilon {self.epsilon:.4g} spent, {self.remaining:.4g} left"
            return text + (f"; delta {self.spent_delta:.3g} of {self.delta:.3g}" if self.delta else "")
        text = f"{100 * self.fraction:.3g} % of epsilon {self.epsilon:.4g}, delta {self.delta:.3g} spent"
        if math.isfinite(sum_so_far):
            text += f" (as a plain sum {sum_so_far:.4g})"
        return text + f"; accountant {self.accountant}"

    def __repr__(self) -> str:
        full = round(20 * self.fraction)
        return f"{'█' * full}{'░' * (20 - full)} {self._text()} (a share is {self.share:.4g})"

    def _repr_html_(self) -> str:
        meter = (
            "<div style='width:22em;height:1em;border:1px solid #888;border-radius:3px;background:#eee'>"
            f"<div style='width:{100 * self.fraction:.1f}%;height:100%;background:#3b6ea5'></div></div>"
        )
        return f"<div>{meter}<small>{escape(self._text())}; a share is {self.share:.4g}</small></div>"

    def _refusal(self, charge: Charge, at: Callable[[Fraction], Charge] | None = None) -> str:
        """The text of a refusal: requested, spent, remaining, difference, what would fit, and which rule would allow it."""
        subject = "these questions" if len(charge.losses) > 1 else "this question"
        why = self._shortfall(charge) + self._advice(charge, at) + self._others(charge)
        return (
            f"the budget does not allow {subject}: {why} "
            "Nothing was charged. Answers already released stay free to use and to repeat."
        )

    def _shortfall(self, charge: Charge) -> str:
        return "nothing is left of it." if self.state is None else self.rule.refusal(self.state, charge)

    def _advice(self, charge: Charge, at: Callable[[Fraction], Charge] | None) -> str:
        if len(charge.losses) > 1:
            return ""  # of a batch no one epsilon would help
        if self.state is not None:
            requested, left = self.rule.delta_asked(self.state, charge)
            if requested > left:
                return f" A delta= of {_below(left, 6)} would fit." if left > 0 else " No delta is left."
        admits = self._admits(self._pure_at if at is None else at)
        fits = self._largest(admits)
        if fits * 10_000 < self.rule.limits.epsilon:
            return " Next to nothing is left." if fits else " No epsilon is left."
        texts = (_below(fits, digits) for digits in range(6, 0, -1))
        fitting = next((text for text in texts if admits(Fraction(text))), None)
        return "" if fitting is None else f" The largest epsilon that still fits is {fitting}."

    def _others(self, charge: Charge) -> str:
        if not self.rule.limits.delta:
            return ""
        kinds = [kind for kind in ACCOUNTANTS.values() if kind is not type(self.rule)]
        allowing = [repr(kind.name) for kind in kinds if not kind.batches and self._under(kind, charge)]
        text = f" An accountant that would have allowed it: {', '.join(allowing)}." if allowing else ""
        for kind in kinds if not self.rule.batches and not self.charges else ():
            if kind.batches and self._under(kind, charge):
                text += f" As a batch declared in advance, accountant={kind.name!r} would have allowed it."
        return f"{text} What accountants count: 'How to choose an accountant' (docs/how-to/choose-an-accountant.md)."

    def _under(self, kind: type[Filter], charge: Charge) -> bool:
        rule = kind(self.rule.limits)
        state = rule.start()
        for debit in merged([*self.charges, charge]):
            state = rule.after(state, debit)
            if state is None:
                return False
        return True


def _below(number: Fraction, digits: int) -> str:
    """A number as text with so many digits, rounded down."""
    with localcontext(prec=digits, rounding=ROUND_DOWN):
        rounded = Decimal(number.numerator) / Decimal(number.denominator)
    return f"{rounded.normalize():f}"


def runs(charges: Any) -> Events:
    """The losses in order, equal neighbours counted together."""
    counted: list[tuple[Any, int]] = []
    for charge in charges:
        for loss, n in charge.losses:
            if counted and counted[-1][0] == loss:
                counted[-1] = (loss, counted[-1][1] + n)
            else:
                counted.append((loss, n))
    return tuple(counted)


def merged(charges: Any) -> list[Charge]:
    """Equal charges as one, so that a long ledger is read quickly; accountants other than the residue see no order."""
    counts = Counter(charges)
    return [Charge(tuple((loss, n * k) for loss, n in c.losses), c.delta * k) for c, k in counts.items()]


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


def checked(payment: Mapping[str, Any]) -> Payment:
    """The keyword arguments of a call, checked: one that no verb knows is an error, not ignored.

    An argument that pandas' method has is let through where it changes nothing, and refused with its reason where it would.
    """
    for word, value in payment.items():
        if word in PANDAS_WORDS:
            neutral, reason = PANDAS_WORDS[word]
            if not any(type(value) is type(plain) and value == plain for plain in neutral):
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
    """The price that a call names, the least that gives the accuracy it names, or a share of the budget; ``part`` of that where
    a question is answered by several releases."""
    mechanism, kind = payment.get("mechanism", AUTO), None
    if not (isinstance(mechanism, str) and mechanism == AUTO):
        kind = MECHANISMS.get(_validate.choice(mechanism, "mechanism", names()))
    epsilon, delta, within = payment.get("epsilon"), payment.get("delta"), payment.get("within")
    rule, state = budget.rule, budget._now if budget.state is None else budget.state
    if within is None and payment.get("n") is not None:
        raise BadValue("n= is a number of values for within= and for explain, and nothing else uses it.")
    if within is not None:
        if epsilon is not None or delta is not None:
            raise BadValue("within= finds the price itself: leave epsilon= and delta= out.")
        price = _price_within(budget, within, known_n(payment.get("n"), people), kind, plan_for)
    elif delta is not None:
        price = _stated(budget, epsilon, delta, kind, part)
    elif epsilon is not None:
        e = _validate.epsilon(epsilon)
        price = rule.worth(e if part == 1 else e * part, state)
    else:
        price = rule.share(budget.queries if part == 1 else budget.queries / part, state)
    if kind is not None and kind.needs_delta and price.mu_squared is None and price.rho is None:
        if not rule.limits.delta:
            raise BudgetError("this session has delta=0, so it has no room for the Gaussian mechanism.")
        price = rule.gaussian_stated(price.epsilon or rule.limits.epsilon * part / budget.queries, state)
    # For a choice within= may have found another mechanism to be cheaper than noisy max.
    if price.mechanism == mechanism:
        return price
    chosen = MECHANISMS.get(price.mechanism)
    return price if chosen is not None and chosen.chooses else price._replace(mechanism=mechanism)


def worded(paid: str) -> str:
    """The price as the user typed it, for messages."""
    pairs = zip(("epsilon", "delta", "within"), paid.removeprefix("half|").split("|"), strict=False)
    typed = ", ".join(f"{name} {value}" for name, value in pairs if value not in ("", "None"))
    return f"asked at {typed}" if typed else "asked for a share"


def _stated(
    budget: Budget, epsilon: object, delta: object, kind: type[Mechanism] | None, part: Fraction
) -> Price:
    """The price of a call that names a delta."""
    rule = budget.rule
    e = part * (rule.limits.epsilon / budget.queries if epsilon is None else _validate.epsilon(epsilon))
    d = delta_of(delta, rule) * part
    if kind is not None and kind.wastes_delta and d:
        raise BadValue(
            f"mechanism={kind.name!r} is purely epsilon-private: leave delta= out, it would be wasted."
        )
    if kind is not None and kind.needs_delta and not d:
        raise BadValue(f"mechanism={kind.name!r} needs delta > 0.")
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
    number = _validate.real(n, "n") if interval is None else float(interval()[0])
    if number < 1:
        raise BadValue("n= must be at least 1; of a released count the lower end of its interval is taken.")
    return number


def _price_within(
    budget: Budget,
    within: object,
    n: float | None,
    kind: type[Mechanism] | None,
    plan_for: Callable[[Price], Plan],
) -> Price:
    """The least price, in the session's currency, whose 95 % interval is at most this wide on either side."""
    target = _validate.real(within, "within")
    if target <= 0:
        raise BadValue(f"within= must be positive, not {within}.")
    rule = budget.rule
    prices = []
    if kind is None or not kind.needs_delta:
        # A purely private kind that nothing chooses by itself is priced by its own name.
        name = kind.name if kind is not None and kind.measures and not kind.automatic else AUTO
        prices.append(_least(target, n, lambda x: Price(x, mechanism=name), rule, plan_for))
    chooser = Exponential if kind is None else kind
    if chooser.chooses and plan_for(Price(Fraction(1))).ranged:
        ranged = _least(target, n, lambda x: Price(x, mechanism=chooser.name), rule, plan_for)
        prices = [*prices, ranged] if kind is None else [ranged]
    if (kind is None or kind.needs_delta) and rule.gaussian(
        Fraction(1), budget.queries, budget._now
    ) is not None:

        def gaussian(x: Fraction) -> Price:
            price = rule.gaussian(x, budget.queries, budget._now)
            assert price is not None
            return price._replace(mechanism=Gaussian.name)

        # A selection has a mechanism of its own, which is pure.
        if not plan_for(Price(Fraction(1))).selects:
            prices.append(_least(target, n, gaussian, rule, plan_for))
    if not prices:
        raise BudgetError(
            "the accountant of this session cannot count Gaussian noise now: leave mechanism= out."
            if rule.limits.delta
            else "this session has delta=0, so it has no room for the Gaussian mechanism."
        )
    return min(prices, key=lambda price: _cost(budget, plan_for(price).charge))


def _cost(budget: Budget, charge: Charge) -> tuple[bool, float]:
    """The order of charges by cost: whether one does not fit any more, then the part of a whole budget that it takes."""
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
