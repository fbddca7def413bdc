from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from manager.core.turn import ClockReading
from manager.outbox import retention
from manager.outbox.retention import Retention
from manager.storage.base import StorageError
from protocol.messages.events import Event, EventType
from tests.fakes.turns import settle

if TYPE_CHECKING:
    from manager.storage.sql_storage import SqlStorage

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
NOW = 1_700_000_000_000


def told(*ago_ms: int) -> list[Event]:
    return [Event(id=0, at_ms=NOW - ago, type=EventType.TASK_FAILED) for ago in ago_ms]


async def kept(storage: SqlStorage) -> list[int]:
    return [event.id for event in (await storage.events.read(0, 3000)).events]


@pytest.mark.parametrize(
    ("keep_ms", "keep_count", "left"), [(50, 10, [2, 3]), (1000, 1, [3]), (1000, 10, [1, 2, 3]), (1, 10, [])]
)
async def test_what_is_older_or_more_than_is_kept_is_forgotten(
    storage: SqlStorage, keep_ms: int, keep_count: int, left: list[int]
) -> None:
    """An event exactly as old as the limit is kept."""
    await storage.commit(told(100, 50, 20))
    await Retention(storage.events, keep_ms, keep_count, lambda: ClockReading(0, NOW)).prune()
    assert await kept(storage) == left


async def test_however_much_there_is_it_is_forgotten_at_once(storage: SqlStorage) -> None:
    """In as many transactions as it takes."""
    await storage.commit(told(*[100] * 2500, 20))
    await Retention(storage.events, 50, 10, lambda: ClockReading(0, NOW)).prune()
    assert await kept(storage) == [2501]


@pytest.mark.parametrize("trouble", [StorageError, ValueError])
async def test_it_goes_on_after_trouble_with_the_database(
    storage: SqlStorage, monkeypatch: pytest.MonkeyPatch, trouble: type[Exception]
) -> None:
    """The next time may be better."""
    monkeypatch.setattr(retention, "PRUNE_EVERY_S", 0)
    tried: list[int] = []

    async def fails(before_ms: int, keep: int) -> bool:
        tried.append(before_ms)
        raise trouble(f"{keep}")

    monkeypatch.setattr(storage.events, "prune", fails)
    running = Retention(storage.events, 1, 1, lambda: ClockReading(0, NOW)).start()
    while len(tried) < 2:
        await settle()
    await running.stop()
    assert tried[:2] == [NOW - 1, NOW - 1]
