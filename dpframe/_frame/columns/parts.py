"""``.str`` and ``.dt`` of a tracked column: the attribute's name picks the part, and one that is not offered is no attribute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from typing import Any, NoReturn

from dpframe import _expr
from dpframe._errors import BadType, NotOffered
from dpframe._expr import Expr, Kind
from dpframe._frame.selection import Taken
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
        return {*_expr.TEXT, *_expr.TEXT_METHODS, "extract"}

    def __getattr__(self, name: str) -> Any:
        expr = self._column._expr
        if not isinstance(expr, _expr.Split):
            self._checked(name)

        def part(*args: Any, **options: Any) -> Any:
            taken = [self._given(a) for a in args]
            made = _expr.text_part(expr, name, *taken, **{k: self._given(v) for k, v in options.items()})
            if isinstance(made, _expr.Split) and (made.keeps or options.get("expand")):
                return self._spread(made, options.get("expand", True))
            return self._column._new(made)

        return part

    def _given(self, value: Any) -> Any:
        """An argument, or the expressions of the tracked columns that it is."""
        if isinstance(value, list):
            return [self._given(v) for v in value]
        return self._column._other(value) if isinstance(value, Taken) else value

    def _spread(self, made: _expr.Split, expand: Any) -> Any:
        """A column for each piece, as a frame."""
        if not expand:
            return self._column._new(made)
        if made.most < 0:
            raise BadType(
                ".str.split(expand=True) would tell how many pieces there are at most. Say how many splits: n=1. One piece is "
                ".str.split('-').str[0]."
            )
        pieces = range(3 if made.keeps else made.most + 1)
        return _framed(self._column, {i: _expr.piece(made, i) for i in pieces})

    def extract(self, pat: Any, flags: Any = 0, expand: Any = True) -> Any:
        """The groups of a pattern where it first matches: a frame, or with ``expand=False`` and one group a column."""
        self._checked("extract")
        found = _expr.extracted(self._column._expr, pat, flags)
        if expand or len(found) > 1:
            return _framed(self._column, found)
        ((name, expr),) = found.items()
        return self._column._new(expr) if name == 0 else self._column._new(expr, name)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, slice):
            return self.get(key)
        return self.slice(key.start, key.stop, key.step)


def _framed(column: Any, columns: Mapping[Any, Expr]) -> Any:
    """A tracked frame of the rows of a column."""
    frame = column._frame
    return frame._new(frame._selection.having(dict(columns)))


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
