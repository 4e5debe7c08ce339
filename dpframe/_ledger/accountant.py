"""The accountant, and the ledger that it keeps: declarations, debits and answers, in order, for
ever.

A debit is admitted and on record before the data is read, under the store's lock, and there is no
way to take one back. The state of an accountant follows from the entries of its population alone,
so threads, kernels and processes that share a file share one budget.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias
from uuid import uuid4

import pandas as pd

from dpframe import plot as _plot
from dpframe._errors import (
    BadType,
    BadValue,
    BudgetExceeded,
    DPError,
    LedgerError,
    SessionError,
    caution,
)
from dpframe._groups.unit import ROWS, Unit
from dpframe._ledger import MEMORY, open_store, public_name
from dpframe._ledger.store import (
    Debit,
    Declared,
    Entry,
    MemoryStore,
    Store,
    StoredTable,
    alike,
    charge_for,
    charge_of,
    receipt_text,
    same_table,
    text_of,
    unpack,
)
from dpframe._plans.budget import DEFAULT_QUERIES, Budget
from dpframe._plans.plan import Plan
from dpframe._types import Json, Raw
from dpframe.accounting import open_filter
from dpframe.accounting._filter import Charge, Filter, Limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEBITS = ["when", "question", "mechanism", "scale", "epsilon", "delta", "used", "declared", "name"]
DECLARED = ("what", "value", "where")
_log = logging.getLogger("dpframe")
_log.addHandler(
    logging.NullHandler()
)  # who runs a service adds others; a notebook shows errors themselves


LabelKey: TypeAlias = (
    str | bytes | tuple[bytes, bytes | str]
)  # a digest; encodings if it is never on record


class Label(NamedTuple):
    """The identity of a question: ``question`` stands for the question itself, ``key`` for the
    question with its price, and ``paid`` for the question with its price as it was typed: the price
    of a share may change, and a repeated line stays free.

    Digests are made of one encoding of the question, ``whole``. A record that is found by a digest
    is compared with it.
    """

    question: LabelKey
    key: LabelKey
    paid: LabelKey
    name: str | None
    version: str | None
    place: int | None = None  # of a fresh question in its batch, which repeats no equal one
    whole: bytes = b""  # the encoding itself

    def to_json(self) -> Json:
        """Return the label as it stands in the record of an answer."""
        whole = base64.b64encode(zlib.compress(self.whole)).decode()
        return {**self._asdict(), "whole": whole}

    def asks(self, body: Json) -> bool:
        """Return whether a record answers this very question: equal digests are not enough."""
        return zlib.decompress(base64.b64decode(body["whole"])) == self.whole


Names = dict[
    tuple[str | None, str], tuple[LabelKey, LabelKey]
]  # from version and name to question and key


def find_answer(label: Label, answers: Mapping[Any, Any], names: Names) -> Any:
    """Return the recorded answer to a question, so that it need not be paid again; None without
    one. A name that was given to another question is refused."""
    if label.name is None or (label.version, label.name) not in names:
        return answers.get(label.key, answers.get(label.paid))
    question, key = names[label.version, label.name]
    if question != label.question:
        raise name_in_use(label.name)
    return answers.get(key)


def name_in_use(name: str) -> BadValue:
    """Return the error that says that another question has this name already."""
    return BadValue(
        f"name={name!r} was given to another question, or its data had another public number of rows. Choose "
        "another name, or say that the data is newer: open(..., version='...')."
    )


class Accountant:
    """One budget, which several frames may share that hold the same people.

    Formal guarantee: all that is released by the sessions that share it is together (epsilon,
    delta)-differentially private, however the questions were chosen, for every person, in all its
    frames at once. With a file the same holds across kernels, processes and restarts
    (docs/guarantees/accounting.md).

    Parameters
    ----------
    epsilon, delta
        The whole budget.
    accountant
        The rule that adds losses: ``"tight"`` where delta > 0, else ``"pure"``; or ``"advanced"``, ``"advanced-squared"``,
        ``"zcdp"``, ``"rdp"``, ``"gdp"``, and ``"pld"`` for one batch of plans declared in advance.
    reserve
        The part of delta kept for releases that fail with a small probability; half of it unless you say otherwise. It is
        fixed here: what it leaves is for the conversion of Gaussian and other losses.
    ledger, population
        What keeps the ledger, and the name of these people in it: the path of a file, or for a team
        ``"postgresql+psycopg://host/database"``. Without one, or in ``"memory:"``, a named population lives as long as
        the process.

    Examples
    --------
    >>> import pandas as pd
    >>> acc = Accountant(epsilon=1)
    >>> visits, patients = pd.DataFrame({"cost": [1, 2]}), pd.DataFrame({"age": [30, 41]})
    >>> p, q = visits.dp.open(accountant=acc), patients.dp.open(accountant=acc)
    >>> answers = p.count(epsilon=0.25), q.count(epsilon=0.25)
    >>> acc.budget.remaining
    0.5
    """

    place: str | None

    def __init__(
        self,
        epsilon: float | Fraction,
        delta: float | Fraction = 0,
        accountant: str | None = None,
        *,
        reserve: float | Fraction | None = None,
        ledger: str | os.PathLike[str] | None = None,
        population: str | None = None,
    ):
        """Open the budget of a population, or attach to its record in a ledger. ``accountant``
        names the composition rule, and ``reserve`` is the part of delta kept for releases that may
        fail. Without a ledger the budget lasts as long as the process."""
        rule = open_filter(epsilon, delta, accountant, reserve)
        self._begin(rule, rule.start(), population, ledger)

    @classmethod
    def _of(cls, rule: Filter, empty: Any, population: str | None, file: str | None) -> Accountant:
        """Return an accountant from arguments that were checked before. ``rule`` is the composition
        rule, and ``empty`` its value before any charge. ``file`` is the ledger's address."""
        accountant = cls.__new__(cls)
        accountant._begin(rule, empty, population, file)
        return accountant

    def _begin(
        self,
        rule: Filter,
        empty: Any,
        population: str | None,
        ledger: str | os.PathLike[str] | None,
    ) -> None:
        """Set up a new accountant: its composition rule, its store, and what the ledger has
        recorded so far."""
        self._filter = rule
        self._limits = rule.limits
        alone = population is None and ledger is None  # nothing else can have this budget
        self._population = f"unnamed-{uuid4().hex}" if alone else check_population(population)
        address = None if ledger is None else text_of(ledger)
        self._store: Store = (
            MemoryStore() if alone else MEMORY if address is None else open_store(address)
        )
        self._file = public_name(address) if address is not None and self._store.durable else None
        # Once and for all: in another directory the same path would be another file.
        self.place = self._store.place if self._store.durable else None
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._last = 0
        self._state: Any = empty
        self._charges: list[Charge] = []
        self._states: list[Any] = []  # of the filter, after each
        self._unit: Json | None = None  # the relation and what names a person
        self._declared: set[tuple[str, str, str]] = set()
        self._answers: dict[
            str, str
        ] = {}  # by key, by the price as typed, and the last one by question
        self._names: Names = {}
        self._vectors: dict[
            str, tuple[str, int]
        ] = {}  # by digest: the answer it stands in, and its place there
        self._sketches: list[list[str]] = []
        self._tables: dict[str, list[str]] = {}  # by columns and version
        self._opened = False
        self.queries = DEFAULT_QUERIES  # what the last `open` said
        if not alone:
            self._sync()

    def __copy__(self) -> Accountant:
        return self

    def __deepcopy__(self, memo: object) -> Accountant:
        return self

    def __reduce__(self) -> NoReturn:
        raise BadType(
            "an accountant cannot be pickled: its budget must exist once. Name its ledger file instead."
        )

    def __eq__(self, other: object) -> bool:
        """Return whether both are accountants of one budget."""
        return isinstance(other, Accountant) and self._place == other._place

    def __hash__(self) -> int:
        return hash(self._place)

    @property
    def _place(self) -> tuple[int, str]:
        return id(self._store), self._population

    # Facts --------------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the rule that adds losses."""
        return self._filter.name

    @property
    def limits(self) -> Limits:
        """Epsilon, delta, and the reserve, exact."""
        return self._limits

    @property
    def batches(self) -> bool:
        """Whether it guards only what is declared together: `PrivateFrame.plan_ahead`."""
        return self._filter.batches

    @property
    def population(self) -> str:
        """The name of its people; of a budget in memory one that nobody else has."""
        return self._population

    @property
    def file(self) -> str | None:
        """The path of its ledger, as it was given; of a server the place, without user and
        password; None in memory."""
        return self._file

    @property
    def secret(self) -> bytes:
        """The key of the store's hashes."""
        return self._store.secret

    @property
    def budget(self) -> Budget:
        """Budget of the population, with what is spent and left; `Budget.report` compares the
        accountants.

        It has as many shares as the last `open` with ``queries=`` said.
        """
        return self.meter(self.queries)

    def meter(self, queries: int) -> Budget:
        """Return the budget as it stands now, divided into this number of shares."""
        with self._alone():
            self._sync()
            debits = len(self._charges)
            return Budget(
                self._filter, self._state, self._charges, debits, queries, self._describe_deployment
            )

    def _describe_deployment(self, budget: Budget) -> dict[str, Any]:
        """Return what a public registry of deployments asks for, of the debits of a budget."""
        with self._alone():
            self._sync()
            debits = self._entries("debit")[: len(budget.charges)]
        plans = [Plan.from_json(data) for entry in debits for data in _json(entry)["plans"]]
        times = [entry.when for entry in debits]
        unit = self._unit
        people = None
        if unit is not None:
            people = f"all rows of one person, by {', '.join(unit['space'])}"
            people = "one row" if unit["space"] == ROWS else people
        return {
            "software": "dpframe",
            "model": "central",
            "population": None if self._population.startswith("unnamed-") else self._population,
            "unit": people,
            "neighboring_relation": None if unit is None else unit["neighbors"],
            "definition": "approximate" if budget.delta else "pure",
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "accountant": budget.accountant,
            "used": budget.fraction,
            "mechanisms": sorted({plan.mechanism for plan in plans}),
            "debits": len(debits),
            "questions": len(plans),
            "first_debit": min(times, default=None),
            "last_debit": max(times, default=None),
        }

    def _terms(self) -> Json:
        """Return the budget and its composition rule as the first entry of a ledger records
        them."""
        e, d, r = map(str, self._limits)
        return {
            "schema": 1,
            "accountant": self._filter.name,
            "epsilon": e,
            "delta": d,
            "reserve": r,
        }

    def _get_used_part(self, state: Any) -> float:
        return 1.0 if state is None else float(self._filter.spent(state))

    # Reading the store -------------------------------------------------------------------------------------------------

    def _sync(self, first_in_transaction: bool = False) -> None:
        """Take in the ledger's entries that other processes have written since the last look.

        An accountant takes in its own entries when it writes them. ``first_in_transaction`` says
        that a write transaction has begun and nothing was appended yet.
        """
        # Once something was appended, nothing is taken in: the transaction may still be undone.
        if self._store.busy and not first_in_transaction:
            return
        for entry in self._store.entries(self._population, self._last):
            try:
                self._fold(entry)
            except (KeyError, TypeError, ValueError, AttributeError) as problem:
                if isinstance(problem, DPError):
                    raise
                raise LedgerError(
                    f"entry {entry.id} of the ledger is not readable, so nothing more is answered. Was it written by a "
                    "newer dpframe?"
                ) from None

    def _fold(self, entry: Entry) -> None:
        """Update this accountant from one entry of the ledger: a charge, an answer, a declaration
        or the like. A budget that was opened with other terms is refused."""
        body = _json(entry)
        if entry.kind == "open":
            if body != self._terms():
                raise SessionError(
                    f"population {self._population!r} was opened with other terms: epsilon {_short(body['epsilon'])}, "
                    f"delta {_short(body['delta'])}, accountant {body['accountant']!r}, reserve {_short(body['reserve'])}. "
                    "Open it with those; a second budget on the same people would undo the first."
                )
            self._opened = True
        elif entry.kind == "unit":
            self._unit = body
        elif entry.kind == "debit":
            charge = charge_of(body)
            self._charges.append(charge)
            # Rounding may differ between machines; a debit that does not fit here ends the budget
            # here.
            self._state = None if self._state is None else self._filter.after(self._state, charge)
            self._states.append(self._state)
        elif entry.kind == "declaration":
            self._declared.add((body["what"], body["value"], body["where"]))
        elif entry.kind == "answer":
            for name in ("key", "paid", "question"):
                self._answers[body[name]] = entry.body
            self._vectors.update((key, (entry.body, i)) for i, key in enumerate(body["vectors"]))
            if body["name"] is not None:
                self._names[body["version"], body["name"]] = body["question"], body["key"]
        elif entry.kind == "sketch":
            self._sketches.append(body["hashes"])
        elif entry.kind == "table":
            self._tables.setdefault(body["columns"], body["rows"])
        self._last = entry.id

    def _append(self, kind: str, body: Json | str) -> Entry:
        text = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))
        return self._store.append(self._population, kind, text)

    # Writing ----------------------------------------------------------------------------------------------------------------

    def _alone(self) -> AbstractContextManager[bool]:
        """Return the lock that keeps other threads out of the accountant for a block. A forked copy
        of the process is refused."""
        # Before the lock: a thread that does not exist in a forked child may have held it.
        if os.getpid() != self._process:
            raise SessionError(
                "this process is a forked copy of the one that made this budget. Open its ledger file here, or ask there."
            )
        return self._lock

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold a write transaction of the ledger for a block, after taking in the entries of other
        processes. Entries appended in it count once they are on record."""
        with self._alone(), self._store.transaction():
            self._sync(first_in_transaction=True)
            yield

    def attach(
        self,
        unit: Unit,
        hashes: list[str],
        because: object = None,
        table: StoredTable | None = None,
    ) -> None:
        """Attach a table to this budget, or refuse it if its people are not those of the budget.
        The first table decides the neighbouring relation and the columns that name people; others
        must agree.

        With a file it also refuses a frame whose sketch is that of people whom the ledger has under
        another name, and another table with the columns and the version of a known one, whose
        answers would be taken for its own.
        """
        with self._writing():
            if hashes and because is None and not _among(hashes, self._sketches):
                self._refuse_others(hashes)
            if table is not None:
                self._refuse_another(table)
            if not self._opened:
                self._append("open", self._terms())
            unit_record = {"neighbors": unit.neighbors, "space": unit.recorded}
            if self._unit is None:
                self._append("unit", unit_record)
            elif self._unit != unit_record:
                raise SessionError(
                    f"this budget is for frames with neighbors={self._unit['neighbors']!r} whose people are named by "
                    f"{self._unit['space']}, and this one has {unit.neighbors!r} and {unit.recorded}. One budget counts one "
                    "relation between the same people."
                )
            if hashes and hashes not in self._sketches:
                self._append("sketch", {"hashes": hashes})
            if table is not None and table.columns not in self._tables:
                self._append("table", {"columns": table.columns, "rows": table.rows})
        with self._alone():
            self._sync()

    def _refuse_others(self, hashes: list[str]) -> None:
        """Refuse a table whose people already have a budget under another name in this ledger.
        ``hashes`` is the table's sketch, by which people are recognized."""
        for name in self._store.populations():
            entries = self._store.entries(name)
            sketches = [_json(e)["hashes"] for e in entries if e.kind == "sketch"]
            if name == self._population or not sketches:
                continue
            if _among(hashes, sketches):
                raise SessionError(
                    f"these are the people of population {name!r} in this ledger, under another name. Attach to its "
                    f"budget: open(..., population={name!r}), or declare why a second one is right: open(..., because='...')."
                )

    def _refuse_another(self, table: StoredTable) -> None:
        """Refuse a table that differs from the first one recorded with its columns and version.

        Each table is compared with the first one alone, so that tables cannot drift away step by
        step.
        """
        if table.columns in self._tables and not same_table(
            table.rows, self._tables[table.columns]
        ):
            raise SessionError(
                "this population has another table with the same columns, and its answers would be taken for this one's. "
                "If this is another table, or a newer state of it, name it: open(..., version='...')."
            )

    def declare(self, declarations: Iterable[Declared]) -> None:
        """Record facts about the data that the owner declares public, each once."""
        distinct = list(dict.fromkeys(declarations))
        with self._alone():
            if not self._declared.issuperset(distinct):
                with self._writing():
                    for declaration in distinct:
                        if declaration not in self._declared:
                            self._append(
                                "declaration", dict(zip(DECLARED, declaration, strict=True))
                            )
                self._sync()

    def debit(
        self,
        plans: Sequence[Plan],
        declarations: Sequence[Declared] = (),
        name: str | None = None,
        charge_at: Callable[[Fraction], Charge] | None = None,
    ) -> None:
        """Charge the budget for some plans before they are answered, or raise `BudgetExceeded` and
        charge nothing.

        ``declarations`` are those that the plans rely on; they are recorded with the charge.
        ``name`` is that of the answer. ``charge_at(epsilon)`` returns the charge of the question at
        another epsilon, to say which one would fit.
        """
        charge = plans[0].charge if len(plans) == 1 else charge_for(plans)
        with self._alone():
            with self._store.transaction():
                self._sync(first_in_transaction=True)
                after = None if self._state is None else self._filter.after(self._state, charge)
                if after is not None:
                    note = self._filter.warning(self._state, after)
                    if note is not None:  # as an error it stops here, and nothing is charged
                        caution(note)
                    new = []
                    for declaration in dict.fromkeys(declarations):
                        if declaration not in self._declared:
                            new.append(declaration)
                            record = dict(zip(DECLARED, declaration, strict=True))
                            self._append("declaration", record)
                    debit = Debit(tuple(plans), name)
                    body = debit.text if self._store.durable else debit
                    entry = self._store.append(self._population, "debit", body)
            if after is not None:
                # On record: only now does it count here. If anything fails before the last line,
                # `_sync` will read it, so that it may count twice but never not at all.
                self._state = after
                self._charges.append(charge)
                self._states.append(after)
                self._declared.update(new)
                self._last = entry.id
            else:
                budget = self.budget
        if after is not None:
            if _log.isEnabledFor(logging.INFO):
                tell(logging.INFO, "debit", self, "; ".join(plan.question for plan in plans))
            return
        if _log.isEnabledFor(logging.WARNING):
            tell(logging.WARNING, "refused", self, "; ".join(plan.question for plan in plans))
        # Outside of the lock: the search for a price that would fit takes time, and asks this
        # budget for prices.
        raise BudgetExceeded(budget._refusal(charge, charge_at))

    def record(self, label: Label, plan: Plan, raw: Raw, vectors: Sequence[str] = ()) -> None:
        """Record a released answer, so that asking again after a restart costs nothing.

        ``vectors`` are the digests by which its vectors are found again, one by one.
        """
        if self._file is not None:
            with self._alone():
                with self._writing():
                    self._append(
                        "answer", receipt_text(plan, raw, **label.to_json(), vectors=list(vectors))
                    )
                self._sync()

    def recall(self, label: Label, shares: Iterable[str] = ()) -> tuple[Plan, Raw] | None:
        """Return the recorded plan and noisy numbers of a question that was paid before, or None.

        ``label`` holds the digests of the question and of its price. A named question is found at
        any price. Others are found at this price, or under a key in ``shares``: the keys of the
        question at the prices of equal shares that it may have been paid with before. What is found
        by a digest is compared with the whole question.
        """
        if self._file is None:
            return None
        with self._alone():
            self._sync()
            text = find_answer(label, self._answers, self._names)
            # Whether the question was answered at some price, before the shares are computed.
            if text is None and label.question in self._answers:
                text = next(filter(None, map(self._answers.get, shares)), None)
            body = None if text is None else json.loads(text)
            if body is not None and not label.asks(body):
                return None
        return None if body is None else (Plan.from_json(body["plan"]), tuple(unpack(body["raw"])))

    def recall_vector(self, key: str) -> tuple[Plan, Any, int] | None:
        """Return one recorded vector of noisy integers: its plan, the integers, and its index in
        the plan. ``key`` is its digest.

        Return None if the vector is not on record.
        """
        if self._file is None:
            return None
        with self._alone():
            self._sync()
            found = self._vectors.get(key)
        if found is None:
            return None
        body, place = json.loads(found[0]), found[1]
        return Plan.from_json(body["plan"]), unpack(body["raw"])[place], place

    # Tables ---------------------------------------------------------------------------------------------------------------

    @property
    def ledger(self) -> pd.DataFrame:
        """Table of all debits, whether or not their answers were ever released.

        ``epsilon`` and ``delta`` are the guarantee of the release by itself, ``used`` the part of
        the budget that was gone then.
        """
        rows = []
        with self._alone():
            self._sync()
            entries = self._entries("debit")
        for entry, state in zip(entries, self._states, strict=False):
            body = _json(entry)
            for data in body["plans"]:
                plan = Plan.from_json(data)
                rows.append(
                    (
                        *(
                            pd.Timestamp(entry.when),
                            plan.question,
                            plan.mechanism,
                            plan.scale,
                            plan.epsilon,
                        ),
                        *(
                            plan.delta,
                            self._get_used_part(state),
                            "; ".join(plan.declared),
                            body["name"],
                        ),
                    )
                )
        return pd.DataFrame(rows, columns=DEBITS)

    def list_released_integers(self) -> list[Raw]:
        """Return the noisy integers of all answers in the ledger file; without a file none."""
        if self.place is None:
            return []
        return [tuple(unpack(_json(entry)["raw"])) for entry in self._entries("answer")]

    @property
    def has_debits(self) -> bool:
        """Whether this process knows of a debit."""
        return bool(self._charges)

    @property
    def declarations(self) -> pd.DataFrame:
        """Table of all facts that are public because the owner declared them."""
        entries = self._entries("declaration")
        rows = [(pd.Timestamp(e.when), *(_json(e)[k] for k in DECLARED)) for e in entries]
        return pd.DataFrame(rows, columns=["when", *DECLARED])

    def _entries(self, kind: str) -> list[Entry]:
        return [e for e in self._store.entries(self._population) if e.kind == kind]

    def plot(self, ax: Any = None) -> Axes:
        """Plot the used share of the budget after each debit, over time. ``ax`` are matplotlib axes
        to draw on; axes are returned.

        Its times are those of the ledger. `Budget.plot` shows where it stands now, and what other
        rules would have counted.
        """
        table = self.ledger
        return _plot.used_over_time(table["when"], table["used"], ax)

    def __repr__(self) -> str:
        place = f", population {self._population!r} in {self.file!r}" if self.file else ""
        return f"{self.budget!r}\naccountant {self.name!r}{place}"

    def _repr_html_(self) -> str:
        return self.budget._repr_html_()


def tell(level: int, what: str, account: Accountant, questions: str) -> None:
    """Log a debit or a refusal: the question, the population, and the used part of the budget.
    ``what`` is the event's name, and all of it is public. An error of a log handler is dropped,
    since the debit is recorded already."""
    with suppress(Exception):
        gone = account._get_used_part(account._state)
        extra = {"population": account.population, "question": questions, "used": gone}
        _log.log(
            level,
            "%s: %s; population %r, %.4g %% used",
            what,
            questions,
            account.population,
            100 * gone,
            extra=extra,
        )


def _among(hashes: list[str], sketches: Iterable[list[str]]) -> bool:
    return any(alike(hashes, sketch) for sketch in sketches)


def _json(entry: Entry) -> Any:
    """Return the decoded body of a ledger entry, and refuse an unreadable one."""
    try:
        return json.loads(entry.body)
    except ValueError:
        raise LedgerError(
            f"entry {entry.id} of the ledger is not readable, so nothing more is answered."
        ) from None


def _short(number: str) -> str:
    return f"{float(Fraction(number)):g}"


def check_population(population: object) -> str:
    """Return the name of a population, and refuse anything but a non-empty text."""
    if not isinstance(population, str) or not population.strip():
        raise BadType(
            "population= must be a name such as 'patients-2026', and a ledger file needs one."
        )
    if population != population.encode("utf-8", "ignore").decode():
        raise BadValue("population= must be valid Unicode.")
    return population


def can_be_opened_again(accountant: Accountant) -> bool:
    """Return whether the name of an accountant opens it again.

    Without a named population this object alone has the budget.
    """
    return accountant._store.durable or accountant._store is MEMORY
