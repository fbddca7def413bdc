"""Options of Kafka's source that Spark refuses when the query begins; each was tried with 4.1.1."""

from __future__ import annotations

import json
from typing import Any

import pytest

from definition.document import DefinitionError, parse_definition

BY_NAME = {"subscribe": "t"}
LEVELS = ("nope", "READ_COMMITTED", " read_committed", "", True)
OF_ONE = '{"t": {"0": 23}}'


def problems(options: dict[str, Any], **source: Any) -> list[tuple[str, str]]:
    """What is wrong with a definition that has them: places and messages."""
    document = {"source": {"format": "kafka", "options": options, **source}, "sink": {"format": "noop"}}
    try:
        parse_definition(json.dumps(document).encode())
    except DefinitionError as error:
        return [(problem.path, problem.message) for problem in error.problems]
    return []


@pytest.mark.parametrize(
    "options",
    [
        *({**BY_NAME, "startingOffsets": value} for value in ("earliest", "latest", " LATEST ", OF_ONE)),
        {**BY_NAME, "STARTINGOFFSETS": ' {"t": {"0": -1, "01": -2, "2": 5.0}} and more'},
        {**BY_NAME, "startingOffsetsByTimestamp": '{"t": {"0": 1700000000000}}'},
        {**BY_NAME, "startingTimestamp": 1700000000000, "startingOffsets": "not looked at then"},
        {**BY_NAME, "startingOffsetsByTimestamp": OF_ONE, "startingOffsets": "not looked at then"},
        {**BY_NAME, "maxOffsetsPerTrigger": "1000", "minOffsetsPerTrigger": 5, "failOnDataLoss": "FALSE"},
        {**BY_NAME, "startingOffsets": "${env:BEGIN}", "maxOffsetsPerTrigger": "${env:MOST}"},
        {"subscribePattern": ".*", "startingOffsets": "{}"},
        *({"assign": value} for value in ('{"t": [0, 1]}', ' {"t": [0.0]}', "{}", '{"t": []}', "${env:A}")),
        {"assign": '{"t": []}', "startingOffsets": "{}"},
        {**BY_NAME, "startingOffsets": '{"t": {"+0": 9223372036854775807}}'},
        {**BY_NAME, "startingOffsetsByTimestamp": '{"t": {"0": 0, "1": -1, "2": -2}}'},
        {"subscribePattern": ".*", "startingOffsetsByTimestamp": "{}"},
        *({**BY_NAME, "startingTimestamp": value} for value in (0, " 5\t", "+5")),
        {**BY_NAME, "startingTimestamp": 5, "startingOffsetsByTimestamp": "not looked at then"},
        {**BY_NAME, "maxOffsetsPerTrigger": 1, "minOffsetsPerTrigger": 1},
        {**BY_NAME, "maxOffsetsPerTrigger": "${env:MOST}", "minOffsetsPerTrigger": 9},
        *({**BY_NAME, "kafka.isolation.level": level} for level in ("read_committed", "read_uncommitted")),
        *(
            {"subscribe": names}
            for names in ("a,b", " a , , b\n", "..., a-b_c.D9", "${env:TOPIC}", "t" * 249)
        ),
    ],
)
def test_what_spark_takes_is_taken(options: dict[str, Any]) -> None:
    """In its spellings, and with references, of which nobody knows here what stands for them."""
    assert problems(options) == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("startingOffsets", "whatever", "expected earliest, latest, or JSON as text, as {"),
        ("STARTINGoffsets", "", "expected earliest, latest, or"),
        ("startingOffsets", 5, "expected earliest, latest, or"),
        ("startingOffsets", "[" * 100_000, "expected earliest, latest, or"),
        *(
            ("startingOffsets", value, "expected earliest, latest, or")
            for value in (
                '{"t": 3}',
                '{"t": [0]}',
                '{"t": {"0": "0"}}',
                '{"t": {"0": true}}',
                '{"t": {"x": 0}}',
            )
        ),
        ("startingOffsets", '{"t": {"-1": 0}}', "expected earliest, latest, or"),
        ("startingOffsets", '{"t": {"0": 1e999}}', "expected earliest, latest, or"),
        ("startingOffsets", '{"t": {"0": -3}}', "topic t, partition 0: wants offset -3, and there is none"),
        ("startingOffsets", "{}", "names no partition; it has to name all that are read"),
        ("startingOffsets", '{"t": {}}', "names no partition"),
        ("startingOffsetsByTimestamp", "x", 'expected JSON as text, as {"TOPIC": {"PARTITION": NUMBER}}'),
        ("startingTimestamp", "yesterday", "expected a time in whole milliseconds since 1970"),
        ("maxOffsetsPerTrigger", "many", "expected a whole number"),
        ("maxOffsetsPerTrigger", 1.5, "expected a whole number"),
        ("maxOffsetsPerTrigger", 2**63, "expected a whole number"),
        ("minOffsetsPerTrigger", True, "expected a whole number"),
        ("minOffsetsPerTrigger", " 5 ", "expected a whole number"),
        *(
            ("MAXOffsetsPerTrigger", value, "expected a whole number above 0")
            for value in (0, -5, "0", "+-1")
        ),
        *(
            (name, value, said)
            for name, said in (
                ("startingOffsets", "expected earliest, latest, or"),
                ("startingOffsetsByTimestamp", "expected JSON as text"),
            )
            for value in (
                '{"t": {"0": 18446744073709551619}}',
                '{"t": {"0": 9223372036854775808}}',
                '{"t": {"0": 2.7}}',
                '\u00a0{"t": {"0": 5}}',
            )
        ),
        ("startingOffsets", "\u00a0earliest", "expected earliest, latest, or"),
        ("startingTimestamp", "\u00a05", "expected a time in whole milliseconds since 1970"),
        ("startingTimestamp", -1, "expected a time in whole milliseconds since 1970"),
        ("startingOffsetsByTimestamp", "{}", "names no partition; it has to name all that are read"),
        ("startingOffsetsByTimestamp", '{"t": {}}', "names no partition"),
        (
            "startingOffsetsByTimestamp",
            '{"t": {"0": -7}}',
            "topic t, partition 0: wants time -7, and expected are whole milliseconds since 1970",
        ),
        ("startingOffsetsByTimestamp", '{"t": {"0": -3}}', "topic t, partition 0: wants time -3"),
        *(
            (name, f'{{"{topic}": {{"0": -7}}}}', "names a topic that cannot be: a name is 1 to 249 letters")
            for name in ("startingOffsets", "startingOffsetsByTimestamp")
            for topic in ("", ".", "..", "a b", "a\\nb", "a\\u0000", "ä", "x" * 250)
        ),
        *(("kafka.isolation.level", level, "expected read_uncommitted or read_comm") for level in LEVELS),
        ("failOnDataLoss", "nope", "expected true or false"),
    ],
)
def test_what_no_query_could_begin_with_is_told_with_its_place(name: str, value: Any, said: str) -> None:
    """By the name as it is written."""
    [(place, message)] = problems({**BY_NAME, name: value})
    assert place == (f'source.options["{name}"]' if "." in name else f"source.options.{name}")
    assert message.startswith(said)
    assert len(message) < 200


@pytest.mark.parametrize(
    ("names", "said"),
    [
        *((names, "names a topic that cannot be") for names in ("t\nu", "t\u00a0", "a b", "..", "t" * 250)),
        *((names, "names no topic") for names in ("", " , ,")),
    ],
)
def test_topics_have_names_that_kafka_takes(names: str, said: str) -> None:
    """No other can be made, so a query would wait for it in vain; the names themselves are not told."""
    [(place, message)] = problems({"subscribe": names})
    assert place == "source.options.subscribe"
    assert message.startswith(said)
    assert "t" * 250 not in message


def test_the_least_of_a_batch_is_not_more_than_the_most() -> None:
    """Spark refuses that when the query begins, and does not say where it stands."""
    [(place, message)] = problems({**BY_NAME, "minOFFSETSPerTrigger": "10", "maxoffsetspertrigger": 5})
    assert (place, message) == (
        "source.options.minOFFSETSPerTrigger",
        "is more than maxOffsetsPerTrigger, which is 5",
    )


@pytest.mark.parametrize(
    "value",
    [
        *("t", "", "[0]", '{"t": 0}', '{"t": [-1]}', '{"t": ["0"]}', '{"t": [true]}', '{"t": [3e9]}', 5),
        *('{"t": [0.5]}', '{"t": [4294967296]}', '\u00a0{"t": [0]}'),
    ],
)
def test_partitions_to_assign_are_numbers_by_topic(value: Any) -> None:
    """What Spark could not read it would not say where."""
    expected = 'expected JSON as text, as {"TOPIC": [PARTITION, PARTITION]}'
    assert problems({"assign": value}) == [("source.options.assign", expected)]


def test_offsets_of_no_partition_do_not_go_with_assigned_ones() -> None:
    """All that are assigned have to be named."""
    [(place, _)] = problems({"assign": '{"t": [0]}', "startingOffsets": "{}"})
    assert place == "source.options.startingOffsets"


def test_the_options_of_other_sources_are_their_own() -> None:
    """A connector of somebody's may have options of these names."""
    document = {"source": {"format": "mine", "options": {"assign": "x"}}, "sink": {"format": "noop"}}
    assert parse_definition(json.dumps(document).encode()).source is not None


@pytest.mark.parametrize(
    ("form", "name"),
    [
        *(("json", "singleVariantColumn"), ("json", "SINGLEVARIANTCOLUMN"), ("csv", "singleVariantColumn")),
        *(("avro", "avroSchemaUrl"), ("avro", "AVROSCHEMAURL")),
    ],
)
def test_what_leaves_nothing_to_tell_a_bad_row_by_goes_with_null_only(form: str, name: str) -> None:
    """A row of one variant, or a schema of which nothing is known here."""
    value: dict[str, Any] = {"format": form, "schema": "v VARIANT", "options": {name: "v"}}
    [(place, message)] = problems(BY_NAME, value=value)
    assert place == f"source.value.options.{name}"
    assert message.startswith("goes with on_error: null only")
    assert problems(BY_NAME, value={**value, "on_error": None}) == []


@pytest.mark.parametrize(
    ("name", "value", "most"),
    [
        *(("maxColumns", "2147483647", 1_000_000), ("MAXCOLUMNS", -1, 1_000_000)),
        *(("maxColumns", 0, 1_000_000), ("maxColumns", "+1000001", 1_000_000)),
        ("maxColumns", "9" * 30, 1_000_000),
        *(("inputBufferSize", 2147483000, 10_000_000), ("inputBufferSize", "-0", 10_000_000)),
    ],
)
def test_what_spark_s_parser_of_csv_makes_room_for_has_bounds(name: str, value: str | int, most: int) -> None:
    """It makes it at once: the JVM would end, or say nothing of the place."""
    csv: dict[str, Any] = {"format": "csv", "schema": "id BIGINT", "options": {name: value}}
    assert problems(BY_NAME, value=csv) == [(f"source.value.options.{name}", f"expected 1 to {most:,}")]
    for good in (1, most, str(most), "x"):  # what is no number Spark refuses
        assert problems(BY_NAME, value={**csv, "options": {name: good}}) == []
    assert problems(BY_NAME, value={**csv, "format": "json"}) == []


def test_options_of_a_value_differ_in_more_than_case() -> None:
    """Spark takes either of two."""
    csv: dict[str, Any] = {"format": "csv", "schema": "id BIGINT", "options": {"Sep": ",", "sep": ";"}}
    expected = "has two names that differ in case only, which Spark does not tell apart: Sep, sep"
    assert problems(BY_NAME, value=csv) == [("source.value.options", expected)]


TOO_DEEP = "is nested more than 100 brackets deep"


@pytest.mark.parametrize("depth", [100, 101, 5000])
def test_a_schema_is_nested_no_deeper_than_a_jvm_bears(depth: int) -> None:
    """Its parser ends the whole worker otherwise; what stands in quotes is not nested."""
    ddl = "id " + "STRUCT<a:" * depth + "INT" + ">" * depth
    said = [] if depth == 100 else [("source.value.schema", TOO_DEEP)]
    assert problems(BY_NAME, value={"format": "json", "schema": ddl}) == said
    assert problems(BY_NAME, value={"format": "avro", "schema": "[" * depth}) == said
    quoted = f"a STRUCT<b: INT COMMENT '{'<' * depth}', `{'(' * depth}`: INT>"
    assert problems(BY_NAME, value={"format": "json", "schema": quoted}) == []


@pytest.mark.parametrize("hidden", ["--\r a {}", "z INT COMMENT r'\\', a {} COMMENT 'x'"])
def test_what_only_looks_like_a_text_or_comment_is_counted(hidden: str) -> None:
    """A comment ends where a line does in Spark, and in a raw text nothing is escaped."""
    schema = hidden.format("ARRAY<" * 101)
    assert problems(BY_NAME, value={"format": "json", "schema": schema}) == [
        ("source.value.schema", TOO_DEEP)
    ]


@pytest.mark.parametrize("opened", ["/* ", "\\'", '\\"', "'", "r'", "`", "'\\"])
def test_texts_that_are_not_closed_are_read_once(opened: str) -> None:
    """A megabyte of them: to look for the end of each would keep a manager from all else."""
    schema = opened * (1_000_000 // len(opened))
    assert problems(BY_NAME, value={"format": "json", "schema": schema}) == []


def test_nor_is_a_reader_s_schema_or_that_of_files() -> None:
    """Closing ones in a text do not make room for more."""
    deep = "STRUCT<c: INT COMMENT '>>', a:" * 101
    value = {"format": "avro", "schema": "{}", "options": {"AvroSchema": deep}}
    assert problems(BY_NAME, value=value) == [("source.value.options.AvroSchema", TOO_DEEP)]
    document = {"source": {"format": "json", "schema": deep}, "sink": {"format": "noop"}}
    with pytest.raises(DefinitionError) as refusal:
        parse_definition(json.dumps(document).encode())
    assert [(each.path, each.message) for each in refusal.value.problems] == [("source.schema", TOO_DEEP)]
