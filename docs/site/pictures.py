"""Pictures of the site: what the code of a page draws stands below it, drawn when the site is built.

Only pages that are listed under ``picture_pages`` run. Their tables are synthetic and made from seeds; the noise is real, and so
no two builds draw the same.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def described(figure: Any, heading: str) -> str:
    """The picture in words, for who does not see it: its heading, its titles and what its axes show."""
    texts = [heading]
    for axes in figure.axes:
        labels = [axes.get_title(), axes.get_xlabel(), axes.get_ylabel()]
        texts += [label for label in labels if label and label not in texts]
    return re.sub(r"[\[\]\n]", " ", "; ".join(texts))


def drawn(docname: str, text: str, folder: Path) -> str:
    """The text of a page with a picture below each block that draws one."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names: dict[str, object] = {"__name__": "__page__"}
    folder.mkdir(parents=True, exist_ok=True)
    count = 0

    def with_pictures(match: re.Match[str]) -> str:
        nonlocal count
        block, shown = match.group(0), [match.group(0)]
        if match.group(1).startswith(">>>"):
            return block
        exec(compile(match.group(1), docname, "exec", dont_inherit=True), names)
        heading = HEADING.findall(text[: match.start()])[-1]
        for number in plt.get_fignums():
            figure, count = plt.figure(number), count + 1
            file = f"{Path(docname).name}-{count}.png"
            figure.savefig(folder / file, dpi=150, bbox_inches="tight")
            shown.append(f"![{described(figure, heading)}](/docs/pictures/{file})")
        plt.close("all")
        return "\n\n".join(shown)

    with plt.rc_context({"figure.figsize": (6.4, 3.8)}):
        return BLOCK.sub(with_pictures, text)


def add_pictures(app: Any, docname: str, source: list[str]) -> None:
    if docname in app.config.picture_pages:
        source[0] = drawn(docname, source[0], Path(app.srcdir) / "docs" / "pictures")


def setup(app: Any) -> dict[str, bool]:
    app.add_config_value("picture_pages", [], "env")
    app.connect("source-read", add_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
