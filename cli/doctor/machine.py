"""Python, Java and memory of this machine."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cli.doctor.finding import ok, problem, skipped, warning
from definition.memory import Memory
from worker.isolation.memory import HEAP, with_memory

if TYPE_CHECKING:
    from cli.doctor.finding import Finding, Settings

OLDEST_PYTHON: Final = (3, 11)
OLDEST_JAVA: Final = 17
VECTORS: Final = "jdk.incubator.vector"
"""A module that Spark's launcher asks every JVM for; small Java runtimes leave it out."""
INSTALL_JAVA: Final = (
    "install Java 17 or newer (Debian, Ubuntu: apt-get install openjdk-17-jre-headless),"
    " or point JAVA_HOME to one"
)
JAVA_S: Final = 10.0
"""How long a JVM may take to say its version, in seconds; a quarter of one on an idle machine."""
LESS: Final = "--spark-conf spark.driver.memory=..."
LESS_FOR_TASKS: Final = f"{LESS}, --isolate-memory-mb"
OTHERWISE: Final = 400 * 2**20
"""Bytes that a worker takes besides the heap of its JVM: the JVM's own, and Python."""
MEMINFO: Final = Path("/proc/meminfo")
CGROUP: Final = Path("/sys/fs/cgroup")

_SIZE = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)
_SHIFTS = {"k": 10, "": 20, "m": 20, "g": 30, "t": 40}


def python(_: Settings) -> Finding:
    """The one that runs this: a worker's own code has to be installed for it."""
    found = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info[:2] < OLDEST_PYTHON:
        return problem(found, "install Python 3.11 or newer")
    return ok(found)


def java(settings: Settings) -> Finding:
    """The one that Spark's launcher would take: of JAVA_HOME, else the first on the PATH."""
    if settings.spark_remote is not None:
        return skipped("the Spark Connect server has its own")
    home = os.environ.get("JAVA_HOME")
    command = f"{home}/bin/java" if home else "java"
    try:
        return _version(command)
    except OSError as error:
        return problem(f"{command}: {error.strerror}", INSTALL_JAVA)
    except subprocess.TimeoutExpired:
        return problem(f"{command} does not say its version within {JAVA_S:g} s", INSTALL_JAVA)


def _version(command: str) -> Finding:
    version = re.search(r'version "(?:1\.)?(\d+)[^"]*"', _run(command, "-version").stderr)
    if version is None:
        return problem(f"{command} does not say its version", INSTALL_JAVA)
    if int(version[1]) < OLDEST_JAVA:
        return problem(f"{version[0]}, {command}; Spark needs {OLDEST_JAVA}", INSTALL_JAVA)
    if _run(command, f"--add-modules={VECTORS}", "-version").returncode:
        return problem(f"{version[0]}, {command}, without the module {VECTORS}", INSTALL_JAVA)
    return ok(f"{version[0]}, {command}")


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - what Spark would run, too
        command, capture_output=True, text=True, timeout=JAVA_S, check=False, stdin=subprocess.DEVNULL
    )


def memory(settings: Settings) -> Finding:
    """Whether the worker's JVM and Python have room, on the machine and in its control group.

    With a JVM for each task, whether one task has room beside it: how many there will be is not known here.
    """
    heaps = _heaps(settings)
    sizes = {heap: _size(heap) for heap in heaps}
    if bad := next((heap for heap, size in sizes.items() if size is None), None):
        return problem(f"spark.driver.memory={bad} is no size", "write it as 768m or 2g")
    worker, *task = [OTHERWISE + (sizes[heap] or 0) for heap in heaps] or [OTHERWISE]
    total, free = _room(MEMINFO, CGROUP)
    if total is None or free is None:
        return skipped("this system does not tell")
    found = f"{_gib(free)} GiB free of {_gib(total)}; a worker takes up to {_gib(worker)}"
    found += "".join(f", and each task up to {_gib(each)}" for each in task)
    less = f"give workers less ({LESS_FOR_TASKS if task else LESS})"
    wanted = worker + sum(task)
    if total < wanted:
        return problem(found, f"{less}, or the machine or container more")
    return ok(found) if free >= wanted else warning(found, f"{less}, or end something else")


def _heaps(settings: Settings) -> list[str]:
    """The one of the worker's own JVM, if it has one, and the one of a task's, if that has one."""
    if settings.spark_remote is not None:
        return []
    worker = settings.spark_conf.get(HEAP, "1g")
    if not settings.isolate:
        return [worker]
    return [worker, with_memory(settings.spark_conf, Memory(heap_mb=settings.isolate_memory_mb))[HEAP]]


def _size(heap: str) -> int | None:
    size = _SIZE.fullmatch(heap)
    return None if size is None else int(size[1]) << _SHIFTS[size[2].lower()]


def _room(meminfo: Path, cgroup: Path) -> tuple[int | None, int | None]:
    """Bytes in all and free, by the narrower of machine and control group; None where nobody tells."""
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        total, free = (int(lines[key].split()[0]) << 10 for key in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, ValueError):
        return None, None
    try:
        limit = int((cgroup / "memory.max").read_text())  # `max` without a limit
        used = int((cgroup / "memory.current").read_text())
    except (OSError, ValueError):
        return total, free
    return min(total, limit), min(free, max(limit - used, 0))


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f}"
