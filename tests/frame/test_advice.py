"""What a refusal tells to write is answered when it is written: each line that it makes, and each text that it holds."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import LineageError
from dpframe.learn import LogisticRegression
from tests.advice import pieces

LIMIT = 40


@pytest.fixture
def df():
    return pd.DataFrame(
        {
            "age": [30, 41, 85, 20],
            "cost": [5.0, 7.5, None, 1.0],
            "sex": ["F", "M", "F", None],
            "when": pd.to_datetime(["2024-01-05", "2024-02-05", None, "2024-03-05"]),
        }
    )


def opened(df):
    terms = {"bounds": {"age": (0, 110), "cost": (0, 10)}, "keys": {"sex": ["F", "M"]}}
    return df.dp.open(1000, queries=1000, **terms)


# Lines as they are typed; whether the message must be able to rewrite them.
LINES = {
    "df[df.age > 50].dp.count()": True,
    'df[df["age"] > LIMIT].dp["cost"].mean()': True,
    'df[(df.age > 50) & ~(df.sex == "F")].dp.groupby("sex").size()': True,
    'df[df.sex.str.lower().str.startswith("f") | df.when.dt.month.isin([1])].dp.count()': True,
    "df[df.when.dt.day_name() == 'Friday'].dp.count()": True,
    "df[df.sex.str[0] == 'F'].dp.count()": True,
    "df[df.age.between(25, LIMIT)].dp.describe()": True,
    "df[df.age + df.cost * 2 > 20].dp.count()": True,
    'df[pd.col("age") > 3].dp.count()': True,
    "df[lambda d: d.age > 3].dp.count()": True,
    'df.query("age > @LIMIT")[df.cost > 1].dp.count()': True,
    "df[df.age > 3][df.cost > 1].dp.count()": True,
    "df.loc[df.age > 50].dp.groupby('sex')['age'].mean()": True,
    "df.loc[df.age > 50, 'age'].dp.mean()": True,
    "df.loc[df.age > 50, ['age', 'cost']].dp.mean()": True,
    "df.loc[:, ['age', 'cost']].query('age > 25').dp.mean()": True,
    "df.assign(k=df.age * 2).dp.mean('k')": True,
    'df.query("age > 3").assign(k=df.age * 2).dp.mean("k")': True,
    "df.assign(k=lambda d: d.age * 2).dp.mean('k')": True,
    "df.dropna().dp.groupby(['sex']).agg(m=('age', 'mean'))": True,
    "df[df.age > 3].dp.query('cost > 1').groupby('sex').age.mean()": True,
    "df.copy().sort_values('age').query('age > 25').dp.count()": True,
    "df.drop(['when'], axis=1).query('age > 25').dp.count()": True,
    "df.rename({'age': 'years'}, axis=1).dropna(how='all').query('years > 25').dp.count()": True,
    "(df.age > 50).dp.mean()": True,
    "(df['age'] * 2).dp.sum()": True,
    "df['age'][df.sex == 'F'].dp.mean()": True,
    "df['sex'].str.lower().dp.value_counts(keys=['f', 'm'])": True,
    "df['age'].clip(0, 50).dp.mean()": True,
    "(df.dp.count(), df[df.age > 50].dp.count())[1]": True,
    "df[df.when > pd.Timestamp('2024-01-10')].dp.count()": True,
    "df[df.age.isin(range(50))].dp.count()": True,
    "df[df['sex'].map({'F': 1, 'M': 0}) == 1].dp.count()": True,
    "df.query('sex == \"F\"').assign(k=lambda d: d.age * 2).query('k > 70').dp.mean('k')": True,
    "df[df.age.map(abs) > 25].dp.count()": True,
    "df[df.age.astype(float) > 25].dp.count()": True,
    "df[df.age.astype('category') == 30].dp.count()": True,
    "df[df.age.round().map(lambda a: a + 1) > 30].dp.count()": True,
    "df.query('index > 0').dp.count()": False,
    "df[['age', 'sex']].fillna('x').dp.mean('age')": True,
    "df.assign(k=1)[[True, False, True, True]].dp.count()": False,
    "df.head(3).dp.mean('age')": False,
    "df[['age', 'sex']].assign(k=1).groupby('k').head().dp.count()": False,
    "df.drop_duplicates().dp.count()": False,
    "df.iloc[:3].dp.count()": False,
    "df[:3].dp.count()": False,
    "df.loc[0:2].dp.count()": False,
    "df.loc[mask].dp.mean('age')": False,
    "df[mask].dp.count()": False,
    "df[mask.to_numpy()].dp.count()": False,
    "df[df.age > df.age.mean()].dp.count()": False,
    "df[np.log(df.age) > 1].dp.count()": False,
    "df.assign(k=lambda d: np.log(d.age)).dp.mean('k')": False,
    "df.query('age > age.mean()').dp.count()": False,
    "df[df.eval('age > 3')].dp.count()": False,
    "df.where(df.age > 3).dp.count()": False,
    "df[df.age > 3].dp.groupby(df.sex).size()": False,
    "df[df.age > 3].dp.mean(df.age)": False,
    "df.copy().dp.open(1)": False,
    "old.dp.count()": False,
    "pd.concat([df, df]).dp.count()": False,
    "(df[['age']] * 2).dp.count()": False,
}


def refused(typed, scope, tmp_path):
    """The message about a line, which has to stand in a file for its source to be read."""
    file = tmp_path / f"{len(list(tmp_path.iterdir()))}.py"  # linecache reads a file once
    file.write_text(f"answer = (\n    {typed}\n)\n")
    code = compile(file.read_text(), str(file), "exec")
    with pytest.raises(LineageError) as caught:
        exec(code, scope)
    return str(caught.value)


def advised(message):
    """The line in a message, and whether it is the user's own."""
    own = re.search(r"Write the steps after \.dp: (.*)$", message)
    example = re.search(r"Write the steps after \.dp, such as (.*?\))(?:\. There is|$)", message)
    assert (own is None) != (example is None)
    return own[1] if own else example[1], own is not None


@pytest.mark.filterwarnings("ignore:Boolean Series key will be reindexed")
@pytest.mark.parametrize("typed", LINES)
def test_the_line_that_a_refusal_makes_is_answered(df, tmp_path, typed):
    p = opened(df)
    scope = {
        "df": df,
        "pd": pd,
        "np": np,
        "LIMIT": LIMIT,
        "__name__": "typed",
        "mask": df["age"] > 50,
        "old": df[df["age"] > 50],
    }
    line, own = advised(refused(typed, scope, tmp_path))
    assert own == LINES[typed]
    spent = p.budget.spent
    eval(line, scope)
    assert p.budget.spent > spent
    if own:  # nothing but .dp has moved
        assert (
            not set(re.findall(r"[a-z_]\w+", line))
            - set(re.findall(r"[a-z_]\w+", typed))
            - {"lambda"}
        )


def test_the_example_has_the_names_that_there_are(tmp_path):
    visits = pd.DataFrame({"days": [1, 2], "town": ["a", "b"]})
    visits.dp.open(1000)
    scope = {"visits": visits, "old": visits[visits.days > 1], "__name__": "typed"}
    assert 'visits.dp.query("days > 0").count()' in refused("old.dp.count()", scope, tmp_path)
    texts = pd.DataFrame({"town": ["a", "b"]})
    texts.dp.open(1000)
    assert "texts.dp.dropna().count()" in refused(
        "texts[:1].dp.count()", {"texts": texts}, tmp_path
    )


# Lines on frames in which pandas leaves no trace of the session, and the private line.
TRACELESS = {
    'df.merge(regions, on="sex").dp["tax"].mean()': "df.dp.merge(regions, on='sex')['tax'].mean()",
    'df.merge(regions, on="sex").dp.mean("tax")': "df.dp.merge(regions, on='sex').mean('tax')",
    'pd.merge(df, regions, on="sex").dp.mean("tax")': "df.dp.merge(regions, on='sex').mean('tax')",
    'pd.merge(left=df, right=regions, on="sex").dp.mean("tax")': "df.dp.merge(right=regions, on='sex').mean('tax')",
    'df.groupby("sex").size().dp.plan': "df.dp.groupby('sex').size().dp.plan",
    "df.age.value_counts().dp.plan": "df.dp['age'].value_counts().dp.plan",
    'df.pivot(columns="sex", values="cost").dp.count()': None,
    'pd.concat([df, df]).assign(k=1).dp.mean("age")': None,
}


@pytest.mark.parametrize("typed", TRACELESS)
def test_frame_without_a_trace_is_told_the_private_line(df, tmp_path, typed):
    df.dp.open(
        1000,
        delta=1e-6,
        queries=1000,
        bounds={"age": (0, 110), "cost": (0, 10)},
        keys={"sex": ["F", "M"]},
    )
    regions = pd.DataFrame({"sex": ["F", "M"], "tax": [1.5, 2.5]})
    scope = {"df": df, "pd": pd, "regions": regions, "__name__": "typed"}
    file = tmp_path / "typed.py"
    file.write_text(f"answer = (\n    {typed}\n)\n")
    with pytest.raises((dpframe.NoSession, LineageError)) as caught:
        exec(compile(file.read_text(), str(file), "exec"), scope)
    told = str(caught.value)
    assert "Open one with the whole budget" not in told
    line, own = advised(told)
    assert (line if own else None) == TRACELESS[typed]
    assert eval(line, scope) is not None


def test_frame_of_an_earlier_line_is_told_where_to_ask(df):
    df.dp.open(1000)
    merged = df.merge(pd.DataFrame({"sex": ["F", "M"], "tax": [1, 2]}), on="sex")
    for ask in (lambda: merged.dp.mean("tax"), lambda: merged.dp["tax"]):
        with pytest.raises(dpframe.NoSession, match=r"df\.dp\.merge\(table, on='key'\)"):
            ask()
    with pytest.raises(dpframe.NoSession, match="whole budget"):
        pd.DataFrame({"other": [1]}).dp.count()


def test_a_step_that_is_not_offered_is_named_with_its_reason(df, tmp_path):
    opened(df)
    told = refused("df.head(2).dp.mean('age')", {"df": df}, tmp_path)
    assert "There is no .head before a question: " in told
    assert (
        "df.dp.query(\"age > 0\").mean('age')" in told
    )  # what was asked, of rows that a condition chooses
    assert "compares people" in refused("df.drop_duplicates().dp.count()", {"df": df}, tmp_path)


# Texts of the modules that refuse -----------------------------------------------------------------------------

MODULES = (
    "_frame/rewrite",
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
    columns = dict.fromkeys(["x", "y", "a", "b", "k", "key", "age", "cost", "name", "column"], ones)
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
        "aggfunc": "mean",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(piece, scope) is not None
