"""Tables of outputs that stand in rows and columns by name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import pandas as pd

from dpframe._answers import answer as _release
from dpframe._answers.layout import Grid
from dpframe._plans.aggregates import Output
from dpframe._plans.durations import check_alike
from dpframe._questions.question import Release


def grid(
    outputs: Sequence[Output], places: Sequence[tuple[Hashable, Hashable]], whole: bool = True
) -> Callable[[Release, Any], Any]:
    """A table of outputs, each in the row and the column of its place, in the order in which these first appear; of groups one
    below the other."""
    for one in dict.fromkeys(column for _, column in places):
        check_alike([out for out, (_, column) in zip(outputs, places, strict=True) if column == one])
    rows = list(dict.fromkeys(row for row, _ in places))
    columns = list(dict.fromkeys(column for _, column in places))
    numbers = {place: i for i, place in enumerate(places)}
    layout = Grid(tuple(tuple(numbers.get((row, c), -1) for c in columns) for row in rows))
    index, across = pd.Index(rows, tupleize_cols=False), pd.Index(columns, tupleize_cols=False)
    return lambda r, groups: _release.laid_out(r, layout, _release.below(groups, index), across, whole)
