"""Lines to write, as refusals tell them."""

from __future__ import annotations

import re
from collections.abc import Iterator


def pieces(text: str) -> Iterator[str]:
    """The code in a text: from ``p.`` or ``p[`` on, as long as brackets are open or names go on."""
    for match in re.finditer(r"(?<![\w.'\"])(?:p = )?(?:df\.dp|p)(?=[.\[])", text):
        end, depth = match.end(), 0
        while end < len(text):
            c = text[end]
            depth += (c in "([{") - (c in ")]}")
            if depth < 0 or (depth == 0 and not re.match(r"[\w.()\[\]{}]", c)):
                break
            end += 1
        yield text[match.start() : end].rstrip(".").removeprefix("p = ")
