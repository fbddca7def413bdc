"""The first half of a declarative definition: its source and its SQL as a streaming DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.query_engine import QueryError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from definition.document import Definition, Source
    from worker.spark.backend import QuerySession

VIEW = "source"


def read(session: QuerySession, definition: Definition) -> DataFrame:
    """The rows the task yields; nothing is read yet but what Spark needs to know the columns.

    Raises:
        QueryError: the SQL is no query, or does not read the source, so that nothing would ever stream.
    """
    if definition.source is None:
        raise QueryError("source: is required, unless there is an entrypoint")
    frame = load(session.spark, definition.source)
    if definition.sql is None:
        return frame
    frame.createOrReplaceTempView(VIEW)
    session.require_query(definition.sql)
    result = session.spark.sql(definition.sql)
    if not result.isStreaming:
        raise QueryError(f"sql: does not read the view `{VIEW}`, so there is nothing to stream")
    return result


def load(session: SparkSession, source: Source) -> DataFrame:
    """The source's rows, as they come."""
    reader = session.readStream.format(source.format).options(**source.options)
    if source.schema is not None:
        reader = reader.schema(source.schema)
    return reader.load()
