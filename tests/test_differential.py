"""The command that compares two checkouts gives the same lines for the same package, and shows a change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.differential import shown, without_prose

ROOT = Path(__file__).parent.parent


def run_differential(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "tests/differential.py", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_differential_prints_the_same_lines_twice(tmp_path):
    questions = str(tmp_path / "questions.jsonl")
    run_differential("write", questions, "--questions", "30", "--seed", "5")
    first = run_differential("ask", questions)
    lines = first.splitlines()
    assert len(lines) >= 30
    assert sum("answer=" in line for line in lines) > 15
    assert sum("debit" in line for line in lines) > 5
    assert run_differential("ask", questions) == first
    key = lines[-1].partition(" | ")[0]
    (line,) = run_differential("ask", questions, "--only", key, "--texts").splitlines()
    assert line.startswith(key)


def test_differential_shortens_long_facts_by_their_hash():
    long = ["x" * 500, "x" * 499 + "y"]
    one, two = (shown("case 1: 2", "p.count()", {"answer": text}, False) for text in long)
    assert one != two
    assert len(one) < 200
    assert "x" * 500 in shown("case 1: 2", "p.count()", {"answer": long[0]}, True)


def test_differential_leaves_out_sentences_of_plans():
    plan = {"why": "pure epsilon", "parts": [{"statistic": "rows", "l1": 1}]}
    assert without_prose({"plans": [plan]}) == {"plans": [{"parts": [{"l1": 1}]}]}
