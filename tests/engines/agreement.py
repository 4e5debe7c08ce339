"""Compare the SQL of an entry of the catalogue with its value on numpy, cell by cell, on awkward cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from dpframe import BadValue
from dpframe._expr import Expr
from dpframe.engines.sql.expressions import Compiler, Unwritten
from tests.engines.conftest import Frame
from tests.engines.entries import apply_example

TEXTS = [
    *("", "a", "A", "ab", "ba", "aba", "a ", " a", "b", "ab-c", "-1", "é", "e\u0301", "ß", "ss"),
    *("it's", '"', "\\", "%", "a%", "_", "a_b", "[ab]", "\n", "$1", "?1", "\U0001f600", "İ", "ｱ"),
    *("a\0", "a\0b", "\0", "\0a", "x" * 70_000, "a" + "x" * 70_000 + "a", None),
]
NUMBERS = [
    *(0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 2.5, 4.0, 1e300, -1e300, 5e-324, -5e-324, 0.1),
    *(0.49999999999999994, 2.0**52 + 1, 2.0**53, -(2.0**53), 2.0**63, -(2.0**63), 1e22),
    *(np.inf, -np.inf, np.nan),
]
INTEGERS = [0, 1, -1, 4, 2**31, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63), None]
# Arguments in place of those of an entry's examples.
PATTERNS = [text for text in TEXTS if text is not None and len(text) < 100] + ["\ud800"]
COUNTS = [0, 1, -1, 2, 5, 10_000]


def make_frame(nul: bool = True) -> pd.DataFrame:
    """Return awkward cells; without ``nul`` no text has a NUL."""
    texts = [t for t in TEXTS if nul or t is None or "\0" not in t]
    n = max(len(texts), len(NUMBERS), len(INTEGERS))

    def spread(cells: list[Any]) -> list[Any]:
        return [cells[i % len(cells)] for i in range(n)]

    return pd.DataFrame(
        {
            "s": pd.Series(spread(texts), dtype="str"),
            "x": pd.Series(spread(NUMBERS), dtype="float64"),
            "i": pd.Series(spread(INTEGERS), dtype="Int64"),
        }
    )


def list_calls(op: Any, f: Frame) -> Iterator[Expr]:
    """Return the calls of an entry that are compared: its examples, and others with awkward arguments."""
    for name in ("s",) if "text" in op.of else ("x", "i"):
        for example in op.examples:
            yield apply_example(op, example, f[name])
            args = list(example[1:-1])
            for place, arg in enumerate(args):
                others = PATTERNS if type(arg) is str else COUNTS if type(arg) is int else []
                for other in others:
                    given = (*args[:place], other, *args[place + 1 :])
                    try:
                        yield apply_example(op, (example[0], *given, example[-1]), f[name])
                    except BadValue:
                        continue  # such an argument is refused before any cell is read


def find_differences(op: Any, database: Any, frame: pd.DataFrame) -> list[str]:
    """Return the calls of an entry whose SQL differs from numpy in some row.

    An entry whose SQL is never written differs, too.
    """
    f, relation = Frame(frame), getattr(database, "relation", "visits")
    compared, differences = 0, []
    for e in dict.fromkeys(list_calls(op, f)):
        compiler = Compiler(database.dialect, frame.iloc[:0])
        try:
            sql = compiler.term(e).sql
        except Unwritten:
            continue
        statement, words = compiler.whole(
            f"SELECT r.row_number, {sql} FROM {relation} AS r ORDER BY r.row_number ASC"
        )
        compared += 1
        found = [row[1] for row in database.fetch(statement, words)]
        pairs = zip(found, f.cells(e), strict=True)
        if not all(are_equal(ours, theirs) for ours, theirs in pairs):
            differences.append(str(e)[:200])
    return differences if compared else [f"{op.name} is never written"]


def are_equal(found: Any, expected: Any) -> bool:
    """Return whether a database has the value that numpy has. Nothing tells zeros of two signs apart."""
    if found is None or expected is None:
        return found is None and expected is None
    if isinstance(expected, bool):
        return bool(found) is expected
    return type(found) is type(expected) and found == expected
