"""Tables that databases count: the same integers as one frame, by whatever engine a session has on them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe._groups.unit import Unit
from dpframe._questions.question import Query
from dpframe._statistics.base import Spread
from dpframe.engines.pandas import PandasEngine
from tests.engines.conformance import (
    BOUNDS,
    BY,
    CONDITIONS,
    ID,
    KEY,
    SOME,
    EngineConformance,
    G,
    X,
    Y,
    condition,
    frame,
    people,
    primitives,
    row,
    shaken,
)
from tests.engines.counted import KINDS, divided

pytest.importorskip("pyarrow")
FOLDERS = itertools.count()


class Counted(EngineConformance):
    """The tests of all engines, of a kind of table; with little memory people are counted in many passes.

    SQLite has its tests beside the writer's: a table of its own keeps no sign of a zero.
    """

    kind: str
    memory: int = 2**30

    @pytest.fixture(autouse=True)
    def _somewhere(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def engine(self, frame: pd.DataFrame, key: bytes = KEY) -> Any:
        library, made = KINDS[self.kind]
        pytest.importorskip(library, reason=f"tables are counted by {library}")
        source = made(frame, self.folder / str(next(FOLDERS)))
        source.memory = self.memory
        return divided(source, key)


class TestFilesInPasses(Counted):
    kind, memory = "files", 900


class TestRelation(Counted):
    kind = "relation"


@pytest.mark.parametrize("kind", KINDS)
@SOME
@given(
    owned=people,
    nobody=st.lists(row, max_size=3),
    by=st.sampled_from(list(BY)),
    where=st.sampled_from([None, *CONDITIONS]),
    limits=st.none() | st.tuples(st.integers(1, 2), st.integers(1, 2)),
    memory=st.sampled_from([300, 900, 2**30]),
    orders=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
def test_the_integers_are_those_of_one_frame(
    kind, tmp_path_factory, owned, nobody, by, where, limits, memory, orders
):
    """Also those that hashes decide, whatever the order of the rows and the number of passes."""
    pytest.importorskip(KINDS[kind][0], reason="such tables are counted by it")
    whole, other = frame(owned, nobody, orders[0]), frame(owned, nobody, orders[1])
    source = KINDS[kind][1](other, tmp_path_factory.mktemp("rows") / "files")
    source.memory = memory
    unit = Unit() if limits is None else Unit("add-remove", (ID,), *limits)
    scope = Query((), None if where is None else condition(where), BY[by])
    asked = set(primitives(*BOUNDS[:2]))
    if limits is not None:
        asked |= {Spread("rows", 4), Spread("groups", 3)}
    engines = divided(source, KEY), PandasEngine(whole, KEY)
    one, expected = (shaken(engine.reduce(scope, asked, unit)) for engine in engines)
    assert one == expected
    for exprs in ((G,), (G, Y), (X,)):
        (texts, sums), (listed, known) = (e.occurring(exprs, scope.where, unit) for e in engines)
        assert texts == listed
        assert shaken(sums).items() <= shaken(known).items()
    assert engines[0].people(Unit(people=(ID,))) == engines[1].people(Unit(people=(ID,)))
    engines[0].close()


def test_threads_and_groups_of_rows_have_no_say(tmp_path):
    """Many rows, which duckdb reads by several threads."""
    duckdb = pytest.importorskip("duckdb", reason="files are counted by duckdb")
    rng = np.random.default_rng(3)
    df = pd.DataFrame(
        {
            "id": pd.array(rng.integers(0, 4000, 300_000), dtype="Int64"),
            "x": rng.normal(1, 3, 300_000),
            "y": pd.array(rng.integers(-9, 9, 300_000), dtype="Int64"),
            "g": pd.Series(rng.choice(list("abcde"), 300_000), dtype="str"),
            "flag": pd.array(rng.random(300_000) < 0.3, dtype="boolean"),
        }
    )
    scope, unit = Query((), condition("x > 0.5"), BY["keys"]), Unit("add-remove", (ID,), 3, 2)
    asked = set(primitives(*BOUNDS[:2]))
    numpy, found = PandasEngine(df, KEY), []
    for threads, groups, memory in ((1, 300_000, 2**30), (4, 20_000, 2**30), (2, 50_000, 2**24)):
        duckdb.from_df(df).to_parquet(str(tmp_path / f"{threads}.parquet"), row_group_size=groups)
        source = KINDS["files"][1](df.iloc[:0], tmp_path / f"empty{threads}")
        source = type(source)([str(tmp_path / f"{threads}.parquet")])
        source.memory = memory
        engine = divided(source, KEY)
        engine._database._connection.execute(f"SET threads = {threads}")
        found.append([shaken(engine.reduce(scope, asked, one)) for one in (unit, Unit())])
    expected = [shaken(numpy.reduce(scope, asked, one)) for one in (unit, Unit())]
    assert found == [expected] * 3
