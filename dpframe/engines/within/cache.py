"""Every `Within` of one frame: computed when it is first asked for, and cached while there is
room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import RLock

import numpy as np

from dpframe._cells.columns import Vector
from dpframe._expr import WITHIN, Column, Expr, Key, Within
from dpframe.engines.expressions import ColumnOf, evaluate, predicate
from dpframe.engines.people import Codes
from dpframe.engines.within.cells import Cells, PerPerson
from dpframe.engines.within.rows import RowsByPerson

_Arrangement = tuple[tuple[Column, ...], Expr | None, tuple[Expr, ...], tuple[Key, ...]]


class WithinCache:
    """The values of `Within` on the rows of one frame.

    A question is asked block by block, so all values that it needs are cached while it is asked.
    Between questions the oldest are dropped until the others fit into the room. Threads that ask
    for the same value wait for the first of them.
    """

    def __init__(
        self,
        column: ColumnOf,
        whose: Callable[[tuple[Column, ...]], Codes],
        room: Callable[[], float] = lambda: np.inf,
    ):
        """Set up an empty cache of what is computed over each person's rows in one frame.

        ``column`` returns the cells of a column, and ``whose`` the number of each row's person.
        ``room`` returns how many bytes may be kept between questions.
        """
        self._column, self._whose, self._room = column, whose, room
        self._vectors: OrderedDict[Within, Vector | PerPerson] = OrderedDict()
        self._arrangements: OrderedDict[_Arrangement, RowsByPerson] = OrderedDict()
        self._lock = RLock()

    def compute(self, e: Within) -> Vector | PerPerson:
        """Return the value of a computation over each person's rows, in each row of the frame.

        It is computed the first time, and then kept in the cache.
        """
        with self._lock:
            found = self._vectors.pop(e, None)
            if found is None:
                cells = Cells(self, e)
                with np.errstate(all="ignore"):  # no value may raise or warn
                    found = getattr(cells, WITHIN[e.how].compute)(*e.args)
            self._vectors[e] = found
            return found

    def trim(self) -> None:
        """Drop the oldest results until the others fit into the memory that may be kept.

        It is called before each question.
        """
        with self._lock:
            while (
                len(self._vectors) > 1
                and sum(v.nbytes for v in self._vectors.values()) > self._room()
            ):
                self._vectors.popitem(last=False)
            while len(self._arrangements) > 1:
                self._arrangements.popitem(last=False)

    def evaluate(self, expr: Expr, rows: int) -> Vector:
        """Return the value of an expression in each of the ``rows`` rows of the frame."""
        return evaluate(expr, self._column, slice(0, rows))

    def arrange(self, e: Within, order: tuple[Key, ...]) -> RowsByPerson:
        """Return the rows that a computation over each person's rows looks at, sorted.

        They are sorted by person, and then by the keys in ``order``. ``e`` has the filter and the
        groups. The last two arrangements are cached, since steps within a person come in company.
        """
        arrangement = (e.people, e.where, e.by, order)
        rows = self._arrangements.pop(arrangement, None)
        if rows is None:
            whose = self._whose(e.people)
            asked = (
                None if e.where is None else predicate(e.where, self._column, slice(0, len(whose)))
            )
            rows = RowsByPerson(self, whose, asked, e.by, order)
        self._arrangements[arrangement] = rows
        while len(self._arrangements) > 2:
            self._arrangements.popitem(last=False)
        return rows

    def clear(self) -> None:
        """Drop everything that is cached."""
        self._vectors.clear()
        self._arrangements.clear()
