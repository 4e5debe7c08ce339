"""The verbs of a surface: what help shows of their arguments, and errors in plain words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from types import FunctionType
from typing import Any, TypeVar, cast, get_type_hints

from dpframe._arguments import check_methods, correct_arguments, show_signature, was_entered
from dpframe._plans.price import DEFAULTS, Payment

F = TypeVar("F", bound=Callable[..., Any])

PRICE: tuple[Parameter, ...] = tuple(
    Parameter(word, Parameter.KEYWORD_ONLY, default=DEFAULTS.get(word), annotation=kind)
    for word, kind in get_type_hints(Payment).items()
)


def verb(function: F) -> F:
    """Show the keyword arguments of a price in the signature of a verb.

    The function takes them as ``**payment``, and help and completion list them by name.
    """
    own = signature(function)
    keywords = Parameter.VAR_KEYWORD
    fixed = [p for p in own.parameters.values() if p.kind is not keywords]
    others = [p for p in own.parameters.values() if p.kind is keywords and p.name != "payment"]
    shown = own.replace(parameters=[*fixed, *PRICE, *others])
    show_signature(cast(FunctionType, function), shown)
    return function


def check_arguments(function: FunctionType, defaults: Mapping[str, object]) -> FunctionType:
    """Return a verb that explains arguments that do not fit.

    An argument of pandas at its default, one of ``defaults``, is left out.
    """

    @wraps(function)
    def checked(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except TypeError as error:
            if was_entered(error):
                raise
            corrected = correct_arguments(function, args[1:], named, defaults)
        return checked(*args, **corrected)

    return _mark(checked)


def fill_column(function: FunctionType, defaults: Mapping[str, object]) -> FunctionType:
    """Return a verb of frames as a verb of columns: the column takes the place of an argument.

    Arguments that do not fit are explained as `check_arguments` does.
    """

    @wraps(function)
    def checked(column: Any, *args: Any, **named: Any) -> Any:
        try:
            return function(column._frame, column, *args, **named)
        except TypeError as error:
            if was_entered(error):
                raise
            corrected = correct_arguments(function, args, named, defaults, given=2)
        return checked(column, *args, **corrected)

    return _mark(checked)


def _mark(function: object) -> FunctionType:
    """Return a function whose arguments are checked, marked as such."""
    checked = cast(FunctionType, function)
    vars(checked)["_checks_arguments"] = True
    return checked


def explain_arguments(kind: type, like: type) -> None:
    """Let all public verbs of a class explain arguments that do not fit.

    ``like`` is the class of pandas whose defaults change nothing here.
    """
    check_methods(kind, like, check_arguments)
