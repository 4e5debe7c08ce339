"""A ledger file that is damaged, cut, gone, locked away or somebody else's: nothing is read, charged or answered."""

from __future__ import annotations

import os
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from dpframe import Accountant, BadType, LedgerError
from dpframe import _ledger as _stores
from dpframe.engines.pandas import PandasEngine
from tests.ledger.people import begun, opened, people, posix, python, sql


def cut(path):
    os.truncate(path, os.path.getsize(path) // 2)


def scribble(path):
    """Over the second half of every page, where SQLite keeps what it is told."""
    content = bytearray(Path(path).read_bytes())
    for page in range(0, len(content), 4096):
        content[page + 2048 : page + 4096] = bytes(2048)
    Path(path).write_bytes(content)


WRONG = {
    "truncated": (cut, "cut off|damaged"),
    "empty": (lambda path: Path(path).write_bytes(b""), "cut off"),
    "damaged": (scribble, "damaged|changed or lost|malformed"),
    "no database": (lambda path: Path(path).write_text("budget\n" * 500), "not a database"),
    "newer schema": (lambda path: sql(path, "PRAGMA user_version = 2"), "Use a newer dpframe"),
    "another program": (lambda path: sql(path, "PRAGMA application_id = 7"), "another program"),
    "a table more": (lambda path: sql(path, "CREATE TABLE mine (x)"), "tables or triggers"),
}
ASK = {
    "count": lambda p: p.count(epsilon=0.1),
    "a share": lambda p: p.mean("age"),
    "within": lambda p: p.count(within=50),
    "again": lambda p: p.count(epsilon=0.25),
    "budget": lambda p: p.budget,
    "ledger": lambda p: p.ledger,
    "declarations": lambda p: p.declarations,
}


@pytest.fixture
def unread(monkeypatch):
    """No data may be read from here on."""

    def fail(*_):
        raise AssertionError("the data was read")

    return lambda: monkeypatch.setattr(PandasEngine, "reduce", fail)


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_file_opens_nothing_and_answers_nothing(path, unread, wrong):
    change, match = WRONG[wrong]
    p = opened(path)
    p.count(epsilon=0.25)
    unread()
    change(path)
    before = Path(path).read_bytes()
    frame = people(seed=1)
    with pytest.raises(LedgerError, match=match):
        elsewhere_raises(lambda: opened(path, "others", frame))
    assert frame.attrs == {}
    for question in ASK.values():
        with pytest.raises(LedgerError, match=match):
            question(p)
    assert Path(path).read_bytes() == before


def elsewhere_raises(work):
    """As if the process was new: without the store that knows the file."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_stores, "_stores", {})
        work()


def test_missing_file_is_no_new_budget_for_an_open_session(path, unread):
    p = opened(path)
    p.count(epsilon=0.25)
    unread()
    os.unlink(path)
    for question in ASK.values():
        with pytest.raises(LedgerError, match="No such file"):
            question(p)
    with pytest.raises(LedgerError):
        opened(path, "others", people(seed=1))
    assert not os.path.exists(path)


def test_older_copy_is_seen_while_a_session_is_open(path, unread):
    p = opened(path)
    shutil.copy(path, path + ".old")
    p.count(epsilon=0.25)
    unread()
    os.replace(path + ".old", path)
    for question in ASK.values():
        with pytest.raises(LedgerError, match="rolled back"):
            question(p)


@posix
def test_read_only_ledger_opens_nothing(path):
    begun(path)
    code = """
import os, sys
from dpframe import LedgerError
from tests.ledger.people import opened, people
opened(sys.argv[1] + "2").count()  # what is imported when it is used
os.getuid() or os.setuid(65534)  # the administrator may write everything
frame = people()
try:
    opened(sys.argv[1], frame=frame)
except LedgerError as error:
    print("read-only" in str(error), frame.attrs)
"""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to others
        os.chmod(folder, 0o755)
        copied = shutil.copy(path, os.path.join(folder, "budget.db"))
        os.chmod(copied, 0o444)
        assert python(code, copied) == ["True {}"]


SERVED = (
    find_spec("sqlalchemy") is not None and find_spec("psycopg") is not None
)  # the extra `server`
BAD_FILES = [
    (3, BadType),
    (b"budget.db", BadType),
    (["budget.db"], BadType),
    (True, BadType),
    ("", ValueError),
    (":memory:", ValueError),
    ("mysql://host/db", ValueError),  # which dpframe does not serve
    ("postgresql://127.0.0.1:1/db", LedgerError if SERVED else ValueError),  # where nobody answers
    ("no/such/folder/budget.db", LedgerError),
]


@pytest.mark.parametrize(("ledger", "error"), BAD_FILES)
def test_what_names_no_file_opens_nothing(tmp_path, monkeypatch, ledger, error):
    monkeypatch.chdir(tmp_path)
    frame = people()
    with pytest.raises(error):
        frame.dp.open(1, ledger=ledger, population="people")
    assert frame.attrs == {}
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("population", [None, "", "  ", 3, True, b"people", ["people"]])
def test_population_of_a_file_must_have_a_name(path, population):
    frame = people()
    with pytest.raises(BadType, match="population"):
        frame.dp.open(1, ledger=path, population=population)
    with pytest.raises(BadType, match="population"):
        Accountant(1, ledger=path, population=population)
    assert frame.attrs == {}
    assert not os.path.exists(path)
