"""Every `Within` of one frame: worked out once, when it is first looked at, and kept while there is
room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import RLock
from typing import Any

import numpy as np

from dpframe._cells.columns import Vector
from dpframe._expr import Expr, Key, Within
from dpframe.engines.expressions import ColumnOf, evaluate, predicate
from dpframe.engines.people import Codes
from dpframe.engines.within.layout import Cells, Layout, PerPerson
from dpframe.engines.within.verbs import MAKE


class Kept:
    """The values of `Within` on the rows of one frame.

    All of a question's are kept while it is asked, since it is asked block by block; between
    questions as many as there is room for, the oldest first to go. Threads that ask for one value
    wait for the first of them.
    """

    def __init__(
        self,
        column: ColumnOf,
        whose: Callable[[Any], Codes],
        room: Callable[[], float] = lambda: np.inf,
    ):
        self._column, self._whose, self._room = column, whose, room
        self._vectors: OrderedDict[Within, Vector | PerPerson] = OrderedDict()
        self._layouts: OrderedDict[Any, Layout] = OrderedDict()
        self._lock = RLock()

    def vector(self, e: Within) -> Vector | PerPerson:
        """The value in each row of the frame."""
        with self._lock:
            known = self._vectors.pop(e, None)
            if known is None:
                with np.errstate(all="ignore"):  # no value may raise or warn
                    known = MAKE[e.how](Cells(self, e), e)
            self._vectors[e] = known
            return known

    def trim(self) -> None:
        """Lets go of what the room is too small for, before the next question."""
        with self._lock:
            while (
                len(self._vectors) > 1
                and sum(v.nbytes for v in self._vectors.values()) > self._room()
            ):
                self._vectors.popitem(last=False)
            while len(self._layouts) > 1:
                self._layouts.popitem(last=False)

    def value(self, expr: Expr, rows: int) -> Vector:
        """The value of another expression in each row."""
        return evaluate(expr, self._column, slice(0, rows))

    def layout(self, e: Within, order: tuple[Key, ...]) -> Layout:
        """The rows that count, by person and in order; the last few are kept, since verbs come in
        company."""
        known = (e.people, e.where, e.by, order)
        layout = self._layouts.pop(known, None)
        if layout is None:
            whose = self._whose(e.people)
            asked = (
                None if e.where is None else predicate(e.where, self._column, slice(0, len(whose)))
            )
            layout = Layout(self, whose, asked, e.by, order)
        self._layouts[known] = layout
        while len(self._layouts) > 2:
            self._layouts.popitem(last=False)
        return layout

    def clear(self) -> None:
        """Lets go of everything."""
        self._vectors.clear()
        self._layouts.clear()
