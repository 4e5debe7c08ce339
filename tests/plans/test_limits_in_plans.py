"""Limits of a person stand beside the numbers they shape; and names of outputs that are words of a price too."""

from __future__ import annotations

import pandas as pd
import pytest


@pytest.fixture
def p():
    df = pd.DataFrame(
        {"id": [1, 1, 2, 3], "state": ["CA", "NY", "CA", "CA"], "cost": [10.0, 20.0, 30.0, 40.0]}
    )
    return df.dp.open(
        1000, unit="id", max_rows=8, max_groups=1, bounds={"cost": (0, 100)}, keys={"state": ["CA", "NY"]}
    )


def test_plans_and_answers_tell_the_limits(p):
    text = "a person counts for at most 8 rows"
    assert f"limits  {text}\n" in repr(p.explain.count())
    assert text in p.explain.count()._repr_html_()
    assert text in p.count(epsilon=1)._repr_html_()
    assert p.explain.groupby("state").size().limits == f"{text} in each of at most 1 group"
    assert p.explain.count(max_rows=1).limits == "a person counts for at most 1 row"


def test_the_frame_shows_unit_limits_and_keys(p):
    for text in (repr(p), p._repr_html_().replace("&#x27;", "'")):
        assert "a person by 'id', max_rows 8, max_groups 1" in text
        assert "'state' has 2 keys" in text
    plain = pd.DataFrame({"x": [1]}).dp.open(1)
    assert plain.explain.count().limits == ""
    assert "limits" not in repr(plain.explain.count())


def test_outputs_may_be_called_n_and_name(p):
    costs = p.groupby("state")["cost"]
    assert list(costs.agg(avg="mean", n="count", epsilon=1).columns) == ["avg", "n"]
    assert list(costs.agg(avg="mean", name="size", epsilon=1).columns) == ["avg", "name"]
    named = p.groupby("state").agg(m=("cost", "mean"), epsilon=1, name="mean")
    assert list(named.columns) == ["m"]
