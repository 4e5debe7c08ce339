"""What the tests of ledger files share: people, processes that really die, and the books read back."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import warnings
from collections import Counter
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe._ledger.server import ServerStore
from dpframe._ledger.sqlite import FileStore
from tests.internals import QUIET

ROOT = Path(dpframe.__file__).parents[1]
BOUNDS = {"age": (0, 110), "cost": (0, 1000)}
KEYS = {"state": ["CA", "NY"]}
posix = pytest.mark.skipif(os.name != "posix", reason="fork and kill")


def people(n=300, seed=0):
    """A new frame of the same people for the same seed: as if it was read from its source once more."""
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": draw.integers(18, 90, n).astype("float64"),
            "cost": draw.uniform(0, 900, n),
            "state": draw.choice(["CA", "NY"], n),
        }
    )


def anew(frame):
    """The same cells and index in new buffers and without attrs: what reading a file gives."""
    read = pickle.loads(pickle.dumps(frame))
    read.attrs.clear()
    return read


def opened(path, population="people", frame=None, epsilon=1, delta=0, **terms):
    """The session that these tests open if they do not say otherwise."""
    frame = people() if frame is None else frame
    words = {"bounds": BOUNDS, "keys": KEYS, **terms}
    return frame.dp.open(epsilon, delta, ledger=path, population=population, **words)


# Processes ----------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """How a child ended (as subprocess says it: -9 if it was killed), and what its work returned."""

    status: int
    answer: object


def spawn(work, *args):
    """A child process at this work; `outcome` waits for it. It has no session of ours on the ledger of the test."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads that other tests left
        number = os.fork()
    if not number:
        status = 1
        try:
            os.close(reader)
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(work(*args), pipe)
            status = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.__stderr__, flush=True)
        finally:
            os._exit(status)
    os.close(writer)
    return number, reader


def outcome(child):
    number, reader = child
    with os.fdopen(reader, "rb") as pipe:
        sent = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    return Outcome(status, pickle.loads(sent) if sent else None)


def elsewhere(work, *args):
    """The work done in another process, to its end."""
    status, answer = outcome(spawn(work, *args))
    assert status == 0
    return answer


def begun(*args, spent=None, **terms):
    """A ledger that another process opened, and spent so much of."""

    def work():
        p = opened(*args, **terms)
        if spent is not None:
            p.count(epsilon=spent)

    elsewhere(work)


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def python(code, *args, folder=None):
    """What a Python of its own prints, line by line."""
    command = [sys.executable, "-c", code, *map(str, args)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": QUIET}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=100,
        cwd=folder,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.splitlines()


# The books ----------------------------------------------------------------------------------------------------


def store_of(path):
    """A ledger as it is, read by an object of its own: of a file, or of a server."""
    return ServerStore(path) if "://" in path else FileStore(path)


def kinds(path, population="people"):
    """How many entries of each kind a ledger has."""
    return Counter(entry.kind for entry in store_of(path).entries(population))


def debits(path, population="people"):
    """The plans of every debit in a ledger, debit by debit, without any help of the accountant."""
    store = store_of(path)
    return [json.loads(e.body)["plans"] for e in store.entries(population) if e.kind == "debit"]


def total(path, population="people"):
    """The exact sum of all epsilons in a ledger, of pure releases."""
    plans = [plan for debit in debits(path, population) for plan in debit]
    return sum((Fraction(plan["loss"]["epsilon"]) for plan in plans), Fraction(0))


def used(p):
    """The plain sum of epsilons that a session says was spent, exact."""
    return p.budget.rule.pure_spent(p.budget.state)


def sql(path, statement):
    """Plain SQL, as somebody who thinks that it is theirs."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)
