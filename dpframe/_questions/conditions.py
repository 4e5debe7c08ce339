"""Normal forms of conditions.

Conditions that hold in the same rows, as far as their text shows it, have one code.

*Formal guarantee.* Two conditions with equal codes hold in the same rows of every table
(docs/guarantees/identity.md). The forms know that And and Or are sets of conditions, that a
comparison can be read from both sides, and that one negation cancels another. They also know that a
whole constant is one number, whether it is written 5 or 5.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpframe._cells.encoding import encode
from dpframe._expr._base import Constant, Expr
from dpframe._expr._build import FLIPPED
from dpframe._expr._nodes import And, Compare, IsIn, IsNull, Not, Or

ALL_ROWS = b""
# Below this size no other whole number rounds to the same double.
_WHOLE = 2.0**53


def code_of_condition(condition: Expr | None) -> bytes:
    """Return the code of a condition. Without a condition it is empty."""
    return ALL_ROWS if condition is None else code_of_rows(condition)


def code_of_rows(condition: Expr, also: Expr | None = None) -> bytes:
    """Return bytes that identify the rows where a condition holds, and ``also`` a second one.
    Conditions that plainly select the same rows get equal bytes."""
    parts = {*_codes_of(condition, And)}
    if also is not None:
        parts.update(_codes_of(also, And))
    parts.discard(ALL_ROWS)
    if not parts:
        return ALL_ROWS
    return parts.pop() if len(parts) == 1 else encode(("and", *sorted(parts)))


def _code(condition: Expr) -> bytes:
    """Return bytes that identify one condition. Order, repetitions and double negations make no
    difference."""
    if isinstance(condition, And):
        return code_of_rows(condition)
    if isinstance(condition, Or):
        parts = {*_codes_of(condition, Or)}
        return parts.pop() if len(parts) == 1 else encode(("or", *sorted(parts)))
    if isinstance(condition, Not):
        if isinstance(condition.x, Not):
            return _code(condition.x.x)
        if isinstance(condition.x, IsNull) and not condition.x.x.nullable:
            return ALL_ROWS
        return encode(("not", _code(condition.x)))
    if isinstance(condition, Compare):
        return _code_of_comparison(condition)
    if isinstance(condition, IsIn):
        return encode(("is in", condition.x, *sorted({*map(encode, condition.values)})))
    return encode(condition)


def _codes_of(condition: Expr, kind: type[And | Or]) -> Iterator[bytes]:
    """Yield the bytes that identify each condition that nested nodes of the class ``kind`` (``And``
    or ``Or``) join."""
    waiting = [condition]
    while waiting:
        one = waiting.pop()
        if isinstance(one, kind):
            waiting += [one.left, one.right]
        else:
            yield _code(one)


def _code_of_comparison(comparison: Compare) -> bytes:
    """Return bytes that identify a comparison. Two columns give the same bytes, whichever comes
    first.

    A whole double is compared as the integer that it is.
    """
    operand = comparison.right
    if isinstance(operand, Constant) and comparison.left.kind == "number":
        value = operand.value
        if type(value) is float and value.is_integer() and abs(value) < _WHOLE:
            operand = Constant(int(value))
    op, left, right = comparison.op, encode(comparison.left), encode(operand)
    if not isinstance(operand, Constant) and right < left:
        op, left, right = FLIPPED[op], right, left
    return encode(("compare", op, left, right))
