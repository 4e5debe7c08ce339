"""A smaller program that shows the same: lines, steps, words, columns and rows left out one by one, as long as it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.compare import Finding, check
from tests.fuzz.programs import Column, Line, Program

KEPT = ("epsilon", "neighbors")


def shrink(program: Program, finding: Finding, tries: int = 400) -> Program:
    """The smallest that was found in so many tries."""

    def shows(candidate: Program) -> bool:
        try:
            return any(f.signature == finding.signature for f in check(candidate))
        except Exception:
            return False

    best, left, again = program, tries, True
    while again and left > 0:
        again = False
        for make in (_lines, _steps, _columns, _rows, _words, _cells):
            for candidate in _each(make, lambda: best):  # noqa: B023  (the best by then)
                left -= 1
                if left <= 0:
                    return best
                if shows(candidate):
                    best, again = candidate, True
    return best


def _each(
    make: Callable[[Program, int], Program | None], current: Callable[[], Program]
) -> Iterator[Program]:
    """Candidates of the program as it is by then; where one was taken, the same place is tried again."""
    place = 0
    while True:
        before = current()
        candidate = make(before, place)
        if candidate is None:
            return
        yield candidate
        if current() is before:
            place += 1


def _lines(program: Program, i: int) -> Program | None:
    at = len(program.lines) - 1 - i
    return (
        None if at < 0 else replace(program, lines=[*program.lines[:at], *program.lines[at + 1 :]])
    )


def _steps(program: Program, i: int) -> Program | None:
    places = [(a, b) for a, line in enumerate(program.lines) for b in range(len(line.steps))]
    if i >= len(places):
        return None
    a, b = places[i]
    line = program.lines[a]
    lines = list(program.lines)
    lines[a] = Line([*line.steps[:b], *line.steps[b + 1 :]], line.ask)
    return replace(program, lines=lines)


def _columns(program: Program, i: int) -> Program | None:
    free = [c for c in program.columns if c.name not in program.people]
    if i >= len(free) or len(program.columns) == 1:
        return None
    return replace(program, columns=[c for c in program.columns if c is not free[i]])


def _rows(program: Program, i: int) -> Program | None:
    """Without a row that both have."""
    shared = _shared(program)
    if i >= len(shared):
        return None
    a, b = shared[i]
    columns = [
        Column(
            c.name,
            c.kind,
            ([*c.cells[0][:a], *c.cells[0][a + 1 :]], [*c.cells[1][:b], *c.cells[1][b + 1 :]]),
        )
        for c in program.columns
    ]
    return replace(program, columns=columns)


def _shared(program: Program) -> list[tuple[int, int]]:
    sides = [list(zip(*(c.cells[s] for c in program.columns), strict=True)) for s in (0, 1)]
    found, taken = [], set()
    for a, row in enumerate(sides[0]):
        b = next((j for j, other in enumerate(sides[1]) if other == row and j not in taken), None)
        if b is not None:
            taken.add(b)
            found.append((a, b))
    return found


def _cells(program: Program, i: int) -> Program | None:
    """With the tamest cell in place of a wild one of one side."""
    places = [
        (c, s, r)
        for c, column in enumerate(program.columns)
        if column.name not in program.people
        for s in (0, 1)
        for r in range(len(column.cells[s]))
        if column.cells[s][r]
    ]
    if i >= len(places) or len(places) > 200:
        return None
    c, s, r = places[i]
    columns = list(program.columns)
    cells = tuple(list(x) for x in columns[c].cells)
    cells[s][r] = 0
    columns[c] = Column(columns[c].name, columns[c].kind, cells)  # type: ignore[arg-type]
    return replace(program, columns=columns)


def _words(program: Program, i: int) -> Program | None:
    free = [word for word in program.terms if word not in KEPT]
    candidates = [
        *(replace(program, terms={w: v for w, v in program.terms.items() if w != word}) for word in free),
        *(replace(program, bounds={n: v for n, v in program.bounds.items() if n != name}) for name in program.bounds),
        *(replace(program, keys={n: v for n, v in program.keys.items() if n != name}) for name in program.keys),
        *(replace(program, **{mode: False}) for mode in ("labels", "strict", "filed") if getattr(program, mode)),
    ]  # fmt: skip
    return candidates[i] if i < len(candidates) else None
