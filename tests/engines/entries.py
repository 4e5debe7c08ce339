"""The entries of the catalogue of functions, as lists for parameters, and their examples as expressions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from dpframe import _expr as ex
from dpframe._expr import Expr
from dpframe._frame.columns.numpy import find_ufunc, list_ufuncs

UFUNCS: dict[str, Callable[..., Expr]] = {
    name: make for name in list_ufuncs() if (make := find_ufunc(name)) is not None
}
NUMBERS = [
    label for label, op in ex.list_ops("np").items() if len(ex.signature_of(op).parameters) == 1
]
PAIRS = [label for label in ex.list_ops("np") if label not in NUMBERS]
TEXTS = list(ex.list_ops("str"))
TIMES = list(ex.list_ops("dt", "time"))
DURATIONS = list(ex.list_ops("dt", "duration"))
ATTRIBUTES = [label for label, op in ex.list_ops("dt", "time").items() if op.attribute]


def operand_of(op: Any, x: Expr) -> Expr:
    """Return what an entry is asked of: a text, or a text that is split."""
    return ex.text_part(x, "split", "-") if op.of == ("other",) else x


def apply_example(op: Any, example: tuple[Any, ...], x: Expr) -> Expr:
    """Return the expression of an example, with the column `x` in place of its cell."""
    return ex.call_function(op.name, operand_of(op, x), *example[1:-1])


def write_example(op: Any, example: tuple[Any, ...]) -> str | None:
    """Return the text of an example behind a column, or None if its arguments have none."""
    plain = (str, int, float, bool, type(None), tuple)
    if not all(isinstance(arg, plain) for arg in example[1:-1]):
        return None
    call = "" if op.attribute else f"({', '.join(map(repr, example[1:-1]))})"
    return f".{op.name}{call}{'.str[0]' if op.kind == 'other' else ''}"


def list_required(op: Any) -> list[str]:
    """Return the names of the arguments that a user has to give."""
    parameters = list(ex.signature_of(op).parameters.values())[1:]
    return [p.name for p in parameters if p.default is inspect.Parameter.empty]
