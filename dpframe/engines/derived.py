"""Sources whose rows are made of the rows of another: batch by batch, each time that they are read.

*Formal guarantee.* The rows are those that the same steps make of all rows in one frame. Each is
made of one row of the other source and of public tables, so that batches of it may be cut anywhere;
and what columns there are, of which dtypes, is the same of every batch, or it is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpframe._cells.columns import prepare
from dpframe._errors import DataError
from dpframe._groups.keys import ROW_CEILING
from dpframe._sizes import SIZES
from dpframe.engines.parts import SelectedColumns
from dpframe.engines.rows import frame_of
from dpframe.engines.sources import ArrowTables, PeoplePart, Source, SourceFrame, assign_lots
from dpframe.engines.steadiness import HAZARDS, Answers, HazardAnswer

_ROW = 200  # bytes that a row of a person takes, beside its cells
_OBJECT = 80  # bytes of a cell that is no number


class DerivedSource(Source):
    """Source whose rows are made of the rows of another source, such as after a row-wise step."""

    place: str
    marks: frozenset[tuple[str, Hashable]]
    memory: int
    public_row_count: int
    names: list[str]
    schema: SourceFrame

    answers: ClassVar[Answers] = dict.fromkeys(HAZARDS, HazardAnswer.INHERITED)

    def __init__(
        self,
        base: Source,
        columns: Sequence[int],
        empty: pd.DataFrame,
        make: Callable[[Any], list[Any]],
        whole: bool,
    ):
        """Define the rows that ``make`` returns for each batch of ``base``.

        ``columns`` are the positions that are read from the base. ``empty`` is the frame that
        ``make`` returns for no rows. ``whole`` says that no row is added or left out.
        """
        self._base, self._columns, self._make = base, list(columns), make
        self.place, self.marks, self.memory = base.place, base.marks, base.memory
        self.public_row_count = base.public_row_count if whole else 0
        self.names = [str(name) for name in empty.columns]
        self.schema = SourceFrame(empty)
        self.schema._source = self
        self._dtypes = list(empty.dtypes)
        self._rows: int | None = None

    def version(self) -> Hashable:
        return self._base.version()

    def check(self) -> None:
        self._base.check()

    def _scan(self, names: list[str]) -> ArrowTables:
        """Yield the made rows of each batch as frames with all columns, whatever ``names`` are.

        These cells cannot always be converted to Arrow.
        """
        for batch in self._base.batches(self._columns):
            columns = {place: batch.iloc[:, i] for i, place in enumerate(self._columns)}
            frame = frame_of(self._make(SelectedColumns(columns, len(batch))))
            if list(frame.dtypes) != self._dtypes:
                raise TypeError("rows of a batch have other dtypes than those of no rows")
            yield frame

    def _count(self) -> int:
        """Return the number of made rows; refuse more than exact sums allow for."""
        rows = sum(len(frame) for frame in self._scan([]))
        if rows > ROW_CEILING:
            raise DataError(
                f"more than {ROW_CEILING} rows are not supported: exact sums would not fit."
            )
        return rows

    def batches(
        self, columns: Sequence[int], part: PeoplePart | None = None
    ) -> Iterator[pd.DataFrame]:
        """Yield frames of a limited number of rows, with the columns at these positions.

        All rows are read, or those of a share of the people if ``part`` is given. Two scans with
        different numbers of rows are an error.
        """
        seen = 0
        for frame in self._scan([]):
            seen += len(frame)
            places = np.arange(len(frame))
            if part is not None and part.parts > 1:
                vectors = [prepare(frame.iloc[:, c.position], c.kind) for c in part.people]
                places = np.flatnonzero(assign_lots(vectors, part.parts) == part.number)
            for start in range(0, len(places), SIZES.batch):
                yield frame.iloc[places[start : start + SIZES.batch], list(columns)]
        if seen != self.rows():
            raise ValueError("two scans of one source have not the same rows")

    def passes(self, columns: Sequence[int]) -> int:
        """Return into how many shares people are split so that the rows of one share fit into
        memory.

        ``columns`` are the positions of the columns that are read.
        """
        width = sum(_width(self._dtypes[i]) for i in columns) + _ROW
        return max(1, -(-self.rows() * width // max(self.memory, 1)))


def _width(dtype: object) -> int:
    return dtype.itemsize if isinstance(dtype, np.dtype) and dtype.kind in "iufbmM" else _OBJECT
