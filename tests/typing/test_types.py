"""The types that a user's editor shows: mypy --strict over a program as a user writes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAM = HERE / "api.py"


def mypy(program: Path) -> tuple[int, str]:
    """Exit code and output of `mypy --strict`, which keeps what it knows of the package in the usual folder."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(program)], cwd=ROOT, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_a_program_has_the_types_it_is_written_with_and_its_mistakes_are_seen():
    code, said = mypy(PROGRAM)
    assert code == 0, said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong", "error"),
    [
        ("assert_type(old, PrivateFrame)", "assert_type(old, Accountant)", "[assert-type]"),
        ('p.count(epsilon="much")', "p.count(epsilon=1)", "[unused-ignore]"),
        ("epsilon([(Gaussian(sigma=30), 10)], delta=1e-6)", "p.explain", "[no-any-return]"),
    ],
)
def test_a_type_that_has_changed_is_noticed(tmp_path, right, wrong, error):
    text = PROGRAM.read_text()
    assert text.count(right) == 1
    changed = tmp_path / "api.py"
    changed.write_text(text.replace(right, wrong))
    code, said = mypy(changed)
    assert code == 1
    assert error in said


def test_the_program_runs_but_for_its_mistakes():
    names = {"__name__": "program"}
    exec(compile(PROGRAM.read_text(), str(PROGRAM), "exec"), names)
    p = names["opened"](names["df"])
    assert list(names["asked"](p).columns) == ["n", "cost", "part", "people", "wide", "price"]
    assert 0 < names["elsewhere"](p) < 1
