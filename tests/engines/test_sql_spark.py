"""The engine that asks a database, on Spark in local mode: the cells and groups of the other databases, bit for bit."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from dpframe import _expr as ex
from dpframe._groups.unit import Unit
from dpframe._questions.question import Query
from dpframe._statistics.base import Leaves, Magnitudes, Persons, Powers, Primitive, Rows, Trues
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.sql import SqlEngine
from dpframe.engines.sql.databases import SparkDatabase
from tests.engines import spark
from tests.engines import test_sql_cells as cells
from tests.engines.conformance import KEY, shaken
from tests.engines.written import cells_of

pytestmark = [
    pytest.mark.slow,  # a statement takes a tenth of a second, and a session ten
    pytest.mark.skipif(spark.missing() is not None, reason=str(spark.missing())),
    pytest.mark.filterwarnings("ignore"),  # of Spark's own
]
TYPES = {"integer": "bigint", "double": "double", "bool": "boolean", "text": "string"}
Both = Callable[[int], tuple[Any, Any]]


@pytest.fixture(scope="module")
def both() -> Both:
    session = spark.session()

    def made(seed: int) -> tuple[Any, Any]:
        df = cells.table(300, seed)
        columns, rows = cells_of(df, True)
        schema = ", ".join(f"{name} {TYPES[kind]}" for name, kind in columns)
        session.createDataFrame(rows, schema).createOrReplaceTempView("visits")
        numpy = PandasEngine(df, KEY)
        return SqlEngine(SparkDatabase(session), "visits", df.iloc[:0], KEY, numpy), PandasEngine(
            df, KEY
        )

    return made


def test_conditions_and_values_are_those_of_numpy(both):
    engine, numpy = both(7)
    pieces: list[set[Primitive]] = [
        {Trues(e) for e in cells.CONDITIONS[i : i + 40]}
        for i in range(0, len(cells.CONDITIONS), 40)
    ]
    pieces += [{Powers(e, grid, 1) for grid in cells.grids()} for e in cells.VALUES]
    cut = {Powers(ex.Cast(cells.X, "int"), grid, 1) for grid in cells.grids()}
    for asked in pieces:
        assert engine.writes(Query(()), asked, Unit()) is (asked != cut)  # there is no TRUNC
        assert shaken(engine.reduce(Query(()), asked, Unit())) == shaken(
            numpy.reduce(Query(()), asked, Unit())
        )


def test_groups_people_and_keys_are_those_of_numpy(both):
    engine, numpy = both(5)
    sums = {p for p in cells.PRIMITIVES if not isinstance(p, Leaves | Magnitudes)}
    points = {p for p in cells.PRIMITIVES if isinstance(p, Leaves)}
    for people in cells.UNITS.values():
        unit = Unit("add-remove", people, 2, 3) if people else Unit()
        for by in cells.BY.values():
            query = Query((), cells.FLAG, by)
            assert not engine.writes(
                query, sums | points, unit
            )  # two statements might read two states of the data
            for asked in (sums, points):
                assert engine.writes(query, asked, unit)
                assert shaken(engine.reduce(query, asked, unit)) == shaken(
                    numpy.reduce(query, asked, unit)
                )
        for keys in ((cells.G,), (cells.Y, cells.G)):
            asked_for = frozenset({Persons(), Rows()})
            found, expected = (e.occurring(keys, None, unit, asked_for) for e in (engine, numpy))
            assert found[0] == expected[0]
            assert shaken(found[1]) == shaken(expected[1])


def test_rows_move_once_to_their_person_and_lists_are_sent_to_them(both, monkeypatch):
    engine, numpy = both(9)
    session, plans = spark.session(), []
    plain, off = session.sql, "spark.sql.optimizer.disableHints"

    def heard(sql: str, args: Any) -> Any:
        frame = plain(sql, args=args)
        plans.append(frame._jdf.queryExecution().executedPlan().toString())
        return frame

    def moves(people: str, rows: int, groups: int) -> list[str]:
        unit, query = (
            Unit("add-remove", cells.UNITS[people], rows, groups),
            Query((), None, cells.BY["two"]),
        )
        plans.clear()
        found = engine.reduce(query, {Rows(), Persons()}, unit)
        assert shaken(found) == shaken(numpy.reduce(query, {Rows(), Persons()}, unit))
        (plan,) = plans
        return re.findall(r"SortMergeJoin|BuildLeft|REPARTITION_BY_COL|ENSURE_REQUIREMENTS", plan)

    monkeypatch.setattr(session, "sql", heard)
    # The rows by their people, and what is summed by groups.
    expected = ["ENSURE_REQUIREMENTS", "REPARTITION_BY_COL"]
    cases = [
        ("whole", 2, 100),
        ("whole", 2, 3),
        ("texts", 2, 3),
        ("two", 2, 3),
    ]  # all groups, or some
    for case in cases:
        assert moves(*case) == expected
    session.conf.set(off, "true")  # without the advice
    try:
        for case in cases:
            assert {"SortMergeJoin", "BuildLeft"} & {*moves(*case)}
    finally:
        session.conf.unset(off)
