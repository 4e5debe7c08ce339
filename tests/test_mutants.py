"""The list of mutants: each still has its text, its killers or a reason, and a share of them is really killed."""

from __future__ import annotations

import datetime
from collections import Counter
from dataclasses import replace

import pytest

from tests.mutants.run import KINDS, Mutant, failing, missing, mutants, run, share, stale

FEWEST = 440
KILLER = "tests/accounting/test_filters.py::test_a_count_is_as_many_charges[pure-8]"
DELTA = Mutant(
    "x",
    "x",
    "accounting/_sums.py",
    (("each = delta / sum(n", "each = delta * sum(n"),),
    "privacy",
    "x",
)


def test_there_are_enough_and_no_name_twice():
    listed = mutants()
    assert len(listed) >= FEWEST
    assert not [name for name, n in Counter(m.name for m in listed).items() if n > 1]


@pytest.mark.parametrize("area", sorted({mutant.area for mutant in mutants()}))
def test_mutants_of_an_area_apply_and_are_python(area):
    chosen = [mutant for mutant in mutants() if mutant.area == area]
    assert chosen
    assert [problem for mutant in chosen if (problem := stale(mutant))] == []
    assert [m.name for m in chosen if any(old == new for old, new in m.edits)] == []


def test_a_text_that_has_moved_is_told_with_the_places_where_it_may_be():
    moved = replace(DELTA, file="accounting/_additive.py")
    assert "it stands once in accounting/_sums.py" in stale(moved)
    changed = replace(DELTA, edits=(("each = delta / sum(m for loss, m", "each = delta"),))
    assert "like it: each = delta / sum(n for loss, n" in stale(changed)
    assert "no_such" in stale(replace(DELTA, file="no_such.py"))
    assert "invalid syntax" in stale(
        replace(DELTA, edits=(("each = delta / sum(n", "each = = (n"),))
    )


def test_it_says_what_goes_wrong_and_who_sees_it_or_why_nobody_does():
    listed = mutants()
    assert [m.name for m in listed if m.kind not in KINDS] == []
    assert [m.name for m in listed if not m.why] == []
    assert [m.name for m in listed if bool(m.killers) == bool(m.reason)] == []


@pytest.mark.slow
def test_killers_exist():
    wrong = replace(DELTA, killers=(KILLER, "tests/test_none.py::test_x", KILLER + "x"))
    assert missing([*mutants(), wrong]) == [KILLER + "x", "tests/test_none.py::test_x"]


@pytest.mark.slow
def test_a_share_of_them_is_killed():
    """Another share each day, so that a commit need not wait for the whole list: `make mutants` runs that."""
    chosen = share(mutants(), 5, datetime.date.today().toordinal())
    left = [
        (one.mutant.name, one.verdict, one.more) for one in run(chosen) if one.verdict != "killed"
    ]
    assert not left


def test_every_mutant_has_its_turn():
    listed = mutants()
    turns = -(-len(listed) // 7)
    assert {m.name for turn in range(turns) for m in share(listed, 7, turn)} == {
        m.name for m in listed if m.runs
    }


# The runner itself: what it calls killed, survived and neither -------------------------------------------------


@pytest.mark.slow
def test_a_harmless_change_survives_and_a_stale_or_broken_one_is_told():
    same = replace(
        DELTA,
        name="same",
        killers=(KILLER,),
        edits=(("each = delta / sum(n", "each = delta/sum(n"),),
    )
    stale = replace(same, name="stale", edits=(("each = delta / needed", "each = delta"),))
    twice = replace(same, name="twice", edits=(("delta", "epsilon"),))
    no_test = replace(
        same, name="no test", killers=("tests/accounting/test_filters.py::test_nothing",)
    )
    killed = replace(same, name="killed", edits=DELTA.edits)
    verdicts = {one.mutant.name: one.verdict for one in run([same, stale, twice, killed])}
    assert verdicts == {"same": "survived", "stale": "stale", "twice": "stale", "killed": "killed"}
    assert [one.verdict for one in run([no_test])] == ["broken"]


@pytest.mark.slow
def test_a_change_that_never_ends_is_killed_by_the_time_limit():
    endless = replace(
        DELTA,
        killers=(KILLER,),
        edits=(("each = delta / sum(n", "each = next(filter(None, iter(int, 1))) * sum(n"),),
    )
    (one,) = run([endless], limit=6)
    assert (one.verdict, one.more) == ("killed", "by the time limit")


def test_failing_tests_are_read_from_the_summary():
    assert failing("..F\nFAILED tests/a.py::b[c - d] - assert 1\nERROR tests/a.py\n1 failed") == [
        "tests/a.py::b[c - d] - assert 1",
        "tests/a.py",
    ]
