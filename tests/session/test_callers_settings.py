"""What a caller has set for numpy and for warnings makes no answer raise, whatever the cells."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from tests.internals import deaf_to_noise

SIGNALLING = np.array([0x7FF0000000000001], dtype=np.uint64).view(np.float64)
SHORT = np.array([0x7F800001], dtype=np.uint32).view(np.float32)


def frame():
    x = np.array([1e308, -1e308, np.inf, -np.inf, np.nan, 5e-324, 0.0, -0.0, 1.5, *SIGNALLING])
    n = len(x)
    with np.errstate(all="ignore"):
        return pd.DataFrame(
            {
                "id": np.arange(n) // 2,
                "x": x,
                "f": np.concatenate(
                    [np.array([3e38, 1e-45, np.nan, np.inf, 0, 1, 2, 3, 4], dtype="f4"), SHORT]
                ),
                "w": np.array(x, dtype=np.longdouble),
                "u": np.array([2**64 - 1, 0] * (n // 2), dtype="u8"),
                "i": np.array([2**63 - 1, -(2**63)] * (n // 2)),
                "t": np.array([2**62, -(2**62)] * (n // 2), dtype="M8[s]"),
                "o": pd.Series(
                    ["a", 1.5, np.inf, None, 2**1000, *SIGNALLING.tolist(), 1e308, "b", True, 0],
                    dtype=object,
                ),
            }
        )


def steps(p, name):
    x = p[name]
    p = p.assign(
        a=x * x,
        b=x / x,
        c=x // 3,
        d=x % 0,
        e=x**99,
        g=x.round(3),
        h=-x,
        k=x.astype(int),
        m=x.clip(0, 1),
    )
    p = p.assign(n=x.map({1: 2, 1e308: 3}), q=x.cut([0, 1, 1e308]))
    for column in "abcdeghkmn":
        p.sum(column, bounds=(-1, 1), epsilon=1)
    p[(x > 0) | (x == 1e308) | x.isin([0, 1e308]) | (x != p["a"])].count(epsilon=1)
    p.groupby("q").size(epsilon=1)


QUESTIONS = {
    "mean": lambda p, c: p.mean(c, bounds=(-1e300, 1e300), epsilon=1),
    "var": lambda p, c: p.var(c, bounds=(-1, 1), epsilon=1),
    "median": lambda p, c: p.median(c, bounds=(-1, 1e3), resolution=1, epsilon=1),
    "tree": lambda p, c: p.quantile(
        c, 0.5, bounds=(0, 1), resolution=0.01, method="tree", epsilon=1
    ),
    "histogram": lambda p, c: p.histogram(c, bins=[-1e308, 0, 1, 1e308], epsilon=1),
    "keys": lambda p, c: p.groupby(c, keys=[0, 1, 2**64 - 1, 0.5, None]).size(epsilon=1),
    "found keys": lambda p, c: p.unique(c, epsilon=1),
    "nunique": lambda p, c: p.nunique(c, epsilon=1),
    "bounds": lambda p, c: p.suggest_bounds(c, epsilon=1),
    "corr": lambda p, c: p[[c, "i"]].corr(bounds={c: (-1, 1), "i": (0, 2**62)}, epsilon=1),
    "describe": lambda p, c: p[[c]].describe(bounds={c: (-1, 1)}, epsilon=1),
    "steps": steps,
    "explode": lambda p, c: p.explode("o", max_rows=2, max_groups=2).sum(
        c, bounds=(0, 1), epsilon=1
    ),
    "melt": lambda p, c: p.melt(
        id_vars=["id"], value_vars=[c, "i"], max_rows=2, max_groups=2
    ).count(epsilon=1),
    "merge": lambda p, c: p.merge(pd.DataFrame({c: [0.0, 1e308], "z": [1, 2]}), on=c).count(
        epsilon=1
    ),
    "pipe": lambda p, c: p.pipe(lambda d: d, max_rows=2, max_groups=2).count(epsilon=1),
}


@pytest.mark.parametrize("column", ["x", "f", "w"])
@pytest.mark.parametrize("ask", QUESTIONS)
@pytest.mark.parametrize("people", [False, True])
def test_answers_are_given_under_every_setting(ask, column, people):
    terms = {"unit": "id", "max_rows": 2, "max_groups": 2} if people else {}
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        deaf_to_noise()
        QUESTIONS[ask](frame().dp.open(1000, delta=1e-6, **terms), column)


@pytest.mark.parametrize("column", ["x", "f", "i", "u"])
def test_reports_and_people_of_every_number(column):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        deaf_to_noise()
        p = frame().dp.open(1000, unit=column, max_rows=2, max_groups=2, neighbors="replace-one")
        p.randomize("x", bounds=(-1e300, 1e300), epsilon=1)
        p.randomize("o", keys=["a", 1.5], epsilon=1)
        p.count(epsilon=1)
        p.mean("x", bounds=(0, 1), epsilon=1)


def test_a_ledger_is_opened_under_every_setting(tmp_path):
    whole = pd.concat([frame() for _ in range(4)], ignore_index=True)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        deaf_to_noise()
        whole.dp.open(1, ledger=str(tmp_path / "l.db"), population="p")
