"""What a Series has beside what its cells become: other rows, another name, looks, groups, and
operators by their names.

Each is a step of the frame that the column is of, so nothing is read.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pandas as pd

from dpframe import _expr, _validate
from dpframe._errors import BadType, NotOffered, Refused
from dpframe._frame.selection import BoundColumn
from dpframe._frame.verbs import looking

if TYPE_CHECKING:
    from dpframe._frame.frame import PrivateFrame
    from dpframe._frame.groups import PrivateGroupBy

Column = TypeVar("Column", bound=BoundColumn)


def _of(column: BoundColumn, frame: Any) -> Any:
    """The column of another frame of the same columns."""
    return type(column)(frame, column._expr, column._name)


def dropna(self: Column, *, axis: Any = 0, how: None = None, ignore_index: bool = False) -> Column:
    """The column in the rows where it is not null."""
    frame = self._frame
    kept = frame._where(_expr.not_null(self._expr)) if self._expr.nullable else frame
    result: Column = _of(self, kept)
    return result


def rename(self: Column, index: Hashable = None, *, axis: Any = None) -> Column:
    """The column under another name, which its answers take."""
    if callable(index) or isinstance(index, dict):
        raise Refused(
            "rows have no labels here, so that there are none to rename. The column is renamed by p['x'].rename('new')."
        )
    result: Column = type(self)(self._frame, self._expr, _validate.hashable(index, "a name"))
    return result


def copy(self: Column, deep: bool = True) -> Column:
    """The column itself: nothing in it changes."""
    _validate.flag(deep, "deep")
    return self


def squeeze(self: Column, axis: Any = None) -> Column:
    """The column itself, which is one already."""
    return self


def sort_values(self: Column, **words: Any) -> Column:
    """The column itself: no answer depends on the order of rows."""
    return self


def reset_index(
    self: Column, level: None = None, *, drop: bool = False, name: Any = None
) -> Column:
    """The column itself, with ``drop=True``: rows have no labels here, and without it they would be
    numbers of people."""
    if not _validate.flag(drop, "drop"):
        raise Refused(
            "the rows have no labels here: their numbers would tell who stands before whom. Write p['x'].reset_index(drop=True)."
        )
    return self


def to_frame(self: BoundColumn, name: Hashable = None) -> PrivateFrame:
    """The tracked frame of this column alone."""
    frame = self._frame
    label = self._name if name is None else _validate.hashable(name, "a name")
    return cast("PrivateFrame", frame._new(frame._selection.replace_columns({label: self._expr})))


def head(self: BoundColumn, n: int = 5) -> pd.Series[Any]:
    """Some made-up values, at most 100; see `PrivateFrame.head`."""
    return _shown(self, looking.head(to_frame(self), n))


def tail(self: BoundColumn, n: int = 5) -> pd.Series[Any]:
    """Some made-up values, others than those of `head`."""
    return _shown(self, looking.tail(to_frame(self), n))


def sample(
    self: BoundColumn,
    n: int | None = None,
    frac: float | None = None,
    replace: bool = False,
    weights: None = None,
    random_state: Any = None,
    axis: Any = None,
    ignore_index: bool = False,
) -> pd.Series[Any]:
    """Some made-up values; see `PrivateFrame.sample`."""
    return _shown(
        self,
        looking.sample(to_frame(self), n, frac, replace, weights, random_state, axis, ignore_index),
    )


def _shown(column: BoundColumn, made: pd.DataFrame) -> pd.Series[Any]:
    shown: pd.Series[Any] = made.iloc[:, 0]
    return shown


def dtype(self: BoundColumn) -> Any:
    """The dtype, without the categories of a categorical one: these are cells of the data."""
    return looking.dtypes(to_frame(self)).iloc[0]


def _beside(column: BoundColumn) -> Any:
    """The frame with this column among its own, whatever was made of it."""
    frame = column._frame
    return frame._new(
        frame._selection.replace_columns({**frame._selection.columns, column._name: column._expr})
    )


def groupby(self: BoundColumn, by: Any = None, **words: Any) -> PrivateGroupBy:
    """Groups of this column: ``p["cost"].groupby(p["state"]).mean()``; see
    `PrivateFrame.groupby`."""
    if isinstance(by, str) and by not in self._frame._selection.index:
        raise BadType(
            f"a column is grouped by another one, or by its index: p['cost'].groupby(p[{by!r}])."
        )
    return cast("PrivateGroupBy", _beside(self).groupby(by, **words)[self._name])


def resample(self: BoundColumn, rule: Any, **words: Any) -> PrivateGroupBy:
    """Groups of this column by periods of the index:
    ``p.set_index("t")["cost"].resample("ME").mean()``."""
    return cast("PrivateGroupBy", _beside(self).resample(rule, **words)[self._name])


def pipe(self: BoundColumn, func: Any, *args: Any, **words: Any) -> Any:
    """What a function makes of this column: ``func(column, *args, **words)``."""
    if isinstance(func, tuple) and len(func) == 2 and callable(func[0]):
        return func[0](*args, **{**words, func[1]: self})
    if not callable(func):
        raise BadType(f"pipe takes a function of a column, not {type(func).__name__}.")
    return func(self, *args, **words)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    **{
        name: getattr(operator, name)
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
    },
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "div": operator.truediv,
}


def _method(name: str, operate: Callable[[Any, Any], Any], swapped: bool) -> Any:
    def verb(
        self: Any, other: Any, level: None = None, fill_value: Any = None, axis: Any = 0
    ) -> Any:
        if level is not None or fill_value is not None:
            raise NotOffered(
                f"{name} takes neither level= nor fill_value=: write p['x'].fillna(0) before it."
            )
        return operate(other, self) if swapped else operate(self, other)

    verb.__name__ = name
    verb.__doc__ = f"The operator by its name: ``p['x'].{name}(2)``."
    return verb


# Methods that pandas has beside operators; some also with their sides exchanged.
METHODS = {
    **{name: _method(name, one, False) for name, one in _OPERATORS.items()},
    **{f"r{name}": _method(f"r{name}", _OPERATORS[name], True)
       for name in ("sub", "div")},
}  # fmt: skip
