"""Numbers that are noise say so, good ones do not; and answers over capped rows name the limit."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, BadValue, PrivacyWarning
from tests.internals import NOISE

# Elsewhere tests do not listen to this warning.
pytestmark = pytest.mark.filterwarnings("error", "ignore:second budget on a table opened before")

KEYS = {"state": ["CA", "NY", "XX"], "kind": ["a", "b"]}
BOUNDS = {"age": (0, 100), "delay": (-30, 180), "cost": (0, 5000)}


def table(rows=6000):
    """Three columns of numbers; nobody is in state XX."""
    i = np.arange(rows)
    return pd.DataFrame(
        {
            "state": np.where(i % 3 == 0, "NY", "CA"),
            "kind": np.where(i % 5 < 2, "a", "b"),
            "age": i * 7919 % 90 + 5.0,
            "delay": i * 104729 % 41 - 20.0,
            "cost": i * 1299709 % 2000 + 100.0,
        }
    )


@pytest.fixture
def p():
    return table().dp.open(1000, delta=1e-6, queries=1000, bounds=BOUNDS, keys=KEYS)


def quietly(ask):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", NOISE, PrivacyWarning)
        return ask()


# The rule ---------------------------------------------------------------------------------------------------------

GOOD = {
    "count": lambda p: p.count(epsilon=1),
    "mean": lambda p: p.mean("age", epsilon=1),
    "a mean near zero": lambda p: p.mean("delay", epsilon=1),
    "sum": lambda p: p.sum("cost", epsilon=1),
    "std": lambda p: p.std("age", epsilon=1),
    "var": lambda p: p.var("age", epsilon=1),
    "sem": lambda p: p.sem("age", epsilon=30),
    "skewness near zero": lambda p: p.skew("age", epsilon=5),
    "share": lambda p: p.mean("rare", epsilon=1),
    "correlation near zero": lambda p: p["age"].corr(p["cost"], epsilon=20),
    "tree": lambda p: p.quantile("age", 0.5, method="tree", epsilon=5),
    "median": lambda p: p.median("age", epsilon=1),
    "groups": lambda p: p.groupby("kind").agg(n=("age", "size"), m=("delay", "mean"), epsilon=1),
    "moments of groups": lambda p: p.groupby("kind")["age"].agg(["mean", "std", "sum"], epsilon=5),
    "describe": lambda p: p.describe(epsilon=20),
    "crosstab": lambda p: p.crosstab(
        "kind", "state", keys={"state": ["CA", "NY"]}, margins=True, epsilon=1
    ),
    "shares": lambda p: p.value_counts("kind", normalize=True, epsilon=1),
    "pivot": lambda p: p.pivot_table(values="delay", index="kind", aggfunc="mean", epsilon=1),
    "found keys": lambda p: p.groupby("word").size(epsilon=1),
    "means of found keys": lambda p: p.groupby("word")["age"].mean(epsilon=5),
    "one empty group of several": lambda p: p.groupby("state").size(epsilon=1),
    "an empty bin": lambda p: p.histogram("age", bins=[0, 50, 96, 100], epsilon=1),
    "questions": lambda p: p.counts({"old": "age > 60", "young": "age < 30"}, epsilon=1),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_answer_is_given_without_a_warning(p, name):
    q = p.assign(rare="age > 90")
    q = q.assign(word=p["state"].str.lower())
    answer = GOOD[name](q)
    if "empty" not in name:
        assert np.all(answer.dp.reliable)
        assert "?" not in repr(answer)


def few(p):
    """Some sixty rows."""
    return p.query("age < 6")


JUNK = {
    "count of nobody": lambda p: p.query("age > 99").count(epsilon=1),
    "mean of nobody": lambda p: p.query("age > 99").mean("delay", epsilon=1),
    "mean of few": lambda p: p.query("age < 6").mean("cost", epsilon=0.05),
    "sum of nobody": lambda p: p.query("age > 99").sum("cost", epsilon=1),
    "std of few": lambda p: few(p).std("age", epsilon=0.1),
    "sem of few": lambda p: few(p).sem("age", epsilon=0.1),
    "skewness of few": lambda p: few(p).skew("age", epsilon=0.1),
    "correlation of few": lambda p: few(p)["age"].corr(few(p)["cost"], epsilon=0.1),
    "tree of few": lambda p: few(p).quantile("age", 0.5, method="tree", epsilon=0.01),
    "distinct values": lambda p: p.nunique("kind", epsilon=0.1),
}


@pytest.mark.parametrize("name", JUNK)
def test_a_number_that_is_noise_is_said_to_be(p, name):
    with pytest.warns(PrivacyWarning, match="this number is noise"):
        answer = JUNK[name](p)
    assert answer.reliable is False
    assert answer.dp.reliable is False
    assert repr(answer).endswith(", noise")
    low, high = answer.interval()
    assert np.isnan(answer) or (high - low) / 2 > 0.5 * abs(answer)


def test_every_correlation_whose_interval_is_all_there_is_is_noise(p):
    with pytest.warns(PrivacyWarning, match="numbers of this answer that are marked"):
        table = p[["age", "cost", "delay"]].corr(epsilon=0.02)
    ends = table.dp.interval()
    whole = [(ends[c]["lower"] <= -1) & (ends[c]["upper"] >= 1) for c in table]
    reliable = table.dp.reliable
    assert pd.concat(whole, axis=1, keys=table.columns).sum().sum() > 2
    for column, all_there_is in zip(table, whole, strict=True):
        assert not reliable.loc[all_there_is, column].any()


@pytest.mark.parametrize(("bounds", "good"), [((0, 2000), False), ((-1000, 1000), True)])
def test_a_mean_is_as_good_as_zero_only_where_zero_lies_between_its_bounds(bounds, good):
    """A cost of 20 ± 35 of at most 2000 says little; a change of 20 ± 35 says that it is small."""
    p = pd.DataFrame({"x": [20.0] * 6000}).dp.open(1, bounds={"x": bounds}, because="one sign")
    mean = quietly(lambda: p.mean("x", epsilon=0.02))
    assert mean.reliable is good
    assert p.mean("x", epsilon=0.5).reliable


def test_an_empty_group_that_shows_the_middle_does_not_look_like_data(p):
    with pytest.warns(PrivacyWarning, match="marked"):
        means = p.groupby("state")["delay"].mean(epsilon=1)
    assert means.dp.reliable.to_dict() == {"CA": True, "NY": True, "XX": False}
    lines = repr(means).splitlines()
    assert [line.endswith(" ?") for line in lines[1:4]] == [False, False, True]
    assert lines[-1].startswith("? noise, 1 of 3 numbers")


def test_noise_has_its_mark_in_each_cell_of_a_table_and_a_line_below(p):
    wide = quietly(
        lambda: p.groupby("state").agg(n=("age", "size"), m=("delay", "mean"), epsilon=1)
    )
    text, html = repr(wide), wide._repr_html_()
    assert [line.count("?") for line in text.splitlines()] == [0, 0, 0, 0, 2, 1]
    assert html.count(" ?<") == 2
    assert html.count("? noise, 2 of 6") == 1
    assert str(wide) == text
    assert list(wide.dp.reliable.loc["XX"]) == [False, False]


def test_booleans_have_the_shape_of_the_answer(p):
    g = p.groupby("state")
    flat = quietly(lambda: p.groupby("state", as_index=False)["delay"].mean(epsilon=1))
    assert flat.dp.reliable.columns.tolist() == ["state", "delay"]
    assert flat.dp.reliable["state"].all()
    assert flat.dp.reliable["delay"].tolist() == [True, True, False]
    counted = quietly(lambda: p.value_counts("state", ascending=True, epsilon=1))
    assert counted.index[0] == "XX"
    assert counted.dp.reliable.tolist() == [False, True, True]
    column = quietly(lambda: g.agg(n=("age", "size"), m=("delay", "mean"), epsilon=2))["m"]
    assert column.dp.reliable.tolist() == [True, True, False]
    pivot = quietly(
        lambda: p.pivot_table(
            values="delay", index="state", columns="kind", aggfunc="mean", margins=True, epsilon=1
        )
    )
    assert pivot.dp.reliable.loc["XX"].tolist() == [False] * 3
    assert pivot.dp.reliable.drop(index="XX").to_numpy().all()
    assert pivot.dp.reliable.shape == pivot.shape


def test_the_deviation_of_a_small_table_is_noise_where_nothing_bounds_it(p):
    few = p.query("age < 9")
    with pytest.warns(PrivacyWarning):
        summary = few.describe("age", epsilon=0.2)
    assert not summary.dp.reliable["std"]
    assert summary.dp.interval().shape == (len(summary), 2)


# Choices ------------------------------------------------------------------------------------------------------------


def test_a_choice_is_noise_where_its_group_is_no_larger_than_its_error(p):
    ask = p.groupby("state")["age"]
    both = quietly(lambda: ask.agg(["count", "median"], epsilon=1))
    assert both.dp.reliable["median"].to_dict() == {"CA": True, "NY": True, "XX": False}
    alone = quietly(lambda: ask.median(epsilon=1))  # what lies around it tells how many there are
    assert alone.dp.reliable.to_dict() == {"CA": True, "NY": True, "XX": False}
    assert "quantiles: off by at most 1" in repr(alone)
    assert "rows are noise" in repr(alone)


def test_a_choice_that_can_say_nothing_is_warned_of_before_the_debit():
    p = table(60).dp.open(10, n=60, bounds=BOUNDS)
    assert "this will say nothing: of 60 values" in repr(p.explain.median("age", epsilon=0.1))
    with pytest.raises(PrivacyWarning, match="Nothing is charged yet"):
        p.median("age", epsilon=0.1)
    assert p.budget.spent == 0
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        answer = p.median("age", epsilon=0.1)
    assert len(heard) == 1
    assert answer.reliable is False
    assert p.median("age", epsilon=9).reliable is True


# Plans ----------------------------------------------------------------------------------------------------------------


def test_plans_say_in_advance_of_how_many_values_they_say_nothing(p):
    plan = p.explain.mean("age", epsilon=0.1)
    fewest = float(repr(plan).split("of fewer than ")[1].split()[0])
    assert "this will say nothing: of" in repr(p.explain.mean("age", epsilon=0.1, n=fewest * 0.99))
    assert "say nothing" not in repr(p.explain.mean("age", epsilon=0.1, n=fewest * 1.01))
    assert plan.error(n=fewest) == pytest.approx(
        50, rel=1e-3
    )  # either side of the middle of the bounds
    assert "say nothing" not in repr(p.explain.count(epsilon=1))
    assert "say nothing" in repr(p.explain.count(epsilon=0.001, n=20))


def test_plans_of_correlations_say_it_too(p):
    few, many = (p.explain[["age", "cost"]].corr(epsilon=0.1, n=n) for n in (20, 6000))
    assert "this will say nothing" in repr(few)
    assert "say nothing" not in repr(many)


# Once a release -------------------------------------------------------------------------------------------------------


def test_noise_is_warned_of_once_in_a_session_in_one_short_sentence(p):
    asked = {
        "table": lambda e: p.groupby("state")["delay"].mean(epsilon=e),
        "number": lambda e: p.query("age > 99").count(epsilon=e),
        "summary": lambda e: p.assign(x=1.0).query("age > 99").describe("age", epsilon=e),
    }
    for first in asked:
        p.close()
        p = table().dp.open(1000, bounds=BOUNDS, keys=KEYS, because="a test")
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            for name in (first, *asked):
                assert not np.all(asked[name](1.5 if name == first else 1).dp.reliable)
        (message,) = [str(one.message) for one in heard]
        assert len(message) <= 120
        assert message.count(".") == 1
        assert message.endswith("narrower bounds help.")


def test_a_release_is_warned_of_once_and_a_repeat_is_silent(p):
    with pytest.raises(PrivacyWarning):
        p.groupby("state")["delay"].mean(epsilon=1)
    spent = p.budget.spent
    again = p.groupby("state")["delay"].mean(epsilon=1)  # kept, and free
    assert p.budget.spent == spent > 0
    assert not again.dp.reliable["XX"]


def test_a_batch_warns_when_all_its_answers_are_there(p):
    with pytest.raises(PrivacyWarning), p.plan_ahead() as batch:  # noqa: PT012
        nobody = batch.query("age > 99").count(epsilon=1)
        all_rows = batch.count(epsilon=1)
    assert nobody.answer.reliable is False
    assert all_rows.answer.reliable is True


def test_a_batch_warns_of_noise_once(p):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with p.plan_ahead() as batch:
            for age in (96, 97, 98):
                batch.query(f"age > {age}").count(epsilon=0.5)
    assert len(heard) == 1


def test_answers_of_a_ledger_are_judged_alike_and_silently(tmp_path):
    words = {"bounds": BOUNDS, "keys": KEYS, "ledger": tmp_path / "l.db", "population": "nobody"}
    frame = table()
    first = quietly(lambda: frame.dp.open(10, **words).groupby("state")["delay"].mean(epsilon=1))
    frame.dp.close()
    again = table().dp.open(10, **words)
    answer = again.groupby("state")["delay"].mean(epsilon=1)
    assert answer.tolist() == first.tolist()
    assert repr(answer) == repr(first)
    assert again.budget.spent == 1


# Leaving it out ---------------------------------------------------------------------------------------------------------


def test_noise_is_left_out_where_the_session_says_so():
    frame = table()
    p = frame.dp.open(10, bounds=BOUNDS, keys=KEYS)
    shown = quietly(
        lambda: p.groupby("state").agg(n=("age", "size"), m=("delay", "mean"), epsilon=1)
    )
    nobody = quietly(lambda: p.query("age > 99").count(epsilon=1))
    debits, declared = len(p.ledger), p.declarations
    q = frame.dp.open(show="nan")
    blank = q.groupby("state").agg(n=("age", "size"), m=("delay", "mean"), epsilon=1)
    assert len(q.ledger) == debits
    pd.testing.assert_frame_equal(q.declarations, declared)
    assert blank.isna().to_numpy().tolist() == [[False] * 2, [False] * 2, [True] * 2]
    pd.testing.assert_frame_equal(blank.dp.interval(), shown.dp.interval())
    pd.testing.assert_frame_equal(blank.dp.reliable, shown.dp.reliable)
    pd.testing.assert_frame_equal(blank.dropna(), shown.loc[["CA", "NY"]], check_dtype=False)
    none = q.query("age > 99").count(epsilon=1)
    assert np.isnan(none)
    assert none.interval() == nobody.interval()
    assert frame.dp.open(show="all").query("age > 99").count(epsilon=1) == nobody
    assert len(q.ledger) == debits


def test_what_is_left_out_is_not_in_a_pickle_nor_in_shapes_with_levels():
    p = table().dp.open(10, bounds=BOUNDS, keys=KEYS, show="nan")
    pivot = quietly(lambda: p.pivot_table(values="delay", index="state", columns="kind", epsilon=1))
    assert pivot.loc["XX"].isna().all()
    flat = quietly(lambda: p.groupby("state", as_index=False)["delay"].mean(epsilon=1))
    assert flat["delay"].isna().tolist() == [False, False, True]
    counted = quietly(lambda: p.value_counts("state", epsilon=1))
    assert np.isnan(counted["XX"])
    assert pickle.loads(pickle.dumps(pivot)).dp.reliable.equals(pivot.dp.reliable)


def test_the_part_is_the_owners(p):
    frame = table()
    strict = frame.dp.open(10, bounds=BOUNDS, keys=KEYS, reliable=0.0001)
    answer = quietly(lambda: strict.count(epsilon=1))
    assert answer.reliable is False
    assert pickle.loads(pickle.dumps(answer)).reliable is False
    sizes = quietly(lambda: strict.groupby("state").size(epsilon=1))
    assert not sizes.dp.reliable.any()
    frame.dp.open(reliable=2)
    assert frame.dp.count(epsilon=1).reliable is True
    with pytest.raises(BadValue, match="reliable="):
        frame.dp.open(reliable=0)
    with pytest.raises(BadValue, match="unknown show"):
        frame.dp.open(show="none")
    with pytest.raises(BadType):
        frame.dp.open(show=1)


# Steps that follow ----------------------------------------------------------------------------------------------------


def test_an_answer_is_a_subclass_of_pandas_own_with_plain_values(p):
    good = p.groupby("kind").size(epsilon=1)
    wide = quietly(lambda: p.groupby("state")["delay"].mean(epsilon=1))
    assert good.dtype == np.int64
    assert type(good["a"]) is np.int64
    assert type(wide["CA"]) is np.float64
    assert wide.to_numpy().dtype == np.float64
    assert type(good).__name__ == type(wide).__name__ == "AnswerSeries"
    assert type(wide.to_frame()).__name__ == "AnswerFrame"
    assert type(wide.to_frame()["delay"]).__name__ == "AnswerSeries"
    plain = pd.Series(wide.tolist(), wide.index, name="delay")
    pd.testing.assert_series_equal(wide, plain, check_series_type=False)
    assert type(pd.Series(wide)) is pd.Series


def test_marks_stay_where_numbers_were_changed_and_the_line_says_so(p):
    wide = quietly(lambda: p.groupby("state")["delay"].mean(epsilon=1))
    assert ".0 ?" in repr(wide.round(1))
    assert repr(wide.sort_values()).count(" ?") == repr(wide.tail(1)).count(" ?") == 1
    assert repr(wide.head(2)).count("?") == 0
    changed = repr(wide.to_frame() ** 2)
    assert changed.endswith("\n? noise before these numbers were changed, 1 of them")
    assert "±" not in changed
    assert repr(pickle.loads(pickle.dumps(wide))) == repr(wide)
    assert repr(wide.copy()) == repr(wide)


@pytest.mark.parametrize("rows", [3, 61, 200])
def test_marks_stand_in_the_lines_of_their_numbers_also_of_long_answers(rows):
    keys = [f"k{i}" for i in range(rows)]
    frame = pd.DataFrame({"k": keys[: rows // 2] * 300, "x": 0.5})
    p = frame.dp.open(100, bounds={"x": (0, 1)}, keys={"k": keys})
    means = quietly(lambda: p.groupby("k")["x"].mean(epsilon=50))
    reliable = means.dp.reliable
    assert reliable.tolist() == [True] * (rows // 2) + [False] * (rows - rows // 2)
    for answer in (means, means.to_frame()):
        shown = [line.split() for line in repr(answer).splitlines()]
        shown = [words for words in shown if words and words[0] in keys]
        assert len(shown) == (rows if rows < 60 else 10)
        for words in shown:
            assert (words[-1] == "?") != reliable[words[0]]


@pytest.mark.parametrize("empty", [False, True])
def test_of_many_groups_some_tell_whether_there_is_a_warning(empty):
    frame = pd.DataFrame({"k": np.arange(60_000) % 3000, "x": np.arange(60_000) * 7919 % 101 / 100})
    keys = range(9000) if empty else range(3000)
    p = frame.dp.open(1000, bounds={"x": (0, 1)}, keys={"k": keys})
    if not empty:
        spread = p.groupby("k")["x"].std(epsilon=900)
        assert spread.dp.reliable.all()
        assert "?" not in repr(spread)
        return
    with pytest.warns(PrivacyWarning, match="marked"):
        spread = p.groupby("k")["x"].std(epsilon=900)
    assert repr(spread).count(" ?") == 5
    reliable = spread.dp.reliable
    assert reliable[:3000].all()
    assert (
        reliable[3000:].sum() < 60
    )  # of 6000 intervals, each of which covers with probability 0.95, few miss by so much


# Caps -------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def people():
    i = np.arange(9000)
    frame = pd.DataFrame(
        {"id": i % 1000, "state": np.where(i % 2, "CA", "NY"), "cost": i * 1299709 % 2000 + 100.0}
    )
    return frame.dp.open(
        1000,
        unit="id",
        max_rows=4,
        max_groups=2,
        bounds={"cost": (0, 5000)},
        keys={"state": ["CA", "NY"]},
    )


def test_an_answer_over_capped_rows_says_so_wherever_it_is_shown(people):
    n = people.count(epsilon=50)
    assert n == pytest.approx(4000, abs=10)  # of 9000
    assert repr(n).endswith(", of at most 4 rows a person")
    assert "of at most 4 rows a person" in n._repr_html_()
    assert float(str(n)) == n
    sums = people.groupby("state")["cost"].sum(epsilon=50)
    assert repr(sums).endswith("\nof at most 4 rows a person, in at most 2 groups")
    assert (
        "of at most 4 rows a person"
        in people.groupby("state").agg(n=("cost", "size"))._repr_html_()
    )
    assert "at most 4 rows" in repr(people.explain.count())
    assert repr(people.count(epsilon=50, max_rows=64)).endswith("of at most 64 rows a person")
    assert repr(sums / 1000).endswith("of at most 4 rows a person, in at most 2 groups")


def test_a_number_of_people_is_not_capped_by_rows(people):
    assert "a person" not in repr(people.nunique("id", epsilon=50))
    each = people.groupby("state")["id"].nunique(epsilon=50, max_groups=1)
    assert repr(each).endswith("of at most 1 group a person")
    assert repr(people.nunique("cost", epsilon=900, max_groups=9)).endswith(
        "of at most 9 values a person"
    )


def test_a_session_of_rows_says_nothing_of_limits(p):
    assert "a person" not in repr(p.count(epsilon=1)) + repr(p.groupby("kind").size(epsilon=1))


# Over the limits ----------------------------------------------------------------------------------------------------------


def test_people_over_the_limits_are_counted_for_the_price_of_a_count():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "id": rng.integers(0, 800, 6000),
            "state": rng.choice(["CA", "NY", "WA", None], 6000),
            "kind": rng.choice(["a", "b"], 6000),
        }
    )
    p = frame.dp.open(500, unit="id", max_rows=8, max_groups=2)
    each = frame.groupby("id").size()
    assert p.over_limits(epsilon=50).to_dict() == {False: (each <= 8).sum(), True: (each > 8).sum()}
    assert p.over_limits(epsilon=50, max_rows=3)[True] == (each > 3).sum()
    for by, rows, groups in (("state", 3, 2), (["state", "kind"], 2, 4)):
        found = p.over_limits(by, epsilon=50, max_rows=rows, max_groups=groups)
        names = [by] if isinstance(by, str) else by
        known = frame.dropna(subset=names).groupby(["id", *names]).size()
        many, wide = known.groupby("id").max() > rows, known.groupby("id").size() > groups
        assert (
            found.to_numpy().tolist() == pd.crosstab(many, wide, margins=True).to_numpy().tolist()
        )
    for plan in (p.explain.over_limits(epsilon=1), p.explain.over_limits("state", epsilon=1)):
        assert plan.sensitivity == 1  # whatever the limits of the session
    assert len(p.ledger) == 4
    assert "a person" not in repr(p.over_limits(epsilon=50))
    first = p.drop_duplicates("id")
    assert "a person" not in repr(first.count(epsilon=1))
    assert "of at most 1 row a person" in repr(p.count(epsilon=1, max_rows=1))
    assert "of at most 1 row" in repr(
        p.drop_duplicates(["id", "state"]).count(epsilon=1, max_rows=1)
    )


def test_over_limits_needs_people_and_limits(p):
    with pytest.raises(BadValue, match="unit="):
        p.over_limits()
    q = table().assign(id=1).dp.open(1, unit="id")
    with pytest.raises(BadValue, match="max_rows="):
        q.over_limits()
    with pytest.raises(BadValue, match="max_groups="):
        q.over_limits("state", max_rows=2)
    with pytest.raises(dpframe.UnknownColumn):
        q.over_limits("nothing", max_rows=2, max_groups=2)
    assert q.budget.spent == 0


def test_durations_are_judged_as_their_seconds():
    rows = 400
    came = pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(rows) % 9, unit="D")
    frame = pd.DataFrame({"k": ["x", "y"] * (rows // 2), "came": came})
    frame["left"] = frame["came"] + pd.to_timedelta(np.arange(rows) % 30, unit="h")
    words = {
        "bounds": {"came": ("2025-01-01", "2025-01-10"), "left": ("2025-01-01", "2025-01-12")},
        "keys": {"k": ["x", "y", "z"]},
    }
    for show in ("mark", "nan"):
        p = frame.copy().dp.open(
            500, because="an example", show=None if show == "mark" else show, **words
        )
        q = p.assign(stay=p["left"] - p["came"])
        assert q["stay"].mean(epsilon=50).reliable
        with pytest.warns(PrivacyWarning, match="this number is noise"):
            noise = q["stay"].mean(epsilon=0.001)
        assert not noise.reliable
        assert repr(noise).endswith("± 11 days 00:00:00, noise")
        assert repr(noise).startswith("NaT") == (show == "nan")
        assert noise.interval() == (pd.Timedelta("-10D"), pd.Timedelta("12D"))
        means = q.groupby("k")["stay"].mean(epsilon=20)  # there was a warning
        assert list(means.dp.reliable) == [True, True, False]
        assert means.isna().tolist() == [False, False, show == "nan"]
        assert means.dtype == "timedelta64[us]"


def test_what_was_only_scaled_is_worth_what_it_is_made_of():
    frame = pd.DataFrame({"x": [100.0] * 1000, "k": ["a", "b"] * 500})
    p = frame.dp.open(1000, keys={"k": ["a", "b", "c"]}, bounds={"x": (90, 110)})
    mean = quietly(lambda: p.mean("x", epsilon=0.001))
    assert [n.reliable for n in (mean, mean / 1000, mean * -2)] == [False, False, False]
    means = quietly(lambda: p.groupby("k")["x"].mean(epsilon=20))
    scaled = means.dp / 1000
    assert scaled.dp.reliable.tolist() == means.dp.reliable.tolist() == [True, True, False]
    assert repr(scaled).count(" ?") == 1
    strict = frame.copy().dp.open(
        1000, keys={"k": ["a", "b", "c"]}, because="an example", reliable=1e-9
    )
    counts = quietly(lambda: strict.groupby("k").size(epsilon=1))
    assert not (counts.dp * 2).dp.reliable.any()


def test_noise_that_is_left_out_stays_out():
    frame = pd.DataFrame({"x": [100.0] * 1000, "k": ["a", "b"] * 500})
    p = frame.dp.open(1000, keys={"k": ["a", "b", "c"]}, bounds={"x": (90, 110)}, show="nan")
    means = quietly(lambda: p.groupby("k")["x"].mean(epsilon=20))
    for changed in (means.sort_index(ascending=False), means.head(3), means.dp * 2):
        assert changed.isna().sum() == 1
        assert np.isfinite(changed.dp.interval().to_numpy()).all()
        assert not changed.dp.reliable[changed.isna()].any()
    assert "noise" in means.dp.table()["flags"].iloc[2]


def test_a_choice_says_by_how_many_ranks_it_may_miss():
    p = pd.DataFrame({"x": np.arange(1000.0)}).dp.open(100, bounds={"x": (0, 1000)})
    assert "off by at most 1,205 ranks" in repr(quietly(lambda: p.median("x", epsilon=0.01)))
    assert "ranks" not in repr(p.median("x", epsilon=90))


def test_interval_of_a_count_has_at_least_the_nearest_whole_number():
    """A count that is read off a vector with fine noise need not be near a whole number."""
    found = []
    for seed in range(40):
        df = pd.DataFrame({"x": np.random.default_rng(seed).normal(55, 20, 218)})
        p = df.dp.open(1000, bounds={"x": (0, 110)})
        answer = p["x"].describe(epsilon=900)
        found.append((answer["count"], *answer.dp.interval().loc["count"]))
        assert answer.dp.reliable.all()
        p.close()
    counts, lower, upper = map(np.array, zip(*found, strict=True))
    assert (lower <= counts).all()
    assert (counts <= upper).all()
    assert (upper - lower < 1).any()
