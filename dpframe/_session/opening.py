"""Opening a session: the arguments of `open`, and the checks whether this frame may have a
budget."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from inspect import signature
from typing import Any

import pandas as pd

from dpframe._errors import BadType, BadValue, LineageError, SessionError, caution, did_you_mean
from dpframe._expr import Column
from dpframe._groups.keys import ROW_CEILING
from dpframe._groups.unit import ROWS, Neighbors, named_in
from dpframe._ledger import on_record, place_of
from dpframe._ledger.accountant import Accountant
from dpframe._ledger.store import Declared, StoredTable, text_of
from dpframe._plans.budget import DEFAULT_QUERIES
from dpframe._session.card import Card
from dpframe._session.data import (
    ATTR,
    Data,
    closed,
    find_root_positions,
    leaves_of,
    names_same_budget,
    session_of,
    sessions,
)
from dpframe._session.door import read_private
from dpframe._session.recognition import recognise_table
from dpframe._session.session import Session
from dpframe._session.terms import AccountTerms, Terms, Words
from dpframe._types import Arguments
from dpframe.engines.sources import Source

_LARGE, _NO_PROMISE = (
    Fraction(1, 1000),
    Fraction(1, 10),
)  # a delta that is warned of, and one that is refused
opening = threading.RLock()  # a session that another thread opens is seen
_scope: ContextVar[list[Session] | None] = ContextVar("scope", default=None)


def open_session(
    frame: pd.DataFrame,
    epsilon: float | None = None,
    delta: float | None = None,
    *,
    unit: object = None,
    max_rows: int | None = None,
    max_groups: int | None = None,
    neighbors: Neighbors = "add-remove",
    bounds: Mapping[Any, tuple[float, float]] | None = None,
    keys: Mapping[Any, object] | None = None,
    queries: int = DEFAULT_QUERIES,
    accountant: str | Accountant | None = None,
    reserve: float | None = None,
    ledger: str | os.PathLike[str] | None = None,
    population: str | None = None,
    version: str | None = None,
    table: str | None = None,
    n: int | None = None,
    card: str | os.PathLike[str] | None = None,
    because: str | None = None,
    show: str | None = None,
    reliable: float | None = None,
) -> Session:
    """Open the budgeted session of this frame; the same words again return the session that is
    there.

    Opened again, a word that is left out stays as it is. The budget and ``unit`` never change; new
    bounds and keys, column by column, limits, ``queries`` and ``n`` are taken:
    ``df.dp.open(bounds={"cost": (0, 500)})``.

    Formal guarantee: everything released through the session is together (epsilon,
    delta)-differentially private in one row, or in all rows of one person where ``unit`` names
    them, under the neighbouring relation, given that what you declare here is public.

    Without a ledger file the budget lives in this process and ends with it. Loading the same table
    again and opening it is a second budget, which is warned of.

    Parameters
    ----------
    epsilon, delta
        The whole budget. With ``delta=0`` the guarantee is pure.
    unit, max_rows, max_groups
        The column, or columns, that name a person who may have many rows, and for how many rows (of a group) and groups
        one person may count. A question may have limits of its own. Without ``unit`` a row is a person.
    neighbors
        ``"add-remove"``: a neighbour has one row more or less. ``"replace-one"``: it differs in one row, and
        the number of rows is public.
    bounds
        Public facts: ``{"age": (0, 110)}``. Values outside are clipped. Never take them from the data. Of a time column
        the first and the last moment, ``("2024-01-01", "2024-12-31")``: rows outside are in no period of `resample`.
    keys
        Public facts: ``{"state": ["CA", "NY"]}``, the groups that may appear, in the order of the answers; of several
        columns together ``{("state", "sex"): [("CA", "F"), ("NY", "M")]}``.
    queries
        A question without a price takes one such share of the budget.
    accountant, reserve
        The rule that adds losses and its part of delta (see `dpframe.Accountant`); or an Accountant that other frames
        share, which brings the budget along.
    ledger, population
        A file that keeps the ledger, and the name of these people in it: the same words in another process, or tomorrow,
        go on with the same budget. Answers on record are free. A ledger that has the name knows the budget and the unit:
        ``open(ledger="budget.db", population="patients", bounds=...)``.
    version
        The name of this state of the data. What was answered for another version is not repeated for this one.
    table
        The name of this table, where tables with the same columns share a budget: ``table="north"`` and ``table="south"``.
    n
        Public: how many people there are. ``within=`` uses it, and a delta that is too large for it is warned of.
    card
        A file with the public facts of the table (unit, limits, bounds, keys, version, population), each with its author and
        reason, as ``p.card("visits.toml")`` writes it; also CSVW-EO metadata. A word beside the card stands before it.
    because
        Declares why a second budget on the same rows is right; written in the ledger.
    show, reliable
        What becomes of numbers that are noise: ``"all"`` (the default) shows them with a mark, ``"nan"`` leaves them out. A
        number is noise where half its 95 % interval is more than the part ``reliable`` (0.5) of it, or of what is possible
        (``answer.dp.reliable``). Either may change at any time: it is about how answers look, and no other question.

    Examples
    --------
    >>> df = pd.DataFrame({"age": [30, 41, 55], "state": ["CA", "NY", "CA"]})
    >>> p = df.dp.open(1, bounds={"age": (0, 110)}, keys={"state": ["CA", "NY"]})
    >>> p.budget.remaining
    1.0
    """
    arguments = {
        "epsilon": epsilon,
        "delta": delta,
        "unit": unit,
        "max_rows": max_rows,
        "max_groups": max_groups,
        "neighbors": neighbors,
        "bounds": bounds,
        "keys": keys,
        "queries": queries,
        "accountant": accountant,
        "reserve": reserve,
        "ledger": ledger,
        "population": population,
        "version": version,
        "table": table,
        "n": n,
        "card": card,
        "because": because,
        "show": show,
        "reliable": reliable,
    }
    return find_or_open_session(frame, arguments)


WORDS = tuple(signature(open_session).parameters)[1:]


def name_arguments(budget: Arguments, named: Words) -> dict[str, Any]:
    """Return the arguments of an `open` by name, from those given by position and by name.

    ``budget`` has those by position: epsilon, then delta. An unknown name is refused, with the
    nearest known one.
    """
    first = dict(zip(WORDS, budget[:2], strict=False))
    if len(budget) > 2:
        raise BadType(
            f"open is given {len(budget)} arguments by position, and takes at most 2 by position: epsilon, delta."
        )
    twice = [name for name in first if name in named]
    if twice:
        raise BadType(f"open is given {twice[0]} twice, by position and by name.")
    unknown = next((name for name in named if name not in WORDS), None)
    if unknown is not None:
        raise BadType(f"open has no argument {unknown}=.{did_you_mean(unknown, WORDS, 'It has')}")
    return {**first, **named}


def find_or_open_session(frame: pd.DataFrame, arguments: Words) -> Session:
    """Return the open session of a frame, if the arguments agree with it, or open a new one.

    The order of the steps is such that a refusal leaves nothing behind:

    1. A card, if one is given, is read, and has to fit the table. ``because`` and ``version`` are
       checked to be texts.
    2. `_again` returns the session that the frame names, if the budget, the unit and the rows are
       those of that session.
    3. `Data.of` keeps a shallow copy of the frame, with the marks that identify it. No cell is
       read.
    4. `Terms.of` checks the arguments, each once.
    5. A second budget on the same rows, a frame that is too long, and a delta that promises nothing
       are refused.
    6. The accountant opens the ledger, and data, terms and accountant become a `Session`.
    7. A twin is refused: another frame of this budget with the same columns and version.
    8. `Accountant.attach` writes limits and unit into the ledger, which refuses other terms. A file
       also gets the hashes by which it recognizes the people, and refuses people that it has under
       another name.
    9. The owner's declarations go into the ledger.
    10. A table that was opened before in this process, with another budget, is warned of.
    11. The session is registered, and the frame gets its name.
    """
    if arguments.get("card") is not None:
        card = Card.of(arguments["card"])
        card.check(leaves_of(frame.columns, frame.dtypes))
        arguments = card.add_facts(arguments)
    because, version = arguments.get("because"), arguments.get("version")
    if because is not None and not (isinstance(because, str) and because.strip()):
        raise BadType(
            "because= must be a sentence: it is written in the ledger as your declaration."
        )
    if version is not None and not (isinstance(version, str) and version.strip()):
        raise BadType("version= must be a name of this state of the data, such as '2026-11'.")
    arguments = put_table_in_version(arguments)
    with opening:
        present = None if frame.attrs.get(ATTR) is None else _present(frame, arguments)
        if present is not None and (because is None or repeats_opening(present, frame, arguments)):
            return _again(present, frame, arguments)
        if arguments.get("epsilon") is None and arguments.get("ledger") is not None:
            arguments = fill_from_ledger(leaves_of(frame.columns, frame.dtypes), arguments)
        data = Data.of(frame, arguments.get("version"))
        terms = Terms.of(data, arguments)
        if because is None:
            refuse_second_budget(data, terms.account)
        if data.rows > ROW_CEILING:
            raise SessionError(
                f"frames of more than {ROW_CEILING} rows are not supported: exact sums would not fit."
            )
        warn_of_delta(data, terms)
        session = Session(data, terms, terms.account.open())
        # Without a population nothing but this session can have the budget.
        if terms.account.population is not None:
            refuse_same_columns(session)
        if terms.account.place is None:
            session.accountant.attach(terms.unit, [], because)
        else:
            _attach(session, because)
        _declare(session, because)
        recognise_table(session, because is not None)
        sessions[session.name] = session
        frame.attrs[ATTR] = session.name
        in_scope = _scope.get()
        if in_scope is not None:
            in_scope.append(session)
        return session


@contextmanager
def scope() -> Iterator[list[Session]]:
    """Yield a list that collects the sessions opened by this thread inside a ``with`` block."""
    in_scope: list[Session] = []
    token = _scope.set(in_scope)
    try:
        yield in_scope
    finally:
        _scope.reset(token)


def _attach(session: Session, because: object) -> None:
    """Attach a frame and its people to the budget in a ledger file.

    The hashes by which the file recognizes these people again are computed from the data and
    stored. ``because`` is the reason for a second budget on the same people, or None.
    """
    account, unit = session.accountant, session.terms.unit
    sketches = read_private("open", session._engine.sketches, unit, account.secret)
    if session.data.source is not None:
        session.data.source.check()
    table = StoredTable(session.data.schema, session.data.version, sketches.table)
    account.attach(unit, sketches.people, because, table)


def fill_from_ledger(leaves: Mapping[Hashable, Column], arguments: Words) -> Words:
    """Complete the arguments of an `open` from the budget that a ledger file has under this
    population.

    ``leaves`` has the columns of the table by name. Arguments that were given stay as they are.
    """
    ledger = arguments["ledger"]
    if not isinstance(ledger, str | os.PathLike) or arguments.get("population") is None:
        return arguments
    record = on_record(str(text_of(ledger)), arguments["population"])
    numbers = {word: Fraction(record[word]) for word in ("epsilon", "delta", "reserve")}
    words = {word: record.get(word) for word in ("accountant", "neighbors", "version")}
    known = {**numbers, **words, "unit": named_in(record.get("space", ROWS), leaves)}
    return {**known, **{word: value for word, value in arguments.items() if value is not None}}


def _present(frame: pd.DataFrame, arguments: Words) -> Session | None:
    """Return the session that a frame names in its attrs, if it is open in this process.

    Return None if the frame names a session of another process with the same ledger and population.
    Any other name without an open session is refused.
    """
    ledger, population = arguments.get("ledger"), arguments.get("population")
    name = frame.attrs.get(ATTR)
    session = sessions.get(name) if isinstance(name, str) else None
    # A frame that names a session of another process may go on with the ledger and the population
    # it names.
    file = text_of(ledger) if isinstance(ledger, str | os.PathLike) else None
    if session is not None or (
        file is not None and names_same_budget(frame.attrs, place_of(file), population)
    ):
        return session
    return session_of(frame.attrs)


def warn_of_delta(data: Data, terms: Terms) -> None:
    """Warn of a delta that is large for the number of people, and refuse one that promises next to
    nothing.

    The number of people is used only if it is public. A reason in ``because=`` permits any delta.
    """
    delta, because = terms.account.limits.delta, terms.because
    if not delta:
        return
    public = terms.unit.replaces and not terms.unit.people
    people = data.rows if public else terms.people
    if delta >= _NO_PROMISE and because is None:
        raise BadValue(
            f"delta={float(delta):g} promises next to nothing: to publish the whole table with that probability would keep it. "
            "Choose a delta far below one over the number of people, such as 1e-6, or declare why this one is right: "
            "open(..., because='...')."
        )
    if people is None and delta >= _LARGE:
        caution(
            f"delta={float(delta):g} is large: of a table of {math.ceil(1 / delta)} people or more, publishing one random row in "
            "full would keep the promise. Choose a delta far below one over the number of people, such as 1e-6, or tell how many "
            "there are: open(..., n=...)."
        )
    if people and delta * people > Fraction(1, 10):
        caution(
            f"delta={float(delta):g} is not far below 1/n = {1 / people:.3g}: publishing one random person's row in full "
            "would be (0, 1/n)-private. Choose a delta of a tenth of that at most, better a thousandth.",
        )


def repeats_opening(present: Session, frame: pd.DataFrame, arguments: Words) -> bool:
    """Return whether these arguments repeat the call that opened the frame, with the same
    ``because=``.

    If they do, the session ``present`` goes on, and no second budget is opened.
    """
    if find_root_positions(frame, present.data.snapshot) is None:
        return False
    terms = present.terms
    return (
        terms.again(present.leaves, arguments).differs(terms) is None
        and arguments["because"] == terms.because
    )


def open_again(source: Source, arguments: Words) -> Source | None:
    """Return the source of an open session that reads the same table as ``source``.

    Return None if no session does, or if the arguments declare a second budget with ``because=``.
    """
    given = (
        arguments["card"].add_facts(arguments) if arguments.get("card") is not None else arguments
    )
    for session in list(sessions.values()):
        known = session.data.source
        if known is None or not known.reads(source):
            continue
        if given.get("because") is None or repeats_opening(session, known.schema, given):
            return known
    return None


def _again(present: Session, frame: pd.DataFrame, arguments: Words) -> Session:
    """Return the session that a frame already has, updated by the arguments of another `open`.

    Bounds, keys, limits, ``queries`` and ``n`` may change. A different budget or unit is refused,
    and so is a frame that was edited or derived.
    """
    present.check_alive()
    if find_root_positions(frame, present.data.snapshot) is None:
        raise LineageError(
            "this frame belongs to the session of another frame, from which it was made or of which it is an edited "
            "version. A second budget on the same people would undo the first. Ask the frame that was opened, or "
            "declare why this one is right: open(..., because='...')."
        )
    terms = present.terms.again(present.leaves, arguments)
    if terms != present.terms:
        difference = terms.differs(present.terms)
        if difference is not None:
            descriptions = {
                "account": "the budget, accountant, ledger or population",
                "unit": "neighbors= or unit=",
            }
            budget = present.budget
            raise SessionError(
                f"this frame has an open session with other terms (epsilon {budget.epsilon:g}, delta {budget.delta:g}, "
                f"accountant {budget.accountant!r}, {present.unit.neighbors}, {budget.fraction:.0%} used): "
                f"{descriptions.get(difference, difference + '=')} differs. Use it as df.dp; a second budget on the same "
                "people would undo the first."
            )
        # Bounds, keys, limits, shares and n are about the data, not about the budget: the new ones
        # go on record, too.
        present.restate(terms)
        _declare(present, None)
    return present


def refuse_second_budget(data: Data, account: AccountTerms) -> None:
    """Refuse to open a frame that shares data with a session under another budget.

    Open, closed and derived sessions are compared. ``account`` is the budget that is asked for.
    """
    # Marks are addresses: those of a closed session mean something only while its frame keeps them
    # in use.
    closed_sessions = [s for s in closed if s.data.root() is not None]
    derived = [d for s in sessions.values() if s.derived for d in s.derived]
    for other in [*sessions.values(), *closed_sessions, *derived]:
        # Frames that share rows may share a budget.
        if other.data.shares(data) and not account.names(other.accountant):
            raise SessionError(
                "this frame shares its data with a frame that has, or had, a session "
                f"(epsilon {other.budget.epsilon:g}, {other.budget.fraction:.0%} spent). Ask that one, or declare why a "
                "second budget on the same people is right: open(..., because='...')."
            )


def put_table_in_version(arguments: Words) -> dict[str, Any]:
    """Return the arguments with ``table=`` merged into ``version=``, so that answers of different
    tables differ."""
    rest = {word: value for word, value in arguments.items() if word != "table"}
    table, version = arguments.get("table"), arguments.get("version")
    if table is None:
        return rest
    if not (isinstance(table, str) and table.strip()):
        raise BadType("table= must be a name of this table, such as 'north'.")
    return {**rest, "version": f"table {table!r}" + ("" if version is None else f", {version!r}")}


def refuse_same_columns(session: Session) -> None:
    """Refuse a second frame with the same columns and version under one budget.

    Without this the second frame would get the recorded answers of the first one.
    """
    for other in list(sessions.values()):
        same = other.accountant == session.accountant and other.data.schema == session.data.schema
        # Of a frame that is gone this is the data read once more.
        if same and other.data.root() is not None:
            raise SessionError(
                "this budget has an open session of another frame with the same columns. If this is the same table, read "
                "once more, go on with that session, or close() it first. If it is another table, or another state of the data, "
                "tell the two apart: open(..., table='...') or open(..., version='...')."
            )


def _declare(session: Session, because: object) -> None:
    """Write what the owner declared at `open` into the ledger.

    ``because`` is the reason for a second budget on the same people, or None.
    """
    terms = session.terms
    declared = terms.record(list(session.leaves))
    if because is not None:
        declared.append(("second budget", str(because), "open"))
        if terms.account.limits.delta >= _NO_PROMISE:
            declared.append(("delta", f"{float(terms.account.limits.delta):g}: {because}", "open"))
    if terms.sources:
        warn_of_other_cards(session, declared)
    session.accountant.declare(declared)


def warn_of_other_cards(session: Session, declared: list[Declared]) -> None:
    """Warn if an earlier card of the same population stated another value for the same fact.

    ``declared`` are the declarations of this session. Facts that the ledger itself keeps fixed are
    not compared here.
    """
    # A declaration about a column begins with the column's name, and then a colon.
    subjects = {what: [f"{c!r}: " for c in session.leaves] for what in ("bounds", "keys")}
    earlier: dict[tuple[str, str], tuple[str, str]] = {}
    for what, value, where in session.accountant.declarations[
        ["what", "value", "where"]
    ].itertuples(index=False):
        subject = next((s for s in subjects.get(what, ()) if value.startswith(s)), "")
        if where.startswith("card") and (subject or what in ("n", "max_rows", "max_groups")):
            earlier[what, subject] = (value, where)
    for what, value, where in declared:
        subject = next((s for s in subjects.get(what, ()) if value.startswith(s)), "")
        before = earlier.get((what, subject))
        # A card that was corrected, by the same hand, is no other card.
        if (
            before is not None
            and where.startswith("card")
            and before[0] != value
            and before[1] != where
        ):
            caution(
                f"two cards of population {session.accountant.population!r} differ: {what} {value} ({where}), and before "
                f"{before[0]} ({before[1]}). The new one holds from here on; what was answered stays as it is."
            )
