"""One verb for frames, groups and columns: the same function, with the signature and the docstring
that each of them shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from types import FunctionType
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import pandas as pd

from dpframe import _validate
from dpframe._arguments import read_defaults
from dpframe._frame.signatures import fill_column

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R")


def sideways(payment: Mapping[str, Any]) -> bool:
    """Whether pandas' ``axis=`` says that the columns of one row are put together."""
    return _validate.among(payment["axis"], (1, "columns"))


def of_groups(verb: F, doc: str) -> F:
    """The verb of a frame as groups have it: without a column it is of those that are selected, not
    of all."""
    found: Any = cast(FunctionType, verb)
    defaults = (None, *found.__defaults__[1:])
    own: Any = FunctionType(
        found.__code__, found.__globals__, found.__name__, defaults, found.__closure__
    )
    own.__kwdefaults__, own.__annotations__ = found.__kwdefaults__, found.__annotations__
    own.__doc__, own.__module__ = doc, found.__module__
    parameters = list(signature(found).parameters.values())
    parameters[1] = parameters[1].replace(default=None)
    own.__signature__ = signature(found).replace(parameters=parameters)
    return cast(F, own)


def of_column(
    verb: Callable[Concatenate[Any, Any, P], Any],
) -> Callable[[Callable[[C], R]], Callable[Concatenate[C, P], R]]:
    """A decorator that gives a method of columns the arguments of the verb of a frame, in which the
    column is filled in, and its work. The method itself says what comes back, and has the
    docstring."""
    function = cast(FunctionType, verb)
    first, _, *others = signature(function).parameters.values()

    def filled(method: Callable[[C], R]) -> Callable[Concatenate[C, P], R]:
        own: Any = fill_column(function, read_defaults(getattr(pd.Series, function.__name__, None)))
        own.__qualname__, own.__doc__ = f"PrivateColumn.{function.__name__}", method.__doc__
        own.__signature__ = signature(method).replace(
            parameters=[first.replace(annotation=Parameter.empty), *others]
        )
        return cast("Callable[Concatenate[C, P], R]", own)

    return filled
