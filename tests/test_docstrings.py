"""Docstrings can be read alone: they start with a noun phrase or a verb, and not in the middle of a sentence."""

from __future__ import annotations

import ast
import re

import pytest

from tests.source import parse_modules

pytestmark = pytest.mark.kept  # what it reads is the whole tree, and is read once

# A docstring that starts so goes on from a name, a signature or the docstring before it.
FRAGMENTS = {
    *("About", "Above", "After", "Against", "Also", "Among", "As", "Before", "Behind", "Below", "Beside", "Between", "By"),
    *("For", "From", "If", "In", "Inside", "Is", "Its", "Like", "Near", "No", "Not", "Of", "On", "Over", "Per", "Since"),
    *("Through", "To", "Under", "Until", "When", "With", "Within", "Without", "1"),
}  # fmt: skip
# Clauses that stand for a noun: "In which order the answers come", "For how many rows a person counts".
CLAUSE = re.compile(r"\w+ (which|what|how|where|whom|whose)\b")


def starts_well(text: str) -> bool:
    return text.split()[0].strip(",.:;") not in FRAGMENTS or bool(CLAUSE.match(text))


def test_docstrings_start_with_a_noun_phrase_or_a_verb():
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    texts = [
        (name, ast.get_docstring(node))
        for name, tree in parse_modules().items()
        for node in ast.walk(tree)
        if isinstance(node, documented)
    ]
    wrong = [
        f"{name}: {text.splitlines()[0]}" for name, text in texts if text and not starts_well(text)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "text", ["Of a plan.", "From cells to places.", "Is it?", "1 + the place.", "Its name."]
)
def test_a_fragment_is_seen(text):
    assert not starts_well(text)
