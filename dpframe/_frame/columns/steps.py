"""Steps of a column that leave its cells as they are: other rows, another name, made-up rows, and
groups.

Each is a step of the column's frame, so nothing is read.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pandas as pd

from dpframe import _expr, _validate
from dpframe._errors import BadType, Refused
from dpframe._frame.selection import (
    BoundColumn,
    expression_of,
    frame_of_column,
    name_of,
    selection_of,
)
from dpframe._frame.tracked import keep_rows_where, with_selection
from dpframe._frame.verbs import looking
from dpframe._types import Series

if TYPE_CHECKING:
    from dpframe._frame.frame import PrivateFrame
    from dpframe._frame.groups import PrivateGroupBy

Column = TypeVar("Column", bound=BoundColumn)


def _of(column: BoundColumn, frame: PrivateFrame) -> Any:
    """Return the column in another frame of the same columns."""
    return type(column)(frame, expression_of(column), name_of(column))


def dropna(
    self: Column, *, axis: object = 0, how: None = None, ignore_index: bool = False
) -> Column:
    """Return the column in the rows where it is not null."""
    frame = self._frame
    kept = keep_rows_where(frame, _expr.not_null(self._expr)) if self._expr.nullable else frame
    result: Column = _of(self, kept)
    return result


def rename(self: Column, index: Hashable = None, *, axis: object = None) -> Column:
    """Return the column under another name, which its answers take."""
    if callable(index) or isinstance(index, dict):
        raise Refused(
            "rows have no labels here, so that there are none to rename. The column is renamed by p['x'].rename('new')."
        )
    result: Column = type(self)(self._frame, self._expr, _validate.hashable(index, "a name"))
    return result


def copy(self: Column, deep: bool = True) -> Column:
    """Return the column itself: nothing in it changes."""
    _validate.flag(deep, "deep")
    return self


def squeeze(self: Column, axis: object = None) -> Column:
    """Return the column itself, which is one already."""
    return self


def sort_values(self: Column, **words: object) -> Column:
    """Return the column itself: no answer depends on the order of rows."""
    return self


def reset_index(
    self: Column, level: None = None, *, drop: bool = False, name: object = None
) -> Column:
    """Return the column itself, with ``drop=True``.

    Rows have no labels here. Without ``drop=True`` the labels would number people.
    """
    if not _validate.flag(drop, "drop"):
        raise Refused(
            "the rows have no labels here: their numbers would tell who stands before whom. Write p['x'].reset_index(drop=True)."
        )
    return self


def to_frame(self: BoundColumn, name: Hashable = None) -> PrivateFrame:
    """Return the tracked frame of this column alone."""
    frame = self._frame
    label = self._name if name is None else _validate.hashable(name, "a name")
    return cast(
        "PrivateFrame",
        with_selection(frame, selection_of(frame).replace_columns({label: self._expr})),
    )


def head(self: BoundColumn, n: int = 5) -> Series:
    """Return some made-up values, at most 100; see `PrivateFrame.head`."""
    return _take_column(self, looking.head(to_frame(self), n))


def tail(self: BoundColumn, n: int = 5) -> Series:
    """Return some made-up values, others than those of `head`."""
    return _take_column(self, looking.tail(to_frame(self), n))


def sample(
    self: BoundColumn,
    n: int | None = None,
    frac: float | None = None,
    replace: bool = False,
    weights: None = None,
    random_state: object = None,
    axis: object = None,
    ignore_index: bool = False,
) -> Series:
    """Return some made-up values; see `PrivateFrame.sample`."""
    return _take_column(
        self,
        looking.sample(to_frame(self), n, frac, replace, weights, random_state, axis, ignore_index),
    )


def _take_column(column: BoundColumn, made: pd.DataFrame) -> Series:
    shown: Series = made.iloc[:, 0]
    return shown


def dtype(self: BoundColumn) -> Any:
    """Return the dtype, without the categories of a categorical one: these are cells of the data."""
    return looking.dtypes(to_frame(self)).iloc[0]


def _add_to_frame(column: BoundColumn) -> Any:
    """Return the column's frame with the column, as it is now, among its own."""
    frame = frame_of_column(column)
    return with_selection(
        frame,
        selection_of(frame).replace_columns(
            {**selection_of(frame).columns, name_of(column): expression_of(column)}
        ),
    )


def groupby(self: BoundColumn, by: object = None, **words: object) -> PrivateGroupBy:
    """Group this column by another one: ``p["cost"].groupby(p["state"]).mean()``; see
    `PrivateFrame.groupby`."""
    if isinstance(by, str) and by not in selection_of(self._frame).index:
        raise BadType(
            f"a column is grouped by another one, or by its index: p['cost'].groupby(p[{by!r}])."
        )
    return cast("PrivateGroupBy", _add_to_frame(self).groupby(by, **words)[self._name])


def resample(self: BoundColumn, rule: object, **words: object) -> PrivateGroupBy:
    """Group this column by periods of the index:
    ``p.set_index("t")["cost"].resample("ME").mean()``."""
    return cast("PrivateGroupBy", _add_to_frame(self).resample(rule, **words)[self._name])


def pipe(self: BoundColumn, func: Any, *args: object, **words: object) -> Any:
    """Return what a function makes of this column: ``func(column, *args, **words)``."""
    if isinstance(func, tuple) and len(func) == 2 and callable(func[0]):
        return func[0](*args, **{**words, func[1]: self})
    if not callable(func):
        raise BadType(f"pipe takes a function of a column, not {type(func).__name__}.")
    return func(self, *args, **words)
