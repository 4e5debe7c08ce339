"""What a first user met: the message says what to write instead, and a plan what was asked."""

from __future__ import annotations

import pandas as pd
import pytest

from dpframe import BadType, NotOffered, UnknownColumn


@pytest.fixture
def df():
    return pd.DataFrame(
        {"x": [1.0, 2.0], "t": pd.to_datetime(["2024-01-01", "2024-02-01"]), "s": ["a", "b"]}
    )


@pytest.mark.parametrize(
    ("ask", "advice"),
    [
        (lambda p: p.histogram("t"), r"bounds=\('2024-01-01', '2024-12-31'\)"),
        (lambda p: p.histogram("s"), "Use value_counts"),
        (lambda p: p.suggest_bounds("t"), "the first and the last moment, are yours to declare"),
        (lambda p: p.adopt(pd.DataFrame({"x": [1.0]})), r"adopt needs because='\.\.\.'"),
    ],
)
def test_the_message_says_what_to_write(df, ask, advice):
    p = df.dp.open(1)
    with pytest.raises(BadType, match=advice):
        ask(p)
    assert p.budget.spent == 0


def test_a_picture_is_of_an_answer(df):
    with pytest.raises(NotOffered, match=r"\.dp\.plot\(\)"):
        df.dp.open(1).plot()


def test_plan_says_what_was_asked_and_then_what_it_guarantees(df):
    p = df.dp.open(10, delta=1e-6)
    lines = repr(p.explain.count(epsilon=1, mechanism="gaussian")).splitlines()
    assert lines[1].strip().startswith("budget  asked at epsilon 1: takes")
    assert "by itself this release guarantees epsilon" in lines[2]
    assert "asked for a share: takes" in repr(p.explain.count())
    assert "asked at within 5: takes" in repr(p.explain.count(within=5))
    assert "by itself" in p.count(mechanism="gaussian")._repr_html_()


def test_a_batch_says_what_it_is(df):
    assert "with p.plan_ahead() as batch" in repr(df.dp.open(1).plan_ahead())


def test_lists_are_nulls_to_text_methods_as_the_docs_say():
    df = pd.DataFrame({"codes": [["flu", "cough"], ["flu"], "flu", None]})
    p = df.dp.open(1000)
    length = p["codes"].str.len()
    assert p.assign(k=length).count("k", epsilon=300) == 1
    assert p.assign(k=length).sum("k", bounds=(0, 9), epsilon=300) == 3


@pytest.mark.parametrize(
    "verb", ["sum", "mean", "var", "std", "sem", "skew", "median", "quantile", "min", "max"]
)
def test_verbs_of_all_columns_say_how_to_leave_out_other_kinds(verb):
    df = pd.DataFrame({"state": ["CA", "NY"] * 50, "age": [30, 40] * 50, "cost": [5.0, 7.0] * 50})
    p = df.dp.open(1000, bounds={"age": (0, 110), "cost": (0, 10)})
    with pytest.raises(BadType, match=r"column 'state' is of kind text.*numeric_only=True"):
        getattr(p, verb)()
    answer = getattr(p, verb)(numeric_only=True, epsilon=100)
    assert list(answer.index) == ["age", "cost"]
    assert p.budget.spent == 100


@pytest.mark.parametrize("verb", ["sum", "mean", "var", "std", "sem", "skew"])
def test_what_pandas_takes_by_position_is_told_from_a_column(verb):
    p = pd.DataFrame({"age": [30, 40], "sex": ["f", "m"]}).dp.open(
        1, bounds={"age": (0, 110)}, keys={"sex": ["f", "m"]}
    )
    for asked in (p, p.groupby("sex")):
        for first in (0, 1, 0.1):
            with pytest.raises(
                UnknownColumn,
                match=f"no column {first}.*{verb} takes a column and bounds by position",
            ):
                getattr(asked, verb)(first)
    by_number = pd.DataFrame({1: [30.0, 40.0]}).dp.open(100, bounds={1: (0, 110)})
    assert 0 <= by_number.mean(1, epsilon=50) <= 110


# In a notebook --------------------------------------------------------------------------------------------------------


@pytest.fixture
def shell():
    interactive = pytest.importorskip(
        "IPython.core.interactiveshell", reason="IPython is not installed"
    )
    shell = interactive.InteractiveShell.instance()
    yield shell
    shell.reset()
    type(shell).clear_instance()


def test_a_refusal_is_three_lines_in_a_notebook(df, shell, capsys, monkeypatch):
    shell.push({"p": df.dp.open(1)})
    for cell in ("y = 1\np['x'].mean()\n", "def f():\n    return p['x'].mean()\nf()\n"):
        shell.run_cell(cell)
        place, empty, message = capsys.readouterr().out.splitlines()
        assert place.startswith("Cell In[")
        assert place.endswith("p['x'].mean()")
        assert ", line 2: " in place
        assert empty == ""
        assert message.startswith("MissingBounds: 'x' needs public bounds")
    monkeypatch.setenv("DPFRAME_DEBUG", "1")
    shell.run_cell("p['x'].mean()")
    assert "selection.py" in capsys.readouterr().out  # the whole way, for the owner of the data


def test_an_error_shows_the_line_of_the_user_without_a_notebook_too(df):
    p = df.dp.open(1)
    with pytest.raises(UnknownColumn) as refusal:
        p["nope"]
    place, empty, message = refusal.value._render_traceback_()
    assert place.endswith('p["nope"]')
    assert place.startswith("File ")
    assert (empty, message) == ("", "UnknownColumn: no column 'nope'. Columns: 'x', 't', 's'.")
    assert UnknownColumn("x")._render_traceback_() == [
        "UnknownColumn: x"
    ]  # one that nobody has raised
