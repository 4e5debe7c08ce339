"""Sources in parts: the integers of one frame, in whatever batches, order and number of passes."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe import _expr as ex
from dpframe._expr import Column
from dpframe._groups.unit import Unit
from dpframe._questions.question import Query
from dpframe._sizes import SIZES
from dpframe._statistics.base import Bids, Distincts, Persons, Spread, Trues
from dpframe.engines import parts as parts_module
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.parts import PartsEngine
from dpframe.engines.sources import PeoplePart as SourcePart
from dpframe.engines.tables.arrow import TableSource
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

pa = pytest.importorskip("pyarrow")


class Cut(TableSource):
    """A table in pieces of random sizes, some of them empty."""

    def __init__(self, table: Any, seed: int):
        self.seed = seed
        super().__init__(table)

    def _scan(self, names):
        rng, start = np.random.default_rng(self.seed), 0
        table = self._table.select(names)
        while start < len(table):
            size = int(rng.integers(0, 6))
            yield from table.slice(start, size).to_batches()
            start += size


def cut(frame: pd.DataFrame, memory: int, seed: int = 0) -> Any:
    """The source of a frame; with little memory its people are read in many passes."""
    texts = {
        name: pd.array(
            [c if type(c) is str and c.isprintable() else None for c in frame[name]], dtype="str"
        )
        for name in frame.columns
        if str(frame[name].dtype) == "object"
    }
    source = Cut(pa.Table.from_pandas(frame.assign(**texts), preserve_index=False), seed)
    source.memory = memory
    return source


class TestInOnePass(EngineConformance):
    def engine(self, frame: pd.DataFrame, key: bytes = KEY) -> Any:
        return PartsEngine(cut(frame, 2**30), key)


class TestInManyPasses(EngineConformance):
    def engine(self, frame: pd.DataFrame, key: bytes = KEY) -> Any:
        return PartsEngine(cut(frame, 900, seed=len(frame)), key)


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
def test_the_integers_are_those_of_one_frame(owned, nobody, by, where, limits, memory, orders):
    """Also those that hashes decide: whose groups and which values count."""
    whole, source = frame(owned, nobody, orders[0]), frame(owned, nobody, orders[1])
    unit = Unit() if limits is None else Unit("add-remove", (ID,), *limits)
    scope = Query((), None if where is None else condition(where), BY[by])
    asked = {*primitives(*BOUNDS[:2]), *([Bids(X)] if by == "bins" else [])}
    if limits is not None:
        asked |= {Spread("rows", 4), Spread("groups", 3)}
    found = PartsEngine(cut(source, memory, orders[0]), KEY), PandasEngine(whole, KEY)
    one, other = (shaken(engine.reduce(scope, asked, unit)) for engine in found)
    assert one == other
    for exprs in ((G,), (G, Y), (X,)):
        (texts, sums), (listed, expected) = (e.occurring(exprs, scope.where, unit) for e in found)
        assert texts == listed
        assert shaken(sums).items() <= shaken(expected).items()


@pytest.mark.parametrize("most", [40, 300])
def test_distinct_values_that_do_not_fit_are_read_by_shares(most, monkeypatch):
    values = np.random.default_rng(1).integers(-300, 300, 900)
    df = frame([[(float(v) / 2, int(v), "a", True)] for v in values])
    monkeypatch.setattr(parts_module, "_PAIR", 2**30 // most)
    monkeypatch.setattr(SIZES, "set_pairs", 1)
    engine = PartsEngine(cut(df, 2**30), KEY)
    asked = {Distincts(X), Distincts(Y)}
    found = engine.reduce(Query(()), asked, Unit())
    assert shaken(found) == shaken(PandasEngine(df, KEY).reduce(Query(()), asked, Unit()))
    assert found[Distincts(Y)].tolist() == [len(set(values.tolist()))]


UNDECODABLE = pa.array([b"\xff", b"a", b"\xff"]).view(pa.string())

# Types ------------------------------------------------------------------------------------------------------


def sources() -> dict[str, Any]:
    """Chunks of one column that a reader could take for different things, and the number of distinct values that they have."""
    when = pd.to_datetime(
        ["2024-01-01 00:00:00.0", "1969-12-31 23:59:59.999999", None], format="ISO8601"
    )
    return {
        "dictionaries of their own": [pa.array(list("ab")).dictionary_encode(), pa.array(list("ba")).dictionary_encode()],
        "texts of two widths": [pa.array(["a", "é"]), pa.array(["é", "b"], pa.large_string())],
        "bytes that are no text": [UNDECODABLE, UNDECODABLE.dictionary_encode()],
        "NaN and null": [pa.array([np.nan, 1.0]), pa.array([None, 1.0])],
        "whole numbers beyond doubles": [pa.array([2**53, 2**53 + 1]), pa.array([2**63 - 1, None])],
        "large unsigned ones": [pa.array([2**64 - 1, 0], pa.uint64()), pa.array([2**63], pa.uint64())],
        "zeros": [pa.array([0.0, -0.0]), pa.array([-0.0])],
        "times": [pa.array(when.as_unit("us"), pa.timestamp("us")), pa.array(when.as_unit("us")[::-1], pa.timestamp("us"))],
        "decimals": [pa.array([Decimal("1.50"), None]), pa.array([Decimal("2.25")])],
        "days": [pa.array([date(2024, 1, 1), None]), pa.array([date(2024, 1, 1)])],
        "yes and no": [pa.array([True, None]), pa.array([False])],
    }  # fmt: skip


class Chunks(TableSource):
    """Chunks as they are, of one type each or not."""

    def __init__(self, chunks):
        self.chunks = chunks
        super().__init__(pa.table({"x": chunks[0]}))
        self._rows = sum(map(len, chunks))

    def _scan(self, names):
        for chunk in self.chunks:
            yield pa.table({"x": chunk}).select(names)


@pytest.mark.parametrize("name", sources())
def test_a_cell_is_the_same_in_whichever_batch_it_is(name):
    chunks = sources()[name]
    source = Chunks(chunks)
    plain = chunks[0].type.value_type if hasattr(chunks[0].type, "value_type") else chunks[0].type
    cells = pa.chunked_array([chunk.cast(plain) for chunk in chunks])
    whole = pd.DataFrame({"x": pd.array(cells, dtype=pd.ArrowDtype(plain))})
    leaf = Column.of(0, "x", source.schema.dtypes.iloc[0])
    known = Column.of(0, "x", whole.dtypes.iloc[0])
    assert leaf.kind == known.kind
    for memory in (400, 2**30):
        source.memory = memory
        for unit in ((), (leaf,)):
            limits = Unit("add-remove", unit, 1, 5) if unit else Unit()
            engines = PartsEngine(source, KEY), PandasEngine(whole, KEY)
            assert shaken(engines[0].reduce(Query(()), {Distincts(leaf)}, limits)) == {
                Distincts(leaf): engines[1]
                .reduce(Query(()), {Distincts(known)}, limits)[Distincts(known)]
                .tolist()
            }
            (texts, sums), (listed, expected) = (
                e.occurring((leaf,), None, limits) for e in engines
            )
            assert texts == listed
            assert shaken(sums)[Persons()] == shaken(expected)[Persons()]
        assert engines[0].people(Unit(people=(leaf,))) == engines[1].people(Unit(people=(known,)))


def test_a_batch_of_another_type_is_an_error_and_none_is_left_out():
    engine = PartsEngine(Chunks([pa.array([1, 2]), pa.array([1.5])]), KEY)
    leaf = Column.of(0, "x", pd.ArrowDtype(pa.int64()))
    with pytest.raises(TypeError, match="another type"):
        engine.reduce(Query(()), {Distincts(leaf)}, Unit())


def test_a_scan_that_ends_early_is_an_error():
    source = Chunks([pa.array([1, 2]), pa.array([3])])
    source._rows = 4
    leaf = Column.of(0, "x", pd.ArrowDtype(pa.int64()))
    for unit in (Unit(), Unit("add-remove", (leaf,), 1, 1)):
        with pytest.raises(ValueError, match="not the same rows"):
            PartsEngine(source, KEY).reduce(
                Query(()), {Trues(ex.compare(">", leaf, ex.constant(0)))}, unit
            )


def test_a_person_is_in_one_part_by_whatever_zero():
    cells = pa.array([0.0, -0.0, 1.5, None, float("nan")] * 40)
    source = Chunks([cells[:70], cells[70:]])
    leaf = Column.of(0, "x", source.schema.dtypes.iloc[0])
    for of in (2, 3, 16):
        parts = [
            pd.concat(
                [f["x"] for f in source.batches([0], SourcePart(i, of, (leaf,)))]
                or [pd.Series(dtype=float)]
            )
            for i in range(of)
        ]
        assert sum(map(len, parts)) == 200
        assert sum((part == 0).any() for part in parts) == 1
        assert sum((part == 1.5).any() for part in parts) == 1
