"""Windows over a person's own rows, ``rolling(3).mean()`` and ``expanding().sum()``.

*Formal guarantee.* What a window makes is an expression whose nodes are row-wise or `Within`, as of
every verb within a person.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

from dpframe import _expr, _validate
from dpframe._errors import BadValue, NotOffered
from dpframe._expr import Expr
from dpframe._frame.people.verbs import Build
from dpframe._frame.people.within import build_within, check_ddof
from dpframe._frame.selection import Selection
from dpframe._frame.tracked import use_own_names
from dpframe._refusals import Unprinted

_LONGEST = 64  # rows of a window: each is a pass over the rows
_VERBS = "sum, mean, var, std, min, max and count"
_LINE = (
    "Others are written with pandas' own in a function of the rows: p.pipe(f), or asked of "
    "smoothed answers: p.resample('D', on='t')['x'].mean().rolling(7).std()."
)


class Window(Unprinted):
    """``p.groupby("patient_id")["cost"].rolling(3)``: a value in each row, of it and the person's
    rows right before it.

    A row has a null where a cell of its window is null or there are too few rows; with
    ``min_periods`` where fewer are there.

    >>> import pandas as pd
    >>> visits = pd.DataFrame({"id": [1, 1, 1, 2], "cost": [10.0, 30.0, 10.0, 6.0]})
    >>> p = visits.dp.open(1000, unit="id", max_rows=3, max_groups=1, bounds={"cost": (0, 100)})
    >>> p["smooth"] = p.groupby("id")["cost"].rolling(2).mean()
    >>> int(p["smooth"].count(epsilon=100)), round(float(p["smooth"].mean(epsilon=800)))
    (2, 20)
    """

    def __init__(
        self,
        selection: Selection,
        make_rows: Callable[[Build], object],
        rows: int | None,
        least: int,
        column: Hashable = None,
        choose: Callable[[Any], Window] | None = None,
    ):
        """Describe the windows over each person's rows, before a verb such as `mean` is called.

        ``make_rows`` builds an expression of each column. ``rows`` is the length of the window,
        None for all rows up to each, and ``least`` the number of cells that it needs. ``column`` is
        the chosen column, for messages, and ``choose`` gives the window of other columns.
        """
        self._selection, self._make_rows = selection, make_rows
        self._rows, self._least, self._column, self._choose = rows, least, column, choose

    def __getitem__(self, key: object) -> Window:
        """Return the same windows of the named column or columns.

        A window of one column has none to choose.
        """
        if self._choose is None:
            raise NotOffered(
                use_own_names(
                    "a window of one column has no columns: "
                    "p.groupby('patient_id')['x'].rolling(3).mean().",
                    self._selection,
                )
            )
        return self._choose(key)

    def _apply(self, build: Callable[[Expr], Expr]) -> Any:
        """Return what is built of the cells of each column's window."""
        return self._make_rows(lambda selection, x: build(x))

    def sum(self) -> Any:
        """Return the sum of the window."""
        return self._apply(self._sum)

    def mean(self) -> Any:
        """Return the mean of the window."""
        return self._apply(self._mean)

    def var(self, ddof: int = 1) -> Any:
        """Return the variance of the window, 0 for equal cells."""
        degrees = check_ddof(ddof)
        return self._apply(lambda x: self._variance(x, degrees, "var"))

    def std(self, ddof: int = 1) -> Any:
        """Return the standard deviation of the window."""
        degrees = check_ddof(ddof)
        return self._apply(
            lambda x: _expr.number_function("sqrt", self._variance(x, degrees, "std"))
        )

    def count(self) -> Any:
        """Return how many cells of the window are not null; null for too few rows."""
        return self._apply(self._count)

    def min(self) -> Any:
        """Return the least cell of the window."""
        return self._apply(lambda x: self._extreme("cummin", "minimum", x))

    def max(self) -> Any:
        """Return the greatest cell of the window."""
        return self._apply(lambda x: self._extreme("cummax", "maximum", x))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise self._refuse(f"a window of a person's rows has {_VERBS}, and no {name!r}.")

    # Expressions of a window ---------------------------------------------------------------------

    def _refuse(self, text: str) -> NotOffered:
        """Return an error in the names of the frame and of the chosen column."""
        return _refuse_window(self._selection, self._column, text)

    def _cells(self, x: Expr) -> list[Expr]:
        """Return the cells of each row's window, the row's own first."""
        assert self._rows is not None
        return [x, *(build_within(self._selection, "shift", x, (i,)) for i in range(1, self._rows))]

    def _sum(self, x: Expr) -> Expr:
        """Return the sum of column ``x`` over the window, null where it has too few values."""
        if self._rows is None:
            return self._keep_full(x, self._carry("cumsum", x))
        if self._least == self._rows:
            return _add(self._cells(x))
        return self._keep_full(x, _add([_expr.fill(cell, 0) for cell in self._cells(x)]))

    def _mean(self, x: Expr) -> Expr:
        """Return the mean of column ``x`` over the window, clipped to the bounds of the column."""
        if self._rows is not None and self._least == self._rows:
            return _expr.operate("/", self._sum(x), _expr.constant(self._rows))
        found = _expr.operate("/", self._sum(x), self._count_present(x))
        # A quotient by a number that may be zero has no bounds, but a mean has those of its cells.
        known = x.bounds(self._selection.schema.bounds)
        return found if known is None else _expr.clip(found, *known)

    def _variance(self, x: Expr, ddof: int, verb: str) -> Expr:
        """Return the variance of column ``x`` over the window.

        ``ddof`` is as in pandas, and ``verb`` is for the message. The variance is computed from the
        distances of all cells to the row's own cell: the sum of their squares, less the square of
        their sum over the number of rows. So large cells of a small variance lose no digits.
        """
        rows = self._rows
        if rows is None or self._least != rows:
            raise self._refuse(f"{verb} of a window looks at whole windows, without min_periods=.")
        if rows <= ddof:
            raise BadValue(
                f"{verb} with ddof={ddof} needs windows of at least {ddof + 1} rows: rolling({ddof + 1})."
            )
        own, *others = self._cells(_expr.cast(x, "float"))
        away = [_expr.operate("-", cell, own) for cell in others or [own]]
        total, squares = _add(away), _add([_expr.operate("*", d, d) for d in away])
        middle = _expr.operate("/", _expr.operate("*", total, total), _expr.constant(rows))
        found = _expr.operate("/", _expr.operate("-", squares, middle), _expr.constant(rows - ddof))
        ends = x.bounds(self._selection.schema.bounds)
        if ends is None:
            return _expr.clip(found, 0.0)  # rounding may go below 0
        # Values at the ends have the greatest variance: a quarter of the squared width each.
        most = (Fraction(ends[1]) - Fraction(ends[0])) ** 2 * Fraction(rows, 4 * (rows - ddof))
        return _expr.clip(found, *(_expr.outward(Fraction(0), most) or (0.0, None)))

    def _count(self, x: Expr) -> Expr:
        """Return how many cells of the window are not null, null where it has too few rows."""
        before = build_within(self._selection, "cumcount", None, (True,))
        enough = _expr.compare(">=", before, _expr.constant(self._least - 1))
        return _expr.choose(enough, self._count_present(x), None)

    def _count_present(self, x: Expr) -> Expr:
        """Return how many values of column ``x`` in the window are not null."""
        there = [
            _expr.cast(_expr.not_null(cell), "int")
            for cell in ([x] if self._rows is None else self._cells(x))
        ]
        if self._rows is None:
            return build_within(self._selection, "cumsum", there[0])
        return _add(there)

    def _carry(self, how: str, x: Expr) -> Expr:
        """Return a running result, also in rows whose own cell is null."""
        running = build_within(self._selection, how, x)
        return build_within(self._selection, "ffill", running)

    def _keep_full(self, x: Expr, value: Expr) -> Expr:
        """Return the value in rows that have enough cells in their window, null in others."""
        enough = _expr.compare(">=", self._count_present(x), _expr.constant(self._least))
        return _expr.choose(enough, value, None)

    def _extreme(self, running: str, pair: str, x: Expr) -> Expr:
        """Return the least or the greatest value of column ``x`` in the window.

        ``running`` is the verb for all rows up to each, and ``pair`` the function of two values.
        """
        if self._rows is None:
            return self._keep_full(x, self._carry(running, x))
        if self._least != self._rows:
            raise self._refuse(
                "min and max of a window look at whole windows, without min_periods=."
            )
        return reduce(lambda a, b: _expr.number_function(pair, a, b), self._cells(x))


def _add(cells: Sequence[Expr]) -> Expr:
    return reduce(lambda a, b: _expr.operate("+", a, b), cells)


def _refuse_window(
    selection: Selection, column: Hashable, text: str, line: str = _LINE
) -> NotOffered:
    """Return the error about a window that is not offered, in the names of the frame."""
    return NotOffered(use_own_names(f"{text} {line}", selection, column))


def read_window(
    selection: Selection,
    column: Hashable,
    window: object,
    min_periods: object,
    words: Mapping[str, object],
) -> tuple[int, int]:
    """Return the length of a window, and how many values it needs, from the arguments of `rolling`.

    ``words`` are its other arguments. A window of time, and one that looks ahead, are refused.
    """
    if not isinstance(window, int) or isinstance(window, bool):
        line = _LINE
        if isinstance(window, str):
            on = words.get("on")
            t = repr(on if isinstance(on, str) else "t")
            line = (
                "Those of a time are made by pandas' own in a function of the rows: "
                f"p.dropna(subset={t}).pipe(lambda d: d.sort_values({t}, kind='stable')"
                f".groupby('patient_id').rolling({window!r}, on={t})['x'].mean().reset_index())."
            )
        text = (
            "a window here is a number of a person's rows: "
            "p.groupby('patient_id')['x'].rolling(3).mean()."
        )
        raise _refuse_window(selection, column, text, line)
    odd = [word for word, value in words.items() if value is not None and value is not False]
    if odd:
        text = f"rolling has no {odd[0]}= here: a window ends with its own row."
        raise _refuse_window(selection, column, text)
    if not 1 <= window <= _LONGEST:
        raise BadValue(f"a window has 1 to {_LONGEST} rows here, not {window}.")
    least = window if min_periods is None else _validate.positive_int(min_periods, "min_periods")
    if least > window:
        raise BadValue(f"min_periods={least} is more than the {window} rows of the window.")
    return window, least
