"""Entry points of harmful tasks: what SQL alone cannot do to its neighbours.

Each is bounded by itself, or by what its worker is started with: none takes the machine with it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f

from tests.acceptance.harms.feed import FILES_A_BATCH

if TYPE_CHECKING:
    from sparkherd import TaskContext

MB: Final = 2**20
LINE: Final = "x" * 199
"""Of a log: with its end, 200 bytes."""
LONG_LINE: Final = "x" * 9_999
EATEN_MB: Final = 1500
"""Where a Python that nobody bounds stops eating by itself."""

_leaked: list[Any] = []


def _rows(context: TaskContext) -> Any:
    reader = context.spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", FILES_A_BATCH)
    return reader.json(context.options["path"])


def loop(context: TaskContext) -> Any:
    """A function in SQL that never returns."""

    def turn(_number: int) -> int:
        while True:
            pass

    return _through(context, turn)


def hoard(context: TaskContext) -> Any:
    """A function in SQL that takes all the memory there is."""

    def eat(_number: int) -> int:
        eaten: list[bytes] = []
        while len(eaten) < EATEN_MB:
            eaten.append(b"x" * (MB - len(eaten)))
        raise RuntimeError(f"{EATEN_MB} MB are eaten, and nobody minds")

    return _through(context, eat)


def chatter(context: TaskContext) -> Any:
    """A function in SQL that prints a MB for each of the first hundred rows it sees behind `from`."""
    first = int(context.options["from"])

    def tell(number: int) -> int:
        if first <= number < first + 100:
            for at in range(MB // (len(LINE) + 1)):
                print(LINE, file=(sys.stdout, sys.stderr)[at % 2])
        return number

    return _through(context, tell)


def java_chatter(context: TaskContext) -> Any:
    """Writes 10 MB with each of its first ten batches into the log of its JVM."""
    java: Any = context.spark._jvm
    write = java.org.apache.logging.log4j.LogManager.getLogger("chatter").error

    def tell(_batch: Any, batch_id: int) -> None:
        for _ in range(10 * MB // len(LONG_LINE) if batch_id < 10 else 0):
            write(LONG_LINE)

    return context.foreach_batch(_rows(context), tell)


def leak(context: TaskContext) -> Any:
    """Keeps some more MB in the heap of its JVM with each batch, as caches without bounds do.

    Arrays of bytes would come into Python as they are, and leave nothing in the JVM.
    """
    gateway: Any = context.spark.sparkContext._gateway
    longs = int(context.options["mb"]) * MB // 8

    def keep(_batch: Any, _batch_id: int) -> None:
        _leaked.append(gateway.new_array(gateway.jvm.long, longs))

    return context.foreach_batch(_rows(context), keep)


def _through(context: TaskContext, function: Any) -> Any:
    called = f.udf(function, "bigint")
    return context.sink(_rows(context).select(called("id").alias("id")))
