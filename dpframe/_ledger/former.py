"""Labels in the first format of ledgers: they are read, so that answers paid for then are still free, and never written.

They were digests of JSON in which some values stood as text, and a recorded answer was found by that digest alone. So such a
label is made only if its text cannot have been cut and no two questions about the frame can share it: `trusted`. Otherwise there
is none (None), and the question is a new one.
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
    """Whether the names of a frame differ in their texts, and the end of its version cannot be mistaken."""
    all_names = list(names)
    ambiguous = len(set(map(str, all_names))) < len(all_names) if all(map(plain, all_names)) else True
    return not ambiguous and "|" not in (version or "")


def schema(columns: Iterable[tuple[Hashable, Any]], version: str | None) -> str | None:
    pairs = list(columns)
    if not trusted([name for name, _ in pairs], version):
        return None
    return f"{[(repr(n), str(d)) for n, d in pairs]}|{version}"


def derived_schema(
    base: str | None, token: str | None, columns: Iterable[tuple[Hashable, Any]]
) -> str | None:
    pairs = list(columns)
    if base is None or token is None or not trusted([name for name, _ in pairs], None):
        return None
    return f"{base}|{token}|{[(repr(n), str(d)) for n, d in pairs]}"


def steps(
    before: str | None,
    columns: Mapping[Hashable, Expr],
    where: Expr | None,
    verb: str,
    arguments: Sequence[object] | None,
) -> str | None:
    """The digest of the steps that led to a derived frame; "" is the frame that was opened."""
    if before is None or arguments is None or not trusted(columns, None):
        return None
    described = [(repr(name), expr.to_json()) for name, expr in columns.items()]
    condition = None if where is None else where.to_json()
    text = json.dumps([before, described, condition, verb, list(arguments)], default=repr)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def cut(value: Any) -> bool:
    """Whether the description of a value was cut, so that other values may have the same one."""
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
    query_text = json.dumps([query.to_json(), tokens], default=str, separators=(",", ":"))
    question = f"{query_text}|{unit.neighbors}|{unit.space}|{unit.rows}|{unit.groups}|{rows}|{schema}"
    digest = hashlib.blake2b(question.encode("utf-8", "surrogatepass"), digest_size=24).hexdigest()
    key, worded = f"{digest}|{'|'.join(map(str, price))}", f"{digest}|{paid}|{queries}"
    return Label(digest, key, worded, name, version)
