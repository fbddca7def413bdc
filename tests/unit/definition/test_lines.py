"""Files of which each line is a row: what does not go with putting such rows aside."""

from __future__ import annotations

from typing import Any

import pytest

from definition.sql.hidden import columns
from tests.unit.definition.tasks import Task

KAFKA: dict[str, Any] = {
    "format": "kafka",
    "options": {"kafka.bootstrap.servers": "h:1", "subscribe": "t"},
    "value": {"format": "json", "schema": "id BIGINT"},
}
LINES: dict[str, Any] = {"format": "json", "schema": "a INT", "options": {"path": "/d"}}
PARQUET: dict[str, Any] = {"format": "parquet", "static": True, "options": {"path": "/b"}}
TASK: dict[str, Any] = {
    "source": LINES,
    "sink": {"format": "sql", "options": {"url": "sqlite:////d/a.db", "table": "rows"}},
    "on_error": "quarantine",
}
read, problems = Task(TASK).read, Task(TASK).problems


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ({"format": "json", "options": {"path": "/d"}}, "source.schema"),
        ({"format": "json", "schema": "a INT", "options": {"multiline": "true"}}, "source.options.multiLine"),
        ({"format": "csv", "schema": "a INT", "options": {"mode": "FAILFAST"}}, "source.options.mode"),
        (
            {"format": "JSON", "schema": "a INT", "options": {"ALLOWCOMMENTS": True}},
            "source.options.allowComments",
        ),
        (
            {"format": "json", "schema": "a INT", "options": {"charset": "UTF-16LE"}},
            "source.options.charset",
        ),
        ({"format": "json", "schema": "a INT", "options": {"encoding": "latin1"}}, "source.options.encoding"),
        ({**LINES, "options": {"mode": "false"}}, "source.options.mode"),
        (
            {**LINES, "options": {"columnNameOfCorruptRecord": "false"}},
            "source.options.columnNameOfCorruptRecord",
        ),
        ({**LINES, "options": {"singleVariantColumn": "false"}}, "source.options.singleVariantColumn"),
        ({**KAFKA, "watermark": {"column": "timestamp", "delay": "1 hour"}}, "source.watermark"),
    ],
)
def test_a_row_that_is_no_line_of_its_own_cannot_be_put_aside(source: dict[str, Any], path: str) -> None:
    """Nor one that state hangs on."""
    assert [where for where, _ in problems(source=source)] == [path]


def test_files_may_say_that_they_are_what_they_have_to_be() -> None:
    """UTF-8, of JSON; of CSV, which Spark itself reads by lines, any that it knows."""
    json_lines = {
        "format": "json",
        "schema": "a INT",
        "options": {"encoding": "utf-8", "multiLine": False, "allowComments": "FALSE"},
    }
    for source in (json_lines, {"format": "csv", "schema": "a INT", "options": {"encoding": "latin1"}}):
        assert read(source=source).on_error == "quarantine"


def condition(where: str) -> list[dict[str, str]]:
    return [{"name": "x", "where": where, "on_violation": "drop"}]


@pytest.mark.parametrize("text", ["_metadata.file_path", "f(a, `_Metadata`)", "Source . _metadata.file_name"])
def test_what_spark_knows_while_it_reads_a_file_only_is_not_named(text: str) -> None:
    """A line is told to be good before SQL sees it."""
    sql, expect = f"SELECT a, {text} AS f FROM source", condition(f"{text} IS NULL")
    told = problems(sql=sql, expect=expect)
    assert [(path, message[:34]) for path, message in told] == [
        ("sql", "must not name _metadata of source "),
        ("expect[0].where", "must not name _metadata of source "),
    ]
    assert read(sql=sql, expect=expect, on_error="fail")


@pytest.mark.parametrize(
    ("schema", "sql"),
    [
        ("a INT", "SELECT a, '_metadata' AS f FROM source"),
        ("a INT", "SELECT a, a AS _metadata FROM source"),
        ("s STRUCT<_metadata: INT>", "SELECT s._metadata AS m FROM source"),
        ("a INT, `_Metadata` STRUCT<x: INT>", "SELECT a, _metadata.x AS x FROM source"),
        ("_METADATA STRUCT<x: INT>", "SELECT source._metadata.x AS x FROM source"),
    ],
)
def test_a_column_of_that_name_may_be_named(schema: str, sql: str) -> None:
    """One of the schema's, a field of a column, or one that the query makes."""
    assert read(source={**LINES, "schema": schema}, sql=sql)


def test_a_condition_may_name_what_the_query_calls_so() -> None:
    """It is over the columns of the result; the query itself may not."""
    expect = condition("_metadata > 0")
    assert read(sql="SELECT a AS `_metadata` FROM source", expect=expect)
    assert [path for path, _ in problems(sql="SELECT a FROM source", expect=expect)] == ["expect[0].where"]


def test_the_file_of_a_source_that_is_read_as_a_whole_may_be_named() -> None:
    """By its view; without one it may be the stream's."""
    both = {"source": None, "sources": {"a": LINES, "b": PARQUET}}
    join = "SELECT a.a, {}.file_path AS f FROM a JOIN b ON a.a = b.a"
    assert read(**both, sql=join.format("b._metadata"))
    for name in ("_metadata", "a._metadata", "`A`._metadata"):
        [(path, message)] = problems(**both, sql=join.format(name))
        assert (path, message[:29]) == ("sql", "must not name _metadata of a ")


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ("a INT, B STRING", {"a", "b"}),
        ("`a,b` MAP<STRING, ARRAY<INT>>, c DECIMAL(1, 2) COMMENT 'x, y'", {"a,b", "c"}),
        ("s STRUCT<x: STRUCT<y: INT, z: INT>>, `t``u` INT NOT NULL", {"s", "t`u"}),
        ("s STRUCT<x: ARRAY<STRUCT<y: INT>>, z: INT>, t STRUCT<>, u INT", {"s", "t", "u"}),
        ("", set()),
    ],
)
def test_the_columns_of_a_schema_are_those_that_are_not_nested(schema: str, names: set[str]) -> None:
    """In small letters, as Spark does not look at case."""
    assert columns(schema) == names


@pytest.mark.parametrize(
    "text",
    ["input_file_name()", "`INPUT_FILE_NAME` ()", "input_file_block_start()", "input_file_block_length()"],
)
def test_functions_of_a_file_are_not_called_on_its_lines(text: str) -> None:
    """They would come out empty, or not, by what else is in the batch."""
    sql, expect = f"SELECT a, {text} AS f FROM source", condition(f"{text} <> ''")
    told = problems(sql=sql, expect=expect)
    name = text.partition("(")[0].strip()
    assert [(path, message[: len(name) + 6]) for path, message in told] == [
        ("sql", f"calls {name}"),
        ("expect[0].where", f"calls {name}"),
    ]
    assert read(sql=sql, expect=expect, on_error="fail")
    assert read(sql=sql, expect=expect, source=KAFKA)


def test_a_column_may_have_the_name_of_such_a_function() -> None:
    """Without brackets it is no call."""
    schema = "a INT, input_file_name STRING"
    assert read(source={**LINES, "schema": schema}, sql="SELECT input_file_name AS f FROM source")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("org.apache.spark.sql.json", "json"),
        ("org.apache.spark.sql.json.DefaultSource", "json"),
        ("org.apache.spark.sql.execution.datasources.json.JsonFileFormat", "json"),
        ("org.apache.spark.sql.execution.datasources.v2.csv.CSVDataSourceV2", "csv"),
        ("com.databricks.spark.csv", "csv"),
    ],
)
def test_spark_s_classes_of_lines_are_called_by_their_short_names(name: str, short: str) -> None:
    """By another one nothing of them would be put aside."""
    told = problems(source={**LINES, "format": name})
    message = f"is a class of Spark's: write {short}, with on_error: quarantine"
    assert told == [("source.format", message)]
    assert read(source={**LINES, "format": name}, on_error="fail")
