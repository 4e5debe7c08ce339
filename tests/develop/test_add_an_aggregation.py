"""The page on adding an aggregation, run in full on its toys: entry, verb, and the cases that the tests compute."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpframe._plans.aggregates import AGGREGATES, list_agg_names, list_verbs
from dpframe.audit import replay
from tests import aggregates
from tests.statistical.test_every_aggregate import (
    misses,
    test_each_measured_aggregate_has_a_coverage_case,
)
from tests.statistical.test_privacy_audit import BOUNDS, KEYS, PAIRS
from tests.test_docs import blocks, run_block

PAGE = Path(__file__).parent.parent.parent / "docs" / "develop" / "add-an-aggregation.md"
TOYS = ("cv", "fourth")


@pytest.fixture(scope="module")
def page():
    """The names of the page, before its last block takes the toys away."""
    *shown, (line, source) = blocks(PAGE)
    names: dict[str, object] = {"__name__": "__page__"}
    before = dict(AGGREGATES)
    try:
        for block in shown:
            run_block(PAGE, *block, names)
        aggregates.TRUTHS.update(names["truths"])
        yield names
        run_block(PAGE, line, source, names)
        assert before == AGGREGATES
    finally:
        aggregates.TRUTHS.clear()
        for name in {*AGGREGATES} - {*before}:
            del AGGREGATES[name]


def test_toys_are_named_in_agg_and_have_a_verb(page):
    assert set(TOYS) <= set(list_agg_names())
    assert list_verbs()["cv"].name == "cv"
    assert set(TOYS) <= set(aggregates.measured_names())
    test_each_measured_aggregate_has_a_coverage_case()


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", TOYS)
def test_intervals_of_toys_cover(page, name, mechanism):
    assert not misses(name, mechanism)


def test_toy_without_a_truth_fails(page, monkeypatch):
    monkeypatch.delitem(aggregates.TRUTHS, "cv")
    with pytest.raises(AssertionError, match="cv"):
        test_each_measured_aggregate_has_a_coverage_case()


@pytest.mark.parametrize("pair", ["joins a", "low becomes high"])
def test_releases_of_toys_are_replayed(page, pair):
    releases = aggregates.releases_of_verbs()
    mine = [name for name in releases if name.removeprefix("groupby ").removeprefix("agg ") in TOYS]
    assert sorted(mine) == ["agg fourth", "cv", "groupby agg fourth", "groupby cv"]
    one, two = PAIRS[pair].frames()
    for name in mine:
        found = replay(
            lambda p, name=name: releases[name](p, epsilon=1), one, two, epsilon=1000,
            neighbors=PAIRS[pair].neighbors, bounds=BOUNDS, keys=KEYS,
        )  # fmt: skip
        assert not found.problems
        assert found.steps
