"""One tidy table of an answer: each number with its interval, its standard error and a word where
there is none.

What is made here was released or follows from it, so a table costs nothing. It is a DataFrame,
plain columns and no receipt, that can also be written where pandas needs help: Markdown without
other packages, and HTML that a screen reader can read out.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from html import escape
from typing import Any, ClassVar, NamedTuple, cast, overload

import numpy as np
import pandas as pd

from dpframe import _pandas, _validate
from dpframe._answers.arithmetic import is_number
from dpframe._plans.durations import count_decimals, format_moment

CHOSEN = "chosen, not measured: no interval"
NOISE = "noise"
UNDRAWN = "no interval of a population"
UNBOUNDED = "the divisor may be 0: no bound"
NOTHING = "no number"

# Of whom an interval speaks: ``of=``, and how a caption says it.
OF = {"noise": "the noise", "population": "the population, which cover the noise and the sample"}


class Shown(NamedTuple):
    """What a table shows: an answer, of which the first ``keys`` columns are labels, and ends and
    deviations of the others."""

    answer: pd.Series[Any] | pd.DataFrame
    ends: Sequence[tuple[Any, Any]]
    deviations: Sequence[Any]
    caption: str
    measure: str  # the name of what a Series has none for
    keys: int = 0
    noise: Sequence[Any] = ()  # which numbers of each column are, as `reliable` says
    note: str = ""  # what is to be said of all of them
    of: str = "noise"  # what the intervals cover


class Table(pd.DataFrame):
    """A DataFrame that is also written as Markdown, and as HTML with a caption and headers; its
    steps return tables again."""

    _metadata: ClassVar[list[str]] = ["caption", "of"]
    caption: str = ""
    of: str = "noise"  # what its intervals cover

    @property
    def _constructor(self) -> Any:
        return Table

    def to_markdown(self, *, width: int | None = None) -> str:  # type: ignore[override]  # pandas' needs another package
        """The table as Markdown; as a list of its rows where its lines are longer than ``width``
        characters.

        Numbers have two digits of half their interval's width, as an answer shows them. `to_csv`
        has all digits.
        """
        head, rows = self._written()
        head, rows = _marked(head), [_marked(row) for row in rows]
        size = [max(3, *(len(row[i]) for row in [head, *rows])) for i in range(len(head))]
        if width is not None and sum(size) + 3 * len(size) + 1 > width:
            return "\n".join(_listed(head, row) for row in rows)
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

    def to_html(self, *, caption: str | None = None) -> str:  # type: ignore[override]  # with a caption and scopes
        """The table as HTML: a caption, a header for each column and row with its scope, and no
        style of its own."""
        head, rows = self._written()
        labels = self._labels
        text = escape(self.caption if caption is None else caption)
        top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
        lines = []
        for row in rows:
            names = "".join(f'<th scope="row">{escape(cell)}</th>' for cell in row[:labels])
            cells = "".join(f"<td>{escape(cell)}</td>" for cell in row[labels:])
            lines.append(f"<tr>{names}{cells}</tr>")
        body = "\n".join(lines)
        return f"<table>\n<caption>{text}</caption>\n<thead><tr>{top}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"

    @overload  # type: ignore[override]  # other words are those of pandas
    def to_csv(
        self, path_or_buf: None = None, *, index: bool | None = None, **words: Any
    ) -> str: ...
    @overload
    def to_csv(self, path_or_buf: Any, *, index: bool | None = None, **words: Any) -> None: ...
    def to_csv(
        self, path_or_buf: Any = None, *, index: bool | None = None, **words: Any
    ) -> str | None:
        """The table as CSV, plain numbers with all their digits; without the index where that is a
        number of the row."""
        named = not isinstance(self.index, pd.RangeIndex) if index is None else index
        return cast("str | None", super().to_csv(path_or_buf, index=named, **words))

    def _repr_html_(self) -> str:
        return self.to_html()

    @property
    def _labels(self) -> int:
        """How many of the columns as they are written name the row."""
        levels = 0 if isinstance(self.index, pd.RangeIndex) else self.index.nlevels
        names = list(self.columns)
        return levels + (names.index("measure") + 1 if "measure" in names else 0)

    def _numeric(self, place: int) -> bool:
        levels = 0 if isinstance(self.index, pd.RangeIndex) else self.index.nlevels
        return place >= levels and pd.api.types.is_numeric_dtype(self.dtypes.iloc[place - levels])

    def _written(self) -> tuple[list[str], list[list[str]]]:
        """The names of the columns and the cells as text."""
        decimals = _decimals(self)
        index = [] if isinstance(self.index, pd.RangeIndex) else list(range(self.index.nlevels))
        names = [str(name) for name in self.columns]
        ends = {
            end
            for four in _fours(names)
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
                [_number(cell, d) for cell, d in zip(self.iloc[:, i].tolist(), digits, strict=True)]
            )
        return keys + heads, [list(row) for row in zip(*columns, strict=True)]


def _decimals(table: pd.DataFrame) -> dict[str, list[int | None]]:
    """The decimals of each column of numbers, row by row: two digits of half the width of the
    interval; of durations and times those of their seconds."""
    names = [str(name) for name in table.columns]
    found: dict[str, list[int | None]] = {}
    for value, low, high, error in _fours(names):
        if low in names and high in names:
            columns = [table.iloc[:, names.index(name)].tolist() for name in (value, low, high)]
            digits = [_digits(*row) for row in zip(*columns, strict=True)]
            found |= dict.fromkeys((value, low, high), digits)
            if error in names:
                found[error] = [None if d is None else max(d, 1) for d in digits]
    return found


def _fours(names: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    if "value" in names:
        yield "value", "lower", "upper", "std_error"
    for name in names:
        yield name, f"{name}_lower", f"{name}_upper", f"{name}_std_error"


def _digits(value: Any, low: Any, high: Any) -> int | None:
    if isinstance(low, pd.Timedelta | pd.Timestamp) and isinstance(
        high, pd.Timedelta | pd.Timestamp
    ):
        return count_decimals(low, high)
    if not (is_number(low) and is_number(high) and math.isfinite(high - low)):
        return None
    half = (high - low) / 2
    return (
        0
        if isinstance(value, int) or half <= 0
        else max(0, min(300, 1 - math.floor(math.log10(half))))
    )


def _number(cell: Any, decimals: int | None) -> str:
    if decimals is not None and isinstance(cell, pd.Timedelta | pd.Timestamp):
        return format_moment(cell, decimals)
    if isinstance(cell, float):
        if math.isnan(cell):
            return ""
        if decimals is None or abs(cell) >= 1e15 or math.isinf(cell):
            return f"{cell:.6g}"
        return f"{cell + 0.0:.{decimals}f}"
    return "" if cell is pd.NaT or cell is None or cell is pd.NA else str(cell)


def _marked(cells: Sequence[str]) -> list[str]:
    return [" ".join(cell.replace("|", "\\|").split()) for cell in cells]


def _listed(head: Sequence[str], row: Sequence[str]) -> str:
    return "\n".join(
        f"{'-' if i == 0 else ' '} {name}: {cell}"
        for i, (name, cell) in enumerate(zip(head, row, strict=True))
        if cell or i == 0
    )


# How an answer becomes a table ----------------------------------------------------------------------------------------


class Tabled(ABC):
    """What can be shown as a table: answers of a session, and what was made of them."""

    @abstractmethod
    def _shown(self, level: float, at_once: bool, of: str, n: Any) -> Shown:
        """What the table shows, with intervals as `interval` has them."""

    def table(
        self,
        level: float = 0.95,
        *,
        at_once: bool = False,
        wide: bool = False,
        of: str = "noise",
        n: Any = None,
    ) -> Table:
        """One tidy table: a row a number, with columns ``value``, ``lower``, ``upper``,
        ``std_error`` and ``flags``.

        Labels of rows and columns are columns with their own names, and ``measure`` says which
        number it is; so seaborn, altair and plotly take it as it is. With ``wide`` the rows are
        those of the answer, and each of its columns ``n`` has ``n_lower``, ``n_upper`` and
        ``n_flags`` beside it. Intervals are those of `interval`, with ``at_once`` for all numbers
        together. Where there is none the ends are empty, and ``flags`` says why; where no standard
        error can be stated, as of means, it is empty. ``.to_markdown()``, ``.to_html()`` and
        ``.to_csv()`` write it down. It costs nothing.

        With ``of="population"`` the ends cover what a sample says of a population too, as
        `interval` has it, and so does ``n``; the caption and the headers of what is written say so,
        and there is no standard error. It is refused where `interval` is.

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
        shown = self._shown(_validate.level(level), _validate.flag(at_once, "at_once"), of, n)
        made = _wide(shown) if _validate.flag(wide, "wide") else _long(shown)
        made.caption = f"{shown.caption}; {level * 100:.6g} % intervals of {OF[of]}" + (
            ", all at once" if at_once else ""
        )
        made.of = of
        return made


def one_row(
    name: Hashable,
    value: Any,
    ends: tuple[Any, Any],
    deviation: Any,
    caption: str,
    noise: bool,
    note: str,
    of: str,
) -> Shown:
    """A single number, as a table shows it."""
    sides = [(_cells(pd.Series([ends[0]])), _cells(pd.Series([ends[1]])))]
    return Shown(
        pd.Series([value]), sides, [deviation], caption, str(name), 0, [np.array([noise])], note, of
    )


def _cells(column: pd.Series[Any]) -> Any:
    """The cells of a column; those of times with a zone keep it."""
    return column.array if isinstance(column.dtype, pd.DatetimeTZDtype) else column.to_numpy()


def _measures(shown: Shown) -> list[tuple[Hashable, Any]]:
    """The columns of numbers, each with its label."""
    if isinstance(shown.answer, pd.Series):
        return [(shown.answer.name, _cells(shown.answer))]
    return [
        (label, _cells(shown.answer.iloc[:, i]))
        for i, label in enumerate(shown.answer.columns)
        if i >= shown.keys
    ]


def _keys(shown: Shown) -> list[tuple[Hashable, Any]]:
    """The labels of the rows: levels of the index, or columns; an index that only counts the rows
    is none."""
    if isinstance(shown.answer, pd.DataFrame) and shown.keys:
        return [(shown.answer.columns[i], shown.answer.iloc[:, i].array) for i in range(shown.keys)]
    index = shown.answer.index
    if isinstance(index, pd.RangeIndex) and index.name is None:
        return []
    return [(index.names[i], index.get_level_values(i)) for i in range(index.nlevels)]


def _flags(values: Any, low: Any, high: Any, noise: Any, shown: Shown) -> Any:
    """What is to be said of each number."""
    without = CHOSEN if shown.of == "noise" else UNDRAWN
    unbounded = np.zeros(len(low), dtype=bool)
    if low.dtype.kind not in "mMO":
        unbounded = np.isinf(low) | np.isinf(high)
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


def _side(end: Any) -> Any:
    """One side of intervals as an array: durations and times as they are, and all else as
    doubles."""
    if isinstance(getattr(end, "dtype", None), pd.DatetimeTZDtype):
        return end
    array = np.asarray(end)
    mixed = array.dtype == object and any(
        isinstance(v, pd.Timestamp | pd.Timedelta) or v is pd.NaT for v in array
    )
    return array if mixed or array.dtype.kind in "mM" else np.asarray(end, dtype=float)


def _columns(shown: Shown) -> Iterator[tuple[Hashable, Any, Any, Any, Any, Any]]:
    """The label of each column of numbers, with its values, the ends of its intervals, its
    deviation and what of it is noise."""
    noise = shown.noise or [False] * len(shown.ends)
    for (label, values), (low, high), deviation, flags in zip(
        _measures(shown), shown.ends, shown.deviations, noise, strict=True
    ):
        if deviation is not None and shown.of != "noise":
            deviation = math.nan  # it is that of the noise alone
        yield label, values, _side(low), _side(high), deviation, flags


def _long(shown: Shown) -> Table:
    keys, frame = _keys(shown), shown.answer
    levels = frame.columns.names if isinstance(frame, pd.DataFrame) else [None]
    parts = []
    for label, values, low, high, deviation, noise in _columns(shown):
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
            columns[_free(name, f"row_{i}" if len(keys) > 1 else "row", columns)] = cells
        for one, name in zip(labels, levels, strict=True):
            if name is not None:
                columns[_free(name, "column", columns)] = [one] * len(frame)
        own = {
            "measure": [", ".join(unnamed) or shown.measure] * len(frame),
            "value": values,
            "lower": low,
            "upper": high,
            "std_error": np.full(len(frame), math.nan)
            if deviation is None
            else deviation + np.zeros(len(frame)),
            "flags": _flags(values, low, high, noise, shown),
        }
        parts.append(pd.DataFrame({**columns, **own}))
    whole = _pandas.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    return Table(whole)


_OWN = ("measure", "value", "lower", "upper", "std_error", "flags")


def _free(name: Hashable, otherwise: str, taken: Any) -> str:
    """A plain name for a column of labels that no other has."""
    text = otherwise if name is None else str(name)
    while text in _OWN or text in taken:
        text += "_"
    return text


def _wide(shown: Shown) -> Table:
    frame = shown.answer
    columns: dict[str, Any] = (
        {str(name): cells for name, cells in _keys(shown)} if shown.keys else {}
    )
    for label, values, low, high, deviation, noise in _columns(shown):
        parts = label if isinstance(label, tuple) else (label,)
        name = "_".join(str(part) for part in parts if part is not None) or shown.measure
        while name in columns:
            name += "_"
        columns |= {name: values, f"{name}_lower": low, f"{name}_upper": high}
        if deviation is not None:
            columns[f"{name}_std_error"] = deviation + np.zeros(len(frame))
        columns[f"{name}_flags"] = _flags(values, low, high, noise, shown)
    return Table(pd.DataFrame(columns, index=frame.index.view()))
