"""How much memory a task has that runs in a JVM of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from definition.memory import LEAST_HEAP_MB, Memory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from definition.document import Definition

HEAP: Final = "spark.driver.memory"
PYTHON: Final = "spark.executor.pyspark.memory"
DEFAULT_HEAP: Final = f"{LEAST_HEAP_MB}m"


def memory_of(definition: Definition, default_heap_mb: int | None) -> Memory:
    """Of a task; a heap that its definition does not say is the worker's `default_heap_mb`, in MiB."""
    memory = definition.memory or Memory()
    return memory if memory.heap_mb is not None else msgspec.structs.replace(memory, heap_mb=default_heap_mb)


def with_memory(conf: Mapping[str, str], memory: Memory) -> dict[str, str]:
    """Spark's settings `conf` with the memory of a task."""
    chosen = {HEAP: DEFAULT_HEAP, **conf}
    if memory.heap_mb is not None:
        chosen[HEAP] = f"{memory.heap_mb}m"
    if memory.python_mb is not None:
        chosen[PYTHON] = f"{memory.python_mb}m"
    return chosen
