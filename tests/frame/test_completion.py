"""Completion as in a notebook: what stands behind a dot is what is offered there, and looking costs nothing."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pandas as pd
import pytest

from dpframe._frame.completion import let_complete
from dpframe._frame.frame import UNLISTED, PrivateFrame
from dpframe.datasets import BOUNDS, KEYS, visits


@pytest.fixture
def shell():
    interactive = pytest.importorskip(
        "IPython.core.interactiveshell", reason="IPython comes with ipykernel"
    )
    shell = interactive.InteractiveShell()
    df = visits(50).assign(stay=pd.Timedelta("1D"))
    p = df.dp.open(epsilon=1, bounds=BOUNDS, keys=KEYS)
    let_complete()
    shell.user_ns.update(p=p, g=p.groupby("state"), df=df)
    return shell


def completed(shell, text, jedi=False):
    completer = pytest.importorskip("IPython.core.completer")
    shell.Completer.use_jedi = jedi
    with completer.provisionalcompleter():
        names = {found.text.lstrip(".") for found in shell.Completer.completions(text, len(text))}
    return {name for name in names if not name.startswith("_")}


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


@pytest.mark.parametrize(
    "text",
    [
        *(
            "p",
            "p.explain",
            "p['age']",
            "p['state'].str",
            "p['admitted'].dt",
            "p['stay'].dt",
            "p['state'].cat",
        ),
        *("g", "g.explain", "g['age']", "p.explain['age']", "p.budget", "df.dp"),
    ],
)
def test_what_is_completed_is_what_is_offered(shell, text):
    thing = eval(text, dict(shell.user_ns))
    expected = public(thing)
    if not isinstance(thing, PrivateFrame):  # IPython adds those of the class
        expected |= public(type(thing))
    assert len(expected) > 3
    assert completed(shell, f"{text}.") == expected


def test_verbs_that_completion_leaves_out_are_callable(shell):
    p = shell.user_ns["p"]
    assert not UNLISTED & public(p)
    assert {"mean", "groupby", "abs", "age", "isna"} <= public(p)
    assert all(hasattr(p, name) for name in UNLISTED)
    assert list(p[["age"]].add(1).eq(3).columns) == ["age"]
    assert len(public(p)) < 110


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("p.count", "p.count is a method. Write p.count(...), or help(p.count)."),
        (
            "p['age'].mean",
            "p['age'].mean is a method. Write p['age'].mean(...), or help(p['age'].mean).",
        ),
        ("g.size", "size of groups is a method. Write p.groupby(...).size(...)."),
        ("pd.Index([7]).max", "<bound method"),
    ],
)
def test_a_verb_without_parentheses_is_shown_in_one_line(line, shown):
    interactive = pytest.importorskip(
        "IPython.core.interactiveshell", reason="IPython comes with ipykernel"
    )
    one = interactive.InteractiveShell.instance()
    try:
        p = visits(50).dp.open(epsilon=1, bounds=BOUNDS, keys=KEYS)
        let_complete()
        names = {"p": p, "g": p.groupby("state")}
        data, _ = one.display_formatter.format(eval(line, {"pd": pd, **names}))
        assert data["text/plain"].startswith(shown)
        assert "\n" not in data["text/plain"]
        assert p.budget.spent == 0
    finally:
        type(one).clear_instance()


def test_a_question_is_not_asked_for_completion(shell):
    p = shell.user_ns["p"]
    assert completed(shell, "p.mean('age').") == set()
    assert completed(shell, "p.explain.mean('age').") == set()
    assert p.budget.spent == 0
    assert len(p.ledger) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "some", "none"),
    [
        ("p.explain.", {"mean", "groupby"}, set()),
        ("p['age'].", {"mean", "clip", "str"}, {"groupby_", "ledger", "query", "crosstab"}),
        ("p['state'].str.", {"lower", "contains"}, {"mean", "query"}),
        ("p['admitted'].dt.", {"month", "floor"}, {"mean", "query"}),
    ],
)
def test_jedi_completes_the_same_without_looking(shell, text, some, none):
    pytest.importorskip("jedi", reason="jedi comes with some versions of IPython")
    names = completed(shell, text, jedi=True)
    assert some <= names
    assert not none & names


def test_a_column_offers_the_parts_that_its_cells_have(shell):
    p = shell.user_ns["p"]
    parts = {"str", "dt", "cat"}
    assert public(p["state"]) & parts == {"str", "cat"}
    assert public(p["age"]) & parts == {"cat"}
    assert public(p["admitted"]) & parts == {"dt"}
    assert public(p["stay"]) & parts == {"dt"}


def test_names_of_parts_are_told_once(shell):
    for parts in (shell.user_ns["p"]["admitted"].dt, shell.user_ns["p"]["state"].str):
        assert len(dir(parts)) == len(set(dir(parts)))


def test_help_on_open_says_what_its_parameters_are_before_and_after(shell):
    df = shell.user_ns["df"]
    for verb in (pd.DataFrame({"x": [1]}).dp.open, df.dp.open):
        assert "epsilon" in inspect.signature(verb).parameters
        assert "unit, max_rows, max_groups" in inspect.getdoc(verb)
    assert inspect.getdoc(df.dp.open).startswith("Return the frame of the open session")


@pytest.mark.parametrize("kind", ["p", "p['age']", "p.groupby('state')"])
def test_every_verb_shows_its_words(shell, kind):
    thing = eval(kind, dict(shell.user_ns))
    for name in public(thing):
        verb = getattr(type(thing), name, None)  # none where it is a column
        if inspect.isfunction(verb):
            words = inspect.signature(verb).parameters
            assert not {"terms", "payment"} & set(words), name


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("p.meen", "mean"),
        ("p['age'].meen", "mean"),
        ("p.groupby('state').meen", "mean"),
        ("p['state'].str.lowr", "lower"),
        ("p['admitted'].dt.moonth", "month"),
        ("p['age'].agg('meen')", "mean"),
        ("p.groupby('state').agg(m=('age', 'meen'))", "mean"),
        ("p.mean('age', epsilom=1)", "epsilon"),
        ("df.dp.open(epsilom=1)", "epsilon"),
    ],
)
def test_a_misspelling_is_told_what_is_near(shell, line, meant):
    with pytest.raises(Exception, match=f"Did you mean '{meant}'"):
        eval(line, dict(shell.user_ns))


def test_nothing_of_a_notebook_is_loaded_outside_of_one():
    code = "import dpframe, sys, pandas as pd; pd.DataFrame({'x': [1]}).dp; print('IPython' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
        == "False\n"
    )
