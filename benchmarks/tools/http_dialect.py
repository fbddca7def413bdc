"""The manager's own protocol, for the load: HTTP/1.1 with JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from benchmarks.tools.load import END_OF_HEAD, request
from benchmarks.tools.rebalance_load import SESSION_MS, Joined

if TYPE_CHECKING:
    from collections.abc import Sequence

TYPE = "bench"


class JoinAnswer(msgspec.Struct):
    """What a member reads of the answer to a join; anything else is skipped."""

    error: str
    generation_id: int = -1
    member_id: str = ""
    leader_id: str = ""


class Answer(msgspec.Struct):
    """What a member reads of any other answer."""

    error: str


A = TypeVar("A", JoinAnswer, Answer)
JOIN_ANSWER = msgspec.json.Decoder(JoinAnswer)
ANSWER = msgspec.json.Decoder(Answer)


class HttpDialect:
    """Keeps no state: one serves all members."""

    def __init__(self, host: str, session_ms: int = SESSION_MS) -> None:
        self._host = host
        self._session_ms = session_ms

    def join(self, group: str, member: str, round_: int) -> bytes:
        """As a worker writes it, at its full length."""
        return self._post(
            group,
            "join",
            {
                "member_id": member,
                "instance_id": None,
                "client_id": TYPE,
                "session_timeout_ms": self._session_ms,
                "rebalance_timeout_ms": self._session_ms,
                "protocol_type": TYPE,
                "protocols": [{"name": "sticky", "metadata": {"round": round_}}],
                "require_member_id": False,
            },
        )

    def joined(self, answer: bytes) -> Joined:
        """The answer's body."""
        told = _read(answer, JOIN_ANSWER)
        return Joined(told.member_id, told.generation_id, told.leader_id)

    def sync(self, group: str, joined: Joined, everyone: Sequence[str]) -> bytes:
        """With a small assignment for everybody."""
        given = [{"member_id": member, "assignment": {"tasks": [member]}} for member in everyone]
        fields = {"member_id": joined.member, "instance_id": None, "generation_id": joined.generation}
        return self._post(group, "sync", fields | {"assignments": given})

    def synced(self, answer: bytes) -> None:
        """Raises if it was refused."""
        _read(answer, ANSWER)

    def heartbeat(self, group: str, joined: Joined, wait_ms: int = 0) -> bytes:
        """Plain, or held for so long."""
        fields = {"member_id": joined.member, "instance_id": None, "generation_id": joined.generation}
        return self._post(group, "heartbeat", fields | {"wait_ms": wait_ms})

    def beaten(self, answer: bytes) -> None:
        """Raises if it was refused."""
        _read(answer, ANSWER)

    def length(self, received: bytes) -> int | None:
        """The head and the body that it announces."""
        end = received.find(END_OF_HEAD)
        if end < 0:
            return None
        _, _, rest = received[:end].lower().partition(b"content-length:")
        return end + len(END_OF_HEAD) + int(rest.split(b"\r\n", 1)[0] or b"0")

    def _post(self, group: str, verb: str, body: object) -> bytes:
        return request(self._host, f"/v1/groups/{group}/{verb}", msgspec.json.encode(body))


def _read(answer: bytes, decoder: msgspec.json.Decoder[A]) -> A:
    told = decoder.decode(answer.partition(END_OF_HEAD)[2])
    if told.error != "NONE":
        raise RuntimeError(told.error)
    return told
