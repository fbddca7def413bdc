"""What a worker's own Spark takes of its machine, by files and texts like the system's and Java's."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest

from protocol.messages.base import MAX_INT
from worker.spark.classic.checkpoint_disk import CheckpointDisk
from worker.spark.classic.jvm_memory import JvmBeans, JvmMemory, usage_of, used_in
from worker.spark.classic.python_processes import Processes, python_below

if TYPE_CHECKING:
    from pathlib import Path

HEAP = "init = 396361728(387072K) used = 243720704(238008K) committed = 442499072(432128K) max = {}({}K)"
AFTER_GC = (
    "{G1 Survivor Space=init = 0(0K) used = 8388608(8192K) committed = 8388608(8192K) max = -1(-1K), "
    "CodeHeap 'profiled nmethods'=init = 2555904(2496K) used = 25653632(25052K) committed = 25821184(25216K) "
    "max = 50331648(49152K), G1 Old Gen=init = 376438784(367616K) used = 167174656(163256K) committed = "
    "223346688(218112K) max = 1073741824(1048576K), G1 Eden Space=init = 19922944(19456K) used = 0(0K) "
    "committed = 210763776(205824K) max = -1(-1K)}"
)
"""As Java 17 writes it."""
POOLS = {"G1 Survivor Space", "G1 Old Gen", "G1 Eden Space"}


def test_what_a_heap_has_and_may_have() -> None:
    """Java says -1 where there is no bound."""
    assert usage_of(HEAP.format(1073741824, 1048576)) == (243720704, 1073741824)
    assert usage_of(HEAP.format(-1, -1)) == (243720704, None)
    with pytest.raises(ValueError, match="no memory usage"):
        usage_of("unknown")


def test_what_was_in_use_after_a_collection_is_that_of_the_heap() -> None:
    """The map has what is beside it, too."""
    assert used_in(AFTER_GC, POOLS) == 8388608 + 167174656


class Collector:
    """A bean of Java's: so much time in all, and when its last collection ended, if there was one."""

    def __init__(self, took_ms: int, ended: int | None, text: str = "{}") -> None:
        self.took_ms = took_ms
        self._ended = ended
        self._text = text

    def getCollectionTime(self) -> int:  # noqa: N802 - Java's
        return self.took_ms

    def getLastGcInfo(self) -> Any:  # noqa: N802 - Java's
        if self._ended is None:
            return None
        after = SimpleNamespace(toString=lambda: self._text)
        return SimpleNamespace(getEndTime=lambda: self._ended, getMemoryUsageAfterGc=lambda: after)


def beans(
    *collectors: Collector, now: Any = lambda: 0.0, live: int = 167174656, pools: set[str] = POOLS
) -> JvmBeans:
    """Of a JVM with these."""
    jvm: Any = MagicMock()
    factory = jvm.java.lang.management.ManagementFactory
    factory.getMemoryMXBean.return_value.getHeapMemoryUsage.return_value.toString.return_value = HEAP.format(
        1073741824, 1048576
    )
    factory.getGarbageCollectorMXBeans.return_value = collectors
    factory.getMemoryPoolMXBeans.return_value = [
        SimpleNamespace(
            getName=lambda name=name: name,
            getType=lambda: SimpleNamespace(toString=lambda: "Heap memory"),
            getCollectionUsage=lambda: SimpleNamespace(getUsed=lambda: live),
        )
        for name in sorted(pools)
    ]
    factory.getPlatformMXBeans.return_value = [
        SimpleNamespace(getName=lambda: "mapped", getMemoryUsed=lambda: 7),
        SimpleNamespace(getName=lambda: "direct", getMemoryUsed=lambda: 4096),
    ]
    return JvmBeans(jvm, now)


def test_a_look_at_a_jvm() -> None:
    """The last collection is that of whichever collector; one that has done none yet says nothing."""
    young, old = Collector(1500, 2000, AFTER_GC), Collector(500, 1000)
    look = beans(old, young, Collector(0, None)).look()
    assert look == JvmMemory(243720704, 1073741824, 175563264, 167174656, 2000, None, 4096)
    assert beans(Collector(0, None)).look().after_gc_bytes is None


def test_before_a_collection_of_the_old_generation_nothing_is_known_of_it() -> None:
    """Java says 0; without generations the heap is one pool, and an unknown collector's is not ours."""
    assert beans(live=0).look().live_bytes is None
    assert beans(pools={"ZHeap"}).look().live_bytes == 167174656
    assert beans(pools={"Other Heap"}).look().live_bytes is None


def test_the_share_of_collections_is_that_since_the_look_before() -> None:
    """Before the second look nothing can be said of it."""
    now = [100.0]
    collector = Collector(5000, None)
    seen = beans(collector, now=lambda: now[0])
    assert seen.look().gc_share is None
    now[0], collector.took_ms = 110.0, 7500
    assert seen.look().gc_share == 0.25
    now[0] = 120.0
    assert seen.look().gc_share == 0.0


def process(proc: Path, pid: int, parent: int, name: str, pages: int) -> None:
    """A file as Linux has it."""
    (proc / str(pid)).mkdir()
    fields = ["S", str(parent), *["0"] * 19, str(pages), *["0"] * 28]
    (proc / str(pid) / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}\n")


def test_processes_of_python_are_those_below_the_jvm(tmp_path: Path) -> None:
    """Its daemon and what that has forked, whatever they are called besides; no others' and no shells."""
    process(tmp_path, 1, 0, "init", 1)
    process(tmp_path, 10, 1, "java", 1000)
    process(tmp_path, 11, 10, "python3", 50)
    process(tmp_path, 12, 11, "python3 (a) b", 20)
    process(tmp_path, 13, 10, "sh", 1)
    process(tmp_path, 20, 1, "python3", 70)
    (tmp_path / "14").mkdir()
    (tmp_path / "meminfo").write_text("")
    assert python_below(10, tmp_path) == Processes(2, 70 * os.sysconf("SC_PAGE_SIZE"))
    assert python_below(20, tmp_path) == Processes(0, 0)


def test_where_the_system_does_not_tell_processes_nothing_is_known(tmp_path: Path) -> None:
    """Which is not the same as none."""
    assert python_below(10, tmp_path / "no") is None
    assert python_below(10, tmp_path) is None


def test_files_of_checkpoints_are_looked_through_every_minute(tmp_path: Path) -> None:
    """What is free is looked at each time."""
    now = [0.0]
    disk = CheckpointDisk(tmp_path / "g", lambda: now[0])
    assert disk.look() is None
    (tmp_path / "g" / "t" / "offsets").mkdir(parents=True)
    (tmp_path / "g" / "t" / "offsets" / "0").write_bytes(b"x" * 5000)
    first = disk.look()
    assert first is not None
    assert first.used >= 5000
    assert 0 < first.free < first.size
    (tmp_path / "g" / "t" / "offsets" / "1").write_bytes(b"x" * 5000)
    now[0] = 59.0
    assert (again := disk.look()) is not None
    assert again.used == first.used
    now[0] = 60.0
    assert (later := disk.look()) is not None
    assert later.used == 2 * first.used


def test_a_disk_without_end_is_as_large_as_can_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Amazon's EFS says 8 EiB; the manager would refuse the whole report."""
    usage = SimpleNamespace(total=2**63 - 2**20, used=0, free=2**63 - 2**20)
    monkeypatch.setattr("worker.spark.classic.checkpoint_disk.shutil.disk_usage", lambda _: usage)
    assert CheckpointDisk(tmp_path).look() == (0, MAX_INT, MAX_INT)
