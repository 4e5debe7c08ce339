"""Groups that the data selected: keys that a session has found, and questions whose groups are
among them.

Which keys are found depends on who was drawn into the table, and not on noise alone. So a group
that was found has more people than its part of the population tells, also where it is asked again
(docs/guarantees/population.md).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from dpframe._expr import Expr
from dpframe._groups.combinations import TupleBy, Tuples
from dpframe._groups.keys import By, KeyBy, Keys


class FoundGroups(NamedTuple):
    """Column with groups that were found in the data, and whether in other rows than those of the
    question."""

    column: str
    elsewhere: bool


class FoundKeys:
    """The keys that a session has found: ``labels`` by column and by the rows of their search."""

    def __init__(self) -> None:
        self.labels: dict[Expr, dict[Expr | None, set[Hashable]]] = {}

    def record(self, exprs: Sequence[Expr], where: Expr | None, keys: Keys | Tuples | None) -> None:
        """Remember keys that were found in the data among the rows where a condition holds.

        ``exprs`` are the columns, and ``where`` is the condition; None stands for all rows.

        ``keys`` is None if no key was found.
        """
        levels = () if keys is None else keys.keys if isinstance(keys, Tuples) else (keys,)
        for expr, level in zip(exprs, levels, strict=False):
            self.labels.setdefault(expr, {}).setdefault(where, set()).update(_labels_of(level))

    def find_selected(self, by: Sequence[By], where: Expr | None) -> FoundGroups | None:
        """Return the first grouping column with keys that were found in the data, or None.

        ``by`` are the groupings of a question, and ``where`` is its condition. Keys found in other
        rows than those of the question go first. These may have been selected by their values, and
        others only by their numbers of people.
        """
        found = None
        for level in _listed_levels(by):
            labels = set(_labels_of(level.keys))
            known = self.labels.get(level.expr, {})
            others = [some for rows, some in known.items() if rows is not None and rows != where]
            if labels and labels <= set().union(*others):
                return FoundGroups(str(level.expr), elsewhere=True)
            if labels and labels <= set().union(*known.values()):
                found = found or FoundGroups(str(level.expr), elsewhere=False)
        return found


def _listed_levels(by: Sequence[By]) -> Iterator[KeyBy]:
    """Yield the groupings by keys that somebody had to list or find, out of a group-by.

    Groupings by truth values are left out: their keys are known to all.
    """
    for level in by:
        parts = level.levels if isinstance(level, TupleBy) else (getattr(level, "listed", level),)
        yield from (part for part in parts if isinstance(part, KeyBy) and part.word is not None)


def _labels_of(keys: Keys) -> list[Hashable]:
    return [key for place, key in enumerate(keys.index.tolist()) if place != keys.null]
