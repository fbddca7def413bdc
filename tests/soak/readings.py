"""What processes and folders have come to, by the kernel and by `jcmd`."""

from __future__ import annotations

import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

JCMD_S: Final = 120.0
CLASSES: Final = {
    "queries": r"\.MicroBatchExecution",
    "sessions": r"org\.apache\.spark\.sql\.classic\.SparkSession",
    "gateway_threads": r"py4j\.ClientServerConnection",
}
"""What a JVM may keep too many of, by names of classes (the end of one is enough)."""


class ProcessReading(NamedTuple):
    """A process now: bytes of memory that is its own, threads, open files."""

    memory: int
    threads: int
    files: int


@dataclass(frozen=True)
class HeapReading:
    """What lives in a JVM's heap, after a collection: bytes, and how many there are of some classes."""

    live: int
    counts: Mapping[str, int]


def process_reading(pid: int) -> ProcessReading | None:
    """None if it is over."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text()
        files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        memory = 1024 * (_number(status, "RssAnon") + _number(status, "RssShmem"))
        return ProcessReading(memory, _number(status, "Threads"), files)
    return None


def heap_reading(jvm: int) -> HeapReading:
    """Has the JVM collect all garbage first, which takes it a second."""
    told = subprocess.run(
        ["jcmd", str(jvm), "GC.class_histogram"],
        capture_output=True,
        text=True,
        timeout=JCMD_S,
        check=True,
    ).stdout
    return heap_reading_of(told)


def heap_reading_of(histogram: str) -> HeapReading:
    """Of what `jcmd PID GC.class_histogram` prints."""
    rows = re.findall(r"^ *\d+: +(\d+) +(\d+) +(\S+)", histogram, re.MULTILINE)
    return HeapReading(
        sum(int(size) for _, size, _ in rows),
        {
            name: sum(int(count) for count, _, each in rows if re.search(rf"{pattern}$", each))
            for name, pattern in CLASSES.items()
        },
    )


def descendants(pid: int) -> list[int]:
    """All that a process has started, and they; each thread of a process has children of its own."""
    with suppress(OSError):
        lists = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
        return [each for child in map(int, chain(*lists)) for each in (child, *descendants(child))]
    return []


def named(pids: Iterable[int], name: str) -> list[int]:
    """Those whose command's name begins so."""
    return [pid for pid in pids if _command(pid).startswith(name)]


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def entries(folder: Path) -> int:
    """Files and folders anywhere in it; what goes meanwhile may be counted or not."""
    return sum(1 for _ in folder.rglob("*")) if folder.exists() else 0


def _number(status: str, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+)", status, re.MULTILINE)
    return int(found[1]) if found else 0
