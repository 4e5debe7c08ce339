"""The reading of answers in an audit: as numbers with names, aligned by label over the draws of
both frames, or as labels.

The labels and the length of an answer are a part of it: a group that exists in one frame only is
the classic leak. So the presence of a label that some draws lack is a number, and so is the length.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._errors import BadType
from dpframe._types import Index

Floats = NDArray[np.float64]
Path = tuple[Any, ...]  # where a cell is: labels, keys and places, from the outside to the inside
THERE = " is there"  # ends the name of the number that says so


class View(NamedTuple):
    """The view of an adversary: its own coin flips, and the answers so far."""

    coins: int
    outputs: tuple[Any, ...]


class _Absent:
    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()


@dataclass(frozen=True)
class AnswerShape:
    """The shape of the answers that an audit draws: rows of `numbers` numbers, or labels if
    ``numbers`` is None.

    A path leads to one cell of an answer. ``places`` are the paths of all cells that were seen, in
    order; ``varying`` are those that some draws lack. ``codes`` numbers the labels of a cell, in
    answers that have numbers elsewhere.
    """

    numbers: int | None
    places: tuple[Path, ...] = ()
    varying: tuple[Path, ...] = ()
    sizes: bool = False  # whether answers differ in length
    codes: Mapping[Path, Mapping[Any, int]] | None = None

    @staticmethod
    def of(draws: Sequence[object]) -> AnswerShape:
        """Return how to read answers as rows of numbers or as labels.

        The draws are those of *both* frames, so that a label of either is known. Answers are labels
        if they have no number, or a single cell that is sometimes a label.
        """
        rows = [cells(draw) for draw in draws]
        counts: Counter[Path] = Counter()
        for row in rows:
            counts.update(row.keys())
        places = tuple(counts)
        varying = tuple(place for place, n in counts.items() if n < len(rows))
        labels: dict[Path, dict[Any, int]] = {}
        plain = 0
        for row in rows:
            for place, cell in row.items():
                if _is_number(cell):
                    plain += 1
                else:
                    _number_label(labels.setdefault(place, {}), cell)
        # A single cell, or labels alone: sets of whole answers say more.
        if not plain or (labels and len(places) == 1):
            return AnswerShape(None, places, varying)
        sizes = len({len(row) for row in rows}) > 1
        shape = AnswerShape(0, places, varying, sizes, labels)
        return AnswerShape(len(shape.names()), places, varying, sizes, labels)

    @property
    def regular(self) -> bool:
        """Whether every answer is a row of the same numbers."""
        return not (self.varying or self.codes or self.sizes)

    def read(self, draws: Any) -> Floats | list[Any]:
        """Return answers of an audit as a matrix with a row for each draw, or as a list of labels.
        ``draws`` are the answers."""
        if isinstance(draws, np.ndarray) and draws.ndim == 2:
            return draws
        rows = [cells(draw) for draw in draws]
        if self.numbers is None:
            whole = [tuple(row.get(p, ABSENT) for p in self.places) for row in rows]
            # A later draw with other cells is an answer that differs from all that were seen.
            unknown_cells = [
                tuple((p, c) for p, c in row.items() if p not in self.places) for row in rows
            ]
            return [
                (values[0] if len(values) == 1 else values) if not unknown else (values, unknown)
                for values, unknown in zip(whole, unknown_cells, strict=True)
            ]
        return np.array([self._numbers(row) for row in rows], dtype=np.float64).reshape(
            len(rows), self.numbers
        )

    def _numbers(self, row: dict[Path, Any]) -> list[float]:
        """Return one answer as a row of numbers, with NaN where it does not match the shape.

        The columns are those that `names` names: for each varying cell whether it is there, the
        length of the answer if it varies, the cells, and the numbers of labels.
        """
        assert self.numbers is not None
        if self.regular:
            # A later draw that is no such row of numbers is an answer like any other: it is read as
            # NaN.
            fits = len(row) == self.numbers and all(
                p in row and _is_number(row[p]) for p in self.places
            )
            return [row[p] for p in self.places] if fits else [math.nan] * self.numbers
        numbers: list[float] = [float(p in row) for p in self.varying]
        numbers += [len(row)] if self.sizes else []
        for place in self.places:
            cell = row.get(place, ABSENT)
            numbers.append(cell if _is_number(cell) else math.nan)
        for place, numbering in (self.codes or {}).items():
            cell = row.get(place, ABSENT)
            numbers.append(
                math.nan if cell is ABSENT or _is_number(cell) else _code(numbering, cell)
            )
        return numbers

    def names(self) -> list[str]:
        """Return a name for each column of numbers that `read` returns, such as ``answer[2]``.

        If answers have labels or their cells vary, there is a column for each varying cell (whether
        it is there), the length of the answer if it varies, each cell, and the number of its label.
        """
        if self.regular and not self.places:
            return (
                [f"answer[{i}]" for i in range(self.numbers or 0)]
                if self.numbers != 1
                else ["answer"]
            )
        if self.regular and len(self.places) == 1:
            return ["answer"]
        called = {
            place: "answer" + "".join(f"[{part!r}]" for part in place) for place in self.places
        }
        names = [called[place] + THERE for place in self.varying]
        names += ["length of the answer"] if self.sizes else []
        names += [called[place] for place in self.places]
        return names + [f"label of {called[place]}" for place in self.codes or {}]


def _number_label(numbering: dict[Any, int], label: object) -> None:
    try:
        numbering.setdefault(label, len(numbering))
    except TypeError:
        raise unhashable() from None


def _code(numbering: Mapping[Any, int], label: object) -> float:
    try:
        return numbering.get(label, math.nan)
    except TypeError:
        raise unhashable() from None


def unhashable() -> BadType:
    return BadType(
        "answers must be numbers, labels that can be hashed, or arrays, tables, lists or dicts of these."
    )


def cells(draw: object) -> dict[Path, Any]:
    """Return each number or label of an answer, by its path. Tables are read by label, since noise
    may have sorted them."""
    return dict(_cells(draw, ()))


def _cells(draw: object, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield each single value of a nested answer with its path: the keys, labels or indices that
    lead to it."""
    if isinstance(draw, View):
        draw = draw.outputs
    if isinstance(draw, Mapping):
        for key, value in draw.items():
            yield from _cells(value, (*path, key))
    elif isinstance(draw, pd.Series):
        for label, cell in zip(_labels(draw.index), draw.tolist(), strict=True):
            yield (*path, label), cell
    elif isinstance(draw, pd.DataFrame):
        rows, columns = _labels(draw.index), _labels(draw.columns)
        for i, column in enumerate(columns):
            for row, cell in zip(rows, draw.iloc[:, i].tolist(), strict=True):
                yield (*path, (row, column)), cell
    elif isinstance(draw, np.ndarray):
        flat = draw.reshape(-1).tolist()
        yield from (
            (((*path, i), cell) for i, cell in enumerate(flat)) if draw.ndim else ((path, flat[0]),)
        )
    elif isinstance(draw, list | tuple):
        for i, element in enumerate(draw):
            yield from _cells(element, (*path, i))
    else:
        yield path, draw


def _labels(index: Index) -> list[Any]:
    """Return the labels of an index, made distinct: repeated labels are numbered, and all nulls are
    one label."""
    labels = [_plain(label) for label in index.tolist()]
    if index.is_unique:
        return labels
    counts: Counter[Any] = Counter()
    texts = []
    for label in labels:
        texts.append((label, counts[label]))
        counts[label] += 1
    return texts


def _plain(label: object) -> Any:
    if isinstance(label, tuple):
        return tuple(map(_plain, label))
    return None if label is pd.NaT or label is pd.NA or label != label else label


def _is_number(x: object) -> bool:
    return isinstance(x, int | float | np.number) and not isinstance(
        x, bool | complex | np.complexfloating
    )
