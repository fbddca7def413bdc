"""A source's rows in one batch, and not too many of them: what a check looks at.

A streaming source goes on for ever, or holds more than anybody wants to wait for. So a few files, a few
offsets of each of Kafka's partitions, or the first rows are read, as close to what the task's first batches
would be as can be had.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from definition.options import without
from protocol.connectors import AVRO, FILES
from worker.checks.offsets import window, with_window
from worker.spark.causes import describe
from worker.spark.kafka.sources import answered
from worker.spark.reading.reader import load, load_batch, options_of, shaped
from worker.spark.reading.unreadable import is_by_lines, readable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from definition.source import Source
    from protocol.messages.checks import Begin
    from worker.spark.kafka.brokers import Brokers

MOST_ROWS: Final = 1000
"""Of a topic, or of a source that has neither files nor offsets."""
MOST_FILES: Final = 10
MOST_BYTES: Final = 67_108_864
"""Of all files together; one is read whatever its size."""
_FILES: Final = FILES - {"binaryfile"} | {AVRO}
_ENDLESS: Final = frozenset({"rate", "rate-micro-batch", "socket"})
"""Formats of Spark's that can only be streamed."""
_GLOB: Final = frozenset("*?[]{}\\")


class Sample(NamedTuple):
    """Some rows of a source, None if none can be had; and what is to be said of them."""

    frame: DataFrame | None
    note: str | None = None


def sample(
    session: SparkSession,
    source: Source,
    path: str,
    begin: Begin,
    brokers: Brokers | None,
    *,
    puts_aside: bool = False,
) -> Sample:
    """Rows at one end of a source; of a static one all.

    Args:
        session: the check's own.
        source: with its references resolved.
        path: its place in the definition.
        begin: which end.
        brokers: say where a topic begins and ends; without them it is read from its beginning.
        puts_aside: whether rows that cannot be read are put aside, and so not shown.
    """
    if source.static:
        return Sample(load(session, source, path))
    taken = _taken(session, source, begin, brokers, path if puts_aside else None)
    if taken.frame is None:
        return taken
    if puts_aside and is_by_lines(source):
        return Sample(readable(taken.frame), taken.note)
    frame = shaped(taken.frame, source, path, puts_aside=puts_aside)
    return Sample(readable(frame) if puts_aside else frame, taken.note)


def _taken(
    session: SparkSession, source: Source, begin: Begin, brokers: Brokers | None, told_at: str | None
) -> Sample:
    """With lines told at that place that cannot be read (`load_batch`)."""
    name = (source.format or "").lower()
    if name in _ENDLESS:
        return Sample(None, f"{name} can only be streamed, so there are no rows to show")
    if source.is_kafka:
        return _of_topics(session, source, begin, brokers)
    if name in _FILES and (files := _chosen(session, source, begin)) is not None:
        return _of_files(session, source, files, told_at)
    return _of_others(session, source, begin, told_at)


def _of_topics(session: SparkSession, source: Source, begin: Begin, brokers: Brokers | None) -> Sample:
    options = options_of(source)
    if brokers is None:
        frame = load_batch(session, source, with_window(options, None)).limit(MOST_ROWS)
        unknown = "behind a Spark Connect server nobody knows where a topic ends: these are its first rows"
        return Sample(frame, unknown if begin == "end" else None)
    found = window(answered(brokers.states(source.options, {})), options, begin, MOST_ROWS)
    if found is None:
        return Sample(None, "the brokers have no such topic, so there are no rows to show")
    frame = load_batch(session, source, with_window(options, found))
    looked = None if found.rows else "there are no rows in the topic"
    return Sample(frame.orderBy("timestamp", "topic", "partition", "offset"), looked)


class _Chosen(NamedTuple):
    paths: list[str]
    of: int


def _chosen(session: SparkSession, source: Source, begin: Begin) -> _Chosen | None:
    """The files to read, the oldest first, as Spark takes them; None if they cannot be told apart.

    Among the source's options are those by which Spark chooses files, and those of Hadoop by which it finds
    them; others mean nothing here.
    """
    place = source.options.get("path")
    if place is None:
        return None
    options = without(source.options, {"path"})
    found = session.read.format("binaryFile").options(**options).load(str(place))
    by_age = [f.col("modificationTime"), f.col("path")]
    order = by_age if begin == "beginning" else [each.desc() for each in by_age]
    try:
        rows = found.select("path", "modificationTime", "length").orderBy(*order).limit(MOST_FILES).collect()
        count = found.select("path").count() if len(rows) == MOST_FILES else len(rows)
    except PySparkException:  # such as of folders that are named in two ways
        return None
    paths = _within_bytes(rows)
    if any(_GLOB & set(each) for each in paths):
        return None
    return _Chosen(paths if begin == "beginning" else paths[::-1], count)


def _within_bytes(rows: list[Any]) -> list[str]:
    left = MOST_BYTES
    paths: list[str] = []
    for row in rows:
        left -= row["length"]
        if left < 0 and paths:
            break
        paths.append(row["path"])
    return paths


def _of_files(session: SparkSession, source: Source, files: _Chosen, told_at: str | None) -> Sample:
    """File by file, for Spark would take the largest first."""
    if not files.paths:
        return Sample(None, "there are no files yet, so there are no rows to show")
    options = without(options_of(source), {"path"})
    place = str(source.options["path"])
    if not _GLOB & set(place):
        options.setdefault("basePath", place)
    frames = [load_batch(session, source, options, [path], told_at) for path in files.paths]
    read, count = len(files.paths), files.of
    note = f"the rows are of {read} of its {count} files" if read < count else None
    return Sample(reduce(DataFrame.unionAll, frames), note)


def _of_others(session: SparkSession, source: Source, begin: Begin, told_at: str | None) -> Sample:
    try:
        frame = load_batch(session, source, options_of(source), told_at=told_at).limit(MOST_ROWS)
    except PySparkException as error:
        why = describe(error).partition("\n")[0]
        return Sample(
            None, f"{source.shown} cannot be read in one batch, so there are no rows to show: {why}"
        )
    note = f"{source.shown} has no end that is known: these are rows of its beginning"
    return Sample(frame, note if begin == "end" else None)
