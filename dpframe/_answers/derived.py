"""Tables computed from answers: ``answer.dp / 1000``, ``a.dp / b.dp``, and the receipts that say
how.

A receipt of what was computed holds the receipts that it was computed from and the steps, and
nothing else: numbers and intervals are computed again when they are asked for. Nothing is released,
so nothing is spent.
"""

from __future__ import annotations

import base64
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._answers.arithmetic import Calculation, Ends, is_number, of_number
from dpframe._answers.estimate import Estimate, leaf_from, leaf_to
from dpframe._answers.lineage import Excerpt, Kept, Labelled, Released, gathered
from dpframe._answers.worth import speaking
from dpframe._errors import BadType, BadValue
from dpframe._plans.aggregates import Cell
from dpframe._plans.plan import Plan
from dpframe._plans.worth import LEVEL, PART, is_noise

# A table of answers, or a column of it.
Answered: TypeAlias = "pd.Series[Any] | pd.DataFrame"


class Computed(Labelled):
    """What a derived receipt describes: a calculation for each column."""

    def __init__(self, receipt: dict[str, Any], text: str):
        super().__init__(receipt)
        sources = [Released(json.loads(source), source) for source in receipt["of"]]
        numbers = [leaf_from(number) for number in receipt["numbers"]]
        self._columns = [_read(column, sources, numbers) for column in receipt["derived"]]
        self.part = min(
            [source.part for source in sources] + [n._rule.part for n in numbers], default=PART
        )
        plans = [source.plan for source in sources] + [
            plan for number in numbers for plan in number.plans
        ]
        self.plans: tuple[Plan, ...] = tuple({id(plan): plan for plan in plans}.values())

    def values(self) -> list[NDArray[Any]]:
        size = len(self.rows[0])
        return [np.broadcast_to(np.asarray(column.value()), (size,)) for column in self._columns]

    def ends(self, level: float, at_once: bool) -> list[Ends]:
        size = len(self.rows[0])
        each = (
            [column.ends(level) for column in self._columns]
            if not at_once
            else self._together(level)
        )
        return [
            (np.broadcast_to(low, (size,)), np.broadcast_to(high, (size,))) for low, high in each
        ]

    def _together(self, level: float) -> list[Ends]:
        """The ends that hold together: of k releases all the numbers of each hold at a k-th of the
        risk."""
        leaves = [leaf for column in self._columns for leaf in column.leaves]
        releases = {id(leaf.origin if isinstance(leaf, Excerpt) else leaf) for leaf in leaves}
        each = min(1 - (1 - level) / max(len(releases), 1), 1 - 2.0**-53)
        return [
            column.enclosed(
                [
                    leaf._ends(each, True) if isinstance(leaf, Excerpt) else leaf._ends(each)
                    for leaf in column.leaves
                ]
            )
            for column in self._columns
        ]

    def noise(self) -> list[NDArray[Any]]:
        """Which numbers are noise, column by column: of what was only scaled, where the released
        numbers are."""
        size, flags = len(self.rows[0]), []
        for column, value, (low, high) in zip(
            self._columns, self.values(), self.ends(LEVEL, False), strict=True
        ):
            leaf = column.leaves[0] if column.scales else None
            if isinstance(leaf, Excerpt):
                flag = gathered(leaf.origin.noise()[leaf.column], leaf.rows) == 1.0
            elif leaf is not None:
                flag = np.full(size, not leaf.reliable)
            else:
                flag = is_noise(value, low, high, 0.0, np.inf, self.part)
            flags.append(flag)
        return flags

    def deviations(self) -> list[Any]:
        return [column.deviation() for column in self._columns]

    def calculation(self, column: int, rows: NDArray[np.intp]) -> Calculation:
        return self._columns[column].picked(rows)

    def cells(self, columns: Sequence[int]) -> tuple[Cell, ...]:
        leaves = [leaf for column in columns for leaf in self._columns[column].leaves]
        made_of = [
            leaf.origin.cells([leaf.column]) if isinstance(leaf, Excerpt) else leaf._plan.cells[:1]
            for leaf in leaves
        ]
        return tuple(cell for cells in made_of for cell in cells)


# Receipts -------------------------------------------------------------------------------------------------------------


def _read(
    column: dict[str, Any], sources: Sequence[Released], numbers: Sequence[Estimate]
) -> Calculation:
    leaves: list[Any] = []
    for leaf in column["leaves"]:
        if "number" in leaf:
            leaves.append(numbers[leaf["number"]])
        else:
            leaves.append(Excerpt(sources[leaf["of"]], leaf["column"], _array(leaf["rows"], "<i8")))
    tokens = tuple(
        (kind, _array(what["each"], "<f8") if isinstance(what, dict) else what)
        for kind, what in column["tokens"]
    )
    return Calculation(tuple(leaves), tokens)


def _array(text: str, dtype: str) -> Any:
    return np.frombuffer(base64.b64decode(text), dtype=dtype)


def _bytes(array: Any, dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=dtype).tobytes()).decode()


def _receipt(columns: Sequence[Calculation]) -> dict[str, Any]:
    """What the receipt of columns that were computed says of them."""
    sources: list[Released] = []
    numbers: list[Estimate] = []

    def place(known: list[Any], value: Any, alike: Any) -> int:
        found = next((i for i, one in enumerate(known) if alike(one, value)), len(known))
        if found == len(known):
            known.append(value)
        return found

    written = []
    for column in columns:
        leaves: list[dict[str, Any]] = []
        for leaf in column.leaves:
            if isinstance(leaf, Excerpt):
                of = place(sources, leaf.origin, lambda one, two: one.text is two.text)
                leaves.append({"of": of, "column": leaf.column, "rows": _bytes(leaf.rows, "<i8")})
            else:
                leaves.append({"number": place(numbers, leaf, lambda one, two: one is two)})
        tokens = [
            (kind, {"each": _bytes(what, "<f8")} if isinstance(what, np.ndarray) else what)
            for kind, what in column.tokens
        ]
        written.append({"tokens": tokens, "leaves": leaves})
    return {
        "derived": written,
        "of": [source.text for source in sources],
        "numbers": [leaf_to(number) for number in numbers],
    }


# Operators ------------------------------------------------------------------------------------------------------------


class Operators(ABC):
    """Arithmetic of ``answer.dp``: with numbers, released ones among them, with other answers and
    with a number for each row.

    What comes out is a Series or DataFrame whose ``.dp`` has intervals: of m released numbers each
    has an m-th of the risk.
    """

    @abstractmethod
    def _kept(self) -> Kept:
        """Which released number each cell is."""

    @abstractmethod
    def _marked(self, answer: Answered, receipt: dict[str, Any], keys: int) -> Answered:
        """The answer with its receipt, to which the labels are added; the first ``keys`` columns
        are those of rows."""

    @abstractmethod
    def _of(self, answer: Any) -> Any:
        """What ``.dp`` of a Series or DataFrame with a receipt is; None without one."""

    def __add__(self, other: Any) -> Answered:
        return _joined("+", self, other)

    def __radd__(self, other: Any) -> Answered:
        return _joined("+", self, other, swapped=True)

    def __sub__(self, other: Any) -> Answered:
        return _joined("-", self, other)

    def __rsub__(self, other: Any) -> Answered:
        return _joined("-", self, other, swapped=True)

    def __mul__(self, other: Any) -> Answered:
        return _joined("*", self, other)

    def __rmul__(self, other: Any) -> Answered:
        return _joined("*", self, other, swapped=True)

    def __truediv__(self, other: Any) -> Answered:
        return _joined("/", self, other)

    def __rtruediv__(self, other: Any) -> Answered:
        return _joined("/", self, other, swapped=True)

    def __neg__(self) -> Answered:
        return _each(self, lambda made: made.then("negative"))

    def __abs__(self) -> Answered:
        return _each(self, lambda made: made.then("absolute"))

    __array_ufunc__ = None  # numpy's numbers and arrays leave the operation to the other side

    def round(self, decimals: int = 0) -> Answered:
        """The answer rounded to so many decimals. An interval is rounded outward, so it still holds
        what it held."""
        if not isinstance(decimals, int) or isinstance(decimals, bool) or abs(decimals) > 300:
            raise BadType("round takes a whole number of decimals, such as round(1).")
        return _each(self, lambda made: made.rounded(decimals))


def _each(one: Operators, make: Callable[[Calculation], Calculation]) -> Answered:
    """Every column, made anew from itself."""
    kept = one._kept()
    columns = [make(kept.calculation(i)) for i in range(kept.rows.shape[1])]
    return _answer(one, columns, kept.answer, kept.keys)


def _joined(step: str, one: Operators, other: Any, swapped: bool = False) -> Answered:
    def both(mine: Calculation, theirs: Calculation) -> Calculation:
        return theirs.then(step, mine) if swapped else mine.then(step, theirs)

    if isinstance(other, Estimate):
        return _each(one, lambda made: both(made, other._calculation()))
    if is_number(other):
        if not abs(other) <= sys.float_info.max:
            raise BadValue("arithmetic with an answer needs a finite number.")
        whole = isinstance(other, int | np.integer) and abs(int(other)) <= 2**53
        number = int(other) if whole else float(other)
        return _each(one, lambda made: both(made, of_number(number)))
    answered = other if isinstance(other, Operators) else None
    if isinstance(other, pd.Series | pd.DataFrame):
        answered = one._of(other)
    if answered is None and isinstance(other, pd.Series):
        return _with_constants(one, other, both)
    if answered is None:
        raise BadType(
            "arithmetic with an answer takes numbers, other answers, or a Series of known numbers with the same labels."
        )
    kept, second = one._kept(), answered._kept()
    mine, theirs = kept.answer, second.answer
    if isinstance(mine, pd.Series) is not isinstance(theirs, pd.Series):
        raise BadType(
            "a Series and a DataFrame have no common labels: take a column, as in table['n'].dp / counts.dp."
        )
    if kept.keys or second.keys:
        raise BadType(
            "two answers meet by their index: set_index() the columns that are keys, then .dp / .dp."
        )
    rows, index = _aligned(mine, theirs)
    if isinstance(mine, pd.Series):
        name = mine.name if mine.name == theirs.name else None
        column = both(kept.calculation(0).picked(rows[0]), second.calculation(0).picked(rows[1]))
        return _answer(one, [column], pd.Series(0, index=index, name=name), 0)
    if set(mine.columns) != set(theirs.columns) or not mine.columns.is_unique:
        raise BadType(
            "these tables have different columns: take those that belong together, as in a['n'].dp / b['people'].dp."
        )
    places = theirs.columns.get_indexer(mine.columns)
    columns = [
        both(kept.calculation(i).picked(rows[0]), second.calculation(int(place)).picked(rows[1]))
        for i, place in enumerate(places)
    ]
    return _answer(one, columns, pd.DataFrame(0, index=index, columns=mine.columns), 0)


def _with_constants(
    one: Operators, numbers: pd.Series[Any], both: Callable[[Calculation, Calculation], Calculation]
) -> Answered:
    """The answer with a known number for each row, by the labels of the rows."""
    kept = one._kept()
    if (
        kept.keys
        or not pd.api.types.is_numeric_dtype(numbers.dtype)
        or pd.api.types.is_bool_dtype(numbers.dtype)
    ):
        raise BadType(
            "known numbers are a Series of numbers whose index has the labels of the answer's rows, which are its index."
        )
    if set(numbers.index) != set(kept.answer.index):
        raise BadValue("known numbers need one for each row of the answer, by the same labels.")
    rows, index = _aligned(kept.answer, numbers)
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)[rows[1]]
    if not np.isfinite(values).all():
        raise BadValue("known numbers have to be finite.")
    columns = [
        both(kept.calculation(i).picked(rows[0]), of_number(values))
        for i in range(kept.rows.shape[1])
    ]
    answer = kept.answer.iloc[rows[0]]
    return _answer(one, columns, answer.set_axis(index), 0)


def _aligned(one: Any, two: Any) -> tuple[list[NDArray[np.intp]], pd.Index[Any]]:
    """The rows of each of two answers that have the same labels, as pandas puts them together; -1
    where one has none."""
    try:
        pair = pd.Series(np.arange(len(one)), index=one.index).align(
            pd.Series(np.arange(len(two)), index=two.index)
        )
    except (ValueError, TypeError):
        raise BadValue(
            "the rows of these answers cannot be put together by their labels: some stand there twice, or are of another kind."
        ) from None
    rows = [side.fillna(-1).to_numpy().astype(np.intp) for side in pair]
    return rows, pair[0].index


def _answer(one: Operators, columns: Sequence[Calculation], like: Any, keys: int) -> Answered:
    """The Series or DataFrame that the columns come to, with the labels of another and a receipt
    that says how."""
    if any(column.too_long for column in columns):
        raise BadValue(
            "this was computed in too many steps for a receipt. Compute with the numbers alone: answer * 2."
        )
    size = len(like)
    values = [np.array(np.broadcast_to(np.asarray(column.value()), (size,))) for column in columns]
    shown = like.to_frame() if isinstance(like, pd.Series) else like
    for i in range(keys, shown.shape[1]):  # what a session leaves out as noise stays out
        if (
            i - keys < len(values)
            and shown.dtypes.iloc[i].kind == "f"
            and (blank := shown.iloc[:, i].isna().to_numpy()).any()
        ):
            values[i - keys] = np.where(blank, np.nan, values[i - keys])
    if isinstance(like, pd.Series):
        answer: Any = pd.Series(values[0], index=like.index.view(), name=like.name)
    else:
        parts = {i: like.iloc[:, i].array for i in range(keys)} | dict(enumerate(values, keys))
        answer = pd.DataFrame(parts, index=like.index.view())
        answer.columns = like.columns.view()
    return speaking(one._marked(answer, _receipt(columns), keys))
