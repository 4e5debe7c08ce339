"""Distances of two discrete laws: the divergences of the lecture notes on composition, computed
exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe._errors import BadType, BadValue

_ROUNDING = Fraction(1, 10**9)  # probabilities in doubles add up to 1 within this
Pairs = list[tuple[Fraction, Fraction]]


def max_divergence(p: object, q: object) -> float:
    """Return the largest privacy loss of p against q: the maximum over sets S of ln(P[S] / Q[S]).

    *Formal guarantee.* A mechanism is epsilon-private if and only if this is at most epsilon, both
    ways round, for its laws on every two neighbours (the definition of max divergence: Dwork,
    Rothblum and Vadhan 2010). It is infinite where p can give what q cannot. The largest ratio is
    found in exact arithmetic; only its logarithm is rounded, by some last digits of a double.

    ``p`` and ``q`` are distributions: two sequences of the same outcomes in the same order, two
    dicts, or two Series by their index. An outcome that a dict or a Series does not name has
    probability 0. Numbers that are all Fractions or whole have to add up to exactly 1, others
    within 1e-9; 0.1 is one tenth, as everywhere here.

    >>> max_divergence({"yes": 0.75, "no": 0.25}, {"yes": 0.25, "no": 0.75}) == math.log(3)
    True
    """
    pairs = _pairs(p, q)
    if any(a and not b for a, b in pairs):
        return math.inf
    return _log(max(a / b for a, b in pairs if a))


def approximate_max_divergence(p: object, q: object, delta: object) -> float:
    """Return the largest privacy loss beyond delta: the maximum over sets S with P[S] >= delta of
    ln((P[S] - delta) / Q[S]).

    *Formal guarantee.* A mechanism is (epsilon, delta)-private if and only if this is at most
    epsilon, both ways round, for its laws on every two neighbours (same definition). It may be a
    little below 0: of two equal laws it is ln(1 - delta).

    The best set holds the outcomes of the largest ratios P/Q, so only those sets are looked at, in
    exact arithmetic. ``p`` and ``q`` as in `max_divergence`; ``delta`` from 0 to below 1.

    >>> leak = {"nothing": 0.99, "all": 0.01}
    >>> max_divergence(leak, {"nothing": 1}), round(approximate_max_divergence(leak, {"nothing": 1}, 0.01), 9)
    (inf, -0.010050336)
    """
    d = _validate.delta(delta)
    # Of the sets tried, ``above`` is P[S] and ``below`` is Q[S].
    pairs = [(a, b) for a, b in _pairs(p, q) if a]
    pairs.sort(key=lambda pair: pair[0] / pair[1] if pair[1] else math.inf, reverse=True)
    best, above, below = Fraction(0), Fraction(0), Fraction(0)
    for a, b in pairs:
        above, below = above + a, below + b
        if above > d and not below:
            return math.inf
        if above > d:
            best = max(best, (above - d) / below)
    return _log(best) if best else -math.inf


def kl_divergence(p: object, q: object) -> float:
    """Return the expected privacy loss, the sum of P ln(P / Q): also called relative entropy.

    If both max divergences are at most epsilon it is at most epsilon (e**epsilon - 1), much less
    than epsilon where that is small (Dwork, Rothblum and Vadhan 2010): why k releases together lose
    about sqrt(k) times as much as one. It is infinite where p can give what q cannot. ``p`` and
    ``q`` as in `max_divergence`; in doubles.

    >>> round(kl_divergence([0.75, 0.25], [0.25, 0.75]), 6), round(math.log(3) * (3 - 1), 6)
    (0.549306, 2.197225)
    """
    pairs = [(a, b) for a, b in _pairs(p, q) if a]
    if any(not b for _, b in pairs):
        return math.inf
    return max(0.0, math.fsum(float(a) * _log(a / b) for a, b in pairs))


def loss_tail(p: object, q: object, epsilon: object) -> float:
    """Return the probability that the privacy loss of p against q is above epsilon: P[ln(P(x) /
    Q(x)) > epsilon] for x drawn from p.

    *Formal guarantee.* If this is at most delta, both ways round, for the laws of a mechanism on
    every two neighbours, then the mechanism is (epsilon, delta)-private: beyond the outcomes whose
    loss is larger, P <= e**epsilon Q. The converse is false, as delta pays for an outcome only by
    how much P exceeds e**epsilon Q there; of an (epsilon, delta)-private mechanism the loss is
    above epsilon + t with probability at most delta / (1 - e**-t) (docs/guarantees/auditing.md).
    ``epsilon`` is any number from 0 on; an outcome whose loss is epsilon but for the last digits of
    its logarithm counts as not above it. ``p`` and ``q`` as in `max_divergence`.

    >>> leak = {"nothing": 0.99, "all": 0.01}
    >>> loss_tail(leak, {"nothing": 1}, 5), loss_tail({"nothing": 1}, leak, 5)
    (0.01, 0.0)
    >>> honest, liar = {"yes": 0.75, "no": 0.25}, {"yes": 0.25, "no": 0.75}
    >>> loss_tail(honest, liar, 1.0), loss_tail(honest, liar, math.log(3))
    (0.75, 0.0)
    """
    e = _validate.real(epsilon, "epsilon")
    if e < 0:
        raise BadValue(f"epsilon must not be negative, not {e:g}.")
    pairs = [(a, b) for a, b in _pairs(p, q) if a]
    above = (a for a, b in pairs if not b or _log(a / b) > e * (1 + 1e-12))
    return float(sum(above, Fraction(0)))


def _pairs(p: object, q: object) -> Pairs:
    """Return both probabilities of each outcome that either distribution names."""
    p_law, q_law = _law(p, "p"), _law(q, "q")
    if isinstance(p_law, list) != isinstance(q_law, list):
        raise BadType(
            "p and q must be of one kind: two sequences, or two dicts or Series with the outcomes as keys."
        )
    if isinstance(p_law, list):
        if len(p_law) != len(q_law):
            raise BadValue(
                f"p and q must list the same outcomes: there are {len(p_law)} and {len(q_law)} of them."
            )
        return list(zip(p_law, q_law, strict=True))
    assert isinstance(q_law, dict)
    zero = Fraction(0)
    return [(p_law.get(x, zero), q_law.get(x, zero)) for x in {**p_law, **q_law}]


def _law(values: object, name: str) -> list[Fraction] | dict[Any, Fraction]:
    """Return a distribution with exact fractions as probabilities, and refuse it if they do not add
    up to 1. Sequences give a list, and dicts and Series a dict. ``name`` is for errors."""
    law: list[Fraction] | dict[Any, Fraction]
    if isinstance(values, pd.Series):
        if not values.index.is_unique:
            raise BadValue(f"{name} names an outcome twice.")
        values = dict(zip(values.index, values.tolist(), strict=True))
    if isinstance(values, Mapping):
        probabilities = list(values.values())
        numbers = [_probability(x, name) for x in probabilities]
        law = dict(zip(values, numbers, strict=True))
    elif isinstance(values, list | tuple) or (isinstance(values, np.ndarray) and values.ndim == 1):
        probabilities = list(values)
        law = numbers = [_probability(x, name) for x in probabilities]
    else:
        raise BadType(
            f"{name} must be a list of probabilities, a dict or a Series, not {type(values).__name__}."
        )
    total = sum(numbers, Fraction(0))
    exact = all(isinstance(x, Fraction | int | np.integer) for x in probabilities)
    if abs(total - 1) > (0 if exact else _ROUNDING):
        raise BadValue(
            f"{name} is not a distribution: its probabilities add up to {float(total):.12g}, not to 1."
        )
    return law


def _probability(value: object, name: str) -> Fraction:
    x = _validate.exact(value, f"a probability of {name}")
    if x < 0:
        raise BadValue(f"{name} is not a distribution: {value} is negative.")
    return x


def _log(ratio: Fraction) -> float:
    """Return the logarithm of a fraction as a double. It is accurate to the last digits close to 1,
    too, and beyond the range of doubles."""
    if Fraction(1, 2) < ratio < 2:
        return math.log1p(float(ratio - 1))
    return math.log(ratio.numerator) - math.log(ratio.denominator)
