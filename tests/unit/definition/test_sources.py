"""What a definition reads: one source or several, tables, and what takes Kafka's bytes apart."""

from __future__ import annotations

from typing import Any

import pytest

from definition.document import parse_definition
from tests.unit.definition.tasks import Task

TOPIC: dict[str, Any] = {"format": "kafka", "options": {"subscribe": "orders"}}
SINK: dict[str, Any] = {"format": "noop"}
JSON: dict[str, Any] = {"format": "json", "schema": "id BIGINT"}
OF_TASK = Task({"sink": SINK})
read, problems = OF_TASK.read, OF_TASK.problems


def test_one_source_is_the_view_source() -> None:
    """As it was before there could be several."""
    assert list(read(source=TOPIC).views) == ["source"]


def test_several_sources_are_views_of_their_names() -> None:
    """In the order of the document; one of them may stand still."""
    customers = {"format": "csv", "schema": "id BIGINT", "options": {"path": "in"}, "static": True}
    definition = read(sources={"orders": TOPIC, "customers": customers}, sql="SELECT 1")
    assert [(view, source.static) for view, source in definition.views.items()] == [
        ("orders", False),
        ("customers", True),
    ]


def test_an_entry_point_has_no_views() -> None:
    """It reads what it likes."""
    assert parse_definition(b'{"entrypoint": "a:b"}').views == {}


def test_a_table_is_a_source_and_a_sink() -> None:
    """By its name in a catalog of Spark's, with or without a format to make it with."""
    definition = read(
        source={"table": "ice.db.orders"}, sink={"table": "ice.db.late", "partition_by": ["day"]}
    )
    assert definition.source is not None
    assert definition.sink is not None
    assert (definition.source.shown, definition.sink.shown) == ("table ice.db.orders", "table ice.db.late")
    assert definition.sink.partition_by == ("day",)
    assert not definition.is_fenced


@pytest.mark.parametrize("word", ["null", None])
def test_null_is_a_word_and_a_value(word: str | None) -> None:
    """YAML's `on_error: null` is no text."""
    definition = read(source={**TOPIC, "value": {**JSON, "on_error": word}})
    assert definition.source is not None
    assert definition.source.value is not None
    assert not definition.source.value.fails


def test_a_row_that_cannot_be_taken_apart_fails_unless_told_otherwise() -> None:
    """Nothing becomes null without a word."""
    definition = read(source={**TOPIC, "value": JSON})
    assert definition.source is not None
    assert definition.source.value is not None
    assert definition.source.value.fails


LATE: dict[str, Any] = {"column": "timestamp", "delay": "1 hour"}
SEVERAL: dict[str, Any] = {"orders": TOPIC, "customers": TOPIC}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"source": TOPIC, "sources": SEVERAL, "sql": "S"}, ("sources", "cannot stand beside source")),
        (
            {"sources": SEVERAL, "entrypoint": "a:b", "sql": "S"},
            ("entrypoint", "cannot stand beside sources"),
        ),
        ({"sources": {}}, ("source", "is required, unless there is an entrypoint")),
        ({"sources": SEVERAL}, ("sql", "is required with sources")),
        ({"sources": {"1st": TOPIC}, "sql": "S"}, ('sources["1st"]', "is no name for a view")),
        ({"sources": {"a b": TOPIC}, "sql": "S"}, ('sources["a b"]', "is no name for a view")),
        ({"sources": {"": TOPIC}, "sql": "S"}, ('sources[""]', "is no name for a view")),
        ({"sources": {"a": TOPIC, "A": TOPIC}, "sql": "S"}, ("sources", "has two names that differ in case")),
        ({"sources": {"a": {**TOPIC, "static": True}}, "sql": "S"}, ("sources", "are all static")),
        ({"sources": {"a": 5}, "sql": "S"}, ("sources.a", "expected object, got int")),
        ({"sources": {"a": {}}, "sql": "S"}, ("sources.a.format", "is required, unless there is a table")),
        ({"sources": SEVERAL, "sql": "S", "sink": None}, ("sink", "is required with sources")),
        ({"source": {**TOPIC, "static": True}}, ("source.static", "goes with one of several sources")),
        ({"source": {"table": "t", "schema": "a INT"}}, ("source.schema", "does not go with table")),
        ({"source": {**TOPIC, "schema": "a INT"}}, ("source.schema", "does not go with format kafka")),
        ({"source": {"format": "rate", "value": JSON}}, ("source.value", "goes with format kafka only")),
        (
            {"source": {"format": "rate", "commit_group": "g"}},
            ("source.commit_group", "goes with format kafka"),
        ),
        (
            {"source": {**TOPIC, "value": {"format": "json"}}},
            ("source.value.schema", "is required with format json"),
        ),
        (
            {"source": {**TOPIC, "value": {"format": "xml"}}},
            ("source.value.format", "expected one of json, csv"),
        ),
        (
            {"source": {**TOPIC, "key": {"format": "text", "schema": "a INT"}}},
            ("source.key.schema", "does not go"),
        ),
        (
            {"source": {**TOPIC, "key": {"format": "text", "options": {"a": 1}}}},
            ("source.key.options", "does not"),
        ),
        (
            {"source": {**TOPIC, "value": {**JSON, "message": "M"}}},
            ("source.value.message", "does not go with"),
        ),
        (
            {"source": {**TOPIC, "value": {**JSON, "on_error": "skip"}}},
            ("source.value.on_error", "expected one"),
        ),
        (
            {"source": {**TOPIC, "value": {**JSON, "options": {"x": "${env:}"}}}},
            ("source.value.options.x", "names"),
        ),
        (
            {"source": {**TOPIC, "watermark": {"column": "timestamp", "delay": "soon"}}},
            ("source.watermark.delay", ""),
        ),
        (
            {"sources": {"a": TOPIC, "b": {**TOPIC, "static": True, "watermark": LATE}}, "sql": "S"},
            ("sources.b.watermark", "does not go with static"),
        ),
        (
            {"source": {"format": "sparkherd_delta_fence", "options": {"request": "{}"}}},
            ("source.format", "is of sparkherd's own"),
        ),
        ({"source": {"format": "Sparkherd.Iceberg.FenceSource"}}, ("source.format", "is of sparkherd's own")),
        (
            {"source": TOPIC, "sink": {"format": "SPARKHERD_x_fence"}},
            ("sink.format", "is of sparkherd's own"),
        ),
        ({"source": TOPIC, "sink": {}}, ("sink.format", "is required, unless there is a table")),
        (
            {"source": TOPIC, "sink": {"format": "noop", "partition_by": [""]}},
            ("sink.partition_by[0]", "must not"),
        ),
    ],
)
def test_what_is_wrong_with_sources_is_told_with_its_place(
    fields: dict[str, Any], problem: tuple[str, str]
) -> None:
    """One mistake, one problem."""
    [(where, message)] = problems(**fields)
    assert where == problem[0]
    assert message.startswith(problem[1])


def test_protobuf_needs_a_message_and_a_descriptor() -> None:
    """Both at once are told."""
    found = problems(source={**TOPIC, "value": {"format": "protobuf"}})
    assert [where for where, _ in found] == ["source.value.message", "source.value.descriptor"]


@pytest.mark.parametrize("sink", ["sql", "fenced_files"])
def test_fenced_sinks_have_tables_of_their_own(sink: str) -> None:
    """What is Spark's way to say it is refused, with the right place in its stead."""
    options = {"url": "sqlite:///o.db", "table": "t"} if sink == "sql" else {"path": "out"}
    found = problems(
        source=TOPIC, sink={"format": sink, "options": options, "table": "t", "partition_by": ["a"]}
    )
    assert [where for where, _ in found] == ["sink.table", "sink.partition_by"]


def test_static_goes_without_progress() -> None:
    """There is nothing to tell a consumer group of."""
    still = {**TOPIC, "static": True, "commit_group": "g"}
    [(where, message)] = problems(sources={"orders": TOPIC, "customers": still}, sql="S")
    assert where == "sources.customers.commit_group"
    assert "has no progress" in message
