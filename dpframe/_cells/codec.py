"""The codec of keys: the one place where a value that somebody lists meets the cells of a column.

Keys that are listed, found, combined or chosen among, ``isin``, ``map``, ``==`` and the key columns
of ``merge`` all ask here. Two values are equal as Python's ``==`` has it, exactly, whatever dtype
holds them:

================================
==================================================================================== whole numbers,
doubles, decimals  as numbers, without rounding: 1, 1.0 and Decimal("1.00") are equal. 2**53 + 1 is
no
                                  double and equals none. Cells of float16 and float32 are the
                                  doubles that they stand for; those of Arrow's decimals, and of
                                  floats wider than a double, are the nearest
0.0 and -0.0                      are equal None, NaN, NaT, NA, Arrow's null  are one thing,
whatever the bits of a NaN. It equals a null that is listed, and no value True and 1
are two where one column can hold both (objects, categories). A column of numbers, or of
                                  bools, is compared by number
moments                           as moments, whatever their unit and zone; with a zone and without
are never equal intervals                         by ends and the closed side texts
by their characters, with NULs and blanks at the end. Bytes that are no UTF-8 are halves of
                                  characters, which no key has
bytes, lists, all other objects   equal nothing, themselves included: none of their code runs
================================  ====================================================================================

*Formal guarantee.* The place at which a cell is found is a function of that cell, its dtype and the
list. No cell makes this raise. numpy chooses no dtype for a list: each value is checked for whether
the dtype of the column can hold it as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe import _pandas
from dpframe._cells.columns import UNMATCHED, Vector, objects
from dpframe._expr import NO_KEYS
from dpframe._sizes import SIZES
from dpframe._types import Array, Index

Buckets = NDArray[Any]  # 0: nothing that is listed
Finder = Callable[[Vector], Buckets]

TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # per second
_INT64 = np.iinfo(np.int64)


# ---- forms: values that are equal have one ---------------------------------------------------------------


def form_of(value: Any) -> Hashable:
    """Return a plain scalar in a form that equal scalars share, as a key of a dict.

    Two scalars have one form if they are equal, by the table in the docstring of this module. The
    scalar is not null.
    """
    if type(value) is bool:
        return bool, value
    if type(value) in (pd.Timestamp, date):
        ticks, unit = ticks_of(pd.Timestamp(value))
        return _moment(ticks, unit, getattr(value, "tz", None) is not None)
    return value  # type: ignore[no-any-return]  # of a type whose equality is Python's own, or UNMATCHED


def _moment(ticks: int, unit: str, zoned: bool) -> Hashable:
    return pd.Timestamp, zoned, ticks * (TICKS["ns"] // TICKS[unit])


@np.errstate(all="ignore")
def forms_of(vector: Vector) -> list[Hashable]:
    """Return the distinct cells of a column, each in the form that equal cells share.

    Nulls and cells that equal nothing have no form. `form_of` defines the form of a cell.
    """
    if vector.categories is not None:
        forms = (
            form_of(c) for c in vector.categories.tolist() if c is not None and c is not UNMATCHED
        )
        return list(dict.fromkeys(forms))
    if vector.kind in NO_KEYS:
        return []
    null = vector.nulls()
    values = np.unique(vector.values if null is None else vector.values[~null])
    if vector.kind == "time":
        return [_moment(t, unit_of(values), False) for t in values.astype(np.int64).tolist()]
    return [form_of(v) for v in values.tolist()]


def ticks_of(moment: pd.Timestamp | pd.Timedelta) -> tuple[int, str]:
    """Return a moment or a duration as its number of ticks and their unit, such as "ns"."""
    stamp: Any = in_utc(moment).asm8
    return int(stamp.astype(np.int64)), np.datetime_data(stamp.dtype)[0]


def unit_of(values: Array) -> str:
    return np.datetime_data(values.dtype)[0]


def in_utc(moment: Any) -> Any:
    return moment if getattr(moment, "tz", None) is None else moment.tz_convert(None)


# ---- where cells stand in a list --------------------------------------------------------------------------


def finder(listed: Iterable[tuple[object, int]]) -> Finder:
    """Return a function from the cells of a column to the positions of equal listed values.

    ``listed`` has pairs of a value and its position. Positions begin at 1, and 0 is for all other
    cells. None is null. If listed values are equal, the first is found.
    """
    null, table = 0, dict[Hashable, int]()
    for value, place in listed:
        if value is None:
            null = null or place
        else:
            table.setdefault(form_of(value), place)
    return finder_of_forms(table, null)


def finder_of_forms(table: dict[Hashable, int], null: int = 0) -> Finder:
    """Return a function from the cells of a column to the positions of listed values they equal.

    ``table`` has the position of each value by its form, as `form_of` defines it. ``null`` is the
    position of a null. The function returns 0 for all other cells.
    """
    dtype = np.min_scalar_type(max([null, *table.values()]))
    by_dictionary: dict[int, tuple[Any, Buckets]] = {}  # held, so that the id of one stays its own
    by_dtype: dict[Any, Callable[[Array], Buckets]] = {}

    def of_category(vector: Vector) -> Buckets:
        """Return the position in the list of each cell of a column that has a dictionary, 0 for
        none.

        Each entry of the dictionary is looked up once.
        """
        categories = vector.categories
        assert categories is not None
        if id(categories) not in by_dictionary:
            places = np.zeros(len(categories) + 1, dtype=dtype)
            places[:-1] = [table.get(form_of(c), 0) for c in categories.tolist()]
            places[-1] = null  # which is what code -1 finds
            by_dictionary[id(categories)] = categories, places
        return np.take(by_dictionary[id(categories)][1], vector.values, mode="wrap")

    def of_value(vector: Vector) -> Buckets:
        """Return the position in the list of each cell of a column without a dictionary, 0 for
        none.

        Listed values are compared in the dtype of the column.
        """
        if vector.kind in NO_KEYS:
            return np.zeros(len(vector), dtype=dtype)
        cell_dtype = vector.values.dtype
        if cell_dtype not in by_dtype:
            place_of = {
                held: place
                for form, place in table.items()
                if (held := _held(form, cell_dtype)) is not None
            }
            by_dtype[cell_dtype] = _search(place_of, _plain_dtype(cell_dtype), dtype)
        return by_dtype[cell_dtype](_plain_values(vector.values))

    @np.errstate(all="ignore")  # a NaN may signal
    def find(vector: Vector) -> Buckets:
        """Return the position of the listed value that each cell equals, 0 for no listed value."""
        if vector.categories is not None:
            return of_category(vector)
        places, missing = of_value(vector), vector.nulls()
        if missing is not None:
            places[missing] = null
        return places

    return find


def _plain_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which the cells of a column are compared with listed values.

    Bools and ticks are compared as whole numbers, and all floats as doubles.
    """
    if dtype.kind == "f":
        return np.dtype(np.float64)
    kinds: dict[str, np.dtype[Any]] = {"b": np.dtype(np.uint8), "M": np.dtype(np.int64)}
    return kinds.get(dtype.kind, dtype)


def _plain_values(values: Array) -> Array:
    """Return cells in the dtype in which `_plain_dtype` says they are compared."""
    if values.dtype.kind == "f":
        return values.astype(np.float64, copy=False)
    return values.view(_plain_dtype(values.dtype))


def _held(form: Any, dtype: np.dtype[Any]) -> int | float | None:
    """Return a listed value as a column of a dtype would hold it; None if no cell can equal it.

    ``form`` is the value in the form that `form_of` gives it.
    """
    if type(form) is tuple:  # a bool or a moment
        if (form[0] is pd.Timestamp) != (dtype.kind == "M"):
            return None
        number = form[-1]
        if dtype.kind == "M":
            number, rest = divmod(number, TICKS["ns"] // TICKS[np.datetime_data(dtype)[0]])
            return number if rest == 0 and abs(number) <= _INT64.max else None
        form = int(number)
    if type(form) not in (int, float) or dtype.kind == "M":
        return None
    if dtype.kind == "f":
        return as_double(form)
    if not math.isfinite(form):
        return None
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return int(form) if form == int(form) and low <= form <= high else None


def as_double(number: int | float) -> float | None:
    """Return the double that equals a number exactly; None if there is no such double."""
    try:
        near = float(number)
    except OverflowError:
        return None
    return near + 0.0 if near == number else None


def _search(
    place_of: dict[int | float, int], dtype: np.dtype[Any], position_dtype: np.dtype[Any]
) -> Callable[[Array], Buckets]:
    """Return a function that finds the listed position of each value in an array, 0 for others.

    ``place_of`` has the position of each listed value. ``dtype`` is that of the values,
    ``position_dtype`` that of the result. The search is exact: by a table, by comparison with each
    listed value, or by bisection.
    """
    ordered = sorted(place_of.items())
    listed = np.array([v for v, _ in ordered], dtype=dtype)
    positions = np.array([p for _, p in ordered], dtype=position_dtype)
    whole = dtype.kind in "iu" and len(listed) > SIZES.listed_compared
    if (
        whole
        and int(listed[-1]) - int(listed[0]) < SIZES.table_numbers
        and abs(int(listed[0])) < 2**62
    ):
        low = int(listed[0])
        # There is a 0 before the first and after the last.
        table = np.zeros(int(listed[-1]) - low + 3, dtype=position_dtype)
        table[[int(v) - low + 1 for v, _ in ordered]] = positions
        return lambda values: find_in_table(values, low, table)
    search = _find_by_comparison if len(listed) <= SIZES.listed_bisected else _find_by_bisection
    return lambda values: search(values, listed, positions)


def _find_by_comparison(values: Array, listed: Array, places: Buckets) -> Buckets:
    """Return the position of the listed value that each value equals, 0 for no listed value.

    ``places`` has the positions of the ``listed`` values. Each of these, which are few, is compared
    with all values.
    """
    hit_places = np.zeros(len(values), dtype=places.dtype)
    for value, place in zip(listed, places, strict=True):
        hits = values == value
        hit_places |= (
            hits.view(np.uint8) * place
        )  # of two different values a cell equals one at most
    return hit_places


def find_in_table(values: Array, first: int, table: Buckets) -> Buckets:
    """Return ``table[1 + value - first]`` for each whole number in an array.

    Values beyond the table get the zeros at its ends. A difference that wraps lands far outside the
    table, whose range is below 2**20, so it finds an end too.
    """
    if values.dtype == np.uint64:  # the upper half must not turn negative
        values = np.minimum(values, np.uint64(_INT64.max))
    offset = np.subtract(values, first - 1, dtype=np.int64, casting="unsafe")
    return np.asarray(np.take(table, offset, mode="clip"))


def _find_by_bisection(values: Array, listed: Array, places: Buckets) -> Buckets:
    """Return the position of the listed value that each value equals, 0 for none, by bisection."""
    at = np.minimum(np.searchsorted(listed, values), len(listed) - 1)
    return np.where(listed[at] == values, places[at], places.dtype.type(0))


# ---- lists as an index ------------------------------------------------------------------------------------


def index_of(values: list[Any], name: Hashable) -> Index:
    """Return an index that holds each of the listed values unchanged.

    It has the dtype that pandas gives the values, if that changes none of them. Otherwise it is an
    index of objects.
    """
    types = set(map(type, values))
    try:
        index: Index = pd.Index(values, name=name, tupleize_cols=False)
    except (ValueError, TypeError, OverflowError):
        # Moments in units that no one unit holds, or intervals of two kinds.
        index = pd.Index([], dtype=object)
    same = types in ({str}, {float}, {bool}) or (types == {int} and index.dtype.kind in "iu")
    if len(index) == len(values) and (same or all(map(_same, index.tolist(), values))):
        return index
    return pd.Index(objects(values), dtype=object, name=name)


def _same(held: Any, value: object) -> bool:
    """Return whether an index holds a listed value unchanged, by the cell ``held`` that it has."""
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return bool(_pandas.isna(held))
    return (
        type(held) is not bool and type(value) is not bool and bool(held == value)
    ) or held is value
