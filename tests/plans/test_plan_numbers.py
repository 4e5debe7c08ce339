"""The numbers that a plan shows follow from its mechanism: the norm it goes by, and how far a choice falls short."""

from __future__ import annotations

import math
import re

import pandas as pd
import pytest

from dpframe._statistics.order import deviations

KEYS = list("abcd")


@pytest.fixture
def p():
    frame = pd.DataFrame({"id": range(40), "g": KEYS * 10})
    return frame.dp.open(10, 1e-6, unit="id", max_rows=1, max_groups=4, keys={"g": KEYS})


def test_sensitivity_is_in_the_norm_of_the_mechanism(p):
    """One in each of four groups: 4 for Laplace noise, and the root of 4 for Gaussian noise."""
    asked = p.explain.groupby("g")
    assert asked.size(epsilon=1, mechanism="laplace").sensitivity == 4
    assert asked.size(epsilon=1, mechanism="gaussian").sensitivity == 2
    assert "sensitivity 2 (L2)" in repr(asked.size(epsilon=1, mechanism="gaussian"))


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_each_round_of_a_list_may_fall_short(p, rounds):
    """Of four candidates in so many rounds none falls further short, but with probability 0.05 (a union over all)."""
    plan = p.explain.top("g", rounds, epsilon=1)
    scale = float(plan.parts[0].noise.scale)
    assert plan.worst_error() == pytest.approx(scale * math.log(4 * rounds / 0.05))


def test_the_ranks_of_a_tree_are_an_interval_and_no_deviation():
    """With probability 0.95 no estimate is further off: nearly two deviations of the worst point, and at most four."""
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    plan = frame.dp.open(10, bounds={"x": (0, 64)}).explain.quantile(
        "x", 0.5, method="tree", epsilon=1
    )
    (ranks,) = map(float, re.findall(r"within ± ([0-9.]+) ranks", repr(plan)))
    points = int(re.findall(r"at (\d+) points", repr(plan))[0])
    one = float(deviations(points, 0.5).max()) * plan.parts[0].noise.deviation
    assert 1.9 * one <= ranks <= 4 * one
