"""Find the text of a mutant in a module, whatever its line breaks, within one function."""

from __future__ import annotations

import ast
import re
from functools import cache, lru_cache

# A word, a blank between words, or any other character. Blanks elsewhere do not count.
_PARTS = re.compile(r"\w+|[^\w\s]|\s+")


@cache
def compile_text(text: str) -> re.Pattern[str]:
    """Return a pattern for `text` that allows other line breaks and a comma before a closing bracket."""
    parts = _PARTS.findall(text.strip())
    pattern = ""
    for i, part in enumerate(parts):
        if part.isspace():
            between_words = re.match(r"\w", parts[i - 1][-1]) and re.match(r"\w", parts[i + 1])
            pattern += r"\s+" if between_words else r"\s*"
            continue
        if part in ")]}":
            pattern += r",?\s*"
        pattern += re.escape(part) + (
            r"\s*" if not re.match(r"\w", part) and i + 1 < len(parts) else ""
        )
        if re.match(r"\w", part) and i + 1 < len(parts) and not parts[i + 1].isspace():
            pattern += r"\s*"
    edge = r"(?<!\w)" if re.match(r"\w", parts[0]) else ""
    return re.compile(edge + pattern + (r"(?!\w)" if re.match(r"\w", parts[-1]) else ""))


@lru_cache(maxsize=256)
def find_functions(source: str) -> dict[str, tuple[int, int]]:
    """Return where each function and class begins and ends, by its qualified name."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    spans: dict[str, tuple[int, int]] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = prefix + child.name
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                begin, end = starts[first - 1], starts[child.end_lineno or first]
                if name in spans:  # a property and its setter, or two branches of a condition
                    begin, end = min(begin, spans[name][0]), max(end, spans[name][1])
                spans[name] = (begin, end)
                visit(child, name + ".")
            else:
                visit(child, prefix)

    visit(ast.parse(source), "")
    return spans


def find_text(source: str, text: str, function: str = "") -> list[tuple[int, int]]:
    """Return each place of `text` in `source`, or within one of its functions."""
    begin, end = 0, len(source)
    if function:
        if (span := find_functions(source).get(function)) is None:
            return []
        begin, end = span
    return [match.span() for match in compile_text(text).finditer(source, begin, end)]


def replace_text(source: str, old: str, new: str, function: str = "") -> str:
    """Put `new` in the one place of `old`. A ValueError says where `old` is not there exactly once."""
    places = find_text(source, old, function)
    if len(places) != 1:
        where = f" of {function}" if function else ""
        raise ValueError(f"occurs {len(places)} times in the text{where}: {old!r}")
    ((begin, end),) = places
    # The pattern leaves out blanks around `old`, and so must what replaces it.
    lead, tail = len(old) - len(old.lstrip()), len(old) - len(old.rstrip())
    if lead and new[:lead] != old[:lead]:
        begin -= lead
        lead = 0
    if tail and not new.endswith(old[len(old) - tail :]):
        end += tail
        tail = 0
    return source[:begin] + new[lead : len(new) - tail] + source[end:]
