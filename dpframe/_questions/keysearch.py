"""Questions for keys that nobody listed: those that enough people share.

They are asked alone, or with aggregates of their groups (docs/guarantees/keys.md).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpframe._cells.encoding import SHOWN, encode, join_codes
from dpframe._errors import BadValue, BudgetError
from dpframe._expr import Expr
from dpframe._groups.combinations import Sought
from dpframe._groups.keys import Word
from dpframe._groups.unit import LIMIT, Limit, Unit
from dpframe._plans.aggregates import AGGREGATES, Cell, Output
from dpframe._plans.plan import Part, Plan, arrange
from dpframe._plans.price import buy_noise
from dpframe._questions.conditions import code_of_condition
from dpframe._questions.identity import Identity, rearrange_parts
from dpframe._questions.question import (
    SIZE,
    AddNoise,
    Query,
    Question,
    Release,
    mark_met_limits,
    put_plan_in_shared_order,
)
from dpframe._statistics.base import (
    Integers,
    Persons,
    Primitive,
    Reading,
    Reduced,
    Rows,
    Sensitivity,
    Statistic,
)
from dpframe._statistics.counts import PersonCount
from dpframe._statistics.engine import Engine
from dpframe._types import Array
from dpframe.accounting._filter import Price
from dpframe.mechanisms._base import AUTO, MECHANISMS, Form, Offer
from dpframe.mechanisms.threshold import (
    THRESHOLDS,
    Threshold,
    check_finds_keys,
    choose_threshold,
)

_NO_DELTA = (
    "finding keys that nobody listed takes some delta, and this session has no delta left: "
    "list keys=[...], or open it with "
    "delta > 0."
)


def keys_as_text(texts: Sequence[tuple[str, ...]]) -> Array:
    """Return the found keys as an array of text: plain text for one column, and JSON for several.
    Objects hold the texts, so that none is cut to a fixed width."""
    keys = np.empty(len(texts), dtype=object)
    one = {*map(len, texts)} == {1}
    keys[:] = [value for (value,) in texts] if one else [json.dumps(values) for values in texts]
    return keys


class Seeking(Question):
    """A question that finds keys.

    ``failure`` is the chance that it shows a key which one person alone has. ``alone`` is the same
    if the noise is not Gaussian, so that the plain sum of epsilons may pay. Both may depend on what
    is spent so far, so they do not identify the question. ``stated`` does: it is the failure in
    words or in numbers.
    """

    __slots__ = ()

    failure: Fraction
    gaussian: bool
    alone: Fraction | None
    stated: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "stated", self.stated or str(self.failure))

    @property
    def pure_failure(self) -> Fraction:
        return self.failure if self.alone is None else self.alone

    def _drop_gaussian(self, price: Price) -> Price:
        """Return the price without its Gaussian part, unless the session can pay for such noise."""
        return price if self.gaussian and self.failure else price.change(mu_squared=None, rho=None)

    def _add_failure(self, offer: Offer) -> Offer:
        """Return the offer with the chance to show a key that one person alone has."""
        failure = self.failure if offer.loss.epsilon is None else self.pure_failure
        return offer.change(loss=offer.loss.failing(failure), stated_at=offer.stated_at + failure)


@dataclass(frozen=True, slots=True)
class KeySearch(Seeking):
    """The question which combinations of values enough people have.

    ``gaussian`` is true if the session's rule counts Gaussian noise itself, and not as (epsilon,
    delta) pairs.
    """

    identity: ClassVar[tuple[str, ...]] = ("found_keys", "exprs", "gaussian", "where", "stated")

    exprs: tuple[Expr, ...]
    failure: Fraction = field(metadata=SHOWN)
    gaussian: bool
    where: Expr | None = None
    stated: str = ""
    alone: Fraction | None = field(default=None, metadata=SHOWN)

    verb: ClassVar[str] = "unique"

    def identify(self, unit: Unit, public_rows: int | None) -> Identity:
        """Return the identity of the search, which is one of its columns and rows."""
        search = encode((self.exprs, self.stated, self.gaussian))
        return Identity(join_codes(b"keys", search, code_of_condition(self.where), encode(unit)))

    def __str__(self) -> str:
        text = f"keys of {', '.join(map(str, self.exprs))}"
        return text if self.where is None else f"{text} where {self.where}"

    def plan(
        self, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]
    ) -> Plan:
        """Return the plan of the search for keys, with the mechanism of the lowest threshold.

        A lower threshold finds keys that fewer people have. ``price`` may buy several mechanisms.
        ``declared`` are the facts that the user stated, for the ledger. ``public_rows`` is not
        used: a search costs the same at any number of rows.
        """
        kind = MECHANISMS.get(price.mechanism)
        if kind is not None and kind.chooses:
            raise BadValue(
                f'mechanism="{price.mechanism}" makes choices: keys are found by thresholds, so '
                "leave it out."
            )
        if kind is not None:
            check_finds_keys(kind)
        keys = unit.with_limits(1, None).reach(LIMIT)[1]
        sensitivity = PersonCount().of_person(unit, LIMIT)
        options = self._options(keys, sensitivity, price)
        if not options:
            raise BudgetError(
                "this price buys no key selection: give epsilon=, and open the session with delta "
                "> 0."
            )
        # A key of ``half`` people is found with probability one half.
        noise, offer = min(options, key=lambda option: option[0].half)
        unused = [threshold for threshold, _ in options if threshold is not noise]
        why = _describe_failure(offer.loss.failure)
        if unused:
            why += f"; {unused[0].name} would need {unused[0].half:.4g} people"
        part = Part("people of each key", noise, sensitivity.l1, sensitivity.l2_squared, 1.0)
        expected = f"a key that {noise.half:.4g} people have is as likely as not to be found"
        limited = (Limit(keys=keys),) if unit.people else ()
        return Plan(
            question=str(self),
            neighbors=unit.neighbors,
            loss=offer.loss,
            stated_at=offer.stated_at,
            parts=(part,),
            cells=(),
            groups=1,
            why=why + "".join([f"; {limit}" for limit in limited]),
            declared=tuple(map(str, declared)),
            told=expected,
            caps=limited,
        )

    def _options(
        self, keys: int, sensitivity: Sensitivity, price: Price
    ) -> list[tuple[Threshold, Offer]]:
        """Return each threshold mechanism that the price buys, with the offer for its noise.

        An offer holds the noise and its privacy loss. ``keys`` is the number of keys that one
        person may have, and ``sensitivity`` that of the counts of people for all keys.
        """
        options = []
        for kind in THRESHOLDS:
            if price.mechanism in (AUTO, kind.name):
                bought = kind.offer(
                    [(sensitivity.l1, sensitivity.l2_squared)], self._drop_gaussian(price)
                )
                if bought is not None:
                    offer = self._add_failure(bought)
                    noise = offer.noises[0]
                    options.append(
                        (
                            choose_threshold(
                                noise, sensitivity.l1, 1, (1,), keys, offer.loss.failure
                            ),
                            offer,
                        )
                    )
        return options

    def forms(self, plan: Plan, unit: Unit, size: int | None) -> tuple[Form, ...]:
        return (Form((None,), "U"),)  # the number of keys is part of the answer

    def run(self, data: Engine, plan: Plan, unit: Unit, noise: AddNoise) -> tuple[Array, ...]:
        texts, sums = data.occurring(self.exprs, self.where, unit)
        threshold: Any = plan.parts[0].noise
        passes = threshold.shows(noise(0, sums[Persons()][None, :], keys=texts))
        return (keys_as_text([texts[i] for i in np.flatnonzero(passes).tolist()]),)


@dataclass(frozen=True, slots=True)
class Roomy(Statistic):
    """Sums over rows, and beside them the room below a contribution limit of R rows in a group.

    A person who is in a group adds non-negative numbers to it that sum to R times the mass of a
    row, whatever they are. So the room costs nothing, and the sum of all components tells how many
    people there are.
    """

    identity: ClassVar[tuple[str, ...]] = ("room", "rows", "max_rows")

    rows: Statistic
    max_rows: int

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        return (*self.rows.primitives, Rows(), Persons())

    def integers(self, reduced: Reduced) -> Integers:
        """Return the sums over rows with one more component: the rows by which people stay below
        their limit.

        All components of one row sum to its ``mass``. With this one, those of a person sum to
        ``max_rows`` times that, however many rows the person has.
        """
        mass, people, rows = find_row_mass(self.rows), reduced[Persons()], reduced[Rows()]
        if self.needs_python_ints:
            people, rows = people.astype(object), rows.astype(object)
        return np.concatenate(
            [self.rows.integers(reduced), (mass * (self.max_rows * people - rows))[None, :]]
        )

    def shape(self, groups: int) -> tuple[int, ...]:
        return self.rows.shape(groups)[0] + 1, groups

    @property
    def needs_python_ints(self) -> bool:
        """Whether the room, times the people there may be, can be beyond 63 bits."""
        return find_row_mass(self.rows) * self.max_rows >= 2**31

    def sensitivity(self, unit: Unit, grouped: bool) -> Sensitivity:
        return self.rows.sensitivity(unit, grouped)

    def reading(self) -> Reading:
        """Return how the integers become sums in data units; the added component has weight 0."""
        rows = self.rows.reading()
        padded = {name: (*weights, 0.0) for name, weights in rows.functionals.items()}
        return replace(
            rows, description=f"{rows.description}, and the room for more rows", functionals=padded
        )


def find_row_mass(statistic: Statistic) -> int:
    """Return the sum of all components of one row."""
    return statistic.sensitivity(Unit(), True).l1


@dataclass(frozen=True, slots=True)
class Finding(Seeking):
    """The question for aggregates of groups that enough people share.

    One release shows the groups and answers for them. The groups are all combinations of values of
    ``exprs``. A group is shown if its noisy number of rows, or of people, passes a threshold.
    ``gaussian`` is true if the session's rule counts Gaussian noise itself, and not as (epsilon,
    delta) pairs. Only then Gaussian noise may be bought.
    """

    identity: ClassVar[tuple[str, ...]] = (
        "found_groups",
        "exprs",
        "asked",
        "gaussian",
        "where",
        "stated",
    )

    exprs: tuple[Expr, ...]
    asked: tuple[Output, ...]
    failure: Fraction = field(metadata=SHOWN)
    gaussian: bool
    where: Expr | None = None
    stated: str = ""
    alone: Fraction | None = field(default=None, metadata=SHOWN)

    def identify(self, unit: Unit, public_rows: int | None) -> Identity:
        """Return the identity of the key search with its aggregates, by which a repeated question
        is found."""
        arranged, place = self._arrange(unit)
        vectors = tuple([encode(statistic) for statistic, _ in arranged])
        search = encode((self.exprs, self.stated, self.gaussian, vectors[place]))
        rows = join_codes(search, code_of_condition(self.where), encode(unit))
        return Identity(join_codes(b"groups", rows, *sorted(vectors)), rows, vectors)

    def present(
        self,
        release: Release,
        recorded: Identity,
        own: Identity,
        unit: Unit,
        public_rows: int | None,
    ) -> Release:
        """Return the recorded release of an equal question, with the names and the order of outputs
        of this one."""
        arranged, _ = self._arrange(unit)
        plan = replace(
            release.plan,
            question=str(self),
            parts=tuple(rearrange_parts(release.plan.parts, recorded, own)),
            cells=self._cells(arranged),
        )
        keys, *vectors = release.raw
        return release.change(plan=plan, raw=(keys, *rearrange_parts(vectors, recorded, own)))

    def put_in_shared_order(self, release: Release, own: Identity) -> Release:
        """Return a release of this question with its vectors in the shared order."""
        keys, *vectors = release.raw
        raw = keys, *rearrange_parts(vectors, own, own.shared_identity)
        return release.change(plan=put_plan_in_shared_order(release.plan, own), raw=raw)

    def __str__(self) -> str:
        return str(self._query(self.asked))

    def _query(self, outputs: tuple[Output, ...]) -> Query:
        """Return a query for these outputs of groups that are not known yet."""
        by: Any = tuple(Sought(e, None) for e in self.exprs)
        return Query(outputs, self.where, by)

    def _arrange(self, unit: Unit) -> tuple[list[tuple[Statistic, list[int]]], int]:
        """Return the statistics to release, and the index of the one that keys are found by.

        Each statistic comes with the indices of the outputs that are computed from it. Keys are
        found by a number of rows if one is asked, else by a number of people. If neither is asked,
        a number of rows is added. Where a person may have several rows in a group, that statistic
        also counts the rows by which people stay below their limit (`Roomy`). So all people in a
        group add the same to the sum of its components, and the threshold counts people.
        """
        kinds = [AGGREGATES[out.aggregate] for out in self.asked]
        rows = [i for i, kind in enumerate(kinds) if kind.counts_rows]
        outs, counted = self.asked, rows[0] if rows else 0
        if not rows and not all(kind.counts_people for kind in kinds):
            outs, counted = (*outs, SIZE), len(outs)  # keys are found by the number of rows
        arranged = arrange(self._query(outs), unit, None)
        place = next(i for i, (_, serves) in enumerate(arranged) if counted in serves)
        most = (
            unit.with_limits(1, None).reach(LIMIT)[0] if unit.rows is None else unit.reach(LIMIT)[0]
        )
        statistic, serves = arranged[place]
        if most > 1 and not isinstance(statistic, PersonCount):
            arranged[place] = Roomy(statistic, most), serves
        return arranged, place

    def plan(
        self, unit: Unit, price: Price, public_rows: int | None, declared: tuple[Word, ...]
    ) -> Plan:
        """Return the plan of aggregates in groups that are found by the same release.

        The counting statistic gets a threshold that a group must pass to be shown. The parameters
        are those of `KeySearch.plan`.
        """
        if not self.pure_failure:
            raise BudgetError(_NO_DELTA)
        arranged, place = self._arrange(unit)
        statistics = [s for s, _ in arranged]
        sensitivities = [s.of_person(unit, LIMIT) for s in statistics]
        offer = self._add_failure(buy_noise(sensitivities, self._drop_gaussian(price)))
        noises, why = list(offer.noises), offer.why
        noises[place] = self._threshold(
            statistics[place], noises[place], sensitivities[place], unit, offer.loss.failure
        )
        readings = [s.reading() for s in statistics]
        parts = tuple(
            Part(reading.description, noise, *moved, reading.step)
            for reading, noise, moved in zip(readings, noises, sensitivities, strict=True)
        )
        if len(statistics) > 1:
            why += f"; the price is shared by {len(statistics)} statistics"
        limits = dict.fromkeys(s.limit(unit, True) for s in statistics if not s.once)
        limited = mark_met_limits(
            tuple([limit for limit in limits if limit is not None]), self.where
        )
        return Plan(
            question=str(self),
            neighbors=unit.neighbors,
            loss=offer.loss,
            stated_at=offer.stated_at,
            parts=parts,
            cells=self._cells(arranged),
            groups=1,
            why=(
                f"{why}; {_describe_failure(offer.loss.failure)}; "
                f"{_describe_threshold(statistics[place], noises[place])}"
            )
            + "".join([f"; {limit}" for limit in limited]),
            declared=tuple(map(str, declared)),
            caps=limited,
        )

    def _threshold(
        self,
        statistic: Statistic,
        noise: Any,
        sensitivity: Sensitivity,
        unit: Unit,
        failure: Fraction,
    ) -> Threshold:
        """Return the noise of the counting statistic with the least threshold that is safe.

        A key of one person alone is shown with probability ``failure`` at most. ``noise`` is the
        noise without a threshold, and ``sensitivity`` that of the statistic.
        """
        most, keys = unit.with_limits(unit.rows or 1, None).reach(LIMIT)
        weights = statistic.reading().functionals
        counts = {int(np.count_nonzero(weights[name])) for name in ("n", "size") if name in weights}
        if isinstance(statistic, Roomy):
            counts.add(len(next(iter(weights.values()))))
        per_key = (
            1 if isinstance(statistic, PersonCount) else most * find_row_mass(_bare(statistic))
        )
        components = sorted(counts)
        return choose_threshold(noise, sensitivity.l1, per_key, components, keys, failure)

    def _cells(self, arranged: Sequence[tuple[Statistic, list[int]]]) -> tuple[Cell, ...]:
        """Return how each output that the user asked for is computed from the noisy integers."""
        cells: dict[int, Cell] = {}
        for part, (statistic, serves) in enumerate(arranged):
            bare, room = _bare(statistic), 1 if isinstance(statistic, Roomy) else 0
            reading = bare.reading()
            for place, i in enumerate(i for i in serves if i < len(self.asked)):
                cell = AGGREGATES[self.asked[i].aggregate].cell(
                    self.asked[i], part, place, bare, reading
                )
                maps = {
                    name: (*weights, *[0.0] * room) for name, weights in cell.functionals.items()
                }
                cells[i] = replace(cell, functionals=maps)
        return tuple(cells[i] for i in range(len(self.asked)))

    def forms(self, plan: Plan, unit: Unit, size: int | None) -> tuple[Form, ...]:
        """Return the shapes and types of the released arrays: the keys, and the integers of each
        statistic. The number of keys is an answer itself, so it is None here."""
        arranged, _ = self._arrange(unit)
        forms = [Form((None,), "U")]  # the number of keys is a part of the answer
        for part, (statistic, _) in zip(plan.parts, arranged, strict=True):
            form = part.noise.form((statistic.shape(1)[0], None))
            wide = isinstance(statistic, Roomy) and statistic.needs_python_ints
            forms.append(form.change(kind="O") if wide else form)
        return tuple(forms)

    def run(self, data: Engine, plan: Plan, unit: Unit, noise: AddNoise) -> tuple[Array, ...]:
        """Return the group keys that pass the threshold, as text, with the noisy integers of each
        statistic for these groups."""
        arranged, place = self._arrange(unit)
        primitives = {p for s, _ in arranged for p in s.primitives}
        texts, reduced = data.occurring(self.exprs, self.where, unit, primitives)
        noisy = [noise(i, s.integers(reduced), keys=texts) for i, (s, _) in enumerate(arranged)]
        threshold: Any = plan.parts[place].noise
        shown = np.flatnonzero(threshold.shows(noisy[place]))
        return (
            keys_as_text([texts[i] for i in shown.tolist()]),
            *(columns[:, shown] for columns in noisy),
        )


def _bare(statistic: Statistic) -> Statistic:
    return statistic.rows if isinstance(statistic, Roomy) else statistic


def _describe_failure(failure: Fraction) -> str:
    """Return a text with the chance that a key which one person alone has is shown."""
    return f"a key that one person alone has shows with probability {float(failure):.3g} at most"


def _describe_threshold(statistic: Statistic, noise: Any) -> str:
    """Return a text for the plan that says how many rows or people a key needs to be found."""
    per_row = 1 if isinstance(statistic, PersonCount) else find_row_mass(_bare(statistic))
    counted = "people" if isinstance(statistic, PersonCount) else "rows"
    text = f"a key that {noise.half / per_row:.4g} {counted} have is as likely as not to be found"
    if isinstance(statistic, Roomy):
        text += (
            f", and so is one of {noise.bars[-1].least / (per_row * statistic.max_rows):.4g} people"
        )
    return text


def can_answer_at_once(outputs: Sequence[Output]) -> bool:
    """Return whether one release can both find the groups and answer these outputs."""
    return bool(outputs) and all(AGGREGATES[out.aggregate].found_at_once for out in outputs)
