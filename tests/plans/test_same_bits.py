"""Answers are the same on every machine: what is made of released integers are sums of doubles in one order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe._plans.aggregates import Measured
from dpframe.mechanisms.noise import GaussianNoise

WEIGHTS = st.floats(-1e3, 1e3, allow_subnormal=False)


def in_order(weights: list[float], raw: list[int]) -> float:
    total = 0.0
    for weight, n in zip(weights, raw, strict=True):
        total += weight * float(n)
    return total


@pytest.mark.parametrize("groups", [1, 2, 17])
@given(st.data())
def test_weighted_sums_have_one_order(groups, data):
    size = data.draw(st.integers(2, 6))
    weights = data.draw(st.lists(WEIGHTS, min_size=size, max_size=size))
    raw = np.array(
        data.draw(
            st.lists(
                st.lists(st.integers(0, 2**50), min_size=groups, max_size=groups),
                min_size=size,
                max_size=size,
            )
        )
    )
    cell: Any = SimpleNamespace(constants={}, functionals={"x": tuple(weights), "y": (0.0,) * size})
    found = Measured(cell, GaussianNoise(1), raw).values({"x": 1, "y": 1})
    if sorted(weights)[-1:] != [1.0]:  # else a row of integers is the answer
        assert found.tolist() == [in_order(weights, column) for column in raw.T.tolist()]


def test_another_order_is_seen():
    rng = np.random.default_rng(1)
    cases = [(rng.normal(size=3).tolist(), rng.integers(0, 2**50, 3).tolist()) for _ in range(50)]
    assert any(in_order(w[::-1], n[::-1]) != in_order(w, n) for w, n in cases)
