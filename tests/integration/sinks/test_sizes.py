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


def test_the_limit_is_the_batch_s_however_many_partitions_it_has(
    make_sink: Callable[..., SqlSink], batch: Any, monkeypatch: pytest.MonkeyPatch, peek: Any
) -> None:
    """A topic's partitions do not make a batch large; where each stages for itself, they share the limit."""
    asked, shares = [], []
    scatter, collect = batch.scatter, batch.collect

    def note_limit(self: Any, limit: int) -> Any:
        asked.append(limit)
        return collect(self, limit)

    def note_share(self: Any, take: Any) -> Any:
        shares.append(take.inline_rows)
        return scatter(self, take)

    monkeypatch.setattr(batch, "collect", note_limit)
    monkeypatch.setattr(batch, "scatter", note_share)
    sink = make_sink(1)
    sink.write(batch(0, SMALL, SMALL, SMALL))
    sink.write(batch(1, LARGE, SMALL))
    sink.write(batch(2, SMALL, SMALL, SMALL))
    sink.write(batch(3, SMALL))
    assert asked == [10, 10, 10]
    assert shares == [5, 3]
    assert len(peek("SELECT * FROM delays")) == 9 + 15 + 9 + 3
