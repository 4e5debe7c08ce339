"""The page on adding a function of rows: it runs, and the entry that it adds is all that is written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pandas as pd
import pytest

from dpframe import _expr as ex
from tests.engines import examples
from tests.engines.agreement import find_differences, make_frame
from tests.engines.test_catalogue import find_faults
from tests.engines.written import in_duckdb, in_sqlite
from tests.frame.parts_stub import write_stub
from tests.test_docs import ROOT, blocks, run_block
from tests.test_site import reference

PAGE = ROOT / "docs" / "develop" / "add-a-function.md"


@pytest.fixture
def names() -> Iterator[dict[str, Any]]:
    """What the page defines, with its entry in the catalogue."""
    found: dict[str, Any] = {"__name__": "__page__"}
    *parts, (line, end) = blocks(PAGE)
    try:
        for place, source in parts:
            run_block(PAGE, place, source, found)
        yield found
    finally:
        run_block(PAGE, line, end, found)
    assert "str.isempty" not in ex.OPS


def test_add_a_function_entry_has_no_faults(names: dict[str, Any]) -> None:
    assert find_faults(ex.OPS["str.isempty"]) == []


def test_add_a_function_sql_agrees_with_numpy_and_the_wrong_one_does_not(
    names: dict[str, Any],
) -> None:
    frame = make_frame()
    op = ex.OPS["str.isempty"]
    assert find_differences(op, in_sqlite(frame), frame) == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ex.OPS, op.name, names["wrong"])
        assert find_differences(names["wrong"], in_sqlite(frame), frame) == ["s.str.isempty()"]


def test_add_a_function_sql_agrees_with_numpy_on_duckdb(names: dict[str, Any]) -> None:
    pytest.importorskip("duckdb", reason="tables in duckdb need duckdb")
    frame = make_frame()
    assert find_differences(ex.OPS["str.isempty"], in_duckdb(frame), frame) == []


def test_add_a_function_surfaces_have_it(names: dict[str, Any]) -> None:
    p = pd.DataFrame({"s": ["", "a"], "x": [1, 2]}).dp.open(1000)
    assert "isempty" in dir(p["s"].str)
    assert p["s"].map(lambda s: s.isempty()).sum(epsilon=400) == 1
    with pytest.raises(Exception, match=r"not offered.*isempty"):
        p["s"].str.nothing()


def test_add_a_function_stub_reference_and_examples_have_it(names: dict[str, Any]) -> None:
    assert "    def isempty(self) -> PrivateColumn:\n" in write_stub()
    assert "isempty" in reference.page_of_parts()
    made = examples.examples_of(ex.OPS["str.isempty"])
    assert len(made) == len(examples.SOME["text"]) * len(ex.OPS["str.isempty"].examples)


def test_add_a_function_page_explains_each_field() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition("## What an entry says")[2].partition("\n## ")[0]
    assert [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")] == [
        field.name for field in fields(ex.Op)
    ]
