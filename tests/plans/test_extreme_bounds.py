"""Bounds and prices at the ends of what doubles hold: refused in our words, before anything is charged, or answered."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from dpframe import BadValue
from dpframe.learn import LinearRegression
from dpframe.utilities import revenue


def opened() -> pd.DataFrame:
    return pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [0.0, 1.0, 2.0]}).dp.open(10)


def test_prices_that_have_no_grid_are_refused_for_free():
    p = opened()
    with pytest.raises(BadValue, match="largest price is below"):
        p.choose([5e-324, 1e-323], revenue("x"))
    assert not len(p.ledger)


@pytest.mark.parametrize("half", [1e160, 1e307])
def test_the_error_of_a_fit_needs_no_square_of_wide_bounds(half):
    model = opened().fit(
        LinearRegression(epsilon=1), X=["x"], y="y", bounds={"x": (-half, half), "y": (0, 2)}
    )
    assert math.isfinite(model.intercept_)
    assert "inf" not in model.plan_.told
