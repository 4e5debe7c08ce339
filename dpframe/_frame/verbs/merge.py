"""Merging with a public table: the columns that a key of a row looks up."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe._errors import BadType, BadValue, Refused, with_article
from dpframe._expr import Column, Expr
from dpframe._frame.selection import selection_of
from dpframe._frame.tracked import Frame, Tracked, with_selection
from dpframe._frame.verbs.reshape import derived_frame, names_of, source_of
from dpframe._groups.keys import Word, describe, keys_for
from dpframe._groups.unit import limits_for
from dpframe._session.data import ATTR, marks, sessions
from dpframe._session.derived import (
    Made,
    TrackedRows,
    hash_of,
    make_derived_session,
    no_limits,
    unit_for,
)
from dpframe._session.door import read_private
from dpframe._session.session import Session
from dpframe._types import Series
from dpframe._validate import Bounds
from dpframe.engines.rows import PublicTable, array_of, take_cells, with_room_for_nulls

# A public column with at most this number of values has them as keys without a list.
_KEYS = 2**12


def merge(
    self: Frame,
    right: pd.DataFrame,
    how: str = "inner",
    on: object = None,
    left_on: object = None,
    right_on: object = None,
    left_index: bool = False,
    right_index: bool = False,
    sort: bool = False,
    suffixes: tuple[str | None, str | None] = ("_x", "_y"),
    copy: object = None,
    indicator: object = False,
    validate: object = None,
    *,
    max_rows: int | None = None,
    max_groups: int | None = None,
    because: str | None = None,
) -> Frame:
    """Add the columns of a public table, matched by key columns, as ``DataFrame.merge``; ``how`` is
    "inner" or "left".

    Another tracked frame of the same people, under the same budget, is matched person by person, in
    all four ways of pandas: of each person at most ``max_rows`` rows of either side count, and in
    the result their product (docs/guarantees/derived.md). Without ``unit=`` both have to come from
    one opened frame, by verbs that make several rows of one. They are matched by the row of that
    frame, and by ``on`` beside it.

    Formal guarantee: as for `explode`, given that the table is public, which is your declaration:
    its columns, its number of rows and a hash of it are kept. A table whose keys are all different
    leaves a row one person's only one.

    A null key matches nothing (pandas matches NaN with NaN). With ``how="left"`` numbers and bools
    of the table become nullable (``Int64``, ``boolean``) whether or not somebody has no match. Its
    columns come with their bounds and keys: they are public.

    A table by the column that ``unit=`` names has a row for each of some people, and is almost
    always private: it needs ``because=``, your sentence why it is public, which is kept beside it.

    >>> regions = pd.DataFrame({"state": ["CA", "NY"], "coast": ["west", "east"]})
    >>> df = pd.DataFrame({"state": ["CA", "NY", "CA", "TX"]})
    >>> p = df.dp.open(1000)
    >>> p.merge(regions, on="state").groupby("coast").size(epsilon=300).to_dict()
    {'east': 1, 'west': 2}
    """
    if (
        right_index is True
        and left_index is False
        and left_on is not None
        and on is right_on is None
    ):
        if indicator is not False:
            raise Refused(
                "indicator= is not needed: rows without a match have nulls, p['x'].isna(), with how='left'."
            )
        limits: Any = {"max_rows": max_rows, "max_groups": max_groups, "because": because}
        left, other = suffixes
        return join(self, right, left_on, how, left or "", other or "", validate=validate, **limits)
    if left_index is not False or right_index is not False:
        raise Refused(
            "merge goes by columns: write right=table.reset_index() and on= or left_on=, right_on=."
        )
    if validate is not None:
        raise Refused(
            "validate= would tell whether people's keys are unique. The table's own you can check yourself."
        )
    if indicator is not False:
        raise Refused(
            "indicator= is not needed: with how='left' the rows without a match have nulls, p['column'].isna()."
        )
    if isinstance(right, Tracked):
        return cast(
            Frame,
            self._merge_people(right, how, on, left_on, right_on, suffixes, max_rows, max_groups),
        )
    source = source_of(self, "merge")
    if not isinstance(how, str) or how not in ("inner", "left"):
        raise Refused(
            f"how={how!r} would make rows that belong to nobody, and tell who is not there. Use 'inner' or 'left'."
        )
    table = _public(right, self._session)
    keys = _key_names(self._selection.columns, table, on, left_on, right_on)
    reason = _reason(keys, self._selection.columns, self._session, because)
    table_names: list[Hashable] = list(table.columns)
    names, theirs = merged_names(list(self._selection.columns), table_names, keys, suffixes)
    limits_for(max_rows, max_groups)
    lookup = PublicTable(
        table, [r for _, r in keys], {n: self._selection.columns[n] for n, _ in keys}
    )
    single = lookup.most_matches <= 1
    if single and not self._session.unit.people:
        no_limits(max_rows, max_groups)
    hidden = bool(self._session.unit.people) or not single
    public = {new: array_of(table, table_names.index(name)) for name, new in theirs.items()}
    joining = _Join(lookup, names, public, how == "left", hidden)
    if hidden:
        source.check_unit_named()
    made = read_private("merge", _join_rows, source, joining)
    source.repeat_by_batch(made, _join_rows, joining)
    for place, (new, array) in enumerate(public.items(), start=len(made.names) - len(public)):
        _describe_public(made, place, new, array)
    on_record = (
        f"columns {describe(list(table.columns))}, {len(table)} rows, hash {hash_of(table)}{reason}"
    )
    arguments = how, keys, list(names.items()), list(theirs.items()), table
    steps = source.steps("merge", arguments)
    ways = {"piecewise": source.is_piecewise, "all_rows": how == "left"}
    premises = (
        source.premises.of_matched_rows(**ways)
        if single
        else source.premises.of_made_rows(lookup.most_matches, adjacent=True, **ways)
    )
    unit = (
        unit_for(source.session, premises.max_rows, max_rows, max_groups)
        if hidden
        else self._session.unit
    )
    session = make_derived_session(source.session, made, unit, steps, premises)
    return derived_frame(
        self, session, Word("public table", on_record, f"merge on {describe([n for n, _ in keys])}")
    )


def join(
    self: Frame,
    other: object,
    on: object = None,
    how: str = "left",
    lsuffix: str = "",
    rsuffix: str = "",
    sort: bool = False,
    validate: object = None,
    *,
    max_rows: int | None = None,
    max_groups: int | None = None,
    because: str | None = None,
) -> Frame:
    """Add the columns of a public table, matched by the table's index, as ``DataFrame.join``; or
    those of another tracked frame of the same people, matched by ``on``, person by person. See
    `merge`.

    >>> tax = pd.Series([8.5, 8.0], index=["CA", "NY"], name="tax")
    >>> df = pd.DataFrame({"state": ["CA", "NY", "CA", "TX"]})
    >>> p = df.dp.open(1000)
    >>> p.join(tax, on="state").count("tax", epsilon=300) == 3
    True
    >>> visits = pd.DataFrame({"id": [1, 1, 2], "cost": [10.0, 30.0, 10.0]})
    >>> p = visits.dp.open(1000, unit="id", max_rows=2, max_groups=1, bounds={"cost": (0, 30)})
    >>> total = p.groupby("id").agg(total=("cost", "sum"))
    >>> print(round(p.join(total, on="id").mean("total", epsilon=900)))
    30
    """
    if isinstance(other, Tracked):
        suffixes = (lsuffix, rsuffix)
        return cast(
            Frame,
            self._merge_people(other, how, on, None, None, suffixes, max_rows, max_groups),
        )
    if isinstance(other, pd.Series) and not is_private(other, self._session):
        other = other.to_frame()
    table = _public(other, self._session)
    index = self._selection.index
    if on is None:
        if not index:
            raise Refused(
                "the rows have no labels here to join by: name the column that the table has as index, p.join(table, on='key')."
            )
        frame = self._new(
            replace(self._selection.replace_columns({**index, **self._selection.columns}), index={})
        )
        made = join(
            frame,
            other,
            list(index),
            how,
            lsuffix,
            rsuffix,
            max_rows=max_rows,
            max_groups=max_groups,
            because=because,
        )
        columns = dict(selection_of(made).columns)
        levels = {name: columns.pop(name) for name in index}
        return with_selection(
            made, replace(selection_of(made).replace_columns(columns), index=levels)
        )
    names = names_of(on, self._selection.columns)
    if table.index.nlevels != len(names):
        raise BadValue(
            f"on= names {len(names)} columns, and the index of the table has {table.index.nlevels} levels."
        )
    both = [name for name in names if name in table.columns]
    if both:
        raise BadValue(
            f"the table has a column {both[0]!r} beside its index. Match by that column, p.merge(table, on={both[0]!r}), or "
            "leave it out."
        )
    keyed = table.set_axis(table.index.set_names(names), axis=0).reset_index()
    limits = {"max_rows": max_rows, "max_groups": max_groups, "because": because}
    return merge(
        self, keyed, how, names, validate=validate, suffixes=(lsuffix, rsuffix), **cast(Any, limits)
    )


class _Join(NamedTuple):
    """A join of rows to a public table.

    ``names`` are the new names of the private columns by the old ones. ``public`` are the columns
    of the table by their new names. With ``left`` rows without a match stay. With ``hidden`` people
    keep their hidden names.
    """

    lookup: PublicTable
    names: Mapping[Hashable, Hashable]
    public: Mapping[Hashable, Any]
    left: bool
    hidden: bool


def _join_rows(source: TrackedRows, join: _Join) -> Made:
    """Return the private columns under their new names, and those of each row's match in the table.

    It reads private rows, so only `read_private` calls it.
    """
    rows = join.lookup.match(source.rows, source.places, join.left)
    made = source.copy_columns(rows.left, hidden=join.hidden)
    made.names = [join.names[n] for n in made.names]
    made.keys = {i: k.rename(made.names[i]) for i, k in made.keys.items()}
    for name, array in join.public.items():
        made.add(name, take_cells(with_room_for_nulls(array) if join.left else array, rows.right))
    return made


def _public(right: object, session: Session) -> pd.DataFrame:
    """Return the right side of a merge, if it is a public table; refuse what may be private."""
    library = type(right).__module__.partition(".")[0]
    if library == "dpframe" and (hasattr(right, "_session") or hasattr(right, "_frame")):
        raise Refused(
            "the right side of merge is a public table. Two private frames cannot be merged: rows would be two people's."
        )
    if not isinstance(right, pd.DataFrame):
        raise BadType(
            f"merge takes a public DataFrame of pandas, not {with_article(type(right).__name__)} "
            f"of {library}. Make one of a public "
            "table first: to_pandas(), toPandas() of Spark, compute() of dask."
        )
    if not right.columns.is_unique or right.columns.nlevels > 1:
        raise BadValue(
            "the columns of the public table must have one name each, and no two the same."
        )
    if is_private(right, session):
        raise Refused(
            "this table belongs to a private session, so it is not public. Merge before opening, where each row of the "
            "result is one person's, or adopt(other, because='...')."
        )
    return right


def _reason(
    keys: list[tuple[Hashable, Hashable]],
    columns: Mapping[Hashable, Expr],
    session: Session,
    because: object,
) -> str:
    """Return the reason why the table is public, for the record. A table by people needs one."""
    if because is not None and not (isinstance(because, str) and because.strip()):
        raise BadType(
            "because= must be a sentence: it is written in the ledger as your declaration."
        )
    people = set(session.unit.people)
    by = [name for name, _ in keys if people & set(columns[name].columns())]
    if by and because is None:
        raise BadValue(
            f"{by[0]!r} names a person, and a table by people is almost always private: each of its rows is somebody's. If "
            "it is public, say why: merge(..., because='...'), which is kept as your declaration. If it is not, merge before "
            "opening, or adopt(other, because='...')."
        )
    return "" if because is None else f"; {because.strip()}"


def is_private(value: object, session: Session) -> bool:
    """Return whether a value is a frame or column of a session, or shares data with one."""
    if isinstance(value, Tracked):
        return True
    if not isinstance(value, pd.DataFrame | pd.Series):
        return False
    if value.attrs.get(ATTR) is not None:
        return True
    frame = value.to_frame() if isinstance(value, pd.Series) else value
    owned = marks(frame)
    return any(
        owned & s.data.marks
        for root in [*sessions.values(), session]
        for s in [root, *root.derived]
    )


def _key_names(
    columns: Mapping[Hashable, Expr],
    table: pd.DataFrame,
    on: object,
    left_on: object,
    right_on: object,
) -> list[tuple[Hashable, Hashable]]:
    """Return the pairs of columns that a merge matches: one of the frame and one of the table.

    ``on``, ``left_on`` and ``right_on`` are as in pandas. Without them these are all columns with a
    common name.
    """
    table_names: list[Hashable] = list(table.columns)
    if on is None and left_on is None and right_on is None:
        on = [n for n in columns if n in table_names]
        if not on:
            raise BadValue(
                "the frame and the table have no column in common: give on=, or left_on= and right_on=."
            )
    if on is not None:
        if left_on is not None or right_on is not None:
            raise BadValue("give on=, or left_on= and right_on=, not both.")
        left_on = right_on = on
    if left_on is None or right_on is None:
        raise BadValue("left_on= and right_on= belong together.")
    lefts = names_of(left_on, columns)
    right_names = list(right_on) if isinstance(right_on, list | tuple | pd.Index) else [right_on]
    rights = _validate.column_names(right_names, table_names)
    if len(lefts) != len(rights) or not lefts:
        raise BadValue("left_on= and right_on= must name as many columns.")
    return list(zip(lefts, rights, strict=True))


def merged_names(
    ours: list[Hashable],
    theirs: list[Hashable],
    keys: list[tuple[Hashable, Hashable]],
    suffixes: object,
) -> tuple[dict[Hashable, Hashable], dict[Hashable, Hashable]]:
    """Return the names of the columns after a merge by the old names, for each side.

    ``keys`` are the pairs of matched columns. One with the same name on both sides stands once.
    Other common names get ``suffixes``.
    """
    if not isinstance(suffixes, tuple | list) or len(suffixes) != 2:
        raise BadType("suffixes= must be a pair of texts.")
    once = {left_name for left_name, right_name in keys if left_name == right_name}
    rest = [n for n in theirs if n not in once]
    both = {n for n in rest if n in ours}
    if both and not any(suffixes):
        raise BadValue(
            f"columns {describe(sorted(map(str, both)))} are on both sides: give suffixes=."
        )

    def add_suffix(name: Hashable, suffix: object) -> Hashable:
        return f"{name}{suffix or ''}" if name in both else name

    left, right = (
        {n: add_suffix(n, suffixes[0]) for n in ours},
        {n: add_suffix(n, suffixes[1]) for n in rest},
    )
    all_names = [*left.values(), *right.values()]
    if len(set(all_names)) < len(all_names):
        raise BadValue("merge would give two columns the same name: choose suffixes=.")
    return left, right


def _describe_public(made: Made, place: int, name: Hashable, array: Any) -> None:
    """Declare the bounds or the keys of a column of a public table, which its own values tell.

    ``place`` is its position in the merged rows ``made``. Only few different texts become keys.
    """
    column = pd.Series(array, dtype=array.dtype).dropna()
    leaf = Column.of(place, name, array.dtype)
    if leaf.kind == "number" and len(column):
        lower, upper = float(column.min()), float(column.max())
        if (
            np.isfinite(lower)
            and np.isfinite(upper)
            and (lower == upper or upper - lower > _validate.MIN_WIDTH)
        ):
            made.bounds[place] = Bounds(lower, upper)
    elif leaf.kind == "text" and 0 < len(values := _in_order(column)) <= _KEYS:
        made.keys[place] = keys_for(values, leaf, name)


def _in_order(column: Series) -> list[Any]:
    """Return the different values in the order that pandas gives groups: that of the categories, or
    sorted."""
    values = list(column.astype(object).unique())
    if isinstance(column.dtype, pd.CategoricalDtype):
        return [category for category in column.dtype.categories if category in set(values)]
    return sorted(values)
