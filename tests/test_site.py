"""The site: every name that users reach has a page and says what it is, and pages are what they show."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest

import dpframe
from dpframe._answers.accessor import Answer
from dpframe._answers.reports import Estimated, Reports
from dpframe._frame.accessor import Unopened
from dpframe._frame.people.groups import PersonGroupBy
from dpframe._frame.surface import PrivateColumn, PrivateGroupBy
from dpframe._ledger.accountant import Budget

SITE = Path(__file__).parent.parent / "docs" / "site"


def part_of_the_site(name: str) -> ModuleType:
    """A module of ``docs/site``, which Sphinx imports by its own name."""
    spec = importlib.util.spec_from_file_location(name, SITE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


inventories = part_of_the_site("inventories")
reference = part_of_the_site("reference")
indexes = part_of_the_site("indexes")
links = part_of_the_site("links")
pictures = part_of_the_site("pictures")
PAGES: dict[str, str] = dict(reference.pages())


def test_every_kind_of_object_that_users_have_in_hand_has_a_section() -> None:
    kinds = {section.kind for section in reference.SECTIONS}
    assert kinds >= {
        Unopened,
        PrivateColumn,
        PrivateGroupBy,
        PersonGroupBy,
        Budget,
        Answer,
        Reports,
        Estimated,
    }
    assert kinds >= {dpframe.PrivateFrame, dpframe.Estimate, dpframe.Plan, dpframe.Accountant}


@pytest.mark.parametrize("section", reference.SECTIONS, ids=lambda section: section.title)
def test_every_member_has_a_page_and_says_what_it_is(section) -> None:
    names = reference.members(section)
    assert names
    for name in names:
        assert f"{section.path}.{name}\n" in PAGES[f"{section.folder}/{name}"]
        assert f"~{section.path}.{name}\n" in PAGES[f"{section.folder}/index"]
        assert reference.documented(section.kind, name), f"{section.path}.{name} has no docstring"


def test_every_public_name_has_a_page() -> None:
    text = "\n".join(PAGES.values())
    for name in dpframe.__all__:
        assert re.search(rf"^\.\. auto\w+:: dpframe\.{name}$", text, re.MULTILINE), name


@pytest.mark.parametrize("module", reference.MODULES)
def test_every_name_of_a_public_module_is_on_its_page(module: str) -> None:
    shown = re.findall(
        r"^\.\. (?:auto\w+|py:data):: (\w+)$", PAGES[f"modules/{module}"], re.MULTILINE
    )
    assert shown == getattr(dpframe, module).__all__


@dataclass
class Silent:
    told: int  #: What it is.
    untold: int
    #: What this is.
    above: int = field(default=1)

    @property
    def bare(self) -> int:
        return self.untold


def test_a_member_that_says_nothing_is_noticed() -> None:
    assert [reference.documented(Silent, name) for name in ("told", "above", "untold", "bare")] == [
        True,
        True,
        False,
        False,
    ]


def test_pages_of_names_that_are_gone_are_removed(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "verb.rst").write_text("verb\n====\n")
    top = reference.write(tmp_path)
    assert not (tmp_path / "gone").exists()
    assert {
        path.relative_to(tmp_path).with_suffix("").as_posix() for path in tmp_path.rglob("*.rst")
    } == set(PAGES)
    assert {"frames/index", "errors"} <= set(top)
    assert "frames/mean" not in top


def test_a_page_of_contents_is_what_an_index_links_to() -> None:
    names = {
        "README",
        "docs/a",
        "docs/how/index",
        "docs/how/x",
        "docs/how/y",
        "docs/how/z",
        "CONTRIBUTING",
    }
    text = "- [The why](y.md#part), see [x](x.md) and [elsewhere](../a.md)."
    assert indexes.contents("docs/how/index", text, names) == (
        ["docs/how/y", "docs/how/x"],
        ["docs/how/z"],
    )
    assert indexes.contents("README", "[a](docs/a.md)", names) == (["docs/a"], ["docs/how/index"])
    assert indexes.contents("docs/develop/index", "", names) == ([], ["CONTRIBUTING"])


def test_every_name_of_a_frame_stands_in_one_group() -> None:
    frames = next(one for one in reference.SECTIONS if one.title == "Frames")
    groups = reference.groups_of(frames)
    assert sorted(name for names in groups.values() for name in names) == reference.members(frames)
    assert all(groups.values())
    assert "mean" in groups["Questions, which have a price"]
    assert "add" in groups["Arithmetic and comparisons, at no cost"]


def test_groups_of_the_reference_name_pages_that_there_are() -> None:
    places = {f"docs/reference/api/{place}" for place, _ in reference.pages()}
    assert {name for names in reference.GROUPS.values() for name in names} <= places
    assert indexes.grouped(["z"]) == [("", ["z"])]


def test_lists_under_headings_are_groups_and_other_links_are_not() -> None:
    text = "| [c](c.md#x) |\n\n## One\n\n- [The a](a.md)\n\n## Two\n\n- [b](b.md), [c](c.md)\n"
    assert indexes.groups("how/index", text, ["how/c", "how/a", "how/b"]) == [
        ("One", ["how/a"]),
        ("Two", ["how/b"]),
        ("", ["how/c"]),
    ]
    assert indexes.groups("how/index", "## One\n\n- [a](a.md)\n", ["how/a"]) == [("", ["how/a"])]
    assert ":caption: One" in indexes.toctree(["how/a"], {"how/a": "The a"}, ":hidden:", "One")


def test_stored_inventories_name_what_there_is() -> None:
    import numpy
    import pandas

    for module in (numpy, pandas):
        for name in inventories.names(module.__name__):
            thing = module
            for part in name.split(".")[1:]:
                thing = getattr(thing, part)


PAGE = """# Pictures

```python
height = 3
```

## Bars

```python
from matplotlib import pyplot as plt

ax = plt.subplots()[1]
ax.bar(["a"], [height])
ax.set_title("a [b]")
```

```python
>>> height
4
```
"""


def test_a_picture_stands_below_the_code_that_draws_it(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    text = pictures.drawn("docs/pictures", PAGE, tmp_path)
    assert text == PAGE.replace(
        'ax.set_title("a [b]")\n```\n',
        'ax.set_title("a [b]")\n```\n\n![Bars; a  b ](/docs/pictures/pictures-1.png)\n',
    )
    assert [path.name for path in tmp_path.iterdir()] == ["pictures-1.png"]


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.html").write_text(
        '<p id="x"><a class="y" href="../two.html#z"><a href="#x"><a href="#gone"><a href="https://host/"><img src="none.png">'
    )
    (tmp_path / "two.html").write_text(
        '<h1 id="z"></h1><a href="a/one.html#x"><a href="three.html?q#x">'
    )
    assert links.broken(tmp_path) == [
        "a/one.html: #gone",
        "a/one.html: none.png",
        "two.html: three.html?q#x",
    ]
