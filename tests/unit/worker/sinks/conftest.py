"""What the tests of the sinks share: batches without Spark, sinks on a real SQLite file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from protocol.definition import SqlOptions
from worker.sinks.base import Field, Owner
from worker.sinks.sql import SqlSink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from worker.sinks.base import Rows

FLIGHT = (Field("carrier", "string"), Field("delay", "double"))


class ListBatch:
    """A batch whose rows are a list; it notes whether they were taken to the end."""

    frame: Any = None

    def __init__(self, batch_id: int, rows: Rows, checkpoint: str = "c1") -> None:
        self.batch_id = batch_id
        self.checkpoint = checkpoint
        self.consumed = False
        self._rows = rows

    def chunks(self, size: int) -> Iterator[Rows]:
        for start in range(0, len(self._rows), size):
            yield self._rows[start : start + size]
        self.consumed = True


class FailingBatch(ListBatch):
    """A batch whose plan fails when its rows have been taken."""

    def chunks(self, size: int) -> Iterator[Rows]:
        yield from super().chunks(size)
        raise RuntimeError("an executor is gone")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'out.db'}"


@pytest.fixture
def make_sink(url: str) -> Iterator[Callable[..., SqlSink]]:
    """A claimed and prepared sink for a token; closed when the test is over."""
    opened = []

    def make(token: int, fields: tuple[Field, ...] = FLIGHT, **options: Any) -> SqlSink:
        sink = SqlSink(SqlOptions(**{"url": url, "table": "delays", **options}), Owner("g", "t", token))
        opened.append(sink)
        sink.claim()
        sink.prepare(fields)
        return sink

    yield make
    for sink in opened:
        sink.close()


@pytest.fixture
def batch() -> type[ListBatch]:
    return ListBatch


@pytest.fixture
def failing_batch() -> type[FailingBatch]:
    return FailingBatch
