"""The verbs of a surface: what help shows of their arguments, and errors in plain words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from types import FunctionType
from typing import Any, TypeVar, cast, get_type_hints

from dpframe._arguments import (
    check_methods,
    correct_arguments,
    drop_idle,
    list_idle,
    show_signature,
    was_entered,
)
from dpframe._plans.price import DEFAULTS, Payment
from dpframe._types import Arguments

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
    return _check(function, defaults)


def fill_column(function: FunctionType, defaults: Mapping[str, object]) -> FunctionType:
    """Return a verb of frames as a verb of columns: the column fills the first argument.

    Arguments that do not fit are explained as `check_arguments` does.
    """

    def fill(args: Arguments, named: Mapping[str, object]) -> Arguments:
        return args[0]._frame, *args

    checked = _check(function, defaults, fill, given=2)
    shown = signature(function)
    first, _, *others = shown.parameters.values()
    nameless = first.replace(annotation=Parameter.empty)
    show_signature(checked, shown.replace(parameters=[nameless, *others]))
    return checked


def fill_selection(function: FunctionType, defaults: Mapping[str, object]) -> FunctionType:
    """Return a verb of frames as a verb of groups: without a column it is of those selected.

    Arguments that do not fit are explained as `check_arguments` does.
    """

    def fill(args: Arguments, named: Mapping[str, object]) -> Arguments:
        return args if len(args) > 1 or "column" in named else (*args, None)

    checked = _check(function, defaults, fill)
    shown = signature(function)
    first, column, *others = shown.parameters.values()
    nameless = first.replace(annotation=Parameter.empty)
    show_signature(
        checked, shown.replace(parameters=[nameless, column.replace(default=None), *others])
    )
    return checked


def _check(
    function: FunctionType,
    defaults: Mapping[str, object],
    fill: Callable[[Arguments, Mapping[str, object]], Arguments] | None = None,
    given: int = 1,
) -> FunctionType:
    """Return a function that explains arguments that do not fit.

    ``fill`` adds arguments by position that the user does not write. The user does not write the
    first ``given`` parameters. Arguments of pandas at a default that means nothing are left out.
    """
    idle = list_idle(function, defaults)
    names = idle.keys()

    @wraps(function)
    def call_verb(*args: object, **named: object) -> Any:
        """Call the verb; if its arguments do not fit, correct them as far as pandas allows, or
        refuse them by name.

        ``fill`` adds arguments that the user does not write. The user does not write the first
        ``given`` parameters. An error from inside the verb is raised as it is.
        """
        if named and not names.isdisjoint(named):
            named = drop_idle(named, idle)
        try:
            return function(*(args if fill is None else fill(args, named)), **named)
        except TypeError as error:
            if was_entered(error):
                raise
            corrected = correct_arguments(function, args[1:], named, defaults, given)
        return call_verb(*args, **corrected)

    vars(call_verb)["_checks_arguments"] = True
    return cast(FunctionType, call_verb)


def show_as(function: FunctionType, qualname: str, doc: str, returns: str | None = None) -> None:
    """Set the name, the docstring and the returned type that help shows for a verb."""
    function.__qualname__, function.__doc__ = qualname, doc
    if returns is not None:
        show_signature(function, signature(function).replace(return_annotation=returns))


def explain_arguments(kind: type, *like: type) -> None:
    """Let all public verbs of a class explain arguments that do not fit.

    ``like`` has the classes of pandas whose defaults change nothing here.
    """
    check_methods(kind, like, check_arguments)
