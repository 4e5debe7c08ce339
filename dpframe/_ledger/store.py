"""What is recorded, and the seam between accountants and what keeps it: entries, the contract of a
store, and one in memory.

Formal guarantee. An entry appended in a `transaction` that ended without an error is read by every
later `entries` of its population, in all threads and processes that use the store: at once, after
the death of the process, and after a power failure if the disk keeps what it acknowledged.
Transactions happen one after the other, wholly or not at all. Where that cannot be established
there is a `LedgerError`, never a shorter list.
"""

from __future__ import annotations

import base64
import json
import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, NamedTuple, NoReturn, Protocol

import numpy as np

from dpframe._errors import BadType, BadValue, LedgerError, SessionError
from dpframe._plans.plan import Plan, draft_of
from dpframe._types import Array, Json, Raw
from dpframe.accounting._filter import Charge
from dpframe.accounting.loss import Events, loss_from_json
from dpframe.mechanisms import _sampling


class Entry(NamedTuple):
    """One line of a population's history."""

    id: int
    when: str
    kind: str
    body: str


@dataclass(frozen=True, slots=True)
class Debit:
    """A debit that is not written yet: the plans that are charged together, and the name of their
    answers."""

    plans: tuple[Plan, ...]
    name: str | None = None

    @property
    def text(self) -> str:
        """The body of the entry."""
        named = "null" if self.name is None else json.dumps(self.name)
        return f'{{"name":{named},"plans":[{",".join([plan.text for plan in self.plans])}]}}'


class Store(Protocol):
    """Entries of text by population, added and never changed: what an accountant needs of whatever
    keeps its ledger.

    A new one subclasses the tests in ``tests/store/conformance.py``, is one file below
    ``dpframe/_ledger``, and a line in the table ``STORES`` there, by the scheme of its URLs.
    `docs/develop/add-a-store.md` builds one.

    *What privacy rests on.*

    - `transaction` is exclusive among all who use the store: threads, kernels, processes, machines.
      What was appended is on record when it ends without an error, and undone where the block
      raises. Where nobody can say which of the two happened, as when a server does not answer, it
      raises; an entry that turns out to be on record will be read and counted.
    - An entry is never changed and never lost, and ids grow in the order of transactions. A store
      that cannot give all the entries, or that finds them changed, cut off, rolled back, or of a
      format it does not know, raises `LedgerError`: less than was spent would be a budget spent
      twice.
    - Texts come back as they were, whatever they hold. No error shows more than the place, which
      holds no password.
    - A store in memory cannot be copied: pickles and copies are refused, and a forked child does
      not write as its parent.

    >>> store: Store = MemoryStore()
    >>> with store.transaction():
    ...     entry = store.append("patients", "debit", "{}")
    >>> entry.id, [e.body for e in store.entries("patients")], store.entries("patients", after=entry.id)
    (1, ['{}'], [])
    >>> store.populations(), store.durable, store.place, len(store.secret)
    (['patients'], False, 'memory:', 32)
    """

    def transaction(self) -> AbstractContextManager[None]:
        """Return a block in which nobody else appends. One inside another, in the same thread, is
        refused."""

    def append(self, population: str, kind: str, body: Any) -> Entry:
        """Write one entry and return it; it counts once the transaction has ended. Outside of a
        transaction it is refused.

        ``body`` is text. A store that is not durable is also handed a `Debit`, whose text it may
        write when the entry is read: what is returned has neither time nor text then.
        """

    def entries(self, population: str, after: int = 0) -> list[Entry]:
        """Return the entries of a population whose ids are above ``after``, in order; in a
        transaction also those appended in it."""

    def populations(self) -> list[str]:
        """Return the names of all populations, in the order of their first entries."""

    @property
    def busy(self) -> bool:
        """Whether a transaction is open here, whose entries may yet be undone."""

    @property
    def secret(self) -> bytes:
        """32 random bytes, drawn when the store was made and the same ever after: the key of its
        hashes."""

    @property
    def place(self) -> str:
        """The one name of this store, by which any process opens it again. Frames carry it in their
        attrs."""

    @property
    def durable(self) -> bool:
        """Whether it outlives the process, so that answers and sketches are kept in it too."""


class StoreKind(Protocol):
    """A class of stores, as the table ``STORES`` has it: called with what the user gave as
    ``ledger=``, it opens one."""

    def __call__(self, ledger: str, /) -> Store: ...

    @property
    def durable(self) -> bool: ...

    def place_of(self, ledger: str, /) -> str:
        """Return the place of a store that is not opened for it. Refused where the text names
        none."""

    def exists(self, ledger: str, /) -> bool:
        """Return whether there is one already: opening makes those that are not there."""


UNSERVED: Final = (
    "a ledger is the path of a file, or a database of a PostgreSQL server: postgresql+psycopg://host/database. No other URL is "
    "served. A file whose name has a colon is './name'."
)


def scheme_of(ledger: str) -> str:
    """Return the scheme of a ledger's URL, such as ``postgresql``; "" for a path. It has two
    letters at least, or a Windows drive would be one.

    >>> scheme_of("json:study"), scheme_of("json:/study"), scheme_of("./json:study"), scheme_of("C:study")
    ('json', 'json', '', '')
    """
    # One slash, since Path() makes two into one. A colon within the name of a folder belongs to a
    # path.
    match = re.match(r"([A-Za-z][\w+.-]+):(?:/|[^/\\]*\Z)|(file|memory):", ledger)
    return "" if match is None else (match[1] or match[2]).lower()


def text_of(ledger: str | os.PathLike[str]) -> str:
    """Return the path or URL of a ledger as text. A path object stays a path, although it drops the
    "./" before a name with a colon.

    >>> from pathlib import Path
    >>> text_of(Path("./study:2026")), text_of("study.db")
    ('./study:2026', 'study.db')
    """
    text = os.fspath(ledger)
    alone = (
        isinstance(ledger, os.PathLike) and isinstance(text, str) and not re.search(r"[/\\]", text)
    )
    return f"./{text}" if alone and scheme_of(text) else text


class Once:
    """What cannot be pickled or copied."""

    def __reduce__(self) -> NoReturn:
        raise BadType(
            "a ledger cannot be pickled or copied: its budget exists once. Open its file again."
        )


def entry_of(
    number: int, population: str, kind: str, body: str, moment: datetime | None = None
) -> Entry:
    """Return a ledger entry dated ``moment``, by default now. Texts that UTF-8 cannot hold are
    refused."""
    for text in (population, kind, body):
        if not isinstance(text, str):
            raise BadType(f"an entry of a ledger is made of strings, not of {type(text).__name__}.")
        if not text.isascii() and text != text.encode("utf-8", "ignore").decode():
            raise BadValue("an entry of a ledger must be valid Unicode, without lone surrogates.")
    return Entry(
        number, (moment or datetime.now(UTC)).isoformat(timespec="microseconds"), kind, body
    )


NESTED: Final = "a transaction of this ledger is open in this thread already. Finish it first."
FORKED: Final = "a forked child has no budget of its own. Ask in the parent, or use a file."
OUTSIDE: Final = (
    "an entry is appended inside `with store.transaction():` only. Nothing was recorded."
)


class MemoryStore(Once):
    """A list that ends with the process; a forked child, which would hold a copy, may not use
    it."""

    durable = False
    place = "memory:"

    def __init__(self, ledger: str = place) -> None:
        """Create an empty ledger in the memory of this process. ``ledger`` is its address, which is
        always the same."""
        # With the moment and the debit where the entry is not written yet.
        self._entries: list[tuple[str, Entry, tuple[datetime, Debit] | None]] = []
        self._lock = threading.RLock()
        self._process = os.getpid()
        self.busy = False

    @cached_property
    def secret(self) -> bytes:
        return _sampling.random_bytes(32)

    @staticmethod
    def place_of(ledger: str) -> str:
        """Return the address of the ledger in memory, and refuse any other. A file of that name is
        refused too, since its budget must not begin anew."""
        if ledger != MemoryStore.place:
            raise BadValue(UNSERVED)
        if os.path.lexists(
            ledger
        ):  # it may be a ledger of before, whose budget must not begin anew
            raise BadValue(
                f"{ledger!r} is the memory of this process, and there is a file of that name here. That file is './{ledger}'; "
                "for memory leave ledger= out."
            )
        return MemoryStore.place

    @staticmethod
    def exists(ledger: str) -> bool:
        """Return True: the memory comes with the process."""
        return True

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the lock for a block; if the block fails, its entries are removed."""
        # Before the lock: a thread that does not exist in the child may have held it.
        if os.getpid() != self._process:
            raise SessionError(FORKED)
        with self._lock:
            if self.busy:
                raise LedgerError(NESTED)
            before, self.busy = len(self._entries), True
            try:
                yield
            except BaseException:
                del self._entries[before:]
                raise
            finally:
                self.busy = False

    def append(self, population: str, kind: str, body: str | Debit) -> Entry:
        """Add one entry and return it; a debit becomes text only when it is read."""
        if os.getpid() != self._process:
            raise SessionError(FORKED)
        with self._lock:
            if not self.busy:
                raise LedgerError(OUTSIDE)
            number, unwritten = len(self._entries) + 1, None
            if not isinstance(body, Debit):
                entry = entry_of(number, population, kind, body)
            elif all(
                draft_of(plan) is not None and draft_of(plan).cells is plan.cells
                for plan in body.plans
            ):
                # Most are never read, and to write one takes long. Nothing that it says can change:
                # plans are frozen, and their drafts have the text of the cells.
                entry, unwritten = Entry(number, "", kind, ""), (datetime.now(UTC), body)
            else:
                entry = entry_of(number, population, kind, body.text)
            self._entries.append((population, entry, unwritten))
            return entry

    def entries(self, population: str, after: int = 0) -> list[Entry]:
        """Return the entries of a population whose number is above ``after``."""
        if os.getpid() != self._process:
            raise SessionError(FORKED)
        with self._lock:
            found = []
            for place in range(max(after, 0), len(self._entries)):
                owner, entry, unwritten = self._entries[place]
                if owner == population:
                    if unwritten is not None:
                        moment, debit = unwritten
                        entry = entry_of(entry.id, population, entry.kind, debit.text, moment)
                        self._entries[place] = owner, entry, None
                    found.append(entry)
            return found

    def populations(self) -> list[str]:
        if os.getpid() != self._process:
            raise SessionError(FORKED)
        with self._lock:
            return list(dict.fromkeys(owner for owner, _, _ in self._entries))


# What entries are made of: the charge of plans, answers, and sketches of tables and people ----------------------

Declared = tuple[str, str, str]  # what, value, where


class StoredTable(NamedTuple):
    """What answers are about: a table by its columns and version, and by what it is known again."""

    columns: str
    version: str | None
    rows: list[str]


def charge_for(plans: Sequence[Plan]) -> Charge:
    """Return one charge for plans that are paid together: all their privacy losses, and the sum of
    their deltas."""
    charges = [plan.charge for plan in plans]
    if len(charges) == 1:
        return charges[0]
    losses: Events = tuple(event for charge in charges for event in charge.losses)
    return Charge(losses, sum((charge.delta for charge in charges), Fraction(0)))


def charge_of(body: Json) -> Charge:
    """Return the charge of a debit's record: what `charge_for` made of its plans."""
    losses = tuple((loss_from_json(plan["loss"]), 1) for plan in body["plans"])
    return Charge(losses, sum((Fraction(plan["stated_at"]) for plan in body["plans"]), Fraction(0)))


# Answers: a plan with its noisy integers -------------------------------------------------------------------


def pack(raw: Sequence[Any]) -> list[Any]:
    """Return the arrays of a release as lists and dicts that JSON can hold. Integers become base64
    of little-endian int64, or digits where they are longer. Text of one dimension stays."""
    packed: list[Any] = []
    for array in raw:
        if array.dtype.kind == "U" or (array.dtype == object and array.ndim == 1):
            packed.append({"text": array.tolist()})
        elif array.dtype == object:
            packed.append([[str(x) for x in row] for row in array])
        else:
            data = base64.b64encode(np.ascontiguousarray(array, dtype="<i8").tobytes()).decode()
            packed.append({"rows": array.shape[0], "data": data})
    return packed


def unpack(packed: Sequence[Any]) -> list[Any]:
    return [decode_payload(p) for p in packed]


def decode_payload(p: Any) -> Array:
    """Return one array of a release from what `pack` made of it for JSON."""
    if isinstance(p, list):
        return np.array([[int(x) for x in row] for row in p], dtype=object)
    if "text" in p:
        # A dtype of fixed width would cut NULs off, and give all texts the room of the longest.
        texts = np.empty(len(p["text"]), dtype=object)
        texts[:] = p["text"]
        return texts
    return np.frombuffer(base64.b64decode(p["data"]), dtype="<i8").reshape(p["rows"], -1)


_as_text = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def receipt_text(plan: Plan, raw: Raw, **extra: Any) -> str:
    """Return a receipt as JSON: the plan, the noisy integers, and further fields."""
    rest = _as_text({"raw": pack(raw), **extra})
    return f'{{"version":1,"plan":{plan.text},{rest[1:]}'


# Sketches: two tables whose sketches share enough hashes hold the same people --------------------

SHARED = 0.25  # of the people of two frames
SAME = 0.5  # of the rows of one table in two states


def alike(one: list[str], other: list[str]) -> bool:
    """Return whether they share a quarter of the smaller one's hashes."""
    if not one or not other:
        return False
    return len(set(one) & set(other)) >= SHARED * min(len(one), len(other))


def same_table(one: list[str], other: list[str]) -> bool:
    """Return whether at least half of the rows of the larger of two tables are in both, about; of
    one without a sketch, all."""
    return len(set(one) & set(other)) >= SAME * max(len(one), len(other))
