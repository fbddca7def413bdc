"""Clients that ask and take nothing of what they are answered: real sockets with small buffers.

By TLS, which keeps more of what is not taken, and not without bound, too.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from manager.http.front.limits import Limits
from tests.fakes.turns import eventually
from tests.integration.manager.clients import BOTH_LOOPS, FEW_BYTES, serving
from tests.integration.manager.fuzz.front import request_bytes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from manager.core.member import Connection as Link
    from manager.http.front.channel import Channel
    from tests.integration.manager.clients import Served
    from tests.integration.manager.fuzz.front import Wire

pytestmark = BOTH_LOOPS
SOON, NEVER = 0.05, 3600.0
KEPT = 512 * 1024
"""Bytes of answers that TLS keeps for a connection before it says so."""
AN_ANSWER = 60_000
"""Bytes of one that fills this up soon."""
SENDS_AT_MOST = 20 * 1024 * 1024
STOPPED_FOR = 100
"""Times that the manager has answered others and still taken nothing from a connection."""
BEAT = {"member_id": "m", "instance_id": None, "generation_id": 1, "tasks_revision": None}
HEARTBEAT = request_bytes("POST", "/v1/groups/g/heartbeat", json.dumps(BEAT).encode())


class Reader:
    """A client that reads when it is told to, with its connection as the manager has it."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.got = b""

    @property
    def unread(self) -> int:
        """Bytes that the manager keeps for it."""
        return self.channel.get_write_buffer_size()


class Slow(Reader):
    """One without TLS."""

    def __init__(self, client: socket.socket, channel: Channel) -> None:
        super().__init__(channel)
        self._client = client

    async def send(self, data: bytes) -> None:
        """Whatever `data` is."""
        await asyncio.get_running_loop().sock_sendall(self._client, data)

    async def read(self) -> bytes:
        """Some of what has come; nothing at its end."""
        piece = await asyncio.get_running_loop().sock_recv(self._client, FEW_BYTES)
        self.got += piece
        return piece


class Silent(Reader):
    """One by TLS; nothing reads for it in the background."""

    def __init__(self, client: ssl.SSLSocket, channel: Channel) -> None:
        super().__init__(channel)
        self._client = client

    def send(self, data: bytes) -> bool:
        """Whether all of `data` could be sent; else it has to be tried again."""
        try:
            return self._client.send(data) == len(data)
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return False

    def read_all(self) -> None:
        """What is there."""
        with suppress(ssl.SSLWantReadError):
            while piece := self._client.recv(65_536):
                self.got += piece


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[Slow]:
    """A new one, with buffers so small that the manager soon has to keep what it does not take."""
    before = set(served.channels)
    with socket.socket() as client:
        client.settimeout(0)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, FEW_BYTES)
        await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", served.port))
        yield Slow(client, await _channel_since(before, served))


@asynccontextmanager
async def connected_by_tls(served: Served) -> AsyncIterator[Silent]:
    """A new one, with buffers of the system so small that TLS has to keep what it does not take."""
    before = set(served.channels)
    assert served.trust is not None
    with socket.socket() as plain:
        for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            plain.setsockopt(socket.SOL_SOCKET, buffer, FEW_BYTES)
        plain.connect(("127.0.0.1", served.port))
        with served.trust.wrap_socket(
            plain, server_hostname="127.0.0.1", do_handshake_on_connect=False
        ) as client:
            await asyncio.to_thread(client.do_handshake)
            client.settimeout(0)
            yield Silent(client, await _channel_since(before, served))


async def _channel_since(before: set[Channel], served: Served) -> Channel:
    """The new one, which keeps little."""
    await eventually(lambda: set(served.channels) - before)
    [channel] = set(served.channels) - before
    channel.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, FEW_BYTES)
    return channel


@pytest.fixture
async def served(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    """A manager whose answers may wait for `request.param` seconds, by default for ever."""
    async with serving(tmp_path, _limits(request)) as served:
        yield served


@pytest.fixture
async def served_by_tls(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    """The same by TLS."""
    async with serving(tmp_path, _limits(request), trustme.CA()) as served:
        yield served


def _limits(request: pytest.FixtureRequest) -> Limits:
    return Limits(request_s=NEVER, idle_s=NEVER, answer_s=getattr(request, "param", NEVER))


def _heard(served: Served, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The heartbeats that the manager has taken in since."""
    heard: list[Any] = []
    put = served.runtime.put

    def noted(*request: Any) -> bool:
        heard.append(request)
        return put(*request)

    monkeypatch.setattr(served.runtime, "put", noted)
    return heard


async def _create(served: Served, size: int) -> None:
    """A task whose definition has about so many bytes."""
    task = {"task": "t", "definition": {"entrypoint": "a:b", "options": {"x": "y" * size}}}
    wire = await served.connect()
    await wire.send(request_bytes("POST", "/v1/groups/g/tasks", json.dumps(task).encode()))
    assert (await wire.answer()).status == 201
    await wire.close()
    await eventually(lambda: not served.connections)


async def _turn(other: Wire) -> None:
    """The manager has looked at every connection once more."""
    await other.send(request_bytes("GET", "/healthz"))
    assert (await other.answer()).status == 200


async def test_whoever_reads_nothing_is_not_listened_to(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heartbeats that are answered at once wait, too, and are answered as soon as answers are read."""
    beats = _heard(served, monkeypatch)
    other = await served.connect()
    async with connected(served) as slow:
        sent = 0

        async def send_one() -> None:
            nonlocal sent
            sent += 1
            await slow.send(HEARTBEAT)
            await _turn(other)

        while not slow.channel.is_full:
            await send_one()
        heard, kept = len(beats), slow.unread
        for _ in range(100):
            await send_one()
        assert len(beats) <= heard + 1
        assert slow.unread < kept + FEW_BYTES
        while slow.got.count(b"HTTP/1.1 404") < sent:
            assert await slow.read()
    assert len(beats) == sent


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


async def _fill(slow: Silent, other: Wire) -> int:
    """Have the manager answer until it has to wait; how many heartbeats that took."""
    while slow.unread < KEPT - AN_ANSWER:
        assert slow.send(request_bytes("GET", "/v1/groups/g/tasks"))
        await _turn(other)
    sent = 0
    while not slow.channel.is_full:
        assert slow.send(HEARTBEAT)
        sent += 1
        await _turn(other)
        assert sent * len(HEARTBEAT) < SENDS_AT_MOST, "it is answered without bound"
    return sent


async def _send_until_stopped(slow: Silent, other: Wire) -> int:
    """How many more heartbeats can be sent before the manager takes none in; fails if it takes all."""
    sent = refused = 0
    while refused < STOPPED_FOR:
        if slow.send(HEARTBEAT):
            sent, refused = sent + 1, 0
        else:
            refused += 1
            await _turn(other)
        assert sent * len(HEARTBEAT) < SENDS_AT_MOST, "it is listened to without bound"
    return sent


async def test_whoever_reads_nothing_is_not_listened_to_for_ever(
    served_by_tls: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it sends and what it is answered stay within the buffers of TLS; once read, all is answered."""
    await _create(served_by_tls, AN_ANSWER)
    beats = _heard(served_by_tls, monkeypatch)
    other = await served_by_tls.connect()
    await _turn(other)
    async with connected_by_tls(served_by_tls) as slow:
        sent = await _fill(slow, other)
        heard, kept = len(beats), slow.unread
        sent += await _send_until_stopped(slow, other)
        assert heard <= len(beats) <= heard + 1
        assert slow.unread < kept + FEW_BYTES < KEPT + AN_ANSWER
        while not slow.send(HEARTBEAT):  # what was begun has to be gone on with
            slow.read_all()
            await _turn(other)
        while slow.got.count(b"HTTP/1.1 404") <= sent:
            slow.read_all()
            await _turn(other)


@pytest.fixture
def closed(served_by_tls: Served, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each connection that closes, whether the manager holds that its peer has done it."""
    by_peer: list[bool] = []
    close = served_by_tls.runtime.closed

    def noted(connection: Link, **how: bool) -> None:
        by_peer.append(how["by_peer"])
        close(connection, **how)

    monkeypatch.setattr(served_by_tls.runtime, "closed", noted)
    return by_peer


@pytest.mark.parametrize("served_by_tls", [SOON], indirect=True)
@pytest.mark.parametrize("size", [30_000, 900_000])
@pytest.mark.parametrize("headers", ["", "Connection: close\r\n"])
async def test_whoever_takes_nothing_of_an_answer_is_cut_over_tls(
    served_by_tls: Served, closed: list[bool], size: int, headers: str
) -> None:
    """However much of it TLS has handed on unseen; and nobody takes its process for dead."""
    await _create(served_by_tls, size)
    closed.clear()
    async with connected_by_tls(served_by_tls) as slow:
        assert slow.send(request_bytes("GET", "/v1/groups/g/tasks", headers=headers))
        await eventually(lambda: not served_by_tls.connections)
        assert closed == [False]
        with suppress(OSError):
            slow.read_all()
        assert len(slow.got) < size


@pytest.mark.parametrize("served_by_tls", [SOON], indirect=True)
async def test_whoever_takes_nothing_of_what_heartbeats_are_answered_is_cut_over_tls(
    served_by_tls: Served, closed: list[bool]
) -> None:
    """They are answered past aiohttp."""
    other = await served_by_tls.connect()
    await _turn(other)
    async with connected_by_tls(served_by_tls) as slow:
        with suppress(OSError):
            while not closed:
                slow.send(HEARTBEAT)
                await _turn(other)
        await eventually(lambda: closed)
        assert closed == [False]
