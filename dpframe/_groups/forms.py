"""Normal forms of groupings: groupings with the same groups have one code, whatever their names and
their order.

*Formal guarantee.* Two groupings with equal codes put the same rows into the same groups, on every
table. The groups stand in one canonical order, and each form says where they stand in its own
grouping (docs/guarantees/identity.md).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe._cells.encoding import encode
from dpframe._expr import Cut, Expr
from dpframe._groups.combinations import RestBy, TupleBy, Tuples
from dpframe._groups.keys import BinBy, By, KeyBy, Keys, groups_of
from dpframe._groups.periods import TimeBy

Places = NDArray[np.intp]
EXACT = 2.0**52  # whole numbers up to here are doubles, and so are those next to them


class GroupForm(NamedTuple):
    """Canonical code of a grouping, and the position in the grouping of each group of the canonical
    order.

    ``places`` is None if the grouping has that order itself.
    """

    code: bytes
    places: Places | None = None


NO_GROUPS = GroupForm(b"")
_forms: dict[bytes, GroupForm] = {}
_MOST_FORMS, _LONGEST = 256, 2**16


def form_of_groups(by: Sequence[By]) -> GroupForm:
    """Return the canonical form of a group-by over several columns.

    A group is a combination of one group of each grouping in ``by``. Group-bys with equal codes
    have the same groups, so they can share answers. In the form, groupings stand in the order of
    their codes, and groups in a canonical order. Its ``places`` tell, for each group of the form,
    the number of that group in this group-by; None if they are the same.
    """
    if not by:
        return NO_GROUPS
    if len(by) == 1:
        return form_of_grouping(by[0])
    forms = [form_of_grouping(one) for one in by]
    order = sorted(range(len(by)), key=lambda i: forms[i].code)
    code = encode(("by", *[forms[i].code for i in order]))
    if order == sorted(order) and all(form.places is None for form in forms):
        return GroupForm(code)
    sizes = [len(one.index) for one in by]
    places = np.arange(groups_of(by), dtype=np.intp).reshape(sizes)
    for axis, form in enumerate(forms):
        if form.places is not None:
            places = places.take(form.places, axis=axis)
    return GroupForm(code, places.transpose(order).ravel())


def form_of_grouping(by: By) -> GroupForm:
    """Return the canonical form of a group-by over one column, from a cache of recent ones if it is
    there."""
    key = encode(by)
    form = _forms.get(key)
    if form is None:
        form = _make_form(by)
        if form.places is None or len(form.places) <= _LONGEST:
            if len(_forms) >= _MOST_FORMS:
                _forms.clear()
            _forms[key] = form
    return form


def _make_form(by: By) -> GroupForm:
    """Compute the canonical form of a grouping.

    Its code does not depend on the order or the names of the groups.
    """
    intervals = _find_intervals(by)
    if intervals is not None:
        return _form_intervals(*intervals)
    if isinstance(by, KeyBy):
        code, places = _form_keys(by.keys)
        return GroupForm(encode(("keys", by.expr, code)), places)
    if isinstance(by, RestBy):
        code, places = _form_keys(by.listed.keys)
        last = None if places is None else np.append(places, len(places))
        return GroupForm(encode(("keys and the rest", by.expr, code)), last)
    if isinstance(by, TupleBy):
        return _form_combinations([level.expr for level in by.levels], by.tuples)
    if isinstance(by, TimeBy):
        p = by.periods
        return GroupForm(encode(("periods", by.expr, p.edges, p.unit, p.side, p.lower, p.upper)))
    return GroupForm(encode(("grouping", by)))


# Keys --------------------------------------------------------------------------------------------------------------


def _form_keys(keys: Keys) -> tuple[bytes, Places | None]:
    """Return the digest of a set of keys, and the places of the keys in order."""
    ranks = _rank_keys(keys)
    return ranks.digest, None if _is_sorted(ranks.order) else ranks.order


class _Ranks(NamedTuple):
    """Keys in an order that depends on their values alone.

    ``digest`` is that of all keys, and ``order`` has the place of each in the list.
    """

    digest: bytes
    order: Places


def _rank_keys(keys: Keys, used: Places | None = None) -> _Ranks:
    """Return keys in an order that depends on their values alone, with a digest of them all.

    ``used`` has the positions of the keys to rank; None ranks all.
    """
    index = keys.index if used is None else keys.index.take(used)
    if isinstance(index.dtype, np.dtype) and index.dtype.kind == "i" and keys.null is None:
        numbers = index.to_numpy().astype(np.int64)
        order = np.argsort(numbers, kind="stable")
        return _Ranks(_digest(b"whole", numbers[order].tobytes()), order)
    places = range(len(index)) if used is None else used.tolist()
    cells = zip(places, index.tolist(), strict=True)
    codes = [encode(None) if place == keys.null else encode(cell) for place, cell in cells]
    in_order = sorted(range(len(codes)), key=codes.__getitem__)
    text = b"".join([codes[i] for i in in_order])
    return _Ranks(_digest(b"cells", text), np.array(in_order, dtype=np.intp))


def _digest(tag: bytes, text: bytes) -> bytes:
    return hashlib.blake2b(encode((tag, text)), digest_size=32).digest()


def _is_sorted(order: Places) -> bool:
    return bool((order == np.arange(len(order))).all())


def _form_combinations(exprs: Sequence[Expr], tuples: Tuples) -> GroupForm:
    """Return the canonical form of listed combinations of keys.

    Columns are ordered by their codes, and combinations by the ranks of their keys.
    """
    codes, ranks = [], []
    for i, (expr, keys) in enumerate(zip(exprs, tuples.keys, strict=True)):
        used, place = np.unique(tuples.places[:, i], return_inverse=True)
        ranked = _rank_keys(keys, used.astype(np.intp))
        rank = np.empty(len(used), dtype=np.int64)
        rank[ranked.order] = np.arange(len(used))
        codes.append(encode(("column", expr, ranked.digest)))
        ranks.append(rank[place])
    columns = sorted(range(len(codes)), key=codes.__getitem__)
    order = np.lexsort([ranks[i] for i in reversed(columns)])
    table = np.stack([ranks[i][order] for i in columns])
    digest = _digest(b"combinations", table.tobytes())
    code = encode(("combinations", *[codes[i] for i in columns], digest))
    return GroupForm(code, None if _is_sorted(order) else order.astype(np.intp))


# Intervals of numbers ----------------------------------------------------------------------------------------------


class _Interval(NamedTuple):
    """An interval of numbers: its ends, and whether each belongs to it."""

    low: float
    holds_low: bool
    high: float
    holds_high: bool


def _find_intervals(by: By) -> tuple[Expr, list[_Interval]] | None:
    """Return the numeric expression that a grouping divides, and the interval of each group.

    Bins have intervals, and so have keys that are intervals of a cut. Return None for other
    groupings.
    """
    if isinstance(by, BinBy):
        last = len(by.edges) - 2
        pairs = zip(by.edges, by.edges[1:], strict=False)
        return by.expr, [_Interval(a, True, b, i == last) for i, (a, b) in enumerate(pairs)]
    if not isinstance(by, KeyBy) or not isinstance(by.expr, Cut) or by.keys.null is not None:
        return None
    cut = by.expr
    ends = [float(edge) + 0.0 for edge in cut.edges]
    known = {encode(label): i for i, label in enumerate(cut.categories)}
    places = [known.get(encode(key)) for key in by.keys.index.tolist()]
    if len(known) < len(ends) - 1 or None in places:
        return None
    return cut.x, [
        _Interval(ends[i], not cut.right, ends[i + 1], cut.right) for i in places if i is not None
    ]


def _form_intervals(expr: Expr, intervals: list[_Interval]) -> GroupForm:
    """Return the canonical form of a grouping of numbers by intervals.

    Intervals of an integer expression are narrowed to the integers in them. So equal groups get
    equal forms.
    """
    if expr.integral and all(abs(end) <= EXACT for one in intervals for end in _finite_ends(one)):
        intervals = [_narrow_to_integers(one) for one in intervals]
    order = np.array(sorted(range(len(intervals)), key=lambda i: intervals[i]), dtype=np.intp)
    flat = tuple([part for i in order.tolist() for part in intervals[i]])
    return GroupForm(encode(("intervals", expr, flat)), None if _is_sorted(order) else order)


def _finite_ends(interval: _Interval) -> list[float]:
    return [end for end in (interval.low, interval.high) if math.isfinite(end)]


def _narrow_to_integers(interval: _Interval) -> _Interval:
    """Return the closed interval from the least to the greatest integer in an interval.

    An infinite end stays as it is.
    """
    low, holds_low, high, holds_high = interval
    if math.isfinite(low):
        low, holds_low = float(math.ceil(low) if holds_low else math.floor(low) + 1), True
    if math.isfinite(high):
        high, holds_high = float(math.floor(high) if holds_high else math.ceil(high) - 1), True
    return _Interval(low, holds_low, high, holds_high)
