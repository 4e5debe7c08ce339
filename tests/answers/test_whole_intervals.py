"""Intervals of whole numbers: their ends are whole, as wide as the noise says, and never upside down."""

import numpy as np
import pandas as pd


def test_interval_of_a_count_is_as_wide_as_its_noise_says():
    p = pd.DataFrame({"x": [1.0] * 500}).dp.open(10)
    count = p.count(epsilon=0.5)
    half = count.plan.parts[0].noise.quantile(0.95)
    assert count.interval() == (count - half, count + half)


def test_interval_of_a_count_off_fine_noise_holds_the_count():
    keys = list(range(400))
    frame = pd.DataFrame({"k": np.repeat(keys, 20), "x": 1.0})
    p = frame.dp.open(1000, bounds={"x": (0, 2)})
    counts = p.groupby("k", keys=keys)["x"].mean(epsilon=50).dp.count
    ends = counts.dp.interval()
    assert (ends["lower"] <= counts).all()
    assert (counts <= ends["upper"]).all()
