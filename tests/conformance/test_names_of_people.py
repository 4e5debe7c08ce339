"""Names of people where a row is a person: one person has one name in all frames that come from one opened frame.

Without `unit=` such names are drawn, and a merge of two derived frames matches by them. A person with two names would count
as two. What would get noise is compared with the claims of its plan, for every way to make rows, every kind of merge, chains
of merges, and the person's row at every place. The twin that must fail: names that are drawn anew for each frame.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import audit
from dpframe._session import session as session_module
from dpframe._session.session import Session

HOW = ["inner", "left", "right", "outer"]
OTHERS = pd.DataFrame(
    {"x": [0.25, 2.0, 3.0], "k": ["a", "b", "b"], "codes": ["u;v", "u", "v"]}, index=[10, 11, 12]
)
PERSON = pd.DataFrame({"x": [5.0], "k": ["b"], "codes": ["u;v;w"]}, index=[99])
OTHER_PERSON = pd.DataFrame({"x": [0.0], "k": ["a"], "codes": ["w"]}, index=[99])
TABLE = pd.DataFrame({"k": ["a", "b", "b"], "w": [1.0, 2.0, 3.0]})
STRAIGHT = pd.DataFrame({"k": ["a", "b"], "v": [7.0, 8.0]})
LIMITS: dict[str, Any] = {"max_rows": 3, "max_groups": 1}


def adopted(p: Any) -> Any:
    made = p._session.base.data.root().rename(columns={"x": "z"})[["z"]].copy()
    made.attrs.clear()
    return p.adopt(
        pd.concat([made, made]), because="each row twice", bounds={"z": (0, 5)}, **LIMITS
    )


# Every way to make rows of people who are rows.
KINDS: dict[str, Any] = {
    "melt": lambda p: p.melt([], ["x"], var_name="which", value_name="z"),
    "explode": lambda p: p.assign(z=p["x"], word=p["codes"].str.split(";"))[["z", "word"]].explode(
        "word", **LIMITS
    ),
    "merge of several": lambda p: p.assign(z=p["x"])[["z", "k"]].merge(TABLE, on="k", how="left"),
    "merge of one, then melt": lambda p: p.merge(STRAIGHT, on="k").melt(
        [], ["x", "v"], var_name="which", value_name="z"
    ),
    "filter, merge of one, then melt": lambda p: (
        p[p["x"] > 0.5].merge(STRAIGHT, on="k").melt([], ["x"], value_name="z")
    ),
    "pipe": lambda p: p.pipe(
        lambda d: pd.concat([d, d])[["x"]].rename(columns={"x": "z"}),
        bounds={"z": (0, 5)},
        **LIMITS,
    ),
    "adopt": adopted,
}
PAIRS = [(a, b) for a in KINDS for b in KINDS]


def with_suffix(frame: Any, suffix: str) -> Any:
    """The frame with columns that no other one has, so that people alone are matched."""
    return frame.add_suffix(suffix)


def recorded(frame: pd.DataFrame, ask: Any, relation: str) -> list[tuple[int, Any]]:
    """What is claimed, and what would get noise."""
    found: list[tuple[int, Any]] = []

    def noise(self: Any, plan: Any, part: int, integers: Any, **words: Any) -> Any:
        found.append((plan.parts[part].l1, np.array(integers)))
        return np.array(integers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "_noise", noise)
        patch.setattr(Session, "noise_key", lambda self: b"12345678")
        kept = frame.copy()
        ask(kept.dp.open(1000, neighbors=relation, bounds={"x": (0, 5)}, because="a test"))
    return found


def check(ask: Any, place: int, relation: str = "add-remove") -> list[tuple[int, Any]]:
    with_person = pd.concat([OTHERS[:place], PERSON, OTHERS[place:]])
    without = OTHERS
    if relation == "replace-one":
        without = pd.concat([OTHERS[:place], OTHER_PERSON, OTHERS[place:]])
    ours, theirs = recorded(with_person, ask, relation), recorded(without, ask, relation)
    assert ours
    for (claim, a), (_, b) in zip(ours, theirs, strict=True):
        assert sum(abs(int(x) - int(y)) for x, y in zip(a.ravel(), b.ravel(), strict=True)) <= claim
    return ours


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_merge_without_unit_moves_no_statistic_further_than_claimed(one, other, how):
    def ask(p: Any) -> None:
        merged = with_suffix(KINDS[one](p), "_l").merge(with_suffix(KINDS[other](p), "_r"), how=how)
        merged.count(epsilon=1)
        merged.sum("z_l", bounds=(0, 5), epsilon=1)

    for place in (0, len(OTHERS)):
        for relation in ("add-remove", "replace-one"):
            check(ask, place, relation)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("merges", [1, 3, 9])
def test_a_chain_of_merges_leaves_one_person_one(how, merges):
    def part(p: Any, j: int) -> Any:
        return p.melt([], ["x"], var_name=f"v{j}", value_name=f"y{j}")

    def ask(p: Any) -> None:
        merged = part(p, 0)
        for j in range(1, merges + 1):
            merged = merged.merge(part(p, j), how=how)
        merged.count(epsilon=1)

    for place in range(len(OTHERS) + 1):
        ((claim, counted),) = check(ask, place)
        assert claim == 1
        assert counted.ravel().tolist() == [len(OTHERS) + 1]  # and nobody is lost


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_merge_without_unit_matches_each_person_alone(one, other, how):
    """Nobody meets another one, and nobody is lost: an inner merge is not silently empty."""
    frame = OTHERS.copy()
    p = frame.dp.open(1000, bounds={"x": (0, 5)}, because="a test")
    merged = with_suffix(KINDS[one](p), "_l").merge(with_suffix(KINDS[other](p), "_r"), how=how)
    rows = merged._session.snapshot.iloc[:, : len(merged.columns)].set_axis(
        list(merged.columns), axis=1
    )
    people = {0.25, 2.0, 3.0}
    both = rows[rows["z_l"].isin(people) & rows["z_r"].isin(people)]
    assert (both["z_l"] == both["z_r"]).all()
    filtered = "filter, merge of one, then melt"
    assert {*both["z_l"]} == (people - {0.25} if filtered in (one, other) else people)
    if how == "inner":
        assert not rows[["z_l", "z_r"]].isna().any(axis=None)


def test_a_merge_without_unit_has_the_rows_of_pandas():
    p = OTHERS.copy().dp.open(1000, bounds={"x": (0, 5)})
    merged = KINDS["melt"](p).merge(KINDS["merge of several"](p), how="inner", on="z")
    left = OTHERS.reset_index().melt(["index"], ["x"], var_name="which", value_name="z")
    right = (
        OTHERS.reset_index().rename(columns={"x": "z"})[["index", "z", "k"]].merge(TABLE, on="k")
    )
    wanted = left.merge(right, on=["index", "z"]).drop(columns="index")
    found = merged._session.snapshot.iloc[:, : wanted.shape[1]].set_axis(
        list(merged.columns), axis=1
    )
    pd.testing.assert_frame_equal(found, wanted, check_dtype=False)


def test_a_column_called_like_hidden_names_is_an_ordinary_one():
    frame = pd.DataFrame({"rows": [7, 7, 8], "x": [1.0, 2.0, 3.0]})
    p = frame.dp.open(1000, bounds={"x": (0, 5)})
    sides = [p.melt(["rows"], ["x"], var_name=f"v{i}", value_name=f"y{i}") for i in range(2)]
    merged = sides[0].merge(sides[1])
    assert len(merged._session.snapshot) == 3
    assert merged._session.snapshot.iloc[:, 0].tolist() == [7, 7, 8]


@pytest.mark.parametrize("how", HOW)
def test_names_drawn_anew_for_each_frame_make_several_people_of_one(how, monkeypatch):
    """The twin that must fail."""
    monkeypatch.setattr(
        Session, "row_names", lambda self: session_module.people_labels(len(self.data.snapshot))
    )

    def ask(p: Any) -> None:
        merged = KINDS["melt"](p).add_suffix("_l").merge(KINDS["melt"](p).add_suffix("_r"), how=how)
        merged.count(epsilon=1)

    if how == "outer":
        with pytest.raises(AssertionError):
            check(ask, 0)
    else:
        ((_, counted),) = check(ask, 0)
        assert (counted.ravel().tolist() == [0]) == (how == "inner")


# What is refused ----------------------------------------------------------------------------------------------------------


def test_frames_that_were_opened_apart_are_merged_by_a_declared_unit_alone():
    p = OTHERS.copy().dp.open(1, bounds={"x": (0, 5)}, because="a test")
    q = OTHERS.assign(x=[3.0, 4.0, 5.0]).dp.open(accountant=p.accountant, bounds={"x": (0, 5)})
    for how in HOW:
        with pytest.raises(dpframe.Refused, match=r"open\(unit='patient_id'\)"):
            KINDS["melt"](p).merge(KINDS["melt"](q).add_suffix("_r"), how=how)
    assert p.budget.spent == 0


def test_frame_of_rows_is_not_merged_with_one_that_names_people():
    p = OTHERS.copy().dp.open(1, bounds={"x": (0, 5)}, because="a test")
    with pytest.raises(dpframe.Refused, match="person by person"):
        p.merge(KINDS["melt"](p))
    with pytest.raises(dpframe.Refused, match="person by person"):
        KINDS["melt"](p).merge(p)
    assert p.budget.spent == 0


def test_rows_that_nothing_limits_are_not_merged_before_max_rows_is_said():
    p = OTHERS.assign(codes=[["u"], ["v", "w"], []]).dp.open(1, because="a test")
    with pytest.raises(dpframe.BadValue, match="max_rows=3 in the explode"):
        p.explode("codes").merge(p.explode("codes"))
    assert p.budget.spent == 0


def sources(folder: Any) -> dict[str, Any]:
    """The same rows in tables of other libraries, as far as they are installed."""
    plain = OTHERS[["x", "k"]].reset_index(drop=True)
    plain.to_parquet(folder / "rows.parquet")
    made: dict[str, Any] = {"parquet": folder / "rows.parquet"}
    made["arrow"] = pytest.importorskip("pyarrow").Table.from_pandas(plain)
    with suppress(ImportError):
        made["polars"] = import_module("polars").from_pandas(plain)
    with suppress(ImportError):
        made["duckdb"] = import_module("duckdb").read_parquet(str(folder / "rows.parquet"))
    return made


def test_no_table_outside_of_memory_merges_people_that_nothing_names(tmp_path):
    """A batch would have names of its own. What is refused is refused before anything is paid."""
    seen = 0
    for table in sources(tmp_path).values():
        p = dpframe.open(table, 1, bounds={"x": (0, 5)}, because="a test")
        for make in (
            lambda p: p.melt([], ["x"]).merge(p.melt([], ["x"])),
            lambda p: p.merge(TABLE, on="k").merge(p),
            lambda p: p.merge(STRAIGHT, on="k").merge(p.merge(STRAIGHT, on="k")),
        ):
            with pytest.raises(dpframe.Refused):
                make(p)
        assert p.budget.spent == 0
        seen += 1
    assert seen > 1


# The double ---------------------------------------------------------------------------------------------------------------


def chain(p: Any, merges: int) -> Any:
    merged = p.melt([], ["x"], var_name="v0", value_name="y0")
    for j in range(1, merges + 1):
        merged = merged.merge(p.melt([], ["x"], var_name=f"v{j}", value_name=f"y{j}"), how="outer")
    return merged


def test_replay_names_people_as_a_session_does(monkeypatch):
    """A session that draws names anew for each frame is found out by a replay, which once gave a row one name whatever it did."""
    frame, neighbour = pd.DataFrame({"x": [1.0] * 5}), pd.DataFrame({"x": [1.0] * 4})
    terms: dict[str, Any] = {"epsilon": 1000, "bounds": {"x": (0, 1)}}

    def ask(p: Any) -> Any:
        return chain(p, 3).count(epsilon=1)

    sound = audit.replay(ask, frame, neighbour, **terms)
    assert sound.ok
    assert [step.distance for step in sound.steps] == [1]
    monkeypatch.setattr(Session, "row_names", lambda self: self.base.draw_row_names())
    broken = audit.replay(ask, frame, neighbour, **terms)
    assert [step.distance for step in broken.steps] == [4]
    assert not broken.ok


def test_replay_draws_another_name_and_another_key_each_time():
    frame = pd.DataFrame({"x": [1.0, 1.0]})
    seen: list[Any] = []

    def ask(p: Any) -> Any:
        base = p._session.base
        seen.append(
            [base.noise_key(), base.noise_key(), *base.draw_row_names(), *base.draw_row_names()]
        )
        return p.count(epsilon=1)

    assert audit.replay(ask, frame, frame.head(1), epsilon=10).ok
    first, second = seen
    assert len(set(first)) == 6
    assert second == [*first[:3], first[4]]
