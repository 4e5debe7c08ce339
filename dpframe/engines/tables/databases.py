"""Tables of databases: relations of duckdb, and SQLite."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from dpframe._errors import BadType, BadValue, NotOffered
from dpframe._sizes import SIZES
from dpframe.engines.sources import (
    ArrowTables,
    Counting,
    NamedTable,
    Source,
    differ_without_case,
    is_text,
    quote_name,
    stats_of,
)
from dpframe.engines.sql.databases import ROWS, RelatedDatabase, SqliteDatabase, plain_rows
from dpframe.engines.sql.dialects import OURS
from dpframe.engines.steadiness import Answers, FoundHazard, HazardAnswer, judge
from dpframe.engines.tables.arrow import write_example_files
from dpframe.engines.tables.duckdb_plans import find_plan_sums
from dpframe.engines.tables.kinds import TableKind, register_kind
from dpframe.engines.tables.parquet import WIDTH
from dpframe.engines.tables.queries import (
    QUOTED,
    check_sql,
    files_read,
    find_across,
    find_far,
    find_sums,
    functions_in,
    literal,
    read_quoted,
    with_views,
)

# Types of duckdb whose cells are what they are in Arrow. Of others, such as numbers of 128 bits,
# nothing is counted there.
PLAIN = {
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"),
    *("FLOAT", "DOUBLE", "BOOLEAN", "VARCHAR"),
}
# Rows of this process, whose texts duckdb does not check where it reads them: it ends with an error
# where it hands one over.
_FOREIGN_ROWS = re.compile(
    r"\b(?:python_)?(?:arrow|pandas|polars|numpy)_scan\w*\s*\(|__duckdb_source_", re.IGNORECASE
)
_LITERAL = re.compile(r"'(?:[^']|'')*'")
# Settings of duckdb that decide what the words of a query mean.
_SETTINGS = ", ".join(
    f"'{name}'"
    for name in (
        *(
            "search_path",
            "schema",
            "timezone",
            "calendar",
            "default_collation",
            "file_search_path",
            "integer_division",
        ),
        *(
            "ieee_floating_point_ops",
            "default_order",
            "default_null_order",
            "null_order",
            "old_implicit_casting",
        ),
        *("scalar_subquery_error_on_multiple_rows", "lambda_syntax", "disable_timestamptz_casts"),
    )
)
_PARAMETERS = 32_766  # the default limit of SQLite for a statement


@lru_cache(maxsize=1)
def _functions_of_duckdb() -> frozenset[str]:
    """Return the names of the functions that duckdb has by itself.

    The list of a user's connection also has functions in Python, which look the same there.
    """
    with import_module("duckdb").connect(":memory:") as connection:
        found = connection.sql("select distinct function_name from duckdb_functions()").fetchall()
    return frozenset(name for (name,) in found)


class DuckSource(Source):
    """Source of a relation of duckdb, which its own connection runs anew for each scan."""

    answers: ClassVar[Answers] = {
        **dict.fromkeys(("chance", "clock", "first", "sums", "elsewhere"), HazardAnswer.REFUSED),
        **dict.fromkeys(("code", "across"), HazardAnswer.DECLARED),
        **dict.fromkeys(("transaction", "writes", "in place", "meaning"), HazardAnswer.WATCHED),
    }
    ordered = False

    def __init__(self, relation: Any):
        """Keep a relation, and find the hazards, files and tables of its query.

        A query that may return other rows each time is refused.
        """
        self._relation = relation
        self._databases = [
            p for _, p in self._ask("select database_name, path from duckdb_databases()") if p
        ]
        self._called_functions = functions_in(
            "\n".join([relation.sql_query(), *(text for _, text in self._views())])
        )
        text = self._text()
        check_sql(text)
        self._called_functions = functions_in(text)
        self.declared: tuple[FoundHazard, ...] = judge(self.answers, self._hazards(text))
        self._files = self._find_files(text)
        tables = [t for _, _, t, *_ in self._tables() if t in text]
        where = ", ".join(map(os.path.realpath, self._databases))
        marks: list[Hashable] = [*self._files, *((where, t) for t in tables if where)]
        with self._stream(relation.limit(0)) as stream:
            schema = stream.schema
        super().__init__(
            schema, f"duckdb {where or id(relation)} {text}", marks or [("duckdb", id(relation))]
        )

    def _hazards(self, text: str) -> Iterator[FoundHazard]:
        """Yield the hazards that duckdb's catalogue, or the words of the query, show.

        ``text`` is the query with the views and macros that it names.
        """
        for name, _, macro, steady in self._functions():
            if name.lower() not in self._called_functions or macro is not None:
                continue
            if not steady:
                yield FoundHazard("chance", name.upper())
            elif name not in _functions_of_duckdb():
                yield FoundHazard("code", f"the function {name}, which is not duckdb's own,")
        words = {word.casefold() for word in re.findall(r"\w+", text)}
        for name, kind in self._ask(
            "select database_name, type from duckdb_databases() where not internal"
        ):
            if kind not in ("duckdb", "sqlite") and name.casefold() in words:
                yield FoundHazard("elsewhere", f"the database {name} of {kind}")
        yield from find_far(text)
        sums = find_plan_sums(self._ask, self._relation.sql_query())
        yield from find_sums(text) if sums is None else sums
        yield from find_across(text)

    def _ask(self, text: str) -> list[Any]:
        found: list[Any] = self._relation.query("dpframe_asks", text).fetchall()
        return found

    def _functions(self) -> list[Any]:
        """Return the macros of the connection, and the functions that the query calls.

        Each has a name, a number, the text of a macro, and whether its result is always the same. A
        Python function that replaces another one of its name has another number.
        """
        # A query without a call names no function, and a list of all takes duckdb long.
        if not self._called_functions:
            return []
        names = ", ".join(map(literal, sorted(self._called_functions)))
        return self._ask(
            "select function_name, function_oid, macro_definition, coalesce(stability, 'CONSISTENT') = 'CONSISTENT' "
            f"from duckdb_functions() where (macro_definition is not null and not internal) or lower(function_name) in ({names}) "
            "order by all"
        )

    def _views(self) -> list[Any]:
        return self._ask("select view_name, sql from duckdb_views() where not internal")

    def _text(self, functions: list[Any] | None = None) -> str:
        """Return the query, followed by the present text of the views and macros that it names.

        ``functions`` is the result of `_functions`, if it is known.
        """
        views = self._views()
        macros = [
            (name, written)
            for name, _, written, *_ in (self._functions() if functions is None else functions)
            if written
        ]
        named: dict[str, str] = {}
        for name, written in (*views, *macros):  # several may have one name
            named[name] = f"{named.get(name, '')}\n{written}"
        return with_views(self._relation.sql_query(), named)

    def _find_files(self, text: str) -> list[str]:
        """Return the files that a query names, as texts or as names of tables.

        Patterns are resolved as duckdb does, and a folder means all files in it. Changes of these
        files are watched.
        """
        names = {read_quoted(q) for q in QUOTED.findall(text) if q[0] in "'\""}
        found: set[str] = set()
        for name in names - {""}:
            with suppress(Exception):  # the text may not be a file name
                found |= {f for (f,) in self._ask(f"select file from glob({literal(name)})")}
        for name in files_read(text):
            for folder, _, files in os.walk(os.path.expanduser(name)):
                found |= {os.path.join(folder, file) for file in files}
        return sorted({os.path.realpath(f) for f in found if os.path.isfile(f)})

    def _tables(self) -> list[Any]:
        """Return the tables of the connection, sorted, each with its number and its number of rows.

        A table that replaces another of its name has another number. So a change shows in the
        version.
        """
        return sorted(
            self._ask(
                "select database_name, schema_name, table_name, table_oid, estimated_size from duckdb_tables() where not internal"
            )
        )

    def _meaning(self) -> list[Any]:
        """Return the settings and the open transaction that decide what the words of a query mean.

        Their change shows in the version. Two queries have one transaction number only inside a
        transaction.
        """
        settings = self._ask(
            f"select name, value from duckdb_settings() where lower(name) in ({_SETTINGS}) order by name"
        )
        place = self._ask("select current_database(), current_schema()")
        ((one,),), ((two,),) = (self._ask("select txid_current()") for _ in range(2))
        return [*settings, *place, one if one == two else None]

    @staticmethod
    def _stream(relation: object) -> Any:
        pa: Any = import_module("pyarrow")
        return pa.RecordBatchReader.from_stream(relation)

    def _count(self) -> int:
        ((rows,),) = self._relation.aggregate("COUNT(*)").fetchall()
        return int(rows)

    def counting(self) -> Counting | None:
        """Return the relation as a database that computes sums, with the columns that mean the same
        there.

        None is returned if no column does. It is also returned if a table may have a name that
        statements use.
        """
        kinds = zip(self._relation.columns, map(str, self._relation.types), strict=True)
        plain = [name for name, kind in kinds if kind in PLAIN or kind.startswith("ENUM")]
        if _FOREIGN_ROWS.search(self._text()):
            plain = [name for name in plain if not is_text(self.types[self.names.index(name)])]
        names = _LITERAL.sub(" ", self._relation.sql_query()).casefold()
        if not plain or not differ_without_case(self.names) or OURS in names:
            return None
        database = RelatedDatabase(self._relation.project(", ".join(map(quote_name, plain))))
        probe = f"SELECT {database.dialect.parameter(0)} FROM {ROWS} WHERE 1 = 0"
        with (
            suppress(Exception),
            database.snapshot(),
        ):  # a setting may hide variables
            if database.fetch(probe, [1]) == []:
                return Counting(database, ROWS, WIDTH)
        return None

    def _scan(self, names: list[str]) -> ArrowTables:
        with self._stream(self._relation.project(", ".join(map(quote_name, names)))) as stream:
            yield from stream  # an open stream would block the connection

    def version(self) -> Hashable:
        """Return what changes when the rows do: the query, files, tables, functions and
        settings."""
        files = [f for path in self._databases for f in (path, f"{path}.wal") if os.path.exists(f)]
        functions = self._functions()
        text = self._text(functions)  # a changed view changes it
        named = self._find_files(text)
        stats = stats_of([*files, *self._files])
        return text, named == self._files, stats, repr((self._tables(), functions, self._meaning()))


class SqliteSource(Source):
    """Source of a table or a view of SQLite.

    A cell that is not of the type that its column declares is a null.
    """

    answers: ClassVar[Answers] = {
        **dict.fromkeys(("chance", "clock", "first", "transaction"), HazardAnswer.REFUSED),
        **dict.fromkeys(("code", "across"), HazardAnswer.DECLARED),
        **dict.fromkeys(("writes", "in place", "meaning"), HazardAnswer.WATCHED),
        "sums": HazardAnswer.ABSENT,  # one thread adds, in an order that the schema decides
        "elsewhere": HazardAnswer.ABSENT,
    }
    ordered = False
    _TYPES = (  # words of the declared type in SQLite's order, the SQL of a cell, its Arrow type
        (("BOOL",), "CASE WHEN typeof({0}) = 'integer' AND {0} IN (0, 1) THEN {0} END", "bool_"),
        (("INT",), "CASE typeof({0}) WHEN 'integer' THEN {0} END", "int64"),
        (("CHAR", "CLOB", "TEXT", "DATE", "TIME"), "CASE typeof({0}) WHEN 'text' THEN CAST({0} AS BLOB) END", "large_string"),
        (("REAL", "FLOA", "DOUB", "NUM", "DEC"), "CASE WHEN typeof({0}) IN ('integer', 'real') THEN {0} * 1.0 END", "float64"),
    )  # fmt: skip

    def __init__(self, connection: Any, table: str):
        """Keep a connection, and find the columns, the types and the hazards of a table or view.

        A view that may return other rows each time is refused.
        """
        pa: Any = import_module("pyarrow")
        self._connection, self._name = connection, table
        listed = plain_rows(connection, f"PRAGMA table_info({quote_name(table)})")
        if not listed:
            raise BadValue(
                f"this database has no table {table!r}, and no such view. Of a query make a view, and open that."
            )
        if plain_rows(connection, "PRAGMA encoding") != [("UTF-8",)]:
            raise NotOffered(
                "the texts of this database are UTF-16, which is not read here. Copy its tables to a new one, or to Parquet."
            )
        kinds = {name: self._kind(name, str(declared)) for _, name, declared, *_ in listed}
        self._read = {name: text.format(quote_name(name)) for name, (text, _) in kinds.items()}
        files: Any = plain_rows(connection, "PRAGMA database_list")
        text = self._text()
        check_sql(text)
        self.declared: tuple[FoundHazard, ...] = judge(self.answers, self._hazards(text))
        file = next((file for _, name, file in files if name == "main"), "")
        place = os.path.realpath(file) if file else f"memory {id(connection)}"
        schema = pa.schema([(name, getattr(pa, kind)()) for name, (_, kind) in kinds.items()])
        super().__init__(schema, f"sqlite {place} {table}", [("sqlite", place, table)])

    def _text(self) -> str:
        """Return the SQL of the view, and of the views and virtual tables that it names."""
        return self._read_definitions("type = 'view' OR sql LIKE 'CREATE VIRTUAL%'")

    def _read_definitions(self, condition: str) -> str:
        """Return the SQL of the table or view, and of what that names in turn.

        ``condition`` selects, in SQL, which definitions are searched besides views. All attached
        databases are searched.
        """
        views: dict[str, str] = {}
        for _, database, _ in plain_rows(self._connection, "PRAGMA database_list"):
            listing = f"SELECT name, sql FROM {quote_name(database)}.sqlite_master WHERE type = 'view' OR {condition}"
            for name, text in plain_rows(self._connection, listing):
                views[name] = f"{views.get(name, '')}\n{text}"
        return with_views(self._name, views).removeprefix(self._name)

    def _hazards(self, text: str) -> Iterator[FoundHazard]:
        """Yield the hazards of the connection and of the view with the SQL ``text``.

        These are an open transaction, virtual tables, functions and collations in Python, and
        operations on several rows.
        """
        if self._connection.in_transaction:
            yield FoundHazard("transaction", "The transaction that this connection has open")
        if re.search(r"\bcreate\s+virtual\s+table\b", text, re.IGNORECASE):
            yield FoundHazard("code", "a virtual table")
        text += self._read_definitions(
            "type = 'table' AND (sql LIKE '% AS (%' OR sql LIKE '%COLLATE%')"
        )  # for the collations of columns
        shown = functions_in(text)
        for name, builtin in plain_rows(
            self._connection, "SELECT DISTINCT name, builtin FROM pragma_function_list"
        ):
            if not builtin and name.casefold() in shown:
                yield FoundHazard("code", f"the function {name} in Python")
        own = {
            name.casefold() for _, name, *_ in plain_rows(self._connection, "PRAGMA collation_list")
        }
        for name in sorted(own - {"binary", "nocase", "rtrim"}):
            if re.search(rf"\bcollate\s+\W?{re.escape(name)}\b", text, re.IGNORECASE):
                yield FoundHazard("code", f"the collation {name} in Python")
        yield from find_across(self._text())

    def _kind(self, name: str, declared: str) -> tuple[str, str]:
        """Return how a column is read in SQL, and the name of its Arrow type.

        ``declared`` is the type that the column declares. A column without a known type is refused.
        """
        for parts, text, kind in self._TYPES:
            if any(part in declared.upper() for part in parts):
                return text, kind
        raise BadType(
            f"column {name!r} declares no type that says what its cells are ({declared!r}). Make a view that does without it, or "
            "a table with types: INTEGER, REAL, TEXT, BOOLEAN."
        )

    def _count(self) -> int:
        ((rows,),) = plain_rows(self._connection, f"SELECT COUNT(*) FROM {quote_name(self._name)}")
        return int(rows)

    def counting(self) -> Counting | None:
        """Return the connection as a database that computes sums over the table.

        None is returned for an old SQLite, a low limit of parameters, or a table with a reserved
        name.
        """
        sqlite: Any = import_module("sqlite3")
        parameters = self._connection.getlimit(sqlite.SQLITE_LIMIT_VARIABLE_NUMBER)
        if (
            self._name.casefold().startswith(OURS)
            or parameters < _PARAMETERS
            or sqlite.sqlite_version_info < (3, 35)
        ):
            return None
        return Counting(SqliteDatabase(self._connection), quote_name(self._name))

    def _scan(self, names: list[str]) -> ArrowTables:
        """Yield tables of Arrow with the columns ``names``.

        Texts are fetched as bytes, so that one that is not UTF-8 raises nothing.
        """
        pa: Any = import_module("pyarrow")
        texts = ", ".join(self._read[n] for n in names)
        cursor = self._connection.cursor()
        cursor.row_factory = None
        cursor.execute(f"SELECT {texts} FROM {quote_name(self._name)}")
        types = [self.types[self.names.index(n)] for n in names]
        while rows := cursor.fetchmany(SIZES.fetch):
            columns = []
            for cells, dtype in zip(zip(*rows, strict=True), types, strict=True):
                if pa.types.is_large_string(dtype):
                    # Bytes that may not be a text: they are not decoded here.
                    columns.append(pa.array(cells, pa.large_binary()).view(dtype))
                elif pa.types.is_boolean(dtype):
                    columns.append(pa.array(cells, pa.int64()).cast(dtype))
                else:
                    columns.append(pa.array(cells, dtype))
            yield pa.table(columns, names=names)

    def version(self) -> Hashable:
        """Return what changes when the rows do: counters of SQLite, and sizes and times of its
        files."""
        # For each database, also attached and temporary ones, these count what other connections
        # write, and changes of tables and views.
        seen: list[Any] = [self._connection.total_changes]
        listed: Any = plain_rows(self._connection, "PRAGMA database_list")
        for _, name, file in listed:
            for word in ("data_version", "schema_version"):
                seen += plain_rows(self._connection, f"PRAGMA {quote_name(name)}.{word}")
            there = [f for f in (file, f"{file}-wal") if file and os.path.exists(f)]
            seen.append((name, file, stats_of(there)))
        return repr(seen)


def _read_duckdb(database: Any, table: str) -> Source:
    """Return the source of a table of duckdb, by a connection or by the URL of a file."""
    if isinstance(database, str):
        return _hold(_connect_duckdb(_find_file(database)), table, _read_duckdb)
    relation = None
    with suppress(import_module("duckdb").CatalogException):
        relation = database.table(table)
    if relation is None:
        raise BadValue(
            f"this database has no table {table!r}, and no such view. Of a query make a view, and open that."
        )
    return DuckSource(relation)


def _read_sqlite(database: object, table: str) -> Source:
    """Return the source of a table of SQLite, by a connection or by the URL of a file."""
    if isinstance(database, str):
        return _hold(_connect_sqlite(_find_file(database)), table, SqliteSource)
    return SqliteSource(database, table)


def _hold(connection: Any, table: str, read: Callable[[Any, str], Source]) -> Source:
    """Return the source of a table by a connection that was made for it alone.

    ``read`` makes the source. The connection is closed with it, or at once if that fails.
    """
    try:
        source = read(connection, table)
    except BaseException:
        connection.close()
        raise
    source.held = connection
    return source


def _find_file(url: str) -> str:
    """Return the path in a URL such as sqlite:///FILE; refuse one where no file is."""
    path = os.path.expanduser(url.partition(":///")[2])
    if not os.path.isfile(path):
        raise BadValue(f"no database is at {path!r}.")
    return path


def _connect_duckdb(path: str) -> Any:
    """Return a connection that only reads a file of duckdb; refuse a file that is open for
    writing."""
    duckdb: Any = import_module("duckdb")
    with suppress(duckdb.ConnectionException, duckdb.IOException):
        return duckdb.connect(path, read_only=True)
    raise BadValue(
        f"duckdb does not open {path!r} to read it: a connection may have it open to write. Give that connection, "
        "dpframe.sql(connection, 'table'), or close it."
    )


def _connect_sqlite(path: str) -> Any:
    """Return a connection that only reads a file of SQLite."""
    address = "file:" + quote(os.path.abspath(path)) + "?mode=ro"
    return import_module("sqlite3").connect(
        address, uri=True, check_same_thread=False, isolation_level=None
    )


# The entries of the catalogue --------------------------------------------------------------------


def _make_example_relation(table: object, folder: Path) -> Any:
    base = import_module("duckdb").connect(str(folder / "t.duckdb"))
    base.execute(f"CREATE TABLE t AS SELECT * FROM '{write_example_files(table, folder)}'")
    return base.table("t")


def _make_example_duckdb(table: object, folder: Path) -> NamedTable:
    _make_example_relation(table, folder)
    return NamedTable(f"duckdb:///{folder / 't.duckdb'}", "t")


def _make_example_sqlite(table: Any, folder: Path) -> NamedTable:
    """Write an Arrow table to a file of SQLite, and return it as `dpframe.sql` does.

    The conformance tests use it.
    """
    types = {"int64": "INTEGER", "double": "REAL", "string": "TEXT", "bool": "BOOLEAN"}
    columns = ", ".join(
        f"{quote_name(field.name)} {types[str(field.type)]}" for field in table.schema
    )
    base = import_module("sqlite3").connect(folder / "t.db")
    base.execute(f"CREATE TABLE t ({columns})")
    marks = ", ".join("?" * table.num_columns)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    base.executemany(f"INSERT INTO t VALUES ({marks})", rows)
    base.commit()
    base.close()
    return NamedTable(f"sqlite:///{folder / 't.db'}", "t")


register_kind(
    TableKind(
        title="duckdb relation",
        words="a duckdb relation",
        types=("duckdb.DuckDBPyRelation", "_duckdb.DuckDBPyRelation"),
        read=DuckSource,
        source=DuckSource,
        requires=("duckdb", "pyarrow"),
        extra="duckdb",
        example=_make_example_relation,
    )
)
register_kind(
    TableKind(
        title="duckdb table",
        words="a connection of duckdb, or a URL duckdb:///FILE",
        types=("duckdb.DuckDBPyConnection", "_duckdb.DuckDBPyConnection"),
        read=_read_duckdb,
        source=DuckSource,
        requires=("duckdb", "pyarrow"),
        extra="duckdb",
        example=_make_example_duckdb,
        database=True,
        url_schemes=("duckdb:///",),
    )
)
register_kind(
    TableKind(
        title="SQLite table",
        words="a connection of sqlite3, or a URL sqlite:///FILE",
        types=("sqlite3.Connection",),
        read=_read_sqlite,
        source=SqliteSource,
        requires=("pyarrow",),
        extra="duckdb",
        example=_make_example_sqlite,
        database=True,
        url_schemes=("sqlite:///",),
    )
)
