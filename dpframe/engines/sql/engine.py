"""An engine that hands questions to a database, and to another engine what no SQL is written for.

*Formal guarantee.* Whether a question goes to the database is a function of the question, of the
dtypes of the columns and of the kind of database, and of no cell. What the database is asked are
sums of integers, by the rules of `dpframe.engines.sql.dialects`; who counts, and for how much, is
what `dpframe.engines.limits` has, computed from a person's own rows and the same hash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from typing import Any

import pandas as pd

from dpframe._cells.texts import order_of, text_of
from dpframe._errors import DataError, debugging
from dpframe._expr import Column, Expr
from dpframe._groups.unit import Unit
from dpframe._statistics.base import Integers, Persons, Primitive
from dpframe._statistics.engine import PEOPLE, Engine, RowSlice, Scope, Sketches, Texts
from dpframe.engines.sql.databases import Database, Rows
from dpframe.engines.sql.expressions import Compiler, Unwritten, held_as
from dpframe.engines.sql.selections import PeopleShare, Statement
from dpframe.engines.sql.statements import found_keys, people_who_are, statements


class SqlEngine:
    """Engine that lets a database compute the integers of a question.

    ``relation`` is the text after FROM, written by the code that reads the source and never by an
    analyst. ``schema`` is a frame without rows. Its columns have the names of the relation's, and
    the dtypes in which ``fallback`` reads them.

    ``fallback`` is the engine that answers what no SQL is written for. Both read the same rows, and
    a table has at most as many as the library's sums allow for.

    ``passes`` returns into how many shares people are split, if all would not fit into memory at
    once. Each pass over the table counts one share. This needs a database where several statements
    can read one state of the data.
    """

    def __init__(
        self,
        database: Database,
        relation: str,
        schema: pd.DataFrame,
        key: bytes,
        fallback: Engine,
        *,
        passes: Callable[[], int] = lambda: 1,
    ):
        """Keep the database and the fallback, and find the columns that the database cannot read.

        ``relation`` is the text after FROM. ``schema`` is a frame without rows, with the columns of
        the relation. ``fallback`` is the engine that answers what no SQL is written for. ``passes``
        returns into how many shares people are split. ``key`` seeds the hash that decides which
        groups of a person count.
        """
        self._passes = passes
        self._database, self._relation, self._schema = database, relation, schema.iloc[:0]
        self._key, self._fallback = key, fallback
        self._unread = self._find_refused()

    def __len__(self) -> int:
        ((rows,),) = self._rows([Statement(f"SELECT COUNT(*) FROM {self._relation} AS r", [])])[0]
        return int(rows)

    def reduce(
        self, scope: Scope, primitives: set[Primitive], unit: Unit
    ) -> dict[Primitive, Integers]:
        """Return the integer sums that a question needs, by primitive and group, as int64.

        The database computes all of them, or the fallback engine does. ``scope`` has the condition
        and the grouping, and ``unit`` the columns and limits of a person. Each pass is over a share
        of the people and has the same statements (``kinds``). The rows that a statement returns in
        all passes are put together.
        """
        planned = self._plan_passes(scope, primitives, unit)
        if not planned:
            return self._fallback.reduce(scope, primitives, unit)
        returned, kinds = (
            self._rows([statement for one in planned for statement in one]),
            len(planned[0]),
        )
        found: dict[Primitive, Integers] = {}
        for i, statement in enumerate(planned[0]):
            found |= statement.read([row for rows in returned[i::kinds] for row in rows])
        return found

    def occurring(
        self,
        by: Sequence[Expr],
        where: Expr | None,
        unit: Unit,
        primitives: frozenset[Primitive] | set[Primitive] = PEOPLE,
    ) -> tuple[Texts, dict[Primitive, Integers]]:
        """Return the group keys that occur in the data, as texts, and the sums of each key.

        Only keys for which some person counts are returned, in sorted order. ``by`` are the
        grouping expressions, and ``where`` is the condition on rows.
        """
        asked = {*primitives, Persons()}
        try:
            planned = [
                found_keys(
                    self._compiler(), self._relation, by, where, asked, unit, self._key, part
                )
                for part in self._parts(unit)
            ]
        except Unwritten:
            planned = []
        if not self._read_one_state(planned):
            return self._fallback.occurring(by, where, unit, primitives)
        returned = [row for rows in self._rows(planned) for row in rows]
        named = [(tuple(map(_text, planned[0].kinds, row)), row) for row in returned]
        known = {texts for texts, _ in named if None not in texts}
        order: Any = sorted(
            known, key=lambda texts: [order_of(text) for text in texts if text is not None]
        )
        places = {texts: place for place, texts in enumerate(order)}
        rows = [(places[texts], *row[len(by) :]) for texts, row in named if texts in places]
        return order, planned[0].read(rows, len(order))

    def slices(self, exprs: Sequence[Expr], where: Expr | None, unit: Unit) -> Iterator[RowSlice]:
        """Yield all rows slice by slice, as the fallback reads them."""
        yield from self._fallback.slices(exprs, where, unit)

    def people(self, unit: Unit) -> int:
        """Return the number of people who have a row, counted by the database if it can be."""
        try:
            statement = people_who_are(self._compiler(), self._relation, unit)
        except Unwritten:
            return self._fallback.people(unit)
        (((people,),),) = self._rows([statement])
        return int(people)

    def sketches(self, unit: Unit, secret: bytes) -> Sketches:
        """Return the sketches by which a ledger recognizes these people and this table."""
        return self._fallback.sketches(unit, secret)

    def close(self) -> None:
        """Close the fallback, which reads the same source."""
        self._fallback.close()

    def _compiler(self) -> Compiler:
        return Compiler(self._database.dialect, self._schema, self._unread)

    def _find_refused(self) -> frozenset[int]:
        """Return the positions of columns that the database cannot read as their dtypes say.

        It asks for each column with a condition that no row meets, so no row is read.
        """
        empty = self._schema.dtypes
        columns = [Column.of(i, name, empty.iloc[i]) for i, name in enumerate(self._schema)]

        def refused(some: list[Column]) -> bool:
            """Return whether the database refuses a query that selects these columns."""
            compiler = Compiler(self._database.dialect, self._schema)
            terms = [compiler.term(column).sql for column in some]
            sql = f"SELECT {', '.join(terms)} FROM {self._relation} AS r WHERE 1 = 0"
            with suppress(Exception):
                self._database.fetch(*compiler.whole(sql))
                return False
            return True

        held = [
            c
            for c in columns
            if isinstance(c.name, str) and held_as(empty.iloc[c.position]) is not None
        ]
        known = [c for c in held if "\0" not in str(c.name)]
        if not known or not refused(known):
            return frozenset()
        return frozenset(c.position for c in known if refused([c]))

    def writes(self, scope: Scope, primitives: set[Primitive], unit: Unit) -> bool:
        """Return whether the database answers a question, or else the fallback engine does.

        The question, the dtypes and the dialect alone decide that. If SQL is missing for any
        primitive, the fallback answers all. So one question reads one state of the data.

        ``scope`` has the condition and the grouping, and ``unit`` the columns and limits of a
        person.
        """
        return bool(self._plan_passes(scope, primitives, unit))

    def _plan_passes(
        self, scope: Scope, primitives: set[Primitive], unit: Unit
    ) -> list[list[Statement]]:
        """Return the statements of each pass over the table, or an empty list if the fallback
        answers.

        A pass counts one share of the people, and the caller adds the sums. ``scope`` has the
        condition and the grouping, and ``unit`` the columns and limits of a person.
        """
        try:
            planned = [
                statements(self._compiler, self._relation, scope, primitives, unit, self._key, part)
                for part in self._parts(unit)
            ]
        except Unwritten:
            return []
        return (
            planned
            if self._read_one_state([statement for one in planned for statement in one])
            else []
        )

    def _parts(self, unit: Unit) -> list[PeopleShare | None]:
        """Return the shares of people that are counted in separate passes.

        The list is ``[None]`` if one pass counts everybody.
        """
        passes = self._passes() if unit.people and self._database.dialect.snapshots else 1
        return (
            [None]
            if passes == 1
            else [PeopleShare(unit.people, place, passes) for place in range(passes)]
        )

    def _read_one_state(self, planned: list[Statement]) -> bool:
        """Return whether there are statements, and all can read the same state of the data."""
        return len(planned) == 1 or (len(planned) > 1 and self._database.dialect.snapshots)

    def _rows(self, planned: list[Statement]) -> list[Rows]:
        """Run statements on one state of the data and return the rows of each.

        A failure of the database becomes a `DataError` that does not quote it, since its text may
        hold a cell.
        """
        len(self._fallback)  # which refuses a table of more rows than sums allow for
        found: list[Rows] | None = None
        cause: Exception | None = None
        registered: list[str] = []
        try:
            found = self._run(planned, registered)
        except Exception as error:
            # The error's text may hold a cell, so it is not shown unless debugging.
            cause = error if debugging() else None
        for name in registered:
            with suppress(Exception):  # the connection may be lost
                self._database.forget(name)
        if found is None:
            raise DataError(
                "the database failed while it read the data. Why is not told, since it may depend on people's cells; its own "
                "log may say so to its owner."
            ) from cause
        return found

    def _run(self, planned: list[Statement], registered: list[str]) -> list[Rows]:
        """Register the lists of statements, run the statements, and return the rows of each.

        Names of registered lists are appended to ``registered``, so that the caller can drop them
        after an error.
        """
        for statement in planned:
            for name, listing in statement.listings.items():
                registered.append(name)
                self._database.register(name, listing)
        with self._database.snapshot() if len(planned) > 1 else nullcontext():
            return [list(self._database.fetch(one.sql, one.parameters)) for one in planned]


def _text(kind: str, cell: object) -> str | None:
    """Return a group key that a database returned as text; None for null.

    Keys are compared and sorted in this form. ``kind`` is the type of the key.
    """
    if cell is None:
        return None
    plain: dict[str, Callable[[Any], Any]] = {
        "integer": int,
        "double": float,
        "bool": bool,
        "text": str,
    }
    return text_of(plain[kind](cell))
