"""The exact integers that reach the door of a session, as its own code makes them.

Nothing stands in for a session: its `_noise` is listened to, and gives back noise alone, the same for equal questions. So answers
are functions of public words, and whatever else differs between neighbours has been learned from rows.

A line is asked whole once: labelled, planned, paid, read, answered. Each time that it is asked again of other rows, places, sizes
or threads, its questions must be equal; then their plans are those of the first time, which are functions of public words. So the
session's own code reads the data for the same plan, and gives out what it gave out the first time: as `audit.replay` does.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from dpframe._session.session import Session
from tests.fuzz.compare import Noise, drawing

KEY = b"12345678"  # of the hash by which a person's groups are chosen


@dataclass
class Call:
    """Integers of one part of a plan, with the sensitivity that it declares."""

    plan: Any
    part: Any
    integers: Any
    keys: tuple[Any, ...] | None  # that the integers belong to, where nobody listed them
    per_person: int | None  # reports of each person, of which people stand in no order
    output: Any = None  # noise alone

    def known(self) -> Any:
        """The integers in a form that is equal where they are: found keys without the order in which they were found, and reports
        without the order of rows."""
        if self.keys is not None:
            columns = self.integers.reshape(-1, max(1, len(self.keys))).T.tolist()[: len(self.keys)]
            return {
                key: one for key, one in zip(map(repr, self.keys), columns, strict=True) if any(one)
            }
        if self.part.noise.by_row:
            return Counter(map(tuple, self.integers.reshape(-1, self.per_person or 1).tolist()))
        return self.integers.shape, self.integers.tolist()

    def equals(self, other: Call) -> bool:
        """Whether the integers of another call are the same."""
        if self.keys is None and not self.part.noise.by_row:
            one, two = self.integers, other.integers
            return one.shape == two.shape and bool(np.array_equal(one, two))
        return bool(self.known() == other.known())

    def moved(self, other: Call) -> list[int]:
        """What the integers of another call are more than these, one by one."""
        one, two = self.known(), other.known()
        if self.keys is not None:
            columns = max((len(c) for c in (*one.values(), *two.values())), default=0)
            none = [0] * columns
            return [
                b - a
                for key in {**one, **two}
                for a, b in zip(one.get(key, none), two.get(key, none), strict=True)
            ]
        if self.part.noise.by_row:
            return [max((one - two).total(), (two - one).total())]
        return [
            int(b) - int(a)
            for a, b in zip(
                self.integers.ravel().tolist(), other.integers.ravel().tolist(), strict=True
            )
        ]


class Enough(BaseException):
    """All questions of a line were read."""


class OtherQuestions(BaseException):
    """A line does not ask what it asked the first time."""


@dataclass
class PricedQuestion:
    """One call of `Session.ask`: its questions, what was read for them, and what was released."""

    session: Any
    questions: list[Any]
    units: list[Any]
    runs: list[tuple[Any, Any, Any]] = field(default_factory=list)  # question, plan, unit
    releases: list[Any] | None = None


@dataclass
class Door:
    """What has reached it, line by line."""

    noise: Noise
    line: int = 0
    calls: list[Call] = field(default_factory=list)
    asked: list[PricedQuestion] = field(default_factory=list)
    tape: list[PricedQuestion] | None = None  # of the first time, where a line is read again
    outputs: list[Call] = field(default_factory=list)  # of the first time
    unit: Any = None  # whose rows are read
    exact: bool = False  # integers in place of noise, where noise is added to them

    def begin(self, number: int) -> None:
        """Listen to another line."""
        self.line, self.calls, self.asked, self.tape, self.outputs = number, [], [], None, []
        self.noise.line(number * 1000)


@contextmanager
def listening(seed: int) -> Iterator[Door]:
    """Listen to all sessions."""
    door = Door(Noise(seed))
    own, key = Session._noise, Session.noise_key
    asks, runs, names = Session.ask, Session.run_question, Session.draw_row_names

    def noise(
        self: Any,
        plan: Any,
        part: int,
        integers: Any,
        *,
        keys: Any = None,
        width: int | None = None,
    ) -> Any:
        one = plan.parts[part]
        unit = self.unit if door.unit is None else door.unit
        per_person = unit.reach(None)[0] if unit.people else None
        made = np.array(integers, copy=True)
        place = len(door.calls)
        call = Call(plan, one, made, None if keys is None else tuple(keys), per_person)
        door.calls.append(call)
        if keys is not None:  # far below any threshold: rows decide which keys there are
            wide = made.dtype == object or one.noise.form(()).kind == "O"
            return np.full(
                made.shape, -(2**400) if wide else -(2**56), dtype=object if wide else np.int64
            )
        if place < len(door.outputs) and door.outputs[place].integers.shape == made.shape:
            return door.outputs[place].output.copy()
        door.noise.line(door.line * 100 + place + 1)
        call.output = own(self, plan, part, np.zeros_like(made), width=width)
        if door.exact and adds(one):
            return made.astype(call.output.dtype)
        return call.output.copy()

    def ask(self: Any, questions: Any, batch: bool = False) -> Any:
        wanted = [one.question for one in questions]
        if door.tape is None:
            one = PricedQuestion(self, wanted, [one.unit for one in questions])
            door.asked.append(one)
            one.releases = asks(self, questions, batch)
            return one.releases
        place = len(door.asked)
        if place >= len(door.tape) or door.tape[place].questions != wanted:
            raise OtherQuestions
        door.asked.append(door.tape[place])
        engine = (
            self.data.engine(self.base.noise_key) if self.data.reader is None else self.data.reader
        )
        for question, plan, unit in door.tape[place].runs:
            door.unit = unit
            with np.errstate(all="ignore"):
                runs(self.base, question, engine, plan, unit)
        if place + 1 == len(door.tape):
            raise Enough
        return door.tape[place].releases

    def run(self: Any, question: Any, engine: Any, plan: Any, unit: Any) -> Any:
        door.unit = unit
        if door.asked:
            door.asked[-1].runs.append((question, plan, unit))
        return runs(self, question, engine, plan, unit)

    def draw_names(self: Any) -> Any:
        return names(self) if self.data.source is not None else names_of(self.snapshot)

    Session.draw_row_names = draw_names
    Session._noise = noise
    Session.noise_key = lambda self: KEY
    Session.ask, Session.run_question = ask, run
    try:
        with drawing(door.noise):
            yield door
    finally:
        Session._noise, Session.noise_key = own, key
        Session.ask, Session.run_question, Session.draw_row_names = asks, runs, names


def names_of(frame: pd.DataFrame) -> Any:
    """A name of each row, by which a person's values are drawn: it goes with the row wherever that stands."""
    seen: Counter[str] = Counter()
    found = []
    for row in frame.itertuples(index=False, name=None):
        text = repr(row)
        seen[text] += 1
        digest = hashlib.blake2b(f"{text} {seen[text]}".encode(), digest_size=8).digest()
        found.append(int.from_bytes(digest, "little") >> 1)
    return np.array(found, dtype=np.int64)


def adds(part: Any) -> bool:
    """Whether noise is added to the integers of a part, an entry each."""
    return part.noise.norm.name in ("l1", "l2") and not part.noise.by_row
