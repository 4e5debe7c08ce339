"""What a hostile reviewer found: keys that count for nobody, ids that are not told apart, cells that raise, lost prices."""

from __future__ import annotations

import uuid
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe  # noqa: F401  (the accessor)
from dpframe import BadType
from dpframe._cells.columns import prepare
from dpframe._expr import Column
from dpframe.engines.people import people_of


@pytest.mark.parametrize(
    "ask", [lambda p, w: p.unique("v", **w), lambda p, w: p.groupby("v").size(**w).index]
)
def test_a_key_that_counts_for_nobody_is_never_kept(ask: Any) -> None:
    frame = pd.DataFrame({"v": [f"own {i}" for i in range(50_000)], "x": np.arange(50_000) < 10})
    p = frame.dp.open(1, delta=9e-4, queries=1, because="a large delta, so that much would show")
    found = ask(p.query("x"), {"epsilon": 0.05, "mechanism": "gaussian"})
    assert len(found) <= 1  # of ten values; of all that are in the frame some would show


@pytest.mark.parametrize("accountant", ["tight", "zcdp", "gdp", "rdp"])
def test_values_beyond_the_limit_of_a_person_do_not_show(accountant: str) -> None:
    crowd = pd.DataFrame({"id": np.arange(500), "v": "common"})
    one = pd.DataFrame({"id": 999, "v": [f"own {i}" for i in range(50_000)]})
    p = pd.concat([crowd, one], ignore_index=True).dp.open(
        1, delta=9e-4, unit="id", max_groups=1, accountant=accountant, queries=1
    )
    assert p.explain.unique("v", epsilon=0.05).mechanism == "gaussian threshold"
    found = list(p.unique("v", epsilon=0.05))  # without the guard some 20 of them
    assert sum(v != "common" for v in found) <= 1


def codes(cells: list[Any]) -> list[int]:
    column = pd.Series(cells, dtype=object)
    leaf = Column.of(0, "id", column.dtype)
    return people_of([prepare(column, leaf.kind)], b"12345678").codes.tolist()


def test_equal_numbers_are_one_person_of_whatever_type() -> None:
    one = [Decimal("1"), Decimal("1.00"), 1, 1.0, True, np.float32(1), Decimal("10E-1")]
    assert len(set(codes(one))) == 1
    assert len(set(codes([Decimal("0.5"), 0.5, Decimal("0.50")]))) == 1
    assert len(set(codes([10**40, Decimal(10**40), Decimal("1E+40")]))) == 1
    assert (
        len(
            set(
                codes(
                    [Decimal("0.1"), 0.1, Decimal("1E+999999999999"), Decimal("1E-999999999999"), 0]
                )
            )
        )
        == 5
    )


def test_cells_that_are_no_scalars_are_nobody() -> None:
    found = codes([uuid.UUID(int=1), (1, 2), b"a", "a"])
    assert found[:3] == [-1, -1, -1]
    assert found[3] >= 0


@pytest.mark.parametrize(
    "ids",
    [
        pd.to_timedelta([1, 2], unit="D"),
        pd.period_range("2020", periods=2, freq="M"),
        pd.interval_range(0, 2),
        np.array([1, 2], dtype=np.longdouble),
    ],
)
def test_unit_of_a_dtype_whose_values_are_not_told_apart(ids: Any) -> None:
    with pytest.raises(BadType, match="not told apart"):
        pd.DataFrame({"id": ids, "x": 1}).dp.open(1, unit="id", max_rows=1)


def test_unit_of_arrow() -> None:
    pa = pytest.importorskip("pyarrow")
    for cells, kind in (
        ([b"a", b"b"], pa.binary()),
        ([Decimal(10**19 + 1), Decimal(10**19 + 2)], pa.decimal128(20)),
    ):
        frame = pd.DataFrame({"id": pd.Series(cells, dtype=pd.ArrowDtype(kind)), "x": 1})
        with pytest.raises(BadType, match="not told apart"):
            frame.dp.open(1, unit="id", max_rows=1)


@pytest.mark.parametrize("odd", ["1E+999999999999", "1E-99999999", "Infinity", "0E+99999999"])
def test_no_decimal_makes_a_search_raise(odd: str) -> None:
    frame = pd.DataFrame({"v": pd.Series([Decimal(odd)] + ["a"] * 500, dtype=object)})
    assert list(frame.dp.open(10, delta=1e-4, accountant="pure").unique("v", epsilon=5)) == ["a"]


@pytest.mark.parametrize("dtype", ["arrow", "str"])
def test_no_bytes_make_a_question_raise(dtype: str) -> None:
    pa = pytest.importorskip("pyarrow")
    cells = [b"\xff\xfe", None] + [b"a"] * 500
    encoded = pa.array(cells, type=pa.large_binary())
    text = pa.Array.from_buffers(pa.large_string(), len(cells), encoded.buffers())
    array = (
        pd.arrays.ArrowExtensionArray(text)
        if dtype == "arrow"
        else pd.arrays.ArrowStringArray(text, dtype=pd.StringDtype("pyarrow"))
    )
    frame = pd.DataFrame({"v": pd.Series(array)})
    assert list(frame.dp.open(10, delta=1e-4, accountant="pure").unique("v", epsilon=5)) == ["a"]
    p = pd.DataFrame({"v": pd.Series(array)}).dp.open(
        500, because="the same cells, asked in another session"
    )
    assert p["v"].count(epsilon=90) == 501
    assert p[p["v"] == "a"].count(epsilon=90) == 500
    assert p.value_counts("v", keys=["a"], other="z", epsilon=90).tolist() == [500, 1]


@pytest.mark.parametrize("epsilon", [Decimal("0.1"), Fraction(1, 10), np.float32(0.1)])
def test_a_search_takes_half_of_the_price_however_it_is_typed(epsilon: Any) -> None:
    p = pd.DataFrame({"v": ["a"] * 3000}).dp.open(10, delta=1e-5, queries=1)
    p.groupby("v").size(epsilon=epsilon)
    assert p.budget.fraction < 0.01
