"""Answers as they are shown: intervals, marks and notes over every kind of index and of columns."""

from __future__ import annotations

import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, BadValue
from dpframe._answers.digits import split_interval
from tests.internals import deaf_to_noise

DAYS = 730
PRICE = {"epsilon": 0.01}
KEYS = {"c": list("abc"), "n": [0, 1], "b": [False, True]}
MEANS = {"x": ["mean", "sum"]}
MONTHS = pd.Grouper(key="t", freq="QE")


def make_table():
    rng = np.random.default_rng(3)
    day = pd.date_range("2024-01-01", periods=DAYS, freq="D")
    return pd.DataFrame(
        {
            "t": day,
            "x": rng.uniform(0, 100, DAYS),
            "c": pd.Categorical(rng.choice(list("abc"), DAYS)),
            "n": rng.integers(0, 2, DAYS),
            "b": rng.random(DAYS) < 0.5,
            "w": pd.to_timedelta(rng.integers(0, 3600, DAYS), unit="s"),
        }
    )


QUESTIONS = {
    "datetime": lambda p: p.resample("ME", on="t").agg({"x": "mean"}, **PRICE),
    "datetime of two": lambda p: p.resample("QE", on="t").agg(
        m=("x", "mean"), n=("x", "count"), **PRICE
    ),
    "datetime column": lambda p: p.resample("ME", on="t")["x"].mean(**PRICE),
    "period": lambda p: p.groupby(p["t"].dt.to_period("M")).agg(MEANS, **PRICE),
    "period column": lambda p: p.groupby(p["t"].dt.to_period("M"))["x"].mean(**PRICE),
    "pivot of times": lambda p: p.pivot_table("x", MONTHS, "c", aggfunc="mean", **PRICE),
    "pivot over times": lambda p: p.pivot_table("x", "c", MONTHS, aggfunc="mean", **PRICE),
    "multi": lambda p: p.groupby(["c", "n"]).agg(MEANS, **PRICE),
    "multi column": lambda p: p.groupby(["c", "n"])["x"].mean(**PRICE),
    "times and texts": lambda p: p.groupby([MONTHS, "c"])["x"].mean(**PRICE),
    "interval": lambda p: p.groupby(pd.cut(p["x"], [0, 10, 50, 100])).agg({"x": ["mean"]}, **PRICE),
    "categorical": lambda p: p.groupby("c").agg(MEANS, **PRICE),
    "categorical column": lambda p: p.groupby("c")["x"].mean(**PRICE),
    "whole numbers": lambda p: p.groupby("n")[["x"]].mean(**PRICE),
    "booleans": lambda p: p.groupby("b")["x"].std(**PRICE),
    "keys as columns": lambda p: p.groupby(["c", "b"], as_index=False)["x"].mean(**PRICE),
    "crosstab": lambda p: p.crosstab("c", "b", margins=True, **PRICE),
    "shares": lambda p: p.crosstab("c", "n", normalize="index", **PRICE),
    "pivot": lambda p: p.pivot_table("x", ["c", "n"], "b", aggfunc="mean", margins=True, **PRICE),
    "histogram": lambda p: p.histogram("x", bins=4, **PRICE),
    "value counts": lambda p: p["c"].value_counts(**PRICE),
    "several outputs": lambda p: p.agg({"x": ["mean", "sum", "std"]}, **PRICE),
    "summary": lambda p: p["x"].describe(**PRICE),
    "summaries": lambda p: p[["x"]].describe(**PRICE),
    "correlations": lambda p: p.assign(y=p["x"] * 2)[["x"]].corr(**PRICE),
    "quantiles": lambda p: p.groupby("c")["x"].quantile([0.25, 0.5], **PRICE),
    "median beside a count": lambda p: p.groupby("c")["x"].agg(["count", "median"], **PRICE),
    "most common values": lambda p: p.groupby("b")["c"].argmax(**PRICE),
    "durations": lambda p: p.groupby("c")["w"].mean(**PRICE),
    "moments": lambda p: p.groupby("c").agg(t=("t", "mean"), n=("x", "size"), **PRICE),
    "one row": lambda p: p.groupby("c", keys=["a"]).agg(MEANS, **PRICE),
    "computed": lambda p: p.groupby("c")["x"].sum(**PRICE).dp / 1000,
}
WAYS = {
    "repr": repr,
    "html": lambda a: frame_of(a)._repr_html_(),
    "head": lambda a: repr(a.head(2)),
    "to_string": lambda a: a.to_string(),
    "T": lambda a: repr(a.T),
    "T html": lambda a: frame_of(a).T._repr_html_(),
    "unstack": lambda a: repr(a.unstack() if a.ndim > 1 or a.index.nlevels > 1 else a),
    "backwards": lambda a: repr(a.iloc[::-1]),
    "frame": lambda a: repr(frame_of(a)),
    "keys as columns": lambda a: repr(a.reset_index()),
    "twice": lambda a: repr(pd.concat([a, a])),
    "beside": lambda a: repr(pd.concat([a, a], axis=1)),
    "nothing": lambda a: repr(a.iloc[:0]) + str(frame_of(a).iloc[:0]._repr_html_()),
    "first": lambda a: repr(a.iloc[0]),
    "plain": lambda a: repr(pd.DataFrame(a)),
    "missing": lambda a: repr(a.where(np.zeros(a.shape, dtype=bool))),
    "text": lambda a: repr(a.astype(object).astype(str)),
}


def frame_of(answer):
    return answer.to_frame("v") if isinstance(answer, pd.Series) else answer


def ask(name):
    p = make_table().dp.open(
        1,
        because="a test",
        keys=KEYS,
        bounds={"x": (0, 100), "t": ("2024-01-01", "2025-12-31"), "w": ("0s", "1h")},
    )
    with warnings.catch_warnings():
        deaf_to_noise()
        return QUESTIONS[name](p)


@pytest.fixture(params=QUESTIONS)
def answer(request):
    return ask(request.param)


# Every kind of index and of columns -------------------------------------------------------------


def test_an_answer_is_shown_in_every_way(answer):
    for way, show in WAYS.items():
        assert show(answer), way
    for rows in (4, 1):
        with pd.option_context("display.max_rows", rows, "display.width", 40):
            assert repr(answer)
            assert frame_of(answer)._repr_html_()
    try:
        assert answer.to_markdown()
    except ImportError:  # it needs tabulate, and pandas says so
        assert answer.dp.table().to_markdown()
    with dpframe.options(display="plain"):
        assert "±" not in repr(answer) + frame_of(answer)._repr_html_()


def test_every_noisy_number_has_its_mark_and_every_interval_is_shown(answer):
    reliable = answer.dp.reliable
    noisy = int((~reliable).to_numpy().sum())
    table = answer.dp.table()
    intervals = int((table["lower"].notna() & table["value"].notna()).sum())
    everything = {"display.max_rows": None, "display.max_columns": None, "display.width": 300}
    with pd.option_context(*[part for pair in everything.items() for part in pair]):
        text, html = repr(answer), frame_of(answer)._repr_html_()
    assert text.count("±") == intervals
    assert html.partition("<tbody>")[2].partition("</tbody>")[0].count("±") == intervals
    assert text.partition("\n? noise")[0].count(" ?") == noisy
    assert ("\n? noise, " in text) == bool(noisy)
    if noisy:
        assert f"\n? noise, {noisy} of {len(table)} numbers" in text


def test_a_single_number_and_a_cell_have_the_same_digits(answer):
    if isinstance(answer, pd.Series):
        lines = repr(answer).split("\n")[1 if answer.index.names != [None] else 0 :]
        for (label, number), line in zip(answer.dp.items(), lines, strict=False):
            alone = repr(number).partition(", ")[0]
            shown = re.sub(r" +", " ", line.removesuffix("?")).rstrip()
            if "±" in line:
                assert shown.endswith(f" {re.sub(' +', ' ', alone)}"), label


LABELS = {
    "a range": lambda n: pd.RangeIndex(5, 5 + n),
    "texts": lambda n: pd.Index([f"other {i}" for i in range(n)]),
    "whole numbers": lambda n: pd.Index(np.arange(n) + 7),
    "booleans": lambda n: pd.Index(np.arange(n) % 2 == 0),
    "days": lambda n: pd.date_range("2031-01-01", periods=n, freq="D"),
    "days in a zone": lambda n: pd.date_range("2031-01-01", periods=n, tz="Asia/Tokyo"),
    "periods": lambda n: pd.period_range("2031-01", periods=n, freq="M"),
    "durations": lambda n: pd.timedelta_range("1h", periods=n, freq="h"),
    "intervals": lambda n: pd.interval_range(500, 500 + n),
    "categories": lambda n: pd.CategoricalIndex([f"k{i}" for i in range(n)]),
    "levels": lambda n: pd.MultiIndex.from_arrays(
        [pd.date_range("2031-01-01", periods=n), pd.Categorical([f"k{i}" for i in range(n)])]
    ),
    "a missing time": lambda n: pd.DatetimeIndex([pd.NaT, *[pd.Timestamp("2031-01-01")] * (n - 1)]),
    "None and other": lambda n: pd.Index([None, "other", *range(n - 2)][:n], dtype=object),
    "the same label": lambda n: pd.Index(["same"] * n),
    "lines and markup": lambda n: pd.Index([f"<b>{i}\n|" for i in range(n)]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_an_answer_with_other_labels_is_shown_plain(kind):
    for name in ("categorical column", "datetime of two", "crosstab"):
        answer = ask(name)
        frame = frame_of(answer)
        changed = [
            answer.set_axis(LABELS[kind](len(answer))),
            frame.set_axis(LABELS[kind](len(frame))).set_axis(LABELS[kind](frame.shape[1]), axis=1),
        ]
        for one in changed:
            for way in ("repr", "html", "T", "T html", "backwards", "beside", "nothing", "first"):
                text = WAYS[way](one)
                assert "±" not in text.partition("<tbody>")[2 if "<tbody>" in text else 0], way
                assert "noise" not in text.partition("</caption>")[2] if "<" in text else text


def test_labels_that_stand_twice_are_shown_plain():
    answer = ask("categorical column")
    twice = answer.rename({"a": "b"})
    assert repr(twice) == repr(pd.Series(twice))
    assert repr(pd.concat([answer, answer])) == repr(pd.Series(pd.concat([answer, answer])))


# Steps of pandas --------------------------------------------------------------------------------


def count_intervals(answer):
    return repr(answer).count("±"), repr(answer).count(" ?")


def test_marks_and_intervals_survive_steps_of_pandas():
    column, table = ask("multi column"), ask("categorical")
    whole = count_intervals(column)
    assert whole[0] == len(column)
    assert whole[1] > 0
    flat = column.reset_index()
    facts = pd.DataFrame({"c": list("abc"), "people": [5, 6, 7]})
    for one in (
        column.unstack(),
        column.unstack().T,
        column.unstack().stack(),
        flat,
        flat.pivot(index="c", columns="n", values="x"),
        flat.merge(facts, on="c"),
        pd.merge(flat, facts),
        flat.assign(more=1),
        flat.set_index(["n", "c"]),
        column.sort_values(),
        column.swaplevel(),
        column.rename("other"),
    ):
        assert count_intervals(one) == whole, one
        assert "people" not in one or "±" not in repr(one["people"])
    assert count_intervals(table["x"]["mean"].to_frame())[0] == 3
    two = ask("median beside a count").reset_index()
    assert count_intervals(two.merge(facts, on="c"))[0] == 6


def test_a_column_that_is_unstacked_keeps_its_intervals():
    p = make_table().dp.open(100, because="a test", keys=KEYS, bounds={"x": (0, 100)})
    both = p.groupby(["c", "n"]).agg(rows=("x", "size"), mean=("x", "mean"), epsilon=50)
    for name in both:
        wide = both[name].unstack()
        assert repr(wide).count("±") == 6
        low = wide.dp.interval().xs("lower", axis=1, level=-1)
        assert np.array_equal(low, both.dp.interval()[name]["lower"].unstack())


def test_what_was_moved_or_summed_says_nothing():
    column = ask("multi column")
    for one in (column.shift(), column.pct_change(), column.groupby(level="c").sum()):
        assert repr(one) == repr(pd.Series(one))
    assert repr(pd.DataFrame(column)) == repr(pd.DataFrame(column.to_numpy(), column.index, ["x"]))


# Digits and width -------------------------------------------------------------------------------


def test_decimal_points_and_signs_stand_below_each_other():
    rows = 9000
    frame = pd.DataFrame({"k": np.repeat(["a", "b", "c"], [rows - 110, 100, 10]), "x": 50.0})
    p = frame.dp.open(100, because="a test", keys={"k": list("abc")}, bounds={"x": (0, 100)})
    means = p.groupby("k")["x"].mean(epsilon=1)
    for text in (repr(means), repr(means.to_frame())):
        lines = [line for line in text.split("\n") if "±" in line]
        assert len({line.index("±") for line in lines}) == 1
        assert len({line.split("±")[0].find(".") for line in lines} - {-1}) == 1
    assert len({len(line.split()[1]) for line in lines}) > 1  # noise leaves other digits


@pytest.mark.parametrize("width", [40, 80])
def test_a_wide_table_is_as_wide_as_the_terminal(width):
    answer = ask("pivot over times")
    with pd.option_context("display.width", width, "display.max_columns", 20):
        assert max(map(len, repr(answer).split("\n"))) <= width + 1


def test_long_tables_show_their_ends_and_say_how_long_they_are():
    frame = pd.DataFrame({"k": np.repeat(np.arange(500), 20)})
    p = frame.dp.open(100, because="a test", keys={"k": range(500)})
    sizes = p.groupby("k").size(epsilon=10)
    assert repr(sizes).count("±") == 10
    assert repr(sizes).endswith("Length: 500, dtype: int64")
    assert repr(sizes.to_frame("n")).count("±") == 10
    assert "[500 rows x 1 columns]" in repr(sizes.to_frame("n"))


# HTML -------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """The tags of a page with their attributes, and the text of each caption."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.captions, self.open = [], [], None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open = tag

    def handle_data(self, data):
        if self.open == "caption":
            self.captions.append(data)
            self.open = None


def test_html_has_a_caption_and_headers_with_their_scope():
    for name in ("multi", "pivot", "datetime of two", "crosstab"):
        page = Tags(ask(name)._repr_html_())
        (caption,) = page.captions
        assert "± is how far a 95 % interval of the noise reaches" in caption
        headers = [attrs for tag, attrs in page.tags if tag == "th"]
        assert headers
        for attrs in headers:
            wide = "rowgroup" if "rowspan" in attrs else "row"
            assert attrs["scope"] in (wide, "colgroup" if "colspan" in attrs else "col")


def test_html_escapes_labels_and_has_no_colours():
    p = make_table().dp.open(1, because="a test", keys=KEYS)
    html = p.groupby("c").agg(**{"<i>n</i> & co": ("x", "size"), "m": ("x", "count")})._repr_html_()
    assert "<i>" not in html
    assert "&lt;i&gt;n&lt;/i&gt; &amp; co" in html
    assert not re.search(r"color|background|#[0-9a-f]{3}", html)
    with pd.option_context("display.notebook_repr_html", False):
        assert p.groupby("c").agg(n=("x", "size"))._repr_html_() is None


# The setting ------------------------------------------------------------------------------------


def test_plain_shows_the_digits_of_pandas_with_marks():
    answer = ask("categorical")
    with dpframe.options(display="plain"):
        text, html = repr(answer), answer._repr_html_()
        assert dpframe.options.display == "plain"
    assert dpframe.options.display == "interval"
    assert "±" not in text + html
    assert text.count(" ?") == repr(answer).partition("\n? noise")[0].count(" ?")
    assert re.search(r"\d\.\d{6}", text)
    dpframe.options.display = "plain"
    try:
        assert repr(answer) == text
    finally:
        dpframe.options.display = "interval"


def test_an_unknown_setting_is_refused_with_those_that_there_are():
    with pytest.raises(BadValue, match=r"unknown display 'wide'. Use one of 'interval', 'plain'\."):
        dpframe.options.display = "wide"
    with pytest.raises(BadType, match="'interval', 'plain'"), dpframe.options(display=True):
        pass
    assert dpframe.options.display == "interval"


def test_a_number_far_from_the_middle_shows_the_farther_end():
    assert split_interval(100.0, 90.0, 110.0) == ("100", "10")
    assert split_interval(3264.5, 3264.25, 3696.75) == ("3264", "432")
