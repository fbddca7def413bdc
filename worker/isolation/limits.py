"""How much memory a task has that runs in a JVM of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from definition.document import Definition

HEAP: Final = "spark.driver.memory"
PYTHON: Final = "spark.executor.pyspark.memory"
DEFAULT_HEAP: Final = "512m"
"""The least that Spark starts with, in round numbers: it refuses less than 450 MiB."""


class Limits(msgspec.Struct, frozen=True):
    """In MiB; None is what Spark's settings say.

    `heap_mb` is what the JVM may use for objects, `python_mb` what each Python worker may, in address space:
    those run functions of Python in SQL, one a core of a local master.
    """

    heap_mb: int | None = None
    python_mb: int | None = None


def limits_of(definition: Definition, default_heap_mb: int | None) -> Limits:
    """Of a task; what its definition does not say is the worker's `default_heap_mb`."""
    del definition  # has no limits yet
    return Limits(heap_mb=default_heap_mb)


def with_limits(conf: Mapping[str, str], limits: Limits) -> dict[str, str]:
    """Spark's settings `conf` with the limits of a task."""
    chosen = {HEAP: DEFAULT_HEAP, **conf}
    if limits.heap_mb is not None:
        chosen[HEAP] = f"{limits.heap_mb}m"
    if limits.python_mb is not None:
        chosen[PYTHON] = f"{limits.python_mb}m"
    return chosen
