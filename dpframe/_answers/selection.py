"""Numbers of an answer by their labels: ``answer.dp["CA"]`` is a number with its interval."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dpframe import _pandas
from dpframe._answers.computed import UnchangedAnswer
from dpframe._answers.estimate import DerivedFloat, DerivedInt, Estimate, scalar
from dpframe._answers.matching import MatchedAnswer, ReleasedTable
from dpframe._answers.receipts import FIXED, to_texts
from dpframe._answers.released import Released
from dpframe._errors import UnknownColumn
from dpframe._plans.aggregates import AGGREGATES
from dpframe._plans.worth import NoiseRule
from dpframe._questions.question import Release
from dpframe._types import Index, PandasAnswer

_SHOWN = 8  # labels that a message lists


class AnswerSelection(ABC):
    """Labels of ``answer.dp``: single numbers keep their intervals, and parts are answers."""

    _answer: PandasAnswer
    _numbers: UnchangedAnswer | MatchedAnswer

    @abstractmethod
    def _match(self) -> MatchedAnswer:
        """Return which released number each cell is."""

    def __getitem__(self, label: Any) -> Any:
        """Return what pandas selects by this label: a number with its interval, or a part.

        >>> df = pd.DataFrame({"state": ["CA", "NY"] * 500})
        >>> p = df.dp.open(100, keys={"state": ["CA", "NY"]})
        >>> visits = p.groupby("state").size(epsilon=10)
        >>> visits.dp["CA"]
        500 ± 0
        >>> visits.dp["TX"]
        Traceback (most recent call last):
        ...
        dpframe.UnknownColumn: no label 'TX' in this answer. Labels: 'CA', 'NY'.
        """
        return self._select(lambda answer: answer[label], label)

    @property
    def loc(self) -> AnswerLocator:
        """The numbers by row and column, as `loc` of pandas: ``answer.dp.loc["CA", "mean"]``."""
        return AnswerLocator(self._select)

    def items(self) -> Iterator[tuple[Hashable, Any]]:
        """Yield the labels of a Series with numbers that have intervals, or columns of a table."""
        answer = self._answer
        labels = answer.index if isinstance(answer, pd.Series) else answer.columns
        for place, label in enumerate(labels):
            if isinstance(answer, pd.Series):
                yield label, self._take_number(place, 0)
            else:
                yield label, answer.iloc[:, place]

    def __iter__(self) -> Iterator[Any]:
        """Yield the numbers of a Series with their intervals, or the labels of a table's columns."""
        single = isinstance(self._answer, pd.Series)
        return (value if single else label for label, value in self.items())

    def __contains__(self, label: Hashable) -> bool:
        return label in self._answer

    def _select(self, find: Callable[[Any], Any], label: Any) -> Any:
        """Return the number with its interval, or the part of the answer, that ``find`` selects."""
        answer = self._answer
        try:
            found = find(answer)
        except KeyError:
            raise UnknownColumn(_describe_unknown(answer, label)) from None
        places: PandasAnswer
        if isinstance(answer, pd.Series):
            width, places = 1, pd.Series(np.arange(answer.size), index=answer.index)
        else:
            width = max(answer.shape[1], 1)
            cells = np.arange(answer.size).reshape(answer.shape)
            places = pd.DataFrame(cells, index=answer.index, columns=answer.columns)
        if not isinstance(found, pd.Series | pd.DataFrame):
            return self._take_number(*divmod(int(find(places)), width))
        rows, columns = np.divmod(find(places).to_numpy().ravel(), width)
        fixed = _list_fixed(answer.index.take(rows))
        if isinstance(answer, pd.DataFrame):
            fixed += _list_fixed(answer.columns.take(columns))
        found.attrs = {**found.attrs, FIXED: [*found.attrs.get(FIXED, []), *fixed]}
        return found

    def _take_number(self, row: int, column: int) -> Any:
        """Return a cell of the answer with its interval, or as it is if it is no released number."""
        answer, numbers = self._answer, self._numbers
        value: Any = answer.iloc[row] if isinstance(answer, pd.Series) else answer.iloc[row, column]
        column -= numbers.keys
        if column < 0 or isinstance(value, str):
            return value
        number = self._take_released(row, column)
        if number is None:  # it is made of several, or nothing was released here
            matched = self._match()
            source_row, place = (int(side[row, column]) for side in (matched.rows, matched.columns))
            if source_row < 0:
                return value
            steps = matched.source.calculate_rows(place, np.array(source_row))
            whole = isinstance(value, int | np.integer)
            return DerivedInt(int(value), steps) if whole else DerivedFloat(float(value), steps)
        return number._blank() if _pandas.isna(value) else number

    def _take_released(self, row: int, column: int) -> Estimate | None:
        """Return the number of a release at a place of the answer; None if it is not a single
        one."""
        numbers = self._numbers
        if isinstance(numbers, UnchangedAnswer):
            place = column if numbers.column is None else numbers.column
            return _make_estimate(numbers.released, row, place)
        row, column = int(numbers.rows[row, column]), int(numbers.columns[row, column])
        released = numbers.source
        if row < 0 or not isinstance(released, ReleasedTable):
            return None
        return _make_estimate(released, row, column)


class AnswerLocator:
    """``answer.dp.loc``: the numbers of an answer by the labels of rows and columns."""

    def __init__(self, select: Callable[[Callable[[Any], Any], Any], Any]):
        """Make the locator. ``select`` is given a way to choose, and the label in messages."""
        self._select = select

    def __getitem__(self, label: Any) -> Any:
        """Return a number with its interval, or a part of the answer."""
        return self._select(lambda answer: answer.loc[label], label)


def _make_estimate(released: Released, row: int, column: int) -> Estimate | None:
    """Return a number of a release by itself; None if it is made of several groups or outputs."""
    plan, groups = released.plan, int(np.shape(released.raw[0])[-1])
    if released.order is not None:
        row = int(released.order[row])
    found = released.layout.locate(plan, row, column)
    if found is None:
        return None
    group, output = found
    cell = plan.cells[output]
    # A choice is judged by the count beside it.
    others = tuple(one for one in plan.cells if one is not cell)
    cells = (cell, *others) if AGGREGATES[cell.aggregate].selects else (cell,)
    raw = tuple(
        part[..., group : group + 1] if np.shape(part)[-1] == groups else part
        for part in released.raw
    )
    return scalar(Release(replace(plan, cells=cells), raw, NoiseRule(released.part)))


def _list_fixed(labels: Index) -> list[list[str | None]]:
    """Return the name and the text of each level that has the same label everywhere."""
    levels = [labels.get_level_values(i) for i in range(labels.nlevels)]
    return [
        [None if level.name is None else str(level.name), to_texts(level[:1])[0]]
        for level in levels
        if len(level) and len(level.unique()) == 1
    ]


def _describe_unknown(answer: PandasAnswer, label: Any) -> str:
    """Return the message for a label that an answer does not have."""
    axes: list[Index] = [answer.index]
    if isinstance(answer, pd.DataFrame):
        axes.append(answer.columns)
    texts = [
        ", ".join(map(repr, axis[:_SHOWN].tolist())) + ", and others" * (len(axis) > _SHOWN)
        for axis in axes
    ]
    names = ["Labels"] if len(axes) == 1 else ["Rows", "columns"]
    listed = "; ".join(f"{name}: {text}" for name, text in zip(names, texts, strict=True))
    return f"no label {label!r} in this answer. {listed}."
