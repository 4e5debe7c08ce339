"""Quantiles, medians, and what lies near the least and the greatest value: answers, shapes, prices, refusals."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, BadValue, BudgetError, MissingBounds
from dpframe._answers.accessor import Answer
from dpframe._statistics.order import LEAF_CEILING, read_quantile

MUCH = 100  # noise is a fraction of a rank
N = 999


def frame():
    rng = np.random.default_rng(5)
    data = pd.DataFrame(
        {
            "age": rng.permutation(np.arange(N) % 100),
            "cost": rng.permutation(np.linspace(0, 1000, N)),
            "score": pd.array(rng.permutation(np.arange(N) % 11 - 5), dtype="Int64"),
            "ok": rng.permutation(np.arange(N) % 10 < 7),
            "state": np.where(np.arange(N) % 3 == 0, "NY", "CA"),
        }
    )
    data.loc[::7, "score"] = pd.NA
    return data


TERMS = {
    "bounds": {"age": (0, 110), "cost": (0, 1000), "score": (-5, 5)},
    "keys": {"state": ["NY", "WA", "CA"]},
}


@pytest.fixture
def p():
    return frame().dp.open(1000, accountant="pure", **TERMS)


# Answers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["choose", "tree"])
@pytest.mark.parametrize("q", [0, 0.01, 0.25, 0.5, 1 / 3, 0.99, 1])
@pytest.mark.parametrize("column", ["age", "cost", "score"])
def test_quantile_has_as_many_values_below_and_above_it_as_it_should(p, column, q, method):
    answer = p.quantile(column, q, epsilon=MUCH, method=method)
    step = 0.25 if column == "cost" else 0  # rounding to the grid, half a step
    values = frame()[column].dropna().astype(float)
    n, slack = len(values), 8
    assert (values < answer - step).sum() <= q * n + slack
    assert (values > answer + step).sum() <= (1 - q) * n + slack
    assert isinstance(answer, float)


def test_names_are_quantiles_and_the_same_question_is_free(p):
    first = p.median("age", epsilon=MUCH)
    assert p.quantile("age", 0.5, epsilon=MUCH) == p["age"].median(epsilon=MUCH) == first
    assert p["age"].quantile(epsilon=MUCH) == first
    assert len(p.ledger) == 1
    assert p.min("age", epsilon=MUCH) == p.quantile("age", 0.01, epsilon=MUCH)
    assert p["age"].max(epsilon=MUCH) == p.max("age", q=0.99, epsilon=MUCH)
    assert len(p.ledger) == 3


def test_whole_columns_are_answered_in_whole_numbers_and_bools_too(p):
    assert p.median("age", epsilon=0.01).is_integer()
    assert p.median("ok", epsilon=MUCH) == 1
    assert p.quantile("ok", 0.1, epsilon=MUCH) == 0
    assert (p["age"] > 90).median(epsilon=MUCH) == 0


def test_ties_do_no_harm():
    tied = pd.DataFrame({"x": np.repeat([0.25, 0.75], [60_000, 40_000])})
    p = tied.dp.open(1000, bounds={"x": (0, 1)})
    for method in ("choose", "tree"):
        found = p.quantile("x", [0.1, 0.3, 0.5, 0.7, 0.9], epsilon=5, method=method)
        assert found.tolist() == [0.25, 0.25, 0.25, 0.75, 0.75]


def test_an_empty_frame_answers_something_within_the_bounds():
    p = frame().iloc[:0].dp.open(1000, **TERMS)
    assert 0 <= p.median("age", epsilon=1) <= 110
    wide = p.quantile("age", 0.5, method="tree", epsilon=1)
    assert wide.interval() == (0, 110)
    groups = p.groupby("state")["age"].median(epsilon=1)
    assert groups.between(0, 110).all()
    assert p.median("age", bounds=(4, 4), epsilon=1) == 4


@pytest.mark.parametrize("method", ["choose", "tree"])
def test_several_levels_are_one_price_and_in_order_whatever_the_noise(p, method):
    levels = [0.9, 0.1, 0.5, 0.5]
    found = p.quantile("cost", levels, epsilon=0.01, method=method)
    assert found.index.tolist() == levels
    assert found.name == "cost"
    assert found.loc[0.1] <= found.iloc[2] <= found.loc[0.9]
    assert found.iloc[2] == found.iloc[3]
    assert len(p.ledger) == 1


def test_a_condition_and_an_expression_may_stand_in_it(p):
    assert abs(p.query("age >= 50").median("age", epsilon=MUCH) - 74) <= 2
    assert abs((p["age"] * 2).median(epsilon=MUCH) - 99) <= 4


# Shapes --------------------------------------------------------------------------------------------------------


def test_groups_have_the_shapes_of_pandas(p):
    data = frame()
    data["score"] = data["score"].astype(float)
    groups, wanted = p.groupby("state"), data.groupby("state")
    for private, plain in [
        (groups["age"].median(epsilon=MUCH), wanted["age"].median()),
        (groups.median("age", epsilon=MUCH), wanted["age"].median()),
        (groups["age"].quantile(0.9, epsilon=MUCH), wanted["age"].quantile(0.9)),
        (groups["age"].quantile([0.1, 0.9], epsilon=MUCH), wanted["age"].quantile([0.1, 0.9])),
        (
            groups.quantile("age", [0.1, 0.9], epsilon=MUCH, method="tree"),
            wanted["age"].quantile([0.1, 0.9]),
        ),
        (groups[["age", "cost"]].median(epsilon=MUCH), wanted[["age", "cost"]].median()),
        (groups["cost"].min(epsilon=MUCH), wanted["cost"].quantile(0.01)),
        (groups["cost"].max(epsilon=MUCH), wanted["cost"].quantile(0.99)),
    ]:
        assert isinstance(private, type(plain))
        assert private.index.names == plain.index.names
        listed = private[private.index.get_level_values(0) != "WA"]
        assert listed.sort_index().sub(plain).abs().max(axis=None) < 5
        if isinstance(plain, pd.Series):
            assert private.name == plain.name
    assert groups["age"].median(epsilon=MUCH).index.tolist() == ["NY", "WA", "CA"]


def test_several_keys_and_several_columns(p):
    both = p.groupby(["state", "ok"])["age"].quantile([0.25, 0.75], epsilon=MUCH)
    assert both.index.names == ["state", "ok", None]
    assert len(both) == 12
    assert (both.unstack()[0.25] <= both.unstack()[0.75]).all()
    assert p[["age", "cost"]].median(epsilon=MUCH).index.tolist() == ["age", "cost"]


def test_agg_takes_a_median_of_a_selected_column_as_the_verb_does(p):
    alone = p.groupby("state")["age"].median(epsilon=MUCH)
    pd.testing.assert_series_equal(p.groupby("state")["age"].agg("median", epsilon=MUCH), alone)
    many = p.groupby("state")[["age"]].agg("median", epsilon=MUCH)
    assert many["age"].tolist() == alone.tolist()


def test_agg_takes_a_median_beside_sums_of_laplace_noise(p):
    found = p.groupby("state").agg(middle=("age", "median"), n=("age", "size"), epsilon=MUCH)
    assert found.columns.tolist() == ["middle", "n"]
    assert found.loc["NY", "n"] == 333
    plan = p.explain.groupby("state").agg(middle=("age", "median"), n=("age", "size"), epsilon=1)
    assert [part.noise.name for part in plan.parts] == [
        "laplace",
        "noisy-max",
        "laplace",
    ]
    assert "shared by 2" in plan.why
    assert "1/16 of the price of a choice counts" in plan.why


# Plans, prices and intervals ---------------------------------------------------------------------------------------


def test_the_plan_tells_ranks_and_within_counts_them(p):
    plan = p.explain.median("age", within=4)
    assert plan.worst_error() == pytest.approx(4, rel=1e-3)
    assert plan.error() is None
    assert plan.sensitivity == 1
    assert "at most 4 values too many lie below" in repr(plan)
    tree = p.explain.quantile("age", 0.5, within=30, method="tree")
    assert tree.worst_error() == pytest.approx(30, rel=1e-3)
    assert "within ± 30 ranks" in repr(tree)
    assert tree.mechanism == "laplace"
    with pytest.raises(BadValue, match="cannot tell"):
        p.explain.groupby("state").agg(m=("age", "median"), n=("age", "size"), within=5)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_sensitivities_are_those_of_the_page(neighbors):
    p = frame().dp.open(1000, neighbors=neighbors, **TERMS).explain
    swap = neighbors == "replace-one"
    assert p.median("age").sensitivity == (2 if swap else 1)
    assert p.max("age").sensitivity == (2 if swap else pytest.approx(1.98))
    assert p.groupby("state")["age"].median().sensitivity == (2 if swap else 1)
    assert p.groupby("state")["age"].max().sensitivity == pytest.approx(3.96 if swap else 1.98)
    assert p.quantile("age", [0.25, 0.5, 0.75]).sensitivity == (6 if swap else 4)
    assert p.quantile("age", 0.5, method="tree").sensitivity == (
        4 if swap else 2
    )  # 111 and 7 nodes


def test_many_levels_are_read_off_a_tree_which_takes_gaussian_noise_too():
    p = frame().dp.open(10, 1e-6, **TERMS).explain
    assert "levels" in p.quantile("age", np.arange(1, 9) / 10).parts[0].statistic
    many = p.quantile("age", np.arange(1, 10) / 10)
    assert "tree" in many.cells[0].aggregate
    assert many.mechanism == "gaussian"
    with pytest.raises(BadValue, match="own mechanism"):
        p.median("age", mechanism="gaussian")


@pytest.mark.parametrize("q", [0, 0.01, 0.25, 0.5, 0.99, 1])
def test_a_choice_has_an_interval_around_the_quantile(p, q):
    answer = p.quantile("age", q, epsilon=MUCH)
    low, high = answer.interval()
    assert low <= answer <= high <= low + (4 if q not in (0, 1) else 20)
    assert low <= frame()["age"].quantile(q, interpolation="lower") <= high
    assert (answer.lower, answer.upper) == (low, high)
    assert answer.interval(0.5)[0] >= low
    assert "±" in repr(answer)
    assert "95 % interval" in answer._repr_html_()
    groups = p.groupby("state")["age"].quantile([q], epsilon=MUCH)
    ends = groups.dp.interval()
    assert ends.index.equals(groups.index)
    widths = (ends["upper"] - ends["lower"]).to_numpy()
    assert widths[[0, 2]].max() <= 30
    assert widths[1] == 110  # of no value nothing is known
    assert groups.dp.reliable.tolist() == [True, False, True]


def test_the_interval_of_an_extreme_has_the_bound_for_an_end(p):
    """Beyond the 1 % quantile lie few values, so that noise hides where they end."""
    least, greatest = p.min("cost", epsilon=2), p.max("cost", epsilon=2)
    assert least.interval()[0] == 0
    assert greatest.interval()[1] == 1000
    assert least.interval()[1] < 300
    assert greatest.interval()[0] > 700


def test_a_tree_has_intervals_in_the_shape_of_its_answer(p):
    one = p.quantile("age", 0.5, method="tree", epsilon=1)
    low, high = one.interval()
    assert low <= one <= high
    assert one.interval(0.5)[0] >= low
    several = p.groupby("state")["age"].quantile([0.1, 0.9], method="tree", epsilon=1)
    table = Answer(several, several.attrs["dpframe_receipt"]).interval()
    assert table.index.equals(several.index)
    assert ((table["lower"] <= several) & (several <= table["upper"])).all()
    assert (table.loc["WA", "upper"] - table.loc["WA", "lower"]).min() > 50
    flat = p.quantile("age", [0.1, 0.9], method="tree", epsilon=1)
    assert flat.dp.interval().index.tolist() == [0.1, 0.9]


def test_answers_and_receipts_survive_a_pickle_and_a_change_is_seen(p):
    answer = pickle.loads(pickle.dumps(p.median("age", epsilon=1)))
    assert answer.plan.cells[0].aggregate == "quantile"
    several = p.quantile("age", [0.1, 0.9], epsilon=1)
    assert json.loads(several.attrs["dpframe_receipt"])["shape"] == "levels"
    assert several.dp.plan.epsilon == 1
    with pytest.raises(BadValue, match="changed"):
        (several**2).dp.plan  # noqa: B018


@pytest.mark.parametrize("q", [0.1, 0.5, 0.8])
def test_a_distribution_that_noise_has_bent_is_read_alike_from_both_ends(q):
    """Values mirrored, with the mirrored level, have the mirrored quantile: neither end is favoured."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        counts = rng.normal(1, 3, 12)
        while counts.sum() <= 0:
            counts = rng.normal(1, 3, 12)
        forth = read_quantile(np.cumsum(counts)[:, None], q)[0]
        back = read_quantile(np.cumsum(counts[::-1])[:, None], 1 - q)[0]
        assert forth == 11 - back


def test_a_batch_and_a_resolution(p):
    with p.plan_ahead() as batch:
        place = batch.quantile("cost", [0.5], epsilon=MUCH, resolution=100)
    assert place.answer.iloc[0] in (448, 512)  # 64 is the power of two below 100
    coarse = p.explain.median("cost", resolution=100, epsilon=1)
    assert "17 points, 64 apart" in coarse.parts[0].statistic
    assert "1001 points, 1 apart" in p.explain.median("cost", resolution=1).parts[0].statistic
    assert p.median("cost", resolution=1e-2, epsilon=MUCH) == pytest.approx(500, abs=3)


# Refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "error", "match"),
    [
        (lambda p: p.quantile("age", -0.1), BadValue, "lie in"),
        (lambda p: p.quantile("age", [0.5, 1.5]), BadValue, "lie in"),
        (lambda p: p.quantile("age", float("nan")), BadValue, "finite"),
        (lambda p: p.quantile("age", []), BadValue, "nothing is asked"),
        (lambda p: p.quantile("age", True), BadType, "bool"),
        (lambda p: p.quantile("age", "0.5"), BadType, "number"),
        (lambda p: p.quantile("age", pd.Series([0.5])), BadType, "Series"),
        (lambda p: p.quantile("age", 0.5, candidates=[1]), BadValue, "no candidates"),
        (lambda p: p.quantile("age", 0.5, method="linear"), BadValue, "choose"),
        (lambda p: p.quantile("state", 0.5), BadType, "kind text"),
        (lambda p: p.assign(name=p["state"]).quantile(q=[0.5, 0.6]), BadType, "numeric_only"),
        (lambda p: p.assign(name=p["state"]).groupby("state").median(), BadType, "numeric_only"),
        (lambda p: p.max("age", q=[0.9]), BadType, "one number"),
        (lambda p: p.median("age", resolution=0), BadValue, "positive"),
        (lambda p: p.median("age", resolution="fine"), BadType, "number"),
        (lambda p: p.median("cost", resolution=2**-20), BadValue, "coarser resolution"),
        (
            lambda p: p.quantile("cost", 0.5, resolution=2**-20, method="tree"),
            BadValue,
            "coarser resolution",
        ),
        (lambda p: p.median("age", episilon=1), BadType, "epsilon"),
        (lambda p: p.assign(z="cost * 2").median("z", bounds=(1, 0)), BadValue, "reversed"),
        (lambda p: p.groupby("state").agg(m=("age", "first")), BadValue, "no private aggregate"),
        (
            lambda p: p.quantile("age", 0.5, method="tree", mechanism="gaussian"),
            BudgetError,
            "delta",
        ),
    ],
)
def test_arguments_that_cannot_be_are_refused_and_charge_nothing(p, ask, error, match):
    with pytest.raises(error, match=match):
        ask(p)
    assert len(p.ledger) == 0


def test_bounds_are_needed_and_groups_times_points_have_a_ceiling():
    p = pd.DataFrame({"x": [1.0], "k": [1]}).dp.open(10)
    with pytest.raises(MissingBounds):
        p.median("x")
    groups = p.groupby("k", keys=range(LEAF_CEILING // 2**11 + 1))["x"]
    for method in ("choose", "tree"):
        with pytest.raises(BadValue, match="16777216"):
            groups.quantile(0.5, (0, 1), method=method)
        with pytest.raises(BadValue, match="16777216"):
            groups.quantile([0.5], bounds=(0, 1), method=method)
    assert groups.quantile(0.5, bounds=(0, 1), resolution=0.1, epsilon=1).between(0, 1).all()
    assert len(p.ledger) == 1
