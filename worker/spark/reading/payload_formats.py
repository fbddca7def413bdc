"""How each format of Kafka's keys and values is read, as texts of SQL (protocol §6).

Spark's functions stop at the end of the first row that they find, and say nothing of what is behind it. So
something that no producer knows is put behind each value, as one more field: only where it comes out as that
field was the value one row, and nothing else. With `on_error: null` there is nothing around them.
"""

from __future__ import annotations

import json
import re
import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from definition.source import MOST_COLUMNS, whole_number
from telemetry.secrets import SECRETS
from worker.query_engine import QueryError
from worker.spark.causes import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from definition.source import Payload


def _secret() -> str:
    """Something that no producer knows, and no cause or log tells, as it is or in hexadecimal digits."""
    made = secrets.token_hex(6)
    for shown in (made, made.encode().hex(), made.encode().hex().upper()):
        SECRETS.learn(shown)
    return made


_OURS = _secret()
"""What our names end with: one for all queries, whose compiled code is shared."""
ROW = f"_sparkherd_row_{_OURS}"
"""The column with what was read."""
PLAIN = f"_sparkherd_plain_{_OURS}"
"""The column that says that a text has nothing behind its first row; it is there if `Reading.plain` is."""
_END = f"_end_{_OURS}"
"""The field behind all others of CSV and Avro, in which the mark is."""
_JSON_END = f"_end_{_secret()}"
"""The field behind all others of JSON, which is true: its name is the mark."""
_CSV_MARK = _secret()
_AVRO_MARK = _secret().encode()
_CORRUPT = f"_sparkherd_corrupt_{_OURS}"
"""A field that Spark puts a text into which is not what the schema says."""
_EMPTY = r"^[ \t\r\n]*\{[ \t\r\n]*\}[ \t\r\n]*\z"
"""An object before whose last brace no further field can be put."""
_MOST_COLUMNS = "maxColumns"
_USUAL_COLUMNS = 20_480
"""How many there may be if the option says nothing."""
_MOST_CHARACTERS = "maxCharsPerColumn"
SPACE = " \t\r\n"
"""What JSON has for white space."""
_ESCAPED = {"t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
"""What Spark takes for one character in a separator, behind a backslash."""


class Reading(NamedTuple):
    """How one column is read, in SQL: what it becomes, and when that is not what its schema says.

    `row` is of the raw column. `is_bad` is of the row, `ROW`, and says when it fails. `names` are fields of
    the row that are called otherwise in the definition; None if they are not to be seen. `has_raw_texts` says
    that Spark has not looked at whether the row's texts are UTF-8. `plain` is of the raw column, and has to
    be in the frame as `PLAIN`, in a step before that of `row`: Spark compiles nothing within `from_json`, and
    would compute it for `is_bad` once more.
    """

    row: str
    is_bad: str | None = None
    names: Mapping[str, str | None] = {}
    has_raw_texts: bool = False
    plain: str | None = None


def text(value: str) -> str:
    """A literal; how quotes and backslashes in one are read is a setting that a definition may change."""
    return f"CAST({_bytes(value.encode())} AS STRING)"


def name(value: str) -> str:
    """A name of a column or field."""
    return f"`{value.replace('`', '``')}`"


def option(payload: Payload, *names: str) -> str | None:
    """The first of these options that the definition has, whose names are in any case."""
    given = {each.lower(): str(value) for each, value in payload.options.items()}
    return next((given[each.lower()] for each in names if each.lower() in given), None)


def raw_texts(place: str, kind: DataType) -> Iterator[str]:
    """Conditions by which texts in `place` are no UTF-8, at any depth."""
    match kind:
        case StringType():
            yield f"NOT is_valid_utf8({place})"
        case StructType():
            for field in kind.fields:
                yield from raw_texts(f"{place}.{name(field.name)}", field.dataType)
        case ArrayType():
            yield from _raw_texts_among(place, kind.elementType)
        case MapType():
            yield from _raw_texts_among(f"map_keys({place})", kind.keyType)
            yield from _raw_texts_among(f"map_values({place})", kind.valueType)


def _raw_texts_among(place: str, kind: DataType) -> Iterator[str]:
    """Texts with a comma between them are UTF-8 if each is; a condition on each costs a row twice as much."""
    if isinstance(kind, StringType):
        yield f"NOT is_valid_utf8(array_join({place}, ','))"
    elif is_raw := " OR ".join(raw_texts("each", kind)):
        yield f"exists({place}, each -> {is_raw})"


def _bytes(value: bytes) -> str:
    return f"X'{value.hex()}'"


def string(column: str) -> str:
    """A column of bytes as text."""
    return f"CAST({column} AS STRING)"


def _plain(column: str, payload: Payload, _path: str, _corrupt: str) -> Reading:
    return Reading(string(column), f"NOT is_valid_utf8({ROW})" if payload.fails else None)


def _json(column: str, payload: Payload, path: str, corrupt: str) -> Reading:
    """The further field is put before the last brace, which has to be the one that ends the first object.

    A text with no brace that closes but its last character needs none (`_is_plain`). Where comments are
    allowed, a brace may be in one; so nothing is put there, and what is behind the object is not looked at.
    """
    schema, value = schema_of(payload, path), string(column)
    if not payload.fails:
        return Reading(from_text("from_json", value, schema, permissive(payload)))
    schema, names = with_corrupt(schema, corrupt)
    wanted = [each for each in schema.fieldNames() if each not in names]
    options = permissive(payload, columnNameOfCorruptRecord=_CORRUPT)
    has_comments = allows_comments(payload)
    whole = value if has_comments else f"CASE WHEN {PLAIN} THEN {value} ELSE {_with_end(column)} END"
    row = from_text("from_json", whole, schema.add(_JSON_END, BooleanType()), options)
    is_bad, plain = _is_bad(value, wanted, payload), None if has_comments else _is_plain(column)
    return Reading(row, is_bad, {**names, _JSON_END: None}, plain=plain)


def with_corrupt(schema: StructType, corrupt: str) -> tuple[StructType, dict[str, str | None]]:
    """The schema with our column for what Spark could not read, and what the definition calls that.

    If it has one of its own, ours is in its place: it would be read from the value, as any other.
    """
    ours = StructField(_CORRUPT, StringType())
    places = [at for at, each in enumerate(schema.fields) if _is_corrupt_column(each, corrupt)]
    if not places:
        return StructType([*schema.fields, ours]), {_CORRUPT: None}
    fields = [ours if at in places[:1] else each for at, each in enumerate(schema.fields)]
    return StructType(fields), {_CORRUPT: corrupt}


def _is_corrupt_column(field: StructField, corrupt: str) -> bool:
    return field.name == corrupt and isinstance(field.dataType, StringType)


def from_text(function: str, value: str, schema: StructType, options: Mapping[str, str]) -> str:
    """What a function of Spark's makes of a text, by a schema and options."""
    return f"{function}({value}, {text(schema.toDDL())}, {_map(options)})"


def _map(options: Mapping[str, str]) -> str:
    return f"map({', '.join(text(each) for pair in options.items() for each in pair)})"


def allows_comments(payload: Payload) -> bool:
    """Whether Spark's parser of JSON is to pass over comments."""
    return (option(payload, "allowComments") or "").lower() == "true"


def _is_bad(value: str, wanted: Sequence[str], payload: Payload) -> str:
    """Whether a text is not one object of the wanted fields."""
    is_broken = _is_corrupt(value)
    if not allows_comments(payload):
        has_end = f"{PLAIN} OR {ROW}.{_JSON_END} IS NOT NULL"
        is_broken = f"({is_broken} OR NOT ({has_end})) AND NOT rlike({value}, {text(_EMPTY)})"
    return f"({is_broken}) OR ({is_of_another_schema(value, wanted, payload)})"


def _is_plain(column: str) -> str:
    """Whether a text begins as an object does, and no brace closes in it but its last character.

    That brace ends the first object, or nothing does and Spark reads none: so nothing is behind it. To put a
    field there and read it back costs a flat row a tenth of all that its reading does.
    """
    value = string(column)
    inside = f"CAST(substring({column}, 1, octet_length({column}) - 1) AS STRING)"
    return f"startswith({value}, '{{') AND endswith({value}, '}}') AND NOT contains({inside}, '}}')"


def _with_end(column: str) -> str:
    """The text with one more field; null if it does not end as an object does.

    Bytes are cut off, and not characters, which would have to be counted; and few texts have to be trimmed.
    """
    trimmed = f"TRIM(TRAILING {text(SPACE)} FROM {string(column)})"

    def with_field(given: str) -> str:
        field = f',"{_JSON_END}":true}}'.encode()
        return f"concat(substring({given}, 1, octet_length({given}) - 1), {_bytes(field)})"

    plain = f"WHEN endswith({string(column)}, '}}') THEN {with_field(column)}"
    spaced = f"WHEN endswith({trimmed}, '}}') THEN {with_field(f'CAST({trimmed} AS BINARY)')}"
    return f"CAST(CASE {plain} {spaced} END AS STRING)"


def is_of_another_schema(value: str, fields: Sequence[str], payload: Payload) -> str:
    """Whether there is something, but nothing of what was asked for: that would be nothing but nulls.

    Only an object without any field has no colon. Where the names cannot be read, though the row could, as
    with deep nesting, they are taken for known. What stands here twice Spark would compute for each row,
    whatever comes before it, and so would take each text apart once more for its fields.
    """
    is_empty = "".join(f"{ROW}.{name(field)} IS NULL AND " for field in fields)
    known = f"array({', '.join(map(text, fields))})"
    has_known = f"arrays_overlap({_names(value, payload)}, {known})" if fields else "false"
    return f"{is_empty}contains({value}, ':') AND NOT coalesce({has_known}, true)"


def _names(value: str, payload: Payload) -> str:
    """The names of an object's fields; null if they cannot be read.

    Spark's function for that takes no options, and not all that is taken without any, as NaN. To read the
    names once more where it fails would cost each row time, whether it comes to that or not.
    """
    if not payload.options:
        return f"json_object_keys({value})"
    return f"map_keys(from_json({value}, 'map<string,string>', {_map(permissive(payload))}))"


def _csv(column: str, payload: Payload, path: str, corrupt: str) -> Reading:
    """The further field is one more column, which an unclosed quote swallows and a comment has none of."""
    schema, value = schema_of(payload, path), string(column)
    if not payload.fails:
        return Reading(_from_csv(value, value, schema, payload))
    schema, names = with_corrupt(schema, corrupt)
    texts = [each.name for each in schema if isinstance(each.dataType, StringType) and each.name != _CORRUPT]
    end = (_separator(payload) + _CSV_MARK).encode()
    whole = f"CAST(concat({column}, {_bytes(end)}) AS STRING)"
    row = _from_csv(value, whole, schema.add(_END, StringType()), payload, columnNameOfCorruptRecord=_CORRUPT)
    is_bad = [
        _is_corrupt(value),
        f"NOT ({ROW}.{_END} <=> {text(_CSV_MARK)})",
        *_too_long(value, texts, payload),
    ]
    return Reading(row, " OR ".join(is_bad), {**names, _END: None})


def _from_csv(value: str, whole: str, schema: StructType, payload: Payload, **ours: str) -> str:
    """`whole`, which is the value and may be more, as Spark reads it; null if it has too many columns.

    Spark's parser fails at more columns than there may be, and says not where. It makes room for as many at
    once. So only where there are as many separators, quoted ones among them, one reads that takes more.
    """
    if _number(payload, _MOST_CHARACTERS) is not None:
        ours[_MOST_CHARACTERS] = "-1"
    if option(payload, _MOST_COLUMNS) is not None and _number(payload, _MOST_COLUMNS) is None:
        return from_text("from_csv", whole, schema, permissive(payload, **ours))  # which Spark refuses
    usual, sep = _number(payload, _MOST_COLUMNS) or _USUAL_COLUMNS, _separator(payload)
    few, many = (
        from_text("from_csv", whole, schema, permissive(payload, **ours, **{_MOST_COLUMNS: str(most + 1)}))
        for most in (usual, MOST_COLUMNS)
    )
    left = f"octet_length(replace({value}, {text(sep)}, ''))"
    separators = f"(octet_length({value}) - {left}) / {max(len(sep.encode()), 1)}"
    rare = f"WHEN {separators} < {MOST_COLUMNS} THEN {many}"
    return f"CASE WHEN octet_length({value}) < {usual} OR {separators} < {usual} THEN {few} {rare} END"


def _too_long(value: str, texts: Sequence[str], payload: Payload) -> Iterator[str]:
    """Whether a text is longer than it may be: at one, Spark's parser fails, and says not where."""
    most = _number(payload, _MOST_CHARACTERS)
    if most is not None and most >= 0 and texts:
        among = " OR ".join(f"length({ROW}.{name(each)}) > {most}" for each in texts)
        yield f"(octet_length({value}) > {most} AND ({among}))"


def _number(payload: Payload, wanted: str) -> int | None:
    given = option(payload, wanted)
    return None if given is None else whole_number(given)


def _separator(payload: Payload) -> str:
    given = option(payload, "sep", "delimiter")
    return "," if given is None else re.sub(r"\\(.)", lambda found: _ESCAPED.get(found[1], found[0]), given)


def _is_corrupt(value: str) -> str:
    return f"NOT is_valid_utf8({value}) OR {ROW} IS NULL OR {ROW}.{_CORRUPT} IS NOT NULL"


def _avro(column: str, payload: Payload, path: str, _corrupt: str) -> Reading:
    """The further field is of a fixed length: a length that is read from what is behind a record is any."""
    schema = _avro_record(payload.schema, f"{path}.schema")
    if not payload.fails:
        return Reading(_from_avro(column, schema, permissive(payload)))
    ours, reader = {}, option(payload, "avroSchema")
    if reader is not None:
        ours["avroSchema"] = json.dumps(_with_mark(_avro_record(reader, f"{path}.options.avroSchema")))
    whole = f"concat({column}, {_bytes(_AVRO_MARK)})"
    row = _from_avro(whole, _with_mark(schema), permissive(payload, **ours))
    is_bad = f"{ROW} IS NULL OR NOT ({ROW}.{_END} <=> {_bytes(_AVRO_MARK)})"
    return Reading(row, is_bad, {_END: None}, has_raw_texts=True)


def _with_mark(schema: Mapping[str, Any]) -> dict[str, Any]:
    kind = {"type": "fixed", "name": f"sparkherd.{_END}", "size": len(_AVRO_MARK)}
    return {**schema, "fields": [*schema["fields"], {"name": _END, "type": kind}]}


def _from_avro(column: str, schema: dict[str, Any], options: Mapping[str, str]) -> str:
    return f"from_avro({column}, {text(json.dumps(schema))}, {_map(options)})"


def _protobuf(column: str, payload: Payload, _path: str, _corrupt: str) -> Reading:
    message, descriptor = text(payload.message or ""), text(payload.descriptor or "")
    row = f"from_protobuf({column}, {message}, {descriptor}, {_map(permissive(payload))})"
    return Reading(row, f"{ROW} IS NULL" if payload.fails else None)


def permissive(payload: Payload, **ours: str) -> dict[str, str]:
    """The options that the definition has, and those by which a bad row is told from a good one.

    Spark ignores the case of names, and of two that differ in nothing else it takes either.
    """
    ours = {"mode": "PERMISSIVE", **ours}
    chosen = {each.lower() for each in ours}
    given = {each: str(value) for each, value in payload.options.items() if each.lower() not in chosen}
    return given | ours


def schema_of(payload: Payload, path: str) -> StructType:
    """The columns that the definition says, in Spark's own words.

    Raises:
        QueryError: they are none.
    """
    try:
        schema = StructType.fromDDL(payload.schema or "")
    except PySparkException as error:
        raise QueryError.at(f"{path}.schema", describe(error), permanent=True) from error
    if not isinstance(schema, StructType):
        raise QueryError.at(f"{path}.schema", "is one type, and not columns, as in id BIGINT", permanent=True)
    if not schema.fields:
        raise QueryError.at(f"{path}.schema", "has no columns, as in id BIGINT", permanent=True)
    return schema


def _avro_record(given: str | None, path: str) -> dict[str, Any]:
    try:
        schema = json.loads(given or "")
    except ValueError as error:
        raise QueryError.at(path, f"is not JSON: {error}", permanent=True) from None
    if not isinstance(schema, dict) or not isinstance(schema.get("fields"), list):
        raise QueryError.at(path, "is not Avro's schema of a record", permanent=True)
    return schema


READERS: dict[str, Callable[[str, Payload, str, str], Reading]] = {
    "text": _plain,
    "json": _json,
    "csv": _csv,
    "avro": _avro,
    "protobuf": _protobuf,
}
"""By format: of a column, what the definition says of it, where, and what it calls Spark's corrupt column."""
