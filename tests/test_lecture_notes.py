"""docs/explain/lecture-notes.md is complete, and every name in it exists: functions, guarantees and tests."""

from __future__ import annotations

import ast
import importlib
import json
import re
import typing
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.test_docs import anchors

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "explain" / "lecture-notes.md"
# Numbers and headings of the notes, which are not in this repository.
LISTED: dict[str, list[str]] = json.loads(
    (ROOT / "tests/data/lecture_notes.json").read_text("utf-8")
)
COLUMNS = ["in the notes", "what it says", "in dpframe", "guarantee", "test"]


class Row(NamedTuple):
    notes: str
    entry: str
    says: str
    functions: list[str]
    links: list[str]
    tests: list[str]


def rows(text: str) -> list[Row]:
    found = []
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        for line in body.splitlines():
            if not line.startswith("|") or set(line) <= set("|- "):
                continue
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            assert len(cells) == len(COLUMNS), f"{title}: a row of {len(cells)} cells: {line}"
            if cells == COLUMNS:
                continue
            functions, tests = (re.findall(r"`([^`]+)`", cell) for cell in (cells[2], cells[4]))
            links = re.findall(r"\]\(([^)\s]+)\)", cells[3])
            found.append(Row(title.strip(), cells[0], cells[1], functions, links, tests))
    return found


def resolve(name: str) -> Any:
    """What a dotted name stands for. A property stands for what it says it returns, so that ``budget.for_group`` is found."""
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:i]))
        except ModuleNotFoundError:
            continue
        for part in parts[i:]:
            if isinstance(thing, property):
                thing = typing.get_type_hints(thing.fget)["return"]
            thing = getattr(thing, part)
        return thing
    raise AttributeError(name)


@cache
def functions_in(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def problems(text: str, listed: dict[str, list[str]] = LISTED) -> list[str]:
    """Everything that is wrong with a page; nothing of the right one."""
    found, given = [], rows(text)
    for notes, entries in listed.items():
        on_page = Counter(row.entry for row in given if row.notes == notes)
        found += [f"{notes}: {entry} is missing" for entry in entries if not on_page[entry]]
        found += [f"{notes}: {entry} stands there twice" for entry, n in on_page.items() if n > 1]
    for row in given:
        at = f"{row.notes}: {row.entry}"
        if row.entry not in listed.get(row.notes, []):
            found.append(f"{at} is not in the notes")
        for what, named in (("function", row.functions), ("test", row.tests), ("word", row.says)):
            if not named:
                found.append(f"{at}: no {what}")
        if not any(link.startswith("../guarantees/") for link in row.links):
            found.append(f"{at}: no guarantee")
        for name in row.functions:
            try:
                resolve(name)
            except (AttributeError, KeyError):
                found.append(f"{at}: {name} does not exist")
        for link in row.links:
            path, _, anchor = link.partition("#")
            target = (PAGE.parent / path).resolve()
            if not target.is_file() or (anchor and anchor not in anchors(target)):
                found.append(f"{at}: {link} does not exist")
        for name in row.tests:
            file, _, test = name.partition("::")
            path = ROOT / file
            if not path.is_file() or test not in functions_in(path):
                found.append(f"{at}: {name} does not exist")
    return found


def test_everything_in_the_notes_has_a_function_a_guarantee_and_a_test():
    text = PAGE.read_text("utf-8")
    assert problems(text) == []
    assert len(rows(text)) == sum(map(len, LISTED.values()))


def test_every_number_of_the_notes_is_listed():
    """No gap between the numbers: nothing was left out when the list was made."""
    numbers = {
        notes: {int(n) for e in entries for n in re.findall(r"^(?:[A-Z][a-z]+) (\d)", e)}
        for notes, entries in LISTED.items()
    }
    assert numbers == {
        "Intro to Differential Privacy, Part 2": set(range(1, 9)),
        "Privacy": set(range(1, 10)),
        "Composition Theorems": set(range(1, 8)),
        "Today: Differential Privacy": set(),
        "Definition of Differential Privacy": set(range(1, 5)),
    }


BROKEN = {
    "a definition is missing": (r"^\| Definition 4 \|.*\n", "", "Definition 4 is missing"),
    "a theorem is missing": (r"^\| Theorem 4 \|.*\n", "", "Theorem 4 is missing"),
    "an algorithm is missing": (r"^\| Algorithm 1 \|.*\n", "", "Algorithm 1 is missing"),
    "a row twice": (r"^(\| Lemma 7 \|.*\n)", r"\1\1", "Lemma 7 stands there twice"),
    "an invented theorem": (r"^\| Lemma 7 \|", "| Lemma 8 |", "Lemma 8 is not in the notes"),
    "another heading": (r"^## Privacy$", "## Privacies", "Summary 9 is missing"),
    "a wrong function": (r"laplace_scale", "laplace_scales", "laplace_scales does not exist"),
    "a wrong module": (
        r"dpframe\.audit\.",
        "dpframe.audits.",
        "dpframe.audits.replay does not exist",
    ),
    "a wrong method": (r"budget\.for_group", "budget.for_groups", "for_groups does not exist"),
    "a wrong page": (
        r"guarantees/laplace\.md",
        "guarantees/laplaces.md",
        "laplaces.md does not exist",
    ),
    "a wrong anchor": (r"#divergences", "#divergence", "#divergence does not exist"),
    "a wrong test": (r"::test_every_set", "::test_each_set", "test_each_set_of_answers"),
    "a wrong file": (r"tests/test_attacks\.py", "tests/test_attack.py", "test_attack.py"),
    "no test": (r"^(\| Fact 5 \|.*\|)[^|]*\|$", r"\1 |", "Fact 5: no test"),
    "no guarantee": (r"^(\| Fact 5 \|.*\|)[^|]*\|([^|]*\|)$", r"\1 |\2", "Fact 5: no guarantee"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_copy_of_the_page_is_noticed(name):
    pattern, replacement, told = BROKEN[name]
    text = PAGE.read_text("utf-8")
    broken = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    assert broken != text
    assert any(told in problem for problem in problems(broken))


def test_a_number_that_is_added_to_the_notes_is_asked_for():
    text, more = PAGE.read_text("utf-8"), {**LISTED, "Another lecture": ["Theorem 1"]}
    assert problems(text, more) == ["Another lecture: Theorem 1 is missing"]
