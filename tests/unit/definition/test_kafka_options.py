"""Options of Kafka's source that Spark refuses when the query begins; each was tried with 4.1.1."""

from __future__ import annotations

import json
from typing import Any

import pytest

from definition.document import DefinitionError, parse_definition

BY_NAME = {"subscribe": "t"}
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
        ("failOnDataLoss", "nope", "expected true or false"),
    ],
)
def test_what_no_query_could_begin_with_is_told_with_its_place(name: str, value: Any, said: str) -> None:
    """By the name as it is written."""
    [(place, message)] = problems({**BY_NAME, name: value})
    assert place == f"source.options.{name}"
    assert message.startswith(said)


@pytest.mark.parametrize(
    "value", ["t", "", "[0]", '{"t": 0}', '{"t": [-1]}', '{"t": ["0"]}', '{"t": [true]}', '{"t": [3e9]}', 5]
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


@pytest.mark.parametrize("name", ["singleVariantColumn", "SINGLEVARIANTCOLUMN"])
def test_a_row_of_one_variant_is_sparks_to_read(name: str) -> None:
    """There is nothing in it to tell a bad row by."""
    value: dict[str, Any] = {"format": "json", "schema": "v VARIANT", "options": {name: "v"}}
    [(place, message)] = problems(BY_NAME, value=value)
    assert place == f"source.value.options.{name}"
    assert message.startswith("goes with on_error: null only")
    assert problems(BY_NAME, value={**value, "on_error": None}) == []
