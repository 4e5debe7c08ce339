"""Random questions on neighbouring frames, and the smallest program that shows what is found.

``python -m tests.fuzz 5000``: so many questions whose integers, sizes, places and engines are compared, from random seeds.
``--seed 17``: from this seed on. ``--engines files,duckdb``: on these beside frames in memory. ``--replay``: the case of the
seed alone, made smaller. ``--of programs``: random programs with cells that go around checks, of which all but the
numbers is compared.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import math
import resource
import secrets
import time
import traceback
from collections import Counter

from tests.fuzz import compare, programs, shrink
from tests.fuzz.seams import cases, check, worlds
from tests.fuzz.seams.engines import ENGINES

HANGS = 180  # seconds after which a case is stopped, and the campaign with it: the seed comes after the last that is shown
SHOWN = 20  # findings of one kind
MEMORY = 4 * 2**30  # a question that asks for more fails here, and not the machine


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    words.add_argument("questions", nargs="?", type=int, default=1000, help="how many to ask")
    words.add_argument(
        "--seed", type=int, default=None, help="the first seed; random where it is left out"
    )
    words.add_argument(
        "--replay", action="store_true", help="the case of this seed alone, made smaller"
    )
    words.add_argument(
        "--whole", action="store_true", help="with --replay: as it is, without making it smaller"
    )
    words.add_argument("--engines", default="", help=f"some of {', '.join(ENGINES)}")
    words.add_argument(
        "--kernels", default=",".join(worlds.KERNELS), help="some of none, python, numba"
    )
    words.add_argument("--seconds", type=float, default=math.inf, help="stop after so long")
    words.add_argument("--of", choices=("seams", "programs"), default="seams")
    given = words.parse_args()
    if given.of == "programs":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    seed = secrets.randbelow(2**40) if given.seed is None else given.seed
    engines = [e for e in given.engines.split(",") if e]
    if given.of == "programs":
        return replay(seed, given.whole) if given.replay else campaign(given.questions, seed)
    kernels = tuple(given.kernels.split(","))
    if given.replay:
        return show(seed, engines, kernels, given.whole)
    return compare_integers(given.questions, seed, engines, kernels, given.seconds)


# Integers, sizes, places and engines ------------------------------------------------------------------------------------


def compare_integers(
    questions: int, seed: int, engines: list[str], kernels: tuple[str, ...], seconds: float
) -> int:
    """Cases from consecutive seeds, until so many questions were asked."""
    began, tally, kinds = time.perf_counter(), check.Tally(), Counter[tuple[str, str]]()
    start, told = seed, 0
    print(f"from seed {seed}", flush=True)
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)  # what a case leaves behind is small
    while tally.questions < questions and time.perf_counter() - began < seconds:
        faulthandler.dump_traceback_later(HANGS, exit=True)
        try:
            case = cases.make(seed, engines, kernels)
            findings = check.check(case, tally)
        except Exception as error:
            traceback.print_exc()
            findings = [compare.Finding("harness", 0, f"{type(error).__name__}: {error}")]
            case = None
        for finding in findings:
            kinds[finding.signature] += 1
            if kinds[finding.signature] <= SHOWN:
                lines = case.lines if case is not None else ()
                line = lines[finding.line] if finding.line < len(lines) else ""
                print(f"FOUND {finding.kind}: {finding.what[:600]}\n  {line}")
                words = f"--kernels {','.join(kernels)}" + (
                    f" --engines {','.join(engines)!r}" if engines else ""
                )
                print(f"  python -m tests.fuzz --replay --seed {seed} {words}", flush=True)
        seed += 1
        if tally.questions - told >= 1000:
            told = tally.questions
            print(f"{told} questions, seed {seed}, {time.perf_counter() - began:.0f} s", flush=True)
    faulthandler.cancel_dump_traceback_later()
    spent = time.perf_counter() - began
    print(
        f"{tally.questions} questions of {seed - start} seeds from {start} in {spent:.0f} s: {tally.answered} answered, "
        f"{tally.refused} refused, {tally.runs} runs at {tally.places} places in {len(tally.worlds)} worlds of sizes"
    )
    for name in ("kinds", "engines", "kernels", "threads", "rows", "parts"):
        print(f"by {name}:", dict(getattr(tally, name).most_common(40)))
    print(f"{kinds.total()} findings of {len(kinds)} kinds")
    for kind, n in kinds.most_common():
        print(f"{n:6d} {kind}")
    return 1 if kinds else 0


def show(seed: int, engines: list[str], kernels: tuple[str, ...], whole: bool) -> int:
    """What the case of a seed shows, and the smallest that shows the same."""
    case = cases.make(seed, engines, kernels)
    findings = check.check(case)
    if whole or not findings:
        print(case)
    for finding in findings:
        print(f"\n{finding.kind} in line {finding.line}: {finding.what}")
        if not whole:
            print(check.shrink(case, finding))
    return len(findings)


# Programs ---------------------------------------------------------------------------------------------------------------


def replay(seed: int, whole: bool) -> int:
    """One program: what it shows, and the smallest that shows the same."""
    program = programs.make(seed)
    findings = compare.check(program)
    if whole or not findings:
        print(program)
    for finding in {f.signature: f for f in findings}.values():
        print(f"\n{finding.kind} in line {finding.line}: {finding.what}")
        if not whole:
            small = shrink.shrink(program, finding)
            print(small)
            again = [f for f in compare.check(small) if f.signature == finding.signature]
            print(f"  -> {again[0].line}: {again[0].what}")
    return len(findings)


def campaign(questions: int, seed: int) -> int:
    """Programs from consecutive seeds, until so many questions were asked of both neighbours."""
    began, asked, kinds = time.perf_counter(), 0, Counter[tuple[str, str]]()
    first: dict[tuple[str, str], str] = {}
    print(f"from seed {seed}")
    while asked < questions:
        program = programs.make(seed)
        for finding in compare.check(program):
            kinds[finding.signature] += 1
            if finding.signature not in first:
                first[finding.signature] = (
                    f"seed {seed}, line {finding.line}: {finding.what[:300]!r}"
                )
                print(
                    f"FOUND {finding.signature}: {first[finding.signature]}\n"
                    f"  python -m tests.fuzz --of programs --replay --seed {seed}",
                    flush=True,
                )
        asked += len(program.lines)
        seed += 1
    spent = time.perf_counter() - began
    print(
        f"{asked} questions on pairs in {spent:.0f} s, up to seed {seed - 1}; {kinds.total()} findings of {len(kinds)} kinds"
    )
    for kind, n in kinds.most_common():
        print(f"{n:6d} {kind}: {first[kind]}")
    return 1 if kinds else 0


if __name__ == "__main__":
    raise SystemExit(main())
