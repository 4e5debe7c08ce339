"""The house itself: public names, imports that run downwards, one door to the data, one source of randomness."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pandas as pd
import pytest

import dpframe
from dpframe import PrivateFrame
from dpframe._answers.accessor import Answer
from dpframe._frame.surface import PrivateGroupBy
from dpframe._pandas import EXTENDED
from dpframe._questions.question import Question
from dpframe._session.session import Session
from tests.source import imports_of, list_imports, list_modules, parse_modules

pytestmark = pytest.mark.kept  # what it reads is the whole tree, and is read once

HERE = Path(__file__).parent
# The rooms, lowest first: a room knows the ones below it. Rooms of one line do not know each other.
ROOMS = """
_errors _identity _pandas _sizes _types
_refusals _validate
_options
_arguments
plot attacks datasets
accounting
_expr mechanisms
_cells
_groups tails
_statistics
engines calibrate
_plans
utilities
_questions
_ledger
_session
_answers
_frame
audit learn local polars dask
__main__
"""
PLACE = {room: i for i, line in enumerate(ROOMS.split("\n")) for room in line.split()}


def room(module):
    return module.split(".")[1]


def test_public_names_are_sorted_and_pinned():
    assert dpframe.__all__ == sorted(dpframe.__all__)
    assert set(dpframe.__all__) == {
        "Accountant",
        "BadExpression",
        "BadType",
        "BadValue",
        "BudgetError",
        "BudgetExceeded",
        "DPError",
        "DataError",
        "Estimate",
        "LedgerError",
        "LineageError",
        "MissingBounds",
        "MissingKeys",
        "NoSession",
        "NotOffered",
        "Plan",
        "PrivacyWarning",
        "PrivateFrame",
        "Refused",
        "SessionError",
        "UnknownColumn",
        *("dummy", "open", "options", "private", "show_versions", "sql"),
    }
    for name in set(dpframe.__all__) - {"options"}:
        assert getattr(dpframe, name).__name__ == name
    assert set(dpframe.__all__) <= set(dir(dpframe))
    with pytest.raises(AttributeError, match="nothing"):
        dpframe.nothing  # noqa: B018  (looking it up is the test)


@pytest.mark.parametrize(
    "name",
    [
        "accounting",
        "attacks",
        "audit",
        "calibrate",
        "datasets",
        "learn",
        "local",
        "plot",
        "utilities",
    ],
)
def test_public_modules_come_with_dpframe_and_complete_to_public_names(name):
    module = getattr(dpframe, name)
    assert name in dir(dpframe)
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, one) and not one.startswith("_") for one in module.__all__)


def test_signatures_of_verbs_show_plain_types():
    for verb in (PrivateFrame.count, PrivateGroupBy.mean):
        assert "ForwardRef" not in str(inspect.signature(verb))
        assert "epsilon: float | None" in str(inspect.signature(verb))


def test_no_module_calls_a_function_of_pandas_that_dpframe_replaces():
    users = {
        f"{name}: {node.value.id}.{node.attr}"
        for name, tree in parse_modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id in ("pd", "pandas") and node.attr in EXTENDED)
    }
    assert users == set()
    importing = {
        name
        for name, tree in parse_modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and node.module == "pandas"
        and {alias.name for alias in node.names} & {*EXTENDED}
    }
    assert importing == {"dpframe._pandas"}


def test_every_module_has_its_room():
    assert set(PLACE) == {room(name) for name in list_modules() if name != "dpframe"}


def runs_down(name, other):
    """Return whether a module may import another one."""
    if other == "dpframe":
        return name == "dpframe.__main__"
    return room(other) == room(name) or PLACE[room(other)] < PLACE[room(name)]


def test_imports_run_downwards_only():
    inside = [name for name in list_modules() if name != "dpframe"]
    edges = [(name, other) for name in inside for other in imports_of(name)]
    assert len(edges) > len(inside)
    assert [f"{name} imports {other}" for name, other in edges if not runs_down(name, other)] == []


def test_check_of_directions_sees_an_upward_import():
    assert runs_down("dpframe._frame.frame", "dpframe._plans.plan")
    assert not runs_down("dpframe._plans.plan", "dpframe._frame.frame")
    assert not runs_down("dpframe._plans.plan", "dpframe")


def named(tree):
    """Every dpframe module that this one imports at all, for types alone too."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from list_imports(node)


def objects(tree):
    """What a module takes from dpframe by an import, with the module that it is taken from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpframe"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


# Rooms that name a higher one where types are checked, and how many such imports they have: none should.
LOOKING_UP: dict[str, int] = {}
# What is public never sees data, and an engine knows no price.
PURE = "accounting _expr mechanisms _groups tails _statistics utilities calibrate _plans _questions _ledger"
APART = {
    **{public: {"engines", "_session"} for public in PURE.split()},
    "engines": {"accounting", "_plans", "_ledger"},
}


def test_imports_for_types_run_downwards_too():
    up = [
        room(name)
        for name, tree in parse_modules().items()
        if name != "dpframe"
        for other in named(tree)
        if other != "dpframe"
        and room(other) != room(name)
        and PLACE[room(other)] >= PLACE[room(name)]
    ]
    assert Counter(up) == LOOKING_UP


def test_public_rooms_and_engines_do_not_import_each_other():
    knowing = [
        f"{name} imports {other}"
        for name in list_modules()
        if name != "dpframe"
        for other in imports_of(name)
        if other != "dpframe" and room(other) in APART.get(room(name), ())
    ]
    assert knowing == []
    assert set(APART) <= {room(name) for name in list_modules() if name != "dpframe"}


def test_the_page_has_every_room_in_its_order():
    page = (HERE.parent / "docs" / "develop" / "architecture.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| \S", page, flags=re.MULTILINE)
    assert sorted(rows, key=lambda room: -PLACE[room]) == rows
    assert set(rows) == set(PLACE)


def test_modules_of_a_room_do_not_wait_for_one_another():
    graph = {
        name: {other for other in imports_of(name) if other != name} for name in list_modules()
    }
    assert len(list(TopologicalSorter(graph).static_order())) >= len(list_modules())


def test_engines_are_made_in_one_place():
    """`engine_for` alone knows concrete engines, and nobody reads what is an engine's own."""
    names = {name for name in list_modules() if name.startswith("dpframe.engines.")}
    made = {
        (m, other)
        for m, tree in parse_modules().items()
        for other in objects(tree)
        if other.endswith("Engine")
    }
    concrete = {(m, other) for m, other in made if other.rpartition(".")[0] in names}
    assert {m for m, _ in concrete if m not in names} == {
        "dpframe.engines"
    }  # one may stand on another
    for module, tree in parse_modules().items():
        if module not in names:
            read = [
                n
                for n in ast.walk(tree)
                if isinstance(n, ast.Attribute) and ast.unparse(n.value).endswith("engine")
            ]
            assert [n.attr for n in read if n.attr.startswith("_")] == [], module


def test_check_of_what_is_named_sees_types_too():
    tree = ast.parse(
        "if TYPE_CHECKING:\n    from dpframe._session.session import Session\nimport dpframe.engines"
    )
    assert [room(other) for other in named(tree)] == ["engines", "_session"]


def test_check_of_imports_sees_an_upward_one():
    tree = ast.parse(
        "def f():\n    from dpframe._frame.accessor import private\n    from dpframe import _session"
    )
    assert set(list_imports(tree)) == {"dpframe._frame.accessor", "dpframe._session"}


def underscored(tree):
    """Yield the names with an underscore that a tree takes out of modules of the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpframe"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if alias.name.startswith("_") and full not in list_modules():
                    yield full


def test_names_with_an_underscore_reach_tests_through_one_file():
    """A test imports what it tests from its module. What that module hides stands in `tests/internals.py`."""
    paths = [p for p in sorted(HERE.rglob("*.py")) if p.parent.name != "benchmarks"]
    texts = {p.relative_to(HERE).as_posix(): p.read_text("utf-8") for p in paths}
    hiding = re.compile(r"^\s*from dpframe[\w.]* import ([^(\n]*\b_|\([^)]*\b_)", re.MULTILINE)
    found = {
        name: list(underscored(ast.parse(text)))
        for name, text in texts.items()
        if name != "internals.py" and hiding.search(text)
    }
    assert {name: names for name, names in found.items() if names} == {}


def test_check_of_underscores_sees_a_name_and_no_module():
    tree = ast.parse(
        "from dpframe.mechanisms import _sampling\n"
        "from dpframe.mechanisms.selection import NoisyMax, _uniform as uniform"
    )
    assert list(underscored(tree)) == ["dpframe.mechanisms.selection._uniform"]


def kinds_below(kind):
    for one in kind.__subclasses__():
        yield one
        yield from kinds_below(one)


def named_calls(tree, name):
    """Calls of a function by its bare name."""
    calls = (n for n in ast.walk(tree) if isinstance(n, ast.Call))
    return [n for n in calls if isinstance(n.func, ast.Name) and n.func.id == name]


def calls(tree, name):
    found = []
    for owner in ast.walk(tree):
        if isinstance(owner, ast.FunctionDef):
            for node in ast.walk(owner):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr == name
                    and (node.args or name != "release")  # a lock is released without an argument
                    and not ast.unparse(node.func).startswith(("np.", "functools."))
                ):
                    found.append((owner.name, node))
    return found


def callers(name):
    """Every function that calls a method of this name, with its module."""
    return [
        (module, owner)
        for module, tree in parse_modules().items()
        if name in list_modules()[module].read_text()
        for owner, _ in calls(tree, name)
    ]


SESSION = "dpframe._session.session"


def test_one_function_runs_questions_and_one_pays():
    """`run` is handed the private frame and `debit` charges for it: each is called once."""
    assert callers("run") == [(SESSION, "run_question")]
    assert callers("debit") == [(SESSION, "_debit")]
    # What hands out sums of the frame is called by questions, in their `run`.
    asked = {
        name: [one for one in callers(name) if room(one[0]) != "engines"]
        for name in ("reduce", "occurring")
    }
    assert asked["reduce"] == [("dpframe._questions.question", "run")]
    assert asked["occurring"] == [("dpframe._questions.keysearch", "run")] * 2


def test_replays_hand_in_noise_and_have_no_door():
    """Nothing but `dpframe.audit` knows them; they call no mechanism, and the noise that they call is given zeros."""
    users = {m for m in list_modules() if "dpframe.audit._replay" in imports_of(m)}
    assert users == {"dpframe.audit"}
    tree = parse_modules()["dpframe.audit._replay"]
    assert calls(tree, "release") == calls(tree, "reduce") == []
    (recorder,) = (
        n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == "Recorder"
    )
    own = {n.name for n in recorder.body if isinstance(n, ast.FunctionDef)}
    assert own & set(vars(Session)) == {
        "__init__",
        "draw_row_names",
        "noise_key",
        "_noise",
        "run_question",
        "refuse_if_not_followed",
    }
    assert [ast.unparse(node) for _, node in calls(tree, "run_question")] == [
        "super().run_question(question, engine, plan, unit)"
    ]
    assert [ast.unparse(node) for _, node in calls(tree, "_noise")] == [
        "super()._noise(plan, part, np.zeros_like(integers), width=width)"
    ]


def function(tree, name):
    return next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name)


def sealings(tree):
    """What is handed to `read_private`, with the function that does it."""
    for owner in ast.walk(tree):
        if isinstance(owner, ast.FunctionDef):
            for node in ast.walk(owner):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "read_private":
                    yield owner.name, ast.unparse(node.args[1]), node


def test_debit_precedes_the_door_behind_which_the_data_is_read():
    tree = parse_modules()[SESSION]
    ((owner, read, door),) = sealings(tree)
    assert (owner, read) == ("ask", "self._read")
    ((payer, debit),) = calls(tree, "_debit")
    assert payer == owner
    assert debit.lineno < door.lineno
    for name in ("ask", "_debit"):  # nothing there takes a debit back, and no branch goes round it
        assert not any(isinstance(n, ast.Try) for n in ast.walk(function(tree, name)))
    # The debit is of all that is new, and what passes the door is what was new.
    asks = list(ast.walk(function(tree, "ask")))
    (branch,) = (n for n in asks if isinstance(n, ast.If) and debit in ast.walk(n))
    assert ast.unparse(branch.test) == "new"
    assert debit in [n.value for n in branch.body if isinstance(n, ast.Expr)]
    (loop,) = (n for n in asks if isinstance(n, ast.For))
    assert ast.unparse(loop.iter) == "new.items()"
    assert door in list(ast.walk(loop))
    assert not any(loop in ast.walk(n) for n in asks if isinstance(n, ast.If))
    assert not any(isinstance(n, ast.Continue | ast.Break | ast.While) for n in asks)
    assert [n.lineno > loop.lineno for n in asks if isinstance(n, ast.Return)] == [True]
    assert [n.value for n in function(tree, "_debit").body if isinstance(n, ast.Expr)][-1] == calls(
        tree, "debit"
    )[0][1]
    # Nobody else has a hold of what reads.
    for name, users in {
        "_read": ["self._read"],
        "run_question": ["self.base.run_question"],
    }.items():
        used = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == name]
        assert [ast.unparse(n) for n in used] == users
    assert calls(tree, "_read") == []
    assert callers("run_question") == [
        (SESSION, "_read"),
        ("dpframe.audit._replay", "run_question"),
    ]


# Noise that a question draws by itself, and why it is not the one that it is handed (docs/guarantees/learning.md).
OWN_NOISE = [
    ("dpframe.learn._descent", "run"),  # DP-SGD: on people drawn by coins
    ("dpframe.learn._objective", "run"),  # inside the objective, drawn before any row is read
]


def test_noise_is_added_at_the_door_only():
    """Apart from mechanisms themselves, `.release(...)` of a mechanism is called in the noise that a session hands out."""
    found = [one for one in callers("release") if not one[0].startswith("dpframe.mechanisms")]
    assert sorted(found) == sorted([(SESSION, "_noise"), *OWN_NOISE])
    handed = [
        n
        for n in ast.walk(parse_modules()[SESSION])
        if isinstance(n, ast.Attribute) and n.attr == "_noise"
    ]
    assert set(handed) <= set(ast.walk(function(parse_modules()[SESSION], "run_question")))
    assert callers("_noise") == [("dpframe.audit._replay", "_noise")]


def test_every_question_is_a_frozen_value_that_is_run_alike():
    """No kind is told from another where they are asked: each has its own plan, forms and `run` of the same arguments."""
    kinds = [
        k
        for k in kinds_below(Question)
        if k.__module__.startswith("dpframe.") and not inspect.isabstract(k)
    ]
    assert {k.__name__ for k in kinds} >= {
        "Query",
        "KeySearch",
        "Finding",
        "Randomize",
        "OutputFit",
        "Descent",
    }
    for kind in kinds:
        assert kind.__dataclass_params__.frozen
        for name in ("plan", "forms", "run"):
            assert list(inspect.signature(getattr(kind, name)).parameters) == list(
                inspect.signature(getattr(Question, name)).parameters
            )
    for module in (SESSION, "dpframe.audit._replay", "dpframe._plans.plan"):
        told_apart = [
            ast.unparse(n.args[1]) for n in named_calls(parse_modules()[module], "isinstance")
        ]
        assert not {"Question", "Query"} & set(told_apart)


READERS = (
    *("kept", "array", "people", "copied", "column", "match"),  # of rows
    *("explode_lists", "joined", "numbers", "take_cells", "people_of", "sketches", "sketch"),
)


def readings(tree):
    """Functions that read rows, and who calls whom."""
    reads, called = {}, {}
    for owner in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        for node in (n for n in ast.walk(owner) if isinstance(n, ast.Call)):
            name = getattr(node.func, "attr", getattr(node.func, "id", None))
            if name in READERS:
                reads.setdefault(owner.name, set()).add(name)
            called.setdefault(name, set()).add(owner.name)
    return reads, called


@pytest.mark.parametrize(
    "module",
    [
        "_session.derived",
        "_frame.verbs.reshape",
        "_frame.verbs.merge",
        "_frame.verbs.adopt",
        "_session.opening",
    ],
)
def test_rows_are_read_behind_the_door_also_where_they_are_made(module):
    """What reads cells is handed to `read_private`, or called by such a function alone; `TrackedRows` is what they read from."""
    tree = parse_modules()[f"dpframe.{module}"]
    behind = {read for _, read, _ in sealings(tree)}
    assert behind
    own = {n.name for c in ast.walk(tree) if isinstance(c, ast.ClassDef) and c.name == "TrackedRows" for n in c.body
           if isinstance(n, ast.FunctionDef) and n.name != "__init__"}  # fmt: skip
    reads, called = readings(tree)
    for _ in range(3):
        behind |= {name for name in reads if called.get(name) and called[name] <= behind}
    assert set(reads) - behind - own == set()


RANDOM = (
    "os.urandom",
    "np.random",
    "numpy.random",
    "secrets",
    "SystemRandom",
    "getrandbits",
    "token_bytes",
)


def randomness_in(tree):
    """Return the names in a module that are about randomness."""
    used = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            used.add(ast.unparse(node))
        elif isinstance(node, ast.Import):
            used |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            used |= {f"{node.module}.{a.name}" for a in node.names}
    return {
        u for u in used if u == "random" or u.startswith("random.") or any(r in u for r in RANDOM)
    }


def test_one_module_reads_randomness():
    found = {name: randomness_in(tree) for name, tree in parse_modules().items()}
    assert all(name.startswith("np.random") for name in found.pop("dpframe.datasets"))
    assert {name: used for name, used in found.items() if used} == {
        "dpframe.mechanisms._sampling": {"os.urandom"}
    }


@pytest.mark.parametrize(
    "text", ["import random", "from secrets import token_bytes", "np.random.default_rng(1)"]
)
def test_check_of_randomness_sees_another_source(text):
    assert randomness_in(ast.parse(text))


def test_operating_system_is_asked_by_one_function():
    tree = parse_modules()["dpframe.mechanisms._sampling"]
    assert [owner for owner, _ in calls(tree, "urandom")] == ["random_bytes"]


def public_methods():
    df = pd.DataFrame({"x": [1]})
    opened = df.dp.open(1)
    for thing in (
        type(pd.DataFrame({"y": [1]}).dp),
        PrivateFrame,
        type(opened["x"]),
        PrivateGroupBy,
        Answer,
    ):
        yield from ((thing, name) for name in dir(thing) if not name.startswith("_"))
    for name in dpframe.__all__:
        yield dpframe, name
    for thing in (dpframe.Plan, dpframe.Estimate):
        yield from (
            (thing, name)
            for name, value in vars(thing).items()
            if callable(value) and name[0] != "_"
        )


def has_docstring(owner, name):
    thing = getattr(owner, name) if owner is dpframe else inspect.getattr_static(owner, name)
    return bool((getattr(thing, "__func__", thing).__doc__ or "").strip())


def test_everything_public_has_a_docstring():
    listed = list(public_methods())
    assert len(listed) > 250
    assert [f"{o.__name__}.{name}" for o, name in listed if not has_docstring(o, name)] == []


def test_every_module_says_what_it_is_for():
    texts = {name: path.read_text().strip() for name, path in list_modules().items()}
    trees = parse_modules()
    assert [
        name for name, text in texts.items() if text and not ast.get_docstring(trees[name])
    ] == []


def test_importing_dpframe_loads_nothing_that_is_slow_and_registers_dp():
    code = (
        "import sys, dpframe, pandas as pd\n"
        "df = pd.DataFrame({'x': [1.0]})\n"
        "found = [m for m in ('scipy', 'sqlite3', 'matplotlib') if m in sys.modules]\n"
        "assert hasattr(df, 'dp') and hasattr(df['x'], 'dp')\n"
        "p = df.dp.open(1, 1e-6); p.mean('x', bounds=(0, 1)); p.count(epsilon=.1).interval(); df.dp.ledger\n"
        "slow = ('scipy.optimize', 'scipy.stats', 'matplotlib', 'IPython', 'pyarrow.dataset')\n"
        "print(found + [m for m in slow if m in sys.modules])"
    )
    quiet = ["-W", "error", "-W", "ignore:this number is noise"]  # as the mean of one row is
    done = subprocess.run(
        [sys.executable, *quiet, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# What every refusal on a frame says is the same for all cells -------------------------------------------------

WRONG = [
    lambda p: p.sum("text"),
    lambda p: p.mean("number", bounds=(1, 0)),
    lambda p: p.query("text > 5"),
    lambda p: p.query("number == 'x'"),
    lambda p: p.query("label < 3"),
    lambda p: p.groupby("text", keys=[1]),
    lambda p: p.groupby("label", keys=[[1]]),
    lambda p: p.groupby(["text", "number"], keys=[("a", "b")]),
    lambda p: p.resample("ME", on="text"),
    lambda p: p["text"].astype(bool),
    lambda p: p["label"].astype("timedelta64[ns]"),
    lambda p: p["number"].astype("datetime64[ns]"),
    lambda p: p["text"].cut([0, 1]),
    lambda p: p["number"].map({"x": 1}),
    lambda p: p["text"].fillna(0),
    lambda p: p.histogram("label", bins=[0, 1]),
    lambda p: p["text"].dt.year,
    lambda p: p["number"].str.upper(),
    lambda p: p.itertuples(),
    lambda p: list(p["text"]),
    lambda p: p.count(epsilon=99),
    lambda p: p.nothing,
]


@pytest.mark.parametrize("wrong", WRONG)
def test_message_is_the_same_for_all_cells(wrong):
    frame = pd.DataFrame(
        {
            "text": ["Sesame-Street-123", "x"],
            "number": [987654.25, 2.0],
            "label": pd.Series([["Sesame-Street-123"], 987654], dtype=object),
        }
    )
    texts = []
    for some in (frame, frame.iloc[:0], frame.iloc[::-1].reset_index(drop=True)):
        with pytest.raises(dpframe.DPError) as caught:
            wrong(some.dp.open(1))
        error = caught.value
        chain = []
        while error is not None:
            chain.append(str(error))
            error = error.__cause__ or error.__context__
        texts.append(chain)
    assert texts[0] == texts[1] == texts[2]
    assert not any(cell in text for text in texts[0] for cell in ("Sesame", "987654"))


# Accountants say what they need, and nobody else knows their names --------------------------------------------


def comparisons_with_accountants(tree):
    """Comparisons with the name of an accountant written out, alone or in a list; also as the pattern of a match."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare | ast.MatchValue):
            texts = {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)}
            if texts & set(dpframe.accounting.ACCOUNTANTS):
                yield ast.unparse(node)


def test_nothing_compares_the_name_of_an_accountant():
    found = {n: list(comparisons_with_accountants(t)) for n, t in parse_modules().items()}
    assert {name: some for name, some in found.items() if some} == {}


def test_check_of_accountants_sees_a_comparison():
    tree = ast.parse(
        "a = rule == 'pld'\nb = rule in ('x', 'tight')\nmatch rule:\n case 'pure': pass\nc = f('pld')"
    )
    assert len(list(comparisons_with_accountants(tree))) == 3
