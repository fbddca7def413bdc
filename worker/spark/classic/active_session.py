"""Which session the calling thread's Spark goes by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def make_active(session: SparkSession) -> None:
    """Have the calling thread's Spark go by this session, as it does in a program of one session.

    Where a writer looks for catalogs, or a schema in words is read, Spark asks for the thread's session and
    not for the writer's or reader's: without one it knows none but its own.
    """
    jvm: Any = session._jvm  # noqa: SLF001 - where PySpark keeps it
    java: Any = session._jsparkSession  # noqa: SLF001 - likewise
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(java)
