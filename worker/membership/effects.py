"""What a member wants done. Of the `Pending` ones at most one is under way; a newer one takes its place."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from protocol.messages.base import NO_GENERATION

if TYPE_CHECKING:
    from protocol.messages.membership import (
        EngineEnd,
        HeartbeatRequest,
        JoinRequest,
        JoinResponse,
        LeaveRequest,
        SyncRequest,
    )

    MembershipRequest = JoinRequest | SyncRequest | HeartbeatRequest | LeaveRequest


@dataclass(frozen=True, slots=True)
class Identity:
    """Under which name the member is known, and since which generation."""

    member_id: str = ""
    generation: int = NO_GENERATION


@dataclass(frozen=True, slots=True, eq=False)
class Pending:
    """Something that takes time; its end is fed back as an event that carries this very object."""


@dataclass(frozen=True, slots=True, eq=False)
class Send(Pending):
    """Ask the manager; ends in `Answered`."""

    request: MembershipRequest


@dataclass(frozen=True, slots=True, eq=False)
class Wait(Pending):
    """Do nothing for `delay_s` seconds; ends in `Waited`."""

    delay_s: float


@dataclass(frozen=True, slots=True, eq=False)
class Assign(Pending):
    """As the leader, decide who runs what; ends in `Assigned`.

    `faults` is what the manager found wrong with the assignment before this one.
    """

    joined: JoinResponse
    faults: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Revoke(Pending):
    """Before an eager join: stop and release every task; ends in `Revoked`."""


@dataclass(frozen=True, slots=True, eq=False)
class Drain(Pending):
    """Before leaving: stop every query in order and release every task; ends in `Revoked`."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """These tasks are the member's now, in the generation of `identity`."""

    identity: Identity
    tasks: frozenset[str]


@dataclass(frozen=True, slots=True)
class Refresh:
    """A definition or a target of an owned task has changed, or it was taken away."""

    tasks_revision: int


@dataclass(frozen=True, slots=True)
class Lose:
    """Every task belongs to somebody else, or soon will: stop at once, release nothing."""

    reason: str


class Reason(Enum):
    """Why a worker ends."""

    ASKED = auto()
    FENCED = auto()
    REFUSED = auto()
    ENGINE_DIED = auto()


@dataclass(frozen=True, slots=True)
class Quit:
    """The membership is over; `message` is one line for a person, `engine` says how a dead engine ended."""

    reason: Reason
    message: str
    engine: EngineEnd | None = None


Effect = Send | Wait | Assign | Revoke | Drain | Adopt | Refresh | Lose | Quit
