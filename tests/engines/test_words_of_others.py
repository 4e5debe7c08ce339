"""Words and expressions of the libraries whose tables can be opened: each is told the line of pandas, and nothing is charged."""

from __future__ import annotations

import copy

import pandas as pd
import pytest

import dpframe

FRAME = pd.DataFrame({"age": [30, 41, 55] * 100, "g": ["a", "b", "a"] * 100})


@pytest.fixture
def p():
    return FRAME.copy().dp.open(10, bounds={"age": (0, 110)}, keys={"g": ["a", "b"]})


WORDS = {  # of polars, Spark, duckdb and ibis
    "group_by": "p.groupby(",
    "groupBy": "p.groupby(",
    "with_columns": "p.assign(",
    "withColumn": "p.assign(",
    "mutate": "p.assign(",
    "select": "p[[",
    "order_by": ".sort_values()",
    "collect": "p.count()",
    "toPandas": "p.count()",
    "limit": "p.count()",
    "df": "p.count()",
    "schema": "p.dtypes",
    "n_unique": "p.nunique(",
    "null_count": ".isna()",
    "fill_null": "p.fillna(",
    "when": ".where(",
    "avg": "p.mean(",
    "drop_nulls": "p.dropna(",
    "summary": "p.describe(",
    "cache": "leave it out",
}


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_another_library_is_told_the_one_of_pandas(p, word):
    for asked in (p, p["age"]):
        with pytest.raises(dpframe.NotOffered) as caught:
            getattr(asked, word)
        assert WORDS[word] in str(caught.value)
        assert "Did you mean" not in str(caught.value)


def test_a_column_with_such_a_name_is_a_column():
    p = FRAME.rename(columns={"age": "limit"}).dp.open(10, bounds={"limit": (0, 110)})
    assert p.limit.mean(epsilon=1).dp.plan.question == p["limit"].mean(epsilon=1).dp.plan.question


SQL = {
    "age = 30": "==",
    "age > 3 AND g <> 'x'": "and",
    "g LIKE 'a%'": ".str.contains('...')",
    "age IS NOT NULL": ".notna()",
    "age IS NULL": ".isna()",
    "age BETWEEN 1 AND 3": ".between(1, 2)",
}


@pytest.mark.parametrize("text", SQL)
def test_a_condition_of_sql_is_told_the_words_of_pandas(p, text):
    with pytest.raises(dpframe.BadExpression) as caught:
        p.query(text)
    assert f"of SQL write {SQL[text]}" in str(caught.value)
    with pytest.raises(dpframe.BadExpression) as caught:
        p.query("g == 'IS NULL AND = LIKE' age")
    assert "SQL" not in str(caught.value)


# Conditions of the column "age", as each library writes them.
EXPRESSIONS = {
    "polars": lambda polars: polars.col("age") > 3,
    "pyarrow.compute": lambda arrow: arrow.field("age") > 3,
    "duckdb": lambda duckdb: duckdb.ColumnExpression("age") > 3,
    "ibis": lambda ibis: ibis.table({"age": "int64"}).age > 3,
}
ASKED = {
    "rows": lambda p, e: p[e],
    "filter": lambda p, e: p.filter([e]),
    "column": lambda p, e: p.mean(e),
    "groups": lambda p, e: p.groupby(e),
    "drop": lambda p, e: p.drop(columns=e),
    "columns": lambda p, e: p[[e]],
    "count": lambda p, e: p.count(e),
}
VALUES = {
    "query": lambda p, e: p.query(e),
    "assign": lambda p, e: p.assign(y=e),
    "sum": lambda p, e: p["age"] + e,
    "agg": lambda p, e: p.agg(m=("age", e)),
    "groups": lambda p, e: p.groupby("g").agg(m=("age", e)),
    "filter": lambda p, e: p.filter(e),
    "isin": lambda p, e: p["age"].isin(e),
}


@pytest.mark.parametrize("library", EXPRESSIONS)
@pytest.mark.parametrize("way", [*ASKED, *VALUES])
def test_an_expression_of_another_library_is_refused_and_costs_nothing(p, way, library):
    expression = EXPRESSIONS[library](
        pytest.importorskip(library, reason=f"an expression of {library}")
    )
    with pytest.raises(dpframe.BadType) as caught:
        (ASKED | VALUES)[way](p, expression)
    assert (way in VALUES) or str(caught.value).startswith(
        "an expression of another library is not read here"
    )
    assert p.budget.spent == 0


def test_what_names_a_table_says_that_a_session_opens_it():
    named = dpframe.sql("postgresql://ann:Sesame@host/db", "visits")
    assert repr(named) == "NamedTable(table='visits')"
    assert copy.copy(named) == named
    for word in ("count", "dp", "open"):
        with pytest.raises(dpframe.NotOffered, match=r"dpframe\.open\(dpframe\.sql"):
            getattr(named, word)


def test_a_file_of_duckdb_that_is_open_to_write_is_asked_by_its_connection(tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="a file of duckdb")
    path = str(tmp_path / "clinic.duckdb")
    with duckdb.connect(path) as base:
        base.execute("CREATE TABLE seen AS SELECT range AS x FROM range(20)").fetchall()
        with pytest.raises(dpframe.BadValue, match=r"dpframe\.sql\(connection, 'table'\)"):
            dpframe.open(dpframe.sql(f"duckdb:///{path}", "seen"), 1, because="made up")
        assert (
            dpframe.open(dpframe.sql(base, "seen"), 1000, because="made up").count(epsilon=900)
            == 20
        )
