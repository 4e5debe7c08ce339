"""Sessions: one frame, one budget, and the one door to the data."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn
from uuid import uuid4

import pandas as pd

from dpframe import _identity, _validate
from dpframe._errors import BadType, BadValue, BudgetError, LineageError, NoSession, SessionError
from dpframe._expr import Column
from dpframe._ledger import Budget, Ledger
from dpframe._plan import MECHANISMS, Plan, Price, make_plan
from dpframe._query import ROW_CEILING, Keys, Query, Unit, Word, describe, keys_for
from dpframe._validate import Bounds
from dpframe.accounting.loss import Loss
from dpframe.engines.pandas import PandasEngine

ATTR = "dpframe"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a session was opened with: the same words again find the same session."""

    budget: Loss
    unit: Unit
    queries: int
    bounds: tuple[tuple[int, Bounds], ...]
    times: tuple[tuple[int, str], ...]
    keys: tuple[tuple[int, Keys], ...]
    because: str | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """A plan and its noisy integers: all that ever leaves the door."""

    plan: Plan
    raw: tuple[Any, ...]


class Session:
    """A frame as it stood when it was opened, its terms, and its ledger."""

    def __init__(self, frame: pd.DataFrame, terms: Terms, leaves: dict[Hashable, Column]):
        self.name = uuid4().hex
        self.terms = terms
        self.leaves = leaves
        self.ledger = Ledger(terms.budget)
        self.bounds: dict[int, tuple[float, float]] = dict(terms.bounds)
        self.keys: dict[int, Keys] = dict(terms.keys)
        # Shares its buffers with the user's frame; copy-on-write keeps later edits out of it.
        self.snapshot = frame.copy(deep=False)
        self.marks = _identity.marks(self.snapshot)
        self.rows = len(frame)
        self.root = weakref.ref(frame)
        self._engine = PandasEngine(self.snapshot)
        self._answers: dict[tuple[Query, Price], Release] = {}
        self._lock = threading.RLock()
        self._asking = False
        self._process = os.getpid()
        self.closed = False

    def __copy__(self) -> Session:
        return self

    def __deepcopy__(self, memo: object) -> Session:
        return self

    def __reduce__(self) -> NoReturn:
        raise BadType("a session cannot be pickled: its budget must exist once. Pickle the answers instead.")

    @property
    def unit(self) -> Unit:
        return self.terms.unit

    @property
    def budget(self) -> Budget:
        return Budget(self.terms.budget, self.ledger.spent, self.terms.queries)

    def price(self, epsilon: object, delta: object, mechanism: object) -> Price:
        """The price that was asked for, or the session's share."""
        chosen = _validate.choice(mechanism, "mechanism", MECHANISMS)
        total, share = self.terms.budget, self.terms.queries
        e = total.epsilon / share if epsilon is None else _validate.epsilon(epsilon)
        if delta is not None:
            d = _validate.delta(delta)
            if chosen == "laplace" and d:
                raise BadValue(
                    "mechanism='laplace' is purely epsilon-private: leave delta= out, it would be wasted."
                )
            if chosen == "gaussian" and not d:
                raise BadValue("mechanism='gaussian' needs delta > 0.")
        elif chosen == "gaussian" or (epsilon is None and chosen == "auto"):
            d = total.delta / share
        else:
            # A price of epsilon alone means what a pure mechanism of that epsilon costs.
            d = Fraction(0)
        if chosen == "gaussian" and not total.delta:
            raise BudgetError("this session has delta=0, so it has no room for the Gaussian mechanism.")
        return Price(e, d, chosen)

    def plan(self, query: Query, price: Price, names: tuple[Word, ...]) -> Plan:
        return make_plan(query, self.unit, price, self._public_rows(query), self._declared(query, names)).plan

    def _public_rows(self, query: Query) -> int | None:
        """The number of rows where it is public: under replace-one, and of the whole root only."""
        return self.rows if self.unit.replaces and query.where is None and not query.by else None

    def _declared(self, query: Query, names: tuple[Word, ...]) -> tuple[Word, ...]:
        """The facts this question takes for public, beyond those that the session was opened with."""
        words = list(names)
        for out in query.outputs:
            if out.bounds and out.expr is not None and out.bounds != out.expr.bounds(self.bounds):
                pair = f"{out.expr}: ({out.bounds.lower:g}, {out.bounds.upper:g})"
                words.append(Word("bounds", pair, str(out)))
        opened = {keys.token for keys in self.keys.values()}
        words += [by.word for by in query.by if by.token not in opened and by.expr.kind != "bool"]
        return tuple(words)

    def ask(self, query: Query, price: Price, fresh: bool, names: tuple[Word, ...]) -> Release:
        """The one door: plan, debit, read, add noise. In this order, and nothing else reads the data.

        Formal guarantee: the sequence of all releases of a session is (epsilon, delta)-differentially private
        for its budget, however the questions were chosen (docs/guarantees/session.md). A question asked before
        at the same price is answered from what was released then; whether it was depends on questions only.
        """
        with self._lock, self._alone():
            known = None if fresh else self._answers.get((query, price))
            if known is not None:
                return known
            declared = self._declared(query, names)
            plan, statistics = make_plan(query, self.unit, price, self._public_rows(query), declared)
            self.ledger.debit(plan)
            for word in declared:
                self.ledger.declare(*word)
            # ------------------------------------------------------------------ the door: from here data is read
            reduced = self._engine.reduce(query, {p for s in statistics for p in s.primitives})
            raw = tuple(
                part.noise.release(s.integers(reduced))
                for part, s in zip(plan.parts, statistics, strict=True)
            )
            # ------------------------------------------------------------------ and closes: only noisy integers leave
            release = Release(plan, raw)
            self._answers[query, price] = release
            return release

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No question within a question: the lock lets its own thread in again, from a signal handler or a
        finaliser, and between two lines of a debit that would be a second answer for one price."""
        self.check_alive()
        if self._asking:
            raise SessionError("this session is in the middle of another question of the same thread.")
        self._asking = True
        try:
            yield
        finally:
            self._asking = False

    def check_alive(self) -> None:
        if self.closed:
            raise SessionError("this session was closed. A closed budget cannot be used again.")
        if os.getpid() != self._process:
            raise SessionError(
                "this process is a forked copy of the one that opened the session, and a copy has no budget of "
                "its own. Ask in the parent process."
            )

    def close(self) -> None:
        """Give up what is left of the budget and let go of the data."""
        with self._lock:
            self.closed = True
            if _sessions.pop(self.name, None) is not None:
                _closed.append(self)
            self.snapshot = self.snapshot.iloc[:0]
            self._engine = PandasEngine(self.snapshot)
            self._answers.clear()


# Sessions live here, because an accessor is built anew at every access and attrs are copied.
_sessions: dict[str, Session] = {}
_closed: list[Session] = []  # without their data
_opening = threading.RLock()


def find(attrs: Mapping[Hashable, Any]) -> Session | None:
    """The session a frame's attrs name; None where they name none."""
    name = attrs.get(ATTR)
    if name is None:
        return None
    session = _sessions.get(name) if isinstance(name, str) else None
    if session is None:
        raise NoSession(
            "this frame names a dpframe session that is not in this process: it was closed, or it ended with the "
            "process that opened it. Its budget is gone. If the data has never been asked, remove the name "
            "(del df.attrs['dpframe']) and open a session."
        )
    return session


def open_session(
    frame: pd.DataFrame,
    epsilon: object,
    delta: object = 0,
    *,
    unit: object = None,
    max_rows: object = None,
    max_groups: object = None,
    neighbors: object = "add-remove",
    bounds: object = None,
    keys: object = None,
    queries: object = 20,
    because: object = None,
) -> Session:
    """A session on this frame: the one there is, or a new one."""
    if unit is not None or max_rows is not None or max_groups is not None:
        raise BadValue(
            "unit=, max_rows= and max_groups= (many rows per person) are not in this version: a row is a person "
            "here. Aggregate to one row per person first, or leave them out if that is what the rows are."
        )
    if because is not None and not (isinstance(because, str) and because.strip()):
        raise BadType("because= must be a sentence: it is written in the ledger as your declaration.")
    leaves = _leaves(frame)
    terms = _terms(leaves, epsilon, delta, neighbors, bounds, keys, queries, because)
    with _opening:
        present = find(frame.attrs)
        same = present is not None and terms == present.terms and positions(frame, present) is not None
        if present is not None and (because is None or same):
            return _again(present, frame, terms)
        _refuse_second_budget(frame, because)
        if len(frame) > ROW_CEILING:
            raise SessionError(
                f"frames of more than {ROW_CEILING} rows are not supported: exact sums would not fit."
            )
        session = Session(frame, terms, leaves)
        _declare(session, because)
        _sessions[session.name] = session
        frame.attrs[ATTR] = session.name
        return session


def _leaves(frame: pd.DataFrame) -> dict[Hashable, Column]:
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise BadValue(f"column names must be unique: {twice!r} stands twice.")
    return {name: Column.of(i, name, frame.dtypes.iloc[i]) for i, name in enumerate(frame.columns)}


def _terms(
    leaves: dict[Hashable, Column],
    epsilon: object,
    delta: object,
    neighbors: object,
    bounds: object,
    keys: object,
    queries: object,
    because: str | None,
) -> Terms:
    budget = Loss(_validate.epsilon(epsilon), _validate.delta(delta))
    relation = _validate.choice(neighbors, "neighbors", ("add-remove", "replace-one"))
    numbers: list[tuple[int, Bounds]] = []
    times: list[tuple[int, str]] = []
    for name, pair in _mapping(bounds, "bounds").items():
        leaf = leaves[_validate.column_name(name, leaves)]
        if leaf.kind == "time":
            times.append((leaf.position, _time_bounds(pair, name)))
        elif leaf.kind in ("number", "bool"):
            numbers.append((leaf.position, _validate.bounds(pair, repr(name))))
        else:
            raise BadType(f"column {name!r} is of kind {leaf.kind}: only numbers and times have bounds.")
    listed = []
    for name, given in _mapping(keys, "keys").items():
        leaf = leaves[_validate.column_name(name, leaves)]
        listed.append((leaf.position, keys_for(given, leaf, name)))
    return Terms(
        budget,
        Unit("replace-one" if relation == "replace-one" else "add-remove"),
        _validate.positive_int(queries, "queries"),
        tuple(sorted(numbers)),
        tuple(sorted(times)),
        tuple(sorted(listed, key=lambda k: k[0])),
        because,
    )


def _mapping(value: object, name: str) -> Mapping[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadType(f"{name} must be a dict from column names, not {type(value).__name__}.")
    return value


def _time_bounds(pair: object, name: object) -> str:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise BadType(f"bounds of {name!r} must be a pair of dates.")
    try:
        lower, upper = (pd.Timestamp(p) for p in pair)
        ordered = bool(lower <= upper)
    except (TypeError, ValueError):
        raise BadType(f"bounds of {name!r} must be two dates, both with a time zone or neither.") from None
    if not ordered:
        raise BadValue(f"bounds of {name!r} are reversed or not dates.")
    return f"{lower.isoformat()} to {upper.isoformat()}"


def _again(present: Session, frame: pd.DataFrame, terms: Terms) -> Session:
    present.check_alive()
    if _identity.root_positions(frame, present.snapshot) is None:
        raise LineageError(
            "this frame belongs to the session of another frame, from which it was made or of which it is an edited "
            "version. A second budget on the same people would undo the first. Ask the frame that was opened, or "
            "declare why this one is right: open(..., because='...')."
        )
    if terms != present.terms:
        spent = present.budget
        raise SessionError(
            f"this frame has an open session with other terms (epsilon {spent.epsilon:g}, delta {spent.delta:g}, "
            f"{present.unit.neighbors}, {spent.spent:g} spent). Use it as df.dp; a second budget on the same people "
            "would undo the first."
        )
    return present


def _refuse_second_budget(frame: pd.DataFrame, because: object) -> None:
    if because is not None:
        return
    own = _identity.marks(frame)
    # Marks are addresses: those of a closed session mean something only while its frame keeps them in use.
    closed = [s for s in _closed if s.root() is not None]
    for other in [*_sessions.values(), *closed]:
        # The very same index object means the very same rows.
        if own & other.marks or (other.rows and frame.index.is_(other.snapshot.index)):
            raise SessionError(
                "this frame shares its data with a frame that has, or had, a session "
                f"(epsilon {other.budget.epsilon:g}, {other.budget.spent:g} spent). Ask that one, or declare why a "
                "second budget on the same people is right: open(..., because='...')."
            )


def _declare(session: Session, because: object) -> None:
    names = {leaf.position: name for name, leaf in session.leaves.items()}
    for position, pair in session.terms.bounds:
        session.ledger.declare("bounds", f"{names[position]!r}: ({pair.lower:g}, {pair.upper:g})", "open")
    for position, text in session.terms.times:
        session.ledger.declare("bounds", f"{names[position]!r}: {text}", "open")
    for position, listed in session.terms.keys:
        session.ledger.declare("keys", f"{names[position]!r}: {describe(listed.to_json())}", "open")
    if because is not None:
        session.ledger.declare("second budget", str(because), "open")


def positions(frame: pd.DataFrame, session: Session) -> list[int] | None:
    """Which root column each column of the frame provably is; None where one is not."""
    return _identity.root_positions(frame, session.snapshot)
