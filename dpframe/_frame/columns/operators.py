"""Operators of tracked columns, tracked frames and traced values: one table, and the methods that
Python calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar, cast

from dpframe import _expr
from dpframe._errors import NotOffered
from dpframe._expr import Expr

Operand = TypeVar("Operand", bound="OperatorMethods")


class OperatorMethod(Protocol):
    """A method that takes another operand, and returns what it is a method of."""

    def __get__(self, instance: Operand, owner: type[Any]) -> Callable[..., Operand]: ...


class Operator(NamedTuple):
    """An operator by Python's name of it: ``add`` for ``+`` and ``__add__``."""

    name: str
    build: Callable[..., Expr]  # makes the expression from those of the operands
    ufuncs: tuple[str, ...] = ()  # numpy's functions that make the same expression


def _arithmetic(name: str, symbol: str, *ufuncs: str) -> Operator:
    return Operator(name, lambda left, right: _expr.operate(symbol, left, right), ufuncs)


def _comparison(name: str, symbol: str, *ufuncs: str) -> Operator:
    return Operator(name, lambda left, right: _expr.compare(symbol, left, right), ufuncs)


OPERATORS: dict[str, Operator] = {
    operator.name: operator
    for operator in (
        _arithmetic("add", "+", "add"),
        _arithmetic("sub", "-", "subtract"),
        _arithmetic("mul", "*", "multiply"),
        _arithmetic("truediv", "/", "divide"),
        _arithmetic("floordiv", "//", "floor_divide"),
        _arithmetic("mod", "%", "remainder"),
        _arithmetic("pow", "**", "power", "float_power"),
        _comparison("eq", "==", "equal"),
        _comparison("ne", "!=", "not_equal"),
        _comparison("lt", "<", "less"),
        _comparison("le", "<=", "less_equal"),
        _comparison("gt", ">", "greater"),
        _comparison("ge", ">=", "greater_equal"),
        Operator("and", _expr.logical_and, ("logical_and", "bitwise_and")),
        Operator("or", _expr.logical_or, ("logical_or", "bitwise_or")),
        Operator("xor", _expr.logical_xor, ("logical_xor", "bitwise_xor")),
        Operator("invert", _expr.logical_not, ("invert", "logical_not")),
        Operator("neg", _expr.minus, ("negative",)),
        Operator("pos", lambda x: _expr.negate(_expr.negate(x))),
        Operator("abs", _expr.magnitude),
    )
}
# Expressions by the names of numpy's functions that do what an operator does.
OPERATOR_UFUNCS: dict[str, Callable[..., Expr]] = {
    ufunc: operator.build for operator in OPERATORS.values() for ufunc in operator.ufuncs
}


class OperatorMethods:
    """Python's operators. A class that inherits them says in `_operate` what they make of it."""

    __slots__ = ()
    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # == makes a condition, so this is no key of a dict

    def _operate(self, name: str, *others: object, swapped: bool = False) -> Self:
        """Return what the operator of this name makes of this operand and the others.

        With ``swapped`` this operand is the right one. Each class of operands defines it.
        """
        raise NotImplementedError

    def __add__(self, other: object) -> Self:
        return self._operate("add", other)

    def __radd__(self, other: object) -> Self:
        return self._operate("add", other, swapped=True)

    def __sub__(self, other: object) -> Self:
        return self._operate("sub", other)

    def __rsub__(self, other: object) -> Self:
        return self._operate("sub", other, swapped=True)

    def __mul__(self, other: object) -> Self:
        return self._operate("mul", other)

    def __rmul__(self, other: object) -> Self:
        return self._operate("mul", other, swapped=True)

    def __truediv__(self, other: object) -> Self:
        return self._operate("truediv", other)

    def __rtruediv__(self, other: object) -> Self:
        return self._operate("truediv", other, swapped=True)

    def __floordiv__(self, other: object) -> Self:
        return self._operate("floordiv", other)

    def __rfloordiv__(self, other: object) -> Self:
        return self._operate("floordiv", other, swapped=True)

    def __mod__(self, other: object) -> Self:
        return self._operate("mod", other)

    def __rmod__(self, other: object) -> Self:
        return self._operate("mod", other, swapped=True)

    def __pow__(self, other: object) -> Self:
        return self._operate("pow", other)

    def __rpow__(self, other: object) -> Self:
        return self._operate("pow", other, swapped=True)

    def __eq__(self, other: object) -> Self:  # type: ignore[override]  # as a Series compares
        return self._operate("eq", other)

    def __ne__(self, other: object) -> Self:  # type: ignore[override]  # as a Series compares
        return self._operate("ne", other)

    def __lt__(self, other: object) -> Self:
        return self._operate("lt", other)

    def __le__(self, other: object) -> Self:
        return self._operate("le", other)

    def __gt__(self, other: object) -> Self:
        return self._operate("gt", other)

    def __ge__(self, other: object) -> Self:
        return self._operate("ge", other)

    def __and__(self, other: object) -> Self:
        return self._operate("and", other)

    def __or__(self, other: object) -> Self:
        return self._operate("or", other)

    def __xor__(self, other: object) -> Self:
        return self._operate("xor", other)

    __rand__ = __and__
    __ror__ = __or__
    __rxor__ = __xor__

    def __invert__(self) -> Self:
        return self._operate("invert")

    def __neg__(self) -> Self:
        return self._operate("neg")

    def __pos__(self) -> Self:
        return self._operate("pos")

    def __abs__(self) -> Self:
        return self._operate("abs")


# Methods that pandas has beside the operators ---------------------------------------------------


def find_operator(method: str) -> tuple[str, bool]:
    """Return the operator of one of pandas' methods, and whether the method swaps the operands.

    ``rsub`` is ``sub`` with swapped operands.
    """
    if method == "div":
        return "truediv", False
    if method in OPERATORS:
        return method, False
    operator, _ = find_operator(method.removeprefix("r"))
    return operator, True


def column_method(name: str) -> OperatorMethod:
    """Return the method of columns that does what an operator does: ``p["x"].add(2)``.

    ``name`` is the method, such as "add" or "rsub".
    """
    operator, swapped = find_operator(name)

    def method(
        self: Operand,
        other: object,
        level: None = None,
        fill_value: object = None,
        axis: object = 0,
    ) -> Operand:
        """Apply the operator to this column and another operand.

        pandas' ``level`` and ``fill_value`` are refused, and ``axis`` changes nothing.
        """
        if level is not None or fill_value is not None:
            raise NotOffered(
                f"{name} takes neither level= nor fill_value=: write p['x'].fillna(0) before it."
            )
        if swapped and isinstance(other, OperatorMethods):
            first = cast(Operand, other)  # which names the column
            return first._operate(operator, self)
        return self._operate(operator, other, swapped=swapped)

    method.__name__ = name
    method.__doc__ = f"Apply the operator by its name: ``p['x'].{name}(2)``."
    return cast(OperatorMethod, method)
