"""The package as source: its modules, parsed once in a process, and what they import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import dpframe

PACKAGE = Path(dpframe.__file__).parent


@cache
def list_modules() -> dict[str, Path]:
    """Return the modules of the package by name, with their files."""
    return {
        ".".join(("dpframe", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def parse_modules() -> dict[str, ast.Module]:
    """Return the syntax trees of all modules, by name."""
    return {name: ast.parse(path.read_text("utf-8")) for name, path in list_modules().items()}


def is_for_types(node: ast.AST) -> bool:
    """Return whether a statement is run by type checkers alone."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def list_imports(tree: ast.AST) -> Iterator[str]:
    """Yield each module of the package that a tree imports when it runs, also inside functions."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.expr) or is_for_types(node):
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpframe"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in list_modules() else node.module or ""
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith("dpframe"))
        else:
            waiting.extend(ast.iter_child_nodes(node))


@cache
def imports_of(name: str) -> frozenset[str]:
    """Return what a module of the package imports when it runs."""
    return frozenset(list_imports(parse_modules()[name]))
