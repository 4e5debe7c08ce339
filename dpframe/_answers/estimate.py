"""Estimates: released numbers that know their plan and their interval, and numbers computed from
them."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any, ClassVar, NoReturn, cast

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe._answers.arguments import explain_arguments
from dpframe._answers.arithmetic import (
    LARGEST,
    Calculation,
    NumberOperators,
    Pair,
    start_from_leaf,
)
from dpframe._answers.counterparts import ReadingKind, read_plan
from dpframe._answers.digits import split_interval
from dpframe._answers.layout import AnswerLayout, CorrelationTable, OutputSeries
from dpframe._answers.noises import LeafForm, read_form
from dpframe._answers.population import check_coverage, find_rank_error
from dpframe._answers.released import Released
from dpframe._answers.table import ShownAnswer, Tabular, show_number
from dpframe._errors import BadType, NotOffered
from dpframe._ledger.store import pack, unpack
from dpframe._plans.aggregates import AGGREGATES, Cell
from dpframe._plans.durations import count_decimals, format_moment, make_moment
from dpframe._plans.plan import (
    Cost,
    Plan,
    describe_own_guarantee,
    get_noisy_sums,
    has_interval,
    refuse_choices,
)
from dpframe._plans.worth import (
    ORDINARY,
    NoiseRule,
    describe_choice_error,
    describe_extremes,
    describe_limits,
    find_largest_miss,
    is_noise,
    judge_at_sight,
    says_nothing,
)
from dpframe._questions.question import Release, enclose_output, read_numbers
from dpframe._types import Bools, Json, Places, Raw


class Estimate(NumberOperators, Tabular):
    """A released number with its plan and its interval: an `IntEstimate` or a `FloatEstimate`.

    ``+``, ``-``, ``*`` and ``/`` with plain numbers and with other released ones keep an interval,
    and so do ``-x``, ``abs`` and ``round``: ``answer / 1000``, ``sum_of_costs / number_of_people``.
    Everything else gives plain numbers. ``str``, ``format``, ``print``, csv and JSON write the
    number alone; its ``repr`` shows how wide its interval is. Numbers that were computed from
    answers are written and shown in the same way.
    """

    _plan: Plan
    _raw: Raw
    _rule: NoiseRule = ORDINARY
    _layout: ClassVar[AnswerLayout] = OutputSeries()
    _place: ClassVar[int] = 0  # the place of the number in its layout

    @property
    def plan(self) -> Plan:
        """The question, with its mechanism, scale and price."""
        return self._plan

    @property
    def cost(self) -> Cost:
        """The guarantee of this release by itself: ``epsilon`` and ``delta``.

        The ledger counts it by its accountant.
        """
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
    def total(self) -> Estimate:
        """The sum of the values behind a mean, read off the same release at no cost."""
        return self._read_behind("sum")

    def _read_behind(self, kind: ReadingKind) -> Estimate:
        """Return the count or the sum behind the number."""
        plan, _ = read_plan(self._plan, kind, self._plan.cells[:1])
        return scalar(Release(plan, self._raw, self._rule))

    def interval(
        self, level: float = 0.95, *, of: str = "noise", n: object = None
    ) -> tuple[float, float]:
        """Return where the answer without noise lies with probability ``level``.

        The ends for a duration are two Timedeltas, and for a time two Timestamps.

        It covers the noise: not the clipping to the bounds, and not what a sample says about a
        population. With ``of="population"`` it covers that too: the mean, share, number or quantile
        of the population that the people of the table were drawn from, independently and alike
        (docs/guarantees/population.md). A number is the one to expect in such a table. For ``n``
        see `Answer.interval`.
        """
        cells = self._plan.cells[:1]
        level, about = check_coverage(of, n, self._plan, self._raw, cells, _validate.level(level))
        low, high = enclose_output(self._plan, self._raw, 0, level, about)
        if cells[0].duration:
            origin = cells[0].origin
            make: Callable[..., Any] = (
                partial(make_moment, origin=origin) if origin else pd.Timedelta
            )
            return make(low[0]), make(high[0])
        return float(low[0]) + 0.0, float(high[0]) + 0.0  # no negative zero

    def ranks(self, level: float = 0.95) -> float:
        """Return by how many ranks a quantile may miss with this level.

        At most this number of values too many lie below it, and above it.
        """
        return find_rank_error(self._plan, self._plan.cells[:1], level)

    @property
    def reliable(self) -> bool:
        """True if the number is more than noise.

        Half its 95 % interval is at most half of the number, or of a part of the bounds where that
        is more: a tenth where zero is between them, else a hundredth. The interval is less than
        half of what is possible. ``open(reliable=)`` takes another part than a half.

        A quantile that was chosen is noise too where it may be off by half of the values. Their
        number is read off the same release (docs/guarantees/intervals.md#noise-is-flagged).
        """
        released = Released(self._layout, self._plan, self._raw, self._rule.part)
        return not released.noise[0][self._place]

    @property
    def lower(self) -> float | None:
        """The lower end of the 95 % interval; None for a choice that has no interval."""
        return None if self._chosen else self.interval()[0]

    @property
    def upper(self) -> float | None:
        """The upper end of the 95 % interval; None for a choice that has no interval."""
        return None if self._chosen else self.interval()[1]

    @property
    def std_error(self) -> float | None:
        """The standard deviation of the noise in a count or a sum, and in weighted sums of them.

        Of a mean it is that of the first order of the noise, where the number of values is surely
        above 0. It is None where it cannot be stated: for choices, and for what is computed in
        other ways. All but choices have an `interval`.
        """
        deviation = self._deviation()
        return None if deviation is None else float(deviation)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of the releases that it is made of: one, unless it was computed from
        several."""
        return (self._plan,)

    @property
    def releases(self) -> tuple[Raw, ...]:
        """The noisy integers of the releases that it is made of."""
        return (self._raw,)

    @property
    def _chosen(self) -> bool:
        return not all(map(has_interval, self._plan.cells))

    @property
    def _whole(self) -> bool:
        return self._plan.cells[0].whole

    def _ends(self, level: float) -> tuple[float, float]:
        """Return the ends of the interval of the noise; NaN for a choice."""
        return (math.nan, math.nan) if self._chosen else self.interval(level)

    def _deviation(self) -> float | None:
        """Return the standard deviation of the noise; None if it cannot be stated."""
        cell = self._plan.cells[0]
        found = AGGREGATES[cell.aggregate].deviation(get_noisy_sums(self._plan, self._raw, cell))
        deviation = math.nan if found is None else float(np.ravel(found)[0])
        return None if math.isnan(deviation) else deviation

    def _show(self, level: float, at_once: bool, of: str, n: object) -> ShownAnswer:
        """Return the content of the table that `table` makes of the number.

        The arguments are those of `interval`.
        """
        plain = of == "noise" and n is None
        ends = self._ends(level) if plain else self.interval(level, of=of, n=n)
        return show_number(
            self._title,
            self._number(),
            ends,
            self._deviation(),
            describe_plans(self.plans),
            not self.reliable,
            list_limits(self.plans),
            of,
        )

    @property
    def _title(self) -> str:
        return str(make_title(self._plan.cells[0]))

    def _calculation(self) -> Calculation:
        """Return the number as it was released."""
        return start_from_leaf(NumberLeaf(self))

    def _make_number(self, value: Any, calculation: Calculation) -> Any:
        """Return the result of arithmetic as a number with an interval.

        It is a plain number if it is too large, or took too many steps. ``calculation`` has the
        steps.
        """
        if calculation.too_long or (isinstance(value, int) and abs(value) > LARGEST):
            return value
        return make_derived(value, calculation)

    @property
    def dp(self) -> Estimate:
        """The number itself, so that ``answer.dp.interval()`` reads the same for numbers and for
        tables."""
        return self

    def plot(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse to draw a single number."""
        raise BadType(
            "a single number cannot be drawn: print it, or its .interval(). Series and DataFrames "
            "have .dp.plot()."
        )

    def _blank(self) -> Estimate:
        """Return the answer without its number, with the same plan and interval."""
        kind = FloatEstimate if isinstance(self, int) else type(cast(FloatEstimate, self))
        return _make_blank(self, kind)

    def _state(self) -> Json | None:
        """Return what a pickle keeps beside value, plan and integers."""
        return None if self._rule == ORDINARY else {"_rule": self._rule}

    def __repr__(self) -> str:
        """Show the number, half of its interval behind ±, and warnings.

        One warning says that the number is mostly noise. Others tell the error of a chosen value,
        and contribution limits.
        """
        noise = "" if self.reliable else "noise"
        miss = max(map(find_largest_miss, self.plans), default=0.0)
        ranks = f"off by at most {math.ceil(miss):,} ranks" if miss >= 1 else ""
        says = [say(plan) for say in (describe_extremes, describe_limits) for plan in self.plans]
        notes = dict.fromkeys(filter(None, [noise, ranks, *says]))
        return ", ".join([self._text(), *notes])

    def _text(self) -> str:
        """Return the number and half of its interval as text, such as ``41.20 ± 0.50``."""
        if self._chosen:
            return f"{float(cast(Any, self)):.12g}"
        return " ± ".join(split_interval(self._number(), *self.interval(), self._whole))

    def _repr_html_(self) -> str:
        """Show the number with its interval and its price as HTML in a notebook.

        A value that was chosen has no interval, and its possible error is shown instead.
        """
        if self._chosen:
            text = next(filter(None, map(describe_choice_error, self.plans)), "chosen")
            return f"<b>{self!r}</b> <small>{escape(text)}; {self._price}</small>"
        low, high = self.interval()
        ends = f"95 % interval {self._format_end(low)} to {self._format_end(high)}"
        notes = [ends, *dict.fromkeys(filter(None, map(describe_choice_error, self.plans)))]
        return f"<b>{self!r}</b> <small>{escape('; '.join([*notes, self._price]))}</small>"

    def _format_end(self, end: object) -> str:
        """Return an end of the interval as text."""
        return f"{end:.6g}"

    @property
    def _price(self) -> str:
        return describe_own_guarantee(self._plan)


@dataclass(frozen=True, slots=True, eq=False)
class NumberLeaf:
    """A released number as a leaf of calculations (`arithmetic.Leaf`)."""

    estimate: Estimate

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan of the number."""
        return self.estimate.plans

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The output that the number is."""
        return self.estimate.plan.cells[:1]

    @property
    def part(self) -> float:
        """The part by which the number is judged."""
        return self.estimate._rule.part

    @property
    def release_key(self) -> object:
        """The release of the number, which is the number itself."""
        return self.estimate

    def number(self) -> Any:
        """Return the plain number."""
        return self.estimate._number()

    def ends(self, level: float, at_once: bool = False) -> Pair:
        """Return the ends of the interval; NaN for a choice."""
        return self.estimate._ends(level)

    def deviation(self) -> float | None:
        """Return the standard deviation of the noise; None if it cannot be stated."""
        return self.estimate.std_error

    def form(self) -> LeafForm | None:
        """Return the number as a sum of noisy integers, or as a ratio of two."""
        estimate = self.estimate
        if type(estimate) not in (IntEstimate, FloatEstimate):
            return None
        raw = estimate._raw
        return read_form(estimate.plan, raw, np.zeros(1, int), np.zeros(1, int), id(raw))

    def flag_noise(self, size: int) -> Bools:
        """Return ``size`` times whether the number is noise."""
        return np.full(size, not self.estimate.reliable)

    def is_same(self, other: object) -> bool:
        """Return whether another leaf is this very number."""
        return isinstance(other, NumberLeaf) and other.estimate is self.estimate

    def pick_rows(self, rows: Places) -> NumberLeaf:
        """Return the number itself, which stands in every row."""
        return self


class IntEstimate(Estimate, int):
    """A whole number that was released. It may be negative, since noise may be."""

    _number = int.__int__

    def __str__(self) -> str:
        return int.__repr__(self)

    def __new__(cls, value: int, plan: Plan, raw: Raw) -> IntEstimate:
        self = int.__new__(cls, value)
        self._plan, self._raw = plan, raw
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return IntEstimate, (int(self), self._plan, self._raw), self._state()


class FloatEstimate(Estimate, float):
    """A number that was released."""

    _number = float.__float__

    def __str__(self) -> str:
        return float.__repr__(self)

    def __new__(cls, value: float, plan: Plan, raw: Raw) -> FloatEstimate:
        self = float.__new__(cls, value)
        self._plan, self._raw = plan, raw
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return FloatEstimate, (float(self), self._plan, self._raw), self._state()


def _make_blank(answer: Estimate, kind: type[FloatEstimate] = FloatEstimate) -> Estimate:
    """Return NaN with the plan and the interval of an answer."""
    blank = kind(math.nan, answer.plan, answer._raw)
    blank._rule = answer._rule
    return blank


class Correlation(FloatEstimate):
    """The correlation of two columns, from a release of their variances and their covariance."""

    _layout = CorrelationTable(((0, 1), (1, 2)))
    _place = 1

    def __reduce__(self) -> tuple[object, ...]:
        return Correlation, (float(self), self._plan, self._raw), self._state()

    def interval(
        self, level: float = 0.95, *, of: str = "noise", n: object = None
    ) -> tuple[float, float]:
        """Return the lower and the upper end of an interval for the correlation.

        ``level`` is the confidence of the interval. With ``of="noise"`` it covers the correlation
        of this data, with "population" that of the population. ``n`` is a public number of rows.
        """
        level, about = check_coverage(
            of,
            n,
            self._plan,
            self._raw,
            self._plan.cells,
            _validate.level(level),
            noun=self._layout.noun,
        )
        low, high = self._layout.interval(self._plan, self._raw, level, about)[0]
        return float(low[1]), float(high[1])

    def _deviation(self) -> None:
        return None


class SecondsEstimate(Estimate):
    """A duration or a time that was released, and measured in seconds.

    Arithmetic gives plain Timedeltas, Timestamps and numbers, without intervals.
    """

    @abstractmethod
    def _number(self) -> Any:
        """Return the plain Timedelta or Timestamp."""

    def _deviation(self) -> None:
        return None

    def _blank(self) -> Estimate:
        return _make_blank(self, BlankSeconds)

    def _text(self) -> str:
        return _format_seconds(self._number(), self)

    def _format_end(self, end: object) -> str:
        return _format_seconds_end(end, self)


class DurationEstimate(SecondsEstimate, pd.Timedelta):
    """A duration that was released: a ``pd.Timedelta`` with a plan and an interval, whose ends are
    Timedeltas too."""

    __str__ = pd.Timedelta.__str__

    def __new__(cls, value: Any, plan: Plan, raw: Raw) -> DurationEstimate:
        """Make a ``pd.Timedelta`` that knows its plan and the noisy numbers it was made of."""
        plain = pd.Timedelta(value)
        # pandas makes the subclass of whole ticks, and of a Timedelta that Timedelta itself.
        make = cast("Callable[..., DurationEstimate]", pd.Timedelta.__new__)
        self = make(cls, int(plain.asm8.view("i8")), plain.unit)
        self._plan, self._raw = plan, raw
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return DurationEstimate, (self._number(), self._plan, self._raw), self._state()

    def _number(self) -> pd.Timedelta:
        return pd.Timedelta(self.asm8)


class TimeEstimate(SecondsEstimate, pd.Timestamp):
    """A moment that was released: a ``pd.Timestamp`` with a plan and an interval, whose ends are
    Timestamps too."""

    __str__ = pd.Timestamp.__str__

    def __reduce__(self) -> tuple[object, ...]:
        return make_time_estimate, (self.asm8, self._plan, self._raw), self._state()

    def _number(self) -> pd.Timestamp:
        return cast(pd.Timestamp, make_moment(self.asm8, self._plan.cells[0].origin))


def make_time_estimate(value: object, plan: Plan, raw: Raw) -> TimeEstimate:
    """Return a released moment.

    The class is assigned, since the constructor of pandas makes a plain Timestamp of every
    subclass.
    """
    moment = make_moment(value, plan.cells[0].origin)
    moment.__class__ = TimeEstimate
    moment._plan, moment._raw = plan, raw
    return cast(TimeEstimate, moment)


class BlankSeconds(FloatEstimate):
    """A duration or a time that is noise and left out. NaT itself cannot have an interval."""

    def __reduce__(self) -> tuple[object, ...]:
        return BlankSeconds, (float(self), self._plan, self._raw), self._state()

    def _deviation(self) -> None:
        return None

    def _text(self) -> str:
        return _format_seconds(pd.NaT, self)

    def _format_end(self, end: object) -> str:
        return _format_seconds_end(end, self)


def _format_seconds(value: object, answer: Estimate) -> str:
    """Return a duration or a time with half of its interval."""
    if answer._chosen:
        return str(value)
    return " ± ".join(split_interval(value, *answer.interval()))


def _format_seconds_end(end: object, answer: Estimate) -> str:
    """Return an end of an interval of durations or times."""
    return format_moment(end, count_decimals(*answer.interval()))


_OPERATORS = ("add", "sub", "mul", "truediv", "radd", "rsub", "rmul", "rtruediv")


def _use_operators_of(plain: type, kind: type[SecondsEstimate]) -> None:
    """Give a class the operators of pandas' own, in place of those that keep an interval."""
    for name in (*_OPERATORS, "neg", "pos", "abs"):
        if hasattr(plain, f"__{name}__"):
            setattr(kind, f"__{name}__", getattr(plain, f"__{name}__"))


_use_operators_of(pd.Timedelta, DurationEstimate)
_use_operators_of(pd.Timestamp, TimeEstimate)


def correlation(release: Release) -> Estimate:
    """Return the correlation of two columns, from their variances and their covariance."""
    value = Correlation._layout.values(release.plan, release.raw)[0][1]
    return _judge(Correlation(float(value), release.plan, release.raw), release)


def scalar(release: Release) -> Estimate:
    """Return the answer to a question without groups: a number, a duration or a moment with its
    interval.

    Warn if it is mostly noise that was released just now.
    """
    value = read_numbers(release.plan, release.raw, 0)[0]
    plan, raw, cell = release.plan, release.raw, release.plan.cells[0]
    if cell.duration:
        make = make_time_estimate if cell.origin else DurationEstimate
        return _judge(make(value, plan, raw), release)
    answer: Estimate = (
        IntEstimate(int(value), plan, raw) if cell.whole else FloatEstimate(float(value), plan, raw)
    )
    if release.rule is ORDINARY:
        if release.warning is None:
            return answer
        integers = [part[:, 0].tolist() for part in raw]
        if judge_at_sight(plan, integers, (float(value),), ORDINARY.part):
            return answer
    return _judge(answer, release)


def _judge(answer: Estimate, release: Release) -> Estimate:
    """Return a number with the rule that it is judged by.

    Warn of noise that was released just now, and leave it out where the session says so.
    """
    if release.rule != ORDINARY:
        answer._rule = release.rule
    if (release.warning or release.rule.blank) and not answer.reliable:
        if release.warning is not None and not _was_warned(release.plan):
            release.warning.give(release.rule, single=True)
        return answer._blank() if release.rule.blank else answer
    return answer


def _was_warned(plan: Plan) -> bool:
    """Return whether there was a warning before the debit: of a choice that says nothing."""
    cell, most = plan.cells[0], plan.most
    return AGGREGATES[cell.aggregate].picks and most is not None and says_nothing(plan, cell, most)


class Derived(Estimate):
    """A number that was computed from released ones.

    It has an interval, and not a receipt of its own: nothing was released anew.
    """

    _steps: Calculation

    def _calculation(self) -> Calculation:
        return self._steps

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._number(), self._steps)

    @property
    def plans(self) -> tuple[Plan, ...]:
        plans = {id(plan): plan for leaf in self._steps.leaves for plan in leaf.plans}
        return tuple(plans.values())

    @property
    def releases(self) -> tuple[Raw, ...]:
        keys: list[Any] = [leaf.release_key for leaf in self._steps.leaves]
        parts = [key.releases if isinstance(key, Estimate) else (key.raw,) for key in keys]
        return tuple(raw for part in parts for raw in part)

    @property
    def plan(self) -> Plan:
        """The plan of the release that it is made of; refused where it has several `plans`."""
        return get_only_plan(self.plans)

    @property
    def cost(self) -> Cost:
        """The guarantee of the release that it is made of, to which it adds nothing.

        It is refused where there are several releases.
        """
        return self.plan.cost

    def interval(
        self, level: float = 0.95, *, of: str = "noise", n: object = None
    ) -> tuple[float, float]:
        """Return an interval for what the same arithmetic gives on the answers without noise.

        The probability is ``level``. Each of m released numbers takes an m-th of the risk, and
        interval arithmetic encloses what can be made of them. The ends are infinite where the
        interval of a divisor contains zero.
        """
        if of != "noise" or n is not None:
            raise NotOffered(
                "a number that was computed from answers has intervals of the noise. Ask the "
                "answers themselves for intervals of a population; two groups are compared by "
                "answer.dp.difference('a', 'b', of='population')."
            )
        level = _validate.level(level)
        for leaf in self._steps.leaves:
            refuse_choices(leaf.cells)
        low, high = self._steps.ends(level)
        return float(low), float(high)

    @property
    def rule(self) -> str:
        """The rule that its interval follows, in words."""
        return self._steps.rule

    @property
    def _chosen(self) -> bool:
        return not all(has_interval(cell) for leaf in self._steps.leaves for cell in leaf.cells)

    @property
    def _whole(self) -> bool:
        return isinstance(self, int)

    @property
    def reliable(self) -> bool:
        """True if the number is more than noise: half its 95 % interval is at most half of it.

        A choice, and one number that was only scaled, is as reliable as what it is made of.
        """
        if self._chosen or self._steps.scales:
            return not any(leaf.flag_noise(1)[0] for leaf in self._steps.leaves)
        low, high = self.interval()
        part = min((leaf.part for leaf in self._steps.leaves), default=ORDINARY.part)
        return not is_noise(self._number(), low, high, 0.0, np.inf, part)

    @property
    def _title(self) -> str:
        return "value"

    def _deviation(self) -> float | None:
        deviation = self._steps.deviation()
        return None if deviation is None else float(deviation)

    @property
    def _price(self) -> str:
        first, *others = self.plans
        if others:
            return f"computed from {1 + len(others)} releases"
        return describe_own_guarantee(first)


class DerivedInt(Derived, int):
    """A whole number that was computed from released ones."""

    _number = int.__int__

    def __str__(self) -> str:
        return int.__repr__(self)

    def __new__(cls, value: int, steps: Calculation) -> DerivedInt:
        self = int.__new__(cls, value)
        self._steps = steps
        return self


class DerivedFloat(Derived, float):
    """A number that was computed from released ones."""

    _number = float.__float__

    def __str__(self) -> str:
        return float.__repr__(self)

    def __new__(cls, value: float, steps: Calculation) -> DerivedFloat:
        self = float.__new__(cls, value)
        self._steps = steps
        return self


def make_derived(value: Any, calculation: Calculation) -> Derived:
    """Return what a calculation comes to as a number with an interval."""
    if isinstance(value, int) and abs(value) <= LARGEST:
        return DerivedInt(value, calculation)
    return DerivedFloat(float(value), calculation)


# The names of the classes of released numbers in a receipt.
KINDS: dict[str, type[IntEstimate] | type[FloatEstimate]] = {
    "whole number": IntEstimate,
    "number": FloatEstimate,
    "correlation": Correlation,
}


def write_number(number: Estimate) -> Json:
    """Return a released number as JSON, for the receipt of a table that was computed with it."""
    kind = next((name for name, known in KINDS.items() if type(number) is known), None)
    if kind is None:
        raise BadType(
            "this number was not released by a question, so no table of answers can be computed "
            "with it."
        )
    return {
        "kind": kind,
        "value": number._number(),
        "plan": number.plan.to_json(),
        "raw": pack(number._raw),
    }


def read_number(data: Json) -> Estimate:
    """Return a released number from its JSON."""
    plan = Plan.from_json(data["plan"])
    return KINDS[data["kind"]](data["value"], plan, tuple(unpack(data["raw"])))


def list_limits(plans: Sequence[Plan]) -> str:
    """Return the contribution limits that answers with these plans name."""
    return "; ".join(dict.fromkeys(filter(None, map(describe_limits, plans))))


def describe_plans(plans: Sequence[Plan]) -> str:
    """Return the questions and the prices of plans, as a caption."""
    return "; ".join(f"{plan.question} ({describe_own_guarantee(plan)})" for plan in plans)


def make_title(cell: Cell) -> Hashable:
    """Return the title of an answer without a name, for axes and tables.

    ``cell`` is its first output.
    """
    unnamed = AGGREGATES[cell.aggregate].counts_rows and cell.name == cell.aggregate
    nameless = cell.name in ((), "()")  # the name below the labels of a pivot
    return "rows" if unnamed else cell.aggregate if nameless else cell.name


def get_only_plan(plans: Sequence[Plan]) -> Plan:
    """Return the one plan of what was computed from released numbers; refuse several."""
    if len(plans) == 1:
        return plans[0]
    raise BadType(
        f"this was computed from {len(plans)} releases, so it has no plan and no cost of its own: "
        ".plans are those of the releases, and p.budget has what they cost."
    )


for _family in (Estimate, Derived, DurationEstimate, TimeEstimate):
    explain_arguments(_family)
