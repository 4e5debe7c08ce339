"""What pandas made of people's rows, asked by mistake: the line that is shown says the same after .dp, and is answered."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import LineageError, NoSession

LINES = [
    "df.groupby('pid').head(1).dp.count()",
    "df.sort_values('t').groupby('pid').head(1).dp.mean('cost')",
    "df.sort_values('t').drop_duplicates('pid').dp.mean('cost')",
    "df.groupby('pid')['cost'].sum().dp.mean()",
    "df.groupby(['pid']).size().dp.mean()",
    "df.groupby('pid')['cost'].max().dp.mean()",
    "df.groupby('pid').agg(total=('cost', 'sum')).dp.mean('total')",
]


@pytest.fixture
def df():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"pid": rng.integers(0, 20, 80), "t": rng.permutation(80), "cost": rng.random(80)}
    )
    frame["pid"] = frame["pid"].astype("int64")
    return frame


@pytest.mark.parametrize("typed", LINES)
def test_the_line_that_is_shown_is_answered(df, typed, tmp_path):
    p = df.dp.open(
        1000, unit="pid", max_rows=9, max_groups=1, bounds={"cost": (0, 1), "t": (0, 80)}
    )
    file = tmp_path / "typed.py"
    file.write_text(typed)
    scope = {"df": df, "pd": pd, "np": np, "__name__": "typed"}
    with pytest.raises((LineageError, NoSession)) as caught:
        eval(compile(typed, str(file), "eval"), scope)
    line = re.search(r"Write the steps after \.dp: (.*)$", str(caught.value))
    assert line is not None, str(caught.value)
    written = line[1]
    assert re.sub(r"\.dp\b", "", written).replace("df", "") == re.sub(r"\.dp\b", "", typed).replace(
        "df", ""
    )
    assert eval(written, scope) is not None
    assert p.budget.spent > 0


def test_the_order_of_rows_is_no_step_where_a_row_is_a_person(df, tmp_path):
    df.dp.open(1000)
    typed = "df.sort_values('t').query('cost > 0').dp.count()"
    file = tmp_path / "typed.py"
    file.write_text(typed)
    with pytest.raises(dpframe.DPError, match=r"df\.dp\.query\('cost > 0'\)\.count\(\)"):
        eval(compile(typed, str(file), "eval"), {"df": df, "__name__": "typed"})
