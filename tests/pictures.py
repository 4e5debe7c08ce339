"""The pictures of the course and of the README: each shows the figure that the cells above its link on the page have drawn.

``python -m tests.pictures`` runs the pages and writes the pictures anew; names of pages after it choose some of them. Noise
follows from the page and the block, as where the tests run the page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.test_docs import FENCE, ROOT, fix_noise, run_block

README = ROOT / "README.md"
COURSE = ROOT / "docs" / "course"
PICTURE = re.compile(r"^!\[([^\]]*)\]\(([^)\s]+)\)$", re.MULTILINE)


def walk(page: Path, show: Callable[[str, str, Any], None]) -> None:
    """Runs the cells of a page, and hands each link to a picture, as its caption and path, with the newest figure so far."""
    import matplotlib.pyplot as plt

    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__page__"}
    parts = sorted([*FENCE.finditer(text), *PICTURE.finditer(text)], key=lambda part: part.start())
    for part in parts:
        if part.re is FENCE:
            with fix_noise(f"{page.name}|{part.group(1)}"):
                run_block(page, text.count("\n", 0, part.start(1)), part.group(1), names)
        else:
            show(*part.groups(), plt.gcf() if plt.get_fignums() else None)
            plt.close("all")


def draw(page: Path) -> None:
    """Writes the pictures of a page."""

    def save(caption: str, path: str, figure: Any) -> None:
        figure.savefig(
            page.parent / path, dpi=110, bbox_inches="tight", metadata={"Software": None}
        )

    walk(page, save)


if __name__ == "__main__":
    import matplotlib

    matplotlib.use("Agg")
    for drawn in [README, *sorted(COURSE.glob("*.md"))]:
        if drawn.stem in sys.argv[1:] or not sys.argv[1:]:
            draw(drawn)
