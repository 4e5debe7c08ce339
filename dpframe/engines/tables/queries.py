"""Queries that are run anew for each scan: whether they have the same rows each time, as far as their texts show."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dpframe._errors import BadValue

QUOTED = re.compile(
    r"\"(?:[^\"]|\"\")*\"|\be'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\$\$.*?\$\$|--[^\n]*|/\*.*?\*/",
    re.DOTALL | re.IGNORECASE,
)
_UNSTEADY = re.compile(
    r"\b(limit|offset|fetch|slice|sample|tablesample|shuffle|random|rand|randn|uuid|uuidv4|uuidv7|gen_random_uuid|newid|"
    r"now|today|(?:current_)?localtime(?:stamp)?|current_(?:timestamp|date|time)|get_current_time(?:stamp)?|nextval|setseed|"
    r"(?:clock|statement|transaction)_timestamp)\b",
    re.IGNORECASE,
)
# In SQL besides: the clock in other words; estimates and ties, which the order of rows decides; and queries in texts.
_UNSTEADY_SQL = re.compile(
    r"('now'|\b(?:date|time|datetime|julianday|unixepoch|strftime)\s*\(\s*\)|\brandomblob\b|"
    r"\b(?:approx_\w+|reservoir_quantile|mode|arg_?(?:min|max)(?:_null)?|(?:min|max)_by|query|query_table)\s*\()",
    re.IGNORECASE,
)
# What of several rows a query keeps by which come first, and nobody says which do.
_CHOSEN = re.compile(
    r"\b(first|last|any_value|arbitrary|list|array_agg|string_agg|group_concat|listagg|"
    r"first_value|last_value|nth_value|row_number|ntile|lag|lead)\s*\(|\b(distinct\s+on)\b",
    re.IGNORECASE,
)
_OVER = re.compile(r"\s*(?:filter\s*\([^()]*\)\s*)?over\s*\(", re.IGNORECASE)
_IN_ORDER = re.compile(r"\border\s+by\b", re.IGNORECASE)
# What reads files; and the names of these, where they are written down.
_READING = re.compile(
    r"\b(read_\w+|(?:parquet|iceberg|delta|sqlite|postgres|mysql|duckdb)_scan|sniff_csv|st_read)\s*\(",
    re.IGNORECASE,
)
_WRITTEN = re.compile(
    r"\s*(?:'_*'|(?:\[|\blist_value\s*\()\s*'_*'(?:\s*,\s*'_*')*\s*[\])])\s*[,)]", re.IGNORECASE
)
_AGE = re.compile(r"\bage\s*\(", re.IGNORECASE)
_HIDDEN = '"__duckdb_source_'  # what stands in a query of duckdb for a variable of Python


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
    """The same of a query in SQL, whose aggregates and windows may depend on which thread reads a row first, but for those that
    say an order."""
    if _HIDDEN in text:
        raise BadValue(
            "this relation reads a variable of Python, and its query does not show what that is. Write the query out, make the "
            "variable a table or a view of the connection, or open what it holds."
        )
    shown = QUOTED.sub(_without_quotes, text)
    check_steady(shown)
    found = _UNSTEADY_SQL.search(shown)
    if found is not None:
        raise unsteady(found[0].strip("( "))
    for found in _AGE.finditer(shown):
        if "," not in _call(shown, found.end()):
            raise unsteady("age of one time")
    for found in _CHOSEN.finditer(shown):
        if _IN_ORDER.search(shown if found[2] else _call(shown, found.end())) is None:
            raise unsteady(f"{found[1] or found[2]} without ORDER BY")


def files_read(text: str) -> list[str]:
    """What the functions that read files are given. Raises where a query computes it, so that it cannot be watched."""

    def masked(quoted: re.Match[str]) -> str:  # as long as it was
        inside = len(quoted[0]) - 2
        return f"'{'_' * inside}'" if quoted[0][0] == "'" else _without_quotes(quoted).center(inside + 2)

    shown, names = QUOTED.sub(masked, text), list[str]()
    for found in _READING.finditer(shown):
        written = _WRITTEN.match(shown, found.end())
        if written is None:
            raise BadValue(
                f"this query computes what {found[1]} reads, so that nobody sees when other files are there. Write their names, "
                "or a pattern of them, into the query."
            )
        names += [unquoted(q) for q in QUOTED.findall(text[written.start() : written.end()])]
    return names


def unquoted(text: str) -> str:
    """What stands between quotes."""
    return text[1:-1].replace(2 * text[0], text[0])


def functions_in(text: str) -> set[str]:
    """The names of the functions that a query calls, and of all else that stands before a parenthesis."""
    return {name.lower() for name in re.findall(r"(\w+)\s*\(", QUOTED.sub(_without_quotes, text))}


def literal(text: str) -> str:
    """A text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def _without_quotes(quoted: re.Match[str]) -> str:
    """Nothing but a blank, and of what tells of rows the rest: the name of a function, which databases write with quotes, and the
    text that means the time of day."""
    text, behind = quoted[0], quoted.string[quoted.end() : quoted.end() + 2].lstrip()
    if text[0] == '"' and behind[:1] == "(":
        return text[1:-1]
    return text if text.casefold() == "'now'" else " "


def _call(text: str, begin: int) -> str:
    """The argument that begins there, behind a parenthesis, and that of the window over which it is asked."""
    end = _closed(text, begin)
    over = _OVER.match(text, end)
    return text[begin : end if over is None else _closed(text, over.end())]


def _closed(text: str, begin: int) -> int:
    """Where the parenthesis ends behind which a text begins."""
    depth, end = 1, begin
    while depth and end < len(text):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return end


def unsteady(word: str) -> BadValue:
    """What is said of a word or an operation by which rows differ from scan to scan."""
    return BadValue(
        f"{word.upper()} gives other rows each time that this is read, and a question may read it more than once. Keep the rows "
        "first, in a table or in Parquet files, and open those."
    )
