"""A whole manager on a real socket, and what every one of its answers has to look like."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from aiohttp import web

from manager.app import make_app
from manager.clock import read_clocks
from manager.core.coordinator import GroupCoordinator
from manager.http.front.server import Runner
from manager.settings import GroupSettings
from manager.storage.sql_storage import SqlStorage
from protocol.errors import ErrorCode
from protocol.messages.groups import Coordinator
from tests.fakes.rows import durable, rows_of
from tests.fakes.turns import PATIENCE_S, eventually, settle
from tests.integration.node import started_node

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path
    from typing import Self, TypeVar

    T = TypeVar("T")

MAX_BYTES = 200_000
GLANCE_S = 0.02
FUZZ = int(os.environ.get("FUZZ", "1"))
"""How many times as many examples: for a long look by hand, with --hypothesis-seed."""

JOIN = {
    "member_id": "",
    "session_timeout_ms": 1_800_000,
    "rebalance_timeout_ms": 60_000,
    "protocol_type": "sparkherd",
    "protocols": [{"name": "sticky", "metadata": {"owned": {}}}],
    "require_member_id": False,
}
DEFINITION = {"source": {"format": "rate"}, "sink": {"format": "console"}}
SUCCESSES = {200, 201, 202}


class Answer(NamedTuple):
    """A response as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    def document(self) -> dict[str, Any]:
        """The JSON body."""
        document: dict[str, Any] = json.loads(self.body)
        return document

    def check(self) -> None:
        """Protocol §2: a known code under its own status, and never a bug."""
        if self.headers.get("content-type", "").startswith("text/html"):
            assert self.status in {200, 404}, self
            return
        assert self.headers["content-type"].startswith("application/json"), self
        document = self.document()
        code = ErrorCode[document["error"]]
        assert code is not ErrorCode.UNKNOWN_SERVER_ERROR, self
        assert code is not ErrorCode.COORDINATOR_NOT_AVAILABLE, "the storage took something ill"
        if code is ErrorCode.NONE:
            assert self.status in SUCCESSES, self
            return
        assert self.status == code.status, self
        assert isinstance(document["message"], str), self
        assert document["retriable"] is code.retriable, self
        assert ("allow" in self.headers) is (self.status == 405), self


class Wire:
    """One connection, and bytes on it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Whatever `data` is."""
        if self._writer.is_closing():  # uvloop would call it a RuntimeError
            raise ConnectionResetError("it is closed")
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self, *, to_head: bool = False) -> Answer:
        """The next response.

        Raises:
            IncompleteReadError: the connection closed before it.
        """
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        status = int(first.split()[1])
        if status == 100:
            return await self.answer(to_head=to_head)
        length = 0 if to_head else int(headers["content-length"])
        return Answer(status, headers, await self._reader.readexactly(length))

    async def answers(self) -> list[Answer]:
        """All responses that are there, to the end of the connection, after closing this side of it."""
        self._writer.write_eof()
        found = []
        while True:
            try:
                found.append(await self.answer())
            except (asyncio.IncompleteReadError, OSError):
                return found

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


def request_bytes(method: str, path: str, body: bytes = b"", headers: str = "") -> bytes:
    """A request that is all right as far as HTTP goes."""
    head = f"{method} {path} HTTP/1.1\r\nHost: m\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode("utf-8", "surrogateescape") + body


class Front:
    """The manager under test, on an event loop of its own that runs while something is asked."""

    def __init__(self, folder: Path) -> None:
        self._loop = asyncio.Runner()
        self.storage = SqlStorage(f"sqlite+aiosqlite:///{folder}/m.db")
        self.run(self._start())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self._stop())
        self._loop.close()

    def run(self, what: Coroutine[Any, Any, T]) -> T:
        """Let the loop run until `what` is done."""
        return self._loop.run(what)

    async def _start(self) -> None:
        self.node = await started_node(
            self.storage, initial_rebalance_delay_ms=0, disconnect_grace_ms=1_000_000
        )
        self.runtime = self.node.runtime
        self.runner = Runner(
            make_app(self.runtime, Coordinator(id="m", url="http://m"), MAX_BYTES, self.node.directory)
        )
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()

    async def _stop(self) -> None:
        await self.node.leave()
        await self.runner.cleanup()

    async def connect(self) -> Wire:
        """A connection of one's own."""
        host, port = self.runner.addresses[0]
        return Wire(*await asyncio.open_connection(host, port))

    async def ask(self, method: str, path: str, body: bytes = b"", headers: str = "") -> Answer | None:
        """Send one request; None if it waits, as some may."""
        wire = await self.connect()
        try:
            await wire.send(request_bytes(method, path, body, headers))
            answer = asyncio.ensure_future(wire.answer(to_head=method == "HEAD"))
            await self._answered_or_parked(answer)
            return None if answer.cancelled() else answer.result()
        finally:
            await wire.close()
            await self.all_quiet()

    async def _answered_or_parked(self, answer: asyncio.Future[Answer]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not answer.done():
                await asyncio.wait([answer], timeout=GLANCE_S)
                if self._is_parked():
                    await settle()  # an answer may be on its way
                if self._is_parked() and not answer.done():
                    answer.cancel()
                    await asyncio.wait([answer])
                    return

    def _is_parked(self) -> bool:
        return bool(self.runtime.parked) and not self.runtime._writer._commits.waiting()

    async def tell(self, method: str, path: str, document: object = None) -> dict[str, Any]:
        """Send one request that is answered, and show the answer."""
        body = b"" if document is None else json.dumps(document).encode()
        answer = await self.ask(method, path, body)
        assert answer is not None, (method, path, document)
        answer.check()
        return answer.document()

    async def still_served_beside(self) -> None:
        """See that another connection is served while others stay open."""
        beside = await self.connect()
        for _ in range(3):
            await beside.send(request_bytes("GET", "/healthz"))
            (await beside.answer()).check()
        await beside.close()

    async def until_parked(self, requests: int) -> None:
        """Wait until so many requests wait."""
        await eventually(lambda: self.runtime.parked == requests, f"{requests} requests are parked")

    async def all_quiet(self) -> None:
        """Wait until no connection is left; then nobody may be parked, but for static members."""
        await eventually(lambda: not self.runner.server.connections, "every connection is gone")  # type: ignore[union-attr]
        assert self.runtime.parked == 0
        coordinator = self.runtime._coordinator
        for group in filter(None, map(coordinator.group, coordinator.names())):
            waiting = [*group.joining, *(claim.member_id for claim in group.tasks.waiting.values())]
            waiting += [m.id for m in group.members.values() if m.parked_sync or m.held_heartbeat]
            assert all(group.members[member_id].is_static for member_id in waiting)

    async def still_serves(self) -> None:
        """A member comes, lives and goes, as ever."""
        path = "/v1/groups/probe"
        joined = await self.tell("POST", f"{path}/join", JOIN)
        here = {"member_id": joined["member_id"], "generation_id": joined["generation_id"]}
        assert joined["leader_id"] == here["member_id"]
        assert (await self.tell("POST", f"{path}/sync", here))["error"] == "NONE"
        assert (await self.tell("POST", f"{path}/heartbeat", here))["error"] == "NONE"
        assert (await self.tell("POST", f"{path}/leave", {"members": [here]}))["error"] == "NONE"

    async def check_stored(self) -> None:
        """What is in memory is what is stored, and any database could have stored it."""
        coordinator = self.runtime._coordinator
        stored = await self.storage.load()
        for group in filter(None, map(coordinator.group, coordinator.names())):
            reloaded = GroupCoordinator(GroupSettings(), lambda: "")
            reloaded.load(group.name, stored.get(group.name, ()), read_clocks())
            again = reloaded.group(group.name)
            assert (durable(again) if again else {}) == (durable(group) if stored.get(group.name) else {})
            for row in rows_of(group):
                texts = [getattr(row, name) for name in row.__struct_fields__]
                assert not any("\0" in text for text in texts if isinstance(text, str)), row
                assert len("".join(map(str, row.key)).encode()) < 2600, "no index entry of PostgreSQL's"
