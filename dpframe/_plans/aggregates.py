"""One entry an aggregation: which sums it needs, how it finishes, and the interval of its noise.

Everything here works on noisy numbers, so it is post-processing: it may look at them as it likes.
The intervals are derived in docs/guarantees/intervals.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._plans.measured import Aggregate, Cell, Floats, Interval, Measured, fieller
from dpframe._statistics import order as _order


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
        return _within(*fieller(t1, n, *moments, m.reach(level)), limit=1.0)

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        if n is None and "n" in m.cell.constants:
            n = m.cell.constants["n"]
        if n is None:
            return None
        width = m.cell.upper - m.cell.lower
        worst = max(m.covariance(c, c) for c in ({"t1": 1.0, "n": -t} for t in (0.0, 0.5, 1.0)))
        return min(width, width * m.reach(level) * math.sqrt(worst) / max(n, 1e-300))


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
        reach = m.reach(1 - risk * 0.9)
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
        return min(width / 4, width * m.reach(level) * math.sqrt(worst) / max(n, 1e-300))


class Std(Var):
    def value(self, m: Measured) -> NDArray[Any]:
        return np.asarray(np.sqrt(self._unit_value(m)) * (m.cell.upper - m.cell.lower))

    def interval(self, m: Measured, level: float) -> Interval:
        low, high = self.unit_interval(m, level)
        width = m.cell.upper - m.cell.lower
        return np.sqrt(low) * width, np.sqrt(high) * width

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return None  # near a deviation of zero the error of a root is not proportional to 1/n


class Cov(Aggregate):
    """E[ts] - E[t]E[s], times n / (n - ddof), over rows where neither is null."""

    degree = 2
    bounded = True

    def value(self, m: Measured) -> NDArray[Any]:
        n, t, s, ts = (m.values({name: 1.0}).astype(float) for name in ("n", "t1", "s1", "st"))
        mixed = _ratio(ts, n, empty=0.25) - _ratio(t, n, empty=0.5) * _ratio(s, n, empty=0.5)
        n = np.maximum(n, 2.0)
        return np.asarray(np.clip(mixed, -0.25, 0.25) * n / (n - m.cell.ddof) * m.cell.upper)

    def interval(self, m: Measured, level: float) -> Interval:
        # As for a variance, about the mean of one column; about the middle of the other, which changes no covariance.
        risk = 1 - level
        n, t, s, ts = (m.values({name: 1.0}).astype(float) for name in ("n", "t1", "s1", "st"))
        mean_low, mean_high = Mean().unit_interval(m, 1 - risk / 20)
        low, high = np.full(n.shape, np.inf), np.full(n.shape, -np.inf)
        for share in np.linspace(0, 1, 33):
            mean = mean_low + share * (mean_high - mean_low)
            about = ts - mean * s - t / 2 + mean * n / 2
            some = fieller(about, n, *self._moments(m, mean), m.reach(1 - risk * 0.9))
            low, high = np.minimum(low, some[0]), np.maximum(high, some[1])
        low, high = np.clip(low, -0.25, 0.25), np.clip(high, -0.25, 0.25)
        spare = m.half_width(_N, 1 - risk / 20)
        sizes = np.maximum(n - spare, 2.0), np.maximum(n + spare, 2.0)
        factors = [size / (size - m.cell.ddof) for size in sizes]
        low, high = np.minimum(*(low * f for f in factors)), np.maximum(*(high * f for f in factors))
        return low * m.cell.upper, high * m.cell.upper

    def _moments(self, m: Measured, mean: Floats) -> tuple[Floats, Floats, float]:
        """Variance of the noise in the products about the means, its covariance with the count, the count's."""
        names: tuple[dict[str, float], ...] = {"st": 1.0}, {"s1": 1.0}, _T1, _N
        weights = np.ones_like(mean), -mean, np.full_like(mean, -0.5), mean / 2
        variance = sum(
            u * v * m.covariance(a, b)
            for u, a in zip(weights, names, strict=True)
            for v, b in zip(weights, names, strict=True)
        )
        shared = sum(u * m.covariance(a, _N) for u, a in zip(weights, names, strict=True))
        return np.asarray(variance), np.asarray(shared), m.covariance(_N, _N)

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        if n is None:
            return None
        corners = np.array([0.0, 0.5, 1.0])
        variance, shared, of_n = self._moments(m, corners)
        worst = max(float(np.max(variance - 2 * r * shared + r * r * of_n)) for r in (-0.25, 0.0, 0.25))
        return min(m.cell.upper / 2, m.cell.upper * m.reach(level) * math.sqrt(worst) / max(n, 1e-300))


@dataclass(frozen=True, slots=True)
class Selection(Aggregate):
    """The place of the largest score, or the places of several: a choice, which has no interval."""

    subject: str  # what the scores are
    ranged: bool = False  # whether the exponential mechanism may choose

    selects = True

    def value(self, m: Measured) -> NDArray[Any]:
        assert m.raw is not None
        choice: NDArray[Any] = m.raw[0]
        return choice

    def interval(self, m: Measured, level: float) -> Interval:
        raise AssertionError("a selection has no interval: its verbs return bare candidates")

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return None


class Quantile(Aggregate):
    """The points that were chosen, in the order of their levels: sorted, which is post-processing."""

    bounded = True
    picks = True
    promise = "at most {r:.4g} values too many lie below the answer, and above it"

    def value(self, m: Measured) -> NDArray[Any]:
        assert m.raw is not None
        return _points(m.cell, np.sort(m.raw, axis=0)[int(m.cell.constants["place"])])

    def interval(self, m: Measured, level: float) -> Interval:
        assert m.raw is not None
        nothing = np.full(m.raw.shape[-1], np.nan)  # chosen, not measured
        return nothing, nothing

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return None


class TreeQuantile(Aggregate):
    """Read off an estimate of the whole distribution, which is monotone, so that levels come back in order."""

    bounded = True
    promise = "within ± {r:.4g} ranks"

    def value(self, m: Measured) -> NDArray[Any]:
        assert m.raw is not None
        c = m.cell.constants
        return _points(m.cell, _order.read_off(_order.estimated(m.raw, int(c["points"])), c["level"]))

    def interval(self, m: Measured, level: float) -> Interval:
        assert m.raw is not None
        c = m.cell.constants
        cumulative = _order.estimated(m.raw, int(c["points"]))
        low, high = _order.enclose(
            cumulative, c["level"], m.noise.reach(level, len(m.raw)) * m.noise.deviation
        )
        return _points(m.cell, low), _points(m.cell, high)

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return None  # in values; in ranks it is known

    def ranks(self, m: Measured) -> float:
        c = m.cell.constants
        worst = _order.deviations(int(c["points"]), c["level"]).max()
        return (
            float(worst) * m.noise.reach(0.95, sum(_order.level_sizes(int(c["points"])))) * m.noise.deviation
        )


def _points(cell: Cell, places: NDArray[Any]) -> Floats:
    """Points of a grid in data units."""
    with np.errstate(over="ignore"):
        found = np.ldexp(cell.constants["low"] + places.astype(float), -int(cell.constants["exponent"]))
    return np.asarray(np.clip(found, cell.lower, cell.upper) + 0.0)


AGGREGATES: dict[str, Aggregate] = {
    "size": Size(),
    "people": Size(),
    "people by rows": Size(),
    "people by groups": Size(),
    "people by magnitude": Size(),
    "nunique": Size(),
    "count": Count(),
    "true": Question(),
    "sum": Sum(),
    "mean": Mean(),
    "var": Var(),
    "std": Std(),
    "cov": Cov(),
    "argmax": Selection("count"),
    "top": Selection("count"),
    "choose": Selection("utility", True),
    "revenue": Selection("revenue", True),
    "quantile": Quantile(),
    "tree": TreeQuantile(),
}
# What `agg` may name; the others are verbs of their own.
NAMED = ("size", "count", "nunique", "sum", "mean", "var", "std")
# The rows of `describe`, in pandas' order.
DESCRIBED = ("count", "mean", "std")
CHOSEN = ("median",)  # those that `agg` may name too, and that leave no number but a choice
# Order statistics by name, as levels of a quantile. A least or greatest value is one person's, so these are near them.
ORDERS = {"median": Fraction(1, 2), "min": Fraction(1, 100), "max": Fraction(99, 100)}
