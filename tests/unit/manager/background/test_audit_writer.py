from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from manager.background import audit_writer as module
from manager.background.audit_writer import AuditWriter
from manager.storage.base import StorageError
from protocol.messages.audit import AuditEntry, AuditListQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = 1_000_000


class AuditStore:
    """Keeps entries in memory, when it is well."""

    def __init__(self) -> None:
        self.kept: list[AuditEntry] = []
        self.batches: list[int] = []
        self.is_away = False
        self.is_closed = False
        self.pruned: list[tuple[int, int]] = []

    async def add(self, entries: Sequence[AuditEntry]) -> None:
        if self.is_away:
            raise StorageError("away")
        self.kept += entries
        self.batches.append(len(entries))

    async def read(self, asked: AuditListQuery) -> tuple[AuditEntry, ...]:
        return tuple(self.kept[asked.after :])

    async def prune(self, before_ms: int, keep: int) -> bool:
        self.pruned.append((before_ms, keep))
        return len(self.pruned) < 3

    async def close(self) -> None:
        self.is_closed = True


def entry(number: int) -> AuditEntry:
    return AuditEntry(at_ms=number, who="me", operation="pauseTask", result="NONE")


@pytest.fixture
def store() -> AuditStore:
    return AuditStore()


@pytest.fixture
def audit_writer(store: AuditStore) -> AuditWriter:
    return AuditWriter(store, keep_ms=400, keep_count=7, now_ms=lambda: NOW)


async def test_who_reads_sees_what_was_just_done(audit_writer: AuditWriter, store: AuditStore) -> None:
    """Though it is written down in batches."""
    audit_writer.put(entry(1))
    assert store.kept == []
    assert await audit_writer.read(AuditListQuery()) == (entry(1),)


async def test_what_a_database_did_not_take_is_stored_later_in_order(
    audit_writer: AuditWriter, store: AuditStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost and nothing stored twice; batches are bounded."""
    monkeypatch.setattr(module, "AT_ONCE", 2)
    store.is_away = True
    audit_writer.put(entry(1))
    with pytest.raises(StorageError):
        await audit_writer.flush()
    for number in (2, 3):
        audit_writer.put(entry(number))
    store.is_away = False
    await audit_writer.flush()
    assert [each.at_ms for each in store.kept] == [1, 2, 3]
    assert store.batches == [2, 1]


async def test_only_so_many_wait(
    audit_writer: AuditWriter, store: AuditStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that stays away does not fill the memory; the oldest are kept."""
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    for number in (1, 2, 3):
        audit_writer.put(entry(number))
    await audit_writer.flush()
    assert [each.at_ms for each in store.kept] == [1, 2]
    audit_writer.put(entry(4))
    await audit_writer.flush()
    assert [each.at_ms for each in store.kept] == [1, 2, 4]


async def test_the_end_stores_what_waits_and_lets_go(audit_writer: AuditWriter, store: AuditStore) -> None:
    """Also if the database is away: then it says so, and ends all the same."""
    async with audit_writer:
        audit_writer.put(entry(1))
    assert ([each.at_ms for each in store.kept], store.is_closed) == ([1], True)
    store.is_away = True
    audit_writer.put(entry(2))
    async with audit_writer:
        pass
    assert len(store.kept) == 1


async def test_what_is_old_or_too_much_is_forgotten(audit_writer: AuditWriter, store: AuditStore) -> None:
    """Until there is nothing left to forget."""
    await audit_writer.prune()
    assert store.pruned == [(NOW - 400, 7)] * 3
