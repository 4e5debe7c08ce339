"""What a session asks of the engine that reads its rows, and nothing more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpframe._cells.columns import Vector
from dpframe._expr import Expr
from dpframe._groups.keys import By, groups_of
from dpframe._groups.unit import Unit
from dpframe._statistics.base import Integers, Persons, Primitive

# Combinations of keys, a text a column: `dpframe._cells.texts` writes and reads them.
Texts = list[tuple[str, ...]]
PEOPLE: frozenset[Primitive] = frozenset({Persons()})


@dataclass(frozen=True, slots=True)
class Scope:
    """The rows that a question is about, and the groups that these are in."""

    # The condition that holds in these rows. A null does not fulfil it. None: all rows.
    where: Expr | None = None
    # A group is a combination of one group of each. The last one varies fastest.
    by: tuple[By, ...] = ()

    @property
    def groups(self) -> int:
        """The number of groups; 1, of all the rows, without a grouping."""
        return groups_of(self.by)


class RowSlice(NamedTuple):
    """Some of the rows, in their order: the value of each expression, which rows are asked about
    (None: all of them), whose each row is (a code from 0; -1: nobody's; None without people), and
    how many rows there are in all slices together."""

    vectors: list[Vector]
    mask: NDArray[np.bool_] | None
    people: NDArray[np.int64] | None
    total: int


class Sketches(NamedTuple):
    """The sketches by which a ledger recognizes people and their table: texts of keyed hashes, none
    where too few rows differ. Two engines that read the same rows with the same secret need not
    make the same ones."""

    people: list[str]
    table: list[str]


class Engine(Protocol):
    """Exact integers about one table, which does not change as long as the engine is open.

    An engine knows no price, no noise and no ledger. Sessions make theirs with
    `dpframe.engines.engine_for` and read data through it alone, behind the door. A new one
    subclasses the tests in ``tests/engines/conformance.py``, is one file below ``dpframe/engines``,
    and a line in its table ``ENGINES``. `docs/develop/add-an-engine.md` builds one.

    *What privacy rests on.*

    - Every integer is exact: by rational arithmetic and from the definitions in
      `dpframe._statistics.base`, whatever the cells are, in whatever order the rows stand and
      whatever they are read with. No sum may wrap around or be rounded.
    - The value of an expression in a row depends on that row alone, by the rules for nulls in
      `dpframe.engines.expressions`.
    - Without ``unit.people`` a row is a person. With them rows of equal values in these columns are
      one person's, and rows with a null there are nobody's. What a person adds is bounded as
      docs/guarantees/people.md says. In a group at most ``unit.rows`` rows count, and totals of
      more values are scaled down to that number. At most ``unit.groups`` groups count, chosen by
      that person's own rows and the key of the engine. Nobody else's rows may influence the choice.
    - Nothing is raised, warned of or logged that holds a cell, or tells one table from another.

    *Parts.* A table can be read in parts whose integers are added, since all primitives are sums
    but those that say ``additive = False``: any parts where a row is a person, parts of whole
    people where there are columns that name them. What `occurring` returns adds up as well, key by
    key, and the slices of one part may follow those of another.

    >>> import pandas as pd
    >>> from dpframe._expr import Column
    >>> from dpframe._groups.keys import KeyBy, keys_for
    >>> from dpframe._statistics.base import Rows
    >>> from dpframe._statistics.engine import Scope
    >>> from dpframe.engines import engine_for
    >>> visits = pd.DataFrame({"state": ["NY", "CA", "NY"], "id": [7, 7, 8]})
    >>> state, person = (Column.of(i, name, visits.dtypes.iloc[i]) for i, name in enumerate(visits))
    >>> engine = engine_for(visits, key=b"12345678")
    >>> len(engine), engine.people(Unit(people=(person,)))
    (3, 2)
    >>> groups = KeyBy(state, keys_for(["CA", "NY", "TX"], state, "state"))
    >>> engine.reduce(Scope(None, (groups,)), {Rows()}, Unit())[Rows()].tolist()
    [1, 2, 0]
    >>> texts, sums = engine.occurring([state], None, Unit())
    >>> texts, sums[Persons()].tolist()
    ([('sCA',), ('sNY',)], [1, 2])
    """

    def __len__(self) -> int:
        """Return the number of rows."""

    def reduce(
        self, scope: Scope, primitives: set[Primitive], unit: Unit, /
    ) -> dict[Primitive, Integers]:
        """Return the primitive sums of each group, in the shapes of `dpframe._statistics.base`."""

    def occurring(
        self,
        by: Sequence[Expr],
        where: Expr | None,
        unit: Unit,
        primitives: frozenset[Primitive] | set[Primitive] = PEOPLE,
        /,
    ) -> tuple[Texts, dict[Primitive, Integers]]:
        """Return the combinations of values that occur in the data, as texts, with exact sums for
        each. The search for group keys adds noise to them. Combinations where nobody counts are
        left out.

        There is a sum for each of the ``primitives`` and each combination. A combination with a
        null, or with a cell that has no text, does not count. Only people and sums over rows may be
        asked for. People are always in the answer.
        """

    def slices(
        self, exprs: Sequence[Expr], where: Expr | None, unit: Unit, /
    ) -> Iterator[RowSlice]:
        """Yield all rows, slice by slice, for questions that need each row and not sums.

        A person has the same code in all slices.
        """

    def people(self, unit: Unit, /) -> int:
        """Return the number of people who have a row, if columns name them.

        It is asked for only if it is public.
        """

    def sketches(self, unit: Unit, secret: bytes, /) -> Sketches:
        """Return the sketches by which a ledger recognizes these people and this table.

        The secret is that of the store of the ledger.
        """

    def close(self) -> None:
        """Let go of the data. Nothing is asked afterwards."""
