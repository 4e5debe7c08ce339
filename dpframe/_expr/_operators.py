"""Operators between two values of a row, by their kinds: numbers are added, texts joined, times and
durations moved."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from dpframe._expr._base import Constant, Expr
from dpframe._expr._build import arithmetic, logical_and, logical_not, logical_or, negate

# What an operator is for operands that are no numbers, where one of them is of this kind.
BY_KIND: dict[str, Callable[[str, Expr, Expr], Expr]] = {}


def operate(op: str, left: Expr, right: Expr) -> Expr:
    """Return the expression ``left op right``, whatever the operands are.

    Numbers are added, texts joined, times and durations moved.
    """
    for side in (left, right):
        make = BY_KIND.get(side.kind)
        if make is not None:
            return make(op, left, right)
    return arithmetic(op, left, right)


def minus(x: Expr) -> Expr:
    """Return the expression ``-x`` of a number or a duration."""
    make = BY_KIND.get(x.kind)
    return negate(x) if make is None else make("-", Constant(pd.Timedelta(0)), x)


def logical_xor(left: Expr, right: Expr) -> Expr:
    """Return the condition that exactly one of two conditions holds."""
    return logical_and(logical_or(left, right), logical_not(logical_and(left, right)))
