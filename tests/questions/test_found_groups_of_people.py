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


def test_interval_is_never_upside_down_and_marks_noise():
    """Groups that their people show, whose noisy numbers of rows may be below zero."""
    rng = np.random.default_rng(5)
    df = pd.DataFrame(
        {"id": rng.integers(0, 3000, 20_000), "g": [f"g{i}" for i in rng.integers(0, 200, 20_000)]}
    )
    p = df.dp.open(60, 1e-7, unit="id", max_rows=20, max_groups=25)
    sizes = p.groupby("g").size(epsilon=0.75)
    ends, outside = sizes.dp.interval(), sizes < 0
    assert outside.sum() > 5
    assert (ends.lower <= ends.upper).all()
    assert (sizes < ends.lower)[outside].all()
    assert not sizes.dp.reliable[outside].any()
    assert all(line.endswith("?") for line in repr(sizes).splitlines() if " -" in line)
