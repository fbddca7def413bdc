from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from manager.access import trail as module
from manager.access.trail import Trail
from manager.storage.base import StorageError
from protocol.messages.audit import AuditEntry, AuditListQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = 1_000_000


class Ledger:
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
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def trail(ledger: Ledger) -> Trail:
    return Trail(ledger, keep_ms=400, keep_count=7, now_ms=lambda: NOW)


async def test_who_reads_sees_what_was_just_done(trail: Trail, ledger: Ledger) -> None:
    """Though it is written down in batches."""
    trail.put(entry(1))
    assert ledger.kept == []
    assert await trail.read(AuditListQuery()) == (entry(1),)


async def test_what_a_database_did_not_take_is_stored_later_in_order(
    trail: Trail, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost and nothing stored twice; batches are bounded."""
    monkeypatch.setattr(module, "AT_ONCE", 2)
    ledger.is_away = True
    trail.put(entry(1))
    with pytest.raises(StorageError):
        await trail.flush()
    for number in (2, 3):
        trail.put(entry(number))
    ledger.is_away = False
    await trail.flush()
    assert [each.at_ms for each in ledger.kept] == [1, 2, 3]
    assert ledger.batches == [2, 1]


async def test_only_so_many_wait(trail: Trail, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that stays away does not fill the memory; the oldest are kept."""
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    for number in (1, 2, 3):
        trail.put(entry(number))
    await trail.flush()
    assert [each.at_ms for each in ledger.kept] == [1, 2]
    trail.put(entry(4))
    await trail.flush()
    assert [each.at_ms for each in ledger.kept] == [1, 2, 4]


async def test_the_end_stores_what_waits_and_lets_go(trail: Trail, ledger: Ledger) -> None:
    """Also if the database is away: then it says so, and ends all the same."""
    async with trail:
        trail.put(entry(1))
    assert ([each.at_ms for each in ledger.kept], ledger.is_closed) == ([1], True)
    ledger.is_away = True
    trail.put(entry(2))
    async with trail:
        pass
    assert len(ledger.kept) == 1


async def test_what_is_old_or_too_much_is_forgotten(trail: Trail, ledger: Ledger) -> None:
    """Until there is nothing left to forget."""
    await trail.prune()
    assert ledger.pruned == [(NOW - 400, 7)] * 3
