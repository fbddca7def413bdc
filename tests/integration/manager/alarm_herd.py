"""A database with alarms in it, and the receivers of managers on it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from manager.metrics.meter import Meter
from manager.outbox import delivery, feed, sender
from manager.outbox.receivers import service
from manager.outbox.receivers.mail_subscriber import AddressSubscriber
from manager.outbox.receivers.service import AlarmReceivers
from manager.outbox.receivers.subscriber import PREFIX, AlarmSubscriber
from manager.storage.receiver_health import ReceiverHealth
from manager.storage.sql_storage import SqlStorage
from protocol.messages.alarm_notice import AlarmNotice, AlarmSubject, Severity
from protocol.messages.events import Event, EventType
from tests.fakes.turns import settle
from tests.integration.node import started_node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from pathlib import Path

    import pytest

    from manager.cluster.node import Node
    from tests.fakes.smtp_server import SmtpServerDouble


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of milliseconds."""
    monkeypatch.setattr(delivery, "FIRST_PAUSE_MS", 1)
    monkeypatch.setattr(delivery, "LONGEST_PAUSE_MS", 20)
    for subscriber in (AlarmSubscriber, AddressSubscriber):
        monkeypatch.setattr(subscriber, "longest_pause_ms", 20)
    monkeypatch.setattr(sender, "PAUSE_S", 0.01)
    monkeypatch.setattr(sender, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(feed, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(service, "LOOK_EVERY_S", 0.01)


class Rota:
    """A routing that a test gives and takes away."""

    def __init__(self, *, on: bool = True) -> None:
        self.on = on
        self.denied = 0

    def is_mine(self, webhook: str) -> bool:
        assert webhook.startswith(PREFIX)
        assert "/" not in webhook
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


async def until(holds: Any) -> None:
    async with asyncio.timeout(60):
        while not await holds():
            await settle()
