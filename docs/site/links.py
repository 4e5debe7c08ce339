"""A check of the site that was built: each of its own links leads to a page and an anchor that are there.

``python docs/site/links.py build/site`` prints those that do not and ends with 1.
"""

from __future__ import annotations

import os.path
import re
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(r'<[^>]+?\s(?:href|src)="([^"]*)"')
ANCHOR = re.compile(r'\s(?:id|name)="([^"]*)"')
ELSEWHERE = ("http:", "https:", "mailto:", "data:", "javascript:")


def broken(site: Path) -> list[str]:
    """Every link to what is not there, with its page."""
    texts = {
        str(path): path.read_text(encoding="utf-8")
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts
    }
    anchors = {
        name: {unescape(anchor) for anchor in ANCHOR.findall(text)} for name, text in texts.items()
    }
    problems = []
    for name, text in texts.items():
        for link in {unescape(link) for link in LINK.findall(text)}:
            if link.startswith(ELSEWHERE):
                continue
            path, _, anchor = unquote(link).partition("#")
            path = path.partition("?")[0]
            target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if not os.path.exists(target) or (
                anchor and anchor not in anchors.get(target, {anchor})
            ):
                problems.append(f"{os.path.relpath(name, site)}: {link}")
    return sorted(problems)


if __name__ == "__main__":
    found = broken(Path(sys.argv[1]))
    print("\n".join(found) or "every link leads somewhere")
    sys.exit(bool(found))
