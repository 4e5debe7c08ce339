"""A ledger file that is damaged, changed, rolled back or somebody else's: it fails closed."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from dpframe import LedgerError
from dpframe._ledger import sqlite as module
from dpframe._ledger.sqlite import FileStore
from tests.store.files import add, bodies, posix, refused, sql


def test_what_is_no_ledger_is_refused_and_left_alone(tmp_path):
    (tmp_path / "text").write_text("a,b\n1,2\n" * 1000)
    (tmp_path / "short").write_text("x")
    (tmp_path / "empty").write_bytes(b"")
    sql(tmp_path / "foreign", "CREATE TABLE t (x)")
    sql(
        tmp_path / "marked",
        f"PRAGMA application_id = {module.APPLICATION}",
        "PRAGMA user_version = 1",
    )
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
    sql(
        path, "PRAGMA busy_timeout = 0", "BEGIN EXCLUSIVE"
    )  # the traceback is kept, the lock is not
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
