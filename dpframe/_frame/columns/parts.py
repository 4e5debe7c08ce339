"""``.str`` and ``.dt`` of a tracked column: the attribute's name picks the part, and one that is not offered is no attribute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from typing import Any, NoReturn

from dpframe import _expr
from dpframe._errors import BadType, NotOffered
from dpframe._expr import Expr, Kind
from dpframe._refusals import Unprinted


class Parts(Unprinted):
    """What an accessor has: parts that are attributes, and parts that are called."""

    _accessor: str
    _of: str
    _kinds: tuple[Kind, ...]

    def __init__(self, column: Any):
        self._column = column

    def _names(self) -> Iterable[str]:
        raise NotImplementedError

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
            raise NotOffered(f"{self._accessor} needs {self._of}, and {expr} ({expr.kind}) is none.")
        if name not in self._names():
            raise NotOffered(
                f"{self._accessor}.{name} is not offered. Use one of {', '.join(sorted(self._names()))}."
            )

    def __call__(self, *args: Any, **options: Any) -> NoReturn:
        raise BadType("what is called is a part: p['name'].str.lower(), p['when'].dt.normalize().")

    def __dir__(self) -> Iterable[str]:
        return sorted(self._names())

    def __getitem__(self, key: Any) -> Any:
        raise BadType("only .str takes brackets.")

    def __repr__(self) -> str:
        return f"{self._column!r}{self._accessor}: {', '.join(dir(self))}"


class TextParts(Parts):
    """``.str``: each part is called."""

    _accessor, _of, _kinds = ".str", "strings", ("text", "label")

    def _names(self) -> Iterable[str]:
        return _expr.TEXT

    def __getattr__(self, name: str) -> Any:
        self._checked(name)
        return lambda *args, **options: self._column._new(
            _expr.str_part(self._column._expr, name, *args, **options)
        )

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, slice):
            return self.get(key)
        return self.slice(key.start, key.stop, key.step)


class TimeParts(Parts):
    """``.dt``: parts of a time or a duration are attributes; what has parameters in pandas is called."""

    _accessor, _of, _kinds = ".dt", "timestamps", ("time", "duration")

    def _names(self) -> Iterable[str]:
        if self._column._expr.kind == "duration":
            return [*_expr.DURATIONS, "floor", "ceil", "round"]
        calls = [n for n in _expr.DATE_METHODS if n != "total_seconds"]
        return [*(_expr.DATES.keys() - _expr.HIDDEN), *_expr.DATE_NAMES, *calls, "isocalendar"]

    def __getattr__(self, name: str) -> Any:
        self._checked(name)
        if name == "isocalendar":
            return lambda: IsoCalendar(self._column)
        make = _expr.DATE_METHODS.get(name)
        if make is None:
            return self._column._new(_expr.time_part(self._column._expr, name))
        return lambda *args, **options: self._made(make, name, args, options)


class IsoCalendar(Parts):
    """``.dt.isocalendar()``: year, week and day of the calendar of weeks, as attributes or in brackets."""

    _accessor, _of, _kinds = ".dt.isocalendar()", "timestamps", ("time",)

    def _names(self) -> Iterable[str]:
        return _expr.ISO

    def __getattr__(self, name: str) -> Any:
        self._checked(name)
        return self._column._new(_expr.iso_part(self._column._expr, name), name)

    def __getitem__(self, key: Any) -> Any:
        return getattr(self, str(key))
