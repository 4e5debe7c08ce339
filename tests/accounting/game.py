"""The adaptive composition experiment, evaluated exactly: who chooses each mechanism from earlier answers wins nothing.

A mechanism is a pair of laws (P, Q) on a few outcomes, of which only the losses log(P/Q) matter, with the loss that it
declares. The filter sees the declared losses. Over a whole tree of choices

    delta(epsilon) = sum over leaves of max(0, P - e**epsilon Q) = E_P max(0, 1 - e**(epsilon - L)),

which backward induction maximises exactly over every strategy on a menu: the state of the game is that of the filter
together with L. Menus hold each pair both ways round, so the other direction has the same maximum. In the last round
the pair may be any with a known curve H, as its worth is H(epsilon - L): there the largest that the filter admits is
found by bisection. The same machine breaks two filters that are not ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import pytest

from dpframe.accounting import (
    ACCOUNTANTS,
    ApproxDP,
    Exponential,
    Gaussian,
    Laplace,
    Loss,
    PureDP,
    make_filter,
)
from dpframe.accounting._filter import Charge, Limits

F = Fraction
NOTHING, NEXT_TO_NOTHING = F(0), F(1, 10**12)
GIVEN_AWAY = math.inf
ADAPTIVE = [name for name, kind in ACCOUNTANTS.items() if not kind.batches]
ROUNDING = 1 + 1e-9  # of the evaluation here, whose sums have terms of one sign

# Mechanisms --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Play:
    """``outcomes``: probability under P, and loss. What only Q can put out never adds to P - e**epsilon Q."""

    declared: Hashable  # a Loss, or what a filter of this file understands
    outcomes: tuple[tuple[float, float], ...]
    delta: Fraction = NOTHING

    def __post_init__(self) -> None:
        assert math.fsum(p for p, _ in self.outcomes) == pytest.approx(1, abs=1e-12)
        assert self.under_q() <= 1 + 1e-12

    def under_q(self) -> float:
        return math.fsum(p * math.exp(-x) for p, x in self.outcomes)

    @property
    def reversed(self) -> Play:
        """The same mechanism where the person's side is the other one; no failures."""
        return replace(self, outcomes=tuple((p * math.exp(-x), -x) for p, x in self.outcomes))


def response(epsilon: Fraction, declared: Loss | None = None) -> Play:
    e = float(epsilon)
    truth = 1 / (1 + math.exp(-e))
    return Play(declared or PureDP(epsilon), ((truth, e), (1 - truth, -e)))


def two_points(up: float, down: float, declared: Hashable) -> Play:
    """Losses ``up`` and ``-down``."""
    p = math.expm1(down) / (math.exp(down) - math.exp(-up))
    return Play(declared, ((p, up), (1 - p, -down)))


def choice(epsilon: Fraction, share: float = 0.5) -> Play:
    """An exponential mechanism with two candidates."""
    e = float(epsilon)
    return two_points(share * e, (1 - share) * e, Exponential(epsilon))


def gaussian(mu_squared: Fraction, cells: int, reach: float = 3.0) -> Play:
    """A Gaussian release, likewise; cells of equal width over ``reach`` deviations either way, and the tails."""
    mu, law = math.sqrt(mu_squared), NormalDist()
    edges = [
        -math.inf,
        *(mu / 2 + 2 * reach * (i / (cells - 2) - 0.5) for i in range(cells - 1)),
        math.inf,
    ]
    return binned(edges, lambda x: law.cdf(x - mu), law.cdf, gaussian_loss(mu_squared))


def binned(
    edges: list[float], p: Callable[[float], float], q: Callable[[float], float], loss: Loss
) -> Play:
    masses = [(p(b) - p(a), q(b) - q(a)) for a, b in pairwise(edges)]
    return Play(loss, tuple((x, math.log(x / y)) for x, y in masses))


def gaussian_loss(mu_squared: Fraction) -> Loss:
    return Gaussian(
        sigma=mu_squared.denominator, sensitivity=_root_above(mu_squared) * mu_squared.denominator
    )


def _root_above(square: Fraction) -> Fraction:
    root = F(math.isqrt(int(square * 10**30)) + 1, 10**15)
    assert root**2 >= square
    return root


def leak(delta: Fraction, epsilon: Fraction = NEXT_TO_NOTHING) -> Play:
    """Everything with probability delta, else randomized response."""
    d = float(delta)
    rest = response(epsilon).outcomes
    return Play(ApproxDP(epsilon, delta), ((d, GIVEN_AWAY), *(((1 - d) * p, x) for p, x in rest)))


# Curves of the last round, written down once more ------------------------------------------------------------------


def response_worth(e: float, t: float) -> float:
    return math.fsum(p * -math.expm1(min(t - x, 0.0)) for p, x in response(F(e)).outcomes)


def choice_worth(e: float, t: float) -> float:
    """The best position of the two points."""
    if t <= -e:
        return -math.expm1(t)
    return 0.0 if t >= e else math.expm1((t - e) / 2) ** 2 / -math.expm1(-e)


def laplace_worth(e: float, t: float) -> float:
    if t <= -e:
        return -math.expm1(t)
    return max(0.0, -math.expm1((t - e) / 2))


def gaussian_worth(mu: float, t: float) -> float:
    near, far = t / mu - mu / 2, t / mu + mu / 2
    return max(0.0, 0.5 * math.erfc(near / 2**0.5) - 0.5 * math.exp(t) * math.erfc(far / 2**0.5))


# Kind of loss, worth of its parameter at t, and where the largest lies: in so many times the largest of the first kind.
LAST: list[
    tuple[
        Callable[[Fraction], Loss],
        Callable[[float, float], float],
        tuple[Fraction, Fraction] | None,
    ]
] = [
    (PureDP, response_worth, None),
    (lambda x: Gaussian(sigma=1 / x), gaussian_worth, None),
    (Exponential, choice_worth, (F(1), F(17, 8))),
    (Laplace, laplace_worth, (F(1), F(9, 8))),
]

# The game ----------------------------------------------------------------------------------------------------------


class Game:
    """A filter as the adversary sees it. ``delta`` of the charge is where (epsilon, delta) rules state a Gaussian."""

    def __init__(self, rule: Any, limits: Limits, kinds: int = len(LAST)):
        self.rule, self.limits, self.last_kinds = rule, limits, LAST[:kinds]
        self._after: dict[Any, Any] = {}
        self._largest: dict[Any, Any] = {}
        self._values: dict[Any, float] = {}

    def after(self, state: Any, play: Play) -> Any:
        key = (state, play.declared, play.delta)
        if key not in self._after:
            charge = Charge(((play.declared, 1),), play.delta)
            self._after[key] = self.rule.after(state, charge)
        return self._after[key]

    def best(self, state: Any, menu: tuple[Play, ...], rounds: int, so_far: float = 0.0) -> float:
        """The most that any strategy on the menu makes of this position: E_P max(0, 1 - e**(epsilon - L))."""
        if so_far == GIVEN_AWAY:
            return 1.0
        key = (state, rounds, round(so_far, 11))
        if key not in self._values:
            # stopping is always open to it, and one more release that takes whatever is left
            found = self.last(state, float(self.limits.epsilon) - so_far)
            for play in menu if rounds > 1 else ():
                then = self.after(state, play)
                if then is not None:
                    found = max(
                        found,
                        math.fsum(
                            p * self.best(then, menu, rounds - 1, so_far + x)
                            for p, x in play.outcomes
                        ),
                    )
            self._values[key] = found
        return self._values[key]

    def last(self, state: Any, t: float) -> float:
        """The most of one more release: the largest of each kind, with what is then left for failures given away."""
        lost = self.failure_left(state)
        stopped = -math.expm1(min(t, 0.0))
        found = lost + (1 - lost) * stopped
        for worth, parameter, lost in self.largest(state):
            found = max(found, lost + (1 - lost) * worth(parameter, t))
        return found

    def failure_left(self, state: Any) -> float:
        return float(self.rule.delta_limit - self.rule.delta_spent(state))

    def largest(self, state: Any) -> list[tuple[Callable[[float, float], float], float, float]]:
        """By kind: its worth, the largest parameter that is admitted, and what it leaves for failures."""
        if state not in self._largest:
            found, first = [], F(0)
            for loss, worth, around in self.last_kinds:
                low, high = (
                    (F(0), 2 * self.limits.epsilon)
                    if around is None
                    else (first * x for x in around)
                )
                admitted = None
                for _ in range(24 if around is None else 7):
                    middle = (low + high) / 2
                    then = self.rule.after(
                        state, Charge(((loss(middle), 1),), self.stated_at(state))
                    )
                    if then is None:
                        high = middle
                    else:
                        low, admitted = middle, then
                first = first or low
                if admitted is not None:
                    found.append((worth, float(low), self.failure_left(admitted)))
            self._largest[state] = found
        return self._largest[state]

    def stated_at(self, state: Any) -> Fraction:
        """Half of the delta that is left, where the rule wants to see one."""
        limit = self.rule.delta_limit
        return (limit - self.rule.delta_spent(state)) / 2 if limit else F(0)


def game(name: str, limits: Limits, kinds: int = len(LAST)) -> Game:
    return Game(make_filter(name, limits), limits, kinds)


def menu_for(rule: Any, limits: Limits, queries: int) -> tuple[Play, ...]:
    """What a share buys, half of it, a skew choice both ways, a Gaussian, and a gamble on a failure."""
    price = rule.share(queries, rule.start())
    e = F(round(price.epsilon * 2**20), 2**20) * F(2**12 - 1, 2**12)
    found = [
        response(e),
        response(e / 2),
        choice(2 * e),
        choice(3 * e / 2, 2 / 3),
        choice(3 * e / 2, 2 / 3).reversed,
    ]
    mu_squared = price.mu_squared or (2 * price.rho if price.rho else None)
    if mu_squared:
        found.append(
            replace(
                gaussian(mu_squared * F(99, 100), 4),
                delta=price.delta if rule.name == "pure" else F(0),
            )
        )
    if rule.delta_limit:
        found.append(leak(rule.delta_limit / 2))
    return tuple(found)


# Strategies one by one, in both directions -------------------------------------------------------------------------

History = tuple[float, ...]
Strategy = Callable[[History], Play | None]


def leaves(rule: Any, strategy: Strategy) -> Iterator[tuple[float, float]]:
    """The probabilities of each transcript under P and Q."""
    waiting: list[tuple[History, Any, float, float]] = [((), rule.start(), 1.0, 1.0)]
    while waiting:
        history, state, p, q = waiting.pop()
        play = strategy(history)
        charge = None if play is None else Charge(((play.declared, 1),), play.delta)
        then = None if charge is None else rule.after(state, charge)
        # Refusals are public: the strategy might go on, ours give up.
        if play is None or then is None:
            yield p, q
            continue
        for mass, x in play.outcomes:
            if x == GIVEN_AWAY:
                yield p * mass, 0.0
            else:
                waiting.append(((*history, x), then, p * mass, q * mass * math.exp(-x)))
        yield 0.0, q * max(0.0, 1 - play.under_q())


def delta_of(found: Iterable[tuple[float, float]], epsilon: float = 1.0) -> float:
    """The larger of the two directions."""
    pairs = list(found)
    assert math.fsum(p for p, _ in pairs) == pytest.approx(1, abs=1e-12)
    assert math.fsum(q for _, q in pairs) == pytest.approx(1, abs=1e-12)
    grown = math.exp(epsilon)
    return max(
        math.fsum(max(0.0, p - grown * q) for p, q in pairs),
        math.fsum(max(0.0, q - grown * p) for p, q in pairs),
    )


def greedy(played: Game, rounds: int) -> Strategy:
    """Picks, by what it has seen, the kind and the share of what is left that leave the best gamble for the last round."""
    states: dict[History, Any] = {(): played.rule.start()}

    def candidates(state: Any) -> Iterator[Play]:
        for share in (F(1, 16), F(1, 4), F(1, 2), F(1)):
            for kind, (_, parameter, _) in enumerate(played.largest(state)):
                x = F(parameter) * share
                if kind == 0:
                    yield response(x)
                elif kind == 1:
                    yield replace(
                        gaussian(x**2 * F(999, 1000), 30, 5.5), delta=played.stated_at(state)
                    )
                else:
                    yield choice(x, 0.75)
        lost = F(played.failure_left(state)).limit_denominator(10**12)
        if lost > 0:
            yield leak(lost / 2)

    def strategy(history: History) -> Play | None:
        if len(history) == rounds:
            return None
        state, t = states[history], float(played.limits.epsilon) - math.fsum(history)
        best, most = None, 0.0
        for play in candidates(state):
            then = played.after(state, play)
            if then is None:
                continue

            def worth(x: float, then: Any = then) -> float:
                stopped = -math.expm1(min(t - x, 0.0))
                return (
                    stopped
                    if x == GIVEN_AWAY or len(history) == rounds - 1
                    else played.last(then, t - x)
                )

            found = math.fsum(p * worth(x) for p, x in play.outcomes)
            if found > most:
                best, most = play, found
        if best is not None:
            for _, x in best.outcomes:
                states[(*history, x)] = played.after(state, best)
        return best

    return strategy
