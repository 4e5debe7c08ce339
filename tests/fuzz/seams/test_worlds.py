"""Plain questions of one dense table in small worlds: every seam of sizes, each time that the tests run."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.fuzz.seams import check, frames
from tests.fuzz.seams.cases import Case
from tests.fuzz.seams.check import Answer
from tests.fuzz.seams.engines import ENGINES
from tests.fuzz.seams.examples import Line
from tests.fuzz.seams.worlds import World

COLUMNS = ("x", "y", "z", "s", "g", "b", "t")
OF_ROWS = (
    "p.count(epsilon=1)",
    "p.count('z', epsilon=1)",
    "p.sum('x', bounds=(0, 3), epsilon=1)",
    "p[p['x'] > 0].mean('z', bounds=(0, 2), epsilon=1)",
    "p.groupby('g', keys=['a', 'b', 'c']).size(epsilon=1)",
    "p.groupby('s', keys=['a', 'ab', None]).size(epsilon=1)",
    "p.groupby('y', keys=[0, 1, 2, 3, 7]).size(epsilon=1)",
    "p.groupby(['g', 'b'], keys={'g': ['b', 'a']})['z'].var(bounds=(0, 2), epsilon=1)",
    "p.groupby('g', keys=['a', 'b'])['x'].median(bounds=(0, 3), epsilon=1)",
    "p.median('z', bounds=(0, 2), epsilon=1)",
    "p.nunique('s', epsilon=1)",
    "p.unique('s', epsilon=1)",
    "p.unique(['g', 'y'], epsilon=1)",
    "p[['x', 'z']].cov(bounds={'x': (0, 3), 'z': (0, 2)}, epsilon=1)",
    "p.resample('W', on='t', bounds=('2024-01-01', '2024-02-01')).size(epsilon=1)",
    "p.suggest_bounds('x', epsilon=1)",
    "p.assign(v=p['s'].str.upper() + 'x').value_counts('v', keys=['Ax', 'ABx'], epsilon=1)",
    "p.fit(LinearRegression('statistics', l2=1, norm=1), X=['x'], y='z', bounds={'x': (0, 3), 'z': (0, 2)}, epsilon=1)",
)
OF_PEOPLE = (
    "p.suggest_limits('g', keys=['a', 'b', 'c'], epsilon=1)",
    "p.groupby('id').agg(total=('z', 'sum'), last=('y', 'last')).mean('total', bounds=(0, 9), epsilon=1)",
    "p.assign(v=p.groupby('id')['z'].cumsum()).sum('v', bounds=(0, 9), epsilon=1)",
    "p.groupby('id').agg(v=('z', 'median')).sum('v', bounds=(0, 9), epsilon=1)",
    "p.groupby('id').head(1).sum('z', bounds=(0, 2), epsilon=1)",
    "p.assign(v=p.groupby('id')['x'].rank()).sum('v', bounds=(0, 9), epsilon=1)",
)
OF_DERIVED = (
    "p.melt(id_vars=['g'], value_vars=['y', 'x'], max_rows=3, max_groups=2).groupby('g', keys=['a', 'b']).size(epsilon=1)",
    "p.merge(public('g'), on='g', how='left', max_rows=3, max_groups=2).sum('looked', bounds=(0, 2), epsilon=1)",
)


def table(rows: int = 44) -> frames.Table:
    """Rows of a dozen people, most of them with several, and of nobody."""
    r = random.Random(5)
    cells = [
        (r.choice((None, *range(1, 12))), *(r.choice(frames.CELLS[c]) for c in COLUMNS))
        for _ in range(rows)
    ]
    who = [(0, *(r.choice(frames.CELLS[c]) for c in COLUMNS)) for _ in range(3)]
    return frames.Table(COLUMNS, tuple(cells), tuple(who), None)


def case(people: bool) -> Case:
    terms: dict[str, Any] = {"epsilon": 1000, "delta": 1e-4, "because": "made up"}
    if people:
        terms.update(unit="id", max_rows=2, max_groups=2)
    asked = OF_ROWS + (OF_PEOPLE + OF_DERIVED if people else ())
    return Case(0, table(), tuple(terms.items()), tuple(Line([], ask) for ask in asked), ())


NAMES = """
block sum_block key_block hash_block pair_block people_cells people_drawn people_cached people_strip people_few people_parts
people_rows people_thread_rows person_values fit_products text_sample table_numbers table_codes table_spare batch fetch
set_pairs set_shares
"""
# Few people of a strip are gone through one by one, and enough texts are looked at to see that some are equal.
OTHER = {"people_strip": 5, "people_few": 1, "text_sample": 33}
SMALL = {**dict.fromkeys(NAMES.split(), 3), **OTHER}
THREADS = {"threads": 3, "thread_rows": 2, "thread_texts": 4, "thread_sums": 2**18}
WORLDS = {
    "blocks of three rows": World(tuple({**SMALL, "kernel_rows": 2**60}.items())),
    "blocks of four rows, three threads": World(
        tuple({**dict.fromkeys(SMALL, 4), **OTHER, **THREADS, "kernel_rows": 2**60}.items())
    ),
    "pairs of bytes": World((("pair_block", 1), ("block", 6), ("kernel_rows", 2**60))),
    "kernels": World(
        tuple(
            {
                **dict.fromkeys(SMALL, 5),
                **OTHER,
                **THREADS,
                "kernel_rows": 1,
            }.items()
        ),
        "python",
    ),
    "passes over the people": World(tuple({**SMALL, "memory": 8000, "kernel_rows": 2**60}.items())),
}
USUAL: dict[Any, list[Answer]] = {}


def usual(people: bool, engine: str) -> list[Answer]:
    key = people, engine
    if key not in USUAL:
        USUAL[key] = check.run(case(people), 0, (7, 20, 41), engine=engine)
    return USUAL[key]


@pytest.mark.parametrize("people", [False, True], ids=["rows", "people"])
@pytest.mark.parametrize("world", WORLDS)
def test_integers_are_those_of_the_usual_sizes(world, people):
    found = check.run(case(people), 0, (7, 20, 41), WORLDS[world])
    known = usual(people, "pandas")
    assert [one.error for one in known] == [None] * len(known)
    assert check._different(known, found, "size", world) == []


@pytest.mark.parametrize("people", [False, True], ids=["rows", "people"])
@pytest.mark.parametrize("world", ["blocks of three rows", "passes over the people"])
@pytest.mark.parametrize("engine", ["arrow"])
def test_integers_of_a_source_are_those_of_the_same_frame_in_memory(engine, world, people):
    pytest.importorskip(ENGINES[engine].needs[0])
    found = check.run(case(people), 0, (7, 20, 41), WORLDS[world], engine)
    known = usual(people, "arrow frame")
    places = range(len(known))
    assert sum(one.error is None for one in found) >= len(OF_ROWS)
    assert check._engine(known, found, places, world) == []
