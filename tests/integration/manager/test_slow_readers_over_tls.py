"""As `test_slow_readers`, by TLS: it keeps more of what is not taken, and not without bound."""

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


class Silent:
    """A client that reads nothing until it is told to; nothing reads for it in the background."""

    def __init__(self, client: ssl.SSLSocket, channel: Channel) -> None:
        self._client = client
        self.channel = channel
        self.got = b""

    @property
    def unread(self) -> int:
        """Bytes that the manager keeps for it."""
        return self.channel.get_write_buffer_size()

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
async def connected(served: Served) -> AsyncIterator[Silent]:
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
            await eventually(lambda: set(served.channels) - before)
            [channel] = set(served.channels) - before
            own = channel.get_extra_info("socket")
            own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, FEW_BYTES)
            yield Silent(client, channel)


@pytest.fixture
async def served(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    """A manager whose answers may wait for `request.param` seconds, by default for ever."""
    limits = Limits(request_s=NEVER, idle_s=NEVER, answer_s=getattr(request, "param", NEVER))
    async with serving(tmp_path, limits, trustme.CA()) as served:
        yield served


async def _turn(other: Wire) -> None:
    """The manager has looked at every connection once more."""
    await other.send(request_bytes("GET", "/healthz"))
    assert (await other.answer()).status == 200


async def _create(served: Served, size: int) -> None:
    """A task whose definition has about so many bytes."""
    task = {"task": "t", "definition": {"entrypoint": "a:b", "options": {"x": "y" * size}}}
    wire = await served.connect()
    await wire.send(request_bytes("POST", "/v1/groups/g/tasks", json.dumps(task).encode()))
    assert (await wire.answer()).status == 201
    await wire.close()
    await eventually(lambda: not served.connections)


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
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it sends and what it is answered stay within the buffers of TLS; once read, all is answered."""
    beats = 0
    put = served.runtime.put

    def counted(*request: Any) -> bool:
        nonlocal beats
        beats += 1
        return put(*request)

    await _create(served, AN_ANSWER)
    monkeypatch.setattr(served.runtime, "put", counted)
    other = await served.connect()
    await _turn(other)
    async with connected(served) as slow:
        sent = await _fill(slow, other)
        heard, kept = beats, slow.unread
        sent += await _send_until_stopped(slow, other)
        assert heard <= beats <= heard + 1
        assert slow.unread < kept + FEW_BYTES < KEPT + AN_ANSWER
        while not slow.send(HEARTBEAT):  # what was begun has to be gone on with
            slow.read_all()
            await _turn(other)
        while slow.got.count(b"HTTP/1.1 404") <= sent:
            slow.read_all()
            await _turn(other)


@pytest.fixture
def closed(served: Served, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each connection that closes, whether the manager holds that its peer has done it."""
    by_peer: list[bool] = []
    close = served.runtime.closed

    def noted(connection: Link, **how: bool) -> None:
        by_peer.append(how["by_peer"])
        close(connection, **how)

    monkeypatch.setattr(served.runtime, "closed", noted)
    return by_peer


@pytest.mark.parametrize("served", [SOON], indirect=True)
@pytest.mark.parametrize("size", [30_000, 900_000])
@pytest.mark.parametrize("headers", ["", "Connection: close\r\n"])
async def test_whoever_takes_nothing_of_an_answer_is_cut_over_tls(
    served: Served, closed: list[bool], size: int, headers: str
) -> None:
    """However much of it TLS has handed on unseen; and nobody takes its process for dead."""
    await _create(served, size)
    closed.clear()
    async with connected(served) as slow:
        assert slow.send(request_bytes("GET", "/v1/groups/g/tasks", headers=headers))
        await eventually(lambda: not served.connections)
        assert closed == [False]
        with suppress(OSError):
            slow.read_all()
        assert len(slow.got) < size


@pytest.mark.parametrize("served", [SOON], indirect=True)
async def test_whoever_takes_nothing_of_what_heartbeats_are_answered_is_cut_over_tls(
    served: Served, closed: list[bool]
) -> None:
    """They are answered past aiohttp."""
    other = await served.connect()
    await _turn(other)
    async with connected(served) as slow:
        with suppress(OSError):
            while not closed:
                slow.send(HEARTBEAT)
                await _turn(other)
        await eventually(lambda: closed)
        assert closed == [False]
