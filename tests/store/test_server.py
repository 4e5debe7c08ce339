"""The store on a PostgreSQL server, by the tests of all stores, and what a server has to show besides: connections that are
cut, locks, copies and forks."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from dpframe import LedgerError
from dpframe._ledger import server as module
from dpframe._ledger import store as entries_module
from dpframe._ledger.server import ServerStore
from tests.store.conformance import DurableConformance
from tests.store.files import add, bodies, output, posix, start, together

pytestmark = pytest.mark.extras


class TestServer(DurableConformance):
    code = "store = open_store(path)\n"

    @pytest.fixture(autouse=True)
    def running(self, postgres):
        self.server = postgres

    def database(self, path: Path) -> str:
        return f"{hashlib.sha256(str(path.parent).encode()).hexdigest()[:8]}-{path.name}"

    def ledger(self, path: Path) -> str:
        return self.server.create(self.database(path))

    def open(self, path: Path) -> Any:
        return ServerStore(self.ledger(path))

    def run(self, path: Path, code: str, *args: object) -> Any:
        return start(self.code + code, self.ledger(path), *args)

    def is_free(self, store: Any) -> None:
        database = store.place.partition("///")[2].partition("?")[0]
        assert self.server.sql(database, "SELECT 1 FROM dpframe.head FOR UPDATE NOWAIT") == [(1,)]

    def sql(self, *statements: str) -> Any:
        """What somebody does who owns the tables, and may do without the triggers."""
        free = "SET session_replication_role = replica"
        return lambda path: self.server.sql(self.database(path), free, *statements)

    @property
    def damages(self) -> Any:
        return {
            "no head": self.sql("DELETE FROM dpframe.head"),
            "no entries": self.sql("TRUNCATE dpframe.entries"),
            "lost its last entry": self.sql("DELETE FROM dpframe.entries WHERE id = 3"),
            "another version": self.sql("UPDATE dpframe.head SET version = 2"),
            "another program": self.sql(
                "DROP SCHEMA dpframe CASCADE",
                "CREATE SCHEMA dpframe",
                "CREATE TABLE dpframe.head (one text)",
                "CREATE TABLE dpframe.entries (id bigint, body text)",
            ),
            "one table of two": self.sql("DROP TABLE dpframe.entries CASCADE"),
        }

    @property
    def changes(self) -> Any:
        return {
            "a changed entry": self.sql(
                "UPDATE dpframe.entries SET body = 'Sesame-9' WHERE id = 2"
            ),
            "text of no encoding": self.sql(
                r"UPDATE dpframe.entries SET body = '\xff' WHERE id = 2"
            ),
            "a wide column": self.sql("ALTER TABLE dpframe.entries ADD COLUMN more text"),
            "idle triggers": self.sql("ALTER TABLE dpframe.entries DISABLE TRIGGER kept"),
            "another trigger": self.sql(
                "CREATE OR REPLACE FUNCTION dpframe.head_follows() RETURNS trigger LANGUAGE plpgsql AS "
                "'BEGIN RETURN NEW; END'"
            ),
            "nothing after a crash": self.sql("ALTER TABLE dpframe.entries SET UNLOGGED"),
            "rows out of sight": self.sql(
                "ALTER TABLE dpframe.entries ADD CHECK (id < 0) NOT VALID",
                "UPDATE dpframe.entries SET id = -id",
            ),
        }


# What a server has to show besides -----------------------------------------------------------------------------


def interrupted(store, what, rest=None):
    """A transaction in which something happens, with another entry after it or none."""
    with store.transaction():
        store.append("people", "debit", "1")
        what()
        if rest is not None:
            store.append("people", "debit", rest)


# COMMIT without an answer


@pytest.mark.parametrize(("cut", "written"), [("before", False), ("after", True), ("late", True)])
def test_a_commit_without_an_answer_raises_and_counts_if_it_was_written(
    postgres, database, link, cut, written
):
    """The next look waits until the server has decided."""
    store = ServerStore(f"postgresql://{postgres.user}@127.0.0.1:{link.port}/{database}")
    add(store, "1")
    link.cut = cut
    started = time.monotonic()
    with pytest.raises(LedgerError, match="It is counted if it was written") as caught:
        add(store, "2")
    assert time.monotonic() - started < (1 if cut == "late" else 10)
    assert caught.value.__context__ is caught.value.__cause__ is None
    assert link.cut == ""
    assert bodies(store) == ["1", "2"][: 1 + written]
    assert [e.id for e in add(store, "3")] == [2 + written]
    assert bodies(ServerStore(postgres.url(database))) == bodies(store)


def test_a_transaction_that_the_server_gave_up_is_not_taken_for_committed(url):
    """PostgreSQL answers the COMMIT of a failed transaction with no error."""
    store = ServerStore(url)

    def behind_its_back():
        with suppress(Exception):
            store._connections[0].exec_driver_sql("SELECT 1/0")

    def before_its_eyes():
        with suppress(LedgerError):
            store._ask("SELECT 1/0")

    for fail in (behind_its_back, before_its_eyes):
        with pytest.raises(LedgerError, match="undone"):
            interrupted(store, fail)
    assert bodies(store) == []


def test_an_entry_that_a_rule_of_the_database_keeps_away_is_missed(postgres, database, url):
    store = ServerStore(url)
    add(store, "1")
    postgres.sql(database, "CREATE RULE r AS ON INSERT TO dpframe.entries DO INSTEAD NOTHING")
    with pytest.raises(LedgerError, match="not written"):
        add(store, "2")
    assert bodies(store) == ["1"]


def test_a_server_that_goes_away_inside_a_transaction_undoes_it(postgres, url):
    store = ServerStore(url)
    for rest in ("2", None):
        with pytest.raises(LedgerError, match="does not answer"):
            interrupted(store, postgres.restart, rest)
    assert bodies(store) == []
    assert add(store, "4")[0].id == 1


def test_a_server_that_was_there_is_waited_for_and_another_is_not(postgres, url, monkeypatch):
    store = ServerStore(url)
    add(store, "1")
    postgres.stop()
    monkeypatch.setattr(module, "RETURN", 0.3)
    for use in (lambda: bodies(store), lambda: add(store, "2")):
        with pytest.raises(LedgerError, match="does not answer"):
            use()
    monkeypatch.setattr(module, "RETURN", 30.0)
    started = time.monotonic()
    with pytest.raises(LedgerError, match="does not answer"):
        ServerStore(url)
    assert time.monotonic() - started < 10
    timer = threading.Timer(1, postgres.start)
    timer.start()
    assert add(store, "3")[0].id == 2
    timer.join()


# Locks and clients that hang


def test_two_objects_of_one_ledger_take_turns(url):
    """Nothing but the server's lock stands between them."""
    stores, errors = [ServerStore(url), ServerStore(url)], []

    def work(store):
        for _ in range(5):
            try:
                with store.transaction():
                    number = len(store.entries("people"))
                    time.sleep(0.01)
                    store.append("people", "debit", str(number))
            except LedgerError as error:
                errors.append(error)

    together([threading.Thread(target=work, args=[store]) for store in stores])
    assert errors == []
    assert bodies(stores[0]) == [str(i) for i in range(10)]


def test_a_lock_is_waited_for_and_given_up(postgres, database, url, monkeypatch):
    import psycopg

    store = ServerStore(url)
    add(store, "1")
    words = {
        "host": str(postgres.folder),
        "port": postgres.port,
        "user": postgres.user,
        "dbname": database,
    }
    with psycopg.connect(**words) as other:
        other.execute("SELECT 1 FROM dpframe.head FOR UPDATE")
        monkeypatch.setattr(module, "PATIENCE", 0.3)
        with pytest.raises(LedgerError, match="another process holds it"):
            add(store, "2")
        assert bodies(store) == ["1"]  # who reads waits for nobody
        monkeypatch.setattr(module, "PATIENCE", 60)
        timer = threading.Timer(0.3, other.rollback)
        timer.start()
        assert add(store, "3")[0].id == 2
        timer.join()


@posix
def test_hanging_client_delays_others_and_writes_nothing_after(url):
    store = ServerStore(url)
    code = """
import dpframe._ledger.server as server
server.PATIENCE = 1.0
store = open_store(path)
try:
    with store.transaction():
        store.append("people", "debit", "hangs")
        print("inside", flush=True)
        sys.stdin.readline()
except LedgerError as error:
    print("refused" if "undone" in str(error) or "not answer" in str(error) else error)
"""
    process = start(code, url, stdin=subprocess.PIPE)
    assert process.stdout.readline() == "inside\n"
    os.kill(process.pid, signal.SIGSTOP)
    assert add(store, "1")[0].id == 1
    os.kill(process.pid, signal.SIGCONT)
    assert process.communicate("\n", timeout=60)[0] == "refused\n"
    assert bodies(store) == ["1"]


# Copies and clocks ----------------------------------------------------------------------------------------------


def test_an_older_copy_is_noticed_while_a_process_remembers(postgres, database, url):
    """Restored while nobody looks it is a valid ledger, as it is of a file."""
    store = ServerStore(url)
    add(store, "1")
    store._drop()  # a database is copied while nobody uses it
    postgres.create(f"{database}-old", f'TEMPLATE "{database}"')
    add(store, "2")
    twin = ServerStore(postgres.url(f"{database}-old"))
    assert bodies(twin) == ["1"]
    add(twin, "another")
    twin._drop()
    postgres.sql(
        "postgres",
        f'DROP DATABASE "{database}" WITH (FORCE)',
        f'CREATE DATABASE "{database}" TEMPLATE "{database}-old"',
    )
    for _ in range(2):
        for use in (lambda: bodies(store), lambda: add(store, "3"), store.populations):
            with pytest.raises(LedgerError, match="rolled back"):
                use()
    assert bodies(ServerStore(url)) == ["1", "another"]


@pytest.mark.parametrize("how", ["DROP SCHEMA dpframe CASCADE", "another"])
def test_a_ledger_that_is_gone_or_another_is_noticed(postgres, database, url, how):
    store = ServerStore(url)
    add(store, "1")
    postgres.sql(database, "DROP SCHEMA dpframe CASCADE")
    if how == "another":
        add(ServerStore(url), "1")
    for use in (lambda: bodies(store), lambda: add(store, "2")):
        with pytest.raises(LedgerError):
            use()
    store._drop()
    with pytest.raises(LedgerError, match=r"gone|replaced"):
        bodies(store)


def test_a_clock_that_goes_back_orders_nothing(url, monkeypatch):
    times = iter(["2026-01-02", "1999-01-01", "2026-01-01"])

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.fromisoformat(next(times)).replace(tzinfo=tz)

    store = ServerStore(url)
    monkeypatch.setattr(entries_module, "datetime", Clock)
    for body in ("1", "2", "3"):
        add(store, body)
    assert bodies(ServerStore(url)) == ["1", "2", "3"]


# Processes ------------------------------------------------------------------------------------------------------


@posix
def test_a_forked_child_has_a_connection_of_its_own(url):
    code = """
def child(work):
    number = os.fork()
    if not number:
        work()
        os._exit(0)
    assert os.waitpid(number, 0)[1] == 0

def add(body):
    with store.transaction():
        store.append("people", "debit", body)

def leave():
    add("3")
    sys.exit(0)  # through the end of the interpreter

store = open_store(path)
add("1")
backend = store._ask("SELECT pg_backend_pid()")
child(lambda: add("2"))
child(leave)
child(lambda: open_store(path) is store and add("4"))
assert store._ask("SELECT pg_backend_pid()") == backend
add("5")
print(*(entry.body for entry in store.entries("people")))
"""
    assert output(start(code, url)) == ["1", "2", "3", "4", "5"]


@posix
def test_a_fork_inside_a_transaction_harms_only_the_child(url):
    code = """
store = open_store(path)
with store.transaction():
    store.append("people", "debit", "1")
    number = os.fork()
    if not number:
        try:
            store.append("people", "debit", "2")
        except LedgerError:
            print("refused", len(store.entries("people")), flush=True)
        sys.exit(7)  # through the end of the transaction, and of the interpreter
    assert os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) == 7
    store.append("people", "debit", "3")
    number = os.fork()
    if not number:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    else:
        assert os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) == 1  # a LedgerError at the end of the block
print(len(store.entries("people")))
"""
    assert output(start(code, url)) == ["refused", "0", "2"]


@posix
def test_a_fork_while_another_thread_writes(url):
    code = """
import warnings
warnings.simplefilter("ignore")  # of threads and fork: it is what is tested
def work():
    with store.transaction():
        store.append("people", "debit", "1")
        inside.set()
        time.sleep(0.5)
        store.append("people", "debit", "2")

store, inside = open_store(path), threading.Event()
thread = threading.Thread(target=work)
thread.start()
inside.wait()
number = os.fork()
if not number:
    print(len(store.entries("people")), flush=True)
    with store.transaction():  # waits for the parent's
        store.append("people", "debit", "3")
    print(len(store.entries("people")), flush=True)
    os._exit(0)
thread.join()
assert os.waitpid(number, 0)[1] == 0
print(len(store.entries("people")))
"""
    assert output(start(code, url)) == ["0", "3", "3"]


def test_processes_that_make_a_ledger_at_once_make_one(postgres, url):
    code = """
store = open_store(path)
with store.transaction():
    store.append("people", "debit", store.secret.hex())
"""
    for process in [start(code, url) for _ in range(6)]:
        assert output(process) == []
    assert len(set(bodies(ServerStore(url)))) == 1
    assert len(bodies(ServerStore(url))) == 6


# Broken copies --------------------------------------------------------------------------------------------------


class Unlocked(ServerStore):
    """Writers do not wait for each other."""

    def _verify(self, lock):
        super()._verify(False)


class Hopeful(ServerStore):
    """What has no answer is taken for written."""

    def _commit(self, connection):
        with suppress(LedgerError):
            super()._commit(connection)


class Forgetful(ServerStore):
    """Readers do not wait until a lost COMMIT is decided."""

    @property
    def _undecided(self):
        return False

    @_undecided.setter
    def _undecided(self, value):
        pass


class Credulous(ServerStore):
    """COMMIT is asked for without a look."""

    def _commit(self, connection):
        connection.commit()
        self._verified = self._next


class Mindless(ServerStore):
    """Only what is there is verified, not whether it goes on from what was seen."""

    def _verify(self, lock):
        self._verified = module.UNVERIFIED
        super()._verify(lock)


BROKEN = {
    Unlocked: ("test_two_objects_of_one_ledger_take_turns", "url"),
    Hopeful: (
        "test_a_commit_without_an_answer_raises_and_counts_if_it_was_written",
        "postgres database link late",
    ),
    Forgetful: (
        "test_a_commit_without_an_answer_raises_and_counts_if_it_was_written",
        "postgres database link late",
    ),
    Credulous: ("test_a_transaction_that_the_server_gave_up_is_not_taken_for_committed", "url"),
    Mindless: ("test_an_older_copy_is_noticed_while_a_process_remembers", "postgres database url"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_store_is_seen(postgres, database, url, link, monkeypatch, kind):
    test, words = BROKEN[kind]
    given = {
        "postgres": [postgres],
        "database": [database],
        "url": [url],
        "link": [link],
        "late": ["late", True],
    }
    monkeypatch.setitem(globals(), "ServerStore", kind)
    with pytest.raises((AssertionError, LedgerError, pytest.fail.Exception)):
        globals()[test](*(value for word in words.split() for value in given[word]))
