"""Kinds: what can be done with a column or a constant, from its dtype or type alone."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from dpframe import _pandas

Kind = Literal["number", "bool", "text", "label", "time", "duration", "other"]
# Kinds whose cells are no keys, and are not told apart.
NO_KEYS = frozenset[Kind](("duration", "other"))

# What astype goes to, with the kind of the result; and other names of the same.
CASTS: dict[str, Kind] = {"float": "number", "int": "number", "bool": "bool", "str": "text"}
DTYPES = {
    **dict.fromkeys(("float64", "float32", "float16", "double"), "float"),
    **{f"{sign}int{bits}": "int" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "boolean": "bool",
    "string": "str",
}
SAME = ("object", "category")  # what a column is in another dtype, with the same values

_MASKED = (
    *(pd.Int8Dtype, pd.Int16Dtype, pd.Int32Dtype, pd.Int64Dtype, pd.Float32Dtype, pd.Float64Dtype),
    *(pd.UInt8Dtype, pd.UInt16Dtype, pd.UInt32Dtype, pd.UInt64Dtype),
)
_NUMPY: dict[str, Kind] = {
    "b": "bool",
    "i": "number",
    "u": "number",
    "f": "number",
    "M": "time",
    "m": "duration",
    "O": "label",
}


def kind_of(dtype: object) -> Kind:
    """Return what the cells of a column are, such as "number" or "text", by its dtype alone."""
    if isinstance(dtype, np.dtype):
        return _NUMPY.get(dtype.kind, "other")
    if isinstance(dtype, pd.SparseDtype):
        return kind_of(dtype.subtype)
    if isinstance(dtype, pd.CategoricalDtype):
        return (
            "text"
            if dtype.categories is not None and kind_of(dtype.categories.dtype) == "text"
            else "label"
        )
    if isinstance(dtype, pd.StringDtype):
        return "text"
    if isinstance(dtype, pd.BooleanDtype):
        return "bool"
    if isinstance(dtype, pd.DatetimeTZDtype):
        return _kind_of_zone(zone_of(dtype))
    if isinstance(dtype, pd.ArrowDtype):
        return _kind_of_arrow(dtype.pyarrow_dtype)
    return "number" if isinstance(dtype, _MASKED) else "other"


def _kind_of_zone(zone: str | None) -> Kind:
    """Return the kind of times with this zone: "time", or "other" if pandas does not know the zone.

    A column of kind "other" allows null tests only.
    """
    try:
        pd.Timestamp(0, tz=zone)
    except (ValueError, KeyError, TypeError, OSError):
        return "other"
    return "time"


def _kind_of_arrow(dtype: Any) -> Kind:
    """Return what the cells of a column with an Arrow dtype are, such as "number" or "text"."""
    types: Any = import_module("pyarrow.types")  # there is such a dtype, so pyarrow is there
    if types.is_dictionary(dtype):
        # Dates beyond Python's own have no cells to show; all other kinds do.
        kinds: dict[Kind, Kind] = {
            "text": "text",
            "time": "other",
            "duration": "other",
            "other": "other",
        }
        return kinds.get(_kind_of_arrow(dtype.value_type), "label")
    if types.is_boolean(dtype):
        return "bool"
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return "number"
    if types.is_duration(dtype):
        return "duration"
    if types.is_timestamp(dtype) or types.is_date(dtype):
        return _kind_of_zone(getattr(dtype, "tz", None))
    view = getattr(types, "is_string_view", lambda _: False)
    return (
        "text" if types.is_string(dtype) or types.is_large_string(dtype) or view(dtype) else "other"
    )


def is_whole(dtype: object) -> bool:
    """Return whether a dtype of numbers holds whole numbers only."""
    if isinstance(dtype, pd.SparseDtype):
        return is_whole(np.dtype(dtype.subtype)) and not _pandas.isna(dtype.fill_value)
    if isinstance(dtype, pd.ArrowDtype):
        types: Any = import_module("pyarrow.types")
        return bool(types.is_integer(dtype.pyarrow_dtype))
    return getattr(dtype, "kind", "") in ("i", "u")


def zone_of(dtype: object) -> str | None:
    """Return the name of the time zone of a dtype; None if it has no zone."""
    if isinstance(dtype, pd.ArrowDtype):
        zone: Any = getattr(dtype.pyarrow_dtype, "tz", None)
        return None if zone is None else str(zone)
    return str(dtype.tz) if isinstance(dtype, pd.DatetimeTZDtype) else None


class Facts(NamedTuple):
    """The facts that a dtype tells of a column."""

    kind: Kind
    nullable: bool
    integral: bool
    tz: str | None


def facts_of(dtype: object) -> Facts:
    """Return what a dtype tells of a column: its kind, whether it can be null, and more."""
    kind = kind_of(dtype)
    plain = isinstance(dtype, np.dtype) and dtype.kind in "biu"
    whole = kind == "bool" or (kind == "number" and is_whole(dtype))
    return Facts(kind, not plain, whole, zone_of(dtype))


known_facts = lru_cache(maxsize=256)(facts_of)
