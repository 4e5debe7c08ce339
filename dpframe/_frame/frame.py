"""The tracked frame: person-wise steps that read nothing, and releases that pay first.

A `PrivateFrame` is a session, an expression a column, and a condition on rows. Every verb here builds
expressions or asks the session; none touches data.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from html import escape
from typing import Any, NoReturn, overload

import numpy as np
import pandas as pd

from dpframe import _expr, _validate
from dpframe._errors import BadType, LineageError, NotOffered, Refused, did_you_mean, unknown_column
from dpframe._expr import Column, Expr
from dpframe._expr._parse import parse
from dpframe._frame.adopting import Adopting
from dpframe._frame.column import PrivateColumn, as_expr, predicate_of
from dpframe._frame.fitting import Fitting
from dpframe._frame.order import Orders
from dpframe._frame.randomize import Randomized
from dpframe._frame.rewrite import callers_frame
from dpframe._frame.selections import Selections
from dpframe._frame.shapes import Shapes
from dpframe._frame.steps import Steps
from dpframe._frame.suggestions import Suggestions
from dpframe._frame.unlisted import Unlisted
from dpframe._groups.keys import Word, describe
from dpframe._ledger.accountant import Accountant
from dpframe._refusals import ADVICE, Unprinted, own_errors, refuse
from dpframe._session.batch import Batch, Rowwise
from dpframe._session.derived import not_replayed
from dpframe._session.opening import open_session, opened, with_words_of
from dpframe._session.session import Session
from dpframe._session.terms import Words
from dpframe.accounting._meter import Budget


class PrivateFrame(
    Steps, Shapes, Selections, Orders, Suggestions, Adopting, Unlisted, Randomized, Fitting, Unprinted
):
    """A frame in a budgeted session: ``df.dp`` after ``df.dp.open(...)``.

    Steps that look at one row at a time are free and return another PrivateFrame. Releases cost a price and
    return what pandas would, with noise. Anything else is refused, with what to write instead.

    Without a ledger file the budget is in memory and ends with the process.
    """

    def __init__(
        self,
        session: Session,
        columns: Mapping[Hashable, Expr],
        where: Expr | None = None,
        declared: tuple[Word, ...] = (),
        explaining: bool = False,
        batch: Batch | None = None,
        half: bool = False,
    ):
        self._session = session
        self._columns = dict(columns)
        self._where = where
        self._declared = declared
        self._explaining = explaining
        self._batch = batch
        self._half = half  # of a price is left, for the other half found the keys

    @staticmethod
    def _of(session: Session) -> PrivateFrame:
        return PrivateFrame(session, session.leaves)

    def _with(self, **changes: Any) -> PrivateFrame:
        self._usable()
        state = {
            "columns": self._columns,
            "where": self._where,
            "declared": self._declared,
            "explaining": self._explaining,
            "batch": self._batch,
            "half": self._half,
        }
        return PrivateFrame(self._session, **{**state, **changes})

    def _usable(self) -> None:
        """A hook: frames that pandas derived refuse here."""

    # The session ----------------------------------------------------------------------------------------------

    @with_words_of(open_session)
    def open(self, words: Words) -> PrivateFrame:
        """The session is open: another budget is refused, since it would undo this one. Words left out stay as they are.

        New bounds and keys, column by column, limits of a person, ``queries`` and ``n`` are taken and put on record. See
        ``df.dp.open`` of a frame without a session for the parameters. Without a ledger file
        the budget ends with the process.
        """
        not_replayed(self._session)
        root = self._session.data.root()
        if root is None:
            raise LineageError(
                "the frame that was opened is gone; this session goes on with its own copy of it."
            )
        return PrivateFrame._of(opened(root, words))

    @property
    def _whose(self) -> str:
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
        """Which columns have declared keys, shortened."""
        found = [
            f"{n!r} has {len(k)} keys"
            for n, e in self._columns.items()
            if isinstance(e, Column) and (k := self._session.keys.get(e.position)) is not None
        ]
        return "; " + ", ".join(found[:6]) + (", ..." if len(found) > 6 else "") if found else ""

    @property
    def _place(self) -> str:
        account = self._session.accountant
        if account.file is None:
            return "in memory: the budget ends with the process"
        return f"population {account.population!r} of the ledger {account.file!r}"

    @property
    def budget(self) -> Budget:
        """What is spent and what is left; a meter in a notebook. `Budget.report` compares the accountants."""
        return self._session.budget

    @property
    def accountant(self) -> Accountant:
        """What counts the budget, to be given to other frames of the same people: ``open(accountant=...)``."""
        return self._session.accountant

    @property
    def ledger(self) -> pd.DataFrame:
        """Every debit so far: when, what was asked, mechanism, scale, price, what was declared for it."""
        return self._session.accountant.ledger

    @property
    def declarations(self) -> pd.DataFrame:
        """Every fact that is public because you said so: bounds, keys, @names, and reasons."""
        return self._session.accountant.declarations

    def plan_ahead(self) -> Batch:
        """Questions that are declared together and paid as one: all of them or none.

        Inside the block every verb returns a `Planned` place; after it, its ``answer``. With ``accountant="pld"`` the
        composed curve of the batch is what guards the budget, which is tighter than any rule for questions that
        depend on earlier answers.

        >>> df = pd.DataFrame({"age": [30, 41, 55]})
        >>> p = df.dp.open(100, bounds={"age": (0, 110)})
        >>> with p.plan_ahead() as batch:
        ...     rows = batch.count(epsilon=50)
        ...     old = batch.query("age > 50").count(epsilon=50)
        >>> rows.answer == 3, old.answer == 1, p.budget.remaining
        (True, True, 0.0)
        """
        return Batch(self)

    @property
    def explain(self) -> Any:
        """The same verbs, which return their plan: price, mechanism, scale, expected error. Free.

        >>> df = pd.DataFrame({"age": [30, 41, 55]})
        >>> p = df.dp.open(1, bounds={"age": (0, 110)})
        >>> p.explain.count(epsilon=0.5).scale
        2.0
        >>> p.budget.spent
        0.0
        """
        return self._with(explaining=True)

    def close(self) -> None:
        """Give up what is left of the budget, for good, and let go of the data."""
        self._session.close()

    # Schema ---------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> pd.Index[Any]:
        """The names of the columns."""
        return pd.Index(list(self._columns), tupleize_cols=False)

    def _expr_of(self, name: Any) -> Expr:
        self._usable()
        if isinstance(name, PrivateColumn):
            return self._own(name)
        return self._columns[_validate.column_name(name, self._columns)]

    def _own(self, column: PrivateColumn) -> Expr:
        if column._frame._session is not self._session or column._frame._where != self._where:
            raise LineageError(
                "this column belongs to another frame or to another selection of rows. Take it from the frame it is "
                "used with: p[p['age'] > 30] and not q[p['age'] > 30]."
            )
        return column._expr

    def __iter__(self) -> Iterator[Hashable]:
        return refuse("iteration")

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    # Person-wise steps ----------------------------------------------------------------------------------------

    def query(self, expr: str) -> PrivateFrame:
        """The rows where a condition holds, as ``DataFrame.query``; ``@name`` is a local variable.

        A row-wise language: comparisons, ``and or not``, arithmetic, ``in``, and the row-wise methods of
        columns, ``.str`` and ``.dt``. A comparison with a null is False, and ``!=`` is True. The values of
        @names are recorded as your declaration that they are public.

        >>> df = pd.DataFrame({"age": [30, 41, 55]})
        >>> p = df.dp.open(1)
        >>> oldest = 50
        >>> p.query("30 < age <= @oldest").explain.count().question
        'size() where (age > 30) & (age <= 50)'
        """
        condition, frame = self._parsed(expr, callers_frame())
        return frame._filter(condition)

    def _parsed(self, text: str, caller: Any) -> tuple[Expr, PrivateFrame]:
        if not isinstance(text, str):
            raise BadType(f"an expression is a string such as 'age > 30', not {type(text).__name__}.")
        self._usable()
        parsed = parse(text, self._columns, lambda name: _local(name, caller))
        words = tuple(
            Word("@name", f"{name} = {describe(value)}", text) for name, value in parsed.names.items()
        )
        return parsed.expr, self._with(declared=self._declared + words)

    def _filter(self, condition: Expr) -> PrivateFrame:
        condition = predicate_of(condition)
        both = condition if self._where is None else _expr.logical_and(self._where, condition)
        return self._with(where=both)

    @overload
    def __getitem__(self, key: list[Any]) -> PrivateFrame: ...
    @overload
    def __getitem__(self, key: PrivateColumn) -> PrivateFrame: ...
    @overload
    def __getitem__(self, key: Hashable) -> PrivateColumn: ...

    def __getitem__(self, key: Any) -> Any:
        self._usable()
        if isinstance(key, list | pd.Index):
            names = _validate.column_names(key, self._columns)
            return self._with(columns={n: self._columns[n] for n in names})
        if isinstance(key, PrivateColumn) or _is_pandas_col(key) or callable(key):
            return self._filter(self._resolve(key))
        if isinstance(key, pd.Series | pd.DataFrame | np.ndarray | slice):
            raise Refused(
                f"rows cannot be chosen by a {type(key).__name__}: it may look across people. Build the mask from "
                "the tracked columns: p[p['age'] > 30]."
            )
        name = _validate.column_name(key, self._columns)
        return PrivateColumn(self, self._columns[name], name)

    def _resolve(self, value: Any) -> Expr:
        """An expression from a tracked column, ``pd.col`` or a function of the tracked frame."""
        if _is_pandas_col(value):
            # Explaining, so that pd.col("x").mean() is refused and not a hidden charge.
            value = value._eval_expression(self.explain)
            if not isinstance(value, PrivateColumn):
                raise Refused(
                    "this pd.col expression is no row-wise column: it may look across people. Release such a number "
                    "first, p.mean('age'), and use the answer in the expression."
                )
        elif callable(value) and not isinstance(value, PrivateColumn):
            value = value(
                self._rowwise(
                    "a function here returns an expression for one row, and asks nothing: release such a number first, with "
                    "its price, and use the answer in the expression."
                )
            )
        return self._own(value) if isinstance(value, PrivateColumn) else as_expr(value)

    def _rowwise(self, advice: str) -> PrivateFrame:
        """What a function is given that may only put expressions together."""
        return self._with(explaining=False, batch=Rowwise(self, advice))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._columns:
            return self[name]
        raise NotOffered(ADVICE.get(name) or self._unknown(name))

    def _unknown(self, name: str) -> str:
        if hasattr(pd.DataFrame, name):
            return (
                f"DataFrame.{name} has no private counterpart in this version. See dir(p) for what there is."
            )
        verbs = [n for n in dir(type(self)) if not n.startswith("_")]
        close = did_you_mean(name, verbs)
        return (
            f"a tracked frame has no {name!r}.{close}"
            if "Did you" in close
            else str(unknown_column(name, self._columns))
        )

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise Refused("a tracked frame is not changed in place. Write p = p.assign(name='expression').")

    def __delitem__(self, key: object) -> NoReturn:
        raise Refused("a tracked frame is not changed in place. Write p = p.drop(columns='name').")

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_"):
            raise Refused("a tracked frame is not changed in place. Write p = p.assign(name='expression').")
        super().__setattr__(name, value)

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *(str(c) for c in self._columns if str(c).isidentifier())]

    def _ipython_key_completions_(self) -> list[Hashable]:
        return list(self._columns)

    def __repr__(self) -> str:
        shown = ", ".join(f"{n} ({e.kind})" for n, e in list(self._columns.items())[:12])
        more = ", ..." if len(self._columns) > 12 else ""
        rows = "" if self._where is None else f" where {self._where}"
        return (
            f"PrivateFrame of [{shown}{more}]{rows}\n{self.budget!r}{self._fits}\n"
            f"{self._session.unit.neighbors}, {self._whose}{self._listed_keys}; {self._place}"
        )

    @property
    def _fits(self) -> str:
        """How many counts that name no price still fit; nothing where a count has to name limits of its own."""
        if self._session.unit.people and self._session.unit.rows is None:
            return ""
        times = self._session.default_counts
        return f"; a count for a share fits {times} time{'' if times == 1 else 's'}"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{_escape(n)}</td><td>{e.kind}</td><td>{_escape(_bounds_text(e.bounds(self._session.bounds)))}</td></tr>"
            for n, e in list(self._columns.items())[:30]
        )
        where = "" if self._where is None else f"<p>where <code>{_escape(self._where)}</code></p>"
        return (
            f"<div><b>PrivateFrame</b> ({self._session.unit.neighbors}, {escape(self._whose + self._listed_keys)})"
            f"<table><tr><th>column</th><th>kind</th><th>bounds</th></tr>{rows}</table>{where}"
            f"{self.budget._repr_html_()}<small>{escape(self._place)}</small></div>"
        )


def _is_pandas_col(value: object) -> bool:
    return type(value).__name__ == "Expression" and hasattr(value, "_eval_expression")


def _local(name: str, caller: Any) -> object:
    for scope in (caller.f_locals, caller.f_globals):
        if name in scope:
            return scope[name]
    raise KeyError(name)


def _escape(value: object) -> str:
    return str(value).replace("&", "&amp;").replace("<", "&lt;")


def _bounds_text(pair: tuple[float, float] | None) -> str:
    return "" if pair is None else f"{pair[0]:g} to {pair[1]:g}"


own_errors(PrivateFrame, pd.DataFrame)
