"""One member of a group, its connections, and the requests of it that wait."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from protocol.messages.base import NULL
from protocol.messages.membership import Protocol
from protocol.worker_metadata import WorkerMetadata, read_metadata

if TYPE_CHECKING:
    from manager.core.stored_rows import MemberRow
    from protocol.messages.membership import JoinRequest
    from protocol.messages.resources import WorkerResources


@dataclass(slots=True, eq=False)
class Member:
    """A member as it lives; `row` is the part that a completed join phase makes durable.

    `confirmed` becomes true with the first answered join. `kept` are the open connections of its own,
    `heard_over` is the one that its last accepted request came over, `heard_at` when it arrived, by the
    monotonic clock in milliseconds, and `closed_at` when one was closed that counts. `cleared` counts the
    suspects that have done it no harm, `unfinished_checks` those checks given to it since its last result.
    `resources` is what it has told of itself last.
    """

    row: MemberRow
    stored: MemberRow | None = None
    confirmed: bool = False
    kept: set[Connection] = field(default_factory=set)
    heard_over: Connection | None = None
    last_heartbeat_ms: int = 0
    heard_at: int = 0
    closed_at: int = 0
    parked_sync: Parked | None = None
    held_heartbeat: Parked | None = None
    concern_revision: int = 0
    cleared: int = 0
    unfinished_checks: int = 0
    resources: WorkerResources | None = None
    names: frozenset[str] = field(default_factory=frozenset)
    _told: tuple[tuple[Protocol, ...], WorkerMetadata | None] = ((), None)

    @property
    def id(self) -> str:
        """The member id."""
        return self.row.member_id

    @property
    def is_static(self) -> bool:
        """Whether it carries an instance id (KIP-345)."""
        return self.row.instance_id is not None

    @property
    def settles(self) -> bool:
        """Whether it says that it can settle tasks (`core.tasks.settling`)."""
        metadata = self.worker_metadata()
        return metadata is not None and metadata.settles

    @property
    def homes(self) -> bool:
        """Whether it says that it knows of the homes of tasks (`core.tasks.homes`)."""
        metadata = self.worker_metadata()
        return metadata is not None and metadata.homes

    def held_for_ms(self, wait_ms: int) -> int:
        """How long a request that asks for `wait_ms` is held at most, in ms: the session is to outlast it."""
        return min(wait_ms, self.row.session_timeout_ms // 3)

    def worker_metadata(self) -> WorkerMetadata | None:
        """What a worker tells of itself, the same under each protocol; None if it is none.

        It is read once for each join.
        """
        if self._told[0] is not self.row.protocols:
            self._told = (self.row.protocols, _metadata_of(self.row.protocols))
        return self._told[1]

    def metadata_for(self, protocol_name: str | None) -> msgspec.Raw:
        """What it told under the chosen protocol; null when it does not know it."""
        for protocol in self.row.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        return NULL


class Connection:
    """One connection, from the first request on it to its end.

    `host` is the address at its other end. `member` is whose request it carried last, in the group called
    `group`, and `waiting` the request that was parked last.
    """

    __slots__ = ("group", "host", "is_kept", "is_open", "is_shared", "member", "waiting")

    def __init__(self, host: str = "") -> None:
        self.host = host
        self.group = ""
        self.member: Member | None = None
        self.waiting: Parked | None = None
        self.is_open = True
        self.is_kept = False
        self.is_shared = False

    @property
    def parked(self) -> Parked | None:
        """The request that waits on it."""
        return self.waiting if self.waiting is not None and not self.waiting.settled else None


class AnsweredTwiceError(Exception):
    """A second answer to one request: a bug in the core."""


class Parked:
    """The place of one request, from its arrival to its answer.

    `connection` is what it came over. `settled` becomes true when the core has decided the answer, or has
    given the request up because its connection is gone; only one of the two can happen, once.
    """

    __slots__ = ("connection", "settled")

    def __init__(self, connection: Connection | None = None) -> None:
        self.connection = connection or Connection()
        self.settled = False

    def wait(self) -> None:
        """It is not answered yet, and its connection is watched meanwhile."""
        self.connection.waiting = self

    def settle(self) -> None:
        """Use up the one answer.

        Raises:
            AnsweredTwiceError: it was used up before.
        """
        if self.settled:
            raise AnsweredTwiceError("a request was answered twice")
        self.settled = True


def _metadata_of(protocols: tuple[Protocol, ...]) -> WorkerMetadata | None:
    for protocol in protocols:
        try:
            return read_metadata(protocol.metadata)
        except msgspec.ValidationError:
            return None
    return None


def detached(protocols: tuple[Protocol, ...]) -> tuple[Protocol, ...]:
    """`protocols` with values of their own, so that a kept one does not keep its request's whole body."""
    return tuple(Protocol(p.name, p.metadata.copy()) for p in protocols)


def adopt(row: MemberRow, request: JoinRequest) -> MemberRow:
    """`row` with what a newer join of the same member says."""
    return msgspec.structs.replace(
        row,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocols=detached(request.protocols),
    )
