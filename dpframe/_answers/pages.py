"""Pages of a report: answers with their intervals and pictures, what they cost, and what they rest
on.

A page holds released numbers and public facts only, so it costs nothing. It is one file: pictures
stand in it as text, and it asks nothing of the network.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.util import find_spec
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpframe import _pandas
from dpframe._answers.accessor import Answer
from dpframe._answers.computed import read_source
from dpframe._answers.estimate import Estimate
from dpframe._answers.receipts import ANSWER, get_receipt
from dpframe._errors import DPError
from dpframe._ledger.store import unpack
from dpframe._plans.plan import Plan
from dpframe._types import Raw

PIXELS = 110  # of a picture, per inch
NO_PICTURES = "There are no pictures, because matplotlib is not installed."
HEADING = 72  # characters of a heading that is made of questions
LIMITS = (
    "Intervals cover the noise that protects people, and not the sampling of a population.",
    "A number flagged as noise says next to nothing.",
    "Values outside of the bounds were clipped to them.",
    "The guarantee is about all answers on the budget together, also those that are not shown here.",
)
PERSON_LIMITS = "Rows of a person beyond the limits of a person were left out."


class Section(NamedTuple):
    """One answer of a page: its heading, and the number or the table with its intervals."""

    heading: str
    answer: Estimate | Answer


class Page(NamedTuple):
    """The content of a report: titles, answers, and public facts as tables and sentences."""

    title: str
    written: str  # when, and by what
    sections: Sequence[Section]
    budget: Sequence[str]
    facts: pd.DataFrame
    debits: pd.DataFrame
    declarations: pd.DataFrame
    limits: Sequence[str]


# The releases behind an answer ------------------------------------------------------------------


def find_answer(value: object) -> Estimate | Answer | None:
    """Return an answer with its intervals; None for a value that is no answer of a session."""
    if isinstance(value, Estimate):
        return value
    if isinstance(value, pd.Series | pd.DataFrame):
        text = get_receipt(value, ANSWER)
        return None if text is None else Answer(value, text)
    return None


def list_releases(value: object) -> list[Raw]:
    """Return the noisy integers that an answer was made of, release by release."""
    if isinstance(value, Estimate):
        return list(value.releases)
    text = None if not isinstance(value, pd.Series | pd.DataFrame) else get_receipt(value, ANSWER)
    return [] if text is None else _read_raw(text)


def _read_raw(text: str) -> list[Raw]:
    """Return the noisy integers of a receipt, which may be computed from several releases."""
    read_source(text)  # refuses what dpframe did not write
    receipt = json.loads(text)
    if "derived" not in receipt:
        return [tuple(unpack(receipt["raw"]))]
    numbers = [tuple(unpack(number["raw"])) for number in receipt["numbers"]]
    return numbers + [raw for source in receipt["of"] for raw in _read_raw(source)]


def sign_release(raw: Raw) -> tuple[str, ...]:
    """Return what tells one release from another: its noisy integers, in whatever order.

    Equal questions in other words order groups differently.
    """
    return tuple(sorted(str(cell) for array in raw for cell in np.asarray(array).ravel().tolist()))


def describe_answer(answer: Estimate | Answer) -> str:
    """Return the questions of an answer as a heading, without their bounds."""
    plans: tuple[Plan, ...] = answer.plans
    questions = dict.fromkeys(str(plan.question) for plan in plans)
    text = "; ".join(re.sub(r", bounds=\([^()]*\)", "", question) for question in questions)
    return text if len(text) <= HEADING else f"{text[: HEADING - 4].rstrip(' ,;(')} ..."


# Pictures ---------------------------------------------------------------------------------------


def draw_picture(answer: Estimate | Answer) -> str | None:
    """Return the picture of an answer as base64 of a PNG; None for one that is not drawn."""
    if isinstance(answer, Estimate) or find_spec("matplotlib") is None:
        return None
    import matplotlib.pyplot as plt

    open_before = set(plt.get_fignums())
    try:
        axes = answer.plot()
        figure = np.asarray(axes, dtype=object).ravel()[0].figure
        file = BytesIO()
        figure.savefig(file, format="png", dpi=PIXELS, facecolor="white", bbox_inches="tight")
    except DPError:  # such as durations, which are not drawn
        return None
    finally:
        for number in set(plt.get_fignums()) - open_before:
            plt.close(number)
    return base64.b64encode(file.getvalue()).decode()


def _note_pictures(page: Page) -> str:
    """Return a sentence if tables stand without pictures; empty if not."""
    drawn = any(isinstance(section.answer, Answer) for section in page.sections)
    return NO_PICTURES if drawn and find_spec("matplotlib") is None else ""


# Markdown ---------------------------------------------------------------------------------------


def write_markdown(page: Page) -> str:
    """Return the page as Markdown."""
    lines = [f"# {_mark(page.title)}", _mark(page.written), _mark(_note_pictures(page))]
    for section in page.sections:
        table = section.answer.table()
        lines += [f"## {_mark(section.heading)}", _mark(table.caption)]
        lines.append(table.to_markdown().replace("<", "&lt;"))
        picture = draw_picture(section.answer)
        if picture is not None:
            alt = _mark(section.heading).replace("]", "\\]")
            lines.append(f"![{alt}](data:image/png;base64,{picture})")
    lines += ["## Budget", *map(_mark, page.budget), _write_markdown_table(page.facts)]
    lines += ["## What was asked", _write_markdown_table(page.debits)]
    lines += ["## What was declared", _write_markdown_table(page.declarations)]
    lines += ["## Limits", "\n".join(f"- {_mark(limit)}" for limit in page.limits)]
    return "\n\n".join(filter(None, lines)) + "\n"


def _mark(text: str) -> str:
    """Return a text for Markdown, on one line and without markup of its own."""
    return " ".join(text.replace("&", "&amp;").replace("<", "&lt;").replace("`", "'").split())


def _write_markdown_table(table: pd.DataFrame) -> str:
    """Return a table of texts as Markdown; a dash for one without rows."""
    if not len(table):
        return "-"
    rows = [list(map(str, table.columns)), ["---"] * table.shape[1], *_list_texts(table)]
    return "\n".join(
        "| " + " | ".join(_mark(cell).replace("|", "\\|") for cell in row) + " |" for row in rows
    )


def _list_texts(table: pd.DataFrame) -> list[list[str]]:
    """Return the cells of a table as texts, row by row."""
    return [["" if _pandas.isna(cell) else str(cell) for cell in row] for row in _list_rows(table)]


def _list_rows(table: pd.DataFrame) -> Iterable[tuple[Any, ...]]:
    return table.itertuples(index=False, name=None)


# HTML -------------------------------------------------------------------------------------------

STYLE = """
:root { color-scheme: light dark; --line: #d5d8dd; --soft: #5b6470; --back: #fff; --text: #1c2024;
  --head: #f4f5f7; }
@media (prefers-color-scheme: dark) { :root { --line: #3a4048; --soft: #a3acb8; --back: #15181c;
  --text: #e6e8eb; --head: #20252b; } }
body { background: var(--back); color: var(--text); font: 16px/1.5 system-ui, sans-serif;
  margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; overflow-wrap: anywhere; }
p, li, caption { color: var(--soft); max-width: 46rem; }
figure { margin: 1rem 0; }
img { background: #fff; border: 1px solid var(--line); border-radius: 6px; height: auto;
  max-width: 100%; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
caption { caption-side: bottom; font-size: .85rem; padding-top: .5rem; text-align: left; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .7rem; text-align: left;
  vertical-align: top; }
thead th { background: var(--head); }
tbody th { font-weight: 500; }
.answer td { text-align: right; white-space: nowrap; }
.answer thead th { text-align: right; }
.answer thead th:first-child, .answer :is(th, td):last-child { text-align: left; }
.answer table:has(tbody th:nth-child(2)) thead th:nth-child(2) { text-align: left; }
.answer table:has(tbody th:nth-child(3)) thead th:nth-child(3) { text-align: left; }
.public td { overflow-wrap: anywhere; }
""".strip()


def write_html(page: Page) -> str:
    """Return the page as HTML: one file that asks nothing of the network."""
    title, note = escape(page.title), _note_pictures(page)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>",
        f"<style>\n{STYLE}\n</style></head><body>",
        f"<h1>{title}</h1>",
        f"<p>{escape(page.written)}</p>",
        f"<p>{escape(note)}</p>" if note else "",
    ]
    for section in page.sections:
        heading, picture = escape(section.heading), draw_picture(section.answer)
        parts += [f"<section><h2>{heading}</h2>", '<div class="scroll answer">']
        parts += [section.answer.table().to_html(), "</div>"]
        if picture is not None:
            source = f"data:image/png;base64,{picture}"
            parts.append(f'<figure><img src="{source}" alt="Picture of {heading}"></figure>')
        parts.append("</section>")
    parts += ["<section><h2>Budget</h2>", *(f"<p>{escape(line)}</p>" for line in page.budget)]
    parts += [_write_html_table(page.facts, "The terms of the budget"), "</section>"]
    parts += ["<section><h2>What was asked</h2>"]
    parts += [_write_html_table(page.debits, "Every debit of the budget"), "</section>"]
    parts += ["<section><h2>What was declared</h2>"]
    parts += [_write_html_table(page.declarations, "Facts that the owner states"), "</section>"]
    limits = "".join(f"<li>{escape(limit)}</li>" for limit in page.limits)
    parts += [f"<section><h2>Limits</h2><ul>{limits}</ul></section>", "</body></html>"]
    return "\n".join(filter(None, parts)) + "\n"


def _write_html_table(table: pd.DataFrame, caption: str) -> str:
    """Return a table of texts as HTML, with headers that a screen reader goes by."""
    if not len(table):
        return "<p>Nothing.</p>"
    head = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in table.columns)
    rows = []
    for first, *rest in _list_texts(table):
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        rows.append(f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>')
    body = "\n".join(rows)
    return (
        f'<div class="scroll public"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )
