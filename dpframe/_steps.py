"""Person-wise steps: each looks at one row at a time, is free, and returns another tracked frame."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import pandas as pd

from dpframe import _expr, _validate
from dpframe._column import PrivateColumn
from dpframe._errors import BadType, BadValue
from dpframe._expr import Expr

if TYPE_CHECKING:
    from dpframe._private import PrivateFrame


class Steps:
    """What a tracked frame can become."""

    _columns: dict[Hashable, Expr]

    if TYPE_CHECKING:

        def _expr_of(self, name: Any) -> Expr: ...
        def _resolve(self, value: Any) -> Expr: ...
        def _parsed(self, text: str, caller: Any) -> tuple[Expr, PrivateFrame]: ...
        def _filter(self, condition: Expr) -> PrivateFrame: ...
        def _with(self, **changes: Any) -> PrivateFrame: ...

    def assign(self, **columns: Any) -> PrivateFrame:
        """New columns: a string expression, a tracked column, ``pd.col``, a constant, or ``lambda p: p["x"] / 2``.

        Bounds of a new column follow from those of the old ones.

        >>> df = pd.DataFrame({"cost": [120.0, 40.0]})
        >>> p = df.dp.open(1, bounds={"cost": (0, 50_000)})
        >>> p.assign(cost_k="cost / 1000").explain.sum("cost_k").sensitivity
        50.0
        """
        caller = sys._getframe(1)
        frame = cast("PrivateFrame", self)
        for name, value in columns.items():
            if isinstance(value, str):
                expr, frame = frame._parsed(value, caller)
            else:
                expr = frame._resolve(value)
            frame = frame._with(columns={**frame._columns, name: expr})
        return frame

    def rename(self, columns: Mapping[Any, Any] | Callable[[Any], Any]) -> PrivateFrame:
        """Other names for columns; their bounds and keys stay theirs."""
        if callable(columns):
            new = {name: columns(name) for name in self._columns}
        elif isinstance(columns, Mapping):
            new = {name: columns.get(name, name) for name in self._columns}
        else:
            raise BadType("rename takes columns={'old': 'new'}.")
        renamed = {new[name]: expr for name, expr in self._columns.items()}
        if len(renamed) < len(self._columns):
            raise BadValue("rename would give two columns the same name.")
        return self._with(columns=renamed)

    def drop(self, columns: Any) -> PrivateFrame:
        """The frame without some columns."""
        names = columns if isinstance(columns, list | tuple | pd.Index) else [columns]
        gone = {_validate.column_name(n, self._columns) for n in names}
        return self._with(columns={n: e for n, e in self._columns.items() if n not in gone})

    def dropna(self, subset: Any = None) -> PrivateFrame:
        """The rows without nulls, in the columns named or in all."""
        names = list(self._columns) if subset is None else subset
        names = names if isinstance(names, list | pd.Index) else [names]
        frame = cast("PrivateFrame", self)
        for name in names:
            expr = self._expr_of(name)
            if expr.nullable:
                frame = frame._filter(_expr.logical_not(_expr.is_null(expr)))
        return frame

    def fillna(self, value: Any) -> PrivateFrame:
        """Constants for nulls, one for all columns or ``{"column": constant}``."""
        if isinstance(value, Mapping):
            fills = {_validate.column_name(k, self._columns): v for k, v in value.items()}
        else:
            fills = dict.fromkeys(self._columns, value)
        return self._each(fills, lambda column, v: column.fillna(v))

    def clip(self, lower: float | None = None, upper: float | None = None) -> PrivateFrame:
        """Every number moved into [lower, upper]; a null stays null."""
        numbers = [n for n, e in self._columns.items() if e.kind == "number"]
        return self._each(dict.fromkeys(numbers), lambda column, _: column.clip(lower, upper))

    def astype(self, dtype: Any) -> PrivateFrame:
        """Other dtypes (float, int, bool, str), one for all columns or ``{"column": dtype}``."""
        wanted = dtype if isinstance(dtype, Mapping) else dict.fromkeys(self._columns, dtype)
        return self._each(wanted, lambda column, v: column.astype(v))

    def _each(
        self, arguments: Mapping[Any, Any], step: Callable[[PrivateColumn, Any], PrivateColumn]
    ) -> PrivateFrame:
        frame, changed = cast("PrivateFrame", self), {}
        for key, argument in arguments.items():
            name = _validate.column_name(key, self._columns)
            changed[name] = step(PrivateColumn(frame, self._columns[name], name), argument)._expr
        return self._with(columns={**self._columns, **changed})

    def cut(self, column: Any, bins: Any, *, labels: Any = None, right: bool = True) -> PrivateColumn:
        """A column cut at given edges, as ``pd.cut``; for ``assign(band=p.cut("age", [0, 18, 65, 110]))``."""
        frame = cast("PrivateFrame", self)
        return PrivateColumn(frame, self._expr_of(column), column).cut(bins, labels=labels, right=right)

    def isin(self, values: Mapping[Any, Any] | Iterable[Any]) -> PrivateFrame:
        """Each cell replaced by whether it is one of the values; of a dict, one of those for its column."""
        wanted = values if isinstance(values, Mapping) else dict.fromkeys(self._columns, values)
        return self._each({**dict.fromkeys(self._columns, ()), **wanted}, lambda column, v: column.isin(v))

    def sort_values(self, *args: Any, **kwargs: Any) -> PrivateFrame:
        """Nothing: a private answer does not depend on the order of rows. Says so in a warning."""
        warnings.warn(
            "sort_values does nothing here: no answer depends on the order of rows. Sort the answer instead.",
            UserWarning,
            stacklevel=2,
        )
        return cast("PrivateFrame", self)
