"""Keys, and groupings by them: frozen, hashable, printable as JSON, and without a single row of
data."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import numpy as np
import pandas as pd

from dpframe._cells.codec import Finder, finder, form_of, index_of
from dpframe._errors import BadType, BadValue, MissingKeys, with_article
from dpframe._expr import NO_KEYS, Call, Encoded, Expr
from dpframe._types import Array, Index
from dpframe._validate import MAX_LISTED, flag, length

GROUP_CEILING = 2**26  # more groups than this would not fit in memory
EVERY: Final[Any] = type(
    "Every", (), {"__repr__": lambda self: "every column"}
)()  # a verb that names none
ROW_CEILING = 2**31  # public; grids are chosen so that sums over this many rows fit 63 bits


_FEW = 100  # keys that a declaration lists in full


class Keys:
    """Public, ordered list of the groups of one column; ``null`` is the position of the group of
    nulls, or None."""

    identity: ClassVar[tuple[str, ...]] = ("keys", "index", "null")

    index: Index
    null: int | None
    token: str

    __slots__ = ("cells", "code", "index", "null", "token")

    def __init__(self, index: Index, null: int | None, texts: list[str] | None = None):
        """Make keys of an index. ``null`` is the position of the null, or None.

        ``texts`` is the index as a list if all keys are texts; None has it found out.
        """
        self.index = index
        self.null = null
        self.code: bytes | None = None
        self.cells: list[Any] | None = None  # the index as a list, of few keys
        # Equal keys hash alike in Python even when they differ (1, True, 1.0), so the type is part
        # of the token: no two lists of one length have the same one, as a dtype says how long its
        # cells are, and a repr where it ends.
        if index.dtype.kind in "iufb" and isinstance(index.dtype, np.dtype):
            text = f"{index.dtype}".encode() + index.to_numpy().tobytes()
        else:
            cells = index.tolist() if texts is None else texts
            if {*map(type, cells)} == {str}:  # as below, and faster
                text = ("str:" + "\x1fstr:".join(map(repr, cells))).encode()
            else:
                text = "\x1f".join(f"{type(k).__name__}:{k!r}" for k in cells).encode()
            self.cells = cells if len(cells) <= _FEW else None
        name = f"|{index.name!r}|{null}".encode("utf-8", "surrogatepass")
        self.token = hashlib.blake2b(text + name, digest_size=16).hexdigest()

    def __len__(self) -> int:
        return len(self.index)

    def rename(self, name: Hashable) -> Keys:
        """Return the same keys for a column that was renamed."""
        return self if self.index.name == name else Keys(self.index.rename(name), self.null)

    def finder(self) -> Finder:
        """Return a map from a value to 1 + the position of the key that it equals, or to 0.

        Engines use it to find the group of each row.
        """
        return finder(
            (None if i == self.null else k, i + 1) for i, k in enumerate(self.index.tolist())
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keys) and self.token == other.token and len(self) == len(other)

    def __hash__(self) -> int:
        return hash(self.token)

    def __reduce__(self) -> tuple[type[Keys], tuple[Index, int | None]]:
        return Keys, (self.index, self.null)

    def to_json(self) -> object:
        """Return the keys as a plain list for the ledger and for display; of a long list a
        summary."""
        if len(self) > _FEW:
            return {
                "count": len(self),
                "first": [str(k) for k in self.index[:5]],
                "token": self.token,
            }
        cells = self.index.tolist() if self.cells is None else self.cells
        plain = [key if isinstance(key, str | int | float | bool) else str(key) for key in cells]
        return [None if i == self.null else key for i, key in enumerate(plain)]


def _is_null(key: object) -> bool:
    return (
        key is None or key is pd.NA or key is pd.NaT or (isinstance(key, float) and math.isnan(key))
    )


_KEY_TYPES: dict[str, tuple[type, ...]] = {"number": (int, float), "bool": (bool,), "text": (str,)}
_LABEL_TYPES = (str, int, float, bool, Decimal, pd.Timestamp, pd.Interval, pd.Period)


def keys_for(listed: object, expr: Expr, name: Hashable, ordered: bool = False) -> Keys:
    """Return the keys that a user listed for a column, after checking them against its dtype.

    No data is read. ``expr`` is the column, and ``name`` its name for errors. With ``ordered`` the
    keys become ordered categories, as pandas groups by what it has cut.
    """
    if isinstance(listed, str | bytes) or not isinstance(listed, Iterable):
        raise BadType(f"keys of {name!r} must be a list of values, not {type(listed).__name__}.")
    if isinstance(listed, pd.Series | pd.DataFrame | set | frozenset | dict):
        raise BadType(
            f"keys of {name!r} must be a public, ordered list, not "
            f"{with_article(type(listed).__name__)}. Write them out, or list(...) them."
        )
    plain = isinstance(listed, range | np.ndarray)  # the keys of other lists are objects
    length(listed, f"keys of {name!r}", GROUP_CEILING if plain else MAX_LISTED)
    if isinstance(listed, range) or (
        isinstance(listed, np.ndarray) and listed.dtype.kind in "iu" and listed.ndim == 1
    ):
        return _integer_keys(np.asarray(listed), expr, name)
    keys = [
        k.item() if isinstance(k, np.generic) and not isinstance(k, np.datetime64) else k
        for k in listed
    ]
    if not keys:
        raise BadValue(f"keys of {name!r} are empty: nothing would be asked.")
    null = next((i for i, k in enumerate(keys) if _is_null(k)), None)
    proper = [k for k in keys if not _is_null(k)]
    if len(proper) < len(keys) - 1:
        raise BadValue(f"keys of {name!r} list null twice. None, NaN, NA and NaT are one key.")
    proper = [_checked_key(k, expr, name) for k in proper]
    if len({k if type(k) is bool else form_of(k) for k in proper}) < len(proper):
        raise BadValue(f"keys of {name!r} are not distinct (1, 1.0 and True are equal).")
    if null is not None:
        proper.insert(null, None)
    if ordered:
        return Keys(
            pd.CategoricalIndex(pd.Categorical(proper, categories=proper, ordered=True), name=name),
            null,
        )
    texts = proper if {*map(type, proper)} == {str} else None
    return Keys(index_of(proper, name), null, texts)


def listed_key(key: object) -> tuple[type, Any]:
    """Return a value by which listed keys are told apart: 1, 1.0 and True differ, and all nulls are
    equal."""
    if isinstance(key, np.generic) and not isinstance(key, np.datetime64):
        key = key.item()
    return (type(None), None) if _is_null(key) else (type(key), form_of(key))


def keys_of(keys: Any, place: int, name: Hashable, levels: int) -> Any:
    """Return the keys that ``keys=`` of a group-by gives for one of its columns; None if it gives
    none.

    ``place`` is the position of the column, ``name`` its name, and ``levels`` the number of
    columns.
    """
    if isinstance(keys, Mapping):
        return keys.get(name)
    if levels == 1 or keys is None:
        return keys
    length(keys, "keys")
    listed = list(keys)
    if len(listed) != levels or any(
        isinstance(k, str) or not isinstance(k, Iterable) for k in listed
    ):
        raise BadType(
            "keys for several columns are a dict by column name, or a list with one list a column."
        )
    return listed[place]


def with_options(keys: Keys, expr: Expr, sort: bool | None, dropna: bool | None) -> Keys:
    """Return the keys that pandas' ``sort=`` and ``dropna=`` would leave, in its order.

    ``expr`` is the column. None changes nothing.
    """
    for word, value in (("sort", sort), ("dropna", dropna)):
        if value is not None:
            flag(value, word)
    index, null = keys.index, keys.null
    if dropna and null is not None:
        index, null = index.delete(null), None
        if not len(index):
            raise BadValue("dropna=True leaves no keys: the only one is null.")
    elif dropna is False and null is None and expr.nullable:
        null = len(index)
        room = index.insert(null, np.nan) if _categories(index) else None
        index = index_of([*index.tolist(), None], index.name) if room is None else room
    if sort:
        proper = [i for i in range(len(index)) if i != null]
        try:
            order = proper if _categories(index) else sorted(proper, key=lambda i: index[i])
        except TypeError:
            raise BadValue("keys of several types have no order: leave sort=True out.") from None
        order += [] if null is None else [null]
        index, null = index[order], None if null is None else len(index) - 1
    return keys if index is keys.index else Keys(index, null)


def _categories(index: Index) -> bool:
    return isinstance(index.dtype, pd.CategoricalDtype)


def _integer_keys(values: Array, expr: Expr, name: Hashable) -> Keys:
    """Return the keys that a user listed as a range or an array of integers.

    Keys that are empty or not distinct, or a column without numbers, are refused. ``name`` is for
    the error.
    """
    if expr.kind not in ("number", "label"):
        raise BadType(f"keys of {name!r} are integers, but the column is of kind {expr.kind}.")
    if not len(values):
        raise BadValue(f"keys of {name!r} are empty: nothing would be asked.")
    if len(np.unique(values)) < len(values):
        raise BadValue(f"keys of {name!r} are not distinct.")
    return Keys(pd.Index(values, name=name), None)


def _checked_key(key: Any, expr: Expr, name: Hashable) -> Any:
    """Return a listed key as a plain value, after checking that the column ``expr`` can hold it.

    Released numbers become plain ones, and dates become timestamps. ``name`` is for the error.
    """
    kind = expr.kind
    if kind == "time":
        return _time_key(key, expr, name)
    if kind in NO_KEYS:
        raise BadType(f"column {name!r} has a dtype that cannot be grouped by.")
    for plain in (int, float):  # released numbers are subclasses; as keys they are what they show
        if isinstance(key, plain) and not isinstance(key, bool):
            key = plain(key)
    if isinstance(key, date | np.datetime64):
        key = pd.Timestamp(key)
    # By exact type: the equality of a key meets people's values, and must be Python's or pandas'
    # own.
    wanted = _KEY_TYPES.get(kind, _LABEL_TYPES)
    if type(key) not in wanted:
        raise BadType(
            f"a key of {name!r} is {with_article(type(key).__name__)}, but the column is of kind "
            f"{kind}."
        )
    if kind == "number" and not abs(key) < 2.0**1000:
        raise BadValue(f"a key of {name!r} is beyond the range of a double.")
    if isinstance(key, str):
        try:
            key.encode()
        except UnicodeEncodeError:
            raise BadValue(f"a key of {name!r} is not valid Unicode text.") from None
    return key


def _time_key(key: Any, expr: Expr, name: Hashable) -> pd.Timestamp | date:
    """Return a listed key of a column of times as a timestamp, or as a date if the column has
    dates.

    Key and column must both have a time zone, or neither.
    """
    try:
        stamp = pd.Timestamp(key)
    except (TypeError, ValueError):
        raise BadType(
            f"a key of {name!r} is {with_article(type(key).__name__)}, but the column holds times."
        ) from None
    if (stamp.tz is None) != (getattr(expr, "tz", None) is None):
        raise BadType(f"keys of {name!r} and the column must both have a time zone, or neither.")
    dates = isinstance(expr, Call) and expr.op == "dt.date"
    return stamp.date() if dates else stamp  # as pandas shows them


class Word(NamedTuple):
    """Declaration of a public fact by the owner: the name of the fact, its value, and the verb that
    used it."""

    what: str
    value: str
    where: str

    def __str__(self) -> str:
        return f"{self.what} {self.value}"


def describe(value: object) -> str:
    """Return a declared value as text for the ledger, cut at 500 characters."""
    text = repr(value)
    return text if len(text) <= 500 else text[:480] + " ..."


@dataclass(frozen=True, slots=True)
class KeyBy(Encoded):
    """Group by equality with declared keys; rows with another value belong to no group."""

    identity: ClassVar[tuple[str, ...]] = ("by_keys", "expr", "keys")

    expr: Expr
    keys: Keys

    @property
    def token(self) -> str:
        return self.keys.token

    @property
    def word(self) -> Word | None:
        """Declaration that these keys are public, for the ledger; None if nobody had to declare
        them.

        Truth values and members of the calendar, such as weekdays, are known to all.
        """
        if self.expr.kind == "bool":  # has two values, whoever owns it
            return None
        known = self.expr.public_members if isinstance(self.expr, Call) else None
        if known is not None and self.keys.index.tolist() == list(known):
            return None  # the calendar's, and nobody's word
        return Word("keys", f"{self.expr}: {describe(self.keys.to_json())}", "groups")

    @property
    def index(self) -> Index:
        return self.keys.index

    def __str__(self) -> str:
        return f"{self.expr} over {len(self.keys)} keys"


def types_of(name: Hashable) -> object:
    """Return the type of a column name, or the types of the parts of a tuple, for the key of a
    cache.

    Python holds 1, True and 1.0 for equal, but as names they differ, also as parts of a tuple.

    >>> types_of(("cost", 1)) == types_of(("cost", True))
    False
    """
    return tuple(map(types_of, name)) if isinstance(name, tuple) else type(name)


@lru_cache(maxsize=64)
def _intervals(edges: tuple[float, ...], name: Hashable, types: object) -> Index:
    return pd.IntervalIndex.from_breaks(list(edges), closed="left", name=name)


@dataclass(frozen=True, slots=True)
class BinBy:
    """Group by bins between increasing edges: left-closed, the last one closed, as numpy counts."""

    identity: ClassVar[tuple[str, ...]] = ("by_bins", "expr", "edges", "name")

    expr: Expr
    edges: tuple[float, ...]
    name: Hashable
    index: Index = field(init=False, compare=False, repr=False)
    # Kept, since that of many edges takes long. Doubles hash alike in every process, so that a
    # pickle may have it.
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", _intervals(self.edges, self.name, types_of(self.name)))
        object.__setattr__(self, "_hash", hash(self.edges))

    def __hash__(self) -> int:
        return self._hash

    @property
    def token(self) -> str:
        return ""

    @property
    def word(self) -> Word:
        ends = f"{len(self.edges)} edges from {self.edges[0]:g} to {self.edges[-1]:g}"
        return Word(
            "bins", f"{self.expr}: {ends if len(self.edges) > 12 else list(self.edges)}", "groups"
        )

    def __str__(self) -> str:
        return f"{self.expr} in {len(self.edges) - 1} bins"


class By(Protocol):
    """Grouping of rows by one column or several: its public groups, and a token that identifies it.

    Engines find which rows are in a group.
    """

    @property
    def index(self) -> Index: ...
    @property
    def token(self) -> str: ...
    @property
    def word(self) -> Word | None: ...


def groups_of(by: Iterable[By]) -> int:
    """Return the number of groups of a group-by: the product over its groupings, and 1 without
    any."""
    groups = 1
    for one in by:
        groups *= len(one.index)
    return groups


def combined_index(by: Sequence[By]) -> Index | None:
    """Return the index of an answer: all combinations of the groups of each grouping, in the
    declared order.

    Return None without a grouping.
    """
    if not by:
        return None
    if len(by) == 1:
        return by[0].index
    return pd.MultiIndex.from_product([b.index for b in by])


def need_keys(name: Hashable, verb: str) -> MissingKeys:
    """Return the error for a verb that groups by a column without known keys. It tells how to give
    them.

    ``name`` is the column, and ``verb`` the name of the verb.
    """
    if verb in ("crosstab", "pivot_table"):
        return MissingKeys(
            f"{verb} over {name!r} needs keys={{{name!r}: [...]}}, the public list of groups that may appear (or declare it "
            "once: open(..., keys={...})). In a session with delta those that many people share can be found: "
            f"keys={{{name!r}: p.unique({name!r})}}."
        )
    return MissingKeys(
        f"{verb} over {name!r} needs keys=[...], the public list of groups that may appear "
        "(or declare it once: open(..., keys={...})). In a session with delta those that many people share can be found: "
        f"p.unique({name!r})."
    )
