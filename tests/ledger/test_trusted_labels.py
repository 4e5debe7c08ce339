"""Labels of the first format are made only where no two questions about a frame could have had the same one."""

from __future__ import annotations

import pytest

from tests.internals import trusted


@pytest.mark.parametrize(
    ("names", "version"),
    [
        ([1, "1"], None),
        ([True, "True"], None),
        ([("a", 1), "('a', 1)"], None),
        ([object()], None),
        (["a"], "2026|derived"),
    ],
)
def test_columns_that_print_alike_and_versions_with_a_bar_have_none(names, version):
    assert not trusted(names, version)


@pytest.mark.parametrize(("names", "version"), [([], None), (["a", 1, ("a", 1)], "2026-11"), (["a|b"], "")])
def test_others_have(names, version):
    assert trusted(names, version)
