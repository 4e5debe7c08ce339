"""Regular expressions of linear time: which patterns there are, and what each finds in texts.

RE2, which pyarrow brings, matches. Without pyarrow it is Python's engine, for patterns that repeat
nothing.

*Formal guarantee.* `check_pattern` and `find` ask the engine the same: a pattern that is not
refused raises for no text. A match is what the engine finds in the whole text. Of ``most`` matches
the first so many count, as for ``count=`` of ``re.sub``: that some are replaced changes none of the
others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from dpframe._errors import BadValue

LONGEST_PATTERN = 1000
LONGEST_TEXT = 2**16  # a longer text is null: without a limit one cell could ask for all memory
ALL_MATCHES = 2**31  # more than the characters of any text that is looked at
_REPLACED = 2**26  # characters that a text may grow to before it is looked at


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression with its operation and options.

    The operations are contains, match, fullmatch, count, extract a group, and replace the first
    ``most`` matches.
    """

    op: str
    pattern: str
    case: bool = True
    group: int = 0
    replacement: str = ""
    most: int = -1  # all


@lru_cache(maxsize=1)
def has_re2() -> bool:
    """Return whether pyarrow is there."""
    return find_spec("pyarrow") is not None


# ---- which patterns there are --------------------------------------------------------------------


@lru_cache(maxsize=256)
def check_pattern(asked: Pattern) -> int:
    """Return how many groups a regular expression has; refuse one that the engine cannot match.

    ``asked`` has the pattern and its options. Patterns that may take more than linear time are
    refused, and those that cannot be compiled.
    """
    what, pattern = f".str.{asked.op}", asked.pattern
    if len(pattern) > LONGEST_PATTERN:
        raise BadValue(f"{what}: the pattern has more than {LONGEST_PATTERN} characters.")
    _check_encodable(pattern, what)
    try:
        groups = re.compile(pattern).groups
    except (re.error, OverflowError, RecursionError):
        raise BadValue(
            f"{pattern!r} is no regular expression. For plain text, give regex=False."
        ) from None
    if not has_re2() and re.search(r"[*+?{]", pattern):
        raise BadValue(
            f"{what}: patterns that repeat need pyarrow, whose engine takes linear time: pip "
            "install pyarrow. Plain text "
            "needs none: regex=False."
        )
    if asked.op == "extract" and not groups:  # which has an advice of its own
        return 0
    _check_replacement(asked.replacement, groups, what)
    try:
        find(["", "a"], asked)
    except Exception:  # of engines, which say why in their own words
        raise BadValue(
            f"{what}: {pattern!r} has what cannot be matched in linear time, a look-around or a "
            "back-reference, or it is too "
            "large. Write it without, or make the column before opening the session."
        ) from None
    return groups


def _check_encodable(text: str, what: str) -> None:
    """Refuse a text with half of a character, which has no UTF-8; ``what`` names the function."""
    if not encodes(text):
        raise BadValue(
            f"{what}: {text!r} has half of a character, which no pattern can match. Write the "
            "whole character."
        )


_BACKSLASH = re.compile(r"\\(?:\\|([1-9])(?![0-9])|)")


def _check_replacement(replacement: str, groups: int, what: str) -> None:
    """Refuse a replacement with a backslash that RE2 and Python read in different ways.

    They agree on a backslash before one digit, and on one before another backslash. ``groups`` is
    the number of groups in the pattern.
    """
    _check_encodable(replacement, what)
    for found in _BACKSLASH.finditer(replacement):
        if found[0] == "\\" or int(found[1] or 0) > groups:
            raise BadValue(
                f"{what}: {replacement!r} has a backslash that stands for no group. Groups are "
                "written \\1, \\2, up to \\9; "
                f"this pattern has {groups}. A backslash itself is written twice."
            )


# ---- what they find ------------------------------------------------------------------------------


def encodes(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8, as Arrow wants it."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def find(texts: Iterable[object], asked: Pattern) -> list[Any]:
    """Return what a regular expression finds in each text, such as a match or a replaced text.

    It is None for what is not a text, has no UTF-8, or would grow too long. RE2 looks for ``\\B``
    between bytes. If it could put something into the middle of a character, texts beyond ASCII are
    null.
    """
    known = [t if type(t) is str and encodes(t) else None for t in texts]
    if asked.op == "replace":
        if _matches_between_bytes(asked.pattern):
            known = [t if t is not None and t.isascii() else None for t in known]
        known = [
            None if t is None or _bound_length(t, asked.replacement) > _REPLACED else t
            for t in known
        ]
    found = (_by_re2 if has_re2() else _by_python)(known, asked)
    return [None if type(m) is str and len(m) > LONGEST_TEXT else m for m in found]


@lru_cache(maxsize=256)
def _matches_between_bytes(pattern: str) -> bool:
    """Return whether a match of a pattern can be empty and stand at a ``\\B``.

    Only such a match can stand inside of a character. Every character that RE2 matches is a whole
    one.
    """
    parser: Any = import_module("re._parser")
    return _NOT_AT_A_WORD.search(pattern) is not None and parser.parse(pattern).getwidth()[0] == 0


_NOT_AT_A_WORD = re.compile(r"(?<!\\)(?:\\\\)*\\B")


def _bound_length(text: str, replacement: str) -> int:
    """Return how long a text can become at most."""
    return len(text) + (len(text) + 1) * (len(replacement) + replacement.count("\\") * len(text))


_WHOLE: dict[str, Callable[[str], str]] = {
    "match": lambda p: f"\\A(?:{p})",
    "fullmatch": lambda p: f"\\A(?:{p})\\z",
}


def _by_re2(texts: list[Any], e: Pattern) -> list[Any]:
    """Return what the engine RE2 finds in each text, or makes of it.

    It is called with pyarrow, which brings RE2. ``e`` has the regular expression, the operation and
    its options.
    """
    pa: Any = import_module("pyarrow")
    pc: Any = import_module("pyarrow.compute")
    case = "" if e.case else "(?i)"
    if e.op == "replace" and e.most >= 0:
        return _replace_first(texts, e)
    cells = pa.array(texts, pa.large_string())
    if e.op == "extract":
        rows = pc.extract_regex(cells, pattern=case + _name_groups(e.pattern))
        return list(pc.struct_field(rows, [max(e.group - 1, 0)]).to_pylist())
    if e.op == "count":
        return list(
            pc.count_substring_regex(cells, pattern=e.pattern, ignore_case=not e.case).to_pylist()
        )
    if e.op == "replace":
        return list(pc.replace_substring_regex(cells, case + e.pattern, e.replacement).to_pylist())
    whole = _WHOLE.get(e.op, str)(e.pattern)
    return list(pc.match_substring_regex(cells, pattern=whole, ignore_case=not e.case).to_pylist())


def _replace_first(texts: list[Any], e: Pattern) -> list[Any]:
    """Return texts with the first ``e.most`` matches of a regular expression replaced.

    Arrow's own limit looks at each match without the text before it, and raises if that matters. So
    every match is replaced by the new part and the old one between marks. Then the old parts of the
    later matches are put back.
    """
    marks = [None if t is None else _find_unused_character(t + e.replacement) for t in texts]
    found: list[Any] = [None] * len(texts)
    for mark in {mark for mark in marks if mark is not None}:
        places = [i for i, own in enumerate(marks) if own == mark]
        both = Pattern("replace", e.pattern, e.case, 0, f"{mark}{e.replacement}{mark}\\0{mark}")
        for i, made in zip(places, _by_re2([texts[i] for i in places], both), strict=True):
            parts = made.split(mark)  # what stays, a new part, the old one, what stays, ...
            parts[1::3], parts[2::3] = (
                [*parts[1 : 3 * e.most : 3], *parts[3 * e.most + 2 :: 3]],
                [""] * (len(parts) // 3),
            )
            found[i] = "".join(parts)
    return found


def _find_unused_character(text: str) -> str | None:
    """Return a character that does not occur in a text, to mark places in it.

    It is sought from the first area for private use on. Return None if the text has all of them.
    """
    used = set(text)
    return next((c for c in map(chr, range(0xE000, 0x110000)) if c not in used), None)


def _by_python(texts: list[Any], e: Pattern) -> list[Any]:
    """Return what Python's own engine finds in each text, or makes of it.

    It is called without pyarrow. ``e`` has the regular expression, the operation and its options.
    """
    known = re.compile(e.pattern, 0 if e.case else re.IGNORECASE)
    ask: dict[str, Callable[[str], Any]] = {
        "contains": lambda t: known.search(t) is not None,
        "match": lambda t: known.match(t) is not None,
        "fullmatch": lambda t: known.fullmatch(t) is not None,
        "count": lambda t: len(known.findall(t)),
        "extract": lambda t: None if (m := known.search(t)) is None else m[e.group],
        "replace": lambda t: known.sub(e.replacement, t, max(e.most, 0)),
    }
    return [None if t is None else ask[e.op](t) for t in texts]


_OPENING = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(\((?!\?)|\(\?P<\w+>)", re.DOTALL)


def _name_groups(pattern: str) -> str:
    """Return a pattern with the names g1, g2, ... for its groups, which Arrow asks for."""
    count = 0

    def name(found: re.Match[str]) -> str:
        """Return the opening of a group with its name, and any other match as it is."""
        nonlocal count
        if found[1] is None:
            return found[0]
        count += 1
        return f"(?P<g{count}>"

    return _OPENING.sub(name, pattern)
