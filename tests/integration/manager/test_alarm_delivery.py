"""Alarms on their way from the log to receivers that are well, down, or away (SQLite and PostgreSQL)."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from manager.metrics.meter import Meter
from manager.outbox import delivery, feed, sender
from manager.outbox.receivers import health
from manager.outbox.receivers.service import AlarmReceivers
from manager.outbox.receivers.subscriber import PREFIX
from manager.storage.receiver_health import ReceiverHealth
from manager.storage.sql_storage import SqlStorage
from protocol.messages.alarm_notice import AlarmNotice, AlarmSubject, Severity
from protocol.messages.alarm_receivers import ReceiverState
from protocol.messages.events import Event, EventType
from tests.fakes.smtp_server import HANG as HANGS
from tests.fakes.smtp_server import SmtpServerDouble
from tests.fakes.turns import settle
from tests.integration.manager.receiver import Receiver
from tests.integration.node import started_node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from pathlib import Path

    from manager.cluster.node import Node
    from tests.integration.manager.backends import Database


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of milliseconds."""
    monkeypatch.setattr(delivery, "FIRST_PAUSE_MS", 1)
    monkeypatch.setattr(delivery, "LONGEST_PAUSE_MS", 20)
    monkeypatch.setattr("manager.outbox.receivers.subscriber.AlarmSubscriber.longest_pause_ms", 20)
    monkeypatch.setattr(sender, "PAUSE_S", 0.01)
    monkeypatch.setattr(sender, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(feed, "LOOK_EVERY_S", 0.01)


class Rota:
    """A routing that a test gives and takes away."""

    def __init__(self, *, on: bool = True) -> None:
        self.on = on
        self.denied = 0

    def is_mine(self, webhook: str) -> bool:
        assert webhook.startswith(PREFIX)
        self.denied += not self.on
        return self.on

    def epochs(self, _: Iterable[str]) -> Mapping[int, int]:
        return {}


class Herd:
    """A database, managers' receivers on it, and alarms that happen."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.file = folder / "receivers.yaml"
        self.storage: SqlStorage
        self.node: Node
        self.meter = Meter()

    def declare(self, smtp: SmtpServerDouble | None = None, **receivers: dict[str, Any]) -> None:
        """What the file says from now on."""
        document: dict[str, Any] = {"receivers": receivers}
        if smtp is not None:
            document["smtp"] = {
                "host": "127.0.0.1",
                "port": smtp.port,
                "from": "h@example.com",
                "tls": "none",
            }
        self.file.write_bytes(msgspec.json.encode(document))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        self.storage = SqlStorage(self.url)
        self.node = await started_node(self.storage)
        try:
            yield
        finally:
            await self.node.leave()

    def manager(self, routing: Rota | None = None) -> AlarmReceivers:
        """The receivers of one manager, which tells them when it is its turn."""
        return AlarmReceivers(
            str(self.file), self.node.runtime.feed, self.storage.events, routing or Rota(), self.meter
        )

    async def alarm(self, *receivers: str, rule: str = "lag") -> None:
        """One event, as a group's transaction writes it."""
        notice = AlarmNotice(
            rule=rule,
            kind="lag",
            severity=Severity.WARNING,
            receivers=receivers,
            subjects=(AlarmSubject(since_ms=1, task="t"),),
            count=1,
        )
        await self.storage.commit(
            [Event(id=0, at_ms=1, type=EventType.ALARM_FIRING, group="g", alarm=notice)]
        )
        self.node.runtime.feed.wake()

    async def health(self, receiver: str) -> ReceiverHealth:
        return (await self.storage.events.health()).get(PREFIX + receiver, ReceiverHealth())

    async def alarms_about_receivers(self) -> list[Event]:
        page = await self.storage.events.read(0, 1000)
        return [event for event in page.events if event.alarm and event.alarm.kind == "receiver_away"]

    def counted(self, receiver: str, result: str) -> float | None:
        labels = {"receiver": receiver, "result": result}
        registry = self.meter.instruments.registry
        return registry.get_sample_value("sparkherd_alarm_messages_total", labels)

    def away(self, receiver: str) -> float | None:
        registry = self.meter.instruments.registry
        return registry.get_sample_value("sparkherd_alarm_receiver_away", {"receiver": receiver})


@pytest.fixture
async def herd(database: Database, tmp_path: Path) -> AsyncIterator[Herd]:
    made = Herd(database.url, tmp_path)
    async with made.open():
        yield made


@pytest.fixture
async def hook() -> AsyncIterator[Receiver]:
    opened = Receiver()
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def other() -> AsyncIterator[Receiver]:
    opened = Receiver()
    await opened.open()
    yield opened
    await opened.close()


def webhook(to: Receiver, **more: Any) -> dict[str, Any]:
    return {"kind": "webhook", "url": to.url, **more}


def rules(of: Receiver) -> list[str]:
    return [got.event["alarm"]["rule"] for got in of.got]


async def until(holds: Any) -> None:
    async with asyncio.timeout(60):
        while not await holds():
            await settle()


async def test_a_receiver_is_told_the_alarms_that_name_it_and_nothing_else(
    herd: Herd, hook: Receiver, other: Receiver
) -> None:
    """In order, from the first start that knows it."""
    herd.declare(ops=webhook(hook), dev=webhook(other))
    await herd.alarm("ops", rule="before")
    async with herd.manager():
        await herd.alarm("ops", rule="a")
        await herd.alarm("dev", rule="b")
        await herd.alarm("ops", "dev", rule="c")
        await herd.alarm("nobody", rule="d")
        await herd.alarm("ops", rule="e")
        await hook.until(lambda: len(hook.got) == 3)
        await other.until(lambda: len(other.got) == 2)
    assert (rules(hook), rules(other)) == (["a", "c", "e"], ["b", "c"])
    assert (herd.counted("ops", "taken"), herd.counted("ops", "refused")) == (3, 0)


async def test_a_receiver_that_is_down_misses_nothing_and_delays_no_other(
    herd: Herd, hook: Receiver, other: Receiver
) -> None:
    """All come in order when it is up again; the other one has had them long before."""
    herd.declare(ops=webhook(hook), dev=webhook(other))
    port = int(hook.url.split(":")[2].split("/")[0])
    async with herd.manager():
        await hook.close()
        for rule in "abcde":
            await herd.alarm("ops", "dev", rule=rule)
        await other.until(lambda: len(other.got) == 5)
        assert hook.got == []
        await hook.open(port)
        await hook.until(lambda: len(hook.got) == 5)
    assert rules(hook) == rules(other) == list("abcde")


async def test_another_manager_goes_on_where_the_first_was_killed(herd: Herd, hook: Receiver) -> None:
    """At most the one under way comes twice, here while the first one waits for its answer."""
    herd.declare(ops=webhook(hook))
    first, second = Rota(), Rota(on=False)
    async with herd.manager(second):
        async with herd.manager(first):
            await herd.alarm("ops", rule="a")
            await hook.until(lambda: rules(hook) == ["a"])
            await until(lambda: _is_at(herd, 2))
            hook.answers = deque([0])
            await herd.alarm("ops", rule="b")
            await hook.until(lambda: rules(hook) == ["a", "b"])
        second.on = True
        await herd.alarm("ops", rule="c")
        await hook.until(lambda: rules(hook)[-1] == "c")
    assert rules(hook) == ["a", "b", "b", "c"]


async def _is_at(herd: Herd, position: int) -> bool:
    return await herd.storage.events.position(f"{PREFIX}ops") >= position


async def test_one_that_is_away_is_an_alarm_to_the_fallbacks_told_once_by_all_managers(
    herd: Herd, hook: Receiver, other: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its coming back is, too, whichever manager sees it."""
    monkeypatch.setattr(health, "AWAY_AFTER_MS", 50)
    herd.declare(ops=webhook(hook), dev=webhook(other, fallback=True))
    hook.always = 503
    async with herd.manager():
        await herd.alarm("ops", rule="a")
        await other.until(lambda: bool(other.got))
        assert herd.away("ops") == 1
    before = len(hook.got)
    async with herd.manager():
        await hook.until(lambda: len(hook.got) > before + 3)
        hook.always = 204
        await other.until(lambda: other.got[-1].event["type"] == "alarm.resolved")
    told = await herd.alarms_about_receivers()
    assert [(event.type, event.alarm and event.alarm.receivers) for event in told] == [
        (EventType.ALARM_FIRING, ("dev",)),
        (EventType.ALARM_RESOLVED, ("dev",)),
    ]
    assert told[0].alarm is not None
    assert told[0].alarm.subjects[0].causes == ("HTTP 503",)
    back = await herd.health("ops")
    assert (back.state, back.last_error) == (ReceiverState.DELIVERING, "HTTP 503")


async def test_how_long_it_has_failed_is_known_to_the_manager_that_goes_on(
    herd: Herd, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The five minutes do not begin anew with each manager."""
    herd.declare(ops=webhook(hook))
    hook.always = 500
    async with herd.manager():
        await herd.alarm("ops")
        await until(lambda: _is(herd, ReceiverState.FAILING))
    failing = await herd.health("ops")
    assert failing.since_ms is not None
    monkeypatch.setattr(health, "AWAY_AFTER_MS", 0)
    async with herd.manager():
        await until(lambda: _is(herd, ReceiverState.AWAY))
    assert (await herd.health("ops")).since_ms == failing.since_ms
    assert len(await herd.alarms_about_receivers()) == 1


async def _is(herd: Herd, state: ReceiverState) -> bool:
    return (await herd.health("ops")).state is state


async def test_what_a_chat_never_takes_is_given_up_and_the_next_one_comes(herd: Herd, hook: Receiver) -> None:
    """After three tries, and it is counted."""
    herd.declare(ops={"kind": "slack", "url": hook.url})
    hook.answers = deque([400, 500, 400, 400, 400])
    async with herd.manager():
        await herd.alarm("ops", rule="bad")
        await herd.alarm("ops", rule="good")
        await hook.until(lambda: len(hook.got) == 6)
        await until(lambda: _is(herd, ReceiverState.DELIVERING))
    assert ["bad" in got.body.decode() for got in hook.got] == [True] * 5 + [False]
    assert (herd.counted("ops", "given_up"), herd.counted("ops", "refused")) == (1, 5)


async def test_a_mail_server_that_hangs_delays_no_chat(herd: Herd, hook: Receiver) -> None:
    """And is left at once when the manager stops."""
    server = SmtpServerDouble(always={"EHLO": HANGS})
    await server.open()
    herd.declare(server, ops={"kind": "email", "to": ["a@example.com"]}, chat=webhook(hook))
    async with herd.manager():
        await herd.alarm("ops", "chat")
        await server.until(lambda: len(server.said) > 1)
        await herd.alarm("ops", "chat")
        await hook.until(lambda: len(hook.got) == 2)
    await server.close()


async def test_the_file_is_read_again_and_a_bad_one_changes_nothing(
    herd: Herd, hook: Receiver, other: Receiver
) -> None:
    """A receiver that stays goes on where it was; one that is new begins with what comes."""
    herd.declare(ops=webhook(hook))
    names = []
    async with herd.manager() as receivers:
        await herd.alarm("ops", "dev", rule="a")
        await until(lambda: _is_at(herd, 2))
        herd.file.write_text("receivers: {ops: {kind: nonsense}}")
        await receivers.reload()
        names.append(receivers.names)
        herd.declare(ops=webhook(hook), dev=webhook(other))
        await receivers.reload()
        names.append(receivers.names)
        await herd.alarm("ops", "dev", rule="b")
        await hook.until(lambda: len(hook.got) == 2)
        await other.until(lambda: len(other.got) == 1)
    assert names == [("ops",), ("ops", "dev")]
    assert (rules(hook), rules(other)) == (["a", "b"], ["b"])


async def test_all_managers_know_how_a_receiver_is_and_any_of_them_can_try_it(
    herd: Herd, hook: Receiver
) -> None:
    """No URL is shown; a test changes nothing of what waits."""
    herd.declare(
        ops=webhook(hook, fallback=True),
        pager={"kind": "pagerduty", "routing_key": "${file:key}", "url": hook.url},
    )
    (herd.file.parent / "key").write_text("very-secret")
    hook.always = 404
    async with herd.manager(), herd.manager(Rota(on=False)) as idle:
        await herd.alarm("ops")
        await until(lambda: _is(herd, ReceiverState.FAILING))
        listed = (await idle.listed()).receivers
        assert [(each.name, each.kind, each.fallback, each.state) for each in listed] == [
            ("ops", "webhook", True, ReceiverState.FAILING),
            ("pager", "pagerduty", False, ReceiverState.NEW),
        ]
        assert listed[0].last_error == "HTTP 404"
        assert b"secret" not in msgspec.json.encode(listed)
        refused, unknown = await idle.test("ops"), await idle.test("nobody")
        assert refused is not None
        assert (refused.delivered, refused.reason, unknown) == (False, "HTTP 404", None)
        hook.always = 204
        taken = await idle.test("pager")
        assert taken is not None
        assert taken.delivered
    actions = [got.event.get("event_action") for got in hook.got if b"dedup_key" in got.body]
    assert actions == ["trigger", "resolve"]
