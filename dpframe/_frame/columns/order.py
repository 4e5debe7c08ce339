"""The verbs that choose points of columns by their order: quantiles, medians and extremes, of frames
and of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from dpframe._answers import answer as _release
from dpframe._errors import BadType, BadValue
from dpframe._frame.selection import BoundsLike
from dpframe._frame.signatures import verb
from dpframe._frame.verbs.measure import Measurable, MeasureKeywords, is_across
from dpframe._groups.keys import EVERY
from dpframe._plans.order import QuantileLevels as Asked
from dpframe._plans.order import choose_quantile_method, read_levels
from dpframe._plans.price import check_payment


@verb
def quantile(
    self: Measurable,
    column: Any = EVERY,
    q: Any = 0.5,
    bounds: BoundsLike = None,
    *,
    resolution: float | None = None,
    method: str = "auto",
    **payment: Unpack[MeasureKeywords],
) -> Any:
    """Return the value below which a share ``q`` of a column's values lies.

    For a list of shares it is a Series by them.

    The answer is a point of a public grid between the bounds, on which values are clipped and
    rounded: whole numbers where the column has them and they are fewer than 4096, else at most 4096
    points a power of two apart, or ``resolution`` apart (rounded down to a power of two). No
    candidates are needed, and nulls count for nothing. ``explain`` tells by how many ranks the
    answer may miss, and ``within=`` is a number of ranks. Several levels are one release with one
    price, and come back in order.

    ``method="choose"`` picks a point for each level, which share the price. A sixteenth of it counts
    the values around the choices, for their intervals. ``"tree"`` releases the whole distribution:
    its error does not grow with the number of levels. ``"auto"`` chooses for up to eight levels.

    Formal guarantee: epsilon-DP for its price, by report-noisy-max over the points, or by noise on
    a tree of counts (docs/guarantees/quantiles.md).

    >>> import pandas as pd
    >>> df = pd.DataFrame({"age": [20] * 50 + [30] * 100 + [70] * 50})
    >>> p = df.dp.open(100, bounds={"age": (0, 110)})
    >>> p.quantile("age", [0.1, 0.5, 0.9], epsilon=80)
    0.1    20 ± 0
    0.5    30 ± 0
    0.9    70 ± 0
    Name: age, dtype: float64
    """
    if isinstance(column, float | int | list | np.ndarray) and not self._is_column(column):
        # As pandas has it: levels first. What comes second then are bounds, as the other verbs take
        # them there.
        column, q, bounds = EVERY, column, bounds if isinstance(q, float) and q == 0.5 else q
    levels = _levels(q, payment)
    how = choose_quantile_method(len(levels.exact), method)
    return _ask_quantiles(self, levels, column, bounds, resolution, payment, how)


@verb
def median(
    self: Measurable,
    column: object = EVERY,
    bounds: BoundsLike = None,
    *,
    resolution: float | None = None,
    **payment: Unpack[MeasureKeywords],
) -> Any:
    """Return a value with half of the column's values on either side: ``quantile`` at 0.5, and the
    same question.

    Between two middle values any point may be chosen, where pandas takes their mean.

    Formal guarantee: epsilon-DP for its price; see `quantile`.

    >>> import pandas as pd
    >>> df = pd.DataFrame({"age": [20, None, 30, 30, 31, 90] * 20})
    >>> p = df.dp.open(100, bounds={"age": (0, 110)})
    >>> p.median("age", epsilon=80, resolution=1)
    30 ± 0
    """
    return _ask_quantiles(self, _levels(0.5, payment), column, bounds, resolution, payment)


@verb
def min(
    self: Measurable,
    column: object = EVERY,
    bounds: BoundsLike = None,
    *,
    q: object = 0.01,
    resolution: float | None = None,
    **payment: Unpack[MeasureKeywords],
) -> Any:
    """Return a value near the least: the 1 % quantile, or that of another small ``q``.

    The least value itself is one person's, and no private answer can be near it whatever the data.

    Formal guarantee: epsilon-DP for its price; see `quantile`.
    """
    return _extreme(self, "min", column, q, bounds, resolution, payment)


@verb
def max(
    self: Measurable,
    column: object = EVERY,
    bounds: BoundsLike = None,
    *,
    q: object = 0.99,
    resolution: float | None = None,
    **payment: Unpack[MeasureKeywords],
) -> Any:
    """Return a value near the greatest: the 99 % quantile, or that of another large ``q``.

    The greatest value itself is one person's, and no private answer can be near it whatever the
    data.

    Formal guarantee: epsilon-DP for its price; see `quantile`.
    """
    return _extreme(self, "max", column, q, bounds, resolution, payment)


def _extreme(
    self: Measurable,
    verb: str,
    column: object,
    q: object,
    bounds: BoundsLike,
    resolution: float | None,
    payment: Mapping[str, object],
) -> Any:
    """Ask for a quantile near the least or the greatest value, as the verbs `min` and `max` do.

    ``q`` is the level of the quantile, and ``payment`` holds the keyword arguments of the price.
    With ``axis=1`` the result is a column with the extreme of each row instead.
    """
    if "axis" in payment and is_across(column, payment):
        return self._across(verb, payment)
    return _ask_quantiles(self, _levels(q, payment, one=True), column, bounds, resolution, payment)


def _ask_quantiles(
    self: Measurable,
    levels: Asked,
    column: Any,
    bounds: BoundsLike,
    resolution: float | None,
    payment: Any,
    how: str = "quantile",
) -> Any:
    """Ask for quantiles of columns, and return them as pandas lays them out.

    ``levels`` are the shares of values below each answer, and ``how`` names the aggregate that
    finds them. ``resolution`` is the distance of the candidate values. One level gives a number for
    each column. Several levels of one column give a Series, and of several columns a table.
    """
    names, single = self._columns_for(column, "quantile", payment.get("numeric_only") is True)
    order = self._selection.order
    if not levels.several:
        outs = [order(name, levels.exact[0], bounds, resolution, how=how) for name in names]
        return self._ask_for(outs, payment, single=single, choices=True)
    many = [
        (name, *level) for name in names for level in zip(levels.typed, levels.exact, strict=True)
    ]
    cells = [order(name, level, bounds, resolution, at, how) for name, at, level in many]
    if not single:
        return self._ask_for(
            cells, payment, _release.grid(cells, [(at, name) for name, at, _ in many])
        )
    label = self._selection.find_column(names[0])[1]
    return self._ask_for(
        cells, payment, lambda r, index: _release.levels(r, index, levels.typed, label)
    )


def _levels(q: object, payment: Mapping[str, object], one: bool = False) -> Asked:
    """Return the levels of ``q=``, after checking the other keyword arguments.

    With ``one`` only a single level is allowed.
    """
    if "candidates" in payment:
        raise BadValue(
            "quantiles take no candidates=: bounds= are enough, and resolution= says how fine."
        )
    check_payment(payment)
    levels = read_levels(q)
    if one and levels.several:
        raise BadType("q= is one number here. For several levels ask quantile.")
    return levels


# What the verbs of one level return of each group.
GROUP_DOCS = {
    "median": "median",
    "min": "value near the least",
    "max": "value near the greatest",
}
