"""The engine of pandas frames: primitives in, exact integers out. It knows no price and no noise.

`reading` has the cells, `groups` the group of each row, `row_sums` the sums over rows, and
`person_sums` those over people with many rows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.columns import Vector
from dpframe._expr import Expr
from dpframe._groups.unit import Unit
from dpframe._statistics.base import Distincts, Integers, Persons, Primitive
from dpframe._statistics.engine import PEOPLE, RowSlice, Scope, Sketches, Texts
from dpframe.engines.fingerprints import sketches
from dpframe.engines.groups import GroupFinder
from dpframe.engines.keys import KeyCodes, Occurring, combine_keys, number_keys
from dpframe.engines.limits import list_distinct_pairs
from dpframe.engines.people import widen
from dpframe.engines.person_sums import PairFinder, sum_people
from dpframe.engines.reading import FrameReader, QuestionReader
from dpframe.engines.row_sums import sum_rows

ROWS = Unit()


class PandasEngine:
    """Reads one frame, which nobody else may write to: the snapshot that a session keeps.

    The groups of a person that count are chosen by hashes with a key.
    """

    def __init__(self, frame: pd.DataFrame, key: bytes = b""):
        """Prepare to read a frame that nobody else may write to.

        ``key`` seeds the hashes that choose in which groups a person counts.
        """
        self.table: FrameReader = FrameReader(frame, key, len(frame))
        self.groups: GroupFinder = GroupFinder(self.table)
        self._pairs = PairFinder(self.table, self.groups)
        self._keys: OrderedDict[Expr, KeyCodes] = OrderedDict()

    def __len__(self) -> int:
        return self.table.rows

    def reduce(
        self, query: Scope, primitives: set[Primitive], unit: Unit = ROWS
    ) -> dict[Primitive, Integers]:
        """Return the sums of each group, within the contribution limits of the privacy unit.

        The ``primitives`` are the sums that are asked for, such as rows or powers of a column.
        ``query`` has the filter and the groups.
        """
        if self.table.within is not None:
            self.table.within.trim()
        found: dict[Primitive, Integers] = {}
        for p in primitives:
            if isinstance(p, Distincts):
                found[p] = self._count_distinct(p.expr, query, unit)
        sums = primitives - found.keys() if found else primitives
        if sums and unit.people:
            found |= sum_people(self.table, self.groups, self._pairs, query, sums, unit)
        elif sums:
            found |= sum_rows(self.table, self.groups, query, sums)
        return found

    @np.errstate(all="ignore")
    def occurring(
        self,
        by: Sequence[Expr],
        where: Expr | None,
        unit: Unit,
        primitives: frozenset[Primitive] | set[Primitive] = PEOPLE,
    ) -> tuple[Texts, dict[Primitive, Integers]]:
        """Return the combinations of values that count for somebody, and the sums of each.

        It is called to find group keys that nobody listed, by the expressions in ``by``. A person
        counts in a limited number of combinations, chosen by hashes of the values. The combinations
        are given as texts.
        """
        read = QuestionReader(self.table)
        columns, asked = [self._number_keys(e, read) for e in by], {*primitives, Persons()}
        if len(columns) == 1 and not unit.people:
            texts: Texts = [(text,) for text in columns[0].texts.tolist()]
            places = Scope(where, (columns[0].by_place(tuple(by)),))
            by_place = sum_rows(self.table, self.groups, places, asked)
            sums = {p: columns[0].by_key(one) for p, one in by_place.items()}
        else:
            codes, texts = combine_keys(columns)
            scope = Scope(where, (Occurring(tuple(by), codes + 1, len(texts), texts),))
            if unit.people:
                sums = sum_people(self.table, self.groups, self._pairs, scope, asked, unit)
            else:
                sums = sum_rows(self.table, self.groups, scope, asked)
        # A value that counts for nobody is no key, although it is in the frame. One person may
        # have any number of such values.
        some = np.flatnonzero(sums[Persons()])
        if len(some) == len(texts):
            return texts, sums
        return [texts[i] for i in some.tolist()], {p: one[..., some] for p, one in sums.items()}

    def _number_keys(self, expr: Expr, read: QuestionReader) -> KeyCodes:
        """Return the numbered keys of an expression, computed once and kept while there is room."""
        known = self._keys.pop(expr, None) or number_keys(read.evaluate_all(expr))
        self._keys[expr] = known
        while sum(one.nbytes for one in self._keys.values()) > self.table.room:
            self._keys.popitem(last=False)
        return known

    def slices(self, exprs: Sequence[Expr], where: Expr | None, unit: Unit) -> Iterator[RowSlice]:
        """Yield all rows slice by slice, with the values of some expressions.

        Each slice also has a mask of the rows where the condition ``where`` holds, and the number
        of each row's person.
        """
        read = QuestionReader(self.table)
        if self.table.within is not None:
            self.table.within.trim()
        people = self.table.find_people(unit.people).codes if unit.people else None
        for rows in self.table.blocks():
            mask = None if where is None else read.select(where, rows)
            vectors = [read.evaluate(e, rows) for e in exprs]
            own = None if people is None else widen(people[rows])
            yield RowSlice(vectors, mask, own, len(self))

    def people(self, unit: Unit) -> int:
        """Return the number of people, as the privacy unit names them, who have a row."""
        codes = self.table.find_people(unit.people).codes
        return len(np.unique(codes[codes >= 0]))

    def sketches(self, unit: Unit, secret: bytes) -> Sketches:
        """Return what a ledger recognizes these people and this table by."""
        return sketches(self.table.frame, [c.position for c in unit.people], secret)

    def _count_distinct(self, expr: Expr, query: Scope, unit: Unit) -> Integers:
        return np.bincount(self.find_distinct(expr, query, unit)[0], minlength=query.groups)

    @np.errstate(all="ignore")
    def find_distinct(
        self, expr: Expr, query: Scope, unit: Unit
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Vector]:
        """Return the distinct (group, value) pairs that count, of an expression.

        They are given by their groups, by a row of each, and by the values of all rows.
        """
        read = QuestionReader(self.table)
        values = read.evaluate_all(expr)
        asked = None if query.where is None else read.select_all(query.where)
        people = self.table.find_people(unit.people) if unit.people else None
        buckets = self.groups.find_buckets(query.by)
        pairs = list_distinct_pairs(
            values, asked, buckets, people, unit.groups or 0, self.table.key
        )
        return *pairs, values

    def close(self) -> None:
        """Forget the frame, and everything that was computed from it."""
        self.table.close()
        self.groups.clear()
        self._pairs.clear()
        self._keys.clear()
