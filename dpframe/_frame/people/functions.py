"""What a function of a person's own rows is called with: columns that write down what is made of
them.

*Formal guarantee.* The function is called once, without data. Whatever it does, the result is an
expression whose nodes are row-wise or `Within`. So a traced function needs no check on parts of the
people, as `pipe` does.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NoReturn, Self

import numpy as np

from dpframe import _validate
from dpframe._errors import BadType, NotOffered, Refused
from dpframe._expr import Expr
from dpframe._frame.column import PrivateColumn
from dpframe._frame.people.verbs import Build, PersonVerbs
from dpframe._frame.people.windows import Window, read_window
from dpframe._frame.people.within import AGGREGATES, PersonVerb, build_within, check_integer
from dpframe._frame.selection import selection_of
from dpframe._frame.tracked import Tracked, person_of
from dpframe._refusals import Unprinted
from dpframe._types import Arguments


class PersonColumn(PersonVerbs, PrivateColumn):
    """A person's own column, as the functions of `transform`, `agg` and `apply` get it.

    The value of ``sum`` and the like is in each of the person's rows, so ``x - x.mean()`` is a
    column again. No verb asks a question or reads a cell.
    """

    def _new(self, expr: Expr, name: Any = ...) -> Self:
        return type(self)(self._frame, expr, self._name if name is ... else name)

    def _make_people(self, verb: PersonVerb, args: Arguments, numeric_only: bool) -> Self:
        _validate.flag(numeric_only, "numeric_only")
        return self._new(verb.build(selection_of(self._frame), self._expr, *args))

    def _make_rows(self, build: Build) -> Self:
        return self._new(build(selection_of(self._frame), self._expr))

    def _make_window(self, rows: int | None, least: int) -> Window:
        return Window(selection_of(self._frame), self._make_rows, rows, least)

    def rolling(self, window: int, min_periods: int | None = None, **words: object) -> Window:
        """Return windows of some of the person's rows, each ending with its own row."""
        selection = selection_of(self._frame)
        return self._make_window(*read_window(selection, None, window, min_periods, words))

    @property
    def size(self) -> Self:
        """The number of rows that the person has."""
        return self._new(build_within(selection_of(self._frame), "size", None))

    @property
    def iloc(self) -> PersonCells:
        """The value of the person's first or last rows, by position: ``x.iloc[0]``,
        ``x.iloc[-1]``."""
        return PersonCells(
            lambda n: self._new(build_within(selection_of(self._frame), "nth", self._expr, (n,)))
        )


class PersonCells(Unprinted):
    """``x.iloc``: a place picks a cell of each person, in all of that person's rows."""

    def __init__(self, pick: Callable[[int], PersonColumn]):
        self._pick = pick

    def __getitem__(self, place: object) -> PersonColumn:
        if isinstance(place, slice | list | tuple):
            raise NotOffered("a function here takes one place: x.iloc[0], x.iloc[-1].")
        return self._pick(check_integer(place, "a place"))


class PersonRows(Unprinted):
    """A person's own rows, as the functions of `apply` and `filter` get them.

    ``g["cost"]`` is the person's own column.
    """

    def __init__(self, frame: Tracked, columns: Mapping[Hashable, Expr]):
        self._frame, self._columns = frame, columns

    def __getitem__(self, name: object) -> PersonColumn:
        """Return the person's own column of this name.

        A list of names is refused.
        """
        if isinstance(name, list):
            raise NotOffered(
                "a function here takes one column after the other: "
                "g['cost'].sum() / g['days'].sum()."
            )
        known = _validate.column_name(name, self._columns)
        return PersonColumn(self._frame, self._columns[known], known)

    def __len__(self) -> NoReturn:
        raise Refused(
            "len() would be a number of one person. Write g['cost'].size, which is a column of "
            "them."
        )

    def __getattr__(self, name: str) -> PersonColumn:
        """Return the person's own column of this name, ``g.cost``.

        Verbs of rows are refused, with what to write instead.
        """
        if name in self._columns and not name.startswith("_"):
            return self[name]
        if name.startswith("_"):
            raise AttributeError(name)
        person = person_of(selection_of(self._frame))
        raise NotOffered(
            f"a person's rows have columns here and no {name!r}: g['cost'].max(). For rows "
            f"p.groupby({person}).head(1); with pandas' own verbs p.pipe(f)."
        )


def _list_functions() -> dict[object, str]:
    """Return the names of aggregates by the functions of Python and numpy that compute them."""
    found: dict[object, str] = {len: "size"}
    for name, defaults in AGGREGATES.items():
        if not defaults:
            of = [getattr(module, name, None) for module in (builtins, np)]
            found |= {function: name for function in of if function is not None}
    return found


_FUNCTIONS = _list_functions()


def name_aggregate(how: object) -> Any:
    """Return the name of the aggregate that a function such as ``np.mean`` computes.

    ``how`` is that function. Anything else is returned as it is.
    """
    return _FUNCTIONS.get(how, how) if isinstance(how, Hashable) else how


def call_once(func: object, argument: object, verb: str) -> Any:
    """Call a user's function once, with one argument; refuse what is not a function.

    ``verb`` is the verb that was given the function.
    """
    if not callable(func) or isinstance(func, PrivateColumn):
        raise BadType(
            f"{verb} takes the name of an aggregate or a function, not {type(func).__name__}."
        )
    return func(argument)
