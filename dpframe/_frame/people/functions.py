"""What a function of a person's own rows is called with: columns that write down what is made of
them.

*Formal guarantee.* The function is called once, without data: whatever it does, what comes of it is
an expression whose nodes are row-wise or `Within`. So a function that is traced needs no check on
parts of the people, as `pipe` does.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from dpframe import _expr, _validate
from dpframe._errors import BadType, NotOffered, Refused
from dpframe._expr import Expr
from dpframe._frame.column import PrivateColumn
from dpframe._frame.people.steps import made
from dpframe._frame.people.windows import Window, ddof_of, rolling, skewness
from dpframe._frame.tracked import Tracked, person_of
from dpframe._refusals import Unprinted

# What `agg` may name, and the words that each has where none are given.
NAMED: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("sum", "mean", "min", "max", "median", "prod", "count", "nunique"), ()),
    **dict.fromkeys(("first", "last", "any", "all", "size"), ()),
    **dict.fromkeys(("var", "std", "sem"), (1,)),
    "quantile": (0.5,),
}


class OwnColumn(PrivateColumn):
    """A person's own column, as the functions of `transform`, `agg` and `apply` get it.

    What ``sum`` and the like make of it stands in each of the person's rows, so that ``x -
    x.mean()`` is a column again. It asks nothing and reads nothing.
    """

    def _new(self, expr: Expr, name: Any = ...) -> Any:
        return OwnColumn(self._frame, expr, self._name if name is ... else name)

    def _made(self, how: str, *args: Any) -> Any:
        return self._new(
            made(
                self._frame, how, None if how == "size" else self._expr, args or NAMED.get(how, ())
            )
        )

    @property
    def size(self) -> Any:
        """How many rows the person has."""
        return self._made("size")

    @property
    def iloc(self) -> Nth:
        """The cell of the person's row at a place: ``x.iloc[0]``, ``x.iloc[-1]``."""
        return Nth(self)

    def shift(self, periods: int = 1) -> Any:
        """The value of the person's row so many rows before."""
        return self._made("shift", whole(periods, "periods"))

    def diff(self, periods: int = 1) -> Any:
        """What a value is more than that of the person's row so many rows before."""
        return self._new(difference(self._frame, self._expr, whole(periods, "periods")))

    def pct_change(self, periods: int = 1) -> Any:
        """By which part a value is more than that of the person's row so many rows before."""
        return self._new(change(self._frame, self._expr, whole(periods, "periods")))

    def rank(self, method: str = "average", ascending: bool = True, pct: bool = False) -> Any:
        """The rank among the person's own values."""
        return self._made("rank", *ranking(method, ascending, pct))

    def rolling(self, window: int, min_periods: int | None = None, **words: Any) -> Window:
        """Windows of so many of the person's rows, each ending with its own."""
        return rolling(
            self._frame, lambda make: self._new(make(self._expr)), window, min_periods, words
        )

    def expanding(self, min_periods: int = 1) -> Window:
        """Windows of all of the person's rows up to each."""
        least = _validate.positive_int(min_periods, "min_periods")
        return Window(self._frame, lambda make: self._new(make(self._expr)), None, least)

    def skew(self) -> Any:
        """The skewness of the person's values."""
        return self._new(skewness(self._frame, self._expr))

    def quantile(self, q: float = 0.5) -> Any:
        """A quantile of the person's values."""
        return self._made("quantile", _validate.level(q))

    def var(self, ddof: int = 1) -> Any:
        """The variance of the person's values."""
        return self._made("var", ddof_of(ddof))

    def std(self, ddof: int = 1) -> Any:
        """The standard deviation of the person's values."""
        return self._made("std", ddof_of(ddof))

    def sem(self, ddof: int = 1) -> Any:
        """The standard error of the mean of the person's values."""
        return self._made("sem", ddof_of(ddof))


class Nth(Unprinted):
    """``x.iloc``: a place picks a cell of each person, which is one value in all of that person's
    rows."""

    def __init__(self, column: OwnColumn):
        self._column = column

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice | list | tuple):
            raise NotOffered("a function here takes one place: x.iloc[0], x.iloc[-1].")
        return self._column._made("nth", whole(place, "a place"))


def _own_verb(how: str) -> Any:
    def verb(self: OwnColumn) -> Any:
        return self._made(how)

    verb.__name__, verb.__qualname__ = how, f"OwnColumn.{how}"
    verb.__doc__ = (
        f"What `PersonGroupBy.{how}` makes of the column, for the function that writes it down."
    )
    return verb


for _how in (
    "sum",
    "mean",
    "median",
    "prod",
    "min",
    "max",
    "first",
    "last",
    "any",
    "all",
    "count",
    "nunique",
):
    setattr(OwnColumn, _how, _own_verb(_how))
for _how in ("cumsum", "cumprod", "cummin", "cummax", "ffill", "bfill"):
    setattr(OwnColumn, _how, _own_verb(_how))


class OwnRows(Unprinted):
    """A person's own rows, as the functions of `apply` and `filter` get them: ``g["cost"]`` is the
    person's own column."""

    def __init__(self, frame: Tracked, columns: Mapping[Hashable, Expr]):
        self._frame, self._columns = frame, columns

    def __getitem__(self, name: Any) -> OwnColumn:
        if isinstance(name, list):
            raise NotOffered(
                "a function here takes one column after the other: g['cost'].sum() / g['days'].sum()."
            )
        known = _validate.column_name(name, self._columns)
        return OwnColumn(self._frame, self._columns[known], known)

    def __len__(self) -> int:
        raise Refused(
            "len() would be a number of one person. Write g['cost'].size, which is a column of them."
        )

    def __getattr__(self, name: str) -> Any:
        if name in self._columns and not name.startswith("_"):
            return self[name]
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotOffered(
            f"a person's rows have columns here and no {name!r}: g['cost'].max(). For rows "
            f"p.groupby({person_of(self._frame._selection)}).head(1); with pandas' own verbs p.pipe(f)."
        )


# Functions that stand for an aggregate, so that they need not be called.
_MEANT: dict[Any, str] = {
    sum: "sum",
    min: "min",
    max: "max",
    len: "size",
    np.sum: "sum",
    np.mean: "mean",
}
_MEANT |= {np.median: "median", np.min: "min", np.max: "max"}


def meant(how: Any) -> Any:
    """The name of the aggregate that a function of Python's or numpy's stands for; anything else is
    what it was."""
    return _MEANT.get(how, how) if isinstance(how, Hashable) else how


def called_once(func: Any, given: Any, verb: str) -> Any:
    if not callable(func) or isinstance(func, PrivateColumn):
        raise BadType(
            f"{verb} takes the name of an aggregate or a function, not {type(func).__name__}."
        )
    return func(given)


def whole(value: Any, name: str) -> int:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | np.integer)
        or abs(int(value)) >= 2**31
    ):
        raise BadType(f"{name} must be a whole number, not {value!r}.")
    return int(value)


def ranking(method: Any, ascending: Any, pct: Any) -> tuple[Any, ...]:
    name = _validate.choice(method, "method", ("average", "min", "max", "first", "dense"))
    return name, _validate.flag(ascending, "ascending"), _validate.flag(pct, "pct")


def difference(frame: Tracked, x: Expr, steps: int) -> Expr:
    return _expr.operate("-", x, made(frame, "shift", x, (steps,)))


def change(frame: Tracked, x: Expr, steps: int) -> Expr:
    part = _expr.operate("/", x, made(frame, "shift", x, (steps,)))
    return _expr.operate("-", part, _expr.constant(1))
