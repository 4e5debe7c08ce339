"""What is typed about people with several rows: the same text on a pandas frame and on its session gives the same answer.

Noise is far below the tolerance. ``dp`` is the private text where privacy needs one more word (bounds, limits).
"""

from __future__ import annotations

import ast
import json
import linecache
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

CASES = json.loads(Path(__file__).with_name("people.json").read_text())
STATES = ["CA", "NY", "TX"]
WORDS = {
    "bounds": {"cost": (0, 1000), "days": (0, 30), "date": ("2025-01-01", "2025-12-31")},
    "keys": {"state": STATES},
}


def visits():
    """2,000 rows of 400 people, at most 10 of each, who stay in one state, shuffled, and a tenth of the costs missing."""
    rng = np.random.default_rng(4)
    size = np.clip(rng.poisson(5, 400), 1, 10)
    pid = rng.permutation(np.repeat(np.arange(400), size))
    n = len(pid)
    cost = np.round(rng.uniform(0, 1000, n), 2)
    return pd.DataFrame(
        {
            "pid": pid,
            "date": pd.Timestamp("2025-01-01")
            + pd.to_timedelta(rng.choice(364 * 24 * 60, n, replace=False), "min"),
            "cost": np.where(rng.random(n) < 0.1, np.nan, cost),
            "days": rng.integers(0, 30, n),
            "state": rng.choice(STATES, 400)[pid],
            "er": rng.random(n) < 0.3,
        }
    )


def patients():
    """A row for most of them."""
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "pid": np.arange(20, 420),
            "age": rng.integers(20, 80, 400),
            "sex": rng.choice(["F", "M"], 400),
        }
    )


class Renamed(ast.NodeTransformer):
    """The text about ``df`` and ``patients`` as one about ``p`` and ``q``."""

    names = {"df": "p", "patients": "q"}  # noqa: RUF012

    def visit_Name(self, node):
        return ast.copy_location(ast.Name(self.names.get(node.id, node.id), node.ctx), node)


def run(text, **names):
    """The value of the last expression of a text."""
    tree = ast.parse(text)
    linecache.cache["<typed>"] = (len(text), None, text.splitlines(keepends=True), "<typed>")
    last = ast.Expression(tree.body.pop().value)
    scope = {"pd": pd, "np": np, "__name__": "typed", **names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(tree, "<typed>", "exec"), scope)
        return eval(compile(last, "<typed>", "eval"), scope)


def check_alike(ours, theirs, tol):
    if isinstance(theirs, pd.Series | pd.DataFrame):
        assert type(theirs) in type(ours).__mro__
        assert list(ours.index) == list(theirs.index)
        assert list(ours.index.names) == list(theirs.index.names)
        one, other = (x.to_frame() if isinstance(x, pd.Series) else x for x in (ours, theirs))
        assert list(one.columns) == list(other.columns)
        for name in other.columns:
            most = float(other[name].abs().max())
            np.testing.assert_allclose(
                one[name].to_numpy(float), other[name].to_numpy(float), atol=tol * most + 1e-9
            )
    else:
        assert float(ours) == pytest.approx(float(theirs), rel=tol)


@pytest.mark.parametrize(
    "case", CASES, ids=[case["code"].replace("\n", "; ")[:80] for case in CASES]
)
def test_the_text_of_pandas_gives_what_pandas_gives(case):
    theirs = run(case["code"], df=visits(), patients=patients())
    p = visits().dp.open(1000, queries=4, unit="pid", max_rows=10, max_groups=3, **WORDS)
    words = {"bounds": {"age": (0, 100)}, "keys": {"sex": ["F", "M"]}}
    q = patients().dp.open(accountant=p.accountant, unit="pid", max_rows=1, max_groups=1, **words)
    text = case.get("dp") or ast.unparse(Renamed().visit(ast.parse(case["code"])))
    check_alike(run(text, p=p, q=q), theirs, case.get("tol", 0.02))
    assert p.budget.fraction > 0


def test_there_are_many_everyday_texts():
    assert len(CASES) >= 60
    assert len({case["code"] for case in CASES}) == len(CASES)
