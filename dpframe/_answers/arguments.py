"""Methods of answers that explain arguments that do not fit."""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from types import FunctionType
from typing import Any, cast

from dpframe._arguments import check_methods, correct_arguments, was_entered


def explain_arguments(kind: type) -> None:
    """Let all public methods of a class of answers explain arguments that do not fit."""
    check_methods(kind, (object,), _check_arguments)


def _check_arguments(method: FunctionType, defaults: Mapping[str, object]) -> FunctionType:
    """Return a method that explains arguments that do not fit.

    An argument that is given at its value in ``defaults`` is left out.
    """

    @wraps(method)
    def checked(*args: object, **named: object) -> Any:
        """Call the method; if its arguments do not fit, correct them or refuse them by name.

        An error from inside the method is raised as it is.
        """
        try:
            return method(*args, **named)
        except TypeError as error:
            if was_entered(error):
                raise
            corrected = correct_arguments(method, args[1:], named, defaults)
        return checked(*args, **corrected)

    vars(checked)["_checks_arguments"] = True
    return cast(FunctionType, checked)
