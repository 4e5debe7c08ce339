"""The list of slow cases: what it leaves out, what it keeps, and how it is made of measured seconds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from tests import budget, skipped
from tests.conftest import SHARE, kind_of, left_out, share_of_day


@dataclass(frozen=True)
class Item:
    nodeid: str
    marks: dict[str, pytest.Mark] = field(default_factory=dict, compare=False)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.marks.get(name)


@dataclass(frozen=True)
class Inherited(Item):
    function: object = None


SLOW = {"slow": pytest.mark.slow.mark}
TWO_STAY = {"slow": pytest.mark.slow(but=2).mark}
KEPT = {"kept": pytest.mark.kept.mark}


def test_list_of_slow_cases_names_tests_that_exist():
    root, texts, absent = budget.LISTED.parent.parent, {}, []
    for name in sorted({budget.test_of(name) for name in budget.slow_list()}):
        path, _, test = name.partition("::")
        if path not in texts:
            texts[path] = (root / path).read_text("utf-8") if (root / path).exists() else None
        text = texts[path]
        # A class may have its tests from another file, and an example is named by its module.
        if text is None or (test.startswith("test_") and f"def {test}(" not in text):
            absent.append(name)
    assert absent == []


def test_list_of_slow_cases_is_written_as_it_is_read():
    slow = {
        "tests/a.py::test_b[two]": 0.5,
        "tests/a.py::test_b[a b]": 2.0,
        "tests/a.py::test_c": 0.03,
    }
    assert budget.parse_list(budget.write_list(slow)) == slow


def test_leaving_out_keeps_what_is_not_listed_and_the_cheapest_two():
    slow = {"t[a]": 0.8, "t[b]": 0.6, "t[c]": 0.7}
    assert budget.leave_out(["t[a]", "t[b]", "t[c]"], slow) == {"t[a]"}
    assert budget.leave_out(["t[a]", "t[b]", "t[c]", "t[d]"], slow) == {"t[a]", "t[c]"}
    assert budget.leave_out(["t[a]", "t[d]", "t[e]", "t[f]"], slow) == {"t[a]"}
    assert budget.leave_out(["u"], {"u": 3.0}) == {"u"}
    assert budget.leave_out(["u"], slow) == set()


def test_leaving_out_keeps_as_many_cases_as_fit_into_the_time_of_a_test():
    cases = [f"t[{i}]" for i in range(100)]
    assert len(budget.leave_out(cases, {"t": 0.04})) == 95
    assert len(budget.leave_out(cases, {"t": 0.7})) == 98
    assert len(budget.leave_out(cases, {"t": 5.0})) == 100
    assert budget.leave_out(cases, {"t": 0.002, "t[7]": 0.6}) == {"t[7]"}
    away = budget.leave_out(cases, {"t": 0.1})
    assert budget.leave_out(list(reversed(cases)), {"t": 0.1}) == away


def test_leaving_out_keeps_needed_cases_and_no_others_that_take_most():
    slow = {"t[a]": 2.4, "t[b]": 0.6, "t[c]": 0.7, "t[d]": 9.0, "u": 1.0, "v": 9.0}
    cases = ["t[a]", "t[b]", "t[c]", "t[d]"]
    assert budget.leave_out(cases, slow, frozenset({"t[a]", "t[d]"})) == {"t[c]", "t[d]"}
    assert budget.leave_out(cases, slow, frozenset(cases)) == {"t[d]"}
    assert budget.leave_out(["u"], slow, frozenset({"u"})) == set()
    assert budget.leave_out(["v"], slow, frozenset({"v"})) == {"v"}
    assert budget.leave_out(["w[a]", "w[b]"], {"w[a]": 9.0, "w[b]": 0.7}) == {"w[a]"}


def test_proofs_are_tests_of_claims_and_cases_that_kill_mutants():
    found = budget.proofs()
    assert (
        "tests/conformance/test_sensitivity.py::test_half_a_claim_is_caught_by_random_neighbours"
        in found
    )
    assert sum("[" in name for name in found) > 300


def test_default_run_leaves_out_marked_cases_alone():
    """A mark of one parameter is about its cases, wherever they stand among the others."""
    marked, other = Item("tests/a.py::test_b[x]", SLOW), Item("tests/a.py::test_b[y]")
    assert left_out([marked, other]) == left_out([other, marked]) == {marked}


def test_default_run_keeps_as_many_marked_cases_as_the_mark_says(monkeypatch):
    items = [Item(f"tests/a.py::test_b[{i}]", TWO_STAY) for i in range(9)]
    monkeypatch.setattr(budget, "proofs", lambda: {items[7].nodeid})
    assert len(left_out(items)) == 7
    assert items[7] not in left_out(items)


def test_default_run_keeps_tests_that_are_marked_as_kept(monkeypatch):
    monkeypatch.setattr(budget, "slow_list", lambda: {"tests/a.py::test_b": 0.07})
    bare = [Item(f"tests/a.py::test_b[{i}]") for i in range(5)]
    assert len(left_out(bare)) == 3
    assert left_out([replace(item, marks=KEPT) for item in bare]) == set()


def test_choice_of_slow_cases_has_cases_and_tests_above_their_time():
    many = {f"w[{i}]": 0.2 for i in range(10)}
    measured = {"t[a]": 0.3, "t[b]": 0.1, "u": 0.3, "v": 1.1, **many}
    found = budget.choose_slow(measured, {"w[a]": 9.0, "x[b]": 0.7, "y": 0.6})
    assert found == {"t[a]": 0.3, "v": 1.1, "w": pytest.approx(0.2), "x[b]": 0.7, "y": 0.6}


def test_offenders_are_cases_above_twice_the_budget_that_are_not_listed():
    measured = {"t[a]": 0.6, "t[b]": 0.4, "t[c]": 5.0, "u": 0.6, "v": 2.5, "w[a]": 3.0}
    assert budget.find_offenders(measured, {"t[c]": 5.0, "w": 0.1}) == [(2.5, "v"), (0.6, "t[a]")]


def test_share_of_a_day_has_every_case_in_turn():
    many = [Item(f"tests/a.py::test_b[{i}]") for i in range(5 * SHARE)]
    few = [Item(f"tests/a.py::test_c[{i}]") for i in range(SHARE)]
    days = [{item.nodeid for item in share_of_day([*many, *few], day)} for day in range(5)]
    assert {len(day) for day in days} == {2 * SHARE}
    assert set().union(*days) == {item.nodeid for item in [*many, *few]}


def test_share_of_a_day_takes_no_more_than_its_seconds_or_one_case(monkeypatch):
    monkeypatch.setattr(
        budget, "slow_list", lambda: {"tests/a.py::test_b": 9.0, "tests/a.py::test_c": 0.25}
    )
    slow = [Item(f"tests/a.py::test_b[{i}]") for i in range(3)]
    quick = [Item(f"tests/a.py::test_c[{i}]") for i in range(10)]
    days = [share_of_day([*slow, *quick], day) for day in range(3)]
    assert [len(day & {*slow}) for day in days] == [1, 1, 1]
    assert [len(day & {*quick}) for day in days] == [4, 3, 3]
    assert set().union(*days) == {*slow, *quick}


def test_share_of_a_day_has_all_cases_of_daily_tests(monkeypatch):
    monkeypatch.setattr(budget, "slow_list", lambda: {"tests/a.py::test_b": 9.0})
    daily = {"daily": pytest.mark.daily.mark}
    items = [Item(f"tests/a.py::test_b[{i}]", daily) for i in range(3)]
    assert share_of_day(items, 1) == {*items}


def test_share_of_a_day_counts_cases_of_classes_that_inherit_a_test_as_cases_of_one(monkeypatch):
    def test_b() -> None: ...

    cases = [f"tests/{file}.py::Test{name}::test_b" for file in "ab" for name in "XY"]
    monkeypatch.setattr(budget, "slow_list", lambda: dict.fromkeys(cases, 9.0))
    items = [Inherited(case, function=test_b) for case in cases]
    assert len({kind_of(item) for item in items}) == 1
    days = [share_of_day(items, day) for day in range(4)]
    assert [len(day) for day in days] == [1, 1, 1, 1]
    assert set().union(*days) == {*items}
    assert kind_of(Item("dpframe/a.py::dpframe.a.b[x]")) == "dpframe/a.py::dpframe.a.b"


def test_listed_tests_are_looked_for_in_their_own_files(tmp_path):
    names = {"tests/a.py::test_b[x y]", "tests/e.py"}
    plugin = skipped.Listed(names, tmp_path, [tmp_path / "tests" / "engines"])
    (tmp_path / "tests").mkdir()
    for read in ("tests/a.py", "tests/e.py", "tests/engines/f.py", "tests"):
        assert plugin.pytest_ignore_collect(tmp_path / read) is None
    for left in ("tests/b.py", "dpframe/a.py"):
        assert plugin.pytest_ignore_collect(tmp_path / left) is True


def test_skipped_tests_are_written_and_found_again(tmp_path):
    plugin = skipped.Skipped(str(tmp_path / "build" / "skipped.txt"))
    report = SimpleNamespace(nodeid="tests/a.py::test_b[x y]", skipped=True)
    plugin.pytest_runtest_logreport(report)
    plugin.pytest_runtest_logreport(SimpleNamespace(nodeid="tests/a.py::test_c", skipped=False))
    expected = SimpleNamespace(nodeid="tests/a.py::test_d", skipped=True, wasxfail="known")
    plugin.pytest_runtest_logreport(expected)
    plugin.pytest_collectreport(SimpleNamespace(nodeid="tests/e.py", skipped=True))
    plugin.pytest_sessionfinish(SimpleNamespace(config=object()))
    names = skipped.read_names([str(plugin.path)])
    assert names == {"tests/a.py::test_b[x y]", "tests/e.py"}
    assert skipped.is_listed("tests/e.py::test_f", names)
    assert not skipped.is_listed("tests/a.py::test_b[x]", names)
