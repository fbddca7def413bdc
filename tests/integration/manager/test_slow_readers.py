"""Clients that ask and take nothing of what they are answered: real sockets with small buffers."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from manager.http.front.limits import Limits
from tests.fakes.turns import eventually
from tests.integration.manager.clients import BOTH_LOOPS, serving
from tests.integration.manager.fuzz.front import request_bytes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from manager.http.front.channel import Channel
    from tests.integration.manager.clients import Served

pytestmark = BOTH_LOOPS
SOON = 0.05
NEVER = 3600.0
BEAT = {"member_id": "m", "instance_id": None, "generation_id": 1, "tasks_revision": None}
HEARTBEAT = request_bytes("POST", "/v1/groups/g/heartbeat", json.dumps(BEAT).encode())
FEW_BYTES = 4096


class Slow:
    """A client that reads when it is told to, with its connection as the manager has it."""

    def __init__(self, client: socket.socket, channel: Channel) -> None:
        self._client = client
        self.channel = channel
        self.got = b""

    @property
    def unread(self) -> int:
        """Bytes that the manager keeps for it."""
        return self.channel.get_write_buffer_size()

    async def send(self, data: bytes) -> None:
        """Whatever `data` is."""
        await asyncio.get_running_loop().sock_sendall(self._client, data)

    async def read(self) -> bytes:
        """Some of what has come; nothing at its end."""
        piece = await asyncio.get_running_loop().sock_recv(self._client, FEW_BYTES)
        self.got += piece
        return piece


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[Slow]:
    """A new one, with buffers so small that the manager soon has to keep what it does not take."""
    with socket.socket() as client:
        client.settimeout(0)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield await _connect(served, client)


async def _connect(served: Served, client: socket.socket) -> Slow:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, FEW_BYTES)
    before = set(served.channels)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", served.port))
    await eventually(lambda: set(served.channels) - before)
    [channel] = set(served.channels) - before
    channel.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, FEW_BYTES)
    return Slow(client, channel)


@pytest.fixture
async def served(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    """A manager whose answers may wait for `request.param` seconds, by default for ever."""
    limits = Limits(request_s=NEVER, idle_s=NEVER, answer_s=getattr(request, "param", NEVER))
    async with serving(tmp_path, limits) as served:
        yield served


async def test_whoever_reads_nothing_is_not_listened_to(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heartbeats that are answered at once wait, too, and are answered as soon as answers are read."""
    beats = 0
    put = served.runtime.put

    def counted(*request: Any) -> bool:
        nonlocal beats
        beats += 1
        return put(*request)

    monkeypatch.setattr(served.runtime, "put", counted)
    other = await served.connect()
    async with connected(served) as slow:
        sent = 0

        async def send_one() -> None:
            nonlocal sent
            sent += 1
            await slow.send(HEARTBEAT)
            await other.send(request_bytes("GET", "/healthz"))
            assert (await other.answer()).status == 200

        while not slow.channel.is_full:
            await send_one()
        heard, kept = beats, slow.unread
        for _ in range(100):
            await send_one()
        assert beats <= heard + 1
        assert slow.unread < kept + FEW_BYTES
        while slow.got.count(b"HTTP/1.1 404") < sent:
            assert await slow.read()
    assert beats == sent


async def _create(served: Served, size: int) -> None:
    """A task whose definition has about so many bytes."""
    task = {"task": "t", "definition": {"entrypoint": "a:b", "options": {"x": "y" * size}}}
    wire = await served.connect()
    await wire.send(request_bytes("POST", "/v1/groups/g/tasks", json.dumps(task).encode()))
    assert (await wire.answer()).status == 201
    await wire.close()
    await eventually(lambda: not served.connections)


@pytest.mark.parametrize("served", [SOON], indirect=True)
@pytest.mark.parametrize("size", [30_000, 900_000])
@pytest.mark.parametrize("headers", ["", "Connection: close\r\n"])
async def test_whoever_takes_nothing_of_an_answer_is_cut(served: Served, size: int, headers: str) -> None:
    """However small it is, and whether or not the connection was to be closed after it."""
    await _create(served, size)
    async with connected(served) as slow:
        await slow.send(request_bytes("GET", "/v1/groups/g/tasks", headers=headers))
        await eventually(lambda: not served.connections)
        with suppress(ConnectionResetError):
            while await slow.read():
                pass
        assert len(slow.got) < size


async def test_whoever_takes_an_answer_slowly_has_time_again(served: Served) -> None:
    """As long as something of it was taken; what is taken to its end is waited for no longer."""
    await _create(served, 900_000)
    async with connected(served) as slow:
        await slow.send(request_bytes("GET", "/v1/groups/g/tasks"))
        await eventually(lambda: slow.channel.is_full)
        unread = slow.unread
        while slow.unread == unread:
            assert await slow.read()
        slow.channel.look_at_reader()
        assert not slow.channel.is_closing()
        while slow.channel.is_full:
            assert await slow.read()
        assert slow.channel not in slow.channel._shared.taking


async def test_what_was_asked_for_behind_an_answer_that_waits_is_answered(served: Served) -> None:
    """Requests of both kinds, in order, once the answer is read."""
    await _create(served, 900_000)
    async with connected(served) as slow:
        await slow.send(request_bytes("GET", "/v1/groups/g/tasks"))
        await eventually(lambda: slow.channel.is_full)
        await slow.send(HEARTBEAT + request_bytes("GET", "/v1/groups/other") + HEARTBEAT)
        while slow.got.count(b"HTTP/1.1 ") < 4:
            assert await slow.read()
    assert [each[:3] for each in slow.got.split(b"HTTP/1.1 ")[1:]] == [b"200", b"404", b"404", b"404"]
