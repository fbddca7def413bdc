"""The first half of a declarative definition: its sources and its SQL as a streaming DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import msgspec
from pyspark.sql import DataFrame, DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader

from worker.query_engine import QueryError, ignore_step
from worker.spark.columns import require_free_schemas, with_free_names
from worker.spark.reading.json_lines import told_lines
from worker.spark.reading.payload import take_apart
from worker.spark.reading.row_wise import require_row_wise
from worker.spark.reading.unreadable import ASIDE, is_by_lines, readable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from definition.document import Definition
    from definition.source import Source


PLACE: Final = "sparkherd.source"
"""An option of Kafka sources that Spark passes over: in a plan it says which one of a definition it is."""


class SqlSession(Protocol):
    """What SQL is run in."""

    @property
    def spark(self) -> SparkSession:
        """Spark's own session."""
        ...

    def require_query(self, text: str) -> None:
        """Refuse all SQL but queries."""
        ...


class Read(NamedTuple):
    """A stream as a definition reads it.

    Args:
        result: the rows the task yields.
        source: those of the one source that streams, with `worker.spark.reading.unreadable.ASIDE`, if rows
            that cannot be read are put aside; else None.
        view: what SQL reads that source as.
    """

    result: DataFrame
    source: DataFrame | None = None
    view: str = ""


def read(session: SqlSession, definition: Definition, at: Callable[[str], None] = ignore_step) -> Read:
    """The rows the task yields; nothing is read yet but what Spark needs to know the columns.

    Args:
        session: the query's.
        definition: with its references resolved.
        at: is told which source it comes to, for each may have to be waited for.

    Raises:
        QueryError: the SQL is no query, or reads no source that streams, so that nothing would ever stream.
    """
    frames = {}
    aside: tuple[DataFrame | None, str] = (None, "")
    for view, source in definition.views.items():
        at(f"the source {source.shown}")
        puts_aside = definition.puts_aside(source)
        frame = load(session.spark, source, definition.path_of(view), puts_aside=puts_aside)
        frames[view] = readable(frame) if puts_aside else frame
        aside = (frame, view) if puts_aside else aside
    result = query(session, definition.sql, frames)
    if not result.isStreaming:
        raise QueryError.at("sql", f"{_not_read(frames)}, so there is nothing to stream")
    if aside[0] is not None and definition.sql is not None:
        require_row_wise(result)
    return Read(result, *aside)


def query(session: SqlSession, sql: str | None, frames: Mapping[str, DataFrame]) -> DataFrame:
    """What the SQL makes of the views; of a single one, without SQL, its rows.

    Raises:
        QueryError: the SQL is no query.
    """
    if sql is None:
        [frame] = frames.values()
        return frame
    for view, frame in frames.items():
        frame.createOrReplaceTempView(view)
    session.require_query(sql)
    return with_free_names(session.spark.sql(sql), "sql")


def _not_read(frames: Mapping[str, DataFrame]) -> str:
    streams = [f"`{view}`" for view, frame in frames.items() if frame.isStreaming]
    if len(streams) == 1:
        return f"does not read the view {streams[0]}"
    return f"reads none of the views {', '.join(streams)}"


def load(session: SparkSession, source: Source, path: str, *, puts_aside: bool = False) -> DataFrame:
    """The source's rows, as they come.

    Args:
        session: the query's own.
        source: what to read.
        path: its place in the definition.
        puts_aside: whether rows that cannot be read get a value in `worker.spark.reading.unreadable.ASIDE`.
    """
    options = options_of(source)
    require_free_schemas(source, path)
    if source.static:
        frame = with_free_names(load_batch(session, source, options), path)
        return with_free_names(shaped(frame, source, path), path)
    if puts_aside and is_by_lines(source):
        stream = session.readStream
        made = told_lines(source, path, lambda each: _described(stream, each, each.options).load())
        return with_free_names(made, path, [ASIDE])
    if source.is_kafka:
        options = {**options, PLACE: path}
    described = _described(session.readStream, source, options)
    frame = described.load() if source.table is None else described.table(source.table)
    with_free_names(frame, path)
    made = shaped(frame, source, path, puts_aside=puts_aside)
    return with_free_names(made, path, [ASIDE] if puts_aside else ())


def load_batch(
    session: SparkSession,
    source: Source,
    options: Mapping[str, Any],
    files: Sequence[str] = (),
    told_at: str | None = None,
) -> DataFrame:
    """The source's rows as they are now, in one batch; still as the source has them (`shaped`).

    Args:
        session: the check's own.
        source: what to read.
        options: in place of the source's.
        files: of them, in place of the source's `path`; all if there are none.
        told_at: where lines get a value in `worker.spark.reading.unreadable.ASIDE` that cannot be read, the
            source's place in the definition.
    """
    if told_at is not None and is_by_lines(source):
        given = msgspec.structs.replace(source, options=dict(options))
        return told_lines(given, told_at, lambda each: load_batch(session, each, each.options, files))
    described = _described(session.read, source, options)
    if source.table is not None:
        return described.table(source.table)
    return described.load(list(files) or None)


_Reader = TypeVar("_Reader", DataFrameReader, DataStreamReader)


def _described(reader: _Reader, source: Source, options: Mapping[str, Any]) -> _Reader:
    if source.format is not None:
        reader = reader.format(source.format)
    if source.schema is not None:
        reader = reader.schema(source.schema)
    return reader.options(**options)


def shaped(frame: DataFrame, source: Source, path: str, *, puts_aside: bool = False) -> DataFrame:
    """What SQL sees of a source's rows: its bytes taken apart, and how late they may be.

    Args:
        frame: the rows as the source has them.
        source: what the definition says.
        path: its place in the definition.
        puts_aside: as in `load`.
    """
    frame = take_apart(frame, source, path, puts_aside=puts_aside)
    late = source.watermark
    return frame if late is None else frame.withWatermark(late.column, late.delay)


def options_of(source: Source) -> dict[str, Any]:
    """The source's options, for Spark.

    Who has Kafka's bytes taken apart gets the headers beside them, which Spark leaves out if not asked.
    """
    if source.key is None and source.value is None:
        return source.options
    return {"includeHeaders": True, **source.options}
