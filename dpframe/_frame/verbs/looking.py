"""Looking without looking: made-up rows, drawn from declared bounds and keys and from dtypes, and
the schema as pandas shows it.

*Formal guarantee.* Nothing here reads a cell, a category or the number of rows, so all of it is
free: what is shown is a function of public facts alone, and the same each time
(docs/guarantees/session.md).
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Hashable, Iterator, Mapping
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from dpframe import _pandas, _validate
from dpframe._errors import BadType, BadValue, Refused, caution
from dpframe._expr import Column, Expr
from dpframe._frame.selection import Schema, Selection, selection_of, session_of_frame
from dpframe._frame.tracked import Tracked
from dpframe._groups.keys import Keys
from dpframe._groups.periods import Span
from dpframe._refusals import refuse
from dpframe._session.card import Card
from dpframe._session.data import leaves_of
from dpframe._session.terms import declarations
from dpframe._types import Array, Series
from dpframe.engines.rows import FrameRows, frame_of

_MARK = "made-up rows: drawn from declared bounds and keys and from dtypes, not from the data"
_SHOWN = 100  # rows at most, for looking at
_DRAWN = 2**12  # rows among which those are looked for that a condition keeps
_YEAR = Span("2024-01-01T00:00:00", "2024-12-31T23:59:59")  # where no time is declared
_PERCENT = (0.0, 100.0)  # where no bounds are
_DAYS = 30  # of durations, where no bounds are
_TEXTS = 9  # different ones, where no keys are declared


class _Marked:
    """A mark on made-up rows: it is shown with them, and warns where a number is made of them."""

    def __repr__(self) -> str:
        return f"{_MARK}\n{super().__repr__()}"

    def _reduce(self, op: object, name: str, **words: object) -> Any:
        """Warn that a sum or a mean of made-up rows says nothing of the data, and compute it.

        pandas calls this for every reduction; ``name`` is its verb.
        """
        if name not in ("any", "all"):  # which are of conditions
            caution(
                "a number of made-up rows says nothing of the data. For a release ask p.count(), p.mean('x')."
            )
        return super()._reduce(op, name, **words)  # type: ignore[misc]  # pandas' own, of sums and means


class MadeUpColumn(_Marked, pd.Series):
    """A column of made-up rows."""

    @property
    def _constructor(self) -> Any:
        return MadeUpColumn

    @property
    def _constructor_expanddim(self) -> Any:
        return MadeUp


class MadeUp(_Marked, pd.DataFrame):
    """A frame of made-up rows; a pandas frame in all but what it says of itself."""

    @property
    def _constructor(self) -> Any:
        return MadeUp

    @property
    def _constructor_sliced(self) -> Any:
        return MadeUpColumn

    def _repr_html_(self) -> str | None:
        table = getattr(super(), "_repr_html_")()  # noqa: B009  (stubs leave it out)
        return None if table is None else f"<p><b>{escape(_MARK)}</b></p>{table}"


def head(self: Tracked, n: int = 5) -> pd.DataFrame:
    """Make up some rows, at most 100, as the declared bounds, keys and dtypes would have them:
    about nobody.

    They are the same each time, and free. New columns are computed from the made-up ones, and a
    condition keeps what it would keep. `dpframe.dummy` makes more of them, to write a notebook on.

    >>> df = pd.DataFrame({"age": [30, 41], "state": ["CA", "NY"]})
    >>> p = df.dp.open(1, bounds={"age": (0, 110)}, keys={"state": ["CA", "NY"]})
    >>> made = p.assign(months="age * 12").query("age > 50").head(3)
    >>> list(made.columns), len(made), bool((made["months"] == made["age"] * 12).all()), bool((made["age"] > 50).all())
    (['age', 'state', 'months'], 3, True, True)
    """
    return _make_up(self, _number(n, "head"))


def tail(self: Tracked, n: int = 5) -> pd.DataFrame:
    """Make up some rows, others than those of `head`."""
    return _make_up(self, _number(n, "tail"), _SHOWN)


def sample(
    self: Tracked,
    n: int | None = None,
    frac: float | None = None,
    replace: bool = False,
    weights: None = None,
    random_state: object = None,
    axis: object = None,
    ignore_index: bool = False,
) -> pd.DataFrame:
    """Return some made-up rows, ``n`` of them: see `head`.

    A sample of the rows themselves would hand out people.
    """
    if frac is not None or weights is not None:
        raise Refused(
            "a sample of rows is not private, and a share of them would tell how many there are. For some made-up rows write "
            "p.sample(5); every release already looks at all rows: p.count()."
        )
    if axis is not None and not _validate.among(axis, (0, "index", "rows")):
        raise Refused("a sample of columns is chosen by name: p[['x', 'y']].")
    _validate.flag(replace, "replace")
    _validate.flag(ignore_index, "ignore_index")
    return _make_up(self, _number(1 if n is None else n, "sample"), 2 * _SHOWN)


def _number(n: object, verb: str) -> int:
    """Return the number of made-up rows that a verb is asked for; refuse more than 100.

    ``n`` is the argument, and ``verb`` is named in messages.
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise BadType(
            f"{verb} shows a number of made-up rows: p.{verb}(5), not {type(n).__name__}."
        )
    if not 0 <= n <= _SHOWN:
        raise BadValue(
            f"{verb} shows 0 to {_SHOWN} made-up rows, not {n}. For a frame to write a notebook on: dpframe.dummy(p, rows=1000)."
        )
    return int(n)


def _make_up(frame: Tracked, rows: int, skip: int = 0) -> MadeUp:
    selection = selection_of(frame)
    return made_up(selection, session_of_frame(frame).leaves, rows, skip)


# The schema -------------------------------------------------------------------------------------------------------


def dtypes(self: Tracked) -> Series:
    """Return the dtype of each column, without the categories of a categorical one: these are cells
    of the data."""
    return schema_of(self._selection).dtypes


def info(
    self: Tracked,
    verbose: bool | None = None,
    buf: object = None,
    max_cols: int | None = None,
    memory_usage: object = None,
    show_counts: bool | None = None,
) -> None:
    """Print the columns with their dtypes, bounds and keys: all that is public of a column, and
    free. `dtypes` has the dtypes for a program to read, `head` made-up rows, and
    `PrivateFrame.card` the declarations as a file. How many cells are no nulls is a release:
    ``p.count("x")``, and what `describe` tells of values is one too.

    >>> df = pd.DataFrame({"age": [30, 41]})
    >>> df.dp.open(1, bounds={"age": (0, 110)}).info()
    <class 'dpframe.PrivateFrame'>
    Rows: not public: p.count()
    Columns: 1
      Column Dtype  Declared
    0  age    int64  0 to 110
    """
    if buf is not None and not hasattr(buf, "write"):
        raise BadType(f"buf= must be a file to print to, not {type(buf).__name__}.")
    selection = self._selection
    column_dtypes = schema_of(selection).dtypes
    table = pd.DataFrame(
        {
            "Column": list(map(str, selection.columns)),
            "Dtype": [str(dtype) for dtype in column_dtypes],
            "Declared": [
                _describe_declaration(selection, expr) for expr in selection.columns.values()
            ],
        }
    )
    rows = "not public: p.count()" if (row_count := _public_rows(self)) is None else str(row_count)
    lines = ["<class 'dpframe.PrivateFrame'>", f"Rows: {rows}", f"Columns: {len(table)}"]
    print(
        *lines, table.to_string(justify="left"), sep="\n", file=sys.stdout if buf is None else buf
    )


def _describe_declaration(selection: Selection, expr: Expr) -> str:
    """Return a text about what is declared of a column: bounds, range of times, or number of keys.

    It is empty if nothing is.
    """
    schema = selection.schema
    text = bounds_text(selection, expr)
    if text:
        return text
    if isinstance(expr, Column):
        if expr.position in schema.times:
            return str(schema.times[expr.position])
        if expr.position in schema.keys:
            return f"{len(schema.keys[expr.position])} keys"
    return ""


def bounds_text(selection: Selection, expr: Expr) -> str:
    """Return the bounds of numbers and durations as text, declared ones or those that follow; empty
    without any."""
    if expr.kind == "duration":
        ends = expr.interval(selection.ends)
        return (
            ""
            if ends is None
            else " to ".join(str(pd.Timedelta(int(end) // 1000, "us")) for end in ends)
        )
    pair = expr.bounds(selection.schema.bounds)
    return "" if pair is None or expr.kind != "number" else f"{pair[0]:g} to {pair[1]:g}"


class FrameShape:
    """``p.shape`` where the number of rows is not public: the number of columns is, as
    ``p.shape[1]``."""

    def __init__(self, columns: int):
        self._columns = columns

    def __getitem__(self, place: int) -> int:
        """Return the number of columns, ``p.shape[1]``, and refuse the number of rows,
        ``p.shape[0]``."""
        if place in (1, -1):
            return self._columns
        if place in (0, -2):
            refuse("shape")
        raise IndexError("a shape has two numbers")

    def __iter__(self) -> Iterator[int]:
        refuse("shape")

    def __len__(self) -> int:
        return 2

    def __repr__(self) -> str:
        return f"(not public, {self._columns})"


def shape(self: Tracked) -> tuple[int, int] | FrameShape:
    """Return the numbers of rows and columns.

    That of rows is refused when it is looked up, unless it is public.
    """
    rows, columns = _public_rows(self), len(self._selection.columns)
    return FrameShape(columns) if rows is None else (rows, columns)


def _public_rows(frame: Tracked) -> int | None:
    return session_of_frame(frame).public_rows if selection_of(frame).where is None else None


# Made-up rows -----------------------------------------------------------------------------------------------------


def dummy(
    of: object,
    rows: int = 1000,
    *,
    bounds: Mapping[Any, object] | None = None,
    keys: Mapping[Any, object] | None = None,
) -> pd.DataFrame:
    """Make a frame of made-up rows, to write a notebook on before there is a budget, or without
    touching it.

    ``of`` is a tracked frame, whose columns, bounds and keys it has; a card, by its path
    (``"visits.toml"``) or its text; or dtypes by column, such as ``df.dtypes`` or ``{"age":
    "int64"}``, with ``bounds=`` and ``keys=`` as `open` takes them. Columns are drawn independently
    of each other, evenly between their bounds or over their keys; there are no nulls.

    Formal guarantee: a function of what is declared and of dtypes alone. Nothing is read, so
    nothing is charged.

    >>> import dpframe
    >>> d = dpframe.dummy({"age": "int64", "state": "str"}, 50, bounds={"age": (0, 110)}, keys={"state": ["CA", "NY"]})
    >>> d.shape, bool(d["age"].between(0, 110).all()), sorted(d["state"].unique())
    ((50, 2), True, ['CA', 'NY'])
    >>> d.dp.open(1, bounds={"age": (0, 110)}).explain.mean("age", epsilon=0.5).mechanism
    'laplace'
    """
    number = _validate.positive_int(rows, "rows")
    _validate.length(range(number), "rows", 10**7)
    if isinstance(of, Tracked):
        if bounds is not None or keys is not None:
            raise BadType(
                "a tracked frame has bounds and keys already: leave bounds= and keys= out."
            )
        return made_up(selection_of(of), session_of_frame(of).leaves, number)
    if isinstance(of, str | os.PathLike):
        if bounds is not None or keys is not None:
            raise BadType("a card has bounds and keys already: leave bounds= and keys= out.")
        card = Card.of(of)
        words, stated = card.words, card.complete_dtypes()
        return dummy(stated, rows, bounds=words.get("bounds"), keys=words.get("keys"))
    if isinstance(of, pd.DataFrame):
        raise BadType("dummy takes dtypes and never the rows: dpframe.dummy(df.dtypes, ...).")
    if not isinstance(of, Mapping | pd.Series):
        raise BadType(
            f"dummy takes a tracked frame, a card, or dtypes by column, not {type(of).__name__}."
        )
    facts = _Facts(of, bounds, keys)
    return made_up(Selection(facts, facts.leaves), facts.leaves, number)


class _Facts:
    """The public facts of a frame that there is not yet."""

    tuples: Mapping[Any, Any] = {}  # nobody writes to it
    index_names: tuple[Hashable, ...] = ()
    unit: Any = None

    def __init__(self, dtypes: Any, bounds: object, keys: object):
        """Check dtypes, bounds and keys as `open` would, for a frame that does not exist yet.

        ``dtypes`` are by column.
        """
        names = list(dtypes.keys())
        try:
            self.dtypes = [pd.api.types.pandas_dtype(dtypes[name]) for name in names]
        except TypeError:
            raise BadType(
                "dtypes are given as pandas takes them: {'age': 'int64', 'state': 'str'}."
            ) from None
        self.leaves = leaves_of(pd.Index(names, tupleize_cols=False), self.dtypes)
        numbers, times, listed = declarations(self.leaves, bounds, keys)
        self.bounds, self.times, self.keys = dict(numbers), dict(times), dict(listed)


def made_up(
    selection: Selection, leaves: Mapping[Hashable, Column], rows: int, skip: int = 0
) -> MadeUp:
    """Return made-up rows of a selection, drawn from public facts alone.

    ``leaves`` are the columns of the opened frame. ``skip`` passes over rows, so that other ones
    are returned. If the condition keeps none of the drawn rows, there are no rows.
    """
    drawn = rows + skip if selection.where is None else max(_DRAWN, 4 * (rows + skip))
    names, exprs = list(selection.columns), list(selection.columns.values())
    read = FrameRows(_root(selection.schema, leaves, drawn))
    places = read.kept(selection.where)
    # In a circle, so that there are as many as were asked for wherever any is kept.
    chosen = places[(skip + np.arange(rows)) % len(places)] if len(places) else places
    arrays = [read.array(expr).take(chosen) for expr in exprs]
    return MadeUp(frame_of(arrays, names))


def schema_of(selection: Selection) -> pd.DataFrame:
    """Return a frame without rows that has the columns of a selection in their dtypes."""
    empty = FrameRows(_root(selection.schema, selection.schema.leaves, 0))
    arrays = [empty.array(expr) for expr in selection.columns.values()]
    return frame_of(arrays, list(selection.columns))


def _root(schema: Schema, leaves: Mapping[Hashable, Column], rows: int) -> pd.DataFrame:
    """Make up rows of the opened frame, to which steps and conditions are then applied.

    ``leaves`` are its columns, and ``schema`` has what is declared of them.
    """
    arrays = [
        _cells(leaf, schema.dtypes[leaf.position], schema, rows).array for leaf in leaves.values()
    ]
    return frame_of([a.to_numpy() if isinstance(a.dtype, np.dtype) else a for a in arrays])


def _cells(leaf: Column, dtype: Any, schema: Schema, rows: int) -> Series:
    """Make up the values of one column, by what is declared of it and by its dtype.

    ``leaf`` is the column, ``schema`` has the declarations, and ``rows`` is the number of values.
    """
    dtype = public_dtype(dtype)
    keys, pair = schema.keys.get(leaf.position), schema.bounds.get(leaf.position)
    even = _even(f"{leaf.name!r} {dtype} {pair} {'' if keys is None else keys.token}", rows)
    if keys is not None:
        cells = _make_from_keys(keys, even)
    elif leaf.kind == "number":
        cells = _numbers(leaf, dtype, pair or _PERCENT, even)
    elif leaf.kind == "bool":
        cells = pd.Series(even < 0.5)
    elif leaf.kind == "time":
        cells = _times(schema.times.get(leaf.position, _YEAR), leaf.tz, even)
    elif getattr(dtype, "kind", "") == "m":
        low, high = pair or (0.0, _DAYS * 86400e9)
        seconds = low / 1e9 + even * ((high - low) / 1e9)
        cells = pd.Series(_pandas.to_timedelta((seconds * 1e6).astype(np.int64), unit="us"))
    elif leaf.kind in ("text", "label"):
        cells = pd.Series([f"{leaf.name} {1 + int(e * _TEXTS)}" for e in even], dtype=object)
    else:
        cells = pd.Series([None] * rows, dtype=object)
    try:
        return cells.astype(dtype)
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        # A dtype may have rules of its own, which made-up cells do not meet.
        return cells


def public_dtype(dtype: object) -> Any:
    """Return a dtype without the values that it may hold, which are private.

    These are the categories of a categorical dtype, and the fill value of a sparse one.
    """
    if isinstance(dtype, pd.CategoricalDtype):
        return pd.CategoricalDtype()
    return dtype.subtype if isinstance(dtype, pd.SparseDtype) else dtype


def _even(seed: str, rows: int) -> Array:
    """Return numbers in [0, 1), evenly spread, that a text decides."""
    stream = hashlib.shake_256(seed.encode("utf-8", "surrogatepass")).digest(8 * rows)
    return (np.frombuffer(stream, dtype="<u8") >> np.uint64(11)) * 2.0**-53


def _make_from_keys(keys: Keys, even: Any) -> Series:
    known = [key for i, key in enumerate(keys.index.tolist()) if i != keys.null] or [None]
    return pd.Series([known[int(e * len(known))] for e in even], dtype=object)


def _numbers(leaf: Column, dtype: object, pair: tuple[float, float], even: Any) -> Series:
    """Make up numbers between public bounds.

    ``even`` are numbers in [0, 1), which become numbers between the bounds, in steps that fit the
    column.
    """
    low, high = pair
    if isinstance(dtype, np.dtype) and dtype.kind in "iu":
        kinds = np.iinfo(dtype)
        low, high = max(low, float(kinds.min)), min(high, float(kinds.max))
    with np.errstate(all="ignore"):
        values = low + (high - low) * even
        if not leaf.integral:
            digits = 2 - int(np.floor(np.log10(high - low))) if high > low else 0
            return pd.Series(np.clip(np.round(values, max(min(digits, 300), 0)), low, high))
        return pd.Series(
            np.clip(np.floor(values + 0.5), np.ceil(low), np.floor(high)).astype(np.int64)
        )


def _times(span: Span, zone: str | None, even: Any) -> Series:
    """Make up times between a public first and last moment.

    ``even`` are numbers in [0, 1), which become moments in between. ``zone`` is the time zone of
    the column, or None.
    """
    first, last = pd.Timestamp(span.first), pd.Timestamp(span.last)
    seconds = int((last - first).total_seconds())
    moments = pd.Series(
        first + _pandas.to_timedelta((even * (seconds + 1)).astype(np.int64), unit="s")
    )
    if zone is None:
        return moments if moments.dt.tz is None else moments.dt.tz_localize(None)
    return (
        moments.dt.tz_localize("UTC").dt.tz_convert(zone)
        if moments.dt.tz is None
        else moments.dt.tz_convert(zone)
    )
