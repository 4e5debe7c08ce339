"""The string language of `query` and `assign`: pandas' own, as far as it is row-wise, and nothing
else.

Python's parser reads the text and we walk its tree; nothing is ever compiled or called. As in
pandas, ``&`` and ``|`` mean ``and`` and ``or``, backticks quote column names, and ``@name`` is a
variable of the caller.

*Formal guarantee.* The result is built by the constructors of `dpframe._expr` alone, so it is
row-wise. The values of ``@names`` are the caller's word that they are public; they are returned for
the ledger.
"""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NoReturn

from dpframe import _expr as ex
from dpframe._errors import BadExpression, DPError, unknown_column
from dpframe._expr._base import Expr
from dpframe._expr._within import WITHIN

MAX_LENGTH = 10_000


@dataclass(frozen=True, slots=True)
class Parsed:
    """The expression, and the value of each ``@name`` it used."""

    expr: Expr
    names: dict[str, object]


def parse(text: str, columns: Mapping[Hashable, Expr], names: Callable[[str], object]) -> Parsed:
    """Return the expression that a text such as "age > 30" stands for, and the variables it uses.

    ``columns`` has the columns by name. ``names`` returns the value of an ``@name``, a variable of
    the caller.
    """
    if not isinstance(text, str):
        raise BadExpression(
            f"an expression is a string such as 'age > 30', not {type(text).__name__}."
        )
    if len(text) > MAX_LENGTH:
        raise BadExpression(
            f"the expression has {len(text)} characters, more than {MAX_LENGTH}. Split it."
        )
    if not text.strip():
        raise BadExpression("the expression is empty. Write a condition such as 'age > 30'.")
    plain, places, tree = (_take_short_apart if len(text) < _SHORT else _take_apart)(text)
    reader = _Reader(plain, places, columns, names)
    return Parsed(reader.read(tree), reader.used)


# Strings come first, so that nothing inside them is rewritten.
_PIECES = re.compile(
    r"""(?P<string>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|(?P<column>`[^`]*`)|@(?P<local>[^\W\d]\w*)"""
    r"|(?P<and>&)|(?P<or>\|)|(?P<line>\s+)",
    re.DOTALL,
)

# Words of SQL that Python does not have, and what to write instead.
_INSTEAD = {
    "=": "==",
    "<>": "!=",
    "AND": "and",
    "OR": "or",
    "NOT": "not",
    "IN": "in [...]",
    "LIKE": ".str.contains('...')",
    "BETWEEN": ".between(1, 2)",
    "IS NULL": ".isna()",
    "IS NOT NULL": ".notna()",
    "CASE": "where(...)",
}
_SQL = re.compile(
    r"(?<![=<>!])=(?!=)|<>|\bIS NOT NULL\b|\bIS NULL\b|\b(?:LIKE|BETWEEN|CASE)\b|(?-i:\b(?:AND|OR|NOT|IN)\b)",
    re.IGNORECASE,
)

# Methods of columns that look at several rows; so does whatever can be done within a person.
_ACROSS_WORDS = (
    "mode diff rolling ewm expanding value_counts unique head tail nlargest nsmallest sample "
    "describe product skew kurt idxmax idxmin argmax argmin transform agg aggregate apply "
    "corr cov autocorr drop_duplicates interpolate pct_change groupby sort_values factorize "
    "iloc loc iat at values index is_unique array hist mad cat item to_numpy tolist"
)
_ACROSS = {*WITHIN, *_ACROSS_WORDS.split()}


def add_methods_across_rows(*names: str) -> None:
    """Have the language of expressions refuse methods that look at several rows.

    Aggregates tell their names when they are registered.
    """
    _ACROSS.update(names)


_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


_SHORT = 200  # texts below this length are asked over and over, and their trees are kept


def _take_apart(text: str) -> tuple[str, dict[str, str], ast.expr]:
    """Return a text as Python reads it, what its stand-ins stand for, and Python's tree.

    Quoted columns and ``@names`` get stand-ins, which are plain names. It refuses what is not one
    expression, and says what to write instead of SQL.
    """
    prefix, pieces, places, done = "_", [], dict[str, str](), 0
    while prefix in text:  # our stand-ins must not be names of the caller's
        prefix += "_q"
    for piece in _PIECES.finditer(text):
        new = {"string": piece.group(), "and": " and ", "or": " or ", "line": " "}.get(
            piece.lastgroup or ""
        )
        if new is None:
            new = f"{prefix}{len(places)}_"
            places[new] = piece.group()
        pieces += [text[done : piece.start()], new]
        done = piece.end()
    plain = "".join([*pieces, text[done:]]).strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in strings
            return plain, places, ast.parse(plain, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        bare = _PIECES.sub(
            lambda piece: "" if piece.lastgroup == "string" else piece.group(), plain
        )
        found = dict.fromkeys(map(str.upper, _SQL.findall(bare)))
        sql = "".join([f"; for {word} of SQL write {_INSTEAD[word]}" for word in found])
        raise BadExpression(
            f"{_restore_text(plain, places)!r} is not one expression. Write a condition such as "
            "\"age > 30 and state in ['CA', 'NY']\"; names with spaces go in `backticks`, and a "
            "new column "
            f"is assign(name='...'){sql}."
        ) from None


_take_short_apart = lru_cache(maxsize=256)(_take_apart)


def _restore_text(text: str, places: Mapping[str, str]) -> str:
    """Return a text of the user's with its stand-ins replaced by the original text, for a message.

    ``places`` has the original of each stand-in. A long text is cut.
    """
    for place, original in places.items():
        text = text.replace(place, original)
    return text if len(text) <= 80 else text[:77] + "..."


@dataclass(slots=True, eq=False)
class _Reader:
    """A translator from Python's tree to expressions, with a method for each kind of node in the
    language."""

    _text: str
    _places: dict[str, str]
    _columns: Mapping[Hashable, Expr]
    _names: Callable[[str], object]
    used: dict[str, object] = field(default_factory=dict)  # the @names, as they are met
    _depth: int = 0

    def _source(self, node: ast.AST) -> str:
        return _restore_text(
            ast.get_source_segment(self._text, node) or type(node).__name__, self._places
        )

    def _refuse(self, node: ast.AST, why: str) -> NoReturn:
        raise BadExpression(f"{self._source(node)!r}: {why}")

    # ---- expressions -----------------------------------------------------------------------------

    def read(self, node: ast.expr) -> Expr:
        """Return the expression that a node of Python's tree of a query stands for.

        It refuses a node that the language does not have, and too deep a nesting.
        """
        self._depth += 1
        if self._depth > ex.MAX_DEPTH:
            raise BadExpression("the expression is nested too deeply. Split it into several steps.")
        method: Callable[[Any], Expr] | None = getattr(self, f"_read_{type(node).__name__}", None)
        if method is None:
            self._refuse(
                node,
                f"a {_WORDS.get(type(node), type(node).__name__)} is not part of the row-wise "
                "language. It has "
                "comparisons, and/or/not, arithmetic, in [...], and methods of one cell such as "
                ".isna() or .str.len().",
            )
        found = method(node)
        self._depth -= 1
        return found

    def _read_BoolOp(self, node: ast.BoolOp) -> Expr:
        """Return the condition that ``a and b`` or ``a or b`` in a query stands for."""
        join = ex.logical_and if isinstance(node.op, ast.And) else ex.logical_or
        return _fold([self.read(v) for v in node.values], join)

    def _read_BinOp(self, node: ast.BinOp) -> Expr:
        """Return the expression that an arithmetic operator between two operands stands for."""
        op = _ARITHMETIC.get(type(node.op))
        if op is None:
            self._refuse(node, f"arithmetic here is {', '.join(_ARITHMETIC.values())}.")
        return ex.operate(op, self.read(node.left), self.read(node.right))

    def _read_UnaryOp(self, node: ast.UnaryOp) -> Expr:
        """Return the expression that ``not x``, ``~x``, ``-x`` or ``+x`` in a query stands for."""
        x = self.read(node.operand)
        if isinstance(node.op, ast.Not | ast.Invert):
            return ex.logical_not(x)
        if isinstance(x, ex.Constant) and x.kind == "number":
            return ex.constant(-x.value if isinstance(node.op, ast.USub) else x.value)
        return ex.minus(x) if isinstance(node.op, ast.USub) else ex.minus(ex.minus(x))

    def _read_Compare(self, node: ast.Compare) -> Expr:
        """Return the condition that a comparison in a query stands for.

        Examples are ``1 < x <= 2``, ``x in [1, 2]`` and ``x == @y``.
        """
        left, found = node.left, list[Expr]()
        for op, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, ast.Is | ast.IsNot):
                self._refuse(node, "'is' compares objects. Write == or !=, or .isna() for nulls.")
            listed = not isinstance(right, ast.Constant) and self._is_list(right)
            if isinstance(op, ast.In | ast.NotIn) or (
                listed and isinstance(op, ast.Eq | ast.NotEq)
            ):
                if not listed and not self._is_local(right):
                    self._refuse(
                        right,
                        "'in' needs a public list: ['CA', 'NY'], or @name for a list of yours.",
                    )
                member = ex.is_in(self.read(left), self._value(right))
                found.append(
                    ex.logical_not(member) if isinstance(op, ast.NotIn | ast.NotEq) else member
                )
            else:
                found.append(ex.compare(_COMPARE[type(op)], self.read(left), self.read(right)))
            left = right
        return found[0] if len(found) == 1 else _fold(found, ex.logical_and)

    def _read_IfExp(self, node: ast.IfExp) -> Expr:
        return ex.choose(self.read(node.test), self._scalar(node.body), self._scalar(node.orelse))

    def _read_Constant(self, node: ast.Constant) -> Expr:
        if isinstance(node.value, bytes | complex) or node.value is ...:
            self._refuse(node, "constants are numbers, strings in quotes, True and False.")
        return ex.constant(node.value)

    def _read_Name(self, node: ast.Name) -> Expr:
        """Return the column that a name in a query stands for, or the constant of an ``@name``.

        An unknown name is refused.
        """
        name = self._places.get(node.id, node.id).strip("`")
        if name.startswith("@") and self._is_local(node):
            return ex.constant(self._local(node))
        if name in self._columns:
            return self._columns[name]
        alike = [k for k in self._columns if not isinstance(k, str) and str(k) == name]
        if node.id in self._places and len(alike) == 1:  # `2020` may be a number
            return self._columns[alike[0]]
        error = unknown_column(name, self._columns)
        raise type(error)(
            f"{error} A variable of yours is written @{name}."
            if name.isidentifier()
            else str(error)
        )

    def _read_Attribute(self, node: ast.Attribute) -> Expr:
        """Return the expression that an attribute such as ``x.dt.year`` in a query stands for.

        Only parts of a time are attributes; others are refused.
        """
        op = ex.OPS.get(f"dt.{node.attr}")
        if (
            isinstance(node.value, ast.Attribute)
            and node.value.attr == "dt"
            and (op is None or op.attribute)
        ):
            return ex.time_part(self.read(node.value.value), node.attr)
        if isinstance(node.value, ast.Call) and _is_iso(node.value):
            return ex.week_part(self.read(node.value.func.value.value), node.attr)  # type: ignore[attr-defined]  # it is
        self._refuse_member(node, node.attr)

    def _read_Call(self, node: ast.Call) -> Expr:
        """Return the expression that a call in a query stands for.

        Examples are ``x.abs()``, ``x.str.lower()`` and ``log(x)``. An unknown function is refused.
        """
        make = ex.find_function(node.func.id) if isinstance(node.func, ast.Name) else None
        if make is not None:
            return self._call_function(node, make)
        if not isinstance(node.func, ast.Attribute):
            self._refuse(
                node,
                "functions are not called here. Methods of one cell are: x.abs(), x.round(2), ...",
            )
        if any(isinstance(a, ast.Starred) for a in node.args) or any(
            k.arg is None for k in node.keywords
        ):
            self._refuse(
                node, "* and ** are not part of the row-wise language. Write the arguments out."
            )
        owner, name = node.func.value, node.func.attr
        space = owner.attr if isinstance(owner, ast.Attribute) else None
        if isinstance(owner, ast.Attribute) and space == "str":
            x = self.read(owner.value)
            return self._call(node, lambda *a, **k: ex.text_part(x, name, *a, **k))
        if isinstance(owner, ast.Attribute) and space == "dt":
            op = ex.OPS.get(f"dt.{name}")
            if op is None or op.attribute:
                called = [label for label, op in ex.list_ops("dt").items() if not op.attribute]
                self._refuse(node, f"of .dt only {', '.join(called)} are called.")
            x = self.read(owner.value)
            return self._call(node, lambda *a, **k: ex.time_part(x, name, *a, **k))
        method = ex.METHODS.get(name)
        if method is None:
            self._refuse_member(node, name)
        x = self.read(owner)
        return self._call(node, lambda *a, **k: method(x, *a, **k), method)

    def _call_function(self, node: ast.Call, make: Callable[..., Expr]) -> Expr:
        """Return the expression of a function of cells, such as ``log(x)``.

        Its arguments are expressions. ``make`` builds the result, and other numbers of arguments
        than it takes are refused.
        """
        signature = inspect.signature(make)
        try:
            given = signature.bind(*node.args)
        except TypeError:
            given = None
        if given is None or node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            self._refuse(node, f"the arguments here are ({', '.join(signature.parameters)}).")
        return make(*map(self.read, node.args))

    def _call(
        self, node: ast.Call, make: Callable[..., Expr], like: Callable[..., Expr] | None = None
    ) -> Expr:
        """Return the expression that ``make`` builds of the arguments of a call in a query.

        ``like`` is a function whose parameters the arguments must fit; None checks nothing.
        """
        args = [self._value(a) for a in node.args]
        options = {k.arg: self._value(k.value) for k in node.keywords if k.arg is not None}
        if like is not None:
            signature = inspect.signature(like)
            try:
                signature.bind(None, *args, **options)
            except TypeError:
                wanted = ", ".join(list(signature.parameters)[1:])
                self._refuse(node, f"the arguments here are ({wanted}).")
        return make(*args, **options)

    def _read_Subscript(self, node: ast.Subscript) -> Expr:
        """Return the expression that ``x.str[0]`` or ``x.str[0:2]`` in a query stands for.

        All other brackets are refused.
        """
        owner, key = node.value, node.slice
        if isinstance(owner, ast.Attribute) and owner.attr == "str":
            x = self.read(owner.value)
            if isinstance(key, ast.Slice):
                ends = [
                    None if e is None else self._value(e) for e in (key.lower, key.upper, key.step)
                ]
                return ex.text_part(x, "slice", *ends)
            return ex.text_part(x, "get", self._value(key))
        self._refuse(
            node,
            "brackets are not part of the row-wise language, except .str[0:2]. Write the column's "
            "name.",
        )

    def _refuse_member(self, node: ast.AST, name: str) -> NoReturn:
        """Refuse a method that the language does not have.

        The message of one that looks across people says to release it first.
        """
        if name in _ACROSS:
            self._refuse(
                node,
                "it looks across people, so it must be a release first. Release it (for instance "
                "with "
                f".dp.{name}(...) if there is one), and use the released number as @name.",
            )
        self._refuse(
            node,
            f".{name} is not part of the row-wise language. It has "
            f"{', '.join(f'.{m}()' for m in ex.METHODS)}, "
            ".str.* and .dt.*.",
        )

    # ---- arguments -------------------------------------------------------------------------------

    def _is_local(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and self._places.get(node.id, "").startswith("@")

    def _is_list(self, node: ast.AST) -> bool:
        """Return whether a node is a list that is written out, or an ``@name`` of a public list."""
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return True
        return self._is_local(node) and isinstance(self._local(node), ex.COLLECTIONS)

    def _local(self, node: ast.AST) -> object:
        """Return the value of an ``@name``, a variable of the caller.

        The value is kept among those that the expression used, for the ledger.
        """
        assert isinstance(node, ast.Name)
        name = self._places[node.id][1:]
        if name not in self.used:
            try:
                self.used[name] = self._names(name)
            except DPError:
                raise
            except (LookupError, NameError):
                raise BadExpression(
                    f"@{name}: there is no variable of that name. Define it first."
                ) from None
        return self.used[name]

    def _value(self, node: ast.expr) -> Any:
        """Return the value of an argument of a call in a query.

        It is a literal, a list of them, an ``@name``, or an expression.
        """
        if self._is_local(node):
            return self._local(node)
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return [self._scalar(e) for e in node.elts]
        return self._scalar(node)

    def _scalar(self, node: ast.expr) -> Any:
        """Return the value of a node if it is a constant, else its expression."""
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        x = self.read(node)
        return x.value if isinstance(x, ex.Constant) else x


def _is_iso(call: ast.Call) -> bool:
    """Return whether a call is ``x.dt.isocalendar()``, which has its own parts of a week."""
    found = call.func
    known = (
        isinstance(found, ast.Attribute)
        and found.attr == "isocalendar"
        and not (call.args or call.keywords)
    )
    return known and isinstance(found.value, ast.Attribute) and found.value.attr == "dt"  # type: ignore[attr-defined]  # it is


def _fold(parts: list[Expr], join: Callable[[Expr, Expr], Expr]) -> Expr:
    """Return many conditions joined into one, in halves.

    A hundred of them are seven levels deep. ``join`` joins two of them.
    """
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return join(_fold(parts[:middle], join), _fold(parts[middle:], join))


_WORDS: dict[type[ast.AST], str] = {
    ast.Lambda: "lambda",
    ast.JoinedStr: "f-string",
    ast.NamedExpr: "assignment (:=)",
    ast.ListComp: "comprehension",
    ast.SetComp: "comprehension",
    ast.DictComp: "comprehension",
    ast.GeneratorExp: "comprehension",
    ast.Dict: "dict",
    ast.List: "list outside 'in'",
    ast.Tuple: "tuple outside 'in'",
    ast.Set: "set outside 'in'",
    ast.Slice: "slice",
    ast.Starred: "star",
    ast.Await: "await",
}
