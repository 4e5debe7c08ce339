"""The tracked frame: person-wise steps that read nothing, and releases that pay first.

A `PrivateFrame` is a session, an expression a column, and a condition on rows. Every verb here
builds expressions or asks the session; none touches data.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import wraps
from html import escape
from inspect import cleandoc, signature
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    NoReturn,
    ParamSpec,
    Self,
    TypeVar,
    Unpack,
    cast,
)

import numpy as np
import pandas as pd

from dpframe import _validate
from dpframe._errors import (
    BadType,
    LineageError,
    NotOffered,
    Refused,
    did_you_mean,
    unknown_column,
    with_article,
)
from dpframe._expr import Column, Expr
from dpframe._frame.column import PrivateColumn
from dpframe._frame.columns.hooks import call_pandas_function
from dpframe._frame.columns.operators import OperatorMethod, OperatorMethods
from dpframe._frame.places import Located, Positions, assign_item
from dpframe._frame.selection import AnswerMode, Selection, selection_of
from dpframe._frame.signatures import verb
from dpframe._frame.testing.tests import Tests
from dpframe._frame.tracked import (
    Tracked,
    is_pandas_col,
    keep_rows_where,
    refuse_lost_change,
    use_own_names,
)
from dpframe._frame.verbs import (
    cellwise,
    looking,
    pictures,
    steps,
)
from dpframe._groups.calendar import count_periods, describe_groups_left_out
from dpframe._groups.keys import KeyBy
from dpframe._ledger.accountant import Accountant
from dpframe._plans.budget import Budget
from dpframe._plans.price import DEFAULTS, WORDS, Payment, check_payment
from dpframe._refusals import ADVICE
from dpframe._session.batch import Batch
from dpframe._session.opening import find_or_open_session, name_arguments, open_session
from dpframe._session.session import Session
from dpframe._session.terms import Words
from dpframe._types import Index, Series

if TYPE_CHECKING:
    # With the verbs that its stub lists, for those who complete names without running code.
    from dpframe._frame.surface import PrivateColumn as ListedColumn

Model = TypeVar("Model")
# Verbs that completion leaves out: operators by name, and steps of pandas that have no effect here.
UNLISTED = frozenset(
    (
        *("add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow", "rsub", "rdiv"),
        *("eq", "ne", "lt", "le", "gt", "ge", "ndim", "squeeze", "convert_dtypes"),
        *("infer_objects", "add_prefix", "add_suffix", "rename_axis", "set_axis", "reindex"),
        *("isnull", "notnull", "aggregate"),
    )
)
P = ParamSpec("P")
S = TypeVar("S")
R = TypeVar("R")


def _with_parameters(own: str | None, whole: str) -> str:
    """Return the docstring of a method that takes the arguments of `open`.

    ``own`` is the text of the method, and the parameters of ``whole`` follow it. Without its own
    text it gets ``whole``.
    """
    if own is None:
        return whole
    start = whole.index("    Parameters\n")
    return f"{cleandoc(own)}\n\n{cleandoc(whole[start : whole.index('    Examples', start)])}\n"


def with_arguments_of(
    declared: Callable[Concatenate[pd.DataFrame, P], Session],
) -> Callable[[Callable[[S, Words], R]], Callable[Concatenate[S, P], R]]:
    """Return a decorator that gives a method the signature of ``declared``, and its parameters in
    the docstring.

    The method gets a dict of the arguments that the user gave, and no others. So an argument that
    is left out of a second `open` stays as it is.
    """

    frame, *parameters = signature(declared).parameters.values()

    def share(method: Callable[[S, Words], R]) -> Callable[Concatenate[S, P], R]:
        """Wrap a method that takes a dict of arguments into one with the declared parameters."""

        @wraps(method)
        def verb(instance: Any, /, *budget: Any, **arguments: Any) -> R:
            return method(instance, name_arguments(budget, arguments))

        described: Any = verb
        described.__doc__ = _with_parameters(method.__doc__, declared.__doc__ or "")
        described.__signature__ = signature(method).replace(
            parameters=[frame.replace(name="self", annotation=frame.empty), *parameters]
        )
        return cast("Callable[Concatenate[S, P], R]", verb)

    return share


class PrivateFrame(OperatorMethods, Tracked):
    """A frame in a budgeted session: ``df.dp`` after ``df.dp.open(...)``.

    Steps that look at one row at a time are free and return another PrivateFrame. Releases cost a
    price and return what pandas would, with noise. Anything else is refused, with what to write
    instead.

    Without a ledger file the budget is in memory and ends with the process.
    """

    __pandas_function__ = call_pandas_function  # pd.merge(p, ...) asks for it

    @classmethod
    def _of(cls, session: Session, columns: Mapping[Hashable, Expr] | None = None) -> Self:
        """Make the tracked frame of a session.

        ``columns`` are its columns as expressions by name, or None for those of the opened frame.
        """
        columns = session.leaves if columns is None else columns
        selection = Selection(session, columns, premises=session.premises)
        frame = cls(session, selection, AnswerMode())
        vars(frame)["_temporary"] = False
        return frame

    # The session ----------------------------------------------------------------------------------------------

    @with_arguments_of(open_session)
    def open(self, words: Words) -> Self:
        """Return the frame of the open session.

        Another budget is refused, since it would undo this one. Arguments that are left out stay as
        they are.

        New bounds and keys, column by column, limits of a person, ``queries`` and ``n`` are taken
        and put on record. See ``df.dp.open`` of a frame without a session for the parameters.
        Without a ledger file the budget ends with the process.
        """
        self._session.base.refuse_if_not_followed()
        root = self._session.data.root()
        if root is None:
            raise LineageError(
                "the frame that was opened is gone; this session goes on with its own copy of it."
            )
        return self._of(find_or_open_session(root, words))

    @property
    def _unit_text(self) -> str:
        """A text that tells which rows belong to one person, and the contribution limits of a
        person."""
        unit = self._session.unit
        if not unit.people:
            return "one row one person"
        limits = ", ".join(
            f"{word} {limit}"
            for word, limit in (("max_rows", unit.rows), ("max_groups", unit.groups))
            if limit is not None
        )
        return f"a person by {', '.join(map(repr, unit.space))}" + (f", {limits}" if limits else "")

    @property
    def _listed_keys(self) -> str:
        """A text that names the columns with declared keys and counts the keys; empty without
        any."""
        found = [
            f"{n!r} has {len(k)} keys"
            for n, e in self._selection.columns.items()
            if isinstance(e, Column) and (k := self._session.keys.get(e.position)) is not None
        ]
        return "; " + ", ".join(found[:6]) + (", ..." if len(found) > 6 else "") if found else ""

    @property
    def _place(self) -> str:
        """A text that tells where the budget is kept: in memory, or in a ledger file."""
        account = self._session.accountant
        if account.file is None:
            return "in memory: the budget ends with the process"
        return f"population {account.population!r} of the ledger {account.file!r}"

    @property
    def budget(self) -> Budget:
        """The budget of the session, spent and left, which a notebook shows as a meter.

        `Budget.report` compares the accountants.
        """
        return self._session.budget

    @property
    def accountant(self) -> Accountant:
        """The accountant that counts the budget, to be given to other frames of the same people
        (``open(accountant=...)``)."""
        return self._session.accountant

    @property
    def ledger(self) -> pd.DataFrame:
        """Every debit so far: when, what was asked, mechanism, scale, price, what was declared for
        it."""
        return self._session.accountant.ledger

    @property
    def declarations(self) -> pd.DataFrame:
        """Every fact that you declared public, such as bounds, keys, @names, with the reasons."""
        return self._session.accountant.declarations

    def plan_ahead(self) -> Batch[Self]:
        """Open a batch of questions that are declared together and paid as one: all of them or
        none.

        Inside the block every verb returns a `Planned` place; after it, its ``answer``. With
        ``accountant="pld"`` the composed curve of the batch is what guards the budget, which is
        tighter than any rule for questions that depend on earlier answers.

        >>> df = pd.DataFrame({"age": [30, 41, 55]})
        >>> p = df.dp.open(100, bounds={"age": (0, 110)})
        >>> with p.plan_ahead() as batch:
        ...     rows = batch.count(epsilon=50)
        ...     old = batch.query("age > 50").count(epsilon=50)
        >>> rows.answer == 3, old.answer == 1, p.budget.remaining
        (True, True, 0.0)
        """
        return Batch(self, self._session)

    @property
    def explain(self) -> Self:
        """The same methods, which return the plan of a question at no cost: its price and error.

        >>> df = pd.DataFrame({"age": [30, 41, 55]})
        >>> p = df.dp.open(1, bounds={"age": (0, 110)})
        >>> p.explain.count(epsilon=0.5).scale
        2.0
        >>> p.budget.spent
        0.0
        """
        return self._in(self._mode.explaining())

    def close(self) -> None:
        """Close the session for good: give up the rest of the budget, and let go of the data."""
        self._session.close()

    # Schema ---------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> Index:
        """The names of the columns."""
        return pd.Index(list(self._selection.columns), tupleize_cols=False)

    def _across(self, aggregate: str, payment: Mapping[str, object]) -> PrivateColumn:
        """Return a column with an aggregate of each row's cells, for a verb with ``axis=1``.

        ``aggregate`` is the verb, such as "sum". Nothing is released, so a price in ``payment`` is
        refused.
        """
        numeric = payment.get("numeric_only") is True
        check_payment({word: value for word, value in payment.items() if word != "axis"})
        priced = [
            word for word in WORDS if payment.get(word, DEFAULTS.get(word)) != DEFAULTS.get(word)
        ]
        if priced:
            raise BadType(
                f"with axis=1 a {aggregate} is a column, made in each row by itself: nothing is asked, so {priced[0]}= goes to "
                f"what is asked of it, p[['x', 'y']].{aggregate}(axis=1).mean()."
            )
        return cellwise.across(self, aggregate, numeric)

    def any(self, axis: object = 0, bool_only: bool = False, skipna: bool = True) -> PrivateColumn:
        """Return a column that is true where any condition of a row holds, with ``axis=1``.

        Down a column it has no price.
        """
        return self._flags("any", axis, skipna)

    def all(self, axis: object = 0, bool_only: bool = False, skipna: bool = True) -> PrivateColumn:
        """Return a column that is true where all conditions of a row hold, with ``axis=1``.

        Down a column it has no price.
        """
        return self._flags("all", axis, skipna)

    def _flags(self, verb: str, axis: object, skipna: object) -> PrivateColumn:
        if not _validate.among(axis, (1, "columns")) or skipna is not True:
            raise NotOffered(ADVICE[verb])
        return cellwise.across(self, verb)

    @property
    def ndim(self) -> int:
        """Two, as of every frame."""
        return 2

    def __iter__(self) -> Iterator[Hashable]:
        return self._refuse_use("iteration")

    def __contains__(self, name: object) -> bool:
        return name in self._selection.columns

    # Person-wise steps ----------------------------------------------------------------------------------------

    def query(self, expr: str, *, inplace: bool = False) -> Self:
        """Keep the rows where a condition holds, as ``DataFrame.query``; ``@name`` is a local
        variable.

        A row-wise language: comparisons, ``and or not``, arithmetic, ``in``, and the row-wise
        methods of columns, ``.str`` and ``.dt``. A comparison with a null is False, and ``!=`` is
        True. The values of @names are recorded as your declaration that they are public.

        >>> df = pd.DataFrame({"age": [30, 41, 55]})
        >>> p = df.dp.open(1)
        >>> oldest = 50
        >>> p.query("30 < age <= @oldest").explain.count().question
        'size() where (age > 30) & (age <= 50)'
        """
        condition, selection = self._selection.parse_text(expr)
        found = type(self)(self._session, selection.filter_rows(condition), self._mode)
        return found if inplace is False else self._done(found, inplace)

    def __getitem__(self, key: object) -> ListedColumn:
        """Return a column by its name, a frame of the columns in a list, or the rows where a
        condition holds.

        A condition is a tracked column, ``pd.col`` or a function. Masks of pandas and numpy, and
        slices, are refused: they may look across people.
        """
        columns = self._selection.columns
        if type(key) is not str:  # most keys are texts, and names of columns
            if isinstance(key, list | pd.Index):
                names = _validate.column_names(key, columns)
                # Which keys give a frame, the stub says.
                return cast("ListedColumn", self._new(self._selection.choose_columns(names)))
            if isinstance(key, PrivateColumn) or is_pandas_col(key) or callable(key):
                return cast("ListedColumn", keep_rows_where(self, self._expression(key)))
            if isinstance(key, pd.Series | pd.DataFrame | np.ndarray | slice):
                raise Refused(
                    use_own_names(
                        f"rows cannot be chosen by {with_article(type(key).__name__)}: it may look "
                        "across people. Build "
                        "the mask from the tracked columns: p[p['x'] > 30].",
                        self._selection,
                    )
                )
        name = _validate.column_name(key, columns)
        # The column is of a frame of its own, which stays when this one is changed in place.
        column = PrivateColumn(self._new(self._selection), columns[name], name)
        return cast("ListedColumn", column)

    @property
    def loc(self) -> Located[Self, PrivateColumn]:
        """Rows by a condition and columns by name.

        Write ``p.loc[p["age"] > 65, "cost"]`` or ``p.loc[:, ["age", "cost"]]``.
        """
        return Located(self)

    @property
    def iloc(self) -> Positions[Self, PrivateColumn]:
        """Columns by their places: ``p.iloc[:, 0]``, ``p.iloc[:, :3]``.

        Rows have no places here.
        """
        return Positions(self)

    # Operators of each column by itself, and the methods that pandas has beside them --------------

    def _operate(self, name: str, *others: object, swapped: bool = False) -> Self:
        """Return the frame in which an operator is applied to each column."""
        return cellwise.operate(self, name, others, swapped)

    def __xor__(self, other: object) -> NoReturn:
        self._refuse_use("operator")

    __rxor__ = __xor__

    def __round__(self, decimals: int = 0) -> Self:
        """Return the frame with each column rounded, half to even."""
        return cellwise.transform_columns(self, lambda column: column.round(decimals))

    add: OperatorMethod = cellwise.operator_method("add")
    sub: OperatorMethod = cellwise.operator_method("sub")
    mul: OperatorMethod = cellwise.operator_method("mul")
    div: OperatorMethod = cellwise.operator_method("div")
    truediv: OperatorMethod = cellwise.operator_method("truediv")
    floordiv: OperatorMethod = cellwise.operator_method("floordiv")
    mod: OperatorMethod = cellwise.operator_method("mod")
    pow: OperatorMethod = cellwise.operator_method("pow")
    rsub: OperatorMethod = cellwise.operator_method("rsub")
    rdiv: OperatorMethod = cellwise.operator_method("rdiv")
    eq: OperatorMethod = cellwise.operator_method("eq")
    ne: OperatorMethod = cellwise.operator_method("ne")
    lt: OperatorMethod = cellwise.operator_method("lt")
    le: OperatorMethod = cellwise.operator_method("le")
    gt: OperatorMethod = cellwise.operator_method("gt")
    ge: OperatorMethod = cellwise.operator_method("ge")

    @property
    def dtypes(self) -> Series:
        """The dtypes of the columns. Categories of categorical ones are cells, and left out."""
        return looking.dtypes(self)

    @property
    def shape(self) -> tuple[int, int] | looking.FrameShape:
        """The number of rows, which prints as not public unless it is, and that of columns."""
        return looking.shape(self)

    @property
    def plot(self) -> pictures.Plots:
        """Pictures of releases: ``p.plot.hist(y='age')``, ``p.plot.box(y='age')``."""
        return pictures.Plots(self)

    @property
    def test(self) -> Tests:
        """Tests of hypotheses: ``p.test.means('x', by='g')``, ``.shares``, ``.independence``,
        ``.correlation``."""
        return Tests(self)

    @verb
    def fit(
        self,
        model: Model,
        X: object = None,
        y: object = None,
        *,
        bounds: Mapping[Any, object] | None = None,
        **payment: Unpack[Payment],
    ) -> Model:
        """Fit a model of `dpframe.learn` to columns of this frame, and return it, as scikit-learn
        does.

        ``X`` lists the features, all other columns if left out; ``y`` is the target. Features are
        clipped to public bounds, declared ones or ``bounds={"age": (0, 110)}``. The price is the
        model's own ``epsilon=`` and ``delta=``, or given here.

        Formal guarantee: (epsilon, delta)-DP for its price (docs/guarantees/learning.md). Rows with
        a null in a feature or in the target do not count. `explain.fit` shows the plan.

        >>> import pandas as pd
        >>> from dpframe.learn import LinearRegression
        >>> df = pd.DataFrame({"area": [40.0, 60.0, 80.0] * 500, "rent": [500.0, 700.0, 900.0] * 500})
        >>> p = df.dp.open(1e3, bounds={"area": (20, 120), "rent": (0, 2000)})
        >>> model = p.fit(LinearRegression(l2=0), X=["area"], y="rent", epsilon=900)
        >>> model.coef_.round(1), round(model.intercept_)
        (array([10.]), 100)
        """
        check_payment(payment)
        own = getattr(model, "_fit_on", None)
        if own is None or isinstance(model, type):
            raise BadType(
                "fit takes a model of dpframe.learn, such as LogisticRegression(epsilon=1): others read rows as they are."
            )
        return cast(Model, own(self, X, y, bounds, payment))

    def _find_unknown(self, name: str) -> PrivateColumn:
        """Return the column of this name, or refuse a verb that frames do not have."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._selection.columns:
            return self[name]
        advice = ADVICE.get(name)
        raise NotOffered(use_own_names(advice, self._selection) if advice else self._unknown(name))

    def _unknown(self, name: str) -> str:
        """Return the message about a name that is neither a verb nor a column."""
        if hasattr(pd.DataFrame, name):
            return f"DataFrame.{name} has no private counterpart in this version. See dir(p) for what there is."
        verbs = [n for n in dir(type(self)) if not n.startswith("_")]
        close = did_you_mean(name, verbs)
        return (
            f"a tracked frame has no {name!r}.{close}"
            if "Did you" in close
            else str(unknown_column(name, self._selection.columns))
        )

    def __setitem__(self, key: object, value: object) -> None:
        """Set a column of this frame, new or not: ``p["bmi"] = p["weight"] / p["height"] ** 2``.

        Nothing is read, and no other frame changes: neither columns and frames taken from this one
        before, nor ``df.dp``.
        """
        refuse_lost_change(self, key)
        self._become(self._selection.change(columns=assign_item(self, key, value)))

    def __delitem__(self, key: object) -> None:
        refuse_lost_change(self, key)
        self._become(selection_of(steps.drop(self, columns=key)))

    def __setattr__(self, name: str, value: object) -> None:
        """Set a column by attribute, ``p.age = ...``, or all names of columns, ``p.columns =
        [...]``.

        Only a column that exists can be set so. Names with an underscore in front are ordinary
        attributes.
        """
        if name.startswith("_"):
            super().__setattr__(name, value)
        elif name == "columns":
            refuse_lost_change(self)
            self._become(selection_of(steps.set_axis(self, value, axis=1)))
        elif name in self._selection.columns and not hasattr(type(self), name):
            refuse_lost_change(self)
            self._become(self._selection.change(columns=assign_item(self, name, value)))
        else:
            raise Refused(
                f"an attribute makes no new column, in pandas neither. Write p[{name!r}] = ...."
            )

    def __copy__(self) -> Self:
        return self._copy()

    def __deepcopy__(self, memo: object) -> Self:
        return self._copy()  # a copied budget would be a second one

    def __dir__(self) -> Iterable[str]:
        """List the columns and the verbs that people use, for completion.

        Operators by name and steps without effect here are callable, and not listed.
        """
        return [
            *(name for name in super().__dir__() if name not in UNLISTED),
            *(str(c) for c in self._selection.columns if str(c).isidentifier()),
        ]

    def _ipython_key_completions_(self) -> list[Hashable]:
        return list(self._selection.columns)

    def __repr__(self) -> str:
        """Show the columns, the condition on rows, the budget and the unit of privacy.

        No cell and no number of rows is shown.
        """
        shown = ", ".join(f"{n} ({e.kind})" for n, e in list(self._selection.columns.items())[:12])
        more = ", ..." if len(self._selection.columns) > 12 else ""
        rows = "" if self._selection.where is None else f" where {self._selection.where}"
        budget = self.budget
        return (
            f"PrivateFrame of [{shown}{more}]{rows}\n{budget.meter}{self._fits}\n"
            f"{budget.explain().line}\n"
            f"{self._session.unit.neighbors}, {self._unit_text}{self._listed_keys}; {self._place}"
            + "".join(f"\n{text}" for text in self._groups_left_out)
        )

    @property
    def _groups_left_out(self) -> list[str]:
        """Hints about columns of periods with more keys than a person counts in."""
        unit = self._session.unit
        if not unit.people or unit.groups is None:
            return []
        hints = []
        for expr in self._selection.columns.values():
            keys = self._session.keys.get(expr.position) if isinstance(expr, Column) else None
            if keys is not None:
                by = (KeyBy(expr, keys),)
                if count_periods(by, unit.people) > unit.groups:
                    hints.append(describe_groups_left_out(by, len(keys), unit.groups))
        return hints

    @property
    def _fits(self) -> str:
        """A text that tells how many more counts without a price of their own fit into the budget.

        It is empty where a count has to name contribution limits.
        """
        if self._session.unit.people and self._session.unit.rows is None:
            return ""
        times = self._session.default_counts
        return f"; a count for a share fits {times} time{'' if times == 1 else 's'}"

    def _repr_html_(self) -> str:
        """Show the columns with their bounds, the condition and the budget as HTML in a notebook.

        No cell and no number of rows is shown.
        """
        rows = "".join(
            f"<tr><td>{_escape(n)}</td><td>{e.kind}</td><td>{_escape(looking.bounds_text(self._selection, e))}</td></tr>"
            for n, e in list(self._selection.columns.items())[:30]
        )
        where = (
            ""
            if self._selection.where is None
            else f"<p>where <code>{_escape(self._selection.where)}</code></p>"
        )
        return (
            f"<div><b>PrivateFrame</b> ({self._session.unit.neighbors}, {escape(self._unit_text + self._listed_keys)})"
            f"<table><tr><th>column</th><th>kind</th><th>bounds</th></tr>{rows}</table>{where}"
            f"{self.budget._repr_html_()}<small>{escape(self._place)}</small>"
            + "".join(f"<p>{escape(text)}</p>" for text in self._groups_left_out)
            + "</div>"
        )


def _escape(value: object) -> str:
    return str(value).replace("&", "&amp;").replace("<", "&lt;")
