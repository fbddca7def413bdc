"""One connection: counts bytes and time, and knows who closed it. What the bytes mean is aiohttp's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol, cast

from manager.core.member import Connection
from manager.http.front.tcp_info import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aiohttp import StreamReader

    from manager.http.front.limits import Limits, Peers

MAX_BEHIND = 65_536
"""Bytes that may be sent behind a request that is held by its group; whoever sends more is cut off."""


class Core(Protocol):
    """What is told of connections that are gone."""

    def closed(self, connection: Connection, *, by_peer: bool) -> None:
        """`by_peer` unless this end has closed it."""
        ...


class Deadline:
    """Calls `overdue` once `seconds` have passed since it was started, unless it is stopped before.

    One timer serves many starts and stops: every request has one of each.
    """

    __slots__ = ("_due", "_loop", "_overdue", "_seconds", "_timer")

    def __init__(self, seconds: float, overdue: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._overdue = overdue
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._due is not None

    def start(self) -> None:
        """Count from now."""
        self._due = self._loop.time() + self._seconds
        if self._timer is None:
            self._timer = self._loop.call_at(self._due, self._look)

    def stop(self) -> None:
        """There is nothing to wait for any more."""
        self._due = None

    def end(self) -> None:
        """Stop for good."""
        self._due = None
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        if self._due is None:
            return
        if self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._look)
        else:
            self._due = None
            self._overdue()


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
        "_core",
        "_http",
        "_incoming",
        "_is_answering",
        "_is_ended",
        "_is_muted",
        "_limits",
        "_peers",
        "_taking",
        "_unread",
        "_watch",
        "_wire",
        "is_full",
        "link",
    )

    def __init__(self, http: asyncio.Protocol, limits: Limits, peers: Peers, core: Core) -> None:
        super().__init__()
        self.link = Connection()
        self.is_full = False
        self._http = http
        self._limits = limits
        self._peers = peers
        self._core = core
        self._wire: asyncio.Transport
        self._watch: Watch | None = None
        self._incoming = Deadline(limits.request_s, self.abort)
        self._taking = Deadline(limits.answer_s, self._look_at_reader)
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
            self._incoming.stop()
            return
        if not self._incoming.is_running:
            self._incoming.start()
        body.on_eof(self._incoming.stop)

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
        if not self._peers.enter(self.link.host):
            self.abort()

    def _watch_reader(self, wire: asyncio.Transport) -> None:
        """Have it told when something waits for its reader, or see for ourselves."""
        if wire.get_extra_info("sslcontext") is None:
            wire.set_write_buffer_limits(high=1, low=0)
            return
        # With TLS, half a megabyte waits before this is told: it sends its own opening only while it is
        # read from, and a connection that is stopped at the first byte would never get that far.
        watch = Watch(wire.get_extra_info("socket"), self._limits.answer_s, self.abort)
        if watch.begin(asyncio.get_running_loop()):
            self._watch = watch

    def data_received(self, data: bytes) -> None:
        """Bytes have come in: of the next request, or of the one that is being answered."""
        if not self._is_answering:
            if not self._incoming.is_running:
                self._incoming.start()
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
            self._taking.start()
        self._http.pause_writing()

    def resume_writing(self) -> None:
        """Everything was taken."""
        self.is_full = False
        self._taking.stop()
        self._read_or_not()
        self._http.resume_writing()

    def _look_at_reader(self) -> None:
        """Whoever has taken something of what waits has time again."""
        before, self._unread = self._unread, self._wire.get_write_buffer_size()
        if self._unread < before:
            self._taking.start()
        else:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed, whoever did it: the group hears of that before a request is given up for it."""
        self._peers.leave(self.link.host)
        self._incoming.end()
        self._taking.end()
        if self._watch is not None:
            self._watch.end()
        self._core.closed(self.link, by_peer=not self._is_ended)
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
