"""The verbs that make several rows of one: explode and melt. What they return is a tracked frame
under the same budget.

`Merging` has merge, and `Adopting` pipe and adopt.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe._cells.columns import objects, prepare
from dpframe._errors import BadType, BadValue, SessionError
from dpframe._expr import NO_KEYS, Column, Expr, is_split
from dpframe._frame.selection import Selection, mode_of, selection_of, session_of_frame
from dpframe._frame.tracked import Frame, Tracked
from dpframe._groups.keys import Word, describe, keys_for
from dpframe._groups.premises import Premises
from dpframe._groups.unit import limits_for
from dpframe._session.derived import Made, TrackedRows, make_derived_session, unit_for
from dpframe._session.door import read_private
from dpframe._session.session import Session
from dpframe._types import Array
from dpframe._validate import Bounds
from dpframe.engines.rows import FrameRows, explode_lists, joined, numbers


def source_of(frame: Tracked, verb: str) -> TrackedRows:
    """Return the private rows from which a verb such as `explode` makes other rows.

    ``verb`` is its name. A batch, which asks one frame, is refused.
    """
    selection = selection_of(frame)
    if mode_of(frame).answers_later:
        raise SessionError(
            "a batch asks one frame: derive it first, p = p.explode(...), and then with p.plan_ahead() as batch: ..."
        )
    return TrackedRows(
        session_of_frame(frame), selection.columns, selection.where, verb, selection.premises
    )


def derived_frame(
    frame: Frame, session: Session, word: Word, more: Sequence[tuple[str, str, str]] = ()
) -> Frame:
    """Return the tracked frame of rows that a verb made, and record the step in the ledger.

    ``session`` is that of the new rows. ``word`` says what made them, and ``more`` are further
    declarations.
    """
    session.accountant.declare([(word.what, word.value, word.where), *more])
    declared = (*selection_of(frame).words, word)
    selection = Selection(session, session.leaves, words=declared, premises=session.premises)
    return type(frame)(session, selection, mode_of(frame))


def _multiply_rows(
    source: TrackedRows, made: Made, premises: Premises, limits: tuple[object, object], steps: str
) -> Session:
    unit = unit_for(source.session, premises.max_rows, *limits)
    return make_derived_session(source.session, made, unit, steps, premises)


def explode(
    self: Frame,
    column: object,
    ignore_index: bool = False,
    *,
    dtype: str | None = None,
    max_rows: int | None = None,
    max_groups: int | None = None,
) -> Frame:
    """Make a row for each element of the lists in a column, as ``DataFrame.explode``; the other
    columns are repeated.

    Formal guarantee: the rows of one person stay theirs, so that a question costs what it costs
    anywhere else (docs/guarantees/derived.md). Where a row was a person, one has many rows now:
    ``max_rows`` (of a group) and ``max_groups`` say for how many one may count, here or at each
    question.

    Lists, tuples, sets and one-dimensional arrays have elements; an empty one and a null make one
    row with a null, any other cell one row. The new column has no bounds or keys. ``dtype`` "float"
    or "str" makes it one of numbers or texts, with a null for elements that are none; without it a
    column of objects can be grouped by, but not summed. (``.str`` methods take lists for nulls,
    ``.str.len()`` too.)

    >>> df = pd.DataFrame({"age": [30, 41], "codes": [["flu", "cough"], ["flu"]]})
    >>> p = df.dp.open(1000, keys={"age": [30, 41]})
    >>> codes = p.explode("codes", max_rows=2, max_groups=2)
    >>> codes.groupby("codes", keys=["flu", "cough"]).size(epsilon=300).to_dict()
    {'flu': 2, 'cough': 1}
    """
    source = source_of(self, "explode")
    name = _validate.column_name(column, self._selection.columns)
    expr = self._selection.columns[name]
    if not (isinstance(expr, Column) or is_split(expr)):
        raise BadType(
            f"explode needs a column as it was opened, or texts that are split, p['word'].str.split(';'), and {name!r} is "
            "another expression."
        )
    if dtype is not None and not (isinstance(dtype, str) and dtype in ("float", "str")):
        raise BadValue("dtype= of explode is 'float' or 'str'; leave it out for objects.")
    if not isinstance(expr, Column):  # texts that are split
        dtype = "str" if dtype is None else dtype
    elif not _has_lists(own := self._session.snapshot.dtypes.iloc[expr.position]):
        raise BadType(
            f"column {name!r} is of kind {expr.kind}: only a column of lists can be exploded."
        )
    elif dtype is not None and isinstance(own, pd.ArrowDtype):
        raise BadType("lists of Arrow have elements of one type already: leave dtype= out.")
    if expr in self._session.unit.people:
        raise BadValue(f"{name!r} names a person and cannot be exploded.")
    _validate.flag(ignore_index, "ignore_index")
    limits_for(max_rows, max_groups)
    source.check_unit_named()
    made = read_private("explode", _explode_rows, source, name, dtype)
    source.repeat_by_batch(made, _explode_rows, name, dtype)
    steps = source.steps("explode", (name, dtype))
    premises = source.premises.of_made_rows(
        None, piecewise=source.is_piecewise, adjacent=True, all_rows=True
    )
    session = _multiply_rows(source, made, premises, (max_rows, max_groups), steps)
    return derived_frame(self, session, Word("rows", f"explode({name!r})", "steps"))


def melt(
    self: Frame,
    id_vars: object = None,
    value_vars: object = None,
    var_name: Hashable = None,
    value_name: Hashable = "value",
    ignore_index: bool = True,
    *,
    max_rows: int | None = None,
    max_groups: int | None = None,
) -> Frame:
    """Put columns under each other: a row for each of ``value_vars``, as ``DataFrame.melt``.

    Formal guarantee: as for `explode`. Where a row was a person, one has exactly as many rows now
    as there are ``value_vars``, and these are the limits unless you name others.

    The columns must be of one kind. The bounds of the values are the hull of theirs, where all are
    declared, and the names of the columns are the keys of ``var_name``.

    >>> df = pd.DataFrame({"before": [30.0, 40.0] * 50, "after": [31.0, 41.0] * 50})
    >>> p = df.dp.open(1000, bounds={"before": (0, 100), "after": (0, 100)})
    >>> p.melt().groupby("variable")["value"].mean(epsilon=900).round(0).to_dict()
    {'before': 35.0, 'after': 36.0}
    """
    source = source_of(self, "melt")
    ids = names_of(id_vars, self._selection.columns) if id_vars is not None else []
    rest = [n for n in self._selection.columns if n not in ids]
    values = rest if value_vars is None else names_of(value_vars, self._selection.columns)
    var_name = "variable" if var_name is None else _validate.hashable(var_name, "var_name")
    _validate.hashable(value_name, "value_name")
    wanted = [*ids, var_name, value_name]
    if not values:
        raise BadValue("melt needs at least one column in value_vars.")
    if len(set(wanted)) < len(wanted):
        raise BadValue(
            "melt would give two columns the same name: choose var_name= and value_name=."
        )
    _validate.flag(ignore_index, "ignore_index")
    limits_for(max_rows, max_groups)
    exprs = [self._selection.columns[n] for n in values]
    _check_alike(source, values, exprs)
    source.check_unit_named()
    made = read_private("melt", _melt_rows, source, ids, values, var_name, value_name)
    source.repeat_by_batch(made, _melt_rows, ids, values, var_name, value_name)
    variable, place, count = len(ids), len(ids) + 1, len(values)
    leaf = Column.of(variable, var_name, made.arrays[variable].dtype)
    if all(type(n) in (str, int) for n in values):
        made.keys[variable] = keys_for(values, leaf, var_name)
    column_bounds = [e.bounds(self._selection.schema.bounds) for e in exprs]
    pairs = [k for k in column_bounds if k is not None]
    if exprs[0].kind in ("number", "bool") and len(pairs) == count:
        made.bounds[place] = Bounds(min(k[0] for k in pairs), max(k[1] for k in pairs))
    premises = source.premises.of_made_rows(
        count, piecewise=source.is_piecewise, adjacent=count == 1, all_rows=True
    )
    arguments: tuple[Any, ...] = ids, values, var_name, value_name
    steps = source.steps("melt", arguments)
    session = _multiply_rows(source, made, premises, (max_rows, max_groups), steps)
    return derived_frame(self, session, Word("rows", f"melt of {describe(values)}", "steps"))


def _has_lists(dtype: object) -> bool:
    if isinstance(dtype, pd.ArrowDtype):
        return hasattr(dtype.pyarrow_dtype, "value_type") and "list" in str(dtype.pyarrow_dtype)
    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def names_of(argument: object, columns: Mapping[Hashable, Expr]) -> list[Hashable]:
    names = list(argument) if isinstance(argument, list | tuple | pd.Index) else [argument]
    return _validate.column_names(names, columns)


def _objects(values: Sequence[object]) -> Array:
    cells = np.empty(len(values), dtype=object)
    cells[:] = list(values)
    return cells


def _insert(made: Made, place: int, name: Hashable, array: object) -> None:
    """Insert a column into rows that a verb made, at position ``place``.

    What is known of the columns after it moves along.
    """

    def move(i: int) -> int:
        return i + (i >= place)

    made.names.insert(place, name)
    made.arrays.insert(place, array)
    made.bounds = {move(i): b for i, b in made.bounds.items()}
    made.times = {move(i): t for i, t in made.times.items()}
    made.keys = {move(i): k for i, k in made.keys.items()}
    made.people = [move(p) if isinstance(p, int) else p for p in made.people]


def _without_order(made: Made, ids: Sequence[Hashable]) -> Made:
    """Return the columns of rows that a verb made in the order of ``ids``, with what is known of
    them."""
    order = [made.names.index(n) for n in ids]
    to = {old: new for new, old in enumerate(order)}
    return Made(
        [made.names[i] for i in order],
        [made.arrays[i] for i in order],
        {to[i]: b for i, b in made.bounds.items()},
        {to[i]: t for i, t in made.times.items()},
        {to[i]: k for i, k in made.keys.items()},
        [to[p] if isinstance(p, int) else p for p in made.people],
    )


def _explode_rows(source: TrackedRows, name: Hashable, dtype: str | None) -> Made:
    """Make the rows of `explode`, one for each element of the lists in a column.

    It reads private rows, so only `read_private` calls it. ``dtype`` is that of the elements, or
    None for objects.
    """
    rows = explode_lists(source.array(source.columns[name]), dtype)
    made = source.copy_columns(rows.source, skip=[name])
    _insert(made, list(source.columns).index(name), name, rows.array)
    return made


def _melt_rows(
    source: TrackedRows,
    ids: Sequence[Hashable],
    values: Sequence[Hashable],
    var_name: Hashable,
    value_name: Hashable,
) -> Made:
    """Make the rows of `melt`, one for each of the columns ``values`` and each old row.

    It reads private rows, so only `read_private` calls it.
    """
    array, size, count = (
        _stack_columns(source, [source.columns[n] for n in values]),
        len(source.places),
        len(values),
    )
    kept = source.copy_columns(
        np.tile(np.arange(size), count), skip=[n for n in source.columns if n not in ids]
    )
    made = _without_order(kept, ids)
    labels: Any = _objects(values)
    labels = pd.array(labels, dtype="str") if all(type(n) is str for n in values) else labels
    made.add(var_name, labels.take(np.repeat(np.arange(count), size)))
    made.add(value_name, array)
    return made


def _kinds(exprs: Sequence[Expr]) -> set[str]:
    kinds: set[str] = {
        "number" if e.kind == "bool" and len({x.kind for x in exprs}) > 1 else e.kind for e in exprs
    }
    return {"label"} if kinds == {"text", "label"} else kinds


def _check_alike(source: TrackedRows, names: Sequence[Hashable], exprs: Sequence[Expr]) -> None:
    """Refuse columns that `melt` cannot put into one, because their kinds or dtypes differ.

    Only dtypes are compared, which are public.
    """
    kinds = _kinds(exprs)
    if len(kinds) > 1 or kinds & NO_KEYS:
        raise BadType(
            f"melt needs columns of one kind, and {describe(list(names))} are of {sorted(kinds)}."
        )
    if kinds == {"time"} and len(set(read_private("melt", _dtypes, source, exprs))) > 1:
        raise BadType("melt needs times of one dtype: the same resolution and the same zone.")


def _dtypes(source: TrackedRows, exprs: Sequence[Expr]) -> list[Any]:
    empty = FrameRows(source.session.snapshot.iloc[:0])
    return [empty.array(e).dtype for e in exprs]


def _stack_columns(source: TrackedRows, exprs: Sequence[Expr]) -> Any:
    """Return the cells of several columns in one array, one column after the other.

    Its dtype follows from those of the columns alone.
    """
    arrays = [source.array(e) for e in exprs]
    if all(a.dtype == arrays[0].dtype for a in arrays):
        return joined(arrays)
    if _kinds(exprs) <= {"number", "bool"}:
        return np.concatenate([n.take(source.places) for n in numbers(source.rows, exprs)])
    return joined([_cells(a, e) for a, e in zip(arrays, exprs, strict=True)])


def _cells(array: Any, expr: Expr) -> Array:
    """Return the values of a column as objects, so that columns of different dtypes can be joined.

    Texts are as the engine reads them, and some bytes may not be text.
    """
    if not isinstance(array.dtype, pd.ArrowDtype | pd.StringDtype):
        return objects(array)
    vector = prepare(pd.Series(array, copy=False), expr.kind)
    assert vector.categories is not None
    return objects([*vector.categories, None]).take(vector.values)
