"""Opening a session: what the words mean, and whether this frame may have a budget."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Hashable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from fractions import Fraction
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe._errors import BadType, BadValue, LineageError, SessionError, caution, did_you_mean
from dpframe._expr import Column
from dpframe._groups.combinations import Tuples
from dpframe._groups.keys import ROW_CEILING, describe, keys_for
from dpframe._groups.periods import Span, span_of
from dpframe._groups.unit import Unit, limits_for
from dpframe._ledger import place_of
from dpframe._ledger.accountant import Accountant, check_population
from dpframe._ledger.records import Table
from dpframe._session import identity as _identity
from dpframe._session.door import sealed
from dpframe._session.registry import ATTR, closed, find, positions, same_place, sessions
from dpframe._session.session import AccountTerms, Session, Terms
from dpframe._validate import Bounds
from dpframe.accounting import ACCOUNTANTS, open_filter
from dpframe.accounting._filter import Limits
from dpframe.engines.fingerprints import former_sketch

_NO_UNIT = "max_rows= and max_groups= need unit=, the column that names a person."
_LARGE, _NO_PROMISE = Fraction(1, 1000), Fraction(1, 10)  # a delta that is warned of, and one that is refused
_opening = threading.RLock()
# What an audit's call opens in its own thread, so that the audit can forget it.
watching: ContextVar[list[Session] | None] = ContextVar("watching", default=None)


def open_session(
    frame: pd.DataFrame,
    epsilon: object = None,
    delta: object = None,
    *,
    unit: object = None,
    max_rows: object = None,
    max_groups: object = None,
    neighbors: object = None,
    bounds: object = None,
    keys: object = None,
    queries: object = None,
    accountant: object = None,
    reserve: object = None,
    ledger: object = None,
    population: object = None,
    version: object = None,
    n: object = None,
    because: object = None,
    **others: object,
) -> Session:
    """A session on this frame: the one there is, or a new one."""
    if others:
        word = next(iter(others))
        raise BadType(f"open has no argument {word}=.{did_you_mean(word, WORDS, 'It has')}")
    if because is not None and not (isinstance(because, str) and because.strip()):
        raise BadType("because= must be a sentence: it is written in the ledger as your declaration.")
    if version is not None and not (isinstance(version, str) and version.strip()):
        raise BadType("version= must be a name of this state of the data, such as '2026-11'.")
    budget = epsilon, delta, accountant, reserve, ledger, population
    about = queries, bounds, keys, n, version, because
    with _opening:
        present = _present(frame, ledger, population)
        if present is not None:
            told = _told_again(present, budget, (unit, max_rows, max_groups, neighbors), about)
            same = because is None or (_differs(told, present) is None and because == present.terms.because)
            if because is None or (same and positions(frame, present) is not None):
                return _again(present, frame, told)
        leaves = _leaves(frame)
        account = _account(*budget)
        relation = _unit(leaves, unit, max_rows, max_groups, "add-remove" if neighbors is None else neighbors)
        for column in relation.people:
            _check_tells_apart(column, frame.dtypes.iloc[column.position])
        people = None if n is None else _validate.positive_int(n, "n")
        shares = 20 if queries is None else _validate.positive_int(queries, "queries")
        terms = Terms(account, relation, shares, *_words(leaves, bounds, keys), people, version, because)
        _refuse_second_budget(frame, because, account)
        if len(frame) > ROW_CEILING:
            raise SessionError(
                f"frames of more than {ROW_CEILING} rows are not supported: exact sums would not fit."
            )
        public = relation.replaces and not relation.people
        _warn_of_delta(account.limits.delta, len(frame) if public else people, because)
        session = Session(frame, terms, leaves)
        _refuse_twins(session)
        _attach(session, because)
        _declare(session, because)
        sessions[session.name] = session
        frame.attrs[ATTR] = session.name
        watched = watching.get()
        if watched is not None:
            watched.append(session)
        return session


def _attach(session: Session, because: object) -> None:
    """The frame and its people to the budget; where that is in a file, with what it knows them by."""
    account, frame, unit = session.accountant, session.snapshot, session.unit
    if account.file is None:
        account.attach(unit, [], because)
        return
    places = [c.position for c in unit.people]
    known = sealed("open", session._engine.sketches, unit, account.secret)
    table = Table(session.schema, session.terms.version, known.table)
    people = frame.iloc[:, places] if places else frame

    def former() -> list[str] | None:
        return sealed("open", former_sketch, people, account.secret)

    account.attach(unit, known.people, because, table, former)


def _present(frame: pd.DataFrame, ledger: object, population: object) -> Session | None:
    """The session this frame names, where it is in this process."""
    name = frame.attrs.get(ATTR)
    here = sessions.get(name) if isinstance(name, str) else None
    # A frame that names a session of another process may go on with the ledger and the population it names.
    file = os.fspath(ledger) if isinstance(ledger, str | os.PathLike) else None
    if here is not None or (file is not None and same_place(frame.attrs, place_of(file), population)):
        return here
    return find(frame.attrs)


def _told_again(
    present: Session, budget: tuple[Any, ...], unit: tuple[Any, ...], about: tuple[Any, ...]
) -> Terms:
    """The terms of an open session with the words that are said once more: one left out stays as it is."""
    own, leaves = present.terms, present.leaves
    queries, bounds, keys, n, version, because = about
    people, rows, groups, neighbors = unit
    relation = own.unit
    if people is not None or neighbors is not None:
        named = [c.name for c in own.unit.people] or None if people is None else people
        relation = _unit(leaves, named, None, None, own.unit.neighbors if neighbors is None else neighbors)
    if relation.people and _same_people(relation, own.unit):
        relation = own.unit
    if (rows is not None or groups is not None) and not relation.people:
        raise BadValue(_NO_UNIT)
    new_bounds, new_times, new_keys = _words(leaves, bounds, keys)
    return Terms(
        _account_again(own.account, *budget),
        relation.limited(*limits_for(rows, groups)),
        own.queries if queries is None else _validate.positive_int(queries, "queries"),
        _merged(own.bounds, new_bounds),
        _merged(own.times, new_times),
        _merged(own.keys, new_keys),
        own.people if n is None else _validate.positive_int(n, "n"),
        own.version if version is None else version,
        own.because if because is None else because,
    )


def _merged(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    """Column by column: the new word where there is one."""
    return tuple(sorted({**dict(old), **dict(new)}.items(), key=_place))


def _account_again(
    own: AccountTerms,
    epsilon: object,
    delta: object,
    accountant: object,
    reserve: object,
    ledger: object,
    population: object,
) -> AccountTerms:
    if isinstance(accountant, Accountant):
        return _account(epsilon, delta, accountant, reserve, ledger, population)
    limits = Limits(
        own.limits.epsilon if epsilon is None else _validate.epsilon(epsilon),
        own.limits.delta if delta is None else _validate.delta(delta),
        own.limits.reserve if reserve is None else _validate.delta(reserve, "reserve"),
    )
    rule = own.rule if accountant is None else _validate.choice(accountant, "accountant", ACCOUNTANTS)
    name = own.population if population is None else check_population(population)
    place = own.place if ledger is None else place_of(_file(ledger))
    return replace(own, limits=limits, rule=rule, population=name, place=place)


def _account(
    epsilon: object, delta: object, accountant: object, reserve: object, ledger: object, population: object
) -> AccountTerms:
    if isinstance(accountant, Accountant):
        if not epsilon is delta is reserve is ledger is population is None:
            raise BadValue(
                "accountant= brings its own epsilon, delta, ledger and population: leave them out."
            )
        place = accountant.place
        return AccountTerms(
            accountant.limits, accountant.name, accountant.population, place, accountant, accountant.file
        )
    if epsilon is None:
        raise BadType(
            "open needs the whole budget: open(epsilon=1), or accountant= with a dpframe.Accountant."
        )
    rule = open_filter(epsilon, 0 if delta is None else delta, accountant, reserve)
    file = None if ledger is None else _file(ledger)
    if population is not None or ledger is not None:
        check_population(population)
    own = None if population is None else str(population)
    return AccountTerms(rule.limits, rule.name, own, place_of(file), None, file)


def _file(ledger: object) -> str:
    if not isinstance(ledger, str | os.PathLike):
        raise BadType(f"ledger= must be the path of a file, not {type(ledger).__name__}.")
    return str(os.fspath(ledger))


def _unit(
    leaves: dict[Hashable, Column], unit: object, max_rows: object, max_groups: object, neighbors: object
) -> Unit:
    relation: Any = _relation(neighbors)
    rows, groups = limits_for(max_rows, max_groups)
    if unit is None:
        if rows is not None or groups is not None:
            raise BadValue(_NO_UNIT)
        return Unit(relation)
    names = unit if isinstance(unit, list) else [unit]
    if not names:
        raise BadValue("unit= names no column.")
    columns = [leaves[name] for name in _validate.column_names(names, leaves)]
    return Unit(relation, tuple(columns), rows, groups)


def _check_tells_apart(column: Column, dtype: Any) -> None:
    """A unit column must be of a dtype whose cells are told apart: else two people would be one, who stays when one leaves."""
    arrow = dtype.pyarrow_dtype if isinstance(dtype, pd.ArrowDtype) else None
    rounded = getattr(arrow, "precision", 0) > 15 or (
        isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize > 8
    )
    if column.kind == "other" or rounded:
        raise BadType(
            f"unit={column.name!r} has the dtype {dtype}, whose values are not told apart here. Name people by text, whole "
            f"numbers or times: df[{column.name!r}].astype(str), before opening."
        )


def _relation(neighbors: object) -> str:
    return _validate.choice(neighbors, "neighbors", ("add-remove", "replace-one"))


def _warn_of_delta(delta: Fraction, people: int | None, because: object) -> None:
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


def _leaves(frame: pd.DataFrame) -> dict[Hashable, Column]:
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise BadValue(f"column names must be unique: {twice!r} stands twice.")
    return {name: Column.of(i, name, frame.dtypes.iloc[i]) for i, name in enumerate(frame.columns)}


def _words(leaves: dict[Hashable, Column], bounds: object, keys: object) -> tuple[Any, Any, Any]:
    """Bounds of numbers, bounds of times, and keys, by the places of their columns."""
    numbers: list[tuple[int, Bounds]] = []
    times: list[tuple[int, Span]] = []
    for name, pair in _mapping(bounds, "bounds").items():
        leaf = leaves[_validate.column_name(name, leaves)]
        if leaf.kind == "time":
            times.append((leaf.position, span_of(pair, name)))
        elif leaf.kind in ("number", "bool"):
            numbers.append((leaf.position, _validate.bounds(pair, repr(name))))
        else:
            raise BadType(f"column {name!r} is of kind {leaf.kind}: only numbers and times have bounds.")
    listed: list[tuple[Any, Any]] = []
    for name, given in _mapping(keys, "keys").items():
        if (
            isinstance(name, tuple) and name not in leaves and len(name) > 1
        ):  # combinations of several columns
            several = [leaves[n] for n in _validate.column_names(list(name), leaves)]
            listed.append((tuple(c.position for c in several), Tuples.of(given, several, name)))
            continue
        leaf = leaves[_validate.column_name(name, leaves)]
        listed.append((leaf.position, keys_for(given, leaf, name)))
    return (
        tuple(sorted(numbers)),
        tuple(sorted(times)),
        tuple(sorted(listed, key=_place)),
    )


def _place(word: tuple[Any, Any]) -> list[int]:
    places: list[int] = np.atleast_1d(word[0]).tolist()
    return places


def _mapping(value: object, name: str) -> Mapping[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadType(f"{name} must be a dict from column names, not {type(value).__name__}.")
    return value


def _again(present: Session, frame: pd.DataFrame, terms: Terms) -> Session:
    present.check_alive()
    if _identity.root_positions(frame, present.snapshot) is None:
        raise LineageError(
            "this frame belongs to the session of another frame, from which it was made or of which it is an edited "
            "version. A second budget on the same people would undo the first. Ask the frame that was opened, or "
            "declare why this one is right: open(..., because='...')."
        )
    if terms != present.terms:
        other = _differs(terms, present)
        if other is not None:
            named = {"account": "the budget, accountant, ledger or population", "unit": "neighbors= or unit="}
            budget = present.budget
            raise SessionError(
                f"this frame has an open session with other terms (epsilon {budget.epsilon:g}, delta {budget.delta:g}, "
                f"accountant {budget.accountant!r}, {present.unit.neighbors}, {budget.fraction:.0%} used): "
                f"{named.get(other, other + '=')} differs. Use it as df.dp; a second budget on the same people would "
                "undo the first."
            )
        # Bounds, keys, limits, shares and n are words about the data, not about the budget: the new ones are on record too.
        present.restate(terms)
        _declare(present, None)
    return present


def _differs(terms: Terms, present: Session) -> str | None:
    """The first of the words that may never change, if one does. How many rows of a person count is no such word: it is a
    matter of each question, and the session has what counts where none says."""
    if not _same_people(terms.unit, present.unit):
        return "unit"
    fixed = ("account", "version", "because")
    return next((word for word in fixed if getattr(terms, word) != getattr(present.terms, word)), None)


def _same_people(one: Unit, other: Unit) -> bool:
    return (one.neighbors, one.people) == (other.neighbors, other.people)


def _refuse_second_budget(frame: pd.DataFrame, because: object, account: AccountTerms) -> None:
    if because is not None:
        return
    own = _identity.marks(frame)
    # Marks are addresses: those of a closed session mean something only while its frame keeps them in use.
    kept = [s for s in closed if s.root() is not None]
    made = [d for s in sessions.values() for d in s.derived]
    for other in [*sessions.values(), *kept, *made]:
        # The very same index object means the very same rows.
        if account.names(other.accountant):
            continue  # one budget for both, whatever they share
        if own & other.marks or (other.rows and frame.index.is_(other.index)):
            raise SessionError(
                "this frame shares its data with a frame that has, or had, a session "
                f"(epsilon {other.budget.epsilon:g}, {other.budget.fraction:.0%} spent). Ask that one, or declare why a "
                "second budget on the same people is right: open(..., because='...')."
            )


def _refuse_twins(session: Session) -> None:
    """Two frames with the same columns in one population would be taken for each other's answers."""
    for other in list(sessions.values()):
        same = other.accountant == session.accountant and other.schema == session.schema
        if same and other.root() is not None:  # of a frame that is gone this is the data read once more
            raise SessionError(
                "this budget has an open session of another frame with the same columns. If this is the same table, read "
                "once more, go on with that session, or close() it first. If it is another state of the data, tell the two "
                "apart: open(..., version='...')."
            )


def _declare(session: Session, because: object) -> None:
    terms = session.terms
    words = words_of(list(session.leaves), terms.bounds, terms.times, terms.keys, "open")
    if terms.people is not None:
        words.append(("n", f"{terms.people} people", "open"))
    if terms.version is not None:
        words.append(("version", terms.version, "open"))
    if because is not None:
        words.append(("second budget", str(because), "open"))
        if terms.account.limits.delta >= _NO_PROMISE:
            words.append(("delta", f"{float(terms.account.limits.delta):g}: {because}", "open"))
    session.accountant.declare(words)


def words_of(
    names: list[Hashable], bounds: Any, times: Any, keys: Any, where: str
) -> list[tuple[str, str, str]]:
    """Bounds and keys by the places of their columns, as the ledger keeps them."""
    words = [("bounds", f"{names[i]!r}: ({pair.lower:g}, {pair.upper:g})", where) for i, pair in bounds]
    words += [("bounds", f"{names[i]!r}: {text}", where) for i, text in times]
    for i, listed in keys:
        column = tuple(names[j] for j in i) if isinstance(i, tuple) else names[i]
        words.append(("keys", f"{column!r}: {describe(listed.to_json())}", where))
    return words


WORDS = tuple(word for word in signature(open_session).parameters if word not in ("frame", "others"))
