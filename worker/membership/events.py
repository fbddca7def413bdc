"""What can happen to a member, and what it then wants done: the state machine's events and effects.

Of the `Pending` effects at most one is under way; a newer one takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from protocol.messages.base import NO_GENERATION

if TYPE_CHECKING:
    from protocol.errands import ErrandKind
    from protocol.errors import Failure
    from protocol.messages.membership import (
        HeartbeatResponse,
        JoinResponse,
        LeaveResponse,
        MemberAssignment,
        OfferResponse,
        SyncResponse,
    )
    from worker.membership.reactions import RequestKind

    Answer = JoinResponse | OfferResponse | SyncResponse | HeartbeatResponse | LeaveResponse | Failure
    from protocol.messages.membership import (
        EngineEnd,
        HeartbeatRequest,
        JoinRequest,
        JoinResponse,
        LeaveRequest,
        OfferRequest,
        SyncRequest,
    )

    MembershipRequest = JoinRequest | OfferRequest | SyncRequest | HeartbeatRequest | LeaveRequest


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
    """These tasks are the member's now, in the generation of `identity`.

    Others follow unless `more_after_s` is None: `Settled` is to come when these have been started, and no
    sooner than after so many seconds.
    """

    identity: Identity
    tasks: frozenset[str]
    more_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Refresh:
    """A definition or a target of an owned task has changed, or it was taken away."""

    tasks_revision: int


@dataclass(frozen=True, slots=True)
class Errand:
    """The errand of that kind that the member has to do now, None for none: another one is not to go on."""

    identity: Identity
    kind: ErrandKind
    errand: str | None


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
    """The membership is over; `message` is one line for a person, `engine` says how a dead engine ended.

    `out_of_memory` says that it seems to have ended for want of heap.
    """

    reason: Reason
    message: str
    engine: EngineEnd | None = None
    out_of_memory: bool = False


Effect = Send | Wait | Assign | Revoke | Drain | Adopt | Refresh | Errand | Lose | Quit


@dataclass(frozen=True, slots=True)
class Started:
    """The worker is ready to take tasks."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The end of a `Send`."""

    of: Send
    answer: Answer


@dataclass(frozen=True, slots=True)
class Waited:
    """The end of a `Wait`."""

    of: Wait


@dataclass(frozen=True, slots=True)
class Assigned:
    """The end of an `Assign`."""

    of: Assign
    assignments: tuple[MemberAssignment, ...]


@dataclass(frozen=True, slots=True)
class Revoked:
    """The end of a `Revoke` or a `Drain`; `stopped` says whether no query runs any more."""

    of: Revoke | Drain
    stopped: bool = True


@dataclass(frozen=True, slots=True)
class Refused:
    """A claim, a release or a report, sent under `identity`, met trouble that concerns the membership."""

    asked: RequestKind
    identity: Identity
    failure: Failure


@dataclass(frozen=True, slots=True)
class Settled:
    """What was adopted under `identity` has been started: the rest of what is to move here may come."""

    identity: Identity


@dataclass(frozen=True, slots=True)
class LeaseExpired:
    """Nothing the manager accepted was sent within the worker's lease on itself."""


@dataclass(frozen=True, slots=True)
class StopAsked:
    """End, and say `farewell`; without `in_order` nothing is waited for but the leave."""

    farewell: Quit
    in_order: bool = True


Completion = Answered | Waited | Assigned | Revoked
Event = Started | Completion | Refused | Settled | LeaseExpired | StopAsked
