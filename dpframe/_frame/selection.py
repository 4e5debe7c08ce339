"""What is asked about: columns, rows and groups of a session, as public facts. No cell and no budget."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import FrameType
from typing import Any, Protocol

import numpy as np
import pandas as pd

from dpframe import _expr, _validate
from dpframe._errors import BadType, BadValue, LineageError, MissingBounds
from dpframe._expr import NO_KEYS, Column, Cut, Expr, If, Join, Piece, Regex
from dpframe._expr._parse import parse
from dpframe._groups.combinations import Sought, Tuples
from dpframe._groups.keys import By, Keys, Word, describe, keys_for, need_keys
from dpframe._groups.periods import Span
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import AGGREGATES, CHOSEN, ORDERS, Output, powers, too_wide
from dpframe._refusals import Unprinted
from dpframe._validate import Bounds
from dpframe.engines.keys import images

_MOST_IMAGES = 10_000
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


class Taken(Unprinted):
    """A column as it was taken from a frame: its expression, and the name that its answers take."""

    def __init__(self, frame: Any, expr: Expr, name: Hashable = None):
        self._frame = frame
        self._expr = expr
        self._name = name


class Schema(Protocol):
    """The public facts of a session: its columns, and what is declared of them now."""

    @property
    def leaves(self) -> Mapping[Hashable, Column]: ...
    @property
    def bounds(self) -> Mapping[int, tuple[float, float]]: ...
    @property
    def times(self) -> Mapping[int, Span]: ...
    @property
    def keys(self) -> Mapping[int, Keys]: ...
    @property
    def tuples(self) -> Mapping[tuple[int, ...], Tuples]: ...
    @property
    def unit(self) -> Unit: ...
    @property
    def dtypes(self) -> Sequence[Any]: ...
    @property
    def index_names(self) -> Sequence[Hashable]: ...


@dataclass(frozen=True, eq=False)
class Selection:
    """Some columns of some rows, in groups where there are any, and the words their owner has declared on the way."""

    schema: Schema
    columns: Mapping[Hashable, Expr]
    where: Expr | None = None
    by: tuple[By | Sought, ...] = ()
    words: tuple[Word, ...] = ()

    # Other selections -----------------------------------------------------------------------------------------

    def having(self, columns: Mapping[Hashable, Expr]) -> Selection:
        """The same rows with other columns."""
        return replace(self, columns=dict(columns))

    def filtered(self, condition: Expr) -> Selection:
        """The rows where a condition holds too."""
        if condition.kind != "bool":
            condition = predicate_of(condition)
        both = condition if self.where is None else _expr.logical_and(self.where, condition)
        return replace(self, where=both)

    def declaring(self, words: tuple[Word, ...]) -> Selection:
        """The same selection, with more facts that are public by its owner's word."""
        return replace(self, words=self.words + words) if words else self

    # Columns --------------------------------------------------------------------------------------------------

    def expr(self, name: Any) -> Expr:
        """The expression of a column, given by its name or as it was taken from here."""
        return self.named(name)[0]

    def own(self, column: Taken) -> Expr:
        """The expression of a column that was taken from here; another one is refused."""
        of = column._frame._selection
        if of.schema is not self.schema or of.where != self.where:
            raise LineageError(
                "this column belongs to another frame or to another selection of rows. Take it from the frame it is "
                "used with: p[p['age'] > 30] and not q[p['age'] > 30]."
            )
        return column._expr

    def named(self, column: Any) -> tuple[Expr, Hashable]:
        """A column's expression, and the name that its answers take."""
        if type(column) is str and column in self.columns:  # as most are given
            return self.columns[column], column
        if isinstance(column, Taken):
            return self.own(column), column._name
        if isinstance(column, pd.Grouper):
            raise BadType("a pd.Grouper is for groupby and pivot_table; here name a column.")
        return self.columns[_validate.column_name(column, self.columns)], column

    def level(self, column: Any) -> tuple[Expr, Hashable]:
        """A column to group by, as `named` has it."""
        expr, name = self.named(column)
        if name is not None and name in self.schema.index_names:
            raise BadValue(
                f"{name!r} is both a column and an index level, which pandas calls ambiguous. Rename one."
            )
        return expr, name

    @property
    def numbers(self) -> list[Hashable]:
        """The columns that pandas would call numeric."""
        return [name for name, expr in self.columns.items() if expr.kind in ("number", "bool")]

    def by_column(self, given: Mapping[Any, Any]) -> dict[Hashable, Any]:
        """A dict by column, whose names are columns of this selection or of the frame that was opened."""
        known = [*self.columns, *self.schema.leaves]
        return {_validate.column_name(name, known): value for name, value in given.items()}

    def parsed(self, text: str, caller: Any = None) -> tuple[Expr, Selection]:
        """An expression that is written as text, and this selection with the @names in it declared, which are variables of
        the ``caller`` or else of whoever called the package."""
        if not isinstance(text, str):
            raise BadType(f"an expression is a string such as 'age > 30', not {type(text).__name__}.")
        found = parse(text, self.columns, lambda name: _local(name, caller or callers_frame()))
        if not found.names:
            return found.expr, self
        words = [Word("@name", f"{name} = {describe(value)}", text) for name, value in found.names.items()]
        return found.expr, self.declaring(tuple(words))

    # What is declared -----------------------------------------------------------------------------------------

    def bounds(self, expr: Expr, name: Hashable, given: Any) -> Bounds:
        """The bounds that a verb is given, or those that follow from the declared ones."""
        if expr.kind == "duration":
            raise BadType(
                f"column {name!r} is a duration, and numbers have sums and means: p[...].dt.total_seconds(), .dt.days, or "
                "divided by pd.Timedelta('1D')."
            )
        if expr.kind not in ("number", "bool"):
            raise BadType(
                f"column {name!r} is of kind {expr.kind}: only numbers have sums and means. "
                "For its values use value_counts or argmax; of a date take a part first, such as t.dt.month."
            )
        if isinstance(given, Mapping):
            given = self.by_column(given).get(name)
        if given is not None:
            return _validate.bounds(given, repr(name))
        declared = self.schema.bounds
        known = expr.bounds(declared)
        if known is None:
            lacking = sorted(str(c) for c in expr.columns() if c.position not in declared)
            what = f" (none follow from what is declared about {', '.join(lacking)})" if lacking else ""
            raise MissingBounds(
                f"{name!r} needs public bounds{what}: bounds=(lower, upper) here, or open(..., bounds={{...}}) once. "
                "They are never inferred from the data; say what the values can be, not what they are."
            )
        lower, upper = map(float, known)
        if _validate.MIN_WIDTH <= upper - lower < math.inf:  # as most are: finite, in order, and wide enough
            return Bounds(lower + 0.0, upper + 0.0)  # -0.0 is 0
        return _validate.bounds(known, repr(name))

    def keys(self, expr: Expr, name: Hashable, given: Any, verb: str) -> Keys:
        """The keys that a verb is given, the declared ones of a root column, or those an expression brings along."""
        if given is not None:
            return keys_for(given, expr, name)
        declared = self.schema.keys.get(expr.position) if isinstance(expr, Column) else None
        if declared is not None:
            return declared.named(name)
        own = self.values(expr)
        if not own:
            raise need_keys(name if isinstance(expr, Column) else str(expr), verb)
        return keys_for(list(own), expr, name, ordered=isinstance(expr, Cut))

    def declared_keys(self, column: Column) -> tuple[Any, ...] | None:
        """The keys that are declared of a root column, without null."""
        listed = self.schema.keys.get(column.position)
        return (
            None
            if listed is None
            else tuple(k for i, k in enumerate(listed.index.tolist()) if i != listed.null)
        )

    def values(self, expr: Expr) -> tuple[Any, ...] | None:
        """All values that an expression can have, null apart, as far as they are declared or follow from what is."""
        return self.images(expr) or expr.members(self.declared_keys, self.ends)

    def images(self, expr: Expr) -> tuple[Any, ...] | None:
        """What an expression makes of all listed values of its columns: public, as these are. None where a column has no keys,
        of what lists its values itself, and of what had its keys found before there were these."""
        if expr.kind in ("bool", "time", *NO_KEYS) or not _has_choice(expr):
            return None
        columns = sorted(expr.columns(), key=lambda column: column.position)
        listed = [column.members(self.declared_keys, self.ends) for column in columns]
        known = [
            [*keys, None] if c.nullable else [*keys] for c, keys in zip(columns, listed, strict=True) if keys
        ]
        if not known or len(known) < len(listed) or math.prod(map(len, known)) > _MOST_IMAGES:
            return None
        return images(expr, columns, known)

    def ends(self, column: Column) -> tuple[float, float] | None:
        """What is declared of the ends of a column: of times in nanoseconds."""
        return self.schema.bounds.get(column.position)

    # What can be asked of one column --------------------------------------------------------------------------

    def output(
        self, aggregate: str, column: Any, bounds: Any, name: Hashable = None, ddof: int = 1
    ) -> Output:
        """An aggregate of a column, with the bounds that it is clipped to."""
        one = AGGREGATES[aggregate]
        if one.counts_distinct:
            return self.distinct(column, name)
        expr, label = self.named(column)
        pair = self.bounds(expr, label, bounds) if one.needs_bounds else None
        if pair and one.degree > 1 and too_wide(pair, one.degree):
            what = powers(one.degree)
            raise BadValue(f"bounds of {label!r} are too wide for a {aggregate}: {what} must be doubles.")
        if isinstance(ddof, bool) or not isinstance(ddof, int | np.integer) or ddof not in (0, 1):
            raise BadValue("ddof must be 0 or 1.")
        return Output(label if name is None else name, aggregate, expr, pair, ddof if one.takes_ddof else 1)

    def distinct(self, column: Any, label: Hashable = None) -> Output:
        """How many values a column has; of the column that names a person, how many people there are."""
        expr, name = self.named(column)
        if expr.kind in NO_KEYS:
            raise BadType(f"column {name!r} has a dtype whose values cannot be told apart.")
        name = name if label is None else label
        if (expr,) == self.schema.unit.people:
            return Output(name, "people")
        return Output(name, "nunique", expr)

    def order(
        self,
        column: Any,
        level: Fraction,
        bounds: Any,
        resolution: Any,
        name: Hashable = None,
        how: str = "quantile",
    ) -> Output:
        """A quantile of a column."""
        expr, label = self.named(column)
        pair = self.bounds(expr, label, bounds)
        return Output(
            label if name is None else name,
            how,
            expr,
            pair,
            level=level,
            resolution=_resolution(resolution),
        )

    def wanted(self, aggregate: str, column: Any, bounds: Any, label: Hashable) -> Output:
        """An output of `agg`, which names aggregates of every kind."""
        if aggregate in CHOSEN:
            return self.order(column, ORDERS[aggregate], bounds, None, name=label)
        if AGGREGATES[aggregate].counts_rows:
            self.named(column)
            return Output(label, aggregate)
        return self.output(aggregate, column, bounds, name=label)


def _has_choice(expr: Expr) -> bool:
    """Whether a choice, a joined text or a part of a text by a pattern is in it."""
    return isinstance(expr, If | Join | Piece | Regex) or any(map(_has_choice, expr.children))


def predicate_of(expr: Expr) -> Expr:
    """A condition: an expression that is true or false for each row."""
    if expr.kind != "bool":
        raise BadType(
            f"a condition is expected, but '{expr}' is of kind {expr.kind}. Compare it with something."
        )
    return expr


def _resolution(given: Any) -> float | None:
    if given is None:
        return None
    fine = _validate.real(given, "resolution")
    if fine <= 0:
        raise BadValue(f"resolution= must be positive, not {given}.")
    return fine


def callers_frame() -> FrameType:
    """Where the package was called from: the frame that has the local variables of what was typed."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def _local(name: str, caller: Any) -> object:
    for scope in (caller.f_locals, caller.f_globals):
        if name in scope:
            return scope[name]
    raise KeyError(name)
