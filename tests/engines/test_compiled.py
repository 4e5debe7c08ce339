"""Compiled kernels: the integers of the engine for frames, bit for bit, in threads and in parts; as Python reads them, too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe._expr import Column
from dpframe._expr._parse import parse
from dpframe._groups.keys import KeyBy, keys_for
from dpframe._groups.unit import Unit
from dpframe._questions.question import Query
from dpframe._sizes import SIZES
from dpframe._statistics.base import Grid, Persons, Powers, Rows, Trues
from dpframe._validate import Bounds
from dpframe.engines import compiled as compiled_module
from dpframe.engines.pandas import PandasEngine
from tests.engines.conformance import KEY, EngineConformance
from tests.engines.python_kernels import load_python_kernels

WAYS = [
    pytest.param("numba", marks=pytest.mark.extras),
    "python",  # numba reads the same functions
]


def of_all_sizes(patch: pytest.MonkeyPatch, way: str) -> None:
    """Kernels for any number of rows, in many parts and small blocks."""
    if way == "numba":
        pytest.importorskip("numba", reason="the extra `fast` is not installed")
    else:
        patch.setattr(compiled_module, "load_kernels", load_python_kernels)
        patch.setattr(compiled_module, "kernels_work", lambda: True)
    sizes = {
        "kernel_rows": 0,
        "thread_texts": 0,
        "people_rows": 4,
        "block": 7,
        "people_thread_rows": 100,
    }
    for name, size in sizes.items():
        patch.setattr(SIZES, name, size)


@pytest.fixture(params=WAYS)
def sizes(request, monkeypatch):
    of_all_sizes(monkeypatch, request.param)


@pytest.fixture(scope="class")
def as_python():
    with pytest.MonkeyPatch.context() as patch:
        of_all_sizes(patch, "python")
        yield


@pytest.fixture(scope="class")
def by_numba():
    with pytest.MonkeyPatch.context() as patch:
        of_all_sizes(patch, "numba")
        yield


@pytest.mark.usefixtures("as_python")
class TestAsPython(EngineConformance):
    def engine(self, frame: pd.DataFrame, key: bytes = KEY) -> Any:
        return PandasEngine(frame, key)


@pytest.mark.extras
@pytest.mark.usefixtures("by_numba")
class TestCompiled(EngineConformance):
    def engine(self, frame: pd.DataFrame, key: bytes = KEY) -> Any:
        return PandasEngine(frame, key)


# Larger frames than anybody draws ---------------------------------------------------------------------------

IDS = {
    "whole": lambda ids: ids,
    "far apart": lambda ids: ids * 10**12,
    "nullable": lambda ids: pd.array(ids, dtype="Int64"),
    "double": lambda ids: np.where(ids % 7 == 3, np.nan, ids + 0.5),
    "text": lambda ids: pd.array([None if i % 11 == 5 else f"p{i}" for i in ids], dtype="str"),
    "category": lambda ids: pd.Categorical([f"p{i}" for i in ids]),
}
CELLS = np.array(
    [0.0, -0.0, 2.0, 0.5, np.inf, -np.inf, 1e300, 5e-324, np.nan, 4.999999999999999, -3.0]
)
GROUPS = [f"group {i}" for i in range(60)]


def crowd(ids: str, rows: int, people: int, groups: int, seed: int) -> pd.DataFrame:
    """Half of the rows are those of three people."""
    rng = np.random.default_rng(seed)
    whose = np.where(
        rng.random(rows) < 0.5, rng.integers(0, 3, rows), rng.integers(0, people, rows)
    )
    values = np.where(rng.random(rows) < 0.2, rng.choice(CELLS, rows), rng.normal(1, 4, rows))
    text = pd.array(
        [GROUPS[i] if i < groups else None for i in rng.integers(0, groups + 1, rows)], dtype="str"
    )
    return pd.DataFrame(
        {"id": IDS[ids](whose), "g": text, "x": values, "y": rng.integers(-9, 9, rows)}
    )


def leaves(df: pd.DataFrame) -> dict[Any, Column]:
    return {name: Column.of(i, name, dtype) for i, (name, dtype) in enumerate(df.dtypes.items())}


def asked(df: pd.DataFrame) -> set[Any]:
    known = leaves(df)
    bounds = Bounds(-3.0, 5.0)
    return {
        Rows(),
        Persons(),
        Trues(parse("x > 1", known, {}.__getitem__).expr),
        Powers(known["x"], None, 0),
        *(Powers(known["x"], Grid.for_width(bounds, 31 // d), d) for d in (1, 2, 3)),
        Powers(known["y"], Grid.for_width(Bounds(2.0, 2.0), 31), 1),
    }


def both(df: pd.DataFrame, ask: Any) -> tuple[Any, Any]:
    """What is found with the kernels and without."""
    with pytest.MonkeyPatch.context() as patch:
        fast = ask(PandasEngine(df, KEY))
        patch.setattr(SIZES, "kernel_rows", len(df) + 1)
        return fast, ask(PandasEngine(df, KEY))


def same(one: Any, other: Any) -> bool:
    return set(one) == set(other) and all(
        one[p].dtype == other[p].dtype and np.array_equal(one[p], other[p]) for p in one
    )


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("where", [None, "x > 0 or y == 2"])
@pytest.mark.parametrize("limits", [(1, 1), (5, 3), (2, 40), (10**6, 60)])
def test_people_count_as_they_do_without_kernels(sizes, ids, where, limits):
    df = crowd(ids, 1500, 300, 60, 1)
    known = leaves(df)
    condition = None if where is None else parse(where, known, {}.__getitem__).expr
    unit = Unit("add-remove", (known["id"],), *limits)
    for by in ((), (KeyBy(known["g"], keys_for(GROUPS, known["g"], "g")),)):
        query = Query((), condition, by)
        fast, plain = both(df, lambda e, query=query: e.reduce(query, asked(df), unit))
        assert same(fast, plain)


@pytest.mark.parametrize("ids", ["whole", "text"])
def test_groups_that_nobody_listed_are_chosen_as_without_kernels(sizes, ids):
    df = crowd(ids, 1500, 40, 60, 2)
    known = leaves(df)
    unit = Unit("add-remove", (known["id"],), 2, 3)
    primitives = {p for p in asked(df) if not isinstance(p, Trues)}
    (texts, fast), (listed, plain) = both(
        df, lambda e: e.occurring((known["g"],), None, unit, primitives)
    )
    assert texts == listed
    assert same(fast, plain)


def test_the_order_of_rows_changes_nothing_in_any_number_of_threads(sizes, monkeypatch):
    df = crowd("text", 1000, 300, 30, 3)
    known = leaves(df)
    by = (KeyBy(known["g"], keys_for(GROUPS[:30], known["g"], "g")),)
    query, unit = Query((), None, by), Unit("add-remove", (known["id"],), 2, 3)
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(SIZES, "threads", threads)
        some = df.sample(frac=1, random_state=threads).reset_index(drop=True)
        found.append(PandasEngine(some, KEY).reduce(query, asked(df), unit))
    assert same(found[0], found[1])
    assert same(found[0], found[2])


def test_values_at_both_ends_of_the_widest_grid(sizes):
    """The largest value in every row of somebody, and in so many that rounding leaves fewer; a grid without room in 32 bits."""
    values = [5.0] * 500 + [-5.0] * 500 + [5.0] * 230 + [np.nan] * 270
    df = pd.DataFrame({"id": np.repeat([1, 2, 3], 500), "x": values})
    known = leaves(df)
    wide = [Grid(Bounds(-5.0, 5.0), k) for k in (27, 28)]
    assert [grid.width > compiled_module.WIDEST for grid in wide] == [False, True]
    primitives = {Powers(known["x"], grid, 1) for grid in wide}
    for limits in ((3, 1), (10**6, 1)):
        unit = Unit("add-remove", (known["id"],), *limits)
        fast, plain = both(df, lambda e, unit=unit: e.reduce(Query(()), primitives, unit))
        assert same(fast, plain)


@pytest.fixture
def untried():
    """As if no kernel had been asked for yet."""
    tried = compiled_module.load_kernels, compiled_module.kernels_work
    for one in tried:
        one.cache_clear()
    yield
    for one in tried:
        one.cache_clear()


def test_small_frames_and_those_without_numba_need_no_kernels(untried, monkeypatch):
    assert not compiled_module.available(SIZES.kernel_rows - 1)
    monkeypatch.setattr(compiled_module, "find_spec", lambda name: None)
    assert not compiled_module.available(10**9)


def wrong_kernels() -> Any:
    right = load_python_kernels()
    return SimpleNamespace(**{**vars(right), "add_people": lambda *words: None})


KERNELS = {
    "wrong": (wrong_kernels, False),
    "nothing": (lambda: exec("raise RuntimeError"), False),
    "right": (load_python_kernels, True),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_that_do_not_compile_or_are_wrong_are_not_used(name, untried, monkeypatch):
    load, right = KERNELS[name]
    monkeypatch.setattr(compiled_module, "find_spec", lambda name: True)
    monkeypatch.setattr(compiled_module, "load_kernels", load)
    assert compiled_module.available(10**9) is right
    compiled_module.kernels_work.cache_clear()
    monkeypatch.undo()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("bad", [2_000, 10**12, -(10**15)])
def test_a_cell_that_was_written_to_behind_pandas_is_nobodys(way, bad, monkeypatch):
    """Whole numbers from 0 on are their own codes: the column itself. No memory but that of the sums is written to."""
    of_all_sizes(monkeypatch, way)
    df = crowd("whole", 1_000, 200, 3, 4)
    df["id"] = np.arange(1_000) % 200
    known, engine = leaves(df), PandasEngine(df, KEY)
    query = Query((), None, (KeyBy(known["g"], keys_for(GROUPS[:3], known["g"], "g")),))
    unit = Unit("add-remove", (known["id"],), 5, 3)
    whole = engine.reduce(query, {Rows()}, unit)[Rows()].sum()
    df["id"].array[0] = bad  # which copy-on-write does not see
    assert 0 <= whole - engine.reduce(query, {Rows()}, unit)[Rows()].sum() <= 1


def one_group_more(choice: Any) -> Any:
    return choice._replace(max_groups=choice.max_groups + 1)


def another_draw(choice: Any) -> Any:
    return choice._replace(last_constant=choice.last_constant + 1)


# Changes of the arguments: first, last, shift, placed, powers, choice, limit, sums.
BROKEN = {
    "a group too many": lambda words: (*words[:5], one_group_more(words[5]), *words[6:]),
    "a row too many": lambda words: (*words[:6], words[6] + 1, *words[7:]),
    "another draw": lambda words: (*words[:5], another_draw(words[5]), *words[6:]),
    "a part forgotten": lambda words: (words[0], words[1] - 1, *words[2:]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_kernel_is_seen(name, monkeypatch):
    of_all_sizes(monkeypatch, "python")
    right = load_python_kernels()
    broken = lambda *words: right.add_people(*BROKEN[name](words))  # noqa: E731
    kernels = SimpleNamespace(**{**vars(right), "add_people": broken})
    monkeypatch.setattr(compiled_module, "load_kernels", lambda: kernels)
    with pytest.raises(AssertionError):
        test_people_count_as_they_do_without_kernels(None, "whole", None, (5, 3))
