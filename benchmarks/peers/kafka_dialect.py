"""Kafka's own protocol, for the load: JoinGroup v2, SyncGroup v1 and Heartbeat v1 as bytes."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.tools.rebalance_load import SESSION_MS, Joined

if TYPE_CHECKING:
    from collections.abc import Sequence

JOIN, SYNC, HEARTBEAT, FIND_COORDINATOR = (11, 2), (14, 1), (12, 1), (10, 1)
TYPE = "consumer"
UNKNOWN_MEMBER_ID: Final = 25
ERRORS: Final = {
    14: "COORDINATOR_LOAD_IN_PROGRESS",
    15: "COORDINATOR_NOT_AVAILABLE",
    16: "NOT_COORDINATOR",
    22: "ILLEGAL_GENERATION",
    UNKNOWN_MEMBER_ID: "UNKNOWN_MEMBER_ID",
    27: "REBALANCE_IN_PROGRESS",
}
MEMBER_ID_REQUIRED = 79


class Reader:
    """Takes one field after another."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 8  # length and correlation id

    def number(self, form: str) -> int:
        """A big-endian integer."""
        (value,) = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(f">{form}")
        return int(value)

    def text(self) -> str:
        """A string with its length before it."""
        length = max(self.number("h"), 0)
        self._at += length
        return self._data[self._at - length : self._at].decode()

    def error(self, *, but: int = 0) -> int:
        """The error code here, 0 or `but`; any other raises."""
        code = self.number("h")
        if code not in {0, but}:
            raise RuntimeError(ERRORS.get(code, f"error {code}"))
        return code


class KafkaDialect:
    """Keeps no state: one serves all members. Some brokers' rebalances take as long as sessions let them."""

    def __init__(self, session_ms: int = SESSION_MS) -> None:
        self._timeouts = struct.pack(">ii", session_ms, session_ms)

    def join(self, group: str, member: str, round_: int) -> bytes:
        """With subscription metadata of a consumer's length."""
        metadata = _bytes(struct.pack(">hi", round_, 1) + _text("topic") + _bytes(b""))
        protocols = struct.pack(">i", 1) + _text("sticky") + metadata
        return _request(*JOIN, _text(group) + self._timeouts + _text(member) + _text(TYPE) + protocols)

    def joined(self, answer: bytes) -> Joined:
        """The list of members, which the leader gets, is not read."""
        reader = Reader(answer)
        reader.number("i")  # throttle time
        error = reader.error(but=MEMBER_ID_REQUIRED)
        generation, _, leader, member = reader.number("i"), reader.text(), reader.text(), reader.text()
        return Joined(member, generation, leader, again=error == MEMBER_ID_REQUIRED)

    def sync(self, group: str, joined: Joined, everyone: Sequence[str]) -> bytes:
        """With a small assignment for everybody."""
        given = b"".join(_text(member) + _bytes(member.encode()) for member in everyone)
        head = _text(group) + struct.pack(">i", joined.generation) + _text(joined.member)
        return _request(*SYNC, head + struct.pack(">i", len(everyone)) + given)

    def synced(self, answer: bytes) -> None:
        """Raises if it was refused."""
        reader = Reader(answer)
        reader.number("i")  # throttle time
        reader.error()

    def heartbeat(self, group: str, joined: Joined) -> bytes:
        """There is no other kind."""
        return _request(
            *HEARTBEAT, _text(group) + struct.pack(">i", joined.generation) + _text(joined.member)
        )

    def beaten(self, answer: bytes) -> None:
        """Raises if it was refused."""
        self.synced(answer)

    def length(self, received: bytes) -> int | None:
        """The first four bytes say it."""
        return None if len(received) < 4 else 4 + int.from_bytes(received[:4], "big")  # noqa: PLR2004


class Coordinator(NamedTuple):
    """Who has a group: a broker's number and place."""

    number: int
    host: str
    port: int

    @classmethod
    def read(cls, answer: bytes) -> Coordinator:
        """Of an answer to `find_coordinator`; raises if it names nobody."""
        reader = Reader(answer)
        reader.number("i")  # throttle time
        reader.error()
        reader.text()  # the error in words
        return cls(reader.number("i"), reader.text(), reader.number("i"))


def find_coordinator(group: str) -> bytes:
    """What a client asks before all else; the first such request may make a broker make what it needs."""
    return _request(*FIND_COORDINATOR, _text(group) + b"\x00")


def knows_no_member(answer: bytes) -> None:
    """Of an answer to a heartbeat: raises unless whoever has the group says so."""
    reader = Reader(answer)
    reader.number("i")  # throttle time
    reader.error(but=UNKNOWN_MEMBER_ID)


def _request(key: int, version: int, body: bytes) -> bytes:
    head = struct.pack(">hhi", key, version, 1) + _text("bench")
    return _bytes(head + body)


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data
