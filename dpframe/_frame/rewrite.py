"""The user's own line with ``.dp`` moved to the left of the chain, for the message that refuses it.

What it says must be answered when it is typed. So the chain is followed step by step: a step that
is not offered, a condition that looks across rows, and data that is not tracked have no such line.
"""

from __future__ import annotations

import ast
import copy
import linecache
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from types import FrameType
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

State = Literal["frame", "column", "groups", "people", "answer"]

# What becomes of a tracked frame; of all else that it has, an answer.
_SAME_ROWS = {
    "assign",
    "rename",
    "drop",
    "fillna",
    "clip",
    "astype",
    "isin",
    "abs",
    "round",
    "filter",
    "select_dtypes",
}
_SAME_ROWS |= {"reindex", "add_prefix", "add_suffix", "set_axis", "set_index", "reset_index"}
_NEW_ROWS = {"explode", "melt", "merge", "pipe"}
OF_PEOPLE = {"drop_duplicates", "duplicated"}  # steps that need to know whose each row is
_FRAMES = {*_SAME_ROWS, *_NEW_ROWS, "query", "dropna", "drop_duplicates", "sort_values"}
_GROUPS = {"groupby", "resample"}
_NULLS = {"isna", "notna", "isnull", "notnull"}
_ROWWISE = {*_NULLS, "isin", "between", "fillna", "clip", "abs", "round", "astype", "map", "cut"}
_IDLE = {"copy", "sort_values", "sort_index"}  # steps that change no answer
LOOKS = {
    "head",
    "tail",
    "sample",
    "info",
    "iloc",
    "shape",
    "dtypes",
}  # which show made-up rows or the schema
_DATA = (pd.Series, pd.DataFrame, pd.Index, np.ndarray)


class Offers(NamedTuple):
    """What a rewritten line may use: the columns of the session, and attributes by state."""

    columns: Collection[Any]
    frame: Collection[str]
    column: Collection[str]
    groups: Collection[str]
    text: Collection[str]
    date: Collection[str]
    people: Collection[str] = ()  # of groups of each person's own rows,
    unit: Collection[Any] = ()  # which are made by these columns


class Advice(NamedTuple):
    """A line that is answered when it is typed; or else the first step that has no place after
    .dp."""

    line: str | None = None
    step: str | None = None
    ending: str = ""  # what is asked of the frame, from the dot on,
    scope: Mapping[str, Any] = {}  # and the variables that it may name


class _Lost(Exception):
    """A chain that no line of this package says; ``step`` is what is not offered, if that is
    why."""

    def __init__(self, step: str | None = None):
        self.step = step


class _Steps:
    """One chain that starts from a name or from an expression of columns, as it would stand after
    ``.dp``."""

    def __init__(self, root: str, offers: Offers, scope: Mapping[str, Any]):
        self.root, self.offers, self.scope = root, offers, scope
        self.state: State = "frame"
        self.filtered = False
        self.single = False  # whether groups are of one column
        self.free = True  # so far it builds expressions only, and may be tried

    # Expressions of one row -----------------------------------------------------------------------------------

    def tracked(self, node: ast.expr) -> ast.expr:
        """A condition or a new column that was made of the frame's columns, made of the tracked
        ones."""
        if not _mentions(node, self.root):
            if isinstance(node, ast.Lambda) and len(node.args.args) == 1:
                name = node.args.args[0].arg
                inner = _Steps(name, self.offers, self.scope)
                made = ast.Lambda(node.args, inner.row(node.body, name))
                self.free &= inner.free
                return made
            return self.public(node)
        if not self.filtered:
            return self.row(node, f"{self.root}.dp")
        arguments = ast.arguments([], [ast.arg("d")], None, [], [], None, [])
        return ast.Lambda(arguments, self.row(node, "d"))

    def public(self, node: ast.expr) -> ast.expr:
        """What is not made of the frame: constants and names, but no data."""
        for one in ast.walk(node):
            if isinstance(one, ast.Name) and isinstance(self.scope.get(one.id), _DATA):
                raise _Lost
            self.free &= not isinstance(one, ast.Call) or _asks_col(one)
        return node

    def row(self, node: ast.expr, frame: str) -> ast.expr:
        if not _mentions(node, self.root):
            return self.public(node)
        if isinstance(node, ast.Compare):
            sides = [self.row(node.left, frame), *(self.row(c, frame) for c in node.comparators)]
            if len(sides) == 2:
                return ast.Compare(sides[0], node.ops, sides[1:])
        if isinstance(node, ast.BinOp):
            return ast.BinOp(self.row(node.left, frame), node.op, self.row(node.right, frame))
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            return ast.UnaryOp(node.op, self.row(node.operand, frame))
        return self.column(node, frame)

    def column(self, node: ast.expr, frame: str) -> ast.expr:
        """A column of the frame, and what is made of its cells."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            inner, name = node.func.value, node.func.attr
            part = isinstance(inner, ast.Attribute) and inner.attr in ("str", "dt")
            known = self._parts(inner) if part else _ROWWISE & set(self.offers.column)
            if name not in known:
                raise _Lost
            keywords = [ast.keyword(k.arg, self.row(k.value, frame)) for k in node.keywords]
            func = ast.Attribute(self.column(inner, frame), name, ast.Load())
            return ast.Call(func, [self.row(a, frame) for a in node.args], keywords)
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == self.root:
                return _item(frame, self._known(node.attr))
            if node.attr in ("str", "dt"):
                return ast.Attribute(self.column(node.value, frame), node.attr, ast.Load())
            if isinstance(node.value, ast.Attribute) and node.value.attr == "dt":
                if node.attr not in self._parts(node.value):
                    raise _Lost
                return ast.Attribute(self.column(node.value, frame), node.attr, ast.Load())
        if isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Name) and node.value.id == self.root:
                if isinstance(node.slice, ast.Constant):
                    return _item(frame, self._known(node.slice.value))
            elif isinstance(node.value, ast.Attribute) and node.value.attr == "str":
                return ast.Subscript(
                    self.column(node.value, frame), self.public(node.slice), ast.Load()
                )
        raise _Lost

    def _parts(self, node: ast.expr) -> Collection[str]:
        return (
            self.offers.text
            if isinstance(node, ast.Attribute) and node.attr == "str"
            else self.offers.date
        )

    def _known(self, name: Any) -> Any:
        if name not in self.offers.columns:
            raise _Lost
        return name

    # Steps ----------------------------------------------------------------------------------------------------

    def item(self, base: ast.expr, key: ast.expr) -> ast.expr:
        if self.state == "answer":
            return ast.Subscript(base, key, ast.Load())
        several = isinstance(key, ast.List) and all(isinstance(e, ast.Constant) for e in key.elts)
        name = isinstance(key, ast.Constant) or isinstance(
            self.scope.get(key.id) if isinstance(key, ast.Name) else None, str
        )
        if self.state in ("groups", "people") and (several or name):
            self.single = not several
            return ast.Subscript(base, key, ast.Load())
        if self.state == "frame" and (several or name):
            self.state = "frame" if several else "column"
            return ast.Subscript(base, key, ast.Load())
        if self.state in ("groups", "people") or isinstance(key, ast.Slice | ast.Tuple | ast.List):
            raise _Lost
        if not _mentions(key, self.root) and not isinstance(key, ast.Lambda) and not _asks_col(key):
            raise _Lost  # what it holds cannot be seen: it may be data
        condition = self.tracked(key)
        if self.state == "column" and isinstance(condition, ast.Lambda):
            raise _Lost
        self.filtered = True
        return ast.Subscript(base, condition, ast.Load())

    def located(self, base: ast.expr, key: ast.expr) -> ast.expr:
        """``.loc[rows, columns]``."""
        rows, columns = (
            key.elts if isinstance(key, ast.Tuple) and len(key.elts) == 2 else (key, None)
        )
        if isinstance(rows, ast.Slice) and (rows.lower or rows.upper or rows.step):
            raise _Lost("loc")
        if not isinstance(rows, ast.Slice):
            if isinstance(rows, ast.Constant | ast.List):
                raise _Lost("loc")
            base = self.item(base, rows)
        if isinstance(columns, ast.Slice):
            columns = None if not (columns.lower or columns.upper or columns.step) else _lost("loc")
        return base if columns is None else self.item(base, columns)

    def call(self, base: ast.expr, name: str, node: ast.Call) -> ast.expr:
        args, keywords = node.args, node.keywords
        # Within a person the order of rows counts.
        idle = name != "sort_values" or not set(self.offers.frame) >= OF_PEOPLE
        if self.state == "frame" and name in _IDLE and idle:
            return base
        self._offered(name)
        if name == "open":
            raise _Lost  # one budget is open
        if self.state == "frame" and name == "assign":
            keywords = [ast.keyword(k.arg, self.tracked(k.value)) for k in keywords]
        elif self.state == "column" or name == "groupby":
            args = [self._beside(a) for a in args]
            keywords = [ast.keyword(k.arg, self._beside(k.value)) for k in keywords]
        elif any(_mentions(a, self.root) for a in [*args, *(k.value for k in keywords)]):
            raise _Lost
        if name in _NEW_ROWS or any(
            isinstance(one, ast.Call) for a in node.args for one in ast.walk(a)
        ):
            self.free = False
        self._after(name)
        if name == "groupby" and len(args) == 1 and not keywords and self._names_people(args[0]):
            self.state, self.single = "people", False
        return ast.Call(ast.Attribute(base, name, ast.Load()), args, keywords)

    def _names_people(self, node: ast.expr) -> bool:
        """Whether the columns that are grouped by are those that name a person."""
        names = node.elts if isinstance(node, ast.List) else [node]
        known = [one.value for one in names if isinstance(one, ast.Constant)]
        return (
            bool(self.offers.unit)
            and len(known) == len(names)
            and set(known) == set(self.offers.unit)
        )

    def _beside(self, node: ast.expr) -> ast.expr:
        """A column of the same rows, as an argument."""
        if not _mentions(node, self.root):
            return node
        if self.filtered:
            raise _Lost
        return self.row(node, f"{self.root}.dp")

    def attribute(self, base: ast.expr, name: str) -> ast.expr:
        if (
            self.state in ("frame", "groups", "people")
            and name in self.offers.columns
            and name not in self.offers.frame
        ):
            self.state, self.single = "column" if self.state == "frame" else self.state, True
            return ast.Subscript(base, ast.Constant(name), ast.Load())
        if self.state != "answer":
            self._offered(name)
            self._after(name)
        return ast.Attribute(base, name, ast.Load())

    def _offered(self, name: str) -> None:
        if self.state in ("frame", "column") and name in LOOKS:
            raise _Lost(name)  # what follows would be of rows that are made up
        if self.state != "answer" and name not in getattr(self.offers, self.state):
            raise _Lost(name)

    def _after(self, name: str) -> None:
        if self.state == "frame":
            self.state = "frame" if name in _FRAMES else "groups" if name in _GROUPS else "answer"
            self.filtered |= self.state == "frame" and name not in _SAME_ROWS
        elif self.state == "people":
            self.state = "column" if self.single or name in ("size", "cumcount") else "frame"
            self.filtered = True
        elif self.state == "groups" or name not in _ROWWISE:
            self.state = "answer"


def _lost(step: str) -> ast.expr:
    raise _Lost(step)


def _item(frame: str, name: Any) -> ast.expr:
    return ast.Subscript(ast.parse(frame, mode="eval").body, ast.Constant(name), ast.Load())


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node))


def _asks_col(node: ast.AST) -> bool:
    """Whether it is made of ``pd.col("x")``."""
    return any(isinstance(one, ast.Attribute) and one.attr == "col" for one in ast.walk(node))


def _links(node: ast.expr) -> list[ast.expr]:
    """The nodes of a chain, from what it starts with."""
    found = [node]
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
        found.append(node)
    return found[::-1]


def _rewritten(
    chain: Sequence[ast.expr], root: str, offers: Offers, scope: Mapping[str, Any]
) -> str:
    """The chain with ``.dp`` right after the name it starts from."""
    steps = _Steps(root, offers, scope)
    first = chain[0]
    if isinstance(first, ast.Name):
        line: ast.expr = ast.Attribute(first, "dp", ast.Load())
    else:
        line, steps.state = steps.row(first, f"{root}.dp"), "column"
    tried, i = line, 1
    while i < len(chain):
        node, after = chain[i], chain[i + 1] if i + 1 < len(chain) else None
        if isinstance(node, ast.Attribute) and node.attr == "dp":
            line = ast.Attribute(line, "dp", ast.Load()) if steps.state == "answer" else line
        elif (
            isinstance(node, ast.Attribute)
            and steps.state == "column"
            and node.attr in ("str", "dt")
        ):
            name = after.attr if isinstance(after, ast.Attribute) else None
            if name not in (offers.text if node.attr == "str" else offers.date):
                raise _Lost(name or node.attr)
            line = ast.Attribute(ast.Attribute(line, node.attr, ast.Load()), str(name), ast.Load())
            i += 1
            if i + 1 < len(chain) and isinstance(call := chain[i + 1], ast.Call):
                line, i = ast.Call(line, call.args, call.keywords), i + 1
        elif (
            isinstance(node, ast.Attribute)
            and node.attr == "loc"
            and isinstance(after, ast.Subscript)
        ):
            if steps.state not in ("frame", "column"):
                raise _Lost("loc")
            line, i = steps.located(line, after.slice), i + 1
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(after, ast.Call)
            and steps.state != "answer"
        ):
            line, i = steps.call(line, node.attr, after), i + 1
        elif isinstance(node, ast.Attribute):
            line = steps.attribute(line, node.attr)
        elif isinstance(node, ast.Subscript):
            line = steps.item(line, node.slice)
        elif isinstance(node, ast.Call) and steps.state == "answer":
            line = ast.Call(line, node.args, node.keywords)
        else:
            raise _Lost
        i += 1
        if steps.free and steps.state in ("frame", "column"):
            tried = line
    _try(tried, scope)
    return ast.unparse(ast.fix_missing_locations(line))


def _try(steps: ast.expr, scope: Mapping[str, Any]) -> None:
    """Build what a line asks about, which is free and reads nothing: a step may still be refused
    for what it is given."""
    code = compile(
        ast.fix_missing_locations(ast.Expression(copy.deepcopy(steps))), "<advice>", "eval"
    )
    try:
        eval(code, {}, dict(scope))
    except Exception:
        raise _Lost from None


@lru_cache(maxsize=8)
def _tree(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.Module([], [])


Span = tuple[int, int, int, int]  # first line, last line, first column, behind the last column


def _covers(node: ast.expr, span: Span) -> bool:
    first, last, start, end = span
    own_last, own_end = node.end_lineno or node.lineno, node.end_col_offset or 0
    return (node.lineno, node.col_offset) <= (first, start) and (own_last, own_end) >= (last, end)


def rewritten(
    source: str, span: Span, offers: Offers, scope: Mapping[str, Any], frame: object = None
) -> Advice:
    """The chain with ``.dp`` that covers a place of a source, with ``.dp`` moved to its left.

    ``frame`` is the root of the session, from which the chain must start.
    """
    for node in ast.walk(_tree(source)):  # outermost first
        if not isinstance(node, ast.Call | ast.Attribute | ast.Subscript) or not _covers(
            node, span
        ):
            continue
        chain = _links(copy.deepcopy(node))
        places = [
            i for i, one in enumerate(chain) if isinstance(one, ast.Attribute) and one.attr == "dp"
        ]
        if len(places) != 1 or (places == [1] and isinstance(chain[0], ast.Name)):
            continue  # d.dp.mean("x") of a d made elsewhere
        chain = _method(chain)
        names = {one.id for one in ast.walk(chain[0]) if isinstance(one, ast.Name)}
        roots = [n for n in names if scope.get(n) is frame]
        if not roots and any(
            scope.get(one.id) is frame for one in ast.walk(node) if isinstance(one, ast.Name)
        ):
            verb = chain[1] if len(chain) > 1 else None
            return Advice(step=verb.attr if isinstance(verb, ast.Attribute) else None)
        if len(roots) != 1:
            return Advice()
        try:
            return Advice(_rewritten(chain, roots[0], offers, scope))
        except _Lost as why:
            asked = _rest(chain)
            ending = "" if _mentions(asked, roots[0]) else ast.unparse(asked)[1:]
            return Advice(None, why.step, ending, scope)
    return Advice()


def _method(chain: list[ast.expr]) -> list[ast.expr]:
    """A chain that starts with ``pd.merge(df, ...)``, as one that starts with ``df.merge(...)``."""
    if not (
        len(chain) > 2
        and isinstance(call := chain[2], ast.Call)
        and isinstance(verb := chain[1], ast.Attribute)
    ):
        return chain
    if (
        not isinstance(chain[0], ast.Name)
        or chain[0].id not in ("pd", "pandas")
        or verb.attr not in _FUNCTIONS
    ):
        return chain
    given = {word.arg: word.value for word in call.keywords}
    frame = call.args[0] if call.args else given.get(_FUNCTIONS[verb.attr])
    if not isinstance(frame, ast.Name):
        return chain
    rest = [word for word in call.keywords if call.args or word.arg != _FUNCTIONS[verb.attr]]
    attribute = ast.Attribute(frame, verb.attr, ast.Load())
    return [frame, attribute, ast.Call(attribute, call.args[1:], rest), *chain[3:]]


# Functions of pandas that are methods of their first argument, and its name.
_FUNCTIONS = {"merge": "left", "melt": "frame", "pivot_table": "data", "pivot": "data"}


def _rest(chain: Sequence[ast.expr]) -> ast.expr:
    """What follows ``.dp`` in a chain, on a name of one letter."""
    line: ast.expr = ast.Name("p", ast.Load())
    place = next(
        i for i, one in enumerate(chain) if isinstance(one, ast.Attribute) and one.attr == "dp"
    )
    for node in chain[place + 1 :]:
        if isinstance(node, ast.Attribute):
            line = ast.Attribute(line, node.attr, ast.Load())
        elif isinstance(node, ast.Call):
            line = ast.Call(line, node.args, node.keywords)
        elif isinstance(node, ast.Subscript):
            line = ast.Subscript(line, node.slice, ast.Load())
    return ast.fix_missing_locations(line)


def works(line: str, root: str, scope: Mapping[str, Any]) -> bool:
    """Whether a line on ``root.dp`` has a plan, for which nothing is asked."""
    try:
        eval(line.replace(f"{root}.dp", f"{root}.dp.explain", 1), {}, dict(scope))
    except Exception:
        return False
    return True


def callers_line(offers: Offers, root: object) -> tuple[Advice, str]:
    """The chain that runs outside dpframe and pandas, rewritten; and the name that the root of the
    session has there."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in (
        "dpframe",
        "pandas",
    ):
        frame = frame.f_back
    if frame is None or root is None:
        return Advice(), "df"
    scope = {**frame.f_globals, **frame.f_locals}
    name = next((n for n, value in scope.items() if value is root and not n.startswith("_")), "df")
    source = "".join(linecache.getlines(frame.f_code.co_filename))
    place = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    first, last, start, end = place
    if first is None or last is None or start is None or end is None:
        return Advice(), name
    return rewritten(source, (first, last, start, end), offers, scope, root), name
