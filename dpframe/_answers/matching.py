"""Matching: which released numbers stand in an answer that was sorted, selected or computed.

*Formal guarantee.* A cell is taken for a released number if its labels are those of the release and
its value is that number, to the last bit. So an answer with one edited cell has no interval,
whatever was written there. Nothing is guessed. What was computed is in the receipt, and is computed
again from the noisy integers before anything is said of it
(docs/guarantees/intervals.md#arithmetic-with-answers).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
import pandas as pd

from dpframe import _pandas
from dpframe._answers.arithmetic import Calculation
from dpframe._answers.noises import LeafForm, read_table_form
from dpframe._answers.receipts import FIXED, to_texts
from dpframe._answers.released import Released
from dpframe._answers.rowsteps import take_rows
from dpframe._errors import BadValue
from dpframe._plans.aggregates import Cell
from dpframe._plans.plan import Plan
from dpframe._types import (
    Array,
    Bools,
    Ends,
    Floats,
    Index,
    Json,
    PandasAnswer,
    Places,
    Series,
)

CHANGED = (
    "the values or the labels of this answer have changed since it was released, so its receipt no "
    "longer describes it. Ask the answer as it came: keep it in a variable of its own. Sorting and "
    "selecting keep intervals; so do steps after .dp, such as answer.dp.round(1), answer.dp / 1000, "
    "a.dp / b.dp, answer.dp.rolling(7).mean() or answer.dp.groupby(level=0).sum()."
)

DURATIONS = (
    "durations have intervals as they came: ask answer.dp.interval() before sorting or computing. "
    "Numbers keep theirs: ask .dt.total_seconds() of the column."
)


# Labels -----------------------------------------------------------------------------------------


class Labels:
    """The labels of an answer as its receipt holds them: texts, level by level."""

    def __init__(self, receipt: Json):
        """Read the labels of rows and columns that an answer was released with, from its
        receipt."""
        labels = receipt["columns"]
        # The labels of the columns, with a text for each level; None for a Series.
        self.columns: list[tuple[str, ...]] | None = (
            None if labels is None else [tuple(label) for label in labels]
        )
        self.names: list[str | None] = receipt["names"]  # of the levels of the rows
        # True if the group keys were columns beside the numbers (``as_index=False``), and the index
        # only counted the rows.
        self.keys_are_columns: bool = bool(receipt.get("skip"))
        self.rows = _read_rows(receipt["rows"])
        if len(set(map(len, self.columns or ()))) > 1:  # some labels have levels, and others not
            self.rows = []

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows[0]) if self.rows else 1


def _read_rows(data: Json) -> list[Array]:
    """Return the labels of the rows from a receipt, an array for each level of the index."""
    levels = [np.array([*texts, "nan"], dtype=object) for texts in data["levels"]]
    if data["codes"] is None:
        return [level[:-1] for level in levels]
    return [
        level[np.array(codes, dtype=np.intp)]
        for level, codes in zip(levels, data["codes"], strict=True)
    ]


# Sources of numbers -----------------------------------------------------------------------------


class NumberSource(Protocol):
    """Columns of numbers with intervals and labels: a release, or what was computed from some."""

    labels: Labels

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of the releases behind the numbers."""

    @property
    def values(self) -> list[Array]:
        """The columns of numbers."""

    @property
    def noise(self) -> list[Bools]:
        """Which numbers are noise, column by column."""

    def ends(self, level: float, at_once: bool = False) -> list[Ends]:
        """Return the ends of the intervals of each column."""

    def deviations(self) -> Sequence[Array | float | None]:
        """Return the standard deviation of the noise in each column."""

    def calculate_rows(self, column: int, rows: Places) -> Calculation:
        """Return how some rows of a column were computed."""

    def cells_of(self, columns: Sequence[int]) -> tuple[Cell, ...]:
        """Return the outputs that these columns show, or are made of."""


class ReleasedTable(Released):
    """A release with the labels of its rows and columns."""

    labels: Labels
    text: str  # the receipt

    @classmethod
    def read(cls, receipt: Json, text: str) -> Self:
        """Return the release that a receipt describes, with its labels.

        ``text`` is the receipt as it was written.
        """
        found = cls.from_receipt(receipt)
        found.labels, found.text = Labels(receipt), text
        found.values = [
            column.astype(np.float64) if column.dtype == object else column
            for column in found.values
        ]
        return found

    def calculate_rows(self, column: int, rows: Places) -> Calculation:
        """Return some rows of a column, as they were released."""
        return Calculation((Excerpt(self, column, rows),), (("leaf", 0),))


@dataclass(frozen=True, slots=True, eq=False)
class Excerpt:
    """Some rows of a column of a release: a leaf of calculations. A missing row, -1, is NaN.

    ``rows`` without a dimension are a single number.
    """

    source: ReleasedTable
    column: int
    rows: Places

    @property
    def part(self) -> float:
        """The part by which the numbers are judged."""
        return self.source.part

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan of the release."""
        return self.source.plans

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The outputs that the column shows."""
        return self.source.cells_of([self.column])

    @property
    def release_key(self) -> object:
        """The release that holds its numbers: intervals of one release can hold at once."""
        return self.source

    def number(self) -> Array:
        """Return the numbers."""
        return take_rows(self.source.values[self.column], self.rows)

    def ends(self, level: float, at_once: bool = False) -> Ends:
        """Return the ends of the intervals."""
        low, high = self.source.ends(level, at_once)[self.column]
        return take_rows(low, self.rows), take_rows(high, self.rows)

    def deviation(self) -> Array | float | None:
        """Return the standard deviation of the noise; None if none can be stated."""
        deviation = self.source.deviations()[self.column]
        return take_rows(deviation, self.rows) if isinstance(deviation, np.ndarray) else deviation

    def form(self) -> LeafForm | None:
        """Return the numbers as sums of noisy integers, or ratios of these."""
        return read_table_form(self.source, self.column, self.rows, id(self.source.text))

    def flag_noise(self, size: int) -> Bools:
        """Return which numbers are noise."""
        flags = take_rows(self.source.noise[self.column], self.rows) == 1.0
        return np.broadcast_to(np.asarray(flags), (size,))

    def pick_rows(self, rows: Places) -> Excerpt:
        """Return some of the rows; a single number stands in every row."""
        if self.rows.ndim == 0:
            return self
        return Excerpt(self.source, self.column, np.where(rows < 0, -1, self.rows[rows]))

    def is_same(self, other: object) -> bool:
        """Return whether another leaf has the same numbers, with the same noise.

        Receipts are compared by identity. Two releases may come out alike, and each has noise of
        its own.
        """
        return (
            isinstance(other, Excerpt)
            and other.source.text is self.source.text
            and other.column == self.column
            and np.array_equal(other.rows, self.rows)
        )


# Matching ---------------------------------------------------------------------------------------


class MatchedAnswer:
    """An answer, and the row and the column of its source that each of its cells is.

    With ``edited`` the labels alone decide, and the values may have changed. Then it tells which
    cells are made of noise, and has no intervals.
    """

    def __init__(self, source: NumberSource, answer: PandasAnswer, edited: bool = False):
        """Find the released number behind each cell of an answer, by its labels.

        ``source`` has the released numbers, and ``answer`` is the pandas object, perhaps sorted or
        filtered since. Unless ``edited``, each cell must still have its released value.
        """
        self.source, self.answer = source, answer
        if not source.labels.rows:
            raise BadValue(CHANGED)
        if any(cell.duration for plan in source.plans for cell in plan.cells):
            raise BadValue(DURATIONS)
        frame = answer.to_frame() if isinstance(answer, pd.Series) else answer
        # The number of first columns that are labels of rows.
        self.keys = count_keys(source.labels, frame)
        # A row of the source for each cell of the answer, and a column; -1 where it is not there.
        self.rows, self.columns = _find_places(source.labels, frame, self.keys)
        here = (self.rows >= 0) & (self.columns >= 0)
        places = (self.rows * max(len(source.values), 1) + self.columns)[here]
        if (here.size and not here.any()) or len(np.unique(places)) < len(places):
            raise BadValue(CHANGED)
        self.rows = np.where(here, self.rows, -1)
        values = frame.iloc[:, self.keys :]
        if not edited:
            _check_values(source, values, self.rows, self.columns)
        elif self._has_moved(values):
            raise BadValue(CHANGED)

    def _has_moved(self, values: pd.DataFrame) -> bool:
        """Return whether ``values`` stand at other labels, as after a shift: some are NaN that were
        not.

        A session that leaves noise out has NaN for all of it.
        """
        released = np.stack(self._take(self.source.values), axis=1)
        lost = _pandas.isna(values).to_numpy() & ~np.isnan(released)
        noise = np.stack(self.noise, axis=1)
        return bool((lost & ~noise).any() or (lost.any() and (noise & ~lost).any()))

    def _take(self, columns: Sequence[Array]) -> list[Floats]:
        """Return columns shaped like the answer, from columns shaped like its source."""
        found = []
        for rows, places in zip(self.rows.T, self.columns.T, strict=True):
            cells = np.full(len(rows), np.nan)
            for j in np.unique(places[rows >= 0]):
                here = (places == j) & (rows >= 0)
                cells[here] = np.asarray(columns[j], dtype=np.float64)[rows[here]]
            found.append(cells)
        return found

    @property
    def labelled(self) -> bool:
        """Whether it is a table, in which columns have labels."""
        return isinstance(self.answer, pd.DataFrame)

    @property
    def by_level(self) -> bool:
        """Whether the innermost level of its rows is that of quantiles."""
        return isinstance(self.source, Released) and self.source.layout.by_level

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of the releases behind the numbers."""
        return self.source.plans

    @property
    def noise(self) -> list[Bools]:
        """Which numbers are noise, column by column; a cell without a number is not."""
        return [column == 1.0 for column in self._take(self.source.noise)]

    def ends(self, level: float, at_once: bool = False) -> list[Ends]:
        """Return the ends of the intervals of each column of numbers."""
        pairs = self.source.ends(level, at_once)
        low, high = (self._take([pair[side] for pair in pairs]) for side in (0, 1))
        return list(zip(low, high, strict=True))

    def deviations(self) -> list[Floats | None]:
        """Return the standard deviation of the noise in each column; None if none can be stated."""
        size = len(self.source.labels)
        known = [
            np.full(size, np.nan) if deviation is None else np.zeros(size) + deviation
            for deviation in self.source.deviations()
        ]
        return [None if np.isnan(column).all() else column for column in self._take(known)]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The outputs that it still shows."""
        columns = (
            self.columns[self.rows >= 0] if self.rows.size else np.arange(len(self.source.values))
        )
        return self.source.cells_of([int(j) for j in np.unique(columns)])

    def calculate(self, place: int) -> Calculation:
        """Return how a column of the answer was computed from released numbers.

        ``place`` is the number of the column. Refuse one with values from several columns of the
        release.
        """
        rows, columns = self.rows[:, place], self.columns[:, place]
        known = np.unique(columns[rows >= 0])
        if len(known) > 1:
            raise BadValue(
                "the rows of this answer were columns when it was released, and arithmetic goes by "
                "columns. Compute first and turn the result: (answer.dp / 1000).T."
            )
        return self.source.calculate_rows(int(known[0]) if len(known) else 0, rows)


def count_keys(labels: Labels, frame: pd.DataFrame) -> int:
    """Return how many of the first columns are labels of rows, as `reset_index` makes them."""
    if frame.columns.nlevels > 1 and not all(isinstance(label, tuple) for label in frame.columns):
        return 0
    named = [str(name) for name in labels.names if name is not None]
    unnamed = ["index", *(f"level_{i}" for i in range(len(labels.names)))]
    wanted = {*named, *(unnamed if None in labels.names else ())}
    wanted -= set(map(str, [*frame.index.names, *frame.columns.names]))
    own = {label[0] for label in labels.columns or () if len(label) == 1}
    count = 0
    for label in frame.columns:
        text = str(label[0]) if isinstance(label, tuple) and not any(label[1:]) else str(label)
        if text not in wanted or text in own:
            break
        count += 1
    return count if count < frame.shape[1] else 0


class _Axis(NamedTuple):
    """A level of the labels of an answer: its name, and a text for each row or each column."""

    name: Hashable
    texts: list[str]
    of_rows: bool


def _list_axes(labels: Labels, frame: pd.DataFrame, keys: int) -> list[_Axis]:
    """Return the levels of labels of an answer: its key columns, its index and its columns."""
    axes = []
    for i in range(keys):
        label = frame.columns[i]
        name = str(label[0] if isinstance(label, tuple) else label)
        axes.append(_Axis(name, to_texts(frame.iloc[:, i].array), True))
    known = {str(name) for name in labels.names}
    for i, own in enumerate(frame.index.names):
        # Beside keys an index only counts the rows.
        if not keys or (own is not None and str(own) in known):
            axes.append(_Axis(own, to_texts(frame.index.get_level_values(i)), True))
    columns = frame.columns[keys:]
    for i, own in enumerate(columns.names):
        axes.append(_Axis(own, to_texts(columns.get_level_values(i)), False))
    fixed = frame.attrs.get(FIXED, ())
    axes += [_Axis(name, [text] * len(frame), True) for name, text in fixed]
    return axes


def _find_places(labels: Labels, frame: pd.DataFrame, keys: int) -> tuple[Places, Places]:
    """Return the row and the column of the release behind each cell of an answer.

    Both are -1 for a cell that is not there. ``labels`` are those of the release. ``keys`` is the
    number of first columns of ``frame`` that are labels of rows.

    The release has levels of labels, for rows and for columns. Each is sought among the axes of the
    answer: its key columns, its index and its columns. A cell is where its labels on all axes are.
    """
    texts_of_rows, names = labels.rows, labels.names
    if labels.keys_are_columns and not keys and frame.index.names == [None]:
        # The group keys were columns of the release, and are gone from the answer. The row numbers
        # of its index are all that is left to find the rows by.
        counts = np.array(list(map(str, range(len(labels)))), dtype=object)
        texts_of_rows, names = [counts], [None]
    columns = labels.columns or [()]
    texts_of_columns = [[label[i] for label in columns] for i in range(len(columns[0]))]
    texts: list[Sequence[str] | Array] = [*texts_of_rows, *texts_of_columns]
    levels = [pd.Index(np.array(one, dtype=object)).unique() for one in texts]
    rows = len(texts_of_rows)
    level_names = [*names, *[None] * len(texts_of_columns)]
    assigned, unassigned = _assign_axes(_list_axes(labels, frame, keys), levels, level_names, rows)
    # An axis that is no level of the release is harmless if it has one label only and all levels
    # were found: a Series that became a column has any name.
    if any(len(assigned) < len(levels) or len(set(axis.texts)) > 1 for axis in unassigned):
        raise BadValue(CHANGED)
    codes: list[Places] = []
    for place, level in enumerate(levels):
        axis = assigned.get(place)
        if axis is not None:
            code = level.get_indexer(pd.Index(axis.texts, dtype=object))
            codes.append(code[:, None] if axis.of_rows else code[None, :])
        elif len(level) == 1:  # a level with one label need not be in the answer
            codes.append(np.zeros((1, 1), dtype=np.intp))
        else:
            raise BadValue(CHANGED)
    shape = (frame.shape[0], frame.shape[1] - keys)
    return (
        _combine_levels(codes[:rows], levels[:rows], texts_of_rows, shape),
        _combine_levels(codes[rows:], levels[rows:], texts_of_columns, shape),
    )


def _assign_axes(
    axes: Sequence[_Axis],
    levels: Sequence[Index],
    names: Sequence[Hashable],
    rows: int,
) -> tuple[dict[int, _Axis], list[_Axis]]:
    """Return the axis of an answer for each level of its source, and the axes that are left.

    The first ``rows`` levels are those of rows. An axis belongs to the level of its name, or else
    to one with all of its labels, or else to one with some of them: `reindex` adds others.
    """
    assigned: dict[int, _Axis] = {}
    unassigned = []
    for axis in axes:
        fits = [
            i for i, name in enumerate(names) if name is not None and str(name) == str(axis.name)
        ]
        if axis.name is not None and len(fits) == 1 and fits[0] not in assigned:
            assigned[fits[0]] = axis
        else:
            unassigned.append(axis)
    for all_labels in (True, False):
        left, unassigned = unassigned, []
        for axis in left:
            texts = set(axis.texts)
            fits = [
                i
                for i, level in enumerate(levels)
                if i not in assigned
                and (texts <= set(level) if all_labels else not texts.isdisjoint(level))
            ]
            if fits:
                assigned[min(fits, key=lambda i: (i < rows) != axis.of_rows)] = axis
            else:
                unassigned.append(axis)
    return assigned, unassigned


def _combine_levels(
    codes: Sequence[Places],
    levels: Sequence[Index],
    texts: Sequence[Sequence[str] | Array],
    shape: tuple[int, int],
) -> Places:
    """Return the position of each combination of labels among those of the source.

    ``codes`` are the positions of the labels of the answer in each of ``levels``. ``texts`` are the
    labels of the source. Refuse labels that are not unique.
    """
    wanted = np.zeros(shape, dtype=np.int64)
    own = np.zeros(len(texts[0]) if len(texts) else 1, dtype=np.int64)
    missing = np.zeros(shape, dtype=bool)
    for code, level, labels in zip(codes, levels, texts, strict=True):
        wanted = wanted * len(level) + code
        own = own * len(level) + level.get_indexer(pd.Index(labels, dtype=object))
        missing |= code < 0
    index = pd.Index(own)
    if not index.is_unique:
        raise BadValue(CHANGED)
    found = index.get_indexer(pd.Index(wanted.ravel())).reshape(shape)
    return np.where(missing, -1, found)


def _check_values(
    source: NumberSource, values: pd.DataFrame, rows: Places, columns: Places
) -> None:
    """Refuse an answer with a number that is not the released one.

    ``rows`` and ``columns`` tell which released number each cell of ``values`` should be.
    """
    numbers = [_to_numbers(values.iloc[:, place]) for place in range(values.shape[1])]
    shown = np.stack(numbers, axis=1) if numbers else np.empty(values.shape)
    if not np.isnan(shown[rows < 0].astype(float)).all():
        raise BadValue(CHANGED)
    for j, column in enumerate(source.values):
        here = (columns == j) & (rows >= 0)
        given, released = shown[here], np.asarray(column)[rows[here]]
        same = _are_same(given, released)
        if given.dtype.kind == "f" and (np.isnan(given) & ~same).any():
            # Some sessions leave noise out.
            same |= np.isnan(given) & source.noise[j][rows[here]]
        if not same.all():
            raise BadValue(CHANGED)


def _to_numbers(column: Series) -> Array:
    """Return the values of a column as numbers; refuse others, such as truth values of a
    comparison."""
    if not pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        raise BadValue(CHANGED)
    if column.dtype.kind == "c":
        raise BadValue(CHANGED)
    if isinstance(column.dtype, np.dtype):
        return column.to_numpy()
    whole = column.dtype.kind in "iu" and not column.isna().any()
    return column.to_numpy(dtype=np.int64 if whole else np.float64, na_value=0 if whole else np.nan)


def _are_same(one: Array, two: Array) -> Bools:
    """Return where two arrays have the same numbers, to the last bit; NaN equals NaN."""
    if one.dtype.kind == "f" and one.dtype.itemsize < 8:
        one = one.astype(np.float64)
    if {one.dtype.kind, two.dtype.kind} <= set("iu"):
        return np.asarray(one == two)
    one, two = one.astype(np.float64), two.astype(np.float64)
    return np.asarray((one == two) | (np.isnan(one) & np.isnan(two)))
