"""Some of a person's own values for all of them, where no total can be scaled: quantiles, bids, magnitudes.

*Formal guarantee.* Of each person and group at most R values count. Which ones is a function of the multiset of that
person's values in that group: in their order the middle of each of R equal parts, or all where there are at most R. A
middle between two values is one or the other by the person's keyed hash. Where magnitudes are looked for, one value
counts, at the rank that the hash draws. No other person and no place in the frame has a say (docs/guarantees/people.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe._statistics.base import LARGEST_POWER, LEAST_POWER, MAGNITUDES, Integers
from dpframe.engines._people import Pairs

Places = NDArray[np.int64]


def at_points(
    pairs: Pairs,
    kept: NDArray[np.bool_] | None,
    hashes: NDArray[np.uint64],
    limit: int,
    groups: int,
    at: Places,
    points: int,
    drawn: bool = False,
) -> Integers:
    """How many of the values that count lie at each of so many points, by group. ``at`` is below 0 for no value.

    ``drawn``: of each person and group one value counts, and not the middle one but one that their hash draws.
    """
    some = at >= 0
    if kept is not None:
        stays = np.zeros(pairs.size, dtype=bool)
        stays[pairs.at] = kept
        some &= stays[pairs.of_row]
    pair, at = pairs.of_row[some], at[some]
    counts = np.bincount(pair, minlength=pairs.size)
    many = counts > limit
    if many.any():
        over = many[pair]
        chosen = np.flatnonzero(many)
        # Pair and point in one number, which sorts faster than two: fewer than 2**30 pairs have two values or more.
        wide = (np.cumsum(many) - 1)[pair[over]] * points + at[over]
        wide.sort()
        coins = np.zeros(pairs.size, dtype=np.int64)
        coins[pairs.at] = (hashes[pairs.person] >> np.uint64(40)).astype(np.int64) + pairs.group
        k, coin = counts[chosen], coins[chosen]
        picked = wide[np.cumsum(k) - k + coin % k if drawn else _middles(k, limit, coin)]
        pair = np.concatenate([pair[~over], chosen[picked // points]])
        at = np.concatenate([at[~over], picked % points])
    if groups > 1:
        group = np.zeros(pairs.size, dtype=np.int64)
        group[pairs.at] = pairs.group
        at = at * groups + group[pair]
    return np.bincount(at, minlength=points * groups).reshape(points, groups)


def _middles(counts: Places, limit: int, coins: Places) -> Places:
    """Where the values that count stand among all of them in order: the middle of each of `limit` equal parts.

    A middle that falls between two values is the upper one and the lower one by turns, and a coin says which is first: the
    upper one always would shift every quantile.
    """
    starts = np.cumsum(counts) - counts
    turns = np.arange(limit)
    ranks, rest = np.divmod((2 * turns + 1) * counts[:, None], 2 * limit)
    ranks -= (rest == 0) & ((turns + coins[:, None]) % 2 == 1)
    return np.asarray((starts[:, None] + ranks).ravel())


def by_size(pairs: Pairs, of: str, bins: int) -> Integers:
    """People by the rows of their largest pair or by the number of their pairs, which stand together."""
    starts = np.flatnonzero(np.r_[True, pairs.person[1:] != pairs.person[:-1]])[: len(pairs.person)]
    if of == "groups":
        sizes = np.diff(np.r_[starts, len(pairs.person)])
    else:
        sizes = np.maximum.reduceat(pairs.rows, starts) if len(starts) else pairs.rows
    places = np.searchsorted(2 ** np.arange(bins - 1), sizes)  # whatever is more goes into the last
    return np.bincount(places, minlength=bins)[:, None]


def magnitude(values: NDArray[Any], null: NDArray[np.bool_] | None) -> Places:
    """The bin of each number: 0 in the middle, (2**(j-1), 2**j] above and their mirror images below; -1 for no value."""
    x = values.astype(np.float64)
    missing = np.isnan(x) if null is None else null | np.isnan(x)
    x[missing] = 0.0
    part, power = np.frexp(np.minimum(np.abs(x), 2.0**LARGEST_POWER))
    power = power - (part == 0.5)
    steps = np.where(np.abs(x) <= 2.0**LEAST_POWER, 0, power - LEAST_POWER)
    places = MAGNITUDES // 2 + np.where(x < 0, -steps, steps)
    places[missing] = -1
    return places.astype(np.int64)
