"""Random programs on neighbouring frames: nobody can tell the two apart but by noisy numbers (`tests.fuzz.compare`).

A seed that fails is printed with the command that replays it and makes it smaller.
"""

from __future__ import annotations

from fractions import Fraction as F

import pytest

from dpframe import PrivateFrame
from dpframe._session.session import Session
from dpframe.accounting._filter import Price
from dpframe.engines.pandas import PandasEngine
from tests.fuzz.cells import KINDS
from tests.fuzz.compare import Finding, check
from tests.fuzz.programs import Program, make
from tests.fuzz.shrink import shrink

SHARES, PROGRAMS = 4, 12  # some 65 questions each
LONG, LONGER = 10, 95  # some 530 each


def told(found: list[tuple[Program, Finding]]) -> str:
    return "\n".join(
        f"python -m tests.fuzz --of programs --replay --seed {program.seed}  # {one.kind}, line {one.line}: {one.what[:300]}"
        for program, one in found
    )


def findings(first: int, programs: int) -> list[tuple[Program, Finding]]:
    made = [make(seed) for seed in range(first, first + programs)]
    return [(program, one) for program in made for one in check(program)]


@pytest.mark.parametrize("share", range(SHARES))
def test_neighbours_look_alike(share):
    found = findings(1_000_000 + share * PROGRAMS, PROGRAMS)
    assert not found, told(found)


@pytest.mark.slow
@pytest.mark.daily
@pytest.mark.parametrize("share", range(LONG))
def test_neighbours_look_alike_in_five_thousand_questions(share):
    found = findings(2_000_000 + share * LONGER, LONGER)
    assert not found, told(found)


def test_a_seed_is_a_program():
    assert [str(make(seed)) for seed in range(40)] == [str(make(seed)) for seed in range(40)]


def test_every_dtype_is_drawn():
    drawn = {column.kind.name for seed in range(600) for column in make(seed).columns}
    assert drawn == set(KINDS)


# Broken copies -----------------------------------------------------------------------------------------------------------


def first_of(kind: str, start: int, programs: int = 60) -> tuple[Program, Finding]:
    made = (make(seed) for seed in range(start, start + programs))
    return next((program, one) for program in made for one in check(program) if one.kind == kind)


def test_an_error_that_goes_by_the_rows_is_found_and_made_smaller(monkeypatch):
    own = PandasEngine.reduce

    def reduce(self, query, *args):
        if len(self.table.frame) % 2:
            raise ValueError("an odd number of rows")
        return own(self, query, *args)

    monkeypatch.setattr(PandasEngine, "reduce", reduce)
    program, finding = first_of("differs", 3_000_000)
    small = shrink(program, finding, 25)
    assert len(small.lines) <= len(program.lines)
    assert any(one.signature == finding.signature for one in check(small))


def test_a_price_that_goes_by_the_rows_is_found(monkeypatch):
    monkeypatch.setattr(Session, "price", lambda self, *args: Price(F(1, self.rows + 2)))
    assert first_of("differs", 3_000_000)


def test_a_cell_in_a_text_is_found(monkeypatch):
    def cells(frame):
        for _, column in frame._session.snapshot.items():
            if column.dtype == "str":
                yield from map(str, column)

    own = PrivateFrame.__repr__
    monkeypatch.setattr(PrivateFrame, "__repr__", lambda self: own(self) + "".join(cells(self)))
    assert first_of("quotes", 3_000_000, 400)
