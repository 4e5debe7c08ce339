"""The list of claims is whole: each has a proof, tests that exist, and a broken twin that a test catches."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.mutants.run import Mutant, mutants
from tests.test_docs import anchors

pytestmark = pytest.mark.kept  # what it reads is the whole tree, and is read once

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "guarantees" / "claims.md"
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


class Claim(NamedTuple):
    text: str
    proofs: list[str]
    shown: list[tuple[str, str]]
    twins: list[tuple[str, str]]


def claims(text: str) -> list[Claim]:
    """The rows of the tables that have a claim."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    return [
        Claim(claim, re.findall(r"\]\(([^)]+)\)", proof), TEST.findall(shown), TEST.findall(twin))
        for claim, proof, shown, twin in rows
        if claim != "claim"
    ]


@cache
def listed_claims() -> list[Claim]:
    """Return the claims of the page."""
    return claims(PAGE.read_text("utf-8"))


@cache
def names_in(file: str) -> set[str]:
    """The tests of a file, by name."""
    path = ROOT / file
    tree = ast.parse(path.read_text("utf-8")) if path.exists() else ast.Module([], [])
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def missing(claim: Claim) -> list[str]:
    """What a claim lacks, in words."""
    problems = [
        name
        for name, part in zip(
            ("proof", "test", "twin"), (claim.proofs, claim.shown, claim.twins), strict=True
        )
        if not part
    ]
    for link in claim.proofs:
        page, _, anchor = link.partition("#")
        path = PAGE.parent / page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            problems.append(link)
    return problems + [
        f"{file}::{name}" for file, name in claim.shown + claim.twins if name not in names_in(file)
    ]


def test_a_claim_has_a_proof_a_test_and_a_twin() -> None:
    assert len(listed_claims()) > 30
    assert {claim.text[:50]: lacks for claim in listed_claims() if (lacks := missing(claim))} == {}


def test_every_page_of_guarantees_has_a_claim() -> None:
    proven = {link.partition("#")[0] for claim in listed_claims() for link in claim.proofs}
    assert proven == {path.name for path in PAGE.parent.glob("*.md")} - {
        "index.md",
        "claims.md",
        "notation.md",
    }


def killed_by(claim: Claim, known: list[Mutant]) -> list[str]:
    """The mutants that a test which shows this claim is known to kill: by its own name, or by one of its cases."""
    shown = {f"{file}::{name}" for file, name in claim.shown}
    return [
        mutant.name for mutant in known if any(k.partition("[")[0] in shown for k in mutant.killers)
    ]


def test_a_wrong_change_of_each_claim_is_killed_by_the_test_that_shows_it() -> None:
    assert [claim.text for claim in listed_claims() if not killed_by(claim, mutants())] == []


def test_a_claim_whose_tests_kill_nothing_is_noticed() -> None:
    claim = Claim(
        "One",
        ["mean.md"],
        [("tests/test_claims.py", "test_every_page_of_guarantees_has_a_claim")],
        [],
    )
    assert killed_by(claim, mutants()) == []
    killer = "tests/test_claims.py::test_every_page_of_guarantees_has_a_claim[x]"
    known = replace(mutants()[0], name="x", killers=(killer,))
    assert killed_by(claim, [known]) == ["x"]


def test_what_a_claim_lacks_is_noticed() -> None:
    text = """
| claim | proof | shown by | the broken twin is caught by |
|---|---|---|---|
| One | [mean](mean.md#nothing) | `tests/test_claims.py::test_nothing` | |
| Two | | `tests/none.py::test_none` | `tests/test_claims.py::test_what_a_claim_lacks_is_noticed` |
"""
    one, two = claims(text)
    assert missing(one) == ["twin", "mean.md#nothing", "tests/test_claims.py::test_nothing"]
    assert missing(two) == ["proof", "tests/none.py::test_none"]
