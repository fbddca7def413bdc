"""The express lane: heartbeats, most of what a manager ever hears, answered where their bytes come in.

A heartbeat that arrives whole, plain and between two other requests needs no parser, no route and no task of
its own. Everything else about a connection is aiohttp's, and so is a heartbeat with anything unusual about
it: it gets the same answer there, as tests hold the two ways to each other.
"""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol

import msgspec
from aiohttp.http import SERVER_SOFTWARE

from manager.http.front.heads import Heads
from manager.http.front.replying import JSON, headers_of
from manager.runtime.pending import Reply
from protocol.errors import Failure
from protocol.messages.membership import HeartbeatRequest

if TYPE_CHECKING:
    from manager.access.access import Access
    from manager.core.connections import Connection
    from manager.core.turn import Outcome
    from manager.runtime.runtime import Runtime

MAX_BODY = 4096
MAX_BACKLOG = 65_536
"""How much may be sent ahead while a heartbeat is held; whoever sends more is cut off."""

_END_OF_HEAD = b"\r\n\r\n"
_decode = msgspec.json.Decoder(HeartbeatRequest).decode
_encode = msgspec.json.Encoder().encode


class Carrier(Protocol):
    """The connection that a lane belongs to."""

    transport: asyncio.Transport | None
    link: Connection

    def is_idle(self) -> bool:
        """Whether every request before has been answered, and the next one is waited for."""
        ...

    def data_received(self, data: bytes) -> None:
        """Bytes have come in, or come in again."""
        ...

    def rest(self) -> None:
        """From now on there is nothing to do."""
        ...

    def cut(self) -> None:
        """Close it at once."""
        ...


class Express:
    """What the lanes of one server share."""

    def __init__(self, runtime: Runtime, max_request_bytes: int, access: Access) -> None:
        self.runtime = runtime
        self.access = access
        self.max_body = min(MAX_BODY, max_request_bytes)
        self.heads = Heads()

    def lane(self, carrier: Carrier) -> Lane:
        """The lane of a new connection."""
        return Lane(self, carrier)


class Lane:
    """One connection's. `take` is offered all bytes; what it does not take is for the ordinary way."""

    __slots__ = (
        "_access",
        "_backlog",
        "_carrier",
        "_certified",
        "_heads",
        "_held",
        "_max_body",
        "_missing",
        "_runtime",
    )

    def __init__(self, shared: Express, carrier: Carrier) -> None:
        self._runtime = shared.runtime
        self._heads = shared.heads
        self._access = shared.access
        self._max_body = shared.max_body
        self._carrier = carrier
        self._certified: bool | None = None
        self._missing: int | None = 0
        self._held: _Beat | None = None
        self._backlog = b""

    def take(self, data: bytes) -> bool:
        """Whether `data` is a heartbeat and has been seen to, or is to wait until one is answered."""
        if self._held is not None or self._backlog:
            self._keep(data)
            return True
        if self._missing != 0:
            self._follow(data)
            return False
        end = data.find(_END_OF_HEAD)
        head = self._heads.read(data[:end]) if end >= 0 else None
        if head is None:
            self._missing = None
            return False
        self._missing = _left(end + len(_END_OF_HEAD) + head.length, len(data))
        if self._missing != 0 or head.group is None or not self._carrier.is_idle():
            return False
        if not self._access.admits_member(head.authorization, head.group, is_certified=self._is_certified()):
            return False
        body = data[end + len(_END_OF_HEAD) :]
        request = self._read(body)
        return request is not None and self._serve(head.group, request)

    @property
    def is_holding(self) -> bool:
        """Whether a heartbeat is held, or something waits behind one."""
        return self._held is not None or bool(self._backlog)

    def lost(self) -> None:
        """The connection is gone, and with it whoever waits."""
        if self._held is not None:
            self._held = None
            self._runtime.parked -= 1

    def _follow(self, data: bytes) -> None:
        """Where a request ends that came in pieces; None once that cannot be told any more."""
        if self._missing is not None:
            self._missing = _left(self._missing, len(data))

    def _keep(self, data: bytes) -> None:
        self._backlog += data
        if len(self._backlog) > MAX_BACKLOG:
            self._carrier.cut()

    def _read(self, body: bytes) -> HeartbeatRequest | None:
        """What is wrong with a body is told by the ordinary way."""
        if len(body) > self._max_body or not body.isascii() or b"[" in body or body.count(b"{") != 1:
            return None
        try:
            return _decode(body)
        except msgspec.DecodeError:
            return None

    def _serve(self, group: str, request: HeartbeatRequest) -> bool:
        beat = _Beat(self._carrier.link, self)
        if not self._runtime.put(group, request, beat):
            return False
        if not beat.delivered:
            self._held = beat
            self._runtime.parked += 1
        return True

    def _is_certified(self) -> bool:
        """Whether the connection's TLS has verified a certificate; that is looked up once."""
        if self._certified is None:
            transport = self._carrier.transport
            self._certified = transport is not None and bool(transport.get_extra_info("peercert"))
        return self._certified

    def answer(self, beat: _Beat, outcome: Outcome) -> None:
        """Send the answer; what came in meanwhile is looked at next."""
        self._runtime.meter.answered(HeartbeatRequest, outcome)
        if self._carrier.transport is not None:
            self._carrier.transport.write(_as_bytes(outcome))
        if self._held is beat:
            self._held = None
            self._runtime.parked -= 1
            self._carrier.rest()
            if self._backlog:
                asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        data, self._backlog = self._backlog, b""
        if self._carrier.transport is not None:
            self._carrier.data_received(data)


class _Beat(Reply):
    """The place of one heartbeat."""

    __slots__ = ("delivered", "lane")

    def __init__(self, connection: Connection, lane: Lane) -> None:
        super().__init__(connection)
        self.lane = lane
        self.delivered = False

    def deliver(self, outcome: Outcome) -> None:
        """Hand the answer to the connection, once."""
        if not self.delivered:
            self.delivered = True
            self.lane.answer(self, outcome)


def _left(expected: int, got: int) -> int | None:
    """How many bytes of a request are still to come; None when there are more than its own."""
    return expected - got if got <= expected else None


def _as_bytes(outcome: Outcome) -> bytes:
    """The whole response."""
    if isinstance(outcome, Failure):
        status, headers, body = outcome.code.status, headers_of(outcome), _encode(outcome.body())
    else:
        status, headers, body = HTTPStatus.OK.value, {}, _encode(outcome)
    more = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
    return b"%b%d\r\n%b%b\r\n%b" % (_beginning(status, int(time.time())), len(body), more, _LAST, body)


@lru_cache(maxsize=16)
def _beginning(status: int, now_s: int) -> bytes:
    """The same for all answers of a second."""
    reason = HTTPStatus(status).phrase
    lines = f"HTTP/1.1 {status} {reason}", f"Content-Type: {JSON}", f"Date: {formatdate(now_s, usegmt=True)}"
    return "\r\n".join((*lines, "Content-Length: ")).encode()


_LAST = f"Server: {SERVER_SOFTWARE}\r\n".encode()
