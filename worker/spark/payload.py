"""Kafka's keys and values as columns (protocol §6).

Spark's own functions either make columns null, without a word, or fail without saying which row it was. So
what they return is looked at here: a row that is not what its schema says fails the batch, with its topic,
partition and offset. With `on_error: null` they are used as they are, with nothing around them.
"""

from __future__ import annotations

import json
import secrets
from contextlib import contextmanager
from functools import partial, reduce
from operator import and_
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import BooleanType, StringType, StructType

from worker.query_engine import QueryError
from worker.spark.causes import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame

    from definition.document import Definition
    from definition.source import Payload, Source

_OURS = secrets.token_hex(6)
"""What our names end with, that no producer may know: one for all queries, whose compiled code is shared."""
_ROW = f"_sparkherd_row_{_OURS}"
_END = f"_end_{_OURS}"
"""A field that is put before the last brace of a JSON object."""
_CORRUPT = f"_sparkherd_corrupt_{_OURS}"
"""A field that Spark puts a text into which is not what the schema says."""
_READ = f"_sparkherd_read_{_OURS}"
"""A field that has its default in each record that Avro could read, and is null in one that it could not."""
_EMPTY = r"^\s*\{\s*\}\s*$"
"""An object before whose last brace no further field can be put."""
_SPACE = " \t\r\n"
UNREADABLE = "cannot be taken apart as"
"""What the error of such a row says, and by which its cause is known."""


class _Reading(NamedTuple):
    """How one column is read: what it becomes, and when that is not what its schema says.

    `row` is of the raw column. `is_bad` is of the row, and says when it fails. `spare` are fields of the row
    that only that looks at.
    """

    row: Column
    is_bad: Callable[[Column], Column] | None = None
    spare: tuple[str, ...] = ()


def take_apart(frame: DataFrame, source: Source, path: str) -> DataFrame:
    """The frame with the fields of `source.value` as columns, and `key` as what `source.key` makes of it.

    Args:
        frame: what Spark's Kafka source yields.
        source: what the definition says.
        path: its place in the definition.

    Raises:
        QueryError: a schema is none, or has a column that Kafka's own would hide.
    """
    if source.key is not None:
        with _placed(f"{path}.key", source.key):
            frame = _with_key(frame, source.key, f"{path}.key")
    if source.value is not None:
        with _placed(f"{path}.value", source.value):
            frame = _with_fields(frame, source.value, f"{path}.value")
    return frame


@contextmanager
def _placed(path: str, payload: Payload) -> Iterator[None]:
    """What Spark has against a schema that can be read: a type, or two columns of one name."""
    try:
        yield
    except AnalysisException as error:
        place = path if payload.schema is None else f"{path}.schema"
        raise QueryError.at(place, describe(error), permanent=True) from error


def _with_key(frame: DataFrame, payload: Payload, path: str) -> DataFrame:
    frame, spare = _read(frame, "key", payload, path)
    return frame.withColumn("key", f.col("key").dropFields(*spare)) if spare else frame


def _with_fields(frame: DataFrame, payload: Payload, path: str) -> DataFrame:
    kept = [name for name in frame.columns if name != "value"]
    frame, spare = _read(frame, "value", payload, path)
    kind = frame.schema["value"].dataType
    if not isinstance(kind, StructType):
        return frame
    fields = [name for name in kind.fieldNames() if name not in spare]
    _refuse_hidden(fields, kept, path)
    return frame.select(*(f.col("value")[name].alias(name) for name in fields), *kept)


def places_of_rows(definition: Definition) -> Iterator[str]:
    """The places with which the errors of rows begin that cannot be taken apart."""
    for view, source in definition.views.items():
        for name in ("key", "value"):
            if getattr(source, name) is not None:
                yield f"{definition.path_of(view)}.{name}"


def _refuse_hidden(fields: Iterable[str], kept: Iterable[str], path: str) -> None:
    known = {name.lower() for name in kept}
    for name in fields:
        if name.lower() in known:
            raise QueryError.at(
                path,
                f"has a field `{name}`, as Kafka itself has; rename it, or take the value as text and"
                " apart in sql",
                permanent=True,
            )


def _read(frame: DataFrame, column: str, payload: Payload, path: str) -> tuple[DataFrame, tuple[str, ...]]:
    """The frame with the column read, and the names of fields in it that nobody is to see.

    In two steps, so that Spark takes each row apart once, however often it is looked at.
    """
    reading = _READERS[payload.format](f.col(column), payload, path)
    row = f.col(_ROW)
    if reading.is_bad is None:
        return frame.withColumn(column, reading.row), reading.spare
    is_bad = f.col(column).isNotNull() & reading.is_bad(row)
    value = f.when(is_bad, _error(path, payload)).otherwise(row)
    return frame.withColumn(_ROW, reading.row).withColumn(column, value).drop(_ROW), reading.spare


def _error(path: str, payload: Payload) -> Column:
    place = [f.lit(f"{path}: topic "), f.col("topic"), f.lit(", partition "), f.col("partition")]
    said = f.lit(f": {UNREADABLE} {payload.format}")
    return f.raise_error(f.concat(*place, f.lit(", offset "), f.col("offset"), said))


def _text(column: Column, payload: Payload, _path: str) -> _Reading:
    return _Reading(column.cast("string"), (lambda row: ~f.is_valid_utf8(row)) if payload.fails else None)


def _json(column: Column, payload: Payload, path: str) -> _Reading:
    """Spark reads the first value of a text and leaves the rest: so a field is put before the last brace.

    It is found in the row only if that brace is the one that ends the first object. Where comments are
    allowed, a brace may be in one; so nothing is put there, and what is behind the object is not looked at.
    """
    schema, text = _schema(payload, path), column.cast("string")
    if not payload.fails:
        return _Reading(f.from_json(text, schema, _permissive(payload)))
    wanted, options = schema.fieldNames(), _permissive(payload, columnNameOfCorruptRecord=_CORRUPT)
    schema = schema.add(_END, BooleanType()).add(_CORRUPT, StringType())
    whole = text if _allows_comments(payload) else _with_end(column)
    row = f.from_json(whole, schema, options)
    return _Reading(row, lambda row: _is_bad(text, row, wanted, payload), spare=(_END, _CORRUPT))


def _allows_comments(payload: Payload) -> bool:
    given = {name.lower(): str(value).lower() for name, value in payload.options.items()}
    return given.get("allowcomments") == "true"


def _is_bad(text: Column, row: Column, wanted: Sequence[str], payload: Payload) -> Column:
    """Whether a text is not one object of the wanted fields."""
    is_broken = _is_corrupt(text, row)
    if not _allows_comments(payload):
        is_broken = (is_broken | row[_END].isNull()) & ~f.rlike(text, f.lit(_EMPTY))
    return is_broken | _is_of_another_schema(text, row, wanted, payload)


def _with_end(column: Column) -> Column:
    """The text with one more field; null if it does not end as an object does.

    Bytes are cut off, and not characters, which would have to be counted; and few texts have to be trimmed.
    """
    text, field = column.cast("string"), f.lit(f',"{_END}":true}}'.encode())
    trimmed = f.rtrim(text, f.lit(_SPACE))

    def with_field(given: Column) -> Column:
        return f.concat(f.substring(given, 1, f.octet_length(given) - 1), field)

    whole = f.when(text.endswith("}"), with_field(column))
    return whole.when(trimmed.endswith("}"), with_field(trimmed.cast("binary"))).cast("string")


def _is_of_another_schema(text: Column, row: Column, fields: Sequence[str], payload: Payload) -> Column:
    """Whether there is something, but nothing of what was asked for: that would be nothing but nulls.

    Only an object without any field has no colon. Where the names cannot be read, though the row could, as
    with deep nesting, they are taken for known. What stands here twice Spark would compute for each row,
    whatever comes before it, and so would take each text apart once more for its fields.
    """
    is_empty = reduce(and_, (row[name].isNull() for name in fields))
    has_known = f.arrays_overlap(_names(text, payload), f.array(*map(f.lit, fields)))
    return is_empty & f.contains(text, f.lit(":")) & ~f.coalesce(has_known, f.lit(True))  # noqa: FBT003


def _names(text: Column, payload: Payload) -> Column:
    """The names of an object's fields; null if they cannot be read.

    Spark's function for that takes no options, and not all that is taken without any, as NaN. To read the
    names once more where it fails would cost each row time, whether it comes to that or not.
    """
    if not payload.options:
        return f.json_object_keys(text)
    return f.map_keys(f.from_json(text, "map<string,string>", _permissive(payload)))


def _csv(column: Column, payload: Payload, path: str) -> _Reading:
    schema = _schema(payload, path)
    text = column.cast("string")
    if not payload.fails:
        return _Reading(f.from_csv(text, schema.toDDL(), _permissive(payload)))
    options = _permissive(payload, columnNameOfCorruptRecord=_CORRUPT)
    row = f.from_csv(text, schema.add(_CORRUPT, StringType()).toDDL(), options)
    return _Reading(row, partial(_is_corrupt, text), spare=(_CORRUPT,))


def _is_corrupt(text: Column, row: Column) -> Column:
    return ~f.is_valid_utf8(text) | row.isNull() | row[_CORRUPT].isNotNull()


def _avro(column: Column, payload: Payload, path: str) -> _Reading:
    from pyspark.sql.avro.functions import from_avro  # noqa: PLC0415 - of a package that few have

    schema = _avro_record(payload, path)
    if not payload.fails:
        return _Reading(from_avro(column, json.dumps(schema), _permissive(payload)))
    mark = {"name": _READ, "type": "boolean", "default": True}
    wanted = json.dumps({**schema, "fields": [*schema["fields"], mark]})
    row = from_avro(column, json.dumps(schema), _permissive(payload, avroSchema=wanted))
    return _Reading(row, lambda row: row.isNull() | row[_READ].isNull(), spare=(_READ,))


def _protobuf(column: Column, payload: Payload, _path: str) -> _Reading:
    from pyspark.sql.protobuf.functions import from_protobuf  # noqa: PLC0415 - of a package that few have

    row = from_protobuf(column, payload.message or "", payload.descriptor, _permissive(payload))
    return _Reading(row, (lambda row: row.isNull()) if payload.fails else None)


def _permissive(payload: Payload, **ours: str) -> dict[str, str]:
    """The options that the definition has, and those by which a bad row is told from a good one.

    Spark ignores the case of names, and of two that differ in nothing else it takes either.
    """
    ours = {"mode": "PERMISSIVE", **ours}
    chosen = {name.lower() for name in ours}
    given = {name: str(value) for name, value in payload.options.items() if name.lower() not in chosen}
    return given | ours


def _schema(payload: Payload, path: str) -> StructType:
    try:
        schema = StructType.fromDDL(payload.schema or "")
    except PySparkException as error:
        raise QueryError.at(f"{path}.schema", describe(error), permanent=True) from error
    if not isinstance(schema, StructType):
        raise QueryError.at(f"{path}.schema", "is one type, and not columns, as in id BIGINT", permanent=True)
    if not schema.fields:
        raise QueryError.at(f"{path}.schema", "has no columns, as in id BIGINT", permanent=True)
    return schema


def _avro_record(payload: Payload, path: str) -> dict[str, Any]:
    try:
        schema = json.loads(payload.schema or "")
    except ValueError as error:
        raise QueryError.at(f"{path}.schema", f"is not JSON: {error}", permanent=True) from None
    if not isinstance(schema, dict) or not isinstance(schema.get("fields"), list):
        raise QueryError.at(f"{path}.schema", "is not Avro's schema of a record", permanent=True)
    return schema


_READERS: dict[str, Callable[[Column, Payload, str], _Reading]] = {
    "text": _text,
    "json": _json,
    "csv": _csv,
    "avro": _avro,
    "protobuf": _protobuf,
}
