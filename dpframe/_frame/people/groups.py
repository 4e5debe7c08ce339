"""``p.groupby("patient_id")`` where that column names a person: the verbs of pandas' groups, within
each person's own rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pandas as pd
from pandas.api.typing import DataFrameGroupBy

from dpframe import _expr, _validate
from dpframe._errors import BadType, BadValue, NotOffered, Refused
from dpframe._expr import WITHIN, Expr, Key, one_value
from dpframe._frame.column import PrivateColumn
from dpframe._frame.people.functions import (
    NAMED,
    OwnColumn,
    OwnRows,
    called_once,
    change,
    difference,
    meant,
    ranking,
    whole,
)
from dpframe._frame.people.steps import made, one_row, rows_where, sorted_by
from dpframe._frame.people.windows import Window, ddof_of, rolling, skewness
from dpframe._frame.signatures import explain_arguments
from dpframe._frame.tracked import Tracked, advised, person_of
from dpframe._plans.price import WORDS
from dpframe._refusals import ADVICE, Unprinted, refuse

_ROW_VERBS = (
    "shift",
    "diff",
    "pct_change",
    "cumsum",
    "cumprod",
    "cummin",
    "cummax",
    "ffill",
    "bfill",
    "rank",
)


class PersonGroupBy(Unprinted):
    """``p.groupby("patient_id")`` where that column names a person: verbs within each person's own
    rows, all of them free.

    What has one value a person (``sum``, ``first``, ``agg``) is a tracked frame or column with a
    row for each person. What has one for each row (`shift`, `cumsum`, `transform`) is a column
    beside the others. `head` and the like choose rows. Prices come with what is asked of them.

    Formal guarantee: as a column of one row, a function of one person's rows leaves every
    sensitivity as it is (docs/guarantees/people.md#verbs-within-a-person). Rows of one person that
    are alike in what they are sorted by stay in the order they have in the frame.

    >>> visits = pd.DataFrame({"id": [1, 1, 2], "cost": [10.0, 30.0, 6.0]})
    >>> p = visits.dp.open(1000, unit="id", max_rows=2, max_groups=1, bounds={"cost": (0, 30)})
    >>> print(round(p.groupby("id")["cost"].sum().mean(epsilon=450)))
    23
    >>> print(round(p.groupby("id").head(1)["cost"].mean(epsilon=450)))
    8
    """

    def __init__(
        self,
        frame: Tracked,
        chosen: tuple[tuple[Expr, Hashable], ...] | None = None,
        single: bool = False,
        as_index: bool = True,
    ):
        self._frame, self._chosen, self._single, self._as_index = frame, chosen, single, as_index

    def __getitem__(self, key: Any) -> PersonGroupBy:
        names = key if isinstance(key, list) else [key]
        known = self._frame._selection.columns
        chosen = tuple((known[n], n) for n in _validate.column_names(names, known))
        return PersonGroupBy(self._frame, chosen, not isinstance(key, list), self._as_index)

    # One value a person -------------------------------------------------------------------------------------------

    def sum(self, numeric_only: bool = False) -> Any:
        """The sum of each person's values, of no values 0. Its bounds are ``max_rows`` times those
        of the column."""
        return self._each_person("sum", numeric_only)

    def mean(self, numeric_only: bool = False) -> Any:
        """The mean of each person's values; of no values null."""
        return self._each_person("mean", numeric_only)

    def median(self, numeric_only: bool = False) -> Any:
        """The median of each person's values."""
        return self._each_person("median", numeric_only)

    def quantile(self, q: float = 0.5, numeric_only: bool = False) -> Any:
        """A quantile of each person's values, between the two around it."""
        return self._each_person("quantile", numeric_only, (_validate.level(q),))

    def var(self, ddof: int = 1, numeric_only: bool = False) -> Any:
        """The variance of each person's values; of one value null, with ``ddof=0`` it is 0."""
        return self._each_person("var", numeric_only, (ddof_of(ddof),))

    def std(self, ddof: int = 1, numeric_only: bool = False) -> Any:
        """The standard deviation of each person's values."""
        return self._each_person("std", numeric_only, (ddof_of(ddof),))

    def sem(self, ddof: int = 1, numeric_only: bool = False) -> Any:
        """The standard error of the mean of each person's values."""
        return self._each_person("sem", numeric_only, (ddof_of(ddof),))

    def skew(self, numeric_only: bool = False) -> Any:
        """The skewness of each person's values; of fewer than three null. No bounds follow:
        ``.clip(-3, 3)`` gives some."""
        exprs = {n: skewness(self._frame, e) for n, e in self._columns("std", numeric_only).items()}
        return self._column_of(exprs) if self._single else self._people(exprs)

    def prod(self, numeric_only: bool = False) -> Any:
        """The product of each person's values, of no values 1. No bounds follow."""
        return self._each_person("prod", numeric_only)

    def min(self, numeric_only: bool = False) -> Any:
        """The least of each person's values: exact, since it is the person's own."""
        return self._each_person("min", numeric_only)

    def max(self, numeric_only: bool = False) -> Any:
        """The greatest of each person's values."""
        return self._each_person("max", numeric_only)

    def first(self, numeric_only: bool = False) -> Any:
        """The first value of each person that is no null, in the order of the person's rows."""
        return self._each_person("first", numeric_only)

    def last(self, numeric_only: bool = False) -> Any:
        """The last value of each person that is no null."""
        return self._each_person("last", numeric_only)

    def any(self) -> Any:
        """Whether any of a person's values is true."""
        return self._each_person("any")

    def all(self) -> Any:
        """Whether all of a person's values are true; nulls count for nothing."""
        return self._each_person("all")

    def count(self) -> Any:
        """How many values each person has that are no null."""
        return self._each_person("count")

    def nunique(self) -> Any:
        """How many distinct values each person has."""
        return self._each_person("nunique")

    def size(self) -> Any:
        """How many rows each person has."""
        expr = made(self._frame, "size", None)
        if not self._as_index:
            return self._people({"size": expr})
        return PrivateColumn(one_row(self._frame, {"size": expr}), expr, None)

    def agg(self, func: Any = None, **outputs: Any) -> Any:
        """Several values a person: ``agg(visits=("cost", "size"), total=("cost", "sum"))``, a name,
        a list or a dict of names.

        A function is called once with the columns themselves, and what it writes down is what is
        computed: ``agg(lambda x: x.max() - x.min())``. It has to give one value a person.

        >>> visits = pd.DataFrame({"id": [1, 1, 2], "cost": [10.0, 30.0, 6.0]})
        >>> p = visits.dp.open(1000, unit="id", max_rows=2, max_groups=1, bounds={"cost": (0, 100)})
        >>> each = p.groupby("id").agg(visits=("cost", "size"), dearest=("cost", "max"))
        >>> print(round(each[each["visits"] > 1]["dearest"].mean(epsilon=900)))
        30
        """
        if func is None and not outputs:
            raise BadValue("agg needs at least one output: agg(total=('cost', 'sum')).")
        found: dict[Hashable, Expr] = {}
        several = isinstance(func, list) or (
            isinstance(func, Mapping) and any(isinstance(how, list) for how in func.values())
        )
        wanted = (
            func
            if isinstance(func, Mapping)
            else {}
            if func is None
            else dict.fromkeys(self._names(), func)
        )
        for name, hows in wanted.items():
            for how in hows if isinstance(hows, list) else [hows]:
                label = (
                    name if not several else _called(how) if self._single else (name, _called(how))
                )
                found[label] = self._aggregate(self._column(name), how)
        for label, pair in outputs.items():
            name, how = _output(
                label, pair, self._chosen[0][1] if self._single and self._chosen else None
            )
            found[label] = self._aggregate(self._column(name), how)
        if self._single and not outputs and not several:
            return self._column_of(found)
        return self._people(found)

    aggregate = agg

    # One value a row ----------------------------------------------------------------------------------------------

    def shift(self, periods: int = 1) -> Any:
        """The value of the person's row so many rows before, or after where it is negative; null
        where there is none."""
        steps = whole(periods, "periods")
        return self._each_row(lambda x: made(self._frame, "shift", x, (steps,)))

    def diff(self, periods: int = 1) -> Any:
        """What a value is more than that of the person's row so many rows before; of times a
        duration."""
        steps = whole(periods, "periods")
        return self._each_row(lambda x: difference(self._frame, x, steps))

    def pct_change(self, periods: int = 1) -> Any:
        """By which part a value is more than that of the person's row so many rows before."""
        steps = whole(periods, "periods")
        return self._each_row(lambda x: change(self._frame, x, steps))

    def cumsum(self) -> Any:
        """The sum of a person's values up to each row; a null stays one and adds nothing."""
        return self._each_row(lambda x: made(self._frame, "cumsum", x))

    def cumprod(self) -> Any:
        """The product of a person's values up to each row."""
        return self._each_row(lambda x: made(self._frame, "cumprod", x))

    def cummin(self) -> Any:
        """The least of a person's values up to each row."""
        return self._each_row(lambda x: made(self._frame, "cummin", x))

    def cummax(self) -> Any:
        """The greatest of a person's values up to each row."""
        return self._each_row(lambda x: made(self._frame, "cummax", x))

    def ffill(self) -> Any:
        """The person's last value that is no null."""
        return self._each_row(lambda x: made(self._frame, "ffill", x))

    def bfill(self) -> Any:
        """The person's next value that is no null."""
        return self._each_row(lambda x: made(self._frame, "bfill", x))

    def rank(
        self,
        method: str = "average",
        ascending: bool = True,
        na_option: str = "keep",
        pct: bool = False,
    ) -> Any:
        """The rank of each value among the person's own; a null has none."""
        _validate.choice(na_option, "na_option", ("keep",))
        args = ranking(method, ascending, pct)
        return self._each_row(lambda x: made(self._frame, "rank", x, args))

    def rolling(self, window: int, min_periods: int | None = None, **words: Any) -> Window:
        """Windows of so many of a person's rows, each ending with its own: ``rolling(3).mean()``;
        see `Window`."""
        return rolling(self._frame, self._each_row, window, min_periods, words, self)

    def expanding(self, min_periods: int = 1) -> Window:
        """Windows of all of a person's rows up to each: ``expanding().mean()``."""
        least = _validate.positive_int(min_periods, "min_periods")
        return Window(self._frame, self._each_row, None, least, self)

    def cumcount(self, ascending: bool = True) -> PrivateColumn:
        """How many rows of the person come before each; with ``ascending=False`` after it."""
        flag = _validate.flag(ascending, "ascending")
        return PrivateColumn(self._frame, made(self._frame, "cumcount", None, (flag,)), None)

    def transform(self, func: Any) -> Any:
        """A value of each row by its name (``"sum"``, ``"rank"``), or by a function of the person's
        own column.

        The function is called once with the column itself, and what it writes down is what is
        computed for each person: ``transform(lambda x: x - x.mean())``.

        >>> visits = pd.DataFrame({"id": [1, 1, 2], "cost": [10.0, 30.0, 6.0]})
        >>> p = visits.dp.open(1000, unit="id", max_rows=2, max_groups=1, bounds={"cost": (0, 100)})
        >>> share = p["cost"] / p.groupby("id")["cost"].transform("sum")
        >>> print(round(p.assign(share=share).mean("share", bounds=(0, 1), epsilon=900), 2))
        0.67
        """
        if isinstance(func, str) and func not in NAMED:
            if func in _ROW_VERBS:
                return getattr(self, func)()
            raise BadValue(f"transform has no {func!r}. It has {', '.join((*NAMED, *_ROW_VERBS))}.")
        return self._each_row(lambda x: self._aggregate(x, func, single=False))

    def apply(self, func: Any) -> Any:
        """What a function writes down of the person's own rows: ``apply(lambda g: g["cost"].sum() /
        g["days"].sum())``.

        It is called once, with a person's column or columns, and gives one value a person, or one
        for each of the person's rows. A ``pd.Series`` of such values makes a frame with a row for
        each person.
        """
        given = called_once(func, self._given(), "apply")
        if isinstance(given, pd.Series) and given.dtype == object and len(given):
            return self._people({name: self._own(one) for name, one in given.items()})
        expr, name = self._own(given), self._chosen[0][1] if self._single and self._chosen else None
        if not one_value(expr, self._frame._session.unit.people):
            return PrivateColumn(self._frame, expr, name)
        return PrivateColumn(
            one_row(self._frame, {"value" if name is None else name: expr}), expr, name
        )

    # Rows ---------------------------------------------------------------------------------------------------------

    def head(self, n: int = 5) -> Any:
        """The first rows of each person, in the order they have; a person then has at most so
        many."""
        return self._some_rows("cumcount", (True,), "<", _rows_each(n, "head", self._person), n)

    def tail(self, n: int = 5) -> Any:
        """The last rows of each person."""
        return self._some_rows("cumcount", (False,), "<", _rows_each(n, "tail", self._person), n)

    def nth(self, n: int) -> Any:
        """The row of each person at a place, counted from 0, or from the end with -1."""
        if isinstance(n, list | tuple | slice | range):
            raise NotOffered(
                f"nth takes one place. The first ones: p.groupby({self._person}).head(3)."
            )
        place = whole(n, "n")
        return self._some_rows(
            "cumcount", (place >= 0,), "==", place if place >= 0 else -1 - place, 1
        )

    def nlargest(self, n: int = 5) -> Any:
        """The greatest values of each person."""
        return self._extremes(n, True)

    def nsmallest(self, n: int = 5) -> Any:
        """The least values of each person."""
        return self._extremes(n, False)

    def filter(self, func: Any) -> Any:
        """The rows of the people of whom a function says yes: ``filter(lambda g: g["cost"].sum() >
        100)``."""
        people = self._frame._session.unit.people
        expr = self._own(called_once(func, self._given(), "filter"))
        if expr.kind != "bool" or not one_value(expr, people):
            raise BadType(
                "filter needs a function that is true or false of a person: lambda g: g['cost'].sum() > 100."
            )
        return self._shown(self._frame._where(expr))

    def pipe(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """What a function makes of these groups."""
        return func(self, *args, **kwargs)

    # What is said -------------------------------------------------------------------------------------------------

    @property
    def _person(self) -> str:
        return person_of(self._frame._selection)

    @property
    def _asked(self) -> Hashable:
        """The one column that was chosen; None of several."""
        return self._chosen[0][1] if self._single and self._chosen else None

    def _advised(self, text: str) -> str:
        """A refusal in the names of the frame, first of all of the column that was chosen."""
        return advised(text, self._frame._selection, self._asked)

    # How they are made --------------------------------------------------------------------------------------------

    def _names(self) -> list[Hashable]:
        """The columns that are meant: those chosen, or all but those that name the person."""
        if self._chosen is not None:
            return [name for _, name in self._chosen]
        people = self._frame._session.unit.people
        return [name for name, expr in self._frame._selection.columns.items() if expr not in people]

    def _column(self, name: Any) -> Expr:
        for expr, known in self._chosen or ():
            if known == name:
                return expr
        return self._frame._selection.expr(name)

    def _columns(self, how: str, numeric_only: bool = False) -> dict[Hashable, Expr]:
        """The columns that a verb is of, by their names."""
        found = {name: self._column(name) for name in self._names()}
        if _validate.flag(numeric_only, "numeric_only"):
            return {n: e for n, e in found.items() if e.kind in ("number", "bool")}
        fitting = [n for n, e in found.items() if e.kind in WITHIN[how].of]
        odd = [n for n in found if n not in fitting]
        if odd and self._chosen is None:
            raise BadType(
                f"column {odd[0]!r} is of kind {found[odd[0]].kind}, which has no {how}. Name the columns, as in "
                f"p.groupby({self._person})[{fitting[:3] or ['x', 'y']}].{how}(), or take all that are numbers: "
                f"{how}(numeric_only=True)."
            )
        return found

    def _each_person(
        self, how: str, numeric_only: bool = False, args: tuple[Any, ...] | None = None
    ) -> Any:
        words = NAMED[how] if args is None else args
        exprs = {
            n: made(self._frame, how, e, words) for n, e in self._columns(how, numeric_only).items()
        }
        return self._column_of(exprs) if self._single else self._people(exprs)

    def _column_of(self, exprs: Mapping[Hashable, Expr]) -> Any:
        """The one column of a frame with a row a person; the frame itself where groups are to stand
        beside it."""
        if not self._as_index:
            return self._people(exprs)
        ((name, expr),) = exprs.items()
        return PrivateColumn(one_row(self._frame, exprs), expr, name)

    def _people(self, exprs: Mapping[Hashable, Expr]) -> Any:
        """A frame with a row a person; with the columns that name them where these are no index."""
        first: dict[Hashable, Expr] = {}
        if not self._as_index:
            people = self._frame._session.unit.people
            first = {n: e for n, e in self._frame._selection.columns.items() if e in people}
        if not first.keys().isdisjoint(exprs):
            raise BadValue(
                "an output has the name of the column that names the person. Choose another one."
            )
        return one_row(self._frame, {**first, **exprs})

    def _each_row(self, make: Callable[[Expr], Expr]) -> Any:
        exprs = {name: make(self._column(name)) for name in self._names()}
        if self._single:
            ((name, expr),) = exprs.items()
            return PrivateColumn(self._frame, expr, name)
        return self._frame._new(self._frame._selection.replace_columns(exprs))

    def _some_rows(self, how: str, args: tuple[Any, ...], op: str, n: int, most: int) -> Any:
        place = made(self._frame, how, None, args)
        condition = _expr.compare(op, place, _expr.constant(n))
        return self._shown(rows_where(self._frame, condition, most))

    def _extremes(self, n: int, descending: bool) -> Any:
        if not self._single or self._chosen is None:
            verb = "nlargest" if descending else "nsmallest"
            raise BadType(
                self._advised(f"name one column: p.groupby('patient_id')['x'].{verb}({n}).")
            )
        x = self._chosen[0][0]
        frame: Any = self._frame._where(_expr.not_null(x)) if x.nullable else self._frame
        return PersonGroupBy(
            sorted_by(frame, [Key(x, descending)]), self._chosen, True, self._as_index
        ).head(n)

    def _shown(self, frame: Any) -> Any:
        """The chosen columns of some rows."""
        if self._chosen is None:
            return frame
        if self._single:
            return PrivateColumn(frame, *self._chosen[0])
        return frame._new(
            frame._selection.replace_columns({name: expr for expr, name in self._chosen})
        )

    def _aggregate(self, x: Expr, how: Any, single: bool = True) -> Expr:
        """What a name or a function makes of a column; of `agg` it is ``single``, one value a
        person."""
        how = meant(how)
        if isinstance(how, str):
            if how not in NAMED:
                raise BadValue(
                    f"a person's rows have no {how!r}. There are {', '.join(NAMED)}, and functions."
                )
            return made(self._frame, how, None if how == "size" else x, NAMED[how])
        expr = self._own(
            called_once(how, OwnColumn(self._frame, x, None), "agg" if single else "transform")
        )
        if single and not one_value(expr, self._frame._session.unit.people):
            raise BadType(
                "a function of agg gives one value a person, and this one gives a value for each row. Write "
                "transform(f), or put them together: lambda x: (x - x.shift()).max()."
            )
        return expr

    def _given(self) -> Any:
        """What a function is called with: the person's column, or columns."""
        if self._single and self._chosen is not None:
            return OwnColumn(self._frame, *self._chosen[0])
        return OwnRows(
            self._frame, {name: self._column(name) for name in self._frame._selection.columns}
        )

    def _own(self, value: Any) -> Expr:
        """The expression that a function has written down: of the person's own columns, or a
        constant."""
        if isinstance(value, PrivateColumn):
            return self._frame._selection.own(value)
        if isinstance(value, bool | int | float | str | np.generic):
            return _expr.constant(value)
        raise BadType(
            f"a function here writes down what is made of a person's own rows, and this one returns a {type(value).__name__}. "
            "Return a column, such as lambda x: x - x.mean(); for other rows of your own making write p.pipe(f)."
        )

    def _unlisted(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._frame._selection.columns:
            return self[name]
        if name in ("idxmax", "idxmin"):
            end = "tail" if name == "idxmax" else "head"
            raise NotOffered(
                self._advised(
                    f"{name} would name a row. For the row itself: p.sort_values('x').groupby('patient_id').{end}(1)."
                )
            )
        if hasattr(DataFrameGroupBy, name):
            raise NotOffered(
                f"{name} of a person's rows is not offered. There are {', '.join((*NAMED, *_ROW_VERBS))}, head, tail, nth, agg, "
                "transform and apply; or write it with pandas' own in a function: p.pipe(f)."
            )
        raise NotOffered(
            self._advised(ADVICE.get(name, f"groups of a person's rows have no {name!r}."))
        )

    if not TYPE_CHECKING:  # to checkers a name that is not listed is an error
        __getattr__ = _unlisted

    def __iter__(self) -> NoReturn:
        refuse("iteration")

    def __len__(self) -> int:
        names = ", ".join(repr(c.name) for c in self._frame._session.unit.people)
        raise Refused(f"how many people there are is a question: p.nunique({names}).")

    def __repr__(self) -> str:
        return f"PersonGroupBy of {', '.join(map(str, self._frame._session.unit.people))}"


def _called(how: Any) -> str:
    return how if isinstance(how, str) else str(getattr(how, "__name__", type(how).__name__))


def _output(label: str, pair: Any, own: Hashable) -> tuple[Any, Any]:
    """The column and the aggregate of a named output."""
    if isinstance(pair, pd.NamedAgg):
        pair = (pair.column, pair.aggfunc)
    if isinstance(pair, str) and own is not None:
        pair = (own, pair)
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise BadType(f"{label}= must be a pair such as ('cost', 'sum').")
    return pair


def own_groups(self: Tracked, by: Any, as_index: bool = True) -> PersonGroupBy | None:
    """The groups of each person's own rows, where the columns are those that name a person; else
    None."""
    names = by if isinstance(by, list) else [by]
    if not names or any(isinstance(name, pd.Grouper) or _is_function(name) for name in names):
        return None
    people = self._session.unit.people
    exprs = [self._selection.level(name)[0] for name in names]
    if not set(people) <= set(exprs) or any(leaf.position in self._session.keys for leaf in people):
        return None
    if len(exprs) > len(people):
        rest = [name for name, e in zip(names, exprs, strict=True) if e not in people]
        own = [name for name, e in zip(names, exprs, strict=True) if e in people]
        raise Refused(
            f"{', '.join(map(repr, own))} is who a row belongs to, and groups are made of a person's rows or of all people's, "
            f"not of both. Within a person group by {own if len(own) > 1 else own[0]!r} alone, after a condition on {rest[0]!r}; "
            f"one row of each pair has drop_duplicates({[*own, *rest]!r})."
        )
    return PersonGroupBy(self, as_index=_validate.flag(as_index, "as_index"))


def _is_function(name: Any) -> bool:
    return callable(name) and not isinstance(name, PrivateColumn)


def _rows_each(n: Any, verb: str, person: str) -> int:
    """How many rows of each person are taken."""
    if isinstance(n, int | np.integer) and n < 1:
        rest = {
            "head": f"All but the last one: p[p.groupby({person}).cumcount(ascending=False) > 0].",
            "tail": f"All but the first one: p[p.groupby({person}).cumcount() > 0].",
        }
        raise BadValue(f"{verb} takes how many rows of each person, at least 1. {rest[verb]}")
    return _validate.positive_int(n, "n")


def _is_output(value: Any) -> bool:
    """Whether it is an aggregate of a column, which `agg` takes under any name."""
    how = value[-1] if isinstance(value, tuple) and value else value
    return callable(how) or (isinstance(how, str) and how in NAMED)


def _free(verb: Any) -> Any:
    """The verb, which says to whoever gives it a price that it has none."""

    own = set(signature(verb).parameters)

    @wraps(verb)
    def free(self: PersonGroupBy, *args: Any, **words: Any) -> Any:
        priced = [word for word in ("bounds", "keys", *WORDS) if word in words and word not in own]
        if priced and not _is_output(words[priced[0]]):
            raise BadType(
                self._advised(
                    f"{verb.__name__} of a person's own rows is a step, and free: {priced[0]}= goes to what is asked of its "
                    "result, as in p.groupby('patient_id')['x'].sum().mean(epsilon=0.1)."
                )
            )
        return verb(self, *args, **words)

    return free


explain_arguments(PersonGroupBy, DataFrameGroupBy)
for _how in [name for name in vars(PersonGroupBy) if not name.startswith("_")]:
    setattr(PersonGroupBy, _how, _free(vars(PersonGroupBy)[_how]))
