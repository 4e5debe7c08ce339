"""What is typed on frames every day: the same text on a pandas frame and on its session gives the same answer.

Noise is far below the tolerance. ``dp`` is the private text where privacy needs one more word (bounds, keys); ``pandas`` the
other text where only dpframe has the form.
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

CASES = json.loads(Path(__file__).with_name("frames.json").read_text())
STATES = ["CA", "NY", "TX"]
YEAR = ("2025-01-01", "2025-12-31")
REGIONS = pd.DataFrame({"state": STATES, "tax": [8.5, 8.0, 6.5]})


def rows():
    """2,000 people with a row each, and a share of all values at either end."""
    rng, n = np.random.default_rng(1), 2000
    height = np.round(np.clip(rng.normal(170, 9, n), 145, 200), 1)
    cost = np.where(rng.random(n) < 0.1, np.nan, np.round(rng.uniform(0, 9000, n), 2))
    return pd.DataFrame(
        {
            "age": rng.integers(20, 81, n),
            "cost": cost,
            "height": height,
            "weight": np.round(np.clip(height - 100 + rng.normal(0, 8, n), 40, 130), 1),
            "state": pd.Categorical(rng.choice(STATES, n)),
            "sex": rng.choice(["F", "M"], n),
            "ward": pd.Series(rng.choice(["A", "B", "-"], n), dtype="str").replace("-", None),
            "name": rng.choice(["Smith, Ada", "Jones, Ben"], n),
            "zip": rng.choice(["10001", "60601"], n),
        }
    )


def times():
    """2,000 events of one year."""
    rng, n = np.random.default_rng(2), 2000
    t = pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 365 * 24 * 60, n), "min")
    value = np.round(rng.uniform(0, 100, n), 2)
    return pd.DataFrame({"t": t, "value": value, "sensor": rng.choice(["a", "b"], n)})


SETUPS = {
    "rows": (
        rows,
        {
            "bounds": {
                "age": (0, 110),
                "cost": (0, 10_000),
                "height": (100, 220),
                "weight": (30, 200),
            },
            "keys": {"state": STATES, "sex": ["F", "M"], "ward": ["A", "B"]},
        },
    ),
    "times": (times, {"bounds": {"t": YEAR, "value": (0, 100)}, "keys": {"sensor": ["a", "b"]}}),
}


class Renamed(ast.NodeTransformer):
    """The text about ``df`` as one about ``p``."""

    def visit_Name(self, node):
        return ast.copy_location(ast.Name("p", node.ctx), node) if node.id == "df" else node


def run(text, **names):
    """The value of the last expression of a text."""
    tree = ast.parse(text)
    linecache.cache["<typed>"] = (len(text), None, text.splitlines(keepends=True), "<typed>")
    last = ast.Expression(tree.body.pop().value)
    scope = {"pd": pd, "np": np, "regions": REGIONS, "__name__": "typed", **names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(tree, "<typed>", "exec"), scope)
        return eval(compile(last, "<typed>", "eval"), scope)


def check_alike(ours, theirs, case):
    compare, tol = case.get("compare"), case.get("tol", 0.01)
    if compare == "shape":
        assert isinstance(ours, type(theirs))
        assert len(ours) == len(theirs)
        assert list(getattr(ours, "columns", [])) == list(getattr(theirs, "columns", []))
        assert "made-up rows" in repr(ours)
    elif compare in ("plain", "list"):
        assert ours == theirs
    elif compare == "plainseries":
        pd.testing.assert_series_equal(ours, theirs)
    elif compare == "tuple":
        assert ours[0] == theirs[0]
        assert ours[1] == pytest.approx(theirs[1], rel=tol)
    elif isinstance(theirs, pd.Series):
        assert isinstance(ours, pd.Series)
        assert ours.name == theirs.name
        check_labels(ours.index, theirs.index)
        np.testing.assert_allclose(
            ours.to_numpy(float),
            theirs.to_numpy(float),
            atol=tol * float(theirs.abs().max()) + 1e-9,
        )
    elif isinstance(theirs, pd.DataFrame):
        assert isinstance(ours, pd.DataFrame)
        check_labels(ours.columns, theirs.columns)
        check_labels(ours.index, theirs.index)
        for name in theirs.columns:
            most = float(theirs[name].abs().max())
            np.testing.assert_allclose(
                ours[name].to_numpy(float), theirs[name].to_numpy(float), atol=tol * most
            )
    else:
        assert pd.api.types.is_number(ours)
        assert float(ours) == pytest.approx(float(theirs), rel=tol)


def check_labels(ours, theirs):
    assert list(ours) == list(theirs)
    assert list(ours.names) == list(theirs.names)


@pytest.mark.parametrize(
    "case", CASES, ids=[case["code"].replace("\n", "; ")[:70] for case in CASES]
)
def test_the_text_of_pandas_gives_what_pandas_gives(case):
    make, terms = SETUPS[case["setup"]]
    theirs = run(case.get("pandas", case["code"]), df=make())
    df = make()
    p = df.dp.open(1000, delta=1e-6, queries=4, **terms)
    text = case.get("dp") or ast.unparse(Renamed().visit(ast.parse(case["code"])))
    check_alike(run(text, p=p), theirs, case)
    assert (p.budget.fraction == 0) == bool(case.get("free"))


def test_there_are_many_everyday_texts():
    assert len(CASES) >= 100
    assert len({case["code"] for case in CASES}) == len(CASES)


def test_means_of_a_row_lie_between_the_widest_bounds():
    df = pd.DataFrame(
        {"a": [0.0, 10.0, None] * 50, "b": [100.0, 90.0, None] * 50, "c": [None, 1.0, None] * 50}
    )
    p = df.dp.open(1000, bounds={"a": (0, 10), "b": (80, 100), "c": (0, 1)})
    mean = p.mean(axis=1)
    assert mean._expr.bounds(p._session.bounds) == (0, 100)
    assert mean._expr.nullable
    assert mean.count(epsilon=300) == df.mean(axis=1).count()
    assert float(mean.sum(epsilon=300)) == pytest.approx(df.mean(axis=1).sum(), rel=0.01)


def test_values_set_by_loc_are_those_of_the_rows_where_the_condition_holds():
    df = rows()
    p = df.dp.open(1000, bounds={"age": (0, 110)})
    p.loc[p["age"] > 65, "age"] = 0
    df = df.copy()
    df.loc[df["age"] > 65, "age"] = 0
    assert float(p["age"].mean(epsilon=900)) == pytest.approx(df["age"].mean(), rel=0.01)


def test_texts_that_are_split_are_exploded():
    df = pd.DataFrame({"codes": ["a;b", "b", None] * 100})
    p = df.dp.open(1000)
    q = p.assign(code=p["codes"].str.split(";")).explode("code", max_rows=2, max_groups=2)
    counts = q.value_counts("code", keys=["a", "b"], epsilon=400)
    wanted = df.assign(code=df["codes"].str.split(";")).explode("code")["code"]
    assert dict(counts) == dict(wanted.value_counts())
    assert abs(q.count(epsilon=400) - len(wanted)) <= 2
    with pytest.raises(TypeError, match="another expression"):
        p.assign(code=p["codes"].str.lower()).explode("code")
