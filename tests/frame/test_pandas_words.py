"""Whatever pandas' methods are given, by word or by position, tracked objects take or refuse in words of their own."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, DPError, NotOffered, Refused
from tests.source import parse_modules


@cache
def internal() -> re.Pattern[str]:
    """Return a pattern of the messages of Python that name a class of the package.

    Python names a function by its class, and an object by its own: "Steps.drop() got ...".
    """
    classes = {
        node.name
        for tree in parse_modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    listed = "|".join(sorted(classes))
    return re.compile(rf"\b({listed})\.\w+\(\)|'({listed})'")


@pytest.fixture
def p():
    df = pd.DataFrame(
        {
            "x": [1.0, 2.5, None, 4.0],
            "n": [1, 2, 3, 4],
            "b": [True, False, True, True],
            "s": ["a", "b", None, "a"],
            "t": pd.to_datetime(["2024-01-05", "2024-02-05", None, "2024-03-05"]),
            "o": [["a"], ["b", "c"], None, []],
        }
    )
    bounds = {"x": (0, 5), "n": (0, 9), "t": ("2024-01-01", "2024-03-31")}
    return df.dp.open(1000, queries=100_000, bounds=bounds, keys={"s": ["a", "b"]})


def of_people():
    """The groups of each person's own rows."""
    df = pd.DataFrame({"s": [1, 1, 2, 3], "x": [1.0, 2.5, None, 4.0], "n": [1, 2, 3, 4]})
    bounds = {"x": (0, 5), "n": (0, 9)}
    terms = {"unit": "s", "max_rows": 2, "max_groups": 1, "queries": 100_000}
    return df.dp.open(1000, bounds=bounds, **terms).groupby("s")


# Who is asked, and the class whose words it is asked in.
WHO = {
    "frame": (lambda p: p, pd.DataFrame),
    "two columns": (lambda p: p[["x", "n"]], pd.DataFrame),
    "explained": (lambda p: p.explain, pd.DataFrame),
    "column": (lambda p: p["x"], pd.Series),
    "texts": (lambda p: p["s"], pd.Series),
    "condition": (lambda p: p["x"] > 2, pd.Series),
    "str": (lambda p: p["s"].str, type(pd.Series(["a"]).str)),
    "dt": (lambda p: p["t"].dt, type(pd.Series(pd.to_datetime(["2024-01-01"])).dt)),
    "str of numbers": (lambda p: p["x"].str, type(pd.Series(["a"]).str)),
    "groups": (lambda p: p.groupby("s"), type(pd.DataFrame({"s": [1]}).groupby("s"))),
    "column of groups": (
        lambda p: p.groupby("s")["x"],
        type(pd.DataFrame({"s": [1]}).groupby("s")["s"]),
    ),
    "columns of groups": (
        lambda p: p.groupby("s")[["x", "n"]],
        type(pd.DataFrame({"s": [1]}).groupby("s")),
    ),
    "people": (lambda p: of_people(), type(pd.DataFrame({"s": [1]}).groupby("s"))),
    "column of people": (
        lambda p: of_people()["x"],
        type(pd.DataFrame({"s": [1]}).groupby("s")["s"]),
    ),
    "columns of people": (
        lambda p: of_people()[["x", "n"]],
        type(pd.DataFrame({"s": [1]}).groupby("s")),
    ),
    "periods": (
        lambda p: p.resample("ME", on="t"),
        type(pd.Series([1], pd.to_datetime(["2024-01-01"])).resample("D")),
    ),
}
EVERYDAY = [
    None,
    True,
    False,
    0,
    1,
    -1,
    0.5,
    "x",
    "any",
    "all",
    "columns",
    ["x"],
    ["x", "nobody"],
    {"x": "y"},
]
EVERYDAY += [
    ("x", "n"),
    {"x": 1.0},
    {"x": ["mean", "sum"]},
    len,
    np.mean,
    lambda d: d,
    slice(0, 2),
    pd.Series([1, 2]),
]
NAMED = {
    "expr": ["x > 1", "x >", "x.mean() > 1"],
    "dtype": ["float", float, "category", {"x": "int"}, np.float32],
    "bins": [3, [0, 1, 2], "auto"],
    "q": [0.25, [0.25, 0.75], 2],
    "freq": ["ME", "nonsense"],
    "rule": ["ME", "nonsense"],
    "right": [pd.DataFrame({"s": ["a", "b"], "w": [1, 2]})],
    "on": ["s", "t", "nobody"],
    "pat": ["a", "(", r"\d"],
    "func": ["mean", ["mean", "std"], {"x": "mean"}, {"x": ["mean", "nobody"]}],
    "how": ["any", "left", "outer"],
    "by": ["s", ["s", "b"], lambda p: 1, pd.Grouper(key="t", freq="ME")],
    "aggfunc": ["mean", "sum", len, ["mean"]],
}


def required(verb):
    found = list(inspect.signature(verb).parameters.values())[1:]
    return [
        q.name
        for q in found
        if q.default is q.empty and q.kind in (q.POSITIONAL_ONLY, q.POSITIONAL_OR_KEYWORD)
    ]


def calls(verb):
    """Arguments as they are typed every day: each word alone beside what is required, and one to five by position."""
    needs = required(verb)
    base = {name: NAMED.get(name, ["x"])[0] for name in needs}
    yield (), {}
    yield (), base
    for name, parameter in inspect.signature(verb).parameters.items():
        if name in ("self", "cls") or parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            continue
        own = [] if parameter.default is parameter.empty else [parameter.default]
        for value in [*own, *NAMED.get(name, []), *EVERYDAY]:
            yield (), {**base, name: value}
    for value in [*EVERYDAY, *(v for name in needs for v in NAMED.get(name, []))]:
        yield (value,), {}
        for more in (1, 2, 4):
            yield (value, *[None] * more), {}
            yield (value, *[0] * more), {}
    yield (), {**base, "nobody": 1}
    yield (), {**base, "inplace": True}


def wrong(ask):
    """What is raised that is not dpframe's own, or names what is nobody's business."""
    try:
        ask()
    except DPError as error:
        told = str(error)
        foreign = error.__cause__ is not None and not isinstance(error.__cause__, DPError)
        return told if internal().search(told) or foreign else None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.fixture
def one_picture(monkeypatch):
    """The same axes for all panels, since new ones are nearly all of the time that a picture takes."""
    plt = pytest.importorskip("matplotlib.pyplot", reason="pictures need matplotlib")
    plt.switch_backend("Agg")
    kept = {}

    def subplots(rows=1, columns=1, **words):
        shape = rows, columns, bool(words.get("squeeze", True))
        if shape not in kept:
            kept[shape] = made(rows, columns, squeeze=shape[2])
        return kept[shape]

    made = plt.subplots
    monkeypatch.setattr(plt, "subplots", subplots)


@pytest.mark.slow(but=6)
@pytest.mark.parametrize("who", WHO)
def test_pandas_words_are_taken_or_refused_in_own_words(p, who, one_picture, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, like = WHO[who]
    asked, found = 0, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in {*dir(like), *dir(type(make(p)))}:
            one = make(p.copy())  # which some verbs change
            if name.startswith("_") or name in ("pipe", "close") or not hasattr(one, name):
                continue
            verb, own = getattr(one, name), getattr(type(one), name, None)
            if not callable(verb):
                continue
            said = [one for one in (getattr(like, name, None), own) if inspect.isfunction(one)]
            for args, words in (call for one in said for call in calls(one)):
                told = wrong(lambda verb=verb, args=args, words=words: verb(*args, **words))
                if told is not None and (name, np.mean) != (
                    "rename",
                    next(iter([*args, *words.values()]), None),
                ):
                    found.append(f"{who}.{name}: {told}: *{args}, **{words}")
                asked += 1
    assert not found, "\n".join(found)
    assert asked > 500 or who in ("dt", "str of numbers")
    assert not any(tmp_path.iterdir())  # no word of pandas is the name of a file


@pytest.mark.parametrize("who", WHO)
def test_hasattr_is_false_for_what_is_absent(p, who):
    make, like = WHO[who]
    one = make(p)
    for name in [*dir(like), "nobody"]:
        if name.startswith("_") or hasattr(one, name):
            continue
        with pytest.raises(NotOffered) as caught:
            getattr(one, name)
        assert isinstance(caught.value, AttributeError)
        assert not internal().search(str(caught.value))
    assert not hasattr(one, "nobody")


def test_parts_that_are_not_offered_are_absent(p):
    assert not any(hasattr(p["t"].dt, name) for name in ("asfreq", "to_pydatetime", "unit", "tz"))
    assert not any(hasattr(p["s"].str, name) for name in ("join", "findall", "get_dummies", "foo"))
    assert not any(hasattr(p["x"].dt, name) for name in ("year", "month"))
    assert hasattr(p["t"].dt, "weekday")
    assert hasattr(p["s"].str, "lower")
    assert "year" in dir(p["t"].dt)
    with pytest.raises(Refused):
        list(p["s"].str)
    with pytest.raises(BadType, match=r"\.str\.lower\(\)"):
        p["s"].str()


# Words that are taken ---------------------------------------------------------------------------------------


def test_columns_are_dropped_in_each_way_of_pandas(p):
    rest = ["n", "b", "s", "t", "o"]
    for ask in (
        lambda: p.drop(["x"], axis=1),
        lambda: p.drop("x", axis="columns"),
        lambda: p.drop(labels=["x"], axis=1),
        lambda: p.drop(columns="x"),
        lambda: p.drop(columns=["x", "nobody"], errors="ignore"),
        lambda: p.drop(pd.Index(["x"]), axis=1, inplace=False, level=None),
    ):
        assert list(ask().columns) == rest
    for ask in (
        lambda: p.drop("x"),
        lambda: p.rename({"x": "y"}),
        lambda: p.drop([0], axis=0),
        lambda: p.drop("x", axis="index"),
        lambda: p.drop(index=[0]),
        lambda: p.drop("x", axis=True),
        lambda: p.rename(index={0: 1}),
        lambda: p.rename({0: 1}, axis=0),
        lambda: p.dropna(axis=1),
    ):
        with pytest.raises(Refused, match="rows"):
            ask()
    for ask in (
        lambda: p.drop(),
        lambda: p.drop("x", columns="x"),
        lambda: p.rename(),
        lambda: p.rename(3, axis=1),
    ):
        with pytest.raises(BadType):
            ask()


def test_columns_are_renamed_in_each_way_of_pandas(p):
    for ask in (
        lambda: p.rename({"x": "y"}, axis=1),
        lambda: p.rename(columns={"x": "y", "nobody": "z"}),
        lambda: p.rename(mapper={"x": "y"}, axis="columns", errors="raise"),
        lambda: p.rename(lambda name: "y" if name == "x" else name, axis=1, level=None),
    ):
        assert list(ask().columns) == ["y", "n", "b", "s", "t", "o"]
    with pytest.raises(dpframe.UnknownColumn):
        p.rename(columns={"nobody": "z"}, errors="raise")


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"how": "any"},
        {"how": "all"},
        {"how": "all", "subset": ["x", "n"]},
        {"how": "any", "subset": ["x", "s"]},
        {"how": "all", "subset": ["x", "s"]},
        {"thresh": 1},
        {"thresh": 4},
        {"thresh": 2, "subset": ["x", "s", "t"]},
        {"thresh": 9},
        {"axis": 0, "ignore_index": True, "subset": "x"},
        {"axis": "index", "how": "any"},
    ],
)
def test_dropna_keeps_the_rows_that_pandas_keeps(words):
    cells = {"x": [1.0, None, None, 4.0], "s": ["a", None, "b", None], "n": [1, 2, 3, 4]}
    df = pd.DataFrame({**cells, "t": pd.to_datetime(["2024-01-05", None, None, "2024-03-05"])})
    p = df.dp.open(1000)
    assert p.dropna(**words).count(epsilon=900) == len(df.dropna(**words))


def test_dropna_takes_how_or_thresh(p):
    with pytest.raises(BadType, match="not both"):
        p.dropna(how="all", thresh=2)
    with pytest.raises(ValueError, match="unknown how 'some'"):
        p.dropna(how="some")


def test_words_at_pandas_defaults_are_no_words(p):
    assert p.clip(0, 3, axis=None, inplace=False).explain.sum("x") == p.clip(0, 3).explain.sum("x")
    assert str(p["x"].map({1: 2}, na_action=None)._expr) == str(p["x"].map({1: 2})._expr)
    with pytest.raises(BadType, match="na_action is None or 'ignore'"):
        p["x"].map({1: 2}, na_action="sometimes")
    with pytest.raises(BadType, match="inplace= is refused here"):
        p.cut("x", [0, 1], inplace=True)
    with pytest.raises(BadType, match="Did you mean 'lower'"):
        p.clip(lowr=3)
    with pytest.raises(BadType, match="cut needs bins="):
        p.cut("x")
    with pytest.raises(BadType, match="clip is given lower twice"):
        p.clip(0, lower=1)


def test_a_null_that_is_no_match(p):
    """``na=False`` is how pandas users make a mask of texts with nulls."""
    for ask in (
        lambda c, **w: c.str.contains("a", **w),
        lambda c, **w: c.str.startswith("a", **w),
        lambda c, **w: c.str.endswith("a", **w),
    ):
        assert p[ask(p["s"], na=False)].count(epsilon=90) == 2
        assert p[~ask(p["s"], na=False)].count(epsilon=90) == 2


def test_counts_of_combinations_are_those_of_groups(p):
    counts = p[["s", "b"]].value_counts(sort=False, epsilon=90)
    assert list(counts) == list(p.groupby(["s", "b"]).size(epsilon=90)) == [0, 2, 1, 0]


def test_a_column_in_some_rows(p):
    assert p["x"][p["n"] > 2].count(epsilon=90) == 1
    assert round(p["x"][p["n"] > 2].clip(0, 3).sum(epsilon=200)) == 3
    for key in (0, slice(0, 2), [True, False, True, True], pd.Series([True] * 4)):
        with pytest.raises(Refused, match="may look across people"):
            p["x"][key]


def test_operators_that_rows_have_not_are_refused(p):
    for ask in (
        lambda: p @ p,
        lambda: p ^ p,
        lambda: p << 1,
        lambda: p + p["x"],
        lambda: divmod(p["x"], 2),
        lambda: p["x"] @ p["x"],
        lambda: p["n"] << 1,
        lambda: float(p["x"]),
        lambda: int(p["x"]),
        lambda: range(p["n"]),
        lambda: complex(p["n"]),
        lambda: p["s"].str + "a",
    ):
        with pytest.raises(Refused):
            ask()
    assert str(round(p["x"], 1)._expr) == str(p["x"].round(1)._expr)


def test_words_of_answers_and_of_opening_are_checked_too(p):
    answer, df = p.groupby("s").size(), pd.DataFrame({"x": [1, 2]})
    df.dp.open(1)
    for ask, message in (
        (lambda: answer.dp.interval(nobody=1), "interval has no argument nobody="),
        (
            lambda: p.count().interval(0.9, 3),
            "interval is given 2 arguments by position, and takes at most 1",
        ),
        (
            lambda: pd.DataFrame({"x": [1]}).dp.open(1, 0, "x"),
            "open is given 3 arguments by position",
        ),
        (lambda: p.open(1, 0, "x"), "open is given 3 arguments by position"),
        (lambda: df[:1].dp.open(1, 0, "x"), "open is given 3 arguments by position"),
    ):
        with pytest.raises(BadType, match=message):
            ask()


def test_signatures_and_docstrings_are_those_of_the_verbs():
    for verb in (dpframe.PrivateFrame.drop, dpframe.PrivateFrame.mean, dpframe.PrivateFrame.query):
        assert verb.__doc__
        assert "words" not in inspect.signature(verb).parameters
    assert "epsilon" in inspect.signature(dpframe.PrivateFrame.mean).parameters
    assert "PrivateFrame.mean" in repr(dpframe.PrivateFrame.mean)
    assert dpframe.PrivateFrame.agg is dpframe.PrivateFrame.aggregate
