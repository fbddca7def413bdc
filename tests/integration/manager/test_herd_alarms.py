"""Alarms of managers and of the database, by real managers on a real PostgreSQL that stops."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from manager.core.alarms import herd_facts
from manager.core.turn import ClockReading
from manager.metrics.meter import Meter
from manager.outbox import feed, sender
from manager.outbox.receivers import direct
from manager.outbox.receivers.service import AlarmReceivers
from manager.storage.base import StorageError
from manager.watch import herd_watcher
from manager.watch.figures import own_figures
from manager.watch.herd_watcher import WATCH, HerdWatcher
from tests.integration.manager.managers import started
from tests.integration.manager.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AsyncExitStack
    from pathlib import Path

    from tests.integration.manager.backends import Database
    from tests.integration.manager.managers import Manager
    from tests.integration.postgres import Server

pytestmark = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
MINUTE: Final = 60_000
GONE: Final = {"name": "gone", "kind": "manager_gone", "for_ms": MINUTE, "receivers": ["ops"]}
FAILING: Final = {
    "name": "failing",
    "kind": "database_failing",
    "severity": "critical",
    "threshold": 20,
    "window_ms": MINUTE,
    "for_ms": 30_000,
    "receivers": ["ops", "pager"],
}


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who was there a moment ago knows who is silent; pauses of milliseconds."""
    monkeypatch.setattr(herd_facts, "SETTLE_MS", 0)
    monkeypatch.setattr(direct, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(sender, "PAUSE_S", 0.01)
    monkeypatch.setattr(sender, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(feed, "LOOK_EVERY_S", 0.01)


class Watching:
    """A manager that looks when the test says so, at the test's time."""

    def __init__(self, manager: Manager, receivers: AlarmReceivers) -> None:
        self.manager = manager
        self.receivers = receivers
        self.now = 1_000_000
        node = manager.node
        self.watcher = HerdWatcher(
            manager.me,
            node.herd,
            node.alarms,
            node.routing,
            receivers,
            figures=lambda: own_figures(node.tally, lambda: 0.0),
            wake=node.runtime.feed.wake,
            is_alone=False,
            firing=node.runtime.meter.herd_alarms_fire,
            clock=lambda: ClockReading(self.now, self.now),
        )

    @property
    def is_watching(self) -> bool:
        return self.manager.node.routing.is_mine(WATCH)

    async def look(self) -> None:
        """Five seconds later."""
        self.now += 5000
        await self.watcher.step()

    def shown(self, severity: str) -> float | None:
        """What a scrape would show of what fires."""
        registry = self.manager.node.runtime.meter.instruments.registry
        return registry.get_sample_value("sparkherd_herd_alarms_firing", {"severity": severity})

    async def look_in_vain(self) -> None:
        """Five seconds later, without a database."""
        with pytest.raises(StorageError):
            await self.look()


class Herd:
    """Three managers, and what they have told."""

    def __init__(self, database: Database, watching: list[Watching]) -> None:
        self.database = database
        self.watching = watching

    @property
    def watcher(self) -> Watching:
        (found,) = [each for each in self.watching if each.is_watching]
        return found

    @property
    def others(self) -> list[Watching]:
        return [each for each in self.watching if not each.is_watching]

    async def use(self, *rules: dict[str, Any]) -> None:
        """From now on these rules count."""
        status, answer = await self.watching[0].manager.http(
            "PUT", "/v1/alarms/rules", {"rules": list(rules)}
        )
        assert status == 200, answer
        for each in self.watching:
            await each.manager.node.alarms.read()

    async def look(self) -> None:
        """All of them."""
        for each in self.watching:
            await each.look()

    def kill(self, dead: Watching) -> None:
        """It does nothing any more, and has not ended in order."""
        self.watching.remove(dead)
        dead.manager.expire()

    def pass_time(self, name: str, ms: int) -> None:
        """By the database's clock a manager has been silent for that much longer."""
        self.database.run(
            f"UPDATE manager_figures SET told_at_ms = told_at_ms - {ms} WHERE manager_id = '{name}'"
        )

    async def take_over(self) -> None:
        """Whoever is left has what the dead ones had."""
        for each in self.watching * 2:
            await each.manager.look()

    async def told(self) -> Counter[tuple[str, str, str | None]]:
        """How often what was told of which manager, or of the database."""
        page = await self.watching[0].manager.node.events.read(0, 1000)
        return Counter(
            (event.type, event.alarm.rule, subject.manager)
            for event in page.events
            if event.alarm is not None
            for subject in event.alarm.subjects
        )

    async def listed(self) -> list[dict[str, Any]]:
        """What `GET /v1/alarms` has."""
        _, answer = await self.watching[0].manager.http("GET", "/v1/alarms")
        return list(answer["alarms"])


@pytest.fixture
async def hook() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    await receiver.open()
    yield receiver
    await receiver.close()


@pytest.fixture
async def pager() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    await receiver.open()
    yield receiver
    await receiver.close()


@pytest.fixture
async def herd(
    database: Database, stack: AsyncExitStack, tmp_path: Path, hook: Receiver, pager: Receiver
) -> Herd:
    (tmp_path / "key").write_text("very-secret")
    file = tmp_path / "receivers.yaml"
    declared = {
        "ops": {"kind": "webhook", "url": hook.url},
        "pager": {"kind": "pagerduty", "routing_key": "${file:key}", "url": pager.url},
    }
    file.write_text(yaml.safe_dump({"receivers": declared}))
    watching = []
    for name in ("a", "b", "c"):
        manager = await started(database, stack, name)
        node = manager.node
        receivers = AlarmReceivers(str(file), node.runtime.feed, node.events, node.routing, Meter())
        await stack.enter_async_context(receivers)
        watching.append(Watching(manager, receivers))
    herd = Herd(database, watching)
    await herd.take_over()
    return herd


async def test_a_dead_manager_is_told_once_across_a_takeover_of_the_one_that_watches(herd: Herd) -> None:
    """The one that watches tells, and dies; the last one tells only of that; who comes back is told once."""
    await herd.use(GONE)
    await herd.look()
    dead = herd.others[0]
    herd.kill(dead)
    herd.pass_time(dead.manager.name, 90_000)
    for _ in range(3):
        await herd.look()
    first = herd.watcher
    assert [each.shown("warning") for each in (first, *herd.others)] == [1, None]
    assert first.shown("critical") == 0
    herd.kill(first)
    await herd.take_over()
    herd.pass_time(first.manager.name, 90_000)
    for _ in range(3):
        await herd.look()
    expected = {("alarm.firing", "gone", each.manager.name): 1 for each in (dead, first)}
    assert await herd.told() == Counter(expected)
    shown = [(each["group"], each["manager"], each["state"]) for each in await herd.listed()]
    assert sorted(shown) == sorted((None, each.manager.name, "firing") for each in (dead, first))
    await dead.watcher.step()
    for _ in range(3):
        await herd.look()
    assert await herd.told() == Counter(expected | {("alarm.resolved", "gone", dead.manager.name): 1})


async def test_patience_goes_on_across_a_takeover(herd: Herd) -> None:
    """It counts from when the dead manager was there last, which is stored: the next one need not begin."""
    await herd.use(GONE)
    await herd.look()
    dead = herd.others[0]
    herd.kill(dead)
    herd.pass_time(dead.manager.name, 30_000)
    await herd.look()
    assert await herd.told() == Counter()
    first = herd.watcher
    herd.kill(first)
    await herd.take_over()
    herd.pass_time(dead.manager.name, 40_000)
    await herd.look()
    assert await herd.told() == Counter({("alarm.firing", "gone", dead.manager.name): 1})


async def test_who_watches_for_too_long_tells_nothing(herd: Herd, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was frozen between its look and its word: its epoch is of before, so nothing is told."""
    await herd.use(GONE)
    await herd.look()
    dead, zombie = herd.others[0], herd.watcher
    herd.kill(dead)
    herd.pass_time(dead.manager.name, 90_000)
    table = zombie.manager.node.herd
    tell = table.tell

    async def freeze(*args: Any) -> Any:
        view = await tell(*args)
        herd.kill(zombie)
        await herd.take_over()
        return view

    monkeypatch.setattr(table, "tell", freeze)
    await zombie.look()
    assert await herd.told() == Counter()
    await herd.look()
    assert await herd.told() == Counter({("alarm.firing", "gone", dead.manager.name): 1})


async def test_who_ends_in_order_is_not_missed(herd: Herd) -> None:
    """Nor is the one that watched: a rolling restart rings nothing."""
    await herd.use(GONE)
    await herd.look()
    leaving = herd.watcher
    await leaving.watcher.leave()
    herd.kill(leaving)
    await herd.take_over()
    for _ in range(30):
        await herd.look()
    assert await herd.told() == Counter()
    assert herd.database.value("SELECT count(*) FROM manager_figures") == 2


async def test_what_fires_of_no_group_is_acknowledged_by_whichever_manager(herd: Herd) -> None:
    """And told again no more; the first name stays."""
    await herd.use(GONE | {"repeat_every_ms": MINUTE})
    await herd.look()
    dead = herd.others[0]
    herd.kill(dead)
    herd.pass_time(dead.manager.name, 90_000)
    await herd.look()
    for by, times in (("ann", 1), ("bob", 0)):
        body = {"rule": "gone", "by": by, "manager": dead.manager.name}
        status, answer = await herd.others[0].manager.http("POST", "/v1/alarms/acknowledge", body)
        assert (status, answer["acknowledged"]) == (200, times)
    assert [each["acknowledged_by"] for each in await herd.listed()] == ["ann"]
    for _ in range(30):
        await herd.look()
    assert await herd.told() == Counter({("alarm.firing", "gone", dead.manager.name): 1})


async def test_a_database_that_is_away_is_told_while_it_is_and_its_end_once(
    herd: Herd, postgres: Server, hook: Receiver, pager: Receiver
) -> None:
    """Each manager tells by itself, from memory, under one key; the end comes by the log, once."""
    await herd.use(FAILING)
    for _ in range(4):
        await herd.look()
    assert hook.got == []
    postgres.stop()
    try:
        for _ in range(20):
            for each in herd.watching:
                await each.look_in_vain()
        await hook.until(lambda: len(hook.got) == 3)
        await pager.until(lambda: len(pager.got) == 3)
        first = hook.got[0].event
        assert (first["type"], first["alarm"]["rule"], first["id"]) == ("alarm.firing", "failing", 0)
        keys = {(got.event["dedup_key"], got.event["event_action"]) for got in pager.got}
        assert keys == {("sparkherd/failing", "trigger")}
    finally:
        postgres.start()
    for _ in range(60):
        await herd.look()
    await pager.until(lambda: len(pager.got) == 4)
    await hook.until(lambda: len(hook.got) == 4)
    assert pager.got[-1].event["event_action"] == "resolve"
    assert hook.got[-1].event["type"] == "alarm.resolved"
    once = {("alarm.firing", "failing", None): 1, ("alarm.resolved", "failing", None): 1}
    assert await herd.told() == Counter(once)
    assert await herd.listed() == []


async def test_who_has_not_taken_the_word_while_the_database_was_away_gets_it_after(
    herd: Herd, postgres: Server, hook: Receiver, pager: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the log, as any alarm; whoever has taken it does not get it again."""
    await herd.use(FAILING)
    for _ in range(4):
        await herd.look()
    monkeypatch.setattr(direct, "FIRST_PAUSE_S", 3600.0)
    hook.always = 503
    postgres.stop()
    try:
        for _ in range(20):
            await herd.watcher.look_in_vain()
        await pager.until(lambda: len(pager.got) == 1)
        await hook.until(lambda: len(hook.got) == 1)
    finally:
        postgres.start()
    hook.always = 204
    herd.watching = [herd.watcher]
    await herd.look()
    await hook.until(lambda: len(hook.got) == 2)
    assert hook.ids[0] == 0 < hook.ids[1]
    page = await herd.watcher.manager.node.events.read(0, 1000)
    assert [event.alarm.receivers for event in page.events if event.alarm is not None] == [("ops",)]
    assert len(pager.got) == 1


async def test_a_database_that_can_be_read_and_not_written_is_told(
    herd: Herd, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says nothing to who tells of itself, as another connection holds the table; rules can be read."""
    await herd.use(FAILING)
    watching = herd.watcher
    for _ in range(4):
        await watching.look()
    monkeypatch.setattr(herd_watcher, "ANSWER_S", 0.1)
    with herd.database.transaction() as other:
        other.exec_driver_sql("LOCK TABLE manager_figures IN ACCESS EXCLUSIVE MODE")
        for _ in range(12):
            await watching.look_in_vain()
            await watching.manager.node.alarms.read()
        await hook.until(lambda: len(hook.got) == 1)
    (subject,) = hook.got[0].event["alarm"]["subjects"]
    assert subject["causes"][1] == "the database gave no answer within 0.1 s"
    monkeypatch.setattr(herd_watcher, "ANSWER_S", 60.0)
    herd.watching = [watching]
    for _ in range(30):
        await herd.look()
    await hook.until(lambda: len(hook.got) == 2)
    assert hook.got[1].event["type"] == "alarm.resolved"
