"""A sketch of the people in a frame: enough to see that two frames hold the same ones, keyed and small.

The 256 smallest of the keyed hashes of all rows (Broder 1997): of two frames it tells, about, how large a part of the rows
they share. An owner-side check: it reads data, answers yes or no to the owner, and its hashes stay in the ledger file,
with the key. It is no dictionary of people to anyone without the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.columns import objects, prepare
from dpframe._expr import kind_of
from dpframe.engines.fingerprints import hashes_of, unmatched
from dpframe.engines.people import text_of_scalar
from dpframe.engines.rows import rows_of

SIZE = 256
ENOUGH = 16  # fewer different rows identify nobody
SHARED = 0.25  # of the people of two frames
DIFFERENT = 0.9  # of the rows of a table that is known by a sketch
SAME = 0.5  # of the rows of one table in two states


class Sketches(NamedTuple):
    """By what a ledger knows people again, and by what their table."""

    people: list[str]
    table: list[str]


@np.errstate(all="ignore")
def sketches(frame: pd.DataFrame, unit: Sequence[int], secret: bytes) -> Sketches:
    """Of a frame whose people are named by the columns at some places; without any, a row is a person.

    What a table is known by are its rows; of more people than a sketch has, those of the people in it.
    """
    if not unit:
        cells = _plain(frame)
        return Sketches(sketch_of(cells, secret), known_by(_keyed(cells, secret), secret))
    people = _hashes(frame.iloc[:, list(unit)], secret)
    some = np.isin(people, _smallest(people, secret))
    return Sketches(
        _sketch(people, secret), known_by(_hashes(rows_of(frame, np.flatnonzero(some)), secret), secret)
    )


def known_by(rows: NDArray[Any], secret: bytes) -> list[str]:
    """By what a table is known again, whatever the order of its rows: their sketch, or a keyed digest of all of them.

    A sketch knows rows and not how often they are there. So it stands for a table only if nearly all rows differ: then there
    are many more that could be, and two tables have few in common by chance.
    """
    if len(np.unique(rows)) >= max(ENOUGH, DIFFERENT * len(rows)):
        return _sketch(rows, secret)
    return [hashlib.blake2b(np.sort(rows).tobytes(), key=secret, digest_size=16).hexdigest()]


def same_table(one: list[str], other: list[str]) -> bool:
    """Whether at least half of the rows of the larger of two tables are in both, about; of one without a sketch, all."""
    return len(set(one) & set(other)) >= SAME * max(len(one), len(other))


def sketch_of(frame: pd.DataFrame, secret: bytes) -> list[str]:
    """Of a frame whose cells pandas hashes as they are; empty where too few rows are different."""
    rows = _keyed(frame, secret)
    return [] if len(np.unique(rows)) < len(rows) // 4 else _sketch(rows, secret)


def _sketch(rows: NDArray[Any], secret: bytes) -> list[str]:
    """Whatever their order; empty where too few are different."""
    smallest = _smallest(rows, secret)
    if len(smallest) < ENOUGH:
        return []
    digests = (hashlib.blake2b(row.tobytes(), key=secret, digest_size=8) for row in smallest)
    return sorted(d.hexdigest() for d in digests)


def _smallest(rows: NDArray[Any], secret: bytes) -> NDArray[Any]:
    """The first of the different hashes, in an order that is keyed here: numbers are hashed without the key by pandas."""
    rows = np.unique(rows)
    salt = np.uint64(
        int.from_bytes(hashlib.blake2b(secret, digest_size=8, person=b"order").digest(), "little") | 1
    )
    mixed = (rows ^ (rows >> np.uint64(31))) * salt
    mixed ^= mixed >> np.uint64(29)
    return rows[np.argsort(mixed, kind="stable")[:SIZE]]


def _hashes(frame: pd.DataFrame, secret: bytes) -> NDArray[Any]:
    """A keyed hash of each row."""
    return _keyed(_plain(frame), secret)


def _keyed(frame: pd.DataFrame, secret: bytes) -> NDArray[Any]:
    if not len(frame) or not frame.shape[1]:
        return np.zeros(0, dtype=np.uint64)
    key = hashlib.blake2b(secret, digest_size=8).hexdigest()
    found: NDArray[Any] = pd.util.hash_pandas_object(frame, index=False, hash_key=key).to_numpy()
    return found


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells as pandas can hash them, alike for alike values; column names do not matter. No code of a cell runs."""
    return pd.DataFrame({i: _cells(frame.iloc[:, i]) for i in range(frame.shape[1])})


def _cells(column: pd.Series[Any]) -> Any:
    kind = kind_of(column.dtype)
    if kind in ("time", "other"):
        return hashes_of(column)
    vector = prepare(column, kind)
    if vector.categories is None:
        null, values = vector.nulls(), vector.values.astype(np.float64) + 0.0
        if null is not None:
            values[null] = np.nan
        return values
    texts = objects([*map(_text, vector.categories), None]).take(vector.values, mode="wrap")
    for i, text in unmatched(column, vector):
        texts[i] = text.hex()
    return pd.array(texts, dtype="str")


def _text(value: Any) -> str:
    if type(value) is str:
        return value.encode("utf-8", "backslashreplace").decode()  # half a character has no bytes
    return str(value) if type(value) in (bool, int, float) else text_of_scalar(value)


def alike(one: list[str], other: list[str]) -> bool:
    """Whether they share a quarter of the smaller one's hashes."""
    if not one or not other:
        return False
    return len(set(one) & set(other)) >= SHARED * min(len(one), len(other))
