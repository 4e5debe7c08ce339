"""The tracked frame without its verbs: a session, a selection of it and a mode; and how columns are
made of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Self, TypeVar, cast

import numpy as np
import pandas as pd

from dpframe import _expr, _validate
from dpframe._errors import Refused
from dpframe._expr import Column, Expr
from dpframe._frame.selection import (
    AnswerMode,
    BoundColumn,
    RowMode,
    Selection,
    find_caller,
    selection_of,
)
from dpframe._frame.verbs.measure import Measurable
from dpframe._plans.plan import Plan
from dpframe._refusals import Unprinted, with_names
from dpframe._session.batch import Batch

Frame = TypeVar("Frame", bound="Tracked")


class Tracked(Measurable, Unprinted):
    """A selection of a session, of which the functions in `_frame.verbs` make others, and
    questions."""

    _own_groups: Callable[
        ..., Any
    ]  # the groups of each person's own rows, where columns name the person
    _merge_people: Callable[..., Any]  # the rows of two tables of the same people
    _temporary = True  # df.dp or a step made it: a change of it is lost unless a variable names it

    def _new(self, selection: Selection) -> Self:
        """Return the frame that a step makes."""
        return type(self)(self._session, selection, self._mode)

    def _copy(self) -> Self:
        """Return a frame that can be changed wherever it is kept."""
        frame = self._new(self._selection)
        vars(frame)["_temporary"] = False
        return frame

    def _become(self, selection: Selection) -> None:
        """Change this frame in place. Columns and frames that were taken before keep their own
        selection."""
        vars(self)["_selection"] = selection

    def _done(self, frame: Self, inplace: object) -> Self:
        """Return the frame of a step, or None where ``inplace=True`` makes it this one."""
        if not _validate.flag(inplace, "inplace"):
            return frame
        refuse_lost_change(self)
        self._become(selection_of(frame))
        return cast(Self, None)

    def _in(self, mode: AnswerMode) -> Self:
        """Return the same selection in another mode, where questions become something else."""
        return type(self)(self._session, self._selection, mode)

    def _planning(self, batch: Batch[Any]) -> Self:
        return self._in(self._mode.planning(batch))

    def _rowwise(self, advice: str) -> Self:
        """Return the frame for a function that may only put expressions together."""
        return self._in(RowMode(advice))

    # Expressions ----------------------------------------------------------------------------------------------

    def _expression(self, value: Any) -> Expr:
        """Return what a user gives for a column as an expression of this frame.

        It is a tracked column, ``pd.col``, a function of the tracked frame, or a constant.
        """
        if isinstance(value, BoundColumn):
            return self._selection.own(value)
        if is_pandas_col(value):
            # Explaining, so that pd.col("x").mean() is refused and not a hidden charge.
            value = value._eval_expression(self._in(self._mode.explaining()))
            if not isinstance(value, BoundColumn):
                raise Refused(
                    "this pd.col expression is no row-wise column: it may look across people. Release such a number "
                    "first, p.mean('age'), and use the answer in the expression."
                )
        elif callable(value):
            value = value(
                self._rowwise(
                    "a function here returns an expression for one row, and asks nothing: release such a number first, with "
                    "its price, and use the answer in the expression."
                )
            )
        return self._selection.own(value) if isinstance(value, BoundColumn) else as_expr(value)


def with_selection(frame: Frame, selection: Selection) -> Frame:
    """Return a frame of the same session about another selection."""
    return frame._new(selection)


def keep_rows_where(frame: Frame, condition: Expr) -> Frame:
    """Return the rows of a frame where a condition holds."""
    return with_selection(frame, selection_of(frame).filter_rows(condition))


def read_expression(frame: Tracked, value: object) -> Expr:
    """Return what a user gives for a column as an expression of the frame."""
    return frame._expression(value)


def read_expression_or_text(frame: Frame, value: object, caller: object) -> tuple[Expr, Frame]:
    """Return an expression that is given as text or otherwise, and the frame with its @names.

    ``caller`` is the Python frame with the variables that @names stand for.
    """
    if not isinstance(value, str):
        return read_expression(frame, value), frame
    expr, selection = selection_of(frame).parse_text(value, caller)
    return expr, with_selection(frame, selection)


def refuse_questions(frame: Frame, advice: str) -> Frame:
    """Return the frame for a function that may only put expressions together.

    A question asked of it is refused with the advice.
    """
    return frame._rowwise(advice)


def use_own_names(text: str, of: Selection, asked: Hashable = None) -> str:
    """Put the names of a user's columns into a message, in place of invented ones such as
    ``p['x']``.

    ``of`` is the selection that the message is about.

    ``x`` becomes the column ``asked`` about, or else a number, ``t`` a time, and ``k`` a column
    with keys. An invented name stays where no column fits, or one is called like that.
    """
    people = of.schema.unit.people
    others = {name: expr for name, expr in of.columns.items() if expr not in people}
    bounded = {name: expr.bounds(of.schema.bounds) is not None for name, expr in others.items()}
    numbers = [n for n, e in others.items() if e.kind in ("number", "bool")]
    numbers.sort(key=lambda name: not bounded[name])
    x = [asked] if asked in others else numbers
    keyed = {n: of.declared_keys(e) for n, e in others.items() if isinstance(e, Column)}
    grouping = [n for n, keys in keyed.items() if keys]
    fitting = {"x": x, "t": [n for n, e in others.items() if e.kind == "time"], "k": grouping}
    pairs = {("x", "y"): [*dict.fromkeys([*x[:1], *numbers, *others])], ("a", "b"): grouping}
    names: dict[str, Any] = {
        invented: known[0] for invented, known in fitting.items() if known and invented not in known
    }
    names |= {
        str([*pair]): known[:2]
        for pair, known in pairs.items()
        if len(known) > 1 and not others.keys() >= {*pair}
    }
    # Of some rows no column says whose they are.
    if people and {*people} <= {*of.schema.leaves.values(), *of.columns.values()}:
        names["patient_id"] = _person(of)
    keys = keyed["k" if "k" in grouping else grouping[0]] if grouping else None
    if keys and isinstance(keys[0], str | bool | int | float):
        text = text.replace("'k'] == 1", f"'k'] == {keys[0]!r}")
    return with_names(text, names)


def person_of(of: Selection) -> str:
    """Return what groups each person's own rows, as it is written: ``'id'``, ``['clinic', 'id']``."""
    return repr(_person(of))


def _person(of: Selection) -> Hashable | list[Hashable]:
    people = of.schema.unit.people
    shown = {expr: name for name, expr in of.columns.items() if expr in people}
    names = [shown.get(leaf, leaf.name) for leaf in people]
    return names[0] if len(names) == 1 else names


def refuse_lost_change(frame: Tracked, key: object = None) -> None:
    """Refuse to change a frame in place that no variable names, since the change would be lost.

    ``df.dp["x"] = ...`` and ``p.query(...)["x"] = ...`` change a frame that is gone after the line.
    """
    if not frame._temporary:
        return
    caller = find_caller()
    for variables in (caller.f_locals, caller.f_globals):
        if any(value is frame for value in list(variables.values())):
            return
    name = key if isinstance(key, str) and key.isidentifier() else "name"
    raise Refused(
        "a change of this frame would be lost: df.dp and every step make a new frame, and this one "
        f"has no name. Give it a name first, such as p = df.dp, and then p[{name!r}] = ...; or "
        f"keep what a step returns: p = p.assign({name}=...). A frame that an attribute or a list "
        "holds is changed after .copy()."
    )


def as_expr(value: object) -> Expr:
    """Return a constant as an expression; data that is not tracked is refused."""
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
    """Return whether it is an expression of ``pd.col``."""
    return type(value).__name__ == "Expression" and hasattr(value, "_eval_expression")
