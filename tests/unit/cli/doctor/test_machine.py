"""Python, Java and memory, with Javas and machines that a test makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cli.doctor import machine
from cli.doctor.finding import Settings, Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.doctor.finding import Finding

GIB = 2**20
"""In KiB, as /proc/meminfo counts."""


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Finding]:
    """What the check says of a `java` that is this shell script."""

    def look(script: str) -> Finding:
        command = tmp_path / "bin" / "java"
        command.parent.mkdir()
        command.write_text(f"#!/bin/sh\n{script}\n")
        command.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        return machine.java(Settings())

    return look


@pytest.mark.parametrize(
    ("script", "status", "found"),
    [
        ("""echo 'openjdk version "17.0.15" 2025-04-15' >&2""", Status.OK, 'version "17.0.15"'),
        ("""echo 'java version "1.8.0_292"' >&2""", Status.PROBLEM, 'version "1.8.0_292"'),
        ("""echo 'openjdk version "11.0.2"' >&2""", Status.PROBLEM, "Spark needs 17"),
        ("echo moo", Status.PROBLEM, "does not say its version"),
        (
            """case $1 in --add*) exit 1;; esac; echo 'openjdk version "21"' >&2""",
            Status.PROBLEM,
            "without the module jdk.incubator.vector",
        ),
    ],
)
def test_java_is_asked(java: Callable[[str], Finding], script: str, status: Status, found: str) -> None:
    """Its version, and the module that Spark asks for."""
    finding = java(script)
    assert finding.status is status
    assert found in finding.found
    assert ("apt-get install openjdk-17" in finding.to_do) is (status is Status.PROBLEM)


def test_a_java_that_hangs_is_given_up(
    java: Callable[[str], Finding], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the limit of a single call."""
    monkeypatch.setattr(machine, "JAVA_S", 0.05)
    assert "does not say its version within 0.05 s" in java("exec tail -f /dev/null").found


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither in JAVA_HOME nor, without it, on the PATH."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert machine.java(Settings()).found == f"{tmp_path}/bin/java: No such file or directory"
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.java(Settings()).status is Status.PROBLEM


def test_spark_connect_needs_no_java_here() -> None:
    """Nor is it looked for."""
    assert machine.java(Settings(spark_remote="sc://there")).status is Status.SKIPPED


def room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, total: float, free: float) -> None:
    """A machine of so many GiB."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(
        f"MemTotal: {int(total * GIB)} kB\nMemFree: 1 kB\nMemAvailable: {int(free * GIB)} kB\n"
    )
    monkeypatch.setattr(machine, "MEMINFO", meminfo)
    monkeypatch.setattr(machine, "CGROUP", tmp_path)


@pytest.mark.parametrize(
    ("gib", "heap", "status"),
    [
        ((8, 4), "1g", Status.OK),
        ((8, 1), "1g", Status.WARNING),
        ((1, 1), "1g", Status.PROBLEM),
        ((8, 2), "4g", Status.WARNING),
        ((8, 8), "8G", Status.PROBLEM),
        ((2, 1), "512m", Status.OK),
        ((2, 2), "lots", Status.PROBLEM),
    ],
)
def test_memory_for_the_heap_and_what_comes_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gib: tuple[float, float], heap: str, status: Status
) -> None:
    """So many GiB in all, and free."""
    room(monkeypatch, tmp_path, *gib)
    assert machine.memory(Settings(spark_conf={"spark.driver.memory": heap})).status is status


@pytest.mark.parametrize(
    ("free", "given", "status", "said"),
    [
        (4.0, {}, Status.OK, "a worker takes up to 1.4, and each task up to 0.9"),
        (2.0, {}, Status.WARNING, "each task up to 0.9"),
        (4.0, {"isolate_memory_mb": 3072}, Status.WARNING, "each task up to 3.4"),
        (4.0, {"spark_conf": {"spark.driver.memory": "lots"}}, Status.PROBLEM, "lots is no size"),
    ],
)
def test_with_a_jvm_for_each_task_one_has_room_beside_the_worker(
    *,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    free: float,
    given: dict[str, Any],
    status: Status,
    said: str,
) -> None:
    """How many there will be is not known before."""
    room(monkeypatch, tmp_path, 64, free)
    finding = machine.memory(Settings(isolate=True, **given))
    assert finding.status is status
    assert said in finding.found


def test_a_container_s_limit_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where it is the narrower one."""
    room(monkeypatch, tmp_path, 64, 60)
    (tmp_path / "memory.max").write_text(f"{2 << 30}\n")
    (tmp_path / "memory.current").write_text(f"{1 << 30}\n")
    finding = machine.memory(Settings())
    assert finding.status is Status.WARNING
    assert finding.found.startswith("1.0 GiB free of 2.0")


def test_without_a_limit_the_machine_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A control group says `max` then; without /proc, nobody says anything."""
    room(monkeypatch, tmp_path, 64, 60)
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.memory(Settings()).found.startswith("60.0 GiB free of 64.0")
    monkeypatch.setattr(machine, "MEMINFO", tmp_path / "none")
    assert machine.memory(Settings()).status is Status.SKIPPED


def test_python_is_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is too old is told so."""
    assert machine.python(Settings()).status is Status.OK
    monkeypatch.setattr("sys.version_info", (3, 10, 2))
    assert machine.python(Settings()).status is Status.PROBLEM
