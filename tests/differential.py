"""Print what a checkout answers to random questions, one line each, to compare two checkouts.

A refactoring must not change answers, prices, plans or ledger records. So the same questions are
asked of the checkout before the change and of the one after it, with the same noise, and the two
outputs are compared::

    python -m tests.differential write questions.jsonl --questions 20000 --seed 1
    PYTHONPATH=../before python tests/differential.py ask questions.jsonl > before.txt
    PYTHONPATH=.         python tests/differential.py ask questions.jsonl > after.txt
    diff before.txt after.txt

``write`` needs the package of its own checkout. ``ask`` uses public names of the package alone. So
it runs with the package of any checkout.

Randomness is a stream of bytes that follows from the case, the line, and the number of bytes in a
call. Equal integers with equal noise are equal answers: the lines show the integers. The records
of the ledger are a part of each line, with the identities of questions.

Without ``--texts``, no prose is printed: not the text of a message, nor that of a plan.
``--only KEY`` prints one line in full. The others show the hash of a fact that is long.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import sqlite3
import sys
import tempfile
import types
import uuid
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MEMORY = 4 * 2**30  # bytes; a question that asks for more fails, and the machine does not
LONGEST = 400  # characters of a fact that is printed; of a longer one, its hash


# Randomness ---------------------------------------------------------------------------------------


class Stream:
    """Bytes that follow from a name, in place of those of the operating system.

    Calls for different numbers of bytes draw from different streams. So one call more, for a
    name say, leaves the noise as it is.
    """

    def __init__(self) -> None:
        self.begin("")

    def begin(self, name: str) -> None:
        """Start the streams of another line."""
        self.name = name
        self.streams: defaultdict[int, random.Random] = defaultdict()

    def __call__(self, n: int) -> bytes:
        if n not in self.streams:
            self.streams[n] = random.Random(f"{self.name}|{n}")
        return self.streams[n].randbytes(n)


STREAM = Stream()


def fix_randomness() -> None:
    """Replace the operating system's randomness, before the package is imported."""
    names = random.Random(0)
    os.urandom = STREAM
    uuid.uuid4 = lambda: uuid.UUID(int=names.getrandbits(128), version=4)


# Questions ----------------------------------------------------------------------------------------


def write(path: str, questions: int, seed: int) -> None:
    """Write cases of about so many questions: half programs, half examples of every word."""
    from tests.fuzz import programs
    from tests.fuzz.seams import cases

    written = {"examples": 0, "programs": 0}
    with open(path, "w", encoding="utf-8") as file:
        while sum(written.values()) < questions:
            if written["examples"] <= written["programs"]:
                case = cases.make(seed, ("pandas",))
                lines = [[*line.steps, line.ask] for line in case.lines]
                print(json.dumps({"seed": seed, "words": case.words, "lines": lines}), file=file)
                written["examples"] += len(lines)
            else:
                print(json.dumps({"seed": seed}), file=file)
                written["programs"] += len(programs.make(seed).lines)
            seed += 1


class Opened:
    """A table, the words of ``open``, and lines: lists of steps that end in a question."""

    def __init__(self, case: dict[str, Any], folder: Path):
        from tests.fuzz import programs
        from tests.fuzz.seams import frames

        self.folder = folder
        self.strict = False
        if "words" not in case:
            program = programs.make(case["seed"])
            program.filed = True
            self.key = f"program {program.seed}"
            self.frame = program.frame(0)
            self.words = program.words().replace(
                "ledger=LEDGER", f"ledger={str(folder / 'l.db')!r}"
            )
            self.lines = [[*line.steps, line.ask] for line in program.lines]
            self.strict = program.strict
        else:
            words = dict(case["words"])
            words["bounds"] = {name: tuple(b) for name, b in words["bounds"].items()}
            words.update(ledger=str(folder / "l.db"), population="people")
            people, replaces = "unit" in words, "neighbors" in words
            r = random.Random(f"differential {case['seed']}")
            table = frames.draw(r, tuple(frames.CELLS), people, replaces)
            self.key = f"example {case['seed']}"
            self.frame = frames.frame_of(table.rows(0, (0,)), table.columns, people)
            self.words = ", ".join(f"{name}={value!r}" for name, value in words.items())
            self.lines = case["lines"]


# Facts --------------------------------------------------------------------------------------------


def exact(value: Any) -> str:
    """Return a number or a label to the last bit."""
    import numpy as np

    if isinstance(value, float | np.floating):
        return float(value).hex()
    return f"{type(value).__name__} {value!r}"


def labels_of(index: Any) -> list[Any]:
    """Return the type, the names and the labels of an index."""
    return [
        type(index).__name__,
        str(index.dtype),
        repr(list(index.names)),
        [exact(i) for i in index],
    ]


def plan_of(plan: Any, texts: bool) -> Any:
    """Return a plan as JSON, without its prose."""
    found = plan.to_json()
    found = json.loads(found) if isinstance(found, str) else found
    return found if texts else without_prose(found)


def without_prose(found: Any) -> Any:
    """Return what JSON holds without the sentences of plans."""
    if isinstance(found, dict):
        return {n: without_prose(one) for n, one in found.items() if n not in ("why", "statistic")}
    return [without_prose(one) for one in found] if isinstance(found, list) else found


ACCOUNT = ("interval", "std_error", "cost", "lower", "upper", "count", "reliable")


def account_of(answer: Any, texts: bool) -> dict[str, Any]:
    """Return what an answer says of itself: its intervals, its cost and its plan."""
    found: dict[str, Any] = {}
    for name in ACCOUNT:
        try:
            value = getattr(answer, name)
            found[name] = facts_of(value() if callable(value) else value, texts, plain=True)
        except AttributeError:
            continue
        except Exception as error:
            found[name] = type(error).__name__
    try:
        found["plan"] = plan_of(answer.plan, texts)
    except Exception as error:
        found["plan"] = type(error).__name__
    return found


def facts_of(value: Any, texts: bool, plain: bool = False) -> Any:
    """Return all that can be seen of a value, as something that JSON holds."""
    import numpy as np
    import pandas as pd

    from dpframe import Plan

    if value is None or isinstance(value, bool | bytes | np.generic | complex):
        return exact(value)
    if isinstance(value, str):
        return exact(value) if texts or ("\n" not in value and len(value) < 40) else "a text"
    if isinstance(value, Plan):
        return {"plan": plan_of(value, texts)}
    if isinstance(value, int | float):
        number = exact(float(value) if isinstance(value, float) else int(value))
        if plain or type(value) in (int, float):
            return number
        return {"number": number, **account_of(value, texts)}
    if isinstance(value, pd.Series | pd.DataFrame):
        table = value.to_frame() if isinstance(value, pd.Series) else value
        found = {
            "type": "Series" if isinstance(value, pd.Series) else "DataFrame",
            "index": labels_of(value.index),
            "columns": labels_of(table.columns),
            "dtypes": [str(d) for d in table.dtypes],
            "cells": [[exact(c) for c in table.iloc[:, i]] for i in range(table.shape[1])],
        }
        answer = None if plain else getattr(value, "dp", None)
        return found if answer is None else {**found, **account_of(answer, texts)}
    if isinstance(value, pd.Index):
        return labels_of(value)
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), [exact(c) for c in value.ravel().tolist()]]
    if isinstance(value, list | tuple):
        return [facts_of(one, texts, plain) for one in value]
    if isinstance(value, dict):
        return {repr(name): facts_of(one, texts, plain) for name, one in value.items()}
    if hasattr(value, "coef_"):
        fitted = {n: v for n, v in sorted(vars(value).items()) if n.endswith("_") and n[0] != "_"}
        return {name: facts_of(one, texts, plain) for name, one in fitted.items()}
    if hasattr(value, "columns") and hasattr(value, "groupby"):
        return {"columns": labels_of(value.columns), "dtypes": [str(d) for d in value.dtypes]}
    return repr(value) if texts else type(value).__module__.partition(".")[0]


def error_of(error: BaseException, texts: bool) -> str:
    """Return the class of an error, with its message where texts are wanted."""
    name = type(error).__name__
    if not texts:
        return name
    try:
        return f"{name}: {error}"
    except Exception as second:
        return f"{name} with a text that raises {type(second).__name__}"


def records_of(path: Path, after: int, texts: bool) -> tuple[int, list[Any]]:
    """Return the last number of a ledger, and the records after a number without their times."""
    if not path.exists():
        return after, []
    with sqlite3.connect(path) as base:
        rows = base.execute(
            "select id, population, kind, body from entries where id > ? order by id", (after,)
        ).fetchall()
    base.close()
    last = max([after, *(row[0] for row in rows)])
    bodies = [json.loads(row[3]) for row in rows]
    if not texts:
        bodies = [without_prose(body) for body in bodies]
    return last, [[*row[1:3], body] for row, body in zip(rows, bodies, strict=True)]


# Asking -------------------------------------------------------------------------------------------


def ask(path: str, texts: bool, only: str | None, first: int, count: int | None) -> Iterator[str]:
    """Ask all questions of a file, and yield a line for each."""
    from tests.fuzz.names import NAMES

    with open(path, encoding="utf-8") as file:
        cases = [json.loads(line) for line in file]
    for case in cases[first : None if count is None else first + count]:
        root = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())
        # The name has the same length in each run, and plays no part in any record.
        folder = Path(tempfile.mkdtemp(prefix="dpframe-differential-", dir=root))
        try:
            opened = Opened(case, folder)
            if only is not None and not only.startswith(f"{opened.key}:"):
                continue
            yield from ask_case(opened, NAMES, texts, only)
        finally:
            shutil.rmtree(folder)


def ask_case(opened: Opened, known: dict[str, Any], texts: bool, only: str | None) -> Iterator[str]:
    """Open one table, ask its questions, and yield a line for each."""
    import numpy as np

    place, p = 0, None
    at = {**known, "df": opened.frame, "LEDGER": opened.folder / "l.db"}
    with np.errstate(**({"all": "raise"} if opened.strict else {})):
        for number, steps in enumerate([[f"df.dp.open({opened.words})"], *opened.lines]):
            key = f"{opened.key}: {number}"
            STREAM.begin(key)
            facts, value = ask_line(steps, {**at, "p": p}, texts)
            if number == 0:
                p = value
            if p is not None:
                budget = p.budget
                facts["budget"] = [str(budget.spent), str(budget.remaining)]
            place, records = records_of(opened.folder / "l.db", place, texts)
            facts["records"] = records
            if only is None or only == key:
                source = "; ".join(steps).replace(str(opened.folder), "FOLDER")
                yield shown(key, source, facts, only is not None)
            if p is None:
                return
    p.close()


def ask_line(steps: Iterable[str], at: dict[str, Any], texts: bool) -> tuple[dict[str, Any], Any]:
    """Evaluate the steps of a line one after the other, and return the facts of the last one."""
    facts: dict[str, Any] = {}
    value: Any = None
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            for text in steps:
                value = at["p"] = eval(text, at)
            facts["answer"] = facts_of(value, texts)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            facts["error"] = error_of(error, texts)
            value = None
    if heard:
        facts["warnings"] = sorted(
            {f"{w.category.__name__}{f': {w.message}' if texts else ''}" for w in heard}
        )
    return facts, value


def shown(key: str, source: str, facts: dict[str, Any], whole: bool) -> str:
    """Return the line of a question: its key, its source text, and its facts."""
    said = []
    for name, fact in facts.items():
        text = json.dumps(fact, default=repr)
        if len(text) > LONGEST and not whole:
            text = f"{text[:80]}... #{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        said.append(f"{name}={text}")
    source = source if whole or len(source) < 240 else f"{source[:240]}..."
    return f"{key} | {source!r} | {' '.join(said)}".encode("ascii", "backslashreplace").decode()


def main() -> int:
    """Run the command that the arguments name."""
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    words.add_argument("command", choices=("write", "ask"))
    words.add_argument("file")
    words.add_argument("--questions", type=int, default=20000, help="how many to write")
    words.add_argument("--seed", type=int, default=1, help="the first seed of what is written")
    words.add_argument("--texts", action="store_true", help="compare messages and other prose, too")
    words.add_argument("--only", default=None, help="one line by its key, in full")
    words.add_argument("--first", type=int, default=0, help="leave out so many cases")
    words.add_argument("--cases", type=int, default=None, help="ask only so many cases")
    given = words.parse_args()
    sys.path[:] = [place for place in sys.path if Path(place).resolve() != ROOT / "tests"]
    sys.path.append(str(ROOT))
    tests = types.ModuleType("tests")  # of this checkout, whatever package is asked
    tests.__path__ = [str(ROOT / "tests")]
    sys.modules["tests"] = tests
    if given.command == "write":
        write(given.file, given.questions, given.seed)
        return 0
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    fix_randomness()
    import dpframe

    print(f"package of {Path(dpframe.__file__).parent}", file=sys.stderr)
    for line in ask(given.file, given.texts, given.only, given.first, given.cases):
        print(line)
    return 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is the same in each run
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    raise SystemExit(main())
