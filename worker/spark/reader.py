"""The first half of a declarative definition: its sources and its SQL as a streaming DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker.query_engine import QueryError, ignore_step
from worker.spark.payload import take_apart

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from definition.document import Definition
    from definition.source import Source
    from worker.spark.backend import QuerySession


def read(session: QuerySession, definition: Definition, at: Callable[[str], None] = ignore_step) -> DataFrame:
    """The rows the task yields; nothing is read yet but what Spark needs to know the columns.

    Args:
        session: the query's.
        definition: with its references resolved.
        at: is told which source it comes to, for each may have to be waited for.

    Raises:
        QueryError: the SQL is no query, or reads no source that streams, so that nothing would ever stream.
    """
    frames = {}
    for view, source in definition.views.items():
        at(f"the source {source.shown}")
        path = "source" if definition.source is not None else f"sources.{view}"
        frames[view] = load(session.spark, source, path)
    if definition.sql is None:
        [frame] = frames.values()
        return frame
    for view, frame in frames.items():
        frame.createOrReplaceTempView(view)
    session.require_query(definition.sql)
    result = session.spark.sql(definition.sql)
    if not result.isStreaming:
        raise QueryError(f"sql: {_not_read(frames)}, so there is nothing to stream")
    return result


def _not_read(frames: dict[str, DataFrame]) -> str:
    streams = [f"`{view}`" for view, frame in frames.items() if frame.isStreaming]
    if len(streams) == 1:
        return f"does not read the view {streams[0]}"
    return f"reads none of the views {', '.join(streams)}"


def load(session: SparkSession, source: Source, path: str) -> DataFrame:
    """The source's rows, as they come.

    Args:
        session: the query's own.
        source: what to read.
        path: its place in the definition.
    """
    reader = session.read if source.static else session.readStream
    if source.format is not None:
        reader = reader.format(source.format)
    if source.schema is not None:
        reader = reader.schema(source.schema)
    reader = reader.options(**_options(source))
    frame = reader.load() if source.table is None else reader.table(source.table)
    frame = take_apart(frame, source, path)
    late = source.watermark
    return frame if late is None else frame.withWatermark(late.column, late.delay)


def _options(source: Source) -> dict[str, Any]:
    """Who has Kafka's bytes taken apart gets the headers beside them, which Spark leaves out if not asked."""
    if source.key is None and source.value is None:
        return source.options
    return {"includeHeaders": True, **source.options}
