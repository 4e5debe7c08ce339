"""The documentation runs: every Python block of every page, in order, in one namespace a page."""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import re
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import dpframe
from dpframe import PrivateFrame
from dpframe.mechanisms import _sampling
from tests.internals import forget_tables
from tests.noise import Repeatable
from tests.postgres import Postgres

ROOT = Path(__file__).parent.parent
PAGES = [
    *(
        ROOT / name
        for name in (
            "README.md",
            "CONTRIBUTING.md",
            "CHANGELOG.md",
            "SECURITY.md",
            "CODE_OF_CONDUCT.md",
        )
    ),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "notebooks" / "README.md",
]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# What the block above prints, as a page shows it.
SHOWN = re.compile(r"\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else page.name


class Block(NamedTuple):
    """A block of Python on a page."""

    line: int  # where it starts
    source: str
    shown: str | None = None  # the output below it, where the page has one
    span: tuple[int, int] = (0, 0)  # where that output stands in the text of the page


def read_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of Python of a text, each with the output that stands below it."""
    for fence in FENCE.finditer(text):
        line, below = text.count("\n", 0, fence.start(1)), SHOWN.match(text, fence.end() + 1)
        if below is None:
            yield Block(line, fence.group(1))
        else:
            yield Block(line, fence.group(1), below.group(1), below.span(1))


def blocks(page: Path) -> list[tuple[int, str]]:
    """Each block with the number of the line it starts at."""
    return [block[:2] for block in read_blocks(page.read_text(encoding="utf-8"))]


@contextlib.contextmanager
def fix_noise(name: str) -> Iterator[None]:
    """Draw noise that follows from a name, so that a page shows the same numbers in each run."""
    before = _sampling.random_bytes
    _sampling.random_bytes = Repeatable(name)
    try:
        yield
    finally:
        _sampling.random_bytes = before


def walk(page: Path, names: dict[str, object]) -> Iterator[tuple[Block, str]]:
    """Run the blocks of a page in order, and yield each that has an output, with what it printed.

    The noise of a block follows from its page and its text: other blocks may change. A page is read
    by itself, so tables that other pages opened are forgotten.
    """
    names["__name__"] = "__page__"
    forget_tables()
    for block in read_blocks(page.read_text(encoding="utf-8")):
        with fix_noise(f"{page.name}|{block.source}"):
            if block.shown is None:
                run_block(page, block.line, block.source, names)
            else:
                yield block, print_block(page, block, names)


def run(page: Path, names: dict[str, object] | None = None) -> int:
    """Run a page, in a namespace if one is given; how many blocks it had."""
    for block, printed in walk(page, {} if names is None else names):
        place = f"{name_of(page)}, line {block.line + 1}"
        assert is_shown(block, printed), f"{place}\nExpected:\n{block.shown}Got:\n{printed}"
    return len(blocks(page))


def is_shown(block: Block, printed: str) -> bool:
    """Return whether a page shows what its block printed; ``...`` stands for any text."""
    assert block.shown is not None
    return doctest.OutputChecker().check_output(block.shown, printed, FLAGS)


@contextlib.contextmanager
def show_warnings() -> Iterator[None]:
    """Print privacy warnings, as a notebook shows them above an answer."""

    def show(message: Warning | str, category: type[Warning], *rest: object) -> None:
        assert issubclass(category, dpframe.PrivacyWarning), message
        print(f"{category.__name__}: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", dpframe.PrivacyWarning)
        warnings.showwarning = show
        yield


def print_block(page: Path, block: Block, names: dict[str, object]) -> str:
    """Run a block as a notebook runs a cell, and return what that shows.

    These are privacy warnings, what the block prints, and its last value.
    """
    tree = ast.parse("\n" * block.line + block.source)
    printed, last = io.StringIO(), tree.body[-1]
    with contextlib.redirect_stdout(printed), show_warnings():
        if isinstance(last, ast.Expr):
            tree.body.pop()
            exec(compile(tree, str(page), "exec", dont_inherit=True), names)
            value = eval(compile(ast.Expression(last.value), str(page), "eval"), names)
            if value is not None:
                print(repr(value))
        else:
            exec(compile(tree, str(page), "exec", dont_inherit=True), names)
    lines = [line.rstrip() for line in printed.getvalue().splitlines()]
    return "\n".join(lines).strip("\n") + "\n"


def run_block(page: Path, line: int, source: str, names: dict[str, object]) -> None:
    """Run one block, whose outputs have to be those of the page where it has any."""
    if source.lstrip().startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(source, names, name_of(page), str(page), line)
        test.globs = names  # a DocTest copies its namespace; later blocks need what it defines
        report: list[str] = []
        result = doctest.DocTestRunner(optionflags=FLAGS).run(
            test, out=report.append, clear_globs=False
        )
        assert result.failed == 0, "".join(report)
    else:
        exec(compile("\n" * line + source, str(page), "exec", dont_inherit=True), names)


@cache
def anchors(page: Path) -> set[str]:
    """The fragments that GitHub gives the headings of a page."""
    text = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


# Pages whose examples need other libraries.
NEEDED = {
    "other-engines.md": ("polars", "duckdb", "dask.dataframe"),
    "larger-than-memory.md": ("pyarrow",),
}
# Pages whose examples need more than a Python: what has to be there, as a fixture.
NEEDS = {"docs/how-to/team-budget.md": "budgets"}


@pytest.fixture
def budgets(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address of a database for ledgers, in the environment."""
    monkeypatch.setenv("BUDGETS", postgres.create("budgets"))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if name_of(page) not in NEEDS], ids=name_of
)
def test_every_example_of_the_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where a page may write a file
    for library in NEEDED.get(page.name, ()):
        pytest.importorskip(library)
    run(page)


TRANSLATIONS = ROOT / "docs" / "how-to" / "from-pandas.md"


def translations(title: str) -> list[tuple[str, str]]:
    """The lines of pandas in the table under a heading, each with the private one."""
    text = (
        TRANSLATIONS.read_text(encoding="utf-8")
        .partition(f"\n## {title}\n")[2]
        .partition("\n## ")[0]
    )
    return re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", text, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def opened() -> dict[str, object]:
    """What the page of translations has opened, where a line may be tried."""
    names: dict[str, object] = {}
    plt = pytest.importorskip("matplotlib.pyplot", reason="pictures need matplotlib")
    plt.switch_backend("Agg")
    run(TRANSLATIONS, names)
    return names


REFUSED = [
    *translations("Refused, and what to write"),
    *translations("numpy functions that want the array"),
]
MEANT = [
    *translations("Answered, and meant in another way"),
    *translations("numpy functions that stay"),
]


@pytest.mark.filterwarnings("ignore::dpframe.PrivacyWarning")  # of limits that leave rows out
@pytest.mark.parametrize(("line", "private"), REFUSED)
def test_line_of_pandas_is_refused_for_nothing_and_its_translation_answers(
    line: str,
    private: str,
    opened: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # where a line may write a file
    eval(line, opened)
    p = opened["p"]
    assert isinstance(p, PrivateFrame)
    spent = p.budget.spent
    with pytest.raises(dpframe.DPError):
        eval(re.sub(r"\bdf\b", "p", line), opened)
    if not line.startswith('df["cost"].mean() / '):  # whose first half is a question
        assert p.budget.spent == spent
    assert eval(private, opened) is not None


@pytest.mark.parametrize(("line", "private"), MEANT)
def test_a_line_that_means_something_else_is_answered(
    line: str, private: str, opened: dict[str, object]
) -> None:
    assert private == re.sub(r"\bdf\b", "p", line)
    assert eval(line, opened) is not None
    assert eval(private, opened) is not None


@pytest.mark.extras
@pytest.mark.parametrize("page", NEEDS)
def test_every_example_of_a_page_runs_where_there_is_what_it_needs(
    page: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(NEEDS[page])
    assert run(ROOT / page)


def broken_links(page: Path) -> list[str]:
    """Return the links of a page to files and headings that are not there."""
    found = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith(("http://", "https://")):
            continue
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (fragment and fragment not in anchors(target)):
            found.append(f"{name_of(page)} links to {link}")
    return found


def test_links_lead_to_pages_and_headings_that_exist() -> None:
    assert [link for page in PAGES for link in broken_links(page)] == []


def test_a_link_that_leads_nowhere_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n\n[a](#one) [b](#two) [c](none.md) [d](page.md#one)", encoding="utf-8")
    assert broken_links(page) == ["page.md links to #two", "page.md links to none.md"]


def test_no_page_names_a_path_of_somebodys_machine() -> None:
    path = re.compile(r"/(home|tmp|work|Users|root)/")
    assert [name_of(p) for p in PAGES if path.search(p.read_text(encoding="utf-8"))] == []


@cache
def list_files() -> list[str]:
    """Return the files of the package and of its tests."""
    return [
        f"/{path.relative_to(ROOT)}"
        for folder in ("dpframe", "tests")
        for path in (ROOT / folder).rglob("*.py")
    ]


NAMED = re.compile(r"`([\w/.-]+\.py)[`:]")


def gone(text: str) -> list[str]:
    """The files of the project that a text names, by the end of their path, and that are not there."""
    return [
        name
        for name in NAMED.findall(text)
        if not any(file.endswith(f"/{name}") for file in list_files())
    ]


def test_files_that_a_page_names_exist() -> None:
    """But for the pages that add something, which name files of their own."""
    pages = [page for page in PAGES if not page.name.startswith("add-")]
    found = {name_of(page): gone(page.read_text(encoding="utf-8")) for page in pages}
    assert {page: names for page, names in found.items() if names} == {}


def test_a_file_that_is_gone_is_noticed() -> None:
    assert gone("`plot.py`, `tests/test_docs.py::test_x` and `dpframe/_session/session.py`") == []
    assert gone("The code is `_lineage.py`; see `tests/test_none.py::test_x`.") == [
        "_lineage.py",
        "tests/test_none.py",
    ]


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page.is_dir():  # a link to a folder shows its pages
            waiting += page.glob("*.md")
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        links = [
            link.partition("#")[0]
            for link in LINK.findall(page.read_text(encoding="utf-8"))
            if not link.startswith("http")
        ]
        waiting += [(page.parent / link).resolve() for link in links if link]
    assert set(PAGES) <= seen


def test_a_wrong_output_on_a_page_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n```python\n>>> x + 1\n3\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="Expected"):
        run(page)


def test_an_output_below_a_block_is_compared_with_what_the_block_prints(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\nprint(x)\nx + 1\n```\n\n```text\n1\n2\n```\n", "utf-8")
    assert run(page) == 1
    page.write_text("```python\nx = 1\nx + 1\n```\n\n```text\n3\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"Expected:\s+3\s+Got:\s+2"):
        run(page)


def test_noise_of_a_page_is_the_same_in_each_run_and_another_in_each_block(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    draw = "from dpframe.mechanisms import _sampling\nprint(_sampling.random_bytes(8))"
    text = "\n".join(f"```python\n{draw}  # {n}\n```\n\n```text\n?\n```\n" for n in (1, 2))
    page.write_text(text, encoding="utf-8")
    first, again = ([printed for _, printed in walk(page, {})] for _ in range(2))
    assert first == again
    assert first[0] != first[1]


def test_a_block_that_raises_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nundefined\n```\n", encoding="utf-8")
    with pytest.raises(NameError):
        run(page)


def test_the_readme_has_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "pip install . && python -m dpframe demo" in text
    assert re.search(r"pip install -e '?\.\[[a-z,]+\]'?.*pytest", text)
