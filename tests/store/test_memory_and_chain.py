"""The append-only store: whole transactions, durable and exclusive, in memory and in a file."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from dpframe import BadType, BadValue
from dpframe._ledger import open_store
from dpframe._ledger.sqlite import FileStore
from dpframe._ledger.store import MemoryStore
from tests.store.files import add, bodies, posix, together

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
    "mysql://host/db",
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
