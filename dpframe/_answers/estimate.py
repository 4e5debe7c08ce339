"""Estimates: released numbers that know their plan and their interval, and what is computed from
them."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from html import escape
from typing import Any, ClassVar, NoReturn, cast

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe._answers.arguments import explain_arguments
from dpframe._answers.arithmetic import LARGEST, Arithmetic, Calculation
from dpframe._answers.counterparts import Kind, read_plan
from dpframe._answers.layout import Column, Correlations, Layout
from dpframe._answers.population import about_of, ranks_of
from dpframe._answers.table import Shown, Tabled, one_row
from dpframe._answers.worth import Columns, chosen, noise_in, warn_of_number
from dpframe._errors import BadType, NotOffered
from dpframe._ledger.store import pack, unpack
from dpframe._plans.aggregates import AGGREGATES
from dpframe._plans.durations import count_decimals, format_moment, halve_interval, make_moment
from dpframe._plans.plan import Cost, Plan, get_noisy_sums, refuse_choices
from dpframe._plans.worth import ORDINARY, Rule, capped, is_noise
from dpframe._questions.question import (
    ONE,
    Release,
    check_noise_quickly,
    enclose_output,
    read_numbers,
)


class Estimate(Arithmetic, Tabled):
    """What `IntEstimate` and `FloatEstimate` share: a released number, its plan and its interval.

    ``+``, ``-``, ``*`` and ``/`` with plain numbers and with other released ones keep an interval,
    and so do ``-x``, ``abs`` and ``round``: ``answer / 1000``, ``sum_of_costs / number_of_people``.
    Everything else gives plain numbers. So does what writes it down, ``str``, ``format``,
    ``print``, csv and JSON; its ``repr`` alone shows how wide its interval is. What was computed
    from answers, a sum or a rounded number, is written and shown in the same way.
    """

    _plan: Plan
    _raw: tuple[Any, ...]
    _rule: Rule = ORDINARY
    _layout: ClassVar[Layout] = Column()
    _place: ClassVar[int] = 0  # of the number in its layout

    @property
    def plan(self) -> Plan:
        """What was asked, with which mechanism, scale and price."""
        return self._plan

    @property
    def cost(self) -> Cost:
        """What this release guarantees by itself: ``epsilon`` and ``delta``. The ledger counts it
        by its accountant."""
        return self._plan.cost

    @property
    def count(self) -> Estimate:
        """The number of values behind a mean, a variance or the like, read off the same release at
        no cost.

        >>> df = pd.DataFrame({"age": [30.0, 41.0] * 500})
        >>> p = df.dp.open(100, bounds={"age": (0, 110)})
        >>> age = p.mean("age", epsilon=90)
        >>> age.dp.count == 1000, p.budget.spent
        (True, 90.0)
        """
        return self._read_behind("count")

    @property
    def sum(self) -> Estimate:
        """The sum of the values behind a mean, read off the same release at no cost."""
        return self._read_behind("sum")

    def _read_behind(self, kind: Kind) -> Estimate:
        """Return the count or the sum behind the number."""
        plan, _ = read_plan(self._plan, kind, self._plan.cells[:1])
        return scalar(Release(plan, self._raw, self._rule))

    def interval(
        self, level: float = 0.95, *, of: str = "noise", n: Any = None
    ) -> tuple[float, float]:
        """Where the answer without noise lies with probability ``level``; of a duration two
        Timedeltas, of a time two Timestamps.

        It covers the noise: not the clipping to the bounds, and not what a sample says about a
        population. With ``of="population"`` it covers that too: where the mean, share, number or
        quantile of those lies whom the people of the table were drawn from, independently and alike
        (docs/guarantees/population.md); a number is that to expect in such a table. For ``n`` see
        `Answer.interval`.
        """
        cells = self._plan.cells[:1]
        level, about = about_of(of, n, self._plan, self._raw, cells, _validate.level(level))
        low, high = enclose_output(self._plan, self._raw, 0, level, about)
        if cells[0].duration:
            origin = cells[0].origin
            kind: Any = partial(make_moment, origin=origin) if origin else pd.Timedelta
            return kind(low[0]), kind(high[0])
        return float(low[0]) + 0.0, float(high[0]) + 0.0  # no negative zero

    def ranks(self, level: float = 0.95) -> float:
        """By how many ranks a quantile may miss with this level: so many values too many lie below
        it at most, and above it."""
        return ranks_of(self._plan, self._plan.cells[:1], level)

    @property
    def reliable(self) -> bool:
        """Whether it is more than noise: half its 95 % interval is at most half of the number, or
        of a tenth of the bounds where that is more, and the interval is no half of what is
        possible. ``open(reliable=)`` takes another part than a half.

        A choice, which has no interval, is noise only where it may be off by half of the values
        that there can be, as far as that is public (docs/guarantees/intervals.md#noise-is-flagged).
        """
        return not noise_in(self._layout, self._plan, self._raw, self._rule.part, self._values())[
            0
        ][self._place]

    def _values(self) -> Columns:
        return self._layout.values(self._plan, self._raw)

    @property
    def lower(self) -> float | None:
        """The lower end of the 95 % interval; None of a choice, which has none."""
        return None if self._chosen else self.interval()[0]

    @property
    def upper(self) -> float | None:
        """The upper end of the 95 % interval; None of a choice, which has none."""
        return None if self._chosen else self.interval()[1]

    @property
    def std_error(self) -> float | None:
        """The standard deviation of the noise in a count or a sum, shifted and scaled by plain
        numbers or not.

        None where none can be stated: of ratios such as means, whose noise has no variance, of
        choices, and of what is made of several released numbers. All but choices have an
        `interval`.
        """
        deviation = self._deviation()
        return None if deviation is None else float(deviation)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of the releases that it is made of: one, unless it was computed from
        several."""
        return (self._plan,)

    @property
    def _chosen(self) -> bool:
        return self._plan.selects

    @property
    def _whole(self) -> bool:
        return self._plan.cells[0].whole

    # What arithmetic needs of a released number (`arithmetic.Leaf`).

    def _ends(self, level: float) -> tuple[float, float]:
        return (math.nan, math.nan) if self._chosen else self.interval(level)

    def _deviation(self) -> float | None:
        cell = self._plan.cells[0]
        return AGGREGATES[cell.aggregate].deviation(get_noisy_sums(self._plan, self._raw, cell))

    def _shown(self, level: float, at_once: bool, of: str, n: Any) -> Shown:
        ends: Any = (
            self._ends(level) if of == "noise" and n is None else self.interval(level, of=of, n=n)
        )
        plans = "; ".join(f"{plan.question} ({plan._alone})" for plan in self.plans)
        return one_row(
            self._title,
            self._number(),
            ends,
            self._deviation(),
            plans,
            not self.reliable,
            limits_of(self.plans),
            of,
        )

    @property
    def _title(self) -> str:
        return str(title_of(self._plan.cells[0]))

    def _made(self, value: Any, calculation: Calculation) -> Any:
        if calculation.too_long or (isinstance(value, int) and abs(value) > LARGEST):
            return value
        return (
            DerivedInt(value, calculation)
            if isinstance(value, int)
            else DerivedFloat(value, calculation)
        )

    @property
    def dp(self) -> Estimate:
        """The number itself, so that ``answer.dp.interval()`` reads the same for numbers and for
        tables."""
        return self

    def plot(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: one number is no picture."""
        raise BadType(
            "one number is no picture: print it, or its .interval(). Series and DataFrames have .dp.plot()."
        )

    def _blank(self) -> Estimate:
        """The answer without its number, with the same plan and the same interval: noise that is
        left out."""
        return _nothing(self, FloatEstimate if isinstance(self, int) else type(cast(Any, self)))

    def _state(self) -> dict[str, Any] | None:
        """What a pickle keeps beside value, plan and integers."""
        return None if self._rule == ORDINARY else {"_rule": self._rule}

    def __repr__(self) -> str:
        noise = "" if self.reliable else "noise"
        short = (
            max((plan.worst_error() or 0.0 for plan in self.plans), default=0.0)
            if self._chosen
            else 0.0
        )
        ranks = f"at most {short:.4g} values too many on either side" if short >= 1 else ""
        known = dict.fromkeys(filter(None, [noise, ranks, *map(capped, self.plans)]))
        return ", ".join([self._text(), *known])

    def _text(self) -> str:
        """The number with half of its interval."""
        if self._chosen:
            return f"{float(cast(Any, self)):.12g}"
        low, high = self.interval()
        value, half = float(cast(Any, self)), (high - low) / 2
        if max(abs(value), half) >= 1e15:
            return f"{value:.6g} ± {half:.3g}"
        # Two digits of the half-width, and as many of the value; whole numbers stay whole.
        half = math.ceil(half - 1e-9) if self._whole else half  # 1 ± 0.5 would be written as 1 ± 0
        fine = half > 0 and not self._whole
        digits = max(0, 1 - math.floor(math.log10(half))) if fine else 0
        return f"{value:.{digits}f} ± {half:.{digits}f}"

    def _repr_html_(self) -> str:
        if self._chosen:
            known = next(filter(None, map(chosen, self.plans)), "chosen")
            return f"<b>{self!r}</b> <small>{escape(known)}; {self._alone}</small>"
        low, high = self.interval()
        return f"<b>{self!r}</b> <small>95 % interval {self._end(low)} to {self._end(high)}; {self._alone}</small>"

    def _end(self, end: Any) -> str:
        return f"{end:.6g}"

    @property
    def _alone(self) -> str:
        return self._plan._alone


class IntEstimate(Estimate, int):
    """A whole number that was released. It may be negative: noise is as likely below as above."""

    __str__ = int.__repr__
    _number = int.__int__

    def __new__(cls, value: int, plan: Plan, raw: tuple[Any, ...]) -> IntEstimate:
        self = int.__new__(cls, value)
        self._plan, self._raw = plan, raw
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return IntEstimate, (int(self), self._plan, self._raw), self._state()


class FloatEstimate(Estimate, float):
    """A number that was released."""

    __str__ = float.__repr__
    _number = float.__float__

    def __new__(cls, value: float, plan: Plan, raw: tuple[Any, ...]) -> FloatEstimate:
        self = float.__new__(cls, value)
        self._plan, self._raw = plan, raw
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FloatEstimate, (float(self), self._plan, self._raw), self._state()


def _nothing(answer: Estimate, kind: Any = FloatEstimate) -> Estimate:
    nothing: Estimate = kind(math.nan, answer._plan, answer._raw)
    nothing._rule = answer._rule
    return nothing


class Correlation(FloatEstimate):
    """The correlation of two columns, which is made of a release of their variances and their
    covariance."""

    correlations = _layout = Correlations(((0, 1), (1, 2)))
    _place = 1

    def __reduce__(self) -> tuple[Any, ...]:
        return Correlation, (float(self), self._plan, self._raw), self._state()

    def interval(
        self, level: float = 0.95, *, of: str = "noise", n: Any = None
    ) -> tuple[float, float]:
        level, about = about_of(
            of,
            n,
            self._plan,
            self._raw,
            self._plan.cells,
            _validate.level(level),
            noun=self._layout.noun,
        )
        low, high = self.correlations.interval(self._plan, self._raw, level, about)[0]
        return float(low[1]), float(high[1])

    def _deviation(self) -> None:
        return None


class InSeconds(Estimate):
    """What was measured in seconds. Arithmetic gives plain Timedeltas, Timestamps and numbers,
    without intervals."""

    @abstractmethod
    def _number(self) -> Any:
        """The plain Timedelta or Timestamp."""

    def _deviation(self) -> None:
        return None

    def _blank(self) -> Estimate:
        nothing = Unshown(math.nan, self._plan, self._raw)
        nothing._rule = self._rule
        return nothing

    def _text(self) -> str:
        return _text(self._number(), self)

    def _end(self, end: Any) -> str:
        return _end(end, self)


class DurationEstimate(InSeconds, pd.Timedelta):
    """A duration that was released: a ``pd.Timedelta`` with a plan and an interval, whose ends are
    Timedeltas too."""

    __str__ = pd.Timedelta.__str__

    def __new__(cls, value: Any, plan: Plan, raw: tuple[Any, ...]) -> DurationEstimate:
        made: Any = (
            pd.Timedelta.__new__
        )  # of whole ticks it makes a subclass, of a Timedelta that itself
        plain = pd.Timedelta(value)
        self = cast(DurationEstimate, made(cls, int(plain.asm8.view("i8")), plain.unit))
        self._plan, self._raw = plan, raw
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return DurationEstimate, (self._number(), self._plan, self._raw), self._state()

    def _number(self) -> pd.Timedelta:
        return pd.Timedelta(self.asm8)


class TimeEstimate(InSeconds, pd.Timestamp):
    """A moment that was released: a ``pd.Timestamp`` with a plan and an interval, whose ends are
    Timestamps too."""

    __str__ = pd.Timestamp.__str__

    @staticmethod
    def _of(value: Any, plan: Plan, raw: tuple[Any, ...]) -> TimeEstimate:
        # A new one: what pandas makes of a subclass is a Timestamp all the same.
        self: Any = make_moment(value, plan.cells[0].origin)
        self.__class__ = TimeEstimate
        self._plan, self._raw = plan, raw
        return cast(TimeEstimate, self)

    def __reduce__(self) -> tuple[Any, ...]:
        return TimeEstimate._of, (self.asm8, self._plan, self._raw), self._state()

    def _number(self) -> pd.Timestamp:
        return cast(pd.Timestamp, make_moment(self.asm8, self._plan.cells[0].origin))


class Unshown(FloatEstimate):
    """What stands for a duration or a time that is noise where noise is not shown: NaT is nothing
    that could have an interval."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Unshown, (float(self), self._plan, self._raw), self._state()

    def _deviation(self) -> None:
        return None

    def _text(self) -> str:
        return _text(pd.NaT, self)

    def _end(self, end: Any) -> str:
        return _end(end, self)


def _text(value: Any, answer: Estimate) -> str:
    if answer._chosen:
        return str(value)
    low, high = cast(Any, answer.interval())
    decimals = count_decimals(low, high)
    return (
        f"{format_moment(value, decimals)} ± {format_moment(halve_interval(low, high), decimals)}"
    )


def _end(end: Any, answer: Estimate) -> str:
    return format_moment(end, count_decimals(*cast(Any, answer.interval())))


# The operators are those of pandas' own.
for _kind, _plain in ((DurationEstimate, pd.Timedelta), (TimeEstimate, pd.Timestamp)):
    for _name in (
        "add",
        "radd",
        "sub",
        "rsub",
        "mul",
        "rmul",
        "truediv",
        "rtruediv",
        "neg",
        "pos",
        "abs",
    ):
        if hasattr(_plain, f"__{_name}__"):
            setattr(_kind, f"__{_name}__", getattr(_plain, f"__{_name}__"))


def correlation(release: Release) -> Estimate:
    """The answer to a question of the variances of two columns with their covariance between
    them."""
    value = Correlation.correlations.values(release.plan, release.raw)[0][1]
    return _told(Correlation(float(value), release.plan, release.raw), release)


def scalar(release: Release) -> Estimate:
    """The answer to a question without groups."""
    kind: Any
    value = read_numbers(release.plan, release.raw, 0)[0]
    cell = release.plan.cells[0]
    if cell.duration:
        kind = TimeEstimate._of if cell.origin else DurationEstimate
        return _told(kind(value, release.plan, release.raw), release)
    kind = IntEstimate if cell.whole else FloatEstimate
    answer: Estimate = kind(int(value) if cell.whole else float(value), release.plan, release.raw)
    if release.rule is ORDINARY:
        if not release.fresh:
            return answer
        first = check_noise_quickly(
            release, [part[:, 0].tolist() for part in release.raw], (float(value),), ONE
        )
        if first is not None and not first[0]:
            return answer
    return _told(answer, release)


def _told(answer: Estimate, release: Release) -> Estimate:
    """A number with the rule that it is judged by. Noise that was released just now is warned of,
    and noise is left out where the session says so."""
    if release.rule != ORDINARY:
        answer._rule = release.rule
    if (release.fresh or release.rule.blank) and not answer.reliable:
        # Of a choice there was a warning before the debit.
        if release.fresh and not release.plan.selects:
            warn_of_number(release, answer._text())
        return answer._blank() if release.rule.blank else answer
    return answer


class Derived(Estimate):
    """What was computed from released numbers. It has an interval, and no receipt of its own:
    nothing was released anew."""

    _steps: Calculation

    def _calculation(self) -> Calculation:
        return self._steps

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._number(), self._steps)

    @property
    def plans(self) -> tuple[Plan, ...]:
        plans = {id(leaf._plan): leaf._plan for leaf in self._steps.leaves}
        return tuple(plans.values())

    @property
    def plan(self) -> Plan:
        """The plan of the release that it is made of; refused where there are several, which are
        its `plans`."""
        return only(self.plans)

    @property
    def cost(self) -> Cost:
        """What the release that it is made of guarantees by itself: nothing was added to that.
        Refused of several."""
        return self.plan.cost

    def interval(
        self, level: float = 0.95, *, of: str = "noise", n: Any = None
    ) -> tuple[float, float]:
        """Where the same arithmetic on the answers without noise lies with probability ``level``.

        Of m released numbers each takes an m-th of the risk, and interval arithmetic encloses what
        can be made of them. Without an end, that is infinite, where the interval of a divisor
        contains zero.
        """
        if of != "noise" or n is not None:
            raise NotOffered(
                "what was computed from answers has intervals of the noise. Of a population ask the answers themselves; two "
                "groups are compared by answer.dp.difference('a', 'b', of='population')."
            )
        level = _validate.level(level)
        for leaf in self._steps.leaves:
            refuse_choices(leaf._plan.cells[:1])
        low, high = self._steps.ends(level)
        return float(low), float(high)

    @property
    def _chosen(self) -> bool:
        return any(leaf._chosen for leaf in self._steps.leaves)

    @property
    def _whole(self) -> bool:
        return isinstance(self, int)

    @property
    def reliable(self) -> bool:
        """Whether it is more than noise: half its 95 % interval is at most half of the number. Of
        choices, and of one number that was only scaled, whether these are."""
        if self._chosen or self._steps.scales:
            return all(leaf.reliable for leaf in self._steps.leaves)
        low, high = self.interval()
        part = min((leaf._rule.part for leaf in self._steps.leaves), default=ORDINARY.part)
        return not is_noise(self._number(), low, high, 0.0, np.inf, part)

    @property
    def _title(self) -> str:
        return "value"

    def _deviation(self) -> float | None:
        deviation = self._steps.deviation()
        return None if deviation is None else float(deviation)

    @property
    def _alone(self) -> str:
        plans = self.plans
        return plans[0]._alone if len(plans) == 1 else f"computed from {len(plans)} releases"


class DerivedInt(Derived, int):
    """A whole number that was computed from released ones."""

    __str__ = int.__repr__
    _number = int.__int__

    def __new__(cls, value: int, steps: Calculation) -> DerivedInt:
        self = int.__new__(cls, value)
        self._steps = steps
        return self


class DerivedFloat(Derived, float):
    """A number that was computed from released ones."""

    __str__ = float.__repr__
    _number = float.__float__

    def __new__(cls, value: float, steps: Calculation) -> DerivedFloat:
        self = float.__new__(cls, value)
        self._steps = steps
        return self


# What a receipt calls the classes of released numbers.
KINDS: dict[str, Any] = {
    "whole number": IntEstimate,
    "number": FloatEstimate,
    "correlation": Correlation,
}


def leaf_to(number: Estimate) -> dict[str, Any]:
    """A released number as JSON, for the receipt of a table that was computed with it."""
    kind = next((name for name, known in KINDS.items() if type(number) is known), None)
    if kind is None:
        raise BadType(
            "this number was not released by a question, so no table of answers can be computed with it."
        )
    return {
        "kind": kind,
        "value": number._number(),
        "plan": number._plan.to_json(),
        "raw": pack(number._raw),
    }


def leaf_from(data: dict[str, Any]) -> Estimate:
    """A released number from its JSON."""
    plan = Plan.from_json(data["plan"])
    return cast(Estimate, KINDS[data["kind"]](data["value"], plan, tuple(unpack(data["raw"]))))


def limits_of(plans: Sequence[Plan]) -> str:
    """The limits of a person that answers with these plans name."""
    return "; ".join(dict.fromkeys(filter(None, map(capped, plans))))


def title_of(cell: Any) -> Any:
    """The title of an answer without a name."""
    unnamed = AGGREGATES[cell.aggregate].counts_rows and cell.name == cell.aggregate
    nameless = cell.name in ((), "()")  # what stands below the labels of a pivot
    return "rows" if unnamed else cell.aggregate if nameless else cell.name


def only(plans: Sequence[Plan]) -> Plan:
    """The one plan of what was computed from released numbers; refused where there are several."""
    if len(plans) == 1:
        return plans[0]
    raise BadType(
        f"this was computed from {len(plans)} releases, so it has no plan and no cost of its own: .plans are those of the "
        "releases, and p.budget has what they cost."
    )


for _family in (Estimate, Derived, DurationEstimate, TimeEstimate):
    explain_arguments(_family)
