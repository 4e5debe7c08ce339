"""``.str``, ``.dt`` and ``.cat`` of a tracked column, whose parts are in the catalogue."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from dpframe import _expr, _validate
from dpframe._cells.codec import index_of
from dpframe._errors import BadType, BadValue, NotOffered, did_you_mean, find_close_name
from dpframe._expr import Expr, Kind
from dpframe._frame.selection import (
    BoundColumn,
    expression_of,
    frame_of_column,
    selection_of,
    with_expression,
)
from dpframe._frame.tracked import read_expression, with_selection
from dpframe._frame.typed.parts import Texts, Times, Weeks
from dpframe._groups.keys import need_keys
from dpframe._refusals import Unprinted
from dpframe._types import Index


class Parts(Unprinted, ABC):
    """An accessor such as ``.str``, with attributes and methods that make other columns."""

    _accessor: str
    _of: str
    _kinds: tuple[Kind, ...]

    def __init__(self, column: Any):
        self._column = column

    @abstractmethod
    def _names(self) -> Iterable[str]:
        """Return the names of the parts."""

    def _check_name(self, name: str) -> None:
        """Raise if ``name`` is not a method or attribute of ``.str``, ``.dt`` or ``.cat``.

        Raise also if the column has no values of the type that the accessor is for.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        expr = expression_of(self._column)
        if expr.kind not in self._kinds:
            dates = expr.kind == "text" and self._accessor == ".dt"
            step = " Texts that are dates become times by pd.to_datetime(p['x'])." if dates else ""
            raise NotOffered(
                f"{self._accessor} needs {self._of}, and {expr} ({expr.kind}) is not one.{step}"
            )
        if name not in self._names():
            close = find_close_name(name, dir(self))
            raise NotOffered(
                f"{self._accessor}.{name} is not "
                f"offered.{did_you_mean(name, dir(self)) if close else ''} "
                f"Use one of {', '.join(dir(self))}."
            )

    def __call__(self, *args: object, **options: object) -> NoReturn:
        raise BadType("what is called is a part: p['name'].str.lower(), p['when'].dt.normalize().")

    def __dir__(self) -> Iterable[str]:
        return sorted({*self._names()})

    def __getitem__(self, key: object) -> Any:
        raise BadType("only .str takes brackets.")

    def __repr__(self) -> str:
        return f"{self._column!r}{self._accessor}: {', '.join(dir(self))}"


class TextParts(Texts, Parts):
    """``.str``: each part is called."""

    _accessor, _of, _kinds = ".str", "strings", ("text", "label")

    def _names(self) -> Iterable[str]:
        return _expr.list_ops("str")

    def _find_part(self, name: str) -> Any:
        if not _expr.is_split(expression_of(self._column)):
            self._check_name(name)
        ask = self._extract if name == "extract" else partial(self._ask, name)
        return _as_method(f"str.{name}", ask)

    if not TYPE_CHECKING:  # to checkers a name that is not listed is an error
        __getattr__ = _find_part

    def _ask(self, name: str, *args: object, **words: object) -> Any:
        """Return the column that a string method makes, such as ``.str.lower()``.

        ``name`` is the method, and the other arguments are its own. With ``expand=True`` the pieces
        of a split text are the columns of a frame.
        """
        given = {k: self._find_expressions(v) for k, v in words.items()}
        x = expression_of(self._column)
        found = _expr.text_part(x, name, *map(self._find_expressions, args), **given)
        keeps = _expr.keeps_separator(found)
        if not _expr.is_split(found) or not _validate.flag(words.get("expand", keeps), "expand"):
            return with_expression(self._column, found)
        number = _expr.count_pieces(found)
        if number is None:
            raise BadType(
                ".str.split(expand=True) would tell how many pieces there are at most. Say how "
                "many splits: n=1. One piece "
                "is .str.split('-').str[0]."
            )
        pieces: dict[Any, Expr] = {i: _expr.piece(found, i) for i in range(number)}
        return _make_frame(self._column, pieces)

    def _find_expressions(self, value: Any) -> Any:
        """Return an argument with the expression of each tracked column that is in it."""
        if isinstance(value, list):
            return [self._find_expressions(v) for v in value]
        return (
            read_expression(frame_of_column(self._column), value)
            if isinstance(value, BoundColumn)
            else value
        )

    def _extract(self, *args: object, **words: object) -> Any:
        """Return the groups of a pattern where it first matches: a frame, or one column."""
        op = _expr.OPS["str.extract"]
        try:
            given = _expr.method_signature(op).bind(*args, **words)
        except TypeError:
            wanted = _expr.list_parameters(op)
            raise BadType(f".str.extract takes ({wanted}) here, nothing else.") from None
        given.apply_defaults()
        pat, flags, expand = given.args
        found = _expr.extract(expression_of(self._column), pat, flags)
        if _validate.flag(expand, "expand") or len(found) > 1:
            return _make_frame(self._column, found)
        ((name, expr),) = found.items()
        return with_expression(self._column, expr, ... if name == 0 else name)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, slice):
            return self.get(key)
        return self.slice(key.start, key.stop, key.step)


def _make_frame(column: Any, columns: Mapping[Any, Expr]) -> Any:
    """Return a tracked frame of the rows of a column."""
    frame = frame_of_column(column)
    return with_selection(frame, selection_of(frame).replace_columns(dict(columns)))


def _as_method(name: str, ask: Callable[..., object]) -> Callable[..., Any]:
    """Return a function as a method of ``.str`` or ``.dt``, with the signature and docstring it has
    there.

    ``name`` is that of the method in the catalogue of expressions.
    """

    def part(*args: object, **words: object) -> Any:
        return ask(*args, **words)

    op = _expr.OPS.get(name)
    if op is not None:
        part.__name__, part.__doc__ = op.label, op.doc
        part.__signature__ = _expr.method_signature(op)  # type: ignore[attr-defined]  # of inspect
    return part


class TimeParts(Times, Parts):
    """``.dt``: parts of a time or a duration are attributes; what has parameters in pandas is
    called."""

    _accessor, _of, _kinds = ".dt", "timestamps", ("time", "duration")

    def _names(self) -> Iterable[str]:
        kind = expression_of(self._column).kind
        return [*_expr.list_ops("dt", kind), *(["isocalendar"] if kind == "time" else [])]

    def _find_part(self, name: str) -> Any:
        """Return an attribute or a method of ``.dt`` by its name, such as ``year`` or
        ``normalize``.

        An attribute is the new column itself. A method is a function that returns the new column.
        """
        self._check_name(name)
        if name == "isocalendar":
            return self._isocalendar
        if _expr.OPS[f"dt.{name}"].attribute:
            return self._ask(name)
        return _as_method(f"dt.{name}", partial(self._ask, name))

    if not TYPE_CHECKING:  # to checkers a name that is not listed is an error
        __getattr__ = _find_part

    def _ask(self, name: str, *args: Any, **words: Any) -> Any:
        """Return the column that a part is, with its arguments."""
        return with_expression(
            self._column, _expr.time_part(expression_of(self._column), name, *args, **words)
        )

    def _isocalendar(self, *args: object, **words: object) -> IsoCalendar:
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
        """Return the declared keys, in order."""
        keys = selection_of(frame_of_column(self._column)).values(expression_of(self._column))
        if keys is None:
            raise need_keys(self._column.name, ".cat")
        return list(_expr.in_order(keys))

    @property
    def categories(self) -> Index:
        """The declared keys, in order."""
        return index_of(self._keys(), None)

    @property
    def codes(self) -> Any:
        """A column with the position of each value among the declared keys.

        It is -1 for a null, and null for a value that is not a key.
        """
        x = expression_of(self._column)
        places = _expr.map_dict(x, {key: i for i, key in enumerate(self._keys())})
        return with_expression(self._column, _expr.choose(_expr.is_null(x), -1, places), None)

    def rename_categories(self, new_categories: Any) -> Any:
        """Return the column with other names for the keys: a dict, a list, or a function."""
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
        """Return the column as it is. Keys have an order."""
        return self._column

    as_unordered = as_ordered

    def _find_part(self, name: str) -> Any:
        self._check_name(name)
        return object.__getattribute__(self, name)

    if not TYPE_CHECKING:  # to checkers a name that is not listed is an error
        __getattr__ = _find_part


class IsoCalendar(Weeks, Parts):
    """``.dt.isocalendar()``: year, week and day of the calendar of weeks, as attributes or in
    brackets."""

    _accessor, _of, _kinds = ".dt.isocalendar()", "timestamps", ("time",)

    def _names(self) -> Iterable[str]:
        return _expr.list_ops("isocalendar")

    def _find_part(self, name: str) -> Any:
        self._check_name(name)
        return with_expression(
            self._column, _expr.week_part(expression_of(self._column), name), name
        )

    if not TYPE_CHECKING:  # to checkers a name that is not listed is an error
        __getattr__ = _find_part

    def __getitem__(self, key: object) -> Any:
        return getattr(self, str(key))
