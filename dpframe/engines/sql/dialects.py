"""How each database writes what this package asks for: quotes, casts, rounding, and the rules that
make integers alike.

*Formal guarantee.* What is written here means the same integers in every dialect, whatever the
cells are, since it rests on IEEE 754 in doubles and on 64-bit integers that no step overflows, and
on nothing that databases do in their own ways:

- there is one null. A NaN becomes NULL where a column of doubles is read or clipped, and where
  arithmetic may make one;
- comparisons are two-valued: COALESCE says what a null compares to;
- values are clipped by CASE, since GREATEST takes nulls in three ways, and rounded half to even by
  adding and taking away 1.5 * 2**52 (2**52 where they are beyond 2**51), since ROUND takes ties in
  two;
- doubles are written with an exponent, without which they are decimals, or are bound;
- only whole doubles below 2**62 are cast to integers, which neither rounds nor raises;
- integers are divided only where neither is negative;
- texts are compared and grouped byte by byte, whatever the collation of the column: one that folds
  cases would make one person of two, who stays when one of them leaves;
- sums of 64-bit integers are exact: where a database has no more than 64 bits, their halves are
  added;
- no text, and no key of a session, is ever printed into a statement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

from dpframe.engines.people import PRIME

MAGIC = 1.5 * 2.0**52  # a double whose neighbours are whole numbers
OURS = "dpframe_"  # how the names of a statement's own tables begin
WORDS = f"{OURS}words"  # a table of parameters
HALF = 16  # bits of the lower half of an integer
Type = Literal["integer", "double", "text"]


class Dialect:
    """Rules by which the text of a statement is written for duckdb, the base of all dialects.

    Arguments and results of the methods are pieces of SQL. A subclass overrides what another
    database writes differently.
    """

    name: ClassVar[str] = "duckdb"
    integers: ClassVar[str] = "BIGINT"
    doubles: ClassVar[str] = "DOUBLE"
    texts: ClassVar[str] = "VARCHAR"
    quote: ClassVar[str] = '"'
    division: ClassVar[str] = "//"
    collation: ClassVar[str] = ' COLLATE "C"'
    inline: ClassVar[str] = " NOT MATERIALIZED"  # a table of a WITH clause is not stored
    bound_doubles: ClassVar[bool] = False  # whether their text is not read exactly
    wide: ClassVar[bool] = True  # whether a sum of integers has more than 64 bits
    deepest: ClassVar[int] = 150  # nested parentheses that its parser takes
    snapshots: ClassVar[bool] = True  # whether several statements can read one state of the data
    raises: ClassVar[bool] = False  # whether arithmetic of doubles raises on overflow
    listed: ClassVar[int] = 2**20  # keys in a list

    # Names and literals -------------------------------------------------------------------------------------

    def identifier(self, name: str) -> str:
        """Return a name of a table or a column, quoted."""
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote

    def parameter(self, place: int) -> str:
        """Return the placeholder of the parameter at a position, counted from 0."""
        return f"${place + 1}"

    def whole_number(self, value: int) -> str:
        """Write an integer of 64 bits, in parentheses if it is negative.

        The smallest one is written as a difference, since its digits without the sign would
        overflow.
        """
        return (
            "(-9223372036854775807 - 1)"
            if value == -(2**63)
            else f"({value})"
            if value < 0
            else str(value)
        )

    def double(self, value: float) -> str:
        """Write a double exactly.

        Its text has an exponent, since databases read a number without one as a decimal.
        """
        if math.isinf(value):
            return f"CAST('{'-' * (value < 0)}Infinity' AS {self.doubles})"
        text = repr(value)
        text = text if "e" in text else f"{text}e0"
        return f"({text})" if value < 0 else text

    def holds(self, text: str) -> bool:
        """Return whether a text column of this database can hold a text."""
        return not any(0xD800 <= ord(c) < 0xE000 for c in text)

    # Cells --------------------------------------------------------------------------------------------------

    def read_integer(self, column: str) -> str:
        """Write a cell of a column of whole numbers of at most 64 bits."""
        return f"CAST({column} AS {self.integers})"

    def read_double(self, column: str) -> str:
        """Write a cell of a column of doubles or of narrower floats, where NaN becomes NULL."""
        return self.without_nan(self.read_with_nan(column))

    def read_with_nan(self, column: str) -> str:
        """Write a cell of a column of doubles, where NaN stays NaN."""
        return f"CAST({column} AS {self.doubles})"

    def read_bool(self, column: str) -> str:
        """Write a cell of a column of bools."""
        return f"CAST({column} AS BOOLEAN)"

    def read_text(self, column: str) -> str:
        """Write a cell of a column of texts, or of a type that is read as texts."""
        return self.binary(f"CAST({column} AS {self.texts})")

    def binary(self, text: str) -> str:
        """Write a text so that it is compared byte by byte, whatever the collation of its
        column."""
        return f"({text}{self.collation})"

    # Doubles ------------------------------------------------------------------------------------------------

    def without_nan(self, x: str) -> str:
        """Write a double, with NULL in place of NaN, which these databases take for equal to
        itself."""
        return f"NULLIF({x}, CAST('NaN' AS {self.doubles}))"

    def as_double(self, whole: str) -> str:
        """Convert an integer to the nearest double."""
        return f"CAST({whole} AS {self.doubles})"

    def as_integer(self, x: str) -> str:
        """Convert a whole double to an integer."""
        return f"CAST({x} AS {self.integers})"

    def as_narrow(self, x: str) -> str:
        """Convert a whole double below 2**31 to an integer type in which sums are quicker.

        ``x`` is the SQL of the double. The powers of it that are summed must fit into that type
        too.
        """
        return f"CAST({x} AS INTEGER)"

    def truncated(self, x: str) -> str | None:
        """Write a double without its digits after the point; None if the database has no such
        function."""
        return f"TRUNC({x})"

    def clipped(self, x: str, low: str | None, high: str | None) -> str:
        """Write a number clipped to two bounds; NULL stays NULL.

        A bound of None does not clip. All three arguments are SQL.
        """
        below = "" if low is None else f" WHEN {x} < {low} THEN {low}"
        above = "" if high is None else f" WHEN {x} > {high} THEN {high}"
        return f"(CASE{below}{above} ELSE {x} END)" if below or above else x

    def clipped_cell(self, x: str, low: str, high: str) -> str:
        """Write a cell of doubles clipped to two bounds, where a NaN becomes NULL.

        ``x`` and the bounds are SQL. These databases sort NaN above all numbers, which the nested
        condition detects.
        """
        beyond = f"(CASE WHEN {x} <= {self.double(math.inf)} THEN {high} END)"
        return f"(CASE WHEN {x} > {high} THEN {beyond} WHEN {x} < {low} THEN {low} ELSE {x} END)"

    def scaled(self, x: str, exponent: int, factor: str) -> str:
        """Write a clipped value times a power of two, which puts it on a grid before it is rounded.

        ``x`` is the SQL of the value, and ``factor`` that of 2**exponent.
        """
        return f"({x} * {factor})"

    def rounded(self, x: str, magic: str) -> str:
        """Write a double below 2**51 rounded to the nearest whole number, ties to even.

        ``x`` is the SQL of the double, and ``magic`` that of 1.5 * 2**52. Adding and subtracting it
        rounds alike in all databases.
        """
        return f"(({x} + {magic}) - {magic})"

    def rounded_far(self, x: str, wide: str, zero: str) -> str:
        """Write any double rounded to the nearest whole number, ties to even.

        ``x`` is SQL. So are ``wide``, which is 2**52, beyond which all doubles are whole, and
        ``zero``.
        """
        near = f"WHEN {x} >= {zero} THEN (({x} + {wide}) - {wide}) ELSE (({x} - {wide}) + {wide})"
        return f"(CASE WHEN {x} >= {wide} OR {x} <= -{wide} THEN {x} {near} END)"

    # Rows ---------------------------------------------------------------------------------------------------

    def gathered(self, names: Sequence[str]) -> str:
        """Return a hint that rows are about to be grouped by these columns; empty if none helps.

        It changes the speed of a statement and not its result.
        """
        return ""

    # Conditions and integers --------------------------------------------------------------------------------

    def two_valued(self, condition: str, of_null: bool) -> str:
        """Write a condition that is never NULL: it is ``of_null`` instead."""
        return f"COALESCE({condition}, {'TRUE' if of_null else 'FALSE'})"

    def quotient(self, a: str, b: str) -> str:
        """Write the integer quotient of two integers that are not negative."""
        return f"({a} {self.division} {b})"

    def small_sum(self, a: str) -> str:
        """Write the sum of integers over the rows of one person, which stays below 2**63."""
        return f"CAST(SUM({a}) AS {self.integers})"

    def totals(self, a: str) -> list[str]:
        """Write the sum of integers that are not negative, as one or two columns of a SELECT.

        ``a`` is the SQL of an integer of each row. Where one sum could overflow 64 bits, the upper
        and the lower halves are summed. `total` puts the two together again.
        """
        if self.wide:
            return [f"SUM({a})"]
        half = str(2**HALF)
        return [f"SUM({self.quotient(a, half)})", f"SUM({a} % {half})"]

    @staticmethod
    def total(parts: list[int]) -> int:
        """Return the exact sum from the columns that `totals` wrote."""
        return parts[0] if len(parts) == 1 else (parts[0] << HALF) + parts[1]

    # The hash -----------------------------------------------------------------------------------------------

    def is_key(self, x: str, kind: str) -> str:
        """Write a condition that a value can be a group key found in the data.

        ``x`` is the SQL of the value, and ``kind`` its type. NULL cannot be a key, and a text that
        is not UTF-8 cannot either.
        """
        return f"{x} IS NOT NULL"

    def digest(self, text: str) -> str:
        """Write the first 15 hexadecimal digits of the MD5 of a text's UTF-8, as an integer."""
        return f"CAST(('0x' || substr(md5({text}), 1, 15)) AS {self.integers})"

    def number(self, cell: str, kind: str) -> str:
        """Write the number of a person or a key, as `dpframe.engines.people` defines it.

        ``cell`` is the SQL of an integer or a text, and ``kind`` says which. The number decides
        which groups and values of a person count.
        """
        if kind == "text":
            return f"({self.digest(cell)} % {PRIME})"
        return f"((({cell}) % {PRIME} + {PRIME}) % {PRIME})"


class Related(Dialect):
    """Dialect for a relation of duckdb, whose statements take no parameters.

    The parameters are the columns of a table of one row.
    """

    def parameter(self, place: int) -> str:
        return f"(SELECT p{place + 1} FROM {WORDS})"


class Sqlite(Dialect):
    """Dialect of SQLite, whose cells may have any type, whatever their column declares.

    It has no NaN; a NaN is NULL there. A cell of another type than the column's is NULL here.
    Doubles are bound, since their text need not be read exactly. MD5 is a function that the
    connection brings along.
    """

    integers: ClassVar[str]
    doubles: ClassVar[str]
    division: ClassVar[str]

    name = "sqlite"
    integers, doubles, division = "INTEGER", "REAL", "/"
    collation = " COLLATE BINARY"
    bound_doubles = True
    wide = False
    deepest = 24
    listed = 10_000  # each key takes two of 32,766 parameters

    def parameter(self, place: int) -> str:
        return f"?{place + 1}"

    def read_integer(self, column: str) -> str:
        return f"(CASE WHEN typeof({column}) = 'integer' THEN {column} END)"

    def read_double(self, column: str) -> str:
        return (
            f"(CASE WHEN typeof({column}) IN ('integer', 'real') THEN CAST({column} AS REAL) END)"
        )

    def read_with_nan(self, column: str) -> str:
        return self.read_double(column)

    def clipped_cell(self, x: str, low: str, high: str) -> str:
        return self.clipped(x, low, high)

    def read_bool(self, column: str) -> str:
        return f"(CASE WHEN typeof({column}) = 'integer' AND {column} IN (0, 1) THEN {column} <> 0 END)"

    def read_text(self, column: str) -> str:
        return self.binary(f"CASE WHEN typeof({column}) = 'text' THEN {column} END")

    def without_nan(self, x: str) -> str:
        return x

    def as_narrow(self, x: str) -> str:
        return self.as_integer(x)

    def truncated(self, x: str) -> str | None:
        return None

    def digest(self, text: str) -> str:
        return f"dpframe_digest(CAST({text} AS BLOB))"

    def is_key(self, x: str, kind: str) -> str:
        return f"dpframe_readable(CAST({x} AS BLOB))" if kind == "text" else super().is_key(x, kind)


class Postgres(Dialect):
    """Dialect of PostgreSQL, which has no NUL in texts, and raises where doubles overflow or
    underflow."""

    doubles: ClassVar[str]
    texts: ClassVar[str]
    division: ClassVar[str]

    name = "postgresql"
    doubles, texts, division = "DOUBLE PRECISION", "TEXT", "/"
    raises = True

    def double(self, value: float) -> str:
        """Write a double exactly, as a cast of its text.

        PostgreSQL reads a literal as a decimal, even one with an exponent.
        """
        return (
            f"CAST('{value!r}' AS {self.doubles})"
            if math.isfinite(value)
            else super().double(value)
        )

    def as_narrow(self, x: str) -> str:
        return self.as_integer(x)

    def holds(self, text: str) -> bool:
        return "\0" not in text and super().holds(text)

    def scaled(self, x: str, exponent: int, factor: str) -> str:
        """Write a clipped value times a power of two, without an underflow.

        ``x`` is SQL, and ``factor`` is the SQL of 2**exponent. PostgreSQL raises where a product
        underflows. A value that would round to 0 is made 0 first.
        """
        if exponent >= 0:
            return super().scaled(x, exponent, factor)
        least = self.double(math.ldexp(1.0, min(-exponent - 1, 1023)))
        x = f"(CASE WHEN {x} > -{least} AND {x} < {least} THEN {self.double(0.0)} ELSE {x} END)"
        return super().scaled(x, exponent, factor)

    def digest(self, text: str) -> str:
        return f"(('x' || substr(md5(convert_to({text}, 'UTF8')), 1, 15))::bit(60)::bigint)"


class Spark(Dialect):
    """Dialect of Spark SQL, where several statements cannot read one state of the data."""

    quote: ClassVar[str]
    division: ClassVar[str]
    collation: ClassVar[str]
    inline: ClassVar[str]
    texts: ClassVar[str]
    wide: ClassVar[bool]
    snapshots: ClassVar[bool]

    name = "spark"
    quote, division = "`", "div"
    collation, inline, texts = "", "", "STRING"
    wide, snapshots = False, False

    def parameter(self, place: int) -> str:
        return f":p{place + 1}"

    def as_narrow(self, x: str) -> str:
        return self.as_integer(x)

    def truncated(self, x: str) -> str | None:
        return None

    def gathered(self, names: Sequence[str]) -> str:
        """Return a hint that sends all rows of a person to one task before they are grouped.

        Without it each task finds few rows of a person in one group. It then keeps about as many
        sums as rows, which spill to disk.
        """
        return f"/*+ REPARTITION({', '.join(names)}) */ "

    def digest(self, text: str) -> str:
        return f"CAST(conv(substr(md5({text}), 1, 15), 16, 10) AS {self.integers})"
