"""The price of ``within=`` is worked out anew each time: it depends on limits, on n, and on what is left."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpframe  # noqa: F401  (registers .dp)
from tests.plans.test_prices import opened


def test_within_follows_the_limits_that_are_told_later():
    df = pd.DataFrame({"id": np.arange(1000) // 2, "x": np.linspace(0, 1, 1000)})
    p = df.dp.open(100, unit="id", max_rows=1, bounds={"x": (0, 1)})
    first = p.explain.sum("x", within=5).epsilon
    p = df.dp.open(max_rows=10)
    again = p.explain.sum("x", within=5)
    assert again.epsilon == pytest.approx(10 * first, rel=0.1)
    low, high = p.sum("x", within=5).interval()
    assert high - low <= 10


def test_within_follows_the_n_that_is_told_later():
    df = pd.DataFrame({"x": np.linspace(0, 1, 1000)})
    p = df.dp.open(100, n=100_000, bounds={"x": (0, 1)})
    first = p.explain.mean("x", within=0.05).epsilon
    p = df.dp.open(n=1000)
    again = p.explain.mean("x", within=0.05)
    assert again.epsilon == pytest.approx(100 * first, rel=0.1)
    assert again.worst_error(1000) <= 0.05


def test_within_is_free_when_it_is_repeated_whatever_is_left_by_then():
    p = opened(3, 1e-6)
    answer = p.count(within=20)
    spent = p.budget.fraction
    p.count("age", within=10)
    assert p.count(within=20) == answer
    assert len(p.ledger) == 2
    assert p.budget.fraction > spent
