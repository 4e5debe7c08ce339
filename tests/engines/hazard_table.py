"""The table of hazards in `docs/explain/engines.md`, as ``python -m tests.engines.hazard_table`` prints it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dpframe.engines.tables import KINDS


def columns() -> dict[str, str]:
    """Return the first kind of table that each class of sources reads, and the class."""
    found: dict[str, str] = {}
    for kind in KINDS:
        if kind.source.__name__ not in found.values():
            found[kind.title] = kind.source.__name__
    return found


def written() -> str:
    """Return the table in Markdown."""
    rule: Any = import_module("dpframe.engines.steadiness")
    from tests.engines.test_hazards import kinds

    known = {kind.__name__: kind.answers for kind in kinds()}
    assert {*known} - {"DerivedSource"} == {*columns().values()}
    lines = ["|  | " + " | ".join(columns()) + " |", "|---" * (len(columns()) + 1) + "|"]
    for name, hazard in rule.HAZARDS.items():
        cells = [known[kind][name].value for kind in columns().values()]
        lines.append(f"| {hazard.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(written(), end="")
