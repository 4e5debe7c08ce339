"""Plans: everything about a release that is known before the data is read, and how plans are made.

Each aggregate names the vector that it is read off (`Aggregate.vector`). Outputs with equal vectors
share one statistic, and so its sensitivity.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from html import escape
from operator import attrgetter
from typing import Any, NamedTuple

from dpframe import _validate
from dpframe._cells.encoding import encode
from dpframe._errors import BadValue, NotOffered
from dpframe._groups.keys import groups_of
from dpframe._groups.selected import FoundGroups
from dpframe._groups.unit import Limit, Unit
from dpframe._plans.aggregates import (
    AGGREGATES,
    AROUND,
    LISTED,
    Cell,
    Measured,
    Outputs,
    Setting,
    VectorKey,
    move_cell,
    read_noisy,
)
from dpframe._plans.clips import NarrowBounds
from dpframe._plans.counts import ROWS
from dpframe._plans.moments import make_column
from dpframe._plans.worth import (
    describe_error_by_spread,
    describe_left_out,
    describe_worth_in_advance,
    find_choice_error,
)
from dpframe._statistics.base import Primitive, Reading, Sensitivity, Statistic
from dpframe._types import Json, Raw
from dpframe.accounting._filter import Charge, Price
from dpframe.accounting.loss import Loss, loss_from_json
from dpframe.mechanisms._base import mechanism_from

_as_text = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class Cost(NamedTuple):
    """The guarantee of a release by itself: it is (epsilon, delta)-private."""

    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class Part:
    """One vector of a release, with its own noise.

    Its integers are in steps of ``step`` data units.
    """

    statistic: str
    noise: Any  # the mechanism
    l1: int
    l2_squared: int
    step: float

    @property
    def sensitivity(self) -> float:
        """The sensitivity in data units, in the norm that the mechanism goes by."""
        return float(self.noise.norm.size(self.l1, self.l2_squared) * self.step)

    @property
    def scale(self) -> float:
        """Scale of the noise of this vector, in data units."""
        return (
            float(self.noise.scale * self.step)
            if self.step == 1
            else float(self.noise.scale) * self.step
        )

    def tail(self, plan: Plan) -> str:
        """Return a text on how probable large errors of the noise are
        (docs/guarantees/accuracy.md).

        ``plan`` is the plan that this vector belongs to.
        """
        selects = bool(plan.cells) and AGGREGATES[plan.cells[0].aggregate].selects
        text: str = self.noise.tail(plan.groups if selects else 0)
        return text


@dataclass(frozen=True)
class Plan:
    """Plan of a question: mechanism, scale, price and expected error.

    It is public, free, and the same for all data. `explain` returns it, and every answer carries
    it. ``loss`` is what accountants add up. ``stated_at`` is the delta at which its guarantee is
    stated as (epsilon, delta).
    """

    #: The question in words.
    question: str
    #: The neighbouring relation.
    neighbors: str
    #: The privacy loss, which accountants add up.
    loss: Loss
    #: The delta of `cost`. It is 0 for a pure mechanism.
    stated_at: Fraction
    #: The statistics, each with its noise and sensitivity.
    parts: tuple[Part, ...]
    #: The outputs, as the plan knows them.
    cells: tuple[Cell, ...]
    #: The number of groups. For a choice it is the number of candidates.
    groups: int
    #: The reason for the mechanism.
    why: str
    #: The facts that are taken to be public for it.
    declared: tuple[str, ...] = field(default=(), compare=False)
    #: The error to expect, in words, of a question with a mechanism of its own.
    told: str = ""
    #: The part of the budget that it would take, as `explain` sees it.
    budget: str = field(default="", compare=False)
    #: The number of values that `explain` was given.
    n: float | None = field(default=None, compare=False)
    #: The largest number of values, if that is public.
    most: float | None = field(default=None, compare=False)
    #: The contribution limits of a person. It is empty if a row is a person.
    caps: tuple[Limit, ...] = ()
    #: The groups that were found in the data.
    selected: FoundGroups | None = field(default=None, compare=False)
    #: The bounds that cut more than the declarations do.
    clips: tuple[NarrowBounds, ...] = field(default=(), compare=False)
    # The `Draft` of the question, while it runs.
    _draft: Any = field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_draft"}

    @cached_property
    def cost(self) -> Cost:
        """The (epsilon, delta) guarantee of this release by itself. In a session its price is what
        the accountant counts."""
        epsilon = self.loss.epsilon_at(self.stated_at)
        return Cost(math.inf if epsilon is None else float(epsilon), float(self.stated_at))

    @property
    def epsilon(self) -> float:
        """The epsilon of `cost`."""
        return self.cost.epsilon

    @property
    def delta(self) -> float:
        """The delta of `cost`."""
        return self.cost.delta

    @cached_property
    def charge(self) -> Charge:
        """The loss and `stated_at`, as the ledger debits them."""
        return Charge(((self.loss, 1),), self.stated_at)

    @property
    def mechanism(self) -> str:
        """The name of the mechanism of the first part, such as ``"laplace"`` or ``"gaussian"``."""
        name: str = self.parts[0].noise.name
        return name

    @property
    def sensitivity(self) -> float:
        """The sensitivity of the first part, in data units; `parts` has them all."""
        return self.parts[0].sensitivity

    @property
    def scale(self) -> float:
        """The scale of the noise of the first part, in data units; `parts` has them all."""
        return self.parts[0].scale

    def error(self, level: float = 0.95, n: float | None = None, at_once: bool = False) -> Any:
        """Return half the width of the interval to expect, by output; for a single output the
        number itself.

        A mean's error depends on how many values there are, and to look would not be free: give a
        public or guessed ``n`` (of a group), here or to ``explain``. A selection has no such error:
        it is None.

        ``at_once``: with probability ``level`` the answers of all groups and outputs are within,
        together. It grows with the logarithm of the number of groups
        (docs/guarantees/accuracy.md#many-answers-at-once). That of durations is in seconds.

        >>> from dpframe.datasets import visits
        >>> plan = visits().dp.open(1, bounds={"age": (0, 110)}).explain.mean("age", epsilon=0.5)
        >>> round(plan.error(n=1000), 2)
        0.66
        """
        n = self.n if n is None else _validate.real(n, "n")
        errors = self._errors(level, n, at_once)
        if n is None and None in errors.values():
            guessed = self._errors(level, 1e6, at_once)
            if needy := [
                str(name) for name in errors if errors[name] is None and guessed[name] is not None
            ]:
                raise BadValue(
                    f"the error of {', '.join(needy)} depends on how many values there are: "
                    "plan.error(n=1000), or explain with "
                    "n=1000."
                )
        return errors if len(errors) > 1 else next(iter(errors.values()), None)

    def _errors(self, level: float, n: float | None, at_once: bool = False) -> dict[Any, Any]:
        """Return the expected error of each output by its name; None where it is not known.

        ``level`` is the confidence, ``n`` the number of values, and ``at_once`` asks for all
        answers together.
        """
        level = _validate.level(level)
        level = self.level_each(level) if _validate.flag(at_once, "at_once") else level
        errors = {}
        for cell in self.cells:
            aggregate = AGGREGATES[cell.aggregate]
            errors[cell.name] = (
                None
                if aggregate.selects
                else aggregate.error(get_noisy_sums(self, None, cell), level, n)
            )
        return errors

    def level_each(self, level: float) -> float:
        """Return the confidence that each interval needs so that all of them hold together with
        ``level``.

        Groups have independent noise. The outputs of one group may share theirs, so there the union
        bound is used.
        """
        group = math.exp(math.log(_validate.level(level)) / max(self.groups, 1))
        return min(1 - (1 - group) / max(len(self.cells), 1), 1 - 2.0**-53)

    @property
    def selects(self) -> bool:
        """Whether a choice, which is not a measurement, is among its answers."""
        kinds = [AGGREGATES[cell.aggregate] for cell in self.cells]
        return any(aggregate.selects or aggregate.picks for aggregate in kinds)

    @property
    def ranged(self) -> bool:
        """Whether its answer is a choice alone, which the exponential mechanism may make."""
        choice = AGGREGATES[self.cells[0].aggregate].choice if self.cells else None
        return choice is not None and choice.ranged

    def worst_error(self, n: float | None = None) -> float | None:
        """Return the largest expected error of the outputs at 95 %, or None if one is not known.

        ``n`` is the number of values. For selections it is how far the score of the choice may be
        below the best.
        """
        kinds = [AGGREGATES[cell.aggregate] for cell in self.cells]
        if not kinds:
            return None
        if all(aggregate.selects or aggregate.rank_error_text for aggregate in kinds):
            return max(find_choice_error(self, cell) for cell in self.cells)
        errors = list(self._errors(0.95, self.n if n is None else n).values())
        return None if None in errors else max(errors)

    @property
    def limits(self) -> str:
        """A text with the number of rows and groups for which a person counts; empty where a row is
        a person."""
        return "; ".join(map(str, self.caps))

    def _rows(self) -> list[tuple[str, str]]:
        """Return the lines that a plan is printed as, each as a name and a text."""
        rows = [("question", self.question)]
        if self.budget:
            rows.append(("budget", self.budget))
        if self.delta:
            guarantee = (
                f"by itself this release guarantees epsilon {self.epsilon:.6g} at delta "
                f"{self.delta:.3g}"
            )
            rows.append(
                ("price", guarantee + "; beside others it adds less, as the budget counts it")
            )
        else:
            rows.append(("price", f"epsilon {self.epsilon:.6g}"))
        rows.append(("neighbours", self.neighbors))
        if self.limits:
            rows.append(("limits", self.limits))
        if left_out := describe_left_out(self):
            rows.append(("left out", left_out))
        for part in self.parts:
            reach = f"{part.statistic}: sensitivity {part.sensitivity:.6g} ({part.noise.norm.text})"
            rows.append(("release", f"{reach}, {part.noise.name} noise of scale {part.scale:.6g}"))
        rows.append(("error, 95 %", self._error_text(0.95)))
        many = self.groups > 1 and not self.selects and not self.told
        if many:
            together = self._error_text(self.level_each(0.95))
            rows.append(("all at once", f"{together}, for all {self.groups} groups together"))
        if worth := describe_worth_in_advance(self):
            rows.append(("worth", worth))
        rows += [
            ("tail", text) for text in dict.fromkeys(part.tail(self) for part in self.parts) if text
        ]
        rows.append(("why", self.why))
        rows.extend(("declared", word) for word in self.declared)
        return rows

    def _error_text(self, level: float) -> str:
        """Return a text with the error to expect, for up to eight outputs. ``level`` is the
        confidence."""
        # A question with a mechanism of its own, such as a model, brings its text.
        if self.told:
            return self.told
        texts = []
        for cell in self.cells[:8]:
            aggregate = AGGREGATES[cell.aggregate]
            if aggregate.rank_error_text:  # a chosen quantile or mode
                text = aggregate.rank_error_text.format(r=find_choice_error(self, cell))
                texts.append(text if len(self.cells) == 1 else f"{cell.name}: {text}")
                continue
            if aggregate.choice is not None:  # the whole release is one choice
                return (
                    f"the {aggregate.choice.scores} of the choice is within "
                    f"{self.selection_error():.4g} of the largest"
                )
            sums, seconds = get_noisy_sums(self, None, cell), " seconds" * cell.duration
            error = aggregate.error(sums, level, self.n)
            # The error of a mean is about c / n. At a large n that is so nearly exactly, and gives
            # the c to print where n is not known.
            large_n = 1e9
            error_at_large_n = aggregate.error(sums, level, large_n)
            if error is not None:
                needs_n = aggregate.error(sums, level, None) is None
                for_n = f" for {self.n:g} values" if needs_n and self.n is not None else ""
                text = f"± {error:.4g}{seconds}{for_n}"
            elif error_at_large_n is not None:
                text = f"± {error_at_large_n * large_n:.4g} / n{seconds} for n values"
            else:
                text = describe_error_by_spread(self, cell, level)
            texts.append(text if len(self.cells) == 1 else f"{cell.name} {text}")
        return "; ".join(texts) + ("; ..." if len(self.cells) > 8 else "")

    def selection_error(self) -> float:
        """Return how far the score of a selected candidate may be below the largest, with
        probability 0.95."""
        part = self.parts[0]
        return part.scale * float(part.noise.shortfall(self.groups))

    def __repr__(self) -> str:
        return "\n".join(f"{name:>12}  {text}" for name, text in self._rows())

    def _repr_html_(self) -> str:
        """Return the plan as an HTML table, for notebooks."""
        body = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td "
            f"style='text-align:left'>{escape(text)}</td></tr>"
            for name, text in self._rows()
        )
        return f"<table>{body}</table>"

    @cached_property
    def text(self) -> str:
        """Whole plan as JSON text, as the ledger keeps it.

        The text of the cells is taken from the draft: it is the same at every price.
        """
        prepared = self._draft
        alike = prepared is not None and prepared.cells is self.cells
        cells = prepared.written if alike else _as_text(_write_cells(self.cells))
        parts = [
            {
                **p.noise.to_json(),
                "statistic": p.statistic,
                "l1": p.l1,
                "l2_squared": p.l2_squared,
                "step": p.step,
            }
            for p in self.parts
        ]
        head = {
            "question": self.question,
            "neighbors": self.neighbors,
            "loss": self.loss.to_json(),
            "stated_at": str(self.stated_at),
            "parts": parts,
        }
        declared = ",".join(map(_as_text, self.declared))
        caps = _as_text([limit.to_json() for limit in self.caps]) if self.caps else "[]"
        error = f',"told":{_as_text(self.told)}' if self.told else ""
        selected = (
            f',"selected":{_as_text(list(self.selected))}' if self.selected is not None else ""
        )
        if self.clips:
            selected += f',"clips":{_as_text([clip.to_json() for clip in self.clips])}'
        tail = (
            f'"groups":{self.groups},"limits":{caps},"why":{_as_text(self.why)},'
            f'"declared":[{declared}]{error}{selected}'
        )
        return f'{_as_text(head)[:-1]},"cells":{cells},{tail}}}'

    def to_json(self) -> Any:
        """Return the plan as a JSON value, which `from_json` reads."""
        return json.loads(self.text)

    @staticmethod
    def from_json(data: Json) -> Plan:
        """Return the plan that `to_json` has recorded."""
        parts = tuple(
            Part(d["statistic"], mechanism_from(d), d["l1"], d["l2_squared"], d["step"])
            for d in data["parts"]
        )
        cells = tuple(_read_cell(row) for row in data["cells"])
        return Plan(
            data["question"],
            data["neighbors"],
            loss_from_json(data["loss"]),
            Fraction(data["stated_at"]),
            parts,
            cells,
            data["groups"],
            data["why"],
            tuple(data["declared"]),
            data.get("told", ""),
            caps=tuple(map(Limit.from_json, data["limits"])),
            selected=FoundGroups(*data["selected"]) if "selected" in data else None,
            clips=tuple(map(NarrowBounds.from_json, data.get("clips", ()))),
        )


def _write_cells(cells: Sequence[Cell]) -> list[list[object]]:
    """Return the outputs of a plan as JSON values, which `_read_cell` reads back."""
    return [
        [
            c.name if isinstance(c.name, str | int | float | None) else str(c.name),
            *(c.aggregate, c.part, c.lower, c.upper, c.ddof, c.whole, c.functionals, c.constants),
            # Receipts of plain numbers have no further entries.
            *([True] if c.duration else []),
            *([c.origin] if c.origin else []),
        ]
        for c in cells
    ]


def _read_cell(row: list[Any]) -> Cell:
    """Return an output of a plan from its JSON value, as `_write_cells` wrote it."""
    name, aggregate, part, lower, upper, ddof, whole, functionals, constants, *seconds = row
    maps = {k: tuple(v) for k, v in functionals.items()}
    return Cell(
        name,
        aggregate,
        part,
        lower,
        upper,
        ddof,
        whole,
        maps,
        constants,
        bool(seconds),
        *seconds[1:],
    )


def has_interval(cell: Cell) -> bool:
    """Return whether an output has an interval: it is measured, or its surroundings are counted.

    Receipts of earlier versions have quantiles without surroundings.
    """
    aggregate = AGGREGATES[cell.aggregate]
    if aggregate.picks:
        return not aggregate.keyed and AROUND in cell.constants
    return aggregate.measured


def has_no_intervals(cells: Sequence[Cell]) -> bool:
    """Return whether none of the outputs has an interval."""
    return bool(cells) and not any(map(has_interval, cells))


def refuse_choices(cells: Sequence[Cell]) -> None:
    """Refuse to give an interval if no output has one. The error tells what to ask instead."""
    if has_no_intervals(cells):
        if any(AGGREGATES[cell.aggregate].keyed for cell in cells):
            raise NotOffered(
                "the most common value is chosen, not measured, so no interval comes with it. Its "
                "plan tells by how many rows "
                "it may miss. value_counts has intervals."
            )
        raise NotOffered(
            "this quantile was released by an earlier version, without the counts that an interval "
            "is read off. Its plan tells by how many ranks it may miss. Ask it again for an interval."
        )


def get_noisy_sums(plan: Plan, raw: Raw | None, cell: Cell) -> Measured:
    """Return the noisy sums that an output is read off. Before the release they are empty."""
    return read_noisy(plan.parts, raw, cell)


# How a plan is made -------------------------------------------------------------------------------


def arrange(
    query: Outputs, unit: Unit, public_rows: int | None
) -> list[tuple[Statistic, list[int]]]:
    """Return the statistics that answer a question in one release, each with the positions of its
    outputs in the question.

    ``public_rows`` is the number of rows if it is public, or None. The surroundings of choices follow them,
    and have no outputs of their own.

    The count, sum and moments of a column are read off one vector, whose sensitivity is that of a
    single number. The number of rows is read off the vector of a column too, which then counts its
    nulls (``host``). ``docs/guarantees/statistics.md`` shows why that beats splitting the price.
    """
    vectors = [AGGREGATES[out.aggregate].vector(out) for out in query.outputs]
    moments = {}
    for vector in vectors:
        if vector.make is make_column and vector.bounds is not None:
            moments[vector.expr] = vector
    served: dict[VectorKey, list[int]] = {}
    for i, vector in enumerate(vectors):
        read = vector
        if vector.make is make_column and vector.bounds is None:
            # A count is read off the moments of its column. Without nulls it is the number of rows.
            assert vector.expr is not None
            read = moments.get(vector.expr) or (vector if vector.expr.nullable else ROWS)
        served.setdefault(read, []).append(i)
    ordered = sorted(served, key=attrgetter("place"))
    columns = [vector for vector in ordered if vector.make is make_column]
    host = None
    if ROWS in served and columns:
        # The rows are read off a column. The choice of the column ignores the order of outputs.
        host = min(columns, key=lambda column: encode((column.expr, column.bounds)))
        served[host] += served.pop(ROWS)
        ordered.remove(ROWS)
    arranged: list[tuple[Statistic, list[int]]] = []
    for vector in ordered:
        outputs = [query.outputs[i] for i in served[vector]]
        setting = Setting(query, unit, public_rows, vector is host)
        statistic = vector.make(vector, outputs, setting)
        arranged.append((statistic, served[vector]))
        surroundings = AGGREGATES[outputs[0].aggregate].surroundings
        if surroundings is not None:
            arranged.append((surroundings(statistic), []))
    return arranged


# The part of the price of a choice that counts what lies around it. The choice errs by 16/15 of
# what the whole price would buy (docs/guarantees/quantiles.md#the-interval-of-a-choice).
ON_SURROUNDINGS = Fraction(1, 16)


def _divide_price(arranged: Sequence[tuple[Statistic, list[int]]]) -> tuple[Fraction, ...]:
    """Return the share of the price that each statistic takes.

    All take the same, but a choice leaves a part of its own to its surroundings.
    """
    own = Fraction(1, sum(bool(serves) for _, serves in arranged))
    shares: list[Fraction] = []
    for _, serves in arranged:
        if serves:
            shares.append(own)
        else:
            shares[-1] = own * (1 - ON_SURROUNDINGS)
            shares.append(own * ON_SURROUNDINGS)
    return tuple(shares)


class LastPlan:
    """A slot for the last plan that was made from a draft, with the facts that it was made for.

    A question that is asked again at the same price, with fresh noise or in another session, has
    the same plan.
    """

    # One tuple, so that a thread that reads it gets facts and the plan that belongs to them.
    made: tuple[tuple[Any, ...], Plan] | None = None


class Draft(NamedTuple):
    """Parts of a plan that follow from its question alone, whatever the price."""

    statistics: tuple[Statistic, ...]
    # The code of each statistic, with the number of points that are chosen of it.
    codes: tuple[bytes, ...]
    # The primitives of all statistics together.
    primitives: frozenset[Primitive]
    readings: tuple[Reading, ...]
    # The number of points that are chosen of each statistic, and 0 if it is measured.
    picks: tuple[int, ...]
    # The share of the price that each statistic takes where some choose. Empty where none does.
    shares: tuple[Fraction, ...]
    cells: tuple[Cell, ...]
    # The cells as JSON.
    written: str
    # How far one person moves each statistic, or one score of a choice against another.
    moved: tuple[Sensitivity, ...]
    groups: int | None  # None: no grouping
    limits: tuple[Limit, ...]
    # The end of the plan's reason: the statistics that share the price, and the limits.
    why: str
    last: LastPlan

    def keep(self, places: Sequence[int]) -> Draft:
        """Return the draft of the vectors at these positions alone.

        It plans the rest of a question whose other vectors are on record.
        """
        place = {kept: i for i, kept in enumerate(places)}
        cells = tuple([move_cell(c, place) for c in self.cells if c.part in place])
        statistics = tuple([self.statistics[i] for i in places])
        return self._replace(
            statistics=statistics,
            codes=tuple([self.codes[i] for i in places]),
            primitives=frozenset([p for s in statistics for p in s.primitives]),
            readings=tuple([self.readings[i] for i in places]),
            picks=tuple([self.picks[i] for i in places]),
            shares=tuple([self.shares[i] for i in places if self.shares]),
            moved=tuple([self.moved[i] for i in places]),
            cells=cells,
            written=_as_text(_write_cells(cells)),
            last=LastPlan(),
        )


# Drafts by the encoding of the outputs and the other public facts that they follow from. The
# encoding tells equal values of different types apart (1, True and 1.0).
_DRAFTS: dict[Any, Draft] = {}
_MOST_DRAFTS, _LONGEST = 256, 2000


def make_draft(query: Outputs, unit: Unit, public_rows: int | None) -> Draft:
    """Return the parts of a plan that follow from its question alone, whatever the price.

    ``public_rows`` is the number of rows if it is public. The draft of a short question is cached.
    """
    outputs, groups = query.outputs, groups_of(query.by) if query.by else None
    selects = AGGREGATES[outputs[0].aggregate].selects
    coded = b"" if selects or len(outputs) > LISTED else encode(outputs)
    key = coded, groups, unit.neighbors, not unit.people, unit.rows, unit.groups, public_rows
    kept = _DRAFTS.get(key)
    if kept is not None:
        return kept
    arranged = arrange(query, unit, public_rows)
    statistics = tuple([s for s, _ in arranged])
    readings = tuple([s.reading() for s in statistics])
    cells: dict[int, Cell] = {}
    for part, (statistic, serves) in enumerate(arranged):
        # The first output of a choice stands for all.
        for place, i in enumerate(serves[:1] if selects else serves):
            aggregate = AGGREGATES[outputs[i].aggregate]
            cell = aggregate.cell(outputs[i], part, place, statistic, readings[part])
            scaled = aggregate.scales and bool(unit.people)
            cells[i] = replace(cell, whole=False) if scaled and cell.whole else cell
    asked = sum([bool(serves) for _, serves in arranged])
    shares = _divide_price(arranged) if asked < len(arranged) else ()
    why = f"; the price is shared by {asked} statistics" if asked > 1 else ""
    limits: tuple[Limit, ...] = ()
    if unit.people:
        each = dict.fromkeys(
            s.limit(unit, groups is not None) or Limit() for s in statistics if not s.once
        )
        limits = tuple(each) or (Limit(),)
        why += "".join([f"; {limit}" for limit in limits])
    leading = [outputs[serves[0]] if serves else None for _, serves in arranged]
    picks = tuple([out.rounds if out and AGGREGATES[out.aggregate].picks else 0 for out in leading])
    in_order = tuple([cells[i] for i in sorted(cells)])
    if selects:
        reaches = [s.reach_of_person(unit, groups) for s in statistics]
        moved = tuple([Sensitivity(r, r * r) for r in reaches])
    else:
        moved = tuple([s.of_person(unit, groups) for s in statistics])
    primitives = frozenset([p for s in statistics for p in s.primitives])
    written = _as_text(_write_cells(in_order))
    codes = tuple([encode((s, n) if n else s) for s, n in zip(statistics, picks, strict=True)])
    made = Draft(
        statistics,
        codes,
        primitives,
        readings,
        picks,
        shares,
        in_order,
        written,
        moved,
        groups,
        limits,
        why,
        LastPlan(),
    )
    if 0 < len(coded) <= _LONGEST:
        if len(_DRAFTS) >= _MOST_DRAFTS:
            _DRAFTS.clear()
        _DRAFTS[key] = made
    return made


def note_reduced_epsilon(plan: Plan, price: Price) -> Plan:
    """Return the plan with a note in its reason, if the question gets less than it asked for.

    A question takes at most its part of the budget, so ``price`` may buy a smaller epsilon than the
    question asked for, or Gaussian noise that is larger.
    """
    stake, loss = price.stake, plan.loss
    if stake is None or (
        not stake.scaled if loss.epsilon is None else loss.epsilon >= stake.epsilon
    ):
        return plan
    part = f"the part {float(stake.part):.3g} of the budget"
    if loss.epsilon is None:
        return replace(plan, why=f"{plan.why}; noise for {part}")
    gone = (
        ""
        if stake.cost is None
        else "; after Gaussian noise there is no plain sum that could pay it whole"
    )
    note = (
        f"epsilon {float(loss.epsilon):.4g} of the {float(stake.epsilon):.4g} asked for, which "
        f"takes {part}{gone}"
    )
    return replace(plan, why=f"{plan.why}; {note}")


def describe_own_guarantee(plan: Plan) -> str:
    """Return the guarantee of a plan by itself and its limits, beside an answer."""
    delta = f" at delta {plan.delta:.3g}, by itself" if plan.delta else ""
    return f"epsilon {plan.epsilon:.4g}{delta}" + (f"; {plan.limits}" if plan.limits else "")


def draft_of(plan: Plan) -> Any:
    """Return what was prepared of the plan before its price, or None if it was read from a record."""
    return plan._draft
