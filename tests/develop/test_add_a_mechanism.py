"""The page adds a mechanism in one file, and one without an example or a proof does not pass."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import dpframe
from dpframe import mechanisms
from dpframe.mechanisms._base import MECHANISMS
from tests.develop.toys import PAGES, module_added, source_of
from tests.mechanisms import test_conformance as conformance

GUARANTEES = PAGES.parent / "guarantees"


@pytest.fixture
def secant(tmp_path: Path):
    """The mechanism of the page, in a file beside those of the package."""
    MECHANISMS.pop("secant", None)
    with module_added(mechanisms, "secant", source_of("add-a-mechanism.md", "@register"), tmp_path):
        yield MECHANISMS["secant"]
    MECHANISMS.pop("secant", None)


def unproven() -> list[str]:
    """Return the mechanisms of the package that name no page of guarantees as their proof."""
    pages = {path.name for path in GUARANTEES.glob("*.md")}
    return [
        kind.__name__
        for kind in MECHANISMS.values()
        if kind.__module__.startswith("dpframe.") and getattr(kind, "proof", None) not in pages
    ]


def test_mechanism_needs_one_file_to_be_asked_for(secant):
    df = pd.DataFrame({"x": [1, 2]})
    plan = df.dp.open(1).count(mechanism="secant").plan
    assert type(plan.parts[0].noise).__module__ == "dpframe.mechanisms.secant"
    assert dpframe.Plan.from_json(plan.to_json()) == plan


def test_mechanism_is_listed_in_messages_without_another_line(secant):
    p = pd.DataFrame({"x": [1, 2]}).dp.open(1)
    with pytest.raises(dpframe.BadValue, match="'secant'"):
        p.count(mechanism="nothing")


def test_mechanism_is_gone_with_its_file():
    with pytest.raises(dpframe.BadValue, match="unknown mechanism 'secant'"):
        pd.DataFrame({"x": [1, 2]}).dp.open(1).count(mechanism="secant")


def test_mechanism_without_an_example_fails_the_conformance_tests(secant, monkeypatch):
    conformance.test_every_mechanism_has_an_example()  # the page's example is among them
    without = [one for one in conformance.EXAMPLES if one.mechanism.name != "secant"]
    monkeypatch.setattr(conformance, "EXAMPLES", without)
    with pytest.raises(AssertionError):
        conformance.test_every_mechanism_has_an_example()


def test_mechanism_with_a_wrong_loss_fails_the_conformance_tests(secant, monkeypatch):
    (example,) = (one for one in conformance.EXAMPLES if one.mechanism.name == "secant")
    conformance.test_neighbours_are_no_further_apart_than_its_loss(example)
    kind = type(example.mechanism)
    right = kind.epsilon_for
    monkeypatch.setattr(kind, "epsilon_for", lambda self, distance: right(self, distance) / 2)
    with pytest.raises(AssertionError):
        conformance.test_neighbours_are_no_further_apart_than_its_loss(example)


def test_every_mechanism_has_a_proof_that_names_it():
    assert unproven() == []


def test_mechanism_without_a_proof_is_noticed(secant):
    assert unproven() == ["Secant"]
