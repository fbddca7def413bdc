from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from definition.check import check_definition
from definition.document import (
    MOST_BYTES,
    Definition,
    DefinitionError,
    Restart,
    Trigger,
    is_fenced,
    parse_definition,
)
from definition.sinks.sql import SqlOptions
from protocol.messages.tasks import Problem
from tests.unit.definition.documents import DECLARATIVE, ENTRYPOINT, problems_of, with_value, without

SQL = {"url": "sqlite:///out.db", "table": "t"}


def test_the_contracts_example_is_read_whole() -> None:
    """Protocol §6, word by word."""
    definition = parse_definition(json.dumps(DECLARATIVE).encode())
    assert definition.source is not None
    assert definition.source.options == {"path": "in", "maxFilesPerTrigger": 1}
    assert definition.sink is not None
    assert definition.sink.read_options() == SqlOptions(url="sqlite:///out.db", table="t")
    assert definition.trigger == Trigger(processing_time="1 second")
    assert definition.restart == Restart(max_restarts=5, window_ms=300_000)


def test_all_that_is_optional_has_the_contracts_default() -> None:
    """The shortest definitions there are."""
    assert parse_definition(b'{"entrypoint": "a:b"}') == Definition(entrypoint="a:b")
    definition = parse_definition(b'{"source": {"format": "rate"}, "sink": {"format": "console"}}')
    assert (definition.output_mode, definition.weight, definition.trigger) == ("append", 1.0, None)
    assert (definition.sql, definition.worker, definition.labels, definition.spark_conf) == (
        None,
        None,
        {},
        {},
    )


def test_an_entry_point_takes_options_of_any_shape() -> None:
    """They are the function's own business."""
    definition = parse_definition(msgspec.Raw(json.dumps(ENTRYPOINT)))
    assert definition.options == {"path": "in", "deep": [{}]}


def test_a_definition_read_back_from_its_own_json_is_the_same() -> None:
    """What the worker gets is what the manager checked."""
    definition = parse_definition(json.dumps(DECLARATIVE).encode())
    assert parse_definition(msgspec.json.encode(definition)) == definition


TEXT, NUMBER, OBJECT = "expected str", "expected int", "expected object"


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("source", 5, ("source", "expected object | null, got int")),
        ("source/format", "", ("source.format", "must not be empty")),
        ("source/format", None, ("source.format", "is required, unless there is a table")),
        ("source/schema", "  ", ("source.schema", "must not be empty")),
        (
            "source/options/path",
            ["in"],
            ("source.options.path", "expected bool | int | float | str, got array"),
        ),
        (
            "source/options/a b",
            None,
            ('source.options["a b"]', "expected bool | int | float | str, got null"),
        ),
        ("source/scheme", "a INT", ("source.scheme", "unknown key; did you mean schema?")),
        ("sql", 3, ("sql", "expected str | null, got int")),
        ("sql", " ", ("sql", "must not be empty")),
        ("sink", None, ("sink", "is required with source")),
        ("sink/format", 1, ("sink.format", "expected str | null, got int")),
        ("sink/options", [], ("sink.options", "expected object, got array")),
        ("sink/options/url", 7, ("sink.options.url", "expected str, got int")),
        ("sink/options/table", "a b", ("sink.options.table", "must be a letter or _ and then letters,")),
        ("sink/options/table", "t" * 64, ("sink.options.table", "must be a letter or _ and then letters,")),
        ("sink/options/table", "1t", ("sink.options.table", "must be a letter or _ and then letters,")),
        ("sink/options/table", "Sparkherd_Fence", ("sink.options.table", "is a reserved name")),
        ("sink/options/table", "sqlite_master", ("sink.options.table", "is a reserved name")),
        (
            "sink/options/table",
            "herd.t",
            ("sink.options.table", "has a schema before it, and SQLite has none"),
        ),
        (
            "sink/options/table",
            "temp.t",
            ("sink.options.table", "has a schema before it, and SQLite has none"),
        ),
        ("sink/options/table", '"a" b', ("sink.options.table", "must be a letter or _ and then letters,")),
        ("sink/options/table", '"a', ("sink.options.table", "must be a letter or _ and then letters,")),
        ("sink/options/table", '""', ("sink.options.table", "must be a letter or _ and then letters,")),
        ("sink/options/table", '"a\0"', ("sink.options.table", "must be a letter or _ and then letters,")),
        ("sink/options/table", "a.", ("sink.options.table", "must be a letter or _ and then letters,")),
        ("sink/options/table", ".a", ("sink.options.table", "must be a letter or _ and then letters,")),
        ("sink/options/table", "a.b.c", ("sink.options.table", "must be a letter or _ and then letters,")),
        (
            "sink/options/table",
            f'"{"ü" * 32}"',
            ("sink.options.table", "must be a letter or _ and then lette"),
        ),
        ("sink/options/table", '"sparkherd_stage_x"', ("sink.options.table", "is a reserved name")),
        ("sink/options/table", "herd.sparkherd_fence", ("sink.options.table", "is a reserved name")),
        ("sink/options/table", "pg_temp.t", ("sink.options.table", "is a reserved name")),
        ("sink/options/table", "Information_Schema.t", ("sink.options.table", "is a reserved name")),
        ("sink/options/mode", "merge", ("sink.options.mode", "expected one of append, upsert")),
        ("sink/options/mode", "upsert", ("sink.options.key", "is required with mode upsert: the columns")),
        ("sink/options/key", ["a"], ("sink.options.key", "goes with mode upsert only")),
        ("sink/options/key", "a", ("sink.options.key", "expected array, got str")),
        ("sink/options/key", [5], ("sink.options.key[0]", "expected str, got int")),
        ("sink/options/tabel", "t", ("sink.options.tabel", "unknown key; did you mean table?")),
        ("output_mode", "delta", ("output_mode", "expected one of append, update, complete")),
        ("output_mode", None, ("output_mode", "expected one of append, update, complete")),
        ("trigger", {}, ("trigger", "must have processing_time or available_now: true")),
        (
            "trigger",
            {"available_now": False},
            ("trigger", "must have processing_time or available_now: true"),
        ),
        ("trigger/available_now", True, ("trigger.available_now", "cannot stand beside processing_time")),
        ("trigger/available_now", "yes", ("trigger.available_now", "expected bool, got str")),
        ("trigger/processing_time", "1 month", ("trigger.processing_time", "must not have years or months")),
        ("trigger/processing_time", 1000, ("trigger.processing_time", "expected str | null, got int")),
        ("trigger/once", True, ("trigger.once", "unknown key; known are processing_time, available_now")),
        ("weight", 0, ("weight", "must be a finite number above 0")),
        ("weight", -1.5, ("weight", "must be a finite number above 0")),
        ("weight", "1", ("weight", "expected float, got str")),
        ("weight", True, ("weight", "expected float, got bool")),
        ("worker", "", ("worker", "must not be empty")),
        ("labels", [], ("labels", "expected object, got array")),
        ("labels/gpu", 1, ("labels.gpu", "expected str, got int")),
        ("spark_conf/spark.sql.x", 4, ('spark_conf["spark.sql.x"]', "expected str, got int")),
        ("restart/max_restarts", -1, ("restart.max_restarts", "expected int >= 0")),
        ("restart/max_restarts", 1.5, ("restart.max_restarts", "expected int, got float")),
        ("restart/window_ms", 0, ("restart.window_ms", "expected int >= 1")),
        ("restart", None, ("restart", "expected object, got null")),
        ("entrypoint", "a:b", ("entrypoint", "cannot stand beside source: a task has one or the other")),
        ("options", {"a": 1}, ("options", "goes with entrypoint; those of a source are source.options")),
        ("fenced", True, ("fenced", "goes with entrypoint; whether a sink is fenced its format says")),
        ("fenced", 1, ("fenced", "expected bool, got int")),
        ("exclusive", "yes", ("exclusive", "expected bool, got str")),
        ("limits", {"batch_s": 0}, ("limits.batch_s", "must be a finite number above 0")),
        ("limits", {"state_mb": "1g"}, ("limits.state_mb", "expected")),
        ("limits", {"state_rows": {"max": -1}}, ("limits.state_rows.max", "must be a finite number above 0")),
        ("limits", {"state_rows": {"action": "warn"}}, ("limits.state_rows.max", "is required")),
        ("limits", {"batch_rows": {"max": 1, "action": "stop"}}, ("limits.batch_rows.action", "")),
        (
            "limits",
            {"batch_rows": {"max": 1, "action": "fail"}},
            ("limits.batch_rows.action", "expected one of warn, restart, quarantine"),
        ),
        ("limits", {"heap_mb": 0}, ("limits.heap_mb", "must be a finite number above 0")),
        (
            "limits",
            {"disk": 1},
            ("limits.disk", "unknown key; known are batch_s, batch_rows, state_rows, state"),
        ),
        ("scheduling", {"weight": 0}, ("scheduling.weight", "expected int >= 1")),
        ("scheduling", {"weight": 1.5}, ("scheduling.weight", "expected int, got float")),
        ("scheduling", {"min_share": -1}, ("scheduling.min_share", "expected int >= 0")),
        ("scheduling", {"minShare": 1}, ("scheduling.minShare", "unknown key; did you mean min_share?")),
        ("memory", {"heap_mb": 511}, ("memory.heap_mb", "expected int >= 512")),
        ("memory", {"python_mb": 1}, ("memory.python_mb", "expected int >= 128")),
        ("memory", {"heap": 1024}, ("memory.heap", "unknown key; did you mean heap_mb?")),
        ("triger", None, ("triger", "unknown key; did you mean trigger?")),
    ],
)
def test_one_wrong_value_is_one_problem_with_its_path(
    path: str, value: Any, problem: tuple[str, str]
) -> None:
    """And nothing else is blamed."""
    ((where, message),) = problems_of(with_value(path, value))
    assert where == problem[0]
    assert message.startswith(problem[1])


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (b"{}", ("source", "is required, unless there is an entrypoint")),
        (b"[]", ("", "expected object, got array")),
        (b"{", ("", "is not JSON: Input data was truncated")),
        (b'"\xff"', ("", "is not JSON: 'utf-8' codec can't decode byte 0xff")),
        (b"[" * 100_000, ("", "is not JSON: maximum recursion depth exceeded")),
        (b'{"entrypoint": "a:b", "weight": 1e400}', ("", "is not JSON: Number out of range")),
        (b'{"entrypoint": "a:b", "sql": "SELECT 1"}', ("sql", "goes with source: it reads the view")),
        (b'{"source": {"format": "rate"}, "sink": {"format": "sql"}}', ("sink.options.url", "is required")),
    ],
)
def test_a_document_that_is_wrong_as_a_whole(document: bytes, problem: tuple[str, str]) -> None:
    """Where there is no single value to blame, the place is the root or what is missing."""
    where, message = problems_of(document)[0]
    assert where == problem[0]
    assert message.startswith(problem[1])


@pytest.mark.parametrize(
    ("limit", "memory", "path"),
    [
        (1024, {"heap_mb": 1024}, "limits.heap_mb"),
        ({"max": 2000, "action": "restart"}, {"heap_mb": 1024}, "limits.heap_mb.max"),
    ],
)
def test_the_limit_of_the_heap_is_below_the_heap(limit: Any, memory: Any, path: str) -> None:
    """A task that its JVM ends with first would never come to it."""
    document = with_value("limits", {"heap_mb": limit}, DECLARATIVE | {"memory": memory})
    wrong = "must be below memory.heap_mb (1024), at which the task's JVM ends"
    assert problems_of(document) == [(path, wrong)]


@pytest.mark.parametrize("memory", [{"heap_mb": 1024}, {"python_mb": 300}, None])
def test_below_its_heap_a_task_may_have_any_limit(memory: Any) -> None:
    """What the worker's heap is without `memory.heap_mb` nobody knows before it runs there."""
    document = DECLARATIVE | {
        "memory": memory,
        "limits": {"heap_mb": {"max": 1023.5, "action": "quarantine"}},
    }
    assert parse_definition(json.dumps(document).encode()).limits is not None


def test_what_cannot_be_read_is_compared_with_nothing() -> None:
    """Each value that is wrong by itself is told, and no more."""
    document = with_value("limits", {"heap_mb": {"max": "2g"}}, DECLARATIVE | {"memory": {"heap_mb": 1}})
    assert [path for path, _ in problems_of(document)] == ["memory.heap_mb", "limits.heap_mb.max"]


@pytest.mark.parametrize(
    "entrypoint", ["", "a", "a.b", ":b", "a:", "a:b:c", "a.:b", "1a:b", "a:b()", "a b:c", "a:b\n", "../a:b"]
)
def test_an_entry_point_is_a_module_and_a_function(entrypoint: str) -> None:
    """Nothing else could be imported."""
    document = with_value("entrypoint", entrypoint, ENTRYPOINT)
    assert problems_of(document) == [("entrypoint", "is not of the form package.module:function")]


def test_a_source_spark_does_not_know_is_left_to_the_worker() -> None:
    """Which formats there are depends on the jars of its session."""
    definition = parse_definition(with_value("source/format", "no.such.Format"))
    assert definition.source is not None
    assert definition.source.format == "no.such.Format"


def test_all_problems_are_told_at_once() -> None:
    """Wrong leaves hide neither each other nor what is wrong between fields."""
    document = {
        "source": {"format": 1, "extra": 2},
        "entrypoint": "nonsense",
        "sink": {"format": "sql", "options": {"mode": "upsert", "key": ["a", "A"], "url": "x"}},
        "trigger": {"processing_time": "never", "available_now": True},
        "weight": "heavy",
        "typo": 1,
    }
    assert sorted(where for where, _ in problems_of(json.dumps(document).encode())) == [
        "entrypoint",
        "entrypoint",
        "sink.options.key",
        "sink.options.table",
        "sink.options.url",
        "source.extra",
        "source.format",
        "trigger.available_now",
        "trigger.processing_time",
        "typo",
        "weight",
    ]


def test_every_problem_is_one_line() -> None:
    """Whatever the keys are made of."""
    problems = problems_of(with_value("labels/a\nb", 1))
    assert problems == [('labels["a\\nb"]', "expected str, got int")]


def test_the_error_reads_as_one_line_too() -> None:
    """For logs and for a worker that is given what its manager would not have taken."""
    with pytest.raises(DefinitionError, match=r"^output_mode: expected one of .*; weight: must be a finite"):
        parse_definition(b'{"entrypoint": "a:b", "output_mode": 1, "weight": 0}')


@pytest.mark.parametrize(
    ("path", "value"),
    [("weight", 2), ("worker", "rack-7"), ("labels", {"gpu": "yes"}), ("restart", {"max_restarts": 0})],
)
def test_what_concerns_the_assignor_only_needs_no_restart(path: str, value: Any) -> None:
    """The query runs on."""
    changed = parse_definition(with_value(path, value))
    assert changed.runs_like(parse_definition(with_value("weight", 1)))


def test_what_an_entry_point_says_of_a_fence_needs_no_restart() -> None:
    """It says how long others wait for its owner, and changes nothing of the query."""
    fenced = parse_definition(b'{"entrypoint": "a:b", "fenced": true}')
    unfenced = parse_definition(b'{"entrypoint": "a:b", "fenced": false}')
    assert (fenced.is_fenced, unfenced.is_fenced) == (True, False)
    assert fenced.runs_like(unfenced)
    assert unfenced.runs_like(fenced)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("sql", "SELECT a FROM source"),
        ("source/options/maxFilesPerTrigger", 2),
        ("source/options/maxFilesPerTrigger", True),
        ("sink/options/table", "u"),
        ("trigger", {"available_now": True}),
        ("output_mode", "update"),
        ("spark_conf", {"spark.sql.shuffle.partitions": "2"}),
    ],
)
def test_what_concerns_the_query_restarts_it(path: str, value: Any) -> None:
    """Also where Python finds two values equal that Spark does not, such as 1 and true."""
    changed = parse_definition(with_value(path, value))
    assert not changed.runs_like(parse_definition(with_value("weight", 1)))


def test_the_order_of_keys_is_no_change() -> None:
    """An object is the same whichever way round it is written."""
    options = DECLARATIVE["source"]["options"]
    turned = parse_definition(with_value("source/options", dict(reversed(options.items()))))
    assert turned.runs_like(parse_definition(with_value("weight", 1)))


def test_the_whole_check_includes_the_sql() -> None:
    """Shape and SQL are told together, and a good definition is returned."""
    good = json.dumps(DECLARATIVE).encode()
    assert check_definition(good) == parse_definition(good)
    assert check_definition(with_value("sql", "SELEC a FROM source")) == (
        Problem("sql", "begins with SELEC, as no statement does; did you mean SELECT?"),
    )
    both = check_definition(with_value("weight", 0, without("sink") | {"sql": "SELECT a b c FROM source"}))
    assert isinstance(both, tuple)
    assert [problem.path for problem in both] == ["weight", "sink", "sql"]


@pytest.mark.parametrize("document", [b"{", b"[]", b'"\xff"', b'{"sql": 5}', b'{"sql": " "}', b"[" * 100_000])
def test_the_whole_check_tells_a_problem_of_the_sql_once(document: bytes) -> None:
    """Whatever cannot be read is told once, not for each part of the check."""
    problems = check_definition(document)
    assert isinstance(problems, tuple)
    assert len({problem.path for problem in problems}) == len(problems) > 0


def test_a_definition_has_a_size_beyond_which_it_is_not_read() -> None:
    """It is refused for that alone; what was created when there was no such limit is still understood."""
    small = json.dumps(DECLARATIVE).encode()
    filled = small + b" " * (MOST_BYTES - len(small))
    assert isinstance(check_definition(filled), Definition)
    assert check_definition(b"?" * (MOST_BYTES + 1)) == (Problem("", f"is larger than {MOST_BYTES} bytes"),)
    assert parse_definition(filled + b" ") == parse_definition(small)


@pytest.mark.parametrize(
    ("document", "fenced"),
    [
        ({"source": {"format": "rate"}, "sink": {"format": "noop"}}, False),
        (
            {"source": {"format": "rate"}, "sink": {"format": "delta_unfenced", "options": {"path": "/x"}}},
            False,
        ),
        ({"source": {"format": "rate"}, "sink": {"format": "delta", "options": {"path": "/x"}}}, True),
        ({"source": {"format": "rate"}, "sink": {"format": "fenced_files", "options": {"path": "/x"}}}, True),
        ({"source": {"format": "rate"}, "sink": {"format": "sql", "options": SQL}}, True),
        ({"entrypoint": "a:b"}, False),
        ({"entrypoint": "a:b", "sink": {"format": "sql", "options": SQL}}, False),
        ({"entrypoint": "a:b", "fenced": True}, True),
        ({"entrypoint": "a:b", "fenced": False}, False),
    ],
)
def test_what_has_a_fence(document: dict[str, Any], *, fenced: bool) -> None:
    """By the sink's format, or by the word of an entry point's author; both ways of reading it agree."""
    text = json.dumps(document).encode()
    assert parse_definition(text).is_fenced is fenced
    assert is_fenced(text) is fenced
