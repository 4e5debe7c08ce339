"""A budget: what may be spent, what was spent and what is left.

Nothing here reads data, and nothing here can spend.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe import plot as _plot
from dpframe._errors import BadValue, BudgetError, did_you_mean
from dpframe._plans.meaning import BudgetMeaning, SpentEpsilon
from dpframe.accounting import ACCOUNTANTS, _search
from dpframe.accounting._filter import Charge, Filter
from dpframe.accounting.loss import Events, PureDP

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The number of shares of a budget, unless `open` gives it.
DEFAULT_QUERIES = 20


class Group(NamedTuple):
    """Guarantee for a group of people together: they are (epsilon, delta)-indistinguishable from
    any others."""

    people: int
    epsilon: float
    delta: float
    delta_of_the_notes: float


# Names that people try, and what to write.
_NAMES: dict[str, str] = {
    **dict.fromkeys(("left", "rest", "available", "balance", "epsilon_left"), "remaining"),
    **dict.fromkeys(("used", "consumed", "epsilon_spent"), "spent"),
    **dict.fromkeys(("total", "limit", "size", "max"), "epsilon"),
    **dict.fromkeys(("history", "log", "questions", "ledger"), "report()"),
}
_FINAL = ("reset", "refund", "clear", "add", "increase", "refill", "top_up", "set")


def _advise(name: str) -> str:
    """Return the message about an attribute that a budget does not have."""
    if name in _FINAL:
        return (
            "a budget cannot be reset or raised: what was released stays known. What is left is "
            "p.budget.remaining; answers "
            "on record are free."
        )
    meant = _NAMES.get(name)
    listed = [one for one in dir(Budget) if not one.startswith("_")]
    return f"a budget has no {name!r}." + (
        f" Write p.budget.{meant}." if meant else did_you_mean(name, listed, "It has")
    )


@dataclass(frozen=True)
class Budget:
    """Budget of a session: what may be spent, what was spent, and what is left.

    It is exact inside. The numbers shown are rounded doubles.
    """

    #: The accountant's rule.
    rule: Filter
    #: The state of the rule after the debits.
    state: Any
    # The debits of the ledger, which only grow. The first `_debits` are those of this budget.
    _ledger: Sequence[Charge]
    _debits: int
    #: The number of shares.
    queries: int
    # What the accountant has on record of the debits.
    _describe: Callable[[Budget], dict[str, Any]] | None = field(
        default=None, compare=False, repr=False
    )

    if not TYPE_CHECKING:  # to checkers a name that is not listed is an error

        def __getattr__(self, name: str) -> NoReturn:
            """Refuse a name that a budget does not have, and say which one is meant."""
            raise AttributeError(_advise(name))

    @property
    def charges(self) -> Sequence[Charge]:
        """The debits so far, in order."""
        return self._ledger[: self._debits]

    @property
    def epsilon(self) -> float:
        """The whole budget."""
        return float(self.rule.limits.epsilon)

    @property
    def delta(self) -> float:
        """The whole delta."""
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
        """Epsilon that may be claimed for the answers so far, at any time.

        It is the sum of their epsilons. Some releases have no such epsilon. Then only that of the
        whole budget may be claimed, at its delta. It is shown with the part that is used.

        `fraction` says how much is gone in any case, `report` what the list so far costs by each
        accountant.
        """
        sum_so_far = self._plain_sum
        if sum_so_far is None:
            return SpentEpsilon(self.epsilon, self.delta, self.fraction)
        return float(sum_so_far)

    @property
    def _plain_sum(self) -> Fraction | None:
        """The sum of the epsilons so far; None if a release has no epsilon."""
        return None if self.state is None else self.rule.pure_spent(self.state)

    @cached_property
    def remaining(self) -> float:
        """Largest epsilon that one more question with pure noise may ask for, rounded down: asked
        for, it fits."""
        epsilon = float(self.fits)
        while Fraction(str(epsilon)) > self.fits:  # prices are decimals as typed
            epsilon = math.nextafter(epsilon, 0.0)
        return epsilon

    @cached_property
    def fits(self) -> Fraction:
        """`remaining`, as an exact number."""
        return self._find_largest_epsilon(self._make_admission_test(self._charge_pure))

    def _charge_pure(self, epsilon: Fraction) -> Charge:
        """Return the charge of a question with pure noise that asks for this epsilon."""
        bought = self.rule.worth(epsilon, pricing_state(self)).epsilon
        return Charge(((PureDP(epsilon if bought is None else bought), 1),))

    def _make_admission_test(
        self, charge_at: Callable[[Fraction], Charge]
    ) -> Callable[[Fraction], bool]:
        """Return a function that tells whether a question still fits if it is asked at an epsilon.

        ``charge_at(epsilon)`` returns the charge of the question.
        """

        def admits(epsilon: Fraction) -> bool:
            """Return whether the budget still allows the question at this epsilon."""
            try:
                return (
                    self.state is not None
                    and self.rule.after(self.state, charge_at(epsilon)) is not None
                )
            except (BudgetError, BadValue):  # too little to answer the question
                return False

        return admits

    def _find_largest_epsilon(self, admits: Callable[[Fraction], bool]) -> Fraction:
        """Return the largest epsilon for which ``admits`` is true, rounded down, or 0.

        What is left of the plain sum is tried first, since it often is the answer exactly.
        """
        least, most = Fraction(0), self.rule.limits.epsilon
        if self.state is None:
            return least
        spent = self.rule.pure_spent(self.state)
        if spent is not None and spent < most and admits(most - spent):
            least = most - spent
        return _search.last_where(admits, least, most, rounds=40)

    def times(self, charge: Charge) -> int:
        """Return how many debits like this one fit, one after the other."""
        return 0 if self.state is None else self.rule.times(self.state, charge)

    @property
    def _open_to(self) -> tuple[bool, ...]:
        """Whether the budget has room for Gaussian noise, and whether for pure noise by the plain
        sum."""
        gaussian = self.rule.gaussian(Fraction(1), self.queries, pricing_state(self)) is not None
        return gaussian, self.rule.pure_spent(pricing_state(self)) is not None

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
        """Epsilon of a pure question that names no price; 0 if nothing is left.

        A Gaussian one costs as large a part of the budget.
        """
        gone = self.state is None or (self.rule.batches and self.fraction >= 1)
        price = None if gone else self.rule.share(self.queries, self.state)
        return float(price.epsilon) if price is not None and price.epsilon is not None else 0.0

    # Reports ------------------------------------------------------------

    # Curves underflow where they bound nothing. The settings of the caller do not matter.
    @np.errstate(all="ignore")
    def report(self, accountant: str | None = None) -> pd.DataFrame:
        """Return the cost of the releases so far by each accountant.

        It is what they would cost if their list had been fixed in advance. ``epsilon`` is at the
        delta of the budget, and ``used`` is its part of the epsilon of the budget. ``guards`` tells
        whether the accountant could also stop a session whose questions depend on earlier answers.
        Only the accountant of the session does.

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
        limits, events = self.rule.limits, count_runs(self.charges)
        rows = []
        for name in names:
            epsilon = ACCOUNTANTS[name].report(events, limits.delta) if events else 0.0
            rows.append(
                (
                    epsilon,
                    epsilon / self.epsilon,
                    self.rule.batches or not ACCOUNTANTS[name].batches,
                )
            )
        index = pd.Index(names, name="accountant")
        return pd.DataFrame(rows, columns=["epsilon", "used", "guards"], index=index)

    def plot(
        self, accountant: str | None = None, ax: object = None, *, kind: str | None = None
    ) -> Axes:
        """Draw the budget as a bar, used and left, and return the matplotlib axes.

        Without ``ax`` the axes are new. ``kind="rules"``, or naming an ``accountant``, draws
        `report`: what the same questions cost by each rule. Only the bar of the session's own rule
        was paid, so longer bars are not overdrafts. A bar beyond three budgets is cut and marked
        with its number. Over time: ``p.accountant.plot()``.
        """
        kind = ("used" if accountant is None else "rules") if kind is None else kind
        _plot.needs_matplotlib()
        if _validate.choice(kind, "kind", ("used", "rules")) == "used":
            return _plot.meter(self.fraction, self.accountant, self.epsilon, ax)
        return _plot.rules(self.report(accountant)["epsilon"], self.accountant, self.epsilon, ax)

    def for_group(self, people: int) -> Group:
        """Return the guarantee that the whole budget gives to this number of people together.

        The epsilon is k epsilon. With delta it is the sum of a geometric series, delta (e**(k eps)
        - 1) / (e**eps - 1). Beside it stands the simpler bound of the lecture notes, k e**(k eps)
        delta. A delta of 1 or more promises nothing.

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

    def explain(self, prior: float = 0.5) -> BudgetMeaning:
        """Return what the whole budget means to one person, in words and as a table.

        ``prior`` is how sure somebody is of this person's rows before the first answer. That
        somebody is sure of all other rows. For ``delta=0`` the odds grow at most by the factor e to
        the epsilon, whatever the answers are. With a delta no such bound holds for every outcome,
        so the largest chance to guess right is told.

        >>> df = pd.DataFrame({"age": [30, 41, 55]})
        >>> p = df.dp.open(1)
        >>> print(p.budget.explain())
        Whoever is sure of everybody else's rows, and 50 % sure about yours, ends at most 73 % sure.
        A test that names 5 % of those who are not in the data finds you with a chance of at most 14 %.
        This is about all answers on the budget together: epsilon 1, delta 0.
        >>> p.budget.explain(prior=0.01).line
        "whoever is sure of everybody else's rows, and 1 % sure about yours, ends at most 3 % sure"
        """
        sure = float(_validate.exact(prior, "prior"))
        if not 0 < sure < 1:
            raise BadValue(f"prior must lie strictly between 0 and 1, such as 0.5, not {prior}.")
        return BudgetMeaning(self.epsilon, self.delta, sure)

    def registry(self) -> dict[str, Any]:
        """Return the record that public registries of deployments ask for, of plain values.

        It has the unit and the neighbouring relation, epsilon and delta, the accountant, the
        mechanisms, the number of debits and of questions, and the times of the first and the last
        debit. `json.dumps` writes it. No answer is in it.

        >>> df = pd.DataFrame({"age": [30, 41, 55]})
        >>> p = df.dp.open(1)
        >>> n = p.count(epsilon=0.25)
        >>> record = p.budget.registry()
        >>> record["epsilon"], record["mechanisms"], record["questions"]
        (1.0, ['laplace'], 1)
        """
        if self._describe is None:
            raise BudgetError("this budget has no accountant that keeps a record of its questions.")
        return self._describe(self)

    def preview(self, charge: Charge) -> str:
        """Return a sentence about what a debit would take of the budget. Nothing is charged by
        asking.

        It is what `explain` shows.
        """
        if self.state is None:
            return "nothing is left of it"
        after = self.rule.after(self.state, charge)
        if after is None:
            return f"it does not fit: {self._shortfall(charge).strip()}"
        used = float(self.rule.spent(after)) - self.fraction
        note = self.rule.warning(self.state, after)
        times = self.times(charge)
        least = (
            "at least "
            if self.rule.batches or any(loss.bounded_range for loss, _ in charge.losses)
            else ""
        )
        text = (
            f"takes {100 * used:.3g} % of it; {100 * self.fraction:.3g} % is used so far; "
            f"fits {least}{times} time{'' if times == 1 else 's'}"
        )
        return text if note is None else f"{text}. Note: {note}"

    # Texts ------------------------------------------------------------

    def _text(self) -> str:
        """Return one line of text with what is spent and what is left of the budget."""
        sum_so_far = self._plain_sum
        if self.rule.keeps_epsilon_sum_only:
            text = f"{float(self.spent):.4g} of epsilon {self.epsilon:.4g} spent, {self.remaining:.4g} left"
            return text + (
                f"; delta {self.spent_delta:.3g} of {self.delta:.3g}" if self.delta else ""
            )
        text = (
            f"{100 * self.fraction:.3g} % of epsilon {self.epsilon:.4g}, delta {self.delta:.3g} "
            "spent"
        )
        if sum_so_far is not None:
            text += f" (as a plain sum {float(sum_so_far):.4g})"
        return text + f"; accountant {self.accountant}"

    @property
    def meter(self) -> str:
        """One line of text with a bar: what is spent and what is left."""
        full = round(20 * self.fraction)
        return f"{'█' * full}{'░' * (20 - full)} {self._text()} (a share is {self.share:.4g})"

    def __repr__(self) -> str:
        """Show the meter, and what the whole budget means to one person."""
        return f"{self.meter}\n{self.explain().line}"

    def _repr_html_(self) -> str:
        """Return the budget as an HTML bar of what is used, for notebooks."""
        meter = (
            "<div role='img' style='width:22em;max-width:100%;height:1em;border:1px solid "
            "currentColor;border-radius:3px' "
            f"aria-label='{100 * self.fraction:.3g} % used'>"
            "<div "
            f"style='width:{100 * self.fraction:.1f}%;height:100%;background:{_plot.BLUE}'></div></div>"
        )
        return (
            f"<div>{meter}<small>{escape(self._text())}; a share is {self.share:.4g}<br>"
            f"{escape(self.explain().line)}</small></div>"
        )

    def _refusal(
        self, charge: Charge, charge_at: Callable[[Fraction], Charge] | None = None
    ) -> str:
        """Return the text of the error for a debit that does not fit.

        It says what is requested, spent and left, what would fit, and which accountant would allow
        it. ``charge_at(epsilon)`` returns the charge of the question at another epsilon, to find
        what would fit.
        """
        subject = "these questions" if len(charge.losses) > 1 else "this question"
        why = self._shortfall(charge) + self._advice(charge, charge_at) + self._others(charge)
        return (
            f"the budget does not allow {subject}: {why} "
            "Nothing was charged. Answers already released stay free to use and to repeat."
        )

    def _shortfall(self, charge: Charge) -> str:
        """Return the sentence that explains why a debit does not fit."""
        return (
            "nothing is left of it."
            if self.state is None
            else self.rule.refusal(self.state, charge)
        )

    def _advice(self, charge: Charge, charge_at: Callable[[Fraction], Charge] | None) -> str:
        """Return a sentence with the largest delta or epsilon that would still fit; empty for a
        batch.

        ``charge_at(epsilon)`` returns the charge of the question. None stands for a question with
        pure noise.
        """
        if len(charge.losses) > 1:
            return ""  # a single epsilon would not help a batch
        if self.state is not None:
            requested, left = self.rule.compare_delta(self.state, charge)
            if requested > left:
                return (
                    f" A delta= of {_format_rounded_down(left, 6)} would fit."
                    if left > 0
                    else " No delta is left."
                )
        admits = self._make_admission_test(self._charge_pure if charge_at is None else charge_at)
        fits = self._find_largest_epsilon(admits)
        if fits * 10_000 < self.rule.limits.epsilon:
            return " Next to nothing is left." if fits else " No epsilon is left."
        texts = (_format_rounded_down(fits, digits) for digits in range(6, 0, -1))
        fitting = next((text for text in texts if admits(Fraction(text))), None)
        return "" if fitting is None else f" The largest epsilon that still fits is {fitting}."

    def _others(self, charge: Charge) -> str:
        """Return a sentence that names the accountants which would have allowed the charge."""
        if not self.rule.limits.delta:
            return ""
        kinds = [kind for kind in ACCOUNTANTS.values() if kind is not type(self.rule)]
        allowing = [
            repr(kind.name) for kind in kinds if not kind.batches and self._under(kind, charge)
        ]
        text = (
            f" An accountant that would have allowed it: {', '.join(allowing)}." if allowing else ""
        )
        for kind in kinds if not self.rule.batches and not self.charges else ():
            if kind.batches and self._under(kind, charge):
                text += (
                    f" As a batch declared in advance, accountant={kind.name!r} would have "
                    "allowed it."
                )
        return (
            f"{text} What accountants count: 'How to choose an accountant' "
            "(docs/how-to/choose-an-accountant.md)."
        )

    def _under(self, kind: type[Filter], charge: Charge) -> bool:
        """Return whether another accounting rule would have allowed all debits so far and this
        one."""
        rule = kind(self.rule.limits)
        state = rule.start()
        for debit in merge_charges([*self.charges, charge]):
            state = rule.after(state, debit)
            if state is None:
                return False
        return True


def make_following_budget(budget: Budget, charges: Sequence[Charge]) -> Budget:
    """Return the budget that prices a question after these debits, which are not made yet."""
    return (
        replace(budget, state=budget.rule.ahead(pricing_state(budget), charges))
        if charges
        else budget
    )


def _format_rounded_down(number: Fraction, digits: int) -> str:
    """Return a number as text with this number of digits, rounded down."""
    with localcontext(prec=digits, rounding=ROUND_DOWN):
        rounded = Decimal(number.numerator) / Decimal(number.denominator)
    return f"{rounded.normalize():f}"


def count_runs(charges: Iterable[Charge]) -> Events:
    """Return the losses of all debits in order, with runs of equal ones counted together."""
    counted: list[tuple[Any, int]] = []
    for charge in charges:
        for loss, n in charge.losses:
            if counted and counted[-1][0] == loss:
                counted[-1] = (loss, counted[-1][1] + n)
            else:
                counted.append((loss, n))
    return tuple(counted)


def merge_charges(charges: Iterable[Charge]) -> list[Charge]:
    """Return one charge for each set of equal ones, so that a long ledger is added up quickly.

    Only a rule that keeps a residue depends on the order of charges.
    """
    counts = Counter(charges)
    return [
        Charge(tuple((loss, n * k) for loss, n in c.losses), c.delta * k) for c, k in counts.items()
    ]


def pricing_state(budget: Budget) -> Any:
    """Return the state that prices questions, also where nothing is left to pay with."""
    return budget.rule.start() if budget.state is None else budget.state
