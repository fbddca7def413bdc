"""Slots and leases in a real database, whichever: what keeps two managers from having one group."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from manager.core.stored_rows import GroupRow
from manager.storage.base import GoneError, StaleEpochError
from manager.storage.cluster_state import ManagerIdentity
from manager.storage.sql_storage import SqlStorage
from protocol.errors import StartupError

if TYPE_CHECKING:
    from manager.storage.lease_table import LeaseTable
    from tests.integration.manager.backends import Database

SLOTS = 4
LONG_MS = 600_000
A, B = (ManagerIdentity(id=name, incarnation=f"{name}-1", url=f"http://{name}") for name in "ab")


@pytest.fixture
async def table(storage: SqlStorage) -> LeaseTable:
    """A and B live; nobody has a slot."""
    await storage.leases.prepare(SLOTS)
    await storage.leases.register(A, LONG_MS, is_starting=True)
    await storage.leases.register(B, LONG_MS, is_starting=True)
    return storage.leases


def expire(database: Database, who: ManagerIdentity) -> None:
    """By the database's clock its lease ended a while ago."""
    database.run(f"UPDATE managers SET expires_at_ms = 1 WHERE manager_id = '{who.id}'")


async def test_the_number_of_slots_is_fixed_by_the_first(storage: SqlStorage) -> None:
    """Whatever the next one asks for."""
    assert await storage.leases.prepare(SLOTS) == SLOTS
    assert await storage.leases.prepare(64) == SLOTS
    assert [slot.slot for slot in (await storage.leases.view()).slots] == [0, 1, 2, 3]


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
async def test_managers_that_start_at_once_agree(database: Database) -> None:
    """On an empty database, schema and slots included."""
    async with AsyncExitStack() as stack:
        storages = [SqlStorage(database.url) for _ in range(3)]
        for storage in storages:
            stack.push_async_callback(storage.close)
        await asyncio.gather(*(storage.open() for storage in storages))
        agreed = await asyncio.gather(*(s.leases.prepare(n + 2) for n, s in enumerate(storages)))
    assert len(set(agreed)) == 1
    assert database.value("SELECT count(*) FROM slots") == agreed[0]


async def test_a_slot_is_taken_once(table: LeaseTable) -> None:
    """Of two who want the same, the second gets nothing; epochs count the changes."""
    assert await table.take(A, [0, 1]) == {0: 1, 1: 1}
    assert await table.take(B, [0, 1, 2]) == {2: 1}
    assert await table.take(A, [0]) == {0: 2}


async def test_slots_of_the_expired_can_be_taken(table: LeaseTable, database: Database) -> None:
    """And who has no slot left and does not live is forgotten."""
    await table.take(A, [0, 1])
    expire(database, A)
    assert await table.take(B, [0]) == {0: 2}
    assert [peer.is_alive for peer in (await table.view()).peers] == [False, True]
    assert await table.take(B, [1]) == {1: 2}
    assert [peer.identity for peer in (await table.view()).peers] == [B]


async def test_an_expired_manager_that_comes_back_lives_again(table: LeaseTable, database: Database) -> None:
    """If nobody missed it: its slots are still in its name."""
    await table.take(A, [0])
    expire(database, A)
    view = await table.renew(A, LONG_MS, 5.0)
    assert A.incarnation in view.living()
    assert view.slots[0].holder == A.incarnation
    assert await table.take(B, [0]) == {}


async def test_a_forgotten_manager_is_told_so(table: LeaseTable, database: Database) -> None:
    """It has to register anew."""
    expire(database, A)
    await table.take(B, [0])
    with pytest.raises(GoneError):
        await table.renew(A, LONG_MS, 5.0)
    await table.register(A, LONG_MS, is_starting=False)
    assert A.incarnation in (await table.renew(A, LONG_MS, 5.0)).living()


async def test_a_lease_is_told_by_the_databases_clock(table: LeaseTable) -> None:
    """What is left of it, whatever clocks the managers have."""
    view = await table.renew(A, 60_000, 5.0)
    left = next(peer.lease_left_ms for peer in view.peers if peer.identity == A)
    assert left is not None
    assert 50_000 < left <= 60_000


async def test_a_restarted_manager_has_its_slots_back_at_once(table: LeaseTable) -> None:
    """Same id, same URL: under new epochs, without waiting for its own lease to end."""
    await table.take(A, [0, 1])
    again = ManagerIdentity(A.id, "a-2", A.url)
    await table.register(again, LONG_MS, is_starting=True)
    view = await table.view()
    assert [(slot.holder, slot.epoch) for slot in view.slots[:2]] == [("a-2", 2), ("a-2", 2)]
    with pytest.raises(GoneError):
        await table.renew(A, LONG_MS, 5.0)
    with pytest.raises(StartupError, match="--manager-id a: a manager of that id serves at http://a"):
        await table.register(A, LONG_MS, is_starting=False)


async def test_two_that_live_under_one_id_and_url_do_not_depose_each_other_in_turns(
    table: LeaseTable, database: Database
) -> None:
    """The first one ends, and whoever starts it again finds out why it does not; the second one stays."""
    first, second, again = (ManagerIdentity(A.id, f"a-{n}", A.url) for n in (2, 3, 4))
    await table.register(first, LONG_MS, is_starting=True)
    await table.take(first, [0, 1])
    await table.register(second, LONG_MS, is_starting=True)
    with pytest.raises(StartupError, match="--manager-id a: a manager of that id serves at http://a"):
        await table.register(first, LONG_MS, is_starting=False)
    for _ in range(2):
        with pytest.raises(
            StartupError, match="serves at http://a, and has ended another one that lived; give each"
        ):
            await table.register(again, LONG_MS, is_starting=True)
    view = await table.renew(second, LONG_MS, 5.0)
    assert [slot.holder for slot in view.slots[:2]] == [second.incarnation] * 2
    expire(database, second)
    await table.register(again, LONG_MS, is_starting=True)
    assert again.incarnation in (await table.renew(again, LONG_MS, 5.0)).living()


async def test_who_comes_after_a_quarrel_is_restarted_at_once_again(
    table: LeaseTable, database: Database
) -> None:
    """Once the lease of the one that had stayed has ended, the id is like any other."""
    for number in (2, 3):
        await table.register(ManagerIdentity(A.id, f"a-{number}", A.url), LONG_MS, is_starting=True)
    with pytest.raises(StartupError):
        await table.register(ManagerIdentity(A.id, "a-2", A.url), LONG_MS, is_starting=False)
    expire(database, A)
    for number in (4, 5):
        await table.register(ManagerIdentity(A.id, f"a-{number}", A.url), LONG_MS, is_starting=True)
    assert "a-5" in (await table.view()).living()


async def test_an_id_belongs_to_one_url_while_it_lives(table: LeaseTable, database: Database) -> None:
    """A second manager of that name is refused, in one line; after the lease's end it is welcome."""
    other = ManagerIdentity(A.id, "a-2", "http://elsewhere")
    with pytest.raises(StartupError, match="--manager-id a"):
        await table.register(other, LONG_MS, is_starting=True)
    expire(database, A)
    await table.register(other, LONG_MS, is_starting=True)


async def test_a_hand_over_needs_no_lease_to_end(table: LeaseTable) -> None:
    """The heir has it at once, and takes it under an epoch of its own; what others took is left alone."""
    await table.take(A, [0, 1])
    await table.take(A, [1])
    await table.hand_over({0: (1, B.incarnation), 1: (1, B.incarnation)})
    assert await table.take(B, [0, 1]) == {0: 3}


async def test_a_manager_that_leaves_leaves_its_slots_free(table: LeaseTable) -> None:
    """Those it did not hand over, too."""
    await table.take(A, [0, 1])
    await table.leave(A)
    assert await table.take(B, [0, 1]) == {0: 2, 1: 2}


async def test_the_only_manager_seizes_everything(table: LeaseTable) -> None:
    """Whatever was there before."""
    await table.take(A, [0])
    only = ManagerIdentity("s", "s-1", "http://s")
    assert await table.seize(only) == {0: 2, 1: 1, 2: 1, 3: 1}
    assert [peer.lease_left_ms for peer in (await table.view()).peers] == [None]


async def test_an_older_epoch_writes_nothing(
    storage: SqlStorage, table: LeaseTable, database: Database
) -> None:
    """One outdated slot among several is enough: all or nothing, and it is named."""
    await table.take(A, [0, 1])
    fence = {0: 1, 1: 1}
    await storage.commit([GroupRow(group="g", generation=1)], fence)
    expire(database, A)
    await table.take(B, [1])
    with pytest.raises(StaleEpochError) as caught:
        await storage.commit([GroupRow(group="g", generation=2)], fence)
    assert caught.value.slots == (1,)
    assert database.value("SELECT generation FROM groups") == 1
    await storage.commit([GroupRow(group="g", generation=2)], {0: 1})


async def test_raising_the_own_epoch_fences_the_own_past(storage: SqlStorage, table: LeaseTable) -> None:
    """A transaction that was sent before and arrives after it writes nothing; a slot that is gone is told."""
    await table.take(A, [0])
    assert await table.keep(A, [0, 1]) == {0: 2}
    with pytest.raises(StaleEpochError):
        await storage.commit([GroupRow(group="g", generation=1)], {0: 1})
    assert await storage.load() == {}


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
async def test_taking_waits_for_what_the_former_holder_has_under_way(
    storage: SqlStorage, table: LeaseTable, database: Database
) -> None:
    """Its last transaction ends before the slot changes hands: whoever loads then sees all there is."""
    await table.take(A, [0])
    expire(database, A)
    with database.transaction() as last:
        last.exec_driver_sql("UPDATE slots SET epoch = epoch WHERE slot = 0 AND epoch = 1")
        taking = asyncio.create_task(table.take(B, [0]))
        async with asyncio.timeout(120):
            while not database.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
                await asyncio.to_thread(lambda: None)
        assert not taking.done()
        last.exec_driver_sql(
            "INSERT INTO groups (\"group\", generation, state, tasks_revision) VALUES ('g', 7, 'Stable', 0)"
        )
    assert await taking == {0: 2}
    assert [row.generation for row in (await storage.load())["g"] if isinstance(row, GroupRow)] == [7]
