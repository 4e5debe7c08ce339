"""The base of questions.

Questions are frozen values. They make plans from public facts, read data behind the door, and
declare the form of their answers. Measures, choices, searches for keys, reports of rows and models
all go the same way: a plan with a price, a debit, and only then the data
(docs/guarantees/session.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from dpframe._cells.encoding import SHOWN, encode, join_codes
from dpframe._expr import Expr
from dpframe._expr._within import keeps_one_row
from dpframe._groups.forms import NO_GROUPS, form_of_groups
from dpframe._groups.keys import By, Word, groups_of
from dpframe._groups.unit import Limit, Unit
from dpframe._plans.aggregates import AGGREGATES, LISTED, Cell, Measured, Output, move_cell
from dpframe._plans.durations import show_seconds
from dpframe._plans.order import enclose_by_other_levels
from dpframe._plans.plan import (
    Draft,
    Part,
    Plan,
    draft_of,
    get_noisy_sums,
    make_draft,
)
from dpframe._plans.price import buy_choice, buy_noise, buy_points
from dpframe._plans.sampling import NOISE, About
from dpframe._plans.worth import ORDINARY, NoiseRule, NoiseWarning, bound_rank_error
from dpframe._questions.identity import (
    Identity,
    identify_choice,
    identify_sums,
    rearrange,
    rearrange_choices,
    rearrange_parts,
)
from dpframe._statistics.engine import Engine, Scope
from dpframe._types import Array, Ends, Raw
from dpframe.accounting._filter import Price
from dpframe.mechanisms._base import Form

# How many rows there are, under the names that verbs give it: made once, and so encoded once.
ROWS, COUNT, SIZE = Output("rows", "size"), Output("count", "size"), Output("size", "size")


class Release(NamedTuple):
    """A plan and its noisy integers: nothing else ever leaves the door.

    ``rule`` is how the session judges noise. ``fresh`` is true if it was released just now. Then
    ``warning`` is that of the session about noise, unless it was given before.
    """

    plan: Plan
    raw: Raw
    rule: NoiseRule = ORDINARY
    fresh: bool = False
    warning: NoiseWarning | None = None

    def change(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return self._replace(**changes)


def read_numbers(plan: Plan, raw: Raw, place: int) -> Array:
    """Return the answers of one output of a release, one for each group. ``raw`` has the noisy
    integers, and ``place`` is the index of the output.

    They are int64, float64 or durations, by the plan alone.
    """
    cell = plan.cells[place]
    answers = AGGREGATES[cell.aggregate].value(
        Measured(cell, plan.parts[cell.part].noise, raw[cell.part])
    )
    if cell.duration:
        return show_seconds(answers, cell)
    return (
        answers
        if answers.dtype == object
        else answers.astype(np.int64 if cell.whole else np.float64)
    )


def enclose_output(plan: Plan, raw: Raw, place: int, level: float, about: About = NOISE) -> Ends:
    """Return the confidence interval of one output of a release, as the low and the high end of
    each group.

    ``place`` is the index of the output. ``about`` says whether noise alone is covered, or the
    sampling of a population too. If a threshold decided which groups are shown, each group has a
    confidence level of its own, by which its interval covers with probability ``level``.
    """
    cell = plan.cells[place]
    aggregate = AGGREGATES[cell.aggregate]
    if aggregate.picks:
        return show_ends(cell, *_enclose_chosen_quantile(plan, raw, cell, level, about))
    levels = find_shown_levels(plan, raw, level)
    if levels is None:
        ends = aggregate.population if about.population else aggregate.interval
        return show_ends(cell, *ends(get_noisy_sums(plan, raw, cell), level))
    low, high = np.empty(len(levels)), np.empty(len(levels))
    for one_level in np.unique(levels):
        in_level = levels == one_level
        integers = tuple(part[:, in_level] for part in raw)
        low[in_level], high[in_level] = aggregate.interval(
            get_noisy_sums(plan, integers, cell), float(one_level)
        )
        if aggregate.least_shown is not None:
            # Groups that a threshold shows have large noise. Upper ends need no correction.
            high[in_level] = aggregate.interval(get_noisy_sums(plan, integers, cell), level)[1]
    if cell.duration:
        return show_ends(cell, low, high)
    if aggregate.least_shown is None:
        return low, high
    return np.maximum(low, aggregate.least_shown), np.maximum(high, aggregate.least_shown)


def show_ends(cell: Cell, low: Array, high: Array) -> Ends:
    """Return the ends of intervals, with seconds as durations or times, rounded outwards."""
    if not cell.duration:
        return low, high
    return show_seconds(low, cell, "down"), show_seconds(high, cell, "up")


def _enclose_chosen_quantile(plan: Plan, raw: Raw, cell: Cell, level: float, about: About) -> Ends:
    """Return the confidence interval of a quantile that a noisy choice found: the low and the high
    end of each group.

    It is read off the counts around the choices. Where the number of values is known, other
    quantiles chosen in the same release bound it instead. All of them are bounded at once, each at
    its share of the risk. For a population, half of the risk goes to sampling.

    ``about`` has the levels of all quantiles in the release, which bound one another.
    """
    aggregate, m = AGGREGATES[cell.aggregate], get_noisy_sums(plan, raw, cell)
    ends = aggregate.population if about.population else aggregate.interval
    if len(about.levels) < 2 or about.n is None:
        return ends(m, level)
    choices = [(c.constants["place"], q) for c, q in zip(plan.cells, about.levels, strict=True)]
    risk = (1 - level) * (0.5 if about.population else 1.0)
    chosen = [q for _, q in sorted(set(choices))]
    ranks = bound_rank_error(plan, cell, 1 - risk / len(chosen))
    bounded = enclose_by_other_levels(m, chosen, ranks, level, about)
    return ends(m, level) if np.isnan(bounded[0]).all() else bounded


def find_shown_levels(plan: Plan, raw: Raw, level: float) -> NDArray[np.float64] | None:
    """Return, for each group that a threshold has shown, the confidence level to compute its
    interval with.

    The interval then covers with probability ``level``. Return None if there is no threshold.
    """
    for part, integers in zip(plan.parts, raw, strict=False):
        levels: NDArray[np.float64] | None = part.noise.levels(integers, level)
        if levels is not None:
            return levels
    return None


class AddNoise(Protocol):
    """The right to add noise, which the door gives to a question.

    It turns the exact integers of a part of the plan into an array that may leave. In a session the
    mechanism of the plan does so. An audit gives a function that records the integers.

    ``keys`` names the columns of integers about keys that nobody listed. ``width`` is the width of
    the grid for steps of one.
    """

    def __call__(
        self,
        part: int,
        integers: Array,
        *,
        keys: Sequence[object] | None = None,
        width: int | None = None,
    ) -> Array:
        """Return the integers of one part of the plan with its noise. ``part`` is the index of that
        part. ``keys`` are the groups' texts if keys are found, and ``width`` the grid's steps if
        values are randomized."""


class DraftSlot:
    """A slot for the last draft of a question, with the facts that it was made for.

    A label and a plan need the same draft. The slot is not a field, so it is not compared, copied
    or encoded.
    """

    __slots__ = ("drafted",)


@dataclass(frozen=True, slots=True)
class Question(DraftSlot, ABC):
    """A question. Its kinds are frozen dataclasses, so equal questions are free when asked again.

    ``finish`` makes the answer from the release alone. It is not a part of the question's identity.
    """

    finish: Callable[[Release], Any] | None = field(
        default=None, kw_only=True, compare=False, repr=False, metadata=SHOWN
    )

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The numbers asked of each group; none where the answer is of another kind."""
        return ()

    @property
    def where(self) -> Expr | None:
        """The condition on rows; None where all count."""
        return None

    @property
    def by(self) -> tuple[By, ...]:
        """The public groupings."""
        return ()

    @property
    def groups(self) -> int:
        """The number of public groups; 1 without a grouping."""
        return 1

    @property
    def shares_vectors(self) -> bool:
        """Whether its vectors can be bought apart."""
        return False

    @property
    def verb(self) -> str:
        """The verb that error messages name."""
        return "a question"

    @abstractmethod
    def __str__(self) -> str:
        """Return the question as a plan shows it."""

    def identify(self, unit: Unit, public_rows: int | None) -> Identity:
        """Return what identifies the release: here the question itself, and the number of rows
        where it is public."""
        return Identity(join_codes(b"question", encode(self), encode(unit), encode(public_rows)))

    def present(
        self,
        release: Release,
        recorded: Identity,
        own: Identity,
        unit: Unit,
        public_rows: int | None,
    ) -> Release:
        """Return the recorded release of an equal question as this question would have made it.
        Subclasses change names and order; this one changes nothing."""
        return release

    def put_in_shared_order(self, release: Release, own: Identity) -> Release:
        """Return a release of this question in the order that all questions of its identity
        share."""
        return release

    @abstractmethod
    def plan(
        self, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]
    ) -> Plan:
        """Return the plan of the question: its noise, its privacy loss and the expected error.
        ``public_rows`` is the number of rows, or None if it is private. ``declared`` has what the
        analyst stated about the data.

        All of them are known before the data is read.
        """

    @abstractmethod
    def forms(self, plan: Plan, unit: Unit, size: int | None) -> tuple[Form, ...]:
        """Return the shapes and types of the arrays that `run` returns, from public facts alone.
        The release is checked against them.

        ``size`` is the number of people, if it is public.
        """

    @abstractmethod
    def run(self, data: Engine, plan: Plan, unit: Unit, noise: AddNoise) -> tuple[Array, ...]:
        """Return the noisy arrays of whole numbers or text that are released.

        They come from ``data``, an engine, through ``noise`` alone. Only the door calls it.
        """

    def answer(self, release: Release) -> Any:
        """Return the answer of the verb."""
        return release if self.finish is None else self.finish(release)


@dataclass(frozen=True, slots=True)
class Query(Question):
    """A question that sums of integers answer: some outputs, of the rows where a condition holds,
    in groups."""

    identity: ClassVar[tuple[str, ...]] = ("query", "outputs", "where", "by", "vectors")

    outputs: tuple[Output, ...] = (
        field()
    )  # a field, because the property of the base would else be its default
    where: Expr | None = None
    by: tuple[By, ...] = ()
    # The places of the vectors that are released. The others are on record. None: all vectors.
    vectors: tuple[int, ...] | None = None

    @property
    def groups(self) -> int:
        """The number of groups; 1 without a grouping."""
        return groups_of(self.by)

    @property
    def verb(self) -> str:
        """The verb that error messages name."""
        return ", ".join(dict.fromkeys(out.aggregate for out in self.outputs))

    def __str__(self) -> str:
        """Return the question in words, as a plan shows it: the outputs, the groups and the
        condition."""
        first = self.outputs[0] if self.outputs else None
        if first is not None and first.said:
            text = f"choose 1 of {len(self.outputs)} by {first.said[:300]}"
            if first.bounds is not None:
                text += f", bounds=({first.bounds.lower:g}, {first.bounds.upper:g})"
        else:
            texts = list(map(str, self.outputs[:LISTED]))
            # Several places of one choice have the same text.
            if first is not None and first.keys is not None:
                texts = list(dict.fromkeys(texts))
            text = ", ".join(texts) + (", ..." if len(self.outputs) > LISTED else "")
        if self.by:
            text += f" by {', '.join(map(str, self.by))}"
        return text + (f" where {self.where}" if self.where is not None else "")

    def identify(self, unit: Unit, public_rows: int | None) -> Identity:
        """Return the identity of the integers to release, by which a repeated question is found in
        the ledger."""
        prepared = self._prepare(unit, public_rows)
        groups = form_of_groups(self.by) if self.by else NO_GROUPS
        first = self.outputs[0]
        if not AGGREGATES[first.aggregate].selects:
            return identify_sums(prepared, self.where, groups, unit, public_rows)
        return identify_choice(
            (first.aggregate, first.rounds), prepared, self.where, groups, unit, public_rows
        )

    def present(
        self,
        release: Release,
        recorded: Identity,
        own: Identity,
        unit: Unit,
        public_rows: int | None,
    ) -> Release:
        """Return the recorded release of an equal question with the names, outputs and groups of
        this one."""
        prepared = self._prepare(unit, public_rows)
        parts = [
            replace(part, statistic=reading.description, step=reading.step)
            for part, reading in zip(
                rearrange_parts(release.plan.parts, recorded, own), prepared.readings, strict=True
            )
        ]
        plan = replace(
            release.plan,
            question=str(self),
            parts=tuple(parts),
            cells=prepared.cells,
            caps=prepared.limits and mark_met_limits(prepared.limits, self.where),
            _draft=prepared,
        )
        return release.change(plan=plan, raw=self._rearrange(release, recorded, own))

    @property
    def shares_vectors(self) -> bool:
        """Flag that some vectors of the question can be bought without the others. It is False
        where an output is chosen, not measured."""
        if self.vectors is not None:
            return False
        for out in self.outputs:
            kind = AGGREGATES[out.aggregate]
            if kind.selects or kind.picks:
                return False
        return True

    def _new_outputs(self, unit: Unit, public_rows: int | None) -> Query:
        """Return the question restricted to the outputs whose vectors are still to be released."""
        cells = make_draft(self, unit, public_rows).cells
        pairs = zip(self.outputs, cells, strict=True)
        new = [out for out, cell in pairs if cell.part in (self.vectors or ())]
        return replace(self, outputs=tuple(new), vectors=None)

    def _prepare(self, unit: Unit, public_rows: int | None) -> Draft:
        """Return the draft of the question: its statistics, sensitivities and outputs, for the
        vectors to release. It is kept, since planning and identifying both need it."""
        known = getattr(self, "drafted", None)
        if known is not None and known[0] is unit and known[1] == public_rows:
            return cast(Draft, known[2])
        prepared = make_draft(self, unit, public_rows)
        if self.vectors is not None:
            prepared = prepared.keep(self.vectors)
        object.__setattr__(self, "drafted", (unit, public_rows, prepared))
        return prepared

    def put_in_shared_order(self, release: Release, own: Identity) -> Release:
        """Return a release of this question with its vectors and its groups in the shared order."""
        shared = own.shared_identity
        plan = put_plan_in_shared_order(release.plan, own)
        return release.change(plan=plan, raw=self._rearrange(release, own, shared))

    def _rearrange(self, release: Release, recorded: Identity, wanted: Identity) -> Raw:
        """Return the integers of a recorded release in the order of vectors and groups that
        ``wanted`` has."""
        if not AGGREGATES[self.outputs[0].aggregate].selects:
            return rearrange(release.raw, recorded, wanted)
        if not _chooses_groups(self.outputs[0]):
            return release.raw
        return (rearrange_choices(release.raw[0], recorded, wanted), *release.raw[1:])

    def plan(
        self, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]
    ) -> Plan:
        """Return the plan of these outputs: which noise or choice the price buys for each vector.

        No data is read. The parameters are those of `Question.plan`. One of three things is bought:
        a choice of one candidate (`buy_choice`), choices of grid points such as quantiles
        (`buy_points`), or noise on sums (`buy_noise`).
        """
        prepared = self._prepare(unit, public_rows)
        text = str(self if self.vectors is None else self._new_outputs(unit, public_rows))
        words = tuple([str(word) for word in declared])
        caps = prepared.limits and mark_met_limits(prepared.limits, self.where)
        first, stake = AGGREGATES[self.outputs[0].aggregate], price.stake
        picks = first.selects or any(prepared.picks)
        # A choice may get more epsilon, by what is left. Noise depends on the rest of the price.
        paid = price if picks else (price[:-1], stake is not None and stake.gaussian_waits)
        facts, last = (text, words, caps, paid), prepared.last.made
        if last is not None and last[0] == facts:
            return last[1]
        candidates = 1 if prepared.groups is None else prepared.groups
        if first.selects:
            candidates = len(self.outputs) if prepared.groups is None else prepared.groups
            bought = buy_choice(
                first, prepared.moved[0].l1, candidates, self.outputs[0].rounds, price
            )
        elif any(prepared.picks):
            bought = buy_points(prepared.moved, prepared.picks, prepared.shares, price)
        else:
            bought = buy_noise(prepared.moved, price)
        pairs = zip(prepared.readings, bought.noises, prepared.moved, strict=True)
        parts = [
            Part(reading.description, noise, l1, l2_squared, reading.step)
            for reading, noise, (l1, l2_squared) in pairs
        ]
        plan = Plan(
            text,
            unit.neighbors,
            bought.loss,
            bought.stated_at,
            tuple(parts),
            prepared.cells,
            candidates,
            bought.why + prepared.why,
            words,
            caps=caps,
            _draft=prepared,
        )
        prepared.last.made = facts, plan
        return plan

    def forms(self, plan: Plan, unit: Unit, size: int | None) -> tuple[Form, ...]:
        pairs = zip(plan.parts, draft_of(plan).statistics, strict=True)
        return tuple([part.noise.form(statistic.shape(plan.groups)) for part, statistic in pairs])

    def run(self, data: Engine, plan: Plan, unit: Unit, noise: AddNoise) -> tuple[Array, ...]:
        reduced = data.reduce(Scope(self.where, self.by), set(draft_of(plan).primitives), unit)
        released: list[Array] = []
        for i, statistic in enumerate(draft_of(plan).statistics):
            # Only a vector that follows another one reads what was released.
            if not statistic.follows:
                released.append(noise(i, statistic.integers(reduced)))
                continue
            released.append(noise(i, statistic.integers_after(reduced, released)))
        return tuple(released)


def _chooses_groups(out: Output) -> bool:
    """Return whether a selection is one of groups, by their numbers of rows."""
    return AGGREGATES[out.aggregate].selects and AGGREGATES[out.aggregate].of_rows


def put_plan_in_shared_order(plan: Plan, own: Identity) -> Plan:
    """Return a plan with its vectors in the order that all equal questions share."""
    order = own.order
    if order == sorted(order):
        return plan
    place = {source: i for i, source in enumerate(order)}
    cells = tuple([move_cell(cell, place) for cell in plan.cells])
    return replace(plan, parts=tuple([plan.parts[i] for i in order]), cells=cells)


def mark_met_limits(limits: tuple[Limit, ...], where: Expr | None) -> tuple[Limit, ...]:
    """Return the limits, marked where the condition proves that nobody has more rows."""
    if not keeps_one_row(where):
        return limits
    return tuple([limit.change(met=limit.rows == 1) for limit in limits])
