"""What is selected of a row, the groups that it is in, and what is summed: the parts that
statements are made of.

*Formal guarantee.* What is selected of a row is a function of that row; which group it is in, one
of its own cells and of the public list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from dpframe._expr import Column, Expr
from dpframe._groups.combinations import RestBy
from dpframe._groups.keys import BinBy, By, KeyBy
from dpframe._sizes import SIZES
from dpframe._statistics.base import (
    Bids,
    Integers,
    Persons,
    Powers,
    Primitive,
    Products,
    Rows,
    Trues,
)
from dpframe.engines.people import FOLD, PRIME
from dpframe.engines.sql.databases import Listing
from dpframe.engines.sql.databases import Rows as Returned
from dpframe.engines.sql.dialects import OURS, Dialect
from dpframe.engines.sql.expressions import Compiler, Kind, Unwritten, hold_value

_NAMES = count()
Reader = Callable[[Returned, int], dict[Primitive, Integers]]


@dataclass
class Statement:
    """SQL of a statement, with its parameters and lists, and the function that reads its rows."""

    sql: str
    parameters: list[Any]
    listings: dict[str, Listing] = field(default_factory=dict)
    reader: Reader = lambda rows, groups: {}
    groups: int = 1
    kinds: tuple[Kind, ...] = ()  # types of the found keys in its first columns

    def read(self, rows: Returned, groups: int | None = None) -> dict[Primitive, Integers]:
        """Return the integer sums in the rows that the database returned, by primitive.

        The first column of a row is the position of its group. ``groups`` is their number, if the
        statement does not know it.
        """
        return self.reader(rows, self.groups if groups is None else groups)


# What is selected of a row ------------------------------------------------------------------------------------


class PeopleShare(NamedTuple):
    """Share of the people, so that a large table is counted in several passes.

    It has the people whose number leaves the rest ``place`` when divided by ``parts``. ``people``
    are the columns that name a person.
    """

    people: tuple[Column, ...]
    place: int
    parts: int


def number_of(dialect: Dialect, cells: Sequence[tuple[str, Kind]]) -> str:
    """Write the number of a person or a key, as `dpframe.engines.people` defines it.

    ``cells`` are the columns that name it, as SQL with a type. A double raises `Unwritten`, since
    its number has no SQL.
    """
    if any(kind == "double" for _, kind in cells):
        raise Unwritten
    first, *rest = (
        dialect.number(cell if kind == "text" else f"CAST({cell} AS {dialect.integers})", kind)
        for cell, kind in cells
    )
    for more in rest:
        first = f"(({first} * {FOLD} + {more}) % {PRIME})"
    return first


class SelectedRows:
    """Rows that a question is about, as nested SELECTs.

    The first SELECT names values of each row. The next one computes from these names, so that no
    text is repeated.
    """

    c: Compiler

    def __init__(
        self, compiler: Compiler, relation: str, where: Expr | None, part: PeopleShare | None = None
    ):
        """Begin with the rows of ``relation`` that meet ``where``.

        None is no condition. ``part`` restricts the rows to a share of the people, if these are
        counted in several passes.
        """
        self.c, self._relation = compiler, relation
        conditions = [] if where is None else [compiler.hit(where)]
        if part is not None and part.parts > 1:
            own = [(term.sql, term.kind) for term in map(compiler.key, part.people)]
            conditions.append(f"({number_of(compiler.dialect, own)} % {part.parts} = {part.place})")
        self._where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        self._values: dict[str, str] = {}
        self._derived: dict[str, str] = {}
        self._stages: dict[str, str] = {}
        self.listings: dict[str, Listing] = {}

    def value(self, sql: str) -> str:
        """Select an expression of each row, and return the name that it has from now on."""
        return self._values.setdefault(sql, f"v{len(self._values)}")

    def derived(self, sql: str) -> str:
        """Compute an expression from selected names, and return the name that it has from now
        on."""
        return self._derived.setdefault(sql, f"a{len(self._derived)}")

    def listing(self, listing: Listing) -> str:
        """Attach a list to the statement, and return the name of its table."""
        name = f"{OURS}list_{next(_NAMES)}"
        self.listings[name] = listing
        return name

    def statement(self, sql: str, reader: Reader, kinds: tuple[Kind, ...] = ()) -> Statement:
        """Return a statement: the text ``sql`` behind a WITH clause of all stages so far.

        ``reader`` turns the returned rows into sums. ``kinds`` are the types of group keys in the
        first columns.
        """
        inline = self.c.dialect.inline
        stages = ", ".join(f"{name} AS{inline} ({sql})" for sql, name in self._stages.items())
        return Statement(*self.c.whole(f"WITH {stages} {sql}"), self.listings, reader, kinds=kinds)

    def stage(self, sql: str) -> str:
        """Make a query a named table in the WITH clause, and return its name.

        Some parsers refuse queries that are nested too deep.
        """
        return self._stages.setdefault(sql, f"{OURS}stage_{len(self._stages)}")

    def sql(self) -> str:
        """Return the query that selects these rows with all names that were asked for so far."""
        values = [f"{sql} AS {name}" for sql, name in self._values.items()]
        inner = f"SELECT {', '.join(values) or '1 AS one'} FROM {self._relation} AS r{self._where}"
        if not self._derived:
            return inner
        derived = [
            *self._values.values(),
            *(f"{sql} AS {name}" for sql, name in self._derived.items()),
        ]
        return f"SELECT {', '.join(derived)} FROM {self.stage(inner)} AS b"


class Level(NamedTuple):
    """Grouping of a question by one expression, as SQL.

    ``name`` is the selected column, ``place`` the SQL of the position of a row's group, NULL for
    none. ``join`` joins the list of keys, if one is needed, and ``size`` is the number of groups.
    """

    name: str
    place: str
    join: str
    size: int


def levels_of(source: SelectedRows, by: Sequence[By]) -> list[Level]:
    """Write each grouping of a question in SQL: bins, listed keys, or listed keys with a rest.

    Another sort of grouping raises `Unwritten`.
    """
    found = []
    for i, one in enumerate(by):
        if isinstance(one, BinBy):
            name = source.derived(_bin(source, one))
            found.append(Level(name, f"s.{name}", "", len(one.index)))
        elif isinstance(one, KeyBy):
            found.append(_write_key(source, i, one, None))
        elif isinstance(one, RestBy):
            found.append(_write_key(source, i, one.listed, len(one.listed.index)))
        else:
            raise Unwritten
    return found


def _bin(source: SelectedRows, by: BinBy) -> str:
    """Write the bin number of a value, found by bisection over the edges.

    Bins contain their left edge, and the last bin its right edge too. A value in no bin is NULL.
    """
    c, edges = source.c, by.edges
    if len(edges) > SIZES.statement_bins or not all(map(math.isfinite, edges)):
        raise Unwritten
    x = source.value(c.double(by.expr))
    first, last = c.number(edges[0]), c.number(edges[-1])

    def among(low: int, high: int) -> str:
        """Write the bisection among the bins from ``low`` to below ``high``."""
        if high - low == 1:
            return str(low)
        middle = (low + high) // 2
        return f"CASE WHEN {x} < {c.number(edges[middle])} THEN {among(low, middle)} ELSE {among(middle, high)} END"

    bins = len(edges) - 1
    outside = f"{x} IS NULL OR {x} < {first} OR {x} > {last}"
    return f"(CASE WHEN {outside} THEN NULL WHEN {x} = {last} THEN {bins - 1} ELSE {among(0, bins)} END)"


def _write_key(source: SelectedRows, i: int, by: KeyBy, rest: int | None) -> Level:
    """Write a grouping by listed keys.

    A bool is compared with its keys in a CASE. For other types a table of the keys is joined.

    ``i`` is the number of the grouping, for the alias of that table. ``rest`` is the position of
    the group for unlisted keys; None if such rows are left out.
    """
    c, keys = source.c, by.keys
    key = c.key(by.expr)
    name, size = source.value(key.sql), len(keys) + (rest is not None)
    if len(keys) > c.dialect.listed:
        raise Unwritten
    places = [(place, k) for place, k in enumerate(keys.index.tolist()) if place != keys.null]
    known = [
        (place, one) for place, k in places if (one := hold_value(c.dialect, k, key)) is not None
    ]
    null = "NULL" if keys.null is None else str(keys.null)
    if key.kind == "bool":
        cases = "".join(f" WHEN s.{name} = {int(one)} THEN {place}" for place, one in known)
        listed, join = (f"CASE{cases} END" if cases else "NULL"), ""
    else:
        columns = (("place", "integer"), ("value", key.kind))
        table, alias = source.listing(Listing(columns, known)), f"l{i}"  # type: ignore[arg-type]  # no bool
        listed = f"{alias}.place"
        value = c.dialect.binary(f"{alias}.value") if key.kind == "text" else f"{alias}.value"
        kind = "JOIN" if keys.null is None and rest is None else "LEFT JOIN"
        join = f" {kind} {table} AS {alias} ON {value} = s.{name}"
        if kind == "JOIN":
            return Level(name, listed, join, size)
    other = listed if rest is None else f"COALESCE({listed}, {rest})"
    return Level(name, f"(CASE WHEN s.{name} IS NULL THEN {null} ELSE {other} END)", join, size)


def combine_places(levels: list[Level]) -> str:
    """Write the position of a row's group among the combinations of all groupings.

    The last grouping varies fastest. The position is NULL if one grouping has no group for the row.
    """
    place = levels[0].place if levels else "0"
    for level in levels[1:]:
        place = f"({place} * {level.size} + {level.place})"
    return place


# What is summed -----------------------------------------------------------------------------------------------


class Measure(NamedTuple):
    """Columns from which a database computes a primitive.

    ``counted`` is counted, each of ``sums`` is summed, and ``widths`` are the largest values of the
    summed integers.
    """

    counted: str
    sums: tuple[str, ...] = ()
    widths: tuple[int, ...] = ()


def measure_of(source: SelectedRows, p: Primitive) -> Measure | None:
    """Return the columns that a primitive counts and sums.

    ``p`` is the primitive: which integers are asked for, such as sums of powers. Return None for
    plain counts of rows or people, which need no column. A primitive that is no sum over rows
    raises `Unwritten`.
    """
    c = source.c
    if isinstance(p, Rows | Persons | Bids):
        return None
    if isinstance(p, Trues):
        return Measure(source.value(f"CASE WHEN {c.truth(p.expr)} THEN 1 END"))
    if isinstance(p, Powers) and p.grid is None:
        return Measure(source.value(c.term(p.expr).sql))
    if isinstance(p, Powers) and p.grid is not None:
        a = source.derived(c.steps(source.value(c.cell(p.expr)), p.grid, p.degree))
        return Measure(
            a, tuple(" * ".join([a] * k) for k in range(1, p.degree + 1)), (p.grid.width,)
        )
    if not isinstance(p, Products):
        raise Unwritten
    x, y = source.value(c.double(p.expr)), source.value(c.double(p.other))
    a = source.derived(f"CASE WHEN {y} IS NULL THEN NULL ELSE {c.steps(x, p.grid, 2)} END")
    b = source.derived(f"CASE WHEN {x} IS NULL THEN NULL ELSE {c.steps(y, p.other_grid, 2)} END")
    return Measure(a, (a, b, f"{a} * {b}"), (p.grid.width, p.other_grid.width))


def _shape_sums(p: Primitive, rows: list[Integers]) -> Integers:
    return np.stack(rows) if isinstance(p, Powers | Products) else rows[0]


def _integers(groups: int, places: list[int], values: list[int]) -> Integers:
    """Return an array with the sum of the values for each group.

    ``places`` are the groups of the values, and one may occur twice. Large sums are Python integers
    in an object array.
    """
    wide = any(value >= 2**63 for value in values)
    found: Integers = np.zeros(groups, dtype=object if wide else np.int64)
    # A group may occur twice.
    np.add.at(found, np.array(places, dtype=np.int64), np.array(values, dtype=found.dtype))
    return found


def whole(cell: Any) -> int:
    """Return an integer that a database returned, as a Python integer; a sum of no rows is 0."""
    assert not isinstance(cell, float), "a sum that may be rounded"
    return 0 if cell is None else int(cell)


def reader_of(
    measures: dict[Primitive, Measure | None],
    people: bool,
    total: Callable[[list[int]], int],
    width: int,
) -> Reader:
    """Return the function that reads the rows of a statement as integer sums by primitive.

    A returned row has the position of a group, the number of rows, and with ``people`` the number
    of people. Then each of ``measures`` has a column with its count, and ``width`` columns for each
    of its sums. ``total`` puts these together, as a large sum may be returned in two halves.
    """

    def read(rows: Returned, groups: int) -> dict[Primitive, Integers]:
        """Return the sums of each primitive in an array over all groups.

        The columns are read one after the other, in the order in which the statement selects them.
        """
        places = [int(row[0]) for row in rows]
        columns = [[whole(cell) for cell in column] for column in zip(*rows, strict=True)][1:]
        if not columns:  # no row was returned
            columns = [[]] * (
                2 + people + sum(1 + width * len(m.sums) for m in measures.values() if m)
            )
        following = iter(columns)
        sizes = _integers(groups, places, next(following))
        persons = _integers(groups, places, next(following)) if people else sizes
        found: dict[Primitive, Integers] = {}
        for p, measure in measures.items():
            if measure is None:
                found[p] = persons if isinstance(p, Persons) else sizes
                continue
            parts = [next(following)]
            for _ in measure.sums:
                halves = [next(following) for _ in range(width)]
                parts.append([total(list(one)) for one in zip(*halves, strict=True)])
            found[p] = _shape_sums(p, [_integers(groups, places, part) for part in parts])
        return found

    return read
