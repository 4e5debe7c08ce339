"""Expressions in SQL: those whose value in a row is defined bit by bit, as
`dpframe.engines.expressions` has it on numpy.

*Formal guarantee.* Whether an expression can be written is decided by its nodes, its constants and
the dtypes of its columns, and never by a cell. What is written has the value that numpy has, in
each row: the operations are those of IEEE doubles, of 64-bit integers, and of texts byte by byte,
by the rules of `dpframe.engines.sql.dialects`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd

from dpframe import _expr as ex
from dpframe._cells.codec import _held, as_double, form_of
from dpframe._cells.columns import fits
from dpframe._sizes import SIZES
from dpframe._statistics.base import Grid
from dpframe.engines.sql.dialects import MAGIC, Dialect

LISTED = 500  # values in a list
QUOTED = re.compile("""'[^']*'|"[^"]*"|`[^`]*`""")
SMALL, LARGEST = (
    2**51,
    2**62,
)  # limits of steps: for `rounded`, and for integers
Kind = Literal["integer", "double", "bool", "text"]


class Unwritten(Exception):
    """Signal that an expression or a question has no SQL here.

    The engine for SQL catches it and asks the fallback engine instead.
    """


class Term(NamedTuple):
    """SQL of a value, and what the value is.

    ``dtype`` is the dtype in which numpy holds an integer. ``hit`` is a second form of a condition:
    true in the same rows, and perhaps NULL in others.
    """

    sql: str
    kind: Kind
    dtype: np.dtype[Any] | None = None
    hit: str | None = None

    def change(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return self._replace(**changes)


class Compiler:
    """Writer of the expressions of one statement in SQL, which collects the parameters."""

    dialect: Dialect
    schema: pd.DataFrame
    unread: frozenset[int]  # positions of columns that the database cannot read

    def __init__(
        self, dialect: Dialect, schema: pd.DataFrame, unread: frozenset[int] = frozenset()
    ):
        """Begin a statement over a table with the columns of ``schema``.

        ``unread`` are the positions of columns that the database cannot read. An expression with
        such a column raises `Unwritten`.
        """
        self.dialect, self.schema, self.unread = dialect, schema, unread
        self._bound: list[Any] = []
        self._places: dict[tuple[type, str], int] = {}

    def bind(self, value: object) -> str:
        """Return a mark that stands for a parameter with this value, until `whole` numbers the
        parameters.

        Equal values of one type share a parameter.
        """
        key = type(value), repr(value)
        if key not in self._places:
            self._places[key] = len(self._bound)
            self._bound.append(value)
        return f"\0{self._places[key]}\0"

    def whole(self, text: str) -> tuple[str, list[Any]]:
        """Return the final text of a statement and its parameters, numbered as they occur in it.

        Only parameters that occur are returned, since databases refuse others. A statement that
        nests too deep for the parser raises `Unwritten`.
        """
        places: dict[int, int] = {}

        def number_place(found: re.Match[str]) -> str:
            return self.dialect.parameter(places.setdefault(int(found[1]), len(places)))

        depth = np.cumsum([(char in "([") - (char in ")]") for char in QUOTED.sub("", text)]).max()
        if depth > self.dialect.deepest:
            raise Unwritten
        return re.sub("\0(\\d+)\0", number_place, text), [self._bound[place] for place in places]

    def number(self, value: float) -> str:
        """Write a double by its text, or bind it if the database does not read texts exactly."""
        value = float(value)
        return self.bind(value) if self.dialect.bound_doubles else self.dialect.double(value)

    def term(self, e: ex.Expr) -> Term:
        """Write an expression in SQL, or raise `Unwritten` if it has none or is too long."""
        write = _NODES.get(type(e))
        if write is None:
            raise Unwritten
        found = write(self, e)
        # Operands may be repeated in the text, which then grows fast.
        if len(found.sql) + len(found.hit or "") > SIZES.statement:
            raise Unwritten
        return found

    def truth(self, e: ex.Expr) -> str:
        """Write an expression that is a condition, so that it is never NULL."""
        return self.truth_of(self.term(e))

    def truth_of(self, found: Term) -> str:
        """Return a condition that is written already as one that is never NULL.

        It raises `Unwritten` if the term is no condition.
        """
        if found.kind != "bool":
            raise Unwritten
        return self.dialect.two_valued(found.sql, False)

    def hit(self, e: ex.Expr) -> str:
        """Write a condition for a WHERE clause.

        It may be NULL where it is not true, since databases use that form to skip parts of files.
        """
        found = self.term(e)
        return found.hit or self.truth_of(found)

    def double(self, e: ex.Expr) -> str:
        """Write an expression, which is a number or a bool, as a double."""
        if isinstance(e, ex.Constant) and e.kind in ("number", "bool"):
            return self.number(_read_double(e.value))
        return self.as_double(self.term(e))

    def as_double(self, term: Term) -> str:
        """Return the SQL of a written value as a double: 1 and 0 for bools.

        A text raises `Unwritten`.
        """
        if term.kind == "double":
            return term.sql
        if term.kind == "integer":
            return self.dialect.as_double(term.sql)
        if term.kind == "bool":
            one, zero = self.number(1.0), self.number(0.0)
            return f"(CASE WHEN {term.sql} THEN {one} WHEN NOT {term.sql} THEN {zero} END)"
        raise Unwritten

    def cell(self, e: ex.Expr) -> str:
        """Write an expression as the double that `steps` takes, which may still be a NaN."""
        found = self.term(e)
        if isinstance(e, ex.Column) and found.kind == "double":
            return self.dialect.read_with_nan(self.read_cell(e))
        return self.double(e)

    def read_cell(self, e: ex.Column) -> str:
        """Write the name of a column of the table."""
        return f"r.{self.dialect.identifier(str(self.schema.columns[e.position]))}"

    def key(self, e: ex.Expr) -> Term:
        """Write an expression that rows are grouped by, or that names a person.

        Zeros of both signs are one key, and a bool is the integer 0 or 1.
        """
        found = self.term(e)
        if found.kind == "double":
            return Term(f"({found.sql} + {self.number(0.0)})", "double")
        if found.kind == "bool":
            return Term(f"(CASE WHEN {found.sql} THEN 1 WHEN NOT {found.sql} THEN 0 END)", "bool")
        return found

    def steps(self, x: str, grid: Grid, degree: int = 1) -> str:
        """Write a double as an integer: clipped to the bounds of a grid, in steps above the lower
        bound.

        ``x`` is the SQL of the double; NULL stays NULL. ``degree`` is the highest power of the
        integer that is summed, which decides its type.
        """
        d, (low, high) = self.dialect, grid.bounds
        largest = max(abs(grid.low), abs(grid.high))
        if largest >= LARGEST:
            raise Unwritten
        clipped = d.clipped_cell(x, self.number(low), self.number(high))
        scaled = d.scaled(clipped, grid.exponent, self.number(2.0**grid.exponent))
        if largest < SMALL:
            rounded = d.rounded(scaled, self.number(MAGIC))
        else:  # bounds that lie close together, far from zero
            rounded = d.rounded_far(scaled, self.number(2.0**52), self.number(0.0))
        narrow = largest < 2**30 and grid.width**degree < 2**31
        whole = d.as_narrow(rounded) if narrow else d.as_integer(rounded)
        return f"({whole} - {d.whole_number(grid.low)})"


# ---- leaves --------------------------------------------------------------------------------------


def _column(c: Compiler, e: ex.Column) -> Term:
    """Write a column of the table, cast to one of the types that this package computes with.

    It raises `Unwritten` for a name or a dtype that the database cannot read alike. ``e`` is the
    expression, and ``c`` collects the statement's parameters.
    """
    name: Any = c.schema.columns[e.position]
    dtype, d = c.schema.dtypes.iloc[e.position], c.dialect
    known = held_as(dtype)
    if not isinstance(name, str) or "\0" in name or known is None or e.position in c.unread:
        raise Unwritten
    kind, narrow = known
    read: dict[Kind, Callable[[str], str]] = {
        "integer": d.read_integer,
        "double": d.read_double,
        "bool": d.read_bool,
        "text": d.read_text,
    }
    return Term(read[kind](c.read_cell(e)), kind, narrow)


def held_as(dtype: object) -> tuple[Kind, np.dtype[Any] | None] | None:
    """Return the type that a column of a pandas dtype has in SQL: integer, double, bool or text.

    For an integer the numpy dtype comes with it. None means that no SQL is written for such a
    column, such as one of decimals.
    """
    if isinstance(dtype, pd.StringDtype):
        return "text", None
    if isinstance(dtype, pd.ArrowDtype):
        if str(dtype.pyarrow_dtype) in ("string", "large_string", "string_view"):
            return "text", None
        if str(dtype.pyarrow_dtype) not in _ARROW:
            return None
    if isinstance(dtype, pd.SparseDtype):
        return None
    plain: Any = getattr(dtype, "numpy_dtype", dtype)
    if not isinstance(plain, np.dtype):
        return None
    if plain.kind == "b":
        return "bool", None
    if plain.kind == "f" and plain.itemsize in (4, 8):
        return "double", None
    whole = plain.kind == "i" or (plain.kind == "u" and plain.itemsize < 8)
    return ("integer", plain) if whole else None


_ARROW = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)} | {
    "bool",
    "float",
    "double",
}


def _constant(c: Compiler, e: ex.Constant) -> Term:
    """Write a constant: a bool, a text that the database can hold, an integer or a double.

    ``e`` is the expression, and ``c`` collects the statement's parameters.
    """
    value = e.value
    if isinstance(value, bool):
        return Term("TRUE" if value else "FALSE", "bool")
    if isinstance(value, str) and c.dialect.holds(value):
        return Term(c.dialect.binary(c.bind(value)), "text")
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return Term(c.dialect.whole_number(value), "integer", np.dtype(np.int64))
    if isinstance(value, int | float):
        return Term(c.number(_read_double(value)), "double")
    raise Unwritten


def _read_double(value: Any) -> float:
    """Return a constant as a double; raise `Unwritten` if it is too large or is NaN."""
    try:
        found = float(value)
    except OverflowError:
        raise Unwritten from None
    if math.isnan(found):
        raise Unwritten
    return found


# ---- arithmetic ----------------------------------------------------------------------------------


def _arithmetic(c: Compiler, e: ex.Arithmetic) -> Term:
    """Write a sum, difference, product or quotient of doubles.

    Division is by constants other than 0 alone, since databases differ on division by zero. A
    database that raises on overflow gets no arithmetic. ``e`` is the expression, and ``c`` collects
    the statement's parameters.
    """
    divided = e.op == "/" and isinstance(e.right, ex.Constant) and e.right.value not in (0, None)
    if c.dialect.raises or not (e.op in ("+", "-", "*") or divided):
        raise Unwritten
    found = f"({c.double(e.left)} {e.op} {c.double(e.right)})"
    return Term(c.dialect.without_nan(found) if e.nullable else found, "double")


def _unary(c: Compiler, e: ex.Unary) -> Term:
    x = c.double(e.x)
    return Term(f"(-{x})" if e.op == "-" else f"ABS({x})", "double")


def _clip(c: Compiler, e: ex.Clip) -> Term:
    """Write a number clipped to two bounds, as an integer if number and bounds are integers.

    A lower bound above the upper one raises `Unwritten`, since numpy returns the upper one then.
    ``e`` is the expression, and ``c`` collects the statement's parameters.
    """
    x = c.term(e.x)
    ends: list[Any] = [None if end is None else end.value for end in (e.lower, e.upper)]
    if None not in ends and not ends[0] <= ends[1]:  # numpy takes the upper end then
        raise Unwritten
    if x.kind == "integer" and all(fits(end, x.dtype) for end in ends):
        low, high = (None if end is None else c.dialect.whole_number(int(end)) for end in ends)
        return x.change(sql=c.dialect.clipped(x.sql, low, high))
    low, high = (None if end is None else c.number(_read_double(end)) for end in ends)
    return Term(c.dialect.clipped(c.as_double(x), low, high), "double")


def _fill(c: Compiler, e: ex.Fill) -> Term:
    """Write a value with a constant in place of null, as ``fillna`` does.

    ``e`` is the expression, and ``c`` collects the statement's parameters.
    """
    x, value = c.term(e.x), e.value.value
    if x.kind == "text":
        return Term(c.dialect.binary(f"COALESCE({x.sql}, {c.term(e.value).sql})"), "text")
    if x.kind == "bool":
        return Term(c.dialect.two_valued(x.sql, bool(value)), "bool")
    if x.kind == "integer" and fits(value, x.dtype):
        return x.change(sql=f"COALESCE({x.sql}, {c.dialect.whole_number(int(value))})")
    return Term(f"COALESCE({c.as_double(x)}, {c.number(_read_double(value))})", "double")


def _cast(c: Compiler, e: ex.Cast) -> Term:
    """Write a number or a bool converted to bool, int or float.

    Texts, and conversions to text, raise `Unwritten`. An infinite double becomes NULL as an int.
    ``e`` is the expression, and ``c`` collects the statement's parameters.
    """
    x = c.term(e.x)
    if e.to == "str" or x.kind == "text":
        raise Unwritten
    if e.to == "bool":
        return x if x.kind == "bool" else Term(f"({c.as_double(x)} <> {c.number(0.0)})", "bool")
    if e.to == "int" and x.kind == "bool":
        return Term(
            f"(CASE WHEN {x.sql} THEN 1 WHEN NOT {x.sql} THEN 0 END)", "integer", np.dtype(np.int8)
        )
    if e.to == "float" or x.kind == "integer":
        return Term(c.as_double(x), "double")
    whole, most = c.dialect.truncated(x.sql), c.number(np.finfo(np.float64).max)
    if whole is None:
        raise Unwritten
    return Term(f"(CASE WHEN ABS({x.sql}) <= {most} THEN {whole} END)", "double")


# ---- functions of the catalogue ------------------------------------------------------------------


def _call(c: Compiler, e: ex.Call) -> Term:
    """Write a function of the catalogue `dpframe._expr.OPS`, by its template for this database.

    A function without a template for the dialect raises `Unwritten`. ``e`` is the expression, and
    ``c`` collects the statement's parameters.
    """
    op = ex.OPS[e.op]
    template = op.sql if op.sql is None or isinstance(op.sql, str) else op.sql.get(c.dialect.name)
    if template is None:
        raise Unwritten
    operands = [_text_of(c, x) if "text" in op.of else c.double(x) for x in e.operands]
    places = dict(zip("xy", operands, strict=False))
    for arg, value in zip(op.args, e.args, strict=True):
        places[arg.name] = _argument(c, value)
    found = template.format(**places)
    if e.kind == "bool":  # a null text gives False
        return Term(c.dialect.two_valued(found, False), "bool")
    if e.kind == "text":
        return Term(c.dialect.binary(found), "text")
    if e.kind == "number":
        return Term(c.dialect.as_double(found), "double")
    raise Unwritten


def _text_of(c: Compiler, x: ex.Expr) -> str:
    """Write an operand that must be a text; raise `Unwritten` if it is not.

    ``c`` collects the statement's parameters.
    """
    found = c.term(x)
    if found.kind != "text":
        raise Unwritten
    return found.sql


def _argument(c: Compiler, value: object) -> str:
    """Write a constant argument of a function: None, a bool, a text or an integer.

    ``c`` collects the statement's parameters.
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str) and c.dialect.holds(value):
        return c.dialect.binary(c.bind(value))
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return c.dialect.whole_number(value)
    raise Unwritten


# ---- conditions ----------------------------------------------------------------------------------


def _compare(c: Compiler, e: ex.Compare) -> Term:
    """Write a comparison of two expressions, with the answers that numpy gives.

    Texts are compared for equality alone, since their order depends on the encoding. ``e`` is the
    expression, and ``c`` collects the statement's parameters.
    """
    op, left = e.op, c.term(e.left)
    if isinstance(e.right, ex.Constant) and left.kind != "text":
        return _with_constant(c, op, left, e.right.value)
    right = c.term(e.right) if not _is_unheld(c, e.right) else None
    if right is None or "text" in (left.kind, right.kind):
        if (
            op not in ("==", "!=")
            or left.kind != "text"
            or (right is not None and right.kind != "text")
        ):
            raise Unwritten  # the order of texts depends on the encoding
        if right is None:  # no cell can equal the constant
            return Term("TRUE" if op == "!=" else "FALSE", "bool")
        return _write_comparison(c, op, left.sql, right.sql)
    if left.kind == right.kind == "integer":
        return _write_comparison(c, op, left.sql, right.sql)
    return _write_comparison(c, op, c.as_double(left), c.as_double(right))


def _is_unheld(c: Compiler, e: ex.Expr) -> bool:
    return isinstance(e, ex.Constant) and isinstance(e.value, str) and not c.dialect.holds(e.value)


def _write_comparison(c: Compiler, op: str, left: str, right: str) -> Term:
    """Write a comparison of two values in SQL, where a null makes only ``!=`` true.

    ``c`` collects the statement's parameters.
    """
    sign = {"==": "=", "!=": "<>"}.get(op, op)
    found = f"({left} {sign} {right})"
    return Term(
        c.dialect.two_valued(found, op == "!="), "bool", None, None if op == "!=" else found
    )


def _with_constant(c: Compiler, op: str, x: Term, wanted: object) -> Term:
    """Write a comparison of a number or a bool with a constant, exactly.

    A constant that no cell can hold, such as 2.5 for integers, lies between two that can. The
    comparison is then with one of these. ``c`` collects the statement's parameters. ``x`` is the
    number or bool, and ``wanted`` the constant.
    """
    if not isinstance(wanted, int | float) or wanted != wanted:
        raise Unwritten
    if x.kind == "double":
        if as_double(wanted) is not None:
            return _write_comparison(c, op, x.sql, c.number(float(wanted)))
        if op in ("==", "!="):
            return Term("TRUE" if op == "!=" else "FALSE", "bool")
        near = _read_double(wanted)
        below = op in ("<", "<=")
        op = ("<" if below else ">=") if near > wanted else ("<=" if below else ">")
        return _write_comparison(c, op, x.sql, c.number(near))
    whole = (
        x.sql if x.kind == "integer" else f"(CASE WHEN {x.sql} THEN 1 WHEN NOT {x.sql} THEN 0 END)"
    )
    if math.isinf(wanted):
        return _write_constant_answer(
            c, op, whole, {"<": wanted > 0, "<=": wanted > 0}.get(op, wanted < 0)
        )
    floor = int(wanted // 1)
    if floor != wanted:
        if op in ("==", "!="):
            return Term("TRUE" if op == "!=" else "FALSE", "bool")
        op = "<=" if op in ("<", "<=") else ">"
    if not -(2**63) <= floor < 2**63:
        return _write_constant_answer(
            c, op, whole, {"<": floor > 0, "<=": floor > 0}.get(op, floor < 0)
        )
    return _write_comparison(c, op, whole, c.dialect.whole_number(floor))


def _write_constant_answer(c: Compiler, op: str, x: str, above: bool) -> Term:
    """Write a comparison with a number that is beyond all cells.

    ``x`` is the SQL of the cell. ``above`` says whether the comparison holds for every cell that is
    not null. ``c`` collects the statement's parameters.
    """
    if op in ("==", "!="):
        return Term("TRUE" if op == "!=" else "FALSE", "bool")
    return Term(f"({x} IS NOT NULL)" if above else "FALSE", "bool")


def _and(c: Compiler, e: ex.And) -> Term:
    return _join_conditions(c, "AND", e.left, e.right)


def _or(c: Compiler, e: ex.Or) -> Term:
    return _join_conditions(c, "OR", e.left, e.right)


def _join_conditions(c: Compiler, word: str, left: ex.Expr, right: ex.Expr) -> Term:
    """Write two conditions joined by AND or OR, both as a value and as a WHERE clause.

    ``c`` collects the statement's parameters.
    """
    sides = [c.term(left), c.term(right)]
    truths = f" {word} ".join(map(c.truth_of, sides))
    hits = f" {word} ".join(side.hit or c.truth_of(side) for side in sides)
    return Term(f"({truths})", "bool", None, f"({hits})")


def _not(c: Compiler, e: ex.Not) -> Term:
    return Term(f"(NOT {c.truth(e.x)})", "bool")


def _is_null(c: Compiler, e: ex.IsNull) -> Term:
    return Term(f"({c.term(e.x).sql} IS NULL)", "bool")


def _is_in(c: Compiler, e: ex.IsIn) -> Term:
    """Write the condition that a value is one of listed constants.

    A null is found only if a null is listed. A long list raises `Unwritten`. ``e`` is the
    expression, and ``c`` collects the statement's parameters.
    """
    x = c.key(e.x)
    if len(e.values) > LISTED:
        raise Unwritten
    null = any(v.value is None for v in e.values)
    listed = [
        one
        for v in e.values
        if v.value is not None and (one := hold_value(c.dialect, v.value, x)) is not None
    ]
    if not listed:
        return Term(f"({x.sql} IS NULL)" if null else "FALSE", "bool")
    if x.kind == "text":
        known = [c.dialect.binary(c.bind(one)) for one in listed]
    elif x.kind == "double":
        known = [c.number(one) for one in listed]
    else:
        known = [c.dialect.whole_number(one) for one in listed]
    return Term(c.dialect.two_valued(f"({x.sql} IN ({', '.join(known)}))", null), "bool")


def hold_value(dialect: Dialect, value: object, key: Term) -> Any:
    """Return a listed value as the cells of a column hold it; None if no cell can equal it.

    ``key`` is the written column, whose type decides. Lists that are sent to a database use this.
    """
    if key.kind == "text":
        return value if isinstance(value, str) and dialect.holds(value) else None
    dtypes: dict[Kind, Any] = {"integer": key.dtype, "double": np.float64, "bool": np.bool_}
    return _held(form_of(value), np.dtype(dtypes[key.kind]))


_NODES: dict[type[ex.Expr], Callable[[Compiler, Any], Term]] = {
    ex.Column: _column,
    ex.Constant: _constant,
    ex.Compare: _compare,
    ex.And: _and,
    ex.Or: _or,
    ex.Not: _not,
    ex.IsNull: _is_null,
    ex.IsIn: _is_in,
    ex.Arithmetic: _arithmetic,
    ex.Unary: _unary,
    ex.Clip: _clip,
    ex.Fill: _fill,
    ex.Cast: _cast,
    ex.Call: _call,
}
