"""Whether two tables that somebody calls neighbours are some."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd

from dpframe import _validate
from dpframe._errors import BadValue
from dpframe.audit._replay import _changes, _hashes, distance


def check_neighbours(one: pd.DataFrame, two: pd.DataFrame, neighbors: str | None, unit: Any) -> None:
    """Raise where two tables are no neighbours, in the relation that is named or in either."""
    apart = distance(one, two)  # an error where their columns differ
    if unit is None:
        changes = sorted(_changes(one, two))
        added, replaced, whose = changes in ([0, 0], [0, 1]), changes in ([0, 0], [1, 1]), "one row"
    else:
        first, second = (_rows_by_person(side, unit) for side in (one, two))
        gone, new = len(first.keys() - second.keys()), len(second.keys() - first.keys())
        changed = sum(first[person] != second[person] for person in first.keys() & second.keys())
        added = gone + new <= 1 and not changed
        replaced = (gone, new, changed) in ((0, 0, 0), (0, 0, 1), (1, 1, 0))
        whose = "the rows of one person"
    allowed = {"add-remove": added, "replace-one": replaced, None: added or replaced}
    if not allowed[neighbors]:
        relation = "" if neighbors is None else f" for neighbors={neighbors!r}"
        raise BadValue(
            f"the adversary's two DataFrames are no neighbours{relation}: they are {apart} rows apart, and may differ "
            f"in {whose}. Where a person has several rows, name the column: composition_experiment(..., unit='id')."
        )


def _rows_by_person(frame: pd.DataFrame, unit: Any) -> dict[int, Counter[int]]:
    names = _validate.column_names(unit if isinstance(unit, list) else [unit], dict.fromkeys(frame.columns))
    ids = frame[names]
    named = ids.notna().all(axis=1).to_numpy()
    found: dict[int, Counter[int]] = {}
    for person, row in zip(_hashes(ids[named]), _hashes(frame[named]), strict=True):
        found.setdefault(person, Counter())[row] += 1
    return found
