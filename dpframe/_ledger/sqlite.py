"""A ledger in one SQLite file: a store for the threads, kernels and processes of one machine.

Limits of a file: whoever may write it can write another history with another chain, and an older
copy that is restored while no process uses it is a valid ledger. The chain protects against
accidents and careless hands.

SQLite's locks end when their process closes any handle of the file, so nobody should read or copy
it in a process that uses it.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import sqlite3
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from dpframe._errors import BadType, BadValue, LedgerError
from dpframe._ledger.store import NESTED, OUTSIDE, UNSERVED, Entry, Once, entry_of, scheme_of
from dpframe.mechanisms import _sampling

APPLICATION: Final = 0x64704C67  # "dpLg"
VERSION: Final = 1
PATIENCE = 60.0  # seconds to wait for other processes and threads, of milliseconds each
NEVER: Final = "BEGIN SELECT RAISE(ABORT, 'a ledger is only added to'); END"
# A file must have this text, letter by letter. `head` says where the entries end, so that losing
# the last ones is seen. REPLACE runs no DELETE trigger, hence the conditions before INSERT.
SCHEMA: Final = (
    'CREATE TABLE entries (id INTEGER PRIMARY KEY, "when" TEXT NOT NULL, population TEXT NOT NULL, '
    "kind TEXT NOT NULL, body TEXT NOT NULL, digest BLOB NOT NULL)",
    "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), secret BLOB NOT NULL, "
    "last INTEGER NOT NULL, digest BLOB NOT NULL)",
    f"CREATE TRIGGER a BEFORE INSERT ON entries WHEN NEW.id IS NOT (SELECT last + 1 FROM head) {NEVER}",
    "CREATE TRIGGER b AFTER INSERT ON entries BEGIN UPDATE head SET last = NEW.id, digest = NEW.digest; END",
    f"CREATE TRIGGER c BEFORE UPDATE ON entries {NEVER}",
    f"CREATE TRIGGER d BEFORE DELETE ON entries {NEVER}",
    "CREATE TRIGGER e BEFORE UPDATE ON head WHEN NEW.one IS NOT 1 OR NEW.secret IS NOT OLD.secret OR NEW.last "
    f"IS NOT OLD.last + 1 OR NEW.digest IS NOT (SELECT digest FROM entries WHERE id = NEW.last) {NEVER}",
    f"CREATE TRIGGER f BEFORE DELETE ON head {NEVER}",
)
# EXTRA: the end of the journal is durable too, or a power failure could bring it back and undo the
# commit. Without mmap a file that is cut short is an error and not a SIGBUS.
SAFELY: Final = ("synchronous = EXTRA", "fullfsync = ON", "cell_size_check = ON", "mmap_size = 0")
RESTORE: Final = (
    "Restore the newest copy, or open no session on these people until you know what was spent"
)
ADVICE: Final = {
    sqlite3.SQLITE_BUSY: "another process holds it for too long. Find out which one, then ask again",
    sqlite3.SQLITE_READONLY: "it or its directory is read-only. Give this user the right to write both",
    sqlite3.SQLITE_FULL: "the disk is full. Make room, then ask again",
    sqlite3.SQLITE_CANTOPEN: "it or a journal beside it cannot be opened. Check path and rights",
    sqlite3.SQLITE_CORRUPT: f"it is damaged. {RESTORE}",
}

ChainEnd = tuple[int, bytes]  # the last id of a chain, and the digest of all entries up to it
UNVERIFIED: Final[ChainEnd] = (-1, b"")
_encode = json.JSONEncoder(
    default=list
).encode  # one to one on texts; a blob where text belongs is no text


def follow(position: ChainEnd, when: str, population: str, kind: str, body: str) -> ChainEnd:
    """Return the end of the chain with one more entry."""
    line = _encode((position[0] + 1, when, population, kind, body))
    return position[0] + 1, hashlib.sha256(position[1] + line.encode()).digest()


# SQLite keeps the file locks of a process in memory, and a child would inherit them as its own. So
# one lock is held around all that SQLite does, in any thread, and fork() takes it too.
_lock = threading.RLock()
_open: dict[str, sqlite3.Connection] = {}  # by file; they belong to the thread that holds the lock
_orphaned = False
_fork = threading.local()


def _before_fork() -> None:
    _fork.alone = False  # in case of an interrupt
    _fork.alone = _lock.acquire(timeout=PATIENCE)


def _after_in_parent() -> None:
    if _fork.alone:
        _lock.release()


def _after_in_child() -> None:
    """Leave the parent's open connections alone in a forked child process."""
    global _lock, _orphaned
    # True if fork() came inside a transaction of its own thread, or could not wait for another
    # thread's.
    _orphaned = _orphaned or bool(_open) or not _fork.alone
    for connection in _open.values():
        # Closing it here would undo the parent's transaction in the file, so it must never be
        # collected.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
    _open.clear()
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )


class FileStore(Once):
    """One SQLite file, shared by the threads, kernels and processes of one machine.

    A connection lives for one transaction or one reading, and first verifies what was added since
    this object last looked, or all of it: the digests must form one chain that ends where the
    file's head says.
    """

    durable = True

    def __init__(self, path: str | os.PathLike[str]):
        """Open the ledger in a file, or create it."""
        self.label, self._path = _local(path)
        self.secret = b""
        # What is verified and durable, and that with what the open transaction appended.
        self._verified = self._next = UNVERIFIED
        self.busy = self._failed = False
        if not os.path.lexists(self._path):
            self._guard(self._create)
        self._read("SELECT 1")
        if not (os.access(self._path, os.W_OK) and os.access(os.path.dirname(self._path), os.W_OK)):
            raise self._error(ADVICE[sqlite3.SQLITE_READONLY])

    @property
    def place(self) -> str:
        """The one real path of the file."""
        return self._path

    @staticmethod
    def place_of(ledger: str) -> str:
        """Return the one real path of a file, whichever of its names is given."""
        return _local(ledger)[1]

    @staticmethod
    def exists(ledger: str) -> bool:
        """Return whether there is a file under this path, be it a broken one."""
        return os.path.lexists(ledger)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the file's lock for a block, and commit the entries that the block appended."""
        with self.open_locked("BEGIN EXCLUSIVE") as connection:
            self.busy, self._failed, self._next = True, False, self._verified
            try:
                yield
                self._guard(lambda: self._commit(connection))
            finally:
                self.busy = False  # closing the connection undoes what was not committed

    def append(self, population: str, kind: str, body: str) -> Entry:
        """Write one entry to the ledger inside the open transaction, and return it."""
        with _lock:
            connection = _open.get(self._path)  # a forked child has no connection
            if connection is None or not self.busy or self._failed:
                raise LedgerError(OUTSIDE)
            entry = entry_of(self._next[0] + 1, population, kind, body)
            after = follow(self._next, entry.when, population, kind, body)
            row = (entry.id, entry.when, population, kind, body, after[1])
            self._failed = True
            self._guard(
                lambda: connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", row)
            )
            self._failed, self._next = False, after
            return entry

    def entries(self, population: str, after: int = 0) -> list[Entry]:
        """Return the entries of a population whose number is above ``after``."""
        # There is no index: a damaged one would miss entries that the chain has.
        sql = (
            'SELECT id, "when", kind, body FROM entries WHERE id > ? AND population = ? ORDER BY id'
        )
        return [Entry(*row) for row in self._read(sql, after, population)]

    def populations(self) -> list[str]:
        return [
            name
            for (name,) in self._read("SELECT population FROM entries GROUP BY 1 ORDER BY min(id)")
        ]

    def _read(self, sql: str, *values: object) -> list[Any]:
        with self.open_locked("BEGIN") as connection:
            return list(self._guard(lambda: connection.execute(sql, values).fetchall()))

    @contextmanager
    def open_locked(self, begin: str) -> Iterator[sqlite3.Connection]:
        """Open an SQLite transaction on the verified file for a block; ``begin`` is the SQL that
        begins it. Reading inside this thread's open transaction is allowed, and writing is refused
        there."""
        deadline = time.monotonic() + PATIENCE
        while True:
            lock = _lock  # after a fork the name means another one
            if _orphaned:
                raise self._error(
                    "this process was forked inside a transaction of a ledger. Fork outside"
                )
            if not lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
                raise self._error("another thread holds it for too long. Ask again later")
            try:
                if self._path in _open:
                    if begin != "BEGIN" or not self.busy:
                        raise LedgerError(NESTED)
                    return (yield _open[self._path])
                try:
                    if self._guard(lambda: self._attempt(begin, deadline)):
                        return (yield _open[self._path])
                finally:
                    if self._path in _open:  # in a forked child it is gone
                        _close(_open.pop(self._path))
            finally:
                lock.release()
            time.sleep(
                0.001 + time.perf_counter_ns() % 4096 * 1e-6
            )  # uneven: nobody is always late

    def _attempt(self, begin: str, deadline: float) -> bool:
        """Try once to open a verified connection. Return False if another process holds the file
        and time is left."""
        self._file = os.stat(self._path)
        if not stat.S_ISREG(self._file.st_mode):
            raise self._error(
                "it is a directory or no regular file. Give the path of a file on a local disk"
            )
        if self._file.st_size < 512:  # SQLite would take it for a new file
            raise self._error(f"the file is empty, so whatever it held was cut off. {RESTORE}")
        uri = f"{Path(self._path).as_uri()}?mode=rw"  # creates nothing
        connection = sqlite3.connect(uri, uri=True, timeout=0.05, isolation_level=None)
        try:
            for pragma in SAFELY:
                connection.execute(f"PRAGMA {pragma}").fetchall()
            connection.execute(begin)
            self._check_kind(connection)
            self._verify(connection)
        except BaseException as error:
            _close(connection)
            if _code(error) == sqlite3.SQLITE_BUSY and time.monotonic() < deadline:
                return False
            raise
        _open[self._path] = connection
        return True

    def _commit(self, connection: sqlite3.Connection) -> None:
        """Commit the entries, and refuse if the file was replaced meanwhile."""
        if _open.get(self._path) is not connection or self._failed or not connection.in_transaction:
            raise self._error(
                "an entry was not written, or this is a forked child. All of it was undone"
            )
        connection.execute("COMMIT")
        # A file that was unlinked or replaced takes writes as willingly, but nobody will read them.
        if not os.path.samestat(self._file, os.stat(self._path)):
            raise self._error(f"it was replaced while it was written. {RESTORE}")
        self._verified = self._next

    def _error(self, reason: str) -> LedgerError:
        return LedgerError(
            f"the ledger {self.label!r} cannot be used: {reason}. Nothing was answered."
        )

    def _guard(self, work: Callable[[], Any]) -> Any:
        """Return the result of ``work``; errors of SQLite and of the system become a readable
        LedgerError."""
        try:
            return work()
        except (
            sqlite3.Error,
            UnicodeError,
            MemoryError,
        ) as error:  # it is damage that decodes to these two
            raise self._error(
                ADVICE.get(_code(error), f"SQLite says {error}. {RESTORE}")
            ) from error
        except OSError as error:
            raise self._error(
                f"the system says {error.strerror}. Check the path. {RESTORE}"
            ) from error

    def _check_kind(self, connection: sqlite3.Connection) -> None:
        """Refuse a file that is not an intact ledger of this version."""
        names = (
            "application_id",
            "user_version",
            "page_size",
            "page_count",
            "journal_mode",
            "synchronous",
        )
        kind, version, size, count, *modes = (
            connection.execute(f"PRAGMA {n}").fetchone()[0] for n in names
        )
        if kind != APPLICATION:
            raise self._error("it is an SQLite file of another program. Check the path")
        if version != VERSION:
            raise self._error(
                f"it has format {version}, this dpframe knows {VERSION}. Use a newer dpframe"
            )
        if modes != ["delete", 3]:
            raise self._error(
                "its journal mode was changed. Set it back with PRAGMA journal_mode = DELETE"
            )
        if os.stat(self._path).st_size != size * count:
            raise self._error(f"it was cut off. {RESTORE}")
        if {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master").fetchall()} != {
            *SCHEMA
        }:
            raise self._error(f"its tables or triggers were changed by another program. {RESTORE}")

    def _verify(self, connection: sqlite3.Connection) -> None:
        """Refuse a ledger whose entries were changed, lost or rolled back. Each digest must follow
        from the one before, from the last verified entry to the head."""
        damaged = self._error(f"some of its entries were changed or lost. {RESTORE}")
        heads = connection.execute("SELECT CAST(secret AS BLOB), last, digest FROM head").fetchall()
        if len(heads) != 1:
            raise damaged
        (secret, *head), position, start = heads[0], self._verified, self._verified[0] + 1
        if position == UNVERIFIED:  # the first look: pages too
            if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
                raise self._error(ADVICE[sqlite3.SQLITE_CORRUPT])
            position, start = (0, secret), -(2**63)
        else:
            digests = connection.execute(
                "SELECT digest FROM entries WHERE id = ?", (position[0],)
            ).fetchall()
            if secret != self.secret or digests != [(position[1],)] * (position[0] > 0):
                raise self._error(f"it was rolled back or replaced while it was in use. {RESTORE}")
        with closing(
            connection.execute("SELECT * FROM entries WHERE id >= ? ORDER BY id", (start,))
        ) as rows:
            for number, *fields, digest in rows:
                position = follow(position, *fields)
                if position != (number, digest):
                    raise damaged
        if position != tuple(head):
            raise damaged
        self.secret, self._verified = secret, position

    def _create(self) -> None:
        """Create a new ledger file, which appears under its name complete or not at all. Of two
        processes, the second uses the file of the first."""
        folder, name = os.path.split(self._path)
        if not os.path.isdir(folder):
            raise self._error(f"there is no directory {folder!r}. Make it first")
        for rest in (f"{name}-journal", f"{name}-wal"):
            if os.path.lexists(os.path.join(folder, rest)):  # SQLite would apply it to the new file
                raise self._error(f"the file is gone, but its {rest!r} is still there. {RESTORE}")
        handle, draft = tempfile.mkstemp(
            prefix=".ledger-", suffix=".new", dir=folder
        )  # for its owner alone
        os.close(handle)
        try:
            key = _sampling.random_bytes(32).hex()
            kind = f"application_id = {APPLICATION}", f"user_version = {VERSION}"
            pragmas = [f"PRAGMA {pragma}" for pragma in (*SAFELY, *kind)]
            head = f"INSERT INTO head VALUES (1, x'{key}', 0, x'{key}')"  # the chain starts from the secret
            with _lock, closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                for sql in (*pragmas, "BEGIN", *SCHEMA, head, "COMMIT"):
                    connection.execute(sql)
            with suppress(FileExistsError):
                os.link(draft, self._path)
        finally:
            os.unlink(draft)
        if os.name == "posix":
            directory = os.open(folder, os.O_RDONLY)
            os.fsync(directory)
            os.close(directory)


def _close(connection: sqlite3.Connection) -> None:
    """Roll back and close a connection at once, or else a kept traceback would keep the file
    locked."""
    with suppress(sqlite3.Error):
        connection.rollback()
    connection.close()


def _code(error: BaseException) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the details of an extended code


def _local(path: object) -> tuple[str, str]:
    """Return the path of a ledger file as it was given, and its real absolute path, which
    identifies it. What is no path is refused."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(text, str):
        raise BadType(f"a ledger is given by the path of a file, not by {type(path).__name__}.")
    if not text or "\0" in text or text == ":memory:":
        raise BadValue(
            f"{text!r} names no file. Give a path such as 'study.ledger', or None for memory."
        )
    if scheme_of(text):
        raise BadValue(UNSERVED)
    return text, os.path.normcase(os.path.realpath(text))
