"""Questions declared in advance: paid as one debit, answered together."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from dpframe._errors import SessionError, warnings_after
from dpframe._ledger.accountant import Label
from dpframe._plans.budget import Budget, make_following_budget
from dpframe._session.planned import Planned
from dpframe._session.session import PricedQuestion, Session
from dpframe.accounting._filter import Price


class Planning(Protocol):
    """A frame with a variant whose questions go to a batch."""

    def _planning(self, batch: Batch[Any]) -> Self: ...


Frame = TypeVar("Frame", bound=Planning)


class Batch(Generic[Frame]):
    """Questions that ``with p.plan_ahead() as batch:`` collects, pays in one debit, and answers
    when the block ends. Nothing is charged if the block fails.

    Inside the block nothing new is asked of the session itself.
    """

    def __init__(self, frame: Frame, session: Session):
        """Make an empty batch. ``frame`` is the frame of the session that will be asked."""
        self._frame = frame
        self._session = session
        self._questions: list[tuple[PricedQuestion, Planned]] = []
        self._ended = False
        # The state it follows, and the budget after what is priced.
        self._ahead: tuple[Any, Budget] | None = None
        self._forecast_labels: set[Label] = set()
        self._priced = 0
        self._prices: dict[Any, Price] = {}

    def ahead(self) -> Budget:
        """Return the budget as it will stand when all questions of this batch are charged.

        It prices the next question of the batch. Questions are charged in the forecast once; a
        change of the real budget starts it anew.
        """
        session = self._session
        now = session.budget
        if self._ahead is None or self._ahead[0] != now.state:
            self._ahead, self._forecast_labels, self._priced = (now.state, now), set(), 0
        charges = []
        for place, (asked, _) in enumerate(self._questions[self._priced :], self._priced):
            label, charge = session.forecast_charge(asked, place)
            if charge is not None and label not in self._forecast_labels:
                charges.append(charge)
            self._forecast_labels.add(label)
        self._priced = len(self._questions)
        self._ahead = now.state, make_following_budget(self._ahead[1], charges)
        return self._ahead[1]

    def add(self, asked: PricedQuestion) -> Planned:
        """Add a priced question to the batch, and return the placeholder that will carry its
        answer.

        The same question twice in one batch keeps the price of the first time.
        """
        if self._ended:
            raise SessionError(
                "this batch has ended: what it asked is answered, and no more can be added."
            )
        # The same words in one batch are one question, whatever its price would be after what came
        # between.
        words = (
            asked.question,
            asked.unit,
            asked.paid,
            len(self._questions) if asked.fresh else None,
        )
        asked = asked.change(price=self._prices.setdefault(words, asked.price))
        place = Planned(str(asked.question))
        self._questions.append((asked, place))
        return place

    def __repr__(self) -> str:
        state = "ended" if self._ended else f"{len(self._questions)} questions so far"
        return f"questions declared in advance, {state}: with p.plan_ahead() as batch: answer = batch.count()"

    def __enter__(self) -> Frame:
        """Return the frame whose questions go to this batch instead of being answered at once.

        A batch that was used before is refused.
        """
        if self._ended or self._questions:
            raise SessionError("a batch is used once: take a new plan_ahead().")
        frame = self._frame._planning(self)
        self._session.base.planning_threads.append(threading.get_ident())
        return frame

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Charge all collected questions in one debit, and fill their placeholders with the
        answers.

        Nothing is asked or charged if the block raised an error, or collected no question.
        """
        self._ended = True
        self._session.base.planning_threads.remove(threading.get_ident())
        if kind is not None or not self._questions:
            return
        with np.errstate(all="ignore"):
            releases = self._session.ask([asked for asked, _ in self._questions], batch=True)
            with warnings_after():
                for (asked, place), release in zip(self._questions, releases, strict=True):
                    answer = asked.question.answer(release)
                    self._session.base.given.append(answer)
                    place._fill(answer)
