"""What is proven of rows: what each step carries and loses, and that it stands in one place."""

from __future__ import annotations

import ast
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpframe
from dpframe._expr import Column, Key
from dpframe._groups.premises import UNPROVEN, Names, Premises, least_of, premises_of_root

KEY = Key(Column.of(0, "t", "int64"))
ROWS = premises_of_root(named=False, ordered=True)
PEOPLE = premises_of_root(named=True, ordered=True)
SORTED = PEOPLE.sort_by([KEY])
MADE: dict[str, bool] = {"piecewise": False, "adjacent": True, "all_rows": True}

# A step, and what it leaves of all that may be proven.
STEPS: dict[str, tuple[Premises, Premises]] = {
    "rows of people": (ROWS, Premises(Names("rows"), 1, "own", (), True, True)),
    "rows that columns name": (PEOPLE, Premises(Names("columns"), None, "own", (), True, True)),
    "some rows": (ROWS.of_some_rows(), Premises(Names("rows"), 1, "own", (), False, False)),
    "three rows": (
        SORTED.of_some_rows(3),
        Premises(Names("columns"), 3, "own", (KEY,), False, False),
    ),
    "three rows of two": (SORTED.of_some_rows(2).of_some_rows(3), SORTED.of_some_rows(2)),
    "one row": (SORTED.of_one_row(), Premises(Names("columns"), 1, "own", (), False, False)),
    "two of each": (
        ROWS.of_made_rows(2, **MADE).set_drawn_names("s"),
        Premises(Names("drawn", "s"), 2, "own", (), True, False),
    ),
    "two of each of two": (
        ROWS.of_made_rows(2, **MADE).of_made_rows(3, **MADE),
        Premises(Names("rows"), 6, "own", (), True, False),
    ),
    "any number": (
        ROWS.of_made_rows(None, **MADE),
        Premises(Names("rows"), None, "own", (), True, False),
    ),
    "sorted in memory": (SORTED.of_made_rows(2, **MADE), replace(PEOPLE, whole=False)),
    "sorted piecewise": (
        SORTED.of_made_rows(2, **{**MADE, "piecewise": True}),
        replace(PEOPLE, order="unfixed", whole=False),
    ),
    "apart piecewise": (
        PEOPLE.of_made_rows(2, **{**MADE, "piecewise": True, "adjacent": False}),
        replace(PEOPLE, order="unfixed", whole=False),
    ),
    "in place piecewise": (
        PEOPLE.of_made_rows(2, **{**MADE, "piecewise": True}),
        replace(PEOPLE, whole=False),
    ),
    "with more columns": (ROWS.of_matched_rows(piecewise=True, all_rows=True), ROWS),
    "with more columns, some rows": (
        ROWS.of_matched_rows(piecewise=True, all_rows=False),
        replace(ROWS, whole=False, everyone=False),
    ),
    "of the owner's code": (SORTED.of_foreign_rows(), Premises(Names("columns"))),
    "names that columns have": (PEOPLE.set_drawn_names("s"), PEOPLE),
}


@pytest.mark.parametrize("step", STEPS)
def test_steps_carry_and_lose_what_the_page_says(step):
    found, wanted = STEPS[step]
    assert found == wanted


def test_nothing_is_proven_unless_it_is_said():
    assert not UNPROVEN.everyone
    assert not UNPROVEN.whole
    assert UNPROVEN.max_rows is None
    assert UNPROVEN.order == "others"
    assert not UNPROVEN.names.match(UNPROVEN.names)


def test_a_join_has_the_worse_order_of_its_sides():
    for order in ("unfixed", "others"):
        worse = replace(PEOPLE, order=order)
        assert (
            PEOPLE.join(worse, 6) == worse.join(PEOPLE, 6) == Premises(Names("columns"), 6, order)
        )
    assert PEOPLE.join(PEOPLE, 6).order == "own"


def test_names_match_in_their_scope_alone():
    assert Names("columns").match(Names("columns"))
    assert Names("drawn", "one").match(Names("drawn", "one"))
    assert not Names("drawn", "one").match(Names("drawn", "two"))
    assert not Names("drawn", "one").match(Names("columns"))
    assert not Names("rows").match(Names("rows"))


def test_sorting_keeps_what_decided_before_behind_it():
    other = Key(Column.of(1, "x", "float64"))
    again = Key(KEY.expr, descending=True)
    assert SORTED.sort_by([other]).sorts == (other, KEY)
    assert SORTED.sort_by([again]).sorts == (again,)


def test_least_of_limits():
    assert least_of(None, 3, 2) == 2
    assert least_of(None, None) is None


# In one place ---------------------------------------------------------------------------------------------------------------


def test_no_premise_is_kept_beside_this_class():
    """No other class of sessions or frames has a field or a property of that name. Tables say whether they have an order."""
    kept = {field.name for field in fields(Premises)} - {"names", "order"} | {"ordered"}
    allowed = {("_groups/premises.py", name) for name in kept}
    package = Path(dpframe.__file__).parent
    found = set()
    for room in ("_session", "_frame", "_groups"):
        for path in sorted((package / room).rglob("*.py")):
            for owner in ast.walk(ast.parse(path.read_text())):
                if isinstance(owner, ast.ClassDef):
                    found |= {
                        (str(path.relative_to(package)), name)
                        for name in has_only_known_people(owner)
                        if name in kept
                    }
    assert found == allowed - {("_groups/premises.py", "ordered")}


def has_only_known_people(owner: ast.ClassDef) -> set[str]:
    """The fields, properties and attributes of a class."""
    names = {
        n.target.id
        for n in owner.body
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }
    names |= {n.name for n in owner.body if isinstance(n, ast.FunctionDef)}
    for node in ast.walk(owner):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return names


def test_every_derived_session_is_given_premises_that_its_parent_proves():
    """Only these functions make premises or change them, and `derived` is called with what one of them returned."""
    package = Path(dpframe.__file__).parent
    makers = set()
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "Premises"
            ):
                makers.add(str(path.relative_to(package)))
    assert makers == {"_groups/premises.py"}


# What verbs do with them ----------------------------------------------------------------------------------------------------

FRAME = pd.DataFrame(
    {"u": [1, 1, 2], "x": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0], "k": ["a", "b", "a"]}
)
TERMS: dict[str, Any] = {
    "unit": "u",
    "max_rows": 3,
    "max_groups": 1,
    "bounds": {"x": (0, 9), "y": (0, 9)},
}
TABLE = pd.DataFrame({"k": ["a", "a", "b"], "w": [1, 2, 3]})


def test_what_is_proven_of_rows_goes_along_when_several_are_made_of_each():
    """A person with one row has two of two columns, and counts for no more than two."""
    p = FRAME.copy().dp.open(1000, **TERMS)
    first = p.groupby("u").head(1)
    assert first.explain.count(epsilon=1).sensitivity == 1
    assert first.melt(["u"], ["x", "y"]).explain.count(epsilon=1).sensitivity == 2
    assert first.merge(TABLE, on="k").explain.count(epsilon=1).sensitivity == 2
    assert p.melt(["u"], ["x", "y"]).explain.count(epsilon=1).sensitivity == 3


def test_a_limit_above_what_is_proven_costs_nothing():
    p = FRAME.copy().dp.open(1000, bounds=TERMS["bounds"])
    assert p.melt(["k"], ["x", "y"], max_rows=100).explain.count(epsilon=1).sensitivity == 2
    assert p.melt(["k"], ["x", "y"], max_rows=1).explain.count(epsilon=1).sensitivity == 1
    assert p.melt(["k"], ["x", "y"]).explain.count(epsilon=1, max_rows=5).sensitivity == 5
