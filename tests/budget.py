"""Measure the CPU time of each test case, and keep the list of what the default run leaves out.

A case may take `BUDGET` seconds of the default run, all cases of a test `TEST`, and the case of a
test that has but one `ALONE`. `tests/slow.txt` has a line for each case that takes more, and a line
for each test whose other cases take more together, with the seconds of one of them.
`tests/conftest.py` leaves what is beyond to the slow share. At least `KEPT` cases of a test stay,
but for those that take more than `MOST`, and so does what shows a claim or kills a mutant, up to
`PROOF`.

A run ends with the cases that took more than twice their budget and are not on the list. To write
the list anew, measure all cases. A test of which none was measured keeps its lines::

    pytest --slow too --durations-to build/durations.json
    python -m tests.budget build/durations.json
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import resource
import time
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.run import mutants

LISTED = Path(__file__).with_name("slow.txt")
CLAIMS = Path(__file__).parent.parent / "docs" / "guarantees" / "claims.md"
BUDGET = 0.25  # CPU seconds of a case
TEST = 0.2  # CPU seconds of all cases of a test
ALONE = 0.35  # CPU seconds of a test with one case: leaving it out leaves its test out
KEPT = 2  # cases of a test that stay though they are listed
MOST = 0.8  # CPU seconds of a case that stays for that
PROOF = 2.5  # CPU seconds of a case that stays because it shows a claim or kills a mutant
SHOWN = 20  # cases that a run names
SECONDS = "CPU seconds"


def measure_cpu() -> float:
    """Return the CPU seconds of this process, and of the processes that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def test_of(case: str) -> str:
    """Return the name of the test that a case belongs to."""
    return case.partition("[")[0]


def hash_of(case: str) -> bytes:
    """Return what mixes the cases of a test, by their names without folders."""
    path, _, test = case.partition("::")
    return hashlib.sha256(f"{path.rpartition('/')[2]}::{test}".encode()).digest()


def parse_list(text: str) -> dict[str, float]:
    """Return the seconds of each case and each test in the text of a list."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            seconds, _, name = line.partition(" ")
            found[name] = float(seconds)
    return found


@cache
def slow_list() -> dict[str, float]:
    """Return the seconds of slow cases, and of one case of each test that is slow as a whole."""
    return parse_list(LISTED.read_text("utf-8")) if LISTED.exists() else {}


@cache
def proofs() -> frozenset[str]:
    """Return the names of tests that the page of claims names, and of cases that kill a mutant."""
    shown = re.findall(r"`(tests/[^`]+::[^`]+)`", CLAIMS.read_text("utf-8"))
    return frozenset(shown) | {killer for mutant in mutants() for killer in mutant.killers}


def seconds_of(case: str, slow: dict[str, float]) -> float:
    """Return the listed seconds of a case, or those of one case of its test, or nothing."""
    return slow.get(case, slow.get(test_of(case), 0.0))


def leave_out(
    cases: list[str], slow: dict[str, float], needed: frozenset[str] = frozenset()
) -> set[str]:
    """Return which cases of one test the default run leaves out.

    Needed cases stay, up to `PROOF`. Of a test with several cases those stay that are not listed,
    the cheapest first and mixed among equals, as many as fit into `TEST` if the test is listed. At
    least `KEPT` cases stay, but for those that take more than `MOST`.
    """
    each = slow.get(test_of(cases[0]), 0.0)
    seconds = {case: seconds_of(case, slow) for case in cases}
    first = {case for case in cases if case in needed and seconds[case] <= PROOF}
    if len(cases) == 1:
        limit = MOST if "[" in cases[0] else ALONE
        return {case for case in cases if seconds[case] > limit} - first
    ordered = sorted(cases, key=lambda case: (case not in first, seconds[case], hash_of(case)))
    stay = sum(case not in slow for case in cases)
    if each:
        stay = min(stay, int(TEST / each))
    possible = sum(case in first or seconds[case] <= MOST for case in cases)
    return set(ordered[max(stay, min(KEPT, possible), len(first)) :])


def choose_slow(measured: dict[str, float], known: dict[str, float]) -> dict[str, float]:
    """Return the list that follows from measured seconds, and from what was known before."""
    tests: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for case, seconds in measured.items():
        tests[test_of(case)][case] = seconds
    found = {name: seconds for name, seconds in known.items() if test_of(name) not in tests}
    for test, cases in tests.items():
        limit = BUDGET if len(cases) > 1 else ALONE
        found.update({case: seconds for case, seconds in cases.items() if seconds > limit})
        rest = [seconds for seconds in cases.values() if seconds <= limit]
        if len(cases) > 1 and sum(rest) > TEST:
            found[test] = sum(rest) / len(rest)
    return found


def write_list(slow: dict[str, float]) -> str:
    """Return the text of a list, in the order of the names."""
    head = "# CPU seconds of what the default run leaves out; see tests/budget.py.\n"
    return head + "".join(f"{slow[name]:.3g} {name}\n" for name in sorted(slow))


def find_offenders(measured: dict[str, float], slow: dict[str, float]) -> list[tuple[float, str]]:
    """Return the cases that took more than twice their budget and are not listed, slowest first."""
    found = [
        (seconds, case)
        for case, seconds in measured.items()
        if case not in slow
        and test_of(case) not in slow
        and seconds > 2 * (BUDGET if "[" in case else ALONE)
    ]
    return sorted(found, reverse=True)


class Durations:
    """Plugin that measures every case of a run, and names those that took too long."""

    def __init__(self, path: str | None):
        self.path = path
        self.began = 0.0
        self.measured: dict[str, float] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self.began = measure_cpu()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: Any) -> None:
        item.user_properties.append((SECONDS, measure_cpu() - self.began))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "teardown":
            self.measured[report.nodeid] = dict(report.user_properties).get(SECONDS, 0.0)

    def pytest_terminal_summary(self, terminalreporter: Any, config: Any) -> None:
        if hasattr(config, "workerinput") or not self.measured:
            return
        if self.path is not None:
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            Path(self.path).write_text(json.dumps(self.measured, indent=0), "utf-8")
        total = sum(self.measured.values())
        terminalreporter.write_line(f"{total:.0f} CPU seconds in {len(self.measured)} cases")
        offenders = find_offenders(self.measured, slow_list())
        if offenders and config.getoption("slow") == "no" and not config.getoption("markexpr"):
            terminalreporter.section("over the budget", yellow=True)
            for seconds, case in offenders[:SHOWN]:
                terminalreporter.write_line(f"{seconds:.1f} {case}")
            terminalreporter.write_line(
                f"{len(offenders)} cases took more than twice the {BUDGET} CPU seconds of a case "
                f"in the default run ({ALONE} of a test with one). Make them faster, or put these "
                f"lines into {LISTED.parent.name}/{LISTED.name}."
            )


def main() -> None:
    """Write the list anew from the durations of one run or several."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("files", nargs="+", help="what --durations-to has written")
    measured: dict[str, float] = {}
    for name in words.parse_args().files:
        for case, seconds in json.loads(Path(name).read_text("utf-8")).items():
            measured[case] = max(seconds, measured.get(case, 0.0))
    found = choose_slow(measured, slow_list())
    LISTED.write_text(write_list(found), "utf-8")
    print(f"{len(found)} lines")


if __name__ == "__main__":
    main()
