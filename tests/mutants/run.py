"""Mutants: small wrong changes of the package, each with the tests that must fail where it is made.

``make mutants`` makes each change in a copy, runs its killers there and prints what survives. After a change of the code
``python -m tests.mutants.run --check`` says in seconds which texts have moved, and ``--among tests/test_x.py`` finds the
killer of a new mutant. The list is the TOML files beside this one; a table is one mutant::

    [A22]
    file = "accounting/_sums.py"         # below dpframe/
    function = "Sums.after"              # where it is; nothing for what stands in no function
    # What occurs once there, whatever its line breaks; several places are `edits = [[old, new], ...]`.
    old = "each = delta / sum(n for loss, n in losses if loss.epsilon is None)"
    new = "each = delta"
    kind = "privacy"                    # or budget, number, message: what goes wrong
    why = "delta is not divided"
    killers = ["tests/accounting/test_filters.py::test_a_count_is_as_many_charges[pure-8]"]

In place of killers stands a ``reason`` where a mutant changes nothing that anybody could see. ``needs = "dask"`` names a library
of an extra that its killers import: where it is not installed, the mutant is left out.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tests.mutants import patterns

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COPIED = ("dpframe", "tests", "docs", "pyproject.toml")  # some tests read what a page builds
KINDS = ("privacy", "budget", "number", "message")
LIMIT = 180.0  # seconds that a mutant gets: one that makes a loop endless is killed by it


@dataclass(frozen=True)
class Mutant:
    """One wrong change and the tests that see it."""

    name: str
    area: str
    file: str
    edits: tuple[tuple[str, str], ...]
    kind: str
    why: str
    killers: tuple[str, ...] = ()
    reason: str = ""
    needs: str = ""
    function: str = ""

    @property
    def runs(self) -> bool:
        """Whether its killers can be run here."""
        return bool(self.killers) and (not self.needs or find_spec(self.needs) is not None)

    def changed(self, text: str) -> str:
        """Return the module with the change in it. A ValueError says which text is not there exactly once."""
        for old, new in self.edits:
            try:
                text = patterns.replace_text(text, old, new, self.function)
            except ValueError as problem:
                raise ValueError(f"{self.name}, dpframe/{self.file}: {problem}") from None
        return text


def mutants() -> list[Mutant]:
    """Return the whole list, by area and in the order of the files."""
    return list(_read_mutants())


@cache
def _read_mutants() -> tuple[Mutant, ...]:
    """Read the TOML files, once in a process."""
    found = []
    for path in sorted(HERE.glob("*.toml")):
        for name, told in tomllib.loads(path.read_text(encoding="utf-8")).items():
            edits = told.pop("edits", None) or [[told.pop("old"), told.pop("new")]]
            pairs = tuple((old, new) for old, new in edits)
            killers = tuple(told.pop("killers", ()))
            found.append(Mutant(name, path.stem, edits=pairs, killers=killers, **told))
    return tuple(found)


def stale(mutant: Mutant, root: Path = ROOT) -> str:
    """What is wrong with the text of a mutant, and where it may be now; nothing if it applies and is Python."""
    package = root / "dpframe"
    try:
        compile(
            mutant.changed((package / mutant.file).read_text(encoding="utf-8")), mutant.file, "exec"
        )
    except (OSError, ValueError, SyntaxError) as problem:
        said = [str(problem)]
    else:
        return ""
    texts = {
        str(path.relative_to(package)): path.read_text(encoding="utf-8")
        for path in package.rglob("*.py")
    }
    for old, _ in mutant.edits:
        said += [
            f"  it stands once in {file}"
            for file, text in texts.items()
            if len(patterns.find_text(text, old)) == 1
        ]
        lines = {line.strip() for line in texts.get(mutant.file, "").splitlines()}
        wanted = max(old.splitlines(), key=len).strip()
        said += [f"  like it: {line}" for line in difflib.get_close_matches(wanted, lines, 2, 0.5)]
    return "\n".join(said)


def missing(chosen: list[Mutant], root: Path = ROOT) -> list[str]:
    """Killers that pytest does not find."""
    named = sorted({killer for m in chosen if m.runs for killer in m.killers})
    files = sorted({killer.partition("::")[0] for killer in named})
    there = [file for file in files if (root / file).exists()]
    _, out = pytest(root, tuple(there), LIMIT, "--collect-only", "--slow", "too", "-n", "0")
    known = set(out.splitlines())
    known |= {test.partition("[")[0] for test in known}  # all cases of a test
    return [killer for killer in named if killer not in known]


def share(all_of_them: list[Mutant], size: int, turn: int) -> list[Mutant]:
    """So many mutants that can be run, others at the next turn, until each had its turn."""
    mixed = sorted(
        (m for m in all_of_them if m.runs), key=lambda m: hashlib.sha256(m.name.encode()).digest()
    )
    return [mixed[(turn * size + i) % len(mixed)] for i in range(min(size, len(mixed)))]


def copy(to: Path, root: Path = ROOT) -> Path:
    """A tree to change: package, tests and settings, with what Python has compiled."""
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, to / name)
        else:
            shutil.copy2(root / name, to / name)
    return to


def pytest(
    tree: Path, tests: tuple[str, ...], limit: float, *options: str
) -> tuple[int | None, str]:
    """Exit code and output of these tests in that tree, None where they took too long."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PYTHON"))}
    one = dict.fromkeys(("PYTHONDONTWRITEBYTECODE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rfE",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        *options,
    ]
    with subprocess.Popen(
        [*command, *tests],
        cwd=tree,
        env=kept | one,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # so that whatever it starts ends with it
    ) as started:
        try:
            out, _ = started.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            return None, started.communicate()[0]
    return started.returncode, out


def failing(out: str) -> list[str]:
    """What the short summary of pytest says of each test that failed."""
    return [
        line.partition(" ")[2]
        for line in out.splitlines()
        if line.startswith(("FAILED ", "ERROR "))
    ]


@dataclass(frozen=True)
class Outcome:
    """What became of one mutant: killed, survived, stale (its text is not there once) or broken (no test ran)."""

    mutant: Mutant
    verdict: str
    seconds: float = 0.0
    more: str = ""


def outcome(
    mutant: Mutant, base: Path, limit: float = LIMIT, among: tuple[str, ...] = ()
) -> Outcome:
    """Make the change in a copy of `base` and run its killers there, or the tests `among` to find one."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as place:
        tree = copy(Path(place), base)
        module = tree / "dpframe" / mutant.file
        if wrong := stale(mutant, tree):
            return Outcome(mutant, "stale", more=wrong)
        text = mutant.changed(module.read_text(encoding="utf-8"))
        module.write_text(text, encoding="utf-8")
        for compiled in module.parent.glob(f"__pycache__/{module.stem}.*"):
            compiled.unlink()
        if not (tests := among or mutant.killers):
            return Outcome(mutant, "survived", more="has neither killer nor reason")
        code, out = pytest(tree, tests, limit, "-x", "-n", "0")
    took = time.monotonic() - begun
    if code is None:
        return Outcome(mutant, "killed", took, "by the time limit")
    if code == 0:
        return Outcome(mutant, "survived", took)
    if code in (1, 2) and (failed := failing(out)):
        return Outcome(mutant, "killed", took, failed[0])
    return Outcome(
        mutant, "broken", took, " ".join(out.splitlines()[-1:])
    )  # such as no pytest at all


def warmed(base: Path, chosen: list[Mutant], jobs: int) -> dict[str, list[str]]:
    """Killers that fail on the code as it is, by mutant: they would kill anything."""
    if not (tests := tuple(dict.fromkeys(killer for m in chosen for killer in m.killers))):
        return {}
    code, out = pytest(base, tests, LIMIT + 20.0 * len(tests), "-n", str(jobs if jobs > 1 else 0))
    if code != 0 and not (code == 1 and failing(out)):
        return {m.name: [" ".join(out.splitlines()[-3:])] for m in chosen}
    wrong = failing(out)
    found = {
        m.name: [
            k for k in m.killers if any(w == k or w.startswith((k + " - ", k + "[")) for w in wrong)
        ]
        for m in chosen
    }
    return {name: killers for name, killers in found.items() if killers}


def run(
    chosen: list[Mutant], jobs: int = 1, limit: float = LIMIT, among: tuple[str, ...] = ()
) -> list[Outcome]:
    """What becomes of each mutant, printed as it is known."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        base = copy(Path(place))
        wrong = {} if among else warmed(base, chosen, jobs)
        found = [
            Outcome(m, "broken", more=f"fails without it: {wrong[m.name]}")
            for m in chosen
            if m.name in wrong
        ]
        with ThreadPoolExecutor(jobs) as pool:
            todo = [m for m in chosen if m.name not in wrong]
            for done in as_completed([pool.submit(outcome, m, base, limit, among) for m in todo]):
                found.append(one := done.result())
                print(
                    f"{one.verdict:8} {one.mutant.name:6} {one.seconds:6.1f} s  {one.more}",
                    flush=True,
                )
    return found


def table(found: list[Outcome], set_aside: list[Mutant]) -> str:
    """Killed, survived and set aside by module."""
    counts = Counter((o.mutant.file, o.verdict) for o in found)
    counts += Counter((m.file, "reason") for m in set_aside)
    columns = ("killed", "survived", "reason", "stale", "broken")
    lines = ["module | " + " | ".join(columns), "--|" + "--|" * len(columns)]
    for file in sorted({file for file, _ in counts}):
        lines.append(f"{file} | " + " | ".join(str(counts[file, c]) for c in columns))
    totals = [sum(n for (_, verdict), n in counts.items() if verdict == c) for c in columns]
    return "\n".join([*lines, f"all {sum(totals)} | " + " | ".join(map(str, totals))])


def main(arguments: list[str] | None = None) -> int:
    """The command: 0 where everything is killed or has its reason."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants.run", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "names", nargs="*", help="names of mutants, areas or files; all where none is given"
    )
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time (default 1)")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help="seconds that each gets (default %(default)s)"
    )
    parser.add_argument(
        "--check", action="store_true", help="run nothing: which texts and killers are gone"
    )
    parser.add_argument(
        "--among", nargs="+", default=[], help="run these tests instead, to find a killer"
    )
    told = parser.parse_args(arguments)
    wanted = [m for m in mutants() if not told.names or {m.name, m.area, m.file} & set(told.names)]
    if told.check:
        wrong = [text for m in wanted if (text := stale(m))] + [
            f"no such test: {k}" for k in missing(wanted)
        ]
        print("\n".join([*wrong, f"{len(wanted)} mutants, {len(wrong)} to be mended"]))
        return bool(wrong)
    chosen = [m for m in wanted if told.among or not m.reason]
    found = run(chosen, told.jobs, told.limit, tuple(told.among))
    print("\n" + table(found, [m for m in wanted if m not in chosen]))
    left = [o for o in found if o.verdict != "killed"]
    for o in left:
        m = o.mutant
        print(f"\n{o.verdict} {m.name} dpframe/{m.file} ({m.kind}: {m.why}) {o.more}")
        for old, new in m.edits:
            print(f"  - {old!r}\n  + {new!r}")
    return bool(left)


if __name__ == "__main__":
    sys.exit(main())
