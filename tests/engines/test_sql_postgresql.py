"""The engine that asks a database, on a PostgreSQL server: the tests of all engines, and the cells that other databases take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from dpframe import _expr as ex
from dpframe._groups.unit import Unit
from dpframe._questions.question import Query
from dpframe._statistics.base import Persons, Powers, Primitive, Rows, Trues
from dpframe.engines.pandas import PandasEngine
from tests.engines import test_sql_cells as cells
from tests.engines.conformance import KEY, EngineConformance, shaken
from tests.engines.test_sql import Divided, engine_in
from tests.engines.written import connected, in_postgresql

pytest.importorskip("psycopg", reason="a server is asked with psycopg")
pytest.importorskip("tests.postgres", reason="there is no server that tests can start")


@pytest.fixture(autouse=True, scope="module")
def _started(postgres: Any) -> Iterator[None]:
    with connected(postgres):
        yield


class TestPostgresql(EngineConformance):
    def engine(self, frame: pd.DataFrame, key: bytes = KEY) -> Any:
        return engine_in(in_postgresql, frame, key, Divided)


def may_raise(e: Any) -> bool:
    """Whether it has arithmetic of doubles, which the server ends with an error where it overflows."""
    return isinstance(e, ex.Arithmetic) or any(map(may_raise, e.children))


def both(seed: int) -> tuple[Any, Any]:
    df = cells.table(300, seed, nul=False)
    return engine_in(in_postgresql, df), PandasEngine(df, KEY)


def test_conditions_and_values_are_those_of_numpy():
    engine, numpy = both(7)
    for e in [*cells.CONDITIONS, *cells.VALUES]:
        asked: set[Primitive] = {Powers(e, None, 0)}
        asked |= {Trues(e)} if e.kind == "bool" else {Powers(e, grid, 1) for grid in cells.grids()}
        assert engine.writes(Query(()), asked, Unit()) is not may_raise(e), str(e)
        found, expected = (one.reduce(Query(()), asked, Unit()) for one in (engine, numpy))
        assert shaken(found) == shaken(expected), str(e)


@pytest.mark.parametrize("by", cells.BY)
def test_groups_and_people_are_those_of_numpy_bit_for_bit(by):
    engine, numpy = both(5)
    for people in cells.UNITS.values():
        for limits in cells.LIMITS[:3] if people else cells.LIMITS[:1]:
            unit = Unit("add-remove", people, *limits) if people else Unit()
            query, asked = Query((), cells.FLAG, cells.BY[by]), set(cells.PRIMITIVES)
            assert engine.writes(query, asked, unit)
            assert shaken(engine.reduce(query, asked, unit)) == shaken(
                numpy.reduce(query, asked, unit)
            )


def test_keys_that_nobody_listed_are_those_of_numpy():
    engine, numpy = both(6)
    asked = frozenset({Persons(), Rows(), Powers(cells.X, cells.SQUARE, 2)})
    for by in ((cells.G,), (cells.Y, cells.G), (cells.FLAG, cells.SMALL), (cells.X,)):
        for unit in (
            Unit(),
            Unit("add-remove", (cells.ID,), 2, 3),
            Unit("add-remove", (cells.WHO, cells.FLAG), 1, 1),
        ):
            found, expected = (e.occurring(by, None, unit, asked) for e in (engine, numpy))
            assert found[0] == expected[0]
            assert shaken(found[1]) == shaken(expected[1])
