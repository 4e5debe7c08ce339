"""One tidy table of an answer: each number with its interval, its standard error and its flags.

A table shows what was released or follows from it, so it costs nothing. It is a DataFrame of plain
columns, without a receipt. It can also be written where pandas needs help: as Markdown without
other packages, and as HTML that a screen reader can read out.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Container, Hashable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias, cast, overload

import numpy as np
import pandas as pd

from dpframe import _pandas, _validate
from dpframe._answers.arithmetic import is_number
from dpframe._answers.digits import count_digits
from dpframe._errors import NotOffered
from dpframe._plans.durations import count_decimals, format_moment
from dpframe._types import Array, Bools, Index, PandasAnswer, Series

CHOSEN = "chosen, not measured: no interval"
NOISE = "noise"
UNDRAWN = "no interval of a population"
UNBOUNDED = "the divisor may be 0: no bound"
NOTHING = "no number"

# The values of ``of=``: what an interval covers, as a caption says it.
OF = {"noise": "the noise", "population": "the population, which cover the noise and the sample"}


# A column as pandas or numpy holds it.
Cells: TypeAlias = "Array | pd.api.extensions.ExtensionArray"


class ShownAnswer(NamedTuple):
    """The content of a table: an answer, with the ends and the deviations of its numbers.

    The first ``keys`` columns of the answer are labels.
    """

    answer: PandasAnswer
    ends: Sequence[tuple[Cells, Cells]]
    deviations: Sequence[Array | float | None]
    caption: str
    measure: str  # the name of a Series without a name
    keys: int = 0
    noise: Sequence[Bools] = ()  # which numbers of each column are noise
    note: str = ""  # a flag of all numbers
    of: str = "noise"  # what the intervals cover


class AnswerTable(pd.DataFrame):
    """A DataFrame that is also written as Markdown, and as HTML with a caption and headers.

    Steps of pandas return such tables again.
    """

    _metadata: ClassVar[list[str]] = ["caption", "of"]
    caption: str = ""
    of: str = "noise"  # what its intervals cover

    @property
    def _constructor(self) -> type[AnswerTable]:
        return AnswerTable

    # Fewer arguments than those of pandas: what is written here is a report.
    def to_markdown(self, *, width: int | None = None) -> str:  # type: ignore[override]
        """Return the table as Markdown; as a list of its rows if lines exceed ``width`` characters.

        Numbers have two digits of half their interval's width, as an answer shows them. `to_csv`
        has all digits.
        """
        head, rows = self._write_cells()
        head, rows = _escape_cells(head), [_escape_cells(row) for row in rows]
        size = [max(3, *(len(row[i]) for row in [head, *rows])) for i in range(len(head))]
        if width is not None and sum(size) + 3 * len(size) + 1 > width:
            return "\n".join(_format_row_as_list(head, row) for row in rows)
        right = [self._numeric(i) for i in range(len(head))]
        rule = ["-" * (w - 1) + ":" if r else "-" * w for w, r in zip(size, right, strict=True)]
        lines = [head, rule, *rows]
        return "\n".join(
            "| "
            + " | ".join(
                text.rjust(w) if r else text.ljust(w)
                for text, w, r in zip(line, size, right, strict=True)
            )
            + " |"
            for line in lines
        )

    # Fewer arguments than those of pandas, as above.
    def to_html(self, *, caption: str | None = None) -> str:  # type: ignore[override]
        """Return the table as HTML, with a caption and headers with their scope, and no style."""
        head, rows = self._write_cells()
        labels = self._labels
        text = escape(self.caption if caption is None else caption)
        top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
        lines = []
        for row in rows:
            names = "".join(f'<th scope="row">{escape(cell)}</th>' for cell in row[:labels])
            cells = "".join(f"<td>{escape(cell)}</td>" for cell in row[labels:])
            lines.append(f"<tr>{names}{cells}</tr>")
        body = "\n".join(lines)
        parts = (
            "<table>",
            f"<caption>{text}</caption>",
            f"<thead><tr>{top}</tr></thead>",
            f"<tbody>\n{body}\n</tbody>",
            "</table>",
        )
        return "\n".join(parts)

    @overload  # type: ignore[override]  # other words are those of pandas
    def to_csv(
        self, path_or_buf: None = None, *, index: bool | None = None, **words: Any
    ) -> str: ...
    @overload
    def to_csv(self, path_or_buf: object, *, index: bool | None = None, **words: Any) -> None: ...
    def to_csv(
        self, path_or_buf: object = None, *, index: bool | None = None, **words: Any
    ) -> str | None:
        """Return the table as CSV with all digits, or write it.

        By default the index is left out if it only counts the rows.
        """
        named = not isinstance(self.index, pd.RangeIndex) if index is None else index
        return cast("str | None", super().to_csv(cast(Any, path_or_buf), index=named, **words))

    def round_to_intervals(self) -> AnswerTable:
        """Return the table with the digits that the noise leaves: two of half an interval's
        width.

        Numbers without an interval stay as they are.
        """
        table, names = self.copy(), [str(name) for name in self.columns]
        for name, digits in _find_decimals(self).items():
            place = names.index(name)
            cells = [
                round(cell, d) if d is not None and isinstance(cell, float) else cell
                for cell, d in zip(self.iloc[:, place].tolist(), digits, strict=True)
            ]
            table.isetitem(place, pd.Series(cells, index=self.index, dtype=self.dtypes.iloc[place]))
        return table

    def _repr_html_(self) -> str:
        return self.to_html()

    @property
    def _labels(self) -> int:
        """The number of columns, as they are written, that name the row."""
        levels = 0 if isinstance(self.index, pd.RangeIndex) else self.index.nlevels
        names = list(self.columns)
        return levels + (names.index("measure") + 1 if "measure" in names else 0)

    def _numeric(self, place: int) -> bool:
        levels = 0 if isinstance(self.index, pd.RangeIndex) else self.index.nlevels
        return place >= levels and pd.api.types.is_numeric_dtype(self.dtypes.iloc[place - levels])

    def _write_cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the names of the columns, and the rows of the table as text."""
        decimals = _find_decimals(self)
        index = [] if isinstance(self.index, pd.RangeIndex) else list(range(self.index.nlevels))
        names = [str(name) for name in self.columns]
        ends = {
            end
            for four in _name_value_columns(names)
            if four[0] in names
            for end in four[1:3]
            if self.of != "noise"
        }
        heads = [f"{name} ({self.of})" if name in ends else name for name in names]
        keys = ["" if self.index.names[i] is None else str(self.index.names[i]) for i in index]
        columns = [[str(label) for label in self.index.get_level_values(i)] for i in index]
        for i, name in enumerate(names):
            digits = decimals.get(name, [None] * len(self))
            columns.append(
                [
                    _format_cell(cell, d)
                    for cell, d in zip(self.iloc[:, i].tolist(), digits, strict=True)
                ]
            )
        return keys + heads, [list(row) for row in zip(*columns, strict=True)]


def _find_decimals(table: pd.DataFrame) -> dict[str, list[int | None]]:
    """Return with how many decimals to show each column of numbers, row by row.

    They show two digits of half the width of the interval. Durations and times have those of their
    seconds.
    """
    names = [str(name) for name in table.columns]
    found: dict[str, list[int | None]] = {}
    for value, low, high, error in _name_value_columns(names):
        if low in names and high in names:
            columns = [table.iloc[:, names.index(name)].tolist() for name in (value, low, high)]
            digits = [_count_decimals(*row) for row in zip(*columns, strict=True)]
            found |= dict.fromkeys((value, low, high), digits)
            if error in names:
                found[error] = [None if d is None else max(d, 1) for d in digits]
    return found


def _name_value_columns(names: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the names of a value, of both ends and of its error, as columns may have them."""
    if "value" in names:
        yield "value", "lower", "upper", "std_error"
    for name in names:
        yield name, f"{name}_lower", f"{name}_upper", f"{name}_std_error"


def _count_decimals(value: object, low: Any, high: Any) -> int | None:
    """Return with how many decimals to show a number, or None if it has no interval.

    They show two digits of half the width of its interval, from ``low`` to ``high``.
    """
    if isinstance(low, pd.Timedelta | pd.Timestamp) and isinstance(
        high, pd.Timedelta | pd.Timestamp
    ):
        return count_decimals(low, high)
    if not (is_number(low) and is_number(high) and math.isfinite(high - low)):
        return None
    return 0 if isinstance(value, int) else count_digits((high - low) / 2)


def _format_cell(cell: object, decimals: int | None) -> str:
    """Return a value of a table as text, with this number of decimals if it is a number.

    None shows six digits. A missing value is empty.
    """
    if decimals is not None and isinstance(cell, pd.Timedelta | pd.Timestamp):
        return format_moment(cell, decimals)
    if isinstance(cell, float):
        if math.isnan(cell):
            return ""
        if decimals is None or abs(cell) >= 1e15 or math.isinf(cell):
            return f"{cell:.6g}"
        return f"{cell + 0.0:.{decimals}f}"
    return "" if cell is pd.NaT or cell is None or cell is pd.NA else str(cell)


def _escape_cells(cells: Sequence[str]) -> list[str]:
    return [" ".join(cell.replace("|", "\\|").split()) for cell in cells]


def _format_row_as_list(head: Sequence[str], row: Sequence[str]) -> str:
    """Return a row of a table as an item of a Markdown list, for a table too wide to show.

    ``head`` has the names of the columns, and ``row`` the cells as text. Empty cells are left out,
    but for the first.
    """
    return "\n".join(
        f"{'-' if i == 0 else ' '} {name}: {cell}"
        for i, (name, cell) in enumerate(zip(head, row, strict=True))
        if cell or i == 0
    )


# How an answer becomes a table ------------------------------------------------------------------


class Tabular(ABC):
    """An answer that can be shown as a table: of a session, or computed from such."""

    @abstractmethod
    def _show(self, level: float, at_once: bool, of: str, n: object) -> ShownAnswer:
        """Return the content of the table, with intervals as `interval` has them."""

    def table(
        self,
        level: float = 0.95,
        *,
        at_once: bool = False,
        wide: bool = False,
        of: str = "noise",
        n: object = None,
    ) -> AnswerTable:
        """Return one tidy table with a row for each number.

        Its columns are ``value``, ``lower``, ``upper``, ``std_error`` and ``flags``. Labels of rows
        and columns are columns with their own names, and ``measure`` says which number it is. So
        seaborn, altair and plotly take it as it is. With ``wide`` the rows are those of the answer,
        and each of its columns ``n`` has ``n_lower``, ``n_upper`` and ``n_flags`` beside it.
        Intervals are those of `interval`, with ``at_once`` for all numbers together. Without an
        interval the ends are empty, and ``flags`` says why. The standard error is empty where it
        cannot be stated, as for variances. ``.to_markdown()``, ``.to_html()`` and ``.to_csv()``
        write it down. It costs nothing.

        With ``of="population"`` the ends cover what a sample says of a population too, as
        `interval` has it, and so does ``n``. The caption and the headers say so, and there is no
        standard error. It is refused where `interval` is.

        >>> df = pd.DataFrame({"state": ["CA", "NY", "CA"]})
        >>> p = df.dp.open(100, keys={"state": ["CA", "NY"]})
        >>> table = p.groupby("state").size(epsilon=60).dp.table()
        >>> print(table.to_markdown())
        | state | measure | value | lower | upper | std_error | flags |
        | ----- | ------- | ----: | ----: | ----: | --------: | ----- |
        | CA    | rows    |     2 |     2 |     2 |       0.0 |       |
        | NY    | rows    |     1 |     1 |     1 |       0.0 |       |
        """
        of = _validate.choice(of, "of", tuple(OF))
        shown = self._show(_validate.level(level), _validate.flag(at_once, "at_once"), of, n)
        make = _make_wide_table if _validate.flag(wide, "wide") else _make_long_table
        table = make(shown)
        together = ", all at once" if at_once else ""
        table.caption = f"{shown.caption}; {level * 100:.6g} % intervals of {OF[of]}{together}"
        table.of = of
        return table

    def to_csv(self, path: str | os.PathLike[str] | None = None, **words: Any) -> str | None:
        """Write `table` as CSV, with intervals and the digits that the noise leaves; return the
        text if no path is given.

        Keyword arguments are those of `table`. All digits are in ``.table().to_csv()``.

        >>> df = pd.DataFrame({"age": [30.0, 41.0] * 500})
        >>> p = df.dp.open(1, bounds={"age": (0, 110)})
        >>> p.mean("age", epsilon=0.5).to_csv().splitlines()[0]
        'measure,value,lower,upper,std_error,flags'
        """
        return cast("str | None", self.table(**words).round_to_intervals().to_csv(path))

    def to_excel(self, path: str | os.PathLike[str], **words: Any) -> None:
        """Write `table` into an Excel file, with intervals and the digits that the noise leaves.

        Keyword arguments are those of `table`. It needs openpyxl.
        """
        table = self.table(**words).round_to_intervals()
        named = not isinstance(table.index, pd.RangeIndex)
        try:
            table.to_excel(path, index=named, merge_cells=False)
        except ModuleNotFoundError as problem:
            raise NotOffered(
                f"to_excel() needs {problem.name}, which is not installed: pip install "
                f"{problem.name}. .dp.to_csv() needs nothing, and Excel opens it."
            ) from None

    def to_markdown(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        width: int | None = None,
        **words: Any,
    ) -> str | None:
        """Write `table` as Markdown, with intervals; return the text if no path is given.

        Lines longer than ``width`` make it a list. Other keyword arguments are those of `table`.
        """
        text = self.table(**words).to_markdown(width=width)
        if path is None:
            return text
        Path(path).write_text(text + "\n", encoding="utf-8")
        return None


def show_number(
    name: Hashable,
    value: object,
    ends: tuple[object, object],
    deviation: float | None,
    caption: str,
    noise: bool,
    note: str,
    of: str,
) -> ShownAnswer:
    """Return the content of a table with a single number.

    ``ends`` are those of its interval, and ``deviation`` is the standard deviation of its noise.
    ``noise`` flags it, ``note`` is a further flag, and ``of`` tells what the interval covers.
    """
    sides = [(_get_cells(pd.Series([ends[0]])), _get_cells(pd.Series([ends[1]])))]
    return ShownAnswer(
        pd.Series([value]), sides, [deviation], caption, str(name), 0, [np.array([noise])], note, of
    )


def _get_cells(column: Series) -> Cells:
    """Return the cells of a column; times with a zone keep it."""
    return column.array if isinstance(column.dtype, pd.DatetimeTZDtype) else column.to_numpy()


def _list_measures(shown: ShownAnswer) -> list[tuple[Hashable, Cells]]:
    """Return the columns of numbers, each with its label."""
    if isinstance(shown.answer, pd.Series):
        return [(shown.answer.name, _get_cells(shown.answer))]
    return [
        (label, _get_cells(shown.answer.iloc[:, i]))
        for i, label in enumerate(shown.answer.columns)
        if i >= shown.keys
    ]


def _list_keys(shown: ShownAnswer) -> list[tuple[Hashable, Cells | Index]]:
    """Return the labels of the rows with their names: levels of the index, or columns.

    An index that only counts the rows is left out.
    """
    if isinstance(shown.answer, pd.DataFrame) and shown.keys:
        return [(shown.answer.columns[i], shown.answer.iloc[:, i].array) for i in range(shown.keys)]
    index = shown.answer.index
    if isinstance(index, pd.RangeIndex) and index.name is None:
        return []
    return [(index.names[i], index.get_level_values(i)) for i in range(index.nlevels)]


def _write_flags(values: Cells, low: Cells, high: Cells, noise: Bools, shown: ShownAnswer) -> Array:
    """Return the flags of each number as text, such as "noise", or why it has no interval."""
    without = CHOSEN if shown.of == "noise" else UNDRAWN
    unbounded = np.zeros(len(low), dtype=bool)
    if low.dtype.kind not in "mMO":
        unbounded = np.isinf(np.asarray(low)) | np.isinf(np.asarray(high))
    texts = [
        np.where(noise, NOISE, ""),
        np.where(
            _pandas.isna(values) & ~np.asarray(noise),
            NOTHING,
            np.where(_pandas.isna(low) | _pandas.isna(high), without, ""),
        ),
        np.where(unbounded, UNBOUNDED, ""),
        np.full(len(values), shown.note),
    ]
    return np.array(
        ["; ".join(filter(None, row)) for row in zip(*texts, strict=True)], dtype=object
    )


def _to_end_array(end: Cells) -> Cells:
    """Return one side of intervals as an array: durations and times unchanged, others as
    doubles."""
    if isinstance(getattr(end, "dtype", None), pd.DatetimeTZDtype):
        return end
    array = np.asarray(end)
    mixed = array.dtype == object and any(
        isinstance(v, pd.Timestamp | pd.Timedelta) or v is pd.NaT for v in array
    )
    return array if mixed or array.dtype.kind in "mM" else np.asarray(end, dtype=float)


class _Column(NamedTuple):
    """A column of numbers with its label, the ends of its intervals, and which are noise."""

    label: Hashable
    values: Cells
    low: Cells
    high: Cells
    deviation: Array | float | None
    noise: Bools


def _list_columns(shown: ShownAnswer) -> Iterator[_Column]:
    """Yield each column of numbers."""
    noise = shown.noise or [np.zeros((), dtype=bool)] * len(shown.ends)
    for (label, values), (low, high), deviation, flags in zip(
        _list_measures(shown), shown.ends, shown.deviations, noise, strict=True
    ):
        if deviation is not None and shown.of != "noise":
            deviation = math.nan  # it is that of the noise alone
        sides = _to_end_array(low), _to_end_array(high)
        yield _Column(label, values, *sides, deviation, np.asarray(flags))


def _make_long_table(shown: ShownAnswer) -> AnswerTable:
    """Return the table of an answer with a row for each number."""
    keys, frame = _list_keys(shown), shown.answer
    levels = frame.columns.names if isinstance(frame, pd.DataFrame) else [None]
    parts = []
    for label, values, low, high, deviation, noise in _list_columns(shown):
        labels = (
            label
            if isinstance(label, tuple) and len(label) == len(levels)
            else (label,) * len(levels)
        )
        unnamed = [
            str(one)
            for one, name in zip(labels, levels, strict=True)
            if name is None and one is not None
        ]
        columns: dict[Any, Any] = {}
        for i, (name, cells) in enumerate(keys):
            columns[_choose_name(name, f"row_{i}" if len(keys) > 1 else "row", columns)] = cells
        for one, name in zip(labels, levels, strict=True):
            if name is not None:
                columns[_choose_name(name, "column", columns)] = [one] * len(frame)
        own = {
            "measure": [", ".join(unnamed) or shown.measure] * len(frame),
            "value": values,
            "lower": low,
            "upper": high,
            "std_error": np.full(len(frame), math.nan)
            if deviation is None
            else deviation + np.zeros(len(frame)),
            "flags": _write_flags(values, low, high, noise, shown),
        }
        parts.append(pd.DataFrame({**columns, **own}))
    whole = _pandas.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    return AnswerTable(whole)


_OWN = ("measure", "value", "lower", "upper", "std_error", "flags")


def _choose_name(name: Hashable, otherwise: str, taken: Container[str]) -> str:
    """Return a name for a column of labels that no other column has."""
    text = otherwise if name is None else str(name)
    while text in _OWN or text in taken:
        text += "_"
    return text


def _make_wide_table(shown: ShownAnswer) -> AnswerTable:
    """Return the table of an answer with its own rows, and several columns for each of its
    columns."""
    frame = shown.answer
    columns: dict[str, Any] = (
        {str(name): cells for name, cells in _list_keys(shown)} if shown.keys else {}
    )
    for label, values, low, high, deviation, noise in _list_columns(shown):
        parts = label if isinstance(label, tuple) else (label,)
        name = "_".join(str(part) for part in parts if part is not None) or shown.measure
        while name in columns:
            name += "_"
        columns |= {name: values, f"{name}_lower": low, f"{name}_upper": high}
        if deviation is not None:
            columns[f"{name}_std_error"] = deviation + np.zeros(len(frame))
        columns[f"{name}_flags"] = _write_flags(values, low, high, noise, shown)
    return AnswerTable(pd.DataFrame(columns, index=frame.index.view()))
