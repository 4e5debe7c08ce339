"""Tables that were computed from answers: ``a.dp / b.dp`` and what it left in the receipt.

A derived receipt holds the receipts that the table was computed from, and the steps. Numbers and
intervals are computed again when they are asked for. Nothing is released, so nothing is spent.
"""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd

from dpframe._answers.arithmetic import Calculation, Leaf
from dpframe._answers.estimate import Estimate, NumberLeaf, read_number, write_number
from dpframe._answers.matching import Excerpt, Labels, MatchedAnswer, ReleasedTable
from dpframe._answers.receipts import refuse_foreign_receipt, seal_answer, seal_columns
from dpframe._answers.released import Released, SealedRelease, read_release
from dpframe._answers.rowsteps import RowStep
from dpframe._plans.aggregates import Cell
from dpframe._plans.plan import Plan
from dpframe._plans.sampling import NOISE, About
from dpframe._plans.worth import LEVEL, PART, is_noise
from dpframe._types import Array, Bools, Ends, Json, PandasAnswer, Places

T = TypeVar("T")


class ComputedTable:
    """The columns of a derived receipt: a calculation for each of them."""

    def __init__(self, receipt: Json, text: str):
        """Read a table that was computed from released tables and numbers, from its receipt.

        Each column is either released or a formula of released numbers. ``text`` is the receipt as
        it was written.
        """
        self.labels = Labels(receipt)
        sources, numbers = _recall_parts(receipt, text)
        self._columns = [_read_column(column, sources, numbers) for column in receipt["derived"]]
        self._leaves: list[Leaf] = [*map(NumberLeaf, numbers)]
        parts = [source.part for source in sources] + [leaf.part for leaf in self._leaves]
        self.part = min(parts, default=PART)
        plans = [source.plan for source in sources] + [number.plan for number in numbers]
        self.plans: tuple[Plan, ...] = tuple({id(plan): plan for plan in plans}.values())

    @property
    def values(self) -> list[Array]:
        """The columns of numbers."""
        size = len(self.labels)
        return [np.broadcast_to(np.asarray(column.value()), (size,)) for column in self._columns]

    def ends(self, level: float, at_once: bool = False) -> list[Ends]:
        """Return the ends of the intervals of each column.

        ``level`` is the confidence of each interval. With ``at_once`` it is that of all of them
        together.
        """
        size = len(self.labels)
        each = (
            self._joint_ends(level) if at_once else [column.ends(level) for column in self._columns]
        )
        return [
            (np.broadcast_to(low, (size,)), np.broadcast_to(high, (size,))) for low, high in each
        ]

    def _joint_ends(self, level: float) -> list[Ends]:
        """Return the ends of intervals that all hold together at the level.

        All the numbers of one of k releases hold at a k-th of the risk.
        """
        leaves = [leaf for column in self._columns for leaf in column.leaves]
        releases = {id(leaf.release_key) for leaf in leaves}
        each = min(1 - (1 - level) / max(len(releases), 1), 1 - 2.0**-53)
        return [
            column.enclose([leaf.ends(each, at_once=True) for leaf in column.leaves])
            for column in self._columns
        ]

    @property
    def noise(self) -> list[Bools]:
        """Flags that tell which numbers are mostly noise, column by column.

        A number that was only scaled is noise if the released number is.
        """
        size, flags = len(self.labels), []
        for column, value, (low, high) in zip(
            self._columns, self.values, self.ends(LEVEL), strict=True
        ):
            flags.append(
                column.leaves[0].flag_noise(size)
                if column.scales
                else is_noise(value, low, high, 0.0, np.inf, self.part)
            )
        return flags

    def deviations(self) -> list[Array | float | None]:
        """Return the standard deviation of the noise in each column; None if none can be stated."""
        return [column.deviation() for column in self._columns]

    @property
    def rules(self) -> list[str]:
        """The rules of the intervals, as sentences, each of them once."""
        return list(dict.fromkeys(column.rule for column in self._columns))

    def calculate_rows(self, column: int, rows: Places) -> Calculation:
        """Return how some rows of a column were computed."""
        return self._columns[column].pick_rows(rows)

    def cells_of(self, columns: Sequence[int]) -> tuple[Cell, ...]:
        """Return the outputs that these columns are made of."""
        leaves = [leaf for column in columns for leaf in self._columns[column].leaves]
        return tuple(cell for leaf in leaves for cell in leaf.cells)


# Receipts ---------------------------------------------------------------------------------------


class ReceiptParts(NamedTuple):
    """The released tables and numbers that columns were computed from."""

    sources: list[ReleasedTable]
    numbers: list[Estimate]


# The parts of the last computed receipts, by the text object. The same noise is thus known to be the
# same in all that was computed from one answer. A copy of a receipt is of unknown noise.
receipt_parts: OrderedDict[int, tuple[str, ReceiptParts]] = OrderedDict()
_MOST_PARTS = 256


def remember_parts(text: str, parts: ReceiptParts) -> None:
    """Keep the parts that a computed receipt was written of, for whoever reads it."""
    receipt_parts[id(text)] = text, parts
    while len(receipt_parts) > _MOST_PARTS:
        receipt_parts.popitem(last=False)


def _recall_parts(receipt: Json, text: str) -> ReceiptParts:
    """Return the parts of a computed receipt: those it was written of, or copies."""
    known = receipt_parts.get(id(text))
    if known is not None and known[0] is text:
        return known[1]
    sources = [ReleasedTable.read(json.loads(one), one) for one in receipt["of"]]
    parts = ReceiptParts(sources, [read_number(number) for number in receipt["numbers"]])
    remember_parts(text, parts)
    return parts


def _read_column(
    column: Json, sources: Sequence[ReleasedTable], numbers: Sequence[Estimate]
) -> Calculation:
    """Return how a column was computed, from its JSON in a receipt.

    ``sources`` and ``numbers`` are the released tables and numbers that the JSON refers to.
    """
    leaves: list[Leaf] = []
    for leaf in column["leaves"]:
        if "number" in leaf:
            leaves.append(NumberLeaf(numbers[leaf["number"]]))
        else:
            one = leaf["rows"]
            rows = np.array(one) if isinstance(one, int) else _read_array(one, "<i8")
            leaves.append(Excerpt(sources[leaf["of"]], leaf["column"], rows))
    tokens = tuple((kind, _read_operand(kind, what)) for kind, what in column["tokens"])
    return Calculation(tuple(leaves), tokens)


def _read_operand(kind: str, what: Any) -> Any:
    """Return what a step of a calculation works with, from its JSON."""
    if kind == "rows":
        return RowStep.from_json(what)
    return _read_array(what["each"], what.get("dtype", "<f8")) if isinstance(what, dict) else what


def _write_operand(what: Any) -> Any:
    """Return what a step of a calculation works with as JSON."""
    if isinstance(what, RowStep):
        return what.to_json()
    if not isinstance(what, np.ndarray):
        return what
    if what.dtype.kind == "i":
        return {"each": _write_array(what, "<i8"), "dtype": "<i8"}
    return {"each": _write_array(what, "<f8")}


def _read_array(text: str, dtype: str) -> Array:
    return np.frombuffer(base64.b64decode(text), dtype=dtype)


def _write_array(array: Array, dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=dtype).tobytes()).decode()


def write_columns(columns: Sequence[Calculation]) -> tuple[Json, ReceiptParts]:
    """Return the receipt of columns that were computed from released numbers, without their labels.

    It holds the receipts of these numbers and the steps of each column, so that intervals can be
    computed again. With it come the released tables and numbers.
    """
    sources, numbers = parts = ReceiptParts([], [])
    written = []
    for column in columns:
        leaves: list[Json] = []
        for leaf in column.leaves:
            if isinstance(leaf, Excerpt):
                of = _find_or_add(sources, leaf.source, lambda one, two: one.text is two.text)
                rows = _write_array(leaf.rows, "<i8") if leaf.rows.ndim else int(leaf.rows)
                leaves.append({"of": of, "column": leaf.column, "rows": rows})
            else:
                number = cast(NumberLeaf, leaf).estimate
                place = _find_or_add(numbers, number, lambda one, two: one is two)
                leaves.append({"number": place})
        tokens = [(kind, _write_operand(what)) for kind, what in column.tokens]
        written.append({"tokens": tokens, "leaves": leaves})
    receipt = {
        "derived": written,
        "of": [source.text for source in sources],
        "numbers": [write_number(number) for number in numbers],
    }
    return receipt, parts


def _find_or_add(known: list[T], value: T, same: Callable[[T, T], bool]) -> int:
    """Return the position of a value in a list, and add it if it is missing.

    ``same`` tells whether two values are equal.
    """
    for place, one in enumerate(known):
        if same(one, value):
            return place
    known.append(value)
    return len(known) - 1


# Reading an answer ------------------------------------------------------------------------------


class UnchangedAnswer:
    """An answer as it was released, or one column that was taken from a table as it was."""

    def __init__(self, sealed: SealedRelease, answer: PandasAnswer, column: int | None):
        """Describe an answer that is still as it was released.

        ``sealed`` holds the release. ``column`` is the number of a column that was taken out of the
        table, or None for the whole answer.
        """
        self.answer, self.column = answer, column
        self.released: Released = sealed.released
        self.labelled = sealed.labelled
        self.by_level = self.released.layout.by_level
        self.keys = sealed.skip if column is None else 0
        self.plans = self.released.plans

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The outputs that it shows."""
        plan = self.released.plan
        if self.column is None or self.released.layout.computed:
            return plan.cells
        return (plan.cells[self.column],)

    @property
    def noise(self) -> list[Bools]:
        """Which numbers are noise, column by column."""
        return self._select(self.released.noise)

    def ends(self, level: float, at_once: bool = False, about: About = NOISE) -> list[Ends]:
        """Return the ends of the intervals of each column of numbers.

        ``level`` is their confidence. With ``at_once`` it is that of all of them together.
        ``about`` tells what they cover beside the noise.
        """
        size = self.answer.size - self.keys * len(self.answer)
        pairs = self.released.ends(level, at_once, about, size)
        layout, plan = self.released.layout, self.released.plan
        low, high = (layout.show_in_zones(plan, [pair[i] for pair in pairs]) for i in (0, 1))
        return self._select(cast("list[Ends]", list(zip(low, high, strict=True))))

    def deviations(self) -> Sequence[Array | float | None]:
        """Return the standard deviation of the noise in each column; None if none can be stated."""
        return self._select(list(self.released.deviations()))

    def _select(self, columns: list[T]) -> list[T]:
        """Return all columns, or the one that was taken."""
        return columns if self.column is None else [columns[self.column]]


def read_answer(answer: PandasAnswer, text: str) -> UnchangedAnswer | MatchedAnswer:
    """Return the released numbers behind an answer, by the text of its receipt.

    Refuse an answer with changed numbers.
    """
    with refuse_foreign_receipt("this answer"):
        sealed = read_release(text)
    if sealed is not None:
        if isinstance(answer, pd.Series) and sealed.labelled:
            own = seal_columns([answer.to_numpy()], [answer.name], answer.index)[0]
            if own in sealed.each:
                return UnchangedAnswer(sealed, answer, sealed.each.index(own))
        if sealed.seal == seal_answer(answer, sealed.labelled):
            return UnchangedAnswer(sealed, answer, None)
    return match_answer(answer, text)


def match_answer(answer: PandasAnswer, text: str) -> MatchedAnswer:
    """Return which released or computed number each cell of an answer is."""
    return MatchedAnswer(read_source(text), answer)


def read_source(text: str) -> ReleasedTable | ComputedTable:
    """Return the released or computed table that a receipt describes, with its labels."""
    with refuse_foreign_receipt("this answer"):
        receipt = json.loads(text)
        if "derived" in receipt:
            return ComputedTable(receipt, text)
        return ReleasedTable.read(receipt, text)
