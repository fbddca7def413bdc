"""Asking a sink for its fence, without being its owner: what `sparkherd run` does before it takes a token."""

from __future__ import annotations

from typing import Any

import pytest

from definition.sink import Sink
from worker.sinks.base import Field
from worker.sinks.errors import SinkError
from worker.sinks.factory import newest_fence, open_sink
from worker.sinks.fence import FenceRow, Owner

TASK = Owner("g", "t", 0)


def claim(sink: Sink, token: int, *, task: str = "t", resets: int = 0) -> None:
    """Somebody else owns the task."""
    opened = open_sink(sink, Owner("g", task, token, resets))
    assert opened is not None
    opened.claim()
    opened.close()


def test_the_newest_owner_is_told(sink: Sink) -> None:
    """Token and resets of the last claim; asking changes neither, so the owner goes on undisturbed."""
    assert newest_fence(sink, TASK) is None
    claim(sink, 57, resets=2)
    for _ in range(2):
        row = newest_fence(sink, TASK)
        assert row is not None
        assert (row.token, row.resets) == (57, 2)
    claim(sink, 57, resets=2)


def test_the_last_batch_is_told(sink: Sink, batch: Any) -> None:
    """How far the task has come, and from which checkpoint; a reset has come nowhere yet."""
    opened = open_sink(sink, Owner("g", "t", 3))
    assert opened is not None
    opened.claim()
    opened.prepare([Field("carrier", "string")])
    opened.write(batch(0, [("UA",)], checkpoint="c7"))
    opened.close()
    row = newest_fence(sink, TASK)
    assert row is not None
    assert row.last is not None
    assert (row.token, row.last.checkpoint, row.last.batch_id) == (3, "c7", 0)
    claim(sink, 4, resets=1)
    row = newest_fence(sink, TASK)
    assert row is not None
    assert (row.token, row.last) == (4, None)


def test_a_new_task_beside_others(sink: Sink) -> None:
    """What other tasks have claimed says nothing of this one."""
    if sink.format == "sql":
        claim(sink, 9, task="other")
    assert newest_fence(sink, TASK) in {None, FenceRow(0)}


def test_spark_s_own_sinks_have_no_fence() -> None:
    """There is nobody to ask."""
    assert newest_fence(Sink(format="noop"), TASK) is None


@pytest.mark.parametrize(
    "options",
    [
        {"url": "sqlite:////proc/nowhere/x.db", "table": "t"},
        {"url": "postgresql://127.0.0.1:1/x", "table": "t"},
    ],
)
def test_a_sink_that_is_not_there(options: dict[str, Any]) -> None:
    """One line with what is wrong."""
    with pytest.raises(SinkError):
        newest_fence(Sink(format="sql", options=options), TASK)
