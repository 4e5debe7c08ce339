"""Groups whose keys nobody listed: found and measured in one release; or found first where nothing
is measured, but chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

from dpframe import _validate
from dpframe._answers.foundkeys import KeyColumns, read_keys, read_released_keys
from dpframe._cells.encoding import encode
from dpframe._errors import BadType, BadValue, BudgetError, MissingKeys
from dpframe._expr import NO_KEYS
from dpframe._frame.selection import (
    HALF,
    WHOLE,
    Askable,
    Finish,
    Selection,
    ask_question,
    mode_of,
    price_question,
    selection_of,
    session_of_frame,
)
from dpframe._groups.combinations import Sought, TupleBy, Tuples
from dpframe._groups.keys import By, KeyBy, Keys, combined_index
from dpframe._plans.aggregates import Output
from dpframe._plans.counts import DISTINCT
from dpframe._plans.plan import Plan
from dpframe._plans.price import Payment, check_payment
from dpframe._questions.keysearch import Finding, KeySearch, can_answer_at_once
from dpframe._questions.question import Query, Release
from dpframe._session.session import Session
from dpframe.mechanisms.threshold import THRESHOLDS

_SEARCH_WORDS = ("epsilon", "max_rows", "max_groups")
_SHARE = "a share"
_NO_DELTA = (
    "finding keys that nobody listed takes some delta, and this session has no delta left for it: "
    "list keys=[...], or open it with delta > 0."
)


def listed(
    asking: Askable, by: tuple[By | Sought, ...], payment: Mapping[str, object]
) -> tuple[tuple[By, ...], Fraction] | Plan:
    """Return groupings that all have keys, and the part of the price that is left to ask about
    them.

    Keys that nobody listed are found first, for half of the price. In explain mode the plan of that
    search is returned instead.
    """
    if not any(isinstance(level, Sought) for level in by):
        return cast("tuple[By, ...]", by), WHOLE
    found = Search(asking, by).keys(payment)
    return found if isinstance(found, Plan) else (found, HALF)


def key_search(
    asking: Askable, columns: KeyColumns, payment: Mapping[str, object]
) -> tuple[KeySearch, Payment]:
    """Return the question that finds the values of some columns, for the verb `unique`.

    ``columns`` are expressions with their names. Of the arguments of the price ``delta`` goes into
    the question. The others are returned beside it.
    """
    findable(selection_of(asking), columns)
    words = dict(check_payment(payment))
    given, budget = words.pop("delta", None), session_of_frame(asking).budget
    failure = budget.rule.failure_share(budget.queries) if given is None else _validate.delta(given)
    if not failure:
        raise BudgetError(_NO_DELTA)
    exprs = tuple(expr for expr, _ in columns)
    return KeySearch(exprs, failure, not budget.rule.pairs, selection_of(asking).where), cast(
        Payment, words
    )


def findable(selection: Selection, columns: KeyColumns) -> None:
    """Refuse columns whose values no search can find, before anything is charged."""
    for expr, name in columns:
        if expr.kind in NO_KEYS:
            raise BadType(f"column {name!r} has a dtype that cannot be grouped by.")
    people = selection.schema.unit.people
    if people and set(people) <= {expr for expr, _ in columns}:
        names = [repr(name) for expr, name in columns if expr in people]
        count = (
            f" p.{DISTINCT}({names[0]}) tells how many people there are," if len(names) == 1 else ""
        )
        raise BadValue(
            f"{' and '.join(names)} name{'s' if len(names) == 1 else ''} the person here: no value is shared by many, so "
            f"none can be found, at any price.{count} p.suggest_limits(...) how many rows and groups a person has."
        )


class Search:
    """A question about groups with keys that are still to be found.

    It is one question with the answer in it, or two for half of the price each. The keys that were
    found are kept for later questions about these columns.
    """

    def __init__(self, asking: Askable, levels: tuple[By | Sought, ...]):
        """Prepare the search for the keys that nobody listed.

        ``asking`` is the frame or the groups that are asked. ``levels`` are all its groupings, with
        known keys or with keys to be found.
        """
        self._asking = asking
        self._session: Session = session_of_frame(asking)
        self._where = selection_of(asking).where
        self._levels = levels
        self._sought = [level for level in levels if isinstance(level, Sought)]
        self._columns: KeyColumns = [(level.expr, level.name) for level in self._sought]
        self._exprs = tuple(level.expr for level in self._sought)

    def check(self) -> None:
        """Refuse groups that no search can find."""
        findable(selection_of(self._asking), self._columns)
        if len(self._sought) < 2:
            return
        if len(self._sought) < len(self._levels) or any(
            one.label is not None for one in self._sought
        ):
            raise MissingKeys(
                "of several columns, keys are found for one or for all (without other=): list "
                f"keys={{...}} for all but one of {', '.join(repr(one.name) for one in self._sought)}."
            )
        if any(one.dropna is False for one in self._sought):
            raise BadValue(
                "dropna=False adds no group to combinations that are found: fillna(...) a value of its own."
            )

    def ask(
        self, outputs: tuple[Output, ...], layout: Finish, payment: Mapping[str, object]
    ) -> Any:
        """Ask for some aggregates of these groups, whose keys are found on the way.

        ``layout`` makes the answer from the release. Where possible keys and aggregates share one
        release. Otherwise the keys are found first, for half of the price.
        """
        words = check_payment(payment)
        if self._at_once and can_answer_at_once(outputs):
            return self._measure_groups(outputs, layout, words)
        by = self.keys(words)
        if isinstance(by, Plan):
            return by
        query = Query(outputs, self._where, by)
        return ask_question(
            self._asking, query, lambda release: layout(release, combined_index(by)), words, HALF
        )

    def keys(self, payment: Mapping[str, object]) -> tuple[By, ...] | Plan:
        """Find the keys once, for half of a price, and return the groups with them.

        In explain mode, return the plan of the search if there has been none.
        """
        findable(selection_of(self._asking), self._columns)
        names = self._not_in_batch()
        session, question = self._session, self._question(payment)
        known = session.keys_by_question.get(question)
        if known is None:
            words = {w: payment[w] for w in _SEARCH_WORDS if payment.get(w) is not None}
            if payment.get("mechanism") in {kind.name for kind in THRESHOLDS}:
                words["mechanism"] = payment["mechanism"]
            failure, _ = self._failure((self._exprs, self._where), payment)
            task = KeySearch(
                self._exprs, failure, not session.budget.rule.pairs, self._where, _SHARE
            )
            found = ask_question(
                self._asking, task, lambda r: read_keys(r.raw[0], self._columns), words, HALF
            )
            if isinstance(found, Plan):
                return found
            known = found.keys
            if known is None:
                raise MissingKeys(
                    f"no value of {names} was found that enough people share: explain.unique(...) tells how many it takes. "
                    "List keys=[...] instead, or pay more."
                )
            session.keys_by_question[question] = known
            session.found_keys.record(self._exprs, self._where, known)
        if isinstance(known, Tuples):
            return (self._by(known),)
        named = known.rename(self._columns[0][1])
        return tuple(
            level.with_keys(named) if isinstance(level, Sought) else level for level in self._levels
        )

    def _measure_groups(
        self, outputs: tuple[Output, ...], layout: Finish, payment: Mapping[str, object]
    ) -> Any:
        """Find the groups that enough people share and measure them, in one release for the whole
        price.

        If the session knows their keys already, it asks an ordinary question about them. It does
        not if this very question was asked before.
        """
        findable(selection_of(self._asking), self._columns)
        self._not_in_batch()
        words = dict(payment)
        given, session = words.pop("delta", None), self._session
        if given is None:
            failure, alone = self._failure((self._exprs, outputs, self._where), words)
        else:
            failure = alone = _validate.delta(given)
        if not alone:
            raise BudgetError(_NO_DELTA)
        stated = _SHARE if given is None else ""
        pairs = session.budget.rule.pairs
        task = Finding(self._exprs, outputs, failure, not pairs, self._where, stated, alone)
        question = self._question(words)
        known = session.keys_by_question.get(question)
        if known is not None and not self._is_known(task, words):
            by = (self._by(known),)
            query = Query(outputs, self._where, by)
            return ask_question(
                self._asking, query, lambda release: layout(release, combined_index(by)), payment
            )

        def answer(release: Release) -> Any:
            """Lay out the answer for the groups that the release found, and let the session
            remember them."""
            found = read_released_keys(release, self._columns)
            if found.keys is not None:
                session.keys_by_question.setdefault(question, found.keys)
                session.found_keys.record(self._exprs, self._where, found.keys)
            raw = tuple(part[:, found.places] for part in release.raw[1:])
            plan = replace(release.plan, groups=len(found.places))
            return layout(release.change(plan=plan, raw=raw), found.index)

        return ask_question(self._asking, task, answer, words)

    @property
    def _at_once(self) -> bool:
        """True if the groups are just those whose keys are found, without listed keys or other
        groups."""
        return len(self._sought) == len(self._levels) and all(
            one.label is None and one.dropna is not False for one in self._sought
        )

    def _by(self, known: Keys | Tuples) -> By:
        if isinstance(known, Keys):
            return KeyBy(self._exprs[0], known.rename(self._columns[0][1]))
        return TupleBy.of(self._exprs, known.rename([name for _, name in self._columns]))

    def _question(self, payment: Mapping[str, object]) -> bytes:
        """Return the question of the search: the same columns of the same rows, and the same limit
        of keys a person."""
        limits = cast(Payment, {w: payment.get(w) for w in ("max_rows", "max_groups")})
        return encode((self._exprs, self._where, self._session.limit_unit(limits).groups))

    def _is_known(self, task: Finding, words: Mapping[str, object]) -> bool:
        """Return whether it was asked before in the same words, and so is free."""
        declared = selection_of(self._asking).words
        return self._session.is_answered(price_question(self._session, task, words, declared))

    def _failure(self, key: object, payment: Mapping[str, object]) -> tuple[Fraction, Fraction]:
        """Return the failure probability of a question that finds keys, and that of one without
        Gaussian noise.

        ``key`` identifies the question. Both follow from its epsilon and the budget. They are fixed
        once, so that a repeat has the same plan.
        """
        budget, failures = self._session.budget, self._session.failures
        epsilon = payment.get("epsilon")
        exact = (
            budget.rule.limits.epsilon / budget.queries
            if epsilon is None
            else _validate.epsilon(epsilon)
        )
        found = None if payment.get("fresh") else failures.get((key, exact))
        if found is None:
            rule, state = budget.rule, budget.state
            found = rule.failure_for(exact, state), rule.failure_for(exact, state, pure=True)
        if not mode_of(self._asking).shows:
            failures[key, exact] = found
        if not any(found):
            raise BudgetError(_NO_DELTA)
        return found

    def _not_in_batch(self) -> str:
        """Refuse a search inside a batch, and return the names of the columns."""
        names = ", ".join(repr(name) for _, name in self._columns)
        if mode_of(self._asking).answers_later:
            raise BadValue(
                f"in plan_ahead the keys of {names} must be known: find them before, keys=p.unique(...)."
            )
        return names
