"""What a refusal tells to write is answered when it is written: each line that it makes, and each text that it holds."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path

import pandas as pd
import pytest

import dpframe
from dpframe import DPError
from dpframe.learn import LinearRegression, LogisticRegression
from tests.advice import pieces


@pytest.fixture
def df():
    return pd.DataFrame(
        {
            "age": [30, 41, 85, 20],
            "cost": [5.0, 7.5, None, 1.0],
            "sex": ["F", "M", "F", None],
        }
    )


def opened(df):
    terms = {"bounds": {"age": (0, 110), "cost": (0, 10)}, "keys": {"sex": ["F", "M"]}}
    return df.dp.open(1000, queries=1000, **terms)


def shown_line(ask):
    """The line that a refusal shows after "put .dp first"."""
    with pytest.raises(DPError) as caught:
        ask()
    found = re.search(r"[Pp]ut \.dp first: (.*?\))\.( If it is|$)", str(caught.value))
    assert found is not None, str(caught.value)
    return found[1]


# What is asked of frames and columns that pandas derived; the verb and its arguments.
DERIVED = {
    "count": (lambda d: d[d.age > 50].dp.count(), ""),
    "mean": (lambda d: d.head(3).dp.mean("age"), "'age'"),
    "groupby": (lambda d: d.drop_duplicates().dp.groupby("sex").size(), "'sex'"),
    "query": (lambda d: d.iloc[:3].dp.query("age > 3"), "'age > 3'"),
    "describe": (lambda d: d.copy().dp.describe(), ""),
    "plan_ahead": (lambda d: d[d.age > 50].dp.plan_ahead(), ""),
}


@pytest.mark.parametrize("verb", DERIVED)
def test_derived_frame_is_told_its_verb_after_dp_and_the_line_is_answered(df, verb):
    p = opened(df)
    ask, arguments = DERIVED[verb]
    line = shown_line(lambda: ask(df))
    assert line == f'df.dp.query("age > 0").{verb}(...)'
    answer = eval(line.replace("...", arguments), {"df": df})
    assert answer is not None
    assert (p.budget.spent > 0) == (verb in ("count", "mean", "describe"))


@pytest.mark.parametrize(
    "ask",
    [
        lambda d: d[d.age > 50].dp["age"].mean(),
        lambda d: (d.age > 50).dp.mean(),
        lambda d: d["age"].clip(0, 50).dp.mean(),
        lambda d: (d[["age"]] * 2).dp.explain,
    ],
)
def test_derived_object_without_a_verb_is_told_a_count(df, ask):
    p = opened(df)
    line = shown_line(lambda: ask(df))
    assert eval(line.replace("...", ""), {"df": df}) is not None
    assert p.budget.spent > 0


def test_example_of_a_frame_without_numbers_drops_nulls():
    texts = pd.DataFrame({"town": ["a", "b"]})
    texts.dp.open(1000)
    assert shown_line(lambda: texts[:1].dp.count()) == "df.dp.dropna().count(...)"


# Frames and Series in which pandas leaves no trace of the session.
TRACELESS = {
    "merged": (lambda d, r: d.merge(r, on="sex").dp.mean("tax"), "df.dp.merge(table, on='key').mean(...)"),
    "merged, a column": (lambda d, r: d.merge(r, on="sex").dp["tax"], "df.dp.merge(table, on='key').columns(...)"),
    "pivoted": (lambda d, r: d.pivot(columns="sex", values="cost").dp.count(), "df.dp.query(...).count(...)"),
    "counted": (lambda d, r: d.age.value_counts().dp.plan, "df.dp.groupby(...).size()"),
    "reshaped": (lambda d, r: pd.DataFrame(d.groupby("sex").sum().to_dict()).dp.plan, "df.dp.groupby(...).size()"),
}  # fmt: skip


@pytest.mark.parametrize("case", TRACELESS)
def test_frame_without_a_trace_is_reminded_of_the_open_session(df, case):
    opened(df)
    ask, line = TRACELESS[case]
    regions = pd.DataFrame({"sex": ["F", "M"], "tax": [1.5, 2.5]})
    assert shown_line(lambda: ask(df, regions)) == line


def test_frame_with_other_columns_is_told_to_open_a_session(df):
    opened(df)
    with pytest.raises(dpframe.NoSession, match="whole budget"):
        pd.DataFrame({"other": [1]}).dp.count()


def test_groups_of_pandas_are_told_the_keys_and_the_verb(df):
    p = opened(df)
    line = shown_line(lambda: df.groupby(["sex"]).dp.mean("age"))
    assert line == "df.dp.groupby(['sex']).mean(...)"
    assert (
        shown_line(lambda: df.groupby("sex")["age"].dp[0]) == "df.dp.groupby('sex')['age'].size()"
    )
    assert eval("df.dp.groupby('sex').size()", {"df": df}) is not None
    assert p.budget.spent > 0


# Texts of the modules that refuse -----------------------------------------------------------------------------

MODULES = (
    "_refusals",
    "_plans/price",
    "_frame/accessor",
    "_frame/frame",
    "_frame/column",
    "_frame/places",
    "_frame/tracked",
    "_frame/verbs/steps",
    "_frame/verbs/cellwise",
    "_frame/verbs/looking",
    "_frame/verbs/groupings",
    "_frame/verbs/measure",
    "_frame/columns/votes",
    "_plans/durations",
    "_frame/columns/order",
    "_frame/verbs/summaries",
    "_frame/verbs/tables",
    "_frame/groups",
    "_answers/answer",
    "_frame/people/functions",
    "_frame/people/groups",
    "_frame/people/join",
    "_frame/people/steps",
)
# What stands for the user's own in a text, and what a text cannot be tried without.
STANDS_FOR = {
    "df.dp.merge(table,": "p.merge(regions,",
    "df.dp.groupby('x')": "p.groupby('k')",
    "keys=[...]": "keys=[1, 2]",
    "keys=...": "keys=[(1, 2)]",
    "bins=...": "bins=[0, 5]",
    "p['name']": "p['word']",
    "p['when']": "p['t']",
    "bins=[...]": "bins=[0, 5]",
    "X=[...]": "X=['x']",
    "bounds={...}": "bounds={'x': (0, 9)}",
    "keys={...}": "keys={'x': [1, 2]}",
    "epsilon=...": "epsilon=1",
    "'expression'": "'x + 1'",
    "p.groupby(...)": "p.groupby('k')",
    "p.crosstab('x')": "p.crosstab('a', 'b')",
    "p.assign('x'=": "p.assign(y=",
    "p.assign(name='x')": "p.assign(name='x + 1')",
    "p.assign(y=...)": "p.assign(y=1)",
    "cut([...])": "cut([0, 5, 9])",
    "on='x').size()": "on='t').size()",
    "p.fillna": "p[['x', 'y']].fillna",
    "LogisticRegression(...)": "LogisticRegression(epsilon=1)",
    "y='column'": "y='flag'",
}


def texts(module):
    """The strings of a module but its docstrings, whose examples run by themselves; what is filled in stands as a name."""
    tree = ast.parse((Path(dpframe.__file__).parent / f"{module}.py").read_text())
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    parts = {
        id(v) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for v in node.values
    }
    for node in ast.walk(tree):
        written = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if written and id(node) not in docs | parts and ">>> " not in node.value:
            yield node.value
        if isinstance(node, ast.JoinedStr):
            filled = [v.value if isinstance(v, ast.Constant) else stand_in(v) for v in node.values]
            yield "".join(filled)


def stand_in(filled):
    """What stands for what a text is filled with: a column, or who the person is."""
    return "'patient_id'" if "person" in ast.unparse(filled) else "'x'"


def pieces_of(module):
    """Return the lines of code in the texts of a module."""
    return sorted({piece for text in texts(module) for piece in pieces(text)})


def test_there_are_texts_to_try():
    found = {piece for module in MODULES for piece in pieces_of(module)}
    assert len(found) > 30
    assert any("resample" in piece for piece in found)


@pytest.mark.parametrize("module", MODULES)
def test_the_code_in_texts_of_a_module_is_answered(module):
    assert [piece for piece in pieces_of(module) if not is_answered(piece)] == []


def is_answered(piece):
    """Return whether a line of code has an answer on a frame with such columns."""
    for shown, meant in STANDS_FOR.items():
        piece = piece.replace(shown, meant)
    ones = [1, 2, 2] * 20
    columns = dict.fromkeys(
        ["x", "y", "a", "b", "k", "key", "age", "cost", "name", "column", "target", "group"], ones
    )
    cells = {
        **columns,
        "flag": [True, False, True] * 20,
        "t": pd.Timestamp("2024-02-03"),
        "word": ["a"] * 60,
    }
    df = pd.DataFrame(cells)
    bounds = {**dict.fromkeys(columns, (0, 9)), "t": ("2024-01-01", "2024-12-31")}
    keys = {**{name: [1, 2] for name in columns}, ("a", "b"): [(1, 1), (2, 2)]}
    unit: dict[str, object] = {}
    if "patient_id" in piece:  # said where columns name a person, or of sessions in which they do
        cells, unit = (
            {"patient_id": [1, 2, 3] * 20, **cells},
            {"unit": "patient_id", "max_rows": 20, "max_groups": 2},
        )
    p = pd.DataFrame(cells).dp.open(
        1000, queries=1000, bounds=bounds, keys=keys, n=60, delta=1e-6, **unit
    )
    scope = {
        "p": p,
        "df": df,
        "pd": pd,
        "LinearRegression": LinearRegression,
        "LogisticRegression": LogisticRegression,
        "f": lambda d: d,
        "table": pd.DataFrame({"w": [1, 2]}, index=pd.Index([1, 2], name="key")),
        "regions": pd.DataFrame({"key": [1, 2], "w": [1, 2]}),
        "edges": [0, 5, 9],
        "column": "x",
        "columns": "b",
        "constant": 0,
        "values": "x",
        "index": "a",
        "s": 1,
        "aggfunc": "mean",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(piece, scope) is not None
