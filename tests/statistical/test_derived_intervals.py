"""Coverage of what is computed from answers: at least the stated level, for every form, one by one and all at once.

One release of many groups is many draws of the noise, so each form is looked at in one go. A coverage is too low when so few hits
have a probability below 1e-8. Twins that must fail: the whole risk for each of two numbers, and a divisor taken for known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpframe._answers import noises
from dpframe._answers.arithmetic import start_from_leaf
from dpframe._answers.matching import Excerpt
from dpframe._answers.noises import NoiseTable

LEVEL = 0.9
ROWS = 12  # of each group: noise that matters


def frame(groups: int) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {"g": np.repeat(np.arange(groups), ROWS), "x": rng.uniform(0, 10, groups * ROWS)}
    )


class Draws:
    """Answers about many groups alike, and the truth about each."""

    def __init__(self, groups: int):
        self.data = frame(groups)
        words: dict[str, Any] = {"bounds": {"x": (0, 10)}, "keys": {"g": range(groups)}}
        p = self.data.dp.open(1000, **words)
        by, exact = p.groupby("g"), self.data.groupby("g")["x"]
        self.table = by.agg(n=("x", "size"), s=("x", "sum"), m=("x", "mean"), epsilon=3)
        self.other = by.size(epsilon=1)
        self.total = p.count(epsilon=0.01)
        self.n, self.s, self.m = exact.size(), exact.sum(), exact.mean()


FORMS: dict[str, Any] = {
    "scaled": lambda d: (d.table["n"].dp / 1000, d.n / 1000),
    "turned": lambda d: (5 - (d.table["m"].dp * 2).dp, 5 - d.m * 2),
    "one over": lambda d: (1 / d.table["n"].dp, 1 / d.n),
    "sum": lambda d: (d.table["n"].dp + d.other, d.n + d.n),
    "difference": lambda d: (d.table["s"].dp - d.other, d.s - d.n),
    "product": lambda d: (d.table["m"].dp * d.other, d.m * d.n),
    "ratio": lambda d: (d.table["s"].dp / d.other, d.s / d.n),
    "of one release": lambda d: (d.table["s"].dp / d.table["n"], d.s / d.n),
    "share of a number": lambda d: (d.table["n"].dp / d.total, d.n / len(d.data)),
    "size": lambda d: (abs((d.table["n"].dp - d.other).dp), abs(d.n - d.n)),
    "rounded": lambda d: (d.table["m"].dp.round(1), d.m),
    "sorted": lambda d: (d.table.sort_values("m")["m"], d.m),
    "three": lambda d: ((d.table["m"].dp * d.other).dp / d.table["s"], d.m * d.n / d.s),
}


def covered(answer: Any, truth: Any, level: float = LEVEL) -> Any:
    ends = answer.dp.interval(level)
    truth = truth.reindex(answer.index)
    slack = 1e-4 * abs(truth)  # sums are of values on a grid
    return ((ends["lower"] <= truth + slack) & (truth - slack <= ends["upper"])).to_numpy()


def enough(hits: Any) -> bool:
    return bool(stats.binom.cdf(int(hits.sum()), len(hits), LEVEL) > 1e-8)


@pytest.fixture(scope="module")
def draws() -> Draws:
    return Draws(400)


@pytest.mark.parametrize("name", FORMS)
def test_what_is_computed_is_covered(draws: Draws, name: str) -> None:
    assert enough(covered(*FORMS[name](draws)))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FORMS if name != "share of a number"])
def test_what_is_computed_is_covered_in_20000_draws(name: str) -> None:
    """Of which a hundredth is more than four standard deviations: of 2000 it would be missed by chance."""
    hits = covered(*FORMS[name](Draws(20_000)))
    assert len(hits) == 20_000
    assert hits.mean() >= LEVEL - 0.01


@pytest.mark.slow
def test_a_share_is_covered_in_2000_draws() -> None:
    """One divisor for all groups is one draw."""
    hits = np.array([covered(*FORMS["share of a number"](Draws(2)))[0] for _ in range(2000)])
    assert enough(hits)


def test_all_at_once_holds_for_all_together() -> None:
    whole = []
    for _ in range(60):
        d = Draws(12)
        made = d.table["s"].dp / d.other
        ends = made.dp.interval(LEVEL, at_once=True)
        whole.append(bool(((ends["lower"] <= d.s / d.n) & (d.s / d.n <= ends["upper"])).all()))
    assert enough(np.array(whole))


NUMBERS: dict[str, Any] = {
    "scaled": lambda n, t, m: (n / 7, lambda n, t, m: n / 7),
    "sum": lambda n, t, m: (n + t, lambda n, t, m: n + t),
    "ratio": lambda n, t, m: (t / n, lambda n, t, m: t / n),
    "three": lambda n, t, m: ((t - m) / n, lambda n, t, m: (t - m) / n),
    "twice": lambda n, t, m: (n * n - n, lambda n, t, m: n * n - n),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("size", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_what_is_computed_of_numbers_is_covered(name: str, size: int) -> None:
    data = frame(20)
    p = data.dp.open(1000, bounds={"x": (0, 10)}, accountant="pure")
    truth = len(data), data["x"].sum(), data["x"].mean()
    hits = []
    for _ in range(size):
        words: dict[str, Any] = {"epsilon": 0.15, "fresh": True}
        made, exact = NUMBERS[name](p.count(**words), p.sum("x", **words), p.mean("x", **words))
        low, high = made.interval(LEVEL)
        value = exact(*truth)
        hits.append(low - 1e-4 * abs(value) <= value <= high + 1e-4 * abs(value))
    assert enough(np.array(hits))


# Twins --------------------------------------------------------------------------------------------------------


class OneOrTheOther:
    """A number that is 0, whose interval misses it in a part of all draws: one end of the unit interval, or the other."""

    def __init__(self, draws: Any, first: bool):
        self.draws = draws if first else 1 - draws

    def number(self) -> Any:
        return np.zeros(len(self.draws))

    def ends(self, level: float, at_once: bool = False) -> Any:
        missed = self.draws < 1 - level
        return np.where(missed, 1.0, 0.0), np.where(missed, 2.0, 0.0)

    def is_same(self, other: Any) -> bool:
        return self is other


def test_the_whole_risk_for_each_number_is_seen() -> None:
    """Misses that exclude each other: then two intervals hold together no more often than the union bound says."""
    draws = (np.arange(2000) + 0.5) / 2000
    one, two = (start_from_leaf(OneOrTheOther(draws, first)) for first in (True, False))
    both = one.append("+", two)

    def hits(ends: Any) -> Any:
        return (ends[0] <= 0) & (ends[1] >= 0)

    assert hits(both._enclose_by_parts(LEVEL)).mean() == pytest.approx(LEVEL, abs=1e-3)
    assert not enough(hits(both.enclose([leaf.ends(LEVEL) for leaf in both.leaves])))


def test_a_divisor_that_is_taken_for_known_is_seen() -> None:
    """What pandas divides has no interval; one that leaves out the noise of the divisor would cover too little."""
    d = Draws(2000)
    ends = d.table["m"].dp.interval(LEVEL)
    product = d.m * d.n
    lower, upper = ends["lower"] * d.other, ends["upper"] * d.other
    assert not enough(((lower <= product) & (product <= upper)).to_numpy())


def test_noise_above_what_the_plan_says_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    d = Draws(2000)
    ends, spread = Excerpt.ends, NoiseTable.spread

    def narrow(self: Any, level: float, at_once: bool = False) -> Any:
        low, high = ends(self, level, at_once)
        middle, half = (low + high) / 2, (high - low) / 2
        return middle - half / 3, middle + half / 3

    monkeypatch.setattr(Excerpt, "ends", narrow)
    monkeypatch.setattr(NoiseTable, "spread", lambda self, level: spread(self, level) / 3)
    monkeypatch.setattr(noises, "_reach_of_one", lambda law, level: law.deviation / 2)
    for name in ("scaled", "sum", "ratio", "product"):
        assert not enough(covered(*FORMS[name](d))), name
