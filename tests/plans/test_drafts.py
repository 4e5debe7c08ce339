"""What a plan takes from its question is remembered: plans are as if it were not; what is equal but not alike is not mixed."""

from __future__ import annotations

import pickle
from dataclasses import replace
from fractions import Fraction

import pandas as pd
import pytest

from dpframe import Plan
from dpframe import _expr as expr_module
from dpframe._expr import Column
from dpframe._groups.keys import KeyBy, keys_for
from dpframe._groups.unit import Unit
from dpframe._plans import plan as plan_module
from dpframe._plans.aggregates import Output as query_Output
from dpframe._questions.question import Query
from dpframe._validate import Bounds
from dpframe.accounting._filter import Price

PRICES = (
    Price(Fraction(1, 3)),
    Price(Fraction(2, 7)),
    Price(Fraction(1), mu_squared=Fraction(1, 40)),
)
UNITS = (
    Unit(),
    Unit("replace-one"),
    Unit("add-remove", (Column(9, "id"),), 3, 2),
    Unit("replace-one", (Column(9, "id"),), 3, 2),
    Unit("add-remove", (Column(9, "id"),), 4, 2),
    Unit("add-remove", (Column(9, "id"),), 3, 1),
)
AGE, COST = Column(0, "age", "number", True, True), Column(1, "cost", "number", False, False)
STATE = Column(2, "state", "text")
BY = KeyBy(STATE, keys_for(["CA", "NY", "TX"], STATE, "state"))
ASKED = {
    "count": (query_Output("n", "size"),),
    "mean": (query_Output("m", "mean", COST, Bounds(0.0, 9.0)),),
    "wider": (query_Output("m", "mean", COST, Bounds(0.0, 10.0)),),
    "several": tuple(
        query_Output(a, a, AGE, Bounds(0.0, 110.0)) for a in ("sum", "mean", "std", "count")
    ),
    "ddof": (query_Output("v", "var", AGE, Bounds(0.0, 110.0), ddof=0),),
    "cov": (
        query_Output(
            "c", "cov", AGE, Bounds(0.0, 110.0), other=COST, other_bounds=Bounds(0.0, 9.0)
        ),
    ),
    "median": (query_Output("q", "quantile", AGE, Bounds(0.0, 110.0), level=Fraction(1, 2)),),
    "most": tuple(query_Output(str(i), "argmax", AGE) for i in range(2)),
    "many": tuple(query_Output(str(i), "size") for i in range(9)),
}


def fresh(query, unit, price, rows=None):
    plan_module._DRAFTS.clear()
    return query.plan(unit, price, rows, ())


@pytest.mark.parametrize(
    "unit",
    UNITS,
    ids=["rows", "rows replaced", "people", "people replaced", "more rows", "fewer groups"],
)
@pytest.mark.parametrize("by", [(), (BY,), (BY, BY)], ids=["all", "groups", "more groups"])
@pytest.mark.parametrize("name", ASKED)
def test_a_question_seen_before_has_the_plan_of_one_that_was_not(name, by, unit):
    query = Query(ASKED[name], by=by)
    rows = (None, 50, 60) if unit.replaces and not unit.people and not by else (None,)
    wanted = [[fresh(query, unit, price, n) for price in PRICES] for n in rows]
    plan_module._DRAFTS.clear()
    for other in ASKED.values():  # what is remembered of these is no part of it
        for one in UNITS:
            for groups in ((), (BY,)):
                Query(other, by=groups).plan(one, PRICES[0], None, ())
    for _ in range(2):
        found = [[query.plan(unit, price, n, ()) for price in PRICES] for n in rows]
        assert found == wanted
        assert [[plan._draft.statistics for plan in some] for some in found] == [
            [plan._draft.statistics for plan in some] for some in wanted
        ]


@pytest.mark.parametrize("name", ASKED)
def test_the_text_of_a_plan_is_that_of_a_plan_without_a_draft(name):
    plan = Query(ASKED[name], by=(BY,)).plan(Unit(), PRICES[0], None, ('bounds a "word"',))
    assert plan._draft is not None
    for other in (
        replace(plan, _draft=None),
        pickle.loads(pickle.dumps(plan)),
        Plan.from_json(plan.to_json()),
    ):
        assert other._draft is None
        assert other.text == plan.text
    fewer = replace(plan, cells=plan.cells[:1], told="that")
    assert fewer.to_json() == {
        **plan.to_json(),
        "cells": plan.to_json()["cells"][:1],
        "told": "that",
    }


def test_names_that_are_equal_and_not_alike_keep_their_plans_apart():
    for name in (1, True, 1.0):
        p = pd.DataFrame({name: [1.0, 2.0]}).dp.open(epsilon=1, bounds={name: (0, 5)})
        plan = p.explain.agg(m=(name, "mean"))
        assert plan.parts[0].statistic.replace("`", "").endswith(f" of {name}")
        plan_module._DRAFTS.clear()
        assert plan.text == p.explain.agg(m=(name, "mean")).text


@pytest.mark.parametrize("first", [0, 1])
def test_outputs_that_are_equal_and_not_alike_keep_their_plans_apart(first):
    alike = [
        (
            query_Output(1, "mean", COST, Bounds(0.0, 2.0)),
            query_Output(True, "mean", COST, Bounds(0.0, 2.0)),
        ),
        (query_Output("v", "var", COST, Bounds(0.0, 2.0), ddof=1),) * 1
        + (query_Output("v", "var", COST, Bounds(0.0, 2.0), ddof=True),),
        (
            query_Output("m", "mean", COST, Bounds(0, 2)),
            query_Output("m", "mean", COST, Bounds(0.0, 2.0)),
        ),
        (
            query_Output("m", "mean", COST, Bounds(0.0, 2.0)),
            query_Output("m", "mean", COST, Bounds(-0.0, 2.0)),
        ),
    ]
    for pair in alike:
        assert pair[0] == pair[1]
        wanted = [fresh(Query((out,)), Unit(), PRICES[0]).text for out in pair]
        assert wanted[0] != wanted[1]
        plan_module._DRAFTS.clear()
        for place in (first, 1 - first):
            assert Query((pair[place],)).plan(Unit(), PRICES[0], None, ()).text == wanted[place]


def test_lists_that_differ_beyond_what_a_text_shows_keep_their_plans_apart():
    lists = [(0, 2, 3, 4, 5, 1), (0, 2, 3, 4, 5, True)]
    exprs = [
        expr_module.IsIn(AGE, tuple(expr_module.Constant(v) for v in values)) for values in lists
    ]
    queries = [Query((query_Output("n", "count", expr),)) for expr in exprs]
    assert str(queries[0]) == str(queries[1])
    plan_module._DRAFTS.clear()
    for query in queries:
        query.plan(Unit(), PRICES[0], None, ())
    assert len(plan_module._DRAFTS) == 2


def test_long_ones_are_not_remembered():
    plan_module._DRAFTS.clear()
    expr = expr_module.IsIn(AGE, tuple(expr_module.Constant(v) for v in range(5000)))
    Query((query_Output("n", "count", expr),)).plan(Unit(), PRICES[0], None, ())
    assert not plan_module._DRAFTS


def test_few_are_remembered():
    for width in range(3 * plan_module._MOST_DRAFTS):
        out = query_Output("m", "mean", COST, Bounds(0.0, 1.0 + width))
        Query((out,)).plan(Unit(), PRICES[0], None, ())
    assert 0 < len(plan_module._DRAFTS) <= plan_module._MOST_DRAFTS


def test_a_plan_is_kept_for_the_same_price_and_words_alone():
    """The last plan of a question serves the next one only if nothing that it shows is different."""
    unit, facts = Unit(), ("keys a", "keys b")
    where = expr_module.compare(">", AGE, expr_module.constant(30))
    first, other = Query(ASKED["mean"]), Query(ASKED["mean"], where=where)
    plan_module._DRAFTS.clear()
    kept = first.plan(unit, PRICES[0], None, ())
    assert Query(ASKED["mean"]).plan(unit, PRICES[0], None, ()) is kept
    for query, price, words in [
        (first, PRICES[1], ()),
        (first, PRICES[0]._replace(mechanism="laplace"), ()),
        (first, PRICES[0], facts),
        (other, PRICES[0], ()),
    ]:
        plan = query.plan(unit, price, None, words)
        assert plan == fresh(query, unit, price)
        assert plan is not kept
        assert plan.declared == words
        assert plan.question == str(query)
        plan_module._DRAFTS.clear()
        kept = first.plan(unit, PRICES[0], None, ())
