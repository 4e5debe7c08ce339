"""Write `dpframe/_frame/surface.pyi`, which tells type checkers the verbs of the surface.

``python -m tests.typing.stubs`` writes it. The verbs, their parameters and their types are those of
the functions in the tables of `dpframe._frame.surface`. Only what depends on the kind of groups, or
on whether a question is answered, stands here: `ANSWERS`, and a few verbs with several forms.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, NamedTuple

from dpframe._frame import surface
from dpframe._frame.people.groups import PersonGroupBy
from dpframe._frame.signatures import PRICE as PRICE_PARAMETERS

STUB = Path(surface.__file__).with_suffix(".pyi")
HEADER = '''"""What type checkers know of the surface: tracked frames, columns and groups, and their verbs.

Written by ``python -m tests.typing.stubs``: change the verbs, and run it again. The classes that
`surface` does not have are those that it does have in another mode, or of another kind.
"""

# mypy: disable-error-code="override, assignment, misc, overload-overlap"
'''
OWN = ("PrivateFrame", "PrivateColumn", "PrivateGroupBy")


class Answers(NamedTuple):
    """What the verbs of a kind of frame or groups return."""

    whole: str  # how many: a whole number, or one for each group
    number: str  # a mean and its like
    value: str  # a number that is whole where the column is
    counted: str  # how many, where no column is named
    levels: str  # quantiles of one column at several levels
    row: str  # a mean and its like, of each column
    values: str  # numbers of each column, whole or not
    table: str  # quantiles of each column at several levels
    outputs: str  # several aggregates of several columns


TABLE, INTS, FLOATS, NUMBERS = (
    "pd.DataFrame",
    "pd.Series[int]",
    "pd.Series[float]",
    "pd.Series[Any]",
)
EITHER = "IntEstimate | FloatEstimate"
ONE = Answers(
    "IntEstimate", "FloatEstimate", EITHER, "IntEstimate", FLOATS, FLOATS, NUMBERS, TABLE, TABLE
)
BY_COLUMN = Answers(INTS, FLOATS, NUMBERS, INTS, FLOATS, FLOATS, NUMBERS, FLOATS, TABLE)
BY_COLUMNS = Answers(INTS, FLOATS, NUMBERS, TABLE, FLOATS, TABLE, TABLE, TABLE, TABLE)
FLAT = Answers(*[TABLE] * 9)
PLANNED = Answers(*["A"] * 9)  # a plan, or the place of an answer in a batch

BOUNDS = "bounds: BoundsLike = ..."
PAYMENT = "**payment: Unpack[Payment]"
NUMERIC = f"numeric_only: bool = ..., {PAYMENT}"
POINTS = f"resolution: float | None = ..., {NUMERIC}"
QUANTILES = f"method: str = ..., {POINTS}"
ACROSS = "*, axis: Literal[1, 'columns'], numeric_only: bool = ..."

# Methods ----------------------------------------------------------------------------------------


def write_method(name: str, *forms: tuple[str, str]) -> Iterator[str]:
    """Yield the lines of a method with one form, or with an overload for each of several.

    A form is the parameters and the returned type. Forms that repeat an earlier one are left out.
    """
    distinct = list(dict.fromkeys(forms))
    for parameters, returned in distinct:
        if len(distinct) > 1:
            yield "    @overload"
        comma = ", " if parameters else ""
        yield f"    def {name}(self{comma}{parameters}) -> {returned}: ..."


def write_measure(name: str, kind: str, answers: Answers, planned: bool) -> Iterator[str]:
    """Yield the verb of an aggregate: of one column, of all, or across the columns of a row."""
    shown = inspect.signature(getattr(surface.PrivateFrame, name)).parameters
    bounds = f"{BOUNDS}, " if "bounds" in shown else ""
    own = "".join(f"{word}: {shown[word].annotation} = ..., " for word in OPTIONS if word in shown)
    rest = f"{own}{NUMERIC}"
    one = {"whole": answers.whole, "number": answers.number, "value": answers.value}[kind]
    every = {"whole": answers.values, "number": answers.row, "value": answers.values}[kind]
    every = answers.row if name in surface.ORDERED else every
    if planned:
        yield from write_method(name, (f"column: ColumnLike = ..., {bounds}*, {rest}", one))
        return
    across = [(ACROSS, "PrivateColumn")] if name in ACROSS_COLUMNS and answers is ONE else []
    yield from write_method(
        name,
        (f"column: ColumnLike, {bounds}*, {rest}", one),
        (f"*, {bounds}{rest}", every),
        *across,
    )


OPTIONS = ("ddof", "q", "resolution")
ACROSS_COLUMNS = ("sum", "mean", "min", "max")


def write_count(answers: Answers, planned: bool) -> Iterator[str]:
    """Yield `count`, which counts rows where no column is named."""
    if planned:
        yield from write_method("count", (f"column: ColumnLike = ..., {PAYMENT}", answers.whole))
        return
    across = [(ACROSS, "PrivateColumn")] if answers is ONE else []
    yield from write_method(
        "count",
        (f"column: ColumnLike, {PAYMENT}", answers.whole),
        (PAYMENT, answers.counted),
        *across,
    )


def write_quantile(answers: Answers, planned: bool) -> Iterator[str]:
    """Yield `quantile`, of one column or of all, at one level or at several."""
    if planned:
        levels = f"column: ColumnLike | QuantileLevels = ..., q: float | QuantileLevels = ..., {BOUNDS}, *, {QUANTILES}"
        yield from write_method("quantile", (levels, "A"))
        return
    yield from write_method(
        "quantile",
        (f"column: float, *, {BOUNDS}, {QUANTILES}", answers.row),
        (f"column: QuantileLevels, *, {BOUNDS}, {QUANTILES}", answers.table),
        (f"column: ColumnLike, q: float = ..., {BOUNDS}, *, {QUANTILES}", answers.value),
        (f"column: ColumnLike, q: QuantileLevels, {BOUNDS}, *, {QUANTILES}", answers.levels),
        (f"*, q: QuantileLevels, {BOUNDS}, {QUANTILES}", answers.table),
        (f"*, q: float = ..., {BOUNDS}, {QUANTILES}", answers.row),
    )


def write_agg(answers: Answers, planned: bool) -> Iterator[str]:
    """Yield `agg` and its other name."""
    for name in ("agg", "aggregate"):
        if planned:
            yield from write_method(name, (f"spec: Any = ..., /, *, {BOUNDS}, **outputs: Any", "A"))
            continue
        yield from write_method(
            name,
            (f"spec: str, /, *, {BOUNDS}, {PAYMENT}", answers.values),
            (f"spec: list[str], /, *, {BOUNDS}, {PAYMENT}", answers.outputs),
            (f"spec: Mapping[Any, str], /, *, {BOUNDS}, {PAYMENT}", answers.values),
            (
                f"spec: Mapping[Any, Any] | None = ..., /, *, {BOUNDS}, **outputs: Any",
                answers.outputs,
            ),
        )


def write_measures(answers: Answers) -> Iterator[str]:
    """Yield the verbs that measure columns."""
    planned = answers is PLANNED
    yield from write_count(answers, planned)
    for name, measure in surface.measure.MEASURES.items():
        yield from write_measure(name, measure.answer, answers, planned)
    for name in surface.ORDERED:
        if name != "quantile":
            yield from write_measure(name, "value", answers, planned)
    yield from write_quantile(answers, planned)
    yield from write_agg(answers, planned)


MEASURING = {"count", *surface.MEASURED, *surface.ORDERED, "agg", "aggregate"}

# Verbs that are functions -----------------------------------------------------------------------


@cache
def imported_names(module: str) -> dict[str, str]:
    """Return the line that imports each name that a module has, by name."""
    tree = ast.parse(Path(importlib.import_module(module).__file__ or "").read_text())
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name
                renamed = f" as {alias.asname}" if alias.asname else ""
                found[name] = f"from {node.module} import {alias.name}{renamed}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name] = (
                    f"import {alias.name} as {alias.asname}"
                    if alias.asname
                    else f"import {alias.name}"
                )
    for node in tree.body:
        names = []
        if isinstance(node, ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        found.update({name: f"from {module} import {name}" for name in names})
    return found


class Stub:
    """The lines of the stub, and the imports that they need."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.imports: dict[str, str] = {}

    def add(self, *lines: str) -> None:
        """Add lines."""
        self.lines.extend(lines)

    def note(self, annotation: object, module: str) -> str:
        """Return an annotation of a function in a module, and import what it names."""
        text = annotation if isinstance(annotation, str) else self.format_type(annotation)
        text = text.strip("'\"")
        known = imported_names(module)
        for node in ast.walk(ast.parse(text, mode="eval")):
            if isinstance(node, ast.Name) and node.id in known and node.id not in OWN:
                line = known[node.id]
                assert self.imports.setdefault(node.id, line) == line, f"two meanings of {node.id}"
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                self.note(node.value, module)
        return text

    @staticmethod
    def format_type(annotation: object) -> str:
        """Return a type as it is written."""
        return annotation.__name__ if isinstance(annotation, type) else str(annotation)

    def parameters(self, verb: Callable[..., Any], skip: int = 1) -> str:
        """Return the parameters of a verb as they are written, the price as ``**payment``."""
        module, parts, star = inspect.unwrap(verb).__module__, [], False
        own = list(inspect.signature(verb).parameters.values())[skip:]
        priced = "within" in {p.name for p in own}
        own = [p for p in own if not (priced and p.name in PRICE)]
        for place, p in enumerate(own):
            named = p.kind is Parameter.KEYWORD_ONLY
            if named and not star and not any(q.kind is Parameter.VAR_POSITIONAL for q in own):
                parts.append("*")
            star = star or named
            sign = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}.get(p.kind, "")
            default = "" if p.default is Parameter.empty else " = ..."
            kind = "Any" if p.annotation is Parameter.empty else self.note(p.annotation, module)
            parts.append(f"{sign}{p.name}: {kind}{default}")
            last = place + 1 == len(own) or own[place + 1].kind is not Parameter.POSITIONAL_ONLY
            if p.kind is Parameter.POSITIONAL_ONLY and last:
                parts.append("/")
        keywords = any(p.kind is Parameter.VAR_KEYWORD for p in own)
        return ", ".join([*parts, *([PAYMENT] if priced and not keywords else [])])

    def verb(self, name: str, verb: Callable[..., Any], returned: str | None = None) -> None:
        """Add a verb that is a function, or a method."""
        plain = inspect.unwrap(verb)
        first = next(iter(inspect.signature(plain).parameters.values())).annotation
        answer = inspect.signature(verb).return_annotation
        if returned is None and answer is Signature.empty:
            returned = "Any"
        elif returned is None:
            same = first is not Parameter.empty and plain.__annotations__.get("return") == first
            own = str(answer) in OWN and same
            returned = "Self" if same or own else self.note(answer, plain.__module__)
        self.add(*write_method(name, (self.parameters(verb), returned)))

    def verbs(self, kind: type, verbs: dict[str, Any]) -> None:
        """Add the verbs of a table, as their class has them."""
        for name in verbs:
            if name not in MEASURING and name not in SPECIAL:
                self.verb(name, getattr(kind, name))

    def planned(self, kind: type, special: set[str]) -> None:
        """Add all verbs of a class that take a price, which become something else."""
        for name in dir(kind):
            verb = getattr(kind, name)
            public = not name.startswith("_") and callable(verb) and name not in special
            if public and "within" in inspect.signature(verb).parameters:
                self.verb(name, verb, "A")

    def text(self) -> str:
        """Return the whole stub, formatted."""
        imports = sorted(set(self.imports.values()))
        return format_code("\n".join([HEADER, *imports, "", *self.lines, ""]))


PRICE = {parameter.name for parameter in PRICE_PARAMETERS}
SPECIAL = {"groupby", "resample", "describe"}


def format_code(text: str) -> str:
    """Return code as ruff formats it."""
    for command in (["check", "--fix", "--quiet", "--select", "I,F401"], ["format"]):
        text = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(STUB), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return text


# The classes ------------------------------------------------------------------------------------

IMPORTS = """
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, Literal, Self, TypeVar, Unpack, overload
import pandas as pd
from pandas.api.typing import Expression
from dpframe._answers.estimate import FloatEstimate, IntEstimate
from dpframe._frame import column, frame, groups, places
from dpframe._frame.selection import BoundsLike, ColumnLike, QuantileLevels, BoundColumn
from dpframe._plans.plan import Plan
from dpframe._plans.price import Payment
from dpframe._session.batch import Batch
from dpframe._session.planned import Planned
"""
ALIASES = '''
A = TypeVar("A", covariant=True)  # what becomes of any question: a plan, or a place in a batch
F = TypeVar("F", bound=frame.PrivateFrame)
C = TypeVar("C", covariant=True)


class Located(places.Located[F, C]):
    """``.loc`` of a tracked frame."""

    @overload
    def __getitem__(self, key: tuple[Any, list[Any] | slice]) -> F: ...
    @overload
    def __getitem__(self, key: tuple[Any, Hashable]) -> C: ...
    @overload
    def __getitem__(self, key: Any) -> F: ...


class Positions(places.Positions[F, C]):
    """``.iloc`` of a tracked frame."""

    @overload
    def __getitem__(self, key: tuple[slice, int]) -> C: ...
    @overload
    def __getitem__(self, key: tuple[slice, list[int] | slice]) -> F: ...
'''
GROUPING = (
    "*, keys: Any = ..., other: Any = ..., bounds: Any = ..., {as_index}, sort: bool | None = ..., "
    "group_keys: bool = ..., observed: bool | None = ..., dropna: bool | None = ..., level: Any = ..."
)


def write_class(name: str, bases: str, doc: str) -> Iterator[str]:
    """Yield the first lines of a class."""
    yield from ("", f"class {name}({bases}):", f'    """{doc}"""')


def write_frames(stub: Stub) -> None:
    """Add tracked frames."""
    kind = surface.PrivateFrame
    stub.add(
        *write_class("PrivateFrame", "frame.PrivateFrame", inspect.getdoc(kind).split("\n")[0])
    )
    stub.verbs(kind, surface.STEPS)
    stub.add(*write_measures(ONE))
    stub.verbs(kind, surface.RELEASES)
    percentiles = f"bounds: BoundsLike = ..., *, percentiles: Any = ..., {PAYMENT}"
    stub.add(
        *write_method(
            "describe",
            (f"column: str, {percentiles}", FLOATS),
            (f"column: list[Any] = ..., {percentiles}", TABLE),
            (f"column: ColumnLike, {percentiles}", FLOATS),
        ),
        *write_method(
            "groupby",
            (
                f"by: Any = ..., {GROUPING.format(as_index='as_index: Literal[False]')}",
                "FlatGroups",
            ),
            (
                f"by: Any = ..., {GROUPING.format(as_index='as_index: Literal[True] = ...')}",
                "Groups",
            ),
        ),
        *write_method("resample", (stub.parameters(kind.resample), "Groups")),
        *write_method("any", (stub.parameters(kind.any), "PrivateColumn")),
        *write_method("all", (stub.parameters(kind.all), "PrivateColumn")),
        *write_items("PrivateColumn"),
        *write_method("plan_ahead", ("", "Batch[ExplainedFrame[Planned]]")),
        "    @property",
        *write_method("explain", ("", "ExplainedFrame[Plan]")),
    )
    stub.add(*write_class("Listed", "PrivateFrame", '``p[["x", "y"]]``: a count is one of each.'))
    stub.add(
        *write_method("count", (f"column: ColumnLike, {PAYMENT}", "IntEstimate"), (PAYMENT, INTS))
    )
    stub.add(
        *write_class(
            "ExplainedFrame",
            "PrivateFrame, Generic[A]",
            "A frame that answers nothing: ``p.explain.mean('x')`` is a plan.",
        )
    )
    stub.planned(kind, MEASURING)
    stub.add(
        *write_measures(PLANNED),
        *write_method("resample", (stub.parameters(kind.resample), "ExplainedGroups[A]")),
        *write_method(
            "groupby",
            (
                f"by: Any = ..., {GROUPING.format(as_index='as_index: bool = ...')}",
                "ExplainedGroups[A]",
            ),
        ),
        *write_items("ExplainedColumn[A]", listed="Self"),
    )


def write_items(column: str, listed: str = "Listed") -> Iterator[str]:
    """Yield the brackets of a frame, ``loc`` and ``iloc``."""
    yield from write_method(
        "__getitem__",
        ("key: str", column),
        ("key: list[Any]", listed),
        ("key: BoundColumn | Expression | Callable[[Any], BoundColumn]", "Self"),
        ("key: Hashable", column),
    )
    yield "    @property"
    yield from write_method("loc", ("", f"Located[Self, {column}]"))
    yield "    @property"
    yield from write_method("iloc", ("", f"Positions[Self, {column}]"))


def write_columns(stub: Stub) -> None:
    """Add tracked columns."""
    kind = surface.PrivateColumn
    stub.add(
        *write_class("PrivateColumn", "column.PrivateColumn", inspect.getdoc(kind).split("\n")[0])
    )
    verbs = {**surface.COLUMN_STEPS, **surface.FILLED}
    special = ("quantile", "groupby", "resample")
    for name in verbs:
        if name not in special:
            stub.verb(name, getattr(kind, name))
    stub.add(
        *write_method(
            "quantile",
            (f"q: float = ..., {BOUNDS}, *, {QUANTILES}", EITHER),
            (f"q: QuantileLevels, {BOUNDS}, *, {QUANTILES}", FLOATS),
        )
    )
    for name in ("agg", "aggregate"):
        stub.add(
            *write_method(
                name,
                (f"spec: str, /, *, {BOUNDS}, {PAYMENT}", EITHER),
                (f"spec: list[str], /, *, {BOUNDS}, {PAYMENT}", NUMBERS),
                (f"spec: None = ..., /, *, {BOUNDS}, **outputs: Any", NUMBERS),
            )
        )
    grouping = [(name, stub.parameters(getattr(kind, name))) for name in ("groupby", "resample")]
    for name, parameters in grouping:
        stub.add(*write_method(name, (parameters, "ColumnGroups")))
    stub.add(
        *write_class(
            "ExplainedColumn",
            "PrivateColumn, Generic[A]",
            "A column that answers nothing: ``p.explain['x'].mean()`` is a plan.",
        )
    )
    stub.planned(kind, set())
    for name, parameters in grouping:
        stub.add(*write_method(name, (parameters, "ExplainedGroups[A]")))


def write_groups(stub: Stub) -> None:
    """Add groups, of each kind."""
    kind = surface.PrivateGroupBy
    stub.add(
        *write_class("PrivateGroupBy", "groups.PrivateGroupBy", inspect.getdoc(kind).split("\n")[0])
    )
    stub.verbs(kind, {"argmax": None, "top": None})
    stub.add("    @property", *write_method("explain", ("", "ExplainedGroups[Plan]")))
    stub.add(
        *write_class(
            "OwnRows",
            "",
            "The verbs of groups that are the rows of one person each. Checkers cannot know which are.",
        )
    )
    for name in dir(PersonGroupBy):
        verb = getattr(PersonGroupBy, name)
        if not name.startswith("_") and callable(verb) and not hasattr(kind, name):
            stub.verb(name, verb, "Any")
    for name, doc, answers in (
        ("ColumnGroups", "``p.groupby('k')['x']``: each answer is a Series.", BY_COLUMN),
        ("ListedGroups", "``p.groupby('k')[['x', 'y']]``: a table.", BY_COLUMNS),
        ("Groups", "``p.groupby('k')``: a Series of a column, and a table of all.", BY_COLUMNS),
        ("FlatGroups", "``p.groupby('k', as_index=False)``: the keys are columns.", FLAT),
    ):
        stub.add(*write_class(name, "PrivateGroupBy, OwnRows", doc))
        stub.add(*write_measures(answers), *write_method("size", (PAYMENT, answers.whole)))
        if name == "Groups":
            stub.add(
                *write_method(
                    "__getitem__",
                    ("key: list[Any]", "ListedGroups"),
                    ("key: Hashable", "ColumnGroups"),
                )
            )
    stub.add(
        *write_class(
            "ExplainedGroups",
            "PrivateGroupBy, Generic[A]",
            "Groups that answer nothing: ``p.explain.groupby('k').size()`` is a plan.",
        )
    )
    stub.planned(kind, MEASURING)
    stub.add(*write_measures(PLANNED))


def write_stub() -> str:
    """Return the text of the stub."""
    stub = Stub()
    for line in IMPORTS.strip().splitlines():
        start, _, names = line.partition(" import ")
        for name in names.split(", ") if names else ():
            stub.imports[name] = f"{start} import {name}"
        if not names:
            stub.imports[line.split()[-1]] = line
    stub.add(ALIASES)
    write_columns(stub)
    write_frames(stub)
    write_groups(stub)
    return stub.text().replace("(): \n", ":\n")


if __name__ == "__main__":
    STUB.write_text(write_stub())
    print(f"wrote {STUB}")
