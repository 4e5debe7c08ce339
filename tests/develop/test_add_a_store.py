"""The page adds a store in a file and a line, and a store without conformance tests does not pass.

The store of the page runs through all of them in `tests/store/test_conformance.py`.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

import dpframe
from dpframe._ledger import STORES
from tests.develop.toys import source_of

TESTS = Path(__file__).parents[1] / "store"


@cache
def names_in_conformance() -> frozenset[str]:
    """Return the names that stand in classes of conformance tests, in what makes their stores."""
    return frozenset(
        node.id if isinstance(node, ast.Name) else str(getattr(node, "value", ""))
        for path in TESTS.glob("*.py")
        for owner in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(owner, ast.ClassDef)
        and any(ast.unparse(base).endswith("Conformance") for base in owner.bases)
        for node in ast.walk(owner)
        if isinstance(node, ast.Name | ast.Constant)
    )


def untested() -> list[str]:
    """Return the stores in the table that no class of conformance tests makes."""
    return sorted({kind.__name__ for kind in STORES.values()} - names_in_conformance())


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch):
    """The store of the page, in the table."""
    names: dict[str, object] = {"__name__": "__page__"}
    exec(source_of("add-a-store.md", "class LinesStore"), names)
    monkeypatch.setitem(STORES, "lines", names["LinesStore"])


def test_store_keeps_a_ledger_by_its_scheme(lines, tmp_path):
    ledger = f"lines://{tmp_path / 'study'}"
    p = pd.DataFrame({"x": [1, 2]}).dp.open(1, ledger=ledger, population="people")
    p.count(epsilon=0.25)
    left = dpframe.Accountant(1, ledger=ledger, population="people").budget.remaining
    assert left == 0.75


def test_every_store_has_conformance_tests():
    assert untested() == []


def test_store_without_conformance_tests_is_noticed(monkeypatch):
    monkeypatch.setitem(STORES, "nobody", type("Untested", (), {}))
    assert untested() == ["Untested"]
