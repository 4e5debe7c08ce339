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
from dpframe._expr import WITHIN, Expr, Key, has_one_value
from dpframe._frame.column import PrivateColumn
from dpframe._frame.people.functions import PersonColumn, PersonRows, call_once, name_aggregate
from dpframe._frame.people.steps import keep_one_row, keep_rows, sort_rows
from dpframe._frame.people.verbs import Build, PersonVerbs
from dpframe._frame.people.windows import Window, read_window
from dpframe._frame.people.within import (
    AGGREGATES,
    ROW_VERBS,
    PersonVerb,
    build_within,
    check_integer,
)
from dpframe._frame.selection import selection_of, session_of_frame
from dpframe._frame.signatures import explain_arguments
from dpframe._frame.tracked import Tracked, person_of, use_own_names, with_selection
from dpframe._plans.counts import DISTINCT
from dpframe._plans.price import WORDS
from dpframe._refusals import ADVICE, Unprinted, refuse
from dpframe._types import Arguments

if TYPE_CHECKING:
    from dpframe._frame.frame import PrivateFrame


class PersonGroupBy(PersonVerbs, Unprinted):
    """``p.groupby("patient_id")`` where that column names a person: verbs within each person's own
    rows, all of them free.

    A verb with one value for each person (``sum``, ``first``, ``agg``) makes a tracked frame or
    column with a row for each person. A verb with a value for each row (`shift`, `cumsum`,
    `transform`) makes a column beside the others. `head` and the like choose rows. Prices come with
    the questions about the result.

    Formal guarantee: as a column of one row, a function of one person's rows leaves every
    sensitivity as it is (docs/guarantees/people.md#verbs-within-a-person). Rows of one person that
    are equal in what they are sorted by stay in the order they have in the frame.

    >>> visits = pd.DataFrame({"id": [1, 1, 2], "cost": [10.0, 30.0, 6.0]})
    >>> p = visits.dp.open(1000, unit="id", max_rows=2, max_groups=1, bounds={"cost": (0, 30)})
    >>> print(round(p.groupby("id")["cost"].sum().mean(epsilon=450)))
    23
    >>> print(round(p.groupby("id").head(1)["cost"].mean(epsilon=450)))
    8
    """

    def __init__(
        self,
        frame: PrivateFrame,
        chosen: Mapping[Hashable, Expr] | None = None,
        single: bool = False,
        as_index: bool = True,
    ):
        """Group a tracked frame by person.

        ``chosen`` are the columns in brackets by name, or None for all. ``single`` is true if one
        column was chosen by its name alone. ``as_index`` is as in pandas.
        """
        self._frame, self._chosen, self._single, self._as_index = frame, chosen, single, as_index
        self._selection = selection_of(frame)
        self._people = self._selection.schema.unit.people

    def __getitem__(self, key: object) -> PersonGroupBy:
        columns = self._selection.columns
        names = _validate.column_names(key if isinstance(key, list) else [key], columns)
        chosen = dict(zip(names, map(columns.__getitem__, names), strict=True))
        return PersonGroupBy(self._frame, chosen, not isinstance(key, list), self._as_index)

    # One value of each person --------------------------------------------------------------------

    def size(self) -> PrivateColumn | PrivateFrame:
        """Return how many rows each person has."""
        expr = build_within(self._selection, "size", None)
        if not self._as_index:
            return self._make_frame({"size": expr})
        return PrivateColumn(keep_one_row(self._frame, {"size": expr}), expr, None)

    def agg(self, func: object = None, **outputs: object) -> PrivateColumn | PrivateFrame:
        """Return several values of each person: ``agg(visits=("cost", "size"), total=("cost",
        "sum"))``, a name, a list or a dict of names.

        A function is called once with the columns themselves, and the expression that it returns is
        what is computed: ``agg(lambda x: x.max() - x.min())``. It must give one value a person.

        >>> visits = pd.DataFrame({"id": [1, 1, 2], "cost": [10.0, 30.0, 6.0]})
        >>> p = visits.dp.open(1000, unit="id", max_rows=2, max_groups=1, bounds={"cost": (0, 100)})
        >>> each = p.groupby("id").agg(visits=("cost", "size"), dearest=("cost", "max"))
        >>> print(round(each[each["visits"] > 1]["dearest"].mean(epsilon=900)))
        30
        """
        if func is None and not outputs:
            raise BadValue("agg needs at least one output: agg(total=('cost', 'sum')).")
        if func is None:
            wanted: Mapping[Hashable, Any] = {}
        else:
            wanted = func if isinstance(func, Mapping) else dict.fromkeys(self._columns(), func)
        several = any(isinstance(how, list) for how in wanted.values())
        found: dict[Hashable, Expr] = {}
        for name, hows in wanted.items():
            for how in hows if isinstance(hows, list) else [hows]:
                label: Hashable = name
                if several:
                    label = _name_function(how) if self._single else (name, _name_function(how))
                found[label] = self._aggregate(self._column(name), how)
        for word, pair in outputs.items():
            name, how = _read_output(word, pair, self._chosen_name)
            found[word] = self._aggregate(self._column(name), how)
        if self._single and not outputs and not several:
            return self._make_column(found)
        return self._make_frame(found)

    aggregate = agg

    # A value of each row -------------------------------------------------------------------------

    def rolling(self, window: int, min_periods: int | None = None, **words: object) -> Window:
        """Return windows of some of a person's rows, each ending with its own row:
        ``rolling(3).mean()``; see `Window`."""
        arguments = self._chosen_name, window, min_periods, words
        return self._make_window(*read_window(self._selection, *arguments))

    def cumcount(self, ascending: bool = True) -> PrivateColumn:
        """Return how many rows of the person come before each row, with ``ascending=False`` after
        it."""
        flag = _validate.flag(ascending, "ascending")
        expr = build_within(self._selection, "cumcount", None, (flag,))
        return PrivateColumn(self._frame, expr, None)

    def transform(self, func: object) -> PrivateColumn | PrivateFrame:
        """Return a value of each row, by the name of a verb (``"sum"``, ``"rank"``) or by a
        function of the person's own column.

        The function is called once with the column itself, and the expression that it returns is
        computed for each person: ``transform(lambda x: x - x.mean())``.

        >>> visits = pd.DataFrame({"id": [1, 1, 2], "cost": [10.0, 30.0, 6.0]})
        >>> p = visits.dp.open(1000, unit="id", max_rows=2, max_groups=1, bounds={"cost": (0, 100)})
        >>> share = p["cost"] / p.groupby("id")["cost"].transform("sum")
        >>> print(round(p.assign(share=share).mean("share", bounds=(0, 1), epsilon=900), 2))
        0.67
        """
        if isinstance(func, str) and func not in AGGREGATES:
            if func in ROW_VERBS:
                made: PrivateColumn | PrivateFrame = getattr(self, func)()
                return made
            names = ", ".join((*AGGREGATES, *ROW_VERBS))
            raise BadValue(f"transform has no {func!r}. It has {names}.")
        return self._make_rows(lambda selection, x: self._aggregate(x, func, single=False))

    def apply(self, func: object) -> PrivateColumn | PrivateFrame:
        """Return what a function makes of the person's own rows: ``apply(lambda g: g["cost"].sum()
        / g["days"].sum())``.

        It is called once, with a person's column or columns, and gives one value a person, or one
        for each of the person's rows. A ``pd.Series`` of such values makes a frame with a row for
        each person.
        """
        given = call_once(func, self._give_columns(), "apply")
        if isinstance(given, pd.Series) and given.dtype == object and len(given):
            return self._make_frame({name: self._read_own(one) for name, one in given.items()})
        expr, name = self._read_own(given), self._chosen_name
        if not has_one_value(expr, self._people):
            return PrivateColumn(self._frame, expr, name)
        columns = {"value" if name is None else name: expr}
        return PrivateColumn(keep_one_row(self._frame, columns), expr, name)

    # Rows ----------------------------------------------------------------------------------------

    def head(self, n: int = 5) -> PrivateColumn | PrivateFrame:
        """Return the first rows of each person, who then has at most ``n`` rows."""
        return self._keep_places(True, "<", _check_rows_each(n, "head", self._person), n)

    def tail(self, n: int = 5) -> PrivateColumn | PrivateFrame:
        """Return the last rows of each person."""
        return self._keep_places(False, "<", _check_rows_each(n, "tail", self._person), n)

    def nth(self, n: int) -> PrivateColumn | PrivateFrame:
        """Return one row of each person, by its position ``n``.

        Positions count from 0, or from the end with -1.
        """
        if isinstance(n, list | tuple | slice | range):
            raise NotOffered(
                f"nth takes one place. The first ones: p.groupby({self._person}).head(3)."
            )
        place = check_integer(n, "n")
        return self._keep_places(place >= 0, "==", place if place >= 0 else -1 - place, 1)

    def nlargest(self, n: int = 5) -> PrivateColumn | PrivateFrame:
        """Return the greatest values of each person."""
        return self._keep_extremes(n, True)

    def nsmallest(self, n: int = 5) -> PrivateColumn | PrivateFrame:
        """Return the least values of each person."""
        return self._keep_extremes(n, False)

    def filter(self, func: object) -> PrivateColumn | PrivateFrame:
        """Return the rows of the people for whom a function is true: ``filter(lambda g:
        g["cost"].sum() > 100)``."""
        expr = self._read_own(call_once(func, self._give_columns(), "filter"))
        if expr.kind != "bool" or not has_one_value(expr, self._people):
            raise BadType(
                "filter needs a function that is true or false of a person: "
                "lambda g: g['cost'].sum() > 100."
            )
        return self._choose_columns(with_selection(self._frame, self._selection.filter_rows(expr)))

    def pipe(self, func: Callable[..., object], *args: object, **kwargs: object) -> Any:
        """Return what a function makes of these groups."""
        return func(self, *args, **kwargs)

    # Messages ------------------------------------------------------------------------------------

    @property
    def _person(self) -> str:
        """The columns that name a person, as they are written in a line of code."""
        return person_of(self._selection)

    @property
    def _chosen_name(self) -> Hashable:
        """The name of the one column that was chosen; None for several."""
        return next(iter(self._chosen)) if self._single and self._chosen else None

    def _advise(self, text: str) -> str:
        """Put the names of the frame and of the chosen column into a refusal."""
        return use_own_names(text, self._selection, self._chosen_name)

    # Columns and frames of the results -----------------------------------------------------------

    def _columns(self) -> Mapping[Hashable, Expr]:
        """Return the chosen columns, or all but those that name the person."""
        if self._chosen is not None:
            return self._chosen
        columns = self._selection.columns
        return {name: expr for name, expr in columns.items() if expr not in self._people}

    def _column(self, name: object) -> Expr:
        """Return the expression of a column, one of the chosen ones or any of the frame."""
        if self._chosen is not None and isinstance(name, Hashable) and name in self._chosen:
            return self._chosen[name]
        return self._selection.expr(name)

    def _list_columns(self, verb: PersonVerb, numeric_only: bool) -> dict[Hashable, Expr]:
        """Return the columns that a verb applies to, by name.

        If none were chosen, columns of a kind that the verb does not take are refused. With
        ``numeric_only`` all that are not numbers are left out.
        """
        numeric, kinds = _validate.flag(numeric_only, "numeric_only"), WITHIN[verb.of].of
        found, fitting, odd = {}, [], None
        for name, expr in self._columns().items():
            if numeric and expr.kind not in ("number", "bool"):
                continue
            found[name] = expr
            if expr.kind in kinds:
                fitting.append(name)
            elif odd is None:
                odd = name
        if odd is not None and self._chosen is None and not numeric:
            raise BadType(
                f"column {odd!r} is of kind {found[odd].kind}, which has no {verb.name}. Name the "
                f"columns, as in p.groupby({self._person})[{fitting[:3] or ['x', 'y']}]."
                f"{verb.name}(), or take all that are numbers: {verb.name}(numeric_only=True)."
            )
        return found

    def _make_people(
        self, verb: PersonVerb, args: Arguments, numeric_only: bool
    ) -> PrivateColumn | PrivateFrame:
        """Return the result of a verb that gives one value for each person, such as ``sum``.

        ``args`` are the arguments of the verb. The result is a column if one was chosen, else a
        frame.
        """
        exprs = self._list_columns(verb, numeric_only)
        for name, x in exprs.items():
            exprs[name] = verb.build(self._selection, x, *args)
        return self._make_column(exprs) if self._single else self._make_frame(exprs)

    def _make_column(self, exprs: Mapping[Hashable, Expr]) -> PrivateColumn | PrivateFrame:
        """Return the one column of a frame with a row for each person.

        With ``as_index=False`` it is the frame itself, with the columns that name the person.
        """
        if not self._as_index:
            return self._make_frame(exprs)
        ((name, expr),) = exprs.items()
        return PrivateColumn(keep_one_row(self._frame, exprs), expr, name)

    def _make_frame(self, exprs: Mapping[Hashable, Expr]) -> PrivateFrame:
        """Return a frame with a row for each person.

        With ``as_index=False`` the columns that name the person stand first.
        """
        first: dict[Hashable, Expr] = {}
        if not self._as_index:
            columns = self._selection.columns
            first = {name: expr for name, expr in columns.items() if expr in self._people}
        if not first.keys().isdisjoint(exprs):
            raise BadValue(
                "an output has the name of the column that names the person. Choose another one."
            )
        return keep_one_row(self._frame, {**first, **exprs})

    def _make_rows(self, build: Build) -> PrivateColumn | PrivateFrame:
        """Return the result of a verb that gives a value for each row, such as ``cumsum``.

        ``build`` makes the new expression of a column from the selection and the old expression.
        """
        exprs = {name: build(self._selection, x) for name, x in self._columns().items()}
        if self._single:
            ((name, expr),) = exprs.items()
            return PrivateColumn(self._frame, expr, name)
        return with_selection(self._frame, self._selection.replace_columns(exprs))

    def _make_window(self, rows: int | None, least: int) -> Window:
        """Return windows over each person's rows, as `rolling` and `expanding` give them.

        ``rows`` is the length of a window, or None without limit. ``least`` is how many values a
        window needs for a result.
        """
        return Window(
            self._selection,
            self._make_rows,
            rows,
            least,
            self._chosen_name,
            lambda key: self[key]._make_window(rows, least),
        )

    def _keep_places(
        self, ascending: bool, op: str, n: int, most: int
    ) -> PrivateColumn | PrivateFrame:
        """Return the rows of each person whose position compares with ``n`` as ``op`` says.

        Positions count from the first row, or from the last one unless ``ascending``. A person then
        has at most ``most`` rows.
        """
        place = build_within(self._selection, "cumcount", None, (ascending,))
        condition = _expr.compare(op, place, _expr.constant(n))
        return self._choose_columns(keep_rows(self._frame, condition, most))

    def _keep_extremes(self, n: int, descending: bool) -> PrivateColumn | PrivateFrame:
        """Return the ``n`` greatest values of each person if ``descending``, else the least."""
        if not self._single or self._chosen is None:
            verb = "nlargest" if descending else "nsmallest"
            raise BadType(
                self._advise(f"name one column: p.groupby('patient_id')['x'].{verb}({n}).")
            )
        (x,), frame = self._chosen.values(), self._frame
        if x.nullable:
            frame = with_selection(frame, self._selection.filter_rows(_expr.not_null(x)))
        ranked = sort_rows(frame, [Key(x, descending)])
        return PersonGroupBy(ranked, self._chosen, True, self._as_index).head(n)

    def _choose_columns(self, frame: PrivateFrame) -> PrivateColumn | PrivateFrame:
        """Return the chosen columns of a frame of some of the rows."""
        if self._chosen is None:
            return frame
        if self._single:
            ((name, expr),) = self._chosen.items()
            return PrivateColumn(frame, expr, name)
        return with_selection(frame, selection_of(frame).replace_columns(self._chosen))

    # Functions of the person's own rows ----------------------------------------------------------

    def _aggregate(self, x: Expr, how: object, single: bool = True) -> Expr:
        """Return the expression of an aggregate of a person's column ``x``.

        ``how`` is the name of the aggregate, or a function. With ``single`` it must be one value a
        person, as `agg` needs it.
        """
        how = name_aggregate(how)
        if isinstance(how, str):
            if how not in AGGREGATES:
                raise BadValue(
                    f"a person's rows have no {how!r}. There are {', '.join(AGGREGATES)}, and "
                    "functions."
                )
            cells = x if WITHIN[how].of else None
            return build_within(self._selection, how, cells, AGGREGATES[how])
        column = PersonColumn(self._frame, x, None)
        expr = self._read_own(call_once(how, column, "agg" if single else "transform"))
        if single and not has_one_value(expr, self._people):
            raise BadType(
                "a function of agg gives one value a person, and this one gives a value for each "
                "row. Write transform(f), or put them together: lambda x: (x - x.shift()).max()."
            )
        return expr

    def _give_columns(self) -> PersonColumn | PersonRows:
        """Return what a function is called with: the person's chosen column, or all columns."""
        if self._single and self._chosen is not None:
            ((name, expr),) = self._chosen.items()
            return PersonColumn(self._frame, expr, name)
        columns = {name: self._column(name) for name in self._selection.columns}
        return PersonRows(self._frame, columns)

    def _read_own(self, value: object) -> Expr:
        """Return the expression of a function's result: a column of the person, or a constant."""
        if isinstance(value, PrivateColumn):
            return self._selection.own(value)
        if isinstance(value, bool | int | float | str | np.generic):
            return _expr.constant(value)
        raise BadType(
            "a function here writes down what is made of a person's own rows, and this one returns "
            f"a {type(value).__name__}. Return a column, such as lambda x: x - x.mean(); for other "
            "rows of your own making write p.pipe(f)."
        )

    # Everything else is refused ------------------------------------------------------------------

    def _refuse_name(self, name: str) -> PersonGroupBy:
        """Return a column by its name, or refuse a verb that these groups do not have."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._selection.columns:
            return self[name]
        if name in ("idxmax", "idxmin"):
            end = "tail" if name == "idxmax" else "head"
            raise NotOffered(
                self._advise(
                    f"{name} would name a row. For the row itself: "
                    f"p.sort_values('x').groupby('patient_id').{end}(1)."
                )
            )
        if hasattr(DataFrameGroupBy, name):
            raise NotOffered(
                f"{name} of a person's rows is not offered. There are "
                f"{', '.join((*AGGREGATES, *ROW_VERBS))}, head, tail, nth, agg, transform and "
                "apply; or write it with pandas' own in a function: p.pipe(f)."
            )
        raise NotOffered(
            self._advise(ADVICE.get(name, f"groups of a person's rows have no {name!r}."))
        )

    if not TYPE_CHECKING:  # to checkers a name that is not listed is an error
        __getattr__ = _refuse_name

    def __iter__(self) -> NoReturn:
        refuse("iteration")

    def __len__(self) -> NoReturn:
        names = ", ".join(repr(leaf.name) for leaf in self._people)
        raise Refused(f"how many people there are is a question: p.{DISTINCT}({names}).")

    def __repr__(self) -> str:
        return f"PersonGroupBy of {', '.join(map(str, self._people))}"


def _name_function(how: object) -> str:
    """Return the name of an output: that of an aggregate, or of a function."""
    return how if isinstance(how, str) else str(getattr(how, "__name__", type(how).__name__))


def _read_output(label: str, pair: object, column: Hashable) -> tuple[Any, Any]:
    """Return the column and the aggregate of a named output of `agg`.

    ``column`` is the chosen column, if there is one.
    """
    if isinstance(pair, pd.NamedAgg):
        pair = (pair.column, pair.aggfunc)
    if isinstance(pair, str) and column is not None:
        pair = (column, pair)
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise BadType(f"{label}= must be a pair such as ('cost', 'sum').")
    return pair


def group_by_person(self: Tracked, by: object, as_index: bool = True) -> PersonGroupBy | None:
    """Return the groups of each person's own rows, or None if the columns do not name a person.

    `groupby` asks this first. ``by`` are its columns.
    """
    names, exprs = by if isinstance(by, list) else [by], []
    selection, session = selection_of(self), session_of_frame(self)
    for name in names:
        if isinstance(name, pd.Grouper) or (callable(name) and not isinstance(name, PrivateColumn)):
            return None
        exprs.append(selection.level(name)[0])
    people = session.unit.people
    for leaf in people:
        if leaf not in exprs or leaf.position in session.keys:
            return None
    if not exprs:
        return None
    if len(exprs) > len(people):
        rest = [name for name, e in zip(names, exprs, strict=True) if e not in people]
        own = [name for name, e in zip(names, exprs, strict=True) if e in people]
        raise Refused(
            f"{', '.join(map(repr, own))} is who a row belongs to, and groups are made of a "
            "person's rows or of all people's, not of both. Within a person group by "
            f"{own if len(own) > 1 else own[0]!r} alone, after a condition on {rest[0]!r}; one row "
            f"of each pair has drop_duplicates({[*own, *rest]!r})."
        )
    frame: Any = self
    return PersonGroupBy(frame, as_index=_validate.flag(as_index, "as_index"))


def _check_rows_each(n: object, verb: str, person: str) -> int:
    """Return ``n``, the rows of each person that `head` or `tail` takes; refuse less than 1.

    ``verb`` and ``person`` are for the message.
    """
    if isinstance(n, int | np.integer) and n < 1:
        rest = {
            "head": f"All but the last one: p[p.groupby({person}).cumcount(ascending=False) > 0].",
            "tail": f"All but the first one: p[p.groupby({person}).cumcount() > 0].",
        }
        raise BadValue(f"{verb} takes how many rows of each person, at least 1. {rest[verb]}")
    return _validate.positive_int(n, "n")


def _is_output(value: object) -> bool:
    """Return whether it is an aggregate of a column, which `agg` takes under any name."""
    how = value[-1] if isinstance(value, tuple) and value else value
    return callable(how) or (isinstance(how, str) and how in AGGREGATES)


_PRICE_WORDS = ("bounds", "keys", *WORDS)


def _refuse_prices(verb: Callable[..., object]) -> Callable[..., Any]:
    """Return a verb that refuses the arguments of a price such as ``epsilon=``, since it is
    free."""
    own = set(signature(verb).parameters)

    @wraps(verb)
    def free_verb(self: PersonGroupBy, *args: object, **words: object) -> Any:
        """Call the verb, unless it is given a price such as ``epsilon=``, which a free step does
        not take."""
        for word in _PRICE_WORDS if words else ():
            if word in words and word not in own:
                if not _is_output(words[word]):
                    raise BadType(
                        self._advise(
                            f"{verb.__name__} of a person's own rows is a step, and free: {word}= "
                            "goes to what is asked of its result, as in "
                            "p.groupby('patient_id')['x'].sum().mean(epsilon=0.1)."
                        )
                    )
                break
        return verb(self, *args, **words)

    return free_verb


explain_arguments(PersonGroupBy, DataFrameGroupBy)
for _name in [name for name in vars(PersonGroupBy) if not name.startswith("_")]:
    setattr(PersonGroupBy, _name, _refuse_prices(vars(PersonGroupBy)[_name]))
