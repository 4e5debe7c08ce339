"""``python -m dpframe ledger FILE``: the contents of a ledger, a file or a server by its URL, for
its owner. It only reads."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pandas as pd

from dpframe._errors import LedgerError
from dpframe._ledger import exists, open_store, public_name
from dpframe._ledger.accountant import Accountant


def populations(path: str) -> list[Accountant]:
    """Return the accountants of all populations in an existing ledger, in the order in which they
    were opened."""
    if not exists(path):
        kind = "ledger file" if public_name(path) == path else "ledger"
        raise LedgerError(f"there is no {kind} {public_name(path)!r}.")
    store = open_store(path)
    accountants = []
    for name in store.populations():
        terms = json.loads(next(e.body for e in store.entries(name) if e.kind == "open"))
        e, d, reserve = (Fraction(terms[term]) for term in ("epsilon", "delta", "reserve"))
        accountants.append(
            Accountant(e, d, terms["accountant"], reserve=reserve, ledger=path, population=name)
        )
    return accountants


def as_json(path: str) -> str:
    """Return the whole ledger as JSON: budget, rule of composition, debits and declarations of each
    population."""
    records = [
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
    return json.dumps(
        {"ledger": public_name(path), "populations": records}, indent=1, allow_nan=False
    )


def _records(table: pd.DataFrame) -> Any:
    return json.loads(table.to_json(orient="records", date_format="iso"))


def as_text(path: str) -> str:
    """Return the whole ledger as readable text: budget, debits and declarations of each
    population."""
    lines = []
    for account in populations(path):
        lines += [
            f"population {account.population!r}, accountant {account.name!r}",
            repr(account.budget),
        ]
        for title, table in (("debits", account.ledger), ("declarations", account.declarations)):
            lines.append(f"{title}: {len(table)}")
            if len(table):
                printed = table.assign(when=table["when"].dt.strftime("%Y-%m-%d %H:%M:%S"))
                printed = printed.drop(columns=[c for c in ("scale", "declared") if c in printed])
                lines.append(printed.fillna("").to_string(index=False, max_colwidth=40))
        lines.append("")
    return "\n".join(lines) if lines else "the ledger has no populations yet.\n"
