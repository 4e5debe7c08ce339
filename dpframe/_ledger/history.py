"""``python -m dpframe ledger FILE``: what a ledger holds, for its owner: a file, or a server by its URL. Reading only."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pandas as pd

from dpframe._errors import LedgerError
from dpframe._ledger import exists, open_store, shown
from dpframe._ledger.accountant import Accountant


def populations(path: str) -> list[Accountant]:
    """The budgets of a ledger that is there, in the order in which they were opened."""
    if not exists(path):
        kind = "ledger file" if shown(path) == path else "ledger"
        raise LedgerError(f"there is no {kind} {shown(path)!r}.")
    store = open_store(path)
    found = []
    for name in store.populations():
        terms = json.loads(next(e.body for e in store.entries(name) if e.kind == "open"))
        e, d, reserve = (Fraction(terms[word]) for word in ("epsilon", "delta", "reserve"))
        found.append(Accountant(e, d, terms["accountant"], reserve=reserve, ledger=path, population=name))
    return found


def as_json(path: str) -> str:
    """All of it as one JSON text: terms, meter, debits, declarations."""
    told = [
        {
            "population": account.population,
            "accountant": account.name,
            "epsilon": account.budget.epsilon,
            "delta": account.budget.delta,
            "used": account.budget.fraction,
            "debits": _records(account.ledger),
            "declarations": _records(account.declarations),
        }
        for account in populations(path)
    ]
    return json.dumps({"ledger": shown(path), "populations": told}, indent=1, allow_nan=False)


def _records(table: pd.DataFrame) -> Any:
    return json.loads(table.to_json(orient="records", date_format="iso"))


def as_text(path: str) -> str:
    lines = []
    for account in populations(path):
        lines += [f"population {account.population!r}, accountant {account.name!r}", repr(account.budget)]
        for title, table in (("debits", account.ledger), ("declarations", account.declarations)):
            lines.append(f"{title}: {len(table)}")
            if len(table):
                shown = table.assign(when=table["when"].dt.strftime("%Y-%m-%d %H:%M:%S"))
                shown = shown.drop(columns=[c for c in ("scale", "declared") if c in shown])
                lines.append(shown.fillna("").to_string(index=False, max_colwidth=40))
        lines.append("")
    return "\n".join(lines) if lines else "the ledger has no populations yet.\n"
