"""Alarms of a herd of managers on a real database: rules over HTTP, and takeovers that ring once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from manager.core.tasks import alarm_watch
from manager.http.front import reading
from protocol.messages.alarms import LONGEST_SILENCE_MS
from tests.fakes.turns import PATIENCE_S
from tests.integration.manager.managers import started

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from tests.integration.manager.backends import Database
    from tests.integration.manager.managers import Manager

pytestmark = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
GROUP = "g1"
MINUTE_MS = 60_000
UNASSIGNED = {"name": "unassigned", "kind": "unassigned", "receivers": ["ops"]}
DEFINITION = {"entrypoint": "a:b"}


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups are looked at all the time, and at once when they were taken up."""
    monkeypatch.setattr(alarm_watch, "EVERY_MS", 1)
    monkeypatch.setattr(alarm_watch, "SETTLE_MS", 0)


async def told(manager: Manager) -> Counter[tuple[str, str]]:
    """How often what was told of which task."""
    page = await manager.node.events.read(0, 1000)
    return Counter(
        (event.type, str(subject.task))
        for event in page.events
        if event.alarm is not None
        for subject in event.alarm.subjects
    )


async def create(manager: Manager, task: str) -> None:
    status, _ = await manager.http(
        "POST", f"/v1/groups/{GROUP}/tasks", {"task": task, "definition": DEFINITION}
    )
    assert status == 201


async def rings(manager: Manager, task: str) -> None:
    """A new task of which there is to be an alarm: whoever has the group has looked at it when that rang."""
    await create(manager, task)

    await was_told(manager, "alarm.firing", task)


async def was_told(manager: Manager, what: str, task: str) -> None:
    """Follow the events until it comes."""
    async with asyncio.timeout(PATIENCE_S), aclosing(manager.runtime.feed.follow(0, None, 0.1)) as pages:
        async for _ in pages:
            if (what, task) in await told(manager):
                return


async def test_takeovers_ring_once(database: Database, stack: AsyncExitStack) -> None:
    """Three managers have the group in turn; each looks at it, and none tells what another one has told."""
    managers = [await started(database, stack, name) for name in ("a", "b", "c")]
    for manager in managers * 2:
        await manager.look()
    status, _ = await managers[0].http("PUT", "/v1/alarms/rules", {"rules": [UNASSIGNED]})
    assert status == 200
    for manager in managers:
        await manager.node.alarms.read()
    for number in range(3):
        holder = next(each for each in managers if each.leases.serves(GROUP))
        await rings(holder, f"t{number}")
        managers.remove(holder)
        if managers:
            holder.expire()
        for manager in managers * 2:
            await manager.look()
    assert managers == []
    assert await told(holder) == Counter({("alarm.firing", f"t{number}"): 1 for number in range(3)})


async def test_an_alarm_is_seen_acknowledged_silenced_and_resolved_over_http(a: Manager) -> None:
    """All of it, with one problem on the way that names its field."""
    wrong = {"rules": [UNASSIGNED | {"threshold": 1}]}
    status, answer = await a.http("PUT", "/v1/alarms/rules", wrong)
    assert (status, answer["problems"][0]["path"]) == (400, "rules[0].threshold")
    status, answer = await a.http("PUT", "/v1/alarms/rules", {"rules": [UNASSIGNED], "validate_only": True})
    assert (status, answer["version"]) == (200, 0)
    status, answer = await a.http("PUT", "/v1/alarms/rules", {"rules": [UNASSIGNED]})
    assert (status, answer["version"], answer["etag"]) == (200, 1, '"1"')
    silence = {"ends_at_ms": in_ms(MINUTE_MS), "reason": "upgrade", "by": "ann", "tasks": "quiet*"}
    status, answer = await a.http("POST", "/v1/alarms/silences", silence)
    assert status == 201
    await create(a, "quiet1")
    await rings(a, "loud")
    acknowledged = {"rule": "unassigned", "task": "loud", "by": "bob"}
    path = f"/v1/groups/{GROUP}/alarms"
    assert (await a.http("POST", f"{path}/acknowledge", acknowledged))[1]["acknowledged"] == 1
    assert (await a.http("POST", f"{path}/acknowledge", acknowledged))[1]["acknowledged"] == 0
    status, refused = await a.http("GET", f"{path}?after=x")
    assert (status, refused["message"]) == (400, "after: is not the next of a page of alarms")
    of_group = await listed(a, path)
    _, first = await a.http("GET", f"{path}?limit=1")
    assert [*(await listed(a, f"{path}?after={first['next']}", whole=False))] == [*of_group][1:]
    assert of_group == await listed(a, "/v1/alarms")
    assert of_group == {"loud": ("firing", "bob", False), "quiet1": ("firing", None, True)}
    await a.http("DELETE", f"/v1/alarms/silences/{answer['silence']['id']}")
    assert (await a.http("GET", "/v1/alarms/silences"))[1]["silences"] == []
    await a.http("DELETE", f"/v1/groups/{GROUP}/tasks/loud")
    await was_told(a, "alarm.resolved", "loud")
    assert (await listed(a, f"{path}?past=200"))["loud"] == ("resolved", "bob", False)


def in_ms(later: int) -> int:
    return int(time.time() * 1000) + later


@pytest.mark.parametrize(
    ("later", "status", "message"),
    [
        (LONGEST_SILENCE_MS - MINUTE_MS, 201, None),
        (LONGEST_SILENCE_MS + MINUTE_MS, 400, "ends_at_ms: is more than ten years away"),
        (-1, 400, "ends_at_ms: is over already"),
    ],
)
async def test_a_silence_ends_within_ten_years(
    a: Manager, later: int, status: int, message: str | None
) -> None:
    """One that was to end in the year 287396 would never be looked at again."""
    silence = {"ends_at_ms": in_ms(later), "reason": "upgrade", "by": "ann"}
    told, answer = await a.http("POST", "/v1/alarms/silences", silence)
    assert (told, answer.get("message")) == (status, message)


@pytest.mark.parametrize("field", ["rules", "groups", "tasks"])
async def test_a_silence_has_so_many_wildcards_at_most(a: Manager, field: str) -> None:
    """All that fires is compared with all silences."""
    silence = {"ends_at_ms": in_ms(MINUTE_MS), "reason": "upgrade", "by": "ann", field: "?" * 33}
    status, answer = await a.http("POST", "/v1/alarms/silences", silence)
    assert (status, answer["message"]) == (400, f"{field}: has 33 times * or ?, and may have 32")


async def listed(manager: Manager, path: str, *, whole: bool = True) -> dict[str, tuple[Any, ...]]:
    """The alarms that are answered, by task."""
    _, answer = await manager.http("GET", path)
    assert answer["error"] == "NONE", answer
    assert not whole or answer["total"] == len(answer["alarms"])
    return {
        each["task"]: (each["state"], each["acknowledged_by"], each["silenced"]) for each in answer["alarms"]
    }


async def test_of_two_who_have_seen_the_same_rules_one_is_refused(a: Manager) -> None:
    """By the version in the database, whichever manager they ask."""
    table = a.storage.alarms
    seen = await table.rules()
    assert await table.put_rules((), seen.version)
    assert not await table.put_rules((), seen.version)
    assert (await table.rules()).version == seen.version + 1


async def test_a_key_that_is_there_twice_is_refused(a: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its place, be the body short or long: the rules that somebody believes in are not to be others."""
    twice = b'{"rules": [{"name": "r", "kind": "lag_rows", "threshold": 1, "threshold": 900}]}'
    for looked_at_once in (len(twice), 0):
        monkeypatch.setattr(reading, "LOOKED_AT_ONCE", looked_at_once)
        async with (
            aiohttp.ClientSession() as client,
            client.put(f"{a.url}/v1/alarms/rules", data=twice) as answer,
        ):
            refused = await answer.json()
        assert (answer.status, refused["error"], refused["message"]) == (
            400,
            "INVALID_REQUEST",
            "rules[0].threshold: the key is there twice",
        )
    assert (await a.http("GET", "/v1/alarms/rules"))[1]["rules"] == []


async def test_a_rule_of_a_newer_version_is_kept_and_told(a: Manager, database: Database) -> None:
    """It is in the database when this manager comes; others are replaced around it, and the page shows it."""
    newer = '{"name":"newer","kind":"not_made_yet","x":1}'
    database.run(f"UPDATE alarm_documents SET version = 1, body = '[{newer}]' WHERE name = 'rules'")
    await a.node.alarms.read()
    told = {"name": "newer", "kind": "not_made_yet", "why": "kind: Invalid enum value 'not_made_yet'"}
    _, answer = await a.http("GET", "/v1/alarms/rules")
    assert (answer["rules"], answer["unread"]) == ([], [told])
    status, answer = await a.http("PUT", "/v1/alarms/rules", {"rules": [UNASSIGNED]})
    assert (status, len(answer["rules"]), answer["unread"]) == (200, 1, [told])
    stored = database.value("SELECT convert_from(body, 'UTF8') FROM alarm_documents WHERE name = 'rules'")
    assert stored.startswith(f"[{newer},")


async def test_a_tag_that_is_not_the_present_one_is_refused(a: Manager) -> None:
    """With what is there."""
    async with (
        aiohttp.ClientSession() as client,
        client.put(f"{a.url}/v1/alarms/rules", json={"rules": []}, headers={"If-Match": '"7"'}) as answer,
    ):
        assert answer.status == 412
        assert (await answer.json())["etag"] == '"0"'
