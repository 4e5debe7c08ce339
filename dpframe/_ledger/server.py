"""A ledger on a PostgreSQL server: a store for several machines, by SQLAlchemy (the extra
``server``).

Limits of a server, as of a file: whoever owns its tables can write another history with another
chain, and an older copy that is restored while no process uses it is a valid ledger. Texts are kept
as bytes, so that neither the encoding nor the collation of a database, nor a NUL, which
PostgreSQL's texts cannot hold, changes one.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from typing import Any, Final
from urllib.parse import quote

from dpframe._errors import BadValue, LedgerError
from dpframe._ledger.sqlite import RESTORE, UNVERIFIED, follow
from dpframe._ledger.store import NESTED, OUTSIDE, Entry, Once, entry_of
from dpframe.mechanisms import _sampling

DRIVER: Final = "postgresql+psycopg"
SERVED: Final = (DRIVER, "postgresql")  # the schemes of URLs
VERSION: Final = 1
PATIENCE = 60.0  # seconds to wait for other processes and threads, and what a client that hangs may keep them waiting
RETURN = 30.0  # seconds to wait for a server that was there before
# A network that is gone is noticed in less than a minute, where TCP by itself takes hours.
LINK: Final = {
    "connect_timeout": 10,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 40_000,
    "application_name": "dpframe",
}

# The tables, in the schema dpframe whatever the user's search path is, and the triggers that
# protect them; both are compared with those of the server. The head says where the entries end, so
# that losing the last ones is noticed.
COLUMNS: Final = {
    "entries": {
        "id": "bigint",
        "stamp": "text",
        "population": "bytea",
        "kind": "bytea",
        "body": "bytea",
        "digest": "bytea",
    },
    "head": {
        "one": "integer",
        "version": "integer",
        "secret": "bytea",
        "last": "bigint",
        "digest": "bytea",
    },
}
_NEVER: Final = "RAISE EXCEPTION 'a ledger is only added to';"
_ROW, _BEFORE, _INSERT, _DELETE, _UPDATE, _TRUNCATE = (
    1,
    2,
    4,
    8,
    16,
    32,
)  # as pg_trigger.tgtype has them
TRIGGERS: Final = {
    ("entries", "added"): (
        _ROW | _INSERT,
        "BEGIN UPDATE dpframe.head SET last = NEW.id, digest = NEW.digest; RETURN NULL; END",
    ),
    ("entries", "kept"): (_BEFORE | _UPDATE | _DELETE | _TRUNCATE, f"BEGIN {_NEVER} END"),
    ("head", "follows"): (
        _ROW | _BEFORE | _UPDATE,
        "BEGIN IF (NEW.one, NEW.version, NEW.secret, NEW.last) IS DISTINCT FROM (OLD.one, OLD.version, OLD.secret, "
        "OLD.last + 1) OR NEW.digest IS DISTINCT FROM (SELECT e.digest FROM dpframe.entries e WHERE e.id = NEW.last) "
        f"THEN {_NEVER} END IF; RETURN NEW; END",
    ),
    ("head", "stays"): (_BEFORE | _INSERT | _DELETE | _TRUNCATE, f"BEGIN {_NEVER} END"),
}
SHAPE: Final = """
SELECT c.relname::text, a.attname::text, a.atttypid::regtype::text, a.attnotnull AND c.relpersistence = 'p' AND c.relkind = 'r'
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = pg_catalog.to_regnamespace('dpframe') AND c.relname IN ('entries', 'head')
AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL SELECT c.relname::text, t.tgname::text, t.tgtype || p.prosrc,
t.tgenabled = 'O' AND t.tgqual IS NULL AND t.tgattr::text = ''
FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
WHERE c.relnamespace = pg_catalog.to_regnamespace('dpframe') AND c.relname IN ('entries', 'head') AND NOT t.tgisinternal
"""
# For one transaction, whatever the defaults of the server, the database and the user are. With
# synchronous_commit off the server would acknowledge entries that it may yet lose.
SETTINGS: Final = """
SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.set_config('search_path', 'pg_catalog', true),
pg_catalog.set_config('lock_timeout', :left, true), pg_catalog.set_config('statement_timeout', :slow, true),
pg_catalog.set_config('idle_in_transaction_session_timeout', :patience, true),
pg_catalog.set_config('synchronous_commit', CASE pg_catalog.current_setting('synchronous_commit')
WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)
"""
# While a ledger is made; the number is "dpLgmake".
ALONE: Final = "SELECT pg_catalog.pg_advisory_xact_lock(7237104117849515815)"
HEAD: Final = "SELECT one, version, secret, last, digest FROM ONLY dpframe.head"
INSERT: Final = (
    "INSERT INTO dpframe.entries VALUES (:id, :stamp, :population, :kind, :body, :digest)"
)
SINCE: Final = "SELECT id, stamp, population, kind, body, digest FROM ONLY dpframe.entries WHERE id >= :start ORDER BY id"
ENTRIES: Final = """
SELECT id, stamp, kind, body FROM ONLY dpframe.entries WHERE id > :after AND population = :population ORDER BY id
"""
POPULATIONS: Final = (
    "SELECT population FROM ONLY dpframe.entries GROUP BY population ORDER BY min(id)"
)

AWAY: Final = "the server does not answer. Check that it runs and takes connections, and host, port, database, user and password"
# By the beginning of an SQLSTATE. The server's own message is not passed on: it may quote the
# statement and its values.
ADVICE: Final = {
    "28": "the server does not let this user in. Check user and password",
    "3D000": "the server has no such database. Check the name, or have it made",
    "42501": "this user lacks a right. Who makes a ledger needs CREATE on the database; who uses it, USAGE on the schema "
    "dpframe, SELECT and INSERT on dpframe.entries, SELECT and UPDATE on dpframe.head",
    "25P02": "an entry was not written. All of it was undone",
    "25006": "the server is read-only. Give the address of the one that is written to",
    "55P03": "another process holds it for too long. Find out which one, then ask again",
    "57014": "the server was too slow. Ask again later",
    "53": "the server has no room left on its disk, in memory or for connections. Make room, then ask again",
    "58": f"the server cannot read or write its files. {RESTORE}",
    "XX": f"it is damaged. {RESTORE}",
}
GONE: Final = ("08", "57P", "25P03", "25P04")  # connections that ended; the server may be back soon
AGAIN: Final = ("40",)  # undone for the sake of others

_all: weakref.WeakSet[ServerStore] = weakref.WeakSet()


def _after_in_child() -> None:
    for store in list(_all):
        store._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_in_child)


class ServerStore(Once):
    """The ledger of one PostgreSQL database, shared by the threads, processes and machines that
    reach it.

    A transaction locks the one row of the head, so that there is one at a time; a reading sees one
    snapshot. Both first verify what was added since this object last looked, or all of it: the
    digests must form one chain that ends where the head says.

    Formal guarantee, where the server keeps what it acknowledged: that of `Store`. If the server
    goes away during COMMIT, nobody can say whether the transaction is on record. Then `transaction`
    raises, so that nothing is answered, and the next use waits for the head's lock, which the lost
    transaction holds until it is decided; if its entries are in the chain then, they count.
    """

    durable = True

    def __init__(self, ledger: str, make: bool = True):
        """Connect to a ledger in PostgreSQL, and create it if ``make`` allows it. ``ledger`` is the
        URL."""
        self._url = _url_of(ledger)  # with the password: it is shown nowhere
        self.place = _place_of(self._url)
        self.secret = b""
        # What is verified and on record, and that with what the open transaction appended.
        self._verified = self._next = UNVERIFIED
        self.busy = self._failed = self._undecided = False
        self._make = make
        self._turn = threading.RLock()
        self._connections: list[Any] = []  # the connection, if there is one
        self._tables_checked = (
            False  # whether this connection has found the tables as they should be
        )
        weakref.finalize(self, _close, self._connections)
        _all.add(self)
        with self._begun(False):
            pass

    @staticmethod
    def place_of(ledger: str) -> str:
        """Return the server, its port and the database: without user, password and settings, in
        which its users differ."""
        return _place_of(_url_of(ledger))

    @staticmethod
    def exists(ledger: str) -> bool:
        """Return whether the database has a ledger. A server that does not answer is an error."""
        return ServerStore(ledger, make=False).secret != b""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the ledger's lock for a block, and commit the entries that the block appended."""
        with self._begun(True) as connection:
            self.busy, self._failed, self._next = True, False, self._verified
            try:
                yield
                self._commit(connection)
            finally:
                self.busy = False

    def append(self, population: str, kind: str, body: str) -> Entry:
        """Write one entry to the ledger inside the open transaction, and return it."""
        with self._turn:
            if not (self.busy and self._connections) or self._failed:
                raise LedgerError(OUTSIDE)
            entry = entry_of(self._next[0] + 1, population, kind, body)
            after = follow(self._next, entry.when, population, kind, body)
            texts = {
                "population": population.encode(),
                "kind": kind.encode(),
                "body": body.encode(),
            }
            self._ask(INSERT, id=entry.id, stamp=entry.when, **texts, digest=after[1])
            self._next = after
            return entry

    def entries(self, population: str, after: int = 0) -> list[Entry]:
        """Return the entries of a population whose number is above ``after``."""
        with self._begun(False):
            rows = self._ask(ENTRIES, after=after, population=population.encode())
            return [
                Entry(number, when, kind.decode(), body.decode())
                for number, when, kind, body in rows
            ]

    def populations(self) -> list[str]:
        with self._begun(False):
            return [name.decode() for (name,) in self._ask(POPULATIONS)]

    # Transactions ---------------------------------------------------------------------------------------------

    @contextmanager
    def _begun(self, write: bool) -> Iterator[Any]:
        """Open a transaction on the verified ledger for a block, and roll it back at the end.
        Reading inside this thread's open transaction is allowed, and writing is refused there.
        ``write`` asks for the lock."""
        turn = self._turn  # after a fork the name means another one
        if not turn.acquire(timeout=PATIENCE):
            raise self._error("another thread holds it for too long. Ask again later")
        try:
            if self.busy:
                if write:
                    raise LedgerError(NESTED)
                yield None
                return
            # After a COMMIT without an answer readers lock, too: that is when its transaction is
            # decided.
            connection = self._begin(write or self._undecided)
            try:
                yield connection
            finally:
                self._end(connection)
        finally:
            turn.release()

    def _begin(self, lock: bool) -> Any:
        """Begin a transaction, and retry while a lost server may come back. ``lock`` asks for the
        write lock."""
        started = time.monotonic()
        until = started if self._verified == UNVERIFIED else started + RETURN
        while True:
            try:
                return self._attempt(lock, started + PATIENCE)
            except BaseException as error:
                self._drop()
                problem, may_pass = self._problem(error)
            if not may_pass or time.monotonic() > until:
                raise problem
            # For an uneven time, so that they do not all come back at once.
            time.sleep(0.05 + time.perf_counter_ns() % 65536 * 1e-6)

    def _attempt(self, lock: bool, deadline: float) -> Any:
        """Try once to begin a transaction, and return its connection. The ledger is verified, and
        created if it is new."""
        if not self._connections:
            self._connections.append(_connect(self._url))
            self._tables_checked = False
        (connection,) = self._connections
        # A row lock reads what is newest; readers have one snapshot.
        level = "READ COMMITTED" if lock else "REPEATABLE READ"
        connection.execution_options(isolation_level=level, postgresql_readonly=not lock)
        # Waiting for the lock is over before a statement is too slow: it says so.
        times = {"left": deadline - time.monotonic(), "patience": PATIENCE, "slow": 2 * PATIENCE}
        standby, *_ = self._run(
            SETTINGS, **{k: f"{max(1, round(1000 * t))}ms" for k, t in times.items()}
        )[0]
        if standby:
            raise self._error(
                "the server is a standby, which may lag behind. Give the address of the one that is written to"
            )
        self._tables_checked = self._tables_checked or self._has_tables()
        if self._tables_checked:
            self._verify(lock)
        elif self._verified != UNVERIFIED:
            raise self._error(f"its tables are gone. {RESTORE}")
        elif self._make:
            connection.rollback()
            self._create(connection)
            return self._attempt(lock, deadline)
        return connection

    def _commit(self, connection: Any) -> None:
        """Commit the entries, after a check that all of them were written. If the connection breaks
        meanwhile, the next transaction finds out what was committed."""
        if self._connections != [connection] or self._failed:
            raise self._error(
                "an entry was not written, or this is a forked child. All of it was undone"
            )
        if self._next == self._verified:
            return
        # COMMIT of a transaction that the server has given up raises nothing; this does, and it
        # notices an entry that some rule of the database kept away.
        if tuple(self._ask(HEAD)[0])[3:] != self._next:
            raise self._error(f"an entry was not written. All of it was undone. {RESTORE}")
        self._undecided = True
        self.close_on_failure(
            connection.commit, "It is counted if it was written, and the next question will know"
        )
        self._undecided, self._verified = False, self._next

    def _end(self, connection: Any) -> None:
        """Roll back at once what was not committed, or else a kept traceback would keep the ledger
        locked."""
        if self._connections == [connection]:  # not in a forked child
            try:
                connection.rollback()
            except BaseException as error:
                self._drop()
                if not isinstance(error, Exception):
                    raise

    def _drop(self) -> None:
        _close(self._connections)

    def _forget(self) -> None:
        """Let go of the connection in a forked child. It belongs to the parent, who would lose it
        if it was closed here."""
        for connection in self._connections:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self._connections.clear()
        self._turn, self.busy = threading.RLock(), False

    # Statements --------------------------------------------------------------------------------------------------

    def _run(self, sql: str, **values: object) -> Any:
        result = self._connections[0].execute(_sqlalchemy().text(sql), values)
        return result.all() if result.returns_rows else []

    def _ask(self, sql: str, **values: object) -> Any:
        """Return the rows of a statement inside a transaction: one that fails undoes all of it."""
        return self.close_on_failure(lambda: self._run(sql, **values), "All of it was undone")

    def close_on_failure(self, work: Callable[[], Any], then: str) -> Any:
        """Run ``work``, and write no more in this transaction if it fails. ``then`` is added to the
        error's text."""
        try:
            return work()
        except BaseException as error:
            self._failed = True
            problem, _ = self._problem(error, then)
        raise problem

    def _problem(self, error: BaseException, then: str = "") -> tuple[BaseException, bool]:
        """Return the error to show to the user, and whether another attempt may help. Texts of the
        server are left out, as they may hold private data."""
        translated = (
            _sqlalchemy().exc.SQLAlchemyError,
            import_module("psycopg").Error,
            OSError,
            UnicodeError,
            MemoryError,
        )
        if not isinstance(error, translated):
            return error, False
        cause = getattr(error, "orig", None) or error
        state = getattr(cause, "sqlstate", None) or ""
        lost = (
            not state or state.startswith(GONE) or getattr(error, "connection_invalidated", False)
        )
        if isinstance(error, UnicodeError):
            reason, may_pass = ADVICE["XX"], False
        elif not state and isinstance(cause, import_module("psycopg").ProgrammingError):
            reason, may_pass = "PostgreSQL does not know a setting behind ? in its address", False
        elif lost:
            reason, may_pass = AWAY, True
        else:
            advice = next((ADVICE[start] for start in ADVICE if state.startswith(start)), None)
            reason, may_pass = (
                advice or f"the server refuses with {state}. {RESTORE}",
                state.startswith(AGAIN),
            )
        return self._error(f"{reason}. {then}" if then else reason), may_pass

    def _error(self, reason: str) -> LedgerError:
        return LedgerError(
            f"the ledger {self.place!r} cannot be used: {reason}. Nothing was answered."
        )

    # Tables and chain -----------------------------------------------------------------------------------------------

    def _has_tables(self) -> bool:
        """Return whether the database holds a ledger of this version. One with changed tables or
        triggers is refused."""
        shape = {tuple(row) for row in self._run(SHAPE)}
        if not shape:
            return False
        if ("head", "version", "integer", True) in shape:
            for (version,) in self._run("SELECT version FROM dpframe.head"):
                if version != VERSION:
                    raise self._error(
                        f"it has format {version}, this dpframe knows {VERSION}. Use a newer dpframe"
                    )
        if shape != _shape():
            raise self._error(
                f"its schema dpframe has tables or triggers that are not a ledger's, or were changed. {RESTORE}"
            )
        return True

    def _create(self, connection: Any) -> None:
        """Create the ledger's tables and triggers in one transaction. If another process was first,
        its ledger is used."""
        connection.execution_options(isolation_level="READ COMMITTED", postgresql_readonly=False)
        self._run(ALONE)
        if self._has_tables():
            connection.rollback()
            return
        if self._run("SELECT pg_catalog.to_regnamespace('dpframe') IS NULL")[0][0]:
            self._run("CREATE SCHEMA dpframe")
        for table, columns in COLUMNS.items():
            definitions = ", ".join(f"{name} {kind} NOT NULL" for name, kind in columns.items())
            self._run(
                f"CREATE TABLE dpframe.{table} ({definitions}, PRIMARY KEY ({next(iter(columns))}))"
            )
        key = _sampling.random_bytes(32)  # the chain starts from the secret
        self._run("ALTER TABLE dpframe.head ADD CHECK (one = 1)")
        self._run(
            "INSERT INTO dpframe.head VALUES (1, :version, :key, 0, :key)", version=VERSION, key=key
        )
        for (table, name), (kind, source) in TRIGGERS.items():
            function = f"dpframe.{table}_{name}()"
            safe = "LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp"
            self._run(f"CREATE FUNCTION {function} RETURNS trigger {safe} AS $${source}$$")
            self._run(
                f"CREATE TRIGGER {name} {_moment(kind)} ON dpframe.{table} FOR EACH "
                f"{'ROW' if kind & _ROW else 'STATEMENT'} EXECUTE FUNCTION {function}"
            )
        connection.commit()

    def _verify(self, lock: bool) -> None:
        """Refuse a ledger whose entries were changed, lost or rolled back. Each digest must follow
        from the one before, from the last verified entry to the head. ``lock`` also locks the head
        for writing."""
        damaged = self._error(f"some of its entries were changed or lost. {RESTORE}")
        heads = self._run(HEAD + " FOR UPDATE" * lock)
        if len(heads) != 1:
            raise damaged
        _, version, secret, *head = heads[0]
        rolled_back = self._error(f"it was rolled back or replaced while it was in use. {RESTORE}")
        position, first_look = self._verified, self._verified == UNVERIFIED
        if first_look:
            position = 0, secret
        elif (version, secret) != (VERSION, self.secret):
            raise rolled_back
        # All of a long ledger is never in memory at once.
        since = _sqlalchemy().text(SINCE).execution_options(stream_results=first_look)
        with closing(
            self._connections[0].execute(since, {"start": -(2**63) if first_look else position[0]})
        ) as rows:
            if position[0] > 0:
                last_row = rows.fetchone()
                if last_row is None or (last_row[0], last_row[-1]) != position:
                    raise rolled_back
            for number, stamp, population, kind, body, digest in rows:
                position = follow(
                    position, stamp, population.decode(), kind.decode(), body.decode()
                )
                if position != (number, digest):
                    raise damaged
        if position != tuple(head):
            raise damaged
        self.secret, self._verified = secret, position
        if lock:
            self._undecided = False


def _moment(kind: int) -> str:
    """Return the moment when a trigger of this type runs, in SQL."""
    events = {_INSERT: "INSERT", _DELETE: "DELETE", _UPDATE: "UPDATE", _TRUNCATE: "TRUNCATE"}
    return f"{'BEFORE' if kind & _BEFORE else 'AFTER'} {' OR '.join(w for bit, w in events.items() if kind & bit)}"


def _shape() -> set[tuple[str, str, str, bool]]:
    """Return the columns and triggers of an intact ledger, as the query `SHAPE` lists them."""
    columns = {
        (t, name, kind, True) for t, types in COLUMNS.items() for name, kind in types.items()
    }
    return columns | {
        (t, name, f"{kind}{source}", True) for (t, name), (kind, source) in TRIGGERS.items()
    }


def _close(connections: list[Any]) -> None:
    """Close the connections of a store; the server undoes statements that are not committed."""
    while connections:
        connection = connections.pop()
        with suppress(Exception):
            connection.invalidate()  # without a word to the server, which may be gone
        with suppress(Exception):
            connection.close()


# URLs -----------------------------------------------------------------------------------------------------------------


def _sqlalchemy() -> Any:
    """Return SQLAlchemy, imported with its driver, or raise an error that says what to install."""
    try:
        import_module("psycopg")
        return import_module("sqlalchemy")
    except ImportError:
        missing = True
    if missing:
        raise BadValue(
            'a ledger on a server needs SQLAlchemy and psycopg: pip install "dpframe[server]".'
        )


def _connect(url: Any) -> Any:
    """Return a new database connection outside of any pool. Its parameters stay out of logs and
    errors."""
    sql = _sqlalchemy()
    link = {name: value for name, value in LINK.items() if name not in url.query}
    # Statements that a server prepares are lost where a pooler stands in between.
    fixed_settings = {"client_encoding": "utf8", "prepare_threshold": None}
    engine = sql.create_engine(
        url,
        poolclass=sql.pool.NullPool,
        hide_parameters=True,
        connect_args={**link, **fixed_settings},
    )
    return engine.connect()


def _url_of(ledger: str) -> Any:
    """Return the parsed URL of a ledger on a server, with exactly one host and port. A text without
    a database is refused, but never quoted, since it may hold a password."""
    sql = _sqlalchemy()
    try:
        url = sql.make_url(ledger)
        query = dict(url.query)
        hosts, ports = (_several(query.pop(name, ())) for name in ("host", "port"))
        hosts += [url.host] if url.host else []
        ports += [url.port] if url.port else []
        host = str(hosts[0] if hosts else os.environ.get("PGHOST", ""))
        port = int(ports[0] if ports else os.environ.get("PGPORT") or 5432)
    except (sql.exc.SQLAlchemyError, ValueError):
        url = None
    wrong = "a ledger on a server is postgresql+psycopg://host/database, or for a socket ...:///database?host=/folder"
    if url is None or not url.database or url.drivername.lower() not in SERVED:
        raise BadValue(f"{wrong}, not this text.")
    if "@" in f"{url.host}{url.database}":  # the rest of a password that was not written so
        raise BadValue(f"{wrong}. In a password @ is written as %40, / as %2F, and so on.")
    if (
        len(hosts) > 1
        or len(ports) > 1
        or "," in host
        or {"service", "dbname", "hostaddr"} & {*query}
    ):
        raise BadValue(
            f"{wrong}. Name one host and one database: two servers would be two budgets."
        )
    if host and not host.startswith(("/", "@")):
        address, host = {"host": host.lower().rstrip("."), "port": port}, ""
    else:
        address, query = (
            {},
            {**query, **({"host": os.path.normpath(host)} if host else {}), "port": str(port)},
        )
    return sql.URL.create(
        DRIVER, url.username, url.password, database=url.database, query=query, **address
    )


def _several(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) else list(value)


def _place_of(url: Any) -> str:
    """Return the address of a ledger without user and password, which identifies it."""
    database = quote(url.database, safe="")
    if url.host:
        host = f"[{url.host}]" if ":" in url.host else url.host
        return f"{DRIVER}://{host}:{url.port}/{database}"
    settings = "".join(
        f"{name}={quote(url.query[name], safe='')}&"
        for name in ("host", "port")
        if name in url.query
    )
    return f"{DRIVER}:///{database}?{settings[:-1]}"
