"""Rows that cannot be taken apart, in the frame of their source: put aside, in place of failing the batch.

Such a row has a value in one more column, `ASIDE`: what is wrong with it, itself as it came, and where it
came from; in each row that can be read, `ASIDE` is NULL. What else a bad row has in its columns is no row of
anyone's: of lines it is what could be read, of Kafka's rows NULL for what could not be taken apart.
Rows of Kafka are told by `payload`, lines of JSON by `json_lines`, those of CSV by Spark's own reader, which
puts one that it cannot read into a column of its own.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec
from pyspark.sql import functions as f

from definition.source import BY_LINES
from worker.sinks.aside import Aside
from worker.spark.reading.payload_formats import text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from definition.source import Source

ASIDE: Final = "_sparkherd_aside"
"""The column behind all others of a source whose rows may be put aside."""
CORRUPT: Final = "_sparkherd_corrupt="
"""Where Spark's reader of CSV puts a line that it cannot read.

No folder's column is called so, which would take its place: in the names of folders, that ends where `=` is.
"""
RAW_KEY: Final = "_sparkherd_raw_key"
RAW_VALUE: Final = "_sparkherd_raw_value"
"""A row of Kafka's as it came, while it is taken apart."""
FILE_ORIGIN: Final = "to_json(named_struct('file', input_file_name()))"
"""Where a line came from, as a text of SQL, which has to be in the stage that reads the files.

It is computed for bad lines only; `_metadata`, with the same path, Spark makes for each line, with all that
it knows of a file.
"""
KIND: Final = "struct<name: string, error: string, form: string, raw: binary, origin: string>"


def is_by_lines(source: Source) -> bool:
    """Whether lines of its files may be put aside."""
    return source.format is not None and source.format.lower() in BY_LINES


def with_corrupt_lines(source: Source) -> Source:
    """The source so that Spark's reader tells lines that it cannot read.

    That column is the first: of folders that come after the start, Spark moves the columns behind all others,
    and takes each for the one that was at its place.
    """
    options = {**source.options, "columnNameOfCorruptRecord": CORRUPT}
    return msgspec.structs.replace(source, schema=f"`{CORRUPT}` STRING, {source.schema}", options=options)


def line_error(source: Source, path: str) -> str:
    """What is wrong with a line that cannot be read, of the source at this place of the definition."""
    return f"{path}: is no line of {(source.format or '').lower()}, or is not what {path}.schema says"


def told_by_lines(frame: DataFrame, source: Source, path: str) -> DataFrame:
    """The rows of files with `ASIDE`, in place of the column of Spark's reader.

    Args:
        frame: as `with_corrupt_lines` has it read.
        source: what the definition says.
        path: its place in the definition.
    """
    told = aside_sql(
        f"`{CORRUPT}` IS NOT NULL",
        name=path,
        error=line_error(source, path),
        form="line",
        raw=f"CAST(`{CORRUPT}` AS BINARY)",
        origin=FILE_ORIGIN,
    )
    return frame.select("*", f.expr(told).alias(ASIDE)).drop(CORRUPT)


def is_bad_column(column: str) -> str:
    """The column that says whether the key or the value of a row could not be taken apart."""
    return f"_sparkherd_bad_{column}"


def told_of_kafka(frame: DataFrame, source: Source, path: str) -> DataFrame:
    """The rows of a topic with `ASIDE`, in place of the columns that say what could not be taken apart.

    Args:
        frame: with `RAW_KEY`, `RAW_VALUE` and those columns.
        source: what the definition says.
        path: its place in the definition.
    """
    told = [each for each in ("value", "key") if is_bad_column(each) in frame.columns]
    formats = {each: getattr(source, each).format for each in told}
    fields = [f"'{each}', {each}" for each in ("topic", "partition", "offset", "timestampType")]
    fields += ["'timestamp', unix_micros(timestamp)", f"'key', base64({RAW_KEY})"]
    if "headers" in frame.columns:
        fields.append(
            "'headers', transform(headers, h -> named_struct('key', h.key, 'value', base64(h.value)))"
        )
    origin = f"to_json(named_struct({', '.join(fields)}))"
    cases = [
        aside_sql(
            is_bad_column(each),
            name=f"{path}.{each}",
            error=f"{path}.{each}: cannot be taken apart as {formats[each]}",
            form="kafka",
            raw=RAW_VALUE,
            origin=origin,
        )
        for each in told
    ]
    aside = f"coalesce({', '.join(cases)})" if cases else f"CAST(NULL AS {KIND})"
    hidden = [RAW_KEY, RAW_VALUE, *map(is_bad_column, told)]
    return frame.withColumn(ASIDE, f.expr(aside)).drop(*hidden)


def aside_sql(is_bad: str, *, name: str, error: str, form: str, raw: str, origin: str) -> str:
    """A text of SQL for `ASIDE`; `is_bad`, `raw` and `origin` are texts of SQL themselves."""
    fields = {"name": text(name), "error": text(error), "form": text(form), "raw": raw, "origin": origin}
    made = ", ".join(f"'{each}', {value}" for each, value in fields.items())
    return f"CASE WHEN {is_bad} THEN CAST(named_struct({made}) AS {KIND}) END"


def readable(frame: DataFrame) -> DataFrame:
    """The rows that can be read, as SQL sees them."""
    return frame.where(f.col(ASIDE).isNull()).drop(ASIDE)


def counts() -> list[Column]:
    """How many rows there are, how many of them cannot be read, and how many bytes those have.

    As texts of SQL: PySpark's columns would be four times as many calls into the JVM, in each batch.
    """
    size = f"coalesce(sum(octet_length({ASIDE}.raw)), 0)"
    return [f.expr(each) for each in ("count(1) AS rows", f"count({ASIDE}) AS aside", f"{size} AS bytes")]


def unreadable(frame: DataFrame, most: int) -> list[Aside]:
    """The rows that cannot; at most so many."""
    found = frame.where(f.col(ASIDE).isNotNull()).select(f"{ASIDE}.*").limit(most).collect()
    return [_aside(*row) for row in found]


def _aside(name: str, error: str, form: Any, raw: bytes | None, origin: str | None) -> Aside:
    told = json.loads(origin) if origin else {}
    if raw is None:
        told["is_null"] = True
    return Aside("unreadable", (name,), error, form, bytes(raw or b""), told)
