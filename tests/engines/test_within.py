"""What a person's rows make of each other, against pandas cell by cell; ids, orders and pieces of every kind."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe
from dpframe._expr import Column, compare, constant, logical_not
from dpframe._expr._within import Key as WithinKey
from dpframe._expr._within import within
from dpframe._groups.unit import Unit
from dpframe._plans.aggregates import Output as query_Output
from dpframe._questions.question import Query
from dpframe._statistics.base import Rows as stats_Rows
from dpframe.engines.expressions import evaluate
from dpframe.engines.pandas import PandasEngine

TIMES = [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-03-01 12:00"), pd.NaT]
ROW = st.tuples(
    st.integers(0, 4),
    st.sampled_from([np.nan, -2.5, 0.0, 1.0, 1.0, 7.25, np.inf]),
    st.integers(-3, 3),
    st.sampled_from(["b", "a", "", None]),
    st.sampled_from(TIMES),
    st.booleans(),
)
NUMBERS, SORTED, CELLS = ("x", "k", "b"), ("x", "k", "t"), ("x", "k", "s", "t", "b")


def frame_of(rows: list[Any]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["who", "x", "k", "s", "t", "b"])
    dtypes = {
        "who": "int64",
        "x": float,
        "k": "int64",
        "s": "str",
        "t": "datetime64[us]",
        "b": bool,
    }
    return frame.astype(dtypes)


frames = st.lists(ROW, min_size=1, max_size=25).map(frame_of)


def leaf(frame: pd.DataFrame, name: str) -> Column:
    return Column.of(list(frame.columns).index(name), name, frame.dtypes[name])


def cells(
    frame: pd.DataFrame, how: str, name: str | None, people: Any = ("who",), **words: Any
) -> list[Any]:
    """The values as Python's own, null as None."""
    x = None if name is None else leaf(frame, name)
    e = within(how, x, [leaf(frame, p) for p in people], **words)
    return plain(PandasEngine(frame).table.column(e, slice(0, len(frame))))


def plain(v: Any) -> list[Any]:
    values = (
        v.values.tolist()
        if v.categories is None
        else np.array([*v.categories, None], dtype=object)[v.values].tolist()
    )
    if v.kind == "time":
        values = [pd.Timestamp(t) for t in v.values]
    null = np.zeros(len(v), dtype=bool) if v.nulls() is None else v.nulls()
    return [None if missing else value for value, missing in zip(values, null, strict=True)]


def alike(ours: list[Any], theirs: Any) -> None:
    wanted = [None if pd.isna(c) else c for c in theirs]
    assert [v is None for v in ours] == [v is None for v in wanted]
    for a, b in zip(ours, wanted, strict=True):
        assert a is None or a == b or a == pytest.approx(b, rel=1e-9, abs=1e-9)


ONE = {
    **dict.fromkeys(("sum", "mean", "median", "prod"), (NUMBERS, ())),
    **dict.fromkeys(("var", "std", "sem"), (("x", "k"), (1,))),
    **dict.fromkeys(("min", "max"), (SORTED, ())),
    **dict.fromkeys(("any", "all"), (NUMBERS, ())),
    **dict.fromkeys(("first", "last", "count", "nunique"), (CELLS, ())),
}
EACH = {
    **dict.fromkeys(("cumsum", "cumprod", "cummin", "cummax"), ("x", "k")),
    **dict.fromkeys(("ffill", "bfill"), CELLS),
}


@pytest.mark.parametrize("how", ONE)
@settings(max_examples=25, deadline=None)
@given(frame=frames, filtered=st.booleans())
def test_one_value_of_a_person_is_the_one_of_pandas(how, frame, filtered):
    names, args = ONE[how]
    mask = (frame["k"] > -2).to_numpy() if filtered else np.ones(len(frame), dtype=bool)
    where = compare(">", leaf(frame, "k"), constant(-2)) if filtered else None
    for name in names:
        found = cells(frame, how, name, args=args, where=where)
        theirs = frame[mask].groupby("who")[name].transform(how)
        if how in ("sum", "mean", "var", "std", "sem", "prod", "median") and name == "x":
            finite = ~frame["who"].isin(frame["who"][np.isinf(frame["x"])]).to_numpy()
            ours = [f for f, m, ok in zip(found, mask, finite, strict=True) if m and ok]
            alike(ours, theirs[finite[mask]])
        else:
            alike([f for f, m in zip(found, mask, strict=True) if m], theirs)


@pytest.mark.parametrize("how", EACH)
@settings(max_examples=25, deadline=None)
@given(frame=frames)
def test_running_values_are_those_of_pandas(how, frame):
    frame = frame.replace({"x": {np.inf: 3.0}})
    for name in EACH[how]:
        alike(cells(frame, how, name), getattr(frame.groupby("who")[name], how)())


@settings(max_examples=60, deadline=None)
@given(frame=frames, steps=st.integers(-3, 30), name=st.sampled_from(CELLS))
def test_shift_is_that_of_pandas(frame, steps, name):
    alike(cells(frame, "shift", name, args=(steps,)), frame.groupby("who")[name].shift(steps))


@settings(max_examples=60, deadline=None)
@given(frame=frames, place=st.integers(-4, 4), name=st.sampled_from(CELLS))
def test_the_cell_at_a_place_is_that_of_pandas(frame, place, name):
    rows = frame.groupby("who").nth(place).set_index("who")[name]
    alike(cells(frame, "nth", name, args=(place,)), rows.reindex(frame["who"]))


@settings(max_examples=80, deadline=None)
@given(
    frame=frames,
    method=st.sampled_from(["average", "min", "max", "first", "dense"]),
    ascending=st.booleans(),
    pct=st.booleans(),
    name=st.sampled_from(SORTED),
)
def test_rank_is_that_of_pandas(frame, method, ascending, pct, name):
    theirs = frame.groupby("who")[name].rank(method=method, ascending=ascending, pct=pct)
    alike(cells(frame, "rank", name, args=(method, ascending, pct)), theirs)


@settings(max_examples=40, deadline=None)
@given(frame=frames, level=st.sampled_from([0.0, 0.1, 0.5, 0.77, 1.0]))
def test_quantiles_sizes_and_places_are_those_of_pandas(frame, level):
    frame = frame.replace({"x": {np.inf: 3.0}})
    groups = frame.groupby("who")
    alike(
        cells(frame, "quantile", "x", args=(level,)),
        groups["x"].quantile(level).reindex(frame["who"]),
    )
    alike(cells(frame, "size", None), groups["x"].transform("size"))
    for ascending in (True, False):
        alike(
            cells(frame, "cumcount", None, args=(ascending,)), groups.cumcount(ascending=ascending)
        )


@settings(max_examples=60, deadline=None)
@given(frame=frames, keep=st.sampled_from(["first", "last", False]), by=st.booleans())
def test_duplicates_are_those_of_pandas(frame, keep, by):
    words = {"by": [leaf(frame, "s")]} if by else {}
    theirs = frame.duplicated(["who", "s"] if by else "who", keep=keep)
    assert cells(frame, "duplicated", None, args=(keep,), **words) == theirs.tolist()


@settings(max_examples=80, deadline=None)
@given(
    frame=frames,
    names=st.permutations(["x", "k", "s", "t", "b"]),
    down=st.lists(st.booleans(), min_size=2, max_size=2),
    last=st.booleans(),
)
def test_sorted_rows_stand_as_pandas_stable_sort_has_them(frame, names, down, last):
    keys = [WithinKey(leaf(frame, n), d, last) for n, d in zip(names[:2], down, strict=True)]
    position = "last" if last else "first"
    one = frame.sort_values(names[1], ascending=not down[1], kind="stable", na_position=position)
    both = one.sort_values(names[0], ascending=not down[0], kind="stable", na_position=position)
    for how, args in (("cumcount", (True,)), ("shift", (1,)), ("duplicated", ("last",))):
        name = "k" if how == "shift" else None
        theirs = {
            "cumcount": lambda: both.groupby("who").cumcount(),
            "shift": lambda: both.groupby("who")["k"].shift(),
            "duplicated": lambda: both.duplicated("who", keep="last"),
        }[how]().sort_index()
        alike(cells(frame, how, name, order=keys, args=args), theirs)


# People -------------------------------------------------------------------------------------------------------------------

IDS = {
    "doubles": (np.array([1.0, np.nan, 1.0, -0.0, 0.0]), [0, None, 0, 1, 1]),
    "objects": (np.array([1, 1.0, True, None, (1,)], dtype=object), [0, 0, 0, None, None]),
    "decimals": (np.array([Decimal(1), 1, "1", np.nan, "1"], dtype=object), [0, 0, 1, None, 1]),
    "nullable": (pd.array([2, None, 2, 3, 3], dtype="Int64"), [0, None, 0, 1, 1]),
    "texts": (pd.array(["a", None, "a", "", ""], dtype="str"), [0, None, 0, 1, 1]),
    "categories": (
        pd.Categorical(["a", None, "a", "c", "c"], categories=["c", "b", "a"]),
        [0, None, 0, 1, 1],
    ),
    "times": (
        pd.to_datetime(["2024-01-01", None, "2024-01-01", "2024-01-02", "2024-01-02"]),
        [0, None, 0, 1, 1],
    ),
}


@pytest.mark.parametrize("ids", IDS)
def test_rows_of_one_person_are_those_that_limits_take_for_one_persons(ids):
    names, whose = IDS[ids]
    frame = pd.DataFrame({"who": pd.Series(names), "x": [1.0, 2.0, 4.0, 8.0, 16.0]})
    sums = [
        None if w is None else sum(x for x, v in zip(frame["x"], whose, strict=True) if v == w)
        for w in whose
    ]
    assert cells(frame, "sum", "x") == sums
    assert cells(frame, "duplicated", None, args=("first",)) == [
        w is None or w in whose[:i] for i, w in enumerate(whose)
    ]


def test_several_columns_name_one_person():
    frame = pd.DataFrame(
        {"a": [1, 1, 2, 1], "b": ["x", "y", "x", "x"], "x": [1.0, 2.0, 4.0, 8.0]}
    ).astype({"b": "str"})
    assert cells(frame, "sum", "x", ("a", "b")) == [9.0, 2.0, 4.0, 9.0]


def test_person_without_counted_rows_has_no_value():
    frame = pd.DataFrame({"who": [0, 0, 1], "x": [1.0, 2.0, 4.0], "k": [5, 0, 0]})
    where = compare(">", leaf(frame, "k"), constant(1))
    for how, wanted in (
        ("sum", [1.0, 1.0, None]),
        ("size", [1.0, 1.0, None]),
        ("first", [1.0, 1.0, None]),
    ):
        assert cells(frame, how, None if how == "size" else "x", where=where) == wanted


# Pieces -------------------------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(frame=frames, start=st.integers(0, 25), size=st.integers(1, 9))
def test_some_of_the_rows_have_some_of_the_values(frame, start, size):
    total = within("sum", leaf(frame, "k"), [leaf(frame, "who")])
    expr = compare(">", total, leaf(frame, "k"))
    nested = within("size", None, [leaf(frame, "who")], logical_not(expr))
    for e in (expr, nested):
        engine = PandasEngine(frame)
        whole = evaluate(e, engine.table.column, slice(0, len(frame)))
        some = slice(min(start, len(frame)), min(start + size, len(frame)))
        assert plain(evaluate(e, PandasEngine(frame).table.column, some)) == plain(whole)[some]


def test_between_questions_no_more_is_kept_than_the_frame_has_room_for():
    frame = pd.DataFrame({"who": np.arange(50_000) // 5, "x": np.arange(50_000.0)})
    engine = PandasEngine(frame)
    asked = [
        within("quantile", leaf(frame, "x"), [leaf(frame, "who")], args=(q / 8,)) for q in range(8)
    ]
    for e in asked:
        engine.table.column(e)
    assert all(
        engine.table.column(e) is engine.table.column(e) for e in asked
    )  # of one question nothing is made twice
    engine.reduce(
        Query((query_Output("n", "size"),)),
        {stats_Rows()},
        Unit(people=(leaf(frame, "who"),), rows=1),
    )
    assert 1 <= len(engine.table.within._vectors) <= 3
    engine.close()
    assert len(engine.table.within._vectors) == len(engine.table.within._arrangements) == 0


def test_without_rows_there_are_no_values():
    frame = frame_of([])
    for how, args in (
        ("sum", ()),
        ("shift", (1,)),
        ("rank", ("min", True, False)),
        ("first", ()),
        ("median", ()),
        ("min", ()),
    ):
        assert cells(frame, how, "x", args=args) == []
    assert cells(frame, "duplicated", None, args=("last",)) == []


def test_rows_of_nobody_are_nobodys_in_groups_too():
    frame = pd.DataFrame(
        {
            "who": [np.nan, np.nan, 1.0],
            "x": [1.0, 2.0, 4.0],
            "g": pd.array(["a", "a", "a"], dtype="str"),
        }
    )
    found = cells(frame, "size", None, by=[leaf(frame, "g")])
    assert found == [None, None, 1.0]
    assert cells(frame, "duplicated", None, args=("first",), by=[leaf(frame, "g")]) == [
        True,
        True,
        False,
    ]


ENDS: dict[str, Any] = {
    "int64": np.array([2**63 - 1, -(2**63), 5, -(2**63), 7, 3]),
    "uint64": np.array([2**64 - 1, 0, 5, 2**64 - 1, 7, 3], dtype=np.uint64),
    "float32": np.array([np.inf, -np.inf, 0.5, np.nan, 7, 3], dtype=np.float32),
    "nullable": pd.array([None, -(2**63), 5, None, 7, 3], dtype="Int64"),
    "bool": np.array([True, False, True, False, True, True]),
    "times": pd.to_datetime(
        ["2262-04-11", "1677-09-22", "2024-01-01", None, "2024-01-02", "2024-01-03"]
    ),
    "durations": pd.to_timedelta([2**63 - 1, -(2**63) + 1, 5, None, 7, 3]),
}


@pytest.mark.parametrize("dtype", ENDS)
@pytest.mark.parametrize("how", ["min", "max", "first", "last", "count", "any"])
def test_rows_of_nobody_have_no_value(how, dtype):
    """Also next to the largest cells that there are; a person of nulls alone has none either, but for a number of them."""
    if how == "any" and dtype in ("times", "durations"):
        pytest.skip("moments are neither true nor false")
    frame = pd.DataFrame({"who": [1.0, 1.0, np.nan, 2.0, np.nan, 3.0], "x": pd.Series(ENDS[dtype])})
    found = cells(frame, how, "x")
    assert found[2] is found[4] is None
    theirs = frame.groupby("who")["x"].agg(how).reindex([1.0, 2.0, 3.0])
    ours = [found[0], found[3], found[5]]
    assert found[1] == found[0]
    if dtype == "durations" and how != "count":
        ours = [None if v is None else pd.Timedelta(v) for v in ours]
    for one, other in zip(ours, theirs, strict=True):
        assert one == other if one is not None else pd.isna(other), (ours, list(theirs))


def test_a_value_of_a_person_is_kept_once_for_the_person():
    """Of a million rows of a few people not a million values: these are put there as rows are looked at."""
    frame = pd.DataFrame({"who": np.arange(1000) % 3, "x": np.arange(1000.0)})
    engine = PandasEngine(frame)
    total = within("sum", leaf(frame, "x"), [leaf(frame, "who")])
    assert len(engine.table.column(total).table) == 4  # and one that is nobody's
    assert (
        engine.table.column(total, slice(3, 6)).values.tolist()
        == frame.groupby("who")["x"].sum().tolist()
    )


def test_many_people_of_whom_some_have_very_many_rows_are_each_taken_alone():
    """More people than are gone through together, and more rows of some than of the others; numbers that round."""
    rng = np.random.default_rng(3)
    many = 2**15 + 2**9
    who = np.concatenate(
        [
            np.arange(many).repeat(2),
            rng.integers(0, 400, 16_000),
            np.full(2**16 + 9, 7),
            np.full(80, 8),
        ]
    )
    frame = pd.DataFrame({"who": rng.permutation(who)})
    frame["x"] = rng.normal(0, 1, len(who)) * 10.0 ** rng.integers(-8, 9, len(who))
    frame.loc[rng.random(len(who)) < 0.1, "x"] = np.nan
    values, rows = frame["x"].to_numpy(), frame.groupby("who").indices
    some = [*range(12), *rng.integers(0, many, 60).tolist(), many - 1]
    found = {
        how: np.array(cells(frame, how, "x"), dtype=float)
        for how in ("cumsum", "cummax", "median", "ffill", "bfill")
    }
    for whose in some:
        own = values[rows[whose]]
        seen, full = ~np.isnan(own), np.where(np.isnan(own), 0.0, own)
        running = np.where(seen, list(itertools.accumulate(full.tolist())), np.nan)
        highest = np.where(seen, np.fmax.accumulate(own), np.nan)
        wanted = {
            "cumsum": running,
            "cummax": highest,
            "ffill": pd.Series(own).ffill().to_numpy(),
            "bfill": pd.Series(own).bfill().to_numpy(),
        }
        for how, theirs in wanted.items():
            ours = found[how][rows[whose]]
            assert np.array_equal(ours, theirs, equal_nan=True), (how, whose)
        middle = found["median"][rows[whose]]
        assert np.allclose(
            middle, np.median(own[seen]) if seen.any() else np.nan, 1e-12, 0, equal_nan=True
        )


@pytest.mark.parametrize("sort", [True, False])
def test_rows_that_stand_by_person_already_are_taken_as_they_stand(sort):
    who = np.arange(70_000) // 3
    frame = pd.DataFrame({"who": who, "x": np.random.default_rng(1).normal(0, 1, len(who))})
    mixed = frame if sort else frame.sample(frac=1, random_state=0)
    mixed = mixed.reset_index(drop=True)
    for how, args in (("shift", (1,)), ("cumsum", ()), ("cumcount", (True,))):
        theirs = getattr(mixed.groupby("who")["x"], how)()
        alike(cells(mixed, how, None if how == "cumcount" else "x", args=args), theirs)


# Sources ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def source():
    """A table that is read in batches, whose order is taken for none."""
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(
        {"who": rng.integers(0, 40, 300), "x": rng.normal(0, 1, 300), "t": rng.integers(0, 3, 300)}
    )
    table = pa.Table.from_pandas(frame, preserve_index=False)
    p = dpframe.open(
        table,
        1000,
        unit="who",
        max_rows=9,
        max_groups=1,
        bounds={"x": (-4, 4), "t": (0, 3)},
        because="made up",
    )
    return frame, p


def test_what_goes_by_order_needs_one_that_is_the_persons_own(source, monkeypatch):
    _, p = source
    assert p.groupby("who")["x"].first()._expr.order == ()
    assert p.groupby("who")["x"].sum()._expr.order == ()
    monkeypatch.setattr(p._session.data.source, "ordered", False)
    monkeypatch.setattr(p._session, "premises", p._session.data.premises(named=True))
    p = type(p)._of(p._session)  # what is proven of rows goes along with the frame
    with pytest.raises(dpframe.Refused, match="no fixed one"):
        p.groupby("who")["x"].first()
    names = [str(key.expr) for key in p.sort_values("t").groupby("who")["x"].first()._expr.order]
    # With all other columns what is left are equals; zeros of both signs are not, since 1 / x tells them apart.
    assert names == ["t", "who", "x", "1.0 / x", "t"]
    assert [str(key.expr) for key in p.groupby("who")["x"].sum()._expr.order] == ["x"]
    assert p.budget.spent == 0


def test_in_any_order_of_the_rows_a_sorted_source_says_the_same(source):
    frame, _ = source
    leaves = {n: leaf(frame, n) for n in frame.columns}
    keys = [WithinKey(leaves[n]) for n in ("t", "who", "x")]
    mixed = frame.sample(frac=1, random_state=1).reset_index(drop=True)

    def bits(table: pd.DataFrame, how: str, order: list[Any]) -> list[Any]:
        values = cells(table, how, "x", order=order)
        return sorted(zip(table["who"], table["t"], table["x"], values, strict=True))

    for how in ("first", "last", "cumsum"):
        assert bits(frame, how, keys) == bits(mixed, how, keys)
    assert bits(frame, "sum", [WithinKey(leaves["x"])]) == bits(
        mixed, "sum", [WithinKey(leaves["x"])]
    )
    assert bits(frame, "sum", []) != bits(
        mixed, "sum", []
    )  # doubles in another order have another sum


@pytest.mark.parametrize("how", ["min", "max", "median", "sum", "mean", "prod", "cummin", "cummax"])
def test_of_zeros_of_both_signs_no_order_of_the_rows_decides_which(how):
    """Where rows have no order of their own one that others decide would turn the sign of 1 / x."""
    frame = pd.DataFrame({"who": [1] * 5, "x": [0.0, -0.0, 0.0, -0.0, -0.0]})
    found = {
        np.signbit(cells(frame.iloc[list(order)].reset_index(drop=True), how, "x")[0])
        for order in itertools.permutations(range(5))
    }
    assert len(found) == 1


def test_passes_over_some_of_the_people_come_to_what_one_pass_does(source, monkeypatch):
    frame, _ = source
    asked = {
        "sum": lambda q: q.groupby("who")["x"].sum().mean(epsilon=900),
        "head": lambda q: q.sort_values("t").groupby("who").head(2)["x"].sum(epsilon=900),
    }
    for ask in asked.values():
        found = []
        for passes in (1, 7):
            q = dpframe.open(
                _table(frame), 1000, unit="who", max_rows=9, max_groups=1,
                bounds={"x": (-4, 4)}, because="made up",
            )  # fmt: skip
            monkeypatch.setattr(q._session.data.source, "passes", lambda columns, n=passes: n)
            monkeypatch.setattr(
                type(q._session),
                "_noise",
                lambda self, plan, part, integers, **words: np.array(integers),
            )
            found.append(float(ask(q)))
        assert found[0] == found[1]


def _table(frame: pd.DataFrame) -> Any:
    return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)
