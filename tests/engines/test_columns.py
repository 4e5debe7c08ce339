"""Columns of every dtype as plain arrays, with one null rule and no code of the cells."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpframe._cells.columns import UNMATCHED, Vector, plain, prepare
from dpframe._expr import Column, kind_of
from dpframe._groups.keys import KeyBy, keys_for
from dpframe._plans.aggregates import Output
from dpframe._questions.question import Query
from dpframe._statistics.base import Grid, Powers
from dpframe._validate import Bounds
from dpframe.engines.pandas import PandasEngine


def vector(values: Any, dtype: Any = None) -> Vector:
    series = pd.Series(values, dtype=dtype)
    return prepare(series, kind_of(series.dtype))


def arrow(array: Any) -> Vector:
    series = pd.Series(pd.arrays.ArrowExtensionArray(array))
    return prepare(series, kind_of(series.dtype))


def cells(v: Vector) -> list[Any]:
    """What the vector holds, with None for null."""
    values = v.values.tolist() if v.categories is None else [v.categories[c] for c in v.values]
    null = v.nulls()
    return values if null is None else [None if n else x for x, n in zip(values, null, strict=True)]


class Hostile:
    """Every question about it is an accident."""

    def _fail(self, *_: Any) -> Any:
        raise RuntimeError("a cell's own code ran")

    __eq__ = __ne__ = __lt__ = __hash__ = __str__ = __repr__ = __bool__ = __len__ = __float__ = (
        __iter__
    ) = _fail


class HostileText(str):
    def __hash__(self) -> int:
        raise RuntimeError("a cell's own code ran")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("a cell's own code ran")


class HostileMeta(type):
    def __hash__(cls) -> int:
        raise RuntimeError("a type's own code ran")

    def __eq__(cls, other: object) -> bool:
        raise RuntimeError("a type's own code ran")


class HostileType(metaclass=HostileMeta):
    pass


class HostileZone(dt.tzinfo):
    def utcoffset(self, when: Any) -> Any:
        raise RuntimeError("a zone's own code ran")


NULLS = [
    None,
    np.nan,
    pd.NA,
    pd.NaT,
    np.float32("nan"),
    np.datetime64("NaT"),
    np.timedelta64("NaT"),
    Decimal("NaN"),
]


@pytest.mark.parametrize(
    "dtype", ["Int8", "UInt64", "Float32", "int16[pyarrow]", "double[pyarrow]"]
)
def test_masked_and_arrow_numbers_have_one_kind_of_null(dtype: str) -> None:
    assert cells(vector([1, None, 3], dtype)) == [1, None, 3]


def test_nan_and_null_of_arrow_floats_are_both_null() -> None:
    assert cells(arrow(pa.array([1.5, None, float("nan")]))) == [1.5, None, None]


def test_arrow_integers_with_nulls_stay_exact() -> None:
    assert cells(arrow(pa.array([2**63 - 1, None]))) == [2**63 - 1, None]


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float64", "float32"])
def test_numpy_columns_are_not_copied(dtype: str) -> None:
    series = pd.Series([0, 1, 1], dtype=dtype)
    assert np.shares_memory(prepare(series, kind_of(series.dtype)).values, series.to_numpy())


def test_categorical_codes_are_not_copied() -> None:
    series = pd.Series(["a", None, "b"], dtype="category")
    assert np.shares_memory(prepare(series, "text").values, np.asarray(series.array.codes))


@pytest.mark.parametrize("dtype", [">i4", ">f8", np.longdouble])
def test_odd_numpy_numbers_become_native(dtype: Any) -> None:
    v = vector(np.array([1, 2]).astype(dtype))
    assert v.values.dtype.isnative
    assert v.values.dtype.itemsize <= 8
    assert cells(v) == [1, 2]


def test_decimals_become_doubles() -> None:
    wide = [Decimal("1e20"), None, Decimal("-0.5")]
    assert cells(arrow(pa.array(wide, pa.decimal128(38, 2)))) == [1e20, None, -0.5]
    assert cells(arrow(pa.array([Decimal(9)], pa.decimal256(76, 2)))) == [9.0]


def test_sparse_columns_are_densified() -> None:
    assert cells(vector(pd.arrays.SparseArray([1, 0, 2]))) == [1, 0, 2]
    assert cells(vector(pd.arrays.SparseArray([1.0, np.nan]))) == [1, None]
    assert cells(vector(pd.arrays.SparseArray([True, False]))) == [True, False]


@pytest.mark.parametrize("dtype", ["boolean", "bool[pyarrow]"])
def test_nullable_bools_keep_their_mask(dtype: str) -> None:
    assert cells(vector([True, None, False], dtype)) == [True, None, False]


@pytest.mark.parametrize(
    "dtype",
    [
        "str",
        "string",
        "string[python]",
        "string[pyarrow]",
        "category",
        "large_string[pyarrow]",
        object,
    ],
)
def test_texts_are_codes_into_a_dictionary(dtype: Any) -> None:
    if dtype == "large_string[pyarrow]":
        dtype = pd.ArrowDtype(pa.large_string())
    v = vector(["a", None, "b", "a"], dtype)
    assert v.values.dtype == np.int8
    assert cells(v) == ["a", None, "b", "a"]


def test_arrow_dictionaries_are_read_as_what_they_stand_for() -> None:
    chunks = pa.chunked_array(
        [pa.array(["a", "b", None]).dictionary_encode(), pa.array(["b"]).dictionary_encode()]
    )
    assert cells(arrow(chunks)) == ["a", "b", None, "b"]
    assert cells(arrow(pa.array([1, None]).dictionary_encode())) == [1, None]


def test_many_categories_get_wider_codes() -> None:
    v = vector([str(i) for i in range(200)])
    assert v.values.dtype == np.int16
    assert cells(v) == [str(i) for i in range(200)]


def test_times_of_every_unit_and_zone_are_utc_instants() -> None:
    berlin = (
        pd.Series(["2024-07-01 12:00", None])
        .astype("datetime64[s]")
        .dt.tz_localize("Europe/Berlin")
    )
    v = prepare(berlin, "time")
    assert v.values.dtype == "M8[s]"
    assert str(v.values[0]) == "2024-07-01T10:00:00"
    nulls = v.nulls()
    assert nulls is not None
    assert nulls.tolist() == [False, True]
    zoned = pa.array([0, None], pa.timestamp("ms", tz="Asia/Tokyo"))
    assert arrow(zoned).values.astype("i8").tolist() == [0, np.iinfo("i8").min]


def test_arrow_dates_beyond_nanoseconds_are_read() -> None:
    v = arrow(pa.array([dt.date(9999, 12, 31), None]))
    assert str(v.values[0]) == "9999-12-31T00:00:00"
    assert np.isnat(v.values[1])
    assert (
        str(arrow(pa.array([dt.date(1, 1, 1)], pa.date64())).values[0]) == "0001-01-01T00:00:00.000"
    )


def test_other_columns_have_nulls_only() -> None:
    for v in (vector(pd.PeriodIndex(["2024-01", None], freq="M")), arrow(pa.array([[1], None]))):
        assert v.null is not None
        assert v.null.tolist() == [False, True]


def test_durations_are_ticks_of_every_unit() -> None:
    for v in (
        vector(pd.to_timedelta([1, None], unit="s")),
        arrow(pa.array([dt.timedelta(seconds=1), None], pa.duration("ms"))),
        vector(pd.Series([1, None], dtype="m8[s]")),
    ):
        assert v.kind == "duration"
        assert v.values.dtype.kind == "m"
        assert v.values[0] == np.timedelta64(1, "s")
        nulls = v.nulls()
        assert nulls is not None
        assert nulls.tolist() == [False, True]


def test_every_null_is_one_thing_in_object_columns() -> None:
    assert cells(vector(["x", *NULLS], object)) == ["x"] + [None] * len(NULLS)


def test_cells_that_are_no_scalars_are_one_category_and_run_no_code() -> None:
    odd = [
        [1],
        {"a": 1},
        {1},
        (1,),
        b"a",
        Hostile(),
        HostileText("x"),
        HostileType(),
        np.array([1]),
        len,
        1j,
        10**5000,
    ]
    zone = dt.datetime(2024, 1, 1, tzinfo=HostileZone())
    column: Any = np.empty(len(odd) + 2, dtype=object)
    column[:-2], column[-2], column[-1] = odd, zone, "x"
    found = cells(vector(column))
    assert all(c is UNMATCHED for c in found[:-1])
    assert found[-1] == "x"


def test_numbers_of_different_types_stay_apart_whatever_came_first() -> None:
    values = [1, 1.0, True, Decimal("1"), Decimal("1.0")]
    for order in (values, values[::-1]):
        found = cells(vector(order, object))
        assert [(type(c), str(c)) for c in found] == [(type(c), str(c)) for c in order]


def test_negative_zero_is_zero() -> None:
    assert [str(c) for c in cells(vector([0.0, -0.0, "x"], object))] == ["0.0", "0.0", "x"]
    assert [str(c) for c in cells(vector([-0.0, 0.0, 1], object))] == ["0.0", "0.0", "1"]


def test_numpy_scalars_become_pythons() -> None:
    given = [
        np.int8(1),
        np.uint64(2),
        np.float32(0.5),
        np.longdouble(2),
        np.bool_(True),
        np.str_("a"),
    ]
    found = [plain(g) for g in given]
    assert found == [1, 2, 0.5, 2.0, True, "a"]
    assert [type(f) for f in found] == [int, int, float, float, bool, str]


@pytest.mark.parametrize("by", [False, True])
def test_a_vector_with_a_mask_and_nan_is_added_up_without_either(by):
    """Whatever way a null is stored in, none is a value: of the sums, of the squares, and of their counts."""
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "g": [1, 1, 2, 2]})
    x, g = (Column.of(i, name, frame.dtypes.iloc[i]) for i, name in enumerate(frame))
    engine = PandasEngine(frame)
    engine.table._columns[0] = Vector(
        "number", np.array([1.0, np.nan, 3.0, 4.0]), np.array([0, 0, 1, 0], dtype=bool)
    )
    powers = Powers(x, Grid(Bounds(0.0, 4.0), 0), 2)
    groups = (KeyBy(g, keys_for([1, 2], g, "g")),) if by else ()
    found = engine.reduce(Query((Output("n", "size"),), None, groups), {powers})[powers]
    assert found.T.tolist() == ([[1, 1, 1], [1, 4, 16]] if by else [[2, 5, 17]])


@pytest.mark.parametrize(
    "made",
    [
        {
            "x": pd.arrays.FloatingArray(
                np.array([1.0, np.nan, 3.0, 5.0]), np.array([0, 0, 1, 0], dtype=bool)
            )
        },
        {
            "x": pd.array(
                pa.array([1.0, float("nan"), None, 5.0]), dtype=pd.ArrowDtype(pa.float64())
            )
        },
        {
            "i": pd.array([1, 0, None, 10], dtype="Int64"),
            "j": pd.array([1, 0, 1, 2], dtype="Int64"),
        },
    ],
    ids=["nullable", "arrow", "a quotient"],
)
def test_nan_beside_a_mask_is_null_wherever_it_is_added_up(made):
    """A column may hold both: null under its mask, and NaN among its values."""
    p = pd.DataFrame({**made, "g": list("aabb")}).dp.open(1000, keys={"g": ["a", "b"]})
    p = p.assign(x="i / j") if "i" in made else p
    words = {"bounds": (0, 8), "epsilon": 200}
    assert p.count("x", epsilon=100) == 2
    assert p.sum("x", **words) == pytest.approx(6, abs=0.5)
    assert p.var("x", **words) == pytest.approx(8, abs=1)
    assert p.groupby("g")["x"].sum(**words).tolist() == pytest.approx([1, 5], abs=0.5)


def test_dates_and_datetimes_of_object_columns_become_timestamps() -> None:
    assert plain(dt.date(2024, 1, 2)) == pd.Timestamp("2024-01-02")
    assert plain(dt.datetime(2024, 1, 2, tzinfo=dt.UTC)) == pd.Timestamp("2024-01-02", tz="UTC")
    assert plain(np.datetime64("2024-01-02")) == pd.Timestamp("2024-01-02")


def test_categoricals_of_other_things_keep_their_values() -> None:
    assert cells(vector([3, None], "category")) == [3, None]
    assert cells(vector(pd.cut([1, 2], [0, 1, 2]))) == [pd.Interval(0, 1), pd.Interval(1, 2)]
    assert cells(vector(pd.Categorical([(1, 2)]))) == [UNMATCHED]


@pytest.mark.parametrize(
    "dtype", [object, "str", "category", "float64", "Int64", "M8[ns]", "boolean"]
)
def test_empty_columns_are_fine(dtype: Any) -> None:
    assert len(vector([], dtype)) == 0
