"""Groupings by listed combinations of several columns, and the group at the end that collects all
keys that are not listed."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpframe import _pandas
from dpframe._cells.codec import index_of
from dpframe._errors import BadType, BadValue
from dpframe._expr import Expr
from dpframe._groups.keys import (
    GROUP_CEILING,
    By,
    KeyBy,
    Keys,
    Word,
    describe,
    groups_of,
    keys_for,
    listed_key,
    with_options,
)
from dpframe._types import Index
from dpframe._validate import length


class Tuples:
    """Public, ordered list of combinations of keys from several columns.

    ``keys`` has the keys of each column, and ``places`` a row for each combination with the
    positions of its keys.

    ``Tuples.of(index_or_list, exprs, names)`` makes one of a MultiIndex or of a list of tuples.
    """

    identity: ClassVar[tuple[str, ...]] = ("tuples", "keys", "places")

    index: pd.MultiIndex
    keys: tuple[Keys, ...]
    places: NDArray[np.int64]
    token: str

    __slots__ = ("code", "index", "keys", "places", "token")

    def __init__(self, keys: Sequence[Keys], places: NDArray[np.int64]):
        """Make combinations of the keys of each column.

        ``places`` has a row for each combination and a column for each of ``keys``, with the
        positions of the keys.
        """
        self.keys = tuple(keys)
        self.places = places  # a row a combination, a column a column
        self.code: bytes | None = None
        parts = [k.index.take(places[:, i]) for i, k in enumerate(self.keys)]
        self.index = pd.MultiIndex.from_arrays(parts, names=[k.index.name for k in self.keys])
        text = "|".join(k.token for k in self.keys).encode() + places.tobytes()
        self.token = hashlib.blake2b(text, digest_size=16).hexdigest()

    @staticmethod
    def of(keys_argument: object, exprs: Sequence[Expr], names: Sequence[Hashable]) -> Tuples:
        """Return the combinations that a user listed, as a MultiIndex or a list of tuples.

        They are checked against the dtypes of the columns alone. ``exprs`` and ``names`` are those
        of the columns, in order.
        """
        rows = _rows(keys_argument, len(exprs), names)
        keys, columns = [], []
        for i, (expr, name) in enumerate(zip(exprs, names, strict=True)):
            distinct: dict[Any, int] = {}
            try:
                places = [distinct.setdefault(listed_key(row[i]), len(distinct)) for row in rows]
            except TypeError:
                raise BadType(f"keys of {name!r} must be hashable.") from None
            columns.append(places)
            first = {
                place: row[i] for row, place in zip(reversed(rows), reversed(places), strict=True)
            }
            keys.append(keys_for([first[place] for place in range(len(distinct))], expr, name))
        listed = np.array(columns, dtype=np.int64).T.copy()
        if pd.DataFrame(listed).duplicated().any():
            raise BadValue("a combination stands twice in keys=. List each once.")
        return Tuples(keys, listed)

    def __len__(self) -> int:
        return len(self.places)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tuples) and self.token == other.token

    def __hash__(self) -> int:
        return hash(self.token)

    def __reduce__(self) -> tuple[type[Tuples], tuple[tuple[Keys, ...], NDArray[np.int64]]]:
        return Tuples, (self.keys, self.places)

    def rename(self, names: Sequence[Hashable]) -> Tuples:
        """Return the same combinations with other names for the columns. ``names`` has one for
        each."""
        keys = [k.rename(name) for k, name in zip(self.keys, names, strict=True)]
        return (
            self
            if all(a is b for a, b in zip(keys, self.keys, strict=True))
            else Tuples(keys, self.places)
        )

    def in_order(self, order: Sequence[int]) -> Tuples:
        """Return the same combinations with their columns in another order.

        ``order`` has the present position of each column.
        """
        if list(order) == list(range(len(self.keys))):
            return self
        return Tuples([self.keys[i] for i in order], self.places[:, list(order)].copy())

    def with_options(self, exprs: Sequence[Expr], sort: bool | None, dropna: bool | None) -> Tuples:
        """Return the combinations that pandas' ``sort=`` and ``dropna=`` would leave, in its order.

        ``exprs`` are the columns. None changes nothing; ``dropna=False`` is refused if no
        combination has a null.
        """
        for keys, expr in zip(self.keys, exprs, strict=True):
            # It refuses words that are none, and keys without an order.
            with_options(keys, expr, sort, dropna or None)
        if dropna is False and all(keys.null is None for keys in self.keys):
            raise BadValue(
                "dropna=False adds no group to listed combinations: list those with None in them."
            )
        places = self.places
        if dropna:
            for i, keys in enumerate(self.keys):
                if keys.null is not None:
                    places = places[places[:, i] != keys.null]
            if not len(places):
                raise BadValue("dropna=True leaves no keys: each combination has a null.")
        if sort:
            ranks = [
                _ranks(keys, expr)[places[:, i]]
                for i, (keys, expr) in enumerate(zip(self.keys, exprs, strict=True))
            ]
            places = places[np.lexsort(ranks[::-1])]
        return self if places is self.places else Tuples(self.keys, places)

    def to_json(self) -> object:
        """Return the combinations as plain lists for the ledger and for display; of a long list a
        summary."""
        if len(self) > 100:
            first_rows = [list(map(str, row)) for row in self.index[:5]]
            return {"count": len(self), "first": first_rows, "token": self.token}
        return [list(map(_plain, row)) for row in self.index]


def _plain(key: Any) -> object:
    if _pandas.isna(key):
        return None
    return key if isinstance(key, str | int | float | bool) else str(key)


def _ranks(keys: Keys, expr: Expr) -> NDArray[np.int64]:
    """Return the rank of each key when the keys of a column are sorted, with the null last."""
    ordered = with_options(keys, expr, True, None)
    if ordered is keys:
        return np.arange(len(keys))
    place = {listed_key(k): i for i, k in enumerate(ordered.index)}
    return np.array([place[listed_key(k)] for k in keys.index], dtype=np.int64)


def _rows(keys: Any, columns: int, names: Sequence[Hashable]) -> list[tuple[Any, ...]]:
    """Return the combinations that a user listed, after checking that each is a tuple of the right
    length.

    ``columns`` is their number, and ``names`` are for the error.
    """
    length(keys, "combinations in keys=")
    rows = list(keys)
    if not rows:
        raise BadValue("keys are empty: nothing would be asked.")
    for row in rows:
        if not isinstance(row, tuple) or len(row) != columns:
            columns_text = ", ".join(map(repr, names))
            raise BadValue(
                f"a combination in keys= is a tuple with one key for each of {columns_text}, as ('CA', 'F') is for two columns."
            )
    return rows


def lists_tuples(keys: object, columns: int) -> bool:
    """Return whether ``keys=`` for several columns lists combinations, rather than keys of each
    column.

    Combinations are a MultiIndex or a list of tuples. A set of tuples is refused, since it has no
    order.
    """
    if columns < 2 or isinstance(keys, str | bytes | Mapping) or not isinstance(keys, Iterable):
        return False
    if isinstance(keys, pd.MultiIndex):
        return True
    if isinstance(keys, set | frozenset) and any(isinstance(k, tuple) for k in keys):
        raise BadType(
            "combinations of keys must be a public, ordered list, not a set. Write them out."
        )
    if not isinstance(keys, list | tuple):
        return False
    return length(keys, "keys") > 0 and all(isinstance(k, tuple) for k in keys)


@dataclass(frozen=True, slots=True)
class TupleBy:
    """Group by listed combinations; rows with another combination belong to no group."""

    identity: ClassVar[tuple[str, ...]] = ("by_tuples", "levels", "tuples")

    levels: tuple[KeyBy, ...]
    tuples: Tuples

    @staticmethod
    def of(exprs: Sequence[Expr], tuples: Tuples) -> TupleBy:
        return TupleBy(tuple(KeyBy(e, k) for e, k in zip(exprs, tuples.keys, strict=True)), tuples)

    @property
    def token(self) -> str:
        return self.tuples.token

    @property
    def index(self) -> Index:
        return self.tuples.index

    @property
    def word(self) -> Word:
        listed = describe(self.tuples.to_json())
        return Word(
            "keys", f"{', '.join(str(level.expr) for level in self.levels)}: {listed}", "groups"
        )

    def __str__(self) -> str:
        columns = ", ".join(str(level.expr) for level in self.levels)
        return f"({columns}) over {len(self.tuples)} combinations"


@dataclass(frozen=True, slots=True)
class RestBy:
    """Grouping by listed keys, with one more group at the end for rows with any other key but
    null."""

    identity: ClassVar[tuple[str, ...]] = ("by_rest", "listed", "label")

    listed: KeyBy
    label: Hashable = field(compare=False)
    keys: Keys = field(
        init=False
    )  # with the label; the token differs for labels that Python holds for equal

    def __post_init__(self) -> None:
        """Make the keys of the groups: the listed ones, then the label of the group for all
        others."""
        index, name = self.listed.index, self.listed.index.name
        _check_label(self.label, self.listed.keys, name)
        if isinstance(index.dtype, pd.CategoricalDtype):
            categories = [*index.categories, self.label]  # type: ignore[attr-defined]  # a CategoricalIndex
            values = pd.Categorical(
                [*index, self.label], categories=categories, ordered=index.dtype.ordered
            )
            index = pd.CategoricalIndex(values, name=name)
        else:
            index = index_of([*index.tolist(), self.label], name)
        object.__setattr__(self, "keys", Keys(index, self.listed.keys.null))

    @property
    def expr(self) -> Expr:
        return self.listed.expr

    @property
    def token(self) -> str:
        return f"{self.keys.token} other"

    @property
    def index(self) -> Index:
        return self.keys.index

    @property
    def word(self) -> Word:
        text = (
            f"{self.expr}: {describe(self.listed.keys.to_json())} and {self.label!r} for the others"
        )
        return Word("keys", text, "groups")

    def __str__(self) -> str:
        return f"{self.listed} and {self.label!r}"


@dataclass(frozen=True, slots=True)
class Sought:
    """Column to group by with keys that nobody listed. Its groups are known once its keys are
    found."""

    expr: Expr
    name: Hashable
    sort: bool | None = None
    dropna: bool | None = None
    label: Any = None  # of a group for the keys that are not found; None without such a group

    def with_keys(self, keys: Keys) -> By:
        """Return the grouping by keys that were found, with a group for other keys if it has a
        label."""
        level = KeyBy(
            self.expr, with_options(keys, self.expr, None, self.dropna)
        )  # found keys come in order
        return level if self.label is None else RestBy(level, self.label)

    def __str__(self) -> str:
        return f"{self.expr} over keys to be found"


def _check_label(label: Hashable, keys: Keys, name: Hashable) -> None:
    """Refuse a label for the group of other keys that is no plain value, or is a listed key.

    ``name`` is the name of the column, for the error.
    """
    if (
        isinstance(label, bool)
        or not isinstance(label, str | int | float | pd.Timestamp)
        or _pandas.isna(label)
    ):
        raise BadType(
            f"other= is the label of the last group, such as 'other', not {type(label).__name__}."
        )
    if any(i != keys.null and _equal(key, label) for i, key in enumerate(keys.index)):
        raise BadValue(
            f"other={label!r} is one of the listed keys of {name!r}. Choose another label."
        )


def _equal(key: object, label: object) -> bool:
    return isinstance(key, str) == isinstance(label, str) and bool(key == label)


def with_rest(levels: Sequence[KeyBy | Sought], other: object) -> tuple[By | Sought, ...]:
    """Return groupings with an added group for keys that are not listed, where ``other=`` asks for
    it.

    ``levels`` has a grouping for each column. ``other`` is the label of the added group, or a dict
    of labels by column.
    """
    names = [level.name if isinstance(level, Sought) else level.index.name for level in levels]
    if not isinstance(other, Mapping):
        if len(levels) > 1:
            raise BadType(
                "with several columns other= is a dict by column: other={'state': 'elsewhere'}."
            )
        other = {names[0]: other}
    unknown = [name for name in other if name not in names]
    if unknown:
        raise BadValue(f"other= names {unknown[0]!r}, which is not grouped by.")
    groupings = tuple(
        level
        if other.get(name) is None
        else replace(level, label=other[name])
        if isinstance(level, Sought)
        else RestBy(level, other[name])
        for level, name in zip(levels, names, strict=True)
    )
    if groups_of(by for by in groupings if not isinstance(by, Sought)) > GROUP_CEILING:
        raise BadValue(
            f"with other= there are more than {GROUP_CEILING} combinations of keys. Group by fewer columns."
        )
    return groupings
