"""What becomes of a question: it is answered, explained, put into a batch, or refused because a row is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final, cast

import numpy as np

from dpframe._errors import BadValue, Refused
from dpframe._frame.selection import Selection
from dpframe._groups.keys import Word
from dpframe._plans.price import Budget, Payment, checked, known_n
from dpframe._questions.question import Query, Question, Release
from dpframe._session.batch import Batch
from dpframe._session.session import Asked, Session
from dpframe.accounting._filter import Price

PRICED: Final = ("epsilon", "delta", "within", "n", "mechanism")  # the words that make a price
WHOLE: Final = Fraction(1)
HALF: Final = Fraction(1, 2)  # of a price: one half finds keys, the other asks
Answer = Callable[[Release], Any]
# From a release and the index of its groups, if there are any, to what a verb returns.
Finish = Callable[[Release, Any], Any]


class Ask:
    """Answers a question at once, for its price. The other modes are kinds of it."""

    answers_later = False  # or never: no keys are found on the way, and no other rows are made
    shows = False  # plans in place of answers

    def ask(
        self,
        session: Session,
        question: Question,
        answer: Answer,
        payment: Mapping[str, Any],
        declared: tuple[Word, ...] = (),
        part: Fraction = WHOLE,
    ) -> Any:
        """What a verb returns for a question, of whose release ``answer`` makes it, at a ``part`` of the price that its words
        make."""
        return answer(session.ask([priced(session, question, payment, declared, part)])[0])

    def explaining(self) -> Ask:
        """The mode of ``p.explain``."""
        return Explain()

    def planning(self, batch: Batch[Any]) -> Ask:
        """The mode of a frame whose questions go to a batch."""
        return Ahead(batch)


class Explain(Ask):
    """Shows the plan of a question, for nothing; beside a batch, at the price that it would have there."""

    shows = True

    def __init__(self, batch: Batch[Any] | None = None):
        self.batch = batch

    @property
    def answers_later(self) -> bool:  # type: ignore[override]  # a question of a batch, and only shown
        return self.batch is not None

    def ask(
        self,
        session: Session,
        question: Question,
        answer: Answer,
        payment: Mapping[str, Any],
        declared: tuple[Word, ...] = (),
        part: Fraction = WHOLE,
    ) -> Any:
        words, assumed = checked(payment), None
        if words.get("within") is None and words.get("n") is not None:
            # From a number of people to an accuracy: the price does not depend on it, what is shown does.
            assumed, words = known_n(words["n"], None), cast(Payment, {**words, "n": None})
        ahead = None if self.batch is None else self.batch.ahead()
        return replace(session.plan(priced(session, question, words, declared, part, ahead)), n=assumed)

    def explaining(self) -> Ask:
        return self

    def planning(self, batch: Batch[Any]) -> Ask:
        return Explain(batch)


class Ahead(Ask):
    """Adds a question to a batch, and returns the place of its answer."""

    answers_later = True

    def __init__(self, batch: Batch[Any]):
        self.batch = batch

    def ask(
        self,
        session: Session,
        question: Question,
        answer: Answer,
        payment: Mapping[str, Any],
        declared: tuple[Word, ...] = (),
        part: Fraction = WHOLE,
    ) -> Any:
        later = replace(question, finish=answer)
        return self.batch.add(priced(session, later, payment, declared, part, self.batch.ahead()))

    def explaining(self) -> Ask:
        return Explain(self.batch)


class RowsOnly(Ask):
    """Refuses every question: a function that is given this frame returns an expression for one row."""

    answers_later = True

    def __init__(self, advice: str):
        self.advice = advice

    def ask(self, *question: Any, **words: Any) -> Any:
        raise Refused(self.advice)

    def explaining(self) -> Ask:
        return self

    def planning(self, batch: Batch[Any]) -> Ask:
        return self


def priced(
    session: Session,
    question: Question,
    payment: Mapping[str, Any],
    declared: tuple[Word, ...],
    part: Fraction = WHOLE,
    ahead: Budget | None = None,
) -> Asked:
    """The question with its price; ``ahead`` is the budget as it will be after what comes before in a batch."""
    words = checked(payment)
    if not question.outputs and isinstance(question, Query):
        raise BadValue("no columns are selected, so nothing is asked.")
    session.check_alive()
    unlimited = words.get("max_rows") is None and words.get("max_groups") is None
    unit = session.unit if unlimited else session.limited(words)
    if words.get("within") is not None:
        part = WHOLE  # the accuracy is that of the answer, whatever else is paid

    def at(epsilon: Fraction) -> Price:
        """What it would buy at this epsilon."""
        named = {**words, "epsilon": epsilon, "within": None, "n": None}
        return session.price(question, cast("Payment", named), part, ahead)

    price = session.price(question, words, part, ahead)
    typed: tuple[Any, ...] = tuple(words.get(word) for word in PRICED)
    if part != 1:
        typed = "half", *typed
    name, fresh = words.get("name"), bool(words.get("fresh"))
    return Asked(question, price, declared, unit, typed, name, fresh, at)


class Asking:
    """What verbs are asked of: a session, what of it is asked about, and what becomes of a question."""

    _session: Session
    _selection: Selection
    _mode: Ask

    def __init__(self, session: Session, selection: Selection, mode: Ask):
        vars(self).update(
            _session=session, _selection=selection, _mode=mode
        )  # as some kinds refuse other ways

    def _ask(
        self,
        question: Question,
        answer: Answer,
        payment: Mapping[str, Any],
        part: Fraction = WHOLE,
        declared: tuple[Word, ...] = (),
    ) -> Any:
        """Every question goes this way; ``declared`` are facts that it takes for public beside those of the selection."""
        words = self._selection.words + declared
        with np.errstate(all="ignore"):  # what a caller has set for numpy decides nothing about an answer
            return self._mode.ask(self._session, question, answer, payment, words, part)
