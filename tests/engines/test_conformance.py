"""Every engine there is, by the tests of all; the one that a page builds among them. Broken ones must fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpframe import BadType
from dpframe._statistics.base import Distincts, Persons, Powers, Rows, Trues
from dpframe._statistics.engine import PEOPLE
from dpframe.engines import engine_for
from dpframe.engines.pandas import PandasEngine
from tests.conformance.test_people import GROUPS
from tests.engines.conformance import KEY, EngineConformance, frame
from tests.engines.lists import ListEngine
from tests.test_docs import blocks

PAGE = Path(__file__).parents[2] / "docs" / "develop" / "add-an-engine.md"
NAMES: dict[str, Any] = {"__name__": "__page__"}
exec(next(source for _, source in blocks(PAGE) if "class PartsEngine" in source), NAMES)


class TestPandas(EngineConformance):
    def engine(self, frame: pd.DataFrame, key: bytes = KEY) -> Any:
        return PandasEngine(frame, key)


class TestLists(EngineConformance):
    def engine(self, frame: pd.DataFrame, key: bytes = KEY) -> Any:
        return ListEngine(frame, key)


class TestParts(EngineConformance):
    def engine(self, frame: pd.DataFrame, key: bytes = KEY) -> Any:
        return NAMES["PartsEngine"](frame, key)


def test_an_engine_is_made_by_the_type_of_the_table():
    class Derived(pd.DataFrame):
        pass

    assert isinstance(engine_for(frame([]), b""), PandasEngine)
    assert isinstance(engine_for(Derived(), b""), PandasEngine)
    with pytest.raises(BadType, match="no engine reads a list"):
        engine_for([], b"")


# Broken copies ----------------------------------------------------------------------------------------------


def changed(kind: Any, change: Any) -> Any:
    """An engine that changes the sums of one kind of primitive."""

    class Broken(PandasEngine):
        def reduce(self, scope, primitives, unit):
            found = super().reduce(scope, primitives, unit)
            return {p: change(p, a) if isinstance(p, kind) else a for p, a in found.items()}

    return Broken


class Forgetful(PandasEngine):
    """Without limits of groups."""

    def reduce(self, scope, primitives, unit):
        return super().reduce(
            scope, primitives, unit.with_limits(None, 99) if unit.people else unit
        )


class Loose(PandasEngine):
    """Without limits of rows."""

    def reduce(self, scope, primitives, unit):
        return super().reduce(
            scope, primitives, unit.with_limits(99, None) if unit.people else unit
        )


class Positional(PandasEngine):
    """Where a person stands in the frame decides what counts."""

    def __init__(self, frame, key=b""):
        super().__init__(frame, str(frame.head(1).values).encode() + key)


class Talkative(PandasEngine):
    def occurring(self, by, where, unit, primitives=frozenset()):
        raise BadType(f"cannot read {self.table.frame.iloc[0, 0]!r}.")


class Named(PandasEngine):
    """Keys of nobody are found too."""

    def occurring(self, by, where, unit, primitives=PEOPLE):
        texts, sums = super().occurring(by, where, unit, primitives)
        return [*texts, ("szzz",) * len(by)], {
            p: np.append(a, 0) for p, a in sums.items() if a.ndim == 1
        }


SUMS = "test_sums_over_rows_are_their_definitions"
BROKEN = {
    "one row too many": (changed(Rows, lambda p, a: a + (a > 2)), SUMS),
    "a value lost": (changed(Powers, lambda p, a: np.maximum(a - (a > 50), 0)), SUMS),
    "a condition turned round": (changed(Trues, lambda p, a: -a), SUMS),
    "floats": (changed(Rows, lambda p, a: a.astype(float)), "test_sums_are_whole_numbers_of_the_promised_shapes"),
    "a sum that does not add up": (changed(Persons, lambda p, a: a + 1), "test_parts_of_whole_people_add_up"),
    "values named twice": (changed(Distincts, lambda p, a: a * 2), SUMS),
    "no limit of rows": (Loose, "test_sums_over_people_are_their_definitions"),
    "places decide": (Positional, "test_the_order_of_rows_and_what_was_asked_before_change_nothing"),
    "a cell in an error": (Talkative, "test_no_error_holds_a_cell_and_none_depends_on_one"),
    "keys of nobody": (Named, "test_keys_that_occur_are_those_of_somebody"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_engine_is_seen(name, recwarn):
    kind, test = BROKEN[name]
    broken = type(
        "Broken", (EngineConformance,), {"engine": lambda self, frame, key=KEY: kind(frame, key)}
    )()
    with pytest.raises((AssertionError, ExceptionGroup)):
        getattr(broken, test)(*([recwarn] if "error_holds" in test else []))


@pytest.mark.parametrize("kind", [Forgetful, PandasEngine])
def test_a_forgotten_limit_of_groups_is_seen(kind):
    """Somebody has a row in each group and counts in one: too rare a case to be left to chance."""
    tried = type(
        "Tried", (EngineConformance,), {"engine": lambda self, frame, key=KEY: kind(frame, key)}
    )()
    everywhere = [(1.0, group, True) for group in GROUPS]
    claim: Any = EngineConformance.test_a_person_moves_no_statistic_further_than_claimed
    case = "size", "add-remove", [], everywhere, everywhere, True, False, (2, 1), (0, 0)
    if kind is PandasEngine:
        claim.hypothesis.inner_test(tried, *case)
    else:
        with pytest.raises(AssertionError):
            claim.hypothesis.inner_test(tried, *case)
