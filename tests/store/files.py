"""What the tests of the store share: adding, reading, plain SQL, and processes of their own."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dpframe import LedgerError
from dpframe._ledger import sqlite as module
from dpframe._ledger.sqlite import FileStore

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
import dpframe._ledger.sqlite as module
from dpframe._errors import LedgerError, SessionError
from dpframe._ledger import open_store
from dpframe._ledger.sqlite import FileStore
from dpframe._ledger.store import MemoryStore
path = sys.argv[1]
"""


def start(code, path, *args, stdin=None):
    """A process of its own that runs this code."""
    command = [sys.executable, "-c", PRELUDE + code, str(path), str(ROOT), *map(str, args)]
    return subprocess.Popen(
        command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def output(process):
    out, err = process.communicate(timeout=100)
    assert (process.returncode, err) == (0, "")
    return out.split()


def together(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def refused(path, match):
    with pytest.raises(LedgerError, match=match) as caught:
        FileStore(path)
    assert repr(str(path)) in str(caught.value)
    return caught


def sql(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
