"""What can happen to a member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from protocol.errors import Failure
    from protocol.messages.membership import (
        HeartbeatResponse,
        JoinResponse,
        LeaveResponse,
        MemberAssignment,
        SyncResponse,
    )
    from worker.membership.effects import Assign, Drain, Identity, Quit, Revoke, Send, Wait
    from worker.membership.reactions import Asked

    Answer = JoinResponse | SyncResponse | HeartbeatResponse | LeaveResponse | Failure


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

    asked: Asked
    identity: Identity
    failure: Failure


@dataclass(frozen=True, slots=True)
class LeaseExpired:
    """Nothing the manager accepted was sent within the worker's lease on itself."""


@dataclass(frozen=True, slots=True)
class StopAsked:
    """End, and say `farewell`; without `in_order` nothing is waited for but the leave."""

    farewell: Quit
    in_order: bool = True


Completion = Answered | Waited | Assigned | Revoked
Event = Started | Completion | Refused | LeaseExpired | StopAsked
