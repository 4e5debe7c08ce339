"""What a query reads: whether it has the same rows each time, whether a change is seen, and the line that opens it once more."""

from __future__ import annotations

import gc
import sqlite3

import pytest

import dpframe
from dpframe import BadValue, SessionError
from dpframe.engines.tables.queries import check_sql, check_steady, find_sums
from tests.session.test_sources import BOUNDS, files, opened, rewritten, visits

pq = pytest.importorskip("pyarrow.parquet", reason="sources are read by pyarrow")
__all__ = ["files"]


@pytest.mark.parametrize(
    "text",
    [
        "select * from t limit 3",
        "SELECT * FROM t WHERE random() < 0.5",
        "t USING SAMPLE 10%",
        "select now() - t.x",
        "SLICE[offset: 0, len: 2]",
        "a OFFSET 2",
        "select localtimestamp",
        "select transaction_timestamp()",
    ],
)
def test_a_query_with_other_rows_each_time_is_refused(text):
    with pytest.raises(BadValue, match="gives other rows each time"):
        check_steady(text)


@pytest.mark.parametrize(
    "text",
    [
        "select id, first(x) from t group by id",
        "select id, ANY_VALUE (x + (1)), list(x order by x) from t group by id",
        "select x.last() from t group by id",
        "select string_agg(b, (select max(a) from t)) from t order by id",
        "select distinct on (id) * from t",
        "select *, row_number() over () as n from t",
        "select *, ROW_NUMBER ( ) OVER (partition by id) as n from t",
        'select "first"(x) from t',
        "select row_number(*\n) over (partition by id) from t",
        "select lag(x) over () from t order by x",
        "select $$'$$, any_value(x), $$'$$ from t",
        "select E'\\'', last(x), 'a' from t",
    ],
)
def test_sql_that_keeps_what_comes_first_is_refused(text):
    with pytest.raises(BadValue, match=r"WITHOUT ORDER BY gives other rows each time"):
        check_sql(text)


@pytest.mark.parametrize(
    "text",
    [
        "select id, first(x order by day, (x)), min(x) from t group by id",
        "select distinct on (id) * from t order by id, day",
        'select distinct first, "list" from t -- any_value(x)',
        "select row_number() over (partition by id order by day) from t",
        "select last(x) over (partition by id order by day), any_value(x) filter (x > 1) over (order by day) from t",
        "select list_value(x, 1), [1, 2], first_day(x), 'first(x)' from t",
    ],
)
def test_sql_that_says_an_order_is_not(text):
    check_sql(text)


@pytest.mark.parametrize(
    "text",
    [
        'select "random"() from t',
        "select datetime('now', '-1 year') < day from t",
        "select date() from t",
        "select mode(x), id from t group by id",
        "select arg_max(x, day) from t group by id",
        "select approx_quantile(x, 0.5) from t",
        "select * from query('select * from t limit 5')",
    ],
)
def test_sql_with_other_rows_each_time_is_refused(text):
    with pytest.raises(BadValue, match="gives other rows each time"):
        check_sql(text)


EXACT = [
    "sum(cast(x as bigint))",
    "avg(x::decimal(18, 2))",
    "sum(distinct x::int) filter (y > 1)",
    "sum((x + y)::hugeint)",
    "max(x)",
]
INEXACT = [
    *(
        "sum(x)",
        "avg(x)",
        "sum(x::int + y)",
        "sum(y + x::int)",
        "sum(cast(a as int) / cast(b as int))",
        "stddev(x::int)",
    ),
    *(
        "sum(cast(x as bigint)) + sum(y)",
        "sum(cast(x as double))",
        "list_sum(l)",
        "sum((x)::int / (y)::int)",
    ),
]


def test_sums_that_do_not_show_whole_numbers_are_found():
    assert [text for text in EXACT if find_sums(f"select {text} from t")] == []
    assert [text for text in INEXACT if not find_sums(f"select {text} from t")] == []


def test_a_relation_that_hides_its_query_behind_a_variable_is_refused():
    duckdb = pytest.importorskip("duckdb")
    base = duckdb.connect()
    base.execute("create table t as select i as id, i % 3 as g from range(100) r(i)")
    few = base.sql("select * from t where random() < 0.5")
    assert few is not None
    with pytest.raises(BadValue, match="variable of Python"):
        dpframe.open(base.sql("select * from few"), 1, because="x")
    base.execute(
        "create schema s; create view v as select * from t; create view s.v as select * from t limit 3"
    )
    with pytest.raises(BadValue, match="LIMIT"):
        dpframe.open(base.sql("select * from s.v"), 1, because="x")
    base.execute(
        "create view w as select g, first(id) as id from t group by g"
    )  # which duckdb keeps in quotes
    with pytest.raises(BadValue, match="FIRST WITHOUT ORDER BY"):
        dpframe.open(base.table("w"), 1, because="x")


def test_a_query_that_only_names_such_things_is_not():
    check_steady(
        """select "limit", 'random()' from t -- limit 3\n where x > 'it''s now()' /* rand() */"""
    )


def test_files_that_come_later_and_views_that_are_made_anew_are_seen(files):
    duckdb = pytest.importorskip("duckdb")
    base = duckdb.connect()
    base.execute(f"create view seen as select * from '{files}/v*.parquet'")
    base.execute("create view over as select age from seen")
    tables = [
        base.table("seen"),
        base.table("over"),
        base.sql(f"select * from '{files}/v*.parquet'"),
        base.read_parquet(f"{files}/v*.parquet"),
    ]
    sessions = [dpframe.open(one, 1000, because="one of several") for one in tables]
    assert [p.count(epsilon=90) for p in sessions] == [900] * 4

    def refused(some):
        for p in some:
            with pytest.raises(SessionError, match="has changed"):
                p.query("age >= 0").count(epsilon=90)
            assert p.budget.spent == 90

    pq.write_table(visits(seed=9), files / "v9.parquet")
    refused(sessions)
    (files / "v9.parquet").unlink()
    assert sessions[0].query("age < 0").count(epsilon=90) == 0  # as before
    base.execute(f"create or replace view seen as select * from '{files}/v0.parquet'")
    refused(sessions[1:2])
    rewritten(files / "v1.parquet", visits(seed=8))
    refused(sessions[2:])


def test_a_macro_of_chance_is_refused_wherever_it_is_named():
    duckdb = pytest.importorskip("duckdb")
    base = duckdb.connect()
    base.execute("create table t as select i as id from range(100) r(i)")
    base.execute("create macro lucky() as random() < 0.5")
    base.execute("create macro lot() as table select * from t where lucky()")
    base.execute("create view few as select * from t where lucky()")
    base.execute("create macro fair(x) as x + 1")
    for text in ("select * from t where lucky()", "select * from lot()", "select * from few"):
        with pytest.raises(BadValue, match="RANDOM"):
            dpframe.open(base.sql(text), 1, because="x")
    assert (
        dpframe.open(base.sql("select fair(id) as id from t"), 1000, because="x").count(epsilon=90)
        == 100
    )


# The line that opens, once more ---------------------------------------------------------------------------------

MADE = {
    "a file": lambda folder: folder / "v0.parquet",
    "a pattern": lambda folder: f"{folder}/v*.parquet",
    "a list": lambda folder: [f"{folder}/v0.parquet", folder / "v1.parquet"],
    "a table": lambda folder, kept=visits(): kept,  # noqa: B008  # the same one
    "sqlite": lambda folder: dpframe.sql(f"sqlite:///{folder}/x.db", "visits"),
    "polars": lambda folder: pytest.importorskip("polars").scan_parquet(folder / "v*.parquet"),
}


@pytest.mark.parametrize(
    "how",
    [{"ledger": "budget.db", "population": "p"}, {"because": "made up"}],
    ids=["ledger", "reason"],
)
@pytest.mark.parametrize("name", MADE)
def test_the_line_that_opens_returns_the_session_that_is_there(name, how, files):
    with sqlite3.connect(files / "x.db") as base:
        visits().to_pandas().to_sql("visits", base, index=False)
    words = {"epsilon": 1000, **how, "bounds": BOUNDS}
    if "ledger" in words:
        words["ledger"] = files / words["ledger"]
    n = dpframe.open(MADE[name](files), **words).count(epsilon=90)  # which nobody keeps
    gc.collect()
    p = dpframe.open(MADE[name](files), **words)
    assert p.count(epsilon=90) == n
    assert p.budget.spent == 90
    assert sum(p.declarations["what"] == "source") == 1
    q = dpframe.open(
        MADE[name](files), **words | {"bounds": {"age": (0, 50)}}
    )  # as of a frame: bounds may change
    assert q.mean("age", epsilon=90) < 51
    assert p.budget.spent == 180
    with pytest.raises(SessionError, match="other terms"):
        dpframe.open(
            MADE[name](files),
            **words
            | {"epsilon": 500, "because": None, "ledger": files / "b.db", "population": "p"},
        )


def test_files_that_were_replaced_are_not_the_session_that_is_there(files):
    p = opened(f"{files}/v*.parquet", files)
    rewritten(files / "v1.parquet", visits(seed=7))
    with pytest.raises(SessionError, match="open session of another frame"):
        opened(f"{files}/v*.parquet", files)
    p.close()
    assert opened(f"{files}/v*.parquet", files).budget.spent == 0


def test_a_list_and_a_table_that_were_changed_in_place_are_others(files):
    listed = [files / "v0.parquet"]
    p = opened(listed, files)
    listed.append(files / "v1.parquet")
    with pytest.raises(SessionError, match="open session of another frame"):
        opened(listed, files)
    p.close()


def test_a_view_of_chance_is_refused_and_a_steady_one_is_not(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    base = duckdb.connect(str(tmp_path / "x.duckdb"))
    base.execute("create table t as select i as id, i % 7 as x from range(100) r(i)")
    base.execute("create view few as select * from t where random() < 0.5")
    base.execute("create view over as select * from few")
    base.execute("create view steady as select * from t where x > 2")
    for name in ("few", "over"):
        with pytest.raises(BadValue, match="RANDOM"):
            dpframe.open(base.table(name), 1, because="x")
    with pytest.raises(BadValue, match="LIMIT"):
        dpframe.open(base.table("t").limit(3), 1, because="x")
    for relation in (
        base.table("t").aggregate("x, first(id)", "x"),
        base.sql("select arbitrary(id) from t group by x"),
    ):
        with pytest.raises(BadValue, match="WITHOUT ORDER BY"):
            dpframe.open(relation, 1, because="x")
    p = dpframe.open(base.table("steady"), 1000, because="x")
    assert p.count(epsilon=90) == 56
    with pytest.raises(SessionError, match="shares its data"):
        opened(base.table("t"), tmp_path, bounds={}, keys={})
    base.execute("insert into t values (101, 6)")
    with pytest.raises(SessionError, match="has changed"):
        p.mean("x", bounds=(0, 6), epsilon=90)


def test_a_folder_that_polars_reads_is_watched(files):
    polars = pytest.importorskip("polars")
    p = dpframe.open(polars.scan_parquet(f"{files}/"), 1000, because="made up")
    assert p.count(epsilon=90) == 900
    pq.write_table(visits(), files / "w.parquet")
    with pytest.raises(SessionError, match="has changed"):
        p.query("age >= 0").count(epsilon=90)
    (files / "w.parquet").unlink()
    rewritten(files / "v1.parquet", visits(seed=4))
    with pytest.raises(SessionError, match="has changed"):
        p.query("age >= 0").count(epsilon=90)
    assert p.budget.spent == 90


def test_a_plan_that_polars_cannot_resolve_says_where_to_look(files):
    polars = pytest.importorskip("polars")
    for lazy in (
        polars.scan_parquet(files / "v0.parquet").select("nobody"),
        polars.scan_parquet(files / "x.parquet"),
    ):
        with pytest.raises(BadValue, match="collect_schema") as error:
            dpframe.open(lazy, 1, because="made up")
        assert "nobody" not in str(error.value)
        assert error.value.__context__ is None
