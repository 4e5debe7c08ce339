"""Tables in memory, in files and on Spark: ``python -m tests.benchmarks.bench_engines [part ...]``.

| part | what it prints |
|---|---|
| ``memory`` | seconds of 10^7 rows that are in memory |
| ``files`` | seconds of 10^7 rows in Parquet files |
| ``large`` | 10^8 rows in Parquet files, read by processes that may not allocate more than 2.5 GB |
| ``spark`` | Spark on this machine, from 10^6 rows to 10^8: start, open, questions |

Without a part all of them run. ``--rows`` and ``--large`` set other numbers of rows, and ``--minutes`` how long a part may take,
an hour if nothing is said: each engine gets an equal share of what is left, and what it has not answered by then is a dash. Plain
pandas, duckdb and polars are asked the same. Each engine is measured in a process of its own, and its answer has to be about that
of the others. dpframe's times are of a new session, opening it included, and of the same question asked again for new noise.
Where memory is limited Arrow takes it from the system, since its own allocator reserves a gigabyte at a time.
``--clock processor`` counts the seconds of all processors, which other programs disturb less; Spark's are by the clock always,
since its work is another process's. The data is made in a temporary folder, which is removed.

    python -m tests.benchmarks.bench_engines large --minutes 40
    python -m tests.benchmarks.bench_engines spark --minutes 20
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

STATES = [f"state {i:02d}" for i in range(50)]
WRITTEN = """
COPY (
    SELECT CAST(hash(i) % {people} AS BIGINT) AS user, printf('state %02d', hash(i + 1) % 50) AS state,
        CAST(hash(i + 2) % 100 AS BIGINT) AS age, (hash(i + 3) % 1000000) / 200.0e0 AS cost
    FROM range({first}, {end}) AS t(i)
) TO '{path}' (FORMAT parquet)
"""
QUESTIONS = (
    "count",
    "mean",
    "mean of 50 groups",
    "variance of 50 groups",
    "people: mean of 50 groups",
)
PEOPLE = QUESTIONS[-1]
FILE = 10**7  # rows of a file
LIMIT = 2_500_000_000  # bytes


# What each engine is asked, as its users write it ---------------------------------------------------------------------------


class Dpframe:
    """Sessions on a table: of rows, and of people who count with five rows in three groups."""

    def __init__(self, table: Callable[[str], Any], **words: Any):
        self._made, self._words = table, words

    def load(self, files: str) -> None:
        self._table = self._made(files)

    def opened(self, question: str) -> Any:
        import dpframe

        words: dict[str, Any] = {
            "bounds": {"cost": (0, 5000), "age": (0, 100)},
            "keys": {"state": STATES},
        }
        if question == PEOPLE:
            words |= {"unit": "user", "max_rows": 5, "max_groups": 50}
        with suppress(AttributeError):
            self._table.attrs.clear()
        return dpframe.open(self._table, 1000, because="a benchmark", **words, **self._words)

    def ask(self, question: str, p: Any = None) -> float:
        p = self.opened(question) if p is None else p
        words = {"epsilon": 10, "fresh": True}
        asked: dict[str, Callable[[], Any]] = {
            "count": lambda: p.query("age >= 30").count(**words),
            "mean": lambda: p.mean("cost", **words),
            "mean of 50 groups": lambda: p.groupby("state")["cost"].mean(**words).mean(),
            "variance of 50 groups": lambda: (
                p.query("age >= 30").groupby("state")["cost"].var(**words).mean()
            ),
            PEOPLE: lambda: p.groupby("state")["cost"].mean(**words).mean(),
        }
        return float(asked[question]())


class Pandas:
    """Plain pandas, on a frame or on what it reads from the files for each question."""

    def __init__(self, kept: bool):
        self._kept = kept

    def load(self, files: str) -> None:
        self._files = files
        if self._kept:
            self._df = self._read(["user", "state", "age", "cost"])

    def _read(self, columns: list[str]) -> Any:
        import pandas as pd

        return pd.read_parquet(self._files, columns=columns)

    def ask(self, question: str) -> float:
        needed = {
            "count": ["age"],
            "mean": ["cost"],
            "mean of 50 groups": ["state", "cost"],
            "variance of 50 groups": ["state", "age", "cost"],
            PEOPLE: ["user", "state", "cost"],
        }
        df = self._df if self._kept else self._read(needed[question])
        asked: dict[str, Callable[[], Any]] = {
            "count": lambda: len(df.query("age >= 30")),
            "mean": lambda: df["cost"].clip(0, 5000).mean(),
            "mean of 50 groups": lambda: df.groupby("state")["cost"].mean().mean(),
            "variance of 50 groups": lambda: (
                df.query("age >= 30").groupby("state")["cost"].var().mean()
            ),
            PEOPLE: lambda: (
                df.groupby(["user", "state"]).head(5).groupby("state")["cost"].mean().mean()
            ),
        }
        return float(asked[question]())


SQL = {
    "count": "SELECT COUNT(*) FROM {0} WHERE age >= 30",
    "mean": "SELECT AVG(LEAST(GREATEST(cost, 0), 5000)) FROM {0}",
    "mean of 50 groups": "SELECT AVG(m) FROM (SELECT AVG(cost) AS m FROM {0} GROUP BY state)",
    "variance of 50 groups": "SELECT AVG(v) FROM (SELECT VAR_SAMP(cost) AS v FROM {0} WHERE age >= 30 GROUP BY state)",
    PEOPLE: """SELECT AVG(m) FROM (SELECT AVG(cost) AS m FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY user, state ORDER BY user) AS nth FROM {0}
    ) WHERE nth <= 5 GROUP BY state)""",
}


class Duckdb:
    """Plain duckdb, on a table of its own in memory or on the files."""

    def __init__(self, kept: bool, memory: str | None = None):
        self._kept, self._memory = kept, memory

    def load(self, files: str) -> None:
        import duckdb

        self._base = duckdb.connect()
        if self._memory:
            self._base.execute(f"SET memory_limit = '{self._memory}'")
            self._base.execute(f"SET temp_directory = '{files}/spilled'")
        self._relation = f"read_parquet('{files}/*.parquet')"
        if self._kept:
            self._base.execute(f"CREATE TABLE visits AS SELECT * FROM {self._relation}")
            self._relation = "visits"

    def ask(self, question: str) -> float:
        ((found,),) = self._base.execute(SQL[question].format(self._relation)).fetchall()
        return float(found)


class Polars:
    """Plain polars, on a frame, or on the files with its streaming engine."""

    def __init__(self, kept: bool):
        self._kept = kept

    def load(self, files: str) -> None:
        import polars as pl

        self._frame = pl.scan_parquet(f"{files}/*.parquet")
        if self._kept:
            self._frame = self._frame.collect().lazy()

    def ask(self, question: str) -> float:
        import polars as pl

        lf, cost = self._frame, pl.col("cost")
        old = lf.filter(pl.col("age") >= 30)
        asked: dict[str, Any] = {
            "count": old.select(pl.len()),
            "mean": lf.select(cost.clip(0, 5000).mean()),
            "mean of 50 groups": lf.group_by("state").agg(cost.mean()).select(cost.mean()),
            "variance of 50 groups": old.group_by("state").agg(cost.var()).select(cost.mean()),
            PEOPLE: lf.group_by("user", "state")
            .agg(cost.head(5))
            .explode("cost")
            .group_by("state")
            .agg(cost.mean())
            .select(cost.mean()),
        }
        engine: Any = "in-memory" if self._kept else "streaming"
        return float(asked[question].collect(engine=engine).item())


def _frame_of_pandas(files: str) -> Any:
    import pandas as pd

    return pd.read_parquet(files)


def _frame_of_polars(files: str) -> Any:
    import polars as pl

    return pl.read_parquet(f"{files}/*.parquet")


def _relation(files: str) -> Any:
    import duckdb

    base = duckdb.connect()
    base.execute("SET memory_limit = '1GB'")
    base.execute(f"SET temp_directory = '{files}/spilled'")
    return base.sql(f"SELECT * FROM read_parquet('{files}/*.parquet')")


def _files(files: str) -> Any:
    return f"{files}/*.parquet"


MADE: dict[str, Callable[[], Any]] = {
    "dpframe, pandas frame": lambda: Dpframe(_frame_of_pandas),
    "dpframe, polars frame": lambda: Dpframe(_frame_of_polars),
    "dpframe, files": lambda: Dpframe(_files),
    "dpframe, duckdb relation of files": lambda: Dpframe(_relation),
    "dpframe, files, memory='900MB'": lambda: Dpframe(_files, memory="900MB"),
    "dpframe, duckdb relation, memory='900MB'": lambda: Dpframe(_relation, memory="900MB"),
    "pandas": lambda: Pandas(kept=True),
    "duckdb": lambda: Duckdb(kept=True),
    "polars": lambda: Polars(kept=True),
    "pandas, files": lambda: Pandas(kept=False),
    "duckdb, files": lambda: Duckdb(kept=False),
    "duckdb, files, memory_limit 1GB": lambda: Duckdb(kept=False, memory="1GB"),
    "polars, files": lambda: Polars(kept=False),
}
IN_MEMORY = ("dpframe, pandas frame", "dpframe, polars frame", "pandas", "duckdb", "polars")
IN_FILES = (
    "dpframe, files",
    "dpframe, duckdb relation of files",
    "pandas, files",
    "duckdb, files",
    "polars, files",
)
CAPPED = (
    "dpframe, files, memory='900MB'",
    "dpframe, duckdb relation, memory='900MB'",
    "duckdb, files, memory_limit 1GB",
    "polars, files",
)


# One engine in a process ------------------------------------------------------------------------------------------------


CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


def timed(call: Callable[[], Any], clock: str = "wall") -> tuple[float, Any]:
    began = CLOCKS[clock]()
    found = call()
    return CLOCKS[clock]() - began, found


def measured(engine: Any, question: str, repeats: int, clock: str) -> tuple[list[float], float]:
    """Seconds of a question: of a new session and asked again, or of a plain engine; the best of the repeats."""
    if isinstance(engine, Dpframe):
        kept: list[Any] = []

        def first() -> float:
            kept[:] = [engine.opened(question)]
            return engine.ask(question, kept[0])

        new = [timed(first, clock) for _ in range(repeats)]
        again = [timed(lambda: engine.ask(question, kept[0]), clock) for _ in range(repeats)]
        return [min(s for s, _ in new), min(s for s, _ in again)], new[0][1]
    found = [timed(lambda: engine.ask(question), clock) for _ in range(repeats)]
    return [min(s for s, _ in found)], found[0][1]


def peak() -> float:
    """The most memory that this process has had, in GB."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e6


def one_engine(
    name: str, files: str, questions: list[str], repeats: int, limit: int, clock: str
) -> None:
    """What a process prints: a line of JSON for each question."""
    import pandas  # noqa: F401  # not a cost of whoever is asked first
    import pyarrow.parquet  # noqa: F401

    import dpframe  # noqa: F401

    if limit:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    engine = MADE[name]()
    engine.load(files)
    for question in questions:
        seconds, answer = measured(engine, question, repeats, clock)
        print(json.dumps([question, seconds, answer, peak()]), flush=True)


class Terms(NamedTuple):
    """How long a part may take, by which clock it is measured, and how often."""

    end: float  # of time.monotonic
    clock: str
    repeats: int

    def left(self, engines: int = 1) -> float:
        """The seconds of the next of so many."""
        return max(1.0, (self.end - time.monotonic()) / engines)


def told(
    name: str, words: list[str], patience: float, variables: dict[str, str] | None = None
) -> Iterator[Any]:
    """What a process prints as lines of JSON, as far as it comes in so many seconds."""
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as wrong:
        run = subprocess.Popen(
            [sys.executable, __file__, *words],
            stdout=said,
            stderr=wrong,
            env=os.environ | {"PYTHONPATH": path} | (variables or {}),
            start_new_session=True,
        )
        try:
            run.wait(patience)
        except subprocess.TimeoutExpired:
            print(f"{name}: stopped after {patience:.0f} s", file=sys.stderr)
        finally:
            with suppress(ProcessLookupError):  # with whatever it has started
                os.killpg(run.pid, signal.SIGKILL)
            run.wait()
        said.seek(0), wrong.seek(0)
        if run.returncode > 0:
            print(
                f"{name}: {(wrong.read().strip().splitlines() or ['failed'])[-1][:200]}",
                file=sys.stderr,
            )
        yield from (
            json.loads(line) for line in said.read().splitlines() if line[:1] + line[-1:] == "[]"
        )


def in_a_process(
    name: str, files: str, questions: tuple[str, ...], terms: Terms, patience: float, limit: int = 0
) -> dict[str, tuple[list[float], float, float]]:
    """What one engine takes for the questions, in a process of its own. What it does not answer is not there."""
    words = [
        "--engine",
        name,
        "--files",
        files,
        "--repeats",
        str(terms.repeats),
        "--clock",
        terms.clock,
    ]
    words += ["--limit", str(limit), "--questions", json.dumps(questions)]
    pool = {"ARROW_DEFAULT_MEMORY_POOL": "system"} if limit else {}
    return {q: (s, a, m) for q, s, a, m in told(name, words, patience, pool)}


def agreed(answers: list[float]) -> bool:
    """Whether all engines answer about alike: noise is next to nothing, and whose rows count makes little difference."""
    return not answers or max(answers) - min(answers) <= 0.02 * abs(answers[0])


# The data ---------------------------------------------------------------------------------------------------------------


def written(folder: Path, rows: int) -> str:
    """Files of so many rows, of which a tenth are people."""
    import duckdb

    files = folder / str(rows)
    files.mkdir()
    size = min(FILE, max(rows // 4, 1))
    for i, first in enumerate(range(0, rows, size)):
        path, end = files / f"{i:02}.parquet", min(first + size, rows)
        duckdb.execute(WRITTEN.format(people=max(rows // 10, 1), first=first, end=end, path=path))
    return str(files)


# The parts --------------------------------------------------------------------------------------------------------------


def shown(seconds: list[float] | None) -> str:
    return (
        "-" if seconds is None else " / ".join(f"{s:.3f}" if s < 1 else f"{s:.1f}" for s in seconds)
    )


def of_engines(
    engines: tuple[str, ...],
    files: str,
    terms: Terms,
    questions: tuple[str, ...] = QUESTIONS,
    limit: int = 0,
) -> Iterator[str]:
    """The lines of a table: seconds of each question on each engine, and the memory of their processes."""
    yield f"| {'seconds of all processors' * (terms.clock != 'wall') or 'seconds'} | {' | '.join(engines)} |"
    yield f"|---|{'---|' * len(engines)}"
    found = {}
    for i, name in enumerate(engines):
        found[name] = in_a_process(
            name, files, questions, terms, terms.left(len(engines) - i), limit
        )
    for question in questions:
        answers = [found[name][question][1] for name in engines if question in found[name]]
        if not agreed(answers):
            raise SystemExit(f"{question}: the engines do not agree: {answers}")
        cells = [
            shown(found[name][question][0] if question in found[name] else None) for name in engines
        ]
        yield f"| {question} | {' | '.join(cells)} |"
    peaks = [max((m for _, _, m in found[name].values()), default=float("nan")) for name in engines]
    yield f"| *most memory of its process, GB* | {' | '.join('-' if p != p else f'{p:.2f}' for p in peaks)} |"


def memory(folder: Path, rows: int, large: int, terms: Terms) -> Iterator[str]:
    yield f"{rows} rows in memory; of dpframe a new session / asked again"
    yield ""
    yield from of_engines(IN_MEMORY, written(folder, rows), terms)


def files(folder: Path, rows: int, large: int, terms: Terms) -> Iterator[str]:
    yield f"{rows} rows in Parquet files; of dpframe a new session / asked again"
    yield ""
    yield from of_engines(IN_FILES, written(folder, rows), terms)


def capped(folder: Path, rows: int, large: int, terms: Terms) -> Iterator[str]:
    yield f"{large} rows in Parquet files, in processes that may allocate {LIMIT / 1e9} GB (RLIMIT_DATA)"
    yield ""
    asked, twice = ("variance of 50 groups", PEOPLE), terms._replace(repeats=min(2, terms.repeats))
    yield from of_engines(CAPPED, written(folder, large), twice, asked, LIMIT)


def on_spark(folder: Path, rows: int, large: int, terms: Terms) -> Iterator[str]:
    yield "Spark in local mode, two cores and 4 GB; seconds by the clock"
    yield ""
    sizes = [n for n in (10**6, 10**7, 10**8) if n <= large]
    names = [written(folder, n) for n in sizes]
    columns = [
        "rows",
        "start",
        "open",
        *(f"{q}: first / again" for q in SPARK),
        "plain Spark, variance",
    ]
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for n, (start, opening, asked, plain) in zip(
        sizes, told("Spark", ["--spark", *names], terms.left()), strict=False
    ):
        cells = [
            str(n),
            shown([start]),
            shown([opening]),
            *(shown(asked[q]) for q in SPARK),
            shown([plain]),
        ]
        yield f"| {' | '.join(cells)} |"


SPARK = ("variance of 50 groups", PEOPLE)


def one_spark(sizes: list[str]) -> None:
    """What the process of Spark prints: for each number of rows a line of JSON."""

    def began() -> Any:
        from tests.engines import spark

        return spark.session(short=False)

    start, session = timed(began)
    for files in sizes:
        engine = Dpframe(lambda files: session.read.parquet(files))
        engine.load(files)
        opening, p = timed(partial(engine.opened, "count"))
        asked = {}
        for question in SPARK:
            p = engine.opened(question)
            asked[question] = [timed(partial(engine.ask, question, p))[0] for _ in range(2)]
        session.read.parquet(files).createOrReplaceTempView("visits")
        plain, _ = timed(
            lambda: session.sql(SQL["variance of 50 groups"].format("visits")).collect()
        )
        print(json.dumps([start, opening, asked, plain]), flush=True)


PARTS: dict[str, Callable[[Path, int, int, Terms], Iterator[str]]] = {
    "memory": memory,
    "files": files,
    "large": capped,
    "spark": on_spark,
}


def main() -> None:
    words = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    words.add_argument(
        "parts", nargs="*", choices=[*PARTS, []], help="what to print; all, if none is named"
    )
    words.add_argument("--rows", type=int, default=10**7)
    words.add_argument("--large", type=int, default=10**8)
    for inner in ("--engine", "--files", "--questions"):
        words.add_argument(inner, help=argparse.SUPPRESS)
    words.add_argument("--minutes", type=float, default=60.0, help="how long a part may take")
    words.add_argument("--clock", choices=[*CLOCKS], default="wall")
    words.add_argument("--repeats", type=int, default=3, help="of which the best is printed")
    words.add_argument("--limit", type=int, default=0, help=argparse.SUPPRESS)
    words.add_argument("--spark", nargs="*", help=argparse.SUPPRESS)
    given = words.parse_args()
    if given.engine:
        asked = json.loads(given.questions)
        one_engine(given.engine, given.files, asked, given.repeats, given.limit, given.clock)
        return
    if given.spark:
        one_spark(given.spark)
        return
    for part in given.parts or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            terms = Terms(time.monotonic() + 60 * given.minutes, given.clock, given.repeats)
            for line in PARTS[part](Path(folder), given.rows, given.large, terms):
                print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
