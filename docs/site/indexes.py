"""Contents of the site: what an index page links to is its contents, in that order.

So nobody keeps a second list. A page named ``index.md`` or ``README.md`` has the pages of its folder below it, and the index
pages of the folders in it. Lists under headings are groups with these headings in the sidebar. Pages that it does not link to
come last; a test of the links finds them.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any

LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s#]+)[^)\s]*\)")
ENTRY = re.compile(r"^- \[([^\]]+)\]\(([^)\s#]+)\)", re.MULTILINE)  # a list's own word for a page
HEADING = re.compile(r"^## ", re.MULTILINE)
INDEXES = ("index", "README")
# Pages that lie elsewhere, since people and tools look for them there, and the index that has them.
GROUPS: dict[str, list[str]] = {}  # captions for such pages; `conf` fills both
GUESTS = {"docs/develop/index": ["CONTRIBUTING", "CODE_OF_CONDUCT", "CHANGELOG", "SECURITY"]}


def is_index(docname: str) -> bool:
    return PurePosixPath(docname).name in INDEXES


def index_of(docname: str, docnames: set[str]) -> str | None:
    """The index page that a page belongs to: of its folder, or for an index page of the nearest folder above that has one."""
    for index, guests in GUESTS.items():
        if docname in guests:
            return index
    page = PurePosixPath(docname)
    for folder in [page.parent, *page.parent.parents][is_index(docname) :]:
        for name in INDEXES:
            if (index := normpath(folder / name)) in docnames:
                return index
    return None


def place(link: str, docname: str) -> str:
    """The page that a link of a page leads to."""
    return re.sub(r"\.(md|ipynb|rst)$", "", normpath(PurePosixPath(docname).parent / link))


def contents(docname: str, text: str, docnames: set[str]) -> tuple[list[str], list[str]]:
    """The pages below an index page: those it links to in its order, and those that it leaves to be listed."""
    below = {name for name in docnames if name != docname and index_of(name, docnames) == docname}
    linked = [
        name
        for name in dict.fromkeys(place(link, docname) for link in LINK.findall(text))
        if name in below
    ]
    guests = [name for name in GUESTS.get(docname, ()) if name in below and name not in linked]
    return linked, [*guests, *sorted(below - {*linked, *guests})]


def groups(docname: str, text: str, linked: list[str]) -> list[tuple[str, list[str]]]:
    """Return the linked pages by the heading of the list that they stand in; others have no heading."""
    found: list[tuple[str, list[str]]] = []
    rest = list(linked)
    for part in HEADING.split(text)[1:]:
        heading, _, lists = part.partition("\n")
        named = [place(link, docname) for _, link in ENTRY.findall(lists)]
        pages = [name for name in dict.fromkeys(named) if name in rest]
        rest = [name for name in rest if name not in pages]
        if pages:
            found.append((heading.strip(), pages))
    if len(found) < 2:
        return [("", linked)]
    return [*found, *([("", rest)] if rest else [])]


def grouped(pages: list[str]) -> list[tuple[str, list[str]]]:
    """Return pages that no index lists in their groups of `GROUPS`; all others come last."""
    found = []
    for caption, names in GROUPS.items():
        if here := [name for name in pages if name in names]:
            found.append((caption, here))
            pages = [name for name in pages if name not in here]
    return [*found, *([("", pages)] if pages else [])]


def toctree(pages: list[str], titles: dict[str, str], option: str, caption: str = "") -> str:
    lines = [f"{titles[name]} </{name}>" if name in titles else f"/{name}" for name in pages]
    options = [option, *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "", "```{toctree}", *options, "", *lines, "```", ""])


def add_contents(app: Any, docname: str, source: list[str]) -> None:
    if is_index(docname) and app.env.doc2path(docname).suffix == ".md":
        linked, others = contents(docname, source[0], app.env.found_docs)
        titles = {place(link, docname): title for title, link in ENTRY.findall(source[0])}
        parts = groups(docname, source[0], linked) if docname != "README" else [("", linked)]
        source[0] += "".join(toctree(pages, titles, ":hidden:", name) for name, pages in parts)
        for name, pages in grouped(others):
            source[0] += toctree(pages, {}, ":maxdepth: 1", name)


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", add_contents)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
