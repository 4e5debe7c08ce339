"""From the curve of a pair to a discrete loss distribution whose curve lies above it.

H is convex and falling in e**t, hence below the chords through any of its points, and a sum of chords is the curve of a
discrete loss distribution ("connect the dots": Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022). A point may be left
out, a value may be too high and mass may be added: all of these only raise the curve, so neither noise in H nor few
points make it unsafe. Masses may add up to a hair more than 1, which is why nothing here asks for probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting.loss import Curve, Loss

Floats = NDArray[np.float64]
ULP = 2.0**-53


class Atoms(NamedTuple):
    at: Floats  # grid indices, or losses
    log_mass: Floats
    infinite: float


def _sample(
    curve: Callable[[Floats], Floats],
    levels: int,
    worth: Callable[[Floats, Floats, Floats, Floats], NDArray[np.bool_]],
    place: Callable[[Floats], Floats],
    first: int,
) -> tuple[Floats, Floats]:
    """Points of a curve: `first` equal intervals, halved up to `levels` times wherever the chord is worth it."""
    nodes: Floats = np.arange(first + 1, dtype=np.float64) * float(1 << levels)
    values = curve(place(nodes))
    left: Floats
    left, a, b = nodes[:-1], values[:-1], values[1:]
    all_nodes, all_values = [nodes], [values]
    for level in range(levels - 1, -1, -1):
        middle: Floats = left + float(1 << level)
        c = curve(place(middle))
        gap = place(left + float(2 << level)) - place(left)
        weight = 1 / (1 + np.exp(np.minimum(gap / 2, 700.0)))
        keep = worth(place(middle), gap, a + (b - a) * weight - c, c)
        all_nodes.append(middle)
        all_values.append(c)
        left = np.concatenate((left[keep], middle[keep]))
        a, b = np.concatenate((a[keep], c[keep])), np.concatenate((c[keep], b[keep]))
        if not 0 < len(left) <= 1 << 20:  # chords over what is left are only looser
            break
    nodes, values = np.concatenate(all_nodes), np.concatenate(all_values)
    order = np.argsort(nodes)
    return nodes[order], np.clip(values[order], 0.0, 1.0)


def _connect(nodes: Floats, values: Floats, step: float) -> Atoms:
    """The loss distribution whose curve is the chords in e**t through these points of a falling convex curve.

    Points that would get negative mass lie above a chord of others and are dropped. Masses are differences of
    `rise`, u dH/du at the left end of each chord; written like this, neighbours subtract exactly, and the error is
    below a few units in the last place of `drop`, which are added.
    """
    values = np.minimum.accumulate(values)
    while True:
        drop = values[:-1] - values[1:]
        with np.errstate(over="ignore"):
            rise = drop / np.expm1(np.diff(nodes) * step)
        mass = np.concatenate(([1 - values[0]], drop))
        mass[:-1] -= rise
        mass[1:] += rise
        inner = mass[1:-1]
        inner[:] = (rise[:-1] - rise[1:]) + drop[:-1]
        bad = mass < 0
        if not bad.any() or len(nodes) < 3:
            break
        nodes, values = nodes[~bad], values[~bad]
    mass = np.maximum(mass, 0.0) * (1 + 8 * ULP)
    mass[1:] += 8 * ULP * drop
    mass[0] += 8 * ULP
    some = mass > 0
    return Atoms(nodes[some], np.log(mass[some]), float(values[-1]))


def curve_of(loss: Loss, side: int) -> Curve:
    """The pair in one direction, with room for its rounding; for a range, one that dominates any single use of it."""
    reach = loss.bounded_range
    if reach is None:
        given = loss.curves[side if len(loss.curves) > 1 else 0]
        # Normal curves lose digits as they narrow: about 1e-15 / mu, and the support below is 76 mu.
        slack = 1e-13 + (1e-13 / max(given.upper - given.lower, 1e-6) if loss.epsilon is None else 0.0)
        return given._replace(delta=lambda t: given.delta(t) * (1 + slack))

    def delta(t: Floats) -> Floats:
        inside = np.expm1((np.clip(t, -reach, reach) - reach) / 2) ** 2 / -math.expm1(-reach)
        return np.maximum(inside * (1 + 1e-13), -np.expm1(np.minimum(t, 0.0)))

    return Curve(delta, -reach, reach)


@lru_cache(maxsize=4096)
def sketch(loss: Loss, side: int) -> Atoms:
    """A few hundred atoms above the pair, at any losses: enough to find scales and saddle points."""
    curve = curve_of(loss, side)
    step = max(curve.upper - curve.lower, 1e-300) / (32 << 26)

    def worth(t: Floats, gap: Floats, excess: Floats, value: Floats) -> NDArray[np.bool_]:
        above = value - np.maximum(-np.expm1(np.minimum(t, 0.0)), 0.0)
        # By the chord and not by the curve: in the middle of a wide interval the curve itself may be nothing.
        return (excess > 0.02 * above) & (excess > 1e-14 * value) & (excess > 1e-60)

    nodes, values = _sample(curve.delta, 26, worth, lambda i: curve.lower + i * step, 32)
    return _connect(curve.lower + nodes * step, values, 1.0)


def on_grid(curve: Curve, h: float, theta: float, log_scale: float, spare: float) -> Atoms:
    """Atoms above the pair at multiples of h, fine wherever exp(theta t - log_scale) times the excess matters.

    The loss above the last node counts as infinite; that node is moved out until `spare` covers it, or in.
    """
    top, low = curve.upper, curve.lower
    wide = max(top - low, h)
    for _ in range(40):
        if float(curve.delta(np.array([top]))[0]) <= spare:
            break
        top += wide / 4
    bottom = low
    for _ in range(4):
        ladder = np.linspace(bottom, top, 65)
        enough = np.flatnonzero(curve.delta(ladder) <= spare)
        if not len(enough) or enough[0] == 0:
            break
        bottom, top = float(ladder[enough[0] - 1]), float(ladder[enough[0]])
    start = math.floor(low / h)
    span = max(1, math.ceil(top / h) - start)
    levels = max(0, math.ceil(math.log2(span / 32)))
    first = -(-span // (1 << levels))

    def place(i: Floats) -> Floats:
        t = (i + start) * h
        return t - 2 * ULP * np.abs(t)  # the curve is read a hair to the left of the node: from above

    def worth(t: Floats, gap: Floats, excess: Floats, value: Floats) -> NDArray[np.bool_]:
        real = excess > 4 * ULP * value
        with np.errstate(divide="ignore"):
            size = np.log(np.where(real, excess, 0.0)) + np.log(gap) + theta * (t + gap / 2)
        return size > log_scale

    nodes, values = _sample(curve.delta, levels, worth, place, first)
    found = _connect(nodes, values, h)
    return found._replace(at=found.at + start)


def cut(atoms: Atoms, spare: float) -> Atoms:
    """The same with the highest losses made infinite, as long as no more than `spare` is lost to that."""
    above = np.cumsum(np.exp(atoms.log_mass[::-1]))[::-1] * (1 + 1e-12)
    m = max(1, int(np.searchsorted(-above, -spare)))
    lost = float(above[m]) if m < len(above) else 0.0
    return Atoms(atoms.at[:m], atoms.log_mass[:m], atoms.infinite + lost)


@np.errstate(all="ignore")  # whatever the caller's numpy does with tiny numbers
def moment(x: Floats, log_mass: Floats, theta: Floats) -> Floats:
    """log of the sum of mass * e**(theta x), for each theta."""
    terms = np.multiply.outer(theta, x) + log_mass
    top = terms.max(axis=1)
    found: Floats = top + np.log(np.exp(terms - top[:, None]).sum(axis=1))
    return found
