"""The page about pandas' names says what tracked objects say."""

from __future__ import annotations

import pytest

from tests.grammar.coverage import PAGE, objects, page, rows

KINDS = objects()


def test_the_page_is_what_tracked_objects_say():
    assert page() == PAGE.read_text("utf-8"), "python -m tests.grammar.coverage writes it anew"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_absent_says_a_sentence_and_names_no_class_of_the_package(kind):
    for row in rows(*KINDS[kind]):
        if not row.has:
            assert row.says.endswith((".", ")")), row
            assert len(row.says) > 30, row
            assert "PrivateFrame" not in row.says, row
            assert "PrivateColumn" not in row.says, row
