"""The pages of the reference: one for each verb and each public name, made from docstrings.

`write` puts them into ``docs/reference/api``, where no page is written by hand. What a user can reach is found by looking at the
classes, so that a new verb has its page by being there.
"""

from __future__ import annotations

import inspect
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import inventories

import dpframe
from dpframe._answers.accessor import Answer
from dpframe._answers.hypotheses import HypothesisTest
from dpframe._answers.reports import Estimated, Reports
from dpframe._answers.table import AnswerTable
from dpframe._expr.catalogue.ops import Op, list_ops, signature_of
from dpframe._frame import surface
from dpframe._frame.accessor import Unopened
from dpframe._frame.column import PrivateColumn
from dpframe._frame.groups import PrivateGroupBy
from dpframe._frame.help import PRICE_HELP
from dpframe._frame.people.groups import PersonGroupBy
from dpframe._frame.testing.tests import Tests
from dpframe._plans.budget import Budget

SHORT = 500  # characters of a constant that is shown whole


@dataclass(frozen=True)
class Section:
    """A kind of object that users have in hand, and how they write it."""

    title: str
    kind: type
    written: str
    pandas: str = ""  # whose names its own mean what they mean there
    names: tuple[str, ...] = ()  # for users, where sessions use more of it

    @property
    def folder(self) -> str:
        return self.title.lower().replace(" ", "-")

    @property
    def path(self) -> str:
        """The name that other projects link to: the public one where there is one."""
        name = self.kind.__qualname__
        return f"dpframe.{name}" if name in dpframe.__all__ else f"{self.kind.__module__}.{name}"


SECTIONS = (
    Section("Opening", Unopened, "df.dp"),
    Section("Frames", dpframe.PrivateFrame, "p", "pandas.DataFrame"),
    Section("Columns", PrivateColumn, 'p["x"]', "pandas.Series"),
    Section("Groups", PrivateGroupBy, 'p.groupby("x")'),
    Section("People", PersonGroupBy, 'p.groupby("person")'),
    Section("Tests of hypotheses", Tests, "p.test"),
    Section("Answers", Answer, "answer.dp"),
    Section("Tables", AnswerTable, "answer.dp.table()", "pandas.DataFrame"),
    Section("Results of tests", HypothesisTest, "tested"),
    Section("Estimate", dpframe.Estimate, "estimate"),
    Section("Plan", dpframe.Plan, "plan"),
    Section("Budget", Budget, "p.budget"),
    Section(
        "Accountant",
        dpframe.Accountant,
        "accountant",
        names=(
            "batches",
            "budget",
            "declarations",
            "file",
            "ledger",
            "limits",
            "name",
            "plot",
            "population",
        ),
    ),
    Section("Reports", Reports, "reports.dp"),
    Section("Estimates of reports", Estimated, "local.estimate(reports).dp"),
)
# The names of frames by what they are for, beside the releases and the steps of the surface.
OPERATORS = (
    *("add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow", "rsub", "rdiv"),
    *("eq", "ne", "lt", "le", "gt", "ge", "abs", "round"),
)
SESSION = (
    *("accountant", "budget", "card", "close", "declarations", "explain", "ledger", "open"),
    *("plan_ahead", "report"),
)
LOOKING = (*("columns", "dtypes", "head", "info", "keys", "ndim", "sample", "shape", "tail"),)
# The pages at the top of the reference, by what they are for; others come below them.
GROUPS = {
    caption: [f"docs/reference/api/{place}" for place in places]
    for caption, places in {
        "Open and ask": (
            *("opening/index", "frames/index", "columns/index", "groups/index", "people/index"),
            *("tests-of-hypotheses/index", "arguments", "parts"),
        ),
        "Answers": (
            *("answers/index", "tables/index", "results-of-tests/index", "estimate/index"),
            *("plan/index", "reports/index", "estimates-of-reports/index"),
        ),
        "Budgets": ("budget/index", "accountant/index"),
        "Functions and modules": ("functions/index", "modules/index", "errors", "options"),
    }.items()
}
FUNCTIONS = tuple(name for name in dpframe.__all__ if inspect.isfunction(getattr(dpframe, name)))
ERRORS = tuple(
    name
    for name in dpframe.__all__
    if isinstance(getattr(dpframe, name), type)
    and issubclass(getattr(dpframe, name), Exception | Warning)
)
MODULES = tuple(
    name
    for name in dir(dpframe)
    if inspect.ismodule(getattr(dpframe, name)) and not name.startswith("_")
)


def members(section: Section) -> list[str]:
    """What a user can reach: methods, properties and fields of dpframe's own, without an underscore."""
    kind = section.kind
    names = {f.name for f in fields(kind) if f.name[0] != "_"} if is_dataclass(kind) else set()
    for base in kind.__mro__:
        if base.__module__.split(".")[0] == "dpframe":
            names |= {name for name in vars(base) if not name.startswith("_")}
    return sorted(section.names or names)


def documented(kind: type, name: str) -> bool:
    """Whether a member says what it is: in its docstring, or as a field in a comment that starts with ``#:``."""
    if is_dataclass(kind) and name in {f.name for f in fields(kind)}:
        comment = rf"^ +(#: [^\n]+\n +{name}: |{name}: [^\n]*  #: )"
        return any(
            re.search(comment, inspect.getsource(base), re.MULTILINE) for base in kind.__mro__[:-1]
        )
    return bool(inspect.getdoc(inspect.getattr_static(kind, name)))


def directive(kind: type, name: str) -> str:
    """How Sphinx is told what a member is."""
    member = inspect.getattr_static(
        kind, name, None
    )  # a field of a dataclass is no attribute of the class
    member = getattr(member, "__func__", member)
    return "automethod" if inspect.isfunction(member) else "autoattribute"


def headed(title: str, text: str) -> str:
    return f"{title}\n{'=' * len(title)}\n\n{text}\n"


def summaries(paths: list[str]) -> str:
    """A table with a line for each name, which is linked to its page."""
    return "\n".join(
        [".. autosummary::", "   :nosignatures:", "", *(f"   ~{path}" for path in paths), ""]
    )


def groups_of(section: Section) -> dict[str, list[str]]:
    """Return the names of a section by what they are for. The groups of frames follow the surface."""
    names = members(section)
    if section.kind is not dpframe.PrivateFrame:
        return {"": names}
    groups: dict[str, list[str]] = {
        "Questions, which have a price": [],
        "Groups": [],
        "Rows and columns, at no cost": [],
        "Arithmetic and comparisons, at no cost": [],
        "What is public of the table": [],
        "The session": [],
    }
    asking, grouping, steps, arithmetic, looking, session = groups.values()
    for name in names:
        member = inspect.getattr_static(section.kind, name)
        if name in SESSION:
            session.append(name)
        elif name in LOOKING:
            looking.append(name)
        elif name in OPERATORS:
            arithmetic.append(name)
        elif name in ("groupby", "resample"):
            grouping.append(name)
        elif name in ("fit", "plot", "test") or name in surface.RELEASES:
            asking.append(name)
        elif name in surface.STEPS or inspect.isfunction(member) or isinstance(member, property):
            steps.append(name)
    return groups


def tables_of(section: Section) -> str:
    """Return a table of the names of a section, or one for each group of them."""
    parts = []
    for title, names in groups_of(section).items():
        head = f"{title}\n{'-' * len(title)}\n\n" if title else ""
        parts.append(head + summaries([f"{section.path}.{name}" for name in names]))
    return "\n".join(parts)


def contents(pages: list[str]) -> str:
    return "\n".join([".. toctree::", "   :hidden:", "", *(f"   {page}" for page in pages), ""])


def pages_of(section: Section) -> Iterator[tuple[str, str]]:
    """The page of a kind of object, and one for each of its members."""
    names, in_pandas = members(section), inventories.names("pandas")
    title = f"{section.title}: {section.written}"
    text = f".. autoclass:: {section.path}\n   :no-index-entry:\n\n" + tables_of(section)
    yield f"{section.folder}/index", headed(title, f"{text}\n{contents(names)}")
    for name in names:
        call = f".. {directive(section.kind, name)}:: {section.path}.{name}\n"
        if f"{section.pandas}.{name}" in in_pandas:
            call += f"\nIn pandas: :py:obj:`{section.pandas}.{name}`.\n"
        yield f"{section.folder}/{name}", headed(f"{section.written}.{name}", call)


def page_of(module: str) -> str:
    """The page of a public module, with all its names."""
    home = getattr(dpframe, module)
    things: dict[str, Any] = {name: getattr(home, name) for name in home.__all__}
    lines = [f".. automodule:: dpframe.{module}", ""]
    lines.append(summaries([name for name, thing in things.items() if callable(thing)]))
    for name, thing in things.items():
        if not callable(thing):
            shown = repr(thing) if len(repr(thing)) < SHORT else repr(list(thing))
            lines += [f".. py:data:: {name}", f"   :value: {shown}"]
        elif isinstance(thing, type):
            lines += [f".. autoclass:: {name}", "   :members:"]
        else:
            lines += [f".. autofunction:: {name}"]
        lines.append("")
    return headed(f"dpframe.{module}", "\n".join(lines))


# Functions of cells: the accessor in the catalogue, the heading, and how a call begins.
CELLS = (
    ("str", "Texts", "p['x'].str."),
    ("dt", "Times and durations", "p['x'].dt."),
    ("isocalendar", "Weeks", "p['x'].dt.isocalendar()."),
    ("np", "Numbers", "np."),
    ("", "Texts that are read", ""),
)


def call_of(op: Op) -> str:
    """Return how users write a function of the catalogue behind its accessor."""
    if op.attribute:
        return op.label
    words = []
    parameters = list(signature_of(op).parameters.values())
    for parameter in parameters if op.accessor in ("np", "") else parameters[1:]:
        required = parameter.default is inspect.Parameter.empty
        words.append(parameter.name if required else f"{parameter.name}={parameter.default!r}")
    return f"{op.label}({', '.join(words)})"


def page_of_parts() -> str:
    """Return the page of the functions of cells, from the catalogue."""
    lines = [
        "Each is computed row by row, and costs nothing. In an expression a text part is written "
        "``x.str.len()``, and a function of numpy ``log(x)``.",
        "",
    ]
    for accessor, title, begin in CELLS:
        lines += [title, "-" * len(title), "", ".. list-table::", "   :widths: 40 60", ""]
        for op in sorted(list_ops(accessor).values(), key=lambda op: op.label):
            lines += [f"   * - ``{begin}{call_of(op)}``", f"     - {op.doc}"]
        lines.append("")
    return headed("Functions of cells", "\n".join(lines))


def page_of_arguments() -> str:
    """Return the page of the arguments that all questions take, from what `help` says of them."""
    lines = [
        "Each method that asks takes these. :doc:`The reference </docs/reference/index>` has more "
        "of each.",
        "",
        *(".. list-table::", "   :widths: 20 80", ""),
    ]
    for name, text in PRICE_HELP.items():
        lines += [f"   * - ``{name}=``", f"     - {text}"]
    return headed("Arguments of a question", "\n".join(lines))


def pages() -> Iterator[tuple[str, str]]:
    """Every page, by its place in ``docs/reference/api``."""
    for section in SECTIONS:
        yield from pages_of(section)
    for name in FUNCTIONS:
        yield f"functions/{name}", headed(f"dpframe.{name}", f".. autofunction:: dpframe.{name}")
    table = summaries([f"dpframe.{name}" for name in FUNCTIONS])
    yield "functions/index", headed("Functions: dpframe", f"{table}\n{contents(list(FUNCTIONS))}")
    yield "arguments", page_of_arguments()
    yield "parts", page_of_parts()
    errors = "\n\n".join(
        f".. autoexception:: dpframe.{name}\n   :show-inheritance:" for name in ERRORS
    )
    yield (
        "errors",
        headed("Errors", f"{summaries([f'dpframe.{name}' for name in ERRORS])}\n{errors}"),
    )
    options = (
        ".. autodata:: dpframe.options\n   :no-value:\n\n"
        ".. autoclass:: dpframe._options.Options\n   :members:"
    )
    yield "options", headed("Options: dpframe.options", options)
    for module in MODULES:
        yield f"modules/{module}", page_of(module)
    table = summaries([f"dpframe.{module}" for module in MODULES])
    yield "modules/index", headed("Modules", f"{table}\n{contents(list(MODULES))}")


def write(folder: Path) -> list[str]:
    """Writes the pages that changed, so that Sphinx reads those alone, and removes what is of no name any more.

    Returns the places of the pages that stand at the top, in their order.
    """
    places = dict(pages())
    wanted = {folder / f"{place}.rst": text for place, text in places.items()}
    for path in sorted(folder.rglob("*.rst")):
        if path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in folder.iterdir():
        if path.is_dir() and not any(path.iterdir()):
            shutil.rmtree(path)
    return [place for place in places if place.count("/") == place.endswith("/index")]
