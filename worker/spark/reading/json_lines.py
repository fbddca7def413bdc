"""Lines of files with `ASIDE` (`unreadable`): each line of JSON is one object, or is put aside.

Spark's reader of JSON takes the first object of a line and says nothing of what is behind it, and makes a row
of each item of an array. So lines of JSON are read as text, and taken apart as Kafka's values are. CSV has no
such thing: all of a line is columns, and it is Spark's reader that knows which line is a header.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from definition.source import Payload, Source
from worker.query_engine import QueryError
from worker.spark.causes import refusal
from worker.spark.columns import with_free_names
from worker.spark.reading.payload import fields_of, is_refusal, placed, with_row
from worker.spark.reading.payload_formats import ROW, SPACE, name, schema_of, text
from worker.spark.reading.unreadable import (
    ASIDE,
    FILE_ORIGIN,
    aside_sql,
    line_error,
    told_by_lines,
    with_corrupt_lines,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame

LINE: Final = "_sparkherd_line"
"""The column with a line, in bytes, as it came."""
_TEXT: Final = f"{LINE}="
"""What Spark's reader of text calls it: in the names of folders, that of a column ends where `=` is."""
_NO_LINES: Final = (
    "names no column but those in the names of folders ({names}): name one that lines have, too"
)
_OF_FILES: Final = frozenset(
    {
        *("path", "basepath", "pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter"),
        *("ignorecorruptfiles", "ignoremissingfiles", "maxfilespertrigger", "maxbytespertrigger"),
        *("maxfileage", "maxcachedfiles", "discardcachedinputratio", "latestfirst", "filenameonly"),
        *("cleansource", "sourcearchivedir", "linesep", "encoding", "charset", "wholetext", "multiline"),
    }
)
"""Options of a source by which Spark finds files and lines; all others say how a line is taken apart."""


def told_lines(source: Source, path: str, load: Callable[[Source], DataFrame]) -> DataFrame:
    """The rows of files, with `ASIDE`.

    Args:
        source: what the definition says.
        path: its place in the definition.
        load: has Spark read what it is given, as a stream or in one batch.
    """
    if not is_of_objects(source):
        return told_by_lines(load(with_corrupt_lines(source)), source, path)
    lines = _lines(source, path, load)
    folders = [each for each in lines.columns if each != LINE]
    own = _without(source, folders, path, _folding(lines))
    blank = f"startswith({LINE}, '{{') OR TRIM(BOTH {text(SPACE)} FROM {LINE}) <> ''"
    lines = lines.where(blank).withColumn(LINE, f.expr(f"CAST({LINE} AS BINARY)"))
    return told_objects(lines, own, path, FILE_ORIGIN)


def is_of_objects(source: Source) -> bool:
    """Whether its lines are JSON."""
    return (source.format or "").lower() == "json"


def told_objects(lines: DataFrame, source: Source, path: str, origin: str = "NULL") -> DataFrame:
    """The columns of the schema, then the others of the frame but `LINE`, then `ASIDE`.

    Args:
        lines: with `LINE`.
        source: how the lines are taken apart.
        path: its place in the definition.
        origin: a text of SQL for where a line came from.

    Raises:
        QueryError: Spark refuses the schema or an option.
    """
    payload = Payload(format="json", schema=source.schema, options=of_parsing(source.options))
    with placed(path, payload, lines.sparkSession):
        return told(lines, payload, path, line_error(source, path), origin=origin)


def told(
    lines: DataFrame,
    payload: Payload,
    path: str,
    error: str,
    *,
    origin: str = "NULL",
    has_corrupt: bool = True,
) -> DataFrame:
    """As `told_objects`, with another text for what is wrong, and `has_corrupt` as `with_row` takes it.

    What was read of a line that is bad is left in its columns: it is in no result, and to take it out would
    cost each line that is good.
    """
    others = [each for each in lines.columns if each != LINE]
    rows, is_bad, names = with_row(lines, LINE, payload, path, has_corrupt=has_corrupt)
    aside = aside_sql(is_bad or "false", name=path, error=error, form="line", raw=LINE, origin=origin)
    return rows.selectExpr(*fields_of(rows, ROW, names), *map(name, others), f"{aside} AS {ASIDE}")


def _lines(source: Source, path: str, load: Callable[[Source], DataFrame]) -> DataFrame:
    """`LINE` as text, and the columns that are names of folders: as the schema has them.

    Spark takes a schema of text only if it has one column but those, and says by loading which those are.
    """
    options = {each: value for each, value in source.options.items() if each.lower() != "wholetext"}
    line = msgspec.structs.replace(source, format="text", schema=f"`{_TEXT}` STRING", options=options)
    with _told_at(f"{path}.options"):
        lines = load(line)
    found = with_free_names(lines, path, [_TEXT]).schema.fields[1:]
    fold = _folding(lines)
    named = {fold(each.name): each for each in _schema(source, path)} if found else {}
    wanted = [named.get(fold(each.name), each) for each in found]
    if [(each.name, each.dataType) for each in wanted] == [(each.name, each.dataType) for each in found]:
        return lines.withColumnRenamed(_TEXT, LINE)
    schema = StructType([StructField(_TEXT, StringType()), *wanted]).toDDL()
    with _told_at(f"{path}.schema"):
        return load(msgspec.structs.replace(line, schema=schema)).withColumnRenamed(_TEXT, LINE)


@contextmanager
def _told_at(path: str) -> Iterator[None]:
    """What Spark has against files and folders, with its place in the definition."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if not is_refusal(error):
            raise
        told = refusal(error)
        raise QueryError.at(path, told.cause, permanent=told.permanent, outage=told.outage) from error


def _folding(frame: DataFrame) -> Callable[[str], str]:
    """By what names of columns are the same."""
    is_exact = (frame.sparkSession.conf.get("spark.sql.caseSensitive") or "").lower() == "true"
    return str if is_exact else str.lower


def _schema(source: Source, path: str) -> StructType:
    return schema_of(Payload(format="json", schema=source.schema), path)


def _without(source: Source, folders: list[str], path: str, fold: Callable[[str], str]) -> Source:
    """The source without the columns of its schema that are names of folders."""
    if not folders:
        return source
    known = {fold(each) for each in folders}
    fields = [each for each in _schema(source, path) if fold(each.name) not in known]
    if not fields:
        raise QueryError.at(f"{path}.schema", _NO_LINES.format(names=", ".join(folders)), permanent=True)
    return msgspec.structs.replace(source, schema=StructType(fields).toDDL())


def of_parsing(options: Mapping[str, Any]) -> dict[str, Any]:
    """Without those of files, and those of Hadoop, which have dots: no key of a store is to be in a plan."""
    return {
        each: value for each, value in options.items() if each.lower() not in _OF_FILES and "." not in each
    }
