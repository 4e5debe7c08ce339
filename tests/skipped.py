"""Write down which tests a run has skipped, and run those alone where more is installed.

A run without the extras skips what needs them. With ``--skipped-to FILE`` it writes the names of
these tests, and of files that it could not import without them. ``--listed FILE`` runs no other
tests, slow ones too, and reads no other files: `.ci/extras` installs the extras and runs what
`.ci/run` has skipped so far.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Skipped:
    """Plugin that collects the names of skipped tests."""

    def __init__(self, path: str):
        self.path = Path(path)
        self.names: set[str] = set()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.names.add(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.skipped:
            self.names.add(report.nodeid)

    def pytest_sessionfinish(self, session: Any) -> None:
        if not hasattr(session.config, "workerinput"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text("".join(f"{name}\n" for name in sorted(self.names)), "utf-8")


class Listed:
    """Plugin that reads no file of tests but those of listed names, and those in some folders."""

    def __init__(self, names: set[str], root: Path, folders: list[Path]):
        self.files = {root / name.partition("::")[0] for name in names}
        self.folders = folders

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if collection_path.is_dir() or collection_path in self.files:
            return None
        return None if any(map(collection_path.is_relative_to, self.folders)) else True


def read_names(paths: list[str]) -> set[str]:
    """Return the names in files that `Skipped` has written."""
    return {line for path in paths for line in Path(path).read_text("utf-8").splitlines()}


def is_listed(nodeid: str, names: set[str]) -> bool:
    """Return whether a test is among the names, or in a file that is."""
    return nodeid in names or nodeid.partition("::")[0] in names
