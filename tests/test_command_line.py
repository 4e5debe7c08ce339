"""``python -m dpframe ledger FILE``: what an owner reads in a ledger, as text and as JSON; it changes nothing."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pandas as pd
import pytest

from dpframe.__main__ import main
from dpframe._ledger.sqlite import FileStore
from dpframe.datasets import patient_visits, visits
from tests.ledger.people import begun, opened, people, posix, python, sql

RUN = "import sys; from dpframe.__main__ import main; main(sys.argv[1:])"


@pytest.fixture
def path(tmp_path):
    """A ledger of two populations, of which one was asked."""
    path = str(tmp_path / "budget.db")
    p = opened(path, "patients-2026")
    p.count(epsilon=0.25, name="how many")
    oldest = 70
    p.query("age < @oldest").groupby("state")["cost"].mean(epsilon=0.5)
    q = opened(
        path, "visits", people(seed=1), epsilon=3, delta=1e-6, version="2026-11", because=None
    )
    q.mean("age", epsilon=0.125, mechanism="gaussian")
    assert oldest
    return path


def told(capsys, *words):
    main(["ledger", *map(str, words)])
    return capsys.readouterr().out


def test_text_has_populations_what_they_spent_and_on_what(path, capsys):
    text = told(capsys, path)
    first, second = text.index("population 'patients-2026'"), text.index("population 'visits'")
    assert first < second
    for words in (
        "accountant 'pure'",
        "0.75 of epsilon 1 spent, 0.25 left",
        "size()",
        "mean(cost, bounds=(0, 1000))",
        "how many",
        "'age': (0, 110)",
        "oldest = 70",
    ):
        assert first < text.index(words) < second
    for words in ("accountant 'tight'", "mean(age", "gaussian", "2026-11"):
        assert text.index(words, second) > second


def test_json_has_the_same_for_programs(path, capsys):
    found = json.loads(told(capsys, path, "--json"))
    assert json.loads(told(capsys, "--json", path)) == found
    assert found["ledger"] == path
    first, second = found["populations"]
    assert (first["population"], first["accountant"]) == ("patients-2026", "pure")
    assert (first["epsilon"], first["delta"], first["used"]) == (1, 0, 0.75)
    assert [d["question"].split("(")[0] for d in first["debits"]] == ["size", "mean"]
    assert [(d["epsilon"], d["delta"], d["mechanism"], d["name"]) for d in first["debits"]] == [
        (0.25, 0, "laplace", "how many"),
        (0.5, 0, "laplace", None),
    ]
    assert first["debits"][0]["when"].startswith("20")
    assert {d["what"] for d in first["declarations"]} == {"bounds", "keys", "@name"}
    assert (second["population"], second["epsilon"], second["delta"]) == ("visits", 3, 1e-6)
    assert 0 < second["used"] < 1
    assert [d["mechanism"] for d in second["debits"]] == ["gaussian"]
    assert "version" in {d["what"] for d in second["declarations"]}


@posix
def test_command_works_in_a_process_of_its_own_beside_an_open_session(path):
    begun(path, "third", people(seed=2), spent=1)
    lines = python(RUN, "ledger", path)
    assert [line for line in lines if line.startswith("population")] == [
        "population 'patients-2026', accountant 'pure'",
        "population 'visits', accountant 'tight'",
        "population 'third', accountant 'pure'",
    ]


def test_reading_changes_nothing(path, capsys):
    before = Path(path).read_bytes()
    told(capsys, path)
    told(capsys, path, "--json")
    assert Path(path).read_bytes() == before
    assert os.listdir(Path(path).parent) == [Path(path).name]


def test_answers_and_sketches_are_not_shown(path, capsys):
    store = FileStore(path)
    entries = [e for name in store.populations() for e in store.entries(name)]
    answers = [json.loads(e.body)["raw"] for e in entries if e.kind == "answer"]
    hashes = [h for e in entries if e.kind == "sketch" for h in json.loads(e.body)["hashes"]]
    assert len(answers) == 3
    assert len(hashes) == 2 * 256
    for text in (told(capsys, path), told(capsys, path, "--json")):
        assert not any(h in text for h in hashes)
        assert not any(raw[0]["data"] in text for raw in answers)


def test_ledger_without_populations_says_so(tmp_path, capsys):
    FileStore(tmp_path / "new.db")
    assert "no populations" in told(capsys, tmp_path / "new.db")
    assert json.loads(told(capsys, tmp_path / "new.db", "--json"))["populations"] == []


@pytest.mark.parametrize("how", [[], ["--json"]], ids=["text", "json"])
def test_missing_file_is_an_error_and_is_not_made(tmp_path, capsys, how):
    with pytest.raises(SystemExit) as caught:
        main(["ledger", str(tmp_path / "missing.db"), *how])
    assert "dpframe: there is no ledger file" in str(caught.value.code)
    assert os.listdir(tmp_path) == []
    assert capsys.readouterr().out == ""


WRONG = {
    "it is damaged": lambda path: os.truncate(path, os.path.getsize(path) // 2),
    "the file is empty": lambda path: os.truncate(path, 0),
    "not a database": lambda path: Path(path).write_text("a,b\n1,2\n" * 500),
    "Use a newer dpframe": lambda path: sql(path, "PRAGMA user_version = 2"),
    "another program": lambda path: sql(path, "PRAGMA application_id = 7"),
    "tables or triggers": lambda path: sql(path, "DROP TRIGGER d"),
}


@pytest.mark.parametrize("how", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_file_is_an_error_and_nothing_of_it_is_shown(path, capsys, wrong, how):
    WRONG[wrong](path)
    before = Path(path).read_bytes()
    with pytest.raises(SystemExit) as caught:
        main(["ledger", path, *how])
    assert str(caught.value.code).startswith("dpframe: the ledger")
    assert wrong in str(caught.value.code)
    assert capsys.readouterr().out == ""
    assert Path(path).read_bytes() == before


def test_directory_is_no_ledger(tmp_path):
    with pytest.raises(SystemExit, match="directory or no regular file"):
        main(["ledger", str(tmp_path)])


@pytest.mark.parametrize(
    "words", [["ledger"], [], ["ledger", "a", "b"], ["ledger", "--jason", "a"]]
)
def test_wrong_words_show_the_usage(words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert "usage: python -m dpframe" in capsys.readouterr().err


def test_demo_still_runs_as_a_module():
    lines = python(
        "import runpy, sys; sys.argv = ['dpframe', 'demo']; runpy.run_module('dpframe', run_name='__main__')"
    )
    assert lines[0].startswith("A synthetic table")
    assert any("left" in line for line in lines)


# Questions on a file ------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A CSV file of synthetic visits in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    visits(400).to_csv("visits.csv", index=False)
    return "visits.csv"


def answered(capsys, *words):
    """Return what a command prints as its answer."""
    main([*map(str, words)])
    return capsys.readouterr().out


def failed(capsys, *words):
    """Return the error of a command, which is one line and exits with status 2."""
    with pytest.raises(SystemExit) as caught:
        main([*map(str, words)])
    printed = capsys.readouterr()
    assert caught.value.code == 2
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("dpframe: ")
    return printed.err


KEEP = ("--ledger", "b.db")


def test_count_goes_on_with_the_budget_of_its_ledger(table, capsys):
    first = answered(capsys, "count", table, "--epsilon", 0.1, *KEEP)
    assert "0.1 of epsilon 1 spent" in first
    assert answered(capsys, "count", table, "--epsilon", 0.1, *KEEP) == first  # free, and the same
    assert "0.3 of epsilon 1" in answered(capsys, "count", table, "--epsilon", 0.2, *KEEP)
    assert "population 'visits'" in told(capsys, "b.db")


def test_count_reads_parquet(table, capsys, tmp_path):
    visits(400).to_parquet("visits.parquet")
    assert "| rows" in answered(capsys, "count", "visits.parquet", *KEEP, "--budget", 2)
    assert "of epsilon 2" in answered(capsys, "count", "visits.parquet", *KEEP)


QUESTIONS = {
    "count": ["--where", "age >= 65"],
    "mean": ["age", "--bounds", 0, 110],
    "histogram": ["age", "--bounds", 0, 110, "--bins", 5],
    "groupby": ["state", "--keys", "CA", "NY"],
}


@pytest.mark.parametrize("command", QUESTIONS)
def test_formats_have_the_same_numbers(table, capsys, command):
    words = [command, table, *QUESTIONS[command], *KEEP, "--epsilon", 0.2]
    text = answered(capsys, *words)
    found = json.loads(answered(capsys, *words, "--format", "json"))
    read = pd.read_csv(io.StringIO(answered(capsys, *words, "--format", "csv")))
    assert list(read["value"]) == [row["value"] for row in found["answer"]]
    assert all(f" {row['value']:g} " in text for row in found["answer"])
    assert found["budget"]["used"] == 0.2
    assert {"lower", "upper", "flags"} <= set(read)


def test_groupby_asks_about_a_column_and_edges_are_bins(table, capsys):
    words = ["groupby", table, "state", "cost", "--keys", "CA", "--bounds", 0, 9000, *KEEP]
    assert "sum(cost" in answered(capsys, *words, "--agg", "sum")
    assert "mean(cost" in answered(capsys, *words)
    shown = answered(capsys, "histogram", table, "age", "--bins", 0, 18, 65, 110, *KEEP)
    assert "[18.0, 65.0)" in shown


def test_keys_have_the_type_of_their_column(table, capsys):
    shown = answered(capsys, "groupby", table, "days", "--keys", 1, 2, *KEEP, "--format", "csv")
    assert shown.split("\n")[1].startswith("1,rows")
    assert "True,rows" in answered(
        capsys, "groupby", table, "smoker", "--keys", "true", *KEEP, "--format", "csv"
    )
    assert "--keys" in failed(capsys, "groupby", table, "days", "--keys", "one", *KEEP)


def test_people_count_for_at_most_their_rows(capsys, table):
    patient_visits(people=50).to_csv("p.csv", index=False)
    words = ["count", "p.csv", "--unit", "patient_id", "--max-rows", 3, *KEEP, "--format", "json"]
    found = json.loads(answered(capsys, *words))
    assert found["budget"]["unit"] == "all rows of one person, by patient_id"


def test_without_a_ledger_a_note_says_that_budgets_add_up(table, capsys):
    main(["count", table, "--epsilon", "0.5"])
    printed = capsys.readouterr()
    assert "without --ledger" in printed.err
    assert "0.5 of epsilon 1 spent" in printed.out


def test_narrow_terminal_gets_a_list(table, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    shown = answered(capsys, "groupby", table, "state", "--keys", "CA", "NY", *KEEP)
    assert "- state: CA" in shown
    assert all(len(line) <= 40 for line in shown.split("\n"))


MISTAKES = {
    "no such file": (["count", "nowhere.csv"], "there is no file 'nowhere.csv'"),
    "no such column": (["mean", "visits.csv", "height"], "no column 'height'. The columns are"),
    "no bounds": (["mean", "visits.csv", "age"], "--bounds LOW HIGH"),
    "no keys": (["groupby", "visits.csv", "state"], "--keys KEY KEY"),
    "unknown format": (["count", "visits.csv", "--format", "xml"], "invalid choice: 'xml'"),
    "unknown ending": (["count", "b.db"], "a .csv, .tsv or .parquet file"),
    "too expensive": (["count", "visits.csv", "--epsilon", 5], "does not allow this question"),
    "a wrong condition": (["count", "visits.csv", "--where", "age >>"], "not one expression"),
    "no number": (["count", "visits.csv", "--epsilon", "much"], "invalid float value"),
    "no file": (["count"], "required: file"),
    "no card": (["count", "visits.csv", "--card", "none.toml"], "none.toml"),
    "a damaged file": (["count", "bad.parquet"], "'bad.parquet' cannot be read as a table"),
    "a folder": (["count", ".csv"], "cannot be read as a table"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_one_line_and_exits_with_2(table, capsys, mistake):
    Path("bad.parquet").write_text("no table")
    os.mkdir(".csv")
    words, message = MISTAKES[mistake]
    assert message in failed(capsys, *words)


def test_changed_file_is_another_version(table, capsys):
    answered(capsys, "count", table, *KEEP)
    visits(400, seed=7).to_csv(table, index=False)
    assert "version=" in failed(capsys, "count", table, *KEEP)
    assert "| rows" in answered(capsys, "count", table, *KEEP, "--version", "2026-12")
