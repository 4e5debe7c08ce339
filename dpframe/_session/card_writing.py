"""Writing a card: what is declared of a table as the content of a card, in TOML, in JSON and as
CSVW-EO metadata; and a card to fill in. Nothing is read for it: all is a function of what was
declared, and of names and dtypes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import pandas as pd

from dpframe._errors import BadType
from dpframe._expr import Column
from dpframe._groups.combinations import Tuples
from dpframe._groups.keys import Keys
from dpframe._groups.periods import Span, span_of
from dpframe._session import card_metadata
from dpframe._session.card import BLANK
from dpframe._session.terms import FactSource, Terms
from dpframe._types import Json
from dpframe._validate import Durations

_MANY = 20  # whole numbers in a row, from here on, are a range


def content_of(leaves: Mapping[Hashable, Column], dtypes: list[Any], terms: Terms) -> Json:
    """Return all that a session declares of its table, as the content of a card.

    ``leaves`` has the columns by name, ``dtypes`` their dtypes in order, and ``terms`` the
    declarations of `open`. No data is read.
    """
    names = list(leaves)
    odd = next((name for name in names if not _is_text(name)), None)
    if odd is not None:
        raise BadType(
            f"a card names columns by text, and one is called {odd!r}. Rename it before opening."
        )
    sources = dict(terms.sources)
    signed = sources.get(("unit", None)) or next(iter(sources.values()), FactSource(""))
    bounds: dict[int, list[Any]] = {
        i: list(pair.texts) if isinstance(pair, Durations) else [_number(end) for end in pair]
        for i, pair in terms.bounds
    }
    bounds |= {i: _span(span) for i, span in terms.times}
    keys = {i: list_keys(k.index.tolist(), k.null) for i, k in terms.keys if isinstance(k, Keys)}
    columns: dict[str, Json] = {}
    for i, name in enumerate(names):
        own = next(
            (sources[word, name] for word in ("bounds", "keys") if (word, name) in sources), signed
        )
        facts = {"dtype": str(dtypes[i]), "bounds": bounds.get(i), "keys": keys.get(i)}
        facts |= {
            word: text for word, text in _signature(own).items() if text != getattr(signed, word)
        }
        columns[str(name)] = _present(facts)
    combinations = [
        {
            "columns": [str(names[j]) for j in places],
            "keys": [[_key(part) for part in row] for row in k.index.tolist()],
        }
        for places, k in terms.keys
        if isinstance(places, tuple) and isinstance(k, Tuples)
    ]
    return _present(
        {
            **_signature(signed),
            **_of_table(terms),
            "columns": columns,
            "combinations": combinations or None,
        }
    )


def _signature(source: FactSource) -> Json:
    return {"author": source.author, "reason": source.reason}


def _present(content: Json) -> Json:
    return {word: value for word, value in content.items() if value is not None}


def _of_table(terms: Terms) -> Json:
    """Return the facts of a card that are about the whole table: unit, limits, version, population.

    A fact that was not declared is None.
    """
    unit = terms.unit
    people = [str(c.name) for c in unit.people]
    return {
        "version": terms.version,
        "population": terms.account.population,
        "unit": None if not people else people[0] if len(people) == 1 else people,
        "max_rows": unit.rows,
        "max_groups": unit.groups,
        "neighbors": unit.neighbors if unit.replaces else None,
        "n": terms.people,
    }


def _is_text(name: object) -> bool:
    """Return whether a column name is text that can be encoded as UTF-8, as a card needs."""
    try:
        return isinstance(name, str) and name.encode("utf-8") is not None
    except UnicodeEncodeError:
        return False


def _number(value: float) -> float | int:
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _span(span: Span) -> list[str]:
    days = [span.first[:10], span.last[:10]]
    return days if span_of(days, "") == span else [span.first, span.last]


def list_keys(keys: list[Any], null: int | None) -> Any:
    """Return group keys as a card lists them.

    ``null`` is the position of the null among ``keys``, or None. A long list of evenly spaced whole
    numbers becomes ``{"range": [...]}``.
    """
    plain = [_key(None if i == null else key) for i, key in enumerate(keys)]
    if len(plain) > _MANY and all(type(k) is int for k in plain):
        step = plain[1] - plain[0]
        if step and plain == list(range(plain[0], plain[-1] + (1 if step > 0 else -1), step)):
            return {
                "range": [plain[0], plain[-1] + (1 if step > 0 else -1), step][
                    : 2 if step == 1 else 3
                ]
            }
    return plain


def _key(key: object) -> Any:
    """Return one group key as a card writes it.

    Nulls, times, intervals, periods and decimals become a small table, such as ``{"time":
    "2026-01-31"}``.
    """
    if key is None or (isinstance(key, float) and math.isnan(key)) or key is pd.NaT:
        return {"null": True}
    if isinstance(key, pd.Timestamp):
        return {"time": key.isoformat()}
    if isinstance(key, date):
        return {"time": key.isoformat()}
    if isinstance(key, pd.Interval):
        return {"interval": [key.left, key.right], "closed": key.closed}
    if isinstance(key, pd.Period):
        return {"period": str(key), "freq": key.freqstr}
    return {"decimal": str(key)} if isinstance(key, Decimal) else key


def as_toml(content: Mapping[str, Any]) -> str:
    """Format the content of a card as TOML, the format that people read and write."""
    columns, combinations = content["columns"], content.get("combinations", ())
    table = {
        word: value for word, value in content.items() if word not in ("columns", "combinations")
    }
    lines = assign_all(table)
    for name, column in columns.items():
        lines += ["", f"[columns.{_toml_name(name)}]", *assign_all(column)]
    for combination in combinations:
        lines += ["", "[[combinations]]", *assign_all(combination)]
    return "\n".join(lines).lstrip() + "\n"


def assign_all(table: Mapping[str, object]) -> list[str]:
    return [f"{word} = {_toml(value)}" for word, value in table.items()]


def _toml_name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: Any) -> str:
    """Format a value of a card as TOML: a truth value, text, number, list or table."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return f"{{{', '.join(f'{word} = {_toml(part)}' for word, part in value.items())}}}"


def as_json(content: Mapping[str, object]) -> str:
    """Format a card as JSON."""
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_metadata(content: Mapping[str, object]) -> str:
    """Format a card as CSVW-EO metadata, which are JSON, too."""
    return as_json(card_metadata.of_card(content))


def to_fill_in(dtypes: Mapping[str, object]) -> str:
    """Return the text of a card with blanks for the owner of a table to fill in.

    It is made of column names and dtypes alone. ``dtypes`` has the dtype by column name; None
    stands for an unknown one.
    """
    lines = [
        "# The public facts of a table. Write what is known without looking at the data, and never what the data show.",
        f'# What still says "{BLANK}" is refused: fill it in, or delete the line.',
        f'author = "{BLANK}"  # who answers for this card',
        f'reason = "{BLANK}"  # why these facts are public: a code book, a form, a law',
        f'unit = "{BLANK}"  # the column that names a person; delete this line and the next two if each row is one person\'s',
        "max_rows = 10  # the most rows (in a group) for which one person counts: a choice",
        "max_groups = 3  # the most groups in which one person counts",
        f'population = "{BLANK}"  # the name of these people in a ledger',
        f'version = "{BLANK}"  # the name of this state of the data, such as "2026-11"',
    ]
    for name, dtype in dtypes.items():
        kind = "" if dtype is None else Column.of(0, name, dtype).kind
        shown = (
            f'"{BLANK}"  # such as "int64", "float64", "str", "datetime64[ns]"'
            if dtype is None
            else _toml(str(dtype))
        )
        lines += ["", f"[columns.{_toml_name(name)}]", f"dtype = {shown}"]
        if kind in ("number", ""):
            lines.append(f'bounds = "{BLANK}"  # such as [0, 110]: values outside are clipped')
        if kind == "time":
            lines.append(f'bounds = "{BLANK}"  # such as ["2026-01-01", "2026-12-31"]')
        if kind in ("text", "label", ""):
            lines.append(
                f'keys = "{BLANK}"  # such as ["CA", "NY"], the groups that may appear; of an id or a name: delete'
            )
    return "\n".join(lines) + "\n"
