"""Many rows in threads: the same integers and the same codes, however many there are, and nothing is heard of a cell."""

from __future__ import annotations

import threading
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe._cells import columns as engines_columns_module
from dpframe._cells import threads as threads_module
from dpframe._cells.columns import Vector, prepare
from dpframe._groups.unit import Unit
from dpframe._questions.question import Query
from dpframe._sizes import SIZES
from dpframe._statistics.base import Bids
from dpframe.engines import groups as engines_groups_module
from dpframe.engines.pandas import PandasEngine
from tests.engines.conformance import (
    BOUNDS,
    BY,
    KEY,
    EngineConformance,
    X,
    condition,
    frame,
    primitives,
)


def in_threads(patch: pytest.MonkeyPatch, threads: int) -> None:
    """So many threads, for any number of rows."""
    for name, size in {"thread_rows": 1, "threads": threads, "thread_texts": 2}.items():
        patch.setattr(SIZES, name, size)
    patch.setattr(engines_columns_module, "has_repeats", lambda arrow: True)


@pytest.fixture(scope="class")
def three():
    with pytest.MonkeyPatch.context() as patch:
        in_threads(patch, 3)
        yield


@pytest.mark.usefixtures("three")
class TestInThreads(EngineConformance):
    def engine(self, frame: pd.DataFrame, key: bytes = KEY) -> Any:
        return PandasEngine(frame, key)


@pytest.mark.parametrize("where", [None, "x > 1"])
@pytest.mark.parametrize("by", ["nothing", "keys", "bins"])
def test_sums_of_shares_are_those_of_all_rows(where, by, monkeypatch):
    rng = np.random.default_rng(8)
    rows = [
        (rng.choice([None, 0.5, 2.0, 9.0]), int(rng.integers(-9, 9)), "ab"[i % 2], True)
        for i in range(101)
    ]
    df = frame([[row] for row in rows])
    query = Query((), None if where is None else condition(where), BY[by])
    asked = {*primitives(*BOUNDS[:2]), *([Bids(X)] if by == "bins" else [])}
    usual = PandasEngine(df, KEY).reduce(query, asked, Unit())
    in_threads(monkeypatch, 3)
    for few in (0, 2**18):
        monkeypatch.setattr(SIZES, "thread_sums", few)
        found = PandasEngine(df, KEY).reduce(query, asked, Unit())
        assert {p: a.tolist() for p, a in found.items()} == {
            p: a.tolist() for p, a in usual.items()
        }
        assert {a.dtype for a in found.values()} == {np.dtype(np.int64)}


def test_groups_that_there_is_no_room_for_are_made_by_one_thread(monkeypatch):
    """Threads that put others' groups out of what is kept would fail now and then."""
    df = frame([[(0.5, i, "ab"[i % 2], True)] for i in range(50)])
    in_threads(monkeypatch, 5)
    engine, made = PandasEngine(df, KEY), list[int]()
    usual = engine.groups.find_level
    monkeypatch.setattr(
        engine.groups, "find_level", lambda by: made.append(threading.get_ident()) or usual(by)
    )
    engine.table.__dict__["room"] = 0
    engine.reduce(Query((), condition("x > 0"), BY["keys"]), set(primitives(*BOUNDS[:2])), Unit())
    assert {*made} == {threading.get_ident()}


# Texts ------------------------------------------------------------------------------------------------------

cells = (
    st.none()
    | st.sampled_from(["", "a", "A", "a ", "a\x00", "é", "e\u0301", "it's", "a longer text"])
    | st.text(max_size=2)
)


@pytest.mark.parametrize("threads", [1, 2, 5])
@settings(max_examples=40, deadline=None)
@given(texts=st.lists(cells, max_size=30), cuts=st.lists(st.integers(0, 30), max_size=3))
def test_texts_have_the_codes_that_they_have_in_one_thread(threads, texts, cuts):
    pa = pytest.importorskip("pyarrow", reason="texts are kept without Arrow")
    ends = sorted({0, len(texts), *(min(cut, len(texts)) for cut in cuts)})
    chunks = [pa.array(texts[a:b], type=pa.large_string()) for a, b in pairwise(ends)]
    array = pd.array(pa.chunked_array(chunks, type=pa.large_string()), dtype="str")
    usual = prepare(pd.Series(array), "text")
    with pytest.MonkeyPatch.context() as patch:
        in_threads(patch, threads)
        found = prepare(pd.Series(array), "text")
    assert found.values.tolist() == usual.values.tolist()
    assert found.values.dtype == usual.values.dtype
    assert found.categories.tolist() == usual.categories.tolist()


def test_texts_that_are_none_are_told_apart_by_their_bytes(monkeypatch):
    pa = pytest.importorskip("pyarrow", reason="texts are kept without Arrow")
    bytes_of = [b"a", b"\xff", b"a", b"\xfe", b"b", b"\xff"]
    array = pa.Array.from_buffers(
        pa.large_string(), 6, pa.array(bytes_of, type=pa.large_binary()).buffers(), null_count=0
    )
    in_threads(monkeypatch, 2)
    found = prepare(pd.Series(pd.arrays.ArrowStringArray(array)), "text")
    assert found.values.tolist() == [0, 1, 0, 2, 3, 1]


def test_a_sample_tells_whether_texts_occur_again():
    pa = pytest.importorskip("pyarrow", reason="texts are kept without Arrow")
    rows = 20_000
    some = [pa.array([f"key {i % keys}" for i in range(rows)]) for keys in (100, rows)]
    assert [engines_columns_module.has_repeats(one) for one in some] == [True, False]


# Threads ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_pieces_are_all_rows_once_and_results_stand_in_their_order(threads, monkeypatch):
    monkeypatch.setattr(SIZES, "threads", threads)
    for rows in (0, 1, 10, 99):
        pieces = threads_module.shares(rows, 10)
        assert [i for piece in pieces for i in range(piece.start, piece.stop)] == list(range(rows))
        assert len(pieces) == max(1, min(threads, rows // 10))
        assert threads_module.side_by_side(lambda one: one.stop, pieces) == [
            one.stop for one in pieces
        ]


def test_what_the_caller_has_set_holds_in_every_thread():
    """No thread warns of a value where the caller does not."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with np.errstate(all="ignore"):
            found = threads_module.side_by_side(
                lambda x: np.float64(x) / np.float64(0), [1.0, -1.0, 0.0]
            )
    assert [str(x) for x in found] == ["inf", "-inf", "nan"]


def test_an_error_of_a_thread_is_raised():
    with pytest.raises(ZeroDivisionError):
        threads_module.side_by_side(lambda x: 1 // x, [1, 0, 2])


# Bins -------------------------------------------------------------------------------------------------------


def by_bisection(values: Any, edges: Any) -> list[int]:
    """Left-closed, the last one closed, by comparison alone."""
    found = []
    for x in values:
        place = sum(bool(e <= x) for e in edges)
        inside = place <= len(edges) - 1 or x == edges[-1]
        found.append(min(place, len(edges) - 1) if inside and x == x else 0)
    return found


@settings(max_examples=150, deadline=None)
@given(
    low=st.floats(-1e6, 1e6) | st.integers(-9, 9).map(float),
    width=st.sampled_from([0.1, 0.25, 1.0, 7.0, 1e-9, 1e9]) | st.floats(1e-6, 1e6),
    bins=st.integers(1, 60),
    shaken=st.sampled_from([0.0, 1e-12, 1e-7, 1e-3, 0.2]),
    others=st.lists(st.floats(allow_subnormal=True), max_size=8),
    seed=st.integers(0, 99),
)
def test_values_next_to_any_edges_are_in_the_bin_of_comparison(
    low, width, bins, shaken, others, seed
):
    steps = np.arange(bins + 1) + np.random.default_rng(seed).uniform(-shaken, shaken, bins + 1)
    edges = np.unique(low + width * steps)
    if len(edges) < 2:
        return
    between = low + width * np.random.default_rng(seed).uniform(-2, bins + 2, 20)
    beside = [np.nextafter(edges, to) for to in (-np.inf, np.inf)]
    values = np.concatenate(
        [edges, *beside, between, [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308], others]
    )
    found = engines_groups_module.bin_buckets(tuple(edges.tolist()))(Vector("number", values))
    assert found.tolist() == by_bisection(values.tolist(), edges.tolist())


@pytest.mark.parametrize("bins", [254, 255, 256, 257, 2**16 - 1, 2**16])
@pytest.mark.parametrize("low", [0, 1, -300, 10**12, -(10**12)])
def test_as_many_bins_as_a_dtype_numbers_are_told_apart(low, bins):
    """Doubles and whole numbers, at both ends and beyond these, and those with the same low bits."""
    edges = [float(low + i) for i in range(bins + 1)]
    find = engines_groups_module.bin_buckets(tuple(edges))
    ends = [low, low + 1, low + bins - 1]
    for beyond in ([], [254, 255], [-1], [-256], [-(2**16)], [bins], [bins + 1, bins + 256, 2**32]):
        numbers = [*ends, *(low + x for x in beyond)]
        wanted = by_bisection(numbers, edges)
        assert find(Vector("number", np.array(numbers, dtype=np.int64))).tolist() == wanted
        assert find(Vector("number", np.array(numbers, dtype=np.float64))).tolist() == wanted
        halves = [x + 0.5 for x in numbers]
        assert find(Vector("number", np.array(halves))).tolist() == by_bisection(halves, edges)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("bins", [300, 70_000])
def test_negative_numbers_are_in_no_bin_of_their_unsigned_bits(dtype, bins):
    find = engines_groups_module.bin_buckets(tuple(map(float, range(bins + 1))))
    values = np.array([-128, -2, -1, 0, 1, 127], dtype=dtype)
    assert find(Vector("number", values)).tolist() == [0, 0, 0, 1, 2, 128]


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
@pytest.mark.parametrize(
    "edges", [range(11), [0, 1, 2], [-3, -2, -1, 0], [0, 5, 6], [0.5, 1.5, 2.5], [0, 10**7]]
)
def test_whole_numbers_are_in_the_bin_of_comparison(dtype, edges):
    info = np.iinfo(dtype)
    numbers = {*range(max(-5, info.min), 13), info.min, info.min + 1, info.max - 1, info.max, 5, 6}
    find = engines_groups_module.bin_buckets(tuple(map(float, edges)))
    closed = {x for x in numbers if edges[0] <= x <= edges[-1]}
    for some in (numbers, closed, closed - {edges[-1]}, set()):
        values = np.array(sorted(some), dtype=dtype)
        assert find(Vector("number", values)).tolist() == by_bisection(values.tolist(), list(edges))
