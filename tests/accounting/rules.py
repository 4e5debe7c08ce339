"""What the tests of accountants share: losses, budgets, and folds."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from dpframe.accounting import (
    ACCOUNTANTS,
    ApproxDP,
    DiscreteGaussian,
    Exponential,
    Gaussian,
    Laplace,
    Loss,
    PoissonGaussian,
    PureDP,
)
from dpframe.accounting._filter import Charge, Filter, Limits

F = Fraction
MILLIONTH, HALF = F(1, 10**6), F(1, 2)
ADAPTIVE = [name for name, kind in ACCOUNTANTS.items() if not kind.batches]
LINEAR = ["pure", "zcdp", "rdp", "gdp"]  # exact sums of fractions
SUMS = [*LINEAR, "advanced", "advanced-squared"]


def one(loss: Loss, count: int = 1, delta: Fraction | int = 0) -> Charge:
    return Charge(((loss, count),), F(delta))


def fold(rule: Filter, charges: Iterable[Charge]) -> Any:
    state = rule.start()
    for charge in charges:
        state = rule.after(state, charge)
        if state is None:
            return None
    return state


def admitted(rule: Filter, charge: Charge, most: int = 5000) -> int:
    state, found = rule.start(), 0
    while found < most and (state := rule.after(state, charge)) is not None:
        found += 1
    return found


SPLIT = Limits(F(1), MILLIONTH, MILLIONTH / 2)
WHOLE = Limits(F(1), MILLIONTH, F(0))
LOSSES = [
    PureDP(F(1, 50)),
    Laplace(F(1, 40)),
    Exponential(F(1, 20)),
    Gaussian(60),
    DiscreteGaussian(40),
    PureDP(F(1, 7)),
    ApproxDP(F(1, 100), F(1, 10**8)),
    PoissonGaussian(F(1, 100), 30),
]
charges = st.builds(
    lambda loss, n: Charge(((loss, n),), F(1, 10**8)), st.sampled_from(LOSSES), st.integers(1, 4)
)
ledgers = st.lists(charges, max_size=12)

BUDGETS = {
    "(1, 1e-6)": (F(1), F(1, 10**6)),
    "(3, 1e-6)": (F(3), F(1, 10**6)),
    "(8, 1e-5)": (F(8), F(1, 10**5)),
    "(0.1, 1e-9)": (F(1, 10), F(1, 10**9)),
}


def limits_for(name: str, budget: str, reserve: Fraction = HALF) -> Limits:
    e, d = BUDGETS[budget]
    return Limits(e, d, d * reserve if ACCOUNTANTS[name].reserve_share else F(0))
