"""Which way batches take into the SQL sink, by the size of the one before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.sinks.sql import SqlSink

SMALL = [("UA", 1.0)] * 3
LARGE = [("AA", 1.0)] * 12


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten rows are few."""
    monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 10)


def test_what_is_large_once_is_not_asked_for_again(
    make_sink: Callable[..., SqlSink], batch: Any, monkeypatch: pytest.MonkeyPatch, peek: Any
) -> None:
    """Batches come in one piece until one does not; then none is tried until one has proved small."""
    tried = []
    collect = batch.collect

    def note(self: Any, limit: int) -> Any:
        tried.append((self.mark.batch_id, collect(self, limit) is not None))
        return collect(self, limit)

    monkeypatch.setattr(batch, "collect", note)
    sink = make_sink(1)
    for batch_id, rows in enumerate([SMALL, SMALL, LARGE, LARGE, SMALL, SMALL]):
        assert sink.write(batch(batch_id, rows)).rows == len(rows)
    assert tried == [(0, True), (1, True), (2, False), (5, True)]
    assert len(peek("SELECT * FROM delays")) == 4 * 3 + 2 * 12


def test_the_limit_is_shared_by_the_partitions(
    make_sink: Callable[..., SqlSink], batch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each may have as many rows as the whole batch: together they never send more than the driver takes."""
    limits = []
    monkeypatch.setattr(batch, "collect", lambda _, limit: limits.append(limit))
    sink = make_sink(1)
    sink.write(batch(0, [("UA", 1.0)], [("AA", 1.0)]))
    sink.write(batch(1, [("UA", 1.0)]))
    assert limits == [5, 10]
