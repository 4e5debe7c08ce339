"""Tables of PostgreSQL, in one snapshot that is kept as long as they are open."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterator
from importlib import import_module
from typing import Any, ClassVar

from dpframe._errors import BadType, BadValue, SessionError
from dpframe._sizes import SIZES
from dpframe.engines.sources import ArrowTables, Counting, Source, quote_name
from dpframe.engines.sql.databases import PostgresDatabase
from dpframe.engines.sql.dialects import OURS
from dpframe.engines.steadiness import Answers, FoundHazard, HazardAnswer, judge
from dpframe.engines.tables.kinds import TableKind, register_kind
from dpframe.engines.tables.queries import check_sql, find_across, with_views

_EPOCH = "(extract(epoch FROM {0}) * 1000000)::int8"
# By the name of a type: how a cell is read, by operations that no cell makes fail, and the type of
# Arrow that it has here.
_INT, _FLOAT = ("({0})::int8", "int64"), ("({0})::float8", "float64")
_AS_TEXT = "({0})::text"
_TEXT = (f"convert_to({_AS_TEXT}, 'UTF8')", "large_string")
# Types of Arrow that PostgreSQL can count and add up by itself.
_TYPES_COUNTED_IN_SQL = ("int64", "float64", "bool_", "large_string")
_TYPES: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("int2", "int4", "int8", "oid"), _INT),
    **dict.fromkeys(("float4", "float8"), _FLOAT),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid"), _TEXT),
    "bool": ("{0}", "bool_"),
    # What a double cannot hold is infinite, or zero, as Python rounds it; a cast would raise.
    "numeric": (
        "CASE WHEN {0} = 'NaN' THEN NULL WHEN abs({0}) < 1e-300 THEN 0 WHEN {0} > 1e300 THEN 'Infinity'::float8 "
        "WHEN {0} < -1e300 THEN '-Infinity'::float8 ELSE ({0})::float8 END",
        "float64",
    ),
    "date": ("CASE WHEN isfinite({0}) THEN {0} - date '1970-01-01' END", "date32"),
    "timestamp": (f"CASE WHEN isfinite({{0}}) THEN {_EPOCH} END", "timestamp"),
    "timestamptz": (f"CASE WHEN isfinite({{0}}) THEN {_EPOCH} END", "timestamptz"),
}
_OTHER = (
    "CASE WHEN {0} IS NOT NULL THEN ''::bytea END",
    "binary",
)  # only whether such a cell is null is read
_COLUMNS = """
    SELECT a.attname::text, t.typname::text, t.typtype::text FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
# What the functions say that somebody has written here, and no extension has brought.
_FUNCTIONS = (
    "SELECT md5(coalesce(string_agg(pg_get_functiondef(p.oid), ' ' ORDER BY p.oid), '')) FROM pg_proc p "
    "JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname !~ '^(pg_|information_schema$)' AND p.prokind = 'f' "
    "AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')"
)
_VIEWS = "SELECT viewname::text, definition FROM pg_views WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"


# A view or a table, and the relations that its rules name; the functions that these call; and those
# of other servers.
_READ = """
    WITH RECURSIVE read (oid) AS (
        SELECT to_regclass(%s)::oid UNION
        SELECT d.refobjid FROM read JOIN pg_rewrite w ON w.ev_class = read.oid
        JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass
    )
"""
_CALLED = (
    _READ
    + """
    , called (oid) AS (
        SELECT DISTINCT m[1]::oid FROM read JOIN pg_class c USING (oid) JOIN pg_rewrite w ON w.ev_class = c.oid,
        regexp_matches(w.ev_action::text, ':(?:aggfnoid|winfnoid|funcid|opfuncid) ([0-9]+)', 'g') AS m
        WHERE c.relkind = 'v'
    )
    SELECT p.proname::text,
        p.prokind = 'a' AND p.proargtypes::oid[] && ARRAY['float4'::regtype::oid, 'float8'::regtype::oid]
            AND p.proname NOT IN ('min', 'max', 'count', 'array_agg', 'json_agg', 'jsonb_agg', 'mode', 'percentile_cont',
                'percentile_disc'),
        p.provolatile = 'v', n.nspname = 'pg_catalog' OR e.objid IS NOT NULL
    FROM called JOIN pg_proc p ON p.oid = called.oid JOIN pg_namespace n ON n.oid = p.pronamespace
    LEFT JOIN pg_depend e ON e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e' ORDER BY 1
"""
)
_FOREIGN = (
    _READ
    + "SELECT relname::text FROM read JOIN pg_class c USING (oid) WHERE c.relkind = 'f' ORDER BY 1"
)


class PostgresSource(Source):
    """Source of a table or view of PostgreSQL, read in one transaction of its own.

    The transaction sees the rows that were there when it was opened.
    """

    answers: ClassVar[Answers] = {
        **dict.fromkeys(("chance", "clock", "first", "sums", "elsewhere"), HazardAnswer.REFUSED),
        **dict.fromkeys(("code", "across"), HazardAnswer.DECLARED),
        **dict.fromkeys(("transaction", "writes", "in place"), HazardAnswer.ABSENT),
        "meaning": HazardAnswer.WATCHED,
    }
    ordered = False

    def __init__(self, url: str, table: str):
        """Connect to the database of a URL, and find the columns and hazards of a table or view.

        A hazard is a part of a view that may return other rows each time, or rows that are made of
        several people's. The first kind is refused. The second needs ``because=``.
        """
        pa: Any = import_module("pyarrow")
        self._connection = _connect(url)
        weakref.finalize(self, self._connection.close)
        self._name = ".".join(map(quote_name, table.split(".")))
        listed = self._ask(_COLUMNS, self._name)
        if not listed:
            raise BadValue(
                f"this database has no table {table!r}, and no such view. Of a query make a view, and open that."
            )
        # For each column: how a cell is read for Arrow, and its Arrow type. Enums are texts.
        kinds = {
            name: _TEXT if sort == "e" else _TYPES.get(kind, _OTHER) for name, kind, sort in listed
        }
        self._read = {name: text.format(quote_name(name)) for name, (text, _) in kinds.items()}
        # How a cell is read where the database itself counts and adds up. Arrow needs texts as
        # bytes in UTF-8, and here they stay texts.
        self._read_for_counting = {
            name: (_AS_TEXT if kind == "large_string" else text).format(quote_name(name))
            for name, (text, kind) in kinds.items()
            if kind in _TYPES_COUNTED_IN_SQL
        }
        text = with_views(table, dict(self._ask(_VIEWS))).removeprefix(table)
        check_sql(text)
        # `judge` raises at a refused hazard, and returns those that ``because=`` has to declare.
        self.declared: tuple[FoundHazard, ...] = judge(
            self.answers, [*self._hazards(), *find_across(text)]
        )
        types = {"timestamp": pa.timestamp("us"), "timestamptz": pa.timestamp("us", "UTC")}
        fields = [
            (name, types.get(kind) or getattr(pa, kind)()) for name, (_, kind) in kinds.items()
        ]
        info = self._connection.info
        ((found,),) = self._ask("SELECT to_regclass(%s)::oid::int8", self._name)
        place = f"{info.host}:{info.port}/{info.dbname}"
        super().__init__(
            pa.schema(fields), f"postgresql {place} {table}", [("postgresql", place, found)]
        )

    def _ask(self, text: str, *words: object) -> list[Any]:
        found: list[Any] = self._connection.execute(text, words or None).fetchall()
        return found

    def _hazards(self) -> Iterator[FoundHazard]:
        """Yield the hazards of the functions that a view calls, and of the tables that it reads.

        The server's catalogue names both.
        """
        for name, adds_doubles, unsteady, own in self._ask(_CALLED, self._name):
            if adds_doubles:
                yield FoundHazard("sums", f"{name.upper()} of doubles")
            if unsteady:
                yield FoundHazard("chance", f"{name.upper()}, which is VOLATILE,")
            if not own:
                yield FoundHazard("code", f"the function {name}")
        for (name,) in self._ask(_FOREIGN, self._name):
            yield FoundHazard("elsewhere", f"the foreign table {name}")

    def _count(self) -> int:
        return int(self._ask(f"SELECT COUNT(*) FROM {self._name}")[0][0])

    def counting(self) -> Counting | None:
        """Return the connection as a database that computes sums, with the columns that mean the
        same there.

        None is returned if no column does. It is also returned if the server's texts are not UTF-8,
        or the table has a reserved name.
        """
        # Statements give such names to their own tables.
        ours = self._name.casefold().strip('"').startswith(OURS)
        if self._ask("SHOW server_encoding") != [("UTF8",)] or not self._read_for_counting or ours:
            return None
        columns = ", ".join(
            f"{text} AS {quote_name(name)}" for name, text in self._read_for_counting.items()
        )
        return Counting(PostgresDatabase(self._connection), f"(SELECT {columns} FROM {self._name})")

    def _scan(self, names: list[str]) -> ArrowTables:
        """Yield tables of Arrow with the columns ``names``.

        A cursor on the server hands over rows as they are fetched.
        """
        pa: Any = import_module("pyarrow")
        types = [self.types[self.names.index(n)] for n in names]
        texts = ", ".join(self._read[n] for n in names)
        # A cursor with a name is on the server: rows come as they are fetched.
        with self._connection.cursor(name="dpframe", binary=True) as cursor:
            cursor.execute(f"SELECT {texts} FROM {self._name}")
            while rows := cursor.fetchmany(SIZES.fetch):
                columns = zip(zip(*rows, strict=True), types, strict=True)
                yield pa.table([_array(pa, cells, dtype) for cells, dtype in columns], names=names)

    def version(self) -> Hashable:
        """Return the snapshot of the transaction, and a hash of the functions that users have
        written."""
        return str(self._ask(f"SELECT pg_current_snapshot()::text, ({_FUNCTIONS})"))

    def close(self) -> None:
        self._connection.close()


def _array(pa: Any, cells: Any, dtype: Any) -> Any:
    """Return fetched cells as an array of the Arrow type ``dtype``.

    ``pa`` is the module pyarrow. Texts come as bytes, times and dates as integers.
    """
    if pa.types.is_large_string(dtype):  # bytes, which are not decoded here
        return pa.array(cells, pa.large_binary()).view(dtype)
    if pa.types.is_timestamp(dtype):
        return pa.array(cells, pa.int64()).cast(dtype)
    return (
        pa.array(cells, pa.int32()).cast(dtype)
        if pa.types.is_date32(dtype)
        else pa.array(cells, dtype)
    )


def _connect(url: str) -> Any:
    """Return a read-only connection in a transaction that sees one state of the data.

    An error does not show the server's message, since it may quote a password.
    """
    try:
        psycopg: Any = import_module("psycopg")
    except ImportError:
        psycopg = None
    if psycopg is None:
        raise BadType("a table of PostgreSQL needs psycopg: pip install 'psycopg[binary]'.")
    connection = None
    try:
        connection = psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://", 1))
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        connection.execute("SELECT pg_current_snapshot()")
        return connection
    except Exception:
        if connection is not None:
            connection.close()
    raise SessionError(
        "this database cannot be reached, or does not let this user in. Try the same URL with psql; what the server says is not "
        "shown here, since it may quote a password."
    )


# The entry of the catalogue ----------------------------------------------------------------------

register_kind(
    TableKind(
        title="PostgreSQL table",
        words="a URL postgresql://HOST/NAME",
        types=(),  # by a URL only: a session needs a connection of its own
        read=PostgresSource,
        source=PostgresSource,
        requires=("psycopg", "pyarrow"),
        extra="server",
        example=None,  # takes a server
        database=True,
        url_schemes=("postgresql://", "postgres://", "postgresql+psycopg://"),
    )
)
