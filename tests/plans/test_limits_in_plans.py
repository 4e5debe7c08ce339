"""Limits of a person stand beside the numbers they shape; and names of outputs that are words of a price too."""

from __future__ import annotations

import json
import pickle

import pandas as pd
import pytest

from dpframe import Plan
from dpframe._groups.unit import Limit


@pytest.fixture
def p():
    df = pd.DataFrame(
        {"id": [1, 1, 2, 3], "state": ["CA", "NY", "CA", "CA"], "cost": [10.0, 20.0, 30.0, 40.0]}
    )
    return df.dp.open(
        1000,
        unit="id",
        max_rows=8,
        max_groups=1,
        bounds={"cost": (0, 100)},
        keys={"state": ["CA", "NY"]},
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


# A fact of the plan, and of its record ----------------------------------------------------------------------------------

LIMITS = [
    Limit(),
    Limit(rows=1),
    Limit(rows=8),
    Limit(groups=1),
    Limit(groups=12),
    Limit(rows=1, groups=1),
    Limit(rows=8, groups=2),
    Limit(values=1),
    Limit(values=9, together=True),
    Limit(keys=3),
]


@pytest.mark.parametrize("limit", [*LIMITS, Limit(rows=1, met=True)], ids=repr)
def test_record_of_a_limit_is_read_back_as_the_limit(limit):
    assert Limit.from_json(json.loads(json.dumps(limit.to_json()))) == limit


def test_two_limits_have_two_records():
    records = [json.dumps(limit.to_json()) for limit in [*LIMITS, Limit(rows=1, met=True)]]
    assert len(set(records)) == len(LIMITS) + 1


def test_plan_takes_no_limit_from_the_words_of_a_record(p):
    """Neither from `why` nor from the text of the question."""
    record = p.explain.mean("cost").to_json()
    record["why"] += "; a person counts for at most 1 row"
    record["question"] += " where ~groupby(id).duplicated('first')"
    assert Plan.from_json(record).caps == (Limit(rows=8),)
    record["why"] = record["question"] = ""
    assert Plan.from_json(record).caps == (Limit(rows=8),)


def test_one_row_and_one_group_of_a_person():
    one_row = [limit for limit in LIMITS if limit.one_row]
    assert one_row == [Limit(), Limit(rows=1), Limit(rows=1, groups=1)]
    assert [limit for limit in LIMITS if limit.one_group] == one_row
    assert not Limit(rows=1, groups=2).one_group


ASKED = {
    "count": lambda p: p.count(epsilon=20),
    "of one row each": lambda p: p.drop_duplicates("id").count(epsilon=20),
    "of one row each, the last": lambda p: p.drop_duplicates("id", keep="last").count(epsilon=20),
    "mean": lambda p: p.mean("cost", epsilon=20),
    "people": lambda p: p.nunique("id", epsilon=20),
    "values": lambda p: p.nunique("state", epsilon=20, max_groups=1),
    "groups": lambda p: p.groupby("state").agg(n=("cost", "size"), m=("cost", "mean"), epsilon=20),
    "people of groups": lambda p: p.groupby("state")["id"].nunique(epsilon=20),
    "median": lambda p: p.median("cost", epsilon=20),
}


@pytest.mark.parametrize("asked", ASKED)
def test_the_limits_of_a_plan_are_those_of_its_record(p, asked):
    answer = ASKED[asked](p)
    plan = answer.dp.plan if isinstance(answer, pd.DataFrame | pd.Series) else answer.plan
    record = Plan.from_json(plan.to_json())
    assert record.caps == plan.caps != ()
    assert record == plan
    assert record.limits == plan.limits != ""
    assert repr(pickle.loads(pickle.dumps(answer))) == repr(answer)


def test_condition_that_only_looks_alike_leaves_the_limit_standing(p):
    words = "x where ~groupby(id).duplicated('first')"
    frame = pd.DataFrame({"id": [1, 1, 2], "s": ["a", words, "b"]})
    q = frame.dp.open(1000, unit="id", max_rows=1)
    assert repr(q[q["s"] == words].count(epsilon=100)).endswith("of at most 1 row a person")
    one = p.drop_duplicates("id")
    assert "a person" not in repr(one.count(epsilon=100))
    assert repr(one[one["cost"] > 15].count(epsilon=100)).endswith("of at most 1 row a person")
