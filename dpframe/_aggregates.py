"""One entry an aggregation: which sums it needs, how it finishes, and the interval of its noise.

Everything here works on noisy numbers, so it is post-processing: it may look at them as it likes.
The intervals are derived in docs/guarantees/intervals.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe import _tree
from dpframe._errors import NotOffered
from dpframe.mechanisms._quantiles import COARSE
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.laplace import Laplace

Floats = NDArray[np.float64]
Interval = tuple[NDArray[Any], NDArray[Any]]
Noise = Laplace | Gaussian

_LARGEST = np.finfo(float).max


@dataclass(frozen=True, slots=True)
class Cell:
    """One output as the plan knows it: which part of the vector it reads, and how."""

    name: Any
    aggregate: str
    part: int
    lower: float
    upper: float
    ddof: int
    whole: bool  # answers are whole numbers, whatever the data
    functionals: dict[str, tuple[float, ...]]
    constants: dict[str, float]


class Measured:
    """Noisy linear sums of one output, with the covariance of their noise (the same for every group)."""

    def __init__(self, cell: Cell, noise: Noise, raw: NDArray[Any] | None = None):
        self.cell = cell
        self.noise = noise
        self.raw = raw

    def weights(self, combination: dict[str, float]) -> Floats:
        rows = [w * np.asarray(self.cell.functionals[name]) for name, w in combination.items()]
        weights: Floats = np.sum(rows, axis=0)
        return weights

    def values(self, combination: dict[str, float]) -> NDArray[Any]:
        assert self.raw is not None
        weights = self.weights(combination)
        constant = sum(w * self.cell.constants.get(name, 0.0) for name, w in combination.items())
        if constant == 0 and np.count_nonzero(weights) == 1 and weights.max() == 1:
            row: NDArray[Any] = self.raw[int(np.argmax(weights))]  # exact, perhaps beyond 2**53
            return row
        with np.errstate(over="ignore"):
            sums: Floats = np.clip(weights @ self.raw.astype(float) + constant, -_LARGEST, _LARGEST)
        return sums

    def covariance(self, a: dict[str, float], b: dict[str, float]) -> float:
        return float(self.weights(a) @ self.weights(b)) * self.noise.deviation**2

    def half_width(self, combination: dict[str, float], level: float) -> float:
        weights = self.weights(combination)
        used = np.abs(weights[weights != 0])
        if len(used) == 1 or (len(used) and self.noise.deviation < COARSE and np.ptp(used) == 0):
            return float(used[0] * self.noise.quantile(level, len(used)))  # exact for the integers
        return self.noise.spread(level) * self.noise.deviation * math.hypot(*weights)


def fieller(
    top: Floats, n: Floats, v_top: float | Floats, cov: float | Floats, v_n: float, reach: float
) -> tuple[Floats, Floats]:
    """All r with (top - r n)**2 <= reach**2 (v_top - 2 r cov + r**2 v_n); everything where n may be zero.

    At the true ratio the left side is noise alone, with just the variance on the right (Fieller 1954).
    """
    a = n * n - reach**2 * v_n
    b = top * n - reach**2 * cov
    c = top * top - reach**2 * v_top
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        root = np.sqrt(np.maximum(b * b - a * c, 0))
        low, high = (b - root) / a, (b + root) / a
    certain = (a > 0) & (n > 0) & np.isfinite(low) & np.isfinite(high)
    return np.where(certain, low, -np.inf), np.where(certain, high, np.inf)


class Aggregate(ABC):
    """An entry: what it needs, and its finish."""

    degree: ClassVar[int] = 0  # the highest moment it is made of
    bounded: ClassVar[bool] = False  # whether it needs public bounds
    selects: ClassVar[bool] = False  # whether it picks a group or a value instead of measuring
    promise: ClassVar[str] = (
        ""  # where the error is not one of the answer itself: what holds with probability 0.95
    )

    @abstractmethod
    def value(self, m: Measured) -> NDArray[Any]:
        """One answer a group."""

    @abstractmethod
    def interval(self, m: Measured, level: float) -> Interval:
        """Where the answer without noise lies with probability ``level``."""

    @abstractmethod
    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        """Half the width of the interval to expect; None where it depends on an unknown number of values."""

    def ranks(self, m: Measured) -> float:
        """Of an entry with a promise and noise: the number in it."""
        raise AssertionError("only an error in ranks is known in advance")


class _Linear(Aggregate):
    """A weighted sum of the released integers."""

    @abstractmethod
    def combination(self, cell: Cell) -> dict[str, float]: ...

    def value(self, m: Measured) -> NDArray[Any]:
        values = m.values(self.combination(m.cell))
        if m.cell.whole and values.dtype.kind == "f":
            return np.asarray(np.rint(values).astype(np.int64))
        return values

    def interval(self, m: Measured, level: float) -> Interval:
        half = m.half_width(self.combination(m.cell), level)
        values = m.values(self.combination(m.cell))
        with np.errstate(over="ignore"):
            low, high = values - half, values + half
        if not m.cell.whole:
            return low, high
        # The answer without noise is whole, so the interval may end at whole numbers.
        return np.ceil(low.astype(float) - 1e-6), np.floor(high.astype(float) + 1e-6)

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return m.half_width(self.combination(m.cell), level)


class Size(_Linear):
    def combination(self, cell: Cell) -> dict[str, float]:
        return {"size" if "size" in cell.functionals else "n": 1.0}


class Count(_Linear):
    def combination(self, cell: Cell) -> dict[str, float]:
        return {"n" if "n" in cell.functionals else "size": 1.0}


class Question(_Linear):
    def combination(self, cell: Cell) -> dict[str, float]:
        return {next(iter(cell.functionals)): 1.0}


class Sum(_Linear):
    degree = 1
    bounded = True

    def combination(self, cell: Cell) -> dict[str, float]:
        if "total" in cell.functionals:
            return {"total": 1.0}
        return {"n": cell.lower, "t1": cell.upper - cell.lower}


_N, _T1, _T2 = {"n": 1.0}, {"t1": 1.0}, {"t2": 1.0}


def _stretch(cell: Cell, t: Floats) -> Floats:
    """From the scale where the bounds are 0 and 1 to data units, without overflow and within the bounds."""
    return np.clip(cell.lower * (1 - t) + cell.upper * t, cell.lower, cell.upper)


class Mean(Aggregate):
    degree = 1
    bounded = True

    def value(self, m: Measured) -> NDArray[Any]:
        n, t1 = m.values(_N).astype(float), m.values(_T1).astype(float)
        return _stretch(m.cell, _ratio(t1, n, empty=0.5))

    def interval(self, m: Measured, level: float) -> Interval:
        low, high = self.unit_interval(m, level)
        bottom = _stretch(m.cell, low)
        return bottom, np.maximum(bottom, _stretch(m.cell, high))  # bounds may be a few doubles apart

    def unit_interval(self, m: Measured, level: float) -> tuple[Floats, Floats]:
        n, t1 = m.values(_N).astype(float), m.values(_T1).astype(float)
        moments = m.covariance(_T1, _T1), m.covariance(_T1, _N), m.covariance(_N, _N)
        return _within(*fieller(t1, n, *moments, m.noise.spread(level)), limit=1.0)

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        if n is None and "n" in m.cell.constants:
            n = m.cell.constants["n"]
        if n is None:
            return None
        width = m.cell.upper - m.cell.lower
        worst = max(m.covariance(c, c) for c in ({"t1": 1.0, "n": -t} for t in (0.0, 0.5, 1.0)))
        return min(width, width * m.noise.spread(level) * math.sqrt(worst) / max(n, 1e-300))


def _ratio(top: Floats, n: Floats, empty: float) -> Floats:
    """top / n within [0, 1]; ``empty`` where the noisy count leaves nothing to divide by."""
    positive = n > 0
    return np.clip(np.where(positive, top / np.where(positive, n, 1.0), empty), 0.0, 1.0)


def _within(low: Floats, high: Floats, limit: float) -> tuple[Floats, Floats]:
    """The part of the interval that is possible; all that is possible where they do not meet."""
    missed = (low > limit) | (high < 0)
    low, high = np.where(missed, 0.0, low), np.where(missed, limit, high)
    return np.clip(low, 0.0, limit), np.clip(high, 0.0, limit)


class Var(Aggregate):
    """E[t**2] - E[t]**2, times n / (n - ddof)."""

    degree = 2
    bounded = True

    def value(self, m: Measured) -> NDArray[Any]:
        return self._unit_value(m) * (m.cell.upper - m.cell.lower) ** 2

    def _unit_value(self, m: Measured) -> Floats:
        n, t1, t2 = (m.values(c).astype(float) for c in (_N, _T1, _T2))
        population: Floats = np.clip(_ratio(t2, n, empty=1 / 3) - _ratio(t1, n, empty=0.5) ** 2, 0.0, 0.25)
        n = np.maximum(n, 2.0)
        unbiased: Floats = population * n / (n - m.cell.ddof)
        return unbiased

    def interval(self, m: Measured, level: float) -> Interval:
        low, high = self.unit_interval(m, level)
        width = m.cell.upper - m.cell.lower
        return low * width**2, high * width**2

    def unit_interval(self, m: Measured, level: float) -> tuple[Floats, Floats]:
        # A twentieth of the risk each on the mean and on the count, the rest on the squares about the mean.
        risk = 1 - level
        n, t1, t2 = (m.values(c).astype(float) for c in (_N, _T1, _T2))
        mean_low, mean_high = Mean().unit_interval(m, 1 - risk / 20)
        reach = m.noise.spread(1 - risk * 0.9)
        low, high = np.full(n.shape, np.inf), np.full(n.shape, -np.inf)
        for share in np.linspace(0, 1, 33):
            mean = mean_low + share * (mean_high - mean_low)
            about = t2 - 2 * mean * t1 + mean**2 * n
            v_top, cov, v_n = self._moments(m, mean)
            some_low, some_high = fieller(about, n, v_top, cov, v_n, reach)
            low, high = np.minimum(low, some_low), np.maximum(high, some_high)
        low, high = _within(low, high, limit=0.25)
        spare = m.half_width(_N, 1 - risk / 20)
        fewest, most = np.maximum(n - spare, 2.0), np.maximum(n + spare, 2.0)
        ddof = m.cell.ddof
        return low * most / (most - ddof), high * fewest / (fewest - ddof)

    def _moments(self, m: Measured, mean: Floats) -> tuple[Floats, Floats, float]:
        """Variance of the noise in the squares about ``mean``, its covariance with the count, the count's."""
        s = {
            (i, j): m.covariance(a, b)
            for i, a in enumerate((_N, _T1, _T2))
            for j, b in enumerate((_N, _T1, _T2))
        }
        w = (mean**2, -2 * mean, np.ones_like(mean))
        v_top = sum(w[i] * w[j] * s[i, j] for i in range(3) for j in range(3))
        cov = sum(w[i] * s[i, 0] for i in range(3))
        return np.asarray(v_top), np.asarray(cov), s[0, 0]

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        if n is None:
            return None
        about = [{"t2": 1.0, "t1": -2 * t, "n": t * t - v} for t in (0.0, 0.5, 1.0) for v in (0.0, 0.25)]
        worst = max(m.covariance(c, c) for c in about)
        width = (m.cell.upper - m.cell.lower) ** 2
        return min(width / 4, width * m.noise.spread(level) * math.sqrt(worst) / max(n, 1e-300))


class Std(Var):
    def value(self, m: Measured) -> NDArray[Any]:
        return np.asarray(np.sqrt(self._unit_value(m)) * (m.cell.upper - m.cell.lower))

    def interval(self, m: Measured, level: float) -> Interval:
        low, high = self.unit_interval(m, level)
        width = m.cell.upper - m.cell.lower
        return np.sqrt(low) * width, np.sqrt(high) * width

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return None  # near a deviation of zero the error of a root is not proportional to 1/n


class Argmax(Aggregate):
    """The group with the most rows: a selection, which has no interval."""

    selects = True
    promise = "the count of the choice is within {r:.4g} of the largest"

    def value(self, m: Measured) -> NDArray[Any]:
        assert m.raw is not None
        choice: NDArray[Any] = m.raw[0]
        return choice

    def interval(self, m: Measured, level: float) -> Interval:
        raise AssertionError("a selection has no interval; PrivateFrame.argmax returns the bare key")

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return None


class Quantile(Aggregate):
    """The points that were chosen, in the order of their levels: sorted, which is post-processing."""

    bounded = True
    selects = True
    promise = "at most {r:.4g} values too many lie below the answer, and above it"

    def value(self, m: Measured) -> NDArray[Any]:
        assert m.raw is not None
        return _points(m.cell, np.sort(m.raw, axis=0)[int(m.cell.constants["place"])])

    def interval(self, m: Measured, level: float) -> Interval:
        raise NotOffered(
            "a quantile is chosen, not measured, so no interval of values comes with it. Its plan tells by how many "
            "ranks it may miss. quantile(column, q, method='tree') has intervals."
        )

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return None


class TreeQuantile(Aggregate):
    """Read off an estimate of the whole distribution, which is monotone, so that levels come back in order."""

    bounded = True
    promise = "within ± {r:.4g} ranks"

    def value(self, m: Measured) -> NDArray[Any]:
        assert m.raw is not None
        c = m.cell.constants
        return _points(m.cell, _tree.read_off(_tree.estimated(m.raw, int(c["points"])), c["level"]))

    def interval(self, m: Measured, level: float) -> Interval:
        assert m.raw is not None
        c = m.cell.constants
        cumulative = _tree.estimated(m.raw, int(c["points"]))
        low, high = _tree.enclose(cumulative, c["level"], m.noise.spread(level) * m.noise.deviation)
        return _points(m.cell, low), _points(m.cell, high)

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return None  # in values; in ranks it is known

    def ranks(self, m: Measured) -> float:
        c = m.cell.constants
        worst = _tree.deviations(int(c["points"]), c["level"]).max()
        return float(worst) * m.noise.spread(0.95) * m.noise.deviation


def _points(cell: Cell, places: NDArray[Any]) -> Floats:
    """Points of a grid in data units."""
    with np.errstate(over="ignore"):
        found = np.ldexp(cell.constants["low"] + places.astype(float), -int(cell.constants["exponent"]))
    return np.asarray(np.clip(found, cell.lower, cell.upper) + 0.0)


AGGREGATES: dict[str, Aggregate] = {
    "size": Size(),
    "count": Count(),
    "true": Question(),
    "sum": Sum(),
    "mean": Mean(),
    "var": Var(),
    "std": Std(),
    "argmax": Argmax(),
    "quantile": Quantile(),
    "tree": TreeQuantile(),
}
# What `agg` may name; the others are verbs of their own.
NAMED = ("size", "count", "sum", "mean", "var", "std")
CHOSEN = ("median",)  # those that `agg` may name too, and that leave no number but a choice
# Order statistics by name, as levels of a quantile. A least or greatest value is one person's, so these are near them.
ORDERS = {"median": Fraction(1, 2), "min": Fraction(1, 100), "max": Fraction(99, 100)}
