"""The integers of random questions: of neighbours, at every place, in every world of sizes, in every engine.

A seed that fails is printed with the command that replays it and makes it smaller.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from dpframe._questions.question import Query
from dpframe._session.session import Session
from dpframe._sizes import SIZES
from dpframe.engines.pandas import PandasEngine
from tests.fuzz.compare import Finding
from tests.fuzz.seams import cases, check, examples, frames, worlds
from tests.fuzz.seams.cases import Case, Look
from tests.fuzz.seams.engines import ENGINES
from tests.fuzz.seams.examples import Line
from tests.fuzz.seams.worlds import World

SHARES, CASES = 3, 1  # twelve lines each, asked of six tables
KERNELS = ("none", "python")  # numba reads the same functions, and takes seconds to compile them


def told(found: list[tuple[Case, Finding]], kernels: tuple[str, ...]) -> str:
    return "\n".join(
        f"python -m tests.fuzz --replay --seed {case.seed} --kernels {','.join(kernels)}"
        f"  # {one.kind} in {' '.join(map(str, case.lines[one.line : one.line + 1]))}: {one.what[:300]}"
        for case, one in found
    )


def findings(first: int, many: int, kernels: tuple[str, ...]) -> list[tuple[Case, Finding]]:
    drawn = (cases.make(seed, kernels=kernels) for seed in range(first, first + many))
    return [(case, one) for case in drawn for one in check.check(case)]


@pytest.mark.parametrize("share", range(SHARES))
def test_integers_depend_on_no_place_size_thread_kernel_or_engine(share):
    found = findings(7_000_000 + share * CASES, CASES, KERNELS)
    assert not found, told(found, KERNELS)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(20))
def test_integers_of_thousands_of_questions_depend_on_nothing_but_rows(share):
    found = findings(8_000_000 + share * 9, 9, worlds.KERNELS)
    assert not found, told(found, worlds.KERNELS)


def test_a_seed_is_a_case():
    assert [str(cases.make(seed)) for seed in range(3)] == [
        str(cases.make(seed)) for seed in range(3)
    ]


def test_worlds_set_every_size_that_no_answer_depends_on():
    r = random.Random(0)
    drawn = {name for _ in range(50) for name, _ in worlds.draw(r).sizes}
    assert drawn == {name for name in type(SIZES).__slots__ if name not in worlds.FREE}


def test_moved_row_stands_at_both_ends_and_at_edges_of_blocks():
    world = World((("block", 4), ("threads", 3)))
    assert {0, 3, 4, 5, 12, 20, 6, 13} <= set(worlds.edges(world, 20))


def test_rows_of_one_stand_at_their_places():
    others = tuple((i, float(i)) for i in range(3))
    table = frames.Table(("x",), others, ((9, 0.5), (9, 0.75)), ((9, 1.5),))
    assert [x for _, x in table.rows(0, (0, 2))] == [0.5, 0.0, 1.0, 0.75, 2.0]
    assert [x for _, x in table.rows(0, (3,))] == [0.0, 1.0, 2.0, 0.5, 0.75]
    assert [x for _, x in table.rows(1, (1,))] == [0.0, 1.5, 1.0, 2.0]


def test_another_order_leaves_each_person_their_own():
    rows = [(i % 4, i) for i in range(40)]
    mixed = frames.interleaved(random.Random(1), rows)
    assert sorted(mixed) == sorted(rows)
    assert mixed != rows
    assert all([r for r in mixed if r[0] == k] == [r for r in rows if r[0] == k] for k in range(4))


# Broken copies: each kind of finding is made once, and found -------------------------------------------------------------


WHOLE = True  # whether lines are asked whole each time, or read for the questions of the first time


@pytest.fixture(params=[True, False], ids=["whole", "read"])
def each_way(request, monkeypatch):
    monkeypatch.setitem(globals(), "WHOLE", request.param)


def case_of(
    *lines: Line,
    rows: int = 24,
    people: bool = False,
    looks: Any = (),
    pairs: Any = (),
    **words: Any,
) -> Case:
    """A case of plain rows."""
    cells = tuple((i % 7, float(i % 3), i % 4, "ab"[i % 2]) for i in range(rows))
    own = ((50, 1.0, 1, "a"),)
    table = frames.Table(("x", "y", "g"), cells, own, None)
    terms = {"epsilon": 1000, "because": "made up", "bounds": {"x": (0, 2), "y": (0, 3)}, **words}
    if people:
        terms.update(unit="id", max_rows=2, max_groups=2)
    looked = tuple(Look(*look, WHOLE) for look in looks)
    return Case(
        1,
        table,
        tuple(terms.items()),
        tuple(lines),
        looked,
        WHOLE,
        pairs=tuple(pairs),
        exact=bool(pairs),
    )


COUNT, SUM = Line([], "p.count(epsilon=1)"), Line([], "p.sum('x', epsilon=1)")


def kinds(case: Case) -> set[str]:
    return {finding.kind for finding in check.check(case)}


@pytest.mark.usefixtures("each_way")
def test_plain_rows_have_no_findings():
    looks = [
        (side, (at,), World((("block", 5), ("threads", 3))), "pandas", True)
        for side in (0, 1)
        for at in (0, 5, 24)
    ]
    assert kinds(case_of(COUNT, SUM, looks=looks)) == set()
    assert kinds(case_of(COUNT, SUM, looks=looks, people=True)) == set()


@pytest.mark.usefixtures("each_way")
def test_a_row_that_counts_twice_is_found(monkeypatch):
    own = PandasEngine.reduce
    monkeypatch.setattr(
        PandasEngine, "reduce", lambda self, *args: {p: 2 * a for p, a in own(self, *args).items()}
    )
    assert "sensitivity" in kinds(case_of(COUNT))


@pytest.mark.usefixtures("each_way")
def test_a_sum_that_goes_by_the_place_of_a_row_is_found(monkeypatch):
    own = PandasEngine.reduce

    def reduce(self: Any, *args: Any) -> Any:
        first = self.table.frame["x"].iloc[:1].eq(1.0).any()
        return {p: a + int(first) for p, a in own(self, *args).items()}

    monkeypatch.setattr(PandasEngine, "reduce", reduce)
    assert "place" in kinds(case_of(COUNT, looks=[(0, (0,), worlds.USUAL, "pandas", False)]))


@pytest.mark.usefixtures("each_way")
def test_a_sum_that_goes_by_a_size_is_found(monkeypatch):
    own = PandasEngine.reduce
    monkeypatch.setattr(
        PandasEngine,
        "reduce",
        lambda self, *args: {p: a + (SIZES.block < 9) for p, a in own(self, *args).items()},
    )
    looks = [(0, (12,), World((("block", 5),)), "pandas", False)]
    assert kinds(case_of(COUNT, looks=looks)) == {"place"}


def test_a_sum_that_is_another_each_time_is_found(monkeypatch):
    own, seen = PandasEngine.reduce, []

    def reduce(self: Any, *args: Any) -> Any:
        seen.append(1)
        return {p: a + len(seen) // 3 for p, a in own(self, *args).items()}

    monkeypatch.setattr(PandasEngine, "reduce", reduce)
    assert "repeated" in kinds(case_of(COUNT))


@pytest.mark.usefixtures("each_way")
def test_an_error_of_one_neighbour_is_found(monkeypatch):
    own = PandasEngine.reduce

    def reduce(self: Any, *args: Any) -> Any:
        if len(self.table.frame) == 25:
            raise ValueError("a cell")
        return own(self, *args)

    monkeypatch.setattr(PandasEngine, "reduce", reduce)
    assert kinds(case_of(COUNT)) >= {"differs", "fails"}


@pytest.mark.usefixtures("each_way")
@pytest.mark.skipif(not ENGINES["arrow"].installed, reason="pyarrow is not installed")
def test_an_engine_that_answers_otherwise_is_found(monkeypatch):
    from dpframe.engines.parts import PartsEngine

    own = PartsEngine.reduce
    monkeypatch.setattr(
        PartsEngine, "reduce", lambda self, *args: {p: a + 1 for p, a in own(self, *args).items()}
    )
    assert kinds(case_of(COUNT, looks=[(0, (0,), worlds.USUAL, "arrow", False)])) == {"engine"}


@pytest.mark.usefixtures("each_way")
def test_a_finding_is_made_smaller(monkeypatch):
    own = PandasEngine.reduce
    monkeypatch.setattr(
        PandasEngine, "reduce", lambda self, *args: {p: 2 * a for p, a in own(self, *args).items()}
    )
    case = case_of(SUM, COUNT, looks=[(0, (0,), worlds.USUAL, "pandas", False)])
    small = check.shrink(case, check.check(case)[0], 60)
    assert len(small.lines) == 1
    assert small.looks == ()
    assert len(small.table.others) < 5


KEYS = "p.groupby('g', keys={})['x'].sum(epsilon=1)"
IN_OTHER_WORDS = (
    (Line([], KEYS.format("['a', 'b', 'c']")), Line([], KEYS.format("['c', 'a', 'b']"))),
)


def test_a_release_in_other_words_has_no_findings():
    assert kinds(case_of(COUNT, pairs=IN_OTHER_WORDS)) == set()
    assert kinds(case_of(COUNT, pairs=IN_OTHER_WORDS, people=True)) == set()


def test_integers_from_the_record_that_belong_to_other_groups_are_found(monkeypatch):
    monkeypatch.setattr(Query, "_rearrange", lambda self, release, recorded, wanted: release.raw)
    assert kinds(case_of(COUNT, pairs=IN_OTHER_WORDS)) == {"record"}


def test_a_release_that_is_paid_again_in_other_words_is_found(monkeypatch):
    own = Query.identify

    def identify(self: Any, *args: Any) -> Any:
        identity = own(self, *args)
        return identity._replace(code=identity.code + str(self).encode(), vectors=())

    monkeypatch.setattr(Query, "identify", identify)
    words = (
        "p.agg(m=('x', 'mean'), epsilon=1)",
        "p.agg(n=('x', 'size'), m=('x', 'mean'), epsilon=1)",
    )
    assert "words" in kinds(case_of(COUNT, pairs=((Line([], words[0]), Line([], words[1])),)))


def test_other_cells_are_asked_the_same(monkeypatch):
    """What goes by cells of a table that is not the first is found, too."""
    case = case_of(COUNT, SUM)
    table = frames.Table(
        case.table.columns,
        tuple((who, 2.0, *more) for who, _, *more in case.table.others),
        case.table.own,
        None,
    )
    assert check.check(replace(case, more=((table, Look(0, (3,))),))) == []
    own = PandasEngine.reduce

    def reduce(self: Any, *args: Any) -> Any:
        wrong = self.table.frame["x"].eq(2.0).sum() == 24 and len(self.table.frame) == 25
        return {p: a + 2 * wrong for p, a in own(self, *args).items()}

    monkeypatch.setattr(PandasEngine, "reduce", reduce)
    assert kinds(case) == set()
    assert kinds(replace(case, more=((table, Look(0, (24,))),))) == {"sensitivity"}


def test_the_door_is_the_session_s_own():
    """What is listened to is released by the session's own code, and afterwards sessions are as they were."""
    own = Session._noise
    with check.listening(3) as door:
        assert Session._noise is not own
    assert Session._noise is own
    assert door.calls == []


def test_examples_are_drawn_from_every_registry():
    drawn: set[str] = set()
    for seed in range(8):
        for line in cases.make(seed).lines:
            drawn |= {
                word
                for word in ("np.", ".str", ".dt", ".groupby(", ".merge(", ".melt(", ".explode(")
                if word in str(line)
            }
    assert drawn == {"np.", ".str", ".dt", ".groupby(", ".merge(", ".melt(", ".explode("}
    assert set(examples.EXPRESSIONS) == {
        "ufuncs",
        "numpy",
        "column",
        "text",
        "time",
        "category",
        "operators",
        "functions",
    }
