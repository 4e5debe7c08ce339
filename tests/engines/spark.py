"""A Spark session of this machine, for the tests of a run, and for what is measured."""

from __future__ import annotations

import os
import shutil
import sys
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
SHORT = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",  # plans a query again while it runs, which takes longer than these do
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # what runs for a minute is not worth optimizing
}
LONG = {"spark.driver.memory": "4g"}  # all else is as Spark has it, on other machines, too


def missing() -> str | None:
    """Why there is no Spark; None where there is one."""
    if find_spec("pyspark") is None:
        return "pyspark is not installed: pip install -e '.[spark]'"
    return (
        None
        if shutil.which("java")
        else "no Java is installed: apt-get install default-jre-headless"
    )


@lru_cache(maxsize=1)
def session(short: bool = True) -> Any:
    """Two workers, which say nothing and have no page. What fails is tried again, as on a cluster, and at most four times."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,4]")
    for name, value in (QUIET | (SHORT if short else LONG)).items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made
