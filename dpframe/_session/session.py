"""Sessions: one frame, one budget, and the order of every question: debit, then read."""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self
from uuid import uuid4

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.encoding import digest, encode
from dpframe._errors import SWITCH, BadType, BadValue, SessionError, caution, debugging
from dpframe._expr import Expr, seconds_between, zone_of
from dpframe._groups.calendar import count_periods, describe_groups_left_out
from dpframe._groups.combinations import Tuples
from dpframe._groups.keys import By, Keys, Word
from dpframe._groups.periods import Span, ends_of
from dpframe._groups.premises import Premises
from dpframe._groups.selected import FoundGroups, FoundKeys
from dpframe._groups.unit import Unit, limits_for
from dpframe._ledger.accountant import (
    Accountant,
    Label,
    LabelKey,
    Names,
    can_be_opened_again,
    find_answer,
)
from dpframe._plans.aggregates import AGGREGATES
from dpframe._plans.budget import Budget
from dpframe._plans.clips import NarrowBounds, find_clips
from dpframe._plans.plan import Plan, note_reduced_epsilon
from dpframe._plans.price import Payment, find_price, format_price_as_typed
from dpframe._plans.worth import NoiseWarning, says_nothing
from dpframe._questions.identity import Identity
from dpframe._questions.question import ROWS, Query, Question, Release
from dpframe._session.data import Data, closed, sessions
from dpframe._session.door import VerbList, read_private
from dpframe._session.recognition import remember_before_closing
from dpframe._session.records import (
    Record,
    RecordedVector,
    add_vectors,
    assemble,
    assemble_plan,
    find_vectors,
    reduce_question,
)
from dpframe._session.terms import Terms
from dpframe._statistics.engine import Engine
from dpframe._types import Array, Raw
from dpframe.accounting._filter import Charge, Price
from dpframe.engines.rows import people_labels
from dpframe.mechanisms import _sampling
from dpframe.mechanisms._base import check

if TYPE_CHECKING:
    from dpframe._expr import Column

DEBUGGED = (
    "debug",
    "errors show their cause, which may quote cells",
    SWITCH,
)  # what the ledger keeps of it


MOST_SHARES = (
    1000  # to a budget, when answers are looked up that were paid by shares of other sizes
)


MOST_GIVEN = 1000  # answers that a report shows by itself, the last ones


class PricedQuestion(NamedTuple):
    """Question with its price, the declarations it relies on, and the name of its answer."""

    question: Question
    price: Price
    words: tuple[Word, ...]
    unit: Unit
    typed: tuple[Any, ...] = ()  # the words of its price
    name: str | None = None
    fresh: bool = False
    # Returns the price of the question at another epsilon, to say which one fits.
    price_at: Callable[[Fraction], Price] | None = None

    @property
    def paid(self) -> str:
        """The words of its price as text."""
        return "|".join(map(str, self.typed))

    def change(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return self._replace(**changes)


class SplitQuestion(NamedTuple):
    """A question with some of its vectors on record.

    ``known`` has these vectors by their places. ``remaining`` is what is left to ask, or None.
    """

    plan: Plan
    known: dict[int, RecordedVector]
    remaining: PricedQuestion | None


class Session:
    """A frame as it stood when it was opened, its terms, and its ledger."""

    data: Data
    accountant: Accountant
    leaves: dict[Hashable, Column]
    rows: int
    name: str
    terms: Terms
    unit: Unit
    public_rows: int | None

    def __init__(self, data: Data, terms: Terms, accountant: Accountant):
        """Start a session on opened or derived rows.

        Derived rows share the recorded answers, the lock and the name of the session that was
        opened.
        """
        self.data, self.accountant = data, accountant
        self.leaves, self.rows = data.leaves, data.rows
        self.index_names: list[Hashable] = list(data.index.names)
        # Of the frame that was opened, which has the budget and the door; of derived rows another
        # one.
        self.base: Session = self if data.origin is None else data.origin.base
        self.lock = threading.RLock()
        self.answers: dict[LabelKey, tuple[bytes, Record]] = {}
        self.answer_names: Names = {}
        self.vectors: dict[Any, tuple[Record, int]] = {}
        self.given: deque[object] = deque(maxlen=MOST_GIVEN)  # what verbs returned, for a report
        self.drawn_row_names: NDArray[np.int64] | None = (
            None  # of the opened frame, once they are drawn
        )
        self.asking = threading.Lock()
        self._together = accountant.batches  # it guards only what is declared together
        self.closed = False
        self.noise_warning = NoiseWarning()
        self.planning_threads: list[int] = []  # those in a plan_ahead() block of it
        self.process = os.getpid()
        # By what `open` recognises the table again: its form, and a sketch once rows are compared.
        self.form: tuple[int, tuple[Hashable, ...]] | None = None
        self.sketch: list[str] | None = None
        # Bounds and keys that were released: nobody's word.
        self.released_bounds: set[tuple[Expr, tuple[float, float]]] = set()
        self.keys_by_question: dict[bytes, Keys | Tuples] = {}
        # Groupings with limits of groups, so that each is warned of once.
        self.looked_at: set[tuple[Any, ...]] = set()
        self.found_keys: FoundKeys = FoundKeys()
        # Of questions that find keys, so that a repeat has the same plan.
        self.failures: dict[Any, tuple[Fraction, Fraction]] = {}
        self.derived: weakref.WeakSet[Session] = weakref.WeakSet()
        # What ``attrs`` will say: a plain string, which tells another kernel which ledger to open.
        self.name = uuid4().hex
        if accountant.place is not None:
            place = {
                "session": self.name,
                "ledger": accountant.place,
                "population": accountant.population,
            }
            self.name = json.dumps(place)
        if data.origin is not None:
            # Labels say whose answers they are, so that the same steps taken again find them.
            base = self.base
            self.name, self.lock, self.asking = base.name, base.lock, base.asking
            self.answers, self.answer_names, self.vectors = (
                base.answers,
                base.answer_names,
                base.vectors,
            )
            base.derived.add(self)
        self.restate(terms)

    @property
    def snapshot(self) -> pd.DataFrame:
        return self.data.snapshot

    @property
    def _engine(self) -> Engine:
        return self.data.engine(self.base.noise_key)

    def noise_key(self) -> bytes:
        """Draw the key of the hash that decides whose groups count. Each frame has its own."""
        return _sampling.random_bytes(8)

    def restate(self, terms: Terms) -> None:
        """Replace the declarations of the session, such as bounds, keys, limits and ``queries=``.

        Data and budget stay as they are. What follows from the declarations is computed again.
        """
        with self.lock:
            self.terms, self.unit = terms, terms.unit
            # What is proven of these rows, before steps choose or sort some.
            self.premises: Premises = self.data.premises(bool(terms.unit.people))
            if terms.shares_said:
                self.accountant.queries = terms.queries
            # The number of rows where it is public: under replace-one, of the whole root only, a
            # row a person.
            known = self.unit.replaces and self.premises.whole and not self.unit.people
            self.public_rows = self.rows if known else None
            # Whether it is public how many values there can be.
            self.counted: bool = known or terms.people is not None
            self.bounds: dict[int, tuple[float, float]] = dict(terms.bounds)
            self.times: dict[int, Span] = dict(terms.times)
            for place, span in terms.times:  # of times in nanoseconds, for what follows from them
                zone = zone_of(self.data.dtypes[place])
                if (ends := ends_of(span, zone)) is not None:
                    self.bounds[place] = ends
            self.keys: dict[int, Keys] = {
                i: k for i, k in terms.keys if isinstance(i, int) and isinstance(k, Keys)
            }
            # What tells the declared keys from others.
            self.tokens: set[str] = {keys.token for _, keys in terms.keys}
            self.tuples: dict[tuple[int, ...], Tuples] = {
                i: k for i, k in terms.keys if isinstance(i, tuple) and isinstance(k, Tuples)
            }

    def __copy__(self) -> Session:
        return self

    def __deepcopy__(self, memo: object) -> Session:
        return self

    def __reduce__(self) -> NoReturn:
        raise BadType(
            "a session cannot be pickled: its budget must exist once. Pickle the answers instead."
        )

    @property
    def dtypes(self) -> list[Any]:
        """The dtypes of the columns, in their order."""
        return list(self.snapshot.dtypes)

    @property
    def budget(self) -> Budget:
        return self.accountant.meter(self.terms.queries)

    def limit_unit(self, payment: Payment) -> Unit:
        """Return the unit of protection with the ``max_rows=`` and ``max_groups=`` that a question
        names.

        ``payment`` has the arguments of the question by name. Limits are refused where each row is
        a person.
        """
        limits = payment.get("max_rows"), payment.get("max_groups")
        if limits[0] is None and limits[1] is None:
            return self.unit
        if not self.unit.people:
            raise BadValue(
                "max_rows= and max_groups= are for sessions with unit=: here a row is a person."
            )
        return self.unit.with_limits(*limits_for(*limits))

    def price(
        self,
        question: Question,
        payment: Payment,
        part: Fraction = Fraction(1),
        budget: Budget | None = None,
    ) -> Price:
        """Return the price of a question: as asked, as ``within=`` needs, or a share of the budget.

        ``payment`` has the arguments about price and limits. ``part`` is the fraction of the price
        that is taken. ``budget`` is the one to price from, after earlier questions of a batch; None
        is the current one.
        """
        if budget is None:
            budget = self.accountant.meter(self.terms.queries)

        def plan_for(price: Price) -> Plan:
            return question.plan(self.limit_unit(payment), price, self._public_rows(question), ())

        if payment.get("within") is None:
            return find_price(budget, payment, None, plan_for, part)
        # Never remembered: it depends on limits, n, and what is left of the budget, and takes a few
        # hundredths of a second.
        return find_price(budget, payment, self.count_values(question), plan_for)

    def count_values(self, question: Question) -> int | None:
        """Return how many values a question is about, as far as the session makes it public; None
        otherwise.

        ``within=`` uses it for a question that gives no ``n=`` of its own.

        ``within=`` needs it to turn a relative error into noise.
        """
        rows, people = self._public_rows(question), None if self.unit.people else self.terms.people
        # How many people there are says nothing of how many a condition or a group leaves.
        return (
            rows
            if rows is not None
            else people
            if question.where is None and not question.by
            else None
        )

    def forecast_charge(self, one: PricedQuestion, place: int) -> tuple[Label, Charge | None]:
        """Return the label of a question of a batch, and what it will be charged.

        ``place`` is its position in the batch. The charge is None if its answer is on record, in
        one piece or vector by vector.
        """
        label, identity = self._label(one, place)
        if self._recall(label, identity, one):
            return label, None
        split = self._split(label, identity, one)
        if split is None:
            return label, self.plan_with_declarations(one)[0].charge
        return label, None if split.remaining is None else self.plan_with_declarations(
            split.remaining
        )[0].charge

    def plan(self, asked: PricedQuestion) -> Plan:
        """Return the plan that `explain` shows for a question, with what it would take of the
        budget."""
        plan, _ = self.plan_with_declarations(asked)
        label, identity = self._label(asked, 0)
        if self._recall(label, identity, asked) is not None:
            return replace(
                plan, budget="takes nothing: it was answered before, and that answer is free"
            )
        split = self._split(label, identity, asked)
        if split is None:
            return replace(
                plan,
                budget=f"{format_price_as_typed(asked.paid)}: {self.budget.preview(plan.charge)}",
            )
        plan = assemble_plan(split.plan, split.known)
        if split.remaining is None:
            return replace(plan, budget="takes nothing: all of it is on record")
        new, _ = self.plan_with_declarations(split.remaining)
        text = f"pays for {new.question} only, since the rest is on record: {self.budget.preview(new.charge)}"
        return replace(plan, budget=f"{format_price_as_typed(asked.paid)}: {text}")

    @property
    def default_counts(self) -> int:
        """How many counts that name no price the rest of the budget still pays for."""
        budget = self.budget
        if self.base.closed or budget.fraction >= 1:
            return 0
        count = Query((ROWS,))
        return budget.times(
            self.plan_with_declarations(
                PricedQuestion(count, self.price(count, {}), (), self.unit)
            )[0].charge
        )

    def is_answered(self, asked: PricedQuestion) -> bool:
        """Return whether this was asked before, so that it is free."""
        return self._recall(*self._label(asked, 0), asked) is not None

    def _public_rows(self, question: Question) -> int | None:
        """Return the number of rows that a question is about, where it is public."""
        return self.public_rows if question.where is None and not question.by else None

    def plan_with_declarations(self, one: PricedQuestion) -> tuple[Plan, list[Word]]:
        """Return the plan of a question, and the declarations it relies on that `open` did not
        make.

        These declarations, such as bounds given at the question, go into the ledger with its debit.
        """
        question, words, cuts = one.question, list(one.words), False
        for out in question.outputs:
            if AGGREGATES[out.aggregate].selects:
                continue  # the verb has said so once for all candidates
            for expr, pair in out.clipped:
                known = expr.bounds(self.bounds) if not out.duration else self._seconds(expr)
                # Declared bounds of a column cut nothing that may be, and most questions have them.
                cuts = cuts or pair != known or expr.depth > 1
                if pair != known and (expr, tuple(pair)) not in self.released_bounds:
                    words.append(
                        Word("bounds", f"{expr}: ({pair.lower:g}, {pair.upper:g})", str(out))
                    )
        if question.by:
            found = map(attrgetter("token"), self.keys_by_question.values())
            opened = self.tokens.union(found) if self.keys_by_question else self.tokens
            for by in question.by:
                word = None if by.token in opened else by.word
                if word is not None:
                    words.append(word)
        rows = None if self.public_rows is None else self._public_rows(question)
        plan = note_reduced_epsilon(
            question.plan(one.unit, one.price, rows, tuple(words)), one.price
        )
        if question.by and self.found_keys.labels:
            selected = self.find_selected(question.by, question.where)
            plan = plan if selected is None else replace(plan, selected=selected)
        if cuts and (clips := self._find_clips(question)):
            plan = replace(plan, clips=clips)
        return (replace(plan, most=self._most(one.unit)) if self.counted else plan), words

    def _find_clips(self, question: Question) -> tuple[NarrowBounds, ...]:
        """Return the bounds of a question that cut more than what was declared."""
        clipped = [pair for out in question.outputs for pair in out.clipped]
        if not clipped:
            return ()
        durations = {
            expr: self._seconds(expr)
            for out in question.outputs
            if out.duration
            for expr, _ in out.clipped
        }
        return find_clips(question.outputs, self.bounds, durations, self.unit.rows)

    def find_selected(self, by: Sequence[By], where: Expr | None) -> FoundGroups | None:
        """Return which groups of a question were found in the data and not declared at `open`; None
        if none were.

        ``where`` is the condition on the rows of the question.
        """
        return self.found_keys.find_selected(
            [level for level in by if level.token not in self.tokens], where
        )

    def _most(self, unit: Unit) -> float | None:
        """Return the largest number of values that any question can be about, if that is public;
        else None."""
        if self.public_rows is not None or self.terms.people is None:
            return self.public_rows
        rows = unit.rows if unit.people else 1
        return None if rows is None else self.terms.people * rows

    def _seconds(self, expr: Expr) -> tuple[float, float] | None:
        """Return the bounds of the seconds of a duration that follow from declared ones."""
        return seconds_between(expr.children[0], lambda column: self.bounds.get(column.position))

    def ask(self, questions: Sequence[PricedQuestion], batch: bool = False) -> list[Release]:
        """Answer questions: label them, recall known answers, plan, debit the budget, and read the
        data last.

        Return one release for each question. Nothing else reads the data. ``batch`` tells that they
        were declared in advance.

        Several questions are one debit: all of them or none. Formal guarantee: the sequence of all
        releases of an accountant is (epsilon, delta)-differentially private for its budget, however
        the questions were chosen (docs/guarantees/session.md). A question asked before at the same
        price, or by the same name, is answered from what was released then; whether it was depends
        on questions only.
        """
        with self.lock:
            if self.asking.locked():  # by this very thread: in a signal handler, or a finaliser
                raise SessionError(
                    "this session is in the middle of another question of the same thread."
                )
            with self.asking:
                self.check_alive()
                labelled = [self._label(one, i) for i, one in enumerate(questions)]
                labels = [label for label, _ in labelled]
                asked = dict(zip(labels, questions, strict=True))
                identities = dict(labelled)
                if len(labels) > 1:
                    _check_names(labels)
                known = {
                    label: record
                    for label, one in asked.items()
                    if (record := self._recall(label, identities[label], one)) is not None
                }
                new = (
                    {label: one for label, one in asked.items() if label not in known}
                    if known
                    else asked
                )
                splits = {
                    label: split
                    for label, one in new.items()
                    if len(identities[label].vectors) > 1
                    and (split := self._split(label, identities[label], one)) is not None
                }
                charged = {*new}
                if splits:
                    new = self._replace_splits(new, splits, identities)
                    paid = (label for label, split in splits.items() if split.remaining is not None)
                    charged = {*new, *paid}
                if new:
                    if not batch and (self.base.planning_threads or self._together):
                        self._refuse_alone()
                    plans = [self.plan_with_declarations(one) for one in new.values()]
                    planned = dict(zip(new, plans, strict=True))
                    if self.unit.people:
                        self._warn_of_groups(new.values(), [plan for plan, _ in planned.values()])
                    if self.counted:
                        warn_of_useless_choices([plan for plan, _ in planned.values()])
                    names = [label.name for label in asked if label in charged]
                    self._debit(new, list(planned.values()), names)
                verbs = VerbList([one.question for one in new.values()])
                for label, one in new.items():
                    plan, _ = planned[label]
                    # -------------------------------------------------------------- the door: from here data is read
                    raw = read_private(verbs, self._read, one, plan)
                    # ------------------------------------------------------- and closes: only noisy integers leave
                    record = Record(Release(plan, raw), identities[label], one.question)
                    known[label] = record
                    self._keep_release(label, record, one)
                if splits:
                    known.update(self._assemble_all(splits, asked, identities, known))
                rule, warning = self.base.terms.rule, self.base.noise_warning
                first = None if warning.was_given else warning
                return [
                    Release(
                        *self._present(known[label], identity, one)[:2],
                        rule,
                        label in charged,
                        first if label in charged else None,
                    )
                    for (label, identity), one in zip(labelled, questions, strict=True)
                ]

    def _warn_of_groups(self, asked: Iterable[PricedQuestion], plans: Iterable[Plan]) -> None:
        """Warn of groupings by time with more periods than a person counts in.

        Each grouping is looked at once a session.
        """
        for one, plan in zip(asked, plans, strict=True):
            by, caps = one.question.by, plan.caps
            limits = [cap.groups for cap in caps if cap.groups is not None and not cap.met]
            if not by or not limits or min(limits) >= plan.groups:
                continue
            key = (min(limits), *(level.token for level in by))
            if key in self.base.looked_at:
                continue
            self.base.looked_at.add(key)
            if count_periods(by, one.unit.people) > min(limits):
                caution(describe_groups_left_out(by, plan.groups, min(limits)))

    def _present(self, record: Record, identity: Identity, one: PricedQuestion) -> Release:
        """Return a recorded release rearranged as the answer of an equivalent question in other
        words.

        ``identity`` is that of the question ``one`` that is asked now.
        """
        question = one.question
        if record.question is question or record.question == question:
            return record.release
        rows = self._public_rows(question)
        found = question.present(record.release, record.question_id, identity, one.unit, rows)
        clips = self._find_clips(question)
        if clips == found.plan.clips:
            return found
        plan = replace(found.plan, clips=clips)
        return Release(plan, found.raw, found.rule, found.fresh)

    def _split(self, label: Label, identity: Identity, one: PricedQuestion) -> SplitQuestion | None:
        """Return which vectors of a question are on record at its price, and what is left to ask.

        A vector is a part of a question's noisy integers, such as the sums of one column. Return
        None if no vector is on record. A question of one vector, or one that asks for fresh noise,
        is never split. If the rest is on record as a question of its own, nothing is left to ask.
        """
        if one.fresh or len(identity.vectors) < 2 or not one.question.shares_vectors:
            return None
        vectors = list(map(self._vector, self._vector_keys(label, identity, one)))
        if not any(vectors):
            return None
        plan, _ = self.plan_with_declarations(one)
        known = find_vectors(plan, vectors)
        if not known:
            return None
        if len(known) == len(vectors):
            return SplitQuestion(plan, known, None)
        question, part = reduce_question(one.question, plan, known)
        price_at, kind = one.price_at, plan.mechanism
        rest = one.change(
            question=question,
            price=one.price.scale(part, kind),
            typed=(part, *one.typed),
            name=None,
            price_at=(
                None if price_at is None else lambda epsilon: price_at(epsilon).scale(part, kind)
            ),
        )
        rest_label, rest_identity = self._label(rest, 0)
        record = self._recall(rest_label, rest_identity, rest)
        if record is None:
            return SplitQuestion(plan, known, rest)
        # It was released, and whoever asked stopped before the whole was put together.
        bought = Record(self._present(record, rest_identity, rest), rest_identity, question)
        return SplitQuestion(plan, add_vectors(plan, known, bought), None)

    def _vector_keys(self, label: Label, identity: Identity, one: PricedQuestion) -> list[Any]:
        """Return the keys under which the vectors of a question are recorded, one for each vector.

        They depend on the rows, the vector, the price as it was typed, and the columns.
        """
        rows, schema = identity.rows, self.data.schema
        if self.accountant.place is None:  # no ledger: keys stay in memory, and need no digests
            paid = label.paid[1]  # the price as it was typed
            return [(rows, vector, paid, schema) for vector in identity.vectors]
        return [
            digest(rows, vector, one.typed, self.terms.queries, schema)
            for vector in identity.vectors
        ]

    def _vector(self, key: Any) -> RecordedVector | None:
        """Return the vector that was recorded under a key, here or in the ledger file; None if none
        was."""
        found = self.vectors.get(key)
        if found is not None:
            record, place = found
            return record.vector(place)
        recorded = None if self.accountant.place is None else self.accountant.recall_vector(key)
        if recorded is None:
            return None
        plan, integers, place = recorded
        return RecordedVector(plan.parts[place].noise, integers, Identity(b""))

    def _replace_splits(
        self,
        new: dict[Label, PricedQuestion],
        splits: dict[Label, SplitQuestion],
        identities: dict[Label, Identity],
    ) -> dict[Label, PricedQuestion]:
        """Return the new questions, each split one replaced by a question for its missing vectors.

        A split question without missing vectors is left out. ``identities`` gets the identities of
        the replacements.
        """
        left: dict[Label, PricedQuestion] = {}
        for label, one in new.items():
            split = splits.get(label)
            if split is None:
                left[label] = one
            elif split.remaining is not None:
                rest_label, identities[rest_label] = self._label(split.remaining, 0)
                left[rest_label] = split.remaining
        return left

    def _assemble_all(
        self,
        splits: dict[Label, SplitQuestion],
        asked: dict[Label, PricedQuestion],
        identities: dict[Label, Identity],
        known: dict[Label, Record],
    ) -> dict[Label, Record]:
        """Return the record of each question that is answered from vectors released at several
        times."""
        return {
            label: self._assemble(split, label, asked[label], identities, known)
            for label, split in splits.items()
        }

    def _assemble(
        self,
        split: SplitQuestion,
        label: Label,
        one: PricedQuestion,
        identities: dict[Label, Identity],
        known: dict[Label, Record],
    ) -> Record:
        """Put the release of a split question together, keep it, and return its record.

        ``split`` has the vectors that were on record. The missing ones are in ``known``, under the
        label of the rest that was asked.
        """
        bought = None
        if split.remaining is not None:
            rest_label, identity = self._label(split.remaining, 0)
            record = known[rest_label]
            release = self._present(record, identity, split.remaining)
            bought = Record(release, identity, split.remaining.question)
        release = assemble(split.plan, identities[label], split.known, bought)
        record = Record(release, identities[label], one.question)
        self._keep_release(label, record, one)
        return record

    def _keep_release(self, label: Label, record: Record, one: PricedQuestion) -> None:
        """Remember a release and its vectors for later questions, and write them into a ledger file
        if there is one."""
        self._keep(label, record)
        identity, keys = record.question_id, []
        if identity.vectors and not one.fresh and one.question.shares_vectors:
            keys = self._vector_keys(label, identity, one)
            for place, key in enumerate(keys):
                self.vectors[key] = record, place
        if self.accountant.place is not None:
            shared = one.question.put_in_shared_order(record.release, identity)
            self.accountant.record(
                label, *shared[:2], [keys[i] for i in identity.order] if keys else []
            )

    def _refuse_alone(self) -> None:
        """Refuse a new question outside of a batch where only batches may ask."""
        if threading.get_ident() in self.base.planning_threads:
            raise SessionError(
                "inside its own plan_ahead() block a frame would answer and charge this at once, beside the batch. Ask it of "
                "the batch, with p.plan_ahead() as batch: answer = batch.count(), or before or after the block."
            )
        if self._together:
            raise SessionError(
                "accountant='pld' guards one batch that is declared in advance: with p.plan_ahead() as batch: ..."
            )

    def _debit(
        self,
        new: dict[Label, PricedQuestion],
        planned: Sequence[tuple[Plan, list[Word]]],
        names: Sequence[str | None],
    ) -> None:
        """Charge new questions in one debit of the ledger, before any data is read. Nothing undoes
        it.

        ``planned`` has the plan of each question and its undeclared facts. ``names`` are the names
        of the answers.
        """
        if self.data.source is not None:  # a source that has changed is refused before it costs
            self.data.source.check()
        if SWITCH in os.environ and debugging():
            self.accountant.declare([DEBUGGED])
        name = ", ".join(filter(None, names)) or None
        one, *others = new.values()
        price_at = None if others else one.price_at
        charge_at = None if price_at is None else partial(self._charge_at, one, price_at)
        plans: list[Plan] = []
        words: list[Word] = []
        for plan, stated in planned:
            plans.append(plan)
            words += stated
        self.accountant.debit(plans, words, name, charge_at)

    def _charge_at(
        self, one: PricedQuestion, price: Callable[[Fraction], Price], epsilon: Fraction
    ) -> Charge:
        """Return what a question would be charged at another epsilon, to tell which one still fits.

        ``price`` returns the price that an epsilon buys.
        """
        return self.plan_with_declarations(one.change(price=price(epsilon)))[0].charge

    def _read(self, one: PricedQuestion, plan: Plan) -> Raw:
        """Read the data for one question, and return its noisy integers.

        Their shapes are checked against those that the question declared.
        """
        unit, size = one.unit, None
        engine = (
            self.data.engine(self.base.noise_key) if self.data.reader is None else self.data.reader
        )
        if unit.replaces:  # how many people there are is public
            size = engine.people(unit) if unit.people else self.rows
        forms = one.question.forms(plan, unit, size)
        raw = self.base.run_question(one.question, engine, plan, unit)
        check(forms, raw)
        if self.data.source is not None:  # of what was replaced while it was read nothing is told
            self.data.source.check()
        return raw

    def run_question(self, question: Question, engine: Engine, plan: Plan, unit: Unit) -> Raw:
        """Run a question on the data, with a function that adds the noise of the plan to its
        sums."""
        return question.run(engine, plan, unit, partial(self._noise, plan))

    def _noise(
        self,
        plan: Plan,
        part: int,
        integers: Array,
        *,
        keys: Sequence[object] | None = None,
        width: int | None = None,
    ) -> Array:
        """Return exact integers with the noise that the plan has for them.

        ``part`` is the position of the mechanism in the plan. ``width`` is passed on to mechanisms
        that take one. A question calls it for each vector.
        """
        mechanism: Any = plan.parts[part].noise
        noisy: Array = mechanism.release(integers, *(() if width is None else (width,)))
        return noisy

    def refuse_if_not_followed(self) -> None:
        """Raise where an audit follows the session and cannot see what comes next: code that gets
        rows, or other frames."""

    def row_names(self) -> NDArray[np.int64]:
        """Return the name of each row's person, where a row is a person.

        The rows of the opened frame get their names once, when they are first needed. Rows that
        were derived from them keep these. So one person has one name in all frames of this session.
        """
        base = self.base
        with self.lock:
            if base.drawn_row_names is None:
                base.drawn_row_names = base.draw_row_names()
            names = base.drawn_row_names
        return names if self.data.places is None else names.take(self.data.places)

    def draw_row_names(self) -> NDArray[np.int64]:
        """Draw a name for each row of the opened frame."""
        return people_labels(self.rows)

    def _label(self, one: PricedQuestion, place: int) -> tuple[Label, Identity]:
        """Return the label and the identity of a question, by which its answer is found again.

        The identity stands for the question alone, and the label also for its price. They depend on
        the columns, the version, the question and its price, and never on the data. ``place`` is
        the position in a batch, which tells fresh questions apart.
        """
        rows = None if self.public_rows is None else self._public_rows(one.question)
        identity = one.question.identify(one.unit, rows)
        whole = self.data.schema.encode() + identity.code  # a schema is of one length
        price, typed = one.price[:-1], (one.typed, self.terms.queries)
        question: LabelKey = whole
        key: LabelKey
        paid: LabelKey
        # Nothing is put on record, and digests would only take time.
        if self.accountant.place is None:
            key, paid = (whole, encode(price)), (whole, encode(typed))
        else:
            question = digest(whole)
            key, paid = digest(question, price), digest(question, *typed)
        version = self.data.version
        # A name of an answer belongs to the questions of these rows and of their equals.
        if self.data.steps:
            version = digest(version, self.data.steps)
        return Label(
            question, key, paid, one.name, version, place if one.fresh else None, whole
        ), identity

    def _recall(self, label: Label, identity: Identity, one: PricedQuestion) -> Record | None:
        """Return the record of an equal question that was answered before, or None.

        A question on record is free. Records are looked up in this session and then in the ledger.
        One that asks for fresh noise is never recalled, but its name is checked there, too.
        """
        # Also of a fresh one: its name may not be another question's.
        known = find_answer(label, self.answers, self.answer_names)
        recorded = None
        if self.accountant.place is not None and (
            one.name is not None if one.fresh else known is None
        ):
            recorded = self.accountant.recall(label, self._shares(label, one))
        if one.fresh or (known is not None and known[0] != label.whole):
            return None
        if known is None:
            if recorded is None:
                return None
            known = label.whole, Record(Release(*recorded), identity.shared_identity, None)
        record: Record = known[1]
        self._keep(label, record)
        return record

    def _shares(self, label: Label, one: PricedQuestion) -> Iterator[str]:
        """Yield the labels that a question would have if a share of the budget had another size,
        the largest first.

        They are for sessions in which ``open`` left out ``queries=``. There a question is free if
        it was answered at any size of a share.
        """
        if not self.terms.shares_said and not one.fresh:
            for queries in range(1, MOST_SHARES + 1):
                yield digest(label.question, one.typed, queries)

    def _keep(self, label: Label, record: Record) -> None:
        self.answers[label.key] = self.answers[label.paid] = label.whole, record
        if label.name is not None:
            self.answer_names[label.version, label.name] = label.question, label.key

    def check_alive(self) -> None:
        """Refuse to go on if the session was closed, or if this process is a forked copy.

        A copy of a process would have a copy of the budget.
        """
        if self.base.closed:
            goes_on = can_be_opened_again(self.accountant)
            rest = (
                "Its budget goes on: open another one."
                if goes_on
                else "A closed budget cannot be used again."
            )
            raise SessionError(f"this session was closed. {rest}")
        if os.getpid() != self.base.process:
            raise SessionError(
                "this process is a forked copy of the one that opened the session, and a copy has no budget of "
                "its own. Ask in the parent process."
            )

    def close(self) -> None:
        """End the session and all frames derived from it, and let go of the data.

        What is left of its own budget is given up. A budget that is shared, or kept in a file, goes
        on.
        """
        base = self.base
        with self.lock:
            if not base.closed:
                remember_before_closing(base)
            base.closed = True
            if sessions.pop(base.name, None) is not None:
                closed.append(base)
            base.answers.clear()
            base.given.clear()
            base.drawn_row_names = None
            for one in [base, self, *base.derived]:
                one.data.forget()


def _check_names(labels: Sequence[Label]) -> None:
    """Refuse a batch in which one ``name=`` is given to two different questions."""
    owners: dict[str, LabelKey] = {}
    for label in labels:
        if (
            label.name is not None
            and owners.setdefault(label.name, label.question) != label.question
        ):
            raise BadValue(
                f"name={label.name!r} is given to two questions of one batch. Choose another name."
            )


def warn_of_useless_choices(plans: Sequence[Plan]) -> None:
    """Warn of answers that choose a value, such as a quantile, if the noise can outweigh all values.

    Such answers have no interval that would show it.
    """
    for plan in plans:
        choices = [cell for cell in plan.cells if AGGREGATES[cell.aggregate].picks]
        if plan.most is not None and any(says_nothing(plan, cell, plan.most) for cell in choices):
            caution(
                f"this will say nothing: {plan.question}, of {plan.most:.12g} values at most. Nothing is charged yet. Ask with a "
                "larger epsilon; explain tells by how many ranks an answer may be off."
            )
