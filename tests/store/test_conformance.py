"""Every store there is, by the tests of all; the one that a page builds among them. Broken ones must fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

from dpframe import BadValue
from dpframe._ledger import STORES, open_store, place_of
from dpframe._ledger.sqlite import FileStore
from dpframe._ledger.store import MemoryStore
from tests.store.conformance import DurableConformance, StoreConformance
from tests.store.files import posix, sql
from tests.test_docs import blocks

PAGE = Path(__file__).parents[2] / "docs" / "develop" / "add-a-store.md"
SOURCE = next(source for _, source in blocks(PAGE) if "class " in source)
NAMES: dict[str, Any] = {"__name__": "__page__"}
exec(SOURCE, NAMES)


def flipped(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"Sesame-2")] ^= 1
    path.write_bytes(whole)


class TestMemory(StoreConformance):
    def open(self, path: Path) -> Any:
        return MemoryStore()


class TestFile(DurableConformance):
    code = "store = FileStore(path)\n"
    damages: ClassVar = {
        "an empty file": lambda path: path.write_bytes(b""),
        "half a file": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        "another program": lambda path: path.write_text("a,b\n1,2\n" * 1000),
        "another version": lambda path: sql(path, "PRAGMA user_version = 2"),
    }
    changes: ClassVar = {"a changed entry": flipped}

    def open(self, path: Path) -> Any:
        return FileStore(path)

    def is_free(self, store: Any) -> None:
        sql(store.label, "PRAGMA busy_timeout = 0", "BEGIN EXCLUSIVE")


class TestLines(DurableConformance):
    code = SOURCE + "\nstore = LinesStore('lines://' + path)\n"
    damages: ClassVar = {
        "an empty file": lambda path: path.write_bytes(b""),
        "another program": lambda path: path.write_text("a,b\n1,2\n" * 1000),
        "another version": lambda path: path.write_text(
            path.read_text().replace('"format": 1', '"format": 2')
        ),
        "a changed entry": flipped,
    }

    @pytest.fixture(autouse=True)
    def registered(self, monkeypatch):
        monkeypatch.setitem(STORES, "lines", NAMES["LinesStore"])

    def ledger(self, path: Path) -> str:
        return f"lines://{path}"

    def open(self, path: Path) -> Any:
        return NAMES["LinesStore"](self.ledger(path))


# Schemes ----------------------------------------------------------------------------------------------------


def test_memory_is_one_by_its_name_and_no_place():
    """It ends with the process, so that frames name no ledger of it."""
    assert open_store("memory:") is open_store("memory:")
    assert open_store("memory:") is not open_store(None)
    assert place_of("memory:") is place_of(None) is None


@pytest.mark.parametrize(
    "url", ["lines:///a", "memory://host", "mysql://user:secret@host/db", "sqlite:///a", "file:a"]
)
def test_a_url_that_nobody_serves_is_refused_without_its_words(url):
    with pytest.raises(BadValue) as caught:
        open_store(url)
    assert str(caught.value) == (
        "a ledger is the path of a file, or a database of a PostgreSQL server: postgresql+psycopg://host/database. "
        "No other URL is served. A file whose name has a colon is './name'."
    )
    assert place_of(url) in (url, None)


def test_a_path_object_is_a_path_though_its_name_has_a_colon(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = {"ledger": Path("./study:2026"), "population": "people"}
    pd.DataFrame({"age": [1]}).dp.open(1, **words).count()
    assert [path.name for path in tmp_path.iterdir()] == ["study:2026"]
    again = pd.DataFrame({"age": [1]}).dp.open(
        1, **{**words, "ledger": "./study:2026"}, because="a test"
    )
    assert again.budget.fraction > 0


@pytest.mark.parametrize(
    "name", ["json:x", "JSON:x", "file:a/b", "memory:x", "memory:a/b", "study.ledger:2", "sqlite:"]
)
def test_a_scheme_that_nobody_serves_makes_no_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadValue, match=r"No other URL is served|'memory:'"):
        pd.DataFrame({"age": [1]}).dp.open(1, ledger=name, population="people")
    assert list(tmp_path.iterdir()) == []


@posix
@pytest.mark.parametrize("name", ["./json:x", "a:b", "2026-01-01 12:30", "study:2026/ledger"])
def test_a_colon_in_a_path_is_no_scheme(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Path(name).parent.mkdir(exist_ok=True)
    open_store(name)
    assert Path(name).is_file()


@posix
def test_memory_is_not_taken_for_a_file_of_that_name(tmp_path, monkeypatch):
    """A ledger that was made when the name was a path keeps a budget, which memory would begin anew."""
    monkeypatch.chdir(tmp_path)
    frame, file = pd.DataFrame({"age": [1]}), {"ledger": "./memory:", "population": "people"}
    frame.dp.open(1, **file).count(epsilon=0.75)
    frame.dp.close()
    again = pd.DataFrame({"age": [1]})
    with pytest.raises(BadValue, match="there is a file of that name here"):
        again.dp.open(1, ledger="memory:", population="people")
    assert again.dp.open(1, **file).budget.remaining == 0.25
    assert (
        pd.DataFrame({"age": [2]}).dp.open(1, population="people").budget.remaining == 1
    )  # in memory


# Broken copies ----------------------------------------------------------------------------------------------


class Kept(MemoryStore):
    """An error of the caller undoes nothing."""

    def transaction(self):
        self._entries = Stubborn(self._entries)
        return super().transaction()


class Stubborn(list):
    def __delitem__(self, place):
        pass


class Open(MemoryStore):
    """Entries are appended at any time."""

    def append(self, population, kind, body):
        was, self.busy = self.busy, True
        try:
            return super().append(population, kind, body)
        finally:
            self.busy = was


class Short(FileStore):
    """What cannot be read is nothing."""

    def entries(self, population, after=0):
        try:
            return super().entries(population, after)
        except Exception:
            return []


def broken(kind: Any, base: Any = StoreConformance) -> Any:
    return type(
        "Broken", (base,), {"open": lambda self, path: kind(path) if kind is Short else kind()}
    )()


def test_a_store_that_undoes_nothing_is_seen():
    test, error = broken(Kept), ValueError("mine")
    with pytest.raises(AssertionError):
        test.test_error_of_the_caller_undoes_everything_and_stays_what_it_is(Kept(), error)


def test_a_store_that_is_always_open_is_seen():
    with pytest.raises(BaseException, match="DID NOT RAISE"):
        broken(Open).test_append_and_nesting_are_refused(Open())


def test_a_shorter_list_is_seen(path):
    with pytest.raises(BaseException, match="DID NOT RAISE"):
        broken(Short, TestFile).test_what_cannot_be_read_is_refused_by_name(path)
