"""``python -m tests.fuzz 5000``: so many questions from random seeds. ``--seed 17``: one program, line by line, made smaller."""

from __future__ import annotations

import argparse
import resource
import secrets
import time
from collections import Counter

from tests.fuzz.compare import check
from tests.fuzz.programs import make
from tests.fuzz.shrink import shrink

MEMORY = 4 * 2**30  # a question that asks for more fails here, and not the machine


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    words.add_argument("questions", nargs="?", type=int, default=1000, help="how many to ask")
    words.add_argument("--start", type=int, default=None, help="the first seed; random where it is left out")
    words.add_argument("--seed", type=int, default=None, help="replay one program, and shrink what it shows")
    words.add_argument("--whole", action="store_true", help="with --seed: as it is, without shrinking")
    told = words.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    return campaign(told.questions, told.start) if told.seed is None else replay(told.seed, told.whole)


def replay(seed: int, whole: bool) -> int:
    """One program: what it shows, and the smallest that shows the same."""
    program = make(seed)
    findings = check(program)
    if whole or not findings:
        print(program)
    for finding in {f.signature: f for f in findings}.values():
        print(f"\n{finding.kind} in line {finding.line}: {finding.what}")
        if not whole:
            small = shrink(program, finding)
            print(small)
            again = [f for f in check(small) if f.signature == finding.signature]
            print(f"  -> {again[0].line}: {again[0].what}")
    return len(findings)


def campaign(questions: int, start: int | None) -> int:
    """Programs from consecutive seeds, until so many questions were asked of both neighbours."""
    seed = secrets.randbelow(2**40) if start is None else start
    began, asked, kinds = time.perf_counter(), 0, Counter[tuple[str, str]]()
    first: dict[tuple[str, str], str] = {}
    print(f"from seed {seed}")
    while asked < questions:
        program = make(seed)
        for finding in check(program):
            kinds[finding.signature] += 1
            if finding.signature not in first:
                first[finding.signature] = f"seed {seed}, line {finding.line}: {finding.what[:300]!r}"
                print(
                    f"FOUND {finding.signature}: {first[finding.signature]}\n  python -m tests.fuzz --seed {seed}",
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
