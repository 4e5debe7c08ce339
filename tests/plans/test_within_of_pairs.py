"""Prices by the width of an interval: what is promised of variances and covariances is kept, and of correlations refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadValue, NotOffered

N = 20_000
BOUNDS = {"a": (0, 110), "b": (0, 50_000)}
SHAPES = {
    "in the middle": lambda r: (r.normal(55, 20, N), r.gamma(2, 2000, N)),
    "near a bound": lambda r: (r.exponential(2, N), r.exponential(500, N)),
    "at one bound": lambda r: (np.zeros(N), np.zeros(N)),
    "at the other": lambda r: (np.full(N, 110.0), np.full(N, 50_000.0)),
    "alike": lambda r: (110 * (x := r.random(N)), 50_000 * x),
}


def opened(shape: str) -> dpframe.PrivateFrame:
    a, b = SHAPES[shape](np.random.default_rng(7))
    df = pd.DataFrame({"a": a.clip(*BOUNDS["a"]), "b": b.clip(*BOUNDS["b"])})
    return df.dp.open(1000, 1e-6, bounds=BOUNDS, because="drawn anew")


@pytest.mark.parametrize("target", [500, 3000])
@pytest.mark.parametrize("shape", SHAPES)
def test_interval_of_a_covariance_is_as_wide_as_promised(shape, target):
    """Up to a hundredth, by which the noisy number of values may differ from the one that is given."""
    low, high = (found := (p := opened(shape))["a"].cov(p["b"], within=target, n=N)).interval()
    assert (high - low) / 2 <= 1.01 * target
    assert low <= found <= high


@pytest.mark.parametrize("shape", SHAPES)
def test_interval_of_a_variance_is_as_wide_as_promised(shape):
    low, high = opened(shape)["a"].var(within=5, n=N).interval()
    assert (high - low) / 2 <= 1.01 * 5


def test_promise_of_a_covariance_is_no_wider_than_its_worst_interval():
    """The twin: where the values are at a bound, the whole of it is used."""
    low, high = (p := opened("at the other"))["a"].cov(p["b"], within=3000, n=N).interval()
    assert (high - low) / 2 > 0.95 * 3000


def test_width_of_a_correlation_is_not_promised():
    p = opened("in the middle")
    asked = [
        lambda **w: p["a"].corr(p["b"], **w),
        lambda **w: p.corr(**w),
        lambda **w: p.test.correlation("a", "b", **w),
        lambda **w: p.explain.corr(**w),
    ]
    for verb in asked:
        with pytest.raises(BadValue, match=r"within=0\.1 cannot be promised of a correlation"):
            verb(within=0.1, n=N)
    assert p.budget.fraction == 0


def test_correlation_says_that_it_is_one_where_it_has_no_interval():
    p = opened("in the middle")
    with pytest.raises(NotOffered, match="a correlation has no interval of a population"):
        p["a"].corr(p["b"], epsilon=1).interval(of="population")
    with pytest.raises(NotOffered, match="a correlation has no interval of a population"):
        p[["a", "b"]].corr(epsilon=1).dp.interval(of="population")
