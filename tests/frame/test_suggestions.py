"""Limits and bounds that are found for a price: what they are, that they can be used, and that nothing else leaks."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, BadValue
from dpframe._frame import suggestions as suggestions_module
from dpframe._frame.suggestions import bounds_of, limit_of
from dpframe._statistics.base import MAGNITUDES
from dpframe.mechanisms.noise import GaussianNoise, LaplaceNoise

STATES = ["CA", "NY", "WA"]


@pytest.fixture
def df():
    """Of 2000 people half have one row, the others up to eight, and a few a hundred; half are in one state."""
    rng = np.random.default_rng(5)
    sizes = np.r_[np.ones(1000, int), rng.integers(2, 9, 980), np.full(20, 100)]
    ids = np.repeat(np.arange(2000), sizes)
    place = np.where(ids % 2 == 0, ids % 3, rng.integers(0, 3, len(ids)))
    return pd.DataFrame(
        {
            "id": ids.astype(float),
            "x": rng.uniform(20, 60, len(ids)),
            "state": np.array(STATES)[place],
        }
    )


def opened(df, epsilon=100, **terms):
    return df.dp.open(epsilon, **{"unit": "id", "keys": {"state": STATES}, **terms})


def test_limits_are_those_that_most_people_keep(df):
    p = opened(df)
    limits = p.suggest_limits(epsilon=20)
    assert dict(limits) == {"max_rows": 8}
    assert p.suggest_limits(epsilon=20, share=0.995)["max_rows"] == 128
    assert p.suggest_limits(epsilon=20, share=0.4)["max_rows"] == 1
    assert p.budget.spent == 20  # one release, read three times
    assert limits.table.loc[1, "people by rows"] == 1000
    assert limits.table.loc[128, "people by rows"] == 20


def test_with_groups_both_limits_come_from_one_price(df):
    p = opened(df)
    limits = p.suggest_limits("state", epsilon=50)
    largest = df.groupby(["id", "state"]).size().groupby("id").max()
    assert limits["max_rows"] == 2 ** int(np.ceil(np.log2(np.sort(largest)[int(0.95 * 2000)])))
    assert limits["max_groups"] in (2, 4)
    assert p.budget.spent == 50
    assert [part.scale for part in limits.plan.parts] == [1 / 25, 1 / 25]
    assert limits.table["people by groups"].notna().sum() == 3
    assert p.groupby("state")["x"].mean(bounds=(0, 100), epsilon=20, **limits).between(35, 45).all()
    assert limits.cost.epsilon == 50


def test_a_filter_is_part_of_the_question(df):
    p = opened(df)
    assert p.query("x > 1000").suggest_limits(epsilon=20)["max_rows"] == 1
    assert p.query("x > 1000").suggest_bounds("x", epsilon=20).found is False


def test_limits_are_words_of_a_question_and_of_open(df):
    p = opened(df)
    limits = p.suggest_limits(epsilon=20)
    assert p.count(epsilon=20, **limits) == pytest.approx(
        df.groupby("id").size().clip(upper=8).sum(), abs=9
    )
    again = opened(df, **limits)
    assert again.budget.spent == p.budget.spent
    assert again.explain.count(epsilon=1).scale == 8
    assert again.explain.count(epsilon=1, max_rows=3).scale == 3
    with pytest.raises(dpframe.SessionError, match="unit= differs"):
        df.dp.open(100, unit="state", keys={"state": STATES})


def test_a_missing_limit_names_the_way_to_find_one(df):
    p = opened(df)
    with pytest.raises(BadValue, match=r"p\.suggest_limits\(\)"):
        p.mean("x", bounds=(0, 1))
    assert p.budget.spent == 0


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_a_person_is_in_one_bin_whatever_their_rows(df, neighbors):
    p = opened(df, neighbors=neighbors, max_rows=50, max_groups=3)
    moved = 1 if neighbors == "add-remove" else 2
    for plan in (p.explain.suggest_limits("state"), p.explain.suggest_bounds("x")):
        assert {(part.l1, part.l2_squared) for part in plan.parts} == {(moved, moved)}
        assert "a person counts once" in plan.why
    assert "at most" not in p.explain.suggest_bounds("x").why


def test_bounds_enclose_the_magnitudes_of_most_people(df):
    p = opened(df)
    pair = p.suggest_bounds("x", epsilon=10)
    assert (*pair, pair.found) == (16.0, 64.0, True)
    assert isinstance(pair, tuple)
    assert 35 < p.mean("x", bounds=pair, epsilon=30, max_rows=4) < 45
    assert opened(df, bounds={"x": pair}).explain.sum("x", max_rows=1, epsilon=1).sensitivity == 64
    signs = pd.DataFrame({"x": [-3.0, 0.0, 0.25] * 200})
    assert tuple(signs.dp.open(10).suggest_bounds("x", epsilon=5)) == (-4.0, 0.25)
    whole = pd.DataFrame({"x": [0, 1] * 200})
    assert tuple(whole.dp.open(10).suggest_bounds("x", epsilon=5)) == (0.0, 1.0)


def test_one_person_with_many_rows_sets_no_bounds():
    """Nor does one who is far away: people count once, and a few of them are noise."""
    frame = pd.DataFrame({"id": [*range(500), *[999] * 5000], "x": [3.0] * 500 + [1e9] * 5000})
    assert tuple(frame.dp.open(10, unit="id").suggest_bounds("x", epsilon=2)) == (2.0, 4.0)


def test_bounds_that_were_released_are_no_declaration(df):
    p = opened(df, max_rows=2)
    pair = p.suggest_bounds("x", epsilon=10)
    p.mean("x", bounds=pair, epsilon=10)
    assert "bounds" not in set(p.declarations["what"])
    p.mean("x", bounds=(0, 99), epsilon=10)
    assert any("(0, 99)" in str(row) for row in p.declarations.to_numpy().tolist())


def test_without_people_something_comes_back_and_is_paid(df):
    p = opened(df.iloc[:0])
    limits, pair = p.suggest_limits("state", epsilon=1), p.suggest_bounds("x", epsilon=1)
    assert set(limits) == {"max_rows", "max_groups"}
    assert all(limit >= 1 for limit in limits.values())
    assert pair.found is False
    assert tuple(pair) == (0.0, 1.0)
    assert "stands for nothing" in repr(pair)
    assert p.budget.spent == 2
    assert "bounds" not in str(p.declarations)


WRONG = [
    (lambda p: p.suggest_limits(max_rows=3), BadValue),
    (lambda p: p.suggest_limits(share=0), BadValue),
    (lambda p: p.suggest_limits(share=1), BadValue),
    (lambda p: p.suggest_limits(share="most"), BadType),
    (lambda p: p.suggest_limits(keys=["a"]), BadValue),
    (lambda p: p.suggest_limits("nothing"), dpframe.UnknownColumn),
    (lambda p: p.suggest_limits("id"), dpframe.MissingKeys),
    (lambda p: p.suggest_limits(epsilon=0), BadValue),
    (lambda p: p.suggest_bounds("state"), BadType),
    (lambda p: p.suggest_bounds("nothing"), dpframe.UnknownColumn),
    (lambda p: p.suggest_bounds("x", share=0.9), BadType),
    (lambda p: p.suggest_bounds("x", epsilon=1e9), BadValue),
]


@pytest.mark.parametrize(("wrong", "error"), WRONG)
def test_errors_depend_on_arguments_only_and_charge_nothing(df, wrong, error):
    texts = set()
    for frame in (df, df.iloc[:0], df.iloc[::-1].reset_index(drop=True), df.assign(x=np.nan)):
        p = opened(frame, because="the same people in a test")
        with pytest.raises(error) as caught:
            wrong(p)
        texts.add(str(caught.value))
        assert p.budget.spent == 0
    assert len(texts) == 1


def test_of_rows_that_are_people_there_are_no_limits_to_suggest(df):
    with pytest.raises(BadValue, match="a row is a person"):
        df.dp.open(1).suggest_limits()


def test_what_comes_back_can_be_shown_and_kept(df):
    p = opened(df)
    for found in (p.suggest_limits("state", epsilon=10), p.suggest_bounds("x", epsilon=10)):
        assert "people" in repr(found)
        assert "<table" in found._repr_html_()
        again = pickle.loads(pickle.dumps(found))
        assert repr(again) == repr(found)
        assert again.plan == found.plan
        table = found.table
        table.iloc[0, 0] = -99  # a copy
        assert repr(again) == repr(found)


def test_they_can_be_planned_ahead_and_asked_within(df):
    p = opened(df)
    with p.plan_ahead() as batch:
        limits = batch.suggest_limits(epsilon=10)
        pair = batch.suggest_bounds("x", epsilon=10)
    assert dict(limits.answer) == {"max_rows": 8}
    assert tuple(pair.answer) == (16.0, 64.0)
    assert p.explain.suggest_limits(within=5).worst_error() <= 5


# The rules ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [LaplaceNoise(Fraction(20)), GaussianNoise(Fraction(900))])
def test_noise_alone_seldom_raises_a_limit_or_finds_a_magnitude(noise):
    people = np.array([400, 500, 60, 40, *[0] * 17])  # the least limit that 95 % do not exceed is 4
    several = np.repeat(people[:, None], 2000, axis=1)
    limits = [limit_of(column, noise, 0.95) for column in noise.release(several).T]
    assert np.mean(np.array(limits) > 4) <= 0.05
    assert np.mean(np.array(limits) == 1) < 0.01  # where 60 % exceed it
    empty = np.zeros((MAGNITUDES, 2000), dtype=np.int64)
    assert np.mean([bounds_of(c, noise) is not None for c in noise.release(empty).T]) <= 0.02


def test_a_threshold_without_the_number_of_bins_is_caught(monkeypatch):
    noise = LaplaceNoise(Fraction(20))
    monkeypatch.setattr(suggestions_module, "FALSE_BIN", 0.01 * MAGNITUDES)
    empty = np.zeros((MAGNITUDES, 500), dtype=np.int64)
    assert np.mean([bounds_of(c, noise) is not None for c in noise.release(empty).T]) > 0.3


def test_limits_of_groups_that_nobody_listed_are_refused_in_plain_words():
    df = pd.DataFrame({"id": [1, 1, 2], "state": ["CA", "NY", "CA"]})
    p = df.dp.open(3, delta=1e-6, unit="id")
    with pytest.raises(dpframe.MissingKeys, match="suggest_limits over 'state' needs keys"):
        p.suggest_limits("state")
    assert p.ledger.empty


# The share that bounds clip -------------------------------------------------------------------------


def costs() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    cost = np.where(rng.random(4000) < 0.1, np.nan, rng.gamma(2, 1000, 4000))
    waits = pd.to_timedelta(rng.integers(0, 90, 4000), unit="D")
    return pd.DataFrame(
        {
            "id": rng.integers(0, 700, 4000),
            "cost": cost,
            "wait": waits,
            "state": rng.choice(["CA", "NY"], 4000),
        }
    )


def shares(values: pd.Series, low: object, high: object) -> list[float]:
    known = values.dropna()
    return [(known < low).mean(), (known > high).mean()]


def test_clipped_tells_the_shares_of_the_values_beyond_the_bounds():
    df = costs()
    bounds = {"cost": (500, 3000), "wait": ("10D", "60D")}
    p = df.dp.open(1000, bounds=bounds, keys={"state": ["CA", "NY"]})
    found = p.clipped("cost", epsilon=100)
    assert list(found.index) == ["below", "above"]
    np.testing.assert_allclose(found, shares(df["cost"], 500, 3000), atol=0.005)
    ends = found.dp.interval()
    assert (ends["lower"] <= found).all()
    assert (found <= ends["upper"]).all()
    given = p.clipped("cost", bounds=(0, 9000), epsilon=100)
    np.testing.assert_allclose(given, shares(df["cost"], 0, 9000), atol=0.005)
    limits = pd.Timedelta("10D"), pd.Timedelta("60D")
    waits = p["wait"].clipped(epsilon=100)
    np.testing.assert_allclose(waits, shares(df["wait"], *limits), atol=0.005)
    pd.testing.assert_series_equal(p["cost"].clipped(epsilon=100), found)  # and free
    assert p.budget.spent == 300


def test_clipped_is_a_table_in_groups():
    df = costs()
    p = df.dp.open(1000, bounds={"cost": (500, 3000)}, keys={"state": ["CA", "NY"]})
    found = p.groupby("state")["cost"].clipped(epsilon=100)
    expected = [shares(cost, 500, 3000) for _, cost in df.groupby("state")["cost"]]
    np.testing.assert_allclose(found, expected, atol=0.005)
    assert list(found.columns) == ["below", "above"]
    pd.testing.assert_frame_equal(p.groupby("state").clipped("cost", epsilon=100), found)


def test_clipped_tells_how_many_people_a_limit_cuts():
    df = costs()
    p = df.dp.open(1000, unit="id", max_rows=4, bounds={"cost": (0, 5000)})
    sizes, totals = df.groupby("id").size(), df.groupby("id")["cost"].sum()
    np.testing.assert_allclose(
        p.groupby("id").size().clipped(epsilon=100), shares(sizes, 0, 4), atol=0.01
    )
    found = p.groupby("id")["cost"].sum().clipped(bounds=(0, 9000), epsilon=100)
    np.testing.assert_allclose(found, shares(totals, 0, 9000), atol=0.01)
    assert "left out" not in repr(p.explain.groupby("id").size().clipped(epsilon=1))
    assert repr(p.clipped("cost", epsilon=100)).endswith("of at most 4 rows a person")


def test_clipped_takes_a_tenth_of_a_share_by_default():
    p = costs().dp.open(1, queries=20, bounds={"cost": (0, 5000)})
    p.clipped("cost", bounds=(0, 1e6))
    assert p.budget.spent == pytest.approx(0.005)
    assert p.explain.clipped("cost").cost.epsilon == pytest.approx(0.005)
    assert p.explain.clipped("cost", epsilon=0.2).cost.epsilon == pytest.approx(0.2)
    assert p.explain.clipped("cost", within=0.05, n=4000).cost.epsilon > 0.005


def test_clipped_refuses_what_has_no_bounds_or_several_columns():
    p = costs().dp.open(1, keys={"state": ["CA", "NY"]})
    with pytest.raises(dpframe.MissingBounds, match="'cost' needs public bounds"):
        p.clipped("cost")
    with pytest.raises(dpframe.BadType, match="of kind text"):
        p.clipped("state")
    with pytest.raises(dpframe.BadValue, match="takes one column"):
        p.groupby("state")[["cost", "id"]].clipped()
    with pytest.raises(dpframe.UnknownColumn):
        p.clipped("nothing")
    assert p.budget.spent == 0
