"""Lines of JSON with `on_error: quarantine`: a row is the one that Spark reads, all else is put aside."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as f

from definition.source import Source
from protocol.messages.quarantine import QuarantineRequest
from worker.query_engine import QueryError
from worker.spark.reading import payload, payload_formats
from worker.spark.reading.json_objects import FUNCTION
from worker.spark.reading.reader import load, load_batch
from worker.spark.reading.unreadable import ASIDE, readable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id BIGINT, name STRING, deep STRUCT<x: INT, y: ARRAY<STRING>>, m MAP<STRING, INT>, at TIMESTAMP"
ONCE = {"available_now": True}


@pytest.fixture(
    params=[False, pytest.param(True, marks=pytest.mark.connectors)], ids=["spark", "own"], autouse=True
)
def by_own_java(request: pytest.FixtureRequest, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether lines are read by our Java, which `make jars` brings, or by Spark's functions alone."""
    if request.param:
        assert spark.catalog.functionExists(FUNCTION)
    else:
        only_by_spark(monkeypatch)
    return bool(request.param)


def only_by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where there is none of our Java."""
    monkeypatch.setattr(payload, "reads_objects", lambda *_: False)


def of(folder: Path, schema: str = SCHEMA, **options: Any) -> Source:
    return Source(format="json", schema=schema, options={"path": str(folder), **options})


def told(spark: SparkSession, source: Source) -> DataFrame:
    return load_batch(spark, source, source.options, told_at="source")


def good(spark: SparkSession, source: Source) -> list[Any]:
    return sorted(map(repr, readable(told(spark, source)).collect()))


def stock(spark: SparkSession, source: Source) -> list[Any]:
    return sorted(map(repr, load_batch(spark, source, source.options).collect()))


def aside(spark: SparkSession, source: Source) -> list[bytes]:
    found = told(spark, source).where(f.col(ASIDE).isNotNull()).select(f"{ASIDE}.raw")
    return [bytes(raw) for (raw,) in found.collect()]


def folder_of(folder: Path, content: bytes | str, name: str = "a.json") -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


GOOD = [
    '{"id":1,"name":"a","deep":{"x":2,"y":["b",null]},"m":{"k":3},"at":"2026-03-01T06:00:00Z"}',
    ' \t{"name" : "}{ \\" é \\u00e9", "id": null}\t ',
    '{"id":1,"id":2}',
    '{"ID":1,"id":3,"Name":"no"}',
    '{"id":4,"other":[{"id":5},{}],"deep":null}',
    "{'id':6}",
    "{}",
    '{"id":7,"name":"' + "x" * 200_000 + '"}',
    '{"id":8,"name":{"as":"text"}}',
]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
def test_a_line_that_is_one_object_is_the_row_that_spark_reads(
    spark: SparkSession, tmp_path: Path, end: str, start: bytes
) -> None:
    """Whatever ends a line; lines without anything are none."""
    lines = [*GOOD[:3], "", "  \t", *GOOD[3:]]
    source = of(folder_of(tmp_path, start + end.join(lines).encode()))
    assert good(spark, source) == stock(spark, source)
    assert aside(spark, source) == []
    assert told(spark, source).count() == len(GOOD)


@pytest.mark.parametrize(
    "line",
    [
        *('{"id":1} {"id":2}', '{"id":1}{"id":2}', '{"id":1} trailing junk', '{"id":1},', "{}{}"),
        *('[{"id":1},{"id":"x"},{"id":"y"}]', '[{"id":1}]', "[]", "null", "5", '"id"', "no json", '{"id":1'),
        *('{"id":"one"}', '{"deep":{"x":"y"}}', '{"other":1}', '{"at":"noon"}', " \x0b", '{"id":1}\x00'),
        *('\ufeff{"id":1}', b'{"id":1,"name":"\xff"}', b"\xff\xfe{"),
        *('{"id":1} }', '{"id":1}}', '{"deep":{}}}', '{"deep":{"x":1}', '{"id":1} x}', '{"id":1,"name":"}'),
        *('{"id":1 x}', '{"id":1,}', "{x}", '"" {"id":1}', 'null{"id":1}', '[{"id":1}'),
    ],
)
def test_a_line_that_is_anything_else_is_put_aside_whole_and_once(
    spark: SparkSession, tmp_path: Path, line: str | bytes
) -> None:
    """Byte for byte, and with nothing of it among the rows."""
    raw = line if isinstance(line, bytes) else line.encode()
    source = of(folder_of(tmp_path, b'{"id":0}\n' + raw + b'\n{"id":9}\n'))
    assert aside(spark, source) == [raw]
    assert [row.id for row in readable(told(spark, source)).collect()] == [0, 9]


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ({"lineSep": "|"}, '{"id":1}| {"id":2}\n|\r\n|{"id":3}'),
        ({"LINESEP": "\n"}, '{"id":1}\r\n{"id":2} \r\n\r\n'),
        ({"allowSingleQuotes": False, "timestampFormat": "dd.MM.yyyy"}, '{"id":1,"at":"31.12.2025"}'),
        ({"allowUnquotedFieldNames": "true"}, "{id:1}\n{id:null, other:1}"),
        ({"wholetext": "true", "multiLine": "false", "encoding": "utf-8"}, '{"id":1}\n{"id":2}'),
        ({"primitivesAsString": True, "dropFieldIfAllNull": True, "samplingRatio": 0.5}, '{"id":1}'),
        ({"timeZone": "Asia/Tokyo"}, '{"at":"2026-03-01T06:00:00"}'),
        ({"pathGlobFilter": "*.json", "recursiveFileLookup": True}, '{"id":1}'),
        ({"ignoreCorruptFiles": True, "fs.s3a.secret.key": "hush"}, '{"id":1}'),
    ],
)
def test_options_mean_what_they_mean_to_sparks_reader(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], lines: str
) -> None:
    """Those of files and those of how a line is taken apart; and none is shown that may be a secret."""
    folder_of(tmp_path, '{"id":77}', "a.txt") if "pathGlobFilter" in options else None
    source = of(folder_of(tmp_path, lines), **options)
    assert (good(spark, source), aside(spark, source)) == (stock(spark, source), [])
    assert good(spark, source)
    plan: Any = told(spark, source)
    assert "hush" not in plan._jdf.queryExecution().toString()


BAD = [
    *('{"id":1,"name":"a}', '{"id":1,"name":"a\\"}', "{'id':1,'name':'}", '{"id":1,"name":"a"} ]'),
    *('{"id":1,"name":}', '{"id":1 "name":2}', '{"id":1;"name":"a"}', '{"id":tru}', '{"id":1.5.1}', "{,}"),
    *('{"id"}', '{"id":}', '{{"id":1}}', '{{"id":1}', "{", "}", "}{", '}{"id":1}', '5{"id":1}', '""{"id":1}'),
    *('null {"id":1}', 'true{"id":1}', '[]{"id":1}', '[5,{"id":1}', '{"id":1]}', '{"id":[1}', '{"m":{"k":1}'),
    *('{"id":1}\u2028', '\u2028{"id":1}', '{"id":1}\u00a0', '{"id":1}\x85', "{\u2029}", "{\x0b}", "{\xa0}"),
    *('{"id":1}\x00}', '{"id":1\x00}', '\x00{"id":1}', '{"name":"a\x00b"}', '{"name":"a\x01b"}', "{\x00}"),
    *('{"name":"\\x"}', '{"name":"\\u12"}', '{"name":"\\}', '{"name":NaN,"id":NaN}', '{"id":01}'),
    *(b'{"name":"\xff}"}', b'{"\xff":1,"id":1}', b'{"id":1,"other":"\xe9"}', b'{"id":1}\xff}'),
    *(b'{"id":1\xff}', b'{"id":1}\xff', b'\xff{"id":1}'),
    *(b'{"id":1,"name":"\xe2\x82"}', b'{"id":1,"other":"\xed\xa0\xbd"}', b'{"id":1,"other":"\xc0\xfd"}'),
    *(b'{"id":1,"name":"\xf0\x9f\x98}', b'{"id":1,\xfd', b'{"id":1}\xe2\x82}', b"{\xff}"),
]
"""Lines in which a brace is the last character, or the only one, or is none, for all it looks like."""
FINE = [
    *('{"id":1,"name":"}"}', '{"id":1,"name":"{"}', '{"id":1,"name":"}{"}', "{'id':1,'name':'\"}'}", "{ }"),
    *('{"id":1}  ', '\t{"id":1}\t', '{"deep":{"x":1}}', '{"deep":{"x":1,"y":["}"]} , "id":1 }', '{"id":1 }'),
    *('{"id":1,"name":"\u2028"}', '{"id":1,"name":"\x85\x7f"}', '{"id":1,"name":"\\ud83d\\ude00"}'),
    *('{"id":1,"name":"\U0001f600"}', '{"id":1,"name":"\\ud83d"}', '{"id":1,"name":"\\u0000\\u007d"}'),
    *('{"id":1,"name":"\ufffd"}', '{"id":1,"other":NaN}', '{"id":1,"other":-Infinity}', '{"id":null}'),
    "{\t}",
]


def bytes_of(lines: list[Any]) -> list[bytes]:
    return [each if isinstance(each, bytes) else each.encode() for each in lines]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_braces_at_ends_and_in_texts_are_not_taken_for_others(
    spark: SparkSession, tmp_path: Path, end: bytes
) -> None:
    """Nor what is no UTF-8, anywhere in a line."""
    bad, fine = bytes_of(BAD), bytes_of(FINE)
    folder_of(tmp_path, end.join([*bad, *fine]) + end)
    source = of(tmp_path)
    assert sorted(aside(spark, source)) == sorted(bad)
    folder_of(tmp_path, end.join(fine) + end)
    assert good(spark, source) == stock(spark, source)
    assert len(good(spark, source)) == len(fine)


NESTED = [
    *(
        '{"name":{"a" : 1.50, "b":[ 1e3 ,{} ]}}',
        '{"name":1.0e10}',
        '{"name":-0.0}',
        '{"name": [ "\u00e9" ] }',
    ),
    *('{"name":true,"id":1}', '{"name":12345678901234567890123}', '{"deep":{"y":[{"z" : 1}, 2.0 ]}}'),
    *('{"m":{"a":1,"a":2}}', '{"m":{"a":1.5},"id":1}', '{"deep":[1]}', '{"deep":{"x":1.5},"id":1}'),
]
"""Lines with what is no text where one is to be, and with what is of another type below the first level."""
_PARTS = [
    *('{"id":1}', '{"id":1,"name":"a"}', '"id":2', '"deep":{"x":1}', '"name":"}"', '"name":', '"m":{}'),
    *("{", "}", "}}", "{}", '"', "'", "\\", "\\}", ",", ":", "[", "]", "1", "null", "NaN", "-", "id"),
    *("//", "/*", "\\ud83d"),
    *(" ", "\t", "\x00", "\x01", "\x0b", "\x85", "\u2028", "\ufeff", "\ufffd", "é", "\U0001f600"),
    *(b"\xff", b"\xe2\x82", b"\xed\xa0\xbd", b"\xc0\xfd"),
]


def generated(seed: int, number: int) -> list[bytes]:
    """Lines that are objects, mostly, and something put in, taken out, twice or cut off."""
    chance, parts = random.Random(seed), bytes_of(_PARTS)

    def line() -> bytes:
        fields = chance.sample(parts[2:7], chance.randint(0, 3))
        made = b"{" + b",".join(fields) + b"}" if chance.random() < 0.7 else chance.choice(parts)
        for _ in range(chance.randint(0, 3)):
            at, until = (chance.randint(0, len(made)) for _ in range(2))
            put = chance.choice([chance.choice(parts), b"", made[at:until]])
            made = made[:at] + put + made[max(at, until) if chance.random() < 0.3 else at :]
        return made

    return [line() for _ in range(number)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"allowUnquotedFieldNames": True, "allowNumericLeadingZeros": True},
        {"allowSingleQuotes": False, "allowNonNumericNumbers": False},
        {"allowBackslashEscapingAnyCharacter": True, "allowUnquotedControlChars": True},
    ],
    ids=str,
)
def test_a_line_that_needs_no_mark_is_read_as_with_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """Whatever a line is made of, it is the same row or put aside as if each had its end marked."""
    lines = [*bytes_of(BAD), *bytes_of(FINE), *bytes_of(NESTED), *generated(seed=7, number=3000)]
    source = of(folder_of(tmp_path, b"\n".join(lines)), **options)
    found = good(spark, source), sorted(aside(spark, source))
    only_by_spark(monkeypatch)
    monkeypatch.setattr(payload_formats, "_is_plain", lambda _column: "false")
    assert found == (good(spark, source), sorted(aside(spark, source)))
    assert min(map(len, found)) > 200
    blank = sum(not each.strip(b" \t\r\n") for each in lines)
    assert sum(map(len, found)) == len(lines) - blank


def test_a_line_is_told_with_its_own_file(spark: SparkSession, tmp_path: Path) -> None:
    """By the address that Spark has for it, whatever becomes of the rows behind their reading."""
    for name in ("p=1/a b.json", "p=1/é%41.json", "p=2/c#?.json"):
        folder_of(tmp_path, f'{{"id":1}}\n{name}\n', name)
    frame = told(spark, of(tmp_path)).repartition(3).sort("id").where(f.col(ASIDE).isNotNull())
    parts = f"{ASIDE}.raw", f"{ASIDE}.origin"
    found = {bytes(raw).decode(): json.loads(origin) for raw, origin in frame.select(*parts).collect()}
    address = f"file://{tmp_path}"
    assert found == {
        "p=1/a b.json": {"file": f"{address}/p=1/a%20b.json"},
        "p=1/é%41.json": {"file": f"{address}/p=1/é%2541.json"},
        "p=2/c#?.json": {"file": f"{address}/p=2/c%23%3F.json"},
    }


def test_an_option_may_make_a_line_unreadable(spark: SparkSession, tmp_path: Path) -> None:
    """As for Spark's reader."""
    source = of(folder_of(tmp_path, "{'id':1}\n"), allowSingleQuotes="false")
    assert aside(spark, source) == [b"{'id':1}"]


def test_files_may_be_compressed(spark: SparkSession, tmp_path: Path) -> None:
    """By what their names say."""
    source = of(folder_of(tmp_path, gzip.compress(b'{"id":1}\n{"id":2}{"id":3}\n'), "a.json.gz"))
    assert aside(spark, source) == [b'{"id":2}{"id":3}']


@pytest.mark.parametrize(
    "schema",
    ["id BIGINT", "p STRING, id BIGINT", "id BIGINT, P STRING, q INT", "id BIGINT, value STRING, p STRING"],
)
@pytest.mark.parametrize("name", ["p", "value"])
def test_columns_of_folders_are_those_that_spark_reads(
    spark: SparkSession, tmp_path: Path, schema: str, name: str
) -> None:
    """Behind the others, of the types that the schema has for them, else of those that Spark finds."""
    for part, line in (("01", '{"id":1,"p":"own"}'), ("2", '{"id":2,"value":"own"}')):
        folder_of(tmp_path, line + "\n", f"{name}={part}/q=5/a.json")
    source = of(tmp_path, schema)
    assert (good(spark, source), aside(spark, source)) == (stock(spark, source), [])
    streams = [load(spark, source, "source", puts_aside=each).schema for each in (False, True)]
    assert streams[1].fieldNames() == [*streams[0].fieldNames(), ASIDE]
    assert [each.dataType for each in streams[1]][:-1] == [each.dataType for each in streams[0]]


def test_a_column_of_corrupt_records_is_null_in_rows(spark: SparkSession, tmp_path: Path) -> None:
    """As in Kafka's values: it is never read from the line."""
    lines = '{"id":1,"_corrupt_record":"forged"}\n{"id":"x"}\n'
    source = of(folder_of(tmp_path, lines), "id BIGINT, _corrupt_record STRING")
    assert [tuple(row) for row in readable(told(spark, source)).collect()] == [(1, None)]
    assert aside(spark, source) == [b'{"id":"x"}']


@pytest.mark.parametrize(
    ("schema", "options", "place"),
    [
        ("id BIGNIT", {}, "source.schema"),
        ("id BIGINT, ID BIGINT", {}, "source.schema"),
        ("id BIGINT", {"maxNestingDepth": "x"}, "source.options"),
    ],
)
def test_what_spark_refuses_is_told_with_its_place(
    spark: SparkSession, tmp_path: Path, schema: str, options: dict[str, Any], place: str
) -> None:
    """Before anything is read."""
    source = of(folder_of(tmp_path, "{}"), schema, **options)
    with pytest.raises(QueryError) as refused:
        load(spark, source, "source", puts_aside=True)
    assert (refused.value.path, refused.value.permanent) == (place, True)


def test_each_line_is_taken_apart_once(spark: SparkSession, tmp_path: Path, *, by_own_java: bool) -> None:
    """However many columns it has, and whether it is bad or not: that is what a batch costs."""
    plan: Any = told(spark, of(folder_of(tmp_path, "{}"), "id BIGINT, name STRING, b INT, c INT"))
    executed = plan._jdf.queryExecution().executedPlan().toString()
    once = (
        ["sparkherd_json(struct<id"]
        if by_own_java
        else ["from_json(StructField(id", "Contains(cast(substring("]
    )
    assert [executed.count(each) for each in once] == [1] * len(once)
    assert "file_size" not in executed


async def test_a_query_goes_on_from_a_checkpoint_of_sparks_reader(
    start: Any, flights: Any, database: Any
) -> None:
    """What it has read it does not read again."""
    flights.add(files=2, rows=3)
    definition = {"source": flights.source, "sink": database.sink(), "trigger": ONCE}
    query = await start(token=1, **definition)
    assert await query.ended() is None
    flights.add(files=2, rows=3)
    with (flights.folder / "000009.json").open("a") as file:
        file.write('{"id":100} {"id":101}\n')
    query = await start(token=2, on_error="quarantine", sql="SELECT id FROM source", **definition)
    assert await query.ended() is None
    assert database.ids() == flights.ids == list(range(12))
    rows = database.query("SELECT raw, origin, batch_id FROM sparkherd_quarantine")
    [(raw, origin, batch)] = rows
    assert (bytes(raw), batch) == (b'{"id":100} {"id":101}', 3)
    assert json.loads(origin)["file"].endswith("/000009.json")
    query = await start(token=3, **definition)
    assert (await query.ended(), database.ids()) == (None, list(range(12)))


async def test_lines_of_folders_with_columns_are_put_aside_and_stay(
    start: Any, engine: Any, spec: Callable[..., Any], tmp_path: Path, database: Any
) -> None:
    """What is in a folder's name is not in the line, so a replay would lose it."""
    folder = tmp_path / "in"
    folder_of(folder, '{"id":1}\n{"id":2}{"id":3}\n', "p=7/a.json")
    definition = {
        "source": {"format": "json", "schema": "id BIGINT", "options": {"path": str(folder)}},
        "on_error": "quarantine",
        "sink": database.sink(),
        "trigger": ONCE,
    }
    query = await start(**definition)
    assert await query.ended() is None
    assert database.query("SELECT id, p FROM flights") == [(1, 7)]
    with sqlite3.connect(database.path) as connection:
        connection.execute("UPDATE sparkherd_quarantine SET raw = ?", (b'{"id":2}',))
    request = QuarantineRequest(action="replay", masked=False)
    answer = await engine.quarantine(spec("t", 1, **definition), request)
    assert (answer.replayed, answer.stayed) == (0, 1)
    assert "p is a name of folders" in answer.notes[0]


async def test_a_folder_that_comes_to_be_a_column_fails_a_batch_and_no_second_one(
    start: Any, tmp_path: Path, database: Any
) -> None:
    """Spark asks for the names of folders when a query starts; nothing is read without them."""
    folder = tmp_path / "in"
    folder.mkdir()
    source = {"format": "json", "schema": "id BIGINT, p STRING", "options": {"path": str(folder)}}
    definition = {"source": source, "on_error": "quarantine", "sink": database.sink(), "trigger": ONCE}
    query = await start(token=1, **{**definition, "trigger": None})
    folder_of(folder, '{"id":1}\n', "p=07/a.json")
    assert "Invalid batch" in (await query.ended()).cause
    query = await start(token=2, **definition)
    assert await query.ended() is None
    assert database.query("SELECT id, p FROM flights") == [(1, "07")]


def refused(spark: SparkSession, source: Source) -> tuple[str | None, str]:
    with pytest.raises(QueryError) as found:
        told(spark, source)
    return found.value.path, found.value.cause


def test_a_folder_is_not_taken_for_the_lines_of_its_files(spark: SparkSession, tmp_path: Path) -> None:
    """Its value stood in place of each of them."""
    folder_of(tmp_path, '{"id": 1}\n', "_sparkherd_line=1/a.json")
    path, cause = refused(spark, of(tmp_path))
    assert path == "source"
    assert "names a column _sparkherd_line: names that begin with _sparkherd_ are reserved" in cause


def test_a_folder_is_not_taken_for_what_is_wrong_with_lines_of_csv(
    spark: SparkSession, tmp_path: Path
) -> None:
    """All of them were put aside."""
    folder_of(tmp_path, "1\n", "_sparkherd_corrupt=1/a.csv")
    source = Source(format="csv", schema="id BIGINT", options={"path": str(tmp_path)})
    with pytest.raises(QueryError, match="source: names a column _sparkherd_corrupt: names that begin"):
        load(spark, source, "source", puts_aside=True)


def test_a_schema_has_a_column_of_lines_besides_those_of_folders(spark: SparkSession, tmp_path: Path) -> None:
    """The error names them."""
    folder_of(tmp_path, '{"id": 1}\n', "day=1/hour=2/a.json")
    path, cause = refused(spark, of(tmp_path, "hour INT, day INT"))
    assert (path, "the names of folders (day, hour)" in cause) == ("source.schema", True)


@pytest.mark.parametrize("schema", ["id BIGINT", "id BIGINT, _metadata INT"])
def test_a_folder_may_be_called_as_what_spark_knows_of_files(
    spark: SparkSession, tmp_path: Path, schema: str
) -> None:
    """It is a column as any other; whence a line came is told all the same."""
    folder_of(tmp_path, '{"id": 1}\nno\n', "_metadata=5/a.json")
    source = of(tmp_path, schema)
    assert [row.asDict() for row in readable(told(spark, source)).collect()] == [{"id": 1, "_metadata": 5}]
    [(origin,)] = told(spark, source).where(f.col(ASIDE).isNotNull()).select(f"{ASIDE}.origin").collect()
    assert json.loads(origin)["file"].endswith("/_metadata=5/a.json")


def test_what_spark_has_against_files_is_told_with_its_place(spark: SparkSession, tmp_path: Path) -> None:
    """Options of files are none by which lines are taken apart; folders may not be as the schema says."""
    folder_of(tmp_path, '{"id": 1}\n', "day=noon/a.json")
    path, cause = refused(spark, of(tmp_path, modifiedBefore="noon"))
    assert (path, "modifiedbefore" in cause) == ("source.options", True)
    path, cause = refused(spark, of(tmp_path, "id BIGINT, day INT"))
    assert (path, "`day`" in cause) == ("source.schema", True)
