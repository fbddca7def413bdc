from __future__ import annotations

import os

import pytest
from structlog.testing import capture_logs

from worker.spark.classic.java import parse_version
from worker.spark.classic.jvm import _pump, _tell, how_it_ended, log_configuration
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
    os.write(writer, b"".join(b"line %d \xff\n" % n for n in range(50)))
    os.close(writer)
    pump.join(120)
    assert len(lines) == 20
    assert lines[-1] == "line 49 �"


def test_how_a_process_ended() -> None:
    """In words."""
    assert how_it_ended(-9) == "the JVM was killed by signal 9"
    assert how_it_ended(3) == "the JVM ended with exit code 3"


def test_the_log_configuration_is_a_file_of_its_own() -> None:
    """So that two workers that start at once do not meet."""
    one, two = log_configuration(), log_configuration()
    assert one != two
    assert "rootLogger.level = warn" in one.read_text()
    one.unlink()
    two.unlink()


def test_where_checkpoints_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """GROUP/TASK below the root; a folder is the worker's own, whatever the JVM takes for its own."""
    folder = tmp_path_factory.mktemp("here")
    monkeypatch.chdir(folder)
    there = SparkSettings(app_name="a", checkpoint_root="s3a://bucket/cp/")
    here = SparkSettings(app_name="a", checkpoint_root="cp")
    assert there.checkpoint("g", "t") == "s3a://bucket/cp/g/t"
    assert here.checkpoint("g", "t") == f"{folder}/cp/g/t"
