"""Kafka's keys and values as columns (protocol §6).

Spark's own functions either make columns null, without a word, or fail without saying which row it was. So
what they return is looked at here: a row that is not what its schema says fails the batch, with its topic,
partition and offset. With `on_error: null` they are used as they are, with nothing around them.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import (
    AnalysisException,
    DateTimeException,
    IllegalArgumentException,
    NumberFormatException,
    PySparkException,
    SparkRuntimeException,
)
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from worker.query_engine import QueryError
from worker.sinks.spark_errors import java_throwable
from worker.spark.causes import describe
from worker.spark.reading.json_objects import object_of, reads_objects
from worker.spark.reading.payload_formats import PLAIN, READERS, ROW, Reading, name, option, raw_texts, text
from worker.spark.reading.unreadable import RAW_KEY, RAW_VALUE, is_bad_column, told_of_kafka

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from definition.document import Definition
    from definition.source import Payload, Source

UNREADABLE = "cannot be taken apart as"
"""What the error of such a row says, and by which its cause is known."""
_REFUSALS = (
    AnalysisException,
    DateTimeException,
    IllegalArgumentException,
    NumberFormatException,
    SparkRuntimeException,
)
"""What Spark raises about a schema or an option, and PySpark has a class for."""
_JAVA_REFUSAL = re.compile(r"\(?org\.apache\.(?:avro\.|spark\.sql\.avro\.|spark\.SparkException\b)")
"""The classes of Java's for which it has none; behind Spark Connect, a text begins with them."""
_CORRUPT = "columnNameOfCorruptRecord"
_SAMPLES = {"text": "", "json": "{}", "csv": "0", "avro": "\0", "protobuf": ""}
"""A value that is read once, to see whether Spark takes the options."""


def take_apart(frame: DataFrame, source: Source, path: str, *, puts_aside: bool = False) -> DataFrame:
    """The frame with the fields of `source.value` as columns, and `key` as what `source.key` makes of it.

    As texts of SQL: built of PySpark's columns, it took 750 calls into the JVM to start a query.

    Args:
        frame: what Spark's Kafka source yields.
        source: what the definition says.
        path: its place in the definition.
        puts_aside: whether a row that cannot be taken apart gets a value in `ASIDE`, in place of failing the
            batch; its fields are null then.

    Raises:
        QueryError: Spark refuses a schema or an option, or a column would be hidden by one of Kafka's own.
    """
    if puts_aside:
        frame = frame.selectExpr("*", f"key AS {RAW_KEY}", f"value AS {RAW_VALUE}")
    if source.key is not None:
        with placed(f"{path}.key", source.key, frame.sparkSession):
            frame = _with_key(frame, source.key, f"{path}.key", puts_aside=puts_aside)
    if source.value is not None:
        with placed(f"{path}.value", source.value, frame.sparkSession):
            frame = _with_fields(frame, source.value, f"{path}.value", puts_aside=puts_aside)
    return told_of_kafka(frame, source, path) if puts_aside else frame


@contextmanager
def placed(path: str, payload: Payload, session: SparkSession) -> Iterator[None]:
    """What Spark has against a schema that can be read, or an option, with its place.

    It is asked again with nothing of ours around it, and without the options, to know which of them it is.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if not is_refusal(error):
            raise
        bare = msgspec.structs.replace(payload, on_error=None)
        _judge(session, msgspec.structs.replace(bare, options={}), f"{path}.schema")
        _judge(session, bare, f"{path}.options")
        place = path if payload.schema is None else f"{path}.schema"
        raise QueryError.at(place, describe(error), permanent=True) from error


def is_refusal(error: PySparkException | Py4JJavaError) -> bool:
    """Whether it is about what it was given, and not about a JVM or a server that has gone."""
    if isinstance(error, _REFUSALS):
        return True
    java = java_throwable(error)
    return _JAVA_REFUSAL.match(str(error) if java is None else java.getClass().getName()) is not None


def _judge(session: SparkSession, payload: Payload, path: str) -> None:
    try:
        _try(session, READERS[payload.format]("value", payload, path, ""), "value", payload)
    except (PySparkException, Py4JJavaError) as error:
        if payload.schema is None or not is_refusal(error):
            return
        raise QueryError.at(path, describe(error), permanent=True) from error


def _try(session: SparkSession, reading: Reading, column: str, payload: Payload) -> None:
    """Read one value: Spark looks at most options only when it has one, which would be in the first batch.

    Its optimizer does so by itself, and the files that are read are known after it: no job is run.
    """
    sample = f"VALUES (X'{_SAMPLES[payload.format].encode().hex()}') AS t({column})"
    given = f"SELECT *, {reading.plain or 'NULL'} AS {PLAIN} FROM {sample}"  # noqa: S608 - hex
    session.sql(f"SELECT {reading.row} FROM ({given})").inputFiles()  # noqa: S608 - hex


def _with_key(frame: DataFrame, payload: Payload, path: str, *, puts_aside: bool) -> DataFrame:
    frame, names = _read(frame, "key", payload, path, puts_aside=puts_aside)
    if not names:
        return frame
    fields = ", ".join(fields_of(frame, "key", names))
    return frame.withColumn("key", f.expr(f"CASE WHEN key IS NOT NULL THEN struct({fields}) END"))


def _with_fields(frame: DataFrame, payload: Payload, path: str, *, puts_aside: bool) -> DataFrame:
    frame, names = _read(frame, "value", payload, path, puts_aside=puts_aside)
    kept = [each for each in frame.columns if each != "value"]
    kind = frame.schema["value"].dataType
    if not isinstance(kind, StructType):
        return frame
    shown = [names.get(each, each) for each in kind.fieldNames()]
    _refuse_hidden((each for each in shown if each is not None), kept, path)
    return frame.selectExpr(*fields_of(frame, "value", names), *map(name, kept))


def fields_of(frame: DataFrame, column: str, names: Mapping[str, str | None]) -> Iterator[str]:
    """The fields of a column that was read, by the names that the definition has for them.

    One that it calls otherwise is null: in a row that comes through, nothing was corrupt.
    """
    kind = frame.schema[column].dataType
    for each in kind.fieldNames() if isinstance(kind, StructType) else ():
        shown = names.get(each, each)
        if shown is not None:
            value = "CAST(NULL AS STRING)" if each in names else f"{column}.{name(each)}"
            yield f"{value} AS {name(shown)}"


def places_of_rows(definition: Definition) -> Iterator[str]:
    """The places with which the errors of rows begin that cannot be taken apart."""
    for view, source in definition.views.items():
        for column in ("key", "value"):
            if getattr(source, column) is not None:
                yield f"{definition.path_of(view)}.{column}"


def _refuse_hidden(fields: Iterable[str], kept: Iterable[str], path: str) -> None:
    known = {each.lower() for each in kept}
    for each in fields:
        if each.lower() in known:
            raise QueryError.at(
                path,
                f"has a field `{each}`, as Kafka itself has; rename it, or take the value as text and"
                " apart in sql",
                permanent=True,
            )


def _read(
    frame: DataFrame, column: str, payload: Payload, path: str, *, puts_aside: bool
) -> tuple[DataFrame, Mapping[str, str | None]]:
    """The frame with the column read, and the fields in it that are called otherwise (`Reading.names`)."""
    frame, is_bad, names = with_row(frame, column, payload, path)
    if is_bad is None:
        return frame.withColumn(column, f.col(ROW)).drop(ROW, PLAIN), names
    if puts_aside:
        told = frame.withColumn(is_bad_column(column), f.expr(is_bad))
        value = f.expr(f"CASE WHEN NOT coalesce({is_bad_column(column)}, false) THEN {ROW} END")
        return told.withColumn(column, value).drop(ROW, PLAIN), names
    value = f.expr(f"CASE WHEN {is_bad} THEN {_error(path, payload)} ELSE {ROW} END")
    return frame.withColumn(column, value).drop(ROW, PLAIN), names


def with_row(
    frame: DataFrame, column: str, payload: Payload, path: str, *, has_corrupt: bool = True
) -> tuple[DataFrame, str | None, Mapping[str, str | None]]:
    """The frame with what was read of a column as `ROW`, which is in a step of its own: so Spark reads once.

    It may have `PLAIN`, too, in a step before.

    Args:
        frame: with the column, of bytes.
        column: its name.
        payload: what it is read by.
        path: its place in the definition.
        has_corrupt: whether a field may be the one that Spark puts a text into which it cannot read.

    Returns:
        Besides the frame, when a row is bad, in SQL, None if none is; and `Reading.names`.
    """
    corrupt = _corrupt_column(frame, payload) if has_corrupt else ""
    reader = object_of if reads_objects(frame.sparkSession, payload) else READERS[payload.format]
    reading = reader(column, payload, path, corrupt)
    if payload.options:
        _try(frame.sparkSession, reading, column, payload)
    if reading.plain is not None:
        frame = frame.withColumn(PLAIN, f.expr(reading.plain))
    frame = frame.withColumn(ROW, f.expr(reading.row))
    if reading.is_bad is None:
        return frame, None, reading.names
    return frame, f"{column} IS NOT NULL AND ({_is_bad(frame, reading)})", reading.names


def _is_bad(frame: DataFrame, reading: Reading) -> str:
    raw = raw_texts(ROW, frame.schema[ROW].dataType) if reading.has_raw_texts else ()
    return " OR ".join([str(reading.is_bad), *raw])


def _corrupt_column(frame: DataFrame, payload: Payload) -> str:
    """What the column is called that Spark puts a text into which it cannot read, if there is one."""
    if payload.format not in {"json", "csv"}:
        return ""
    given = option(payload, _CORRUPT)
    return given or frame.sparkSession.conf.get(f"spark.sql.{_CORRUPT}") or ""


def _error(path: str, payload: Payload) -> str:
    place = f"{text(f'{path}: topic ')}, topic, ', partition ', partition, ', offset ', offset"
    return f"raise_error(concat({place}, {text(f': {UNREADABLE} {payload.format}')}))"
