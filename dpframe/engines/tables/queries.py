"""Queries that are run anew for each scan: whether they have the same rows each time, as far as their texts show."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dpframe._errors import BadValue

QUOTED = re.compile(r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_UNSTEADY = re.compile(
    r"\b(limit|offset|fetch|slice|sample|tablesample|shuffle|random|rand|randn|uuid|uuidv4|uuidv7|gen_random_uuid|newid|"
    r"now|today|current_timestamp|current_date|current_time|get_current_timestamp|clock_timestamp|nextval|setseed)\b",
    re.IGNORECASE,
)
# What of several rows a query keeps by which come first, and nobody says which do.
_CHOSEN = re.compile(
    r"\b(first|last|any_value|arbitrary|list|array_agg|string_agg|group_concat|listagg|row_number\s*\(\s*\)\s*over)\s*\(|"
    r"\b(distinct\s+on)\b",
    re.IGNORECASE,
)
_IN_ORDER = re.compile(r"\border\s+by\b", re.IGNORECASE)


def with_views(text: str, views: Mapping[str, str]) -> str:
    """A text of SQL, and below it those of the views that it names, and of the views that these name."""
    used: set[str] = set()
    texts = [text]
    for one in texts:  # which grows
        words = {word.casefold() for word in re.findall(r"\w+", one)}
        more = [n for n in views if n not in used and {*re.findall(r"\w+", n.casefold())} <= words]
        used |= {*more}
        texts += [views[name] for name in sorted(more)]
    return "\n".join(texts)


def check_steady(text: str) -> None:
    """Raises where a query may have other rows each time that it is run: by chance, by the clock, or by which come first."""
    found = _UNSTEADY.search(QUOTED.sub(" ", text))
    if found is not None:
        raise unsteady(found[0])


def check_sql(text: str) -> None:
    """The same of a query in SQL, whose aggregates of several rows may depend on which thread reads a row first, but for those
    that say an order."""
    check_steady(text)
    text = QUOTED.sub(" ", text)
    for found in _CHOSEN.finditer(text):
        if _IN_ORDER.search(text if found[2] else _argument(text, found.end())) is None:
            raise unsteady(f"{found[1] or found[2]} without ORDER BY")


def _argument(text: str, begin: int) -> str:
    """What stands between a parenthesis, which ends there, and the one that closes it."""
    depth, end = 1, begin
    while depth and end < len(text):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[begin:end]


def unsteady(word: str) -> BadValue:
    """What is said of a word or an operation by which rows differ from scan to scan."""
    return BadValue(
        f"{word.upper()} gives other rows each time that this is read, and a question may read it more than once. Keep the rows "
        "first, in a table or in Parquet files, and open those."
    )
