"""Minima of regularised convex objectives, approximate, with a proof of how approximate.

    F(w) = sum_i c_i phi(x_i . w; y_i) + l2/2 |w|**2 + b . w

over rows with |x_ij| <= 1. F is l2-strongly convex, so a point whose gradient has norm gamma lies
within gamma / l2 of the minimum. `minimise` returns only points for which that norm is proved,
rounding included (docs/guarantees/learning.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpframe._sizes import SIZES

Floats = NDArray[np.float64]
_FUNCTION = 2.0**-45  # relative error granted to exp and expit, many times what they claim
_ROUNDS = 60


@dataclass(frozen=True, slots=True)
class ScoreLoss:
    """phi, as a function of the score z = x . w and of y in [-1, 1]: |phi'| <= slope and 0 <= phi''
    <= curve."""

    identity: ClassVar[tuple[str, ...]] = ("loss", "name", "slope", "curve")

    name: str
    slope: float
    curve: float

    def first(self, z: Any, y: Any) -> Any:
        """Return the derivative of the loss at scores ``z``, for targets ``y``."""
        if self.name == "huber":
            return np.clip(z - y, -self.slope, self.slope)
        if z.dtype == np.float64:
            return -y * special.expit(-y * z)
        return -y / (1 + np.exp(y * z))

    def second(self, z: Floats, y: Floats, first: Floats) -> Floats:
        """Return the second derivative of the loss at scores ``z``, where it exists. ``first`` is
        the first derivative there."""
        if self.name == "huber":
            inside: Floats = (np.abs(z - y) < self.slope).astype(np.float64)
            return inside
        share: Floats = np.abs(first)
        curves: Floats = share * (1 - share)
        return curves


LOGISTIC = ScoreLoss("logistic", 1.0, 0.25)


@dataclass
class Problem:
    """The rows in scaled units, their weights (None: all 1), and the public numbers of the
    objective."""

    x: Floats
    y: Floats
    weights: Floats | None
    loss: ScoreLoss
    l2: float
    linear: Floats

    def part(self, every: int) -> Problem:
        """Return a smaller problem on every ``every``-th row, for a starting point.

        Its other terms are scaled down by the same factor, so that its minimum is nearly the same.
        """
        if every == 1:
            return self
        weights = None if self.weights is None else self.weights[::every]
        x = self.x[::every].copy()
        times = len(self.x) / len(x)
        return Problem(x, self.y[::every], weights, self.loss, self.l2 / times, self.linear / times)

    def slopes(self, z: object, kind: Any = np.float64) -> Any:
        y = self.y.astype(kind, copy=False)
        first = self.loss.first(z, y)
        return first if self.weights is None else first * self.weights

    def gradient(self, w: Floats, slopes: Floats) -> Floats:
        gradient: Floats = slopes @ self.x + self.l2 * w + self.linear
        return gradient

    def hessian(self, z: Floats, slopes: Floats) -> Floats:
        """Return the matrix of second derivatives of the objective.

        ``z`` are the scores of the rows (features times coefficients), and ``slopes`` the weighted
        derivatives of the loss there.
        """
        first = slopes if self.weights is None else self.loss.first(z, self.y)
        curves = self.loss.second(z, self.y, first)
        if self.weights is not None:
            curves = curves * self.weights
        p = self.x.shape[1]
        total = np.eye(p) * self.l2
        for start in range(0, len(self.x), SIZES.solver_rows):
            x = self.x[start : start + SIZES.solver_rows]
            total += (x * curves[start : start + SIZES.solver_rows, None]).T @ x
        return total

    def bound_gradient(self, w: Any, kind: Any = np.float64) -> tuple[Any, float]:
        """Return the gradient at the coefficients ``w``, and a bound on the norm of the exact
        gradient.

        ``kind`` is the float type to compute in, such as longdouble. The gradient sums a slope
        times a row of ``x``, over all rows. The bound is the norm of the computed gradient plus
        that of its rounding errors: each entry is off by at most ``margin``. With a unit roundoff
        u, a dot product of m terms is off by at most m u times the sum of their sizes, in whatever
        order it is added. So short pieces are added, and their sums added exactly.
        """
        u = float(np.finfo(kind).eps) / 2  # the relative error of one operation
        n, p = self.x.shape
        total: list[list[Any]] = [[] for _ in range(p)]
        sizes = 0.0
        for start in range(0, n, SIZES.solver_rows):
            part = slice(start, start + SIZES.solver_rows)
            x, y = self.x[part].astype(kind, copy=False), self.y[part].astype(kind, copy=False)
            slopes = self.loss.first(x @ w, y)
            if self.weights is not None:
                slopes = slopes * self.weights[part]
            sizes += float(np.abs(slopes).sum())
            for offset in range(0, len(slopes), SIZES.solver_terms):
                terms = slice(offset, offset + SIZES.solver_terms)
                sums = slopes[terms] @ x[terms]
                for j in range(p):
                    total[j].append(sums[j])
        added = np.array([_exact(t) for t in total], dtype=kind)
        gradient = added + self.l2 * w + self.linear
        total_weight = float(n if self.weights is None else self.weights.sum())
        # The error of a slope that comes from that of its score x @ w.
        reach = float(np.abs(w).sum()) + 1.0
        slope_error = self.loss.curve * (p + 8) * u * reach
        # The relative error of a product of slope and row, and of adding it up.
        rounding = (SIZES.solver_terms + 8) * u + _FUNCTION * (u / 2.0**-53)
        linear_terms = self.l2 * float(np.abs(w).max()) + float(np.abs(self.linear).max())
        largest = float(np.abs(added).max()) + linear_terms
        margin = rounding * sizes + slope_error * total_weight + 8 * u * largest
        norm = math.sqrt(float((gradient * gradient).sum())) + math.sqrt(p) * margin
        return gradient, norm * (1 + 1e-6)


def _exact(terms: list[Any]) -> Any:
    """Return the sum of floats, rounded only once; of long doubles nearly so."""
    if not terms or isinstance(terms[0], float):
        return math.fsum(terms)
    high = [float(t) for t in terms]  # of longer numbers the leading parts, and what they leave
    lead = math.fsum(high)
    rest = math.fsum([*high, -lead, *(float(t - h) for t, h in zip(terms, high, strict=True))])
    return np.longdouble(lead) + np.longdouble(rest)


def newton(problem: Problem, gamma: float) -> Floats:
    """Return coefficients near the minimum, by Newton's method.

    Their gradient has a norm of at most ``gamma``, unless rounding or corners prevent that. With
    many rows, a part of them gives a starting point, and the curvature well enough.
    """
    part = problem.part(max(1, len(problem.x) // SIZES.solver_sample))
    if part is problem:
        return _descend(problem, problem, np.zeros(problem.x.shape[1]), gamma)
    times = len(problem.x) / len(part.x)
    w = _descend(part, part, np.zeros(problem.x.shape[1]), gamma / times)
    w = _descend(problem, part, w, gamma)
    return _descend(problem, problem, w, gamma)  # does nothing if that was enough


def _descend(problem: Problem, shape: Problem, w: Floats, gamma: float) -> Floats:
    """Return the coefficients that Newton's method reaches from ``w``.

    It ends when the norm of the gradient is at most ``gamma`` / 16, or no step makes it shorter.
    The curvature is that of ``shape``, which is ``problem`` or a smaller one with part of the rows.
    With ``problem`` itself a step that does not shorten the gradient is halved; else the descent
    ends.
    """
    z = problem.x @ w
    slopes = problem.slopes(z)
    g = problem.gradient(w, slopes)
    enough = 1 / 4 if shape is not problem else 1.0
    times = problem.l2 / shape.l2
    for _ in range(_ROUNDS):
        size = float(np.linalg.norm(g))
        if size <= gamma / 16:
            break
        shape_scores = z if shape is problem else shape.x @ w
        try:
            step = np.linalg.solve(
                shape.hessian(shape_scores, shape.slopes(shape_scores)) * times, g
            )
        except np.linalg.LinAlgError:  # nothing may tell of it
            break
        share = 1.0
        while share > 2.0**-30:
            trial = w - share * step
            trial_z = problem.x @ trial
            trial_slopes = problem.slopes(trial_z)
            trial_g = problem.gradient(trial, trial_slopes)
            if float(np.linalg.norm(trial_g)) <= (1 - share / 8) * enough * size:
                break
            share = share / 2 if shape is problem else 0.0
        else:
            break
        w, z, slopes, g = trial, trial_z, trial_slopes, trial_g
    return w


def follow_newton_directions(problem: Problem, w: Floats, gamma: float) -> Floats:
    """Return the coefficients that a line search along Newton's directions reaches from ``w``.

    It ends when the norm of the gradient is at most ``gamma`` / 16. Along each direction it goes to
    where the objective has nearly stopped falling. The slope along a line is monotone, so bisection
    finds that point. This is for objectives with corners, such as Huber's loss, where gradients
    need not get shorter on the way.
    """
    for _ in range(4 * _ROUNDS):
        z = problem.x @ w
        slopes = problem.slopes(z)
        g = problem.gradient(w, slopes)
        if float(np.linalg.norm(g)) <= gamma / 16:
            break
        try:
            step = np.linalg.solve(problem.hessian(z, slopes), g)
        except np.linalg.LinAlgError:
            step = g / problem.l2
        across = problem.x @ step
        slope_at_start, square = (
            float((problem.l2 * w + problem.linear) @ step),
            problem.l2 * float(step @ step),
        )
        first = float(g @ step)
        low, high, t = 0.0, 0.0, 1.0
        for _ in range(2 * _ROUNDS):
            slope = slope_at_start - t * square + float(problem.slopes(z - t * across) @ across)
            if abs(slope) <= first / 16:
                break
            low, high = (t, high) if slope > 0 else (low, t)
            t = (low + high) / 2 if high else 2 * low
        else:  # doubles tell no more
            break
        w = w - t * step
    return w


def minimise(problem: Problem, gamma: float) -> Any:
    """Return coefficients at which the norm of the gradient is proved to be at most ``gamma``.

    The privacy of objective perturbation rests on that bound. They are doubles or long doubles.
    Slower methods are tried one after the other, until one gives such a proof.
    """
    w: Any = newton(problem, gamma)
    if problem.bound_gradient(w)[1] <= gamma:
        return w
    # If there are many rows, or slopes are small beside their rounding, long doubles are needed,
    # also for the coefficients: no double near them may be close enough.
    point, g, norm = refine_minimum(problem, w, gamma)
    if not norm <= gamma:  # the objective may have corners
        point, g, norm = refine_minimum(problem, follow_newton_directions(problem, w, gamma), gamma)
    # Never needed so far, and certain to end: each step lowers F by at least half the squared
    # gradient norm over its smoothness.
    total_weight = float(len(problem.x) if problem.weights is None else problem.weights.sum())
    smooth = problem.l2 + problem.loss.curve * problem.x.shape[1] * total_weight
    while not norm <= gamma:
        point, g, norm = refine_minimum(problem, point - g / smooth, gamma)
    return point


def refine_minimum(problem: Problem, w: Any, gamma: float) -> tuple[Any, Any, float]:
    """Return the coefficients after Newton's steps in longer floats, with their gradient and a
    proved bound on its norm.

    Steps are taken in longer floats as long as each halves the gradient; doubles are enough for the
    curvature.
    """
    kind = np.longdouble
    w = w.astype(kind)
    g, norm = problem.bound_gradient(w, kind)
    while not norm <= gamma:
        z = problem.x @ w.astype(np.float64)
        try:
            there = w - np.linalg.solve(problem.hessian(z, problem.slopes(z)), g.astype(np.float64))
        except np.linalg.LinAlgError:
            break
        g_there, norm_there = problem.bound_gradient(there, kind)
        if not norm_there <= norm / 2:
            break
        w, g, norm = there, g_there, norm_there
    return w, g, norm
