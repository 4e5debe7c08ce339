"""The outputs that pages show below their blocks, printed anew.

``python -m tests.outputs docs/how-to/medians.md ...`` runs the pages and writes each output that
differs from what its block printed. An output that has ``...`` and fits stays as it is.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from pathlib import Path

from dpframe import PrivacyWarning
from tests.test_docs import ROOT, is_shown, name_of, walk


def write_outputs(page: Path) -> int:
    """Write the outputs of a page, and return how many have changed."""
    changes = [
        (block.span, printed) for block, printed in walk(page, {}) if not is_shown(block, printed)
    ]
    text = page.read_text(encoding="utf-8")
    for (start, end), printed in reversed(changes):
        text = text[:start] + printed + text[end:]
    page.write_text(text, encoding="utf-8")
    return len(changes)


if __name__ == "__main__":
    pages = [ROOT / name for name in sys.argv[1:]]
    warnings.simplefilter("ignore", PrivacyWarning)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # where a page may write a file
        for page in pages:
            print(f"{name_of(page)}: {write_outputs(page)} changed")
