"""Choices: the scores are the ones asked for, one row moves them as little as claimed, and only a candidate comes back."""

from __future__ import annotations

import math
from fractions import Fraction as F
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from dpframe import BadType, BadValue
from dpframe._statistics.counts import Questions
from dpframe._statistics.scores import Revenue, Scores
from dpframe.mechanisms.selection import ExponentialChoice, NoisyMax, NoisyTop
from dpframe.utilities import distance, revenue

EPSILON = F(1)
CERTAIN = 90  # so little noise that the best candidate is chosen
PRICES = [3.02, 1, 0.5, 3.01, 2]
RELATIONS = ["add-remove", "replace-one"]
COLUMNS = ["bid", "n", "flu", "asthma", "g"]

Row = tuple[Any, ...]


def frame(rows: list[Row]) -> pd.DataFrame:
    bid, n, flu, asthma, g = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    return pd.DataFrame(
        {
            "bid": np.array(bid, dtype=float),
            "n": np.array(n, dtype="int64"),
            "flu": np.array(flu, dtype=bool),
            "asthma": pd.array(list(asthma), dtype="boolean"),
            "g": pd.Series(list(g), dtype="str"),
        }
    )


BASE: list[Row] = [
    (1.0, 3, True, None, "a"),
    (1.0, -5, True, True, "b"),
    (1.0, 0, False, True, "a"),
    (3.01, 2, True, False, "c"),
]


def opened(data: pd.DataFrame, neighbors: str = "add-remove", **terms: Any) -> Any:
    return data.dp.open(
        1000, neighbors=neighbors, bounds={"n": (-3, 3)}, keys={"g": ["c", "a", "b"]}, **terms
    )


ASKS: dict[str, Any] = {
    "argmax": lambda p, **w: p.argmax("g", **w),
    "argmax of columns": lambda p, **w: p.argmax(["flu", "asthma"], **w),
    "argmax of conditions": lambda p, **w: p.query("n < 3").argmax(
        {"cheap": "bid <= 1", "flu": p.query("n < 3")["flu"], "both": "flu and asthma"}, **w
    ),
    "top": lambda p, **w: p.top("g", 2, **w),
    "revenue": lambda p, **w: p.choose(PRICES, revenue("bid"), **w),
    "revenue, whole": lambda p, **w: p.query("flu").choose(range(4), revenue("n"), **w),
    "distance": lambda p, **w: p.choose([-3, 0, 3], distance("n"), **w),
    "expression": lambda p, **w: p.choose([-1, 0, 2], "n * @candidate", **w),
    "expression, clipped": lambda p, **w: p.choose([1, 2], "bid * @candidate", bounds=(1, 3), **w),
    "expression, bool": lambda p, **w: p.choose([1, 2, 3], "bid > @candidate", **w),
    "by candidate": lambda p, **w: p.choose(
        ["n", "no"], {"n": "n", "no": p["asthma"].astype(int) * 2}, **w
    ),
    "function": lambda p, **w: p.choose([1, 2], lambda q, c: (q["n"] - c).abs(), **w),
}
# The sums that the expressions stand for, by plain pandas (of rows where all bounds hold and nothing is null).
UTILITIES: dict[str, Any] = {
    "revenue": lambda d: [c * (d["bid"] >= c).sum() for c in PRICES],
    "revenue, whole": lambda d: [c * (d["n"][d["flu"]] >= c).sum() for c in range(4)],
    "distance": lambda d: [-(d["n"] - c).abs().sum() for c in (-3, 0, 3)],
    "expression": lambda d: [(d["n"] * c).sum() for c in (-1, 0, 2)],
    "expression, clipped": lambda d: [(d["bid"] * c).clip(1, 3).sum() for c in (1, 2)],
    "expression, bool": lambda d: [(d["bid"] > c).sum() for c in (1, 2, 3)],
    "by candidate": lambda d: [d["n"].sum(), (d["asthma"].astype("Int64") * 2).sum()],
    "function": lambda d: [(d["n"] - c).abs().sum() for c in (1, 2)],
}


def heard(ask: Any, data: pd.DataFrame, neighbors: str, **words: Any) -> tuple[Any, list[int]]:
    """The mechanism of one question and the scores it was given, through the public door."""
    found: list[tuple[Any, list[int]]] = []
    with pytest.MonkeyPatch.context() as patch:
        for law in (NoisyMax, NoisyTop, ExponentialChoice):

            def listening(self: Any, scores: Any, release: Any = law.release) -> Any:
                found.append((self, [int(s) for s in scores.reshape(-1)]))
                return release(self, scores)

            patch.setattr(law, "release", listening)
        ask(opened(data, neighbors), epsilon=EPSILON, **words)
    return found[0]


def lost(ask: Any, one: list[Row], two: list[Row], neighbors: str, **words: Any) -> F:
    """What the choice between two frames costs: the rate times the range of the differences, for each round."""
    (noise, a), (_, b) = (heard(ask, frame(rows), neighbors, **words) for rows in (one, two))
    moved = [x - y for x, y in zip(a, b, strict=True)]
    return noise.rate * getattr(noise, "rounds", 1) * (max(moved) - min(moved))


ROWS = st.tuples(
    st.sampled_from([1.0, 3.01, 3.02, 0.3, -1.0, 1e300, math.inf, -math.inf, math.nan]),
    st.sampled_from([-(10**9), -3, 0, 2, 10**9]),
    st.booleans(),
    st.sampled_from([True, False, None]),
    st.sampled_from(["a", "b", "c", "d"]),
)


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("name", ASKS)
def test_one_row_costs_no_more_than_the_price(name, neighbors):
    @settings(
        max_examples=6, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
    )
    @given(st.lists(ROWS, max_size=4), ROWS, ROWS)
    def check(rows, person, other):
        rest = [*rows, other] if neighbors == "replace-one" else rows
        assert lost(ASKS[name], [*rows, person], rest, neighbors) <= EPSILON

    check()


EXTREMES = [
    (b, n, flu, asthma, g)
    for b, n in ((-1.0, -9), (1.5, 2), (9.0, 9))
    for flu, asthma in ((True, False), (False, True))
    for g in "ab"
]


# Whose candidates cannot differ by as much as their bounds allow.
PARTLY = ("expression", "expression, clipped", "expression, bool", "by candidate", "revenue")


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("name", [n for n in ASKS if n not in ("function",)])
def test_some_row_costs_the_whole_price(name, neighbors):
    """The noise is no larger than it must be."""
    pairs = (
        permutations(EXTREMES, 2) if neighbors == "replace-one" else [(e, None) for e in EXTREMES]
    )
    least = F(999, 1000) if name not in PARTLY else F(1, 4)
    seen = F(0)
    for one, two in pairs:
        seen = max(seen, lost(ASKS[name], [one], [] if two is None else [two], neighbors))
        if seen >= least * EPSILON:
            return
    raise AssertionError(float(seen))


@pytest.mark.parametrize(
    ("statistic", "name", "neighbors"),
    [
        (Questions, "argmax of columns", "replace-one"),
        (Scores, "distance", "replace-one"),
        (Scores, "distance", "add-remove"),
        (Revenue, "revenue", "add-remove"),
        (Revenue, "revenue", "replace-one"),
    ],
)
def test_half_the_reach_is_caught(statistic, name, neighbors, monkeypatch):
    true = statistic.reach
    monkeypatch.setattr(statistic, "reach", lambda self, unit: max(1, true(self, unit) // 2))
    pairs = (
        permutations(EXTREMES, 2) if neighbors == "replace-one" else [(e, None) for e in EXTREMES]
    )
    assert any(
        lost(ASKS[name], [one], [] if two is None else [two], neighbors) > EPSILON
        for one, two in pairs
    )


@pytest.mark.parametrize("name", UTILITIES)
def test_scores_are_the_sums_of_pandas_up_to_one_constant(name):
    rows = [r for r in BASE if abs(r[1]) <= 3] * 3
    _, scores = heard(ASKS[name], frame(rows), "add-remove")
    step = ASKS[name](opened(frame(rows)).explain, epsilon=1).parts[0].step
    wanted = [float(u) for u in UTILITIES[name](frame(rows))]
    if name.startswith("revenue"):  # places are in increasing order of price
        order = np.argsort(PRICES if name == "revenue" else range(4))
        wanted = [wanted[i] for i in order]
    found = [s * step for s in scores]
    assert [f - found[0] for f in found] == pytest.approx([w - wanted[0] for w in wanted], abs=1e-6)


@pytest.mark.parametrize("mechanism", ["auto", "exponential"])
def test_answers_have_the_law_of_the_utilities(mechanism):
    """End to end, with utilities computed by pandas; weights of another epsilon are told apart."""
    data, draws = frame(BASE * 2), 900
    p = opened(data)
    found = [
        p.choose(PRICES, revenue("bid"), epsilon=EPSILON, mechanism=mechanism, fresh=True)
        for _ in range(draws)
    ]
    counts = np.array([found.count(price) for price in PRICES])
    scores = [float(u) / max(PRICES) for u in UTILITIES["revenue"](data)]

    def p_value(epsilon: float) -> float:
        accept = [math.exp(epsilon * (s - max(scores))) for s in scores]
        chances = np.zeros(len(scores))
        if mechanism == "exponential":
            chances += accept
        else:
            for order in permutations(range(len(scores))):
                left = 1.0
                for i in order:
                    chances[i] += left * accept[i]
                    left *= 1 - accept[i]
        return float(stats.chisquare(counts, chances / chances.sum() * draws).pvalue)

    assert p_value(1.0) > 1e-9
    assert p_value(2.0) < 1e-9


# What comes back -------------------------------------------------------------------------------------------------


def test_the_best_candidate_comes_back_as_it_was_typed():
    p = opened(frame(BASE * 5))
    assert p.argmax(["asthma", "flu"], epsilon=CERTAIN) == "flu"
    assert p.argmax({"dear": "bid > 2", "flu": "flu"}, epsilon=CERTAIN) == "flu"
    assert p.argmax(["flu"], epsilon=1e-3) == "flu"
    assert p.top("g", 3, epsilon=CERTAIN)[0] == "a"
    assert sorted(p.top("g", 3, epsilon=1e-3)) == ["a", "b", "c"]
    assert p["n"].top(2, keys=[5, -5, 3], epsilon=CERTAIN) in ([-5, 3], [3, -5])
    assert p.choose(PRICES, revenue("bid"), epsilon=CERTAIN) == 1
    assert type(p.choose(np.array([1, 3]), revenue("bid"), epsilon=CERTAIN)) is int
    assert p.choose([("a", 1)], {("a", 1): "n"}, epsilon=1e-3) == ("a", 1)
    assert p.choose([0, 7], lambda q, c: (q["n"] - c).abs(), epsilon=CERTAIN) == 7
    assert (
        p.choose(["few", "many"], {"few": "bid > 2", "many": "bid <= 2"}, epsilon=CERTAIN) == "many"
    )


def test_the_auction_of_the_notes_earns_nearly_the_most():
    rng = np.random.default_rng(4)
    bids = pd.DataFrame({"bid": np.round(rng.lognormal(1, 0.6, 4000), 2)})
    prices = [round(0.25 * i, 2) for i in range(1, 81)]
    p = bids.dp.open(1000)
    best = max(c * (bids["bid"] >= c).sum() for c in prices)
    plan = p.explain.choose(prices, revenue("bid"), epsilon=0.5)
    assert plan.worst_error() == pytest.approx(20 / 0.5 * math.log(80 / 0.05), rel=1e-6)
    earned = []
    for _ in range(100):
        price = p.choose(prices, revenue("bid"), epsilon=0.5, fresh=True)
        earned.append(price * (bids["bid"] >= price).sum())
    assert (
        sum(e < best - plan.worst_error() for e in earned) <= 15
    )  # 5 expected at most; 15 are 4.6 deviations
    assert np.mean(earned) > 0.95 * best


def test_overlapping_conditions_need_no_more_noise_than_one_column():
    p = opened(frame(BASE))
    many = p.explain.argmax({i: f"n > {i}" for i in range(50)}, epsilon=1)
    assert many.scale == p.explain.argmax("g", epsilon=1).scale == 1
    assert many.groups == 50
    assert len(many.cells) == 1
    replaced = opened(frame(BASE), "replace-one").explain.argmax(["flu", "asthma"], epsilon=1)
    assert replaced.scale == 2


def test_revenue_has_the_same_reach_under_both_relations():
    scales = {
        opened(frame(BASE), n).explain.choose([1, 4], revenue("bid"), epsilon=1).scale
        for n in RELATIONS
    }
    assert scales == {4.0}


def test_a_wrong_number_to_choose_is_refused_before_keys_are_searched_for():
    p = pd.DataFrame({"s": ["a"] * 500 + ["b"] * 500}).dp.open(3, 1e-6)
    for k in (0, -1, 1.5, "two", True):
        with pytest.raises((BadType, BadValue), match="k must be"):
            p.top("s", k, epsilon=0.2)
    assert p.ledger.empty
