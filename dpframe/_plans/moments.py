"""Variances, deviations and covariances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._plans.aggregates import Aggregate, Vector, aggregation
from dpframe._plans.arrange import OfColumn, OfPair
from dpframe._plans.measured import Floats, Interval, Measured, fieller
from dpframe._plans.output import Output
from dpframe._plans.sums import T1, Mean, N, ratio, within

T2 = {"t2": 1.0}


@aggregation("var")
class Var(Aggregate):
    """E[t**2] - E[t]**2, times n / (n - ddof)."""

    degree = 2
    needs_bounds = True
    takes_ddof = True
    named_in_agg = True
    found_at_once = True

    def vector_of(self, out: Output) -> Vector:
        return OfColumn(*out.clipped[0])

    def value(self, m: Measured) -> NDArray[Any]:
        return self._unit_value(m) * (m.cell.upper - m.cell.lower) ** 2

    def _unit_value(self, m: Measured) -> Floats:
        n, t1, t2 = (m.values(c).astype(float) for c in (N, T1, T2))
        population: Floats = np.clip(ratio(t2, n, empty=1 / 3) - ratio(t1, n, empty=0.5) ** 2, 0.0, 0.25)
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
        n, t1, t2 = (m.values(c).astype(float) for c in (N, T1, T2))
        mean_low, mean_high = Mean().unit_interval(m, 1 - risk / 20)
        reach = m.reach(1 - risk * 0.9)
        low, high = np.full(n.shape, np.inf), np.full(n.shape, -np.inf)
        for share in np.linspace(0, 1, 33):
            mean = mean_low + share * (mean_high - mean_low)
            about = t2 - 2 * mean * t1 + mean**2 * n
            v_top, cov, v_n = self._moments(m, mean)
            some_low, some_high = fieller(about, n, v_top, cov, v_n, reach)
            low, high = np.minimum(low, some_low), np.maximum(high, some_high)
        low, high = within(low, high, limit=0.25)
        spare = m.half_width(N, 1 - risk / 20)
        fewest, most = np.maximum(n - spare, 2.0), np.maximum(n + spare, 2.0)
        ddof = m.cell.ddof
        return low * most / (most - ddof), high * fewest / (fewest - ddof)

    def _moments(self, m: Measured, mean: Floats) -> tuple[Floats, Floats, float]:
        """Variance of the noise in the squares about ``mean``, its covariance with the count, the count's."""
        s = {(i, j): m.covariance(a, b) for i, a in enumerate((N, T1, T2)) for j, b in enumerate((N, T1, T2))}
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


@aggregation("std")
class Std(Var):
    def value(self, m: Measured) -> NDArray[Any]:
        return np.asarray(np.sqrt(self._unit_value(m)) * (m.cell.upper - m.cell.lower))

    def interval(self, m: Measured, level: float) -> Interval:
        low, high = self.unit_interval(m, level)
        width = m.cell.upper - m.cell.lower
        return np.sqrt(low) * width, np.sqrt(high) * width

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        return None  # near a deviation of zero the error of a root is not proportional to 1/n


@aggregation("cov")
class Cov(Aggregate):
    """E[ts] - E[t]E[s], times n / (n - ddof), over rows where neither is null."""

    degree = 2
    needs_bounds = True
    takes_ddof = True

    def vector_of(self, out: Output) -> Vector:
        return OfPair(out)

    def ends(self, out: Output) -> tuple[float, float]:
        (_, one), (_, other) = out.clipped
        return 0.0, (one.upper - one.lower) * (other.upper - other.lower)

    def value(self, m: Measured) -> NDArray[Any]:
        n, t, s, ts = (m.values({name: 1.0}).astype(float) for name in ("n", "t1", "s1", "st"))
        mixed = ratio(ts, n, empty=0.25) - ratio(t, n, empty=0.5) * ratio(s, n, empty=0.5)
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
        spare = m.half_width(N, 1 - risk / 20)
        sizes = np.maximum(n - spare, 2.0), np.maximum(n + spare, 2.0)
        factors = [size / (size - m.cell.ddof) for size in sizes]
        low, high = np.minimum(*(low * f for f in factors)), np.maximum(*(high * f for f in factors))
        return low * m.cell.upper, high * m.cell.upper

    def _moments(self, m: Measured, mean: Floats) -> tuple[Floats, Floats, float]:
        """Variance of the noise in the products about the means, its covariance with the count, the count's."""
        names: tuple[dict[str, float], ...] = {"st": 1.0}, {"s1": 1.0}, T1, N
        weights = np.ones_like(mean), -mean, np.full_like(mean, -0.5), mean / 2
        variance = sum(
            u * v * m.covariance(a, b)
            for u, a in zip(weights, names, strict=True)
            for v, b in zip(weights, names, strict=True)
        )
        shared = sum(u * m.covariance(a, N) for u, a in zip(weights, names, strict=True))
        return np.asarray(variance), np.asarray(shared), m.covariance(N, N)

    def error(self, m: Measured, level: float, n: float | None) -> float | None:
        if n is None:
            return None
        corners = np.array([0.0, 0.5, 1.0])
        variance, shared, of_n = self._moments(m, corners)
        worst = max(float(np.max(variance - 2 * r * shared + r * r * of_n)) for r in (-0.25, 0.0, 0.25))
        return min(m.cell.upper / 2, m.cell.upper * m.reach(level) * math.sqrt(worst) / max(n, 1e-300))
