"""The user's own line with ``.dp`` moved to the left of the chain, for the message that refuses it."""

from __future__ import annotations

import ast
import linecache
import sys
from functools import lru_cache

import pandas as pd


def _moved(node: ast.expr) -> tuple[ast.expr, bool]:
    """The chain without its ``.dp``, put back right after the name it starts from."""
    if isinstance(node, ast.Attribute):
        inner, found = _moved(node.value)
        return (inner, True) if node.attr == "dp" else (ast.Attribute(inner, node.attr, node.ctx), found)
    if isinstance(node, ast.Call):
        inner, found = _moved(node.func)
        return ast.Call(inner, node.args, node.keywords), found
    if isinstance(node, ast.Subscript):
        inner, found = _moved(node.value)
        return ast.Subscript(inner, node.slice, node.ctx), found
    if isinstance(node, ast.Name):
        return ast.Attribute(node, "dp", ast.Load()), False
    return node, False


@lru_cache(maxsize=8)
def _tree(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.Module([], [])


def rewritten(source: str, line: int = 1) -> str | None:
    """The chain with ``.dp`` that stands on a line of a source, with ``.dp`` moved to its left.

    >>> rewritten('m = df.query("age > 30").dp.mean("x")')
    "df.dp.query('age > 30').mean('x')"
    """
    for node in ast.walk(_tree(source)):  # outermost first
        if not isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
            continue
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            moved, found = _moved(node)
            if found:
                text = ast.unparse(moved)
                return text if text != ast.unparse(node) else None  # d.dp.mean("x") of a d made elsewhere
    return None


def callers_line() -> str | None:
    """The chain that runs outside dpframe and pandas, rewritten; None where its source cannot be read."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").split(".")[0] not in ("dpframe", "pandas"):
            source = "".join(linecache.getlines(frame.f_code.co_filename))
            text = rewritten(source, frame.f_lineno)
            name = "" if text is None else text.partition(".dp")[0]
            start = frame.f_locals.get(name, frame.f_globals.get(name))
            return text if isinstance(start, pd.DataFrame | pd.Series) else None  # not pd.dp.concat(...)
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None
