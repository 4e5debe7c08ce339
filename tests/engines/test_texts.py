"""Texts give what pandas gives, in time that is linear in the text; patterns that could take longer are refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe import BadType, BadValue, DPError
from dpframe import _expr as ex
from dpframe._expr._parse import parse

pytest.importorskip(
    "pyarrow", reason="patterns that repeat are matched by RE2, which pyarrow brings"
)

WORDS = [
    "",
    "a",
    "ab-c",
    "A1",
    "12",
    " x ",
    "Smith, Mr. Ada",
    "a-b-c",
    "ß",
    "Éa",
    "a\nb",
    "²",
    "---",
    "aaab",
    None,
]
rows = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)), min_size=1, max_size=9)


def build(cells: list[Any]) -> pd.DataFrame:
    s, r = zip(*cells, strict=True)
    return pd.DataFrame({"s": pd.Series(s, dtype="str"), "r": pd.Series(r, dtype="str")})


CLASSES = (
    "isdigit",
    "isalpha",
    "isalnum",
    "isnumeric",
    "isdecimal",
    "isspace",
    "islower",
    "isupper",
    "istitle",
)
VALUES: dict[str, Callable[[pd.DataFrame], Any]] = {
    **{
        f"s.str.{m}()": lambda f, m=m: getattr(f.s.str, m)()
        for m in (*CLASSES, "casefold", "isascii")
    },
    **{
        f"s.str.{m}('{p}')": lambda f, m=m, p=p: getattr(f.s.str, m)(p)
        for m in ("contains", "match", "fullmatch", "count")
        for p in ("a", "[a-z]+", "^a", "b|-", "a.c", "(?:a)-?b*", "A[0-9]", "-+", "x$", "")
    },
    "s.str.contains('A', case=False)": lambda f: f.s.str.contains("A", case=False),
    "s.str.contains('[AB]+', case=False)": lambda f: f.s.str.contains("[AB]+", case=False),
    "s.str.match('A', case=False)": lambda f: f.s.str.match("A", case=False),
    "s.str.contains('a+', na=True)": lambda f: f.s.str.contains("a+", na=True),
    "s.str.startswith('a', na=True)": lambda f: f.s.str.startswith("a", na=True),
    "s.str.fullmatch('a+b?', na=False)": lambda f: f.s.str.fullmatch("a+b?", na=False),
    "s.str.find('b')": lambda f: f.s.str.find("b"),
    "s.str.find('-', 2)": lambda f: f.s.str.find("-", 2),
    "s.str.rfind('-')": lambda f: f.s.str.rfind("-"),
    "s.str.removeprefix('a')": lambda f: f.s.str.removeprefix("a"),
    "s.str.removesuffix('c')": lambda f: f.s.str.removesuffix("c"),
    "s.str.pad(5)": lambda f: f.s.str.pad(5),
    "s.str.pad(5, side='right', fillchar='*')": lambda f: f.s.str.pad(
        5, side="right", fillchar="*"
    ),
    "s.str.ljust(4)": lambda f: f.s.str.ljust(4),
    "s.str.rjust(4, '0')": lambda f: f.s.str.rjust(4, "0"),
    "s.str.repeat(3)": lambda f: f.s.str.repeat(3),
    "s.str.slice_replace(0, 1, 'Z')": lambda f: f.s.str.slice_replace(0, 1, "Z"),
    "s.str.slice_replace(1)": lambda f: f.s.str.slice_replace(1),
    "s.str.replace('[a-b]+', 'X', regex=True)": lambda f: f.s.str.replace(
        "[a-b]+", "X", regex=True
    ),
    "s.str.replace('a', 'X', n=1)": lambda f: f.s.str.replace("a", "X", n=1),
    "s.str.replace('(a)(.)', '\\\\2\\\\1', regex=True)": lambda f: f.s.str.replace(
        "(a)(.)", "\\2\\1", regex=True
    ),
    "s.str.replace('A', 'q', case=False)": lambda f: f.s.str.replace(
        "A", "q", case=False, regex=True
    ),
    "s + r": lambda f: f.s + f.r,
    "s + '-' + r": lambda f: f.s + "-" + f.r,
    "'x' + s": lambda f: "x" + f.s,
    "s.str.split('-').str[0]": lambda f: f.s.str.split("-").str[0],
    "s.str.split('-').str[-1]": lambda f: f.s.str.split("-").str[-1],
    "s.str.split('-', n=1).str.get(1)": lambda f: f.s.str.split("-", n=1).str.get(1),
    "s.str.rsplit('-', n=1).str[0]": lambda f: f.s.str.rsplit("-", n=1).str[0],
    "s.str.split().str[1]": lambda f: f.s.str.split().str[1],
    "s.str.split(', ').str[1].str.split('.').str[0]": lambda f: (
        f.s.str.split(", ").str[1].astype("str").str.split(".").str[0]
    ),
    "s.str.split('-').str.len()": lambda f: f.s.str.split("-").str.len(),
}


def listed(series: Any) -> list[Any]:
    return [None if pd.isna(v) else v for v in series.tolist()]


@settings(max_examples=25, deadline=None)
@given(rows)
def test_a_text_is_the_one_that_pandas_makes(framed: Any, cells: list[Any]) -> None:
    frame = build([*cells, ("a-b, c.d", "a")])  # pandas has no .str where every cell is null
    f = framed(frame)
    middle = slice(1, len(frame) - 1)
    for text, make in VALUES.items():
        found = f.cells(text)
        assert found == listed(make(frame)), text
        assert f.cells(text, middle) == found[middle], text


@settings(max_examples=25, deadline=None)
@given(rows)
def test_groups_and_pieces_are_those_of_pandas(framed: Any, cells: list[Any]) -> None:
    frame = build(cells)
    f = framed(frame)
    for pattern in (
        r"(\d+)",
        r"([a-z])-([a-z])",
        r", ([A-Za-z]+)\.",
        r"(?P<first>a)(b*)",
        r"((a)a)",
    ):
        wanted = frame.s.str.extract(pattern)
        found = ex.extract(f["s"], pattern)
        assert list(found) == wanted.columns.tolist()
        for name, e in found.items():
            assert f.cells(e) == listed(wanted[name]), (pattern, name)
    for sep in ("-", ", "):
        parts = [
            f.cells(ex.text_part(ex.text_part(f["s"], "partition", sep), "get", i))
            for i in range(3)
        ]
        wanted = frame.s.str.partition(sep).reindex(columns=range(3))
        assert parts == [listed(wanted[i]) for i in range(3)]
    joined = ex.text_part(f["s"], "cat", f["r"], "/", "?")
    assert f.cells(joined) == listed(frame.s.str.cat(frame.r, sep="/", na_rep="?"))


def test_patterns_that_backtrack_take_linear_time(framed: Any) -> None:
    """Python's own engine would need more than the age of the world for any of these."""
    f = framed(pd.DataFrame({"x": pd.Series(["a" * 50_000 + "!"], dtype="str")}))
    for pattern in ("(a+)+$", "(a|a)+$", "(a*)*b", "(.*a){12}b"):
        assert f.cells(ex.text_part(f["x"], "contains", pattern)) == [False]
        assert f.cells(ex.text_part(f["x"], "fullmatch", pattern)) == [False]


REFUSED: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "a look-ahead": (("contains", "a(?=b)"), {}, "linear time"),
    "a look-behind": (("match", "(?<=a)b"), {}, "linear time"),
    "a back-reference": (("fullmatch", r"(a)\1"), {}, "linear time"),
    "no pattern": (("count", "("), {}, "no regular expression"),
    "a large one": (("count", "a" * 2000), {}, "more than 1000"),
    "other flags": (("contains", "a", True, re.DOTALL), {}, "flags"),
    "a function": (("replace", "a", len), {}, "repl as str"),
    "a named group": (("replace", "(a)", r"\g<1>"), {"regex": True}, "are written"),
    "a split by a pattern": (("split", "a|b"), {}, "plain text"),
    "an unknown word": (("match", "a"), {"wrong": 1}, "takes"),
    "no text": (("match", 3), {}, "pat as str"),
    "na of another kind": (("match", "a"), {"na": "no"}, "True or False"),
    "cat alone": (("cat",), {}, "rows of people"),
    "a width": (("pad", 20_000), {}, "10000"),
    "two characters": (("ljust", 3, "ab"), {}, "one character"),
    "a side": (("pad", 3, "top"), {}, "sides"),
    "index": (("index", "a"), {}, "not offered"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_linear_time_or_no_value_is_refused(framed: Any, name: str) -> None:
    args, words, match = REFUSED[name]
    f = framed(build([("a", "b")]))
    with pytest.raises(DPError, match=match):
        ex.text_part(f["s"], *args, **words)


def test_a_group_that_may_be_absent_is_refused(framed: Any) -> None:
    f = framed(build([("a", "b")]))
    for pattern in (r"(a)?b", r"(a)|(b)", r"(?:x(a))*", r"(a){0,2}"):
        with pytest.raises(BadValue, match="may have no part"):
            ex.extract(f["s"], pattern)
    with pytest.raises(BadValue, match="needs a group"):
        ex.extract(f["s"], "a+")
    assert list(ex.extract(f["s"], r"(a|b)(?:c|d)?(e*)")) == [0, 1]


def test_texts_do_not_grow_without_limit(framed: Any) -> None:
    f = framed(pd.DataFrame({"x": pd.Series(["a" * 60_000, "a"], dtype="str")}))
    for e in (
        ex.operate("+", f["x"], f["x"]),
        ex.text_part(f["x"], "repeat", 9000),
        ex.text_part(f["x"], "replace", "a+?", "b" * 900, regex=True),
    ):
        found = f.cells(e)
        assert found[0] is None
        assert found[1] is not None


def test_halves_of_characters_are_no_texts_for_a_pattern(framed: Any) -> None:
    values = np.array(["a\ud800", "a", 3, None], dtype=object)
    f = framed(pd.DataFrame({"x": pd.Series(values, dtype=object)}))
    assert f.cells(ex.text_part(f["x"], "match", "a")) == [None, True, None, None]


def test_joining_a_text_and_a_number_says_what_to_write(framed: Any) -> None:
    frame = build([("a", "b")]).assign(n=1)
    f = framed(frame)
    with pytest.raises(BadType, match="astype"):
        parse("s + n", f.columns, {}.__getitem__)
    with pytest.raises(BadType, match="has no value"):
        parse("s * 2", f.columns, {}.__getitem__)
