"""What the section of a sink may say, and which output modes go with it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from definition.document import parse_definition
from definition.tables import read_table_name
from tests.unit.definition.documents import DECLARATIVE, ENTRYPOINT, problems_of, with_value, without


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///out.db",
        "sqlite+pysqlite:////tmp/a.db",
        "postgresql://u:p@h/d",
        "postgresql+psycopg://h:5433/d?sslmode=require",
        "postgresql+psycopg://u@/d?host=/run/pg",
    ],
)
def test_databases_the_sink_can_write_to(url: str) -> None:
    """SQLite and PostgreSQL, by any driver."""
    definition = parse_definition(with_value("sink/options/url", url))
    assert definition.sink is not None
    assert definition.sink.read_options().url == url


@pytest.mark.parametrize(
    "url", ["mysql://u:secret@h/d", "secret", "", "http//secret", "postgresql://u:secret@h:x/d"]
)
def test_a_database_that_is_refused_is_never_quoted(url: str) -> None:
    """The URL may hold a password, and problems reach logs."""
    ((where, message),) = problems_of(with_value("sink/options/url", url))
    assert where == "sink.options.url"
    assert "secret" not in message


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("delays", (None, "delays")),
        ("Herd.Delays_2013", ("Herd", "Delays_2013")),
        ('"My Herd".delays', ("My Herd", "delays")),
        ('herd."a.b"', ("herd", "a.b")),
        ('"say ""x"""', (None, 'say "x"')),
        (f'"{"ü" * 31}x"', (None, "ü" * 31 + "x")),
    ],
)
def test_tables_of_postgresql(text: str, name: tuple[str | None, str]) -> None:
    """With a schema, and in quotes as in SQL; without them, too, upper and lower case count."""
    options = {"url": "postgresql://h/d?options=-csearch_path%3Dherd", "table": text}
    definition = parse_definition(with_value("sink/options", options))
    assert definition.sink is not None
    assert read_table_name(definition.sink.read_options().table) == name
    secret = {"url": "${env:URL}", "table": "herd.delays"}
    assert parse_definition(with_value("sink/options", secret)).sink is not None


def test_the_options_of_sparks_own_sinks_are_spark_s() -> None:
    """Their names are Spark's business; their values must be what Spark can take."""
    sink = {"format": "kafka", "options": {"topic": "t", "kafka.acks": 1, "url": [], "deep": {}}}
    assert [where for where, _ in problems_of(with_value("sink", sink))] == [
        "sink.options.url",
        "sink.options.deep",
    ]


UPSERT = {"url": "sqlite:///out.db", "table": "t", "mode": "upsert", "key": ["a"]}
APPEND = {"url": "sqlite:///out.db", "table": "t"}


@pytest.mark.parametrize("base", [DECLARATIVE, ENTRYPOINT], ids=["declarative", "entry point"])
@pytest.mark.parametrize("options", [APPEND, APPEND | {"mode": "append"}], ids=["by default", "append"])
def test_whole_results_cannot_be_appended(base: dict[str, Any], options: dict[str, Any]) -> None:
    """With complete each batch has every row of the result again, and all of them would be there as often."""
    document = {**base, "output_mode": "complete", "sink": {"format": "sql", "options": options}}
    ((where, message),) = problems_of(json.dumps(document).encode())
    assert where == "output_mode"
    assert message == (
        "must be append or update with sink.options.mode append: each batch of complete has the whole result"
        " again; give the sink mode upsert and its key"
    )


@pytest.mark.parametrize(
    ("mode", "options"),
    [("complete", UPSERT), ("update", UPSERT), ("append", UPSERT), ("append", APPEND), ("update", APPEND)],
)
def test_output_modes_that_can_be_right_are_taken(mode: str, options: dict[str, Any]) -> None:
    """Without an aggregate update is append, and with one a table of all changes may be what is wanted."""
    sink = {"format": "sql", "options": options}
    document = {**DECLARATIVE, "output_mode": mode, "sink": sink}
    assert parse_definition(json.dumps(document).encode()).output_mode == mode


def test_there_is_no_whole_result_without_sql() -> None:
    """Spark has one of aggregates only, and a source has none; an entry point may aggregate by itself."""
    document = {**without("sql"), "output_mode": "complete", "sink": {"format": "noop"}}
    assert problems_of(json.dumps(document).encode()) == [
        ("output_mode", "complete needs sql with an aggregate, such as SELECT a, count(*) ... GROUP BY a")
    ]
    assert parse_definition(with_value("output_mode", "complete", ENTRYPOINT)).output_mode == "complete"


@pytest.mark.parametrize("name", ["delta", "iceberg"])
def test_sinks_of_spark_s_have_a_name_beside_that_of_the_fenced_one(name: str) -> None:
    """Spark and the packages know them by their own."""
    sink = {"format": f"{name}_unfenced", "table": "lake.shop.t", "options": {"compression": "gzip"}}
    definition = parse_definition(json.dumps({**DECLARATIVE, "sink": sink}).encode())
    assert definition.sink is not None
    assert (definition.sink.spark_format, definition.sink.shown) == (name, f"{name}_unfenced")
    assert definition.needs.sink == name
    assert not definition.is_fenced


def test_a_fenced_sink_is_not_left_by_a_capital_letter() -> None:
    """Spark would know some of them so, and write without a fence."""
    problems = problems_of(with_value("sink/format", "SQL"))
    assert ("sink.format", "is a fenced sink's in lower case only: sql") in problems


@pytest.mark.parametrize(
    "wrong",
    [
        {"sink": {"format": "sql", "options": 1}},
        {"sink": {"format": "sql", "options": APPEND | {"mode": "merge"}}},
        {"sink": {"format": "sql", "options": APPEND | {"mode": []}}},
        {"sink": {"format": 5, "options": APPEND}},
        {"sink": 5},
    ],
)
def test_a_sink_that_cannot_be_read_is_blamed_alone(wrong: dict[str, Any]) -> None:
    """Nobody knows then whether the output mode goes with it."""
    problems = problems_of(json.dumps({**DECLARATIVE, "output_mode": "complete", **wrong}).encode())
    assert {where.partition(".")[0] for where, _ in problems} == {"sink"}
