"""Ledgers: what was declared and spent, and the stores that keep it. Stores are opened here and
nowhere else."""

from __future__ import annotations

import json
import os

from dpframe._errors import BadValue, did_you_mean
from dpframe._ledger.server import SERVED, ServerStore
from dpframe._ledger.sqlite import FileStore
from dpframe._ledger.store import UNSERVED, MemoryStore, Store, StoreKind, scheme_of, text_of
from dpframe._types import Json

# From the scheme of a URL to the stores that serve it. A path has no scheme.
STORES: dict[str, StoreKind] = {
    "": FileStore,
    "memory": MemoryStore,
    **dict.fromkeys(SERVED, ServerStore),
}
# There from the start: a forked child, which may not use it, cannot make one of its own.
MEMORY: Store = MemoryStore()
_stores: dict[str, Store] = {MemoryStore.place: MEMORY}  # by place


def open_store(ledger: str | os.PathLike[str] | None) -> Store:
    """Return the store of a ledger: a file, a database on a server, or for None a new one in
    memory. One process has a single store of each ledger."""
    if ledger is None:
        return MemoryStore()
    text: str = text_of(ledger) if isinstance(ledger, os.PathLike) else ledger
    kind = (
        STORES.get(scheme_of(text)) if isinstance(text, str) else FileStore
    )  # which says what it wants
    if kind is None:
        raise BadValue(UNSERVED)
    place = kind.place_of(text)
    return _stores.get(place) or _stores.setdefault(place, kind(text))


def place_of(ledger: str | None) -> str | None:
    """Return the full address of a ledger that outlives the process, or None for one in memory. A
    text that names no ledger is returned unchanged, and refused when it is opened."""
    kind = None if ledger is None else STORES.get(scheme_of(ledger))
    if ledger is None or (kind is not None and not kind.durable):
        return None
    try:
        return ledger if kind is None else kind.place_of(ledger)
    except BadValue:
        return ledger


def public_name(ledger: str) -> str:
    """Return the name of a ledger that may be printed: a path as it was given; for a URL, which may
    hold a password, its place."""
    return (place_of(ledger) or ledger) if scheme_of(ledger) else ledger


def on_record(ledger: str, population: object) -> Json:
    """Return the budget, the unit and the last version that a ledger has recorded for a population.
    A session that names an existing budget is opened with them. An unknown ledger or population is
    refused."""
    shown = public_name(ledger)
    if not exists(ledger):
        raise BadValue(
            f"there is no ledger {shown!r} yet, and a new one needs the whole budget: open(epsilon=1, ...)."
        )
    store = open_store(ledger)
    if population not in store.populations():
        known = did_you_mean(str(population), store.populations(), "It has")
        raise BadValue(
            f"the ledger {shown!r} has no population {population!r} yet, and a new one needs the whole budget: open(epsilon=1, "
            f"...).{known}"
        )
    record: Json = {}
    for entry in store.entries(str(population)):
        if entry.kind in ("open", "unit"):
            record |= json.loads(entry.body)
        elif entry.kind == "declaration":
            body = json.loads(entry.body)
            record |= {"version": body["value"]} if body["what"] == "version" else {}
    return record


def exists(ledger: str) -> bool:
    """Return whether there is such a ledger already."""
    kind = STORES.get(scheme_of(ledger))
    return kind is not None and kind.exists(ledger)
