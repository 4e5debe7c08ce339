"""`p.report`: one page with released numbers and public facts, written whole or not at all."""

from __future__ import annotations

import base64
import errno
import os
import pickle
import re
import sys
from html.parser import HTMLParser

import pandas as pd
import pytest

from dpframe import BadType, BadValue, SessionError
from dpframe._answers import pages
from dpframe.datasets import BOUNDS, KEYS, visits

LINES = re.compile(r"data:image/png;base64,([A-Za-z0-9+/=]+)")


def opened(seed=0, **words):
    terms = {"epsilon": 100, "bounds": BOUNDS, "keys": KEYS, "because": "a test", **words}
    return visits(300, seed=seed).dp.open(**terms)


@pytest.fixture
def p():
    return opened()


class Cells(HTMLParser):
    """The text of the cells of a page, the tags that are open at its end, and the headers."""

    def __init__(self, text):
        super().__init__()
        self.cells, self.open, self.scopes, self.captions = [], [], set(), 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img"):
            self.open.append(tag)
        self.scopes |= {value for name, value in attrs if name == "scope"}
        self.captions += tag == "caption"
        assert tag != "script"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data)


def test_html_has_answers_pictures_prices_budget_and_declarations(p, tmp_path):
    by_state = p.groupby("state").agg(n=("age", "size"), cost=("cost", "mean"), epsilon=20)
    n = p.count(epsilon=1)
    text = p.report(tmp_path / "visits.html", [by_state, n], title="Visits").read_text("utf-8")
    found = Cells(text)
    assert found.open == []
    assert found.scopes == {"row", "col"}
    assert found.captions == 5
    assert "<h1>Visits</h1>" in text
    for cell in ("CA", "lower", "upper", "21 %", "size()", "laplace", "bounds", "one row"):
        assert cell in found.cells
    assert str(int(n)) in found.cells
    assert p.budget.explain().line[1:] in text.replace("&#x27;", "'")
    (picture,) = LINES.findall(text)
    assert base64.b64decode(picture).startswith(b"\x89PNG")
    assert "http" not in text
    assert "prefers-color-scheme: dark" in text


def test_markdown_has_the_same_tables(p, tmp_path):
    by_state = p.groupby("state").size(epsilon=20)
    text = p.report(tmp_path / "visits.md", by_state).read_text("utf-8")
    assert by_state.dp.table().to_markdown() in text
    assert len(LINES.findall(text)) == 1
    assert [line for line in text.split("\n") if line.startswith("## ")][1:] == [
        "## Budget",
        "## What was asked",
        "## What was declared",
        "## Limits",
    ]


def test_report_without_answers_has_all_that_the_session_gave_once(p, tmp_path):
    p.count(epsilon=1)
    p.count(epsilon=1)
    p["diagnosis"].argmax(epsilon=1)
    p.histogram("age", bins=4, epsilon=20)
    with p.plan_ahead() as batch:
        batch.mean("age", epsilon=20)
    text = p.report(tmp_path / "all.md").read_text("utf-8")
    assert re.findall("(?m)^## (.*)$", text)[:-4] == [
        "size()",
        "size() by age in 4 bins",
        "mean(age)",
    ]
    assert "argmax() by diagnosis" in text


def test_edited_answers_are_left_out_or_refused(p, tmp_path):
    by_state = p.groupby("state").size(epsilon=20)
    p.count(epsilon=1)
    by_state.iloc[0] += 1
    text = p.report(tmp_path / "all.md").read_text("utf-8")
    assert re.findall("(?m)^## (.*)$", text)[:-4] == ["size()"]
    with pytest.raises(BadValue, match="changed since"):
        p.report(tmp_path / "one.md", by_state)


def test_report_reads_nothing_and_costs_nothing(p, tmp_path, monkeypatch):
    p.count(epsilon=1)
    before = p.budget.spent
    monkeypatch.setattr(type(p._session), "ask", lambda *_: pytest.fail("a question was asked"))
    p.report(tmp_path / "one.html")
    assert p.budget.spent == before


def test_headings_are_those_of_a_dict(p, tmp_path):
    answers = {"How <many> | of & all": p.count(epsilon=1)}
    html = p.report(tmp_path / "one.html", answers).read_text("utf-8")
    assert "<h2>How &lt;many&gt; | of &amp; all</h2>" in html
    assert "## How &lt;many> | of &amp; all" in p.report(tmp_path / "one.md", answers).read_text(
        "utf-8"
    )


def test_text_of_titles_and_keys_is_escaped(tmp_path):
    df = pd.DataFrame({"k": ["<script>x</script>"] * 300})
    p = df.dp.open(100, keys={"k": ["<script>x</script>"]}, because="a test")
    answer = p.groupby("k").size(epsilon=50)
    html = p.report(tmp_path / "one.html", [answer], title="<script>").read_text("utf-8")
    assert Cells(html).open == []
    assert "<script>" not in p.report(tmp_path / "one.md", [answer]).read_text("utf-8")


def test_computed_sorted_and_planned_answers_are_of_the_session(p, tmp_path):
    total, n = p.sum("cost", epsilon=20), p.count(epsilon=20)
    by_state = p.groupby("state")["cost"].mean(epsilon=20)
    with p.plan_ahead() as batch:
        later = batch.mean("age", epsilon=20)
    answers = [
        total / n,
        by_state.sort_values(),
        by_state.dp / n,
        later,
        by_state.dp.count,
        pickle.loads(pickle.dumps(by_state)),
    ]
    text = p.report(tmp_path / "one.md", answers).read_text("utf-8")
    assert len(re.findall("(?m)^## ", text)) == 6 + 4


@pytest.mark.parametrize("name", ["one.html", "one.md"])
def test_answers_of_two_sessions_are_refused_with_the_reason(p, name, tmp_path):
    other = opened(seed=1)
    own, foreign = (q.groupby("state").size(epsilon=2) for q in (p, other))
    with pytest.raises(BadValue, match=r"the answer to size\(\) by state .* is of another session"):
        p.report(tmp_path / name, [own, foreign])
    with pytest.raises(BadValue, match="another session"):
        p.report(tmp_path / name, [foreign.dp + own])
    with pytest.raises(BadValue, match="another session"):
        p.report(tmp_path / name, p.count(epsilon=1) + other.sum("cost", epsilon=1))
    assert os.listdir(tmp_path) == []


def test_answers_on_record_in_the_ledger_are_of_the_session(tmp_path):
    words = {"ledger": tmp_path / "budget.db", "population": "patients", "because": None}
    p = opened(**words)
    answer = p.groupby("state").size(epsilon=2)
    p.close()
    q = opened(**words)
    assert "CA" in q.report(tmp_path / "one.md", [answer]).read_text("utf-8")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("CA", "str has no receipt"),
        (pd.Series([1, 2]), "Series has no receipt"),
        ([None], "NoneType"),
    ],
)
def test_what_is_no_answer_is_refused(p, given, words, tmp_path):
    with pytest.raises(BadType, match=words):
        p.report(tmp_path / "one.html", given)


def test_unknown_format_is_refused_with_the_line_to_write(p):
    with pytest.raises(BadValue, match=r"unknown format. Write p.report\('visits.html'"):
        p.report("visits.pdf")
    with pytest.raises(BadValue, match=r"p.report\('visits.html'"):
        p.report("visits")


@pytest.mark.parametrize("path", [None, 3, b"x.html"])
def test_what_is_no_path_is_refused(p, path):
    with pytest.raises(BadType, match="path"):
        p.report(path)


def test_title_that_is_no_text_is_refused(p, tmp_path):
    with pytest.raises(BadType, match="title="):
        p.report(tmp_path / "one.html", title=3)


def test_missing_folder_is_one_clear_error(p, tmp_path):
    with pytest.raises(BadValue, match="cannot be written: No such file or directory") as caught:
        p.report(tmp_path / "nowhere" / "one.html")
    assert caught.value.__cause__ is None
    assert os.listdir(tmp_path) == []


def test_full_disk_leaves_the_earlier_page_and_no_half_file(p, tmp_path, monkeypatch):
    page = p.report(tmp_path / "one.html", title="before")

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadValue, match="No space left on device"):
        p.report(tmp_path / "one.html", title="after")
    assert os.listdir(tmp_path) == ["one.html"]
    assert "<h1>before</h1>" in page.read_text("utf-8")


def test_report_of_a_closed_session_is_refused(p, tmp_path):
    p.close()
    with pytest.raises(SessionError, match="closed"):
        p.report(tmp_path / "one.html")


def test_without_matplotlib_the_page_says_so(p, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "find_spec", lambda name: None)
    answer = p.groupby("state").size(epsilon=20)
    for name in ("one.html", "one.md"):
        text = p.report(tmp_path / name, [answer]).read_text("utf-8")
        assert pages.NO_PICTURES in text
        assert not LINES.findall(text)


def test_pictures_leave_no_figure_open(p, tmp_path):
    p.report(tmp_path / "one.html", [p.groupby("state").size(epsilon=20)])
    assert sys.modules["matplotlib.pyplot"].get_fignums() == []


def test_rows_beyond_the_limits_of_a_person_are_said(tmp_path):
    df = pd.DataFrame({"patient": [1, 2] * 50, "x": range(100)})
    p = df.dp.open(100, unit="patient", max_rows=3, bounds={"x": (0, 100)}, because="a test")
    text = p.report(tmp_path / "one.md", [p.count(epsilon=9)]).read_text("utf-8")
    assert pages.PERSON_LIMITS in text
    assert "of at most 3 rows a person" in text
