"""Managers killed between a change and what the outside hears of it: nothing is missing, nothing made up."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cli.client.admin_client import AdminClient, UnreachableError, path_of
from protocol.errors import RefusedError
from protocol.messages.events import Event, EventListResponse
from protocol.messages.tasks import CreateTaskRequest, TaskListResponse, TaskResponse
from tests.acceptance.processes import Manager
from tests.acceptance.receiver import receiving
from tests.acceptance.waiting import eventually
from tests.integration.postgres import running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.acceptance.receiver import Receiver

pytestmark = [pytest.mark.processes, pytest.mark.timeout(1200)]

KEY = "correct horse battery staple"
ROUNDS = 4
PER_ROUND = 10
DEFINITION = msgspec.Raw(msgspec.json.encode({"source": {"format": "rate"}, "sink": {"format": "noop"}}))
TASKS = path_of("groups", "g", "tasks")


class Site:
    """Managers of one database, an admin who creates tasks all the time, and one who follows."""

    def __init__(self, folder: Path, database: str, managers: int, receiver: Receiver) -> None:
        (folder / "key").write_text(KEY)
        flags = ["--lease-ms", "1500", "--webhook", receiver.url]
        flags += ["--webhook-secret", f"file:{folder / 'key'}"]
        self.receiver = receiver
        self.managers = [Manager(folder, *flags, name=f"m{n}", database=database) for n in range(managers)]
        self.urls = [manager.url for manager in self.managers]
        self.acknowledged: list[str] = []
        self._names = count()
        self._is_over = False
        self._followed = folder / "followed"
        with self._followed.open("w") as output:
            command = [sys.executable, "-m", "cli", "events", "--follow", "--json"]
            self._follower = subprocess.Popen(
                [*command, "--manager", ",".join(self.urls)], stdout=output, stderr=subprocess.DEVNULL
            )
        # It gives up if nobody answers in the first place, and a manager is about to be killed.
        eventually(lambda: bool(self.followed()), "somebody follows", alive=self.managers)
        self._admin = threading.Thread(target=self._create)
        self._admin.start()

    def _create(self) -> None:
        client = AdminClient(self.urls, timeout_s=10)
        while not self._is_over:
            name = f"t{next(self._names)}"
            with suppress(RefusedError, UnreachableError, msgspec.MsgspecError):
                body = CreateTaskRequest(task=name, definition=DEFINITION)
                client.call("POST", TASKS, body, into=TaskResponse)
                self.acknowledged.append(name)

    def some_more(self) -> None:
        """Let a few more tasks be created."""
        wanted = len(self.acknowledged) + PER_ROUND
        eventually(lambda: len(self.acknowledged) >= wanted, "tasks are created", alive=self.managers)

    def calm_down(self) -> list[Event]:
        """No more changes; everybody hears of all there were, which are returned."""
        self._is_over = True
        self._admin.join()
        return eventually(self._told, "all is told", alive=self.managers)

    def _told(self) -> list[Event] | None:
        """All events, if everybody has heard of them; managers that lose their lease now make new ones."""
        with suppress(RefusedError, UnreachableError):
            events = self._events()
            is_told = events[-1].id in self.followed() and events[-1].id in self.receiver.first_seen()
            return events if is_told else None
        return None

    def _events(self) -> list[Event]:
        """All, as the API lists them."""
        found: list[Event] = []
        client = AdminClient(self.urls)
        while True:
            path = f"{path_of('events')}?limit=1000&after={found[-1].id if found else 0}"
            page = client.get(path, EventListResponse).events
            found += page
            if not page:
                return found

    def followed(self) -> list[int]:
        """The ids that `sparkherd events --follow` has printed, in order."""
        lines = self._followed.read_bytes().split(b"\n")[:-1]  # the last one may be half of one
        return [msgspec.json.decode(line)["id"] for line in lines]

    def tasks(self) -> set[str]:
        """All there are, as soon as a manager has the group."""
        return eventually(self._tasks, "a manager has the group", alive=self.managers)

    def _tasks(self) -> set[str] | None:
        with suppress(RefusedError, UnreachableError):
            return {view.task for view in AdminClient(self.urls).get(TASKS, TaskListResponse).tasks}
        return None

    def stop(self) -> None:
        self._is_over = True
        self._admin.join()
        self._follower.kill()
        self._follower.wait()
        for manager in self.managers:
            manager.stop()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as opened:
        yield opened


def check(site: Site, events: list[Event], first: int) -> None:
    """Every change has its one event, every reader has every event, in one order."""
    everything = list(range(1, events[-1].id + 1))
    assert [event.id for event in events] == everything
    created = [event.task for event in events if event.type == "task.created"]
    assert len(created) == len(set(created))
    assert set(created) == site.tasks() >= set(site.acknowledged)
    assert [number for number in site.followed() if number <= len(events)] == everything
    assert [number for number in site.receiver.first_seen() if number <= len(events)] == everything[first:]
    told: list[Any] = [site.receiver.event(event.id) for event in events[first:]]
    assert [(event["type"], event.get("task")) for event in told] == [
        (event.type, event.task) for event in events[first:]
    ]
    assert len(set(site.receiver.signatures)) > 1


def test_a_manager_that_is_killed_again_and_again_loses_no_event(tmp_path: Path, receiver: Receiver) -> None:
    """Every change has exactly one event; list, stream and webhook have each, and the key is nowhere."""
    site = Site(tmp_path, f"sqlite+aiosqlite:///{tmp_path}/m.db", 1, receiver)
    try:
        for _ in range(ROUNDS):
            site.some_more()
            site.managers[0].kill()
            site.managers[0].start()
        site.some_more()
        check(site, site.calm_down(), first=1)  # the first start was told before the webhook was known
        kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.name != "key")
    finally:
        site.stop()
    assert b"horse" not in kept
    assert b"secret-path" not in kept


def test_managers_that_take_over_from_each_other_lose_no_event(tmp_path: Path, receiver: Receiver) -> None:
    """Whichever is killed, on PostgreSQL: the same order for everybody, none missing."""
    with running() as server:
        site = Site(tmp_path, server.new_database("postgresql+asyncpg"), 2, receiver)
        try:
            for number in range(ROUNDS):
                site.some_more()
                site.managers[number % 2].kill()
                site.managers[number % 2].start()
            site.some_more()
            check(site, site.calm_down(), first=receiver.first_seen()[0] - 1)
        finally:
            site.stop()
