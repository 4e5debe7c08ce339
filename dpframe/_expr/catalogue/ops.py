"""The core of the catalogue: what an entry says of a function of a row, and the node that calls it.

An entry is one `Op`. It says everything about its function: the kind of the result, whether it can
be null, how bounds travel through it, its value in a cell, and its SQL. The surfaces, the lists in
messages, the type stub, the reference and the parameters of tests are computed from the entries.

An operator, a choice, a cast or a verb within a person is no entry, but a node class of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from dpframe._errors import BadExpression, BadType, BadValue
from dpframe._expr._base import MAX_DEPTH, MAX_SIZE, Constant, Expr, KeysOf, Lookup
from dpframe._expr._build import constant, describe, suggest_conversion
from dpframe._expr._kinds import Kind
from dpframe._expr._nodes import show_owner
from dpframe._expr._ranges import Interval
from dpframe._types import Arguments, Values

REQUIRED = inspect.Parameter.empty  # the default of an argument that must be given
ACCESSORS = ("str", "dt")
_NEEDED = {
    "number": "numbers",
    "text": "strings",
    "time": "timestamps",
    "duration": "durations",
    "other": "texts that are split",
}


@dataclass(frozen=True, slots=True)
class Arg:
    """One public argument of a function, under the name that pandas gives it."""

    name: str
    types: tuple[type, ...]
    default: Any = REQUIRED
    problem: Callable[[Any], str | None] | None = None  # says what is wrong with a value


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Op:
    """A function of one cell, or of two cells of a row, with public arguments.

    `value` of a text is called once for each different text, with the arguments. It returns the
    result, or None for null. `value` of numbers takes whole arrays of doubles, in which a null is
    NaN. `value` of times and durations takes whole arrays too; times are in wall time there. An entry
    without a value is written with others by `build`, or has a kernel of its own in
    `dpframe.engines.functions`.

    A field of `identity` is an operand (x, y), an argument by its name, all arguments as constants
    (args), the part of the name behind the dot (name), or "=" and a text as it stands.
    """

    name: str  # with its accessor: "str.upper"
    kind: Kind | None  # of the result; None: that of the operand
    value: Callable[..., Any] | None
    doc: str
    examples: Sequence[tuple[Any, ...]]  # each: a cell, the arguments, the result
    of: tuple[Kind, ...]  # the kinds of its operands
    identity: tuple[
        str, ...
    ]  # the tag in the encoding of a question, and its fields in their order
    args: tuple[Arg, ...] = ()
    sql: str | Mapping[str, str] | None = None  # one template, or templates by dialect
    build: Callable[..., Expr] | None = None  # has pandas' signature, where `args` do not
    nulls: Callable[[Call], bool] = lambda call: True
    whole: Callable[[Call], bool] = lambda call: call.kind in ("number", "bool")
    interval: Callable[[Call, Lookup], Interval] | None = None
    members: Callable[[Call, KeysOf, Lookup], Values | None] | None = None
    images: bool = False  # whether keys of its columns give keys of its results
    text: Callable[[Call], str] | None = None  # how a plan shows a call
    tz: Callable[[Call], str | None] | None = None  # the time zone of the result
    attribute: bool = False  # whether a user writes it without parentheses

    @property
    def accessor(self) -> str:
        """The part of the name before the dot, or nothing."""
        return self.name.rpartition(".")[0]

    @property
    def label(self) -> str:
        """The part of the name after the dot."""
        return self.name.rpartition(".")[2]

    @property
    def spelling(self) -> str:
        """The name as users write it."""
        return f".{self.name}" if self.accessor in ACCESSORS else self.label


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A function of the catalogue, called with operands and plain arguments."""

    op: str
    operands: tuple[Expr, ...]
    args: Arguments = ()  # of exact types: 1, 1.0 and True are never the same argument

    def __post_init__(self) -> None:
        """Compute depth and size from the operands, and refuse an expression that is too deep.

        The operands stand in a tuple, which `Expr` does not read.
        """
        depth, size = 0, 1
        for x in self.operands:
            depth, size = max(depth, x.depth), size + x.size
        object.__setattr__(self, "depth", 1 + depth)
        object.__setattr__(self, "size", size)
        if depth >= MAX_DEPTH or size > MAX_SIZE:
            raise BadExpression(
                "the expression is nested too deeply. Split it into several columns or filters."
            )

    @property
    def kind(self) -> Kind:
        return OPS[self.op].kind or self.operands[0].kind

    @property
    def nullable(self) -> bool:
        return OPS[self.op].nulls(self)

    @property
    def integral(self) -> bool:
        return OPS[self.op].whole(self)

    @property
    def tz(self) -> str | None:
        zone = OPS[self.op].tz
        return None if zone is None else zone(self)

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.operands

    def interval(self, lookup: Lookup) -> Interval:
        """Return bounds of the results; None if not known.

        ``lookup`` returns the bounds of a column.
        """
        travel = OPS[self.op].interval
        return Expr.interval(self, lookup) if travel is None else travel(self, lookup)

    def members(self, keys: KeysOf, ends: Lookup) -> Values | None:
        """Return all values that the results can have; None if not known.

        A group-by by this expression has them as its keys. ``keys`` returns the group keys of a
        column, and ``ends`` its bounds.
        """
        listed = OPS[self.op].members
        if listed is None:
            return Expr.members(self, keys, ends)
        return listed(self, keys, ends)

    @property
    def public_members(self) -> Values | None:
        """All values there can be, if they are known of any column: those of the calendar."""
        return self.members(lambda column: None, lambda column: None)

    def read_identity(self) -> tuple[str, dict[int, Any]]:
        """Return the tag by which the call is encoded, and its fields in a dict by place.

        Fields that are at their default are left out.
        """
        op = OPS[self.op]
        tag, *names = op.identity
        fields: dict[str, Any] = {"x": self.operands[0], "y": self.operands[-1], "name": op.label}
        if self.args:
            fields["args"] = tuple(map(Constant, self.args))
            for arg, value in zip(op.args, self.args, strict=True):
                if arg.default is REQUIRED or value != arg.default:
                    fields[arg.name] = value
        known: dict[int, Any] = {}
        for place, name in enumerate(names):
            if name in fields:
                known[place] = fields[name]
            elif name.startswith("="):
                known[place] = name[1:]
        return tag, known

    def __str__(self) -> str:
        """Return the call as a plan shows it, such as ``x.str.lower()`` or ``log(x)``."""
        op = OPS[self.op]
        if op.text is not None:
            return op.text(self)
        if op.accessor not in ACCESSORS:
            return f"{op.label}({', '.join(map(str, (*self.operands, *map(repr, self.args))))})"
        owner = f"{show_owner(self.operands[0])}.{op.name}"
        return owner if op.attribute else f"{owner}({', '.join(map(repr, self.args))})"


OPS: dict[str, Op] = {}  # by name


def register(*ops: Op) -> None:
    """Enter functions of cells into the catalogue; raise if a name is there already."""
    for op in ops:
        if op.name in OPS:
            raise ValueError(f"{op.name} is in the catalogue already.")
        OPS[op.name] = op


# ---- what surfaces ask ---------------------------------------------------------------------------


def list_ops(accessor: str, kind: Kind | None = None) -> dict[str, Op]:
    """Return the functions of an accessor such as "str", by their names without it.

    With ``kind`` only functions of such operands are returned, such as "time".
    """
    begin = f"{accessor}." if accessor else ""
    return {
        name[len(begin) :]: op
        for name, op in OPS.items()
        if (name.startswith(begin) if begin else "." not in name)
        and (kind is None or kind in op.of)
    }


def signature_of(op: Op) -> inspect.Signature:
    """Return the signature of a function as a user sees it.

    Its first parameter is the operand, which a method has before its dot.
    """
    if op.build is not None:
        return inspect.signature(op.build)
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("x", positional)]
    for arg in op.args:
        words = " | ".join("None" if t is type(None) else t.__name__ for t in arg.types)
        parameters.append(
            inspect.Parameter(arg.name, positional, default=arg.default, annotation=words)
        )
    return inspect.Signature(parameters)


@cache
def method_signature(op: Op) -> inspect.Signature:
    """Return the signature of a function as a method, without the operand."""
    known = _signature(op)
    return known.replace(parameters=list(known.parameters.values())[1:])


def list_parameters(op: Op) -> str:
    """Return the names of the parameters of a function, for a message."""
    return ", ".join(method_signature(op).parameters)


_signature = cache(signature_of)  # of functions that are called often


# ---- calls ---------------------------------------------------------------------------------------


def call(name: str, *operands: Expr, args: Sequence[object] = ()) -> Call:
    """Return a call of the function ``name`` of the catalogue with all of its arguments.

    ``operands`` are expressions, and ``args`` plain values. It refuses operands of another kind
    than the function takes, and arguments that are not allowed.
    """
    op = OPS[name]
    for x in operands:
        if x.kind not in op.of:
            needed = " or ".join([_NEEDED[kind] for kind in op.of if kind in _NEEDED])
            raise BadType(
                f"{op.spelling} needs {needed}, and {describe(x)} is not one. "
                f"{suggest_conversion(x)}"
            )
    if not op.args:
        return Call(name, operands)
    checked = [_check_argument(op, arg, value) for arg, value in zip(op.args, args, strict=True)]
    return Call(name, operands, tuple(checked))


def _check_argument(op: Op, arg: Arg, given: object) -> Any:
    """Return an argument as a plain value; refuse it if it is missing or not allowed.

    ``arg`` says which types and values are allowed, and ``given`` is the argument.
    """
    value = given if given is REQUIRED else constant(given, null=True).value
    if type(value) not in arg.types:
        types = " or ".join(t.__name__ for t in arg.types)
        raise BadType(f"{op.spelling} needs {arg.name} as {types}.")
    problem = None if arg.problem is None else arg.problem(value)
    if problem is not None:
        raise BadValue(f"{op.spelling}: {problem}")
    return value


def call_function(name: str, x: Expr, *args: object, **words: object) -> Expr:
    """Return the expression of a user's call of a function of the catalogue.

    ``x`` is the operand. ``args`` and ``words`` are the arguments, with pandas' names. It refuses
    arguments that the function does not take.
    """
    op = OPS[name]
    if op.build is None:
        return call(name, x, args=_fill_in_defaults(op, args, words))
    try:
        _signature(op).bind(x, *args, **words)
    except TypeError:
        raise BadType(f"{op.spelling} takes ({list_parameters(op)}) here, nothing else.") from None
    return op.build(x, *args, **words)


def _fill_in_defaults(op: Op, args: Arguments, words: Mapping[str, object]) -> list[Any]:
    """Return all arguments of a function in their order, with defaults for those not given.

    It refuses arguments that the function does not have.
    """
    if not (op.args or args or words):
        return []
    names = [arg.name for arg in op.args]
    if len(args) > len(names) or not words.keys() <= {*names[len(args) :]}:
        raise BadValue(f"{op.spelling} takes ({', '.join(names)}) here, nothing else.")
    given = {**dict(zip(names, args, strict=False)), **words}
    return [given.get(arg.name, arg.default) for arg in op.args]
