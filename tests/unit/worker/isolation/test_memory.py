from __future__ import annotations

import msgspec
import pytest

from definition.document import parse_definition
from definition.memory import Memory
from worker.isolation.memory import memory_of, with_memory

RATE = parse_definition(b'{"source": {"format": "rate"}, "sink": {"format": "noop"}}')


@pytest.mark.parametrize(
    ("conf", "memory", "chosen"),
    [
        ({}, Memory(), {"spark.driver.memory": "512m"}),
        ({"spark.driver.memory": "2g"}, Memory(), {"spark.driver.memory": "2g"}),
        (
            {"spark.driver.memory": "2g", "a": ""},
            Memory(heap_mb=768),
            {"spark.driver.memory": "768m", "a": ""},
        ),
        (
            {},
            Memory(python_mb=300),
            {"spark.driver.memory": "512m", "spark.executor.pyspark.memory": "300m"},
        ),
    ],
)
def test_limits_are_settings_of_spark(conf: dict[str, str], memory: Memory, chosen: dict[str, str]) -> None:
    """Those of the worker stand where a task has none."""
    assert with_memory(conf, memory) == chosen


def test_a_task_has_the_worker_s_limits() -> None:
    """Where its definition says none."""
    assert memory_of(RATE, 700) == Memory(heap_mb=700)
    assert memory_of(RATE, None) == Memory()
    own = msgspec.structs.replace(RATE, memory=Memory(heap_mb=600, python_mb=300))
    assert memory_of(own, 700) == Memory(heap_mb=600, python_mb=300)
    python = msgspec.structs.replace(RATE, memory=Memory(python_mb=300))
    assert memory_of(python, 700) == Memory(heap_mb=700, python_mb=300)
