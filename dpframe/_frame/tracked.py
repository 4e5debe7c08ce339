"""The tracked frame without its verbs: a session, a selection of it and a mode; and how columns are made of it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Self, TypeVar, Unpack, cast

import numpy as np
import pandas as pd

from dpframe import _expr
from dpframe._answers import answer as _release
from dpframe._answers.estimate import IntEstimate
from dpframe._errors import BadType, Refused
from dpframe._expr import Expr
from dpframe._frame.found import Layout
from dpframe._frame.modes import Ask, RowsOnly
from dpframe._frame.selection import Selection, Taken
from dpframe._frame.spelling import priced
from dpframe._frame.verbs import agg_spec as _specs
from dpframe._frame.verbs.measure import Measures, grid
from dpframe._groups.keys import EVERY, Output
from dpframe._plans.plan import Plan
from dpframe._plans.price import Payment
from dpframe._refusals import Unprinted
from dpframe._session.batch import Batch
from dpframe._session.session import Session

Frame = TypeVar("Frame", bound="Tracked")


class Tracked(Measures, Unprinted):
    """A selection of a session, of which the functions in `_frame.verbs` make others, and questions."""

    def __init__(self, session: Session, selection: Selection | None = None, mode: Ask | None = None):
        selection = Selection(session, session.leaves) if selection is None else selection
        super().__init__(session, selection, Ask() if mode is None else mode)

    def _new(self, selection: Selection) -> Self:
        """What is asked about after a step."""
        return type(self)(self._session, selection, self._mode)

    def _where(self, condition: Expr) -> Self:
        """The rows where a condition holds."""
        return self._new(self._selection.filtered(condition))

    def _in(self, mode: Ask) -> Self:
        """The same selection, of which questions become something else."""
        return type(self)(self._session, self._selection, mode)

    def _planning(self, batch: Batch) -> Self:
        return self._in(self._mode.planning(batch))

    def _rowwise(self, advice: str) -> Self:
        """What a function is given that may only put expressions together."""
        return self._in(RowsOnly(advice))

    # Expressions ----------------------------------------------------------------------------------------------

    def _expression(self, value: Any) -> Expr:
        """An expression from a tracked column, ``pd.col`` or a function of the tracked frame."""
        if is_pandas_col(value):
            # Explaining, so that pd.col("x").mean() is refused and not a hidden charge.
            value = value._eval_expression(self._in(self._mode.explaining()))
            if not isinstance(value, Taken):
                raise Refused(
                    "this pd.col expression is no row-wise column: it may look across people. Release such a number "
                    "first, p.mean('age'), and use the answer in the expression."
                )
        elif callable(value) and not isinstance(value, Taken):
            value = value(
                self._rowwise(
                    "a function here returns an expression for one row, and asks nothing: release such a number first, with "
                    "its price, and use the answer in the expression."
                )
            )
        return self._selection.own(value) if isinstance(value, Taken) else as_expr(value)

    def _written(self, value: Any, caller: Any) -> tuple[Expr, Self]:
        """An expression as text or otherwise, and this frame with the @names of the text declared."""
        if not isinstance(value, str):
            return self._expression(value), self
        expr, selection = self._selection.parsed(value, caller)
        return expr, self._new(selection)

    # What Measures leaves to its kinds ------------------------------------------------------------------------

    @property
    def _selected(self) -> Sequence[Hashable] | None:
        return list(self._selection.columns)

    def _columns_for(self, column: Any, verb: str, numeric_only: bool) -> tuple[Sequence[Any], bool]:
        if column is not EVERY:
            return (column,), True
        return self._selection.numbers if numeric_only else list(self._selection.columns), False

    def _one_column(self, column: Any) -> Any:
        if column is EVERY:
            raise BadType("several quantiles are of one column: p.quantile('x', [0.25, 0.75]).")
        return column

    def _layout(self, labels: Sequence[Hashable], single: bool, choices: bool = False) -> Layout:
        if single:
            return lambda release, _: _release.scalar(release)
        index = pd.Index(list(labels), tupleize_cols=False)
        return lambda release, _: _release.across(release, index)

    def _aggregated(self, read: _specs.Spec, bounds: Any, payment: dict[str, Any]) -> Any:
        form, wanted = read
        if form in ("named", "list", "dict of lists"):
            return grid(self, wanted, bounds, payment, named=form == "named")
        outs = [self._selection.wanted(w.aggregate, w.column, bounds, w.label) for w in wanted]
        return self._ask_for(outs, self._layout([w.label for w in wanted], False), payment)

    @priced
    def count(
        self,
        column: Any = EVERY,
        **payment: Unpack[Payment],
    ) -> IntEstimate:
        """How many rows; of a column, how many non-null values. (pandas counts every column: name one.)

        Formal guarantee: epsilon-DP for its price; sensitivity 1 (docs/guarantees/statistics.md). The answer is
        a whole number, and may be negative when few rows meet much noise.

        >>> df = pd.DataFrame({"age": [30, 41, 55]})
        >>> p = df.dp.open(100)
        >>> type(p.count(epsilon=50)).__name__, p.count(epsilon=50) == 3
        ('IntEstimate', True)
        """
        if isinstance(column, float) and column not in self._selection.columns:
            raise BadType(f"count takes the name of a column. A price is a keyword: count(epsilon={column}).")
        out = Output("rows", "size") if column is EVERY else self._selection.output("count", column, None)
        return cast(IntEstimate, self._ask_for([out], lambda release, _: _release.scalar(release), payment))


def as_expr(value: Any) -> Expr:
    """A constant as an expression; data that is not tracked is refused."""
    if isinstance(value, Plan):
        raise Refused(
            "an expression looks at one row, so a release cannot stand in it. Ask it first, with its price, and use "
            "the number."
        )
    if isinstance(value, pd.Series | pd.DataFrame | pd.Index | np.ndarray):
        raise Refused(
            f"a {type(value).__name__} is data that dpframe has not tracked: it may look across people. Use tracked "
            "columns, or a constant."
        )
    return _expr.constant(value)


def is_pandas_col(value: object) -> bool:
    """Whether it is an expression of ``pd.col``."""
    return type(value).__name__ == "Expression" and hasattr(value, "_eval_expression")
