"""Covariances and correlations: beside pandas, within their claimed sensitivity, covered by their intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe import BadType, NotOffered
from dpframe._expr import Column
from dpframe._groups.keys import KeyBy, keys_for
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import Output
from dpframe._plans.plan import arrange
from dpframe._questions.question import Query
from dpframe._statistics.base import SQUARE_BITS, Grid, Pair
from dpframe._validate import Bounds
from dpframe.engines.pandas import PandasEngine

BOUNDS = {"x": (-2, 3), "y": (0, 10), "z": (0, 1)}
UNITS = {"add-remove": Unit("add-remove"), "replace-one": Unit("replace-one")}


def frame(nulls):
    rng = np.random.default_rng(5)
    x = rng.normal(0, 0.5, 3000).clip(-2, 3)
    df = pd.DataFrame(
        {"x": x, "y": (5 - 2 * x + rng.normal(0, 1, 3000)).clip(0, 10), "z": rng.random(3000)}
    )
    if nulls:
        df.loc[::3, "x"] = np.nan
        df.loc[::5, "z"] = np.nan
    return df


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("ddof", [0, 1])
def test_covariances_are_those_of_pandas_over_the_same_pairs(nulls, ddof):
    df = frame(nulls)
    answer = df.dp.open(1000, bounds=BOUNDS).cov(ddof=ddof, epsilon=900)
    pd.testing.assert_frame_equal(
        pd.DataFrame(answer), df.cov(ddof=ddof), atol=0.01, rtol=0, check_flags=False
    )


@pytest.mark.parametrize("nulls", [False, True])
def test_correlations_are_those_of_pandas_on_rows_without_nulls(nulls):
    df = frame(nulls)
    answer = df.dp.open(1000, bounds=BOUNDS).dropna().corr(epsilon=900)
    pd.testing.assert_frame_equal(
        pd.DataFrame(answer), df.dropna().corr(), atol=0.02, rtol=0, check_flags=False
    )
    assert answer.equals(answer.T)


def test_correlations_after_covariances_are_free_and_cost_one_price():
    p = frame(False).dp.open(1, bounds=BOUNDS)
    p[["x", "y"]].cov(epsilon=1)
    found = p[["x", "y"]].corr(epsilon=1)
    assert len(p.ledger) == 1
    assert p.budget.remaining == 0
    assert len(found.dp.plan.parts) == 3


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_intervals_cover(delta):
    df = frame(False)[["x", "y"]]
    exact = {"cov": df.cov().to_numpy(), "corr": df.corr().to_numpy()}
    p = df.dp.open(500, delta, bounds={"x": (-2, 3), "y": (0, 10)})
    inside, width = {verb: np.zeros((2, 2)) for verb in exact}, dict.fromkeys(exact, 0.0)
    for draw in range(100):
        p.cov(epsilon=1, fresh=draw > 0)
        for verb, truth in exact.items():
            ends = getattr(p, verb)(epsilon=1).dp.interval().to_numpy()
            inside[verb] += (ends[:, ::2] <= truth + 1e-4) & (truth - 1e-4 <= ends[:, 1::2])
            width[verb] += (ends[0, 3] - ends[0, 2]) / 100
    assert len(p.ledger) == 100
    for verb in exact:  # 95 are expected; 82 or fewer have a chance of one in 10**5
        assert (inside[verb] > 82).all()
    assert width["cov"] < 0.8
    assert width["corr"] < 1


# Sensitivity --------------------------------------------------------------------------------------------------

CELL = st.sampled_from([-2.0, 3.0, 0.5, np.nan, np.inf, -np.inf, 1e300]) | st.floats(-3, 11)
ROW = st.tuples(CELL, CELL, st.sampled_from(["a", "b", "other", None]), st.booleans())


def integers(rows, statistic, grouped, filtered):
    df = pd.DataFrame(rows, columns=["x", "y", "k", "f"]).astype(
        {"x": float, "y": float, "k": str, "f": bool}
    )
    df["k"] = pd.Series([r[2] for r in rows], dtype="str")
    leaf = {"k": Column(2, "k", "text", True), "f": Column(3, "f", "bool", False)}
    by = (KeyBy(leaf["k"], keys_for(["a", "b"], leaf["k"], "k")),) if grouped else ()
    query = Query((Output("n", "size"),), leaf["f"] if filtered else None, by)
    return statistic.integers(PandasEngine(df).reduce(query, set(statistic.primitives))).ravel()


def statistic_of(x=(-2, 3), y=(0, 10)):
    leaves = Column(0, "x", "number", True), Column(1, "y", "number", True)
    grids = [Grid.for_width(Bounds(*map(float, b)), SQUARE_BITS) for b in (x, y)]
    return Pair(leaves[0], grids[0], leaves[1], grids[1])


def moved(one, two):
    difference = [int(a) - int(b) for a, b in zip(one, two, strict=True)]
    return sum(map(abs, difference)), sum(d * d for d in difference)


@settings(max_examples=60, deadline=None, database=None)
@given(
    st.lists(ROW, max_size=6), ROW, ROW, st.sampled_from(sorted(UNITS)), st.booleans(), st.booleans(),
    st.sampled_from([((-2, 3), (0, 10)), ((1, 1), (0, 1e-3)), ((0, 2.0**70), (-5, -4))]),
)  # fmt: skip
def test_one_person_moves_the_integers_by_at_most_the_claim(
    rows, person, other, relation, grouped, filtered, bounds
):
    statistic, unit = statistic_of(*bounds), UNITS[relation]
    one = integers([*rows, person], statistic, grouped, filtered)
    two = integers([*rows, other] if unit.replaces else rows, statistic, grouped, filtered)
    claim = statistic.sensitivity(unit, grouped)
    l1, l2_squared = moved(one, two)
    assert l1 <= claim.l1
    assert l2_squared <= claim.l2_squared
    assert (one >= 0).all()


@pytest.mark.parametrize("relation", UNITS)
def test_the_claim_is_reached_so_half_of_it_would_fail(relation):
    statistic, unit = statistic_of(), UNITS[relation]
    low, high = (-2.0, 0.0, "a", True), (3.0, 10.0, "a", True)
    two = integers([high] if unit.replaces else [], statistic, False, False)
    assert moved(integers([low], statistic, False, False), two) == statistic.sensitivity(
        unit, False
    )


@settings(max_examples=60, deadline=None, database=None)
@given(st.lists(ROW, max_size=8))
def test_the_integers_are_the_definition(rows):
    s = statistic_of()
    v, w = s.grid.width, s.other_grid.width
    expected = [0, 0, 0, 0]
    for x, y, _, _ in rows:
        if x == x and y == y:
            a = round(min(max(x, -2), 3) * 2**s.grid.exponent) - s.grid.low
            b = round(min(max(y, 0), 10) * 2**s.other_grid.exponent) - s.other_grid.low
            for i, part in enumerate(((v - a) * (w - b), a * (w - b), (v - a) * b, a * b)):
                expected[i] += part
    assert integers(rows, s, False, False).tolist() == expected


def test_a_million_rows_in_blocks_are_exact():
    rng = np.random.default_rng(3)
    df = pd.DataFrame({"x": rng.uniform(-2, 3, 10**6), "y": rng.uniform(0, 10, 10**6)})
    s = statistic_of()
    one = s.integers(PandasEngine(df).reduce(Query((Output("n", "size"),)), set(s.primitives)))
    a = np.rint(df["x"].to_numpy() * 2.0**s.grid.exponent).astype(np.int64) - s.grid.low
    b = np.rint(df["y"].to_numpy() * 2.0**s.other_grid.exponent).astype(np.int64) - s.other_grid.low
    v, w = s.grid.width, s.other_grid.width
    parts = ((v - a) * (w - b), a * (w - b), (v - a) * b, a * b)
    assert one.ravel().tolist() == [int(p.sum()) for p in parts]


def test_a_count_beside_a_covariance_does_not_read_its_vector():
    x, y = Column(0, "x", "number", True), Column(1, "y", "number", True)
    pair = Bounds(0.0, 1.0)
    query = Query(
        (Output("c", "cov", x, pair, other=y, other_bounds=pair), Output("n", "count", x))
    )
    assert [serves for _, serves in arrange(query, Unit(), None)] == [[1], [0]]


@pytest.mark.parametrize("ddof", [0, 1])
def test_a_covariance_of_few_rows_has_the_divisor_of_pandas(ddof):
    df = pd.DataFrame({"x": [0.0, 0.0, 1.0, 1.0], "y": [0.0, 0.0, 1.0, 1.0]})
    p = df.dp.open(1000, bounds={"x": (0, 1), "y": (0, 1)})
    found = p.cov(ddof=ddof, epsilon=900)
    assert found.loc["x", "y"] == pytest.approx(df.cov(ddof=ddof).loc["x", "y"], abs=0.02)


def test_what_a_matrix_cannot_be_asked_is_refused():
    p = frame(False).dp.open(1, bounds=BOUNDS)
    with pytest.raises(NotOffered, match="ranks"):
        p.corr(method="spearman")
    with pytest.raises(BadType, match="min_periods"):
        p.cov(min_periods=30)
    assert p.ledger.empty


def test_bounds_of_both_columns_are_on_record():
    p = frame(False).dp.open(10)
    p[["x", "y"]].cov(bounds={"x": (-2, 3), "y": (0, 10)}, epsilon=1)
    words = " ".join(p.declarations["value"])
    assert "x: (-2, 3)" in words
    assert "y: (0, 10)" in words


@pytest.mark.parametrize("epsilon", [1e-15, 1e-3, 20])
@pytest.mark.parametrize(
    "bounds", [(1, 1), (0, 2.0**70), (1e-250, 1e-240), (-1e150, 1e150)], ids=str
)
def test_charged_matrix_is_answered_whatever_the_cells_and_bounds(bounds, epsilon):
    wild = pd.DataFrame(
        {"x": [0.0, np.inf, -np.inf, np.nan, 1e308, -1e308], "y": [1, 2, 3, 4, 5, 6]}
    )
    p = wild.dp.open(1000, bounds={"x": bounds, "y": (0, 3)})
    for ends in (p.cov(epsilon=epsilon).dp.interval(), p.corr(epsilon=epsilon).dp.interval()):
        assert not ends.isna().any(axis=None)
        low, high = ends.to_numpy()[:, ::2], ends.to_numpy()[:, 1::2]
        assert (low <= high).all()
