"""Pictures in one call: a release and its picture, `hist` and `boxplot`, and ``plot`` as pandas has
it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Unpack, cast

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
from dpframe._frame.verbs.summaries import histogram, list_bounded
from dpframe._groups.keys import EVERY
from dpframe._plans.price import Payment, check_payment
from dpframe._refusals import Unprinted
from dpframe._session.batch import Batch

_BOX = (0.01, 0.25, 0.5, 0.75, 0.99)  # the ends of the whiskers, the box, and the line in it


class PictureKeywords(Payment, total=False):
    """The keyword arguments of a verb that draws bars, beside its own and those of the price.

    They are words of pandas for axes, and of matplotlib for bars.
    """

    alpha: float
    ec: Any
    edgecolor: Any
    facecolor: Any
    fc: Any
    fill: bool
    grid: bool
    hatch: str
    label: str
    legend: bool
    linestyle: Any
    linewidth: float
    loglog: bool
    logx: bool
    logy: bool
    ls: Any
    lw: float
    rot: float
    xlabel: str
    xlim: Any
    xrot: float
    ylabel: str
    ylim: Any
    zorder: float


_PICTURE_WORDS = PictureKeywords.__annotations__.keys() - Payment.__annotations__.keys()


@verb
def hist(
    self: Tracked,
    column: object = EVERY,
    *,
    by: object = None,
    bins: object = 10,
    density: bool = False,
    ax: object = None,
    figsize: object = None,
    title: str | None = None,
    color: object = None,
    bounds: BoundsLike = None,
    **payment: Unpack[PictureKeywords],
) -> Any:
    """Draw a `histogram` with its intervals; take and return matplotlib axes.

    Of a list of columns, or of all numbers with bounds where none is named, an array of axes: each
    is a release of its own at the price that is given, and all are paid together. With ``by`` one
    release of all groups, and axes for each of them. With ``density=True`` the bars have the area 1
    together, by dividing what was released. Words of matplotlib for bars, such as ``alpha=``, are
    passed on. To have the numbers too, ask `histogram`, and then ``answer.dp.plot()``.

    Formal guarantee: as of `histogram`.

    >>> df = pd.DataFrame({"age": [30, 41, 85]})
    >>> p = df.dp.open(100, bounds={"age": (0, 100)})
    >>> axes = p.hist("age", bins=4, epsilon=80)
    >>> axes.get_xlabel()
    'age'
    """
    if by is not None:
        if column is EVERY or isinstance(column, list):
            raise BadType("hist in groups is of one column: p.hist('cost', by='state').")
        return _draw_groups(
            cast(Any, groupby(self, by)),
            column,
            bins,
            density,
            (ax, figsize, title, color),
            bounds,
            payment,
        )
    picture = _read_picture(density, ax, figsize, title, color, payment)
    price = picture.price
    if column is not EVERY and not isinstance(column, list):
        axes = _plot.panels_for(1, ax, picture.size)[0] if not self._mode.shows else None
        answer: Any = histogram(self, column, bins, bounds=bounds, **price)
        return picture.draw(answer, axes) if isinstance(answer, pd.Series) else answer
    names = list_bounded(self, bounds) if column is EVERY else column
    if not names:
        raise BadValue("no columns are named, so nothing is drawn.")
    if self._mode.answers_later:
        raise BadValue(
            "in plan_ahead ask histogram, and draw its answer after the block: place.answer.dp.plot()."
        )
    if self._mode.shows:
        return [histogram(self, name, bins, bounds=bounds, **price) for name in names]
    panels = _plot.panels_for(len(names), ax, picture.size)
    with Batch(self, session_of_frame(self)) as batch:
        places = [cast(Any, batch).histogram(name, bins, bounds=bounds, **price) for name in names]
    for place, axes in zip(places, panels, strict=True):
        picture.draw(place.answer, axes)
    return panels


@verb
def hist_of_groups(
    self: Any,
    column: object = None,
    *,
    bins: object = 10,
    density: bool = False,
    ax: object = None,
    figsize: object = None,
    title: str | None = None,
    color: object = None,
    bounds: BoundsLike = None,
    **payment: Unpack[PictureKeywords],
) -> Any:
    """Draw a histogram of each group, on axes of its own; see `PrivateFrame.hist`.

    Formal guarantee: epsilon-DP for its price, once for all groups and bins together.
    """
    drawing = (ax, figsize, title, color)
    return _draw_groups(self, column, bins, density, drawing, bounds, payment)


def _draw_groups(
    groups: Any,
    column: object,
    bins: object,
    density: object,
    drawing: tuple[object, object, object, object],
    bounds: BoundsLike,
    words: Mapping[str, object],
) -> Any:
    """Ask for the histograms of all groups in one release, and draw each on axes of its own.

    ``drawing`` has the axes, the size, the title and the color of the picture, and ``words`` are
    the other arguments. The axes come back as an array.
    """
    picture = _read_picture(density, *drawing, words)
    answer = groups.histogram(column, bins, bounds=bounds, **picture.price)
    if not isinstance(answer, pd.Series):
        return answer
    index = cast("pd.MultiIndex", answer.index).droplevel(-1)
    keys = list(dict.fromkeys(index))
    panels = _plot.panels_for(len(keys), drawing[0], picture.size)
    for key, axes in zip(keys, panels, strict=True):
        named = _label(key) if drawing[2] is None else f"{drawing[2]}: {_label(key)}"
        part = answer.dp.loc[key]
        picture.draw(part, axes, title=named)
    return panels


class Picture(NamedTuple):
    """How a histogram is drawn, and the arguments of its price."""

    density: bool
    size: Any
    options: dict[str, Any]
    price: Any

    def draw(self, answer: Any, axes: Any, **more: object) -> Any:
        """Draw the counts of bins, or their density, and return the axes.

        A density divides what was released: by the sum of all bins, and by their width.
        """
        options = {**self.options, **more}
        if self.density:
            widths = _plot.measure_bins(answer.index)
            answer = (answer.dp / answer.dp.sum()).dp * (1 / widths)
            options = {"ylabel": "density", **options}
        return answer.dp.plot(kind="hist", ax=axes, **options)


def _read_picture(
    density: object,
    ax: object,
    figsize: object,
    title: object,
    color: object,
    words: Mapping[str, object],
) -> Picture:
    """Read the arguments of a picture, and check them before anything is paid.

    ``words`` are those for matplotlib and for the price.
    """
    _plot.needs_matplotlib()
    price = check_payment({n: v for n, v in words.items() if n not in _PICTURE_WORDS})
    options = {n: v for n, v in words.items() if n in _PICTURE_WORDS}
    if "xrot" in options:
        options["rot"] = options.pop("xrot")
    options = {**_drawing(title=title, color=color), **options}
    if words.keys() & _PICTURE_WORDS:
        _plot.check_bars(options)
    flag = _validate.flag(False if density is None else density, "density")
    return Picture(flag, _size(figsize), options, price)


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
        names = list_bounded(self, bounds) if column is EVERY else column
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

    def hist(self, by: object = None, bins: object = 10, **words: Any) -> Any:
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
