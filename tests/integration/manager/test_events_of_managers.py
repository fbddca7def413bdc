"""Events where managers take over from each other: one log, in order, nothing of a zombie in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from manager.core.commands import CreateTask, NewDefinition
from manager.storage.cluster_state import ManagerIdentity
from protocol.errors import Failure
from protocol.messages.base import encode_opaque
from protocol.states import Target
from tests.integration.manager.managers import SLOTS, Manager

if TYPE_CHECKING:
    from manager.storage.sql_storage import SqlStorage
    from protocol.messages.events import Event
    from tests.integration.manager.backends import Database

DEFINITION = NewDefinition(encode_opaque({}), 1.0, None, {})
GROUPS = [f"g{n}" for n in range(12)]
LONG_MS = 600_000


async def told(storage: SqlStorage) -> list[Event]:
    events = (await storage.events.read(0, 1000)).events
    assert [event.id for event in events] == list(range(1, len(events) + 1))
    return list(events)


def changes(events: list[Event]) -> list[tuple[str, int | None]]:
    return [(event.manager.id, event.slots) for event in events if event.manager is not None]


async def create(manager: Manager, group: str, task: str) -> bool:
    command = CreateTask(task=task, definition=DEFINITION, target=Target.RUNNING)
    outcome: Any = await manager.runtime.ask(group, command)
    return not isinstance(outcome, Failure)


async def test_who_takes_slots_over_is_told(database: Database, storage: SqlStorage) -> None:
    """With the taking itself; who finds nothing to take tells nothing."""
    a, b = (ManagerIdentity(id=name, incarnation=f"{name}-1", url=f"http://{name}") for name in "ab")
    await storage.leases.prepare(SLOTS)
    for who in (a, b):
        await storage.leases.register(who, LONG_MS, is_starting=True)
    await storage.leases.take(a, range(SLOTS))
    await storage.leases.take(b, range(SLOTS))
    await storage.leases.keep(a, range(SLOTS))
    assert changes(await told(storage)) == [("a", SLOTS)]
    database.run("UPDATE managers SET expires_at_ms = 1 WHERE manager_id = 'a'")
    await storage.leases.take(b, range(2))
    await storage.leases.seize(b)
    events = await told(storage)
    assert changes(events) == [("a", SLOTS), ("b", 2), ("b", SLOTS)]
    assert events[0].at_ms > 1_700_000_000_000


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
async def test_through_takeovers_every_change_is_told_once_and_zombies_tell_nothing(
    a: Manager, b: Manager
) -> None:
    """Slots are shared, handed over and lost; whoever had them writes no event any more."""
    done = [(g, "shared") for g in GROUPS for m in (a, b) if await create(m, g, "shared")]
    assert len(done) == len(GROUPS)
    a.expire()
    await b.look()
    zombie = [await create(a, g, "late") for g in GROUPS]
    assert not any(zombie)
    done += [(g, "after") for g in GROUPS if await create(b, g, "after")]
    events = await told(b.storage)
    assert [(e.group, e.task) for e in events if e.type == "task.created"] == done
    assert changes(events) == [("a", SLOTS), ("b", SLOTS // 2), ("b", SLOTS // 2)]
    assert len(done) == 2 * len(GROUPS)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
async def test_a_webhook_is_one_manager_s_at_a_time(a: Manager, b: Manager) -> None:
    """And another's when that one is gone."""
    names = [f"http://h#{n}" for n in range(20)]
    assert all(a.node.routing.is_mine(name) is not b.node.routing.is_mine(name) for name in names)
    assert {a.node.routing.is_mine(name) for name in names} == {True, False}
    a.expire()
    await b.look()
    assert all(b.node.routing.is_mine(name) for name in names)
