"""Answers: pandas objects made from releases, each with its receipt."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import cast

import numpy as np
import pandas as pd

from dpframe._answers.layout import (
    AnswerLayout,
    OutputColumns,
    OutputGrid,
    OutputRows,
    OutputSeries,
    PivotTable,
    QuantileRows,
    RowsWithZeros,
    ShownColumn,
)
from dpframe._answers.marks import AnswerFrame, AnswerSeries
from dpframe._answers.receipts import ANSWER, attach_receipt, seal_columns
from dpframe._answers.released import blank_noise, warn_of_noise
from dpframe._groups.keys import Keys
from dpframe._plans.aggregates import Output
from dpframe._plans.durations import check_alike, has_moments
from dpframe._questions.question import Release, read_numbers
from dpframe._types import Array, Index, PandasType, Places, Series

# Every answer gets a view of the index: its names are the user's to change, and the session's own
# must not follow.


def values(release: Release, cell: int) -> Array:
    """Return the numbers of one output, an entry a group."""
    return read_numbers(release.plan, release.raw, cell)


def column(
    release: Release,
    layout: AnswerLayout,
    index: Index,
    name: Hashable,
    order: Places | None = None,
) -> Series:
    """Return a release as a Series with its receipt, for a layout with a single column.

    ``index`` has the labels of the rows. ``order`` rearranges the rows, as sorting counts does, or
    is None. Noise is left out if the session says so.
    """
    values = layout.values(release.plan, release.raw)
    (data,) = blank_noise(release, layout) if release.rule.blank else values
    if data.dtype == object and not any(cell.duration for cell in release.plan.cells):
        data = data.astype(np.float64)  # noise beyond 63 bits, as in a table
    (shown,) = layout.show_in_zones(release.plan, [data])
    if order is not None:
        shown, index = shown[order], index[order]
    warn_of_noise(release, layout, values)
    answer = AnswerSeries(shown, index=index.view(), name=name)
    attach_receipt(answer, release, layout, [shown], None, index, order)
    return answer


def series(release: Release, index: Index, name: Hashable, order: Places | None = None) -> Series:
    """Return one output, a row a group; ``order`` rearranges the rows."""
    return column(release, OutputSeries(), index, name, order)


def across(release: Release, index: Index, name: Hashable = None) -> Series:
    """Return several outputs without groups: a row an output."""
    return column(release, OutputRows(), index, name)


def across_with_zeros(release: Release, places: Sequence[int], index: Index) -> Series:
    """Return several outputs without groups, a row an output, among rows that are public zeros.

    ``places`` has the number of the output of each row, or -1.
    """
    return column(release, RowsWithZeros(tuple(places)), index, None)


def proportions(
    release: Release,
    layout: AnswerLayout,
    index: Index,
    name: Hashable,
    order: Places | None = None,
) -> Series:
    """Return counts divided by their total as a Series, with a row for each group.

    ``layout`` divides them. ``order`` rearranges the rows, or is None.
    """
    return column(release, layout, index, name, order)


def levels(release: Release, index: Index | None, given: Sequence[float], name: Hashable) -> Series:
    """Return several quantiles of one column: a row a level, within each group."""
    rows = nest_rows(index, pd.Index(given, dtype=np.float64))
    return column(release, QuantileRows(), rows, name)


def rank_choices(release: Release, index: Index | None, places: Index, name: Hashable) -> Series:
    """Return several choices of one column: a row a place, within each group."""
    return column(release, QuantileRows(), nest_rows(index, places), name)


def with_keys(answer: PandasType, keys: Sequence[Keys | None]) -> PandasType:
    """Return an answer with keys instead of their positions in lists of keys.

    Verbs that choose a key release its position. ``keys`` has the list of keys of each output, or
    None for one that is not chosen. The receipt is of the same release, and of the answer as it
    stands now.
    """
    record = json.loads(answer.attrs[ANSWER])
    skip = record.get("skip", 0)
    labels: list[Hashable] = []
    if isinstance(answer, pd.Series):
        only = keys[0]  # several places in one column share their list
        assert only is not None
        taken = only.index.take(answer.to_numpy()).array
        shown: Series | pd.DataFrame = AnswerSeries(taken, index=answer.index, name=answer.name)
        arrays = [shown.to_numpy()]
    else:
        shown = answer.copy()
        for place, own in enumerate(keys):
            if own is not None:
                shown.isetitem(skip + place, own.index.take(answer.iloc[:, skip + place]).array)
        arrays = [shown.iloc[:, i].to_numpy() for i in range(shown.shape[1])]
        labels = list(shown.columns)
    record["seal"], each = seal_columns(arrays, labels, shown.index)
    if "each" in record:
        record["each"] = each[skip:]
    shown.attrs = {**answer.attrs, ANSWER: json.dumps(record)}
    return cast(PandasType, shown)


def nest_rows(index: Index | None, rows: Index) -> Index:
    """Return an index with the labels ``rows`` within each group, as its innermost level.

    ``index`` are the groups. Without groups the result is ``rows`` itself.
    """
    if isinstance(index, pd.MultiIndex):
        # Combinations may be listed ones, so these are their rows and not a product.
        parts = [index.get_level_values(i).repeat(len(rows)) for i in range(index.nlevels)]
        return pd.MultiIndex.from_arrays(
            [*parts, pd.Index(np.tile(rows, len(index)))], names=[*index.names, rows.name]
        )
    return rows if index is None else pd.MultiIndex.from_product([index, rows])


@lru_cache(maxsize=256)
def _make_labels(labels: tuple[str, ...]) -> Index:
    """Return texts as labels of columns; pandas takes longer for them than for the table."""
    return pd.Index(labels)


def table(release: Release, index: Index, columns: Sequence[Hashable]) -> pd.DataFrame:
    """Return a release of several outputs and groups as a DataFrame with its receipt.

    ``index`` has the groups, and ``columns`` are the names of the outputs.
    """
    layout = OutputColumns()
    values = layout.values(release.plan, release.raw)
    found = blank_noise(release, layout) if release.rule.blank else values
    # Python integers appear only at prices so small that noise leaves 63 bits. As doubles they are
    # still noise.
    data: list[ShownColumn] = [
        column if column.dtype != object else column.astype(np.float64) for column in found
    ]
    if any(column.dtype.kind == "M" for column in found):
        data = layout.show_in_zones(release.plan, found)
    warn_of_noise(release, layout, values)
    # Nobody else has these arrays, so that pandas need not copy them.
    answer = AnswerFrame(dict(enumerate(data)), index=index.view(), copy=False)
    if all(type(label) is str for label in columns):  # 1 and True would be one entry
        answer.columns = _make_labels(cast("tuple[str, ...]", tuple(columns))).view()
    else:  # as pandas makes them of a dict
        alike = len(set(columns)) < len(columns)
        answer.columns = (
            pd.Index(list(columns)) if alike else pd.DataFrame(dict.fromkeys(columns, ())).columns
        )
    attach_receipt(answer, release, layout, data, columns, index)
    return answer


def make_table(
    release: Release, layout: AnswerLayout, index: Index, columns: Index, whole: bool = True
) -> pd.DataFrame:
    """Return a release as a DataFrame with its receipt, with its numbers where a layout puts them.

    ``index`` and ``columns`` are the labels. Without ``whole`` counts are floats too.
    """
    values = layout.values(release.plan, release.raw)
    found = blank_noise(release, layout) if release.rule.blank else values
    data = layout.show_in_zones(
        release.plan,
        [
            _to_dtype(column) if whole or column.dtype.kind in "mM" else _to_float(column)
            for column in found
        ],
    )
    warn_of_noise(release, layout, values)
    answer = AnswerFrame(dict(enumerate(data)), index=index.view())
    answer.columns = columns.view()
    attach_receipt(answer, release, layout, data, list(answer.columns), index)
    return answer


def grid(
    outputs: Sequence[Output],
    places: Sequence[tuple[Hashable, Hashable]],
    whole: bool = True,
    mixed: bool = False,
) -> Callable[[Release, Index | None], pd.DataFrame]:
    """Return a function that lays out a release as a table of outputs, such as that of `describe`.

    ``places`` has the row and the column of each output. Rows and columns stand in the order in
    which they first appear, and groups one below the other. Without ``whole`` counts are floats
    too. With ``mixed`` a column may have numbers and times.
    """
    for one in () if mixed else dict.fromkeys(column for _, column in places):
        check_alike(
            [out for out, (_, column) in zip(outputs, places, strict=True) if column == one]
        )
    rows = list(dict.fromkeys(row for row, _ in places))
    columns = list(dict.fromkeys(column for _, column in places))
    numbers = {place: i for i, place in enumerate(places)}
    layout = OutputGrid(tuple(tuple(numbers.get((row, c), -1) for c in columns) for row in rows))
    index, across = pd.Index(rows, tupleize_cols=False), pd.Index(columns, tupleize_cols=False)
    return lambda r, groups: make_table(r, layout, nest_rows(groups, index), across, whole)


def by_levels(release: Release, index: Index, columns: Index, whole: bool = True) -> pd.DataFrame:
    """Return several outputs of several groups, with names that may be levels of the columns."""
    return make_table(release, PivotTable(len(index)), index, columns, whole)


def flat(
    release: Release, index: Index, columns: Sequence[Hashable], levels: Sequence[Hashable]
) -> pd.DataFrame:
    """Return a release as a DataFrame with the group keys as columns: ``as_index=False``.

    ``columns`` are the names of the outputs, and ``levels`` those of the keys.
    """
    answer = table(release, index, columns)
    answer.columns = make_columns(columns)
    answer.attrs = {}  # it is another answer with the keys
    answer = answer.reset_index(names=list(levels))
    data = [answer.iloc[:, i].to_numpy() for i in range(answer.shape[1])]
    labels, skip = list(answer.columns), len(levels)
    attach_receipt(answer, release, PivotTable(len(index)), data, labels, answer.index, skip=skip)
    return answer


def make_columns(labels: Sequence[Hashable]) -> Index:
    """Return labels of columns as pandas would have them: pairs are levels."""
    pairs = [label for label in labels if isinstance(label, tuple)]
    if pairs and len(pairs) == len(labels):
        return pd.MultiIndex.from_tuples(pairs)
    return pd.Index(list(labels), tupleize_cols=False)


def _to_float(data: Array) -> Array:
    """Return numbers as doubles; a column of numbers and times stays one of objects."""
    return data if has_moments(data) else data.astype(np.float64)


def _to_dtype(data: Array) -> Array:
    """Return Python integers as int64 if they fit, and as doubles if noise is wider than that."""
    if data.dtype != object or has_moments(data):
        return data
    return data.astype(np.int64 if all(abs(int(x)) < 2**63 for x in data) else np.float64)
