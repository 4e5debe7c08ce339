"""Names and addresses of other projects' documentation, stored as text, since a build asks no server.

A line of ``inventories/*.txt`` is one of Sphinx' inventories: name, role, priority, address (``$`` is the name again) and ``-``.
"""

from __future__ import annotations

import zlib
from pathlib import Path

ADDRESSES = {
    "python": "https://docs.python.org/3/",
    "pandas": "https://pandas.pydata.org/docs/",
    "numpy": "https://numpy.org/doc/stable/",
}
STORED = Path(__file__).parent / "inventories"


def names(project: str) -> frozenset[str]:
    """What is known of a project."""
    lines = (STORED / f"{project}.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line.split()[0] for line in lines)


def mapping(folder: Path) -> dict[str, tuple[str, str]]:
    """Addresses with inventories as Sphinx reads them, which are written into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for project in ADDRESSES:
        head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
        body = zlib.compress((STORED / f"{project}.txt").read_bytes())
        text = head + "# The remainder of this file is compressed using zlib.\n"
        (folder / f"{project}.inv").write_bytes(text.encode() + body)
    return {
        project: (address, str(folder / f"{project}.inv")) for project, address in ADDRESSES.items()
    }
