"""The user's own line with ``.dp`` moved to the left of the chain, for the message that refuses it."""

from __future__ import annotations

import ast
import linecache
import sys


def _moved(node: ast.expr) -> tuple[ast.expr, bool]:
    """The chain without its ``.dp``, put back right after the name it starts from."""
    if isinstance(node, ast.Attribute):
        inner, found = _moved(node.value)
        if node.attr == "dp":
            return inner, True
        return ast.Attribute(inner, node.attr, node.ctx), found
    if isinstance(node, ast.Call):
        inner, found = _moved(node.func)
        return ast.Call(inner, node.args, node.keywords), found
    if isinstance(node, ast.Subscript):
        inner, found = _moved(node.value)
        return ast.Subscript(inner, node.slice, node.ctx), found
    if isinstance(node, ast.Name):
        return ast.Attribute(node, "dp", ast.Load()), False
    return node, False


def rewritten(line: str) -> str | None:
    """``df.dp.query("age > 30").mean("x")`` from ``df.query("age > 30").dp.mean("x")``.

    >>> rewritten('m = df.query("age > 30").dp.mean("x")')
    "df.dp.query('age > 30').mean('x')"
    """
    try:
        tree = ast.parse(line.strip())
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
            moved, found = _moved(node)
            if found:
                return ast.unparse(moved)
    return None


def callers_line() -> str | None:
    """The statement outside dpframe and pandas that is running, rewritten; None where it cannot be read."""
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.split(".")[0] not in ("dpframe", "pandas"):
            return rewritten(linecache.getline(frame.f_code.co_filename, frame.f_lineno))
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None
