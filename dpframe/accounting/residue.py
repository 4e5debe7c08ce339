"""One step of the residue filter: what is left of a Gaussian budget after an event (docs/guarantees/residue.md).

A budget is a remaining mu > 0. An event with dominating pair D may happen if some mu' >= 0 has D x G(mu') <= G(mu),
hockey-stick curve below curve at every real threshold, where G(mu) is N(mu, 1) against N(0, 1); mu' is what remains.
Each function here returns such a mu', as large as it can certify, or None.

Formal guarantee: every mu' returned satisfies the inequality at all real thresholds, rounding included. A session
that starts at mu, replaces mu by the mu' of each event before it happens, and ends when there is none, is dominated
by G(mu), however the events are chosen (theorem 1 of the page).

For `after_pure` the threshold 0 decides (theorem 2); the others use the certificate of `_residue`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from dpframe.accounting._residue import Bump, atoms, cost_of, laplace, two_points

_ROOT8 = math.sqrt(8)
_ULP = 2.0**-52
# Above this mu erfc comes near underflow; what an event costs here it costs at every larger mu (theorem 4).
_TOP = 50.0


def _check(epsilon: float, mu: float) -> None:
    if not (0 <= epsilon < math.inf and mu >= 0):
        raise ValueError(
            f"epsilon must be finite and >= 0 and mu >= 0, got epsilon={epsilon!r} and mu={mu!r}"
        )


def _remains(mu: float, cost: float) -> float:
    """sqrt(mu**2 - cost), rounded down."""
    return math.sqrt(max(0.0, mu * mu * (1 - _ULP) - cost)) * (1 - _ULP) if cost > 0 else mu


# A purely private event ---------------------------------------------------------------------------------------


def _distance(epsilon: float, mu: float) -> float:
    """The total variation H(0) of randomized response with Gaussian noise of this mu, for mu < 1.

    (e**epsilon E(+) - E(-)) / (1 + e**epsilon), E(+-) = erf((epsilon/mu +- mu/2)/sqrt 2), as a sum of positive terms.
    """
    tanh = math.tanh(epsilon / 2)
    if mu == 0:
        return tanh
    a = epsilon / mu
    total = 0.0
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        y = mu / 2 * node
        total += weight * math.exp(-((a - y) ** 2) / 2) + weight * math.exp(-((a + y) ** 2) / 2)
    band = total * mu / 2 / math.sqrt(2 * math.pi)
    return tanh * math.erf((a + mu / 2) / math.sqrt(2)) + 2 / (1 + math.exp(epsilon)) * band


_NODES, _WEIGHTS = (a.tolist()[5:] for a in np.polynomial.legendre.leggauss(10))


def _overlap(epsilon: float, mu: float) -> float:
    """1 - H(0) of the same, to relative accuracy where it is small."""
    likely, rare = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    if mu == 0:
        return 2 * rare
    a = epsilon / mu
    return likely * math.erfc((a + mu / 2) / math.sqrt(2)) + rare * math.erfc((mu / 2 - a) / math.sqrt(2))


def _pure_fits(epsilon: float, mu: float, left: float) -> bool:
    # The margins are some ten times the error: a few ulp of each positive term, and 2 z**2 ulp for erfc(z), z <= mu.
    if mu < 1:
        return _distance(epsilon, left) * (1 + 64 * _ULP) <= math.erf(mu / _ROOT8)
    return _overlap(epsilon, left) >= math.erfc(mu / _ROOT8) * (1 + (64 + 8 * mu * mu) * _ULP)


def after_pure(epsilon: float, mu: float) -> float | None:
    """What remains of mu after any epsilon-private event.

    Formal guarantee: such an event is dominated by randomized response (Kairouz, Oh and Viswanath 2015), and for that
    pair the threshold 0 decides (theorem 2 of the page). It ends at mu = 2 Phi**-1(e**epsilon / (1 + e**epsilon)).

    >>> round(after_pure(0.1, 1.0), 6)
    0.994981
    >>> after_pure(0.81, 1.0) is None
    True
    """
    _check(epsilon, mu)
    if epsilon == 0:
        return mu
    if mu > _TOP:
        left = after_pure(epsilon, _TOP)
        return None if left is None else _remains(mu, (_TOP - left) * (_TOP + left) * (1 + 4 * _ULP))
    if epsilon > 700 or not _pure_fits(epsilon, mu, 0.0):
        return None
    low, high = 0.0, mu
    while high - low > _ULP * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if _pure_fits(epsilon, mu, middle) else (low, middle)
    return low


# The other events ---------------------------------------------------------------------------------------------


def _spend(event: Bump, mu: float) -> float | None:
    """The cost at mu, or at `_TOP` beyond it."""
    return cost_of(event, min(mu, _TOP), 0.0)


def _exponential_cost(epsilon: float, mu: float) -> float | None:
    return _spend(two_points(epsilon), mu)


def _laplace_cost(epsilon: float, mu: float) -> float | None:
    return _spend(laplace(epsilon), mu)


_COSTS = {"exponential": _exponential_cost, "laplace": _laplace_cost}
_STEPS = 16  # levels an octave


@lru_cache(maxsize=8192)
def _at_level(kind: str, epsilon: float, level: int) -> float | None:
    return _COSTS[kind](epsilon, 2.0 ** (level / _STEPS))


@lru_cache(maxsize=4096)
def _direct(kind: str, epsilon: float, mu: float) -> float | None:
    return _COSTS[kind](epsilon, mu)


def after(kind: str, epsilon: float, mu: float) -> float | None:
    """What remains of mu after an event of this kind: "pure", "exponential" or "laplace".

    Formal guarantee: as `after_pure`, `after_exponential`, `after_laplace`. Costs are kept for a ladder of mu and taken
    from the step below, since a cost certified at one mu is one at every larger mu (theorem 4 of the page); where
    an event takes a good part of what remains, the step below would be too dear and mu itself is used.
    """
    pure = after_pure(epsilon, mu)  # also right for the other kinds, which are epsilon-private
    if kind == "pure" or epsilon == 0:
        return pure
    if kind not in _COSTS:
        raise ValueError(f"kind must be 'pure', 'exponential' or 'laplace', got {kind!r}")
    if not mu > 0:
        return pure
    cost = None
    if mu > 4 * epsilon:
        level = math.floor(_STEPS * math.log2(min(mu, _TOP)) * (1 - 1e-12) - 1e-9)
        cost = _at_level(kind, epsilon, level)
    elif mu > epsilon / 2:  # less than that no event of either kind survives
        cost = _direct(kind, epsilon, mu)
    if cost is None or cost > mu * mu:
        return pure
    left = _remains(mu, cost)
    return left if pure is None else max(left, pure)


def after_exponential(epsilon: float, mu: float) -> float | None:
    """What remains of mu after a choice of bounded range epsilon: the exponential mechanism, or Gumbel noisy max.

    Formal guarantee: for every pair of neighbours the losses of the event lie in an interval of length epsilon
    (Durfee and Rogers 2019), so some pair of losses a and a - epsilon, 0 <= a <= epsilon, dominates it, and mu' does
    for all of these. It costs about what randomized response of epsilon/2 would. Not for permute-and-flip, nor for
    one-sided noise: charge those by `after_pure`.

    >>> round(after_exponential(0.1, 1.0), 4), round(after_pure(0.05, 1.0), 4)
    (0.9987, 0.9987)
    """
    return after("exponential", epsilon, mu)


def after_laplace(epsilon: float, mu: float) -> float | None:
    """What remains of mu after one number with Laplace noise of scale sensitivity/epsilon.

    Formal guarantee: the exact curve of the Laplace pair is used, 1 - exp((t - epsilon)/2) for |t| <= epsilon.

    >>> after_laplace(0.1, 1.0) > after_pure(0.1, 1.0)
    True
    """
    return after("laplace", epsilon, mu)


def after_curve(
    losses: ArrayLike,
    probabilities: ArrayLike,
    infinite: float,
    mu: float,
    slack: float = 0.0,
    *,
    symmetric: bool = False,
) -> float | None:
    """What remains of mu after an event with this dominating pair: P's masses at increasing losses and at infinity.

    Formal guarantee: sum_i p_i H_mu'(t - l_i) + infinite <= H_mu(t) + slack at all real t, and the same for the
    pair reversed. The slack is owed besides, as a part of delta. Masses have to be right to twelve digits, as is
    what Q lacks of probability 1, sum_i p_i exp(-l_i): that much, as well as `infinite`, comes out of the slack.
    `symmetric` says that the reversed pair is the pair, and halves the work.

    >>> e = 0.1
    >>> round(after_curve([-e, e], [1 / (1 + math.exp(e)), 1 / (1 + math.exp(-e))], 0.0, 1.0), 6)
    0.994981
    """
    _check(0.0, mu)
    found, masses = np.asarray(losses, float), np.asarray(probabilities, float)
    if found.ndim != 1 or found.shape != masses.shape or not found.size:
        raise ValueError("losses and probabilities must be two lists of the same length")
    if not (np.isfinite(found).all() and (np.diff(found) > 0).all() and np.abs(found).max() <= 600):
        raise ValueError("losses must be finite, at most 600, and increase")
    if not ((masses >= 0).all() and infinite >= 0 and slack >= 0):
        raise ValueError("probabilities, infinite and slack must not be negative")
    found, masses = found[masses > 0], masses[masses > 0]
    lost = 1 - math.fsum(masses * np.exp(-found))
    if abs(math.fsum(masses) + infinite - 1) > 1e-12 or lost < -1e-12:
        raise ValueError("these are no probabilities of a pair: P must sum to 1, and Q to at most 1")
    owed = infinite + (lost if lost > 1e-12 else 0.0)
    if owed > slack:
        return None
    if not found.any():
        return mu
    spare = (slack - owed) * (1 - 1e-12)
    if mu <= 0:
        return None
    at = min(mu, _TOP)
    cost = cost_of(atoms(found, masses, symmetric), at, spare)
    return None if cost is None else _remains(mu, cost)
