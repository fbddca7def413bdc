"""Sessions in the worker's own JVM, and which of them the calling thread's Spark goes by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession


def make_active(session: SparkSession) -> None:
    """Have the calling thread's Spark go by this session, as it does in a program of one session.

    Where a writer looks for catalogs, or a schema in words is read, Spark asks for the thread's session and
    not for the writer's or reader's: without one it knows none but its own.
    """
    jvm: Any = session._jvm  # noqa: SLF001 - where PySpark keeps it
    java: Any = session._jsparkSession  # noqa: SLF001 - likewise
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(java)


def new_session(spark: SparkSession, conf: Mapping[str, str]) -> SparkSession:
    """A session beside `spark`, with settings of its own, that the calling thread's Spark goes by."""
    session = spark.newSession()
    make_active(session)
    for key, value in conf.items():
        session.conf.set(key, value)
    return session
