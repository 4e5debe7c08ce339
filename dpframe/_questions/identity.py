"""The identity of a release: the integers that leave the door, whatever words asked for them.

*Formal guarantee.* Two questions with equal identities have the same exact integers on every table,
except for the order of their vectors and groups, which `Identity` knows
(docs/guarantees/identity.md). So one release answers both, and the second answer is
post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe._cells.encoding import encode, join_codes
from dpframe._expr import Expr, is_null, logical_not
from dpframe._groups.forms import GroupForm
from dpframe._groups.unit import Unit
from dpframe._plans.plan import Draft
from dpframe._questions.conditions import ALL_ROWS, code_of_condition, code_of_rows
from dpframe._statistics.base import Statistic, Total
from dpframe._statistics.counts import Questions, RowCount, ValueCount
from dpframe._types import Array, Raw

_ROW_COUNT = encode(RowCount())


class Identity(NamedTuple):
    """The identity of a question, and the places of its integers in the shared order.

    ``code`` stands for the whole question. ``rows`` stands for its rows, groups and people.
    ``vectors`` has a code for each of its vectors of integers, in the question's own order.
    ``places`` has the place of each group of the shared order.
    """

    code: bytes
    rows: bytes = b""
    vectors: tuple[bytes, ...] = ()
    places: NDArray[np.intp] | None = None

    @property
    def order(self) -> list[int]:
        """Indices that sort the vectors of integers into an order that all equal questions
        share."""
        if len(self.vectors) < 2:
            return [0] * len(self.vectors)
        return sorted(range(len(self.vectors)), key=self.vectors.__getitem__)

    @property
    def shared_identity(self) -> Identity:
        """The same identity, in the shared order."""
        return self._replace(vectors=tuple(sorted(self.vectors)), places=None)


def identify_sums(
    prepared: Draft, where: Expr | None, groups: GroupForm, unit: Unit, public_rows: int | None
) -> Identity:
    """Return the identity of a question for sums, by which a repeated question is found in the
    ledger.

    ``prepared`` has the statistics, ``where`` is the condition on rows, and ``groups`` the form of
    the groups. A count of rows that meet a condition has one identity, however it is written: its
    condition is put with that of the question.
    """
    vectors = prepared.codes
    one = len(vectors) == 1
    condition = None
    if one and not (unit.people and groups.code) and vectors[0] != _ROW_COUNT:
        condition = find_condition_counted_by(prepared.statistics[0])
    if condition is None:
        rows = code_rows(
            ALL_ROWS if where is None else code_of_rows(where), groups, unit, public_rows
        )
    else:
        vectors = (_ROW_COUNT,)
        rows = code_rows(code_of_rows(condition, where), groups, unit, None)
    in_order = vectors if one else sorted(vectors)
    # Each part tells its own length, so that no other parts make the same bytes.
    return Identity(b"".join((b"sums", rows, *in_order)), rows, vectors, groups.places)


def code_rows(condition: bytes, groups: GroupForm, unit: Unit, public_rows: int | None) -> bytes:
    """Return the code of the rows, groups and people that a question is about."""
    known = b"" if public_rows is None else encode(public_rows)
    return join_codes(condition, groups.code, encode(unit), known)


def identify_choice(
    choice: tuple[object, ...],
    prepared: Draft,
    where: Expr | None,
    groups: GroupForm,
    unit: Unit,
    public_rows: int | None,
) -> Identity:
    """Return the identity of a question that chooses the largest scores among groups or candidates.
    A repeated question is found by it. ``choice`` has the aggregate's name and the number of
    rounds."""
    rows = code_rows(code_of_condition(where), groups, unit, public_rows)
    code = join_codes(b"choice", encode(choice), rows, *prepared.codes)
    return Identity(code, rows, prepared.codes, groups.places)


def find_condition_counted_by(statistic: Statistic) -> Expr | None:
    """Return the condition if a statistic counts the rows where it holds, else None.

    So two spellings of the same count have the same identity, and the second is free. Three
    statistics are such counts: the sum of a boolean column; the number of values of a column, with
    the condition that it is not null; and a count of rows where one condition holds.

    All of them have the sensitivity of a count of rows, and so the same noise at the same price. A
    sum on a finer grid than whole numbers is no such count. That is so where a person has several
    rows, whose sum is scaled.
    """
    if isinstance(statistic, Total) and statistic.expr.kind == "bool":
        plain = tuple(statistic.grid.bounds) == (0.0, 1.0) and statistic.grid.exponent == 0
        return statistic.expr if plain else None
    if isinstance(statistic, ValueCount) and not statistic.nulls:
        return logical_not(is_null(statistic.expr))
    if isinstance(statistic, Questions) and len(statistic.exprs) == 1:
        return statistic.exprs[0]
    return None


def rearrange_parts(parts: Sequence[object], recorded: Identity, wanted: Identity) -> list[Any]:
    """Return recorded items, one for each vector of integers, in the order that the equal question
    ``wanted`` has them. ``recorded`` is the identity that they were recorded under."""
    arranged = list(parts)
    for place, source in zip(wanted.order, recorded.order, strict=True):
        arranged[place] = parts[source]
    return arranged


def rearrange(arrays: Sequence[object], recorded: Identity, wanted: Identity) -> Raw:
    """Return recorded arrays, a vector each, in the order of another question of the same
    identity."""
    arranged = rearrange_parts(arrays, recorded, wanted)
    return tuple([rearrange_groups(array, recorded, wanted) for array in arranged])


def rearrange_groups(array: Any, recorded: Identity, wanted: Identity) -> Any:
    """Return a recorded array with its columns, one for each group, in the order of groups of
    another question."""
    places = wanted.places if recorded.places is None else recorded.places
    if places is None or array.shape[-1] != len(places):  # an array without groups has one column
        return array
    return array[..., _find_places(recorded.places, wanted.places, len(places))]


def rearrange_choices(choices: Array, recorded: Identity, wanted: Identity) -> Array:
    """Return recorded choices of groups as indices into the groups of another question. Both
    questions have the same identity, but may list the groups in different orders."""
    places = recorded.places if recorded.places is not None else wanted.places
    if places is None:
        return choices
    # The group at place p of the record stands at the place q where the other order has p.
    moved: Array = np.empty(len(places), dtype=choices.dtype)
    moved[_find_places(recorded.places, wanted.places, len(places))] = np.arange(len(places))
    return np.asarray(moved[choices])


def _find_places(
    recorded: NDArray[np.intp] | None, wanted: NDArray[np.intp] | None, groups: int
) -> NDArray[np.intp]:
    """Return for each wanted group the position where it was recorded. None stands for groups in
    the shared order."""
    found, own = np.empty(groups, dtype=np.intp), np.arange(groups, dtype=np.intp)
    found[own if wanted is None else wanted] = own if recorded is None else recorded
    return found
