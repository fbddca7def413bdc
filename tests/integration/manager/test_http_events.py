"""GET /v1/events on a real socket, as a list and as a stream."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from manager.http.endpoints import events
from manager.http.front.limits import Limits
from manager.outbox import feed
from manager.storage.base import StorageError
from manager.storage.sql_storage import SqlStorage
from protocol.messages.events import Event, EventType
from tests.fakes.turns import eventually
from tests.integration.manager.clients import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from aiohttp import ClientResponse

    from tests.integration.manager.clients import Served

DEFINITION = {"source": {"format": "rate"}, "sink": {"format": "noop"}}
WAIT_S = 20.0


class Site:
    """A manager and an admin's connection to it; that it has started is the first event."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.runtime = served.runtime
        self.storage = served.storage
        self._events = f"{served.url}/v1/events"

    async def create(self, *tasks: str, group: str = "g") -> None:
        """One event each."""
        tasks_url = f"{self.served.url}/v1/groups/{group}/tasks"
        for task in tasks:
            body = {"task": task, "definition": DEFINITION}
            async with self.served.session.post(tasks_url, json=body) as response:
                assert response.status == 201

    async def get(self, query: str = "", **headers: str) -> Any:
        async with self.served.session.get(self._events + query, headers=headers) as response:
            return await response.json()

    async def told(self, query: str = "") -> list[tuple[int, str | None]]:
        return [(event["id"], event.get("task")) for event in (await self.get(query))["events"]]

    @asynccontextmanager
    async def stream(self, query: str = "", **headers: str) -> AsyncIterator[ClientResponse]:
        sent = {"Accept": "text/event-stream", **headers}
        async with self.served.session.get(self._events + query, headers=sent) as response:
            assert response.content_type == "text/event-stream", await response.text()
            yield response


@pytest.fixture
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with serving(tmp_path, getattr(request, "param", None)) as served:
        yield Site(served)


async def next_event(response: ClientResponse) -> dict[str, Any]:
    """The next event of a stream; comments and blocks without data are passed over."""
    async with asyncio.timeout(WAIT_S):
        async for line in response.content:
            if line.startswith(b"data: "):
                return dict(msgspec.json.decode(line.removeprefix(b"data: ")))
    raise AssertionError("the stream ended")


async def test_events_are_listed_in_order_after_the_last_one_seen(site: Site) -> None:
    """`last_id` is what to ask after next; one group's are listed by themselves."""
    await site.create("a", "b")
    await site.create("c", group="h")
    answer = await site.get()
    assert answer["error"] == "NONE"
    _, first, *_ = answer["events"]
    assert (first["type"], first["group"], first["target"]) == ("task.created", "g", "RUNNING")
    assert first["at_ms"] > 1_700_000_000_000
    assert "cause" not in first
    assert await site.told("?after=2&limit=1") == [(3, "b")]
    assert (await site.get("?after=2&limit=1"))["last_id"] == 3
    assert await site.told("?group=h") == [(4, "c")]
    assert await site.get("?after=4") == {"error": "NONE", "events": [], "last_id": 4}


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("?after=x", "after: expected a whole number from 0"),
        ("?after=-1", "after: expected a whole number from 0"),
        ("?after=99999999999999999", "after: expected a whole number from 0"),
        ("?after=4", "the newest event is 1; 4 is not of this database"),
        ("?limit=0", "limit: expected a whole number from 1 to 1000"),
        ("?group=a/b", "group: "),
    ],
)
async def test_what_cannot_be_read_from_is_refused(site: Site, query: str, complaint: str) -> None:
    """As a list and as a stream: a reader that waited for such an id would miss all until then."""
    for accept in ("application/json", "text/event-stream"):
        answer = await site.get(query, Accept=accept)
        assert answer["error"] in {"INVALID_REQUEST", "INVALID_GROUP_ID"}
        assert complaint in answer["message"]


async def test_who_comes_too_late_is_told_what_is_gone(site: Site) -> None:
    """Not so who asks for what there is."""
    await site.create("a", "b", "c")
    await site.storage.events.prune(0, keep=1)
    gap, rest = (await site.get("?after=0"))["events"]
    assert (gap["id"], gap["type"], gap["after"], rest["id"]) == (3, "events.pruned", 0, 4)
    assert await site.told("?after=3") == await site.told() == [(4, "c")]
    async with site.stream(**{"Last-Event-ID": "2"}) as stream:
        assert [(await next_event(stream))["id"] for _ in range(2)] == [3, 4]


async def test_a_stream_tells_what_happens_as_it_happens(site: Site) -> None:
    """First what there is, then each event when it is durable."""
    await site.create("a")
    async with site.stream("?after=1") as stream:
        assert (await next_event(stream))["task"] == "a"
        await site.create("b", "c")
        assert [(await next_event(stream))["task"] for _ in range(2)] == ["b", "c"]


async def test_a_stream_goes_on_where_the_reader_was(site: Site) -> None:
    """`Last-Event-ID` counts for more than the address, which a browser keeps as it was."""
    await site.create("a", "b", "c")
    async with site.stream("?after=0", **{"Last-Event-ID": "2"}) as stream:
        assert (await next_event(stream))["id"] == 3


async def test_a_stream_of_one_group_moves_on_over_the_others(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What keeps the line open also says how far it is, so that the reader need not start over."""
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.01)
    await site.create("a", "b")
    async with site.stream("?group=other") as stream, asyncio.timeout(WAIT_S):
        for _ in range(2):
            assert await stream.content.readuntil(b"\n\n") == b": nothing new\nid: 3\n\n"


@pytest.mark.parametrize("trouble", [[], [StorageError("away")], [ValueError("nobody expected this")]])
async def test_what_another_manager_writes_is_told_too(
    site: Site, monkeypatch: pytest.MonkeyPatch, trouble: list[Exception]
) -> None:
    """Nobody wakes this one for it; it looks, and goes on looking whatever happens."""
    await site.runtime.stop()
    newest = site.storage.events.newest

    async def in_trouble_first() -> int:
        if trouble:
            raise trouble.pop()
        return await newest()

    monkeypatch.setattr(site.storage.events, "newest", in_trouble_first)
    monkeypatch.setattr(events, "HEARTBEAT_S", 2 * WAIT_S)
    monkeypatch.setattr(feed, "LOOK_EVERY_S", 0.01)
    site.runtime.begin()
    other = SqlStorage(str(site.storage._database.url))
    async with site.stream("?after=1") as stream:
        assert await stream.content.readuntil(b"\n\n") == b": nothing new\nid: 1\n\n"
        await other.commit([Event(id=0, at_ms=1, type=EventType.TASK_DELETED, task="x")])
        assert (await next_event(stream))["task"] == "x"
    await other.close()


async def test_streams_end_in_order_when_the_manager_stops(site: Site) -> None:
    """What was stored is told, then the response comes to its proper end."""
    async with site.stream("?after=1") as stream:
        await site.create("a")
        assert (await next_event(stream))["task"] == "a"
        stopping = asyncio.create_task(site.runtime.stop())
        async with asyncio.timeout(WAIT_S):
            assert b"data" not in await stream.content.read()
        await stopping
    assert (await site.get())["error"] == "COORDINATOR_NOT_AVAILABLE"


@pytest.mark.parametrize("site", [Limits(answer_s=0.3)], indirect=True)
async def test_a_reader_that_takes_nothing_is_cut_off_and_nothing_is_kept_for_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is read as fast as the reader is; it comes back with the id it has."""
    count, read = 4000, [0]
    told = Event(id=0, at_ms=1, type=EventType.TASK_FAILED, cause="x" * 2000)
    await site.storage.commit([told] * count)
    plain_read = site.storage.events.read

    async def counted(after: int, limit: int, group: str | None = None) -> Any:
        page = await plain_read(after, limit, group)
        read.append(page.through)
        return page

    monkeypatch.setattr(site.storage.events, "read", counted)
    with socket.create_connection(("127.0.0.1", site.served.port)) as stuck:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.sendall(b"GET /v1/events HTTP/1.1\r\nHost: m\r\nAccept: text/event-stream\r\n\r\n")
        await eventually(lambda: max(read) > 0)
        await eventually(lambda: not site.served.connections)
    assert 0 < max(read) < count
