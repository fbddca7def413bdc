"""Where a task puts rows aside, and what its definition cannot ask for."""

from __future__ import annotations

from typing import Any

import pytest

from definition.quarantine import DEFAULT_TABLE
from definition.sql.volatile import volatile_function
from tests.unit.definition.tasks import Task

KAFKA: dict[str, Any] = {
    "format": "kafka",
    "options": {"kafka.bootstrap.servers": "h:1", "subscribe": "t"},
    "value": {"format": "json", "schema": "id BIGINT"},
}
SQL: dict[str, Any] = {"format": "sql", "options": {"url": "sqlite:////d/a.db", "table": "rows"}}
DELTA: dict[str, Any] = {"format": "delta", "options": {"path": "/d/rows"}}
ASIDE: dict[str, Any] = {"format": "delta", "options": {"path": "/d/aside"}}
TASK: dict[str, Any] = {"source": KAFKA, "sink": SQL}
BAD_IDS = {"name": "ids", "where": "id > 0", "on_violation": "quarantine"}
read, problems = Task(TASK).read, Task(TASK).problems


def test_beside_a_sink_sql_nothing_more_has_to_be_said() -> None:
    """Rows that are put aside go to a table of their own there."""
    assert read(expect=[BAD_IDS]).quarantine is None
    assert read(on_error="quarantine").on_error == "quarantine"
    place = read(on_error="quarantine", quarantine={}).quarantine
    assert place is not None
    assert (place.sink, place.beside) == (None, DEFAULT_TABLE)


def test_elsewhere_it_is_a_fenced_format_of_its_own() -> None:
    """With what that format takes, and the worker has to have it."""
    definition = read(sink=DELTA, on_error="quarantine", quarantine=ASIDE)
    assert definition.quarantine is not None
    assert definition.quarantine.sink is not None
    assert definition.quarantine.sink.read_options().path == "/d/aside"
    assert "delta" in read(expect=[BAD_IDS], quarantine=ASIDE).needs.sources


@pytest.mark.parametrize(
    ("fields", "path", "message"),
    [
        ({"sink": DELTA, "on_error": "quarantine"}, "quarantine", "is required unless the sink is sql"),
        ({"sink": DELTA, "expect": [BAD_IDS]}, "quarantine", "is required unless the sink is sql"),
        ({"sink": DELTA, "quarantine": {}}, "quarantine.format", "is required unless the sink is sql"),
        (
            {"sink": {"format": "noop"}, "expect": [BAD_IDS]},
            "sink",
            "expect[0].on_violation needs a sink with",
        ),
        ({"sink": {"format": "noop"}, "quarantine": ASIDE}, "sink", "quarantine needs a sink with a fence"),
        ({"quarantine": {"format": "kafka"}}, "quarantine.format", "has no fence, so a row could"),
        ({"quarantine": {"options": {"a": 1}}}, "quarantine.options", "goes with format"),
        ({"quarantine": {"table": "rows"}}, "quarantine.table", "is the table of the sink's rows"),
        ({"quarantine": {"table": "sparkherd_fence"}}, "quarantine.table", "is a reserved name"),
        ({"quarantine": {"format": "delta"}}, "quarantine.options.path", "is required"),
        ({"quarantine": SQL}, "quarantine.format", "is the sink's own database"),
        (
            {"quarantine": ASIDE, "on_error": "quarantine"},
            "quarantine.format",
            "must be left out with on_error",
        ),
        (
            {"quarantine": {**ASIDE, "options": {**ASIDE["options"], "mode": "overwrite"}}},
            "quarantine.options.mode",
            "must be append",
        ),
        ({"quarantine": {"max_quarantined_ratio": 0}}, "quarantine.max_quarantined_ratio", "must be above 0"),
        (
            {"quarantine": {"max_quarantined_ratio": 1.5}},
            "quarantine.max_quarantined_ratio",
            "must be above 0",
        ),
        (
            {"quarantine": {"max_quarantined_per_batch": 0}},
            "quarantine.max_quarantined_per_batch",
            "expected",
        ),
        ({"on_error": "null"}, "on_error", "expected one of fail, quarantine"),
    ],
)
def test_a_place_that_cannot_keep_the_promise_is_refused(
    fields: dict[str, Any], path: str, message: str
) -> None:
    """With its place in the definition."""
    [(where, why)] = problems(**fields)
    assert (where, why[: len(message)]) == (path, message)


def test_an_entry_point_puts_nothing_aside() -> None:
    """What becomes of its rows it says itself."""
    told = problems(
        source=None, sink=None, entrypoint="a:b", on_error="quarantine", quarantine=ASIDE, expect=[BAD_IDS]
    )
    assert {path for path, _ in told} == {"expect", "on_error", "quarantine"}


def test_rows_of_one_stream_only_are_put_aside() -> None:
    """A batch of two has no rows of either; those that are joined to it may be any."""
    two = {"a": KAFKA, "b": KAFKA}
    told = problems(source=None, sources=two, sql="SELECT * FROM a", on_error="quarantine")
    assert [path for path, _ in told] == ["on_error"]
    joined = {"a": KAFKA, "b": {"format": "json", "static": True}}
    assert read(source=None, sources=joined, sql="SELECT * FROM a", on_error="quarantine")


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_only_new_rows_are_put_aside(mode: str) -> None:
    """What a batch changes of an earlier one is no row of its own."""
    delta = {**SQL, "options": {**SQL["options"], "mode": "upsert", "key": ["id"]}}
    sql = "SELECT id, count(*) AS n FROM source GROUP BY id"
    assert [path for path, _ in problems(sink=delta, sql=sql, output_mode=mode, on_error="quarantine")] == [
        "on_error"
    ]


@pytest.mark.parametrize(
    ("condition", "name"),
    [
        ("rand() < 0.5", "rand"),
        ("at < now ()", "now"),
        ("at < current_timestamp", "current_timestamp"),
        ("id = `uuid`()", "`uuid`"),
        ("id > 0 AND name = 'rand()'", None),
        ("rand > 0", None),
        ("", None),
    ],
)
def test_what_is_another_value_each_time_is_found(condition: str, name: str | None) -> None:
    """In whatever letters; not in texts, nor as the name of a column."""
    assert volatile_function(condition) == name


def test_elsewhere_sql_draws_no_numbers() -> None:
    """A row might be put aside, and not be when its batch is done again; an id of its own it may have."""
    drawn = {"quarantine": ASIDE, "expect": [BAD_IDS]}
    assert [path for path, _ in problems(**drawn, sql="SELECT id FROM source WHERE rand() < 0.5")] == ["sql"]
    assert read(**drawn, sql="SELECT id, uuid() AS row, now() AS at FROM source")
    assert read(expect=[BAD_IDS], sql="SELECT id FROM source WHERE rand() < 0.5")


def test_elsewhere_a_condition_has_to_come_out_the_same_again() -> None:
    """A batch that is done again has to put the same rows aside, and leave the same ones out."""
    by_chance = {"name": "luck", "where": "rand() < 0.5", "on_violation": "drop"}
    [(path, message)] = problems(quarantine=ASIDE, expect=[by_chance])
    assert (path, message[:10]) == ("expect[0].where", "calls rand")
    assert read(expect=[{**by_chance, "on_violation": "quarantine"}])
    assert read(quarantine=ASIDE, expect=[{**by_chance, "on_violation": "fail"}])
