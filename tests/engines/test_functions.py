"""Functions of numpy: the bits of a row's value are its own, wherever the row stands, and bounds hold where they end."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe import _expr as ex
from dpframe._expr import Expr
from dpframe.engines.functions import numbers as numbers_module
from tests.engines.entries import NUMBERS, PAIRS

NAMES = [*NUMBERS, *PAIRS]
ENDS = [-1e308, -20.5, -1.0, -0.5, -5e-324, 0.0, 5e-324, 0.5, 1.0, 2.0, 709.0, 710.0, 1e308]


def made(name: str, x: Expr) -> Expr:
    return (
        ex.number_function(name, x)
        if name in NUMBERS
        else ex.number_function(name, x, ex.constant(1.5))
    )


@pytest.fixture(scope="module")
def wide() -> Any:
    """Numbers of all sizes in a table whose columns lie across one another in memory."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal(700) * 10.0 ** rng.integers(-8, 8, 700)
    x[rng.integers(0, 700, 60)] = np.nan
    x[:4] = [np.inf, -np.inf, 0.0, -0.0]
    return pd.DataFrame(np.array([x, x[::-1], x]).T, columns=["x", "y", "z"], copy=False)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_depend_on_where_a_row_stands(framed: Any, wide: Any, name: str) -> None:
    f = framed(wide)
    e = made(name, f["x"])
    with np.errstate(all="ignore"):
        whole = f.vector(e).values
        for start, stop in [(0, 1), (1, 2), (3, 700), (5, 12), (13, 14), (17, 417), (699, 700)]:
            part = f.vector(e, slice(start, stop)).values
            assert part.tobytes() == whole[start:stop].tobytes(), (start, stop)
        taken = framed(wide.iloc[::3].reset_index(drop=True))
        assert taken.vector(e).values.tobytes() == np.ascontiguousarray(whole[::3]).tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_bounds_hold_all_values_between_ends(framed: Any, name: str) -> None:
    known = 0
    for low, high in itertools.combinations_with_replacement(ENDS, 2):
        with np.errstate(all="ignore"):
            between = np.clip(np.linspace(low / 2, high / 2, 9) * 2, low, high)
            near = [
                np.nextafter(low, high),
                np.nextafter(high, low),
                *(e for e in ENDS if low <= e <= high),
            ]
            f = framed(pd.DataFrame({"x": [low, high, *between, *near]}))
        e = made(name, f["x"])
        ends = e.bounds({0: (low, high)})
        if ends is None:
            continue
        known += 1
        values = [v for v in f.cells(e) if v is not None]
        assert all(ends[0] <= v <= ends[1] for v in values), (low, high, ends, values)
    assert known or name == "tan"


def test_where_there_is_no_value_there_is_a_null(framed: Any) -> None:
    f = framed(pd.DataFrame({"x": [-1.0, 0.0, np.nan, np.inf]}))
    assert f.cells(ex.number_function("sqrt", f["x"])) == [None, 0.0, None, np.inf]
    assert f.cells(ex.number_function("log", f["x"])) == [None, -np.inf, None, np.inf]
    assert f.cells(ex.number_function("arcsin", f["x"]))[1:] == [0.0, None, None]


def test_a_null_condition_chooses_the_other_side(framed: Any) -> None:
    f = framed(pd.DataFrame({"b": pd.array([True, None, False], dtype="boolean"), "x": [1, 2, 3]}))
    assert f.cells(ex.choose(f["b"], f["x"], -1)) == [1, -1, -1]
    masked = framed(
        pd.DataFrame({"b": pd.arrays.BooleanArray(np.array([True, True]), np.array([False, True]))})
    )
    vector = masked.vectors[0]
    masked.vectors[0] = type(vector)("bool", np.array([True, True]), np.array([False, True]))
    assert masked.cells(ex.choose(masked["b"], 1, 2)) == [1, 2]


def test_a_null_beside_an_infinity_is_null(framed: Any) -> None:
    f = framed(pd.DataFrame({"x": [np.inf, 3.0], "y": [np.nan, 4.0]}))
    assert f.cells(ex.number_function("hypot", f["x"], f["y"])) == [None, 5.0]


def test_what_a_choice_tells_holds_of_both_sides(framed: Any) -> None:
    f = framed(pd.DataFrame({"x": [1.0, np.nan], "i": [3, 4], "b": [True, False]}))
    e = ex.choose(f["b"], f["i"], f["x"])
    assert e.bounds({0: (-9.0, 9.0), 1: (3.0, 4.0)}) == (-9.0, 9.0)
    assert e.nullable
    assert not e.integral
    assert not ex.choose(f["b"], f["i"], 7).nullable
    assert ex.choose(f["b"], f["i"], 7).bounds({1: (3.0, 4.0)}) == (3.0, 7.0)
    assert ex.choose(f["b"], f["i"], None).bounds({1: (3.0, 4.0)}) == (3.0, 4.0)
    assert ex.choose(f["b"], f["i"], None).nullable
    assert ex.number_function("sqrt", f["i"]).nullable


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize("op", ["floor", "ceil", "round"])
def test_a_step_beyond_the_years_of_a_zone_is_null_and_nothing_raises(unit, zone, op):
    """A date that stands for none, the last one of the year 9999, is no other course than any."""
    cells = [
        "2025-03-30T02:30",
        "9999-12-31T23:59:59",
        "0001-01-01T00:00:00",
        "9999-12-20",
        "0001-01-09",
    ]
    moments = (
        pd.Series(np.array(cells, dtype=f"M8[{unit}]")).dt.tz_localize("UTC").dt.tz_convert(zone)
    )
    p = pd.DataFrame({"t": moments}).dp.open(1000)
    for step in ("30D", "7D", "1D", "6h", "1000D"):
        whole = p.assign(u=getattr(p["t"].dt, op)(step))
        assert 1 <= whole.count("u", epsilon=60) <= len(cells)


def test_of_two_zeros_the_smaller_is_the_negative_one(framed: Any) -> None:
    """numpy may take either, by the place of the row."""
    f = framed(pd.DataFrame({"x": [0.0, -0.0, 0.0, -0.0], "y": [0.0, 0.0, -0.0, -0.0]}))
    for name, negative in [
        ("minimum", [1, 2, 3]),
        ("fmin", [1, 2, 3]),
        ("maximum", [3]),
        ("fmax", [3]),
    ]:
        found = f.vector(ex.number_function(name, f["x"], f["y"])).values
        assert np.flatnonzero(np.signbit(found)).tolist() == negative, name


@pytest.mark.parametrize("library", ["numpy", "one that takes the limit"])
def test_a_zero_at_a_limit_keeps_its_sign(framed: Any, monkeypatch: Any, library: str) -> None:
    if library != "numpy":
        own = np.clip
        taken = lambda x, low, high: own(x, low, high) * 1.0 + 0.0  # noqa: E731  # of two zeros the positive one
        monkeypatch.setattr(numbers_module.np, "clip", taken)
    f = framed(pd.DataFrame({"x": [-0.0, 0.0, -1.0, 1.0]}))
    for low, high in [(-0.0, 5.0), (0.0, 5.0), (-5.0, 0.0), (-5.0, -0.0), (None, 0.0), (0.0, None)]:
        found = np.signbit(f.vector(ex.clip(f["x"], low, high)).values)
        assert found[:2].tolist() == [True, False]


@pytest.mark.parametrize("rows", [1, 7, 1023, 1024, 1025, 2049])
def test_every_call_has_one_length_and_one_layout(rows: int) -> None:
    """So that no row is among the last few, which numpy may compute by other code."""
    x, calls = np.arange(rows, dtype=np.float64), []

    def f(*operands: Any, out: Any) -> None:
        calls.append(
            [(a.shape, a.strides, a.ctypes.data % 64) for a in (*operands, out) if np.ndim(a)]
        )
        np.add(*operands, out=out)

    found = numbers_module.compute_alike(f, x, 2.0 * x)
    assert (found == 3.0 * x).all()
    assert {one for call in calls for one in call} == {((numbers_module.LENGTH,), (8,), 0)}
    assert (numbers_module.compute_alike(f, x, np.float64(1.0)) == x + 1.0).all()


@pytest.mark.parametrize("op", ex.ARITHMETIC)
def test_two_constants_have_a_value_in_each_row(framed: Any, op: str) -> None:
    f = framed(pd.DataFrame({"b": [True, False, True], "x": [1.0, 2.0, 3.0]}))
    made = ex.arithmetic(op, ex.constant(7.0), ex.constant(2.0))
    wanted = {"+": 9, "-": 5, "*": 14, "/": 3.5, "//": 3, "%": 1, "**": 49}[op]
    assert f.cells(ex.arithmetic("+", f["x"], made)) == [wanted + 1.0, wanted + 2.0, wanted + 3.0]
