"""What answers say of a population, and where they refuse to; quantiles that bound one another; differences."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, BadValue, BudgetError, MissingKeys, NotOffered


def frame(n=900):
    k = np.arange(n)
    return pd.DataFrame(
        {
            "id": k // 3,
            "x": (k * 37 % 100) / 100,
            "yes": k % 5 == 0,
            "g": np.where(k % 2, "a", "b"),
            "h": k % 3,
        }
    )


KEYS = {"g": ["a", "b"], "h": [0, 1, 2]}


@pytest.fixture
def p():
    return frame().dp.open(1000, bounds={"x": (0, 1)}, keys=KEYS)


@pytest.fixture
def people():
    return frame().dp.open(
        1000, bounds={"x": (0, 1)}, keys=KEYS, unit="id", max_rows=3, max_groups=2
    )


def test_the_default_is_the_noise(p):
    mean, means = p.mean("x", epsilon=5), p.groupby("g")["x"].mean(epsilon=5)
    assert mean.interval() == mean.interval(of="noise")
    pd.testing.assert_frame_equal(means.dp.interval(), means.dp.interval(of="noise"))


@pytest.mark.parametrize(
    "ask",
    [
        lambda p: p.mean("x", epsilon=5),
        lambda p: p["yes"].mean(epsilon=5),
        lambda p: p.count(epsilon=5),
        lambda p: p.count("x", epsilon=5),
        lambda p: p.quantile("x", 0.5, method="tree", epsilon=20),
        lambda p: p.groupby("g")["x"].mean(epsilon=5),
        lambda p: p.groupby("g").size(epsilon=5),
        lambda p: p.groupby("g", as_index=False)["x"].mean(epsilon=5),
        lambda p: p.groupby("g")["x"].quantile([0.2, 0.8], method="tree", epsilon=20),
        lambda p: p.value_counts("h", epsilon=5),
        lambda p: p.value_counts("h", normalize=True, epsilon=5),
        lambda p: p.histogram("x", bins=3, epsilon=5),
        lambda p: p.crosstab("g", "h", normalize="columns", margins=True, epsilon=5),
        lambda p: p.pivot_table("x", "g", "h", margins=True, epsilon=5),
        lambda p: p.counts({"old": "x > 0.5", "yes": "yes"}, epsilon=5),
        lambda p: p.mean("x", mechanism="laplace", epsilon=5),
        lambda p: p[["x", "yes"]].mean(epsilon=5),
    ],
)
def test_intervals_of_the_population_hold_the_answer_and_are_wider(p, ask):
    answer = ask(p)
    numbers = [
        np.asarray(answer.dp.interval(of=of), dtype=float).ravel() for of in ("noise", "population")
    ]
    low, high = (np.asarray([side[0::2], side[1::2]]) for side in numbers)
    assert (high[0] <= low[0] + 1e-9).all()
    assert (low[1] <= high[1] + 1e-9).all()
    assert (high[1] - high[0] > low[1] - low[0]).any()


def test_columns_without_a_population_are_nan_beside_others(p):
    ends = p.groupby("g")["x"].agg(["mean", "sum", "std"], epsilon=5).dp.interval(of="population")
    assert ends["mean"].notna().all(axis=None)
    assert ends[["sum", "std"]].isna().all(axis=None)


def test_all_at_once_is_wider(p):
    answer = p.groupby("h")["x"].mean(epsilon=5)
    alone, joint = (
        answer.dp.interval(of="population", at_once=at_once) for at_once in (False, True)
    )
    assert (joint["upper"] > alone["upper"]).all()


@pytest.mark.parametrize("aggregate", ["sum", "var", "std", "sem", "skew", "nunique"])
def test_what_has_no_population_says_what_to_ask(p, aggregate):
    with pytest.raises(NotOffered, match=r"agg\(\['mean', 'count'\]\)"):
        getattr(p["x"], aggregate)(epsilon=5).interval(of="population")


def test_another_word_is_refused(p):
    with pytest.raises(BadValue, match="of"):
        p.mean("x", epsilon=5).interval(of="sample")


def test_rows_of_one_person_are_no_draws(people):
    with pytest.raises(NotOffered, match="max_rows=1"):
        people.mean("x", epsilon=5).interval(of="population")
    low, high = people.mean("x", max_rows=1, epsilon=5).interval(of="population")
    assert 0 < low < high < 1
    assert people.nunique("id", epsilon=5).interval(of="population")[0] > 0
    assert people.drop_duplicates("id").mean("x", epsilon=5).interval(of="population")[0] > 0


def test_people_in_several_groups_are_no_separate_samples(people):
    several = people.groupby("g")["x"].mean(max_rows=1, epsilon=5)
    assert several.dp.interval(of="population").notna().all(axis=None)
    with pytest.raises(NotOffered, match="max_groups=1"):
        several.dp.difference("a", "b", of="population")
    shares = people.value_counts("g", normalize=True, max_rows=1, epsilon=5)
    with pytest.raises(NotOffered, match="max_groups=1"):
        shares.dp.interval(of="population")
    one = people.groupby("g")["x"].mean(max_rows=1, max_groups=1, epsilon=5)
    assert one.dp.difference("a", "b", of="population").lower < 0


def opened_without_keys(rows=6000):
    return frame(rows).dp.open(100, delta=1e-6, accountant="pure", bounds={"x": (0, 1)})


def test_found_groups_are_no_sample_wherever_they_are_asked():
    p = opened_without_keys()
    shown = p.groupby("g").size(epsilon=2)
    again = {
        "at once": shown,
        "found before": p.groupby("g").size(epsilon=3),
        "listed": p.groupby("g", keys=list(shown.index)).size(epsilon=2),
        "in part": p.groupby("g", keys=list(shown.index)[:1]).size(epsilon=2),
        "of a filter": p[p["x"] > 0.1].groupby("g", keys=list(shown.index)).size(epsilon=2),
        "shares": p["g"].value_counts(keys=list(shown.index), normalize=True, epsilon=2),
    }
    for how, answer in again.items():
        with pytest.raises(NotOffered, match="found in the data"):
            print(how, answer.dp.interval(of="population"))
        assert answer.dp.interval().notna().all(axis=None)
    copied = pickle.loads(pickle.dumps(again["listed"]))
    with pytest.raises(NotOffered, match="found in the data"):
        copied.dp.interval(of="population")
    means = p.groupby("g", keys=list(shown.index))["x"].mean(epsilon=2)
    assert means.dp.interval(of="population").notna().all(axis=None)
    with pytest.raises(NotOffered, match="Ask the means by themselves"):
        opened_without_keys().groupby("g")["x"].mean(epsilon=2).dp.interval(of="population")


def test_groups_found_among_other_rows_are_conditioned_on_values():
    p = opened_without_keys()
    keys = list(p[p["x"] > 0.5].unique("g", epsilon=2))
    with pytest.raises(NotOffered, match="among other rows"):
        p.groupby("g", keys=keys)["x"].mean(epsilon=2).dp.interval(of="population")
    spent = p.budget.fraction
    with pytest.raises(NotOffered, match="among other rows"):
        p.test.means("x", by="g", keys=keys[:2], epsilon=2)
    assert p.budget.fraction == spent
    own = p[p["x"] > 0.5].groupby("g", keys=keys)["x"].mean(epsilon=2)
    assert own.dp.interval(of="population").notna().all(axis=None)


def test_groups_that_nobody_found_are_samples():
    """Keys that were declared before anything was asked, listed ones of which some were not found, and truth values."""
    p = frame(6000).dp.open(100, delta=1e-6, accountant="pure", keys={"g": ["a", "b"]})
    p.unique("g", epsilon=2)
    assert p.groupby("g").size(epsilon=2).dp.interval(of="population").notna().all(axis=None)
    more = p.groupby("g", keys=["a", "b", "z"]).size(epsilon=2)
    assert more.dp.interval(of="population").notna().all(axis=None)
    assert (
        p.groupby(p["x"] > 0.3).size(epsilon=2).dp.interval(of="population").notna().all(axis=None)
    )


# Chosen quantiles ------------------------------------------------------------------------------------------------------


def test_one_choice_has_intervals_of_both_kinds(p):
    median = p.median("x", epsilon=5)
    low, high = median.interval()
    assert median.interval(n=900) == (low, high)
    lower, upper = median.interval(of="population")
    assert lower <= low <= median <= high <= upper
    assert upper - lower > high - low
    assert median.ranks() == median.plan.worst_error()
    assert median.ranks(0.99) > median.ranks()


def test_levels_bound_one_another_where_the_number_of_values_is_known(p):
    three = p.quantile("x", [0.3, 0.5, 0.7], epsilon=50)
    ends = three.dp.interval(n=900)
    assert ends.loc[0.5].tolist() == [three[0.3], three[0.7]]
    assert ends.loc[0.3].tolist() == [0.0, three[0.5]]
    released = p.count(epsilon=50)
    pd.testing.assert_frame_equal(three.dp.interval(n=released), ends)
    assert three.dp.interval().notna().all(axis=None)
    pd.testing.assert_frame_equal(three.dp.interval(n=2), three.dp.interval())


def test_levels_in_any_order_and_in_groups(p):
    levels = [0.7, 0.3, 0.5]
    answer = p.groupby("g")["x"].quantile(levels, epsilon=50)
    ends = answer.dp.interval(n=450)
    for key in ("a", "b"):
        assert ends.loc[(key, 0.5)].tolist() == [answer[key, 0.3], answer[key, 0.7]]


def test_only_quantiles_have_ranks(p):
    assert p.quantile("x", [0.1, 0.9], method="tree", epsilon=5).dp.ranks() > 1
    for answer in (p.mean("x", epsilon=5), p.groupby("g").size(epsilon=5).dp):
        with pytest.raises(NotOffered, match="interval"):
            answer.ranks()


# Differences -----------------------------------------------------------------------------------------------------------


def test_a_difference_has_the_interval_of_what_it_is_of(p):
    answer = p.groupby("g")["x"].agg(["mean", "std"], epsilon=5)["mean"]
    noise, both = (answer.dp.difference("a", "b", of=of) for of in ("noise", "population"))
    assert noise.estimate == both.estimate == answer["a"] - answer["b"]
    assert both.lower < noise.lower < noise.estimate < noise.upper < both.upper
    back = answer.dp.difference("b", "a", of="population")
    assert back.lower == pytest.approx(-both.upper, abs=1e-9)
    assert answer.dp.difference("a", "b", 0.99, "population").upper > both.upper


def test_a_difference_goes_by_labels_where_rows_are_sorted():
    p = frame().dp.open(1000, bounds={"x": (0, 1)})
    answer = p.groupby("g", keys=["b", "a"], sort=True)["x"].mean(epsilon=5)
    assert answer.dp.difference("a", "b").estimate == answer["a"] - answer["b"]


def test_a_difference_of_what_is_no_mean_is_refused(p):
    with pytest.raises(NotOffered, match="means or shares"):
        p.groupby("g").size(epsilon=5).dp.difference("a", "b")
    answer = p.groupby("g")["x"].mean(epsilon=5)
    for pair in (("a", "c"), ("a", "a")):
        with pytest.raises(BadValue, match="labels"):
            answer.dp.difference(*pair)
    with pytest.raises(BadType, match="Series"):
        p.groupby("g")[["x", "yes"]].mean(epsilon=5).dp.difference("a", "b")


# Tests of hypotheses ---------------------------------------------------------------------------------------------------


def test_refusals_of_tests_come_before_the_debit(p):
    asked = [
        (lambda: p.test.means("x", by="h", epsilon=1), BadValue, "two groups"),
        (lambda: p.test.means("x", by="id", epsilon=1), MissingKeys, "keys="),
        (lambda: p.test.means("x", by="g", level=2, epsilon=1), BadValue, "level"),
        (lambda: p.test.shares("x", by="g", epsilon=1), BadType, "condition"),
        (lambda: p.test.independence("g", "id", epsilon=1), MissingKeys, "keys="),
        (
            lambda: p.test.independence("g", "h", keys={"h": range(2000)}, epsilon=1),
            BadValue,
            "fewer",
        ),
        (lambda: p.test.correlation("x", "x", epsilon=1), BadValue, "two columns"),
        (lambda: p.test.anova, NotOffered, "independence"),
        (lambda: p.test.means("x", by="g", epsilon=1010), BudgetError, "1000"),
    ]
    for ask, kind, text in asked:
        with pytest.raises(kind, match=text):
            ask()
    assert p.budget.spent == 0


def test_a_test_finds_no_keys():
    p = frame().dp.open(10, bounds={"x": (0, 1)}, delta=1e-6)
    for ask in (lambda: p.test.means("x", by="g"), lambda: p.test.independence("g", "h")):
        with pytest.raises(MissingKeys, match="a test needs keys"):
            ask()
    assert p.budget.spent == 0


def test_a_test_is_the_release_that_it_says(p):
    tested = p.test.means("x", by="g", epsilon=1)
    assert p.explain.test.means("x", by="g", epsilon=1).question == tested.plan.question
    spent = p.budget.spent
    p.groupby("g")["x"].agg(["mean", "std"], epsilon=1)
    p.crosstab("g", "h", epsilon=1)
    p.test.independence("g", "h", epsilon=1)
    assert p.budget.spent == spent + 1


def test_a_test_counts_each_person_once(people):
    for tested in (
        people.test.means("x", by="g", epsilon=1),
        people.test.independence("g", "h", epsilon=1),
    ):
        assert tested.plan.limits == "a person counts for at most 1 row in each of at most 1 group"
    with pytest.raises(BadValue, match="max_rows="):
        people.test.means("x", by="g", max_rows=2, epsilon=1)


def test_answers_of_tests_are_kept_shown_and_planned_together(p):
    with p.plan_ahead() as batch:
        later = batch.test.shares("yes", by="g", epsilon=1)
    tested = later.answer
    assert pickle.loads(pickle.dumps(tested)) == tested
    assert "p-value" in repr(tested)
    assert "<caption>" in tested._repr_html_()
    assert tested.cost.epsilon == 1
    assert math.isnan(p.test.independence("g", "h", epsilon=1).interval[0])
    assert set(dir(p.test)) == {"means", "shares", "independence", "correlation"}


def test_empty_and_constant_groups_say_nothing(p):
    nobody = p[p["x"] > 2]
    assert nobody.test.means("x", by="g", epsilon=1).pvalue == 1
    assert nobody.test.independence("g", "h", epsilon=1).pvalue > 0.001
    assert nobody.test.correlation("x", "yes", bounds={"yes": (0, 1)}, epsilon=1).pvalue == 1
    assert nobody.mean("x", epsilon=1).interval(of="population") == (0.0, 1.0)


def test_a_difference_says_which_error_its_interval_covers():
    df = pd.DataFrame({"g": ["a", "b"] * 500, "yes": [True, False, True, True] * 250})
    p = df.dp.open(100, keys={"g": ["a", "b"]})
    answer = p.groupby("g")["yes"].mean(epsilon=5)
    noise = answer.dp.difference("a", "b")
    both = answer.dp.difference("a", "b", 0.9, of="population")
    assert repr(noise).endswith(", noise only; of='population' for a test")
    assert repr(both).endswith(", noise and sampling")
    assert "90 % interval" in repr(both)
    assert (noise.of, noise.level, both.of, both.level) == ("noise", 0.95, "population", 0.9)
    estimate, lower, upper = both
    assert (estimate, lower, upper) == (both.estimate, both.lower, both.upper)


def test_a_table_of_intervals_says_which_error_they_cover():
    df = pd.DataFrame({"g": ["a", "b"] * 500, "yes": [True, False, True, True] * 250})
    p = df.dp.open(100, keys={"g": ["a", "b"]})
    answer = p.groupby("g").agg(share=("yes", "mean"), n=("yes", "size"), epsilon=5)
    assert answer["share"].dp.interval().columns.name == "noise only"
    assert answer["share"].dp.interval(of="population").columns.name == "noise and sampling"
    assert list(answer.dp.interval().columns.names) == [None, "noise only"]
