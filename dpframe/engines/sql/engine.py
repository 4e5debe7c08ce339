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
    """Counts in a database.

    ``relation`` is what stands after FROM, written by whoever knows the source: never by an
    analyst. ``schema`` is a frame without rows whose columns, by their names, are the relation's,
    with the dtypes that `fallback` reads them in. Both read the same rows, and a table has at most
    as many as the library's sums allow for. Questions about people go through the table in so many
    passes as ``passes`` says, each over some of the people, for what would not fit into memory at
    once: where several statements can read one state of the data.
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
        """Return the primitive sums of each group, as int64."""
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
        """Return the combinations of values that count for somebody, as texts, and their sums."""
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
        """All rows, slice by slice, as the other engine reads them."""
        yield from self._fallback.slices(exprs, where, unit)

    def people(self, unit: Unit) -> int:
        """Return the number of people who have a row."""
        try:
            statement = people_who_are(self._compiler(), self._relation, unit)
        except Unwritten:
            return self._fallback.people(unit)
        (((people,),),) = self._rows([statement])
        return int(people)

    def sketches(self, unit: Unit, secret: bytes) -> Sketches:
        """Return what a ledger recognizes these people and this table by."""
        return self._fallback.sketches(unit, secret)

    def close(self) -> None:
        """Lets go of the data."""
        self._fallback.close()

    def _compiler(self) -> Compiler:
        return Compiler(self._database.dialect, self._schema, self._unread)

    def _find_refused(self) -> frozenset[int]:
        """Return the columns that the database does not know, or takes for other than their dtypes
        say.

        No row is read for it.
        """
        empty = self._schema.dtypes
        columns = [Column.of(i, name, empty.iloc[i]) for i, name in enumerate(self._schema)]

        def refused(some: list[Column]) -> bool:
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
        """Return whether the database is asked, by the question, the dtypes and the dialect alone.

        If not, all of the question goes to the fallback, so that it reads one state of the data.
        """
        return bool(self._plan_passes(scope, primitives, unit))

    def _plan_passes(
        self, scope: Scope, primitives: set[Primitive], unit: Unit
    ) -> list[list[Statement]]:
        """Return the statements of each pass."""
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
        passes = self._passes() if unit.people and self._database.dialect.snapshots else 1
        return (
            [None]
            if passes == 1
            else [PeopleShare(unit.people, place, passes) for place in range(passes)]
        )

    def _read_one_state(self, planned: list[Statement]) -> bool:
        """Return whether there are statements, and they read one state of the data."""
        return len(planned) == 1 or (len(planned) > 1 and self._database.dialect.snapshots)

    def _rows(self, planned: list[Statement]) -> list[Rows]:
        """Return the rows of statements, all of one state of the data."""
        len(self._fallback)  # which refuses a table of more rows than sums allow for
        found: list[Rows] | None = None
        cause: Exception | None = None
        registered: list[str] = []
        try:
            found = self._run(planned, registered)
        except Exception as error:
            # Its text may hold a cell, and it is no context of what is raised below.
            cause = error if debugging() else None
        for name in registered:
            with suppress(Exception):  # of a connection that is gone nothing is kept
                self._database.forget(name)
        if found is None:
            raise DataError(
                "the database failed while it read the data. Why is not told, since it may depend on people's cells; its own "
                "log may say so to its owner."
            ) from cause
        return found

    def _run(self, planned: list[Statement], registered: list[str]) -> list[Rows]:
        for statement in planned:
            for name, listing in statement.listings.items():
                registered.append(name)
                self._database.register(name, listing)
        with self._database.snapshot() if len(planned) > 1 else nullcontext():
            return [list(self._database.fetch(one.sql, one.parameters)) for one in planned]


def _text(kind: str, cell: Any) -> str | None:
    """Return the text of a key that a database returned."""
    if cell is None:
        return None
    plain: dict[str, Callable[[Any], Any]] = {
        "integer": int,
        "double": float,
        "bool": bool,
        "text": str,
    }
    return text_of(plain[kind](cell))
