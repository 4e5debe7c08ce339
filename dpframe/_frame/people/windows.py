"""Windows over a person's own rows, ``rolling(3).mean()`` and ``expanding().sum()``: the rows
before each row, put together.

*Formal guarantee.* What comes of it is an expression whose nodes are row-wise or `Within`, as of
every verb within a person.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from dpframe import _expr, _validate
from dpframe._errors import BadValue, NotOffered
from dpframe._expr import Expr
from dpframe._frame.people.steps import made
from dpframe._frame.tracked import Tracked, use_own_names
from dpframe._refusals import Unprinted

_LONGEST = 64  # rows of a window: each is a pass over the rows
_HERE = "sum, mean, var, std, min, max and count"
_LINE = (
    "Others are written with pandas' own in a function of the rows: p.pipe(f), or asked of smoothed answers: "
    "p.resample('D', on='t')['x'].mean().rolling(7).std()."
)
Each = Callable[[Callable[[Expr], Expr]], Any]


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
        self, frame: Tracked, each: Each, rows: int | None, least: int, groups: Any = None
    ):
        self._frame, self._each, self._rows, self._least, self._groups = (
            frame,
            each,
            rows,
            least,
            groups,
        )

    def __getitem__(self, key: Any) -> Window:
        if self._groups is None:
            raise NotOffered(
                use_own_names(
                    "a window of one column has no columns: p.groupby('patient_id')['x'].rolling(3).mean().",
                    self._frame._selection,
                )
            )
        chosen = self._groups[key]
        return Window(self._frame, chosen._each_row, self._rows, self._least, chosen)

    def sum(self) -> Any:
        """The sum of the window."""
        return self._each(self._sum)

    def mean(self) -> Any:
        """The mean of the window."""
        return self._each(self._mean)

    def var(self, ddof: int = 1) -> Any:
        """The variance of the window: of cells that are alike 0."""
        degrees = ddof_of(ddof)
        return self._each(lambda x: self._variance(x, degrees, "var"))

    def std(self, ddof: int = 1) -> Any:
        """The standard deviation of the window."""
        degrees = ddof_of(ddof)
        return self._each(
            lambda x: _expr.number_function("sqrt", self._variance(x, degrees, "std"))
        )

    def count(self) -> Any:
        """How many cells of the window are no nulls; of too few rows null."""
        return self._each(self._count)

    def min(self) -> Any:
        """The least of the window."""
        return self._each(lambda x: self._extreme("cummin", "minimum", x))

    def max(self) -> Any:
        """The greatest of the window."""
        return self._each(lambda x: self._extreme("cummax", "maximum", x))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise _refused(
            self._frame, f"a window of a person's rows has {_HERE}, and no {name!r}.", self._groups
        )

    # How they are made --------------------------------------------------------------------------------------------

    def _cells(self, x: Expr) -> list[Expr]:
        """The cells of each row's window, its own first."""
        assert self._rows is not None
        return [x, *(made(self._frame, "shift", x, (i,)) for i in range(1, self._rows))]

    def _sum(self, x: Expr) -> Expr:
        if self._rows is None:
            return self._where(x, _carried(self._frame, "cumsum", x))
        if self._least == self._rows:
            return _added(self._cells(x))
        return self._where(x, _added([_expr.fill(cell, 0) for cell in self._cells(x)]))

    def _mean(self, x: Expr) -> Expr:
        if self._rows is not None and self._least == self._rows:
            return _expr.operate("/", self._sum(x), _expr.constant(self._rows))
        found = _expr.operate("/", self._sum(x), self._present(x))
        # A quotient of numbers that may be zero has no bounds, and a mean those of its values.
        known = x.bounds(self._frame._selection.schema.bounds)
        return found if known is None else _expr.clip(found, *known)

    def _variance(self, x: Expr, ddof: int, verb: str) -> Expr:
        """The variance, from how far the other cells are from the row's own, which is within the
        window: what is subtracted is at most about as many times the variance as there are rows, so
        no digits of it are lost to cells that are large."""
        rows = self._rows
        if rows is None or self._least != rows:
            raise _refused(
                self._frame,
                f"{verb} of a window looks at whole windows, without min_periods=.",
                self._groups,
            )
        if rows <= ddof:
            raise BadValue(
                f"{verb} with ddof={ddof} needs windows of at least {ddof + 1} rows: rolling({ddof + 1})."
            )
        own, *others = self._cells(_expr.cast(x, "float"))
        away = [_expr.operate("-", cell, own) for cell in others or [own]]
        total, squares = _added(away), _added([_expr.operate("*", d, d) for d in away])
        middle = _expr.operate("/", _expr.operate("*", total, total), _expr.constant(rows))
        found = _expr.operate("/", _expr.operate("-", squares, middle), _expr.constant(rows - ddof))
        ends = x.bounds(self._frame._selection.schema.bounds)
        if ends is None:
            return _expr.clip(found, 0.0)  # where rounding goes below it
        # At most a quarter of the squared width each, as of values at the ends.
        most = (Fraction(ends[1]) - Fraction(ends[0])) ** 2 * Fraction(rows, 4 * (rows - ddof))
        return _expr.clip(found, *(_expr.outward(Fraction(0), most) or (0.0, None)))

    def _count(self, x: Expr) -> Expr:
        before = made(self._frame, "cumcount", None, (True,))
        return _expr.choose(
            _expr.compare(">=", before, _expr.constant(self._least - 1)), self._present(x), None
        )

    def _present(self, x: Expr) -> Expr:
        there = [
            _expr.cast(_expr.not_null(cell), "int")
            for cell in ([x] if self._rows is None else self._cells(x))
        ]
        return made(self._frame, "cumsum", there[0]) if self._rows is None else _added(there)

    def _where(self, x: Expr, value: Expr) -> Expr:
        """The value in rows that have enough cells in their window."""
        enough = _expr.compare(">=", self._present(x), _expr.constant(self._least))
        return _expr.choose(enough, value, None)

    def _extreme(self, running: str, pair: str, x: Expr) -> Expr:
        if self._rows is None:
            return self._where(x, _carried(self._frame, running, x))
        if self._least != self._rows:
            raise _refused(
                self._frame,
                "min and max of a window look at whole windows, without min_periods=.",
                self._groups,
            )
        return reduce(lambda a, b: _expr.number_function(pair, a, b), self._cells(x))


def _added(cells: Sequence[Expr]) -> Expr:
    return reduce(lambda a, b: _expr.operate("+", a, b), cells)


def _carried(frame: Tracked, how: str, x: Expr) -> Expr:
    """What comes up to each row, also in rows that have a null themselves."""
    return made(frame, "ffill", made(frame, how, x))


def _refused(frame: Tracked, text: str, groups: Any, line: str = _LINE) -> NotOffered:
    """The error about a window that there is not, in the names of the frame and of the column that
    was chosen."""
    return NotOffered(
        use_own_names(f"{text} {line}", frame._selection, None if groups is None else groups._asked)
    )


def rolling(
    frame: Tracked, each: Each, window: Any, min_periods: Any, words: Any, groups: Any = None
) -> Window:
    """The window of so many rows; one that is a time, or looks ahead, is refused."""
    if not isinstance(window, int) or isinstance(window, bool):
        line = _LINE
        if isinstance(window, str):
            on = words.get("on")
            t = repr(on if isinstance(on, str) else "t")
            line = (
                f"Those of a time are made by pandas' own in a function of the rows: p.dropna(subset={t}).pipe(lambda d: d."
                f"sort_values({t}, kind='stable').groupby('patient_id').rolling({window!r}, on={t})['x'].mean().reset_index())."
            )
        raise _refused(
            frame,
            "a window here is a number of a person's rows: p.groupby('patient_id')['x'].rolling(3).mean().",
            groups,
            line,
        )
    odd = [word for word, value in words.items() if value is not None and value is not False]
    if odd:
        raise _refused(
            frame, f"rolling has no {odd[0]}= here: a window ends with its own row.", groups
        )
    if not 1 <= window <= _LONGEST:
        raise BadValue(f"a window has 1 to {_LONGEST} rows here, not {window}.")
    least = window if min_periods is None else _validate.positive_int(min_periods, "min_periods")
    if least > window:
        raise BadValue(f"min_periods={least} is more than the {window} rows of the window.")
    return Window(frame, each, window, least, groups)


def ddof_of(value: Any) -> int:
    """The word ``ddof=`` of a person's rows, checked."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value not in (0, 1):
        raise BadValue("ddof must be 0 or 1.")
    return int(value)


def skewness(frame: Tracked, x: Expr) -> Expr:
    """The skewness of a person's values with pandas' correction: of fewer than three null, of equal
    ones 0."""
    away = _expr.operate("-", x, made(frame, "mean", x))
    squares, cubes = (
        made(frame, "sum", _expr.operate("**", away, _expr.constant(k))) for k in (2, 3)
    )
    n = made(frame, "count", x)
    root = _expr.operate("**", _expr.operate("-", n, _expr.constant(1)), _expr.constant(0.5))
    part = _expr.operate("/", _expr.operate("*", n, root), _expr.operate("-", n, _expr.constant(2)))
    shape = _expr.operate("/", cubes, _expr.operate("**", squares, _expr.constant(1.5)))
    level = _expr.choose(
        _expr.compare("==", squares, _expr.constant(0)), 0.0, _expr.operate("*", part, shape)
    )
    return _expr.choose(_expr.compare(">=", n, _expr.constant(3)), level, None)
