"""The types that a user's editor shows, to mypy and to pyright: of a program as a user writes it, of one without a mistake, and
of one with a mistake in each marked line."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from dpframe import PrivateFrame
from dpframe._frame.columns.operators import OPERATORS, OperatorMethods, find_operator
from dpframe._frame.surface import PrivateColumn, PrivateGroupBy
from dpframe.datasets import BOUNDS, KEYS, visits
from tests.frame.parts_stub import declared_parts
from tests.typing.stubs import STUB, write_stub

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAM, RIGHT, WRONG = HERE / "api.py", HERE / "right.py", HERE / "wrong.py"


def mypy(*programs: Path) -> tuple[int, str]:
    """Exit code and output of `mypy --strict`, which keeps what it knows of the package in the usual folder."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *map(str, programs)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def mypy_errors(program: Path) -> set[int]:
    """The lines in which mypy sees errors."""
    lines = [line.split(":") for line in mypy(program)[1].splitlines()]
    return {
        int(line[1]) for line in lines if Path(line[0]).name == program.name and "error" in line[2]
    }


def pyright(*options: str) -> str:
    """The output of pyright, whose package brings node along; it takes the package from here."""
    pytest.importorskip("pyright", reason="pyright is installed with the extra 'types'")
    command = [sys.executable, "-m", "pyright", *options]
    # --verifytypes takes no --pythonpath: it asks the python that the path leads to first.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment).stdout


def pyright_errors(program: Path) -> set[int]:
    """The lines in which pyright sees errors."""
    found = json.loads(pyright("--outputjson", "--pythonpath", sys.executable, str(program)))
    assert found["summary"]["filesAnalyzed"] == 1
    errors = [one for one in found["generalDiagnostics"] if one["severity"] == "error"]
    return {one["range"]["start"]["line"] + 1 for one in errors}


def marked(program: Path) -> set[int]:
    """The lines that say they are wrong."""
    return {
        i for i, line in enumerate(program.read_text().splitlines(), 1) if line.endswith("# wrong")
    }


CHECKERS = [
    pytest.param(mypy_errors, marks=pytest.mark.slow),
    pytest.param(pyright_errors, marks=pytest.mark.extras),
]


def test_some_lines_are_marked():
    assert len(marked(WRONG)) > 30
    assert not marked(RIGHT)


@pytest.mark.parametrize("errors", CHECKERS)
def test_every_mistake_is_seen_and_nothing_else(errors):
    assert errors(WRONG) == marked(WRONG)


@pytest.mark.parametrize("errors", CHECKERS)
def test_a_program_without_mistakes_has_the_types_it_says(errors):
    assert errors(RIGHT) == set()


@pytest.mark.extras
def test_a_program_as_a_user_writes_it_is_understood_by_pyright():
    assert pyright_errors(PROGRAM) == set()


@pytest.mark.extras
def test_pyright_knows_nearly_all_types_of_the_package():
    found = json.loads(pyright("--verifytypes", "dpframe", "--ignoreexternal", "--outputjson"))
    assert found["typeCompleteness"]["completenessScore"] >= 0.99


@pytest.mark.slow
def test_program_has_its_types_and_its_mistakes_are_noticed():
    code, said = mypy(PROGRAM)
    assert code == 0, said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong", "error"),
    [
        ("assert_type(old, PrivateFrame)", "assert_type(old, Accountant)", "[assert-type]"),
        ('p.count(epsilon="much")', "p.count(epsilon=1)", "[unused-ignore]"),
        (
            "epsilon([(Gaussian(sigma=30), 10)], delta=1e-6)",
            "p.explain.mean('age')",
            "[return-value]",
        ),
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


# What checkers are told and what runs are two things: here they meet ----------------------------------------------


def test_the_stub_of_the_surface_is_fresh():
    assert STUB.read_text() == write_stub(), "run python -m tests.typing.stubs"


def releasing(kind: type) -> set[str]:
    """The verbs of a class that take the words of a price."""
    verbs = {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}
    return {
        n for n, v in verbs.items() if callable(v) and "within" in inspect.signature(v).parameters
    }


@pytest.mark.parametrize(
    ("kind", "twin"),
    [
        (PrivateFrame, "ExplainedFrame"),
        (PrivateColumn, "ExplainedColumn"),
        (PrivateGroupBy, "ExplainedGroups"),
    ],
)
def test_each_verb_that_asks_is_told_to_checkers_as_a_plan_too(kind, twin):
    tree = ast.parse(STUB.read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    planned = {
        verb.name
        for verb in classes[twin].body
        if isinstance(verb, ast.FunctionDef) and ast.unparse(verb.returns) == "A"
    }
    asking = releasing(kind)
    assert {"mean", "count", "agg"} < asking
    assert asking - planned == set()


@pytest.fixture
def p():
    df = visits(50).assign(stay=pd.Timedelta("1D"))
    return df.dp.open(epsilon=1, bounds=BOUNDS, keys=KEYS)


def test_the_parts_that_checkers_know_are_those_there_are(p):
    assert declared_parts("Texts") == set(dir(p["state"].str))
    assert declared_parts("Times") == {*dir(p["admitted"].dt), *dir(p["stay"].dt)}
    assert declared_parts("Weeks") == set(dir(p["admitted"].dt.isocalendar()))


class NamedOperator(OperatorMethods):
    """An operand whose operators return what they apply."""

    def _operate(self, name, *others, swapped=False):
        return name, len(others), swapped and name not in ("and", "or", "xor")


def test_the_operators_that_checkers_know_apply_what_they_are_named_after():
    told = {n for n, v in vars(OperatorMethods).items() if inspect.isfunction(v)} - {"_operate"}
    assert {f"__{name}__" for name in OPERATORS} <= told
    wrong = []
    for name in told:
        operator, swapped = find_operator(name.strip("_"))
        method = getattr(NamedOperator(), name)
        others = len(inspect.signature(method).parameters)
        symmetric = operator in ("and", "or", "xor")
        if method(*[1] * others) != (operator, others, swapped and not symmetric):
            wrong.append(name)
    assert wrong == []


@pytest.mark.parametrize(
    ("kind", "refused"), [(PrivateFrame, {"__xor__", "__rxor__"}), (PrivateColumn, set())]
)
def test_the_operators_that_checkers_know_are_those_there_are(kind, refused):
    """Each method is declared by the name of its operator, and each operator is the shared one."""
    module = ast.parse(inspect.getsource(sys.modules[kind.__module__]))
    told = {
        line.target.id: ast.literal_eval(line.value.args[0])
        for line in ast.walk(module)
        if isinstance(line, ast.AnnAssign) and ast.unparse(line.annotation) == "OperatorMethod"
    }
    assert {"sub", "rdiv", "ge"} < set(told)
    assert [name for name, operator in told.items() if operator != name] == []
    assert [name for name in told if vars(kind)[name].__name__ != name] == []
    shared = {n for n in vars(OperatorMethods) if n.strip("_") != n and callable(getattr(kind, n))}
    operators = {n for n in shared if inspect.isfunction(getattr(OperatorMethods, n))}
    others = {n for n in operators if getattr(kind, n) is not getattr(OperatorMethods, n)}
    assert others == {"_operate", *refused}
