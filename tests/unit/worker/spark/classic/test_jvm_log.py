from __future__ import annotations

import os

import pytest
from structlog.testing import capture_logs

from protocol.messages.membership import EngineEnd
from worker.query_engine import EngineDeath
from worker.spark.classic.java import parse_version
from worker.spark.classic.jvm import (
    _LONGEST_LINE,
    _REMEMBERED_LINES,
    _SHOWN_LINES,
    _pump,
    _tell,
    how_it_ended,
    hung,
    log_configuration,
    why_not_ready,
)
from worker.spark.settings import SparkSettings


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("command not found", None),
    ],
)
def test_versions_of_java(answer: str, version: int | None) -> None:
    """Old ones counted from 1."""
    assert parse_version(answer) == version


def test_what_spark_says_becomes_one_event_a_line() -> None:
    """With its level and its logger; what is not in that form is for the curious."""
    with capture_logs() as logs:
        _tell("spark|WARN|TaskSetManager|Lost task 0.0 | in stage 1")
        _tell("spark|ERROR|Utils|Aborting task ")
        _tell("WARNING: Using incubator modules")
        _tell("")
    assert logs == [
        {"log_level": "warning", "logger": "TaskSetManager", "event": "Lost task 0.0 | in stage 1"},
        {"log_level": "error", "logger": "Utils", "event": "Aborting task"},
        {"log_level": "debug", "event": "WARNING: Using incubator modules"},
    ]


def test_the_last_lines_are_kept() -> None:
    """For the moment in which the JVM dies before it is up; a broken character is no reason to stop."""
    reader, writer = os.pipe()
    lines, pump = _pump(reader)
    os.write(writer, b"".join(b"line %d \xff\n" % n for n in range(_REMEMBERED_LINES + 30)))
    os.close(writer)
    pump.join(120)
    assert len(lines) == _REMEMBERED_LINES
    assert lines[-1] == f"line {_REMEMBERED_LINES + 29} �"
    told = why_not_ready(list(lines)).splitlines()
    assert (len(told), told[-1]) == (_SHOWN_LINES + 1, lines[-1])


def test_of_a_line_without_end_the_first_part_is_told() -> None:
    """Whoever prints such a one fills no memory of the worker's, but that of the lines that are kept."""
    reader, writer = os.pipe()
    lines, pump = _pump(reader)
    part = b"x" * _LONGEST_LINE
    for _ in range(3):
        os.write(writer, part)
    os.close(writer)
    pump.join(120)
    assert [len(line) for line in lines] == [_LONGEST_LINE]


def test_how_a_process_ended() -> None:
    """In words, and whether what ran in it may be to blame."""
    assert how_it_ended(-9) == EngineDeath("the JVM was killed by signal 9", EngineEnd.KILLED)
    assert how_it_ended(-11) == EngineDeath("the JVM was killed by signal 11", EngineEnd.EXITED)
    assert how_it_ended(143) == EngineDeath("the JVM ended with exit code 143", EngineEnd.KILLED)
    assert how_it_ended(1) == EngineDeath("the JVM ended with exit code 1", EngineEnd.EXITED)
    assert how_it_ended(3).how.startswith("the JVM ended with exit code 3: perhaps it was out of memory")
    assert (how_it_ended(3).end, hung(1.0).end) == (EngineEnd.EXITED, EngineEnd.LOST)


def test_the_log_configuration() -> None:
    """Warnings are for the worker's log."""
    assert "rootLogger.level = warn" in log_configuration()


def test_where_checkpoints_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """GROUP/TASK below the root; a folder is the worker's own, whatever the JVM takes for its own."""
    folder = tmp_path_factory.mktemp("here")
    monkeypatch.chdir(folder)
    there = SparkSettings(app_name="a", checkpoint_root="s3a://bucket/cp/")
    here = SparkSettings(app_name="a", checkpoint_root="cp")
    assert there.checkpoint("g", "t") == "s3a://bucket/cp/g/t"
    assert SparkSettings(app_name="a", checkpoint_root="file:/cp").checkpoint("g", "t") == "file:/cp/g/t"
    assert here.checkpoint("g", "t") == f"{folder}/cp/g/t"
