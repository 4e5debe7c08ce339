"""The stub of ``.str`` and ``.dt``, written from the catalogue of functions: ``python -m tests.frame.parts_stub``."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dpframe import _expr as ex

STUB = Path(__file__).parents[2] / "dpframe" / "_frame" / "typed" / "parts.pyi"
HEAD = '''"""The parts of ``.str`` and ``.dt``, written by ``python -m tests.frame.parts_stub``: do not edit."""

import re
from typing import Any

from dpframe._frame.surface import PrivateColumn
'''
WEEKS = '''    def isocalendar(self) -> Weeks:
        """Return the parts of the calendar of weeks."""
'''


def write_part(op: Any) -> str:
    """Return the declaration of one part: a property, or a method with its parameters."""
    made = "PrivateColumn"
    if op.kind == "other" or op.name == "str.extract":
        made = "Any"  # a column, or a frame with expand=True
    if op.attribute:
        return f'    @property\n    def {op.label}(self) -> {made}:\n        """{op.doc}"""\n'
    words = ["self"]
    for parameter in ex.method_signature(op).parameters.values():
        note = parameter.annotation
        text = f"{parameter.name}: {'Any' if note is inspect.Parameter.empty else note}"
        required = parameter.default is inspect.Parameter.empty
        default = repr(parameter.default).replace("'", '"')
        words.append(text if required else f"{text} = {default}")
    line = f"    def {op.label}({', '.join(words)}) -> {made}:\n"
    if len(line) > 100:
        listed = "".join(f"        {word},\n" for word in words)
        line = f"    def {op.label}(\n{listed}    ) -> {made}:\n"
    return f'{line}        """{op.doc}"""\n'


def write_class(name: str, doc: str, ops: Iterable[Any], more: str = "") -> str:
    """Return the declaration of a class with a part for each entry."""
    parts = "".join(write_part(op) for op in sorted(ops, key=lambda op: op.label))
    return f'\nclass {name}:\n    """{doc}"""\n\n{parts}{more}'


def write_stub() -> str:
    """Return the whole stub."""
    return "".join(
        [
            HEAD,
            write_class("Texts", "The parts of a text.", ex.list_ops("str").values()),
            write_class(
                "Times",
                "The parts of a time, and those of a duration.",
                ex.list_ops("dt").values(),
                WEEKS,
            ),
            write_class(
                "Weeks",
                "The parts of the calendar of weeks.",
                ex.list_ops("isocalendar").values(),
            ),
        ]
    )


def declared_parts(name: str) -> set[str]:
    """Return the names that the stub declares in a class."""
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    return {node.name for node in classes[name].body if isinstance(node, ast.FunctionDef)}


if __name__ == "__main__":
    STUB.write_text(write_stub(), encoding="utf-8")
