from __future__ import annotations

import pytest

from definition.document import parse_definition
from worker.isolation.limits import Limits, limits_of, with_limits

RATE = parse_definition(b'{"source": {"format": "rate"}, "sink": {"format": "noop"}}')


@pytest.mark.parametrize(
    ("conf", "limits", "chosen"),
    [
        ({}, Limits(), {"spark.driver.memory": "512m"}),
        ({"spark.driver.memory": "2g"}, Limits(), {"spark.driver.memory": "2g"}),
        (
            {"spark.driver.memory": "2g", "a": ""},
            Limits(heap_mb=768),
            {"spark.driver.memory": "768m", "a": ""},
        ),
        (
            {},
            Limits(python_mb=300),
            {"spark.driver.memory": "512m", "spark.executor.pyspark.memory": "300m"},
        ),
    ],
)
def test_limits_are_settings_of_spark(conf: dict[str, str], limits: Limits, chosen: dict[str, str]) -> None:
    """Those of the worker stand where a task has none."""
    assert with_limits(conf, limits) == chosen


def test_a_task_has_the_worker_s_limits() -> None:
    """As long as definitions say none."""
    assert limits_of(RATE, 700) == Limits(heap_mb=700)
    assert limits_of(RATE, None) == Limits()
