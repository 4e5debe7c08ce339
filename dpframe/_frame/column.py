"""A tracked column: an expression of one row, with pandas' operators and person-wise methods."""

# mypy: disable-error-code="empty-body"
# The work of a release is that of the verb of frames: what is written here is what comes back, and the docstring.

from __future__ import annotations

import builtins
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Generic, NoReturn, Self, TypeVar, Unpack, cast

import pandas as pd

from dpframe import _expr, _validate
from dpframe._answers import answer as _release
from dpframe._answers.estimate import FloatEstimate, correlation, scalar
from dpframe._errors import BadType, NotOffered, Refused, did_you_mean, with_article
from dpframe._expr import Expr
from dpframe._frame.columns import steps
from dpframe._frame.columns.hooks import call_pandas_function
from dpframe._frame.columns.lookups import look_up, replace_values
from dpframe._frame.columns.numpy import apply_ufunc, call_numpy
from dpframe._frame.columns.operators import (
    OPERATORS,
    OperatorMethod,
    OperatorMethods,
    column_method,
)
from dpframe._frame.columns.parts import CategoryParts, Parts, TextParts, TimeParts
from dpframe._frame.columns.traced import trace_function
from dpframe._frame.selection import BoundColumn, selection_of
from dpframe._frame.signatures import verb
from dpframe._frame.tracked import (
    Tracked,
    advise_parentheses,
    keep_rows_where,
    read_expression,
    refuse_bin_count,
    refuse_use,
    use_own_names,
    write_source,
)
from dpframe._frame.verbs import summaries
from dpframe._frame.verbs.agg import read_spec, split_agg_keywords
from dpframe._frame.verbs.measure import ask_outputs
from dpframe._frame.verbs.pictures import Plots
from dpframe._plans.price import Payment
from dpframe._questions.question import Release
from dpframe._refusals import ADVICE

C = TypeVar("C", bound="PrivateColumn")
_MEASURED = ("number", "bool", "time", "duration")
_EXPLODE = "a column is exploded in its frame, where it makes rows: "
_EXPLODE_MADE = "p.assign(w=p['name'].str.split()).explode('w')."
_JOINING = {"and": "&", "or": "|", "xor": "^"}  # operators of conditions, and their signs


class PrivateColumn(OperatorMethods, BoundColumn):
    """``p["x"]``: comparisons and arithmetic make other columns; `mean` and its like are releases
    of the frame."""

    _frame: Tracked
    __pandas_function__ = call_pandas_function  # pd.cut(p["age"], ...) asks for it

    @property
    def name(self) -> Hashable:
        """The column's name, which an answer takes."""
        return self._name

    def _refuse_use(self, what: builtins.str) -> NoReturn:
        """Refuse to hand out cells, in the names of the columns."""
        refuse_use(what, selection_of(self._frame), self._name)

    def __getitem__(self, key: object) -> Self:
        """Return the column in the rows where a condition on its own frame holds: ``p["x"][p["age"]
        > 30]``."""
        if not isinstance(key, PrivateColumn):
            raise Refused(
                use_own_names(
                    f"rows cannot be chosen by {with_article(type(key).__name__)}: it may look "
                    "across people. Build the "
                    "condition from the tracked columns: p['x'][p['x'] > 30].",
                    selection_of(self._frame),
                    self._name,
                )
            )
        frame = keep_rows_where(self._frame, read_expression(self._frame, key))
        return cast(Self, PrivateColumn(frame, self._expr, self._name))

    @property
    def loc(self) -> _Rows[Self]:
        """The column in the rows where a condition holds: ``p["x"].loc[p["age"] > 30]``."""
        return _Rows(self)

    def _new(self, expr: Expr, name: object = ...) -> Self:
        return cast(Self, PrivateColumn(self._frame, expr, self._name if name is ... else name))

    def _other(self, other: object) -> Expr:
        return read_expression(self._frame, other)

    def _operate(self, name: builtins.str, *others: object, swapped: bool = False) -> Self:
        """Return the column that an operator makes of this one and the other operands."""
        operands = [self._expr, *(read_expression(self._frame, value) for value in others)]
        if name in _JOINING and any(operand.kind != "bool" for operand in operands):
            raise BadType(advise_parentheses(selection_of(self._frame), _JOINING[name], operands))
        return self._new(OPERATORS[name].build(*(reversed(operands) if swapped else operands)))

    def __array_ufunc__(self, ufunc: Any, method: Any, *inputs: Any, **options: Any) -> Self:
        """Return an expression of one row for ``np.log(p["x"])`` or ``np.float64(2) * p["x"]``.

        An array beside it is refused.
        """
        return cast(Self, apply_ufunc(self, ufunc, method, inputs, options))

    def __array_function__(self, function: Any, types: object, args: Any, words: Any) -> Any:
        """``np.where(p["x"] > 1, "a", "b")``: an expression of one row, or the release that the
        column has by this name."""
        return call_numpy(self, function, args, words)

    def __round__(self, decimals: int = 0) -> Self:
        return self.round(decimals)

    # Person-wise methods --------------------------------------------------------------------------------------

    def isin(self, values: Iterable[object]) -> Self:
        """Return a column that is true where the value is one of some public values."""
        if isinstance(values, pd.Series | pd.DataFrame):
            raise Refused(
                "isin takes public values, and a Series may hold people's. Write them out, or list(...) them."
            )
        return self._new(_expr.is_in(self._expr, values))

    def between(self, left: object, right: object, inclusive: str = "both") -> Self:
        """Return a column that is true where the value lies between two others.

        Each end is a constant, or the value of another column in the same row.
        """
        return self._new(
            _expr.between(self._expr, self._other(left), self._other(right), inclusive)
        )

    def isna(self) -> Self:
        """Return true where the cell is null: None, NaN, NA and NaT are all nulls."""
        return self._new(_expr.is_null(self._expr))

    def notna(self) -> Self:
        """Return true where the cell is not null."""
        return ~self.isna()

    isnull = isna
    notnull = notna

    def fillna(self, value: object) -> Self:
        """Put a constant in the place of nulls."""
        return self._new(_expr.fill(self._expr, value))

    def clip(self, lower: float | None = None, upper: float | None = None) -> Self:
        """Move numbers into [lower, upper]; a null stays null."""
        return self._new(_expr.clip(self._expr, lower, upper))

    def abs(self) -> Self:
        """Return the values without their signs."""
        return self._new(_expr.magnitude(self._expr))

    def round(self, decimals: int = 0) -> Self:
        """Round the values to some decimals, half to even."""
        return self._new(_expr.round_to(self._expr, decimals))

    def astype(self, dtype: object) -> Self:
        """Return the values as float, int, bool or str.

        A value that cannot be converted becomes null, without an error.
        """
        return self._new(_expr.cast(self._expr, dtype))

    def map(self, mapping: object, na_action: object = None, *, default: object = None) -> Self:
        """Look the values up in a public dict or Series.

        A value that it does not list becomes null, or the ``default``, as for a ``defaultdict``. A
        function of one value is called with a placeholder that records what is done to it, so that
        it becomes an expression. Branches are taken both ways.

        Formal guarantee: an expression of one row. What cannot be written down (a function that
        looks its value up, asks for its length, counts, draws or prints) is refused before any row
        is read.

        >>> df = pd.DataFrame({"age": [30, 70, 80]})
        >>> p = df.dp.open(1000)
        >>> p.groupby(p["age"].map(lambda a: "old" if a >= 65 else "young")).size(epsilon=80)
        age
        old      2 ± 0
        young    1 ± 0
        dtype: int64
        """
        ignored = _validate.among(na_action, ("ignore",))
        if na_action is not None and not ignored:
            raise BadType("na_action is None or 'ignore'.")
        if isinstance(mapping, Mapping | pd.Series):
            return self._new(look_up(self, mapping, default, ignored))
        if not callable(mapping) or default is not None:
            raise BadType("map takes a public dict or Series, or a function of one value.")
        found = trace_function(mapping, self._expr)
        if ignored and self._expr.nullable:
            found = _expr.choose(_expr.is_null(self._expr), None, found)
        return self._new(found)

    def apply(self, func: object, args: object = (), **words: object) -> Self:
        """Apply a function of one value, as `map` does, with more arguments."""
        if isinstance(func, str) or not callable(func) or not isinstance(args, tuple | list):
            raise BadType("apply takes a function of one value: p['x'].apply(lambda x: x / 2).")
        return self._new(trace_function(func, self._expr, tuple(args), words))

    def replace(
        self, to_replace: object = None, value: object = ..., *, regex: object = False
    ) -> Self:
        """Replace some values by others: ``replace({"F": "female"})``, ``replace(["a", "b"],
        "c")``. All else stays what it is. Groups have the new values for keys. Values of another
        kind, ``{"F": 0, "M": 1}``, need all declared keys listed; all other cells are null then."""
        return self._new(replace_values(self, to_replace, value, regex))

    def where(self, cond: object, other: object = None) -> Self:
        """Keep the value where a condition holds, and else take another one: a constant, a tracked
        column, or null.

        Bounds are those of both. Where both are constants or have keys, groups need no keys.

        >>> df = pd.DataFrame({"state": ["CA", "NY", "TX"]})
        >>> p = df.dp.open(1000)
        >>> p["state"].where(p["state"] == "CA", "elsewhere").value_counts(keys=["CA", "elsewhere"], epsilon=800)
        state
        elsewhere    2 ± 0
        CA           1 ± 0
        Name: count, dtype: int64
        """
        return self._choose(cond, self, other)

    def mask(self, cond: object, other: object = None) -> Self:
        """Take another value where a condition holds, and else keep the value: `where` with the
        condition negated."""
        return self._choose(cond, other, self)

    def case_when(self, caselist: object) -> Self:
        """Take the value of the first condition that holds, and else keep the column's own value.

        ``caselist`` lists pairs: ``[(condition, value), ...]``.
        """
        if not isinstance(caselist, list) or not all(
            isinstance(c, tuple) and len(c) == 2 for c in caselist
        ):
            raise BadType(
                "case_when takes a list of pairs: [(p['x'] > 1, 'a'), (p['x'] > 0, 'b')]."
            )
        found = self
        for cond, value in reversed(caselist):
            found = found.mask(cond, value)
        return found

    def _choose(self, cond: object, x: object, y: object) -> Self:
        sides = [_expr.constant(None, null=True) if _is_null(v) else self._other(v) for v in (x, y)]
        return self._new(_expr.choose(self._other(cond), *sides))

    def cut(self, bins: object, *, labels: object = None, right: bool = True) -> Self:
        """Return the interval between given edges that each value is in, as ``pd.cut``; outside
        them null. Groups need no keys then.

        >>> df = pd.DataFrame({"age": [30, 41, 85]})
        >>> p = df.dp.open(100)
        >>> p.assign(old=p["age"].cut([0, 65, 110], labels=["no", "yes"])).groupby("old").size(epsilon=80)
        old
        no     2 ± 0
        yes    1 ± 0
        dtype: int64
        """
        if isinstance(bins, int) and not isinstance(bins, bool):
            refuse_bin_count(selection_of(self._frame), self._expr, bins)
        return self._new(_expr.cut(self._expr, bins, labels, right))

    @property
    def str(self) -> TextParts:
        """String methods of one cell: len, lower, upper, strip, startswith, endswith, contains,
        slice, ...

        Of a column of objects every cell that is no text gives a null, also a list: its dtype does
        not tell, and an error would say what is in the cells. Lists have `PrivateFrame.explode`.
        """
        return TextParts(self)

    @property
    def cat(self) -> CategoryParts:
        """Codes and names of the declared keys of a column: codes, categories,
        rename_categories."""
        return CategoryParts(self)

    @property
    def dt(self) -> TimeParts:
        """Parts of a date: year, month, day, hour, dayofweek, ...; of a duration: days, seconds,
        total_seconds().

        What follows from a day (years, months, days, periods, weeks) has keys by itself where the
        range of the times is declared.

        >>> df = pd.DataFrame({"came": pd.to_datetime(["2025-01-30", "2025-02-01"]), "left": pd.to_datetime(["2025-02-02"] * 2)})
        >>> p = df.dp.open(1000, bounds={"came": ("2025-01-01", "2025-02-28")})
        >>> p.groupby(p["came"].dt.to_period("M")).size(epsilon=80)
        came
        2025-01    1 ± 0
        2025-02    1 ± 0
        Freq: M, dtype: int64
        >>> print(round((p["left"] - p["came"]).dt.days.sum((0, 30), epsilon=800)))
        4
        """
        return TimeParts(self)

    # Methods that pandas has beside the operators ------------------------------------------------

    add: OperatorMethod = column_method("add")
    sub: OperatorMethod = column_method("sub")
    mul: OperatorMethod = column_method("mul")
    div: OperatorMethod = column_method("div")
    truediv: OperatorMethod = column_method("truediv")
    floordiv: OperatorMethod = column_method("floordiv")
    mod: OperatorMethod = column_method("mod")
    pow: OperatorMethod = column_method("pow")
    rsub: OperatorMethod = column_method("rsub")
    rdiv: OperatorMethod = column_method("rdiv")
    eq: OperatorMethod = column_method("eq")
    ne: OperatorMethod = column_method("ne")
    lt: OperatorMethod = column_method("lt")
    le: OperatorMethod = column_method("le")
    gt: OperatorMethod = column_method("gt")
    ge: OperatorMethod = column_method("ge")

    @property
    def dtype(self) -> Any:
        """The dtype, without the categories of a categorical one: these are cells of the data."""
        return steps.dtype(self)

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise Refused(
            "a column that was taken is changed alone, which pandas does not do either: set it in its frame, "
            "p.loc[p['x'] > 1, 'x'] = 0."
        )

    # Releases -------------------------------------------------------------------------------------------------

    @verb
    def agg(self, spec: object = None, /, *, bounds: object = None, **outputs: object) -> Any:
        """Ask a number by its name, or several in one release: ``agg(["mean", "std"])``,
        ``agg(m="mean")``, which return a Series.

        >>> df = pd.DataFrame({"age": [30, 40]})
        >>> p = df.dp.open(1e3, bounds={"age": (0, 110)})
        >>> p["age"].agg(["mean", "count"], epsilon=900).round()
        mean     35.0
        count     2.0
        Name: age, dtype: float64
        """
        spec, named, payment = split_agg_keywords(spec, outputs, bounds)
        form, wanted = read_spec(spec, named, [self.name], single=True)
        labels = [w.aggregate if form == "list" else w.label for w in wanted]
        outs = tuple(
            selection_of(self._frame).make_output(w.aggregate, self, bounds, label)
            for w, label in zip(wanted, labels, strict=True)
        )
        index = pd.Index(labels, tupleize_cols=False)

        def layout(release: Release, _: object) -> Any:
            return scalar(release) if form == "one" else _release.across(release, index, self.name)

        return ask_outputs(self._frame, outs, payment, layout)

    aggregate = agg

    @verb
    def cov(
        self,
        other: PrivateColumn,
        min_periods: None = None,
        ddof: int = 1,
        *,
        bounds: object = None,
        **payment: Unpack[Payment],
    ) -> FloatEstimate:
        """Take the covariance with another column; see `PrivateFrame.cov`.

        ``bounds`` are by column, ``{"age": (0, 110)}``.
        """
        outs, _ = summaries.pairs_of(
            selection_of(self._frame), [self, other], min_periods, ddof, bounds
        )
        return cast(FloatEstimate, ask_outputs(self._frame, [outs[1]], payment, single=True))

    @verb
    def corr(
        self,
        other: PrivateColumn,
        method: object = "pearson",
        min_periods: None = None,
        *,
        bounds: object = None,
        **payment: Unpack[Payment],
    ) -> FloatEstimate:
        """Take the correlation with another column: the question of `PrivateFrame.corr` for two
        columns.

        >>> df = pd.DataFrame({"a": [1.0, 2.0, 3.0] * 500, "b": [6.0, 4.0, 2.0] * 500})
        >>> p = df.dp.open(1e3, bounds={"a": (0, 4), "b": (0, 8)})
        >>> print(round(p["a"].corr(p["b"], epsilon=900), 1))
        -1.0
        """
        summaries.check_correlation(method, payment)
        outs, _ = summaries.pairs_of(
            selection_of(self._frame), [self, other], min_periods, 1, bounds
        )
        return cast(
            FloatEstimate, ask_outputs(self._frame, outs, payment, lambda r, _: correlation(r))
        )

    @property
    def plot(self) -> Plots:
        """Pictures of releases: ``p["age"].plot.hist()``, ``p["age"].plot.box()``."""
        return Plots(self._frame, self)

    def _find_unknown(self, name: Any) -> NoReturn:
        """Refuse a verb that columns do not have."""
        if name.startswith("_"):
            raise AttributeError(name)
        close = did_you_mean(name, [n for n in dir(type(self)) if not n.startswith("_")], "It has")
        unknown = f"a tracked column has no {name!r}.{close if 'Did you' in close else ''}"
        if name in ("explode", "nlargest", "nsmallest") and self._expr.kind not in _MEASURED:
            raise NotOffered(self._advise_texts(name))
        if hasattr(pd.Series, name):
            unknown = f"Series.{name} has no private counterpart in this version. dir(p['x']) tells what there is."
        raise NotOffered(
            use_own_names(ADVICE.get(name, unknown), selection_of(self._frame), self._name)
        )

    def _advise_texts(self, name: builtins.str) -> builtins.str:
        """Return the message about a verb that texts have in another form: `value_counts` or
        `explode` of a frame."""
        selection = selection_of(self._frame)
        source = write_source(selection, self._expr)
        if name == "explode":
            if self._expr.kind == "other" and not _expr.is_split(self._expr):
                return f"{_EXPLODE}explode({self._name!r}) of the frame."
            made = source if _expr.is_split(self._expr) else f"{source}.str.split()"
            return _EXPLODE + _EXPLODE_MADE.replace("p['name'].str.split()", made)
        which, end = ("largest", "head") if name == "nlargest" else ("smallest", "tail")
        return (
            f"{name} would choose rows by comparing people. The values with the {which} counts are "
            f"{source}.value_counts().{end}(10)."
        )

    def __dir__(self) -> Iterable[builtins.str]:
        """List the attributes of the column, for completion.

        ``.str``, ``.dt`` and ``.cat`` are listed only where the values have them, as in pandas.
        """
        parts: tuple[Parts, ...] = self.str, self.dt, self.cat
        other = {
            part._accessor.removeprefix(".") for part in parts if self._expr.kind not in part._kinds
        }
        return [name for name in super().__dir__() if name not in other]

    def __repr__(self) -> builtins.str:
        return f"PrivateColumn {self._expr} ({self._expr.kind})"


class _Rows(Generic[C]):
    """``.loc`` of a column."""

    def __init__(self, column: C):
        self._column = column

    def __getitem__(self, key: object) -> C:
        return self._column[
            key(self._column) if callable(key) and not isinstance(key, BoundColumn) else key
        ]


def _is_null(value: object) -> bool:
    """Return whether a constant is one of the nulls."""
    return (
        value is None
        or value is pd.NA
        or value is pd.NaT
        or (isinstance(value, float) and value != value)
    )
