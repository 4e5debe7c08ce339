"""Operators of ``answer.dp``: arithmetic with whole answers, which keeps intervals."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np
import pandas as pd

from dpframe._answers.arithmetic import Calculation, is_number, start_from_number
from dpframe._answers.computed import match_answer, read_source, remember_parts, write_columns
from dpframe._answers.estimate import Estimate
from dpframe._answers.marks import AnswerFrame, AnswerSeries
from dpframe._answers.matching import CHANGED, MatchedAnswer
from dpframe._answers.receipts import ANSWER, digest_index, get_receipt, split_label
from dpframe._errors import BadType, BadValue
from dpframe._session.planned import read_planned
from dpframe._types import Index, Json, PandasAnswer, Places, Series

Combine = Callable[[Calculation, Calculation], Calculation]


class TableOperators(ABC):
    """Arithmetic of ``answer.dp``: with numbers, with other answers and with a number for each row.

    The result is a Series or DataFrame whose ``.dp`` has intervals: each of m released numbers has
    an m-th of the risk.
    """

    @abstractmethod
    def _match(self) -> MatchedAnswer:
        """Return which released number each cell is."""

    def __add__(self, other: object) -> PandasAnswer:
        return _operate("+", self, other)

    def __radd__(self, other: object) -> PandasAnswer:
        return _operate("+", self, other, swapped=True)

    def __sub__(self, other: object) -> PandasAnswer:
        return _operate("-", self, other)

    def __rsub__(self, other: object) -> PandasAnswer:
        return _operate("-", self, other, swapped=True)

    def __mul__(self, other: object) -> PandasAnswer:
        return _operate("*", self, other)

    def __rmul__(self, other: object) -> PandasAnswer:
        return _operate("*", self, other, swapped=True)

    def __truediv__(self, other: object) -> PandasAnswer:
        return _operate("/", self, other)

    def __rtruediv__(self, other: object) -> PandasAnswer:
        return _operate("/", self, other, swapped=True)

    def __neg__(self) -> PandasAnswer:
        return map_columns(self, lambda column: column.append("negative"))

    def __abs__(self) -> PandasAnswer:
        return map_columns(self, lambda column: column.append("absolute"))

    __pandas_priority__ = 10_000  # pandas leaves ``weights * answer.dp`` to this class
    __array_ufunc__ = None  # numpy's numbers and arrays leave the operation to the other side

    def round(self, decimals: int = 0) -> PandasAnswer:
        """Return the answer rounded to some decimals.

        An interval is rounded outward, so it still holds what it held.
        """
        if not isinstance(decimals, int) or isinstance(decimals, bool) or abs(decimals) > 300:
            raise BadType("round takes a whole number of decimals, such as round(1).")
        return map_columns(self, lambda column: column.round(decimals))


def match_cells(answer: TableOperators) -> MatchedAnswer:
    """Return which released number each cell of an answer is."""
    return answer._match()


def map_columns(one: TableOperators, compute: Callable[[Calculation], Calculation]) -> PandasAnswer:
    """Return an answer with a calculation applied to each of its columns, such as a negation."""
    matched = match_cells(one)
    columns = [compute(matched.calculate(i)) for i in range(matched.rows.shape[1])]
    return make_answer(columns, matched.answer, matched.keys)


def _operate(step: str, one: TableOperators, other: object, swapped: bool = False) -> PandasAnswer:
    """Apply an operator to an answer and a number, another answer, or a known number for each row.

    ``step`` is the operator, such as "+". With ``swapped`` the answer is its right operand.
    """

    other = read_planned(other)

    def combine(mine: Calculation, theirs: Calculation) -> Calculation:
        return theirs.append(step, mine) if swapped else mine.append(step, theirs)

    if isinstance(other, Estimate):
        return map_columns(one, lambda column: combine(column, other._calculation()))
    if is_number(other):
        number = _check_number(cast(float, other))
        return map_columns(one, lambda column: combine(column, start_from_number(number)))
    if isinstance(other, TableOperators):
        return _combine_answers(match_cells(one), match_cells(other), combine)
    if isinstance(other, pd.Series | pd.DataFrame):
        text = get_receipt(other, ANSWER)
        if text is not None:
            theirs = _match_operand(step, other, text, swapped)
            return _combine_answers(match_cells(one), theirs, combine)
    matched = match_cells(one)
    known = _read_constants(other, matched.answer)
    if known is None:
        raise BadType(
            "arithmetic with an answer takes numbers, other answers, or known numbers with the "
            "same labels: a Series, a dict, or an array with one for each row."
        )
    return _combine_with_constants(matched, known, combine)


def _match_operand(step: str, other: PandasAnswer, text: str, swapped: bool) -> MatchedAnswer:
    """Return which released number each cell of an operand is; say which operand is refused.

    ``step`` is the operator, and with ``swapped`` the operand is on its left.
    """
    try:
        return match_answer(other, text)
    except BadValue as reason:
        if reason.args != (CHANGED,):
            raise
        side = "left" if swapped else "right"
        name = getattr(other, "name", None)
        names = f", {name!r}," if name is not None else ""
        asked = {plan.question: None for plan in read_source(text).plans}
        raise BadValue(
            f"the operand on the {side} of {step}{names} was computed by pandas from the answer to "
            f"{'; '.join(asked)}, so its numbers are no longer those that were released. Compute it "
            "after .dp, such as n.dp.cumsum() or total - n.dp, and then divide."
        ) from None


def _read_constants(other: object, answer: PandasAnswer) -> Series | None:
    """Return known numbers for the rows of an answer as a Series; None for anything else.

    Numbers by the labels of one level of the rows stand in each row with that label.
    """
    if isinstance(other, Mapping):
        other = pd.Series(dict(other))
        if answer.index.nlevels == 1:
            other.index.name = answer.index.name
    if isinstance(other, np.ndarray | list | tuple):
        array = np.asarray(other)
        if array.ndim != 1 or array.dtype.kind not in "iuf":
            return None
        if len(array) != len(answer):
            raise BadValue(
                f"these are {len(array)} known numbers, and the answer has {len(answer)} rows: one "
                "for each row, or a Series with the labels of the rows."
            )
        return pd.Series(array, index=answer.index)
    if not isinstance(other, pd.Series):
        return None
    if answer.index.nlevels > 1 and other.index.nlevels == 1:
        labels = _find_level(answer.index, other.index)
        if not other.index.is_unique:
            raise BadValue("known numbers need one for each label: some labels stand there twice.")
        return pd.Series(other.reindex(labels).array, index=answer.index)
    return other


def _find_level(index: Index, labels: Index) -> Index:
    """Return, for each row of an index of several levels, its label in the level that is meant.

    That is the level of the same name, or the only one with all its labels among ``labels``.
    """
    levels = [index.get_level_values(i) for i in range(index.nlevels)]
    if labels.name is not None and labels.name in index.names:
        return levels[index.names.index(labels.name)]
    fitting = [level for level in levels if level.isin(labels).all()]
    if len(fitting) != 1:
        names = " or ".join(f"weights.rename_axis({name!r})" for name in index.names)
        raise BadValue(
            f"these known numbers could be of {'several' if fitting else 'none'} of the levels of the "
            f"answer's rows. Name the level, with a number for each of its labels: {names}."
        )
    return fitting[0]


def _check_number(number: float) -> float:
    """Return a known number as Python's own; a whole number stays whole if a double holds it."""
    if not abs(number) <= sys.float_info.max:
        raise BadValue("arithmetic with an answer needs a finite number.")
    whole = isinstance(number, int | np.integer) and abs(int(number)) <= 2**53
    return int(number) if whole else float(number)


def _combine_answers(one: MatchedAnswer, two: MatchedAnswer, combine: Combine) -> PandasAnswer:
    """Return two answers combined by an operator, row by row, by the labels of the rows.

    ``combine`` makes the calculation of a column from those of the operands.
    """
    mine, theirs = one.answer, two.answer
    if isinstance(mine, pd.Series) is not isinstance(theirs, pd.Series):
        raise BadType(
            "a Series and a DataFrame have no common labels: take a column, as in "
            "table['n'].dp / counts.dp."
        )
    if one.keys or two.keys:
        raise BadType(
            "two answers meet by their index: set_index() the columns that are keys, then "
            ".dp / .dp."
        )
    rows, index = _align_rows(mine, theirs)
    if isinstance(mine, pd.Series) and isinstance(theirs, pd.Series):
        name = mine.name if mine.name == theirs.name else None
        column = combine(one.calculate(0).pick_rows(rows[0]), two.calculate(0).pick_rows(rows[1]))
        return make_answer([column], pd.Series(0, index=index, name=name), 0)
    assert isinstance(mine, pd.DataFrame)
    assert isinstance(theirs, pd.DataFrame)
    if set(mine.columns) != set(theirs.columns) or not mine.columns.is_unique:
        raise BadType(
            "these tables have different columns: take those that belong together, as in "
            "a['n'].dp / b['people'].dp."
        )
    places = theirs.columns.get_indexer(mine.columns)
    columns = [
        combine(one.calculate(i).pick_rows(rows[0]), two.calculate(int(place)).pick_rows(rows[1]))
        for i, place in enumerate(places)
    ]
    return make_answer(columns, pd.DataFrame(0, index=index, columns=mine.columns), 0)


def _combine_with_constants(one: MatchedAnswer, numbers: Series, combine: Combine) -> PandasAnswer:
    """Return an answer combined with a known number for each row, by the labels of the rows.

    ``combine`` makes the calculation of a column from those of the operands.
    """
    if (
        one.keys
        or not pd.api.types.is_numeric_dtype(numbers.dtype)
        or pd.api.types.is_bool_dtype(numbers.dtype)
    ):
        raise BadType(
            "known numbers are a Series of numbers whose index has the labels of the answer's "
            "rows, which are its index."
        )
    missing = [label for label in one.answer.index if label not in numbers.index]
    if missing:
        raise BadValue(
            f"known numbers need one for each row of the answer, by the same labels, and "
            f"{missing[0]!r} is missing. To count it as 0, and all other labels that are missing: "
            "weights.reindex(answer.index, fill_value=0)."
        )
    extra = [label for label in numbers.index if label not in one.answer.index]
    if extra:
        raise BadValue(
            f"known numbers need the labels of the answer's rows, and {extra[0]!r} is not one of "
            "them: weights.reindex(answer.index)."
        )
    rows, index = _align_rows(one.answer, numbers)
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)[rows[1]]
    if not np.isfinite(values).all():
        label = numbers.index[rows[1]][int(np.argmin(np.isfinite(values)))]
        raise BadValue(
            f"known numbers have to be finite, and that of {label!r} is not: weights.fillna(0)."
        )
    columns = [
        combine(one.calculate(i).pick_rows(rows[0]), start_from_number(values))
        for i in range(one.rows.shape[1])
    ]
    answer = one.answer.iloc[rows[0]]
    return make_answer(columns, answer.set_axis(index), 0)


def _align_rows(one: PandasAnswer, two: PandasAnswer) -> tuple[list[Places], Index]:
    """Return the rows of two answers that have the same labels, and their common index.

    They are positions, as pandas aligns the two. A missing row is -1.
    """
    try:
        pair = pd.Series(np.arange(len(one)), index=one.index).align(
            pd.Series(np.arange(len(two)), index=two.index)
        )
    except (ValueError, TypeError):
        raise BadValue(
            "the rows of these answers cannot be put together by their labels: some labels stand "
            "there twice, or are of another kind."
        ) from None
    rows = [side.fillna(-1).to_numpy().astype(np.intp) for side in pair]
    return rows, pair[0].index


def make_answer(
    columns: Sequence[Calculation], like: PandasAnswer, keys: int, blank: bool = True
) -> PandasAnswer:
    """Return computed columns as a Series or DataFrame, with a receipt that says how.

    It has the labels of the answer ``like``, whose first ``keys`` columns are labels of rows. With
    ``blank`` a number stays left out where the session left it out of ``like``.
    """
    if any(column.too_long for column in columns):
        raise BadValue(
            "this was computed in too many steps for a receipt. Compute with the numbers alone: "
            "answer * 2."
        )
    size = len(like)
    values = [np.array(np.broadcast_to(np.asarray(column.value()), (size,))) for column in columns]
    shown = like.to_frame() if isinstance(like, pd.Series) else like
    for i, value in enumerate(values, keys):  # noise that a session leaves out stays out
        if blank and i < shown.shape[1] and shown.dtypes.iloc[i].kind == "f":
            left_out = shown.iloc[:, i].isna().to_numpy()
            if left_out.any():
                values[i - keys] = np.where(left_out, np.nan, value)
    answer: PandasAnswer
    if isinstance(like, pd.Series):
        answer = AnswerSeries(values[0], index=like.index.view(), name=like.name)
    else:
        parts = {i: like.iloc[:, i].array for i in range(keys)} | dict(enumerate(values, keys))
        answer = AnswerFrame(parts, index=like.index.view())
        answer.columns = like.columns.view()
    computed, made_of = write_columns(columns)
    text = _write_receipt(answer, computed, keys)
    remember_parts(text, made_of)
    answer.attrs = {ANSWER: text}
    return answer


def _write_receipt(answer: PandasAnswer, computed: Json, keys: int) -> str:
    """Return the receipt of an answer that was computed from others, as JSON.

    A receipt tells what an answer is: how it was computed, its labels, and a digest of its rows.
    ``computed`` holds the computation of each column. The first ``keys`` columns of ``answer`` are
    labels of its rows, and not numbers.
    """
    index, labels = answer.index, None
    if isinstance(answer, pd.DataFrame):
        labels = list(answer.columns)
        if keys:
            index = pd.MultiIndex.from_arrays(
                [answer.iloc[:, i].array for i in range(keys)], names=labels[:keys]
            )
    receipt = {
        "version": 1,
        **computed,
        "skip": keys,
        "names": [None if name is None else str(name) for name in index.names],
        "columns": None if labels is None else [split_label(label) for label in labels[keys:]],
    }
    text = json.dumps(receipt, separators=(",", ":"))
    return f'{text[:-1]},"rows":{digest_index(index).rows}}}'
