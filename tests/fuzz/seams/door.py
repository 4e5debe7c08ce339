"""The exact integers that reach the door of a session, as its own code makes them.

Nothing stands in for a session: its `_noise` is listened to, and gives back noise alone, the same for equal questions. So answers
are functions of public words, and whatever else differs between neighbours has been learned from rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.fuzz.compare import Noise, drawing
from tests.internals import Session

KEY = b"12345678"  # of the hash by which a person's groups are chosen


@dataclass
class Call:
    """Integers of one part of a plan, with the sensitivity that it declares."""

    plan: Any
    part: Any
    integers: Any
    keys: tuple[Any, ...] | None  # that the integers belong to, where nobody listed them
    per_person: int | None  # reports of each person, of which people stand in no order

    def known(self) -> Any:
        """The integers in a form that is equal where they are: found keys without the order in which they were found, and reports
        without the order of rows."""
        if self.keys is not None:
            columns = self.integers.reshape(-1, max(1, len(self.keys))).T.tolist()[: len(self.keys)]
            return {key: one for key, one in zip(map(repr, self.keys), columns, strict=True) if any(one)}
        if self.part.noise.by_row:
            return Counter(map(tuple, self.integers.reshape(-1, self.per_person or 1).tolist()))
        return self.integers.shape, self.integers.tolist()

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
            for a, b in zip(self.integers.ravel().tolist(), other.integers.ravel().tolist(), strict=True)
        ]


@dataclass
class Door:
    """What has reached it, line by line."""

    noise: Noise
    line: int = 0
    calls: list[Call] = field(default_factory=list)


@contextmanager
def listening(seed: int) -> Iterator[Door]:
    """Listen to all sessions."""
    door = Door(Noise(seed))
    own, key = Session._noise, Session._key

    def noise(
        self: Any, plan: Any, part: int, integers: Any, *, keys: Any = None, width: int | None = None
    ) -> Any:
        one = plan.parts[part]
        unit = plan_unit(self)
        per_person = unit.reach(None)[0] if unit.people else None
        made = np.array(integers, copy=True)
        door.calls.append(Call(plan, one, made, None if keys is None else tuple(keys), per_person))
        if keys is not None:  # far below any threshold: rows decide which keys there are
            wide = made.dtype == object or one.noise.form(()).kind == "O"
            return np.full(made.shape, -(2**400) if wide else -(2**56), dtype=object if wide else np.int64)
        door.noise.line(door.line * 100 + len(door.calls))
        return own(self, plan, part, np.zeros_like(made), width=width)

    Session._noise = noise
    Session._key = lambda self: KEY
    try:
        with drawing(door.noise):
            yield door
    finally:
        Session._noise, Session._key = own, key


def plan_unit(session: Any) -> Any:
    """Whose rows are reported together."""
    return session.unit
