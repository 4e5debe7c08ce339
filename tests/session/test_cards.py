"""Cards: the public facts of a table in a file, written, read, refused with the line, and kept in the ledger."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe
from dpframe import BadType, BadValue, PrivacyWarning, Refused, SessionError, UnknownColumn
from dpframe.__main__ import main

CARD = """\
author = "registry"
reason = "the code book"
version = "2026-11"
population = "patients"
unit = "pid"
max_rows = 3
max_groups = 2

[columns.pid]
dtype = "int64"

[columns.age]
dtype = "int64"
bounds = [0, 110]

[columns."home state"]
keys = ["CA", "NY", {null = true}]
author = "post office"
reason = "there are two"

[columns.seen]
bounds = [2026-01-01, 2026-12-31]

[[combinations]]
columns = ["home state", "age"]
keys = [["CA", 1], ["NY", 2]]
"""


def table(seed=0, rows=40):
    drawn = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "pid": drawn.integers(0, 12, rows),
            "age": drawn.integers(0, 100, rows),
            "home state": drawn.choice(["CA", "NY"], rows),
            "seen": pd.Timestamp("2026-03-01")
            + pd.to_timedelta(drawn.integers(0, 90, rows), unit="D"),
        }
    )


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "visits.toml"
    path.write_text(CARD.replace("patients", tmp_path.name))  # a budget of its own for each test
    return path


def test_a_card_is_what_its_words_are(path):
    p = table().dp.open(1, card=path)
    q = table().dp.open(
        1,
        unit="pid",
        max_rows=3,
        max_groups=2,
        bounds={"age": (0, 110), "seen": ("2026-01-01", "2026-12-31")},
        keys={"home state": ["CA", "NY", None], ("home state", "age"): [("CA", 1), ("NY", 2)]},
        version="2026-11",
        population="patients of the other budget",
    )
    for ask in (
        lambda p: p.explain.mean("age"),
        lambda p: p.explain.groupby("home state").size(),
        lambda p: p.explain.resample("ME", on="seen").size(),
        lambda p: p.explain.groupby(["home state", "age"]).size(),
    ):
        assert ask(p) == ask(q)


def test_every_word_is_a_declaration_with_author_and_reason(path):
    declared = table().dp.open(1, card=str(path)).declarations
    shown = declared["value"].where(
        declared["what"] == "population", declared["value"].str.slice(0, 12)
    )
    by = dict(zip(declared["what"] + " " + shown, declared["where"], strict=True))
    book, post = (
        "card visits.toml by registry: the code book",
        "card visits.toml by post office: there are two",
    )
    assert by == {
        "bounds 'age': (0, 1": book,
        "bounds 'seen': 2026": book,
        "keys 'home state'": post,
        "keys ('home state": book,
        "version 2026-11": book,
        f"population {path.parent.name}": book,
        "unit 'pid'": book,
        "max_rows 3": book,
        "max_groups 2": book,
    }


def test_an_argument_beside_the_card_stands_before_it(path):
    p = table().dp.open(1, card=path, max_rows=5, bounds={"age": (0, 90)}, population="others")
    assert "(0, 90)" in p.explain.mean("age").question
    assert (p._session.unit.rows, p.accountant.population) == (5, "others")
    declared = p.declarations
    assert set(declared.loc[declared["value"] == "'age': (0, 90)", "where"]) == {"open"}
    assert not (declared["what"].isin(["max_rows", "population"])).any()
    assert (
        declared["value"].str.startswith("'seen'") & declared["where"].str.startswith("card")
    ).any()


@pytest.mark.parametrize("form", ["toml", "json"])
def test_what_is_written_is_read_as_the_same(path, form, tmp_path):
    p = table().dp.open(1, card=path)
    text = p.card(tmp_path / "again", format=form)
    assert (tmp_path / "again").read_text() == text
    again = table().dp.open(2, card=tmp_path / "again", population="a second budget")
    assert again.card(format=form) == text.replace(f'"{tmp_path.name}"', '"a second budget"')
    third = table().dp.open(2, card=p.card(format=form), population="a third budget")
    assert third.explain.groupby("home state").mean("age") == p.explain.groupby("home state").mean(
        "age", epsilon=0.1
    )


def test_a_card_of_all_kinds_of_keys_is_read_as_the_same():
    frame = pd.DataFrame(
        {
            "bin": pd.cut(pd.Series([1, 5, 9]), [0, 4, 10]),
            "month": pd.Series(pd.PeriodIndex(["2026-01", "2026-02", "2026-01"], freq="M")).astype(
                "category"
            ),
            "price": pd.Series([Decimal("0.10"), Decimal("2"), None], dtype="category"),
            "flag": [True, False, True],
            "level": [1, 2, 3],
            "share": [0.5, -0.0, 1e300],
            "day": pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-02"]),
            'odd "name"\n': ["a\x7f", 'b"\\', "c"],
        }
    )
    keys = {
        "bin": [pd.Interval(0, 4), pd.Interval(4, 10, closed="both")],
        "month": [pd.Period("2026-01", "M"), None],
        "price": [Decimal("0.10"), Decimal("2")],
        "flag": [False, True],
        "level": range(1, 200, 3),
        "share": [0.5, -2.0],
        "day": [pd.Timestamp("2026-01-01"), pd.Timestamp("2026-01-02T00:00:00.000000001")],
        'odd "name"\n': ["a\x7f", 'b"\\', "ü", "\x00"],
    }
    p = frame.dp.open(1, keys=keys)
    for form in ("toml", "json"):
        again = frame.copy().dp.open(1, card=p.card(format=form), because="an example")
        assert again.card(format=form) == p.card(format=form)
        for name in keys:
            assert again.explain.groupby(name).size() == p.explain.groupby(name).size()
    assert "range = [1, 200, 3]" in p.card()


def test_a_card_of_durations_is_read_as_the_same():
    frame = pd.DataFrame({"stay": pd.to_timedelta([1, 2], unit="h")})
    p = frame.dp.open(1, bounds={"stay": ("0D", "30D 00:00:00.000001")})
    assert 'bounds = ["0 days 00:00:00", "30 days 00:00:00.000001"]' in p.card()
    for form in ("toml", "json"):
        again = frame.copy().dp.open(1, card=p.card(format=form), because="an example")
        assert again.explain.mean("stay") == p.explain.mean("stay")


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6),
        st.tuples(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
        .map(sorted)
        .filter(lambda p: p[1] - p[0] > 1e-200),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=60, deadline=None)
def test_any_names_and_bounds_survive(pairs):
    frame = pd.DataFrame({name: [0.5] for name in pairs})
    p = frame.dp.open(1, bounds={name: tuple(pair) for name, pair in pairs.items()})
    for form in ("toml", "json"):
        again = frame.copy().dp.open(1, card=p.card(format=form), because="an example")
        assert again.card(format=form) == p.card(format=form)
        assert again._session.bounds == p._session.bounds


REFUSED = {
    "author = \n": (1, "not TOML"),
    "[columns.age]\nbound = [0, 1]\n": (2, "'bound' is no word of a column. Did you mean 'bounds'"),
    "epsilon = 1\n": (1, "Budgets are no facts of a table"),
    "unti = 'pid'\n": (1, "Did you mean 'unit'"),
    "unit = 'pidd'\n": (1, "no column 'pidd'"),
    "max_rows = 3\n": (1, "need unit="),
    "unit = 'pid'\nmax_rows = -3\n": (1, "max_rows"),
    "\n[columns.agee]\nbounds = [0, 1]\n": (2, "no column 'agee'"),
    "[columns.age]\ndtype = 'str'\n": (2, "of kind text; in the table it is of kind number"),
    "[columns.age]\ndtype = 'int46'\n": (2, "no dtype of pandas"),
    "[columns.age]\ndtype = 7\n": (2, "a dtype is a text"),
    "[columns.age]\n# years\nbounds = [110, 0]\n": (3, "reversed"),
    "[columns.age]\nbounds = [0, nan]\n": (2, "bound of 'age'"),
    "[columns.age]\nbounds = [0]\n": (2, "the least and the greatest"),
    "[columns.age]\nbounds = '?'\n": (2, "bounds is not filled in"),
    "[columns.age]\nbounds = [0, '?']\n": (2, "bounds is not filled in"),
    "author = '?'\n[columns.age]\nbounds = [0, 1]\n": (1, "author is not filled in"),
    "[columns.age]\nreason = 3\n": (2, "reason is a text"),
    "columns = 3\n": (1, "tables by name"),
    "[columns]\nage = 3\n": (2, "the facts of a column are a table"),
    "[columns.'home state']\nbounds = [0, 1]\n": (2, "of kind text"),
    "[columns.'home state']\nkeys = 'CA'\n": (2, "keys are a list"),
    "[columns.'home state']\nkeys = ['CA', 'CA']\n": (2, "not distinct"),
    "[columns.'home state']\nkeys = ['CA', 1]\n": (2, "is an int"),
    "[columns.'home state']\nkeys = ['CA', {nul = true}]\n": (2, "a key is a text"),
    "[columns.age]\nkeys = {range = [0, 9, 0]}\n": (2, "steps other than 0"),
    "[columns.age]\nkeys = {range = 9}\n": (2, "as in Python"),
    "[columns.age]\nkeys = [{interval = [0]}]\n": (2, "a key is a text"),
    "version = 'a'\n[[combinations]]\ncolumns = ['age', 'home state']\n": (
        2,
        "a combination has columns",
    ),
    "[[combinations]]\ncolumns = ['age']\nkeys = [[1]]\n": (2, "two columns or more"),
    "[[combinations]]\ncolumns = ['age', 'pid']\nkeys = [1]\n": (
        3,
        "a combination of keys is a list",
    ),
    "[[combinations]]\ncolumns = ['age', 'pid']\nkeys = [[1, 1]]\n\n[[combinations]]\ncolumns = ['age', 'pid']\nkeys = [[1]]\n": (
        7,
        "one key for each",
    ),
    '{\n "unit": "pid",\n "unit": "age"\n}': (2, "'unit' stands twice"),
    '{"columns": {\n "age": {"dtype": "int64",\n  "bounds": [1, 0]}}}': (3, "reversed"),
    '{\n "columns": [}': (2, "not JSON"),
    '{"@context": "http://www.w3.org/ns/csvw",\n "tableSchema": {"columns": [\n  {"name": "age", "datatype": "hue"}]}}': (
        3,
        "no dtype",
    ),
}


@pytest.mark.parametrize(("text", "line", "problem"), [(t, *r) for t, r in REFUSED.items()])
def test_a_wrong_or_partial_card_is_refused_with_the_line(text, line, problem, tmp_path):
    path = tmp_path / "a card.toml"
    path.write_text(text)
    frame = table()
    with pytest.raises((BadType, BadValue, UnknownColumn)) as refusal:
        frame.dp.open(1, card=path)
    shown = str(refusal.value)
    assert shown.startswith(f"a card.toml, line {line}: ")
    assert problem in shown
    assert not frame.attrs  # nothing is left behind
    assert frame.dp.open(1).budget.spent == 0


def test_what_is_no_card(tmp_path):
    frame = table()
    with pytest.raises(BadType, match="path of a card"):
        frame.dp.open(1, card=3)
    with pytest.raises(BadValue, match="cannot be read"):
        frame.dp.open(1, card=tmp_path / "none.toml")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadValue, match="not text"):
        frame.dp.open(1, card=tmp_path / "bytes")
    with pytest.raises(BadValue, match="tables by name"):
        frame.dp.open(1, card='{"columns": 3}')


def test_two_cards_of_one_population(tmp_path, path):
    ledger = tmp_path / "budget.db"
    p = table().dp.open(1, card=path, ledger=ledger)
    spent = p.count(epsilon=0.25, name="n")
    p.close()
    other = tmp_path / "mine.toml"
    other.write_text(path.read_text().replace("[0, 110]", "[0, 90]").replace("registry", "me"))
    with pytest.warns(
        PrivacyWarning,
        match=r"'age': \(0, 90\) \(card mine.toml by me.*before 'age': \(0, 110\) \(card visits",
    ):
        q = table().dp.open(1, card=other, ledger=ledger)
    assert q.budget.spent == 0.25
    assert q.count(epsilon=0.25, name="n") == spent
    q.close()
    other.write_text(path.read_text().replace('unit = "pid"', 'unit = "age"'))
    with pytest.raises(SessionError, match="relation between the same people"):
        table().dp.open(1, card=other, ledger=ledger)


def test_the_same_card_again_is_the_same_session(path):
    frame = table()
    p = frame.dp.open(1, card=path)
    before = len(p.declarations)
    assert frame.dp.open(1, card=path)._session is p._session
    assert len(p.declarations) == before
    path.write_text(path.read_text().replace("[0, 110]", "[0, 99]"))
    q = frame.dp.open(1, card=path)  # corrected by the same hand
    assert "(0, 99)" in q.explain.mean("age").question
    frame.dp.open(bounds={"age": (0, 50)})
    assert "bounds = [0, 50]" in q.card()


def test_a_file_that_says_something_else_is_left(tmp_path):
    p = table().dp.open(1, bounds={"age": (0, 110)})
    path = tmp_path / "card.json"
    text = p.card(path)
    assert json.loads(text)["columns"]["age"] == {"dtype": "int64", "bounds": [0, 110]}
    assert p.card(path) == text
    path.write_text("mine")
    with pytest.raises(BadValue, match="somebody's work"):
        p.card(path)
    assert path.read_text() == "mine"
    with pytest.raises(BadValue, match="cannot be written"):
        p.card(tmp_path / "no folder" / "card.toml")
    with pytest.raises(BadType, match="path of a file"):
        p.card(3)
    with pytest.raises(BadValue, match="format"):
        p.card(format="yaml")


def test_the_name_of_a_column_is_no_name_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    p = table().dp.open(1, because="no file")
    for name in ("age", "the cost", Path("folder.d") / "age"):
        with pytest.raises(BadValue, match="has no ending") as refused:
            p.card(name)
        assert not any(tmp_path.iterdir())
    p.card("age", format="toml")
    line = re.search(r"Write (p\.card\('.*?'\))", str(refused.value))[1].replace("folder.d/", "")
    assert eval(line) == p.card() == Path("age.toml").read_text() == Path("age").read_text()


def test_what_a_card_cannot_be_about():
    p = pd.DataFrame({1: [2]}).dp.open(1)
    with pytest.raises(BadType, match="called 1"):
        p.card()
    q = table().dp.open(1, unit="pid", max_rows=3, max_groups=2)
    with pytest.raises(Refused, match="made of it"):
        q.merge(pd.DataFrame({"home state": ["CA"], "x": [1]}), on="home state").card()
    assert q.query("age > 3").card() == q.card()


def test_neighbours_have_the_same_card():
    frame = table()
    frame["kind"] = pd.Series(["a", "b"] * 20, dtype="category")
    more = pd.concat(
        [frame.assign(kind=frame["kind"].astype(str)), frame.head(1).assign(kind="c", age=10**6)]
    )
    more["kind"] = more["kind"].astype("category")
    words = {"unit": "pid", "max_rows": 3, "max_groups": 2, "bounds": {"age": (0, 110)}}
    for form in ("toml", "json", "csvw-eo"):
        assert frame.copy().dp.open(1, because="a", **words).card(
            format=form
        ) == more.copy().dp.open(1, because="a", **words).card(format=form)


# CSVW-EO ----------------------------------------------------------------------------------------------------------


def test_metadata_out_and_in(path):
    p = table().dp.open(1, card=path)
    text = p.card(format="csvw-eo")
    content = json.loads(text)
    assert content["@context"][0] == "http://www.w3.org/ns/csvw"
    assert content["privacyUnit"] == "pid"
    assert content["maxContributions"] == 3
    age = next(c for c in content["tableSchema"]["columns"] if c["name"] == "age")
    assert (age["datatype"], age["minimum"], age["maximum"]) == ("integer", 0, 110)
    again = table().dp.open(
        1, card=text, population="others", keys={"home state": ["CA", "NY", None]}
    )
    assert again.explain.mean("age") == p.explain.mean("age")
    assert (
        again.explain.groupby(["home state", "age"]).size()
        == p.explain.groupby(["home state", "age"]).size()
    )


def test_metadata_of_other_tools_are_read():
    content = {
        "@context": ["http://www.w3.org/ns/csvw", "https://w3id.org/csvw-eo-context.jsonld"],
        "@type": "Table",
        "csvw-eo:privacyUnit": "pid",
        "csvw-eo:bounds.maxContributions": 4,
        "maxLength": 1000,
        "publicLength": None,
        "tableSchema": {
            "columns": [
                {"@type": "Column", "name": "pid", "datatype": "integer", "privacyId": True},
                {
                    "name": "age",
                    "datatype": {"base": "integer"},
                    "minimum": 0,
                    "maximum": 110,
                    "nullableProportion": 0.1,
                    "maxGroupsPerUnit": 2,
                },
                {
                    "name": "home state",
                    "datatype": "string",
                    "partitions": [
                        {
                            "@type": "Partition",
                            "predicate": {"partitionValue": "CA"},
                            "maxLength": 9,
                        },
                        {"@type": "Partition", "predicate": {"partitionValue": "NY"}},
                    ],
                },
                {
                    "name": "seen",
                    "datatype": "dateTime",
                    "minimum": "2026-01-01",
                    "maximum": "2026-12-31",
                },
            ]
        },
        "additionalInformation": [
            {
                "@type": "ColumnGroup",
                "columnsInGroup": ["age", "home state"],
                "maxNumPartitions": 6,
            },
        ],
    }
    p = table().dp.open(1, card=json.dumps(content))
    unit = p._session.unit
    assert (unit.people[0].name, unit.rows, unit.groups) == ("pid", 4, 2)
    assert list(p.groupby("home state").size(epsilon=0.5).index) == ["CA", "NY"]
    assert 'bounds = ["2026-01-01", "2026-12-31"]' in p.card()


# Made-up rows, sources, and a card to fill in ---------------------------------------------------------------------


def test_made_up_rows_of_a_card(path):
    whole = CARD.replace('[columns."home state"]', '[columns."home state"]\ndtype = "str"').replace(
        "[columns.seen]", '[columns.seen]\ndtype = "datetime64[ns]"'
    )
    made = dpframe.dummy(whole, 300)
    assert list(made.columns) == ["pid", "age", "home state", "seen"]
    assert made["age"].between(0, 110).all()
    assert set(made["home state"]) == {"CA", "NY"}
    assert pd.DataFrame(made).dp.open(1, card=whole, because="made up").count() > 0
    with pytest.raises(
        BadValue, match=r"visits.toml, line 16: made-up rows need the dtype of 'home state'"
    ):
        dpframe.dummy(path)
    with pytest.raises(BadType, match="a card has bounds"):
        dpframe.dummy(path, bounds={"age": (0, 1)})
    with pytest.raises(BadValue, match="no columns"):
        dpframe.dummy("version = 'a'\n")


def test_a_card_names_the_population_of_a_source(tmp_path, path):
    arrow = pytest.importorskip("pyarrow")
    source = arrow.Table.from_pandas(table())
    with pytest.raises(BadValue, match="ledger="):
        dpframe.open(source, 1, card=path)
    p = dpframe.open(source, 1, card=path, ledger=tmp_path / "budget.db")
    assert p.accountant.population == tmp_path.name
    assert p.count(epsilon=0.5).plan == p.explain.count(epsilon=0.5)


def test_a_card_to_fill_in_has_names_and_dtypes_alone(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    file = tmp_path / "visits.parquet"
    table().to_parquet(file)
    main(["init", str(file)])
    blank = capsys.readouterr().out
    other = table(seed=9, rows=3)
    other.to_parquet(file)
    main(["init", str(file)])
    assert capsys.readouterr().out == blank
    frame = table()
    filled = blank
    while True:  # a user goes from line to line
        try:
            frame.dp.open(1, card=filled)
            break
        except BadValue as refusal:
            said = re.fullmatch(r"the card, line (\d+): (\w+) is not filled in.*", str(refusal))
            lines, line = filled.splitlines(), int(said[1]) - 1
            assert lines[line].startswith(f'{said[2]} = "?"')
            answers = {
                "author": '"me"',
                "reason": '"known"',
                "unit": '"pid"',
                "population": '"those of the card that was filled in"',
                "version": '"1"',
            }
            word = lines[line].split(" = ")[0]
            lines[line] = f"{word} = {answers[word]}" if word in answers else ""
            filled = "\n".join(lines) + "\n"
    assert frame.dp.budget.spent == 0
    file = tmp_path / "visits.csv"
    table().to_csv(file, index=False)
    main(["init", str(file)])
    assert 'dtype = "?"' in capsys.readouterr().out
    with pytest.raises(SystemExit, match="cannot be read"):
        main(["init", str(tmp_path / "none.csv")])
    with pytest.raises(SystemExit, match="dpframe: "):
        main(["init", str(tmp_path / "none.parquet")])


@pytest.mark.parametrize("ends", [("0h", "2h"), ("0ns", "20ns"), ("-1D", "90000D")])
def test_bounds_of_durations_are_read_again(ends, tmp_path):
    frame = pd.DataFrame({"d": pd.to_timedelta([1, 2], "h"), "x": [1.0, 2.0]})
    opened = frame.dp.open(1, bounds={"d": ends, "x": (0, 3)})
    opened.card(tmp_path / "table.toml")
    again = frame.copy().dp.open(1, card=tmp_path / "table.toml", because="a second one")
    assert again.explain["d"].mean(epsilon=1) == opened.explain["d"].mean(epsilon=1)
