"""Verbs of ``answer.dp`` that work across rows: sums, means, windows, groups, and new shapes.

Each gives a number or an answer again, with intervals of its own (docs/how-to/work-with-answers.md).
Rows stand in the order in which the answer has them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe._answers.arguments import explain_arguments
from dpframe._answers.arithmetic import Calculation, start_from_number
from dpframe._answers.computed import read_answer
from dpframe._answers.estimate import Estimate, make_derived
from dpframe._answers.marks import AnswerFrame, AnswerSeries
from dpframe._answers.matching import MatchedAnswer
from dpframe._answers.operators import TableOperators, make_answer, map_columns, match_cells
from dpframe._answers.receipts import ANSWER
from dpframe._answers.rowsteps import Kind, fold_ranges, pick
from dpframe._errors import BadType, BadValue, NotOffered
from dpframe._plans.worth import LEVEL
from dpframe._types import Array, Bools, Index, PandasAnswer, Places


class TableVerbs(TableOperators):
    """Verbs of an answer across its rows. Each of them keeps intervals."""

    @property
    @abstractmethod
    def _pandas(self) -> PandasAnswer:
        """The answer as pandas has it."""

    def sum(self, axis: int = 0) -> Any:
        """Return the sum of the rows: a number with an interval, or one for each column of a
        table.

        With ``axis=1`` add the columns of a table, row by row. Missing rows are left out. For the
        sum of the values behind each mean see `total`.

        >>> df = pd.DataFrame({"state": ["CA", "NY", "CA"] * 100})
        >>> p = df.dp.open(100, keys={"state": ["CA", "NY"]})
        >>> p.groupby("state").size(epsilon=60).dp.sum()
        300 ± 0
        """
        return _reduce(self, axis, mean=False)

    def mean(self, axis: int = 0) -> Any:
        """Return the mean of the rows, each of them counting once; as `sum` has it.

        It is the mean of the numbers that are shown, and not that of the people behind them.
        """
        return _reduce(self, axis, mean=True)

    def cumsum(self) -> PandasAnswer:
        """Return running sums of the rows. Each has the noises of all rows before it."""
        return _accumulate(self, "sum")

    def cumprod(self) -> PandasAnswer:
        """Return running products of the rows, such as a survival curve.

        Its interval follows the first order of the noises, and bounds the rest.
        """
        return _accumulate(self, "product")

    def diff(self, periods: int = 1) -> PandasAnswer:
        """Return the change of each row from the row ``periods`` before it."""
        shift = _check_periods("diff", periods)
        return map_columns(self, lambda one: one.append("-", _shift(one, shift)))

    def pct_change(self, periods: int = 1) -> PandasAnswer:
        """Return the change of each row as a share of the row ``periods`` before it."""
        shift = _check_periods("pct_change", periods)
        return map_columns(
            self,
            lambda one: one.append("/", _shift(one, shift)).append("-", start_from_number(1)),
        )

    def rolling(
        self, window: int, min_periods: int | None = None, center: bool = False
    ) -> RollingAnswer:
        """Return windows of ``window`` rows, for ``.sum()`` and ``.mean()``.

        A window with fewer than ``min_periods`` rows gives NaN, as in pandas. By default that is
        each window that is not full.
        """
        if not isinstance(window, int | np.integer) or isinstance(window, bool) or window < 1:
            raise BadType(
                f"rolling takes a number of rows, and this is {window!r}: write "
                "answer.dp.rolling(7).mean()."
            )
        least = int(window) if min_periods is None else _check_periods("rolling", min_periods)
        if not 0 <= least <= window:
            raise BadValue(f"min_periods is a number of rows of the window: 0 to {window}.")
        return RollingAnswer(self, int(window), least, _validate.flag(center, "center"))

    def groupby(self, by: Any = None, *, level: Any = None, sort: bool = True) -> GroupedAnswer:
        """Return groups of rows by levels of the index, for ``.sum()`` and ``.mean()``.

        ``level`` names a level of the index, or several. ``by`` may name them too.

        >>> df = pd.DataFrame({"state": ["CA", "NY"] * 50, "sex": ["f", "m", "m", "m"] * 25})
        >>> p = df.dp.open(100, keys={"state": ["CA", "NY"], "sex": ["f", "m"]})
        >>> counts = p.groupby(["state", "sex"]).size(epsilon=60)
        >>> counts.dp.groupby(level="state").sum().to_dict()
        {'CA': 50, 'NY': 50}
        """
        answer = self._pandas
        wanted = by if level is None else level
        names = list(answer.index.names)
        each = wanted if isinstance(wanted, list | tuple) else [wanted]
        known = [name for name in names if name is not None]
        if (
            wanted is None
            or (by is not None and level is not None)
            or not all(
                one in names or (isinstance(one, int) and abs(one) < max(len(names), 1))
                for one in each
            )
        ):
            shown = repr(known[0]) if known else "0"
            raise BadValue(
                f"groupby of an answer takes levels of its index, which are {names}: write "
                f"answer.dp.groupby(level={shown}).sum()."
            )
        places = [names.index(one) if one in names else int(one) for one in each]
        return GroupedAnswer(self, places, _validate.flag(sort, "sort"))

    # New shapes and labels ----------------------------------------------------------------------

    @property
    def T(self) -> PandasAnswer:
        """The answer with rows and columns exchanged."""
        return self._reshape("T", lambda answer: answer.T)

    def unstack(self, level: Any = -1) -> PandasAnswer:
        """Return the answer with a level of its index as columns."""
        return self._reshape("unstack", lambda answer: answer.unstack(level))

    def stack(self, level: Any = -1) -> PandasAnswer:
        """Return the answer with its columns as the innermost level of the index."""
        if isinstance(self._pandas, pd.Series):
            raise BadType(
                "stack needs a table, since it turns columns into rows. A Series has unstack()."
            )
        return self._reshape("stack", lambda answer: cast(Any, answer).stack(level))

    def reindex(self, index: Any = None, *, columns: Any = None) -> PandasAnswer:
        """Return the answer with these rows, or these columns; NaN where it has none."""
        words = {"index": index} if columns is None else {"index": index, "columns": columns}
        return self._reshape("reindex", lambda answer: answer.reindex(**words))

    def rename(
        self,
        index: Hashable | Mapping[Any, Hashable] | Callable[[Any], Hashable] = None,
        *,
        columns: Mapping[Any, Hashable] | Callable[[Any], Hashable] | None = None,
    ) -> PandasAnswer:
        """Return the answer with other labels: of rows, of columns, or a name for a Series.

        ``index`` is a mapping or a function, and for a Series also a name.
        """
        answer = self._pandas
        if isinstance(answer, pd.Series):
            if columns is not None:
                raise BadType("a Series has no columns: write answer.dp.rename('name').")
            renamed: PandasAnswer = answer.rename(cast(Any, index))
        else:
            renamed = answer.rename(index=cast(Any, index), columns=cast(Any, columns))
        matched = self._match()
        calculations = [matched.calculate(i) for i in range(matched.rows.shape[1])]
        return make_answer(calculations, renamed, matched.keys)

    def _reshape(self, name: str, make: Callable[[PandasAnswer], PandasAnswer]) -> PandasAnswer:
        """Return the answer in another shape, with its receipt; refuse a shape without labels.

        ``name`` is the verb that the message names.
        """
        answer = self._pandas
        made = make(answer)
        kind: Any = AnswerSeries if isinstance(made, pd.Series) else AnswerFrame
        shown: PandasAnswer = kind(made, copy=False)
        text = answer.attrs[ANSWER]
        shown.attrs = {ANSWER: text}
        try:
            read_answer(shown, text)
        except BadValue:
            raise NotOffered(
                f"{name} leaves numbers here that cannot be told apart by their labels. Take a "
                f"table with intervals first: answer.dp.table()."
            ) from None
        return shown

    # Comparisons --------------------------------------------------------------------------------

    def __gt__(self, other: object) -> PandasAnswer:
        """Return True where the whole 95 % interval is above, False where it is not, and NA where
        the noise does not tell."""
        return _compare(self, other, lambda low, high: (low > 0, high <= 0))

    def __ge__(self, other: object) -> PandasAnswer:
        """Return True where the whole 95 % interval is not below, False where it is, and NA where
        the noise does not tell."""
        return _compare(self, other, lambda low, high: (low >= 0, high < 0))

    def __lt__(self, other: object) -> PandasAnswer:
        """Return True where the whole 95 % interval is below, False where it is not, and NA where
        the noise does not tell."""
        return _compare(self, other, lambda low, high: (high < 0, low >= 0))

    def __le__(self, other: object) -> PandasAnswer:
        """Return True where the whole 95 % interval is not above, False where it is, and NA where
        the noise does not tell."""
        return _compare(self, other, lambda low, high: (high <= 0, low > 0))


def _compare(
    one: TableVerbs, other: object, decide: Callable[[Array, Array], tuple[Bools, Bools]]
) -> PandasAnswer:
    """Return what the interval of a difference says of its sign, in the answer's own shape.

    ``decide`` returns where it is surely so, and where it is surely not, by the ends.
    """
    less = one - other
    matched = read_answer(less, less.attrs[ANSWER])
    columns = []
    for low, high in matched.ends(LEVEL):
        yes, no = decide(np.asarray(low, float), np.asarray(high, float))
        columns.append(pd.arrays.BooleanArray(yes, ~(yes | no)))
    if isinstance(less, pd.Series):
        return pd.Series(columns[0], index=less.index, name=less.name)
    keys = [less.iloc[:, i].array for i in range(matched.keys)]
    table = pd.DataFrame(dict(enumerate([*keys, *columns])), index=less.index)
    table.columns = less.columns
    return table


# Sums over rows ---------------------------------------------------------------------------------


def _reduce(one: TableVerbs, axis: int, mean: bool) -> Any:
    """Return the sum of the rows of an answer, or their mean."""
    matched, answer = match_cells(one), plain_values_of(one)
    if axis not in (0, 1) or (axis == 1 and isinstance(answer, pd.Series)):
        raise BadValue("axis is 0 for a sum of the rows, or 1 for a sum of the columns of a table.")
    width = matched.rows.shape[1]
    if axis == 1:
        return _add_columns(matched, mean)
    sums = [_add_rows(matched, i, mean) for i in range(width)]
    if isinstance(answer, pd.Series):
        return _make_number(sums[0])
    units = np.eye(width, dtype=np.int64)
    whole = sums[0].append("*", start_from_number(units[0]))
    for i in range(1, width):
        whole = whole.append("+", sums[i].append("*", start_from_number(units[i])))
    labels = answer.columns[matched.keys :]
    return make_answer([whole], pd.Series(0, index=labels), 0)


def _add_rows(matched: MatchedAnswer, place: int, mean: bool) -> Calculation:
    """Return the sum of the rows of a column as a calculation, or their mean."""
    order = np.flatnonzero(matched.rows[:, place] >= 0)
    ends = np.array([0]), np.array([len(order)])
    step = fold_ranges("sum", order, *ends, len(matched.rows), alone=True)
    total = matched.calculate(place).append_rows(step)
    return total.append("/", start_from_number(len(order))) if mean else total


def _add_columns(matched: MatchedAnswer, mean: bool) -> PandasAnswer:
    """Return the sums of the columns of a table row by row, or their means."""
    width = matched.rows.shape[1]
    if (matched.rows < 0).any():
        raise BadValue("some cells of this table are missing, so its columns cannot be added.")
    whole = matched.calculate(0)
    for i in range(1, width):
        whole = whole.append("+", matched.calculate(i))
    whole = whole.append("/", start_from_number(width)) if mean else whole
    index = matched.answer.index
    if matched.keys:
        raise BadType("set_index() the columns that are keys first, then .dp.sum(axis=1).")
    return make_answer([whole], pd.Series(0, index=index), 0)


def _make_number(calculation: Calculation) -> Estimate:
    """Return what a calculation with a single result comes to, as a number with an interval."""
    if calculation.too_long:
        raise BadValue(
            "this was computed in too many steps. Compute with the numbers alone: answer.sum()."
        )
    return make_derived(np.asarray(calculation.value()).item(), calculation)


def _accumulate(one: TableVerbs, kind: Kind) -> PandasAnswer:
    """Return running sums or products of the rows, column by column.

    A missing row stays missing, and is left out of those after it.
    """
    matched = match_cells(one)
    columns = []
    for place in range(matched.rows.shape[1]):
        present = matched.rows[:, place] >= 0
        stops = np.cumsum(present).astype(np.intp)
        step = fold_ranges(
            kind, np.flatnonzero(present), np.where(present, 0, -1), stops, len(present)
        )
        columns.append(matched.calculate(place).append_rows(step))
    return make_answer(columns, matched.answer, matched.keys, blank=False)


def _shift(one: Calculation, periods: int) -> Calculation:
    """Return a column moved down by some rows."""
    size = np.size(one.value())
    rows = np.arange(size) - periods
    return one.append_rows(pick(np.where((rows < 0) | (rows >= size), -1, rows), size))


def _check_periods(verb: str, periods: object) -> int:
    """Return a number of rows; refuse anything else."""
    if not isinstance(periods, int | np.integer) or isinstance(periods, bool):
        raise BadType(f"{verb} takes a number of rows, and this is {periods!r}.")
    return int(periods)


def _fold_each(
    one: TableVerbs,
    like: PandasAnswer,
    find: Callable[[Bools], tuple[Places, Places, Places]],
    mean: bool,
) -> PandasAnswer:
    """Return sums of ranges of rows, or their means, column by column.

    ``like`` has the labels of the result. ``find`` is given the flags of the rows that have a
    released number. It returns the order of the rows, and where each range in it starts and stops.
    A start of -1 is a range without a result.
    """
    matched = match_cells(one)
    columns = []
    for place in range(matched.rows.shape[1]):
        present = matched.rows[:, place] >= 0
        order, starts, stops = find(present)
        step = fold_ranges("sum", order, starts, stops, len(present))
        column = matched.calculate(place).append_rows(step)
        if mean:
            sizes = np.where(starts < 0, 1, stops - starts).astype(float)
            sizes = np.where(sizes == 0, np.nan, sizes)
            column = column.append("/", start_from_number(sizes))
        columns.append(column)
    return make_answer(columns, like, matched.keys, blank=False)


def plain_values_of(answer: TableVerbs) -> PandasAnswer:
    """Return an answer as pandas has it."""
    return answer._pandas


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RollingAnswer:
    """Windows of rows of an answer: `sum` and `mean` of each."""

    answer: TableVerbs
    window: int
    least: int
    center: bool

    def __repr__(self) -> str:
        return f"windows of {self.window} rows of an answer; .sum(), .mean()"

    def sum(self) -> PandasAnswer:
        """Return the sum of each window. Windows that overlap share noises."""
        return self._fold(mean=False)

    def mean(self) -> PandasAnswer:
        """Return the mean of each window. Windows that overlap share noises."""
        return self._fold(mean=True)

    def _fold(self, mean: bool) -> PandasAnswer:
        """Return the sums or the means of the windows."""

        def find(present: Bools) -> tuple[Places, Places, Places]:
            """Return the rows that are there, and the range of each window among them."""
            rows = np.arange(len(present))
            after = (self.window - 1) // 2 if self.center else 0
            stops = np.minimum(rows + 1 + after, len(rows))
            starts = np.maximum(rows + 1 + after - self.window, 0)
            before = np.concatenate([[0], np.cumsum(present)])
            first, last = before[starts], before[stops]
            enough = last - first >= self.least
            return np.flatnonzero(present), np.where(enough, first, -1), last

        return _fold_each(self.answer, plain_values_of(self.answer), find, mean)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GroupedAnswer:
    """Groups of rows of an answer by levels of its index: `sum` and `mean` of each."""

    answer: TableVerbs
    levels: Sequence[int]
    sort: bool

    def __repr__(self) -> str:
        return "groups of rows of an answer; .sum(), .mean()"

    def sum(self) -> PandasAnswer:
        """Return the sum of each group, which has the noises of its rows."""
        return self._fold(mean=False)

    def mean(self) -> PandasAnswer:
        """Return the mean of the numbers of each group, each of them counting once."""
        return self._fold(mean=True)

    def _fold(self, mean: bool) -> PandasAnswer:
        """Return the sums or the means of the groups."""
        answer = plain_values_of(self.answer)
        if match_cells(self.answer).keys:
            raise BadType(
                "set_index() the columns that are keys first, then .dp.groupby(level=...)."
            )
        codes, index = _find_groups(answer.index, self.levels, self.sort)

        def find(present: Bools) -> tuple[Places, Places, Places]:
            """Return the rows group by group, and the range of each group among them."""
            places = np.flatnonzero(present & (codes >= 0))
            order = places[np.argsort(codes[places], kind="stable")]
            groups = np.arange(len(index))
            own = codes[order]
            return order, np.searchsorted(own, groups), np.searchsorted(own, groups, side="right")

        like: PandasAnswer = (
            pd.Series(0, index=index, name=answer.name)
            if isinstance(answer, pd.Series)
            else pd.DataFrame(0, index=index, columns=answer.columns)
        )
        return _fold_each(self.answer, like, find, mean)


def _find_groups(index: Index, levels: Sequence[int], sort: bool) -> tuple[Places, Index]:
    """Return the group of each row by levels of the index, and the labels of the groups."""
    rows = pd.Series(np.arange(len(index)), index=index)
    chosen = levels[0] if len(levels) == 1 else list(levels)
    groups = rows.groupby(level=cast(Any, chosen), sort=sort, observed=True)
    return np.asarray(groups.ngroup(), dtype=np.intp), groups.size().index


for _kind in (RollingAnswer, GroupedAnswer):
    explain_arguments(_kind)
