"""Tracing of functions of one value, as ``map`` and ``apply`` take them.

A function is called with a value that holds no cell. Operators and methods of the value make
expressions. A branch on it is taken both ways, one call after the other. So the function becomes an
expression of one row before any row is read.

*Formal guarantee.* The result is built by the constructors of `dpframe._expr` alone. Whatever else
a function does (it counts, draws or prints) is refused where it shows: two traces differ, or
something is printed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from typing import Any, NoReturn, Self

import numpy as np
import pandas as pd

from dpframe import _expr
from dpframe._errors import BadType, DPError, Refused, with_article
from dpframe._expr import Expr
from dpframe._frame.columns.numpy import find_ufunc
from dpframe._frame.columns.operators import OPERATORS, OperatorMethods
from dpframe._types import Arguments

_BRANCHES = 40  # that one call may take, one after the other
_PATHS = 256  # ways through a function

_ADVICE = (
    "Write it with the tracked column: p['x'].where(p['x'] > 1, 0), "
    "np.where(p['x'] > 1, 'a', 'b'), p['x'].map({...}), or as an expression, "
    "p.assign(y='x / 2 if x > 1 else 0')."
)
# Python's own functions that need a value, as functions of an expression.
_KNOWN: dict[Any, Callable[[Expr], Expr]] = {
    str: lambda x: _expr.cast(x, "str"),
    int: lambda x: _expr.cast(x, "int"),
    float: lambda x: _expr.cast(x, "float"),
    bool: lambda x: _expr.cast(x, "bool"),
    abs: _expr.magnitude,
    round: _expr.round_to,
}


def _find_known(function: object) -> Callable[[Expr], Expr] | None:
    """Return the function of expressions that computes what a function of Python such as ``len``
    does.

    Return None for any other function.
    """
    try:
        known = _KNOWN.get(function)
    except TypeError:  # it has no hash
        return None
    if known is not None:
        return known
    op = list_text_methods().get(function)
    return None if op is None else partial(_expr.call_function, op.name)


def list_text_methods() -> dict[Any, _expr.Op]:
    """Return the methods of ``str`` that ``map`` can be given as they are, such as ``str.lower``.

    They are those of the catalogue of expressions that need no argument.
    """
    return {
        op.value: op
        for label, op in _expr.list_ops("str").items()
        if op.value is getattr(str, label, len)
        and all(arg.default is not _expr.REQUIRED for arg in op.args)
    }


class _Branches:
    """The way that each branch goes in one call, and the conditions of the branches."""

    def __init__(self, ways: tuple[bool, ...]):
        self.ways, self.conditions = ways, list[Expr]()

    def take(self, condition: Expr) -> bool:
        """Return which way the next branch goes, and note its condition."""
        if len(self.conditions) >= _BRANCHES:
            raise Refused(
                f"the function has more than {_BRANCHES} branches one after the other. {_ADVICE}"
            )
        self.conditions.append(condition)
        place = len(self.conditions) - 1
        return self.ways[place] if place < len(self.ways) else True


class TracedValue(OperatorMethods):
    """A value without a cell, which a function is called with."""

    __slots__ = ("_branches", "_expr")

    def __init__(self, expr: Expr, branches: _Branches):
        self._expr, self._branches = expr, branches

    @property  # type: ignore[misc]  # as unittest.mock does, since isinstance reads __class__
    def __class__(self) -> Any:
        """The type of a cell that is not null, which `isinstance` looks at."""
        kinds = {"text": str, "bool": bool, "time": pd.Timestamp, "duration": pd.Timedelta}
        return kinds.get(
            self._expr.kind, int if self._expr.integral and not self._expr.nullable else float
        )

    def _new(self, expr: Expr) -> Self:
        return type(self)(expr, self._branches)

    def _operate(self, name: str, *others: object, swapped: bool = False) -> Self:
        operands = [self._expr, *map(_build_expression, others)]
        return self._new(OPERATORS[name].build(*(reversed(operands) if swapped else operands)))

    def __bool__(self) -> bool:
        """Branch on the value: it is true if it is not zero and not empty, as in Python."""
        x = self._expr
        if x.kind == "text":
            x = _expr.compare("!=", x, _expr.constant(""))
        elif x.kind == "number":
            x = _expr.compare("!=", x, _expr.constant(0))
        return self._branches.take(x)

    def __contains__(self, part: object) -> bool:
        found = _expr.text_part(self._expr, "contains", _plain(part), regex=False)
        return self._branches.take(found)

    def __getitem__(self, key: object) -> TracedValue:
        if isinstance(key, slice):
            return self._new(_expr.text_part(self._expr, "slice", key.start, key.stop, key.step))
        return self._new(_expr.text_part(self._expr, "get", key))

    def __getattr__(self, name: str) -> Any:
        """Return an attribute or a method of a time, a duration or a text, such as ``year`` or
        ``upper``.

        The result is another traced value, or a function that returns one.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        x = self._expr
        if x.kind in ("time", "duration"):
            op = _expr.OPS.get(f"dt.{name}")
            if name in _METHODS or (op is not None and not op.attribute):
                return lambda *args: self._new(_expr.time_part(x, name, *args))
            return self._new(_expr.time_part(x, name))
        if x.kind in ("text", "label", "other"):
            return lambda *args: self._new(_expr.text_part(x, name, *args))
        raise Refused(f"a number has no .{name} here. {_ADVICE}")

    def __array_ufunc__(
        self, ufunc: Any, method: object, *inputs: object, **options: object
    ) -> TracedValue:
        make = find_ufunc(ufunc.__name__)
        if make is None or method != "__call__" or options:
            raise Refused(f"np.{ufunc.__name__} is no function of one value here. {_ADVICE}")
        return self._new(make(*map(_build_expression, inputs)))

    def __array_function__(
        self, function: Any, types: object, args: Any, words: Any
    ) -> TracedValue:
        if function is not np.where or words or len(args) != 3:
            raise Refused(f"np.{function.__name__} is no function of one value here. {_ADVICE}")
        return self._new(_expr.choose(*map(_build_expression, args)))

    def _unknown(self, *args: object) -> NoReturn:
        """Refuse a function of Python that needs a single value, such as ``len`` or ``int``.

        A traced value represents the values of all rows, so it has none of its own.
        """
        raise Refused(
            "the function asks for the value of a cell, which nobody looks at: len(), int(), "
            "str(), math and f-strings do. Write p['x'].str.len(), p['x'].astype('int'), "
            "np.log(p['x']), or p['x'].map(len) with such a function alone."
        )

    __len__ = __int__ = __float__ = __index__ = __complex__ = __str__ = __format__ = __iter__ = (
        _unknown
    )
    __reduce__ = __array__ = __trunc__ = __floor__ = __ceil__ = _unknown

    def __repr__(self) -> str:
        return f"<a value of {self._expr}>"

    def __round__(self, decimals: int = 0) -> TracedValue:
        return self._new(_expr.round_to(self._expr, decimals))

    def __pos__(self) -> Self:
        return self


_METHODS = ("weekday", "date")  # of a timestamp; attributes of a column


def _plain(value: object) -> Any:
    return value._expr if type(value) is TracedValue else value


def _build_expression(value: object) -> Expr:
    """Return a traced value or a constant as an expression."""
    plain = _plain(value)
    return plain if type(value) is TracedValue else _expr.constant(plain, null=True)


def trace_function(
    function: Callable[..., object], x: Expr, args: Arguments = (), words: object = None
) -> Expr:
    """Return the expression of what a function makes of one value.

    ``x`` is the expression of the value, and ``args`` and ``words`` are further arguments. A
    function that cannot be written as an expression is refused.
    """
    known = _find_known(function)
    if known is not None and not args and not words:
        return known(x)
    found, again = (_explore(function, x, args, words or {}) for _ in range(2))
    if found != again:
        raise Refused(
            "the function gives another answer each time that it is called: it counts or draws at "
            f"random. {_ADVICE}"
        )
    return found


def _explore(function: Callable[..., object], x: Expr, args: Arguments, words: object) -> Expr:
    """Call a function once for each way through its branches, and return one expression of all.

    ``x`` is the expression of its value, and ``args`` and ``words`` are further arguments.
    """
    paths = 0

    def follow(ways: tuple[bool, ...]) -> Expr:
        """Return the expression of the function, whose first branches went these ways."""
        nonlocal paths
        paths += 1
        if paths > _PATHS:
            raise Refused(f"the function has more than {_PATHS} ways through it. {_ADVICE}")
        branches = _Branches(ways)
        result = _call(function, TracedValue(x, branches), args, words)
        if len(branches.conditions) <= len(ways):
            return result
        condition = branches.conditions[len(ways)]
        return _expr.choose(condition, follow((*ways, True)), follow((*ways, False)))

    return follow(())


def _call(function: Callable[..., Any], value: TracedValue, args: Arguments, words: Any) -> Expr:
    """Return the expression of one call of a function; its errors and prints are refused.

    ``value`` is the traced value that it gets, and ``args`` and ``words`` are further arguments.
    """
    printed = StringIO()
    try:
        with redirect_stdout(printed):
            result = function(value, *args, **words)
    except DPError:
        raise
    except TypeError as error:
        if "unhashable" in str(error):
            raise Refused(
                "the function looks its value up in a dict or a set. Write p['x'].map({...}) with "
                "the dict, or p['x'].isin([...])."
            ) from None
        raise _describe_failure(error) from None
    except Exception as error:
        raise _describe_failure(error) from None
    if printed.getvalue():
        raise Refused(f"the function prints, which it does once and not for each row. {_ADVICE}")
    if isinstance(result, list | tuple | dict | set | np.ndarray | pd.Series | pd.DataFrame):
        raise BadType(
            f"the function gives {with_article(type(result).__name__)}, and a cell holds one "
            f"value. {_ADVICE}"
        )
    return _build_expression(result)


def _describe_failure(error: Exception) -> Refused:
    """Return the error about a function that raised while it was traced."""
    return Refused(
        f"the function raises {type(error).__name__} where it is called with a value that writes "
        f"down what is done to it. {_ADVICE}"
    )
