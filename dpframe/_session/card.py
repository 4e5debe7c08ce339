"""Cards: the public facts of a table in a file, which a team writes once and `open` reads.

A card is TOML, or JSON with the same words, or CSVW-EO metadata. It holds what the arguments of
`open` declare. Whatever it says goes into the ledger with its author and reason
(docs/how-to/write-a-card.md).
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd

from dpframe._errors import BadType, BadValue, DPError, did_you_mean
from dpframe._expr import Column
from dpframe._session import card_metadata
from dpframe._session.terms import Declaration, FactSource, Words, declarations, unit_of
from dpframe._types import Json

Place = tuple[Any, ...]  # where a word stands: ("columns", "age", "bounds")

_TABLE = (
    "version",
    "population",
    "unit",
    "max_rows",
    "max_groups",
    "neighbors",
    "n",
)  # as `open` has them
_SIGNED = ("author", "reason", "description")
_COLUMN = ("dtype", "bounds", "keys", *_SIGNED)
_COMBINATION = ("columns", "keys", *_SIGNED)
_WORDS = (*_TABLE, "columns", "combinations", *_SIGNED)
_TEXT = "the card"  # the name of one that is in no file
BLANK = "?"  # what a card that nobody has filled in says


@dataclass(frozen=True, slots=True)
class Card:
    """Public facts that a card file declares: arguments of `open`, dtypes of columns, and who
    vouches for them and why.

    Examples
    --------
    >>> card = Card.of('unit = "patient"\\nmax_rows = 3\\n[columns.age]\\nbounds = [0, 110]')
    >>> card.words
    {'unit': 'patient', 'max_rows': 3, 'bounds': {'age': (0, 110)}}
    >>> Card.of('[columns.age]\\nbound = [0, 110]')
    Traceback (most recent call last):
    ...
    dpframe.BadValue: the card, line 2: 'bound' is no word of a column. Did you mean 'bounds'?
    """

    name: str
    words: Json
    dtypes: dict[str, str]
    sources: dict[Declaration, FactSource]
    places: dict[Declaration | tuple[str, str], Place] = field(repr=False)
    lines: Callable[[Place], int | None] = field(repr=False)

    @classmethod
    def of(cls, card: object) -> Card:
        """Read a card, from the path of its file or from its text.

        A string is taken for the text if it has several lines or begins with a brace, as JSON does.
        A `Card` is returned as it is.
        """
        if isinstance(card, Card):
            return card
        if not isinstance(card, str | os.PathLike):
            raise BadType(
                f"card= must be the path of a card, or its text, not {type(card).__name__}."
            )
        text = str(card)
        if "\n" in text or text.lstrip().startswith("{"):
            return CardReader(_TEXT, text).card()
        try:
            return CardReader(Path(card).name, Path(card).read_text(encoding="utf-8-sig")).card()
        except UnicodeDecodeError:
            raise BadValue(f"the card {text!r} is not text in UTF-8.") from None
        except OSError as problem:
            raise BadValue(f"the card {text!r} cannot be read: {problem.strerror}.") from None

    def add_facts(self, arguments: Words) -> Json:
        """Return the arguments of an `open` completed with the facts of this card.

        ``arguments`` are those given beside the card, by name; None stands for one that was left
        out. Their values take precedence over the card's, for ``bounds`` and ``keys`` column by
        column. The entry ``"sources"`` says which facts came from the card, and who answers for
        them.
        """
        stated = {word: value for word, value in arguments.items() if value is not None}
        merged: Json = {**self.words, **stated, "card": self}
        for word in {"bounds", "keys"} & set(self.words):
            if isinstance(stated.get(word), Mapping):
                merged[word] = {**self.words[word], **stated[word]}
        merged["sources"] = {
            (word, column): source
            for (word, column), source in self.sources.items()
            if word not in stated or (column is not None and column not in stated[word])
        }
        return merged

    def check(self, leaves: Mapping[Hashable, Column]) -> None:
        """Refuse a card that does not fit a table, in an error that names the line of the card.

        ``leaves`` has the columns of the table by their names. Dtypes, bounds, keys and unit are
        compared with them; no data is read.
        """
        for name, dtype in self.dtypes.items():
            place = self.places["dtype", name]
            if name not in leaves:
                raise BadValue(
                    f"{self._at(place)}: the table has no column {name!r}.{did_you_mean(name, leaves)}"
                )
            stated, present = Column.of(0, name, _dtype(dtype or object)), leaves[name]
            # A dtype does not tell the kind of the cells of other columns.
            concrete = {"number", "bool", "text", "time", "duration"}
            if dtype and {stated.kind, present.kind} <= concrete and stated.kind != present.kind:
                raise BadType(
                    f"{self._at(place)}: {name!r} is said to be {dtype}, of kind {stated.kind}; in the table it is of kind "
                    f"{present.kind}."
                )
        for name, pair in self.words.get("bounds", {}).items():
            self.check_fact(("bounds", name), partial(declarations, leaves, {name: pair}, None))
        for name, keys in self.words.get("keys", {}).items():
            self.check_fact(("keys", name), partial(declarations, leaves, None, {name: keys}))
        of_unit = [
            word for word in ("unit", "max_rows", "max_groups", "neighbors") if word in self.words
        ]
        if of_unit:
            self.check_fact((of_unit[0], None), partial(unit_of, leaves, self.words))

    def complete_dtypes(self) -> dict[str, str]:
        """Return the dtype of each column by name, for making up rows from the card alone.

        A column without a dtype is refused, in an error that names its line.
        """
        for name, dtype in self.dtypes.items():
            if not dtype:
                raise BadValue(
                    f'{self._at(self.places["dtype", name])}: made-up rows need the dtype of {name!r}: dtype = "int64".'
                )
        if not self.dtypes:
            raise BadValue(f"{self.name} has no columns: [columns.age].")
        return self.dtypes

    def check_fact(self, word: Declaration, check: Callable[[], object]) -> None:
        """Run a check of one fact, and add the line of the card to any error that it raises.

        ``word`` identifies the fact by its argument and column, such as ``("bounds", "age")``.
        """
        try:
            check()
        except DPError as problem:
            raise type(problem)(f"{self._at(self.places[word])}: {problem}") from None

    def _at(self, place: Place) -> str:
        line = self.lines(place)
        return self.name if line is None else f"{self.name}, line {line}"


def _dtype(text: object) -> Any:
    return pd.api.types.pandas_dtype(text)


# Reading ----------------------------------------------------------------------------------------------------------


class CardReader:
    """Parser of the text of one card. Every error that it raises names the line."""

    def __init__(self, name: str, text: str):
        """Take the text of a card, and find out whether it is JSON or TOML.

        ``name`` is how errors call the card: its file name, or ``"the card"`` for plain text.
        """
        self.name, self.text = name, text
        self.file = "" if name is _TEXT else name
        self.json = text.lstrip().startswith("{")
        self.lines: Callable[[Place], int | None] = (
            _json_lines(text) if self.json else _toml_lines(text)
        )

    def refuse(self, place: Place, problem: str) -> NoReturn:
        line = self.lines(place)
        raise BadValue(f"{self.name}{'' if line is None else f', line {line}'}: {problem}")

    def card(self) -> Card:
        """Parse the text into a `Card`, and check every word that it contains."""
        content = self.parse()
        if self.json and ("tableSchema" in content or "@context" in content):
            content = card_metadata.to_card(content)
        self.check_names(content, _WORDS, (), "a card")
        card = Card(self.name, {}, {}, {}, {}, self.lines)
        signed = self.read_source(content, (), FactSource(self.file))
        for word in _TABLE:
            if word in content:
                self._put(
                    card, (word, None), (word,), self.check_filled(content[word], (word,)), signed
                )
        for name, facts in self._tables(content.get("columns", {}), ("columns",)):
            self._column(card, name, facts, signed)
        combinations = content.get("combinations", [])
        if not isinstance(combinations, list):
            self.refuse(("combinations",), "combinations are a list of tables: [[combinations]].")
        for i, facts in enumerate(combinations):
            self._combination(card, facts, ("combinations", i), signed)
        return card

    def parse(self) -> Json:
        """Parse the text of the card as TOML or JSON, and return its top-level table as a dict.

        Text in neither format is refused, in an error that names the line where that is known.
        """
        try:
            content = (
                json.loads(self.text, object_pairs_hook=self._once)
                if self.json
                else tomllib.loads(self.text)
            )
        except tomllib.TOMLDecodeError as problem:
            line = re.search(r"line (\d+)", str(problem))
            at = f", line {line[1]}" if line else ", at its end"
            raise BadValue(
                f'{self.name}{at}: this is not TOML. Texts stand in quotes: version = "2026-11".'
            ) from None
        except json.JSONDecodeError as problem:
            raise BadValue(f"{self.name}, line {problem.lineno}: this is not JSON.") from None
        except RecursionError:
            raise BadValue(f"{self.name} is too deep to read.") from None
        if not isinstance(content, dict):
            raise BadValue(
                f"{self.name} is a table of words, and this is a {type(content).__name__}."
            )
        return content

    def _once(self, pairs: list[tuple[str, Any]]) -> Json:
        """Return the members of a JSON object as a dict, and refuse a name that is there twice.

        `json.loads` calls it with the (name, value) pairs of each object.
        """
        content = dict(pairs)
        if len(content) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            self.refuse((twice,), f"{twice!r} stands twice.")
        return content

    def check_names(
        self, content: Mapping[str, object], words: tuple[str, ...], place: Place, what: str
    ) -> None:
        """Refuse a table of the card that contains an unknown word, with the nearest known one as a
        hint.

        ``words`` are the known ones, ``place`` is the path to the table, and ``what`` is its name
        in the error.
        """
        for word in content:
            if word not in words:
                hint = did_you_mean(word, words, "It has")
                if not place and word in (
                    "epsilon",
                    "delta",
                    "ledger",
                    "queries",
                    "accountant",
                    "reserve",
                ):
                    hint = " Budgets are no facts of a table: open(card=..., epsilon=1)."
                self.refuse((*place, word), f"{word!r} is no word of {what}.{hint}")

    def _tables(self, content: object, place: Place) -> Iterator[tuple[str, Json]]:
        """Yield the name and the facts of each column of the card.

        ``content`` is what the card has under ``columns``. Anything but a dict of dicts is refused;
        ``place`` is the path to it.
        """
        if not isinstance(content, dict):
            self.refuse(place, "columns are tables by name: [columns.age].")
        for name, facts in content.items():
            if not isinstance(facts, dict):
                self.refuse((*place, name), f"the facts of a column are a table: [columns.{name}].")
            yield name, facts

    def _column(self, card: Card, name: str, facts: Json, signed: FactSource) -> None:
        """Check the facts that the card has about one column, and add them to ``card``.

        These are its dtype, bounds and keys. ``signed`` is the author and reason of the whole card,
        for facts without their own.
        """
        place = ("columns", name)
        self.check_names(facts, _COLUMN, place, "a column")
        source = self.read_source(facts, place, signed)
        dtype = facts.get("dtype")
        if dtype is not None:
            self._check_dtype(dtype, (*place, "dtype"))
        card.dtypes[name] = dtype or ""
        card.places["dtype", name] = (*place, "dtype") if dtype else place
        if "bounds" in facts:
            pair = self.check_filled(facts["bounds"], (*place, "bounds"))
            if not isinstance(pair, list) or len(pair) != 2:
                self.refuse(
                    (*place, "bounds"), "bounds are the least and the greatest value: [0, 110]."
                )
            self._put(card, ("bounds", name), (*place, "bounds"), tuple(pair), source)
        if "keys" in facts:
            self._put(
                card,
                ("keys", name),
                (*place, "keys"),
                self._keys(facts["keys"], (*place, "keys")),
                source,
            )

    def _check_dtype(self, dtype: object, place: Place) -> None:
        """Refuse a dtype that is still blank, is not text, or is not known to pandas.

        ``place`` is the path to the word in the card, for the line in the error.
        """
        if not isinstance(self.check_filled(dtype, place), str):
            self.refuse(place, 'a dtype is a text, such as "int64".')
        known = ""
        with suppress(TypeError, ValueError, AttributeError):
            known = str(_dtype(dtype))
        if not known:
            self.refuse(
                place,
                f'{dtype!r} is no dtype of pandas, such as "int64", "float64", "str", "datetime64[ns]".',
            )

    def _combination(self, card: Card, facts: object, place: Place, signed: FactSource) -> None:
        """Check one listed combination of columns and its keys, and add it to ``card``.

        ``facts`` is the entry under ``[[combinations]]``, and ``place`` is the path to it.
        ``signed`` is the author and reason of the whole card, for an entry without its own.
        """
        if not isinstance(facts, dict) or not {"columns", "keys"} <= set(facts):
            self.refuse(place, "a combination has columns = [...] and keys = [[...], ...].")
        self.check_names(facts, _COMBINATION, place, "a combination")
        columns = facts["columns"]
        if (
            not isinstance(columns, list)
            or len(columns) < 2
            or not all(isinstance(c, str) for c in columns)
        ):
            self.refuse((*place, "columns"), "a combination is of two columns or more, by name.")
        rows = self._keys(facts["keys"], (*place, "keys"))
        if not all(isinstance(row, list) for row in rows):
            self.refuse((*place, "keys"), 'a combination of keys is a list: ["CA", "F"].')
        keys = [tuple(row) for row in rows]
        source = self.read_source(facts, place, signed)
        self._put(card, ("keys", tuple(columns)), (*place, "keys"), keys, source)

    def read_source(
        self, content: Mapping[str, Any], place: Place, above: FactSource
    ) -> FactSource:
        """Return who answers for the facts of a table of the card, and why.

        ``above`` is the source of the enclosing table. It supplies an author or reason that this
        one lacks.
        """
        stated = {}
        for word in _SIGNED:
            if word in content and not isinstance(
                self.check_filled(content[word], (*place, word)), str
            ):
                self.refuse((*place, word), f"{word} is a text.")
            stated[word] = content.get(word)
        return FactSource(
            self.file, stated["author"] or above.author, stated["reason"] or above.reason
        )

    def check_filled(self, value: object, place: Place) -> Any:
        """Return a value of the card, or refuse it if it is still the blank ``"?"`` of a
        template."""
        if value == BLANK or (isinstance(value, list) and BLANK in value):
            self.refuse(
                place, f"{place[-1]} is not filled in. Write what is public, or delete the line."
            )
        return value

    def _keys(self, value: object, place: Place) -> Sequence[Any]:
        """Return the group keys that a card lists, as Python values.

        ``value`` is a list, or ``{range = [0, 111]}`` with the arguments of Python's `range`.
        ``place`` is the path to it, for the line in an error.
        """
        value = self.check_filled(value, place)
        if isinstance(value, dict) and set(value) == {"range"}:
            ends = value["range"]
            if (
                not isinstance(ends, list)
                or not 1 <= len(ends) <= 3
                or not all(type(e) is int for e in ends)
            ):
                self.refuse(place, "a range of keys is as in Python: {range = [0, 111]}.")
            if ends[2:] == [0]:
                self.refuse(place, "a range has steps other than 0.")
            return range(*ends)
        if not isinstance(value, list):
            self.refuse(place, 'keys are a list, such as ["CA", "NY"], or {range = [0, 111]}.')
        return [self._key(key, place) for key in value]

    def _key(self, key: object, place: Place) -> Any:
        """Return one group key of the card as the Python or pandas value that it stands for.

        Plain texts and numbers stay as they are. A table such as ``{decimal = "0.10"}`` or ``{time
        = ...}`` is converted.
        """
        if isinstance(key, list):
            return [self._key(part, place) for part in key]
        if not isinstance(key, dict):
            return key
        made = _READ.get(next(iter(key), ""))
        try:
            if made is None:
                raise ValueError
            return made(key)
        except (ValueError, TypeError, KeyError, ArithmeticError):
            self.refuse(
                place,
                'a key is a text, a number, true or false, a date, {null = true}, {decimal = "0.10"}, {time = "2026-01-31"}, '
                '{period = "2026-01", freq = "M"} or {interval = [0, 10], closed = "right"}.',
            )

    def _put(
        self, card: Card, word: Declaration, place: Place, value: object, source: FactSource
    ) -> None:
        """Store one fact in ``card``, with its source and the path to it.

        ``word`` is the argument and the column, such as ``("bounds", "age")``. The column is None
        for a fact of the whole table.
        """
        what, column = word
        if column is None:
            card.words[what] = value
        else:
            card.words.setdefault(what, {})[column] = value
        card.places[word], card.sources[word] = place, source


def _interval(key: Json) -> pd.Interval[Any]:
    left, right = key["interval"]
    return pd.Interval(left, right, closed=key.get("closed", "right"))


_READ: dict[str, Callable[[Json], Any]] = {
    "null": lambda key: None,
    "decimal": lambda key: Decimal(key["decimal"]),
    "time": lambda key: pd.Timestamp(key["time"]),
    "period": lambda key: pd.Period(key["period"], key["freq"]),
    "interval": _interval,
}


# Lines ------------------------------------------------------------------------------------------------------------

_NAME = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)"""
_ASSIGNED = re.compile(rf"\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*=")
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*\]\]?\s*(?:#.*)?$")


def _path(dotted: str) -> Place:
    """Return the names of a dotted TOML key in order: ``a."b.c"`` gives ``("a", "b.c")``."""
    content, path = tomllib.loads(f"{dotted} = 0"), []
    while isinstance(content, dict):
        ((name, content),) = content.items()
        path.append(name)
    return tuple(path)


def _toml_lines(text: str) -> Callable[[Place], int | None]:
    """Return a function that finds the line of a fact in a TOML text, for error messages."""

    def find(place: Place) -> int | None:
        """Return the line of a fact, or else the line of the nearest table around it.

        ``place`` is the path to the fact, such as ``("columns", "age", "bounds")``. Return None if
        no line is found.
        """
        lines: dict[Place, int] = {}
        table: Place = ()
        number: dict[Place, int] = {}
        for i, line in enumerate(text.splitlines(), 1):
            if header := _HEADER.match(line):
                table = _path(header[2])
                if header[1] == "[[":
                    number[table] = number.get(table, -1) + 1
                    table = (*table, number[table])
                lines.setdefault(table, i)
            elif assigned := _ASSIGNED.match(line):
                lines.setdefault((*table, *_path(assigned[1])), i)
        return next(
            (lines[place[:k]] for k in range(len(place), 0, -1) if place[:k] in lines), None
        )

    return find


def _json_lines(text: str) -> Callable[[Place], int | None]:
    """Return a function that finds the line of a fact in a JSON text, for error messages."""

    def find(place: Place) -> int | None:
        """Return the line on which the names of a path were found, one after the other.

        Names of CSVW-EO metadata are tried, too. A name that is not found ends the search. Return
        None if the first is not found.
        """
        position = 0
        for part in place:
            if isinstance(part, str):
                names = (part, card_metadata.NAMES.get(part, part))
                after = re.compile(
                    "|".join(
                        rf'"(?:[\w-]+:)?(?:\w+\.)?{re.escape(json.dumps(n)[1:])}' for n in names
                    )
                )
                match = after.search(text, position)
                if match is None:
                    break
                position = match.end()
        return text.count("\n", 0, position) + 1 if position else None

    return find
