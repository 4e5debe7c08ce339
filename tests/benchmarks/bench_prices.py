"""Which threshold for Gaussian noise loses least over whole sessions: the numbers of docs/guarantees/accounting.md.

A session asks questions whose epsilons add up to its budget, in random order. Each gets Laplace noise or Gaussian noise by the
prices of accountant "tight"; the first Gaussian, which ends the plain sum, only if its 95 % interval is narrower than so many
times that of Laplace noise. The loss of a question is how much wider its interval is than if it were asked first.
`python -m tests.benchmarks.bench_prices`
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import NamedTuple

from dpframe.accounting import DiscreteGaussian, Exponential, Loss, PureDP, make_filter
from dpframe.accounting._filter import Charge, Filter, Limits, Price
from dpframe.accounting._tight import find_largest_epsilon

THRESHOLDS = (0.0, 0.5, 0.8, 0.9, 0.95, 1.0, 1.1, 1.25)
LAPLACE, GAUSSIAN = math.log(20), 1.96


class Kind(NamedTuple):
    l1: int = 1
    l2_squared: int = 1
    choice: bool = False
    ranged: bool = False


COUNT, THREE, TEN = Kind(), Kind(3, 3), Kind(10, 10)
CHOICE, MEDIAN = Kind(choice=True, ranged=True), Kind(choice=True)
MIXTURES = {
    "counts": [COUNT],
    "counts and 3 groups a person": [COUNT, COUNT, THREE],
    "counts and 10 groups a person": [COUNT, TEN],
    "counts and choices": [COUNT, COUNT, CHOICE],
    "counts and medians": [COUNT, COUNT, MEDIAN],
    "all": [COUNT, COUNT, COUNT, THREE, TEN, CHOICE, MEDIAN],
}


def bought(price: Price, kind: Kind, threshold: float) -> tuple[float, Loss]:
    """The width of an interval at this price, and the loss."""
    assert price.epsilon is not None
    epsilon = price.epsilon
    if kind.choice:
        stake = price.stake
        if kind.ranged and stake is not None and stake.cost is not None and stake.left is not None:
            epsilon = max(
                epsilon,
                find_largest_epsilon("ranged", stake.left, stake.cost, stake.epsilon) or epsilon,
            )
        return 1 / float(epsilon), Exponential(epsilon) if kind.ranged else PureDP(epsilon)
    wide = LAPLACE * kind.l1 / float(epsilon)
    if price.mu_squared is not None:
        narrow = GAUSSIAN * math.sqrt(kind.l2_squared / price.mu_squared)
        if narrow < threshold * wide:
            variance = kind.l2_squared / price.mu_squared
            return narrow, DiscreteGaussian(
                parts=[(variance + Fraction(1, 12) * 2, kind.l2_squared)]
            )
    return wide, PureDP(epsilon)


def session(rule: Filter, questions: list[tuple[Kind, Fraction]], threshold: float) -> float:
    state, lost = rule.start(), 0.0
    for kind, epsilon in questions:
        ended = rule.pure_spent(state) is None
        width, loss = bought(rule.worth(epsilon, state), kind, 1.0 if ended else threshold)
        lost += math.log(width / bought(rule.worth(epsilon, rule.start()), kind, 1.0)[0])
        state = rule.after(state, Charge(((loss, 1),)))
        assert state is not None
    return lost / len(questions)


def drawn(
    draw: random.Random, kinds: list[Kind], number: int, budget: int
) -> list[tuple[Kind, Fraction]]:
    even = draw.random() < 0.5
    weights = [1 if even else draw.randint(1, 100) for _ in range(number)]
    return [(draw.choice(kinds), Fraction(budget * w, sum(weights))) for w in weights]


def main(sessions: int = 12) -> None:
    print(f"{'loss in %, by threshold':31} {'n':>3}", *(f"{x:6}" for x in THRESHOLDS))
    whole = [0.0] * len(THRESHOLDS)
    for name, kinds in MIXTURES.items():
        for number in (5, 10, 20, 40):
            found = [0.0] * len(THRESHOLDS)
            for budget in (1, 3):
                rule = make_filter(
                    "tight", Limits(Fraction(budget), Fraction("1e-6"), Fraction("5e-7"))
                )
                draw = random.Random(f"{name} {number} {budget}")
                for questions in [drawn(draw, kinds, number, budget) for _ in range(sessions)]:
                    for i, threshold in enumerate(THRESHOLDS):
                        found[i] += session(rule, questions, threshold) / (2 * sessions)
            print(
                f"{name:31} {number:3}", *(f"{100 * math.expm1(x):6.1f}" for x in found), flush=True
            )
            whole = [a + b / (4 * len(MIXTURES)) for a, b in zip(whole, found, strict=True)]
    print(f"{'mean':31}    ", *(f"{100 * math.expm1(x):6.1f}" for x in whole))


if __name__ == "__main__":
    main()
