"""Pictures of what epsilon means: which chances it allows, and two outputs that can hardly be told apart.

Answers draw themselves (``answer.dp.plot()``), and so does a budget (``df.dp.budget.plot()``). These pictures need no data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dpframe import _drawing, _validate
from dpframe._errors import BadValue

__all__ = [
    "allowed",
    "laplace",
    "region",
]


def __dir__() -> list[str]:
    return list(__all__)  # completion shows the public names alone


def region(
    epsilons: float | Iterable[float] = (0, 0.1, 0.5, 1, 2, 4), delta: float = 0, ax: Any = None
) -> Any:
    """Which pairs of chances (epsilon, delta) allows; takes and returns matplotlib axes.

    p is the chance of some event if a person takes part, p' if not. Both p <= e^eps p' + delta and the same for the
    complements must hold, either way round. At epsilon 0 and delta 0 only the diagonal is left: what is released does
    not depend on anybody. As epsilon grows the region fills the square, and nothing is promised.

    >>> region([0.5, 2]).get_xlabel()
    'chance of an event with the person'
    """
    _drawing.needs_matplotlib()
    given = [epsilons] if isinstance(epsilons, int | float) else list(epsilons)
    values = sorted({_validate.real(e, "epsilons") for e in given}, reverse=True)
    gap = _validate.real(delta, "delta")
    if not values or values[-1] < 0:
        raise BadValue("epsilons must be one or several numbers that are not negative.")
    if not 0 <= gap <= 1:
        raise BadValue(f"delta must lie between 0 and 1, not {gap:g}.")
    found = _drawing.new_axes() if ax is None else ax
    from matplotlib import colormaps

    shades = colormaps["Blues"](np.linspace(0.12, 0.85, len(values)))
    p = np.linspace(0, 1, 1001)
    for value, shade in zip(values, shades, strict=True):
        low, high = allowed(p, value, gap)
        label = f"epsilon {value:g}"
        if np.max(high - low) < 1e-9:
            found.plot(p, p, color=shade, linewidth=2, label=label)
        else:
            found.fill_between(p, low, high, color=shade, linewidth=0, label=label)
    found.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    found.set(xlabel="chance of an event with the person", ylabel="chance without the person")
    found.legend(loc="upper left", bbox_to_anchor=(1.02, 1), borderaxespad=0, frameon=False, fontsize="small")
    return found


def allowed(p: Any, epsilon: float, delta: float = 0) -> tuple[Any, Any]:
    """The least and the greatest chance p' that an event of chance p may have on a neighbour.

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
    return low, high


def laplace(epsilon: float, answers: tuple[float, float] = (0, 1), ax: Any = None) -> Any:
    """The law of a Laplace answer with a person and without; takes and returns matplotlib axes.

    ``answers`` are the exact ones, whose distance is taken for the sensitivity. At no point is one curve more than
    e^epsilon times the other: the ratio is exactly that outside the two peaks. dpframe draws whole multiples of a grid with this
    law; the curves are its limit.

    >>> len(laplace(1).get_lines())
    2
    """
    _drawing.needs_matplotlib()
    e = float(_validate.epsilon(epsilon))
    first, second = (_validate.real(x, "answers") for x in answers)
    if first == second:
        raise BadValue("answers must be two different numbers: those of a frame and of its neighbour.")
    scale = abs(first - second) / e
    x = np.linspace(min(first, second) - 4 * scale, max(first, second) + 4 * scale, 1001)
    x = np.sort(np.append(x, [first, second]))  # the peaks are sharp
    found = _drawing.new_axes() if ax is None else ax
    for centre, label, style in ((first, "without the person", "--"), (second, "with the person", "-")):
        found.plot(x, np.exp(-abs(x - centre) / scale) / (2 * scale), style, label=label)
    found.set(xlabel="answer", ylabel="density", title=f"Laplace noise, epsilon {e:g}", ylim=0)
    found.legend(fontsize="small")
    return found
