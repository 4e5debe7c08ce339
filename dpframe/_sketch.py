"""A sketch of the people in a frame: enough to see that two frames hold the same ones, keyed and small.

The 256 smallest of the keyed hashes of all rows (Broder 1997): of two frames it tells, about, how large a part of the rows
they share. An owner-side check: it reads data, answers yes or no to the owner, and its hashes stay in the ledger file,
with the key. It is no dictionary of people to anyone without the file.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd

from dpframe._expr import kind_of
from dpframe.engines._columns import objects, prepare
from dpframe.engines._people import text_of_scalar
from dpframe.engines._prints import hashes_of, unmatched

SIZE = 256
ENOUGH = 16  # fewer different rows identify nobody
SHARED = 0.25


@np.errstate(all="ignore")
def sketch(frame: pd.DataFrame, secret: bytes, people: bool = False) -> list[str]:
    """Of the rows, whatever their order; empty where too few are different. Of ``people`` each counts once, however many rows
    name them.
    """
    if not len(frame) or not frame.shape[1]:
        return []
    key = hashlib.blake2b(secret, digest_size=8).hexdigest()
    rows = np.unique(pd.util.hash_pandas_object(_plain(frame), index=False, hash_key=key).to_numpy())
    if len(rows) < ENOUGH or (not people and len(rows) < len(frame) // 4):
        return []
    # Numbers are hashed without the key by pandas, so order and digests are keyed here.
    salt = np.uint64(
        int.from_bytes(hashlib.blake2b(secret, digest_size=8, person=b"order").digest(), "little") | 1
    )
    mixed = (rows ^ (rows >> np.uint64(31))) * salt
    mixed ^= mixed >> np.uint64(29)
    smallest = rows[np.argsort(mixed, kind="stable")[:SIZE]]
    digests = (hashlib.blake2b(row.tobytes(), key=secret, digest_size=8) for row in smallest)
    return sorted(d.hexdigest() for d in digests)


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
