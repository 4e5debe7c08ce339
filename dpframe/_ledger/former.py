"""Labels as the first format of ledgers had them: read, so that what was paid for then is still free, and never written.

They were digests of JSON in which some values were shown as text, and a recorded answer was found by that digest alone. So such a
label is made only where its text could not be cut and no two questions about this frame could have the same one: `trusted`. Where
it could, there is none (None), and the question is a new one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from dpframe._cells.encoding import plain
from dpframe._expr import Expr
from dpframe._groups.keys import describe
from dpframe._groups.unit import Unit
from dpframe._ledger.accountant import Label
from dpframe._questions.question import Query, Question
from dpframe.accounting._filter import Price


def trusted(names: Iterable[Hashable], version: str | None) -> bool:
    """Whether the names of a frame are told apart by what they print, and its version by where it ends."""
    listed = list(names)
    alike = len(set(map(str, listed))) < len(listed) if all(map(plain, listed)) else True
    return not alike and "|" not in (version or "")


def schema(columns: Iterable[tuple[Hashable, Any]], version: str | None) -> str | None:
    listed = list(columns)
    if not trusted([name for name, _ in listed], version):
        return None
    return f"{[(repr(n), str(d)) for n, d in listed]}|{version}"


def derived_schema(
    base: str | None, token: str | None, columns: Iterable[tuple[Hashable, Any]]
) -> str | None:
    listed = list(columns)
    if base is None or token is None or not trusted([name for name, _ in listed], None):
        return None
    return f"{base}|{token}|{[(repr(n), str(d)) for n, d in listed]}"


def steps(
    before: str | None,
    columns: Mapping[Hashable, Expr],
    where: Expr | None,
    verb: str,
    words: Sequence[object] | None,
) -> str | None:
    """The name of the steps that led to a derived frame; "" is the frame that was opened."""
    if before is None or words is None or not trusted(columns, None):
        return None
    shown = [(repr(name), expr.to_json()) for name, expr in columns.items()]
    kept = None if where is None else where.to_json()
    text = json.dumps([before, shown, kept, verb, list(words)], default=repr)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def cut(value: Any) -> bool:
    """Whether its description was cut, so that others had it too."""
    return describe(value) != repr(value)


def label(
    query: Query | Question,
    unit: Unit,
    rows: int | None,
    price: Price,
    paid: str,
    queries: int,
    schema: str,
    name: str | None,
    version: str | None,
) -> Label:
    tokens = [by.token for by in query.by]
    asked = json.dumps([query.to_json(), tokens], default=str, separators=(",", ":"))
    question = f"{asked}|{unit.neighbors}|{unit.space}|{unit.rows}|{unit.groups}|{rows}|{schema}"
    digest = hashlib.blake2b(question.encode("utf-8", "surrogatepass"), digest_size=24).hexdigest()
    key, worded = f"{digest}|{'|'.join(map(str, price))}", f"{digest}|{paid}|{queries}"
    return Label(digest, key, worded, name, version)
