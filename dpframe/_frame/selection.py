"""What verbs ask about, and what becomes of it: a selection of columns, rows and groups, and the
mode of its questions.

A selection is public facts, without a cell and without a budget. A question about it is answered,
explained, put into a batch, or refused because a row is looked at.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import FrameType
from typing import Any, Final, Protocol, TypeAlias, cast

import numpy as np
import pandas as pd

from dpframe import _expr, _validate
from dpframe._errors import BadType, BadValue, LineageError, MissingBounds, MissingKeys, Refused
from dpframe._expr import NO_KEYS, OPS, Call, Column, Cut, Expr, If, stem
from dpframe._expr._parse import parse
from dpframe._frame.columns.seconds import convert_to_seconds
from dpframe._groups.combinations import Sought, Tuples
from dpframe._groups.keys import By, KeyBy, Keys, Word, describe, keys_for, need_keys, with_options
from dpframe._groups.periods import Span
from dpframe._groups.premises import UNPROVEN, Premises
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import AGGREGATES, Output, is_too_wide, powers
from dpframe._plans.budget import Budget
from dpframe._plans.counts import DISTINCT
from dpframe._plans.order import find_level
from dpframe._plans.price import Payment, check_payment, read_public_number
from dpframe._questions.question import Query, Question, Release
from dpframe._refusals import Unprinted
from dpframe._session.batch import Batch
from dpframe._session.session import PricedQuestion, Session
from dpframe._types import Index, Values
from dpframe._validate import Bounds
from dpframe.accounting._filter import Price
from dpframe.engines.keys import images

_MOST_READ, _QUOTES = 64, {"'", '"'}

_MOST_IMAGES = 10_000
# Ends of times in nanoseconds, to see whether keys would follow from any.
_A_WEEK = (float(pd.Timestamp("2024-01-01").value), float(pd.Timestamp("2024-01-08").value))
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


class BoundColumn(Unprinted):
    """A column that was taken from a frame: its expression, and the name that its answers take."""

    def __init__(self, frame: Any, expr: Expr, name: Hashable = None):
        self._frame = frame
        self._expr = expr
        self._name = name


def expression_of(column: BoundColumn) -> Expr:
    """Return the expression of a column."""
    return column._expr


def frame_of_column(column: BoundColumn) -> Any:
    """Return the tracked frame that a column was taken from."""
    return column._frame


def name_of(column: BoundColumn) -> Hashable:
    """Return the name that answers about a column take."""
    return column._name


def with_expression(column: Any, expr: Expr, name: object = ...) -> Any:
    """Return a column of the same frame, with another expression, and the same name unless one is
    given."""
    return column._new(expr) if name is ... else column._new(expr, name)


# What a user gives for a column, by name or as it was taken; for bounds, of one column or by column;
# and for one level of quantiles or several.
ColumnLike: TypeAlias = Hashable | BoundColumn
BoundsLike: TypeAlias = Sequence[float] | Mapping[Any, Sequence[float]] | None
QuantileLevels: TypeAlias = Sequence[float]


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
    """Columns, rows and groups that a question is about, and what their owner declared for them."""

    schema: Schema
    columns: Mapping[Hashable, Expr]
    where: Expr | None = None
    by: tuple[By | Sought, ...] = ()
    words: tuple[Word, ...] = ()
    premises: Premises = UNPROVEN  # what is proven of these rows
    # The columns that `set_index` has moved to the index, by level.
    index: Mapping[Hashable, Expr] = field(default_factory=dict)
    listed: bool = False  # True if the columns were chosen. Then a count is one of each.
    # Expressions by text, as they were parsed for these columns.
    parsed_texts: dict[str, Expr] = field(default_factory=dict, init=False, repr=False)
    # Outputs of these columns by aggregate, column and ddof, with the bounds that were declared then.
    known_outputs: dict[tuple[str, str, int], tuple[Mapping[int, tuple[float, float]], Output]] = (
        field(default_factory=dict, init=False, repr=False)
    )

    # Other selections -----------------------------------------------------------------------------------------

    def replace_columns(self, columns: Mapping[Hashable, Expr]) -> Selection:
        """Return the same rows with other columns."""
        return self.change(columns=dict(columns))

    def choose_columns(self, names: Iterable[Hashable]) -> Selection:
        """Return the same rows with some columns, chosen by name."""
        return self.change(columns={name: self.columns[name] for name in names}, listed=True)

    def change(self, **changes: object) -> Selection:
        """Return a copy with some fields changed, as `dataclasses.replace` does, in a tenth of the
        time.

        Each step of a chain makes one.
        """
        other = object.__new__(Selection)
        # Texts mean something else of other columns.
        vars(other).update(vars(self), parsed_texts={}, known_outputs={}, **changes)
        return other

    def filter_rows(self, condition: Expr) -> Selection:
        """Return the selection of the rows where a further condition holds."""
        if condition.kind != "bool":
            condition = check_condition(condition)
        both = condition if self.where is None else _expr.logical_and(self.where, condition)
        return self.change(where=both, premises=self.premises.of_some_rows())

    def keep_rows(self, condition: Expr, most: int | None) -> Selection:
        """Return the rows where a condition holds, at most ``most`` of a person.

        The condition holds for rows of this selection alone.
        """
        return self.change(where=condition, premises=self.premises.of_some_rows(most))

    def add_declarations(self, words: tuple[Word, ...]) -> Selection:
        """Return the same selection, with more facts that are public by its owner's word."""
        return self.change(words=self.words + words) if words else self

    # Columns --------------------------------------------------------------------------------------------------

    def expr(self, name: object) -> Expr:
        """Return the expression of a column, given by its name or as it was taken from here."""
        return self.find_column(name)[0]

    def own(self, column: BoundColumn) -> Expr:
        """Return the expression of a column that was taken from here. Refuse any other."""
        of = selection_of(frame_of_column(column))
        if of.schema is not self.schema or of.where != self.where:
            raise LineageError(
                "this column belongs to another frame or to another selection of rows. Take it "
                "from the frame it is used with: p[p['age'] > 30] and not q[p['age'] > 30]."
            )
        return expression_of(column)

    def find_column(self, column: object) -> tuple[Expr, Hashable]:
        """Return the expression of a column, and the name that its answers take."""
        if type(column) is str and column in self.columns:  # as most are given
            return self.columns[column], column
        if isinstance(column, BoundColumn):
            return self.own(column), name_of(column)
        if isinstance(column, pd.Grouper):
            raise BadType("a pd.Grouper is for groupby and pivot_table; here name a column.")
        return self.columns[_validate.column_name(column, self.columns)], column

    def level(self, column: object) -> tuple[Expr, Hashable]:
        """Return the expression and the name of a column to group by.

        A level of the index may be named too. A name that pandas calls ambiguous is refused.
        """
        in_index = type(column) is str and column in self.index and column not in self.columns
        expr, name = (self.index[column], column) if in_index else self.find_column(column)
        if name is not None and name in self.schema.index_names:
            raise BadValue(
                f"{name!r} is both a column and an index level, which pandas calls ambiguous. Rename one."
            )
        return expr, name

    @property
    def numbers(self) -> list[Hashable]:
        """The columns that pandas would call numeric."""
        return [name for name, expr in self.columns.items() if expr.kind in ("number", "bool")]

    def by_column(self, given: Mapping[Any, object]) -> dict[Hashable, Any]:
        """Return the dict by column that a user has ``given``, with checked names.

        They must be columns of this selection or of the opened frame.
        """
        known = list(dict.fromkeys([*self.columns, *self.schema.leaves]))
        return {_validate.column_name(name, known): value for name, value in given.items()}

    def parse_text(self, text: str, caller: object = None) -> tuple[Expr, Selection]:
        """Parse an expression that is written as text.

        Return it, and this selection with the @names in it declared. They are variables of the
        ``caller``, or else of whoever called the package.
        """
        if not isinstance(text, str):
            raise BadType(
                f"an expression is a string such as 'age > 30', not {type(text).__name__}."
            )
        known = self.parsed_texts.get(text)
        if known is not None:
            return known, self
        found = parse(text, self.columns, lambda name: _local(name, caller or find_caller()))
        is_quoted = not _QUOTES.isdisjoint(text)  # a quoted time may be "now", and is read anew
        if not found.names:
            if len(self.parsed_texts) < _MOST_READ and not is_quoted:
                self.parsed_texts[text] = found.expr
            return found.expr, self
        words = [
            Word("@name", f"{name} = {describe(value)}", text)
            for name, value in found.names.items()
        ]
        return found.expr, self.add_declarations(tuple(words))

    # What is declared -----------------------------------------------------------------------------------------

    def bounds(self, expr: Expr, name: Hashable, given: object) -> Bounds:
        """Return the clipping bounds of a column, or raise if none are known.

        They are ``given`` to the verb, as a pair or in a dict by column, or follow from declared
        ones.
        """
        if expr.kind == "duration":
            raise BadType(
                f"column {name!r} is a duration, which has sums, means, standard deviations and "
                "quantiles. For all else take a number: p[...].dt.total_seconds(), .dt.days, or "
                "divided by pd.Timedelta('1D')."
            )
        if expr.kind == "time":
            column, zone = (
                repr("t" if name is None else name),
                "" if expr.tz is None else f", tz={expr.tz!r}",
            )
            raise BadType(
                f"column {name!r} is of kind time, which has means and quantiles only. Measure from "
                f"a moment, (p[{column}] - pd.Timestamp('2024-01-01'{zone})).std(), or count in "
                f"periods, p.resample('ME', on={column}).size()."
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
            asked = expr.columns() - {c for c in self.schema.unit.people if c != expr}
            lacking = sorted(str(c) for c in asked if c.position not in declared)
            lost = None if lacking else expr.unbounded(declared)
            if lost is not None:
                raise MissingBounds(
                    f"{expr if name is None else repr(name)} needs public bounds. The columns of "
                    f"{lost} have bounds, but no bounds of {lost} follow: near zero a logarithm, a "
                    "quotient or a power may be anything. Write .clip(a, b) after it, with what the "
                    "values can be, or bounds=(a, b) here."
                )
            what = (
                f" (none follow from what is declared about {', '.join(lacking)})"
                if lacking
                else ""
            )
            raise MissingBounds(
                f"{name!r} needs public bounds{what}: bounds=(lower, upper) here, or open(..., bounds={{...}}) once. "
                "They are never inferred from the data; say what the values can be, not what they are."
            )
        lower, upper = map(float, known)
        # As most are: finite, in order, and wide enough.
        if _validate.MIN_WIDTH <= upper - lower < math.inf:
            return Bounds(lower + 0.0, upper + 0.0)  # -0.0 is 0
        return _validate.bounds(known, repr(name))

    def keys(self, expr: Expr, name: Hashable, given: object, verb: str) -> Keys:
        """Return the group keys of a column, or raise if none are known.

        They are ``given``, declared, or follow from the expression. ``verb`` is named in the
        message.
        """
        if given is not None:
            return keys_for(given, expr, name)
        root = expr if isinstance(expr, Column) else stem(expr)
        declared = self.schema.keys.get(root.position) if isinstance(root, Column) else None
        if declared is not None:
            return declared.rename(name)
        own = self.values(expr)
        if not own:
            unbounded = self._find_unbounded_time(expr)
            if unbounded is not None:
                raise MissingKeys(
                    f"{verb} over {str(expr)!r} needs the first and the last moment of "
                    f"{unbounded!r}, from which its keys "
                    f"follow: open(..., bounds={{{unbounded!r}: ('2024-01-01', '2024-12-31')}})."
                )
            raise need_keys(name if isinstance(expr, Column) else str(expr), verb)
        return keys_for(list(own), expr, name, ordered=isinstance(expr, Cut))

    def _find_unbounded_time(self, expr: Expr) -> Hashable | None:
        """Return the column of times without bounds, if the keys of an expression would follow from
        its bounds; else None."""
        columns = list(expr.columns())
        if isinstance(expr, Column) or len(columns) != 1 or columns[0].kind != "time":
            return None
        known = columns[0].position in self.schema.bounds
        if known or expr.members(self.declared_keys, lambda column: _A_WEEK) is None:
            return None
        return columns[0].name

    def listed_keys(self, expr: Expr, name: Hashable) -> Index | None:
        """Return the values of a column that are listed, or follow from lists, without null.

        Whole numbers between bounds are not listed. None stands for a column without such a list.
        """
        root = expr if isinstance(expr, Column) else stem(expr)
        declared = self.schema.keys.get(root.position) if isinstance(root, Column) else None
        if declared is not None:
            index = declared.rename(name).index
            return index if declared.null is None else index.delete(declared.null)
        own = self.images(expr) or expr.members(self.declared_keys, lambda column: None)
        return keys_for(list(own), expr, name, ordered=isinstance(expr, Cut)).index if own else None

    def declared_keys(self, column: Column) -> Values | None:
        """Return the declared keys of a column of the opened frame, without null, or None without
        any."""
        listed = self.schema.keys.get(column.position)
        return (
            None
            if listed is None
            else tuple(k for i, k in enumerate(listed.index.tolist()) if i != listed.null)
        )

    def values(self, expr: Expr) -> Values | None:
        """Return all values that an expression can have, without null, as far as they are declared
        or follow from declarations."""
        return self.images(expr) or expr.members(self.declared_keys, self.ends)

    def images(self, expr: Expr) -> Values | None:
        """Return the values of an expression for all listed values of its columns.

        They are public, as the listed values are. Return None if a column has no keys, or if the
        expression lists its values itself or had its keys found before.
        """
        if expr.kind in ("bool", "time", *NO_KEYS) or not _has_choice(expr):
            return None
        columns = sorted(expr.columns(), key=lambda column: column.position)
        listed = [column.members(self.declared_keys, self.ends) for column in columns]
        known = [
            [*keys, None] if c.nullable else [*keys]
            for c, keys in zip(columns, listed, strict=True)
            if keys
        ]
        if not known or len(known) < len(listed) or math.prod(map(len, known)) > _MOST_IMAGES:
            return None
        return images(expr, columns, known)

    def ends(self, column: Column) -> tuple[float, float] | None:
        """Return the declared bounds of a column, for times in nanoseconds."""
        return self.schema.bounds.get(column.position)

    # What can be asked of one column --------------------------------------------------------------------------

    def output(
        self, aggregate: str, column: object, bounds: object, name: Hashable = None, ddof: int = 1
    ) -> Output:
        """Return one output of a question: an aggregate of a column, with its clipping bounds.

        ``bounds`` are given to the verb, or None for declared ones. ``name`` is the name in the
        answer, that of the column if None. ``ddof`` is that of a variance.
        """
        simple = bounds is None and name is None and type(column) is str and type(ddof) is int
        key, declared = (aggregate, cast("str", column), ddof), self.schema.bounds
        known = self.known_outputs.get(key) if simple else None
        if known is not None and known[0] is declared:
            return known[1]
        one = AGGREGATES[aggregate]
        if one.counts_distinct:
            return self.distinct(column, name)
        expr, label = self.find_column(column)
        duration, pair, origin = False, None, ""
        if one.needs_bounds:
            duration = one.of_durations and expr.kind in ("duration", "time")
            if duration:
                expr, pair, origin = convert_to_seconds(self, one, expr, label, bounds)
            else:
                pair = self.bounds(expr, label, bounds)
        if pair and one.degree > 1 and is_too_wide(pair, one.degree):
            what = powers(one.degree)
            raise BadValue(
                f"bounds of {label!r} are too wide for a {aggregate}: {what} must be doubles."
            )
        if isinstance(ddof, bool) or not isinstance(ddof, int | np.integer) or ddof not in (0, 1):
            raise BadValue("ddof must be 0 or 1.")
        ddof = ddof if one.takes_ddof else 1
        label = label if name is None else name
        out = Output(label, aggregate, expr, pair, ddof, duration=duration, origin=origin)
        if simple and len(self.known_outputs) < _MOST_READ:
            self.known_outputs[key] = declared, out
        return out

    def distinct(self, column: object, label: Hashable = None) -> Output:
        """Return one output of a question: the count of the distinct values of a column.

        Of the column that names a person, it counts people. ``label`` is its name in the answer.
        """
        expr, name = self.find_column(column)
        if expr.kind in NO_KEYS:
            raise BadType(f"column {name!r} has a dtype whose values cannot be told apart.")
        name = name if label is None else label
        if (expr,) == self.schema.unit.people:
            return Output(name, "people")
        return Output(name, DISTINCT, expr)

    def order(
        self,
        column: object,
        level: Fraction,
        bounds: object,
        resolution: object,
        name: Hashable = None,
        how: str = "quantile",
    ) -> Output:
        """Return one output of a question: a quantile of a column.

        ``level`` is the share of values below it. ``resolution`` is the distance between possible
        answers, or None. ``name`` is its name in the answer. ``how`` is the aggregate that finds
        it.
        """
        expr, label = self.find_column(column)
        duration, origin = expr.kind in ("duration", "time"), ""
        if duration:
            expr, pair, origin = convert_to_seconds(self, AGGREGATES[how], expr, label, bounds)
            resolution = (
                None if resolution is None else _validate.duration(resolution, "resolution") / 10**9
            )
        else:
            pair = self.bounds(expr, label, bounds)
        return Output(
            label if name is None else name,
            how,
            expr,
            pair,
            level=level,
            resolution=_resolution(resolution),
            duration=duration,
            origin=origin,
        )

    def make_output(
        self, aggregate: str, column: object, bounds: object, label: Hashable
    ) -> Output:
        """Return one output of a question for an aggregate that `agg` names, such as "mean" or
        "q90".

        ``label`` is its name in the answer.
        """
        one = AGGREGATES.get(aggregate)
        if one is None or one.picks:
            level = find_level(aggregate)
            assert level is not None  # as the spec was read
            return self.order(column, level, bounds, None, name=label)
        if one.counts_rows:
            self.find_column(column)
            return Output(label, aggregate)
        return self.output(aggregate, column, bounds, name=label)


def _has_choice(expr: Expr) -> bool:
    """Return whether an expression holds a choice, a joined text or a part of a text by a pattern."""
    chosen = isinstance(expr, If) or (isinstance(expr, Call) and OPS[expr.op].images)
    return chosen or any(map(_has_choice, expr.children))


def check_condition(expr: Expr) -> Expr:
    """Return a condition: an expression that is true or false for each row."""
    if expr.kind != "bool":
        raise BadType(
            f"a condition is expected, but '{expr}' is of kind {expr.kind}. Compare it with something."
        )
    return expr


def _resolution(given: object) -> float | None:
    """Return the argument ``resolution=`` of a quantile as a number, or None if it is not given."""
    if given is None:
        return None
    fine = _validate.real(given, "resolution")
    if fine <= 0:
        raise BadValue(f"resolution= must be positive, not {given}.")
    return fine


def find_caller() -> FrameType:
    """Return the Python frame of whoever called the package.

    Its local variables are those that @names in an expression stand for.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def _local(name: str, caller: Any) -> object:
    for scope in (caller.f_locals, caller.f_globals):
        if name in scope:
            return scope[name]
    raise KeyError(name)


# What becomes of a question ------------------------------------------------------------------------------------

PRICED: Final = ("epsilon", "delta", "within", "n", "mechanism")  # the words that make a price
WHOLE: Final = Fraction(1)
HALF: Final = Fraction(1, 2)  # of a price: one half finds keys, the other asks
Answer = Callable[[Release], Any]
# From a release and the index of its groups, if there are any, to what a verb returns.
Finish = Callable[[Release, Any], Any]


class AnswerMode:
    """The mode of a frame whose questions are answered at once. The other modes inherit from it."""

    # True if a question is answered later or never. Then no keys are found on the way, and no other
    # rows are made.
    answers_later = False
    # True if a question returns its plan.
    shows = False

    def ask(
        self,
        session: Session,
        question: Question,
        answer: Answer,
        payment: Mapping[str, object],
        declared: tuple[Word, ...] = (),
        part: Fraction = WHOLE,
    ) -> Any:
        """Ask a question, and return what ``answer`` makes of its release.

        ``payment`` are the arguments of the price, and ``part`` is the share of it that the
        question gets. ``declared`` are facts that go on record.
        """
        asked = price_question(session, question, payment, declared, part)
        found = answer(session.ask([asked])[0])
        session.base.given.append(found)
        return found

    def explaining(self) -> AnswerMode:
        """Return the mode of ``p.explain``."""
        return ExplainMode()

    def planning(self, batch: Batch[Any]) -> AnswerMode:
        """Return the mode of a frame whose questions go to a batch."""
        return BatchMode(batch)


class ExplainMode(AnswerMode):
    """The mode of ``p.explain``: a question returns its plan, free.

    Beside a batch the plan has the price that the question would have there.
    """

    shows = True

    def __init__(self, batch: Batch[Any] | None = None):
        self.batch = batch

    @property
    def answers_later(self) -> bool:  # type: ignore[override]  # a question of a batch, and only shown
        return self.batch is not None

    def ask(
        self,
        session: Session,
        question: Question,
        answer: Answer,
        payment: Mapping[str, object],
        declared: tuple[Word, ...] = (),
        part: Fraction = WHOLE,
    ) -> Any:
        """Return the plan of a question instead of its answer, free.

        ``answer``, which would lay out a release, is not used. ``payment`` are the keyword
        arguments of the price. ``declared`` are facts that the caller stated and that go on record.
        ``part`` is the share of the price that the question gets. ``n=`` only serves to show the
        accuracy, unless the price is given by ``within=``.
        """
        words, assumed = check_payment(payment), None
        if words.get("n") is not None:
            # The price depends on n= only with within=. The shown accuracy always depends on it.
            assumed = read_public_number(words["n"], None)
            words = (
                words if words.get("within") is not None else cast(Payment, {**words, "n": None})
            )
        # In a batch the price depends on the budget that earlier questions of the batch will leave.
        ahead = None if self.batch is None else self.batch.ahead()
        return replace(
            session.plan(price_question(session, question, words, declared, part, ahead)), n=assumed
        )

    def explaining(self) -> AnswerMode:
        return self

    def planning(self, batch: Batch[Any]) -> AnswerMode:
        return ExplainMode(batch)


class BatchMode(AnswerMode):
    """The mode of a batch: a question is added to it, and returns the place of its answer."""

    answers_later = True

    def __init__(self, batch: Batch[Any]):
        self.batch = batch

    def ask(
        self,
        session: Session,
        question: Question,
        answer: Answer,
        payment: Mapping[str, object],
        declared: tuple[Word, ...] = (),
        part: Fraction = WHOLE,
    ) -> Any:
        """Add a question to the batch, and return a placeholder for its answer.

        All questions of a batch are answered when its ``with`` block ends. ``answer`` makes the
        answer from the release then. ``payment`` are the keyword arguments of the price, and
        ``part`` is the share of it that the question gets. ``declared`` are facts that the caller
        stated and that go on record.
        """
        later = replace(question, finish=answer)
        # The budget that the earlier questions of this batch will leave.
        ahead = self.batch.ahead()
        return self.batch.add(price_question(session, later, payment, declared, part, ahead))

    def explaining(self) -> AnswerMode:
        return ExplainMode(self.batch)


class RowMode(AnswerMode):
    """The mode of a frame that is given to a function: every question is refused.

    The function returns an expression for one row.
    """

    answers_later = True

    def __init__(self, advice: str):
        self.advice = advice

    def ask(self, *question: object, **words: object) -> Any:
        raise Refused(self.advice)

    def explaining(self) -> AnswerMode:
        return self

    def planning(self, batch: Batch[Any]) -> AnswerMode:
        return self


def price_question(
    session: Session,
    question: Question,
    payment: Mapping[str, object],
    declared: tuple[Word, ...],
    part: Fraction = WHOLE,
    ahead: Budget | None = None,
) -> PricedQuestion:
    """Return a question with its price, before it is asked, explained or planned.

    ``payment`` are the arguments of the price, and ``part`` is the share of it that the question
    gets. ``declared`` are facts that go on record.

    ``ahead`` is the budget as it will be after the earlier questions of a batch.
    """
    words = check_payment(payment)
    if not question.outputs and isinstance(question, Query):
        raise BadValue("no columns are selected, so nothing is asked.")
    session.check_alive()
    unlimited = words.get("max_rows") is None and words.get("max_groups") is None
    unit = session.unit if unlimited else session.limit_unit(words)
    if words.get("within") is not None:
        part = WHOLE  # within= is the accuracy of the answer, whatever else is paid
        # The price depends on the number of values, so the number is a part of what was typed.
        known = session.count_values(question)
        # A table without rows gives no number.
        if words.get("n") is not None or known:
            words = cast("Payment", {**words, "n": read_public_number(words.get("n"), known)})

    def price_at(epsilon: Fraction) -> Price:
        """Return the price of this question at an epsilon."""
        named = {**words, "epsilon": epsilon, "within": None, "n": None}
        return session.price(question, cast("Payment", named), part, ahead)

    price = session.price(question, words, part, ahead)
    typed: tuple[Any, ...] = tuple(map(words.get, PRICED))
    if part != 1:
        typed = "half", *typed
    name, fresh = words.get("name"), bool(words.get("fresh"))
    return PricedQuestion(question, price, declared, unit, typed, name, fresh, price_at)


def _accuracy(within: object, question: Question) -> Any:
    """Return ``within=`` as a number, for durations in seconds."""
    durations = {out.duration for out in question.outputs}
    if True not in durations:
        return within
    if False in durations:
        raise BadType("within= is of numbers or of durations: ask the two apart, or give epsilon=.")
    return _validate.duration(within, "within") / 10**9


def limit_own_rows(unit: Unit, most: int) -> dict[str, int]:
    """Return the contribution limits of rows, if a person has at most ``most`` of them.

    A question may name other limits.
    """
    return {"max_rows": min(unit.rows or most, most), "max_groups": min(unit.groups or most, most)}


class Askable:
    """A session, a selection of it, and the mode in which questions about it are answered."""

    _session: Session
    _selection: Selection
    _mode: AnswerMode

    def __init__(self, session: Session, selection: Selection, mode: AnswerMode):
        known = vars(self)  # some kinds refuse to set attributes
        known["_session"], known["_selection"], known["_mode"] = session, selection, mode

    def _ask(
        self,
        question: Question,
        answer: Answer,
        payment: Mapping[str, object],
        part: Fraction = WHOLE,
        declared: tuple[Word, ...] = (),
    ) -> Any:
        """Ask a question, and return its answer, or its plan while explaining.

        Every question goes this way. ``answer`` makes the answer from the release. ``payment`` are
        the arguments of the price, and ``part`` is the share of it that the question gets.
        ``declared`` are facts that it takes for public beside those of the selection.
        """
        words, most = self._selection.words + declared, self._selection.premises.max_rows
        if payment.get("within") is not None:
            payment = {**payment, "within": _accuracy(payment["within"], question)}
        # A person counts for at most as many rows as there can be.
        if most is not None and self._session.unit.people:
            payment = {**limit_own_rows(self._session.unit, most), **payment}
        # What a caller has set for numpy must not change an answer.
        with np.errstate(all="ignore"):
            return self._mode.ask(self._session, question, answer, payment, words, part)


def selection_of(asking: Askable) -> Selection:
    """Return the columns, rows and premises that a frame, or its groups, are about.

    There is no attribute for them, since ``p.name`` is the column of that name.
    """
    return asking._selection


def session_of_frame(asking: Askable) -> Session:
    """Return the session that a frame, or its groups, belong to."""
    return asking._session


def mode_of(asking: Askable) -> AnswerMode:
    """Return the mode in which questions about a frame, or its groups, are answered."""
    return asking._mode


def ask_question(
    asking: Askable,
    question: Question,
    answer: Answer,
    payment: Mapping[str, Any],
    part: Fraction = WHOLE,
    declared: tuple[Word, ...] = (),
) -> Any:
    """Ask a question about a frame, or its groups: see `Askable._ask`."""
    return asking._ask(question, answer, payment, part, declared)


def make_level(
    asking: Askable,
    column: tuple[Expr, Hashable],
    given: object,
    verb: str,
    sort: bool | None = None,
    dropna: bool | None = None,
) -> KeyBy | Sought:
    """Return a column as a grouping, with keys that are given, declared or follow from it.

    ``column`` is its expression and its name. Keys that are not known are to be found later, if the
    session has delta for it. ``sort`` and ``dropna`` are as in pandas, and ``verb`` is named in
    messages.
    """
    expr, name = column
    try:
        keys = selection_of(asking).keys(expr, name, given, verb)
    except MissingKeys:
        if not session_of_frame(asking).budget.rule.failure_share(1) > 0:
            raise
        return Sought(expr, name, sort, dropna)
    return KeyBy(expr, keys if sort is dropna is None else with_options(keys, expr, sort, dropna))
