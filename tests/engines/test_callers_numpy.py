"""What numpy does with tiny numbers is the caller's to choose, and no answer depends on it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpframe.learn import LinearRegression


def test_numbers_of_a_plan_do_not_depend_on_the_callers_numpy():
    """The least tail of Gaussian noise underflows, and nobody's settings may make that an error."""
    df = pd.DataFrame({"x": np.arange(9) % 5.0, "y": np.arange(9) % 2})
    p = df.dp.open(1000, 1e-6, bounds={"x": (0, 5), "y": (0, 1)})
    with np.errstate(all="raise"):
        assert "95 %" in repr(p.sum("x", epsilon=20, mechanism="gaussian").plan)
        assert p.explain.histogram("x", bins=[0, 1, 5], epsilon=50, mechanism="gaussian").parts
        assert p.fit(
            LinearRegression("gradient", l2=1, max_iter=2, sample=0.5), X=["x"], y="y", epsilon=0.3
        )
