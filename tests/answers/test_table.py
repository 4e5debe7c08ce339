"""One tidy table of any answer, and what it is written as."""

from __future__ import annotations

import io
import locale
import pickle
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from dpframe import BadType, BadValue, NotOffered

OWN = ["measure", "value", "lower", "upper", "std_error", "flags"]


@pytest.fixture
def p():
    frame = pd.DataFrame(
        {
            "age": [31.0, 47, 66, 80, 12, 55, 70, 41] * 25,
            "cost": [120.5, np.nan, 80.25, 900.0, 15.0, 60.0, 30.0, 456.789] * 25,
            "state": ["CA", "NY"] * 100,
            "value": [1, 2, 2, 1] * 50,
        }
    )
    return frame.dp.open(
        1000,
        bounds={"age": (0, 110), "cost": (0, 1000)},
        keys={"state": ["CA", "NY"], "value": [1, 2]},
    )


LONG = {
    "count": (lambda p: p.count(epsilon=1), [], ["rows"], 1),
    "mean": (lambda p: p.mean("age", epsilon=1), [], ["age"], 1),
    "computed": (lambda p: p.sum("age", epsilon=1) / p.count(epsilon=1), [], ["value"], 1),
    "median": (lambda p: p.median("age", epsilon=5), [], ["age"], 1),
    "series": (lambda p: p.groupby("state")["cost"].mean(epsilon=1), ["state"], ["cost"], 2),
    "sizes": (lambda p: p.groupby("state").size(epsilon=1), ["state"], ["rows"], 2),
    "table": (
        lambda p: p.groupby("state").agg(n=("age", "size"), m=("cost", "mean")),
        ["state"],
        ["n", "m"],
        4,
    ),
    "key named value": (lambda p: p.groupby("value").size(epsilon=1), ["value_"], ["rows"], 2),
    "two keys": (
        lambda p: p.groupby(["state", "value"]).size(epsilon=1),
        ["state", "value_"],
        ["rows"],
        4,
    ),
    "pivot": (
        lambda p: p.pivot_table(
            index="state", columns="value", values="age", aggfunc="mean", epsilon=1
        ),
        ["state", "value_"],
        ["mean"],
        4,
    ),
    "crosstab": (
        lambda p: p.crosstab("state", "value", margins=True),
        ["state", "value_"],
        ["count"],
        9,
    ),
    "pairs": (
        lambda p: p.groupby("state")[["age"]].agg(["mean", "count"]),
        ["state"],
        ["age, mean", "age, count"],
        4,
    ),
    "describe": (lambda p: p[["age", "cost"]].describe(epsilon=9), ["row"], ["age", "cost"], 16),
    "corr": (lambda p: p[["age", "cost"]].corr(epsilon=9), ["row"], ["age", "cost"], 4),
    "flat": (
        lambda p: p.groupby("state", as_index=False).agg(n=("age", "size"), m=("cost", "mean")),
        ["state"],
        ["n", "m"],
        4,
    ),
    "histogram": (
        lambda p: p.histogram("age", bins=[0, 50, 110], epsilon=1),
        ["age"],
        ["count"],
        2,
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_table_has_a_row_for_each_number(p, name):
    ask, keys, measures, rows = LONG[name]
    answer = ask(p)
    table = answer.dp.table()
    assert list(table.columns) == keys + OWN
    assert list(dict.fromkeys(table["measure"])) == measures
    assert len(table) == rows
    assert all(type(column) is str for column in table.columns)
    assert not table.attrs
    if name not in ("pivot", "crosstab"):
        shown = (
            answer[list(answer.columns[-len(measures) :])]
            if isinstance(answer, pd.DataFrame)
            else answer
        )
        values = np.atleast_1d(np.asarray(shown, dtype=float))
        assert np.allclose(table["value"], values.T.ravel(), equal_nan=True)
    low_high = table[["lower", "upper"]]
    interval = answer.dp.interval()
    if isinstance(interval, tuple):
        assert tuple(low_high.iloc[0]) == interval
    else:
        ends = interval.to_numpy()
        assert np.allclose(low_high["lower"], ends[:, 0::2].T.ravel(), equal_nan=True)
        assert np.allclose(low_high["upper"], ends[:, 1::2].T.ravel(), equal_nan=True)
    narrow = answer.dp.table(0.5)
    some = low_high["lower"].notna()
    assert (narrow["lower"] >= low_high["lower"])[some].all()
    assert (table["flags"][~some] != "").all()
    assert set(table["flags"][some]) <= {"", "noise"}
    for written in (
        table.to_markdown(),
        table.to_html(),
        table.to_csv(),
        table.to_markdown(width=40),
        repr(table),
    ):
        assert "dpframe_receipt" not in written


@pytest.mark.parametrize("name", LONG)
def test_a_wide_table_has_the_rows_of_its_answer(p, name):
    answer = LONG[name][0](p)
    wide = answer.dp.table(wide=True)
    assert all(type(column) is str for column in wide.columns)
    assert len(wide) == (len(answer) if isinstance(answer, pd.Series | pd.DataFrame) else 1)
    numbers = [c for c in wide.columns if f"{c}_lower" in wide.columns]
    assert sum(wide[c].size for c in numbers) == LONG[name][3]
    assert wide.to_markdown().count("\n") == len(wide) + 1


def test_standard_errors_stand_where_they_can_be_stated(p):
    table = (
        p.groupby("state")
        .agg(n=("age", "size"), s=("age", "sum"), m=("cost", "mean"), v=("cost", "var"), epsilon=1)
        .dp.table()
    )
    errors = table.set_index("measure")["std_error"]
    assert errors[["n", "s", "m"]].notna().all()
    assert errors["v"].isna().all()
    margins = p.crosstab("state", "value", margins=True, epsilon=1).dp.table()
    own = margins["std_error"].iloc[0]
    assert np.allclose(sorted(margins["std_error"] / own), [1] * 4 + [2**0.5] * 4 + [2])


def test_intervals_of_a_table_may_hold_all_at_once(p):
    answer = p.groupby(["state", "value"]).size(epsilon=1)
    table = answer.dp.table(0.9, at_once=True)
    assert table["lower"].tolist() == answer.dp.interval(0.9, at_once=True)["lower"].tolist()
    assert "90 % intervals of the noise, all at once" in table.caption
    assert (table["lower"] < answer.dp.table(0.9)["lower"]).all()


def test_a_table_says_what_was_asked_and_what_it_guarantees(p):
    assert (
        p.groupby("state")
        .size(epsilon=1)
        .dp.table()
        .caption.startswith("size() by state over 2 keys (epsilon 1)")
    )
    both = p.groupby("state").size(epsilon=1).dp / p.count(epsilon=1)
    assert "epsilon 1); size()" in both.dp.table().caption


@pytest.mark.parametrize(
    "words", [{"level": 1.5}, {"level": "95"}, {"wide": "yes"}, {"at_once": 1}, {"long": True}]
)
def test_words_that_do_not_fit_are_refused(p, words):
    with pytest.raises((BadValue, BadType)):
        p.groupby("state").size(epsilon=1).dp.table(**words)


# Written ------------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_html_has_a_caption_and_headers_that_can_be_read_out(p):
    table = p.groupby("state").agg(n=("age", "size"), m=("cost", "mean"), epsilon=1).dp.table()
    tags = Tags()
    tags.feed(table.to_html())
    assert not tags.open
    kinds = [tag for tag, _ in tags.seen]
    assert kinds[:2] == ["table", "caption"]
    scopes = [attrs.get("scope") for tag, attrs in tags.seen if tag == "th"]
    assert scopes == ["col"] * 7 + ["row", "row"] * 4
    assert all(
        not attrs or set(attrs) == {"scope"} for _, attrs in tags.seen
    )  # colours are the reader's
    assert "<caption>Table 1: visits</caption>" in table.to_html(caption="Table 1: visits")
    assert table._repr_html_() == table.to_html()


def test_labels_are_escaped_in_html_and_markdown():
    bad = "<script>|x|\n"
    p = pd.DataFrame({"k": [bad, "b"]}).dp.open(10, keys={"k": [bad, "b"]})
    table = p.groupby("k").size(epsilon=5).dp.table()
    assert "<script>" not in table.to_html()
    assert "&lt;script&gt;" in table.to_html()
    lines = table.to_markdown().split("\n")
    assert len(lines) == 4
    assert r"<script>\|x\|" in lines[2]


def test_csv_has_plain_numbers_whatever_the_locale(p):
    table = (
        p.groupby("state").agg(n=("age", "size"), m=("cost", "mean"), epsilon=1).dp / 1000
    ).dp.table()
    before = locale.setlocale(locale.LC_NUMERIC)
    for name in ("de_DE.UTF-8", "C"):
        try:
            locale.setlocale(locale.LC_NUMERIC, name)
        except locale.Error:
            continue  # not on this machine
        try:
            text, lines = table.to_csv(), table.to_markdown()
        finally:
            locale.setlocale(locale.LC_NUMERIC, before)
        back = pd.read_csv(io.StringIO(text))
        assert back["value"].tolist() == table["value"].tolist()
        assert back["upper"].tolist() == table["upper"].tolist()
        assert list(back.columns) == list(table.columns)
        assert "0.1" in lines
        assert "," not in lines
    wide = p.groupby("state").size(epsilon=1).dp.table(wide=True).to_csv()
    assert wide.startswith("state,rows,rows_lower")


def test_a_narrow_terminal_gets_a_list(p):
    table = p.groupby("state").agg(n=("age", "size"), m=("cost", "mean"), epsilon=1).dp.table()
    text = table.to_markdown(width=40)
    assert max(map(len, text.split("\n"))) <= 40
    assert text.split("\n")[:2] == ["- state: CA", "  measure: n"]
    assert table.to_markdown(width=200) == table.to_markdown()


def test_markdown_has_the_digits_of_an_answer(p):
    answer = p.groupby("state")["cost"].mean(epsilon=0.5)
    rows = [line.split("|") for line in answer.dp.table().to_markdown().split("\n")[2:]]
    for (low, high), row in zip(answer.dp.interval().to_numpy(), rows, strict=True):
        decimals = len(row[3].strip().partition(".")[2])
        assert 10 <= (high - low) / 2 * 10**decimals < 100
        assert float(row[4]) == pytest.approx(low, abs=10.0**-decimals)


def test_steps_of_pandas_keep_a_table_a_table(p):
    table = p.groupby("state").size(epsilon=1).dp.table()
    assert table.sort_values("value").drop(columns="flags").to_markdown().startswith("| state")
    assert table.query("value > 0").caption == table.caption
    both = pd.concat([table, p.count(epsilon=1).dp.table()], ignore_index=True)
    assert both.to_markdown().count("\n") == 4
    assert table.to_csv(index=True).startswith(",state")
    assert isinstance(table, pd.DataFrame)


def test_chosen_numbers_have_their_intervals_in_a_table(p):
    answer = p.groupby("state")["age"].median(epsilon=50)
    table = answer.dp.table()
    assert np.array_equal(table[["lower", "upper"]], answer.dp.interval())
    assert table["std_error"].isna().all()
    assert [flag == "noise" for flag in table["flags"]] == (~answer.dp.reliable).tolist()


def test_found_groups_have_a_table():
    frame = pd.DataFrame({"k": ["a"] * 300 + ["b"] * 200, "x": 1.0})
    p = frame.dp.open(40, delta=1e-5, bounds={"x": (0, 2)})
    table = p.groupby("k").size(epsilon=2).dp.table()
    assert set(table["k"]) == {"a", "b"}
    assert table["lower"].notna().all()
    assert table["std_error"].isna().all()  # groups that a threshold shows have large noise


# Of a population ------------------------------------------------------------------------------------------------------

POPULATION = {
    "mean": lambda p: p.mean("age", epsilon=5),
    "count": lambda p: p.count(epsilon=5),
    "series": lambda p: p.groupby("state")["cost"].mean(epsilon=5),
    "sorted by count": lambda p: p.value_counts("value", epsilon=5),
    "table": lambda p: p.groupby("state").agg(n=("age", "size"), m=("cost", "mean"), epsilon=5),
    "keys as columns": lambda p: p.groupby("state", as_index=False)["age"].mean(epsilon=5),
    "pivot": lambda p: p.pivot_table(
        index="state", columns="value", values="age", aggfunc="mean", epsilon=5
    ),
    "shares": lambda p: p.value_counts("state", normalize=True, epsilon=5),
}


@pytest.mark.parametrize("shape", POPULATION)
def test_the_ends_of_a_table_of_a_population_are_those_of_its_intervals(p, shape):
    answer = POPULATION[shape](p)
    ends = np.array(answer.dp.interval(0.9, of="population"), dtype=float)
    long, wide = (answer.dp.table(0.9, of="population", wide=w) for w in (False, True))
    noise = answer.dp.table(0.9)
    assert list(long.columns) == list(noise.columns)
    assert list(wide.columns) == list(answer.dp.table(0.9, wide=True).columns)
    assert (
        long["lower"].tolist() == ends.reshape(-1, ends.shape[-1])[:, ::2].ravel(order="F").tolist()
    )
    assert (
        long["upper"].tolist()
        == ends.reshape(-1, ends.shape[-1])[:, 1::2].ravel(order="F").tolist()
    )
    assert (long["lower"] < noise["lower"]).all()
    assert (noise["upper"] < long["upper"]).all()
    assert long["std_error"].isna().all()  # it would be that of the noise alone
    assert (long["flags"] == noise["flags"]).all()
    assert wide.filter(like="_lower").to_numpy().ravel(order="F").tolist() == long["lower"].tolist()


def test_a_table_of_a_population_says_so_wherever_it_is_written(p):
    answer = p.groupby("state")["age"].mean(epsilon=5)
    table = answer.dp.table(of="population")
    assert "95 % intervals of the population, which cover the noise and the sample" in table.caption
    for written in (
        table.to_markdown(),
        table.to_html(),
        table.head(1).to_markdown(),
        table._repr_html_(),
    ):
        assert "lower (population)" in written
        assert "upper (population)" in written
    assert "m_lower (population)" in p.groupby("state").agg(m=("age", "mean"), epsilon=5).dp.table(
        of="population", wide=True
    ).to_markdown(width=10)
    assert "(population)" not in answer.dp.table().to_markdown()
    assert table.to_csv().splitlines()[0] == "state,measure,value,lower,upper,std_error,flags"
    assert pickle.loads(pickle.dumps(table)).to_html() == table.to_html()


def test_columns_without_an_interval_of_a_population_say_so_beside_others(p):
    answer = p.groupby("state")["age"].agg(["mean", "std", "median"], epsilon=20)
    table = answer.dp.table(of="population").set_index("measure")
    assert table.loc["mean", "flags"].tolist() == ["", ""]
    assert table.loc["std", "flags"].tolist() == ["no interval of a population"] * 2
    assert table.loc["std", ["lower", "upper"]].isna().all(axis=None)
    assert table.loc["median", ["lower", "upper"]].notna().all(axis=None)


def test_table_without_intervals_of_a_population_is_refused_with_advice(p):
    mean = p.mean("age", epsilon=5)
    means = p.groupby("state")["age"].mean(epsilon=5)
    refused = {
        "Ask the answers themselves": lambda: (mean / 2).table(of="population"),
        "Ask the answer that was released": lambda: (
            means.sort_values().iloc[:1].dp.table(of="population")
        ),
        "'noise', 'population'": lambda: means.dp.table(of="sample"),
    }
    for words, ask in refused.items():
        with pytest.raises((NotOffered, BadValue), match=words):
            ask()
    with pytest.raises(NotOffered, match="A total is"):
        p.sum("age", epsilon=5).table(of="population")


def test_quantiles_that_were_chosen_together_bound_one_another_in_a_table(p):
    answer = p.quantile("age", [0.3, 0.5, 0.7], epsilon=50)
    table = answer.dp.table(n=200)
    pd.testing.assert_frame_equal(
        pd.DataFrame(table[["lower", "upper"]]),
        answer.dp.interval(n=200).astype(float).reset_index(drop=True).rename_axis(columns=None),
    )
    assert table["flags"].tolist() == [""] * 3
    assert answer.dp.table()[["lower", "upper"]].notna().all(axis=None)


# Durations and times --------------------------------------------------------------------------------------------------


@pytest.fixture
def timed():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "t": pd.to_timedelta(rng.integers(0, 7200, 5000), "s"),
            "w": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(rng.integers(0, 86400 * 30, 5000), "s"),
            "g": rng.choice(["a", "b"], 5000),
        }
    )
    bounds = {"t": ("0h", "2h"), "w": ("2024-01-01", "2024-01-31")}
    return frame.dp.open(1000, bounds=bounds, keys={"g": ["a", "b"]})


@pytest.mark.parametrize("column", ["t", "w"])
def test_a_duration_is_written_as_it_is_shown(timed, column):
    mean = timed.mean(column, epsilon=1)
    value = repr(mean).split(" ± ")[0]
    markdown, html = mean.table().to_markdown(), mean.table().to_html()
    assert f" {value} " in markdown
    assert f">{value}<" in html
    ends = mean._repr_html_().split("interval ")[1].split(";")[0].split(" to ")
    assert all(f"| {end} " in markdown for end in ends)
    assert str(mean) not in markdown or column == "w"  # with its millionths of a second
    assert str(mean) in mean.table().to_csv()


def test_durations_beside_counts_are_written_row_by_row(timed):
    answer = timed.groupby("g")["t"].agg(["mean", "count", "std", "median"], epsilon=8)
    for wide in (False, True):
        table = answer.dp.table(wide=wide)
        cells = [cell.strip() for cell in table.to_markdown().replace("\n", "|").split("|")]
        seconds = [cell for cell in cells if " days " in cell]
        assert len(seconds) == 18
        assert all(len(cell.partition(".")[2]) <= 2 for cell in seconds)
        assert str(answer["count"].iloc[0]) in cells
        assert table.to_html().count(" days ") == 18


def test_the_digits_of_a_duration_follow_its_width(timed):
    for epsilon, decimals in ((0.01, 0), (3, 1), (30, 2)):
        value, half = repr(timed.mean("t", epsilon=epsilon)).split(" ± ")
        assert len(value.partition(".")[2]) == len(half.partition(".")[2]) == decimals


def test_what_has_no_width_or_no_number_is_written_as_it_is():
    frame = pd.DataFrame({"t": pd.to_timedelta([60, 60, 60], "s"), "g": ["a", "a", "a"]})
    p = frame.dp.open(1000, bounds={"t": ("0h", "2h")}, keys={"g": ["a", "b"]}, show="nan")
    known = p["t"].mean(epsilon=400, bounds=("60s", "60s"))
    assert known.table().to_markdown().count("0 days 00:01:00 ") == 3
    nobody = p.groupby("g")["t"].mean(epsilon=0.01)
    assert nobody.isna().all()
    assert p["t"].mean(epsilon=0.01)._repr_html_().startswith("<b>NaT ± 0 days 01:00:00, noise</b>")
    assert "NaT" not in nobody.dp.table().to_markdown() + nobody.dp.table().to_html()


# Files ------------------------------------------------------------------------------------------


def test_csv_of_an_answer_has_intervals_and_the_digits_that_the_noise_leaves(p, tmp_path):
    answer = p.groupby("state").agg(n=("age", "size"), m=("cost", "mean"), epsilon=1)
    text = answer.dp.to_csv()
    assert text.split("\n")[0].strip() == "state,measure,value,lower,upper,std_error,flags"
    assert "Unnamed" not in text
    read = pd.read_csv(io.StringIO(text))
    shown = answer.dp.table()
    assert np.allclose(
        read["value"], shown["value"], atol=(shown["upper"] - shown["lower"]).max() / 20
    )
    means = read[read["measure"] == "m"]
    assert all(len(f"{x:.12g}".replace(".", "").lstrip("-0")) <= 6 for x in means["value"])
    answer.dp.to_csv(tmp_path / "n.csv", wide=True)
    assert (tmp_path / "n.csv").read_text().startswith("state,n,n_lower,n_upper")
    assert answer.to_csv().startswith("state,n,m")  # pandas' own method writes plain numbers


def test_rounding_to_intervals_keeps_labels_dtypes_and_what_has_no_interval(p):
    table = p.groupby("state").agg(n=("age", "size"), m=("cost", "mean"), epsilon=1).dp.table()
    rounded = table.round_to_intervals()
    assert rounded.caption == table.caption
    assert list(rounded["state"]) == list(table["state"])
    assert (rounded.dtypes == table.dtypes).all()
    chosen = p.median("age", epsilon=5).table()
    assert chosen.round_to_intervals()["std_error"].isna().all()  # it stays without one


def test_markdown_of_an_answer_needs_no_other_package(p, tmp_path):
    answer = p.groupby("state").size(epsilon=1)
    text = answer.dp.to_markdown()
    assert text == answer.dp.table().to_markdown()
    assert answer.dp.to_markdown(tmp_path / "n.md") is None
    assert (tmp_path / "n.md").read_text() == text + "\n"
    assert all(len(line) <= 40 for line in answer.dp.to_markdown(width=40).split("\n"))
    assert p.count(epsilon=1).to_markdown().startswith("| measure |")


def test_excel_gets_intervals_without_a_column_of_row_numbers(p, tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(
        pd.DataFrame, "to_excel", lambda self, path, **words: written.append((self, words))
    )
    answer = p.groupby("state").size(epsilon=1)
    answer.dp.to_excel(tmp_path / "n.xlsx")
    answer.dp.to_excel(tmp_path / "n.xlsx", wide=True)
    assert [words["index"] for _, words in written] == [False, True]
    assert list(written[0][0].columns)[2:4] == ["value", "lower"]


def test_excel_without_its_package_says_what_to_install(p, tmp_path, monkeypatch):
    def missing(*_, **__):
        raise ModuleNotFoundError("No module named 'openpyxl'", name="openpyxl")

    monkeypatch.setattr(pd.DataFrame, "to_excel", missing)
    with pytest.raises(NotOffered, match=r"pip install openpyxl. .dp.to_csv\(\) needs nothing"):
        p.groupby("state").size(epsilon=1).dp.to_excel(tmp_path / "n.xlsx")
