"""The append-only store: whole transactions, durable and exclusive; whatever is wrong fails closed."""

from __future__ import annotations

import copy
import os
import pickle
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import dpframe._store as module
from dpframe._errors import BadType, BadValue, LedgerError
from dpframe._store import FileStore, MemoryStore, open_store

ROOT = Path(module.__file__).parents[1]
posix = pytest.mark.skipif(os.name != "posix", reason="fork, kill and file rights")


def add(store, *bodies, population="people"):
    with store.transaction():
        return [store.append(population, "debit", body) for body in bodies]


def bodies(store, population="people"):
    return [entry.body for entry in store.entries(population)]


PRELUDE = """
import os, sys, threading, time
sys.path.insert(0, sys.argv[2])
import dpframe._store as module
from dpframe._errors import LedgerError, SessionError
from dpframe._store import FileStore, MemoryStore, open_store
path = sys.argv[1]
"""


def start(code, path, *args):
    """A process of its own that runs this code."""
    command = [sys.executable, "-c", PRELUDE + code, str(path), str(ROOT), *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def output(process):
    out, err = process.communicate(timeout=100)
    assert (process.returncode, err) == (0, "")
    return out.split()


def together(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.ledger"


@pytest.fixture(params=["memory", "file"])
def store(request, path):
    return MemoryStore() if request.param == "memory" else FileStore(path)


# What every store does ----------------------------------------------------------------------------------------


def test_entries_come_back_in_order_by_population(store):
    assert store.populations() == []
    assert store.entries("people") == []
    first, second = add(store, "1", "2", population="b")
    (third,) = add(store, "3", population="a")
    (fourth,) = add(store, "4", population="b")
    assert [e.id for e in (first, second, third, fourth)] == [1, 2, 3, 4]
    assert store.entries("b") == [first, second, fourth]
    assert store.entries("b", after=second.id) == [fourth]
    assert store.entries("b", after=-5) == store.entries("b")
    assert store.entries("b", after=99) == []
    assert store.entries("nobody") == []
    assert store.populations() == ["b", "a"]
    assert (first.kind, first.body) == ("debit", "1")
    when = datetime.fromisoformat(first.when)
    assert when.utcoffset() == timedelta(0)
    assert len(first.when) == len("2026-01-01T00:00:00.000000+00:00")


def test_any_unicode_text_is_kept(store):
    texts = ["", "\0", "a\0b", "ö€😀", "'; DROP TABLE entries; --", "\r\n", "x" * 100_000]
    for text in texts:
        with store.transaction():
            store.append(text, text, text)
    for text in texts:
        assert [(e.kind, e.body) for e in store.entries(text)] == [(text, text)]
    assert store.populations() == texts


BAD_TEXTS = [(b"x", BadType), (None, BadType), (1, BadType), ("\ud800", BadValue)]


@pytest.mark.parametrize(("bad", "error"), BAD_TEXTS)
def test_what_is_no_text_is_refused_and_the_transaction_goes_on(store, bad, error):
    with store.transaction():
        for place in range(3):
            with pytest.raises(error):
                store.append(*["x"] * place, bad, *["x"] * (2 - place))
        store.append("people", "debit", "good")
    assert bodies(store) == ["good"]


def test_transaction_sees_its_own_appends(store):
    add(store, "1")
    with store.transaction():
        store.append("people", "debit", "2")
        store.append("others", "debit", "3")
        assert bodies(store) == ["1", "2"]
        assert store.populations() == ["people", "others"]


ERRORS = [
    ValueError("mine"),
    KeyboardInterrupt(),
    SystemExit(3),
    sqlite3.OperationalError("mine"),
    OSError(5),
]


@pytest.mark.parametrize("error", ERRORS)
def test_error_of_the_caller_undoes_everything_and_stays_what_it_is(store, error):
    def fail():
        with store.transaction():
            store.append("people", "debit", "2")
            store.append("others", "debit", "3")
            raise error

    add(store, "1")
    with pytest.raises(type(error)) as caught:
        fail()
    assert caught.value is error
    if isinstance(store, FileStore):  # the traceback is kept, the lock is not
        sql(store.label, "PRAGMA busy_timeout = 0", "BEGIN EXCLUSIVE")
    assert bodies(store) == ["1"]
    assert store.populations() == ["people"]
    assert add(store, "4")[0].id == 2


def test_append_and_nesting_are_refused(store):
    with pytest.raises(LedgerError, match="inside"):
        store.append("people", "debit", "1")
    with store.transaction():
        store.append("people", "debit", "2")
        with pytest.raises(LedgerError, match="open in this thread"), store.transaction():
            pass
        store.append("people", "debit", "3")
    with pytest.raises(LedgerError, match="inside"):
        store.append("people", "debit", "4")
    assert bodies(store) == ["2", "3"]


def test_store_and_its_secret_exist_once(store, tmp_path):
    for twice in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(BadType, match="exists once"):
            twice(store)
    assert len(store.secret) == 32
    assert len({store.secret, MemoryStore().secret, FileStore(tmp_path / "other").secret}) == 3


def test_threads_take_turns(store):
    def work():
        for _ in range(10):
            with store.transaction():
                store.append("people", "debit", str(len(store.entries("people"))))

    together([threading.Thread(target=work) for _ in range(8)])
    assert bodies(store) == [str(i) for i in range(80)]


def test_other_threads_see_whole_transactions_only(store):
    inside, seen = threading.Event(), []

    def look():
        inside.wait()
        seen.append(bodies(store))

    thread = threading.Thread(target=look)
    thread.start()
    with store.transaction():
        store.append("people", "debit", "1")
        inside.set()
        time.sleep(0.05)
        store.append("people", "debit", "2")
    thread.join()
    assert seen == [["1", "2"]]


# Files --------------------------------------------------------------------------------------------------------


def test_file_is_one_and_remembers(path):
    store = FileStore(str(path))
    add(store, "1", "2")
    assert store.label == str(path)
    assert os.listdir(path.parent) == [path.name]
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600  # the secret is in it
    again = FileStore(path)
    assert (again.secret, again.entries("people")) == (store.secret, store.entries("people"))
    add(again, "3")
    add(store, "4")
    assert bodies(again) == bodies(store) == ["1", "2", "3", "4"]
    copied = Path(shutil.copy(path, path.with_name("copy")))
    assert bodies(FileStore(copied)) == ["1", "2", "3", "4"]


def test_one_process_has_one_store_of_a_file(path, monkeypatch):
    store = open_store(path)
    monkeypatch.chdir(path.parent)
    (path.parent / "link").symlink_to(path)
    assert all(open_store(p) is store for p in (str(path), path.name, f"./{path.name}", "link"))
    assert open_store("other") is not store
    found = []
    together([threading.Thread(target=lambda: found.append(open_store("new"))) for _ in range(8)])
    assert set(found) == {open_store("new")}
    monkeypatch.chdir("/")
    assert add(store, "1")
    assert isinstance(open_store(None), MemoryStore)
    assert open_store(None) is not open_store(None)


NO_FILES = [
    "",
    ":memory:",
    "a\0b",
    "postgresql://host/db",
    "sqlite:///a",
    "file:a?mode=memory",
    Path("http://a"),
]


@pytest.mark.parametrize("bad", NO_FILES)
def test_what_names_no_file_is_refused(bad):
    for make in (FileStore, open_store):
        with pytest.raises(BadValue, match="path"):
            make(bad)


@pytest.mark.parametrize("bad", [b"study.ledger", 3, None, ["x"]])
def test_path_of_a_wrong_type_is_refused(bad):
    with pytest.raises(BadType, match="path"):
        FileStore(bad)


@posix
@pytest.mark.parametrize("name", ["a b", "a?mode=ro", "a#b", "a%20b", "ö€", "a:b", "-"])
def test_odd_names_are_names(tmp_path, name):
    add(FileStore(tmp_path / name), "1")
    assert os.listdir(tmp_path) == [name]
    assert bodies(FileStore(tmp_path / name)) == ["1"]


def refused(path, match):
    with pytest.raises(LedgerError, match=match) as caught:
        FileStore(path)
    assert repr(str(path)) in str(caught.value)
    return caught


def sql(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_what_is_no_ledger_is_refused_and_left_alone(tmp_path):
    (tmp_path / "text").write_text("a,b\n1,2\n" * 1000)
    (tmp_path / "short").write_text("x")
    (tmp_path / "empty").write_bytes(b"")
    sql(tmp_path / "foreign", "CREATE TABLE t (x)")
    sql(tmp_path / "marked", f"PRAGMA application_id = {module.APPLICATION}", "PRAGMA user_version = 1")
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    for name, match in {
        "text": "not a database",
        "short": "cut off",
        "empty": "cut off",
        "foreign": "another program",
        "marked": "tables or triggers",
        "absent/ledger": "no directory",
        "": "directory or no regular file",
    }.items():
        refused(tmp_path / name, match)
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


KINDS = """
PRAGMA user_version = 2 -- newer dpframe
PRAGMA application_id = 7 -- another program
PRAGMA journal_mode = WAL -- journal mode
CREATE TABLE mine (x) -- tables or triggers
DROP TRIGGER d -- tables or triggers
"""


@pytest.mark.parametrize("line", KINDS.strip().splitlines())
def test_changed_kind_is_refused_also_while_open(path, line):
    statement, match = line.split(" -- ")
    store = FileStore(path)
    add(store, "1")
    sql(path, statement)
    refused(path, match)
    for use in (lambda: add(store, "2"), lambda: store.entries("people"), store.populations):
        with pytest.raises(LedgerError, match=match):
            use()


def test_journal_without_its_ledger_is_refused(path):
    path.with_name(path.name + "-journal").write_bytes(b"x" * 600)
    refused(path, "still there")
    assert not path.exists()


CHANGES = """
UPDATE entries SET body = '0' WHERE id = 1
DELETE FROM entries WHERE id = 2
REPLACE INTO entries SELECT id, "when", population, kind, '0', digest FROM entries WHERE id = 1
INSERT INTO entries VALUES (9, '', 'people', 'debit', '0', x'00')
UPDATE head SET last = 1
UPDATE head SET secret = x'00'
DELETE FROM head
INSERT INTO head SELECT 2, secret, last, digest FROM head
"""


@pytest.mark.parametrize("statement", CHANGES.strip().splitlines())
def test_file_refuses_changes_by_plain_sql(path, statement):
    store = FileStore(path)
    add(store, "1", "2")
    with pytest.raises(sqlite3.IntegrityError):
        sql(path, statement)
    assert bodies(store) == bodies(FileStore(path)) == ["1", "2"]


TAMPERING = """
UPDATE entries SET body = '0' WHERE id = 2
UPDATE entries SET population = 'x' WHERE id = 3
UPDATE entries SET body = CAST(body AS BLOB) WHERE id = 2
UPDATE entries SET body = CAST(x'ff' AS TEXT) WHERE id = 2
DELETE FROM entries WHERE id = 2
DELETE FROM entries WHERE id > 2
DELETE FROM entries
INSERT INTO entries SELECT -1, "when", population, kind, body, digest FROM entries WHERE id = 1
INSERT INTO entries SELECT 4, "when", population, kind, body, digest FROM entries WHERE id = 3
UPDATE head SET last = 2, digest = (SELECT digest FROM entries WHERE id = 2)
REPLACE INTO head SELECT 1, zeroblob(32), last, digest FROM head
UPDATE head SET digest = CAST('x' AS TEXT)
DELETE FROM head
"""


@pytest.mark.parametrize("statement", TAMPERING.strip().splitlines())
def test_changes_behind_the_triggers_are_seen(path, statement):
    add(FileStore(path), "1", "2", "3")
    triggers = [s for s in module.SCHEMA if "TRIGGER" in s]
    names = [s.split()[2] for s in triggers]
    sql(path, *[f"DROP TRIGGER {name}" for name in names], *triggers)
    assert bodies(FileStore(path)) == ["1", "2", "3"]  # the triggers themselves are as they were
    sql(path, *[f"DROP TRIGGER {name}" for name in names], statement, *triggers)
    kept = refused(path, "cannot be used")
    sql(path, "PRAGMA busy_timeout = 0", "BEGIN EXCLUSIVE")  # the traceback is kept, the lock is not
    del kept


def test_flipped_bytes_are_seen_or_harmless(path):
    store = FileStore(path)
    for i in range(40):
        add(store, f"{i}" * 300, population=f"p{i % 3}")
    expected = [store.entries(f"p{i}") for i in range(3)]
    whole, draw, seen = path.read_bytes(), random.Random(5), 0
    for _ in range(150):
        damaged = bytearray(whole)
        at = draw.randrange(len(whole))
        damaged[at] ^= draw.randrange(1, 256)
        path.write_bytes(damaged)
        try:
            read = FileStore(path)
            assert [read.entries(f"p{i}") for i in range(3)] == expected
            assert read.secret == store.secret
        except LedgerError:
            seen += 1
    assert seen > 75  # some bytes of a page are not in use


def test_truncation_is_seen(path):
    store = FileStore(path)
    add(store, *["x" * 1000] * 20)
    whole = path.read_bytes()
    for size in {1, 99, 512, len(whole) // 2, len(whole) - 1, *range(0, len(whole), 4096)}:
        path.write_bytes(whole[:size])
        refused(path, "cannot be used")
        with pytest.raises(LedgerError):
            add(store, "2")
    path.write_bytes(whole)
    assert len(bodies(store)) == 20


CHANGED = {
    "rolled back": lambda path, old: os.replace(old, path),
    "No such file": lambda path, old: path.unlink(),
    "cut off": lambda path, old: path.write_bytes(b""),
    "replaced": lambda path, old: (path.unlink(), add(FileStore(path), "1", "2", "3")),
}


@pytest.mark.parametrize(("match", "change"), CHANGED.items())
def test_file_that_changes_under_an_open_store_is_seen(path, match, change):
    store = FileStore(path)
    add(store, "1")
    old = Path(shutil.copy(path, path.with_name("old")))
    add(store, "2")
    change(path, old)
    for _ in range(2):
        for use in (lambda: add(store, "3"), lambda: store.entries("people"), store.populations):
            with pytest.raises(LedgerError, match=match):
                use()


def test_older_copy_that_went_on_is_seen_and_a_whole_one_is_not(path):
    store = FileStore(path)
    add(store, "1")
    old = Path(shutil.copy(path, path.with_name("old")))
    add(store, "2")
    newest = Path(shutil.copy(path, path.with_name("newest")))
    add(FileStore(old), "other", "3")
    os.replace(old, path)
    with pytest.raises(LedgerError, match="rolled back"):
        bodies(store)
    add(FileStore(newest), "3")
    os.replace(newest, path)
    assert bodies(store) == ["1", "2", "3"]


@posix
@pytest.mark.parametrize("change", [CHANGED["rolled back"], CHANGED["No such file"]])
def test_file_that_changes_inside_a_transaction_is_seen(path, change):
    def work():
        with store.transaction():
            store.append("people", "debit", "1")
            change(path, old)

    store = FileStore(path)
    old = Path(shutil.copy(path, path.with_name("old")))
    with pytest.raises(LedgerError):
        work()


def test_busy_file_is_waited_for_and_given_up(path, monkeypatch):
    store = FileStore(path)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(module, "PATIENCE", 0.2)
        for use in (lambda: add(store, "1"), lambda: bodies(store), lambda: FileStore(path)):
            with pytest.raises(LedgerError, match="another process"):
                use()
        monkeypatch.setattr(module, "PATIENCE", 60)
        timer = threading.Timer(0.2, other.execute, ["ROLLBACK"])
        timer.start()
        assert add(store, "2")
        timer.join()
    assert bodies(store) == ["2"]


def test_two_objects_of_one_file_do_not_wait_for_each_other(path):
    one, two = FileStore(path), FileStore(path)
    with one.transaction():
        for use in (lambda: add(two, "1"), lambda: bodies(two)):
            with pytest.raises(LedgerError, match="open in this thread"):
                use()


# Processes ----------------------------------------------------------------------------------------------------

RACE = """
def work(name):
    for i in range(int(sys.argv[4])):
        with store.transaction():
            store.append("people", "debit", f"{name} {len(store.entries('people'))}")

store = open_store(path)  # the first one makes it
threads = [threading.Thread(target=work, args=[f"{os.getpid()}.{i}"]) for i in range(int(sys.argv[3]))]
[t.start() for t in threads], [t.join() for t in threads]
"""


@pytest.mark.parametrize(
    ("processes", "threads", "appends"), [(4, 4, 10), pytest.param(8, 8, 40, marks=pytest.mark.slow)]
)
def test_processes_take_turns(path, processes, threads, appends):
    for process in [start(RACE, path, threads, appends) for _ in range(processes)]:
        assert output(process) == []
    found = [body.split() for body in bodies(FileStore(path))]
    assert [number for _, number in found] == [str(i) for i in range(processes * threads * appends)]
    assert len({name for name, _ in found}) == processes * threads


@posix
def test_killed_process_leaves_whole_transactions(path):
    add(FileStore(path), "1")
    code = """
store = open_store(path)
with store.transaction():
    for i in range(3000):  # more than SQLite keeps in memory, so the file has a part of it
        store.append("people", "debit", "x" * 3000)
    print("here", flush=True)
    time.sleep(100)
"""
    process = start(code, path)
    assert process.stdout.readline() == "here\n"
    assert path.stat().st_size > 2**20
    process.kill()
    process.communicate()
    assert path.with_name(path.name + "-journal").exists()
    store = FileStore(path)
    assert bodies(store) == ["1"]
    assert add(store, "2")[0].id == 2
    assert os.listdir(path.parent) == [path.name]


@posix
def test_full_disk_undoes_the_transaction(path):
    code = """
import resource
store = open_store(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    with store.transaction():
        store.append("people", "debit", "2")
        try:
            for i in range(3000):
                store.append("people", "debit", "x" * 3000)
        except LedgerError as error:
            print("append")
except LedgerError as error:
    print("commit")
print(len(store.entries("people")))
"""
    add(FileStore(path), "1")
    assert output(start(code, path)) == ["append", "commit", "1"]
    assert bodies(FileStore(path)) == ["1"]


@posix
def test_read_only_places_are_refused():
    code = """
os.getuid() or os.setuid(65534)  # the administrator may write everything
for use in (lambda: FileStore(path), lambda: FileStore(path + "2")):
    try:
        use()
    except LedgerError:
        print("refused")
"""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to others
        path = Path(folder, "ledger")
        add(FileStore(path), "1")
        for file, directory in ((0o444, 0o777), (0o666, 0o555), (0, 0o777)):
            path.chmod(file)
            os.chmod(folder, directory)
            number = 1 if directory == 0o777 else 2
            assert output(start(code, path)) == ["refused"] * number
            for extra in (p for p in Path(folder).iterdir() if p != path):
                extra.unlink()


@posix
def test_forked_child_uses_a_file_and_no_memory(path):
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

def refuse():
    for use in (memory.populations, lambda: memory.append("", "", ""), lambda: memory.entries("")):
        try:
            use()
        except SessionError:
            print("refused", flush=True)

store, memory = open_store(path), MemoryStore()
add("1")
child(lambda: add("2"))
child(lambda: open_store(path) is store and add("3"))
child(refuse)
add("4")
print(*(entry.body for entry in store.entries("people")))
"""
    assert output(start(code, path)) == ["refused"] * 3 + ["1", "2", "3", "4"]


@posix
def test_fork_inside_a_transaction_harms_only_the_child(path):
    code = """
store = open_store(path)
with store.transaction():
    store.append("people", "debit", "1" * 3000)
    number = os.fork()
    if not number:
        for use in (lambda: store.append("people", "debit", "2"), lambda: store.entries("people")):
            try:
                use()
            except LedgerError:
                print("refused", flush=True)
        sys.exit(7)  # through the end of the transaction, and of the interpreter
    assert os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) == 7
    store.append("people", "debit", "3")
print(len(store.entries("people")))
"""
    assert output(start(code, path)) == ["refused", "refused", "2"]


@posix
def test_fork_waits_for_transactions_of_other_threads(path):
    code = """
import warnings
warnings.simplefilter("ignore")  # of threads and fork: it is what is tested
def work():
    with store.transaction():
        store.append("people", "debit", "1")
        inside.set()
        time.sleep(0.2)
        store.append("people", "debit", "2")

store, inside = open_store(path), threading.Event()
thread = threading.Thread(target=work)
thread.start()
inside.wait()
number = os.fork()
if not number:
    print(len(store.entries("people")), flush=True)
    os._exit(0)
os.waitpid(number, 0)
thread.join()
"""
    assert output(start(code, path)) == ["2"]


@pytest.mark.slow
def test_cost_of_an_append_does_not_grow(path):
    def milliseconds():
        times = []
        for _ in range(50):
            began = time.perf_counter()
            add(store, "x" * 300)
            times.append(time.perf_counter() - began)
        return 1e3 * sorted(times)[25]

    store = FileStore(path)
    before = milliseconds()
    add(store, *["x" * 300] * 100_000)
    assert milliseconds() < 3 * before + 1
    began = time.perf_counter()
    FileStore(path)
    assert time.perf_counter() - began < 3
