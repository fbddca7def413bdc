"""What a worker's own Spark takes of its machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.messages.resources import WorkerResources
from worker.spark.classic.checkpoint_disk import CheckpointDisk
from worker.spark.classic.jvm_memory import JvmBeans
from worker.spark.classic.python_processes import python_below
from worker.spark.settings import local_folder

if TYPE_CHECKING:
    from worker.spark.classic.jvm import Jvm


class ClassicResources:
    """Looks at the JVM, at the processes below it, and at the disk of the checkpoints."""

    def __init__(self, jvm: Jvm, folder: str | None) -> None:
        """`folder`, a path or URL, is that of the group's checkpoints; without one they are not looked at."""
        self._pid = jvm.pid
        self._beans = JvmBeans(jvm.gateway.jvm)
        local = None if folder is None else local_folder(folder)
        self._disk = None if local is None else CheckpointDisk(local)

    def look(self) -> WorkerResources:
        """As it is now; without processes where the system does not tell, without checkpoints elsewhere."""
        memory = self._beans.look()
        processes = python_below(self._pid)
        disk = None if self._disk is None else self._disk.look()
        return WorkerResources(
            heap_bytes=memory.used_bytes,
            heap_max_bytes=memory.max_bytes,
            heap_after_gc_bytes=memory.after_gc_bytes,
            heap_live_bytes=memory.live_bytes,
            gc_ms=memory.gc_ms,
            gc_share=memory.gc_share,
            direct_bytes=memory.direct_bytes,
            python_processes=processes and processes.number,
            python_bytes=processes and processes.resident_bytes,
            checkpoint_bytes=disk and disk.used,
            checkpoint_free_bytes=disk and disk.free,
            checkpoint_disk_bytes=disk and disk.size,
        )
