"""What a package index and its readers get: one version in all places, links that lead somewhere, files that the tests need."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dpframe
from dpframe.__main__ import main

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SETUP = runpy.run_path(str(ROOT / "setup.py"))  # under another name than __main__ nothing is set up


def test_version_is_the_same_everywhere() -> None:
    citation = re.search(
        r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE
    )
    recipe = re.search(r'version: "(\S+)"', (ROOT / ".github/conda/recipe.yaml").read_text("utf-8"))
    assert citation is not None
    assert recipe is not None
    assert {citation[1], recipe[1], dpframe.__version__} == {PROJECT["version"]}


def test_recipe_needs_what_the_package_needs() -> None:
    recipe = (ROOT / ".github/conda/recipe.yaml").read_text("utf-8")
    run = re.findall(
        r"^    - (.+)$", recipe.partition("  run:\n")[2].partition("tests:")[0], re.MULTILINE
    )
    needed = {f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]}
    assert {line.replace(" ", "") for line in run} == needed


def test_python_versions_of_the_tests_are_those_that_are_named() -> None:
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    matrix = re.search(r"python: \[(.+)\]", (ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    assert matrix is not None
    assert re.findall(r"3\.\d+", matrix[1]) == named
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_links_of_the_readme_lead_to_the_tag_of_the_version() -> None:
    text = SETUP["as_shown_elsewhere"](
        (ROOT / "README.md").read_text("utf-8"), "https://host/dpframe", "1.2.3"
    )
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links
    for link in links:
        kind = "raw" if link.endswith(".png") else "blob"
        place, _, path = link.partition(f"https://host/dpframe/{kind}/v1.2.3/")
        assert place == ""
        assert (ROOT / path).exists()


def test_readme_has_no_dead_links_without_an_address() -> None:
    shown = SETUP["as_shown_elsewhere"]
    assert "](" not in shown((ROOT / "README.md").read_text("utf-8"), "", "1.2.3")
    kept = "[a](https://host/a), `x[0]` (b)"
    assert shown(f"{kept} [c](d.md#e)", "", "1.2.3") == f"{kept} c"
    assert shown("a\n\n![b](c.png)\n\nd", "", "1.2.3") == "a\n\nd"
    assert SETUP["addresses"]("", "1.2.3") == {}
    assert set(SETUP["addresses"]("https://host/dpframe", "1.2.3").values()) >= {
        "https://host/dpframe"
    }


def test_source_distribution_holds_what_the_tests_read() -> None:
    """By its rules: every file beside the folders, and every folder that is no cache, is taken."""
    rules = (ROOT / "MANIFEST.in").read_text("utf-8")
    taken = set(re.findall(r"^graft (\S+)$", rules, re.MULTILINE)) | {"dpframe"}
    assert taken >= {".ci", ".github", "docs", "notebooks", "tests"}
    assert all((ROOT / folder).is_dir() for folder in taken)


def test_versions_are_shown_as_text_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    main(["versions"])
    text = capsys.readouterr().out
    assert re.search(rf"^dpframe +{re.escape(dpframe.__version__)}$", text, re.MULTILINE)
    dpframe.show_versions(as_json=True)
    versions = json.loads(capsys.readouterr().out)
    assert versions["pandas"] == __import__("pandas").__version__
    assert set(versions) == {line.split()[0] for line in text.splitlines()}


def test_a_package_that_is_not_there_has_no_version(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpframe.__main__._BESIDE", ("no-such-package",))
    dpframe.show_versions()
    assert re.search(r"^no-such-package +-$", capsys.readouterr().out, re.MULTILINE)


def test_a_file_of_tests_that_cannot_be_imported_is_an_error(tmp_path: Path) -> None:
    """With the options of this project, of which `--doctest-ignore-import-errors` would make it a file without tests."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"][
        "ini_options"
    ]["addopts"]
    broken = tmp_path / "test_broken.py"
    broken.write_text("import no_such_module\n\n\ndef test_it():\n    pass\n", "utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        os.devnull,
        *options.split(),
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
    ]
    run = subprocess.run(
        [*command, str(broken)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert "1 error" in run.stdout
