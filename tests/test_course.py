"""The course: a lecture has every numbered statement of its notes, exercises with solutions, pictures of what its cells draw, and
no word that the glossary lacks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpframe.accounting import ACCOUNTANTS
from dpframe.mechanisms._base import MECHANISMS
from tests.pictures import COURSE, PICTURE, walk
from tests.test_docs import FENCE, ROOT

pytest.importorskip("matplotlib", reason="pages of the course draw pictures")

LECTURES = {
    "today": "Today: Differential Privacy",
    "definition": "Definition of Differential Privacy",
    "laplace": "Intro to Differential Privacy, Part 2",
    "privacy": "Privacy",
    "composition": "Composition Theorems",
}
NOTES: dict[str, list[str]] = json.loads(
    (ROOT / "tests/data/lecture_notes.json").read_text("utf-8")
)
NUMBERED = re.compile(r"^((?:Definition|Theorem|Lemma|Fact|Remark|Algorithm) \d+)\b")
# What readers of the notebooks and of plans met before it was explained.
MET_EARLY = [
    "epsilon",
    "sensitivity",
    "L1",
    "L2",
    "add-remove",
    "replace-one",
    "scale",
    "share",
    "residue",
    "filter",
    "reserve",
    "reach",
    "GDP",
]


def text_of(name: str) -> str:
    return (COURSE / f"{name}.md").read_text("utf-8")


def prose(text: str) -> str:
    """A page without its cells and formulas."""
    text = re.sub(r"\$\$.*?\$\$", "", FENCE.sub("", text), flags=re.DOTALL)
    return re.sub(r"\$[^$]*\$", "", text)


# Lectures -----------------------------------------------------------------------------------------------------------------


def statements(text: str) -> set[str]:
    """The numbered statements that a page has, in bold."""
    return {
        m.group(1)
        for bold in re.findall(r"\*\*([^*]+)\*\*", prose(text))
        if (m := NUMBERED.match(bold))
    }


@pytest.mark.parametrize("name", LECTURES)
def test_a_lecture_has_every_numbered_statement_of_its_notes(name: str) -> None:
    wanted = {m.group(1) for entry in NOTES[LECTURES[name]] if (m := NUMBERED.match(entry))}
    assert wanted <= statements(text_of(name))


def test_a_statement_that_is_only_mentioned_does_not_count() -> None:
    assert statements("By Theorem 3. **Theorem 4** (name). $**Theorem 5**$") == {"Theorem 4"}


@pytest.mark.parametrize("name", LECTURES)
def test_theorems_are_proved_on_the_page(name: str) -> None:
    text = text_of(name)
    for start in re.finditer(r"^\*\*(?:Theorem|Lemma|Claim)[^*]*\*\*", text, flags=re.MULTILINE):
        after = text[start.end() : start.end() + 1500]
        if "DP-SGD" in after[:200]:  # whose proof is a page of the guarantees
            assert "](../guarantees/learning.md" in after
        else:
            assert "*Proof" in after, start.group()


def exercises(text: str) -> list[str]:
    found: list[str] = re.split(
        r"^\*\*\d+\.\*\* ", text.partition("\n## Exercises\n")[2], flags=re.MULTILINE
    )
    return found[1:]


@pytest.mark.parametrize("name", LECTURES)
def test_every_exercise_has_a_solution_that_unfolds(name: str) -> None:
    listed = exercises(text_of(name))
    assert len(listed) >= 5
    for exercise in listed:
        # with empty lines around it, as Markdown inside of the tags is read as such then
        solution = re.search(
            r"\n\n<details><summary>Solution</summary>\n\n(.+)\n\n</details>\n",
            exercise,
            flags=re.DOTALL,
        )
        assert solution is not None
        assert len(solution.group(1)) > 80
        assert exercise.count("<details>") == exercise.count("</details>") == 1


@pytest.mark.parametrize("page", sorted(COURSE.glob("*.md")), ids=lambda page: page.stem)
def test_formulas_are_the_same_for_every_reader_of_markdown(page: Path) -> None:
    """A backslash before punctuation is Markdown's own, and a dollar next to a space is a dollar."""
    text = FENCE.sub("", page.read_text("utf-8"))
    display = re.findall(r"\$\$(.*?)\$\$", text, flags=re.DOTALL)
    inline = re.findall(r"\$([^$]+)\$", re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL))
    for formula in [*display, *inline]:
        assert not re.search(r"\\[^A-Za-z\s\\]", formula), formula
        assert formula.count("{") == formula.count("}"), formula
    assert [formula for formula in inline if formula != formula.strip() or "\n\n" in formula] == []


# Pictures -----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("name", LECTURES)
def test_every_picture_is_there_and_is_drawn_by_the_cell_above_it(name: str) -> None:
    seen = []

    def look(caption: str, path: str, figure: object) -> None:
        assert figure is not None, f"nothing is drawn above {path}"
        assert (COURSE / path).read_bytes()[:4] == b"\x89PNG"
        assert len(caption) > 40, "whoever does not see a picture reads its caption"
        seen.append(path)

    walk(COURSE / f"{name}.md", look)
    assert seen


def test_no_picture_is_left_over() -> None:
    linked = {
        path for page in COURSE.glob("*.md") for _, path in PICTURE.findall(page.read_text("utf-8"))
    }
    assert linked == {f"pictures/{file.name}" for file in (COURSE / "pictures").iterdir()}


def test_a_picture_that_nothing_draws_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n![a caption](pictures/x.png)\n", encoding="utf-8")
    shown: list[object] = []
    walk(page, lambda caption, path, figure: shown.append(figure))
    assert shown == [None]


# Errata -------------------------------------------------------------------------------------------------------------------


def test_errata_of_the_five_notes_say_what_is_right() -> None:
    parts = re.split(r"^## ", text_of("errata"), flags=re.MULTILINE)[1:]
    assert sorted(part.partition("\n")[0] for part in parts) == sorted(LECTURES.values())
    for part in parts:
        rows = [line for line in part.splitlines() if line.startswith("|")][2:]
        assert rows
        for row in rows:
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
            assert len(cells) == 3, row  # a bar in a formula would cut the cell
            assert all(cells), row


# Glossary -----------------------------------------------------------------------------------------------------------------


def words(text: str) -> list[str]:
    return [
        word.strip()
        for line in re.findall(r"^### (.+)$", text, flags=re.MULTILINE)
        for word in line.split(", ")
    ]


def defined(text: str) -> Iterator[str]:
    """What a page sets in bold: the words that it defines. Numbered statements and the leads of paragraphs are no words."""
    text = prose(text)
    for bold in re.finditer(r"\*\*([^*]+)\*\*", text):
        word = " ".join(bold.group(1).split())
        leads = text[: bold.start()].endswith("\n\n")
        if not leads and not NUMBERED.match(word) and word[-1] not in ".:!":
            yield word.lower()


@pytest.mark.parametrize("name", LECTURES)
def test_the_glossary_has_every_word_that_a_lecture_defines(name: str) -> None:
    known = {word.lower() for word in words(text_of("glossary"))}
    assert [word for word in defined(text_of(name)) if word not in known] == []


def test_the_glossary_has_the_names_that_plans_and_reports_print() -> None:
    known = set(words(text_of("glossary")))
    assert set(ACCOUNTANTS) <= known
    missing = {name for name in MECHANISMS if name not in known}
    assert {name.split()[-1].removesuffix("s") for name in missing} <= {
        "threshold"
    }  # those of groups, one word for all
    assert "threshold" in known
    assert set(MET_EARLY) <= known


def test_no_word_stands_in_the_glossary_twice_and_each_has_a_page() -> None:
    text = text_of("glossary")
    assert len(set(words(text))) == len(words(text))
    for entry in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        assert "](" in entry.partition("\n## ")[0] or "Above" in entry, entry


def test_every_word_of_the_glossary_is_used_somewhere_else() -> None:
    pages = [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "notebooks").glob("*.ipynb"),
        ROOT / "README.md",
    ]
    used = "\n".join(page.read_text("utf-8") for page in pages if page.name != "glossary.md")
    unused = [
        w
        for w in words(text_of("glossary"))
        if not re.search(rf"\b{re.escape(w)}", used, flags=re.IGNORECASE)
    ]
    assert unused == []


def test_a_word_in_bold_that_the_glossary_lacks_is_noticed() -> None:
    page = "A.\n\n**Lead.** About the **hypothesis\nclass** of it.\n\n**Theorem 3** (name). Let **x** be\n\n**Theorem 4.** no"
    assert list(defined(page)) == ["hypothesis class", "x"]
