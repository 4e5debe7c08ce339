"""Who is protected: which columns name a person, for how many rows and groups one counts, and what
neighbours are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

from dpframe import _validate
from dpframe._errors import BadValue
from dpframe._expr import Column, Encoded
from dpframe._types import Json

Neighbors = Literal["add-remove", "replace-one"]
ROWS = ["rows"]
LIMIT = 2**20  # of rows and of groups that one person may count for


class Limit(NamedTuple):
    """Contribution limit: how many rows, groups, values or keys one person counts for at most in a
    release.

    None is no limit. If nothing is limited, a person counts once.

    >>> print(Limit(rows=8, groups=2))
    a person counts for at most 8 rows in each of at most 2 groups
    """

    rows: int | None = None
    groups: int | None = None
    values: int | None = None  # distinct ones
    together: bool = False  # whether those are counted over all groups
    keys: int | None = None  # for which the person counts in a search
    met: bool = False  # whether nobody has more, so that it leaves nothing out

    def __str__(self) -> str:
        """Describe the contribution limit in a sentence, for plans."""
        if self.values is not None:
            return f"a person adds at most {self.values} values{' over all groups' * self.together}"
        if self.keys is not None:
            return f"a person counts for at most {self.keys} keys"
        if self.rows is None:
            groups = self.groups
            return (
                "a person counts once"
                if groups is None
                else f"a person counts in at most {_many(groups, 'group')}"
            )
        where = "" if self.groups is None else f" in each of at most {_many(self.groups, 'group')}"
        return f"a person counts for at most {_many(self.rows, 'row')}{where}"

    @property
    def one_row(self) -> bool:
        """Whether a person has at most one row in a group, or counts once."""
        return self.rows == 1 or self == Limit()

    @property
    def one_group(self) -> bool:
        """Whether a person has at most one row in all groups together."""
        return self.one_row and self.groups in (None, 1)

    def to_json(self) -> Json:
        """Return the fields of the limit that are not at their defaults, for the record of a
        plan."""
        record = {
            "rows": self.rows,
            "groups": self.groups,
            "values": self.values,
            "together": self.together,
            "keys": self.keys,
            "met": self.met,
        }
        return {name: value for name, value in record.items() if value}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Limit:
        """Return the contribution limit that `to_json` has recorded."""
        return cls(
            record.get("rows"),
            record.get("groups"),
            record.get("values"),
            record.get("together", False),
            record.get("keys"),
            record.get("met", False),
        )

    def describe(self, people: bool) -> str:
        """Return the words about this limit that stand beside an answer; empty if it leaves nothing
        out.

        ``people`` tells whether the answer counts people, rather than their rows.
        """
        if self.met or (people and self.groups is None and self.values is None):
            return ""
        if self.values is not None:
            return f"of at most {self.values} values a person"
        groups = "" if self.groups is None else _many(self.groups, "group")
        if people or self.rows is None:
            return f"of at most {groups} a person" if groups else ""
        return f"of at most {_many(self.rows, 'row')} a person" + (
            f", in at most {groups}" if groups else ""
        )

    def change(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return self._replace(**changes)

    def describe_left_out(self, people: bool, groups: int) -> str:
        """Return what this limit leaves out of a question, or an empty text.

        ``groups`` is the number of groups of the question.

        ``people`` tells whether the answer counts people, rather than their rows.
        """
        if not self.describe(people):
            return ""
        if self.values is not None:
            return f"values beyond {self.values} of a person"
        texts = []
        if self.rows is not None and not people:
            where = "" if self.groups is None else " in a group"
            texts.append(f"rows beyond {self.rows} of a person{where}")
        if self.groups is not None and self.groups < groups:
            texts.append(f"groups beyond {self.groups} of {groups} that a person is in")
        return ", ".join(texts)


_WHERE_TO_GIVE = (
    "Give it at the question, at the verb that made the rows, or once at open(...). It is your "
    "choice, not a fact of "
    "the data; {} finds a good one for a price."
)
_NO_ROWS = (
    "a person may have many rows here, and max_rows= is not known: the most rows that one person "
    "may count for, of each "
    f"group where there are groups. {_WHERE_TO_GIVE.format('p.suggest_limits()')}"
)
_NO_GROUPS = (
    "a person may be in many groups here, and max_groups= is not known: the most groups that one "
    "person may count in. "
    f"{_WHERE_TO_GIVE.format('p.suggest_limits(column)')}"
)


@dataclass(frozen=True, slots=True)
class Unit(Encoded):
    """Who is protected, and which frames count as neighbours.

    ``add-remove``: one frame has a person more. ``replace-one``: the frames have the same number of
    people, which is public, and differ in one of them. Without ``people`` a row is a person; else
    those columns name one, who counts for at most ``rows`` rows in each of at most ``groups``
    groups.
    """

    identity: ClassVar[tuple[str, ...]] = ("unit", "neighbors", "people", "rows", "groups")

    neighbors: Neighbors = "add-remove"
    people: tuple[Column, ...] = ()
    rows: int | None = None
    groups: int | None = None
    replaces: bool = field(
        init=False, compare=False, repr=False
    )  # whether the number of people is public

    def __post_init__(self) -> None:
        object.__setattr__(self, "replaces", self.neighbors == "replace-one")

    def with_limits(self, rows: int | None, groups: int | None) -> Unit:
        """Return the same unit with other limits on the rows and groups of a person. None keeps the
        present one."""
        if rows is None and groups is None:
            return self
        return replace(
            self,
            rows=self.rows if rows is None else rows,
            groups=self.groups if groups is None else groups,
        )

    def reach(self, groups: int | None) -> tuple[int, int]:
        """Return for how many rows in a group, and for how many groups, one person counts.

        ``groups`` is the number of groups of the question, or None without grouping. A limit that
        is needed and not known is refused.
        """
        if not self.people:
            return 1, 1
        if self.rows is None or (self.groups is None and groups is not None):
            raise BadValue(_NO_ROWS if self.rows is None else _NO_GROUPS)
        return self.rows, min(self.groups or 1, groups) if groups is not None else 1

    def limit(self, grouped: bool) -> Limit | None:
        """Return what a person counts for at most; None where a row is a person."""
        return Limit(self.rows, self.groups if grouped else None) if self.people else None

    @property
    def space(self) -> list[str]:
        """The names of the columns that name a person."""
        return [str(c.name) for c in self.people] or ROWS

    @property
    def recorded(self) -> list[str]:
        """The same as the ledger keeps it; where a row is a person, ``["rows"]``, which no column
        is called."""
        names = [str(c.name) for c in self.people]
        return (["'rows'"] if names == ROWS else names) or ROWS


def named_in(space: list[str], names: Iterable[Hashable]) -> list[Hashable] | None:
    """Return the names of the columns by which a ledger says that people are named.

    ``space`` is the recorded list of names, and ``names`` are the columns of a table. Return None
    if each row is a person.
    """
    if space == ROWS:
        return None
    names = list(names)
    return [
        name
        for wanted in space
        for name in names
        if str(name) == wanted or wanted == repr(name) == "'rows'"
    ]


def _many(number: int | None, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def limits_for(rows: object, groups: object) -> tuple[int | None, int | None]:
    """Check ``max_rows=`` and ``max_groups=``, and return them.

    Each is a whole number from 1 to 2**20, or None if it was left out.
    """
    limits = []
    for value, name in ((rows, "max_rows"), (groups, "max_groups")):
        limit = None if value is None else _validate.positive_int(value, name)
        if limit is not None and limit > LIMIT:
            raise BadValue(f"{name} must be at most 2**20, not {limit}: nobody would be protected.")
        limits.append(limit)
    return limits[0], limits[1]
