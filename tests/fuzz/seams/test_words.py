"""Every word that the package lists has an example, and the example is answered: what is new and has none fails here."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest

import dpframe
from dpframe._frame.columns.hooks import PANDAS_FUNCTIONS
from dpframe._frame.columns.parts import CategoryParts
from dpframe._frame.people.groups import PersonGroupBy
from dpframe._frame.people.windows import Window
from dpframe._frame.surface import PrivateColumn, PrivateFrame, PrivateGroupBy
from dpframe.engines.tables import KINDS
from dpframe.engines.tables.ibis import BACKENDS
from tests.engines.entries import UFUNCS
from tests.frame.parts_stub import declared_parts
from tests.fuzz.seams import examples, words
from tests.fuzz.seams.engines import ENGINES, TIMES
from tests.fuzz.seams.examples import NAMES, Generator
from tests.fuzz.seams.frames import BOUNDS, CELLS, KEYS, frame_of
from tests.internals import NUMPY_FUNCTIONS


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


# What the package has, and what there are examples of.
REGISTRIES: dict[str, tuple[set[str], set[str]]] = {
    "frame": (public(PrivateFrame), {*words.STEPS, *words.ASKS, *words.IDLE}),
    "column": (
        public(PrivateColumn),
        {*words.COLUMN, *words.COLUMN_ASKS, *words.IDLE, *words.ALIASES},
    ),
    "groups": (public(PrivateGroupBy), {*words.GROUPS}),
    "own": (public(PersonGroupBy), {*words.OWN}),
    "windows": (public(Window), {*words.WINDOW}),
    "texts": (declared_parts("Texts"), {*words.TEXT}),
    "times": (declared_parts("Times"), {*words.TIME}),
    "categories": (public(CategoryParts), {*words.CATEGORY}),
    "ufuncs": (set(UFUNCS), {*examples.EXPRESSIONS["ufuncs"]}),
    "numpy": (
        set(NUMPY_FUNCTIONS),
        {*words.NUMPY, *words.COLUMN_ASKS, "amin", "amax", "percentile", "histogram2d", "corrcoef"},
    ),
    "functions": (set(PANDAS_FUNCTIONS), {*words.FUNCTIONS}),
    "sources": (
        {*BACKENDS, *(name for kind in KINDS for name in kind.types)},
        {name for one in ENGINES.values() for name in one.reads},
    ),
}


@pytest.mark.parametrize("registry", REGISTRIES)
def test_every_word_has_an_example(registry):
    listed, known = REGISTRIES[registry]
    assert listed - known == set()


@pytest.mark.parametrize(
    "registry", ["groups", "own", "windows", "texts", "times", "categories", "functions"]
)
def test_no_example_is_of_a_word_that_is_gone(registry):
    listed, known = REGISTRIES[registry]
    assert known - listed == set()


def test_every_registered_source_has_an_engine_among_the_extras():
    assert {name for name, one in ENGINES.items() if not one.columns} == set()
    assert set(TIMES) <= set(CELLS)


# Examples are answered ---------------------------------------------------------------------------------------------------

COLUMNS = tuple(CELLS)
ROWS = [(i % 3, *(CELLS[name][i % 2] for name in COLUMNS)) for i in range(6)]


@cache
def opened(people: bool, neighbors: str) -> Any:
    """The rows, opened once for all examples."""
    words: dict[str, Any] = {"unit": "id", "max_rows": 2, "max_groups": 2} if people else {}
    frame = frame_of(ROWS, COLUMNS, people)
    p = dpframe.open(
        frame,
        1000,
        bounds=BOUNDS,
        keys=KEYS,
        because="made up",
        delta=1e-4,
        neighbors=neighbors,
        **words,
    )
    return p, frame


EXAMPLES = [
    *((table, name) for table in examples.EXPRESSIONS for name in examples.EXPRESSIONS[table]),
    *((table, name) for table in examples.OWN for name in examples.OWN[table]),
    *(("steps", name) for name in examples.STEPS),
    *(("asks", name) for name in examples.ASKS),
    *(("column asks", name) for name in examples.COLUMN_ASKS),
    *(("groups", name) for name in examples.GROUPS),
]
TABLES = {
    **examples.EXPRESSIONS,
    **examples.OWN,
    "steps": examples.STEPS,
    "asks": examples.ASKS,
    "column asks": examples.COLUMN_ASKS,
    "groups": examples.GROUPS,
}
# What `randomize` reports needs another relation.
REPORTS = ("randomize",)


@pytest.mark.parametrize(("table", "name"), EXAMPLES)
def test_every_example_is_answered(table, name):
    """Each template of a word is taken as it stands, on plain columns, with people and without."""
    for template in TABLES[table][name]:
        if template == "p.explode({L}{R})":
            continue  # lists of Arrow, which `test_worlds` reads
        personal = table in examples.OWN or "person(p)" in template or name in words.PERSONAL
        p, frame = opened(personal, "replace-one" if name in REPORTS else "add-remove")
        made = taken(template, p, frame, personal)
        assert made is not None, template


def taken(template: str, p: Any, frame: Any, people: bool) -> Any:
    """What a template makes, of the columns that come first."""
    limits = ", max_rows=64, max_groups=64"
    NAMES["model"] = frame
    generator = Plain(random.Random(0), p, people, True, False, limits, p=p)
    text = generator.fill(template).replace("grouped", "p.groupby('g', keys=['a', 'b', 'c'])")
    return eval(text, {**NAMES, "p": p, "df": frame})


class Plain(Generator):
    """The first column of each kind, and no expression inside another."""

    def name(self, *kinds: str) -> Any:
        return (
            "l"
            if "other" in kinds
            else next(n for n in self.columns(*kinds) if n not in ("id", "l"))
        )

    def value_of(self, kind: str, depth: int) -> str:
        return examples.DAY if kind == "duration" else f"p[{self.name(kind)!r}]"

    def token(self, token: str, depth: int) -> str:
        return {"W": "epsilon=1", "Z": "(-2, 5)"}.get(token) or super().token(token, depth)
