"""Groups that nobody listed, of people with several rows: each accountant's noise has the shape that it declares."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


@pytest.mark.parametrize("accountant", ["pure", "gdp", "zcdp"])
@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_groups_are_found(accountant, rows):
    df = pd.DataFrame({"id": np.arange(600) // 2, "g": ["a", "b"] * 300})
    p = df.dp.open(100, 1e-6, unit="id", max_rows=rows, max_groups=2, accountant=accountant)
    assert p.groupby("g").size(epsilon=90).index.tolist() == ["a", "b"]
