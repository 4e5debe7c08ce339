"""A disk that is really full, under a ledger and under what a database spills: a clear error, and the budget right."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpframe
from dpframe import DataError, LedgerError

pytestmark = [
    pytest.mark.skipif(
        not sys.platform.startswith("linux"), reason="a small disk is made by Linux"
    ),
    pytest.mark.skipif(
        not hasattr(os, "getuid") or os.getuid() != 0, reason="only root may make a small disk"
    ),
]


class Disk:
    """A disk of some size, which is in memory."""

    def __init__(self, path: Path):
        self.path = path
        self._filling = path / "filling"

    def fill(self) -> None:
        """Leaves no byte free."""
        file = os.open(self._filling, os.O_WRONLY | os.O_CREAT)
        for size in (4096, 1):
            try:
                while True:
                    os.write(file, b"x" * size)
            except OSError:  # it is full
                pass
        os.close(file)

    def free(self) -> None:
        self._filling.unlink()

    def resize(self, size: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.path)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    path = tmp_path / "disk"
    path.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(path)]
    if shutil.which("mount") is None or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("this machine does not let root mount a tmpfs")
    yield Disk(path)
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def answered(p: Any, least: int, epsilon: float = 1.0) -> bool:
    """Whether a count is answered, and not refused by the ledger."""
    with suppress(LedgerError):
        count = p.query(f"x >= {least}").count(epsilon=epsilon)
        assert abs(count - (200 - least)) < 30
        return True
    return False


def test_a_ledger_on_a_full_disk_answers_nothing_that_it_did_not_keep(disk):
    def opened() -> Any:
        return pd.DataFrame({"x": range(200)}).dp.open(
            100, ledger=disk.path / "b.db", population="p"
        )

    p = opened()
    assert answered(p, 0)
    disk.fill()
    told = 1 + sum(
        answered(p, i) for i in range(1, 30)
    )  # what fits into pages that the file has is kept
    assert told < 30
    spent = p.budget.spent
    assert spent >= told  # a debit may be kept whose answer is not
    disk.free()
    q = opened()
    assert q.budget.spent == spent
    assert answered(q, 100)
    assert q.budget.spent == spent + 1
    assert len(q.ledger) == spent + 1


def test_database_whose_spill_does_not_fit_fails_and_the_debit_stands(disk):
    duckdb = pytest.importorskip("duckdb", reason="the database that spills is duckdb")
    base = duckdb.connect()
    base.execute("SET threads = 1")
    base.execute("SET memory_limit = '30MB'")
    base.execute(f"SET temp_directory = '{disk.path}/spilled'")
    base.execute("SET max_temp_directory_size = '1GB'")  # else it is what the disk has free now
    rows = 600_000
    relation = base.sql(f"SELECT DISTINCT i AS x, hash(i)::VARCHAR AS s FROM range({rows}) AS t(i)")
    p = dpframe.open(relation, 1000, because="made up")
    with pytest.raises(DataError) as caught:
        p.query("x >= 10 and s != 'a'").count(epsilon=100)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert str(disk.path) not in str(caught.value)
    assert p.budget.spent == 100
    disk.resize("1g")
    assert p.query("x >= 10 and s != 'a'").count(epsilon=100) == rows - 10
    assert p.budget.spent == 200
