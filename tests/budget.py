"""Measure the CPU time of each test case, and keep the list of those that the default run leaves out.

A case may take `BUDGET` seconds. `tests/slow.txt` has the cases that take more, with their seconds,
and `tests/conftest.py` leaves them to the slow share, but for the two cheapest cases of each test.
A run ends with the cases that took more than twice the budget and are not on the list. To put them
there, and to take out what is fast or gone, measure all cases and write the list anew::

    pytest --slow too --durations-to build/durations.json
    python -m tests.budget build/durations.json

Several files are taken together. Cases that none of them has keep their line.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

LISTED = Path(__file__).with_name("slow.txt")
BUDGET = 0.25  # CPU seconds of a case in the default run
ALONE = 1.0  # of a test that has one case: leaving it out would leave its test out
KEPT = 2  # cases of a test that the default run has, however slow they are
SHOWN = 20  # cases that a run names
SECONDS = "CPU seconds"


def measure_cpu() -> float:
    """Return the CPU seconds of this process, and of the processes that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def test_of(case: str) -> str:
    """Return the name of the test that a case belongs to."""
    return case.partition("[")[0]


def parse_list(text: str) -> dict[str, float]:
    """Return the seconds of each case in the text of a list."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            seconds, _, case = line.partition(" ")
            found[case] = float(seconds)
    return found


@cache
def slow_cases() -> dict[str, float]:
    """Return the cases that take more than the budget, with the seconds that were measured."""
    return parse_list(LISTED.read_text("utf-8")) if LISTED.exists() else {}


def leave_out(cases: list[str], slow: dict[str, float]) -> set[str]:
    """Return which cases of one test the default run leaves out: the slow ones but the cheapest.

    A test keeps `KEPT` of its cases. One that has a single case is left out if it is listed.
    """
    listed = sorted((case for case in cases if case in slow), key=lambda case: (slow[case], case))
    kept = max(0, KEPT - (len(cases) - len(listed))) if len(cases) > 1 else 0
    return set(listed[kept:])


def choose_slow(measured: dict[str, float], known: dict[str, float]) -> dict[str, float]:
    """Return the list that follows from measured seconds, and from what was known before."""
    tests: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for case, seconds in {**known, **measured}.items():
        tests[test_of(case)][case] = seconds
    found = {}
    for cases in tests.values():
        limit = BUDGET if len(cases) > 1 else ALONE
        found.update({case: seconds for case, seconds in cases.items() if seconds > limit})
    return found


def write_list(slow: dict[str, float]) -> str:
    """Return the text of a list, in the order of the names."""
    head = "# CPU seconds of the cases that the default run leaves out; see tests/budget.py.\n"
    return head + "".join(f"{slow[case]:.1f} {case}\n" for case in sorted(slow))


def find_offenders(measured: dict[str, float], slow: dict[str, float]) -> list[tuple[float, str]]:
    """Return the cases that took more than twice the budget and are not listed, slowest first."""
    found = [
        (seconds, case)
        for case, seconds in measured.items()
        if case not in slow and seconds > 2 * (BUDGET if "[" in case else ALONE)
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
        offenders = find_offenders(self.measured, slow_cases())
        if offenders and config.getoption("slow") == "no" and not config.getoption("markexpr"):
            terminalreporter.section("over the budget", yellow=True)
            for seconds, case in offenders[:SHOWN]:
                terminalreporter.write_line(f"{seconds:.1f} {case}")
            terminalreporter.write_line(
                f"{len(offenders)} cases took more than twice the {BUDGET} CPU seconds of a case "
                f"in the default run ({ALONE} of a test with one case). Make them faster, or put "
                f"these lines into {LISTED.parent.name}/{LISTED.name}."
            )


def main() -> None:
    """Write the list anew from the durations of one run or several."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("files", nargs="+", help="what --durations-to has written")
    measured: dict[str, float] = {}
    for name in words.parse_args().files:
        for case, seconds in json.loads(Path(name).read_text("utf-8")).items():
            measured[case] = max(seconds, measured.get(case, 0.0))
    found = choose_slow(measured, slow_cases())
    LISTED.write_text(write_list(found), "utf-8")
    print(f"{len(found)} cases, {sum(found.values()):.0f} CPU seconds")


if __name__ == "__main__":
    main()
