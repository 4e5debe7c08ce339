"""The append-only store: whole transactions, durable and exclusive, in memory and in a file."""

from __future__ import annotations

import copy
import os
import pickle
import shutil
import sqlite3
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from dpframe import BadType, BadValue, LedgerError
from tests.internals import FileStore, MemoryStore, open_store
from tests.store.files import add, bodies, posix, sql, together

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
