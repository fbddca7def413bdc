"""Managers that take over from each other on a real PostgreSQL: members notice nothing, zombies fail."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import ClientSession

from manager.cluster.held_slots import SlotState
from manager.cluster.node import open_node
from manager.core.commands import DescribeGroup
from manager.settings import ManagerSettings
from manager.storage.cluster_state import ManagerIdentity
from manager.storage.sql_storage import SqlStorage
from protocol.errors import StartupError
from protocol.messages.membership import HeartbeatRequest
from tests.fakes.turns import eventually, turn
from tests.integration.manager.managers import SLOTS, started
from tests.integration.manager.members import error, join, stable

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from tests.integration.manager.backends import Database
    from tests.integration.manager.managers import Manager

pytestmark = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
GROUPS = tuple(f"g{n}" for n in range(12))
"""Enough for every manager to have some."""


def group_of(manager: Manager) -> str:
    return next(group for group in GROUPS if manager.leases.serves(group))


async def test_slots_are_shared_and_groups_move_with_them(database: Database, stack: AsyncExitStack) -> None:
    """The first has all, the second is given half, a third a third; members go on with their generation."""
    a = await started(database, stack, "a")
    beats = {group: await stable(a.runtime, group) for group in GROUPS}
    b = await started(database, stack, "b")
    c = await started(database, stack, "c")
    for manager in (a, b, c, a, b, c):
        await manager.look()
    counts = [len(manager.leases.in_state(SlotState.SERVING)) for manager in (a, b, c)]
    assert sum(counts) == SLOTS
    assert max(counts) - min(counts) <= 1
    for group, beat in beats.items():
        answers = [error(await manager.runtime.ask(group, beat)) for manager in (a, b, c)]
        assert sorted(answers) == ["NONE", "NOT_COORDINATOR", "NOT_COORDINATOR"]


async def test_a_dead_managers_groups_live_on(a: Manager, b: Manager) -> None:
    """Same members, same generation, at the first look after its lease ended."""
    group = group_of(a)
    beat = await stable(a.runtime, group)
    a.expire()
    assert error(await b.runtime.ask(group, beat)) == "NOT_COORDINATOR"
    await b.look()
    assert error(await b.runtime.ask(group, beat)) == "NONE"
    described: Any = await b.runtime.ask(group, DescribeGroup())
    assert (described.state, described.generation_id) == ("Stable", 1)


async def test_a_zombie_writes_nothing(a: Manager, b: Manager) -> None:
    """It believes in its lease; its rows are refused, nobody hears of them, it steps down."""
    group, other = group_of(a), group_of(b)
    beat = await stable(a.runtime, group)
    a.expire()
    await b.look()
    assert error(await a.runtime.ask(group, join(beat.member_id))) == "COORDINATOR_NOT_AVAILABLE"
    assert not a.leases.serves(group)
    joined: Any = await b.runtime.ask(group, join(beat.member_id))
    assert joined.generation_id == beat.generation_id + 1
    assert error(await a.runtime.ask(other, beat)) == "NOT_COORDINATOR"


async def test_what_a_zombie_had_decided_is_never_written_later(a: Manager) -> None:
    """Not even when the slot is its own again: what it gathered before is forgotten, not stored."""
    group = group_of(a)
    beat = await stable(a.runtime, group)
    turn_under_way = asyncio.create_task(a.runtime.ask(group, join(beat.member_id)))
    await turn()
    a.leases.lapses_at = 0
    a.runtime.slots.check_lease()
    assert error(await turn_under_way) in {"COORDINATOR_NOT_AVAILABLE", "NONE"}
    await a.look()
    stored = (await a.storage.load([group]))[group]
    described: Any = await a.runtime.ask(group, DescribeGroup())
    assert described.generation_id == max(getattr(row, "generation", 0) for row in stored)


async def test_a_manager_that_thaws_answers_nothing_that_matters(a: Manager, b: Manager) -> None:
    """Its lease has run out while it was frozen: the first thing it does is to step down."""
    group = group_of(a)
    beat = await stable(a.runtime, group)
    held = asyncio.create_task(
        a.runtime.ask(group, HeartbeatRequest(member_id=beat.member_id, generation_id=1, wait_ms=100_000))
    )
    await turn()
    a.expire()
    await b.look()
    a.leases.lapses_at = 0
    assert error(await a.runtime.ask(group, beat)) != "NONE"
    assert error(await held) != "NONE"
    refused: Any = await a.runtime.ask(group, beat)
    assert error(refused) != "NONE"
    await a.look()
    refused = await a.runtime.ask(group, beat)
    assert error(refused) == "NOT_COORDINATOR"
    assert refused.fields["coordinator"].id == "b"


async def test_a_stop_hands_over_at_once(a: Manager, b: Manager) -> None:
    """Who waits is told who comes next, who has it as soon as somebody asks; no lease has to end."""
    group = group_of(a)
    beat = await stable(a.runtime, group)
    held = asyncio.create_task(
        a.runtime.ask(group, HeartbeatRequest(member_id=beat.member_id, generation_id=1, wait_ms=100_000))
    )
    await turn()
    await a.controller.stop()
    refused: Any = await held
    assert error(refused) == "NOT_COORDINATOR"
    assert refused.fields["coordinator"].id == "b"
    b.look_by_itself()
    await b.runtime.ask(group, beat)
    await eventually(lambda: len(b.leases.in_state(SlotState.SERVING)) == SLOTS)
    assert error(await b.runtime.ask(group, beat)) == "NONE"


async def test_members_may_go_on_while_their_group_is_loaded(
    a: Manager, b: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heartbeats answer NONE, everything else COORDINATOR_LOAD_IN_PROGRESS; then all is as before."""
    group = group_of(a)
    beat = await stable(a.runtime, group)
    gate, names = asyncio.Event(), b.storage.group_sizes

    async def slowly() -> dict[str, int]:
        await gate.wait()
        return await names()

    monkeypatch.setattr(b.storage, "group_sizes", slowly)
    a.expire()
    await b.controller._look_safely()
    await eventually(lambda: b.leases.in_state(SlotState.LOADING))
    assert error(await b.runtime.ask(group, beat)) == "NONE"
    assert error(await b.runtime.ask(group, join(beat.member_id))) == "COORDINATOR_LOAD_IN_PROGRESS"
    held = asyncio.create_task(
        b.runtime.ask(group, HeartbeatRequest(member_id="stranger", generation_id=1, wait_ms=900))
    )
    await turn()
    gate.set()
    await b.moved()
    assert error(await held) == "NONE"
    assert error(await b.runtime.ask(group, beat)) == "NONE"
    assert error(await b.runtime.ask(group, join(beat.member_id))) == "NONE"


async def test_any_manager_answers_admins(a: Manager, b: Manager) -> None:
    """Who coordinates, which groups and managers there are, and whatever the owner has to say."""
    groups = {group_of(a), group_of(b)}
    for owner in (a, b):
        group = group_of(owner)
        await stable(owner.runtime, group)
        for manager in (a, b):
            _, found = await manager.http("GET", f"/v1/coordinator?group={group}")
            assert found["coordinator"] == {"id": owner.name, "url": owner.url}
            status, described = await manager.http("GET", f"/v1/groups/{group}")
            assert (status, described["state"], len(described["members"])) == (200, "Stable", 1)
            status, answer = await manager.http("POST", f"/v1/groups/{group}/tasks", {"task": "t"})
            assert (status, answer["error"]) == (400, "INVALID_REQUEST")
    for manager in (a, b):
        _, listed = await manager.http("GET", "/v1/groups")
        assert {line["group"]: line["state"] for line in listed["groups"]} == dict.fromkeys(groups, "Stable")
        _, listed = await manager.http("GET", "/v1/assignors")
        assert {line["group"]: line["members"] for line in listed["groups"]} == dict.fromkeys(groups, 1)
        _, listed = await manager.http("GET", "/v1/managers")
        assert [(m["id"], m["url"], m["alive"], m["slots"]) for m in listed["managers"]] == [
            ("a", a.url, True, SLOTS // 2),
            ("b", b.url, True, SLOTS // 2),
        ]
        assert {slot["manager"] for slot in listed["slots"]} == {"a", "b"}


async def test_any_manager_shows_any_group(a: Manager, b: Manager) -> None:
    """A group's pages are its manager's, under its policy; the overview and the workers have both."""
    groups = [group_of(a), group_of(b)]
    for owner, group in zip((a, b), groups, strict=True):
        await stable(owner.runtime, group)
    async with aiohttp.ClientSession() as browser:
        for path, words in (
            (f"/groups/{groups[1]}", ["Where it stands", 'class="state Stable lit"']),
            ("/", [f'href="/groups/{group}"' for group in groups]),
            ("/workers", ["Groups of other managers", *(f'href="/groups/{group}"' for group in groups)]),
        ):
            async with browser.get(a.url + path) as answer:
                html = await answer.text()
                assert answer.status == 200
                assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'")
            assert [word for word in words if word not in html] == []


async def test_a_member_is_told_where_to_go(a: Manager, b: Manager) -> None:
    """Its requests are not passed on: NOT_COORDINATOR names the one to ask."""
    group = group_of(b)
    body = {"member_id": "m", "generation_id": 1}
    status, answer = await a.http("POST", f"/v1/groups/{group}/heartbeat", body)
    assert (status, answer["error"]) == (421, "NOT_COORDINATOR")
    assert answer["coordinator"] == {"id": "b", "url": b.url}


async def test_conditions_are_passed_on_and_tags_passed_back(a: Manager, b: Manager) -> None:
    """A task is changed as it was seen through whichever manager."""
    task = f"{a.url}/v1/groups/{group_of(b)}/tasks/t"
    new = {"definition": {"source": {"format": "rate"}, "sink": {"format": "noop"}}}
    async with ClientSession() as client:
        for status in (201, 412):
            async with client.put(task, json=new, headers={"If-None-Match": "*"}) as put:
                assert put.status == status
        async with client.get(task) as shown:
            etag = shown.headers["ETag"]
        async with client.get(task, headers={"If-None-Match": etag}) as same:
            assert (same.status, same.headers["ETag"], await same.read()) == (304, etag, b"")


async def test_a_request_is_passed_on_once(a: Manager, b: Manager) -> None:
    """Two managers that each believe the other has the group do not play ball with it."""
    group = group_of(b)
    b.leases.close(dict.fromkeys(b.leases.in_state(SlotState.SERVING), a.me.incarnation))
    status, answer = await a.http("GET", f"/v1/groups/{group}")
    assert (status, answer["error"]) == (421, "NOT_COORDINATOR")


async def test_an_owner_that_cannot_be_reached_is_waited_for(a: Manager, b: Manager) -> None:
    """An admin is told to come again."""
    group = group_of(b)
    await b._runner.cleanup()
    status, answer = await a.http("GET", f"/v1/groups/{group}")
    assert (status, answer["error"]) == (503, "COORDINATOR_NOT_AVAILABLE")


async def test_the_second_process_of_an_id_ends_the_first(a: Manager) -> None:
    """Started again while it hung: the new one has everything, the old one finds out and gives up."""
    group = group_of(a)
    beat = await stable(a.runtime, group)
    again = ManagerIdentity(a.name, "a-2", a.url)
    await a.storage.leases.register(again, 600_000, is_starting=True)
    await a.look()
    assert isinstance(a.controller.deposed.result(), StartupError)
    assert error(await a.runtime.ask(group, beat)) != "NONE"


async def test_of_two_that_start_at_once_under_one_id_one_is_told_why_it_does_not(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line that names the setting."""
    storage = SqlStorage(database.url)
    node = await open_node(ManagerSettings(), storage, ManagerIdentity("a", "a-1", "http://a"))
    register = storage.leases.register

    async def overtaken(me: ManagerIdentity, lease_ms: int, *, is_starting: bool) -> None:
        await register(me, lease_ms, is_starting=is_starting)
        await register(ManagerIdentity(me.id, "a-rival", me.url), lease_ms, is_starting=True)

    monkeypatch.setattr(storage.leases, "register", overtaken)
    with pytest.raises(StartupError, match="--manager-id a: a manager of that id serves at"):
        await node.controller.start()
    await node.leave()


async def test_the_database_is_away_for_longer_than_a_lease(a: Manager, database: Database) -> None:
    """Nobody is answered, nobody is sent anywhere; and then it goes on where it was."""
    group = group_of(a)
    beat = await stable(a.runtime, group)
    database.run("ALTER TABLE slots RENAME TO elsewhere")
    a.leases.lapses_at = 0
    a.leases._believed_until = 0
    await a.look()
    assert error(await a.runtime.ask(group, beat)) == "COORDINATOR_NOT_AVAILABLE"
    assert (await a.http("GET", f"/v1/coordinator?group={group}"))[0] == 503
    assert (await a.http("GET", "/v1/managers"))[0] == 503
    database.run("ALTER TABLE elsewhere RENAME TO slots")
    await a.look()
    assert error(await a.runtime.ask(group, beat)) == "NONE"
