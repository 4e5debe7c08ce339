"""Everyday expressions of one row: the same text on a pandas frame and on its tracked frame gives the same answer, but for noise.

A case: id, area, code over ``df``, and ``dp`` where privacy needs another text (bounds, keys). ``tol`` is a part of the largest
value; with ``order`` false the labels are a set, with ``names`` false their name may differ.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe

pytest.importorskip(
    "pyarrow", reason="patterns that repeat are matched by RE2, which pyarrow brings"
)

CASES = json.loads(Path(__file__).with_name("expressions.json").read_text())
N = 3000
SEVERITY = pd.Series([2.0, 3.0, 4.0, 1.0], index=["asthma", "burn", "covid", "flu"])
TERMS: dict[str, Any] = {
    "bounds": {
        "age": (0, 110),
        "cost": (0, 10_000),
        "height": (100, 220),
        "weight": (30, 200),
        "admitted": ("2025-01-01", "2025-12-31"),
        "discharged": ("2025-01-01", "2026-01-31"),
    },
    "keys": {
        "sex": ["F", "M"],
        "diagnosis": ["asthma", "burn", "covid", "flu"],
        "ward": ["A", "B"],
    },
}


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    """A row for each of 3,000 people."""
    rng = np.random.default_rng(7)
    admitted = pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(N) % 365, "D")
    admitted += pd.to_timedelta(rng.integers(0, 24 * 60, N), "min")
    age = np.clip(rng.normal(50, 15, N), 20, 80).astype(int)
    last, first = rng.choice(["Smith", "Jones", "Brown"], N), rng.choice(["Ada", "Ben"], N)
    born = pd.Timestamp("2025-06-01") - pd.to_timedelta(age * 365 + rng.integers(0, 365, N), "D")
    titles = rng.choice(["Mr", "Mrs", "Dr"], N)
    return pd.DataFrame(
        {
            "age": age,
            "cost": np.where(rng.random(N) < 0.1, np.nan, np.round(rng.uniform(200, 9000, N), 2)),
            "height": np.round(np.clip(rng.normal(170, 9, N), 145, 200), 1),
            "weight": np.round(rng.uniform(45, 130, N), 1),
            "sex": rng.choice(["F", "M"], N, p=[0.55, 0.45]),
            "diagnosis": rng.choice(["asthma", "burn", "covid", "flu"], N, p=[0.1, 0.2, 0.3, 0.4]),
            "ward": pd.Series(
                rng.choice(["A", "B", "-"], N, p=[0.5, 0.3, 0.2]), dtype="str"
            ).replace("-", None),
            "smoker": rng.random(N) < 0.3,
            "admitted": admitted,
            "discharged": admitted + pd.to_timedelta(rng.integers(0, 14 * 24, N), "h"),
            "name": [f"{a}, {t}. {b}" for a, t, b in zip(last, titles, first, strict=True)],
            "zip": [f"{z:05d}" for z in rng.choice([10001, 60601, 77001, 90210], N)],
            "born": born.strftime("%Y-%m-%d"),
        }
    )


def value_of(text: str, **names: Any) -> Any:
    return eval(text, {"np": np, "pd": pd, "severity": SEVERITY, **names})


def labels(index: pd.Index[Any]) -> list[Any]:
    return [int(v) if isinstance(v, np.integer) else v for v in index.tolist()]


@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
@pytest.mark.filterwarnings("ignore")
def test_the_same_text_gives_the_same_answer(visits: pd.DataFrame, case: dict[str, Any]) -> None:
    wanted = value_of(case["code"], df=visits)
    p = visits.copy().dp.open(epsilon=1000, delta=1e-6, queries=4, because="synthetic", **TERMS)
    found = value_of(case.get("dp") or re.sub(r"\bdf\b", "p", case["code"]), p=p)
    assert p.budget.fraction > 0
    tol = case.get("tol", 0.02)
    if not isinstance(wanted, pd.Series):
        assert abs(float(found) - float(wanted)) <= tol * max(abs(float(wanted)), 0.05)
        return
    assert isinstance(found, pd.Series)
    if case.get("order", True):
        assert labels(found.index) == labels(wanted.index)
    assert Counter(map(repr, labels(found.index))) == Counter(map(repr, labels(wanted.index)))
    if case.get("names", True):
        assert (found.name, found.index.name) == (wanted.name, wanted.index.name)
    values = dict(zip(map(repr, labels(found.index)), found, strict=True))
    off = max(abs(values[repr(k)] - v) for k, v in zip(labels(wanted.index), wanted, strict=True))
    assert off <= tol * wanted.abs().max()


def test_cases_are_many_and_of_every_area() -> None:
    assert len({c["id"] for c in CASES}) == len(CASES) > 60
    assert {c["area"] for c in CASES} == {"conditions", "numpy", "dates", "text", "clean", "bands"}


@pytest.mark.parametrize("case", CASES[::4], ids=[c["id"] for c in CASES[::4]])
@pytest.mark.filterwarnings("ignore")
def test_a_source_in_parts_gives_the_same_answer(
    visits: pd.DataFrame, case: dict[str, Any]
) -> None:
    """Batches are evaluated one by one: the answers differ by their noise alone."""
    polars = pytest.importorskip("polars", reason="frames of polars are read in batches")
    text = case.get("dp") or re.sub(r"\bdf\b", "p", case["code"])
    words = {"epsilon": 1000, "delta": 1e-6, "queries": 4, "because": "synthetic", **TERMS}
    p, q = visits.copy().dp.open(**words), dpframe.open(polars.from_pandas(visits), **words)
    one, two = (value_of(text, p=each) for each in (p, q))
    wanted = value_of(case["code"], df=visits)
    size = np.abs(wanted).max() if isinstance(wanted, pd.Series) else max(abs(float(wanted)), 0.05)
    assert (
        np.max(np.abs(np.asarray(one, dtype=float) - np.asarray(two, dtype=float)))
        <= 2 * case.get("tol", 0.02) * size
    )


def test_periods_that_nobody_listed_are_found(visits: pd.DataFrame) -> None:
    frame = visits.assign(seen=visits["admitted"])  # whose range is not declared
    p = frame.dp.open(epsilon=50, delta=1e-6, queries=4, because="synthetic", **TERMS)
    found = p.groupby(p["seen"].dt.to_period("M")).size(epsilon=20)
    wanted = frame.groupby(frame["seen"].dt.to_period("M")).size()
    assert found.index.tolist() == wanted.index.tolist()
    assert (found - wanted).abs().max() < 20
