"""Lineage: which released numbers stand in an answer that was sorted, selected, renamed, rounded or
computed.

*Formal guarantee.* A cell is taken for a released number where its labels are those of the release
and its value is that number, to the last bit; or what the whole column comes to by rounding, of
which at least two cells were moved. So an answer of which one cell was edited has no interval,
whatever was written there. Nothing is guessed: what was computed is in the receipt, and is computed
again from the noisy integers before anything is said of it
(docs/guarantees/intervals.md#arithmetic-with-answers).
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._answers.arithmetic import Calculation, Ends, outward
from dpframe._answers.layout import Layout
from dpframe._answers.worth import contents, noise_in
from dpframe._errors import BadValue
from dpframe._ledger.store import unpack
from dpframe._plans.aggregates import Cell
from dpframe._plans.plan import Plan
from dpframe._plans.sampling import NOISE, About

Places = NDArray[np.intp]

CHANGED = (
    "the values or the labels of this answer have changed since it was released, so its receipt no longer describes it. Ask the "
    "answer as it came: keep it in a variable of its own. Sorting, selecting, renaming columns and rounding keep intervals; so "
    "does arithmetic after .dp, such as answer.dp / 1000 or a.dp / b.dp."
)


DURATIONS = (
    "durations have intervals as they came: ask answer.dp.interval() before sorting or computing. Numbers keep theirs: "
    "ask .dt.total_seconds() of the column."
)


@contextmanager
def reading(text: str, whose: str) -> Iterator[Any]:
    """A receipt's JSON, to be taken apart: whatever is not as dpframe writes it is one refusal."""
    try:
        yield json.loads(text)
    except (ValueError, KeyError, TypeError):
        raise BadValue(f"the receipt of {whose} is not one that dpframe wrote.") from None


# Labels ---------------------------------------------------------------------------------------------------------------


def texts_of(labels: Any) -> list[str]:
    """Labels as texts, by which those of a receipt are known again."""
    return list(map(str, pd.Index(labels).to_numpy()))


def label_texts(label: Hashable) -> list[str]:
    """The label of a column as texts, one for each of its levels."""
    parts = label if isinstance(label, tuple) else (label,)
    return [text for part in parts for text in texts_of(pd.Index([part], tupleize_cols=False))]


def _rows(data: dict[str, Any]) -> list[NDArray[Any]]:
    """The labels of rows, level by level, of a receipt."""
    levels = [np.array([*texts, "nan"], dtype=object) for texts in data["levels"]]
    if data["codes"] is None:
        return [level[:-1] for level in levels]
    return [
        level[np.array(codes, dtype=np.intp)]
        for level, codes in zip(levels, data["codes"], strict=True)
    ]


# Where numbers come from ----------------------------------------------------------------------------------------------


class Origin(Protocol):
    """Columns of numbers that are known exactly, with their labels: a release, or what was computed
    from some."""

    names: list[Any]  # of the levels of rows
    rows: list[NDArray[Any]]  # their labels as texts
    columns: list[tuple[str, ...]] | None  # the labels of columns; None of a Series
    flat: bool  # whether the labels of rows are columns, and its index counts the rows
    plans: tuple[Plan, ...]

    def values(self) -> list[NDArray[Any]]: ...

    def ends(self, level: float, at_once: bool) -> list[Ends]: ...

    def deviations(self) -> list[Any]: ...

    def noise(self) -> list[NDArray[Any]]: ...

    def calculation(self, column: int, rows: Places) -> Calculation:
        """How some rows of a column came to be."""

    def cells(self, columns: Sequence[int]) -> tuple[Cell, ...]:
        """The outputs that columns show, or are made of."""


class Labelled:
    """The labels that a receipt has."""

    def __init__(self, receipt: dict[str, Any]):
        self.rows = _rows(receipt["rows"])
        self.names: list[Any] = receipt["names"]
        self.flat: bool = bool(receipt.get("skip"))
        labels = receipt["columns"]
        self.columns = None if labels is None else [tuple(label) for label in labels]
        if len(set(map(len, self.columns or ()))) > 1:  # labels with parts beside others
            self.rows = []


class Released(Labelled):
    """A release and where its numbers stand."""

    def __init__(self, receipt: dict[str, Any], text: str):
        super().__init__(receipt)
        self.receipt, self.text = receipt, text
        self.layout, self.plan, self.raw, self.part = contents(receipt)
        order = receipt.get("order")
        self.order = None if order is None else unpack(order)[0][0]
        self.plans: tuple[Plan, ...] = (self.plan,)

    def _ordered(self, column: Any) -> Any:
        return column if self.order is None else column[self.order]

    @cached_property
    def _values(self) -> list[NDArray[Any]]:
        columns = self.layout.values(self.plan, self.raw)
        return [self._ordered(c if c.dtype != object else c.astype(np.float64)) for c in columns]

    def values(self) -> list[NDArray[Any]]:
        return self._values

    def noise(self) -> list[NDArray[Any]]:
        """Which numbers are noise, column by column."""
        columns = self.layout.values(self.plan, self.raw)
        flags = noise_in(self.layout, self.plan, self.raw, self.part, columns)
        return [self._ordered(flag) for flag in flags]

    def ends(self, level: float, at_once: bool) -> list[Ends]:
        size = sum(map(len, self._values))
        return [
            (self._ordered(low), self._ordered(high))
            for low, high in ends_of(self.plan, self.raw, self.layout, level, at_once, size)
        ]

    def deviations(self) -> list[Any]:
        found = deviations_of(self.plan, self.raw, self.layout, len(self._values))
        return [self._ordered(one) if isinstance(one, np.ndarray) else one for one in found]

    def calculation(self, column: int, rows: Places) -> Calculation:
        return Calculation((Excerpt(self, column, rows),), (("leaf", 0),))

    def cells(self, columns: Sequence[int]) -> tuple[Cell, ...]:
        alone = not self.layout.computed and len(self._values) == len(self.plan.cells)
        return tuple(self.plan.cells[j] for j in columns) if alone else self.plan.cells


def ends_of(
    plan: Plan,
    raw: tuple[Any, ...],
    layout: Layout,
    level: float,
    at_once: bool,
    size: int,
    about: About = NOISE,
) -> list[Ends]:
    """The ends of the intervals of each column; with ``at_once`` at the level at which all ``size``
    numbers hold together."""
    if at_once:
        # Margins and proportions are numbers beyond those of the groups, so there it is the union
        # bound over what is shown.
        many = 1 - (1 - level) / max(size, 1)
        joint = layout.computed or about.population
        level = min(many, 1 - 2.0**-53) if joint else plan.level_each(level)
    return layout.interval(plan, raw, level, about)


def deviations_of(plan: Plan, raw: tuple[Any, ...], layout: Layout, columns: int) -> list[Any]:
    """The standard deviation of the noise in each column, a number or one for each row; None where
    none can be stated."""
    found = layout.deviations(plan, raw)
    return [None] * columns if found is None else found


@dataclass(frozen=True, slots=True, eq=False)
class Excerpt:
    """Some rows of a column of a release, a leaf of calculations; a row that is not there, -1, is
    NaN."""

    origin: Released
    column: int
    rows: Places

    def _number(self) -> Any:
        return gathered(self.origin.values()[self.column], self.rows)

    def _ends(self, level: float, at_once: bool = False) -> Ends:
        low, high = self.origin.ends(level, at_once)[self.column]
        return gathered(low, self.rows), gathered(high, self.rows)

    def _deviation(self) -> Any:
        deviation = self.origin.deviations()[self.column]
        return gathered(deviation, self.rows) if isinstance(deviation, np.ndarray) else deviation

    def _picked(self, rows: Places) -> Excerpt:
        return Excerpt(self.origin, self.column, np.where(rows < 0, -1, self.rows[rows]))

    def _same(self, other: Any) -> bool:
        # By identity: of two releases that came out alike each has noise of its own.
        return (
            isinstance(other, Excerpt)
            and other.origin.text is self.origin.text
            and other.column == self.column
            and np.array_equal(other.rows, self.rows)
        )


def gathered(column: Any, rows: Places) -> Any:
    """The rows of a column, NaN where there is none."""
    missing = rows < 0
    if not missing.any():
        return np.asarray(column)[rows]
    found = np.full(rows.shape, np.nan)
    found[~missing] = np.asarray(column, dtype=np.float64)[rows[~missing]]
    return found


# Matching -------------------------------------------------------------------------------------------------------------


class _Axis(NamedTuple):
    """A level of the labels of an answer: its name, a text for each row or each column, and which
    of the two."""

    name: Any
    texts: list[str]
    of_rows: bool


class Kept:
    """An answer whose cells are known: which row and column of its origin each is, and the rounding
    of each column."""

    def __init__(self, origin: Origin, answer: pd.Series[Any] | pd.DataFrame):
        self.origin, self.answer = origin, answer
        if not origin.rows:
            raise BadValue(CHANGED)
        if any(cell.duration for plan in origin.plans for cell in plan.cells):
            raise BadValue(DURATIONS)
        frame = answer.to_frame() if isinstance(answer, pd.Series) else answer
        self.keys = _key_columns(origin, frame)
        values = frame.iloc[:, self.keys :]
        # A row of the origin for each cell of the answer, and a column; -1 where it has none.
        self.rows, self.columns = _places(origin, frame, self.keys)
        seen = self.rows * max(len(origin.values()), 1) + self.columns
        here = (self.rows >= 0) & (self.columns >= 0)
        if (here.size and not here.any()) or len(np.unique(seen[here])) < np.count_nonzero(here):
            raise BadValue(CHANGED)
        self.rows = np.where(here, self.rows, -1)
        self.decimals = _roundings(origin, values, self.rows, self.columns)

    def _each(self, of_column: Sequence[Any]) -> list[Any]:
        """The cells of each column of the answer, from one array for each column of the origin."""
        found = []
        for rows, columns in zip(self.rows.T, self.columns.T, strict=True):
            cells = np.full(len(rows), np.nan)
            for j in np.unique(columns[rows >= 0]):
                here = (columns == j) & (rows >= 0)
                cells[here] = np.asarray(of_column[j], dtype=np.float64)[rows[here]]
            found.append(cells)
        return found

    def flags(self, of_column: Sequence[Any]) -> list[Any]:
        """The flags of each column of the answer, from those of its origin; a row that is not there
        has none."""
        return [column == 1.0 for column in self._each(of_column)]

    def ends(self, level: float, at_once: bool) -> list[Ends]:
        """The ends of the intervals of each column of numbers."""
        pairs = []
        for j, pair in enumerate(self.origin.ends(level, at_once)):
            decimals = self.decimals.get(j)
            doubles = tuple(np.asarray(end, dtype=np.float64) for end in pair)
            pairs.append(doubles if decimals is None else outward(doubles, decimals))  # type: ignore[arg-type]  # a pair
        sides = (self._each([pair[side] for pair in pairs]) for side in (0, 1))
        return list(zip(*sides, strict=True))

    def deviations(self) -> list[Any]:
        """The standard deviation of the noise in each column; NaN where none can be stated, and
        None where nowhere."""
        size = len(self.origin.rows[0]) if self.origin.rows else 1
        known = []
        for j, deviation in enumerate(self.origin.deviations()):
            known.append(
                np.full(size, np.nan)
                if deviation is None or j in self.decimals
                else np.zeros(size) + deviation
            )
        found = self._each(known)
        return [None if np.isnan(column).all() else column for column in found]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The outputs that it still shows."""
        columns = (
            self.columns[self.rows >= 0] if self.rows.size else np.arange(len(self.origin.values()))
        )
        return self.origin.cells([int(j) for j in np.unique(columns)])

    def calculation(self, place: int) -> Calculation:
        """How a column of the answer came to be. Refused where its cells come from several
        columns."""
        rows, columns = self.rows[:, place], self.columns[:, place]
        known = np.unique(columns[rows >= 0])
        if len(known) > 1:
            raise BadValue(
                "the rows of this answer were columns when it was released, and arithmetic goes by columns. Compute "
                "first and turn the result: (answer.dp / 1000).T."
            )
        column = int(known[0]) if len(known) else 0
        made = self.origin.calculation(column, rows)
        decimals = self.decimals.get(column)
        return made if decimals is None else made.rounded(decimals)


def _key_columns(origin: Origin, frame: pd.DataFrame) -> int:
    """How many of the first columns are labels of rows that stood in the index: `reset_index` puts
    them there."""
    if frame.columns.nlevels > 1 and not all(isinstance(label, tuple) for label in frame.columns):
        return 0
    named = [str(name) for name in origin.names if name is not None]
    unnamed = ["index", *(f"level_{i}" for i in range(len(origin.names)))]
    wanted = {*named, *(unnamed if None in origin.names else ())}
    wanted -= set(map(str, [*frame.index.names, *frame.columns.names]))
    own = {label[0] for label in origin.columns or () if len(label) == 1}
    count = 0
    for label in frame.columns:
        text = str(label[0]) if isinstance(label, tuple) and not any(label[1:]) else str(label)
        if text not in wanted or text in own:
            break
        count += 1
    return count if count < frame.shape[1] else 0


def _places(origin: Origin, frame: pd.DataFrame, keys: int) -> tuple[Places, Places]:
    """The row and the column of the origin that each cell has by its labels; -1 where there is
    none."""
    values = frame.iloc[:, keys:]
    axes = []
    for i in range(keys):
        label = frame.columns[i]
        key = str(label[0] if isinstance(label, tuple) else label)
        axes.append(_Axis(key, texts_of(frame.iloc[:, i].array), True))
    known = {str(name) for name in origin.names}
    for i, name in enumerate(values.index.names):
        if not keys or (
            name is not None and str(name) in known
        ):  # beside keys an index only counts the rows
            axes.append(_Axis(name, texts_of(values.index.get_level_values(i)), True))
    axes += [
        _Axis(name, texts_of(values.columns.get_level_values(i)), False)
        for i, name in enumerate(values.columns.names)
    ]
    labels_of_rows, names_of_rows = origin.rows, origin.names
    if origin.flat and not keys and values.index.names == [None]:  # a column without its keys
        labels_of_rows, names_of_rows = (
            [np.array(list(map(str, range(len(origin.rows[0])))), dtype=object)],
            [None],
        )
    row_levels = [pd.Index(level).unique() for level in labels_of_rows]
    labels = origin.columns or [()]
    column_levels = [
        pd.Index([label[i] for label in labels]).unique() for i in range(len(labels[0]))
    ]
    levels = row_levels + column_levels
    names = [*names_of_rows, *[None] * len(column_levels)]
    assigned, loose = _assigned(axes, levels, names, len(row_levels))
    shape = values.shape
    codes: list[Any] = []
    for place, level in enumerate(levels):
        axis = assigned.get(place)
        if axis is _NEW:
            codes.append(None)
        elif axis is not None:
            code = level.get_indexer(pd.Index(axis.texts, dtype=object))
            codes.append(code[:, None] if axis.of_rows else code[None, :])
        elif len(level) == 1:
            codes.append(np.zeros((1, 1), dtype=np.intp))
        else:
            codes.append(None)
    rows = _combined(codes[: len(row_levels)], row_levels, labels_of_rows, shape)
    by_label = codes[len(row_levels) :]
    if any(code is None for code in by_label):  # labels that are new, or of which a level is gone
        columns = np.full(shape, -1, dtype=np.intp)
    else:
        texts = [[label[i] for label in labels] for i in range(len(labels[0]))]
        columns = _combined(by_label, column_levels, texts, shape)
    # Where all else says which cell it is, a single label more says nothing: a Series that became a
    # column has any name.
    complete = len(assigned) == len(levels)
    if any(not complete or len(set(axis.texts)) > 1 for axis in loose):
        raise BadValue(CHANGED)
    if origin.columns is not None and (columns < 0).any():
        columns = _renamed(origin, values, rows, columns)
    return rows, columns


def _assigned(
    axes: Sequence[_Axis], levels: Sequence[pd.Index[Any]], names: Sequence[Any], rows: int
) -> tuple[dict[int, _Axis], list[_Axis]]:
    """Which level of the labels of the answer is which of the origin: by name, or else by its
    labels; and those that are none."""
    assigned: dict[int, _Axis] = {}
    left = []
    for axis in axes:
        fits = [
            i for i, name in enumerate(names) if name is not None and str(name) == str(axis.name)
        ]
        if axis.name is not None and len(fits) == 1 and fits[0] not in assigned:
            assigned[fits[0]] = axis
        else:
            left.append(axis)
    loose = []
    for axis in left:
        fits = [
            i
            for i, level in enumerate(levels)
            if i not in assigned and set(axis.texts) <= set(level)
        ]
        fits.sort(key=lambda i: (i < rows) != axis.of_rows)
        if fits:
            assigned[fits[0]] = axis
        else:
            loose.append(axis)
    # New rows, which `reindex` adds.
    free = [i for i in range(rows) if i not in assigned]
    added = [axis for axis in loose if axis.of_rows]
    if len(free) == len(added) == 1:
        assigned[free[0]] = added[0]
        loose.remove(added[0])
    # New names of columns: some of them, or all of those that had several levels.
    free = [i for i in range(rows, len(levels)) if i not in assigned]
    if len(loose) == 1 and not loose[0].of_rows and free and len(free) == len(levels) - rows:
        (renamed,), loose = loose, []
        assigned |= dict.fromkeys(free, _NEW) if len(free) > 1 else {free[0]: renamed}
    return assigned, loose


_NEW = _Axis(None, [], False)  # stands for a level of columns whose labels have all changed


def _combined(
    codes: Sequence[Any],
    levels: Sequence[pd.Index[Any]],
    texts: Sequence[Any],
    shape: tuple[int, ...],
) -> Places:
    """The place of each combination of codes among those of the origin."""
    if any(code is None for code in codes):
        raise BadValue(CHANGED)
    wanted: Any = np.zeros(shape, dtype=np.int64)
    own: Any = np.zeros(len(texts[0]) if len(texts) else 1, dtype=np.int64)
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


def _renamed(origin: Origin, values: pd.DataFrame, rows: Places, columns: Places) -> Places:
    """The columns of the origin, where labels are new: that one column which has these values and
    stands nowhere else."""
    columns = columns.copy()
    taken = {int(j) for j in np.unique(columns) if j >= 0}
    for place in range(columns.shape[1]):
        if (columns[:, place] >= 0).any():
            continue
        numbers = _numbers(values.iloc[:, place])
        if np.isnan(numbers).all():
            continue  # a column that `reindex` has added
        fits = [
            j
            for j, column in enumerate(origin.values())
            if j not in taken
            and (
                _alike(numbers, gathered(column, rows[:, place])).all()
                or _decimals(numbers, gathered(column, rows[:, place]))
            )
        ]
        if len(fits) != 1:
            raise BadValue(CHANGED)
        columns[:, place] = fits[0]
    return columns


def _roundings(
    origin: Origin, values: pd.DataFrame, rows: Places, columns: Places
) -> dict[int, int]:
    """The decimals that columns of the origin were rounded to, where they were. Refused where a
    number is another one."""
    numbers = [_numbers(values.iloc[:, place]) for place in range(values.shape[1])]
    shown = np.stack(numbers, axis=1) if numbers else np.empty(values.shape)
    if not np.isnan(shown[rows < 0].astype(float)).all():
        raise BadValue(CHANGED)
    fits, moved = {}, {}
    for j, column in enumerate(origin.values()):
        here = (columns == j) & (rows >= 0)
        given, released = shown[here], np.asarray(column)[rows[here]]
        alike = _alike(given, released)
        if given.dtype.kind == "f" and (np.isnan(given) & ~alike).any():
            # Noise, which some sessions leave out.
            alike |= np.isnan(given) & np.asarray(origin.noise()[j], dtype=bool)[rows[here]]
        if not alike.all():
            fits[j] = _decimals(given, released)
            moved[j] = np.count_nonzero(~alike)
    decimals = {}
    for j, own in fits.items():
        # One edited cell is never taken for a rounding: that moves another cell, here or beside, to
        # as many decimals.
        others = set().union(*(fits[k] for k in fits if k != j)) if moved[j] < 2 else own
        if not own & others:
            raise BadValue(CHANGED)
        decimals[j] = min(own & others)
    return decimals


def _decimals(given: Any, released: Any) -> set[int]:
    """The numbers of decimals to which these are the released numbers rounded."""
    doubles = released.astype(float)
    return {d for d in range(-15, 16) if _alike(given, np.round(doubles, d)).all()}


def _numbers(column: pd.Series[Any]) -> NDArray[Any]:
    """The cells of a column as numbers; refused where they are none, such as what a comparison
    gave."""
    if not pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        raise BadValue(CHANGED)
    if column.dtype.kind == "c":
        raise BadValue(CHANGED)
    if isinstance(column.dtype, np.dtype):
        return column.to_numpy()
    whole = column.dtype.kind in "iu" and not column.isna().any()
    return column.to_numpy(dtype=np.int64 if whole else np.float64, na_value=0 if whole else np.nan)


def _alike(one: Any, two: Any) -> Any:
    """Where numbers are the same, to the last bit; NaN is NaN."""
    if one.dtype.kind == "f" and one.dtype.itemsize < 8:
        one = one.astype(np.float64)
    if {one.dtype.kind, two.dtype.kind} <= set("iu"):
        return one == two
    one, two = one.astype(np.float64), two.astype(np.float64)
    return (one == two) | (np.isnan(one) & np.isnan(two))
