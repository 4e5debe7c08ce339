"""A source that is not steady is refused, declared or watched, by one rule for all engines."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import Any

import pytest

import dpframe
from dpframe import BadValue, DPError, NotOffered, SessionError
from tests.engines import hazards, spark
from tests.engines.hazards import EXAMPLES, STEADY, Example

pytest.importorskip("polars")
REASON = "each row is made of one patient alone"


def opened(table: Any, **words: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the engines
        return dpframe.open(table, 1000, **words)


def marked(example: Example) -> Any:
    marks = [] if example.kind != "SparkSource" else [
        pytest.mark.slow,
        pytest.mark.skipif(spark.missing() is not None, reason=str(spark.missing())),
        pytest.mark.filterwarnings("ignore"),
    ]  # fmt: skip
    return pytest.param(example, id=example.label, marks=marks)


@pytest.mark.parametrize("example", list(map(marked, EXAMPLES)))
def test_a_hazard_is_refused_declared_or_watched(example, tmp_path):
    if example.kind in hazards.NEEDS:
        pytest.importorskip(hazards.NEEDS[example.kind])
    named = {"ledger": tmp_path / "budget.db", "population": "p"}
    if example.answer == "refused":
        with pytest.raises((BadValue, NotOffered)):
            opened(example.make(tmp_path), because=REASON)
        return
    if example.answer == "declared":
        table = example.make(tmp_path)
        with pytest.raises(BadValue, match="because='each row"):
            opened(table, **named)
        p = opened(table, because=REASON)
        assert any(value.endswith(f": {REASON}") for value in p.declarations["value"])
        p.close()
        return
    table, change = example.make(tmp_path)
    p = opened(table, because=REASON)
    p.count(epsilon=1)
    change()
    with pytest.raises(SessionError, match=r"has changed|cannot be reached"):
        p.count(epsilon=2)
    assert p.budget.spent == 1


@pytest.mark.parametrize("name", STEADY)
def test_a_plan_of_polars_that_makes_each_row_of_one_row_needs_no_word(name, tmp_path):
    p = opened(hazards.lazy(STEADY[name])(tmp_path), ledger=tmp_path / "budget.db", population="p")
    assert not any("Python" in value or REASON in value for value in p.declarations["value"])
    p.count(epsilon=1)


@pytest.mark.parametrize(
    "text",
    [
        "select * from t where id in (1, 2) and x between 0 and 1",
        "select id, greatest(x, g) as m, upper(s) as s from (select * from t where x > 0.5) q",
        "with a as (select * from t), b as (select * from a) select * exclude (g) from b",
        "select id, round(x, 2) as sum, 'a join b' as text from t -- group by",
    ],
)
def test_a_query_of_duckdb_that_makes_each_row_of_one_row_needs_no_word(text, tmp_path):
    pytest.importorskip("duckdb")
    opened(hazards.duck(text)(tmp_path), ledger=tmp_path / "budget.db", population="p").count(
        epsilon=1
    )


@pytest.fixture(scope="module")
def server(postgres: Any) -> Any:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(
        f"postgresql://{postgres.user}@127.0.0.1:{postgres.port}/postgres", autocommit=True
    ) as base:
        base.execute(
            "SET lock_timeout = '5s'; CREATE SCHEMA hazards; SET search_path = hazards;"  # a session left open would block
            "CREATE TABLE t AS SELECT i AS id, i * 0.1::float8 AS x, i AS n FROM generate_series(1, 20) i;"
            "CREATE VIEW summed AS SELECT id, sum(x) AS s FROM t GROUP BY id;"
            "CREATE FUNCTION volatile_one(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';"
            "CREATE FUNCTION stable_one(int) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN 1; END';"
            "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER far FOREIGN DATA WRAPPER w;"
            "CREATE FOREIGN TABLE far (x int) SERVER far"
        )
        yield postgres, base
        base.execute("DROP SCHEMA hazards CASCADE; DROP FOREIGN DATA WRAPPER w CASCADE")


OF_A_SERVER = [(*key, text) for key, texts in hazards.POSTGRES.items() for text in texts]


@pytest.mark.parametrize(("hazard", "answer", "text"), OF_A_SERVER)
def test_a_hazard_of_a_server_is_refused_or_declared(server, hazard, answer, text, tmp_path):
    postgres, base = server
    base.execute(f"DROP VIEW IF EXISTS v; CREATE VIEW v AS {text}")
    table = dpframe.sql(
        f"postgresql://{postgres.user}@127.0.0.1:{postgres.port}/postgres", "hazards.v"
    )
    words = (
        {"because": REASON}
        if answer == "refused"
        else {"ledger": tmp_path / "b.db", "population": "p"}
    )
    with pytest.raises(BadValue, match="." if answer == "refused" else "because='each row"):
        opened(table, **words)
    if answer == "declared":
        opened(table, because=REASON).close()


def test_message_names_the_part_of_the_query_and_the_line_to_write(tmp_path):
    pl = import_module("polars")
    lazy = pl.scan_parquet(hazards.file(tmp_path))
    with pytest.raises(
        BadValue, match=r"^RANDOM RANK gives other rows each time.*Keep the rows first"
    ):
        opened(lazy.with_columns(pl.col("g").rank("random")), because=REASON)
    with pytest.raises(BadValue, match=r"^SUM adds doubles in whatever order threads come.*CAST"):
        opened(lazy.group_by("id").agg(pl.col("x").sum()), because=REASON)
    with pytest.raises(
        BadValue, match=r"^JOIN: this makes a row of several rows.*dpframe.open\(..., because="
    ):
        opened(lazy.join(lazy, on="id"), ledger=tmp_path / "b.db", population="p")


def test_a_plan_with_rows_in_memory_is_read_without_them():
    """A list of numbers may be cut anywhere where polars hands it over, and short ones are no rows."""
    pl, plans = import_module("polars"), import_module("dpframe.engines.tables.polars_plans")
    lazy = pl.DataFrame({"x": range(5000), "y": [0.5] * 5000}).lazy()
    lazy = (
        lazy.filter(pl.col("x").is_in([1, 2]))
        .sort("x", descending=False)
        .with_columns(pl.col("y").rank("random"))
    )
    assert len(str(plans.plan_of(lazy))) < 3000 < len(lazy.serialize(format="binary"))
    whole = import_module("json").dumps(plans.plan_of(lazy))
    with pytest.warns(UserWarning, match="deprecated"):
        text = lazy.serialize(format="json").encode()
    for size in (1, 7, 64, 1000):
        sink = plans._PlanSink()
        for start in range(0, len(text), size):
            sink.write(text[start : start + size])
        assert import_module("json").dumps(sink.read_plan()) == whole


@pytest.mark.parametrize(
    ("text", "far"),
    [
        ("select * from read_parquet(['a.parquet', 's3://b/t.parquet'])", 1),
        ("select * from 'https://example.org/t.csv' where url = 'https://example.org/x'", 1),
        ("select * from 'file:///t.parquet' join \"gs://b/t.parquet\" using (id)", 1),
        ("select * from t where url = 'https://example.org/x'", 0),
    ],
)
def test_files_on_other_machines_are_found_in_a_query(text, far):
    queries: Any = import_module("dpframe.engines.tables.queries")
    assert [found.hazard for found in queries.find_far(text)] == ["elsewhere"] * far


def test_a_plan_that_cannot_be_written_down_is_refused(tmp_path):
    pl, threading = import_module("polars"), import_module("threading")
    lock = threading.Lock()
    lazy = pl.scan_parquet(hazards.file(tmp_path)).map_batches(lambda d: (lock, d)[1])
    with pytest.raises(BadValue, match=r"lazy.collect\(\)"):
        opened(lazy, because=REASON)


# The table ------------------------------------------------------------------------------------------------------


def kinds() -> list[Any]:
    """Every kind of table of the package."""
    sources: Any = import_module("dpframe.engines.sources")
    import_module("dpframe.engines.tables")
    import_module("dpframe.engines.derived")
    todo, found = [sources.Source], []
    for kind in todo:
        todo += kind.__subclasses__()
        # A test may have taken its module out again, while its class is not collected yet.
        loaded = kind.__module__.startswith("dpframe.") and kind.__module__ in sys.modules
        found += [kind] if loaded and kind is not sources.Source else []
    return found


def test_every_kind_of_table_answers_every_hazard_and_shows_it():
    rule: Any = import_module("dpframe.engines.steadiness")
    shown = {(e.kind, e.hazard): e.answer for e in EXAMPLES}
    shown |= {("PostgresSource", hazard): answer for hazard, answer in hazards.POSTGRES}
    shown |= {("PostgresSource", "meaning"): "watched"}  # tests/engines/test_tables.py
    acts = {rule.HazardAnswer.REFUSED, rule.HazardAnswer.DECLARED, rule.HazardAnswer.WATCHED}
    assert len(kinds()) > 10
    for kind in kinds():
        assert {*kind.answers} == {*rule.HAZARDS}, kind
        for hazard, answer in kind.answers.items():
            key = (kind.__name__, hazard)
            expected = answer.value if answer in acts and key not in hazards.ELSEWHERE else None
            assert shown.get(key) == expected, key


def test_a_kind_of_table_that_leaves_a_hazard_out_cannot_be_made():
    sources: Any = import_module("dpframe.engines.sources")
    rule: Any = import_module("dpframe.engines.steadiness")
    with pytest.raises(TypeError, match=r"must answer each hazard .*: in place"):
        type(
            "Other",
            (sources.Source,),
            {"answers": {h: rule.HazardAnswer.ABSENT for h in rule.HAZARDS if h != "in place"}},
        )
    with pytest.raises(TypeError, match="must answer each hazard"):
        type("Other", (sources.Source,), {})


def test_the_table_of_the_page_is_that_of_the_answers():
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs/explain/engines.md").read_text(encoding="utf-8")
    assert import_module("tests.engines.hazard_table").written() in page


def test_an_error_of_a_table_that_is_not_declared_opens_nothing(tmp_path):
    pl = import_module("polars")
    lazy = pl.scan_parquet(hazards.file(tmp_path))
    with pytest.raises(DPError):
        opened(lazy.join(lazy, on="id"), ledger=tmp_path / "b.db", population="p")
    assert not (tmp_path / "b.db").exists()
