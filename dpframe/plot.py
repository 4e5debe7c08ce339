"""Pictures: of what epsilon means, of answers, and of budgets. Only public numbers and released
ones are drawn.

The functions for users show Laplace laws, the chances that epsilon allows, and two outputs that can
hardly be told apart; they need no data. Answers draw themselves (``answer.dp.plot()``), and so does
a budget (``df.dp.budget.plot()``): as bars with error bars, bins to scale, or lines with bands.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe import _validate
from dpframe._errors import BadType, BadValue
from dpframe._types import Array, Index, Series

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Panels: TypeAlias = NDArray[np.object_]  # an array of axes
PandasAnswer: TypeAlias = "pd.Series[Any] | pd.DataFrame"
Options: TypeAlias = dict[str, Any]  # words for pandas or matplotlib

__all__ = [
    "allowed",
    "densities",
    "envelope",
    "laplace",
    "region",
]


def __dir__() -> list[str]:
    return list(__all__)  # completion shows the public names alone


def region(
    epsilons: float | Iterable[float] = (0, 0.1, 0.5, 1, 2, 4),
    delta: float = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw the pairs of chances that (epsilon, delta) allows; take and return matplotlib axes.

    p is the chance of some event if a person takes part, p' if not. Both p <= e^eps p' + delta and
    the same for the complements must hold, either way round. At epsilon 0 and delta 0 only the
    diagonal is left: what is released does not depend on anybody. As epsilon grows the region fills
    the square, and nothing is promised.

    >>> region([0.5, 2]).get_xlabel()
    'chance of an event with the person'
    """
    needs_matplotlib()
    values, gap = _check_epsilons(epsilons), _validate.real(delta, "delta")
    if not 0 <= gap <= 1:
        raise BadValue(f"delta must lie between 0 and 1, not {gap:g}.")
    axes = new_axes() if ax is None else ax
    from matplotlib import colormaps

    shades = colormaps["Blues"](np.linspace(0.12, 0.85, len(values)))
    p = np.linspace(0, 1, 1001)
    for value, shade in zip(values, shades, strict=True):
        low, high = allowed(p, value, gap)
        label = f"epsilon {value:g}"
        if np.max(high - low) < 1e-9:
            axes.plot(p, p, color=shade, linewidth=2, label=label)
        else:
            axes.fill_between(p, low, high, color=shade, linewidth=0, label=label)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set(xlabel="chance of an event with the person", ylabel="chance without the person")
    axes.legend(
        loc="upper left", bbox_to_anchor=(1.02, 1), borderaxespad=0, frameon=False, fontsize="small"
    )
    return axes


def _check_epsilons(epsilons: float | Iterable[float]) -> list[float]:
    """Return one or several epsilons, the largest first; refuse negative ones."""
    listed = [epsilons] if isinstance(epsilons, int | float) else list(epsilons)
    values = sorted({_validate.real(e, "epsilons") for e in listed}, reverse=True)
    if not values or values[-1] < 0:
        raise BadValue("epsilons must be one or several numbers that are not negative.")
    return values


def allowed(p: Any, epsilon: float, delta: float = 0) -> tuple[Any, Any]:
    """Return the least and the greatest chance that an event of chance p may have on a neighbour.

    >>> low, high = allowed(np.array([0.5]), 1)
    >>> float(low[0].round(3)), float(high[0].round(3))
    (0.184, 0.816)
    """
    shrink = np.exp(-epsilon)
    # With u = 1 - p for the complement. e^eps itself may be beyond a double, e^-eps never is.
    u = 1 - p
    with np.errstate(over="ignore", invalid="ignore"):
        grow = np.exp(np.float64(epsilon))
        up, down = (np.where(x > 0, x * grow, 0.0) + delta for x in (p, u))
    low = np.maximum.reduce([(p - delta) * shrink, 1 - down, np.zeros_like(p, dtype=np.float64)])
    high = np.minimum.reduce([up, 1 - (u - delta) * shrink, np.ones_like(p, dtype=np.float64)])
    # 1 - (1 - p) may be another double than p, which lies between the ends.
    return np.minimum(low, p), np.maximum(high, p)


def envelope(
    law: Series | dict[float, float],
    epsilons: float | Iterable[float] = (0.1, 0.5, 1),
    ax: Axes | None = None,
) -> Axes:
    """Draw the law of an answer, and the bounds of that of a neighbour.

    It takes and returns matplotlib axes.

    ``law`` is a Series or a dict with the chance of each outcome, the outcomes being numbers; they
    have to add up to 1. Around it is a band for each epsilon, the widest behind: on a neighbour no
    outcome is less likely than the lower end, nor more likely than the upper one (`allowed`).
    Bounds hold for every outcome by itself. A neighbour's chances add up to 1 as well, so they
    cannot all be at the same end.

    >>> axes = envelope({0: 0.25, 1: 0.5, 2: 0.25}, 1)
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['epsilon 1', 'the law of an answer']
    """
    needs_matplotlib()
    if not isinstance(cast(object, law), pd.Series | dict) or not len(law):
        raise BadType("law must be a Series or a dict with the probability of each outcome.")
    chances = pd.Series(law, dtype=np.float64).sort_index()
    outcomes = np.array(
        [_validate.real(x, "an outcome of law") for x in chances.index], dtype=np.float64
    )
    p = chances.to_numpy()
    if not chances.index.is_unique or not (p >= 0).all() or not abs(p.sum() - 1) <= 1e-9:
        raise BadValue(
            "law must be a distribution: a probability for each outcome, which add up to 1."
        )
    values = _check_epsilons(epsilons)
    axes = new_axes() if ax is None else ax
    from matplotlib import colormaps

    shades = colormaps["Blues"](np.linspace(0.2, 0.7, len(values)))
    for value, shade in zip(values, shades, strict=True):
        low, high = allowed(p, value)
        axes.fill_between(outcomes, low, high, color=shade, linewidth=0, label=f"epsilon {value:g}")
    axes.plot(outcomes, p, color=INK, linewidth=1.5, label="the law of an answer")
    axes.set(
        xlabel="answer", ylabel="probability", title="Between which bounds a neighbour's law lies"
    )
    axes.set_ylim(bottom=0)
    axes.legend(fontsize="small", frameon=False)
    return axes


LAWS = ((0, 1), (0, 2), (0, 4), (-5, 4))


def densities(laws: Iterable[tuple[float, float]] = LAWS, ax: Axes | None = None) -> Axes:
    """Draw the densities of Laplace laws, each given by its location and its scale.

    It takes and returns matplotlib axes.

    A law of location m and scale b has the density exp(-abs(x - m)/b)/(2b): a peak of 1/(2b) at m,
    and the variance 2b**2. On axes that are given, what was drawn there before stays in view.

    >>> axes = densities([(0, 1), (0, 2)])
    >>> [float(line.get_ydata().max()) for line in axes.get_lines()]
    [0.5, 0.25]
    """
    needs_matplotlib()
    pairs = [(_validate.real(m, "a location"), _validate.real(b, "a scale")) for m, b in laws]
    if not pairs or any(b <= 0 for _, b in pairs):
        raise BadValue("laws must be one or several pairs of a location and a scale above 0.")
    widest = max(b for _, b in pairs)
    ends = min(m for m, _ in pairs) - 2 * widest, max(m for m, _ in pairs) + 2 * widest
    x = np.sort(np.append(np.linspace(*ends, 1001), [m for m, _ in pairs]))  # the peaks are sharp
    axes = new_axes() if ax is None else ax
    from matplotlib import colormaps

    shades = colormaps["viridis"](np.linspace(0, 0.75, len(pairs)))
    for (m, b), shade, style in zip(pairs, shades, cycle(("-", "--", "-.", ":")), strict=False):
        axes.plot(
            x,
            np.exp(-abs(x - m) / b) / (2 * b),
            style,
            color=shade,
            label=f"location {m:g}, scale {b:g}",
        )
    highest = max(float(np.max(cast(Floats, line.get_ydata()))) for line in axes.get_lines())
    axes.set(xlabel="x", ylabel="density", title="Laplace laws", ylim=(0, 1.05 * highest))
    axes.legend(fontsize="small", frameon=False)
    return axes


def laplace(epsilon: float, answers: tuple[float, float] = (0, 1), ax: Axes | None = None) -> Axes:
    """Draw the law of a Laplace answer with a person and without; take and return matplotlib axes.

    ``answers`` are the exact ones, whose distance is taken for the sensitivity. At no point is one
    curve more than e^epsilon times the other: the ratio is exactly that outside the two peaks.
    dpframe draws whole multiples of a grid with this law; the curves are its limit.

    >>> len(laplace(1).get_lines())
    2
    """
    needs_matplotlib()
    e = float(_validate.epsilon(epsilon))
    exact = [_validate.real(x, "answers") for x in answers]
    if len(exact) != 2 or exact[0] == exact[1]:
        raise BadValue(
            "answers must be two different numbers: those of a frame and of its neighbour."
        )
    first, second = exact
    scale = abs(first - second) / e
    x = np.linspace(min(first, second) - 4 * scale, max(first, second) + 4 * scale, 1001)
    x = np.sort(np.append(x, [first, second]))  # the peaks are sharp
    axes = new_axes() if ax is None else ax
    for centre, label, style in (
        (first, "without the person", "--"),
        (second, "with the person", "-"),
    ):
        axes.plot(x, np.exp(-abs(x - centre) / scale) / (2 * scale), style, label=label)
    axes.set(xlabel="answer", ylabel="density", title=f"Laplace noise, epsilon {e:g}", ylim=0)
    axes.legend(fontsize="small")
    return axes


# How answers and budgets are drawn --------------------------------------------------------------

KINDS = ("bar", "barh", "hist", "line")
INK = "#444444"
# Colours that are told apart without seeing them (Okabe and Ito, 2008), and in grey.
BLUE, LIGHT = "#0072b2", "#cfd8dc"
COLORS = (BLUE, "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000")
# The number of spreads of the values, or of usual bands, beyond which bands leave the picture.
REACH = 3.0
_CAPTION = 72  # letters in a line of a caption
NOISE = "only noise"  # the name of what is hollow, in legends
CUT = 3.0  # the number of budgets beyond which a bar is cut


def needs_matplotlib() -> None:
    """Refuse to draw without matplotlib, and say what to install."""
    try:
        import_module("matplotlib")
    except ImportError:
        raise BadValue("plot() needs matplotlib: pip install 'dpframe[plot]'.") from None


def new_axes(size: tuple[float, float] | None = None) -> Axes:
    """Return new axes in a figure of pyplot's, which a notebook shows."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]  # it leaves room for long labels


def check_axes(ax: object) -> Axes | None:
    """Return the axes to draw on, if they are given; refuse other objects."""
    if isinstance(ax, str | int | float) or not (ax is None or hasattr(ax, "plot")):
        raise BadType(f"ax= takes matplotlib axes, not {type(ax).__name__}.")
    return cast("Axes | None", ax)


def meter(used: float, rule: str, epsilon: float, ax: object) -> Axes:
    """Draw one bar: the part of a budget that is used, and what is left of it.

    ``used`` is a share, ``rule`` labels the bar, and ``epsilon`` is the whole budget. ``ax`` are
    matplotlib axes, or None for new ones.
    """
    axes = check_axes(ax) or new_axes((6.4, 1.8))
    percent = 100 * min(max(used, 0.0), 1.0)
    axes.barh([rule], [percent], color=BLUE)
    axes.barh([rule], [100 - percent], left=[percent], color=LIGHT, hatch="//", edgecolor="white")
    for start, width, text in ((0.0, percent, "used"), (percent, 100 - percent, "left")):
        if width > 12:  # else there is no room for it
            ink, behind = ("white", BLUE) if text == "used" else (INK, LIGHT)
            label = f"{width:.3g} % {text}"
            axes.text(
                start + width / 2,
                0,
                label,
                ha="center",
                va="center",
                color=ink,
                backgroundcolor=behind,
            )
    axes.set(xlim=(0, 100), xlabel=f"percent of the budget, epsilon {epsilon:g}", ylabel="")
    return axes


def rules(costs: Series, own: str, budget: float, ax: object) -> Axes:
    """Draw a bar for the cost of the same questions by each accounting rule; the session paid its
    own.

    ``costs`` are epsilons by rule, and ``own`` is the rule of the session. ``budget`` is its whole
    epsilon.

    Bars beyond a few budgets are cut and marked.
    """
    axes = check_axes(ax) or new_axes()
    values = costs.to_numpy(dtype=np.float64)
    most = CUT * budget if budget > 0 else max([1.0, *values[np.isfinite(values)]])
    names = [f"{name} (this budget's)" if name == own else str(name) for name in costs.index]
    colors = [BLUE if name == own else LIGHT for name in costs.index]
    axes.barh(names, np.minimum(values, most), color=colors, edgecolor=INK, linewidth=0.6)
    for i, value in enumerate(values):
        if value > most:
            label = f"{value:.3g} \u2192" if np.isfinite(value) else "no bound \u2192"
            axes.text(most, i, f"{label} ", ha="right", va="center", color=INK, fontsize="small")
    axes.set(
        xlabel="epsilon of the questions so far, had they all been fixed in advance", ylabel=""
    )
    axes.set_xlim(0, 1.05 * max(budget, *np.minimum(values, most)))
    axes.set_title("the same questions by other rules", fontsize="medium")
    axes.invert_yaxis()
    return axes


def used_over_time(when: Series, used: Series, ax: object) -> Axes:
    """Draw the part of a budget that was used after each debit, as steps over time.

    ``when`` has the times of the debits, and ``used`` the share of the budget after each.
    """
    needs_matplotlib()
    axes = check_axes(ax) or new_axes()
    times = pd.DatetimeIndex(when).tz_convert(None) if len(when) else pd.DatetimeIndex([])
    percent = 100 * used.to_numpy(dtype=np.float64)
    if len(times):
        axes.step(
            times, percent, where="post", color=BLUE, marker="." if len(times) <= 40 else None
        )
        axes.fill_between(times, percent, step="post", color=BLUE, alpha=0.2, linewidth=0)
    axes.axhline(100, color=INK, linestyle="--", linewidth=0.8)
    axes.text(
        0.01,
        97,
        "the whole budget",
        transform=axes.get_yaxis_transform(),
        va="top",
        color=INK,
        fontsize="small",
    )
    axes.set(ylim=(0, 105), ylabel="percent of the budget", xlabel="time of the debit (UTC)")
    axes.tick_params(axis="x", rotation=30)
    return axes


class Marks(NamedTuple):
    """The ends of intervals and the flags of noise, in the shape of the numbers, if known."""

    low: Floats | None = None
    high: Floats | None = None
    noise: Bools | None = None

    @staticmethod
    def stack(ends: Sequence[tuple[Array, Array]], noise: Sequence[Bools] = ()) -> Marks:
        """Return the marks of a table from the interval ends and the noise flags of each column.

        Marks are what is drawn beside the numbers. Without ``ends`` or ``noise`` they have None for
        it.
        """
        low = high = flags = None
        if ends:
            low = np.stack([np.asarray(pair[0], dtype=np.float64) for pair in ends], axis=1)
            high = np.stack([np.asarray(pair[1], dtype=np.float64) for pair in ends], axis=1)
        if len(noise):
            flags = np.stack(list(noise), axis=1)
        return Marks(low, high, flags)

    def pick_columns(self, places: list[int]) -> Marks:
        """Return the marks of some columns."""
        low, high = (None if side is None else side[:, places] for side in (self.low, self.high))
        return Marks(low, high, None if self.noise is None else self.noise[:, places])

    def arrange(self, places: NDArray[np.float64]) -> Marks:
        """Return the marks of a single column, arranged like a table of its numbers.

        ``places`` has the row of the column for each cell, or NaN for a cell without a number.
        """
        missing = np.isnan(places)
        rows = np.where(missing, 0, places).astype(np.intp)
        low, high = (
            None if side is None else np.where(missing, np.nan, side[:, 0][rows])
            for side in (self.low, self.high)
        )
        return Marks(low, high, None if self.noise is None else self.noise[:, 0][rows] & ~missing)


def draw_answer(
    answer: PandasAnswer,
    marks: Marks,
    *,
    kind: str | None,
    ax: Axes | Panels | None,
    quantiles: bool,
    keys: int,
    title: str | None,
    options: Options,
    apart: bool = False,
) -> Axes | Panels:
    """Draw an answer with its intervals; noise is hollow, and the legend says so.

    ``quantiles`` says that its rows are quantiles. ``keys`` is the number of columns that are group
    labels. ``title`` is its name if it has no other. ``apart`` says that its columns are of
    different kinds: each is drawn on axes of its own, unless ``subplots=`` or ``ax=`` are given.
    """
    needs_matplotlib()
    kind = _choose_kind(answer, kind, quantiles)
    values, marks = _arrange(answer, marks, quantiles, keys)
    if "x" in options:
        raise BadType("x= is refused here: the rows of an answer are its labels, or its times.")
    if "y" in options:
        places = _find_columns(options.pop("y"), answer, values)
        values, marks = values.iloc[:, places], marks.pick_columns(places)
        apart = apart and values.shape[1] > 1
    panels = _validate.flag(options.pop("subplots", apart and ax is None), "subplots")
    if panels:
        return _draw_panels(values, marks, kind, ax, quantiles, options)
    named = isinstance(answer, pd.Series)
    label = title if named else str(values.columns[0]) if values.shape[1] == 1 else None
    return _draw(values, marks, kind, check_axes(ax), quantiles, label, options)


def _find_columns(names: object, answer: PandasAnswer, values: pd.DataFrame) -> list[int]:
    """Return the positions of the columns that ``y=`` names.

    ``names`` is a name or a list. Refuse it for a Series, which is drawn whole.
    """
    if isinstance(answer, pd.Series):
        raise BadType(
            "y= chooses columns of a table, and this answer is a Series: it is drawn whole."
        )
    listed = names if isinstance(names, list) else [names]
    columns: list[object] = list(values.columns)
    if not listed or any(name not in columns for name in listed):
        raise BadValue(
            f"y= must be one of the columns of the answer, or a list of them: {columns}."
        )
    return [columns.index(name) for name in listed]


def panels_for(n: int, ax: object, size: tuple[float, float] | None = None) -> Panels:
    """Return ``n`` matplotlib axes below each other, or those that are given.

    ``size`` is the width and the height of a new figure in inches.
    """
    needs_matplotlib()
    if ax is None:
        import matplotlib.pyplot as plt

        size = size or (6.4, 2.4 * n + 2.4)
        return plt.subplots(n, 1, figsize=size, layout="constrained", squeeze=False)[1].ravel()
    return _check_panels(ax, n, f"ax= takes {n} axes here, one for each column.")


def add_caption(axes: Axes | Panels, text: str) -> None:
    """Write what an answer leaves out above its axes, in small letters on the right side.

    Of several axes the first ones have it. Without ``text`` nothing is written.
    """
    first: Axes = axes.ravel()[0] if isinstance(axes, np.ndarray) else axes
    if not text:
        return
    if title := first.get_title().rstrip("\n"):
        first.set_title(f"{title}\n")  # an empty line, in which the caption stands
    first.set_title(textwrap.fill(text, _CAPTION), loc="right", fontsize="x-small")


def _check_panels(ax: object, n: int, problem: str) -> Panels:
    """Return ``n`` axes that are given; refuse another number of them."""
    panels: Panels = np.array(ax, dtype=object).ravel()
    if len(panels) != n or not all(hasattr(axes, "plot") for axes in panels):
        raise BadValue(problem)
    return panels


def _draw_panels(
    values: pd.DataFrame,
    marks: Marks,
    kind: str,
    ax: object,
    quantiles: bool,
    options: Options,
) -> Panels:
    """Draw each column on axes of its own, as pandas does with subplots=True, and return these.

    ``marks`` are intervals and flags. ``kind`` is the kind of picture, and ``quantiles`` is true if
    rows are quantiles. ``options`` are words for pandas.
    """
    n = values.shape[1]
    if ax is None:
        import matplotlib.pyplot as plt

        lying = kind == "barh"
        size = options.pop("figsize", None) or ((3.2 * n + 1, 4.8) if lying else (6.4, 2.0 * n + 1))
        rows, columns = (1, n) if lying else (n, 1)
        panels: Panels = plt.subplots(
            rows,
            columns,
            figsize=size,
            layout="constrained",
            squeeze=False,
            sharex=not lying,
            sharey=lying,
        )[1].ravel()
    else:
        problem = f"with subplots=True ax= takes {n} axes, one for each column."
        panels = _check_panels(ax, n, problem)
    for i, axes in enumerate(panels):
        name = values.columns[i]
        label = ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)
        one = marks.pick_columns([i])
        _draw(values.iloc[:, [i]], one, kind, axes, quantiles, label, dict(options))
    return panels


def _draw(
    values: pd.DataFrame,
    marks: Marks,
    kind: str,
    ax: Axes | None,
    quantiles: bool,
    label: str | None,
    options: Options,
) -> Axes:
    """Draw columns with their intervals on one pair of axes, and return these.

    ``marks`` are intervals and flags of noise. ``kind`` is the kind of picture, and ``quantiles``
    is true if rows are quantiles. ``label`` names the axis of numbers. ``options`` are words for
    pandas.
    """
    if ax is None:
        ax = new_axes(options.pop("figsize", None))
    bars_before, lines_before = len(ax.containers), len(ax.get_lines())
    legend, given = options.get("legend") is not False, {*options}
    if kind == "hist":
        bins = cast("pd.IntervalIndex[Any]", values.index)
        widths = np.asarray(measure_bins(bins), dtype=np.float64)
        if label and not np.allclose(widths, widths[0]):
            label = f"{label} in each bin (widths differ)"
        axes = _draw_bins(values.iloc[:, 0], marks, ax, options)
    elif kind == "line":
        options = {"xlabel": "quantile", **options} if quantiles else options
        axes = _draw_lines(values, marks, ax, options)
    else:
        axes = _draw_bars(values, marks, kind, ax, options)
        if kind == "barh" and not axes.yaxis_inverted():
            axes.invert_yaxis()  # the first row on top, as it is printed
    if label and kind == "barh" and "xlabel" not in given:
        axes.set_xlabel(label)
    elif label and kind != "barh" and "ylabel" not in given:
        axes.set_ylabel(label)
    if not {"xlim", "ylim"} & given:
        _limit_view(values.to_numpy(), marks, axes, kind)
    if marks.noise is not None:
        bars, lines = ax.containers[bars_before:], ax.get_lines()[lines_before:]
        flags = marks.noise & np.isfinite(values.to_numpy())
        _hollow_noise(marks.noise, flags, axes, bars, lines if kind == "line" else [], legend)
    return axes


def _hollow_noise(
    noise: Bools,
    visible: Bools,
    ax: Axes,
    containers: Sequence[object],
    lines: Sequence[Line2D],
    legend: bool,
) -> None:
    """Draw numbers that are noise as hollow: bars are hatched, and points on lines are rings.

    ``noise`` flags them, and ``visible`` tells which are drawn at all. ``containers`` are the bars,
    and ``lines`` the lines. With ``legend`` a line of the legend says so, unless the figure has
    such a line.
    """
    bars = [each for each in containers if hasattr(each, "patches")]
    if not visible.any() or max(len(bars), len(lines)) != noise.shape[1]:
        return  # nothing is noise, or some columns are on another scale
    for flags, each in zip(noise.T, bars, strict=False):
        for bar, flag in zip(each.patches, flags, strict=False):
            if flag:
                bar.set(edgecolor=bar.get_facecolor(), facecolor="none", hatch="////", linewidth=1)
    for flags, line in zip(noise.T, lines, strict=False):
        x, y = (np.asarray(side)[flags] for side in line.get_data(orig=False))
        ring = {"facecolors": [ax.get_facecolor()], "edgecolors": line.get_color()}
        ax.scatter(x, y, zorder=line.get_zorder() + 1, **cast(Options, ring))
    figure = cast(Any, ax.figure)
    legends = [one for axes in figure.axes if (one := axes.get_legend()) is not None]
    if legend and all(text.get_text() != NOISE for one in legends for text in one.get_texts()):
        _add_noise_to_legend(ax, bool(lines))


def hatch_boxes(ax: Axes, boxes: Sequence[Any]) -> None:
    """Draw the boxes of a box plot that are noise hollow and hatched, and say so in the legend."""
    for box in boxes:
        box.set(edgecolor=box.get_facecolor(), facecolor="none", hatch="////", linewidth=1)
    if boxes:
        _add_noise_to_legend(ax, False)


def _add_noise_to_legend(ax: Axes, rings: bool) -> None:
    """Add a line to the legend that says that hollow marks are noise.

    ``rings`` is true for a picture with lines, where the mark is a ring.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    ink, own = cast(Any, ax.xaxis.label).get_color(), ax.get_legend()
    mark: Artist = Patch(fc="none", ec=ink, hatch="////")
    if rings:
        face = ax.get_facecolor()
        mark = Line2D([], [], color=ink, marker="o", linestyle="", markerfacecolor=face)
    handles = [] if own is None else list(own.legend_handles)
    names = [] if own is None else [text.get_text() for text in own.get_texts()]
    title = None if own is None else own.get_title().get_text()
    ax.legend(cast(Any, [*handles, mark]), [*names, NOISE], title=title or None)


def _limit_view(values: Floats, marks: Marks, ax: Axes, kind: str) -> None:
    """Limit the axis of numbers to a few times the spread of the values.

    So a few wide intervals do not set the scale.
    """
    low, high = marks.low, marks.high
    if low is None or high is None:
        return
    finite = np.isfinite(values)
    bounded = np.isfinite(low) & np.isfinite(high)
    if not finite.any() or not bounded.any():
        return
    least, most = values[finite].min(), values[finite].max()
    if kind != "line":
        least, most = min(least, 0.0), max(most, 0.0)
    reach = max(REACH * (most - least), 2 * float(np.quantile((high - low)[bounded], 0.5)))
    lying = kind == "barh"
    scale = ax.get_xscale() if lying else ax.get_yscale()
    if scale != "linear":
        return
    bottom, top = ax.get_xlim() if lying else ax.get_ylim()
    ends = max(bottom, least - reach), min(top, most + reach)
    if ends != (bottom, top):
        (ax.set_xlim if lying else ax.set_ylim)(*ends)


def _choose_kind(answer: PandasAnswer, kind: str | None, quantiles: bool) -> str:
    """Return the kind of picture: the one asked for, or the one that fits the rows.

    ``quantiles`` is true if the rows are quantiles, which make a line.
    """
    bins = isinstance(answer, pd.Series) and _has_finite_bins(answer.index)
    if kind is not None:
        kind = _validate.choice(kind, "kind", KINDS)
        if kind == "hist" and not bins:
            raise BadValue(
                "kind='hist' draws the bins of a histogram to scale, and these rows are not finite "
                "bins: use 'bar'."
            )
        return kind
    if bins:
        return "hist"
    single = isinstance(answer, pd.Series) or not isinstance(answer.index, pd.MultiIndex)
    return "line" if quantiles or (single and _find_time_levels(answer.index)) else "bar"


def _has_finite_bins(index: Index) -> bool:
    """Return whether rows are bins of numbers with finite ends, or of times."""
    if not isinstance(index, pd.IntervalIndex):
        return False
    if index.left.dtype.kind == "M":
        return bool(index.left.notna().all())
    if not pd.api.types.is_numeric_dtype(index.left.dtype):
        return False
    return bool(np.isfinite(index.left).all() and np.isfinite(index.right).all())


def _arrange(
    answer: PandasAnswer, marks: Marks, quantiles: bool, keys: int
) -> tuple[pd.DataFrame, Marks]:
    """Return the values and their marks as tables, with a row for each tick and a column for each
    colour.

    ``quantiles`` is true if the rows are quantiles. The first ``keys`` columns are labels.
    """
    if isinstance(answer, pd.DataFrame):
        table = answer.set_index(list(answer.columns[:keys])) if keys else answer
        return pd.DataFrame(table).astype(np.float64), marks
    name = "" if answer.name is None else answer.name
    values = pd.Series(answer).astype(np.float64)
    if not isinstance(answer.index, pd.MultiIndex):
        return values.to_frame(name), marks
    places = pd.Series(np.arange(len(answer), dtype=np.float64), index=answer.index)
    marks = marks.arrange(_unstack(places, answer.index, quantiles).to_numpy())
    return _unstack(values, answer.index, quantiles), marks


def _unstack(column: Series, index: pd.MultiIndex, quantiles: bool) -> pd.DataFrame:
    """Return a column with several keys as a table.

    Quantiles or times become rows and other keys colours; else the last key becomes the colour.
    """
    places = list(range(index.nlevels))
    stay = places[-1:] if quantiles else _find_time_levels(index)[:1] or places[:-1]
    moved = [i for i in places if i not in stay]
    wide = column.unstack(moved if len(moved) > 1 else moved[0])
    rows, columns = (
        index.droplevel([i for i in places if i not in levels]).unique() for levels in (stay, moved)
    )
    # unstack sorts, and keys have an order of their own.
    return wide.reindex(index=rows, columns=columns)


def _find_time_levels(index: Index) -> list[int]:
    """Return the keys that are times, and belong on the axis."""
    times = pd.DatetimeIndex | pd.PeriodIndex | pd.TimedeltaIndex
    all_levels = index.levels if isinstance(index, pd.MultiIndex) else [index]
    return [i for i, level in enumerate(all_levels) if isinstance(level, times)]


def _add_colors(values: pd.DataFrame, options: Options) -> Options:
    """Return the options of a picture, with our colours if they name no others."""
    if {"color", "colormap", "cmap", "style"} & set(options):
        return options
    return {"color": [COLORS[i % len(COLORS)] for i in range(values.shape[1])], **options}


def _draw_bars(values: pd.DataFrame, marks: Marks, kind: str, ax: Axes, options: Options) -> Axes:
    """Draw columns as bars with error bars, and return the axes.

    ``kind`` is "bar" or "barh". ``marks`` are the intervals. ``options`` are words for pandas.
    """
    settings = {"legend": values.shape[1] > 1, "width": 0.7, **_add_colors(values, options)}
    if marks.low is not None and marks.high is not None:
        numbers = values.to_numpy()
        bars = np.stack([numbers - marks.low, marks.high - numbers])  # below and above
        # An infinite end has no bar.
        bars = np.where(np.isfinite(bars), np.maximum(bars, 0), np.nan)
        settings = {"yerr" if kind == "bar" else "xerr": bars.transpose(2, 0, 1), **settings}
        wide = 2 if values.size > 24 else 4
        settings = {"error_kw": {"ecolor": INK, "elinewidth": 1.2, "capsize": wide}, **settings}
    drawn = values if values.shape[1] > 1 else values.iloc[:, 0]
    axes: Axes = drawn.plot(kind=cast(Any, kind), ax=ax, **settings)
    (axes.axhline if kind == "bar" else axes.axvline)(0, color=INK, linewidth=0.8)
    return axes


def _draw_bins(values: Series, marks: Marks, ax: Axes, options: Options) -> Axes:
    """Draw the counts of a histogram as bars as wide as their bins, with error bars.

    ``marks`` are the intervals. ``options`` are words for pandas or matplotlib.
    """
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.patches import Rectangle

    index = cast("pd.IntervalIndex[Any]", values.index)
    left, right = _place_on_axis(index.left, ax), _place_on_axis(index.right, ax)
    name = "" if index.name is None else str(index.name)
    texts = {
        k: options.pop(k) for k in ("title", "xlabel", "ylabel", "xlim", "ylim") if k in options
    }
    # These are words of pandas, which bars do not take.
    legend, grid = options.pop("legend", None), options.pop("grid", None)
    rotation = options.pop("rot", None)
    both = options.pop("loglog", False)
    scales = {
        f"{axis}scale": "log" for axis in ("x", "y") if options.pop(f"log{axis}", False) or both
    }
    label = {"label": name} if legend and index.name is not None else {}
    options = normalize_kwargs(options, Rectangle)  # an alias such as lw has its own name
    usual = {"edgecolor": "white", "linewidth": 0.8} | (
        {} if "facecolor" in options else {"color": BLUE}
    )
    settings = {**usual, **label, **options}
    ax.bar(left, values.to_numpy(), right - left, align="edge", **settings)
    if marks.low is not None and marks.high is not None:
        numbers = values.to_numpy()
        bars = np.stack([numbers - marks.low[:, 0], marks.high[:, 0] - numbers])
        ax.errorbar(
            (left + right) / 2,
            numbers,
            yerr=np.maximum(bars, 0),
            fmt="none",
            ecolor=INK,
            elinewidth=1.2,
            capsize=2 if len(values) > 24 else 3,
        )
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.set(**scales)
    ax.set(**{"xlabel": name, **texts})
    if rotation is not None:
        ax.tick_params(axis="x", rotation=rotation)
    if grid is not None:
        ax.grid(grid)
    if legend:
        ax.legend()
    return ax


def measure_bins(index: pd.IntervalIndex[Any]) -> Series:
    """Return how wide each bin is: as numbers, or in days if they are times."""
    length: Any = index.length
    return pd.Series(
        np.asarray(length / pd.Timedelta("1D") if length.dtype.kind == "m" else length), index
    )


def _place_on_axis(ends: Index, ax: Axes) -> Floats:
    """Return the ends of bins as numbers of the horizontal axis, which shows dates if they are
    times."""
    if ends.dtype.kind != "M":
        return np.asarray(ends, dtype=np.float64)
    from matplotlib import dates

    ax.xaxis_date()
    moments = pd.DatetimeIndex(ends).to_pydatetime()
    return np.asarray(cast(Any, dates).date2num(moments), dtype=np.float64)


def check_bars(options: Options) -> None:
    """Draw one bar with these words for pandas or matplotlib, and raise what is wrong with them.

    Nothing of it is shown. So words are checked before a release is paid.
    """
    from matplotlib.figure import Figure

    one = pd.Series([1.0], pd.IntervalIndex.from_breaks([0.0, 1.0], name="x"))
    try:
        _draw_bins(one, Marks(), Figure().subplots(), dict(options))
    except (AttributeError, TypeError, ValueError) as error:
        raise BadValue(f"matplotlib does not take these words for a picture: {error}.") from None


def _draw_lines(values: pd.DataFrame, marks: Marks, ax: Axes, options: Options) -> Axes:
    """Draw columns as lines, with bands for their intervals.

    ``marks`` are the intervals. ``options`` are words for pandas.
    """
    settings: Options = {
        "legend": values.shape[1] > 1,
        "marker": "." if len(values) <= 40 else None,
        **_add_colors(values, options),
    }
    drawn = values if values.shape[1] > 1 else values.iloc[:, 0]
    lines_before = list(ax.get_lines())
    axes: Axes = drawn.plot.line(ax=ax, **settings)
    if marks.low is None or marks.high is None:
        return axes
    fresh = [line for line in axes.get_lines() if line not in lines_before]
    for i, line in enumerate(fresh[: values.shape[1]]):
        # pandas gives dates places of its own, which the line knows.
        places = cast(Any, line.get_xdata(orig=False))
        color = line.get_color()
        ends = marks.low[:, i], marks.high[:, i]
        axes.fill_between(places, *ends, color=color, alpha=0.2, linewidth=0)
    return axes
