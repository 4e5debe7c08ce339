"""Pictures in one call: a release and its picture, `hist` and `boxplot`, and ``plot`` as pandas has
it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Unpack, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe import _validate
from dpframe import plot as _plot
from dpframe._errors import BadType, BadValue, NotOffered
from dpframe._frame.columns import order
from dpframe._frame.selection import BoundsLike, session_of_frame
from dpframe._frame.signatures import verb
from dpframe._frame.tracked import Tracked
from dpframe._frame.verbs.groupings import groupby
from dpframe._frame.verbs.summaries import histogram, list_bounded_numbers
from dpframe._groups.keys import EVERY
from dpframe._plans.price import Payment
from dpframe._refusals import Unprinted
from dpframe._session.batch import Batch

_BOX = (0.01, 0.25, 0.5, 0.75, 0.99)  # the ends of the whiskers, the box, and the line in it


@verb
def hist(
    self: Tracked,
    column: object = EVERY,
    *,
    by: None = None,
    bins: object = 10,
    ax: object = None,
    figsize: object = None,
    title: str | None = None,
    color: object = None,
    bounds: BoundsLike = None,
    **payment: Unpack[Payment],
) -> Any:
    """Draw a `histogram` with its intervals; take and return matplotlib axes.

    Of a list of columns, or of all numbers with bounds where none is named, an array of axes: each
    is a release of its own at the price that is given, and all are paid together. To have the
    numbers too, ask `histogram`, and then ``answer.dp.plot()``, which takes more words for a
    picture.

    Formal guarantee: as of `histogram`.

    >>> df = pd.DataFrame({"age": [30, 41, 85]})
    >>> p = df.dp.open(100, bounds={"age": (0, 100)})
    >>> axes = p.hist("age", bins=4, epsilon=80)
    >>> axes.get_xlabel()
    'age'
    """
    if by is not None:
        raise NotOffered(
            "hist has no by= here. Choose the rows: p[p['state'] == 'CA'].hist('age')."
        )
    _plot.needs_matplotlib()
    drawing = _drawing(title=title, color=color)
    if column is not EVERY and not isinstance(column, list):
        axes = _plot.panels_for(1, ax, _size(figsize))[0] if not self._mode.shows else None
        answer: Any = histogram(self, column, bins, bounds=bounds, **payment)
        return answer.dp.plot(ax=axes, **drawing) if isinstance(answer, pd.Series) else answer
    names = list_bounded_numbers(self, bounds) if column is EVERY else column
    if not names:
        raise BadValue("no columns are named, so nothing is drawn.")
    if self._mode.answers_later:
        raise BadValue(
            "in plan_ahead ask histogram, and draw its answer after the block: place.answer.dp.plot()."
        )
    if self._mode.shows:
        return [histogram(self, name, bins, bounds=bounds, **payment) for name in names]
    panels = _plot.panels_for(len(names), ax, _size(figsize))
    with Batch(self, session_of_frame(self)) as batch:
        places = [
            cast(Any, batch).histogram(name, bins, bounds=bounds, **payment) for name in names
        ]
    for place, axes in zip(places, panels, strict=True):
        place.answer.dp.plot(ax=axes, **drawing)
    return panels


@verb
def boxplot(
    self: Tracked,
    column: object = EVERY,
    by: object = None,
    *,
    ax: object = None,
    figsize: object = None,
    title: str | None = None,
    rot: float = 0,
    bounds: BoundsLike = None,
    **payment: Unpack[Payment],
) -> Any:
    """Draw boxes of quartiles with whiskers from the 1 % to the 99 % quantile, for columns or for
    the groups of one. Takes and returns matplotlib axes. No single value is drawn beyond the
    whiskers, since it would be one person's. Boxes of noise are hatched.

    Formal guarantee: this asks `quantile` with five levels, and has its guarantee.

    >>> df = pd.DataFrame({"age": [30, 41, 85] * 100, "state": ["CA", "NY", "NY"] * 100})
    >>> p = df.dp.open(100, bounds={"age": (0, 100)}, keys={"state": ["CA", "NY"]})
    >>> [label.get_text() for label in p.boxplot("age", by="state", epsilon=80).get_xticklabels()]
    ['CA', 'NY']
    """
    _plot.needs_matplotlib()
    drawing, turned = _drawing(title=title), _validate.real(rot, "rot")
    axes = _plot.panels_for(1, ax, _size(figsize))[0] if not self._mode.shows else None
    if by is None:
        names = list_bounded_numbers(self, bounds) if column is EVERY else column
        names = names if isinstance(names, list) else [names]
        columns = _validate.column_names(
            [self._selection.find_column(name)[1] for name in names], self._selection.columns
        )
        chosen = self._new(
            self._selection.replace_columns({n: self._selection.columns[n] for n in columns})
        )
        answer = order.quantile(chosen, list(_BOX), bounds=bounds, **payment)
        labels: Sequence[Any] = columns
    else:
        if column is EVERY or isinstance(column, list):
            raise BadType("boxplot in groups is of one column: p.boxplot('cost', by='state').")
        groups = cast(Any, groupby(self, by)[column])  # perhaps those of each person
        answer = groups.quantile(list(_BOX), bounds=bounds, **payment)
        labels = ()
    if not isinstance(answer, pd.Series | pd.DataFrame):
        return answer
    if isinstance(answer, pd.Series):
        labels = list(dict.fromkeys(cast(pd.MultiIndex, answer.index).droplevel([-1])))
        values = answer.to_numpy(dtype=float).reshape(-1, len(_BOX))
    else:
        values = answer.to_numpy(dtype=float).T
    reliable = cast(Any, answer).dp.reliable.to_numpy()
    noise = ~(reliable.reshape(-1, len(_BOX)) if reliable.ndim == 1 else reliable.T)
    texts = [_label(label) for label in labels]
    return _boxes(values, noise[:, 1:4].any(axis=1), texts, axes, turned, drawing)


def _boxes(
    values: NDArray[np.float64],
    noise: NDArray[np.bool_],
    labels: list[str],
    axes: Any,
    turned: float,
    options: dict[str, Any],
) -> Any:
    """Draw a box for each row of five rising numbers, and return the axes.

    They are the lower whisker, the box with the line in it, and the upper whisker. ``noise`` flags
    the boxes in which a quartile is noise: they are hollow and hatched. ``turned`` is the angle of
    the labels.
    """
    names = ("whislo", "q1", "med", "q3", "whishi")
    stats = [
        {**dict(zip(names, map(float, row), strict=True)), "label": label, "fliers": []}
        for row, label in zip(values, labels, strict=True)
    ]
    drawn = axes.bxp(
        stats,
        showfliers=False,
        patch_artist=True,
        boxprops={"facecolor": _plot.COLORS[4]},
        medianprops={"color": _plot.INK},
    )
    _plot.hatch_boxes(axes, [box for box, flag in zip(drawn["boxes"], noise, strict=True) if flag])
    axes.tick_params(axis="x", rotation=turned)
    if "title" in options:
        axes.set_title(options["title"])
    return axes


def _label(label: object) -> str:
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _size(figsize: object) -> Any:
    """Return the width and the height of a picture in inches, or None."""
    if figsize is None:
        return None
    if not isinstance(figsize, tuple | list) or len(figsize) != 2:
        raise BadType("figsize= is a width and a height in inches: figsize=(6, 4).")
    width, height = (_validate.real(side, "figsize") for side in figsize)
    if not 0 < min(width, height) <= max(width, height) < 200:
        raise BadValue("figsize= must be two positive numbers of inches, such as (6, 4).")
    return width, height


def _drawing(title: object = None, color: object = None) -> dict[str, Any]:
    """Check the title and the color of a picture, and return those that are given, by name."""
    if title is not None and not isinstance(title, str):
        raise BadType("title= must be a text.")
    if color is not None:
        from matplotlib.colors import is_color_like

        if not isinstance(color, str | tuple) or not is_color_like(color):
            raise BadValue("color= must be a color, such as 'tab:blue'.")
    return {
        word: value for word, value in (("title", title), ("color", color)) if value is not None
    }


class Plots(Unprinted):
    """``p.plot`` and ``p["x"].plot``: pictures of releases, where pandas' are of rows."""

    def __init__(self, frame: Tracked, column: object = EVERY):
        self._frame, self._column = frame, column

    def __call__(self, kind: object = "line", **words: Any) -> Any:
        """Draw a picture of a kind: ``"hist"`` or ``"box"``; others would draw rows."""
        column = words.pop("y", self._column)
        if words.pop("x", None) is None and isinstance(kind, str) and kind in ("hist", "box"):
            return (
                hist(self._frame, column, **words)
                if kind == "hist"
                else boxplot(self._frame, column, **words)
            )
        raise NotOffered(
            f"a picture of kind {kind!r} would draw the rows of people. There are .plot.hist() and .plot.box(); others are drawn "
            "of an answer: p.groupby('state')['cost'].mean().dp.plot()."
        )

    def hist(self, by: None = None, bins: object = 10, **words: Any) -> Any:
        """Draw a histogram; see `PrivateFrame.hist`."""
        return hist(self._frame, words.pop("y", self._column), by=by, bins=bins, **words)

    def box(self, by: object = None, **words: Any) -> Any:
        """Draw boxes of quartiles; see `PrivateFrame.boxplot`."""
        return boxplot(self._frame, words.pop("y", self._column), by, **words)

    def _find_unknown(self, name: str) -> NoReturn:
        """Refuse a kind of picture that would draw rows."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotOffered(
            f".plot.{name} would draw the rows of people. There are .plot.hist() and .plot.box(); others are drawn of an answer: "
            "p.groupby('state')['cost'].mean().dp.plot()."
        )

    if not TYPE_CHECKING:  # to checkers a name that is not listed is an error
        __getattr__ = _find_unknown

    def __dir__(self) -> Iterable[str]:
        return ["box", "hist"]

    def __repr__(self) -> str:
        return "pictures of releases, each for a price: .plot.hist(...) and .plot.box(...)"
