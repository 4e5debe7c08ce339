"""Plans of duckdb, as its JSON has them: the types of what a query adds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from dpframe.engines.steadiness import FoundHazard
from dpframe.engines.tables.queries import STEADY, literal

_EXACT = {
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DECIMAL"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "BIGNUM", "VARINT"),
}  # fmt: skip


def find_plan_sums(asked: Callable[[str], list[Any]], query: str) -> list[FoundHazard] | None:
    """Return the aggregates of doubles in a query whose result depends on the order of rows.

    ``asked`` runs a statement on duckdb, which writes the plan of ``query`` as JSON. None means
    that duckdb does not write the plan.
    """
    plan: dict[str, Any] = {"error": True}
    with suppress(Exception):  # duckdb writes no plan of some queries, as of files
        ((text,),) = asked(f"select json_serialize_plan({literal(query)}, optimize := false)")
        plan = json.loads(text)
    if plan.get("error", True):
        return None
    return [
        FoundHazard("sums", name.upper())
        for name, types in _aggregates(plan)
        if name not in STEADY and not types <= _EXACT
    ]


def _aggregates(plan: object) -> Iterator[tuple[str, set[str]]]:
    """Yield the name of each aggregate or window of a JSON plan, and the types of its arguments."""
    todo = [plan]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            if one.get("expression_class") in ("BOUND_AGGREGATE", "BOUND_WINDOW"):
                path = (one.get("qname") or {}).get("path") or [
                    one.get("name") or one.get("function_name") or ""
                ]
                yield (
                    str(path[-1]),
                    {str(a.get("id")) for a in one.get("arguments") or one.get("children") or []},
                )
            todo += one.values()
        elif isinstance(one, list):
            todo += one
