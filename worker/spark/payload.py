"""Kafka's keys and values as columns (protocol §6).

Spark's own functions either make columns null, without a word, or fail without saying which row it was. So
what they return is looked at here: a row that is not what its schema says fails the batch, with its topic,
partition and offset. With `on_error: null` they are used as they are, with nothing around them.
"""

from __future__ import annotations

import json
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import BooleanType, StringType, StructType

from worker.query_engine import QueryError
from worker.spark.causes import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

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
    """How one column is read, in SQL: what it becomes, and when that is not what its schema says.

    `row` is of the raw column. `is_bad` is of the row, `_ROW`, and says when it fails. `spare` are fields of
    the row that only that looks at.
    """

    row: str
    is_bad: str | None = None
    spare: tuple[str, ...] = ()


def take_apart(frame: DataFrame, source: Source, path: str) -> DataFrame:
    """The frame with the fields of `source.value` as columns, and `key` as what `source.key` makes of it.

    As texts of SQL: built of PySpark's columns, it took 750 calls into the JVM to start a query.

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
    return frame.selectExpr(
        *(f"value.{_name(name)} AS {_name(name)}" for name in fields), *(_name(name) for name in kept)
    )


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
    reading = _READERS[payload.format](column, payload, path)
    row = f.expr(reading.row)
    if reading.is_bad is None:
        return frame.withColumn(column, row), reading.spare
    is_bad = f"{column} IS NOT NULL AND ({reading.is_bad})"
    value = f.expr(f"CASE WHEN {is_bad} THEN {_error(path, payload)} ELSE {_ROW} END")
    return frame.withColumn(_ROW, row).withColumn(column, value).drop(_ROW), reading.spare


def _error(path: str, payload: Payload) -> str:
    place = f"{_text(f'{path}: topic ')}, topic, ', partition ', partition, ', offset ', offset"
    return f"raise_error(concat({place}, {_text(f': {UNREADABLE} {payload.format}')}))"


def _text(text: str) -> str:
    """A literal; how quotes and backslashes in one are read is a setting that a definition may change."""
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def _name(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _plain(column: str, payload: Payload, _path: str) -> _Reading:
    return _Reading(_string(column), f"NOT is_valid_utf8({_ROW})" if payload.fails else None)


def _string(column: str) -> str:
    return f"CAST({column} AS STRING)"


def _json(column: str, payload: Payload, path: str) -> _Reading:
    """Spark reads the first value of a text and leaves the rest: so a field is put before the last brace.

    It is found in the row only if that brace is the one that ends the first object. Where comments are
    allowed, a brace may be in one; so nothing is put there, and what is behind the object is not looked at.
    """
    schema, text = _schema(payload, path), _string(column)
    if not payload.fails:
        return _Reading(_from("json", text, schema, _permissive(payload)))
    wanted, options = schema.fieldNames(), _permissive(payload, columnNameOfCorruptRecord=_CORRUPT)
    schema = schema.add(_END, BooleanType()).add(_CORRUPT, StringType())
    whole = text if _allows_comments(payload) else _with_end(column)
    row = _from("json", whole, schema, options)
    return _Reading(row, _is_bad(text, wanted, payload), spare=(_END, _CORRUPT))


def _from(kind: Literal["json", "csv"], text: str, schema: StructType, options: Mapping[str, str]) -> str:
    return f"from_{kind}({text}, {_text(schema.toDDL())}, {_map(options)})"


def _map(options: Mapping[str, str]) -> str:
    return f"map({', '.join(_text(each) for pair in options.items() for each in pair)})"


def _allows_comments(payload: Payload) -> bool:
    given = {name.lower(): str(value).lower() for name, value in payload.options.items()}
    return given.get("allowcomments") == "true"


def _is_bad(text: str, wanted: Sequence[str], payload: Payload) -> str:
    """Whether a text is not one object of the wanted fields."""
    is_broken = _is_corrupt(text)
    if not _allows_comments(payload):
        is_broken = f"({is_broken} OR {_ROW}.{_END} IS NULL) AND NOT rlike({text}, {_text(_EMPTY)})"
    return f"({is_broken}) OR ({_is_of_another_schema(text, wanted, payload)})"


def _with_end(column: str) -> str:
    """The text with one more field; null if it does not end as an object does.

    Bytes are cut off, and not characters, which would have to be counted; and few texts have to be trimmed.
    """
    trimmed = f"TRIM(TRAILING {_text(_SPACE)} FROM {_string(column)})"

    def with_field(given: str) -> str:
        field = f',"{_END}":true}}'.encode().hex()
        return f"concat(substring({given}, 1, octet_length({given}) - 1), X'{field}')"

    plain = f"WHEN endswith({_string(column)}, '}}') THEN {with_field(column)}"
    spaced = f"WHEN endswith({trimmed}, '}}') THEN {with_field(f'CAST({trimmed} AS BINARY)')}"
    return f"CAST(CASE {plain} {spaced} END AS STRING)"


def _is_of_another_schema(text: str, fields: Sequence[str], payload: Payload) -> str:
    """Whether there is something, but nothing of what was asked for: that would be nothing but nulls.

    Only an object without any field has no colon. Where the names cannot be read, though the row could, as
    with deep nesting, they are taken for known. What stands here twice Spark would compute for each row,
    whatever comes before it, and so would take each text apart once more for its fields.
    """
    is_empty = " AND ".join(f"{_ROW}.{_name(name)} IS NULL" for name in fields)
    has_known = f"arrays_overlap({_names(text, payload)}, array({', '.join(map(_text, fields))}))"
    return f"{is_empty} AND contains({text}, ':') AND NOT coalesce({has_known}, true)"


def _names(text: str, payload: Payload) -> str:
    """The names of an object's fields; null if they cannot be read.

    Spark's function for that takes no options, and not all that is taken without any, as NaN. To read the
    names once more where it fails would cost each row time, whether it comes to that or not.
    """
    if not payload.options:
        return f"json_object_keys({text})"
    return f"map_keys(from_json({text}, 'map<string,string>', {_map(_permissive(payload))}))"


def _csv(column: str, payload: Payload, path: str) -> _Reading:
    schema, text = _schema(payload, path), _string(column)
    if not payload.fails:
        return _Reading(_from("csv", text, schema, _permissive(payload)))
    options = _permissive(payload, columnNameOfCorruptRecord=_CORRUPT)
    row = _from("csv", text, schema.add(_CORRUPT, StringType()), options)
    return _Reading(row, _is_corrupt(text), spare=(_CORRUPT,))


def _is_corrupt(text: str) -> str:
    return f"NOT is_valid_utf8({text}) OR {_ROW} IS NULL OR {_ROW}.{_CORRUPT} IS NOT NULL"


def _avro(column: str, payload: Payload, path: str) -> _Reading:
    schema = _avro_record(payload, path)
    if not payload.fails:
        return _Reading(_from_avro(column, schema, _permissive(payload)))
    mark = {"name": _READ, "type": "boolean", "default": True}
    wanted = json.dumps({**schema, "fields": [*schema["fields"], mark]})
    row = _from_avro(column, schema, _permissive(payload, avroSchema=wanted))
    return _Reading(row, f"{_ROW} IS NULL OR {_ROW}.{_READ} IS NULL", spare=(_READ,))


def _from_avro(column: str, schema: dict[str, Any], options: Mapping[str, str]) -> str:
    return f"from_avro({column}, {_text(json.dumps(schema))}, {_map(options)})"


def _protobuf(column: str, payload: Payload, _path: str) -> _Reading:
    message, descriptor = _text(payload.message or ""), _text(payload.descriptor or "")
    row = f"from_protobuf({column}, {message}, {descriptor}, {_map(_permissive(payload))})"
    return _Reading(row, f"{_ROW} IS NULL" if payload.fails else None)


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


_READERS: dict[str, Callable[[str, Payload, str], _Reading]] = {
    "text": _plain,
    "json": _json,
    "csv": _csv,
    "avro": _avro,
    "protobuf": _protobuf,
}
