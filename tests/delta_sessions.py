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
"""Delta plans some queries over its log for each commit; to compile them for a few rows is a third of it."""


def session_for_few_rows(spark: SparkSession) -> SparkSession:
    """A session of its own."""
    session = spark.newSession()
    for key, value in FEW_ROWS.items():
        session.conf.set(key, value)
    return session
