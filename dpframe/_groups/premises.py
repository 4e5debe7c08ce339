"""What is proven of the rows of a frame: the premises that sensitivities and verbs rest on.

*Formal guarantee.* Each field is true of every frame that the steps can have made, whatever its
cells. A step returns the premises of its result, and loses what it cannot prove. A verb that needs
one asks for it here, before anything is paid (docs/guarantees/derived.md#premises). That a value is
a function of its row, or of its person's rows, is told by its expression
(`dpframe._expr.looks_within`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from dpframe._expr import Key

# In which order the rows of one person stand: in the person's own; in none that is fixed, as rows
# that come or are made piece by piece; or in one that other people may have a say in.
Order = Literal["own", "unfixed", "others"]


class Names(NamedTuple):
    """The origin of the name of a row's person, and the session in which it is valid.

    A row is a person, or columns name one. Otherwise a session drew a name for each row of its
    opened frame.
    """

    kind: Literal["unknown", "rows", "columns", "drawn"]
    session: str = ""  # that drew them

    def match(self, other: Names) -> bool:
        """Return whether equal names are one person's in both frames. Both frames are of one
        accountant."""
        return self.kind in ("columns", "drawn") and self == other


UNKNOWN: Final = Names("unknown")


@dataclass(frozen=True, slots=True)
class Premises:
    """What is proven of the rows of a frame. The defaults prove nothing."""

    names: Names = UNKNOWN
    max_rows: int | None = None  # rows that a person has at most
    order: Order = "others"  # of a person's rows, before they are sorted
    sorts: tuple[Key, ...] = ()  # what the rows are then sorted by
    everyone: bool = False  # each row of the opened frame has a row here, or several
    whole: bool = False  # each row of the opened frame is one row here

    # What steps carry and lose ----------------------------------------------------------------------------------------

    def of_some_rows(self, most: int | None = None) -> Premises:
        """Return what stays proven if a step keeps some of the rows, at most ``most`` of each
        person."""
        most = self.max_rows if most is None else least_of(self.max_rows, most)
        return replace(self, max_rows=most, everyone=False, whole=False)

    def of_one_row(self) -> Premises:
        """Return the premises of one row of each person, whichever it is."""
        return replace(self, max_rows=1, sorts=(), everyone=False, whole=False)

    def sort_by(self, keys: Sequence[Key]) -> Premises:
        """Return what is proven of the rows once they are sorted by ``keys``. Earlier keys decide
        between equal rows."""
        before = [key for key in self.sorts if all(key.expr != one.expr for one in keys)]
        return replace(self, sorts=(*keys, *before))

    def of_made_rows(
        self, times: int | None, *, piecewise: bool, adjacent: bool, all_rows: bool
    ) -> Premises:
        """Return what is proven of new rows that are made from each row, at most ``times`` from
        one.

        ``piecewise`` tells that they are made from one batch of rows at a time. ``adjacent`` tells
        that rows made from one row stand together, in its place. ``all_rows`` tells that at least
        one is made from each row.
        """
        return replace(
            self,
            max_rows=None if self.max_rows is None or times is None else self.max_rows * times,
            order="unfixed" if piecewise and (self.sorts or not adjacent) else self.order,
            sorts=(),
            everyone=self.everyone and all_rows,
            whole=False,
        )

    def of_matched_rows(self, *, piecewise: bool, all_rows: bool) -> Premises:
        """Return what is proven of the rows after more columns were joined to them.

        Without ``all_rows``, rows without a match are dropped. ``piecewise`` tells whether batches
        are read one at a time.
        """
        made = self.of_made_rows(1, piecewise=piecewise, adjacent=True, all_rows=all_rows)
        return replace(made, whole=self.whole and all_rows)

    def set_drawn_names(self, session: str) -> Premises:
        """Return the premises of rows whose names a session has drawn, unless columns name a
        person."""
        return replace(self, names=Names("drawn", session)) if self.names.kind == "rows" else self

    def of_foreign_rows(self) -> Premises:
        """Return the premises of rows that the owner's own code has made of the people."""
        return Premises(names=self.names)

    def join(self, other: Premises, most: int) -> Premises:
        """Return the premises of rows joined with another frame's rows of the same person."""
        worst: Order = next((one.order for one in (self, other) if one.order != "own"), "own")
        return Premises(names=self.names, max_rows=most, order=worst)


UNPROVEN: Final = Premises()


def premises_of_root(named: bool, ordered: bool) -> Premises:
    """Return what is proven of the rows of a frame that was opened, before any step.

    ``named`` tells whether columns name a person. ``ordered`` tells whether every read has the rows
    in one order.
    """
    names, most = (Names("columns"), None) if named else (Names("rows"), 1)
    return Premises(names, most, "own" if ordered else "unfixed", everyone=True, whole=True)


def least_of(*limits: int | None) -> int | None:
    """Return the least of some limits. None stands for no limit."""
    return min((limit for limit in limits if limit is not None), default=None)
