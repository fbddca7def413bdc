"""One connection: counts bytes and time, and knows who closed it. What the bytes mean is aiohttp's."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from manager.core.member import Connection
from manager.http.front.deadlines import Deadlines
from manager.http.front.limits import Peers
from manager.http.front.tcp_info import Watch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiohttp import StreamReader

    from manager.http.front.limits import Limits

MAX_BEHIND = 65_536
"""Bytes that may be sent behind a request that is held by its group; whoever sends more is cut off."""


class ConnectionListener(Protocol):
    """What is told of connections that are gone."""

    def closed(self, connection: Connection, *, by_peer: bool) -> None:
        """`by_peer` unless this end has closed it."""
        ...


class Shared:
    """What the channels of one server have in common."""

    def __init__(self, limits: Limits, core: ConnectionListener) -> None:
        self.limits = limits
        self.peers = Peers(limits.connections)
        self.core = core
        self.incoming = Deadlines(limits.request_s, Channel.abort)
        self.taking = Deadlines(limits.answer_s, Channel.look_at_reader)


class Channel(asyncio.Protocol, asyncio.Transport):
    """Stands between a socket and aiohttp: the protocol of the one's transport, the transport of the other.

    A request has to come in whole within `Limits.request_s`. While something of an answer waits for its
    reader nothing more is read, and something of it has to be taken every `Limits.answer_s`. How long a
    connection may be open without a request is counted by aiohttp.

    Attributes:
        link: the connection as the group core knows it.
        is_full: whether something of an answer waits for its reader.
    """

    __slots__ = (
        "_behind",
        "_http",
        "_is_answering",
        "_is_ended",
        "_is_muted",
        "_shared",
        "_unread",
        "_watch",
        "_wire",
        "is_full",
        "link",
    )

    def __init__(self, http: asyncio.Protocol, shared: Shared) -> None:
        super().__init__()
        self.link = Connection()
        self.is_full = False
        self._http = http
        self._shared = shared
        self._wire: asyncio.Transport
        self._watch: Watch | None = None
        self._unread = 0
        self._behind = 0
        self._is_answering = False
        self._is_muted = False
        self._is_ended = False

    # What the server tells.

    def begin(self, body: StreamReader) -> None:
        """A request is being answered; its body may still be coming in."""
        self._is_answering, self._behind = True, 0
        if body.is_eof():
            self._shared.incoming.stop(self)
            return
        if self not in self._shared.incoming:
            self._shared.incoming.start(self)
        body.on_eof(partial(self._shared.incoming.stop, self))

    def end(self) -> None:
        """Its answer is there."""
        self._is_answering = False

    # What the socket's transport tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open; one too many of its address is closed again."""
        self._wire = wire = cast("asyncio.Transport", transport)  # uvloop's is none by inheritance
        peer = wire.get_extra_info("peername")
        self.link.host = str(peer[0]) if isinstance(peer, tuple) else ""
        self._watch_reader(wire)
        self._http.connection_made(self)
        if not self._shared.peers.enter(self.link.host):
            self.abort()

    def _watch_reader(self, wire: asyncio.Transport) -> None:
        """Have it told when something waits for its reader, or see for ourselves."""
        if wire.get_extra_info("sslcontext") is None:
            wire.set_write_buffer_limits(high=1, low=0)
            return
        # With TLS, half a megabyte waits before this is told: it sends its own opening only while it is
        # read from, and a connection that is stopped at the first byte would never get that far.
        watch = Watch(wire.get_extra_info("socket"), self._shared.limits.answer_s, self.abort)
        if watch.begin(asyncio.get_running_loop()):
            self._watch = watch

    def data_received(self, data: bytes) -> None:
        """Bytes have come in: of the next request, or of the one that is being answered."""
        if not self._is_answering:
            if self not in self._shared.incoming:
                self._shared.incoming.start(self)
        elif self.link.parked is not None:
            self._behind += len(data)
            if self._behind > MAX_BEHIND:
                self.abort()
                return
        self._http.data_received(data)

    def eof_received(self) -> bool | None:
        """The other end sends no more."""
        return self._http.eof_received()

    def pause_writing(self) -> None:
        """Something of an answer waits to be taken: until it is, nothing more is heard from there."""
        self.is_full = True
        self._read_or_not()
        if self._watch is None:
            self._unread = self._wire.get_write_buffer_size()
            self._shared.taking.start(self)
        self._http.pause_writing()

    def resume_writing(self) -> None:
        """Everything was taken."""
        self.is_full = False
        self._shared.taking.stop(self)
        self._read_or_not()
        self._http.resume_writing()

    def look_at_reader(self) -> None:
        """Whoever has taken something of what waits has time again."""
        before, self._unread = self._unread, self._wire.get_write_buffer_size()
        if self._unread < before:
            self._shared.taking.start(self)
        else:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed, whoever did it: the group hears of that before a request is given up for it."""
        self._shared.peers.leave(self.link.host)
        self._shared.incoming.stop(self)
        self._shared.taking.stop(self)
        if self._watch is not None:
            self._watch.end()
        self._shared.core.closed(self.link, by_peer=not self._is_ended)
        self._http.connection_lost(exc)

    # What aiohttp asks for.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What the socket's transport knows of itself."""
        return self._wire.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """Whether it is closed, or about to be."""
        return self._wire.is_closing()

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Send something."""
        self._wire.write(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        """Send several things at once."""
        self._wire.writelines(list_of_data)

    def get_write_buffer_size(self) -> int:
        """Bytes of answers that wait here."""
        return self._wire.get_write_buffer_size()

    def pause_reading(self) -> None:
        """Nothing more for now."""
        self._is_muted = True
        self._read_or_not()

    def resume_reading(self) -> None:
        """More; not before the answers are taken. It is asked for at every request, mostly in vain."""
        if self._is_muted:
            self._is_muted = False
            self._read_or_not()

    def _read_or_not(self) -> None:
        if self._wire.is_closing():
            return
        if self._is_muted or self.is_full:
            self._wire.pause_reading()
        else:
            self._wire.resume_reading()

    def close(self) -> None:
        """Close it once all that was written is sent."""
        self._is_ended = True
        self._wire.close()

    def abort(self) -> None:
        """Close it at once."""
        self._is_ended = True
        self._wire.abort()
