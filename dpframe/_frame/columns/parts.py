"""``.str`` and ``.dt`` of a tracked column: the attribute's name picks the part, and one that is
not offered is no attribute."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from inspect import signature
from typing import TYPE_CHECKING, Any, NoReturn

import pandas as pd

from dpframe import _expr, _validate
from dpframe._cells.codec import index_of
from dpframe._errors import BadType, BadValue, NotOffered, did_you_mean
from dpframe._expr import Expr, Kind
from dpframe._frame.selection import BoundColumn
from dpframe._frame.typed.parts import Texts, Times, Weeks
from dpframe._groups.keys import need_keys
from dpframe._refusals import Unprinted


class Parts(Unprinted, ABC):
    """What an accessor has: parts that are attributes, and parts that are called."""

    _accessor: str
    _of: str
    _kinds: tuple[Kind, ...]

    def __init__(self, column: Any):
        self._column = column

    @abstractmethod
    def _names(self) -> Iterable[str]:
        """The names of the parts."""

    def _made(
        self, make: Callable[..., Expr], name: str, args: Iterable[Any], words: Mapping[str, Any]
    ) -> Any:
        """The column that a part is, with the arguments that it takes."""
        given = signature(make)
        try:
            given.bind(self._column._expr, *args, **words)
        except TypeError:
            wanted = ", ".join(list(given.parameters)[1:])
            raise BadType(f"{self._accessor}.{name} takes ({wanted}) here, nothing else.") from None
        return self._column._new(make(self._column._expr, *args, **words))

    def _checked(self, name: str) -> None:
        if name.startswith("_"):
            raise AttributeError(name)
        expr = self._column._expr
        if expr.kind not in self._kinds:
            dates = expr.kind == "text" and self._accessor == ".dt"
            step = " Texts that are dates become times by pd.to_datetime(p['x'])." if dates else ""
            raise NotOffered(
                f"{self._accessor} needs {self._of}, and {expr} ({expr.kind}) is none.{step}"
            )
        if name not in self._names():
            close = get_close_matches(name, dir(self), n=1)
            raise NotOffered(
                f"{self._accessor}.{name} is not offered.{did_you_mean(name, dir(self)) if close else ''} "
                f"Use one of {', '.join(dir(self))}."
            )

    def __call__(self, *args: Any, **options: Any) -> NoReturn:
        raise BadType("what is called is a part: p['name'].str.lower(), p['when'].dt.normalize().")

    def __dir__(self) -> Iterable[str]:
        return sorted({*self._names()})

    def __getitem__(self, key: Any) -> Any:
        raise BadType("only .str takes brackets.")

    def __repr__(self) -> str:
        return f"{self._column!r}{self._accessor}: {', '.join(dir(self))}"


class TextParts(Texts, Parts):
    """``.str``: each part is called."""

    _accessor, _of, _kinds = ".str", "strings", ("text", "label")

    def _names(self) -> Iterable[str]:
        return {*_expr.TEXT, *_expr.TEXT_METHODS, "extract"}

    def _unlisted(self, name: str) -> Any:
        if not isinstance(self._column._expr, _expr.Split):
            self._checked(name)
        if name == "extract":
            return self._extract

        def part(*args: Any, **options: Any) -> Any:
            given = {k: self._given(v) for k, v in options.items()}
            made = _expr.text_part(self._column._expr, name, *map(self._given, args), **given)
            if not isinstance(made, _expr.Split):
                return self._column._new(made)
            if not _validate.flag(options.get("expand", made.keeps), "expand"):
                return self._column._new(made)
            if made.most < 0:
                raise BadType(
                    ".str.split(expand=True) would tell how many pieces there are at most. Say how many splits: n=1. One piece "
                    "is .str.split('-').str[0]."
                )
            pieces = range(3 if made.keeps else made.most + 1)
            return _framed(self._column, {i: _expr.piece(made, i) for i in pieces})

        return part

    if not TYPE_CHECKING:  # to checkers a name that is not listed is an error
        __getattr__ = _unlisted

    def _given(self, value: Any) -> Any:
        """An argument, or the expressions of the tracked columns that it is."""
        if isinstance(value, list):
            return [self._given(v) for v in value]
        return self._column._other(value) if isinstance(value, BoundColumn) else value

    def _extract(self, *args: Any, **words: Any) -> Any:
        """The groups of a pattern where it first matches: a frame, or with ``expand=False`` and one
        group a column."""
        try:
            pat, flags, expand = _taken(*args, **words)
        except TypeError:
            raise BadType(".str.extract takes (pat, flags, expand) here, nothing else.") from None
        found = _expr.extracted(self._column._expr, pat, flags)
        if _validate.flag(expand, "expand") or len(found) > 1:
            return _framed(self._column, found)
        ((name, expr),) = found.items()
        return self._column._new(expr) if name == 0 else self._column._new(expr, name)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, slice):
            return self.get(key)
        return self.slice(key.start, key.stop, key.step)


def _taken(pat: Any, flags: Any = 0, expand: Any = True) -> tuple[Any, Any, Any]:
    return pat, flags, expand


def _framed(column: Any, columns: Mapping[Any, Expr]) -> Any:
    """A tracked frame of the rows of a column."""
    frame = column._frame
    return frame._new(frame._selection.replace_columns(dict(columns)))


class TimeParts(Times, Parts):
    """``.dt``: parts of a time or a duration are attributes; what has parameters in pandas is
    called."""

    _accessor, _of, _kinds = ".dt", "timestamps", ("time", "duration")

    def _names(self) -> Iterable[str]:
        if self._column._expr.kind == "duration":
            return [*_expr.DURATIONS, "floor", "ceil", "round"]
        calls = [n for n in _expr.DATE_METHODS if n != "total_seconds"]
        return [*(_expr.DATES.keys() - _expr.HIDDEN), *_expr.DATE_NAMES, *calls, "isocalendar"]

    def _unlisted(self, name: str) -> Any:
        self._checked(name)
        if name == "isocalendar":
            return self._isocalendar
        make = _expr.DATE_METHODS.get(name)
        if make is None:
            return self._column._new(_expr.time_part(self._column._expr, name))
        return lambda *args, **options: self._made(make, name, args, options)

    if not TYPE_CHECKING:  # to checkers a name that is not listed is an error
        __getattr__ = _unlisted

    def _isocalendar(self, *args: Any, **words: Any) -> IsoCalendar:
        """Parts of the calendar of weeks."""
        if args or words:
            raise BadType(".dt.isocalendar takes no arguments: .dt.isocalendar().week.")
        return IsoCalendar(self._column)


class CategoryParts(Parts):
    """``.cat`` of a column with declared keys, which are its categories in their order: those of a
    dtype are people's."""

    _accessor, _of, _kinds = ".cat", "categories", ("text", "label", "number", "bool")

    def _names(self) -> Iterable[str]:
        return ["categories", "codes", "rename_categories", "as_ordered", "as_unordered"]

    def _keys(self) -> list[Any]:
        """The declared keys, in order."""
        keys = self._column._frame._selection.values(self._column._expr)
        if keys is None:
            raise need_keys(self._column.name, ".cat")
        return list(_expr.in_order(keys))

    @property
    def categories(self) -> pd.Index[Any]:
        """The declared keys, in order."""
        return index_of(self._keys(), None)

    @property
    def codes(self) -> Any:
        """The place of each cell among the keys; -1 for null, null for what is no key."""
        x = self._column._expr
        places = _expr.map_dict(x, {key: i for i, key in enumerate(self._keys())})
        return self._column._new(_expr.choose(_expr.is_null(x), -1, places), None)

    def rename_categories(self, new_categories: Any) -> Any:
        """Other names for the keys: a dict, a list of as many, or a function."""
        keys = self._keys()
        if callable(new_categories):
            new_categories = {key: new_categories(key) for key in keys}
        if not isinstance(new_categories, Mapping):
            names = _expr.listed(new_categories, "rename_categories")
            if len(names) != len(keys):
                raise BadValue(
                    f"rename_categories is given {len(names)} names for {len(keys)} keys."
                )
            new_categories = dict(zip(keys, names, strict=True))
        return self._column.replace(dict(new_categories))

    def as_ordered(self) -> Any:
        """The column as it is: keys have an order."""
        return self._column

    as_unordered = as_ordered

    def _unlisted(self, name: str) -> Any:
        self._checked(name)
        return object.__getattribute__(self, name)

    if not TYPE_CHECKING:  # to checkers a name that is not listed is an error
        __getattr__ = _unlisted


class IsoCalendar(Weeks, Parts):
    """``.dt.isocalendar()``: year, week and day of the calendar of weeks, as attributes or in
    brackets."""

    _accessor, _of, _kinds = ".dt.isocalendar()", "timestamps", ("time",)

    def _names(self) -> Iterable[str]:
        return _expr.ISO

    def _unlisted(self, name: str) -> Any:
        self._checked(name)
        return self._column._new(_expr.iso_part(self._column._expr, name), name)

    if not TYPE_CHECKING:  # to checkers a name that is not listed is an error
        __getattr__ = _unlisted

    def __getitem__(self, key: Any) -> Any:
        return getattr(self, str(key))
