"""What one must read to follow one question: files and functions that it visits. These numbers only go down."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.walk import visits_of

pytestmark = pytest.mark.kept  # what it reads is the whole tree, and is read once

ROOT = Path(__file__).parent.parent
LIMITS = {"open": (17, 70), "mean": (27, 125), "agg": (47, 224)}


@pytest.fixture(scope="module")
def walked():
    """Files and functions of each walk, in a process of its own: what other tests have cached does not count."""
    command = [sys.executable, "-m", "tests.walk"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    return {name: (int(files), int(functions)) for name, files, functions in rows}


def test_each_walk_has_a_limit(walked):
    assert set(walked) == set(LIMITS)


@pytest.mark.parametrize("name", LIMITS)
def test_a_walk_is_no_longer_than_it_was(walked, name):
    files, functions = walked[name]
    assert files <= LIMITS[name][0], f"{files} files: python -m tests.walk {name} lists them"
    assert functions <= LIMITS[name][1], (
        f"{functions} functions: python -m tests.walk {name} lists them"
    )


def test_a_walk_is_every_function_that_is_called_and_once(tmp_path):
    (tmp_path / "one.py").write_text(
        "def first(n):\n    return second(n) + max([third(i) for i in range(n)], key=lambda i: -i)\n"
        "def second(n):\n    return n and second(n - 1)\n"
        "def third(n):\n    return n\n"
        "def never():\n    pass\n"
    )
    names: dict[str, object] = {}
    exec(compile((tmp_path / "one.py").read_text(), str(tmp_path / "one.py"), "exec"), names)
    seen = visits_of(lambda: names["first"](2), str(tmp_path) + "/")
    assert [(v.file, v.function, v.depth) for v in seen.values()] == [
        ("one.py", "first", 0),
        ("one.py", "second", 1),
        ("one.py", "third", 1),
    ]
