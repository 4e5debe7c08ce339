"""A row's value is a function of the row: equal bits at every place among 1 to 130 rows, in every block and in every thread."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe import _expr as ex
from dpframe._cells.columns import Vector
from dpframe._expr import Column, Expr
from dpframe._groups.keys import KeyBy, keys_for
from dpframe._groups.unit import Unit
from dpframe._sizes import set_sizes
from dpframe._statistics.base import Grid, Powers, Trues
from dpframe._statistics.engine import Scope
from dpframe._validate import Bounds
from dpframe.engines.expressions import evaluate, predicate
from dpframe.engines.functions import numbers as numbers_module
from dpframe.engines.pandas import PandasEngine
from tests.engines import examples
from tests.engines.conformance import KEY
from tests.engines.entries import NUMBERS, PAIRS
from tests.engines.test_compiled import of_all_sizes

EVERY = range(1, 131)
FEW = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 127, 129, 130)


@pytest.fixture(scope="module")
def nasty(framed: Any) -> Any:
    found = framed(examples.nasty_frame())
    found.own = examples.shared_out(found.columns)
    return found


def test_every_function_has_an_example() -> None:
    assert examples.missing() == []


def bits(v: Vector) -> np.ndarray[Any, Any]:
    """What a row's value is, to the bit, as an integer or a text; a null is a null, however it is stored."""
    if v.categories is not None:
        known = np.array([f"{type(c).__name__} {c!r}" for c in v.categories] + [""], dtype=object)
        found = known[v.values]
    elif v.values.dtype.kind == "f":
        found = (v.values.astype(np.float64)).view(np.int64).astype(object)
    else:
        values = v.values.view(np.int64) if v.values.dtype.kind in "mM" else v.values
        found = values.astype(object)
    null = v.nulls()
    if null is not None:
        found[null] = None
    return found


def windows(rows: int, sizes: Any, seed: int) -> Iterator[slice]:
    """All rows in windows of each size, from another row on for each."""
    rng = np.random.default_rng(seed)
    for size in sizes:
        first = int(rng.integers(size))
        cuts = [0, *range(first or size, rows, size), rows]
        yield from (slice(a, b) for a, b in itertools.pairwise(cuts) if a < b)


def check_places(nasty: Any, chosen: dict[Expr, str]) -> None:
    """Compare the value of every row among all rows with its value in windows of few rows."""
    n = len(nasty.frame)
    for seed, (e, text) in enumerate(chosen.items()):
        memo: dict[Any, Any] = {}
        names = {c.name for c in e.columns()}
        sizes = EVERY if names == {"x", "y"} else FEW if names <= {"x", "y"} else FEW[seed % 4 :: 4]
        whole = evaluate(e, nasty.leaf, slice(0, n), memo)
        wanted = bits(whole)
        for rows in windows(n, sizes, seed):
            part = evaluate(e, nasty.leaf, rows, memo)
            assert part.values.dtype == whole.values.dtype or part.categories is not None, text
            assert (bits(part) == wanted[rows]).all(), (text, rows)


@pytest.mark.parametrize("registry", examples.REGISTRIES)
def test_a_value_is_equal_at_every_place(nasty: Any, registry: str) -> None:
    check_places(nasty, nasty.own[registry])


@pytest.mark.parametrize("name", ["fmin", "fmax"])
def test_the_lesser_and_the_greater_of_two_zeros_are_equal_at_every_place(
    nasty: Any, name: str
) -> None:
    """numpy takes either of two zeros, by the place of the row."""
    chosen = {
        e: text
        for e, text in nasty.own["catalogue"].items()
        if text.startswith(f"np.{name}:") and {c.name for c in e.columns()} <= {"x", "y"}
    }
    assert len(chosen) > 5
    check_places(nasty, chosen)


@pytest.mark.parametrize("registry", ["nodes", "catalogue", "methods"])
def test_a_value_is_equal_in_every_other_table(framed: Any, nasty: Any, registry: str) -> None:
    """Dictionaries hold other texts there, in another order."""
    n, rng = len(nasty.frame), np.random.default_rng(7)
    known = examples.examples(registry, nasty.columns)
    wanted = {e: bits(evaluate(e, nasty.leaf, slice(0, n), {})) for e in known}
    for size in (1, 2, 9, 130):
        places = rng.choice(n, size, replace=False)
        other = framed(nasty.frame.iloc[places].reset_index(drop=True))
        for e, text in known.items():
            assert (bits(other.vector(e)) == wanted[e][places]).all(), (text, places)


def test_a_neighbour_changes_no_value(framed: Any) -> None:
    """One number among others that are all alike: what computes eight at once sees one odd lane among each of them."""
    cells = np.array(examples.FLOATS)
    for e_of in [examples.REGISTRIES["catalogue"][1][f"np.{n}"] for n in (*NUMBERS, *PAIRS)]:
        alone = None
        for other in (1.0, 1e22, np.nan, -0.0):
            spread = np.full(len(cells) * 8, other)
            spread[::8] = cells
            columns = dict.fromkeys(
                ("x", "y", "f32", "f16", "i8", "i64", "u64", "b", "masked", "flag", "dec"), spread
            )
            f = framed(pd.DataFrame(columns))
            found = bits(f.vector(e_of[0](f.columns)))[::8]
            alone = found if alone is None else alone
            assert (found == alone).all(), (str(e_of[0](f.columns)), other)


# ---- sums: blocks, threads and kernels ----------------------------------------------------------------------

SIZES = [(1, 1), (7, 3), (64, 8), (130, 2)]  # of a block, and threads


def asked(e: Expr) -> Any:
    """What is summed of an expression, so that each bit of its values that can show does."""
    if e.kind == "bool":
        return Trues(e)
    seen = ex.arithmetic("/", ex.constant(1.0), e)  # a zero has a sign
    return Powers(seen, Grid.for_width(Bounds(-1.5, 1.5), 31), 1)


def totals(frame: pd.DataFrame, known: list[Any], way: str = "rows") -> list[list[int]]:
    """The sums of rows, of rows by group, or of people by group, of whom some have more rows than count."""
    columns = {
        name: Column.of(i, name, frame.dtypes.iloc[i]) for i, name in enumerate(frame.columns)
    }
    by = (KeyBy(columns["i8"], keys_for([0, 1, -1, 7], columns["i8"], "i8")),)
    scope = Scope() if way == "rows" else Scope(None, by)
    unit = Unit("add-remove", (columns["i64"],), 3, 2) if way == "people" else Unit()
    found = PandasEngine(frame, KEY).reduce(scope, set(known), unit)
    return [np.asarray(found[p]).ravel().tolist() for p in known]


def summed(nasty: Any) -> list[Any]:
    found = {
        asked(e): None
        for registry in ("catalogue", "arithmetic", "methods", "ufuncs")
        for e in examples.examples(registry, nasty.columns)
        if e.kind in ("number", "bool")
    }
    return list(found)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(
    "kernels", ["numpy", "python", pytest.param("numba", marks=pytest.mark.extras)]
)
@pytest.mark.parametrize("way", ["rows", "groups", "people"])
def test_sums_do_not_depend_on_blocks_threads_and_kernels(
    nasty, size, kernels, way, monkeypatch
) -> None:
    known = summed(nasty)
    known = known if way == "rows" and size != (1, 1) else known[SIZES.index(size) :: 4]
    frame = nasty.frame.iloc[::3].reset_index(drop=True)
    wanted = totals(frame, known, way)
    block, threads = size
    if kernels != "numpy":
        of_all_sizes(monkeypatch, kernels)
    monkeypatch.setattr(numbers_module, "LENGTH", 64)
    with set_sizes(sum_block=block, thread_rows=5, threads=threads):
        for one, found, right in zip(known, totals(frame, known, way), wanted, strict=True):
            assert found == right, one


def test_a_row_moves_sums_by_its_own_value_alone(nasty) -> None:
    """On the commit before, one row less moved a count of others by up to six."""
    with set_sizes(thread_rows=20, threads=3):
        check_sums(nasty)


def check_sums(nasty) -> None:
    """Assert that a row moves sums by what it has alone, at the first place, in the middle and at the last one."""
    known, rng = summed(nasty), np.random.default_rng(11)
    for n in (9, 64, 130):
        frame = nasty.frame.iloc[rng.choice(len(nasty.frame), n, replace=False)].reset_index(
            drop=True
        )
        whole = totals(frame, known)
        for place in (0, n // 2, n - 1):
            rest = totals(frame.drop(index=place).reset_index(drop=True), known)
            own = totals(frame.iloc[[place]].reset_index(drop=True), known)
            for one, a, b, c in zip(known, whole, rest, own, strict=True):
                assert a == [x + y for x, y in zip(b, c, strict=True)], (one, n, place)


def test_conditions_are_the_same_at_every_place(nasty) -> None:
    n = len(nasty.frame)
    for e in (e for e in examples.examples("nodes", nasty.columns) if e.kind == "bool"):
        memo: dict[Any, Any] = {}
        wanted = predicate(e, nasty.leaf, slice(0, n), memo)
        for rows in windows(n, FEW[::4], 3):
            assert (predicate(e, nasty.leaf, rows, memo) == wanted[rows]).all(), str(e)


def test_a_function_that_looks_at_the_place_is_seen(nasty, monkeypatch) -> None:
    """The twin: of two zeros the last rows take another one, as numpy's vector code and its plain code did."""

    def broken(x: Any, y: Any) -> Any:
        last = np.arange(len(x)) >= len(x) // 8 * 8
        return np.where((x == 0) & (y == 0), np.where(last, x, y), np.fmin(x, y))

    op = replace(ex.OPS["np.fmin"], value=broken)
    monkeypatch.setitem(ex.OPS, op.name, op)
    with pytest.raises(AssertionError, match="fmin"):
        test_a_value_is_equal_at_every_place(nasty, "catalogue")
    with pytest.raises(AssertionError, match="fmin"):
        test_a_row_moves_sums_by_its_own_value_alone(nasty)
