"""How many distinct values each group has, when a person may name so many of them and no more.

*Formal guarantee.* Which of their (group, value) pairs a person names depends on that person's own rows and the key alone:
those with the smallest keyed hashes. Values go by their hashes and never by the number they get in the frame, which other
people's rows decide; where two hashes are equal at the limit, neither is named.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe._cells.codec import Buckets
from dpframe._cells.columns import Vector
from dpframe._statistics.base import Integers
from dpframe.engines._people import Codes, People, _mixed, coded


def distinct_counts(
    values: Vector,
    asked: NDArray[np.bool_] | None,
    buckets: Buckets | None,
    groups: int,
    people: People | None,
    limit: int,
    key: bytes,
) -> Integers:
    """By group, of the rows that are asked about and have a value."""
    codes, size, hashes = coded(values)
    asked = codes >= 0 if asked is None else asked & (codes >= 0)
    if buckets is not None:
        asked &= buckets > 0
    if people is not None:
        asked &= people.codes >= 0
    wide = codes[asked]
    if buckets is not None:  # fewer than 2**26 groups and 2**31 values
        wide += (buckets[asked].astype(np.int64) - 1) * size
    own, pairs = pd.factorize(wide)
    if people is not None:
        both = pd.unique(people.codes[asked] * np.int64(max(1, len(pairs))) + own)
        person, own = both // max(1, len(pairs)), both % max(1, len(pairs))
        group, value = pairs[own] // max(1, size), pairs[own] % max(1, size)
        with np.errstate(over="ignore"):
            seed = people.hashes[person] + hashes[value] * np.uint64(0xD6E8FEB86659FD93)
            seed += group.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        kept = smallest(person, _mixed(_mixed(seed, key), key), limit)
        pairs = pd.unique(pairs[own[kept]])
    return np.bincount(pairs // max(1, size), minlength=groups)


def smallest(person: Codes, rank: NDArray[np.uint64], limit: int) -> NDArray[np.bool_]:
    """Which entries are below the (limit + 1)-th smallest of their person: at most ``limit``, fewer if hashes are equal."""
    kept = np.ones(len(person), dtype=bool)
    many = np.bincount(person)[person] > limit if len(person) else kept
    chosen = np.flatnonzero(many)
    if not len(chosen):
        return kept
    order = chosen[np.lexsort((rank[chosen], person[chosen]))]
    first = np.flatnonzero(np.r_[True, person[order][1:] != person[order][:-1]])
    lengths = np.diff(np.r_[first, len(order)])
    bar = np.repeat(rank[order][first + limit], lengths)
    kept[order] = rank[order] < bar
    return kept
