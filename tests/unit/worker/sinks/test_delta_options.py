from __future__ import annotations

import json
from typing import Any

import pytest

from definition.document import DefinitionError, parse_definition
from definition.sinks.delta import DeltaOptions

COUNT = {"sql": "SELECT carrier, count(*) AS n FROM source GROUP BY carrier"}


def document(sink: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"source": {"format": "rate"}, "sink": {"format": "delta", **sink}, **more}).encode()


@pytest.mark.parametrize(
    ("sink", "options"),
    [
        ({"options": {"path": "lake/t"}, "partition_by": ["day"]}, DeltaOptions(path="lake/t")),
        ({"table": "shop.orders"}, DeltaOptions()),
        ({"table": "delta.orders"}, DeltaOptions()),
        (
            {"table": "`the orders`", "options": {"mode": "upsert", "key": ["id"], "merge_schema": True}},
            DeltaOptions(mode="upsert", key=("id",), merge_schema=True),
        ),
    ],
)
def test_a_table_is_taken(sink: dict[str, Any], options: DeltaOptions) -> None:
    """At a path or by its name; appended to unless it says otherwise."""
    definition = parse_definition(document(sink))
    assert definition.sink is not None
    assert definition.sink.read_options() == options


@pytest.mark.parametrize(
    ("sink", "more", "where", "said"),
    [
        ({}, {}, "sink.options.path", "is required, unless sink.table names a table"),
        ({"table": "t", "options": {"path": "/x"}}, {}, "sink.options.path", "does not go with sink.table"),
        ({"table": "a.b.c"}, {}, "sink.table", "must be a table of the session's catalog"),
        ({"table": "t; DROP TABLE t"}, {}, "sink.table", "must be a table of the session's catalog"),
        ({"table": "Delta.`/data/t`"}, {}, "sink.table", "give it as options.path"),
        ({"options": {"path": " "}}, {}, "sink.options.path", "must not be empty"),
        (
            {"options": {"path": "/x", "mode": "upsert"}},
            {},
            "sink.options.key",
            "is required with mode upsert",
        ),
        ({"options": {"path": "/x", "key": ["id"]}}, {}, "sink.options.key", "goes with mode upsert only"),
        (
            {"options": {"path": "/x", "mode": "upsert", "key": ["a", "A"]}},
            {},
            "sink.options.key",
            "names a column twice",
        ),
        ({"options": {"path": "/x", "mergeSchema": True}}, {}, "sink.options.mergeSchema", "unknown key"),
        ({"options": {"path": "/x", "mode": "overwrite"}}, {}, "output_mode", "must be complete with"),
        ({"options": {"path": "/x"}}, {"output_mode": "complete", **COUNT}, "output_mode", "mode overwrite"),
    ],
)
def test_what_is_wrong_is_named(sink: dict[str, Any], more: dict[str, Any], where: str, said: str) -> None:
    """Each fault has its place in the document."""
    with pytest.raises(DefinitionError) as refused:
        parse_definition(document(sink, **more))
    ((path, message),) = [(each.path, each.message) for each in refused.value.problems]
    assert path == where
    assert said in message
