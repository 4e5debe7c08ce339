"""A Spark session of this machine, for the tests of a run."""

from __future__ import annotations

import os
import shutil
import sys
from functools import lru_cache
from importlib.util import find_spec
from typing import Any


def missing() -> str | None:
    """Why there is no Spark; None where there is one."""
    if find_spec("pyspark") is None:
        return "pyspark is not installed: pip install -e '.[spark]'"
    return None if shutil.which("java") else "no Java is installed: apt-get install default-jre-headless"


@lru_cache(maxsize=1)
def session() -> Any:
    """Two workers, which say nothing and have no page."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    made = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    quiet = made.config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "3")
    found = (
        quiet.config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    found.sparkContext.setLogLevel("OFF")
    return found
