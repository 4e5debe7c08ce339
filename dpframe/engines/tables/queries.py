"""Queries that are run anew for each scan: whether they have the same rows each time, as far as
their texts show."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dpframe._errors import BadValue
from dpframe.engines.steadiness import FoundHazard, make_refusal

QUOTED = re.compile(
    r"\"(?:[^\"]|\"\")*\"|\be'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\$\$.*?\$\$|--[^\n]*|/\*.*?\*/",
    re.DOTALL | re.IGNORECASE,
)
# Words by which a query has other rows each time, by their hazard.
_UNSTEADY = {
    "first": re.compile(r"\b(limit|offset|fetch|slice)\b", re.IGNORECASE),
    "chance": re.compile(
        r"\b(sample|tablesample|shuffle|random|random_normal|rand|randn|uuid|uuidv4|uuidv7|gen_random_uuid|newid|nextval|"
        r"currval|lastval|setseed)\b",
        re.IGNORECASE,
    ),
    "clock": re.compile(
        r"\b(now|today|(?:current_)?localtime(?:stamp)?|current_(?:timestamp|date|time)|get_current_time(?:stamp)?|"
        r"(?:clock|statement|transaction)_timestamp)\b",
        re.IGNORECASE,
    ),
}
# In SQL besides: the clock in other words; what a session is set to; estimates and ties, which the
# order of rows decides; and queries in texts.
_UNSTEADY_SQL = {
    "clock": re.compile(
        r"('now'|\b(?:date|time|datetime|julianday|unixepoch|strftime)\s*\(\s*\))", re.IGNORECASE
    ),
    "chance": re.compile(
        r"\b(randomblob|query|query_table|getvariable|getenv|current_setting|last_insert_rowid|changes|total_changes|"
        r"txid_current|pg_current_xact_id|pg_backend_pid)\s*\(",
        re.IGNORECASE,
    ),
    "first": re.compile(
        r"\b((?:approx_\w+|reservoir_quantile|mode|arg_?(?:min|max)(?:_null)?|(?:min|max)_by))\s*\(",
        re.IGNORECASE,
    ),
}
# Operations on several rows; a subquery that is no table; and tables beside each other.
_ACROSS = re.compile(
    r"\b(join|group\s+by|group\s+all|having|distinct|union|intersect|except(?!\s*\()|over(?=\s*[(\w])|exists|pivot|unpivot|unnest|"
    r"lateral|recursive|(?:sum|avg|mean|count|total|stddev\w*|var_\w+|variance|median|quantile\w*|percentile\w*|corr|covar_\w+|"
    r"regr_\w+|skewness|kurtosis\w*|entropy|product|bit_(?:and|or|xor)|bool_(?:and|or)|every|histogram|fsum|favg|kahan_sum|"
    r"json_group_\w+|json_each|json_tree|generate_series)(?=\s*\())",
    re.IGNORECASE,
)
_EXTREME = re.compile(r"\b(min|max)\s*\(", re.IGNORECASE)
_SUBQUERY = re.compile(r"(?<!\w)(\w+|[,=<>!+*/%|-])?\s*\(\s*(?:select|with|from)\b", re.IGNORECASE)
_BESIDE = re.compile(r"\bfrom\s+[\w.]+(?:\s+(?:as\s+)?\w+)?\s*,", re.IGNORECASE)
_TABLES = {
    "",
    "from",
    "join",
    "as",
    "materialized",
}  # what stands before a subquery that is a table
# Aggregates of doubles whose result no order of the rows changes.
STEADY = {
    "min",
    "max",
    "count",
    "count_star",
    "median",
    "quantile_disc",
    "quantile_cont",
    "first",
    "last",
    "any_value",
}
# What adds rows, whose doubles threads add in any order; and an argument whose sums are exact.
_ADDING = re.compile(
    r"\b(sum|avg|mean|total|stddev\w*|var_\w+|variance|corr|covar_\w+|regr_\w+|skewness|kurtosis\w*|product|fsum|favg|kahan_sum|"
    r"list_(?:sum|avg|product|stddev\w*|var_\w+)|geomean|geometric_mean|sem|entropy)\s*\(",
    re.IGNORECASE,
)
_EXACT = r"(?:(?:tiny|small|big|huge)int|integer|int[248]?|(?:decimal|numeric)(?:\s*\([\d\s,]*\))?)"
_CAST = re.compile(rf"cast\s*\((.*)\bas\s+{_EXACT}\s*\)", re.IGNORECASE | re.DOTALL)
_TO_EXACT = re.compile(rf"(?:[\w.]+|\((.*)\))\s*::\s*{_EXACT}", re.IGNORECASE | re.DOTALL)
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
_FILE_TABLE = re.compile(r"\b(?:from|join)\s+('[^']*'|\"[^\"]*\")", re.IGNORECASE)
_FAR = re.compile(r"(?!file:)\w+://")
_AGE = re.compile(r"\bage\s*\(", re.IGNORECASE)
_HIDDEN = '"__duckdb_source_'  # what stands in a query of duckdb for a variable of Python


def with_views(text: str, views: Mapping[str, str]) -> str:
    """Return a text of SQL, followed by the views that it names, and by those that these name.

    ``views`` maps the name of each view to its SQL.
    """
    used: set[str] = set()
    texts = [text]
    for one in texts:  # the list grows meanwhile
        words = {word.casefold() for word in re.findall(r"\w+", one)}
        more = [n for n in views if n not in used and {*re.findall(r"\w+", n.casefold())} <= words]
        used |= {*more}
        texts += [views[name] for name in sorted(more)]
    return "\n".join(texts)


def check_steady(text: str) -> None:
    """Refuse a query whose words show that it may have other rows each time that it is run.

    These are words of chance, of the clock, and of which rows come first.
    """
    _check_words(_UNSTEADY, QUOTED.sub(" ", text))


def _check_words(words: Mapping[str, re.Pattern[str]], shown: str) -> None:
    """Refuse a query at the first hazard that its words show.

    ``words`` maps each hazard to a pattern, and ``shown`` is the query without quoted texts.
    """
    for hazard, pattern in words.items():
        found = pattern.search(shown)
        if found is not None:
            raise make_refusal(FoundHazard(hazard, found[1].upper()))


def check_sql(text: str) -> None:
    """Refuse a query in SQL that may have other rows each time that it is run.

    It checks more words than `check_steady`. Aggregates and windows that depend on the order of
    rows must have an ORDER BY.
    """
    if _HIDDEN in text:
        raise BadValue(
            "this relation reads a variable of Python, and its query does not show what that is. Write the query out, make the "
            "variable a table or a view of the connection, or open what it holds."
        )
    shown = QUOTED.sub(_without_quotes, text)
    _check_words(_UNSTEADY, shown)
    _check_words(_UNSTEADY_SQL, shown)
    for found in _AGE.finditer(shown):
        if "," not in _call(shown, found.end()):
            raise make_refusal(FoundHazard("clock", "AGE OF ONE TIME"))
    for found in _CHOSEN.finditer(shown):
        if _IN_ORDER.search(shown if found[2] else _call(shown, found.end())) is None:
            raise make_refusal(
                FoundHazard("first", f"{found[1] or found[2]} without ORDER BY".upper())
            )


def find_across(text: str) -> list[FoundHazard]:
    """Return the operations of a query in SQL that make a row of several rows, as hazards.

    Such rows may mix several people, and must be declared. They are found by words such as JOIN and
    GROUP BY.
    """
    shown = QUOTED.sub(_without_quotes, text)
    parts = [" ".join(found[1].upper().split()) for found in _ACROSS.finditer(shown)]
    extremes = _EXTREME.finditer(shown)  # aggregates only with one argument
    parts += [
        f[1].upper() for f in extremes if "," not in _drop_parentheses(_argument(shown, f.end()))
    ]
    parts += [
        "a subquery" for f in _SUBQUERY.finditer(shown) if (f[1] or "").casefold() not in _TABLES
    ]
    parts += ["tables beside each other" for _ in _BESIDE.finditer(shown)]
    return [FoundHazard("across", part) for part in dict.fromkeys(parts)]


def find_sums(text: str) -> list[FoundHazard]:
    """Return the aggregates that add numbers in a query in SQL, as hazards.

    A sum or a mean of integers or decimals is left out. Sums of doubles depend on the order of
    rows.
    """
    shown = QUOTED.sub(_without_quotes, text)
    return [
        FoundHazard("sums", found[1].upper())
        for found in _ADDING.finditer(shown)
        if found[1].casefold() not in ("sum", "avg", "mean")
        or not _is_exact(_argument(shown, found.end()))
    ]


def _is_exact(argument: str) -> bool:
    """Return whether an argument of an aggregate is one cast to an integer or decimal type."""
    argument = re.sub(r"^distinct\b", "", argument.strip(), flags=re.IGNORECASE).strip()
    cast = _CAST.fullmatch(argument) or _TO_EXACT.fullmatch(argument)
    inside = "" if cast is None else cast[1] or ""
    # A parenthesis that closes before the end would begin another operand.
    return cast is not None and _find_close(f"{inside})", 0) == len(inside) + 1


def files_read(text: str) -> list[str]:
    """Return the file names that a query passes to functions that read files.

    A name that the query computes is refused, since nobody could watch the file.
    """

    def mask_quoted(quoted: re.Match[str]) -> str:  # keeps positions
        """Return underscores for a text in single quotes, and blanks for other quotes, of the same
        length.

        The name of a function that is called is kept.
        """
        inside = len(quoted[0]) - 2
        return (
            f"'{'_' * inside}'"
            if quoted[0][0] == "'"
            else _without_quotes(quoted).center(inside + 2)
        )

    shown, names = QUOTED.sub(mask_quoted, text), list[str]()
    for found in _READING.finditer(shown):
        written = _WRITTEN.match(shown, found.end())
        if written is None:
            raise BadValue(
                f"this query computes what {found[1]} reads, so that nobody sees when other files are there. Write their names, "
                "or a pattern of them, into the query."
            )
        names += [read_quoted(q) for q in QUOTED.findall(text[written.start() : written.end()])]
    return names


def find_far(text: str) -> list[FoundHazard]:
    """Return the files on other machines that a query reads, as hazards."""
    names = files_read(text) + [read_quoted(found[1]) for found in _FILE_TABLE.finditer(text)]
    return [FoundHazard("elsewhere", repr(name)) for name in names if _FAR.match(name)]


def read_quoted(text: str) -> str:
    """Return a quoted text or name of SQL without its quotes."""
    return text[1:-1].replace(2 * text[0], text[0])


def functions_in(text: str) -> set[str]:
    """Return the names of the functions that a query calls, in lower case.

    Any other word before a parenthesis is returned too.
    """
    return {name.lower() for name in re.findall(r"(\w+)\s*\(", QUOTED.sub(_without_quotes, text))}


def literal(text: str) -> str:
    """Return a text as SQL quotes it."""
    return "'" + text.replace("'", "''") + "'"


def _without_quotes(quoted: re.Match[str]) -> str:
    """Return a blank for a quoted text, a quoted name or a comment, so that searches skip it.

    Two of them are kept: the quoted name of a function that is called, and the text 'now'.
    """
    text, behind = quoted[0], quoted.string[quoted.end() : quoted.end() + 2].lstrip()
    if text[0] == '"' and behind[:1] == "(":
        return text[1:-1]
    return text if text.casefold() == "'now'" else " "


def _call(text: str, begin: int) -> str:
    """Return the arguments of a call, with its OVER clause if it has one.

    ``begin`` is the position behind the opening parenthesis.
    """
    end = _find_close(text, begin)
    over = _OVER.match(text, end)
    return text[begin : end if over is None else _find_close(text, over.end())]


def _argument(text: str, begin: int) -> str:
    """Return the arguments of a call, without the closing parenthesis.

    ``begin`` is the position behind the opening one.
    """
    return text[begin : _find_close(text, begin) - 1]


def _drop_parentheses(text: str) -> str:
    """Return a text without everything between parentheses."""
    while text != (text := re.sub(r"\([^()]*\)", "", text)):
        pass
    return text


def _find_close(text: str, begin: int) -> int:
    """Return the position behind the parenthesis that closes the one before ``begin``."""
    depth, end = 1, begin
    while depth and end < len(text):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return end
