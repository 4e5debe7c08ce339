"""The words of `open`, checked and in one form: a frozen value, so that the same words again are the same terms."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe._errors import BadType, BadValue
from dpframe._expr import NO_KEYS, Column
from dpframe._groups.combinations import Tuples
from dpframe._groups.keys import Keys, describe, keys_for
from dpframe._groups.periods import Span, span_of
from dpframe._groups.unit import Unit, limits_for
from dpframe._ledger import place_of
from dpframe._ledger.accountant import Accountant, check_population
from dpframe._ledger.store import Declared, text_of
from dpframe._session.data import Data
from dpframe._validate import Bounds
from dpframe.accounting import ACCOUNTANTS, open_filter
from dpframe.accounting._filter import Filter, Limits

Words = Mapping[str, Any]  # of `open`, as they were said; one that is None was left out
_NO_UNIT = "max_rows= and max_groups= need unit=, the column that names a person."


class Rule(NamedTuple):
    """A rule that adds losses, with its limits, and its state on an empty ledger."""

    rule: Filter
    empty: Any


def _rule(epsilon: Any, delta: Any, accountant: Any, reserve: Any) -> Rule:
    """The rule of a new budget, checked: that something fits it takes longer to find out than all the rest of `open`, so the
    rules of plain words are remembered. They are pure functions of the limits."""
    rule = open_filter(epsilon, 0 if delta is None else delta, accountant, reserve)
    return Rule(rule, rule.start())


_known_rule = lru_cache(maxsize=64, typed=True)(_rule)  # by type too: True is no budget, and 1 is
_PLAIN = (int, float, str, bool, type(None))


@dataclass(frozen=True, slots=True)
class AccountTerms:
    """Which budget: one of its own, by its words, or one that is shared. A file is the same by any of its names."""

    limits: Limits
    rule: str
    population: str | None = None
    place: str | None = None
    shared: Accountant | None = None
    file: str | None = field(default=None, compare=False, repr=False)  # a URL may hold a password
    made: Rule | None = field(default=None, compare=False)  # of a budget of one's own

    @classmethod
    def of(cls, words: Words) -> AccountTerms:
        """The budget of a new session."""
        accountant, population, ledger = (words.get(w) for w in ("accountant", "population", "ledger"))
        if isinstance(accountant, Accountant):
            return cls._shared(accountant, words)
        if words.get("epsilon") is None:
            raise BadType(
                "open needs the whole budget: open(epsilon=1), or accountant= with a dpframe.Accountant."
            )
        limits = words["epsilon"], words.get("delta"), accountant, words.get("reserve")
        made = (_known_rule if all(type(w) in _PLAIN for w in limits) else _rule)(*limits)
        file = None if ledger is None else _file(ledger)
        if population is not None or ledger is not None:
            check_population(population)
        name = None if population is None else str(population)
        place = None if file is None else place_of(file)
        return cls(made.rule.limits, made.rule.name, name, place, None, file, made)

    @classmethod
    def _shared(cls, accountant: Accountant, words: Words) -> AccountTerms:
        if any(
            words.get(word) is not None for word in ("epsilon", "delta", "reserve", "ledger", "population")
        ):
            raise BadValue(
                "accountant= brings its own epsilon, delta, ledger and population: leave them out."
            )
        return cls(
            accountant.limits,
            accountant.name,
            accountant.population,
            accountant.place,
            accountant,
            accountant.file,
        )

    def again(self, words: Words) -> AccountTerms:
        """The budget that the words of a second `open` mean, for comparison: those left out stay."""
        given = {word: value for word, value in words.items() if value is not None}
        if isinstance(given.get("accountant"), Accountant):
            return self._shared(given["accountant"], words)
        own = self.limits
        limits = Limits(
            _validate.epsilon(given["epsilon"]) if "epsilon" in given else own.epsilon,
            _validate.delta(given["delta"]) if "delta" in given else own.delta,
            _validate.delta(given["reserve"], "reserve") if "reserve" in given else own.reserve,
        )
        rule, name, place = self.rule, self.population, self.place
        if "accountant" in given:
            rule = _validate.choice(given["accountant"], "accountant", ACCOUNTANTS)
        if "population" in given:
            name = check_population(given["population"])
        if "ledger" in given:
            place = place_of(_file(given["ledger"]))
        return replace(self, limits=limits, rule=rule, population=name, place=place)

    def open(self) -> Accountant:
        """The accountant that keeps this budget."""
        if self.shared is not None:
            return self.shared
        assert self.made is not None
        return Accountant._of(*self.made, self.population, self.file)

    def names(self, accountant: Accountant) -> bool:
        """Whether this is the budget that an accountant keeps."""
        if self.shared is not None:
            return self.shared == accountant
        place = accountant.population, accountant.place
        return accountant._reachable and (self.population, self.place) == place


def _file(ledger: object) -> str:
    if not isinstance(ledger, str | os.PathLike):
        raise BadType(f"ledger= must be the path of a file, not {type(ledger).__name__}.")
    return str(text_of(ledger))


@dataclass(frozen=True, slots=True)
class Terms:
    """What a session was opened with. ``bounds``, ``times`` and ``keys`` are by the places of their columns, in order."""

    account: AccountTerms
    unit: Unit
    queries: int
    bounds: tuple[tuple[int, Bounds], ...]
    times: tuple[tuple[int, Span], ...]
    keys: tuple[tuple[int | tuple[int, ...], Keys | Tuples], ...]
    people: int | None
    version: str | None
    because: str | None = None

    @classmethod
    def of(cls, data: Data, words: Words) -> Terms:
        """The terms of a new session on these data."""
        account, unit = AccountTerms.of(words), unit_of(data.leaves, words)
        for column in unit.people:
            _check_tells_apart(column, data.dtypes[column.position])
        people, queries = _count(words, "n"), _count(words, "queries") or 20
        declared = declarations(data.leaves, words.get("bounds"), words.get("keys"))
        return cls(account, unit, queries, *declared, people, data.version, words.get("because"))

    def again(self, leaves: Mapping[Hashable, Column], words: Words) -> Terms:
        """These terms with the words that are said once more: one that is left out stays as it is."""
        unit = self._unit_again(leaves, words)
        bounds, times, keys = declarations(leaves, words.get("bounds"), words.get("keys"))
        version, because = words.get("version"), words.get("because")
        return Terms(
            self.account.again(words),
            unit,
            _count(words, "queries") or self.queries,
            _merged(self.bounds, bounds),
            _merged(self.times, times),
            _merged(self.keys, keys),
            _count(words, "n") or self.people,
            self.version if version is None else version,
            self.because if because is None else because,
        )

    def _unit_again(self, leaves: Mapping[Hashable, Column], words: Words) -> Unit:
        people, rows, groups, neighbors = (
            words.get(word) for word in ("unit", "max_rows", "max_groups", "neighbors")
        )
        unit = self.unit
        if people is not None or neighbors is not None:
            said = {
                "unit": [c.name for c in unit.people] or None if people is None else people,
                "neighbors": unit.neighbors if neighbors is None else neighbors,
            }
            unit = unit_of(leaves, said)
        if unit.people and _same_people(unit, self.unit):
            unit = self.unit
        if (rows is not None or groups is not None) and not unit.people:
            raise BadValue(_NO_UNIT)
        return unit.limited(*limits_for(rows, groups))

    def differs(self, other: Terms) -> str | None:
        """The first of the words that may never change, if one does. How many rows of a person count is no such word: it is a
        matter of each question, and the session has what counts where none says."""
        if not _same_people(self.unit, other.unit):
            return "unit"
        fixed = ("account", "version", "because")
        return next((word for word in fixed if getattr(self, word) != getattr(other, word)), None)

    def record(self, names: list[Hashable]) -> list[Declared]:
        """What the ledger keeps of them; ``names`` are those of the columns."""
        words = record_of(names, self.bounds, self.times, self.keys, "open")
        if self.people is not None:
            words.append(("n", f"{self.people} people", "open"))
        if self.version is not None:
            words.append(("version", self.version, "open"))
        return words


def _count(words: Words, word: str) -> int | None:
    """A positive whole number; None where it was left out."""
    value = words.get(word)
    return None if value is None else _validate.positive_int(value, word)


def _same_people(one: Unit, other: Unit) -> bool:
    return (one.neighbors, one.people) == (other.neighbors, other.people)


def _merged(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    """Column by column: the new word where there is one."""
    return tuple(sorted({**dict(old), **dict(new)}.items(), key=_place))


def unit_of(leaves: Mapping[Hashable, Column], words: Words) -> Unit:
    """Who is protected, by the words unit, max_rows, max_groups and neighbors."""
    neighbors, people = words.get("neighbors"), words.get("unit")
    relation: Any = "add-remove"
    if neighbors is not None:
        relation = _validate.choice(neighbors, "neighbors", ("add-remove", "replace-one"))
    rows, groups = words.get("max_rows"), words.get("max_groups")
    if rows is not None or groups is not None:
        rows, groups = limits_for(rows, groups)
        if people is None:
            raise BadValue(_NO_UNIT)
    if people is None:
        return Unit(relation)
    names = people if isinstance(people, list) else [people]
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
    if column.kind in NO_KEYS or rounded:
        raise BadType(
            f"unit={column.name!r} has the dtype {dtype}, whose values are not told apart here. Name people by text, whole "
            f"numbers or times: df[{column.name!r}].astype(str), before opening."
        )


def declarations(leaves: Mapping[Hashable, Column], bounds: object, keys: object) -> tuple[Any, Any, Any]:
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


def _place(word: tuple[Any, Any]) -> tuple[int, ...]:
    return word[0] if isinstance(word[0], tuple) else (word[0],)


def _mapping(value: object, name: str) -> Mapping[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadType(f"{name} must be a dict from column names, not {type(value).__name__}.")
    return value


def record_of(names: list[Hashable], bounds: Any, times: Any, keys: Any, where: str) -> list[Declared]:
    """Bounds and keys by the places of their columns, as the ledger keeps them."""
    words = [("bounds", f"{names[i]!r}: ({pair.lower:g}, {pair.upper:g})", where) for i, pair in bounds]
    words += [("bounds", f"{names[i]!r}: {text}", where) for i, text in times]
    for i, listed in keys:
        column = tuple(names[j] for j in i) if isinstance(i, tuple) else names[i]
        words.append(("keys", f"{column!r}: {describe(listed.to_json())}", where))
    return words
