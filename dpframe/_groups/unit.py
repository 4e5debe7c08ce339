"""Who is protected: which columns name a person, for how many rows and groups one counts, and what neighbours are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from dpframe import _validate
from dpframe._errors import BadValue
from dpframe._expr import Column, Encoded

Neighbors = Literal["add-remove", "replace-one"]
ROWS = ["rows"]
LIMIT = 2**20  # of rows and of groups that one person may count for


@dataclass(frozen=True, slots=True)
class Unit(Encoded):
    """Who is protected, and which frames count as neighbours.

    ``add-remove``: one frame has a person more. ``replace-one``: the frames have the same number of people, which is
    public, and differ in one of them. Without ``people`` a row is a person; else those columns name one, who counts for at
    most ``rows`` rows in each of at most ``groups`` groups.
    """

    neighbors: Neighbors = "add-remove"
    people: tuple[Column, ...] = ()
    rows: int | None = None
    groups: int | None = None
    replaces: bool = field(init=False, compare=False, repr=False)  # whether the number of people is public

    def __post_init__(self) -> None:
        object.__setattr__(self, "replaces", self.neighbors == "replace-one")

    def limited(self, rows: int | None, groups: int | None) -> Unit:
        """The same unit with the limits that one question gives, where it gives some."""
        if rows is None and groups is None:
            return self
        return replace(
            self, rows=self.rows if rows is None else rows, groups=self.groups if groups is None else groups
        )

    def reach(self, groups: int | None) -> tuple[int, int]:
        """The number of rows for which a person counts in a group, and the number of groups; None stands for no grouping."""
        if not self.people:
            return 1, 1
        if self.rows is None or (self.groups is None and groups is not None):
            missing = "max_rows=" if self.rows is None else "max_groups="
            raise BadValue(
                f"a person may have many rows here, and {missing} is not known: the most rows (in a group), or groups, that "
                "one may count for. Give it at the question, at the verb that made the rows, or once at open(...). It is "
                "your choice, not a fact of the data; p.suggest_limits() finds a good one for a price."
            )
        return self.rows, min(self.groups or 1, groups) if groups is not None else 1

    def limits_text(self, grouped: bool) -> str:
        """A text for plans about the limits of a person."""
        if not self.people:
            return ""
        if self.rows is None:
            return (
                f"; a person counts in at most {_many(self.groups, 'group')}"
                if grouped
                else "; a person counts once"
            )
        where = f" in each of at most {_many(self.groups, 'group')}" if grouped else ""
        return f"; a person counts for at most {_many(self.rows, 'row')}{where}"

    @property
    def space(self) -> list[str]:
        """The names of the columns that name a person."""
        return [str(c.name) for c in self.people] or ROWS

    @property
    def recorded(self) -> list[str]:
        """The same as the ledger keeps it; where a row is a person, ``["rows"]``, which no column is called."""
        names = [str(c.name) for c in self.people]
        return (["'rows'"] if names == ROWS else names) or ROWS


def named_in(space: list[str], names: Iterable[Hashable]) -> list[Hashable] | None:
    """The columns that name a person by such a record, among those of a table; None where a row is a person."""
    if space == ROWS:
        return None
    names = list(names)
    return [
        name for wanted in space for name in names if str(name) == wanted or wanted == repr(name) == "'rows'"
    ]


def counts_one_row(text: str) -> bool:
    """Whether a text by `Unit.limits_text` says that a person has at most one row in a group, or counts once."""
    return any(text == one or text.startswith(f"{one} in ") for one in _ONE_ROW)


def counts_one_group(text: str) -> bool:
    """Whether such a text says that a person has at most one row in all groups together."""
    return text in _ONE_ROW or (counts_one_row(text) and text.endswith("at most 1 group"))


_ONE_ROW = "a person counts for at most 1 row", "a person counts once"


def _many(number: int | None, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def limits_for(rows: object, groups: object) -> tuple[int | None, int | None]:
    """max_rows= and max_groups=, checked: whole numbers from 1 to 2**20."""
    limits = []
    for value, name in ((rows, "max_rows"), (groups, "max_groups")):
        limit = None if value is None else _validate.positive_int(value, name)
        if limit is not None and limit > LIMIT:
            raise BadValue(f"{name} must be at most 2**20, not {limit}: nobody would be protected.")
        limits.append(limit)
    return limits[0], limits[1]
