"""DataFrames of Spark: a cluster counts its own rows, and hands over sums.

What a task makes of some rows is one row of bytes, which the driver collects. Spark runs a task
again when its worker is lost, and hands over the result of one of the runs: each row is counted
once.
"""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from importlib import import_module
from io import StringIO
from typing import Any, ClassVar
from urllib.parse import unquote
from uuid import uuid4

from dpframe._cells.columns import prepare
from dpframe._errors import BadType, BadValue
from dpframe._expr import Column
from dpframe._sizes import SIZES
from dpframe._types import Series
from dpframe.engines.sources import (
    ArrowTables,
    Counting,
    Source,
    Task,
    assign_lots,
    cast_batch,
    differ_without_case,
    series_of,
    stats_of,
)
from dpframe.engines.sql.databases import SparkDatabase
from dpframe.engines.steadiness import Answers, FoundHazard, HazardAnswer, judge
from dpframe.engines.tables.kinds import TableKind, register_kind
from dpframe.engines.tables.queries import QUOTED, check_steady

_LOT = "dpframe lot"
# What a physical plan shows of functions that are not Spark's own.
_CODE = re.compile(
    r"Python|Pandas|InArrow|\bUDF\(|MapPartitions|MapElements|MapGroups|AppendColumns|ExistingRDD"
)
_TIES = re.compile(
    r"\b(max_by|min_by|mode|approx_\w+|percentile_approx|collect_list|collect_set|array_agg|listagg)\("
)
_ADDING = re.compile(
    r"\b(sum|avg|mean|stddev\w*|var_\w+|variance|corr|covar_\w+|regr_\w+|skewness|kurtosis|try_sum|try_avg)\((?:distinct )?"
)
_EXACT = re.compile(
    r"UnscaledValue\(|\w+#\d+L\)|cast\([\w#.`]+ as (?:tinyint|smallint|int|bigint|decimal\([\d,]+\))\)\)|\d+\)"
)
_ALIAS = re.compile(r" AS [^\n]*?#\d+L?(?=[,\]])")  # a name, which may be the text of an expression
# Nodes of a logical plan that make a row of several rows.
_ACROSS = re.compile(
    r"\b(Join|Aggregate|Window|Union|Except|Intersect|Deduplicate|Distinct|Expand|Generate|scalar-subquery)\b"
)
# What dropDuplicates is made of in an optimized plan.
_CHOSEN = re.compile(r"\b(?:first|last|any_value)\(")


class SparkSource(Source):
    """Source of a DataFrame of Spark, whose plan is run anew for each scan."""

    answers: ClassVar[Answers] = {
        **dict.fromkeys(("chance", "clock", "first", "sums"), HazardAnswer.REFUSED),
        **dict.fromkeys(("code", "across"), HazardAnswer.DECLARED),
        **dict.fromkeys(("transaction", "meaning"), HazardAnswer.ABSENT),  # the plan keeps them
        **dict.fromkeys(("writes", "in place"), HazardAnswer.WATCHED),
        "elsewhere": HazardAnswer.UNSEEN,
    }
    ordered = False
    _view: str | None = None

    def __init__(self, frame: Any):
        """Keep a DataFrame of Spark, and find the hazards and local files of its plan.

        A plan that may return other rows each time is refused. A session whose workers cannot run
        dpframe is refused too.
        """
        convert: Any = import_module("pyspark.sql.pandas.types")
        self._spark, plans = frame, _plans_of(frame)
        check_steady(
            re.sub(r"\b(Global|Local)Limit\b|\bTail\b", "Limit", plans["Analyzed Logical"])
        )
        _check_choices(frame, plans["Optimized Logical"])
        self.declared: tuple[FoundHazard, ...] = judge(self.answers, _hazards(plans))
        local = [f for f in frame.inputFiles() if f.startswith("file:")]
        self._files = sorted(unquote("/" + f.removeprefix("file:").lstrip("/")) for f in local)
        marks: list[Hashable] = [os.path.realpath(f) for f in self._files]
        _check_workers(frame.sparkSession)
        token = frame.semanticHash()
        schema = convert.to_arrow_schema(frame.schema)
        super().__init__(
            schema, f"spark {token} " + "\n".join(self._files), marks or [("spark", token)]
        )

    def version(self) -> Hashable:
        """Return sizes and times of the local files that are read; raise if the session was
        stopped."""
        context = getattr(self._spark.sparkSession, "_sc", None)  # missing in Spark Connect
        if context is not None and (context._jsc is None or context._jsc.sc().isStopped()):
            raise ConnectionError("this session of Spark was stopped")
        return stats_of(self._files)

    def _some(self, names: Sequence[str]) -> Any:
        return self._spark.select(*(f"`{name.replace('`', '``')}`" for name in names))

    def _count(self) -> int:
        return int(self._spark.count())

    def counting(self) -> Counting | None:
        """Return the session as a database that computes sums, with the columns that mean the same
        in SQL.

        None is returned if no column does, or if a name or a setting would change a statement.
        """
        plain = [field.name for field in self._spark.schema.fields if _is_plain(field.dataType)]
        session = self._spark.sparkSession
        decimal = session.conf.get("spark.sql.legacy.exponentLiteralAsDecimal.enabled", "false")
        if (
            decimal != "false"
            or not plain
            or not differ_without_case(self.names)
            or any("${" in n for n in plain)
        ):
            return None
        self._view = f"dpframe_rows_{uuid4().hex}"
        self._some(plain).createOrReplaceTempView(self._view)
        return Counting(SparkDatabase(session), self._view)

    def close(self) -> None:
        if self._view is not None:
            self._spark.sparkSession.catalog.dropTempView(self._view)

    def _scan(self, names: list[str]) -> ArrowTables:
        pa: Any = import_module("pyarrow")
        rows = self._some(names).mapInArrow(_as_bytes, "found binary").toLocalIterator()
        for row in rows:
            yield from pa.ipc.open_stream(bytes(row[0]))

    def each(
        self, task: Task, columns: Sequence[int], people: tuple[Column, ...], key: bytes
    ) -> Iterator[Any]:
        """Yield the results of a task that the workers run on each partition.

        ``task`` takes an engine for pandas frames, and ``columns`` are the positions that it reads.
        ``key`` seeds the hash of contribution limits.

        With ``people`` rows are moved first, so that all rows of a person are in one partition.
        """
        wanted = list(dict.fromkeys([*columns, *(c.position for c in people)]))
        names = [self.names[i] for i in wanted]
        rows = self._some(names)
        types = [self.types[i] for i in wanted]
        if people:
            own = [(wanted.index(c.position), c.kind) for c in people]
            count = max(rows.sparkSession.sparkContext.defaultParallelism, self.passes(columns))
            spark: Any = import_module("pyspark.sql.types")
            schema = spark.StructType(
                [*rows.schema.fields, spark.StructField(_LOT, spark.IntegerType())]
            )
            rows = rows.mapInArrow(_with_lots(names, types, own, count), schema)
            rows = rows.repartition(count, f"`{_LOT}`")
        work = _counting(task, columns, names, types, bool(people), key)
        seen = 0
        for row in rows.mapInArrow(work, "found binary").collect():
            size, found = pickle.loads(bytes(row[0]))
            seen += size
            yield found
        if seen != self.rows():
            raise ValueError("two scans of one source have not the same rows")


def _is_plain(dtype: Any) -> bool:
    """Return whether cells of a Spark type mean the same in SQL as in this package.

    These are whole numbers, doubles, bools, and texts that are compared by their bytes.
    """
    known = {"byte", "short", "integer", "long", "float", "double", "boolean", "string"}
    return (
        str(dtype.typeName()) in known
        and getattr(dtype, "collation", "UTF8_BINARY") == "UTF8_BINARY"
    )


def _hazards(plans: dict[str, str]) -> Iterator[FoundHazard]:
    """Yield the hazards that the plans of a DataFrame of Spark show.

    ``plans`` maps the name of a plan to its text. The optimized plan says which type a sum has.
    """
    if _CODE.search(QUOTED.sub(" ", plans["Physical"])):
        yield FoundHazard("code", "code, or an RDD, in a DataFrame of Spark")
    shown = _ALIAS.sub("", QUOTED.sub(" ", plans["Optimized Logical"]))
    for found in _TIES.finditer(shown):
        yield FoundHazard("first", found[1].upper())
    for found in _ADDING.finditer(shown):
        if found[1] != "sum" or _EXACT.match(shown, found.end()) is None:
            yield FoundHazard("sums", found[1].upper())
    for part in dict.fromkeys(found[1] for found in _ACROSS.finditer(shown)):
        yield FoundHazard("across", part.upper())


def _plans_of(frame: Any) -> dict[str, str]:
    """Return the plans of a DataFrame of Spark by their names, as Spark prints them.

    They are searched for operations that make two scans differ.
    """
    with redirect_stdout(StringIO()) as told:
        frame.explain(extended=True)
    pieces = re.split(r"^== (\w+(?: \w+)?) Plan ==\n", told.getvalue(), flags=re.MULTILINE)
    plans = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    if not {"Analyzed Logical", "Optimized Logical", "Physical"} <= {*plans}:
        raise BadValue(
            "this DataFrame has no plan that can be read. Write its rows to Parquet files, and open those."
        )
    types, _, analyzed = plans["Analyzed Logical"].partition("\n")
    return plans | {"Analyzed Logical": analyzed or types}


def _check_choices(frame: Any, plan: str) -> None:
    """Refuse a DataFrame of Spark that may give other rows each time.

    ``plan`` is its optimized plan. Spark may call it nondeterministic, or it keeps the rows that
    come first.
    """
    steady = _CHOSEN.search(QUOTED.sub(" ", plan)) is None
    with suppress(Exception):  # Spark Connect does not show its plans
        steady = steady and bool(frame._jdf.queryExecution().optimizedPlan().deterministic())
    if not steady:
        raise BadValue(
            "this DataFrame is not deterministic: it has a function such as first, dropDuplicates of some columns, or "
            "monotonically_increasing_id, and a question may read it more than once. Write its rows to Parquet files, and "
            "open those."
        )


def _check_workers(session: Any) -> None:
    """Run a small task on the cluster, and refuse workers that cannot run dpframe.

    This is done before anything is charged.
    """
    with suppress(Exception):
        if len(session.range(1).mapInArrow(_as_bytes, "found binary").collect()) == 1:
            return
    raise BadType(
        "the workers of this Spark session cannot run dpframe. They need the Python of the driver (PYSPARK_PYTHON), with dpframe "
        "and pyarrow."
    )


# What runs on workers: functions of plain values, which bring no session along --------------------------------------------


def _as_bytes(batches: Any) -> Iterator[Any]:
    """Yield each batch of Arrow as one row of bytes, so that Spark can hand it to the driver."""
    pa: Any = import_module("pyarrow")
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.record_batch(
            [pa.array([sink.getvalue().to_pybytes()], pa.binary())], names=["found"]
        )


def _with_lots(
    names: list[str], types: list[Any], at: list[tuple[int, Any]], of: int
) -> Callable[[Any], Iterator[Any]]:
    """Return a function for workers that adds a column with the share of the people a row is in.

    ``at`` has the positions and kinds of the columns that name a person. ``of`` is the number of
    shares.
    """

    def work(batches: Any) -> Iterator[Any]:
        """Yield each batch with the number of the share of each row in a column."""
        pa: Any = import_module("pyarrow")
        for batch in batches:
            table = cast_batch(pa.table(batch.columns, names=names), names, types)
            lot = assign_lots([prepare(series_of(table.column(i)), kind) for i, kind in at], of)
            yield pa.record_batch([*batch.columns, pa.array(lot, pa.int32())], names=[*names, _LOT])

    return work


def _counting(
    task: Task, columns: Sequence[int], names: list[str], types: list[Any], whole: bool, key: bytes
) -> Callable[[Any], Iterator[Any]]:
    """Return a function for workers that runs a task on the rows of a partition.

    With ``whole`` the task runs once on all rows of a partition, since people may not be cut.
    Otherwise it runs whenever a batch is full. ``key`` seeds the hash of contribution limits.
    """

    def work(batches: Any) -> Iterator[Any]:
        """Yield the results of the task as rows of bytes."""
        pa: Any = import_module("pyarrow")
        parts: Any = import_module("dpframe.engines.parts")
        waiting: list[Any] = []

        def found() -> Any:
            """Return the number of the waiting rows and the task's result on them, pickled in a row
            of bytes."""
            table = pa.concat_tables(waiting)
            some: dict[int, Series] = {
                place: series_of(table.column(i)) for i, place in enumerate(columns)
            }
            made = task(parts.engine_of(some, table.num_rows, key))
            waiting.clear()
            raw = pickle.dumps((table.num_rows, made))
            return pa.record_batch([pa.array([raw], pa.binary())], names=["found"])

        for batch in batches:
            waiting.append(
                cast_batch(pa.table(batch.columns[: len(names)], names=names), names, types)
            )
            if not whole and sum(t.num_rows for t in waiting) >= SIZES.batch:
                yield found()
        if waiting:
            yield found()

    return work


# The entry of the catalogue ----------------------------------------------------------------------

register_kind(
    TableKind(
        title="Spark DataFrame",
        words="a Spark DataFrame",
        types=("pyspark.DataFrame",),
        read=SparkSource,
        source=SparkSource,
        requires=("pyspark", "pyarrow"),
        extra="spark",
        example=None,  # takes a cluster
    )
)
