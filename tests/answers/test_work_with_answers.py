"""Answers are worked with across rows: sums, windows, groups and new shapes, each with intervals."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, BadValue, Estimate
from dpframe._answers import forms
from dpframe._answers.arithmetic import ONE, RELEASED
from dpframe._answers.computed import receipt_parts
from dpframe._answers.marks import AnswerFrame, AnswerSeries

DAYS, STATES, AGES = list(range(12)), ["CA", "NY", "WA"], ["<40", "40+"]


@pytest.fixture
def p():
    rng = np.random.default_rng(3)
    size = 4000
    frame = pd.DataFrame(
        {
            "day": rng.choice(DAYS, size),
            "state": rng.choice(STATES, size),
            "age": rng.choice(AGES, size),
            "cost": rng.gamma(2.0, 20.0, size),
        }
    )
    keys = {"day": DAYS, "state": STATES, "age": AGES}
    return frame.dp.open(1000, bounds={"cost": (0, 200)}, keys=keys)


def half_width(answer):
    ends = answer.dp.interval()
    return ((ends["upper"] - ends["lower"]) / 2).to_numpy()


# The numbers are those of pandas -------------------------------------------------------------------


VERBS = {
    "sum": (lambda a: a.dp.sum(), lambda a: a.sum()),
    "mean": (lambda a: a.dp.mean(), lambda a: a.mean()),
    "cumsum": (lambda a: a.dp.cumsum(), lambda a: a.cumsum()),
    "cumprod": (lambda a: (a.dp / 400).dp.cumprod(), lambda a: (a / 400).cumprod()),
    "diff": (lambda a: a.dp.diff(), lambda a: a.diff()),
    "diff back": (lambda a: a.dp.diff(-2), lambda a: a.diff(-2)),
    "pct_change": (lambda a: a.dp.pct_change(3), lambda a: a.pct_change(3)),
    "rolling": (lambda a: a.dp.rolling(4).mean(), lambda a: a.rolling(4).mean()),
    "rolling sum": (lambda a: a.dp.rolling(4).sum(), lambda a: a.rolling(4).sum()),
    "few": (
        lambda a: a.dp.rolling(4, min_periods=2).mean(),
        lambda a: a.rolling(4, min_periods=2).mean(),
    ),
    "centred": (
        lambda a: a.dp.rolling(4, center=True).mean(),
        lambda a: a.rolling(4, center=True).mean(),
    ),
    "too long": (lambda a: a.dp.rolling(99).mean(), lambda a: a.rolling(99).mean()),
    "reindex": (lambda a: a.dp.reindex([2, 1, 77]), lambda a: a.reindex([2, 1, 77])),
    "backwards": (lambda a: a.iloc[::-1].dp.cumsum(), lambda a: a.iloc[::-1].cumsum()),
    "with a gap": (
        lambda a: a.dp.reindex([2, 77, 1, 0, 5, 6]).dp.rolling(2).sum(),
        lambda a: a.reindex([2, 77, 1, 0, 5, 6]).rolling(2).sum(),
    ),
    "after a gap": (
        lambda a: a.dp.reindex([2, 77, 1]).dp.cumsum(),
        lambda a: a.reindex([2, 77, 1]).cumsum(),
    ),
    "weights": (
        lambda a: 2 * np.arange(12.0) * a.dp,
        lambda a: 2 * np.arange(12.0) * a,
    ),
    "columns": (
        lambda a: a.to_frame("n").dp.sum(),
        lambda a: a.to_frame("n").sum(),
    ),
    "columns of a row": (
        lambda a: a.to_frame("n").dp.mean(axis=1),
        lambda a: a.to_frame("n").mean(axis=1),
    ),
    "name": (lambda a: a.dp.rename("n"), lambda a: a.rename("n")),
    "labels": (lambda a: a.dp.rename({1: 100}), lambda a: a.rename({1: 100})),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_gives_what_pandas_gives_and_an_interval_that_holds_it(p, verb):
    answer = p.groupby("day").size(epsilon=1)
    ours, theirs = VERBS[verb]
    made, plain = ours(answer), theirs(pd.Series(answer))
    if not isinstance(made, pd.Series | pd.DataFrame):
        assert isinstance(made, Estimate)
        assert float(made) == pytest.approx(float(plain))
        low, high = made.interval()
        assert low < made < high
        return
    pd.testing.assert_series_equal(pd.Series(made), plain, check_dtype=False)
    low, high = (made.dp.interval()[end].to_numpy() for end in ("lower", "upper"))
    there = plain.notna().to_numpy()
    assert (low[there] <= plain[there]).all()
    assert (plain[there] <= high[there]).all()
    assert np.isnan(low[~there]).all()
    assert np.isfinite(low[there]).all()
    assert len(made.dp.table()) == len(plain)
    assert isinstance(repr(made), str)


def test_groups_by_level_are_those_of_pandas(p):
    counts = p.groupby(["state", "age"]).size(epsilon=1)
    plain = pd.Series(counts)
    for made, wanted in (
        (counts.dp.groupby(level="state").sum(), plain.groupby(level="state").sum()),
        (counts.dp.groupby("age").mean(), plain.groupby(level="age").mean()),
        (counts.dp.groupby(level=["age", "state"]).sum(), plain.groupby(["age", "state"]).sum()),
        (counts.dp.groupby(level=-1, sort=False).sum(), plain.groupby(level=1, sort=False).sum()),
        (counts.to_frame("n").dp.groupby(level=0).sum()["n"], plain.groupby(level=0).sum()),
    ):
        pd.testing.assert_series_equal(pd.Series(made), wanted, check_names=False)
        assert made.dp.rule == forms.SUM
    assert half_width(counts.dp.groupby(level="state").sum())[0] < 1.6 * half_width(counts)[0]


def test_shapes_keep_intervals(p):
    counts = p.groupby(["state", "age"]).size(epsilon=1)
    wide = counts.dp.unstack()
    assert wide.shape == (3, 2)
    ends = counts.dp.interval()
    assert wide.dp.interval().loc["NY", ("40+", "lower")] == ends.loc[("NY", "40+"), "lower"]
    assert wide.dp.T.dp.interval().loc["40+", ("NY", "upper")] == ends.loc[("NY", "40+"), "upper"]
    long = wide.dp.stack()
    pd.testing.assert_frame_equal(long.dp.interval(), ends.loc[long.index])
    renamed = wide.dp.rename(columns={"<40": "young"}, index=str.lower)
    assert list(renamed.columns) == ["40+", "young"]
    assert renamed.dp.interval().loc["ny", ("40+", "lower")] == ends.loc[("NY", "40+"), "lower"]
    assert renamed.dp.rule == ONE
    assert counts.dp.rule == RELEASED
    assert wide.dp.reindex(columns=["<40"]).dp.interval().shape == (3, 2)


# Noises that are shared ----------------------------------------------------------------------------


def test_what_is_subtracted_again_has_the_noise_of_what_is_left(p):
    answer = p.groupby("day").size(epsilon=1)
    again = answer.dp.cumsum().dp.diff()
    assert np.array_equal(half_width(again)[1:], half_width(answer)[1:])
    nothing = answer.dp - answer.iloc[::-1]
    assert np.array_equal(half_width(nothing), np.zeros(12))
    left = answer.dp.sum() - answer.dp.cumsum().dp
    assert half_width(left)[-1] == 0
    assert half_width(left)[-2] == half_width(answer)[-1]


def test_sums_have_the_deviation_of_their_noises(p):
    answer = p.groupby("day").size(epsilon=1)
    one = float(answer.dp.plan.parts[0].noise.deviation)
    assert answer.dp.sum().std_error == pytest.approx(one * np.sqrt(12))
    assert answer.dp.mean().std_error == pytest.approx(one / np.sqrt(12))
    errors = answer.dp.rolling(4).sum().dp.table()["std_error"].to_numpy()
    assert errors[3:] == pytest.approx(one * 2)
    assert np.isnan(errors[:3]).all()
    overlapping = answer.dp.rolling(3).sum().dp.rolling(2).sum()
    assert overlapping.dp.table()["std_error"].iloc[-1] == pytest.approx(one * np.sqrt(10))


def test_one_release_asked_twice_is_not_taken_for_two(p):
    answer = p.groupby("day").size(epsilon=1)
    again = p.groupby("day").size(epsilon=1)
    other = p.groupby("day").size(epsilon=1, fresh=True)
    twice, two = answer.dp + again, answer.dp + other
    assert half_width(twice)[0] >= 2 * half_width(answer)[0]
    assert half_width(two)[0] < 1.7 * half_width(answer)[0]
    assert twice.dp.table()["std_error"].isna().all()


def test_a_copy_of_a_receipt_is_of_unknown_noise(p):
    answer = p.groupby("day").size(epsilon=1)
    running = answer.dp.cumsum()
    copied = pickle.loads(pickle.dumps(running))
    receipt_parts.clear()
    assert np.array_equal(half_width(copied), half_width(running))
    less = copied.dp - answer.dp.cumsum().dp
    assert (half_width(less)[1:] > half_width(answer)[1:]).all()
    assert np.array_equal(less, np.zeros(12))


def test_results_are_read_again_from_their_receipts(p):
    answer = p.groupby("day").size(epsilon=1)
    mean = p.groupby("day")["cost"].mean(epsilon=1)
    for made in (
        answer.dp.rolling(3).mean(),
        (mean.dp * np.arange(12)).dp.cumsum(),
        answer.to_frame("n").dp.sum(),
        (1 - (answer.dp / 4000).dp).dp.cumprod(),
    ):
        made.attrs = json.loads(json.dumps(made.attrs))
        copied = pickle.loads(pickle.dumps(made))
        assert copied.dp.rule == made.dp.rule
        pd.testing.assert_frame_equal(copied.dp.interval(), made.dp.interval())
    number = answer.dp.sum()
    assert pickle.loads(pickle.dumps(number)).interval() == number.interval()


# Weights, ratios and comparisons -------------------------------------------------------------------


def test_a_standardised_rate_is_one_line(p):
    rate = p.groupby("age")["cost"].mean(epsilon=10)
    weights = {"<40": 0.7, "40+": 0.3}
    made = (rate.dp * weights).sum()
    assert isinstance(made, Estimate)
    assert float(made) == pytest.approx(rate["<40"] * 0.7 + rate["40+"] * 0.3)
    assert made.rule == forms.ORDER
    apart = 0.7 * half_width(rate)[1] + 0.3 * half_width(rate)[0]
    low, high = made.interval()
    assert apart / 2 < (high - low) / 2 < 1.2 * apart
    for same in (
        rate.dp * pd.Series(weights),
        pd.Series(weights) * rate.dp,
        rate.dp * [weights[age] for age in rate.index],
        np.array([weights[age] for age in rate.index]) * rate.dp,
    ):
        assert same.dp.sum().interval() == made.interval()
    by_state = p.groupby(["state", "age"])["cost"].mean(epsilon=10)
    each = (by_state.dp * pd.Series(weights).rename_axis("age")).dp.groupby(level="state").sum()
    assert list(each.index) == STATES
    assert each["NY"] == pytest.approx(by_state["NY", "<40"] * 0.7 + by_state["NY", "40+"] * 0.3)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (pd.Series({"<40": 1.0, "40+": np.nan}), r"that of '40\+' is not: weights\.fillna\(0\)"),
        (pd.Series({"<40": 1.0}), r"'40\+' is missing\. .* weights\.reindex"),
        (pd.Series({"<40": 1.0, "40+": 2.0, "old": 3.0}), r"'old' is not one of them"),
        ([1.0, 2.0, 3.0], "3 known numbers, and the answer has 2 rows"),
    ],
)
def test_weights_that_do_not_fit_are_refused_with_the_line(p, weights, words):
    with pytest.raises(BadValue, match=words):
        _ = p.groupby("age")["cost"].mean(epsilon=10).dp * weights


def test_a_survival_table_has_intervals(p):
    deaths = p[p["cost"] > 90].groupby("day").size(epsilon=10)
    leaving = p.groupby("day").size(epsilon=10)
    at_risk = leaving.iloc[::-1].dp.cumsum().iloc[::-1]
    survival = (1 - deaths.dp / at_risk).cumprod()
    assert isinstance(survival, pd.Series)
    table = survival.dp.table()
    assert (table["lower"] < table["value"]).all()
    assert (table["upper"][:8] - table["lower"][:8] < 0.3).all()
    assert (np.diff(half_width(survival)[:8]) > 0).all()
    assert survival.dp.rule == forms.ORDER


def test_comparisons_say_what_is_sure(p):
    answer = p.groupby("day").size(epsilon=1)
    ends = answer.dp.interval()
    level = float(answer.iloc[3])
    above = answer.dp > level
    assert above.dtype == "boolean"
    assert above.isna().tolist() == ((ends["lower"] <= level) & (ends["upper"] > level)).tolist()
    assert pd.isna(above.iloc[3])
    assert (answer.dp > 0).all()
    assert not (answer.dp < 0).any()
    assert (answer.dp >= 0).all()
    assert (answer.dp <= 10**6).all()
    assert (answer.dp > answer.iloc[::-1]).eq(False).all()
    table = answer.to_frame("n").dp > 0
    assert table["n"].all()
    assert (answer.dp > dict.fromkeys(DAYS, 0)).all()


# Plain steps of pandas -----------------------------------------------------------------------------


def as_answer(answer):
    """Return an answer as the class that shows intervals."""
    made = AnswerSeries(answer) if isinstance(answer, pd.Series) else AnswerFrame(answer)
    made.attrs = answer.attrs
    return made


def test_plain_steps_of_pandas_keep_intervals_where_they_are_unambiguous(p):
    answer = as_answer(p.groupby("day").size(epsilon=1))
    other = as_answer(p.groupby("day").size(epsilon=1, fresh=True))
    n = p.count(epsilon=1)
    for plain, dp in (
        (answer / 1000, answer.dp / 1000),
        (1 - answer, 1 - answer.dp),
        (answer * n, answer.dp * n),
        (answer - other, answer.dp - other),
        (answer.div(7), answer.dp / 7),
        (answer.cumsum(), answer.dp.cumsum()),
        (answer.diff(2), answer.dp.diff(2)),
        (answer.rolling(3).mean(), answer.dp.rolling(3).mean()),
        (answer.rolling(3).sum(), answer.dp.rolling(3).sum()),
        (answer / answer.sum(), answer.dp / answer.dp.sum()),
        (answer.to_frame("n") + 1, answer.to_frame("n").dp + 1),
    ):
        pd.testing.assert_frame_equal(plain.dp.interval(), dp.dp.interval())
    assert answer.sum().interval() == answer.dp.sum().interval()
    assert answer.mean().interval() == answer.dp.mean().interval()
    shares = (answer / answer.sum()).dp.interval()
    taken_for_known = (answer / float(answer.sum())).dp.interval()
    assert not np.allclose(shares, taken_for_known)


def test_plain_steps_with_other_operands_name_the_line(p):
    answer = as_answer(p.groupby("day").size(epsilon=1))
    weights = pd.Series(2.0, index=answer.index, name="people")
    for made, line in (
        (answer * weights, r"write answer\.dp \* people"),
        (weights - answer, r"write people - answer\.dp"),
        (answer / answer.max(), r"write answer\.dp / \d+,"),
    ):
        with pytest.raises(BadValue, match=line):
            made.dp.interval()
        assert type(made).__name__ == "AnswerSeries"
    with pytest.raises(BadValue, match=r"answer\.dp\.rolling\(7\)\.mean\(\)"):
        answer.rolling(3).std().dp.plot()
    with pytest.raises(BadValue, match=r"answer\.dp\.groupby\(level=0\)\.sum\(\)"):
        answer.groupby(level=0).max().pow(2).dp.interval()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda a: a.dp.rolling("7D"), "number of rows"),
        (lambda a: a.dp.rolling(0), "number of rows"),
        (lambda a: a.dp.rolling(3, min_periods=5), "0 to 3"),
        (lambda a: a.dp.diff("1"), "diff takes a number of rows"),
        (lambda a: a.dp.groupby("state"), r"levels of its index.*level='day'"),
        (lambda a: a.dp.groupby(), r"level='day'"),
        (lambda a: a.dp.sum(axis=1), "axis"),
        (lambda a: a.dp.stack(), "needs a table"),
        (lambda a: a.dp.rename(columns={"a": "b"}), "no columns"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(p, ask, words):
    with pytest.raises((BadType, BadValue), match=words):
        ask(p.groupby("day").size(epsilon=1))


def test_a_quotient_that_is_multiplied_has_the_noise_of_its_divisor(p):
    counts = p.groupby("day").size(epsilon=0.2)
    other = p.groupby("day").size(epsilon=0.2, fresh=True)
    few = other.dp - 300
    made = (counts.dp / few).dp * counts
    assert made.dp.rule == forms.ORDER
    ends = few.dp.interval()
    unsure = (ends["lower"] <= 0) & (ends["upper"] >= 0)
    far = half_width(made)[~unsure] / np.abs(made[~unsure])
    assert (far > half_width(few)[~unsure] / few[~unsure].abs()).all()
    near = (counts.dp / (other.dp - (other.to_numpy() - 1))).dp * counts
    assert np.isinf(half_width(near)).all()


# Weights of one level -------------------------------------------------------------------------------


def test_weights_without_a_name_are_of_the_level_that_they_fit(p):
    answer = p.groupby(["state", "age"])["cost"].mean(epsilon=100)
    weights = {"<40": 0.7, "40+": 0.3, "90+": 0.0}
    named = answer.dp * pd.Series(weights).rename_axis("age")
    for other in (weights, pd.Series(weights)):
        pd.testing.assert_series_equal(pd.Series(answer.dp * other), pd.Series(named))


def test_weights_that_fit_no_level_name_the_line_to_write(p):
    answer = p.groupby(["state", "age"]).size(epsilon=100)
    with pytest.raises(BadValue, match=r"none of the levels .*weights.rename_axis\('age'\)"):
        answer.dp * {"<40": 1.0}


def test_an_axis_of_computed_numbers_is_not_named_by_their_source(p):
    answer = p.groupby("day").size(epsilon=100).rename(None)
    assert answer.dp.plot().get_ylabel() == "rows"
    assert (answer.dp / 100).dp.plot().get_ylabel() == ""
