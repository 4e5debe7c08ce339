"""What the lecture notes define: neighbours, privacy with and without delta, and what it is needed for."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction as F
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe import BadType, BadValue, attacks, audit, local, plot
from dpframe.audit import (
    approximate_max_divergence,
    distance,
    epsilon_lower_bound,
    kl_divergence,
    loss_tail,
    max_divergence,
)
from dpframe.mechanisms import _sampling
from tests.lecture_notes.draws import drawn

KINDS = ["F+", "F-", "M+", "M-"]


def moved(
    ask: Callable[[Any], Any], one: pd.DataFrame, two: pd.DataFrame, **terms: Any
) -> list[tuple[int, int]]:
    """How far apart the exact integers of two neighbours are, and how far they are said to be at most."""
    found = audit.replay(ask, one, two, epsilon=1, **terms)
    assert found.ok, found
    return [(step.distance, step.sensitivity) for step in found.steps]


def table(kinds: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"kind": pd.Series(kinds, dtype="str")})


# Databases and their neighbours -------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(KINDS), max_size=6), st.sampled_from(KINDS), st.sampled_from(KINDS))
def test_a_database_is_how_many_rows_of_each_kind_it_has(rows, old, new):
    """Neighbours are 1 apart in L1 as counts of kinds if a row is added; 2 apart if a row becomes another."""

    def ask(p: Any) -> Any:
        return p.value_counts("kind")

    terms = {"keys": {"kind": KINDS}}
    for one, two, relation in (
        (rows, [*rows, new], "add-remove"),
        ([*rows, old], [*rows, new], "replace-one"),
    ):
        first, second = Counter(one), Counter(two)
        apart = sum(abs(first[k] - second[k]) for k in KINDS)
        assert distance(table(one), table(two)) == distance(table(two), table(one)) == apart
        assert moved(ask, table(one), table(two), neighbors=relation, **terms) == [
            (apart, 1 if relation == "add-remove" else 2)
        ]


@settings(max_examples=30, deadline=None)
@given(*[st.lists(st.sampled_from(KINDS), max_size=7)] * 3)
def test_distance_of_tables_is_the_l1_norm_of_their_histograms(x, y, z):
    one, two, three = (Counter(rows) for rows in (x, y, z))
    assert distance(table(x), table(y)) == sum(abs(one[k] - two[k]) for k in KINDS)
    assert distance(table(x), table([])) == len(x)  # the norm of a database is how many rows it has
    assert distance(table(x), table(z)) <= distance(table(x), table(y)) + distance(
        table(y), table(z)
    )
    assert (distance(table(x), table(z)) == 0) == (one == three)


def test_rows_and_histogram_say_the_same_and_are_not_of_the_same_size():
    """Rows and histograms go from one to the other but for the order; the second has an entry for each kind there might be."""
    rows = pd.DataFrame({"sex": ["M", "F", "M"], "label": ["-", "+", "-"]})
    histogram = rows.value_counts()
    back = histogram.index.repeat(histogram.to_numpy()).to_frame(index=False)
    assert (
        distance(rows, back) == 0 != (rows.to_numpy() != back.to_numpy()).sum()
    )  # in another order
    keys = {"sex": ["F", "M"], "label": ["+", "-"]}
    p = rows.dp.open(1000, keys=keys)
    told = p.groupby(["sex", "label"]).size(epsilon=900)
    assert told.to_dict() == {("F", "+"): 1, ("F", "-"): 0, ("M", "+"): 0, ("M", "-"): 2}
    assert len(told) == 2 * 2  # the product of the values of each column, whatever the rows are
    # 20 columns of two values: rows have 20 entries a person, and the histogram a million
    kinds = 2**20
    assert 3 * 20 < kinds < 3**20


def test_distances_compare_rows_of_one_kind_of_table():
    missing = [pd.DataFrame({"x": pd.Series([x], dtype="float64")}) for x in (None, math.nan)]
    assert distance(*missing) == 0
    assert distance(pd.DataFrame({"x": [1, 2]}, index=[5, 6]), pd.DataFrame({"x": [2, 1]})) == 0
    one = pd.DataFrame({"x": [1]})
    for wrong in (pd.DataFrame({"y": [1]}), pd.DataFrame({"x": [1], "y": [1]}), one.astype(float)):
        with pytest.raises(BadValue, match="same columns"):
            distance(one, wrong)
    with pytest.raises(BadType):
        distance(one, 3)  # type: ignore[arg-type]


def test_answers_are_functions_of_the_counts_and_not_of_the_order():
    rows = ["M+", "F-", "F-", "M-", "F-"]
    told = [
        table(some)
        .dp.open(1000, keys={"kind": KINDS})
        .value_counts("kind", sort=False, epsilon=900)
        .to_dict()
        for some in (rows, rows[::-1], sorted(rows))
    ]
    assert told == [{"F+": 0, "F-": 3, "M+": 1, "M-": 1}] * 3


def test_what_differs_in_two_rows_is_no_neighbour():
    for one, two, relation in (
        (["F+"], ["F+", "M-", "M-"], "add-remove"),
        (["F+", "F+"], ["M-", "M-"], "replace-one"),
        (["F+"], ["M-"], "add-remove"),
    ):
        with pytest.raises(BadValue, match="neighbour"):
            moved(lambda p: p.count(), table(one), table(two), neighbors=relation)


# Privacy ------------------------------------------------------------------------------------------------------------------


def noisy(count: int, cells: int = 8) -> list[F]:
    """The exact law of a count with Laplace noise of epsilon ln 2, both tails put into the cells at the ends."""
    weight = [F(1, 3) / 2 ** abs(z - count) for z in range(cells)]
    weight[0] = F(2, 3) / 2**count
    weight[-1] = F(2, 3) / 2 ** (cells - 1 - count)
    return weight


def test_every_set_of_answers_is_nearly_as_likely_on_a_neighbour():
    """The definition with all its sets, both ways; and at an epsilon that is a little smaller some set violates it."""
    p, q = noisy(3), noisy(4)
    assert sum(p) == sum(q) == 1
    worst = F(1)
    for chosen in itertools.product([False, True], repeat=len(p)):
        one, two = (sum((x for x, c in zip(law, chosen, strict=True) if c), F(0)) for law in (p, q))
        assert one <= 2 * two
        assert two <= 2 * one
        worst = max(worst, one / two if two else F(0))
    assert worst == 2
    assert max_divergence(p, q) == max_divergence(q, p) == math.log(2)


def test_one_table_or_one_rare_answer_is_enough_to_break_it():
    rare = [{"usual": 1 - F(1, 10**9), "rare": F(1, 10**9)}, {"usual": F(1)}]
    assert max_divergence(*rare) == math.inf  # however small the chance of that answer is
    assert approximate_max_divergence(*rare, F(1, 10**9)) <= 0

    def careless(df: pd.DataFrame) -> int:
        """Private for everybody but for one kind of person."""
        return df.dp.open(1).count(epsilon=1) + 50 * ("M-" in set(df["kind"]))

    found = [
        epsilon_lower_bound(careless, table([]), table([k]), n=300).epsilon for k in ("F+", "M-")
    ]
    assert found[0] <= 1 < 3 < found[1]


def test_epsilon_0_tells_nothing_and_a_large_one_everything():
    low, high = plot.allowed(0.3, 0)
    assert (low, high) == (0.3, 0.3)  # only one law is left: whatever the table is
    grid = np.linspace(0, 1, 101)
    low, high = plot.allowed(grid, 0)
    assert low.tolist() == high.tolist() == grid.tolist()
    low, high = plot.allowed(0.3, 50)
    assert (low, high) == pytest.approx((0, 1))
    for e in (0.001, 0.01, 0.1):  # about 1 + epsilon while it is small
        assert 0.3 * (1 + e) <= plot.allowed(0.3, e)[1] <= 0.3 * (1 + e + e**2)
    assert plot.allowed(0.01, 4)[1] > 10 * 0.01 * (1 + 4)  # and no longer where it is large
    truth = [local.truth_of(e) for e in (1e-6, 0.1, 1, 10, 40)]
    assert truth == sorted(truth)  # less privacy is more accuracy, from a fair coin on
    assert truth[0] == pytest.approx(0.5, abs=1e-6)
    assert truth[-1] == pytest.approx(1)


def test_perfect_privacy_is_the_same_law_for_all():
    p = noisy(3)
    assert max_divergence(p, p) == kl_divergence(p, p) == 0
    assert kl_divergence(p, noisy(4)) > 0


# Delta --------------------------------------------------------------------------------------------------------------------


def test_unlikely_events_are_exempt_and_then_tell_everything():
    d = F(1, 10**6)
    with_me, without = {"nothing": 1 - d, "all about me": d}, {"nothing": F(1)}
    for p, q in ((with_me, without), (without, with_me)):
        assert approximate_max_divergence(p, q, d) <= 1e-12
    assert approximate_max_divergence(with_me, without, d / 2) == math.inf


weights = st.lists(st.integers(1, 9), min_size=4, max_size=4)


def normal(given: list[int]) -> list[F]:
    return [F(w, sum(given)) for w in given]


@settings(max_examples=60, deadline=None)
@given(weights, weights, st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0.1, 1.0]))
def test_loss_that_is_seldom_large_is_private_with_delta(one, two, e, t):
    p, q = normal(one), normal(two)
    tail = loss_tail(p, q, e)
    assert tail == pytest.approx(
        float(sum(a for a, b in zip(p, q, strict=True) if float(a / b) > math.exp(e) * (1 + 1e-9)))
    )
    if tail < 1:  # then for every set P[S] <= e**epsilon Q[S] + tail
        assert approximate_max_divergence(p, q, tail) <= e + 1e-9
    delta = sum(max(0.0, float(a) - math.exp(e) * float(b)) for a, b in zip(p, q, strict=True))
    assert delta <= tail + 1e-12
    assert loss_tail(p, q, e + t) <= delta / -math.expm1(-t) + 1e-12


def test_delta_is_not_the_probability_that_the_loss_is_above_epsilon():
    """A bit told with epsilon ln 3 is (0.92, 1/8)-private, and its loss is above 0.92 three times in four."""
    p = {"yes": F(3, 4), "no": F(1, 4)}
    q = {"yes": F(1, 4), "no": F(3, 4)}
    assert approximate_max_divergence(p, q, F(1, 8)) <= 0.92 < 0.93 < math.log(3)
    assert loss_tail(p, q, 0.92) == 0.75
    with pytest.raises(BadValue):
        loss_tail(p, q, -1)


@pytest.mark.parametrize("n", [2, 50])
def test_publishing_a_random_row_has_epsilon_0_and_delta_1_in_n(n):
    everybody = pd.DataFrame(
        {"name": [f"person {i}" for i in range(n)], "ill": [i % 2 for i in range(n)]}
    )
    neighbour = everybody.copy()
    neighbour.loc[0, "name"] = "somebody else"

    def law(df: pd.DataFrame) -> dict[tuple[Any, ...], F]:
        return {tuple(row): F(1, n) for row in df.itertuples(index=False)}

    p, q = law(everybody), law(neighbour)
    assert (
        approximate_max_divergence(p, q, F(1, n)) == approximate_max_divergence(q, p, F(1, n)) == 0
    )
    assert approximate_max_divergence(p, q, F(1, n) - F(1, 10**6)) == math.inf
    published = {tuple(attacks.a_few_rows(everybody, 1, seed).iloc[0]) for seed in range(40)}
    assert published <= set(p)  # and it is a whole row, with the name
    assert len(published) > 1


# Why ----------------------------------------------------------------------------------------------------------------------


def test_an_exact_total_tells_of_the_only_case():
    """Nobody else has the illness, and that is known: the exact total is this person's secret, a private one is not."""
    students = pd.DataFrame({"hiv": [False] * 30 + [True]})
    told = attacks.participation(lambda df: int(df["hiv"].sum()), students, person=30)
    assert (told.taking_part, told.staying_out) == (1, 0)
    epsilon, n = 0.5, 1500
    p, q = (
        df.dp.open(1000) for df in (students.copy(), students.drop(index=30).reset_index(drop=True))
    )
    counts = [[x.query("hiv").count(epsilon=epsilon, fresh=True) for _ in range(n)] for x in (p, q)]
    right = (sum(c >= 1 for c in counts[0]) + sum(c < 1 for c in counts[1])) / (2 * n)
    best = attacks.best_guess(epsilon)
    assert 0.5 < right < best + 4 * math.sqrt(best * (1 - best) / (2 * n))
    assert audit.from_draws(*counts).epsilon <= epsilon


def test_who_knows_everybody_else_learns_no_more():
    """Linkage: whatever is known besides, the belief in one person's value moves by at most epsilon in log odds."""
    epsilon = math.log(2)
    for others in range(6):  # who the others are, and how many of them are ill, is known exactly
        for p, q in zip(noisy(others), noisy(others + 1), strict=True):
            for prior in (F(1, 100), F(1, 2), F(9, 10)):
                posterior = prior * q / (prior * q + (1 - prior) * p)
                odds = posterior / (1 - posterior) / (prior / (1 - prior))
                assert abs(math.log(odds)) <= epsilon + 1e-12


# Post-processing ----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    weights,
    weights,
    st.lists(weights, min_size=4, max_size=4),
    st.sampled_from([F(0), F(1, 20), F(1, 3)]),
)
def test_no_randomized_function_of_an_answer_loses_more(one, two, rows, delta):
    p, q, f = normal(one), normal(two), [normal(row) for row in rows]
    after = [
        [sum(a * row[z] for a, row in zip(law, f, strict=True)) for z in range(4)] for law in (p, q)
    ]
    assert max_divergence(*after) <= max_divergence(p, q) + 1e-12
    before = approximate_max_divergence(p, q, delta)
    # Where no set is above e^t: the definition with epsilon >= 0 is what is kept.
    assert approximate_max_divergence(*after, delta) <= max(0.0, before) + 1e-12


def test_functions_of_private_counts_lose_no_more_than_the_counts():
    """Rounded, squared, put together with coins: what is made of answers of epsilon 1 shows no loss above 1."""
    epsilon, n = 1.0, 3000
    draws = [
        drawn(lambda p: int(p.count(epsilon=epsilon, fresh=True)), table(["F+"] * k), n, epsilon)
        for k in (4, 5)
    ]
    coins = np.random.default_rng(3).integers(0, 2, (2, n)).tolist()
    made: list[Callable[[int, int], Any]] = [
        lambda x, coin: x,
        lambda x, coin: x * x,
        lambda x, coin: x > 4,
        lambda x, coin: x if coin else 0,
        lambda x, coin: (x // 2, coin),
    ]
    seen = []
    for f in made:
        sides = [list(map(f, d, c)) for d, c in zip(draws, coins, strict=True)]
        seen.append(audit.from_draws(*sides, level=0.999).epsilon)
    assert max(seen) <= epsilon
    assert seen[0] > 0.6  # and the audit can see a loss that is there
    assert seen[3] < seen[0]


def test_arithmetic_of_answers_is_free_and_another_look_is_not():
    p = table(KINDS * 5).dp.open(1, keys={"kind": KINDS})
    counts = p.value_counts("kind", epsilon=0.5)
    assert (counts / counts.sum()).round(1).clip(0, 1).idxmax() in KINDS
    assert p.value_counts("kind", normalize=True, epsilon=0.5) is not None
    assert p.value_counts("kind", epsilon=0.5).equals(counts)
    spent = p.budget.spent
    assert spent == pytest.approx(0.5)
    p.value_counts("kind", epsilon=0.25, fresh=True)
    assert p.budget.spent > spent


def test_a_function_that_sees_the_data_again_is_no_post_processing():
    def again(bit: int) -> tuple[int, int]:
        told = bit ^ (_sampling.random_bytes(1)[0] < 64)
        return told, bit

    assert epsilon_lower_bound(again, 0, 1, n=400).epsilon > math.log(3)
