"""The tracked frame without its verbs: a session, a selection of it and a mode; and how columns are
made of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NoReturn, Self, TypeVar, cast

import numpy as np
import pandas as pd

from dpframe import _expr, _validate
from dpframe._errors import BadType, Refused, with_article
from dpframe._expr import Column, Constant, Expr
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
from dpframe._refusals import ADVICE, USE_ADVICE, Unprinted, find_use, with_names
from dpframe._session.batch import Batch

Frame = TypeVar("Frame", bound="Tracked")
# Ways in which a library takes the rows that it is handed.
_HANDED = ("len", "bool", "iteration", "number", "__array__")
# Of a column of each kind a condition, for a message.
_EXAMPLES = {
    "number": "> 1",
    "text": "== 'a'",
    "label": "== 'a'",
    "time": "> pd.Timestamp('2024-01-01')",
}
_MOST_EDGES = 50  # that a message lists
_MEASURED = ("number", "bool", "time", "duration")


class Tracked(Measurable, Unprinted):
    """A selection of a session, of which the functions in `_frame.verbs` make others, and
    questions."""

    _own_groups: Callable[
        ..., Any
    ]  # the groups of each person's own rows, where columns name the person
    _merge_people: Callable[..., Any]  # the rows of two tables of the same people
    _temporary = True  # df.dp or a step made it: a change of it is lost unless a variable names it

    def _refuse_use(self, what: str) -> NoReturn:
        """Refuse to hand out rows, in the names of the columns."""
        refuse_use(what, self._selection)

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
    with keys. ``target`` becomes another number, and ``group`` a column with two values. An
    invented name stays where no column fits, or one is called like that.
    """
    people = of.schema.unit.people
    others = {name: expr for name, expr in of.columns.items() if expr not in people}
    bounded = {name: expr.bounds(of.schema.bounds) is not None for name, expr in others.items()}
    numbers = [n for n, e in others.items() if e.kind in ("number", "bool")]
    numbers.sort(key=lambda name: (others[name].kind == "bool", not bounded[name]))
    x = [asked] if asked in others else numbers
    keyed = {n: of.declared_keys(e) for n, e in others.items() if isinstance(e, Column)}
    grouping = [n for n, keys in keyed.items() if keys]
    targets = [n for n in numbers if n not in x[:1]]
    two = [n for n, e in others.items() if e.kind == "bool" or len(keyed.get(n) or ()) == 2]
    fitting = {
        "x": x,
        "t": [n for n, e in others.items() if e.kind == "time"],
        "k": grouping,
        "target": targets,
        "group": two,
    }
    rest = [n for n in others if n not in (*x[:1], *targets)]
    pairs = {("x", "y"): [*x[:1], *targets, *rest], ("a", "b"): grouping}
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


def write_source(of: Selection, expr: Expr) -> str:
    """Return a column as a user writes it, for a message: ``p['note'].str.lower()``."""
    for name, known in of.columns.items():
        if known == expr:
            return f"p[{name!r}]"
    text, columns = str(expr), expr.columns()
    root = next(iter(columns)) if len(columns) == 1 else None
    if root is not None and root.name in of.columns and text.startswith(f"{root}."):
        return f"p[{root.name!r}]{text.removeprefix(str(root))}"
    return f"p.eval({text!r})"


def advise_parentheses(of: Selection, sign: str, operands: list[Expr]) -> str:
    """Return the message about ``&`` or ``|`` of a value that is no condition.

    Mostly a comparison beside it lacks its parentheses: ``p[p.age > 65 & p.smoker]``.
    """
    value = next(operand for operand in operands if operand.kind != "bool")
    # A constant on the right of & belongs to the comparison on its left.
    operands = sorted(operands, key=lambda operand: not isinstance(operand, Constant))
    shown = f" {sign} ".join(_write_condition(of, operand) for operand in operands)
    return (
        f"{sign} joins conditions, and {_expr.describe(value)} is not one. Python reads {sign} "
        "before a comparison, so "
        f"write parentheses: p[{shown}]."
    )


def _write_condition(of: Selection, operand: Expr) -> str:
    """Return an operand of ``&`` or ``|`` as the condition that was meant."""
    if operand.kind == "bool":
        return write_source(of, operand)
    if not isinstance(operand, Constant):
        return f"({write_source(of, operand)} {_EXAMPLES.get(operand.kind, '== 1')})"
    keyed = (n for n, e in of.columns.items() if operand.value in (of.values(e) or ()))
    alike = (n for n, e in of.columns.items() if e.kind == operand.kind)
    if operand.kind == "number":
        return use_own_names(f"(p['x'] > {operand})", of)
    return f"(p[{next(keyed, next(alike, 'x'))!r}] == {operand})"


def refuse_bin_count(of: Selection, expr: Expr, bins: int) -> NoReturn:
    """Refuse a number of bins that `cut` was given; bins between public bounds are offered."""
    known = expr.bounds(of.schema.bounds) if expr.kind == "number" else None
    advice = "Give the edges, such as [0, 18, 65, 110]."
    if known is not None and 0 < bins <= _MOST_EDGES:
        edges = [round(float(edge), 6) for edge in np.linspace(*known, bins + 1)]
        source = write_source(of, expr)
        advice = (
            f"Give the edges, such as those between the declared bounds: {source}.cut({edges}). A "
            "picture of them is "
            f"{source}.hist(bins={bins})."
        )
    raise BadType(f"a number of bins would look at the data. {advice}")


def refuse_use(what: str, of: Selection, asked: Hashable = None) -> NoReturn:
    """Refuse what would hand out rows, in the names of a user's columns.

    ``what`` is the way of `Unprinted` that was tried, and ``asked`` the column, if it was one. A
    library that draws, fits or tests gets the line that does the same privately.
    """
    use = find_use() if what in _HANDED else None
    if use == "picture" and asked in of.columns and of.columns[asked].kind not in _MEASURED:
        use = "picture of values"
    raise Refused(use_own_names(ADVICE[what] if use is None else USE_ADVICE[use], of, asked))


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
            f"{with_article(type(value).__name__)} is data that dpframe has not tracked: it may "
            "look across people. Use tracked "
            "columns, or a constant."
        )
    return _expr.constant(value)


def is_pandas_col(value: object) -> bool:
    """Return whether it is an expression of ``pd.col``."""
    return type(value).__name__ == "Expression" and hasattr(value, "_eval_expression")
