"""The toys that pages of docs/develop build, put beside the modules of the package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from tests.test_docs import blocks

PAGES = Path(__file__).parents[2] / "docs" / "develop"


def source_of(page: str, mark: str) -> str:
    """Return the one block of a page that has a text."""
    (source,) = (source for _, source in blocks(PAGES / page) if mark in source)
    return source


@contextmanager
def module_added(package: ModuleType, name: str, source: str, folder: Path) -> Iterator[None]:
    """Put a module into a package for a while, and import the package anew.

    The file is all that is added: the package has to find it by itself.
    """
    (folder / f"{name}.py").write_text(source, encoding="utf-8")
    before = dict(vars(package))
    package.__path__.append(str(folder))
    try:
        exec(
            compile(Path(str(package.__file__)).read_text("utf-8"), package.__name__, "exec"),
            vars(package),
        )
        yield
    finally:
        package.__path__.remove(str(folder))
        vars(package).clear()
        vars(package).update(before)
        sys.modules.pop(f"{package.__name__}.{name}", None)
