"""The log of events: one order whoever writes, nothing missing for whoever reads (SQLite and PostgreSQL)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from manager.core.stored_rows import GroupRow
from manager.outbox.feed import events_after
from manager.storage import event_log
from manager.storage.base import StaleEpochError, StorageError
from manager.storage.cluster_state import ManagerIdentity
from manager.storage.database import database_at
from manager.storage.event_numbering import append
from manager.storage.receiver_health import ReceiverHealth
from manager.storage.sql_storage import SqlStorage
from protocol.messages.alarm_receivers import ReceiverState
from protocol.messages.events import Event, EventType
from protocol.messages.groups import Coordinator

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from manager.storage.base import LogPage
    from tests.integration.manager.backends import Database

WRITERS = 3
COMMITS = 40
START_MS = 1_700_000_000_000
UNSTORABLE: Any = GroupRow(group="h", generation=None)  # type: ignore[arg-type]  # that is the point
UNENCODABLE: Any = Event(id=0, at_ms=0, type=EventType.TASK_FAILED, cause=object())  # type: ignore[arg-type]  # that is the point


def event(at_ms: int = START_MS, group: str | None = "g", cause: str | None = None) -> Event:
    return Event(id=0, at_ms=at_ms, type=EventType.TASK_FAILED, group=group, cause=cause)


def ids(page: LogPage) -> list[int]:
    return [event.id for event in page.events]


async def test_events_are_stored_with_the_rows_they_tell_of(storage: SqlStorage) -> None:
    """In one transaction, and come back as they were, numbered from 1."""
    manager = Coordinator("m", "http://m:1")
    changed = Event(id=0, at_ms=START_MS, type=EventType.MANAGER_CHANGED, manager=manager)
    assert (await storage.events.read(0, 10)).events == ()
    await storage.commit([GroupRow(group="g", generation=1), event(cause="ä\n'"), changed])
    page = await storage.events.read(0, 10)
    assert ids(page) == [1, 2]
    assert [(e.cause, e.group, e.manager) for e in page.events] == [
        ("ä\n'", "g", None),
        (None, None, manager),
    ]
    assert (page.through, page.last_id, page.pruned_through) == (2, 2, 0)


async def test_a_transaction_that_fails_takes_its_numbers_back(
    storage: SqlStorage, database: Database
) -> None:
    """Neither its events nor a hole is left, though it had written them."""
    await storage.commit([event()])

    def fail(connection: Connection) -> None:
        append(connection, [event(), event()])
        raise ZeroDivisionError

    opened = database_at(database.url)
    with suppress(ZeroDivisionError):
        await opened.transact(fail)
    await opened.close()
    await storage.commit([event()])
    assert ids(await storage.events.read(0, 10)) == [1, 2]


async def test_a_change_and_its_event_are_stored_together_or_not_at_all(storage: SqlStorage) -> None:
    """Whichever of the two cannot be."""
    for broken in (UNENCODABLE, UNSTORABLE):
        with pytest.raises(StorageError):
            await storage.commit([GroupRow(group="g", generation=1), event(), broken])
    assert await storage.load() == {}
    assert await storage.events.newest() == 0


async def test_no_reader_passes_an_event_that_is_still_being_written(database: Database) -> None:
    """Writers race, some of their transactions fail; who follows meanwhile sees 1, 2, 3, ... to the end."""
    storages = [SqlStorage(database.url) for _ in range(WRITERS + 1)]
    for storage in storages:
        await storage.open()
    reader, *writers = storages
    writing = asyncio.gather(*(_write(n, writer) for n, writer in enumerate(writers)))
    page = await reader.events.read(0, 7)
    seen = list(page.events)
    while not writing.done() or page.through < await reader.events.newest():
        page = await reader.events.read(page.through, 7)
        seen += page.events
    await writing
    for storage in storages:
        await storage.close()
    assert [event.id for event in seen] == list(range(1, len(seen) + 1))
    assert all(before.at_ms <= after.at_ms for before, after in pairwise(seen))
    for number in range(WRITERS):
        causes = [event.cause for event in seen if event.group == f"g{number}"]
        assert causes == [str(n) for n in range(COMMITS) for _ in range(n % 3)]


async def _write(number: int, storage: SqlStorage) -> None:
    """A manager whose clock is minutes off; a transaction has 0 to 2 events, every other fails at first."""
    for n in range(COMMITS):
        row = GroupRow(group=f"g{number}", generation=n)
        events = [event(START_MS + n - number * 60_000, f"g{number}", str(n))] * (n % 3)
        if n % 2:
            with pytest.raises(StorageError):
                await storage.commit([row, *events, UNENCODABLE])
        await storage.commit([row, *events])


async def test_times_never_go_back_and_what_one_transaction_tells_is_in_their_order(
    storage: SqlStorage,
) -> None:
    """A late clock is held at what was reached; a group's own events stay as they came all the same."""
    await storage.commit([event(START_MS + 500)])
    batch = [(20, "b", "1"), (10, "b", "2"), (900, "b", "3"), (700, "a", "4"), (15, "b", "5")]
    await storage.commit([event(START_MS + ms, group, cause) for ms, group, cause in batch])
    page = await storage.events.read(1, 10)
    told_of = [(event.at_ms - START_MS, event.cause) for event in page.events]
    assert told_of == [(500, "1"), (500, "2"), (700, "4"), (900, "3"), (900, "5")]
    await storage.commit([event(START_MS)])
    assert (await storage.events.read(6, 10)).events[0].at_ms == START_MS + 900


async def test_a_page_of_one_group_says_how_far_it_looked(storage: SqlStorage) -> None:
    """So that its reader moves on over what is not for it."""
    await storage.commit([event(group="a"), event(group="b"), event(group="a"), event(group="b")])
    first = await storage.events.read(0, 1, "b")
    assert (ids(first), first.through) == ([2], 2)
    rest = await storage.events.read(2, 5, "b")
    assert (ids(rest), rest.through) == ([4], 4)
    nothing = await storage.events.read(0, 5, "c")
    assert (ids(nothing), nothing.through) == ([], 4)


async def test_a_full_page_goes_as_far_as_its_last_event(storage: SqlStorage) -> None:
    """The rest is on the next one."""
    await storage.commit([event() for _ in range(5)])
    pages = [await storage.events.read(after, 2) for after in (0, 2, 4, 5)]
    assert [ids(page) for page in pages] == [[1, 2], [3, 4], [5], []]
    assert [page.through for page in pages] == [2, 4, 5, 5]


async def test_what_is_too_old_or_too_much_is_forgotten_and_said_to_be(storage: SqlStorage) -> None:
    """A reader that was not there for it gets one event instead, with the id up to which all is gone."""
    await storage.commit([event(START_MS + n) for n in range(10)])
    assert not await storage.events.prune(START_MS, keep=10)
    assert not await storage.events.prune(START_MS + 3, keep=10)
    page = await storage.events.read(1, 10)
    assert (ids(page), page.pruned_through) == ([4, 5, 6, 7, 8, 9, 10], 3)
    gap = events_after(page, 1)[0]
    assert (gap.id, gap.type, gap.after, gap.at_ms) == (3, "events.pruned", 1, START_MS + 3)
    assert [e.id for e in events_after(page, 3)] == [e.id for e in events_after(page, None)] == ids(page)
    assert not await storage.events.prune(START_MS, keep=2)
    assert ids(await storage.events.read(0, 10)) == [9, 10]


async def test_ids_go_on_when_everything_was_forgotten(storage: SqlStorage) -> None:
    """An id is never used again."""
    await storage.commit([event(), event()])
    await storage.events.prune(START_MS + 1, keep=10)
    await storage.commit([event()])
    page = await storage.events.read(0, 10)
    assert (ids(page), page.last_id, page.pruned_through) == ([3], 3, 2)


async def test_much_is_forgotten_in_portions(storage: SqlStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    """No transaction is long; each says whether there is more to do."""
    monkeypatch.setattr(event_log, "PRUNED_AT_ONCE", 4)
    await storage.commit([event() for _ in range(10)])
    more = [await storage.events.prune(START_MS + 1, keep=10) for _ in range(4)]
    assert more == [True, True, False, False]
    assert (await storage.events.read(0, 10)).pruned_through == 10


async def test_a_webhook_starts_with_what_comes_next_and_never_goes_back(storage: SqlStorage) -> None:
    """What was before it is nothing it was told to expect; a late word of another manager changes nothing."""
    await storage.commit([event(), event()])
    assert await storage.events.position("w") == 2
    await storage.commit([event(), event()])
    assert await storage.events.position("w") == 2
    await storage.events.advance("w", 4)
    await storage.events.advance("w", 3)
    assert await storage.events.position("w") == 4
    assert await storage.events.position("other") == 4


async def test_how_a_receiver_is_is_told_once_whatever_managers_believe(storage: SqlStorage) -> None:
    """Away after away is no news, failing after away is not believed, and it is back once."""
    log = storage.events
    await log.position("r")
    told = event(cause="told")
    delivering, failing, away = (
        ReceiverHealth(state, 5, "HTTP 503")
        for state in (ReceiverState.DELIVERING, ReceiverState.FAILING, ReceiverState.AWAY)
    )
    assert await log.health() == {}
    for health, news in [(failing, 0), (away, 1), (away, 1), (delivering, 2), (delivering, 2), (away, 3)]:
        await log.keep_health("r", health, None if health is failing else told)
        assert (await log.newest(), await log.health()) == (news, {"r": health})
    await log.keep_health("r", failing)
    assert await log.health() == {"r": away}
    await log.keep_health("r", delivering, told)
    assert await log.newest() == 4


async def test_how_a_receiver_is_is_kept_by_whoever_tells_it(storage: SqlStorage) -> None:
    """An older epoch keeps nothing, and tells nothing."""
    await storage.leases.prepare(1)
    epoch = (await storage.leases.seize(ManagerIdentity("a", "a-1", "http://a")))[0]
    log = storage.events
    await log.position("r")
    newest, away = await log.newest(), ReceiverHealth(ReceiverState.AWAY, 5, "HTTP 503")
    with pytest.raises(StaleEpochError):
        await log.keep_health("r", away, event(), {0: epoch - 1})
    assert (await log.newest(), await log.health()) == (newest, {})
    await log.keep_health("r", away, event(), {0: epoch})
    assert (await log.newest(), await log.health()) == (newest + 1, {"r": away})


async def test_those_who_part_go_on_from_either_side_of_an_event(storage: SqlStorage) -> None:
    """In one transaction, under the epoch of whoever tells them; nobody goes back."""
    await storage.leases.prepare(1)
    epoch = (await storage.leases.seize(ManagerIdentity("a", "a-1", "http://a")))[0]
    log, failing = storage.events, ReceiverHealth(ReceiverState.FAILING, 5, "452 full")
    await storage.commit([event() for _ in range(9)])
    start = await log.position("r")
    with pytest.raises(StaleEpochError):
        await log.part("r", start + 5, {"r/b": failing}, {0: epoch - 1})
    assert (await log.position("r"), await log.health()) == (start, {})
    await log.part("r", start + 5, {"r/b": failing, "r/c": failing}, {0: epoch})
    assert [await log.position(name) for name in ("r", "r/b", "r/c")] == [start + 5, start + 4, start + 4]
    assert await log.health() == {"r/b": failing, "r/c": failing}
    await log.advance("r/b", start + 7)
    await log.part("r", start + 3, {"r/b": failing}, {0: epoch})
    assert [await log.position(name) for name in ("r", "r/b")] == [start + 5, start + 7]
