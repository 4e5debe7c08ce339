"""Statements for questions: who rows belong to, and what each person adds.

*Formal guarantee.* A statement is made of the question, of dtypes and of the key, and what it
returns is what `dpframe.engines.limits` defines. Over people that is: of each person and group the
rows, counts and sums; of a person in more groups than may count those with the smallest hashes;
totals of more rows than the limit scaled and moved back (docs/guarantees/people.md). No step looks
at another person's rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dpframe._expr import Expr
from dpframe._groups.unit import Unit
from dpframe._statistics.base import (
    LARGEST_POWER,
    LEAST_POWER,
    MAGNITUDES,
    Bids,
    Distincts,
    Integers,
    Leaves,
    Magnitudes,
    Persons,
    Powers,
    Primitive,
    Products,
    Rows,
    Spread,
    Trues,
)
from dpframe._statistics.engine import Scope
from dpframe.engines.people import PRIME, Draw
from dpframe.engines.sql.databases import Rows as Returned
from dpframe.engines.sql.expressions import Compiler, Kind, Unwritten
from dpframe.engines.sql.selections import (
    Level,
    Measure,
    PeopleShare,
    Reader,
    SelectedRows,
    Statement,
    combine_places,
    levels_of,
    measure_of,
    number_of,
    reader_of,
    whole,
)

# Rows that are people -----------------------------------------------------------------------------------------


def statements(
    compiler: Callable[[], Compiler],
    relation: str,
    scope: Scope,
    primitives: set[Primitive],
    unit: Unit,
    key: bytes,
    part: PeopleShare | None = None,
) -> list[Statement]:
    """Write the statements that compute all primitives of a question.

    A primitive is a table of integers, such as sums by group. Primitives that are sums over rows
    share a statement; each other one has its own. If one cannot be written, `Unwritten` is raised.

    ``compiler`` makes a new compiler for each statement. ``key`` seeds the hash that decides which
    groups of a person count. ``part`` restricts all to a share of the people, and the sums of all
    shares add up.
    """
    alone: set[Primitive] = {
        p
        for p in primitives
        if isinstance(p, Leaves | Distincts | Spread | Magnitudes)
        or (isinstance(p, Bids) and unit.people)
    }
    sums = primitives - alone
    found = []
    for p in sorted(alone, key=str):
        source = SelectedRows(compiler(), relation, scope.where, part)
        levels = levels_of(source, scope.by)
        found.append(_write_single_primitive(source, levels, p, unit, scope, key))
    if sums:
        source = SelectedRows(compiler(), relation, scope.where, part)
        levels = levels_of(source, scope.by)
        measures = {p: measure_of(source, p) for p in sorted(sums, key=str)}
        one = (
            _of_people(source, levels, measures, unit, scope, key)
            if unit.people
            else _of_rows(source, levels, measures)
        )
        found.append(one)
    for one in found:
        one.groups = scope.groups
    return found


def _write_sums(source: SelectedRows, measures: dict[Primitive, Measure | None]) -> list[str]:
    """Write the counts and sums over rows, in the order in which `reader_of` reads them."""
    d, found = source.c.dialect, ["COUNT(*)"]
    for measure in measures.values():
        if measure is not None:
            found.append(f"COUNT({measure.counted})")
            found += [part for one in measure.sums for part in d.totals(one)]
    return found


def _of_rows(
    source: SelectedRows, levels: list[Level], measures: dict[Primitive, Measure | None]
) -> Statement:
    """Write the statement of all sums over rows, where a row is a person.

    Rows are grouped by their cells first. The few results are then matched with the listed groups
    and added. ``levels`` are the groupings, and ``measures`` the columns of each primitive.
    """
    d, sums = source.c.dialect, _write_sums(source, measures)
    named = [f"m{i}" for i in range(len(sums))]
    if levels:
        names = list(dict.fromkeys(level.name for level in levels))
        selected = [*names, *(f"{sql} AS {name}" for sql, name in zip(sums, named, strict=True))]
        cells = f"SELECT {', '.join(selected)} FROM {source.stage(source.sql())} AS q GROUP BY {', '.join(names)}"
        columns = [f"{combine_places(levels)} AS place", *(f"s.{name}" for name in named)]
        places = f"SELECT {', '.join(columns)} FROM {source.stage(cells)} AS s{''.join(level.join for level in levels)}"
        outer = ", ".join(["place", *(f"SUM({name})" for name in named)])
        sql = f"SELECT {outer} FROM {source.stage(places)} AS o WHERE place IS NOT NULL GROUP BY place"
    else:
        sql = f"SELECT {', '.join(['0 AS place', *sums])} FROM {source.stage(source.sql())} AS q"
    reader = reader_of(measures, False, d.total, len(d.totals("a")))
    return source.statement(sql, reader)


# People -------------------------------------------------------------------------------------------------------


class Crowd:
    """Rows together with the person and the group that each belongs to, as SQL.

    Its methods write the queries that limit how much a person contributes. A group is a position,
    or the keys themselves if nobody listed these.
    """

    names: list[str]

    def __init__(
        self,
        source: SelectedRows,
        unit: Unit,
        groups: Sequence[str],
        kinds: Sequence[Kind],
        key: bytes,
    ):
        """Select the columns that name a person, and bind the constants of the hash.

        ``groups`` are the columns that name a group, and ``kinds`` their types. ``key`` seeds the
        hash. A person named by a double raises `Unwritten`.
        """
        self._source, self._groups, self._kinds = source, list(groups), list(kinds)
        found = [source.c.key(column) for column in unit.people]
        if any(one.kind == "double" for one in found):  # the number of a double has no SQL
            raise Unwritten
        self._people = [(source.value(one.sql), one.kind) for one in found]
        self._constants = [source.c.bind(one) for one in Draw(key).constants]
        self.names = [name for name, _ in self._people]

    def rows(self, sql: str, there: str) -> str:
        """Write the rows of a query that meet a condition and belong to a person.

        ``there`` is the condition. A row whose person is NULL belongs to nobody.
        """
        d, somebody = (
            self._source.c.dialect,
            " AND ".join(f"{name} IS NOT NULL" for name in self.names),
        )
        return f"SELECT {d.gathered(self.names)}* FROM {self._source.stage(sql)} AS o WHERE {there} AND {somebody}"

    def ranked(self, sql: str) -> str:
        """Write the rows of a query with a column h: the hash of their person and group.

        The hash decides which groups and values of a person count. It is the same as that of other
        engines (`dpframe.engines.people.Draw`). Let x be the number of the person, y that of the
        group, and P a prime. t = (y a + b)(y a + b + d) mod P gives a factor m = 1 + t mod (P - 1),
        and s gives an addend c likewise. The hash is u (u + last) mod P of u = (x m + c) mod P.
        Column hx has x, and so on. Each stage is a query on the one before, with more columns.
        """
        a, b, d, f, g, e, last = self._constants
        x = number_of(self._source.c.dialect, self._people)
        y = number_of(self._source.c.dialect, list(zip(self._groups, self._kinds, strict=True)))
        p = str(PRIME)
        sql = f"SELECT n0.*, {x} AS hx, {y} AS hy FROM {self._source.stage(sql)} AS n0"
        sql = f"SELECT n1.*, (hy * {a} + {b}) % {p} AS ht, (hy * {f} + {g}) % {p} AS hs FROM {self._source.stage(sql)} AS n1"
        t, s = f"(ht * ((ht + {d}) % {p})) % {p}", f"(hs * ((hs + {e}) % {p})) % {p}"
        sql = f"SELECT n2.*, 1 + ({t}) % {PRIME - 1} AS hm, 1 + ({s}) % {PRIME - 1} AS hc FROM {self._source.stage(sql)} AS n2"
        sql = f"SELECT n3.*, (hx * hm + hc) % {p} AS hu FROM {self._source.stage(sql)} AS n3"
        return f"SELECT n4.*, (hu * ((hu + {last}) % {p})) % {p} AS h FROM {self._source.stage(sql)} AS n4"

    def first(self, sql: str, most: int, rank: str = "ROW_NUMBER") -> str:
        """Write the rows of a query in the groups that count for each person.

        Those are the ``most`` groups with the smallest hashes. Equal hashes are ordered by the
        group itself. With ``rank="DENSE_RANK"`` a group may have several rows.
        """
        own, order = ", ".join(self.names), _ascending(["h", *self._groups])
        nth = f"{rank}() OVER (PARTITION BY {own} ORDER BY {order}) AS nth"
        numbered = f"SELECT w0.*, {nth} FROM {self._source.stage(self.ranked(sql))} AS w0"
        return f"SELECT * FROM {self._source.stage(numbered)} AS w1 WHERE nth <= {most}"


def _join_levels(source: SelectedRows, levels: list[Level], names: Sequence[str]) -> str:
    """Write a query of rows with the position of their group, which may be NULL.

    ``names`` are further columns to select.
    """
    selected = [
        f"{combine_places(levels)} AS place",
        *(f"s.{name}" for name in dict.fromkeys(names)),
    ]
    joins = "".join(level.join for level in levels)
    return f"SELECT {', '.join(selected)} FROM {source.stage(source.sql())} AS s{joins}"


def _write_groups(
    source: SelectedRows, levels: list[Level], crowd: Crowd, names: Sequence[str]
) -> str:
    """Write a query of the rows that belong to a person and to a group, with the group's
    position."""
    return crowd.rows(_join_levels(source, levels, [*crowd.names, *names]), "place IS NOT NULL")


def _ascending(terms: Sequence[str]) -> str:
    """Write an ORDER BY list with ASC after each column.

    A setting of the database could change an order that is not written out.
    """
    return ", ".join([f"{term} ASC" for term in terms])


def _names(measures: dict[Primitive, Measure | None]) -> list[str]:
    """Return the selected columns that these measures count or sum."""
    found: list[str] = []
    for measure in measures.values():
        if measure is not None:
            found += [measure.counted, *(name for one in measure.sums for name in one.split(" * "))]
    return found


def _of_people(
    source: SelectedRows,
    levels: list[Level],
    measures: dict[Primitive, Measure | None],
    unit: Unit,
    scope: Scope,
    key: bytes,
) -> Statement:
    """Write the statement of all sums where columns name people.

    Each person's contribution is limited in rows and in groups before it is added. ``levels`` are
    the groupings, and ``measures`` the columns of each primitive.
    """
    limit, most = _limits(unit, scope)
    crowd = Crowd(source, unit, ["place"], ["integer"], key)
    rows = _write_groups(source, levels, crowd, _names(measures))
    d = source.c.dialect
    sql = _write_bounded(
        source,
        crowd,
        rows,
        ["place"],
        measures,
        limit,
        most if scope.by and most < scope.groups else None,
    )
    return source.statement(sql, reader_of(measures, True, d.total, len(d.totals("a"))))


def _limits(unit: Unit, scope: Scope) -> tuple[int, int]:
    """Return the contribution limits: rows of a person in a group, and groups of a person.

    A limit that is not set counts as 1, since the plan has asked for those that are needed.
    """
    return unit.with_limits(unit.rows or 1, unit.groups or 1).reach(
        scope.groups if scope.by else None
    )


def _write_bounded(
    source: SelectedRows,
    crowd: Crowd,
    rows: str,
    groups: list[str],
    measures: dict[Primitive, Measure | None],
    limit: int,
    most: int | None,
) -> str:
    """Write the query that limits what each person adds to each group, and adds that up.

    It sums the rows of each person in each group. At most ``most`` groups of a person are kept;
    None keeps all. Sums of more rows than ``limit`` are scaled down to it (stage ``one``), and
    clipped to what ``limit`` rows can have (stage ``two``). Then people are added (``outer``).

    ``rows`` is the query of the rows, ``crowd`` names their people, and ``groups`` are the columns
    that name a group. ``measures`` has the columns to sum for each primitive.
    """
    d, names = source.c.dialect, [*crowd.names, *groups]
    numbered = list(enumerate(m for m in measures.values() if m is not None))
    if any(len(m.widths) == 1 and len(m.sums) > 2 for _, m in numbered):
        # `_ends` has no range for sums of third powers.
        raise Unwritten
    selected = [*names, "COUNT(*) AS k"]
    for i, m in numbered:
        selected += [f"COUNT({m.counted}) AS c{i}"]
        selected += [f"COALESCE({d.small_sum(one)}, 0) AS s{i}_{j}" for j, one in enumerate(m.sums)]
    sql = f"SELECT {', '.join(selected)} FROM {source.stage(rows)} AS q GROUP BY {', '.join(names)}"
    if most is not None:
        sql = crowd.first(sql, most)

    def limit_count(count: str) -> str:
        return f"CASE WHEN {count} > {limit} THEN {limit} ELSE {count} END AS {count}"

    def scale_total(total: str, count: str) -> str:
        """Write a person's sum scaled down to ``limit`` rows, rounded, if it has more."""
        whole, rest = d.quotient(total, count), f"({total} % {count})"
        up = d.quotient(f"({rest} * {limit} + {d.quotient(count, '2')})", count)
        return f"(CASE WHEN {count} > {limit} THEN {whole} * {limit} + {up} ELSE {total} END) AS {total}"

    one, two = [*groups, limit_count("k")], [*groups, "k"]
    outer = [*groups, "SUM(k)", "COUNT(*)"]
    for i, m in numbered:
        c, sums = f"c{i}", [f"s{i}_{j}" for j in range(len(m.sums))]
        one += [limit_count(c), *(scale_total(name, c) for name in sums)]
        # The sums of values themselves, and those of squares or products.
        own, mixed = sums[: len(m.widths)], sums[len(m.widths) :]
        two += [c, *own, *(f"{d.clipped(name, *_ends(m, c, own))} AS {name}" for name in mixed)]
        outer += [f"SUM({c})", *(part for name in sums for part in d.totals(name))]
    for stage in (one, two):
        sql = f"SELECT {', '.join(stage)} FROM {source.stage(sql)} AS t"
    return f"SELECT {', '.join(outer)} FROM {source.stage(sql)} AS u GROUP BY {', '.join(groups)}"


def _ends(m: Measure, c: str, own: list[str]) -> tuple[str, str]:
    """Write the least and the largest value that a sum of squares, or of products, can have.

    ``c`` is the column with the number of values, and ``own`` are those with their sums: one for
    squares, two for products. Sums of a person with too many rows were scaled and rounded. They are
    then clipped to this range, so that they are sums that some values have.

    Values a lie between 0 and w. Since (w - a)**2 and a (w - a) are not negative, the sum of
    squares lies between 2 w s - w**2 c, or 0, and w s. Products lie within similar ends.
    """
    if len(own) == 1:
        s, w = own[0], m.widths[0]
        least, most = f"2 * {w} * {s} - {w * w} * {c}", f"({w} * {s})"
    else:
        (s, t), (w, v) = own, m.widths
        least = f"{v} * {s} + {w} * {t} - {w * v} * {c}"
        most = f"(CASE WHEN {v} * {s} < {w} * {t} THEN {v} * {s} ELSE {w} * {t} END)"
    return f"(CASE WHEN {least} > 0 THEN {least} ELSE 0 END)", most


# Statements of their own ------------------------------------------------------------------------------------


def _write_single_primitive(
    source: SelectedRows, levels: list[Level], p: Primitive, unit: Unit, scope: Scope, key: bytes
) -> Statement:
    """Write the statement of a primitive that is no sum over rows, such as distinct values.

    ``p`` is the primitive: it says which integers are asked for. ``levels`` are the groupings,
    ``unit`` has the contribution limits, ``scope`` the number of groups, and ``key`` seeds the hash
    that decides which rows of a person count.
    """
    if isinstance(p, Spread):
        sql, reader = _spread(source, levels, p, unit, key)
    elif isinstance(p, Distincts):
        sql, reader = _distinct(source, levels, p, unit)
    elif isinstance(p, Leaves):
        sql, reader = _leaves(source, levels, p, unit, scope, key)
    elif isinstance(p, Magnitudes):
        sql, reader = _magnitudes(source, p, unit, key)
    else:
        assert isinstance(p, Bids)
        sql, reader = _bids(source, levels, p, unit, scope, key)
    return source.statement(sql, reader)


def _table(p: Primitive, rows: Returned, shape: tuple[int, int]) -> dict[Primitive, Integers]:
    """Return counts as a table of one primitive.

    A returned row is the row of the table, the group, and the count. ``shape`` is that of the
    table.
    """
    found = np.zeros(shape, dtype=np.int64)
    for place, group, n in rows:
        found[int(place), int(group)] += whole(n)
    return {p: found}


def _spread(
    source: SelectedRows, levels: list[Level], p: Spread, unit: Unit, key: bytes
) -> tuple[str, Reader]:
    """Write the query that counts people by how many rows or groups they have.

    It returns the SQL and the function that reads its rows. The counts tell which contribution
    limits suit the data. ``p`` says which integers are asked for, and ``levels`` are the groupings.
    """
    if not unit.people:
        raise Unwritten
    crowd = Crowd(source, unit, ["place"], ["integer"], key)
    own = ", ".join(crowd.names)
    rows = source.stage(_write_groups(source, levels, crowd, []))
    pairs = f"SELECT {own}, place, COUNT(*) AS k FROM {rows} AS q GROUP BY {own}, place"
    size = "COUNT(*)" if p.of == "groups" else "MAX(k)"
    sizes = f"SELECT {size} AS n FROM {source.stage(pairs)} AS t GROUP BY {own}"
    cases = "".join(f" WHEN n <= {2**i} THEN {i}" for i in range(p.bins - 1))
    bins = f"CASE{cases} ELSE {p.bins - 1} END" if cases else "0"
    sql = f"SELECT bin, 0, COUNT(*) FROM (SELECT {bins} AS bin FROM {source.stage(sizes)} AS u) AS v GROUP BY bin"
    return sql, lambda rows, groups: _table(p, rows, (p.bins, 1))


def _distinct(
    source: SelectedRows, levels: list[Level], p: Distincts, unit: Unit
) -> tuple[str, Reader]:
    """Write the query that counts the distinct values of each group, where a row is a person.

    It returns the SQL and the function that reads its rows. With people it raises `Unwritten`.
    ``p`` says which integers are asked for, and ``levels`` are the groupings.
    """
    if unit.people:  # a limit of values per person has no SQL
        raise Unwritten
    name = source.value(source.c.key(p.expr).sql)
    joined = _join_levels(source, levels, [name])
    sql = f"SELECT 0, place, COUNT(DISTINCT {name}) FROM {source.stage(joined)} AS o WHERE place IS NOT NULL GROUP BY place"
    return sql, lambda rows, groups: {p: _table(p, rows, (1, groups))[p][0]}


def _leaves(
    source: SelectedRows, levels: list[Level], p: Leaves, unit: Unit, scope: Scope, key: bytes
) -> tuple[str, Reader]:
    """Write the query that counts the values on each point of a grid, for quantiles.

    It returns the SQL and the function that reads its rows. With people a person's contribution is
    limited first. ``p`` says which integers are asked for, and ``levels`` are the groupings.
    """
    a = source.derived(source.c.steps(source.value(source.c.double(p.expr)), p.grid))
    if unit.people:
        limit, most = _limits(unit, scope)
        crowd = Crowd(source, unit, ["place"], ["integer"], key)
        rows = _write_groups(source, levels, crowd, [a])
        few = scope.by and most < scope.groups
        rows = crowd.first(rows, most, "DENSE_RANK") if few else crowd.ranked(rows)
        rows = _middles(source, crowd, rows, a, limit)
    else:
        joined = _join_levels(source, levels, [a])
        rows = (
            f"SELECT * FROM {source.stage(joined)} AS o WHERE place IS NOT NULL AND {a} IS NOT NULL"
        )
    sql = f"SELECT {a}, place, COUNT(*) FROM {source.stage(rows)} AS t GROUP BY {a}, place"
    return sql, lambda rows, groups: _table(p, rows, (p.points, groups))


def _bids(
    source: SelectedRows, levels: list[Level], p: Bids, unit: Unit, scope: Scope, key: bytes
) -> tuple[str, Reader]:
    """Write the query that counts rows by bin, where the limit of rows holds over all bins.

    It returns the SQL and the function that reads its rows. Bins that need a joined list raise
    `Unwritten`. ``p`` says which integers are asked for, and ``levels`` are the groupings.
    """
    if any(level.join for level in levels):
        raise Unwritten
    limit, _ = _limits(unit, scope)
    x = source.value(source.c.term(p.expr).sql)
    crowd = Crowd(source, unit, ["place"], ["integer"], key)
    selected = ", ".join(
        ["0 AS place", *(f"s.{name}" for name in dict.fromkeys([*crowd.names, x]))]
    )
    bins = f"CASE WHEN s.{x} IS NULL THEN NULL ELSE COALESCE({combine_places(levels)} + 1, 0) END AS bin"
    rows = crowd.rows(
        f"SELECT {selected}, {bins} FROM {source.stage(source.sql())} AS s", "bin IS NOT NULL"
    )
    rows = _middles(source, crowd, crowd.ranked(rows), "bin", limit)
    sql = f"SELECT 0, bin, COUNT(*) FROM {source.stage(rows)} AS t GROUP BY bin"
    return sql, lambda rows, groups: {p: _table(p, rows, (1, groups + 1))[p][0, 1:]}


def _magnitudes(source: SelectedRows, p: Magnitudes, unit: Unit, key: bytes) -> tuple[str, Reader]:
    """Write the query that counts rows, or people, by the sign and power of two of a value.

    It returns the SQL and the function that reads its rows. A person counts once, by the value at a
    rank that the hash draws. ``p`` says which integers are asked for.
    """
    x = source.value(source.c.double(p.expr))
    size, middle = source.derived(f"ABS({x})"), MAGNITUDES // 2

    def steps(low: int, high: int) -> str:
        """Write a CASE that finds the least power of two, from 2**low to 2**high, that is not below
        the size of the value.

        The CASE gives its exponent, less LEAST_POWER. It bisects the powers.
        """
        if low == high:
            return str(low - LEAST_POWER)
        power = (low + high) // 2
        limit = source.c.number(2.0**power)
        return f"CASE WHEN {size} <= {limit} THEN {steps(low, power)} ELSE {steps(power + 1, high)} END"

    step = f"({steps(LEAST_POWER, LARGEST_POWER)})"
    below = f"{x} < {source.c.number(0.0)}"
    place = f"CASE WHEN {size} IS NULL THEN NULL WHEN {below} THEN {middle} - {step} ELSE {middle} + {step} END"
    if unit.people:
        crowd = Crowd(source, unit, ["place"], ["integer"], key)
        own = ", ".join(crowd.names)
        rows = f"SELECT {own}, 0 AS place, {place} AS bin FROM {source.stage(source.sql())} AS s"
        rows = crowd.rows(rows, "bin IS NOT NULL")
        order = f"ROW_NUMBER() OVER (PARTITION BY {own} ORDER BY {_ascending(['bin'])})"
        rows = f"SELECT m0.*, COUNT(*) OVER (PARTITION BY {own}) AS n, {order} AS j FROM {source.stage(crowd.ranked(rows))} AS m0"
        rows = f"SELECT * FROM {source.stage(rows)} AS m1 WHERE j - 1 = h % n"
    else:
        rows = f"SELECT * FROM (SELECT {place} AS bin FROM {source.stage(source.sql())} AS s) AS o WHERE bin IS NOT NULL"
    sql = f"SELECT bin, 0, COUNT(*) FROM {source.stage(rows)} AS t GROUP BY bin"
    return sql, lambda rows, groups: _table(p, rows, (MAGNITUDES, 1))


def _middles(source: SelectedRows, crowd: Crowd, rows: str, a: str, limit: int) -> str:
    """Write the query of the values that count for each person and group, at most ``limit``.

    These are all values, or the middles of ``limit`` equal shares of the values in order. ``rows``
    is the query of the rows, and ``a`` is the column of values.

    Let R be the limit, and i a number below R. Of n values in order, those at rank floor(m) count,
    for m = (2 i + 1) n / (2 R). For whole m, the one at m - 1 counts if i plus the hash is odd. At
    most two of these i can ask for the value at rank r. One is i0, the first with m >= r. The other
    is i1, where 2 R (r + 1) / n equals 2 i1 + 1 and is an odd whole number.
    """
    d, pair = source.c.dialect, ", ".join([*crowd.names, "place"])
    some = f"SELECT * FROM {source.stage(rows)} AS m0 WHERE {a} IS NOT NULL"
    rank = f"ROW_NUMBER() OVER (PARTITION BY {pair} ORDER BY {_ascending([a])})"
    counted = f"SELECT m1.*, COUNT(*) OVER (PARTITION BY {pair}) AS n, {rank} AS j"
    sql = f"{counted} FROM {source.stage(some)} AS m1"  # j is the rank, counted from 1
    first, next_one = (
        d.quotient(f"(2 * {limit} * (j - 1) + n - 1)", "(2 * n)"),
        d.quotient(f"(2 * {limit} * j)", "n"),
    )
    sql = f"SELECT m2.*, {first} AS i0, {next_one} AS i1 FROM {source.stage(sql)} AS m2"
    m = "((2 * i0 + 1) * n)"
    whole, odd = f"({m} % {2 * limit} = 0)", "(({} + h) % 2 = 1)"
    at_first = f"(i0 < {limit} AND {m} < {2 * limit} * j AND NOT ({whole} AND {odd.format('i0')}))"
    before = d.quotient("(i1 - 1)", "2") if limit else "0"
    at_next = f"((2 * {limit} * j) % n = 0 AND i1 % 2 = 1 AND {before} < {limit} AND {odd.format(before)})"
    return f"SELECT * FROM {source.stage(sql)} AS m3 WHERE n <= {limit} OR {at_first} OR {at_next}"


# Keys that nobody listed, and people ------------------------------------------------------------------------


def found_keys(
    compiler: Compiler,
    relation: str,
    by: Sequence[Expr],
    where: Expr | None,
    primitives: set[Primitive],
    unit: Unit,
    key: bytes,
    part: PeopleShare | None = None,
) -> Statement:
    """Write the statement that finds the group keys in the data, with the sums of each.

    Keys are in the first columns. A key that is a double is found only where a row is a person.

    ``by`` are the grouping expressions, ``where`` is the condition on rows, and ``key`` seeds the
    hash of contribution limits. ``part`` restricts all to a share of the people.
    """
    source = SelectedRows(compiler, relation, where, part)
    terms = [compiler.key(e) for e in by]
    names, kinds = [source.value(term.sql) for term in terms], [term.kind for term in terms]
    if len(set(names)) < len(names) or not all(
        isinstance(p, Rows | Persons | Trues | Powers | Products) for p in primitives
    ):
        raise Unwritten
    measures = {p: measure_of(source, p) for p in sorted(primitives, key=str)}
    d = compiler.dialect
    there = " AND ".join(map(d.is_key, names, kinds))
    if unit.people:
        if "double" in kinds:
            raise Unwritten
        crowd = Crowd(source, unit, names, kinds, key)
        limit, most = unit.with_limits(unit.rows or 1, unit.groups or 1).reach(2**62)
        rows = crowd.rows(source.sql(), there)
        if set(crowd.names) & set(names):
            raise Unwritten
        sql = _write_bounded(source, crowd, rows, names, measures, limit, most)
    else:
        rows = f"SELECT * FROM {source.stage(source.sql())} AS o WHERE {there}"
        selected = ", ".join([*names, *_write_sums(source, measures)])
        sql = f"SELECT {selected} FROM {source.stage(rows)} AS q GROUP BY {', '.join(names)}"
    reader = reader_of(measures, bool(unit.people), d.total, len(d.totals("a")))
    return source.statement(sql, reader, tuple(kinds))


def people_who_are(compiler: Compiler, relation: str, unit: Unit) -> Statement:
    """Write a statement that counts the people who have a row."""
    source = SelectedRows(compiler, relation, None)
    names = [source.value(compiler.key(column).sql) for column in unit.people]
    there = " AND ".join(f"{name} IS NOT NULL" for name in names)
    own, rows = ", ".join(dict.fromkeys(names)), source.stage(source.sql())
    people = f"SELECT {own} FROM {rows} AS s WHERE {there} GROUP BY {own}"
    return source.statement(
        f"SELECT COUNT(*) FROM {source.stage(people)} AS p", lambda rows, groups: {}
    )
