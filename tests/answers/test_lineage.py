"""What people do next with an answer: its numbers keep their own intervals, and edited ones have none."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, BadValue
from dpframe._answers import forms
from dpframe._answers.matching import ReleasedTable

N = 400


@pytest.fixture
def p():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 90, N) * 1.0,
            "cost": rng.uniform(0, 900, N),
            "town": rng.choice(["a", "b", "c"], N),
            "year": rng.choice([1, 2], N),
        }
    )
    return frame.dp.open(
        1000,
        bounds={"age": (0, 110), "cost": (0, 1000)},
        keys={"town": ["a", "b", "c"], "year": [1, 2]},
    )


ANSWERS = {
    "series": lambda p: p.groupby("town")["cost"].mean(epsilon=2),
    "table": lambda p: p.groupby("town").agg(n=("age", "size"), m=("cost", "mean"), epsilon=2),
    "two keys": lambda p: p.groupby(["town", "year"]).size(epsilon=2),
    "crosstab": lambda p: p.crosstab("town", "year", margins=True, epsilon=2),
    "shares": lambda p: p.crosstab("town", "year", normalize="index", epsilon=2),
    "pivot": lambda p: p.pivot_table(
        index="town", columns="year", values="cost", aggfunc="mean", epsilon=2
    ),
    "pairs": lambda p: p.groupby("town")[["age", "cost"]].agg(["mean", "count"], epsilon=4),
    "describe": lambda p: p[["age", "cost"]].describe(epsilon=20),
    "corr": lambda p: p[["age", "cost"]].corr(epsilon=5),
    "means": lambda p: p[["age", "cost"]].mean(epsilon=2),
    "value_counts": lambda p: p["town"].value_counts(epsilon=2),
    "histogram": lambda p: p.histogram("age", bins=[0, 30, 60, 90], epsilon=2),
    "flat": lambda p: p.groupby("town", as_index=False).agg(
        n=("age", "size"), m=("cost", "mean"), epsilon=2
    ),
    "tree": lambda p: p.groupby("town")["age"].quantile([0.25, 0.75], method="tree", epsilon=4),
}
STEPS = {
    "sort_index": lambda a: a.sort_index(ascending=False),
    "sort_values": lambda a: (
        a.sort_values(a.columns[-1]) if isinstance(a, pd.DataFrame) else a.sort_values()
    ),
    "head": lambda a: a.head(2),
    "tail": lambda a: a.tail(2),
    "iloc": lambda a: a.iloc[[1, 0]],
    "mask": lambda a: a[a.iloc[:, -1] > -1e9] if isinstance(a, pd.DataFrame) else a[a > -1e9],
    "reset_index": lambda a: a.reset_index(),
    "rename_axis": lambda a: a.rename_axis(index=["z"] * a.index.nlevels),
    "columns": lambda a: a[list(a.columns[::-1])] if isinstance(a, pd.DataFrame) else a.rename("w"),
    "T": lambda a: a.T,
    "float": lambda a: (
        a.astype({c: float for c in a.columns if c != "town"}) if a.ndim == 2 else a.astype(float)
    ),
    "nullable": lambda a: a.convert_dtypes(),
    "pickle": lambda a: pickle.loads(pickle.dumps(a.iloc[::-1])),
    "twice": lambda a: (
        a.sort_index(ascending=False).head(2).rename_axis(index=["z"] * a.index.nlevels)
    ),
}
REFUSED = {("flat", "T"), ("flat", "reset_index"), ("flat", "columns")}


def triples(answer, at_once=False):
    table = answer.dp.table(at_once=at_once)
    return set(map(tuple, table[["value", "lower", "upper"]].fillna(-1.5).to_numpy(float).tolist()))


@pytest.mark.parametrize("ask", ANSWERS)
@pytest.mark.parametrize("step", STEPS)
def test_numbers_keep_their_own_intervals(p, ask, step):
    answer = ANSWERS[ask](p)
    moved = STEPS[step](answer)
    if (ask, step) in REFUSED:
        with pytest.raises(BadValue, match="have changed"):
            moved.dp.interval()
        return
    assert triples(moved) <= triples(answer)
    assert triples(moved, at_once=True) <= triples(answer, at_once=True)
    assert moved.dp.plan == answer.dp.plan
    assert moved.dp.plans == (answer.dp.plan,)
    assert moved.dp.interval().index.equals(moved.index)
    assert len(triples(moved)) == len(triples(answer)) or len(moved) < len(answer)


SELECTIONS = {
    "nlargest": lambda t: t.nlargest(2, "n"),
    "column": lambda t: t["n"].sort_values(),
    "column in a frame": lambda t: t[["m"]],
    "row": lambda t: t.loc["b"],
    "rows": lambda t: t.loc[["c", "a"]],
    "query": lambda t: t.query("n > 0").sort_values("m"),
    "reindex": lambda t: t.reindex(["c", "a"]),
    "stack": lambda t: t.stack(),
    "chain": lambda t: t.sort_values("m").reset_index(),
    "set_index": lambda t: t.reset_index().set_index("town"),
    "to_frame": lambda t: t["m"].to_frame(),
    "drop": lambda t: t.drop(columns="n").drop(index="a"),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_parts_and_new_names_keep_intervals(p, name):
    table = ANSWERS["table"](p)
    kept = SELECTIONS[name](table)
    assert triples(kept) <= triples(table)
    pd.testing.assert_index_equal(kept.dp.interval().index, kept.index)


def test_parts_of_a_table_with_levels_keep_intervals_by_whole_labels(p):
    answer = ANSWERS["pairs"](p)
    for kept in (
        answer[["cost"]],
        answer[[("cost", "mean")]],
        answer[("cost", "mean")].sort_values(),
        answer.swaplevel(axis=1),
    ):
        assert triples(kept) <= triples(answer)
    two = ANSWERS["two keys"](p)
    assert triples(two.swaplevel().sort_index()) == triples(two)
    assert triples(two.to_frame("n").T) == triples(two)


def test_a_label_that_was_not_asked_has_no_number(p):
    answer = ANSWERS["table"](p).reindex(["c", "nobody", "a"]).reindex(columns=["m", "n", "more"])
    interval = answer.dp.interval()
    assert interval.loc["nobody"].isna().all()
    assert interval["more"].isna().all(axis=None)
    assert interval.loc[["c", "a"], ["m", "n"]].notna().all(axis=None)
    assert (answer.dp.table().query("town == 'nobody'")["flags"] == "no number").all()
    with pytest.raises(BadValue, match="have changed"):
        ANSWERS["table"](p).reindex(["c", "nobody"], fill_value=0).dp.interval()


# Edits --------------------------------------------------------------------------------------------------------


def edited(answer, row, column, value):
    changed = answer.copy()
    if isinstance(changed, pd.Series):
        changed = changed.astype(float)
        changed.iloc[row] = value
    else:
        changed.isetitem(column, changed.iloc[:, column].astype(float))
        changed.iloc[row, column] = value
    return changed


@pytest.mark.parametrize("ask", ANSWERS)
@pytest.mark.parametrize(
    "after",
    [lambda a: a, lambda a: a.iloc[::-1], lambda a: a.rename_axis(index=[None] * a.index.nlevels)],
)
def test_one_edited_cell_is_refused_whatever_was_written(p, ask, after):
    answer = ANSWERS[ask](p)
    column = 1 if ask == "flat" else 0
    cells = answer.iloc[:, column] if isinstance(answer, pd.DataFrame) else answer
    was = float(cells.iloc[1])
    values = {
        was + 1,
        was * 1000,
        -was,
        np.nextafter(was, 1e9),
        0.0,
        np.nan,
        np.inf,
        float(cells.iloc[0]),
    }
    values |= {float(np.round(was, d)) for d in range(-3, 4)}
    for value in values - {was}:
        changed = after(edited(answer, 1, column, value))
        with pytest.raises(BadValue, match="have changed since it was released"):
            changed.dp.interval()


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.assign(extra=1),
        lambda t: t.assign(n=t["n"].pow(2)),
        lambda t: t.assign(n=t["m"]),
        lambda t: t.set_axis(["m", "n"], axis=1),
        lambda t: t.set_axis(["visits", "cost"], axis=1),
        lambda t: t.rename(columns={"n": "visits"}),
        lambda t: t["m"].rename("x"),
        lambda t: t.round(1),
        lambda t: t.round({"m": 1}),
        lambda t: t["m"].round(1),
        lambda t: t.set_axis(["b", "a", "c"]),
        lambda t: t.rename(index={"a": "z"}),
        lambda t: t.reset_index(drop=True).iloc[::-1],
        lambda t: t > 0,
        lambda t: t.astype(str),
        lambda t: t.astype(complex),
        lambda t: t.fillna(0).pow(2),
        lambda t: t.cummax(),
        lambda t: t.rank(),
        lambda t: t.mask(t > t.mean()),
        lambda t: t.replace({t.iloc[0, 0]: 5}),
        lambda t: t.clip(upper=100),
        lambda t: t.shift(),
    ],
)
def test_what_is_no_selection_is_refused_and_says_how(p, change):
    for wide in (ANSWERS["table"](p), ANSWERS["table"](p).sort_values("m")):
        with pytest.raises(BadValue, match=r"Sorting and selecting.*answer\.dp / 1000"):
            change(wide).dp.interval()


def test_labels_that_read_alike_are_not_told_apart():
    frame = pd.DataFrame({"k": pd.Series([1, "1", 1], dtype=object)})
    answer = frame.dp.open(10, keys={"k": [1, "1"]}).groupby("k").size(epsilon=5)
    assert len(answer.dp.interval()) == 2
    with pytest.raises(BadValue):
        answer.iloc[::-1].dp.interval()


# Rounding -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask", sorted(set(ANSWERS) - {"corr", "value_counts", "two keys", "histogram"})
)
@pytest.mark.parametrize("decimals", [0, 1, 2])
def test_rounding_after_dp_rounds_intervals_outward(p, ask, decimals):
    answer = ANSWERS[ask](p)
    rounded = answer.dp.round(decimals)
    for made in (rounded, rounded.sort_index(ascending=False)):
        table, full = (
            a.dp.table().reset_index(drop=True) for a in (made.sort_index(), answer.sort_index())
        )
        some = full["lower"].notna()
        assert ((table["lower"] <= full["lower"]) & (full["upper"] <= table["upper"]))[some].all()
        assert (
            (table["upper"] - table["lower"])
            <= (full["upper"] - full["lower"] + 2.01 * 10.0**-decimals)
        )[some].all()
        assert np.allclose(table["lower"], np.round(table["lower"], decimals), equal_nan=True)
        assert (table["lower"].isna() == full["lower"].isna()).all()
    assert (table["value"] == full["value"].round(decimals)).all()


def test_rounding_after_dp_keeps_intervals_of_a_single_cell(p):
    one = ANSWERS["table"](p)["m"].iloc[[0]]
    assert one.dp.round(1).dp.interval().notna().all(axis=None)
    with pytest.raises(BadValue, match="have changed"):
        one.round(1).dp.interval()


# Arithmetic ---------------------------------------------------------------------------------------------------


def test_scales_and_shifts_move_the_ends(p):
    answer = ANSWERS["table"](p)
    interval = answer.dp.interval(0.9)
    for made, ends in (
        (answer.dp / 1000, interval / 1000),
        (answer.dp * 100, interval * 100),
        (2 * answer.dp, interval * 2),
        (np.float64(2) * answer.dp, interval * 2),
        (answer.dp + 7, interval + 7),
        (answer.dp - np.int64(7), interval - 7),
    ):
        pd.testing.assert_frame_equal(made.dp.interval(0.9), ends)
        assert made.dp.plan == answer.dp.plan
        assert made.dp.cost == answer.dp.cost
    flipped = (10 - answer.dp).dp.interval(0.9)
    assert np.allclose(flipped["n", "lower"], 10 - interval["n", "upper"])
    for made, plain in (
        (answer.dp / 1000, answer / 1000),
        (-answer.dp, -answer),
        (abs((-answer.dp).dp), answer),
    ):
        pd.testing.assert_frame_equal(pd.DataFrame(made), pd.DataFrame(plain))
    at_once = answer.dp.interval(at_once=True)
    pd.testing.assert_frame_equal((answer.dp / 2).dp.interval(at_once=True), at_once / 2)


def test_a_ratio_of_two_answers_is_narrower_than_the_corners_of_both(p):
    table, other = ANSWERS["table"](p), p.groupby("town").size(epsilon=1)
    made = other.dp / table["n"]
    a, b = other.dp.interval(0.95), table["n"].dp.interval(0.95)
    ends = made.dp.interval(0.9)
    assert (a["lower"] / b["upper"] < ends["lower"]).all()
    assert (ends["upper"] < a["upper"] / b["lower"]).all()
    assert made.dp.rule == forms.RATIO
    pd.testing.assert_series_equal(pd.Series(made), pd.Series(other / table["n"]))
    with pytest.raises(BadType, match="2 releases"):
        _ = made.dp.plan
    assert len(made.dp.plans) == 2
    assert "computed from 2 releases" in repr(made.dp)
    for again in (
        made.iloc[::-1],
        made.dp.round(2),
        made.rename("x").reset_index(),
        pickle.loads(pickle.dumps(made)),
    ):
        assert len(again.dp.interval()) == 3
    assert triples((other.iloc[::-1].dp / table["n"]).loc[["a", "c"]]) <= triples(made)
    with pytest.raises(BadValue, match="have changed"):
        made.pow(2).dp.interval()


def test_pandas_arithmetic_is_refused_and_says_where_to_write_it(p):
    table, n = ANSWERS["table"](p), p.count(epsilon=1)
    for made in (
        table**2,
        table["n"] // 7,
        np.sqrt(table["n"]),
        table["n"] ** n,
        table["n"].rank(),
    ):
        with pytest.raises(BadValue, match=r"a\.dp / b\.dp"):
            made.dp.interval()


def test_released_numbers_and_known_ones_join_in(p):
    table, n, total = ANSWERS["table"](p), p.count(epsilon=1), p.sum("cost", epsilon=1)
    share = table["n"].dp / n
    assert share.dp.plans == (table.dp.plan, n.plan)
    assert (share.dp.interval()["upper"] - share.dp.interval()["lower"] < 0.1).all()
    assert len((n / table["n"].dp).dp.interval()) == 3
    assert len((table["n"].dp * (total / n)).dp.plans) == 3
    known = pd.Series({"c": 1000, "b": 10, "a": 200})
    rate = table["n"].dp / known
    assert np.allclose(rate.dp.interval()["lower"], table["n"].dp.interval()["lower"] / known)
    errors = (a.dp.table()["std_error"].to_numpy() for a in (rate, table["n"]))
    assert np.allclose(next(errors) * known.sort_index(), next(errors))
    pd.testing.assert_series_equal(rate, (table["n"] / known).rename("n"), check_series_type=False)
    assert triples(rate.iloc[::-1]) == triples(rate)


def test_a_divisor_that_may_be_zero_leaves_no_ends(p):
    table = ANSWERS["table"](p)
    none = table["n"].dp - table["n"].to_numpy()
    made = table["m"].dp / (none.dp + 0.5)
    assert np.isinf(made.dp.interval()).all(axis=None)
    assert np.isfinite(made).all()
    assert set(made.dp.table()["flags"]) == {"noise; the divisor may be 0: no bound"}
    assert "inf" in made.dp.table().to_csv()
    assert (table["m"].dp / none).dp.table()["value"].isin([np.inf, -np.inf]).all()


def test_what_is_made_of_choices_keeps_their_intervals(p):
    table = p.groupby("town").agg(middle=("age", "median"), n=("age", "size"), epsilon=20)
    ends = table.dp.interval()["middle"]
    doubled = table.dp * 2
    pd.testing.assert_frame_equal(doubled.dp.interval()["middle"], 2 * ends)
    turned = table["middle"].sort_values()
    assert turned.dp.interval().sort_index().equals(ends.sort_index())
    rounded = table[["middle"]].dp.round(-1)
    assert (rounded.dp.interval()["middle", "lower"] <= ends["lower"]).all()


@pytest.mark.parametrize(
    ("other", "error"),
    [
        ("x", BadType),
        (None, BadType),
        ([1, 2], BadValue),
        (np.array([1.0, 2.0, 3.0, 4.0]), BadValue),
        (np.ones((3, 1)), BadType),
        (["x", "y", "z"], BadType),
        ({"a": 1, "b": 2}, BadValue),
        (float("nan"), BadValue),
        (10**400, BadValue),
        (pd.Series([1.0, 2.0, 3.0]), BadValue),
        (pd.Series({"a": 1, "b": 2, "c": np.nan}), BadValue),
        (pd.Series({"a": "x", "b": "y", "c": "z"}), BadType),
        (pd.DataFrame({"n": [1]}), BadType),
    ],
)
def test_what_is_no_number_is_refused(p, other, error):
    with pytest.raises(error, match=r"number|known|finite"):
        _ = ANSWERS["table"](p).dp / other


def test_answers_that_do_not_belong_together_are_refused(p):
    table, flat = ANSWERS["table"](p), ANSWERS["flat"](p)
    for make, words in (
        (lambda: table.dp / table["n"], "take a column"),
        (lambda: flat.dp / flat, "set_index"),
        (lambda: table.dp / ANSWERS["crosstab"](p), "different columns"),
        (lambda: table.T.dp / 2, "Compute"),
        (lambda: table.dp / pd.Series({"a": 1, "b": 2, "c": 3, "d": 4}), "'d'"),
        (lambda: table["n"].dp.round("1"), "decimals"),
    ):
        with pytest.raises((BadType, BadValue), match=words):
            make()
    with pytest.raises(BadValue, match=r"operand on the right of /, 'n', was computed by pandas"):
        _ = table["n"].dp / table["n"].pow(2)
    with pytest.raises(BadValue, match="operand on the left of -"):
        _ = table["n"].pow(2).to_frame() - table[["n"]].dp


def test_rows_meet_by_their_labels_and_those_of_one_alone_have_no_number(p):
    table = ANSWERS["table"](p)
    made = table["n"].dp / table["n"].iloc[:2]
    assert (
        made.isna().tolist() == made.dp.interval()["lower"].isna().tolist() == [False, False, True]
    )


def test_whole_numbers_do_not_wrap_around(p):
    n = ANSWERS["table"](p)["n"]
    made = n
    for _ in range(9):
        made = made.dp * n
    assert (made > 1e17).all()
    assert (made.dp.interval()["lower"] <= made).all()


def test_a_receipt_knows_its_rows_before_it_is_asked(p):
    """What is kept beside an answer are labels and noisy integers, in one text."""
    answer = ANSWERS["table"](p)
    text = answer.attrs["dpframe_receipt"]
    labels = ReleasedTable.read(json.loads(text), text).labels
    assert [list(level) for level in labels.rows] == [["a", "b", "c"]]
    assert labels.columns == [("n",), ("m",)]


def test_all_at_once_is_for_all_releases_together(p):
    table, other = ANSWERS["table"](p), p.groupby("town").size(epsilon=1)
    made = (table["n"].dp + other).dp.interval(0.9, at_once=True)
    parts = [a.dp.interval(0.95, at_once=True) for a in (table["n"], other)]
    assert np.allclose(made, parts[0] + parts[1])


def test_a_comparison_is_no_count():
    p = pd.DataFrame({"k": ["a", "b"]}).dp.open(200, keys={"k": ["a", "b"]})
    answer = p.groupby("k").size(epsilon=90)
    assert answer.tolist() == [1, 1]
    with pytest.raises(BadValue, match="have changed"):
        (answer > 0).iloc[::-1].dp.interval()


def test_a_selection_without_rows_is_an_answer_without_rows(p):
    for answer in (
        ANSWERS["table"](p).iloc[:0],
        ANSWERS["two keys"](p).iloc[:0],
        ANSWERS["table"](p).query("n < -1e9"),
    ):
        assert (
            len(answer.dp.interval())
            == len(answer.dp.table())
            == len(answer.dp.table(wide=True))
            == 0
        )
        assert answer.dp.plan.groups > 1


def test_what_was_reshaped_without_its_receipt_says_so(p):
    for name in ("table", "plans", "interval"):
        with pytest.raises(dpframe.NoSession, match="before reshaping"):
            getattr(pd.DataFrame(ANSWERS["two keys"](p)).dp, name)


def test_what_was_unstacked_keeps_its_intervals(p):
    answer = ANSWERS["two keys"](p)
    ends = answer.unstack().dp.interval()
    for side in ("lower", "upper"):
        known = answer.dp.interval()[side].unstack()
        assert np.array_equal(ends.xs(side, axis=1, level=1), known)


def test_what_was_made_is_drawn_and_stored(p, tmp_path):
    pytest.importorskip("matplotlib")
    table = ANSWERS["table"](p)
    made = table.dp / 1000
    for answer in (made["n"], table["n"].sort_values(), table["n"].dp / p.count(epsilon=1)):
        segments = answer.dp.plot().containers[0].lines[2][0].get_segments()
        assert np.allclose([segment[:, 1] for segment in segments], answer.dp.interval())
    made.to_parquet(tmp_path / "made.parquet")
    back = pd.read_parquet(tmp_path / "made.parquet")
    pd.testing.assert_frame_equal(back.dp.interval(), made.dp.interval())
