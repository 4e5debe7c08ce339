"""The engine that asks a database, on each database there is, by the tests of all engines."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from dpframe.engines.pandas import PandasEngine
from dpframe.engines.sql import SqlEngine
from tests.engines.conformance import KEY, EngineConformance
from tests.engines.written import in_duckdb, in_sqlite


class Divided(SqlEngine):
    """Asks the database whatever it can of a question, and not only where it can all: so that one engine's tests are its."""

    def reduce(self, scope, primitives, unit):
        written = {p for p in primitives if self.writes(scope, {p}, unit)}
        found = super().reduce(scope, written, unit) if written else {}
        return found | (
            self._fallback.reduce(scope, primitives - written, unit) if primitives - written else {}
        )


def engine_in(
    make: Any, frame: pd.DataFrame, key: bytes = KEY, kind: type[SqlEngine] = SqlEngine
) -> Any:
    database = make(frame)
    return kind(
        database,
        getattr(database, "relation", "visits"),
        frame.iloc[:0],
        key,
        PandasEngine(frame, key),
    )


class TestSqlite(EngineConformance):
    def engine(self, frame: pd.DataFrame, key: bytes = KEY) -> Any:
        return engine_in(in_sqlite, frame, key, Divided)


class TestDuckdb(EngineConformance):
    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip("duckdb", reason="an engine in duckdb needs duckdb")

    def engine(self, frame: pd.DataFrame, key: bytes = KEY) -> Any:
        return engine_in(in_duckdb, frame, key, Divided)
