"""Webhooks, to receivers on real sockets that fail, hang, send elsewhere and die."""

from __future__ import annotations

import re
from collections import deque
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from manager.core.commands import CreateTask, NewDefinition
from manager.outbox import delivery, feed, http_poster, sender
from manager.outbox.outbox import Outbox
from manager.outbox.webhooks.webhook import webhooks_of
from manager.settings import ManagerSettings
from manager.storage.sql_storage import SqlStorage
from protocol.errors import Failure
from protocol.states import Target
from tests.fakes.turns import settle
from tests.integration.manager.receiver import HANG, Receiver
from tests.integration.node import started_node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from manager.outbox.sender import WebhookRouting
    from manager.runtime.coordinator_runtime import CoordinatorRuntime
    from tests.integration.manager.backends import Database

KEY = "correct horse battery staple"
PAGE = (Path(__file__).parents[3] / "docs" / "events.md").read_text()
DEFINITION = NewDefinition(msgspec.Raw(b"{}"), 1.0, None, {})


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of milliseconds."""
    monkeypatch.setattr(delivery, "FIRST_PAUSE_MS", 1)
    monkeypatch.setattr(delivery, "LONGEST_PAUSE_MS", 20)
    monkeypatch.setattr(sender, "PAUSE_S", 0.01)
    monkeypatch.setattr(sender, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(feed, "LOOK_EVERY_S", 0.01)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    opened = Receiver()
    await opened.open()
    yield opened
    await opened.close()


class Site:
    """A manager's groups, and its outbox, on a database of the test's own; each start is an event, too."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.runtime: CoordinatorRuntime
        self.storage: SqlStorage

    @asynccontextmanager
    async def telling(self, *urls: str, routing: WebhookRouting | None = None) -> AsyncIterator[None]:
        """From a manager's start to its stop."""
        self.storage = SqlStorage(self._url)
        node = await started_node(self.storage)
        self.runtime = node.runtime
        try:
            async with self.outbox(*urls, routing=routing or node.routing):
                yield
        finally:
            await node.leave()

    def outbox(self, *urls: str, routing: WebhookRouting) -> Outbox:
        """One that tells these webhooks when they are its own."""
        settings = ManagerSettings(webhook=urls, webhook_secret=("env:HOOK_KEY",))
        return Outbox(self.runtime.feed, self.storage.events, settings, routing)

    async def happen(self, *tasks: str) -> None:
        """One event for each of `tasks`."""
        for task in tasks:
            command = CreateTask(task=task, definition=DEFINITION, target=Target.RUNNING)
            assert not isinstance(await self.runtime.ask("g", command), Failure)

    async def stored(self, receiver: Receiver, position: int) -> None:
        """Wait until it is durable how far a webhook has come."""
        (webhook,) = webhooks_of([receiver.url], [])
        while await self.storage.events.position(webhook.name) < position:
            await settle()


@pytest.fixture
def site(database: Database, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("HOOK_KEY", KEY)
    return Site(database.url)


async def test_every_event_is_posted_in_order_and_signed_as_the_docs_say(
    site: Site, receiver: Receiver
) -> None:
    """The receiver's check is the one in docs/events.md; nothing that was changed on the way passes it."""
    async with site.telling(receiver.url):
        await site.happen("a", "b", "c")
        await receiver.until(lambda: len(receiver.got) == 3)
    assert [got.event["task"] for got in receiver.got] == ["a", "b", "c"]
    assert [got.event["id"] for got in receiver.got] == receiver.ids == [2, 3, 4]
    page: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0], page)
    first, second, _ = receiver.got
    assert first.headers["Content-Type"] == "application/json"
    assert page["is_genuine"](first.headers, first.body, KEY.encode())
    assert not page["is_genuine"](first.headers, second.body, KEY.encode())
    assert not page["is_genuine"](second.headers, first.body, KEY.encode())
    assert not page["is_genuine"](first.headers, first.body, b"another key")
    assert not page["is_genuine"](first.headers, first.body, KEY.encode(), within_s=-1)


@pytest.mark.parametrize("failure", [500, 503, 429, 404, 400])
async def test_what_is_not_taken_comes_again_until_it_is(
    site: Site, receiver: Receiver, failure: int
) -> None:
    """Whatever the answer, with the same id, and nothing overtakes it."""
    receiver.answers = deque([204, failure, failure, failure])
    async with site.telling(receiver.url):
        await site.happen("a", "b", "c")
        await receiver.until(lambda: receiver.ids[-1:] == [4])
    assert receiver.ids == [2, 3, 3, 3, 3, 4]


@pytest.mark.parametrize("redirect", [301, 302, 303, 307, 308])
async def test_redirects_lead_nowhere(site: Site, receiver: Receiver, redirect: int) -> None:
    """An event goes where it was said to go, or nowhere."""
    elsewhere = Receiver()
    await elsewhere.open()
    receiver.answers = deque([redirect, redirect])
    receiver.headers = {"Location": elsewhere.url}
    async with site.telling(receiver.url):
        await site.happen("a")
        await receiver.until(lambda: len(receiver.got) == 3)
    await elsewhere.close()
    assert (receiver.ids, elsewhere.got) == ([2, 2, 2], [])


async def test_a_receiver_that_hangs_is_given_up_and_asked_again(
    site: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have taken the event; that it comes again is what its id is for."""
    monkeypatch.setattr(http_poster, "ANSWER_S", 0.2)
    receiver.answers = deque([HANG, HANG])
    async with site.telling(receiver.url):
        await site.happen("a", "b")
        await receiver.until(lambda: receiver.ids[-1:] == [3])
    assert receiver.ids[:3] == [2, 2, 2]
    assert receiver.ids == sorted(receiver.ids)  # a slow machine may answer too late besides


async def test_one_webhook_that_is_dead_or_hangs_delays_no_other(site: Site, receiver: Receiver) -> None:
    """Nor the manager, which answers and stops as ever."""
    hanging, dead = Receiver(always=HANG), Receiver()
    await hanging.open()
    await dead.open()
    await dead.close()
    async with site.telling(dead.url, hanging.url, receiver.url):
        await site.happen("a", "b", "c")
        await receiver.until(lambda: receiver.ids == [2, 3, 4])
        await hanging.until(lambda: bool(hanging.got))
    assert set(hanging.ids) == {2}
    await hanging.close()


async def test_a_manager_that_starts_again_goes_on_where_the_webhook_was(
    site: Site, receiver: Receiver
) -> None:
    """What is durable is not repeated; what happened while it was not told comes then."""
    async with site.telling(receiver.url):
        await site.happen("a", "b")
        await site.stored(receiver, 3)
    async with site.telling():
        await site.happen("c")
    async with site.telling(receiver.url):
        await site.happen("d")
        await receiver.until(lambda: len(receiver.got) == 6)
    assert receiver.ids == [2, 3, 4, 5, 6, 7]


async def test_a_new_webhook_is_not_told_what_was_before_it(site: Site, receiver: Receiver) -> None:
    """It begins with the first start that knows it."""
    async with site.telling():
        await site.happen("a", "b")
    async with site.telling(receiver.url):
        await site.happen("c")
        await receiver.until(lambda: receiver.ids == [5])


async def test_a_receiver_that_was_away_too_long_is_told_what_it_missed(site: Site) -> None:
    """One event in the place of those that are not kept any more."""
    late = Receiver()
    await late.open()
    async with site.telling(late.url):
        await site.happen("a")
        await site.stored(late, 2)
    async with site.telling():
        await site.happen("b", "c", "d")
        await site.storage.events.prune(0, keep=1)
    async with site.telling(late.url):
        await late.until(lambda: len(late.got) == 4)
    await late.close()
    assert late.ids == [2, 5, 6, 7]
    assert (late.got[1].event["type"], late.got[1].event["after"]) == ("events.pruned", 2)


class Rota:
    """A `WebhookRouting` that a test gives and takes away."""

    def __init__(self) -> None:
        self.on = False
        self.denied = 0

    def is_mine(self, webhook: str) -> bool:
        del webhook
        self.denied += not self.on
        return self.on

    def epochs(self, _: Iterable[str]) -> Mapping[int, int]:
        return {}

    async def end(self) -> None:
        """Until whoever asks has found out; the second time it is told so it has left off."""
        self.on, self.denied = False, 0
        while self.denied < 2:
            await settle()


async def test_of_two_managers_the_one_whose_turn_it_is_tells(site: Site, receiver: Receiver) -> None:
    """When it changes the other goes on where the first one was: none is left out."""
    first, second = Rota(), Rota()
    async with site.telling(receiver.url, routing=first), site.outbox(receiver.url, routing=second):
        await site.happen("a")
        first.on = True
        await receiver.until(lambda: receiver.ids == [2])
        await first.end()
        second.on = True
        await site.happen("b", "c")
        await receiver.until(lambda: receiver.ids[-1] == 4)
        await second.end()
    assert receiver.ids == [2, 3, 4]
