"""Patterns raise before the debit or never, and the first matches are those of Python's ``re.sub`` with ``count=``."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe
from dpframe import BadType, BadValue
from dpframe import _expr as ex

pytest.importorskip(
    "pyarrow", reason="patterns that repeat are matched by RE2, which pyarrow brings"
)

# No pattern here matches both nothing and something: after a match RE2 skips an empty one, which Python does not.
PATTERNS = [
    r"\b",
    r"\B",
    r"\Bs",
    r"\bs",
    "^a",
    "a$",
    "a",
    "(a)(b)",
    r"\w+",
    "[ab]+",
    "a|b",
    "$",
    "^",
    r"(?:^|b)a",
    "\ue000",
]
REPLACEMENTS = ["z", "", "<>", "\\\\", "\ue000", "\ue001z\ue000"]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.text("abs -é\ue000\ue001\n", min_size=1, max_size=12), min_size=1, max_size=5),
    st.sampled_from(PATTERNS),
    st.sampled_from(REPLACEMENTS),
    st.integers(1, 5),
    st.booleans(),
)
def test_the_first_matches_are_those_of_python(texts, pattern, new, count, case):
    asked = ex.Pattern("replace", pattern, case, 0, new, count)
    known = re.compile(pattern.replace("$", r"\Z"), re.NOFLAG if case else re.IGNORECASE)
    if pattern in (r"\b", r"\Bs", r"\bs", r"\w+"):  # letters of RE2 are those of ASCII
        texts = [t.replace("é", "") or "-" for t in texts]
    wanted = [
        None if pattern == r"\B" and not t.isascii() else known.sub(new, t, count) for t in texts
    ]
    assert ex.find(texts, asked) == wanted


def test_a_group_of_a_first_match_is_its_own():
    asked = ex.Pattern("replace", "(a)(.)", True, 0, r"\2\1", 1)
    assert ex.find(["xab ac", "", "a", None], asked) == ["xba ac", "", "a", None]


def test_a_text_without_a_free_mark_is_null():
    every = "".join(map(chr, range(0xE000, 0x110000)))
    assert ex.find([every, "ab"], ex.Pattern("replace", "a", True, 0, "z", 1)) == [None, "zb"]


@pytest.mark.parametrize("pattern", [r"\B", r"(?:)\B", r"\Ba?", r"a*\B|b"])
@pytest.mark.parametrize("most", [-1, 1])
def test_a_place_between_two_bytes_is_null_and_nothing_raises(pattern, most):
    """On the commit before, a letter beyond ASCII was cut in two, and the read raised if somebody had one."""
    found = ex.find(["aé", "éé", "ab"], ex.Pattern("replace", pattern, replacement="z", most=most))
    assert found[:2] == [None, None]
    assert found[2] is not None


@pytest.mark.parametrize("pattern", [r"\Bs", r"\b", r"\BHIV", r"\B", "^a"])
@pytest.mark.parametrize("count", [1, 2, 10**30])
def test_no_cell_makes_a_pattern_raise(pattern, count):
    """On the commit before, Arrow raised at the first cell in which such a pattern occurs."""
    cells = ["-", "aids", "a", "xHIV", "ab", "aab", "\0.", "\ud800", "é" * 100, None]
    p = pd.DataFrame({"s": pd.Series(cells, dtype=object)}).dp.open(1000)
    known = re.compile(pattern)
    wanted = [known.sub("z", c, min(count, 99)) for c in cells[:6]]
    changed = p["s"].str.replace(pattern, "z", regex=True, n=count)
    found = p[changed.isin(wanted)].count(epsilon=900)
    assert found == len(cells[:6])
    assert (
        ex.find(cells[:6], ex.Pattern("replace", pattern, True, 0, "z", min(count, 99))) == wanted
    )


ASKED = {
    "contains": lambda s, pat: s.contains(pat),
    "match": lambda s, pat: s.match(pat),
    "fullmatch": lambda s, pat: s.fullmatch(pat),
    "count": lambda s, pat: s.count(pat),
    "extract": lambda s, pat: s.extract(f"({pat})"),
    "replace": lambda s, pat: s.replace(pat, "z", regex=True),
    "replace some": lambda s, pat: s.replace(pat, "z", regex=True, n=1),
}


@pytest.mark.parametrize("op", ASKED)
@pytest.mark.parametrize(
    "pattern",
    ["\ud800.", "(", r"(?=a)", r"(.)\1", "(a{1000}){1000}", "x." * 1000, "*", r"\p{Nonsense}"],
)
def test_a_pattern_that_cannot_be_asked_is_refused_before_it_is_paid(op, pattern):
    p = pd.DataFrame({"s": pd.Series(["a", None], dtype="str")}).dp.open(1000)
    with pytest.raises((BadValue, BadType)):
        ASKED[op](p["s"].str, pattern)
    assert p.budget.spent == 0


@pytest.mark.parametrize(
    "new", ["\\", "\\q", "\\n", "\\0", "\\2", "\\12", "\\g<1>", "\ud800", "a\\"]
)
@pytest.mark.parametrize("n", [-1, 1])
def test_a_replacement_that_names_no_group_is_refused_before_it_is_paid(new, n):
    p = pd.DataFrame({"s": pd.Series(["a", None], dtype="str")}).dp.open(1000)
    with pytest.raises(BadValue, match=r"str\.replace"):
        p["s"].str.replace("(a).", new, regex=True, n=n)
    assert p.budget.spent == 0


WIDE = {
    **{
        m: lambda s, n, m=m: getattr(s, m)(n)
        for m in ("ljust", "rjust", "center", "pad", "zfill", "repeat", "get", "slice")
    },
    **{m: lambda s, n, m=m: getattr(s, m)("a", n=n).str[0] for m in ("split", "rsplit")},
    **{m: lambda s, n, m=m: getattr(s, m)("a", n, n) for m in ("find", "rfind")},
    "piece": lambda s, n: s.split("a").str[n],
    "slice_replace": lambda s, n: s.slice_replace(n, -n, "a"),
    "replace": lambda s, n: s.replace("a", "b", n=n),
    "replace regex": lambda s, n: s.replace("a.", "b", n=n, regex=True),
}


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("n", [10**30, -(10**30), 2**63, -(2**63) - 1, 2**31, 0, -1])
def test_a_number_of_any_size_is_refused_before_it_is_paid_or_never(name, n):
    """On the commit before, seven of them raised at the first cell that is a text."""
    answers = []
    for cells in ([None] * 3, [None, "xay", "\ud800"]):
        p = pd.DataFrame({"s": pd.Series(cells, dtype=object)}).dp.open(1000)
        try:
            made = WIDE[name](p["s"].str, n)
        except dpframe.BadValue:
            answers.append("refused")
            continue
        p[made.isna()].count(epsilon=1)
        answers.append("answered")
    assert len(set(answers)) == 1


@pytest.mark.parametrize("given", [("\ud800.", "z"), ("a.", "\ud800")])
def test_half_of_a_character_is_named(given):
    with pytest.raises(BadValue, match="half of a character"):
        ex.check_pattern(ex.Pattern("replace", given[0], replacement=given[1]))
