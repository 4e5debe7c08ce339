"""The arguments of `open`, checked and in one form: a frozen value, so that the same arguments
again are the same terms."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe._errors import BadType, BadValue, DPError
from dpframe._expr import NO_KEYS, Column
from dpframe._groups.combinations import Tuples
from dpframe._groups.keys import Keys, describe, keys_for
from dpframe._groups.periods import Span, span_of
from dpframe._groups.unit import Unit, limits_for
from dpframe._ledger import place_of
from dpframe._ledger.accountant import Accountant, can_be_opened_again, check_population
from dpframe._ledger.store import Declared, text_of
from dpframe._plans.budget import DEFAULT_QUERIES
from dpframe._plans.worth import ORDINARY, NoiseRule
from dpframe._session.data import Data
from dpframe._validate import Bounds
from dpframe.accounting import ACCOUNTANTS, open_filter
from dpframe.accounting._filter import Filter, Limits

# The arguments of `open` by name, as a user gave them; None stands for one that was left out.
Words = Mapping[str, Any]
# A declared word, and the column or columns that it is about; None where it is about the table.
Declaration = tuple[str, Hashable]
_NO_UNIT = "max_rows= and max_groups= need unit=, the column that names a person."


class FactSource(NamedTuple):
    """Origin of a declaration that comes from a card: its file, and who answers for it and why."""

    card: str
    author: str | None = None
    reason: str | None = None

    def __str__(self) -> str:
        by = f" by {self.author}" if self.author else ""
        return f"card {self.card}".rstrip() + f"{by}{f': {self.reason}' if self.reason else ''}"


class RuleAtStart(NamedTuple):
    """A rule that adds losses, with its limits, and its state on an empty ledger."""

    rule: Filter
    empty: Any


def _rule(epsilon: object, delta: object, accountant: object, reserve: object) -> RuleAtStart:
    """Return the accounting rule of a new budget, after checking its arguments.

    To find out whether anything fits takes longer than all the rest of `open`, so the rules of
    plain arguments are remembered. They are pure functions of the limits.
    """
    rule = open_filter(epsilon, 0 if delta is None else delta, accountant, reserve)
    return RuleAtStart(rule, rule.start())


_known_rule = lru_cache(maxsize=64, typed=True)(_rule)  # by type too: True is no budget, and 1 is
_PLAIN = (int, float, str, bool, type(None))


@dataclass(frozen=True, slots=True)
class AccountTerms:
    """Budget of a session: limits, accounting rule, population and ledger, or an accountant that is
    shared."""

    limits: Limits
    rule: str
    population: str | None = None
    place: str | None = None
    shared_accountant: Accountant | None = None
    file: str | None = field(default=None, compare=False, repr=False)  # a URL may hold a password
    new_rule: RuleAtStart | None = field(default=None, compare=False)  # of a budget of one's own

    @classmethod
    def of(cls, arguments: Words) -> AccountTerms:
        """Return the budget that the arguments of an `open` declare.

        It is a new budget, or that of a shared ``dpframe.Accountant``.
        """
        accountant, population, ledger = (
            arguments.get(w) for w in ("accountant", "population", "ledger")
        )
        if isinstance(accountant, Accountant):
            return cls.share(accountant, arguments)
        if arguments.get("epsilon") is None:
            raise BadType(
                "open needs the whole budget: open(epsilon=1), or accountant= with a dpframe.Accountant."
            )
        limits = arguments["epsilon"], arguments.get("delta"), accountant, arguments.get("reserve")
        checked = (_known_rule if all(type(w) in _PLAIN for w in limits) else _rule)(*limits)
        file = None if ledger is None else _file(ledger)
        if population is not None or ledger is not None:
            check_population(population)
        name = None if population is None else str(population)
        place = None if file is None else place_of(file)
        return cls(checked.rule.limits, checked.rule.name, name, place, None, file, checked)

    @classmethod
    def share(cls, accountant: Accountant, arguments: Words) -> AccountTerms:
        """Return the budget of an accountant that several frames share.

        Arguments of `open` that would declare another budget beside it are refused.
        """
        if any(
            arguments.get(name) is not None
            for name in ("epsilon", "delta", "reserve", "ledger", "population")
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

    def again(self, arguments: Words) -> AccountTerms:
        """Return the budget that a second `open` of the same frame describes, to be compared with
        this one.

        Arguments that were left out have the values that they have here.
        """
        stated = {argument: value for argument, value in arguments.items() if value is not None}
        if isinstance(stated.get("accountant"), Accountant):
            return self.share(stated["accountant"], arguments)
        current = self.limits
        limits = Limits(
            _validate.epsilon(stated["epsilon"]) if "epsilon" in stated else current.epsilon,
            _validate.delta(stated["delta"]) if "delta" in stated else current.delta,
            _validate.delta(stated["reserve"], "reserve")
            if "reserve" in stated
            else current.reserve,
        )
        rule, name, place = self.rule, self.population, self.place
        if "accountant" in stated:
            rule = _validate.choice(stated["accountant"], "accountant", ACCOUNTANTS)
        if "population" in stated:
            name = check_population(stated["population"])
        if "ledger" in stated:
            place = place_of(_file(stated["ledger"]))
        return replace(self, limits=limits, rule=rule, population=name, place=place)

    def open(self) -> Accountant:
        """Return the accountant that keeps this budget."""
        if self.shared_accountant is not None:
            return self.shared_accountant
        assert self.new_rule is not None
        return Accountant._of(*self.new_rule, self.population, self.file)

    def names(self, accountant: Accountant) -> bool:
        """Return whether these terms describe the budget that an accountant keeps."""
        if self.shared_accountant is not None:
            return self.shared_accountant == accountant
        place = accountant.population, accountant.place
        return can_be_opened_again(accountant) and (self.population, self.place) == place


def _file(ledger: object) -> str:
    if not isinstance(ledger, str | os.PathLike):
        raise BadType(f"ledger= must be the path of a file, not {type(ledger).__name__}.")
    return str(text_of(ledger))


@dataclass(frozen=True, slots=True)
class Terms:
    """Checked declarations of a session. ``bounds``, ``times`` and ``keys`` are listed by the
    positions of their columns."""

    account: AccountTerms
    unit: Unit
    queries: int
    bounds: tuple[tuple[int, Bounds], ...]
    times: tuple[tuple[int, Span], ...]
    keys: tuple[tuple[int | tuple[int, ...], Keys | Tuples], ...]
    people: int | None
    version: str | None
    because: str | None = None
    sources: tuple[tuple[Declaration, FactSource], ...] = ()  # of what a card says
    rule: NoiseRule = ORDINARY  # of answers: it changes none of them, but how they are shown
    shares_said: bool = True  # whether the owner has said how large a share is, by queries=

    @classmethod
    def of(cls, data: Data, arguments: Words) -> Terms:
        """Check the arguments of an `open`, and return the declarations of the new session."""
        account, unit = AccountTerms.of(arguments), unit_of(data.leaves, arguments)
        for column in unit.people:
            check_unit_dtype(column, data.dtypes[column.position])
        people, queries = _count(arguments, "n"), _count(arguments, "queries") or DEFAULT_QUERIES
        declared = declarations(data.leaves, arguments.get("bounds"), arguments.get("keys"))
        because, sources = arguments.get("because"), tuple(arguments.get("sources", {}).items())
        rule = (
            rule_of(arguments, ORDINARY)
            if "show" in arguments or "reliable" in arguments
            else ORDINARY
        )
        said = arguments.get("queries") is not None
        return cls(
            account, unit, queries, *declared, people, data.version, because, sources, rule, said
        )

    def again(self, leaves: Mapping[Hashable, Column], arguments: Words) -> Terms:
        """Return these declarations updated by the arguments of another `open` of the same frame.

        ``leaves`` has the columns by name. An argument that was left out stays as it is.
        """
        unit = self.merge_unit(leaves, arguments)
        bounds, times, keys = declarations(leaves, arguments.get("bounds"), arguments.get("keys"))
        version, because = arguments.get("version"), arguments.get("because")
        return Terms(
            self.account.again(arguments),
            unit,
            _count(arguments, "queries") or self.queries,
            merge_declarations(self.bounds, bounds),
            merge_declarations(self.times, times),
            merge_declarations(self.keys, keys),
            _count(arguments, "n") or self.people,
            self.version if version is None else version,
            self.because if because is None else because,
            self.merge_sources(arguments),
            rule_of(arguments, self.rule),
            self.shares_said or arguments.get("queries") is not None,
        )

    def merge_sources(self, arguments: Words) -> tuple[tuple[Declaration, FactSource], ...]:
        """Return where each declaration comes from, after another `open` has replaced some of them.

        A fact that the new arguments state loses its old source. It gets a new one if a card states
        it.
        """
        stated = {(word, None) for word, value in arguments.items() if value is not None}
        stated |= {
            (word, column) for word in ("bounds", "keys") for column in arguments.get(word) or ()
        }
        kept = {word: source for word, source in self.sources if word not in stated}
        return tuple({**kept, **arguments.get("sources", {})}.items())

    def merge_unit(self, leaves: Mapping[Hashable, Column], arguments: Words) -> Unit:
        """Return the unit of protection, updated by the arguments of another `open` of the same
        frame.

        ``leaves`` has the columns by name. Limits need columns that name a person.
        """
        people, rows, groups, neighbors = (
            arguments.get(name) for name in ("unit", "max_rows", "max_groups", "neighbors")
        )
        unit = self.unit
        if people is not None or neighbors is not None:
            unit_arguments = {
                "unit": [c.name for c in unit.people] or None if people is None else people,
                "neighbors": unit.neighbors if neighbors is None else neighbors,
            }
            unit = unit_of(leaves, unit_arguments)
        if unit.people and _same_people(unit, self.unit):
            unit = self.unit
        if (rows is not None or groups is not None) and not unit.people:
            raise BadValue(_NO_UNIT)
        return unit.with_limits(*limits_for(rows, groups))

    def differs(self, other: Terms) -> str | None:
        """Return the name of the first declaration that differs and may never change; None if all
        agree.

        Limits of a person may change: each question may have its own, and the session's are only
        defaults.
        """
        if not _same_people(self.unit, other.unit):
            return "unit"
        fixed = ("account", "version", "because")
        return next((name for name in fixed if getattr(self, name) != getattr(other, name)), None)

    def record(self, names: list[Hashable]) -> list[Declared]:
        """Return the declarations that are written into the ledger, each with its source.

        ``names`` are the columns' names in order.
        """
        sources = dict(self.sources)
        declared = record_of(names, self.bounds, self.times, self.keys, "open", sources)
        if self.people is not None:
            declared.append(("n", f"{self.people} people", str(sources.get(("n", None), "open"))))
        if self.version is not None:
            declared.append(("version", self.version, str(sources.get(("version", None), "open"))))
        # What follows stands in the ledger's own terms; a card's author and reason do not.
        unit = self.unit
        of_the_table = {
            "population": self.account.population,
            "unit": ", ".join(repr(c.name) for c in unit.people),
            "max_rows": unit.rows,
            "max_groups": unit.groups,
            "neighbors": unit.neighbors,
        }
        return declared + [
            (word, str(fact), str(sources[word, None]))
            for word, fact in of_the_table.items()
            if (word, None) in sources
        ]


def _count(arguments: Words, name: str) -> int | None:
    """Return the argument of this name if it is a positive whole number; None if it was left out.

    Any other value is refused.
    """
    value = arguments.get(name)
    return None if value is None else _validate.positive_int(value, name)


def rule_of(arguments: Words, before: NoiseRule) -> NoiseRule:
    """Return the rule for when an answer counts as noise, and how such an answer is shown.

    It is set by ``reliable=`` and ``show=``. ``before`` is the rule so far, which keeps what is
    left out.
    """
    part, show = arguments.get("reliable"), arguments.get("show")
    if part is show is None:
        return before
    part = before.part if part is None else _validate.real(part, "reliable")
    if part <= 0:
        raise BadValue(
            f"reliable= is a part of the number that half its interval may be, such as 0.5, not {part}."
        )
    if show is not None:
        show = _validate.choice(show, "show", ("all", "nan"))
    return NoiseRule(part, before.blank if show is None else show == "nan")


def _same_people(first: Unit, second: Unit) -> bool:
    return (first.neighbors, first.people) == (second.neighbors, second.people)


def merge_declarations(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return declarations by column, those of ``new`` in place of those of ``old`` for the same
    columns."""
    return tuple(sorted({**dict(old), **dict(new)}.items(), key=_place))


def unit_of(leaves: Mapping[Hashable, Column], arguments: Words) -> Unit:
    """Return the unit of protection that the arguments of an `open` declare: who is protected, up
    to which limits.

    It is made of unit, max_rows, max_groups and neighbors. ``leaves`` has the columns by name.
    """
    neighbors, people = arguments.get("neighbors"), arguments.get("unit")
    relation: Any = "add-remove"
    if neighbors is not None:
        relation = _validate.choice(neighbors, "neighbors", ("add-remove", "replace-one"))
    rows, groups = arguments.get("max_rows"), arguments.get("max_groups")
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


def check_unit_dtype(column: Column, dtype: object) -> None:
    """Refuse a column that is to name people, if its dtype cannot tell all values apart.

    Two people would be taken for one, who stays in the table when one of them leaves.
    """
    arrow = dtype.pyarrow_dtype if isinstance(dtype, pd.ArrowDtype) else None
    rounded = getattr(arrow, "precision", 0) > 15 or (
        isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize > 8
    )
    if column.kind in NO_KEYS or rounded:
        raise BadType(
            f"unit={column.name!r} has the dtype {dtype}, whose values are not told apart here. Name people by text, whole "
            f"numbers or times: df[{column.name!r}].astype(str), before opening."
        )


def declarations(
    leaves: Mapping[Hashable, Column], bounds: object, keys: object
) -> tuple[Any, Any, Any]:
    """Check the bounds and keys that a user declared by column name.

    Return the bounds of numbers, the bounds of times, and the keys. Each is a sorted tuple of
    (position of the column, value) pairs.
    """
    numbers: list[tuple[int, Bounds]] = []
    times: list[tuple[int, Span]] = []
    keys_by_place: list[tuple[Any, Any]] = []
    errors: list[DPError] = []
    for name, pair in _mapping(bounds, "bounds").items():
        try:
            leaf = leaves[_validate.column_name(name, leaves)]
            if leaf.kind == "time":
                times.append((leaf.position, span_of(pair, name)))
            elif leaf.kind in ("number", "bool"):
                numbers.append((leaf.position, _validate.bounds(pair, repr(name))))
            elif leaf.kind == "duration":
                numbers.append((leaf.position, _validate.durations(pair, repr(name))))
            else:
                raise _no_bounds(leaf, name)
        except DPError as error:
            errors.append(error)
    for name, listed_keys in _mapping(keys, "keys").items():
        try:
            if isinstance(name, tuple) and name not in leaves and len(name) > 1:
                # Combinations of several columns.
                columns = [leaves[n] for n in _validate.column_names(list(name), leaves)]
                places = tuple(c.position for c in columns)
                keys_by_place.append((places, Tuples.of(listed_keys, columns, name)))
                continue
            leaf = leaves[_validate.column_name(name, leaves)]
            keys_by_place.append((leaf.position, keys_for(listed_keys, leaf, name)))
        except DPError as error:
            errors.append(error)
    if errors:
        raise _join_errors(errors)
    return (
        tuple(sorted(numbers)),
        tuple(sorted(times)),
        tuple(sorted(keys_by_place, key=_place)),
    )


def _no_bounds(leaf: Column, name: Hashable) -> BadType:
    """Return the error about bounds of a column that has no order of numbers."""
    dates = (
        f" Texts that are dates are times after a step, p.assign(t=pd.to_datetime(p[{name!r}])), "
        "and have bounds= there."
        if leaf.kind == "text"
        else ""
    )
    return BadType(
        f"column {name!r} is of kind {leaf.kind}: only numbers, times and durations have "
        f"bounds.{dates}"
    )


def _join_errors(errors: list[DPError]) -> DPError:
    """Return one error that says all that is wrong; its class is that of the first."""
    if len(errors) == 1:
        return errors[0]
    listed = "".join(f"\n{i}. {error}" for i, error in enumerate(errors, 1))
    return type(errors[0])(f"{len(errors)} declarations are wrong:{listed}")


def _place(declaration: tuple[object, object]) -> tuple[int, ...]:
    return declaration[0] if isinstance(declaration[0], tuple) else (declaration[0],)


def _mapping(value: object, name: str) -> Mapping[Any, Any]:
    """Return an argument that is a dict by column name; empty if it was left out.

    Anything else is refused. ``name`` is the name of the argument in the error.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadType(f"{name} must be a dict from column names, not {type(value).__name__}.")
    return value


def record_of(
    names: list[Hashable],
    bounds: Any,
    times: Any,
    keys: Any,
    where: str,
    sources: Mapping[Declaration, FactSource] = MappingProxyType({}),
) -> list[Declared]:
    """Return the entries of the ledger for declared bounds, times and keys.

    They are given by the positions of their columns in ``names``. ``where`` is the verb that
    declared them, for those that have no source in ``sources``.
    """
    declared = [
        (
            "bounds",
            names[i],
            str(pair)
            if isinstance(pair, _validate.Durations)
            else f"({pair.lower:g}, {pair.upper:g})",
        )
        for i, pair in bounds
    ]
    declared += [("bounds", names[i], str(span)) for i, span in times]
    for i, column_keys in keys:
        column = tuple(names[j] for j in i) if isinstance(i, tuple) else names[i]
        declared.append(("keys", column, describe(column_keys.to_json())))
    return [
        (what, f"{column!r}: {fact}", str(sources.get((what, column), where)))
        for what, column, fact in declared
    ]
